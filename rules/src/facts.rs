//! The facts: what was read about the cluster, as plain types.
//!
//! Deciding works on these types alone. They hold no Kubernetes type, so that the rules can be read
//! and tested without knowledge of the API's or a snapshot's format. `kubernetes` makes the facts
//! of one object; `source` completes those of claims and of the cluster.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use derive_more::{Deref, Display, From};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

use crate::codes::{codes, entry};

/// A fact, or why it is not known. An unknown fact never permits a delete.
pub type Read<T> = Result<T, Unread>;

/// Declares texts of the API that are compared, and never understood.
macro_rules! texts {
    ($($(#[$about:meta])* $name:ident)*) => {$(
        $(#[$about])*
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
        pub struct $name(String);
    )*};
}

texts! {
    /// `metadata.uid`, which distinguishes an object from all others, even those of its name.
    Uid
    /// `metadata.resourceVersion`, which distinguishes an object's state from its earlier states.
    ResourceVersion
}

impl Uid {
    /// Returns the UID's text.
    pub fn as_str(&self) -> &str {
        self
    }
}

/// Why a fact could not be read, as a phrase for the report ("leases … is forbidden").
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub struct Unread(pub String);

/// The facts of one run about the cluster at one moment, without its Terminating pods: those become
/// the plan.
#[derive(Debug, Clone, Default)]
pub struct ClusterFacts {
    /// The moment to judge at: the API server's clock, or the snapshot's newest observation,
    /// or `--now`.
    pub now: Timestamp,
    /// The cluster's name, as the program reached it; `None` for a snapshot.
    pub cluster_name: Option<String>,
    /// The nodes that were looked at, by name. A node that is missing here was not looked at.
    pub nodes: BTreeMap<String, NodeRead>,
    /// The number of NotReady nodes, for the breaker.
    pub census: Census,
    /// The traits of the real nodes that were read for the census, and how many of those nodes are
    /// NotReady.
    pub traits: Traits,
    /// The `VolumeAttachments`, by the node that they name.
    pub attachments: BTreeMap<String, Vec<Attachment>>,
    /// The number of nodes in the cluster, Ready ones included.
    pub node_count: usize,
    /// The active pods in matching namespaces, by node: those that have not finished, and whose
    /// deletion was not requested.
    pub active: BTreeMap<String, Vec<PodSummary>>,
    /// The number of namespaces, if the namespace filter matches none of them.
    pub unmatched_namespaces: Option<usize>,
    /// The number of Terminating pods on Ready nodes that are left out, if the source shows them
    /// without being asked.
    pub on_ready_nodes: usize,
    /// Why the API server's clock is not believed, as a sentence, if the living nodes contradict it.
    pub clock: Option<String>,
    /// The Ready copies of the workloads whose data a person may give up.
    pub copies: Copies,
    /// The reads that failed although they should not have.
    pub errors: Vec<ReadError>,
    /// The facts that the source cannot show by its nature (a snapshot without leases, say), as
    /// sentences.
    pub unseen: Vec<String>,
}

impl ClusterFacts {
    /// Returns the result of reading `pod`'s node; `None` if the pod has no node, or the node was
    /// not looked at.
    pub fn node_of(&self, pod: &PodFacts) -> Option<&NodeRead> {
        self.nodes.get(pod.node.as_ref()?)
    }

    /// Returns the facts of the node `name`, if they are known.
    pub fn known(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)?.known()
    }

    /// Returns the facts of `pod`'s node, if they are known.
    pub fn known_node(&self, pod: &PodFacts) -> Option<&NodeFacts> {
        self.known(pod.node.as_ref()?)
    }

    /// Lists the nodes that are known.
    pub fn known_nodes(&self) -> impl Iterator<Item = &NodeFacts> + Clone {
        self.nodes.values().filter_map(NodeRead::known)
    }

    /// Returns how long `pod` is past the moment when it has to be gone; negative before that.
    pub fn overdue(&self, pod: &PodFacts) -> SignedDuration {
        self.now.duration_since(pod.due(self.known_node(pod)))
    }

    /// Reports whether `pod` is on a node that is Ready. Such pods are looked at only with `--all`.
    pub fn on_ready_node(&self, pod: &PodFacts) -> bool {
        self.known_node(pod)
            .is_some_and(|node| node.ready == Ready::True)
    }
}

/// The namespaces, by name.
pub type Namespaces = BTreeMap<String, NamespaceFacts>;

/// A namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// The value of `pod-reaper.io/skip` that opts the namespace out, if one does.
    pub opted_out: Option<String>,
    /// The deletion of the namespace was requested, so everything in it goes.
    pub deleted: bool,
}

