//! When a node and its Terminating pods came to where they are: the moments that a report can draw.

use itertools::Itertools as _;
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

/// The word of the moment from which on the node is not Ready.
pub const NOT_READY: &str = "NotReady";

/// The moments of `node` in the order of time.
pub fn of(report: &Report, node: &NodeEntry) -> Vec<Moment> {
    let here = |pod: &&PodEntry| pod.node.as_ref() == Some(&node.name);
    let pods = report.pods.iter().filter(here).collect_vec();
    let acted = report.mode == ModeCode::Delete && pods.iter().any(|pod| phrases::acted(pod));
    let (word, judged) = if acted {
        ("reaped", "pod-reaper judged and acted")
    } else {
        ("judged", "pod-reaper judged")
    };
    let judged = format!("{judged}: {}", phrases::terminating(node));
    let requested = pods
        .iter()
        .filter_map(|pod| pod.deletion_requested)
        .collect();
    let deadlines = pods.iter().map(|pod| pod.deletion_deadline).collect();
    let stuck = pods
        .iter()
        .filter_map(|pod| stuck(report, node, pod))
        .collect();
    let moments: [(_, &str, Vec<Timestamp>); 6] = [
        (
            "heartbeat",
            "the kubelet renewed its lease for the last time",
            Vec::from_iter(node.lease_renewed),
        ),
        (
            NOT_READY,
            "the node became NotReady",
            Vec::from_iter(node.since),
        ),
        (
            "deletion",
            "the deletion of pods was requested: by eviction, or by a person",
            requested,
        ),
        (
            "deadline",
            "their deletion deadline, which includes their grace period",
            deadlines,
        ),
        (
            "stuck",
            "the thresholds are passed: from here on they count as stuck",
            stuck,
        ),
        (word, &judged, vec![report.judged_at]),
    ];
    let moments = moments.into_iter().filter_map(|(word, what, times)| {
        let (first, last) = times.into_iter().minmax().into_option()?;
        let what = what.to_owned();
        Some(Moment {
            word,
            what,
            first,
            last,
        })
    });
    moments.sorted_by_key(|moment| moment.first).collect()
}

/// When both thresholds are passed; `None` for a pod that they do not bear on, or where that is out of all bounds.
fn stuck(report: &Report, node: &NodeEntry, pod: &PodEntry) -> Option<Timestamp> {
    if pod.verdict == Verdict::Leave {
        return None;
    }
    let after =
        |moment: Timestamp, seconds| moment.checked_add(SignedDuration::from_secs(seconds)).ok();
    let overdue = after(
        pod.deletion_deadline,
        report.settings.reap_older_than_seconds,
    )?;
    let not_ready = after(node.since?, report.settings.node_not_ready_for_seconds)?;
    Some(overdue.max(not_ready))
}
