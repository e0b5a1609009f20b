//! The world: the readings so far, and the queries that are still open. Nothing here reads from a
//! source.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{CountedNodes, Gathered, OtherLeases, Pods, Scan, Wanted};
use crate::{
    cluster::Failure,
    decide::PodContext,
    facts::{
        Attachment, ClaimFacts, ClaimRead, ClaimState, ClusterFacts, DeletedWithPod,
        LEASES_OF_FILE, NamespaceFacts, Namespaces, NodeCounts, NodeFacts, NodeRead, PodFacts,
        PodsOf, Query, Read, ReadError, Ready, Uid, Unread, namespace,
    },
    kubernetes::{Holders, LeasesByNode, RawStatefulSet},
    limits::MAX_NODES_IGNORED,
    selector::is_name,
};

/// The most PVCs of one namespace that a run reads, at two or three requests each. A pod's author
/// chooses how many PVCs the pod names. So each namespace has a share, and one namespace cannot use
/// up the reads of the others.
const MAX_PVCS_OF_NAMESPACE: usize = 640;

/// What some Ready nodes tell.
#[derive(Debug, Clone, Default)]
pub struct ReadyNodes {
    /// Why the API server's clock is not trusted, as a phrase; `None` if it is trusted.
    pub clock: Option<String>,
    /// Whether pods can start on the first of these nodes.
    pub room: bool,
}

/// The readings: one field for each kind of query.
#[derive(Default)]
pub struct Readings {
    /// All namespaces, if the source has any: a file may be saved without them.
    pub namespaces: Option<Read<Option<Namespaces>>>,
    /// The `VolumeAttachments`, by the node that they name.
    pub attachments: Option<BTreeMap<String, Vec<Attachment>>>,
    /// What some Ready nodes tell.
    pub ready_nodes: Option<ReadyNodes>,
    /// The PVCs, by namespace and name.
    pub pvcs: BTreeMap<(String, String), ClaimRead>,
    /// The real nodes that a label selector selects.
    pub selected: BTreeMap<String, Read<Vec<String>>>,
    /// The CSI drivers whose volumes have no attach step.
    pub detached: Option<Read<BTreeSet<String>>>,
    /// The `StatefulSets`, by namespace and name.
    pub sets: BTreeMap<(String, String), Result<Option<RawStatefulSet>, Failure>>,
    /// The reads that failed although they should not have.
    pub errors: BTreeSet<ReadError>,
}

/// The readings for one set of pods, and these pods.
pub struct World<'a> {
    pub wanted: Wanted<'a>,
    /// Whether to read everything that a report can show. A file is read so: it costs no requests.
    is_thorough: bool,
    pub scan: Scan,
    pub facts: ClusterFacts,
    /// The lists of pods that were read.
    pub lists: BTreeMap<PodsOf, Pods>,
    /// Every node's role in the breaker's count.
    pub node_counts: Option<Read<CountedNodes>>,
    /// Whether the other Leases that name NotReady nodes were read.
    has_other_leases: bool,
    /// That reading; `None` if there was none, or if this account may not list Leases.
    pub leases: Option<OtherLeases>,
    /// A Terminating pod to judge, whatever its node and namespace.
    asked: Option<PodFacts>,
    asked_uid: Option<Uid>,
    /// The pods to judge; `None` until all lists were read.
    pods: Option<Vec<PodFacts>>,
    /// The pods about which a rule may still lack a fact, by their index in `pods`.
    open: BTreeSet<usize>,
    /// The pods whose PVCs may be read, by their index in `pods`.
    admitted: BTreeSet<usize>,
    /// Whether only the pods to be judged are left.
    is_chosen: bool,
    /// Whether all pods have received all readings.
    is_settled: bool,
}

