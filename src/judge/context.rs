//! A pod on its node at one moment, which is the input of the rules, and the walk through their tables.

use std::{cell::OnceCell, iter};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    Evaluation, Policy,
    reason::{Cause, Reason, ReasonCode, Seen, Verdict},
    rules::{
        Finder, Finding, LIFE_RULES, NODE_RULES, PASSED_ALL, Rule, STORAGE_RULES, rules, stuck,
    },
    storage::given_up_until,
    tie::Tie,
};
use crate::facts::{
    ClusterFacts, Heartbeat, NodeFacts, OptOut, PodFacts, Read, Ready, Skip, Storage, Unneeded,
    is_held_until_the_end,
};

/// The age up to which time alone does not end a sign of life: the machine is not about to fall silent.
const MAX_AGE_OF_A_FRESH_SIGN: SignedDuration = SignedDuration::from_mins(2);

/// A pod on its node at one moment.
pub struct PodContext<'a> {
    pub(super) now: Timestamp,
    /// The time that the rules about time go by.
    pub(super) clock: Timestamp,
    pub(super) policy: &'a Policy,
    /// `None` if the pod was never assigned a node, or the node is gone.
    pub(super) node: Read<Option<&'a NodeFacts>>,
    pub(super) pod: &'a PodFacts,
}

/// A pod on a node, with its storage.
pub struct Stored<'a> {
    pub(super) case: &'a PodContext<'a>,
    pub(super) node: &'a NodeFacts,
    pub(super) storage: &'a Storage,
    /// The pod's ties; computed when a rule first needs them.
    pub(super) ties: OnceCell<Vec<Tie>>,
}

impl<'a> PodContext<'a> {
    /// Returns the pod at the moment of the facts.
    pub fn of(facts: &'a ClusterFacts, policy: &'a Policy, pod: &'a PodFacts) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod)
    }

    pub fn new(
        now: Timestamp,
        policy: &'a Policy,
        node: Read<Option<&'a NodeFacts>>,
        pod: &'a PodFacts,
    ) -> Self {
        Self {
            now,
            clock: now,
            policy,
            node,
            pod,
        }
    }

    /// Returns the pod with its storage; `None` if its node is not known.
    pub fn stored(&'a self, storage: &'a Storage) -> Option<Stored<'a>> {
        Some(Stored {
            case: self,
            node: self.known()?,
            storage,
            ties: OnceCell::new(),
        })
    }

    /// Returns the pod's node for a rule that needs it. A node that could not be read keeps the pod.
    pub(super) fn required_node(&self) -> Result<Option<&'a NodeFacts>, Cause> {
        self.node
            .clone()
            .map_err(|why| Cause::unread("the node", &why))
    }

    pub(super) fn overdue_since(&self) -> Timestamp {
        self.pod.overdue_since(self.known(), self.now, self.policy)
    }

    pub(super) fn known(&self) -> Option<&'a NodeFacts> {
        self.node.as_ref().ok().copied().flatten()
    }

    pub(super) fn ready(&self) -> Seen<'a> {
        match &self.node {
            Ok(Some(node)) => Seen::Ready {
                node: &node.name,
                ready: node.ready,
                reason: node.ready_reason.as_deref(),
            },
            Ok(None) => Seen::Nowhere,
            Err(_) => Seen::NodeUnread,
        }
    }
}

impl Stored<'_> {
    /// Returns why nothing wants the pod again; `None` if something wants it, or may.
    pub(super) fn unneeded(&self) -> Option<Unneeded> {
        self.case.pod.unneeded(Some(self.storage))
    }
}

