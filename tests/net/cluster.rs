//! A random cluster, in the words of the tests' one vocabulary of objects.

use pod_reaper_test_support::{samples, simulated::Dice};
use serde_json::{Map, Value, json};

use crate::conditions::{CONTROL_PLANE, LOST, MEMBERS};

/// Ages in seconds: around the thresholds of 1, 10 and 30 minutes and of the 11 minutes of a sign of life, and far away from them.
const AGES: [i64; 11] = [0, 50, 61, 570, 599, 600, 640, 1_700, 1_800, 3_600, 100_000];
const OLD: i64 = 7_200;
const NAMESPACES: [&str; 3] = ["bank", "shop", "kube-system"];

/// Builds a cluster entry by entry.
struct Builder<'a> {
    dice: &'a mut Dice,
    entries: Map<String, Value>,
    nodes: Vec<String>,
    pods: Vec<(String, String)>,
    /// The label of those nodes that are members of a majority, if there are some.
    member: Option<&'static str>,
    /// Whether nearly all Ready nodes have the same taint.
    is_lost: bool,
}

/// Returns the objects of a random cluster.
pub fn random(dice: &mut Dice) -> Vec<Value> {
    let member = dice
        .permille(150)
        .then(|| dice.pick(&[MEMBERS[0], MEMBERS[1], CONTROL_PLANE]));
    let is_lost = dice.permille(80);
    let mut builder = Builder {
        member,
        is_lost,
        dice,
        entries: Map::new(),
        nodes: Vec::new(),
        pods: Vec::new(),
    };
    builder.namespaces();
    builder.all_nodes();
    builder.others();
    for node in builder.nodes.clone() {
        let is_up = builder.entries[&format!("Node {node}")]["ready"] == "True";
        let many = if is_up {
            2
        } else {
            builder.dice.weigh(&[(12, 7), (1, 20)])
        };
        for _ in 0..builder.dice.below(many) {
            builder.pod(Some(&node));
        }
    }
    if builder.dice.permille(80) || builder.pods.is_empty() {
        builder.pod(None);
    }
    if builder.dice.permille(80) {
        builder.pod(Some("gone"));
    }
    for node in builder.nodes.clone() {
        let is_member = member == Some(CONTROL_PLANE)
            && !builder.entries[&format!("Node {node}")]["metadata"]["labels"][CONTROL_PLANE]
                .is_null();
        if is_member && builder.dice.permille(800) {
            let mirror = json!({"node": node, "owner": format!("Node {node}"), "grace": null,
                "metadata": {"annotations": {"kubernetes.io/config.mirror": "hash"}},
                "spec": {"containers": [{"name": "kube-apiserver"}]}});
            builder.put(format!("Pod kube-system/kube-apiserver-{node}"), mirror);
        }
    }
    builder.leases();
    let Builder { entries, pods, .. } = builder;
    let mut objects = samples::objects(&Value::Object(entries));
    // Two pods of one name cannot exist, but each has a version of its own.
    let uids = pods.iter().enumerate();
    for (number, (namespace, name)) in uids {
        let pod = objects.iter_mut().find(|it| {
            it["kind"] == "Pod"
                && it["metadata"]["namespace"] == **namespace
                && it["metadata"]["name"] == **name
        });
        pod.unwrap()["metadata"]["resourceVersion"] = json!((100 + number).to_string());
    }
    objects
}

