//! The limits of a whole run: the mass-outage breaker and the cap. They turn `reap` into `wait`,
//! never back.

mod census;
mod common;

pub use self::common::in_common;

use crate::{
    decide::{Case, Policy, Reason, ReasonCode, Verdict, unread},
    facts::{Census, ClusterFacts, PodFacts, Tally, Unread},
    words::natural,
};

/// The operator's choices for a run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `--max-deletes`: the most deletes of one run; `None` is no cap.
    pub max_deletes: Option<usize>,
    /// `--max-not-ready-percent`: the share of NotReady nodes at which the breaker holds, 1 to 100;
    /// 100 turns it off.
    pub max_not_ready_percent: u8,
}

/// Only more NotReady nodes than this make an outage: otherwise one or two would keep a small
/// cluster from ever being reaped. Kubernetes' node lifecycle controller uses the same two numbers
/// in each zone (more than 2, and 55 %).
pub const FEW_NODES: usize = 2;

/// A pod, the reason that the rules give for it, and the limit that stands beside that.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The pod.
    pub pod: PodFacts,
    /// The reason by the rules.
    pub reason: Reason,
    /// The limit that turns `reap` into `wait`; only set if the rules say `reap`.
    pub limit: Option<Limit>,
}

/// A limit that turns a pod's `reap` into `wait`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// The breaker holds the whole run. Holds the state of the nodes, as a phrase.
    MassOutage(String),
    /// The whole run is held because the nodes could not be counted for the breaker.
    NotCounted(Unread),
    /// The pod is over the cap. Holds the value of `--max-deletes`.
    OverCap(usize),
}

/// All verdicts, after the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The pods, longest overdue first, then by namespace, name and UID.
    pub pods: Vec<Judged>,
    /// The limit that keeps the whole run from deleting anything, if one does. Every pod that would
    /// be reaped has it.
    pub hold: Option<Limit>,
}

impl Judged {
    /// Returns the verdict: `wait` if a limit is set, otherwise that of the rules.
    pub fn verdict(&self) -> Verdict {
        if self.limit.is_some() {
            Verdict::Wait
        } else {
            self.reason.verdict()
        }
    }

    /// Returns the code of what decided: that of the limit if one is set, otherwise that of the
    /// reason.
    pub fn code(&self) -> ReasonCode {
        let limit = self.limit.as_ref();
        limit.map_or(self.reason.code, Limit::code)
    }

    /// Returns the sentence of what decided.
    pub fn sentence(&self) -> String {
        self.limit
            .as_ref()
            .map_or_else(|| self.reason.sentence.clone(), Limit::sentence)
    }
}

impl Plan {
    /// Judges every pod by the rules, then applies the limits of the run.
    pub fn new(
        facts: &ClusterFacts,
        pods: Vec<PodFacts>,
        policy: &Policy,
        limits: &Limits,
    ) -> Self {
        let judge = |pod: PodFacts| {
            let reason = Case::of(facts, policy, &pod).decide();
            Judged {
                pod,
                reason,
                limit: None,
            }
        };
        Self::limited(pods.into_iter().map(judge).collect(), &facts.census, limits)
    }

    /// Applies the limits of the run to the verdicts of the rules.
    fn limited(mut pods: Vec<Judged>, census: &Census, limits: &Limits) -> Self {
        // The UID gives namesakes an order too.
        pods.sort_by_cached_key(|Judged { pod, .. }| {
            (
                pod.deletion_deadline,
                pod.namespace.clone(),
                natural(&pod.name),
                pod.uid.clone(),
            )
        });
        let hold = hold(census, limits.max_not_ready_percent);
        let most = limits.max_deletes.unwrap_or(usize::MAX);
        let reaps = pods
            .iter_mut()
            .filter(|judged| judged.reason.verdict() == Verdict::Reap);
        for (before, judged) in reaps.enumerate() {
            let over = (before >= most).then_some(Limit::OverCap(most));
            judged.limit = hold.clone().or(over);
        }
        Self { pods, hold }
    }

    /// Lists the pods to reap, in the order in which to do it.
    pub fn reaps(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods
            .iter()
            .filter(|judged| judged.verdict() == Verdict::Reap)
            .map(|judged| &judged.pod)
    }
}

impl Limit {
    /// Returns the code of the limit.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::MassOutage(_) => ReasonCode::MassOutage,
            Self::NotCounted(_) => ReasonCode::FactsUnread,
            Self::OverCap(_) => ReasonCode::OverCap,
        }
    }

    /// Returns the sentence that explains the limit to a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::MassOutage(state) => format!(
                "{state}. Nothing is deleted: the cause is then more often the API server or the network."
            ),
            Self::NotCounted(cause) => unread(&format!(
                "how many nodes are NotReady, for the breaker: {cause}"
            )),
            Self::OverCap(most) => format!(
                "--max-deletes is {most}; pods overdue for longer went first. The next run takes it."
            ),
        }
    }
}

/// Returns the limit that holds the whole run, by the census and the permitted share; `None` if
/// none does.
fn hold(census: &Census, max_percent: u8) -> Option<Limit> {
    if max_percent >= 100 {
        return None;
    }
    match census {
        Census::NotNeeded => None,
        Census::Unread(unread) => Some(Limit::NotCounted(unread.clone())),
        Census::Counted { all, workers, room } => {
            let mut tallies = [(all, "nodes"), (workers, "worker nodes")].into_iter();
            let too_many = tallies.find(|(tally, _)| too_many(**tally, max_percent));
            Some(Limit::MassOutage(match too_many {
                Some((Tally { not_ready, total }, which)) => {
                    format!("{not_ready} of {total} {which} are NotReady")
                }
                None if *room => return None,
                None => "No pod could start elsewhere, as every other real node is NotReady, cordoned or kept for the control plane"
                    .to_owned(),
            }))
        }
    }
}

fn too_many(tally: Tally, max_percent: u8) -> bool {
    tally.not_ready > FEW_NODES && tally.not_ready * 100 >= tally.total * usize::from(max_percent)
}

#[cfg(test)]
mod tests;
