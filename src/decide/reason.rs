//! The result of a rule: the reason of a pod's verdict with the PVCs that the reason is about, or
//! why the rule gives no reason.

use std::{borrow::Cow, collections::BTreeSet};

use derive_more::Display;
use jiff::Timestamp;

use super::code::{ReasonCode, Verdict};
use crate::{
    facts::{Heard, SignBy, Unneeded},
    words::{about, human_duration},
};

/// The reasons that only the rules about storage give.
const STORAGE: [ReasonCode; 6] = [
    ReasonCode::LocalVolume,
    ReasonCode::HostPath,
    ReasonCode::VolumeUnverified,
    ReasonCode::SharedDisk,
    ReasonCode::OwnerKind,
    ReasonCode::Stuck,
];

/// The reason that a rule gives if it applies; otherwise why it gives none.
pub type Finding = Result<Reason, NoReason>;

/// Why a rule gives no reason.
pub enum NoReason {
    /// The rule does not apply. Holds what the rule saw, as a sentence.
    Seen(Cow<'static, str>),
    /// The rule needs a fact that could not be read, so the pod is kept. The first text completes
    /// "could not be read: …"; the second is a sentence for `explain`.
    Unknown(String, &'static str),
}

/// The reason of a pod's verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The kind of the reason.
    pub code: ReasonCode,
    /// All reasons of the rules about storage for which the user has to decide. Empty if the user has
    /// nothing to decide, or if an earlier rule leaves the pod to the user.
    pub asks: Vec<ReasonCode>,
    /// What the rule saw, as a sentence.
    pub sentence: String,
    /// How the PVCs of the pod tie the pod to its node; empty if a rule before those about PVCs
    /// decided.
    pub ties: Ties,
    /// Notes to show once the pod is reaped, as phrases.
    pub notes: Vec<String>,
}

/// Everything that ties a pod to its node through the pod's PVCs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ties {
    /// The ties, in the order of the PVCs. One PVC may have two ties.
    pub all: Vec<Tie>,
    /// Why nothing needs the pod or its PVCs again: only the causes that let the pod pass a rule. Each
    /// cause must still apply when the pod is deleted.
    pub unneeded: BTreeSet<Unneeded>,
    /// The time until which PVCs that were given up keep the pod; `None` if there are none.
    pub given_up_until: Option<Timestamp>,
    /// Notes about PVCs to show once the pod is reaped, as phrases.
    pub notes: Vec<String>,
}

/// A tie between a pod and its node through one PVC.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
#[display("PVC {pvc}{}", self.predicate())]
pub struct Tie {
    /// The PVC's name.
    pub pvc: String,
    /// The name of the volume that the PVC is bound to; `None` only if the tie is unverified.
    pub volume: Option<String>,
    /// The evidence, as a phrase. For a pinned PVC, it is how the volume is tied to the node
    /// ("local, at /mnt/d1"). For a confined PVC, it is a clause that follows the volume's name.
    /// For an unverified PVC, it is what is wrong or unknown.
    pub why: String,
    /// How firmly the PVC ties the pod to its node.
    pub kind: TieKind,
}

/// How firmly a PVC ties a pod to its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TieKind {
    /// The volume is on the dead node, or has an affinity to that node alone.
    Pinned,
    /// No other node can reach the volume, although the data may be somewhere other than on the
    /// dead node.
    Confined,
    /// It could not be verified that the PVC does not tie the pod to the node.
    Unverified,
    /// The PVC would go with the pod, and may be wanted again.
    Going,
}

impl Ties {
    /// Lists the ties of this kind.
    pub fn of_kind(&self, kind: TieKind) -> impl Iterator<Item = &Tie> + Clone {
        self.all.iter().filter(move |tie| tie.kind == kind)
    }
}

impl Tie {
    /// Returns the name of the volume; empty if there is none.
    pub fn volume(&self) -> &str {
        self.volume.as_deref().unwrap_or_default()
    }

    fn predicate(&self) -> String {
        let (volume, why) = (self.volume(), &self.why);
        match self.kind {
            TieKind::Pinned => format!(" is bound to volume {volume} ({why})"),
            TieKind::Confined => format!(" is bound to volume {volume}, which {why}"),
            TieKind::Unverified | TieKind::Going => format!(": {why}"),
        }
    }
}

impl Reason {
    /// Returns a reason without ties or notes.
    pub fn new(code: ReasonCode, sentence: impl Into<String>) -> Self {
        Self {
            code,
            asks: Vec::new(),
            sentence: sentence.into(),
            ties: Ties::default(),
            notes: Vec::new(),
        }
    }

    /// Returns the reason that keeps a pod because a fact could not be read; `what` names the fact
    /// and the cause.
    pub(super) fn unread(what: &str) -> Self {
        Self::new(ReasonCode::FactsUnread, unread_facts(what))
    }

    /// Returns the verdict that follows from the reason.
    pub fn verdict(&self) -> Verdict {
        self.code.verdict()
    }

    /// Reports whether the reason leaves a dead node's pod to the user, who has to decide about its
    /// storage or owner.
    pub fn asks_a_person(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Reports whether the pod passed the rules about the node. It did if the node is gone. It also
    /// did if the node is real and not opted out, has been NotReady for long enough and shows no
    /// sign of life.
    pub fn passed_the_node(&self) -> bool {
        let is_about_the_node = match self.code {
            ReasonCode::NotOverdue => self.ties.given_up_until.is_none(),
            ReasonCode::Finalizers => false,
            code => !STORAGE.contains(&code),
        };
        !is_about_the_node
    }
}

/// Formats a heartbeat with its age: "its kubelet renewed its lease 4s ago".
pub fn reported(Heard { by, at, what }: &Heard, now: Timestamp) -> String {
    let age = human_duration(now.duration_since(*at));
    let what = what.as_deref().unwrap_or("something on it");
    match by {
        SignBy::OtherLease => format!("{what}, was renewed {age} ago"),
        SignBy::Program => format!("{what} wrote to its own pod {age} ago"),
        SignBy::Lease => format!("its kubelet renewed its lease {age} ago"),
        SignBy::ApiServer => format!("its API server renewed its lease {age} ago"),
        SignBy::Kubelet => "its kubelet reports that itself".to_owned(),
        by => format!("{by} reported {age} ago"),
    }
}

/// Formats the age and the source of a heartbeat: "4s ago (lease)".
pub fn heard(Heard { by, at, .. }: &Heard, now: Timestamp) -> String {
    format!("{} ago ({by})", about(now.duration_since(*at)))
}

/// Formats the sentence about a needed fact that could not be read; `what` names the fact and the
/// cause.
pub fn unread_facts(what: &str) -> String {
    format!(
        "A fact that the decision needs could not be read: {}.",
        what.trim_end_matches('.')
    )
}
