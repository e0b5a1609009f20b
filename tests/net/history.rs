//! The history, as anybody may have written it.

use pod_reaper_test_support::{
    samples,
    simulated::{Dice, Fault, Objects},
};
use serde_json::{Map, Value, json};

use crate::conditions::{is_leaf, ready, text};

/// The history of a random run.
#[derive(Clone, Default)]
pub struct Memory {
    /// The data of the `ConfigMap`, if there is one.
    pub data: Option<Value>,
    /// What happens to each request for it.
    pub fault: Option<Fault>,
}

/// Another text of a value than the program's own.
const OTHERS: [&str; 9] = [
    "",
    "null",
    "[]",
    "{}",
    "{\"version\":1}",
    "{\"version\":2,\"node\":\"n0\",\"told\":true}",
    "\u{1b}[2Jreap n1",
    "version: 1",
    "{\"version\":\"1\",\"node\":7}",
];

impl Memory {
    /// An empty history, as the manifests make it.
    pub fn empty() -> Self {
        Self {
            data: Some(json!({})),
            fault: None,
        }
    }

    /// Anything that the `ConfigMap`, or a request for it, may be.
    pub fn random(nodes: &Objects, dice: &mut Dice) -> Self {
        let fault = dice.weigh(&[
            (20, None),
            (1, Some(Fault::Status(403, false, false))),
            (1, Some(Fault::Status(500, true, true))),
            (1, Some(Fault::Hangs(true))),
            (1, Some(Fault::Garbage)),
            (1, Some(Fault::Empty)),
            (1, Some(Fault::Malformed)),
            (1, Some(Fault::NoEffect)),
        ]);
        let data = match dice.below(8) {
            0 => Value::Null,
            1 => json!("all of it"),
            2 => json!({ "x": "y".repeat(1 << 20) }),
            3 => json!({ "n0": 7, "last-report": {} }),
            4 => (0..300)
                .map(|number| (format!("uid-of-{number}"), entry("n0", dice)))
                .collect::<Map<_, _>>()
                .into(),
            _ => {
                let all = nodes.objects.iter().filter(|it| it["kind"] == "Node");
                let each = all.map(|node| {
                    let value = if dice.permille(700) {
                        entry(text(&node["metadata"]["name"]), dice)
                    } else {
                        json!(dice.pick(&OTHERS))
                    };
                    (text(&node["metadata"]["uid"]).to_owned(), value)
                });
                each.collect::<Map<_, _>>().into()
            }
        };
        Self {
            data: Some(data).filter(|_| dice.permille(950)),
            fault,
        }
    }

    pub fn object(&self) -> Option<Value> {
        let metadata = json!({"name": "pod-reaper-history", "namespace": "pod-reaper", "uid": "h"});
        let data = self.data.clone()?;
        Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    }
}

/// A value that the program could have written, and that may be a lie.
fn entry(node: &str, dice: &mut Dice) -> Value {
    let at = dice.pick(&[
        "2026-01-31T02:00:00Z",
        "2026-01-30T00:00:00Z",
        "2026-01-01T00:00:00Z",
        "9999-12-01T00:00:00Z",
        "-009999-01-02T01:59:59Z",
        samples::NOW,
    ]);
    let name = dice.pick(&["db-0", "db-7", "no set", "\u{1b}[31mdb-0", "-"]);
    let pod = json!({"namespace": "shop", "name": name, "ownerKind": dice.pick(&["StatefulSet", "Job"]),
        "attached": dice.permille(500), "at": at});
    let told = json!({"state": dice.pick(&["down", "back-same-boot", "unknown", "dead"]), "readySince": at});
    let value = json!({"version": 1, "node": node, "bootID": dice.pick(&["", "boot-1", "boot-2"]), "firstReap": at,
        "lastReap": at, "pods": vec![pod; dice.below(3)], "more": dice.pick(&[0, u64::MAX]),
        "told": if dice.permille(300) { told } else { Value::Null }});
    json!(value.to_string())
}

/// Gives each node a boot ID.
pub fn boot(objects: &mut [Value], dice: &mut Dice) {
    for node in objects.iter_mut().filter(|it| it["kind"] == "Node") {
        let id = dice.pick(&["", "boot-1", "boot-1", "boot-2"]);
        node["status"]["nodeInfo"]["bootID"] = json!(id);
    }
}

/// Says what is wrong about a note of a node whose pods were deleted. `is_whole` is whether all machines could be read.
pub fn wrong_note(
    objects: &Objects,
    node: &Value,
    deleted: &[&str],
    is_whole: bool,
) -> Option<String> {
    assert_ne!(ready(node), Some("True"));
    let uid = text(&node["metadata"]["uid"]);
    let Some(note) = objects.history()?["data"][uid].as_str() else {
        return Some("it is not noted".to_owned());
    };
    let note = serde_json::from_str::<Value>(note).unwrap_or_default();
    let id = |node: &Value| text(&node["status"]["nodeInfo"]["bootID"]).to_owned();
    let nodes = objects.objects.iter().filter(|it| it["kind"] == "Node");
    let is_ready = |node: &&Value| ready(node) == Some("True") && !is_leaf(node);
    let same = nodes.filter(is_ready).map(|ready| id(ready) == id(node));
    let same = same.collect::<Vec<_>>();
    let noted = text(&note["bootID"]);
    // Some of the Ready machines are compared.
    let is_wrong = match noted {
        "" => !id(node).is_empty() && !same.contains(&true),
        noted => noted != id(node) || !same.is_empty() && !same.contains(&false),
    };
    if is_wrong && is_whole {
        return Some(format!("its boot ID is {noted:?}"));
    }
    let pods = note["pods"].as_array().into_iter().flatten();
    let named = pods.map(|pod| text(&pod["name"])).collect::<Vec<_>>();
    let missing = deleted.iter().find(|name| !named.contains(name))?;
    Some(format!("{missing} is not among {named:?}"))
}
