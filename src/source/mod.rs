//! Gathering, steps 1 to 3 of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run, `what-if` and `explain` all gather here, from a cluster or from a snapshot.

mod claims;
pub mod cluster;
mod copies;
mod limits;
pub mod snapshot;
mod stream;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    mem,
    sync::Arc,
};

use futures_util::{FutureExt, StreamExt};
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::OnceCell;

use crate::{
    cluster::{MAX_IN_FLIGHT, PodsOf},
    decide::{Case, Policy, Stage},
    exit::Result,
    facts::{
        self, Attachment, Census, ClusterFacts, FoundClaim, Heard, NamespaceFacts, Namespaces,
        NodeFacts, NodeRead, PodFacts, PodSummary, Read, ReadError, Ready, Standing, Stay, Traits,
        Unread,
    },
    kubernetes::{Holders, RawLease, RawPod, RawStatefulSet},
    limits::FEW_NODES,
    selector::NamespaceFilter,
    words::{clean, spoken},
};

pub use self::claims::wanted_again;

/// Where facts come from. If one object cannot be read, the source notes an error, and the caller
/// receives `Unread`. A method returns [`CouldNotRun`](crate::exit::CouldNotRun) only if nothing
/// can be judged.
#[allow(async_fn_in_trait, reason = "one thread runs everything")]
pub trait Source {
    /// Reads all nodes in the cheapest way.
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan>;
    /// Reads one whole node with its own lease.
    async fn node(&self, name: &str, now: Timestamp) -> NodeRead;
    /// Reads the other Leases that name the nodes of `holders` or their pods, by node; `None` if
    /// this account may not list them.
    async fn leases(&self, holders: &Holders) -> Option<BTreeMap<String, Read<Vec<RawLease>>>>;
    /// Names the CSI drivers that attach nothing.
    async fn detached_drivers(&self) -> Read<BTreeSet<String>>;
    /// Returns every node's role in the breaker's count, as if each node were occupied, and counts
    /// the traits of the nodes.
    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)>;
    /// Returns the lists of pods to read: one for each of `nodes` and, with `all`, every other list
    /// that may hold a Terminating pod.
    async fn pod_lists(&self, nodes: &[String], all: bool) -> Result<BTreeSet<PodsOf>>;
    /// Reads one of these lists.
    async fn pods(&self, list: &PodsOf) -> Result<Pods>;
    /// Reads all pods of a node, Terminating or not.
    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>>;
    /// Reads a pod by its name; `None` if it does not exist.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>>;
    /// Summarizes the pods of a list that could be read, and reports whether all of them could.
    async fn summaries(&self, list: &PodsOf) -> Read<(Vec<PodSummary>, bool)>;
    /// Reads all namespaces; `None` if the source has
    /// none at all, such as a file saved without them.
    async fn namespaces(&self) -> Option<Read<Namespaces>>;
    /// Reads all `VolumeAttachments`, by the node they name.
    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>>;
    /// Reads a claim with its volume.
    async fn claim(&self, namespace: &str, name: &str) -> FoundClaim;
    /// Puts all claims, with their volumes, into the memory, if listing them all is cheaper than
    /// reading each.
    async fn remember_claims(&self) {}
    /// Names the real nodes that a label selector selects.
    /// If there are more than two, two are enough.
    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>>;
    /// Reads a `StatefulSet`; `None` if it does not exist. A failure is noted as an error of the
    /// run only if the set is `needed` for a verdict.
    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>>;
    /// Returns the memory of what this source has read so far.
    fn memory(&self) -> &Memory;
}

/// Everything that a source has read so far, so it reads nothing twice, and the errors on the way.
#[derive(Default)]
pub struct Memory {
    errors: RefCell<BTreeSet<ReadError>>,
    pub(crate) scan: OnceCell<Scan>,
    pub(crate) standings: OnceCell<Read<(Standings, Traits)>>,
    namespaces: OnceCell<Option<Read<Namespaces>>>,
    pub(crate) attachments: OnceCell<BTreeMap<String, Vec<Attachment>>>,
    /// By node, whether it is occupied.
    occupied: Known<String, bool>,
    /// What some Ready nodes tell.
    living: OnceCell<Living>,
    /// The CSI drivers that attach nothing.
    detached: OnceCell<Read<BTreeSet<String>>>,
    /// By namespace and name.
    claims: Known<(String, String), FoundClaim>,
    /// By namespace and name, and by whether a verdict needs the set.
    sets: Known<(String, String, bool), Read<Option<RawStatefulSet>>>,
    /// The real nodes, by the label selector that selects them.
    selected: Known<String, Read<Vec<String>>>,
    /// The pods that use claims, by namespace.
    users: Known<String, Read<Vec<PodSummary>>>,
    /// The Ready pods that use claims, by namespace.
    serving: Known<String, copies::Serving>,
}

