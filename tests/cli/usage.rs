//! Options and variables.

use pod_reaper_test_support::installed::option;
use serde_json::{Value, json};

use crate::{
    Documented, KOSMOS, Reaper, audit, options_with_variables, questions::SIX, reaper, small,
    transcripts::plays,
};

/// A setting of the report, of an audit.
fn setting(run: Reaper, field: &str) -> Value {
    run.run().exits(0).report()["settings"][field].take()
}

/// The node's threshold is the pod's, unless it is set. Kinds are given one by one or in a list, as kubectl abbreviates
/// them too, and selectors in a list. Words are read in any case, as Helm and people write them.
#[test]
fn values_are_read_in_every_form() {
    let none = ("", "");
    for (args, (name, value), field, expected) in [
        (
            &["--reap-older-than=1h 30m"][..],
            none,
            "reapOlderThanSeconds",
            json!(5400),
        ),
        (
            &["--manual-owner-kind=A", "--manual-owner-kind=B, C"],
            none,
            "manualOwnerKinds",
            json!(["A", "B", "C"]),
        ),
        (
            &["--manual-owner-kind=sts,Deploy,ds,rs,rc,CJ"],
            none,
            "manualOwnerKinds",
            json!([
                "StatefulSet",
                "Deployment",
                "DaemonSet",
                "ReplicaSet",
                "ReplicationController",
                "CronJob"
            ]),
        ),
        (
            &["--manual-owner-kind=Statefulset"],
            none,
            "manualOwnerKinds",
            json!(["Statefulset"]),
        ),
        (
            &["--manual-owner-kind=ClickHouse"],
            none,
            "manualOwnerKinds",
            json!(["ClickHouse"]),
        ),
        (
            &[],
            ("MANUAL_OWNER_KIND", "StatefulSet,Job"),
            "manualOwnerKinds",
            json!(["StatefulSet", "Job"]),
        ),
        (
            &["--reap-older-than=1h 30m"],
            ("FENCED_NODE_SELECTOR", "a=b;annotation:off"),
            "fencedNodeSelector",
            json!("a=b;annotation:off"),
        ),
    ] {
        let mut run = audit(args);
        run.command.arg("--output=json");
        if !name.is_empty() {
            run = run.env(name, value);
        }
        assert_eq!(setting(run, field), expected, "{args:?} {name}={value}");
    }
    let mut run = audit(&["--output=JSON", "--dry-run=True"]);
    run.command.envs([
        ("LOG_FORMAT", "Json"),
        ("LOG_LEVEL", "INFO"),
        ("EXIT_ON_MANUAL", "True"),
        ("DRY_RUN", "FALSE"),
    ]);
    let ended = run.run().exits(0);
    let first = ended.err.lines().next().expect("a line");
    let first = serde_json::from_str::<Value>(first).expect("JSON");
    assert_eq!(first["level"], "INFO");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let plain = audit(&["--output=json"]).run().exits(0).out;
    let mut all = audit(&["--output=json"]);
    for Documented { variable, .. } in options_with_variables() {
        let one = audit(&["--output=json"]).env(&variable, "");
        assert_eq!(one.run().exits(0).out, plain, "{variable}");
        all = all.env(&variable, "");
    }
    assert_eq!(all.run().exits(0).out, plain);
}

#[test]
fn an_option_that_must_not_come_from_a_stray_variable_does_not() {
    let stray = [
        ("NOW", "yesterday"),
        ("SNAPSHOT", KOSMOS),
        ("CONTEXT", "nowhere"),
        ("ALL", "true"),
        ("OUTPUT", "yaml"),
        ("NAMESPACE", "elsewhere"),
    ];
    for (args, code) in [(&["--snapshot", SIX][..], 0), (&["--dry-run"], 1)] {
        let plain = reaper(args).run();
        for (name, value) in stray {
            let told = reaper(args).env(name, value).run().exits(code);
            assert_eq!(told.out, plain.out, "{args:?} {name}");
        }
    }
}

/// What a log says after this text, line by line.
fn told(log: &str, text: &str) -> Vec<String> {
    let told = log.lines().filter_map(|line| line.split_once(text));
    told.map(|(_, told)| told.to_owned()).collect()
}

