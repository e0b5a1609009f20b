//! Limits over a whole run: the mass-outage breaker and the cap. They turn `reap` into `wait`, never back.

use jiff::Timestamp;

use crate::{
    decide::{Reason, Verdict},
    facts::{Census, PodFacts, Tally},
};

/// What the operator chose for a run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most deletes of one run; `None` is no cap.
    pub max_deletes: Option<usize>,
    /// The breaker's share of NotReady nodes, 1 to 100; 100 turns it off.
    pub max_not_ready_percent: u8,
}

/// More than this many nodes make an outage: with one or two NotReady a small cluster would never be reaped.
/// Kubernetes' node lifecycle controller stops evicting by the same two numbers (more than 2, and 55 %).
pub(crate) const FEW_NODES: usize = 2;

/// A pod with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The pod.
    pub pod: PodFacts,
    /// Its verdict, and why.
    pub reason: Reason,
}

/// All verdicts, after the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Longest overdue first, then by namespace, name and UID.
    pub pods: Vec<Judged>,
    /// Set while nothing at all may be deleted, and why.
    pub hold: Option<Hold>,
}

/// Why a whole run deletes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// What every pod that would be reaped gets instead.
    pub reason: HoldReason,
    /// How many pods it held.
    pub held: usize,
}

/// What holds a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldReason {
    /// Too many nodes are NotReady: which, as a phrase.
    MassOutage(String),
    /// How many are could not be counted: why.
    CensusUnread(String),
}

impl Plan {
    /// Puts the limits on `judged`.
    pub fn new(mut judged: Vec<Judged>, census: &Census, limits: &Limits) -> Self {
        judged.sort_by(|a, b| order(&a.pod).cmp(&order(&b.pod)));
        let reaps = || judged.iter().filter(|judged| judged.reason.verdict() == Verdict::Reap).count();
        let hold = hold(census, limits.max_not_ready_percent).map(|reason| Hold { reason, held: reaps() });
        let mut left = limits.max_deletes.unwrap_or(usize::MAX);
        for judged in judged.iter_mut().filter(|judged| judged.reason.verdict() == Verdict::Reap) {
            match (&hold, left.checked_sub(1)) {
                (Some(hold), _) => judged.reason = hold.reason.for_pod(),
                (None, Some(rest)) => left = rest,
                (None, None) => {
                    judged.reason = Reason::OverCap { cap: limits.max_deletes.unwrap_or(usize::MAX) };
                }
            }
        }
        Self { pods: judged, hold }
    }

    /// The pods to reap, in the order to do it.
    pub fn reaps(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods.iter().filter(|judged| judged.reason.verdict() == Verdict::Reap).map(|judged| &judged.pod)
    }
}

impl HoldReason {
    /// The reason of every pod that it holds.
    pub fn for_pod(&self) -> Reason {
        match self {
            Self::MassOutage(what) => Reason::MassOutage(what.clone()),
            Self::CensusUnread(why) => {
                Reason::FactsUnread(format!("how many nodes are NotReady, for the breaker: {why}"))
            }
        }
    }
}

/// The longest overdue first; the UID only so that namesakes have an order too.
fn order(pod: &PodFacts) -> (Timestamp, &str, &str, &str) {
    (pod.deletion_deadline, &pod.namespace, &pod.name, &pod.uid)
}

/// What holds a run where so many nodes are NotReady, at that share.
pub fn hold(census: &Census, max_percent: u8) -> Option<HoldReason> {
    if max_percent >= 100 {
        return None;
    }
    match census {
        Census::NotNeeded => None,
        Census::Unread(unread) => Some(HoldReason::CensusUnread(unread.0.clone())),
        Census::Counted { all, workers } => {
            let says = |tally: &Tally, which: &str| {
                format!("{} of {} {which} are NotReady", tally.not_ready, tally.total)
            };
            // With no Ready node at all, nothing could start elsewhere.
            let outage = if all.not_ready == all.total || too_many(*all, max_percent) {
                says(all, "nodes")
            } else if too_many(*workers, max_percent) {
                says(workers, "worker nodes")
            } else {
                return None;
            };
            Some(HoldReason::MassOutage(outage))
        }
    }
}

fn too_many(tally: Tally, max_percent: u8) -> bool {
    tally.not_ready > FEW_NODES && tally.not_ready * 100 >= tally.total * usize::from(max_percent)
}

#[cfg(test)]
mod tests;
