//! Tests of the counts, their order, and how they fit into a text.
//! `tests/random/foretold.rs` verifies that each node has the forecast that it has when
//! it is named alone, and that a run then agrees.

use expect_test::expect;
use futures_util::FutureExt;
use pod_reaper_test_support::samples;
use serde_json::{Value, json};

use super::*;
use crate::report::{Render as _, page::Log, samples::audit, text, text::Screen};
use crate::source::snapshot::{Options, Saved};

pub fn foretold(settings: &Settings, objects: &[Value]) -> Forecast {
    let text = samples::list(objects.iter().cloned()).to_string();
    let options = Options {
        now: Some(samples::NOW.parse().unwrap()),
        every_pod: true,
    };
    let saved = Saved::read(text.as_bytes(), options).expect("a snapshot");
    let answer = run_on(&saved, settings, |_, _| ()).now_or_never();
    answer.expect("nothing is waited for").expect("an answer")
}

/// Returns a running pod of a `StatefulSet`, changed by `more`.
pub fn running(name: &str, node: &str, more: Value) -> Value {
    let runs = json!({"metadata": {"deletionTimestamp": null}, "status": {"phase": "Running"}});
    samples::with(samples::with(samples::pod("shop", name, node), runs), more)
}

fn tolerating(seconds: Option<i64>) -> Value {
    let toleration = json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": seconds});
    json!({"spec": {"tolerations": [toleration]}})
}

/// Returns a cluster in which each node's death has another loss.
pub fn cluster() -> Vec<Value> {
    let nodes = ["a", "b", "c", "d", "e", "f"].map(|name| samples::node(name, "True"));
    let leaf = json!({"metadata": {"labels": {"kosmos.io/node": "true"}}});
    let mut objects = nodes.to_vec();
    objects.extend(["a", "b", "c", "d", "e", "f"].map(samples::lease));
    objects.extend([
        samples::with(samples::node("leaf", "True"), leaf),
        samples::namespace("shop"),
        samples::claim("shop", "local", "pv-local"),
        samples::directory("pv-local", "a"),
        samples::claim("shop", "moves", "pv-moves"),
        samples::volume("pv-moves", &json!({"csi": {"driver": "ceph"}})),
        json!({"kind": "VolumeAttachment", "metadata": {"name": "csi-1"},
            "spec": {"nodeName": "c", "source": {"persistentVolumeName": "pv-moves"}}}),
        samples::using(running("db-0", "a", json!({})), "local"),
        running("db-1", "f", json!({})),
        running(
            "bare-0",
            "b",
            json!({"metadata": {"ownerReferences": null}}),
        ),
        samples::using(running("web-0", "c", tolerating(Some(3_600))), "moves"),
        running(
            "web-1",
            "c",
            json!({"spec": {"terminationGracePeriodSeconds": 60}}),
        ),
        running("kept-0", "d", tolerating(None)),
        samples::held_by(running("held-0", "d", json!({})), "example.org/hold"),
        running("held-1", "leaf", json!({})),
    ]);
    objects
}

