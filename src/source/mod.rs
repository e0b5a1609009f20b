//! Gathering, steps 1 to 3 of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run, `what-if` and `explain` all gather here, from a cluster or from a snapshot.

mod claims;
mod clock;
mod cluster;
pub mod snapshot;
mod store;
mod stream;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{FutureExt, StreamExt};
use itertools::Itertools as _;
use jiff::Timestamp;

pub use self::store::Store;
use crate::{
    cluster::{Failure, Listed, MAX_IN_FLIGHT, PodsOf},
    decide::{Case, Policy, ReasonCode, Stage},
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, Census, ClusterFacts, Heard, NamespaceFacts, NodeFacts, NodeRead, PodFacts,
        Read, Ready, SignBy, Standing, Traits, Unread,
    },
    kubernetes::{Holders, Kind, LeasesByNode, NodeObjects, RawLease, RawPod},
    limits::FEW_NODES,
    selector::{NamespaceFilter, NodeSelectors},
    words::clean,
};

use self::{
    clock::Living,
    store::{Facts, Pods},
};

/// Where objects come from: a cluster, or a saved state. What they mean, and what of it could not
/// be read, is the same for both, and is told by [`Store`].
#[allow(async_fn_in_trait, reason = "one thread runs everything")]
pub trait Source {
    /// Whether it is a file. Reading costs no requests then, and [`Scan::facts`] names each object
    /// that cannot be read, so that it is not named again.
    const IS_FILE: bool;

    /// Reads all nodes in the cheapest way.
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan>;
    /// Reads one whole node with its own lease; `None` if it does not exist.
    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, Failure>;
    /// Reads an object by its name; `None` if it does not exist.
    async fn find<T: Kind>(&self, namespace: &str, name: &str) -> Result<Option<T>, Failure>;
    /// Reads all objects of a kind, and collects them by `add`; `None` if the source has none at
    /// all, such as a file saved without them.
    async fn list<T: Kind, S: Default>(
        &self,
        add: impl Fn(&mut S, T),
    ) -> Result<Option<Listed<S>>, Failure>;
    /// Reads a list of pods, and collects them by `add`.
    async fn pods<S: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut S, &RawPod),
    ) -> Result<Listed<S>, Failure>;
    /// Names the real nodes that a label selector selects; `leaf` are the operator's own selectors. If
    /// there are more than two, two are enough.
    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, Failure>;
    /// Reads the other Leases that name the nodes of `holders` or their pods, by node; `None` if this
    /// account may not list them.
    async fn leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, Failure>;
    /// Reads all `VolumeAttachments`, by the node they name.
    async fn attachments(&self) -> Result<BTreeMap<String, Vec<Attachment>>, Failure>;
    /// Makes the error that ends a run because it could not do `what`.
    fn could_not(&self, what: &str, failure: Failure) -> CouldNotRun;
}

/// Each node's role in the breaker's count, by the node's name.
pub type Standings = BTreeMap<String, Standing>;

/// What a source learns from its cheapest reading of all nodes.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The facts that this reading alone gives: the moment to judge at, the cluster's name, and the
    /// number of nodes.
    pub facts: ClusterFacts,
    /// The names of all nodes.
    pub nodes: BTreeSet<String>,
    /// The nodes that are not plainly Ready.
    pub not_ready: Vec<String>,
    /// Some Ready nodes. The first is one on which pods can start, to judge by this reading, if
    /// there is such a node.
    pub ready: Vec<String>,
    /// The lists of pods, apart from those of the nodes that are not plainly Ready, that may hold a
    /// Terminating pod to be judged.
    pub pods: BTreeSet<PodsOf>,
    /// Whether the source has leases of nodes, or may have: a file may have been saved without.
    pub has_leases: bool,
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

