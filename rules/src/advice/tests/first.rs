//! Tests of the first step on a node that is alive, and of the answer for an edge node.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::{advised, check_each};

#[test]
fn the_first_step_follows_what_the_kubelet_says() {
    let cases = expect![[r#"
        the network: ready False; says network-plugin
            = First: Repair the network plugin (CNI) on the node.
            = Risk: Do not force-delete it: it most likely runs, and a replacement would be a duplicate. Repair what the kub
        the runtime: ready False; says container-runtime; running 1
            = First: Restart the container runtime on the node.
            = Risk: Do not force-delete it: it most likely runs, and a replacement would be a duplicate. Repair what the kub
        it shuts down: ready False; says shutting-down
            = First: Wait until the node has shut down, or power it off.
            = Risk: Do not force-delete it: it most likely runs, and a replacement would be a duplicate. Repair what the kub
        all has terminated: ready False; terminated 1
            = Risk: Do not force-delete it: its containers have terminated, and the kubelet confirms that once the node is R
            = See the node's conditions, and its kubelet's last lease. $ kubectl describe node ds06
        one still runs: ready False; running 1; terminated 1
            = Risk: Do not force-delete it: it most likely runs, and a replacement would be a duplicate. Repair what the kub
            = See the node's conditions, and its kubelet's last lease. $ kubectl describe node ds06
        a silent kubelet: says network-plugin; virt-handler 1m
            = Risk: Do not force-delete it: it most likely runs, and a replacement would be a duplicate. Repair what the kub
            = See the node's conditions, and its kubelet's last lease. $ kubectl describe node ds06
    "#]];
    check_each(&cases, |words| {
        let short = |line: String| line.chars().take(110).collect();
        let lines = advised(words).into_iter().take(2);
        lines.map(short).collect()
    });
}

#[test]
fn only_an_edge_node_is_asked_about_and_only_if_the_answer_would_be_valid() {
    let cases = expect![[r#"
        an edge node: leaf KubeEdge
            = If ds06 is off for good, check that at the machine itself, and say so: the next run then reaps the pods whose deletion was requested before. $ kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        selected too: leaf KubeEdge, selected too
        it shows a sign of life: leaf KubeEdge; lease 1m
        the Leases are unread: leaf KubeEdge; leases unread
        a virtual node: leaf Liqo
    "#]];
    check_each(&cases, |words| {
        let steps = advised(words).into_iter();
        steps.filter(|line| line.contains("powered-off")).collect()
    });
}
