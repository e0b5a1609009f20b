//! A reason: why a pod gets its verdict, as data. `sentence.rs` has the sentences.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::code::{ReasonCode, Verdict};
use crate::facts::{
    AffinityTerm, ClaimDeletion, Containers, Heard, KubeletSays, Leaf, LeafKind, OptOut, Owner,
    Place, Quorum, Ready, Unneeded, Unread,
};

/// The result of a rule: the cause that it gives if it applies.
pub type Finding = Result<Cause, NoCause>;

/// Why a rule gives no cause.
#[derive(Debug, Clone, PartialEq)]
pub enum NoCause {
    /// The rule does not apply.
    Seen(Seen),
    /// The rule needs a fact that could not be read, so the pod is kept.
    Missing(Missing),
}

pub(super) fn seen(what: Seen) -> Finding {
    Err(NoCause::Seen(what))
}

pub(super) fn missing(fact: Missing) -> Finding {
    Err(NoCause::Missing(fact))
}

/// The reason of a pod's verdict. Its `Display` is the sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// What the rule that decides saw.
    pub cause: Cause,
    /// All reasons of the rules about storage for which the user has to decide. Empty if the user has
    /// nothing to decide, or if an earlier rule leaves the pod to the user.
    pub asks: Vec<ReasonCode>,
    /// The ties between the pod and its PVCs; empty if a rule before those about PVCs decided.
    pub ties: Vec<Tie>,
    /// The cut of the grace period, if the pod is stuck only because of it.
    pub grace_cut: Option<GraceCut>,
}

/// What a rule that applies saw.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// The pod mirrors a static pod.
    Mirror,
    /// `pod-reaper.io/skip` has a value that opts the pod out.
    OptedOut { by: OptOut, value: String },
    /// The node does not exist any more; `None` if the pod was never assigned to one.
    NodeGone(Option<String>),
    /// The node is Ready.
    NodeReady,
    /// The deletion was requested less than the threshold ago, on a node that cuts the grace period
    /// short.
    RequestedLately {
        ago: SignedDuration,
        threshold: SignedDuration,
    },
    /// The pod is overdue by less than the threshold. The time is negative within the grace period.
    NotOverdue {
        overdue: SignedDuration,
        threshold: SignedDuration,
        grace_cut: Option<GraceCut>,
    },
    /// The node is a leaf node.
    Leaf(Leaf),
    /// A fact that a rule needs could not be read.
    Unread(Missing),
    /// The node has been NotReady for this time, which is less than the threshold; `None` if the node
    /// does not say since when.
    NodeJustFailed {
        time: Option<SignedDuration>,
        threshold: SignedDuration,
    },
    /// The machine is alive at `now`. The kubelet's reports are there only if they are current.
    Alive {
        ready: Ready,
        signs: Vec<Heard>,
        now: Timestamp,
        kubelet_says: Option<KubeletSays>,
        containers: Option<Containers>,
    },
    /// The node ran a member of etcd that may be needed.
    EtcdMember(Quorum),
    /// These finalizers hold the pod.
    Finalizers(Vec<String>),
    /// PVCs that may be wanted would go with the pod.
    ClaimsGo(Vec<Tie>),
    /// PVCs are on the node; the pod may also write to these paths of the node.
    Pinned { ties: Vec<Tie>, paths: Vec<String> },
    /// The pod may write to these paths of the node.
    HostPath(Vec<String>),
    /// No other node is known to reach the volumes of these PVCs.
    Confined(Vec<Tie>),
    /// These PVCs were given up, and the pod waits until that time.
    GivenUp { ties: Vec<Tie>, until: Timestamp },
    /// It is unverified whether these PVCs tie the pod to the node.
    Unverified(Vec<Tie>),
    /// The pod has more PVCs than are looked up.
    TooManyClaims(Unread),
    /// Two machines could write to this disk.
    SharedDisk(SharedDisk),
    /// The kind of this owner is one of `--manual-owner-kind`.
    OwnerKind(Owner),
    /// No rule keeps the pod. What let it pass because nothing wants it or its PVCs again must still
    /// be so when it is deleted.
    Stuck {
        unneeded: BTreeSet<Unneeded>,
        notes: Vec<Note>,
    },
}

