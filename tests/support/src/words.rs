//! A cluster in words: the one vocabulary of all tests, whether for a snapshot or the simulated server
//! ([`samples`](crate::samples)), or for a real server ([`objects`](crate::objects)).
//!
//! ```yaml
//! Node ds05: {ready: 'True'}
//! Node ds06: {}
//! Pod shop/db-0: {node: ds06, uses: data, metadata: {finalizers: [example.org/hold]}}
//! PersistentVolumeClaim shop/data: {volume: pv-data}
//! PersistentVolume pv-data: null
//! ```
//!
//! Each entry is `Kind name` or `Kind namespace/name`, with a mapping. It makes an object of its kind with all that the program
//! reads, over which the fields of the mapping are laid; lists are replaced. An entry that is null makes no object. The words
//! below stand for what takes many fields; what is neither a word nor a field is refused. Times are in seconds before the
//! current one.
//!
//! - `Node`: a NotReady node.
//!   - `ready`: another status than Unknown, or null for no condition.
//!   - `since`: when the condition changed: 2 hours ago, or a day ago if it is True.
//!   - `renewed`: when the node's Lease was renewed: 3 seconds ago if the node is ready, or else 40 seconds before it failed.
//!   - `says`: when the Lease says that it was renewed, if the node's clock is wrong.
//!   - `lease`: null if the node has no Lease. An entry `Lease NODE` replaces it.
//!   - `detects`: a condition that a detector wrote a minute ago.
//! - `Pod`: a Terminating pod.
//!   - `node`: another node than the usual, or null for none.
//!   - `grace`: the grace period of its deletion, which is 1 second, or null if the pod is not deleted.
//!   - `overdue`: when the pod should have been gone, whatever its grace. A real server calculates that itself and accepts no
//!     such time.
//!   - `tolerates`: for how many seconds it tolerates a node that is NotReady, which is 300, or null for any time.
//!   - `owner`: its controller, as `Kind name`, or null for none. A pod whose name ends with a number is of the StatefulSet
//!     that is called so.
//!   - `uses`: the name of a PVC. `ephemeral`: the name of an ephemeral volume. `volume`: the spec of a PersistentVolume, which
//!     the entry also makes, as well as the PVC, both with the pod's name.
//!   - `phase`: another than Running. Its kubelet has started it at the time 0, unless it is Pending.
//! - `PersistentVolumeClaim`: one that names no volume.
//!   - `volume`: the volume that it names.
//!   - `phase`: another than Bound, or Pending if it names no volume.
//! - `PersistentVolume`: one of a CSI driver, unless its spec has another source.
//!   - `claim`: the PVC that it is bound to, `namespace/name`, which the entry also makes.
//!   - `on`: the only host that can mount it.
//! - `Lease`: that of a NotReady node, or one of another namespace, which was renewed just now.
//!   - `holder`: who holds it, else whoever is called as it is.
//!   - `renewed`, `says`: as of a node.
//! - `VolumeAttachment`: of a `volume` on a `node`, which is the usual.
//! - `Namespace`, `StatefulSet`, and other kinds: without words. Only a snapshot and the simulated server know the others.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::samples::with;

/// The usual values in the place where the words are used. They are the only difference between simulated and real servers.
#[derive(Clone, Copy)]
pub struct Usual {
    pub now: fn() -> Timestamp,
    /// How many seconds ago the pods were deleted.
    pub deleted: i64,
    /// The namespace of an entry that names none.
    pub namespace: &'static str,
    pub node: &'static str,
}

/// One entry, and the objects that it makes: first those on which its own object depends, then its own object.
pub struct Entry {
    pub key: String,
    pub objects: Vec<Value>,
}

impl Usual {
    /// Returns the objects of the described cluster.
    pub fn objects(self, described: &Value) -> Vec<Value> {
        let entries = self.entries(described);
        entries.flat_map(|entry| entry.objects).collect()
    }

    /// Returns the entries one by one, because time passes between them on a real server.
    pub fn entries(self, described: &Value) -> impl Iterator<Item = Entry> {
        let described = described.as_object().expect("a mapping");
        let has = |key: &str| described.contains_key(key);
        let entries = described.iter().filter(|(_, more)| !more.is_null());
        entries.map(move |(key, more)| {
            let mut objects = self.entry(key, more);
            // An entry takes precedence over an equal object that another entry also makes.
            let own = objects.pop().expect("its own");
            objects.retain(|other| !has(&key_of(other)));
            objects.push(own);
            let key = key.clone();
            Entry { key, objects }
        })
    }

