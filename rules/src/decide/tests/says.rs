//! Tests of what a kubelet that reports says about its node and about a pod's containers.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use crate::samples::{Scene, check_each};

/// Lists the code, the sentences about the kubelet and the containers, the first thing to do, and
/// whether the containers are treated as terminated.
fn said(words: &str) -> String {
    let scene = Scene::of(words);
    let reason = scene.judged();
    let sentences = reason.sentence.split_inclusive(". ").skip(1);
    let said = sentences.filter(|it| it.contains("kubelet") || it.contains("containers"));
    let advice = scene.advice();
    let first = advice.iter().filter_map(|advice| advice.first.as_deref());
    let risks = advice.iter().filter_map(|advice| advice.risk.as_deref());
    let ended = risks.filter(|risk| risk.contains("its containers have terminated"));
    let ended = ended.map(|_| "ended");
    let code = [reason.code.as_str()].into_iter();
    let lines = code.chain(said.map(str::trim_end));
    lines
        .chain(first)
        .chain(ended)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_a_living_kubelet_says_comes_first() {
    check_each(
        &expect![[r#"
            nothing: ready False
                = kubelet-alive
                = The pod's containers most likely still run.
            the network: ready False; says network-plugin
                = kubelet-alive
                = Its kubelet says that the network plugin (CNI) is not ready.
                = The pod's containers most likely still run.
                = Repair the network plugin (CNI) on the node.
            the runtime, and what runs: ready False; says container-runtime; running 2
                = kubelet-alive
                = Its kubelet says that the container runtime does not work.
                = The kubelet's last report on the pod's containers: 2 running.
                = Restart the container runtime on the node.
            it shuts down, and all has terminated: ready False; says shutting-down; terminated 1
                = kubelet-alive
                = Its kubelet says that the node is shutting down.
                = The kubelet's last report on the pod's containers: 1 terminated.
                = Wait until the node has shut down, or power it off.
                = ended
            each state: ready False; running 1; terminated 2; waiting 3
                = kubelet-alive
                = The kubelet's last report on the pod's containers: 1 running, 2 terminated, 3 waiting.
            one still runs: ready False; running 1; terminated 1
                = kubelet-alive
                = The kubelet's last report on the pod's containers: 1 running, 1 terminated.
            one still waits: ready False; terminated 1; waiting 1
                = kubelet-alive
                = The kubelet's last report on the pod's containers: 1 terminated, 1 waiting.
            a silent kubelet, whose words are old: says network-plugin; terminated 1; virt-handler 1m
                = kubelet-alive
                = The pod's containers most likely still run.
            a silent machine: says network-plugin; terminated 1
                = stuck-on-not-ready-node
            the link of an edge node is cut: leaf KubeEdge; ready False; says network-plugin; terminated 1
                = edge-node
        "#]],
        said,
    );
}