/// What a rule that does not apply saw, for `explain`.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// The pod mirrors no static pod.
    NoMirror,
    /// Nothing opts the pod out.
    NoOptOut,
    /// The pod has no node.
    Nowhere,
    /// The node exists.
    NodeExists(String),
    /// It is not known whether the node exists.
    NodeUnknown(String),
    /// The node is gone, but finalizers hold the pod.
    GoneAndHeld,
    /// The status of the node's `Ready` condition, with its reason.
    Ready {
        node: String,
        ready: Ready,
        reason: Option<String>,
    },
    /// It is not known whether the node is Ready.
    ReadyUnknown(String),
    /// The deletion was requested long enough ago.
    Requested {
        ago: SignedDuration,
        threshold: SignedDuration,
    },
    /// It is not known whether the node carries a mark of a leaf node.
    LeafUnknown(String),
    /// The node is no leaf node.
    NoLeaf(String),
    /// The node, the namespace and the lease were read.
    AllRead,
    /// The node has been NotReady for long enough.
    NotReadyFor {
        time: SignedDuration,
        threshold: SignedDuration,
    },
    /// The pod is overdue for long enough.
    Overdue {
        overdue: SignedDuration,
        threshold: SignedDuration,
        grace_cut: Option<GraceCut>,
    },
    /// The machine's last heartbeat, at `now` no sign of life.
    LastHeard {
        heard: Option<Heard>,
        now: Timestamp,
    },
    /// The node is not known to have run etcd.
    NoEtcd,
    /// Enough members of etcd are Ready.
    EtcdMajority(Quorum),
    /// The node ran etcd, and is known to be off by this mark.
    EtcdFenced(String),
    /// No finalizer holds the pod, except that of the Job controller.
    Unheld { by_job: bool },
    /// None of these PVCs gives the rule its cause.
    Claims { none: NoTie, claims: Vec<String> },
    /// The pod has more PVCs than are looked up.
    ClaimsUnread(Unread),
    /// These PVCs were given up long enough ago.
    GivenUp(Vec<Tie>),
    /// No disk has several machines that could write to it.
    NoSharedDisk,
    /// The node is known to be off by this mark.
    Fenced(String),
    /// No kind of these owners, each above the one before, is one of `named`.
    OtherOwners {
        owners: Vec<String>,
        named: Vec<String>,
    },
    /// The rule with this number decides.
    DecidedBy(usize),
}

/// What no PVC of a pod does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTie {
    /// No PVC that may be wanted goes with the pod.
    Goes,
    /// No PVC is on the node.
    Pinned,
    /// No PVC is out of reach of all other nodes.
    Confined,
    /// No PVC was given up.
    GivenUp,
    /// Every PVC was read.
    Unverified,
}

/// A fact that a rule needs and that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The node; `None` if it was not looked up.
    Node(Option<Unread>),
    Namespace(Unread),
    /// The node's own lease.
    Lease(Unread),
    /// The other Leases; `None` if gathering did not come to them.
    OtherLeases(Option<Unread>),
    /// The storage: gathering did not come to it.
    Storage,
    /// Whether anything attaches the pod's disk.
    Attachment(Unread),
    /// A fact of a later step of gathering.
    LaterStep,
}

/// Something to remember once the pod is reaped. Its `Display` is a phrase.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// What becomes of a PVC.
    Claim(Tie),
    /// What the pod wrote to these paths stays on its node.
    PathsStay { paths: Vec<String>, node: String },
    /// The pod has no controller.
    NoController,
    /// The pod's node ran etcd, of which no member may fail any more.
    NoSpare(Quorum),
    /// The grace period is cut short.
    GraceCut(GraceCut),
}

/// A grace period that ends early because the node is silent. Its `Display` is a phrase to follow
/// "its".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraceCut {
    /// The whole grace period.
    pub grace: SignedDuration,
    /// For how long after the request the machine was heard; zero if it was silent before.
    pub heard_for: SignedDuration,
}