    fn entry(self, key: &str, more: &Value) -> Vec<Value> {
        let (kind, name) = key.split_once(' ').expect("a kind and a name");
        let (space, name) = match name.split_once('/') {
            Some((space, name)) => (Some(space), name),
            None => (None, name),
        };
        let said = Said {
            usual: self,
            kind,
            space: space.unwrap_or(self.namespace),
            name,
            words: more.as_object().cloned().unwrap_or_default(),
        };
        match kind {
            "Node" => said.node(),
            "Pod" => said.pod(),
            "PersistentVolume" => said.volume(),
            "PersistentVolumeClaim" => vec![said.claim()],
            "Lease" => vec![match space {
                Some(space) => said.lease(space, 0),
                None => said.lease(NODE_LEASES, FAILED + 40),
            }],
            "VolumeAttachment" => vec![said.attachment()],
            "Namespace" => vec![said.laid_over(json!({"metadata": {"name": name}}))],
            _ => {
                let space = space.or((kind == "StatefulSet").then_some(said.space));
                let metadata =
                    json!({"namespace": space, "name": name, "uid": format!("uid-of-{name}")});
                vec![said.laid_over(json!({ "metadata": metadata }))]
            }
        }
    }

    /// The time this many seconds ago, as the API writes it.
    pub fn ago(self, seconds: i64) -> String {
        let moment = (self.now)() - SignedDuration::from_secs(seconds);
        moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

const NODE_LEASES: &str = "kube-node-lease";

/// The times in an object, in seconds before now: when a node failed, and when all objects were created.
const FAILED: i64 = 2 * 3_600;
const DAY: i64 = 86_400;
const MADE: i64 = 30 * DAY + 3 * 3_600;

/// The key of the entry that would make this object.
fn key_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().expect("it has it");
    let kind = object["kind"].as_str().expect("it has one");
    match kind {
        "Lease" => format!("Lease {}", text("name")),
        "PersistentVolumeClaim" => format!("{kind} {}/{}", text("namespace"), text("name")),
        _ => format!("{kind} {}", text("name")),
    }
}

/// The description of one object.
struct Said<'a> {
    usual: Usual,
    kind: &'a str,
    space: &'a str,
    name: &'a str,
    words: Map<String, Value>,
}

