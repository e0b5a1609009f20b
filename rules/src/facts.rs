//! What was read about the cluster, as plain types.
//!
//! Deciding works on these alone. They hold no Kubernetes type, so that the rules can be read, and tested,
//! without knowing how an API server or a snapshot spells them; the room `kubernetes` makes them, once.

use std::collections::{BTreeMap, BTreeSet};

use derive_more::{Deref, Display, From};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

use crate::codes::{codes, entry};

/// A fact, or why it is not known. What is not known never permits a delete.
pub type Read<T> = Result<T, Unread>;

/// `metadata.uid`: what distinguishes an object from all others, of its name too.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Deref,
    Display,
    From,
)]
#[deref(forward)]
#[from(forward)]
pub struct Uid(String);

impl Uid {
    /// As it is spelled.
    pub fn as_str(&self) -> &str {
        self
    }
}

/// `metadata.resourceVersion`: what distinguishes an object from what it was before.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Deref,
    Display,
    From,
)]
#[deref(forward)]
#[from(forward)]
pub struct ResourceVersion(String);

/// Why a fact could not be read, as a phrase for the report ("leases … is forbidden").
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub struct Unread(pub String);

/// What one run knows about the cluster at one moment, its Terminating pods aside: those become the plan.
#[derive(Debug, Clone, Default)]
pub struct ClusterFacts {
    /// The moment to judge at: the API server's clock, or the snapshot's newest observation.
    pub now: Timestamp,
    /// What the cluster is called by those who reach it; `None` for a snapshot.
    pub place: Option<String>,
    /// The nodes that were looked at, by name. A node that is not in here was not looked at.
    pub nodes: BTreeMap<String, NodeRead>,
    /// How much of the cluster is NotReady, for the breaker.
    pub census: Census,
    /// What the real nodes have, each as a phrase, and how many of those that have it are NotReady: of all nodes that were
    /// read for the census.
    pub traits: Traits,
    /// `VolumeAttachments` by the node they name.
    pub attachments: BTreeMap<String, Vec<Attachment>>,
    /// How many nodes the cluster has, Ready ones included.
    pub node_count: usize,
    /// By node, the pods in matching namespaces that have not finished, and whose deletion was not requested.
    pub unasked: BTreeMap<String, Vec<PodSummary>>,
    /// How many namespaces there are, where the filter matches none of them.
    pub unmatched_namespaces: Option<usize>,
    /// Terminating pods on Ready nodes that are left out, where the source shows them without being asked.
    pub on_ready_nodes: usize,
    /// What could not be read although it should have been.
    pub errors: Vec<ReadError>,
    /// What the source does not show by its nature (a snapshot without leases, say), as sentences.
    pub unseen: Vec<String>,
}

impl ClusterFacts {
    /// The look that was taken at `pod`'s node; `None` where it has none, or was not looked at.
    pub fn node_of(&self, pod: &PodFacts) -> Option<&NodeRead> {
        self.nodes.get(pod.node.as_ref()?)
    }

    /// Whether `pod` is on a node that is Ready: such pods are looked at only where all are asked for.
    pub fn on_ready_node(&self, pod: &PodFacts) -> bool {
        self.node_of(pod)
            .and_then(NodeRead::known)
            .is_some_and(|node| node.ready == Ready::True)
    }
}

/// The value of `pod-reaper.io/skip` by which each namespace is opted out, where it is, by its name.
pub type Namespaces = BTreeMap<String, Option<String>>;

/// The value by which one namespace is opted out, by a list that may have failed. A namespace that is missing from the list
/// may be a malformed one, so that is unread.
pub fn opted_out(namespaces: &Read<Namespaces>, name: &str) -> Read<Option<String>> {
    let found = namespaces.as_ref().map_err(Unread::clone)?.get(name);
    found
        .cloned()
        .ok_or_else(|| Unread("it was not in the list".to_owned()))
}

entry! {
    /// Something that could not be read; it makes the run end with exit code 3.
    pub struct ReadError as "ErrorEntry" {
        /// What was to be read: "pods of node ds06".
        pub what: String,
        /// Why it was not.
        pub cause: String,
    }
}

