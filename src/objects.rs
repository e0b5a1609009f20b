//! The border: what the Kubernetes API says, turned into facts once.
//!
//! The types here are as slim as the rules need and every field is optional: one odd object must not make its
//! whole list unreadable, and what is not named here (environment values, above all) is never kept.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    facts::{
        AffinityTerm, Attachment, ClaimFacts, ClaimState, Identity, Leaf, Lease, Life, NodeFacts, Owner,
        PodFacts, Read, Ready, Requirement, Standing, Stay, Storage, VolumeFacts,
    },
    selector::Selector,
};

/// Key of the taint that Kubernetes gives a node whose kubelet is silent; evicts what does not tolerate it.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Set by the Deployment controller: the end of the `ReplicaSet`'s name.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// The role's label since Kubernetes 1.20, and before.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// Kosmos spells its marks in two ways (kosmos-io/kosmos); label and taint share one key.
const KOSMOS_NODE: &str = "kosmos.io/node";
const KOSMOS_OWNER: &str = "kosmos-io/owned-by-cluster";
/// Names of Kosmos's leaf nodes begin so, in its default mode.
pub const KOSMOS_PREFIX: &str = "kosmos-";
/// What the kubelet asks for by default (`nodeLeaseDurationSeconds`).
const DEFAULT_LEASE_SECONDS: i64 = 40;

/// A list of objects, each still unparsed, so that an odd one spoils only itself.
#[derive(Debug, Deserialize)]
pub struct RawList<'a> {
    /// `List`, `PodList`, …
    #[serde(default)]
    pub kind: String,
    /// The list's own metadata.
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects; null is none, but a list without the field is no list.
    #[serde(borrow, deserialize_with = "Option::deserialize")]
    pub items: Option<Vec<&'a RawValue>>,
}

/// Where a list goes on.
#[derive(Debug, Default, Deserialize)]
pub struct ListMeta {
    /// Token of the next page; empty or absent on the last.
    #[serde(rename = "continue")]
    pub next: Option<String>,
}

/// `metadata` of any object, and the whole of one that is asked for by metadata alone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name.
    pub name: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
    /// UID.
    pub uid: Option<String>,
    /// Version of this state.
    pub resource_version: Option<String>,
    /// When it should be gone; without one nobody has asked for that.
    pub deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<Annotations>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
    creation_timestamp: Option<Timestamp>,
}

/// The annotations that a rule asks for. The others, up to 256 KiB an object, are passed over as they are read.
#[derive(Debug, Clone, Deserialize)]
struct Annotations {
    /// The reaper keeps away.
    #[serde(rename = "pod-reaper.io/skip")]
    skip: Option<String>,
    /// Copied into the report when the pod is reaped.
    #[serde(rename = "pod-reaper.io/after-reap")]
    after_reap: Option<String>,
    /// Set by the kubelet on the API's copy of a static pod.
    #[serde(rename = "kubernetes.io/config.mirror")]
    mirror: Option<String>,
    /// Of which leaf cluster a node is, says Kosmos.
    #[serde(rename = "kosmos-io/owned-by-cluster")]
    kosmos_owner: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    api_version: Option<String>,
    kind: Option<String>,
    uid: Option<String>,
    name: Option<String>,
    controller: Option<bool>,
}

impl Meta {
    fn annotation(&self, pick: fn(&Annotations) -> &Option<String>) -> Option<&str> {
        pick(self.annotations.as_ref()?).as_deref()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether it carries the opt-out annotation.
    pub fn opted_out(&self) -> bool {
        self.annotation(|known| &known.skip) == Some("true")
    }

    /// Whether its deletion was asked for.
    pub fn terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Any object of which only the metadata matters: a namespace, or a pod that is looked for by UID.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawObject {
    /// Its metadata.
    pub metadata: Meta,
}

/// A node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawNode {
    /// Its metadata.
    pub metadata: Meta,
    spec: NodeSpec,
    status: Conditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    taints: Option<Vec<Taint>>,
}

#[derive(Debug, Deserialize)]
struct Taint {
    key: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Conditions {
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: Option<String>,
    status: Option<String>,
    reason: Option<String>,
    last_transition_time: Option<Timestamp>,
    last_heartbeat_time: Option<Timestamp>,
}

impl RawNode {
    fn ready_condition(&self) -> Option<&Condition> {
        // The last one wins, as in kubectl's Status column.
        self.status.conditions.iter().flatten().rfind(|condition| condition.kind.as_deref() == Some("Ready"))
    }

