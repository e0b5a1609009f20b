//! The facts: what was read about the cluster, as plain types.
//!
//! Deciding works on these types alone. They hold no Kubernetes type, so that the rules can be read
//! and tested without knowledge of the API's or a snapshot's format. `kubernetes` makes the facts
//! of one object; `source` completes those of claims and of the cluster.

mod claim;
mod node;
mod pod;
mod query;

use std::collections::{BTreeMap, BTreeSet};

use derive_more::{Deref, Display, From};
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

pub use self::claim::{
    ANY_CLAIM, AffinityTerm, BoundClaim, ClaimFacts, ClaimRead, ClaimState, Doubt, Driver, Goes,
    MAX_CLAIMS_PER_POD, Renewer, Requirement, Storage, Unneeded, VolumeFacts,
};
pub use self::node::{
    CLOCK_SKEW, FencingMark, Heard, HolderKind, KubeletSays, Leaf, LeafKind, NamedBy, NodeFacts,
    NodeRead, OUT_OF_SERVICE, Ready, Renewal, SignBy, ZONE_LABELS, Zone, not_ready_since,
};
pub use self::pod::{
    Containers, Copies, Deletion, Identity, JOB_TRACKING, Owner, PodFacts, Stay, deletion_requested,
};
pub use self::query::{PodsOf, Query};
use crate::codes::entry;

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
    pub node_counts: NodeCounts,
    /// The `VolumeAttachments`, by the node that they name.
    pub attachments: BTreeMap<String, Vec<Attachment>>,
    /// The number of nodes in the cluster, Ready ones included.
    pub node_count: usize,
    /// The active pods in matching namespaces, by node: those that have not finished, and whose
    /// deletion was not requested.
    pub active: BTreeMap<String, Vec<PodFacts>>,
    /// The number of namespaces, if the namespace filter matches none of them and no pod.
    pub unmatched_namespaces: Option<usize>,
    /// The newest time that a snapshot shows, in whole seconds.
    pub newest: Option<Timestamp>,
    /// The number of Terminating pods on Ready nodes that are left out, if the source shows them
    /// without being asked.
    pub on_ready_nodes: usize,
    /// The Ready nodes that bear the out-of-service taint, of those that were read.
    pub ready_out_of_service: BTreeSet<String>,
    /// Why the API server's clock is not believed, as a sentence, if the living nodes contradict it.
    pub clock: Option<String>,
    /// The Ready copies of the workloads whose data a person may give up.
    pub copies: Copies,
    /// The reads that failed although they should not have.
    pub errors: Vec<ReadError>,
    /// Why verdicts may be wrong, as sentences, if the source lacks something that all of them need.
    pub incomplete: Option<String>,
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

    /// Notes the Ready nodes that bear the out-of-service taint, of `nodes` and of the known ones.
    pub fn note_out_of_service(&mut self, nodes: BTreeSet<String>) {
        let known = self.nodes.values().filter_map(NodeRead::known);
        let tainted = known.filter(|node| node.ready == Ready::True && node.out_of_service);
        self.ready_out_of_service = tainted.map(|node| node.name.clone()).chain(nodes).collect();
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

/// What a [`ReadError`] calls the Leases that a file lacks; the run is then `incomplete` too.
pub const LEASES_OF_FILE: &str = "leases";

/// Serializes a time in whole seconds. No verdict depends on the fractions.
pub fn whole_seconds<T: Copy + Into<Option<Timestamp>>, S: Serializer>(
    at: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    (*at).into().map(|at| format!("{at:.0}")).serialize(to)
}

/// The count of real nodes for the breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NodeCounts {
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

/// The role of a node in the breaker's count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedNode {
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
    /// The node bears the out-of-service taint.
    pub out_of_service: bool,
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
    }
}

impl Attachment {
    /// Reports whether the driver is ceph-csi, whose names end alike however it was installed.
    pub fn is_ceph(&self) -> bool {
        let ends = ["rbd.csi.ceph.com", "cephfs.csi.ceph.com"];
        let driver = self.driver.as_ref();
        driver.is_some_and(|driver| ends.iter().any(|end| driver.ends_with(end)))
    }
}
