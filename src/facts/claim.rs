//! A PVC, its volume, and what happens to both when the pod is deleted.

use derive_more::Display;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Read, Uid, Unread};

/// A PVC as its pod names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimName {
    /// The PVC's name, in the pod's namespace.
    pub name: String,
    /// True if a generic ephemeral volume of the pod names the PVC. Such a PVC is meant for this
    /// pod alone.
    pub ephemeral: bool,
}

/// The pods of a `StatefulSet`, by its status. A Ready pod is no replica of another one's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[display("{ready}/{wanted}")]
pub struct Copies {
    /// `status.readyReplicas`.
    pub ready: u64,
    /// `spec.replicas`.
    pub wanted: u64,
}

/// The facts that the last step of gathering reads for a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// The PVCs that the pod uses.
    pub claims: Vec<ClaimFacts>,
    /// Whether a `StatefulSet` with the controller's name, whatever its UID, wants a pod of this
    /// name. `None` if no `StatefulSet` controls the pod, or if no verdict depends on it.
    pub set_wants: Option<Read<bool>>,
    /// The copies of the `StatefulSet` with the controller's name; `None` if it was not read.
    pub copies: Option<Copies>,
    /// The PVC templates of the pod's `StatefulSet`, if they were read. `StatefulSets` with equal
    /// templates are one workload if their names are numbered in one series.
    pub templates: Option<String>,
}

impl Storage {
    /// Returns the storage of a pod whose PVCs are too many to look up; `cause` says why.
    pub fn unread(cause: Unread) -> Self {
        let any = ClaimName {
            name: ANY_CLAIM.to_owned(),
            ephemeral: false,
        };
        let unread = ClaimState::Unread(cause).into();
        Self {
            claims: vec![ClaimFacts::new(any, unread, &Uid::default())],
            ..Self::default()
        }
    }
}

/// A PVC that a pod uses, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// The PVC's name, in the pod's namespace.
    pub name: String,
    /// True if a generic ephemeral volume of the pod names the PVC. Such a PVC is meant for this
    /// pod alone.
    pub ephemeral: bool,
    /// True if a template of the pod's `StatefulSet` makes the PVC again.
    pub templated: bool,
    /// The deletion of the PVC, if it was requested. Such a PVC only waits for the pods that use it.
    pub deletion: Option<ClaimDeletion>,
    /// True if the pod owns the PVC, so that the PVC is deleted with the pod.
    pub owned: bool,
    /// The PVC's state.
    pub state: ClaimState,
}

/// The maximum number of PVCs of one pod that are kept in memory and looked up.
pub const MAX_CLAIMS_PER_POD: usize = 64;
/// The name that stands for any PVC of a namespace. No PVC can have this name.
pub const ANY_CLAIM: &str = "*";

impl ClaimFacts {
    /// Returns the PVC that a pod with the UID `pod` calls `named`, as it was `read`.
    pub fn new(named: ClaimName, read: ClaimRead, pod: &Uid) -> Self {
        Self {
            name: named.name,
            ephemeral: named.ephemeral,
            templated: false,
            deletion: read.deletion,
            owned: read.owners.contains(pod),
            state: read.state,
        }
    }

    /// Returns the facts about the PVC and its volume, if the PVC is bound.
    pub fn bound(&self) -> Option<&BoundClaim> {
        match &self.state {
            ClaimState::Bound(bound) => Some(bound),
            _ => None,
        }
    }
}

/// The requested deletion of a PVC. Kubernetes completes it once no pod uses the PVC and no finalizer
/// is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDeletion {
    /// `metadata.deletionTimestamp`: when the deletion was requested.
    pub at: Timestamp,
    /// The finalizers except `kubernetes.io/pvc-protection`, which waits for the pods.
    pub finalizers: Vec<String>,
}

