//! Tests of the limits.

use expect_test::expect;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    decide::Optout,
    facts::{NodeFacts, NodeRead, Owner, Standing, Unread},
    samples,
};

fn pod(namespace: &str, name: &str, deadline: &str) -> Judged {
    Judged {
        pod: PodFacts {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("{namespace}/{name}").into(),
            owner: None,
            deletion_deadline: format!("2026-03-01T{deadline}:00Z")
                .parse::<Timestamp>()
                .unwrap(),
            ..samples::pod()
        },
        reason: stuck(),
        limit: None,
    }
}

impl Judged {
    fn because(self, reason: Reason) -> Self {
        Self { reason, ..self }
    }

    fn limited(self, limit: Limit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }
}

fn stuck() -> Reason {
    Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: Vec::new(),
    }
}

/// One pod of each verdict but `reap`.
fn others() -> [Judged; 3] {
    [
        pod("shop", "left", "08:00").because(Reason::OptedOut {
            who: Optout::Pod,
            value: "true".to_owned(),
        }),
        pod("shop", "manual", "08:01").because(Reason::OwnerKind {
            owner: Owner {
                kind: "StatefulSet".to_owned(),
                name: "db".to_owned(),
            },
        }),
        pod("shop", "waiting", "08:02").because(Reason::NodeJustFailed {
            not_ready_for: None,
            threshold: jiff::SignedDuration::from_mins(10),
        }),
    ]
}

fn limits() -> Limits {
    Limits {
        max_deletes: None,
        max_not_ready_percent: 55,
    }
}

fn cap(max_deletes: usize) -> Limits {
    Limits {
        max_deletes: Some(max_deletes),
        ..limits()
    }
}

fn percent(max_not_ready_percent: u8) -> Limits {
    Limits {
        max_not_ready_percent,
        ..limits()
    }
}

fn of(not_ready: usize, total: usize) -> Tally {
    Tally { not_ready, total }
}

/// A cluster with workers only.
fn workers(not_ready: usize, total: usize) -> Census {
    let tally = of(not_ready, total);
    Census::Counted {
        all: tally,
        workers: tally,
        room: not_ready < total,
    }
}

const NO_ROOM: &str = "nothing could start elsewhere: every other real node is NotReady, cordoned or kept for the control plane";

fn not_counted() -> Census {
    Census::Unread(Unread("nodes is forbidden".to_owned()))
}

/// Name and reason of each pod, in the plan's order.
fn rows_of(plan: &Plan) -> Vec<(String, &'static str)> {
    plan.pods
        .iter()
        .map(|judged| {
            (
                format!("{}/{}", judged.pod.namespace, judged.pod.name),
                judged.code().as_str(),
            )
        })
        .collect()
}

fn reaped(plan: &Plan) -> Vec<&str> {
    plan.reaps().map(|pod| pod.name.as_str()).collect()
}

