//! What is told besides the verdicts, end to end.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use itertools::Itertools as _;

use crate::{SMALL, reaper, saved};

/// The small cluster with two more pods: a running pod of a Deployment that tolerates its dead node forever, and a Terminating
/// pod on a Ready node.
fn with_a_pod_that_stays() -> String {
    saved(&format!(
        "{SMALL}
    Namespace shop: {{}}
    Pod shop/web-1: {{grace: null, owner: ReplicaSet web-7c9d, metadata: {{labels: {{pod-template-hash: 7c9d}}}},
        spec: {{tolerations: [{{operator: Exists}}]}}}}
    Pod compute-hive01/other-0: {{node: ds04}}
        "
    ))
}

#[test]
fn notices_are_in_every_format_and_change_no_exit_code() {
    // A filter from a variable serves many clusters, so that it may match nothing.
    let judge_with = |filter: &str, args: &[&str]| {
        let mut run = reaper(&["--snapshot", "-"]);
        run.command.env("NAMESPACE_REGEX", filter).args(args);
        run.input(with_a_pod_that_stays()).run().exits(0)
    };
    let judge = |args: &[&str]| judge_with("", args);
    let text = judge(&[]).out;
    let notices = text
        .split_once("WORTH KNOWING")
        .and_then(|(_, rest)| rest.split_once("pod-reaper 0."));
    expect![[r#"
        1 more Terminating pod is on a Ready node; --all lists them  [on-ready-nodes]"#]]
    .assert_eq(notices.expect("a section before the summary").0.trim());
    let page = judge(&["--output", "html"]).out;
    for code in ["never-evicted", "on-ready-nodes"] {
        assert!(page.contains(code), "{code}: {page}");
    }
    let codes = |filter: &str| {
        let report = judge_with(filter, &["--output=json"]).report();
        let notices = report["notices"].as_array().expect("notices").iter();
        notices
            .map(|notice| notice["code"].as_str().expect("a code").to_owned())
            .collect_vec()
    };
    assert_eq!(codes(""), ["never-evicted", "on-ready-nodes"]);
    assert_eq!(codes("^hive"), ["no-namespace"]);
}

#[test]
fn a_filter_that_matches_nothing_is_told_first() {
    let mut run = reaper(&["--snapshot", "-"]);
    run.command.env("NAMESPACE_REGEX", "^misspelt$");
    let text = run.input(with_a_pod_that_stays()).run().exits(0).out;
    let first = text.lines().take(3).join(" ");
    assert!(first.contains("^misspelt$"), "{text}");
}
