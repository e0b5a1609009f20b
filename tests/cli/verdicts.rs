//! Verdicts and exit codes, end to end.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::{audit, reaper, small_cluster};

#[test]
fn pods_on_a_cut_off_kosmos_leaf_need_a_person() {
    let ended = audit(&["--reap-older-than=3s", "--output=json"])
        .run()
        .exits(0);
    let report = ended.report();
    let pods = report["pods"].as_array().expect("pods");
    assert_eq!(pods.len(), 1);
    let pod = &pods[0];
    assert_eq!(
        [
            &pod["namespace"],
            &pod["name"],
            &pod["node"],
            &pod["verdict"],
            &pod["reason"]
        ],
        ["app", "web-0", "kosmos-cluster7", "manual", "kosmos-leaf"]
    );
    let detail = pod["detail"].as_str().expect("a sentence");
    let marks = [
        "label kosmos.io/node",
        "taint kosmos.io/node",
        "annotation kosmos-io/owned-by-cluster=cluster7",
        "name prefix kosmos-",
    ];
    for mark in marks {
        assert!(detail.contains(mark), "no {mark:?} in {detail:?}");
    }
    assert_eq!(report["nodes"][0]["leafMarks"], json!(marks));
    assert_eq!(
        report["summary"]["verdicts"],
        json!({"leave": 0, "manual": 1, "reap": 0, "wait": 0})
    );
    assert_eq!(report["mode"], "snapshot");
    assert_eq!(report["version"], 1);
    assert_eq!(report["exitCode"], 0);
    let commands = pod["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| step["command"].to_string());
    assert!(
        commands
            .into_iter()
            .all(|command| !command.contains("delete")),
        "{}",
        ended.out
    );

    let again = audit(&["--reap-older-than=3s", "--output=json"])
        .run()
        .exits(0);
    assert_eq!(again.out, ended.out, "same input, same bytes");
    expect_file!["../data/golden/kosmos-link-cut.txt"]
        .assert_eq(&audit(&["--reap-older-than=3s"]).run().exits(0).out);
}

#[test]
fn the_default_threshold_lets_the_kosmos_pod_wait() {
    let report = audit(&["--output=json"]).run().exits(0).report();
    assert_eq!(report["pods"][0]["reason"], "not-overdue");
}

#[test]
fn something_for_a_person_is_5_only_when_asked_for() {
    audit(&["--reap-older-than=3s", "--exit-on-manual"])
        .run()
        .exits(5);
    audit(&["--reap-older-than=3s"])
        .env("EXIT_ON_MANUAL", "true")
        .run()
        .exits(5);
    audit(&["--reap-older-than=3s", "--exit-on-manual=false"])
        .env("EXIT_ON_MANUAL", "true")
        .run()
        .exits(0);
    let nothing_manual = audit(&["--exit-on-manual"]).run().exits(0);
    assert!(
        nothing_manual.out.contains("Exit code 0."),
        "{}",
        nothing_manual.out
    );
    let report = audit(&["--reap-older-than=3s", "--exit-on-manual", "--output=json"])
        .run()
        .exits(5)
        .report();
    assert_eq!(report["exitCode"], 5);
}

#[test]
fn a_stuck_pod_of_a_snapshot_is_reported_and_the_namespace_filter_holds() {
    let state = small_cluster().to_string();
    let judge = |args: &[&str]| {
        let mut run = reaper(&["--snapshot", "-", "--output=json"]);
        run.command.args(args);
        run.input(state.as_str()).run().exits(0).report()
    };
    let reaped = judge(&[]);
    assert_eq!(reaped["pods"][0]["reason"], "stuck-on-not-ready-node");
    assert_eq!(
        reaped["pods"][0]["outcome"],
        Value::Null,
        "a snapshot is judged, nothing is tried"
    );
    assert_eq!(reaped["judgedAt"], "2026-01-31T03:00:00Z");
    // The expression is not anchored, as with grep.
    assert_eq!(judge(&["--namespace-regex", "hive"])["summary"]["pods"], 1);
    assert_eq!(judge(&["--namespace-regex", "^hive"])["summary"]["pods"], 0);
    assert_eq!(
        judge(&["--namespace-exclude-regex", "hive"])["summary"]["pods"],
        0
    );
    assert_eq!(judge(&["--dry-run"])["mode"], "snapshot");
}

#[test]
fn the_breaker_is_4_and_a_malformed_object_is_3() {
    let mut outage = small_cluster();
    for at in 0..2 {
        outage["items"][at]["status"]["conditions"][0]["status"] = json!("Unknown");
    }
    let held = reaper(&["--snapshot", "-"])
        .input(outage.to_string())
        .run()
        .exits(4);
    assert!(
        held.out.contains("NOTHING IS DELETED (mass-outage)"),
        "{}",
        held.out
    );
    reaper(&["--snapshot", "-", "--max-not-ready-percent=100"])
        .input(outage.to_string())
        .run()
        .exits(0);

    let mut malformed = small_cluster();
    malformed["items"][5]["metadata"]["deletionTimestamp"] = json!(5);
    let unread = reaper(&["--snapshot", "-"])
        .input(malformed.to_string())
        .run()
        .exits(3);
    assert!(
        unread.out.contains("COULD NOT BE READ: 1"),
        "{}",
        unread.out
    );
}
