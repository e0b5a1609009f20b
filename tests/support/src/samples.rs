//! Objects at fixed times, for snapshots and the simulated server: a node failed at one, its pods should have been gone by five
//! past, and now it is three.

use itertools::Itertools as _;
use serde_json::{Value, json};

use crate::words::Usual;

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

const USUAL: Usual = Usual {
    now: || NOW.parse().expect("a moment"),
    // Their grace ends at the deadline.
    deleted: 2 * 3_600 - 5 * 60 + 1,
    namespace: "data",
    node: "ds06",
};

/// Returns the described objects, in the words of [`words`](crate::words).
pub fn objects(described: &Value) -> Vec<Value> {
    USUAL.objects(described)
}

/// A list, as `kubectl get … -o json` prints it.
pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
        "items": items.into_iter().collect_vec()})
}