impl PodContext<'_> {
    /// Judges the pod: the first rule that keeps it decides. Storage that was not read keeps the pod.
    pub fn decide(&self, storage: Option<&Storage>) -> Reason {
        let cause = self.first(NODE_RULES).or_else(|| self.first(LIFE_RULES));
        cause.map_or_else(|| self.decide_by_storage(storage), Reason::new)
    }

    /// Returns the answer of a rule. Without a node, a rule about storage has nothing to ask about.
    fn ask<'a>(&'a self, rule: &Rule, stored: Option<&'a Stored<'a>>) -> Finding<'a> {
        match (rule.finding, stored) {
            (Finder::OfPod(finding), _) => finding(self),
            (Finder::OfStorage(finding), Some(stored)) => finding(stored),
            (Finder::OfStorage(_), None) => match self.required_node()? {
                None => Ok(Seen::Nowhere),
                Some(_) => Err(Cause::storage_unread()),
            },
        }
    }

    fn first(&self, table: &[Rule]) -> Option<Cause> {
        table.iter().find_map(|rule| self.ask(rule, None).err())
    }

    /// Judges the pod by the rules about storage. The reason gets the pod's ties, and the codes of all these rules for
    /// which the user has to decide.
    fn decide_by_storage(&self, storage: Option<&Storage>) -> Reason {
        let stored = storage.and_then(|storage| self.stored(storage));
        let mut causes = STORAGE_RULES
            .iter()
            .filter_map(|rule| self.ask(rule, stored.as_ref()).err());
        let cause = causes
            .next()
            .unwrap_or_else(|| stored.as_ref().map_or_else(Cause::storage_unread, stuck));
        if matches!(cause, Cause::Unread { .. }) {
            return Reason::new(cause);
        }
        let mut asks = Vec::new();
        if cause.code().verdict() == Verdict::Manual {
            asks = iter::once(cause.clone())
                .chain(causes)
                .map(|cause| cause.code())
                .filter(|code| code.verdict() == Verdict::Manual)
                .unique()
                .collect();
        }
        Reason {
            asks,
            ties: stored.as_ref().map_or(Vec::new(), |it| it.ties().to_vec()),
            ..Reason::new(cause)
        }
    }

    /// Lists the objects that opt the pod out by `pod-reaper.io/skip`, for good or until a time.
    pub fn opt_outs(&self) -> impl Iterator<Item = (OptOut, &Skip)> {
        let namespace = self.pod.in_namespace.as_ref().ok();
        [
            (OptOut::Pod, self.pod.opted_out.as_ref()),
            (
                OptOut::Namespace,
                namespace.and_then(|it| it.opted_out.as_ref()),
            ),
            (
                OptOut::Node,
                self.known().and_then(|it| it.opted_out.as_ref()),
            ),
        ]
        .into_iter()
        .filter_map(|(by, skip)| Some((by, skip?)))
    }

    /// Returns the pod at the first moment at which no rule about time keeps it, if nothing else changes
    /// and nothing more is heard of its node; `None` if that moment is not known. It may be over.
    pub fn foreseen(&self, storage: Option<&Storage>) -> Option<Self> {
        let node = self.known().filter(|node| node.ready != Ready::True)?;
        let after_threshold = |at: Timestamp| at.saturating_add(self.policy.reap_older_than);
        let not_ready = after_threshold(node.not_ready_since(self.now)?).ok()?;
        let overdue = after_threshold(self.overdue_since()).ok()?;
        let given_up = storage.and_then(|it| given_up_until(self.stored(it)?.ties()));
        let silent_after = self.policy.silent_after();
        let silent = node
            .signs_of_life(self.now, self.policy)
            .into_iter()
            .filter(|sign| !self.is_fresh(sign))
            .filter_map(|sign| sign.at.saturating_add(silent_after).ok());
        let skipped = self.opt_outs().filter_map(|(_, skip)| skip.until);
        let clock = [not_ready, overdue]
            .into_iter()
            .chain(given_up)
            .chain(skipped)
            .chain(silent)
            .max()?;
        Some(Self {
            clock,
            ..Self::new(self.now, self.policy, self.node.clone(), self.pod)
        })
    }

    /// Returns why the out-of-service taint must not be set on the pod's node, not even for a minute: the pod garbage
    /// collector then force-deletes what terminates there. Each rule is asked; time alone keeps no pod there, a
    /// disk has one writer once the machine is off, and a mirror pod is made again.
    pub fn forbids_taint(&self, storage: Option<&Storage>) -> Option<Cause> {
        let stored = storage.and_then(|storage| self.stored(storage));
        let is_harmless = |cause: &Cause| match cause {
            Cause::RequestedLately { .. }
            | Cause::NotOverdue { .. }
            | Cause::NodeJustFailed { time: Some(_), .. }
            | Cause::SharedDisk(_) => true,
            Cause::Finalizers(names) => names.iter().all(|name| is_held_until_the_end(name)),
            _ => false,
        };
        rules()
            .filter(|_| !self.pod.mirror && !self.pod.finished())
            .filter_map(|rule| self.ask(rule, stored.as_ref()).err())
            .find(|cause| !is_harmless(cause))
    }

    /// Reports whether gathering has to read signs of life for the pod: no rule about nodes and pods keeps it, now or
    /// in what is foreseen.
    pub fn needs_life(&self) -> bool {
        let passes = |it: &Self| it.first(NODE_RULES).is_none();
        self.known().is_some() && passes(self) || self.foreseen(None).is_some_and(|it| passes(&it))
    }

    /// Reports whether gathering has to read the pod's storage: nor does a rule about signs of life keep it.
    pub fn needs_storage(&self) -> bool {
        self.is_due_so_far() || self.foreseen(None).is_some_and(|it| it.is_due_so_far())
    }

    /// Reports whether no rule before those about storage keeps the pod.
    pub fn is_due_so_far(&self) -> bool {
        self.first(NODE_RULES).is_none() && self.first(LIFE_RULES).is_none()
    }

    /// Lists the signs of life of `node` by the clock. A machine that was heard a moment ago will be
    /// heard again.
    pub(super) fn signs_of_life(&self, node: &NodeFacts) -> Vec<Heartbeat> {
        let mut signs = node.signs_of_life(self.now, self.policy);
        let silent_after = self.policy.silent_after();
        signs.retain(|sign| {
            self.is_fresh(sign) || self.clock.duration_since(sign.at) < silent_after
        });
        signs
    }

    fn is_fresh(&self, sign: &Heartbeat) -> bool {
        self.now.duration_since(sign.at) <= MAX_AGE_OF_A_FRESH_SIGN
    }

    /// Evaluates every rule, in order. The first that keeps the pod is the one that [`PodContext::decide`] finds.
    pub fn evaluate(&self, storage: Option<&Storage>) -> Vec<Evaluation> {
        let decided = self.decide(storage);
        let stored = storage.and_then(|storage| self.stored(storage));
        let mut decides = None;
        let mut evaluations = rules()
            .zip(1..)
            .map(|(rule, number)| {
                let finding = self.ask(rule, stored.as_ref());
                let is_first = decides.is_none() && finding.is_err();
                if is_first {
                    decides = Some(number);
                }
                let asks_for_facts = rule.gives.contains(&ReasonCode::FactsUnread);
                let (holds, seen) = match finding {
                    Ok(seen) => (Some(false), seen.to_string()),
                    Err(cause @ Cause::Unread { .. }) if !asks_for_facts => {
                        (None, cause.to_string())
                    }
                    Err(_) if is_first => (Some(true), decided.to_string()),
                    Err(cause) => (Some(true), cause.to_string()),
                };
                Evaluation {
                    number,
                    asks: rule.asks,
                    holds,
                    decides: is_first,
                    seen,
                }
            })
            .collect_vec();
        evaluations.push(Evaluation {
            number: evaluations.len() + 1,
            asks: PASSED_ALL,
            holds: Some(decides.is_none()),
            decides: decides.is_none(),
            seen: match decides {
                Some(number) => format!("Rule {number} decides."),
                None => decided.to_string(),
            },
        });
        evaluations
    }
}
