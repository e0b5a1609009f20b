//! Tests of when the advice has a command, and of the text before the command.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

mod cautions;
mod data;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    facts::NodeRead,
    samples::{Scene, check_each},
    words::{joined, prefixed},
};

/// Lists the advice about the pods without its sentences: which part
/// comes first, and the steps.
fn check(cases: &Expect) {
    check_each(cases, |words| {
        let advice = Scene::of(words).advice().into_iter();
        let advice = advice.map(|advice| {
            let says = [("first", advice.first), ("risk", advice.risk)];
            let says = says.into_iter().filter(|(_, says)| says.is_some());
            let says = joined(says.map(|(what, _)| what), ", ");
            let mut lines = says.into_iter().chain(told(&advice.steps));
            lines.join("\n")
        });
        advice.collect_vec().join("\n")
    });
}

/// Lists the advice about the last node, which is not expected to come back.
fn check_node(cases: &Expect) {
    check_each(cases, |words| {
        let scene = Scene::of(words);
        let node = scene.node.as_ref().and_then(NodeRead::known).unwrap();
        scene.advised(|adviser| told(&adviser.advise_node(node, false, true)).join("\n"))
    });
}

/// Lists the kind and the command of each step.
fn told(steps: &[Step]) -> Vec<String> {
    let told = steps.iter().map(|step| {
        let kind = match step.kind {
            StepKind::Decide => "decide",
            StepKind::PowerOff => "power off",
            StepKind::Keep => "keep",
            StepKind::Other => "see",
        };
        let harm = prefixed(", which ", step.harm);
        format!("{kind}{harm}{}", prefixed(": ", step.command.as_ref()))
    });
    told.collect()
}

