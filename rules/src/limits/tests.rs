//! Tests of the limits.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use jiff::SignedDuration;

use super::*;
use crate::{
    facts::{NodeFacts, NodeRead, Standing, Unread},
    samples::{self, Scene, check_each},
};

fn pod(uid: &str, deadline: &str, words: &str) -> Judged {
    let scene = Scene::of(words);
    let name = uid.split('#').next().unwrap_or_default();
    let (namespace, name) = name.split_once('/').unwrap();
    let deadline = format!("2026-03-01T{deadline}:00Z");
    Judged {
        reason: scene.judged(),
        pod: PodFacts {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.into(),
            deletion_deadline: deadline.parse().unwrap(),
            ..scene.pod
        },
        limit: None,
    }
}

/// Returns one pod of each verdict but `reap`.
fn others() -> [Judged; 3] {
    [
        pod("shop/left", "08:00", "skip true"),
        pod("shop/manual", "08:01", "held-by example.org/backup"),
        pod("shop/waiting", "08:02", "tainted 1m"),
    ]
}

fn tally(text: &str) -> Tally {
    let (not_ready, total) = text.split_once('/').unwrap();
    Tally {
        not_ready: not_ready.parse().unwrap(),
        total: total.parse().unwrap(),
    }
}

/// Applies the limits to pods that the words give by UID and deadline. Lists for each pod the
/// reason and the limit beside it, then the limit that holds the run.
fn limited(words: &str) -> Vec<String> {
    let (mut pods, mut node) = (Vec::new(), samples::node());
    let mut facts = ClusterFacts {
        now: samples::now(),
        ..ClusterFacts::default()
    };
    let zone = |name: &str| Zone([Some("eu".to_owned()), Some(name.to_owned())]);
    let mut limits = Limits {
        max_deletes: None,
        max_not_ready_percent: 55,
    };
    for word in words.split(';').map(str::trim) {
        let (what, how) = word.split_once(' ').unwrap_or((word, ""));
        match what {
            "nodes" => {
                let all = tally(how);
                facts.census = counted(all, all, all.not_ready < all.total);
            }
            "workers" => {
                if let Census::Counted { workers, room, .. } = &mut facts.census {
                    (*workers, *room) = (tally(how), true);
                }
            }
            "zone" => {
                let (name, how) = how.split_once(' ').unwrap();
                if let Census::Counted { zones, .. } = &mut facts.census {
                    zones.insert(zone(name), tally(how));
                }
            }
            "in" => node.zone = Some(zone(how)),
            "off" => node.powered_off = Some("2026-03-01T11:30:00Z".to_owned()),
            "clock" => facts.clock = Some("it is wrong".to_owned()),
            "unread" => facts.census = Census::Unread(Unread("nodes is forbidden".to_owned())),
            "percent" => limits.max_not_ready_percent = how.parse().unwrap(),
            "cap" => limits.max_deletes = how.parse().ok(),
            "others" => pods.extend(others()),
            uid => pods.push(pod(uid, how, "")),
        }
    }
    facts.nodes = [("ds06".to_owned(), NodeRead::Known(node))].into();
    let plan = Plan::limited(&facts, pods, &limits);
    let reaped = plan
        .reaps()
        .map(|judged| &judged.pod.uid)
        .collect::<Vec<_>>();
    let pods = plan.pods.iter().map(|judged| {
        let (uid, reason, code) = (&judged.pod.uid, judged.reason.code, judged.code());
        let limit = judged.limit.as_ref().map(|_| format!(", limited: {code}"));
        let goes = if reaped.contains(&uid) { " goes" } else { "" };
        format!("{uid} {reason}{}{goes}", limit.unwrap_or_default())
    });
    let zones = plan.zones.values();
    let held = plan
        .hold
        .iter()
        .chain(zones)
        .map(|hold| format!("{hold:?}"));
    pods.chain(held).collect()
}