/// One look at a node by name.
#[derive(Debug, Clone)]
pub enum NodeRead {
    /// It exists.
    Known(NodeFacts),
    /// It does not exist.
    Gone,
    /// Whether it exists could not be read.
    Unread(Unread),
}

impl NodeRead {
    /// The facts, where there are any.
    pub fn known(&self) -> Option<&NodeFacts> {
        match self {
            Self::Known(node) => Some(node),
            Self::Gone | Self::Unread(_) => None,
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFacts {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`: a node that was deleted and registered again has another.
    pub uid: Uid,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Status of the `Ready` condition.
    pub ready: Ready,
    /// Reason of the `Ready` condition, such as `NodeStatusUnknown`.
    pub ready_reason: Option<String>,
    /// `lastTransitionTime` of the `Ready` condition: by the kubelet's own clock, where it is the kubelet that says so.
    pub ready_since: Option<Timestamp>,
    /// When the node controller gave it the not-ready or unreachable taint `NoSchedule`, by the control plane's clock.
    pub tainted_since: Option<Timestamp>,
    /// Label `kubernetes.io/hostname`, which local volumes are bound to.
    pub hostname: Option<String>,
    /// What its own machine has written, each source once, by the latest time that it is known to have.
    pub heard: Vec<Heard>,
    /// What else it may have written, where that could not be read: as a phrase, with the cause.
    pub unheard: Option<Unread>,
    /// It is a control plane node, and no lease of an API server that could be read names its host.
    pub no_api_server: bool,
    /// The marks that say that its power or disks are cut.
    pub fenced: Vec<FencingMark>,
    /// A person's answer: annotation `pod-reaper.io/powered-off`.
    pub powered_off: Option<String>,
    /// Carries the taint `node.kubernetes.io/out-of-service`: the pod garbage collector deletes its Terminating pods.
    pub out_of_service: bool,
    /// Set where the node stands for something other than one machine.
    pub leaf: Option<Leaf>,
    /// Carries the control-plane role.
    pub control_plane: bool,
    /// Has a taint that keeps pods off the control plane.
    pub reserved: bool,
    /// Is cordoned.
    pub cordoned: bool,
    /// The value of `pod-reaper.io/skip`, annotation or label, where that opts it out.
    pub opted_out: Option<String>,
}

impl NodeFacts {
    /// Since when it has been NotReady, as known at `now`.
    pub fn not_ready_since(&self, now: Timestamp) -> Option<Timestamp> {
        not_ready_since(self.ready_since, self.tainted_since, now)
    }

    /// The last that was heard of its machine.
    pub fn last_heard(&self) -> Option<&Heard> {
        self.heard.iter().max_by_key(|heard| heard.at)
    }

    /// The last that was heard from `by`.
    pub fn heard_by(&self, by: SignBy) -> Option<&Heard> {
        self.heard.iter().find(|heard| heard.by == by)
    }
}

/// Since when a node is NotReady, as known at `now`: the later of what its condition and its taint say. A condition of the
/// future says nothing: that kubelet's clock is off.
pub fn not_ready_since(
    said: Option<Timestamp>,
    tainted: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    said.filter(|since| *since <= now).max(tainted)
}

entry! {
    /// A report of a node's own machine.
    #[derive(Copy)]
    pub struct Heard as "SignEntry" {
        /// Who reported: `lease`, `node-problem-detector`, `eks-node-monitoring-agent`, `virt-handler`, `kube-apiserver`, or
        /// `kubelet`, which says that the node is not Ready: Kubernetes takes that back as soon as the kubelet falls silent.
        pub by: SignBy,
        /// When: by the API server's stamp or the node's own clock, whichever is later and not in the future; of `kubelet` the
        /// moment of judging.
        // As a fact, either may be ahead of the clock by which a run judges: then it is later than anything that this clock has
        // seen.
        #[serde(serialize_with = "whole_seconds")]
        pub at: Timestamp,
        /// How often that source writes, its usual delay included: a shorter silence means nothing.
        #[serde(skip)]
        pub period: SignedDuration,
    }
}

impl Heard {
    /// As a person reads it at `now`: not in the future.
    #[must_use]
    pub fn sign(self, now: Timestamp) -> Self {
        Self {
            at: self.at.min(now),
            ..self
        }
    }
}

/// A mark that says that a node is certainly off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingMark {
    /// The mark, as a phrase.
    pub mark: String,
    /// It was set at this time or before, as far as the API server has stamped that.
    pub set_by: Option<Timestamp>,
}

impl FencingMark {
    /// Whether it may still be true where the machine was last heard at that time. A mark may be left behind: a machine that
    /// was heard since is on.
    pub fn stands(&self, heard: Option<Timestamp>) -> bool {
        self.set_by
            .zip(heard)
            .is_none_or(|(set_by, heard)| heard <= set_by)
    }
}

/// By how much two API servers' clocks may differ: a stamp may be that far ahead of the answer's `Date`,
/// or of what another one has stamped.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);

/// Writes a time that may say fractions of a second, which is more than any verdict is about, without them.
pub fn whole_seconds<T: Copy + Into<Option<Timestamp>>, S: Serializer>(
    at: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    (*at).into().map(|at| format!("{at:.0}")).serialize(to)
}

codes! {
    /// Who reports from a node.
    pub enum SignBy {
        /// The kubelet, by renewing its lease.
        Lease = "lease",
        /// node-problem-detector, by the heartbeat of one of its conditions.
        ProblemDetector = "node-problem-detector",
        /// The node monitoring agent of EKS, likewise.
        NodeMonitoring = "eks-node-monitoring-agent",
        /// `KubeVirt`'s virt-handler, by its annotation.
        VirtHandler = "virt-handler",
        /// The API server of a control plane node, by its identity lease.
        ApiServer = "kube-apiserver",
        /// The kubelet, by a `Ready` that is `False`.
        Kubelet = "kubelet",
    }
}

codes! {
    /// Status of a node's `Ready` condition, as `kubectl get node -o yaml` shows it.
    pub enum Ready {
        /// The kubelet says that it is.
        True = "True",
        /// The kubelet says that it is not.
        False = "False",
        /// The kubelet says nothing any more.
        Unknown = "Unknown",
        /// There is no such condition.
        Absent = "absent",
    }
}

/// What a leaf node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    /// A leaf cluster of Kosmos.
    Kosmos,
    /// No machine: what runs its pods is elsewhere.
    Virtual,
    /// A machine at the edge, which works on without its cluster.
    Edge,
    /// What `--leaf-node-selector` selects.
    Selected,
}

/// Why a node counts as a leaf node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The kind of the first mark that was seen.
    pub kind: LeafKind,
    /// Who makes nodes with that mark; empty for the operator's selector.
    pub maker: &'static str,
    /// The marks that were seen, as phrases ("label kosmos.io/node").
    pub marks: Vec<String>,
    /// The leaf cluster, where the node names it.
    pub cluster: Option<String>,
}

/// How many nodes of each kind there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Census {
    /// Too few nodes are NotReady to be an outage, and a real one is Ready.
    #[default]
    NotNeeded,
    /// Counted, leaf nodes and those that were put away left out.
    Counted {
        /// All real nodes.
        all: Tally,
        /// The real nodes without the control-plane role.
        workers: Tally,
        /// A pod could start on one of them.
        room: bool,
    },
    /// Could not be counted.
    Unread(Unread),
}

/// NotReady nodes among some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// NotReady.
    pub not_ready: usize,
    /// Ready or not.
    pub total: usize,
}

/// By what nodes may have in common, as a phrase, those that have it.
pub type Traits = BTreeMap<String, Tally>;

/// What a node counts as, for the breaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its `Ready` is `True`.
    pub ready: bool,
    /// It stands for another cluster.
    pub leaf: bool,
    /// It carries the control-plane role.
    pub control_plane: bool,
    /// It has a taint that keeps pods off the control plane.
    pub reserved: bool,
    /// It is cordoned.
    pub cordoned: bool,
    /// Since when it is NotReady, where it is and that is known.
    pub since: Option<Timestamp>,
    /// A pod of it is Terminating, or may be.
    pub terminating: bool,
}

entry! {
    /// A `VolumeAttachment` left on a node.
    pub struct Attachment as "AttachmentEntry" {
        /// `metadata.name`.
        pub name: String,
        /// The volume, where it names one.
        pub volume: Option<String>,
    }
}

/// A Terminating pod.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFacts {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`; several pods may share it, over namespaces and over time.
    pub name: String,
    /// `metadata.uid`: what identifies the pod.
    pub uid: Uid,
    /// `metadata.resourceVersion`: the state that was judged.
    pub resource_version: ResourceVersion,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// The controlling owner; another one, where none is that.
    pub owner: Option<Owner>,
    /// What people call that: a `ReplicaSet`'s Deployment, a Job's `CronJob`, by their names.
    pub workload: Option<Owner>,
    /// What distinguishes that owner from its namesakes, where it is the pod's controller.
    pub controller: Option<Identity>,
    /// Selects, by the pod's own labels, the pods of a controller that gives each a new name.
    pub siblings: Option<String>,
    /// Its deletion is only supposed, by `what-if`: no answer belongs to that.
    pub supposed: bool,
    /// `metadata.deletionTimestamp`, which already includes the grace period.
    pub deletion_deadline: Timestamp,
    /// `metadata.deletionGracePeriodSeconds`; 0 once a force delete was sent.
    pub grace_seconds: Option<i64>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<String>,
    /// `status.phase` is `Succeeded` or `Failed`.
    pub finished: bool,
    /// The mirror of a static pod.
    pub mirror: bool,
    /// The value of `pod-reaper.io/skip`, annotation or label, where that opts it out.
    pub opted_out: Option<String>,
    /// The value of `pod-reaper.io/skip` on its namespace, where that opts it out.
    pub namespace_opted_out: Read<Option<String>>,
    /// Annotation `pod-reaper.io/after-reap`.
    pub after_reap: Option<String>,
    /// A person's answer: annotation `pod-reaper.io/reap`.
    pub reap: Option<String>,
    /// The claim templates of its `StatefulSet`, where that was read: sets of equal ones are one workload if their names are
    /// numbers of one series.
    pub templates: Option<String>,
    /// The claims it uses. Either each of them was looked up, or none.
    pub claims: Vec<ClaimFacts>,
    /// Its first volume that is neither a claim nor of a kind that two pods may use at once, as a phrase.
    pub own_volume: Option<String>,
    /// Its first volume that is a disk on a storage network which it may write, as a phrase.
    pub own_disk: Option<String>,
    /// It carries the label `apps.kubernetes.io/pod-index`: its `StatefulSet` controller is of Kubernetes 1.28 at least.
    pub indexed: bool,
}

/// The Job controller's finalizer: the one that the reaper knows how to have released.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

impl PodFacts {
    /// How long past its deletion deadline it is; negative while it is within grace.
    pub fn overdue(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.deletion_deadline)
    }

    /// When its deletion was asked for: the deadline is that moment and the grace. A later request with a shorter
    /// grace moves the deadline and the grace alike.
    pub fn deletion_requested(&self) -> Option<Timestamp> {
        let grace_seconds = self.grace_seconds.filter(|_| !self.supposed)?;
        deletion_requested(self.deletion_deadline, grace_seconds)
    }

    /// Whether another may run beside it: its controller makes such pods, and it has no storage of its own. A Job that
    /// still holds its finalizer waits for this pod's end, because its author forbade overlap. A second pod of a `DaemonSet`
    /// would be on the same disks. Kinds count only in Kubernetes' own API groups: others use the same names.
    pub fn interchangeable(&self) -> bool {
        let made = self.made_by("ReplicaSet", "apps")
            || self.made_by("ReplicationController", "")
            || self.made_by("Job", "batch") && !self.held_by_job();
        made && self.own_volume.is_none() && self.claims.iter().all(|claim| claim.ephemeral)
    }

    /// Whether it owns a claim that none of its generic ephemeral volumes made: such a claim would go with it.
    pub fn owns_a_claim(&self) -> bool {
        let mut claims = self.claims.iter();
        claims.any(|claim| claim.owned != Owned::No && !claim.ephemeral)
    }

    /// Whether a claim would go with it, or may: whose one is that could not be read is not known.
    pub fn may_own_a_claim(&self) -> bool {
        let unknown = |claim: &ClaimFacts| {
            matches!(claim.state, ClaimState::NotLookedUp | ClaimState::Unread(_))
        };
        self.owns_a_claim() || self.claims.iter().any(unknown)
    }

    /// Whether its controller is of that kind, in that API group.
    pub fn made_by(&self, kind: &str, group: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.kind == kind)
            && self
                .controller
                .as_ref()
                .is_some_and(|its| its.group() == group)
    }

    /// Whether the Job controller still holds it.
    pub fn held_by_job(&self) -> bool {
        self.finalizers
            .iter()
            .any(|finalizer| finalizer == JOB_TRACKING)
    }

    /// The volumes that its claims are bound to, where those were asked about.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeFacts> {
        let bound = self.claims.iter().filter_map(ClaimFacts::bound);
        bound.map(|claim| &claim.volume)
    }
}

