//! Gathering, steps 1 to 3 of a run: what is known about the cluster, and the Terminating pods to be judged. A run,
//! `what-if` and `explain` all gather here, from a cluster or from a snapshot.

mod claims;
pub mod cluster;
pub mod snapshot;
mod stream;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::Arc,
};

use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use tokio::sync::OnceCell;

use crate::{
    cluster::{MAX_IN_FLIGHT, PodsOf},
    decide::Policy,
    exit::Result,
    facts::{
        Attachment, Census, ClusterFacts, FoundClaim, Namespaces, NodeRead, PodFacts, PodSummary,
        Read, ReadError, Ready, Standing, Traits, Unread, opted_out,
    },
    kubernetes::{RawPod, RawStatefulSet},
    limits::FEW_NODES,
    selector::NamespaceFilter,
};

pub use self::claims::wanted_again;

/// Where facts come from. If one object cannot be read, the source notes an error, and the caller receives `Unread`.
/// [`CouldNotRun`](crate::exit::CouldNotRun) is returned only if nothing can be judged.
#[allow(async_fn_in_trait, reason = "one thread runs everything")]
pub trait Source {
    /// What the cheapest reading of all nodes tells.
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan>;
    /// One node, whole, with its leases.
    async fn node(&self, name: &str, now: Timestamp) -> NodeRead;
    /// What every node counts as for the breaker, as if a pod of each were Terminating; and which traits the nodes have.
    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)>;
    /// The lists that hold the pods to be judged: those of `nodes`, and with `all` every list that may hold a Terminating pod.
    async fn places(&self, nodes: &[String], all: bool) -> Result<BTreeSet<PodsOf>>;
    /// The pods of such a list.
    async fn pods(&self, place: &PodsOf) -> Result<Pods>;
    /// All pods of a node, Terminating or not.
    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>>;
    /// A pod by its name; `None` where it does not exist.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>>;
    /// A summary of each of `pods` that could be read, and whether all could.
    async fn summaries(&self, pods: &PodsOf) -> Read<(Vec<PodSummary>, bool)>;
    /// All namespaces; `None` where the source cannot hold any, as a file that was saved without them.
    async fn namespaces(&self) -> Option<Read<Namespaces>>;
    /// `VolumeAttachments` by the node they name.
    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>>;
    /// A claim with its volume.
    async fn claim(&self, namespace: &str, name: &str) -> FoundClaim;
    /// Remembers claims with their volumes, where to list them all is cheaper than to ask for each.
    async fn remember_claims(&self) {}
    /// The real nodes that a label selector selects: all of them, or two of more.
    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>>;
    /// A `StatefulSet`; `None` where it does not exist. Where it could not be read, that is an error of the run only if it is
    /// `needed` for a verdict.
    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>>;
    /// What the source was asked so far.
    fn memory(&self) -> &Memory;
}

/// What a source was asked already, so that it is asked once; and what could not be read so far.
#[derive(Default)]
pub struct Memory {
    errors: RefCell<BTreeSet<ReadError>>,
    pub(crate) scan: OnceCell<Scan>,
    pub(crate) standings: OnceCell<Read<(Standings, Traits)>>,
    namespaces: OnceCell<Option<Read<Namespaces>>>,
    pub(crate) attachments: OnceCell<BTreeMap<String, Vec<Attachment>>>,
    /// By node, whether a pod is Terminating there, or may be.
    busy: Known<String, bool>,
    /// By namespace and name.
    claims: Known<(String, String), FoundClaim>,
    /// By namespace, name, and whether a verdict needs it.
    sets: Known<(String, String, bool), Read<Option<RawStatefulSet>>>,
    /// By label selector, the real nodes.
    selected: Known<String, Read<Vec<String>>>,
    /// By namespace, the pods that use claims.
    users: Known<String, Read<Vec<PodSummary>>>,
}

impl Memory {
    /// Takes note of what could not be read, and why.
    pub fn note(&self, what: String, cause: impl Display) -> Unread {
        let cause = cause.to_string();
        let error = ReadError {
            what,
            cause: cause.clone(),
        };
        self.errors.borrow_mut().insert(error);
        Unread(cause)
    }

    /// All that could not be read, in order.
    pub fn errors(&self) -> Vec<ReadError> {
        self.errors.borrow().iter().cloned().collect()
    }
}

/// What is known of each key. Whoever asks about a key while another is asking waits for the same answer.
#[derive(Debug)]
struct Known<K, V>(RefCell<BTreeMap<K, Arc<OnceCell<V>>>>);

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Ord, V> Known<K, V> {
    pub fn of(&self, key: K) -> Arc<OnceCell<V>> {
        self.0.borrow_mut().entry(key).or_default().clone()
    }
}

