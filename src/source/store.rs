//! Queries a source, and keeps its readings as facts. Unread facts stay unread.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream as futures};
use tokio::time::Instant;

use super::{
    CountedNodes, Gathered, OtherLeases, Pods, Scan, Wanted,
    snapshot::{Kept, Saved, could_not_read, not_saved},
    world::{Readings, World},
};
use crate::{
    cluster::{Ask, Cluster, Failure, Listed, MAX_IN_FLIGHT},
    exit::{CouldNotRun, Result},
    facts::{
        ClaimRead, ClaimState, Namespaces, NodeRead, PodFacts, PodsOf, Query, Read, ReadError,
        Unread,
    },
    kubernetes::{
        HolderPod, RawClaim, RawDriver, RawNamespace, RawNode, RawPod, RawStatefulSet, RawVolume,
    },
    selector::is_name,
};

/// Where objects come from.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// An API server.
    Cluster(&'a Cluster),
    /// A saved state. Reading costs no requests, and [`Scan::facts`] names each object that cannot be
    /// read, so that the object is not named again.
    File(&'a Saved),
}

impl<'a> From<&'a Cluster> for Source<'a> {
    fn from(cluster: &'a Cluster) -> Self {
        Self::Cluster(cluster)
    }
}

impl<'a> From<&'a Saved> for Source<'a> {
    fn from(file: &'a Saved) -> Self {
        Self::File(file)
    }
}

/// A source and its readings.
pub struct Store<'a> {
    source: Source<'a>,
    pub(super) wanted: Wanted<'a>,
    readings: RefCell<Readings>,
}

impl<'a> Store<'a> {
    /// Returns a store without any reading.
    pub fn new(source: impl Into<Source<'a>>, wanted: Wanted<'a>) -> Self {
        Self {
            source: source.into(),
            wanted,
            readings: RefCell::default(),
        }
    }

