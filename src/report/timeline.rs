//! When a node and its Terminating pods came to where they are: the moments that a report can draw.

use jiff::{SignedDuration, Timestamp};

use super::{NodeEntry, PodEntry, Report, phrases};
use crate::{decide::Verdict, settings::ModeCode};

/// A moment, or a stretch of time in which the same happened to several pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// A word for it.
    pub word: &'static str,
    /// What happened, as a sentence.
    pub what: String,
    /// When it happened first.
    pub first: Timestamp,
    /// When it happened last.
    pub last: Timestamp,
}

/// The moments of `node` in the order of time.
pub fn of(report: &Report, node: &NodeEntry) -> Vec<Moment> {
    let pods = report.pods.iter().filter(|pod| pod.node.as_ref() == Some(&node.name)).collect::<Vec<_>>();
    let single = |word, what: &str, when: Option<Timestamp>| moment(word, what, when.into_iter());
    let judged = match report.mode {
        ModeCode::Delete if pods.iter().any(|pod| phrases::acted(pod)) => {
            ("reaped", "pod-reaper judged and acted")
        }
        _ => ("judged", "pod-reaper judged"),
    };
    let terminating = match phrases::terminating(node) {
        None => String::new(),
        Some(counts) => format!("; of its Terminating pods: {counts}"),
    };
    let mut moments = [
        single("heartbeat", "the kubelet renewed its lease for the last time", node.lease_renewed),
        single("NotReady", "the node became NotReady", node.since),
        moment(
            "deletion",
            "the deletion of pods was asked for: by eviction, or by a person",
            pods.iter().filter_map(|pod| pod.deletion_requested),
        ),
        moment(
            "deadline",
            "their deletion deadline, which includes their grace period",
            pods.iter().map(|pod| pod.deletion_deadline),
        ),
        moment(
            "stuck",
            "the thresholds are passed: from here on they count as stuck",
            pods.iter().filter_map(|pod| stuck(report, node, pod)),
        ),
        single(judged.0, &format!("{}{terminating}", judged.1), Some(report.judged_at)),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    moments.sort_by_key(|moment| moment.first);
    moments
}

fn moment(word: &'static str, what: &str, times: impl Iterator<Item = Timestamp>) -> Option<Moment> {
    let times = times.collect::<Vec<_>>();
    Some(Moment {
        word,
        what: what.to_owned(),
        first: times.iter().min().copied()?,
        last: times.iter().max().copied()?,
    })
}

/// When both thresholds are passed; `None` for a pod that they do not bear on, or where that is out of all bounds.
fn stuck(report: &Report, node: &NodeEntry, pod: &PodEntry) -> Option<Timestamp> {
    if pod.verdict == Verdict::Leave {
        return None;
    }
    let after = |moment: Timestamp, seconds| moment.checked_add(SignedDuration::from_secs(seconds)).ok();
    let overdue = after(pod.deletion_deadline, report.settings.reap_older_than_seconds)?;
    let not_ready = after(node.since?, report.settings.node_not_ready_for_seconds)?;
    Some(overdue.max(not_ready))
}
