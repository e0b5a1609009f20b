//! The marks of leaf nodes: nodes that stand for something that this cluster cannot see, or that
//! keep working without their cluster.

use derive_more::Display;
use itertools::Itertools as _;

use crate::facts::LeafKind;

/// The prefix of the names of Kosmos's leaf nodes, in its default mode.
pub const KOSMOS_PREFIX: &str = "kosmos-";
/// The annotation whose value is the leaf cluster's name.
pub const KOSMOS_OWNER: &str = "kosmos-io/owned-by-cluster";

/// A mark of leaf nodes. One mark is enough to make a node a leaf node.
#[derive(Debug, Clone, Copy, Display)]
#[display("{part} {}", [*key, value.unwrap_or_default()].iter().filter(|it| !it.is_empty()).format("="))]
pub struct Mark {
    pub kind: LeafKind,
    /// The project or vendor that creates such nodes.
    pub maker: &'static str,
    pub part: NodePart,
    /// The key or its pattern. Empty if the part has no key.
    pub key: &'static str,
    /// The pattern of the value; `None` matches any value.
    pub value: Option<&'static str>,
}

/// A part of a node that can carry a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
pub enum NodePart {
    #[display("label")]
    Label,
    /// A taint, with any value and effect.
    #[display("taint")]
    Taint,
    #[display("annotation")]
    Annotation,
    #[display("kubelet version")]
    KubeletVersion,
    /// The name of the machine at its provider.
    #[display("providerID")]
    ProviderId,
}

/// Makes the rows of the table.
macro_rules! marks {
    () => { None };
    ($value:literal) => { Some($value) };
    ($($kind:ident $maker:literal { $($part:ident $($key:literal)? $(= $value:literal)?;)* })*) => {
        &[$($(Mark {
            kind: LeafKind::$kind,
            maker: $maker,
            part: NodePart::$part,
            key: concat!($($key)?),
            value: marks!($($value)?),
        },)*)*]
    };
}

/// The marks, grouped by kind and maker. The first mark that a node carries names its maker, so
/// makers that build on Virtual Kubelet come before Virtual Kubelet.
///
/// In a key or a value, … stands for any text; a value that is only … must not be empty.
///
/// The marks come from the sources of these projects, and from nodes of a real Kosmos, Virtual
/// Kubelet and KWOK. Something that real nodes also have is not a mark: the role "agent", an empty
/// providerID, a role "edge", a label that keeps load balancers away.
pub const MARKS: &[Mark] = marks! {
    Kosmos "Kosmos" {
        // Two spellings; label and taint share one key.
        Label "kosmos.io/node";
        Taint "kosmos.io/node";
        Annotation "kosmos-io/owned-by-cluster";
    }
    Virtual "Liqo" {
        Label "liqo.io/type" = "virtual-node";
        Taint "virtual-node.liqo.io/not-allowed";
    }
    Virtual "interLink" {
        Label "virtual-node.interlink/type";
        Taint "virtual-node.interlink/no-schedule";
    }
    Virtual "Alibaba Cloud" {
        Label "k8s.aliyun.com/vnode";
        Taint "k8s.aliyun.com/vnode";
    }
    Virtual "Tencent Cloud" {
        Label "node.kubernetes.io/instance-type" = "eklet";
        Taint "eks.tke.cloud.tencent.com/eklet";
    }
    Virtual "Oracle Cloud" {
        Annotation "oci.oraclecloud.com/virtual-node-pool-id";
        // OKE's real nodes have ocid1.instance (oci-cloud-controller-manager, IsVirtualNode).
        ProviderId = "ocid1.virtualnode…";
    }
    Virtual "Koupleless" {
        Label "virtual-kubelet.koupleless.io/component" = "vnode";
        Taint "schedule.koupleless.io/virtual-node";
    }
    Virtual "KWOK" {
        Label "kwok.x-k8s.io/node" = "fake";
        Annotation "kwok.x-k8s.io/node" = "fake";
        // From KWOK's own template. KWOK reports a pod on such a node as having run, although the
        // pod has not.
        Label "type" = "kwok";
        KubeletVersion = "kwok-…";
    }
    Virtual "vcluster" {
        Label "vcluster.loft.sh/fake-node" = "true";
    }
    Virtual "VirtualCluster" {
        Label "tenancy.x-k8s.io/virtualnode" = "true";
    }
    Virtual "Virtual Kubelet" {
        Label "type" = "virtual-kubelet";
        Label "virtual-kubelet.io/provider";
        Taint "virtual-kubelet.io/provider";
        // Virtual Kubelet's library writes two of these marks, for every provider that is built on
        // it.
        Annotation "virtual-kubelet.io/…";
        KubeletVersion = "v…-vk-…";
    }
    Edge "KubeEdge" {
        KubeletVersion = "…-kubeedge-…";
    }
    Edge "OpenYurt" {
        Label "openyurt.io/is-edge-worker" = "true";
        Annotation "apps.openyurt.io/binding" = "true";
        Annotation "node.beta.openyurt.io/autonomy" = "true";
        Annotation "node.openyurt.io/autonomy-duration" = "…";
    }
    // Nodes at the customer's site: the kubelet terminates no pod while it cannot reach AWS
    // (aws/eks-hybrid).
    Edge "EKS Hybrid Nodes" {
        Label "eks.amazonaws.com/compute-type" = "hybrid";
        ProviderId = "eks-hybrid:///…";
    }
    Edge "ACK Edge" {
        Label "alibabacloud.com/is-edge-worker" = "true";
        Annotation "node.alibabacloud.com/autonomy-duration" = "…";
    }
    Edge "SuperEdge" {
        Label "superedge.io/node-edge" = "enable";
    }
};

