//! Tests of the supposed facts, and of which pods come back. The tests in `tests/` verify that a
//! run decides everything else in the same way.

use futures_util::FutureExt;
use pod_reaper_test_support::samples;
use serde_json::{Value, json};

use super::*;
use crate::{
    decide::ReasonCode,
    exit::Exit,
    kubernetes::RawPod,
    report::samples::audit,
    source::snapshot::{Options, Saved},
};

fn summary(spec: &Value, owner: Option<(&str, &str)>, labels: &Value) -> PodSummary {
    let owners =
        owner.map(|(kind, name)| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true}]));
    let pod = json!({
        "metadata": {"namespace": "shop", "name": "db-0", "uid": "u", "ownerReferences": owners, "labels": labels},
        "spec": spec, "status": {"phase": "Running"},
    });
    serde_json::from_value::<RawPod>(pod).unwrap().summary()
}

#[test]
fn a_toleration_is_read_as_kubernetes_reads_it() {
    let unreachable = "node.kubernetes.io/unreachable";
    for (name, tolerations, stays) in [
        ("none", json!([]), false),
        (
            "for ever",
            json!([{"key": unreachable, "operator": "Exists", "effect": "NoExecute"}]),
            true,
        ),
        (
            "any effect",
            json!([{"key": unreachable, "operator": "Exists"}]),
            true,
        ),
        ("anything", json!([{"operator": "Exists"}]), true),
        ("equal to nothing", json!([{"key": unreachable}]), true),
        (
            "equal to something",
            json!([{"key": unreachable, "value": "x"}]),
            false,
        ),
        (
            "another key",
            json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]),
            false,
        ),
        (
            "another effect",
            json!([{"operator": "Exists", "effect": "NoSchedule"}]),
            false,
        ),
        (
            "for a while",
            json!([{"key": unreachable, "operator": "Exists", "tolerationSeconds": 300}]),
            false,
        ),
        (
            "the first that fits counts",
            json!([{"key": unreachable, "operator": "Exists", "tolerationSeconds": 1}, {"operator": "Exists"}]),
            false,
        ),
    ] {
        let stay = summary(
            &json!({"tolerations": tolerations}),
            Some(("StatefulSet", "db")),
            &json!({}),
        )
        .stays;
        assert_eq!(stay, stays.then_some(Stay::Tolerates), "{name}");
    }
    assert_eq!(
        summary(&json!({}), Some(("DaemonSet", "exporter")), &json!({})).stays,
        Some(Stay::DaemonSet)
    );
}

#[test]
fn a_version_of_a_deployment_is_that_deployment() {
    let of = |name, hash| {
        let labels = json!({"pod-template-hash": hash});
        summary(&json!({}), Some(("ReplicaSet", name)), &labels)
            .workload
            .map(|owner| (owner.kind, owner.name))
    };
    assert_eq!(
        of("web-7c9d", "7c9d"),
        Some(("Deployment".to_owned(), "web".to_owned()))
    );
    assert_eq!(
        of("web-7c9d", "other"),
        Some(("ReplicaSet".to_owned(), "web-7c9d".to_owned()))
    );
}

/// Forecasts the death of the nodes `dead` by a snapshot with `objects`.
fn foretold(settings: &Settings, objects: &[Value], dead: &[&str]) -> WhatIf {
    let text = samples::list(objects.iter().cloned()).to_string();
    let options = Options {
        now: Some(samples::NOW.parse().unwrap()),
        every_pod: true,
    };
    let saved = Saved::read(text.as_bytes(), options).expect("a snapshot");
    let dead = dead.iter().map(|name| (*name).to_owned()).collect();
    let answer = run_on(&saved, settings, &dead).now_or_never();
    answer.expect("nothing is waited for").expect("they exist")
}

#[test]
fn without_a_controller_nothing_comes_back() {
    let running = json!({"metadata": {"deletionTimestamp": null}});
    let owned = samples::with(samples::pod("shop", "db-0", "a"), running);
    let mut bare = samples::with(
        owned.clone(),
        json!({"metadata": {"name": "bare", "uid": "bare"}}),
    );
    bare["metadata"]["ownerReferences"] = json!([]);
    let nodes = ["a", "b"].map(|name| samples::node(name, "True"));
    let mut objects = nodes.to_vec();
    objects.extend([samples::lease("a"), samples::namespace("shop"), owned, bare]);
    let pods = foretold(&audit(), &objects, &["a"]).pods;
    let fates = pods.iter().map(|pod| (pod.name.as_str(), pod.fate));
    assert_eq!(
        fates.collect::<Vec<_>>(),
        [("db-0", Fate::ComesBack), ("bare", Fate::Lost)]
    );
}

