//! The facts: plain types for everything that was read about the cluster.
//!
//! The rules work on these types alone. The types contain no Kubernetes type, so that the rules can
//! be read and tested without knowledge of the format of the API or of a snapshot. The module
//! `kubernetes` makes the facts of one object; `source` completes those of PVCs and of the cluster.

mod claim;
mod node;
mod pod;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use derive_more::{Deref, Display, From};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::claim::{
    AffinityTerm, ClaimFacts, ClaimName, ClaimRead, ClaimState, Copies, MAX_CLAIMS_PER_POD, Place,
    Requirement, SetFacts, Sharing, Storage, Unneeded, VolumeFacts,
};
pub use self::node::{
    CLOCK_SKEW, Distribution, FencingMark, Heartbeat, KubeletSays, Leaf, LeafKind, NodeFacts,
    OUT_OF_SERVICE, Quorum, Ready, Roles, Room, SignBy, Taint, Toleration, ZONE_LABELS, Zone,
    not_ready_since,
};
pub use self::pod::{
    Containers, Deletion, FOREGROUND, Identity, JOB_TRACKING, OptOut, Owner, PodFacts, PodsOf,
    REPLACED_EARLY, is_held_until_the_end,
};
use crate::{codes::entry, words::Foreign};

/// A fact, or why it is not known. An unknown fact never allows a delete.
pub type Read<T> = Result<T, Unread>;

/// Declares types for strings of the API that are only compared, never interpreted.
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
    /// `metadata.uid`, which distinguishes an object from all others, even from those of the same
    /// name.
    Uid
    /// `metadata.resourceVersion`, which distinguishes an object's state from its earlier states.
    ResourceVersion
}

impl Uid {
    pub fn as_str(&self) -> &str {
        self
    }
}

/// Why a fact could not be read, as a phrase for the report ("leases … is forbidden").
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub struct Unread(pub String);

/// The facts of one run about the cluster at one moment, without its Terminating pods: those pods
/// go into the plan.
#[derive(Debug, Clone, Default)]
pub struct ClusterFacts {
    /// The moment at which the run judges: the API server's clock, the snapshot's newest
    /// observation, or `--now`.
    pub now: Timestamp,
    /// The name by which the program reached the cluster; `None` for a snapshot.
    pub cluster_name: Option<String>,
    /// The nodes that were looked up, by name; `None` if the node does not exist. A node that is missing
    /// here was not looked up.
    pub nodes: BTreeMap<String, Read<Option<NodeFacts>>>,
    pub node_counts: NodeCounts,
    /// The nodes that are not Ready by their rows, and could not be read.
    pub unread_nodes: Vec<String>,
    pub attachments: Attachments,
    /// The number of nodes in the cluster, Ready ones included.
    pub node_count: usize,
    /// The active pods in matching namespaces that Kubernetes never evicts, by node: pods that have not
    /// finished and whose deletion was not requested.
    pub active: BTreeMap<String, Vec<PodFacts>>,
    /// The number of namespaces, if the namespace filter matches none of them and no pod.
    pub unmatched_namespaces: Option<usize>,
    /// The active pods of its namespace that a pod controls, by its namespace and UID; `None` if they were not read.
    pub owned_by_pods: Option<BTreeMap<(String, Uid), Vec<String>>>,
    /// What waits for a pod or a node, if all pods were listed.
    pub strays: Vec<Stray>,
    /// How many pods that have not started were not asked what they wait for.
    pub more_waiting: usize,
    /// Why the API server's clock is not trusted, as a sentence, if the leases of Ready nodes
    /// contradict it.
    pub clock: Option<String>,
    /// The reads that failed unexpectedly.
    pub errors: Vec<ReadError>,
    /// Why verdicts may be wrong, as sentences, if the source lacks something that every verdict
    /// needs.
    pub incomplete: Option<String>,
    /// The facts that this kind of source cannot show (a snapshot without leases, for example), as
    /// sentences.
    pub unseen: Vec<String>,
    /// Whether pods of other namespaces may be missing.
    pub may_lack_pods: bool,
}