impl<'a> World<'a> {
    /// Returns the world after the cheapest reading of all nodes.
    pub fn new(wanted: Wanted<'a>, is_thorough: bool, scan: Scan, asked: Option<PodFacts>) -> Self {
        Self {
            wanted,
            is_thorough,
            facts: scan.facts.clone(),
            scan,
            lists: BTreeMap::new(),
            node_counts: None,
            has_other_leases: false,
            leases: None,
            asked_uid: asked.as_ref().map(|pod| pod.uid.clone()),
            asked,
            pods: None,
            open: BTreeSet::new(),
            admitted: BTreeSet::new(),
            is_chosen: false,
            is_settled: false,
        }
    }

    /// Returns the queries to be read next: of all queries that the rules and the limits lack, those
    /// of the lowest stage. There are none if every pod can be judged.
    pub fn queries(&mut self, readings: &mut Readings) -> BTreeSet<Query> {
        let mut queries = self.first_queries();
        queries.retain(|query| !self.has(readings, query));
        if !queries.is_empty() {
            return queries;
        }
        if self.pods.is_none() {
            self.take_pods(readings);
        }
        let mut queries = self.of_rules(readings);
        if !queries.iter().any(|query| query.stage() == 0) {
            self.choose();
            queries.extend(self.of_limits(readings));
        }
        queries.retain(|query| !self.has(readings, query));
        if queries.is_empty() && !self.is_settled {
            // A reading for one pod may concern another pod.
            self.is_settled = true;
            self.open_all();
            return self.queries(readings);
        }
        let lowest = queries.iter().map(Query::stage).min();
        queries.retain(|query| Some(query.stage()) == lowest);
        queries
    }

    /// Returns whether the query was read.
    fn has(&self, readings: &Readings, query: &Query) -> bool {
        let key = |namespace: &String, name: &String| (namespace.clone(), name.clone());
        match query {
            Query::Namespaces => readings.namespaces.is_some(),
            Query::Attachments => readings.attachments.is_some(),
            Query::Node(name) => self.facts.nodes.contains_key(name),
            Query::Pods(list) => self.lists.contains_key(list),
            Query::Clock => readings.ready_nodes.is_some(),
            Query::NodeCounts => self.node_counts.is_some(),
            Query::OtherLeases => self.has_other_leases,
            Query::Pvc { namespace, name } => readings.pvcs.contains_key(&key(namespace, name)),
            Query::NodesFor(selector) => readings.selected.contains_key(selector),
            Query::Drivers => readings.detached.is_some(),
            Query::Set { namespace, name } => readings.sets.contains_key(&key(namespace, name)),
        }
    }

    /// Lists the known nodes that are NotReady.
    fn down(&self) -> impl Iterator<Item = &NodeFacts> {
        let known = self.facts.known_nodes();
        known.filter(|node| node.ready != Ready::True)
    }

    /// Reports whether the list has the pods of a node that the scan found NotReady.
    pub fn is_suspect(&self, list: &PodsOf) -> bool {
        matches!(list, PodsOf::Node(name) if self.scan.not_ready.contains(name))
    }

    /// Reports whether any pod may have to be judged.
    fn is_anything_wrong(&self) -> bool {
        !self.scan.not_ready.is_empty()
            || self.wanted.all
            || self.is_thorough
            || self.asked_uid.is_some()
    }

    /// Returns the queries that find the pods to be judged.
    fn first_queries(&self) -> BTreeSet<Query> {
        let filter = self.wanted.namespaces;
        if !self.is_anything_wrong() {
            let is_set = filter.include.is_some() || filter.exclude.is_some();
            return is_set.then_some(Query::Namespaces).into_iter().collect();
        }
        let suspects = self.scan.not_ready.iter();
        let suspects = suspects.flat_map(|node| {
            let pods = Query::Pods(PodsOf::Node(node.clone()));
            [Query::Node(node.clone()), pods]
        });
        let lists = self.scan.pods.iter().cloned().map(Query::Pods);
        let all = [Query::Namespaces, Query::Attachments];
        all.into_iter().chain(suspects).chain(lists).collect()
    }

