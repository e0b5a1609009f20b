//! The marks by which a node is known to stand for something that this cluster does not see, or to work on without it.
//!
//! Each alone is enough. They are from the sources of the projects named, and from nodes of a real Kosmos, Virtual Kubelet
//! and KWOK. What real nodes have too is not a mark: the role `agent`, an empty providerID, a role `edge`, a label that keeps
//! load balancers away.

use crate::facts::LeafKind::{self, Edge, Kosmos, Virtual};

/// Names of Kosmos's leaf nodes begin so, in its default mode.
pub const KOSMOS_PREFIX: &str = "kosmos-";

/// What its nodes are, who makes them, and their marks: where each is, and how it looks. `KEY` alone has any value. `…` stands
/// for anything, as a whole value for anything but nothing; `#` for a number.
pub const MARKS: [(LeafKind, &str, &[&str]); 15] = [
    (
        Kosmos,
        "Kosmos",
        // Two spellings; label and taint share one key.
        &[
            "label kosmos.io/node",
            "taint kosmos.io/node",
            "annotation kosmos-io/owned-by-cluster",
        ],
    ),
    (
        Virtual,
        "Liqo",
        &[
            "label liqo.io/type=virtual-node",
            "taint virtual-node.liqo.io/not-allowed",
        ],
    ),
    (
        Virtual,
        "interLink",
        &[
            "label virtual-node.interlink/type",
            "taint virtual-node.interlink/no-schedule",
        ],
    ),
    (
        Virtual,
        "Alibaba Cloud",
        &["label k8s.aliyun.com/vnode", "taint k8s.aliyun.com/vnode"],
    ),
    (
        Virtual,
        "Tencent Cloud",
        &[
            "label node.kubernetes.io/instance-type=eklet",
            "taint eks.tke.cloud.tencent.com/eklet",
        ],
    ),
    (
        Virtual,
        "Oracle Cloud",
        &[
            "annotation oci.oraclecloud.com/virtual-node-pool-id",
            // Its real nodes have ocid1.instance (oci-cloud-controller-manager, IsVirtualNode).
            "providerID ocid1.virtualnode…",
        ],
    ),
    (
        Virtual,
        "Koupleless",
        &[
            "label virtual-kubelet.koupleless.io/component=vnode",
            "taint schedule.koupleless.io/virtual-node",
        ],
    ),
    (
        Virtual,
        "KWOK",
        &[
            "label kwok.x-k8s.io/node=fake",
            "annotation kwok.x-k8s.io/node=fake",
            // Of its own template. A pod that lands there is said to have run, and has not.
            "label type=kwok",
            "kubelet version kwok-…",
        ],
    ),
    (
        Virtual,
        "vcluster",
        &["label vcluster.loft.sh/fake-node=true"],
    ),
    (
        Virtual,
        // What is built on it comes before it: the first mark names the maker.
        "Virtual Kubelet",
        &[
            "label type=virtual-kubelet",
            "label virtual-kubelet.io/provider",
            "taint virtual-kubelet.io/provider",
            // Its library writes two of them, for every provider that is built on it.
            "annotation virtual-kubelet.io/…",
            "kubelet version v#.#.#-vk-…",
        ],
    ),
    (Edge, "KubeEdge", &["kubelet version …-kubeedge-…"]),
    (
        Edge,
        "OpenYurt",
        &[
            "label openyurt.io/is-edge-worker=true",
            "annotation apps.openyurt.io/binding=true",
            "annotation node.beta.openyurt.io/autonomy=true",
            "annotation node.openyurt.io/autonomy-duration=…",
        ],
    ),
    // At the customer's site: the kubelet ends no pod while it does not reach AWS (aws/eks-hybrid).
    (
        Edge,
        "EKS Hybrid Nodes",
        &[
            "label eks.amazonaws.com/compute-type=hybrid",
            "providerID eks-hybrid:///…",
        ],
    ),
    (
        Edge,
        "ACK Edge",
        &[
            "label alibabacloud.com/is-edge-worker=true",
            "annotation node.alibabacloud.com/autonomy-duration=…",
        ],
    ),
    (Edge, "SuperEdge", &["label superedge.io/node-edge=enable"]),
];
/// Its value is the leaf cluster's name.
pub const KOSMOS_OWNER: &str = "kosmos-io/owned-by-cluster";

