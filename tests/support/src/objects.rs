//! A described cluster on a real API server: [`make`], in the words of [`words`](crate::words).
//!
//! A status, a deletion timestamp and the stamp of a Lease's renewal need more than one request, because the server sets them by
//! its own rules.

use itertools::Itertools as _;
use std::thread;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    ControlPlane,
    samples::{with, yaml},
    words::{self, Usual},
};

/// The server calculates a pod's deadline from the time of the delete, so the deadline is always in the future.
const USUAL: Usual = Usual {
    now: Timestamp::now,
    deleted: 0,
    namespace: "apps",
    node: "dead",
};

/// A time in the past, as the API writes it.
pub fn seconds_ago(seconds: i64) -> String {
    USUAL.ago(seconds)
}

/// Creates a namespace, unless it exists.
pub fn namespace(cluster: &ControlPlane, name: &str) {
    let body = json!({"kind": "Namespace", "metadata": {"name": name}});
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

/// Writes the described objects, and their namespaces. Returns the object of each entry as the server has it.
pub fn make(cluster: &ControlPlane, described: &str) -> Vec<Value> {
    let described = yaml(described);
    let made = USUAL.entries(&described).map(|entry| {
        let overdue = &described[&entry.key]["overdue"];
        assert!(overdue.is_null(), "{}: the server decides that", entry.key);
        let objects = entry.objects.into_iter();
        let mut written = objects.map(|object| write(cluster, object)).collect_vec();
        written.pop().expect("its own")
    });
    made.collect()
}

/// Writes one pod, by name or `namespace/name`, as [`make`] does. Returns its UID.
pub fn pod(cluster: &ControlPlane, described: &str) -> String {
    uid(&make(cluster, &format!("Pod {described}"))[0])
}

/// Writes an object, including the fields that the server accepts only in a separate request.
fn write(cluster: &ControlPlane, mut object: Value) -> Value {
    let kind = str_of(&object["kind"]).to_owned();
    let (group, plural) = match kind.as_str() {
        "Node" => ("api/v1", "nodes"),
        "Namespace" => ("api/v1", "namespaces"),
        "Pod" => ("api/v1", "pods"),
        "PersistentVolume" => ("api/v1", "persistentvolumes"),
        "PersistentVolumeClaim" => ("api/v1", "persistentvolumeclaims"),
        "Lease" => ("apis/coordination.k8s.io/v1", "leases"),
        "StatefulSet" => ("apis/apps/v1", "statefulsets"),
        "VolumeAttachment" => ("apis/storage.k8s.io/v1", "volumeattachments"),
        _ => panic!("no such kind is known: {object}"),
    };
    let metadata = object["metadata"].as_object_mut().expect("it has it");
    // The server sets these fields.
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(field);
    }
    let is_deleted = metadata
        .remove("deletionTimestamp")
        .is_some_and(|deadline| !deadline.is_null());
    let grace = metadata.remove("deletionGracePeriodSeconds");
    let name = str_of(&metadata["name"]).to_owned();
    let collection = match metadata.get("namespace") {
        Some(space) => {
            let space = str_of(space);
            if space != "kube-node-lease" {
                namespace(cluster, space);
            }
            format!("/{group}/namespaces/{space}/{plural}")
        }
        None => format!("/{group}/{plural}"),
    };
    let path = format!("{collection}/{name}");
    object = with(required(&kind, &name), object);
    match kind.as_str() {
        "Node" => {
            let taints = object["spec"]["taints"].clone();
            cluster.create(&collection, object);
            // Admission taints every new node as not ready.
            return cluster.merge_patch(&path, json!({"spec": {"taints": taints}}));
        }
        "Lease" => return write_lease(cluster, &collection, object),
        "Pod" => {
            knows_its_sets(cluster, &mut object);
            for volume in object["spec"]["volumes"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                if let Some(ephemeral) = volume.get_mut("ephemeral") {
                    let of_a_claim = required("PersistentVolumeClaim", "");
                    *ephemeral = with(
                        json!({ "volumeClaimTemplate": of_a_claim }),
                        ephemeral.take(),
                    );
                }
            }
        }
        "PersistentVolume" => knows_its_claim(cluster, &mut object),
        _ => {}
    }
    let status = object["status"].take();
    let made = cluster.create(&collection, object);
    if status.is_null() {
        return made;
    }
    let made = cluster.patch_status(&path, status);
    if !is_deleted {
        return made;
    }
    // No kubelet confirms the deletion, so the pod stays. If the grace period is 0, or if the pod has no node or has finished,
    // the pod stays only if a finalizer blocks its deletion.
    cluster.delete(&path, json!({"gracePeriodSeconds": grace}));
    cluster.get(&path)
}