    /// Status of its `Ready` condition. A status that is not one of the three known says nothing: `Unknown`.
    pub fn ready(&self) -> Ready {
        match self.ready_condition().map(|condition| condition.status.as_deref()) {
            None => Ready::Absent,
            Some(Some("True")) => Ready::True,
            Some(Some("False")) => Ready::False,
            Some(_) => Ready::Unknown,
        }
    }

    /// Its standing among the nodes, for a count.
    pub fn standing(&self, selector: Option<&Selector>) -> Standing {
        Standing {
            ready: self.ready() == Ready::True,
            leaf: self.leaf(selector).is_some(),
            control_plane: self.control_plane(),
        }
    }

    /// Whether it carries the control-plane role.
    pub fn control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|key| self.metadata.label(key).is_some())
    }

    /// Whether it stands for something other than one machine: any one of Kosmos's marks, or the operator's selector.
    pub fn leaf(&self, selector: Option<&Selector>) -> Option<Leaf> {
        let cluster = self.metadata.annotation(|known| &known.kosmos_owner);
        let tainted =
            || self.spec.taints.iter().flatten().any(|taint| taint.key.as_deref() == Some(KOSMOS_NODE));
        let mut marks = Vec::new();
        if self.metadata.label(KOSMOS_NODE).is_some() {
            marks.push(format!("label {KOSMOS_NODE}"));
        }
        if let Some(cluster) = cluster {
            marks.push(format!("annotation {KOSMOS_OWNER}={cluster}"));
        }
        if tainted() {
            marks.push(format!("taint {KOSMOS_NODE}"));
        }
        if self.metadata.name.as_deref().is_some_and(|name| name.starts_with(KOSMOS_PREFIX)) {
            marks.push(format!("name prefix {KOSMOS_PREFIX}"));
        }
        let kosmos = !marks.is_empty();
        let none = BTreeMap::new();
        if let Some(selector) = selector
            && selector.matches(self.metadata.labels.as_ref().unwrap_or(&none))
        {
            marks.push(format!("label selector {selector}"));
        }
        (!marks.is_empty()).then(|| Leaf {
            kosmos,
            marks,
            // It becomes part of commands to paste: only what can be the name of an object may.
            cluster: cluster.filter(|cluster| is_name(cluster)).map(str::to_owned),
        })
    }

    /// As facts. An error names what is missing.
    pub fn into_facts(
        self,
        lease: Read<Option<Lease>>,
        selector: Option<&Selector>,
    ) -> Result<NodeFacts, String> {
        let ready = self.ready();
        let leaf = self.leaf(selector);
        let control_plane = self.control_plane();
        let hostname = self.metadata.label(HOSTNAME).map(str::to_owned);
        let opted_out = self.metadata.opted_out();
        let (ready_reason, ready_since) = self
            .ready_condition()
            .map_or((None, None), |condition| (condition.reason.clone(), condition.last_transition_time));
        Ok(NodeFacts {
            name: required(self.metadata.name, "metadata.name")?,
            uid: required(self.metadata.uid, "metadata.uid")?,
            ready,
            ready_reason,
            ready_since,
            hostname,
            leaf,
            control_plane,
            opted_out,
            lease,
        })
    }
}