/// The warning has no value, which may be secret.
#[test]
fn a_variable_that_is_nearly_one_of_ours_is_warned_of() {
    let told = |run: Reaper| {
        let ended = run.run().exits(0).never_prints("MARKER");
        told(&ended.err, "The variable ")
    };
    for (name, ours) in [
        ("REAP_OLDER_THN", "REAP_OLDER_THAN"),
        ("REAP_OLDR_THNA", "REAP_OLDER_THAN"),
        ("dry_run", "DRY_RUN"),
        ("DRYRUN", "DRY_RUN"),
        ("DRY-RUN", "DRY_RUN"),
        ("MAX_DELETE", "MAX_DELETES"),
        ("LOGLEVEL", "LOG_LEVEL"),
    ] {
        let run = |args: &[&str]| reaper(&[&["--snapshot", KOSMOS], args].concat());
        let says = format!("{name} has no effect; did you mean {ours}?");
        assert_eq!(told(run(&[]).env(name, "MARKER")), [says]);
        let silent = run(&["--log-level=error"]).env(name, "1");
        assert_eq!(silent.run().exits(0).err, "", "{name}");
    }
    let mut others = audit(&[]).env("MAX_DELETES", "20");
    others.command.envs(
        [
            "NAMESPACE",
            "LOG_FILE",
            "NODE_NAME",
            "CLUSTER_ID",
            "CLUSTER_NODE",
            "OLDPWD",
            "DEBUG",
            "DEADLINE",
            "POD_REAPER_SERVICE_HOST",
        ]
        .map(|name| (name, "10m")),
    );
    assert!(told(others).is_empty());
}

/// Manifests of 0.5 mount settings that this version would not see. An empty variable is not set.
#[test]
fn manifests_of_an_older_version_end_every_command_that_has_options() {
    let says = "error: POD_REAPER_SETTINGS is set, as by the manifests of 0.5, and this version reads no settings from a directory; \
                apply the manifests of this version, or unset POD_REAPER_SETTINGS and set a variable for each option\n";
    for args in [
        &["--dry-run"][..],
        &["--yes", "--dry-run=false"],
        &["--snapshot", KOSMOS],
        &["explain", "vault/vault-0"],
    ] {
        let run = reaper(args).env("POD_REAPER_SETTINGS", "/etc/pod-reaper/settings");
        let error = run.run().exits(2).err;
        assert!(error.starts_with(says), "{args:?}: {error}");
    }
    let none = audit(&["--output=json"]).env("POD_REAPER_SETTINGS", "");
    assert_eq!(setting(none, "reapOlderThanSeconds"), 600);
}

/// Even a wrong value does not count where a stronger one is in its place.
#[test]
fn the_command_line_beats_the_environment() {
    for (variable, args, seconds) in [
        ("30m", &[][..], 1800),
        ("30m", &["--reap-older-than=40m"], 2400),
        ("", &[], 600),
        ("10", &["--reap-older-than=40m"], 2400),
    ] {
        let mut run = audit(args).env("REAP_OLDER_THAN", variable);
        run.command.arg("--output=json");
        let case = format!("{variable} {args:?}");
        assert_eq!(setting(run, "reapOlderThanSeconds"), seconds, "{case}");
    }
}

/// Every command that takes the option refuses the value.
#[test]
fn a_wrong_value_of_a_variable_is_refused() {
    let [run, audit, explain] = [
        &["--dry-run"][..],
        &["--snapshot", KOSMOS],
        &["explain", "vault/vault-0"],
    ];
    let selector = ": \"a in b\" is not a label requirement; write a label selector such as example.org/leaf=true, \
                    or annotation:KEY[=VALUE], or taint:KEY[=VALUE]";
    let regex = ": unclosed character class; write a regular expression such as ^prod- or ^(compute|impala)-";
    let all = [&[], run, audit, explain];
    for (name, value, why, questions) in [
        (
            "MAX_DELETES",
            "-1",
            ": write a whole number such as 50; 0 is no limit",
            &all[..],
        ),
        ("NAMESPACE_REGEX", "[", regex, &all),
        ("FENCED_NODE_SELECTOR", "a in b", selector, &all),
        (
            "REAP_OLDER_THAN",
            "10",
            ": a bare number has no unit; write it with a unit, such as 10m or 1h 30m",
            &all,
        ),
        (
            "CLUSTER_NAME",
            " \n",
            ": write a name such as prod-eu, in one line",
            &[run, audit],
        ),
    ] {
        for question in questions {
            let ended = reaper(question).env(name, value).run().exits(2);
            let error = ended.never_prints("MARKER").err;
            let says = format!("error: invalid value '{value}' for '{name}'{why}\n");
            assert!(error.starts_with(&says), "{question:?}: {error}");
        }
    }
}

