//! Tests of the limits.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::{Expect, expect};
use itertools::Itertools as _;

use super::*;
use crate::{
    samples::{Scene, check_each},
    words::prefixed,
};

/// Lists each pod with its reason, its limit and whether it is reaped, then the limits that hold
/// the run or its nodes.
fn check(cases: &Expect) {
    check_each(cases, |words| {
        let plan = Scene::of(words).plan();
        let pods = plan.pods.iter().map(|judged| {
            let (pod, limit) = (&judged.pod, judged.limit.as_ref().map(Limit::code));
            let goes = plan.reaps().any(|reaped| reaped == judged);
            format!(
                "{} {}{}{}",
                pod.uid.trim_start_matches("u-"),
                judged.reason.code,
                prefixed(", limited: ", limit),
                if goes { ", goes" } else { "" }
            )
        });
        let run = plan.hold.iter().map(|limit| held("the run", limit));
        let zones = plan.zones.iter();
        let zones = zones.map(|(zone, limit)| held(&format!("zone {zone}"), limit));
        pods.chain(run).chain(zones).join("\n")
    });
}

fn held(what: &str, limit: &Limit) -> String {
    let only = match limit {
        Limit::NoRoom(only) => only.as_ref(),
        _ => None,
    };
    let alone = prefixed(", the only node is ", only);
    format!("{what} is held: {}{alone}", limit.code())
}