/// Returns the facts of the namespace `name`. A namespace that is missing from the list may be a
/// malformed one, so that counts as unread.
pub fn namespace(namespaces: &Read<Namespaces>, name: &str) -> Read<NamespaceFacts> {
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

/// The result of looking up one node by name.
#[derive(Debug, Clone)]
pub enum NodeRead {
    /// The node exists.
    Known(NodeFacts),
    /// The node does not exist.
    Gone,
    /// A failed read hides whether the node exists.
    Unread(Unread),
}

impl NodeRead {
    /// Returns the node's facts, if it exists and was read.
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
    /// `metadata.uid`. A node that was deleted and registered again has another one.
    pub uid: Uid,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Status of the `Ready` condition.
    pub ready: Ready,
    /// Reason of the `Ready` condition, such as `NodeStatusUnknown`.
    pub ready_reason: Option<String>,
    /// `lastTransitionTime` of the `Ready` condition. The kubelet's own clock sets it if the
    /// kubelet wrote the condition.
    pub ready_since: Option<Timestamp>,
    /// The time at which the node controller set the not-ready or unreachable taint `NoSchedule`,
    /// by the control plane's clock.
    pub tainted_since: Option<Timestamp>,
    /// Label `kubernetes.io/hostname`, to which local volumes are bound.
    pub hostname: Option<String>,
    /// The zone that the node's labels name.
    pub zone: Option<Zone>,
    /// The last report of each source on the node's own machine.
    pub heard: Vec<Heard>,
    /// The last renewal of the node's own lease; `None` if it was never renewed.
    pub renewed: Option<Renewal>,
    /// Why the node's own lease could not be read, as a phrase, if so. It may be a sign of life.
    pub unread_lease: Option<Unread>,
    /// The other Leases that name the node or a pod on it. The error says why they are not known:
    /// they may be a sign of life.
    pub named_by: Read<BTreeSet<NamedBy>>,
    /// The marks that say that the machine's power or disks are cut.
    pub fenced: Vec<FencingMark>,
    /// A person's answer: annotation `pod-reaper.io/powered-off`.
    pub powered_off: Option<String>,
    /// The node carries the taint `node.kubernetes.io/out-of-service`: the pod garbage collector
    /// deletes its Terminating pods.
    pub out_of_service: bool,
    /// The leaf marks, if the node stands for something other than one machine.
    pub leaf: Option<Leaf>,
    /// The node carries the control-plane role.
    pub control_plane: bool,
    /// Nothing keeps new pods off the node: it is not cordoned, and has no taint that reserves it for
    /// the control plane.
    pub open: bool,
    /// The value of `pod-reaper.io/skip`, annotation or label, that opts the node out, if one does.
    pub opted_out: Option<String>,
}

impl NodeFacts {
    /// Returns the time since which the node has been NotReady, as known at `now`.
    pub fn not_ready_since(&self, now: Timestamp) -> Option<Timestamp> {
        not_ready_since(self.ready_since, self.tainted_since, now)
    }

    /// Returns the newest report of the node's machine.
    pub fn last_heard(&self) -> Option<&Heard> {
        self.heard.iter().max_by_key(|heard| heard.at)
    }

    /// Returns the last report of the source `by`.
    pub fn heard_by(&self, by: SignBy) -> Option<&Heard> {
        self.heard.iter().find(|heard| heard.by == by)
    }

    /// Reports whether it is not known if the node's API server lives: no API server's lease that
    /// could be read names the host of this control plane node.
    pub fn lacks_api_server(&self) -> bool {
        self.control_plane && self.named_by.is_ok() && self.heard_by(SignBy::ApiServer).is_none()
    }

    /// Adds reports. Of each source only the last one is kept.
    pub fn hear(&mut self, reports: impl IntoIterator<Item = Heard>) {
        self.heard.extend(reports);
        // Of those at one time it is always the same, whatever the order in which they were read.
        self.heard
            .sort_by(|a, b| (a.by, Reverse(a.at), &a.what).cmp(&(b.by, Reverse(b.at), &b.what)));
        self.heard.dedup_by_key(|it| it.by);
    }

    /// Reports whether the node's machine cannot have learnt of a deletion that was requested at
    /// `when`: the kubelet was silent by then. Only the node and its own lease are asked.
    fn never_learnt(&self, when: Timestamp) -> bool {
        let own = self.heard.iter().filter(|heard| heard.by.is_of_node());
        self.ready != Ready::False
            && self.heard_by(SignBy::Lease).is_some()
            && own
                .map(|heard| heard.at)
                .max()
                .is_some_and(|last| when.duration_since(last) > LEARNS_WITHIN)
    }
}

/// A kubelet that was heard this long before a deletion, or later, may have learnt of it.
const LEARNS_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The labels of a node's region and zone.
pub const ZONE_LABELS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// The values of a node's labels [`ZONE_LABELS`]; at least one of them is there. Kubernetes tells
/// zones apart by both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone(pub [Option<String>; 2]);

impl Zone {
    /// Returns the label selector of the zone's nodes.
    pub fn selector(&self) -> String {
        let labels = ZONE_LABELS.iter().zip(&self.0);
        let labels = labels.map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => format!("!{key}"),
        });
        labels.collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().flatten().map(String::as_str);
        f.write_str(&words.collect::<Vec<_>>().join("/"))
    }
}

