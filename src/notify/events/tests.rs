//! Tests of the Events that a run writes, without a server.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use expect_test::expect;
use pod_reaper_test_support::sentences::Sentences;
use serde_json::Value;

use super::*;
use crate::{
    decide::{Tie, TieKind, Ties},
    report::samples::{audit, judged, objects, private_cloud, with, yaml},
};

/// The objects of `pods`, with two Ready and two dead nodes.
fn in_app(pods: &str) -> Vec<Value> {
    let cluster = "
        Node ds01: {ready: 'True'}
        Node ds02: {ready: 'True'}
        Node ds05: {}
        Node ds06: {}
        Namespace app: {}
        Namespace web: {}
    ";
    objects(&with(yaml(cluster), yaml(pods)))
}

/// The Events of a run that has deleted every pod that was to be reaped.
fn all_deleted(objects: &[Value]) -> Vec<Event> {
    let mut settings = audit();
    settings.policy.manual_owner_kinds = vec!["ClickHouse".to_owned()];
    let mut run = judged(&settings, objects);
    let reaps = run.plan.reaps();
    run.outcomes = reaps
        .map(|judged| (judged.pod.uid.clone(), Outcome::Deleted))
        .collect();
    deletions(&run)
}

fn all_waiting(objects: &[Value]) -> Vec<Event> {
    warnings(&judged(&audit(), objects)).collect()
}

/// Lists the Events, with numbers in place of the sentences of their notes.
fn printed(events: &[Event]) -> String {
    let mut sentences = Sentences::default();
    let lines = events.iter().map(|event| {
        let Event { is_warning, reason, action, regarding, related, note } = event;
        let kind = if *is_warning { "Warning" } else { "Normal" };
        let Reference { api_version, kind: of, namespace, name, uid } = regarding;
        let namespace = namespace.as_deref().unwrap_or("default");
        let related = related.as_ref().map_or("-", |related| &related.uid);
        let said = note.split_inclusive(". ").map(|sentence| sentences.numbered(sentence));
        let said = said.format("\n    ");
        format!(
            "{namespace}: {kind} {reason} {action} {api_version} {of}/{name} ({uid}) {related}\n    {said}\n"
        )
    });
    let lines = lines.collect::<String>();
    sentences.below(&lines)
}

#[test]
fn a_code_is_spelled_as_events_spell_it() {
    for (code, spelled) in [
        ("stuck-on-not-ready-node", "StuckOnNotReadyNode"),
        ("local-volume", "LocalVolume"),
        ("deleted", "Deleted"),
        ("manual", "Manual"),
    ] {
        assert_eq!(camel_case(code), spelled);
    }
}

