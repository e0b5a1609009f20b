//! A random cluster: its objects, the effects of writes, and random changes.
//!
//! The cluster is stored as the facts that a complete read would return, so that the oracle can judge it directly.

pub mod claim;
pub mod node;
pub mod pod;

use self::{
    claim::{Claim, DRIVERS, SET, Set, Volume, attached, reached, wanted_by_set},
    node::{Lease, Node, Other, Skip, made},
    pod::{deletion, is_forced, runs},
};
use crate::prelude::*;
use pod_reaper::facts::{Heard, LeafKind, NamespaceFacts};
use pod_reaper_test_support::samples;
use serde_json::json;

/// Namespace and name.
pub type Key = (String, String);

/// The facts that a client can read from an object.
#[derive(Debug, Clone)]
pub enum Facts {
    Node(Arc<Node>),
    Lease(Lease),
    Other(Box<Other>),
    Set(Set),
    Pod(Arc<Pod>),
    Namespace(String, NamespaceFacts),
    Claim(Claim),
    Volume(VolumeFacts),
    /// Node and attachment.
    Attachment(String, Attachment),
    Driver(String, Option<bool>),
}

#[derive(Clone)]
pub struct World {
    start: Instant,
    versions: usize,
    pub nodes: BTreeMap<String, Node>,
    pub pods: BTreeMap<Key, Pod>,
    pub namespaces: BTreeMap<String, Namespace>,
    /// The Leases that are not kubelets'. Each has its own combination of namespace and name.
    pub leases: Vec<Other>,
    pub claims: BTreeMap<Key, Claim>,
    pub volumes: BTreeMap<String, Volume>,
    /// Whether the `CSIDriver` of that name attaches volumes.
    pub drivers: BTreeMap<String, Option<bool>>,
    /// Node and attachment.
    pub attachments: Vec<(String, Attachment)>,
    /// The time that the Job controller takes to remove its finalizer from a failed pod.
    pub job_controller: Option<Duration>,
    /// The `StatefulSet` of each namespace.
    pub sets: BTreeMap<String, Set>,
    /// The UIDs of pods that are gone, and whether the program's delete removed them.
    pub gone: BTreeMap<Uid, By>,
}

#[derive(Debug, Clone, Copy)]
pub struct Namespace {
    pub skip: Skip,
    /// Whether the namespace is being deleted.
    pub deleted: bool,
}

