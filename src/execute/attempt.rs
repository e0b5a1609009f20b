//! One pod's turn: read its node again, write, and settle what the answer means.

use std::time::Duration;

use tokio::time::Instant;

use super::{Node, NotAccepted, Run, log_outcome};
use crate::{
    cluster::{Failure, FreshNode, StatusKind, StillDown, WriteMode},
    decide::{Case, PinnedClaim, ReasonCode, Verdict},
    facts::{ClaimFacts, NodeRead, PodFacts, Unread, opted_out},
    kubernetes::RawPod,
    outcome::Outcome,
    source::wanted_again,
};

/// How long one reading of a node serves its other pods too: short enough to leave their deletes most of the five seconds.
const SHARED_FOR: Duration = Duration::from_secs(1);

impl Run<'_> {
    pub async fn reap(&self, node: &Node<'_>, pod: &PodFacts) -> Result<(), NotAccepted> {
        self.may_begin()?;
        let accepted = self.attempt(node, pod).await;
        if let Err(NotAccepted::Settled(outcome)) = &accepted {
            log_outcome(pod, outcome);
        }
        accepted
    }

    /// Fails where the run has to end, so that nothing new may be begun.
    fn may_begin(&self) -> Result<(), Outcome> {
        let interrupted = |why: &str| Err(Outcome::Interrupted(why.to_owned()));
        self.stop.reason().map_or(Ok(()), interrupted)
    }

    async fn attempt(&self, node: &Node<'_>, pod: &PodFacts) -> Result<(), NotAccepted> {
        match opted_out(&self.namespaces, &pod.namespace) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(Outcome::OptedOut.into()),
            Err(Unread(why)) => {
                let why = format!("its namespace could not be read again: {why}");
                return Err(Outcome::Failed(why).into());
            }
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
        match wanted_again(self.cluster, pod).await {
            Ok(false) => {}
            Ok(true) => {
                let how = "A claim that it owns would go with it, but its StatefulSet wants the pod again.";
                return Err(Outcome::Changed(how.to_owned()).into());
            }
            Err(failure) => {
                let why = format!("its StatefulSet could not be read again: {failure}");
                return Err(Outcome::Failed(why).into());
            }
        }
        self.give_up_claims(node, pod).await?;
        self.delete(node, pod, self.mode).await?;
        if dry_run {
            return Err(Outcome::WouldDelete.into());
        }
        Ok(())
    }

    /// Deletes the claims that go before `pod`, after a rehearsal of its own delete and of theirs.
    async fn give_up_claims(&self, node: &Node<'_>, pod: &PodFacts) -> Result<(), NotAccepted> {
        let (_, claims) = self.still_down(node, pod).await?;
        if claims.is_empty() {
            return Ok(());
        }
        self.delete(node, pod, WriteMode::DryRun).await?;
        for claim in &claims {
            self.may_begin()?;
            self.delete_claim(node, pod, &claim.claim, WriteMode::DryRun)
                .await?;
        }
        if self.mode == WriteMode::DryRun {
            return Ok(());
        }
        // The rehearsal may have taken long, so the node is read anew before the first real delete. After this check a signal stops
        // nothing: a pod that has lost a claim is deleted too.
        node.last.lock().await.take();
        self.may_begin()?;
        for claim in &claims {
            self.delete_claim(node, pod, &claim.claim, WriteMode::Real)
                .await?;
        }
        Ok(())
    }

    /// Deletes one claim, as far as it is still to be given up; each try after another reading of the node. A claim that
    /// changed meanwhile is left to the next run.
    async fn delete_claim(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
        name: &str,
        mode: WriteMode,
    ) -> Result<(), Outcome> {
        let mut tried = 0;
        loop {
            let (proof, claims) = self.still_down(node, pod).await?;
            let Some(claim) = claims.iter().find(|claim| claim.claim == name) else {
                let how = format!("Claim {name} is not to be given up any more.");
                return Err(Outcome::Changed(how));
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
            if let Some(pause) = failure.pause(tried) {
                self.stop.pause(pause).await;
                continue;
            }
            return Err(match failure.denial() {
                _ if failure.code() == Some(409) => {
                    Outcome::Changed(format!("Claim {name} changed after it was judged."))
                }
                // RBAC's words, not the guard's.
                Some(words) if words.contains("cannot delete resource") => {
                    let by_hand = &pod.namespace;
                    Outcome::Denied(format!(
                        "{failure}; cronjob/components/answers grants that right, and with a person's own rights a run by hand \
                         does it too: pod-reaper -n {by_hand}"
                    ))
                }
                Some(words) => Outcome::Denied(words),
                None => Outcome::Failed(format!("claim {name}: {failure}")),
            });
        }
    }

    /// Deletes the pod. Once a try may have taken effect although no answer said so, "not there" proves nothing about who
    /// did it, and the verifying list has to settle it.
    async fn delete(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
        mode: WriteMode,
    ) -> Result<(), NotAccepted> {
        let mut unsure = None;
        let accepted = self.try_delete(node, pod.clone(), mode, &mut unsure).await;
        accepted
            .map_err(|outcome| unsure.map_or(NotAccepted::Settled(outcome), NotAccepted::Unsure))
    }

    /// Deletes the pod, after a patch of its status where the Job controller holds it; each try after another reading of the node.
    /// `unsure` receives the last failure that may have deleted the pod all the same.
    async fn try_delete(
        &self,
        node: &Node<'_>,
        mut pod: PodFacts,
        mode: WriteMode,
        unsure: &mut Option<Failure>,
    ) -> Result<(), Outcome> {
        let mut tried = 0;
        // A pod that changed is judged once more. The change that our own patch brings about does not count.
        let mut second_chances = 1;
        let mut patched = false;
        loop {
            let (proof, _) = self.still_down(node, &pod).await?;
            // To read the node may have taken a while. A pod that is patched already, or has lost a claim, goes on to its delete.
            if !patched && !self.given_up.borrow().contains_key(&pod.uid) {
                self.may_begin()?;
            }
            let patching = pod.held_by_job() && !pod.finished;
            let failure = if patching {
                match self.cluster.fail_job_pod(&pod, &proof, mode).await {
                    Ok(resource_version) => {
                        pod.resource_version = resource_version;
                        (pod.finished, patched) = (true, true);
                        second_chances += 1;
                        continue;
                    }
                    Err(failure) => failure,
                }
            } else {
                match self.cluster.delete_pod(&pod, &proof, mode).await {
                    Ok(()) => return Ok(()),
                    Err(failure) => failure,
                }
            };
            if failure.is(StatusKind::NotFound) {
                return Err(Outcome::Gone);
            }
            let conflict = failure.code() == Some(409);
            // A patch with another UID answers 422, which admission may answer just as well: reading the pod shows which.
            if second_chances > 0 && (conflict || patching && failure.code() == Some(422)) {
                second_chances -= 1;
                let again = self.look_again(node, &pod).await?;
                if conflict {
                    pod = again;
                    continue;
                }
            }
            if conflict {
                let changing = "It keeps changing while it is being deleted.";
                return Err(Outcome::Changed(changing.to_owned()));
            }
            if let Some(words) = failure.denial() {
                return Err(Outcome::Denied(words));
            }
            if failure.may_have_taken_effect() && !patching {
                *unsure = Some(failure.clone());
            }
            tried += 1;
            let Some(pause) = failure.pause(tried) else {
                return Err(Outcome::Failed(failure.to_string()));
            };
            if let Some(why) = self.stop.pause(pause).await {
                return Err(Outcome::Interrupted(format!("{why}, after {failure}")));
            }
        }
    }

    /// Judges `pod` by a fresh reading of its node. Returns the proof, and the claims to delete before the pod. An error is the
    /// pod's outcome.
    async fn still_down(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
    ) -> Result<(StillDown, Vec<PinnedClaim>), Outcome> {
        let fresh = self.fresh(node).await?;
        let proof = StillDown::prove(&fresh, node.judged)?;
        let unheard = fresh.facts.unheard.is_some();
        let known = NodeRead::Known(fresh.facts);
        let reason = Case::new(fresh.now, self.policy, Some(&known), pod).decide();
        // What could not be read has not changed. A node whose lease could not be read does not count as off.
        let unread = match reason.code {
            ReasonCode::FactsUnread => true,
            ReasonCode::SharedDisk => unheard,
            _ => false,
        };
        match reason.verdict() {
            Verdict::Reap => Ok((proof, reason.ties.pinned)),
            _ if unread => Err(Outcome::Failed(format!(
                "node {} could not be judged again: {}",
                node.judged.name, reason.sentence
            ))),
            _ => Err(Outcome::NodeChanged(reason.sentence)),
        }
    }

    /// The node as it is read now, or was a moment ago.
    async fn fresh(&self, node: &Node<'_>) -> Result<FreshNode, Outcome> {
        let name = &node.judged.name;
        let mut last = node.last.lock().await;
        if let Some((taken, fresh)) = &*last
            && taken.elapsed() < SHARED_FOR
        {
            return fresh.clone();
        }
        let fresh = match self.cluster.node(name).await {
            Ok(Some(fresh)) => Ok(fresh),
            Ok(None) => Err(Outcome::NodeChanged(
                "The node no longer exists.".to_owned(),
            )),
            Err(failure) => Err(Outcome::Failed(format!(
                "node {name} could not be read again: {failure}"
            ))),
        };
        // A failure counts from its end, so that the node's other pods do not each wait for another one.
        let taken = fresh
            .as_ref()
            .map_or_else(|_| Instant::now(), |fresh| fresh.at);
        *last = Some((taken, fresh.clone()));
        fresh
    }

    /// Reads a pod that was found changed, and judges it again. An error is its outcome.
    async fn look_again(&self, node: &Node<'_>, judged: &PodFacts) -> Result<PodFacts, Outcome> {
        let changed = |how: &str| Outcome::Changed(how.to_owned());
        let raw = self
            .cluster
            .find::<RawPod>(&judged.namespace, &judged.name)
            .await
            .map_err(|failure| {
                Outcome::Failed(format!("it changed and could not be read again: {failure}"))
            })?
            .ok_or(Outcome::Gone)?;
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
        let (claims, known) = (again.claims.iter(), judged.claims.iter());
        if claims
            .map(ClaimFacts::named)
            .eq(known.map(ClaimFacts::named))
        {
            again.claims.clone_from(&judged.claims);
        }
        let known = NodeRead::Known(node.judged.clone());
        let reason = Case::new(self.now, self.policy, Some(&known), &again).decide();
        if reason.verdict() == Verdict::Reap {
            Ok(again)
        } else {
            Err(changed(&reason.sentence))
        }
    }
}
