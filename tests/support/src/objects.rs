//! Builders of realistic objects. `create` writes one to the API server and returns the server's version of it.
//!
//! A status, a deletion mark and the stamp of a lease's renewal need more than one request, because the server sets
//! them by its own rules.

use std::thread;

use serde_json::{Value, json};

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

/// A node, and its lease.
pub struct Node {
    object: Value,
    lease: Option<Lease>,
}

/// When the lease was renewed, in seconds before now.
struct Lease {
    /// By the node's clock.
    says: i64,
    /// By the server's.
    stamped: i64,
}

impl Node {
    /// A healthy node, whose lease was just renewed.
    pub fn ready(name: &str) -> Self {
        let more = format!(
            "
            metadata: {{labels: {{kubernetes.io/hostname: '{name}', kubernetes.io/os: linux}}}}
            status: {{capacity: {{cpu: '8', memory: 32Gi, pods: '110'}}}}
            "
        );
        Self {
            object: with(samples::node(name, "True"), yaml(&more)),
            lease: None,
        }
        .condition("True", "KubeletReady", 86_400)
        .lease_renewed(3)
    }

    /// A silent node: Ready is `Unknown` and the lease has not been renewed, both for that many seconds.
    pub fn not_ready(name: &str, since: i64) -> Self {
        Self::ready(name)
            .condition("Unknown", "NodeStatusUnknown", since)
            .lease_renewed(since)
    }

    /// The Ready condition.
    pub fn condition(mut self, status: &str, reason: &str, since: i64) -> Self {
        self.object["status"]["conditions"] = json!([ready_condition(status, reason, since)]);
        self
    }

    /// No Ready condition at all.
    pub fn without_condition(mut self) -> Self {
        self.object["status"]["conditions"] = json!([]);
        self
    }

    /// Lays more over it.
    pub fn with(mut self, more: Value) -> Self {
        self.object = with(self.object, more);
        self
    }

    /// Adds a label, or replaces one.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Adds an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// Adds a taint.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        push(
            &mut self.object["spec"]["taints"],
            json!({"key": key, "value": value, "effect": effect}),
        );
        self
    }

    /// Adds a condition of the node's own machine, such as node-problem-detector's, reported that long ago by the node's
    /// clock. The server stamps it with the time of its writing.
    pub fn reports(mut self, kind: &str, seconds_ago: i64) -> Self {
        let heartbeat = self::seconds_ago(seconds_ago);
        let condition = format!(
            "{{type: '{kind}', status: 'False', reason: AsItShouldBe, message: as the test wants it,
            lastTransitionTime: '{heartbeat}', lastHeartbeatTime: '{heartbeat}'}}"
        );
        push(&mut self.object["status"]["conditions"], yaml(&condition));
        self
    }

    /// Sets the renewal of the lease, by the node's clock and by the server's.
    pub fn lease_renewed(mut self, seconds_ago: i64) -> Self {
        self.lease = Some(Lease {
            says: seconds_ago,
            stamped: seconds_ago,
        });
        self
    }

    /// Sets the renewal by the node's clock alone, as on a node whose clock is wrong.
    pub fn lease_says(mut self, seconds_ago: i64) -> Self {
        let stamped = self
            .lease
            .as_ref()
            .map_or(seconds_ago, |lease| lease.stamped);
        self.lease = Some(Lease {
            says: seconds_ago,
            stamped,
        });
        self
    }

    /// Nothing in `kube-node-lease`.
    pub fn without_lease(mut self) -> Self {
        self.lease = None;
        self
    }

    /// Writes the node, with the taints that the node controller gives for its condition, and its lease.
    pub fn create(mut self, cluster: &ControlPlane) -> Value {
        let name = text(&self.object, "name");
        let (taint, effects): (_, &[&str]) =
            match self.object["status"]["conditions"][0]["status"].as_str() {
                Some("True") => ("", &[]),
                Some("False") => ("node.kubernetes.io/not-ready", &["NoSchedule", "NoExecute"]),
                _ => (
                    "node.kubernetes.io/unreachable",
                    &["NoSchedule", "NoExecute"],
                ),
            };
        for effect in effects {
            push(
                &mut self.object["spec"]["taints"],
                json!({"key": taint, "effect": effect}),
            );
        }
        let taints = self.object["spec"]["taints"].clone();
        cluster.create("/api/v1/nodes", self.object);
        if let Some(lease) = self.lease {
            create_lease(cluster, ("kube-node-lease", &name), &name, &lease);
        }
        // Admission taints every new node as not ready.
        cluster.merge_patch(&node_path(&name), json!({"spec": {"taints": taints}}))
    }
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
    let condition = ready_condition(status, reason, 0);
    cluster.patch_status(&node_path(name), json!({"conditions": [condition]}))
}

