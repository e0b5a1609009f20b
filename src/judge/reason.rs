//! A reason: why a pod gets its verdict. First the table of codes, each with its verdict and its meaning,
//! of which `docs/decisions.md` is generated; then what a rule saw, as data, each variant below its
//! sentence. `sentence.rs` has the parts of sentences that need more than a line.

use std::sync::Arc;

use derive_more::Display;
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    sentence::{
        KEEPS_NOBODY_OUT, containers_run, deleted, kubelet_reports, last_heartbeat, none_of,
        not_ready_for, of_leaf, opted_out_until, owned_by, released, signs_of_life, stuck_later,
        unread_facts, without_node,
    },
    tie::Tie,
};
use crate::{
    codes::codes,
    facts::{
        ClaimFacts, Containers, Heartbeat, KubeletSays, Leaf, LeafKind, OptOut, Owner, Quorum,
        Read, Ready, Skip, Unneeded, Unread,
    },
    words::{Foreign, human_duration, joined},
};

codes! {
    /// The action that the program takes on a Terminating pod.
    pub enum Verdict {
        /// The user has to decide.
        Manual = "manual" => "You decide: the report says what is at risk, and what to do.",
        /// The program force-deletes the pod.
        Reap = "reap" => "It is force-deleted, so that its owner can start a replacement.",
        /// The next run judges the pod again.
        Wait = "wait" => "Not now: the next run judges it again.",
        /// Another controller takes care of the pod, or somebody excluded it.
        Leave = "leave" => "The program does nothing: another controller handles the pod, or somebody excluded it.",
    }
}

macro_rules! reasons {
    ($($variant:ident = $code:literal => $verdict:ident, $means:literal;)*) => {
        codes! {
            /// The kind of a reason: first the reasons of the rules, then those of a run's limits.
            pub enum ReasonCode {
                $($variant = $code => $means,)*
            }
        }

        impl ReasonCode {
            /// Returns the verdict that follows from the reason.
            pub fn verdict(self) -> Verdict {
                match self {
                    $(Self::$variant => Verdict::$verdict,)*
                }
            }
        }
    };
}

