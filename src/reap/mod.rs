//! Carries out a plan: deletes its pods, then verifies that they are gone.
//!
//! Before each write, the pod's node has been read at most five seconds ago, and the same rules
//! that made the plan have judged the pod by that reading. A failure with one pod becomes that
//! pod's outcome and does not stop the other pods.

mod turn;
mod verify;

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
};

use futures_util::{StreamExt, stream};
use itertools::Itertools as _;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    cluster::{Api as _, Cluster, MAX_IN_FLIGHT},
    exit::{CouldNotRun, Result},
    facts::{ClusterFacts, PodFacts, Uid, Unread},
    judge::{Judged, Policy},
    outcome::{Outcome, OutcomeCode},
    source::OtherLeases,
    stop::Stop,
    words::sanitize,
};

use self::turn::{Node, Run, Shared, Turn};

/// Deletes `pods`, a few at a time, node after node, begun in their order. Returns each pod's outcome, by
/// UID. `facts` and `leases` are what the pods were judged by, and `proved` is when the guard was proved, if it has to be.
/// `Err` if the guard had to be proved again, and was not: nothing was written then.
pub async fn reap(
    cluster: &Cluster,
    stop: &Stop,
    policy: &Policy,
    (facts, leases): (&ClusterFacts, Option<&OtherLeases>),
    proved: Option<Instant>,
    pods: &[&Judged],
) -> Result<BTreeMap<Uid, Outcome>> {
    if pods.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut outcomes = BTreeMap::new();
    let nodes = pods
        .iter()
        .filter_map(|judged| facts.known_node(&judged.pod))
        .unique_by(|node| node.name.clone())
        .map(|as_judged| Node {
            as_judged,
            heard: RefCell::default(),
            again: Shared(Mutex::default()),
        })
        .collect_vec();
    // The namespaces are read again right before the first delete, because the user may have taken
    // a while to confirm the deletes.
    let namespaces = cluster.namespaces().await.map_err(Unread::from);
    let run = &Run {
        cluster,
        stop,
        policy,
        namespaces,
        proved: Mutex::new(proved),
        unguarded: OnceCell::new(),
        now: facts.now,
        leases: leases.map(|OtherLeases { holders, at }| {
            let as_judged = Some((*at, Ok(None)));
            (holders, Shared(Mutex::new(as_judged)))
        }),
    };
    // The pods are ordered by node, so that one reading of a node serves several of its pods.
    let turns = nodes.iter().flat_map(|node| {
        pods.iter()
            .filter(|judged| judged.pod.node.as_ref() == Some(&node.as_judged.name))
            .map(move |judged| Turn {
                run,
                node,
                judged,
                patched: false,
                unsure: None,
            })
    });
    let mut sent = stream::iter(turns)
        .map(|mut turn| async move {
            let sent = match stop.reason() {
                Some(why) => Err(Outcome::Interrupted(why.to_owned())),
                None => turn.delete().await,
            };
            (turn, sent)
        })
        .buffer_unordered(MAX_IN_FLIGHT);
    let mut open = BTreeMap::<_, Vec<_>>::new();
    while let Some((turn, sent)) = sent.next().await {
        if let Some(why) = run.unguarded.get() {
            return Err(CouldNotRun::Unguarded(why.clone()));
        }
        match sent {
            Err(outcome) if turn.unsure.is_none() => {
                let outcome = turn.with_patch_told(outcome);
                log_outcome(&turn.judged.pod, &outcome);
                outcomes.insert(turn.judged.pod.uid.clone(), outcome);
            }
            _ => open
                .entry(&turn.node.as_judged.name)
                .or_default()
                .push(turn),
        }
    }
    let verified = stream::iter(open)
        .map(|(node, turns)| run.verify(node, turns))
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    outcomes.extend(verified.into_iter().flatten());
    Ok(outcomes)
}

/// Logs the code of a pod's outcome. The API server's messages belong in the report, not in the
/// log.
fn log_outcome(pod: &PodFacts, outcome: &Outcome) {
    let uid = pod.uid.as_str();
    let pod = sanitize(&format!(
        "{} in namespace {} with deletion timestamp {}",
        pod.name,
        pod.namespace,
        pod.deletion_deadline()
    ));
    match outcome.code() {
        OutcomeCode::Deleted => tracing::info!(uid, "Successfully force-deleted pod {pod}"),
        code if code.is_failure() => tracing::warn!(uid, "Pod {pod}: {code}, see the report"),
        code => tracing::info!(uid, "Pod {pod}: {code}"),
    }
}

#[cfg(test)]
pub mod tests;
