//! What an operator sees first and last, and that it stays readable where much has failed.

use std::collections::BTreeSet;

use expect_test::{expect, expect_file};
use pod_reaper_test_support::samples::{self, with};
use serde_json::{Value, json};

use crate::reaper;

const NOW: &str = "2026-11-21T03:00:00Z";

fn node(name: &str, ready: bool) -> [Value; 2] {
    let (status, renewed) = if ready {
        ("True", "02:59:55")
    } else {
        ("Unknown", "02:29:00")
    };
    let mut node = samples::node(name, status);
    node["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-11-21T02:30:00Z");
    let renewed =
        json!({"renewTime": format!("2026-11-21T{renewed}Z"), "leaseDurationSeconds": 40});
    [node, with(samples::lease(name), json!({"spec": renewed}))]
}

fn pod(node: &str, name: &str, claim: Option<&str>) -> Value {
    let pod = samples::due(samples::pod("impala", name, node), "2026-11-21T02:40:00Z");
    let uid = format!("58892790-bfe0-4c7c-ba0f-{name:0>12}");
    let pod = with(
        pod,
        json!({"metadata": {"uid": uid, "deletionGracePeriodSeconds": 30}}),
    );
    match claim {
        Some(claim) => samples::using(pod, claim),
        None => pod,
    }
}

/// A claim on that node's disk, and its volume.
fn local(node: &str, claim: &str) -> [Value; 2] {
    let volume = format!("pvc-4be03db0-dc25-44bd-b940-{claim:0>12}");
    let hostname = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let spec = json!({
        "local": {"path": "/opt/local-path-provisioner"}, "persistentVolumeReclaimPolicy": "Delete",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
    });
    let uid = format!("2d89b108-b215-4551-adbe-{claim:0>12}");
    let claim = samples::claim("impala", claim, &volume);
    [
        with(claim, json!({"metadata": {"uid": uid}})),
        samples::volume(&volume, &spec),
    ]
}

fn lines(items: &[Value]) -> Vec<String> {
    let mut audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "off"]);
    let items = items.iter().cloned().chain([samples::namespace("impala")]);
    audit.command.arg("--cluster-name=prod-eu");
    let report = audit.input(samples::list(items).to_string()).run().out;
    report.lines().map(str::to_owned).collect()
}

/// `each` executors with data of their own on so many dead nodes, and as many beside them that run anywhere.
fn executors(dead: usize, all: usize, each: usize) -> Vec<Value> {
    let set = "impala-executor-000";
    let mut items = vec![samples::set("impala", set, &["scratch"])];
    for number in 0..all {
        items.extend(node(&format!("ds{number:03}"), number >= dead));
    }
    for number in 0..dead * each {
        let (at, name) = (format!("ds{:03}", number / each), format!("{set}-{number}"));
        let claim = format!("scratch-{name}");
        let index =
            json!({"metadata": {"labels": {"apps.kubernetes.io/pod-index": number.to_string()}}});
        items.push(with(pod(&at, &name, Some(&claim)), index));
        items.extend(local(&at, &claim));
        items.push(pod(&at, &format!("web-{number}"), None));
    }
    items
}

/// The text as a golden file has it: only a command is long.
fn cut(report: &[String]) -> String {
    let lines = report
        .iter()
        .map(|line| match line.char_indices().nth(200) {
            Some((end, _)) => format!("{} [...]\n", &line[..end]),
            None => format!("{line}\n"),
        });
    lines.collect()
}

#[test]
fn executors_on_a_handful_of_dead_nodes_are_each_answered_on_a_screen() {
    for dead in [5, 6] {
        let report = lines(&executors(dead, 20, 8));
        assert!(report.len() <= 60, "{} lines", cut(&report));
        let answers = report
            .iter()
            .filter(|line| line.contains("kubectl annotate pvc"));
        assert_eq!(
            answers.count(),
            5,
            "an answer a node, a sixth in the log: {}",
            report.join("\n")
        );
        // As people count.
        let text = report.join(" ");
        assert!(
            text.find("executor-000-8 ") < text.find("executor-000-9 "),
            "{text}"
        );
    }
}

/// One node with volumes of its own, a dead zone, a node that another Lease shows alive, the only node, and nothing wrong.
#[test]
fn each_state_is_for_one_look() {
    let mut volumes = executors(1, 6, 50);
    volumes.retain(|item| {
        let name = item["metadata"]["name"].as_str();
        name.is_some_and(|name| !name.starts_with("web-"))
    });
    let mut zone = Vec::new();
    for number in 1..=200 {
        let name = format!("worker-{number:03}");
        let mut of_node = node(&name, number > 67);
        let zones = ["zone-a", "zone-b", "zone-c"];
        of_node[0]["metadata"]["labels"] =
            json!({"topology.kubernetes.io/zone": zones[(number - 1) / 67]});
        zone.extend(of_node);
        if number <= 67 {
            zone.push(pod(&name, &format!("web-{number}"), None));
        }
    }
    for number in 1..=3 {
        let (at, claim) = (format!("worker-00{number}"), format!("data-db-{number}"));
        zone.push(pod(&at, &format!("db-{number}"), Some(&claim)));
        zone.extend(local(&at, &claim));
    }
    let mut alive = [node("ds01", false), node("ds02", true), node("ds03", true)].concat();
    alive.push(pod("ds01", "web-0", None));
    alive.push(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "leader", "namespace": "impala"},
        "spec": {"holderIdentity": "web-0_6d2f4a0e", "renewTime": "2026-11-21T02:59:57.000000Z"},
    }));
    let mut only = node("pi", false).to_vec();
    only.extend([
        pod("pi", "web-0", None),
        pod("pi", "db-0", Some("data-db-0")),
    ]);
    only.extend(local("pi", "data-db-0"));
    let mut calm = [node("ds01", true), node("ds02", true)].concat();
    let mut runs = pod("ds01", "web-0", None);
    runs["metadata"]["deletionTimestamp"].take();
    calm.push(runs);
    for (name, most, items) in [
        ("volumes", 60, volumes),
        ("zone", 100, zone),
        ("alive", 60, alive),
        ("only-node", 60, only),
        ("calm", 60, calm),
    ] {
        let report = lines(&items);
        assert!(report.len() <= most, "{name}: {} lines", report.len());
        expect_file![format!("../data/golden/night-{name}.txt")].assert_eq(&cut(&report));
    }
}