/// Every command refuses a typed filter that selects no namespace. The report names a filter from a variable,
/// because one setting serves many clusters.
#[test]
fn a_filter_that_selects_no_namespace_is_wrong_usage() {
    let asks = |variable: (&str, &str), args: &[&str], more: &str| {
        small(more, args).env(variable.0, variable.1).run()
    };
    let codes = |report: &Value| {
        let notices = report["notices"].as_array().into_iter().flatten();
        notices
            .map(|notice| notice["code"].clone())
            .collect::<Vec<_>>()
    };
    let other = ("NAMESPACE_REGEX", "^compute$");
    let named = asks(other, &["-n", "compute-hive01"], "{}");
    let report = named.exits(0).report();
    assert_eq!(report["summary"]["pods"], 1);
    assert!(codes(&report).is_empty());
    let none = ("NAMESPACE_REGEX", "");
    let without = ("NAMESPACE_EXCLUDE_REGEX", "^compute-");
    for (variable, args, says) in [
        (
            other,
            &["-n", "compute-hive0"][..],
            "there is no namespace compute-hive0;",
        ),
        (
            other,
            &["-n", "compute.hive01"],
            "there is no namespace compute.hive01;",
        ),
        (
            none,
            &["--namespace-regex=^compute$"],
            "--namespace-regex selects none of the namespaces",
        ),
        (
            none,
            &["--namespace-exclude-regex=."],
            "--namespace-exclude-regex selects none",
        ),
        (
            without,
            &["-n", "compute-hive01"],
            "-n compute-hive01 and NAMESPACE_EXCLUDE_REGEX select none",
        ),
    ] {
        let ended = asks(variable, args, "{}").exits(2);
        let is_said = ended.err.contains(says)
            && ended.err.contains("list them with: kubectl get namespaces");
        assert!(is_said, "{args:?}: {}", ended.err);
    }
    let report = asks(other, &[], "{}").exits(0).report();
    assert_eq!(report["notices"][0]["code"], "no-namespace");
    // Nobody knows which namespaces there are if none was saved.
    let unsaved = "Namespace compute-hive01: null";
    let report = asks(none, &["--namespace-regex=^compute$"], unsaved)
        .exits(0)
        .report();
    assert!(codes(&report).is_empty());
}

#[test]
fn a_wrong_value_is_refused_with_a_right_one() {
    plays("transcripts/values.txt");
}

#[test]
fn a_wrong_name_is_refused_with_a_similar_one() {
    plays("transcripts/names.txt");
}

#[test]
fn a_file_that_holds_no_state_is_refused() {
    plays("transcripts/saved-state.txt");
}

/// Where nobody can be asked, a run that may delete is wrong usage too.
#[test]
fn a_run_that_may_delete_asks_or_is_told() {
    plays("transcripts/asking.txt");
}

/// A value that is not the default, by what the help calls it.
fn sample(name: &str) -> &str {
    match name {
        "DURATION" => "7m",
        "N" => "7",
        "1-100" => "70",
        "REGEX" => "^a",
        "KIND" => "Deployment",
        "SELECTOR" => "a=b",
        "true|false" => "true",
        words => words.rsplit('|').next().expect("a word"),
    }
}

/// A third value.
fn other(name: &str) -> &str {
    match name {
        "DURATION" => "8m",
        "N" => "8",
        "1-100" => "80",
        "REGEX" => "^b",
        "KIND" => "Job",
        "SELECTOR" => "c=d",
        "true|false" => "false",
        words => words.split('|').next().expect("a word"),
    }
}

/// Each setting of the report can be set by an option and by its variable, to the same value. An option beats the variable.
#[test]
fn a_setting_is_the_same_however_it_is_set() {
    let report = |args: &[&str], variable: Option<(&str, &str)>| {
        let mut run = audit(&[&["--output=json"], args].concat());
        if let Some((name, value)) = variable {
            run = run.env(name, value);
        }
        let ended = run.run();
        assert!([0, 4, 5].contains(&ended.code), "{args:?}: {}", ended.err);
        ended.report()["settings"].take()
    };
    let usual = report(&[], None);
    let fields = usual.as_object().expect("fields").keys();
    let fields = fields.cloned().collect::<Vec<_>>();
    let mut found = 0;
    for Documented {
        long,
        value,
        variable,
        ..
    } in &options_with_variables()
    {
        // The report has its field, if a verdict follows from it.
        let Some(field) = fields
            .iter()
            .find(|field| field.starts_with(&option(variable)))
        else {
            continue;
        };
        found += 1;
        let (value, other) = (sample(value), other(value));
        let long = format!("{long}={value}");
        let typed = report(&[&long], None);
        assert_ne!(typed[field], usual[field], "{long}");
        let variable = |value| Some((variable.as_str(), value));
        assert_eq!(report(&[], variable(value)), typed, "{long} by variable");
        assert_eq!(
            report(&[], variable("")),
            usual,
            "{long} by an empty variable"
        );
        let beside = report(&[&long], variable(other));
        assert_eq!(beside, typed, "{long} beside a variable");
    }
    // Apart from `--all`, which has no variable.
    assert_eq!(found, fields.iter().filter(|field| *field != "all").count());
}
