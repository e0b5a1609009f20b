//! Realistic objects on a real API server, said in YAML: [`make`].
//!
//! A status, a deletion mark and the stamp of a lease's renewal need more than one request, because the server sets
//! them by its own rules.

use itertools::Itertools as _;
use std::thread;

use serde_json::{Map, Value, json};

use super::{
    ControlPlane,
    samples::{self, with, yaml},
};

/// A time in the past, as the API writes it.
pub fn seconds_ago(seconds: i64) -> String {
    let moment = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds);
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The same for a lease's `renewTime`, which requires microseconds.
fn micro_seconds_ago(seconds: i64) -> String {
    seconds_ago(seconds).replace('Z', ".000000Z")
}

/// Creates a namespace, unless it exists.
pub fn namespace(cluster: &ControlPlane, name: &str) {
    let body = samples::namespace(name);
    let (status, answer) = cluster.request("POST", "/api/v1/namespaces", Some(body));
    assert!(
        matches!(status, 201 | 409),
        "namespace {name}: {status} {}",
        answer["message"]
    );
}

/// Sets an annotation on the object at the path.
pub fn annotate(cluster: &ControlPlane, path: &str, key: &str, value: &str) {
    cluster.merge_patch(path, json!({"metadata": {"annotations": {key: value}}}));
}

/// Writes what is said of each object, by `Kind name` or `Kind namespace/name`, the namespace else being `apps`. Each is a
/// realistic sample of its kind with what is said laid over it, and is returned as the server has it. Some words are short for
/// what takes much:
///
/// - `Node`: it is silent, NotReady and not heard for an hour, or `since` so many seconds; `ready` is another status than
///   Unknown, or null for no condition. `renewed` is how many seconds ago its lease was renewed, and `says` what the lease says
///   of that, where the node's clock is wrong; `lease: null` is none. `detects` is a condition that a detector wrote a minute ago.
/// - `Pod`: it is stuck on `dead`, or another `node`, or none where that is null; deleted with `grace` seconds, which is 1, or
///   not at all where that is null. `owner` is `Kind name`. It mounts the claim that it `uses`, an `ephemeral` volume, or
///   a claim of its own name that is bound to a `volume`. `phase` is another than Running.
/// - `PersistentVolume`: bound to a `claim`, `namespace/name`, and usable `on` one host alone.
/// - `PersistentVolumeClaim`: bound to a `volume`, if any, and of that `phase`.
/// - `Lease`: of a `holder` who `renewed` it so many seconds ago.
/// - `VolumeAttachment`: of a `volume`, on the node `dead` or another `node`.
/// - `StatefulSet` and `Namespace`.
pub fn make(cluster: &ControlPlane, said: &str) -> Vec<Value> {
    let said = yaml(said);
    let said = said.as_object().expect("a mapping").iter();
    let made = said.map(|(key, more)| {
        let (kind, name) = key.split_once(' ').expect("a kind and a name");
        let (space, name) = name.split_once('/').unwrap_or(("apps", name));
        let words = more.as_object().cloned().unwrap_or_default();
        Said {
            cluster,
            space,
            name,
            words,
        }
        .make(kind)
    });
    made.collect()
}

/// Writes one pod, by name or `namespace/name`, as [`make`] does. Returns its UID.
pub fn pod(cluster: &ControlPlane, said: &str) -> String {
    uid(&make(cluster, &format!("Pod {said}"))[0])
}

/// What is said of one object.
struct Said<'a> {
    cluster: &'a ControlPlane,
    space: &'a str,
    name: &'a str,
    words: Map<String, Value>,
}

