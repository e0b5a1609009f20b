//! Acting on a plan: delete, then look whether it worked.
//!
//! Every write is preceded by a look at the pod's node that is at most five seconds old, and that look is judged by
//! the very rules that made the plan. One pod's failure is that pod's outcome; the others go on.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    cluster::{Cluster, Failure, MAX_IN_FLIGHT, NodeLook, NotDown, StillDown, WriteMode},
    decide::{Policy, Reason, Verdict, decide},
    facts::{ClaimFacts, ClusterFacts, NodeFacts, NodeRead, PodFacts},
    outcome::Outcome,
    stop::Stop,
    terminal::Progress,
};

/// A write is tried this often in all, pauses between.
const WRITE_TRIES: u32 = 4;
/// For how long one look at a node serves its other pods: short enough to leave their deletes most of the five seconds.
const SHARED_FOR: Duration = Duration::from_secs(1);
/// How long the Job controller is given to let go of its pods.
const JOB_PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks for them.
const JOB_PAUSE: Duration = Duration::from_millis(500);

/// What a pod's delete came to, before anyone looked whether it is gone.
enum Sent {
    /// Settled: nothing to look for.
    Settled(Outcome),
    /// The server accepted it.
    Accepted,
    /// It may have been carried out or not: why nobody knows.
    Unsure(Failure),
}

/// Deletes `pods`, in their order but node by node, and gives each one's outcome by UID. `facts` are what they were
/// judged by.
pub async fn execute(
    cluster: &Cluster,
    stop: &Stop,
    policy: &Policy,
    mode: WriteMode,
    facts: &ClusterFacts,
    pods: &[&PodFacts],
) -> BTreeMap<String, Outcome> {
    // Node by node, so that one look at a node serves as many of its pods as five seconds allow.
    let mut groups = Vec::<(Node<'_>, Vec<&PodFacts>)>::new();
    let mut outcomes = BTreeMap::new();
    for &pod in pods {
        let judged = facts.node_of(pod).and_then(NodeRead::known);
        let Some(judged) = judged else {
            outcomes.insert(pod.uid.clone(), Outcome::Failed("its node was never judged".to_owned()));
            continue;
        };
        match groups.iter_mut().find(|(node, _)| node.judged.name == judged.name) {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((Node { judged, last: Mutex::new(None) }, vec![pod])),
        }
    }
    let run = &Run { cluster, stop, policy, mode, now: facts.now };
    let progress = &Progress::of(pods.len());
    let turns = groups.iter().flat_map(|(node, pods)| pods.iter().map(move |pod| (node, *pod)));
    let sent = stream::iter(turns.enumerate())
        .map(|(turn, (node, pod))| async move {
            let sent = run.reap(node, pod).await;
            progress.step();
            (turn, sent)
        })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<BTreeMap<_, _>>()
        .await;

    let mut sent = sent.into_values();
    let mut open = Vec::new();
    for (node, pods) in &groups {
        let mut on_node = Vec::new();
        for (pod, sent) in pods.iter().zip(sent.by_ref()) {
            match sent {
                Sent::Settled(outcome) => {
                    outcomes.insert(pod.uid.clone(), outcome);
                }
                sent => on_node.push((*pod, sent)),
            }
        }
        if !on_node.is_empty() {
            open.push((node.judged.name.as_str(), on_node));
        }
    }
    let verified = stream::iter(open)
        .map(|(node, pods)| run.verify(node, pods))
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    outcomes.extend(verified.into_iter().flatten());
    outcomes
}

/// A node whose pods are being deleted.
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
    now: Timestamp,
}

