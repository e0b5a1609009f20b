//! Claims, what makes them, volumes and their attachments.

use serde_json::value::RawValue;

use super::meta::{Meta, required};
use super::pod::{NetworkDisk, written_by_several};
use crate::facts::{
    AffinityTerm, Attachment, ClaimLook, ClaimState, Read, Requirement, Storage, Unread,
    VolumeFacts,
};

/// Held until no pod uses the claim. Another finalizer would hold it for longer, and its `StatefulSet` with it.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

raw! {
    /// A `PersistentVolumeClaim`.
    pub struct RawClaim {
        /// Its metadata.
        pub metadata: Meta,
        spec: ClaimSpec,
        status: ClaimStatus,
    }

    struct ClaimSpec {
        volume_name: Option<String>,
        access_modes: Option<Vec<String>>,
        volume_mode: Option<String>,
    }

    struct ClaimStatus {
        phase: Option<String>,
    }

    /// A `StatefulSet`, as far as it makes claims.
    pub struct RawStatefulSet {
        /// Its metadata.
        pub metadata: Meta,
        spec: SetSpec,
    }

    struct SetSpec {
        replicas: Option<u64>,
        ordinals: Ordinals,
        volume_claim_templates: Option<Vec<ClaimTemplate>>,
    }

    struct ClaimTemplate {
        metadata: Meta,
        spec: Option<Box<RawValue>>,
    }

    struct Ordinals {
        start: u64,
    }

    /// A `PersistentVolume`.
    pub struct RawVolume {
        /// Its metadata.
        pub metadata: Meta,
        spec: VolumeSpec,
    }

    struct VolumeSpec {
        local: Option<VolumePath>,
        host_path: Option<VolumePath>,
        csi: Option<CsiSource>,
        fc: Option<NetworkDisk>,
        iscsi: Option<NetworkDisk>,
        persistent_volume_reclaim_policy: Option<String>,
        node_affinity: Option<VolumeNodeAffinity>,
    }

    struct VolumePath {
        path: Option<String>,
    }

    struct CsiSource {
        driver: Option<String>,
        volume_attributes: Option<CsiAttributes>,
    }

    struct CsiAttributes {
        data_locality: Option<String>,
    }

    struct VolumeNodeAffinity {
        required: Option<NodeSelector>,
    }

    struct NodeSelector {
        node_selector_terms: Option<Vec<NodeSelectorTerm>>,
    }

    struct NodeSelectorTerm {
        match_expressions: Option<Vec<MatchExpression>>,
        match_fields: Option<Vec<MatchExpression>>,
    }

    struct MatchExpression {
        key: Option<String>,
        operator: Option<String>,
        values: Option<Vec<String>>,
    }

    /// A `VolumeAttachment`.
    pub struct RawAttachment {
        metadata: Meta,
        spec: AttachmentSpec,
    }

    struct AttachmentSpec {
        node_name: Option<String>,
        source: AttachmentSource,
    }

    struct AttachmentSource {
        persistent_volume_name: Option<String>,
    }
}

impl RawClaim {
    /// The volume it names.
    pub fn volume_name(&self) -> Option<&str> {
        self.spec
            .volume_name
            .as_deref()
            .filter(|name| !name.is_empty())
    }

    /// As facts, with the look that was taken at its volume: `Ok(None)` where there is none of that name.
    pub fn into_look(self, volume: Read<Option<RawVolume>>) -> ClaimLook {
        let owners = self.metadata.owner_references.iter().flatten();
        let owners = owners.filter_map(|owner| owner.uid.clone()).collect();
        let shared_disk = self.spec.volume_mode.as_deref() == Some("Block")
            && self
                .spec
                .access_modes
                .iter()
                .flatten()
                .any(|mode| mode == "ReadWriteMany");
        let scratch = self.metadata.annotation(|known| &known.scratch) == Some("true");
        let give_up = self.metadata.annotation(|known| &known.give_up);
        let give_up = give_up.map(str::to_owned);
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        let free = self.metadata.opted_out().is_none() && finalizers.all(|it| it == PROTECTION);
        let version = self.metadata.resource_version.clone().filter(|_| free);
        let lost = self.status.phase.as_deref() == Some("Lost");
        let missing = self.volume_name().map(str::to_owned);
        let state = match volume {
            Err(unread) => ClaimState::Unread(unread),
            Ok(Some(volume)) if !lost && missing.is_some() => {
                match required(self.metadata.uid, "metadata.uid") {
                    Ok(uid) => ClaimState::Bound {
                        uid,
                        shared_disk,
                        scratch,
                        give_up,
                        created: self.metadata.creation_timestamp,
                        version,
                        volume: volume.into(),
                    },
                    Err(why) => ClaimState::Unread(Unread(why)),
                }
            }
            Ok(_) => ClaimState::WithoutVolume {
                missing,
                phase: self.status.phase,
            },
        };
        ClaimLook { owners, state }
    }
}