impl ClusterFacts {
    /// Returns `pod`'s node; `None` if the pod was never assigned one, or the node does not exist.
    pub fn node_of(&self, pod: &PodFacts) -> Read<Option<&NodeFacts>> {
        let Some(name) = &pod.node else {
            return Ok(None);
        };
        match self.nodes.get(name) {
            Some(Ok(node)) => Ok(node.as_ref()),
            Some(Err(why)) => Err(why.clone()),
            None => Err(Unread("it was not looked up".to_owned())),
        }
    }

    pub fn known(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)?.as_ref().ok()?.as_ref()
    }

    pub fn known_node(&self, pod: &PodFacts) -> Option<&NodeFacts> {
        self.known(pod.node.as_ref()?)
    }

    pub fn known_nodes(&self) -> impl Iterator<Item = &NodeFacts> + Clone {
        self.nodes.values().flatten().flatten()
    }

    /// Reports whether `pod` is on a node that is Ready. A run looks at such pods only with
    /// `--all`.
    pub fn on_ready_node(&self, pod: &PodFacts) -> bool {
        self.known_node(pod)
            .is_some_and(|node| node.ready == Ready::True)
    }
}

/// A pod hangs if it is overdue for so long and somebody who lives should have ended it: the kubelet of its Ready node, or
/// the pod garbage collector if its node is gone.
pub const HANGS: SignedDuration = SignedDuration::from_hours(1);

/// Something that waits for a pod, or for a node that is not Ready or no longer exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stray {
    /// A pod that has not started, because of the volume of one of its PVCs.
    Pending(Box<Waiting>),
    /// A `VolumeAttachment` to such a node; `is_gone` if the node no longer exists.
    Attachment {
        node: String,
        attachment: String,
        is_gone: bool,
    },
}

/// A pod that has not started, because of the volume of one of its PVCs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    pub namespace: String,
    pub pod: String,
    pub pod_uid: Uid,
    pub claim: String,
    pub volume: String,
    pub waits_for: WaitsFor,
}

/// What a pod waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WaitsFor {
    /// This Terminating pod of its namespace uses the PVC, too.
    Pod { name: String, node: String },
    /// The volume is attached to another node.
    Attachment { attachment: String, node: String },
    /// None of the nodes that the volume allows is Ready; none of them exists if there are none.
    Nodes { nodes: Vec<String> },
}

impl Waiting {
    pub fn is_for_attachment(&self) -> bool {
        matches!(self.waits_for, WaitsFor::Attachment { .. })
    }
}

impl Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod { name, node } => write!(f, "pod {name} on {node}"),
            Self::Attachment { attachment, node } => {
                write!(f, "VolumeAttachment {attachment} on {node}")
            }
            Self::Nodes { nodes } if nodes.is_empty() => {
                f.write_str("a node that no longer exists")
            }
            Self::Nodes { nodes } => f.write_str(&nodes.join(", ")),
        }
    }
}

impl Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            pod,
            claim,
            volume,
            ..
        } = self;
        write!(f, "{namespace}/{pod} ")?;
        match &self.waits_for {
            WaitsFor::Pod { name, node } => write!(
                f,
                "waits for {namespace}/{name}, which is Terminating on {node} and uses its PVC {claim}, too"
            ),
            WaitsFor::Attachment { attachment, node } => write!(
                f,
                "waits for volume {volume} of its PVC {claim}: VolumeAttachment {attachment} keeps it on {node}"
            ),
            WaitsFor::Nodes { nodes } if nodes.is_empty() => write!(
                f,
                "is Pending: volume {volume} of its PVC {claim} can only be used on a node that no longer exists"
            ),
            WaitsFor::Nodes { nodes } => write!(
                f,
                "is Pending: volume {volume} of its PVC {claim} can only be used on {}, and no such node is Ready",
                nodes.join(", ")
            ),
        }
    }
}

/// An annotation or label `pod-reaper.io/skip` that opts an object out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// Its value.
    pub value: Foreign,
    /// The moment at which it ends; `None` if it does not.
    pub until: Option<Timestamp>,
}

impl Skip {
    /// Reports whether the object is still opted out at `now`.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// The namespaces, by name.
pub type Namespaces = BTreeMap<String, NamespaceFacts>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// What opts the namespace out, if something does.
    pub opted_out: Option<Skip>,
    /// True if the deletion of the namespace was requested, so that everything in it is deleted.
    pub deleted: bool,
}

