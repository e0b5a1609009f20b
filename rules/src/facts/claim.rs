//! A claim, its volume, and what becomes of both with the pod.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Read, ResourceVersion, Uid, Unread};

/// A claim that a pod uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// The claim's name, in the pod's namespace.
    pub name: String,
    /// True if a generic ephemeral volume of the pod asks for the claim, which is then to be this
    /// pod's alone.
    pub ephemeral: bool,
    /// Other pods that use the claim: those of its node and, once a claim of the pod is declared
    /// scratch, carries an answer or is being deleted, all of the namespace.
    pub users: BTreeSet<String>,
    /// Who creates the claim again, for that pod alone; the error is the objection. `None` if what
    /// tells that was not read.
    pub renewed: Option<Result<Renewer, Doubt>>,
    /// The claim's deletion was requested. It only waits for the pods that use it.
    pub deleted: bool,
    /// The pod owns the claim, so that it goes with the pod.
    pub owned: bool,
    /// Another pod that keeps the claim, if its deletion was requested; `None` if that was not read.
    pub kept_by: Option<Read<Option<String>>>,
    /// The claim as it was read; `None` if it was not.
    pub state: Option<ClaimState>,
}

/// The most claims of one pod that are kept and looked up.
pub const MAX_CLAIMS_PER_POD: usize = 64;
/// The name that stands for any claim of a namespace. No claim can have it.
pub const ANY_CLAIM: &str = "*";

impl ClaimFacts {
    /// Returns what stands for the claims of a pod that are too many to look up, for this cause.
    pub fn any(cause: String) -> Self {
        Self {
            state: Some(ClaimState::Unread(Unread(cause))),
            ..Self::named(ANY_CLAIM.to_owned(), false)
        }
    }

    /// Returns what a pod says of a claim, which was not read yet. `ephemeral` says that a generic
    /// ephemeral volume of the pod asks for it.
    pub fn named(name: String, ephemeral: bool) -> Self {
        Self {
            name,
            ephemeral,
            users: BTreeSet::new(),
            renewed: None,
            deleted: false,
            owned: false,
            kept_by: None,
            state: None,
        }
    }

    /// Returns how the pod refers to the claim: by its name, and whether a generic ephemeral volume
    /// of the pod asks for it.
    pub fn reference(&self) -> (&str, bool) {
        (&self.name, self.ephemeral)
    }

    /// Returns the other pod that keeps the claim, if one is known.
    pub fn keeper(&self) -> Option<&String> {
        self.kept_by.as_ref()?.as_ref().ok()?.as_ref()
    }

    /// Returns the facts about the claim and its volume, if it is bound.
    pub fn bound(&self) -> Option<&BoundClaim> {
        match &self.state {
            Some(ClaimState::Bound(bound)) => Some(bound),
            _ => None,
        }
    }
}

/// An objection to giving a claim up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The objection, as a phrase.
    pub why: String,
    /// True if the objection is proved; false if a failed read leaves it open.
    pub proved: bool,
}

impl Doubt {
    /// Returns an objection that is proved.
    pub fn proved(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            proved: true,
        }
    }

    /// Returns an objection that a failed read leaves open.
    pub fn unread(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            proved: false,
        }
    }
}

/// What creates a claim again once it was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewer {
    /// A template of the pod's `StatefulSet`.
    Template,
    /// A controller of an API group that is none of Kubernetes' own. Whether it does is its affair.
    Operator,
}

/// Whether a claim goes with its pod, because the pod owns it by UID, or because its deletion was
/// requested and only waits for the pod. A claim is deleted with its last owner, and with the last
/// pod that uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goes {
    /// The claim stays.
    No,
    /// The claim is that of the pod's own generic ephemeral volume. It binds nothing.
    Ephemeral,
    /// The claim goes, or waits for other pods, and nothing wants it from this pod. Holds why.
    Unwanted(Unneeded),
    /// The claim goes, but something may want it again. Holds the cause, as a phrase.
    MayBeWanted(String),
}