impl Builder<'_> {
    fn put(&mut self, key: impl Into<String>, words: Value) {
        self.entries.insert(key.into(), words);
    }

    /// Mostly long ago, otherwise at or near a threshold.
    fn age(&mut self) -> i64 {
        if self.dice.permille(870) {
            OLD
        } else {
            self.dice.pick(&AGES)
        }
    }

    /// An opt-out, rarely, in one of its forms.
    fn skip(&mut self, often: usize) -> Value {
        if !self.dice.permille(often) {
            return json!({});
        }
        let value = self.dice.pick(&["true", "false", "", "yes", "False"]);
        let place = self.dice.pick(&["annotations", "labels"]);
        json!({place: {"pod-reaper.io/skip": value}})
    }

    fn namespaces(&mut self) {
        for name in NAMESPACES {
            let mut metadata = self.skip(60);
            if self.dice.permille(60) {
                metadata["deletionTimestamp"] = json!("2026-01-31T00:50:00Z");
            }
            self.put(format!("Namespace {name}"), json!({ "metadata": metadata }));
        }
        self.put("Namespace kube-node-lease", json!({}));
    }

    fn all_nodes(&mut self) {
        let down = self.dice.weigh(&[(12, 1), (12, 2), (3, 3), (2, 5), (1, 0)]);
        let up = self.dice.weigh(&[(4, 1), (12, 3), (12, 5), (3, 9)]);
        for number in 0..down + up {
            let name = format!("n{number}");
            let node = self.node(number < down);
            self.put(format!("Node {name}"), node);
            self.nodes.push(name);
        }
    }

    fn node(&mut self, is_down: bool) -> Value {
        let mut metadata = self.skip(if is_down { 25 } else { 0 });
        let mut node = json!({});
        if is_down {
            node["ready"] = self
                .dice
                .weigh(&[(30, "Unknown"), (3, "False"), (1, "null")])
                .into();
            if node["ready"] == "null" {
                node["ready"] = Value::Null;
            }
            let since = self.age();
            node["since"] = json!(since);
            // The lease was last renewed before the failure; or later, because the machine lives.
            let renewed = self.dice.weigh(&[
                (24, since + 40),
                (1, since / 2),
                (1, 5),
                (1, 650),
                (1, since),
            ]);
            node["renewed"] = json!(renewed);
            if self.dice.permille(60) {
                // The node's own clock is late, or early.
                let skew = self.dice.pick(&[-3_000, -100, 100, 3_000]);
                node["says"] = json!(renewed + skew);
            }
            if self.dice.permille(30) {
                node["detects"] = json!("KernelDeadlock");
            }
        } else {
            node["ready"] = json!("True");
            if self.dice.permille(100) {
                node["spec"]["unschedulable"] = json!(true);
            }
            if self.dice.permille(if self.is_lost { 900 } else { 50 }) {
                node["spec"]["taints"] = json!([{"key": LOST, "effect": "NoSchedule"}]);
            }
        }
        if self.dice.permille(30) {
            node["lease"] = Value::Null;
        }
        let (key, value) = match self.dice.below(40) {
            _ if self.member.is_some_and(|_| self.dice.permille(500)) => {
                (self.member.unwrap_or_default(), "")
            }
            0 => ("kosmos.io/node", "true"),
            1 => ("type", "virtual-kubelet"),
            2 => ("example.org/stands-for", "another"),
            3 | 4 => (CONTROL_PLANE, ""),
            5..9 => ("topology.kubernetes.io/zone", "a"),
            9..13 => ("topology.kubernetes.io/zone", "b"),
            _ => ("example.org/plain", "true"),
        };
        metadata["labels"][key] = json!(value);
        if self.dice.permille(60) && is_down {
            metadata["annotations"]["fencing/state"] = json!("fenced");
        }
        node["metadata"] = metadata;
        node
    }

    /// The CSI drivers, and one of each kind that a file must have to prove that others of the kind do not exist.
    fn others(&mut self) {
        self.put(
            "StatefulSet bank/other",
            json!({"apiVersion": "apps/v1", "spec": {"replicas": 1}}),
        );
        self.put("PersistentVolume other", json!({"claim": "bank/other"}));
        self.put(
            "VolumeAttachment other",
            json!({"volume": "other", "node": "n1"}),
        );
        self.put("CSIDriver ceph", json!({"spec": {"attachRequired": true}}));
        self.put(
            "CSIDriver direct",
            json!({"spec": {"attachRequired": false}}),
        );
    }

    fn pod(&mut self, node: Option<&str>) {
        let namespace = self.dice.pick(&NAMESPACES);
        let number = self.pods.len();
        let owner = self.dice.weigh(&[
            (12, "StatefulSet"),
            (8, "ReplicaSet"),
            (3, "Job"),
            (2, "DaemonSet"),
            (1, "KafkaNode"),
            (1, ""),
        ]);
        let name = match owner {
            "StatefulSet" => format!("db{number}-0"),
            _ => format!("p{number}"),
        };
        let mut pod = json!({"node": node, "metadata": self.skip(50)});
        if owner.is_empty() {
            pod["owner"] = Value::Null;
        } else if owner != "StatefulSet" {
            pod["owner"] = json!(format!("{owner} of{number}"));
        }
        if self.dice.permille(120) {
            pod["grace"] = Value::Null;
        } else {
            let grace = self.dice.weigh(&[(12, 1), (6, 30), (1, 0), (1, 604_800)]);
            let requested = self.age();
            pod["grace"] = json!(grace);
            pod["overdue"] = json!(requested - grace);
        }
        if self.dice.permille(120) {
            let finalizer = self.dice.pick(&[
                "example.org/hold",
                "batch.kubernetes.io/job-tracking",
                "foregroundDeletion",
            ]);
            pod["metadata"]["finalizers"] = json!([finalizer]);
        }
        if self.dice.permille(30) {
            pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("hash");
        }
        if self.dice.permille(60) {
            pod["phase"] = json!("Succeeded");
        }
        if self.dice.permille(80) {
            pod["spec"]["tolerations"] = json!([{"key": LOST, "operator": "Exists"}]);
        }
        if self.dice.permille(100) {
            let (path, below) = self.dice.pick(&[
                ("/srv/data", ""),
                ("/", "srv/data"),
                ("/", "var/log"),
                ("/var", "log/app"),
            ]);
            pod["spec"]["containers"] = json!([{"name": "main", "volumeMounts": [{"name": "host", "mountPath": "/data", "subPath": below}]}]);
            pod["spec"]["volumes"] = json!([{"name": "host", "hostPath": {"path": path}}]);
            if self.dice.permille(300) && !json!(node).is_null() {
                pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
            }
            if self.dice.permille(200) {
                pod["owner"] = Value::Null;
                pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
            }
        }
        if self.dice.permille(500) {
            self.storage(namespace, &name, node.unwrap_or("n0"), &mut pod);
        }
        if owner == "StatefulSet" && self.dice.permille(700) {
            self.stateful_set(namespace, number);
        }
        self.put(format!("Pod {namespace}/{name}"), pod);
        self.pods.push((namespace.to_owned(), name));
    }

    /// One PVC of the pod, with its volume.
    fn storage(&mut self, namespace: &str, name: &str, node: &str, pod: &mut Value) {
        let claim = format!("data-{name}");
        pod["uses"] = json!(claim);
        let volume = format!("pv-{namespace}-{name}");
        let more = json!({"claim": format!("{namespace}/{claim}")});
        let only = |spec: Value| samples::with(more.clone(), json!({"on": node, "spec": spec}));
        let spec = match self.dice.below(12) {
            0..4 => Some(more.clone()),
            4 => Some(only(json!({"local": {"path": "/mnt/d1"}}))),
            5 => Some(only(
                json!({"csi": {"driver": "direct", "volumeHandle": volume}}),
            )),
            6 => Some(samples::with(
                more.clone(),
                json!({"spec": {"hostPath": {"path": "/mnt/d1"}}}),
            )),
            7 => Some(samples::with(
                more.clone(),
                json!({"spec": {"csi": {"driver": "direct", "volumeHandle": volume, "fsType": "ext4"}}}),
            )),
            8 => Some(samples::with(
                more.clone(),
                json!({"spec": {"nfs": {"server": "files", "path": "/"}}}),
            )),
            9 => None,
            _ => Some(samples::with(
                more.clone(),
                json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}}),
            )),
        };
        let Some(spec) = spec else {
            // A PVC that lacks its volume, or does not exist.
            if self.dice.permille(500) {
                self.put(
                    format!("PersistentVolumeClaim {namespace}/{claim}"),
                    json!({}),
                );
            }
            return;
        };
        self.put(format!("PersistentVolume {volume}"), spec);
        if self.dice.permille(120) {
            let mut metadata = json!({"finalizers": ["kubernetes.io/pvc-protection"]});
            let ago = self.age();
            metadata["deletionTimestamp"] = json!(ago_of(ago));
            if self.dice.permille(200) {
                metadata["finalizers"] =
                    json!(["kubernetes.io/pvc-protection", "example.org/keep"]);
            }
            let entry = json!({"volume": volume, "metadata": metadata});
            self.put(format!("PersistentVolumeClaim {namespace}/{claim}"), entry);
        }
        if self.dice.permille(300) {
            self.put(
                format!("VolumeAttachment va-{namespace}-{name}"),
                json!({"volume": volume, "node": node}),
            );
        }
    }

    fn stateful_set(&mut self, namespace: &str, number: usize) {
        let replicas = self.dice.weigh(&[(10, 1), (1, 0)]);
        let set = format!("db{number}");
        let spec =
            json!({"replicas": replicas, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]});
        let status = json!({"replicas": replicas, "readyReplicas": 0});
        let mut entry = json!({"apiVersion": "apps/v1", "spec": spec, "status": status});
        if self.dice.permille(100) {
            entry["metadata"]["deletionTimestamp"] = json!(ago_of(60));
        }
        if self.dice.permille(100) {
            entry["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.org/v1", "kind": "Cluster", "name": set,
                "uid": "c", "controller": true}]);
        }
        self.put(format!("StatefulSet {namespace}/{set}"), entry);
    }

    /// Leases of programs, some of which run on the nodes that are down.
    fn leases(&mut self) {
        for number in 0..self.dice.weigh(&[(5, 0), (2, 1), (1, 2)]) {
            let node = self.nodes[self.dice.below(self.nodes.len())].clone();
            let (namespace, holder) = match self.dice.below(4) {
                0 => ("kube-system".to_owned(), node),
                1 => ("kube-system".to_owned(), format!("{node}_1c8a")),
                2 => ("kube-system".to_owned(), format!("{node}x")),
                _ if self.pods.is_empty() => continue,
                _ => {
                    let (namespace, pod) = self.pods[self.dice.below(self.pods.len())].clone();
                    (namespace, format!("{pod}_4f"))
                }
            };
            let renewed = self.dice.pick(&[3, 300, 650, OLD]);
            let entry = json!({"holder": holder, "renewed": renewed});
            self.put(format!("Lease {namespace}/leader{number}"), entry);
        }
    }
}

/// The time this many seconds before the samples' now, as the API writes it.
pub fn ago_of(seconds: i64) -> String {
    let now = samples::NOW.parse::<jiff::Timestamp>().unwrap();
    (now - jiff::SignedDuration::from_secs(seconds)).to_string()
}