/// A Lease whose holder names a node, its host or a pod on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedBy {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub lease: String,
    /// The name that its holder begins with.
    pub holder: String,
}

/// The last renewal of a node's lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Renewal {
    /// `spec.renewTime`, by the node's own clock.
    pub said: Option<Timestamp>,
    /// The API server's stamp on that field.
    pub stamped: Option<Timestamp>,
}

/// Returns the time since which a node has been NotReady, as known at `now`: the later of the times
/// of its condition (`said`) and its taint (`tainted`). A condition's time in the future does not
/// count: that kubelet's clock is wrong.
pub fn not_ready_since(
    said: Option<Timestamp>,
    tainted: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    said.filter(|since| *since <= now).max(tainted)
}

entry! {
    /// A report of a node's own machine.
    pub struct Heard as "SignEntry" {
        /// Who reported: `lease`, `node-problem-detector`, `eks-node-monitoring-agent`,
        /// `virt-handler`, `kube-apiserver`, `other-lease`, `program`, or `kubelet`, which says that
        /// the node is not Ready: Kubernetes takes that back as soon as the kubelet falls silent.
        pub by: SignBy,
        /// When: by the API server's stamp or the node's own clock, whichever is later and not in
        /// the future; of `kubelet` the moment of judging.
        // As a fact, the time may be ahead of the clock by which a run judges. It is then later
        // than anything that this clock has seen.
        #[serde(serialize_with = "whole_seconds")]
        pub at: Timestamp,
        /// Which one, where the machine may have several: the Lease with its holder, or the program
        /// with its pod.
        pub what: Option<String>,
    }
}

impl Heard {
    /// Returns the report with its time cut to `latest`, so that people never read of a time in the
    /// future.
    #[must_use]
    pub fn no_later_than(&self, latest: Timestamp) -> Self {
        Self {
            at: self.at.min(latest),
            ..self.clone()
        }
    }
}

/// A mark on a node which says that its machine is certainly off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingMark {
    /// The mark, as a phrase.
    pub mark: String,
    /// A moment by which the mark had been set, by a stamp of the API server; `None` if no stamp
    /// tells. The mark may be much older.
    pub set_by: Option<Timestamp>,
}

impl FencingMark {
    /// Reports whether the mark may still be true if the machine was last heard at `heard`. A mark
    /// may be left behind: a machine that was heard after it was set is on.
    pub fn stands(&self, heard: Option<Timestamp>) -> bool {
        self.set_by
            .zip(heard)
            .is_none_or(|(set_by, heard)| heard <= set_by)
    }
}

