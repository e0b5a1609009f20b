//! Tests of the supposed facts, and of which pods are recreated. The tests in `tests/` verify that
//! a run decides everything else in the same way.

use pod_reaper_test_support::{
    at_once,
    samples::{objects, with, yaml},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    decide::ReasonCode,
    exit::Exit,
    kubernetes::RawPod,
    report::samples::{audit, saved},
};

fn summary(spec: &Value, owner: Option<(&str, &str)>, labels: &Value) -> PodFacts {
    let owner = owner.map(|(kind, name)| format!("{kind} {name}"));
    let pod = json!({"grace": null, "owner": owner, "metadata": {"labels": labels}, "spec": spec});
    let pod = objects(&json!({"Pod shop/db-0": pod})).remove(0);
    serde_json::from_value::<RawPod>(pod).unwrap().facts()
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
        assert_eq!(stay, stays.then_some(StayReason::Tolerates), "{name}");
    }
    assert_eq!(
        summary(&json!({}), Some(("DaemonSet", "exporter")), &json!({})).stays,
        Some(StayReason::DaemonSet)
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

/// Two Ready nodes.
const CLUSTER: &str = "{Node a: {ready: 'True'}, Node b: {ready: 'True'}, Namespace shop: {}}";

/// Forecasts the death of the nodes `dead` by a snapshot of [`CLUSTER`] with `more`.
fn foretold(settings: &Settings, more: &str, dead: &[&str]) -> Report {
    let described = with(yaml(CLUSTER), yaml(more));
    let saved = saved(&objects(&described), true);
    let dead = dead.iter().map(|name| (*name).to_owned()).collect();
    at_once(run_on((&saved).into(), settings, &dead)).expect("they exist")
}

#[test]
fn without_a_controller_nothing_comes_back() {
    let pods = "{Pod shop/db-0: {node: a, grace: null}, Pod shop/bare: {node: a, grace: null}}";
    let pods = foretold(&audit(), pods, &["a"]).pods;
    let fates = pods.iter().map(|pod| (pod.name.as_str(), pod.fate));
    assert_eq!(
        fates.collect::<Vec<_>>(),
        [("db-0", Some(Fate::ComesBack)), ("bare", Some(Fate::Lost))]
    );
}

#[test]
fn the_supposed_nodes_are_counted_with_those_that_are_dead_already() {
    let more = "{Node c: {ready: 'True'}, Node d: {}, Pod shop/db-0: {node: a}}";
    let held = |dead: &[&str]| {
        let Report { breaker, pods, .. } = foretold(&audit(), more, dead);
        let reasons = pods.iter().map(|pod| pod.reason);
        (breaker.is_some(), reasons.collect::<Vec<_>>())
    };
    assert_eq!(held(&["a"]), (false, vec![Some(ReasonCode::Stuck)]));
    assert_eq!(
        held(&["a", "b"]),
        (true, vec![Some(ReasonCode::MassOutage)])
    );
}

/// A forecast reads whether PVCs are created again, as a run does, although the node is alive.
#[test]
fn scratch_is_foretold_as_it_is_reaped() {
    let cache = "
        Pod shop/cache-0: {node: a, grace: null, uses: disk-cache-0, metadata: {labels: {apps.kubernetes.io/pod-index: '0'}}}
        StatefulSet shop/cache: {spec: {volumeClaimTemplates: [{metadata: {name: disk}}]}}
        PersistentVolumeClaim shop/disk-cache-0: {volume: pv-1, metadata: {annotations: {pod-reaper.io/scratch: 'true'}}}
        PersistentVolume pv-1: {on: a, spec: {local: {path: /x}}}
    ";
    let reason = |scratch| {
        let mut settings = audit();
        settings.policy.reap_scratch = scratch;
        let pod = foretold(&settings, cache, &["a"]).pods.remove(0);
        (pod.fate, pod.reason)
    };
    let scratch = (Some(Fate::ComesBack), Some(ReasonCode::Scratch));
    assert_eq!(reason(true), scratch);
    assert_eq!(
        reason(false),
        (Some(Fate::NeedsPerson), Some(ReasonCode::LocalVolume))
    );
}

#[test]
fn a_pod_that_cannot_be_judged_stays_terminating() {
    let without_uid = "Pod shop/a-0: {node: a, metadata: {uid: null}}";
    let forecast = foretold(&audit(), without_uid, &["a"]);
    let counts = forecast.supposed.map(|supposed| supposed.counts);
    assert_eq!(counts.expect("counts").left_terminating, 1);
    let pods = forecast.pods.iter();
    assert_eq!(
        pods.map(|pod| (pod.fate, pod.verdict)).collect::<Vec<_>>(),
        [(Some(Fate::LeftTerminating), None)]
    );
}

#[test]
fn what_could_not_be_read_is_named_and_makes_another_exit_code() {
    let known = "Pod shop/a-0: {node: a}";
    let unread = &format!("{known}\nPod shop/odd: {{node: 6}}");
    for (pods, errors, exit) in [(known, 0, Exit::Done), (unread, 1, Exit::Incomplete)] {
        let report = foretold(&audit(), pods, &["a"]);
        assert_eq!((report.errors.len(), report.exit), (errors, exit), "{pods}");
    }
}

/// The requirements of a pod are compared with the other Ready nodes; `c` is NotReady.
#[test]
fn a_pod_that_fits_no_other_node_stays_pending() {
    let term = |expressions: &str| {
        format!(
            "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{expressions}]}}}}}}}}"
        )
    };
    let ssd = "{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}";
    let big = "{matchExpressions: [{key: cores, operator: Gt, values: ['8']}]}";
    let named = "{matchFields: [{key: metadata.name, operator: In, values: [a]}]}";
    let both = term(ssd).replacen('{', "{nodeSelector: {zone: west}, ", 1);
    let preferred = term(big).replace("required", "preferred");
    for (spec, fate) in [
        ("{}".to_owned(), Fate::ComesBack),
        ("{nodeSelector: {zone: west}}".to_owned(), Fate::ComesBack),
        (
            "{nodeSelector: {zone: east}}".to_owned(),
            Fate::StaysPending,
        ),
        ("{nodeSelector: {own: a}}".to_owned(), Fate::StaysPending),
        (term(ssd), Fate::ComesBack),
        (term(big), Fate::StaysPending),
        (term(&format!("{big}, {ssd}")), Fate::ComesBack),
        // An empty term selects no node, and a field is not compared.
        (term(&format!("{{}}, {big}")), Fate::StaysPending),
        (term(named), Fate::ComesBack),
        (both.clone(), Fate::ComesBack),
        (both.replace("zone: west", "zone: east"), Fate::StaysPending),
        (preferred, Fate::ComesBack),
    ] {
        let more = format!(
            "
            Node a: {{metadata: {{labels: {{own: a, zone: east}}}}}}
            Node b: {{metadata: {{labels: {{disk: ssd, zone: west, cores: '8'}}}}}}
            Node c: {{metadata: {{labels: {{zone: east, cores: '16'}}}}}}
            Pod shop/db-0: {{node: a, grace: null, spec: {spec}}}
            "
        );
        let report = foretold(&audit(), &more, &["a"]);
        let pod = &report.pods[0];
        assert_eq!(
            (pod.fate, pod.reason),
            (Some(fate), Some(ReasonCode::Stuck)),
            "{spec}"
        );
        let counts = &report.supposed.as_ref().expect("counts").counts;
        let is_pending = fate == Fate::StaysPending;
        let expected = (usize::from(is_pending), usize::from(!is_pending), 900);
        assert_eq!(
            (counts.stays_pending, counts.comes_back, counts.seconds),
            expected
        );
        let note = pod.note.as_deref().unwrap_or_default();
        assert_eq!(
            note.contains("no other Ready node fits"),
            is_pending,
            "{spec}"
        );
    }
    // Without a controller no replacement waits, and a pod that needs you comes first.
    for (more, fate) in [
        ("owner: null", Fate::Lost),
        ("metadata: {finalizers: [a/b]}", Fate::NeedsPerson),
    ] {
        let more = format!(
            "Pod shop/db-0: {{node: a, grace: null, {more}, spec: {{nodeSelector: {{own: a}}}}}}"
        );
        assert_eq!(
            foretold(&audit(), &more, &["a"]).pods[0].fate,
            Some(fate),
            "{more}"
        );
    }
}

/// Once the node is back, its kubelet destroys the data of a PVC that somebody deleted.
#[test]
fn the_data_of_a_deleted_claim_is_to_be_kept_first() {
    let deleted = "{
        Lease a: {},
        StatefulSet shop/db: {},
        Pod shop/db-0: {node: a, grace: null, uses: data-db-0},
        PersistentVolumeClaim shop/data-db-0: {volume: pv-1, metadata: {deletionTimestamp: '2026-01-10T00:00:00Z'}},
        PersistentVolume pv-1: {on: a, spec: {csi: null, local: {path: /x}, persistentVolumeReclaimPolicy: Delete}}}";
    let pod = foretold(&audit(), deleted, &["a"]).pods.remove(0);
    let advice = &pod.advice;
    let step = &advice.steps[0];
    assert!(
        step.what
            .starts_with("Set volume pv-1 to Retain before a comes back"),
        "{}",
        step.what
    );
    let says = advice
        .first
        .iter()
        .chain(advice.steps.iter().map(|step| &step.what));
    for text in says {
        assert!(!text.contains("wait"), "{text}");
    }
}
