//! The rules in their order, in three tables, and the functions that walk through them. Each rule is
//! independent of the others, so that `explain` can evaluate a late rule although an early one
//! applies.

use std::iter;

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    Evaluation,
    context::PodContext,
    life, node,
    reason::{
        Cause, Finding, GraceCut, Missing, NoCause, Reason, ReasonCode as Code, Seen, Verdict,
    },
    storage,
    tie::Tie,
};

/// A row of the table.
pub struct Rule {
    /// The reasons that the rule can give.
    pub gives: &'static [Code],
    /// The question of the rule, as the report shows it.
    pub asks: &'static str,
    finding: fn(&PodContext<'_>) -> Finding,
}

macro_rules! rules {
    ($($(#[$about:meta])* $table:ident { $($($gives:ident)|+, $asks:literal => $finding:path;)* })*) => {$(
        $(#[$about])*
        pub(super) const $table: &[Rule] = &[$(Rule {
            gives: &[$(Code::$gives),+],
            asks: $asks,
            finding: $finding,
        }),*];
    )*};
}

// Each row has the reasons, the question and the function that evaluates it. No rule depends on
// another one.
rules! {
    /// They need the nodes, the pods and the namespaces.
    NODE_RULES {
        MirrorPod, "Is it the mirror of a static pod?" => node::mirror_pod;
        OptedOut, "Is the pod, its namespace or its node opted out?" => node::opted_out;
        NodeGone, "Is its node gone, with no finalizer left except the Job controller's?" => node::node_gone;
        NodeReady, "Is its node Ready?" => node::node_ready;
        NotOverdue, "Was its deletion requested less than --reap-older-than ago?" => node::requested_lately;
        KosmosLeaf | VirtualNode | EdgeNode | LeafNode, "Is its node a leaf node?" => node::leaf_node;
        FactsUnread, "Could a needed fact not be read?" => node::facts_unread;
        NodeJustFailed,
            "Has its node been NotReady for less than --reap-older-than?" => node::node_just_failed;
    }

    /// They also need the signs of life.
    LIFE_RULES {
        NotOverdue, "Is it overdue by less than --reap-older-than?" => life::not_overdue;
        KubeletAlive, "Does its node show a sign of life?" => life::kubelet_alive;
        EtcdMember, "Did its node run etcd, of which fewer members are Ready than a majority?" => life::etcd_member;
        Finalizers, "Is it held by finalizers other than the Job controller's?" => life::finalizers;
    }

    /// They also need the storage. The reason names each of them that keeps the pod.
    STORAGE_RULES {
        VolumeUnverified, "Would a PVC that may be wanted go with it?" => storage::claim_goes;
        LocalVolume | HostPath, "Is its data on the node?" => storage::data_on_node;
        LocalVolume, "Is its storage out of reach of every other node?" => storage::volume_confined;
        NotOverdue, "Was a PVC given up too recently?" => storage::given_up_lately;
        VolumeUnverified, "Is a PVC or its volume unverified?" => storage::volume_unverified;
        SharedDisk,
            "Could two machines write to its disk, and is its node not fenced?" => storage::shared_disk;
        OwnerKind,
            "Is the kind of its owner, or of the workload above it, one of --manual-owner-kind?" => storage::owner_kind;
        Stuck, "Has it passed every rule above?" => storage::nothing_keeps;
    }
}

/// Lists all rules in their order. The number of a rule is its position, counted from 1.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [NODE_RULES, LIFE_RULES, STORAGE_RULES]
        .into_iter()
        .flatten()
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
    fn stuck_by_the_cut(&self, code: Code) -> Option<GraceCut> {
        let threshold = self.policy.reap_older_than;
        let is_stuck = |since| self.now.duration_since(since) >= threshold;
        let depends = !is_stuck(self.pod.deletion_deadline()) && is_stuck(self.overdue_since());
        // With `facts-unread`, the unread fact matters more.
        if depends && code != Code::FactsUnread {
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
        let given_up = self.ties().ok().and_then(storage::given_up_until);
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