reasons! {
    MirrorPod = "mirror-pod" => Leave,
        "A kubelet makes it from a file on its node (a static pod), and would make it again.";
    OptedOut = "opted-out" => Leave,
        "The pod, its namespace or its node has pod-reaper.io/skip, as an [annotation](decisions.md#annotations) or a label.";
    NodeGone = "node-gone" => Leave,
        "Kubernetes' pod garbage collector deletes it, usually within a minute.";
    NodeReady = "node-ready" => Leave,
        "A kubelet lives on its node, and only it knows whether the containers have stopped.";
    NotOverdue = "not-overdue" => Wait,
        "It is not [stuck](decisions.md#overdue-and-stuck) yet: a kubelet that comes back in time terminates the pod cleanly. Or its PVC was [given up](data.md#give-a-pvc-up) a short time ago: the report says until when you can still keep the data.";
    KosmosLeaf = "kosmos-leaf" => Manual,
        "Its node stands for another cluster, joined by Kosmos. Usually the link is cut, and the pod is still running there.";
    VirtualNode = "virtual-node" => Manual,
        "Its node is a program that runs or simulates pods elsewhere, or no kubelet ever reported on it. The pod can well be running.";
    EdgeNode = "edge-node" => Manual,
        "Its node is a machine that keeps working without a link to this cluster. The pod can well be running.";
    LeafNode = "leaf-node" => Manual,
        "--leaf-node-selector selects its node: the pod can be running where this cluster does not see it.";
    FactsUnread = "facts-unread" => Wait,
        "The report names the fact that could not be read. Or [the API server's clock](decisions.md#limits) cannot be trusted.";
    NodeJustFailed = "node-just-failed" => Wait,
        "The kubelet can be restarting. The node is NotReady since the last transition of Ready or its NoSchedule taint, whichever is later. A time in the future is ignored. Without a time, the pod waits.";
    KubeletAlive = "kubelet-alive" => Manual,
        "Its node shows a [sign of life](decisions.md#signs-of-life): its containers are most likely running.";
    EtcdMember = "etcd-member" => Manual,
        "The API server writes, so [one of the NotReady machines can be alive and needed](decisions.md#the-majority).";
    Finalizers = "finalizers" => Manual,
        "A finalizer blocks it: a controller has work to do before the pod can be deleted.";
    LocalVolume = "local-volume" => Manual,
        "One of its PVCs is bound to a volume that [no other node is known to reach](data.md#which-volumes-tie-a-pod): a replacement would wait for the dead node forever. The pod passes if [nothing wants it again](data.md#if-nothing-wants-the-pod-again), and so does a PVC that was [given up](data.md#give-a-pvc-up).";
    HostPath = "host-path" => Manual,
        "It can write to [a directory of the dead node](data.md#a-directory-of-the-node), and a replacement would start elsewhere, with an empty one.";
    VolumeUnverified = "volume-unverified" => Manual,
        "One of two things, in the order of the rules:\n\
         \n\
         - A delete of the pod would also remove a PVC that can be wanted. The pod owns that PVC, or somebody deleted it before the node failed, or a finalizer other than kubernetes.io/pvc-protection holds it. If the volume's reclaim policy is Retain, the volume stays, and its PVC does not keep the pod.\n\
         - A PVC or its volume is missing or could not be read, or it is not known which nodes reach the volume: the data can be on the dead node.";
    SharedDisk = "shared-disk" => Manual,
        "Two machines could write to its disk at the same time, and nothing shows that the node is [fenced](decisions.md#fenced). Such a disk is\n\
         \n\
         - a ReadWriteMany raw block volume;\n\
         - a writable in-tree Fibre Channel, iSCSI or flexVolume disk;\n\
         - a CSI volume without an attach step whose file system or attributes show that it is a single-machine disk;\n\
         - or the disk of a KubeVirt virtual machine.";
    OwnerKind = "owner-kind" => Manual,
        "You chose to decide yourself.";
    Stuck = "stuck-on-not-ready-node" => Reap,
        "No other rule keeps it.";
    MassOutage = "mass-outage" => Wait,
        "[The breaker](decisions.md#limits) holds the pod: too many nodes are NotReady, of all or of its zone.";
    FailedTogether = "failed-together" => Wait,
        "Its node [failed together](decisions.md#limits) with others, and the machines can run.";
    NoRoom = "no-room" => Wait,
        "[No other node](decisions.md#limits) could start it.";
    OverCap = "over-cap" => Wait,
        "A run deletes at most --max-deletes pods, and others were overdue for longer.";
}

impl ReasonCode {
    /// Reports whether the machine of such a pod is alive, or can be a needed member of the datastore.
    pub fn is_of_live_machine(self) -> bool {
        [Self::KubeletAlive, Self::EtcdMember].contains(&self)
    }
}

/// The reason of a pod's verdict. Its `Display` is the sentence.
#[derive(Debug, Clone, PartialEq, Display)]
#[display("{cause}")]
pub struct Reason {
    /// What the rule that decides saw.
    pub cause: Cause,
    /// All reasons of the rules about storage for which the user has to decide. Empty if the user has
    /// nothing to decide, or if an earlier rule leaves the pod to the user.
    pub asks: Vec<ReasonCode>,
    /// The ties between the pod and its PVCs; empty if a rule before those about PVCs decided.
    pub ties: Vec<Tie>,
}