/// Whether `text` looks like `pattern`, which is written as in [`MARKS`].
pub fn looks_like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('…') => (0..=text.len())
            .filter_map(|at| text.get(at..))
            .any(|text| looks_like(text, rest.as_str())),
        Some('#') => {
            let after = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
            after.len() < text.len() && looks_like(after, rest.as_str())
        }
        Some(letter) => text
            .strip_prefix(letter)
            .is_some_and(|text| looks_like(text, rest.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use itertools::Itertools as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::{kubernetes::RawNode, selector::NodeSelectors};

    #[test]
    fn the_table_of_the_book_is_made_of_the_marks() {
        let mark = |mark: &&str| {
            let (place, looks) = mark.rsplit_once(' ').expect("a place");
            let any = if looks.ends_with("/…") && place == "annotation" {
                "any "
            } else {
                ""
            };
            let (looks, unless) = match looks.strip_suffix("=…") {
                Some(key) => (key, ", unless empty"),
                None => (looks, ""),
            };
            let looks = looks.replace("#.#.#", "…");
            format!("{any}{place} `{looks}`{unless}")
        };
        let rows = MARKS.iter().map(|(kind, maker, marks)| {
            let code = match kind {
                Kosmos => "kosmos-leaf",
                Virtual => "virtual-node",
                Edge => "edge-node",
                LeafKind::Selected => unreachable!("it has no maker"),
            };
            let marks = marks.iter().map(mark).join("; ");
            format!("| `{code}` | {maker} | {marks} |\n")
        });
        let table = rows.collect::<String>();
        let page = include_str!("../../docs/leaf-nodes.md");
        let (before, after) = page.split_once("| --- | --- | --- |\n").expect("a table");
        let (_, after) = after.split_once("| `leaf-node` |").expect("its last row");
        let made = format!("{before}| --- | --- | --- |\n{table}| `leaf-node` |{after}");
        expect_test::expect_file!["../../docs/leaf-nodes.md"].assert_eq(&made);
    }

    /// A mark that is misspelled would be on no node. A program that was built without a version ends in nothing.
    #[test]
    fn each_mark_of_the_table_is_looked_for() {
        let marks = MARKS.iter().flat_map(|(_, _, marks)| *marks);
        for (mark, anything) in marks.cartesian_product(["x", ""]) {
            let (place, looks) = mark.rsplit_once(' ').expect("a place");
            let looks = looks.replace("=…", "=x").replace('…', anything);
            let looks = looks.replace('#', "15");
            let (key, value) = looks.split_once('=').unwrap_or((&looks, ""));
            let node = match place {
                "label" => json!({"metadata": {"labels": {key: value}}}),
                "annotation" => json!({"metadata": {"annotations": {key: value}}}),
                "taint" => json!({"spec": {"taints": [{"key": key}]}}),
                "providerID" => json!({"spec": {"providerID": looks}}),
                "kubelet version" => json!({"status": {"nodeInfo": {"kubeletVersion": looks}}}),
                _ => unreachable!("{mark} is nowhere"),
            };
            let node = serde_json::from_value::<RawNode>(node).expect("a node");
            assert!(node.is_leaf(&NodeSelectors::default()), "{mark}");
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
        let marks = |place: &'static str| {
            let all = MARKS.iter().flat_map(|(_, _, marks)| *marks);
            all.filter_map(move |mark| mark.strip_prefix(place))
        };
        let of_labels = marks("label ").map(|label| match label.split_once('=') {
            None => json!({"key": label, "operator": "DoesNotExist"}),
            Some((key, value)) => json!({"key": key, "operator": "NotIn", "values": [value]}),
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
            let tolerated = marks("taint ").any(|mark| mark == key);
            assert!(!tolerated, "{toleration} is of a mark");
        }
    }
}
