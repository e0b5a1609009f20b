//! You have answered that the machine of an edge node is off: what a run does then, and which requests the node guard allows.

use crate::{node_guard::install, prelude::*};

const POWERED_OFF: &str = "pod-reaper.io/powered-off";
const EDGE: &str = "openyurt.io/is-edge-worker: 'true'";

fn make_edge(cluster: &ControlPlane, name: &str, labels: &str) {
    make(
        cluster,
        &format!("Node {name}: {{metadata: {{labels: {{{labels}}}}}}}"),
    );
}

/// The time of the last transition of the node's `Ready` condition, moved by some seconds.
fn failed(cluster: &ControlPlane, node: &str, seconds: i64) -> String {
    let node = cluster.get(&node_path(node));
    let conditions = node["status"]["conditions"].as_array().expect("conditions");
    let ready = conditions.iter().find(|it| it["type"] == "Ready");
    let since = str_of(&ready.expect("Ready")["lastTransitionTime"]);
    let since = since.parse::<jiff::Timestamp>().expect("a time");
    (since + jiff::SignedDuration::from_secs(seconds)).to_string()
}

#[test]
fn the_node_guard_lets_an_edge_nodes_pods_go_only_if_it_was_powered_off_after_it_failed() {
    let cluster = one_dead();
    let virtual_too = format!("{EDGE}, virtual-kubelet.io/provider: x");
    let cases = [
        ("later", EDGE, Some(1), 200),
        ("just-as-it-failed", EDGE, Some(0), 403),
        ("earlier", EDGE, Some(-1), 403),
        ("not-answered", EDGE, None, 403),
        ("virtual-too", virtual_too.as_str(), Some(1), 403),
        (
            "only-virtual",
            "virtual-kubelet.io/provider: x",
            Some(1),
            403,
        ),
    ];
    for (node, labels, later, _) in cases {
        make_edge(&cluster, node, labels);
        if let Some(later) = later {
            let at = failed(&cluster, node, later);
            annotate(&cluster, &node_path(node), POWERED_OFF, &at);
        }
    }
    for (node, value) in [("no-time", "soon"), ("no-moment", "2026-99-99T99:99:99Z")] {
        make_edge(&cluster, node, EDGE);
        annotate(&cluster, &node_path(node), POWERED_OFF, value);
    }
    install(&cluster);
    grant(&cluster, "stolen", ACCOUNT, ALL_OF_PODS);
    let cases = cases.map(|(node, _, _, code)| (node, code));
    for (node, code) in cases
        .into_iter()
        .chain([("no-time", 403), ("no-moment", 403)])
    {
        make(
            &cluster,
            &format!("Pod apps/{node}: {{node: {node}, grace: 600}}"),
        );
        let mut said = (0, String::new());
        until("the rights are there", || {
            said = rehearsed(ACCOUNT, &cluster, &pod_path("apps", node));
            !said.1.contains("cannot ")
        });
        let is_refused = said.0 != 200;
        assert_eq!(is_refused, code != 200, "{node}: {said:?}");
    }
}

#[test]
fn a_pod_of_an_edge_node_is_reaped_once_the_node_is_powered_off() {
    let cluster = one_dead();
    make_edge(&cluster, "edge", EDGE);
    let asked = pod(&cluster, "apps/asked: {node: edge, owner: StatefulSet db}");
    until_overdue();
    let ended = run(&cluster.kubeconfig, &SHORT);
    ended.says(&asked, ("edge-node", None));
    let asks = ended.report["pods"].to_string();
    assert!(
        asks.contains("annotate node edge pod-reaper.io/powered-off="),
        "{asks}"
    );
    annotate(&cluster, &node_path("edge"), POWERED_OFF, &seconds_ago(0));
    let later = pod(&cluster, "apps/later: {node: edge, owner: StatefulSet db}");
    until_overdue();
    let ended = run(&cluster.kubeconfig, &SHORT);
    ended.says(&asked, ("answered", Some("deleted")));
    ended.says(&later, ("edge-node", None));
}
