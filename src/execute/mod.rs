//! Carries out a plan: deletes its pods, then verifies that they are gone.
//!
//! Before each write, the pod's node has been read at most five seconds ago, and the same rules
//! that made the plan have judged the pod by that reading. A failure with one pod becomes that
//! pod's outcome. The other pods go on.

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
    words::clean,
};

pub use self::replacements::replacements;

/// The end of a pod's turn without an accepted delete.
enum NotAccepted {
    /// The pod's outcome is known, and there is nothing to verify.
    Settled(Outcome),
    /// This failure leaves open whether the delete took effect. The verifying list has to show it.
    Unsure(Failure),
}

impl From<Outcome> for NotAccepted {
    fn from(outcome: Outcome) -> Self {
        Self::Settled(outcome)
    }
}

/// Deletes `pods` node by node, in their order within each node. Returns each pod's outcome, by
/// UID. `facts` are those that the pods were judged by. `progress` is called once for each pod.
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
    // Only pods of nodes that were judged get a turn. The others keep this outcome.
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
            last_reading: Mutex::default(),
        })
        .collect_vec();
    // The namespaces are read again right before the first delete, because a person may have taken
    // a while to confirm the deletes.
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
    // The pods go node by node, so that one reading of a node serves as many of its pods as five
    // seconds allow.
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
            let consequence = match outcome.code() {
                OutcomeCode::Unverified => "it is not known whether the pod is gone",
                _ => "this run did not delete the pod",
            };
            *outcome = Outcome::Failed(format!(
                "its claims are gone, or may be ({claims}), and {consequence}. {}",
                outcome.sentence()
            ));
        }
    }
    outcomes
}

/// A node of the plan.
struct Node<'a> {
    /// The facts that its pods were judged by.
    judged: &'a NodeFacts,
    /// The result of the node's last reading, and its time. The lock is held while the node is read
    /// anew, so that its other pods wait for that reading and share it.
    last_reading: Mutex<Option<(Instant, Result<FreshNode, Outcome>)>>,
}

/// The context that the turns of all pods share.
struct Run<'a> {
    cluster: &'a Cluster,
    stop: &'a Stop,
    policy: &'a Policy,
    mode: WriteMode,
    namespaces: Read<Namespaces>,
    now: Timestamp,
    /// The claims whose delete was accepted or may have been, by the UID of their pod.
    given_up: RefCell<BTreeMap<Uid, BTreeSet<String>>>,
}

/// Logs the code of a pod's outcome. The API server's messages belong in the report, not in the
/// log.
fn log_outcome(pod: &PodFacts, outcome: &Outcome) {
    let uid = pod.uid.as_str();
    let pod = clean(&format!("{} in namespace {}", pod.name, pod.namespace));
    match outcome.code() {
        OutcomeCode::Deleted => tracing::info!(uid, "Successfully force-deleted pod {pod}"),
        code if code.is_failure() => tracing::warn!(uid, "Pod {pod}: {code}, see the report"),
        code => tracing::info!(uid, "Pod {pod}: {code}"),
    }
}

#[cfg(test)]
mod tests;
