//! What an operator sees of a cluster where one thing has failed, or much: each state is a file to read.

use expect_test::expect_file;
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
    lines_with(&[], cluster)
}

fn lines_with(variables: &[(&str, &str)], cluster: &str) -> Vec<String> {
    let mut audit = reaper(&["--snapshot", "-", "--now", NOW, "--log-level", "off"]);
    audit.command.envs(variables.iter().copied());
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

const SIX: [&str; 6] = ["etcd", "kafka", "minio", "mongo", "redis", "zookeeper"];

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

/// Sets, each with a volume on the dead node and, but for those of `alone`, two other copies that are Ready.
fn sets(names: &[&str], alone: &[&str]) -> String {
    let mut cluster = node("ds01", false, "") + &node("ds02", true, "") + &node("ds03", true, "");
    for name in names {
        cluster += &format!(
            "StatefulSet impala/{name}: {{spec: {{volumeClaimTemplates: [{{metadata: {{name: data}}}}]}}}}\n"
        );
        cluster += &local("ds01", &format!("{name}-0"), &format!("data-{name}-0"));
        for (at, number) in [("ds02", 1), ("ds03", 2)] {
            if alone.contains(name) {
                continue;
            }
            let pod = format!("Pod impala/{name}-{number}");
            cluster += &format!("{pod}: {{node: {at}, grace: null}}\n");
        }
    }
    cluster
}

/// `each` pods that run anywhere on so many dead nodes, in three namespaces.
fn anywhere(dead: usize, all: usize, each: usize) -> String {
    let mut cluster = "Namespace shop: {}\nNamespace team-a: {}\n".to_owned();
    for number in 0..all {
        cluster += &node(&format!("ds{number:03}"), number >= dead, "");
    }
    for number in 0..dead * each {
        let namespace = ["impala", "shop", "team-a"][number % 3];
        cluster += &format!(
            "Pod {namespace}/web-{number}: {{node: ds{:03}, grace: 30, overdue: 1200}}\n",
            number / each
        );
    }
    cluster
}

/// A Kosmos node whose link is cut, with copies there of what runs here as well.
fn only_kosmos() -> String {
    let leaf = "metadata: {labels: {kosmos.io/node: 'true'}, annotations: {kosmos-io/owned-by-cluster: cluster7}}";
    [
        node("ds01", true, ""),
        node("ds02", true, ""),
        node("kosmos-cluster7", false, leaf),
        pod("kosmos-cluster7", "web-0", ""),
        pod("kosmos-cluster7", "web-1", ""),
        pod("kosmos-cluster7", "db-0", ""),
    ]
    .concat()
}

/// A dead node and a Ready one of a file that was saved without leases.
fn no_leases() -> String {
    [
        node("ds01", false, "lease: null"),
        node("ds02", true, "lease: null"),
        node("ds03", true, "lease: null"),
        pod("ds01", "web-0", ""),
        local("ds01", "db-0", "data-db-0"),
    ]
    .concat()
}

#[test]
fn each_state_is_a_file_to_read() {
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
    let two_pods = node("ds01", true, "")
        + &node("ds02", false, "")
        + &node("ds03", true, "")
        + &pod("ds02", "web-0", "")
        + &local("ds02", "db-0", "data-db-0");
    for (name, cluster) in [
        ("30-pods", anywhere(1, 6, 30)),
        ("300-pods", anywhere(1, 6, 300)),
        ("20-nodes", anywhere(20, 200, 6)),
        ("volumes", executors(1, 6, 50, false)),
        ("six-sets", sets(&SIX, &[])),
        ("last-copy", sets(&SIX[..3], &["kafka"])),
        ("zone", zone),
        ("alive", alive),
        ("only-node", only),
        ("only-kosmos", only_kosmos()),
        ("no-leases", no_leases()),
        ("calm", calm.clone()),
        ("two-pods", two_pods),
    ] {
        let report = lines(&cluster);
        expect_file![format!("../data/golden/night-{name}.txt")].assert_eq(&cut(&report));
    }
    let report = lines_with(&[("NAMESPACE_REGEX", "^shpo$")], &calm);
    expect_file!["../data/golden/night-filter.txt"].assert_eq(&cut(&report));
}

/// The head is repeated where a terminal stands if it has scrolled away.
#[test]
fn only_a_long_text_repeats_its_head() {
    for (cluster, is_long) in [(anywhere(1, 6, 30), false), (anywhere(20, 200, 6), true)] {
        let report = lines(&cluster);
        assert_eq!(report.len() > 40, is_long);
        let heads = report.iter().filter(|line| line.starts_with("AUDIT of "));
        assert_eq!(heads.count(), if is_long { 2 } else { 1 });
    }
}

#[test]
fn executors_are_decided_about_by_node_in_the_order_in_which_people_count() {
    let report = lines(&executors(6, 20, 8, true));
    let by_hand = report
        .iter()
        .filter(|line| line.contains("give the 8 PVCs of these pods up"));
    assert_eq!(by_hand.count(), 6, "one step a node: {}", cut(&report));
    let text = report.join(" ");
    assert!(
        text.find("executor-000-8 ") < text.find("executor-000-9 "),
        "{text}"
    );
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
    expect_file!["../data/golden/night-breaker.txt"].assert_eq(&cut(&report));
}