/// What each node counts as for the breaker, by its name.
pub type Standings = BTreeMap<String, Standing>;

/// What the cheapest reading of all nodes tells.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The facts that follow from it alone: the moment to judge at, the cluster's name, how many nodes there are.
    pub facts: ClusterFacts,
    /// The nodes that are not plainly Ready.
    pub not_ready: Vec<String>,
    /// A Ready node on which pods may start, as far as this reading shows.
    pub ready: Option<String>,
    /// All that a report can say is read: a file costs no requests, and a forecast asks for it.
    pub thorough: bool,
}

/// Pods of one place.
#[derive(Debug, Clone, Default)]
pub struct Pods {
    /// The Terminating ones.
    pub terminating: Vec<RawPod>,
    /// A summary of each of the others that runs: it tells why Kubernetes has not asked it to go.
    pub active: Vec<PodSummary>,
    /// Every pod of the list could be read.
    pub whole: bool,
}

/// What is to be gathered.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The rules' choices: claims are looked up only of pods that the rules before the volume rules let through.
    pub policy: &'a Policy,
    /// The namespaces whose pods are judged.
    pub namespaces: &'a NamespaceFilter,
    /// Judge Terminating pods of Ready nodes too.
    pub all: bool,
}

/// What was gathered.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// What is known about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, with all that a rule asks about their claims. Apart from the facts,
    /// because they go over into the plan: of tens of thousands there must be no second copy.
    pub pods: Vec<PodFacts>,
}

/// Steps 1 to 3 of a run. `asked` is a Terminating pod that is judged in any case, wherever it is.
pub async fn gather(
    source: &impl Source,
    wanted: &Wanted<'_>,
    asked: Option<RawPod>,
) -> Result<Gathered> {
    // 1. Find the nodes that are not plainly Ready.
    let Scan {
        mut facts,
        not_ready: suspects,
        ready,
        thorough,
    } = source.scan(wanted).await?;
    let (now, memory) = (facts.now, source.memory());
    if suspects.is_empty() && !wanted.all && !thorough && asked.is_none() {
        let pods = Vec::new();
        return Ok(Gathered { facts, pods });
    }

    // 2. Read those nodes whole, and list their pods; what else the rules ask about comes along.
    let node = |name: String| async move { source.node(&name, now).await };
    let (nodes, listed, namespaces, attachments) = tokio::join!(
        each(suspects.iter().cloned(), node),
        list_pods(source, wanted, &suspects),
        memory.namespaces.get_or_init(|| source.namespaces()),
        source.attachments(),
    );
    let PodLists { pods, active, busy } = listed?;
    (facts.nodes, facts.attachments, facts.active) = (nodes, attachments, active);
    for on_node in facts.attachments.values_mut() {
        on_node.sort();
    }
    if let Some(Ok(known)) = namespaces {
        let none = !known.keys().any(|name| wanted.namespaces.matches(name));
        facts.unmatched_namespaces = (none && !known.is_empty()).then_some(known.len());
    }
    let asked_uid = asked.as_ref().map(|pod| pod.metadata.uid.clone());
    let is_asked = |pod: &PodFacts| asked_uid.as_ref() == Some(&pod.uid);
    // What was asked about comes last: the list may show it as it was before.
    let raw = pods.into_iter().chain(asked);
    let mut pods = identified(source, raw, namespaces.as_ref());
    // A pod may be on a node that was not read so far, and that is opted out or gone.
    let others = pods
        .iter()
        .filter_map(|pod| pod.node.clone())
        .filter(|name| !facts.nodes.contains_key(name))
        .collect::<BTreeSet<_>>();
    facts.nodes.extend(each(others, node).await);
    if !wanted.all {
        // A node that became Ready between the scan and its reading counts as Ready.
        let found = pods.len();
        pods.retain(|pod| is_asked(pod) || !facts.on_ready_node(pod));
        // A scan that is not thorough does not see all of them, so it cannot say how many are left out.
        facts.on_ready_nodes = if thorough { found - pods.len() } else { 0 };
    }
    log_namespaces(&pods);

    // 3. Look up the claims of those that the rules let through so far; count the nodes if the breaker has to judge.
    let needs_census = thorough || !pods.is_empty();
    let ready = ready.filter(|_| suspects.len() <= FEW_NODES && !thorough);
    let census = async {
        if !needs_census || has_room(source, ready, now).await {
            return Ok(Default::default());
        }
        take_census(source, now, &busy).await
    };
    let (pods, census) = tokio::join!(
        claims::look_up(source, wanted.policy, &facts, pods, is_asked),
        census,
    );
    (facts.census, facts.traits) = census?;
    facts.errors = source.memory().errors();
    Ok(Gathered { facts, pods })
}