/// Why nothing needs a pod or its claim again. Each is a fact that may change until the pod is
/// deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unneeded {
    /// The pod's namespace is being deleted.
    Namespace,
    /// No `StatefulSet` of the controller's name wants the pod's ordinal.
    Set,
    /// Another pod keeps the claim.
    KeptBy {
        /// The claim.
        claim: String,
        /// The pod.
        pod: String,
    },
}

/// The result of looking up a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRead {
    /// The UIDs of the claim's owners.
    pub owners: Vec<Uid>,
    /// The claim's deletion was requested.
    pub deleted: bool,
    /// The claim's state.
    pub state: ClaimState,
}

impl From<ClaimState> for ClaimRead {
    /// Returns a claim without owners, as if it was not found.
    fn from(state: ClaimState) -> Self {
        Self {
            owners: Vec::new(),
            deleted: false,
            state,
        }
    }
}

/// The state of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The claim, or its volume, could not be read.
    Unread(Unread),
    /// The claim does not exist, so it pins nothing.
    Absent,
    /// The claim exists, but names no volume that exists: it is lost, or not bound.
    WithoutVolume {
        /// The missing volume, if the claim names one.
        missing: Option<String>,
        /// The claim's phase.
        phase: Option<String>,
    },
    /// The claim is bound to a volume that exists.
    Bound(BoundClaim),
}

/// A claim that is bound to a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundClaim {
    /// `metadata.uid`.
    pub uid: Uid,
    /// Several nodes may write the claim's raw disk at once: it is `ReadWriteMany` with volumeMode
    /// `Block`.
    pub shared_disk: bool,
    /// Annotation `pod-reaper.io/scratch: "true"`.
    pub scratch: bool,
    /// A person's answer: annotation `pod-reaper.io/give-up`.
    pub give_up: Option<String>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `status.capacity.storage`.
    pub capacity: Option<String>,
    /// The claim's resource version; `None` if the claim is opted out, or a finalizer of its own
    /// would hold it.
    pub version: Option<ResourceVersion>,
    /// The claim's volume.
    pub volume: VolumeFacts,
}

/// A `PersistentVolume`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeFacts {
    /// `metadata.name`.
    pub name: String,
    /// `spec.persistentVolumeReclaimPolicy`.
    pub reclaim_policy: Option<String>,
    /// Where the data is.
    pub storage: Storage,
    /// The kind of disk, if it is one on a storage network that two machines may write at once
    /// (in-tree `fc`, `iscsi` or `flexVolume`, not read-only).
    pub disk: Option<&'static str>,
    /// The CSI driver, if the volume is a writable disk for one machine: only attaching keeps a
    /// second one out.
    pub driver: Option<Driver>,
    /// `spec.nodeAffinity.required`: a node must satisfy one of these terms.
    pub affinity: Vec<AffinityTerm>,
}

/// The CSI driver of a disk for one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The driver's name.
    pub name: String,
    /// Whether the volume is attached to the pod's node, or the driver attaches volumes at all; `None`
    /// if that was not read.
    pub attaches: Option<Read<bool>>,
}

/// Where a volume's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// `spec.local`, with its path.
    Local(String),
    /// `spec.hostPath`, with its path.
    HostPath(String),
    /// Longhorn's `dataLocality: strict-local`: the data is on the node that uses it, without any
    /// affinity.
    StrictLocal,
    /// A driver's storage. The volume's affinity says which nodes can reach it.
    Driver,
}

/// A set of requirements that must all hold on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AffinityTerm {
    /// The requirements on labels. A term without any matches no node.
    pub requirements: Vec<Requirement>,
    /// The term also requires a field of the node.
    pub fields: bool,
    /// Real nodes that satisfy the term, apart from zones and regions: all of them, or two if there
    /// are more. `None` if they were not read.
    pub satisfied_by: Option<Read<Vec<String>>>,
}

/// A requirement on one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, …
    pub operator: String,
    /// The values that the operator compares with.
    pub values: Vec<String>,
}

impl Requirement {
    /// Reports whether the requirement is about a zone or a region, which hold many nodes.
    pub fn of_zone(&self) -> bool {
        self.key.ends_with("zone") || self.key.ends_with("region")
    }
}
