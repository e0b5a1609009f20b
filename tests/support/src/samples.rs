//! Objects at fixed times, for snapshots and the simulated server: a node failed at 01:00, its pods should have been gone by
//! 01:05, and the current time is 03:00.

use itertools::Itertools as _;
use serde_json::{Value, json};

use crate::words::Usual;

/// The time when a node failed, and the current time.
pub const FAILED: &str = "2026-01-31T01:00:00Z";
pub const NOW: &str = "2026-01-31T03:00:00Z";

/// Returns `value` with `more` laid over it, object by object.
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

/// The program's own patch for this pod, with `more` laid over it.
pub fn status_patch(pod: &Value, more: Value) -> Value {
    let mut patch = yaml(
        "
        status:
            phase: Failed
            conditions:
            - {type: DisruptionTarget, status: 'True', reason: DeletionByPodReaper, message: stuck,
                lastTransitionTime: '2026-01-31T03:00:00Z'}
        ",
    );
    for field in ["uid", "resourceVersion"] {
        patch["metadata"][field] = pod["metadata"][field].clone();
    }
    with(patch, more)
}

const USUAL: Usual = Usual {
    now: || NOW.parse().expect("a moment"),
    // The pods' grace period ends at the deadline.
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
