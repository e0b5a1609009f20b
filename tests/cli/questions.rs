//! The subcommands what-if and explain.

use std::fs;

use expect_test::expect_file;
use pod_reaper_test_support::samples::NOW;
use serde_json::{Value, json};

use crate::{KOSMOS, Reaper, data, reaper, small_cluster};

/// A question about a snapshot, with options after it.
fn ask(snapshot: &str, question: &[&str]) -> Reaper {
    let mut run = reaper(question);
    run.command.args(["--snapshot", snapshot]);
    run
}

const SIX: &str = "six-nodes.json";

#[test]
fn what_if_reports_which_pods_come_back_and_which_do_not() {
    let dead = ask(SIX, &["what-if", "--node", "ds06"]).run().exits(0);
    expect_file!["../data/golden/what-if-ds06.txt"].assert_eq(&dead.out);
    let answer = ask(SIX, &["what-if", "--node", "ds06", "-o", "json"])
        .run()
        .exits(0)
        .report();
    assert_eq!(answer["version"], 1);
    assert_eq!(answer["breaker"], Value::Null);
    assert_eq!(answer["summary"]["comes-back"], 7);
    assert_eq!(answer["summary"]["needs-person"], 1);

    let leaf = ask(KOSMOS, &["what-if", "--node=kosmos-cluster7", "-o=json"])
        .run()
        .exits(0)
        .report();
    let pods = leaf["pods"].as_array().expect("pods");
    assert!(
        pods.iter().any(|pod| pod["reason"] == "kosmos-leaf"),
        "{leaf}"
    );
}

/// The commands are for a dead node. While the node lives, there is nothing to paste.
#[test]
fn what_if_prints_no_command() {
    let dead = ask(SIX, &["what-if", "--node", "ds06"]).run().exits(0);
    assert!(
        !dead.out.contains("kubectl") && dead.out.contains("1. Give up claim"),
        "{}",
        dead.out
    );
    let answer = ask(SIX, &["what-if", "--node", "ds06", "--output=json"])
        .run()
        .exits(0)
        .report();
    let steps = answer["pods"]
        .as_array()
        .expect("pods")
        .iter()
        .filter_map(|pod| pod["steps"].as_array());
    let steps = steps.flatten().collect::<Vec<_>>();
    assert!(
        !steps.is_empty() && steps.iter().all(|step| step["command"].is_null()),
        "{steps:?}"
    );
}

#[test]
fn what_if_names_what_would_be_lost_and_the_breaker() {
    let mut state = small_cluster();
    let items = state["items"].as_array_mut().expect("a list");
    items.push(json!({"kind": "Pod", "metadata": {
        "namespace": "compute-hive01", "name": "bare", "uid": "uid-bare", "resourceVersion": "8"},
        "spec": {"nodeName": "ds05"}, "status": {"phase": "Running"}}));
    let answer = |nodes: &[&str]| {
        let question = [&["what-if", "--output=json", "--node"], nodes].concat();
        ask("-", &question)
            .input(state.to_string())
            .run()
            .exits(0)
            .report()
    };
    let one = answer(&["ds05"]);
    assert_eq!(
        (&one["pods"][0]["fate"], &one["breaker"]),
        (&json!("lost"), &Value::Null),
        "{one}"
    );
    // ds06 is dead already.
    let all = answer(&["ds04", "ds05"]);
    assert_eq!(all["breaker"]["reason"], "mass-outage", "{all}");
    assert_eq!(all["kubernetesStopsEvicting"], true);
    assert_eq!(all["pods"][0]["reason"], "mass-outage");
}

#[test]
fn a_node_that_is_not_there_is_wrong_usage_with_near_names() {
    let wrong = ask(SIX, &["what-if", "--node", "ds6"]).run().exits(2);
    wrong.shows_on_stderr(&["there is no node ds6; did you mean ds06"]);
    ask(SIX, &["what-if", "--node", "zzz"])
        .run()
        .exits(2)
        .shows_on_stderr(&["kubectl get nodes"]);
    ask(SIX, &["what-if"])
        .run()
        .exits(2)
        .shows_on_stderr(&["<NODE>"]);
}

