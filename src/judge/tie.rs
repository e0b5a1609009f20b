//! The ties between a pod and its PVCs, as data, each with its sentence.

use std::fmt::{self, Formatter};

use derive_more::Display;
use itertools::Itertools as _;
use jiff::Timestamp;

use super::sentence::spelled_terms;
use crate::{
    facts::{AffinityTerm, Place, Unneeded, Unread},
    words::Foreign,
};

/// What one PVC means for a delete of its pod. A PVC has up to two ties: one because it is deleted with
/// the pod, and one by where its data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    /// The PVC's name.
    pub pvc: String,
    /// The name of the volume that the PVC is bound to, if it is.
    pub volume: Option<String>,
    /// True if the volume stays when the PVC is deleted, by its reclaim policy `Retain`.
    pub retained: bool,
    /// What the PVC means.
    pub kind: TieKind,
}

/// What a PVC means for a delete of its pod. The first four kinds keep the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TieKind {
    /// The volume is on the dead node, or has an affinity to that node alone.
    Pinned(Location),
    /// No other node can reach the volume, although the data may be somewhere other than on the
    /// dead node.
    Confined(Location),
    /// It could not be verified that the PVC does not tie the pod to the node.
    Unverified(Unread),
    /// The PVC would go with the pod, and may be wanted again.
    Goes(Wanted),
    /// Somebody gave the PVC up by deleting it after the node failed. The pod may be deleted `from`
    /// that time on.
    GivenUp { from: Timestamp },
    /// The PVC belongs to the pod's own generic ephemeral volume.
    Ephemeral,
    /// The PVC goes with the pod, and nothing wants it again.
    Unwanted,
    /// The PVC is deleted with the pod, but its volume stays.
    Retained,
    /// No other node reaches the volume, but nothing wants the pod again.
    Unneeded(Unneeded),
}

/// The place of the data of a volume that no other node is known to reach. Its `Display` is a phrase about the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The kind of storage.
    pub storage: Place,
    /// `spec.nodeAffinity.required`.
    pub affinity: Vec<AffinityTerm>,
}

/// Why a PVC that goes with its pod may be wanted. Its `Display` is a phrase about the PVC.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub enum Wanted {
    /// The PVC was deleted before the node failed.
    #[display(
        "it was deleted at {_0:.0}, before its node became NotReady, and goes with its last pod"
    )]
    Deleted(Timestamp),
    /// The PVC was deleted, and finalizers hold it.
    #[display(
        "it was deleted at {at:.0}, and goes once its last pod and the finalizers {} are gone",
        finalizers.iter().format(", ")
    )]
    DeletedAndHeld {
        at: Timestamp,
        finalizers: Vec<Foreign>,
    },
    /// The pod owns the PVC.
    #[display("the pod owns it, so that it goes with the pod, and {_0}")]
    Owned(Owned),
}

/// Why a PVC that its pod owns may be wanted. Its `Display` is a clause.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub enum Owned {
    /// The pod is not a `StatefulSet`'s.
    #[display("no StatefulSet controls the pod, which would say whether it is wanted again")]
    WithoutSet,
    /// The `StatefulSet` wants the pod.
    #[display("its StatefulSet wants the pod again")]
    SetWantsPod,
    /// Gathering did not come to the `StatefulSet`.
    #[display("its StatefulSet was not read")]
    SetNotRead,
    /// The `StatefulSet` could not be read.
    #[display("its StatefulSet could not be read: {_0}")]
    SetUnread(Unread),
}

impl Tie {
    /// Reports whether the volume is known to be on the pod's node.
    pub fn is_pinned(&self) -> bool {
        matches!(self.kind, TieKind::Pinned(_))
    }

    /// Reports whether no other node is known to reach the volume.
    pub fn is_local(&self) -> bool {
        matches!(self.kind, TieKind::Pinned(_) | TieKind::Confined(_))
    }

    /// Reports whether it is unverified where the data is.
    pub fn is_unverified(&self) -> bool {
        matches!(self.kind, TieKind::Unverified(_))
    }

    /// Reports whether the PVC would go with the pod, and may be wanted.
    pub fn goes(&self) -> bool {
        matches!(self.kind, TieKind::Goes(_))
    }

    /// Reports whether the tie keeps the pod, whatever the time.
    pub fn keeps(&self) -> bool {
        self.is_local() || self.is_unverified() || self.goes()
    }

    /// Returns the time from which the pod may be deleted with a PVC that was given up.
    pub fn given_up_from(&self) -> Option<Timestamp> {
        match self.kind {
            TieKind::GivenUp { from } => Some(from),
            _ => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.storage {
            Place::Local(path) => write!(f, "local, at {path}"),
            Place::HostPath(path) => write!(f, "hostPath, at {path}"),
            Place::StrictLocal => f.write_str("Longhorn, dataLocality strict-local"),
            Place::Driver => write!(f, "its node affinity is {}", spelled_terms(&self.affinity)),
        }
    }
}

/// A phrase: what keeps the pod, or what to remember once it is reaped.
impl fmt::Display for Tie {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (pvc, volume) = (&self.pvc, self.volume.as_deref().unwrap_or_default());
        let data = if self.retained {
            "its volume stays, by its reclaim policy Retain"
        } else {
            "data included"
        };
        match &self.kind {
            TieKind::Pinned(at) | TieKind::Confined(at) => {
                write!(f, "PVC {pvc} is bound to a volume ({at})")
            }
            TieKind::Unverified(why) => write!(f, "PVC {pvc}: {why}"),
            TieKind::Goes(wanted) => write!(f, "PVC {pvc}: {wanted}"),
            TieKind::GivenUp { .. } => write!(
                f,
                "PVC {pvc} was deleted after the node failed, and disappears with its last pod, {data}"
            ),
            TieKind::Ephemeral => write!(
                f,
                "PVC {pvc} belongs to the pod alone and is deleted with it, {data}"
            ),
            TieKind::Unwanted => write!(
                f,
                "PVC {pvc} is deleted with the pod, and nothing wants it again, {data}"
            ),
            TieKind::Retained => write!(f, "PVC {pvc} is deleted with its last pod, {data}"),
            TieKind::Unneeded(Unneeded::Namespace) => {
                write!(f, "PVC {pvc} is deleted with its namespace")
            }
            TieKind::Unneeded(Unneeded::Set) => write!(
                f,
                "PVC {pvc} stays, with its data on volume {volume}: no StatefulSet wants the pod again"
            ),
        }
    }
}