/// When a deletion was asked for that has to be over at `deadline` after so much grace.
pub fn deletion_requested(deadline: Timestamp, grace_seconds: i64) -> Option<Timestamp> {
    (grace_seconds >= 0).then(|| {
        deadline
            .checked_sub(SignedDuration::from_secs(grace_seconds))
            .ok()
    })?
}

/// What is known about any pod, Terminating or not, before something happens to it. There may be tens of thousands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSummary {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// `status.phase`.
    pub phase: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Its deletion was asked for.
    pub terminating: bool,
    /// It runs, is not Terminating, and does not say that it is not Ready.
    pub serves: bool,
    /// The claims that it uses, a generic ephemeral volume's among them.
    pub claims: Vec<String>,
    /// Its phase is `Succeeded` or `Failed`: a delete takes it at once.
    pub finished: bool,
    /// The controller that made it, and makes another when it is gone.
    pub controller: Option<Owner>,
    /// What people call that: the Deployment of a `ReplicaSet`.
    pub workload: Option<Owner>,
    /// Why Kubernetes never evicts it from a silent node.
    pub stays: Option<Stay>,
    /// For how many seconds it tolerates a node whose kubelet is silent; `None` is for ever.
    pub tolerates_silence: Option<i64>,
    /// For how many seconds it tolerates a node whose kubelet says that it is not Ready; `None` is for ever.
    pub tolerates_not_ready: Option<i64>,
    /// How many seconds it is given to end.
    pub grace: i64,
}