#[test]
fn each_node_is_foretold_by_itself_and_the_worst_comes_first() {
    let answer = foretold(&audit(), &cluster());
    let nodes = answer.nodes.iter().map(|node| node.node.as_str());
    assert_eq!(nodes.collect::<Vec<_>>(), ["d", "a", "b", "c", "f", "e"]);
    let counts = |name: &str| {
        let node = answer.nodes.iter().find(|node| node.node == name);
        node.expect("it is there").counts.clone()
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
    expect![[r"
        Summary: 6 nodes, each dying alone, added up: 2 need you, 1 is lost, 1 workload has no other
        replica, 1 stays down, never evicted, 3 come back, reaped after at most 1h 10m; 1 leaf node left
        out. Exit code 0.

        NODES WITH LASTING DAMAGE, THE WORST FIRST: 4 nodes
          d  1 needs you  1 stays down  0 of 1 back
          a  1 needs you  0 of 1 back
          b  1 lost  0 of 1 back  after 15m
          c  1 workload without a replica  2 of 2 back (1 waits for a volume)  after 1h 10m

        EVERYTHING COMES BACK: 2 nodes
          Up to 1 pod of a node, reaped after at most 15m.

        WHAT WOULD HELP D
          saves up to 1 pod: tolerationSeconds for node.kubernetes.io/unreachable in the pods that tolerate
          it for ever: they would be evicted

        pod-reaper 0.4.0: what if one node died? As of 2026-01-31 03:00:00Z, by state.json. Nothing was
        changed. Assumed: that node alone dies, and a zone has another node for its volumes. A time counts
        from when Kubernetes calls it unreachable, until a run may reap the last of its pods: toleration and
        thresholds, and the grace period if the node has no lease. what-if NODE names the pods.
        Summary: 6 nodes, each dying alone, added up: 2 need you, 1 is lost, 1 workload has no other
        replica, 1 stays down, never evicted, 3 come back, reaped after at most 1h 10m; 1 leaf node left
        out. Exit code 0.
    "]].assert_eq(&text::write(&answer.page(), Screen::default()));
}

#[test]
fn where_the_breaker_would_hold_is_no_lasting_damage() {
    let mut objects = cluster();
    objects.retain(|object| object["kind"] != "Node" || object["metadata"]["name"] == "f");
    let text = text::write(&foretold(&audit(), &objects).page(), Screen::default());
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
    assert_eq!(foretold(&settings, &cluster()).whole.seconds, 7_200);
}

#[test]
fn what_would_help_the_worst_node_is_named_with_what_it_saves() {
    let saves = |objects: &[Value]| {
        let changes = foretold(&audit(), objects).changes.into_iter();
        let saves = changes.map(|change| (change.setting, change.saves_pods, change.saves_seconds));
        saves.collect::<Vec<_>>()
    };
    let mut objects = cluster();
    assert_eq!(saves(&objects), [(Setting::Toleration, 1, 0)]);
    objects.retain(|object| object["metadata"]["name"] != "kept-0");
    assert_eq!(saves(&objects), [(Setting::Scratch, 1, 0)]);
    for gone in ["db-0", "held-0", "bare-0"] {
        objects.retain(|object| object["metadata"]["name"] != gone);
    }
    let sooner = [(Setting::Toleration, 0, 3_540), (Setting::Eager, 0, 480)];
    assert_eq!(saves(&objects), sooner);
}

/// A pod that is Terminating or has finished does not stay down, although it tolerates
/// its node for ever.
#[test]
fn only_what_would_run_on_is_down_for_good() {
    for change in [
        json!({"metadata": {"deletionTimestamp": samples::FAILED}}),
        json!({"status": {"phase": "Succeeded"}}),
    ] {
        let mut objects = cluster();
        let kept = objects
            .iter_mut()
            .find(|it| it["metadata"]["name"] == "kept-0");
        let kept = kept.expect("it is there");
        *kept = samples::with(kept.clone(), change.clone());
        assert_eq!(foretold(&audit(), &objects).whole.stays_down, 0, "{change}");
    }
}

/// Nothing evicts such a pod, so nothing becomes Terminating, but that is no all-clear.
#[test]
fn a_pod_that_is_never_evicted_is_no_good_end() {
    let mut objects = cluster();
    objects.retain(|object| object["metadata"]["name"] != "held-0");
    let answer = foretold(&audit(), &objects);
    let node = answer.nodes.iter().find(|node| node.node == "d");
    let node = node.expect("it is there");
    assert_eq!((node.counts.stays_down, node.is_harmless()), (1, false));
}

#[test]
fn pods_of_other_namespaces_are_only_counted() {
    let mut settings = audit();
    settings.namespaces.include = Some("^etl$".parse().expect("a pattern"));
    let whole = foretold(&settings, &cluster()).whole;
    let left_out = Counts {
        evicted: 6,
        left_out: 6,
        ..Counts::default()
    };
    assert_eq!(whole, left_out);
}

/// The forecast of each node asks whether a node that was put away has a Terminating pod, although
/// that node has a forecast of its own.
#[test]
fn what_one_forecast_has_asked_is_there_for_the_next() {
    let long_ago = json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let away = json!({"spec": {"unschedulable": true}, "status": {"conditions": long_ago}});
    let mut objects = cluster();
    objects.push(samples::with(samples::node("z", "Unknown"), away));
    objects.push(samples::pod("shop", "left-0", "z"));
    let answer = foretold(&audit(), &objects);
    let away = answer.nodes.iter().find(|node| node.node == "z");
    assert_eq!(away.expect("it is there").counts.evicted, 1);
}

#[test]
fn a_text_has_room_for_any_number_of_nodes_and_the_log_names_the_rest() {
    let mut objects = cluster();
    for at in 0..300 {
        let (node, pod) = (format!("node-{at}.example.org"), format!("db-{}", at + 2));
        objects.push(samples::node(&node, "True"));
        objects.push(samples::lease(&node));
        let runs = running(&pod, &node, json!({}));
        objects.push(if at % 2 == 0 {
            runs
        } else {
            samples::using(runs, "local")
        });
    }
    let answer = foretold(&audit(), &objects);
    let page = answer.page();
    let text = text::write(&page, Screen::default());
    assert!(text.lines().count() <= 100, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let need = answer
        .nodes
        .iter()
        .filter(|node| node.counts.needs_person > 0);
    let need = need.collect::<Vec<_>>();
    assert_eq!(need.len(), 152);
    for node in need {
        let begins = format!("{} died: 1 needs you", node.node);
        let logged = page
            .log(Log::Pods)
            .iter()
            .any(|line| line.starts_with(&begins));
        let shown = text.contains(&format!("  {}  1 needs you", node.node));
        assert!(
            logged != shown,
            "{}: {text}\n{:?}",
            node.node,
            page.log(Log::Pods)
        );
    }
    assert!(text.contains("EVERYTHING COMES BACK: 152 nodes"), "{text}");
}
