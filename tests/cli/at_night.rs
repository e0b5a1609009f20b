//! What an operator sees first and last, and that it stays readable where much has failed.

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

#[test]
fn forty_executors_on_five_dead_nodes_fit_in_260_lines_and_each_is_named() {
    let mut items = Vec::new();
    for number in 1..=20 {
        items.extend(node(&format!("ds{number:02}"), number > 5));
    }
    let name = |number: usize| format!("impala-executor-000-{number}");
    for number in 0..40 {
        let (at, claim) = (
            format!("ds{:02}", 1 + number / 8),
            format!("scratch-{}", name(number)),
        );
        items.push(pod(&at, &name(number), Some(&claim)));
        items.extend(local(&at, &claim));
    }
    let report = lines(&items);
    assert!(report.len() <= 260, "{} lines", report.len());
    assert!(
        report[0].starts_with("prod-eu: 40 pods need you. 5 of 20 nodes not Ready: ds01 for 30m"),
        "{}",
        report[0]
    );
    assert_eq!(
        report
            .iter()
            .filter(|line| line.contains("kubectl annotate pvc"))
            .count(),
        5,
        "an answer a node"
    );
    let text = report.join(" ");
    for number in 0..40 {
        assert!(
            text.contains(&format!("{},", name(number)))
                || text.contains(&format!("{}  ", name(number))),
            "{number}"
        );
    }
    // As people count.
    assert!(
        text.find("executor-000-8,") < text.find("executor-000-10,"),
        "{text}"
    );
}

#[test]
fn where_most_nodes_are_down_the_report_fits_on_two_screens_and_the_breaker_comes_first() {
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
    assert!(report.len() <= 100, "{} lines", report.len());
    let first =
        "prod-eu: NOTHING IS DELETED, 1500 held. 150 of 200 nodes not Ready: worker-0 for 30m";
    assert!(report[0].starts_with(first), "{}", report[0]);
    assert!(
        report[report.len() - 2..]
            .join(" ")
            .contains("NOTHING IS DELETED, 1500 held"),
        "{report:?}"
    );
    let common =
        "  140 of 150 NotReady nodes, and 4 of the 50 others: label topology.kubernetes.io/zone=b";
    let at = report
        .iter()
        .position(|line| line == common)
        .expect("what they have in common");
    assert_eq!(
        report[at + 1],
        "  150 of 150 failed within a minute, from 2026-11-21 02:30:00Z on"
    );
    assert!(
        report
            .iter()
            .any(|line| line.contains("1500 pods on 150 nodes, overdue up to 20m  [mass-outage]"))
    );
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
    let summary = "prod-eu: 1 pod needs you, 1 to be reaped. 1 of 3 nodes not Ready: ds02 for 30m. Exit code 0.";
    assert_eq!(report.first().map(String::as_str), Some(summary));
    assert_eq!(report.last().map(String::as_str), Some(summary));
}