#[test]
fn there_is_one_event_for_each_owner_and_node_and_one_for_the_node() {
    let objects = in_app(
        "
        Pod app/db-0: {}
        Pod app/db-1: {}
        Pod app/db-2: {node: ds05}
        Pod app/db-x1: {owner: ReplicaSet db}
        Pod web/db-0: {}
        Pod app/alone: {}
        Pod app/adopted: {metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Backup, name: b, uid: b, controller: false}]}}
        Pod web/held-0: {owner: StatefulSet db, metadata: {finalizers: [example.org/hold]}}
        Pod app/chi-0: {owner: ClickHouse chi}
        ",
    );
    expect![[r#"
        app: Normal StuckOnNotReadyNode Deleted apps/v1 StatefulSet/db (uid-of-db) uid-ds05
            #1 ds05 db-2
        app: Normal StuckOnNotReadyNode Deleted apps/v1 ReplicaSet/db (uid-of-db) uid-ds06
            #1 ds06 db-x1
        app: Normal StuckOnNotReadyNode Deleted apps/v1 StatefulSet/db (uid-of-db) uid-ds06
            #2 2 ds06 db-0 db-1
        web: Normal StuckOnNotReadyNode Deleted apps/v1 StatefulSet/db (uid-of-db) uid-ds06
            #1 ds06 db-0
        app: Normal StuckOnNotReadyNode Deleted v1 Pod/adopted (uid-app-adopted) uid-ds06
            #3 ds06
            #4
        app: Normal StuckOnNotReadyNode Deleted v1 Pod/alone (uid-app-alone) uid-ds06
            #3 ds06
            #4
        default: Normal StuckOnNotReadyNode Deleted v1 Node/ds05 (uid-ds05) -
            #5 1
            #6 ds05
        default: Normal StuckOnNotReadyNode Deleted v1 Node/ds06 (uid-ds06) -
            #7 6 2
            #6 ds06

        #1 Force-deleted a pod that was stuck Terminating on NotReady node _: _
        #2 Force-deleted _ pods that were stuck Terminating on NotReady node _: _, _
        #3 Force-deleted: it was stuck Terminating on NotReady node _.
        #4 It has no controller to start another.
        #5 Force-deleted _ pod that was stuck Terminating here; none needs you.
        #6 Unless _ is about to come back, make sure that it is powered off: any containers still running there keep running alongside the pods that replace them.
        #7 Force-deleted _ pods that were stuck Terminating here; _ need you.
    "#]]
    .assert_eq(&printed(&all_deleted(&objects)));
}

/// A pod that may still exist, or that another client removed, is not reported as deleted.
#[test]
fn only_what_was_verified_to_be_gone_is_reported() {
    let outcomes = [
        Outcome::Gone,
        Outcome::Changed("It is another.".to_owned()),
        Outcome::NodeRecovered,
        Outcome::NodeChanged("It is another.".to_owned()),
        Outcome::OptedOut,
        Outcome::Denied("no".to_owned()),
        Outcome::Failed("no".to_owned()),
        Outcome::StillThere,
        Outcome::Unverified("no".to_owned()),
        Outcome::Interrupted("SIGTERM".to_owned()),
        Outcome::WouldDelete,
    ];
    assert_eq!(outcomes.len() + 1, OutcomeCode::ALL.len());
    let pods = (0..=outcomes.len()).map(|at| format!("Pod app/db-{at}: {{}}\n"));
    let settings = audit();
    let mut run = judged(&settings, &in_app(&pods.collect::<String>()));
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let uid = format!("uid-app-db-{at}");
        run.outcomes.insert(uid.into(), outcome);
    }
    // The last pod has no outcome at all.
    assert_eq!(deletions(&run), []);

    run.outcomes.insert("uid-app-db-3".into(), Outcome::Deleted);
    let events = deletions(&run);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[0].note.ends_with("ds06: db-3"), "{}", events[0].note);
    assert!(
        events[1].note.starts_with("Force-deleted 1 pod "),
        "{}",
        events[1].note
    );
}

#[test]
fn a_note_names_the_first_pods_and_counts_all_within_its_limit() {
    for (count, length) in [(2, 253), (4, 253), (40, 20), (2_000, 253)] {
        let pods =
            (0..count).map(|at| format!("Pod app/{at:0>length$}: {{owner: ReplicaSet many}}\n"));
        let events = all_deleted(&in_app(&pods.collect::<String>()));
        let note = &events[0].note;
        assert!(note.len() <= MAX_NOTE_BYTES, "{count} of {length}: {note}");
        let counts = note.starts_with(&format!("Force-deleted {count} pods that were"));
        assert!(counts && note.contains(&"0".repeat(length)), "{note}");
        let rest = if length == 20 { " and 30 more" } else { "…" };
        assert_eq!(note.ends_with(rest), count > 3, "{note}");
    }
}

