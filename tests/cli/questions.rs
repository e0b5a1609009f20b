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

/// By the schemas in docs/, as a script of somebody else reads them.
#[test]
fn each_document_says_its_kind_and_is_what_its_schema_says() {
    let answers: [(&str, &[&str], &str); 5] = [
        ("Report", &["-A"], "report"),
        ("WhatIf", &["what-if", "ds06", "ds05"], "what-if"),
        ("Forecast", &["what-if", "--each-node"], "forecast"),
        (
            "Explanation",
            &["explain", "vault-0", "-n", "vault"],
            "explain",
        ),
        (
            "Explanation",
            &["explain", "compute-hive02/hiveserver2-0"],
            "explain",
        ),
    ];
    for (kind, args, schema) in answers {
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
                .starts_with(&format!("{{\n  \"kind\": \"{kind}\",\n  \"version\": 1,")),
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
            "{kind}"
        );
        let path = data().join(format!("../../docs/{schema}.schema.json"));
        let schema = serde_json::from_str::<Value>(&fs::read_to_string(path).expect("a schema"))
            .expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors = validator
            .iter_errors(&plain.report())
            .map(|error| error.to_string())
            .collect_vec();
        assert!(errors.is_empty(), "{kind}: {errors:?}");
        for field in plain.report().as_object().expect("an object").keys() {
            assert!(
                !schema["properties"][field].is_null(),
                "{kind}: {field} is not in the schema"
            );
        }
    }
}
