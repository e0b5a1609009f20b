//! Tests of what keeps a pod because of its data, and of what lets the pod pass because nothing
//! wants it again.

use expect_test::expect;

use crate::{
    decide::Reason,
    samples::{Scene, check_each},
};

/// Lists the codes of all rules that ask the user, or else the code that decides, and the causes
/// that must still apply when the pod is deleted.
fn codes(words: &str) -> String {
    let Reason {
        code, asks, ties, ..
    } = Scene::of(words).judged();
    let codes = if asks.is_empty() { vec![code] } else { asks };
    let codes = codes.iter().map(ToString::to_string).collect::<Vec<_>>();
    let unneeded = ties.unneeded.iter().map(|why| format!(" {why:?}"));
    codes.join(", ") + &unneeded.collect::<String>()
}

#[test]
fn a_pod_that_nothing_wants_again_passes_with_data_on_its_node() {
    check_each(
        &expect![[r#"
            wanted: local; set-wants-it
                = local-volume
            not asked: local
                = local-volume
            unread: local; set-unread
                = local-volume
            not wanted: local; set-wants-it-not
                = stuck-on-not-ready-node Set
            not wanted, of a hostPath volume: host-path; set-wants-it-not
                = stuck-on-not-ready-node Set
            not wanted, of Longhorn: strict-local; set-wants-it-not
                = stuck-on-not-ready-node Set
            not wanted, and it owns the claim: local; unwanted
                = stuck-on-not-ready-node Set
            not wanted, and somebody deleted the claim: local; deleted; set-wants-it-not
                = volume-unverified Set
            not wanted, somebody deleted the claim that it owns: local; unwanted; deleted
                = volume-unverified Set
            not wanted, and the deleted claim is elsewhere: claim; deleted; set-wants-it-not
                = volume-unverified
            not wanted, with one of two deleted: local; local; deleted; set-wants-it-not
                = volume-unverified Set
            not wanted, confined: local; no-affinity; set-wants-it-not
                = stuck-on-not-ready-node Set
            not wanted, unread: unread; set-wants-it-not
                = volume-unverified
            not wanted, lost: lost; set-wants-it-not
                = volume-unverified
            not wanted, reach unread: claim; on disk In ssd; reached-by unread; set-wants-it-not
                = volume-unverified
            not wanted, on a shared disk: local; iscsi; set-wants-it-not
                = shared-disk Set
            not wanted, of a kind: local; set-wants-it-not; --manual-owner-kind StatefulSet
                = owner-kind Set
            of a Deployment: local; owner ReplicaSet apps/v1; set-wants-it-not
                = local-volume
            of another maker's StatefulSet: local; owner StatefulSet apps.kruise.io/v1beta1; set-wants-it-not
                = local-volume
            of a set that is not its controller: local; owner StatefulSet; set-wants-it-not
                = local-volume
        "#]],
        codes,
    );
}

#[test]
fn a_pod_whose_namespace_is_being_deleted_passes_with_data_anywhere() {
    check_each(
        &expect![[r#"
            pinned: local; namespace deleted
                = stuck-on-not-ready-node Namespace
            pinned and wanted: local; set-wants-it; namespace deleted
                = stuck-on-not-ready-node Namespace
            pinned and deleted: local; deleted; namespace deleted
                = stuck-on-not-ready-node Namespace
            of a Deployment: local; owner ReplicaSet apps/v1; namespace deleted
                = stuck-on-not-ready-node Namespace
            without a controller: local; owner none; namespace deleted
                = stuck-on-not-ready-node Namespace
            confined: local; no-affinity; namespace deleted
                = stuck-on-not-ready-node Namespace
            a hostPath of its own: writes-to /data; namespace deleted
                = stuck-on-not-ready-node Namespace
            nothing: namespace deleted
                = stuck-on-not-ready-node
            elsewhere: claim; namespace deleted
                = stuck-on-not-ready-node
            unread: unread; namespace deleted
                = volume-unverified
            lost: lost; namespace deleted
                = volume-unverified
            reach unread: claim; on disk In ssd; reached-by unread; namespace deleted
                = volume-unverified
            on a shared disk: local; iscsi; namespace deleted
                = shared-disk Namespace
            its namespace is unread: local; namespace unread
                = facts-unread
            its namespace stays: local; namespace kept
                = local-volume
        "#]],
        codes,
    );
}

#[test]
fn a_stateful_set_that_writes_to_its_node_is_left_to_a_person() {
    check_each(
        &expect![[r#"
            a set: writes-to /data
                = host-path
            a set whose pod is not wanted: writes-to /data; set-wants-it-not
                = host-path
            a Deployment: owner ReplicaSet apps/v1; writes-to /data
                = stuck-on-not-ready-node
            a DaemonSet: owner DaemonSet apps/v1; writes-to /data
                = stuck-on-not-ready-node
            an operator: owner Cluster postgresql.cnpg.io/v1; writes-to /data
                = stuck-on-not-ready-node
            another maker's StatefulSet: owner StatefulSet apps.kruise.io/v1beta1; writes-to /data
                = stuck-on-not-ready-node
            no controller: owner none; writes-to /data
                = stuck-on-not-ready-node
            with a claim on the node: writes-to /data; local
                = local-volume, host-path
            with a claim elsewhere: writes-to /data; claim
                = host-path
            of a kind too: writes-to /data; --manual-owner-kind StatefulSet
                = host-path, owner-kind
            of a node that is alive: writes-to /data; lease 1m
                = kubelet-alive
            with finalizers: writes-to /data; held-by x/y
                = finalizers
        "#]],
        codes,
    );
}