    /// Gathers all facts that the rules need. It reads the facts that the
    /// rules lack, then applies the rules again, until they lack nothing. `asked` is a Terminating pod
    /// to judge in any case, whatever its node and namespace.
    pub async fn gather(&self, asked: Option<PodFacts>) -> Result<Gathered> {
        let scan = self.scan().await?;
        let world = World::new(self.wanted, self.is_file(), scan, asked);
        let world = RefCell::new(world);
        loop {
            let queries = world.borrow_mut().queries(&mut self.readings.borrow_mut());
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
        let mut readings = self.readings.borrow_mut();
        Ok(world.gathered(&mut readings))
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// Notes an object or list that could not be read, and why.
    pub(super) fn note(&self, what: impl Display, cause: impl Display) -> Unread {
        let (what, cause) = (what.to_string(), cause.to_string());
        let unread = Unread(cause.clone());
        let error = ReadError { what, cause };
        self.readings.borrow_mut().errors.insert(error);
        unread
    }

    /// Notes an object or list that the source could not read, unless the source has named it
    /// already.
    fn failed(&self, what: impl Display, cause: impl Display) -> Unread {
        if self.is_file() {
            return Unread(cause.to_string());
        }
        self.note(what, cause)
    }

    /// Returns the cheapest reading of all nodes.
    pub async fn scan(&self) -> Result<Scan> {
        let mut scan = match self.source {
            Source::Cluster(cluster) => cluster.scan(&self.wanted).await?,
            Source::File(file) => file.scan(&self.wanted),
        };
        let errors = std::mem::take(&mut scan.facts.errors);
        self.readings.borrow_mut().errors.extend(errors);
        Ok(scan)
    }

    /// Has the source read what `query` names, and adds the reading to the known ones. A failure is a
    /// reading too, except a failure that ends the run.
    pub(super) async fn read(&self, world: &RefCell<World<'_>>, query: Query) -> Result<()> {
        let readings = &self.readings;
        let what = query.to_string();
        match query {
            Query::Namespaces => {
                let read = self.namespaces(&what).await;
                readings.borrow_mut().namespaces = Some(read);
            }
            Query::Attachments => {
                let read = match self.source {
                    Source::Cluster(cluster) => cluster.attachments().await,
                    Source::File(file) => Ok(file.attachments()),
                };
                let mut read = read.unwrap_or_else(|failure| {
                    self.failed(what, failure);
                    BTreeMap::new()
                });
                for on_node in read.values_mut() {
                    on_node.sort();
                }
                readings.borrow_mut().attachments = Some(read);
            }
            Query::Node(name) => {
                let node = self.node(&name).await;
                world.borrow_mut().facts.nodes.insert(name, node);
            }
            Query::Pods(list) => {
                let suspect = world.borrow().is_suspect(&list);
                let pods = self.pods(&list, suspect).await?;
                world.borrow_mut().lists.insert(list, pods);
            }
            Query::Clock => {
                let (ready, now) = world.borrow().clock();
                let ready_nodes = self.ready_nodes(&ready, now).await;
                readings.borrow_mut().ready_nodes = Some(ready_nodes);
            }
            Query::NodeCounts => {
                let node_counts = self.counted_nodes().await;
                world.borrow_mut().node_counts = Some(node_counts);
            }
            Query::OtherLeases => self.other_leases(world).await,
            Query::Pvc { namespace, name } => {
                let pvc = self.pvc(&what, &namespace, &name).await;
                readings.borrow_mut().pvcs.insert((namespace, name), pvc);
            }
            Query::NodesFor(selector) => {
                let leaf = &self.wanted.policy.node_selectors;
                let nodes = match self.source {
                    Source::Cluster(cluster) => cluster.real_nodes(&selector, leaf).await,
                    Source::File(file) => file.real_nodes(&selector, leaf),
                };
                let nodes = nodes.map_err(|failure| match failure.code() {
                    // The API server refuses this selector every time, so no reading has failed.
                    Some(400) => failure.into(),
                    _ => self.failed(what, failure),
                });
                readings.borrow_mut().selected.insert(selector, nodes);
            }
            Query::Drivers => {
                let add_driver = |names: &mut BTreeSet<_>, driver: RawDriver| {
                    if !driver.attaches() {
                        names.insert(driver.metadata.name);
                    }
                };
                let detached = self.all(&what, add_driver).await;
                readings.borrow_mut().detached = Some(detached);
            }
            Query::Set { namespace, name } => {
                let mut found = self.find::<RawStatefulSet>(&namespace, &name).await;
                if let Ok(Some(set)) = &mut found {
                    set.metadata.drop_unused();
                }
                readings.borrow_mut().sets.insert((namespace, name), found);
            }
        }
        Ok(())
    }

    /// Notes the `StatefulSets` that could not be read, if a verdict depends on them.
    pub(super) fn note_unread_sets(&self, world: &World<'_>) {
        let unread = world.unread_sets(&self.readings.borrow());
        for (query, failure) in unread {
            self.failed(query, failure);
        }
    }

    /// Reads all namespaces; `None` if the source has none at all, such as a file saved without
    /// them. A malformed namespace is left out, so the opt-out of its pods is treated as unread.
    async fn namespaces(&self, what: &str) -> Read<Option<Namespaces>> {
        let listed = match self.source {
            Source::Cluster(cluster) => cluster.namespaces().await.map(Some),
            Source::File(file) => Ok(file.list(RawNamespace::add_to).map(|listed| listed.items)),
        };
        listed.map_err(|failure| self.failed(what, failure))
    }

    /// Reads one node in full, with its own lease.
    pub(super) async fn node(&self, name: &str) -> NodeRead {
        let what = Query::Node(name.to_owned());
        let objects = match self.source {
            Source::Cluster(cluster) => cluster.node_objects(name).await,
            Source::File(file) => file.node_objects(name),
        };
        let objects = match objects {
            Ok(Some(objects)) => objects,
            Ok(None) => return NodeRead::Gone,
            Err(failure) => return NodeRead::Unread(self.failed(what, failure)),
        };
        if let Err(Unread(cause)) = &objects.lease {
            self.failed(format_args!("lease of {what}"), cause);
        }
        match objects.into_facts(&self.wanted.policy.node_selectors) {
            Ok(node) => NodeRead::Known(node),
            Err(cause) if self.is_file() => {
                NodeRead::Unread(self.note(format!("Node {name}"), cause))
            }
            Err(cause) => NodeRead::Unread(self.note(what, Failure::Unreadable(cause))),
        }
    }

    /// Reads the other Leases that name a NotReady node or a pod on it, and adds their heartbeats to
    /// the facts of the nodes.
    async fn other_leases(&self, world: &RefCell<World<'_>>) {
        let holders = world.borrow().holders();
        let (what, at) = (Query::OtherLeases, Instant::now());
        let leases = match self.source {
            Source::Cluster(cluster) => cluster.leases(&holders).await,
            Source::File(file) => Ok(Some(file.leases(&holders))),
        };
        let (read, is_forbidden) = match leases {
            Ok(Some(leases)) => (leases, false),
            Ok(None) => (BTreeMap::new(), true),
            Err(failure) => {
                let unread = self.failed(what, failure);
                let nodes = holders.nodes().into_iter();
                (
                    nodes.map(|node| (node, Err(unread.clone()))).collect(),
                    false,
                )
            }
        };
        let mut world = world.borrow_mut();
        if is_forbidden {
            world.facts.unseen.push(
                "This account may not list Leases: whether something except a kubelet on a NotReady node still renews one is not seen, so no grace period is cut short."
                    .to_owned(),
            );
        }
        world.hear(&holders, read, is_forbidden);
        world.leases = (!is_forbidden).then_some(OtherLeases { holders, at });
    }

    /// Reads an object by its name; `None` if it does not exist.
    async fn find<T: Kept>(&self, namespace: &str, name: &str) -> Result<Option<T>, Failure> {
        match self.source {
            Source::Cluster(cluster) => cluster.find(namespace, name).await,
            Source::File(file) => file.find(namespace, name),
        }
    }

    /// Reads all objects of a kind, and collects them by `add`; `None` if the source has none at
    /// all, such as a file saved without them.
    async fn list<T: Kept, A: Default>(
        &self,
        add: impl Fn(&mut A, T),
    ) -> Result<Option<Listed<A>>, Failure> {
        match self.source {
            Source::Cluster(cluster) => cluster.list("", "", Ask::OBJECT, add).await.map(Some),
            Source::File(file) => Ok(file.list(add)),
        }
    }

    /// Reads a list of pods, and collects them by `add`.
    async fn listed<A: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut A, &RawPod),
    ) -> Result<Listed<A>, Failure> {
        match self.source {
            Source::Cluster(cluster) => cluster.pods(list, |all, pod| add(all, &pod)).await,
            Source::File(file) => Ok(file.pods(list, add)),
        }
    }

