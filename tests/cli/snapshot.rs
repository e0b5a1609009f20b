//! Snapshots that cannot be judged, and where they come from.

use std::fs;

use serde_json::{Value, json};

use crate::{KOSMOS, KOSMOS_NOW, audit, data, reaper};

#[test]
fn an_unreadable_snapshot_is_named_and_ends_the_run_with_1() {
    let kosmos = fs::read_to_string(data().join(KOSMOS)).expect("the snapshot");
    let truncated = &kosmos[..kosmos.len() / 2];
    let without = |kind: &str| {
        let mut list: Value = serde_json::from_str(&kosmos).expect("JSON");
        list["items"].as_array_mut().expect("a list").retain(|item| item["kind"] != kind);
        list.to_string()
    };
    let cases = [
        ("broken", "{\"kind\": \"List\",\n  \"items\": [nonsense]}".to_owned(), &["line 2", "column"][..]),
        ("truncated", truncated.to_owned(), &["EOF", "line", "column"]),
        ("a bracket too many", format!("{kosmos}}}"), &["line", "column"]),
        ("not JSON at all", "apiVersion: v1\nkind: List\n".to_owned(), &["kubectl get", "line 1"]),
        ("no object", "[]".to_owned(), &["holds no nodes"]),
        ("empty", String::new(), &["holds no nodes", "kubectl get nodes,"]),
        ("an empty list", r#"{"kind": "List", "items": []}"#.to_owned(), &["holds no nodes"]),
        ("a list of nothing", r#"{"kind": "List", "items": null}"#.to_owned(), &["holds no nodes"]),
        ("without nodes", without("Node"), &["holds no nodes", "kubectl get nodes,"]),
        ("without pods", without("Pod"), &["holds no pods", "kubectl get nodes,"]),
    ];
    for (name, text, parts) in cases {
        let run = reaper(&[]);
        let path = run.file("state.json", &text);
        let mut run = run;
        run.command.args(["--snapshot", &path]);
        let ended = run.run();
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{name}: {}", ended.err);
        ended.shows_on_stderr(&[&format!("error: --snapshot {path}: ")]).shows_on_stderr(parts);
    }
    reaper(&["--snapshot", "absent.json"])
        .run()
        .exits(1)
        .shows_on_stderr(&["error: --snapshot absent.json: ", "No such file"]);
    reaper(&["--snapshot", "."]).run().exits(1).shows_on_stderr(&["error: --snapshot .: ", "directory"]);
    reaper(&["--snapshot", "-"])
        .input("nonsense")
        .run()
        .exits(1)
        .shows_on_stderr(&["error: --snapshot -: ", "line 1"]);
}

#[test]
fn a_snapshot_that_is_no_text_is_an_error() {
    let run = reaper(&[]);
    let path = run.home.path().join("state.json");
    fs::write(&path, [0x7b, 0xff, 0xfe, 0x7d]).expect("a file");
    let mut run = run;
    run.command.arg("--snapshot").arg(&path);
    run.run().exits(1).shows_on_stderr(&["error: --snapshot ", "UTF-8"]);
}

#[test]
fn a_snapshot_without_any_date_asks_for_now() {
    let undated = json!({"kind": "List", "items": [
        {"kind": "Node", "metadata": {"name": "ds06", "uid": "n"}},
        {"kind": "Pod", "metadata": {"name": "p"}},
    ]});
    reaper(&["--snapshot", "-"])
        .input(undated.to_string())
        .run()
        .exits(1)
        .shows_on_stderr(&["--now", "2026-01-31T03:00:00Z"]);
    reaper(&["--snapshot", "-", "--now", KOSMOS_NOW]).input(undated.to_string()).run().exits(0);
}

#[test]
fn a_snapshot_comes_from_standard_input_too() {
    let kosmos = fs::read_to_string(data().join(KOSMOS)).expect("the snapshot");
    let piped = reaper(&["--snapshot", "-", "--output=json"]).input(kosmos).run().exits(0).report();
    let mut read = reaper(&["--snapshot", KOSMOS, "--output=json"]).run().exits(0).report();
    read["snapshot"] = json!("-");
    assert_eq!(piped, read);
}

#[test]
fn a_snapshot_needs_no_kubeconfig_and_reads_none() {
    audit(&[]).env("KUBECONFIG", "/nowhere/config").run().exits(0);
    let run = audit(&[]);
    run.file(".kube/config", "{{{");
    run.run().exits(0);
}
