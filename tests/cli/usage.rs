//! Options and variables.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Forbidden, Reaper, audit, kubeconfig::refused, reaper, small_cluster};

/// Where nobody can be asked, a run that may delete is wrong usage too.
#[test]
fn wrong_values_end_the_run_with_2_and_an_example_of_a_right_one() {
    refused("golden/wrong-usage.txt");
}

/// A variable is meant for the runs of a CronJob. An audit pushes nothing, writes nothing and does not warn.
#[test]
fn an_audit_hands_over_no_metrics() {
    let plain = audit(&[]).run().exits(0);
    let gateway = Forbidden::new();
    let run = audit(&[]).env("PUSH_GATEWAY", &format!("http://{}", gateway.address()));
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("pod-reaper.prom");
    let ended = run
        .env("METRICS_FILE", &file.display().to_string())
        .run()
        .exits(0);
    assert!(!file.exists());
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
    assert_eq!(ended.out, plain.out);
    gateway.was_left_alone();
}

/// The commands that print built-in text are no runs, and must not count as successful ones.
#[test]
fn commands_about_the_program_itself_hand_over_no_metrics() {
    for command in [&["man"][..], &["completions", "bash"]] {
        let gateway = Forbidden::new();
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("pod-reaper.prom");
        let run = reaper(command).env("PUSH_GATEWAY", &format!("http://{}", gateway.address()));
        run.env("METRICS_FILE", &file.display().to_string())
            .run()
            .exits(0);
        assert!(!file.exists(), "{command:?}");
        gateway.was_left_alone();
    }
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let variables = [
        "NAMESPACE_REGEX",
        "NAMESPACE_EXCLUDE_REGEX",
        "REAP_OLDER_THAN",
        "NODE_NOT_READY_FOR",
        "UNREACHABLE_ONLY",
        "MANUAL_OWNER_KIND",
        "LEAF_NODE_SELECTOR",
        "FENCED_NODE_SELECTOR",
        "KUBELET_ALIVE",
        "DRY_RUN",
        "MAX_DELETES",
        "MAX_NOT_READY_PERCENT",
        "DEADLINE",
        "EXIT_ON_MANUAL",
        "CLUSTER_NAME",
        "PUSH_GATEWAY",
        "METRICS_FILE",
        "NO_EVENTS",
        "WAIT_FOR_REPLACEMENTS",
        "LOG_FORMAT",
        "LOG_LEVEL",
    ];
    let plain = audit(&["--output=json"]).run().exits(0);
    for variable in variables {
        let ended = audit(&["--output=json"]).env(variable, "").run();
        assert_eq!(
            (ended.code, &ended.out),
            (0, &plain.out),
            "{variable}: {}",
            ended.err
        );
    }
    let all = variables
        .iter()
        .fold(audit(&["--output=json"]), |run, variable| {
            run.env(variable, "")
        });
    assert_eq!(all.run().exits(0).out, plain.out);
}

#[test]
fn variables_set_what_options_set_and_options_beat_them() {
    let settings = |run: Reaper| run.run().exits(0).report()["settings"].clone();
    let cases: &[(&str, &str, &str, &str, Value, Value)] = &[
        (
            "NAMESPACE_REGEX",
            "^a",
            "--namespace-regex=^b",
            "namespaceRegex",
            json!("^a"),
            json!("^b"),
        ),
        (
            "NAMESPACE_EXCLUDE_REGEX",
            "^a",
            "--namespace-exclude-regex=^b",
            "namespaceExcludeRegex",
            json!("^a"),
            json!("^b"),
        ),
        (
            "REAP_OLDER_THAN",
            "20m",
            "--reap-older-than=1h 30m",
            "reapOlderThanSeconds",
            json!(1200),
            json!(5400),
        ),
        (
            "NODE_NOT_READY_FOR",
            "20m",
            "--node-not-ready-for=0s",
            "nodeNotReadyForSeconds",
            json!(1200),
            json!(0),
        ),
        (
            "MANUAL_OWNER_KIND",
            "StatefulSet,Job",
            "--manual-owner-kind=ReplicaSet",
            "manualOwnerKinds",
            json!(["StatefulSet", "Job"]),
            json!(["ReplicaSet"]),
        ),
        (
            "LEAF_NODE_SELECTOR",
            "a=b",
            "--leaf-node-selector=c in (d,e)",
            "leafNodeSelector",
            json!("a=b"),
            json!("c in (d,e)"),
        ),
        (
            "FENCED_NODE_SELECTOR",
            "a=b;annotation:off",
            "--fenced-node-selector=taint:x=y",
            "fencedNodeSelector",
            json!("a=b;annotation:off"),
            json!("taint:x=y"),
        ),
        (
            "KUBELET_ALIVE",
            "reap",
            "--kubelet-alive=hold",
            "kubeletAlive",
            json!("reap"),
            json!("hold"),
        ),
        (
            "MAX_DELETES",
            "5",
            "--max-deletes=0",
            "maxDeletes",
            json!(5),
            json!(0),
        ),
        (
            "MAX_NOT_READY_PERCENT",
            "80",
            "--max-not-ready-percent=100",
            "maxNotReadyPercent",
            json!(80),
            json!(100),
        ),
    ];
    for (variable, value, option, field, set, beaten) in cases {
        let by_variable = settings(audit(&["--output=json"]).env(variable, value));
        assert_eq!(by_variable[field], *set, "{variable}={value}");
        let by_option = settings(audit(&["--output=json", option]).env(variable, value));
        assert_eq!(by_option[field], *beaten, "{variable}={value} {option}");
    }
    let follows = settings(audit(&["--output=json", "--reap-older-than=20m"]));
    assert_eq!(
        follows["nodeNotReadyForSeconds"], 1200,
        "the node's threshold is the pod's, unless it is set"
    );
    let kinds = settings(audit(&[
        "--output=json",
        "--manual-owner-kind=A",
        "--manual-owner-kind=B, C",
    ]));
    assert_eq!(kinds["manualOwnerKinds"], json!(["A", "B", "C"]));
}

