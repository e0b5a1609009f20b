//! Nodes that are not machines: Kosmos leaf nodes.

use crate::{alive::ON_DISK, prelude::*, support::objects::make};

/// The virtual node of a leaf cluster, with the label that Kosmos sets. A kubelet stands in for Kosmos's cluster manager, which
/// renews the Lease in the same way. Killing the kubelet simulates a cut link.
const LEAF: &str = "kosmos-member1,kosmos.io/node=true,kubernetes.io/role=agent";

/// In Kosmos's one-to-one mode, a node of the leaf cluster under its own name. Kosmos can be configured to set no
/// taint, so that the annotation is the only mark.
const LEAF_NODES: [&str; 2] = ["kosmos-member1", "ds05"];

/// The links to two leaf nodes are cut, and a machine dies. Kubernetes evicts from all three. A run reaps the pods of the machine.
/// The pods of the leaf nodes need you. They run on once the links are up, until their kubelets stop them.
#[test]
fn the_links_to_leaf_nodes_are_cut() {
    // Kubernetes stops evicting once 55% of the nodes are NotReady.
    let nodes = ["ds01", "ds02", "ds03", "ds04", "ds05", "ds06", LEAF];
    let case = Case::with(&nodes, 1);
    for node in LEAF_NODES {
        let path = node_path(node);
        annotate(&case, &path, "kosmos-io/owned-by-cluster", "member1");
        pin_to(&case, node);
    }
    case.until_true("the pods of the leaf nodes are Running", || {
        case.pods().iter().all(Seen::is_running)
    });

    for node in LEAF_NODES.iter().chain([&FAILING]) {
        case.stop(node);
    }
    let of_the_machine = case.until_evicted(FAILING);
    let of_leaf_nodes = LEAF_NODES.map(|node| case.until_evicted(node)).concat();
    for node in LEAF_NODES {
        let pinned = format!("on-{node}-0");
        assert!(
            of_leaf_nodes.iter().any(|pod| pod.name == pinned),
            "{of_leaf_nodes:?}"
        );
    }
    for evicted in [&of_the_machine, &of_leaf_nodes] {
        case.until_stuck(evicted);
    }

    let run = case.reap("");
    let on_the_machine = of_the_machine.iter().filter(|pod| pod.called() != ON_DISK);
    all_are(&run, on_the_machine, REAPED);
    for run in [run, case.reap("")] {
        run.ends(0);
        all_are(&run, &of_leaf_nodes, ("kosmos-leaf", None));
    }
    let left = LEAF_NODES.map(|node| case.evictable_on(node)).concat();
    assert_eq!(left, of_leaf_nodes);
    for node in LEAF_NODES {
        case.resume(node);
        case.until_stopped(node, [&of_leaf_nodes, &Vec::new()]);
    }
}

/// Makes a pod that Kosmos would manage, on this node and no other.
pub fn pin_to(case: &Case, node: &str) {
    let evicted = "operator: Exists, effect: NoExecute, tolerationSeconds: 1";
    let set = format!(
        "
        StatefulSet compute-hive01/on-{node}:
            spec:
                template:
                    metadata: {{labels: {{kosmos-io/pod: 'true'}}}}
                    spec:
                        terminationGracePeriodSeconds: 2
                        nodeSelector: {{kubernetes.io/hostname: {node}}}
                        tolerations:
                        - {{key: node.kubernetes.io/unreachable, {evicted}}}
                        - {{key: node.kubernetes.io/not-ready, {evicted}}}
                        containers: [{{name: main, image: pretended}}]
        "
    );
    make(case, &set);
}