impl Memory {
    /// Notes what could not be read, and why.
    pub fn note(&self, what: impl Display, cause: impl Display) -> Unread {
        let cause = cause.to_string();
        let error = ReadError {
            what: what.to_string(),
            cause: cause.clone(),
        };
        self.errors.borrow_mut().insert(error);
        Unread(cause)
    }

    /// Lists everything that could not be read, in order.
    pub fn errors(&self) -> Vec<ReadError> {
        self.errors.borrow().iter().cloned().collect()
    }
}

/// The answers to questions, each by its key. A task that asks while another is asking the same
/// waits for that answer.
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

    fn knows(&self, key: &K) -> bool {
        let known = self.0.borrow();
        known.get(key).is_some_and(|answer| answer.initialized())
    }
}

/// Each node's role in the breaker's count, by the node's name.
pub type Standings = BTreeMap<String, Standing>;

/// What a source learns from its cheapest reading of all nodes.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The facts that this reading alone gives: the moment to judge at, the cluster's name, and the
    /// number of nodes.
    pub facts: ClusterFacts,
    /// The nodes that are not plainly Ready.
    pub not_ready: Vec<String>,
    /// Some Ready nodes. The first is one on which pods can start, to judge by this reading, if
    /// there is such a node.
    pub ready: Vec<String>,
    /// Whether there is such a node.
    pub is_open: bool,
    /// Whether to read all that a report can show, even if no verdict needs it: reading a file
    /// costs no requests, and a forecast shows all of it.
    pub thorough: bool,
}

/// The pods of one list.
#[derive(Debug, Clone, Default)]
pub struct Pods {
    /// The Terminating pods.
    pub terminating: Vec<RawPod>,
    /// A summary of each active pod. It tells why Kubernetes has not evicted the pod.
    pub active: Vec<PodSummary>,
    /// Namespace and name of every pod.
    pub names: BTreeSet<(String, String)>,
    /// Whether there is a pod that no `DaemonSet` made and that mirrors no static pod.
    pub occupied: bool,
    /// The last words of programs in Terminating pods.
    pub heard: Vec<Heard>,
    /// Whether every pod of the list could be read.
    pub whole: bool,
}

/// What to gather.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The operator's choices for the rules: claims are looked up only for pods that the rules
    /// before the volume rules let through.
    pub policy: &'a Policy,
    /// The namespaces whose pods are judged.
    pub namespaces: &'a NamespaceFilter,
    /// Whether to judge the Terminating pods of Ready nodes too.
    pub all: bool,
}

/// The result of gathering. No fact that a verdict needs is filled in later.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// The facts about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, with everything that a rule needs to know about
    /// their claims. They are kept apart from the facts because the plan takes them over: there may
    /// be tens of thousands, so they must not be copied.
    pub pods: Vec<PodFacts>,
}

