//! The built binary, from outside: what may be typed, what it prints where, and how it exits.
//!
//! No test here needs a cluster. Every run gets an environment of its own, and a home of its own, so that neither a
//! kubeconfig nor a variable of the machine that runs the tests is in reach.

#![expect(clippy::expect_used, reason = "a helper that cannot do its part ends its test")]
#![expect(clippy::needless_raw_string_hashes, reason = "UPDATE_EXPECT=1 writes them")]

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{ErrorKind, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use expect_test::{expect, expect_file};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The state after a Kosmos leaf cluster was cut off, as kubectl printed it; its path seen from [`data`].
const KOSMOS: &str = "kosmos-link-cut.json";
/// The moment at which it was saved.
const KOSMOS_NOW: &str = "2026-11-20T22:00:36Z";

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("data")
}

/// One run of the program, not started yet.
struct Reaper {
    command: Command,
    home: TempDir,
    input: Option<String>,
}

/// What a run left behind.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn reaper(args: &[&str]) -> Reaper {
    let home = TempDir::new().expect("a home");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pod-reaper"));
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        // Relative paths, so that reports say the same on every machine.
        .current_dir(data());
    Reaper { command, home, input: None }
}

/// An audit of the Kosmos snapshot, with further arguments.
fn audit(args: &[&str]) -> Reaper {
    let mut reaper = reaper(&["--snapshot", KOSMOS, "--now", KOSMOS_NOW]);
    reaper.command.args(args);
    reaper
}

impl Reaper {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    fn input(mut self, text: impl Into<String>) -> Self {
        self.input = Some(text.into());
        self
    }

    /// Writes a file into the run's home and gives its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().expect("files have a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    fn run(mut self) -> Ended {
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        if let (Some(text), Some(mut stdin)) = (self.input, child.stdin.take()) {
            stdin.write_all(text.as_bytes()).expect("the program reads its input");
        }
        let output = child.wait_with_output().expect("the program ends");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ended {
            code: output.status.code().expect("no signal ended it"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Ended {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// On standard error, in this order.
    #[track_caller]
    fn says(self, parts: &[&str]) -> Self {
        let mut rest = self.err.as_str();
        for part in parts {
            let after = rest.split_once(part).map(|(_, after)| after);
            assert!(after.is_some(), "{part:?} is missing, or out of order, in:\n{}", self.err);
            rest = after.unwrap_or_default();
        }
        self
    }

    #[track_caller]
    fn keeps_quiet_about(self, secret: &str) -> Self {
        for text in [&self.out, &self.err] {
            assert!(!text.contains(secret), "{secret:?} was printed:\n{text}");
        }
        self
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.out).expect("the report is JSON")
    }
}

/// Three nodes, of which ds06 has been cut off for two hours, and one pod stuck on it.
fn small_cluster() -> Value {
    let node = |name: &str, ready: &str| {
        json!({"kind": "Node", "metadata": {"name": name, "uid": format!("uid-{name}")}, "status": {"conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-31T01:00:00Z"}
        ]}})
    };
    json!({"kind": "List", "items": [
        node("ds04", "True"),
        node("ds05", "True"),
        node("ds06", "Unknown"),
        {"kind": "Namespace", "metadata": {"name": "compute-hive01"}},
        {"kind": "Lease", "metadata": {"name": "ds06", "namespace": "kube-node-lease"},
            "spec": {"renewTime": "2026-01-31T00:59:20Z"}},
        {"kind": "Pod",
            "metadata": {
                "namespace": "compute-hive01", "name": "huebackend-0", "uid": "uid-huebackend", "resourceVersion": "7",
                "deletionTimestamp": "2026-01-31T01:05:00Z", "creationTimestamp": "2026-01-31T03:00:00Z",
            },
            "spec": {"nodeName": "ds06"}},
    ]})
}

// What may be typed.

