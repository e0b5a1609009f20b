//! Tests of when the advice has a command, and of the text before the command.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

mod cautions;
mod data;
mod edge;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    facts::NodeRead,
    samples::{Scene, check_each},
    words::joined,
};

/// Lists the advice about the pods without its sentences: which part
/// comes first, what would be lost, and the steps.
fn check(cases: &Expect) {
    check_each(cases, |words| {
        let advice = Scene::of(words).advice().into_iter();
        let advice = advice.map(|advice| {
            let says = [("first", advice.first), ("risk", advice.risk)];
            let says = says.into_iter().filter(|(_, says)| says.is_some());
            let says = joined(says.map(|(what, _)| what), ", ");
            let copies = prefixed(", copies ", advice.ready_elsewhere);
            let losses = advice.losses.iter().map(|loss| {
                let policy = loss.reclaim_policy.as_deref().unwrap_or("-");
                format!("loses {} {} {policy}{copies}", loss.claim, loss.volume)
            });
            let mut lines = says.into_iter().chain(losses).chain(told(&advice.steps));
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
            StepKind::Answer => "answer",
            StepKind::PowerOff => "power off",
            StepKind::Keep => "keep",
            StepKind::NoAnswer => "no answer",
            StepKind::Other => "see",
        };
        let harm = prefixed(", which ", step.harm);
        format!("{kind}{harm}{}", prefixed(": ", step.command.as_ref()))
    });
    told.collect()
}

#[test]
fn no_answer_is_asked_for_while_a_node_lives_or_may() {
    check(&expect![[r#"
        it is dead: local; renewed
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        it says that it is not Ready: local; renewed; ready False
            = risk
            = see: kubectl describe node ds06
        it renews its lease: local; renewed; lease 0s
            = risk
            = see: kubectl describe node ds06
        it is reported from: local; renewed; virt-handler 0s
            = risk
            = see: kubectl describe node ds06
        it has an unread lease: local; renewed; lease unread
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
        dead, and nothing is attached:
        out of service, and nothing is attached: out-of-service
        it is dead, and a limit holds it: attached csi-1; nodes 3/3
        it was cut off, in another cluster: attached csi-1; ready absent; --context prod
            = see, which Force-deletes: kubectl --context prod get node ds06 -o 'jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}' | grep -qxF -- n-1 && kubectl --context prod taint nodes ds06 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
    "#]]);
}

/// Each rule that applies gets its answer. The answer about the power comes first, and the one that
/// destroys data last.
#[test]
fn every_rule_that_holds_has_its_answer() {
    check(&expect![[r#"
        a local volume: local; renewed
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        and a shared disk: local; renewed; claim; called shared; shared
            = first, risk
            = loses data pv-1 Delete
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        of a fenced node: local; renewed; claim; called shared; shared; fenced
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a shared disk: claim; shared
            = risk
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        a virtual machine: owner VirtualMachineInstance kubevirt.io/v1
            = risk
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        a lost claim: lost
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        a lost claim of a fenced node: lost; fenced
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        a claim that somebody deleted, and of which it is not known who else reaches it: claim; on disk In ssd; reached-by unread; wanted its set wants it; deleted
            = risk
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = see: kubectl get pvc data -n shop -o wide
            = no answer
        an unread claim: unread
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = no answer
        a claim that somebody deleted: claim; deleted; wanted so
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a claim that somebody deleted, whose volume is kept: claim; retain; deleted; wanted so
            = first
            = loses data pv-1 Retain
            = keep
            = answer, which Starts empty: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a claim that is being deleted on the dead node: local; renewed; deleted; wanted so
            = first
            = loses data pv-1 Delete
            = keep: kubectl patch pv pv-1 -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a volume that is kept: local; retain; renewed
            = first
            = loses data pv-1 Retain
            = answer, which Starts empty: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a volume without a policy: local; no-policy; renewed
            = first
            = loses data pv-1 -
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        two claims: local; renewed; local; called logs; renewed
            = first
            = loses data pv-1 Delete
            = loses logs pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data logs -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        an operator's claim: local; by-operator
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        the last copy: local; renewed; copies 0
            = first
            = loses data pv-1 Delete, copies 0
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        one of three copies: local; renewed; copies 2
            = first
            = loses data pv-1 Delete, copies 2
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        of copies that were not read: local; renewed; copies unread
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a confined volume: claim; on rack In r1; reached-by ds06
            = see: kubectl describe pv pv-1
            = see
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        a confined volume, and a local one: claim; on rack In r1; reached-by ds06; local; called logs; renewed
            = first
            = loses logs pv-1 Delete
            = see: kubectl describe pv pv-1
            = see
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            = answer, which Destroys data: kubectl annotate pvc logs -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a confined volume, and a claim that goes: claim; on rack In r1; reached-by ds06; claim; unwanted
            = no answer
        a kind of owner: --manual-owner-kind StatefulSet
            = first, risk
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        a kind of owner, and a local volume: --manual-owner-kind StatefulSet; local; renewed
            = first, risk
            = loses data pv-1 Delete
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        a kind of owner, and a claim that goes: --manual-owner-kind StatefulSet; claim; unwanted
            = no answer
        a kind of owner without a controller: --manual-owner-kind StatefulSet; owner StatefulSet
            = first, risk
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        two pods: named db-0; local; renewed; and db-1; local; called logs; renewed
            = first
            = loses data pv-1 Delete
            = loses logs pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
            = answer, which Destroys data: kubectl annotate pvc logs -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
        in another cluster: local; renewed; --context prod
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite --context prod
    "#]]);
}

/// The report asks for no answer that would be ignored, or that would destroy something that
/// nothing recreates. If only a failed read leaves that open, the advice says so and still asks,
/// because the run checks again.
#[test]
fn what_stands_against_an_answer_is_said_instead() {
    check(&expect![[r#"
        no StatefulSet: local; not-renewed no StatefulSet made it
            = no answer
        another user: local; renewal-unread it is forbidden; used-by pod other-0
            = no answer
        held: local; renewed; held-or-skipped
            = no answer
        a name that no API server gives: local; renewed; named $(reboot)
            = no answer
        made at an unknown time: local; renewed; claim-made unknown
            = no answer
        asked for at an unknown time: local; renewed; grace unknown
            = no answer
        owned by the pod: claim; wanted its StatefulSet wants the pod again
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = no answer
        unread: local; renewal-unread it is forbidden
            = first
            = loses data pv-1 Delete
            = answer, which Destroys data: kubectl annotate pvc data -n shop pod-reaper.io/give-up=2026-03-01T12:00:00Z --overwrite
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
        numbered siblings with equal templates: named 000; of impala-000; templates a; local; renewed; and 001; of impala-001; templates a; local; renewed
            = 000 001
        a number of another length: named 000; of impala-000; templates a; local; renewed; and 01; of impala-01; templates a; local; renewed
            = 01
            = 000
        other templates: named 000; of impala-000; templates a; local; renewed; and 002; of impala-002; templates b; local; renewed
            = 000
            = 002
        templates that were not read: named 003; of impala-003; local; renewed; and 004; of impala-004; local; renewed
            = 003
            = 004
        unrelated workloads: named cache-0; of cache; templates a; local; renewed; and db-0; of db; templates a; local; renewed
            = cache-0
            = db-0
        another namespace: named a/db-0; local; renewed; and b/db-1; local; renewed
            = db-0
            = db-1
        another node: named db-0; local; renewed; and-node ds07; and db-1; local; renewed
            = db-0
            = db-1
        each finalizer by itself: named a; held-by a.example/x; and b; held-by a.example/x; and c; held-by b.example/y
            = a b
            = c
        one that may take a claim along: named a; lost; and b; lost; and c; unread
            = a b
            = c
        of a claim that is being deleted, the claim is asked: named a; local; renewed; wanted so; deleted; and b; local; renewed; wanted so; deleted; and c; local; renewed; wanted so
            = a b
            = c
        a pod that needs nobody: named a; and b; held-by a.example/x
            = b
    "#]]);
}

/// An answer on the node is checked only against facts about the node: it also applies to a pod
/// that was evicted later.
#[test]
fn the_power_is_asked_for_once_a_node() {
    check(&expect![[r#"
        not answered: lost; overdue 15m
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
        answered before the eviction: lost; overdue 15m; powered-off 30m
            = risk
            = see: kubectl get pvc data -n shop -o wide
            = answer: kubectl annotate pod db-0 -n shop pod-reaper.io/reap=2026-03-01T12:00:00Z --overwrite
    "#]]);
}

#[test]
fn an_answer_is_withdrawn_where_it_was_given() {
    check_each(
        &expect![[r#"
            on the node, the pod and a claim: --context prod; local; give-up never; reap never; powered-off never
                = kubectl annotate node ds06 pod-reaper.io/powered-off- --context prod
                = kubectl annotate pod db-0 -n shop pod-reaper.io/reap- --context prod
                = kubectl annotate pvc data -n shop pod-reaper.io/give-up- --context prod
        "#]],
        |words| {
            let scene = Scene::of(words);
            scene.advised(|adviser| {
                let answers = scene.case().answers();
                let commands = answers.iter();
                let commands = commands.map(|answer| adviser.kubectl.withdraw(answer, "shop"));
                commands.collect_vec().join("\n")
            })
        },
    );
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

/// While a limit holds the run, the report asks for no answer about pods. It asks about the nodes
/// once.
#[test]
fn while_a_limit_holds_only_the_power_is_asked_for() {
    check(&expect![[r#"
        too many are NotReady: local; renewed; nodes 3/5
            = no answer
        nothing could start elsewhere: local; renewed; nodes 3/3
            = no answer
        the clock is wrong: local; renewed; clock
            = no answer
        not counted: local; renewed; uncounted
            = no answer
    "#]]);
    check_each(
        &expect![[r#"
            nothing holds:
            one node: nodes 3/5
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
                = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            two in no zone: nodes 3/5; and-node ds07
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
                = answer: kubectl annotate node ds06 ds07 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            part of a zone: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6; zone eu/a
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
                = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            a whole zone: nodes 3/9; nodes-of a 3/3; nodes-of b 0/6; zone a; and-node ds07; zone a; and-node ds08; zone a
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
                = answer: kubectl annotate node -l '!topology.kubernetes.io/region,topology.kubernetes.io/zone=a' pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            it lives: nodes 3/5; ready False
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
            it failed just now: nodes 3/5; since -1m
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
            a leaf: nodes 3/5; leaf Kosmos
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
            a name that no API server gives: nodes 3/5; and-node $(reboot)
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
                = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
            nothing could start elsewhere: nodes 3/3
                = see: kubectl get nodes -o wide -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type
        "#]],
        |words| Scene::of(words).advised(|adviser| told(&adviser.while_held()).join("\n")),
    );
}

#[test]
fn a_run_is_started_by_the_cronjob_of_the_installation() {
    check_each(
        &expect![[r#"
            not known: --context prod
                = see: kubectl create job -n pod-reaper --from=cronjob/pod-reaper answers-20260301-120000 --context prod
            known: installed ops/reaper
                = see: kubectl create job -n ops --from=cronjob/reaper answers-20260301-120000
        "#]],
        |words| Scene::of(words).advised(|adviser| told(&[adviser.run_now()]).join("\n")),
    );
}
