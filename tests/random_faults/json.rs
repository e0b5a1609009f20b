//! Objects as the API server writes them, and their facts.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::facts::{Attachment, Ready, Requirement, Storage, VolumeFacts};
use serde_json::{Value, json};

use crate::{
    watched::Facts,
    world::{Claim, Mark, Node, Pod},
};

pub fn node_and_facts(node: &Node) -> (Value, Facts) {
    (self::node(node), Facts::Node(Arc::new(node.facts.clone())))
}

pub fn lease_and_facts(node: &Node) -> Option<(Value, Facts)> {
    Some((lease(node)?, Facts::Lease(node.facts.lease.clone().ok().flatten())))
}

pub fn pod_and_facts(pod: &Pod) -> (Value, Facts) {
    (self::pod(pod), Facts::Pod(Arc::new(pod.facts.clone()), pod.terminating))
}

fn node(node: &Node) -> Value {
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
        Some(Mark::Virtual) => {
            taints = json!([{"key": "virtual-kubelet.io/provider", "effect": "NoSchedule"}]);
        }
        Some(Mark::Edge) => labels["openyurt.io/is-edge-worker"] = json!("true"),
        Some(Mark::Selector) => labels["type"] = json!("stands-for-another"),
        Some(Mark::Name) | None => {}
    }
    let tainted = |effect: &str, since: String| json!({"key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": since});
    if let (Some(since), Some(taints)) = (facts.tainted_since, taints.as_array_mut()) {
        // The other one is renewed by a restart of the controller manager: it says nothing.
        taints.extend([
            tainted("NoSchedule", time(since)),
            tainted("NoExecute", "2026-01-31T03:00:00Z".to_owned()),
        ]);
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
        "spec": {"taints": taints, "unschedulable": node.cordoned},
        "status": {"conditions": conditions},
    })
}

/// The lease of a node that has one.
fn lease(node: &Node) -> Option<Value> {
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

fn pod_metadata(pod: &Pod) -> Value {
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

pub fn attachment(node: &str, attachment: &Attachment) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": attachment.name},
        "spec": {
            "attacher": "csi.example",
            "nodeName": node,
            "source": {"persistentVolumeName": attachment.volume},
        },
    })
}

pub fn namespace(name: &str, opted_out: bool) -> Value {
    let annotations = if opted_out { json!({"pod-reaper.io/skip": "true"}) } else { json!({}) };
    json!({"kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
}

fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