/// The most by which two API servers' clocks may differ. A stamp may be that far ahead of the
/// answer's `Date`, or of another server's stamp.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);

/// Serializes a time in whole seconds. No verdict depends on the fractions.
pub fn whole_seconds<T: Copy + Into<Option<Timestamp>>, S: Serializer>(
    at: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    (*at).into().map(|at| format!("{at:.0}")).serialize(to)
}

codes! {
    /// The source of a report from a node.
    pub enum SignBy {
        /// The kubelet renewed its lease.
        Lease = "lease",
        /// node-problem-detector wrote the heartbeat of one of its conditions.
        ProblemDetector = "node-problem-detector",
        /// The node monitoring agent of EKS wrote the heartbeat of one of its conditions.
        NodeMonitoring = "eks-node-monitoring-agent",
        /// `KubeVirt`'s virt-handler wrote its annotation.
        VirtHandler = "virt-handler",
        /// The API server of a control plane node renewed its identity lease.
        ApiServer = "kube-apiserver",
        /// A holder with the name of the node, or of a pod on it, renewed another Lease.
        OtherLease = "other-lease",
        /// A program in a Terminating pod wrote to its own pod.
        Program = "program",
        /// The kubelet says that `Ready` is `False`.
        Kubelet = "kubelet",
    }
}

impl SignBy {
    /// Reports whether the node object and the node's own lease show the report.
    pub fn is_of_node(self) -> bool {
        !matches!(self, Self::ApiServer | Self::OtherLease | Self::Program)
    }
}

codes! {
    /// Status of a node's `Ready` condition, as `kubectl get node -o yaml` shows it.
    pub enum Ready {
        /// The kubelet says that the node is Ready.
        True = "True",
        /// The kubelet says that the node is not Ready.
        False = "False",
        /// The kubelet no longer reports.
        Unknown = "Unknown",
        /// The node has no `Ready` condition.
        Absent = "absent",
    }
}

/// The kind of thing that a leaf node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    /// A leaf cluster of Kosmos.
    Kosmos,
    /// A program without a machine: its pods run elsewhere.
    Virtual,
    /// A machine at the edge, which works on without its cluster.
    Edge,
    /// A node that `--leaf-node-selector` selects.
    Selected,
}

/// Why a node counts as a leaf node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The kind of the first mark that was seen.
    pub kind: LeafKind,
    /// The product whose nodes bear that mark; empty for the operator's selector.
    pub maker: &'static str,
    /// The marks that were seen, as phrases ("label kosmos.io/node").
    pub marks: Vec<String>,
    /// The leaf cluster, if the node names it.
    pub cluster: Option<String>,
}

/// The count of real nodes for the breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Census {
    /// No count was needed: no pod is to be judged, or few nodes are NotReady and a real node is
    /// Ready.
    #[default]
    NotNeeded,
    /// The nodes were counted, without leaf nodes and those that were put away.
    Counted {
        /// All real nodes.
        all: Tally,
        /// The real nodes without the control-plane role.
        workers: Tally,
        /// The nodes of each zone.
        zones: BTreeMap<Zone, Tally>,
        /// True if a pod could start on one of the nodes.
        room: bool,
    },
    /// The nodes could not be counted.
    Unread(Unread),
}

/// The number of NotReady nodes among a group of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The nodes that are NotReady.
    pub not_ready: usize,
    /// All nodes of the group, Ready or not.
    pub total: usize,
}

/// The traits that real nodes may have in common, such as labels and versions.
#[derive(Debug, Clone, Default)]
pub struct Traits {
    /// All nodes whose traits were counted, so that the shares are of the same nodes.
    pub nodes: Tally,
    /// The nodes that have a trait, by the trait as a phrase.
    pub by_trait: BTreeMap<String, Tally>,
}

