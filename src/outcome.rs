//! What happened to a pod whose verdict was `reap`.

use jiff::Timestamp;
use serde::Serialize;

use crate::codes::codes;

codes! {
    /// The kind of an outcome.
    pub enum OutcomeCode {
        /// See [`Outcome::Deleted`].
        Deleted = "deleted",
        /// See [`Outcome::Gone`].
        Gone = "gone",
        /// See [`Outcome::Changed`].
        Changed = "changed",
        /// See [`Outcome::NodeRecovered`].
        NodeRecovered = "node-recovered",
        /// See [`Outcome::NodeChanged`].
        NodeChanged = "node-changed",
        /// See [`Outcome::OptedOut`].
        OptedOut = "opted-out",
        /// See [`Outcome::Denied`].
        Denied = "denied",
        /// See [`Outcome::Failed`].
        Failed = "failed",
        /// See [`Outcome::StillThere`].
        StillThere = "still-there",
        /// See [`Outcome::Unverified`].
        Unverified = "unverified",
        /// See [`Outcome::Interrupted`].
        Interrupted = "interrupted",
        /// See [`Outcome::WouldDelete`].
        WouldDelete = "would-delete",
    }
}

/// What became of one pod in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted, and seen to be gone.
    Deleted,
    /// It went by itself, or it is not known what deleted it.
    Gone,
    /// The pod is not the one that was judged: how, as a sentence.
    Changed(String),
    /// The node is Ready again.
    NodeRecovered,
    /// The node is not the one that was judged, or not to be judged so any more: how, as a sentence.
    NodeChanged(String),
    /// Its namespace was opted out after it was judged.
    OptedOut,
    /// Rights or admission forbid it: the API server's message.
    Denied(String),
    /// Anything else: the cause.
    Failed(String),
    /// Accepted, and still there.
    StillThere,
    /// Accepted, but whether it is gone could not be read: why.
    Unverified(String),
    /// The run had to end before its turn: why.
    Interrupted(String),
    /// A dry run would have deleted it.
    WouldDelete,
}

impl Outcome {
    /// Its kind.
    pub fn code(&self) -> OutcomeCode {
        match self {
            Self::Deleted => OutcomeCode::Deleted,
            Self::Gone => OutcomeCode::Gone,
            Self::Changed(_) => OutcomeCode::Changed,
            Self::NodeRecovered => OutcomeCode::NodeRecovered,
            Self::NodeChanged(_) => OutcomeCode::NodeChanged,
            Self::OptedOut => OutcomeCode::OptedOut,
            Self::Denied(_) => OutcomeCode::Denied,
            Self::Failed(_) => OutcomeCode::Failed,
            Self::StillThere => OutcomeCode::StillThere,
            Self::Unverified(_) => OutcomeCode::Unverified,
            Self::Interrupted(_) => OutcomeCode::Interrupted,
            Self::WouldDelete => OutcomeCode::WouldDelete,
        }
    }

    /// The sentence that explains it to a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Deleted => "Force-deleted, and verified to be gone.".to_owned(),
            Self::Gone => {
                "It was gone already, or went while it was about to be deleted: nothing is left to do."
                    .to_owned()
            }
            Self::NodeRecovered => {
                "The node was Ready again right before the delete: not deleted.".to_owned()
            }
            Self::NodeChanged(how) | Self::Changed(how) => format!("{how} Not deleted."),
            Self::OptedOut => {
                "Its namespace was opted out by pod-reaper.io/skip after the pod was judged: not deleted."
                    .to_owned()
            }
            Self::Denied(message) => format!("The API server refused the delete: {message}"),
            Self::Failed(cause) => format!("It could not be deleted: {cause}"),
            Self::StillThere => {
                "The API server accepted the delete, but the pod is still there: look for a finalizer on it."
                    .to_owned()
            }
            Self::Unverified(cause) => {
                format!(
                    "The API server accepted the delete, but whether it is gone could not be read: {cause}"
                )
            }
            Self::Interrupted(cause) => {
                format!("The run ended before its turn, by {cause}; the next one takes it.")
            }
            Self::WouldDelete => "A real run would force-delete it.".to_owned(),
        }
    }
}

impl OutcomeCode {
    /// Whether the pod could not be handled, which exit code 3 says.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Denied | Self::Failed | Self::StillThere | Self::Unverified | Self::Interrupted)
    }

    /// Whether the pod is gone, or would be, as it should.
    pub fn went_well(self) -> bool {
        matches!(self, Self::Deleted | Self::Gone | Self::WouldDelete)
    }

    /// Whether anything was done, or tried, about the pod.
    pub fn acted(self) -> bool {
        !matches!(self, Self::WouldDelete | Self::Interrupted)
    }
}

codes! {
    /// How far a replacement has come.
    pub enum ReplacementState {
        /// Ready, or finished already where it is a Job's.
        Back = "back",
        /// It has a node, and its containers do not run yet.
        Starting = "starting",
        /// It runs, and is not Ready.
        NotReady = "not-ready",
        /// It has no node, or is not made yet.
        Pending = "pending",
        /// There will be none, and that is proved.
        None = "none",
        /// It could not be read.
        Unknown = "unknown",
    }
}

/// The pod that the controller started, or should start, for one that was reaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ReplacementEntry"))]
pub struct Replacement {
    /// How far it has come.
    pub state: ReplacementState,
    /// Its name, where there is a pod.
    pub name: Option<String>,
    /// Its UID.
    pub uid: Option<String>,
    /// Its node.
    pub node: Option<String>,
    /// Since when it is Ready, where it is.
    pub since: Option<Timestamp>,
    /// Why it is not back, and what else there is to know of it, as a phrase.
    pub cause: Option<String>,
}

impl Replacement {
    /// There is no pod to tell of.
    pub fn without_pod(state: ReplacementState, cause: impl Into<String>) -> Self {
        Self { state, name: None, uid: None, node: None, since: None, cause: Some(cause.into()) }
    }

    /// Adds to its cause.
    pub fn add(&mut self, more: &str) {
        let said = self.cause.take().map(|cause| cause + "; ").unwrap_or_default();
        self.cause = Some(said + more);
    }
}