/// Renews the lease of a node now, by both clocks.
pub fn renew_lease(cluster: &ControlPlane, node: &str) -> Value {
    let path = format!("{}?fieldManager=kubelet", lease_path(node));
    cluster.merge_patch(&path, json!({"spec": {"renewTime": micro_seconds_ago(0)}}))
}

fn ready_condition(status: &str, reason: &str, since: i64) -> Value {
    let at = seconds_ago(since);
    yaml(&format!(
        "{{type: Ready, status: '{status}', reason: '{reason}', message: as the test wants it,
        lastTransitionTime: '{at}', lastHeartbeatTime: '{at}'}}"
    ))
}

/// The server stamps each write with its own time in `managedFields`. It accepts an older stamp from a client only with
/// another change, and that change must leave no newer stamp behind. So a label is added and removed.
fn create_lease(
    cluster: &ControlPlane,
    (namespace, name): (&str, &str),
    holder: &str,
    lease: &Lease,
) {
    let more = format!(
        "
        metadata: {{namespace: '{namespace}', labels: {{passing: 'true'}}}}
        spec: {{holderIdentity: '{holder}', leaseDurationSeconds: 40, renewTime: '{}'}}
        ",
        micro_seconds_ago(lease.says)
    );
    let object = with(samples::lease(name), yaml(&more));
    let path = path_of_lease((namespace, name));
    let collection = path.trim_end_matches(name).trim_end_matches('/');
    let mut object = cluster.create(&format!("{collection}?fieldManager=kubelet"), object);
    object["metadata"]["labels"] = Value::Null;
    object["metadata"]["managedFields"][0]["time"] = json!(seconds_ago(lease.stamped));
    cluster.put(&format!("{path}?fieldManager=test"), object);
}

/// Writes a Lease, by namespace and name, that `holder` renewed so many seconds ago, by both clocks.
pub fn lease_of(cluster: &ControlPlane, lease: (&str, &str), holder: &str, seconds_ago: i64) {
    let renewed = Lease {
        says: seconds_ago,
        stamped: seconds_ago,
    };
    create_lease(cluster, lease, holder, &renewed);
}

/// A pod that is bound to a node and was running there.
pub struct Pod {
    object: Value,
    phase: &'static str,
}

impl Pod {
    /// A pod with one container, no owner and no volumes. Its namespace is created with it.
    pub fn on(node: &str, namespace: &str, name: &str) -> Self {
        let mut pod = Self::without_node(namespace, name);
        pod.object["spec"]["nodeName"] = json!(node);
        pod
    }

    /// A pod that is not scheduled yet. Its deletion hangs only where a finalizer holds it.
    pub fn without_node(namespace: &str, name: &str) -> Self {
        let object = format!(
            "
            apiVersion: v1
            kind: Pod
            metadata: {{name: '{name}', namespace: '{namespace}'}}
            spec: {{containers: [{{name: main, image: 'example/main:1'}}]}}
            "
        );
        Self {
            object: yaml(&object),
            phase: "Running",
        }
    }

