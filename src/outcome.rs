//! What happened to a pod whose verdict was `reap`.

/// The end of one pod's story in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted, and seen to be gone.
    Deleted,
    /// Somebody else finished, or nobody can tell who did.
    Gone,
    /// The pod is not the one that was judged: how, as a sentence.
    Changed(String),
    /// The node is Ready again.
    NodeRecovered,
    /// The node is not the one that was judged, or not to be judged so any more: how, as a sentence.
    NodeChanged(String),
    /// Rights or admission forbid it: the API server's message.
    Denied(String),
    /// Anything else: the cause.
    Failed(String),
    /// Accepted, and still there.
    StillThere,
    /// Accepted, but nobody could look whether it is gone: why.
    Unverified(String),
    /// The run had to end before its turn: why.
    Interrupted(String),
    /// A dry run would have deleted it.
    WouldDelete,
}

impl Outcome {
    /// Every code, for reports that count.
    pub const CODES: [&str; 11] = [
        "deleted",
        "gone",
        "changed",
        "node-recovered",
        "node-changed",
        "denied",
        "failed",
        "still-there",
        "unverified",
        "interrupted",
        "would-delete",
    ];

    /// The code in every report; part of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Gone => "gone",
            Self::Changed(_) => "changed",
            Self::NodeRecovered => "node-recovered",
            Self::NodeChanged(_) => "node-changed",
            Self::Denied(_) => "denied",
            Self::Failed(_) => "failed",
            Self::StillThere => "still-there",
            Self::Unverified(_) => "unverified",
            Self::Interrupted(_) => "interrupted",
            Self::WouldDelete => "would-delete",
        }
    }

    /// What a code means, whatever the pod; `None` for one that is none.
    pub fn means(code: &str) -> Option<&'static str> {
        Some(match code {
            "deleted" => "The API server accepted the delete, and the pod was verified to be gone.",
            "gone" => "Somebody else finished it, or nobody can tell who did. Nothing is left to do.",
            "changed" => {
                "It is no longer the pod that was judged. It was not deleted; the next run judges it again."
            }
            "node-recovered" => {
                "Its node, read again right before the delete, was Ready. It was not deleted."
            }
            "node-changed" => {
                "Its node, read again right before the delete, was another one, gone, or alive. It was not deleted."
            }
            "denied" => {
                "Rights or admission forbid the delete; the report holds the message. Give the right, or mend what refuses."
            }
            "failed" => {
                "The delete failed in another way; the report holds the cause. The next run tries again."
            }
            "still-there" => {
                "The delete was accepted, but the pod is still there. Look for a finalizer on it."
            }
            "unverified" => {
                "The delete was accepted, but whether the pod is gone could not be read. The next run sees it."
            }
            "interrupted" => "A signal or the deadline came before its turn. The next run takes it.",
            "would-delete" => "A dry run, or somebody said no when asked: a real run would force-delete it.",
            _ => return None,
        })
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

    /// Whether the pod could not be handled, which exit code 3 tells.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Denied(_)
            | Self::Failed(_)
            | Self::StillThere
            | Self::Unverified(_)
            | Self::Interrupted(_) => true,
            Self::Deleted
            | Self::Gone
            | Self::Changed(_)
            | Self::NodeRecovered
            | Self::NodeChanged(_)
            | Self::WouldDelete => false,
        }
    }
}
