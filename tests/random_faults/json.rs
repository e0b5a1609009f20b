//! Objects as the API server writes them.

use jiff::{SignedDuration, Timestamp};
use pod_reaper::facts::{Ready, Requirement, Storage, VolumeFacts};
use serde_json::{Value, json};

use crate::world::{Claim, Mark, Node, Pod};

pub fn node(node: &Node) -> Value {
    let facts = &node.facts;
    let (mut labels, mut annotations, mut taints) = (json!({}), json!({}), json!([]));
    if let Some(hostname) = &facts.hostname {
        labels["kubernetes.io/hostname"] = json!(hostname);
    }
    if facts.control_plane {
        labels["node-role.kubernetes.io/control-plane"] = json!("");
    }
    if facts.opted_out {
        annotations["pod-reaper.io/skip"] = json!("true");
    }
    match node.mark {
        Some(Mark::Label) => labels["kosmos.io/node"] = json!("true"),
        Some(Mark::Annotation) => annotations["kosmos-io/owned-by-cluster"] = json!("leaf"),
        Some(Mark::Taint) => taints = json!([{"key": "kosmos.io/node", "effect": "NoSchedule"}]),
        Some(Mark::Selector) => labels["type"] = json!("virtual-kubelet"),
        Some(Mark::Name) | None => {}
    }
    let mut conditions = json!([{"type": "MemoryPressure", "status": "Unknown"}]);
    if facts.ready != Ready::Absent {
        let ready = json!({
            "type": "Ready",
            "status": facts.ready.as_str(),
            "reason": facts.ready_reason,
            "lastTransitionTime": facts.ready_since.map(time),
        });
        conditions = json!([conditions[0], ready]);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": facts.name, "uid": facts.uid, "labels": labels, "annotations": annotations},
        "spec": {"taints": taints},
        "status": {"conditions": conditions},
    })
}

/// The Status cell of a node's row.
pub fn node_status(node: &Node) -> String {
    let ready = match node.facts.ready {
        Ready::True => "Ready",
        Ready::False | Ready::Unknown => "NotReady",
        Ready::Absent => "Unknown",
    };
    format!("{ready}{}", if node.cordoned { ",SchedulingDisabled" } else { "" })
}

/// The lease of a node that has one.
pub fn lease(node: &Node) -> Option<Value> {
    let lease = node.facts.lease.as_ref().ok()?.as_ref()?;
    let by_node = lease.renewed.map(|renewed| time(renewed + SignedDuration::from_secs(node.skew)));
    let fields = json!({"f:spec": {"f:renewTime": {}}});
    let stamp = lease
        .renewed
        .filter(|_| node.stamped)
        .map(|renewed| json!({"time": time(renewed), "fieldsV1": fields}));
    Some(json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node.facts.name,
            "namespace": "kube-node-lease",
            "managedFields": stamp.map(|stamp| vec![stamp]),
        },
        "spec": {"renewTime": by_node, "leaseDurationSeconds": lease.duration.as_secs()},
    }))
}

pub fn pod(pod: &Pod) -> Value {
    let facts = &pod.facts;
    let volume = |number: usize, claim: &String| {
        // A generic ephemeral volume's claim is named after pod and volume.
        match claim.strip_prefix(&format!("{}-", facts.name)).filter(|_| number == 1) {
            Some(name) => json!({"name": name, "ephemeral": {"volumeClaimTemplate": {}}}),
            None => json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}}),
        }
    };
    let volumes = facts.claims.iter().enumerate().map(|(number, claim)| volume(number, &claim.name));
    let volumes = volumes.chain([json!({"name": "token", "projected": {}})]).collect::<Vec<_>>();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod_metadata(pod),
        "spec": {"nodeName": facts.node, "volumes": volumes},
        "status": {"phase": if facts.finished { "Failed" } else { "Running" }},
    })
}

/// What a pod's row says.
pub fn pod_status(pod: &Pod) -> &'static str {
    match (pod.facts.finished, pod.terminating) {
        // A final phase hides that it is Terminating.
        (true, _) => "Failed",
        (false, true) => "Terminating",
        (false, false) => "Running",
    }
}

pub fn pod_metadata(pod: &Pod) -> Value {
    let facts = &pod.facts;
    let mut annotations = json!({});
    for (key, value) in [
        ("kubernetes.io/config.mirror", facts.mirror.then_some("hash")),
        ("pod-reaper.io/skip", facts.opted_out.then_some("true")),
        ("pod-reaper.io/after-reap", facts.after_reap.as_deref()),
    ] {
        if let Some(value) = value {
            annotations[key] = json!(value);
        }
    }
    let owner =
        facts.owner.iter().map(|owner| json!({"kind": owner.kind, "name": owner.name, "controller": true}));
    let mut metadata = json!({
        "namespace": facts.namespace,
        "name": facts.name,
        "uid": facts.uid,
        "resourceVersion": facts.resource_version,
        "annotations": annotations,
        "finalizers": facts.finalizers,
        "ownerReferences": owner.collect::<Vec<_>>(),
    });
    if pod.terminating {
        metadata["deletionTimestamp"] = json!(time(facts.deletion_deadline));
        metadata["deletionGracePeriodSeconds"] = json!(facts.grace_seconds);
    }
    metadata
}

pub fn claim(namespace: &str, name: &str, claim: &Claim) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name, "uid": claim.uid},
        "spec": {"volumeName": claim.volume},
        "status": {"phase": claim.phase},
    })
}

pub fn volume(volume: &VolumeFacts) -> Value {
    let requirement = |Requirement { key, operator, values }: &Requirement| json!({"key": key, "operator": operator, "values": values});
    let terms = volume
        .affinity
        .iter()
        .map(|term| json!({"matchExpressions": term.iter().map(requirement).collect::<Vec<_>>()}))
        .collect::<Vec<_>>();
    let mut spec = json!({"persistentVolumeReclaimPolicy": volume.reclaim_policy});
    match &volume.storage {
        Storage::Local(path) => spec["local"] = json!({"path": path}),
        Storage::HostPath(path) => spec["hostPath"] = json!({"path": path}),
        Storage::Driver => spec["csi"] = json!({"driver": "csi.example"}),
    }
    if !terms.is_empty() {
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume.name}, "spec": spec})
}

pub fn namespace_metadata(name: &str, opted_out: bool) -> Value {
    let annotations = if opted_out { json!({"pod-reaper.io/skip": "true"}) } else { json!({}) };
    json!({"name": name, "annotations": annotations})
}

pub fn table(columns: &[&str], rows: &[Value]) -> Value {
    let columns = columns.iter().map(|name| json!({"name": name, "type": "string"})).collect::<Vec<_>>();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows})
}

pub fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    })
}

fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