/// The facts for which a rule keeps a pod, or for which none does.
#[derive(Debug, Clone, PartialEq, Display)]
pub enum Cause {
    /// The pod mirrors a static pod.
    #[display(
        "It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that."
    )]
    Mirror,
    /// `pod-reaper.io/skip` has a value that opts the pod out.
    #[display("{by} is opted out by pod-reaper.io/skip.{}", opted_out_until(skip))]
    OptedOut { by: OptOut, skip: Skip },
    /// The node does not exist any more; `None` if the pod was never assigned to one.
    #[display("{}: removing the pod is up to the pod garbage collector.", without_node(_0.as_deref()))]
    NodeGone(Option<String>),
    /// The node is Ready.
    #[display(
        "Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet."
    )]
    NodeReady,
    /// The deletion was requested less than the threshold ago.
    #[display("Its deletion was requested {} ago, and it is stuck {} after that at the earliest.", human_duration(*ago), human_duration(*threshold))]
    RequestedLately {
        ago: SignedDuration,
        threshold: SignedDuration,
    },
    /// The pod is overdue by less than the threshold. The time is negative within the grace period.
    #[display("{}", stuck_later(*overdue, *threshold))]
    NotOverdue {
        overdue: SignedDuration,
        threshold: SignedDuration,
    },
    /// The node is a leaf node.
    #[display("{}", of_leaf(_0))]
    Leaf(Leaf),
    /// A fact that a rule needs could not be read.
    #[display("{}", unread_facts(&format!("{what}: {why}")))]
    Unread { what: &'static str, why: Unread },
    /// The node has been NotReady for this time, which is less than the threshold; `None` if the node
    /// does not say since when.
    #[display("{}", not_ready_for(*time, *threshold))]
    NodeJustFailed {
        time: Option<SignedDuration>,
        threshold: SignedDuration,
    },
    /// The machine is alive at `now`. The kubelet's reports are there only if they are current.
    #[display("The node's Ready is {ready}, but its machine is alive: {}.{}{}", signs_of_life(signs, *now), kubelet_reports(*kubelet_says), containers_run(*containers))]
    Alive {
        ready: Ready,
        signs: Vec<Heartbeat>,
        now: Timestamp,
        kubelet_says: Option<KubeletSays>,
        containers: Option<Containers>,
    },
    /// The node may carry the API server's datastore, and may be needed.
    #[display(
        "Its node may carry the API server's datastore. {_0}, and the API server writes: {}.",
        _0.says()
    )]
    EtcdMember(Arc<Quorum>),
    /// These finalizers hold the pod.
    #[display("It is held by {} {}: a controller still has work to do before the pod can be deleted.", if _0.len() == 1 { "finalizer" } else { "finalizers" }, _0.iter().format(", "))]
    Finalizers(Vec<Foreign>),
    /// PVCs that may be wanted would go with the pod.
    #[display("A PVC that can be wanted would go with it: {}.", _0.iter().join("; "))]
    ClaimsGo(Vec<Tie>),
    /// No other node is known to reach the volumes of these PVCs.
    #[display("No other node is known to reach its storage: {}.", _0.iter().join("; "))]
    Local(Vec<Tie>),
    /// The pod may write to these paths of the node.
    #[display("It can write to {} on the dead node, by a hostPath of its own: a replacement would start without what is there.", _0.iter().format(", "))]
    HostPath(Vec<Foreign>),
    /// These PVCs were given up, and the pod waits until that time.
    #[display(
        "{} From {until:.0} on, a run deletes the pod, and the data goes with it. Until then, you can keep the data by setting the volume to Retain.",
        deleted(ties)
    )]
    GivenUp { ties: Vec<Tie>, until: Timestamp },
    /// It is unverified whether these PVCs tie the pod to the node.
    #[display("It is unverified what a delete would do to its data: {}.", _0.iter().join("; "))]
    Unverified(Vec<Tie>),
    /// The pod has more PVCs than are looked up.
    #[display("It is unverified what a delete would do to its data: {_0}.")]
    TooManyClaims(Unread),
    /// Two machines could write to this disk.
    #[display(
        "Two machines could write to its disk at the same time ({_0}), and its node is not known to be off."
    )]
    SharedDisk(SharedDisk),
    /// The kind of this owner is one of `--manual-owner-kind`.
    #[display("It belongs to {_0}, and --manual-owner-kind names that kind.")]
    OwnerKind(Owner),
    /// The pod has more owners than are kept.
    #[display(
        "Whether --manual-owner-kind names the kind of one of its owners is not known: {_0}."
    )]
    TooManyOwners(Unread),
    /// No rule keeps the pod. If nothing wants it again, that must still be true when it is deleted.
    #[display("It is stuck Terminating on a NotReady node, and no rule keeps it.")]
    Stuck {
        unneeded: Option<Unneeded>,
        notes: Vec<Note>,
    },
}

