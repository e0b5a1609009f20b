//! Lists in the forms of the API server: whole objects, their metadata alone, or rows.

use itertools::Itertools as _;
use serde_json::{Value, json};

use super::Kind;

/// An object as an item of the list.
pub(super) fn item(kind: Kind, object: &Value) -> Value {
    match kind {
        Kind::PodUids => json!({"metadata": object["metadata"]}),
        kind if kind.is_rows() => json!({"cells": cells(kind, object)}),
        _ => object.clone(),
    }
}

/// Gives a field of an item a type that the field cannot have.
pub(super) fn spoil(item: &mut Value) {
    if let Some(cells) = item["cells"].as_array_mut() {
        cells.fill(json!(7));
    } else {
        // The program reads at least one of the two from each kind.
        item["metadata"]["annotations"] = json!(7);
        item["metadata"]["labels"] = json!(7);
    }
}

pub(super) fn list(kind: Kind, next: &str, items: Vec<Value>) -> Value {
    let metadata = json!({"continue": next});
    if !kind.is_rows() {
        let kind = match kind {
            Kind::PodUids => "PartialObjectMetadata",
            kind => kind.resource(),
        };
        let kind = format!("{kind}List");
        return json!({"kind": kind, "metadata": metadata, "items": items});
    }
    let columns = columns(kind)
        .iter()
        .map(|name| json!({"name": name, "type": "string"}));
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns.collect_vec(), "rows": items})
}

fn columns(kind: Kind) -> &'static [&'static str] {
    if kind == Kind::NodeRows {
        return &["Name", "Status", "Roles", "Age", "Version"];
    }
    &["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"]
}

/// The columns as Kubernetes 1.33 to 1.35 print them (pkg/printers/internalversion/printers.go).
fn cells(kind: Kind, object: &Value) -> Value {
    let name = &object["metadata"]["name"];
    let text = |value: &Value, absent: &str| value.as_str().unwrap_or(absent).to_owned();
    if kind == Kind::NodeRows {
        return json!([name, node_status(object), roles(object), "1d", "v1"]);
    }
    let node = text(&object["spec"]["nodeName"], "<none>");
    json!([name, "1/1", pod_status(object), "0", "1d", "<none>", node])
}

fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    let status = match ready.map(|ready| ready["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    format!(
        "{status}{}",
        if node["spec"]["unschedulable"] == true {
            ",SchedulingDisabled"
        } else {
            ""
        }
    )
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let mut roles = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
    let roles = roles.join(",");
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles
    }
}

/// A final phase hides that the pod is Terminating.
fn pod_status(pod: &Value) -> &str {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    let finished = matches!(phase, "Succeeded" | "Failed");
    if pod["metadata"]["deletionTimestamp"].is_null() || finished {
        phase
    } else {
        "Terminating"
    }
}
