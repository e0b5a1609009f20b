//! Objects as the API server writes them, and their facts.

use super::{
    Claim, Facts, Key, Namespace, Pod, SET, Set, Volume,
    node::{Lease, Node, Other, Place, Reporter, Skip, made},
};
use crate::prelude::*;
use pod_reaper_test_support::samples::{self, with};
use serde_json::json;

/// virt-handler's heartbeat.
const HEARTBEAT: &str = "kubevirt.io/heartbeat";

pub fn node_and_facts(node: &Node, now: Timestamp) -> (Value, Facts) {
    let node = node.at(now, Ok(Vec::new()));
    (self::node(&node, now), Facts::Node(Arc::new(node)))
}

/// The lease of a kubelet.
pub fn lease_and_facts(node: &Node, now: Timestamp) -> Option<(Value, Facts)> {
    let lease = node.lease.as_ref()?.at(now);
    let name = &node.facts.name;
    let named = json!({"name": name, "namespace": "kube-node-lease"});
    Some((self::lease(&lease, name, &named), Facts::Lease(lease)))
}

/// Another lease.
pub fn other_and_facts(other: &Other, now: Timestamp) -> (Value, Facts) {
    let lease = other.lease.at(now);
    let mut named = json!({"name": other.name, "namespace": other.namespace});
    if let Some((host, of)) = &other.server {
        named["labels"] =
            json!({"kubernetes.io/hostname": host, "apiserver.kubernetes.io/identity": of});
    }
    let object = self::lease(&lease, &other.holder, &named);
    let other = Other {
        lease,
        ..other.clone()
    };
    (object, Facts::Other(Box::new(other)))
}

pub fn pod_and_facts(pod: &Pod) -> (Value, Facts) {
    (self::pod(pod), Facts::Pod(Arc::new(pod.clone())))
}