impl Run<'_> {
    /// One pod's turn.
    async fn reap(&self, node: &Node<'_>, pod: &PodFacts) -> Sent {
        if let Some(why) = self.stop.reason() {
            return Sent::Settled(Outcome::Interrupted(why.to_owned()));
        }
        tracing::info!(
            dry_run = self.mode == WriteMode::DryRun,
            "Force-deleting pod {} in namespace {} on node {} with deletion timestamp {}",
            pod.name,
            pod.namespace,
            node.judged.name,
            pod.deletion_deadline
        );
        let sent = self.send(node, pod).await;
        match &sent {
            Sent::Settled(outcome) => log_outcome(pod, outcome),
            Sent::Accepted | Sent::Unsure(_) => {}
        }
        sent
    }

    async fn send(&self, node: &Node<'_>, pod: &PodFacts) -> Sent {
        let mut pod = pod.clone();
        let mut tried = 0;
        // A pod that changed is judged once more. The change that our own patch brings about does not count.
        let mut second_chances = 1;
        let mut patched = false;
        // Set once a try may have taken effect although nobody said so: from then on, "not there" proves nothing
        // about who did it, and the verifying list has to settle it.
        let mut unsure = None;
        let settle = |unsure: Option<Failure>, outcome| unsure.map_or(Sent::Settled(outcome), Sent::Unsure);
        loop {
            let proof = match self.still_down(node, &pod).await {
                Ok(proof) => proof,
                Err(outcome) => return settle(unsure, outcome),
            };
            // Looking may have taken a while. A pod that is patched already is finished with.
            if let Some(why) = self.stop.reason().filter(|_| !patched) {
                return settle(unsure, Outcome::Interrupted(why.to_owned()));
            }
            let patching = pod.held_by_job() && !pod.finished;
            let written = if patching {
                self.cluster.fail_job_pod(&pod, &proof, self.mode).await.map(Some)
            } else {
                self.cluster.delete_pod(&pod, &proof, self.mode).await.map(|()| None)
            };
            let failure = match written {
                Ok(Some(resource_version)) => {
                    pod.resource_version = resource_version;
                    (pod.finished, patched) = (true, true);
                    second_chances += 1;
                    continue;
                }
                Ok(None) if self.mode == WriteMode::DryRun => return Sent::Settled(Outcome::WouldDelete),
                Ok(None) => return Sent::Accepted,
                Err(failure) => failure,
            };
            match failure.code() {
                _ if failure.is_not_found() => return settle(unsure, Outcome::Gone),
                // A patch with another UID answers 422, which admission may answer just as well: the pod tells.
                Some(code @ (409 | 422)) if second_chances > 0 && (code == 409 || patching) => {
                    second_chances -= 1;
                    match self.look_again(node, &pod).await {
                        Ok(Some(again)) if code == 409 => pod = again,
                        Ok(Some(_)) => return settle(unsure, denied(failure)),
                        Ok(None) => return settle(unsure, Outcome::Gone),
                        Err(outcome) => return settle(unsure, outcome),
                    }
                }
                Some(409) => {
                    let changing = "It keeps changing while it is being deleted.";
                    return settle(unsure, Outcome::Changed(changing.to_owned()));
                }
                Some(403 | 422) => return settle(unsure, denied(failure)),
                Some(500) if failure.is_webhook() => return settle(unsure, denied(failure)),
                _ => {
                    tried += 1;
                    // What was not sent may be sent at once, after another look at the node.
                    let not_sent = (failure == Failure::NotSent).then_some(Duration::ZERO);
                    let pause = failure.pause(tried).or(not_sent).filter(|_| tried < WRITE_TRIES);
                    if failure.may_have_taken_effect() && !patching {
                        unsure = Some(failure.clone());
                    }
                    let Some(pause) = pause else {
                        return settle(unsure, Outcome::Failed(failure.to_string()));
                    };
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        why = self.stop.stopped() => {
                            return settle(unsure, Outcome::Interrupted(format!("{why}, after {failure}")));
                        }
                    }
                }
            }
        }
    }

    /// Judges `pod` by a fresh look at its node. An error is the pod's outcome.
    async fn still_down(&self, node: &Node<'_>, pod: &PodFacts) -> Result<StillDown, Outcome> {
        let mut last = node.last.lock().await;
        let shared = last.take().filter(|look| look.taken.elapsed() < SHARED_FOR);
        let look = last.insert(if let Some(look) = shared {
            look
        } else {
            let taken = Instant::now();
            let result = self.cluster.node(&node.judged.name).await;
            // A failure is kept from its end on: the node's pods need not each wait for another.
            Look { taken: if result.is_err() { Instant::now() } else { taken }, result }
        });
        let look = match &look.result {
            Ok(look) => look.as_ref(),
            Err(failure) => {
                let cause = format!("node {} could not be read again: {failure}", node.judged.name);
                return Err(Outcome::Failed(cause));
            }
        };
        let gone = || Outcome::NodeChanged("The node does not exist any more.".to_owned());
        let look = look.ok_or_else(gone)?;
        let proof = StillDown::prove(look, node.judged).map_err(|not| match not {
            NotDown::Ready => Outcome::NodeRecovered,
            NotDown::Changed(how) => Outcome::NodeChanged(how.to_owned()),
        })?;
        match decide(look.now, self.policy, Some(&NodeRead::Known(look.facts.clone())), pod) {
            reason if reason.verdict() == Verdict::Reap => Ok(proof),
            // What nobody could read has not changed.
            Reason::FactsUnread(what) => {
                let node = &node.judged.name;
                Err(Outcome::Failed(format!("node {node} could not be judged again: {what}")))
            }
            reason => Err(Outcome::NodeChanged(reason.sentence())),
        }
    }

    /// Reads a pod that was not as it was judged, and judges it again. `Ok(None)`: it is gone. An error is its outcome.
    async fn look_again(&self, node: &Node<'_>, judged: &PodFacts) -> Result<Option<PodFacts>, Outcome> {
        let changed = |how: &str| Outcome::Changed(how.to_owned());
        let raw = self.cluster.pod(&judged.namespace, &judged.name).await;
        let raw = raw.map_err(|failure| {
            Outcome::Failed(format!("it changed and could not be read again: {failure}"))
        })?;
        let Some(raw) = raw else { return Ok(None) };
        if raw.metadata.uid.as_deref() != Some(&judged.uid) {
            return Err(changed("Another pod has taken its name."));
        }
        let again = raw.into_facts(judged.namespace_opted_out.clone());
        let mut again = again.map_err(|why| changed(&format!("It changed, and now {why}.")))?;
        if again.node != judged.node {
            return Err(changed("It is bound to another node now."));
        }
        // A pod's volumes never change: what was found about its claims still holds. One that is new was never looked
        // up, which the rules do not let through.
        for claim in &mut again.claims {
            let known = judged.claims.iter().find(|known| known.name == claim.name);
            *claim = known
                .cloned()
                .unwrap_or_else(|| ClaimFacts { name: claim.name.clone(), state: claim.state.clone() });
        }
        let reason = decide(self.now, self.policy, Some(&NodeRead::Known(node.judged.clone())), &again);
        if reason.verdict() == Verdict::Reap { Ok(Some(again)) } else { Err(changed(&reason.sentence())) }
    }

    /// Looks whether what was sent to one node's pods worked.
    async fn verify(&self, node: &str, pods: Vec<(&PodFacts, Sent)>) -> Vec<(String, Outcome)> {
        let by_job = pods
            .iter()
            .filter(|(pod, _)| pod.held_by_job())
            .map(|(pod, _)| &pod.uid)
            .collect::<BTreeSet<_>>();
        // `Err`: nobody could look at all.
        let mut present = self.cluster.pod_uids(node).await;
        // Why the last look failed, where an earlier one did not.
        let mut later = None;
        let deadline = Instant::now() + JOB_PATIENCE;
        while let Ok(uids) = &present
            && uids.iter().any(|uid| by_job.contains(uid))
            && Instant::now() < deadline
            && self.stop.reason().is_none()
        {
            tokio::select! {
                () = tokio::time::sleep(JOB_PAUSE) => {}
                _ = self.stop.stopped() => {}
            }
            match self.cluster.pod_uids(node).await {
                Ok(uids) => present = Ok(uids),
                Err(failure) => {
                    later = Some(failure);
                    break;
                }
            }
        }
        let present = present.map(|uids| uids.into_iter().collect::<BTreeSet<_>>());
        let outcomes = pods.into_iter().map(|(pod, sent)| {
            // A UID that was absent once stays absent, whatever became of the looks after that.
            let there = match (&present, &later) {
                (Ok(uids), _) if !uids.contains(&pod.uid) => Ok(false),
                (Ok(_), None) => Ok(true),
                (Err(failure), _) | (Ok(_), Some(failure)) => Err(failure),
            };
            let outcome = match (sent, there) {
                (Sent::Settled(outcome), _) => outcome,
                (Sent::Accepted, Ok(false)) => Outcome::Deleted,
                (Sent::Accepted, Ok(true)) => Outcome::StillThere,
                (Sent::Accepted, Err(failure)) => Outcome::Unverified(failure.to_string()),
                (Sent::Unsure(_), Ok(false)) => Outcome::Gone,
                (Sent::Unsure(cause), Ok(true)) => Outcome::Failed(cause.to_string()),
                (Sent::Unsure(cause), Err(failure)) => {
                    Outcome::Failed(format!("{cause}; whether it is gone could not be read: {failure}"))
                }
            };
            log_outcome(pod, &outcome);
            (pod.uid.clone(), outcome)
        });
        outcomes.collect()
    }
}