impl Said<'_> {
    fn make(mut self, kind: &str) -> Value {
        let (cluster, space, name) = (self.cluster, self.space, self.name);
        let namespaced = |group: &str, plural: &str| {
            namespace(cluster, space);
            format!("/{group}/namespaces/{space}/{plural}")
        };
        match kind {
            "Node" => self.node(),
            "Pod" => self.pod(&namespaced("api/v1", "pods")),
            "PersistentVolume" => self.volume(),
            "PersistentVolumeClaim" => {
                let (volume, phase) = (self.text("volume"), self.word("phase"));
                let usual = format!(
                    "{{metadata: {{name: '{name}'}}, spec: {}}}",
                    claim_spec(volume.as_deref().unwrap_or("null"))
                );
                let collection = namespaced("api/v1", "persistentvolumeclaims");
                cluster.create(&collection, self.laid_over(&usual));
                cluster.patch_status(&format!("{collection}/{name}"), json!({"phase": phase}))
            }
            "Lease" => {
                let holder = self.text("holder").expect("who holds it");
                let renewed = self.seconds("renewed", 0);
                create_lease(cluster, (space, name), &holder, (renewed, renewed))
            }
            "VolumeAttachment" => {
                let node = self.text("node").unwrap_or("dead".to_owned());
                let volume = self.text("volume").expect("a volume");
                let usual = format!(
                    "{{metadata: {{name: '{name}'}}, spec: {{attacher: csi.example.org, nodeName: {node},
                    source: {{persistentVolumeName: {volume}}}}}}}"
                );
                let collection = "/apis/storage.k8s.io/v1/volumeattachments";
                cluster.create(collection, yaml(&usual));
                cluster.patch_status(&format!("{collection}/{name}"), yaml("{attached: true}"))
            }
            "StatefulSet" => {
                let usual = stateful_set_of(name).to_string();
                let collection = namespaced("apis/apps/v1", "statefulsets");
                cluster.create(&collection, self.laid_over(&usual))
            }
            "Namespace" => {
                let usual = format!("metadata: {{name: '{name}'}}");
                cluster.create("/api/v1/namespaces", self.laid_over(&usual))
            }
            kind => panic!("{kind} {name}: no such kind is known"),
        }
    }

    fn word(&mut self, word: &str) -> Option<Value> {
        self.words.remove(word)
    }

    fn text(&mut self, word: &str) -> Option<String> {
        Some(self.word(word)?.as_str()?.to_owned())
    }

    fn seconds(&mut self, word: &str, usual: i64) -> i64 {
        let seconds = self.word(word);
        seconds.map_or(usual, |seconds| seconds.as_i64().expect("a number"))
    }

    /// What is said besides the words, laid over what is usual.
    fn laid_over(self, usual: &str) -> Value {
        with(yaml(usual), Value::Object(self.words))
    }

    /// With the taints that the node controller gives for its condition.
    fn node(mut self) -> Value {
        let (cluster, name) = (self.cluster, self.name);
        let ready = self.word("ready").unwrap_or(json!("Unknown"));
        let (reason, taint) = match ready.as_str() {
            Some("True") => ("KubeletReady", None),
            Some("False") => ("KubeletNotReady", Some("not-ready")),
            _ => ("NodeStatusUnknown", Some("unreachable")),
        };
        let since = self.seconds("since", if taint.is_some() { 3_600 } else { 86_400 });
        let renewed = self.seconds("renewed", if taint.is_some() { since } else { 3 });
        let says = self.seconds("says", renewed);
        let has_lease = self.word("lease").is_none();
        let detects = self.text("detects");
        let ready = ready.as_str();
        let ready = ready.map(|ready| condition("Ready", ready, reason, since));
        let detected = detects.map(|kind| condition(&kind, "False", "AsItShouldBe", 60));
        let conditions = ready.into_iter().chain(detected).collect::<Value>();
        let mut object = self.laid_over(&format!(
            "
            metadata: {{name: '{name}', labels: {{kubernetes.io/hostname: '{name}', kubernetes.io/os: linux}}}}
            status: {{capacity: {{cpu: '8', memory: 32Gi, pods: '110'}}, conditions: {conditions}}}
            "
        ));
        for effect in ["NoSchedule", "NoExecute"] {
            let taint =
                taint.map(|taint| format!("{{key: node.kubernetes.io/{taint}, effect: {effect}}}"));
            push(&mut object["spec"]["taints"], taint);
        }
        let taints = object["spec"]["taints"].clone();
        cluster.create("/api/v1/nodes", object);
        if has_lease {
            create_lease(cluster, ("kube-node-lease", name), name, (says, renewed));
        }
        // Admission taints every new node as not ready.
        cluster.merge_patch(&node_path(name), json!({"spec": {"taints": taints}}))
    }

    /// No kubelet confirms its deletion, so it stays. It is overdue when its grace has passed: the server computes the deadline,
    /// and no request can set one in the past. With a grace of 0, and where it has no node or has finished, it stays only where
    /// a finalizer holds it.
    fn pod(mut self, collection: &str) -> Value {
        let (cluster, space, name) = (self.cluster, self.space, self.name);
        let node = self.word("node").unwrap_or(json!("dead"));
        let grace = self.word("grace").unwrap_or(json!(1));
        let phase = self.word("phase").unwrap_or(json!("Running"));
        let owner = self.text("owner");
        let mut uses = self.text("uses");
        if let Some(spec) = self.word("volume") {
            let volume =
                format!("PersistentVolume {name}: {{claim: {space}/{name}, spec: {spec}}}");
            make(cluster, &volume);
            uses = Some(name.to_owned());
        }
        let uses = uses.map(|claim| {
            format!("{{name: {claim}, persistentVolumeClaim: {{claimName: {claim}}}}}")
        });
        let ephemeral = self.text("ephemeral").map(|volume| {
            let template = format!("{{spec: {}}}", claim_spec("null"));
            format!("{{name: {volume}, ephemeral: {{volumeClaimTemplate: {template}}}}}")
        });
        let mut object = self.laid_over(&format!(
            "
            metadata: {{name: '{name}'}}
            spec: {{nodeName: {node}, containers: [{{name: main, image: 'example/main:1'}}]}}
            "
        ));
        let owner = owner.map(|owner| owner_of(cluster, space, &owner));
        push(&mut object["metadata"]["ownerReferences"], owner);
        push(&mut object["spec"]["volumes"], uses);
        push(&mut object["spec"]["volumes"], ephemeral);
        cluster.create(collection, object);
        let path = format!("{collection}/{name}");
        let status = json!({"phase": phase, "startTime": seconds_ago(86_400)});
        let lives = cluster.patch_status(&path, status);
        if grace.is_null() {
            return lives;
        }
        cluster.delete(&path, json!({"gracePeriodSeconds": grace}));
        cluster.get(&path)
    }

    /// With its claim.
    fn volume(mut self) -> Value {
        let (cluster, name) = (self.cluster, self.name);
        let (claim, host) = (self.text("claim"), self.text("on"));
        let mut object = self.laid_over(&format!(
            "
            metadata: {{name: '{name}'}}
            spec: {{capacity: {{storage: 1Gi}}, accessModes: [ReadWriteOnce], storageClassName: test,
                persistentVolumeReclaimPolicy: Retain}}
            "
        ));
        let spec = &mut object["spec"];
        if let Some(host) = host {
            spec["nodeAffinity"] = samples::directory(name, &host)["spec"]["nodeAffinity"].take();
        }
        let phase = if claim.is_some() {
            "Bound"
        } else {
            "Available"
        };
        if let Some(claim) = claim {
            let (modes, mode) = (&spec["accessModes"], &spec["volumeMode"]);
            let bound = format!(
                "PersistentVolumeClaim {claim}: {{volume: {name}, phase: Bound,
                spec: {{accessModes: {modes}, volumeMode: {mode}}}}}"
            );
            let metadata = make(cluster, &bound)[0]["metadata"].take();
            spec["claimRef"] = yaml("{apiVersion: v1, kind: PersistentVolumeClaim}");
            for field in ["namespace", "name", "uid"] {
                spec["claimRef"][field] = metadata[field].clone();
            }
        }
        cluster.create("/api/v1/persistentvolumes", object);
        let path = format!("/api/v1/persistentvolumes/{name}");
        cluster.patch_status(&path, json!({"phase": phase}))
    }
}