    /// Lays more over it.
    pub fn with(mut self, more: Value) -> Self {
        self.object = with(self.object, more);
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Adds an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// Adds a finalizer.
    pub fn finalizer(mut self, finalizer: &str) -> Self {
        push(&mut self.object["metadata"]["finalizers"], json!(finalizer));
        self
    }

    /// Sets its controller, which need not exist, since no garbage collector runs here.
    pub fn owned_by(mut self, kind: &str, name: &str) -> Self {
        let api_version = match kind {
            "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps/v1",
            "Job" => "batch/v1",
            _ => "example.org/v1",
        };
        let owner = format!(
            "{{apiVersion: {api_version}, kind: '{kind}', name: '{name}', controller: true,
            uid: 00000000-0000-4000-8000-000000000000}}"
        );
        push(
            &mut self.object["metadata"]["ownerReferences"],
            yaml(&owner),
        );
        self
    }

    /// Sets its controller to a StatefulSet that exists.
    pub fn of_set(self, set: &Value) -> Self {
        let mut pod = self.owned_by(
            "StatefulSet",
            set["metadata"]["name"].as_str().expect("a name"),
        );
        pod.object["metadata"]["ownerReferences"][0]["uid"] = set["metadata"]["uid"].clone();
        pod
    }

    /// Mounts a claim, which need not exist.
    pub fn claim(self, claim: &str) -> Self {
        self.volume(
            claim,
            json!({"persistentVolumeClaim": {"claimName": claim}}),
        )
    }

    /// Mounts a generic ephemeral volume. Its claim is named `<pod>-<volume>`, and is not created.
    pub fn ephemeral(self, volume: &str) -> Self {
        let claim = json!({"spec": claim_spec(None)});
        self.volume(volume, json!({"ephemeral": {"volumeClaimTemplate": claim}}))
    }

    fn volume(mut self, name: &str, mut source: Value) -> Self {
        source["name"] = json!(name);
        push(&mut self.object["spec"]["volumes"], source);
        self
    }

    /// `Always`, `OnFailure` or `Never`.
    pub fn restart_policy(mut self, policy: &str) -> Self {
        self.object["spec"]["restartPolicy"] = json!(policy);
        self
    }

    /// The image of its container.
    pub fn image(mut self, image: &str) -> Self {
        self.object["spec"]["containers"][0]["image"] = json!(image);
        self
    }

    /// Sets a variable of its container's environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        push(
            &mut self.object["spec"]["containers"][0]["env"],
            json!({"name": name, "value": value}),
        );
        self
    }

    /// Sets another phase than `Running`. The deletion of a `Succeeded` or `Failed` pod does not hang.
    pub fn phase(mut self, phase: &'static str) -> Self {
        self.phase = phase;
        self
    }

    /// Mounts an empty folder.
    pub fn empty_dir(self, name: &str) -> Self {
        self.volume(name, json!({"emptyDir": {}}))
    }

    /// The pod as it is created, for tests that write many at once.
    pub fn object(self) -> Value {
        self.object
    }

    /// Writes the pod without a deletion mark.
    pub fn create(self, cluster: &ControlPlane) -> Value {
        let name = text(&self.object, "name");
        let space = text(&self.object, "namespace");
        namespace(cluster, &space);
        cluster.create(&format!("/api/v1/namespaces/{space}/pods"), self.object);
        let status = json!({"phase": self.phase, "startTime": seconds_ago(86_400)});
        cluster.patch_status(&pod_path(&space, &name), status)
    }

    /// Writes the pod and marks it for deletion. No kubelet confirms, so it stays. It is overdue when that many seconds
    /// have passed: the server computes the deadline, and no request can set one in the past.
    ///
    /// With 0, it stays only where a finalizer holds it.
    pub fn terminating(self, cluster: &ControlPlane, grace_period_seconds: i64) -> Value {
        let pod = self.create(cluster);
        let path = pod_path(&text(&pod, "namespace"), &text(&pod, "name"));
        cluster.delete(&path, json!({"gracePeriodSeconds": grace_period_seconds}));
        cluster.get(&path)
    }
}

/// Where a pod is found.
pub fn pod_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// A volume, and the claim that it is bound to.
pub struct Volume {
    object: Value,
    claim: Option<(String, String)>,
}

