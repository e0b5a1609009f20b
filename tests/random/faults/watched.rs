//! The cluster behind the server, with a record of what the program has received. Every write is checked by what the
//! program could know.

use super::invariants::Rules;
use crate::{
    prelude::*,
    world::{
        Claim, Facts, Key, SET, Set, claims_of, json,
        node::{Lease, Node},
    },
};
use pod_reaper::facts::ResourceVersion;
use pod_reaper_test_support::simulated::{Cluster, Content, Delivery, Whole};

pub struct Watched {
    pub world: World,
    /// The pods as the server's cache has them.
    cache: Cache,
    pub received: Received,
    pub rules: Rules,
    pub trouble: Trouble,
    /// Requests before which the cluster changes, in a thousand.
    pub changes: usize,
    pub writes: Vec<Write>,
    /// The pods that have had Warnings.
    pub warned: BTreeSet<String>,
    pub violations: Vec<String>,
    dice: Dice,
}

/// A cache that may be behind the cluster.
pub struct Cache {
    pub pods: BTreeMap<Key, Pod>,
    /// How often it takes over the state of the cluster, in a thousand requests.
    pub keeps_up: usize,
    /// Lists that were not as the cluster was.
    pub stale_lists: Cell<usize>,
}

/// A write that was sent.
#[derive(Debug)]
pub struct Write {
    pub request: usize,
    pub kind: Kind,
    pub uid: String,
    /// The claim that it deletes.
    pub claim: Option<String>,
    /// It was sent as a dry run.
    pub dry: bool,
    /// The time at which it changed the pod.
    pub took_effect: Option<Instant>,
    /// The status that reached the program.
    pub answered: Option<u16>,
    pub denied: bool,
}

/// The complete answers that reached the program.
#[derive(Debug, Default)]
pub struct Received {
    /// Whether each node's row shows Ready.
    pub rows: Vec<bool>,
    /// All nodes.
    pub census: Option<Vec<NodeFacts>>,
    /// By node, whether the last complete list of its pods showed a Terminating one.
    pub terminating: BTreeMap<String, bool>,
    /// The leases of API servers, in the last complete list; none where that was forbidden.
    pub servers: Option<Vec<Lease>>,
    pub sets: BTreeMap<String, Option<Set>>,
    /// Whether some real node was seen on which a pod could start.
    pub real_ready: bool,
    /// The first UID of each node, which is that of the judged node.
    pub judged: BTreeMap<String, Uid>,
    /// The last read of each node.
    pub looks: BTreeMap<String, Look>,
    pub leases: BTreeMap<String, (Instant, Option<Lease>)>,
    /// By which value each is opted out, in the last complete list; and how many such lists there were.
    pub namespaces: BTreeMap<String, Option<String>>,
    pub namespace_lists: usize,
    /// The nodes that label selectors selected.
    pub selected: BTreeMap<String, Node>,
    /// Terminating pods by UID and version.
    pub pods: BTreeMap<(Uid, ResourceVersion), PodFacts>,
    pub claims: BTreeMap<Key, Option<Claim>>,
    pub volumes: BTreeMap<String, Option<VolumeFacts>>,
    /// By namespace, the last complete list of its pods: their UIDs and claims.
    pub users: BTreeMap<String, Vec<(Uid, Vec<String>)>>,
    /// The last complete list of the UIDs on each node.
    pub uids: BTreeMap<String, (Instant, BTreeSet<Uid>)>,
}

/// A read of a node that reached the program.
#[derive(Debug, Clone)]
pub struct Look {
    pub taken: Instant,
    pub date: Timestamp,
    pub node: Node,
}

impl Watched {
    pub fn new(
        world: World,
        cache: Cache,
        rules: Rules,
        trouble: Trouble,
        changes: usize,
        dice: Dice,
    ) -> Self {
        Self {
            world,
            cache,
            received: Received::default(),
            rules,
            trouble,
            changes,
            writes: Vec::new(),
            warned: BTreeSet::new(),
            violations: Vec::new(),
            dice,
        }
    }

    pub fn stale_lists(&self) -> usize {
        self.cache.stale_lists.get()
    }

    fn write_of(&mut self, request: &Request) -> Option<&mut Write> {
        self.writes
            .iter_mut()
            .find(|write| write.request == request.number)
    }
}

impl Cluster for Watched {
    type Facts = Facts;

    fn now(&self) -> Timestamp {
        self.world.date()
    }

