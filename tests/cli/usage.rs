//! Options and variables.

use std::fs;

use itertools::Itertools as _;
use pod_reaper_test_support::installed::option;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Documented, Forbidden, KOSMOS, Reaper, audit, kubeconfig::kubeconfig, options_with_variables,
    questions::SIX, reaper, small, transcripts::plays,
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
        (&[], ("REAP_SCRATCH", "FALSE"), "reapScratch", json!(false)),
    ] {
        let mut run = audit(args);
        run.command.arg("--output=json");
        if !name.is_empty() {
            run = run.env(name, value);
        }
        assert_eq!(setting(run, field), expected, "{args:?} {name}={value}");
    }
    let mut run = audit(&["--output=JSON", "--dry-run=Server"]);
    run.command.envs([
        ("LOG_FORMAT", "Json"),
        ("LOG_LEVEL", "INFO"),
        ("REAP_SCRATCH", "True"),
        ("DRY_RUN", "FALSE"),
    ]);
    let ended = run.run().exits(0);
    assert_eq!(ended.report()["settings"]["reapScratch"], true);
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

/// A file for each variable. One that cannot be read ends a run before anything else is read.
#[test]
fn a_directory_has_settings() {
    plays("transcripts/settings.txt");
    let files = [
        ("REAP_OLDER_THAN", "20m"),
        ("MANUAL_OWNER_KIND", "Job,StatefulSet"),
        ("MAX_DELETES", "7"),
        ("NAMESPACE_REGEX", ""),
    ];
    let report = audit(&["--output=json"])
        .settings(&files)
        .run()
        .exits(0)
        .report();
    for (field, expected) in [
        ("reapOlderThanSeconds", json!(1200)),
        ("manualOwnerKinds", json!(["Job", "StatefulSet"])),
        ("maxDeletes", json!(7)),
        ("namespaceRegex", Value::Null),
    ] {
        assert_eq!(report["settings"][field], expected, "{field}");
    }
    let none = audit(&["--output=json"]).env("POD_REAPER_SETTINGS", "");
    assert_eq!(setting(none, "reapOlderThanSeconds"), 600);
}

/// Even a wrong value does not count where a stronger one is in its place.
#[test]
fn the_environment_beats_a_file_and_the_command_line_beats_both() {
    for (file, variable, args, seconds) in [
        ("20m", Some("30m"), &[][..], 1800),
        ("20m", Some("30m"), &["--reap-older-than=40m"], 2400),
        ("20m", None, &["--reap-older-than=40m"], 2400),
        ("20m", Some(""), &[], 1200),
        ("", None, &[], 600),
        ("10", None, &["--reap-older-than=40m"], 2400),
        ("10", Some("30m"), &[], 1800),
    ] {
        let mut run = audit(args).settings(&[("REAP_OLDER_THAN", file)]);
        run.command.arg("--output=json");
        if let Some(value) = variable {
            run = run.env("REAP_OLDER_THAN", value);
        }
        let case = format!("{file} {variable:?} {args:?}");
        assert_eq!(setting(run, "reapOlderThanSeconds"), seconds, "{case}");
    }
}

/// The value is refused like that of a variable, whatever is asked, and a password is never shown.
#[test]
fn a_wrong_value_in_a_file_is_refused() {
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
        // One newline is cut.
        (
            "CLUSTER_NAME",
            " \n",
            ": write a name such as prod-eu, in one line",
            &[run, audit],
        ),
    ] {
        for question in questions {
            let ended = reaper(question).settings(&[(name, value)]).run().exits(2);
            let error = ended.never_prints("MARKER").err;
            let says = format!("error: invalid value '{value}' for '{name}'{why}\n");
            assert!(error.starts_with(&says), "{question:?}: {error}");
        }
    }
}

/// The names of files that set nothing: each is no option, or one that only a component sets.
const WITHOUT_EFFECT: [&str; 21] = [
    "ALL",
    "CONTEXT",
    "HOME",
    "HTTPS_PROXY",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "LD_PRELOAD",
    "MAX_DELETS",
    "NAMESPACE",
    "NOW",
    "OUTPUT",
    "PATH",
    "POD_NAME",
    "POD_REAPER_SETTINGS",
    "REAP_SCRATCH",
    "REQUIRE_GUARD",
    "SNAPSHOT",
    "SSL_CERT_FILE",
    "YES",
    "max_deletes",
];

