//! Tests of the moment since which a pod is overdue: its deletion deadline, or an earlier moment on
//! a silent machine.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;

use super::check;
use crate::decide::{ReasonCode, Verdict};
use crate::samples::{Scene, check_each};

/// The kubelet received the drain's delete request, and its machine died three minutes later. The
/// node's Ready has been Unknown for 17 minutes, and the grace period is seven days.
#[test]
fn the_grace_ends_with_the_last_heartbeat_or_at_a_later_request() {
    check(&expect![[r#"
        the drain, and death three minutes later: since 17m; grace 604800; overdue -167h 39m; lease 18m
            = stuck-on-not-ready-node, notes: 1
        stuck to the second: since 9m; --reap-older-than 1m; grace 604800; overdue -167h 39m; lease 10m
            = stuck-on-not-ready-node, notes: 1
        a second before: since 9m; --reap-older-than 1m; grace 604800; overdue -167h 39m; lease 9m 59s
            = stuck-on-not-ready-node, notes: 1
        requested after the last heartbeat, stuck to the second: grace 604800; overdue -167h 50m
            = stuck-on-not-ready-node, notes: 1
        a second before that: grace 604800; overdue -167h 50m 1s
            = not-overdue, reaped in 1s
        requested just as it was heard: since 17m; grace 604800; overdue -167h 42m; lease 18m
            = stuck-on-not-ready-node, notes: 1
        another Lease is a heartbeat: since 17m; grace 604800; overdue -167h 39m; lease 20m; other-lease 18m by Lease shop/leader, held by db-0
            = stuck-on-not-ready-node, notes: 1
        another Lease, too recent: since 9m; --reap-older-than 1m; grace 604800; overdue -167h 39m; lease 20m; other-lease 9m 59s by Lease shop/leader, held by db-0
            = stuck-on-not-ready-node, notes: 1
        a program is a heartbeat: since 9m; --reap-older-than 1m; grace 604800; overdue -167h 39m; lease 20m; program 9m 59s by Patroni in pod shop/db-0
            = stuck-on-not-ready-node, notes: 1
        the deadline is earlier than the heartbeat: since 17m; overdue 20m; lease 18m
            = stuck-on-not-ready-node
    "#]]);
}

#[test]
fn reading_less_never_cuts_the_grace() {
    check(&expect![[r#"
        all was read: since 17m; grace 604800; overdue -167h 39m; lease 18m
            = stuck-on-not-ready-node, notes: 1
        no lease of its own: since 17m; grace 604800; overdue -167h 39m; lease never; virt-handler 18m
            = not-overdue, reaped in 167h 49m
        its lease is unread: since 17m; grace 604800; overdue -167h 39m; lease unread; virt-handler 18m
            = not-overdue, reaped in 167h 49m
        the other Leases are unread: since 17m; grace 604800; overdue -167h 39m; lease 18m; leases unread
            = not-overdue, reaped in 167h 49m
        the other Leases may not be listed: since 17m; grace 604800; overdue -167h 39m; lease 18m; leases forbidden
            = not-overdue, reaped in 167h 49m
        the other Leases may not be listed, and the deadline is past: since 17m; overdue 10m; lease 18m; leases forbidden
            = stuck-on-not-ready-node
        the grace is unknown: since 17m; grace none; overdue -167h 39m; lease 18m
            = not-overdue, reaped in 167h 49m
        the grace is negative: since 17m; grace -1; overdue -167h 39m; lease 18m
            = not-overdue, reaped in 167h 49m
        it is not known since when the node is NotReady: since ever; grace 604800; overdue -167h 39m; lease 18m
            = node-just-failed
        a sign of life: since 17m; grace 604800; overdue -167h 39m; lease 10m 59s
            = not-overdue, reaped in 167h 49m
        the kubelet reports: ready False; since 17m; grace 604800; overdue -167h 39m; lease 18m
            = not-overdue, reaped in 167h 49m
        the node is unread: node unread; grace 604800; overdue -167h 39m
            = not-overdue
        the node is gone, and a finalizer is left: node gone; held-by example.com/a; grace 604800; overdue -167h 39m
            = not-overdue
    "#]]);
}

/// Every reason that depends on the cut of the grace period says so.
#[test]
fn a_pod_that_only_the_cut_makes_stuck_says_so_whatever_its_reason() {
    check(&expect![[r#"
        a pinned volume: local; grace 604800; overdue -167h 39m
            = local-volume, pinned: data
        a leaf node: leaf Liqo; grace 604800; overdue -167h 39m
            = virtual-node
        a finalizer: held-by example.com/a; grace 604800; overdue -167h 39m
            = finalizers
        stuck by its deadline too: local; overdue 10m
            = local-volume, pinned: data
    "#]]);
}

/// Every figure of a report uses this value.
#[test]
fn a_pod_is_overdue_since_its_deadline_unless_its_machine_is_silent() {
    check_each(
        &expect![[r#"
            silent: since 17m; grace 604800; overdue -167h 39m; lease 18m
                = 18m
            its node is Ready: ready True; since 17m; grace 604800; overdue -167h 39m; lease 18m
                = 167h 39m ago
            a sign of life: since 17m; grace 604800; overdue -167h 39m; lease 1m
                = 167h 39m ago
        "#]],
        |words| {
            let scene = Scene::of(words);
            let overdue = scene.advised(|adviser| adviser.facts.overdue(&scene.pod));
            format!("{overdue:#}")
        },
    );
}

/// A run reaps a pod only if its deletion was requested, however dead its node is.
#[test]
fn a_pod_that_is_not_terminating_is_never_reaped() {
    let mut scene = Scene::of("");
    assert_eq!(scene.judged().verdict(), Verdict::Reap);
    scene.pod.deletion = None;
    scene.policy.reap_older_than = jiff::SignedDuration::ZERO;
    assert_eq!(scene.judged().code, ReasonCode::NotOverdue);
}
