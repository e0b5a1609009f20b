//! What an operator sees first and last, and that it stays readable where much has failed.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use std::collections::BTreeSet;

use expect_test::{expect, expect_file};
use pod_reaper_test_support::samples::NOW;

use crate::{reaper, saved};

/// A node in words, with more of them. It is Ready, or has failed half an hour ago.
fn node(name: &str, ready: bool, more: &str) -> String {
    let state = if ready {
        "ready: 'True'"
    } else {
        "since: 1800, renewed: 1860"
    };
    format!("Node {name}: {{{state}, {more}}}\n")
}

/// A pod in words that is stuck on the node.
fn pod(node: &str, name: &str, more: &str) -> String {
    format!("Pod impala/{name}: {{node: {node}, grace: 30, overdue: 1200, {more}}}\n")
}

/// A stuck pod in words whose claim is on that node's disk.
fn local(node: &str, name: &str, claim: &str) -> String {
    let uses = format!(
        "uses: {claim}, metadata: {{labels: {{apps.kubernetes.io/pod-index: '{}'}}}}",
        name.rsplit('-').next().unwrap_or_default()
    );
    let volume = format!("pvc-4be03db0-dc25-44bd-b940-{claim:0>12}");
    format!(
        "{}PersistentVolume {volume}: {{claim: impala/{claim}, on: {node},
            spec: {{local: {{path: /opt/local-path-provisioner}}, persistentVolumeReclaimPolicy: Delete}}}}\n",
        pod(node, name, &uses)
    )
}

fn lines(cluster: &str) -> Vec<String> {
    let mut audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "off"]);
    audit.command.arg("--cluster-name=prod-eu");
    let cluster = format!("Namespace impala: {{}}\n{cluster}");
    let report = audit.input(saved(&cluster)).run().out;
    report.lines().map(str::to_owned).collect()
}

/// `each` executors with data of their own on so many dead nodes, and, if `beside`, as many that run anywhere.
fn executors(dead: usize, all: usize, each: usize, beside: bool) -> String {
    let set = "impala-executor-000";
    let mut cluster = format!(
        "StatefulSet impala/{set}: {{spec: {{volumeClaimTemplates: [{{metadata: {{name: scratch}}}}]}}}}\n"
    );
    for number in 0..all {
        cluster += &node(&format!("ds{number:03}"), number >= dead, "");
    }
    for number in 0..dead * each {
        let (at, name) = (format!("ds{:03}", number / each), format!("{set}-{number}"));
        cluster += &local(&at, &name, &format!("scratch-{name}"));
        if beside {
            cluster += &pod(&at, &format!("web-{number}"), "");
        }
    }
    cluster
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
        let report = lines(&executors(dead, 20, 8, true));
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
    let mut zone = String::new();
    for number in 1..=200 {
        let name = format!("worker-{number:03}");
        let of = ["zone-a", "zone-b", "zone-c"][(number - 1) / 67];
        let labels = format!("metadata: {{labels: {{topology.kubernetes.io/zone: {of}}}}}");
        zone += &node(&name, number > 67, &labels);
        if number <= 67 {
            zone += &pod(&name, &format!("web-{number}"), "");
        }
    }
    for number in 1..=3 {
        let (at, name) = (format!("worker-00{number}"), format!("db-{number}"));
        zone += &local(&at, &name, &format!("data-{name}"));
    }
    let ready = node("ds02", true, "") + &node("ds03", true, "");
    let alive = node("ds01", false, "")
        + &ready
        + &pod("ds01", "web-0", "")
        + "Lease impala/leader: {holder: web-0_6d2f4a0e, renewed: 3}\n";
    let only = node("pi", false, "") + &pod("pi", "web-0", "") + &local("pi", "db-0", "data-db-0");
    let calm = ready + "Pod impala/web-0: {node: ds02, grace: null}\n";
    for (name, most, cluster) in [
        ("volumes", 60, executors(1, 6, 50, false)),
        ("zone", 100, zone),
        ("alive", 60, alive),
        ("only-node", 60, only),
        ("calm", 60, calm),
    ] {
        let report = lines(&cluster);
        assert!(report.len() <= most, "{name}: {} lines", report.len());
        expect_file![format!("../data/golden/night-{name}.txt")].assert_eq(&cut(&report));
    }
}

/// Two thousand stuck pods: what is folded is in the log.
#[test]
fn a_report_of_two_thousand_pods_is_for_one_look() {
    let mut asked = String::new();
    for (dead, all, most) in [(1, 6, 60), (20, 100, 100), (150, 200, 60)] {
        let cluster = executors(dead, all, 1_000 / dead, true);
        let report = lines(&cluster);
        assert!(report.len() <= most, "{dead}: {} lines", report.len());
        expect_file![format!("../data/golden/night-{dead}.txt")].assert_eq(&cut(&report));
        let audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "warn"]);
        let cluster = format!("Namespace impala: {{}}\n{cluster}");
        let logged = audit.input(saved(&cluster)).run();
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
    let mut cluster = String::new();
    for number in 0..200 {
        let name = format!("worker-{number}");
        let zone = if (140..=195).contains(&number) {
            "a"
        } else {
            "b"
        };
        let zone = format!("metadata: {{labels: {{topology.kubernetes.io/zone: {zone}}}}}");
        cluster += &node(&name, number >= 150, &zone);
        for pods in 0..if number < 150 { 10 } else { 0 } {
            cluster += &pod(&name, &format!("web-{number}-{pods}"), "");
        }
        cluster += &format!("VolumeAttachment csi-{number}: {{node: {name}, volume: pv}}\n");
    }
    let report = lines(&cluster);
    assert!(report.len() <= 60, "{} lines", report.len());
    expect_file!["../data/golden/night-breaker.txt"].assert_eq(&cut(&report));
}

#[test]
fn one_dead_node_with_two_pods_fits_on_a_screen() {
    let cluster = node("ds01", true, "")
        + &node("ds02", false, "")
        + &node("ds03", true, "")
        + &pod("ds02", "web-0", "")
        + &local("ds02", "db-0", "data-db-0");
    let report = lines(&cluster);
    assert!(report.len() <= 50, "{} lines: {report:#?}", report.len());
    // What is first is said again at the end, where a terminal stands.
    assert_eq!(report[..2], report[report.len() - 2..]);
    expect_file!["../data/golden/night-two-pods.txt"].assert_eq(&cut(&report));
}
