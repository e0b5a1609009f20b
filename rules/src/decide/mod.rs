//! The eighteen rules: what should be done with one Terminating pod.
//!
//! Pure. Time is an argument, the facts are plain values, and nothing in reach could ask a server. The first rule
//! that holds decides; the order is part of the contract, because it keeps commands that destroy a volume from
//! being printed for a node that may come back. The rules themselves are a list, in `rules.rs`: deciding takes the
//! first that holds, explaining evaluates them all.

mod answer;
mod code;
mod life;
mod reason;
mod rules;
mod volume;

use jiff::SignedDuration;
use serde::Serialize;

pub use self::answer::{Answer, Failure, GIVE_UP, POWERED_OFF, REAP};
pub use self::code::{ReasonCode, Verdict};
pub use self::reason::{
    ConfinedClaim, PinnedClaim, Reason, Ties, UnverifiedClaim, heard, seen, unread,
};
pub use self::rules::{Case, shared_disk};
use self::rules::{Finding, RULES, Stage};
pub use self::volume::to_ask;
use crate::facts::{ClaimFacts, ClaimState, KubeletAlive, PodFacts};

/// What the operator chose, as far as it bears on a single pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How long past its deletion deadline a pod counts as stuck. Not negative.
    pub reap_older_than: SignedDuration,
    /// How long its node must have been NotReady. Not negative.
    pub node_not_ready_for: SignedDuration,
    /// Which pods a sign of life of their node protects.
    pub kubelet_alive: KubeletAlive,
    /// Kinds of owner or workload that are left to a person.
    pub manual_owner_kinds: Vec<String>,
    /// Give up pinned claims that are declared scratch, with their pods.
    pub reap_scratch: bool,
}

impl Policy {
    /// Whether a sign of life on its node protects `pod`.
    fn protects(&self, pod: &PodFacts) -> bool {
        match self.kubelet_alive {
            KubeletAlive::Hold => true,
            KubeletAlive::HoldUnique => !pod.interchangeable(),
            KubeletAlive::Reap => false,
        }
    }

    /// Whether `--manual-owner-kind` names `kind`.
    fn flags(&self, kind: &str) -> bool {
        self.manual_owner_kinds
            .iter()
            .any(|listed| same_kind(listed, kind))
    }
}

/// Whether two words name one kind. A slip of the shift key, or a plural, must not delete.
pub fn same_kind(one: &str, other: &str) -> bool {
    let bare = |kind: &str| kind.to_ascii_lowercase().trim_end_matches('s').to_owned();
    bare(one) == bare(other)
}

impl Reason {
    fn stage(&self) -> Option<Stage> {
        let rule = RULES.iter().find(|rule| rule.gives.contains(&self.code))?;
        Some(rule.stage)
    }

    /// Whether it leaves a dead node's pod to a person, whose answer may let it go.
    pub fn asks_a_person(&self) -> bool {
        self.stage() == Some(Stage::Storage)
    }

    /// Whether it says that the pod's node is not expected back: NotReady for long enough, real, and not opted out.
    pub fn node_is_dead(&self) -> bool {
        self.stage() > Some(Stage::Node)
    }
}

/// What has to be known of a pod whose claims may be given up with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GiveUp {
    /// What its `StatefulSet` creates again: a person may be asked to give its claims up.
    MayBeAsked,
    /// Every pod that uses the claims as well: they are scratch, or answered.
    Declared,
}

/// What one rule or limit says about a pod.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// Its place in the order, from 1; null for a limit.
    pub number: Option<usize>,
    /// What it asks.
    pub asks: &'static str,
    /// Whether it holds; null where that is not known, because the pod's node could not be read.
    pub holds: Option<bool>,
    /// Whether the verdict follows from it.
    pub decides: bool,
    /// What was seen, as a sentence.
    pub seen: String,
}

impl Case<'_> {
    /// Judges the pod.
    pub fn decide(&self) -> Reason {
        // Of a rule that needs what is not known nothing follows but that a fact is missing.
        let decided = RULES.iter().find_map(|rule| match rule.finding(self) {
            Finding::Holds(reason) => Some(reason),
            Finding::Not => None,
            Finding::NodeUnknown => Some(self.node_unread()),
            Finding::ClaimsUnknown => {
                Some(Reason::unread("its claims: nothing was asked about them"))
            }
        });
        decided.unwrap_or_else(|| self.node_unread())
    }

    /// Whether the rules before the volume rules let the pod through, so that its claims have to be looked up.
    pub fn needs_claims(&self) -> bool {
        let mut before = RULES.iter().filter(|rule| rule.stage < Stage::Storage);
        self.pod.claims.named().next().is_some()
            && before.all(|rule| matches!(rule.finding(self), Finding::Not))
    }

    /// Whether the pod's pinned claims may be given up with it, so that more has to be known.
    pub fn asks_about_giving_up(&self) -> Option<GiveUp> {
        let mut rules = RULES.iter();
        let local = rules.find(|rule| rule.gives.contains(&ReasonCode::LocalVolume))?;
        let Finding::Holds(_) = local.finding(self) else {
            return None;
        };
        let declared = |claim: &ClaimFacts| match &claim.state {
            ClaimState::Bound {
                scratch, give_up, ..
            } => give_up.is_some() || *scratch && self.policy.reap_scratch,
            _ => false,
        };
        let any = self.pod.claims.known().into_iter().flatten().any(declared);
        Some(if any {
            GiveUp::Declared
        } else {
            GiveUp::MayBeAsked
        })
    }

    /// Each reason for which a person has to decide about the pod, which only such reasons keep.
    pub fn left_to_a_person(&self) -> Vec<Reason> {
        let rules = RULES.iter().filter(|rule| rule.stage == Stage::Storage);
        let holds = rules.filter_map(|rule| match rule.finding(self) {
            Finding::Holds(reason) => Some(reason),
            Finding::Not | Finding::NodeUnknown | Finding::ClaimsUnknown => None,
        });
        holds.collect()
    }

    /// Evaluates every rule, in order. The first that holds, or needs a node that is not known, is the one by which
    /// [`Case::decide`] decides: both go over the same rules. The last holds wherever it is asked, so it is not evaluated
    /// after that.
    pub fn evaluate(&self) -> Vec<Evaluation> {
        let mut decides = None;
        let evaluations = RULES.iter().zip(1..).map(|(rule, number)| {
            let (holds, seen) = match (rule.finding(self), decides) {
                (_, Some(decides)) if rule.stage == Stage::Reap => {
                    (Some(false), format!("Rule {decides} decides."))
                }
                (Finding::Holds(reason), _) => (Some(true), reason.sentence),
                (Finding::Not, _) => (Some(false), (rule.otherwise)(self)),
                (Finding::NodeUnknown, _) => (None, "Its node could not be read.".to_owned()),
                (Finding::ClaimsUnknown, _) => {
                    (None, "Nothing was asked about its claims.".to_owned())
                }
            };
            if holds != Some(false) {
                decides.get_or_insert(number);
            }
            Evaluation {
                number: Some(number),
                asks: rule.asks,
                holds,
                decides: decides == Some(number),
                seen,
            }
        });
        evaluations.collect()
    }
}

#[cfg(test)]
mod tests;
