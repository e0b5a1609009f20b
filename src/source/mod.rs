//! Gathering, the first step of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run and `explain` both gather here, from a cluster or from a snapshot.

mod clock;
mod cluster;
pub mod snapshot;
mod store;
mod stream;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

pub use self::store::{Source, Store};
use crate::{
    decide::Policy,
    facts::{ClusterFacts, CountedNode, PodFacts, PodsOf, Unread},
    kubernetes::{HolderPod, Holders, RawPod},
    selector::NamespaceFilter,
};

/// Each node's role in the breaker's count, by the node's name.
pub type CountedNodes = BTreeMap<String, CountedNode>;

/// What a source learns from its cheapest reading of all nodes.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The facts that this reading alone gives: the moment to judge at, the cluster's name, and the
    /// number of nodes.
    pub facts: ClusterFacts,
    /// The names of all nodes.
    pub nodes: BTreeSet<String>,
    /// The nodes that are not plainly Ready.
    pub not_ready: Vec<String>,
    /// Some Ready nodes. The first is one on which pods can start, to judge by this reading, if
    /// there is such a node.
    pub ready: Vec<String>,
    /// The lists of pods, apart from those of the nodes that are not plainly Ready, that may hold a
    /// Terminating pod to be judged.
    pub pods: BTreeSet<PodsOf>,
    /// Whether the source has leases of nodes, or may have some: a file may have been saved without
    /// leases.
    pub has_leases: bool,
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

/// The pods of one list.
#[derive(Default)]
pub struct Pods {
    /// All pods of a suspect node. Of any other list, the Terminating pods.
    pub kept: Vec<PodFacts>,
    /// Every pod of the list, as a holder of Leases.
    pub holders: BTreeSet<HolderPod>,
    /// Why the list could not be read, if so.
    pub unread: Option<Unread>,
}

impl Pods {
    /// Adds a pod. The list keeps every pod of a `suspect` node, which is NotReady: Kubernetes has
    /// not evicted an active pod there.
    pub fn add(&mut self, raw: &RawPod, suspect: bool) {
        let pod = raw.facts();
        self.holders.insert(raw.as_holder());
        if suspect || pod.deletion.is_some() {
            self.kept.push(pod);
        }
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
    /// The Terminating pods in matching namespaces, with everything that a rule needs to know about
    /// their PVCs. They are kept apart from the facts because the plan takes them over: there may
    /// be tens of thousands of pods, so they must not be copied.
    pub pods: Vec<PodFacts>,
    /// The reading of the other Leases; `None` if there was none, or if this account may not list Leases.
    pub leases: Option<OtherLeases>,
}
