//! The one door by which objects come in: from an API server, or from a file with a saved state.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tokio::time::timeout;

use super::{
    Failure, REQUEST_TIME_LIMIT,
    failure::{Result, unreadable},
};
use crate::{
    exit::CouldNotRun,
    facts::{Namespaces, PodsOf, ReadError, Unread},
    history::CONFIG_MAP,
    kubernetes::{
        Holders, Kind, LeasesByNode, Malformed, NodeObjects, RawConfigMap, RawLease, RawNamespace,
        RawNode, Row,
    },
    selector::{NamespaceFilter, Selector},
};

/// The most Leases of one node that a run keeps. More show life.
const MAX_LEASES_PER_NODE: usize = 64;

/// The objects of a kind that a list has.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    All,
    Pods(&'a PodsOf),
    /// The nodes with these labels.
    Nodes(&'a Selector),
}

/// The items made from the objects of a list.
#[derive(Debug, Default)]
pub struct Listed<T> {
    pub items: T,
    /// The objects that could not be read.
    pub malformed: Vec<Malformed>,
    /// The moment of the last page, if it is known: no page is newer.
    pub date: Option<Timestamp>,
}

impl<T> Listed<T> {
    /// Returns the items, or an error if any object could not be read, because that object may be
    /// the one that matters.
    pub fn whole(self) -> Result<T> {
        self.malformed
            .into_iter()
            .next()
            .map_or(Ok(self.items), |it| Err(Failure::Malformed(it)))
    }
}

/// What is known of a source without reading. A cluster lacks nothing: its reads fail one by one.
#[derive(Debug, Default)]
pub struct About {
    /// The name by which the program reached the cluster; `None` for a file.
    pub cluster_name: Option<String>,
    /// It is a file. The next two fields name all that it does not have, so that a read that fails is no error of its own.
    pub is_file: bool,
    /// Whether objects may be absent because they were not saved.
    pub is_part: bool,
    /// The objects that could not be read.
    pub errors: BTreeSet<ReadError>,
    /// The facts that were not saved, as sentences.
    pub unseen: Vec<String>,
    /// It may have the pods of one namespace only.
    pub may_lack_pods: bool,
    /// It has no namespace.
    pub lacks_namespaces: bool,
    /// It has no lease of a node.
    pub lacks_leases: bool,
    /// The moment to judge at is not that of the file, so it is not compared with the clocks of nodes.
    pub at_given_time: bool,
}

/// Where objects come from. What is done to an object is done by its kind, for both.
#[expect(async_fn_in_trait, reason = "the program has one thread")]
pub trait Api {
    /// Reads the rows of all objects of a kind. Returns also the moment, if it is known: no row is older.
    async fn rows<R: Row, A: Default>(
        &self,
        add: impl Fn(&mut A, R),
    ) -> Result<(Option<Timestamp>, A)>;

    /// Reads an object in full, with the moment of the reading, if it is known; `None` if it does not exist.
    async fn get<T: Kind>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(T, Option<Timestamp>)>>;

    /// Reads a list object by object. It may begin again, so what `add` collects begins anew, too.
    async fn each<T: Kind, A: Default>(
        &self,
        of: Of<'_>,
        add: impl Fn(&mut A, &T),
    ) -> Result<Listed<A>>;

    /// Says what is known without reading. `namespaces` are those whose pods are looked at.
    fn about(&self, namespaces: &NamespaceFilter) -> About;

    /// Makes the error that ends a run.
    fn could_not(&self, what: &str, cause: &Failure) -> CouldNotRun;

    async fn find<T: Kind>(&self, namespace: &str, name: &str) -> Result<Option<T>> {
        let found = self.get(namespace, name).await?;
        Ok(found.map(|(object, _)| object))
    }

    /// Reads a node in full, with its own lease; `None` if the node does not exist.
    async fn node(&self, name: &str) -> Result<Option<NodeObjects>> {
        let (node, lease) = tokio::join!(
            self.get::<RawNode>("", name),
            self.find(RawLease::OF_NODES, name),
        );
        let Some((node, date)) = node? else {
            return Ok(None);
        };
        let now = date.ok_or_else(|| unreadable("it has no Date header"))?;
        let lease = lease.map_err(Unread::from);
        Ok(Some(NodeObjects { node, lease, now }))
    }

    /// Reads all namespaces. A malformed one is left out, so the opt-out of its pods is treated as unread.
    async fn namespaces(&self) -> Result<Namespaces> {
        Ok(self.each(Of::All, RawNamespace::add_to).await?.items)
    }

    /// Reads the Leases that speak for the nodes of `holders`, without the nodes' own.
    async fn leases_of(&self, holders: &Holders) -> Result<LeasesByNode> {
        let add_lease = |found: &mut BTreeMap<String, Vec<_>>, lease: &RawLease| {
            for node in holders.of(lease) {
                let leases = found.entry(node.to_owned()).or_default();
                // One more than the limit shows that there are too many.
                if leases.len() <= MAX_LEASES_PER_NODE {
                    let mut kept = lease.clone();
                    kept.drop_unused();
                    leases.push(kept);
                }
            }
        };
        let mut listed = self.each(Of::All, add_lease).await?;
        listed.malformed.retain(|lease| holders.may_speak(lease));
        let by_node = listed.whole()?.into_iter().map(|(node, leases)| {
            let are_few = leases.len() <= MAX_LEASES_PER_NODE;
            (node, are_few.then_some(leases))
        });
        Ok(by_node.collect())
    }

    /// Reads the `ConfigMap` of the history, with all tries in the time of one request.
    async fn history(&self, namespace: &str) -> Result<Option<RawConfigMap>> {
        let limit = REQUEST_TIME_LIMIT;
        timeout(limit, self.find(namespace, CONFIG_MAP))
            .await
            .unwrap_or(Err(Failure::Timeout(limit)))
    }
}