/// Gathers all facts that the rules need: steps 1 to 3 of a run. `asked` is a Terminating pod to
/// judge in any case, whatever its node and namespace.
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
        ..
    } = source.scan(wanted).await?;
    let (now, memory) = (facts.now, source.memory());
    if suspects.is_empty() && !wanted.all && !thorough && asked.is_none() {
        if wanted.namespaces.include.is_some() || wanted.namespaces.exclude.is_some() {
            let namespaces = memory.namespaces.get_or_init(|| source.namespaces());
            facts.unmatched_namespaces = unmatched(wanted, namespaces.await.as_ref());
            facts.errors = memory.errors();
        }
        let pods = Vec::new();
        return Ok(Gathered { facts, pods });
    }

    // 2. Read those nodes whole and list their pods. Meanwhile, read the namespaces and
    // attachments.
    let node = |name: String| async move { source.node(&name, now).await };
    let (nodes, listed, namespaces, attachments) = tokio::join!(
        each(suspects.iter().cloned(), node),
        list_pods(source, wanted, &suspects),
        memory.namespaces.get_or_init(|| source.namespaces()),
        source.attachments(),
    );
    let PodLists {
        pods,
        active,
        on_node,
    } = listed?;
    (facts.nodes, facts.attachments, facts.active) = (nodes, attachments, active);
    for (name, node) in &mut facts.nodes {
        if let (NodeRead::Known(node), Some(pods)) = (node, on_node.get(name)) {
            node.hear(pods.heard.iter().cloned());
        }
    }
    for on_node in facts.attachments.values_mut() {
        on_node.sort();
    }
    facts.unmatched_namespaces = unmatched(wanted, namespaces.as_ref());
    let asked_uid = asked.as_ref().map(|pod| pod.metadata.uid.clone());
    let is_asked = |pod: &PodFacts| asked_uid.as_ref() == Some(&pod.uid);
    // The pod that was asked about comes last, because the list may show an older state of it.
    let raw = pods.into_iter().chain(asked);
    let mut pods = identified(source, raw, namespaces.as_ref());
    // A pod may be on a node that was not read yet; that node may be opted out, or gone.
    let others = pods
        .iter()
        .filter_map(|pod| pod.node.clone())
        .filter(|name| !facts.nodes.contains_key(name))
        .collect::<BTreeSet<_>>();
    facts.nodes.extend(each(others, node).await);
    if !wanted.all {
        // A node that became Ready after the scan counts as Ready.
        let found = pods.len();
        pods.retain(|pod| is_asked(pod) || !facts.on_ready_node(pod));
        // Only a thorough scan sees all pods on Ready nodes, so only then is their number known.
        facts.on_ready_nodes = if thorough { found - pods.len() } else { 0 };
    }
    log_counts(&pods);

    // 3. Read what else may show life, then look up the claims of the pods that the rules let
    // through so far. Meanwhile, compare the clocks, and count the nodes if the breaker has to judge.
    let is_judged = thorough || !pods.is_empty();
    let few = suspects.len() <= FEW_NODES && !thorough;
    let count = async {
        if !is_judged {
            return (None, Ok(Default::default()));
        }
        let living = memory
            .living
            .get_or_init(|| ask_the_living(source, &ready, now));
        let Living { clock, room } = living.await.clone();
        if few && room {
            return (clock, Ok(Default::default()));
        }
        (clock, take_census(source, now, &on_node).await)
    };
    let (is_asked, on_node) = (&is_asked, &on_node);
    let look_up = async move {
        let mut facts = facts;
        read_leases(source, wanted.policy, &mut facts, &pods, on_node).await;
        let pods = claims::look_up(source, wanted.policy, &facts, pods, is_asked).await;
        (facts, pods)
    };
    let ((mut facts, pods), (clock, census)) = tokio::join!(look_up, count);
    facts.clock = clock;
    (facts.census, facts.traits) = census?;
    facts.copies = copies::count(source, &facts, &pods).await;
    facts.errors = source.memory().errors();
    Ok(Gathered { facts, pods })
}

/// Counts the namespaces, if the filter matches none of them.
fn unmatched(wanted: &Wanted<'_>, namespaces: Option<&Read<Namespaces>>) -> Option<usize> {
    let known = namespaces?.as_ref().ok()?;
    let none = !known.keys().any(|name| wanted.namespaces.matches(name));
    (none && !known.is_empty()).then_some(known.len())
}

/// Turns raw pods into facts. If several have the same UID, the last one counts.
fn identified(
    source: &impl Source,
    pods: impl Iterator<Item = RawPod>,
    namespaces: Option<&Read<Namespaces>>,
) -> Vec<PodFacts> {
    let mut by_uid = BTreeMap::new();
    for raw in pods {
        let (namespace, name) = (raw.metadata.namespace.clone(), raw.metadata.name.clone());
        let known = |all| facts::namespace(all, &namespace);
        match raw.into_facts(namespaces.map_or(Ok(NamespaceFacts::default()), known)) {
            Ok(pod) => drop(by_uid.insert(pod.uid.clone(), pod)),
            Err(cause) => {
                let what = format_args!("pod {namespace}/{name}");
                source.memory().note(what, cause);
            }
        }
    }
    by_uid.into_values().collect()
}

