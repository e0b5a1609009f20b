//! Acting on a plan: delete, then look whether it worked.
//!
//! Every write is preceded by a look at the pod's node that is at most five seconds old, and that look is judged by
//! the very rules that made the plan. One pod's failure is that pod's outcome; the others go on.

mod attempt;
mod replacements;
mod verify;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use futures_util::{StreamExt, stream};
use itertools::Itertools as _;
use jiff::Timestamp;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    cluster::{Cluster, Failure, MAX_IN_FLIGHT, NodeLook, WriteMode},
    decide::Policy,
    facts::{ClusterFacts, Namespaces, NodeFacts, NodeRead, PodFacts, Read, Uid, Unread},
    outcome::{Outcome, OutcomeCode},
    stop::Stop,
};

pub use self::replacements::replacements;

/// The result of a pod's delete, before the verifying list.
enum Sent {
    /// There is nothing to look for.
    Settled(Outcome),
    /// The API server accepted it.
    Accepted,
    /// It may have been carried out or not, because of this failure.
    Unsure(Failure),
}

/// Deletes `pods`, in their order but node by node, and gives each one's outcome by UID. `facts` are what they were
/// judged by. Calls `progress` once for each pod.
pub async fn execute(
    cluster: &Cluster,
    stop: &Stop,
    policy: &Policy,
    mode: WriteMode,
    facts: &ClusterFacts,
    pods: &[&PodFacts],
    progress: &dyn Fn(),
) -> BTreeMap<Uid, Outcome> {
    // Node by node, so that one look at a node serves as many of its pods as five seconds allow.
    let mut groups = Vec::<(Node<'_>, Vec<&PodFacts>)>::new();
    let mut outcomes = BTreeMap::new();
    for &pod in pods {
        let Some(judged) = facts.node_of(pod).and_then(NodeRead::known) else {
            outcomes.insert(
                pod.uid.clone(),
                Outcome::Failed("its node was never judged".to_owned()),
            );
            continue;
        };
        match groups
            .iter_mut()
            .find(|(node, _)| node.judged.name == judged.name)
        {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((
                Node {
                    judged,
                    last: Mutex::new(None),
                },
                vec![pod],
            )),
        }
    }
    // Read again right before the first delete: a person may have taken their time to answer the question.
    let namespaces = if groups.is_empty() {
        Ok(Namespaces::new())
    } else {
        let namespaces = cluster.namespaces().await;
        namespaces.map_err(|failure| Unread(failure.to_string()))
    };
    let given_up = RefCell::default();
    let run = &Run {
        cluster,
        stop,
        policy,
        mode,
        namespaces,
        now: facts.now,
        given_up,
    };
    let turns = groups
        .iter()
        .flat_map(|(node, pods)| pods.iter().map(move |pod| (node, *pod)));
    let sent = stream::iter(turns.enumerate())
        .map(|(turn, (node, pod))| async move {
            let sent = run.reap(node, pod).await;
            progress();
            (turn, (node.judged.name.as_str(), pod, sent))
        })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<BTreeMap<_, _>>()
        .await;

    let mut open = Vec::<(_, Vec<_>)>::new();
    for (node, pod, sent) in sent.into_values() {
        match (sent, open.last_mut()) {
            (Sent::Settled(outcome), _) => drop(outcomes.insert(pod.uid.clone(), outcome)),
            (sent, Some((last, pods))) if *last == node => pods.push((pod, sent)),
            (sent, _) => open.push((node, vec![(pod, sent)])),
        }
    }
    let verified = stream::iter(open)
        .map(|(node, pods)| run.verify(node, pods))
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    outcomes.extend(verified.into_iter().flatten());
    for (uid, claims) in run.given_up.take() {
        if let Some(outcome) = outcomes
            .get_mut(&uid)
            .filter(|outcome| !outcome.code().went_well())
        {
            let claims = claims.into_iter().join(", ");
            let went = match outcome.code() {
                OutcomeCode::Unverified => "it is not known whether the pod is gone",
                _ => "this run did not delete the pod",
            };
            *outcome = Outcome::Failed(format!(
                "its claims are gone, or may be ({claims}), and {went}. {}",
                outcome.sentence()
            ));
        }
    }
    outcomes
}

struct Node<'a> {
    judged: &'a NodeFacts,
    /// The last look, and what it proves. Held while a new one is taken, so that its pods share it.
    last: Mutex<Option<Look>>,
}

struct Look {
    taken: Instant,
    result: Result<Option<NodeLook>, Failure>,
}

/// What the turns of all pods share.
struct Run<'a> {
    cluster: &'a Cluster,
    stop: &'a Stop,
    policy: &'a Policy,
    mode: WriteMode,
    namespaces: Read<Namespaces>,
    now: Timestamp,
    /// By the pod's UID, the claims whose delete was accepted, or may have been.
    given_up: RefCell<BTreeMap<Uid, BTreeSet<String>>>,
}

/// Logs only codes: messages of the API server are for the report.
fn log_outcome(pod: &PodFacts, outcome: &Outcome) {
    let PodFacts {
        name,
        namespace,
        uid,
        ..
    } = pod;
    let uid = uid.as_str();
    match outcome.code() {
        OutcomeCode::Deleted => {
            tracing::info!(
                uid,
                "Successfully force-deleted pod {name} in namespace {namespace}"
            );
        }
        code if code.is_failure() => {
            tracing::warn!(
                uid,
                "Pod {name} in namespace {namespace}: {code}, see the report"
            );
        }
        code => tracing::info!(uid, "Pod {name} in namespace {namespace}: {code}"),
    }
}

#[cfg(test)]
mod tests;
