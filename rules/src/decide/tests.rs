//! Tests of the rules: first each rule by itself at its boundaries, then their order.
//!
//! A case is one line: its name, and how it differs from a pod to which only the last rule applies,
//! in the words of [`Scene::of`]. The lines below it are the result.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

mod data;
mod overdue;
mod page;
mod says;

use expect_test::{Expect, expect};

use itertools::Itertools as _;

use super::*;
use crate::{
    facts::{Heard, NodeRead},
    samples::{Scene, check_each, now, span},
    words::{human_duration, joined, prefixed},
};

/// Judges each case once for each entry of `further`; `more` and the entry are added to the words of
/// the case.
fn check_with(more: &str, further: &[&str], cases: &Expect) {
    let each = |words: &str| {
        let mut under = further
            .iter()
            .map(|further| told(&Scene::of(&format!("{more}; {words}; {further}"))));
        under.join(" | ")
    };
    check_each(cases, each);
}

fn check(cases: &Expect) {
    check_with("", &[""], cases);
}

/// Lists the results for the scene without its sentences.
fn told(scene: &Scene) -> String {
    let (case, reason) = (scene.case(), scene.judged());
    let mut told = reason.code.to_string();
    match reason.code {
        ReasonCode::NotOverdue | ReasonCode::NodeJustFailed => {
            let left = case.reaped_from().map(|from| from.duration_since(now()));
            told += &prefixed(", reaped in ", left.map(|left| format!("{left:#}")));
        }
        ReasonCode::KubeletAlive => {
            let node = scene.node.as_ref().and_then(NodeRead::known);
            for Heard { by, at, .. } in node.unwrap().signs_of_life(now()) {
                told += &format!(", {by} {:#}", now().duration_since(at));
            }
        }
        ReasonCode::FactsUnread => told += &format!(", {:?}", reason.stage),
        _ => {}
    }
    let ties = |kind| reason.ties.of_kind(kind).map(|tie| &tie.pvc);
    for (what, kind) in [
        (", pinned: ", TieKind::Pinned),
        (", confined: ", TieKind::Confined),
        (", unverified: ", TieKind::Unverified),
        (", going: ", TieKind::Going),
    ] {
        told += &prefixed(what, joined(ties(kind), " "));
    }
    told += &prefixed(", also ", joined(reason.asks.iter().skip(1), " "));
    let notes = Some(reason.notes.len()).filter(|notes| *notes > 0);
    told + &prefixed(", notes: ", notes)
}

