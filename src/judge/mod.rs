//! The rules: what should be done with one Terminating pod.
//!
//! The rules are pure functions: they take the time and the facts as arguments and never contact
//! the API server. `rules.rs` has their tables and the rules themselves, `reason.rs` the reasons that
//! they give, `context.rs` their input and the walk through the tables. `life.rs`, `storage.rs` and `tie.rs` tell
//! signs of life and what a volume means; `effect.rs` what becomes of a pod that is
//! deleted, and `limits.rs` the limits of a whole run. The first rule that applies decides; `explain` evaluates all of them. The
//! order is part of the contract: it keeps the report from printing a command that destroys a
//! volume of a node that may come back.

mod context;
mod effect;
mod life;
mod limits;
mod policy;
mod reason;
mod rules;
mod sentence;
mod storage;
mod tie;

pub use self::context::PodContext;
pub use self::effect::{Effect, is_attached};
pub use self::limits::{Foreseen, Judged, Limit, MAX_NODES_IGNORED, Plan, TOGETHER};
pub use self::policy::{Limits, Policy, same_kind, span};
pub use self::reason::{Cause, Reason, ReasonCode, Verdict};
pub use self::sentence::{kubelet_reports, reported, unread_facts};
pub use self::storage::terms;
pub use self::tie::{Tie, TieKind, Wanted};
use crate::codes::entry;

entry! {
    /// The answer of one rule about a pod.
    pub struct Evaluation {
        /// Its place in the order, from 1.
        pub number: usize,
        /// What it asks.
        pub asks: &'static str,
        /// Whether it holds; null if that is not known, because a fact could not be read.
        pub holds: Option<bool>,
        /// Whether the rules decide by it. A limit can then hold the pod, or a filter leave it out.
        pub decides: bool,
        /// What was seen, as a sentence.
        pub seen: String,
    }
}

#[cfg(test)]
mod tests;