/// Calls `ask` for each key of `all`, up to [`MAX_IN_FLIGHT`] at once. Returns the answers by key.
async fn each<K: Clone + Ord, V, F: Future<Output = V>>(
    all: impl IntoIterator<Item = K>,
    ask: impl Fn(K) -> F,
) -> BTreeMap<K, V> {
    let asked =
        futures_util::stream::iter(all).map(|key| ask(key.clone()).map(|found| (key, found)));
    asked.buffer_unordered(MAX_IN_FLIGHT).collect().await
}

/// The pods of all lists.
#[derive(Default)]
struct PodLists {
    /// The Terminating pods in matching namespaces.
    pods: Vec<RawPod>,
    /// The active pods in matching namespaces, by node.
    active: BTreeMap<String, Vec<PodSummary>>,
    /// By node, all else about its pods, in whatever namespace; only for nodes that were listed.
    on_node: BTreeMap<String, Pods>,
}

/// Lists the pods of `nodes`, and with `wanted.all` also the Terminating pods of other nodes.
async fn list_pods(
    source: &impl Source,
    wanted: &Wanted<'_>,
    nodes: &[String],
) -> Result<PodLists> {
    let read = |list: PodsOf| async move { source.pods(&list).await };
    let mut all = PodLists::default();
    for (list, found) in each(source.pod_lists(nodes, wanted.all).await?, read).await {
        let mut found = found?;
        let matches = |pod: &RawPod| {
            let namespace = &pod.metadata.namespace;
            namespace.is_empty() || wanted.namespaces.matches(namespace)
        };
        let terminating = mem::take(&mut found.terminating);
        all.pods.extend(terminating.into_iter().filter(matches));
        if let PodsOf::Node(name) = list {
            let mut active = mem::take(&mut found.active);
            if nodes.contains(&name) {
                active.retain(|pod| wanted.namespaces.matches(&pod.namespace));
                all.active.insert(name.clone(), active);
            }
            all.on_node.insert(name, found);
        }
    }
    Ok(all)
}

impl Pods {
    /// Adds a pod to what is known of all of them.
    pub fn add(&mut self, pod: &PodSummary) {
        self.names.insert((pod.namespace.clone(), pod.name.clone()));
        self.occupied |= !matches!(pod.stays, Some(Stay::DaemonSet | Stay::Static));
    }

    /// Reports whether the node is occupied. A pod that could not be read may be any pod.
    fn occupies(&self) -> bool {
        self.occupied || !self.whole
    }
}

/// The number of Ready nodes whose clocks are compared with that of the API server.
const COMPARED: usize = 3;
/// The age from which on no renewal by a living node shows that the API server's clock is right: a
/// node renews its lease every 10 s.
const TOO_OLD: SignedDuration = SignedDuration::from_mins(5);

/// What some Ready nodes tell.
#[derive(Debug, Clone, Default)]
struct Living {
    /// Why the API server's clock is not believed, as a phrase, if so.
    clock: Option<String>,
    /// Whether pods can start on the first of them.
    room: bool,
}

/// Compares the API server's clock with the leases of some Ready nodes, until one has just renewed
/// its lease by its own clock too. If there is none to ask, the clock is believed.
async fn ask_the_living(source: &impl Source, ready: &[String], now: Timestamp) -> Living {
    let (mut living, mut first, mut asked, mut fresh) = (Living::default(), None, 0, false);
    let mut unread = None;
    for (place, name) in ready.iter().enumerate() {
        if asked == COMPARED {
            break;
        }
        let node = match source.node(name, now).await {
            NodeRead::Known(node) => node,
            NodeRead::Gone => continue,
            NodeRead::Unread(why) => {
                (unread, asked) = (Some(why), asked + 1);
                continue;
            }
        };
        if node.leaf.is_some() || node.ready != Ready::True {
            continue;
        }
        living.room |= place == 0 && !node.cordoned && !node.reserved;
        asked += usize::from(node.renewed.is_some() || node.unread_lease.is_some());
        let Some((said, renewed)) = node.renewed.and_then(|it| Some((it.said?, it))) else {
            unread = node.unread_lease.or(unread);
            continue;
        };
        if now.duration_since(said) < TOO_OLD {
            return living;
        }
        fresh |= renewed
            .stamped
            .is_some_and(|at| now.duration_since(at) < TOO_OLD);
        first = first.or(Some((name, said)));
    }
    let Some((name, said)) = first else {
        living.clock = unread.map(|why| format!("no lease of a Ready node could be read: {why}"));
        return living;
    };
    let cause = if fresh {
        "the API server has just stamped such a renewal, so the nodes' clocks and its own differ: mend them"
    } else {
        "the API server's stamps are no newer, so its clock is wrong, or its data was restored"
    };
    let cause = format!(
        "by the API server's clock, none of {asked} nodes that are Ready has renewed its lease for {} (such as {name}); {cause}",
        spoken(now.duration_since(said))
    );
    source.memory().note("the time, to judge by", &cause);
    Living {
        clock: Some(cause),
        ..living
    }
}

