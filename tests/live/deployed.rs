//! Which pods the guard for Kosmos keeps, with the real controllers.

use crate::{leaf::pin_to, prelude::*, support::installed::as_user};

/// The link to a leaf cluster is cut and a node fails. The pods of the leaf nodes are not changed, those of the dead node are
/// evicted. Without the guard all are evicted: `leaf::the_links_to_leaf_nodes_are_cut`.
#[test]
fn the_guard_keeps_the_pods_of_a_silent_leaf_node() {
    const NODE_CONTROLLER: &str = "system:serviceaccount:kube-system:node-controller";
    /// A leaf node whose name is not that of a leaf node: its pods are recognized by their label alone.
    const ONE_TO_ONE: &str = "ds05";
    const LEAF: &str = "kosmos-member1";
    let nodes = ["ds01", "ds02", "ds03", "ds04", ONE_TO_ONE, LEAF];
    let case = Case::with(&nodes, 1);
    for node in [LEAF, ONE_TO_ONE] {
        pin_to(&case, node);
    }
    case.until_true("the pods of the leaf nodes are Running", || {
        case.pods().iter().all(Seen::is_running)
    });
    let component = folder("cronjob/components/kosmos-guard/kosmos-guard.yaml");
    kubectl(&case, &["apply", "--warnings-as-errors", "-f", &component]);
    let labelled = |pod: &Seen| pod.name.starts_with("on-");
    // On the node with a leaf node's name, pods without the label stay too. On the other node, only pods with the label stay.
    let mut guarded = case.evictable_on(LEAF);
    assert!(
        guarded.iter().any(|pod| !labelled(pod)) && guarded.iter().any(labelled),
        "{guarded:?}"
    );
    let (mut by_label, unguarded): (Vec<_>, Vec<_>) = case
        .evictable_on(ONE_TO_ONE)
        .into_iter()
        .partition(labelled);
    assert!(
        !by_label.is_empty() && !unguarded.is_empty(),
        "{by_label:?} {unguarded:?}"
    );
    guarded.append(&mut by_label);
    for pod in &guarded {
        until("the guard is in force", || {
            let options = yaml("{gracePeriodSeconds: 0, dryRun: [All]}");
            let path = pod_path(&pod.namespace, &pod.name);
            let (code, answer) = as_user(NODE_CONTROLLER, &case, "DELETE", &path, &options);
            code == 403
                && answer["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("kosmos-guard"))
        });
    }
    let probes = refusals(&case);

    for node in [LEAF, ONE_TO_ONE, FAILING] {
        case.stop(node);
    }
    case.until_evicted(FAILING);
    case.until_true("the pods that no mark protects are Terminating", || {
        let pods = case.pods();
        let marked = |pod: &Seen| {
            pods.iter()
                .any(|now| now.uid == pod.uid && now.deadline.is_some())
        };
        unguarded.iter().all(marked)
    });
    // The controller logs this right before it requests a deletion.
    let tried = case.until("the eviction of every guarded pod was tried", || {
        let events = case.get("/api/v1/events")["items"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let evictions = events
            .iter()
            .filter(|event| event["reason"] == "TaintManagerEviction");
        let names: Vec<_> = evictions
            .map(|event| event["involvedObject"]["name"].clone())
            .collect();
        guarded
            .iter()
            .all(|pod| names.contains(&json!(pod.name)))
            .then_some(names)
    });
    case.until_true("the guard has refused as many", || {
        refusals(&case) >= probes + guarded.len()
    });
    let as_they_were = |pods: &[Seen]| guarded.iter().all(|pod| pods.contains(pod));
    assert!(
        as_they_were(&case.pods()),
        "{:?}, tried: {tried:?}",
        case.pods()
    );

    // The link is up again.
    for node in [LEAF, ONE_TO_ONE] {
        case.resume(node);
        case.until_ready_is("True", node);
    }
    assert!(as_they_were(&case.pods()), "{:?}", case.pods());
}

/// The number of requests that the guard has refused.
fn refusals(cluster: &ControlPlane) -> usize {
    let (_, metrics) = cluster.request("GET", "/metrics", None);
    let lines = metrics.as_str().expect("text").lines();
    let of_guard = lines.filter(|line| {
        line.starts_with("apiserver_validating_admission_policy_check_total{")
            && line.contains("enforcement_action=\"deny\"")
            && line.contains("policy=\"kosmos-guard\"")
    });
    of_guard
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}