/// As Helm and people write them.
#[test]
fn words_are_read_in_any_case() {
    let run = audit(&["--output=JSON", "--dry-run=Server"])
        .env("LOG_FORMAT", "Json")
        .env("LOG_LEVEL", "INFO");
    // The first was an option until 0.2.0: what it was by default changes nothing.
    let run = run
        .env("UNREACHABLE_ONLY", "False")
        .env("REAP_SCRATCH", "True");
    let ended = run.env("DRY_RUN", "FALSE").run().exits(0);
    assert_eq!(ended.report()["settings"]["reapScratch"], true);
    assert!(ended.err.starts_with('{'), "{}", ended.err);
    let ended = audit(&["-o", "json"])
        .env("KUBELET_ALIVE", "Reap")
        .env("REAP_SCRATCH", "FALSE")
        .run()
        .exits(0);
    assert_eq!(ended.report()["settings"]["kubeletAlive"], "reap");
}

/// What is to be printed is the same whatever a run is told.
#[test]
fn a_wrong_variable_stops_no_command_about_the_program_itself() {
    for args in [
        &["man"][..],
        &["completions", "bash"],
        &["help"],
        &["help", "what-if"],
        &["version"],
    ] {
        let plain = reaper(args).run().exits(0);
        let wrong = reaper(args)
            .env("DRY_RUN", "foo")
            .env("REAP_OLDER_THAN", "10")
            .run()
            .exits(0);
        assert!(!plain.out.is_empty());
        assert_eq!(wrong.out, plain.out, "{args:?}");
    }
}

#[test]
fn a_variable_that_is_nearly_one_of_ours_is_warned_of() {
    for (typed, meant) in [
        ("REAP_OLDER_THN", "REAP_OLDER_THAN"),
        ("REAP_OLDR_THNA", "REAP_OLDER_THAN"),
        ("dry_run", "DRY_RUN"),
        ("DRYRUN", "DRY_RUN"),
        ("DRY-RUN", "DRY_RUN"),
        ("MAX_DELETE", "MAX_DELETES"),
        ("LOGLEVEL", "LOG_LEVEL"),
    ] {
        let ended = audit(&[])
            .env(typed, "MARKER")
            .run()
            .exits(0)
            .never_prints("MARKER");
        let says = format!("The variable {typed} has no effect; did you mean {meant}?");
        assert_eq!(
            ended.err.matches(&says).count(),
            1,
            "{typed}: {}",
            ended.err
        );
        assert_eq!(
            audit(&["--log-level=error"])
                .env(typed, "1")
                .run()
                .exits(0)
                .err,
            ""
        );
    }
    let others = [
        "NAMESPACE",
        "LOG_FILE",
        "NODE_NAME",
        "CLUSTER_ID",
        "CLUSTER_NODE",
        "OLDPWD",
        "DEBUG",
        "DEADLINE",
        "POD_REAPER_SERVICE_HOST",
    ];
    let run = others
        .iter()
        .fold(audit(&[]), |run, name| run.env(name, "10m"))
        .env("NODE_NOT_READY_FOR", "20m");
    let ended = run.run().exits(0);
    assert!(!ended.err.contains("changes nothing"), "{}", ended.err);
}

#[test]
fn options_that_must_not_come_from_a_stray_variable_do_not() {
    let stray = [
        ("YES", "true"),
        ("NOW", "yesterday"),
        ("SNAPSHOT", "/nowhere"),
        ("CONTEXT", "nowhere"),
        ("ALL", "true"),
        ("OUTPUT", "yaml"),
    ];
    let plain = audit(&[]).run().exits(0);
    let with = stray
        .iter()
        .fold(audit(&[]), |run, (name, value)| run.env(name, value))
        .run()
        .exits(0);
    assert_eq!(with.out, plain.out);
}

#[test]
fn a_namespace_is_exactly_that_one() {
    let state = small_cluster().to_string();
    let pods = |name: &str| {
        let run = reaper(&["--snapshot", "-", "-o", "json", "-n", name])
            .env("NAMESPACE_REGEX", "^other$");
        run.input(state.as_str()).run().exits(0).report()["summary"]["pods"].clone()
    };
    assert_eq!(pods("compute-hive01"), 1);
    assert_eq!(pods("compute-hive0"), 0);
    assert_eq!(pods("compute.hive01"), 0, "a dot is a dot");
    let all = reaper(&["--snapshot", "-", "-o", "json", "-A"]).env("NAMESPACE_REGEX", "^other$");
    assert_eq!(
        all.input(state.as_str()).run().exits(0).report()["summary"]["pods"],
        1
    );
}
