//! Tests of the kubelet's reports about a node and a pod.

use serde_json::json;

use super::{NodeObjects, RawNode, RawPod};
use crate::{
    facts::{Containers, KubeletSays, NodeFacts},
    selector::NodeSelectors,
};

fn facts(mut node: RawNode, selectors: &NodeSelectors) -> NodeFacts {
    node.drop_unused();
    let objects = NodeObjects {
        node,
        lease: Ok(None),
        now: "2026-01-31T03:00:00Z".parse().expect("a time"),
    };
    objects.into_facts(selectors).expect("a node")
}

#[test]
fn the_message_of_ready_is_reduced_to_a_kind() {
    for (kind, message, says) in [
        (
            "Ready",
            "[container runtime is down, node is shutting down]",
            Some(KubeletSays::ShuttingDown),
        ),
        (
            "Ready",
            "container runtime is down",
            Some(KubeletSays::Runtime),
        ),
        (
            "Ready",
            "PLEG is not healthy: pleg was last seen active 3m ago",
            Some(KubeletSays::Runtime),
        ),
        (
            "Ready",
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:x",
            Some(KubeletSays::Network),
        ),
        (
            "Ready",
            "Network plugin returns error: cni plugin not initialized",
            Some(KubeletSays::Network),
        ),
        ("Ready", "rm -rf /", None),
        ("MemoryPressure", "container runtime is down", None),
    ] {
        let node = json!({"metadata": {"name": "ds06", "uid": "u"},
            "status": {"conditions": [{"type": kind, "status": "False", "message": message}]}});
        let node = serde_json::from_value(node).expect("a node");
        assert_eq!(
            facts(node, &NodeSelectors::default()).kubelet_says,
            says,
            "{message}"
        );
    }
}

#[test]
fn containers_are_counted_by_state() {
    let state = |state: &str| json!({"state": {state: {}}});
    let pod = json!({
        "metadata": {"namespace": "shop", "name": "db-0", "uid": "u", "resourceVersion": "1",
            "deletionTimestamp": "2026-01-31T02:00:00Z"},
        "status": {
            "initContainerStatuses": [state("terminated"), state("running")],
            "containerStatuses": [state("running"), state("terminated"), state("waiting"), {}],
        },
    });
    let mut pod = serde_json::from_value::<RawPod>(pod).expect("a pod");
    let counted = Containers {
        running: 2,
        terminated: 1,
        waiting: 1,
    };
    assert_eq!(pod.facts().containers, counted);
    pod.drop_unused();
    assert_eq!(pod.facts().containers, counted);
}