/// The role of a node in the breaker's count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The node's `Ready` is `True`.
    pub ready: bool,
    /// The node is a leaf node.
    pub leaf: bool,
    /// The node carries the control-plane role.
    pub control_plane: bool,
    /// Nothing keeps new pods off the node: it is not cordoned, and has no taint that reserves it for
    /// the control plane.
    pub open: bool,
    /// The time since which the node is NotReady; `None` if it is Ready or the time is not known.
    pub since: Option<Timestamp>,
    /// The zone that the node's labels name.
    pub zone: Option<Zone>,
    /// The node has, or may have, a pod that no `DaemonSet` made and that mirrors no static pod.
    pub occupied: bool,
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
    /// `metadata.name`. Other pods may share it, in other namespaces or at other times.
    pub name: String,
    /// `metadata.uid`, which identifies the pod.
    pub uid: Uid,
    /// `metadata.resourceVersion` of the state that was judged.
    pub resource_version: ResourceVersion,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// The owner that is the pod's controller; another owner if none is.
    pub owner: Option<Owner>,
    /// The workload as people know it: the Deployment above a `ReplicaSet`, the `CronJob` above a
    /// Job, both deduced from names; otherwise the owner.
    pub workload: Option<Owner>,
    /// The API version and UID of the owner, if it is the pod's controller.
    pub controller: Option<Identity>,
    /// A selector by the pod's own labels for the pods of its controller, if that gives each pod a
    /// new name.
    pub siblings: Option<String>,
    /// The deletion is only supposed, by `what-if`, so no answer can belong to it.
    pub supposed: bool,
    /// `metadata.deletionTimestamp`, which already includes the grace period.
    pub deletion_deadline: Timestamp,
    /// `metadata.deletionGracePeriodSeconds`; 0 once a force delete was sent.
    pub grace_seconds: Option<i64>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<String>,
    /// `status.phase` is `Succeeded` or `Failed`.
    pub finished: bool,
    /// The pod mirrors a static pod.
    pub mirror: bool,
    /// The value of `pod-reaper.io/skip`, annotation or label, that opts the pod out, if one does.
    pub opted_out: Option<String>,
    /// The pod's namespace.
    pub in_namespace: Read<NamespaceFacts>,
    /// Annotation `pod-reaper.io/after-reap`.
    pub after_reap: Option<String>,
    /// A person's answer: annotation `pod-reaper.io/reap`.
    pub reap: Option<String>,
    /// The claim templates of the pod's `StatefulSet`, if those were read. Sets with equal
    /// templates are one workload if their names are numbers of one series.
    pub templates: Option<String>,
    /// The claims that the pod uses. Either all of them were looked up, or none.
    pub claims: Vec<ClaimFacts>,
    /// The pod's first volume that is a writable disk on a storage network, as a phrase.
    pub own_disk: Option<String>,
    /// The pod carries the label `apps.kubernetes.io/pod-index`, so its `StatefulSet` controller is
    /// that of Kubernetes 1.28 or later.
    pub indexed: bool,
}

/// The Job controller's finalizer, the one that the program knows how to have released.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

impl PodFacts {
    /// Returns the moment from which the pod counts as overdue: its deletion deadline or, if the
    /// machine of `node` never learnt of the deletion, the request. No grace period is then waited
    /// for.
    pub fn due(&self, node: Option<&NodeFacts>) -> Timestamp {
        let requested = self.deletion_requested();
        let requested = requested.filter(|when| node.is_some_and(|node| node.never_learnt(*when)));
        requested.unwrap_or(self.deletion_deadline)
    }

    /// Returns the time at which the deletion was requested, which is the deadline less the grace
    /// period. A later request with a shorter grace period moves both alike.
    pub fn deletion_requested(&self) -> Option<Timestamp> {
        let grace_seconds = self.grace_seconds.filter(|_| !self.supposed)?;
        deletion_requested(self.deletion_deadline, grace_seconds)
    }

    /// Reports whether a claim would go with the pod that nothing proves unwanted, or may: the
    /// owners of a claim that could not be read are not known.
    pub fn may_take_a_claim(&self) -> bool {
        self.claims.iter().any(|claim| {
            matches!(claim.state, ClaimState::NotLookedUp | ClaimState::Unread(_))
                || matches!(claim.goes, Goes::Unwanted(_) | Goes::MayBeWanted(_))
        })
    }

