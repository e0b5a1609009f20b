//! Options and variables.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Forbidden, KOSMOS, KOSMOS_NOW, Reaper, audit, reaper, small_cluster};

#[test]
fn wrong_values_end_the_run_with_2_and_an_example_of_a_right_one() {
    type Case = (
        &'static str,
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
        [&'static str; 2],
    );
    let cases: &[Case] = &[
        (
            "bare number",
            &[],
            &[("REAP_OLDER_THAN", "10")],
            ["for 'REAP_OLDER_THAN'", "10m"],
        ),
        (
            "negative duration",
            &[],
            &[("REAP_OLDER_THAN", "-5m")],
            ["for 'REAP_OLDER_THAN'", "10m"],
        ),
        (
            "empty duration",
            &["--reap-older-than", ""],
            &[],
            ["--reap-older-than", "10m"],
        ),
        (
            "negative, typed",
            &["--reap-older-than", "-5m"],
            &[],
            ["--reap-older-than", "10m"],
        ),
        (
            "negative, typed with =",
            &["--reap-older-than=-5m"],
            &[],
            ["--reap-older-than", "10m"],
        ),
        (
            "months for minutes",
            &["--reap-older-than", "10M"],
            &[],
            ["--reap-older-than", "10m"],
        ),
        (
            "words",
            &["--reap-older-than", "ten minutes"],
            &[],
            ["--reap-older-than", "10m"],
        ),
        (
            "an option as value",
            &["--reap-older-than", "--all"],
            &[],
            ["--reap-older-than", "10m"],
        ),
        (
            "bare number",
            &["--node-not-ready-for", "600"],
            &[],
            ["--node-not-ready-for", "10m"],
        ),
        (
            "bare number",
            &[],
            &[("NODE_NOT_READY_FOR", "600")],
            ["for 'NODE_NOT_READY_FOR'", "10m"],
        ),
        (
            "bare number",
            &["--deadline", "480"],
            &[],
            ["--deadline", "10m"],
        ),
        (
            "bare number",
            &[],
            &[("DEADLINE", "480")],
            ["for 'DEADLINE'", "10m"],
        ),
        (
            "broken regex",
            &[],
            &[("NAMESPACE_REGEX", "[")],
            ["for 'NAMESPACE_REGEX'", "^prod-"],
        ),
        (
            "empty regex",
            &["--namespace-regex", ""],
            &[],
            ["--namespace-regex", "^prod-"],
        ),
        (
            "broken regex",
            &[],
            &[("NAMESPACE_EXCLUDE_REGEX", "(")],
            ["for 'NAMESPACE_EXCLUDE_REGEX'", "^prod-"],
        ),
        (
            "empty regex",
            &["--namespace-exclude-regex="],
            &[],
            ["--namespace-exclude-regex", "^prod-"],
        ),
        (
            "neither yes nor no",
            &[],
            &[("DRY_RUN", "maybe")],
            ["for 'DRY_RUN'", "server"],
        ),
        (
            "a number",
            &[],
            &[("DRY_RUN", "1")],
            ["for 'DRY_RUN'", "server"],
        ),
        ("empty", &["--dry-run="], &[], ["--dry-run", "server"]),
        (
            "neither yes nor no",
            &[],
            &[("REAP_SCRATCH", "maybe")],
            ["for 'REAP_SCRATCH'", "true, false"],
        ),
        (
            "neither yes nor no",
            &[],
            &[("EXIT_ON_MANUAL", "maybe")],
            ["for 'EXIT_ON_MANUAL'", "true, false"],
        ),
        (
            "no share",
            &[],
            &[("MAX_NOT_READY_PERCENT", "0")],
            ["for 'MAX_NOT_READY_PERCENT'", "from 1 to 100, such as 55"],
        ),
        (
            "more than all",
            &[],
            &[("MAX_NOT_READY_PERCENT", "101")],
            ["for 'MAX_NOT_READY_PERCENT'", "from 1 to 100, such as 55"],
        ),
        (
            "a percent sign",
            &["--max-not-ready-percent", "55%"],
            &[],
            ["--max-not-ready-percent", "1-100"],
        ),
        (
            "below none",
            &["--max-deletes=-1"],
            &[],
            ["--max-deletes", "<N>"],
        ),
        (
            "no set",
            &[],
            &[("LEAF_NODE_SELECTOR", "a in b")],
            ["for 'LEAF_NODE_SELECTOR'", "example.org/leaf=true"],
        ),
        (
            "empty",
            &["--leaf-node-selector", ""],
            &[],
            ["--leaf-node-selector", "example.org/leaf=true"],
        ),
        (
            "no key",
            &["--leaf-node-selector=annotation:"],
            &[],
            ["--leaf-node-selector", "annotation:KEY[=VALUE]"],
        ),
        (
            "one of two",
            &[],
            &[("FENCED_NODE_SELECTOR", "a=b;taint:a b")],
            ["for 'FENCED_NODE_SELECTOR'", "taint:KEY[=VALUE]"],
        ),
        (
            "no such word",
            &[],
            &[("KUBELET_ALIVE", "release")],
            ["for 'KUBELET_ALIVE'", "hold-unique, hold, reap"],
        ),
        (
            "an option that is gone",
            &["--unreachable-only"],
            &[],
            [
                "--unreachable-only no longer exists",
                "--kubelet-alive=hold",
            ],
        ),
        (
            "typed as what it was by default",
            &["--unreachable-only=false"],
            &[],
            [
                "--unreachable-only no longer exists",
                "--kubelet-alive=hold",
            ],
        ),
        (
            "its variable, with whatever it means",
            &["what-if", "ds06"],
            &[("UNREACHABLE_ONLY", "yes")],
            ["UNREACHABLE_ONLY no longer exists", "KUBELET_ALIVE=hold"],
        ),
        (
            "empty",
            &["--manual-owner-kind", ""],
            &[],
            ["--manual-owner-kind", "StatefulSet"],
        ),
        (
            "nothing after a comma",
            &[],
            &[("MANUAL_OWNER_KIND", "Job,")],
            ["for 'MANUAL_OWNER_KIND'", "StatefulSet"],
        ),
        (
            "no moment",
            &["--now", "yesterday", "--snapshot", KOSMOS],
            &[],
            ["--now", "2026-01-31T03:00:00Z"],
        ),
        (
            "a moment without a snapshot",
            &["--now", KOSMOS_NOW],
            &[],
            ["required", "--snapshot <FILE>"],
        ),
        (
            "no form",
            &["--output", "yaml"],
            &[],
            ["--output", "text, json, markdown, html"],
        ),
        (
            "no form",
            &[],
            &[("LOG_FORMAT", "xml")],
            ["for 'LOG_FORMAT'", "text, json"],
        ),
        (
            "no level",
            &[],
            &[("LOG_LEVEL", "loud")],
            ["for 'LOG_LEVEL'", "off, error, warn, info"],
        ),
        (
            "empty",
            &["--snapshot", ""],
            &[],
            ["--snapshot", "file name"],
        ),
        (
            "empty",
            &["--kubeconfig", ""],
            &[],
            ["--kubeconfig", "file name"],
        ),
        ("empty", &["--context", ""], &[], ["--context", "empty"]),
        (
            "a cluster for a snapshot",
            &["--context", "c", "--snapshot", KOSMOS],
            &[],
            ["--context", "--snapshot"],
        ),
        (
            "a cluster for a snapshot",
            &["--kubeconfig", "k", "--snapshot", KOSMOS],
            &[],
            ["--kubeconfig", "--snapshot"],
        ),
        (
            "two lines",
            &[],
            &[("CLUSTER_NAME", "a\nb")],
            ["for 'CLUSTER_NAME'", "prod-eu"],
        ),
        (
            "no URL",
            &[],
            &[("PUSH_GATEWAY", "gateway:9091")],
            ["for 'PUSH_GATEWAY'", "http://pushgateway.monitoring:9091"],
        ),
        (
            "empty",
            &["--push-gateway", ""],
            &[],
            ["--push-gateway", "http://pushgateway.monitoring:9091"],
        ),
        (
            "empty",
            &["--metrics-file", ""],
            &[],
            ["--metrics-file", "empty"],
        ),
        (
            "metrics of a snapshot",
            &["--metrics-file", "f", "--snapshot", KOSMOS],
            &[],
            ["--metrics-file", "--snapshot"],
        ),
        ("a slip", &["--dry-rnu"], &[], ["--dry-rnu", "--dry-run"]),
        ("an argument", &["ds06"], &[], ["ds06", "--help"]),
    ];
    for (name, args, variables, parts) in cases {
        let run = variables
            .iter()
            .fold(reaper(args), |run, (name, value)| run.env(name, value));
        let ended = run.run();
        assert_eq!(
            ended.code, 2,
            "{name}: {args:?} {variables:?}:\n{}{}",
            ended.out, ended.err
        );
        assert_eq!(ended.out, "", "{name}: {args:?} {variables:?}");
        for part in parts {
            assert!(
                ended.err.contains(part),
                "{name}: {args:?} {variables:?}: no {part:?} in:\n{}",
                ended.err
            );
        }
    }
}

#[test]
fn an_error_reads_as_a_sentence() {
    expect![[r#"
        error: invalid value '10' for '--reap-older-than <DURATION>': a bare number has no unit; write it with a unit, such as 10m or 1h 30m

        For more information, try '--help'.
    "#]]
    .assert_eq(&reaper(&["--reap-older-than", "10"]).run().exits(2).err);
    expect![[r#"
        error: invalid value '[' for 'NAMESPACE_REGEX': unclosed character class; write a regular expression such as ^prod- or ^(compute|impala)-

        For more information, try '--help'.
    "#]]
    .assert_eq(&reaper(&[]).env("NAMESPACE_REGEX", "[").run().exits(2).err);
    let typed = reaper(&["--reap-older-than", "10"])
        .env("REAP_OLDER_THAN", "20m")
        .run()
        .exits(2);
    typed.shows_on_stderr(&["invalid value '10' for '--reap-older-than"]);
}

#[test]
fn a_push_gateway_that_is_refused_is_not_repeated() {
    let wrong = "ftp://reaper:MARKER@gateway.example";
    let typed = |args: &[&str]| reaper(&[args, &[wrong]].concat());
    for (run, name) in [
        (typed(&["--push-gateway"]), "'--push-gateway <URL>'"),
        (
            reaper(&["--push-gateway=http://MARKER:MARKER@/ a"]),
            "'--push-gateway <URL>'",
        ),
        (reaper(&[]).env("PUSH_GATEWAY", wrong), "'PUSH_GATEWAY'"),
    ] {
        let says = format!("for {name}: it is not the URL of a Pushgateway");
        run.run()
            .exits(2)
            .shows_on_stderr(&[&says])
            .never_prints("MARKER");
    }
    let right = "http://reaper:MARKER@gateway.example";
    reaper(&["--help"])
        .env("PUSH_GATEWAY", right)
        .run()
        .exits(0)
        .never_prints("MARKER");
    reaper(&["--snapshot", KOSMOS, "--push-gateway", right])
        .run()
        .exits(2)
        .never_prints("MARKER");
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
    for value in ["yes", "1", "on", " true"] {
        reaper(&[])
            .env("REAP_SCRATCH", value)
            .run()
            .exits(2)
            .shows_on_stderr(&["REAP_SCRATCH"]);
    }
}

#[test]
fn the_value_of_an_option_that_has_to_be_joined_to_it_is_not_taken_for_a_command() {
    reaper(&["--dry-run", "server"])
        .run()
        .exits(2)
        .shows_on_stderr(&["--dry-run=server"]);
    reaper(&["--reap-scratch", "True"])
        .run()
        .exits(2)
        .shows_on_stderr(&["--reap-scratch=True"]);
    let asked = reaper(&["explain", "a/b", "--reap-scratch", "true"]);
    asked
        .run()
        .exits(2)
        .shows_on_stderr(&["--reap-scratch=true"]);
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
    reaper(&["-A", "-n", "a"])
        .run()
        .exits(2)
        .shows_on_stderr(&["--all-namespaces", "--namespace"]);
    reaper(&["-A", "--namespace-regex", "b"])
        .run()
        .exits(2)
        .shows_on_stderr(&["leave one out"]);
    reaper(&["-n", "a", "--namespace-regex", "b"])
        .run()
        .exits(2)
        .shows_on_stderr(&["leave one out"]);
    reaper(&["-n", "A*"])
        .run()
        .exits(2)
        .shows_on_stderr(&["--namespace-regex"]);
}