/// Whether a PVC is deleted with its pod. It is if the pod owns it by UID, or if its deletion was
/// requested and only waits for the pod. Kubernetes deletes a PVC with its last owner, and with the
/// last pod that uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletedWithPod {
    /// The PVC stays.
    No,
    /// The PVC belongs to the pod's own generic ephemeral volume. It ties the pod to nothing.
    Ephemeral,
    /// The PVC is deleted, and nothing wants it again. Holds why.
    Unwanted(Unneeded),
    /// The PVC is deleted, but its volume stays, by its reclaim policy `Retain`.
    Retained,
    /// Somebody gave the PVC up by deleting it after the node failed. Holds the time from which the
    /// pod may be deleted.
    GivenUp(Timestamp),
    /// The PVC is deleted, but something may want it again. Holds the cause, as a phrase.
    MayBeWanted(String),
}

/// Why nothing needs a pod or its PVCs again. Each cause is a fact that may change before the pod is
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unneeded {
    /// The pod's namespace is being deleted.
    Namespace,
    /// No `StatefulSet` with the controller's name wants the pod's ordinal.
    Set,
}

/// The result of looking up a PVC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRead {
    /// The UIDs of the PVC's owners.
    pub owners: Vec<Uid>,
    /// The deletion of the PVC, if it was requested.
    pub deletion: Option<ClaimDeletion>,
    /// The PVC's state.
    pub state: ClaimState,
}

impl From<ClaimState> for ClaimRead {
    /// Returns a PVC without owners whose deletion was not requested, as for a PVC that was not
    /// found.
    fn from(state: ClaimState) -> Self {
        Self {
            owners: Vec::new(),
            deletion: None,
            state,
        }
    }
}

/// The state of a PVC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The PVC, or its volume, could not be read.
    Unread(Unread),
    /// The PVC does not exist, so it pins nothing.
    Absent,
    /// The PVC exists, but names no volume that exists: it is lost, or not bound.
    WithoutVolume {
        /// The missing volume, if the PVC names one.
        missing: Option<String>,
        /// The PVC's `status.phase`.
        phase: Option<String>,
    },
    /// The PVC is bound to a volume that exists.
    Bound(BoundClaim),
}

/// A PVC that is bound to a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundClaim {
    /// `metadata.uid`.
    pub uid: Uid,
    /// True if several nodes may write to the PVC's raw disk at once: the PVC is `ReadWriteMany`
    /// with volumeMode `Block`.
    pub shared_disk: bool,
    /// The PVC's volume.
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
    pub storage: Place,
    /// The kind of disk, if two machines could write to it at once over a storage network (in-tree
    /// `fc`, `iscsi` or `flexVolume`, not read-only).
    pub disk: Option<&'static str>,
    /// The CSI driver, if the volume is a writable disk for one machine. Only attaching keeps a
    /// second machine from writing to such a disk.
    pub driver: Option<Driver>,
    /// `spec.nodeAffinity.required`: a node must satisfy one of these terms.
    pub affinity: Vec<AffinityTerm>,
}

/// The CSI driver of a disk for one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The driver's name.
    pub name: String,
    /// True if the volume is attached to the pod's node, or if the driver attaches volumes at all.
    pub attaches: Read<bool>,
}

/// Where a volume's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `spec.local`, with its path.
    Local(String),
    /// `spec.hostPath`, with its path.
    HostPath(String),
    /// Longhorn's `dataLocality: strict-local`: the data is on the node that uses the volume,
    /// although the volume has no affinity.
    StrictLocal,
    /// The storage of a driver. The volume's affinity says which nodes can reach it.
    Driver,
}

/// A set of requirements that must all hold on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffinityTerm {
    /// The requirements on labels. A term without requirements matches no node.
    pub requirements: Vec<Requirement>,
    /// True if the term also requires a field of the node.
    pub fields: bool,
    /// Real nodes that satisfy the term if its zones and regions are ignored: all of them, or two
    /// if there are more.
    pub satisfied_by: Read<Vec<String>>,
}

impl Default for AffinityTerm {
    fn default() -> Self {
        Self {
            requirements: Vec::new(),
            fields: false,
            satisfied_by: Err(Unread("they were not looked up".to_owned())),
        }
    }
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
    /// Reports whether the requirement is about a zone or a region. A zone or region has many
    /// nodes.
    pub fn of_zone(&self) -> bool {
        let ends = ["zone", "region", "/location", "/availability-domain"];
        ends.iter().any(|end| self.key.ends_with(end))
    }
}
