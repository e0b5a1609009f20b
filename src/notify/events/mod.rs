//! Kubernetes Events about the deletes, and about the pods that need you. People who do not know this program
//! see the Events with `kubectl describe` and `kubectl get events`.
//!
//! A run writes the Events after it has verified the deletes. They change neither an outcome nor the exit
//! code. There is one Event for each owner of deleted pods on a node, one for each pod that needs you, and one for each node
//! whose machine has to be looked at, or whose return needs you.

use std::time::Duration;

use futures_util::{StreamExt, future, stream};
use itertools::Itertools as _;
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use tokio::time::Instant;

use crate::{
    cluster::{Cluster, Failure, MAX_IN_FLIGHT, StatusKind},
    facts::{Identity, PodFacts, Uid},
    history::{NodeState, RememberedNode},
    judge::{Cause, Reason, ReasonCode, Tie, Verdict},
    outcome::{Outcome, OutcomeCode},
    report::RunRecord,
    stop::Stop,
    words::{listed, prefixed, sanitize},
};

/// The name of this program as the writer of Events.
const CONTROLLER: &str = "pod-reaper";
/// The namespace of Events about objects without a namespace.
const OF_THE_CLUSTER: &str = "default";
/// The API's limit for an Event's note, in bytes.
const MAX_NOTE_BYTES: usize = 1_024;
/// The end of the note about a node. Anyone who may read the Events of the namespace `default` reads it, so it names no pod.
const SEE_REPORT: &str = " See the report of pod-reaper.";
/// The most names of pods in a note.
const NAMES: usize = 10;
/// The time limit for all Events of a run, because the report waits for them.
const EVENTS_TIME_LIMIT: Duration = Duration::from_secs(20);

/// Writes the Events of a run, dated `at`, a moment of the API server's clock. Stops early if the
/// run has to end or the time limit is reached. Failures are logged as one warning.
pub async fn write(cluster: &Cluster, stop: &Stop, run: &RunRecord<'_>, at: Timestamp) {
    let end = Instant::now() + EVENTS_TIME_LIMIT;
    let cut_short = || {
        stop.reason()
            .or_else(|| (Instant::now() >= end).then_some("their time limit"))
    };
    let mut first_failure = None;
    let mut writes = stream::iter(events(run))
        .take_while(|_| future::ready(cut_short().is_none()))
        .map(|event| {
            cluster.create_event(Event {
                event_time: Some(MicroTime(at)),
                ..event
            })
        })
        .buffer_unordered(MAX_IN_FLIGHT);
    while let Some(result) = writes.next().await {
        match result {
            Ok(()) => {}
            // The pod already has this Warning, or its namespace is being deleted.
            Err(failure)
                if failure.code() == Some(409) || failure.is(StatusKind::NamespaceTerminating) => {}
            Err(failure) => {
                let is_hopeless = failure.is_hopeless();
                first_failure.get_or_insert(failure);
                if is_hopeless {
                    break;
                }
            }
        }
    }
    if let Some(failure) = first_failure {
        tracing::warn!("{}", failure_text(&failure));
    } else if let Some(why) = cut_short() {
        tracing::info!("Writing Kubernetes Events was ended by {why}: some may be missing");
    }
}

/// Returns the warning for the log. The API server's own message is left out, as everywhere in the
/// log.
fn failure_text(failure: &Failure) -> String {
    let cause = match failure.code() {
        Some(code) => format!("the API server responded with {code}"),
        None => "the API server sent no response in time, or none that could be read".to_owned(),
    };
    let advice = if failure.forbids() {
        "grant this account permission to create events in events.k8s.io"
    } else {
        "nothing else in the run depends on them"
    };
    format!("Not all Kubernetes Events could be written: {cause}; {advice}")
}

/// Makes all Events of a run. They are not held, because there is one for each pod that needs you.
fn events(run: &RunRecord<'_>) -> impl Iterator<Item = Event> {
    deletions(run)
        .into_iter()
        .chain(warnings(run))
        .chain(looks(run))
        .chain(returns(run))
}

/// Names a Warning. As long as the API server keeps it, a second one about the same object, for the same `reason`, in
/// the same outage is refused with 409.
fn name_of(uid: &Uid, reason: &str, since: Option<Timestamp>) -> String {
    let since = since.map_or(0, |since| since.as_second().max(0));
    format!("{CONTROLLER}.{uid}.{reason}.{since}")
}