#[test]
fn a_mirror_pod_is_left() {
    check(&expect![[r#"
        on a dead node: mirror
            = mirror-pod
        on a node that is gone: node gone; mirror
            = mirror-pod
        on a node that was not looked up: node not looked up; mirror
            = mirror-pod
    "#]]);
}

#[test]
fn a_pod_that_is_opted_out_is_left() {
    check(&expect![[r#"
        the pod: skip true
            = opted-out
        its namespace: namespace skip true
            = opted-out
        its node: node-skip true
            = opted-out
        its node, in another word: node-skip True
            = opted-out
        all three: skip true; namespace skip true; node-skip true
            = opted-out
        its namespace and its node: namespace skip true; node-skip true
            = opted-out
        the pod, the namespace unread: skip true; namespace unread
            = opted-out
        the pod, the node unread: skip true; node unread
            = opted-out
        its namespace, the node unread: namespace skip true; node unread
            = opted-out
    "#]]);
}

#[test]
fn a_pod_whose_node_is_gone_is_left() {
    check(&expect![[r#"
        the node does not exist: node gone
            = node-gone
        nor is the pod overdue: node gone; overdue 1m
            = node-gone
        nor can the namespace be read: node gone; namespace unread
            = node-gone
        the pod was never given one: never-placed
            = node-gone
        only the Job controller holds it: node gone; held-by batch.kubernetes.io/job-tracking
            = node-gone
        a local volume: node gone; local
            = node-gone
    "#]]);
}

#[test]
fn where_there_is_no_node_finalizers_are_for_a_person() {
    check_with(
        "held-by example.com/backup",
        &[""],
        &expect![[r#"
            the node is gone: node gone
                = finalizers
            the pod was never given one: never-placed
                = finalizers
            forced already: node gone; grace 0
                = finalizers
            within the threshold: node gone; overdue 1m
                = not-overdue
            the namespace is unread: node gone; namespace unread
                = finalizers
            with a local volume: node gone; local
                = finalizers
            the node is unread: node unread
                = facts-unread, Node
        "#]],
    );
}

#[test]
fn a_pod_on_a_ready_node_is_left() {
    check(&expect![[r#"
        just so: ready True
            = node-ready
        within grace: ready True; overdue -30s
            = node-ready
        a leaf: ready True; leaf of edge-1
            = node-ready
        its lease expired long ago: ready True; lease 1h
            = node-ready
        Ready False is not Ready: ready False; owner ReplicaSet apps/v1
            = kubelet-alive, kubelet 0s
        Ready Unknown is not Ready: ready Unknown
            = stuck-on-not-ready-node
        Ready absent is not Ready: ready absent
            = stuck-on-not-ready-node
    "#]]);
}

#[test]
fn a_pod_that_is_not_overdue_waits() {
    check(&expect![[r#"
        exactly at the threshold: overdue 10m
            = stuck-on-not-ready-node
        one second below: overdue 9m 59s
            = stuck-on-not-ready-node, notes: 1
        a millisecond below: overdue 9m 59s 999ms
            = stuck-on-not-ready-node, notes: 1
        one second above: overdue 10m 1s
            = stuck-on-not-ready-node
        exactly at the threshold, where the grace period counts: grace unknown; overdue 10m
            = stuck-on-not-ready-node
        a millisecond below, where it counts: grace unknown; overdue 9m 59s 999ms
            = not-overdue, reaped in 1ms
        at its deadline: overdue 0s
            = not-overdue, reaped in 9m 30s
        within grace, for longer than the threshold: overdue -1h
            = not-overdue, reaped in 1h 9m 30s
        the node is unread: node unread; overdue 1m
            = not-overdue
        the node was not looked up: node not looked up; overdue 1m
            = not-overdue
        threshold 0, at its deadline: --reap-older-than 0s; overdue 0s
            = stuck-on-not-ready-node
        threshold 0, a second before it: --reap-older-than 0s; overdue -1s
            = stuck-on-not-ready-node, notes: 1
    "#]]);
}

#[test]
fn the_grace_period_is_not_subtracted_again() {
    check(&expect![[r#"
        grace is 1h, past it for 10m: grace 3600; overdue 10m
            = stuck-on-not-ready-node
        no grace is known: grace unknown
            = stuck-on-not-ready-node
        grace is 0: grace 0; overdue 9m
            = not-overdue, reaped in 1m
    "#]]);
}

#[test]
fn a_pod_on_a_leaf_node_is_for_a_person() {
    check(&expect![[r#"
        marked by Kosmos: leaf Kosmos
            = kosmos-leaf
        marked by Kosmos, which names the cluster: leaf of edge-1
            = kosmos-leaf
        virtual: leaf Liqo
            = virtual-node
        at the edge: leaf KubeEdge
            = edge-node
        selected: leaf selected
            = leaf-node
        Ready False: leaf Kosmos; ready False
            = kosmos-leaf
        held by a finalizer: leaf Kosmos; held-by example.com/backup
            = kosmos-leaf
        with a local volume: leaf Kosmos; local
            = kosmos-leaf
    "#]]);
}

#[test]
fn what_was_not_read_waits() {
    check(&expect![[r#"
        the node: node unread
            = facts-unread, Node
        the node was not looked up: node not looked up
            = facts-unread, Node
        the namespace: namespace unread
            = facts-unread, Node
        the lease: lease unread
            = facts-unread, Node
        the lease, Ready absent: lease unread; ready absent
            = facts-unread, Node
        the lease, for any pod: lease unread; owner ReplicaSet apps/v1
            = facts-unread, Node
        the lease, where Ready says already that the kubelet lives: lease unread; ready False
            = kubelet-alive, kubelet 0s
    "#]]);
    // The cause may be somebody else's sentence, with a period at its end.
    assert_eq!(unread_facts("it failed."), unread_facts("it failed"));
}

#[test]
fn a_node_that_has_just_failed_is_given_time() {
    check(&expect![[r#"
        exactly long enough: since 10m
            = stuck-on-not-ready-node
        a second short: since 9m 59s
            = node-just-failed, reaped in 1s
        since the future: since -1h
            = node-just-failed
        tainted later: since 2h; tainted 9m
            = node-just-failed, reaped in 1m
        tainted earlier: since 9m; tainted 2h
            = node-just-failed, reaped in 1m
        since the future, tainted long ago: since -1h; tainted 2h
            = stuck-on-not-ready-node
        tainted, since no one knows when: since unknown; tainted 2h
            = stuck-on-not-ready-node
        tainted in the future: tainted -1m
            = node-just-failed, reaped in 11m
        since no one knows when: since unknown
            = node-just-failed
        Ready False as well: ready False; since 1m
            = node-just-failed, reaped in 9m
        though its kubelet lives: ready False; since 1m; lease 0s
            = node-just-failed, reaped in 9m
        asked for 0, just now: --reap-older-than 0s; since 0s
            = stuck-on-not-ready-node
        asked for 0, since no one knows when: --reap-older-than 0s; since unknown
            = node-just-failed
    "#]]);
}

/// A heartbeat keeps a pod if it came after the node became NotReady and is less than 11 minutes
/// old, whatever its source and `--reap-older-than`.
#[test]
fn what_was_heard_since_the_failure_keeps_a_pod() {
    check_with(
        "--reap-older-than 0s",
        &[""],
        &expect![[r#"
            detector: node-problem-detector 10m 59s
                = kubelet-alive, node-problem-detector 10m 59s
            detector, at its end: node-problem-detector 11m
                = stuck-on-not-ready-node
            EKS' agent: eks-node-monitoring-agent 10m 59s
                = kubelet-alive, eks-node-monitoring-agent 10m 59s
            EKS' agent, at its end: eks-node-monitoring-agent 11m
                = stuck-on-not-ready-node
            virt-handler: virt-handler 4m 59s
                = kubelet-alive, virt-handler 4m 59s
            virt-handler, at its end: virt-handler 5m
                = kubelet-alive, virt-handler 5m
            API server: kube-apiserver 59s
                = kubelet-alive, kube-apiserver 59s
            API server, at its end: kube-apiserver 1m
                = kubelet-alive, kube-apiserver 1m
            as it failed: since 2m; virt-handler 2m
                = stuck-on-not-ready-node
            a second after: since 2m; virt-handler 1m 59s
                = kubelet-alive, virt-handler 1m 59s
            before its taint: since 5m; tainted 2m; virt-handler 3m
                = stuck-on-not-ready-node
            ten minutes asked for: --reap-older-than 10m; virt-handler 9m 59s
                = kubelet-alive, virt-handler 9m 59s
            no longer: --reap-older-than 10m; virt-handler 10m
                = kubelet-alive, virt-handler 10m
            each is named: node-problem-detector 9m; virt-handler -10s
                = kubelet-alive, node-problem-detector 9m, virt-handler 0s
            Ready False, however old the lease: ready False
                = kubelet-alive, kubelet 0s
            Ready absent, and nothing heard: ready absent; lease never
                = stuck-on-not-ready-node
        "#]],
    );
}

#[test]
fn kubelet_alive_keeps_every_pod() {
    check_with(
        "ready False",
        &[""],
        &expect![[r#"
            StatefulSet:
                = kubelet-alive, kubelet 0s
            a kind nobody knows: owner Impala apps/v1
                = kubelet-alive, kubelet 0s
            ReplicaSet: owner ReplicaSet apps/v1
                = kubelet-alive, kubelet 0s
            another's ReplicaSet: owner ReplicaSet example.com/v1
                = kubelet-alive, kubelet 0s
            ReplicationController: owner ReplicationController v1
                = kubelet-alive, kubelet 0s
            Job: owner Job batch/v1
                = kubelet-alive, kubelet 0s
            Job, not let go of: owner Job batch/v1; held-by batch.kubernetes.io/job-tracking
                = kubelet-alive, kubelet 0s
            another's Job: owner Job batch.volcano.sh/v1alpha1
                = kubelet-alive, kubelet 0s
            DaemonSet: owner DaemonSet apps/v1
                = kubelet-alive, kubelet 0s
            nobody's: owner none
                = kubelet-alive, kubelet 0s
            ReplicaSet, with a claim: owner ReplicaSet apps/v1; absent
                = kubelet-alive, kubelet 0s
            ReplicaSet, with one that it owns: owner ReplicaSet apps/v1; absent; owned
                = kubelet-alive, kubelet 0s
            ReplicaSet, with a generic ephemeral one: owner ReplicaSet apps/v1; absent; owned; ephemeral
                = kubelet-alive, kubelet 0s
            ReplicaSet, with another volume: owner ReplicaSet apps/v1
                = kubelet-alive, kubelet 0s
        "#]],
    );
}

#[test]
fn a_pod_may_be_reaped_once_neither_threshold_keeps_it() {
    for (words, seconds) in [
        ("overdue 1m", 510),
        ("since 2m; overdue 1h", 480),
        ("--reap-older-than 1m; since 2m; overdue 1h", -60),
        (
            "--reap-older-than 1m; since 2m; overdue 1h; node-problem-detector 20m",
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
        a young failure, a stuck pod: --reap-older-than 1m; since 20m; overdue 1m
            = stuck-on-not-ready-node
        an old failure, a fresh pod: --reap-older-than 30m; since 1m; overdue 20m
            = not-overdue, reaped in 29m
    "#]]);
}

#[test]
fn finalizers_are_for_a_person() {
    check(&expect![[r#"
        one: held-by example.com/backup
            = finalizers
        two, in their order: held-by example.com/backup foregroundDeletion
            = finalizers
        one, forced already: held-by example.com/backup; grace 0
            = finalizers
        one, grace 1: held-by example.com/backup; grace 1
            = finalizers
        one, grace not set: held-by example.com/backup; grace unknown
            = finalizers
        job tracking only: held-by batch.kubernetes.io/job-tracking
            = stuck-on-not-ready-node
        job tracking only, forced already: held-by batch.kubernetes.io/job-tracking; grace 0
            = stuck-on-not-ready-node
        job tracking and another: held-by batch.kubernetes.io/job-tracking example.com/backup
            = finalizers
        another and job tracking, forced already: held-by example.com/backup batch.kubernetes.io/job-tracking; grace 0
            = finalizers
        none, forced already: grace 0
            = stuck-on-not-ready-node
        one, finished and deleted by hand: held-by example.com/backup; grace 0; finished
            = finalizers
    "#]]);
}

#[test]
fn a_pod_that_nothing_wants_again_has_no_note_of_a_replacement() {
    check(&expect![[r#"
        it is wanted: claim; on zone In a
            = stuck-on-not-ready-node, notes: 1
        its namespace is being deleted: claim; on zone In a; namespace deleted
            = stuck-on-not-ready-node
    "#]]);
}

/// A kind that the user typed in the plural must still keep its pods.
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
            = local-volume, pinned: data
        hostPath: host-path
            = local-volume, pinned: data
        local, whatever it says: local; on kubernetes.io/hostname In ds07
            = local-volume, confined: data
        Longhorn's: strict-local
            = local-volume, pinned: data
    "#]]);
}

#[test]
fn a_volume_whose_affinity_names_only_the_dead_node_is_for_a_person() {
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            by its hostname: on kubernetes.io/hostname In ds06.example
                = local-volume, pinned: data
            by its name: on metadata.name In ds06
                = local-volume, pinned: data
            TopoLVM: on topology.topolvm.io/node In ds06
                = local-volume, pinned: data
            OpenEBS: on openebs.io/nodename In ds06
                = local-volume, pinned: data
            by both: on openebs.io/nodename In ds06 ds06.example
                = local-volume, pinned: data
            and a zone: on zone In a b & metadata.name In ds06
                = local-volume, pinned: data
            each term by itself: on metadata.name In ds06 | kubernetes.io/hostname In ds06.example
                = local-volume, pinned: data
        "#]],
    );
}

/// The nodes that satisfy the affinity are: another node, both nodes, this one alone, none, and an
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
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
            to another node: on metadata.name In ds07
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
            to a namesake's beginning: on metadata.name In ds06-2
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
            to any but this node: on metadata.name NotIn ds06
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
            to a label's presence: on ds06 Exists
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
            to a label's absence: on ds06 DoesNotExist
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
            to a number: on disks Gt 2
                = stuck-on-not-ready-node, notes: 1 | stuck-on-not-ready-node, notes: 1 | local-volume, confined: data | local-volume, confined: data | facts-unread, Storage
        "#]],
    );
    // These volumes need no query: the nodes do not matter.
    check_with(
        "claim",
        &[""],
        &expect![[r#"
            to a zone: on topology.kubernetes.io/zone In a
                = stuck-on-not-ready-node, notes: 1
            to a region: on topology.ebs.csi.aws.com/region In ds06
                = stuck-on-not-ready-node, notes: 1
            to a zone of this node's name: on rack-zone In ds06
                = stuck-on-not-ready-node, notes: 1
            to this node or a zone: on metadata.name In ds06 | topology.kubernetes.io/zone In a
                = stuck-on-not-ready-node, notes: 1
            without affinity:
                = stuck-on-not-ready-node
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
                = local-volume, confined: data
            no node at all: on rack In r1 & topology.kubernetes.io/zone In a; reached-by
                = local-volume, confined: data
            another one too: on rack In r1 & topology.kubernetes.io/zone In a; reached-by ds06 ds07
                = stuck-on-not-ready-node, notes: 1
            another one, by its second term: on rack In r1 | rack In r2; reached-by ds06 | ds07
                = stuck-on-not-ready-node, notes: 1
            a node at any place: on
                = local-volume, confined: data
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
                = volume-unverified, unverified: data
            by no known operator: on disks Near x
                = volume-unverified, unverified: data
            by an empty value: on disks In ''
                = local-volume, confined: data
            by no value: on disks In
                = volume-unverified, unverified: data
            by what is no value: on disks In a),b
                = volume-unverified, unverified: data
            the answer is unread: on rack In r1; reached-by unread
                = volume-unverified, unverified: data
            another term has a node: on field | rack In r1; reached-by ? | ds07
                = stuck-on-not-ready-node, notes: 1
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
                = local-volume, confined: data
            another hostname: hostname ds06
                = local-volume, confined: data
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
                = local-volume, confined: data
            an empty term beside a pinned one: on | metadata.name In ds06
                = local-volume, pinned: data
            an empty term beside a free one: on | zone In a
                = stuck-on-not-ready-node, notes: 1
        "#]],
    );
}

#[test]
fn a_claim_of_the_pods_own_binds_nothing() {
    check(&expect![[r#"
        made by its volume: owner ReplicaSet apps/v1; local; ephemeral; owned
            = stuck-on-not-ready-node, notes: 1
        of a former pod, or of nobody: owner ReplicaSet apps/v1; local; ephemeral
            = local-volume, pinned: data
        owned, and nothing wants it again: claim; owned
            = stuck-on-not-ready-node, notes: 1
        owned and on the disk of the node: local; owned
            = stuck-on-not-ready-node, notes: 1
        owned, and wanted again: claim; wanted its StatefulSet wants the pod again
            = volume-unverified, going: data
    "#]]);
}

#[test]
fn a_claim_that_could_not_be_verified_is_for_a_person() {
    check(&expect![[r#"
        unread: unread
            = volume-unverified, unverified: data
        lost: lost Lost
            = volume-unverified, unverified: data
        its volume is missing: lost Bound
            = volume-unverified, unverified: data
        unbound: unbound Pending
            = volume-unverified, unverified: data
        unbound, without a phase: unbound
            = volume-unverified, unverified: data
        absent, it pins nothing: absent
            = stuck-on-not-ready-node
    "#]]);
}

#[test]
fn every_claim_is_checked() {
    check(&expect![[r#"
        the last is pinned: absent; called gone; claim; called free; on zone In a; local
            = local-volume, pinned: data
        the first is pinned: local; claim; called free; on zone In a
            = local-volume, pinned: data
        two are pinned: local; host-path; called logs
            = local-volume, pinned: data logs
        the last is unbound: claim; called free; on zone In a; unbound Pending
            = volume-unverified, unverified: data
        two are unverified: unread; unbound Pending; called logs
            = volume-unverified, unverified: data logs
        none binds it: absent; called gone; claim; called free; on zone In a
            = stuck-on-not-ready-node, notes: 1
    "#]]);
}

#[test]
fn a_disk_that_two_machines_could_write_is_for_a_person() {
    check(&expect![[r#"
        a shared block device: claim; shared
            = shared-disk
        of one of many: claim; shared; owner ReplicaSet apps/v1
            = shared-disk
        an ordinary claim: claim
            = stuck-on-not-ready-node
        a virtual machine: owner VirtualMachineInstance apps/v1
            = shared-disk
        what hands it a disk: virt-launcher virt-launcher-db
            = shared-disk
        another pod's pod: virt-launcher launcher
            = stuck-on-not-ready-node
        a shared block device, fenced: claim; shared; fenced
            = stuck-on-not-ready-node
        a virtual machine, fenced: owner VirtualMachineInstance apps/v1; fenced
            = stuck-on-not-ready-node
        fenced, yet it lives: owner VirtualMachineInstance apps/v1; fenced; virt-handler 1m
            = kubelet-alive, virt-handler 1m
        on its disk as well: local; shared
            = local-volume, pinned: data, also shared-disk
        a disk on a storage network: claim; iscsi
            = shared-disk
        in the pod itself: own-disk its volume data is iSCSI
            = shared-disk
        that, of one of many: own-disk its volume data is iSCSI; owner ReplicaSet apps/v1
            = shared-disk
        that, fenced: own-disk its volume data is iSCSI; fenced
            = stuck-on-not-ready-node
    "#]]);
    // The mark was left behind: the machine had a heartbeat after the mark was set.
    check_with(
        "owner VirtualMachineInstance apps/v1; since 1h; lease 59m",
        &[""],
        &expect![[r#"
            heard after the mark was set: fenced 59m 1s
                = shared-disk
            heard as it was set: fenced 59m
                = stuck-on-not-ready-node
            one mark of two was left behind: fenced 2h; fenced
                = stuck-on-not-ready-node
        "#]],
    );
    // An unread lease leaves open whether the machine is alive, so the machine is not known to be
    // off.
    let scene = Scene::of("fenced; lease unread");
    let node = scene.node.as_ref().and_then(NodeRead::known).unwrap();
    assert_eq!(node.fenced(now()), None);
}

#[test]
fn owner_kinds_are_for_a_person_in_any_spelling() {
    check(&expect![[r#"
        named: --manual-owner-kind StatefulSet
            = owner-kind
        in small letters: --manual-owner-kind statefulset
            = owner-kind
        in capitals: --manual-owner-kind STATEFULSET
            = owner-kind
        second of two: --manual-owner-kind Job,StatefulSet
            = owner-kind
        another: --manual-owner-kind StatefulSet; owner ReplicaSet apps/v1
            = stuck-on-not-ready-node
        only the beginning of it: --manual-owner-kind Set
            = stuck-on-not-ready-node
        no owner: --manual-owner-kind StatefulSet; owner none
            = stuck-on-not-ready-node, notes: 1
        none named: --reap-older-than 10m
            = stuck-on-not-ready-node
        in the plural: --manual-owner-kind statefulsets
            = owner-kind
        the workload above: --manual-owner-kind deployments; owner ReplicaSet apps/v1; workload Deployment
            = owner-kind
        no workload above: --manual-owner-kind deployments; owner ReplicaSet apps/v1
            = stuck-on-not-ready-node
        the owner first: --manual-owner-kind ReplicaSet,Deployment; owner ReplicaSet apps/v1; workload Deployment
            = owner-kind
    "#]]);
}

#[test]
fn the_rest_is_reaped() {
    check(&expect![[r#"
        a pod like any other:
            = stuck-on-not-ready-node
        without an owner: owner none
            = stuck-on-not-ready-node, notes: 1
        finished already: finished
            = stuck-on-not-ready-node
        on a node of the control plane: control-plane
            = stuck-on-not-ready-node
    "#]]);
}

/// The reasons in the order of the rules, each with words to which its rule applies. The last rule
/// always applies.
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
    finalizers: held-by example.com/backup
    volume-unverified: claim; deleted
    local-volume: local
    local-volume: claim; on rack In r1; reached-by ds06
    not-overdue: claim; deleted 3m
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
            // `node-gone` does not apply if finalizers remain, so the rules about finalizers decide
            // there.
            let exclusive = *first == "node-gone" && also_holds.starts_with("held-by");
            assert!(
                exclusive || code(also_holds).as_str() == *first,
                "{first} before {second}"
            );
        }
    }
}

/// The branches of `facts-unread` that `TRIGGERS` leaves out, and the branch of `opted-out` that
/// reads the node.
#[test]
fn the_order_holds_for_every_form_of_a_rule() {
    check(&expect![[r#"
        opted-out node before Ready node: node-skip true; ready True
            = opted-out
        gone before not overdue: node gone; overdue 1m
            = node-gone
        not overdue before unread node: node unread; overdue 1m
            = not-overdue
        leaf before unread lease: leaf selected; lease unread
            = leaf-node
        unread lease before just failed: since 1m; lease unread
            = facts-unread, Node
        unread node before finalizers: node unread; held-by example.com/backup
            = facts-unread, Node
        just failed before a local volume: since 1m; local
            = node-just-failed, reaped in 9m
        pinned before unverified, whatever comes first: unbound Pending; local
            = local-volume, pinned: data, unverified: data, also volume-unverified
    "#]]);
}

/// Each rule returns the queries that it lacks once no earlier rule decides. Nothing else is read.
#[test]
fn the_rules_say_what_they_lack() {
    check_each(
        &expect![[r#"
            all is known: local
            a claim: unasked
                = PVC shop/data
            no claim:
            not overdue: unasked; overdue 1m
            held by a finalizer: unasked; held-by example.com/backup
            held by the Job controller: unasked; held-by batch.kubernetes.io/job-tracking
                = PVC shop/data
            on a leaf node: unasked; leaf Kosmos
            on an unread node: unasked; node unread
            before the last rule: unasked; --manual-owner-kind StatefulSet
                = PVC shop/data
            leases before claims: unasked; leases ?
                = Leases
            leases that cannot matter: leases ?; grace 0; overdue 1m
            leases that may cut its grace: leases ?; grace 600; overdue -5m
                = Leases
            leases of a node that lives: leases ?; ready False
                = Leases
            leases of a leaf node: leases ?; leaf Kosmos
            leases, before a Ready node: leases ?; ready True
            other nodes: claim; on disk In ssd; reached-by ?
                = nodes that a volume allows (disk in (ssd))
            other nodes, of two terms: claim; on disk In ssd | rack In r1; reached-by ?
                = nodes that a volume allows (disk in (ssd))
                = nodes that a volume allows (rack in (r1))
            other nodes, of one that is reached: claim; on disk In ssd | rack In r1; reached-by ds07 | ?
            drivers: claim; driver ?
                = CSIDrivers
            drivers, beside a pinned claim: local; driver ?
                = CSIDrivers
            drivers, although another claim is shared: claim; shared; claim; driver ?
            a set, of a pinned claim: local; set-not-asked
                = StatefulSet shop/db
            a set, of a deleted claim: claim; deleted; set-not-asked
            a set, of a claim elsewhere: claim; set-not-asked
            a set, of a claim that goes: claim; owned; ephemeral; wanted so; set-not-asked
        "#]],
        |words| {
            let queries = Scene::of(words).case().queries();
            queries.iter().join("\n")
        },
    );
}

/// If PVCs were not read, the pod passes no rule about PVCs, and no such rule applies.
#[test]
fn a_pod_about_whose_claims_nothing_was_asked_is_not_reaped() {
    let scene = Scene::of("unasked");
    let unasked = scene.case().evaluate();
    let unasked = unasked.iter().filter(|rule| rule.holds.is_none());
    let asked = unasked.map(|rule| rule.asks).collect::<Vec<_>>();
    let storage = rules::RULES
        .iter()
        .filter(|rule| rule.stage == Stage::Storage);
    let of_claims = storage.filter(|rule| rule.gives != [ReasonCode::OwnerKind]);
    assert_eq!(asked, of_claims.map(|rule| rule.asks).collect::<Vec<_>>());
    check(&expect![[r#"
        nothing was asked: unasked
            = facts-unread, Storage
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
        finalizers manual
        local-volume manual
        host-path manual
        volume-unverified manual
        shared-disk manual
        owner-kind manual
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
        // Durations are truncated, not rounded.
        ("59s 999ms", "59s"),
        ("65m", "1h 5m"),
        ("-2m", "minus 2m"),
    ] {
        assert_eq!(human_duration(span(duration)), text);
    }
}

/// A run does not wait for a grace period that began after the node's machine fell silent.
#[test]
fn grace_is_cut_short_on_a_silent_machine() {
    check(&expect![[r#"
        a week of grace, asked for 50m ago: grace 604800; overdue -167h 10m
            = stuck-on-not-ready-node, notes: 1
        asked for just long enough ago: grace 604800; overdue -167h 50m
            = stuck-on-not-ready-node, notes: 1
        asked for a second less ago: grace 604800; overdue -167h 50m 1s
            = not-overdue, reaped in 1s
        heard a minute before: grace 604800; overdue -167h 10m; lease 51m
            = stuck-on-not-ready-node, notes: 1
        heard more than a minute before: grace 604800; overdue -167h 10m; lease 51m 1s
            = stuck-on-not-ready-node, notes: 1
        something on it was heard a minute before: grace 604800; overdue -167h 10m; virt-handler 51m
            = stuck-on-not-ready-node, notes: 1
        another Lease says nothing here: grace 604800; overdue -167h 10m; other-lease 51m by Lease a/b, held by c
            = stuck-on-not-ready-node, notes: 1
        its lease was never renewed: grace 604800; overdue -167h 10m; lease never
            = not-overdue, reaped in 167h 20m
        its lease was never renewed, and something on it was heard: grace 604800; overdue -167h 10m; lease never; virt-handler 3h
            = not-overdue, reaped in 167h 20m
        its lease is unread: grace 604800; overdue -167h 10m; lease unread
            = not-overdue, reaped in 167h 20m
        the kubelet still reports: grace 604800; overdue -167h 10m; ready False
            = not-overdue, reaped in 167h 20m
        without a grace period: grace none; overdue -167h 10m
            = not-overdue, reaped in 167h 20m
    "#]]);
}

#[test]
fn node_just_failed_waits_for_no_detector() {
    check(&expect![[r#"
        just below 6m: --reap-older-than 0s; since 5m 59s; node-problem-detector 20m
            = stuck-on-not-ready-node
        6m: --reap-older-than 0s; since 6m; node-problem-detector 20m
            = stuck-on-not-ready-node
        the other one: --reap-older-than 0s; since 5m 59s; eks-node-monitoring-agent 20m
            = stuck-on-not-ready-node
        nobody watches it: --reap-older-than 0s; since 1s
            = stuck-on-not-ready-node
        what is asked for is more: --reap-older-than 7m; since 6m 30s; node-problem-detector 20m
            = node-just-failed, reaped in 30s
    "#]]);
}

#[test]
fn kubelet_alive_asks_every_source() {
    check(&expect![[r#"
        another Lease: other-lease 10m 59s by Lease shop/leader, held by db-0
            = kubelet-alive, other-lease 10m 59s
        long enough ago: other-lease 11m by Lease shop/leader, held by db-0
            = stuck-on-not-ready-node
        as it failed: since 30m; other-lease 30m by Lease shop/leader, held by db-0
            = stuck-on-not-ready-node
        a program: program 10s by Patroni in pod shop/db-0
            = kubelet-alive, program 10s
        an API server: kube-apiserver 10m 59s
            = kubelet-alive, kube-apiserver 10m 59s
        unread: leases unread
            = facts-unread, Node
        unread, and it lives: leases unread; virt-handler 1m
            = kubelet-alive, virt-handler 1m
        unread, and too early: leases unread; since 1m
            = node-just-failed, reaped in 9m
    "#]]);
}

#[test]
fn local_volume_and_volume_confined_ask_which_other_nodes_there_are() {
    check(&expect![[r#"
        a directory of this node: local
            = local-volume, pinned: data
        by its host's name: local; on kubernetes.io/hostname In ds06.example
            = local-volume, pinned: data
        that another node has too: local; on kubernetes.io/hostname In ds06 ds07; reached-by ds06 ds07
            = stuck-on-not-ready-node, notes: 1
        under another name of this machine: local; reached-by ds06-new
            = stuck-on-not-ready-node, notes: 1
        of several nodes that are gone: local; on kubernetes.io/hostname In ds06 ds07; reached-by ds06
            = local-volume, confined: data
        that nobody binds: host-path; no-affinity
            = local-volume, confined: data
        bound to a zone: host-path; on topology.kubernetes.io/zone In a
            = local-volume, confined: data
        bound to a zone or a node: host-path; on topology.kubernetes.io/zone In a | kubernetes.io/hostname In ds06
            = local-volume, confined: data
        nobody was asked: local; reached-by ?
            = facts-unread, Storage
        a zone of its name, and a rack of its own: claim; on rack-zone In ds06 & rack In r1; reached-by ds06
            = local-volume, confined: data
        its name, or a rack of its own: claim; on metadata.name In ds06 | rack In r1; reached-by ds06
            = local-volume, confined: data
        a field: local; on field & kubernetes.io/hostname In ds06
            = volume-unverified, unverified: data
        strict-local, bound to nothing: strict-local
            = local-volume, pinned: data
    "#]]);
}

/// Kubernetes keeps a deleted PVC until its last pod is gone. So deleting the PVC of a dead node says
/// that its data may go; a PVC that was deleted before may be a slip that can still be undone.
#[test]
fn a_claim_that_was_deleted_after_the_node_failed_is_given_up() {
    check(&expect![[r#"
        given up: local; deleted 30m
            = stuck-on-not-ready-node, notes: 1
        given up on a disk elsewhere: claim; deleted 30m
            = stuck-on-not-ready-node, notes: 1
        given up, on storage that nobody else is known to reach: local; no-affinity; deleted 30m
            = stuck-on-not-ready-node, notes: 1
        given up, on nodes that could not be read: claim; on disk In ssd; reached-by unread; deleted 30m
            = stuck-on-not-ready-node, notes: 1
        given up, not wanted any more: local; deleted 30m; set-wants-it-not
            = stuck-on-not-ready-node, notes: 1
        given up, lost: lost; deleted 30m
            = stuck-on-not-ready-node, notes: 1
        given up, unread: unread; deleted 30m
            = volume-unverified, unverified: data
        given up, a volume that is kept: local; retain; deleted 30m
            = stuck-on-not-ready-node, notes: 1
        ten minutes ago: local; deleted 10m
            = stuck-on-not-ready-node, notes: 1
        a second less: local; deleted 9m 59s
            = not-overdue, reaped in 1s
        three minutes ago: local; deleted 3m
            = not-overdue, reaped in 7m
        not yet as long as the threshold: local; deleted 30m; --reap-older-than 45m; since 2h
            = not-overdue, reaped in 15m
        as long as the threshold: local; deleted 45m; --reap-older-than 45m; since 2h
            = stuck-on-not-ready-node, notes: 1
        seven minutes ago, with a threshold of five: local; deleted 7m; --reap-older-than 5m
            = not-overdue, reaped in 3m
        just before the node failed: local; deleted 60m
            = volume-unverified, pinned: data, going: data, also local-volume
        just after: local; deleted 59m 59s
            = stuck-on-not-ready-node, notes: 1
        before the node failed: local; deleted 2h
            = volume-unverified, pinned: data, going: data, also local-volume
        before the node failed, elsewhere: claim; deleted 2h
            = volume-unverified, going: data
        before the node failed, elsewhere, not wanted any more: claim; deleted 2h; set-wants-it-not
            = volume-unverified, going: data
        before the node failed, elsewhere, kept: claim; retain; deleted 2h
            = stuck-on-not-ready-node, notes: 1
        before the node failed, kept on the node: local; retain; deleted 2h
            = local-volume, pinned: data
        before the node failed, in a namespace that is being deleted: local; deleted 2h; namespace deleted
            = stuck-on-not-ready-node, notes: 1
        before a later failure, as Ready went from False to Unknown: local; deleted 30m; since 20m
            = volume-unverified, pinned: data, going: data, also local-volume
        a finalizer of somebody else: local; deleted 30m; claim-held-by example.com/backup
            = volume-unverified, pinned: data, going: data, also local-volume
        a finalizer of somebody else, elsewhere: claim; deleted 30m; claim-held-by example.com/backup
            = volume-unverified, going: data
        one of two: local; called a; deleted 30m; local; called b
            = local-volume, pinned: b
        one of two, three minutes ago: local; called a; deleted 3m; local; called b
            = local-volume, pinned: b
        both: local; called a; deleted 30m; local; called b; deleted 30m
            = stuck-on-not-ready-node, notes: 2
        both, one of them three minutes ago: local; called a; deleted 30m; local; called b; deleted 3m
            = not-overdue, reaped in 7m
        on a node that is alive: local; deleted 30m; virt-handler 10s
            = kubelet-alive, virt-handler 10s
        on a node that is back: local; deleted 30m; ready True
            = node-ready
        of a pod that a person decides about: local; deleted 30m; --manual-owner-kind StatefulSet
            = owner-kind
        on a disk that two machines could write to: local; iscsi; deleted 30m
            = shared-disk
        made by the pod's own volume: claim; ephemeral; owned; deleted 2h
            = stuck-on-not-ready-node, notes: 1
        owned by the pod, which is wanted: claim; wanted so
            = volume-unverified, going: data
        owned by the pod, which nothing wants: claim; unwanted
            = stuck-on-not-ready-node, notes: 1
        owned by the pod, kept: claim; retain; wanted so
            = stuck-on-not-ready-node, notes: 1
    "#]]);
}

#[test]
fn nothing_keeps_a_second_machine_from_a_disk_that_nothing_attaches() {
    check(&expect![[r#"
        attached: claim; driver attaches
            = stuck-on-not-ready-node
        not attached: claim; driver detached
            = shared-disk
        not attached, and fenced: claim; driver detached; fenced
            = stuck-on-not-ready-node
        unread: claim; driver unread
            = facts-unread, Storage
        unread, and fenced: claim; driver unread; fenced
            = stuck-on-not-ready-node
        unread, and another disk: claim; driver unread; claim; shared
            = shared-disk
    "#]]);
}
