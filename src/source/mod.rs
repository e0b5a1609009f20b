//! Gathering, the first step of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run and `explain` both gather here, from a cluster or from a snapshot.

mod clock;
mod cluster;
mod fill;
mod gather;
mod reader;
pub mod snapshot;
mod strays;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tokio::time::Instant;

pub use self::{gather::gather, reader::Reader};
use crate::{
    cluster::{Failure, Listed},
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, ClusterFacts, CountedNode, Namespaces, PodFacts, PodsOf, ReadError, Storage,
        Unread,
    },
    judge::Policy,
    kubernetes::{
        CONTROL_PLANE, ETCD, Holders, LeasesByNode, NodeObjects, RawClaim, RawPod, RawStatefulSet,
        RawVolume,
    },
    selector::{NamespaceFilter, NodeSelectors},
};

/// Each node's role in the breaker's count, by the node's name.
pub type CountedNodes = BTreeMap<String, CountedNode>;

/// Why a source could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// The request to the cluster failed.
    #[error(transparent)]
    Cluster(#[from] Failure),
    /// The file does not have it, or has it in a form that cannot be read.
    #[error("{0}")]
    File(String),
}

impl From<NotRead> for Unread {
    fn from(cause: NotRead) -> Self {
        Self(cause.to_string())
    }
}

impl NotRead {
    /// Returns the failure of the request; `None` if the source is a file.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Cluster(failure) => Some(failure),
            Self::File(_) => None,
        }
    }
}

/// Where facts come from: one method for each read.
#[expect(async_fn_in_trait, reason = "the program has one thread")]
pub trait Source {
    /// Reads the rows of all nodes.
    async fn node_rows(&self, wanted: &Wanted<'_>) -> Result<NodeRows>;

    /// Reads all namespaces; `None` if the source has none at all, such as a file saved without
    /// them. A malformed namespace is left out, so the opt-out of its pods is treated as unread.
    async fn namespaces(&self) -> Result<Option<Namespaces>, NotRead>;

    /// Reads all `VolumeAttachments`, by the node that they name.
    async fn attachments(&self) -> Result<BTreeMap<String, Vec<Attachment>>, NotRead>;

    /// Reads a node in full, with its own lease; `None` if the node does not exist.
    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, NotRead>;

    /// Reads a list of pods, and collects them by `add`.
    async fn pods<A: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut A, &RawPod),
    ) -> Result<Listed<A>, NotRead>;

    /// Lists all pods, if that costs nothing.
    fn pods_at_hand(&self) -> Vec<PodFacts>;

    /// Reads a pod; `None` if it does not exist.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>, NotRead>;

    /// Reads the Leases outside of `kube-node-lease` that name the nodes of `holders` or pods on
    /// them, by node; `None` if this account may not list them.
    async fn other_leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, NotRead>;

    /// Reads all nodes in full, as the breaker counts them. `leaf` are the selectors that the user
    /// gave.
    async fn counted_nodes(&self, leaf: &NodeSelectors) -> Result<CountedNodes, NotRead>;

    /// Reads a PVC; `None` if it does not exist.
    async fn claim(&self, namespace: &str, name: &str) -> Result<Option<RawClaim>, NotRead>;

    /// Reads a volume; `None` if it does not exist.
    async fn volume(&self, name: &str) -> Result<Option<RawVolume>, NotRead>;

    /// Names the real nodes that a label selector selects: all of them, or two if there are more.
    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, NotRead>;

    /// Names the CSI drivers whose volumes have no attach step.
    async fn detached_drivers(&self) -> Result<BTreeSet<String>, NotRead>;

    /// Reads a `StatefulSet`; `None` if it does not exist.
    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<RawStatefulSet>, NotRead>;

    /// Returns the error to report for a read that failed; `None` if the source names its unreadable
    /// objects itself.
    fn failed(&self, what: String, cause: String) -> Option<ReadError>;

    /// Makes the error that ends a run because it could not do `what`.
    fn could_not(&self, what: &str, cause: &NotRead) -> CouldNotRun;
}

/// The facts that the rows of all nodes show.
#[derive(Debug, Clone, Default)]
pub struct NodeRows {
    /// The moment to judge at.
    pub now: Timestamp,
    /// The name by which the program reached the cluster; `None` for a snapshot.
    pub cluster_name: Option<String>,
    /// The names of all nodes.
    pub names: BTreeSet<String>,
    /// The nodes that are not plainly Ready.
    pub not_ready: Vec<String>,
    /// Some Ready nodes. The first is one on which pods can start, to judge by its row, if there is
    /// such a node.
    pub ready: Vec<String>,
    /// The lists that may hold a Terminating pod, if the pods of Ready nodes are looked at too.
    pub pod_lists: Option<BTreeSet<PodsOf>>,
    /// The nodes with the role of an etcd member, each with whether it is Ready.
    pub etcd: BTreeMap<String, bool>,
    /// The nodes with a role under which etcd runs if no node has its own role, each with whether it
    /// is Ready. Where `OpenShift` has two masters and an arbiter, all three run it.
    pub control_plane: BTreeMap<String, bool>,
    /// Whether the source has leases of nodes, or may have some: a file may have been saved without
    /// leases.
    pub has_leases: bool,
    /// The objects of a file that could not be read.
    pub errors: Vec<ReadError>,
    /// The facts that the source cannot show, as sentences.
    pub unseen: Vec<String>,
}

impl NodeRows {
    /// Notes the roles of a node, as kubectl's column shows them.
    pub fn add_roles<'a>(
        &mut self,
        node: &str,
        is_ready: bool,
        roles: impl IntoIterator<Item = &'a str>,
    ) {
        for role in roles {
            if role == ETCD {
                self.etcd.insert(node.to_owned(), is_ready);
            } else if role == "arbiter" || CONTROL_PLANE.contains(&role) {
                self.control_plane.insert(node.to_owned(), is_ready);
            }
        }
    }
}

/// What to gather.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The user's choices for the rules.
    pub policy: &'a Policy,
    /// The namespaces whose pods are judged.
    pub namespaces: &'a NamespaceFilter,
    /// Whether to judge the Terminating pods of Ready nodes too.
    pub all: bool,
}

/// The reading of the Leases that are not kubelets' own.
#[derive(Debug, Clone)]
pub struct OtherLeases {
    /// The possible holders.
    pub holders: Holders,
    /// The moment before the reading began.
    pub at: Instant,
}

/// The result of gathering. No fact that a verdict needs is filled in later.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// The facts about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, each with its storage if gathering came to it.
    /// They are kept apart from the facts because the plan takes them over: there may
    /// be tens of thousands of pods, so they must not be copied.
    pub pods: Vec<(PodFacts, Option<Storage>)>,
    /// The reading of the other Leases; `None` if there was none, or if this account may not list Leases.
    pub leases: Option<OtherLeases>,
}
