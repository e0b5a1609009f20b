//! The eighteen rules: what should be done with one Terminating pod.
//!
//! Pure. Time is an argument, the facts are plain values, and nothing in reach could ask a server. The first rule
//! that holds decides; the order is part of the contract, because it keeps commands that destroy a volume from
//! being printed for a node that may come back. The rules themselves are a list, in `rules.rs`: deciding takes the
//! first that holds, explaining evaluates them all.

mod answer;
mod case;
mod code;
mod life;
mod reason;
mod rules;
mod volume;

use jiff::SignedDuration;

pub use self::answer::{Answer, GIVE_UP, NodeFailure, POWERED_OFF, REAP};
pub use self::case::Case;
pub use self::code::{ReasonCode, Verdict};
pub use self::reason::{
    ConfinedClaim, PinnedClaim, Reason, Ties, UnverifiedClaim, heard, reported, unread,
};
use self::rules::{RULES, Stage};
pub use self::volume::is_to_ask;
use crate::{
    codes::{codes, entry},
    facts::PodFacts,
};

codes! {
    /// `--kubelet-alive`: which pods a sign of life on their NotReady node protects.
    pub enum KubeletAlive {
        /// Those of which two must not run at once.
        HoldUnique = "hold-unique",
        /// All.
        Hold = "hold",
        /// None.
        Reap = "reap",
    }
}

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
}

/// Whether two words name one kind. A slip of the shift key, or a plural, must not delete.
pub fn same_kind(one: &str, other: &str) -> bool {
    // "Policy" and "policies", "Batch" and "batches" have one stem.
    let stem = |kind: &str| {
        let kind = kind.to_ascii_lowercase().replace('y', "i");
        let kind = kind.trim_end_matches('s').trim_end_matches('e');
        kind.to_owned()
    };
    stem(one) == stem(other)
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

entry! {
    /// What one rule or limit says about a pod.
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
}

#[cfg(test)]
mod tests;
