//! One pod's turn: the run reads the pod's node again, deletes the pod, and turns each response of
//! the API server into an outcome.

use std::{
    cell::{OnceCell, RefCell},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    cluster::{Api as _, Cluster, Failure, NodeAgain, Permit, StatusKind},
    facts::{
        Heartbeat, NamespaceFacts, Namespaces, NodeFacts, PodFacts, Read, Unneeded, Unread,
        namespace,
    },
    judge::{Judged, PodContext, Policy, ReasonCode, Verdict},
    kubernetes::{Holders, LeasesByNode, RawPod, RawStatefulSet},
    outcome::{Outcome, OutcomeCode},
    stop::Stop,
};

/// How long pods share one reading of their node, or a failure. The time is short, so that most of the
/// five seconds for which a reading is valid remain for the deletes.
const NODE_SHARED_FOR: Duration = Duration::from_secs(1);

/// How long a reading of the other Leases serves.
const LEASES_SHARED_FOR: Duration = Duration::from_mins(1);

/// How long before the first write the guard may have been proved: a binding can be removed while a person reads the
/// question, or while a slow server answers.
const PROOF_FRESH_FOR: Duration = Duration::from_secs(30);

/// The last reading that turns share, and the moment from which its age counts. The lock is held while
/// it is read again, so that other turns wait for that reading.
pub struct Shared<T, E>(pub Mutex<Option<(Instant, Result<T, E>)>>);

impl<T: Clone, E: Clone> Shared<T, E> {
    /// Returns the last reading if it is younger than `shared_for`, and otherwise reads again. The age of
    /// a failure counts from the moment when it came. Otherwise each pod would wait for a failure of its
    /// own.
    async fn get(
        &self,
        shared_for: Duration,
        read: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut last = self.0.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < result.as_ref().map_or(NODE_SHARED_FOR, |_| shared_for)
        {
            return result.clone();
        }
        let asked = Instant::now();
        let result = read().await;
        let at = result.as_ref().map_or_else(|_| Instant::now(), |_| asked);
        *last = Some((at, result.clone()));
        result
    }
}

/// The last reading of the other Leases: `None` as long as it is the one that the pods were judged by.
type LeasesAgain = Shared<Option<Arc<LeasesByNode>>, Unread>;

/// The context that the turns of all pods share.
pub struct Run<'a> {
    pub cluster: &'a Cluster,
    pub stop: &'a Stop,
    pub policy: &'a Policy,
    /// The reading of the namespaces before the first delete.
    pub namespaces: Read<Namespaces>,
    /// When the guard was proved; `None` if that is not required, or once a write has begun, which had a proof.
    pub proved: Mutex<Option<Instant>>,
    /// Why the guard could not be proved again. No turn writes then.
    pub unguarded: OnceCell<String>,
    /// The moment at which the plan's pods were judged.
    pub now: Timestamp,
    /// The possible holders of the other Leases, and the last reading; `None` if these Leases were
    /// not read.
    pub leases: Option<(&'a Holders, LeasesAgain)>,
}

/// A node of the plan.
pub struct Node<'a> {
    /// The facts that the node's pods were judged by.
    pub as_judged: &'a NodeFacts,
    /// The heartbeats of the node's machine that changed pods have shown since. They apply to all
    /// of the node's pods.
    pub heard: RefCell<Vec<Heartbeat>>,
    /// The last reading of the node, or the outcome of its pods.
    pub again: Shared<NodeAgain, Outcome>,
}

/// The next write of a pod's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// A dry run of the delete, before a Job's pod is set to `Failed`.
    DryRun,
    SetToFailed,
    Delete,
}

impl Action {
    /// Returns the first write. A pod that the Job controller's finalizer holds is set to `Failed` before
    /// it is deleted, once a dry run has shown that nothing refuses the delete.
    fn first(pod: &PodFacts) -> Self {
        if pod.held_by_job() && !pod.finished() {
            Self::DryRun
        } else {
            Self::Delete
        }
    }
}

