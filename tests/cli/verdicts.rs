//! Verdicts and exit codes, end to end.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::{audit, small};

/// A pod on a Kosmos leaf node whose link is cut needs a person, and nothing that destroys is printed.
#[test]
fn a_pod_behind_a_cut_link_is_left_to_a_person() {
    let stuck = ["--reap-older-than=3s", "--output=json"];
    let ended = audit(&stuck).run().exits(0);
    let report = ended.report();
    let pod = &report["pods"][0];
    let judged = ["namespace", "name", "node", "verdict", "reason"].map(|field| pod[field].clone());
    assert_eq!(
        json!(judged),
        json!(["app", "web-0", "kosmos-cluster7", "manual", "kosmos-leaf"])
    );
    let marks = [
        "label kosmos.io/node",
        "taint kosmos.io/node",
        "annotation kosmos-io/owned-by-cluster=cluster7",
        "name prefix kosmos-",
    ];
    assert_eq!(report["nodes"][0]["leafMarks"], json!(marks));
    let counts = json!({"leave": 0, "manual": 1, "reap": 0, "wait": 0});
    assert_eq!(report["summary"]["verdicts"], counts);
    assert_eq!(
        (&report["mode"], &report["version"]),
        (&json!("snapshot"), &json!(2))
    );
    let steps = pod["steps"].as_array().expect("steps");
    let mut commands = steps.iter().filter_map(|step| step["command"].as_str());
    assert!(
        commands.all(|command| !command.contains("delete")),
        "{steps:?}"
    );
    // The same input gives the same bytes.
    assert_eq!(audit(&stuck).run().out, ended.out);
    expect_file!["../data/golden/kosmos-link-cut.txt"].assert_eq(&audit(&stuck[..1]).run().out);
}

#[test]
fn exit_codes_are_those_of_the_contract() {
    let cut_off = "Node ds04: {ready: null}, Node ds05: {ready: null}";
    for (case, more, args, code) in [
        ("a pod to reap", "", &[][..], 0),
        ("the breaker holds", cut_off, &[], 4),
        (
            "the breaker is off",
            cut_off,
            &["--max-not-ready-percent=100"],
            0,
        ),
        (
            "an object cannot be read",
            "Pod compute-hive01/huebackend-0: {metadata: {deletionTimestamp: 5}}",
            &[],
            3,
        ),
    ] {
        let ended = small(&format!("{{{more}}}"), args).run();
        assert_eq!(ended.code, code, "{case}");
        assert_eq!(ended.report()["exitCode"], code, "{case}");
    }
    // A pod that needs a person makes the exit code 5 only if an option or its variable says so.
    let older = "--reap-older-than=3s";
    for (args, variable, code) in [
        (&[older][..], "", 0),
        (&[older, "--exit-on-manual"], "", 5),
        (&[older], "true", 5),
        (&[older, "--exit-on-manual=false"], "true", 0),
        (&["--exit-on-manual"], "", 0),
    ] {
        let run = audit(args).env("EXIT_ON_MANUAL", variable);
        run.run().exits(code);
    }
}

/// A snapshot is judged, and nothing is tried. A filter is not anchored, as with grep.
#[test]
fn a_snapshot_is_judged_and_nothing_is_tried() {
    let report = small("{}", &["--dry-run"]).run().exits(0).report();
    let pod = &report["pods"][0];
    assert_eq!(pod["reason"], "stuck-on-not-ready-node");
    assert_eq!(pod["outcome"], Value::Null);
    assert_eq!(report["judgedAt"], "2026-01-31T03:00:00Z");
    assert_eq!(report["mode"], "snapshot");
    for (filter, value, pods) in [
        ("NAMESPACE_REGEX", "hive", 1),
        ("NAMESPACE_REGEX", "^hive", 0),
        ("NAMESPACE_EXCLUDE_REGEX", "hive", 0),
    ] {
        let report = small("{}", &[]).env(filter, value).run().exits(0).report();
        assert_eq!(report["summary"]["pods"], pods, "{filter}={value}");
    }
    let waits = audit(&["--output=json"]).run().report();
    assert_eq!(waits["pods"][0]["reason"], "not-overdue");
}
