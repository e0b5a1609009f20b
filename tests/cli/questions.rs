//! The subcommands what-if and explain.

use itertools::Itertools as _;
use std::fs;

use expect_test::expect_file;
use serde_json::Value;

use crate::{data, reaper, transcripts::plays};

const SIX: &str = "six-nodes.json";

#[test]
fn what_if_and_explain_answer_as_they_should() {
    plays("transcripts/questions.txt");
    let what_if = reaper(&["what-if", "--node", "ds06", "--snapshot", SIX]);
    expect_file!["../data/golden/what-if-ds06.txt"].assert_eq(&what_if.run().exits(0).out);
    let pod = "impala-impala01/impala-executor-000-0";
    let explain = reaper(&["explain", pod, "--snapshot", SIX]);
    expect_file!["../data/golden/explain-local-volume.txt"].assert_eq(&explain.run().exits(0).out);
}

/// In every format the same pods are named, and a node that lives has nothing to paste.
#[test]
fn a_question_has_all_formats() {
    let pod = "impala-executor-000-0";
    let explain = format!("impala-impala01/{pod}");
    let questions: [(&[&str], &[&str], bool); 3] = [
        (
            &["what-if", "ds06"],
            &[pod, "vault-0", "1 needs you", "may be the last copy"],
            false,
        ),
        (&["what-if", "--each-node"], &["ds06", "ds03"], false),
        (
            &["explain", &explain],
            &[pod, "Is its data on the node?", "may be the last copy"],
            true,
        ),
    ];
    for (args, named, pastes) in questions {
        for (format, begins) in [
            ("text", ""),
            ("json", "{"),
            ("markdown", "# "),
            ("html", "<!DOCTYPE html>"),
        ] {
            let all = [args, &["--snapshot", SIX, "-o", format]].concat();
            let out = reaper(&all).run().exits(0).out;
            assert!(out.starts_with(begins), "{all:?}: {out}");
            assert_eq!(out.contains("kubectl annotate"), pastes, "{all:?}: {out}");
            for name in named
                .iter()
                .filter(|name| format != "json" || !name.contains(' '))
            {
                let is_named = out.contains(name);
                assert!(is_named, "{all:?} lacks {name}: {out}");
            }
        }
    }
}

/// By the schema in docs/, as a script of somebody else reads them.
#[test]
fn every_report_is_what_the_schema_says() {
    let reports: [&[&str]; 5] = [
        &["-A"],
        &["what-if", "ds06", "ds05"],
        &["what-if", "--each-node"],
        &["explain", "vault-0", "-n", "vault"],
        &["explain", "compute-hive02/hiveserver2-0"],
    ];
    let path = data().join("../../docs/report.schema.json");
    let schema = fs::read_to_string(path).expect("a schema");
    let schema = serde_json::from_str::<Value>(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for args in reports {
        let form = [
            "--snapshot",
            SIX,
            "--now",
            "2026-11-21T03:13:38.9Z",
            "-o",
            "json",
        ];
        let plain = reaper(&[args, &form[..]].concat()).run().exits(0);
        assert!(
            plain
                .out
                .starts_with("{\n  \"kind\": \"Report\",\n  \"version\": 2,"),
            "{}",
            plain.out
        );
        assert!(
            plain.out.contains("\"judgedAt\": \"2026-11-21T03:13:38Z\""),
            "{}",
            plain.out
        );
        let fractions = plain
            .out
            .lines()
            .filter(|line| line.ends_with("Z\"") || line.ends_with("Z\","));
        let fractions = fractions
            .filter(|line| line.contains("T0") && line.contains('.'))
            .collect_vec();
        assert!(fractions.is_empty(), "{fractions:?}");
        // Where the log is JSON, each line of all that the program writes is an object.
        let lines = reaper(&[args, &form[..]].concat())
            .env("LOG_FORMAT", "json")
            .run()
            .exits(0);
        assert_eq!(
            (lines.out.lines().count(), lines.report()),
            (1, plain.report()),
            "{args:?}"
        );
        let errors = validator
            .iter_errors(&plain.report())
            .map(|error| error.to_string())
            .collect_vec();
        assert!(errors.is_empty(), "{args:?}: {errors:?}");
        for field in plain.report().as_object().expect("an object").keys() {
            assert!(
                !schema["properties"][field].is_null(),
                "{args:?}: {field} is not in the schema"
            );
        }
    }
}