#[test]
fn wrong_values_end_the_run_with_2_and_an_example_of_a_right_one() {
    type Case =
        (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)], [&'static str; 2]);
    let cases: &[Case] = &[
        ("bare number", &[], &[("REAP_OLDER_THAN", "10")], ["--reap-older-than", "10m"]),
        ("negative duration", &[], &[("REAP_OLDER_THAN", "-5m")], ["--reap-older-than", "10m"]),
        ("empty duration", &["--reap-older-than", ""], &[], ["--reap-older-than", "10m"]),
        ("negative, typed", &["--reap-older-than", "-5m"], &[], ["--reap-older-than", "10m"]),
        ("negative, typed with =", &["--reap-older-than=-5m"], &[], ["--reap-older-than", "10m"]),
        ("months for minutes", &["--reap-older-than", "10M"], &[], ["--reap-older-than", "10m"]),
        ("words", &["--reap-older-than", "ten minutes"], &[], ["--reap-older-than", "10m"]),
        ("an option as value", &["--reap-older-than", "--all"], &[], ["--reap-older-than", "10m"]),
        ("bare number", &["--node-not-ready-for", "600"], &[], ["--node-not-ready-for", "10m"]),
        ("bare number", &[], &[("NODE_NOT_READY_FOR", "600")], ["--node-not-ready-for", "10m"]),
        ("bare number", &["--deadline", "480"], &[], ["--deadline", "10m"]),
        ("bare number", &[], &[("DEADLINE", "480")], ["--deadline", "10m"]),
        ("broken regex", &[], &[("NAMESPACE_REGEX", "[")], ["--namespace-regex", "^prod-"]),
        ("empty regex", &["--namespace-regex", ""], &[], ["--namespace-regex", "^prod-"]),
        ("broken regex", &[], &[("NAMESPACE_EXCLUDE_REGEX", "(")], ["--namespace-exclude-regex", "^prod-"]),
        ("empty regex", &["--namespace-exclude-regex="], &[], ["--namespace-exclude-regex", "^prod-"]),
        ("neither yes nor no", &[], &[("DRY_RUN", "maybe")], ["--dry-run", "server"]),
        ("another case", &[], &[("DRY_RUN", "True")], ["--dry-run", "server"]),
        ("a number", &[], &[("DRY_RUN", "1")], ["--dry-run", "server"]),
        ("empty", &["--dry-run="], &[], ["--dry-run", "server"]),
        ("neither yes nor no", &[], &[("UNREACHABLE_ONLY", "maybe")], ["--unreachable-only", "true, false"]),
        ("neither yes nor no", &[], &[("EXIT_ON_MANUAL", "maybe")], ["--exit-on-manual", "true, false"]),
        (
            "no share",
            &[],
            &[("MAX_NOT_READY_PERCENT", "0")],
            ["--max-not-ready-percent", "from 1 to 100, such as 55"],
        ),
        (
            "more than all",
            &[],
            &[("MAX_NOT_READY_PERCENT", "101")],
            ["--max-not-ready-percent", "from 1 to 100, such as 55"],
        ),
        ("a percent sign", &["--max-not-ready-percent", "55%"], &[], ["--max-not-ready-percent", "1-100"]),
        ("below none", &["--max-deletes=-1"], &[], ["--max-deletes", "<N>"]),
        (
            "no set",
            &[],
            &[("LEAF_NODE_SELECTOR", "a in b")],
            ["--leaf-node-selector", "type=virtual-kubelet"],
        ),
        ("empty", &["--leaf-node-selector", ""], &[], ["--leaf-node-selector", "type=virtual-kubelet"]),
        ("empty", &["--manual-owner-kind", ""], &[], ["--manual-owner-kind", "StatefulSet"]),
        (
            "nothing after a comma",
            &[],
            &[("MANUAL_OWNER_KIND", "Job,")],
            ["--manual-owner-kind", "StatefulSet"],
        ),
        ("no moment", &["--now", "yesterday", "--snapshot", KOSMOS], &[], ["--now", "2026-01-31T03:00:00Z"]),
        ("a moment without a snapshot", &["--now", KOSMOS_NOW], &[], ["required", "--snapshot <FILE>"]),
        ("no form", &["--output", "yaml"], &[], ["--output", "write text, json, markdown or html"]),
        ("no form", &[], &[("LOG_FORMAT", "xml")], ["--log-format", "text, json"]),
        ("no level", &[], &[("LOG_LEVEL", "loud")], ["--log-level", "off, error, warn, info"]),
        ("empty", &["--snapshot", ""], &[], ["--snapshot", "file name"]),
        ("empty", &["--kubeconfig", ""], &[], ["--kubeconfig", "file name"]),
        ("empty", &["--context", ""], &[], ["--context", "empty"]),
        (
            "a cluster for a snapshot",
            &["--context", "c", "--snapshot", KOSMOS],
            &[],
            ["--context", "--snapshot"],
        ),
        (
            "a cluster for a snapshot",
            &["--kubeconfig", "k", "--snapshot", KOSMOS],
            &[],
            ["--kubeconfig", "--snapshot"],
        ),
        ("two lines", &[], &[("CLUSTER_NAME", "a\nb")], ["--cluster-name", "prod-eu"]),
        (
            "no URL",
            &[],
            &[("PUSH_GATEWAY", "gateway:9091")],
            ["--push-gateway", "http://pushgateway.monitoring:9091"],
        ),
        ("empty", &["--push-gateway", ""], &[], ["--push-gateway", "http://pushgateway.monitoring:9091"]),
        ("empty", &["--metrics-file", ""], &[], ["--metrics-file", "empty"]),
        (
            "metrics of a snapshot",
            &["--metrics-file", "f", "--snapshot", KOSMOS],
            &[],
            ["--metrics-file", "--snapshot"],
        ),
        ("a slip", &["--dry-rnu"], &[], ["--dry-rnu", "--dry-run"]),
        ("an argument", &["ds06"], &[], ["ds06", "--help"]),
    ];
    for (name, args, variables, parts) in cases {
        let run = variables.iter().fold(reaper(args), |run, (name, value)| run.env(name, value));
        let ended = run.run();
        assert_eq!(ended.code, 2, "{name}: {args:?} {variables:?}:\n{}{}", ended.out, ended.err);
        assert_eq!(ended.out, "", "{name}: {args:?} {variables:?}");
        for part in parts {
            assert!(
                ended.err.contains(part),
                "{name}: {args:?} {variables:?}: no {part:?} in:\n{}",
                ended.err
            );
        }
    }
}

