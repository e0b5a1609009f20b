//! Tests of the Events that a run writes.

use expect_test::expect;
use pod_reaper_test_support::simulated::{Fate, Fault, Kind, Request};
use serde_json::Value;

use super::*;
use crate::reap::tests::{START, ran};

/// Pods of one owner share an Event. A pod has none of its own unless it needs you, or has no owner; a pod that was not verified to be
/// gone has none at all.
#[tokio::test(start_paused = true)]
async fn the_events_of_a_run() {
    let cluster = "
        Node leaf: {lease: null, metadata: {labels: {kosmos.io/node: 'true'}}}
        Pod shop/db-0: {}
        Pod shop/db-1: {}
        Pod shop/alone: {}
        Pod shop/refused-0: {}
        Pod shop/leafy-0: {node: leaf}
        Pod shop/held-0: {metadata: {finalizers: [\"example.org/\\u202ehold\"]}}
        Pod shop/lost-0: {uses: lost}
        PersistentVolumeClaim shop/lost: {volume: gone}
    ";
    let fate = |request: &Request| Fate {
        fault: (request.kind == Kind::Delete && request.name == "refused-0")
            .then_some(Fault::Denied(403)),
        ..Fate::default()
    };
    let ran = ran("--yes", cluster, ("{}", START), fate).await;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let events = ran.events.iter().map(|event| {
        let (of, on) = (&event["regarding"], &event["related"]);
        format!(
            "{} {} {} {} {} {}\n    {}\n",
            text(&event["metadata"]["namespace"]),
            text(&event["type"]),
            text(&event["reason"]),
            text(&event["action"]),
            [&of["apiVersion"], &of["kind"], &of["name"], &of["uid"]]
                .map(text)
                .join(" "),
            text(&on["uid"]),
            text(&event["note"]),
        )
    });
    expect![[r#"
        shop Normal StuckOnNotReadyNode Deleted apps/v1 StatefulSet db uid-of-db uid-ds06
            Stuck Terminating on NotReady node ds06, and force-deleted: db-0, db-1
        shop Normal StuckOnNotReadyNode Deleted v1 Pod alone uid-shop-alone uid-ds06
            Stuck Terminating on NotReady node ds06, and force-deleted. It has no controller to start another.
        shop Warning Finalizers Manual v1 Pod held-0 uid-shop-held-0 uid-ds06
            Not force-deleted: it needs you. It is held by finalizer "example.org/�hold": a controller still has work to do before the pod can be deleted. See: pod-reaper explain shop/held-0
        shop Warning VolumeUnverified Manual v1 Pod lost-0 uid-shop-lost-0 uid-ds06
            Not force-deleted: it needs you. It is unverified whether its storage is on the dead node: lost. See: pod-reaper explain shop/lost-0
        shop Warning KosmosLeaf Manual v1 Pod leafy-0 uid-shop-leafy-0 uid-leaf
            Not force-deleted: it needs you. Its node is a Kosmos leaf node and stands for another cluster (seen: label kosmos.io/node). There, NotReady usually means that the link is cut: the pod is probably still running. See: pod-reaper explain shop/leafy-0
    "#]].assert_eq(&events.collect::<String>());
}

/// The Events of one namespace name nothing of another, nor where a volume is.
#[tokio::test(start_paused = true)]
async fn an_event_names_nothing_of_another_namespace() {
    let cluster = "
        Namespace tenant: {}
        Node far: {since: 7200}
        Node lost: {since: 7200}
        Pod shop/vault-0: {node: far}
        Lease shop/acquisition: {holder: vault-0, renewed: 1}
        Pod tenant/spy-0: {node: far}
        Pod tenant/local-0: {node: lost, uses: local}
        StatefulSet tenant/local: {spec: {replicas: 1}}
        PersistentVolume local: {claim: tenant/local, on: lost, spec: {local: {path: /srv/acquisition}}}
    ";
    let calm = |_: &Request| Fate::default();
    let ran = ran("--yes", cluster, ("{}", START), calm).await;
    let notes = ran.events.iter().filter_map(|event| {
        let name = event["regarding"]["name"].as_str()?;
        Some(format!("{name}: {}\n", event["note"].as_str()?))
    });
    expect![[r"
        local-0: Not force-deleted: it needs you. No other node is known to reach its storage: local. See: pod-reaper explain tenant/local-0
        vault-0: Not force-deleted: it needs you. The node's Ready is Unknown, but its machine is alive: Lease shop/acquisition, held by vault-0, was renewed 1s ago. The pod's containers most likely still run. See: pod-reaper explain shop/vault-0
        spy-0: Not force-deleted: it needs you. The node's Ready is Unknown, but its machine is alive: another Lease that its machine holds was renewed 1s ago. The pod's containers most likely still run. See: pod-reaper explain tenant/spy-0
    "]].assert_eq(&notes.collect::<String>());
}

/// The API server keeps one Warning of a name: one of each pod, reason and outage.
#[tokio::test(start_paused = true)]
async fn a_warning_has_a_name_of_its_pod_reason_and_outage() {
    let mut names = Vec::new();
    for (node, pod) in [
        ("since: 7200", "metadata: {finalizers: [example.org/hold]}"),
        ("since: 7200", "metadata: {finalizers: [example.org/other]}"),
        ("since: 3600", "metadata: {finalizers: [example.org/hold]}"),
        ("since: 7200", "uses: lost"),
    ] {
        let cluster = format!(
            "
            Node ds06: {{{node}}}
            Pod shop/held-0: {{{pod}}}
            PersistentVolumeClaim shop/lost: {{volume: gone}}
        "
        );
        let ran = ran("--yes", &cluster, ("{}", START), |_: &Request| {
            Fate::default()
        });
        let events = ran.await.events;
        names.extend(events.iter().map(|it| it["metadata"]["name"].clone()));
    }
    let name = |reason: &str, since| format!("pod-reaper.uid-shop-held-0.{reason}.{since}");
    let expected = [
        name("finalizers", 1_769_821_200),
        name("finalizers", 1_769_821_200),
        name("finalizers", 1_769_824_800),
        name("volume-unverified", 1_769_821_200),
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_note_keeps_its_end_and_holds_no_control_characters() {
    let note = fit(&"ä\u{1b}".repeat(600), " the end");
    assert!(
        (MAX_NOTE_BYTES - 8..=MAX_NOTE_BYTES).contains(&note.len()),
        "{}",
        note.len()
    );
    assert!(
        note.ends_with("… the end") && !note.contains('\u{1b}'),
        "{note}"
    );
}

#[test]
fn a_refusal_names_the_remedy_and_repeats_no_answer() {
    let refused = Failure::Status {
        code: 403,
        message: "MARKER".into(),
        kind: StatusKind::Other,
        retry_after: None,
    };
    let text = failure_text(&refused);
    assert!(
        text.contains("permission") && !text.contains("MARKER"),
        "{text}"
    );
}

/// A node whose machine has to be looked at says so, before the first delete too, and once an outage.
#[tokio::test(start_paused = true)]
async fn a_node_that_has_to_be_looked_at_says_so() {
    let cluster =
        "{Pod shop/db-0: {uses: data, overdue: 60}, PersistentVolume pv: {claim: shop/data},
        VolumeAttachment csi: {node: ds06, volume: pv}}";
    let calm = |_: &Request| Fate::default();
    let first = ran("--yes", cluster, ("{}", START), calm).await;
    let again = ran("--yes", cluster, ("{}", START), calm).await;
    let events = [first, again].map(|ran| {
        let mut events = ran.events.into_iter();
        let is_it = |event: &Value| event["reason"] == "LookAtMachine";
        let event = events.find(is_it).expect("an Event");
        assert_eq!(event["regarding"]["uid"], "uid-ds06");
        assert_eq!(event["type"], "Warning");
        let note = event["note"].as_str().expect("a note").to_owned();
        assert!(
            note.starts_with("Look at the console of ds06 before "),
            "{note}"
        );
        event["metadata"]["name"].clone()
    });
    assert_eq!(events[0], events[1]);
}
