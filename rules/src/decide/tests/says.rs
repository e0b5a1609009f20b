//! What a kubelet that reports says of its node and of a pod's containers.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::check;

#[test]
fn what_a_living_kubelet_says_comes_first() {
    check(&expect![[r#"
        nothing: ready False
            = kubelet-alive, kubelet 0s
        the network: ready False; says network-plugin
            = kubelet-alive, kubelet 0s
        the runtime, and what runs: ready False; says container-runtime; running 2
            = kubelet-alive, kubelet 0s
        it shuts down, and all has terminated: ready False; says shutting-down; terminated 1
            = kubelet-alive, kubelet 0s
        each state: ready False; running 1; terminated 2; waiting 3
            = kubelet-alive, kubelet 0s
        a silent kubelet, whose words are old: says network-plugin; terminated 1; virt-handler 1m
            = kubelet-alive, virt-handler 1m
        a silent machine: says network-plugin; terminated 1
            = stuck-on-not-ready-node
    "#]]);
}