impl<S: Source> Store<'_, S> {
    /// Gathers all facts that the rules need, with what is supposed: steps 1 to 3 of a run. `asked`
    /// is a Terminating pod to judge in any case, whatever its node and namespace.
    pub async fn gather(&self, asked: Option<RawPod>) -> Result<Gathered> {
        // 1. Find the nodes that are not plainly Ready.
        let scan = self.scan().await?;
        let asked_uid = asked.as_ref().map(|pod| pod.metadata.uid.clone());
        let is_asked = |pod: &PodFacts| asked_uid.as_ref() == Some(&pod.uid);
        if scan.not_ready.is_empty() && !self.wanted.all && !self.is_thorough() && asked.is_none() {
            let (mut facts, pods) = (scan.facts, Vec::new());
            let filter = self.wanted.namespaces;
            if filter.include.is_some() || filter.exclude.is_some() {
                facts.unmatched_namespaces = self.unmatched_namespaces().await;
                facts.errors = self.errors();
            }
            return Ok(Gathered { facts, pods });
        }
        // 2. Read those nodes whole and list their pods.
        let (facts, pods, on_node) = self.nodes_and_pods(&scan, asked, &is_asked).await?;
        log_counts(&pods);
        // 3. Read what else may show life, then look up the claims of the pods that the rules let
        // through so far.
        self.signs_and_claims(&scan, (facts, pods), &on_node, &is_asked)
            .await
    }

    /// Whether to read all that a report can show: of a file, because that costs no requests, and
    /// for a forecast.
    fn is_thorough(&self) -> bool {
        S::IS_FILE || self.supposes()
    }

    /// Reads the nodes that are not plainly Ready, their pods, and meanwhile the namespaces and
    /// attachments. Returns the pods to be judged, and what else is known of each node's pods.
    async fn nodes_and_pods(
        &self,
        scan: &Scan,
        asked: Option<RawPod>,
        is_asked: &impl Fn(&PodFacts) -> bool,
    ) -> Result<(ClusterFacts, Vec<PodFacts>, BTreeMap<String, Pods>)> {
        let (wanted, suspects) = (&self.wanted, &scan.not_ready);
        let mut facts = scan.facts.clone();
        let node = |name: String| async move { self.node(&name).await };
        let (nodes, listed, _, attachments) = tokio::join!(
            each(suspects.iter().cloned(), node),
            self.list_pods(suspects, scan.pods.clone()),
            self.namespaces(),
            self.attachments(),
        );
        let (mut on_node, listed) = listed?;
        (facts.nodes, facts.attachments) = (nodes, attachments);
        for (name, pods) in &mut on_node {
            let heard = std::mem::take(&mut pods.heard);
            if let Some(NodeRead::Known(node)) = facts.nodes.get_mut(name) {
                node.hear(heard);
            }
            if suspects.contains(name) {
                let mut active = std::mem::take(&mut pods.active);
                active.retain(|pod| wanted.namespaces.matches(&pod.namespace));
                facts.active.insert(name.clone(), active);
            }
        }
        for on_node in facts.attachments.values_mut() {
            on_node.sort();
        }
        facts.unmatched_namespaces = self.unmatched_namespaces().await;
        // The pod that was asked about comes last, because the list may show an older state of it.
        let asked = asked.map(|pod| store::named(&pod, pod.facts()));
        let listed = listed.into_iter().chain(asked);
        let mut pods = self.identified(listed).await;
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
            facts.on_ready_nodes = if self.is_thorough() {
                found - pods.len()
            } else {
                0
            };
        }
        Ok((facts, pods, on_node))
    }

    /// Completes what was gathered by other signs of life and by the claims of the pods that the
    /// rules let through. Meanwhile, compares the clocks, and counts the nodes if the breaker has to
    /// judge.
    async fn signs_and_claims(
        &self,
        scan: &Scan,
        (mut facts, pods): (ClusterFacts, Vec<PodFacts>),
        on_node: &BTreeMap<String, Pods>,
        is_asked: &impl Fn(&PodFacts) -> bool,
    ) -> Result<Gathered> {
        let (now, thorough) = (facts.now, self.is_thorough());
        let is_on_dead = |pod: &PodFacts| {
            let node = facts.known_node(pod);
            node.is_some_and(|node| node.ready != Ready::True)
        };
        if !scan.has_leases && !self.supposes() && pods.iter().any(is_on_dead) {
            let cause = "the file has none, so it does not show whether a node lives";
            facts.incomplete = Some(format!("{cause}. Pods may be called dead that run."));
            self.note("leases", cause);
        }
        let is_judged = thorough || !pods.is_empty();
        let few = scan.not_ready.len() <= FEW_NODES && !thorough;
        let count = async {
            if !is_judged {
                return (Living::default(), Ok(None));
            }
            let mut living = self.living(&scan.ready, now).await;
            if few && living.room {
                return (living, Ok(None));
            }
            let census = self.take_census(now, on_node, &mut living.out_of_service);
            let census = census.await.map(Some);
            (living, census)
        };
        let look_up = async move {
            self.read_leases(&scan.nodes, &mut facts, &pods, on_node)
                .await;
            let pods = claims::look_up(self, &facts, pods, is_asked).await;
            (facts, pods)
        };
        let ((mut facts, pods), (living, census)) = tokio::join!(look_up, count);
        facts.clock = living.clock;
        facts.note_out_of_service(living.out_of_service);
        (facts.census, facts.traits) = match census? {
            None => Default::default(),
            Some(Err(unread)) => (Census::Unread(unread), Traits::default()),
            Some(Ok((mut standings, traits))) => {
                // An edge node that is off for certain is counted like any other.
                for node in facts.known_nodes().filter(|node| node.is_edge_off(now)) {
                    if let Some(standing) = standings.get_mut(&node.name) {
                        standing.leaf = false;
                    }
                }
                (Census::count(now, standings.into_values()), traits)
            }
        };
        facts.copies = claims::copies(self, &facts, &pods).await;
        facts.errors = self.errors();
        Ok(Gathered { facts, pods })
    }

    /// Counts the namespaces, if the filter matches none of them.
    async fn unmatched_namespaces(&self) -> Option<usize> {
        let known = self.namespaces().await?.ok()?;
        let none = !known
            .keys()
            .any(|name| self.wanted.namespaces.matches(name));
        (none && !known.is_empty()).then_some(known.len())
    }

    /// Lists the pods of `nodes` and of `lists`. Returns them by node, for the nodes that were
    /// listed, and those to be judged.
    async fn list_pods(
        &self,
        nodes: &[String],
        mut lists: BTreeSet<PodsOf>,
    ) -> Result<(BTreeMap<String, Pods>, Vec<Facts>)> {
        lists.extend(nodes.iter().cloned().map(PodsOf::Node));
        let read = |list: PodsOf| async move { self.pods(&list).await };
        let (mut on_node, mut judged) = (BTreeMap::new(), Vec::new());
        for (list, found) in each(lists, read).await {
            let mut found = found?;
            judged.append(&mut found.judged);
            if let PodsOf::Node(name) = list {
                on_node.insert(name, found);
            }
        }
        Ok((on_node, judged))
    }

    /// Adds to each pod what is known of its namespace. If several have the same UID, the last one
    /// counts.
    async fn identified(&self, pods: impl Iterator<Item = Facts>) -> Vec<PodFacts> {
        let namespaces = self.namespaces().await;
        let mut by_uid = BTreeMap::new();
        for pod in pods {
            match pod {
                Ok(mut pod) => {
                    pod.in_namespace = namespaces
                        .as_ref()
                        .map_or(Ok(NamespaceFacts::default()), |all| {
                            crate::facts::namespace(all, &pod.namespace)
                        });
                    by_uid.insert(pod.uid.clone(), pod);
                }
                Err((pod, cause)) => drop(self.note(pod, cause)),
            }
        }
        by_uid.into_values().collect()
    }

    /// Reads the other Leases that name a NotReady node or a pod on it, of all `nodes`, and adds to the facts what
    /// they tell, if a rule depends on that.
    async fn read_leases(
        &self,
        nodes: &BTreeSet<String>,
        facts: &mut ClusterFacts,
        pods: &[PodFacts],
        on_node: &BTreeMap<String, Pods>,
    ) {
        let is_down = |node: &&NodeFacts| node.ready != Ready::True;
        let is_marked = |node: &NodeFacts| !node.fenced.is_empty() || node.powered_off.is_some();
        let policy = self.wanted.policy;
        let depends = |pod| {
            let case = Case::of(facts, policy, pod);
            let reason = case.decide();
            // A `powered-off` answer on an edge node is valid only if nothing on it shows life.
            let edge = facts.known_node(pod).and_then(|node| node.leaf.as_ref());
            let may_be_answered = edge.is_some_and(|leaf| leaf.only_edge);
            reason.stage >= Stage::Life
                || reason.code == ReasonCode::EdgeNode && may_be_answered
                || reason.code == ReasonCode::NotOverdue && case.may_cut_grace()
        };
        let is_due = facts.known_nodes().filter(is_down).any(is_marked) || pods.iter().any(depends);
        // Nothing on a node that is supposed dead renews a Lease.
        if !is_due || self.supposes() {
            return;
        }
        let mut holders = Holders::among(nodes.iter().cloned());
        for node in facts.known_nodes().filter(is_down) {
            let pods = on_node.get(&node.name).map(|pods| &pods.holders);
            holders.add(node, pods.into_iter().flatten());
        }
        let (mut read, is_forbidden) = self.leases(&holders, &mut facts.unseen).await;
        // A pod that is not known may hold a Lease.
        for name in holders.nodes() {
            let pods = on_node.get(&name);
            let unlisted = || Some(Unread("its pods were not listed".to_owned()));
            if let Some(unread) = pods.map_or_else(unlisted, |pods| pods.unread.clone()) {
                read.insert(name, Err(unread));
            }
        }
        let now = facts.now;
        for (name, node) in &mut facts.nodes {
            let NodeRead::Known(node) = node else {
                continue;
            };
            if !is_down(&&*node) {
                continue;
            }
            node.others_forbidden = is_forbidden;
            match read.remove(name).unwrap_or(Ok(Some(Vec::new()))) {
                Err(unread) => node.named_by = Err(unread),
                // Whoever may write Leases can hold a node's pods, but makes no run fail.
                Ok(None) => node.hear([Heard {
                    by: SignBy::OtherLease,
                    at: now,
                    what: Some(
                        "perhaps one of the Leases that name it, which are too many to read"
                            .to_owned(),
                    ),
                }]),
                Ok(Some(leases)) => {
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

    /// Reads the nodes that the breaker counts. It is called for a snapshot or a forecast, if more
    /// than two nodes are not Ready, or if no node is known on which pods can start. A node that is
    /// not occupied may have been put away. `on_node` has the pods of the nodes that were listed
    /// already; the others are listed here. Ready nodes with the out-of-service taint are added to
    /// `out_of_service`.
    async fn take_census(
        &self,
        now: Timestamp,
        on_node: &BTreeMap<String, Pods>,
        out_of_service: &mut BTreeSet<String>,
    ) -> Result<Read<(Standings, Traits)>> {
        let (mut standings, traits) = match self.standings(now).await {
            Ok(counted) => counted,
            Err(unread) => return Ok(Err(unread)),
        };
        for (name, standing) in &mut standings {
            if standing.ready && standing.out_of_service {
                out_of_service.insert(name.clone());
            }
            if standing.may_be_put_away(now) {
                standing.occupied = match on_node.get(name) {
                    Some(listed) => listed.occupied,
                    None => self.is_occupied(name).await?,
                };
            }
        }
        Ok(Ok((standings, traits)))
    }
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
mod saved_tests;
#[cfg(test)]
mod tests;
