//! Reads facts from a source, and remembers what could not be read. A failure is a fact too, except
//! a failure that ends the run.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use super::{NotRead, Source, Wanted};
use crate::{
    cluster::{Failure, Listed},
    exit::Result,
    facts::{
        Attachment, ClaimRead, ClaimState, Namespaces, NodeCounts, NodeRead, PodFacts, PodsOf,
        Read, ReadError, Unread,
    },
    kubernetes::{HolderPod, Holders, LeasesByNode, RawPod, RawStatefulSet},
    selector::is_name,
};

/// A source, and the reads that failed.
pub struct Reader<'a, S> {
    pub source: &'a S,
    pub wanted: Wanted<'a>,
    pub(super) errors: RefCell<BTreeSet<ReadError>>,
}

/// The pods of one list.
#[derive(Default)]
pub struct Pods {
    /// All pods of a NotReady node. Of any other list, the Terminating pods.
    pub kept: Vec<PodFacts>,
    /// Every pod of the list, as a holder of Leases.
    pub holders: BTreeSet<HolderPod>,
    /// Whether etcd runs there as a static pod.
    pub etcd: bool,
    /// Why the list could not be read, if so.
    pub unread: Option<Unread>,
}

impl<'a, S: Source> Reader<'a, S> {
    /// Returns a reader of `source`.
    pub fn new(source: &'a S, wanted: Wanted<'a>) -> Self {
        Self {
            source,
            wanted,
            errors: RefCell::default(),
        }
    }

    /// Notes an object or list that could not be read, and why.
    pub(super) fn note(&self, what: impl Display, cause: impl Display) {
        let (what, cause) = (what.to_string(), cause.to_string());
        self.errors.borrow_mut().insert(ReadError { what, cause });
    }

    /// Notes a read that failed, unless the source has named the unreadable object already.
    pub(super) fn failed(&self, what: impl Display, cause: impl Display) -> Unread {
        let cause = cause.to_string();
        let error = self.source.failed(what.to_string(), cause.clone());
        self.errors.borrow_mut().extend(error);
        Unread(cause)
    }

    pub(super) async fn namespaces(&self) -> Read<Option<Namespaces>> {
        let read = self.source.namespaces().await;
        read.map_err(|failure| self.failed("namespaces", failure))
    }