/// The facts for which a rule lets a pod pass, for `explain`.
#[derive(Display)]
pub enum Seen<'a> {
    /// The pod mirrors no static pod.
    #[display("It does not carry the annotation kubernetes.io/config.mirror.")]
    NoMirror,
    /// Nothing opts the pod out.
    #[display("Nothing opts it out by pod-reaper.io/skip, as far as could be read.")]
    NoOptOut,
    /// The pod has no node.
    #[display("There is no node to ask about.")]
    Nowhere,
    /// The node could not be read, so that a later rule keeps the pod.
    #[display("That is not known: its node could not be read.")]
    NodeUnread,
    /// The node exists.
    #[display("Node {_0} exists.")]
    NodeExists(&'a str),
    /// The node is gone, but finalizers hold the pod.
    #[display("Its node is gone, but the garbage collector cannot remove what finalizers hold.")]
    GoneAndHeld,
    /// The status of the node's `Ready` condition, with its reason.
    #[display("Node {node}'s Ready is {ready}{}.", reason.iter().map(|reason| format!(" ({reason})")).join(""))]
    Ready {
        node: &'a str,
        ready: Ready,
        reason: Option<&'a str>,
    },
    /// The deletion was requested long enough ago.
    #[display("Its deletion was requested {} ago; --reap-older-than is {}.", human_duration(*ago), human_duration(*threshold))]
    Requested {
        ago: SignedDuration,
        threshold: SignedDuration,
    },
    /// The node is no leaf node.
    #[display(
        "Node {_0} carries no mark of a virtual or edge node, nor does --leaf-node-selector select it."
    )]
    NoLeaf(&'a str),
    /// The node, the namespace and the lease were read.
    #[display("The node, the namespace and, where needed, the lease were read.")]
    AllRead,
    /// The node has been NotReady for long enough.
    #[display("Its node has been NotReady for {}; --reap-older-than is {}.", human_duration(*time), human_duration(*threshold))]
    NotReadyFor {
        time: SignedDuration,
        threshold: SignedDuration,
    },
    /// The pod is overdue for long enough.
    #[display("It is {} overdue; --reap-older-than is {}.", human_duration(*overdue), human_duration(*threshold))]
    Overdue {
        overdue: SignedDuration,
        threshold: SignedDuration,
    },
    /// The machine's last heartbeat, at `now` no sign of life.
    #[display("{}", last_heartbeat(*heard, *now))]
    LastHeard {
        heard: Option<&'a Heartbeat>,
        now: Timestamp,
    },
    /// Nothing shows that the node carries the API server's datastore.
    #[display("Nothing shows that its node carries the API server's datastore.")]
    NoEtcd,
    /// Enough nodes that may carry the datastore are Ready.
    #[display("Its node may carry the API server's datastore; {_0}, which is a majority.")]
    EtcdMajority(&'a Quorum),
    /// The node may carry the datastore, and is known to be off by this mark.
    #[display("Its node may carry the API server's datastore, and is known to be off: {_0}.")]
    EtcdFenced(&'a str),
    /// Only these finalizers hold the pod, if any, and they are released when it is reaped.
    #[display("{}", released(_0))]
    Released(&'a [Foreign]),
    /// None of these PVCs keeps the pod by the rule. The error says that there are too many to look up.
    #[display("{}", none_of(*none, claims))]
    NoTie {
        none: NoTie,
        claims: &'a Read<Vec<ClaimFacts>>,
    },
    /// No path of the node keeps the pod.
    #[display("No directory of the node keeps it there.")]
    NoPath,
    /// These PVCs were given up long enough ago.
    #[display("{}", deleted(_0))]
    GivenUp(Vec<Tie>),
    /// No disk has several machines that could write to it.
    #[display("It has no disk that several machines could write to at once.")]
    NoSharedDisk,
    /// Nothing wants the pod again.
    #[display("Nothing wants it again, so that no second machine writes to its disk.")]
    NoSecondWriter,
    /// The node is known to be off by this mark.
    #[display("Its node is known to be off: {_0}.")]
    Fenced(&'a str),
    /// No kind of these owners is one of `named`.
    #[display("It belongs to {}; --manual-owner-kind names {}.", owned_by(owners), joined(*named, ", ").as_deref().unwrap_or("no kind"))]
    OtherOwners {
        owners: Vec<&'a Foreign>,
        named: &'a [String],
    },
}

/// What no PVC of a pod does. Its `Display` begins a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
pub enum NoTie {
    #[display("No PVC that can be wanted would go with it")]
    Goes,
    #[display("No PVC that could be read keeps it on the node")]
    Local,
    #[display("No PVC was given up")]
    GivenUp,
    #[display("Each PVC was read")]
    Unverified,
}

/// Something to remember once the pod is reaped. Its `Display` is a phrase.
#[derive(Debug, Clone, PartialEq, Display)]
pub enum Note {
    /// What becomes of a PVC.
    #[display("{_0}")]
    Claim(Tie),
    /// What the pod wrote to these paths stays on its node.
    #[display("what it wrote to {} stays on {node}", paths.iter().format(", "))]
    PathsStay { paths: Vec<Foreign>, node: String },
    /// The pod can start on its node alone.
    #[display("a leftover: its controller can start it again only on {_0}")]
    Bound(String),
}

/// A disk to which two machines could write at once.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub enum SharedDisk {
    /// The PVC is `ReadWriteMany` and a raw block device.
    #[display("PVC {pvc} is ReadWriteMany and a raw block device")]
    RawBlock { pvc: String },
    /// The volume is a disk of this kind on a storage network.
    #[display("volume {volume} of PVC {pvc} is {kind}; {}", KEEPS_NOBODY_OUT)]
    Network {
        pvc: String,
        volume: String,
        kind: &'static str,
    },
    /// The CSI driver of the volume's disk attaches nothing, or the attacher set no finalizer at its attachment.
    #[display(
        "nothing makes the storage of volume {volume} of PVC {pvc} let go of the node (driver {driver} needs no attachment, or set no finalizer at it), so {}",
        KEEPS_NOBODY_OUT
    )]
    NotDetached {
        pvc: String,
        volume: String,
        driver: String,
    },
    /// A volume in the pod itself, as a phrase.
    #[display("{_0}; {}", KEEPS_NOBODY_OUT)]
    OfPod(String),
    /// A disk of a virtual machine.
    #[display("it belongs to the virtual machine {_0}")]
    VirtualMachine(String),
}

impl Reason {
    /// Returns a reason without ties.
    pub(super) fn new(cause: Cause) -> Self {
        Self {
            cause,
            asks: Vec::new(),
            ties: Vec::new(),
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

    /// Lists the notes to remember once the pod is reaped; none if the pod is not to be reaped.
    pub fn notes(&self) -> &[Note] {
        match &self.cause {
            Cause::Stuck { notes, .. } => notes,
            _ => &[],
        }
    }
}

impl Cause {
    /// Returns the cause for which a rule keeps a pod that lacks a fact.
    pub(super) fn unread(what: &'static str, why: &Unread) -> Self {
        let why = why.clone();
        Self::Unread { what, why }
    }

    /// Returns the cause if gathering did not come to the storage.
    pub(super) fn storage_unread() -> Self {
        Self::unread("its storage", &Unread("it was not looked up".to_owned()))
    }

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
            Self::Unread { .. } => ReasonCode::FactsUnread,
            Self::NodeJustFailed { .. } => ReasonCode::NodeJustFailed,
            Self::Alive { .. } => ReasonCode::KubeletAlive,
            Self::EtcdMember(_) => ReasonCode::EtcdMember,
            Self::Finalizers(_) => ReasonCode::Finalizers,
            Self::ClaimsGo(_) | Self::Unverified(_) | Self::TooManyClaims(_) => {
                ReasonCode::VolumeUnverified
            }
            Self::Local(_) => ReasonCode::LocalVolume,
            Self::HostPath(_) => ReasonCode::HostPath,
            Self::SharedDisk(_) => ReasonCode::SharedDisk,
            Self::OwnerKind(_) | Self::TooManyOwners(_) => ReasonCode::OwnerKind,
            Self::Stuck { .. } => ReasonCode::Stuck,
        }
    }
}
