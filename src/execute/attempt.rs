//! One pod's turn: its node is read again, its claims and the pod are deleted, and each of the API
//! server's answers becomes an outcome.

use std::time::Duration;

use tokio::time::Instant;

use super::{Node, NotAccepted, Run, log_outcome};
use crate::{
    cluster::{Failure, FreshNode, StatusKind, StillDown, WriteMode},
    decide::{Case, NodeAtTime, PinnedClaim, ReasonCode, Verdict},
    facts::{ClaimFacts, NamespaceFacts, NodeRead, PodFacts, Unread, namespace},
    kubernetes::RawPod,
    outcome::Outcome,
    source::wanted_again,
};

/// How long one reading of a node also serves the node's other pods. It is short, so that most of
/// the five seconds that a reading is valid are left for their deletes.
const SHARED_FOR: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Deletes `pod`, if nothing speaks against it by now. `Ok` if the API server accepted the
    /// delete, which is then still to be verified.
    pub async fn reap(&self, node: &Node<'_>, pod: &PodFacts) -> Result<(), NotAccepted> {
        self.may_begin()?;
        let accepted = self.attempt(node, pod).await;
        if let Err(NotAccepted::Settled(outcome)) = &accepted {
            log_outcome(pod, outcome);
        }
        accepted
    }

    /// Returns `Err` with the pod's outcome if the run has to end and must not begin anything new.
    fn may_begin(&self) -> Result<(), Outcome> {
        let interrupted = |why: &str| Err(Outcome::Interrupted(why.to_owned()));
        self.stop.reason().map_or(Ok(()), interrupted)
    }

    /// Carries out a turn that has begun. A dry run ends it with `WouldDelete`.
    async fn attempt(&self, node: &Node<'_>, pod: &PodFacts) -> Result<(), NotAccepted> {
        match namespace(&self.namespaces, &pod.namespace) {
            Ok(NamespaceFacts {
                opted_out: None, ..
            }) => {}
            Ok(_) => return Err(Outcome::OptedOut.into()),
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
                let why = "A claim would go with it that something wants by now.";
                return Err(Outcome::Changed(why.to_owned()).into());
            }
            Err(failure) => {
                let why = format!("who wants its claims could not be read again: {failure}");
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

    /// Deletes the claims that are given up with `pod`. All deletes, the pod's included, are
    /// rehearsed as server dry runs first, so that no claim is lost for a pod that cannot be
    /// deleted.
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
        // The rehearsal may have taken a while, so the node is read anew before the first real
        // delete. From here on no signal stops a claim's delete or keeps the pod from being tried:
        // a pod that has lost one claim should go too.
        node.last_reading.lock().await.take();
        self.may_begin()?;
        for claim in &claims {
            self.delete_claim(node, pod, &claim.claim, WriteMode::Real)
                .await?;
        }
        Ok(())
    }

    /// Deletes one claim of `pod`. Each try follows a fresh reading of the node, and is made only
    /// if the claim is still to be given up. A claim that changed is left to the next run.
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
                let why = format!("Claim {name} is not to be given up any more.");
                return Err(Outcome::Changed(why));
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
                let stopped = self.stop.pause(pause).await;
                if let Some(why) = stopped.filter(|_| mode == WriteMode::DryRun) {
                    return Err(Outcome::Interrupted(format!("{why}, after {failure}")));
                }
                continue;
            }
            return Err(match failure.denial() {
                _ if failure.code() == Some(409) => {
                    Outcome::Changed(format!("Claim {name} changed after it was judged."))
                }
                // This is RBAC's wording. The guard's is another, and no right would help against
                // it.
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

    /// Deletes the pod. Once a try without a clear answer may have taken effect, a later "not
    /// found" no longer tells who deleted the pod. Then the result is `Unsure`, for the verifying
    /// list to settle.
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

    /// Deletes the pod. If the Job controller holds it, its status is patched first. Each try
    /// follows a fresh reading of the node. `unsure` receives the last failure of a delete that may
    /// have taken effect.
    async fn try_delete(
        &self,
        node: &Node<'_>,
        mut pod: PodFacts,
        mode: WriteMode,
        unsure: &mut Option<Failure>,
    ) -> Result<(), Outcome> {
        let mut tried = 0;
        // A pod that changed gets one second chance. Our own patch changes the pod too, and adds
        // one.
        let mut second_chances = 1;
        let mut patched = false;
        loop {
            let (proof, _) = self.still_down(node, &pod).await?;
            // The run may have had to end while the node was read. A pod that was patched or has
            // lost a claim is deleted all the same.
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
            // The API server answers 422 to a patch with another pod's UID, but admission may
            // answer that too. Reading the pod again tells them apart.
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

    /// Judges `pod` by a fresh reading of its node. Returns the proof that a write needs, and the
    /// claims to delete before the pod. `Err` is the pod's outcome if it may no longer be deleted.
    async fn still_down(
        &self,
        node: &Node<'_>,
        pod: &PodFacts,
    ) -> Result<(StillDown, Vec<PinnedClaim>), Outcome> {
        let fresh = self.fresh(node).await?;
        let proof = StillDown::prove(&fresh, node.judged)?;
        // The answer may have lifted the breaker, which the rules do not ask about.
        let counts = |now, node| {
            let (policy, pod) = (self.policy, None);
            NodeAtTime {
                now,
                policy,
                node,
                pod,
            }
            .node_answer_counts()
        };
        if counts(self.now, node.judged) && !counts(fresh.now, &fresh.facts) {
            let why = "The answer pod-reaper.io/powered-off on the node no longer counts.";
            return Err(Outcome::NodeChanged(why.to_owned()));
        }
        let unread_leases = fresh.facts.unread_lease.is_some() || fresh.facts.named_by.is_err();
        let known = NodeRead::Known(fresh.facts);
        let reason = Case::new(fresh.now, self.policy, Some(&known), pod).decide();
        // A fact that could not be read has not changed, so it is a failure. A shared disk holds a
        // pod whose node's lease could not be read, because the node then does not count as off.
        let unread = match reason.code {
            ReasonCode::FactsUnread => true,
            ReasonCode::SharedDisk => unread_leases,
            _ => false,
        };
        match reason.verdict() {
            Verdict::Reap => Ok((proof, reason.given_up().cloned().collect())),
            _ if unread => Err(Outcome::Failed(format!(
                "node {} could not be judged again: {}",
                node.judged.name, reason.sentence
            ))),
            _ => Err(Outcome::NodeChanged(reason.sentence)),
        }
    }

    /// Reads the node, or returns its last reading if that is recent. `Err` is the pod's outcome.
    async fn fresh(&self, node: &Node<'_>) -> Result<FreshNode, Outcome> {
        let name = &node.judged.name;
        let mut last_reading = node.last_reading.lock().await;
        if let Some((taken, fresh)) = &*last_reading
            && taken.elapsed() < SHARED_FOR
        {
            return fresh.clone();
        }
        let fresh = match self.cluster.node(name, node.judged).await {
            Ok(Some(fresh)) => Ok(fresh),
            Ok(None) => Err(Outcome::NodeChanged(
                "The node no longer exists.".to_owned(),
            )),
            Err(failure) => Err(Outcome::Failed(format!(
                "node {name} could not be read again: {failure}"
            ))),
        };
        // A failure is kept from the time when it came, not from the request's start. Otherwise
        // each of the node's pods would wait for a failure of its own.
        let taken = fresh
            .as_ref()
            .map_or_else(|_| Instant::now(), |fresh| fresh.at);
        *last_reading = Some((taken, fresh.clone()));
        fresh
    }

    /// Reads a pod that has changed, and judges it again. Returns its present facts if it is still
    /// to be reaped. `Err` is its outcome.
    async fn look_again(&self, node: &Node<'_>, judged: &PodFacts) -> Result<PodFacts, Outcome> {
        let changed = |why: &str| Outcome::Changed(why.to_owned());
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
        let mut now = node.judged.clone();
        now.hear(raw.heard());
        let mut again = raw
            .facts()
            .map_err(|why| changed(&format!("It changed, and now {why}.")))?;
        again.in_namespace.clone_from(&judged.in_namespace);
        if again.node != judged.node {
            return Err(changed("It is bound to another node now."));
        }
        // A pod's volumes never change, so the facts about its claims still hold. If its claims
        // differ nevertheless, nothing is known about them, and the rules do not let it through.
        if again
            .claims
            .iter()
            .map(ClaimFacts::named)
            .eq(judged.claims.iter().map(ClaimFacts::named))
        {
            again.claims.clone_from(&judged.claims);
        }
        let known = NodeRead::Known(now);
        let reason = Case::new(self.now, self.policy, Some(&known), &again).decide();
        if reason.verdict() == Verdict::Reap {
            Ok(again)
        } else {
            Err(changed(&reason.sentence))
        }
    }
}
