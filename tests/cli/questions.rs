//! The subcommand explain.

use itertools::Itertools as _;
use std::fs;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use crate::{data, reaper, small, transcripts::plays};

/// The state of six nodes. The path is relative to [`data`].
pub const SIX: &str = "six-nodes.json";

#[test]
fn explain_answers_as_it_should() {
    plays("transcripts/questions.txt");
    let pod = "impala-impala01/impala-executor-000-0";
    let explain = reaper(&["explain", pod, "--snapshot", SIX]);
    expect_file!["../data/golden/explain-local-volume.txt"].assert_eq(&explain.run().exits(0).out);
}

/// A report of six-nodes.json.
fn six(args: &[&str]) -> Value {
    let form = ["--snapshot", SIX, "-o", "json"];
    reaper(&[args, &form].concat()).run().exits(0).report()
}

/// A lease that is renewed between two seconds is shown by the second.
#[test]
fn times_are_whole_seconds() {
    let renewed = "Lease ds06: {spec: {renewTime: '2026-01-31T03:00:00.250000Z'}}";
    let report = small(renewed, &[]).run().exits(0).report();
    let node = &report["nodes"][0];
    let times = [
        &node["leaseRenewed"],
        &node["signsOfLife"][0]["at"],
        &report["judgedAt"],
    ];
    assert_eq!(
        json!(times),
        json!(vec!["2026-01-31T03:00:00Z"; 3]),
        "{report}"
    );
}

/// Also of a pod that is not Terminating, and of one that a run would leave out.
#[test]
fn explain_names_the_rule_that_decides() {
    let report = six(&["explain", "kosmos-apps/web-0"]);
    let judged = ["verdict", "reason"].map(|field| &report["pods"][0][field]);
    assert_eq!(json!(judged), json!(["manual", "kosmos-leaf"]));
    let rules = report["explained"]["rules"].as_array().expect("rules");
    let decides = rules.iter().filter(|rule| rule["decides"] == true);
    let decides = decides.map(|rule| &rule["number"]).collect_vec();
    assert_eq!(json!(decides), json!([6]));
    for (args, says) in [
        (
            &["explain", "compute-hive02/hiveserver2-0"][..],
            "It is not Terminating",
        ),
        (
            &["explain", "vault/vault-0", "-n", "etl"],
            "Its namespace vault is left out",
        ),
        (
            &["-n", "explain", "explain", "vault/vault-0"],
            "Its namespace vault is left out",
        ),
    ] {
        let out = reaper(&[args, &["--snapshot", SIX]].concat())
            .run()
            .exits(0)
            .out;
        assert!(out.contains(says), "{args:?}: {out}");
    }
    let named = reaper(&["explain", "vault-0", "-n", "vault", "--snapshot", SIX]);
    let out = named.env("NAMESPACE_REGEX", "^etl$").run().exits(0).out;
    assert!(out.contains("Its namespace vault is left out"), "{out}");
}

/// In every format the same pod is named.
#[test]
fn an_explanation_has_all_formats() {
    let pod = "impala-executor-000-0";
    let explain = format!("impala-impala01/{pod}");
    for (format, begins) in [("text", ""), ("json", "{"), ("html", "<!DOCTYPE html>")] {
        let all = ["explain", &explain, "--snapshot", SIX, "-o", format];
        let out = reaper(&all).run().exits(0).out;
        assert!(out.starts_with(begins), "{format}: {out}");
        assert!(
            out.contains("persistentvolumeclaims/scratch-cache-volume"),
            "{format}: {out}"
        );
        for name in [pod, "Is its data on the node?", "is lost for good"] {
            let is_named = out.contains(name) || format == "json" && name.contains(' ');
            assert!(is_named, "{format} lacks {name}: {out}");
        }
    }
}

/// The order and the place of words and options do not matter.
#[test]
fn questions_are_asked_as_kubectl_is() {
    let asks = |question: &str| {
        let words = question.split(' ').collect_vec();
        let file = ["--snapshot", SIX];
        let [out, same] = [[&file, &words[..]], [&words[..], &file]].map(|args| {
            let run = reaper(&args.concat()).env("NAMESPACE_REGEX", "^vault$");
            let ended = run.run().exits(0);
            assert_eq!(ended.err, "", "{question}");
            ended.out
        });
        assert_eq!(out, same, "{question}");
        out
    };
    let answer = asks("explain vault/vault-0");
    assert!(answer.starts_with("VERDICT"), "{answer}");
    for other in [
        "explain vault-0",
        "explain pod/vault-0",
        "explain vault-0 -n vault",
        "explain pod/vault-0 -n vault",
        "-n vault explain pods/vault-0",
    ] {
        assert_eq!(asks(other), answer, "{other}");
    }
}

/// An explanation is for one look, and has all rules where they are asked for.
#[test]
fn an_explanation_is_short_with_the_verdict_first_and_one_rule_decides() {
    let report = six(&[]);
    let mut counts = Vec::new();
    for pod in report["pods"].as_array().expect("pods") {
        let [namespace, name, verdict, reason] = ["namespace", "name", "verdict", "reason"]
            .map(|field| pod[field].as_str().expect(field));
        let name = format!("{namespace}/{name}");
        let explain = |more: &[&str]| {
            let args = ["explain", &name, "--snapshot", SIX];
            reaper(&[&args, more].concat()).run().exits(0).out
        };
        let short = explain(&[]);
        assert!(short.lines().count() <= 30, "{short}");
        let first = short.lines().next().unwrap_or_default();
        let says = format!("VERDICT: {verdict} [{reason}], by ");
        assert!(first.contains(&says), "{says}: {first}");
        let whole = explain(&["--all-rules"]);
        let is_rule = |line: &&str| {
            let numbered = line
                .strip_prefix("  ")
                .and_then(|line| line.split_once(". "));
            numbered.is_some_and(|(number, _)| number.parse::<u8>().is_ok())
        };
        let decides = whole.lines().filter(|line| line.ends_with(", decides"));
        assert_eq!(decides.count(), 1, "{whole}");
        counts.push(whole.lines().filter(is_rule).count());
    }
    let counts = counts.iter().counts().into_iter().sorted();
    let counts = counts.map(|(rules, pods)| format!("{pods} with {rules} rules"));
    expect!["7 with 19 rules, 1 with 21 rules, 1 with 22 rules"]
        .assert_eq(&counts.format(", ").to_string());
}

/// No other pod is named in place of the one that was asked about.
#[test]
fn a_pod_that_could_not_be_read_is_not_reported_as_absent() {
    let asked = "compute-hive01/huebackend-0";
    let other = "Pod compute-hive01/other-0: {metadata: {deletionTimestamp: 7}}";
    for (field, says) in [
        (
            "deletionTimestamp: 5",
            "the snapshot's Pod could not be read: a field has an unexpected type",
        ),
        ("uid: null", "metadata.uid is missing"),
    ] {
        let more = format!("{{Pod {asked}: {{metadata: {{{field}}}}}, {other}}}");
        let ended = small(&more, &["explain", asked]).run().exits(1);
        let says = format!("error: pod {asked} could not be read: {says}\n");
        assert_eq!(ended.err, says);
    }
}

/// By the schema in docs/, as a script of somebody else reads them.
#[test]
fn every_report_is_what_the_schema_says() {
    let reports: [&[&str]; 3] = [
        &[],
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