/// The fields that the program does not read, but the API server or the scheduler requires.
fn required(kind: &str, name: &str) -> Value {
    match kind {
        "Node" => yaml(
            "
            metadata: {labels: {kubernetes.io/os: linux}}
            status: {capacity: {cpu: '8', memory: 32Gi, pods: '110'}}
            ",
        ),
        "Pod" => yaml("spec: {containers: [{name: main, image: 'example/main:1'}]}"),
        "PersistentVolume" => yaml("spec: {capacity: {storage: 1Gi}, storageClassName: test}"),
        "PersistentVolumeClaim" => yaml(
            "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: test}",
        ),
        "StatefulSet" => stateful_set_of(name),
        "VolumeAttachment" => yaml("spec: {attacher: csi.example.org}"),
        _ => json!({}),
    }
}

/// Sets the UIDs of a pod's owners that are existing `StatefulSet`s. No garbage collector runs here, so other owners need not
/// exist.
fn knows_its_sets(cluster: &ControlPlane, pod: &mut Value) {
    let space = str_of(&pod["metadata"]["namespace"]).to_owned();
    let owners = pod["metadata"]["ownerReferences"].as_array_mut();
    for owner in owners.into_iter().flatten() {
        let name = str_of(&owner["name"]);
        let path = format!("/apis/apps/v1/namespaces/{space}/statefulsets/{name}");
        let set = (owner["kind"] == "StatefulSet").then(|| cluster.try_get(&path));
        if let Some(set) = set.flatten() {
            owner["uid"] = set["metadata"]["uid"].clone();
        }
    }
}

/// Sets the UID of a volume's PVC in the volume.
fn knows_its_claim(cluster: &ControlPlane, volume: &mut Value) {
    let claim = &mut volume["spec"]["claimRef"];
    if let (Some(space), Some(name)) = (claim["namespace"].as_str(), claim["name"].as_str()) {
        let path = format!("/api/v1/namespaces/{space}/persistentvolumeclaims/{name}");
        claim["uid"] = cluster.get(&path)["metadata"]["uid"].clone();
    }
}

/// The server stamps each write with its own time in `managedFields`. The server accepts an older stamp from a client only with
/// another change, and that change must leave no newer stamp behind. So a label is added and removed.
fn write_lease(cluster: &ControlPlane, collection: &str, mut lease: Value) -> Value {
    let stamped = lease["metadata"]["managedFields"][0]["time"].take();
    lease["metadata"]["managedFields"].take();
    lease["metadata"]["labels"] = json!({"passing": "true"});
    let mut lease = cluster.create(&format!("{collection}?fieldManager=kubelet"), lease);
    lease["metadata"]["labels"] = Value::Null;
    lease["metadata"]["managedFields"][0]["time"] = stamped;
    let path = format!("{collection}/{}", str_of(&lease["metadata"]["name"]));
    cluster.put(&format!("{path}?fieldManager=test"), lease)
}

/// The items of a list.
#[track_caller]
pub fn each(items: &Value) -> std::slice::Iter<'_, Value> {
    let list = items.as_array();
    list.unwrap_or_else(|| panic!("it is no list: {items}"))
        .iter()
}

/// The commands of all steps of a report, and of what one may find.
#[track_caller]
pub fn all_commands(report: &Value) -> impl Iterator<Item = &str> {
    let steps = each(&report["steps"]);
    let of_cases = steps.clone().flat_map(|step| each(&step["cases"]));
    let of_cases = of_cases.flat_map(|case| each(&case["commands"]));
    let of_steps = steps.map(|step| &step["command"]);
    of_cases.chain(of_steps).filter_map(Value::as_str)
}

/// The steps of a report that are about the pod, or about its node.
#[track_caller]
pub fn steps_about<'a>(report: &'a Value, pod: &'a Value) -> impl Iterator<Item = &'a Value> {
    let name = format!("{}/{}", str_of(&pod["namespace"]), str_of(&pod["name"]));
    each(&report["steps"]).filter(move |step| {
        let mut pods = each(&step["pods"]).peekable();
        let of_nodes = pods.peek().is_none();
        pods.any(|it| *it == name) || of_nodes && each(&step["nodes"]).any(|it| *it == pod["node"])
    })
}

/// The text of a JSON string.
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

/// The path of a node.
pub fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// The path of a node's Lease.
pub fn lease_path(node: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
}

/// Changes the Ready condition of an existing node. The change has the current time.
pub fn node_becomes(cluster: &ControlPlane, name: &str, status: &str, reason: &str) -> Value {
    let condition = words::condition("Ready", status, reason, &seconds_ago(0));
    cluster.patch_status(&node_path(name), json!({"conditions": [condition]}))
}

/// The path of a pod.
pub fn pod_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// A StatefulSet with one container, without a namespace.
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

/// Calls `act` for each item, over this many concurrent connections.
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
