//! A source as it would be if some nodes had died: their kubelets have been silent for ever, and every pod that Kubernetes
//! would evict from them has been stuck for as long. What could not be read stays unread.
//!
//! A [`Memory`] is for many such suppositions about one cluster: what they all ask is asked once.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;
use tokio::sync::OnceCell;

use crate::{
    cluster::PodsOf,
    exit::Result,
    facts::{
        Attachment, ClaimLook, Namespaces, NodeFacts, NodeRead, PodSummary, Read, Ready, Traits,
    },
    kubernetes::{RawPod, RawStatefulSet},
    source::{Errors, Pods, Scan, Source, Standings, Wanted},
};

/// Answers of a source that stay the same, whatever is supposed.
#[derive(Default)]
pub(super) struct Memory {
    scan: OnceCell<Scan>,
    standings: OnceCell<Read<(Standings, Traits)>>,
    namespaces: OnceCell<Option<Read<Namespaces>>>,
    attachments: OnceCell<BTreeMap<String, Vec<Attachment>>>,
    /// As many as could be listed.
    claims: BTreeMap<(String, String), ClaimLook>,
    selected: Known<String, Read<Vec<String>>>,
    /// By namespace, name, and whether a verdict needs it.
    sets: Known<(String, String, bool), Read<Option<RawStatefulSet>>>,
    users: Known<PodsOf, Read<(Vec<PodSummary>, bool)>>,
    /// Of nodes that are not supposed to be dead: whether a pod is Terminating there.
    busy: Known<PodsOf, Pods>,
}

impl Memory {
    pub fn knowing(claims: BTreeMap<(String, String), ClaimLook>) -> Self {
        Self {
            claims,
            ..Self::default()
        }
    }
}

type Known<K, V> = RefCell<BTreeMap<K, V>>;

/// What is known of `key`; else what `ask` finds, which is then known.
async fn recall<K: Ord, V: Clone>(known: &Known<K, V>, key: K, ask: impl Future<Output = V>) -> V {
    if let Some(found) = known.borrow().get(&key) {
        return found.clone();
    }
    let found = ask.await;
    known.borrow_mut().insert(key, found.clone());
    found
}

/// The answers of `source` as if `dead` had died. Only these nodes are looked at.
pub(super) struct Supposed<'a, S> {
    source: &'a S,
    memory: &'a Memory,
    dead: &'a BTreeSet<String>,
    standings: RefCell<Standings>,
    summaries: RefCell<Vec<PodSummary>>,
}

impl<'a, S: Source> Supposed<'a, S> {
    pub fn new(source: &'a S, memory: &'a Memory, dead: &'a BTreeSet<String>) -> Self {
        Self {
            source,
            memory,
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

impl<S: Source> Supposed<'_, S> {
    /// Of pods elsewhere only whether one may be Terminating is asked.
    async fn others(&self, place: &PodsOf) -> Result<Pods> {
        if let Some(found) = self.memory.busy.borrow().get(place) {
            return Ok(found.clone());
        }
        let mut found = self.source.pods(place).await?;
        found.terminating.truncate(1);
        found.unasked.clear();
        self.memory
            .busy
            .borrow_mut()
            .insert(place.clone(), found.clone());
        Ok(found)
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
            ..self.memory.scan.get_or_try_init(scan).await?.clone()
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
        let known = self.memory.standings.get_or_init(standings).await;
        let (mut standings, traits) = known.clone()?;
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
            _ => return self.others(place).await,
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

    // The rest is as it is.

    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        let namespaces = || self.source.namespaces();
        self.memory.namespaces.get_or_init(namespaces).await.clone()
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let attachments = || self.source.attachments();
        let all = self.memory.attachments.get_or_init(attachments).await;
        let on_dead = self.dead.iter().filter_map(|name| all.get_key_value(name));
        on_dead
            .map(|(name, on_node)| (name.clone(), on_node.clone()))
            .collect()
    }

    async fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
        let key = (namespace.to_owned(), name.to_owned());
        match self.memory.claims.get(&key) {
            Some(look) => look.clone(),
            None => self.source.claim(namespace, name).await,
        }
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let nodes = self.source.real_nodes(selector);
        recall(&self.memory.selected, selector.to_owned(), nodes).await
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>> {
        let key = (namespace.to_owned(), name.to_owned(), needed);
        let set = self.source.stateful_set(namespace, name, needed);
        recall(&self.memory.sets, key, set).await
    }

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        self.source.every_pod(node).await
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        self.source.pod(namespace, name).await
    }

    /// Asked only about claims, so of the pods those that use any are remembered.
    async fn summaries(&self, pods: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        let users = async {
            let (mut users, whole) = self.source.summaries(pods).await?;
            users.retain(|user| !user.claims.is_empty());
            Ok((users, whole))
        };
        recall(&self.memory.users, pods.clone(), users).await
    }

    fn errors(&self) -> &Errors {
        self.source.errors()
    }
}
