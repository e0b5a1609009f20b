//! Looking whether the deletes worked.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::{Run, Sent, log_outcome};
use crate::{
    facts::{PodFacts, Uid},
    outcome::Outcome,
};

/// How long the Job controller may take to let go of its pods.
const JOB_PATIENCE: Duration = Duration::from_secs(10);
/// The first pause between two looks, and the longest. Each look makes an API server before 1.31 read every pod of the
/// cluster.
const JOB_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

impl Run<'_> {
    pub(super) async fn verify(
        &self,
        node: &str,
        pods: Vec<(&PodFacts, Sent)>,
    ) -> Vec<(Uid, Outcome)> {
        let by_job = pods
            .iter()
            .filter(|(pod, _)| pod.held_by_job())
            .map(|(pod, _)| &pod.uid)
            .collect::<BTreeSet<_>>();
        // An error until a look has succeeded.
        let mut present = self.cluster.pod_uids(node).await;
        // Why the last look failed, if an earlier one did not.
        let mut later = None;
        let deadline = Instant::now() + JOB_PATIENCE;
        let (mut pause, longest) = JOB_PAUSES;
        while let Ok(uids) = &present
            && uids.iter().any(|uid| by_job.contains(uid))
            && Instant::now() + pause <= deadline
            && self.stop.reason().is_none()
        {
            self.stop.pause(pause).await;
            pause = longest.min(2 * pause);
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
            // A UID that was absent once stays absent, even if later looks failed.
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
                (Sent::Unsure(cause), Err(failure)) => Outcome::Failed(format!(
                    "{cause}; whether it is gone could not be read: {failure}"
                )),
            };
            log_outcome(pod, &outcome);
            (pod.uid.clone(), outcome)
        });
        outcomes.collect()
    }
}