    /// Makes the error that ends a run because it could not do `what`.
    fn could_not(&self, what: &str, failure: &Failure) -> CouldNotRun {
        match self.source {
            Source::Cluster(cluster) => cluster.could_not(what, failure),
            Source::File(_) => {
                let what = what.trim_start_matches("read ");
                CouldNotRun::Source(format!("{what} could not be read: {failure}"))
            }
        }
    }

    /// Reads all objects of a kind. Fails if any of them cannot be read, because the unread object
    /// may be the one that matters.
    async fn all<T: Kept, A: Default>(&self, what: &str, add: impl Fn(&mut A, T)) -> Read<A> {
        let listed = self.list(add).await;
        let listed = listed.and_then(|listed| listed.ok_or_else(not_saved::<T>));
        let whole = listed.and_then(|listed| {
            if self.is_file() && !listed.malformed.is_empty() {
                return Err(could_not_read::<T>());
            }
            listed.whole()
        });
        whole.map_err(|failure| self.failed(what, failure))
    }

    /// Returns every node's role in the breaker's count. All nodes are read in full, because a row
    /// does not show which are leaf nodes.
    async fn counted_nodes(&self) -> Read<CountedNodes> {
        let add_node = |counted_nodes: &mut CountedNodes, node: RawNode| {
            let counted_node = node.counted_node(&self.wanted.policy.node_selectors);
            counted_nodes.insert(node.metadata.name, counted_node);
        };
        self.all(&Query::NodeCounts.to_string(), add_node).await
    }
}

impl Store<'_> {
    /// Reads a list of pods.
    async fn pods(&self, list: &PodsOf, suspect: bool) -> Result<Pods> {
        let add = |pods: &mut Pods, pod: &RawPod| pods.add(pod, suspect);
        match self.listed(list, add).await {
            Ok(mut listed) => {
                let unreadable = listed.malformed.iter().filter_map(HolderPod::of_malformed);
                listed.items.holders.extend(unreadable);
                let (pods, _) = self.read_of(list, listed);
                Ok(pods)
            }
            Err(failure) if failure.forbids() => Err(self.could_not("list pods", &failure)),
            Err(failure) => Ok(Pods {
                unread: Some(self.failed(list, failure)),
                ..Pods::default()
            }),
        }
    }

    /// Returns the items of a list of pods, and whether all of them could be read. Each unreadable
    /// item is noted.
    fn read_of<T>(&self, list: &PodsOf, listed: Listed<T>) -> (T, bool) {
        for malformed in &listed.malformed {
            self.failed(list, malformed);
        }
        (listed.items, listed.malformed.is_empty())
    }

    /// Returns the pods of a list that could be read, and reports whether all of them could.
    pub async fn pods_of(&self, list: &PodsOf) -> Read<(Vec<PodFacts>, bool)> {
        let add_pod = |all: &mut Vec<_>, pod: &RawPod| all.push(pod.facts());
        let listed = self.listed(list, add_pod).await;
        let listed = listed.map_err(|failure| self.failed(list, failure))?;
        Ok(self.read_of(list, listed))
    }

    /// Reads a pod by its name; `None` if it does not exist.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let pod = self.find(namespace, name).await;
        let what = format!("read pod {namespace}/{name}");
        pod.map_err(|failure| self.could_not(&what, &failure))
    }

    /// Reads a PVC with its volume.
    async fn pvc(&self, what: &str, namespace: &str, name: &str) -> ClaimRead {
        if !is_name(name) {
            let why = "no PVC can have this name".to_owned();
            return ClaimState::Unread(Unread(why)).into();
        }
        let claim = match self.find::<RawClaim>(namespace, name).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return ClaimState::Absent.into(),
            Err(failure) => return ClaimState::Unread(self.failed(what, failure)).into(),
        };
        let volume = match claim.volume_name() {
            None => Ok(None),
            Some(volume) => {
                let found = self.find::<RawVolume>("", volume).await;
                found.map_err(|failure| match failure {
                    Failure::Saved(cause) => Unread(cause),
                    failure => Unread(format!("its volume {volume}: {failure}")),
                })
            }
        };
        let found = claim.into_found(volume);
        if let ClaimState::Unread(Unread(cause)) = &found.state {
            self.failed(what, cause);
        }
        found
    }
}
