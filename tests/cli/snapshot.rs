//! Snapshots that cannot be judged, and where they come from.

use std::fs;

use serde_json::{Value, json};

use crate::{KOSMOS, KOSMOS_NOW, audit, data, reaper, small_cluster};

#[test]
fn an_unreadable_snapshot_is_named_and_ends_the_run_with_1() {
    let kosmos = fs::read_to_string(data().join(KOSMOS)).expect("the snapshot");
    let truncated = &kosmos[..kosmos.len() / 2];
    let without = |kind: &str| {
        let mut list: Value = serde_json::from_str(&kosmos).expect("JSON");
        list["items"]
            .as_array_mut()
            .expect("a list")
            .retain(|item| item["kind"] != kind);
        list.to_string()
    };
    let cases = [
        (
            "broken",
            "{\"kind\": \"List\",\n  \"items\": [nonsense]}".to_owned(),
            &["line 2", "column"][..],
        ),
        (
            "truncated",
            truncated.to_owned(),
            &["EOF", "line", "column"],
        ),
        (
            "a bracket too many",
            format!("{kosmos}}}"),
            &["line", "column"],
        ),
        (
            "YAML",
            "apiVersion: v1\nkind: List\n".to_owned(),
            &["it is YAML", "-o json"],
        ),
        (
            "a table",
            "NAME   STATUS\n".to_owned(),
            &["kubectl get", "line 1"],
        ),
        ("no object", "[]".to_owned(), &["holds no nodes"]),
        (
            "empty",
            String::new(),
            &["holds no nodes", "kubectl get nodes,"],
        ),
        (
            "an empty list",
            r#"{"kind": "List", "items": []}"#.to_owned(),
            &["holds no nodes"],
        ),
        (
            "a list of nothing",
            r#"{"kind": "List", "items": null}"#.to_owned(),
            &["holds no nodes"],
        ),
        (
            "without nodes",
            without("Node"),
            &["holds no nodes", "kubectl get nodes,"],
        ),
        (
            "without pods",
            without("Pod"),
            &["holds no pods", "kubectl get nodes,"],
        ),
    ];
    for (name, text, parts) in cases {
        let run = reaper(&[]);
        let path = run.file("state.json", &text);
        let mut run = run;
        run.command.args(["--snapshot", &path]);
        let ended = run.run();
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (1, ""),
            "{name}: {}",
            ended.err
        );
        ended
            .shows_on_stderr(&[&format!("error: --snapshot {path}: ")])
            .shows_on_stderr(parts);
    }
    reaper(&["--snapshot", "absent.json"])
        .run()
        .exits(1)
        .shows_on_stderr(&["error: --snapshot absent.json: ", "No such file"]);
    reaper(&["--snapshot", "."])
        .run()
        .exits(1)
        .shows_on_stderr(&["error: --snapshot .: ", "directory"]);
    reaper(&["--snapshot", "-"])
        .input("nonsense")
        .run()
        .exits(1)
        .shows_on_stderr(&["error: --snapshot -: ", "line 1"]);
}

/// As a ticket has it, or PowerShell writes it.
#[test]
fn a_snapshot_in_another_form_is_named_with_what_to_do() {
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| {
        text.encode_utf16().flat_map(order).collect::<Vec<_>>()
    };
    let gzip = [&[0x1f, 0x8b, 8, 0][..], &[0xff; 40]].concat();
    for (bytes, says) in [
        (
            gzip,
            [
                "it is compressed by gzip",
                "gunzip -c FILE | pod-reaper --snapshot -",
            ],
        ),
        (
            utf16("\u{feff}{\"kind\": \"List\"}", u16::to_le_bytes),
            ["it is UTF-16", "iconv -f UTF-16"],
        ),
        (
            utf16("\u{feff}{\"kind\": \"List\"}", u16::to_be_bytes),
            ["it is UTF-16", "iconv -f UTF-16"],
        ),
        (
            utf16("{}", u16::to_le_bytes),
            ["it is UTF-16", "iconv -f UTF-16"],
        ),
        (b"---\napiVersion: v1\n".to_vec(), ["it is YAML", "-o json"]),
    ] {
        let run = reaper(&[]);
        let path = run.home.path().join("state");
        fs::write(&path, bytes).expect("a file");
        for question in [&[][..], &["what-if", "ds06"], &["explain", "a/b"]] {
            let mut run = reaper(question);
            run.command.arg("--snapshot").arg(&path);
            run.run()
                .exits(1)
                .shows_on_stderr(&["error: --snapshot "])
                .shows_on_stderr(&says);
        }
    }
}