#[test]
fn nothing_is_to_be_decided_while_a_node_lives_or_may() {
    check(&expect![[r#"
        it is dead: local; templated
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
        it says that it is not Ready: local; templated; ready False
            = risk
            = see: kubectl describe node ds06
        it renews its lease: local; templated; lease 0s
            = risk
            = see: kubectl describe node ds06
        it is reported from: local; templated; virt-handler 0s
            = risk
            = see: kubectl describe node ds06
        it has an unread lease: local; templated; lease unread
    "#]]);
    check_node(&expect![[r#"
        it is dead: attached csi-1
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
        it says that it is not Ready: attached csi-1; ready False
        it renews its lease: attached csi-1; lease 0s
        it is reported from: attached csi-1; virt-handler 0s
        it has an unread lease: attached csi-1; lease unread
        it is out of service: attached csi-1; out-of-service
            = see
        a pod there is opted out: attached csi-1; skip true
        its namespace is: attached csi-1; namespace skip true
        the node is: attached csi-1; node-skip true
        a person decides about a pod: attached csi-1; --manual-owner-kind StatefulSet
        a PVC was deleted before the failure: attached csi-1; claim; deleted
        a PVC was deleted a moment ago: attached csi-1; claim; deleted 3m
        a PVC was given up: attached csi-1; claim; deleted 30m
            = see, which Force-deletes: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && kubectl taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
        a PVC is the pod's own, and wanted: attached csi-1; claim; wanted so
        dead, and nothing is attached:
        out of service, and nothing is attached: out-of-service
        it is dead, and a limit holds it: attached csi-1; nodes 3/3
        it was cut off, in another cluster: attached csi-1; ready absent; --context prod
            = see, which Force-deletes: kubectl --context prod get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1 && kubectl --context prod taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
    "#]]);
}

/// Each rule that applies gets its step. The step about the power comes first, and a command that
/// destroys data after it.
#[test]
fn every_rule_that_holds_has_its_step() {
    check(&expect![[r#"
        a local volume: local; templated
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
        and a shared disk: local; templated; claim; called shared; shared
            = first, risk
            = decide
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
            = decide
        of a fenced node: local; templated; claim; called shared; shared; fenced
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
        a shared disk: claim; shared
            = risk
            = decide
        a virtual machine: owner VirtualMachineInstance kubevirt.io/v1
            = risk
            = decide
        a lost claim: lost
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = decide
            = decide
        a lost claim of a fenced node: lost; fenced
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = decide
        a claim that somebody deleted, and of which it is not known who else reaches it: claim; on disk In ssd; reached-by unread; wanted its set wants it; deleted
            = first, risk
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see: kubectl get pvc data -n shop -o wide
            = decide
            = decide
        an unread claim: unread
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = decide
            = decide
        a claim that somebody deleted: claim; deleted; wanted so
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = decide
        a claim that somebody deleted, whose volume is kept: claim; retain; deleted; wanted so
        a claim that is being deleted on the dead node: local; templated; deleted; wanted so
            = first
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see
            = decide
        a volume that is kept: local; retain; templated
            = first
            = see
            = decide, which Starts empty: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
        a volume without a policy: local; no-policy; templated
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
        two claims: local; templated; local; called logs; templated
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/logs -f -
        a confined volume: claim; on rack In r1; reached-by ds06
            = first
            = see: kubectl describe pv pv-1
            = see
            = see
            = decide
        a confined volume, and a local one: claim; on rack In r1; reached-by ds06; local; called logs; templated
            = first
            = see: kubectl describe pv pv-1
            = see
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/logs -f -
            = decide
        a confined volume, and a claim that goes: claim; on rack In r1; reached-by ds06; claim; unwanted
        a kind of owner: --manual-owner-kind StatefulSet
            = first, risk
            = decide
        a kind of owner, and a local volume: --manual-owner-kind StatefulSet; local; templated
            = first, risk
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
            = decide
        a kind of owner, and a claim that goes: --manual-owner-kind StatefulSet; claim; unwanted
            = first, risk
            = decide
        a kind of owner without a controller: --manual-owner-kind StatefulSet; owner StatefulSet
            = first, risk
            = decide
        two pods: named db-0; local; templated; and db-1; local; called logs; templated
            = first
            = see
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
            = decide, which Destroys data: kubectl get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/logs -f -
        in another cluster: local; templated; --context prod
            = first
            = see
            = decide, which Destroys data: kubectl --context prod get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1/Unknown/2026-03-01T11:00:00Z && echo '{"preconditions":{"uid":"c-1"}}' | kubectl --context prod delete --raw /api/v1/namespaces/shop/persistentvolumeclaims/data -f -
    "#]]);
}

/// The report prints no command that deletes a PVC that nothing makes again.
#[test]
fn a_claim_that_no_template_makes_is_not_deleted_by_a_command() {
    check(&expect![[r#"
        no StatefulSet: local
            = first
            = see
            = decide
        a name that no API server gives: local; called $(reboot); templated
            = first
            = see
        without a controller: local; owner none
            = risk
            = decide
        owned by the pod: claim; wanted its StatefulSet wants the pod again
            = decide
    "#]]);
}

/// Lists the pods that share advice.
fn check_alike(cases: &Expect) {
    check_each(cases, |words| {
        Scene::of(words).advised(|adviser| {
            let pods = &adviser.plan.pods;
            let groups = adviser.alike(pods).into_iter();
            let groups = groups.map(|group| group.iter().map(|at| &*pods[*at].pod.name).join(" "));
            groups.collect_vec().join("\n")
        })
    });
}

#[test]
fn only_pods_that_need_the_same_share_advice() {
    check_alike(&expect![[r#"
        numbered siblings with equal templates: named 000; of impala-000; templates a; local; templated; and 001; of impala-001; templates a; local; templated
            = 000 001
        a number of another length: named 000; of impala-000; templates a; local; templated; and 01; of impala-01; templates a; local; templated
            = 01
            = 000
        other templates: named 000; of impala-000; templates a; local; templated; and 002; of impala-002; templates b; local; templated
            = 000
            = 002
        templates that were not read: named 003; of impala-003; local; templated; and 004; of impala-004; local; templated
            = 003
            = 004
        unrelated workloads: named cache-0; of cache; templates a; local; templated; and db-0; of db; templates a; local; templated
            = cache-0
            = db-0
        another namespace: named a/db-0; local; templated; and b/db-1; local; templated
            = db-0
            = db-1
        another node: named db-0; local; templated; and-node ds07; and db-1; local; templated
            = db-0
            = db-1
        each finalizer by itself: named a; held-by a.example/x; and b; held-by a.example/x; and c; held-by b.example/y
            = a b
            = c
        one that may take a claim along: named a; lost; and b; lost; and c; unread
            = a b c
        of a claim that is being deleted, the claim is asked: named a; local; templated; wanted so; deleted; and b; local; templated; wanted so; deleted; and c; local; templated; wanted so
            = a b c
        a pod that needs nobody: named a; and b; held-by a.example/x
            = b
    "#]]);
}

/// The advice about finalizers needs no node.
#[test]
fn what_has_to_be_repaired_has_commands_to_look_at_it() {
    check(&expect![[r#"
        held by a finalizer: held-by example.org/backup
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        held by a finalizer, the node is gone: node gone; held-by example.org/backup
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        forced already: held-by example.org/backup; grace 0
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        alive by another Lease: other-lease 10s by Lease shop/leader, held by db-0; named-by shop/leader
            = risk
            = see: kubectl get lease leader -n shop -o yaml
            = see: kubectl describe node ds06
        a leaf node: leaf Kosmos
            = risk
            = see: kubectl describe node ds06
            = see: kubectl logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50
        a leaf node of a named cluster, from another one: leaf of edge-1; --context prod
            = risk
            = see: kubectl --context prod describe node ds06
            = see: kubectl --context prod logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50
            = see: kubectl --kubeconfig edge-1.kubeconfig get pod db-0 -n shop -o wide
        a virtual node: leaf Liqo
            = risk
            = see: kubectl describe node ds06
        it needs nobody:
    "#]]);
}

/// While a limit holds, no command changes anything.
#[test]
fn while_a_limit_holds_nothing_is_to_be_decided() {
    check(&expect![[r#"
        too many are NotReady: local; templated; nodes 3/5
            = see
        nothing could start elsewhere: local; templated; nodes 3/3
            = see
        the clock is wrong: local; templated; clock
            = see
        not counted: local; templated; uncounted
            = see
    "#]]);
    check_each(
        &expect![[r#"
            one node: nodes 1/1
            several: nodes 3/5
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
        "#]],
        |words| {
            Scene::of(words).advised(|adviser| told(adviser.while_held().as_slice()).join("\n"))
        },
    );
}
