//! A reason: why a pod gets its verdict, as data. `sentence.rs` has the sentences.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::code::{ReasonCode, Verdict};
use crate::facts::{
    Containers, Heard, KubeletSays, Leaf, LeafKind, OptOut, Owner, Quorum, Ready, Unneeded, Unread,
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

/// The reason of a pod's verdict. Its `Display` is the sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// What the rule that decides saw.
    pub cause: Cause,
    /// All reasons of the rules about storage for which the user has to decide. Empty if the user has
    /// nothing to decide, or if an earlier rule leaves the pod to the user.
    pub asks: Vec<ReasonCode>,
    /// How the PVCs of the pod tie the pod to its node; empty if a rule before those about PVCs
    /// decided.
    pub ties: Ties,
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
    GivenUp {
        claims: Vec<GivenUp>,
        until: Timestamp,
    },
    /// It is unverified whether these PVCs tie the pod to the node.
    Unverified(Vec<Tie>),
    /// Two machines could write to this disk.
    SharedDisk(SharedDisk),
    /// The kind of this owner is one of `--manual-owner-kind`.
    OwnerKind(Owner),
    /// No rule keeps the pod.
    Stuck(Vec<Note>),
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
    /// These PVCs were given up long enough ago.
    GivenUp(Vec<GivenUp>),
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
    Claim(String),
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

/// A PVC that somebody gave up, and its volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    pub pvc: String,
    pub volume: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

impl Reason {
    /// Returns a reason without ties.
    pub(super) fn new(cause: Cause) -> Self {
        Self {
            cause,
            asks: Vec::new(),
            ties: Ties::default(),
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
            | Cause::Stuck(_) => true,
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
            Cause::Stuck(notes) => &notes[..],
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
            Self::ClaimsGo(_) | Self::Unverified(_) => ReasonCode::VolumeUnverified,
            Self::Pinned { .. } | Self::Confined(_) => ReasonCode::LocalVolume,
            Self::HostPath(_) => ReasonCode::HostPath,
            Self::SharedDisk(_) => ReasonCode::SharedDisk,
            Self::OwnerKind(_) => ReasonCode::OwnerKind,
            Self::Stuck(_) => ReasonCode::Stuck,
        }
    }

    /// Lists the codes of everything that the rule saw, the decisive one first.
    pub(super) fn codes(&self) -> impl Iterator<Item = ReasonCode> {
        let has_paths = matches!(self, Self::Pinned { paths, .. } if !paths.is_empty());
        let more = has_paths.then_some(ReasonCode::HostPath);
        [self.code()].into_iter().chain(more)
    }
}