/// `kubectl get nodes,pods -o json`, as most type it first, holds one namespace and nothing of what keeps a pod.
#[test]
fn what_a_snapshot_lacks_is_said_with_the_command_that_saves_all() {
    let whole = "kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields";
    let lacks = |state: &Value, args: &[&str]| {
        let run =
            reaper(&[&["--snapshot", "-", "-o", "json"], args].concat()).input(state.to_string());
        let unseen = run.run().exits(0).report()["unseen"].clone();
        let unseen = unseen
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>();
        let lacks = unseen
            .iter()
            .position(|says| says.starts_with("The file lacks "));
        assert!(lacks.is_none_or(|at| unseen[at + 1] == whole), "{unseen:?}");
        let unseen = unseen.into_iter();
        unseen
            .filter_map(|says| Some(says.strip_prefix("The file lacks ")?.to_owned()))
            .collect::<Vec<_>>()
    };
    let mut state = small_cluster();
    assert_eq!(
        lacks(&state, &[]),
        Vec::<String>::new(),
        "there is one alone"
    );
    state["items"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"kind": "Namespace", "metadata": {"name": "kube-system"}}));
    let sentence = |what: &str| vec![format!("{what}. This saves all:")];
    assert_eq!(
        lacks(&state, &[]),
        sentence("pods of other namespaces, if there are any (-A)")
    );
    assert_eq!(
        lacks(&state, &["-n", "compute-hive01"]),
        Vec::<String>::new(),
        "one is asked for"
    );
    let items = state["items"].as_array_mut().expect("a list");
    items.push(
        json!({"kind": "Pod", "metadata": {"namespace": "kube-system", "name": "dns", "uid": "u"}}),
    );
    assert_eq!(lacks(&state, &[]), Vec::<String>::new());
    let items = state["items"].as_array_mut().expect("a list");
    items.push(
        json!({"kind": "Pod", "metadata": {"namespace": "a", "name": "b", "uid": "v"},
        "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-b"}}]}}),
    );
    assert_eq!(lacks(&state, &[]), sentence("pvc"));
    let items = state["items"].as_array_mut().expect("a list");
    items.push(
        json!({"kind": "PersistentVolumeClaim", "metadata": {"namespace": "a", "name": "data-b", "uid": "c"},
        "spec": {"volumeName": "pv-b"}, "status": {"phase": "Bound"}}),
    );
    assert_eq!(lacks(&state, &[]), sentence("pv"));
    let items = state["items"].as_array_mut().expect("a list");
    items.retain(|item| item["kind"] != "Lease" && item["kind"] != "Namespace");
    assert_eq!(
        lacks(&state, &[]),
        sentence("namespaces (whether they are opted out), leases (whether a node lives), pv")
    );
}

#[test]
fn pods_on_ready_nodes_that_are_left_out_are_counted() {
    let mut state = small_cluster();
    let mut other = state["items"][5].clone();
    other["metadata"]["name"] = json!("other-0");
    other["metadata"]["uid"] = json!("other");
    other["spec"]["nodeName"] = json!("ds04");
    state["items"].as_array_mut().expect("a list").push(other);
    let run = |args: &[&str]| {
        reaper(&[&["--snapshot", "-"], args].concat())
            .input(state.to_string())
            .run()
            .exits(0)
            .out
    };
    let says = "1 more on Ready nodes; --all lists them  [on-ready-nodes]";
    assert!(run(&[]).contains(says), "{}", run(&[]));
    for none in [
        &["--all"][..],
        &["-n", "other"],
        &["explain", "huebackend-0", "-n", "compute-hive01"],
        &["what-if", "ds06"],
    ] {
        assert!(
            !run(none).contains("more on Ready nodes"),
            "{none:?}: {}",
            run(none)
        );
    }
}

#[test]
fn a_snapshot_that_is_no_text_is_an_error() {
    let run = reaper(&[]);
    let path = run.home.path().join("state.json");
    fs::write(&path, [0x7b, 0xff, 0xfe, 0x7d]).expect("a file");
    let mut run = run;
    run.command.arg("--snapshot").arg(&path);
    run.run()
        .exits(1)
        .shows_on_stderr(&["error: --snapshot ", "UTF-8"]);
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
    reaper(&["--snapshot", "-", "--now", KOSMOS_NOW])
        .input(undated.to_string())
        .run()
        .exits(0);
}

#[test]
fn a_snapshot_comes_from_standard_input_too() {
    let kosmos = fs::read_to_string(data().join(KOSMOS)).expect("the snapshot");
    let piped = reaper(&["--snapshot", "-", "--output=json"])
        .input(kosmos)
        .run()
        .exits(0)
        .report();
    let mut read = reaper(&["--snapshot", KOSMOS, "--output=json"])
        .run()
        .exits(0)
        .report();
    read["snapshot"] = json!("-");
    assert_eq!(piped, read);
}

#[test]
fn a_snapshot_needs_no_kubeconfig_and_reads_none() {
    audit(&[])
        .env("KUBECONFIG", "/nowhere/config")
        .run()
        .exits(0);
    let run = audit(&[]);
    run.file(".kube/config", "{{{");
    run.run().exits(0);
}