/// Makes an Event about the object `regarding`. `reason` and `action` are codes of the report. One that has a name is a
/// Warning.
fn event(
    name: Option<String>,
    [reason, action]: [&str; 2],
    (regarding, related): (ObjectReference, Option<ObjectReference>),
    note: String,
) -> Event {
    let namespace = regarding.namespace.as_deref().unwrap_or(OF_THE_CLUSTER);
    let kind = name.as_ref().map_or("Normal", |_| "Warning");
    Event {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            generate_name: name.is_none().then(|| format!("{CONTROLLER}-")),
            name,
            ..ObjectMeta::default()
        },
        type_: Some(kind.to_owned()),
        reason: Some(camel_case(reason)),
        action: Some(camel_case(action)),
        regarding: Some(regarding),
        related,
        note: Some(note),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(CONTROLLER.to_owned()),
        ..Event::default()
    }
}

/// Refers to an object. `kubectl describe` finds the object's Events by its UID.
fn reference(kind: &str, namespace: Option<&String>, name: &str, uid: &Uid) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some(kind.to_owned()),
        namespace: namespace.cloned(),
        name: Some(name.to_owned()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}

fn pod_reference(pod: &PodFacts) -> ObjectReference {
    reference("Pod", Some(&pod.namespace), &pod.name, &pod.uid)
}

/// Refers to the pod's controller, or to the pod itself if it has none.
fn owner_reference(pod: &PodFacts) -> ObjectReference {
    match pod.owner.as_ref().zip(pod.controller.as_ref()) {
        Some((owner, Identity { api_version, uid })) => ObjectReference {
            api_version: Some(api_version.clone()),
            ..reference(&owner.kind, Some(&pod.namespace), &owner.name, uid)
        },
        None => pod_reference(pod),
    }
}

fn node_reference(run: &RunRecord<'_>, name: &str) -> Option<ObjectReference> {
    let node = run.facts.known(name)?;
    Some(reference("Node", None, &node.name, &node.uid))
}

/// Returns one Event for each owner and node of deleted pods.
fn deletions(run: &RunRecord<'_>) -> Vec<Event> {
    let codes = [ReasonCode::Stuck.as_str(), OutcomeCode::Deleted.as_str()];
    run.plan
        .pods
        .iter()
        .map(|judged| &*judged.pod)
        .filter(|pod| run.outcomes.get(&pod.uid) == Some(&Outcome::Deleted))
        .filter_map(|pod| Some((pod.node.as_deref()?, pod)))
        .into_group_map_by(|(node, pod)| {
            let uid = pod
                .controller
                .as_ref()
                .map_or(&pod.uid, |it| &it.uid)
                .as_str();
            (*node, pod.namespace.as_str(), uid)
        })
        .into_iter()
        .sorted_by_key(|(owner, _)| *owner)
        .map(|((node, ..), pods)| {
            let pods = pods.into_iter().map(|(_, pod)| pod).collect_vec();
            let owner = owner_reference(pods[0]);
            let note = fit(&owner_note(node, &owner, &pods), "");
            event(None, codes, (owner, node_reference(run, node)), note)
        })
        .collect()
}

/// Returns one Event for each pod that needs you, also while the breaker holds the plan: such a run may end with
/// exit code 0, so nothing else may say that these pods are down.
fn warnings(run: &RunRecord<'_>) -> impl Iterator<Item = Event> {
    run.plan
        .pods
        .iter()
        .filter(|judged| judged.verdict() == Verdict::Manual)
        .map(|judged| {
            let pod = &judged.pod;
            let codes = [judged.code().as_str(), judged.verdict().as_str()];
            let node = pod
                .node
                .as_deref()
                .and_then(|node| node_reference(run, node));
            let why = told(&judged.reason, &pod.namespace);
            let next = format!(" See: pod-reaper explain {}/{}", pod.namespace, pod.name);
            let note = fit(&format!("Not force-deleted: it needs you. {why}"), &next);
            let since = run
                .facts
                .known_node(pod)
                .and_then(|node| node.not_ready_since(run.facts.now));
            let name = name_of(&pod.uid, codes[0], since);
            event(Some(name), codes, (pod_reference(pod), node), note)
        })
}

