//! PVCs, the `StatefulSet` that creates some of them, volumes, and attachments of volumes to nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Shared,
    csi::{CsiSource, is_of_cluster},
    meta::{MAX_ITEMS_KEPT, Meta, given, required},
    pod::kind_of_disk,
};
use crate::{
    facts::{
        AffinityTerm, Attachment, ClaimRead, ClaimState, Copies, Owner, Place, Read, Requirement,
        Sharing, Uid, Unread, VolumeFacts,
    },
    selector::{NodeSelectors, is_name},
    words::{Foreign, name},
};

/// The access mode of a volume that one pod at a time uses.
const OF_ONE_POD: &str = "ReadWriteOncePod";
/// The mode of a volume without a file system.
const BLOCK: &str = "Block";
/// The prefix of the finalizer by which the external-attacher keeps a `VolumeAttachment` until the storage
/// has let go of the machine (external-attacher, pkg/controller/util.go).
const ATTACHER: &str = "external-attacher/";
/// The most templates of PVCs that are kept of a `StatefulSet`.
const MAX_TEMPLATES: usize = 100;
/// The finalizer by which Kubernetes keeps a PVC until no pod uses it.
const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";

raw! {
    pub struct RawClaim {
        pub metadata: Meta,
        spec: ClaimSpec,
        status: ClaimStatus,
    }

    struct ClaimStatus {
        phase: String,
    }

    struct ClaimSpec {
        volume_name: String,
        access_modes: Vec<String>,
        volume_mode: String,
    }

    pub struct RawDriver {
        /// The driver's metadata. Volumes refer to the driver by its name.
        pub metadata: Meta,
        spec: DriverSpec,
    }

    struct DriverSpec {
        attach_required: Option<bool>,
    }

    pub struct RawStatefulSet {
        pub metadata: Meta,
        spec: SetSpec,
        status: Option<SetStatus>,
    }

    struct SetStatus {
        ready_replicas: u64,
    }

    struct SetSpec {
        replicas: Option<u64>,
        ordinals: Ordinals,
        volume_claim_templates: Vec<ClaimTemplate>,
    }

    struct ClaimTemplate {
        metadata: TemplateName,
    }

    struct TemplateName {
        name: String,
    }

    struct Ordinals {
        start: u64,
    }

    pub struct RawVolume {
        pub metadata: Meta,
        spec: VolumeSpec,
    }

    struct VolumeSpec {
        access_modes: Vec<String>,
        volume_mode: String,
        local: Option<VolumePath>,
        host_path: Option<VolumePath>,
        csi: CsiSource,
        fc: Option<NetworkDisk>,
        iscsi: Option<NetworkDisk>,
        flex_volume: Option<NetworkDisk>,
        persistent_volume_reclaim_policy: Option<String>,
        node_affinity: VolumeNodeAffinity,
        claim_ref: ClaimRef,
    }

    /// The PVC to which a volume is bound.
    struct ClaimRef {
        uid: String,
    }

    struct VolumePath {
        path: String,
    }

    struct VolumeNodeAffinity {
        required: RequiredTerms,
    }

    /// The terms that a volume or a pod requires of a node. The node has to satisfy one of them.
    pub struct RequiredTerms {
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// A disk on a storage network that Kubernetes knows itself.
    struct NetworkDisk {
        fs_type: String,
    }

    /// An empty term is two bytes in etcd, so a small type bounds the memory of an object full of them.
    pub struct NodeSelectorTerm {
        pub match_expressions: Box<[Requirement]>,
        pub match_fields: Box<[Requirement]>,
    }

    pub struct RawAttachment {
        pub metadata: Meta,
        spec: AttachmentSpec,
        status: AttachmentStatus,
    }

    struct AttachmentStatus {
        attached: bool,
        attach_error: Option<AttachmentError>,
        detach_error: Option<AttachmentError>,
    }

    /// Its message may have anything in it.
    struct AttachmentError {}

    struct AttachmentSpec {
        attacher: String,
        node_name: String,
        source: AttachmentSource,
    }

    struct AttachmentSource {
        persistent_volume_name: Option<String>,
    }
}

impl Shared for RawClaim {}
impl Shared for RawDriver {}
impl Shared for RawVolume {}
impl Shared for RawAttachment {}

impl Shared for RawStatefulSet {
    fn strip(&mut self, _: &NodeSelectors) {
        self.drop_unused();
    }
}

impl RawClaim {
    /// Returns the name of the PVC's volume; `None` if the PVC names none. Its author may write any text.
    pub fn volume_name(&self) -> Option<&str> {
        Some(self.spec.volume_name.as_str()).filter(|name| is_name(name))
    }

    /// Turns the PVC into facts. `volume` is the reading of its volume: `Ok(None)` if the volume
    /// does not exist.
    pub fn into_found(self, volume: Read<Option<RawVolume>>) -> ClaimRead {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        let mut finalizers = metadata.finalizers();
        finalizers.retain(|name| &**name != PVC_PROTECTION);
        let missing = given(name(spec.volume_name.clone()));
        // Its author may name any volume in a PVC that is not bound yet.
        let is_bound = !["Lost", "Pending"].contains(&status.phase.as_str());
        let owners = metadata
            .owner_references
            .iter()
            .map(|owner| owner.uid.clone())
            .collect();
        let state = match volume {
            // The pod may be among the owners that were not kept.
            _ if metadata.owner_references.len() > MAX_ITEMS_KEPT => {
                let why = format!("it has more than {MAX_ITEMS_KEPT} owners");
                ClaimState::Unread(Unread(why))
            }
            Err(unread) => ClaimState::Unread(unread),
            Ok(Some(volume)) if !volume.is_of(&metadata.uid) => {
                let why = "its volume is bound to another PVC".to_owned();
                ClaimState::Unread(Unread(why))
            }
            Ok(Some(volume)) if is_bound && missing.is_some() => {
                match required(&metadata.uid, "metadata.uid") {
                    Ok(_) => ClaimState::Bound(volume.into_facts(&spec)),
                    Err(why) => ClaimState::Unread(Unread(why)),
                }
            }
            Ok(_) => ClaimState::Lost(Unread(match missing {
                Some(volume) => format!("its volume {volume} does not exist"),
                None => format!(
                    "it names no volume (phase {})",
                    Foreign::<60>::from(status.phase)
                ),
            })),
        };
        ClaimRead {
            uid: metadata.uid,
            finalizers,
            owner: metadata.owner_references.first().map(Owner::from),
            owners,
            deletion: metadata.deletion_timestamp,
            state,
        }
    }
}

impl RawVolume {
    /// Reports whether the volume is bound to the PVC of this UID, as far as it says.
    fn is_of(&self, claim: &Uid) -> bool {
        let bound = self.spec.claim_ref.uid.as_str();
        bound.is_empty() || bound == claim.as_str()
    }

    /// Reports whether something may attach the volume to a node: it is no directory of a node.
    pub fn may_be_attached(&self) -> bool {
        self.spec.local.is_none() && self.spec.host_path.is_none()
    }

    /// Returns the CSI driver, if the volume is a writable disk for one machine. `modes` are those of its PVC, which say how
    /// many machines are meant to mount its file system. `csi.readOnly` does not make it
    /// read-only: it only goes to the driver when the volume is attached (`csi_attacher.go`).
    fn driver_of_disk(&self, modes: &[String]) -> Option<&str> {
        let VolumeSpec {
            csi,
            volume_mode,
            access_modes,
            ..
        } = &self.spec;
        let is_disk = volume_mode == BLOCK
            || (has(modes, OF_ONE_POD) || has(access_modes, OF_ONE_POD)) && !csi.is_of_cluster()
            || csi.is_of_one_machine() && !is_of_many(modes)
            || csi.names_a_disk();
        let only_read = access_modes.iter().all(|mode| mode == "ReadOnlyMany");
        let is_written = access_modes.is_empty() || !only_read;
        Some(csi.driver.as_str()).filter(|driver| !driver.is_empty() && is_disk && is_written)
    }
    /// Turns the volume into facts. `claim` is that of its PVC.
    fn into_facts(self, claim: &ClaimSpec) -> VolumeFacts {
        let modes = &claim.access_modes[..];
        let is_shared = is_of_many(modes) || is_of_many(&self.spec.access_modes);
        let is_named_disk = self.spec.csi.names_a_disk() && !is_of_many(modes);
        let driver = self.driver_of_disk(modes).map(str::to_owned);
        let Self { metadata, spec } = self;
        let storage = match (spec.local, spec.host_path) {
            (Some(local), _) => Place::Local(local.path.into()),
            (None, Some(host)) => Place::HostPath(host.path.into()),
            (None, None) if spec.csi.is_strict_local() => Place::StrictLocal,
            (None, None) => Place::Driver,
        };
        let terms = spec.node_affinity.required.node_selector_terms.into_iter();
        let is_of_one_machine = |disk: &Option<NetworkDisk>| {
            disk.as_ref()
                .is_some_and(|it| !(is_of_many(modes) && is_of_cluster(&it.fs_type)))
        };
        VolumeFacts {
            shared_disk: claim.volume_mode == BLOCK && is_shared,
            sharing: if has(modes, OF_ONE_POD) {
                Sharing::OnePod
            } else if is_of_many(modes) || has(modes, "ReadOnlyMany") {
                Sharing::ManyNodes
            } else {
                Sharing::OneNode
            },
            is_named_disk,
            name: metadata.name,
            reclaim_policy: spec.persistent_volume_reclaim_policy,
            storage,
            disk: kind_of_disk([&spec.fc, &spec.iscsi, &spec.flex_volume].map(is_of_one_machine)),
            driver,
            affinity: terms
                .map(|term| AffinityTerm {
                    requirements: term.match_expressions.into_vec(),
                    fields: !term.match_fields.is_empty(),
                })
                .collect(),
        }
    }
    /// Reports whether the volume may be a disk for one machine, whatever its PVC says.
    pub fn may_be_disk(&self) -> bool {
        self.driver_of_disk(&[]).is_some()
    }
}

fn is_of_many(modes: &[String]) -> bool {
    has(modes, "ReadWriteMany")
}

fn has(modes: &[String], wanted: &str) -> bool {
    modes.iter().any(|mode| mode == wanted)
}

impl RawDriver {
    /// Adds the driver's name to `names`, unless its volumes are attached to machines, which keeps a
    /// second machine out until they are detached.
    pub fn add_detached(names: &mut BTreeSet<String>, driver: &Self) {
        if driver.spec.attach_required == Some(false) {
            names.insert(driver.metadata.name.clone());
        }
    }
}

impl RawStatefulSet {
    /// Drops what no rule reads, because a run keeps many of them.
    pub fn drop_unused(&mut self) {
        self.metadata.keep(&[], &[]);
        self.metadata.managed_fields.clear();
        let templates = &mut self.spec.volume_claim_templates;
        templates.retain(|it| is_name(&it.metadata.name));
        templates.truncate(MAX_TEMPLATES);
        templates.shrink_to_fit();
    }

    /// Reports whether the set wants a pod of that name, so that it would create another: the pod's
    /// ordinal is one of as many as the set has replicas, from its first ordinal on
    /// (`stateful_set_utils.go` of Kubernetes). A set that is deleted without its pods
    /// (`--cascade=orphan`) leaves them to somebody who wants them, and one that has a controller is made again.
    pub fn wants(&self, pod: &str) -> bool {
        let finalizers = &self.metadata.finalizers;
        // The one may be among those that were not kept.
        let orphans = finalizers
            .iter()
            .any(|it| it == "orphan" || it.ends_with(" more"));
        let kept = self.metadata.controller().is_some() || orphans;
        let Some(Ok(ordinal)) = pod.rsplit('-').next().map(str::parse::<u64>) else {
            return false;
        };
        let after_start = ordinal.checked_sub(self.spec.ordinals.start);
        let is_one = |after| self.spec.replicas.is_none_or(|count| after < count);
        after_start.is_some_and(is_one) && (kept || !self.metadata.terminating())
    }

    /// Returns how many of the set's pods are Ready, and how many it wants, by its own status; `None` if
    /// it has none. The API server sets `spec.replicas` to 1 if it is not given.
    pub fn copies(&self) -> Option<Copies> {
        Some(Copies {
            ready: self.status.as_ref()?.ready_replicas,
            wanted: self.spec.replicas.unwrap_or(1),
        })
    }

    /// Drops the status, which says how many pods are Ready.
    pub fn forget_status(&mut self) {
        self.status = None;
    }

    /// Reports whether the set still wants the pod, and creates a PVC of that name for the pod.
    pub fn makes(&self, claim: &str, pod: &str) -> bool {
        self.claims_of(pod).any(|name| name == claim) && self.wants(pod)
    }

    /// Lists the names of the PVCs that the set creates for the pod.
    pub fn claims_of(&self, pod: &str) -> impl Iterator<Item = String> {
        self.spec
            .volume_claim_templates
            .iter()
            .map(move |it| format!("{}-{pod}", it.metadata.name))
    }
}

impl RawAttachment {
    pub fn node(&self) -> &str {
        &self.spec.node_name
    }

    /// Reports whether the attacher says that it could not attach or detach the volume.
    pub fn fails(&self) -> bool {
        self.status.attach_error.is_some() || self.status.detach_error.is_some()
    }

    /// Adds the attachment to those of the node that it names.
    pub fn add_to(by_node: &mut BTreeMap<String, Vec<Attachment>>, its: &Self) {
        let Self {
            metadata,
            spec,
            status,
        } = its;
        let mut finalizers = metadata.finalizers.iter();
        let attachment = Attachment {
            held_by_attacher: finalizers.any(|it| it.starts_with(ATTACHER)),
            name: metadata.name.clone(),
            volume: spec.source.persistent_volume_name.clone().map(name),
            driver: given(spec.attacher.clone()),
            attached: status.attached,
            fails: its.fails(),
            is_leaving: metadata.deletion_timestamp.is_some() || status.detach_error.is_some(),
        };
        by_node
            .entry(name(spec.node_name.clone()))
            .or_default()
            .push(attachment);
    }
}