/// Reports whether `text` matches `pattern`, which has the form of the table's patterns.
pub fn looks_like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('…') => (0..=text.len())
            .filter_map(|at| text.get(at..))
            .any(|text| looks_like(text, rest.as_str())),
        Some(letter) => text
            .strip_prefix(letter)
            .is_some_and(|text| looks_like(text, rest.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pod_reaper_test_support::pages;
    use serde_json::Value;

    use super::*;
    use crate::kubernetes::RawNode;

    #[test]
    fn the_table_of_the_book_is_made_of_the_marks() {
        let looks = |mark: &Mark| {
            let place = mark.part;
            let any = if mark.key.ends_with('…') {
                "any "
            } else {
                ""
            };
            let (value, unless) = match mark.value.unwrap_or_default() {
                "…" => ("", ", unless empty"),
                value => (value, ""),
            };
            let looks = [mark.key, value].into_iter().filter(|it| !it.is_empty());
            let looks = looks.format("=");
            format!("{any}{place} `{looks}`{unless}")
        };
        let makers = MARKS.iter().chunk_by(|mark| (mark.kind, mark.maker));
        let rows = makers.into_iter().map(|((kind, maker), marks)| {
            let code = match kind {
                LeafKind::Kosmos => "kosmos-leaf",
                LeafKind::Virtual => "virtual-node",
                LeafKind::Edge => "edge-node",
                LeafKind::Selected | LeafKind::NeverReported => unreachable!("it has no maker"),
            };
            let marks = marks.map(looks).join("; ");
            format!("| `{code}` | {maker} | {marks} |\n")
        });
        let table = rows.collect::<String>();
        let (titles, last) = ("| --- | --- | --- |\n", "| `leaf-node` |");
        pages::compare("docs/leaf-nodes.md", titles, last, &table);
    }

    /// No node would carry a misspelled mark.
    #[test]
    fn each_mark_of_the_table_is_looked_for() {
        let nodes = include_str!("../../tests/data/leaf-marks.yaml");
        let nodes = serde_saphyr::from_str::<Vec<RawNode>>(nodes).expect("nodes");
        for mark in MARKS {
            let is_there = nodes.iter().any(|node| node.has(mark));
            assert!(is_there, "{mark:?} is on none");
        }
    }

    /// The pod of a run may start on no node that a label or taint marks: `UPDATE_EXPECT=1` writes the
    /// lines of the labels.
    #[test]
    fn the_reapers_own_pod_is_kept_off_every_node_with_a_mark_that_scheduling_knows() {
        let marks = |part: NodePart| MARKS.iter().filter(move |mark| mark.part == part);
        // One expression for each key, with the values of all marks with that key.
        let keys = marks(NodePart::Label).map(|mark| mark.key).unique();
        let expressions = keys.map(|key| {
            let values = marks(NodePart::Label).filter(|mark| mark.key == key);
            let values = values.map(|mark| Some(mark.value?.replace("true", "\"true\"")));
            match values.collect::<Option<Vec<_>>>() {
                None => format!("- {{key: {key}, operator: DoesNotExist}}"),
                Some(values) => {
                    let values = values.join(", ");
                    format!("- {{key: {key}, operator: NotIn, values: [{values}]}}")
                }
            }
        });
        let expressions = expressions.collect_vec();
        for file in [
            "cronjob/base/cronjob.yaml",
            "charts/pod-reaper/templates/_helpers.tpl",
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let manifest = std::fs::read_to_string(&path).expect("a manifest");
            let (head, rest) = manifest.split_once("# No leaf node").expect("its comment");
            let is_mark = |line: &&str| line.trim_start().starts_with("- {key: ");
            let is_before = |line: &&str| !is_mark(line);
            let comment = rest.lines().take_while(is_before).collect_vec();
            let after = rest.lines().skip(comment.len()).skip_while(is_mark);
            let marks = rest.lines().find(is_mark).expect("a mark");
            let indent = &marks[..marks.len() - marks.trim_start().len()];
            let made = expressions.iter().map(|line| format!("{indent}{line}"));
            let lines = comment.into_iter().map(str::to_owned).chain(made);
            let lines = lines.chain(after.map(str::to_owned)).join("\n");
            expect_test::expect_file![path].assert_eq(&format!("{head}# No leaf node{lines}\n"));
        }

        let manifest: Value =
            serde_saphyr::from_str(include_str!("../../cronjob/base/cronjob.yaml")).expect("YAML");
        let pod = &manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        for toleration in pod["tolerations"].as_array().expect("tolerations") {
            let key = toleration["key"].as_str().unwrap_or_default();
            assert_ne!(key, "", "{toleration} is of any taint");
            let tolerated = marks(NodePart::Taint).any(|mark| mark.key == key);
            assert!(!tolerated, "{toleration} is of a mark");
        }
    }
}