    fn objects(&self, resource: Resource, selector: &str) -> Vec<(Value, Facts)> {
        if resource == Resource::Pods {
            let pods = selected(&self.world.pods, selector);
            return pods.map(json::pod_and_facts).collect();
        }
        self.world.objects(resource, None)
    }

    fn cached(&self, _: Resource, selector: &str) -> Vec<(Value, Facts)> {
        let Cache {
            pods, stale_lists, ..
        } = &self.cache;
        let versions = |pods| selected(pods, selector).map(|pod| &pod.facts.resource_version);
        if !versions(pods).eq(versions(&self.world.pods)) {
            stale_lists.set(stale_lists.get() + 1);
        }
        selected(pods, selector).map(json::pod_and_facts).collect()
    }

    fn object(&self, resource: Resource, namespace: &str, name: &str) -> Option<(Value, Facts)> {
        let objects = self.world.objects(resource, Some((namespace, name)));
        let is_it = |(object, _): &(Value, Facts)| object["metadata"]["name"] == name;
        objects.into_iter().find(is_it)
    }

    fn sent(&mut self, request: &Request) {
        match request.kind {
            Kind::Delete | Kind::DeleteClaim | Kind::Patch => self.judge(request),
            Kind::Events | Kind::Event => self.judge_event(request),
            _ => {}
        }
    }

    fn received(&mut self, request: &Request) {
        self.world.settle();
        while self.dice.permille(self.changes) {
            self.world.change(&mut self.dice);
        }
        if self.dice.permille(self.cache.keeps_up) {
            self.cache.pods.clone_from(&self.world.pods);
        }
        if request.kind.writes() {
            self.judge_age(request);
        }
    }

    fn write(&mut self, request: &Request, takes_effect: bool) -> Result<(Value, Facts), Refusal> {
        let key = (request.namespace.clone(), request.name.clone());
        if request.kind == Kind::DeleteClaim {
            let (uid, version) = request.preconditions();
            let claim = self.world.claims.get(&key).cloned();
            self.world.delete_claim(&key, uid, version, !takes_effect)?;
            let claim = claim.ok_or(Refusal::NotFound)?;
            if takes_effect {
                let scratch = self.rules.settings.policy.reap_scratch;
                if claim.give_up.is_none() && !(scratch && claim.scratch == Some("true")) {
                    let wrong = "was deleted, and nobody gave it up";
                    self.violations
                        .push(format!("claim {} {wrong}", request.name));
                }
                if let Some(write) = self.write_of(request) {
                    write.took_effect = Some(Instant::now());
                }
            }
            return Ok((json::claim(&key, &claim), Facts::Nothing));
        }
        let before = self.world.pods.get(&key).cloned();
        let (uid, version) = request.preconditions();
        match request.kind {
            Kind::Delete => self.world.delete(&key, uid, version, !takes_effect)?,
            _ => self.world.fail(&key, uid, version, !takes_effect)?,
        }
        if takes_effect && let Some(write) = self.write_of(request) {
            write.took_effect = Some(Instant::now());
        }
        let mut pod = self
            .world
            .pods
            .get(&key)
            .cloned()
            .or(before)
            .ok_or(Refusal::NotFound)?;
        let object = json::pod(&pod);
        // The program has to rely on the answer. A dry run's says nothing of the pod.
        pod.facts.finished |= request.kind == Kind::Patch && !request.dry_run;
        Ok((object, Facts::Pod(Arc::new(pod.facts), true)))
    }

    fn answered(&mut self, request: &Request, status: u16, fault: Option<Fault>) {
        if request.kind == Kind::ServerLeases && status == 403 {
            self.received.servers = Some(Vec::new());
        }
        if let Some(write) = self.write_of(request) {
            write.answered = Some(status);
            write.denied = matches!(status, 403 | 422) || fault == Some(Fault::Webhook);
        }
    }

    fn delivered(&mut self, request: &Request, delivery: Delivery<Facts>) {
        self.received.note(request, delivery);
    }
}

/// The pods that a list with this field selector may have.
fn selected<'a>(pods: &'a BTreeMap<Key, Pod>, selector: &'a str) -> impl Iterator<Item = &'a Pod> {
    let node = selector.strip_prefix("spec.nodeName=");
    pods.values().filter(move |pod| {
        node.is_none_or(|node| pod.facts.node.as_deref().unwrap_or_default() == node)
    })
}

/// Whether a pod could start on a real node.
fn is_open(node: &NodeFacts) -> bool {
    node.ready == Ready::True && node.leaf.is_none() && !node.cordoned && !node.reserved
}