/// A controller, which need not exist, since no garbage collector runs here. A StatefulSet that does is meant.
fn owner_of(cluster: &ControlPlane, space: &str, owner: &str) -> String {
    let (kind, name) = owner.split_once(' ').expect("a kind and a name");
    let version = match kind {
        "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps/v1",
        "Job" => "batch/v1",
        _ => "example.org/v1",
    };
    let path = format!("/apis/apps/v1/namespaces/{space}/statefulsets/{name}");
    let set = cluster.try_get(&path).filter(|_| kind == "StatefulSet");
    let absent = "00000000-0000-4000-8000-000000000000".to_owned();
    let uid = set.map_or(absent, |set| uid(&set));
    format!("{{apiVersion: {version}, kind: {kind}, name: '{name}', controller: true, uid: {uid}}}")
}

/// The items of a list.
#[track_caller]
pub fn each(items: &Value) -> std::slice::Iter<'_, Value> {
    let list = items.as_array();
    list.unwrap_or_else(|| panic!("it is no list: {items}"))
        .iter()
}

/// What is written there.
#[track_caller]
pub fn str_of(text: &Value) -> &str {
    let said = text.as_str();
    said.unwrap_or_else(|| panic!("it is no text: {text}"))
}

pub fn uid(object: &Value) -> String {
    object["metadata"]["uid"]
        .as_str()
        .expect("a UID")
        .to_owned()
}

