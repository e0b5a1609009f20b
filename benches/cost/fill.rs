//! The cluster for the measurement: objects of about 11 KB, as in real clusters.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{
    ControlPlane,
    objects::{in_parallel, make, namespace, node_becomes, pod_path, renew_lease},
};

/// The number of connections over which objects are created.
const WRITERS: usize = 12;
/// The number of namespaces over which the pods are spread.
const NAMESPACES: usize = 20;
/// The number of pods of a dead node that are not Terminating, such as those of a `DaemonSet`.
const LEFT_ALONE: usize = 10;

/// The cluster, and the objects that were created in it so far.
pub struct Filled {
    cluster: &'static ControlPlane,
    /// The number of nodes that fail.
    dead: usize,
    stuck: usize,
    nodes: usize,
    pods: usize,
}

fn node_name(at: usize) -> String {
    format!("node-{at:05}")
}

fn namespace_name(at: usize) -> String {
    format!("team-{:02}", at % NAMESPACES)
}

fn stuck_name(at: usize) -> String {
    format!("stuck-{at:03}")
}

impl Filled {
    /// Creates the nodes that fail, with their pods.
    pub fn new(cluster: &'static ControlPlane, dead: usize, stuck: usize) -> Self {
        for at in 0..NAMESPACES {
            namespace(cluster, &namespace_name(at));
        }
        let mut filled = Self {
            cluster,
            dead,
            stuck,
            nodes: 0,
            pods: 0,
        };
        filled.grow(dead, 0);
        for node in 0..dead {
            for at in 0..LEFT_ALONE {
                create_pod(
                    cluster,
                    &node_name(node),
                    &namespace_name(at),
                    &format!("left-{node}-{at}"),
                );
            }
        }
        filled
    }

    /// Creates objects up to that number of nodes and pods.
    pub fn grow(&mut self, nodes: usize, pods: usize) {
        let (cluster, dead, first) = (self.cluster, self.dead, self.nodes);
        in_parallel(WRITERS, 0..nodes.saturating_sub(first), |at| {
            let renewed = if first + at < dead { 3_600 } else { 3 };
            let labels = (0..12).map(|label| {
                (
                    format!("example.org/topology-{label:02}"),
                    "rack-17-of-hall-3",
                )
            });
            let applied = "what the machine's agent wrote, last time it looked. ".repeat(150);
            let node = json!({"ready": "True", "renewed": renewed, "metadata": {
                "labels": labels.collect::<BTreeMap<_, _>>(), "annotations": {"example.org/agent-state": applied}}});
            make(cluster, &format!("Node {}: {node}", node_name(first + at)));
        });
        self.nodes = self.nodes.max(nodes);
        let (living, first) = (self.nodes - dead, self.pods);
        in_parallel(WRITERS, 0..pods.saturating_sub(first), |at| {
            let at = first + at;
            let node = node_name(dead + at % living.max(1));
            create_pod(cluster, &node, &namespace_name(at), &format!("pod-{at:06}"));
        });
        self.pods = self.pods.max(pods);
    }

    /// Sets whether the nodes that fail have failed.
    pub fn fail(&self, failed: bool) {
        for node in 0..self.dead {
            let (status, reason) = if failed {
                ("Unknown", "NodeStatusUnknown")
            } else {
                ("True", "KubeletReady")
            };
            node_becomes(self.cluster, &node_name(node), status, reason);
        }
    }

    /// Creates the pods again that the last run has deleted. They have been Terminating for long enough. Returns UID and version
    /// by path.
    pub fn stick(&self) -> BTreeMap<String, (Value, Value)> {
        let cluster = self.cluster;
        // A run compares the API server's clock with the Leases of some Ready nodes. No kubelet renews them here.
        for at in self.dead..self.nodes.min(self.dead + 5) {
            renew_lease(cluster, &node_name(at));
        }
        let pods = in_parallel(WRITERS, 0..self.stuck, |at| {
            let (namespace, name) = (namespace_name(at), stuck_name(at));
            let path = pod_path(&namespace, &name);
            if cluster.try_get(&path).is_none() {
                create_pod(cluster, &node_name(at % self.dead), &namespace, &name);
                cluster.delete(&path, json!({"gracePeriodSeconds": 1}));
            }
            let metadata = cluster.get(&path)["metadata"].take();
            (
                path,
                (metadata["uid"].clone(), metadata["resourceVersion"].clone()),
            )
        });
        crate::until_overdue();
        pods.into_iter().collect()
    }

    /// The number of stuck pods that are left.
    pub fn left(&self) -> usize {
        let left = |at| {
            self.cluster
                .try_get(&pod_path(&namespace_name(at), &stuck_name(at)))
                .is_some()
        };
        (0..self.stuck).filter(|at| left(*at)).count()
    }

    /// The sizes of a node and a pod, as the API server sends them.
    pub fn sizes(&self) -> (usize, usize) {
        let size = |path: &str| self.cluster.get(path).to_string().len();
        (
            size(&format!("/api/v1/nodes/{}", node_name(0))),
            size(&pod_path(&namespace_name(0), "left-0-0")),
        )
    }
}

fn create_pod(cluster: &ControlPlane, node: &str, namespace: &str, name: &str) {
    let applied = "what was applied, for the next time. ".repeat(80);
    let value = "a value of the length that such values tend to have";
    let env = (0..40).map(|at| json!({"name": format!("SETTING_{at:02}"), "value": value}));
    let pod = json!({
        "metadata": {
            "name": name,
            "labels": {"app": "measured", "tier": "backend", "release": "2026-11"},
            "annotations": {"example.org/applied": applied},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "measured", "controller": true,
                "uid": "00000000-0000-4000-8000-000000000000"}],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "example/main:1", "env": env.collect::<Vec<_>>()}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    });
    cluster.create(&format!("/api/v1/namespaces/{namespace}/pods"), pod);
}
