//! A pod on its node at one moment, and the verdict of the rules on it.

use std::cell::OnceCell;

use jiff::Timestamp;

use super::{
    Evaluation, GiveUp, Policy,
    answer::NodeAtTime,
    code::ReasonCode,
    reason::{Reason, Ties},
    rules::{NoReason, RULES, Stage},
    volume,
};
use crate::facts::{BoundClaim, ClaimState, ClusterFacts, NodeFacts, NodeRead, PodFacts};
use crate::words::spoken;

/// A pod on its node at one moment. Each rule is a question about a case.
pub struct Case<'a> {
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    node: Option<&'a NodeRead>,
    pub(super) pod: &'a PodFacts,
    /// The pod's ties, computed when a rule first needs them.
    ties: OnceCell<Ties>,
}

pub(super) const NOWHERE: &str = "There is no node to ask about.";

impl<'a> Case<'a> {
    /// Returns the case of `pod` among `facts`, at their moment.
    pub fn of(facts: &'a ClusterFacts, policy: &'a Policy, pod: &'a PodFacts) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod)
    }

    /// Returns the case of `pod` at `now`. `node` is the result of reading the pod's node; `None`
    /// if that was not read.
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

    /// Judges the pod: the first rule that holds decides.
    pub fn decide(&self) -> Reason {
        // A rule that needs an unknown fact decides too, and keeps the pod: the reason is
        // facts-unread.
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

    /// Reports whether the rules before the volume rules let the pod through, so that its claims
    /// have to be looked up.
    pub fn needs_claims(&self) -> bool {
        let mut before = RULES.iter().filter(|rule| rule.stage < Stage::Storage);
        !self.pod.claims.is_empty()
            && before.all(|rule| matches!((rule.finding)(self), Err(NoReason::Seen(_))))
    }

    /// Reports whether the rules that ask only the node and its own lease let the pod through, so
    /// that everything else that may show life has to be read.
    pub fn needs_leases(&self) -> bool {
        let mut before = RULES.iter().filter(|rule| rule.stage < Stage::Life);
        before.all(|rule| matches!((rule.finding)(self), Err(NoReason::Seen(_))))
    }

    /// Returns what else has to be read about the pod's pinned claims, because they may be given up
    /// with it; `None` if the pod has no such claims.
    pub fn asks_about_giving_up(&self) -> Option<GiveUp> {
        if !self.left_to_a_person().contains(&ReasonCode::LocalVolume) {
            return None;
        }
        let declared = |claim: &BoundClaim| {
            claim.give_up.is_some() || claim.scratch && self.policy.reap_scratch
        };
        Some(if self.pod.bound_claims().any(declared) {
            GiveUp::Declared
        } else {
            GiveUp::MayBeAsked
        })
    }

    /// Lists the reasons for which a person has to decide about the pod. They mean something only
    /// for a pod that no earlier rule keeps.
    pub fn left_to_a_person(&self) -> Vec<ReasonCode> {
        let rules = RULES.iter().filter(|rule| rule.stage == Stage::Storage);
        let reasons = rules.filter_map(|rule| (rule.finding)(self).ok());
        reasons.map(|reason| reason.code).collect()
    }

    /// Evaluates every rule, in order. [`Case::decide`] goes through the same rules, so the first
    /// one here that holds, or needs an unknown fact, is the one that decides. The last rule does
    /// not ask whether an earlier one holds, so its finding is not shown if another rule decides.
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

    /// Returns the pod's node as it is judged, with the pod; `None` if the node is not known.
    pub fn judged_node(&self) -> Option<NodeAtTime<'a>> {
        Some(NodeAtTime {
            now: self.now,
            policy: self.policy,
            node: self.known()?,
            pod: Some(self.pod),
        })
    }

    /// Returns the pod's node for a rule that needs it. The error tells a node that does not exist
    /// from one that could not be read; the latter lets no pod pass the rule.
    pub(super) fn required_node(&self) -> Result<NodeAtTime<'a>, NoReason> {
        self.judged_node().ok_or_else(|| {
            if self.nowhere() {
                NoReason::Seen(NOWHERE.into())
            } else {
                NoReason::Unknown(self.node_unread(), "Its node could not be read.")
            }
        })
    }

    /// Returns what the pod's claims bind it to, for a rule that needs that. Claims that were not
    /// looked up let no pod pass the rule.
    pub(super) fn ties(&self) -> Result<&Ties, NoReason> {
        let (judged_node, claims) = (self.required_node()?, &self.pod.claims);
        if claims
            .iter()
            .any(|claim| claim.state == ClaimState::NotLookedUp)
        {
            return Err(NoReason::Unknown(
                "its claims: nothing was asked about them".to_owned(),
                "Nothing was asked about its claims.",
            ));
        }
        let check = || volume::check(&judged_node, claims);
        Ok(self.ties.get_or_init(check))
    }

    /// Says that a grace period was not waited for, as a sentence after others; empty if it was.
    pub(super) fn grace_not_waited_for(&self) -> String {
        let (due, deadline) = (self.pod.due(self.known()), self.pod.deletion_deadline);
        if due >= deadline {
            return String::new();
        }
        let grace = spoken(deadline.duration_since(due));
        format!(
            " Its grace period of {grace} is not waited for: its node had fallen silent before the deletion was requested."
        )
    }

    pub(super) fn known(&self) -> Option<&'a NodeFacts> {
        self.node.and_then(NodeRead::known)
    }

    /// Reports whether the pod has no node: it was never assigned one, or the node is gone.
    pub(super) fn nowhere(&self) -> bool {
        self.pod.node.is_none() || matches!(self.node, Some(NodeRead::Gone))
    }

    /// Returns why the node is not known, as a phrase.
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

    /// Says whether the pod's node is Ready, as a sentence.
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