/// The log has the name of a file without effect, and not the value.
#[test]
fn what_is_no_option_cannot_be_set_by_a_file() {
    let others = [
        ("MANUAL_OWNER_KIND", "Job"),
        ("MAX_DELETES", "7"),
        ("NAMESPACE_REGEX", ""),
    ];
    let files = [&WITHOUT_EFFECT.map(|name| (name, "MARKER"))[..], &others].concat();
    let run = reaper(&["--snapshot", KOSMOS]).settings(&files);
    let log = run.run().exits(0).never_prints("MARKER").err;
    let expected = WITHOUT_EFFECT.map(|name| match name {
        "MAX_DELETS" => format!("{name:?} has no effect; did you mean MAX_DELETES"),
        _ => format!("{name:?} has no effect"),
    });
    assert_eq!(told(&log, "The setting "), expected);
}

#[test]
fn what_only_a_component_sets_cannot_be_set_by_a_file() {
    let files = [("REQUIRE_GUARD", "true"), ("REAP_SCRATCH", "true")];
    for (variable, reaps) in [("", false), ("true", true)] {
        let run = audit(&["--output=json"]).settings(&files);
        let run = run.env("REAP_SCRATCH", variable);
        assert_eq!(setting(run, "reapScratch"), reaps);
    }
}

#[test]
fn no_file_of_the_settings_names_a_cluster() {
    let cluster = Forbidden::new();
    for (options, code, says) in [
        (
            &["--kubeconfig", "/dev/null"][..],
            2,
            "--kubeconfig /dev/null: it has no contexts; name another",
        ),
        (
            &[],
            1,
            "no cluster to connect to: there is no kubeconfig, and this is not a pod with a ServiceAccount token; \
             name one with --kubeconfig, or audit a saved state with --snapshot",
        ),
    ] {
        let run = reaper(&[&["--dry-run"], options].concat());
        let path = run.file("other", &kubeconfig(cluster.address(), "token: MARKER"));
        let mut files = WITHOUT_EFFECT.map(|name| (name, "MARKER"));
        for (name, value) in &mut files {
            if *name == "KUBECONFIG" {
                *value = &path;
            }
        }
        let ended = run
            .settings(&files)
            .run()
            .exits(code)
            .never_prints("MARKER");
        let rest = ended
            .err
            .lines()
            .filter(|line| !line.contains("The setting "));
        assert_eq!(rest.collect_vec(), [format!("error: {says}")]);
    }
    cluster.was_left_alone();
}

/// A filter that was typed and selects no namespace is wrong usage, whatever is asked. One from a variable or the settings is
/// named in the report, because one setting serves many clusters.
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
    for args in [&["-n", "compute-hive01"][..]] {
        let report = asks(other, args, "{}").exits(0).report();
        assert_eq!(report["summary"]["pods"], 1, "{args:?}");
        assert!(codes(&report).is_empty(), "{args:?}");
    }
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
    let settings = TempDir::new().expect("a directory");
    fs::write(settings.path().join("NAMESPACE_REGEX"), "^compute$\n").expect("it is written");
    let settings = settings.path().to_str().expect("UTF-8");
    for variable in [other, ("POD_REAPER_SETTINGS", settings)] {
        let report = asks(variable, &[], "{}").exits(0).report();
        assert_eq!(report["notices"][0]["code"], "no-namespace", "{variable:?}");
    }
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

/// Each setting of the report can be set by an option, by its variable and by a file, to the same value. An option
/// beats the variable, and the variable beats the file.
#[test]
fn a_setting_is_the_same_however_it_is_set() {
    let report = |args: &[&str], variable: Option<(&str, &str)>, file: Option<(&str, &str)>| {
        let mut run = audit(&[&["--output=json"], args].concat());
        if let Some((name, value)) = variable {
            run = run.env(name, value);
        }
        if let Some(file) = file {
            run = run.settings(&[file]);
        }
        let ended = run.run();
        assert!([0, 4, 5].contains(&ended.code), "{args:?}: {}", ended.err);
        ended.report()["settings"].take()
    };
    let usual = report(&[], None, None);
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
        let (value, other) = (sample(value), Some((variable.as_str(), other(value))));
        let typed = report(&[&format!("{long}={value}")], None, None);
        assert_ne!(typed[field], usual[field], "{long}={value}");
        let by_file = Some((variable.as_str(), value));
        // Only a component sets this one.
        let of_file = if variable == "REAP_SCRATCH" {
            &usual
        } else {
            &typed
        };
        for (how, settings, expected) in [
            (
                "variable",
                report(&[], Some((variable, value)), None),
                &typed,
            ),
            ("file", report(&[], None, by_file), of_file),
            (
                "empty variable",
                report(&[], Some((variable, "")), by_file),
                of_file,
            ),
            (
                "option, beside others",
                report(&[&format!("{long}={value}")], other, other),
                &typed,
            ),
            (
                "variable, beside a file",
                report(&[], Some((variable, value)), other),
                &typed,
            ),
        ] {
            assert_eq!(settings, *expected, "{long}={value} by {how}");
        }
    }
    // Apart from `--all`, which has no variable.
    assert_eq!(found, fields.iter().filter(|field| *field != "all").count());
}
