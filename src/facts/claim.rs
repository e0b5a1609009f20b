//! A PVC, its volume, and what happens to both when the pod is deleted.

use std::{collections::BTreeMap, sync::Arc};

use derive_more::Display;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Owner, Read, Uid, Unread};
use crate::words::Foreign;

/// A PVC as its pod names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimName {
    /// The PVC's name, in the pod's namespace.
    pub name: String,
    /// True if a generic ephemeral volume of the pod names the PVC. Such a PVC is meant for this
    /// pod alone.
    pub ephemeral: bool,
    /// True if the pod mounts the PVC read-only, wherever it names the PVC. Only volumes without a CSI driver obey.
    pub read_only: bool,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The PVCs that the pod uses. The error says that there are too many to look up.
    pub claims: Read<Vec<ClaimFacts>>,
    /// The `StatefulSet` with the controller's name, whatever its UID. `None` if no `StatefulSet`
    /// controls the pod, or if no verdict depends on it.
    pub set: Option<Read<SetFacts>>,
}

/// What a `StatefulSet` means for one of its pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetFacts {
    /// True if it wants a pod of this name. A set that does not exist wants none.
    pub wants: bool,
    /// The object that controls the set, such as a `ScyllaCluster`: its operator decides about the set's PVCs.
    pub controller: Option<Owner>,
}

impl Storage {
    /// Lists the PVCs that were looked up.
    pub fn claims(&self) -> &[ClaimFacts] {
        self.claims.as_ref().map_or(&[], Vec::as_slice)
    }

    pub fn claim(&self, name: &str) -> Option<&ClaimFacts> {
        self.claims().iter().find(|claim| claim.named.name == name)
    }

    /// Lists the volumes to which the PVCs are bound.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeFacts> {
        self.claims().iter().filter_map(|claim| claim.read.volume())
    }
}

/// A PVC that a pod uses, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// How the pod names and uses it.
    pub named: ClaimName,
    /// True if a template of the pod's `StatefulSet` makes the PVC again.
    pub templated: bool,
    /// True if the pod owns the PVC, so that the PVC is deleted with the pod.
    pub owned: bool,
    /// The real nodes that the terms of the volume's affinity allow if zones and regions are ignored.
    pub allowed: BTreeMap<AffinityTerm, Read<Vec<String>>>,
    /// True if the volume is attached to the pod's node, or if its driver attaches volumes at all;
    /// `None` if the volume has no driver of a disk.
    pub attaches: Option<Read<bool>>,
    /// True if the volume is a disk by its attributes and attached, but no finalizer of the attacher makes its storage
    /// let go of the node.
    pub not_let_go: bool,
    /// The PVC itself.
    pub read: Arc<ClaimRead>,
}

/// The maximum number of PVCs of one pod that are kept in memory and looked up.
pub const MAX_CLAIMS_PER_POD: usize = 64;

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
    /// `metadata.uid`; empty if the PVC was not found.
    pub uid: Uid,
    /// The finalizers except `kubernetes.io/pvc-protection`. They hold the PVC if it is deleted.
    pub finalizers: Vec<Foreign>,
    /// The PVC's first owner.
    pub owner: Option<Owner>,
    /// The UIDs of the PVC's owners.
    pub owners: Vec<Uid>,
    /// `metadata.deletionTimestamp`: when the deletion was requested. Such a PVC only waits for the pods that use it,
    /// and for its finalizers.
    pub deletion: Option<Timestamp>,
    pub state: ClaimState,
}

impl ClaimRead {
    pub fn volume(&self) -> Option<&VolumeFacts> {
        match &self.state {
            ClaimState::Bound(volume) => Some(volume),
            _ => None,
        }
    }
}

impl From<ClaimState> for ClaimRead {
    /// Returns a PVC without owners whose deletion was not requested, as for a PVC that was not
    /// found.
    fn from(state: ClaimState) -> Self {
        Self {
            uid: Uid::default(),
            finalizers: Vec::new(),
            owner: None,
            owners: Vec::new(),
            deletion: None,
            state,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The PVC, or its volume, could not be read.
    Unread(Unread),
    /// The PVC does not exist, so it pins nothing.
    Absent,
    /// The PVC exists, but names no volume that exists: it is lost, or not bound. Says what is missing.
    Lost(Unread),
    /// The PVC is bound to a volume that exists.
    Bound(VolumeFacts),
}

/// A `PersistentVolume`, as its PVC uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeFacts {
    /// `metadata.name`.
    pub name: String,
    /// `spec.persistentVolumeReclaimPolicy`.
    pub reclaim_policy: Option<String>,
    /// Where the data is.
    pub storage: Place,
    /// The kind of disk, if two machines could write to it at once over a storage network (in-tree
    /// `fc`, `iscsi` or `flexVolume`). `readOnly` there changes nothing: the kubelet mounts as the pod says.
    pub disk: Option<&'static str>,
    /// The name of the CSI driver, if the volume is a writable disk for one machine. Only attaching
    /// keeps a second machine from writing to such a disk.
    pub driver: Option<String>,
    /// True if several nodes may write to its raw disk at once: it or its PVC is `ReadWriteMany` with volumeMode `Block`.
    pub shared_disk: bool,
    /// Who may use it at once, by the access modes of its PVC.
    pub sharing: Sharing,
    /// True if the volume's attributes name a disk that is not `ReadWriteMany` by its PVC.
    pub is_named_disk: bool,
    /// `spec.nodeAffinity.required`: a node must satisfy one of these terms.
    pub affinity: Vec<AffinityTerm>,
}

/// Who may use a volume at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    OnePod,
    OneNode,
    ManyNodes,
}

/// Where a volume's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `spec.local`, with its path.
    Local(Foreign),
    /// `spec.hostPath`, with its path.
    HostPath(Foreign),
    /// Longhorn's `dataLocality: strict-local`: the data is on the node that uses the volume,
    /// although the volume has no affinity.
    StrictLocal,
    /// The storage of a driver. The volume's affinity says which nodes can reach it.
    Driver,
}

/// A set of requirements that must all hold on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AffinityTerm {
    /// The requirements on labels. A term without requirements matches no node.
    pub requirements: Vec<Requirement>,
    /// True if the term also requires a field of the node.
    pub fields: bool,
}

impl AffinityTerm {
    /// Reports whether it requires nothing but a zone or a region.
    pub fn of_zone(&self) -> bool {
        !self.fields && self.requirements.iter().all(Requirement::of_zone)
    }
}

/// A requirement on one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
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
        ["zone", "region", "/location", "/availability-domain"]
            .iter()
            .any(|end| self.key.ends_with(end))
    }
}