impl Namespace {
    fn facts(self) -> NamespaceFacts {
        NamespaceFacts {
            opted_out: self.skip.opted_out(),
            deleted: self.deleted,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Us,
    Others,
}

const NAMESPACES: [&str; 2] = ["bank", "shop"];
/// An hour is longer than every threshold.
const LONG: i64 = 3_600;

impl World {
    pub fn random(dice: &mut Dice) -> Self {
        let mut world = Self {
            start: Instant::now(),
            versions: 100,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            leases: Vec::new(),
            claims: BTreeMap::new(),
            volumes: BTreeMap::new(),
            drivers: BTreeMap::new(),
            attachments: Vec::new(),
            job_controller: dice.weigh(&[
                (3, Some(Duration::ZERO)),
                (3, Some(Duration::from_millis(2_400))),
                (1, Some(Duration::from_secs(30))),
                (1, None),
            ]),
            sets: BTreeMap::new(),
            gone: BTreeMap::new(),
        };
        for namespace in NAMESPACES {
            let (skip, deleted) = (Skip::random(dice), dice.permille(80));
            let facts = Namespace { skip, deleted };
            world.namespaces.insert(namespace.to_owned(), facts);
            let set = Set::random(dice);
            world
                .sets
                .extend(set.map(|set| (namespace.to_owned(), set)));
        }
        for name in DRIVERS {
            let is_there = dice.weigh(&[
                (5, Some(None)),
                (3, Some(Some(false))),
                (4, Some(Some(true))),
                (1, None),
            ]);
            world
                .drivers
                .extend(is_there.map(|attaches| (name.to_owned(), attaches)));
        }
        let dead = dice.weigh(&[(16, 1), (16, 2), (4, 3), (2, 4), (2, 0), (1, 8)]);
        let ready = dice.weigh(&[(16, 2), (16, 3), (8, 5), (4, 1), (2, 0), (1, 12)]);
        // Sometimes one zone fails and others do not.
        let of_zone = dice.permille(50);
        let (dead, ready) = if of_zone {
            (dice.pick(&[3, 3, 4]), dice.pick(&[4, 6]))
        } else {
            (dead, ready)
        };
        for number in 0..(dead + ready).max(1) {
            let is_dead = number < dead;
            let mut node = world.random_node(dice, number, is_dead);
            if of_zone && dice.permille(950) {
                node.label(
                    "topology.kubernetes.io/zone",
                    if is_dead { "a" } else { "b" },
                );
                node.labels.remove("topology.kubernetes.io/region");
                node.facts.zone = node.zone();
            }
            world.nodes.insert(node.facts.name.clone(), node);
        }
        for name in world.nodes.keys().cloned().collect::<Vec<_>>() {
            // Sometimes there are more pods than concurrent requests, so that pods must wait.
            let many = dice.weigh(&[(16, 6), (1, 24)]);
            let most = if world.nodes[&name].facts.ready == Ready::True {
                2
            } else {
                many
            };
            for _ in 0..dice.below(most) {
                world.add_pod(dice, Some(name.clone()));
            }
        }
        world.add_leases(dice);
        if dice.permille(800) {
            self::plain(&mut world, dice);
        }
        if dice.permille(30) {
            // According to the Leases of all Ready nodes, the server's clock is wrong, or just within the tolerance.
            let skew = dice.pick(&[-1_200, -306, -296, -295, -294]);
            let living = world
                .nodes
                .values_mut()
                .filter(|node| node.facts.ready == Ready::True);
            living
                .filter_map(|node| node.lease.as_mut())
                .for_each(|lease| lease.skew = skew);
        }
        if dice.permille(100) {
            world.add_pod(dice, None);
        }
        if dice.permille(50) {
            world.add_pod(dice, Some("n-that-is-gone".to_owned()));
        }
        world
    }

    /// The server's clock.
    pub fn now(&self) -> Timestamp {
        start() + SignedDuration::try_from(self.start.elapsed()).unwrap()
    }

    /// The server's clock as its responses show it: in whole seconds.
    pub fn date(&self) -> Timestamp {
        Timestamp::from_second(self.now().as_second()).unwrap()
    }

    fn version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    fn uid(&mut self) -> String {
        format!("uid-{}", self.version())
    }

    /// The facts that a complete read at `now` would return.
    pub fn facts(&self, now: Timestamp) -> Gathered {
        let pods = self.pods.values().filter(|pod| pod.terminating).map(|pod| {
            let mut facts = pod.facts.clone();
            let namespace = self.namespaces.get(&facts.namespace);
            facts.in_namespace = Some(namespace.map(|it| it.facts()).ok_or_else(unread));
            let claim = |name: &str| {
                let key = (facts.namespace.clone(), name.to_owned());
                Ok(self.claims.get(&key))
            };
            let volume = |name: &str| {
                let volume = self.volumes.get(name).map(|volume| volume.facts.clone());
                let volume = volume.map(|volume| reached(volume, self.nodes.values()));
                let node = facts.node.as_deref().unwrap_or_default();
                Ok(volume
                    .map(|volume| attached(volume, node, &self.attachments, Some(&self.drivers))))
            };
            let set = Ok(self.sets.get(&facts.namespace));
            let its_set = self.sets.get(&facts.namespace);
            facts.claims = Self::known_claims(&facts, its_set, claim, volume);
            facts.set_wants = wanted_by_set(&facts, &set);
            facts
        });
        let read = |node: &Node| NodeRead::Known(node.at(now, Ok(self.elsewhere(node, now))).facts);
        let nodes = self
            .nodes
            .iter()
            .map(|(name, node)| (name.clone(), read(node)));
        let mut nodes = nodes.collect::<BTreeMap<_, _>>();
        for name in self.pods.values().filter_map(|pod| pod.facts.node.clone()) {
            nodes.entry(name).or_insert(NodeRead::Gone);
        }
        let mut attachments = BTreeMap::<_, Vec<_>>::new();
        for (node, attachment) in self.attachments.clone() {
            attachments.entry(node).or_default().push(attachment);
        }
        Gathered {
            leases: None,
            facts: ClusterFacts {
                nodes,
                attachments,
                ..no_facts(now)
            },
            pods: pods.collect(),
        }
    }

    /// The objects of a kind as the API server has them, of all names or of one.
    pub fn objects(&self, resource: Resource, of: Option<(&str, &str)>) -> Vec<(Value, Facts)> {
        let now = self.date();
        let named = |name: &str| of.is_none_or(|(_, wanted)| wanted == name);
        let is = |key: &Key| of.is_none_or(|of| of == (key.0.as_str(), key.1.as_str()));
        let nodes = self.nodes.values().filter(|node| named(&node.facts.name));
        match resource {
            Resource::Nodes => nodes.map(|node| node::node_and_facts(node, now)).collect(),
            Resource::Leases => {
                let of_nodes =
                    of.is_none_or(|(namespace, _)| ["", "kube-node-lease"].contains(&namespace));
                let own = nodes
                    .filter(|_| of_nodes)
                    .filter_map(|node| node::lease_and_facts(node, now));
                let is = |other: &&Other| {
                    of.is_none_or(|of| of == (other.namespace.as_str(), other.name.as_str()))
                };
                let others = self
                    .leases
                    .iter()
                    .filter(is)
                    .map(|other| node::other_and_facts(other, now));
                own.chain(others).collect()
            }
            Resource::Pods => {
                let pods = self.pods.iter().filter(|(key, _)| is(key));
                pods.map(|(_, pod)| pod::pod_and_facts(pod)).collect()
            }
            Resource::Claims => {
                let claims = self.claims.iter().filter(|(key, _)| is(key));
                let facts = |(key, claim): (_, &Claim)| {
                    (claim::claim(key, claim), Facts::Claim(claim.clone()))
                };
                claims.map(facts).collect()
            }
            Resource::Volumes => {
                let volumes = self
                    .volumes
                    .values()
                    .filter(|volume| named(&volume.facts.name));
                let facts =
                    |volume: &Volume| (claim::volume(volume), Facts::Volume(volume.facts.clone()));
                volumes.map(facts).collect()
            }
            Resource::StatefulSets => {
                let sets = self
                    .sets
                    .iter()
                    .filter(|(namespace, _)| of.is_none_or(|of| of == (namespace.as_str(), SET)));
                let facts = |(namespace, set): (&String, &Set)| {
                    (claim::set(namespace, set), Facts::Set(set.clone()))
                };
                sets.map(facts).collect()
            }
            Resource::Namespaces => {
                let facts = |(name, it): (&String, &Namespace)| {
                    let facts = Facts::Namespace(name.clone(), it.facts());
                    (namespace(name, *it), facts)
                };
                self.namespaces.iter().map(facts).collect()
            }
            Resource::Attachments => {
                let facts = |(node, it): &(String, Attachment)| {
                    (
                        claim::attachment(node, it),
                        Facts::Attachment(node.clone(), it.clone()),
                    )
                };
                self.attachments.iter().map(facts).collect()
            }
            Resource::Drivers => {
                let facts = |(name, it): (&String, &Option<bool>)| {
                    (claim::driver(name, *it), Facts::Driver(name.clone(), *it))
                };
                self.drivers.iter().map(facts).collect()
            }
            Resource::Events => Vec::new(),
        }
    }

    /// All objects, plus one of each kind that a file must contain to prove anything about that kind.
    pub fn all(&self) -> Vec<Value> {
        let kinds = [
            Resource::Nodes,
            Resource::Leases,
            Resource::Pods,
            Resource::Claims,
            Resource::Volumes,
            Resource::StatefulSets,
            Resource::Namespaces,
            Resource::Attachments,
            Resource::Drivers,
        ];
        let objects = kinds.into_iter().flat_map(|kind| self.objects(kind, None));
        let more = "
            Lease another: {}
            PersistentVolumeClaim another/another: {volume: another}
            PersistentVolume another: {}
            StatefulSet another/another: {}
        ";
        let more = samples::objects(&samples::yaml(more)).into_iter().chain([
            json!({"kind": "Pod", "metadata": {"namespace": "another", "name": "another"}}),
            claim::driver("another", None),
        ]);
        objects.map(|(object, _)| object).chain(more).collect()
    }

    /// The nodes that a Lease's holder names, or whose pods it names.
    pub fn named_by(&self, lease: &Other) -> BTreeSet<&str> {
        let nodes = self.nodes.values().map(Node::names);
        lease.held_on(nodes, self.pods.values().filter_map(|pod| runs(&pod.facts)))
    }

    /// The heartbeats of a node at `now` from other Leases and from its pods.
    pub fn elsewhere(&self, node: &Node, now: Timestamp) -> Vec<Heard> {
        let leases = self
            .leases
            .iter()
            .filter(|lease| self.named_by(lease).contains(node.facts.name.as_str()));
        let pods = self
            .pods
            .values()
            .filter(|pod| pod.facts.node.as_ref() == Some(&node.facts.name));
        leases
            .filter_map(|lease| lease.heard(now))
            .chain(pods.filter_map(Pod::heard))
            .collect()
    }

    /// Whether something on the node continues to send heartbeats.
    pub fn lives(&self, node: &Node) -> bool {
        let mut others = self.leases.iter().filter(|other| other.lease.goes_on);
        node.lives() || others.any(|it| self.named_by(it).contains(node.facts.name.as_str()))
    }

    /// Whether the Ready nodes contradict the server's clock. Returns `None` if that depends on which of these nodes are read.
    pub fn clock_is_wrong(&self) -> Option<bool> {
        let now = self.date();
        let ready = self
            .nodes
            .values()
            .filter(|node| node.facts.ready == Ready::True);
        let kind = |node: &Node| node.facts.leaf.as_ref().map(|leaf| leaf.kind);
        if ready
            .clone()
            .any(|node| kind(node) == Some(LeafKind::Selected))
        {
            // The user selects such nodes by an option, which this run may not have.
            return None;
        }
        let real = ready.filter(|node| kind(node).is_none());
        // A lease without a time takes one of the three places too.
        let leases = real.clone().filter(|node| node.lease.is_some()).count();
        let said = real.filter_map(|node| node.lease.as_ref()?.at(now).said());
        let fresh = |said: Timestamp| now.duration_since(said) < SignedDuration::from_mins(5);
        let all = said.map(fresh).collect::<Vec<_>>();
        let (any, every) = (all.contains(&true), !all.contains(&false));
        (every || !any || leases <= 3).then_some(!any && !every)
    }

    fn remove_unused_claims(&mut self) {
        // For the protection controller, a pod without a node uses no PVC.
        let used = |namespace: &str, name: &str| {
            let mut pods = self
                .pods
                .values()
                .filter(|pod| pod.facts.namespace == namespace && pod.facts.node.is_some());
            pods.any(|pod| pod.facts.claims.iter().any(|claim| claim.name == name))
        };
        self.claims
            .retain(|(namespace, name), claim| claim.deletion.is_none() || used(namespace, name));
    }

    /// Applies the changes that the Job controller has made up to now.
    pub fn settle(&mut self) {
        let due = |pod: &Pod| pod.released_at.is_some_and(|at| at <= Instant::now());
        let due = self
            .pods
            .iter()
            .filter(|(_, pod)| due(pod))
            .map(|(key, _)| key.clone());
        for key in due.collect::<Vec<_>>() {
            let version = self.version();
            let Some(pod) = self.pods.get_mut(&key) else {
                continue;
            };
            pod.released_at = None;
            pod.facts
                .finalizers
                .retain(|finalizer| finalizer != JOB_TRACKING);
            pod.facts.resource_version = version.into();
            self.remove_if_free(&key);
        }
    }

    fn remove_if_free(&mut self, key: &Key) {
        let free = |pod: &Pod| pod.facts.finalizers.is_empty() && is_forced(&pod.facts);
        if self
            .pods
            .get(key)
            .is_some_and(|pod| pod.terminating && free(pod))
        {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(pod) = self.pods.remove(key) {
            let by = if pod.forced_by_us { By::Us } else { By::Others };
            self.gone.insert(pod.facts.uid, by);
            self.remove_unused_claims();
        }
    }

    fn check(&self, key: &Key, uid: &str, version: &str) -> Result<(), Refusal> {
        match self.pods.get(key) {
            None => Err(Refusal::NotFound),
            Some(pod) if pod.facts.uid.as_str() != uid => Err(Refusal::WrongUid),
            Some(pod) if *pod.facts.resource_version != *version => Err(Refusal::WrongVersion),
            Some(_) => Ok(()),
        }
    }

    /// Force-deletes a pod, with preconditions.
    pub fn delete(
        &mut self,
        key: &Key,
        uid: &str,
        version: &str,
        dry: bool,
    ) -> Result<(), Refusal> {
        self.check(key, uid, version)?;
        if !dry {
            self.force(key, By::Us);
        }
        Ok(())
    }

    fn force(&mut self, key: &Key, by: By) {
        let (version, now) = (self.version(), self.date());
        let Some(pod) = self.pods.get_mut(key) else {
            return;
        };
        pod.forced_by_us |= by == By::Us;
        deletion(&mut pod.facts).grace_seconds = Some(0);
        pod.facts.resource_version = version.into();
        if pod.facts.finished() {
            pod.released_at = self.job_controller.map(|after| Instant::now() + after);
        }
        if !pod.terminating || pod.facts.deletion_deadline() > now {
            pod.terminating = true;
            deletion(&mut pod.facts).deadline = now;
        }
        self.remove_if_free(key);
    }

    /// Patches the status to `Failed`, with preconditions.
    pub fn fail(&mut self, key: &Key, uid: &str, version: &str, dry: bool) -> Result<(), Refusal> {
        self.check(key, uid, version)?;
        if !dry {
            let new_version = self.version();
            let released_at = self.job_controller.map(|after| Instant::now() + after);
            if let Some(pod) = self.pods.get_mut(key) {
                pod.facts.fail();
                pod.facts.resource_version = new_version.into();
                let mut finalizers = pod.facts.finalizers.iter();
                let is_held = finalizers.any(|finalizer| finalizer == JOB_TRACKING);
                pod.released_at = released_at.filter(|_| is_held);
            }
        }
        Ok(())
    }

    /// Scales or recreates a set.
    fn scale(&mut self, dice: &mut Dice) {
        let namespace = dice.pick(&NAMESPACES);
        if let Some(set) = Set::random(dice) {
            self.sets.insert(namespace.to_owned(), set);
        } else {
            self.sets.remove(namespace);
        }
        for ((within, _), pod) in &mut self.pods {
            pod.changed |= within == namespace;
        }
    }

    /// Makes a random change that the program has not caused.
    pub fn change(&mut self, dice: &mut Dice) {
        let what = match dice.below(42) {
            31 | 32 => 18,
            33 => 0,
            34.. => dice.pick(&[13, 14]),
            what => what,
        };
        if what > 25 {
            self.scale(dice);
            return;
        }
        if !(13..=25).contains(&what) {
            // Usually changes one of the pods that the run is about.
            let any = dice.permille(150);
            let names = self
                .nodes
                .values()
                .filter(|node| any || node.facts.ready != Ready::True);
            let names = names
                .map(|node| node.facts.name.clone())
                .collect::<Vec<_>>();
            if names.is_empty() {
                return;
            }
            let name = names[dice.below(names.len())].clone();
            let (uid, now) = (self.uid(), self.date());
            let Some(node) = self.nodes.get_mut(&name) else {
                return;
            };
            node.changed = true;
            match what {
                0 => {
                    node.facts.ready = Ready::True;
                    node.facts.ready_since = Some(now);
                    node.renew(now, true);
                }
                1 => node.renew(now, false),
                2 => {
                    (node.facts.uid, node.created) = (uid.into(), Some(now));
                    (node.facts.ready_since, node.facts.tainted_since) =
                        (Some(now - SignedDuration::from_secs(LONG)), None);
                }
                3 => node.mark_as_leaf(dice, false),
                4 => {
                    node.skip = Skip::out(dice);
                    node.facts.opted_out = node.skip.opted_out();
                }
                5 => (node.facts.ready, node.facts.ready_since) = (Ready::Unknown, Some(now)),
                // The kubelet is running again, but its container runtime is not.
                6 | 7 => {
                    node.facts.ready = Ready::False;
                    node.renew(now, true);
                }
                8 | 9 => node.show_life(dice, now),
                10 => node.fence(dice, Some(now)),
                11 => node.unfence(),
                _ => {
                    self.nodes.remove(&name);
                }
            }
            return;
        }
        let any = dice.permille(150);
        let is_stuck = |pod: &Pod| {
            let node = pod
                .facts
                .node
                .as_ref()
                .and_then(|node| self.nodes.get(node));
            pod.terminating && node.is_some_and(|node| node.facts.ready != Ready::True)
        };
        let pods = self.pods.iter().filter(|(_, pod)| any || is_stuck(pod));
        let keys = pods.map(|(key, _)| key.clone()).collect::<Vec<_>>();
        if keys.is_empty() {
            return;
        }
        let key = keys[dice.below(keys.len())].clone();
        let (uid, version, now) = (self.uid(), self.version(), self.date());
        let Some(pod) = self.pods.get_mut(&key) else {
            return;
        };
        pod.changed = true;
        pod.facts.resource_version = version.into();
        match what {
            13 => self.force(&key, By::Others),
            14 => {
                // The replacement of a StatefulSet's pod has the same name, and is usually on another node.
                let mut namesake = pod.clone();
                pod.forced_by_us = false;
                self.remove(&key);
                (namesake.facts.uid, namesake.facts.created) = (uid.into(), Some(now));
                namesake.forced_by_us = false;
                namesake.released_at = None;
                namesake.terminating = dice.permille(300);
                self.pods.insert(key, namesake);
            }
            15 => {
                pod.skip = Skip::out(dice);
                pod.facts.opted_out = pod.skip.opted_out();
            }
            16 => pod.facts.finalizers = vec!["x/hold".to_owned()],
            17 => pod.facts.fail(),
            18 => {
                if let Some(namespace) = self.namespaces.get_mut(&key.0) {
                    namespace.skip = Skip::out(dice);
                }
            }
            19 => {
                if let Some(claim) = pod.facts.claims.first() {
                    self.claims.remove(&(key.0, claim.name.clone()));
                }
            }
            20 => {
                let node = pod.facts.node.clone();
                let added = self.add_pod(dice, node);
                if let Some(pod) = self.pods.get_mut(&added) {
                    pod.changed = true;
                }
            }
            // Changes only the version, as a status update by another client does.
            _ => {}
        }
    }
}

/// Simplifies one of the nodes that are down: it is dead, nothing contradicts that, and only the properties and volumes of its
/// pods can keep them. Without such a node, every reason would be rare, because so much of the other nodes is random.
fn plain(world: &mut World, dice: &mut Dice) {
    let nodes = world.nodes.values();
    let down = nodes.filter(|node| node.facts.ready != Ready::True && node.facts.leaf.is_none());
    let Some(name) = down.map(|node| node.facts.name.clone()).next() else {
        return;
    };
    let failed = start() - SignedDuration::from_secs(LONG);
    if let Some(node) = world.nodes.get_mut(&name) {
        node.unfence();
        node.beats.clear();
        node.renew(failed - SignedDuration::from_secs(10), false);
        (node.skip, node.doubtful) = (Skip::default(), false);
        node.created = Some(made());
        let facts = &mut node.facts;
        (facts.ready, facts.opted_out) = (Ready::Unknown, None);
        (facts.ready_since, facts.tainted_since) = (Some(failed), Some(failed));
        if dice.permille(100) {
            node.mark_as_edge(dice);
        }
    }
    let held = world.leases.iter().map(|lease| {
        let held = world.named_by(lease);
        held.contains(name.as_str())
    });
    let held = held.collect_vec();
    let mut held = held.into_iter();
    world.leases.retain(|_| held.next() == Some(false));
    for namespace in world.namespaces.values_mut() {
        namespace.skip = Skip::default();
    }
    if dice.permille(500) {
        world.sets.values_mut().for_each(Set::want_all);
    }
    let pods = world.pods.values_mut();
    for pod in pods.filter(|pod| pod.facts.node.as_ref() == Some(&name)) {
        (pod.terminating, pod.word, pod.skip) = (true, None, Skip::default());
        let facts = &mut pod.facts;
        (facts.created, facts.opted_out) = (Some(made()), None);
        facts.mirror = false;
        facts.phase.clear();
        facts
            .finalizers
            .retain(|finalizer| finalizer == JOB_TRACKING);
        // Sometimes the kubelet has learned of the deletion, and is waiting for a grace period of a week when the machine dies.
        let grace = dice.pick(&[30, 604_800]);
        let asked = failed - SignedDuration::from_secs(dice.pick(&[-300, 30, 180]));
        let deletion = deletion(facts);
        deletion.grace_seconds = Some(grace);
        deletion.deadline = asked + SignedDuration::from_secs(grace);
        for claim in &facts.claims {
            let key = (facts.namespace.clone(), claim.name.clone());
            if let Some(claim) = world.claims.get_mut(&key) {
                claim.deletion.take_if(|_| dice.permille(700));
            }
        }
    }
}

pub fn unread() -> Unread {
    Unread("it could not be read".to_owned())
}

pub fn no_facts(now: Timestamp) -> ClusterFacts {
    ClusterFacts {
        now,
        node_counts: NodeCounts::NotNeeded,
        ..ClusterFacts::default()
    }
}

/// The start of each run, by the server's clock.
pub fn start() -> Timestamp {
    Timestamp::from_second(1_769_828_400).unwrap()
}

/// An age in seconds: usually long ago, sometimes at, just before or just after a threshold or a Lease's duration.
fn age(dice: &mut Dice) -> i64 {
    let edge = dice.pick(&[0, 10, 60, 600, 660]) + dice.pick(&[-1, 0, 1]);
    let long = LONG + i64::try_from(dice.below(4)).unwrap();
    dice.weigh(&[(50, long), (7, edge), (1, -LONG)])
}

/// The creation time of an object: usually long before any failure, sometimes close to the failure of its node, or unknown.
fn created(dice: &mut Dice) -> Option<Timestamp> {
    let edge = Some(start() - SignedDuration::from_secs(age(dice)));
    dice.weigh(&[(30, Some(made())), (1, None), (2, edge)])
}

fn entry(manager: &str, at: Timestamp, fields: &Value) -> Value {
    json!({"manager": manager, "operation": "Update", "time": time(at), "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn skip(skip: Skip, labels: &mut Value, annotations: &mut Value) {
    for (value, of) in [(skip.label, labels), (skip.annotation, annotations)] {
        if let Some(value) = value {
            of["pod-reaper.io/skip"] = json!(value);
        }
    }
}

fn namespace(name: &str, Namespace { skip, deleted }: Namespace) -> Value {
    let (mut labels, mut annotations) = (json!({"kubernetes.io/metadata.name": name}), json!({}));
    self::skip(skip, &mut labels, &mut annotations);
    let deleted = deleted.then(|| time(made()));
    json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels, "annotations": annotations,
        "deletionTimestamp": deleted}})
}

fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
