//! Gathering, steps 1 to 3 of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run, `what-if` and `explain` all gather here, from a cluster or from a snapshot.

mod clock;
mod cluster;
mod pods;
pub mod snapshot;
mod store;
mod stream;
mod world;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream as futures};

pub use self::store::Store;
use self::world::World;
use crate::{
    cluster::{Failure, Listed, MAX_IN_FLIGHT},
    decide::Policy,
    exit::{CouldNotRun, Result},
    facts::{Attachment, ClusterFacts, PodFacts, PodsOf, Standing},
    kubernetes::{Holders, Kind, LeasesByNode, NodeObjects, RawPod},
    selector::{NamespaceFilter, NodeSelectors},
};

/// Where objects come from: a cluster, or a saved state. What they mean, and what of it could not
/// be read, is the same for both, and is told by [`Store`].
#[allow(async_fn_in_trait, reason = "one thread runs everything")]
pub trait Source {
    /// Whether it is a file. Reading costs no requests then, and [`Scan::facts`] names each object
    /// that cannot be read, so that it is not named again.
    const IS_FILE: bool;

    /// Reads all nodes in the cheapest way.
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan>;
    /// Reads one whole node with its own lease; `None` if it does not exist.
    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, Failure>;
    /// Reads an object by its name; `None` if it does not exist.
    async fn find<T: Kind>(&self, namespace: &str, name: &str) -> Result<Option<T>, Failure>;
    /// Reads all objects of a kind, and collects them by `add`; `None` if the source has none at
    /// all, such as a file saved without them.
    async fn list<T: Kind, S: Default>(
        &self,
        add: impl Fn(&mut S, T),
    ) -> Result<Option<Listed<S>>, Failure>;
    /// Reads a list of pods, and collects them by `add`.
    async fn pods<S: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut S, &RawPod),
    ) -> Result<Listed<S>, Failure>;
    /// Names the real nodes that a label selector selects; `leaf` are the operator's own selectors. If
    /// there are more than two, two are enough.
    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, Failure>;
    /// Reads the other Leases that name the nodes of `holders` or their pods, by node; `None` if this
    /// account may not list them.
    async fn leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, Failure>;
    /// Reads all `VolumeAttachments`, by the node they name.
    async fn attachments(&self) -> Result<BTreeMap<String, Vec<Attachment>>, Failure>;
    /// Makes the error that ends a run because it could not do `what`.
    fn could_not(&self, what: &str, failure: Failure) -> CouldNotRun;
}

/// Each node's role in the breaker's count, by the node's name.
pub type Standings = BTreeMap<String, Standing>;

/// The labels of each node, by its name.
pub type LabelsByNode = BTreeMap<String, BTreeMap<String, String>>;

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
    /// Whether the source has leases of nodes, or may have: a file may have been saved without.
    pub has_leases: bool,
}

/// What to gather.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The operator's choices for the rules.
    pub policy: &'a Policy,
    /// The namespaces whose pods are judged.
    pub namespaces: &'a NamespaceFilter,
    /// Whether to judge the Terminating pods of Ready nodes too.
    pub all: bool,
}

/// The result of gathering. No fact that a verdict needs is filled in later.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// The facts about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, with everything that a rule needs to know about
    /// their claims. They are kept apart from the facts because the plan takes them over: there may
    /// be tens of thousands, so they must not be copied.
    pub pods: Vec<PodFacts>,
}

impl<S: Source> Store<'_, S> {
    /// Gathers all facts that the rules need, with what is supposed: reads what they lack, and asks them
    /// again, until they lack nothing. `asked` is a Terminating pod to judge in any case, whatever its
    /// node and namespace.
    pub async fn gather(&self, asked: Option<RawPod>) -> Result<Gathered> {
        let asked = asked.map(|pod| (pod.metadata.uid.clone(), pods::named(&pod, pod.facts())));
        let is_thorough = S::IS_FILE || !self.dead.is_empty();
        let scan = self.scan().await?;
        let world = World::new(self.wanted, &self.dead, is_thorough, scan, asked);
        let world = RefCell::new(world);
        loop {
            let queries = world
                .borrow_mut()
                .queries(&mut self.readings().borrow_mut());
            if queries.is_empty() {
                break;
            }
            let read = futures::iter(queries).map(|query| self.read(&world, query));
            read.buffer_unordered(MAX_IN_FLIGHT)
                .try_collect::<()>()
                .await?;
        }
        let world = world.into_inner();
        self.note_unread_sets(&world);
        let mut readings = self.readings().borrow_mut();
        Ok(world.gathered(&mut readings))
    }
}

#[cfg(test)]
mod saved_tests;
#[cfg(test)]
mod tests;
