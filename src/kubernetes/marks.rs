//! The marks by which a node is known to stand for something that this cluster does not see, or to work on without it.
//!
//! Each alone is enough. They are from the sources of the projects named, and from nodes of a real Kosmos, Virtual Kubelet
//! and KWOK. What real nodes have too is not a mark: the role `agent`, an empty providerID, a role `edge`, a label that keeps
//! load balancers away.

use crate::facts::LeafKind::{self, Edge, Kosmos, Virtual};

/// Names of Kosmos's leaf nodes begin so, in its default mode.
pub const KOSMOS_PREFIX: &str = "kosmos-";

/// Where a mark is. Where only one value makes it a mark, that value is given.
pub(super) enum Place {
    Label(&'static str, Option<&'static str>),
    Annotation(&'static str, Option<&'static str>),
    /// Any annotation whose key begins so.
    Annotations(&'static str),
    Taint(&'static str),
    /// A providerID that begins so.
    Provider(&'static str),
    /// What it says is its kubelet's version.
    Version(fn(&str) -> bool),
}
use Place::{Annotation, Annotations, Label, Provider, Taint, Version};

/// What a node is, who makes such nodes, and the mark.
pub(super) const MARKS: [(LeafKind, &str, Place); 35] = [
    // Two spellings; label and taint share one key.
    (Kosmos, "Kosmos", Label("kosmos.io/node", None)),
    (Kosmos, "Kosmos", Annotation(KOSMOS_OWNER, None)),
    (Kosmos, "Kosmos", Taint("kosmos.io/node")),
    (Virtual, "Liqo", Label("liqo.io/type", Some("virtual-node"))),
    (Virtual, "Liqo", Taint("virtual-node.liqo.io/not-allowed")),
    (
        Virtual,
        "interLink",
        Label("virtual-node.interlink/type", None),
    ),
    (
        Virtual,
        "interLink",
        Taint("virtual-node.interlink/no-schedule"),
    ),
    (
        Virtual,
        "Alibaba Cloud",
        Label("k8s.aliyun.com/vnode", None),
    ),
    (Virtual, "Alibaba Cloud", Taint("k8s.aliyun.com/vnode")),
    (
        Virtual,
        "Tencent Cloud",
        Label("node.kubernetes.io/instance-type", Some("eklet")),
    ),
    (
        Virtual,
        "Tencent Cloud",
        Taint("eks.tke.cloud.tencent.com/eklet"),
    ),
    (
        Virtual,
        "Oracle Cloud",
        Annotation("oci.oraclecloud.com/virtual-node-pool-id", None),
    ),
    // Its real nodes have ocid1.instance (oci-cloud-controller-manager, IsVirtualNode).
    (Virtual, "Oracle Cloud", Provider("ocid1.virtualnode")),
    (
        Virtual,
        "Koupleless",
        Label("virtual-kubelet.koupleless.io/component", Some("vnode")),
    ),
    (
        Virtual,
        "Koupleless",
        Taint("schedule.koupleless.io/virtual-node"),
    ),
    (Virtual, "KWOK", Label("kwok.x-k8s.io/node", Some("fake"))),
    (
        Virtual,
        "KWOK",
        Annotation("kwok.x-k8s.io/node", Some("fake")),
    ),
    // Of its own template. A pod that lands there is said to have run, and has not.
    (Virtual, "KWOK", Label("type", Some("kwok"))),
    (
        Virtual,
        "KWOK",
        Version(|version| version.starts_with("kwok-")),
    ),
    (
        Virtual,
        "vcluster",
        Label("vcluster.loft.sh/fake-node", Some("true")),
    ),
    (
        Virtual,
        "Virtual Kubelet",
        Label("type", Some("virtual-kubelet")),
    ),
    (
        Virtual,
        "Virtual Kubelet",
        Label("virtual-kubelet.io/provider", None),
    ),
    (
        Virtual,
        "Virtual Kubelet",
        Taint("virtual-kubelet.io/provider"),
    ),
    // Its library writes two of them, for every provider that is built on it.
    (
        Virtual,
        "Virtual Kubelet",
        Annotations("virtual-kubelet.io/"),
    ),
    (Virtual, "Virtual Kubelet", Version(is_virtual_kubelet)),
    (
        Edge,
        "KubeEdge",
        Version(|version| version.contains("-kubeedge-")),
    ),
    (
        Edge,
        "OpenYurt",
        Label("openyurt.io/is-edge-worker", Some("true")),
    ),
    (
        Edge,
        "OpenYurt",
        Annotation("apps.openyurt.io/binding", Some("true")),
    ),
    (
        Edge,
        "OpenYurt",
        Annotation("node.beta.openyurt.io/autonomy", Some("true")),
    ),
    (
        Edge,
        "OpenYurt",
        Annotation("node.openyurt.io/autonomy-duration", None),
    ),
    // At the customer's site: the kubelet ends no pod while it does not reach AWS (aws/eks-hybrid).
    (
        Edge,
        "EKS Hybrid Nodes",
        Label("eks.amazonaws.com/compute-type", Some("hybrid")),
    ),
    (Edge, "EKS Hybrid Nodes", Provider("eks-hybrid:///")),
    (
        Edge,
        "ACK Edge",
        Label("alibabacloud.com/is-edge-worker", Some("true")),
    ),
    (
        Edge,
        "ACK Edge",
        Annotation("node.alibabacloud.com/autonomy-duration", None),
    ),
    (
        Edge,
        "SuperEdge",
        Label("superedge.io/node-edge", Some("enable")),
    ),
];
/// Its value is the leaf cluster's name.
pub(super) const KOSMOS_OWNER: &str = "kosmos-io/owned-by-cluster";
/// An empty value of these does not count.
pub(super) const NOT_EMPTY: [&str; 2] = [
    "node.openyurt.io/autonomy-duration",
    "node.alibabacloud.com/autonomy-duration",
];

/// `v1.15.2-vk-v1.11.0`
fn is_virtual_kubelet(version: &str) -> bool {
    let numbers = version
        .strip_prefix('v')
        .and_then(|version| version.split_once("-vk-"));
    numbers.is_some_and(|(numbers, _)| {
        let parts = numbers.split('.').collect::<Vec<_>>();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_book_names_every_mark() {
        const PAGE: &str = include_str!("../../docs/leaf-nodes.md");
        for (kind, maker, place) in MARKS {
            let mark = match place {
                Label(key, Some(value)) | Annotation(key, Some(value)) => format!("{key}={value}"),
                Label(key, None) | Annotation(key, None) | Annotations(key) | Taint(key) => {
                    key.to_owned()
                }
                Provider(start) => format!("providerID {start}"),
                Version(_) => "kubelet version".to_owned(),
            };
            let rows = PAGE
                .lines()
                .filter(|line| line.starts_with("| `") && line.contains(maker));
            assert!(
                rows.into_iter().any(|row| row.contains(&mark)),
                "{kind:?} {maker}: {mark}"
            );
        }
    }

    /// The CronJob's pod may start on no node that a label or taint marks. A mark that is added here is to be added there.
    #[test]
    fn the_reapers_own_pod_is_kept_off_every_node_with_a_mark_that_scheduling_knows() {
        let manifest: Value =
            serde_saphyr::from_str(include_str!("../../cronjob/base/cronjob.yaml")).expect("YAML");
        let pod = &manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        let required =
            &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = required["nodeSelectorTerms"].as_array().expect("terms");
        assert_eq!(
            terms.len(),
            1,
            "a node has to match only one of several terms"
        );
        let of_labels = MARKS.iter().filter_map(|(_, _, place)| match place {
            Label(key, None) => Some(json!({"key": key, "operator": "DoesNotExist"})),
            Label(key, Some(value)) => {
                Some(json!({"key": key, "operator": "NotIn", "values": [value]}))
            }
            _ => None,
        });
        let linux = json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]});
        let expected: BTreeSet<_> = of_labels
            .chain([linux])
            .map(|expression| expression.to_string())
            .collect();
        let expressions = terms[0]["matchExpressions"]
            .as_array()
            .expect("expressions")
            .iter();
        assert_eq!(
            expressions
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>(),
            expected
        );

        for toleration in pod["tolerations"].as_array().expect("tolerations") {
            let key = toleration["key"].as_str().unwrap_or_default();
            assert_ne!(key, "", "{toleration} is of any taint");
            let tolerated = MARKS
                .iter()
                .find(|(_, _, place)| matches!(place, Taint(mark) if *mark == key));
            assert!(tolerated.is_none(), "{toleration} is of a mark");
        }
    }
}
