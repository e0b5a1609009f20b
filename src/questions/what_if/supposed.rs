//! A source that answers as if some nodes had died. Their kubelets have always been silent, and
//! every pod that Kubernetes would evict from them has always been stuck. Unread facts stay unread.

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
    kubernetes::{Holders, RawLease, RawPod, RawStatefulSet},
    source::{Memory, Pods, Scan, Source, Standings, Wanted},
};

/// The answers of `source` if the nodes `dead` had died. Only the pods of these nodes are judged.
pub(super) struct Supposed<'a, S> {
    source: &'a S,
    dead: &'a BTreeSet<String>,
    /// The pods of the dead nodes, once they are listed.
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

    /// Returns the pods of the dead nodes as they are now.
    pub fn pods(self) -> Vec<PodSummary> {
        self.summaries.into_inner()
    }
}

/// Changes a node's facts to those of a node that has always been silent.
fn die(node: &mut NodeFacts) {
    // A Ready node is heard until it dies, and that is after any fencing mark on it was set.
    let heard = node.last_heard().map(|heard| heard.at);
    let refuted = node.ready == Ready::True && heard.is_some();
    node.fenced
        .retain(|mark| mark.stands(heard) && !(refuted && mark.set_by.is_some()));
    // An answer counts for the failure that it was given for, not for a supposed one.
    node.powered_off = None;
    node.ready = Ready::Unknown;
    node.ready_reason = Some("NodeStatusUnknown".to_owned());
    (node.ready_since, node.tainted_since) = (Some(Timestamp::MIN), None);
    (node.heard, node.renewed, node.named_by) = (Vec::new(), None, Ok(BTreeSet::new()));
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
        if let NodeRead::Known(node) = &mut read
            && self.dead.contains(name)
        {
            die(node);
        }
        read
    }

    async fn leases(&self, _: &Holders) -> Option<BTreeMap<String, Read<Vec<RawLease>>>> {
        Some(BTreeMap::new())
    }

    async fn detached_drivers(&self) -> Read<BTreeSet<String>> {
        self.source.detached_drivers().await
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        let standings = || self.source.standings(now);
        let known = self.source.memory().standings.get_or_init(standings).await;
        let (mut standings, traits) = known.clone()?;
        for name in self.dead {
            if let Some(standing) = standings.get_mut(name) {
                // The node has only just died, so it is not one that was put away on purpose.
                (standing.ready, standing.since) = (false, None);
            }
        }
        Ok((standings, traits))
    }

    async fn pod_lists(&self, nodes: &[String], _: bool) -> Result<BTreeSet<PodsOf>> {
        Ok(nodes.iter().cloned().map(PodsOf::Node).collect())
    }

    async fn pods(&self, list: &PodsOf) -> Result<Pods> {
        let node = match list {
            PodsOf::Node(node) if self.dead.contains(node) => node,
            _ => return self.source.pods(list).await,
        };
        let (mut terminating, mut active) = (Vec::new(), Vec::new());
        let mut pods = Pods::default();
        for pod in self.source.every_pod(node).await? {
            let summary = pod.summary();
            pods.add(&summary);
            if summary.evicted() {
                terminating.push(pod.supposed());
            } else if summary.is_active() {
                active.push(summary.clone());
            }
            self.summaries.borrow_mut().push(summary);
        }
        Ok(Pods {
            terminating,
            active,
            whole: true,
            ..pods
        })
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let attachments = || self.source.attachments();
        let all = &self.source.memory().attachments;
        let all = all.get_or_init(attachments).await;
        let dead = self.dead.iter();
        dead.filter_map(|name| Some((name.clone(), all.get(name)?.clone())))
            .collect()
    }

    // Everything else is as the source says. The memory is the source's own, so that several
    // forecasts ask for each fact once.

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
