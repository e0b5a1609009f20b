//! A source as it would be if some nodes had died: their kubelets have been silent for ever, and every pod that Kubernetes
//! would evict from them has been stuck for as long. What could not be read stays unread.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;

use crate::{
    cluster::PodsOf,
    exit::Result,
    facts::{
        Attachment, FoundClaim, Namespaces, NodeFacts, NodeRead, PodSummary, Read, Ready, Traits,
    },
    kubernetes::{RawPod, RawStatefulSet},
    source::{Memory, Pods, Scan, Source, Standings, Wanted},
};

/// The source as if the nodes of `dead` had died. Only these nodes are judged.
pub(super) struct Supposed<'a, S> {
    source: &'a S,
    dead: &'a BTreeSet<String>,
    summaries: RefCell<Vec<PodSummary>>,
}

impl<'a, S: Source> Supposed<'a, S> {
    pub fn new(source: &'a S, dead: &'a BTreeSet<String>) -> Self {
        Self {
            source,
            dead,
            summaries: RefCell::default(),
        }
    }

    /// The pods of the dead nodes, as they are.
    pub fn pods(self) -> Vec<PodSummary> {
        self.summaries.into_inner()
    }
}

fn die(node: &mut NodeFacts) {
    // A Ready node is heard until it dies, which is later than any mark on it was set.
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
        let scan = || self.source.scan(wanted);
        Ok(Scan {
            not_ready: self.dead.iter().cloned().collect(),
            thorough: true,
            ..self
                .source
                .memory()
                .scan
                .get_or_try_init(scan)
                .await?
                .clone()
        })
    }

    async fn node(&self, name: &str, now: Timestamp) -> NodeRead {
        let mut read = self.source.node(name, now).await;
        if let (NodeRead::Known(node), true) = (&mut read, self.dead.contains(name)) {
            die(node);
        }
        read
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        let standings = || self.source.standings(now);
        let known = self.source.memory().standings.get_or_init(standings).await;
        let (mut standings, traits) = known.clone()?;
        for (_, standing) in standings
            .iter_mut()
            .filter(|(name, _)| self.dead.contains(*name))
        {
            // It has only just died: nobody has put it away.
            (standing.ready, standing.since) = (false, None);
        }
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
                terminating.push(pod.supposed());
            } else if summary.is_unasked() {
                unasked.push(summary.clone());
            }
            self.summaries.borrow_mut().push(summary);
        }
        Ok(Pods {
            terminating,
            unasked,
            whole: true,
        })
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let attachments = || self.source.attachments();
        let all = &self.source.memory().attachments;
        let all = all.get_or_init(attachments).await;
        let on_dead = self.dead.iter().filter_map(|name| all.get_key_value(name));
        on_dead
            .map(|(name, on_node)| (name.clone(), on_node.clone()))
            .collect()
    }

    // All else is as the source says. What is to be remembered is told to the source itself.

    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        self.source.namespaces().await
    }

    async fn claim(&self, namespace: &str, name: &str) -> FoundClaim {
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

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        self.source.every_pod(node).await
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        self.source.pod(namespace, name).await
    }

    async fn summaries(&self, pods: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        self.source.summaries(pods).await
    }

    fn memory(&self) -> &Memory {
        self.source.memory()
    }
}
