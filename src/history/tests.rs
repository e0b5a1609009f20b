use super::*;
use crate::{cli::Cli, kubernetes::NodeObjects};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn at(minutes: i32) -> Timestamp {
    "2026-11-28T12:00:00Z".parse::<Timestamp>().unwrap() + MINUTE * minutes
}

fn node(uid: &str, boot_id: &str) -> NodeFacts {
    let node = json!({"metadata": {"name": "ds06", "uid": uid}, "status": {"nodeInfo": {"bootID": boot_id}}});
    let objects = NodeObjects {
        node: serde_json::from_value(node).unwrap(),
        lease: Ok(None),
        now: at(0),
    };
    let cli = Cli::try_from_args(["pod-reaper".into()]).unwrap();
    objects.into_facts(&cli.options.common.policy).unwrap()
}

fn pod(number: usize, attached: bool) -> Reaped {
    Reaped {
        namespace: "impala-impala01".to_owned(),
        name: format!("hiveserver2-7c9d8b6f5-{number:05}"),
        owner_kind: Some("ReplicaSet".to_owned()),
        attached,
        shared: false,
        at: at(0),
        trace: Trace::Gone,
    }
}

/// Notes of nodes that were reaped one minute after the other, with fifty pods each.
fn many(nodes: i32, rename: fn(&mut Reaped)) -> Notes {
    let mut notes = Notes::new();
    for number in 0..nodes {
        let uid = format!("0a1b2c3d-0000-4000-8000-{number:012}");
        let mut pods = (0..MAX_PODS).map(|number| pod(number, true)).collect_vec();
        pods.iter_mut().for_each(rename);
        // Each is a machine of its own.
        let node = node(&uid, &uid);
        begin(&mut notes, &node, at(number)).add(pods);
    }
    notes
}

/// The pods of a namespace that were deleted first drop no pod of another one from the note.
#[test]
fn no_namespace_drops_the_pods_of_another() {
    let mut notes = Notes::new();
    let node = node("0a1b2c3d-0000-4000-8000-000000000000", "machine");
    let tenants = (0..MAX_PODS + 2).map(|number| pod(number, true));
    let other = Reaped {
        namespace: "victim".to_owned(),
        at: at(1),
        ..pod(MAX_PODS + 2, true)
    };
    let noted = begin(&mut notes, &node, at(0));
    noted.add(tenants.chain([other]).collect());
    assert_eq!((noted.pods.len(), noted.more), (MAX_PODS, 3));
    assert!(noted.pods.iter().any(|pod| pod.namespace == "victim"));
}

fn bytes(notes: &Notes) -> usize {
    let texts = notes
        .iter()
        .map(|(uid, noted)| uid.len() + noted.text().len());
    texts.sum()
}

