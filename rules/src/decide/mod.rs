//! The rules: what should be done with one Terminating pod.
//!
//! The rules are pure: time is an argument, the facts are plain values, and no function here could
//! ask a server. `case.rs` is what they are asked about, and `rules.rs` has the table and the walk
//! through it. Deciding takes the first rule that holds; explaining evaluates all of them. The order
//! is part of the contract: it keeps commands that destroy a volume from being printed for a node
//! that may come back.

mod answer;
mod case;
mod code;
mod life;
mod reason;
mod rules;
mod volume;

use jiff::SignedDuration;
use serde::{Serialize, Serializer};

pub use self::answer::{Answer, GIVE_UP, POWERED_OFF, REAP};
pub use self::case::Case;
pub use self::code::{ReasonCode, Verdict};
pub use self::reason::{
    Pin, Reason, Stage, Tie, TieKind, Ties, Unsure, heard, reported, unread_facts,
};
use crate::{
    codes::{codes, entry},
    selector::NodeSelectors,
};

codes! {
    /// `--kubelet-alive`: what a sign of life on a NotReady node does.
    pub enum KubeletAlive {
        /// It leaves the node's pods to a person.
        Hold = "hold",
        /// Nothing.
        Reap = "reap",
    }
}

/// How long a node has to be NotReady so that each detector of problems on its machine, which
/// writes every 5 min, has had its turn.
pub const DETECTED_WITHIN: SignedDuration = SignedDuration::from_mins(6);

/// The operator's choices that bear on a single pod, as every report shows them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// `--reap-older-than`: how long a pod has to be overdue to be stuck. Not negative.
    #[serde(rename = "reapOlderThanSeconds", serialize_with = "in_seconds")]
    #[cfg_attr(feature = "testing", schemars(with = "i64"))]
    pub reap_older_than: SignedDuration,
    /// `--node-not-ready-for`: how long the pod's node must have been NotReady. Not negative.
    #[serde(rename = "nodeNotReadyForSeconds", serialize_with = "in_seconds")]
    #[cfg_attr(feature = "testing", schemars(with = "i64"))]
    pub node_not_ready_for: SignedDuration,
    /// `--kubelet-alive`: what a sign of life of a pod's node does.
    pub kubelet_alive: KubeletAlive,
    /// `--manual-owner-kind`: kinds of owner or workload whose pods are left to a person.
    pub manual_owner_kinds: Vec<String>,
    /// `--reap-scratch`: pinned claims that are declared scratch are given up with their pods.
    pub reap_scratch: bool,
    /// The selectors of further leaf nodes and of fenced nodes.
    #[serde(flatten)]
    pub node_selectors: NodeSelectors,
}

fn in_seconds<S: Serializer>(span: &SignedDuration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(span.as_secs())
}

/// The kinds of owners that Kubernetes itself has.
pub const BUILT_IN: [&str; 7] = [
    "StatefulSet",
    "Deployment",
    "ReplicaSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
];

/// Reports whether two words name one kind, apart from case and plural: such a slip in
/// `--manual-owner-kind` must not delete pods.
pub fn same_kind(one: &str, other: &str) -> bool {
    // "Policy" and "policies" share a stem, and so do "Batch" and "batches".
    let stem = |kind: &str| {
        let kind = kind.to_ascii_lowercase().replace('y', "i");
        let kind = kind.trim_end_matches('s').trim_end_matches('e');
        kind.to_owned()
    };
    stem(one) == stem(other)
}

entry! {
    /// What one rule or limit says about a pod.
    pub struct Evaluation {
        /// Its place in the order, from 1; null for a limit.
        pub number: Option<usize>,
        /// What it asks.
        pub asks: &'static str,
        /// Whether it holds; null where that is not known, because the pod's node could not be
        /// read.
        pub holds: Option<bool>,
        /// Whether the verdict follows from it.
        pub decides: bool,
        /// What was seen, as a sentence.
        pub seen: String,
    }
}

#[cfg(test)]
mod tests;
