//! Tests of what the advice must not say, because it would endanger data or containers that still
//! run.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::*;

/// Returns the text of the advice, without its commands.
fn words(advice: &Advice) -> String {
    let steps = advice.steps.iter().map(|step| step.what.clone());
    let before = advice.first.iter().chain(&advice.risk).cloned();
    before.chain(steps).join(" ")
}

/// Kueue and Argo Workflows remove their finalizers once the pod has finished. Nothing records that
/// while its node is dead, so it does not help to look for their controllers. Any other finalizer
/// has advice of its own.
#[test]
fn a_finalizer_that_waits_for_the_end_needs_the_taint_of_a_machine_that_is_off() {
    let cases = expect![[r#"
        Kueue: held-by kueue.x-k8s.io/managed
            = risk
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        Argo Workflows: held-by workflows.argoproj.io/status
            = risk
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        forced already: held-by kueue.x-k8s.io/managed; grace 0
            = risk
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        with that of its Job: held-by batch.kubernetes.io/job-tracking kueue.x-k8s.io/managed
            = risk
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        of a fenced node: held-by kueue.x-k8s.io/managed; fenced
            = risk
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        with another: held-by kueue.x-k8s.io/managed example.com/own
            = risk
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        out of service already: held-by kueue.x-k8s.io/managed; out-of-service
            = risk
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        it has finished: held-by kueue.x-k8s.io/managed; finished
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        its node is gone: held-by kueue.x-k8s.io/managed; node gone
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        another alone: held-by example.com/own
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        the breaker holds its node: held-by kueue.x-k8s.io/managed; nodes 3/3
            = risk
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
    "#]];
    check(&cases);
}

#[test]
fn a_fenced_node_is_not_to_be_powered_off_again() {
    for pod in [
        "local; templated",
        "--manual-owner-kind StatefulSet",
        "lost",
        "held-by kueue.x-k8s.io/managed",
    ] {
        for (node, asks) in [("", true), ("; fenced", false)] {
            let advice = Scene::of(&format!("{pod}{node}")).advice();
            let said = words(&advice[0]).to_lowercase();
            let powers_off =
                said.contains("power ds06 off") || said.contains("ds06 is powered off");
            assert_eq!(powers_off, asks, "{pod}{node}: {said}");
        }
    }
    for (node, asks) in [("", true), ("fenced", false), ("lease 1m", false)] {
        let scene = Scene::of(node);
        let facts = scene.node.as_ref().and_then(NodeRead::known).unwrap();
        let steps = scene.advised(|adviser| adviser.advise_node(facts, true, false));
        let asked = steps.iter().any(|step| step.kind == StepKind::PowerOff);
        assert_eq!(asked, asks, "pods were taken from it: {node}");
    }
}

/// A `StatefulSet` may lose its quorum with two pods. From four PVCs on, no command is printed, so
/// that the report fits on a screen.
#[test]
fn the_pods_of_one_stateful_set_are_decided_about_one_at_a_time() {
    let cases = expect![[r#"
        one pod: local; templated
            = commands: 1
        on one node: local; templated; and db-1; local; templated
            = commands: 2, one at a time
        on two nodes: local; templated; and-node ds07; and db-1; local; templated
            = commands: 1, one at a time
            = commands: 0, one at a time
        of a kind: --manual-owner-kind StatefulSet; and db-1
            = commands: 0, one at a time
        confined: claim; on disk In ssd; and db-1; claim; on disk In ssd
            = commands: 0, one at a time
        another set: local; templated; and db-1; of other; local; templated
            = commands: 1
            = commands: 1
        another is let go: local; templated; and db-1
            = commands: 1
        another has a finalizer: local; templated; and db-1; local; templated; held-by example.com/own
            = commands: 1
            = commands: 0
        the breaker holds the other: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6; local; templated; and-node ds07; zone eu/a; and db-1; local; templated
            = commands: 1
            = commands: 0
        of a Deployment: owner ReplicaSet apps/v1; --manual-owner-kind ReplicaSet; and-node ds07; and db-1; owner ReplicaSet apps/v1
            = commands: 0
            = commands: 0
        four on one node that only need to know that it is off: claim; shared; and db-1; claim; shared; and db-2; claim; shared; and db-3; claim; shared
            = commands: 0
        three on one node: local; templated; and db-1; local; templated; and db-2; local; templated
            = commands: 3, one at a time
        four on one node: local; templated; and db-1; local; templated; and db-2; local; templated; and db-3; local; templated
            = commands: 0, one at a time
    "#]];
    check_each(&cases, |case| {
        let advice = Scene::of(case).advice().into_iter();
        let advice = advice.map(|advice| {
            let commands = advice.steps.iter();
            let commands =
                commands.filter(|step| step.kind == StepKind::Decide && step.harm.is_some());
            let is_slow = words(&advice).contains("only once the one before is Ready");
            let slowly = if is_slow { ", one at a time" } else { "" };
            format!("commands: {}{slowly}", commands.count())
        });
        advice.collect_vec().join("\n")
    });
}

/// Ceph's driver fences a machine only if the taint is set when its volumes are detached.
#[test]
fn the_taint_comes_before_the_reap_of_what_ceph_holds() {
    let cases = expect![[r#"
        RBD: attached csi-1=other.example csi-2=rbd.csi.ceph.com
            = before the reap: true, removed after a power cycle: true
        RBD of Rook: attached csi-1=rook-ceph.rbd.csi.ceph.com
            = before the reap: true, removed after a power cycle: true
        CephFS: attached csi-1=openshift-storage.cephfs.csi.ceph.com
            = before the reap: true, removed after a power cycle: true
        the taint is there: attached csi-1=rbd.csi.ceph.com; out-of-service
            = before the reap: false, removed after a power cycle: true
        another driver: attached csi-1=ebs.csi.aws.com
            = before the reap: false, removed after a power cycle: true
        a driver that begins so: attached csi-1=rbd.csi.ceph.com.example
            = before the reap: false, removed after a power cycle: true
        no driver: attached csi-1
            = before the reap: false, removed after a power cycle: true
    "#]];
    check_each(&cases, |case| {
        let scene = Scene::of(case);
        let node = scene.node.as_ref().and_then(NodeRead::known).unwrap();
        let steps = scene.advised(|adviser| adviser.advise_node(node, false, true));
        let is_first = steps[0]
            .what
            .contains("set the taint before the pods are reaped");
        let is_late = steps[0].what.contains(AFTER_A_POWER_CYCLE);
        format!("before the reap: {is_first}, removed after a power cycle: {is_late}")
    });
}