/// Where a node is found.
pub fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// Where the lease of a node is found.
pub fn lease_path(node: &str) -> String {
    path_of_lease(("kube-node-lease", node))
}

fn path_of_lease((namespace, name): (&str, &str)) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
}

/// Changes the Ready condition of an existing node, as of now.
pub fn node_becomes(cluster: &ControlPlane, name: &str, status: &str, reason: &str) -> Value {
    let condition = condition("Ready", status, reason, 0);
    cluster.patch_status(&node_path(name), json!({"conditions": [condition]}))
}

/// Renews the lease of a node now, by both clocks.
pub fn renew_lease(cluster: &ControlPlane, node: &str) -> Value {
    let path = format!("{}?fieldManager=kubelet", lease_path(node));
    cluster.merge_patch(&path, json!({"spec": {"renewTime": micro_seconds_ago(0)}}))
}

fn condition(kind: &str, status: &str, reason: &str, since: i64) -> Value {
    let at = seconds_ago(since);
    yaml(&format!(
        "{{type: {kind}, status: '{status}', reason: {reason}, message: as the test wants it,
        lastTransitionTime: '{at}', lastHeartbeatTime: '{at}'}}"
    ))
}

/// The server stamps each write with its own time in `managedFields`. It accepts an older stamp from a client only with
/// another change, and that change must leave no newer stamp behind. So a label is added and removed.
fn create_lease(
    cluster: &ControlPlane,
    (namespace, name): (&str, &str),
    holder: &str,
    (says, stamped): (i64, i64),
) -> Value {
    let more = format!(
        "
        metadata: {{namespace: '{namespace}', labels: {{passing: 'true'}}}}
        spec: {{holderIdentity: '{holder}', leaseDurationSeconds: 40, renewTime: '{}'}}
        ",
        micro_seconds_ago(says)
    );
    let object = with(samples::lease(name), yaml(&more));
    let path = path_of_lease((namespace, name));
    let collection = path.trim_end_matches(name).trim_end_matches('/');
    let mut object = cluster.create(&format!("{collection}?fieldManager=kubelet"), object);
    object["metadata"]["labels"] = Value::Null;
    object["metadata"]["managedFields"][0]["time"] = json!(seconds_ago(stamped));
    cluster.put(&format!("{path}?fieldManager=test"), object)
}

/// Where a pod is found.
pub fn pod_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

fn claim_spec(volume: &str) -> String {
    format!(
        "{{accessModes: [ReadWriteOnce], storageClassName: test, resources: {{requests: {{storage: 1Gi}}}}, volumeName: {volume}}}"
    )
}

/// A StatefulSet of one container, without a namespace.
pub fn stateful_set_of(name: &str) -> Value {
    yaml(&format!(
        "
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {{name: '{name}'}}
        spec:
            serviceName: '{name}'
            selector: {{matchLabels: {{app: '{name}'}}}}
            template:
                metadata: {{labels: {{app: '{name}'}}}}
                spec: {{containers: [{{name: main, image: 'example/main:1'}}]}}
        "
    ))
}

/// Calls `act` for each item, over so many connections at once.
pub fn in_parallel<T: Send, U: Send>(
    at_once: usize,
    items: impl Iterator<Item = T>,
    act: impl Fn(T) -> U + Sync,
) -> Vec<U> {
    let mut queues = (0..at_once).map(|_| Vec::new()).collect_vec();
    for (place, item) in items.enumerate() {
        queues[place % at_once].push(item);
    }
    thread::scope(|scope| {
        let act = &act;
        let builders = queues
            .into_iter()
            .map(|queue| scope.spawn(move || queue.into_iter().map(act).collect()));
        let builders = builders.collect::<Vec<thread::ScopedJoinHandle<'_, Vec<U>>>>();
        builders
            .into_iter()
            .flat_map(|builder| builder.join().expect("it says itself what is wrong"))
            .collect()
    })
}

/// Appends the item, if any, to a list that may not exist yet.
fn push(list: &mut Value, item: Option<String>) {
    let Some(item) = item else { return };
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("it is a list").push(yaml(&item));
}