/// The turn of one pod of the plan.
pub struct Turn<'a> {
    pub run: &'a Run<'a>,
    pub node: &'a Node<'a>,
    pub judged: &'a Judged,
    /// Whether the pod's phase was set to `Failed`, or may have been.
    pub patched: bool,
    /// The last failure that leaves open whether the pod's delete took effect. The verifying list
    /// settles this, whatever happened afterwards.
    pub unsure: Option<Failure>,
}

impl Turn<'_> {
    /// Deletes the pod, unless a rule now keeps it. `Ok` if the API server accepted the delete, which still
    /// has to be verified. Each try has a permit of its own. Once a try without a clear response may have taken
    /// effect, a later "not found" no longer tells who deleted the pod.
    pub async fn delete(&mut self) -> Result<(), Outcome> {
        let cluster = self.run.cluster;
        let mut pod = PodFacts::clone(&self.judged.pod);
        let mut tried = 0;
        // A pod that changed gets one second chance. Our own patch changes the pod too, and adds
        // one.
        let mut second_chances = 1;
        let mut action = Action::first(&pod);
        loop {
            let permit = self.permit(&pod).await?;
            if !self.is_guarded().await? {
                // The permit has aged.
                continue;
            }
            let written = match action {
                Action::DryRun => cluster.delete_pod(&permit, true).await,
                Action::SetToFailed => cluster
                    .fail_job_pod(&permit)
                    .await
                    .map(|version| pod.resource_version = version),
                Action::Delete => {
                    tracing::info!(
                        "Force-deleting pod {} in namespace {} on node {} with deletion timestamp {}",
                        pod.name,
                        pod.namespace,
                        self.node.as_judged.name,
                        pod.deletion_deadline()
                    );
                    cluster.delete_pod(&permit, false).await
                }
            };
            let failure = match written {
                Ok(()) => {
                    // Each action has tries of its own.
                    tried = 0;
                    match action {
                        Action::DryRun => action = Action::SetToFailed,
                        Action::SetToFailed => {
                            "Failed".clone_into(&mut pod.phase);
                            self.patched = true;
                            second_chances += 1;
                            action = Action::Delete;
                        }
                        Action::Delete => {
                            self.unsure = None;
                            return Ok(());
                        }
                    }
                    continue;
                }
                Err(failure) if failure.is(StatusKind::NotFound) => return Err(Outcome::Gone),
                Err(failure) => failure,
            };
            let conflict = failure.code() == Some(409);
            // The API server responds with 422 to a patch with another pod's UID, but so may
            // admission. Reading the pod again tells the two cases apart.
            if second_chances > 0
                && (conflict || action == Action::SetToFailed && failure.code() == Some(422))
            {
                second_chances -= 1;
                let again = self.read_pod_again(&pod).await?;
                if conflict {
                    (action, pod) = (Action::first(&again), again);
                    continue;
                }
            }
            if conflict {
                let changing = "It keeps changing while it is being deleted.";
                return Err(Outcome::Changed(changing.to_owned()));
            }
            match action {
                Action::SetToFailed if failure.may_have_taken_effect() => self.patched = true,
                Action::Delete if failure.may_have_taken_effect() => {
                    self.unsure = Some(failure.clone());
                }
                _ => {}
            }
            self.pause_before_next_try(&mut tried, &failure).await?;
        }
    }

    /// Reads the pod's node again, judges the pod by it, and reads again the `StatefulSet` that lets the pod go.
    /// Returns the permission to write to the pod. `Err` is the pod's outcome if the pod may no longer be deleted.
    /// The permit expires by the time of the node's reading. The other Leases may be a minute older, and
    /// PVCs are as gathering read them: reading them again would let one namespace's PVCs stop the run for others.
    async fn permit(&self, pod: &PodFacts) -> Result<Permit, Outcome> {
        let Run {
            cluster, policy, ..
        } = self.run;
        let as_judged = self.node.as_judged;
        let leases = self.leases_again().await;
        let read = async || cluster.read_node_again(as_judged, policy, leases).await;
        let node = self.node.again.get(NODE_SHARED_FOR, read).await?;
        let storage = self.judged.storage.as_ref();
        let heard = self.node.heard.borrow().clone();
        let permit = node
            .permit(policy, (pod, storage), heard, self.patched)
            .map_err(|reason| {
                // A fact that could not be read is no change, so the outcome is a failure. If a node's
                // lease could not be read, the node is not treated as off, and a shared disk then keeps
                // the pod.
                let is_unread = match reason.code() {
                    ReasonCode::FactsUnread => true,
                    // No grace period is cut short without the leases.
                    ReasonCode::NotOverdue | ReasonCode::SharedDisk => node.lacks_leases(),
                    _ => false,
                };
                if is_unread {
                    let name = &as_judged.name;
                    Outcome::failed(&format_args!(
                        "node {name} could not be judged again: {reason}"
                    ))
                } else {
                    Outcome::NodeChanged(reason.to_string())
                }
            })?;
        let unneeded = permit.unneeded();
        if unneeded == Some(Unneeded::Set)
            && let Some(set) = pod.stateful_set()
        {
            self.check_set(pod, set).await?;
        }
        self.check_namespace(unneeded == Some(Unneeded::Namespace))?;
        Ok(permit)
    }

    /// Reports whether the turn may write: the guard was proved a short time ago, or a write has begun. Otherwise the run
    /// proves the guard again, and the caller's permit has aged. `Err` if the guard does not work any more.
    async fn is_guarded(&self) -> Result<bool, Outcome> {
        let Run {
            cluster, unguarded, ..
        } = self.run;
        let mut proved = self.run.proved.lock().await;
        if proved.is_none_or(|at| at.elapsed() <= PROOF_FRESH_FOR) {
            *proved = None;
            return Ok(true);
        }
        if let Some(why) = unguarded.get() {
            return Err(Outcome::failed(why));
        }
        let at = Instant::now();
        match cluster.prove().await {
            Ok(()) => {
                *proved = Some(at);
                Ok(false)
            }
            Err(why) => Err(Outcome::failed(unguarded.get_or_init(|| why))),
        }
    }

    /// Reads the other Leases again if the last reading is old. Returns `None` as long as the last reading is
    /// that by which the pods were judged, or if there was none.
    async fn leases_again(&self) -> Option<(&Holders, Read<Arc<LeasesByNode>>)> {
        let (holders, last) = self.run.leases.as_ref()?;
        let read = async || {
            let leases = self.run.cluster.leases_of(holders).await?;
            Ok(Some(Arc::new(leases)))
        };
        let leases = last.get(LEASES_SHARED_FOR, read).await;
        Some((holders, leases.transpose()?))
    }

    /// Reads again the `StatefulSet` that showed that nothing wants the pod. `Err` is the pod's outcome if it wants the pod
    /// now, or could not be read.
    async fn check_set(&self, pod: &PodFacts, set: &str) -> Result<(), Outcome> {
        let read = self.run.cluster.find::<RawStatefulSet>(&pod.namespace, set);
        match read.await {
            Ok(Some(set)) if set.wants(&pod.name) => Err(Outcome::Changed(
                "A StatefulSet now wants the pod again.".to_owned(),
            )),
            Ok(_) => Ok(()),
            Err(failure) => Err(Outcome::failed(&format_args!(
                "whether a StatefulSet wants it could not be read again: {failure}"
            ))),
        }
    }

    /// Returns `Err` with the pod's outcome if the pod's namespace is now opted out, or not known, or not `is_deleted` as it
    /// was. All namespaces were read again before the first delete.
    fn check_namespace(&self, is_deleted: bool) -> Result<(), Outcome> {
        match namespace(&self.run.namespaces, &self.judged.pod.namespace) {
            Ok(NamespaceFacts { deleted: false, .. }) if is_deleted => Err(Outcome::Changed(
                "Its namespace is not being deleted any more.".to_owned(),
            )),
            Ok(NamespaceFacts {
                opted_out: Some(skip),
                ..
            }) if skip.holds(self.run.now) => Err(Outcome::OptedOut),
            Ok(_) => Ok(()),
            Err(Unread(why)) => {
                let why = format!("its namespace could not be read again: {why}");
                Err(Outcome::failed(&why))
            }
        }
    }

    /// Reads a pod that has changed, and judges it again by the node's facts of the plan.
    /// `permit` checks whether the node has changed.
    async fn read_pod_again(&self, pod: &PodFacts) -> Result<PodFacts, Outcome> {
        let changed = |why: &str| Outcome::Changed(why.to_owned());
        let Run {
            cluster,
            policy,
            now,
            ..
        } = self.run;
        let raw = cluster
            .find::<RawPod>(&pod.namespace, &pod.name)
            .await
            .map_err(|failure| {
                Outcome::failed(&format_args!(
                    "it changed and could not be read again: {failure}"
                ))
            })?
            .ok_or(Outcome::Gone)?;
        if raw.metadata.uid != pod.uid {
            return Err(changed("Another pod has taken its name."));
        }
        let mut node = self.node.as_judged.clone();
        let mut again = raw.facts;
        // A pod that never started has no program.
        let heard = again.heard.clone().filter(|_| raw.has_started);
        self.node.heard.borrow_mut().extend(heard.clone());
        // The next permit believes by its own time what is later than the run's.
        node.hear(heard.filter(|it| it.is_believed(*now)));
        if let Some(why) = &again.lacks {
            return Err(changed(&format!("It changed, and now {why}.")));
        }
        again.in_namespace.clone_from(&pod.in_namespace);
        if again.node != pod.node {
            return Err(changed("It is bound to another node now."));
        }
        // The list of a pod's PVCs never changes. If it differs nevertheless, nothing is known about them, and the
        // rules keep the pod.
        let storage = self
            .judged
            .storage
            .as_ref()
            .filter(|_| again.claim_names == pod.claim_names);
        let reason = PodContext::new(*now, policy, Ok(Some(&node)), &again).decide(storage);
        if reason.verdict() == Verdict::Reap {
            Ok(again)
        } else {
            Err(changed(&reason.to_string()))
        }
    }

    /// Adds to an `outcome` that did not go well that this turn has set the pod to `Failed`, because
    /// the user has to know.
    pub fn with_patch_told(&self, outcome: Outcome) -> Outcome {
        let code = outcome.code();
        let is_accepted = matches!(code, OutcomeCode::StillThere | OutcomeCode::Unverified);
        if !self.patched || code.went_well() || is_accepted {
            return outcome;
        }
        let consequence = match code {
            OutcomeCode::Failed => "the pod may still be there",
            _ => "this run did not delete the pod",
        };
        let sentence = outcome.sentence();
        Outcome::unsettled(&format_args!(
            "its phase was set to Failed, or may have been, so its Job may start another pod, and {consequence}. {sentence}"
        ))
    }

    /// Pauses before the next try. `Err` is the pod's outcome if there is no next try: another try is
    /// of no use, or the run has to end and this turn has not patched the pod.
    async fn pause_before_next_try(
        &self,
        tried: &mut u32,
        failure: &Failure,
    ) -> Result<(), Outcome> {
        *tried += 1;
        let Some(pause) = failure.pause(*tried) else {
            return Err(match failure.denial() {
                Some(words) => Outcome::Denied(words),
                None => Outcome::failed(failure),
            });
        };
        match self.run.stop.pause(pause).await {
            Some(why) if !self.patched => Err(Outcome::Interrupted(why.to_owned())),
            _ => Ok(()),
        }
    }
}
