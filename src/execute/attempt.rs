//! One pod's turn: look at its node, write, and settle what the answer means.

use std::time::Duration;

use tokio::time::Instant;

use super::{Look, Node, Run, Sent, log_outcome};
use crate::{
    cluster::{Failure, StatusKind, StillDown, WriteMode},
    decide::{Case, PinnedClaim, ReasonCode, Verdict},
    facts::{NodeRead, PodFacts, Unread, opted_out},
    kubernetes::RawPod,
    outcome::Outcome,
    source::wanted_again,
};

/// How often a write is tried in all.
const WRITE_TRIES: u32 = 4;
/// How long one look at a node serves its other pods too: short enough to leave their deletes most of the five seconds.
const SHARED_FOR: Duration = Duration::from_secs(1);

impl Run<'_> {
    pub(super) async fn reap(&self, node: &Node<'_>, pod: &PodFacts) -> Sent {
        if let Some(why) = self.stop.reason() {
            return Sent::Settled(Outcome::Interrupted(why.to_owned()));
        }
        if let Some(outcome) = self.opted_out_since(pod) {
            log_outcome(pod, &outcome);
            return Sent::Settled(outcome);
        }
        let PodFacts {
            name,
            namespace,
            deletion_deadline: deadline,
            ..
        } = pod;
        let (dry_run, on) = (self.mode == WriteMode::DryRun, &node.judged.name);
        tracing::info!(
            dry_run,
            "Force-deleting pod {name} in namespace {namespace} on node {on} with deletion timestamp {deadline}"
        );
        let again = match wanted_again(self.cluster, pod).await {
            Ok(false) => None,
            Ok(true) => Some(Outcome::Changed(
                "A claim that it owns would go with it, but its StatefulSet wants the pod again."
                    .to_owned(),
            )),
            Err(failure) => Some(Outcome::Failed(format!(
                "its StatefulSet could not be read again: {failure}"
            ))),
        };
        if let Some(outcome) = again {
            log_outcome(pod, &outcome);
            return Sent::Settled(outcome);
        }
        let sent = match self.give_up_claims(node, pod).await {
            Ok(()) => self.send(node, pod, self.mode).await,
            Err(sent) => sent,
        };
        if let Sent::Settled(outcome) = &sent {
            log_outcome(pod, outcome);
        }
        sent
    }

    /// The outcome of a pod whose namespace was opted out after it was judged, or could not be read again.
    fn opted_out_since(&self, pod: &PodFacts) -> Option<Outcome> {
        match opted_out(&self.namespaces, &pod.namespace) {
            Ok(None) => None,
            Ok(Some(_)) => Some(Outcome::OptedOut),
            Err(Unread(why)) => Some(Outcome::Failed(format!(
                "its namespace could not be read again: {why}"
            ))),
        }
    }

    /// Deletes the claims that go before `pod`, after a rehearsal of its own delete and of theirs. An error is the outcome
    /// of the pod.
    async fn give_up_claims(&self, node: &Node<'_>, pod: &PodFacts) -> Result<(), Sent> {
        let (_, claims) = self.look(node, pod).await?;
        if claims.is_empty() {
            return Ok(());
        }
        match self.send(node, pod, WriteMode::DryRun).await {
            Sent::Settled(Outcome::WouldDelete) => {}
            sent => return Err(sent),
        }
        let ended = || {
            let why = self.stop.reason()?;
            Some(Sent::Settled(Outcome::Interrupted(why.to_owned())))
        };
        for claim in &claims {
            ended().map_or(Ok(()), Err)?;
            self.delete_claim(node, pod, &claim.claim, WriteMode::DryRun)
                .await?;
        }
        if self.mode == WriteMode::DryRun {
            return Ok(());
        }
        // The node is looked at once more after that. From the first claim on, what was begun is finished.
        node.last.lock().await.take();
        ended().map_or(Ok(()), Err)?;
        for claim in &claims {
            self.delete_claim(node, pod, &claim.claim, WriteMode::Real)
                .await?;
        }
        Ok(())
    }

    async fn look(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
    ) -> Result<(StillDown, Vec<PinnedClaim>), Sent> {
        self.still_down(node, pod).await.map_err(Sent::Settled)
    }

    /// Deletes one claim, as far as it is still to be given up; each try after another look at the node. A claim that
    /// changed meanwhile is left to the next run.
    async fn delete_claim(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
        name: &str,
        mode: WriteMode,
    ) -> Result<(), Sent> {
        let mut tried = 0;
        loop {
            let (proof, claims) = self.look(node, pod).await?;
            let Some(claim) = claims.iter().find(|claim| claim.claim == name) else {
                let how = format!("Claim {name} is not to be given up any more.");
                return Err(Sent::Settled(Outcome::Changed(how)));
            };
            let written = self.cluster.delete_claim(pod, claim, &proof, mode).await;
            let may_be_gone = written
                .as_ref()
                .err()
                .is_none_or(Failure::may_have_taken_effect);
            if mode == WriteMode::Real && may_be_gone {
                tracing::info!(
                    uid = pod.uid.as_str(),
                    "Deleting claim {name} of pod {}",
                    pod.name
                );
                self.given_up
                    .borrow_mut()
                    .entry(pod.uid.clone())
                    .or_default()
                    .insert(name.to_owned());
            }
            let failure = match written {
                Err(failure) if !failure.is(StatusKind::NotFound) => failure,
                _ => return Ok(()),
            };
            tried += 1;
            // A write that was not sent is tried at once, after another look at the node.
            let not_sent = (failure == Failure::NotSent).then_some(Duration::ZERO);
            let pause = failure.pause(tried).or(not_sent);
            if let Some(pause) = pause.filter(|_| tried < WRITE_TRIES) {
                self.stop.pause(pause).await;
                continue;
            }
            return Err(Sent::Settled(match failure.code() {
                Some(409) => Outcome::Changed(format!("Claim {name} changed after it was judged.")),
                // RBAC's words, not the guard's.
                _ if failure.to_string().contains("cannot delete resource") => {
                    let by_hand = &pod.namespace;
                    Outcome::Denied(format!(
                        "{failure}; cronjob/components/answers grants that right, and with a person's own rights a run by hand \
                         does it too: pod-reaper -n {by_hand}"
                    ))
                }
                Some(403 | 422) => denied(failure),
                _ if failure.is(StatusKind::Webhook) => denied(failure),
                _ => Outcome::Failed(format!("claim {name}: {failure}")),
            }));
        }
    }

    async fn send(&self, node: &Node<'_>, pod: &PodFacts, mode: WriteMode) -> Sent {
        let mut pod = pod.clone();
        let mut tried = 0;
        // A pod that changed is judged once more. The change that our own patch brings about does not count.
        let mut second_chances = 1;
        let mut patched = false;
        // Set once a try may have taken effect although no answer said so: from then on, "not there" proves nothing
        // about who did it, and the verifying list has to settle it.
        let mut unsure = None;
        let settle =
            |unsure: Option<Failure>, outcome| unsure.map_or(Sent::Settled(outcome), Sent::Unsure);
        loop {
            let proof = match self.still_down(node, &pod).await {
                Ok((proof, _)) => proof,
                Err(outcome) => return settle(unsure, outcome),
            };
            // The look may have taken a while. A pod that is patched already, or has lost a claim, goes on to its delete.
            let begun = patched || self.given_up.borrow().contains_key(&pod.uid);
            if let Some(why) = self.stop.reason().filter(|_| !begun) {
                return settle(unsure, Outcome::Interrupted(why.to_owned()));
            }
            let patching = pod.held_by_job() && !pod.finished;
            let written = if patching {
                self.cluster
                    .fail_job_pod(&pod, &proof, mode)
                    .await
                    .map(Some)
            } else {
                self.cluster
                    .delete_pod(&pod, &proof, mode)
                    .await
                    .map(|()| None)
            };
            let failure = match written {
                Ok(Some(resource_version)) => {
                    pod.resource_version = resource_version;
                    (pod.finished, patched) = (true, true);
                    second_chances += 1;
                    continue;
                }
                Ok(None) if mode == WriteMode::DryRun => {
                    return Sent::Settled(Outcome::WouldDelete);
                }
                Ok(None) => return Sent::Accepted,
                Err(failure) => failure,
            };
            match failure.code() {
                _ if failure.is(StatusKind::NotFound) => return settle(unsure, Outcome::Gone),
                // A patch with another UID answers 422, which admission may answer just as well: reading the pod shows which.
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
                Some(500) if failure.is(StatusKind::Webhook) => {
                    return settle(unsure, denied(failure));
                }
                _ => {
                    tried += 1;
                    // A write that was not sent is tried at once, after another look at the node.
                    let not_sent = (failure == Failure::NotSent).then_some(Duration::ZERO);
                    let pause = failure
                        .pause(tried)
                        .or(not_sent)
                        .filter(|_| tried < WRITE_TRIES);
                    if failure.may_have_taken_effect() && !patching {
                        unsure = Some(failure.clone());
                    }
                    let Some(pause) = pause else {
                        return settle(unsure, Outcome::Failed(failure.to_string()));
                    };
                    if let Some(why) = self.stop.pause(pause).await {
                        return settle(
                            unsure,
                            Outcome::Interrupted(format!("{why}, after {failure}")),
                        );
                    }
                }
            }
        }
    }

    /// Judges `pod` by a fresh look at its node. Returns the proof, and the claims to delete before the pod. An error is the
    /// pod's outcome.
    async fn still_down(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
    ) -> Result<(StillDown, Vec<PinnedClaim>), Outcome> {
        let mut last = node.last.lock().await;
        let shared = last.take().filter(|look| look.taken.elapsed() < SHARED_FOR);
        let look = last.insert(if let Some(look) = shared {
            look
        } else {
            let taken = Instant::now();
            let result = self.cluster.node(&node.judged.name).await;
            // A failure counts from its end, so that the node's other pods do not each wait for another one.
            Look {
                taken: if result.is_err() {
                    Instant::now()
                } else {
                    taken
                },
                result,
            }
        });
        let name = &node.judged.name;
        let unread =
            |failure| Outcome::Failed(format!("node {name} could not be read again: {failure}"));
        let gone = || Outcome::NodeChanged("The node no longer exists.".to_owned());
        let look = look
            .result
            .as_ref()
            .map_err(unread)?
            .as_ref()
            .ok_or_else(gone)?;
        let proof = StillDown::prove(look, node.judged)?;
        let known = NodeRead::Known(look.facts.clone());
        let reason = Case::new(look.now, self.policy, Some(&known), pod).decide();
        // What could not be read has not changed. A node whose lease could not be read does not count as off.
        let unread = match reason.code {
            ReasonCode::FactsUnread => true,
            ReasonCode::SharedDisk => look.facts.unheard.is_some(),
            _ => false,
        };
        if reason.verdict() == Verdict::Reap {
            Ok((proof, reason.ties.pinned))
        } else if unread {
            Err(Outcome::Failed(format!(
                "node {name} could not be judged again: {}",
                reason.sentence
            )))
        } else {
            Err(Outcome::NodeChanged(reason.sentence))
        }
    }

    /// Reads a pod that was found changed, and judges it again. `Ok(None)` means that it is gone. An error is its outcome.
    async fn look_again(
        &self,
        node: &Node<'_>,
        judged: &PodFacts,
    ) -> Result<Option<PodFacts>, Outcome> {
        let changed = |how: &str| Outcome::Changed(how.to_owned());
        let raw = self
            .cluster
            .find::<RawPod>(&judged.namespace, &judged.name)
            .await
            .map_err(|failure| {
                Outcome::Failed(format!("it changed and could not be read again: {failure}"))
            })?;
        let Some(raw) = raw else { return Ok(None) };
        if raw.metadata.uid != judged.uid {
            return Err(changed("Another pod has taken its name."));
        }
        let mut again = raw
            .into_facts(judged.namespace_opted_out.clone())
            .map_err(|why| changed(&format!("It changed, and now {why}.")))?;
        if again.node != judged.node {
            return Err(changed("It is bound to another node now."));
        }
        // A pod's volumes never change: what was found about its claims still holds. Were there others, nothing was asked
        // about them, which the rules do not let through.
        if again.claims.named().eq(judged.claims.named()) {
            again.claims.clone_from(&judged.claims);
        }
        let known = NodeRead::Known(node.judged.clone());
        let reason = Case::new(self.now, self.policy, Some(&known), &again).decide();
        if reason.verdict() == Verdict::Reap {
            Ok(Some(again))
        } else {
            Err(changed(&reason.sentence))
        }
    }
}

fn denied(failure: Failure) -> Outcome {
    match failure {
        Failure::Status { code, message, .. } => Outcome::Denied(format!("{message} ({code})")),
        other => Outcome::Denied(other.to_string()),
    }
}
