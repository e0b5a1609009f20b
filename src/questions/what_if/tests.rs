//! Tests of the supposed facts, and of which pods come back. `tests/` verifies that the rest is decided as in a run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::{
    facts::ClusterFacts,
    kubernetes::RawPod,
    limits::{HoldReason, hold},
};

fn summary(spec: &Value, owner: Option<(&str, &str)>, labels: &Value) -> PodSummary {
    let owners =
        owner.map(|(kind, name)| json!([{"kind": kind, "name": name, "controller": true}]));
    let pod = json!({
        "metadata": {"namespace": "shop", "name": "db-0", "uid": "u", "ownerReferences": owners, "labels": labels},
        "spec": spec, "status": {"phase": "Running"},
    });
    serde_json::from_value::<RawPod>(pod).unwrap().summary()
}

#[test]
fn a_toleration_is_read_as_kubernetes_reads_it() {
    let unreachable = "node.kubernetes.io/unreachable";
    for (name, tolerations, stays) in [
        ("none", json!([]), false),
        (
            "for ever",
            json!([{"key": unreachable, "operator": "Exists", "effect": "NoExecute"}]),
            true,
        ),
        (
            "any effect",
            json!([{"key": unreachable, "operator": "Exists"}]),
            true,
        ),
        ("anything", json!([{"operator": "Exists"}]), true),
        ("equal to nothing", json!([{"key": unreachable}]), true),
        (
            "equal to something",
            json!([{"key": unreachable, "value": "x"}]),
            false,
        ),
        (
            "another key",
            json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]),
            false,
        ),
        (
            "another effect",
            json!([{"operator": "Exists", "effect": "NoSchedule"}]),
            false,
        ),
        (
            "for a while",
            json!([{"key": unreachable, "operator": "Exists", "tolerationSeconds": 300}]),
            false,
        ),
        (
            "the first that fits counts",
            json!([{"key": unreachable, "operator": "Exists", "tolerationSeconds": 1}, {"operator": "Exists"}]),
            false,
        ),
    ] {
        let stay = summary(
            &json!({"tolerations": tolerations}),
            Some(("StatefulSet", "db")),
            &json!({}),
        )
        .stays;
        assert_eq!(stay, stays.then_some(Stay::Tolerates), "{name}");
    }
    assert_eq!(
        summary(&json!({}), Some(("DaemonSet", "exporter")), &json!({})).stays,
        Some(Stay::DaemonSet)
    );
}

#[test]
fn a_version_of_a_deployment_is_that_deployment() {
    let of = |name, hash| {
        let labels = json!({"pod-template-hash": hash});
        summary(&json!({}), Some(("ReplicaSet", name)), &labels)
            .workload
            .map(|owner| (owner.kind, owner.name))
    };
    assert_eq!(
        of("web-7c9d", "7c9d"),
        Some(("Deployment".to_owned(), "web".to_owned()))
    );
    assert_eq!(
        of("web-7c9d", "other"),
        Some(("ReplicaSet".to_owned(), "web-7c9d".to_owned()))
    );
}

#[test]
fn without_a_controller_nothing_comes_back() {
    let reaped = Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: Vec::new(),
    };
    let owned = summary(&json!({}), Some(("StatefulSet", "db")), &json!({}));
    let bare = summary(&json!({}), None, &json!({}));
    assert_eq!(
        [fate(&owned, &reaped), fate(&bare, &reaped)],
        [Fate::ComesBack, Fate::Lost]
    );
}

#[test]
fn the_supposed_nodes_are_counted_with_those_that_are_dead_already() {
    let standing = |ready| Standing {
        ready,
        terminating: true,
        ..Standing::default()
    };
    let standings = BTreeMap::from(
        [("a", true), ("b", true), ("c", true), ("d", false)]
            .map(|(name, ready)| (name.to_owned(), standing(ready))),
    );
    let held_with = |dead: &[&str]| {
        let dead = dead
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>();
        let facts = ClusterFacts {
            now: Timestamp::UNIX_EPOCH,
            place: None,
            nodes: BTreeMap::new(),
            census: Census::NotNeeded,
            traits: BTreeMap::new(),
            attachments: BTreeMap::new(),
            unasked: BTreeMap::new(),
            unmatched_namespaces: None,
            on_ready_nodes: 0,
            node_count: 4,
            errors: Vec::new(),
            unseen: Vec::new(),
        };
        let mut gathered = Gathered {
            facts,
            pods: Vec::new(),
        };
        suppose(&mut gathered, &standings, &dead);
        hold(&gathered.facts.census, 55)
    };
    assert_eq!(held_with(&["a"]), None);
    let outage = HoldReason::MassOutage("3 of 4 nodes are NotReady".to_owned());
    assert_eq!(held_with(&["a", "b"]), Some(outage));
}