/// Returns one Event for each node whose machine has to be looked at.
fn looks(run: &RunRecord<'_>) -> Vec<Event> {
    let codes = ["look-at-machine", Verdict::Manual.as_str()];
    run.to_look_at()
        .into_iter()
        .filter_map(|(name, what)| {
            let node = run.facts.known(&name)?;
            let since = node.not_ready_since(run.facts.now);
            let of_outage = name_of(&node.uid, codes[0], since);
            let object = (node_reference(run, &name)?, None);
            Some(event(
                Some(of_outage),
                codes,
                object,
                fit(&what, SEE_REPORT),
            ))
        })
        .collect()
}

/// Returns one Event for each node whose return needs you.
fn returns(run: &RunRecord<'_>) -> impl Iterator<Item = Event> {
    run.history.needing_you().map(|node| {
        let codes = [node.now.state.as_str(), Verdict::Manual.as_str()];
        let object = reference("Node", None, &node.noted.node, &node.uid);
        let name = name_of(&node.uid, codes[0], Some(node.noted.first_reap));
        event(Some(name), codes, (object, None), return_note(node))
    })
}

fn return_note(RememberedNode { noted, now, .. }: &RememberedNode) -> String {
    let until = prefixed(" until about ", now.ready_since);
    let from = noted.first_reap;
    let head = match now.state {
        NodeState::AnotherMachine => format!(
            "Another machine has this name, and nobody saw the old one off. Containers of pods that were force-deleted from {from} on can run on the old one, beside their replacements."
        ),
        _ => format!(
            "Ready again, and not rebooted. Containers of pods that were force-deleted from {from} on may have run here{until}, beside their replacements."
        ),
    };
    fit(&head, SEE_REPORT)
}

/// Spells a code of the report as in Events: `local-volume` becomes `LocalVolume`.
fn camel_case(code: &str) -> String {
    code.split('-')
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect()
}

fn owner_note(node: &str, owner: &ObjectReference, pods: &[&PodFacts]) -> String {
    let stuck = format!("Stuck Terminating on NotReady node {node}, and force-deleted");
    if owner.kind.as_deref() == Some("Pod") {
        return format!("{stuck}. It has no controller to start another.");
    }
    let names = pods.iter().map(|pod| &pod.name).collect_vec();
    format!("{stuck}: {}", listed(&names, NAMES))
}

/// Spells a reason for everybody who may read the Events of this namespace. The whole sentence may name a Lease or a pod of
/// another one, where a volume is, or a message of the API server.
fn told(reason: &Reason, namespace: &str) -> String {
    let names = |ties: &[Tie]| ties.iter().map(|tie| &tie.pvc).join(", ");
    match &reason.cause {
        Cause::Unverified(ties) => {
            let names = names(ties);
            format!("It is unverified whether its storage is on the dead node: {names}.")
        }
        Cause::Local(ties) => {
            let names = names(ties);
            format!("No other node is known to reach its storage: {names}.")
        }
        Cause::Alive { .. } => {
            let mut reason = reason.clone();
            if let Cause::Alive { signs, .. } = &mut reason.cause {
                for sign in signs {
                    sign.what.take_if(|what| names_others(what, namespace));
                }
            }
            reason.to_string()
        }
        _ => reason.to_string(),
    }
}

/// Reports whether a sign of life names an object of another namespace: it has the namespace before the name, and a slash
/// between them.
fn names_others(what: &str, namespace: &str) -> bool {
    what.split(' ')
        .filter_map(|word| word.split_once('/'))
        .any(|(of, _)| of != namespace)
}

/// Joins `head` and `tail`, with control characters replaced, and shortens `head` so that both fit
/// into a note.
fn fit(head: &str, tail: &str) -> String {
    let (mut head, tail) = (sanitize(head), sanitize(tail));
    let room = MAX_NOTE_BYTES.saturating_sub(tail.len());
    if head.len() > room {
        head.truncate(head.floor_char_boundary(room.saturating_sub('…'.len_utf8())));
        head.push('…');
    }
    head + &tail
}

#[cfg(test)]
mod tests;