/// A disk to which two machines could write at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedDisk {
    /// The PVC is `ReadWriteMany` and a raw block device.
    RawBlock { pvc: String },
    /// The volume is a disk of this kind on a storage network.
    Network {
        pvc: String,
        volume: String,
        kind: &'static str,
    },
    /// The CSI driver of the volume's disk attaches nothing.
    Unattached {
        pvc: String,
        volume: String,
        driver: String,
    },
    /// A volume in the pod itself, as a phrase.
    OfPod(String),
    /// A disk of a virtual machine.
    VirtualMachine(String),
}

/// What one PVC means for a delete of its pod. A PVC has up to two ties: one because it is deleted with
/// the pod, and one by where its data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    /// The PVC's name.
    pub pvc: String,
    /// The name of the volume that the PVC names, if it does.
    pub volume: Option<String>,
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
    Unverified(Doubt),
    /// The PVC would go with the pod, and may be wanted again.
    Goes(Wanted),
    /// Somebody gave the PVC up by deleting it after the node failed. The pod may be deleted `from`
    /// that time on.
    GivenUp { from: Timestamp, retained: bool },
    /// The PVC belongs to the pod's own generic ephemeral volume.
    Ephemeral { retained: bool },
    /// The PVC goes with the pod, and nothing wants it again.
    Unwanted { why: Unneeded, retained: bool },
    /// The PVC goes with the pod, but its volume stays, by its reclaim policy `Retain`.
    Retained,
    /// No other node reaches the volume, but nothing wants the pod again. `goes` says whether the PVC
    /// is deleted with the pod, or being deleted.
    Unneeded { why: Unneeded, goes: bool },
    /// Another node reaches the volume, but not every node.
    Elsewhere(Vec<AffinityTerm>),
}

/// Where the data of a volume is that no other node is known to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The kind of storage.
    pub storage: Place,
    /// `spec.nodeAffinity.required`.
    pub affinity: Vec<AffinityTerm>,
}

/// Why it is unverified whether a PVC ties its pod to the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The PVC or its volume could not be read.
    Unread(Unread),
    /// The PVC names no volume. Holds its phase.
    NoVolume(Option<String>),
    /// The volume does not exist.
    VolumeGone,
    /// It is unknown which nodes reach the volume.
    Nodes(Unread),
}

/// Why a PVC that goes with its pod may be wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The PVC was deleted before the node failed, or finalizers hold it.
    Deleted(ClaimDeletion),
    /// The pod owns the PVC, and no `StatefulSet` controls the pod.
    OwnedWithoutSet,
    /// The pod owns the PVC, and its `StatefulSet` wants the pod again.
    OwnedAndWanted,
    /// The pod owns the PVC, and its `StatefulSet` was not read. Holds the cause, if a read failed.
    OwnedAndSetUnread(Option<Unread>),
}

impl Tie {
    /// Returns the name of the volume; empty if there is none.
    pub fn volume(&self) -> &str {
        self.volume.as_deref().unwrap_or_default()
    }

    /// Reports whether the volume is known to be on the pod's node.
    pub fn is_pinned(&self) -> bool {
        matches!(self.kind, TieKind::Pinned(_))
    }

    /// Reports whether no other node reaches the volume, although it may be elsewhere.
    pub fn is_confined(&self) -> bool {
        matches!(self.kind, TieKind::Confined(_))
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
        self.is_pinned() || self.is_confined() || self.is_unverified() || self.goes()
    }

    /// Returns the time from which the pod may be deleted with a PVC that was given up.
    pub fn given_up_from(&self) -> Option<Timestamp> {
        match self.kind {
            TieKind::GivenUp { from, .. } => Some(from),
            _ => None,
        }
    }

    /// Returns why nothing wants the pod or the PVC again, if the pod passes a rule by that.
    pub fn unneeded(&self) -> Option<Unneeded> {
        match self.kind {
            TieKind::Unwanted { why, .. } | TieKind::Unneeded { why, .. } => Some(why),
            _ => None,
        }
    }

    /// Reports whether the tie is worth a note once the pod is reaped.
    pub(super) fn is_noted(&self) -> bool {
        !self.keeps() && !matches!(self.kind, TieKind::Unneeded { goes: true, .. })
    }
}

