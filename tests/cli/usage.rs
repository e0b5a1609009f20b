//! Options and variables.

use std::fs;

use pod_reaper_test_support::installed::option;
use serde_json::Value;
use tempfile::TempDir;

use crate::{Documented, audit, options_with_variables, small, transcripts::plays};

/// Variables set what options set, and no other variable does.
#[test]
fn variables_set_options() {
    plays("transcripts/variables.txt");
}

/// Only options can be set by a file.
#[test]
fn a_directory_has_settings() {
    plays("transcripts/settings.txt");
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
    for args in [&["-n", "compute-hive01"][..], &["-A"]] {
        let report = asks(other, args, "{}").exits(0).report();
        assert_eq!(report["summary"]["pods"], 1, "{args:?}");
        assert_eq!(codes(&report), ["time-of-the-file"], "{args:?}");
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
            &["what-if", "ds06", "--namespace-regex=^compute$"],
            "--namespace-regex selects none",
        ),
        (
            none,
            &["what-if", "--each-node", "--namespace-regex=^compute$"],
            "--namespace-regex selects none",
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
    assert_eq!(codes(&report), ["time-of-the-file"]);
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
        if let Some((name, value)) = file {
            let file = run.file(&format!("settings/{name}"), &format!("{value}\n"));
            let directory = file.strip_suffix(&format!("/{name}")).expect("its folder");
            run = run.env("POD_REAPER_SETTINGS", directory);
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