#[test]
fn explain_reports_every_rule() {
    let local = ask(SIX, &["explain", "impala-impala01/impala-executor-000-0"])
        .run()
        .exits(0);
    expect_file!["../data/golden/explain-local-volume.txt"].assert_eq(&local.out);
    let leaf = ask(SIX, &["explain", "kosmos-apps/web-0", "-o", "json"])
        .run()
        .exits(0)
        .report();
    assert_eq!(
        (&leaf["verdict"], &leaf["reason"]),
        (&json!("manual"), &json!("kosmos-leaf"))
    );
    let decides = leaf["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .filter(|rule| rule["decides"] == true);
    assert_eq!(
        decides
            .map(|rule| rule["number"].clone())
            .collect::<Vec<_>>(),
        [json!(6)]
    );

    let running = ask(SIX, &["explain", "compute-hive02/hiveserver2-0"])
        .run()
        .exits(0);
    assert!(
        running.out.contains("It is not Terminating"),
        "{}",
        running.out
    );
    let out = ask(SIX, &["explain", "vault/vault-0", "-n", "etl"])
        .run()
        .exits(0);
    assert!(
        out.out.contains("Its namespace vault is left out"),
        "{}",
        out.out
    );
    ask(SIX, &["explain", "vault/vault-1"])
        .run()
        .exits(1)
        .shows_on_stderr(&["there is no pod vault/vault-1"]);
    ask(SIX, &["explain", "vault-0"])
        .run()
        .exits(2)
        .shows_on_stderr(&["Add -n NAMESPACE, or write vault/vault-0"]);
}

#[test]
fn explain_is_for_one_look_unless_all_rules_are_asked_for() {
    let report = reaper(&["--snapshot", SIX, "-A", "-o", "json"])
        .run()
        .exits(0)
        .report();
    let pods = report["pods"].as_array().expect("pods");
    assert!(pods.len() > 5, "{pods:?}");
    for pod in pods {
        let name = [&pod["namespace"], &pod["name"]].map(|part| part.as_str().expect("a name"));
        let name = name.join("/");
        let short = ask(SIX, &["explain", &name]).run().exits(0).out;
        assert!(short.lines().count() <= 30, "{short}");
        let verdict = format!("VERDICT: {} [{}], by ", pod["verdict"], pod["reason"]);
        let first = short.lines().next().unwrap_or_default();
        assert!(first.starts_with(&verdict.replace('"', "")), "{first}");
        let whole = ask(SIX, &["explain", &name, "--all-rules"])
            .run()
            .exits(0)
            .out;
        for rule in 1..=18 {
            assert!(
                whole.contains(&format!("\n  {rule:>2}. ")),
                "{rule}: {whole}"
            );
        }
        assert_eq!(whole.matches("<- decides").count(), 1, "{whole}");
    }
}

#[test]
fn a_pod_that_is_not_there_is_looked_for_elsewhere() {
    for (asked, hint) in [
        (
            "vault/vault-1",
            "there is no pod vault/vault-1; did you mean vault-0?",
        ),
        (
            "etl/vault-0",
            "there is no pod etl/vault-0; there is vault/vault-0",
        ),
        (
            "deploy/api",
            "deploy was read as a namespace, and explain takes a pod",
        ),
        ("zzz/zzz", "kubectl get pods -n zzz"),
    ] {
        ask(SIX, &["explain", asked])
            .run()
            .exits(1)
            .shows_on_stderr(&[hint]);
    }
}

#[test]
fn a_pod_that_could_not_be_read_is_not_reported_as_absent() {
    let asked = |change: &dyn Fn(&mut Value)| {
        let mut saved = small_cluster();
        let mut other = saved["items"][5].clone();
        other["metadata"]["name"] = json!("other-0");
        other["metadata"]["deletionTimestamp"] = json!(7);
        saved["items"].as_array_mut().expect("items").push(other);
        change(&mut saved["items"][5]["metadata"]);
        let run = reaper(&["explain", "compute-hive01/huebackend-0", "--snapshot", "-"]);
        let wrong = run.input(saved.to_string()).run().exits(1);
        let wrong = wrong.shows_on_stderr(&["pod compute-hive01/huebackend-0 could not be read: "]);
        assert!(!wrong.err.contains("other-0"), "{}", wrong.err);
        wrong.err
    };
    let malformed = asked(&|pod| pod["deletionTimestamp"] = json!(5));
    assert!(malformed.contains("expected"), "{malformed}");
    let without = asked(&|pod| drop(pod.as_object_mut().expect("metadata").remove("uid")));
    assert!(without.contains("metadata.uid is missing"), "{without}");
}

#[test]
fn an_option_that_does_not_apply_to_a_question_is_refused() {
    for (args, says) in [
        (
            &["what-if", "--node=ds06", "--dry-run"][..],
            "--dry-run cannot be used with what-if",
        ),
        (
            &["what-if", "--node=ds06", "--yes"],
            "--yes cannot be used with what-if",
        ),
        (
            &["what-if", "--node=ds06", "--reap-older-than=1m"],
            "it would not change the answer",
        ),
        (
            &["explain", "vault/vault-0", "--all"],
            "--all cannot be used with explain",
        ),
        (
            &["explain", "vault/vault-0", "-o", "html"],
            "[possible values: text, json]",
        ),
        (
            &["--dry-run", "what-if", "--node=ds06"],
            "--dry-run cannot be used with what-if",
        ),
    ] {
        ask(SIX, args).run().exits(2).shows_on_stderr(&[says]);
    }
    // A variable is meant for the runs of a CronJob, and is ignored here.
    ask(SIX, &["explain", "vault/vault-0"])
        .env("DRY_RUN", "client")
        .run()
        .exits(0);
}

/// What an operator types who knows kubectl.
#[test]
fn questions_are_asked_as_kubectl_is() {
    let same = |one: &[&str], other: &[&str]| {
        let answer = |args| {
            reaper(args)
                .env("NAMESPACE_REGEX", "^vault$")
                .run()
                .exits(0)
                .out
        };
        assert_eq!(answer(one), answer(other), "{one:?} {other:?}");
    };
    let explained = ["explain", "vault/vault-0", "--snapshot", SIX];
    same(
        &["explain", "vault-0", "-n", "vault", "--snapshot", SIX],
        &explained,
    );
    same(
        &["explain", "pod/vault-0", "-n", "vault", "--snapshot", SIX],
        &explained,
    );
    same(
        &["-n", "vault", "--snapshot", SIX, "explain", "pods/vault-0"],
        &explained,
    );
    same(&["--snapshot", SIX, "explain", "vault/vault-0"], &explained);
    let supposed = [
        "what-if",
        "--node",
        "ds05",
        "--node",
        "ds06",
        "--max-deletes=1",
        "--snapshot",
        SIX,
    ];
    same(
        &[
            "what-if",
            "ds05",
            "ds06",
            "--max-deletes=1",
            "--snapshot",
            SIX,
        ],
        &supposed,
    );
    same(
        &["--snapshot", SIX, "--max-deletes=1", "what-if", "ds05,ds06"],
        &supposed,
    );
    same(
        &[
            "what-if",
            "ds06",
            "--node=ds05",
            "--max-deletes",
            "1",
            "--snapshot",
            SIX,
        ],
        &supposed,
    );
    same(
        &[
            "what-if",
            "--node=ds06,ds05",
            "--max-deletes=1",
            "--snapshot",
            SIX,
        ],
        &supposed,
    );
    same(
        &[
            "what-if",
            "node/ds05",
            "nodes/ds06",
            "--max-deletes=1",
            "--snapshot",
            SIX,
        ],
        &supposed,
    );
    // A word is a command only where no option takes it.
    let filtered = reaper(&[
        "-n",
        "explain",
        "--snapshot",
        SIX,
        "explain",
        "vault/vault-0",
    ])
    .run()
    .exits(0);
    assert!(
        filtered.out.contains("Its namespace vault is left out"),
        "{}",
        filtered.out
    );
    // Without -n it is a namespace.
    ask(SIX, &["explain", "pod/vault-0"])
        .run()
        .exits(1)
        .shows_on_stderr(&["there is no pod pod/vault-0"]);
    // The name says which pod; what a run looks at is still for the filter to say.
    let left_out = ask(SIX, &["explain", "vault-0", "-n", "vault"])
        .env("NAMESPACE_REGEX", "^etl$")
        .run()
        .exits(0);
    assert!(
        left_out.out.contains("Its namespace vault is left out"),
        "{}",
        left_out.out
    );
    for (word, command) in [
        ("what-if", "what-if"),
        ("explain", "explain"),
        ("man", "man"),
    ] {
        assert_eq!(
            reaper(&["help", word]).run().exits(0).out,
            reaper(&[command, "--help"]).run().exits(0).out
        );
    }
}

/// By the schemas in docs/, as a script of somebody else reads them.
#[test]
fn each_document_says_its_kind_and_is_what_its_schema_says() {
    let answers: [(&str, &[&str], &str); 4] = [
        ("Report", &["-A"], "report"),
        ("WhatIf", &["what-if", "ds06", "ds05"], "what-if"),
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
            .collect::<Vec<_>>();
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
            .collect::<Vec<_>>();
        assert!(errors.is_empty(), "{kind}: {errors:?}");
        for field in plain.report().as_object().expect("an object").keys() {
            assert!(
                !schema["properties"][field].is_null(),
                "{kind}: {field} is not in the schema"
            );
        }
    }
}

#[test]
fn a_lease_that_is_renewed_between_two_seconds_is_shown_by_the_second() {
    let mut state = small_cluster();
    let renewed = json!(NOW.replace('Z', ".250000Z"));
    state["items"][4]["spec"] = json!({"leaseDurationSeconds": 40, "renewTime": renewed});
    let run = reaper(&["--snapshot", "-", "-o", "json"])
        .input(state.to_string())
        .run()
        .exits(0)
        .report();
    let node = &run["nodes"][0];
    assert_eq!(
        (&node["leaseRenewed"], &node["signsOfLife"][0]["at"]),
        (&json!(NOW), &json!(NOW)),
        "{node}"
    );
    assert_eq!(run["judgedAt"], NOW);
}

#[test]
fn the_help_of_a_question_offers_only_what_it_does() {
    for command in ["what-if", "explain"] {
        let help = reaper(&["help", command]).run().exits(0).out;
        assert!(
            help.contains("<text|json>") && !help.contains("markdown"),
            "{help}"
        );
        assert!(
            help.contains("--max-deletes") && help.contains("--deadline"),
            "{help}"
        );
        assert!(
            !help.contains("--dry-run") && !help.contains("--push-gateway"),
            "{help}"
        );
        assert_eq!(
            help.contains("--reap-older-than <"),
            command == "explain",
            "{help}"
        );
    }
}
