//! A pod on its node at one moment, which is the input of the rules, and the walk through their tables.

use std::{cell::OnceCell, iter};

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    Evaluation, Policy,
    reason::{Cause, GraceCut, Missing, NoCause, Reason, ReasonCode, Seen, Verdict},
    rules::{LIFE_RULES, NODE_RULES, Rule, STORAGE_RULES, rules},
    storage::given_up_until,
    tie::Tie,
};
use crate::facts::{ClusterFacts, NodeFacts, NodeRead, PodFacts, Ready, Storage, Unneeded, Unread};

/// A pod on its node at one moment. Each rule is a function of it.
pub struct PodContext<'a> {
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    pub(super) node: Option<&'a NodeRead>,
    pub(super) pod: &'a PodFacts,
    pub(super) storage: Option<&'a Storage>,
    /// The pod's ties; computed when a rule first needs them.
    pub(super) ties: OnceCell<Vec<Tie>>,
}

impl<'a> PodContext<'a> {
    /// Returns the context of `pod` among `facts`, at the moment of the facts. There is no `storage`
    /// if gathering did not come to it.
    pub fn of(
        facts: &'a ClusterFacts,
        policy: &'a Policy,
        pod: &'a PodFacts,
        storage: Option<&'a Storage>,
    ) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod, storage)
    }

    /// Returns the context of `pod` at `now`. `node` is the result of reading the pod's node;
    /// `None` if the node was not read.
    pub fn new(
        now: Timestamp,
        policy: &'a Policy,
        node: Option<&'a NodeRead>,
        pod: &'a PodFacts,
        storage: Option<&'a Storage>,
    ) -> Self {
        Self {
            now,
            policy,
            node,
            pod,
            storage,
            ties: OnceCell::new(),
        }
    }

    /// Returns the pod's node for a rule that needs it. The error distinguishes a node that does
    /// not exist from one that could not be read. If the node could not be read, the pod does not
    /// pass the rule.
    pub(super) fn required_node(&self) -> Result<&'a NodeFacts, NoCause> {
        self.known().ok_or_else(|| {
            if self.nowhere() {
                NoCause::Seen(Seen::Nowhere)
            } else {
                NoCause::Missing(self.node_unread())
            }
        })
    }

    pub(super) fn overdue_since(&self) -> Timestamp {
        self.pod.overdue_since(self.known(), self.now)
    }

    /// Returns by what the grace period is cut short; `None` if it is not.
    pub(super) fn grace_cut_short(&self) -> Option<GraceCut> {
        let (since, deadline) = (self.overdue_since(), self.pod.deletion_deadline());
        let requested = self.pod.deletion_requested().filter(|_| since < deadline)?;
        Some(GraceCut {
            grace: deadline.duration_since(requested),
            heard_for: since.duration_since(requested),
        })
    }

    pub(super) fn known(&self) -> Option<&'a NodeFacts> {
        self.node.and_then(NodeRead::known)
    }

    /// Reports whether the signs of life were read that the rules need. Only a NotReady node needs
    /// some.
    pub(super) fn has_life(&self) -> bool {
        let node = self.known().filter(|node| node.ready != Ready::True);
        node.is_none_or(|node| node.life.is_some())
    }

    /// Returns the pod's storage for a rule that needs it.
    pub(super) fn required_storage(&self) -> Result<&'a Storage, NoCause> {
        self.storage.ok_or(NoCause::Missing(Missing::Storage))
    }

    /// Returns why nothing wants the pod again; `None` if something wants it, or may.
    pub(super) fn unneeded(&self) -> Option<Unneeded> {
        self.pod.unneeded(self.storage)
    }

    /// Reports whether the pod has no node: it was never assigned one, or the node is gone.
    pub(super) fn nowhere(&self) -> bool {
        self.pod.node.is_none() || matches!(self.node, Some(NodeRead::Gone))
    }

    /// Returns why the node is not known.
    pub(super) fn node_unread(&self) -> Missing {
        Missing::Node(match self.node {
            Some(NodeRead::Unread(unread)) => unread.clone(),
            _ => Unread("it was not looked up".to_owned()),
        })
    }

    pub(super) fn node_name(&self) -> &'a str {
        self.pod.node.as_deref().unwrap_or("its node")
    }

    /// Returns what is known about the `Ready` condition of the pod's node.
    pub(super) fn ready(&self) -> Seen {
        let node = self.node_name().to_owned();
        match self.known() {
            Some(NodeFacts {
                ready,
                ready_reason: reason,
                ..
            }) => Seen::Ready {
                node,
                ready: *ready,
                reason: reason.clone(),
            },
            None if self.nowhere() => Seen::Nowhere,
            None => Seen::ReadyUnknown(node),
        }
    }
}