#[test]
fn an_error_reads_as_a_sentence() {
    expect![[r#"
        error: invalid value '10' for '--reap-older-than <DURATION>': a bare number has no unit; write it with a unit, such as 10m or 1h 30m

        For more information, try '--help'.
    "#]]
    .assert_eq(&reaper(&["--reap-older-than", "10"]).run().exits(2).err);
    expect![[r#"
        error: invalid value '[' for '--namespace-regex <REGEX>': unclosed character class; write a regular expression such as ^prod- or ^(compute|impala)-

        For more information, try '--help'.
    "#]]
    .assert_eq(&reaper(&[]).env("NAMESPACE_REGEX", "[").run().exits(2).err);
}

#[test]
fn a_push_gateway_that_is_refused_is_not_repeated() {
    let wrong = "ftp://reaper:MARKER@gateway.example";
    let says = "invalid value for '--push-gateway <URL>': it is no URL of a Pushgateway";
    for run in [reaper(&["--push-gateway", wrong]), reaper(&[]).env("PUSH_GATEWAY", wrong)] {
        run.run().exits(2).says(&[says]).keeps_quiet_about("MARKER");
    }
    let right = "http://reaper:MARKER@gateway.example";
    reaper(&["--help"]).env("PUSH_GATEWAY", right).run().exits(0).keeps_quiet_about("MARKER");
    reaper(&["--snapshot", KOSMOS, "--push-gateway", right]).run().exits(2).keeps_quiet_about("MARKER");
}

/// A variable is for the runs of a CronJob: nothing is pushed or written, and nothing warned about.
#[test]
fn an_audit_hands_no_metrics_over() {
    let plain = audit(&[]).run().exits(0);
    let gateway = Forbidden::new();
    let run = audit(&[]).env("PUSH_GATEWAY", &format!("http://{}", gateway.address()));
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("pod-reaper.prom");
    let ended = run.env("METRICS_FILE", &file.display().to_string()).run().exits(0);
    assert!(!file.exists());
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
    assert_eq!(ended.out, plain.out);
    gateway.was_left_alone();
}

/// Nor do the commands that print what is built in: they are no run, and must not pass for one that went well.
#[test]
fn what_is_printed_of_the_program_itself_hands_no_metrics_over() {
    for command in [&["man"][..], &["completions", "bash"]] {
        let gateway = Forbidden::new();
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("pod-reaper.prom");
        let run = reaper(command).env("PUSH_GATEWAY", &format!("http://{}", gateway.address()));
        run.env("METRICS_FILE", &file.display().to_string()).run().exits(0);
        assert!(!file.exists(), "{command:?}");
        gateway.was_left_alone();
    }
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let variables = [
        "NAMESPACE_REGEX",
        "NAMESPACE_EXCLUDE_REGEX",
        "REAP_OLDER_THAN",
        "NODE_NOT_READY_FOR",
        "UNREACHABLE_ONLY",
        "MANUAL_OWNER_KIND",
        "LEAF_NODE_SELECTOR",
        "DRY_RUN",
        "MAX_DELETES",
        "MAX_NOT_READY_PERCENT",
        "DEADLINE",
        "EXIT_ON_MANUAL",
        "CLUSTER_NAME",
        "PUSH_GATEWAY",
        "METRICS_FILE",
        "NO_EVENTS",
        "LOG_FORMAT",
        "LOG_LEVEL",
    ];
    let plain = audit(&["--output=json"]).run().exits(0);
    for variable in variables {
        let ended = audit(&["--output=json"]).env(variable, "").run();
        assert_eq!((ended.code, &ended.out), (0, &plain.out), "{variable}: {}", ended.err);
    }
    let all = variables.iter().fold(audit(&["--output=json"]), |run, variable| run.env(variable, ""));
    assert_eq!(all.run().exits(0).out, plain.out);
}

#[test]
fn variables_set_what_options_set_and_options_beat_them() {
    let settings = |run: Reaper| run.run().exits(0).report()["settings"].clone();
    let cases: &[(&str, &str, &str, &str, Value, Value)] = &[
        ("NAMESPACE_REGEX", "^a", "--namespace-regex=^b", "namespaceRegex", json!("^a"), json!("^b")),
        (
            "NAMESPACE_EXCLUDE_REGEX",
            "^a",
            "--namespace-exclude-regex=^b",
            "namespaceExcludeRegex",
            json!("^a"),
            json!("^b"),
        ),
        (
            "REAP_OLDER_THAN",
            "20m",
            "--reap-older-than=1h 30m",
            "reapOlderThanSeconds",
            json!(1200),
            json!(5400),
        ),
        (
            "NODE_NOT_READY_FOR",
            "20m",
            "--node-not-ready-for=0s",
            "nodeNotReadyForSeconds",
            json!(1200),
            json!(0),
        ),
        (
            "UNREACHABLE_ONLY",
            "true",
            "--unreachable-only=false",
            "unreachableOnly",
            json!(true),
            json!(false),
        ),
        ("UNREACHABLE_ONLY", "false", "--unreachable-only", "unreachableOnly", json!(false), json!(true)),
        (
            "MANUAL_OWNER_KIND",
            "StatefulSet,Job",
            "--manual-owner-kind=ReplicaSet",
            "manualOwnerKinds",
            json!(["StatefulSet", "Job"]),
            json!(["ReplicaSet"]),
        ),
        (
            "LEAF_NODE_SELECTOR",
            "a=b",
            "--leaf-node-selector=c in (d,e)",
            "leafNodeSelector",
            json!("a=b"),
            json!("c in (d,e)"),
        ),
        ("MAX_DELETES", "5", "--max-deletes=0", "maxDeletes", json!(5), json!(0)),
        (
            "MAX_NOT_READY_PERCENT",
            "80",
            "--max-not-ready-percent=100",
            "maxNotReadyPercent",
            json!(80),
            json!(100),
        ),
    ];
    for (variable, value, option, field, set, beaten) in cases {
        let by_variable = settings(audit(&["--output=json"]).env(variable, value));
        assert_eq!(by_variable[field], *set, "{variable}={value}");
        let by_option = settings(audit(&["--output=json", option]).env(variable, value));
        assert_eq!(by_option[field], *beaten, "{variable}={value} {option}");
    }
    let follows = settings(audit(&["--output=json", "--reap-older-than=20m"]));
    assert_eq!(
        follows["nodeNotReadyForSeconds"], 1200,
        "the node's threshold is the pod's, unless it is set"
    );
    let kinds = settings(audit(&["--output=json", "--manual-owner-kind=A", "--manual-owner-kind=B, C"]));
    assert_eq!(kinds["manualOwnerKinds"], json!(["A", "B", "C"]));
}

#[test]
fn options_that_must_not_come_from_a_stray_variable_do_not() {
    let stray = [
        ("YES", "true"),
        ("NOW", "yesterday"),
        ("SNAPSHOT", "/nowhere"),
        ("CONTEXT", "nowhere"),
        ("ALL", "true"),
        ("OUTPUT", "yaml"),
    ];
    let plain = audit(&[]).run().exits(0);
    let with = stray.iter().fold(audit(&[]), |run, (name, value)| run.env(name, value)).run().exits(0);
    assert_eq!(with.out, plain.out);
}

#[test]
fn help_is_the_same_everywhere_and_tells_no_value() {
    let help = reaper(&["--help"]).run().exits(0);
    assert_eq!(help.err, "");
    expect_file!["data/golden/help.txt"].assert_eq(&help.out);

    let set = reaper(&["--help"]).env("NAMESPACE_REGEX", "^secret-").env("DRY_RUN", "client").run().exits(0);
    assert_eq!(set.out, help.out);
    let short = reaper(&["-h"]).env("NAMESPACE_REGEX", "^secret-").run().exits(0).keeps_quiet_about("secret");
    assert!(short.out.contains("Usage: pod-reaper [OPTIONS]"), "{}", short.out);
    // Needed most by somebody whose environment is wrong.
    let wrong = reaper(&["--help"]).env("DRY_RUN", "maybe").run().exits(0);
    assert_eq!(wrong.out, help.out);
}

#[test]
fn help_does_not_depend_on_empty_variables() {
    let help = reaper(&["--help"]).run().exits(0);
    assert_eq!(reaper(&["--help"]).env("REAP_OLDER_THAN", "").run().exits(0).out, help.out);
}

#[test]
fn version_is_the_packages() {
    let ended = reaper(&["--version"]).run().exits(0);
    assert_eq!(ended.out, concat!("pod-reaper ", env!("CARGO_PKG_VERSION"), "\n"));
}

// Snapshots that cannot be judged.

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
        ended.says(&[&format!("error: --snapshot {path}: ")]).says(parts);
    }
    reaper(&["--snapshot", "absent.json"])
        .run()
        .exits(1)
        .says(&["error: --snapshot absent.json: ", "No such file"]);
    reaper(&["--snapshot", "."]).run().exits(1).says(&["error: --snapshot .: ", "directory"]);
    reaper(&["--snapshot", "-"]).input("nonsense").run().exits(1).says(&["error: --snapshot -: ", "line 1"]);
}

#[test]
fn a_snapshot_that_is_no_text_is_an_error() {
    let run = reaper(&[]);
    let path = run.home.path().join("state.json");
    fs::write(&path, [0x7b, 0xff, 0xfe, 0x7d]).expect("a file");
    let mut run = run;
    run.command.arg("--snapshot").arg(&path);
    run.run().exits(1).says(&["error: --snapshot ", "UTF-8"]);
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
        .says(&["--now", "2026-01-31T03:00:00Z"]);
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
fn a_snapshot_needs_no_kubeconfig_and_minds_none() {
    audit(&[]).env("KUBECONFIG", "/nowhere/config").run().exits(0);
    let run = audit(&[]);
    run.file(".kube/config", "{{{");
    run.run().exits(0);
}

// Verdicts, end to end.

#[test]
fn pods_on_a_cut_off_kosmos_leaf_need_a_person() {
    let ended = audit(&["--reap-older-than=3s", "--output=json"]).run().exits(0);
    let report = ended.report();
    let pods = report["pods"].as_array().expect("pods");
    assert_eq!(pods.len(), 1);
    let pod = &pods[0];
    assert_eq!(
        [&pod["namespace"], &pod["name"], &pod["node"], &pod["verdict"], &pod["reason"]],
        ["app", "web-0", "kosmos-cluster7", "manual", "kosmos-leaf"]
    );
    let detail = pod["detail"].as_str().expect("a sentence");
    let marks = [
        "label kosmos.io/node",
        "annotation kosmos-io/owned-by-cluster=cluster7",
        "taint kosmos.io/node",
        "name prefix kosmos-",
    ];
    for mark in marks {
        assert!(detail.contains(mark), "no {mark:?} in {detail:?}");
    }
    assert_eq!(report["nodes"][0]["leafMarks"], json!(marks));
    assert_eq!(report["summary"]["verdicts"], json!({"leave": 0, "manual": 1, "reap": 0, "wait": 0}));
    assert_eq!(report["mode"], "snapshot");
    assert_eq!(report["version"], 1);
    assert_eq!(report["exitCode"], 0);
    let commands = pod["steps"].as_array().expect("steps").iter().map(|step| step["command"].to_string());
    assert!(commands.into_iter().all(|command| !command.contains("delete")), "{}", ended.out);

    let again = audit(&["--reap-older-than=3s", "--output=json"]).run().exits(0);
    assert_eq!(again.out, ended.out, "same input, same bytes");
    expect_file!["data/golden/kosmos-link-cut.txt"]
        .assert_eq(&audit(&["--reap-older-than=3s"]).run().exits(0).out);
}

/// A claim whose test is gone is one that nobody checks.
#[test]
fn every_test_that_the_security_page_names_is_there() {
    fn functions(folder: &Path, of: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                functions(&path, of);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            // `src/decide/tests.rs` and `src/decide/mod.rs` are known as `decide`.
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let folder = path.parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
            let module =
                if ["tests", "mod", "main"].contains(&name.as_str()) { folder.as_ref() } else { &name };
            let text = fs::read_to_string(&path).expect("text");
            let names =
                text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split_once('('));
            of.extend(names.map(|(function, _)| format!("{module}::{function}")));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut there = BTreeSet::new();
    functions(&root.join("tests"), &mut there);
    functions(&root.join("src"), &mut there);
    let page = fs::read_to_string(root.join("SECURITY.md")).expect("the page");
    let named = page.split('`').skip(1).step_by(2).filter(|word| word.contains("::") && *word != "a::b");
    let named = named.collect::<Vec<_>>();
    assert!(named.len() > 20, "{named:?}");
    for test in named {
        assert!(there.contains(test), "{test} is not there");
    }
}

/// The first thing that a newcomer sees is what the program prints.
#[test]
fn the_readme_shows_what_its_first_command_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut run = reaper(&["--snapshot", "tests/data/six-nodes.json"]);
    run.command.current_dir(root);
    let ended = run.run().exits(0);
    expect_file!["data/golden/six-nodes.txt"].assert_eq(&ended.out);
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    for shown in ["six-nodes.txt", "what-if-ds06.txt", "explain-local-volume.txt"] {
        let golden = fs::read_to_string(root.join("tests/data/golden").join(shown)).expect("a golden file");
        assert!(readme.contains(&golden), "paste tests/data/golden/{shown} into the README");
    }
}

/// The README names both commands.
#[test]
fn the_same_run_as_markdown_and_as_a_page() {
    let run = |form| {
        let mut run = reaper(&["--snapshot", "tests/data/six-nodes.json", "--output", form]);
        run.command.current_dir(env!("CARGO_MANIFEST_DIR"));
        run.run().exits(0).out
    };
    expect_file!["data/golden/six-nodes.md"].assert_eq(&run("markdown"));
    let page = run("html");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">") && page.ends_with("</html>\n"), "{page}");
    let report = serde_json::from_str::<Value>(&run("json")).expect("JSON");
    for pod in report["pods"].as_array().expect("pods") {
        let name = format!("<wbr><b>{}</b>", pod["name"].as_str().expect("a name"));
        assert!(page.contains(&name), "{name} is missing");
    }
}

