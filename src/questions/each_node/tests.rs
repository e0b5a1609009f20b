//! Tests of the counts, their order, and how they fit into a text. `tests/random/foretold.rs`
//! verifies that each node's forecast equals that of the node when named alone, and that a run then
//! agrees.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use pod_reaper_test_support::{
    at_once,
    samples::{objects, with, yaml},
};

use super::*;
use crate::report::{
    Counts,
    page::Block,
    samples::{audit, saved},
    text,
    text::Screen,
};

/// Forecasts the death of each node by a snapshot of [`CLUSTER`] with `more`.
fn foretold(settings: &Settings, more: &str) -> Report {
    let described = with(yaml(CLUSTER), yaml(more));
    let saved = saved(&objects(&described), true);
    at_once(run_on((&saved).into(), settings, |_, _| ())).expect("an answer")
}

fn nodes(report: &Report) -> &[NodeForecast] {
    report.each_node.as_deref().expect("a forecast")
}

/// Adds up the counts of all nodes, and takes the longest of their times.
fn whole(report: &Report) -> Counts {
    let mut whole = Counts::default();
    for NodeForecast { counts, .. } in nodes(report) {
        whole.evicted += counts.evicted;
        whole.comes_back += counts.comes_back;
        whole.wait_for_volume += counts.wait_for_volume;
        whole.lost += counts.lost;
        whole.needs_person += counts.needs_person;
        whole.left_terminating += counts.left_terminating;
        whole.stays_down += counts.stays_down;
        whole.left_out += counts.left_out;
        whole.without_replica += counts.without_replica;
        whole.seconds = whole.seconds.max(counts.seconds);
    }
    whole
}