    pub(super) async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let mut read = self.source.attachments().await.unwrap_or_else(|failure| {
            self.failed("VolumeAttachments", failure);
            BTreeMap::new()
        });
        for on_node in read.values_mut() {
            on_node.sort();
        }
        read
    }

    /// Reads a node in full, with its own lease.
    pub(super) async fn node(&self, name: &str) -> NodeRead {
        let what = format!("node {name}");
        let objects = match self.source.node(name).await {
            Ok(Some(objects)) => objects,
            Ok(None) => return NodeRead::Gone,
            Err(failure) => return NodeRead::Unread(self.failed(what, failure)),
        };
        if let Err(Unread(cause)) = &objects.lease {
            self.failed(format_args!("lease of {what}"), cause);
        }
        match objects.into_facts(self.wanted.policy) {
            Ok(node) => NodeRead::Known(node),
            Err(cause) => {
                self.note(what, &cause);
                NodeRead::Unread(Unread(cause))
            }
        }
    }

    /// Reads a list of pods. It keeps every pod of a NotReady node: Kubernetes has not evicted an
    /// active pod there.
    pub(super) async fn pods(&self, list: &PodsOf, is_not_ready: bool) -> Result<Pods> {
        let add = |pods: &mut Pods, raw: &RawPod| {
            let pod = raw.facts();
            pods.holders.insert(raw.as_holder());
            pods.etcd |= raw.runs_etcd();
            if is_not_ready || pod.deletion.is_some() {
                pods.kept.push(pod);
            }
        };
        match self.source.pods(list, add).await {
            Ok(mut listed) => {
                let unreadable = listed.malformed.iter().filter_map(HolderPod::of_malformed);
                listed.items.holders.extend(unreadable);
                listed.items.etcd |= listed.malformed.iter().any(RawPod::may_run_etcd);
                Ok(self.readable(list, listed))
            }
            Err(failure) if failure.failure().is_some_and(Failure::forbids) => {
                Err(self.source.could_not("list pods", &failure))
            }
            Err(failure) => Ok(Pods {
                unread: Some(self.failed(list, failure)),
                ..Pods::default()
            }),
        }
    }

    /// Returns the items of a list of pods. Each unreadable item is noted.
    fn readable<T>(&self, list: &PodsOf, listed: Listed<T>) -> T {
        for malformed in &listed.malformed {
            self.failed(list, malformed);
        }
        listed.items
    }

    /// Reads the pods of a list that can be read.
    pub async fn readable_pods(&self, list: &PodsOf) -> Read<Vec<PodFacts>> {
        let add_pod = |all: &mut Vec<_>, pod: &RawPod| all.push(pod.facts());
        let listed = self.source.pods(list, add_pod).await;
        let listed = listed.map_err(|failure| self.failed(list, failure))?;
        Ok(self.readable(list, listed))
    }

    /// Reads the other Leases by node; `None` if this account may not list them.
    pub(super) async fn other_leases(&self, holders: &Holders) -> Option<LeasesByNode> {
        self.source
            .other_leases(holders)
            .await
            .unwrap_or_else(|failure| {
                let unread = self.failed("Leases", failure);
                let nodes = holders.nodes().into_iter();
                Some(nodes.map(|node| (node, Err(unread.clone()))).collect())
            })
    }

    /// Counts the nodes for the breaker. All nodes are read in full, because a row does not show
    /// which are leaf nodes.
    pub(super) async fn node_counts(&self) -> NodeCounts {
        let leaf = &self.wanted.policy.node_selectors;
        match self.source.counted_nodes(leaf).await {
            Ok(nodes) => NodeCounts::count(nodes.into_values()),
            Err(failure) => NodeCounts::Unread(self.failed("all nodes, for the breaker", failure)),
        }
    }

    /// Reads a PVC with its volume.
    pub(super) async fn claim(&self, namespace: &str, name: &str) -> ClaimRead {
        if !is_name(name) {
            let why = "no PVC can have this name".to_owned();
            return ClaimState::Unread(Unread(why)).into();
        }
        let what = format!("PVC {namespace}/{name}");
        let claim = match self.source.claim(namespace, name).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return ClaimState::Absent.into(),
            Err(failure) => return ClaimState::Unread(self.failed(what, failure)).into(),
        };
        let volume = match claim.volume_name() {
            None => Ok(None),
            Some(volume) => {
                let found = self.source.volume(volume).await;
                found.map_err(|failure| match failure {
                    NotRead::File(cause) => Unread(cause),
                    NotRead::Cluster(failure) => Unread(format!("its volume {volume}: {failure}")),
                })
            }
        };
        let found = claim.into_found(volume);
        if let ClaimState::Unread(cause) = &found.state {
            self.failed(what, cause);
        }
        found
    }

    /// Names real nodes that a volume allows.
    pub(super) async fn nodes_for(&self, selector: &str) -> Read<Vec<String>> {
        let leaf = &self.wanted.policy.node_selectors;
        let nodes = self.source.real_nodes(selector, leaf).await;
        nodes.map_err(|failure| match failure.failure().and_then(Failure::code) {
            // The API server refuses this selector every time, so no reading has failed.
            Some(400) => failure.into(),
            _ => self.failed(
                format_args!("nodes that a volume allows ({selector})"),
                failure,
            ),
        })
    }

    pub(super) async fn detached_drivers(&self) -> Read<BTreeSet<String>> {
        let read = self.source.detached_drivers().await;
        read.map_err(|failure| self.failed("CSIDrivers", failure))
    }

    /// Reads a `StatefulSet`. A failure is noted only once a verdict depends on it.
    pub(super) async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<RawStatefulSet>, NotRead> {
        self.source.stateful_set(namespace, name).await
    }
}