impl Received {
    fn note(&mut self, request: &Request, delivery: Delivery<Facts>) {
        let Delivery {
            taken,
            now,
            dated,
            content,
        } = delivery;
        let key = || (request.namespace.clone(), request.name.clone());
        let name = request.name.clone();
        match (request.kind, content) {
            (Kind::Node, Content::Absent) => drop(self.looks.remove(&name)),
            // A read without the server's clock does not count, since the node cannot be judged by it.
            (Kind::Node, Content::Object(Facts::Node(node))) if dated => {
                let facts = &node.facts;
                self.judged
                    .entry(name.clone())
                    .or_insert_with(|| facts.uid.clone());
                self.real_ready |= is_open(facts);
                let node = Arc::unwrap_or_clone(node);
                self.looks.insert(
                    name,
                    Look {
                        taken,
                        date: now,
                        node,
                    },
                );
            }
            (Kind::Lease, Content::Absent) => drop(self.leases.insert(name, (taken, None))),
            (Kind::Lease, Content::Object(Facts::Lease(lease))) => {
                self.leases.insert(name, (taken, Some(lease)));
            }
            (Kind::StatefulSet, Content::Absent) if name == SET => {
                self.sets.insert(request.namespace.clone(), None);
            }
            (Kind::StatefulSet, Content::Object(Facts::Set(set))) => {
                self.sets.insert(request.namespace.clone(), Some(set));
            }
            (Kind::Claim, Content::Absent) => drop(self.claims.insert(key(), None)),
            (Kind::Claim, Content::Object(Facts::Claim(claim))) => {
                self.claims.insert(key(), Some(claim));
            }
            (Kind::Volume, Content::Absent) => drop(self.volumes.insert(name, None)),
            (Kind::Volume, Content::Object(Facts::Volume(volume))) => {
                self.volumes.insert(name, Some(volume));
            }
            (_, Content::Object(Facts::Pod(facts, true))) => self.pod(facts),
            (kind, Content::Page { readable, whole }) => {
                for facts in readable {
                    match (kind, facts) {
                        (Kind::Pods, Facts::Pod(facts, true)) => self.pod(facts),
                        (Kind::NodesWith, Facts::Node(node)) => {
                            self.selected
                                .insert(node.facts.name.clone(), Arc::unwrap_or_clone(node));
                        }
                        _ => {}
                    }
                }
                if let Some(whole) = whole {
                    self.list(request, whole);
                }
            }
            _ => {}
        }
    }

    fn pod(&mut self, facts: Arc<PodFacts>) {
        let id = (facts.uid.clone(), facts.resource_version.clone());
        self.pods.insert(id, Arc::unwrap_or_clone(facts));
    }

    fn list(
        &mut self,
        request: &Request,
        Whole {
            readable,
            malformed,
        }: Whole<Facts>,
    ) {
        let nodes = readable.iter().filter_map(|facts| match facts {
            Facts::Node(node) => Some(node.facts.clone()),
            _ => None,
        });
        match request.kind {
            Kind::NodeRows => self.rows = nodes.map(|node| node.ready == Ready::True).collect(),
            Kind::Nodes if !malformed => self.census = Some(nodes.collect()),
            Kind::ServerLeases if !malformed => {
                let leases = readable.into_iter().filter_map(|facts| match facts {
                    Facts::Lease(lease) => Some(lease),
                    _ => None,
                });
                self.servers = Some(leases.collect());
            }
            Kind::Pods if let Some(node) = request.of_node() => {
                let terminating = readable
                    .iter()
                    .any(|facts| matches!(facts, Facts::Pod(_, true)));
                self.terminating
                    .insert(node.to_owned(), terminating || malformed);
            }
            Kind::Namespaces => {
                let pairs = readable.into_iter().filter_map(|facts| match facts {
                    Facts::Namespace(name, opted_out) => Some((name, opted_out)),
                    _ => None,
                });
                self.namespaces = pairs.collect();
                self.namespace_lists += 1;
            }
            Kind::PodsIn if !malformed => {
                let users = readable.iter().filter_map(|facts| match facts {
                    Facts::Pod(pod, _) => Some((pod.uid.clone(), claims_of(pod))),
                    _ => None,
                });
                self.users
                    .insert(request.namespace.clone(), users.collect());
            }
            Kind::PodUids if !malformed => {
                let uids = readable.iter().filter_map(|facts| match facts {
                    Facts::Pod(pod, _) => Some(pod.uid.clone()),
                    _ => None,
                });
                let node = request.of_node().unwrap_or_default().to_owned();
                self.uids.insert(node, (Instant::now(), uids.collect()));
            }
            _ => {}
        }
    }
}
