//! The link to a Kosmos leaf node is cut.

use crate::{prelude::*, support::objects::make};

/// The virtual node of a leaf cluster, with the label that Kosmos sets. A kubelet replaces Kosmos's cluster manager,
/// which renews the lease in the same way. Killing the kubelet simulates that the link is cut.
const LEAF: &str = "kosmos-member1,kosmos.io/node=true,kubernetes.io/role=agent";

/// In Kosmos's one-to-one mode, a node of the leaf cluster under its own name. Kosmos can be configured to set no
/// taint, so that the annotation is the only mark.
const ONE_TO_ONE: &str = "ds05";

/// The links are cut and a node fails: Kubernetes evicts the pods of all three. Those of the leaf nodes are flagged and
/// not deleted, those of the dead node are reaped.
#[test]
fn the_link_to_a_leaf_cluster_is_cut() {
    let nodes = ["ds01", "ds02", "ds03", "ds04", "ds05", LEAF];
    let case = Case::with(&nodes, 1, &[]);
    for node in ["kosmos-member1", ONE_TO_ONE] {
        annotate(
            &case,
            &format!("/api/v1/nodes/{node}"),
            "kosmos-io/owned-by-cluster",
            "member1",
        );
        pin_to(&case, node);
    }
    case.until_true("the pods of the leaf nodes are Running", || {
        case.pods().iter().all(Seen::is_running)
    });

    for node in ["kosmos-member1", ONE_TO_ONE, FAILING] {
        case.stop(node);
    }
    let mut of_leaf_nodes = case.until_evicted("kosmos-member1");
    of_leaf_nodes.append(&mut case.until_evicted(ONE_TO_ONE));
    let of_dead_node = case.until_evicted(FAILING);
    for node in ["kosmos-member1", ONE_TO_ONE] {
        assert!(
            of_leaf_nodes
                .iter()
                .any(|pod| pod.name == format!("on-{node}-0")),
            "{of_leaf_nodes:?}"
        );
    }
    case.until_stuck(&of_leaf_nodes);
    case.until_stuck(&of_dead_node);

    for round in ["the first run", "the next run"] {
        let run = case.reap("");
        assert_eq!(run.code, 0, "{round}");
        for pod in &of_leaf_nodes {
            run.says(&pod.uid, ("kosmos-leaf", None));
        }
        for pod in of_dead_node.iter().filter(|_| round == "the first run") {
            let (reason, outcome) = run.reason_and_outcome(&pod.uid);
            let reaped = REAPED;
            assert!(
                (reason, outcome) == reaped || reason == "local-volume",
                "{}: {reason}",
                pod.called()
            );
        }
    }
    let mut left = case.evictable_on("kosmos-member1");
    left.append(&mut case.evictable_on(ONE_TO_ONE));
    assert_eq!(left, of_leaf_nodes);
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
