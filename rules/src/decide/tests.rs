//! Tests of the rules: first each by itself at its boundaries, then their order, then answers.
//!
//! A case is one line: its name, and how it differs from a pod that only the last rule applies to,
//! in the words of [`Scene::of`]. The lines below it are the result.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

mod page;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    facts::{Doubt, NodeRead},
    samples::{Scene, check_each, now, span},
    words::spoken,
};

/// Judges each case once for each entry of `more`, whose words are added to those of the case.
fn check_with(more: &str, further: &[&str], cases: &Expect) {
    let each = |words: &str| {
        let under = further
            .iter()
            .map(|further| told(&Scene::of(&format!("{more}; {words}; {further}")).judged()));
        under.collect::<Vec<_>>()
    };
    check_each(cases, each);
}

fn check(cases: &Expect) {
    check_with("", &[""], cases);
}

/// Lists a reason's code and sentence, and its notes.
fn told(reason: &Reason) -> String {
    let mut told = format!("{}: {}", reason.code, reason.sentence);
    if reason.verdict() == Verdict::Reap {
        for note in &reason.notes {
            told += &format!(" [{note}]");
        }
    }
    told
}

#[test]
fn a_mirror_pod_is_left() {
    check(&expect![[r#"
        on a dead node: mirror
            = mirror-pod: It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.
        on a node that is gone: node gone; mirror
            = mirror-pod: It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.
        on a node that was not looked up: node not looked up; mirror
            = mirror-pod: It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.
    "#]]);
}

#[test]
fn a_pod_that_is_opted_out_is_left() {
    check(&expect![[r#"
        the pod: skip true
            = opted-out: The pod is opted out by pod-reaper.io/skip.
        its namespace: namespace skip true
            = opted-out: Its namespace is opted out by pod-reaper.io/skip.
        its node: node-skip true
            = opted-out: Its node is opted out by pod-reaper.io/skip.
        its node, in another word: node-skip True
            = opted-out: Its node is opted out by pod-reaper.io/skip. Its value "True" is neither true nor false, and counts as true.
        all three: skip true; namespace skip true; node-skip true
            = opted-out: The pod is opted out by pod-reaper.io/skip.
        its namespace and its node: namespace skip true; node-skip true
            = opted-out: Its namespace is opted out by pod-reaper.io/skip.
        the pod, the namespace unread: skip true; namespace unread
            = opted-out: The pod is opted out by pod-reaper.io/skip.
        the pod, the node unread: skip true; node unread
            = opted-out: The pod is opted out by pod-reaper.io/skip.
        its namespace, the node unread: namespace skip true; node unread
            = opted-out: Its namespace is opted out by pod-reaper.io/skip.
    "#]]);
}

#[test]
fn a_pod_whose_node_is_gone_is_left() {
    check(&expect![[r#"
        the node does not exist: node gone
            = node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
        nor is the pod overdue: node gone; overdue 1m
            = node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
        nor can the namespace be read: node gone; namespace unread
            = node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
        the pod was never given one: never-placed
            = node-gone: It was never assigned to a node; the pod garbage collector takes care of it.
        only the Job controller holds it: node gone; held-by batch.kubernetes.io/job-tracking
            = node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
        a local volume: node gone; local
            = node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
    "#]]);
}

#[test]
fn where_there_is_no_node_finalizers_are_for_a_person() {
    check_with(
        "held-by example.com/backup",
        &[""],
        &expect![[r#"
            the node is gone: node gone
                = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
            the pod was never given one: never-placed
                = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
            forced already: node gone; grace 0
                = already-forced: It was already force-deleted and is held by finalizer example.com/backup; another delete would change nothing.
            within the threshold: node gone; overdue 1m
                = not-overdue: It is overdue by 1m and counts as stuck from 10m on.
            the namespace is unread: node gone; namespace unread
                = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
            with a local volume: node gone; local
                = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
            the node is unread: node unread
                = facts-unread: A fact that the decision needs could not be read: the node: it is forbidden.
        "#]],
    );
}

#[test]
fn a_pod_on_a_ready_node_is_left() {
    check(&expect![[r#"
        just so: ready True
            = node-ready: Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.
        within grace: ready True; overdue -30s
            = node-ready: Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.
        a leaf: ready True; leaf of edge-1
            = node-ready: Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.
        its lease expired long ago: ready True; lease 1h
            = node-ready: Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.
        Ready False is not Ready: ready False; owner ReplicaSet apps/v1
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
        Ready Unknown is not Ready: ready Unknown
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        Ready absent is not Ready: ready absent
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
    "#]]);
}

#[test]
fn a_pod_that_is_not_overdue_waits() {
    check(&expect![[r#"
        exactly at the threshold: overdue 10m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        one second below: overdue 9m 59s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 30s is not waited for: its node had fallen silent before the deletion was requested.
        a millisecond below: overdue 9m 59s 999ms
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 30s is not waited for: its node had fallen silent before the deletion was requested.
        one second above: overdue 10m 1s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        at its deadline: overdue 0s
            = not-overdue: It is overdue by 30s and counts as stuck from 10m on. Its grace period of 30s is not waited for: its node had fallen silent before the deletion was requested.
        within grace, for longer than the threshold: overdue -1h
            = not-overdue: It is within its grace period for another 59m 30s; it counts as stuck 10m after that.
        the node is unread: node unread; overdue 1m
            = not-overdue: It is overdue by 1m and counts as stuck from 10m on.
        the node was not looked up: node not looked up; overdue 1m
            = not-overdue: It is overdue by 1m and counts as stuck from 10m on.
        threshold 0, at its deadline: --reap-older-than 0s; overdue 0s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        threshold 0, a second before it: --reap-older-than 0s; overdue -1s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 30s is not waited for: its node had fallen silent before the deletion was requested.
    "#]]);
}

#[test]
fn the_grace_period_is_not_subtracted_again() {
    check(&expect![[r#"
        grace is 1h, past it for 10m: grace 3600; overdue 10m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        no grace is known: grace unknown
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        grace is 0: grace 0; overdue 9m
            = not-overdue: It is overdue by 9m and counts as stuck from 10m on.
    "#]]);
}

#[test]
fn a_pod_on_a_leaf_node_is_for_a_person() {
    check(&expect![[r#"
        marked by Kosmos: leaf Kosmos
            = kosmos-leaf: Its node is a Kosmos leaf node and stands for another cluster (seen: label kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
        marked by Kosmos, which names the cluster: leaf of edge-1
            = kosmos-leaf: Its node stands for the Kosmos leaf cluster edge-1 (seen: taint kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
        virtual: leaf Liqo
            = virtual-node: Its node is a virtual node of Liqo, not a machine (seen: label liqo.io/type=virtual-node). There, NotReady means that the program that runs its pods does not report: the pod may well be running.
        at the edge: leaf KubeEdge
            = edge-node: Its node is an edge node of KubeEdge (seen: kubelet version v1.22.6-kubeedge-v1.12.1). It keeps working without its cluster, so NotReady means that the link is cut: the pod may well be running.
        selected: leaf selected
            = leaf-node: Its node matches --leaf-node-selector (seen: label selector type=far). There, NotReady mostly means that the link is cut: the pod may well be running.
        Ready False: leaf Kosmos; ready False
            = kosmos-leaf: Its node is a Kosmos leaf node and stands for another cluster (seen: label kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
        held by a finalizer: leaf Kosmos; held-by example.com/backup
            = kosmos-leaf: Its node is a Kosmos leaf node and stands for another cluster (seen: label kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
        with a local volume: leaf Kosmos; local
            = kosmos-leaf: Its node is a Kosmos leaf node and stands for another cluster (seen: label kosmos.io/node). There, NotReady mostly means that the link is cut: the pod may well be running.
    "#]]);
}

#[test]
fn what_was_not_read_waits() {
    check(&expect![[r#"
        the node: node unread
            = facts-unread: A fact that the decision needs could not be read: the node: it is forbidden.
        the node was not looked up: node not looked up
            = facts-unread: A fact that the decision needs could not be read: the node: it was not looked up.
        the namespace: namespace unread
            = facts-unread: A fact that the decision needs could not be read: the namespace: it is forbidden.
        the lease: lease unread
            = facts-unread: A fact that the decision needs could not be read: the node's lease: it is forbidden.
        the lease, Ready absent: lease unread; ready absent
            = facts-unread: A fact that the decision needs could not be read: the node's lease: it is forbidden.
        the lease, for any pod: lease unread; owner ReplicaSet apps/v1
            = facts-unread: A fact that the decision needs could not be read: the node's lease: it is forbidden.
        the lease, where Ready says already that the kubelet lives: lease unread; ready False
            = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
        the lease, though nobody is protected: lease unread; --kubelet-alive reap
            = facts-unread: A fact that the decision needs could not be read: the node's lease: it is forbidden.
    "#]]);
    let sentence = "A fact that the decision needs could not be read: the node: it is forbidden.";
    assert_eq!(unread_facts("the node: it is forbidden."), sentence);
}

#[test]
fn a_node_that_has_just_failed_is_given_time() {
    check(&expect![[r#"
        exactly long enough: since 10m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        a second short: since 9m 59s
            = node-just-failed: The node has been NotReady for only 9m 59s; --node-not-ready-for is 10m.
        since the future: since -1h
            = node-just-failed: The node is NotReady, but does not say since when.
        tainted later: since 2h; tainted 9m
            = node-just-failed: The node has been NotReady for only 9m; --node-not-ready-for is 10m.
        tainted earlier: since 9m; tainted 2h
            = node-just-failed: The node has been NotReady for only 9m; --node-not-ready-for is 10m.
        since the future, tainted long ago: since -1h; tainted 2h
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        tainted, since no one knows when: since unknown; tainted 2h
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        tainted in the future: tainted -1m
            = node-just-failed: The node has been NotReady for only 0s; --node-not-ready-for is 10m.
        since no one knows when: since unknown
            = node-just-failed: The node is NotReady, but does not say since when.
        Ready False as well: ready False; since 1m
            = node-just-failed: The node has been NotReady for only 1m; --node-not-ready-for is 10m.
        though its kubelet lives: ready False; since 1m; lease 0s
            = node-just-failed: The node has been NotReady for only 1m; --node-not-ready-for is 10m.
        asked for 0, just now: --node-not-ready-for 0s; since 0s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        asked for 0, since no one knows when: --node-not-ready-for 0s; since unknown
            = node-just-failed: The node is NotReady, but does not say since when.
    "#]]);
}

/// An operator who waits longer before a node counts as dead trusts a report for longer too.
#[test]
fn what_was_heard_since_the_failure_keeps_a_pod() {
    check_with(
        "--node-not-ready-for 0s",
        &[""],
        &expect![[r#"
            detector: node-problem-detector 10m 59s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: node-problem-detector reported 10m 59s ago. The pod's containers most likely still run.
            detector, at its end: node-problem-detector 11m
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
            EKS' agent: eks-node-monitoring-agent 10m 59s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: eks-node-monitoring-agent reported 10m 59s ago. The pod's containers most likely still run.
            EKS' agent, at its end: eks-node-monitoring-agent 11m
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
            virt-handler: virt-handler 4m 59s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 4m 59s ago. The pod's containers most likely still run.
            virt-handler, at its end: virt-handler 5m
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 5m ago. The pod's containers most likely still run.
            API server: kube-apiserver 59s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: its API server renewed its lease 59s ago. The pod's containers most likely still run.
            API server, at its end: kube-apiserver 1m
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: its API server renewed its lease 1m ago. The pod's containers most likely still run.
            as it failed: since 2m; virt-handler 2m
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
            a second after: since 2m; virt-handler 1m 59s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 1m 59s ago. The pod's containers most likely still run.
            before its taint: since 5m; tainted 2m; virt-handler 3m
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
            ten minutes asked for: --node-not-ready-for 10m; virt-handler 9m 59s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 9m 59s ago. The pod's containers most likely still run.
            no longer: --node-not-ready-for 10m; virt-handler 10m
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 10m ago. The pod's containers most likely still run.
            each is named: node-problem-detector 9m; virt-handler -10s
                = kubelet-alive: The node's Ready is Unknown, but its machine is alive: node-problem-detector reported 9m ago, virt-handler reported 0s ago. The pod's containers most likely still run.
            Ready False, however old the lease: ready False
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
            Ready absent, and nothing heard: ready absent; lease never
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        "#]],
    );
}

/// The three columns are the default, `hold` and `reap`.
#[test]
fn kubelet_alive_keeps_every_pod_unless_the_operator_says_otherwise() {
    check_with(
        "ready False",
        &["", "--kubelet-alive hold", "--kubelet-alive reap"],
        &expect![[r#"
            StatefulSet:
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            a kind nobody knows: owner Impala apps/v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            ReplicaSet: owner ReplicaSet apps/v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            another's ReplicaSet: owner ReplicaSet example.com/v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            ReplicationController: owner ReplicationController v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            Job: owner Job batch/v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            Job, not let go of: owner Job batch/v1; held-by batch.kubernetes.io/job-tracking
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            another's Job: owner Job batch.volcano.sh/v1alpha1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            DaemonSet: owner DaemonSet apps/v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            nobody's: owner none
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [nothing brings it back: it has no controller] [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            ReplicaSet, with a claim: owner ReplicaSet apps/v1; absent
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            ReplicaSet, with one that it owns: owner ReplicaSet apps/v1; absent; owned
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is its own alone and goes with it, data included] [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            ReplicaSet, with a generic ephemeral one: owner ReplicaSet apps/v1; absent; owned; ephemeral
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is its own alone and goes with it, data included] [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
            ReplicaSet, with another volume: owner ReplicaSet apps/v1
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = kubelet-alive: The node's Ready is False, but its machine is alive: its kubelet reports that itself. The pod's containers most likely still run.
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its containers there may still run until node ds06 is repaired or powered off: its kubelet reports that itself]
        "#]],
    );
}

#[test]
fn a_pod_may_be_reaped_once_neither_threshold_keeps_it() {
    for (words, seconds) in [
        ("overdue 1m", 510),
        ("since 2m; overdue 1h", 480),
        ("--node-not-ready-for 1m; since 2m; overdue 1h", -60),
        (
            "--node-not-ready-for 1m; since 2m; overdue 1h; node-problem-detector 20m",
            -60,
        ),
    ] {
        let from = Scene::of(words).case().reaped_from();
        let left = from.expect("a moment").duration_since(now());
        assert_eq!(left.as_secs(), seconds, "{words}");
    }
}

#[test]
fn the_two_thresholds_are_independent() {
    check(&expect![[r#"
        a young failure, a stuck pod: --reap-older-than 1m; --node-not-ready-for 30m; since 20m; overdue 1m
            = node-just-failed: The node has been NotReady for only 20m; --node-not-ready-for is 30m.
        an old failure, a fresh pod: --reap-older-than 30m; --node-not-ready-for 1m; since 1m; overdue 20m
            = not-overdue: It is overdue by 20m 30s and counts as stuck from 30m on. Its grace period of 30s is not waited for: its node had fallen silent before the deletion was requested.
    "#]]);
}

#[test]
fn finalizers_are_for_a_person() {
    check(&expect![[r#"
        one: held-by example.com/backup
            = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
        two, in their order: held-by example.com/backup foregroundDeletion
            = finalizers: It is held by finalizers example.com/backup, foregroundDeletion, whose controller has work to do before the pod can go.
        one, forced already: held-by example.com/backup; grace 0
            = already-forced: It was already force-deleted and is held by finalizer example.com/backup; another delete would change nothing.
        one, grace 1: held-by example.com/backup; grace 1
            = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
        one, grace not set: held-by example.com/backup; grace unknown
            = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
        job tracking only: held-by batch.kubernetes.io/job-tracking
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        job tracking only, forced already: held-by batch.kubernetes.io/job-tracking; grace 0
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        job tracking and another: held-by batch.kubernetes.io/job-tracking example.com/backup
            = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
        another and job tracking, forced already: held-by example.com/backup batch.kubernetes.io/job-tracking; grace 0
            = already-forced: It was already force-deleted and is held by finalizer example.com/backup; another delete would change nothing.
        none, forced already: grace 0
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        one, finished and deleted by hand: held-by example.com/backup; grace 0; finished
            = finalizers: It is held by finalizer example.com/backup, whose controller has work to do before the pod can go.
    "#]]);
}

/// A kind that was typed in the plural must still hold its pods.
#[test]
fn a_plural_names_its_kind() {
    for (kind, plural) in [
        ("StatefulSet", "statefulsets"),
        ("Policy", "policies"),
        ("Batch", "batches"),
        ("Redis", "redis"),
    ] {
        assert!(super::same_kind(kind, plural), "{kind}");
    }
    assert!(!super::same_kind("StatefulSet", "DaemonSet"));
}

#[test]
fn a_finalizer_without_a_name_holds_a_pod_too() {
    let mut scene = Scene::of("held-by x");
    scene.pod.finalizers = vec![String::new()];
    assert_eq!(scene.judged().code, ReasonCode::Finalizers);
}

#[test]
fn the_job_controller_holds_a_pod_by_its_own_finalizer_only() {
    for (finalizers, holds) in [
        ("batch.kubernetes.io/job-tracking", true),
        ("x/hold batch.kubernetes.io/job-tracking", true),
        ("x/hold", false),
        ("", false),
    ] {
        let scene = Scene::of(&format!("held-by {finalizers}"));
        assert_eq!(scene.pod.held_by_job(), holds, "{finalizers}");
    }
}

#[test]
fn a_volume_on_the_disk_of_the_dead_node_is_for_a_person() {
    check(&expect![[r#"
        local: local
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        hostPath: host-path
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (hostPath, at /var/x).
        local, whatever it says: local; on kubernetes.io/hostname In ds07
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs kubernetes.io/hostname In (ds07).
        Longhorn's: strict-local
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (Longhorn, dataLocality strict-local).
    "#]]);
}

#[test]
fn a_volume_whose_affinity_names_only_the_dead_node_is_for_a_person() {
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            by its hostname: on kubernetes.io/hostname In ds06.example
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by kubernetes.io/hostname In (ds06.example)).
            by its name: on metadata.name In ds06
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by metadata.name In (ds06)).
            TopoLVM: on topology.topolvm.io/node In ds06
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by topology.topolvm.io/node In (ds06)).
            OpenEBS: on openebs.io/nodename In ds06
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by openebs.io/nodename In (ds06)).
            by both: on openebs.io/nodename In ds06 ds06.example
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by openebs.io/nodename In (ds06, ds06.example)).
            and a zone: on zone In a b & metadata.name In ds06
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by zone In (a, b) and metadata.name In (ds06)).
            each term by itself: on metadata.name In ds06 | kubernetes.io/hostname In ds06.example
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by metadata.name In (ds06) or kubernetes.io/hostname In (ds06.example)).
        "#]],
    );
}

/// The affinity is satisfied by another node, by both nodes, by this one alone, by none, and by an
/// unknown set.
#[test]
fn a_volume_that_another_node_reaches_binds_nothing() {
    check_with(
        "claim",
        &[
            "reached-by ds07",
            "reached-by ds06 ds07",
            "reached-by ds06",
            "reached-by",
            "reached-by ?",
        ],
        &expect![[r#"
            to two nodes: on metadata.name In ds06 ds07
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds06, ds07)]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds06, ds07)]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds06, ds07).
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds06, ds07).
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
            to another node: on metadata.name In ds07
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds07)]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds07)]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds07).
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds07).
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
            to a namesake's beginning: on metadata.name In ds06-2
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds06-2)]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds06-2)]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds06-2).
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds06-2).
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
            to any but this node: on metadata.name NotIn ds06
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name NotIn (ds06)]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name NotIn (ds06)]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name NotIn (ds06).
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name NotIn (ds06).
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
            to a label's presence: on ds06 Exists
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs ds06 Exists]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs ds06 Exists]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs ds06 Exists.
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs ds06 Exists.
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
            to a label's absence: on ds06 DoesNotExist
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs ds06 DoesNotExist]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs ds06 DoesNotExist]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs ds06 DoesNotExist.
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs ds06 DoesNotExist.
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
            to a number: on disks Gt 2
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs disks Gt (2)]
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs disks Gt (2)]
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs disks Gt (2).
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs disks Gt (2).
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
        "#]],
    );
    // These volumes are settled without a question, whatever nodes there are now.
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            to a zone: on topology.kubernetes.io/zone In a
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs topology.kubernetes.io/zone In (a)]
            to a region: on topology.ebs.csi.aws.com/region In ds06
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs topology.ebs.csi.aws.com/region In (ds06)]
            to a zone of this node's name: on rack-zone In ds06
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs rack-zone In (ds06)]
            to this node or a zone: on metadata.name In ds06 | topology.kubernetes.io/zone In a
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs metadata.name In (ds06) or topology.kubernetes.io/zone In (a)]
            without affinity:
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        "#]],
    );
}

#[test]
fn a_volume_that_no_other_node_reaches_is_for_a_person() {
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            this node alone: on rack In r1 & topology.kubernetes.io/zone In a; reached-by ds06
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs rack In (r1) and topology.kubernetes.io/zone In (a).
            no node at all: on rack In r1 & topology.kubernetes.io/zone In a; reached-by
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs rack In (r1) and topology.kubernetes.io/zone In (a).
            another one too: on rack In r1 & topology.kubernetes.io/zone In a; reached-by ds06 ds07
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs rack In (r1) and topology.kubernetes.io/zone In (a)]
            another one, by its second term: on rack In r1 | rack In r2; reached-by ds06 | ds07
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs rack In (r1) or rack In (r2)]
            a node at any place: on
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs what no node has.
        "#]],
    );
}

#[test]
fn an_affinity_that_cannot_be_asked_about_is_unverified() {
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            by a field: on field
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it asks for a field of the node.
            by no known operator: on disks Near x
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: no label selector says disks Near (x).
            by an empty value: on disks In ''
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs disks In ("").
            by no value: on disks In
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: no label selector says disks In ().
            by what is no value: on disks In a),b
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: disks In (a),b) is not a valid label requirement.
            the answer is unread: on rack In r1; reached-by unread
                = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it is forbidden.
            another term has a node: on field | rack In r1; reached-by ? | ds07
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs a field of the node or rack In (r1)]
        "#]],
    );
}

#[test]
fn a_hostname_counts_only_where_the_node_has_it() {
    check_with(
        "claim; on kubernetes.io/hostname In ds06.example; reached-by ds06",
        &[""],
        &expect![[r#"
            no hostname: no-hostname
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs kubernetes.io/hostname In (ds06.example).
            another hostname: hostname ds06
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs kubernetes.io/hostname In (ds06.example).
        "#]],
    );
}

#[test]
fn a_term_without_requirements_matches_no_node() {
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            empty terms only: on |
                = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs what no node has.
            an empty term beside a pinned one: on | metadata.name In ds06
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (reachable only from this node, by metadata.name In (ds06)).
            an empty term beside a free one: on | zone In a
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs zone In (a)]
        "#]],
    );
}

#[test]
fn a_claim_of_the_pods_own_binds_nothing() {
    check(&expect![[r#"
        made by its volume: owner ReplicaSet apps/v1; local; ephemeral; owned
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is its own alone and goes with it, data included]
        of a former pod, or of nobody: owner ReplicaSet apps/v1; local; ephemeral
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        owned, and nothing wants it again: claim; owned
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is its own alone and goes with it, data included]
        owned and on the disk of the node: local; owned
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is its own alone and goes with it, data included]
        owned, and wanted again: claim; wanted its StatefulSet wants the pod again
            = volume-unverified: It is unverified what a delete would do to its data: claim data: the pod owns it, so that it goes with the pod, and its StatefulSet wants the pod again.
    "#]]);
}

#[test]
fn a_claim_that_could_not_be_verified_is_for_a_person() {
    check(&expect![[r#"
        unread: unread
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is forbidden.
        lost: lost Lost
            = volume-unverified: It is unverified what a delete would do to its data: claim data: its volume pv-1 does not exist.
        its volume is missing: lost Bound
            = volume-unverified: It is unverified what a delete would do to its data: claim data: its volume pv-1 does not exist.
        unbound: unbound Pending
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it names no volume (phase Pending).
        unbound, without a phase: unbound
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it names no volume (phase not set).
        absent, it pins nothing: absent
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
    "#]]);
}

#[test]
fn every_claim_is_checked() {
    check(&expect![[r#"
        the last is pinned: absent; called gone; claim; called free; on zone In a; local
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        the first is pinned: local; claim; called free; on zone In a
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        two are pinned: local; host-path; called logs
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1); claim logs is bound to volume pv-1 (hostPath, at /var/x).
        the last is unbound: claim; called free; on zone In a; unbound Pending
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it names no volume (phase Pending).
        two are unverified: unread; unbound Pending; called logs
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is forbidden; claim logs: it names no volume (phase Pending).
        none binds it: absent; called gone; claim; called free; on zone In a
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs zone In (a)]
    "#]]);
    let two = Scene::of("local; local; called logs").judged();
    let pinned = |claim: &str| PinnedClaim {
        claim: claim.to_owned(),
        claim_uid: "c-1".into(),
        version: Some("c-v1".into()),
        volume: "pv-1".to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        bond: "local, at /mnt/d1".to_owned(),
        given_up: Err(format!(
            "claim {claim} is not annotated pod-reaper.io/scratch: \"true\""
        )),
        answered: false,
        deleted: false,
        by_operator: false,
        doubt: Some(Doubt::unread(
            "it was not asked whether it would be created again",
        )),
    };
    assert_eq!(two.ties.pinned, ["data", "logs"].map(pinned));
}

#[test]
fn a_disk_that_two_machines_could_write_is_for_a_person() {
    check(&expect![[r#"
        a shared block device: claim; shared
            = shared-disk: Two machines could write to its disk at once (claim data is ReadWriteMany and a raw block device), and its node is not certainly off.
        of one of many: claim; shared; owner ReplicaSet apps/v1
            = shared-disk: Two machines could write to its disk at once (claim data is ReadWriteMany and a raw block device), and its node is not certainly off.
        an ordinary claim: claim
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        a virtual machine: owner VirtualMachineInstance apps/v1
            = shared-disk: Two machines could write to its disk at once (it belongs to the virtual machine db), and its node is not certainly off.
        what hands it a disk: virt-launcher virt-launcher-db
            = shared-disk: Two machines could write to its disk at once (it belongs to the virtual machine virt-launcher-db), and its node is not certainly off.
        another pod's pod: virt-launcher launcher
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        a shared block device, fenced: claim; shared; fenced
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        a virtual machine, fenced: owner VirtualMachineInstance apps/v1; fenced
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        fenced, yet it lives: owner VirtualMachineInstance apps/v1; fenced; virt-handler 1m
            = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 1m ago. The pod's containers most likely still run.
        on its disk as well: local; shared
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        fenced, yet it lives, which nobody minds: owner VirtualMachineInstance apps/v1; fenced; virt-handler 1m; --kubelet-alive reap
            = shared-disk: Two machines could write to its disk at once (it belongs to the virtual machine db), and its node is not certainly off.
        a disk on a storage network: claim; iscsi
            = shared-disk: Two machines could write to its disk at once (volume pv-1 of claim data is iSCSI, which locks no other machine out), and its node is not certainly off.
        in the pod itself: own-disk its volume data is iSCSI
            = shared-disk: Two machines could write to its disk at once (its volume data is iSCSI, which locks no other machine out), and its node is not certainly off.
        that, of one of many: own-disk its volume data is iSCSI; owner ReplicaSet apps/v1
            = shared-disk: Two machines could write to its disk at once (its volume data is iSCSI, which locks no other machine out), and its node is not certainly off.
        that, fenced: own-disk its volume data is iSCSI; fenced
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
    "#]]);
    // The mark was left behind: the machine was heard after it was set.
    check_with(
        "owner VirtualMachineInstance apps/v1; --kubelet-alive reap; since 1h; lease 59m",
        &[""],
        &expect![[r#"
            heard after the mark was set: fenced 59m 1s
                = shared-disk: Two machines could write to its disk at once (it belongs to the virtual machine db), and its node is not certainly off.
            heard as it was set: fenced 59m
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
            one mark of two was left behind: fenced 2h; fenced
                = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        "#]],
    );
    // An unread lease leaves open whether the machine lives, so it is not certainly off.
    let scene = Scene::of("fenced; lease unread; --kubelet-alive reap");
    let node = scene.node.as_ref().and_then(NodeRead::known).unwrap();
    assert_eq!(node.fenced(now()), None);
}

#[test]
fn owner_kinds_are_for_a_person_in_any_spelling() {
    check(&expect![[r#"
        named: --manual-owner-kind StatefulSet
            = owner-kind: It belongs to StatefulSet/db, and --manual-owner-kind names that kind.
        in small letters: --manual-owner-kind statefulset
            = owner-kind: It belongs to StatefulSet/db, and --manual-owner-kind names that kind.
        in capitals: --manual-owner-kind STATEFULSET
            = owner-kind: It belongs to StatefulSet/db, and --manual-owner-kind names that kind.
        second of two: --manual-owner-kind Job StatefulSet
            = owner-kind: It belongs to StatefulSet/db, and --manual-owner-kind names that kind.
        another: --manual-owner-kind StatefulSet; owner ReplicaSet apps/v1
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        only the beginning of it: --manual-owner-kind Set
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        no owner: --manual-owner-kind StatefulSet; owner none
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [nothing brings it back: it has no controller]
        none named: --manual-owner-kind
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        in the plural: --manual-owner-kind statefulsets
            = owner-kind: It belongs to StatefulSet/db, and --manual-owner-kind names that kind.
        the workload above: --manual-owner-kind deployments; owner ReplicaSet apps/v1; workload Deployment
            = owner-kind: It belongs to Deployment/db, and --manual-owner-kind names that kind.
        no workload above: --manual-owner-kind deployments; owner ReplicaSet apps/v1
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        the owner first: --manual-owner-kind ReplicaSet Deployment; owner ReplicaSet apps/v1; workload Deployment
            = owner-kind: It belongs to ReplicaSet/db, and --manual-owner-kind names that kind.
    "#]]);
}

#[test]
fn the_rest_is_reaped() {
    check(&expect![[r#"
        a pod like any other:
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        without an owner: owner none
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [nothing brings it back: it has no controller]
        finished already: finished
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        on a node of the control plane: control-plane
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
    "#]]);
}

/// The reasons in the order of the rules, each with words that make its rule hold. The last
/// rule always holds.
const TRIGGERS: &str = "
    mirror-pod: mirror
    opted-out: skip true
    node-gone: never-placed
    node-ready: ready True
    not-overdue: overdue 1m
    kosmos-leaf: leaf Kosmos
    facts-unread: namespace unread
    node-just-failed: tainted 1m
    kubelet-alive: virt-handler 10s
    already-forced: held-by example.com/backup; grace 0
    finalizers: held-by example.com/backup
    local-volume: local
    volume-confined: claim; on rack In r1; reached-by ds06
    volume-unverified: unbound Pending
    shared-disk: claim; shared
    owner-kind: --manual-owner-kind StatefulSet
";

#[test]
fn the_first_rule_that_holds_decides() {
    let triggers = TRIGGERS.trim().lines();
    let triggers = triggers.filter_map(|line| line.trim().split_once(": "));
    let triggers = triggers.collect::<Vec<_>>();
    assert_eq!(triggers.len(), rules::RULES.len() - 1);
    for (at, (first, holds)) in triggers.iter().enumerate() {
        let code = |also: &str| Scene::of(&format!("{also}; {holds}")).judged().code;
        assert_eq!(code("").as_str(), *first, "alone");
        for (second, also_holds) in &triggers[at + 1..] {
            // `node-gone` does not hold if finalizers remain, so their rules decide there.
            let exclusive = *first == "node-gone" && also_holds.starts_with("held-by");
            assert!(
                exclusive || code(also_holds).as_str() == *first,
                "{first} before {second}"
            );
        }
    }
}

/// The branches of `facts-unread` that the trigger above leaves out, and the branch of `opted-out`
/// that reads the node.
#[test]
fn the_order_holds_for_every_form_of_a_rule() {
    check(&expect![[r#"
        opted-out node before Ready node: node-skip true; ready True
            = opted-out: Its node is opted out by pod-reaper.io/skip.
        gone before not overdue: node gone; overdue 1m
            = node-gone: Node ds06 no longer exists; the pod garbage collector takes care of it.
        not overdue before unread node: node unread; overdue 1m
            = not-overdue: It is overdue by 1m and counts as stuck from 10m on.
        leaf before unread lease: leaf selected; lease unread
            = leaf-node: Its node matches --leaf-node-selector (seen: label selector type=far). There, NotReady mostly means that the link is cut: the pod may well be running.
        unread lease before just failed: since 1m; lease unread
            = facts-unread: A fact that the decision needs could not be read: the node's lease: it is forbidden.
        unread node before finalizers: node unread; held-by example.com/backup
            = facts-unread: A fact that the decision needs could not be read: the node: it is forbidden.
        just failed before a local volume: since 1m; local
            = node-just-failed: The node has been NotReady for only 1m; --node-not-ready-for is 10m.
        pinned before unverified, whatever comes first: unbound Pending; local
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
    "#]]);
}

#[test]
fn claims_are_asked_for_only_where_they_can_matter() {
    check_each(
        &expect![[r#"
            let through so far: unasked
                = true
            no claim:
                = false
            not overdue: unasked; overdue 1m
                = false
            held by a finalizer: unasked; held-by example.com/backup
                = false
            held by the Job controller: unasked; held-by batch.kubernetes.io/job-tracking
                = true
            on a leaf node: unasked; leaf Kosmos
                = false
            on an unread node: unasked; node unread
                = false
            before the last rule: unasked; --manual-owner-kind StatefulSet
                = true
        "#]],
        |words| {
            let scene = Scene::of(words);
            let needed = !scene.pod.claims.is_empty() && scene.judged().stage >= Stage::Storage;
            vec![needed.to_string()]
        },
    );
}

/// Claims that were not looked up let a pod pass no rule about claims, nor does any such rule hold.
#[test]
fn a_pod_about_whose_claims_nothing_was_asked_is_not_reaped() {
    let scene = Scene::of("unasked");
    let unasked = scene.case().evaluate();
    let unasked = unasked.iter().filter(|rule| rule.holds.is_none());
    let asked = unasked.map(|rule| rule.asks).collect::<Vec<_>>();
    let of_claims = [
        ReasonCode::LocalVolume,
        ReasonCode::VolumeConfined,
        ReasonCode::VolumeUnverified,
        ReasonCode::SharedDisk,
    ];
    let of_claims = of_claims.map(|code| {
        let mut rules = rules::RULES.iter();
        rules
            .find(|rule| rule.gives.contains(&code))
            .map_or("", |rule| rule.asks)
    });
    assert_eq!(asked, of_claims);
    check(&expect![[r#"
        nothing was asked: unasked
            = facts-unread: A fact that the decision needs could not be read: its claims: nothing was asked about them.
    "#]]);
}

/// Codes and verdicts are part of every report's contract.
#[test]
fn codes_and_verdicts_are_those_of_the_contract() {
    let contract = ReasonCode::ALL.map(|code| format!("{code} {}\n", code.verdict()));
    expect![[r#"
        mirror-pod leave
        opted-out leave
        node-gone leave
        node-ready leave
        not-overdue wait
        kosmos-leaf manual
        virtual-node manual
        edge-node manual
        leaf-node manual
        facts-unread wait
        node-just-failed wait
        kubelet-alive manual
        already-forced manual
        finalizers manual
        local-volume manual
        volume-confined manual
        volume-unverified manual
        shared-disk manual
        owner-kind manual
        scratch reap
        answered reap
        stuck-on-not-ready-node reap
        mass-outage wait
        over-cap wait
    "#]]
    .assert_eq(&contract.concat());
}

#[test]
fn durations_are_written_in_whole_seconds() {
    for (duration, text) in [
        ("0s", "0s"),
        ("999ms", "0s"),
        // Durations are cut, not rounded.
        ("59s 999ms", "59s"),
        ("65m", "1h 5m"),
        ("-2m", "minus 2m"),
    ] {
        assert_eq!(spoken(span(duration)), text);
    }
}

/// A local claim that its StatefulSet makes again, with an answer on it.
const GIVEN_UP: &str = "local; renewed; give-up 2026-03-01T11:30:00Z";

/// Each condition that binds an answer to its failure is broken by itself, on a pod that the answer
/// lets go otherwise.
#[test]
fn an_answer_counts_for_one_failure() {
    check_with(
        GIVEN_UP,
        &[""],
        &expect![[r#"
            it lets it go:
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
            of now: give-up 2026-03-01T12:00:00Z
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
            no time: give-up yes
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: its value is no time, such as 2026-01-31T03:00:00Z.
            empty: give-up
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: its value is no time, such as 2026-01-31T03:00:00Z.
            of a future report: give-up 2026-03-01T12:00:01Z
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: its time lies in the future.
            claim made anew: claim-made 30m
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not later than the moment when the claim was made.
            claim of unknown age: claim-made unknown
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not known when the claim was made.
            pod replaced: made 30m
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not later than the moment when the pod was made.
            pod of unknown age: made unknown
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not known when the pod was made.
            deleted since: overdue 29m; grace 60
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not later than the moment when the pod's deletion was asked for.
            unknown grace: grace unknown
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not known when the pod's deletion was asked for.
            node made anew: node-made 30m
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not later than the moment when the node was made.
            node of unknown age: node-made unknown
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not known when the node was made.
            back and gone again: since 30m
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: it is not later than the moment when the node became NotReady.
            it lives, which nobody minds: ready False; --kubelet-alive reap
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: the node's machine lives, or may.
            heard at that moment, which nobody minds: kube-apiserver 30m; --kubelet-alive reap
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
            heard since, which nobody minds: kube-apiserver 29m 59s; --kubelet-alive reap
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: the answer on claim data counts for nothing: the node's machine was heard after it.
        "#]],
    );
    let gives_up = Scene::of(GIVEN_UP).judged();
    let claim = gives_up.claims_to_delete().next().expect("one claim");
    assert_eq!((&claim.given_up, claim.answered), (&Ok(()), true));
    assert_eq!(claim.doubt, None);
}

/// Neither the scratch annotation alone nor the option alone gives a claim up: both together do, or
/// an answer does.
#[test]
fn a_claim_is_given_up_only_where_it_is_declared() {
    check_with(
        "local; renewed",
        &["", "give-up 2026-03-01T11:30:00Z"],
        &expect![[r#"
            neither:
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
            the annotation: scratch
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
            the option: --reap-scratch
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: claim data is not annotated pod-reaper.io/scratch: "true".
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
            both: scratch; --reap-scratch
                = scratch: It is stuck Terminating on a NotReady node and nothing binds it there except claims that are given up, which are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
                = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted and recreated, empty; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
        "#]],
    );
}

/// An objection to giving a claim up also stands if a person answered.
#[test]
fn an_answer_gives_up_no_claim_that_is_not_made_again() {
    check_with(
        GIVEN_UP,
        &[""],
        &expect![[r#"
            it is not: not-renewed so
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: so.
            nobody knows: renewal-unread so
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: so.
            it stays, or is opted out: held-or-skipped
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: claim data is opted out, or a finalizer would hold it.
            one of two: local; called logs; renewed
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1); claim logs is bound to volume pv-1 (local, at /mnt/d1). It is not given up: claim logs is not annotated pod-reaper.io/scratch: "true".
            beside a confined one: claim; called logs; on rack In r1; reached-by ds06
                = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: volume-confined would hold it anyway.
        "#]],
    );
}

/// Each annotation answers its own rule alone. An annotation that no rule needed does not count as
/// an answer.
#[test]
fn an_answer_answers_its_own_rule_alone() {
    let cases = expect![[r#"
        none, the pod's: REAP
            = stuck-on-not-ready-node
        owner-kind, the pod's: --manual-owner-kind StatefulSet; REAP
            = answered
        owner-kind, the claim's: --manual-owner-kind StatefulSet; GIVEN-UP
            = local-volume
        owner-kind, the node's: --manual-owner-kind StatefulSet; OFF
            = owner-kind
        volume-confined, the pod's: CONFINED; REAP
            = answered
        volume-confined, the pod's, which owns the claim: CONFINED; owned; REAP
            = stuck-on-not-ready-node
        volume-confined, the node's: CONFINED; OFF
            = volume-confined
        volume-unverified, the pod's: unbound Pending; REAP
            = volume-unverified
        volume-unverified, the pod's, and the node's: unbound Pending; REAP; OFF
            = answered
        volume-unverified, the pod's, which owns the claim: unbound Pending; owned; REAP; OFF
            = stuck-on-not-ready-node
        volume-confined, the pod's, which takes another claim along: CONFINED; claim; unwanted; REAP
            = volume-confined
        volume-unverified, the pod's, which takes another claim along: unbound Pending; claim; unwanted; REAP; OFF
            = volume-unverified
        owner-kind, the pod's, which takes a claim along: --manual-owner-kind StatefulSet; claim; unwanted; REAP
            = owner-kind
        volume-unverified, the pod's, of a volume that may be on the node: local; reached-by unread; REAP; OFF
            = volume-unverified
        volume-unverified, the node's: unbound Pending; OFF
            = volume-unverified
        volume-unverified, one that was not read: unread; REAP; OFF
            = volume-unverified
        shared-disk, the node's: claim; shared; OFF
            = answered
        shared-disk, the node's of another failure: claim; shared; powered-off 2026-02-01T00:00:00Z
            = shared-disk
        shared-disk, the pod's: claim; shared; REAP
            = shared-disk
        local-volume, the pod's: local; renewed; REAP
            = local-volume
        local-volume, the node's: local; renewed; OFF
            = local-volume
        finalizers, all of them: held-by example.org/held; GIVEN-UP; REAP; OFF
            = finalizers
        kubelet-alive, all of them: ready False; GIVEN-UP; REAP; OFF
            = kubelet-alive
        not-overdue, all of them: overdue 9m 59s; GIVEN-UP; REAP; OFF
            = local-volume
    "#]];
    check_each(&cases, |words| {
        let words = words
            .replace("GIVEN-UP", GIVEN_UP)
            .replace("REAP", "reap 2026-03-01T11:30:00Z")
            .replace("OFF", "powered-off 2026-03-01T11:30:00Z")
            .replace("CONFINED", "claim; on rack In r1; reached-by ds06");
        vec![Scene::of(&words).judged().code.to_string()]
    });
}

/// A grace period that the node's machine never heard of is not waited for.
#[test]
fn a_deletion_that_the_node_never_learnt_of_counts_from_its_request() {
    check(&expect![[r#"
        a week of grace, asked for 50m ago: grace 604800; overdue -167h 10m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 7d is not waited for: its node had fallen silent before the deletion was requested.
        asked for just long enough ago: grace 604800; overdue -167h 50m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 7d is not waited for: its node had fallen silent before the deletion was requested.
        asked for a second less ago: grace 604800; overdue -167h 50m 1s
            = not-overdue: It is overdue by 9m 59s and counts as stuck from 10m on. Its grace period of 7d is not waited for: its node had fallen silent before the deletion was requested.
        heard a minute before: grace 604800; overdue -167h 10m; lease 51m
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
        heard more than a minute before: grace 604800; overdue -167h 10m; lease 51m 1s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 7d is not waited for: its node had fallen silent before the deletion was requested.
        something on it was heard a minute before: grace 604800; overdue -167h 10m; virt-handler 51m
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
        another Lease says nothing here: grace 604800; overdue -167h 10m; other-lease 51m by Lease a/b, held by c
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. Its grace period of 7d is not waited for: its node had fallen silent before the deletion was requested.
        its lease was never renewed: grace 604800; overdue -167h 10m; lease never
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
        its lease was never renewed, and something on it was heard: grace 604800; overdue -167h 10m; lease never; virt-handler 3h
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
        its lease is unread: grace 604800; overdue -167h 10m; lease unread
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
        the kubelet still reports: grace 604800; overdue -167h 10m; ready False
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
        without a grace period: grace none; overdue -167h 10m
            = not-overdue: It is within its grace period for another 6d 23h; it counts as stuck 10m after that.
    "#]]);
}

#[test]
fn node_just_failed_waits_for_no_detector() {
    check(&expect![[r#"
        just below 6m: --node-not-ready-for 0s; since 5m 59s; node-problem-detector 20m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        6m: --node-not-ready-for 0s; since 6m; node-problem-detector 20m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        the other one: --node-not-ready-for 0s; since 5m 59s; eks-node-monitoring-agent 20m
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        nobody watches it: --node-not-ready-for 0s; since 1s
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        what is asked for is more: --node-not-ready-for 7m; since 6m 30s; node-problem-detector 20m
            = node-just-failed: The node has been NotReady for only 6m 30s; --node-not-ready-for is 7m.
    "#]]);
}

#[test]
fn kubelet_alive_asks_every_source() {
    check(&expect![[r#"
        another Lease: other-lease 10m 59s by Lease shop/leader, held by db-0
            = kubelet-alive: The node's Ready is Unknown, but its machine is alive: Lease shop/leader, held by db-0, was renewed 10m 59s ago. The pod's containers most likely still run.
        long enough ago: other-lease 11m by Lease shop/leader, held by db-0
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        as it failed: since 30m; other-lease 30m by Lease shop/leader, held by db-0
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        a program: program 10s by Patroni in pod shop/db-0
            = kubelet-alive: The node's Ready is Unknown, but its machine is alive: Patroni in pod shop/db-0 wrote to its own pod 10s ago. The pod's containers most likely still run.
        an API server: kube-apiserver 10m 59s
            = kubelet-alive: The node's Ready is Unknown, but its machine is alive: its API server renewed its lease 10m 59s ago. The pod's containers most likely still run.
        unread: leases unread
            = facts-unread: A fact that the decision needs could not be read: the Leases that may name the node or its pods: it is forbidden.
        unread, and it lives: leases unread; virt-handler 1m
            = kubelet-alive: The node's Ready is Unknown, but its machine is alive: virt-handler reported 1m ago. The pod's containers most likely still run.
        unread, which nobody minds: leases unread; --kubelet-alive reap
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        unread, and too early: leases unread; since 1m
            = node-just-failed: The node has been NotReady for only 1m; --node-not-ready-for is 10m.
    "#]]);
}

#[test]
fn local_volume_and_volume_confined_ask_which_other_nodes_there_are() {
    check(&expect![[r#"
        a directory of this node: local
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        by its host's name: local; on kubernetes.io/hostname In ds06.example
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        that another node has too: local; on kubernetes.io/hostname In ds06 ds07; reached-by ds06 ds07
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs kubernetes.io/hostname In (ds06, ds07)]
        under another name of this machine: local; reached-by ds06-new
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [its replacement waits for a node that its volume allows: pv-1 needs kubernetes.io/hostname In (ds06)]
        of several nodes that are gone: local; on kubernetes.io/hostname In ds06 ds07; reached-by ds06
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs kubernetes.io/hostname In (ds06, ds07).
        that nobody binds: host-path; no-affinity
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which is a directory that other nodes may share (hostPath, at /var/x).
        bound to a zone: host-path; on topology.kubernetes.io/zone In a
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which is a directory that other nodes may share (hostPath, at /var/x).
        bound to a zone or a node: host-path; on topology.kubernetes.io/zone In a | kubernetes.io/hostname In ds06
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs topology.kubernetes.io/zone In (a) or kubernetes.io/hostname In (ds06).
        nobody was asked: local; reached-by ?
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it was not asked for.
        a zone of its name, and a rack of its own: claim; on rack-zone In ds06 & rack In r1; reached-by ds06
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs rack-zone In (ds06) and rack In (r1).
        its name, or a rack of its own: claim; on metadata.name In ds06 | rack In r1; reached-by ds06
            = volume-confined: No other node is known to reach its storage: claim data is bound to volume pv-1, which needs metadata.name In (ds06) or rack In (r1).
        a field: local; on field & kubernetes.io/hostname In ds06
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is unknown whether another node reaches its volume pv-1: it asks for a field of the node.
        strict-local, bound to nothing: strict-local
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (Longhorn, dataLocality strict-local).
    "#]]);
}

#[test]
fn a_claim_that_is_being_deleted_takes_its_data_along() {
    check(&expect![[r#"
        somebody's slip: claim; deleted; wanted its StatefulSet wants the pod again
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is being deleted, so that it goes with its last pod, and its StatefulSet wants the pod again.
        nothing wants it: claim; deleted; unwanted
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is being deleted, and goes with its last pod, data included]
        given up: claim; deleted; wanted so; give-up 2026-03-01T11:30:00Z
            = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go. [claim data is being deleted, and goes with it, data included]
        given up for another failure: claim; deleted; wanted so; give-up 2026-03-01T10:30:00Z
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is being deleted, so that it goes with its last pod, and so.
        scratch is no answer: claim; deleted; wanted so; scratch; --reap-scratch
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is being deleted, so that it goes with its last pod, and so.
        on the disk of the node: local; deleted; wanted so
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1).
        on the disk of the node, given up: local; deleted; wanted so; give-up 2026-03-01T11:30:00Z
            = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go. [claim data is being deleted, and goes with it, data included]
        made by the pod's own volume: claim; ephemeral; owned; deleted
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there. [claim data is its own alone and goes with it, data included]
        the answer on the pod: claim; deleted; wanted so; reap 2026-03-01T11:30:00Z; fenced
            = volume-unverified: It is unverified what a delete would do to its data: claim data: it is being deleted, so that it goes with its last pod, and so.
    "#]]);
}

#[test]
fn an_operators_claim_is_given_up_by_an_answer_alone() {
    check(&expect![[r#"
        answered: local; by-operator; give-up 2026-03-01T11:30:00Z
            = answered: It is stuck Terminating on a NotReady node and a person's answer lets it go; claims that are given up are deleted first: data. [claim data is deleted, and whether it is recreated is its operator's affair; its volume pv-1 stays behind, Released, until it is cleaned up (reclaim policy Delete), and a storage class that binds at once may choose ds06 again]
        scratch: local; by-operator; scratch; --reap-scratch
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: no StatefulSet made it.
        answered, and used by another pod: local; by-operator; used-by db-1; give-up 2026-03-01T11:30:00Z
            = local-volume: Its storage is on the dead node: claim data is bound to volume pv-1 (local, at /mnt/d1). It is not given up: claim data is also used by db-1.
    "#]]);
}

#[test]
fn nothing_keeps_a_second_machine_from_a_disk_that_nothing_attaches() {
    check(&expect![[r#"
        attached: claim; driver attaches
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        not attached: claim; driver detached
            = shared-disk: Two machines could write to its disk at once (volume pv-1 of claim data is of csi.example, which attaches nothing, which locks no other machine out), and its node is not certainly off.
        not attached, and fenced: claim; driver detached; fenced
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        unread: claim; driver unread
            = facts-unread: A fact that the decision needs could not be read: whether anything attaches its disk: it is forbidden.
        unread, and fenced: claim; driver unread; fenced
            = stuck-on-not-ready-node: It is stuck Terminating on a NotReady node and nothing binds it there.
        unread, and another disk: claim; driver unread; claim; shared
            = shared-disk: Two machines could write to its disk at once (claim data is ReadWriteMany and a raw block device), and its node is not certainly off.
        unread, of scratch that is given up: local; renewed; scratch; driver unread; --reap-scratch
            = facts-unread: A fact that the decision needs could not be read: whether anything attaches its disk: it is forbidden.
    "#]]);
}
