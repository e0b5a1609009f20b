//! Gathering from a cluster: the questions as requests. The work grows with the failure, not with the cluster.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Errors, Pods, Scan, Source, Standings, Wanted};
use crate::{
    cluster::{Cluster, Listed, PodsOf},
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, ClaimLook, ClaimState, ClusterFacts, Namespaces, NodeRead, PodSummary, Read,
        Traits, Unread,
    },
    kubernetes::{RawPod, RawStatefulSet},
};

/// A cluster, asked for one run.
pub struct Live<'a> {
    cluster: &'a Cluster,
    errors: Errors,
}

impl<'a> Live<'a> {
    /// Asks `cluster`.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            errors: Errors::default(),
        }
    }

    /// The items of a list, those that could not be read noted.
    fn readable<T>(&self, pods: &PodsOf, listed: Listed<T>) -> T {
        for cause in &listed.malformed {
            self.errors.note(pods.what(), cause);
        }
        listed.items
    }
}

impl Source for Live<'_> {
    /// It has to say what time it is.
    async fn scan(&self, _: &Wanted<'_>) -> Result<Scan> {
        let (now, rows) = self
            .cluster
            .scan()
            .await
            .map_err(self.cluster.could_not("list nodes"))?;
        let now = now.ok_or_else(|| {
            let why = "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        Ok(Scan {
            facts: ClusterFacts {
                now,
                place: Some(self.cluster.place.clone()),
                node_count: rows.nodes,
                ..ClusterFacts::default()
            },
            not_ready: rows.not_ready,
            ready: rows.ready,
            thorough: false,
        })
    }

    async fn node(&self, name: &str, _: Timestamp) -> NodeRead {
        match self.cluster.node(name).await {
            Ok(Some(look)) => {
                if let Some(Unread(cause)) = &look.facts.unheard {
                    self.errors.note(format!("lease of node {name}"), cause);
                }
                NodeRead::Known(look.facts)
            }
            Ok(None) => NodeRead::Gone,
            Err(failure) => NodeRead::Unread(self.errors.note(format!("node {name}"), failure)),
        }
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        self.cluster.standings(now).await.map_err(|failure| {
            self.errors
                .note("all nodes, for the breaker".to_owned(), failure)
        })
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
        let listed = match self.cluster.terminating_pods(place).await {
            Err(failure) if failure.forbids() => {
                return Err(self.cluster.could_not("list pods")(failure));
            }
            Err(failure) => {
                self.errors.note(place.what(), failure);
                return Ok(Pods::default());
            }
            Ok(listed) => listed,
        };
        let whole = listed.malformed.is_empty();
        let (terminating, unasked) = self.readable(place, listed);
        Ok(Pods {
            terminating,
            unasked,
            whole,
        })
    }

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        let pods = PodsOf::Node(node.to_owned());
        let listed = self.cluster.every_pod(&pods).await;
        let listed = listed.map_err(self.cluster.could_not("list pods"))?;
        Ok(self.readable(&pods, listed))
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let pod = self.cluster.find(namespace, name).await;
        let what = format!("read pod {namespace}/{name}");
        pod.map_err(self.cluster.could_not(&what))
    }

    async fn summaries(&self, pods: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        let listed = self.cluster.summaries(pods).await;
        let listed = listed.map_err(|failure| self.errors.note(pods.what(), failure))?;
        let whole = listed.malformed.is_empty();
        Ok((self.readable(pods, listed), whole))
    }

    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        let namespaces = self.cluster.namespaces().await;
        Some(namespaces.map_err(|failure| self.errors.note("namespaces".to_owned(), failure)))
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        self.cluster.attachments().await.unwrap_or_else(|failure| {
            self.errors.note("VolumeAttachments".to_owned(), failure);
            BTreeMap::new()
        })
    }

    async fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
        let look = self.cluster.claim(namespace, name).await;
        if let ClaimState::Unread(Unread(cause)) = &look.state {
            self.errors.note(format!("claim {namespace}/{name}"), cause);
        }
        look
    }

    /// None where they may not be listed.
    async fn claims(&self) -> BTreeMap<(String, String), ClaimLook> {
        self.cluster.claims().await.unwrap_or_default()
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let nodes = self.cluster.real_nodes(selector).await;
        nodes.map_err(|failure| {
            // A refused selector will be refused again: nothing failed to be read.
            if failure.code() == Some(400) {
                return Unread(failure.to_string());
            }
            let what = format!("nodes that a volume allows ({selector})");
            self.errors.note(what, failure)
        })
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>> {
        self.cluster.find(namespace, name).await.map_err(|failure| {
            if !needed {
                return Unread(failure.to_string());
            }
            // Only giving up claims needs it: the account may lack that right alone.
            let lacks = if failure.forbids() {
                "; cronjob/components/answers grants that right"
            } else {
                ""
            };
            let what = format!("StatefulSet {namespace}/{name}");
            self.errors.note(what, format!("{failure}{lacks}"))
        })
    }

    fn errors(&self) -> &Errors {
        &self.errors
    }
}