fn node(node: &Node, now: Timestamp) -> Value {
    let facts = &node.facts;
    let (mut labels, mut annotations) = (json!(node.labels), json!(node.annotations));
    if facts.control_plane {
        labels["node-role.kubernetes.io/control-plane"] = json!("");
    }
    skip(node.skip, &mut labels, &mut annotations);
    if let Some(answer) = &facts.powered_off {
        annotations["pod-reaper.io/powered-off"] = json!(answer);
    }
    let set = |wanted: &str| {
        let of_taint = |(place, set): &(Place, Option<Timestamp>)| {
            set.filter(|_| place.key() == ("taint", wanted)).map(time)
        };
        node.fences.iter().find_map(of_taint)
    };
    let taint = |(key, value): &(String, String)| json!({"key": key, "value": value, "effect": "NoSchedule", "timeAdded": set(key)});
    let mut taints = node.taints.iter().map(taint).collect::<Vec<_>>();
    if node.reserved {
        taints
            .push(json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}));
    }
    let tainted = |key: &str, effect: &str, since: String| json!({"key": format!("node.kubernetes.io/{key}"), "effect": effect, "timeAdded": since});
    if let Some(since) = facts.tainted_since {
        let key = if facts.ready == Ready::False {
            "not-ready"
        } else {
            "unreachable"
        };
        // The other ones say nothing: a restart of the controller manager renews the first, and the second is of memory.
        let renewed = "2026-01-31T03:00:00Z".to_owned();
        taints.extend([
            tainted(key, "NoSchedule", time(since)),
            tainted(key, "NoExecute", renewed.clone()),
            tainted("memory-pressure", "NoSchedule", renewed),
        ]);
    }
    // Who writes the rest of the node writes all the time, and owns no report.
    let mut written = vec![entry(
        "kube-controller-manager",
        now,
        &json!({"f:spec": {"f:taints": {}}}),
    )];
    let mut conditions = vec![json!({"type": "MemoryPressure", "status": "Unknown"})];
    for beat in &node.beats {
        let by_itself = time(beat.said());
        let owned = match beat.by {
            Reporter::Virt => {
                annotations[HEARTBEAT] = json!(by_itself);
                json!({"f:metadata": {"f:annotations": {format!("f:{HEARTBEAT}"): {}}}})
            }
            Reporter::Problem(kind) | Reporter::Others(kind) => {
                conditions.push(json!({
                    "type": kind,
                    "status": "False",
                    "lastHeartbeatTime": by_itself,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }));
                let key = format!(r#"k:{{"type":"{kind}"}}"#);
                // Whoever owns another field of it has not reported.
                written.push(entry(
                    "another",
                    now,
                    &json!({"f:status": {"f:conditions": {&key: {"f:message": {}}}}}),
                ));
                json!({"f:status": {"f:conditions": {key: {"f:lastHeartbeatTime": {}, "f:status": {}}}}})
            }
        };
        if beat.stamped.is_some() {
            written.push(entry("reporter", beat.at, &owned));
            // An earlier manager of the same field.
            written.push(entry(
                "before",
                beat.at - SignedDuration::from_hours(9),
                &owned,
            ));
        }
    }
    for (place, set) in &node.fences {
        let fields = match place.key() {
            ("label", key) => json!({"f:labels": {format!("f:{key}"): {}}}),
            ("annotation", key) => json!({"f:annotations": {format!("f:{key}"): {}}}),
            _ => continue,
        };
        written.extend(set.map(|set| entry("somebody", set, &json!({"f:metadata": fields}))));
    }
    let doubtful = node.doubtful && facts.ready == Ready::Unknown;
    if facts.ready != Ready::Absent {
        let ready = json!({
            "type": "Ready",
            "status": if doubtful { "malformed" } else { facts.ready.as_str() },
            "reason": facts.ready_reason,
            "lastTransitionTime": facts.ready_since.map(time),
            "lastHeartbeatTime": time(now),
        });
        conditions.push(ready);
        let owned = json!({"f:lastHeartbeatTime": {}, "f:lastTransitionTime": {}, "f:status": {}});
        written.push(entry(
            "kubelet",
            now,
            &json!({"f:status": {"f:conditions": {r#"k:{"type":"Ready"}"#: owned}}}),
        ));
    }
    let machine = if node.machine { "4c4c4544" } else { "" };
    json!({
        "kind": "Node",
        "shows": doubtful.then_some("Ready,Doubtful"),
        "metadata": {
            "name": facts.name,
            "uid": facts.uid,
            "creationTimestamp": facts.created.map(time),
            "labels": labels,
            "annotations": annotations,
            "managedFields": written,
        },
        "spec": {"taints": taints, "unschedulable": node.cordoned, "providerID": node.provider},
        "status": {
            "conditions": conditions,
            "nodeInfo": {"kubeletVersion": node.version, "machineID": machine, "systemUUID": machine},
        },
    })
}

fn entry(manager: &str, at: Timestamp, fields: &Value) -> Value {
    json!({"manager": manager, "operation": "Update", "time": time(at), "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn skip(skip: Skip, labels: &mut Value, annotations: &mut Value) {
    for (value, of) in [(skip.label, labels), (skip.annotation, annotations)] {
        if let Some(value) = value {
            of["pod-reaper.io/skip"] = json!(value);
        }
    }
}

fn lease(lease: &Lease, holder: &str, named: &Value) -> Value {
    let stamp = lease
        .stamped()
        .map(|at| json!({"time": time(at), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}));
    let stamps = stamp.map(|stamp| vec![stamp]);
    let metadata = json!({"creationTimestamp": time(made()), "managedFields": stamps});
    json!({
        "kind": "Lease",
        "metadata": with(named.clone(), metadata),
        "spec": {"renewTime": lease.said().map(time), "leaseDurationSeconds": lease.duration, "holderIdentity": holder},
    })
}

pub fn pod(pod: &Pod) -> Value {
    let facts = &pod.facts;
    let volumes = facts.claims.iter().flat_map(|claim| {
        let (claim, ephemeral) = claim.named();
        // A generic ephemeral volume's claim is named after pod and volume.
        let name = claim
            .strip_prefix(&format!("{}-", facts.name))
            .unwrap_or_default();
        let made = || json!({"name": name, "ephemeral": {"volumeClaimTemplate": {}}});
        let named = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        match (ephemeral, pod.names_its_own) {
            (true, _) => vec![made()],
            (false, true) => vec![made(), named],
            (false, false) => vec![named],
        }
    });
    // One that is only read is shared by all.
    let own = match &facts.own_disk {
        Some(disk) => json!({"name": "own", (disk): {"lun": 0}}),
        None => json!({"name": "own", "iscsi": {"readOnly": true}}),
    };
    let volumes = volumes
        .chain([json!({"name": "token", "projected": {}}), own])
        .collect::<Vec<_>>();
    // The mark of a Kosmos pod is none here: inside of a leaf cluster, ordinary pods carry it too.
    let (mut labels, mut annotations) = (json!({"kosmos-io/pod": "true"}), json!({}));
    skip(pod.skip, &mut labels, &mut annotations);
    if let Some(hash) = pod.template {
        labels["pod-template-hash"] = json!(hash);
    }
    if facts.indexed {
        labels["apps.kubernetes.io/pod-index"] = json!("0");
    }
    if facts.mirror {
        annotations["kubernetes.io/config.mirror"] = json!("hash");
    }
    if let Some(text) = &facts.after_reap {
        annotations["pod-reaper.io/after-reap"] = json!(text);
    }
    if let Some(answer) = &facts.reap {
        annotations["pod-reaper.io/reap"] = json!(answer);
    }
    let owner = facts.owner.iter().map(|owner| {
        let mut reference = json!({"kind": owner.kind, "name": owner.name});
        if let Some(controller) = &facts.controller {
            reference["controller"] = json!(true);
            reference["apiVersion"] = json!(controller.api_version);
            reference["uid"] = json!(controller.uid);
        }
        reference
    });
    let (deadline, grace) = if pod.terminating {
        (Some(time(facts.deletion_deadline)), facts.grace_seconds)
    } else {
        (None, None)
    };
    let looks = pod.looks;
    let written = pod
        .word
        .map(|(manager, at)| entry(manager, at, &json!({"f:metadata": {}})));
    json!({
        "kind": "Pod",
        "shows": looks.shows,
        "metadata": {
            "namespace": facts.namespace,
            "name": facts.name,
            "uid": facts.uid,
            "resourceVersion": facts.resource_version,
            "creationTimestamp": facts.created.map(time),
            "labels": labels,
            "annotations": annotations,
            "finalizers": facts.finalizers,
            "ownerReferences": owner.collect::<Vec<_>>(),
            "managedFields": written.as_slice(),
            "deletionTimestamp": deadline,
            "deletionGracePeriodSeconds": grace,
        },
        "spec": {"nodeName": facts.node, "volumes": volumes},
        "status": {
            "phase": if facts.finished { looks.finished } else { looks.phase },
            "reason": looks.reason,
        },
    })
}

pub fn claim((namespace, name): &Key, claim: &Claim) -> Value {
    let owner = |uid: &Uid| json!({"kind": "Pod", "name": "owner", "uid": uid, "controller": true});
    let owners = claim.owners.iter().map(owner).collect::<Vec<_>>();
    let mut labels = json!({});
    let mut annotations =
        json!({"pod-reaper.io/scratch": claim.scratch, "pod-reaper.io/give-up": claim.give_up});
    // An annotation has a value: the API server knows no null there.
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.retain(|_, value| !value.is_null());
    }
    skip(claim.skip, &mut labels, &mut annotations);
    let more = json!({
        "metadata": {"uid": claim.uid, "ownerReferences": owners, "resourceVersion": claim.version,
            "creationTimestamp": claim.created.map(time), "labels": labels, "annotations": annotations,
            "deletionTimestamp": claim.terminating.then(|| time(made())), "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {
            "volumeName": claim.volume,
            "accessModes": [if claim.many_writers { "ReadWriteMany" } else { "ReadWriteOnce" }],
            "volumeMode": if claim.block { "Block" } else { "Filesystem" },
        },
        "status": {"phase": claim.phase},
    });
    with(samples::claim(namespace, name, ""), more)
}

pub fn set(namespace: &str, set: &Set) -> Value {
    let templates = set.templates.iter().map(String::as_str).collect::<Vec<_>>();
    let spec = json!({"replicas": set.replicas, "ordinals": {"start": set.start}});
    let more = json!({"metadata": {"uid": "uid-of-owner"}, "spec": spec});
    with(samples::set(namespace, SET, &templates), more)
}

pub fn volume(
    Volume {
        facts: volume,
        csi,
        modes,
    }: &Volume,
) -> Value {
    let requirement = |Requirement {
                           key,
                           operator,
                           values,
                       }: &Requirement| json!({"key": key, "operator": operator, "values": values});
    let term = |term: &AffinityTerm| {
        let expressions = term
            .requirements
            .iter()
            .map(requirement)
            .collect::<Vec<_>>();
        let field = json!({"key": "metadata.name", "operator": "NotIn", "values": ["n0"]});
        json!({"matchExpressions": expressions, "matchFields": term.fields.then(|| vec![field])})
    };
    let terms = volume.affinity.iter().map(term).collect::<Vec<_>>();
    let [access, mode, fs] = modes;
    let mut spec = json!({"persistentVolumeReclaimPolicy": volume.reclaim_policy,
        "accessModes": access.split('+').collect::<Vec<_>>(), "volumeMode": mode});
    // The same words of other drivers, and other words of Longhorn's, bind nothing.
    let strict = volume.storage == Storage::StrictLocal || *csi != "driver.longhorn.io";
    let locality = if strict {
        "strict-local"
    } else {
        "best-effort"
    };
    match (&volume.storage, volume.disk) {
        (Storage::Local(path), _) => spec["local"] = json!({"path": path}),
        (Storage::HostPath(path), _) => spec["hostPath"] = json!({"path": path}),
        (_, Some(disk)) => spec[disk] = json!({"lun": 0}),
        (_, None) if csi.is_empty() => spec["iscsi"] = json!({"lun": 0, "readOnly": true}),
        (_, None) => {
            spec["csi"] = json!({"driver": csi, "fsType": fs, "volumeAttributes": {"dataLocality": locality}});
        }
    }
    if !terms.is_empty() {
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    samples::volume(&volume.name, &spec)
}

pub fn attachment(node: &str, attachment: &Attachment) -> Value {
    json!({
        "kind": "VolumeAttachment",
        "metadata": {"name": attachment.name},
        "spec": {
            "attacher": "csi.example",
            "nodeName": node,
            "source": {"persistentVolumeName": attachment.volume},
        },
    })
}

pub fn driver(name: &str, attaches: Option<bool>) -> Value {
    json!({"kind": "CSIDriver", "metadata": {"name": name}, "spec": {"attachRequired": attaches}})
}

pub fn namespace(name: &str, Namespace { skip, deleted }: Namespace) -> Value {
    let (mut labels, mut annotations) = (json!({"kubernetes.io/metadata.name": name}), json!({}));
    self::skip(skip, &mut labels, &mut annotations);
    let deleted = deleted.then(|| time(made()));
    let metadata =
        json!({"labels": labels, "annotations": annotations, "deletionTimestamp": deleted});
    with(samples::namespace(name), json!({"metadata": metadata}))
}

fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