#[test]
fn the_breaker_holds_when_too_many_nodes_are_not_ready() {
    check(&expect![[r#"
        nothing to count:
            = 1 stuck-on-not-ready-node, goes
        two are few: nodes 2/3
            = 1 stuck-on-not-ready-node, goes
        two are few, whatever the share: nodes 2/3; --max-not-ready-percent 1
            = 1 stuck-on-not-ready-node, goes
        60 %: nodes 3/5
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        50 %: nodes 3/6
            = 1 stuck-on-not-ready-node, goes
        exactly 55 %: nodes 11/20
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        50 % of twenty: nodes 10/20
            = 1 stuck-on-not-ready-node, goes
        just below 55 %: nodes 54/99
            = 1 stuck-on-not-ready-node, goes
        50 %, at 50 %: nodes 3/6; --max-not-ready-percent 50
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        50 %, at 51 %: nodes 3/6; --max-not-ready-percent 51
            = 1 stuck-on-not-ready-node, goes
        3 of 300, at 1 %: nodes 3/300; --max-not-ready-percent 1
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        99 of 100, at 99 %: nodes 99/100; --max-not-ready-percent 99
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        of all few, of the workers 60 %: nodes 3/8; workers 3/5
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        of all few, of the workers 40 %: nodes 3/8; workers 2/5
            = 1 stuck-on-not-ready-node, goes
        both workers, which are two: nodes 2/5; workers 2/2
            = 1 stuck-on-not-ready-node, goes
        the control plane alone: nodes 3/5; workers 0/2
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        none of two is Ready: nodes 2/2
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        the only one is not Ready: nodes 1/1
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage, the only node is ds06
        none is Ready, at 99 %: nodes 1/1; --max-not-ready-percent 99
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage, the only node is ds06
        no real node at all: nodes 0/0
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        100 % turns the share off: nodes 3/5; --max-not-ready-percent 100
            = 1 stuck-on-not-ready-node, goes
        100 % turns none Ready off: nodes 3/3; --max-not-ready-percent 100
            = 1 stuck-on-not-ready-node, goes
        one zone of several: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6; zone eu/a
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = zone eu/a is held: mass-outage
        another one's pods: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6; zone eu/b
            = 1 stuck-on-not-ready-node, goes
            = zone eu/a is held: mass-outage
        a node in no zone: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6
            = 1 stuck-on-not-ready-node, goes
            = zone eu/a is held: mass-outage
        two of a zone are few: nodes 2/9; nodes-of eu/a 2/2; nodes-of eu/b 0/7; zone eu/a
            = 1 stuck-on-not-ready-node, goes
        55 % of a zone: nodes 11/40; nodes-of eu/a 11/20; nodes-of eu/b 0/20; zone eu/a
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = zone eu/a is held: mass-outage
        just below 55 % of a zone: nodes 6/40; nodes-of eu/a 6/11; nodes-of eu/b 0/29; zone eu/a
            = 1 stuck-on-not-ready-node, goes
        the only zone, and nodes in none: nodes 3/9; nodes-of eu/a 3/3; zone eu/a
            = 1 stuck-on-not-ready-node, goes
        a zone, and the breaker off: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6; zone eu/a; --max-not-ready-percent 100
            = 1 stuck-on-not-ready-node, goes
        a held zone takes no place in the cap: nodes 3/9; nodes-of eu/a 3/3; nodes-of eu/b 0/6; zone eu/a; --max-deletes 1
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = zone eu/a is held: mass-outage
        the clock is wrong: clock
            = 1 stuck-on-not-ready-node, limited: facts-unread
            = the run is held: facts-unread
        not counted: uncounted
            = 1 stuck-on-not-ready-node, limited: facts-unread
            = the run is held: facts-unread
        not counted, and the breaker off: uncounted; --max-not-ready-percent 100
            = 1 stuck-on-not-ready-node, goes
    "#]]);
}

fn counted(words: &str) -> NodeCounts {
    Scene::of(&format!("census {words}")).facts().node_counts
}

/// Counts nodes; commas separate the words about each node. The result is how many are NotReady, of
/// all nodes, of the workers and of each zone, and whether a pod could start on one of them.
fn check_census(cases: &Expect) {
    check_each(cases, |words| match counted(words) {
        NodeCounts::Counted {
            all,
            workers,
            zones,
            room,
        } => {
            let share = |it: Tally| format!("{}/{}", it.not_ready, it.total);
            let zones = zones.iter();
            let zones = zones.map(|(zone, count)| format!(", of {zone} {}", share(*count)));
            let room = if room { "room" } else { "no room" };
            let (all, workers) = (share(all), share(workers));
            format!("{all}, workers {workers}{}, {room}", zones.format(""))
        }
        other => format!("{other:?}"),
    });
}

#[test]
fn the_census_counts_real_nodes() {
    check_census(&expect![[r#"
        two of four: control-plane, ready, down, control-plane down, leaf, leaf down, leaf down
            = 2/4, workers 1/2, room
        leaves that are down: ready, leaf down, leaf down, leaf down
            = 0/1, workers 0/1, room
        leaves that are Ready: down, leaf, leaf
            = 1/1, workers 1/1, no room
        zones of one name: in eu/a down, in us/a, in us/a
            = 1/3, workers 1/3, of eu/a 1/1, of us/a 0/2, room
    "#]]);
    let nothing = Tally::default();
    let counted = NodeCounts::Counted {
        all: nothing,
        workers: nothing,
        zones: BTreeMap::new(),
        room: false,
    };
    assert_eq!(NodeCounts::count([]), counted);
}

#[test]
fn nodes_that_nobody_counted_hold_every_pod() {
    let limits = Limits {
        max_deletes: None,
        max_not_ready_percent: 55,
    };
    let plan = Plan::new(&ClusterFacts::default(), Vec::new(), &limits);
    assert!(matches!(plan.hold, Some(Limit::Unread(_))), "{plan:?}");
}

#[test]
fn a_pod_could_start_on_a_ready_node_that_is_neither_cordoned_nor_kept_for_the_control_plane() {
    check_census(&expect![[r#"
        a worker: ready, down
            = 1/2, workers 1/2, room
        of the control plane: control-plane, down
            = 1/2, workers 1/1, room
        kept for the control plane: reserved, down
            = 1/2, workers 1/1, no room
        cordoned: cordoned, down
            = 1/2, workers 1/2, no room
        a leaf: leaf, down
            = 1/1, workers 1/1, no room
        down: down, down
            = 2/2, workers 2/2, no room
    "#]]);
}

#[test]
fn leaf_nodes_neither_trip_the_breaker_nor_hold_it_off() {
    check(&expect![[r#"
        leaves that are down: census ready, leaf down, leaf down, leaf down
            = 1 stuck-on-not-ready-node, goes
        leaves that are Ready: census down, leaf, leaf
            = 1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage, the only node is ds06
    "#]]);
}

#[test]
fn held_pods_wait_and_the_others_are_left_as_they_are() {
    check(&expect![[r#"
        of five two are held: named shop/left; overdue 4h; skip true; and shop/manual; overdue 3h 59m; held-by example.org/backup; and shop/waiting; overdue 3h 58m; namespace unread; and shop/db-0; overdue 3h; and shop/db-1; overdue 2h 59m; nodes 3/3
            = shop/left opted-out
            = shop/manual finalizers
            = shop/waiting facts-unread
            = shop/db-0 stuck-on-not-ready-node, limited: mass-outage
            = shop/db-1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
        an outage with nothing to hold is reported all the same: named shop/left; overdue 4h; skip true; and shop/manual; overdue 3h 59m; held-by example.org/backup; and shop/waiting; overdue 3h 58m; namespace unread; nodes 3/3
            = shop/left opted-out
            = shop/manual finalizers
            = shop/waiting facts-unread
            = the run is held: mass-outage
        a held run does not mention the cap: named shop/db-0; overdue 3h; and shop/db-1; overdue 2h 59m; nodes 3/3; --max-deletes 1
            = shop/db-0 stuck-on-not-ready-node, limited: mass-outage
            = shop/db-1 stuck-on-not-ready-node, limited: mass-outage
            = the run is held: mass-outage
    "#]]);
}

#[test]
fn the_longest_overdue_go_first() {
    check(&expect![[r#"
        no cap: named b/young; overdue 2h 58m; and a/middle; overdue 2h 59m; and c/old; overdue 3h
            = c/old stuck-on-not-ready-node, goes
            = a/middle stuck-on-not-ready-node, goes
            = b/young stuck-on-not-ready-node, goes
        one: named b/young; overdue 2h 58m; and a/middle; overdue 2h 59m; and c/old; overdue 3h; --max-deletes 1
            = c/old stuck-on-not-ready-node, goes
            = a/middle stuck-on-not-ready-node, limited: over-cap
            = b/young stuck-on-not-ready-node, limited: over-cap
        two: named b/young; overdue 2h 58m; and a/middle; overdue 2h 59m; and c/old; overdue 3h; --max-deletes 2
            = c/old stuck-on-not-ready-node, goes
            = a/middle stuck-on-not-ready-node, goes
            = b/young stuck-on-not-ready-node, limited: over-cap
        just as many: named b/young; overdue 2h 58m; and a/middle; overdue 2h 59m; and c/old; overdue 3h; --max-deletes 3
            = c/old stuck-on-not-ready-node, goes
            = a/middle stuck-on-not-ready-node, goes
            = b/young stuck-on-not-ready-node, goes
        more than there are: named b/young; overdue 2h 58m; and a/middle; overdue 2h 59m; and c/old; overdue 3h; --max-deletes 9
            = c/old stuck-on-not-ready-node, goes
            = a/middle stuck-on-not-ready-node, goes
            = b/young stuck-on-not-ready-node, goes
        by namespace, then name, then UID: named b/db-0; overdue 3h; and a/db-1; overdue 3h; and a/db-0#2; overdue 3h; and a/db-0#1; overdue 3h; --max-deletes 2
            = a/db-0#1 stuck-on-not-ready-node, goes
            = a/db-0#2 stuck-on-not-ready-node, goes
            = a/db-1 stuck-on-not-ready-node, limited: over-cap
            = b/db-0 stuck-on-not-ready-node, limited: over-cap
        only what is reaped counts: named shop/young; overdue 2h 59m; and shop/old; overdue 3h; and shop/left; overdue 4h; skip true; and shop/manual; overdue 3h 59m; held-by example.org/backup; and shop/waiting; overdue 3h 58m; namespace unread; --max-deletes 1
            = shop/left opted-out
            = shop/manual finalizers
            = shop/waiting facts-unread
            = shop/old stuck-on-not-ready-node, goes
            = shop/young stuck-on-not-ready-node, limited: over-cap
    "#]]);
}

/// If its zone holds a pod, the next pod takes its place under the cap. Zones of the same name are
/// distinguished by their regions.
#[test]
fn what_a_zone_holds_takes_no_place_in_the_cap() {
    check(&expect![[r#"
        two zones: nodes 4/12; nodes-of eu/a 3/3; nodes-of us/a 1/9; --max-deletes 1; named shop/held; overdue 3h; zone eu/a; and-node ds07; zone us/a; and shop/free; overdue 2h 59m
            = shop/held stuck-on-not-ready-node, limited: mass-outage
            = shop/free stuck-on-not-ready-node, goes
            = zone eu/a is held: mass-outage
    "#]]);
}

#[test]
fn a_reaped_pod_keeps_what_was_seen() {
    let scene = Scene::of("claim; on zone In a; census ready, down; --max-deletes 1");
    let noted = Judged {
        pod: scene.pod.clone(),
        reason: scene.judged(),
        limit: None,
    };
    assert_eq!(scene.plan().pods, [noted]);
}
