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
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
        the network: ready False; says network-plugin
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. Its kubelet says that the network plugin (CNI) is not ready. The pod's containers most likely still run.
        the runtime, and what runs: ready False; says container-runtime; running 2
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. Its kubelet says that the container runtime does not work. The kubelet's last report on the pod's containers: 2 running.
        it shuts down, and all has terminated: ready False; says shutting-down; terminated 1
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. Its kubelet says that the node is shutting down. The kubelet's last report on the pod's containers: 1 terminated.
        each state: ready False; running 1; terminated 2; waiting 3
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The kubelet's last report on the pod's containers: 1 running, 2 terminated, 3 waiting.
        a silent kubelet, whose words are old: says network-plugin; terminated 1; virt-handler 1m
            = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 1m ago. The pod's containers most likely still run.
        a silent machine: says network-plugin; terminated 1
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
    "#]]);
}
