//! Tests of an edge node whose machine is off, by an answer.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::{Scene, check_each};

/// It is noon. The node has been NotReady since 11:00:00, and the deletion was requested at
/// 10:59:30.
#[test]
fn only_a_valid_answer_for_an_edge_node_lets_its_pods_pass() {
    let cases = expect![[r#"
        no answer: leaf KubeEdge
            = edge-node
        off: leaf KubeEdge; powered-off 2026-03-01T11:00:01Z
            = answered
        as it became NotReady: leaf KubeEdge; powered-off 2026-03-01T11:00:00Z
            = edge-node
        of the future: leaf KubeEdge; powered-off 2026-03-01T12:00:01Z
            = edge-node
        requested a second before it: leaf KubeEdge; overdue 30m; powered-off 2026-03-01T11:29:31Z
            = answered
        requested at that moment: leaf KubeEdge; overdue 30m; powered-off 2026-03-01T11:29:30Z
            = edge-node
        requested later: leaf KubeEdge; overdue 30m; powered-off 2026-03-01T11:20:00Z
            = edge-node
        nobody knows when it was requested: leaf KubeEdge; grace none; powered-off 2026-03-01T11:30:00Z
            = edge-node
        heard after it: leaf KubeEdge; lease 29m; powered-off 2026-03-01T11:30:00Z
            = edge-node
        a sign of life: leaf KubeEdge; lease 1m; powered-off 2026-03-01T11:30:00Z
            = edge-node
        its lease is unread: leaf KubeEdge; lease unread; powered-off 2026-03-01T11:30:00Z
            = edge-node
        the other Leases are unread: leaf KubeEdge; leases unread; powered-off 2026-03-01T11:30:00Z
            = edge-node
        selected too: leaf KubeEdge, selected too; powered-off 2026-03-01T11:30:00Z
            = edge-node
        a virtual node: leaf Liqo; powered-off 2026-03-01T11:30:00Z
            = virtual-node
        a node of Kosmos: leaf Kosmos; powered-off 2026-03-01T11:30:00Z
            = kosmos-leaf
        only selected: leaf far; powered-off 2026-03-01T11:30:00Z
            = leaf-node
        a fencing mark is no answer: leaf KubeEdge; fenced
            = edge-node
        a fencing mark beside an answer that is too early: leaf KubeEdge; fenced; powered-off 2026-03-01T11:00:00Z
            = edge-node
        the answer on the pod is another: leaf KubeEdge; reap 2026-03-01T11:30:00Z
            = edge-node
        its data is there: leaf KubeEdge; local; powered-off 2026-03-01T11:30:00Z
            = local-volume
        it failed just now: leaf KubeEdge; since 9m 59s; powered-off 2026-03-01T11:55:00Z
            = node-just-failed
    "#]];
    check_each(&cases, |words| Scene::of(words).judged().code.to_string());
}