/// A cluster in which each node's death causes a different loss.
const CLUSTER: &str = "
    Node a: {ready: 'True'}
    Node b: {ready: 'True'}
    Node c: {ready: 'True'}
    Node d: {ready: 'True'}
    Node e: {ready: 'True'}
    Node f: {ready: 'True'}
    Node leaf: {ready: 'True', metadata: {labels: {kosmos.io/node: 'true'}}}
    Namespace shop: {}
    PersistentVolumeClaim shop/local: {volume: pv-local}
    PersistentVolume pv-local: {on: a, spec: {local: {path: /x}}}
    PersistentVolumeClaim shop/moves: {volume: pv-moves}
    PersistentVolume pv-moves: {}
    VolumeAttachment csi-1: {node: c, volume: pv-moves}
    Pod shop/db-0: {node: a, grace: null, uses: local}
    Pod shop/db-1: {node: f, grace: null}
    Pod shop/bare-0: {node: b, grace: null, owner: null}
    Pod shop/web-0: {node: c, grace: null, uses: moves, spec: {tolerations: [
        {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}
    Pod shop/web-1: {node: c, grace: null, spec: {terminationGracePeriodSeconds: 60}}
    Pod shop/kept-0: {node: d, grace: null, spec: {tolerations: [
        {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute}]}}
    Pod shop/held-0: {node: d, grace: null, metadata: {finalizers: [example.org/hold]}}
    Pod shop/held-1: {node: leaf, grace: null}
";

#[test]
fn each_node_is_foretold_by_itself_and_the_worst_comes_first() {
    let answer = foretold(&audit(), "{}");
    let names = nodes(&answer).iter().map(|node| node.node.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["d", "a", "b", "c", "f", "e"]);
    let counts = |name: &str| {
        let node = nodes(&answer).iter().find(|node| node.node == name);
        let mut counts = node.expect("it is there").counts.clone();
        // The savings by other settings have a test of their own.
        (counts.seconds_tolerating_less, counts.local) = (0, 0);
        counts
    };
    // The seconds are those of toleration and threshold: the grace period is cut short.
    let reaped = |comes_back, seconds| Counts {
        evicted: comes_back,
        comes_back,
        seconds,
        ..Counts::default()
    };
    assert_eq!(counts("f"), reaped(1, 300 + 600));
    let web = Counts {
        wait_for_volume: 1,
        without_replica: 1,
        ..reaped(2, 3_600 + 600)
    };
    assert_eq!(counts("c"), web);
    let bare = Counts {
        comes_back: 0,
        lost: 1,
        ..reaped(1, 900)
    };
    assert_eq!(counts("b"), bare);
    assert_eq!((counts("a").needs_person, counts("d").needs_person), (1, 1));
    expect![[r#"
        WHAT IF one node died, from state.json, judged at 2026-01-31 03:00Z. Nothing was changed.
        NODES  6 nodes, each dying alone; 1 leaf node left out
        PODS   added up: 2 need you, 1 is lost, 1 workload has no other replica, 1 stays down, never
               evicted, 3 come back, reaped after at most 1h 10m

        NODES WITH LASTING DAMAGE, THE WORST FIRST: 4 nodes
          d  1 needs you, 1 stays down  0 of 1 back
          a  1 needs you  0 of 1 back
          b  1 lost  0 of 1 back  after 15m
          c  1 workload without a replica  2 of 2 back (1 waits for a volume)  after 1h 10m

        EVERYTHING COMES BACK: 2 nodes
          Up to 1 pod of a node, reaped after at most 15m.

        WHAT WOULD HELP D
          saves up to 1 pod: tolerationSeconds for node.kubernetes.io/unreachable in the pods that tolerate
          it forever: they would then be evicted

        pod-reaper 0.5.0. Stuck means overdue for 10m, on a node NotReady for 10m. Namespaces: all. Assumed:
        only that node dies, and its zone has another node for its volumes. A time is measured from the
        moment at which Kubernetes marks the node unreachable until a run may reap the last of its pods. It
        adds up toleration and thresholds, and the grace period if the node has no lease. what-if NODE names
        the pods.
    "#]].assert_eq(&text::write(&answer.page(), Screen::default()));
}

#[test]
fn where_the_breaker_would_hold_is_no_lasting_damage() {
    let only =
        "{Node a: null, Node b: null, Node c: null, Node d: null, Node e: null, Node leaf: null}";
    let text = text::write(&foretold(&audit(), only).page(), Screen::default());
    assert!(
        text.contains("THE BREAKER WOULD HOLD: 1 node\n  f  1 workload without a replica  1 of 1 back  after 15m\n"),
        "{text}"
    );
    assert!(!text.contains("LASTING DAMAGE"), "{text}");
}

#[test]
fn the_time_goes_by_the_thresholds() {
    let mut settings = audit();
    settings.policy.node_not_ready_for = jiff::SignedDuration::from_hours(2);
    assert_eq!(whole(&foretold(&settings, "{}")).seconds, 7_200);
}

#[test]
fn what_would_help_the_worst_node_is_named_with_what_it_saves() {
    let saves = |more: &str| {
        let sections = foretold(&audit(), more).page().sections;
        let section = sections.into_iter().find(|section| section.id == "changes");
        let changes = section.expect("it is there").blocks.into_iter();
        let changes = changes.map(|block| match block {
            Block::Paragraph { text, .. } => {
                let words = text.split_whitespace();
                words.take(6).collect::<Vec<_>>().join(" ")
            }
            block => panic!("{block:?}"),
        });
        changes.collect::<Vec<_>>()
    };
    assert_eq!(saves("{}"), ["saves up to 1 pod: tolerationSeconds"]);
    let without = "{Pod shop/kept-0: null}";
    assert_eq!(saves(without), ["saves up to 1 pod: the"]);
    let without = "{Pod shop/kept-0: null, Pod shop/db-0: null, Pod shop/held-0: null, Pod shop/bare-0: null}";
    let sooner = [
        "saves up to 59m: tolerationSeconds: 60",
        "saves up to 8m: the `eager`",
    ];
    assert_eq!(saves(without), sooner);
}

/// A pod that is Terminating or has finished does not stay down, although it tolerates its node
/// forever.
#[test]
fn only_what_would_run_on_is_down_for_good() {
    for change in ["{grace: 1}", "{phase: Succeeded}"] {
        let answer = foretold(&audit(), &format!("Pod shop/kept-0: {change}"));
        assert_eq!(whole(&answer).stays_down, 0, "{change}");
    }
}

/// Kubernetes never evicts such a pod, so no pod becomes Terminating, but that is no all-clear.
#[test]
fn a_pod_that_is_never_evicted_is_no_good_end() {
    let answer = foretold(&audit(), "Pod shop/held-0: null");
    let node = nodes(&answer).iter().find(|node| node.node == "d");
    assert_eq!(node.expect("it is there").counts.stays_down, 1);
    let text = text::write(&answer.page(), Screen::default());
    let (bad, harmless) = text.split_once("EVERYTHING COMES BACK").expect(&text);
    assert!(
        bad.contains("\n  d  1 stays down") && !harmless.contains("  d  "),
        "{text}"
    );
}

#[test]
fn pods_of_other_namespaces_are_only_counted() {
    let mut settings = audit();
    settings.namespaces.include = Some("^etl$".parse().expect("a pattern"));
    let whole = whole(&foretold(&settings, "{}"));
    let left_out = Counts {
        evicted: 6,
        left_out: 6,
        ..Counts::default()
    };
    assert_eq!(whole, left_out);
}

/// `RabbitMQ`'s operator gives its pods a grace period of a week.
#[test]
fn a_weeks_grace_is_waited_for_only_on_a_node_without_a_lease() {
    const WEEK: i64 = 604_800;
    let rabbit = format!(
        "{{Pod shop/db-0: null, Pod shop/db-1: null, Pod shop/bare-0: null, Pod shop/web-0: null, Pod shop/web-1: null,
        Pod shop/kept-0: null, Pod shop/held-0: null, Pod shop/held-1: null,
        Pod shop/rabbit-0: {{node: f, grace: null, spec: {{terminationGracePeriodSeconds: {WEEK}}}}}}}"
    );
    let seconds = |more: &str| whole(&foretold(&audit(), more)).seconds;
    assert_eq!(seconds(&rabbit), 300 + 600);
    let without_lease = rabbit.replacen('{', "{Node f: {lease: null}, ", 1);
    assert_eq!(seconds(&without_lease), 300 + WEEK + 600);
}