#[test]
fn the_default_threshold_lets_the_kosmos_pod_wait() {
    let report = audit(&["--output=json"]).run().exits(0).report();
    assert_eq!(report["pods"][0]["reason"], "not-overdue");
}

#[test]
fn something_for_a_person_is_5_only_when_asked_for() {
    audit(&["--reap-older-than=3s", "--exit-on-manual"]).run().exits(5);
    audit(&["--reap-older-than=3s"]).env("EXIT_ON_MANUAL", "true").run().exits(5);
    audit(&["--reap-older-than=3s", "--exit-on-manual=false"]).env("EXIT_ON_MANUAL", "true").run().exits(0);
    let nothing_manual = audit(&["--exit-on-manual"]).run().exits(0);
    assert!(nothing_manual.out.contains("Exit code 0."), "{}", nothing_manual.out);
    let report =
        audit(&["--reap-older-than=3s", "--exit-on-manual", "--output=json"]).run().exits(5).report();
    assert_eq!(report["exitCode"], 5);
}

#[test]
fn a_stuck_pod_of_a_snapshot_is_told_and_the_namespace_filter_holds() {
    let state = small_cluster().to_string();
    let judge = |args: &[&str]| {
        let mut run = reaper(&["--snapshot", "-", "--output=json"]);
        run.command.args(args);
        run.input(state.as_str()).run().exits(0).report()
    };
    let reaped = judge(&[]);
    assert_eq!(reaped["pods"][0]["reason"], "stuck-on-not-ready-node");
    assert_eq!(reaped["pods"][0]["outcome"], Value::Null, "a snapshot is judged, nothing is tried");
    assert_eq!(reaped["judgedAt"], "2026-01-31T03:00:00Z");
    // A search, as with grep: not anchored.
    assert_eq!(judge(&["--namespace-regex", "hive"])["summary"]["pods"], 1);
    assert_eq!(judge(&["--namespace-regex", "^hive"])["summary"]["pods"], 0);
    assert_eq!(judge(&["--namespace-exclude-regex", "hive"])["summary"]["pods"], 0);
    assert_eq!(judge(&["--dry-run"])["mode"], "snapshot");
}