impl PodSummary {
    /// Whether Kubernetes would evict it from a dead node, so that a run meets it Terminating.
    pub fn evicted(&self) -> bool {
        self.terminating || (self.stays.is_none() && !self.finished)
    }

    /// Whether it runs, or is about to, and its deletion was not requested.
    pub fn is_unasked(&self) -> bool {
        !self.terminating && !self.finished
    }
}

/// Why a pod stays on a node that is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stay {
    /// It mirrors a static pod.
    Static,
    /// Its `DaemonSet` has it tolerate every failure of its node.
    DaemonSet,
    /// It tolerates a silent node without a time limit.
    Tolerates,
}

entry! {
    /// The object that made a pod.
    #[derive(Display)]
    #[display("{kind}/{name}")]
    pub struct Owner as "OwnerEntry" {
        /// Such as `StatefulSet`.
        pub kind: String,
        /// Its name.
        pub name: String,
    }
}

/// What distinguishes an object from others of its kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Its UID.
    pub uid: Uid,
}

impl Identity {
    /// The API's group, without its version.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

/// A claim that a pod uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// The claim's name, in the pod's namespace.
    pub name: String,
    /// The pod's generic ephemeral volume asks for it, so that it is to be this pod's alone.
    pub ephemeral: bool,
    /// Other pods of the node that use it.
    pub users: BTreeSet<String>,
    /// Whether the pod's `StatefulSet` creates it again, for that pod alone; else what stands against it. `None` where it
    /// was not asked, because the claim does not keep its pod on the node.
    pub renewed: Option<Result<(), Doubt>>,
    /// Whether it goes with the pod.
    pub owned: Owned,
    /// What is known about it.
    pub state: ClaimState,
}