impl Rule {
    /// Returns the cause if the rule applies. A rule that needs an unknown fact keeps the pod too.
    fn decides(&self, case: &PodContext<'_>) -> Option<Cause> {
        match (self.finding)(case) {
            Ok(cause) => Some(cause),
            Err(NoCause::Missing(fact)) => Some(Cause::Unread(fact)),
            Err(NoCause::Seen(_)) => None,
        }
    }
}

impl PodContext<'_> {
    /// Judges the pod: the first rule that applies decides. Judging stops at the first table whose
    /// facts were not read. `None` if nothing keeps the pod so far, so that it goes on to the next
    /// step of gathering.
    pub fn judge(&self) -> Option<Reason> {
        if let Some(cause) = self.first(NODE_RULES) {
            return Some(Reason::new(cause));
        }
        if !self.has_life() {
            return None;
        }
        let reason = match self.first(LIFE_RULES) {
            Some(cause) => Reason::new(cause),
            None => self.judge_by_storage()?,
        };
        Some(Reason {
            grace_cut: self.stuck_by_the_cut(reason.code()),
            ..reason
        })
    }

    /// Judges the pod for good: a pod that was not read to the end is kept.
    pub fn decide(&self) -> Reason {
        let unread = || Reason::new(Cause::Unread(Missing::LaterStep));
        self.judge().unwrap_or_else(unread)
    }

    fn first(&self, table: &[Rule]) -> Option<Cause> {
        table.iter().find_map(|rule| rule.decides(self))
    }

    /// Judges the pod by the rules about storage; `None` if the storage was not read. The reason gets
    /// the pod's ties, and the codes of all these rules for which the user has to decide.
    fn judge_by_storage(&self) -> Option<Reason> {
        self.storage?;
        let mut rules = STORAGE_RULES.iter();
        let cause = rules.find_map(|rule| rule.decides(self))?;
        if matches!(cause, Cause::Unread(_)) {
            return Some(Reason::new(cause));
        }
        let mut asks = Vec::new();
        if cause.code().verdict() == Verdict::Manual {
            let others = rules.filter_map(|rule| (rule.finding)(self).ok());
            let codes = iter::once(cause.clone()).chain(others);
            let codes = codes.flat_map(|cause| cause.codes().collect_vec());
            let manual = codes.filter(|code| code.verdict() == Verdict::Manual);
            asks = manual.unique().collect();
        }
        Some(Reason {
            asks,
            ties: self.ties().map(<[Tie]>::to_vec).unwrap_or_default(),
            ..Reason::new(cause)
        })
    }

    /// Returns the cut of the grace period, if the pod is stuck only because its grace period is cut
    /// short; otherwise `None`. `code` is the reason that decides about the pod.
    fn stuck_by_the_cut(&self, code: ReasonCode) -> Option<GraceCut> {
        let threshold = self.policy.reap_older_than;
        let is_stuck = |since| self.now.duration_since(since) >= threshold;
        let depends = !is_stuck(self.pod.deletion_deadline()) && is_stuck(self.overdue_since());
        // If the reason is `facts-unread`, the unread fact matters more.
        if depends && code != ReasonCode::FactsUnread {
            self.grace_cut_short()
        } else {
            None
        }
    }

    /// Returns the moment from which neither rule about time keeps the pod; `None` if that moment
    /// is not known.
    pub fn reaped_from(&self) -> Option<Timestamp> {
        let node = self.known()?;
        let since = node.not_ready_since(self.now)?;
        let overdue = self.pod.grace_cut_at(node, self.now);
        let overdue = overdue.unwrap_or(self.pod.deletion_deadline());
        let overdue = overdue.saturating_add(self.policy.reap_older_than).ok()?;
        let silent = since.saturating_add(self.policy.reap_older_than).ok()?;
        let given_up = self.ties().ok().and_then(given_up_until);
        [Some(overdue), Some(silent), given_up]
            .into_iter()
            .flatten()
            .max()
    }

    /// Evaluates every rule, in order. The first one that applies, or needs an unknown fact, is the
    /// one that [`PodContext::judge`] finds. The last rule does not check whether an earlier one
    /// applies, so its result is not shown if another rule decides.
    pub fn evaluate(&self) -> Vec<Evaluation> {
        let (last, decided) = (rules().count(), self.decide());
        let mut decides = None;
        let evaluations = rules().zip(1..).map(|(rule, number)| {
            let (holds, seen) = match ((rule.finding)(self), decides) {
                (_, Some(decides)) if number == last => {
                    (Some(false), Seen::DecidedBy(decides).to_string())
                }
                (Ok(_), None) => (Some(true), decided.to_string()),
                (Ok(cause), Some(_)) => (Some(true), cause.to_string()),
                (Err(NoCause::Seen(seen)), _) => (Some(false), seen.to_string()),
                (Err(NoCause::Missing(fact)), _) => (None, fact.seen().to_owned()),
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
                gives: rule.gives.first().copied(),
            }
        });
        evaluations.collect()
    }
}