#[test]
fn the_breaker_holds_when_too_many_nodes_are_not_ready() {
    let outage = |what: &str| Some(HoldReason::MassOutage(what.to_owned()));
    let both = |all, workers| Census::Counted {
        all,
        workers,
        room: true,
    };
    let rows = [
        ("nothing to count", Census::NotNeeded, 55, None),
        ("2 of 3: two are few", workers(2, 3), 55, None),
        ("2 of 3, whatever the share", workers(2, 3), 1, None),
        (
            "3 of 5 = 60 %",
            workers(3, 5),
            55,
            outage("3 of 5 nodes are NotReady"),
        ),
        ("3 of 6 = 50 %", workers(3, 6), 55, None),
        (
            "11 of 20, exactly 55 %",
            workers(11, 20),
            55,
            outage("11 of 20 nodes are NotReady"),
        ),
        ("10 of 20", workers(10, 20), 55, None),
        ("54 of 99, just below 55 %", workers(54, 99), 55, None),
        (
            "3 of 6, at 50 %",
            workers(3, 6),
            50,
            outage("3 of 6 nodes are NotReady"),
        ),
        ("3 of 6, at 51 %", workers(3, 6), 51, None),
        (
            "3 of 300, at 1 %",
            workers(3, 300),
            1,
            outage("3 of 300 nodes are NotReady"),
        ),
        (
            "99 of 100, at 99 %",
            workers(99, 100),
            99,
            outage("99 of 100 nodes are NotReady"),
        ),
        (
            "3 of 8, but 3 of 5 workers",
            both(of(3, 8), of(3, 5)),
            55,
            outage("3 of 5 worker nodes are NotReady"),
        ),
        ("3 of 8, 2 of 5 workers", both(of(3, 8), of(2, 5)), 55, None),
        (
            "both 2 of 2 workers, 2 of 5",
            both(of(2, 5), of(2, 2)),
            55,
            None,
        ),
        (
            "the control plane alone: 3 of 5",
            both(of(3, 5), of(0, 2)),
            55,
            outage("3 of 5 nodes are NotReady"),
        ),
        ("2 of 2: none is Ready", workers(2, 2), 55, outage(NO_ROOM)),
        ("1 of 1: none is Ready", workers(1, 1), 55, outage(NO_ROOM)),
        ("none is Ready, at 99 %", workers(1, 1), 99, outage(NO_ROOM)),
        ("no real node at all", workers(0, 0), 55, outage(NO_ROOM)),
        ("100 % turns the share off", workers(3, 5), 100, None),
        ("100 % turns none Ready off", workers(3, 3), 100, None),
        (
            "not counted",
            not_counted(),
            55,
            Some(HoldReason::CensusUnread("nodes is forbidden".to_owned())),
        ),
        ("not counted, and the breaker off", not_counted(), 100, None),
    ];
    for (name, census, max_percent, hold) in rows {
        let plan = Plan::limited(
            vec![pod("shop", "db-0", "09:00")],
            &census,
            &percent(max_percent),
        );
        assert_eq!(
            plan.hold,
            hold.clone().map(|reason| Hold { reason, held: 1 }),
            "{name}"
        );
        let judged = &plan.pods[0];
        assert_eq!(
            (&judged.reason, &judged.limit),
            (&stuck(), &hold.map(Limit::Hold)),
            "{name}"
        );
    }
}

/// A node that a pod could start on.
const READY: Standing = Standing {
    ready: true,
    leaf: false,
    control_plane: false,
    reserved: false,
    cordoned: false,
    since: None,
    terminating: false,
};
const LEAF: Standing = Standing {
    leaf: true,
    ..READY
};
const CONTROL_PLANE: Standing = Standing {
    control_plane: true,
    ..READY
};

fn dead(node: Standing) -> Standing {
    Standing {
        ready: false,
        since: Some(samples::now() - SignedDuration::from_hours(24)),
        ..node
    }
}

fn counted(all: Tally, workers: Tally, room: bool) -> Census {
    Census::Counted { all, workers, room }
}

fn count<const N: usize>(nodes: [Standing; N]) -> Census {
    Census::count(samples::now(), nodes)
}

#[test]
fn the_census_counts_real_nodes() {
    let nodes = [
        CONTROL_PLANE,
        READY,
        dead(READY),
        dead(CONTROL_PLANE),
        LEAF,
        dead(LEAF),
        dead(LEAF),
    ];
    assert_eq!(count(nodes), counted(of(2, 4), of(1, 2), true));
    assert_eq!(count([]), workers(0, 0));
}

#[test]
fn a_pod_could_start_on_a_ready_node_that_is_neither_cordoned_nor_kept_for_the_control_plane() {
    let reserved = Standing {
        reserved: true,
        ..CONTROL_PLANE
    };
    let cordoned = Standing {
        cordoned: true,
        ..READY
    };
    for (name, node, room) in [
        ("a worker", READY, true),
        ("a control plane node that takes pods", CONTROL_PLANE, true),
        ("one that does not", reserved, false),
        ("a cordoned one", cordoned, false),
        ("a leaf node", LEAF, false),
        ("a dead one", dead(READY), false),
    ] {
        let Census::Counted { room: found, .. } = count([node, dead(READY)]) else {
            unreachable!("it is")
        };
        assert_eq!(found, room, "{name}");
    }
}

#[test]
fn a_node_that_was_put_away_counts_in_neither_number() {
    let away = |seconds: i64| {
        let since = dead(READY)
            .since
            .map(|since| since - SignedDuration::from_secs(seconds));
        Standing {
            cordoned: true,
            since,
            ..dead(READY)
        }
    };
    for (name, node, all) in [
        ("for more than a day", away(1), of(1, 2)),
        ("for a day", away(0), of(2, 3)),
        (
            "since no one knows when",
            Standing {
                since: None,
                ..away(1)
            },
            of(2, 3),
        ),
        (
            "not cordoned",
            Standing {
                cordoned: false,
                ..away(1)
            },
            of(2, 3),
        ),
        (
            "with a Terminating pod",
            Standing {
                terminating: true,
                ..away(1)
            },
            of(2, 3),
        ),
        (
            "Ready, and only cordoned",
            Standing {
                cordoned: true,
                ..READY
            },
            of(1, 3),
        ),
    ] {
        assert_eq!(
            count([node, READY, dead(READY)]),
            counted(all, all, true),
            "{name}"
        );
    }
}