/// Reads the other Leases that name a NotReady node or a pod on it, and adds to the facts what they
/// tell, if a rule depends on that.
async fn read_leases(
    source: &impl Source,
    policy: &Policy,
    facts: &mut ClusterFacts,
    pods: &[PodFacts],
    on_node: &BTreeMap<String, Pods>,
) {
    let is_down = |node: &&NodeFacts| node.ready != Ready::True;
    let down = || {
        facts
            .nodes
            .values()
            .filter_map(NodeRead::known)
            .filter(is_down)
    };
    let is_marked = |node: &NodeFacts| !node.fenced.is_empty() || node.powered_off.is_some();
    let passed = |pod| Case::of(facts, policy, pod).decide().stage >= Stage::Life;
    if !down().any(is_marked) && !pods.iter().any(passed) {
        return;
    }
    let (mut holders, none) = (Holders::default(), BTreeSet::new());
    for node in down() {
        let pods = on_node.get(&node.name);
        holders.add(node, pods.map_or(&none, |pods| &pods.names));
    }
    let mut read = source.leases(&holders).await;
    if read.is_none() {
        facts.unseen.push(
            "This account may not list Leases: whether something but a kubelet on a NotReady node still renews one is not seen."
                .to_owned(),
        );
    }
    let now = facts.now;
    for (name, node) in &mut facts.nodes {
        let NodeRead::Known(node) = node else {
            continue;
        };
        if node.ready == Ready::True {
            continue;
        }
        let leases = read.as_mut().and_then(|read| read.remove(name));
        match leases.unwrap_or(Ok(Vec::new())) {
            Err(unread) => node.named_by = Err(unread),
            Ok(leases) => {
                // Those of a name in all namespaces were read, and those of all API servers.
                let names = |lease: &&RawLease| holders.of(name, lease).next().is_some();
                let leases = leases.iter().filter(names).collect_vec();
                let named_by = leases.iter().flat_map(|lease| holders.of(name, lease));
                node.named_by = Ok(named_by.collect());
                node.hear(leases.iter().filter_map(|lease| lease.heard(now)));
            }
        }
    }
}

/// Counts the real nodes for the breaker. It is called for a snapshot or a forecast, if more than
/// two nodes are not Ready, or if no node is known on which pods can start. A node that is not
/// occupied may have been put away. `on_node` has the pods of the nodes that were listed already;
/// the others are listed here.
async fn take_census(
    source: &impl Source,
    now: Timestamp,
    on_node: &BTreeMap<String, Pods>,
) -> Result<(Census, Traits)> {
    let (mut standings, traits) = match source.standings(now).await {
        Ok(counted) => counted,
        Err(unread) => return Ok((Census::Unread(unread), Traits::default())),
    };
    for (name, standing) in &mut standings {
        if standing.may_be_put_away(now) {
            let known = source.memory().occupied.of(name.clone());
            let list = async || {
                let pods = source.pods(&PodsOf::Node(name.clone())).await;
                pods.map(|pods| pods.occupies())
            };
            standing.occupied = match on_node.get(name) {
                Some(listed) => listed.occupies(),
                None => *known.get_or_try_init(list).await?,
            };
        }
    }
    Ok((Census::count(now, standings.into_values()), traits))
}

/// Logs how many pods of each namespace are to be judged. Pods of a forecast are not Terminating.
fn log_counts(pods: &[PodFacts]) {
    let real = pods.iter().filter(|pod| !pod.supposed);
    let counts = real.counts_by(|pod| &pod.namespace);
    for (namespace, count) in counts.into_iter().sorted_unstable() {
        let namespace = clean(namespace);
        tracing::info!("Namespace {namespace}: {count} Terminating to judge");
    }
}

#[cfg(test)]
mod tests;