/// A lease.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawLease {
    metadata: LeaseMeta,
    spec: LeaseSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseMeta {
    name: Option<String>,
    namespace: Option<String>,
    managed_fields: Option<Vec<LeaseWriter>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseWriter {
    time: Option<Timestamp>,
    fields_v1: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    renew_time: Option<Timestamp>,
    lease_duration_seconds: Option<i64>,
}

impl RawLease {
    /// Its namespace and name, where it has both.
    pub fn identity(&self) -> Option<(String, String)> {
        self.metadata.namespace.clone().zip(self.metadata.name.clone())
    }
}

impl From<RawLease> for Lease {
    fn from(raw: RawLease) -> Self {
        let renewals = raw.metadata.managed_fields.iter().flatten().filter(|entry| {
            entry.fields_v1.as_ref().is_some_and(|fields| fields.pointer("/f:spec/f:renewTime").is_some())
        });
        let stamped_by_server = renewals.filter_map(|entry| entry.time).max();
        let seconds = raw.spec.lease_duration_seconds.unwrap_or(DEFAULT_LEASE_SECONDS);
        Self {
            renewed: stamped_by_server.or(raw.spec.renew_time),
            duration: SignedDuration::from_secs(seconds),
        }
    }
}

/// A pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawPod {
    /// Its metadata.
    pub metadata: Meta,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    volumes: Option<Vec<PodVolume>>,
    tolerations: Option<Vec<Toleration>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Toleration {
    key: Option<String>,
    operator: Option<String>,
    value: Option<String>,
    effect: Option<String>,
    #[serde(rename = "tolerationSeconds")]
    seconds: Option<i64>,
}

impl Toleration {
    /// Whether it tolerates the taint that Kubernetes gives a node whose kubelet is silent, by Kubernetes' own rule. That
    /// taint has no value.
    fn of_silence(&self) -> bool {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        given(&self.effect).is_none_or(|effect| effect == "NoExecute")
            && given(&self.key).is_none_or(|key| key == UNREACHABLE)
            && match given(&self.operator).as_deref() {
                Some("Exists") => true,
                None | Some("Equal") => given(&self.value).is_none(),
                Some(_) => false,
            }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodVolume {
    name: Option<String>,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Option<String>,
    conditions: Option<Vec<PodCondition>>,
}

#[derive(Debug, Clone, Deserialize)]
struct PodCondition {
    #[serde(rename = "type")]
    kind: Option<String>,
    status: Option<String>,
}

impl RawPod {
    /// Without its labels, which no rule asks for: tens of thousands of pods are held at once.
    #[must_use]
    pub fn without_labels(mut self) -> Self {
        self.metadata.labels = None;
        self
    }

    /// The same pod, as if its deletion had been asked for and should have been over at `deadline`.
    #[must_use]
    pub fn deleted_by(mut self, deadline: Timestamp) -> Self {
        self.metadata.deletion_timestamp = Some(deadline);
        self
    }

    /// What there is to know about a pod that is not Terminating, or not only that.
    pub fn life(&self) -> Life {
        let owner = self.metadata.owner_references.iter().flatten();
        let controller = owner.clone().find(|owner| owner.controller == Some(true));
        let controller = controller.map(|owner| Owner {
            kind: owner.kind.clone().unwrap_or_default(),
            name: owner.name.clone().unwrap_or_default(),
        });
        let mirror = self.metadata.annotation(|known| &known.mirror).is_some();
        let daemon = controller.as_ref().is_some_and(|owner| owner.kind == "DaemonSet");
        // The first toleration that fits is the one that counts, as in Kubernetes.
        let tolerates = self.spec.tolerations.iter().flatten().find(|toleration| toleration.of_silence());
        let stays = match tolerates {
            _ if mirror => Some(Stay::Static),
            _ if daemon => Some(Stay::DaemonSet),
            Some(toleration) if toleration.seconds.is_none() => Some(Stay::Tolerates),
            _ => None,
        };
        let mut conditions = self.status.conditions.iter().flatten();
        let ready = conditions.find(|condition| condition.kind.as_deref() == Some("Ready"));
        let unready = ready.is_some_and(|ready| ready.status.as_deref() != Some("True"));
        let phase = self.status.phase.clone().unwrap_or_default();
        let terminating = self.metadata.terminating();
        Life {
            namespace: self.metadata.namespace.clone().unwrap_or_default(),
            name: self.metadata.name.clone().unwrap_or_default(),
            uid: self.metadata.uid.clone().unwrap_or_default(),
            node: self.spec.node_name.clone().filter(|node| !node.is_empty()),
            serves: phase == "Running" && !terminating && !unready,
            finished: matches!(phase.as_str(), "Succeeded" | "Failed"),
            phase,
            created: self.metadata.creation_timestamp,
            terminating,
            workload: controller.as_ref().map(|owner| self.workload(owner)),
            controller,
            stays,
        }
    }

    /// What people call the pod's workload: its Deployment, where a `ReplicaSet` is only one of that one's versions.
    fn workload(&self, controller: &Owner) -> Owner {
        let version = self.metadata.label(POD_TEMPLATE_HASH).map(|hash| format!("-{hash}"));
        let deployment = version.and_then(|version| controller.name.strip_suffix(version.as_str()));
        match deployment {
            Some(name) if controller.kind == "ReplicaSet" => {
                Owner { kind: "Deployment".to_owned(), name: name.to_owned() }
            }
            _ => controller.clone(),
        }
    }

    /// As facts, its claims not looked up. The pod must be Terminating. An error names what is missing: without a
    /// UID and a resource version a pod cannot be deleted safely, so it is no candidate.
    pub fn into_facts(self, namespace_opted_out: Read<bool>) -> Result<PodFacts, String> {
        let name = required(self.metadata.name.clone(), "metadata.name")?;
        let mut claims = Vec::new();
        for volume in self.spec.volumes.into_iter().flatten() {
            let claim = match (volume.persistent_volume_claim, volume.ephemeral) {
                (Some(source), _) => required(source.claim_name, "persistentVolumeClaim.claimName")?,
                // A generic ephemeral volume's claim is named after pod and volume.
                (None, Some(_)) => format!("{name}-{}", required(volume.name, "the name of a volume")?),
                (None, None) => continue,
            };
            claims.push(ClaimFacts { name: claim, state: ClaimState::NotLookedUp });
        }
        claims.sort_by(|a, b| a.name.cmp(&b.name));
        claims.dedup_by(|a, b| a.name == b.name);
        let owner = self.metadata.owner_references.iter().flatten();
        let owner = owner.max_by_key(|owner| owner.controller == Some(true));
        Ok(PodFacts {
            namespace: required(self.metadata.namespace.clone(), "metadata.namespace")?,
            name,
            uid: required(self.metadata.uid.clone(), "metadata.uid")?,
            resource_version: required(self.metadata.resource_version.clone(), "metadata.resourceVersion")?,
            node: self.spec.node_name.filter(|node| !node.is_empty()),
            owner: owner.map(|owner| Owner {
                kind: owner.kind.clone().unwrap_or_default(),
                name: owner.name.clone().unwrap_or_default(),
            }),
            controller: owner.filter(|owner| owner.controller == Some(true)).and_then(|owner| {
                Some(Identity { api_version: owner.api_version.clone()?, uid: owner.uid.clone()? })
            }),
            deletion_deadline: self
                .metadata
                .deletion_timestamp
                .ok_or_else(|| "metadata.deletionTimestamp is missing".to_owned())?,
            grace_seconds: self.metadata.deletion_grace_period_seconds,
            finished: matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed")),
            mirror: self.metadata.annotation(|known| &known.mirror).is_some(),
            opted_out: self.metadata.opted_out(),
            namespace_opted_out,
            after_reap: self.metadata.annotation(|known| &known.after_reap).map(str::to_owned),
            finalizers: self.metadata.finalizers.unwrap_or_default(),
            claims,
        })
    }
}

/// An Event of `events.k8s.io/v1`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RawEvent {
    event_time: Option<Timestamp>,
    regarding: Regarding,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Regarding {
    uid: Option<String>,
}

impl RawEvent {
    /// The UID of what it is about, and when it was written, where it says both.
    pub fn regards(self) -> Option<(String, Timestamp)> {
        self.regarding.uid.zip(self.event_time)
    }
}

/// A `PersistentVolumeClaim`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RawClaim {
    /// Its metadata.
    pub metadata: Meta,
    spec: ClaimSpec,
    status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    volume_name: Option<String>,
}

impl RawClaim {
    /// The volume it names.
    pub fn volume_name(&self) -> Option<&str> {
        self.spec.volume_name.as_deref().filter(|name| !name.is_empty())
    }

    /// As facts, with the look that was taken at its volume: `Ok(None)` where there is none of that name.
    pub fn into_state(self, volume: Read<Option<RawVolume>>) -> ClaimState {
        let lost = self.status.phase.as_deref() == Some("Lost");
        let missing = self.volume_name().map(str::to_owned);
        match volume {
            Err(unread) => ClaimState::Unread(unread),
            Ok(Some(volume)) if !lost && missing.is_some() => {
                match required(self.metadata.uid, "metadata.uid") {
                    Ok(uid) => ClaimState::Bound { uid, volume: volume.into() },
                    Err(why) => ClaimState::Unread(crate::facts::Unread(why)),
                }
            }
            Ok(_) => ClaimState::WithoutVolume { missing, phase: self.status.phase },
        }
    }
}

/// A `PersistentVolume`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RawVolume {
    /// Its metadata.
    pub metadata: Meta,
    spec: VolumeSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    local: Option<VolumePath>,
    host_path: Option<VolumePath>,
    persistent_volume_reclaim_policy: Option<String>,
    node_affinity: Option<VolumeNodeAffinity>,
}

#[derive(Debug, Clone, Deserialize)]
struct VolumePath {
    path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct VolumeNodeAffinity {
    required: Option<NodeSelector>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelector {
    node_selector_terms: Option<Vec<NodeSelectorTerm>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelectorTerm {
    match_expressions: Option<Vec<MatchExpression>>,
    match_fields: Option<Vec<MatchExpression>>,
}

#[derive(Debug, Clone, Deserialize)]
struct MatchExpression {
    key: Option<String>,
    operator: Option<String>,
    values: Option<Vec<String>>,
}

impl From<RawVolume> for VolumeFacts {
    fn from(raw: RawVolume) -> Self {
        let storage = match (raw.spec.local, raw.spec.host_path) {
            (Some(local), _) => Storage::Local(local.path.unwrap_or_default()),
            (None, Some(host)) => Storage::HostPath(host.path.unwrap_or_default()),
            (None, None) => Storage::Driver,
        };
        let required = raw.spec.node_affinity.and_then(|affinity| affinity.required);
        let terms = required.and_then(|selector| selector.node_selector_terms).unwrap_or_default();
        Self {
            name: raw.metadata.name.unwrap_or_default(),
            reclaim_policy: raw.spec.persistent_volume_reclaim_policy,
            storage,
            affinity: terms.into_iter().map(AffinityTerm::from).collect(),
        }
    }
}

impl From<NodeSelectorTerm> for AffinityTerm {
    fn from(term: NodeSelectorTerm) -> Self {
        let all = term.match_expressions.into_iter().chain(term.match_fields).flatten();
        all.map(|expression| Requirement {
            key: expression.key.unwrap_or_default(),
            operator: expression.operator.unwrap_or_default(),
            values: expression.values.unwrap_or_default(),
        })
        .collect()
    }
}

/// A `VolumeAttachment`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawAttachment {
    metadata: Meta,
    spec: AttachmentSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AttachmentSpec {
    node_name: Option<String>,
    source: AttachmentSource,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AttachmentSource {
    persistent_volume_name: Option<String>,
}

impl RawAttachment {
    /// The node it is on, and the attachment.
    pub fn into_facts(self) -> Option<(String, Attachment)> {
        let attachment =
            Attachment { name: self.metadata.name?, volume: self.spec.source.persistent_volume_name };
        Some((self.spec.node_name?, attachment))
    }
}

/// The moments at which somebody saw the object as it is, for a snapshot that does not say when it was taken.
/// A `deletionTimestamp` is none of them: it may lie in the future.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Observed {
    metadata: ObservedMeta,
    spec: LeaseSpec,
    status: Conditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObservedMeta {
    creation_timestamp: Option<Timestamp>,
    managed_fields: Option<Vec<Written>>,
}

#[derive(Debug, Deserialize)]
struct Written {
    time: Option<Timestamp>,
}

impl Observed {
    /// The newest of them.
    pub fn newest(&self) -> Option<Timestamp> {
        let conditions = self.status.conditions.iter().flatten();
        let managed = self.metadata.managed_fields.iter().flatten();
        conditions
            .flat_map(|condition| [condition.last_transition_time, condition.last_heartbeat_time])
            .chain(managed.map(|entry| entry.time))
            .chain([self.metadata.creation_timestamp, self.spec.renew_time])
            .flatten()
            .max()
    }
}

/// What a parser says, without the text that it met: that may be anything.
pub fn odd(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Data => "a field has an unexpected type",
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is not JSON",
    }
}

/// Namespace and name of an object that does not parse, as far as they can be read.
pub fn identity_of_odd(text: &str) -> (Option<String>, Option<String>) {
    let value = serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let text = |pointer| value.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
    (text("/metadata/namespace"), text("/metadata/name"))
}

/// Whether `name` is one that the API server accepts for pods, nodes and most else (RFC 1123).
pub fn is_name(name: &str) -> bool {
    let inner = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '.'
    };
    name.chars().all(inner)
        && !name.is_empty()
        && !name.starts_with(['-', '.'])
        && !name.ends_with(['-', '.'])
}

fn required(value: Option<String>, what: &str) -> Result<String, String> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{what} is missing"))
}
