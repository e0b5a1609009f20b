//! Tests of the notice about the out-of-service taint that was left on a Ready node.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use itertools::Itertools as _;

use super::{
    NoticeCode,
    tests::{check, scene, told_of_cluster},
};

#[test]
fn a_taint_that_was_left_on_a_ready_node_is_noticed() {
    check(&expect![[r#"
        one of those whose leases are read: {Node ds05: {spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}}, Pod shop/db-0: {}}
            = out-of-service ds05 1: ds05 ds05 node.kubernetes.io/out-of-service-
        all nodes are counted: {Node ds04: {ready: 'True', spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}}, Node ds03: {}, Node ds02: {}, Node ds01: {ready: 'True'}, Pod shop/db-0: {}}
            = out-of-service ds04 1: ds04 ds04 node.kubernetes.io/out-of-service-
        another taint: {Node ds05: {spec: {taints: [{key: node.kubernetes.io/network-unavailable, effect: NoSchedule}]}}, Pod shop/db-0: {}}
        on a node that is down: {Node ds06: {spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}}, Pod shop/db-0: {}}
        no pod is stuck: {Node ds05: {spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}}, Pod shop/db-0: {metadata: {deletionTimestamp: null}}}
            = never-evicted ds06 1: ds06 shop/db-0 StatefulSet/db MISSED DOWN 2h
            = out-of-service ds05 1: ds05 ds05 node.kubernetes.io/out-of-service-
    "#]]);
}

/// A run notices the taint on the nodes that it reads anyway: the few Ready nodes whose leases are
/// compared with the clock, and all nodes if the breaker counts them. If nothing is wrong, the run
/// reads no node.
#[tokio::test(start_paused = true)]
async fn a_run_reads_no_node_for_the_taint() {
    let taint = "spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}";
    let more = "Node ds01: {ready: 'True'}, Node ds02: {}, Node ds03: {}, Lease ds05: {spec: {renewTime: '2026-01-31T03:00:00Z'}}";
    for (case, more, stuck, noticed) in [
        ("one whose lease is read", "", true, true),
        ("all nodes are counted", more, true, true),
        (
            "nothing is wrong",
            "Node ds06: null, Lease ds06: null",
            false,
            false,
        ),
    ] {
        let stuck = if stuck { "Pod shop/db-0: {}" } else { "" };
        let parts = [&format!("Node ds05: {{{taint}}}"), more, stuck];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let (settings, objects) = scene(&format!("{{{}}}", parts.format(", ")));
        let (report, requests) = told_of_cluster(&settings, &objects).await;
        let notices = report.notices.iter();
        let of_taint = notices.filter(|notice| notice.code == NoticeCode::OutOfService);
        let nodes = of_taint.map(|notice| notice.node.as_deref());
        let expected = noticed.then_some(Some("ds05"));
        assert_eq!(nodes.collect_vec(), Vec::from_iter(expected), "{case}");
        assert_eq!(requests == 1, !noticed, "{case}: {requests} requests");
    }
}