impl Said<'_> {
    fn word(&mut self, word: &str) -> Option<Value> {
        self.words.remove(word)
    }

    fn text(&mut self, word: &str) -> Option<String> {
        let said = self.word(word)?;
        Some(said.as_str().expect("a text").to_owned())
    }

    fn seconds(&mut self, word: &str, usual: i64) -> i64 {
        let seconds = self.word(word);
        seconds.map_or(usual, |seconds| seconds.as_i64().expect("a number"))
    }

    /// Returns the object: the described fields, laid over the usual ones.
    fn laid_over(self, usual: Value) -> Value {
        let has = |field: &str| FIELDS.contains(&field);
        if let Some(unknown) = self.words.keys().find(|field| !has(field)) {
            panic!(
                "{} {}: {unknown} is neither a word nor a field",
                self.kind, self.name
            );
        }
        let mut object = json!({ "kind": self.kind });
        if ["Node", "Pod", "PersistentVolume", "PersistentVolumeClaim"].contains(&self.kind) {
            object["metadata"]["creationTimestamp"] = json!(self.usual.ago(MADE));
        }
        with(with(object, usual), Value::Object(self.words))
    }

    /// The node, with the taints that the node controller adds for its condition.
    fn node(mut self) -> Vec<Value> {
        let (usual, name) = (self.usual, self.name);
        let ready = self.word("ready").unwrap_or(json!("Unknown"));
        let (reason, taint) = match ready.as_str() {
            Some("True") => ("KubeletReady", None),
            Some("False") => ("KubeletNotReady", Some("not-ready")),
            _ => ("NodeStatusUnknown", Some("unreachable")),
        };
        let since = self.seconds("since", if taint.is_some() { FAILED } else { DAY });
        let renewed = self.seconds("renewed", if taint.is_some() { since + 40 } else { 3 });
        let says = self.seconds("says", renewed);
        let has_lease = self.word("lease").is_none();
        let detects = self.text("detects");
        let ready = ready.as_str();
        let ready = ready.map(|ready| condition("Ready", ready, reason, &usual.ago(since)));
        let detected =
            detects.map(|kind| condition(&kind, "False", "AsItShouldBe", &usual.ago(60)));
        let conditions = ready.into_iter().chain(detected).collect::<Value>();
        let mut node = self.laid_over(json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"kubernetes.io/hostname": name}},
            "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.34.0"}},
        }));
        for effect in ["NoSchedule", "NoExecute"] {
            let taint = taint.map(
                |taint| json!({"key": format!("node.kubernetes.io/{taint}"), "effect": effect}),
            );
            push(&mut node, "spec", "taints", taint);
        }
        let lease = has_lease.then(|| lease(usual, (NODE_LEASES, name), name, (says, renewed)));
        lease.into_iter().chain([node]).collect()
    }

    fn pod(mut self) -> Vec<Value> {
        let (usual, space, name) = (self.usual, self.space, self.name);
        let node = self.word("node").unwrap_or(json!(usual.node));
        assert!(!node.is_boolean(), "{name}: to YAML, its node is a boolean");
        let grace = self.word("grace").unwrap_or(json!(1));
        let overdue = self.word("overdue");
        let phase = self.word("phase").unwrap_or(json!("Running"));
        let tolerates = self.word("tolerates");
        let owner = match self.word("owner") {
            Some(owner) => owner.as_str().map(str::to_owned),
            None => set_of(name).map(|set| format!("StatefulSet {set}")),
        };
        let uses = self.text("uses");
        let ephemeral = self.text("ephemeral");
        let of_its_own = self.word("volume");
        let mut metadata = json!({"namespace": space, "name": name, "uid": format!("uid-{space}-{name}"),
            "resourceVersion": "7"});
        if let Some(grace) = grace.as_i64() {
            let overdue = overdue.map_or(usual.deleted - grace, |overdue| {
                overdue.as_i64().expect("a number")
            });
            metadata["deletionTimestamp"] = json!(usual.ago(overdue));
            metadata["deletionGracePeriodSeconds"] = json!(grace);
        }
        if let Some(owner) = owner {
            metadata["ownerReferences"] = json!([owned_by(&owner)]);
        }
        let spec = if node.is_null() {
            json!({})
        } else {
            json!({ "nodeName": node })
        };
        let mut status = json!({"phase": phase});
        if phase != "Pending" {
            status["startTime"] = json!("1970-01-01T00:00:00Z");
        }
        let mut pod = self.laid_over(json!({"metadata": metadata, "spec": spec, "status": status}));
        let claim = uses.or_else(|| of_its_own.is_some().then(|| name.to_owned()));
        let claim = claim
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
        let ephemeral = ephemeral
            .map(|volume| json!({"name": volume, "ephemeral": {"volumeClaimTemplate": {}}}));
        let tolerations = tolerates.into_iter().flat_map(|seconds| {
            ["not-ready", "unreachable"].map(|taint| {
                json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": seconds})
            })
        });
        for toleration in tolerations {
            push(&mut pod, "spec", "tolerations", Some(toleration));
        }
        push(&mut pod, "spec", "volumes", claim);
        push(&mut pod, "spec", "volumes", ephemeral);
        let volume = of_its_own.map(|spec| {
            let more = json!({"claim": format!("{space}/{name}"), "spec": spec});
            usual.entry(&format!("PersistentVolume {name}"), &more)
        });
        let volume = volume.into_iter().flatten();
        volume.chain([pod]).collect()
    }

    fn volume(mut self) -> Vec<Value> {
        let (usual, name) = (self.usual, self.name);
        let (claim, host) = (self.text("claim"), self.text("on"));
        let mut spec =
            json!({"accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete"});
        let said = self.words.get("spec").and_then(Value::as_object);
        if !said.is_some_and(|said| said.keys().any(|field| SOURCES.contains(&field.as_str()))) {
            spec["csi"] = json!({"driver": "ceph", "volumeHandle": name});
        }
        if let Some(host) = host {
            spec["nodeAffinity"] = affinity(&host);
        }
        let phase = if claim.is_some() {
            "Bound"
        } else {
            "Available"
        };
        let usually = json!({"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}});
        let mut volume = self.laid_over(usually);
        let claim = claim.map(|claim| {
            let spec = &volume["spec"];
            let mut modes = json!({"accessModes": spec["accessModes"]});
            if let Some(mode) = spec.get("volumeMode") {
                modes["volumeMode"] = mode.clone();
            }
            let more = json!({"volume": name, "spec": modes});
            usual
                .entry(&format!("PersistentVolumeClaim {claim}"), &more)
                .remove(0)
        });
        if let Some(claim) = &claim {
            let of = |field: &str| claim["metadata"][field].clone();
            let reference = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": of("namespace"), "name": of("name"), "uid": of("uid")});
            let given = volume["spec"]["claimRef"].take();
            volume["spec"]["claimRef"] = if given.is_null() {
                reference
            } else {
                with(reference, given)
            };
        }
        claim.into_iter().chain([volume]).collect()
    }

    fn claim(mut self) -> Value {
        let (space, name) = (self.space, self.name);
        let (volume, phase) = (self.text("volume"), self.word("phase"));
        let phase = phase.unwrap_or(json!(if volume.is_some() { "Bound" } else { "Pending" }));
        let mut spec = json!({"accessModes": ["ReadWriteOnce"]});
        if let Some(volume) = volume {
            spec["volumeName"] = json!(volume);
        }
        self.laid_over(json!({
            "metadata": {"namespace": space, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "5"},
            "spec": spec, "status": {"phase": phase},
        }))
    }

    fn lease(mut self, space: &str, renewed: i64) -> Value {
        let (usual, name) = (self.usual, self.name);
        let holder = self.text("holder").unwrap_or(name.to_owned());
        let renewed = self.seconds("renewed", renewed);
        let says = self.seconds("says", renewed);
        self.laid_over(lease(usual, (space, name), &holder, (says, renewed)))
    }

    fn attachment(mut self) -> Value {
        let node = self.text("node").unwrap_or(self.usual.node.to_owned());
        let volume = self.text("volume");
        let name = self.name;
        self.laid_over(json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node, "source": {"persistentVolumeName": volume}},
            "status": {"attached": true},
        }))
    }
}

