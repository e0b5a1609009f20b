//! Raw objects at fixed times: a node failed at one, its pods should have been gone by five past, and now it is three.
//!
//! They have only the fields that a test needs. Objects that a real API server accepts are in
//! [`objects`](crate::objects).

use itertools::Itertools as _;
use serde_json::{Value, json};

/// The time when a node failed, and the current time.
pub const FAILED: &str = "2026-01-31T01:00:00Z";
pub const NOW: &str = "2026-01-31T03:00:00Z";
/// When the pods should have been gone.
pub const DEADLINE: &str = "2026-01-31T01:05:00Z";

/// When all objects were made.
pub const MADE: &str = "2026-01-01T00:00:00Z";

pub fn node(name: &str, ready: &str) -> Value {
    json!({"kind": "Node", "metadata": {"name": name, "uid": format!("uid-{name}"), "creationTimestamp": MADE}, "status": {"conditions": [
        {"type": "Ready", "status": ready, "reason": "NodeStatusUnknown", "lastTransitionTime": FAILED}
    ]}})
}

pub fn namespace(name: &str) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": name}})
}

/// A lease that was last renewed before the node failed.
pub fn lease(node: &str) -> Value {
    json!({"kind": "Lease", "metadata": {"namespace": "kube-node-lease", "name": node},
        "spec": {"renewTime": "2026-01-31T00:59:20Z"}})
}

/// A Terminating pod of a StatefulSet.
pub fn pod(namespace: &str, name: &str, node: &str) -> Value {
    let owner = name.rsplit_once('-').map_or(name, |(owner, _)| owner);
    json!({"kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{namespace}-{name}"),
            "resourceVersion": "7", "creationTimestamp": MADE,
            "deletionTimestamp": DEADLINE, "deletionGracePeriodSeconds": 30,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner,
                "uid": format!("uid-of-{owner}"), "controller": true}]},
        "spec": {"nodeName": node}})
}

pub fn using(mut pod: Value, claim: &str) -> Value {
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

pub fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

pub fn due(mut pod: Value, deadline: &str) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!(deadline);
    pod
}

pub fn held_by(mut pod: Value, finalizer: &str) -> Value {
    pod["metadata"]["finalizers"] = json!([finalizer]);
    pod
}

pub fn claim(namespace: &str, name: &str, volume: &str) -> Value {
    json!({"kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "5",
            "creationTimestamp": MADE},
        "spec": {"volumeName": volume}, "status": {"phase": "Bound"}})
}

/// A claim of a StatefulSet's template that is declared scratch.
pub fn scratch(namespace: &str, name: &str, volume: &str) -> Value {
    annotated(
        claim(namespace, name, volume),
        "pod-reaper.io/scratch",
        "true",
    )
}

/// The StatefulSet of the pods of [`pod`], with claim templates.
pub fn set(namespace: &str, name: &str, templates: &[&str]) -> Value {
    let templates = templates
        .iter()
        .map(|name| json!({"metadata": {"name": name}}));
    json!({"kind": "StatefulSet",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-of-{name}")},
        "spec": {"volumeClaimTemplates": templates.collect_vec()}})
}

pub fn volume(name: &str, spec: &Value) -> Value {
    json!({"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
}

/// `value` with `more` laid over it, object by object.
pub fn with(mut value: Value, more: Value) -> Value {
    match (&mut value, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, more) in more {
                let field = fields.entry(key).or_insert(Value::Null);
                *field = with(field.take(), more);
            }
        }
        (value, more) => *value = more,
    }
    value
}

pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Objects by `Kind name` or `Kind namespace/name`: each the sample of its kind, with what stands there laid over it, or
/// none where that is null. Three words are short for what takes many: `ready: 'False'` of a node, which else is
/// `Unknown`; `uses: CLAIM` of a pod, which is stuck on ds06; and `volume: NAME` of a claim, which else is bound to pv-1.
pub fn objects(described: &Value) -> Vec<Value> {
    let described = described.as_object().expect("a mapping").iter();
    let described = described.filter(|(_, more)| !more.is_null());
    let objects = described.map(|(key, more)| {
        let (kind, name) = key.split_once(' ').expect("a kind and a name");
        let (given, name) = match name.split_once('/') {
            Some((space, name)) => (Some(space), name),
            None => (None, name),
        };
        let space = given.unwrap_or("data");
        let mut more = more.clone();
        let mut word = |key: &str| {
            let word = more.as_object_mut().and_then(|more| more.remove(key));
            word.map(|word| word.as_str().expect("a word").to_owned())
        };
        let sample = match kind {
            "Node" => node(name, word("ready").as_deref().unwrap_or("Unknown")),
            "Namespace" => namespace(name),
            "Lease" => lease(name),
            "Pod" => match word("uses") {
                Some(claim) => using(pod(space, name, "ds06"), &claim),
                None => pod(space, name, "ds06"),
            },
            "PersistentVolumeClaim" => {
                claim(space, name, word("volume").as_deref().unwrap_or("pv-1"))
            }
            "PersistentVolume" => volume(name, &json!({"csi": {"driver": "ceph"}})),
            "StatefulSet" => set(space, name, &[]),
            _ => json!({"kind": kind, "metadata": {"namespace": given, "name": name, "uid": format!("uid-of-{name}")}}),
        };
        bound_to_its_node(with(sample, more))
    });
    objects.collect()
}

/// A volume that is a directory of a node.
pub fn directory(name: &str, node: &str) -> Value {
    let requirement = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let terms = json!([{"matchExpressions": [requirement]}]);
    let affinity = json!({"required": {"nodeSelectorTerms": terms}});
    volume(
        name,
        &json!({"local": {"path": "/x"}, "nodeAffinity": affinity}),
    )
}

/// Gives a volume that is a directory its affinity to ds06, unless it has or denies one.
fn bound_to_its_node(mut object: Value) -> Value {
    let spec = &object["spec"];
    let is_one = spec["local"].is_object() || spec["hostPath"].is_object();
    if is_one && spec.get("nodeAffinity").is_none() {
        object["spec"]["nodeAffinity"] = directory("", "ds06")["spec"]["nodeAffinity"].clone();
    }
    object
}

/// A list, as `kubectl get … -o json` prints it.
pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
        "items": items.into_iter().collect_vec()})
}
