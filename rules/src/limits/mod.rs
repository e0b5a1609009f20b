//! Limits over a whole run: the mass-outage breaker and the cap. They turn `reap` into `wait`, never back.

mod census;
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
pub struct Limit {
    /// `mass-outage` or `facts-unread`, which hold the whole run, or `over-cap`.
    pub code: ReasonCode,
    /// Of `mass-outage`, how many nodes are NotReady; of `over-cap`, the value of `--max-deletes`; of `facts-unread`, why the nodes
    /// could not be counted.
    pub what: String,
}

/// All verdicts, after the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Longest overdue first, then by namespace, name and UID.
    pub pods: Vec<Judged>,
    /// Set while nothing at all may be deleted: what every pod that would be reaped gets.
    pub hold: Option<Limit>,
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
        let limit = self.limit.as_ref();
        limit.map_or(self.reason.code, |limit| limit.code)
    }

    /// What decided, as a sentence.
    pub fn sentence(&self) -> String {
        self.limit
            .as_ref()
            .map_or_else(|| self.reason.sentence.clone(), Limit::sentence)
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
        let most = limits.max_deletes.unwrap_or(usize::MAX);
        let cap = Limit {
            code: ReasonCode::OverCap,
            what: most.to_string(),
        };
        let reaps = pods
            .iter_mut()
            .filter(|judged| judged.reason.verdict() == Verdict::Reap);
        for (before, judged) in reaps.enumerate() {
            let over = (before >= most).then(|| cap.clone());
            judged.limit = hold.clone().or(over);
        }
        Self { pods, hold }
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
    /// The sentence that explains it to a person.
    pub fn sentence(&self) -> String {
        let what = &self.what;
        match self.code {
            ReasonCode::MassOutage => format!(
                "{what}: the cause is then more often the API server or the network. Nothing is deleted."
            ),
            ReasonCode::OverCap => format!(
                "--max-deletes is {what}; pods overdue for longer went first. The next run takes it."
            ),
            _ => unread(&format!(
                "how many nodes are NotReady, for the breaker: {what}"
            )),
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
fn hold(census: &Census, max_percent: u8) -> Option<Limit> {
    if max_percent >= 100 {
        return None;
    }
    let (code, what) = match census {
        Census::NotNeeded => return None,
        Census::Unread(unread) => (ReasonCode::FactsUnread, unread.0.clone()),
        Census::Counted { all, workers, room } => {
            let mut tallies = [(all, "nodes"), (workers, "worker nodes")].into_iter();
            let too_many = tallies.find(|(tally, _)| too_many(**tally, max_percent));
            let what = match too_many {
                Some((Tally { not_ready, total }, which)) => {
                    format!("{not_ready} of {total} {which} are NotReady")
                }
                None if *room => return None,
                None => "nothing could start elsewhere: every other real node is NotReady, cordoned or kept for the control plane"
                    .to_owned(),
            };
            (ReasonCode::MassOutage, what)
        }
    };
    Some(Limit { code, what })
}

fn too_many(tally: Tally, max_percent: u8) -> bool {
    tally.not_ready > FEW_NODES && tally.not_ready * 100 >= tally.total * usize::from(max_percent)
}

#[cfg(test)]
mod tests;