    /// Takes the pods to be judged from their lists, with the heartbeats that they show of their nodes.
    /// If several pods have the same UID, the last one is used: the pod that the user asked about comes
    /// last, because a list may show an older state of it.
    fn take_pods(&mut self, readings: &mut Readings) {
        let mut found = Vec::new();
        // A pod without a namespace is reported as a pod that cannot be judged.
        let namespaces = self.wanted.namespaces;
        let matches =
            |pod: &PodFacts| pod.namespace.is_empty() || namespaces.matches(&pod.namespace);
        // If no namespace was saved, none is opted out.
        let known = readings.namespaces.clone().and_then(Read::transpose);
        let in_namespace = |name: &str| match &known {
            Some(all) => namespace(all, name),
            None => Ok(NamespaceFacts::default()),
        };
        for (list, Pods { kept, .. }) in &mut self.lists {
            let mut pods = std::mem::take(kept);
            if let PodsOf::Node(name) = list
                && let Some(NodeRead::Known(node)) = self.facts.nodes.get_mut(name)
            {
                node.hear(pods.iter().filter_map(|pod| pod.heard.clone()));
            }
            pods.retain(matches);
            for pod in &mut pods {
                pod.in_namespace = Some(in_namespace(&pod.namespace));
            }
            let (judged, others): (Vec<_>, Vec<_>) =
                pods.into_iter().partition(|pod| pod.deletion.is_some());
            found.extend(judged);
            if let PodsOf::Node(name) = list
                && self.scan.not_ready.contains(name)
            {
                let active = others.into_iter().filter(PodFacts::is_active).collect();
                self.facts.active.insert(name.clone(), active);
            }
        }
        found.extend(self.asked.take().map(|pod| PodFacts {
            in_namespace: Some(in_namespace(&pod.namespace)),
            ..pod
        }));
        found.retain_mut(|pod| {
            if let Some(cause) = pod.lacks.take() {
                let what = format!("pod {}/{}", pod.namespace, pod.name);
                readings.errors.insert(ReadError { what, cause });
                return false;
            }
            true
        });
        // In place, because there may be tens of thousands of pods.
        found.sort_by_cached_key(|pod| pod.uid.clone());
        found.dedup_by(|later, earlier| {
            let is_same = later.uid == earlier.uid;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        if let Some(attachments) = &readings.attachments {
            self.facts.attachments.clone_from(attachments);
        }
        self.pods = Some(found);
        self.open_all();
    }

    fn open_all(&mut self) {
        self.open = (0..self.pods().len()).collect();
    }

    fn pods(&self) -> &[PodFacts] {
        self.pods.as_deref().unwrap_or_default()
    }

    /// Leaves out the pods on Ready nodes, unless the user wants them. A node that became Ready after
    /// the scan is treated as Ready.
    fn choose(&mut self) {
        if self.is_chosen {
            return;
        }
        self.is_chosen = true;
        let (facts, asked) = (&self.facts, &self.asked_uid);
        let mut pods = self.pods.take().unwrap_or_default();
        if !self.wanted.all {
            let found = pods.len();
            pods.retain(|pod| asked.as_ref() == Some(&pod.uid) || !facts.on_ready_node(pod));
            // Only a thorough scan sees all pods on Ready nodes, so only then is their number known.
            if self.is_thorough {
                self.facts.on_ready_nodes = found - pods.len();
            }
        }
        self.pods = Some(pods);
        self.open_all();
    }

    /// Returns the queries that the rules lack to judge the open pods. Pods that lack nothing are
    /// closed.
    fn of_rules(&mut self, readings: &Readings) -> BTreeSet<Query> {
        loop {
            let mut queries = BTreeSet::new();
            let mut waiting = Vec::new();
            for at in std::mem::take(&mut self.open) {
                self.complete(readings, at);
                let Some(pod) = self.pods().get(at) else {
                    continue;
                };
                let case = PodContext::of(&self.facts, self.wanted.policy, pod);
                let mut lacks = if self.is_asked(pod) {
                    case.all_queries()
                } else {
                    case.queries()
                };
                let reads_claims = lacks.iter().any(|query| matches!(query, Query::Pvc { .. }));
                if reads_claims && !self.admitted.contains(&at) {
                    waiting.push(at);
                }
                lacks.retain(|query| !self.has(readings, query));
                if !lacks.is_empty() || waiting.last() == Some(&at) {
                    self.open.insert(at);
                }
                queries.extend(lacks);
            }
            let is_early = |query: &Query| query.stage() < Query::PVCS;
            if waiting.is_empty() || queries.iter().any(is_early) {
                return queries;
            }
            self.admit(readings, waiting);
        }
    }

    fn is_asked(&self, pod: &PodFacts) -> bool {
        self.asked_uid.as_ref() == Some(&pod.uid)
    }

    /// Gives each namespace its share of the PVCs to be read: first for the pod that the user asked
    /// about, then for a pod of each namespace in turn, the longest overdue first. PVCs beyond the
    /// share are treated as unread, which is no error of the run: one PVC then stands for all PVCs of
    /// the pod.
    fn admit(&mut self, readings: &Readings, mut waiting: Vec<usize>) {
        let mut pods = self.pods.take().unwrap_or_default();
        waiting.sort_by_cached_key(|at| {
            let pod = &pods[*at];
            let node = self.facts.known_node(pod);
            (!self.is_asked(pod), pod.overdue_since(node, self.facts.now))
        });
        let mut turns = BTreeMap::new();
        waiting.sort_by_cached_key(|at| {
            let pod = &pods[*at];
            let turn = turns.entry(pod.namespace.clone()).or_insert(0_usize);
            *turn += 1;
            (!self.is_asked(pod), *turn)
        });
        let mut due = BTreeMap::<_, BTreeSet<_>>::new();
        for at in waiting {
            let pod = &mut pods[at];
            let due = due.entry(pod.namespace.clone()).or_default();
            let named = pod.claims.iter().filter(|it| is_name(&it.name));
            let is_new = |claim: &&ClaimFacts| {
                !due.contains(&claim.name) && !self.has(readings, &Query::pvc(pod, &claim.name))
            };
            let new = named.filter(is_new).map(|claim| claim.name.clone());
            let new = new.collect_vec();
            if due.len() + new.len() > MAX_PVCS_OF_NAMESPACE {
                pod.claims = vec![ClaimFacts::any(format!(
                    "its namespace has more than {MAX_PVCS_OF_NAMESPACE} PVCs to look up, the limit per namespace and run"
                ))];
            }
            due.extend(new);
            self.admitted.insert(at);
        }
        self.pods = Some(pods);
    }

    /// Completes the pod at this index with the readings of its storage.
    fn complete(&mut self, readings: &Readings, at: usize) {
        if !self.admitted.contains(&at) {
            return;
        }
        let Some(mut pod) = self.pods.as_mut().map(|pods| pods[at].clone()) else {
            return;
        };
        let claims = std::mem::take(&mut pod.claims).into_iter();
        let claims = claims.map(|claim| self.found(readings, &pod, claim));
        pod.claims = claims.collect();
        let set = set_of(readings, &pod);
        if let Some(Ok(Some(set))) = &set {
            pod.templates = Some(set.templates());
            pod.copies = Some(set.copies());
            let controller = pod.controller.as_ref();
            let is_its = controller.is_some_and(|its| its.uid == set.metadata.uid);
            for claim in &mut pod.claims {
                claim.templated = is_its && set.makes(&claim.name, &pod.name);
            }
        }
        pod.set_wants = set.map(|set| set.map(|set| set.is_some_and(|set| set.wants(&pod.name))));
        if let Some(pods) = &mut self.pods {
            pods[at] = pod;
        }
    }

    /// Completes a PVC of `pod` with the reading of the PVC and its volume.
    fn found(&self, readings: &Readings, pod: &PodFacts, mut claim: ClaimFacts) -> ClaimFacts {
        let key = (pod.namespace.clone(), claim.name.clone());
        if let (None, Some(found)) = (&claim.state, readings.pvcs.get(&key)) {
            claim.deletion.clone_from(&found.deletion);
            claim.owned = found.owners.contains(&pod.uid);
            claim.state = Some(found.state.clone());
        }
        if let (Some(ClaimState::Bound(bound)), Some(node)) = (&mut claim.state, &pod.node) {
            for term in &mut bound.volume.affinity {
                if let (None, Ok(Some(selector))) = (&term.satisfied_by, term.selector()) {
                    term.satisfied_by = readings.selected.get(&selector).cloned();
                }
            }
            if let Some(driver) = &mut bound.volume.driver {
                let attached = self.facts.attachments.get(node).into_iter().flatten();
                let mut attached = attached.filter_map(|it| it.volume.as_ref());
                driver.attaches = if attached.any(|it| *it == bound.volume.name) {
                    Some(Ok(true))
                } else {
                    let detached = readings.detached.clone();
                    detached.map(|read| read.map(|detached| !detached.contains(&driver.name)))
                };
            }
        }
        claim
    }

    /// Returns the queries that the breaker lacks, and those that tell whether a machine that is
    /// marked as off may be alive.
    fn of_limits(&self, readings: &Readings) -> BTreeSet<Query> {
        let mut queries = BTreeSet::new();
        queries.extend(self.is_judging().then_some(Query::Clock));
        // Whether pods can start on a Ready node is read with the clock.
        let is_due = readings.ready_nodes.is_some() && self.needs_node_counts(readings);
        queries.extend(is_due.then_some(Query::NodeCounts));
        let is_marked = self.down().any(|node| !node.fenced.is_empty());
        queries.extend(is_marked.then_some(Query::OtherLeases));
        queries
    }

    /// Reports whether the breaker needs the number of NotReady nodes. It does not if few nodes are
    /// NotReady and pods can start on a Ready node.
    fn needs_node_counts(&self, readings: &Readings) -> bool {
        let few = self.scan.not_ready.len() <= MAX_NODES_IGNORED && !self.is_thorough;
        let room = || readings.ready_nodes.as_ref().is_some_and(|it| it.room);
        self.is_judging() && !(few && room())
    }

    /// Returns the Ready nodes whose clocks to compare, and the time to compare them with.
    pub fn clock(&self) -> (Vec<String>, Timestamp) {
        (self.scan.ready.clone(), self.facts.now)
    }

    /// Returns the possible holders of Leases that would show a heartbeat of a NotReady node.
    pub fn holders(&self) -> Holders {
        let mut holders = Holders::among(self.scan.nodes.iter().cloned());
        for node in self.down() {
            let pods = self.lists.get(&PodsOf::Node(node.name.clone()));
            holders.add(node, pods.into_iter().flat_map(|pods| &pods.holders));
        }
        holders
    }

    /// Adds to the facts of the NotReady nodes the heartbeats in the other Leases, as they were
    /// read for `holders`.
    pub fn hear(&mut self, holders: &Holders, mut read: LeasesByNode, is_forbidden: bool) {
        // A pod that was not listed may hold a Lease.
        for name in holders.nodes() {
            let pods = self.lists.get(&PodsOf::Node(name.clone()));
            let unlisted = || Some(Unread("its pods were not listed".to_owned()));
            if let Some(unread) = pods.map_or_else(unlisted, |pods| pods.unread.clone()) {
                read.insert(name, Err(unread));
            }
        }
        let now = self.facts.now;
        for (name, node) in &mut self.facts.nodes {
            let NodeRead::Known(node) = node else {
                continue;
            };
            if node.ready == Ready::True {
                continue;
            }
            node.others_forbidden = is_forbidden;
            // The Leases were read by name in all namespaces, and for all API servers.
            let leases = read.remove(name).unwrap_or(Ok(Some(Vec::new())));
            holders.hear(node, leases, now);
        }
        self.has_other_leases = true;
        // The heartbeats of the nodes may concern any pod.
        self.open_all();
    }

    /// Returns the facts and the pods, once no query is left.
    pub fn gathered(mut self, readings: &mut Readings) -> Gathered {
        self.facts.unmatched_namespaces = self.unmatched_namespaces(readings);
        self.facts.node_counts = match self.node_counts.take() {
            None if self.needs_node_counts(readings) => NodeCounts::default(),
            None => NodeCounts::NotNeeded,
            Some(Err(unread)) => NodeCounts::Unread(unread),
            Some(Ok(counted_nodes)) => NodeCounts::count(counted_nodes.into_values()),
        };
        if self.is_anything_wrong() {
            self.note_missing_leases(readings);
            if let Some(ready_nodes) = readings.ready_nodes.clone().filter(|_| self.is_judging()) {
                self.facts.clock = ready_nodes.clock;
            }
        }
        self.facts.errors = readings.errors.iter().cloned().collect();
        Gathered {
            facts: self.facts,
            pods: self.pods.unwrap_or_default(),
            leases: self.leases,
        }
    }

    fn is_judging(&self) -> bool {
        self.is_thorough || !self.pods().is_empty()
    }

    /// Returns the number of namespaces, if the filter matches no namespace and no pod. Pods are checked too,
    /// because a file may lack namespaces.
    fn unmatched_namespaces(&self, readings: &Readings) -> Option<usize> {
        let known = readings.namespaces.as_ref()?.as_ref().ok()?.as_ref()?;
        let mut names = known.keys();
        let none = !names.any(|name| self.wanted.namespaces.matches(name));
        (none && !known.is_empty() && self.pods().is_empty()).then_some(known.len())
    }

    /// Notes that a file has no leases, if a verdict depends on them.
    fn note_missing_leases(&mut self, readings: &mut Readings) {
        let is_on_dead = |pod: &PodFacts| {
            let node = self.facts.known_node(pod);
            node.is_some_and(|node| node.ready != Ready::True)
        };
        if self.scan.has_leases || !self.pods().iter().any(is_on_dead) {
            return;
        }
        let cause = "the file has none, so it cannot show that a node is alive".to_owned();
        let why = "The file has no leases, so it cannot show that a NotReady node is alive. Pods that are to be reaped may \
                   be running.";
        self.facts.incomplete = Some(why.to_owned());
        let what = LEASES_OF_FILE.to_owned();
        readings.errors.insert(ReadError { what, cause });
    }

    /// Lists the `StatefulSets` that could not be read although a verdict depends on them. No verdict
    /// depends on them for a PVC that stays: its pod needs you in any case.
    pub fn unread_sets(&self, readings: &Readings) -> Vec<(Query, Failure)> {
        let depends = |pod: &&PodFacts| {
            let case = PodContext::of(&self.facts, self.wanted.policy, pod);
            let goes = |claim: &ClaimFacts| {
                claim.deletion.is_none()
                    && matches!(case.goes(claim), DeletedWithPod::MayBeWanted(_))
            };
            pod.claims.iter().any(goes)
        };
        let pods = self.pods().iter();
        let unread = pods.filter(|pod| matches!(pod.set_wants, Some(Err(_))));
        let unread = unread.filter(depends).filter_map(|pod| {
            let failure = raw_set_of(readings, pod)?.as_ref().err()?;
            Some((Query::set(pod)?, failure.clone()))
        });
        unread.collect()
    }
}

fn raw_set_of<'a>(
    readings: &'a Readings,
    pod: &PodFacts,
) -> Option<&'a Result<Option<RawStatefulSet>, Failure>> {
    let Query::Set { namespace, name } = Query::set(pod)? else {
        return None;
    };
    readings.sets.get(&(namespace, name))
}

/// Returns the reading of the `StatefulSet` that controls `pod`; `None` if none was read.
fn set_of<'a>(readings: &'a Readings, pod: &PodFacts) -> Option<Read<Option<&'a RawStatefulSet>>> {
    let set = raw_set_of(readings, pod)?;
    Some(match set {
        Ok(set) => Ok(set.as_ref()),
        Err(failure) => Err(failure.clone().into()),
    })
}