    /// Reports whether the pod's controller is of that kind, in that API group.
    pub fn made_by(&self, kind: &str, group: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.kind == kind)
            && self
                .controller
                .as_ref()
                .is_some_and(|its| its.group() == group)
    }

    /// Reports whether the pod's controller is of an API group that is none of Kubernetes' own.
    pub fn made_by_an_operator(&self) -> bool {
        let group = self.controller.as_ref().map_or("", Identity::group);
        group.contains('.') && !group.ends_with(".k8s.io")
    }

    /// Reports whether the Job controller still holds the pod.
    pub fn held_by_job(&self) -> bool {
        self.finalizers
            .iter()
            .any(|finalizer| finalizer == JOB_TRACKING)
    }

    /// Lists the pod's claims that are bound, if the claims were looked up.
    pub fn bound_claims(&self) -> impl Iterator<Item = &BoundClaim> {
        self.claims.iter().filter_map(ClaimFacts::bound)
    }

    /// Lists the volumes to which the pod's claims are bound, if the claims were looked up.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeFacts> {
        self.bound_claims().map(|claim| &claim.volume)
    }
}

/// Returns the time at which a deletion was requested, from its `deadline` and its grace period;
/// `None` if that is negative or too long.
pub fn deletion_requested(deadline: Timestamp, grace_seconds: i64) -> Option<Timestamp> {
    (grace_seconds >= 0).then(|| {
        deadline
            .checked_sub(SignedDuration::from_secs(grace_seconds))
            .ok()
    })?
}

/// The facts about any pod, Terminating or not. There may be tens of thousands of these.
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
    /// The pod's deletion was requested.
    pub terminating: bool,
    /// The pod runs, is not Terminating, and does not say that it is not Ready.
    pub serves: bool,
    /// The claims that the pod uses, including those of generic ephemeral volumes.
    pub claims: Vec<String>,
    /// The phase is `Succeeded` or `Failed`: a delete removes the pod at once.
    pub finished: bool,
    /// The controller that made the pod, and makes another when it is gone.
    pub controller: Option<Owner>,
    /// The workload as people know it: the Deployment above a `ReplicaSet`, say.
    pub workload: Option<Owner>,
    /// Why Kubernetes never evicts the pod from a silent node, if so.
    pub stays: Option<Stay>,
    /// For how many seconds the pod tolerates a node whose kubelet is silent; `None` is for ever.
    pub tolerates_silence: Option<i64>,
    /// For how many seconds the pod tolerates a node whose kubelet says that it is not Ready;
    /// `None` is for ever.
    pub tolerates_not_ready: Option<i64>,
    /// The pod's grace period in seconds.
    pub grace: i64,
}

impl PodSummary {
    /// Reports whether Kubernetes would evict the pod from a dead node, so that a run finds it
    /// Terminating.
    pub fn evicted(&self) -> bool {
        self.terminating || (self.stays.is_none() && !self.finished)
    }

    /// Reports whether the pod uses the claim, or may do so.
    pub fn uses(&self, claim: &str) -> bool {
        let mut claims = self.claims.iter();
        claims.any(|used| used == claim || used == ANY_CLAIM)
    }

    /// Reports whether the pod has not finished and its deletion was not requested.
    pub fn is_active(&self) -> bool {
        !self.terminating && !self.finished
    }

    /// Reports whether the pod keeps `claim`, whose deletion was requested. A pod without a node
    /// keeps none (`pvc_protection_controller.go`), and is not given one as long as it uses such a
    /// claim.
    pub fn keeps(&self, claim: &str) -> bool {
        self.is_active() && self.node.is_some() && self.claims.iter().any(|used| used == claim)
    }
}

/// Why a pod stays on a silent node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stay {
    /// The pod mirrors a static pod.
    Static,
    /// The pod's `DaemonSet` has it tolerate every failure of its node.
    DaemonSet,
    /// The pod tolerates a silent node without a time limit.
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

/// The API version and UID of an object, which distinguish it from others of its kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The API version, such as `apps/v1`.
    pub api_version: String,
    /// Its UID.
    pub uid: Uid,
}

