//! Tests of the answer about an edge node.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::check;

#[test]
fn only_an_edge_node_is_asked_about_and_only_if_the_answer_would_be_valid() {
    check(&expect![[r#"
        an edge node: leaf KubeEdge
            = risk
            = see: kubectl describe node ds06
            = answer: kubectl annotate node ds06 pod-reaper.io/powered-off=2026-03-01T12:00:00Z --overwrite
        selected too: leaf KubeEdge, selected too
            = risk
            = see: kubectl describe node ds06
        it shows a sign of life: leaf KubeEdge; lease 1m
            = risk
            = see: kubectl describe node ds06
        the Leases are unread: leaf KubeEdge; leases unread
            = risk
            = see: kubectl describe node ds06
        nobody knows when its deletion was requested: leaf KubeEdge; grace unknown
            = risk
            = see: kubectl describe node ds06
        its deletion was requested just now: leaf KubeEdge; overdue 0s; --reap-older-than 0s; grace 0
            = risk
            = see: kubectl describe node ds06
        the answer is there, and a finalizer: leaf KubeEdge; powered-off 2026-03-01T11:30:00Z; held-by example.com/own
            = risk
            = see: kubectl get pod db-0 -n shop --show-managed-fields -o yaml
            = see: kubectl get pod db-0 -n shop -o custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers
        the breaker holds its node: leaf KubeEdge; nodes 3/3
            = risk
            = see: kubectl describe node ds06
        a virtual node: leaf Liqo
            = risk
            = see: kubectl describe node ds06
    "#]]);
}