/// Two thousand stuck pods: what is folded is in the log.
#[test]
fn a_report_of_two_thousand_pods_is_for_one_look() {
    let mut asked = String::new();
    for (dead, all, most) in [(1, 6, 60), (20, 100, 100), (150, 200, 60)] {
        let items = executors(dead, all, 1_000 / dead);
        let report = lines(&items);
        assert!(report.len() <= most, "{dead}: {} lines", report.len());
        expect_file![format!("../data/golden/night-{dead}.txt")].assert_eq(&cut(&report));
        let audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "warn"]);
        let namespace = samples::namespace("impala");
        let items = items.into_iter().chain([namespace]);
        let logged = audit.input(samples::list(items).to_string()).run();
        let text = logged.out.split([' ', ',', '\n']).collect::<BTreeSet<_>>();
        for number in 0..dead * (1_000 / dead) {
            let name = format!("impala-executor-000-{number}");
            let asks = format!("impala/{name} on ds");
            let is_logged = logged.err.contains(&asks);
            assert!(
                text.contains(name.as_str()) || is_logged,
                "{dead}: {name} is lost"
            );
        }
        let (_, first) = logged
            .err
            .split_once("[local-volume]: ")
            .expect("it is logged");
        let (says, _) = first.split_once(['\n', '=']).expect("it ends");
        asked += &format!("{says}\n");
    }
    // What is lost comes before the command. While the breaker holds there is none.
    expect![[r#"
        Power ds000 off first. Destroys data: kubectl annotate pvc scratch-impala-executor-000-3 -n impala pod-reaper.io/give-up
        Power ds000 off first. Destroys data: kubectl annotate pvc scratch-impala-executor-000-5 -n impala pod-reaper.io/give-up
        no answer is asked for while so many nodes are NotReady
    "#]].assert_eq(&asked);
}

#[test]
fn where_most_nodes_are_down_the_breaker_comes_first() {
    let mut items = Vec::new();
    for number in 0..200 {
        let name = format!("worker-{number}");
        let mut of_node = node(&name, number >= 150);
        let zone = if (140..=195).contains(&number) {
            "a"
        } else {
            "b"
        };
        of_node[0]["metadata"]["labels"] =
            json!({"topology.kubernetes.io/zone": zone, "disk": "ssd"});
        of_node[0]["status"]["nodeInfo"] =
            json!({"kernelVersion": "6.1.9", "kubeletVersion": "v1.35.4"});
        items.extend(of_node);
        for pods in 0..if number < 150 { 10 } else { 0 } {
            items.push(pod(&name, &format!("web-{number}-{pods}"), None));
        }
        items.push(
            json!({"kind": "VolumeAttachment", "metadata": {"name": format!("csi-{number}")},
            "spec": {"nodeName": name, "source": {"persistentVolumeName": "pv"}}}),
        );
    }
    let report = lines(&items);
    assert!(report.len() <= 60, "{} lines", report.len());
    expect_file!["../data/golden/night-breaker.txt"].assert_eq(&cut(&report));
}

/// A node that was put away is missing from the census, but not from what the NotReady nodes have in
/// common, which has a count of its own.
#[test]
fn each_sentence_about_what_not_ready_nodes_have_in_common_counts_the_same_nodes() {
    let mut items = Vec::new();
    for (name, ready) in [
        ("down-1", false),
        ("down-2", false),
        ("down-3", false),
        ("put-away", false),
        ("up-1", true),
        ("up-2", true),
    ] {
        let mut of_node = node(name, ready);
        if !ready {
            of_node[0]["metadata"]["labels"] = json!({"rack": "r7"});
            items.push(pod(name, &format!("web-{name}"), None));
        }
        if name == "put-away" {
            of_node[0]["spec"]["unschedulable"] = json!(true);
            of_node[0]["status"]["conditions"][0]["lastTransitionTime"] =
                json!("2026-11-18T02:30:00Z");
            items.pop();
        }
        items.extend(of_node);
    }
    let report = lines(&items);
    expect_file!["../data/golden/night-put-away.txt"].assert_eq(&cut(&report));
}

#[test]
fn one_dead_node_with_two_pods_fits_on_a_screen() {
    let mut items = [node("ds01", true), node("ds02", false), node("ds03", true)].concat();
    items.extend([
        pod("ds02", "web-0", None),
        pod("ds02", "db-0", Some("data-db-0")),
    ]);
    items.extend(local("ds02", "data-db-0"));
    let report = lines(&items);
    assert!(report.len() <= 50, "{} lines: {report:#?}", report.len());
    // What is first is said again at the end, where a terminal stands.
    assert_eq!(report[..2], report[report.len() - 2..]);
    expect_file!["../data/golden/night-two-pods.txt"].assert_eq(&cut(&report));
}
