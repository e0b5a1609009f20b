//! The subcommands what-if and explain.

use itertools::Itertools as _;
use std::fs;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use crate::{KOSMOS, data, reaper, small, transcripts::plays};

/// The state of six nodes. The path is relative to [`data`].
pub const SIX: &str = "six-nodes.json";

#[test]
fn what_if_and_explain_answer_as_they_should() {
    plays("transcripts/questions.txt");
    let what_if = reaper(&["what-if", "--node", "ds06", "--snapshot", SIX]);
    expect_file!["../data/golden/what-if-ds06.txt"].assert_eq(&what_if.run().exits(0).out);
    let pod = "impala-impala01/impala-executor-000-0";
    let explain = reaper(&["explain", pod, "--snapshot", SIX]);
    expect_file!["../data/golden/explain-local-volume.txt"].assert_eq(&explain.run().exits(0).out);
}

/// A report of six-nodes.json.
fn six(args: &[&str]) -> Value {
    let form = ["--snapshot", SIX, "-o", "json"];
    reaper(&[args, &form].concat()).run().exits(0).report()
}

#[test]
fn what_if_counts_what_becomes_of_pods() {
    let report = six(&["what-if", "ds06"]);
    assert_eq!(report["breaker"], Value::Null);
    // While the node lives there is nothing to paste.
    let pods = report["pods"].as_array().expect("pods");
    let steps = pods.iter().filter_map(|pod| pod["steps"].as_array());
    let commands = steps.flatten().map(|step| &step["command"]).collect_vec();
    assert!(!commands.is_empty() && commands.iter().all(|command| command.is_null()));
    let text = reaper(&["what-if", "ds06", "--snapshot", SIX])
        .run()
        .exits(0)
        .out;
    assert!(!text.contains("kubectl"), "{text}");
    let counts = ["comesBack", "needsPerson", "seconds"].map(|count| &report["supposed"][count]);
    assert_eq!(json!(counts), json!([7, 1, 600]));
    let longer = six(&["what-if", "ds06", "--reap-older-than=1h"]);
    assert_eq!(longer["supposed"]["seconds"], 3600);
    let leaf = reaper(&[
        "what-if",
        "kosmos-cluster7",
        "--snapshot",
        KOSMOS,
        "-o",
        "json",
    ]);
    assert_eq!(
        leaf.run().exits(0).report()["pods"][0]["reason"],
        "kosmos-leaf"
    );
    let each = six(&["what-if", "--each-node"]);
    let worst = ["node", "needsPerson"].map(|field| &each["eachNode"][0][field]);
    assert_eq!(json!(worst), json!(["ds06", 1]));
    assert!(each["breaker"].is_null(), "{}", each["breaker"]);
    // By the thresholds of runs; a file is no cluster that metrics could be about.
    let form = ["what-if", "--each-node", "--snapshot", SIX, "-o", "json"];
    let longer = reaper(&form).env("REAP_OLDER_THAN", "1h");
    let longer = longer.env("PUSH_GATEWAY", "http://127.0.0.1:1").run();
    let longer = longer.exits(0).report();
    let nodes = longer["eachNode"].as_array().expect("nodes");
    let seconds = nodes.iter().filter_map(|node| node["seconds"].as_i64());
    assert_eq!(seconds.max(), Some(3900));
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

/// ds06 is dead already, so the breaker would hold with two more.
#[test]
fn a_pod_without_a_controller_would_be_lost() {
    let bare = "Pod compute-hive01/bare: {metadata: {ownerReferences: null, deletionTimestamp: null, \
                deletionGracePeriodSeconds: null}, spec: {nodeName: ds05}}";
    let report = small(bare, &["what-if", "ds05"]).run().exits(0).report();
    assert_eq!(report["pods"][0]["fate"], "lost", "{report}");
    assert_eq!(report["breaker"], Value::Null);
    let report = small(bare, &["what-if", "ds04", "ds05"])
        .run()
        .exits(0)
        .report();
    assert_eq!(report["breaker"]["reason"], "mass-outage");
    assert_eq!(report["pods"][0]["reason"], "mass-outage");
    assert_eq!(report["supposed"]["kubernetesStopsEvicting"], true);
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
    for (question, begins, others) in [
        (
            "explain vault/vault-0",
            "VERDICT",
            &[
                "explain vault-0",
                "explain pod/vault-0",
                "explain vault-0 -n vault",
                "explain pod/vault-0 -n vault",
                "-n vault explain pods/vault-0",
            ][..],
        ),
        (
            "what-if --node ds05 --node ds06 --max-deletes=1",
            "WHAT IF ds05, d",
            &[
                "what-if ds05 ds06 --max-deletes=1",
                "--max-deletes=1 what-if ds05,ds06",
                "what-if ds06 --node=ds05 --max-deletes 1",
                "what-if --node=ds06,ds05 --max-deletes=1",
                "what-if node/ds05 nodes/ds06 --max-deletes=1",
            ],
        ),
    ] {
        let answer = asks(question);
        assert!(answer.starts_with(begins), "{answer}");
        for other in others {
            assert_eq!(asks(other), answer, "{other}");
        }
    }
}

/// An explanation is for one look, and has all rules where they are asked for.
#[test]
fn an_explanation_is_short_with_the_verdict_first_and_one_rule_decides() {
    let report = six(&["-A"]);
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
    expect!["8 with 17 rules, 1 with 20 rules"].assert_eq(&counts.format(", ").to_string());
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