/// Codes only: a message of the server is for the report.
fn log_outcome(pod: &PodFacts, outcome: &Outcome) {
    let PodFacts { name, namespace, uid, .. } = pod;
    match outcome {
        Outcome::Deleted => {
            tracing::info!(uid, "Successfully force-deleted pod {name} in namespace {namespace}");
        }
        outcome if outcome.is_failure() => {
            tracing::warn!(uid, "Pod {name} in namespace {namespace}: {}, see the report", outcome.code());
        }
        outcome => tracing::info!(uid, "Pod {name} in namespace {namespace}: {}", outcome.code()),
    }
}

fn denied(failure: Failure) -> Outcome {
    match failure {
        Failure::Status { code, message, .. } => Outcome::Denied(format!("{message} ({code})")),
        other => Outcome::Denied(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use pod_reaper_test_support::simulated::{Fate, Fault, Kind, Objects, Server};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        facts::JOB_TRACKING,
        report::samples::{audit, held_by, judged, lease, namespace, node, pod},
    };

    fn finished(mut pod: Value) -> Value {
        pod["status"]["phase"] = json!("Failed");
        pod
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_once_seen_to_be_gone_stays_so_though_later_looks_fail() {
        let objects = [
            node("ds05", "True"),
            node("ds06", "False"),
            namespace("shop"),
            lease("ds06"),
            finished(pod("shop", "free-0", "ds06")),
            finished(held_by(pod("shop", "held-0", "ds06"), JOB_TRACKING)),
        ];
        let settings = audit();
        let (facts, plan) = judged(&settings, &objects);
        let mut looks = 0;
        let server = Server::with_faults(Objects::new(facts.now, objects), move |request| {
            looks += usize::from(request.kind == Kind::PodUids);
            // The first look finds the one that its Job still holds; no further one succeeds.
            let fails = request.kind == Kind::PodUids && looks > 1;
            Fate { fault: fails.then_some(Fault::Status(403, false, false)), ..Fate::default() }
        });
        let (_signal, stop) = Stop::manual(Duration::from_mins(8));
        let cluster = Cluster::new(server.client(), stop.clone(), None);
        let pods = plan.reaps().collect::<Vec<_>>();
        let outcomes = execute(&cluster, &stop, &settings.policy, WriteMode::Real, &facts, &pods).await;
        let codes = outcomes.iter().map(|(uid, outcome)| (uid.as_str(), outcome.code())).collect::<Vec<_>>();
        assert_eq!(codes, [("uid-shop-free-0", "deleted"), ("uid-shop-held-0", "unverified")]);
    }
}
