//! The marks by which a node is known to stand for something that this cluster does not see, or to work on without it.
//!
//! Each alone is enough. They are from the sources of the projects named, and from nodes of a real Kosmos, Virtual Kubelet
//! and KWOK. What real nodes have too is not a mark: the role `agent`, an empty providerID, a role `edge`, a label that keeps
//! load balancers away.

use crate::facts::LeafKind::{self, Edge, Kosmos, Virtual};
use itertools::Itertools as _;

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
    /// What it says is its kubelet's version: how that looks, and whether it does.
    Version(
        #[cfg_attr(
            not(test),
            expect(dead_code, reason = "a test makes the book's table of it")
        )]
        &'static str,
        fn(&str) -> bool,
    ),
}
use Place::{Annotation, Annotations, Label, Provider, Taint, Version};

/// What its nodes are, who makes them, and their marks.
pub(super) const MARKS: [(LeafKind, &str, &[Place]); 15] = [
    (
        Kosmos,
        "Kosmos",
        // Two spellings; label and taint share one key.
        &[
            Label("kosmos.io/node", None),
            Taint("kosmos.io/node"),
            Annotation(KOSMOS_OWNER, None),
        ],
    ),
    (
        Virtual,
        "Liqo",
        &[
            Label("liqo.io/type", Some("virtual-node")),
            Taint("virtual-node.liqo.io/not-allowed"),
        ],
    ),
    (
        Virtual,
        "interLink",
        &[
            Label("virtual-node.interlink/type", None),
            Taint("virtual-node.interlink/no-schedule"),
        ],
    ),
    (
        Virtual,
        "Alibaba Cloud",
        &[
            Label("k8s.aliyun.com/vnode", None),
            Taint("k8s.aliyun.com/vnode"),
        ],
    ),
    (
        Virtual,
        "Tencent Cloud",
        &[
            Label("node.kubernetes.io/instance-type", Some("eklet")),
            Taint("eks.tke.cloud.tencent.com/eklet"),
        ],
    ),
    (
        Virtual,
        "Oracle Cloud",
        &[
            Annotation("oci.oraclecloud.com/virtual-node-pool-id", None),
            // Its real nodes have ocid1.instance (oci-cloud-controller-manager, IsVirtualNode).
            Provider("ocid1.virtualnode"),
        ],
    ),
    (
        Virtual,
        "Koupleless",
        &[
            Label("virtual-kubelet.koupleless.io/component", Some("vnode")),
            Taint("schedule.koupleless.io/virtual-node"),
        ],
    ),
    (
        Virtual,
        "KWOK",
        &[
            Label("kwok.x-k8s.io/node", Some("fake")),
            Annotation("kwok.x-k8s.io/node", Some("fake")),
            // Of its own template. A pod that lands there is said to have run, and has not.
            Label("type", Some("kwok")),
            Version("kwok-…", |version| version.starts_with("kwok-")),
        ],
    ),
    (
        Virtual,
        "vcluster",
        &[Label("vcluster.loft.sh/fake-node", Some("true"))],
    ),
    (
        Virtual,
        // What is built on it comes before it: the first mark names the maker.
        "Virtual Kubelet",
        &[
            Label("type", Some("virtual-kubelet")),
            Label("virtual-kubelet.io/provider", None),
            Taint("virtual-kubelet.io/provider"),
            // Its library writes two of them, for every provider that is built on it.
            Annotations("virtual-kubelet.io/"),
            Version("v…-vk-…", is_virtual_kubelet),
        ],
    ),
    (
        Edge,
        "KubeEdge",
        &[Version("…-kubeedge-…", |version| {
            version.contains("-kubeedge-")
        })],
    ),
    (
        Edge,
        "OpenYurt",
        &[
            Label("openyurt.io/is-edge-worker", Some("true")),
            Annotation("apps.openyurt.io/binding", Some("true")),
            Annotation("node.beta.openyurt.io/autonomy", Some("true")),
            Annotation("node.openyurt.io/autonomy-duration", None),
        ],
    ),
    // At the customer's site: the kubelet ends no pod while it does not reach AWS (aws/eks-hybrid).
    (
        Edge,
        "EKS Hybrid Nodes",
        &[
            Label("eks.amazonaws.com/compute-type", Some("hybrid")),
            Provider("eks-hybrid:///"),
        ],
    ),
    (
        Edge,
        "ACK Edge",
        &[
            Label("alibabacloud.com/is-edge-worker", Some("true")),
            Annotation("node.alibabacloud.com/autonomy-duration", None),
        ],
    ),
    (
        Edge,
        "SuperEdge",
        &[Label("superedge.io/node-edge", Some("enable"))],
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
        let parts = numbers.split('.').collect_vec();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_table_of_the_book_is_made_of_the_marks() {
        let mark = |place: &Place| {
            let (what, key, value) = match place {
                Label(key, value) => ("label", key, *value),
                Annotation(key, value) => ("annotation", key, *value),
                Annotations(start) => return format!("any annotation `{start}…`"),
                Taint(key) => ("taint", key, None),
                Provider(start) => return format!("providerID `{start}…`"),
                Version(looks, _) => return format!("kubelet version `{looks}`"),
            };
            let value = value.map(|value| format!("={value}")).unwrap_or_default();
            let unless = if NOT_EMPTY.contains(key) {
                ", unless empty"
            } else {
                ""
            };
            format!("{what} `{key}{value}`{unless}")
        };
        let rows = MARKS.iter().map(|(kind, maker, places)| {
            let code = match kind {
                Kosmos => "kosmos-leaf",
                Virtual => "virtual-node",
                Edge => "edge-node",
                LeafKind::Selected => unreachable!("it has no maker"),
            };
            let marks = places.iter().map(mark).join("; ");
            format!("| `{code}` | {maker} | {marks} |\n")
        });
        let table = rows.collect::<String>();
        let page = include_str!("../../docs/leaf-nodes.md");
        let (before, after) = page.split_once("| --- | --- | --- |\n").expect("a table");
        let (_, after) = after.split_once("| `leaf-node` |").expect("its last row");
        let made = format!("{before}| --- | --- | --- |\n{table}| `leaf-node` |{after}");
        expect_test::expect_file!["../../docs/leaf-nodes.md"].assert_eq(&made);
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
        let marks = || MARKS.iter().flat_map(|(_, _, places)| *places);
        let of_labels = marks().filter_map(|place| match place {
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
            let tolerated = marks().any(|place| matches!(place, Taint(mark) if *mark == key));
            assert!(!tolerated, "{toleration} is of a mark");
        }
    }
}