/// The pods as facts, each once: the last of its UID.
fn identified(
    source: &impl Source,
    pods: impl Iterator<Item = RawPod>,
    namespaces: Option<&Read<Namespaces>>,
) -> Vec<PodFacts> {
    let mut by_uid = BTreeMap::new();
    for raw in pods {
        let (namespace, name) = (raw.metadata.namespace.clone(), raw.metadata.name.clone());
        match raw.into_facts(namespaces.map_or(Ok(None), |all| opted_out(all, &namespace))) {
            Ok(pod) => drop(by_uid.insert(pod.uid.clone(), pod)),
            Err(cause) => {
                let what = format!("pod {namespace}/{name}");
                source.memory().note(what, cause);
            }
        }
    }
    by_uid.into_values().collect()
}

/// Whether pods could start on the node: it is a real one, and nothing keeps them off.
async fn has_room(source: &impl Source, node: Option<String>, now: Timestamp) -> bool {
    let Some(name) = node else { return false };
    let NodeRead::Known(node) = source.node(&name, now).await else {
        return false;
    };
    node.leaf.is_none() && node.ready == Ready::True && !node.cordoned && !node.reserved
}

/// Asks about each of `all`, as many at once as are allowed, and gives the answers by what was asked about.
async fn each<K: Clone + Ord, V, F: Future<Output = V>>(
    all: impl IntoIterator<Item = K>,
    ask: impl Fn(K) -> F,
) -> BTreeMap<K, V> {
    let asked =
        futures_util::stream::iter(all).map(|key| ask(key.clone()).map(|found| (key, found)));
    asked.buffer_unordered(MAX_IN_FLIGHT).collect().await
}

/// What the lists of pods held.
struct PodLists {
    /// The Terminating ones, in matching namespaces.
    pods: Vec<RawPod>,
    /// The others, by node.
    active: BTreeMap<String, Vec<PodSummary>>,
    /// Whether a node that was listed has, or may have, a Terminating pod.
    busy: BTreeMap<String, bool>,
}

/// Lists the pods of `nodes`, and the Terminating ones of wherever else they are wanted.
async fn list_pods(
    source: &impl Source,
    wanted: &Wanted<'_>,
    nodes: &[String],
) -> Result<PodLists> {
    let list = |place: PodsOf| async move { source.pods(&place).await };
    let (mut all, mut active, mut busy) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for (place, found) in each(source.places(nodes, wanted.all).await?, list).await {
        let mut found = found?;
        if let PodsOf::Node(name) = place {
            busy.insert(name.clone(), found.may_be_terminating());
            if nodes.contains(&name) {
                let matches = |pod: &PodSummary| wanted.namespaces.matches(&pod.namespace);
                found.active.retain(matches);
                active.insert(name, found.active);
            }
        }
        let matches = |pod: &RawPod| {
            let namespace = &pod.metadata.namespace;
            namespace.is_empty() || wanted.namespaces.matches(namespace)
        };
        all.extend(found.terminating.into_iter().filter(matches));
    }
    Ok(PodLists {
        pods: all,
        active,
        busy,
    })
}

impl Pods {
    fn may_be_terminating(&self) -> bool {
        !self.whole || !self.terminating.is_empty()
    }
}

/// Counts the real nodes, for the breaker. That is needed where more than two are not Ready, or where no node is known on which
/// pods could start. A node without a Terminating pod may have been put away: `busy` says which of the listed nodes have one.
async fn take_census(
    source: &impl Source,
    now: Timestamp,
    busy: &BTreeMap<String, bool>,
) -> Result<(Census, Traits)> {
    let (mut standings, traits) = match source.standings(now).await {
        Ok(counted) => counted,
        Err(unread) => return Ok((Census::Unread(unread), Traits::default())),
    };
    for (name, standing) in &mut standings {
        if standing.may_be_put_away(now) {
            let cell = source.memory().busy.of(name.clone());
            standing.terminating = match busy.get(name) {
                Some(busy) => *busy,
                None => *cell.get_or_try_init(|| is_busy(source, name)).await?,
            };
        }
    }
    Ok((Census::count(now, standings.into_values()), traits))
}

/// Whether a pod of the node is Terminating, or may be.
async fn is_busy(source: &impl Source, node: &str) -> Result<bool> {
    let pods = source.pods(&PodsOf::Node(node.to_owned())).await?;
    Ok(pods.may_be_terminating())
}

fn log_namespaces(pods: &[PodFacts]) {
    let mut counts = BTreeMap::<_, usize>::new();
    for pod in pods.iter().filter(|pod| !pod.supposed) {
        *counts.entry(pod.namespace.as_str()).or_default() += 1;
    }
    for (namespace, count) in counts {
        tracing::info!("Namespace {namespace}: {count} Terminating to judge");
    }
}

#[cfg(test)]
mod tests;