impl Volume {
    /// One of 1 GiB that is retained, and what makes it this one.
    pub fn of(name: &str, more: Value) -> Self {
        let spec = yaml(
            "{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: test,
            persistentVolumeReclaimPolicy: Retain}",
        );
        Self {
            object: samples::volume(name, &with(spec, more)),
            claim: None,
        }
    }

    /// A disk of one node. The server requires the node's name: [`Volume::on_node`].
    pub fn local(name: &str) -> Self {
        Self::of(name, yaml("{local: {path: /mnt/disk}}"))
    }

    /// A volume of a CSI driver.
    pub fn csi(name: &str, driver: &str) -> Self {
        Self::of(
            name,
            yaml(&format!(
                "{{csi: {{driver: '{driver}', volumeHandle: '{name}'}}}}"
            )),
        )
    }

    /// Sets its reclaim policy; the default here is `Retain`.
    pub fn reclaim(mut self, policy: &str) -> Self {
        self.object["spec"]["persistentVolumeReclaimPolicy"] = json!(policy);
        self
    }

    /// Usable on the node with this host name only.
    pub fn on_node(mut self, host_name: &str) -> Self {
        let affinity = format!(
            "{{required: {{nodeSelectorTerms: [
                {{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: ['{host_name}']}}]}}]}}}}"
        );
        self.object["spec"]["nodeAffinity"] = yaml(&affinity);
        self
    }

    /// Binds it to this claim, which is created with it, as is its namespace.
    pub fn claimed_by(mut self, namespace: &str, claim: &str) -> Self {
        self.claim = Some((namespace.to_owned(), claim.to_owned()));
        self
    }

    /// Writes the claim and the volume, bound to each other.
    pub fn create(mut self, cluster: &ControlPlane) -> Value {
        let name = text(&self.object, "name");
        let mut phase = "Available";
        if let Some((namespace, claim_name)) = &self.claim {
            let mut spec = claim_spec(Some(&name));
            for field in ["accessModes", "volumeMode"] {
                spec[field] = self.object["spec"][field].clone();
            }
            let bound = claim_of(cluster, (namespace, claim_name), spec, "Bound");
            let uid = text(&bound, "uid");
            self.object["spec"]["claimRef"] = yaml(&format!(
                "{{apiVersion: v1, kind: PersistentVolumeClaim, namespace: '{namespace}', name: '{claim_name}', uid: {uid}}}"
            ));
            phase = "Bound";
        }
        cluster.create("/api/v1/persistentvolumes", self.object);
        cluster.patch_status(
            &format!("/api/v1/persistentvolumes/{name}"),
            json!({"phase": phase}),
        )
    }
}

/// Writes a claim by itself: `Pending` without a volume, `Lost` with one that is gone, or `Bound`.
pub fn claim(
    cluster: &ControlPlane,
    namespace: &str,
    name: &str,
    volume: Option<&str>,
    phase: &str,
) -> Value {
    claim_of(cluster, (namespace, name), claim_spec(volume), phase)
}

fn claim_of(
    cluster: &ControlPlane,
    (namespace, name): (&str, &str),
    spec: Value,
    phase: &str,
) -> Value {
    self::namespace(cluster, namespace);
    let collection = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let mut object = samples::claim(namespace, name, "");
    // The server gives these.
    for given in ["uid", "resourceVersion", "creationTimestamp"] {
        object["metadata"][given].take();
    }
    cluster.create(&collection, with(object, json!({"spec": spec})));
    cluster.patch_status(&format!("{collection}/{name}"), json!({"phase": phase}))
}

fn claim_spec(volume: Option<&str>) -> Value {
    let volume = volume.unwrap_or("null");
    yaml(&format!(
        "{{accessModes: [ReadWriteOnce], storageClassName: test, resources: {{requests: {{storage: 1Gi}}}}, volumeName: {volume}}}"
    ))
}

/// Attaches a volume to a node.
pub fn volume_attachment(cluster: &ControlPlane, name: &str, node: &str, volume: &str) -> Value {
    let collection = "/apis/storage.k8s.io/v1/volumeattachments";
    let object = format!(
        "
        apiVersion: storage.k8s.io/v1
        kind: VolumeAttachment
        metadata: {{name: '{name}'}}
        spec: {{attacher: csi.example.org, nodeName: '{node}', source: {{persistentVolumeName: '{volume}'}}}}
        "
    );
    cluster.create(collection, yaml(&object));
    cluster.patch_status(&format!("{collection}/{name}"), json!({"attached": true}))
}

/// Writes a StatefulSet, with `more` laid over it. No controller needs to run: its pods are made by the test.
pub fn stateful_set(cluster: &ControlPlane, namespace: &str, name: &str, more: Value) -> Value {
    self::namespace(cluster, namespace);
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets");
    cluster.create(&path, with(stateful_set_of(name), more))
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
    let mut queues = (0..at_once).map(|_| Vec::new()).collect::<Vec<_>>();
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

fn text(object: &Value, field: &str) -> String {
    let text = object["metadata"][field].as_str();
    text.unwrap_or_else(|| panic!("no {field}: {object}"))
        .to_owned()
}

/// Appends to a list that may not exist yet.
fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("it is a list").push(item);
}
