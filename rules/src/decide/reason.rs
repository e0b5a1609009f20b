//! Why a pod got its verdict, with the claims that it is about.

use jiff::Timestamp;

use super::code::{ReasonCode, Verdict};
use crate::{
    facts::{Doubt, Heard, ResourceVersion, SignBy, Uid},
    words::spoken,
};

/// Why a pod got its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Its kind.
    pub code: ReasonCode,
    /// What was seen, as a sentence.
    pub sentence: String,
    /// What the pod's claims bind it to, where the rules about them were asked.
    pub ties: Ties,
    /// What to remember once the pod is reaped, as phrases.
    pub notes: Vec<String>,
}

/// What a pod's claims say about its moving elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ties {
    /// Bound to its node.
    pub pinned: Vec<PinnedClaim>,
    /// Reachable from no other node.
    pub confined: Vec<ConfinedClaim>,
    /// Claims of which it is not known whether another node can reach the volume.
    pub unverified: Vec<UnverifiedClaim>,
    /// What to remember once the pod is reaped, as phrases.
    pub notes: Vec<String>,
}

/// A claim whose volume only the dead node can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedClaim {
    /// The claim.
    pub claim: String,
    /// Its UID, so that the printed command cannot hit a namesake.
    pub claim_uid: Uid,
    /// Its volume.
    pub volume: String,
    /// The volume's reclaim policy: what becomes of the data.
    pub reclaim_policy: Option<String>,
    /// How the volume is bound to the node, as a phrase.
    pub bond: String,
    /// The claim's resource version, where it is given up in that version; else why it is not, as a phrase.
    pub given_up: Result<ResourceVersion, String>,
    /// A person's answer gives it up.
    pub answered: bool,
    /// What stands against giving it up.
    pub doubt: Option<Doubt>,
}

/// A claim whose volume no node but the dead one can reach, though it may not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedClaim {
    /// The claim.
    pub claim: String,
    /// Its volume.
    pub volume: String,
    /// What the volume asks of a node, as a phrase.
    pub place: String,
}

/// A claim whose volume could not be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedClaim {
    /// The claim.
    pub claim: String,
    /// The volume that it names and that does not exist.
    pub missing_volume: Option<String>,
    /// What is wrong, as a phrase.
    pub cause: String,
}

impl Reason {
    /// A reason of that kind, as a sentence.
    pub fn new(code: ReasonCode, sentence: impl Into<String>) -> Self {
        Self {
            code,
            sentence: sentence.into(),
            ties: Ties::default(),
            notes: Vec::new(),
        }
    }

    /// The reason where a fact could not be read: `what` says which, and why.
    pub(super) fn unread(what: &str) -> Self {
        Self::new(ReasonCode::FactsUnread, unread(what))
    }

    /// What should be done.
    pub fn verdict(&self) -> Verdict {
        self.code.verdict()
    }

    /// The claims that are given up with the pod.
    pub fn given_up(&self) -> &[PinnedClaim] {
        match self.verdict() {
            Verdict::Reap => &self.ties.pinned,
            _ => &[],
        }
    }
}

/// What was reported from a node, with its age: "its kubelet renewed its lease 4s ago".
pub fn reported(Heard { by, at, .. }: &Heard, now: Timestamp) -> String {
    let age = spoken(now.duration_since(*at));
    match by {
        SignBy::Lease => format!("its kubelet renewed its lease {age} ago"),
        SignBy::ApiServer => format!("its API server renewed its lease {age} ago"),
        SignBy::Kubelet => "its kubelet reports that itself".to_owned(),
        by => format!("{by} reported {age} ago"),
    }
}

/// When something was heard, and from whom: "4s ago (lease)".
pub fn heard(Heard { by, at, .. }: &Heard, now: Timestamp) -> String {
    format!("{} ago ({by})", spoken(now.duration_since(*at)))
}

/// The sentence for a needed fact that could not be read: `what`, and why.
pub fn unread(what: &str) -> String {
    format!(
        "A fact that the decision needs could not be read: {}.",
        what.trim_end_matches('.')
    )
}
