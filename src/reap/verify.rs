//! Verifies, with a list of each node's pods, that the deleted pods are gone.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::{
    log_outcome,
    turn::{Run, Turn},
};
use crate::{facts::Uid, outcome::Outcome};

/// How long the Job controller may take to remove its finalizer from its pods.
const JOB_TIME_LIMIT: Duration = Duration::from_secs(10);
/// The pause after the first list. It doubles after each further one, because every list makes an
/// API server before 1.31 read all pods of the cluster.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two lists.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// Returns the outcomes of `turns`, whose pods are all on one node. The API server has, or may
    /// have, accepted the delete of each pod.
    pub async fn verify(&self, node: &str, turns: Vec<Turn<'_>>) -> Vec<(Uid, Outcome)> {
        // The UIDs in the last list that could be read, and the failure of a list that could not be
        // read.
        let (mut present, mut failed) = (None, None);
        let deadline = Instant::now() + JOB_TIME_LIMIT;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.cluster.pod_uids(node).await {
                Ok(uids) => present = Some(uids),
                Err(failure) => failed = Some(failure),
            }
            let is_held = present.as_ref().is_some_and(|uids: &BTreeSet<Uid>| {
                turns
                    .iter()
                    .map(|turn| &turn.judged.pod)
                    .any(|pod| pod.held_by_job() && uids.contains(&pod.uid))
            });
            if failed.is_some()
                || !is_held
                || Instant::now() + pause > deadline
                || self.stop.reason().is_some()
            {
                break;
            }
            self.stop.pause(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
        turns
            .into_iter()
            .map(|turn| {
                let pod = &turn.judged.pod;
                let there = match (&present, &failed) {
                    // A UID that was absent once stays absent, even if later lists failed.
                    (Some(uids), _) if !uids.contains(&pod.uid) => Ok(false),
                    (_, Some(failure)) => Err(failure),
                    _ => Ok(true),
                };
                let outcome = turn.with_patch_told(match (&turn.unsure, there) {
                    (None, Ok(false)) => Outcome::Deleted,
                    (None, Ok(true)) => Outcome::StillThere,
                    (None, Err(failure)) => Outcome::Unverified(failure.to_string()),
                    (Some(_), Ok(false)) => Outcome::Gone,
                    (Some(cause), Ok(true)) => Outcome::unsettled(cause),
                    (Some(cause), Err(failure)) => Outcome::unsettled(&format_args!(
                        "{cause}; whether it is gone could not be read: {failure}"
                    )),
                });
                log_outcome(pod, &outcome);
                (pod.uid.clone(), outcome)
            })
            .collect()
    }
}