impl ClaimFacts {
    /// A claim that was not looked up yet.
    pub fn not_looked_up(name: String, ephemeral: bool) -> Self {
        Self {
            name,
            ephemeral,
            users: BTreeSet::new(),
            renewed: None,
            owned: Owned::No,
            state: ClaimState::NotLookedUp,
        }
    }

    /// As the pod names it: by its name, and whether a generic ephemeral volume of the pod asks for it.
    pub fn named(&self) -> (&str, bool) {
        (&self.name, self.ephemeral)
    }

    /// What is known about it, where it is bound.
    pub fn bound(&self) -> Option<&BoundClaim> {
        match &self.state {
            ClaimState::Bound(bound) => Some(bound),
            _ => None,
        }
    }
}

/// What stands against giving a claim up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// As a phrase.
    pub why: String,
    /// It is so; else it could only not be found out.
    pub proved: bool,
}

impl Doubt {
    /// A doubt that is a fact.
    pub fn proved(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            proved: true,
        }
    }

    /// A doubt because something could not be found out.
    pub fn unread(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            proved: false,
        }
    }
}

/// Whether a pod owns a claim, which the pod's UID proves: the claim goes with its last owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owned {
    /// It does not.
    No,
    /// It does, and nothing else wants the claim.
    Alone,
    /// It does, and something may want the claim again: why, as a phrase.
    MayBeWanted(String),
}

