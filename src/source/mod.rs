//! Gathering, the first step of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run and `explain` both gather here, from a cluster or from a snapshot.

mod budget;
mod clock;
mod cluster;
mod fill;
mod gather;
mod history;
mod reader;
pub mod snapshot;
mod strays;

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::time::Instant;

use self::snapshot::Kept;
pub use self::{gather::gather, history::recall, reader::Reader};
use crate::{
    cluster::{Failure, Listed},
    exit::{CouldNotRun, Result},
    facts::{ClusterFacts, Namespaces, PodFacts, PodsOf, ReadError, Roles, Storage},
    kubernetes::{Holders, LeasesByNode, NodeObjects, RawConfigMap, RawPod},
    selector::NodeSelectors,
    settings::Settings,
};

/// Where facts come from: one method for each read.
#[expect(async_fn_in_trait, reason = "the program has one thread")]
pub trait Source {
    /// Reads the rows of all nodes; with `all`, also finds the lists of pods that may be Terminating
    /// on any node.
    async fn node_rows(&self, all: bool) -> Result<NodeRows>;

    /// Reads all namespaces. A malformed namespace is left out, so the opt-out of its pods is treated
    /// as unread.
    async fn namespaces(&self) -> Result<Namespaces, Failure>;

    /// Reads a node in full, with its own lease; `None` if the node does not exist.
    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, Failure>;

    /// Reads a list of pods, and collects them by `add`.
    async fn pods<A: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut A, &RawPod),
    ) -> Result<Listed<A>, Failure>;

    /// Reads the Leases, except the nodes' own, that name the nodes of `holders` or pods on
    /// them, by node; `None` if this account may not list them.
    async fn other_leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, Failure>;

    /// Names the real nodes that a label selector selects: all of them.
    /// `leaf` are the selectors that the user gave.
    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, Failure>;

    /// Reads an object; `None` if it does not exist.
    async fn object<T: Kept>(&self, namespace: &str, name: &str) -> Result<Option<T>, Failure>;

    /// Reads all objects of a kind in full, and collects them by `add`. Fails if any of them cannot
    /// be read, because it may be the one that matters.
    async fn objects<T: Kept, A: Default>(&self, add: impl Fn(&mut A, T)) -> Result<A, Failure>;

    /// Reads the `ConfigMap` of the history; `None` if it does not exist.
    async fn history(&self, namespace: &str) -> Result<Option<RawConfigMap>, Failure>;

    /// Returns what a saved state does not show; nothing for a cluster, whose reads fail one by one.
    fn gaps(&self, _settings: &Settings) -> Gaps {
        Gaps::default()
    }

    /// Lists all pods, if that costs nothing.
    fn pods_at_hand(&self) -> Vec<PodFacts> {
        Vec::new()
    }

    /// Makes the error that ends a run because it could not do `what`.
    fn could_not(&self, what: &str, cause: &Failure) -> CouldNotRun;
}

/// The facts that a saved state does not show.
#[derive(Debug, Default)]
pub struct Gaps {
    /// The objects that could not be read.
    pub errors: BTreeSet<ReadError>,
    /// The facts that were not saved, as sentences.
    pub unseen: Vec<String>,
    /// Whether these two name all that cannot be read, so that a read that fails is no error of its own.
    pub are_named: bool,
    /// No namespace was saved.
    pub lacks_namespaces: bool,
    /// No lease of a node was saved.
    pub lacks_leases: bool,
}

/// The facts that the rows of all nodes show.
#[derive(Debug, Clone)]
pub struct NodeRows {
    /// The moment to judge at.
    pub now: Timestamp,
    /// The name by which the program reached the cluster; `None` for a snapshot.
    pub cluster_name: Option<String>,
    /// All nodes.
    pub nodes: Vec<NodeRow>,
    /// Some Ready nodes, for the clock and for room. The first is one on which pods can start, to
    /// judge by its row, if there is such a node.
    pub ready: Vec<String>,
    /// The lists that may hold a Terminating pod, if the pods of Ready nodes are looked at too.
    pub pod_lists: Option<BTreeSet<PodsOf>>,
}

/// The row of a node.
#[derive(Debug, Clone)]
pub struct NodeRow {
    /// The node's name.
    pub name: String,
    /// Whether the node is plainly Ready.
    pub is_ready: bool,
    /// The node's roles, as far as kubectl's column shows them.
    pub roles: Roles,
}

impl NodeRows {
    /// Lists the names of all nodes.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.nodes.iter().map(|row| &row.name)
    }

    /// Lists the nodes that are not plainly Ready.
    pub fn not_ready(&self) -> impl Iterator<Item = &String> {
        let not_ready = self.nodes.iter().filter(|row| !row.is_ready);
        not_ready.map(|row| &row.name)
    }
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
    /// The pods on NotReady nodes that Kubernetes will evict, as if it had requested their deletion.
    pub not_evicted: Vec<(PodFacts, Option<Storage>)>,
    /// The reading of the other Leases; `None` if there was none, or if this account may not list Leases.
    pub leases: Option<OtherLeases>,
}