#[test]
fn the_breaker_holds_when_too_many_nodes_are_not_ready() {
    check_each(
        &expect![[r#"
            nothing to count: a/b 09:00
                = a/b stuck-on-not-ready-node goes
            two are few: a/b 09:00; nodes 2/3
                = a/b stuck-on-not-ready-node goes
            two are few, whatever the share: a/b 09:00; nodes 2/3; percent 1
                = a/b stuck-on-not-ready-node goes
            60 %: a/b 09:00; nodes 3/5
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 5 nodes are NotReady: 60 %, and the limit is 55 %")
            50 %: a/b 09:00; nodes 3/6
                = a/b stuck-on-not-ready-node goes
            exactly 55 %: a/b 09:00; nodes 11/20
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("11 of 20 nodes are NotReady: 55 %, and the limit is 55 %")
            50 % of twenty: a/b 09:00; nodes 10/20
                = a/b stuck-on-not-ready-node goes
            just below 55 %: a/b 09:00; nodes 54/99
                = a/b stuck-on-not-ready-node goes
            50 %, at 50 %: a/b 09:00; nodes 3/6; percent 50
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 6 nodes are NotReady: 50 %, and the limit is 50 %")
            50 %, at 51 %: a/b 09:00; nodes 3/6; percent 51
                = a/b stuck-on-not-ready-node goes
            3 of 300, at 1 %: a/b 09:00; nodes 3/300; percent 1
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 300 nodes are NotReady: 1 %, and the limit is 1 %")
            99 of 100, at 99 %: a/b 09:00; nodes 99/100; percent 99
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("99 of 100 nodes are NotReady: 99 %, and the limit is 99 %")
            of all few, of the workers 60 %: a/b 09:00; nodes 3/8; workers 3/5
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 5 worker nodes are NotReady: 60 %, and the limit is 55 %")
            of all few, of the workers 40 %: a/b 09:00; nodes 3/8; workers 2/5
                = a/b stuck-on-not-ready-node goes
            both workers, which are two: a/b 09:00; nodes 2/5; workers 2/2
                = a/b stuck-on-not-ready-node goes
            the control plane alone: a/b 09:00; nodes 3/5; workers 0/2
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 5 nodes are NotReady: 60 %, and the limit is 55 %")
            none of two is Ready: a/b 09:00; nodes 2/2
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
            the only one is not Ready: a/b 09:00; nodes 1/1
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
            none is Ready, at 99 %: a/b 09:00; nodes 1/1; percent 99
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
            no real node at all: a/b 09:00; nodes 0/0
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
            100 % turns the share off: a/b 09:00; nodes 3/5; percent 100
                = a/b stuck-on-not-ready-node goes
            100 % turns none Ready off: a/b 09:00; nodes 3/3; percent 100
                = a/b stuck-on-not-ready-node goes
            one zone of several: a/b 09:00; nodes 3/9; zone a 3/3; zone b 0/6; in a
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 3 nodes of zone eu/a are NotReady: 100 %, and the limit is 55 %")
            another one's pods: a/b 09:00; nodes 3/9; zone a 3/3; zone b 0/6; in b
                = a/b stuck-on-not-ready-node goes
                = MassOutage("3 of 3 nodes of zone eu/a are NotReady: 100 %, and the limit is 55 %")
            a node in no zone: a/b 09:00; nodes 3/9; zone a 3/3; zone b 0/6
                = a/b stuck-on-not-ready-node goes
                = MassOutage("3 of 3 nodes of zone eu/a are NotReady: 100 %, and the limit is 55 %")
            two of a zone are few: a/b 09:00; nodes 2/9; zone a 2/2; zone b 0/7; in a
                = a/b stuck-on-not-ready-node goes
            55 % of a zone: a/b 09:00; nodes 11/40; zone a 11/20; zone b 0/20; in a
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("11 of 20 nodes of zone eu/a are NotReady: 55 %, and the limit is 55 %")
            just below 55 % of a zone: a/b 09:00; nodes 6/40; zone a 6/11; zone b 0/29; in a
                = a/b stuck-on-not-ready-node goes
            the only zone, and nodes in none: a/b 09:00; nodes 3/9; zone a 3/3; in a
                = a/b stuck-on-not-ready-node goes
            a zone, and the breaker off: a/b 09:00; nodes 3/9; zone a 3/3; zone b 0/6; in a; percent 100
                = a/b stuck-on-not-ready-node goes
            a zone, and the node is off: a/b 09:00; nodes 3/9; zone a 3/3; zone b 0/6; in a; off
                = a/b stuck-on-not-ready-node goes
                = MassOutage("3 of 3 nodes of zone eu/a are NotReady: 100 %, and the limit is 55 %")
            a held zone takes no place in the cap: a/b 09:00; nodes 3/9; zone a 3/3; zone b 0/6; in a; cap 1
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = MassOutage("3 of 3 nodes of zone eu/a are NotReady: 100 %, and the limit is 55 %")
            60 %, and the node is off: a/b 09:00; nodes 3/5; off
                = a/b stuck-on-not-ready-node goes
                = MassOutage("3 of 5 nodes are NotReady: 60 %, and the limit is 55 %")
            none is Ready, and the node is off: a/b 09:00; nodes 1/1; off
                = a/b stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
            the clock is wrong: a/b 09:00; clock
                = a/b stuck-on-not-ready-node, limited: facts-unread
                = Unread("the time: it is wrong")
            the clock is wrong, and the node is off: a/b 09:00; clock; off; percent 100
                = a/b stuck-on-not-ready-node, limited: facts-unread
                = Unread("the time: it is wrong")
            not counted: a/b 09:00; unread
                = a/b stuck-on-not-ready-node, limited: facts-unread
                = Unread("how many nodes are NotReady, for the breaker: nodes is forbidden")
            not counted, and the breaker off: a/b 09:00; unread; percent 100
                = a/b stuck-on-not-ready-node goes
        "#]],
        limited,
    );
}

/// Counts nodes for the breaker; commas separate the words for each.
fn count(words: &str) -> Census {
    let nodes = words.split(',').map(|words| {
        let is = |word: &str| words.split_whitespace().any(|it| it == word);
        let down = words.split_once("down ").map(|(_, since)| since.trim());
        Standing {
            ready: down.is_none(),
            leaf: is("leaf"),
            control_plane: is("control-plane") || is("reserved"),
            open: !is("reserved") && !is("cordoned"),
            since: down
                .and_then(|since| Some(samples::now() - since.parse::<SignedDuration>().ok()?)),
            zone: None,
            occupied: is("occupied"),
            out_of_service: false,
        }
    });
    Census::count(samples::now(), nodes)
}

/// A node was put away if it has been down for more than a day, and only what stays on every node is
/// left on it.
#[test]
fn a_node_that_was_put_away_counts_in_neither_number() {
    check_each(
        &expect![[r#"
            for more than a day: down 24h 1s, ready, down 24h
                = Counted { all: Tally { not_ready: 1, total: 2 }, workers: Tally { not_ready: 1, total: 2 }, zones: {}, room: true }
            for a day: down 24h, ready, down 24h
                = Counted { all: Tally { not_ready: 2, total: 3 }, workers: Tally { not_ready: 2, total: 3 }, zones: {}, room: true }
            since no one knows when: down unknown, ready, down 24h
                = Counted { all: Tally { not_ready: 2, total: 3 }, workers: Tally { not_ready: 2, total: 3 }, zones: {}, room: true }
            cordoned as well: cordoned down 24h 1s, ready, down 24h
                = Counted { all: Tally { not_ready: 1, total: 2 }, workers: Tally { not_ready: 1, total: 2 }, zones: {}, room: true }
            with a pod: occupied down 24h 1s, ready, down 24h
                = Counted { all: Tally { not_ready: 2, total: 3 }, workers: Tally { not_ready: 2, total: 3 }, zones: {}, room: true }
            Ready, and only cordoned: cordoned, ready, down 24h
                = Counted { all: Tally { not_ready: 1, total: 3 }, workers: Tally { not_ready: 1, total: 3 }, zones: {}, room: true }
        "#]],
        |words| vec![format!("{:?}", count(words))],
    );
}

#[test]
fn the_census_counts_real_nodes() {
    check_each(
        &expect![[r#"
            two of four: control-plane, ready, down 24h, control-plane down 24h, leaf, leaf down 24h, leaf down 24h
                = Counted { all: Tally { not_ready: 2, total: 4 }, workers: Tally { not_ready: 1, total: 2 }, zones: {}, room: true }
            leaves that are down: ready, leaf down 24h, leaf down 24h, leaf down 24h
                = Counted { all: Tally { not_ready: 0, total: 1 }, workers: Tally { not_ready: 0, total: 1 }, zones: {}, room: true }
            leaves that are Ready: down 24h, leaf, leaf
                = Counted { all: Tally { not_ready: 1, total: 1 }, workers: Tally { not_ready: 1, total: 1 }, zones: {}, room: false }
        "#]],
        |words| vec![format!("{:?}", count(words))],
    );
    let none = Census::count(samples::now(), []);
    let nothing = Tally::default();
    assert_eq!(none, counted(nothing, nothing, false));
}

#[test]
fn a_pod_could_start_on_a_ready_node_that_is_neither_cordoned_nor_kept_for_the_control_plane() {
    for (node, room) in [
        ("ready", true),
        ("control-plane", true),
        ("reserved", false),
        ("cordoned", false),
        ("leaf", false),
        ("down 24h", false),
    ] {
        let census = count(&format!("{node}, down 24h"));
        assert!(
            matches!(census, Census::Counted { room: found, .. } if found == room),
            "{node}: {census:?}"
        );
    }
}

#[test]
fn leaf_nodes_neither_trip_the_breaker_nor_hold_it_off() {
    for (nodes, holds) in [
        ("ready, leaf down 24h, leaf down 24h, leaf down 24h", false),
        ("down 24h, leaf, leaf", true),
    ] {
        let limits = Limits {
            max_deletes: None,
            max_not_ready_percent: 55,
        };
        let plan = limited_by(Vec::new(), count(nodes), &limits);
        assert_eq!(plan.hold.is_some(), holds, "{nodes}");
    }
}

#[test]
fn held_pods_wait_and_the_others_are_left_as_they_are() {
    check_each(
        &expect![[r#"
            of five two are held: others; shop/db-0 09:00; shop/db-1 09:01; nodes 3/3
                = shop/left opted-out
                = shop/manual finalizers
                = shop/waiting node-just-failed
                = shop/db-0 stuck-on-not-ready-node, limited: mass-outage
                = shop/db-1 stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
            an outage with nothing to hold is reported all the same: others; nodes 3/3
                = shop/left opted-out
                = shop/manual finalizers
                = shop/waiting node-just-failed
                = NoRoom(None)
            a held run does not mention the cap: shop/db-0 09:00; shop/db-1 09:01; nodes 3/3; cap 1
                = shop/db-0 stuck-on-not-ready-node, limited: mass-outage
                = shop/db-1 stuck-on-not-ready-node, limited: mass-outage
                = NoRoom(None)
        "#]],
        limited,
    );
}

#[test]
fn the_longest_overdue_go_first() {
    check_each(
        &expect![[r#"
            no cap: b/young 09:02; a/middle 09:01; c/old 09:00
                = c/old stuck-on-not-ready-node goes
                = a/middle stuck-on-not-ready-node goes
                = b/young stuck-on-not-ready-node goes
            one: b/young 09:02; a/middle 09:01; c/old 09:00; cap 1
                = c/old stuck-on-not-ready-node goes
                = a/middle stuck-on-not-ready-node, limited: over-cap
                = b/young stuck-on-not-ready-node, limited: over-cap
            two: b/young 09:02; a/middle 09:01; c/old 09:00; cap 2
                = c/old stuck-on-not-ready-node goes
                = a/middle stuck-on-not-ready-node goes
                = b/young stuck-on-not-ready-node, limited: over-cap
            just as many: b/young 09:02; a/middle 09:01; c/old 09:00; cap 3
                = c/old stuck-on-not-ready-node goes
                = a/middle stuck-on-not-ready-node goes
                = b/young stuck-on-not-ready-node goes
            more than there are: b/young 09:02; a/middle 09:01; c/old 09:00; cap 9
                = c/old stuck-on-not-ready-node goes
                = a/middle stuck-on-not-ready-node goes
                = b/young stuck-on-not-ready-node goes
            by namespace, then name, then UID: b/db-0 09:00; a/db-1 09:00; a/db-0#2 09:00; a/db-0#1 09:00; cap 2
                = a/db-0#1 stuck-on-not-ready-node goes
                = a/db-0#2 stuck-on-not-ready-node goes
                = a/db-1 stuck-on-not-ready-node, limited: over-cap
                = b/db-0 stuck-on-not-ready-node, limited: over-cap
            only what is reaped counts: shop/young 09:01; shop/old 09:00; others; cap 1
                = shop/left opted-out
                = shop/manual finalizers
                = shop/waiting node-just-failed
                = shop/old stuck-on-not-ready-node goes
                = shop/young stuck-on-not-ready-node, limited: over-cap
        "#]],
        limited,
    );
}

/// A pod that its zone holds leaves its place to the next one. Zones of one name are told apart by
/// their regions.
#[test]
fn what_a_zone_holds_takes_no_place_in_the_cap() {
    let zone = |region: &str| Some(Zone([Some(region.to_owned()), Some("a".to_owned())]));
    let standing = |region, ready| Standing {
        open: true,
        ready,
        zone: zone(region),
        ..Standing::default()
    };
    let lost = [
        standing("eu", false),
        standing("eu", false),
        standing("eu", false),
    ];
    let others = (0..9).map(|number| standing("us", number > 0));
    let node = |name: &str, region| {
        let node = NodeFacts {
            name: name.to_owned(),
            zone: zone(region),
            ..samples::node()
        };
        (name.to_owned(), NodeRead::Known(node))
    };
    let facts = ClusterFacts {
        now: samples::now(),
        census: Census::count(samples::now(), lost.into_iter().chain(others)),
        nodes: [node("ds06", "eu"), node("ds07", "us")].into(),
        ..ClusterFacts::default()
    };
    let mut free = pod("shop/free", "09:01", "");
    free.pod.node = Some("ds07".to_owned());
    let limits = Limits {
        max_deletes: Some(1),
        max_not_ready_percent: 55,
    };
    let pods = vec![pod("shop/held", "09:00", ""), free];
    let plan = Plan::limited(&facts, pods, &limits);
    let reaped = plan
        .reaps()
        .map(|judged| judged.pod.uid.as_str())
        .collect::<Vec<_>>();
    assert_eq!(reaped, ["shop/free"]);
}

#[test]
fn a_reaped_pod_keeps_what_was_seen() {
    let noted = pod("shop/db-0", "09:00", "claim; on zone In a");
    let census = count("ready, down 24h");
    let limits = Limits {
        max_deletes: Some(1),
        max_not_ready_percent: 55,
    };
    let plan = limited_by(vec![noted.clone()], census, &limits);
    assert_eq!(plan.pods, [noted]);
}

fn counted(all: Tally, workers: Tally, room: bool) -> Census {
    Census::Counted {
        all,
        workers,
        zones: BTreeMap::new(),
        room,
    }
}

fn limited_by(pods: Vec<Judged>, census: Census, limits: &Limits) -> Plan {
    let facts = ClusterFacts {
        now: samples::now(),
        census,
        ..ClusterFacts::default()
    };
    Plan::limited(&facts, pods, limits)
}

/// Returns facts with six of ten nodes NotReady. Each trait has the number of its NotReady and of
/// its Ready nodes; `failed` are the times of failure.
fn outage(traits: &[(&str, usize, usize)], failed: &[&str]) -> ClusterFacts {
    let mut facts = ClusterFacts {
        now: samples::now(),
        ..ClusterFacts::default()
    };
    facts.traits.nodes = tally("6/10");
    for (what, here, there) in traits {
        facts.traits.by_trait.insert(
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
            "6 of 6 NotReady nodes, and 0 of the 4 others: label rack=r7, label zone=b.",
            "5 of 6 NotReady nodes, and 1 of the 4 others: kernel 6.1.9.",
            "3 of 6 NotReady nodes, and 0 of the 4 others: taint maintenance.",
            "4 of 6 failed within a minute, from 2026-03-01 09:00:50Z on.",
        ]
    "#]]
    .assert_debug_eq(&in_common(&outage(&traits, &times)));
}

#[test]
fn where_nothing_is_in_common_that_is_said() {
    let one_by_one = ["07:00:00", "08:00:00", "09:00:00"];
    expect![[r#"
        [
            "No common zone, label, taint or version found.",
            "They failed over 2h, the first at 2026-03-01 07:00:00Z.",
        ]
    "#]]
    .assert_debug_eq(&in_common(&outage(
        &[("label disk=ssd", 4, 3)],
        &one_by_one,
    )));
    // There are no other nodes, so nothing distinguishes the failed ones.
    let mut facts = outage(&[("label disk=ssd", 6, 0)], &[]);
    facts.traits.nodes = tally("6/6");
    assert_eq!(in_common(&facts), [""; 0]);
    // The nodes were not counted.
    facts = outage(&[], &one_by_one);
    facts.traits.nodes = Tally::default();
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
        "6 of 6 NotReady nodes, and 0 of the 4 others: label k0=v, label k2=v, label k4=v."
    );
}