/// The fields of every kind.
const FIELDS: [&str; 6] = ["apiVersion", "kind", "metadata", "spec", "status", "data"];

/// The fields of a volume's spec that say where it is stored, as far as tests use them.
const SOURCES: [&str; 5] = ["csi", "local", "hostPath", "nfs", "awsElasticBlockStore"];

pub(crate) fn condition(kind: &str, status: &str, reason: &str, at: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason,
        "lastTransitionTime": at, "lastHeartbeatTime": at})
}

/// A holder's Lease. The holder reports another renewal time than the API server.
fn lease(
    usual: Usual,
    (space, name): (&str, &str),
    holder: &str,
    (says, renewed): (i64, i64),
) -> Value {
    let says = usual.ago(says).replace('Z', ".000000Z");
    json!({
        "kind": "Lease",
        "metadata": {"namespace": space, "name": name,
            "managedFields": [{"manager": "kubelet", "operation": "Update", "time": usual.ago(renewed),
                "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 40, "renewTime": says},
    })
}

/// A controller, which need not exist.
fn owned_by(owner: &str) -> Value {
    let (kind, name) = owner.split_once(' ').expect("a kind and a name");
    let version = match kind {
        "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps/v1",
        "Job" => "batch/v1",
        _ => "example.org/v1",
    };
    json!({"apiVersion": version, "kind": kind, "name": name, "controller": true, "uid": format!("uid-of-{name}")})
}

/// The StatefulSet to which a pod of this name belongs.
fn set_of(pod: &str) -> Option<&str> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    ordinal.parse::<u32>().is_ok().then_some(set)
}

/// The node affinity of a volume that only one host can mount.
fn affinity(host: &str) -> Value {
    let requirement = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [host]});
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}})
}

/// Appends the item, if any, to a list of the object. The list may not exist yet.
fn push(object: &mut Value, field: &str, list: &str, item: Option<Value>) {
    let Some(item) = item else { return };
    let list = &mut object[field][list];
    if list.is_null() {
        *list = json!([]);
    }
    // A test of malformed objects may want another type here.
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
