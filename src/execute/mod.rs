//! Acting on a plan: delete, then look whether it worked.
//!
//! Every write is preceded by a reading of the pod's node that is at most five seconds old, and that is judged by
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
    cluster::{Cluster, Failure, FreshNode, MAX_IN_FLIGHT, WriteMode},
    decide::Policy,
    facts::{ClusterFacts, Namespaces, NodeFacts, PodFacts, Read, Uid, Unread},
    outcome::{Outcome, OutcomeCode},
    stop::Stop,
};

pub use self::replacements::replacements;

/// Why a delete is not known to be accepted.
enum NotAccepted {
    /// What became of the pod: there is nothing to verify.
    Settled(Outcome),
    /// The failure that leaves open whether the delete was carried out.
    Unsure(Failure),
}

impl From<Outcome> for NotAccepted {
    fn from(outcome: Outcome) -> Self {
        Self::Settled(outcome)
    }
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
    if pods.is_empty() {
        return BTreeMap::new();
    }
    // Only a pod of a node that was judged has a turn.
    let unjudged = Outcome::Failed("its node was never judged".to_owned());
    let mut outcomes = pods
        .iter()
        .map(|pod| (pod.uid.clone(), unjudged.clone()))
        .collect::<BTreeMap<_, _>>();
    let nodes = pods
        .iter()
        .filter_map(|pod| facts.node_of(pod)?.known())
        .unique_by(|judged| judged.name.clone())
        .map(|judged| Node {
            judged,
            last: Mutex::default(),
        })
        .collect_vec();
    // Read again right before the first delete: a person may have taken their time to answer the question.
    let namespaces = cluster.namespaces().await;
    let run = &Run {
        cluster,
        stop,
        policy,
        mode,
        namespaces: namespaces.map_err(|failure| Unread(failure.to_string())),
        now: facts.now,
        given_up: RefCell::default(),
    };
    // Node by node, so that one reading of a node serves as many of its pods as five seconds allow.
    let turns = nodes.iter().flat_map(|node| {
        let of_node = |pod: &&PodFacts| pod.node.as_ref() == Some(&node.judged.name);
        pods.iter()
            .copied()
            .filter(of_node)
            .map(move |pod| (node, pod))
    });
    let mut sent = stream::iter(turns)
        .map(|(node, pod)| async move {
            let sent = run.reap(node, pod).await;
            progress();
            (node.judged.name.as_str(), pod, sent)
        })
        .buffer_unordered(MAX_IN_FLIGHT);
    let mut open = BTreeMap::<_, Vec<_>>::new();
    while let Some((node, pod, sent)) = sent.next().await {
        let unsure = match sent {
            Ok(()) => None,
            Err(NotAccepted::Unsure(failure)) => Some(failure),
            Err(NotAccepted::Settled(outcome)) => {
                outcomes.insert(pod.uid.clone(), outcome);
                continue;
            }
        };
        open.entry(node).or_default().push((pod, unsure));
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
    /// When it was last read, and what was found. Held while it is read anew, so that its pods share that.
    last: Mutex<Option<(Instant, Result<FreshNode, Outcome>)>>,
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
    let uid = pod.uid.as_str();
    let called = format!("{} in namespace {}", pod.name, pod.namespace);
    match outcome.code() {
        OutcomeCode::Deleted => tracing::info!(uid, "Successfully force-deleted pod {called}"),
        code if code.is_failure() => tracing::warn!(uid, "Pod {called}: {code}, see the report"),
        code => tracing::info!(uid, "Pod {called}: {code}"),
    }
}

#[cfg(test)]
mod tests;