/// What a look at a claim found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundClaim {
    /// UIDs of its owners.
    pub owners: Vec<Uid>,
    /// What is known about it.
    pub state: ClaimState,
}

impl From<ClaimState> for FoundClaim {
    /// A claim that was not found has no owner.
    fn from(state: ClaimState) -> Self {
        Self {
            owners: Vec::new(),
            state,
        }
    }
}

/// What is known about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// Nothing was asked about it, because a rule decides that comes before those about claims.
    NotLookedUp,
    /// The claim, or its volume, could not be read.
    Unread(Unread),
    /// It does not exist: it pins nothing.
    Absent,
    /// It exists and names no volume that exists: lost, or not bound.
    WithoutVolume {
        /// The volume that is missing, where the claim names one.
        missing: Option<String>,
        /// The claim's phase.
        phase: Option<String>,
    },
    /// It is bound.
    Bound(BoundClaim),
}

/// A claim that is bound to a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundClaim {
    /// `metadata.uid`.
    pub uid: Uid,
    /// Several nodes may write its raw disk at once: `ReadWriteMany` with volumeMode `Block`.
    pub shared_disk: bool,
    /// Annotation `pod-reaper.io/scratch: "true"`.
    pub scratch: bool,
    /// A person's answer: annotation `pod-reaper.io/give-up`.
    pub give_up: Option<String>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Its resource version, unless it is opted out, or a finalizer of its own would hold it.
    pub version: Option<ResourceVersion>,
    /// Its volume.
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
    /// It is a disk on a storage network that two machines may write at once (in-tree `fc` or `iscsi`, not read-only): which.
    pub disk: Option<&'static str>,
    /// `spec.nodeAffinity.required`: one of these terms must hold on a node.
    pub affinity: Vec<AffinityTerm>,
}

/// Where a volume's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// `spec.local`, with its path.
    Local(String),
    /// `spec.hostPath`, with its path.
    HostPath(String),
    /// Longhorn's `dataLocality: strict-local`: on the node that uses it, without any affinity.
    StrictLocal,
    /// Behind a driver, which says by affinity where it can be reached.
    Driver,
}

/// Requirements that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AffinityTerm {
    /// Of labels; a term without any matches no node.
    pub requirements: Vec<Requirement>,
    /// It asks for a field of the node as well.
    pub fields: bool,
    /// Real nodes that satisfy it, zones and regions left out: all of them, or two of more. `None` where it was not asked,
    /// because it is known without that where the volume can be reached.
    pub satisfied_by: Option<Read<Vec<String>>>,
}

/// A requirement on one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, …
    pub operator: String,
    /// The values it speaks of.
    pub values: Vec<String>,
}

impl Requirement {
    /// Whether it asks for a zone or a region: these hold many nodes.
    pub fn of_zone(&self) -> bool {
        self.key.ends_with("zone") || self.key.ends_with("region")
    }
}
