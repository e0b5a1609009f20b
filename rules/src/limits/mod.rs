//! Limits over a whole run: the mass-outage breaker and the cap. They turn `reap` into `wait`, never back.

mod common;

pub use self::common::in_common;

use jiff::Timestamp;

use crate::{
    decide::{Case, Policy, Reason, ReasonCode, Verdict, unread},
    facts::{Census, ClusterFacts, PodFacts, Tally, Uid},
    words::natural,
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
/// Kubernetes' node lifecycle controller goes by the same two numbers in each zone (more than 2, and 55 %).
pub const FEW_NODES: usize = 2;

/// A pod, what the rules say about it, and what a limit of the run makes of that.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The pod.
    pub pod: PodFacts,
    /// What the rules say.
    pub reason: Reason,
    /// What turned `reap` into `wait`; only ever set where the rules say `reap`.
    pub limit: Option<Limit>,
}

/// What turned one pod's `reap` into `wait`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// The whole run is held.
    Hold(HoldReason),
    /// `--max-deletes`, its value.
    Cap(usize),
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
    /// What every pod that would be reaped gets as its limit.
    pub reason: HoldReason,
    /// How many pods it held.
    pub held: usize,
}

/// What holds a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldReason {
    /// Too many nodes are NotReady, or nothing could start elsewhere: which, as a phrase.
    MassOutage(String),
    /// How many are could not be counted: why.
    CensusUnread(String),
}

impl Judged {
    /// What is to be done.
    pub fn verdict(&self) -> Verdict {
        if self.limit.is_some() {
            Verdict::Wait
        } else {
            self.reason.verdict()
        }
    }

    /// The kind of what decided: the limit, else the reason.
    pub fn code(&self) -> ReasonCode {
        self.limit
            .as_ref()
            .map_or_else(|| self.reason.code(), Limit::code)
    }

    /// That as a sentence.
    pub fn sentence(&self) -> String {
        self.limit
            .as_ref()
            .map_or_else(|| self.reason.sentence(), Limit::sentence)
    }
}

impl Plan {
    /// Decides every pod by the rules, then puts the limits of the run on the verdicts.
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

    /// Puts the limits of the run on the verdicts of the rules.
    fn limited(mut pods: Vec<Judged>, census: &Census, limits: &Limits) -> Self {
        pods.sort_by_cached_key(|judged| order(&judged.pod));
        let hold = hold(census, limits.max_not_ready_percent);
        let cap = limits.max_deletes.unwrap_or(usize::MAX);
        let mut reaps = 0;
        for judged in pods
            .iter_mut()
            .filter(|judged| judged.reason.verdict() == Verdict::Reap)
        {
            judged.limit = match &hold {
                Some(reason) => Some(Limit::Hold(reason.clone())),
                None => (reaps >= cap).then_some(Limit::Cap(cap)),
            };
            reaps += 1;
        }
        Self {
            pods,
            hold: hold.map(|reason| Hold {
                reason,
                held: reaps,
            }),
        }
    }

    /// The pods to reap, in the order to do it.
    pub fn reaps(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods
            .iter()
            .filter(|judged| judged.verdict() == Verdict::Reap)
            .map(|judged| &judged.pod)
    }
}

impl Limit {
    fn code(&self) -> ReasonCode {
        match self {
            Self::Hold(hold) => hold.code(),
            Self::Cap(_) => ReasonCode::OverCap,
        }
    }

    /// The sentence that explains it to a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Hold(HoldReason::MassOutage(what)) => format!(
                "{what}: the cause is then more often the API server or the network. Nothing is deleted."
            ),
            Self::Hold(HoldReason::CensusUnread(why)) => unread(&format!(
                "how many nodes are NotReady, for the breaker: {why}"
            )),
            Self::Cap(cap) => {
                format!(
                    "--max-deletes is {cap}; pods overdue for longer went first. The next run takes it."
                )
            }
        }
    }
}

impl HoldReason {
    /// The code of every pod that it holds.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::MassOutage(_) => ReasonCode::MassOutage,
            Self::CensusUnread(_) => ReasonCode::FactsUnread,
        }
    }
}

/// The longest overdue first; the UID only so that namesakes have an order too.
fn order(pod: &PodFacts) -> (Timestamp, String, String, Uid) {
    (
        pod.deletion_deadline,
        pod.namespace.clone(),
        natural(&pod.name),
        pod.uid.clone(),
    )
}

/// What holds a run by the number of NotReady nodes and the permitted share.
pub fn hold(census: &Census, max_percent: u8) -> Option<HoldReason> {
    if max_percent >= 100 {
        return None;
    }
    match census {
        Census::NotNeeded => None,
        Census::Unread(unread) => Some(HoldReason::CensusUnread(unread.0.clone())),
        Census::Counted { all, workers, room } => {
            let says = |tally: &Tally, which: &str| {
                format!(
                    "{} of {} {which} are NotReady",
                    tally.not_ready, tally.total
                )
            };
            let outage = if too_many(*all, max_percent) {
                says(all, "nodes")
            } else if too_many(*workers, max_percent) {
                says(workers, "worker nodes")
            } else if !room {
                "nothing could start elsewhere: every other real node is NotReady, cordoned or kept for the control plane"
                    .to_owned()
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