#[test]
fn leaf_nodes_neither_trip_the_breaker_nor_hold_it_off() {
    let dead_leaves = count([READY, dead(LEAF), dead(LEAF), dead(LEAF)]);
    let ready_leaves = count([dead(READY), LEAF, LEAF]);
    let plan = |census| Plan::limited(vec![pod("shop", "db-0", "09:00")], &census, &limits());
    assert_eq!(plan(dead_leaves).hold, None);
    assert!(plan(ready_leaves).hold.is_some());
}

#[test]
fn held_pods_wait_and_the_others_are_left_as_they_are() {
    let mut judged = others().to_vec();
    judged.push(pod("shop", "db-0", "09:00"));
    judged.push(pod("shop", "db-1", "09:01"));
    let plan = Plan::limited(judged, &workers(3, 3), &limits());
    let outage = Limit::Hold(HoldReason::MassOutage(
        "3 of 3 nodes are NotReady".to_owned(),
    ));
    let mut expected = others().to_vec();
    expected.push(pod("shop", "db-0", "09:00").limited(outage.clone()));
    expected.push(pod("shop", "db-1", "09:01").limited(outage));
    assert_eq!(plan.pods, expected);
    assert_eq!(
        plan.hold.as_ref().map(|hold| hold.held),
        Some(2),
        "only what would be reaped is held"
    );
    assert_eq!(plan.reaps().count(), 0);
}

#[test]
fn an_outage_with_nothing_to_hold_is_reported_all_the_same() {
    let plan = Plan::limited(others().to_vec(), &workers(3, 3), &limits());
    assert_eq!(plan.pods, others());
    assert_eq!(plan.hold.map(|hold| hold.held), Some(0));
}

#[test]
fn a_held_run_does_not_mention_the_cap() {
    let judged = vec![pod("shop", "db-0", "09:00"), pod("shop", "db-1", "09:01")];
    let plan = Plan::limited(judged, &workers(3, 3), &cap(1));
    assert_eq!(
        rows_of(&plan),
        [
            ("shop/db-0".to_owned(), "mass-outage"),
            ("shop/db-1".to_owned(), "mass-outage")
        ]
    );
    assert_eq!(plan.hold.map(|hold| hold.held), Some(2));
}

#[test]
fn the_longest_overdue_go_first() {
    let judged = || {
        vec![
            pod("b", "young", "09:02"),
            pod("a", "middle", "09:01"),
            pod("c", "old", "09:00"),
        ]
    };
    let rows = [
        ("no cap", None, vec!["old", "middle", "young"]),
        ("one", Some(1), vec!["old"]),
        ("two", Some(2), vec!["old", "middle"]),
        ("just as many", Some(3), vec!["old", "middle", "young"]),
        (
            "more than there are",
            Some(9),
            vec!["old", "middle", "young"],
        ),
    ];
    for (name, max_deletes, expected) in rows {
        let plan = Plan::limited(
            judged(),
            &Census::NotNeeded,
            &Limits {
                max_deletes,
                ..limits()
            },
        );
        assert_eq!(reaped(&plan), expected, "{name}");
        assert_eq!(plan.pods.len(), 3, "{name}: nothing is lost");
        let over = Some(Limit::Cap(max_deletes.unwrap_or_default()));
        assert!(
            plan.pods[expected.len()..]
                .iter()
                .all(|judged| judged.limit == over),
            "{name}"
        );
    }
}

#[test]
fn ties_are_ordered_by_namespace_then_name_then_uid() {
    let again = |uid: &str| {
        let mut judged = pod("a", "db-0", "09:00");
        judged.pod.uid = uid.into();
        judged
    };
    let judged = vec![
        pod("b", "db-0", "09:00"),
        pod("a", "db-1", "09:00"),
        again("u-2"),
        again("u-1"),
    ];
    let uids = ["u-1", "u-2", "a/db-1", "b/db-0"];
    for most in 1..=4 {
        let plan = Plan::limited(judged.clone(), &Census::NotNeeded, &cap(most));
        assert_eq!(
            plan.reaps().map(|pod| pod.uid.as_str()).collect::<Vec<_>>(),
            uids[..most]
        );
    }
}

