//! Gathering from a cluster: the questions as requests. The work grows with the failure, not with the cluster.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use jiff::Timestamp;

use super::{Pods, Scan, Source, Standings, Wanted};
use crate::{
    cluster::{Cluster, Failure, Listed, PodsOf},
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, ClaimLook, ClaimState, ClusterFacts, Namespaces, NodeRead, PodSummary, Read,
        ReadError, Traits, Unread,
    },
    kubernetes::{RawPod, RawStatefulSet},
};

/// A cluster, asked for one run.
pub struct Live<'a> {
    cluster: &'a Cluster,
    errors: RefCell<Vec<ReadError>>,
}

impl<'a> Live<'a> {
    /// Asks `cluster`.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            errors: RefCell::default(),
        }
    }

    /// Takes note of what could not be read.
    fn unread(&self, what: String, cause: &dyn Display) -> Unread {
        let cause = cause.to_string();
        self.errors.borrow_mut().push(ReadError {
            what,
            cause: cause.clone(),
        });
        Unread(cause)
    }

    /// What only giving up claims needs could not be read: the account may lack that right alone.
    fn unread_to_give_up(&self, what: String, failure: &Failure) -> Unread {
        let lacks = if failure.forbids() {
            "; cronjob/components/answers grants that right"
        } else {
            ""
        };
        self.unread(what, &format!("{failure}{lacks}"))
    }

    /// The items of a list, those that could not be read noted.
    fn readable<T>(&self, pods: &PodsOf, listed: Result<Listed<T>, Failure>) -> Result<T> {
        let listed = listed.map_err(self.cluster.could_not("list pods"))?;
        for cause in &listed.malformed {
            self.unread(pods.what(), cause);
        }
        Ok(listed.items)
    }
}

impl Source for Live<'_> {
    /// It has to say what time it is.
    async fn scan(&self, _: &Wanted<'_>) -> Result<Scan> {
        let scan = self
            .cluster
            .scan()
            .await
            .map_err(self.cluster.could_not("list nodes"))?;
        let now = scan.now.ok_or_else(|| {
            let why = "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        Ok(Scan {
            facts: ClusterFacts {
                now,
                place: Some(self.cluster.place.clone()),
                node_count: scan.nodes,
                ..ClusterFacts::default()
            },
            not_ready: scan.not_ready,
            ready: scan.ready,
            thorough: false,
        })
    }

    async fn node(&self, name: &str, _: Timestamp) -> NodeRead {
        match self.cluster.node(name).await {
            Ok(Some(look)) => {
                if let Some(Unread(cause)) = &look.facts.unheard {
                    self.unread(format!("lease of node {name}"), cause);
                }
                NodeRead::Known(look.facts)
            }
            Ok(None) => NodeRead::Gone,
            Err(failure) => NodeRead::Unread(self.unread(format!("node {name}"), &failure)),
        }
    }

    async fn is_open(&self, node: &str) -> bool {
        let look = self.cluster.node(node).await.ok().flatten();
        look.is_some_and(|look| {
            look.facts.leaf.is_none() && look.facts.standing(look.now).is_open()
        })
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        self.cluster
            .standings(now)
            .await
            .map_err(|failure| self.unread("all nodes, for the breaker".to_owned(), &failure))
    }

    async fn places(&self, nodes: &[String], all: bool) -> Result<BTreeSet<PodsOf>> {
        let mut places = nodes.iter().cloned().map(PodsOf::Node).collect();
        if all {
            let more = self
                .cluster
                .places_of_terminating_pods()
                .await
                .map_err(self.cluster.could_not("list pods"))?;
            BTreeSet::extend(&mut places, more);
        }
        Ok(places)
    }

    async fn pods(&self, place: &PodsOf) -> Result<Pods> {
        match self.cluster.terminating_pods(place).await {
            Err(failure) if !failure.forbids() => {
                self.unread(place.what(), &failure);
                Ok(Pods::default())
            }
            listed => {
                let whole = listed.as_ref().is_ok_and(|it| it.malformed.is_empty());
                let (terminating, unasked) = self.readable(place, listed)?;
                Ok(Pods {
                    terminating,
                    unasked,
                    whole,
                })
            }
        }
    }

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        let pods = PodsOf::Node(node.to_owned());
        self.readable(&pods, self.cluster.every_pod(&pods).await)
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let pod = self.cluster.find(namespace, name).await;
        let what = format!("read pod {namespace}/{name}");
        pod.map_err(self.cluster.could_not(&what))
    }

    async fn summaries(&self, namespace: &str) -> Result<Vec<PodSummary>> {
        let pods = PodsOf::Namespace(namespace.to_owned());
        self.readable(&pods, self.cluster.summaries(&pods).await)
    }

    async fn users(&self, namespace: &str) -> Read<Vec<PodSummary>> {
        let pods = PodsOf::Namespace(namespace.to_owned());
        self.cluster
            .summaries(&pods)
            .await
            .and_then(Listed::whole)
            .map_err(|failure| self.unread_to_give_up(pods.what(), &failure))
    }

    async fn namesakes(&self, name: &str) -> Result<Vec<PodSummary>> {
        let pods = PodsOf::Name(name.to_owned());
        self.readable(&pods, self.cluster.summaries(&pods).await)
    }

    async fn namespaces(&self) -> Read<Namespaces> {
        let namespaces = self.cluster.namespaces().await;
        namespaces.map_err(|failure| self.unread("namespaces".to_owned(), &failure))
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        self.cluster.attachments().await.unwrap_or_else(|failure| {
            self.unread("VolumeAttachments".to_owned(), &failure);
            BTreeMap::new()
        })
    }

    async fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
        let look = self.cluster.claim(namespace, name).await;
        if let ClaimState::Unread(Unread(cause)) = &look.state {
            self.unread(format!("claim {namespace}/{name}"), cause);
        }
        look
    }

    /// None where they may not be listed.
    async fn claims(&self) -> BTreeMap<(String, String), ClaimLook> {
        self.cluster.claims().await.unwrap_or_default()
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let nodes = self.cluster.real_nodes(selector).await;
        nodes.map_err(|failure| match failure.code() {
            // A refused selector will be refused again: nothing failed to be read.
            Some(400) => Unread(failure.to_string()),
            _ => self.unread(format!("nodes that a volume allows ({selector})"), &failure),
        })
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>> {
        self.cluster.find(namespace, name).await.map_err(|failure| {
            if needed {
                let what = format!("StatefulSet {namespace}/{name}");
                return self.unread_to_give_up(what, &failure);
            }
            Unread(failure.to_string())
        })
    }

    fn note_malformed_pod(&self, namespace: String, name: String, cause: String) {
        self.unread(format!("pod {namespace}/{name}"), &cause);
    }

    fn errors(&self) -> Vec<ReadError> {
        let mut errors = self.errors.borrow().clone();
        errors.sort();
        errors
    }
}
