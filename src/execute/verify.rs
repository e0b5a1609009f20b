//! Looking whether the deletes worked.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::{Run, log_outcome};
use crate::{
    cluster::Failure,
    facts::{PodFacts, Uid},
    outcome::Outcome,
};

/// How long the Job controller may take to let go of its pods.
const JOB_PATIENCE: Duration = Duration::from_secs(10);
/// The first pause between two looks, and the longest. Each look makes an API server before 1.31 read every pod of the
/// cluster.
const JOB_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

impl Run<'_> {
    /// What became of `pods` of one node. The delete of each was accepted; a failure beside a pod says why that is not known.
    pub async fn verify(
        &self,
        node: &str,
        pods: Vec<(&PodFacts, Option<Failure>)>,
    ) -> Vec<(Uid, Outcome)> {
        // What the last look saw that did not fail, and why a look failed.
        let (mut present, mut failed) = (None, None);
        let deadline = Instant::now() + JOB_PATIENCE;
        let (mut pause, longest) = JOB_PAUSES;
        loop {
            match self.cluster.pod_uids(node).await {
                Ok(uids) => present = Some(uids),
                Err(failure) => failed = Some(failure),
            }
            let waits = |uids: &BTreeSet<Uid>| {
                let held = |pod: &PodFacts| pod.held_by_job() && uids.contains(&pod.uid);
                pods.iter().any(|(pod, _)| held(pod))
            };
            if failed.is_some()
                || !present.as_ref().is_some_and(waits)
                || Instant::now() + pause > deadline
                || self.stop.reason().is_some()
            {
                break;
            }
            self.stop.pause(pause).await;
            pause = longest.min(2 * pause);
        }
        let outcomes = pods.into_iter().map(|(pod, unsure)| {
            let there = match (&present, &failed) {
                // A UID that was absent once stays absent, even if later looks failed.
                (Some(uids), _) if !uids.contains(&pod.uid) => Ok(false),
                (_, Some(failure)) => Err(failure),
                _ => Ok(true),
            };
            let outcome = match (unsure, there) {
                (None, Ok(false)) => Outcome::Deleted,
                (None, Ok(true)) => Outcome::StillThere,
                (None, Err(failure)) => Outcome::Unverified(failure.to_string()),
                (Some(_), Ok(false)) => Outcome::Gone,
                (Some(cause), Ok(true)) => Outcome::Failed(cause.to_string()),
                (Some(cause), Err(failure)) => Outcome::Failed(format!(
                    "{cause}; whether it is gone could not be read: {failure}"
                )),
            };
            log_outcome(pod, &outcome);
            (pod.uid.clone(), outcome)
        });
        outcomes.collect()
    }
}