#[test]
fn only_what_is_reaped_counts_against_the_cap() {
    let mut judged = vec![pod("shop", "young", "09:01"), pod("shop", "old", "09:00")];
    judged.extend(others());
    let plan = Plan::limited(judged, &Census::NotNeeded, &cap(1));
    let mut expected = others().to_vec();
    expected.push(pod("shop", "old", "09:00"));
    expected.push(pod("shop", "young", "09:01").limited(Limit::Cap(1)));
    assert_eq!(plan.pods, expected);
    assert_eq!(plan.hold, None);
}

#[test]
fn a_reaped_pod_keeps_what_was_seen() {
    let noted = Reason::Stuck {
        given_up: Vec::new(),
        answered: false,
        notes: vec!["pv-1 needs zone In (a)".to_owned()],
    };
    let plan = Plan::limited(
        vec![pod("shop", "db-0", "09:00").because(noted.clone())],
        &workers(1, 9),
        &cap(1),
    );
    assert_eq!(plan.pods[0].reason, noted);
}

/// Six nodes of ten are NotReady; what each trait's nodes are, NotReady and Ready ones.
fn outage(traits: &[(&str, usize, usize)], failed: &[&str]) -> ClusterFacts {
    let mut facts = ClusterFacts {
        now: samples::now(),
        ..ClusterFacts::default()
    };
    let all = Tally {
        not_ready: 6,
        total: 10,
    };
    facts.census = counted(all, all, true);
    for (what, here, there) in traits {
        facts.traits.insert(
            (*what).to_owned(),
            Tally {
                not_ready: *here,
                total: here + there,
            },
        );
    }
    for (number, time) in failed.iter().enumerate() {
        let since = format!("2026-03-01T{time}Z").parse().ok();
        let name = format!("node-{number}");
        let node = NodeFacts {
            name: name.clone(),
            ready_since: since,
            tainted_since: None,
            ..samples::node()
        };
        facts.nodes.insert(name, NodeRead::Known(node));
    }
    facts
}

#[test]
fn what_the_not_ready_nodes_have_in_common_is_what_most_of_them_have_and_the_others_lack() {
    let traits = [
        ("label disk=ssd", 6, 4),
        ("label rack=r7", 6, 0),
        ("label rack=r8", 0, 4),
        ("label zone=b", 6, 0),
        ("kernel 6.1.9", 5, 1),
        ("label one=1", 1, 0),
        ("label few=yes", 2, 0),
        ("taint maintenance", 3, 0),
    ];
    let times = [
        "09:00:50", "09:01:10", "09:01:20", "09:01:49", "11:00:00", "07:00:00",
    ];
    expect![[r#"
        [
            "6 of 6 NotReady nodes, and 0 of the 4 others: label rack=r7, label zone=b",
            "5 of 6 NotReady nodes, and 1 of the 4 others: kernel 6.1.9",
            "3 of 6 NotReady nodes, and 0 of the 4 others: taint maintenance",
            "4 of 6 failed within a minute, from 2026-03-01 09:00:50Z on",
        ]
    "#]]
    .assert_debug_eq(&in_common(&outage(&traits, &times)));
}

#[test]
fn where_nothing_is_in_common_that_is_said() {
    let one_by_one = ["07:00:00", "08:00:00", "09:00:00"];
    expect![[r#"
        [
            "They share no label, taint or version that most of the other nodes lack.",
            "They failed over 2h, the first at 2026-03-01 07:00:00Z",
        ]
    "#]]
    .assert_debug_eq(&in_common(&outage(
        &[("label disk=ssd", 4, 3)],
        &one_by_one,
    )));
    // There are no others, so that nothing tells them apart.
    let mut facts = outage(&[("label disk=ssd", 6, 0)], &[]);
    let all = Tally {
        not_ready: 6,
        total: 6,
    };
    facts.census = counted(all, all, true);
    assert_eq!(in_common(&facts), [""; 0]);
    facts.census = Census::NotNeeded;
    assert_eq!(in_common(&facts), [""; 0]);
}

#[test]
fn a_long_list_of_traits_is_cut_and_the_whole_is_at_most_four_sentences() {
    let names = (0..9)
        .map(|number| format!("label k{number}=v"))
        .collect::<Vec<_>>();
    let traits = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), 6 - at / 5, at % 2))
        .collect::<Vec<_>>();
    let lines = in_common(&outage(&traits, &["11:00:00", "11:00:01"]));
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(
        lines[0],
        "6 of 6 NotReady nodes, and 0 of the 4 others: label k0=v, label k2=v, label k4=v"
    );
}