impl Reason {
    /// Returns a reason without ties.
    pub(super) fn new(cause: Cause) -> Self {
        Self {
            cause,
            asks: Vec::new(),
            ties: Vec::new(),
            grace_cut: None,
        }
    }

    /// Returns the code of the reason.
    pub fn code(&self) -> ReasonCode {
        self.cause.code()
    }

    /// Returns the verdict that follows from the reason.
    pub fn verdict(&self) -> Verdict {
        self.code().verdict()
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
        match self.cause {
            Cause::Finalizers(_)
            | Cause::ClaimsGo(_)
            | Cause::Pinned { .. }
            | Cause::HostPath(_)
            | Cause::Confined(_)
            | Cause::GivenUp { .. }
            | Cause::Unverified(_)
            | Cause::SharedDisk(_)
            | Cause::OwnerKind(_)
            | Cause::TooManyClaims(_)
            | Cause::Stuck { .. } => true,
            Cause::Mirror
            | Cause::OptedOut { .. }
            | Cause::NodeGone(_)
            | Cause::NodeReady
            | Cause::RequestedLately { .. }
            | Cause::NotOverdue { .. }
            | Cause::Leaf(_)
            | Cause::Unread(_)
            | Cause::NodeJustFailed { .. }
            | Cause::Alive { .. }
            | Cause::EtcdMember(_) => false,
        }
    }

    /// Lists the notes to remember once the pod is reaped; none if the pod is not to be reaped.
    pub fn notes(&self) -> impl Iterator<Item = Note> {
        let notes = match &self.cause {
            Cause::Stuck { notes, .. } => &notes[..],
            _ => &[],
        };
        let reaps = self.verdict() == Verdict::Reap;
        let grace_cut = self.grace_cut.filter(|_| reaps).map(Note::GraceCut);
        notes.iter().cloned().chain(grace_cut)
    }
}

impl Cause {
    /// Returns the code of the reason that the cause gives.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::Mirror => ReasonCode::MirrorPod,
            Self::OptedOut { .. } => ReasonCode::OptedOut,
            Self::NodeGone(_) => ReasonCode::NodeGone,
            Self::NodeReady => ReasonCode::NodeReady,
            Self::RequestedLately { .. } | Self::NotOverdue { .. } | Self::GivenUp { .. } => {
                ReasonCode::NotOverdue
            }
            Self::Leaf(leaf) => match leaf.kind {
                LeafKind::Kosmos => ReasonCode::KosmosLeaf,
                LeafKind::Virtual | LeafKind::NeverReported => ReasonCode::VirtualNode,
                LeafKind::Edge => ReasonCode::EdgeNode,
                LeafKind::Selected => ReasonCode::LeafNode,
            },
            Self::Unread(_) => ReasonCode::FactsUnread,
            Self::NodeJustFailed { .. } => ReasonCode::NodeJustFailed,
            Self::Alive { .. } => ReasonCode::KubeletAlive,
            Self::EtcdMember(_) => ReasonCode::EtcdMember,
            Self::Finalizers(_) => ReasonCode::Finalizers,
            Self::ClaimsGo(_) | Self::Unverified(_) | Self::TooManyClaims(_) => {
                ReasonCode::VolumeUnverified
            }
            Self::Pinned { .. } | Self::Confined(_) => ReasonCode::LocalVolume,
            Self::HostPath(_) => ReasonCode::HostPath,
            Self::SharedDisk(_) => ReasonCode::SharedDisk,
            Self::OwnerKind(_) => ReasonCode::OwnerKind,
            Self::Stuck { .. } => ReasonCode::Stuck,
        }
    }

    /// Lists the codes of everything that the rule saw, the decisive one first.
    pub(super) fn codes(&self) -> impl Iterator<Item = ReasonCode> {
        let has_paths = matches!(self, Self::Pinned { paths, .. } if !paths.is_empty());
        let more = has_paths.then_some(ReasonCode::HostPath);
        [self.code()].into_iter().chain(more)
    }
}