/// If there are too many nodes, the oldest are dropped. If there are too many bytes, the pods of the oldest nodes are dropped.
#[test]
fn the_oldest_goes_first() {
    let most = MAX_BYTES - MAX_REPORT_BYTES;
    let usual: fn(&mut Reaped) = |_| {};
    let longest: fn(&mut Reaped) = |pod| pod.name = format!("{:x<253}", pod.name);
    // Nodes and kilobytes before; nodes left; those with their pods; those without.
    let mut seen = Vec::new();
    for (nodes, rename) in [(10, usual), (100, usual), (120, usual), (100, longest)] {
        let mut notes = many(nodes, rename);
        let before = bytes(&notes);
        fit(&mut notes, at(nodes));
        assert!(bytes(&notes) <= most);
        let newest = notes.values().map(|noted| noted.last_reap).max();
        assert_eq!(newest, Some(at(nodes - 1)));
        let (bare, whole): (Vec<_>, Vec<_>) =
            notes.values().partition(|noted| noted.pods.is_empty());
        assert!(
            whole
                .iter()
                .all(|whole| bare.iter().all(|bare| bare.last_reap < whole.last_reap))
        );
        assert!(bare.iter().all(|noted| noted.more == MAX_PODS));
        seen.push((nodes, before / 1_000, notes.len(), whole.len(), bare.len()));
    }
    let expected = [
        (10, 79, 10, 10, 0),
        (100, 790, 100, 52, 48),
        (120, 948, 100, 52, 48),
        (100, 1_920, 100, 21, 79),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_node_is_remembered_for_a_week() {
    let mut notes = many(1, |_| {});
    let week = 7 * 24 * 60;
    fit(&mut notes, at(week - 1));
    assert_eq!(notes.len(), 1);
    fit(&mut notes, at(week));
    assert_eq!(notes.len(), 0);
}

/// If a node has more than fifty pods, the note names those with a volume.
#[test]
fn pods_with_volumes_are_named_first() {
    let mut notes = Notes::new();
    let pods = (0..60).map(|number| pod(number, number >= 55)).collect();
    let noted = begin(&mut notes, &node("uid", ""), at(0));
    noted.add(pods);
    assert_eq!((noted.pods.len(), noted.more), (50, 10));
    assert!(noted.pods[..5].iter().all(|pod| pod.attached) && !noted.pods[5].attached);
}

/// A later run of one outage adds to the note. A node that was back is noted anew, as is one whose machine was rebooted. A boot ID
/// that once told nothing tells nothing until then.
#[test]
fn a_new_outage_is_a_new_note() {
    let (same, told) = (NodeState::BackSameBoot, NodeState::Unknown);
    for (was, is, returned, adds, boot_id) in [
        ("a", "a", None, true, "a"),
        ("a", "b", None, false, "b"),
        ("a", "a", Some(same), false, "a"),
        ("", "a", Some(told), false, "a"),
        ("", "a", None, true, ""),
        ("a", "", None, true, ""),
        ("a", "not a boot ID", None, true, ""),
    ] {
        let mut notes = Notes::new();
        let first = begin(&mut notes, &node("uid", was), at(0));
        first.add(vec![pod(1, true)]);
        first.told = returned.map(|state| Return {
            state,
            ready_since: None,
        });
        let later = begin(&mut notes, &node("uid", is), at(10)).clone();
        let expected = if adds { (at(0), 1) } else { (at(10), 0) };
        assert_eq!((later.first_reap, later.pods.len()), expected, "{was} {is}");
        assert_eq!(
            (later.last_reap, later.boot_id.as_str()),
            (at(10), boot_id),
            "{was} {is}"
        );
        assert_eq!(later.told, None);
    }
}

/// A node that registered anew while its machine ran on keeps its note. After a reboot it may be another machine.
#[test]
fn a_node_that_registered_anew_keeps_its_note() {
    for (was, is, left) in [("a", "a", 1), ("a", "b", 2), ("", "", 2)] {
        let mut notes = Notes::new();
        begin(&mut notes, &node("old", was), at(0)).add(vec![pod(1, true)]);
        let later = begin(&mut notes, &node("new", is), at(10)).clone();
        assert_eq!(later.pods.len(), usize::from(left == 1), "{was} {is}");
        assert_eq!(notes.len(), left, "{was} {is}");
    }
}

/// A patch has only the keys that differ, and what it writes is read alike.
#[test]
fn only_what_differs_is_written() {
    let before = many(3, |_| {});
    let mut after = before.clone();
    assert_eq!(changes(&before, &after).len(), 0);
    let (gone, _) = after.pop_first().unwrap();
    begin(&mut after, &node("uid-4", "b"), at(9));
    let patch = changes(&before, &after);
    assert_eq!(patch.keys().collect_vec(), [gone.as_str(), "uid-4"]);
    assert_eq!(patch[gone.as_str()], Value::Null);
    let whole = changes(&Notes::new(), &after).into_iter();
    let mut data = whole
        .map(|(uid, text)| (uid, text.as_str().unwrap().to_owned()))
        .collect::<BTreeMap<_, _>>();
    data.insert(LAST_REPORT.to_owned(), "a report".to_owned());
    assert_eq!(parse(&data), (after, BTreeMap::new()));
}
