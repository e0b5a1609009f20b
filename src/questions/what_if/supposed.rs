//! A source as it would be if some nodes had died: their kubelets have been silent for ever, and every pod that Kubernetes
//! would evict from them has been stuck for as long. What could not be read stays unread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::cluster::PodsOf;
use crate::exit::Result;
use crate::facts::{
    Attachment, ClaimLook, Namespaces, NodeFacts, NodeRead, PodSummary, Read, ReadError, Ready,
    Traits,
};
use crate::kubernetes::{RawPod, RawStatefulSet};
use crate::source::{Pods, Scan, Source, Standings, Wanted};

/// The answers of `source` as if `dead` had died. Only these nodes are looked at.
pub(super) struct Supposed<'a, S> {
    source: &'a S,
    dead: &'a BTreeSet<String>,
    standings: RefCell<Standings>,
    summaries: RefCell<Vec<PodSummary>>,
}

impl<'a, S: Source> Supposed<'a, S> {
    pub fn new(source: &'a S, dead: &'a BTreeSet<String>) -> Self {
        Self {
            source,
            dead,
            standings: RefCell::default(),
            summaries: RefCell::default(),
        }
    }

    /// What every node counted as, none where that could not be read; and the pods of the dead ones, as they are.
    pub fn seen(self) -> (Standings, Vec<PodSummary>) {
        (self.standings.into_inner(), self.summaries.into_inner())
    }
}

fn die(node: &mut NodeFacts) {
    // One that is Ready is heard until it dies, and so later than any mark was set.
    let heard = node.last_heard().map(|heard| heard.at);
    let refuted = node.ready == Ready::True && heard.is_some();
    node.fenced
        .retain(|mark| mark.stands(heard) && !(refuted && mark.set_by.is_some()));
    // An answer is about the failure that it was given for, not about one that is supposed.
    node.powered_off = None;
    node.ready = Ready::Unknown;
    node.ready_reason = Some("NodeStatusUnknown".to_owned());
    (node.ready_since, node.tainted_since) = (Some(Timestamp::MIN), None);
    (node.heard, node.no_api_server) = (Vec::new(), false);
}

impl<S: Source> Source for Supposed<'_, S> {
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan> {
        Ok(Scan {
            not_ready: self.dead.iter().cloned().collect(),
            thorough: true,
            ..self.source.scan(wanted).await?
        })
    }

    async fn node(&self, name: &str, now: Timestamp) -> NodeRead {
        let mut read = self.source.node(name, now).await;
        if let (NodeRead::Known(node), true) = (&mut read, self.dead.contains(name)) {
            die(node);
        }
        read
    }

    async fn is_open(&self, node: &str) -> bool {
        !self.dead.contains(node) && self.source.is_open(node).await
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        let (mut standings, traits) = self.source.standings(now).await?;
        for (_, standing) in standings
            .iter_mut()
            .filter(|(name, _)| self.dead.contains(*name))
        {
            // It has only just died: nobody has put it away.
            (standing.ready, standing.since) = (false, None);
        }
        self.standings.borrow_mut().clone_from(&standings);
        Ok((standings, traits))
    }

    async fn places(&self, nodes: &[String], _: bool) -> Result<BTreeSet<PodsOf>> {
        Ok(nodes.iter().cloned().map(PodsOf::Node).collect())
    }

    async fn pods(&self, place: &PodsOf) -> Result<Pods> {
        let node = match place {
            PodsOf::Node(node) if self.dead.contains(node) => node,
            _ => return self.source.pods(place).await,
        };
        let (mut terminating, mut unasked) = (Vec::new(), Vec::new());
        for pod in self.source.every_pod(node).await? {
            let summary = pod.summary();
            if summary.evicted() {
                terminating.push(pod.deleted_by(Timestamp::MIN));
            } else {
                unasked.extend(pod.unasked());
            }
            self.summaries.borrow_mut().push(summary);
        }
        Ok(Pods {
            terminating,
            unasked,
            whole: true,
        })
    }

    // The rest is as it is.

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        self.source.every_pod(node).await
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        self.source.pod(namespace, name).await
    }

    async fn summaries(&self, namespace: &str) -> Result<Vec<PodSummary>> {
        self.source.summaries(namespace).await
    }

    async fn namesakes(&self, name: &str) -> Result<Vec<PodSummary>> {
        self.source.namesakes(name).await
    }

    async fn users(&self, namespace: &str) -> Read<Vec<PodSummary>> {
        self.source.users(namespace).await
    }

    async fn namespaces(&self) -> Read<Namespaces> {
        self.source.namespaces().await
    }

    fn opted_out(&self, namespaces: &Read<Namespaces>, name: &str) -> Read<Option<String>> {
        self.source.opted_out(namespaces, name)
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        self.source.attachments().await
    }

    async fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
        self.source.claim(namespace, name).await
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        self.source.real_nodes(selector).await
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>> {
        self.source.stateful_set(namespace, name, needed).await
    }

    fn note_malformed_pod(&self, namespace: String, name: String, cause: String) {
        self.source.note_malformed_pod(namespace, name, cause);
    }

    fn errors(&self) -> Vec<ReadError> {
        self.source.errors()
    }
}
