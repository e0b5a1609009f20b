//! The sixteen rules: what should be done with one Terminating pod.
//!
//! Pure. Time is an argument, the facts are plain values, and nothing in reach could ask a server. The first rule
//! that holds decides; the order is part of the contract, because it keeps commands that destroy a volume from
//! being printed for a node that may come back. The rules themselves are a list, in `rules.rs`: deciding takes the
//! first that holds, explaining hears them all.

mod explained;
mod reason;
mod rules;
mod volume;

use jiff::{SignedDuration, Timestamp};

use self::rules::{Finding, RULES, Sight};
pub use self::{
    explained::{Explained, REASONS, explained},
    reason::{Optout, PinnedClaim, Reason, UnverifiedClaim, Verdict, spoken},
};
use crate::facts::{NodeRead, PodFacts};

/// What the operator chose, as far as it bears on a single pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How long past its deletion deadline a pod counts as stuck. Not negative.
    pub reap_older_than: SignedDuration,
    /// How long its node must have been NotReady. Not negative.
    pub node_not_ready_for: SignedDuration,
    /// Reap only where `Ready` is `Unknown`.
    pub unreachable_only: bool,
    /// Owner kinds that are left to a person. Case does not count: a slip of the shift key must not delete.
    pub manual_owner_kinds: Vec<String>,
}

/// Judges `pod` at `now`. `node` is the look that was taken at the pod's node, `None` where nobody looked.
pub fn decide(now: Timestamp, policy: &Policy, node: Option<&NodeRead>, pod: &PodFacts) -> Reason {
    let sight = Sight { now, policy, node, pod };
    RULES.iter().find_map(|rule| rule.finding(&sight).reason()).unwrap_or_else(|| sight.node_unread())
}

/// Whether the rules before the volume rules let the pod through, so that its claims have to be looked up.
pub fn needs_claims(now: Timestamp, policy: &Policy, node: Option<&NodeRead>, pod: &PodFacts) -> bool {
    let sight = Sight { now, policy, node, pod };
    let mut before_volumes = RULES.iter().take_while(|rule| !rule.asks_volumes);
    !pod.claims.is_empty() && before_volumes.all(|rule| matches!(rule.finding(&sight), Finding::Not))
}

/// What one rule says about a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// Its place in the order, from 1.
    pub number: usize,
    /// What it asks.
    pub asks: &'static str,
    /// Whether it holds; `None` where nobody can tell, because the pod's node could not be seen.
    pub holds: Option<bool>,
    /// What was seen, as a sentence.
    pub seen: String,
}

/// Hears every rule about a pod, in order. The first that holds, or cannot be told, is the one by which [`decide`]
/// decides: both go over the same rules. The last, which holds wherever it is asked, is not heard after that.
pub fn hear(now: Timestamp, policy: &Policy, node: Option<&NodeRead>, pod: &PodFacts) -> Vec<Heard> {
    let sight = Sight { now, policy, node, pod };
    let mut decides = None;
    let heard = RULES.iter().zip(1..).map(|(rule, number)| {
        let (holds, seen) = match (rule.finding(&sight), decides) {
            (_, Some(decides)) if number == RULES.len() => (Some(false), format!("Rule {decides} decides.")),
            (Finding::Holds(reason), _) => (Some(true), reason.sentence()),
            (Finding::Not, _) => (Some(false), (rule.otherwise)(&sight)),
            (Finding::Untold, _) => (None, "Its node could not be seen.".to_owned()),
        };
        if holds != Some(false) {
            decides.get_or_insert(number);
        }
        Heard { number, asks: rule.asks, holds, seen }
    });
    heard.collect()
}

#[cfg(test)]
mod tests;