#[test]
fn the_breaker_is_4_and_an_odd_object_is_3() {
    let mut outage = small_cluster();
    for at in 0..2 {
        outage["items"][at]["status"]["conditions"][0]["status"] = json!("Unknown");
    }
    let held = reaper(&["--snapshot", "-"]).input(outage.to_string()).run().exits(4);
    assert!(held.out.contains("NOTHING IS DELETED (mass-outage)"), "{}", held.out);
    reaper(&["--snapshot", "-", "--max-not-ready-percent=100"]).input(outage.to_string()).run().exits(0);

    let mut odd = small_cluster();
    odd["items"][5]["metadata"]["deletionTimestamp"] = json!(5);
    let unread = reaper(&["--snapshot", "-"]).input(odd.to_string()).run().exits(3);
    assert!(unread.out.contains("COULD NOT BE READ: 1"), "{}", unread.out);
}

// Where output goes.

#[test]
fn the_log_goes_to_standard_error_and_the_report_to_standard_output() {
    let ended = audit(&[]).run().exits(0).says(&["INFO", "Looking for stuck Terminating pods"]);
    assert!(ended.out.starts_with("pod-reaper "), "{}", ended.out);
    assert!(!ended.out.contains("Looking for"), "{}", ended.out);
    assert!(!ended.err.contains("Summary"), "{}", ended.err);
}

#[test]
fn a_silent_log_is_silent_but_for_what_ends_the_run() {
    assert_eq!(audit(&["--log-level=off"]).run().exits(0).err, "");
    assert_eq!(audit(&[]).env("LOG_LEVEL", "off").run().exits(0).err, "");
    let failed = reaper(&["--log-level=off", "--snapshot", "absent.json"]).run().exits(1);
    assert_eq!(failed.err.lines().count(), 1, "{}", failed.err);
    failed.says(&["error: --snapshot absent.json"]);
}

#[test]
fn a_json_log_is_an_object_a_line() {
    let ended = audit(&["--log-format=json", "--log-level=trace", "--namespace-regex=\"\n"]).run().exits(0);
    assert!(!ended.err.is_empty());
    for line in ended.err.lines() {
        let event: Value = serde_json::from_str(line).expect(line);
        for field in ["timestamp", "level", "message"] {
            assert!(event[field].is_string(), "no {field} in {line}");
        }
    }
}

#[test]
fn no_escape_leaves_the_program_unless_a_terminal_reads_it() {
    for ended in [
        audit(&["--reap-older-than=3s"]).run().exits(0),
        audit(&["--reap-older-than=3s", "--output=json"]).run().exits(0),
        audit(&[]).env("NO_COLOR", "1").run().exits(0),
        // Variables by which other programs are told to paint all the same.
        audit(&[]).env("CLICOLOR_FORCE", "1").env("FORCE_COLOR", "1").run().exits(0),
        reaper(&["--help"]).run().exits(0),
        reaper(&["--nonsense"]).run().exits(2),
    ] {
        assert!(!ended.out.contains('\u{1b}'), "{:?}", ended.out);
        assert!(!ended.err.contains('\u{1b}'), "{:?}", ended.err);
    }
}