impl Identity {
    /// Returns the API group, without the version; empty for the core group.
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
    /// True if a generic ephemeral volume of the pod asks for the claim, which is then to be this
    /// pod's alone.
    pub ephemeral: bool,
    /// Other pods that use the claim: those of its node and, once a claim of the pod is declared
    /// scratch, carries an answer or is being deleted, all of the namespace.
    pub users: BTreeSet<String>,
    /// Who creates the claim again, for that pod alone; the error is the objection. `None` if none
    /// of the pod's claims keeps it on the node.
    pub renewed: Option<Result<Renewer, Doubt>>,
    /// The claim's deletion was requested. It only waits for the pods that use it.
    pub deleted: bool,
    /// Whether the claim goes with the pod.
    pub goes: Goes,
    /// The result of looking the claim up.
    pub state: ClaimState,
}

/// The most claims of one pod that are kept and looked up.
pub const MOST_CLAIMS: usize = 64;
/// The name that stands for any claim of a namespace. No claim can have it.
pub const ANY_CLAIM: &str = "*";

impl ClaimFacts {
    /// Returns what stands for the claims of a pod that are too many to look up, for this cause.
    pub fn any(cause: String) -> Self {
        Self {
            state: ClaimState::Unread(Unread(cause)),
            ..Self::not_looked_up(ANY_CLAIM.to_owned(), false)
        }
    }

    /// Returns a claim that was not looked up yet.
    pub fn not_looked_up(name: String, ephemeral: bool) -> Self {
        Self {
            name,
            ephemeral,
            users: BTreeSet::new(),
            renewed: None,
            deleted: false,
            goes: Goes::No,
            state: ClaimState::NotLookedUp,
        }
    }

    /// Returns how the pod refers to the claim: by its name, and whether a generic ephemeral volume
    /// of the pod asks for it.
    pub fn named(&self) -> (&str, bool) {
        (&self.name, self.ephemeral)
    }

    /// Returns the facts about the claim and its volume, if it is bound.
    pub fn bound(&self) -> Option<&BoundClaim> {
        match &self.state {
            ClaimState::Bound(bound) => Some(bound),
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
    /// The claim goes, or waits for other pods, and nothing wants it from this pod. Names the pod
    /// that keeps the claim, if one does.
    Unwanted(Option<String>),
    /// The claim goes, but something may want it again. Holds the cause, as a phrase.
    MayBeWanted(String),
}

/// The result of looking up a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundClaim {
    /// The UIDs of the claim's owners.
    pub owners: Vec<Uid>,
    /// The claim's deletion was requested.
    pub deleted: bool,
    /// The claim's state.
    pub state: ClaimState,
}

impl From<ClaimState> for FoundClaim {
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
    /// The claim was not looked up, because a rule before those about claims decides.
    NotLookedUp,
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
    /// Whether the volume is attached to the pod's node, or the driver attaches volumes at all.
    pub attaches: Read<bool>,
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
    /// are more. `None` if that was not asked.
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
    /// The values that the operator compares with.
    pub values: Vec<String>,
}

impl Requirement {
    /// Reports whether the requirement is about a zone or a region, which hold many nodes.
    pub fn of_zone(&self) -> bool {
        self.key.ends_with("zone") || self.key.ends_with("region")
    }
}

/// How many pods of a workload are Ready on nodes that are not NotReady, by namespace and
/// [`PodFacts::series`]. It is only known of workloads whose data a person may give up.
pub type Copies = BTreeMap<(String, Owner), Read<usize>>;

impl PodFacts {
    /// Returns the workload with its numbered siblings, if the claim templates are known:
    /// `impala-executor-000` and `-001` are `impala-executor-*`.
    pub fn series(&self) -> Option<Owner> {
        let Owner { kind, name } = self.workload.as_ref().or(self.owner.as_ref())?;
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let is_numbered =
            stem.len() < name.len() && stem.ends_with('-') && self.templates.is_some();
        Some(Owner {
            kind: kind.clone(),
            name: if is_numbered {
                format!("{stem}*")
            } else {
                name.clone()
            },
        })
    }
}

impl Owner {
    /// Reports whether `other` is this workload, or one of this series.
    pub fn includes(&self, other: &Self) -> bool {
        let number = self
            .name
            .strip_suffix('*')
            .and_then(|stem| other.name.strip_prefix(stem));
        let is_numbered = |rest: &str| rest.bytes().all(|letter| letter.is_ascii_digit());
        self.kind == other.kind && (self.name == other.name || number.is_some_and(is_numbered))
    }
}
