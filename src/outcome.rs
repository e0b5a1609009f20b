//! The outcomes: what happened to a pod whose verdict was `reap`.

use std::fmt::Display;

use serde::Deserialize;

use crate::codes::codes;

/// Declares the outcomes. Each has a code, a sentence about the pod at hand, and a text for the
/// documentation that says what the code means.
macro_rules! outcomes {
    ($($(#[$doc:meta])* $variant:ident $(($why:ident $(: $type:ty)?))? = $code:literal, $sentence:literal, $means:literal;)*) => {
        /// What happened to one pod in this run.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Outcome {
            $($(#[$doc])* $variant $((outcomes!(@type $($type)?)))?,)*
        }

        codes! {
            /// The kind of an outcome.
            pub enum OutcomeCode {
                $($(#[$doc])* $variant = $code => $means,)*
            }
        }

        impl Outcome {
            /// Returns the outcome's kind.
            pub fn code(&self) -> OutcomeCode {
                match self {
                    $(Self::$variant { .. } => OutcomeCode::$variant,)*
                }
            }

            /// Returns the sentence that explains the outcome to the user.
            pub fn sentence(&self) -> String {
                match self {
                    $(Self::$variant $(($why))? => format!($sentence),)*
                }
            }
        }
    };
    (@type) => { String };
    (@type $type:ty) => { $type };
}

outcomes! {
    /// The delete was accepted, and the pod is verified to be gone.
    Deleted = "deleted", "Force-deleted, and verified to be gone.",
        "It was deleted, and verified to be gone.";
    /// Something else deleted the pod, or it is not known what deleted it.
    Gone = "gone", "It was already gone, or disappeared just before the delete: nothing is left to do.",
        "Something else deleted it, or it is not known what did.";
    /// The pod is no longer the one that was judged. Holds a sentence that says how it differs.
    Changed(how) = "changed", "{how} Not deleted.",
        "It is no longer the pod that was judged: not deleted.";
    /// The node is Ready again.
    NodeRecovered = "node-recovered", "The node was Ready again right before the delete: not deleted.",
        "Its node was Ready again right before the delete: not deleted.";
    /// The node is no longer the one that was judged, or a rule about the node now keeps the pod.
    /// Holds a sentence that says which.
    NodeChanged(how) = "node-changed", "{how} Not deleted.",
        "Its node was replaced or removed, showed a sign of life, or a rule about it now kept the pod: not deleted.";
    /// The pod's namespace was opted out after the pod was judged.
    OptedOut = "opted-out",
        "Its namespace was opted out by pod-reaper.io/skip after the pod was judged: not deleted.",
        "Its namespace was opted out after it was judged: not deleted.";
    /// RBAC or admission forbids the delete. Holds the API server's message.
    Denied(message) = "denied", "The API server refused the delete: {message}",
        "RBAC or admission forbids the delete. Grant the permission, or change the policy that refuses.";
    /// The delete failed for any other cause. Holds the cause.
    Failed(cause: FailedTry) = "failed", "It could not be deleted: {cause}",
        "The delete failed otherwise. The next run tries again.";
    /// The API server accepted the delete, but the pod is still there.
    StillThere = "still-there",
        "The API server accepted the delete, but the pod is still there: look for a finalizer on it.",
        "The delete was accepted, but the pod is still there: look for a finalizer.";
    /// The API server accepted the delete, but a failed read leaves open whether the pod is gone.
    /// Holds the cause.
    Unverified(cause) = "unverified",
        "The API server accepted the delete, but the run could not verify that the pod is gone: {cause}",
        "The delete was accepted, but whether the pod is gone could not be read. The next run looks again.";
    /// The run had to stop before the pod was deleted: before the pod's turn, or between two
    /// attempts. Holds what stopped the run.
    Interrupted(cause) = "interrupted", "The run ended before this pod's turn, because of {cause}; the next run handles the pod.",
        "A signal or the deadline came first. The next run handles it.";
    /// A real run would have deleted the pod.
    WouldDelete = "would-delete", "A real run would force-delete it.",
        "A dry run, or you declined at the prompt: a real run would force-delete it.";
}

codes! {
    /// What is known of a run's own delete of a pod.
    #[derive(Default, Deserialize)]
    pub enum Trace {
        /// The run did not change the pod.
        Untouched = "untouched",
        /// A write was sent, and nothing proves that it had no effect.
        MayBeGone = "may-be-gone",
        /// The pod is gone.
        #[default]
        Gone = "gone",
    }
}

impl Trace {
    /// Reports whether the pod is gone, or may be.
    pub fn may_be_gone(self) -> bool {
        self != Self::Untouched
    }
}

/// A delete that failed, and what that leaves of the pod.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{why}")]
pub struct FailedTry {
    why: String,
    trace: Trace,
}

impl Outcome {
    /// Makes the outcome of a pod whose delete was not sent, or certainly had no effect.
    pub fn failed(why: &dyn Display) -> Self {
        let (why, trace) = (why.to_string(), Trace::Untouched);
        Self::Failed(FailedTry { why, trace })
    }

    /// Makes the outcome of a pod to which a write was sent that may have, or may yet get, an effect.
    pub fn unsettled(why: &dyn Display) -> Self {
        let (why, trace) = (why.to_string(), Trace::MayBeGone);
        Self::Failed(FailedTry { why, trace })
    }

    /// Returns what is known of the run's own delete; `None` if the run only looked.
    pub fn trace(&self) -> Option<Trace> {
        Some(match self {
            Self::Deleted | Self::Gone => Trace::Gone,
            Self::StillThere | Self::Unverified(_) => Trace::MayBeGone,
            Self::Failed(failed) => failed.trace,
            Self::Changed(_)
            | Self::NodeRecovered
            | Self::NodeChanged(_)
            | Self::OptedOut
            | Self::Denied(_)
            | Self::Interrupted(_) => Trace::Untouched,
            Self::WouldDelete => return None,
        })
    }
}

impl OutcomeCode {
    /// Reports whether the pod could not be handled, so that the run exits with code 3.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Denied | Self::Failed | Self::StillThere | Self::Unverified | Self::Interrupted
        )
    }

    /// Reports whether the pod is gone, or would be after a real run.
    pub fn went_well(self) -> bool {
        matches!(self, Self::Deleted | Self::Gone | Self::WouldDelete)
    }

    /// Reports whether the run did anything to the pod, or tried to.
    pub fn acted(self) -> bool {
        !matches!(self, Self::WouldDelete | Self::Interrupted)
    }
}
