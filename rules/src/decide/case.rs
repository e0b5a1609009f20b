//! A pod on its node at a moment, and what follows for it from the rules.

use std::cell::OnceCell;

use jiff::Timestamp;

use super::{
    Evaluation, GiveUp, Policy,
    answer::NodeFailure,
    code::ReasonCode,
    reason::{Reason, Ties},
    rules::{NoReason, RULES, Stage},
    volume,
};
use crate::facts::{
    BoundClaim, ClaimFacts, ClaimState, ClusterFacts, NodeFacts, NodeRead, PodFacts,
};

/// A pod on its node at a moment: what the rules are asked about.
pub struct Case<'a> {
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    node: Option<&'a NodeRead>,
    pub(super) pod: &'a PodFacts,
    /// What its claims bind it to, once that was asked.
    ties: OnceCell<Ties>,
}

pub(super) const NOWHERE: &str = "There is no node to ask about.";

impl<'a> Case<'a> {
    /// `pod` as it is judged by `facts`.
    pub fn of(facts: &'a ClusterFacts, policy: &'a Policy, pod: &'a PodFacts) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod)
    }

    /// `pod` as it is judged at `now`. `node` is what was read of the pod's node, `None` where nothing was.
    pub fn new(
        now: Timestamp,
        policy: &'a Policy,
        node: Option<&'a NodeRead>,
        pod: &'a PodFacts,
    ) -> Self {
        Self {
            now,
            policy,
            node,
            pod,
            ties: OnceCell::new(),
        }
    }

    /// Judges the pod.
    pub fn decide(&self) -> Reason {
        // A rule that needs an unknown fact decides too: the reason is facts-unread.
        let decided = RULES.iter().find_map(|rule| match (rule.finding)(self) {
            Ok(reason) => Some(reason),
            Err(NoReason::Unknown(what, _)) => Some(Reason::unread(&what)),
            Err(NoReason::Seen(_)) => None,
        });
        let mut reason = decided.unwrap_or_else(|| Reason::unread(&self.node_unread()));
        if reason.stage() >= Some(Stage::Storage)
            && let Ok(ties) = self.ties()
        {
            reason.ties = ties.clone();
        }
        reason
    }

    /// Whether the rules before the volume rules let the pod through, so that its claims have to be looked up.
    pub fn needs_claims(&self) -> bool {
        let mut before = RULES.iter().filter(|rule| rule.stage < Stage::Storage);
        !self.pod.claims.is_empty()
            && before.all(|rule| matches!((rule.finding)(self), Err(NoReason::Seen(_))))
    }

    /// Whether the pod's pinned claims may be given up with it, so that more has to be known.
    pub fn asks_about_giving_up(&self) -> Option<GiveUp> {
        if !self.left_to_a_person().contains(&ReasonCode::LocalVolume) {
            return None;
        }
        let declared = |claim: &BoundClaim| {
            claim.give_up.is_some() || claim.scratch && self.policy.reap_scratch
        };
        let mut bound = self.pod.claims.iter().filter_map(ClaimFacts::bound);
        Some(if bound.any(declared) {
            GiveUp::Declared
        } else {
            GiveUp::MayBeAsked
        })
    }

    /// The kind of each reason for which a person has to decide about the pod, which only such reasons keep.
    pub fn left_to_a_person(&self) -> Vec<ReasonCode> {
        let rules = RULES.iter().filter(|rule| rule.stage == Stage::Storage);
        let reasons = rules.filter_map(|rule| (rule.finding)(self).ok());
        reasons.map(|reason| reason.code).collect()
    }

    /// Evaluates every rule, in order. The first that holds, or needs what is not known, is the one by which
    /// [`Case::decide`] decides: both go over the same rules. The last rule holds wherever it is asked, so what it finds is
    /// not shown where another decides.
    pub fn evaluate(&self) -> Vec<Evaluation> {
        let mut decides = None;
        let evaluations = RULES.iter().zip(1..).map(|(rule, number)| {
            let (holds, seen) = match ((rule.finding)(self), decides) {
                (_, Some(decides)) if rule.stage == Stage::Reap => {
                    (Some(false), format!("Rule {decides} decides."))
                }
                (Ok(reason), _) => (Some(true), reason.sentence),
                (Err(NoReason::Seen(seen)), _) => (Some(false), seen.into_owned()),
                (Err(NoReason::Unknown(_, unknown)), _) => (None, unknown.to_owned()),
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

    /// Its node's failure, where there is a look at the node.
    pub fn failure(&self) -> Option<NodeFailure<'a>> {
        Some(NodeFailure {
            now: self.now,
            policy: self.policy,
            node: self.known()?,
            pod: Some(self.pod),
        })
    }

    /// The failure of its node, for a rule that needs it. A node that could not be read lets no pod pass such a rule.
    pub(super) fn its_node(&self) -> Result<NodeFailure<'a>, NoReason> {
        self.failure().ok_or_else(|| {
            if self.nowhere() {
                NoReason::Seen(NOWHERE.into())
            } else {
                NoReason::Unknown(self.node_unread(), "Its node could not be read.")
            }
        })
    }

    /// What its claims bind it to, for a rule that needs it. Claims that were not looked up let no pod pass such a rule.
    pub(super) fn ties(&self) -> Result<&Ties, NoReason> {
        let (failure, claims) = (self.its_node()?, &self.pod.claims);
        if claims.iter().any(|it| it.state == ClaimState::NotLookedUp) {
            return Err(NoReason::Unknown(
                "its claims: nothing was asked about them".to_owned(),
                "Nothing was asked about its claims.",
            ));
        }
        let check = || volume::check(&failure, claims);
        Ok(self.ties.get_or_init(check))
    }

    pub(super) fn known(&self) -> Option<&'a NodeFacts> {
        self.node.and_then(NodeRead::known)
    }

    /// Whether there is no node that it could be on.
    pub(super) fn nowhere(&self) -> bool {
        self.pod.node.is_none() || matches!(self.node, Some(NodeRead::Gone))
    }

    /// Why there is no look at the node, as a phrase.
    pub(super) fn node_unread(&self) -> String {
        let why = match self.node {
            Some(NodeRead::Unread(unread)) => &unread.0,
            _ => "it was not looked up",
        };
        format!("the node: {why}")
    }

    pub(super) fn node_name(&self) -> &'a str {
        self.pod.node.as_deref().unwrap_or("its node")
    }

    /// Whether its node is Ready, as a sentence.
    pub(super) fn ready(&self) -> String {
        let name = self.node_name();
        match self.known() {
            Some(node) => {
                let reason = node.ready_reason.as_ref();
                let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                format!("Node {name}'s Ready is {}{reason}.", node.ready)
            }
            None if self.nowhere() => NOWHERE.to_owned(),
            None => format!("It is not known whether {name} is Ready."),
        }
    }
}