#[test]
fn what_needs_a_person_is_a_warning_with_its_reason() {
    let objects = private_cloud();
    let events = printed(&all_waiting(&objects));
    expect![[r#"
        compute-hive01: Warning Finalizers Manual v1 Pod/held-0 (uid-compute-hive01-held-0) uid-ds06
            #1
            #2 example.com/backup
            #3 compute-hive01/held-0
        impala-impala01: Warning LocalVolume Manual v1 Pod/impala-executor-000-0 (uid-impala-impala01-impala-executor-000-0) uid-ds06
            #1
            #4 scratch-cache-volume-impala-executor-000-0 /opt/local-path
            #3 impala-impala01/impala-executor-000-0
        impala-impala01: Warning VolumeUnverified Manual v1 Pod/statestored-0 (uid-impala-impala01-statestored-0) uid-ds06
            #1
            #5
            #3 impala-impala01/statestored-0
        vault: Warning KosmosLeaf Manual v1 Pod/web-0 (uid-vault-web-0) uid-kosmos-cluster7
            #1
            #6 cluster7 kosmos.io/node kosmos-io/owned-by-cluster=cluster7
            #7
            #3 vault/web-0

        #1 Not force-deleted: it needs you.
        #2 It is held by finalizer _: a controller still has work to do before the pod can be deleted.
        #3 See: pod-reaper explain _
        #4 Its storage is on the dead node: PVC _ is bound to volume pvc-scratch (local, at _).
        #5 It is unverified whether its storage is on the dead node: statestored.
        #6 Its node stands for the Kosmos leaf cluster _ (seen: label _, annotation _, name prefix kosmos-).
        #7 There, NotReady usually means that the link is cut: the pod is probably still running.
    "#]]
    .assert_eq(&events);
}

/// Such a run may end with exit code 0, so nothing else would say that these pods are down.
#[test]
fn while_the_breaker_holds_what_needs_a_person_is_a_warning_too() {
    let down = (11..20).map(|at| (format!("Node ds{at}"), yaml("{}")));
    let down = objects(&down.collect());
    let held = private_cloud().into_iter().chain(down).collect_vec();
    assert!(judged(&audit(), &held).plan.hold.is_some());
    assert_eq!(all_waiting(&held), all_waiting(&private_cloud()));
}

/// The API server's message about a failed read is in the report only, since more people may read
/// Events.
#[test]
fn the_message_of_the_api_server_is_not_in_a_note() {
    let plan = judged(&audit(), &private_cloud()).plan;
    let ties = ["data", "log"].map(|pvc| Tie {
        pvc: pvc.to_owned(),
        volume: None,
        why: "the API server responded with 403: MARKER".to_owned(),
        kind: TieKind::Unverified,
    });
    let note = manual_note(
        &plan.pods[0].pod,
        &Reason {
            ties: Ties {
                all: ties.into(),
                ..Ties::default()
            },
            ..Reason::new(ReasonCode::VolumeUnverified, "MARKER")
        },
    );
    assert!(
        note.contains("its storage is on the dead node: data, log.") && !note.contains("MARKER"),
        "{note}"
    );
}

#[test]
fn a_note_keeps_its_end_and_holds_no_control_characters() {
    let note = fit(&"ä\u{1b}".repeat(600), " the end");
    assert!(
        note.len() <= MAX_NOTE_BYTES && note.len() > MAX_NOTE_BYTES - 8,
        "{}",
        note.len()
    );
    assert!(
        note.ends_with("… the end") && !note.contains('\u{1b}'),
        "{note}"
    );
    let held = "Pod app/held-0: {metadata: {finalizers: [\"example.org/\u{202e}hold\"]}}";
    let events = all_waiting(&in_app(held));
    assert!(
        events[0].note.contains("example.org/\u{fffd}hold"),
        "{}",
        events[0].note
    );
}

#[test]
fn a_refusal_names_the_remedy_and_repeats_no_answer() {
    let status = |code| Failure::Status {
        code,
        message: "MARKER".to_owned(),
        kind: StatusKind::Other,
        retry_after: None,
    };
    let seen = |failure: Failure| (failure.is_hopeless(), failure_text(&failure));
    expect![[r#"
        [
            (
                false,
                "Not all Kubernetes Events could be written: the API server responded with 403; grant this account permission to create events in events.k8s.io",
            ),
            (
                false,
                "Not all Kubernetes Events could be written: the API server responded with 404; nothing else in the run depends on them",
            ),
            (
                true,
                "Not all Kubernetes Events could be written: the API server responded with 503; nothing else in the run depends on them",
            ),
            (
                true,
                "Not all Kubernetes Events could be written: the API server sent no response in time, or none that could be read; nothing else in the run depends on them",
            ),
            (
                false,
                "Not all Kubernetes Events could be written: the API server sent no response in time, or none that could be read; nothing else in the run depends on them",
            ),
        ]
    "#]].assert_debug_eq(&[
        seen(status(403)),
        seen(status(404)),
        seen(status(503)),
        seen(Failure::Transport("MARKER".to_owned())),
        seen(Failure::Unreadable("MARKER".to_owned())),
    ]);
}