/// `script` gives the program a terminal.
#[test]
fn a_terminal_gets_colours_unless_no_color_is_set() {
    let on_a_terminal = |variables: &[(&str, &str)]| {
        let program = env!("CARGO_BIN_EXE_pod-reaper");
        let line = format!("{program} --snapshot {KOSMOS} --now {KOSMOS_NOW} --reap-older-than=3s");
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .current_dir(data())
            .stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("TERM", "xterm").envs(variables.iter().copied());
        let output = command.output().expect("script starts (apt-get install bsdutils)");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let painted = on_a_terminal(&[]);
    assert!(painted.contains("Summary") && painted.contains('\u{1b}'), "{painted:?}");
    let plain = on_a_terminal(&[("NO_COLOR", "1")]);
    assert!(plain.contains("Summary") && !plain.contains('\u{1b}'), "{plain:?}");
    let empty = on_a_terminal(&[("NO_COLOR", "")]);
    assert!(empty.contains('\u{1b}'), "an empty NO_COLOR counts as not set (no-color.org): {empty:?}");
}

#[test]
fn a_closed_pipe_is_success() {
    for output in ["--output=text", "--output=json"] {
        let mut run = reaper(&["--snapshot", "-", output]);
        run.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = run.command.spawn().expect("the program starts");
        // Closed before there can be a report, since there is no snapshot yet.
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(small_cluster().to_string().as_bytes()).expect("the program reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("the program ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(!err.contains("error") && !err.contains("panicked"), "{err}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_3_unless_something_worse_is_told() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("/dev/full"));
    let write_to_full = |mut run: Reaper| {
        let child = run.command.stdin(Stdio::null()).stdout(full()).stderr(Stdio::piped()).spawn();
        let output = child.and_then(std::process::Child::wait_with_output).expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for args in [&["--output=text"][..], &["--output=json"], &["--reap-older-than=3s", "--exit-on-manual"]] {
        let (code, err) = write_to_full(audit(args));
        assert_eq!(code, Some(3), "{args:?}: {err}");
        assert!(err.contains("error: the report could not be written: "), "{args:?}: {err}");
    }
    let mut outage = small_cluster();
    for at in 0..2 {
        outage["items"][at]["status"]["conditions"][0]["status"] = json!("Unknown");
    }
    let mut run = reaper(&[]);
    let path = run.file("outage.json", &outage.to_string());
    run.command.args(["--snapshot", &path]);
    assert_eq!(write_to_full(run).0, Some(4));
}

#[test]
fn a_log_that_cannot_be_written_changes_nothing() {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut run = audit(&["--reap-older-than=3s"]);
    let output = run.command.stdin(Stdio::null()).stderr(full).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    expect_file!["data/golden/kosmos-link-cut.txt"].assert_eq(&String::from_utf8_lossy(&output.stdout));
}

// Which cluster.

/// Stands where a cluster must not be asked. Nothing accepts, so a connection waits here until it is counted.
struct Forbidden(TcpListener);

impl Forbidden {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        Self(listener)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("an address")
    }

    #[track_caller]
    fn was_left_alone(self) {
        let asked = self.0.accept();
        assert!(asked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "another cluster was asked");
    }
}

/// A kubeconfig with the contexts `here` (current) and `there`.
fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters:\n- name: c\n  cluster: {{server: 'http://{address}'}}\n\
         users:\n- name: u\n  user: {{token: MARKER}}\n\
         contexts:\n- name: here\n  context: {{cluster: c, user: u}}\n- name: there\n  context: {{cluster: c, user: u}}\n"
    )
}

/// Not YAML; the token must not be repeated.
const BROKEN: &str = "apiVersion: v1\nusers:\n- name: u\n  user: {token: MARKER\ncontexts: [\n";

/// A run in a pod, as far as a test can make it one: the service is there.
fn in_a_pod(args: &[&str], forbidden: &Forbidden) -> Reaper {
    let address = forbidden.address();
    reaper(args)
        .env("KUBERNETES_SERVICE_HOST", &address.ip().to_string())
        .env("KUBERNETES_SERVICE_PORT", &address.port().to_string())
}

#[test]
fn the_named_cluster_is_the_one_that_is_asked() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    thread::spawn(move || {
        for connection in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    let asks = |name: &str, run: Reaper| {
        run.run().exits(1).says(&["error: could not list nodes", "connection"]).keeps_quiet_about("MARKER");
        assert!(asked.swap(0, Ordering::SeqCst) > 0, "{name}: the cluster was not asked");
    };
    let with_file = |name: &str| {
        let run = reaper(&["--dry-run=client"]);
        let path = run.file(name, &kubeconfig(address));
        (run, path)
    };

    let (mut run, path) = with_file("config");
    run.command.args(["--kubeconfig", &path]);
    asks("--kubeconfig", run.env("KUBECONFIG", "/nowhere/config"));

    // kubectl passes over files of the list that do not exist.
    let (run, path) = with_file("config");
    asks("KUBECONFIG", run.env("KUBECONFIG", &format!("/nowhere/config:{path}")));

    let (mut run, path) = with_file("config");
    run.command.args(["--context", "there"]);
    asks("--context", run.env("KUBECONFIG", &path));

    let (run, _) = with_file(".kube/config");
    asks("the default kubeconfig", run);
}

#[test]
fn an_unknown_context_ends_the_run_and_lists_those_that_are_known() {
    let forbidden = Forbidden::new();
    let run = in_a_pod(&["--context", "prod"], &forbidden);
    let path = run.file("config", &kubeconfig(forbidden.address()));
    run.env("KUBECONFIG", &path)
        .run()
        .exits(2)
        .says(&["--context prod", "here, there"])
        .keeps_quiet_about("MARKER");
    forbidden.was_left_alone();
}

#[test]
fn a_broken_kubeconfig_never_falls_back_to_another_cluster() {
    let forbidden = Forbidden::new();
    let good = kubeconfig(forbidden.address());

    // Typed; the ones that would be used without it are fine.
    let mut run = in_a_pod(&["--dry-run=client"], &forbidden);
    let path = run.file("broken", BROKEN);
    run.file(".kube/config", &good);
    let other = run.file("good", &good);
    run.command.args(["--kubeconfig", &path]);
    let ended = run.env("KUBECONFIG", &other).run().exits(2);
    ended.says(&["--kubeconfig", &path, "not a kubeconfig", "line"]).keeps_quiet_about("MARKER");

    // By variable, alone and in a list.
    for list in [&["broken"][..], &["broken", "good"], &["good", "broken"], &["absent", "broken"]] {
        let run = in_a_pod(&["--dry-run=client"], &forbidden);
        run.file("broken", BROKEN);
        run.file("good", &good);
        run.file(".kube/config", &good);
        let paths =
            list.iter().map(|name| run.home.path().join(name).display().to_string()).collect::<Vec<_>>();
        let ended = run.env("KUBECONFIG", &paths.join(":")).run().exits(2);
        ended.says(&["KUBECONFIG", "broken", "not a kubeconfig"]).keeps_quiet_about("MARKER");
    }

    // The default one.
    let run = in_a_pod(&["--dry-run=client"], &forbidden);
    run.file(".kube/config", BROKEN);
    run.run().exits(2).says(&[".kube/config", "not a kubeconfig"]).keeps_quiet_about("MARKER");

    forbidden.was_left_alone();
}

#[test]
fn what_is_no_kubeconfig_at_all_is_refused_without_being_shown() {
    let forbidden = Forbidden::new();
    for (name, text) in [
        ("empty", ""),
        ("a bare token", "MARKER"),
        ("a list", "- MARKER\n"),
        ("another type", "users: MARKER\n"),
        ("a certificate", "-----BEGIN MARKER-----\n"),
        ("no context", "apiVersion: v1\nkind: Config\n"),
        (
            "half a context",
            "current-context: here\ncontexts:\n- name: here\n  context: {cluster: MARKER, user: u}\n",
        ),
        (
            "no server",
            "current-context: h\nclusters:\n- {name: c, cluster: {server: 'MARKER:6443'}}\nusers:\n- {name: u, user: {}}\ncontexts:\n- {name: h, context: {cluster: c, user: u}}\n",
        ),
    ] {
        let mut run = in_a_pod(&["--dry-run=client"], &forbidden);
        let path = run.file("config", text);
        run.command.args(["--kubeconfig", &path]);
        let ended = run.run();
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{name}: {}", ended.err);
        // A cluster that is named but missing may be named back; that is no secret.
        if name != "half a context" {
            assert!(!ended.err.contains("MARKER"), "{name}: {}", ended.err);
        }
    }
    forbidden.was_left_alone();
}

#[test]
fn a_kubeconfig_that_is_not_there_is_wrong_usage() {
    let forbidden = Forbidden::new();
    let run = in_a_pod(&["--kubeconfig", "/nowhere/config"], &forbidden);
    run.run().exits(2).says(&["--kubeconfig /nowhere/config", "No such file"]);
    let run = in_a_pod(&[], &forbidden).env("KUBECONFIG", "/nowhere/a:/nowhere/b");
    run.file(".kube/config", &kubeconfig(forbidden.address()));
    run.run().exits(2).says(&["KUBECONFIG", "/nowhere/a", "/nowhere/b", "no such file"]);
    in_a_pod(&["--context", "prod"], &forbidden).run().exits(2).says(&[
        "--context prod",
        "no kubeconfig",
        "--kubeconfig",
    ]);
    forbidden.was_left_alone();
}

#[test]
fn without_any_cluster_the_run_cannot_be_had() {
    reaper(&[]).run().exits(1).says(&["no cluster", "--kubeconfig", "--snapshot"]);
    reaper(&[]).env("KUBECONFIG", "").run().exits(1).says(&["no cluster"]);
}

// Questions.

/// A question about a snapshot, with options after it.
fn ask(snapshot: &str, question: &[&str]) -> Reaper {
    let mut run = reaper(question);
    run.command.args(["--snapshot", snapshot]);
    run
}

const SIX: &str = "six-nodes.json";

#[test]
fn what_if_tells_who_comes_back_and_who_does_not() {
    let dead = ask(SIX, &["what-if", "--node", "ds06"]).run().exits(0);
    expect_file!["data/golden/what-if-ds06.txt"].assert_eq(&dead.out);
    let told = ask(SIX, &["what-if", "--node", "ds06", "-o", "json"]).run().exits(0).report();
    assert_eq!(told["version"], 1);
    assert_eq!(told["breaker"], Value::Null);
    assert_eq!(told["summary"]["comes-back"], 7);
    assert_eq!(told["summary"]["needs-person"], 1);

    let leaf = ask(KOSMOS, &["what-if", "--node=kosmos-cluster7", "-o=json"]).run().exits(0).report();
    let pods = leaf["pods"].as_array().expect("pods");
    assert!(pods.iter().any(|pod| pod["reason"] == "kosmos-leaf"), "{leaf}");
}

/// They are for a dead node, and this one lives: pasted, they must do nothing.
#[test]
fn no_command_of_what_if_does_anything_when_pasted() {
    let dead = ask(SIX, &["what-if", "--node", "ds06"]).run().exits(0);
    let commands = dead.out.lines().filter(|line| line.contains("kubectl") || line.contains("--raw"));
    let commands = commands.collect::<Vec<_>>();
    assert!(commands.iter().any(|line| line.contains("delete")), "{}", dead.out);
    for line in commands {
        assert!(line.trim_start().starts_with('#'), "{line:?}");
    }
    let told = ask(SIX, &["what-if", "--node", "ds06", "--output=json"]).run().exits(0).report();
    let steps = told["pods"].as_array().expect("pods").iter().filter_map(|pod| pod["steps"].as_array());
    for step in steps.flatten().filter(|step| !step["command"].is_null()) {
        assert!(step["command"].as_str().is_some_and(|command| command.starts_with("# ")), "{step}");
    }
}

#[test]
fn what_if_names_what_would_be_lost_and_the_breaker() {
    let mut state = small_cluster();
    let items = state["items"].as_array_mut().expect("a list");
    items.push(json!({"kind": "Pod", "metadata": {
        "namespace": "compute-hive01", "name": "bare", "uid": "uid-bare", "resourceVersion": "8"},
        "spec": {"nodeName": "ds05"}, "status": {"phase": "Running"}}));
    let told = |nodes: &[&str]| {
        let question = [&["what-if", "--output=json", "--node"], nodes].concat();
        ask("-", &question).input(state.to_string()).run().exits(0).report()
    };
    let one = told(&["ds05"]);
    assert_eq!((&one["pods"][0]["fate"], &one["breaker"]), (&json!("lost"), &Value::Null), "{one}");
    // ds06 is dead already.
    let all = told(&["ds04", "ds05"]);
    assert_eq!(all["breaker"]["reason"], "mass-outage", "{all}");
    assert_eq!(all["kubernetesStopsEvicting"], true);
    assert_eq!(all["pods"][0]["reason"], "mass-outage");
}

#[test]
fn a_node_that_is_not_there_is_wrong_usage_with_near_names() {
    let wrong = ask(SIX, &["what-if", "--node", "ds6"]).run().exits(2);
    wrong.says(&["--node ds6: there is no such node; did you mean ds06"]);
    ask(SIX, &["what-if", "--node", "zzz"]).run().exits(2).says(&["kubectl get nodes"]);
    ask(SIX, &["what-if"]).run().exits(2).says(&["--node"]);
}

#[test]
fn explain_hears_every_rule() {
    let local = ask(SIX, &["explain", "impala-impala01/impala-executor-000-0"]).run().exits(0);
    expect_file!["data/golden/explain-local-volume.txt"].assert_eq(&local.out);
    let leaf = ask(SIX, &["explain", "kosmos-apps/web-0", "-o", "json"]).run().exits(0).report();
    assert_eq!((&leaf["verdict"], &leaf["reason"]), (&json!("manual"), &json!("kosmos-leaf")));
    let decides = leaf["rules"].as_array().expect("rules").iter().filter(|rule| rule["decides"] == true);
    assert_eq!(decides.map(|rule| rule["number"].clone()).collect::<Vec<_>>(), [json!(6)]);

    let running = ask(SIX, &["explain", "compute-hive02/hiveserver2-0"]).run().exits(0);
    assert!(running.out.contains("It is not Terminating"), "{}", running.out);
    let out = ask(SIX, &["explain", "vault/vault-0", "-n", "etl"]).run().exits(0);
    assert!(out.out.contains("Its namespace vault is left out"), "{}", out.out);
    ask(SIX, &["explain", "vault/vault-1"]).run().exits(1).says(&["there is no pod vault/vault-1"]);
    ask(SIX, &["explain", "vault-0"]).run().exits(2).says(&["such as vault/vault-0"]);
}

#[test]
fn an_option_that_a_question_has_no_use_for_is_refused() {
    for (args, says) in [
        (&["what-if", "--node=ds06", "--dry-run"][..], "--dry-run does not go with what-if"),
        (&["what-if", "--node=ds06", "--yes"], "--yes does not go with what-if"),
        (&["what-if", "--node=ds06", "--reap-older-than=1m"], "longer than any threshold"),
        (&["explain", "vault/vault-0", "--all"], "--all does not go with explain"),
        (&["explain", "vault/vault-0", "-o", "html"], "explain answers as text or json only"),
        (&["--dry-run", "what-if", "--node=ds06"], "--dry-run stands before what-if; write it after"),
    ] {
        ask(SIX, args).run().exits(2).says(&[says]);
    }
    // A variable is for the runs of a CronJob, and says nothing here.
    ask(SIX, &["explain", "vault/vault-0"]).env("DRY_RUN", "client").run().exits(0);
}

// As a plugin of kubectl.

#[test]
fn a_namespace_is_exactly_that_one() {
    let state = small_cluster().to_string();
    let pods = |name: &str| {
        let run = reaper(&["--snapshot", "-", "-o", "json", "-n", name]).env("NAMESPACE_REGEX", "^other$");
        run.input(state.as_str()).run().exits(0).report()["summary"]["pods"].clone()
    };
    assert_eq!(pods("compute-hive01"), 1);
    assert_eq!(pods("compute-hive0"), 0);
    assert_eq!(pods("compute.hive01"), 0, "a dot is a dot");
    reaper(&["-n", "a", "--namespace-regex", "b"]).run().exits(2).says(&["leave one out"]);
    reaper(&["-n", "A*"]).run().exits(2).says(&["--namespace-regex"]);
}

#[test]
fn kubectl_finds_it_and_it_answers_by_that_name() {
    let bin = TempDir::new().expect("a folder");
    let plugin = bin.path().join("kubectl-pod_reaper");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pod-reaper"), &plugin).expect("a link");
    for args in [&["--help"][..], &["what-if", "--help"]] {
        let output = Command::new(&plugin).args(args).env_clear().output().expect("it starts");
        let says = String::from_utf8_lossy(&output.stdout);
        assert!(says.contains("Usage: kubectl pod-reaper"), "{says}");
    }
}

#[test]
fn the_short_help_fits_a_screen() {
    let help = reaper(&["-h"]).run().exits(0).out;
    expect_file!["data/golden/help-short.txt"].assert_eq(&help);
    assert!(help.lines().count() <= 40, "{} lines", help.lines().count());
}

/// In a real shell, as a person presses the tabulator key.
#[test]
fn completion_works_in_bash() {
    let script = reaper(&["completions", "bash"]).run().exits(0).out;
    let dir = TempDir::new().expect("a folder");
    let file = dir.path().join("pod-reaper.bash");
    fs::write(&file, script).expect("a file");
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={at}; by=$(complete -p pod-reaper); by=${{by#*-F }}; \
             ${{by%% *}} pod-reaper \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash").args(["-c", &line]).output().expect("bash starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(complete("pod-reaper wh", 1).contains("what-if"));
    assert!(complete("pod-reaper --dry", 1).contains("--dry-run"));
    assert!(complete("pod-reaper what-if --no", 2).contains("--node"));
    for shell in ["zsh", "fish"] {
        let script = reaper(&["completions", shell]).run().exits(0).out;
        assert!(script.contains("what-if") && script.contains("kubeconfig"), "{shell}");
    }
}

#[test]
fn the_manual_page_renders() {
    let run = reaper(&["man"]).run().exits(0);
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("pod-reaper.1");
    fs::write(&file, run.out).expect("a file");
    let mut man = Command::new("man");
    man.args(["--warnings", "-l"]).arg(&file).env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8");
    let output = man.output().expect("man starts (apt-get install man-db)");
    let (page, warnings) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && warnings.is_empty(), "{warnings}");
    for part in ["NAME", "--dry-run", "POD-REAPER WHAT-IF", "--node", "POD-REAPER EXPLAIN"] {
        assert!(page.contains(part), "no {part} in:\n{page}");
    }
}
