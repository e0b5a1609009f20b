//! The marks of leaf nodes: nodes that stand for something that this cluster does not see, or that
//! work on without their cluster.

use std::sync::LazyLock;

use crate::facts::LeafKind;

/// The prefix of the names of Kosmos's leaf nodes, in its default mode.
pub const KOSMOS_PREFIX: &str = "kosmos-";
/// The annotation whose value is the leaf cluster's name.
pub const KOSMOS_OWNER: &str = "kosmos-io/owned-by-cluster";
/// The table of marks, which people edit. Its head explains its form.
const TABLE: &str = include_str!("marks.txt");

/// Each mark of the table, after the kind and the maker of its nodes.
pub static MARKS: LazyLock<Vec<(LeafKind, &str, &str)>> = LazyLock::new(|| {
    let (mut kind, mut maker) = (LeafKind::Virtual, "");
    let mut marks = Vec::new();
    for line in lines() {
        if let Some(mark) = line.strip_prefix(INDENT) {
            marks.push((kind, maker, mark));
        } else if let Some((word, name)) = line.split_once(' ') {
            maker = name;
            kind = match word {
                "kosmos" => LeafKind::Kosmos,
                "edge" => LeafKind::Edge,
                _ => LeafKind::Virtual,
            };
        }
    }
    marks
});

/// The indent of each mark below its maker.
const INDENT: &str = "    ";

/// Lists the lines of the table without its comments.
fn lines() -> impl Iterator<Item = &'static str> {
    TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.trim_start().starts_with('#'))
}

/// Reports whether `text` matches `pattern`, which has the form of the table's patterns.
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
        let mark = |mark: &str| {
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
        let makers = MARKS.iter().chunk_by(|(kind, maker, _)| (*kind, *maker));
        let rows = makers.into_iter().map(|((kind, maker), marks)| {
            let code = match kind {
                LeafKind::Kosmos => "kosmos-leaf",
                LeafKind::Virtual => "virtual-node",
                LeafKind::Edge => "edge-node",
                LeafKind::Selected => unreachable!("it has no maker"),
            };
            let marks = marks.map(|(_, _, looks)| mark(looks)).join("; ");
            format!("| `{code}` | {maker} | {marks} |\n")
        });
        let table = rows.collect::<String>();
        let page = include_str!("../../docs/leaf-nodes.md");
        let (before, after) = page.split_once("| --- | --- | --- |\n").expect("a table");
        let (_, after) = after.split_once("| `leaf-node` |").expect("its last row");
        let made = format!("{before}| --- | --- | --- |\n{table}| `leaf-node` |{after}");
        expect_test::expect_file!["../../docs/leaf-nodes.md"].assert_eq(&made);
    }

    /// A mark under an unknown word would be taken for a virtual node's, and one that is not
    /// indented for a maker.
    #[test]
    fn each_line_of_the_table_is_a_mark_or_says_whose_marks_follow() {
        let makers = ["kosmos ", "virtual ", "edge "];
        let of_nobody = lines().next().is_some_and(|line| line.starts_with(' '));
        assert!(!of_nobody, "the first mark is nobody's");
        for line in lines().filter(|line| !line.starts_with(INDENT)) {
            assert!(
                makers.iter().any(|word| line.starts_with(word)),
                "{line:?} says neither what nodes are nor how a mark looks"
            );
        }
    }

    /// A mark that is misspelled would be on no node. A program that was built without a version
    /// ends in nothing.
    #[test]
    fn each_mark_of_the_table_is_looked_for() {
        let marks = MARKS.iter().map(|(_, _, mark)| mark);
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

    /// The CronJob's pod may start on no node that a label or taint marks. A mark that is added
    /// here is to be added there.
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
            let all = MARKS.iter();
            all.filter_map(move |(_, _, mark)| mark.strip_prefix(place))
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