#[test]
fn the_supposed_nodes_are_counted_with_those_that_are_dead_already() {
    let nodes = [
        ("a", "True"),
        ("b", "True"),
        ("c", "True"),
        ("d", "Unknown"),
    ];
    let mut objects = nodes
        .map(|(name, ready)| samples::node(name, ready))
        .to_vec();
    objects.extend([
        samples::namespace("shop"),
        samples::pod("shop", "db-0", "a"),
    ]);
    let held = |dead: &[&str]| {
        let breaker = foretold(&audit(), &objects, dead).breaker;
        breaker.map(|breaker| breaker.detail)
    };
    assert_eq!(held(&["a"]), None);
    let outage = held(&["a", "b"]).expect("it holds");
    assert!(outage.contains("3 of 4 nodes are NotReady"), "{outage}");
}

/// Of the nodes that live, only the breaker asks whether they have a Terminating pod.
#[test]
fn a_node_that_was_put_away_counts_only_with_a_terminating_pod() {
    let away = |name| {
        let long_ago = json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let more = json!({"spec": {"unschedulable": true}, "status": {"conditions": long_ago}});
        samples::with(samples::node(name, "Unknown"), more)
    };
    let objects = |on: &str| {
        let nodes = ["a", "b", "c"].map(|name| samples::node(name, "True"));
        let others = [away("d"), away("e"), samples::pod("shop", "old", on)];
        nodes.into_iter().chain(others).collect::<Vec<_>>()
    };
    let breaker = |on| foretold(&audit(), &objects(on), &["a", "b"]).breaker;
    assert_eq!(breaker("a"), None);
    // The supposed death is recent, so the node does not count as put away.
    let of_all = foretold(&audit(), &objects("a"), &["a", "b", "d"]).breaker;
    assert!(of_all.is_some_and(|breaker| breaker.detail.contains("3 of 4 nodes")));
    assert!(breaker("d").is_some_and(|breaker| breaker.detail.contains("3 of 4 nodes")));
}

/// A forecast reads whether claims are created again, as a run does, although the node lives.
#[test]
fn scratch_is_foretold_as_it_is_reaped() {
    let cache = samples::using(samples::pod("shop", "cache-0", "a"), "disk-cache-0");
    let labels = json!({"apps.kubernetes.io/pod-index": "0"});
    let mut cache = samples::with(cache, json!({"metadata": {"labels": labels}}));
    cache["metadata"]["deletionTimestamp"] = Value::Null;
    let objects = [
        samples::node("a", "True"),
        samples::node("b", "True"),
        samples::namespace("shop"),
        samples::lease("a"),
        samples::set("shop", "cache", &["disk"]),
        samples::scratch("shop", "disk-cache-0", "pv-1"),
        samples::directory("pv-1", "a"),
        cache,
    ];
    let reason = |scratch| {
        let mut settings = audit();
        settings.policy.reap_scratch = scratch;
        let pod = foretold(&settings, &objects, &["a"]).pods.remove(0);
        (pod.fate, pod.judgement.reason)
    };
    assert_eq!(reason(true), (Fate::ComesBack, Some(ReasonCode::Scratch)));
    assert_eq!(
        reason(false),
        (Fate::NeedsPerson, Some(ReasonCode::LocalVolume))
    );
}

#[test]
fn a_pod_that_cannot_be_judged_stays_terminating() {
    let mut pod = samples::pod("shop", "a-0", "a");
    pod["metadata"]["uid"] = Value::Null;
    let nodes = ["a", "b"].map(|name| samples::node(name, "True"));
    let others = [samples::lease("a"), samples::namespace("shop"), pod];
    let objects = nodes.into_iter().chain(others).collect::<Vec<_>>();
    let forecast = foretold(&audit(), &objects, &["a"]);
    assert_eq!(forecast.summary[&Fate::LeftTerminating], 1);
    let pods = forecast.pods.iter();
    assert_eq!(
        pods.map(|pod| (pod.fate, pod.judgement.verdict))
            .collect::<Vec<_>>(),
        [(Fate::LeftTerminating, None)]
    );
}

#[test]
fn what_could_not_be_read_is_named_and_makes_another_exit_code() {
    let nodes = ["a", "b"].map(|name| samples::node(name, "True"));
    let mut objects = nodes.to_vec();
    objects.extend([samples::lease("a"), samples::namespace("shop")]);
    objects.push(samples::pod("shop", "a-0", "a"));
    let head = foretold(&audit(), &objects, &["a"]).head;
    assert_eq!((head.errors.len(), head.exit), (0, Exit::Done));
    objects.push(json!({"kind": "Pod", "metadata": {"name": "odd", "namespace": "shop"}, "spec": {"nodeName": 6}}));
    let head = foretold(&audit(), &objects, &["a"]).head;
    assert_eq!((head.errors.len(), head.exit), (1, Exit::Incomplete));
}