/// Returns the facts of the namespace `name`. A namespace that is missing from the list may be
/// malformed, so it is treated as unread.
pub fn namespace(namespaces: &Read<Namespaces>, name: &str) -> Read<NamespaceFacts> {
    namespaces
        .as_ref()
        .map_err(Unread::clone)?
        .get(name)
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

/// The name that a [`ReadError`] gives to the Leases that a file lacks. The run is then
/// `incomplete` too.
pub const LEASES_OF_FILE: &str = "leases";

/// The `VolumeAttachments` whose volume is attached, by the names of node and volume.
pub type Attached<'a> = BTreeMap<(&'a str, &'a str), &'a Attachment>;

/// The `VolumeAttachments`, by the name of their node.
#[derive(Debug, Clone)]
pub struct Attachments(pub Read<BTreeMap<String, Vec<Attachment>>>);

impl Default for Attachments {
    fn default() -> Self {
        Self(Err(Unread("they were not looked up".to_owned())))
    }
}

impl Attachments {
    /// Lists those of a node.
    pub fn on(&self, node: &str) -> Read<&[Attachment]> {
        let all = self.0.as_ref().map_err(Unread::clone)?;
        Ok(all.get(node).map_or(&[], Vec::as_slice))
    }

    /// Returns those whose volume is attached, by the names of node and volume.
    pub fn attached(&self) -> Read<Attached<'_>> {
        let all = self.0.as_ref().map_err(Unread::clone)?;
        Ok(all
            .iter()
            .flat_map(|(node, all)| all.iter().map(move |it| (node, it)))
            .filter(|(_, attachment)| attachment.attached)
            .filter_map(|(node, attachment)| {
                let volume = attachment.volume.as_deref()?;
                Some(((node.as_str(), volume), attachment))
            })
            .collect())
    }
}

/// The number of real nodes, for the limits, the datastore, and the labels of nodes that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeCounts {
    /// It is known that no count is needed: there is no pod to judge, or few nodes are NotReady and
    /// a pod could start on a Ready one.
    NotNeeded,
    Counted(Counts),
    /// The nodes could not be counted.
    Unread(Unread),
}

/// Nodes that nobody counted hold every pod, also if the breaker is off.
impl Default for NodeCounts {
    fn default() -> Self {
        Self::Unread(Unread("they were not counted".to_owned()))
    }
}

/// The counts of all nodes that are no leaf nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub all: Tally,
    /// The nodes without the control-plane role.
    pub workers: Tally,
    pub zones: BTreeMap<Zone, Tally>,
    /// The nodes with the label of the control plane of `MicroK8s` or of Canonical Kubernetes, which no row shows.
    pub canonical: Tally,
    /// What a pod has to tolerate to start on one of the nodes that are Ready and not cordoned.
    pub rooms: BTreeSet<Room>,
    /// The labels of nodes that failed, by key and value, that a Ready node has too. No verdict depends on them.
    pub labels: BTreeSet<(String, String)>,
}

/// The number of NotReady nodes in a group of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub not_ready: usize,
    /// All nodes of the group, Ready or not.
    pub total: usize,
}

impl Tally {
    /// Counts one more node.
    pub fn add(&mut self, is_ready: bool) {
        self.total += 1;
        self.not_ready += usize::from(!is_ready);
    }
}

entry! {
    /// A `VolumeAttachment` left on a node.
    pub struct Attachment as "AttachmentEntry" {
        /// `metadata.name`.
        pub name: String,
        /// The volume, where it names one.
        pub volume: Option<String>,
        /// The driver that attaches it.
        pub driver: Option<String>,
        /// `status.attached`: whether the volume is attached. It never was if the driver cannot do it.
        pub attached: bool,
        /// True if the attacher says that it could not attach or detach the volume.
        #[serde(skip)]
        pub fails: bool,
        /// True if a finalizer of the attacher holds it, so that the storage lets go of the machine before it is gone.
        #[serde(skip)]
        pub held_by_attacher: bool,
        /// True if it is being deleted, or its volume could not be detached.
        #[serde(skip)]
        pub is_leaving: bool,
    }
}