impl RawStatefulSet {
    /// Whether it wants the pod of that name, so that it would make another.
    pub fn wants(&self, pod: &str) -> bool {
        let SetSpec {
            replicas, ordinals, ..
        } = &self.spec;
        let ordinal = pod
            .rsplit('-')
            .next()
            .and_then(|ordinal| ordinal.parse::<u64>().ok());
        let wanted = |ordinal: u64| {
            replicas.is_none_or(|count| ordinal < ordinals.start.saturating_add(count))
        };
        !self.metadata.terminating() && ordinal.is_some_and(wanted)
    }

    /// Its claim templates: sets of equal ones make equal claims.
    pub fn templates(&self) -> String {
        let templates = self.spec.volume_claim_templates.iter().flatten();
        let templates = templates.map(|template| {
            let spec = template.spec.as_ref().map_or("", |spec| spec.get());
            format!(
                "{}={spec}",
                template.metadata.name.as_deref().unwrap_or_default()
            )
        });
        templates.collect::<Vec<_>>().join(";")
    }

    /// Whether it makes a claim of that name for the pod, which it still wants.
    pub fn makes(&self, claim: &str, pod: &str) -> bool {
        let mut templates = self.spec.volume_claim_templates.iter().flatten();
        let made = templates.any(|template| {
            template
                .metadata
                .name
                .as_ref()
                .is_some_and(|name| *claim == format!("{name}-{pod}"))
        });
        made && self.wants(pod)
    }
}

impl From<RawVolume> for VolumeFacts {
    fn from(raw: RawVolume) -> Self {
        // On the node that uses it, without any affinity.
        let strict_local = |csi: &CsiSource| {
            let attributes = csi.volume_attributes.as_ref();
            let locality = attributes.and_then(|attributes| attributes.data_locality.as_deref());
            csi.driver.as_deref() == Some("driver.longhorn.io") && locality == Some("strict-local")
        };
        let storage = match (raw.spec.local, raw.spec.host_path) {
            (Some(local), _) => Storage::Local(local.path.unwrap_or_default()),
            (None, Some(host)) => Storage::HostPath(host.path.unwrap_or_default()),
            (None, None) if raw.spec.csi.as_ref().is_some_and(strict_local) => Storage::StrictLocal,
            (None, None) => Storage::Driver,
        };
        let required = raw
            .spec
            .node_affinity
            .and_then(|affinity| affinity.required);
        let terms = required
            .and_then(|selector| selector.node_selector_terms)
            .unwrap_or_default();
        Self {
            name: raw.metadata.name.unwrap_or_default(),
            reclaim_policy: raw.spec.persistent_volume_reclaim_policy,
            storage,
            disk: written_by_several(raw.spec.fc.as_ref(), raw.spec.iscsi.as_ref()),
            affinity: terms.into_iter().map(AffinityTerm::from).collect(),
        }
    }
}

impl From<NodeSelectorTerm> for AffinityTerm {
    fn from(term: NodeSelectorTerm) -> Self {
        let requirements = term
            .match_expressions
            .into_iter()
            .flatten()
            .map(|expression| Requirement {
                key: expression.key.unwrap_or_default(),
                operator: expression.operator.unwrap_or_default(),
                values: expression.values.unwrap_or_default(),
            });
        Self {
            requirements: requirements.collect(),
            fields: term.match_fields.is_some_and(|fields| !fields.is_empty()),
            satisfied_by: None,
        }
    }
}

impl RawAttachment {
    /// The node it is on, and the attachment.
    pub fn into_facts(self) -> Option<(String, Attachment)> {
        let attachment = Attachment {
            name: self.metadata.name?,
            volume: self.spec.source.persistent_volume_name,
        };
        Some((self.spec.node_name?, attachment))
    }
}
