//! The cluster behind the server, with a record of everything that the program has received. Every write is checked against what
//! the program could know.

use super::{
    TO_FINISH,
    invariants::{FRESH, Rules},
};
use crate::{
    prelude::*,
    world::{
        Facts, Key,
        claim::{Claim, SET, Set},
        node::{Lease, Node, Other},
        pod, unread,
    },
};
use pod_reaper::facts::{self, Heard, NamespaceFacts, ResourceVersion};
use pod_reaper_test_support::simulated::{Cluster, Content, Delivery, Whole};
use tokio::sync::oneshot;

pub struct Watched {
    pub world: World,
    /// The pods in the server's cache.
    cache: Cache,
    pub received: Received,
    pub rules: Rules,
    pub trouble: Trouble,
    /// The number of requests, in a thousand, before which the cluster changes.
    pub changes: usize,
    pub writes: Vec<Write>,
    /// The pods that have had Warnings.
    pub warned: BTreeSet<String>,
    /// Whether the program has requested a set.
    pub has_read_a_set: bool,
    pub violations: Vec<String>,
    /// If set, ends the run a millisecond after its first write.
    pub ends_by: Option<oneshot::Sender<Instant>>,
    /// The reads whose last response did not match the cluster: the kind of object, and which objects.
    unread: BTreeSet<Read>,
    /// The numbers of requests whose response has an object that does not parse.
    malformed: BTreeSet<usize>,
    dice: Dice,
}

/// Identifies a read that is one request, or all requests for the pages of a list: the kind, the namespace, the name or the node,
/// and which of several.
type Read = (Kind, String, String, String);

fn read(request: &Request) -> Read {
    let node = request.of_node().unwrap_or_default();
    let name = format!("{}{node}", request.name);
    let which = match request.kind {
        // The program reads these objects more than once: for the pods, for the clock and before a write. Each read may fail.
        Kind::Node | Kind::Lease | Kind::Namespaces => request.number.to_string(),
        kind => {
            // The Leases of a name are selected by a field.
            let by_field = kind == Kind::LeasesNamed;
            let selects = |word: &&str| {
                word.starts_with("labelSelector=") || by_field && word.starts_with("fieldSelector=")
            };
            let query = request.query.as_deref().unwrap_or_default().split('&');
            query.filter(selects).collect()
        }
    };
    (request.kind, request.namespace.clone(), name, which)
}

/// A cache that may be behind the cluster.
pub struct Cache {
    pub pods: BTreeMap<Key, Pod>,
    /// How often the cache takes over the state of the cluster, in a thousand requests.
    pub keeps_up: usize,
    /// The number of lists that did not match the cluster.
    pub stale_lists: Cell<usize>,
}

/// A write that was sent.
#[derive(Debug)]
pub struct Write {
    pub request: usize,
    pub kind: Kind,
    pub uid: String,
    /// The time at which the write changed the pod.
    pub took_effect: Option<Instant>,
    /// The status that reached the program.
    pub answered: Option<u16>,
    pub denied: bool,
}

/// The field selector of the Leases that are not those of kubelets.
const OTHER_LEASES: &str = "metadata.namespace!=kube-node-lease";
/// How old the list of these Leases may be when a node is read again before a write.
const LEASES_FRESH: Duration = Duration::from_mins(1);

/// The field selector of a list of one object.
const OF_NAME: &str = "metadata.name=";

/// The complete responses that reached the program.
#[derive(Debug, Default)]
pub struct Received {
    /// The name of each node, and whether its row shows Ready.
    pub rows: Vec<(String, bool)>,
    /// All nodes.
    pub node_counts: Option<Vec<NodeFacts>>,
    /// The Leases that are not kubelets', from the first complete list of rows. The list is empty if listing them was forbidden.
    pub rows_of_leases: Option<Vec<Other>>,
    pub leases_forbidden: bool,
    /// The readings of each other Lease; empty if the Lease did not exist.
    pub others: BTreeMap<Key, Vec<Other>>,
    /// When the first page of the list of other Leases that is under way was requested, and that of the last complete one.
    pub leases_asked: Option<Instant>,
    pub leases_listed: Option<Instant>,
    /// The pods that were seen on any node, and the heartbeats that the pods of each node contain.
    pub seen: BTreeMap<Uid, PodFacts>,
    pub words: BTreeMap<String, Vec<Heard>>,
    /// Node and attachment, from the last complete list.
    pub attachments: Vec<(String, Attachment)>,
    pub drivers: Option<BTreeMap<String, Option<bool>>>,
    /// The set of each namespace, and when it was read.
    pub sets: BTreeMap<String, (Instant, Option<Set>)>,
    /// Whether a real node was seen on which a pod could start.
    pub real_ready: bool,
    /// The first UID of each node, which is the UID of the judged node.
    pub judged: BTreeMap<String, Uid>,
    /// The last read of each node.
    pub looks: BTreeMap<String, Look>,
    pub leases: BTreeMap<String, (Instant, Option<Lease>)>,
    /// The namespaces of the last complete list, and the number of complete lists.
    pub namespaces: BTreeMap<String, NamespaceFacts>,
    pub namespace_lists: usize,
    /// The time at which each namespace was read.
    pub read_namespaces: BTreeMap<String, Instant>,
    /// The names in the last list of all namespaces.
    pub listed: BTreeSet<String>,
    /// The time of the last single read of a namespace, and the facts that were known about it before.
    pub namespaces_before: BTreeMap<String, (Instant, Option<NamespaceFacts>)>,
    /// The nodes that label selectors selected.
    pub selected: BTreeMap<String, Node>,
    /// Terminating pods by UID and version.
    pub pods: BTreeMap<(Uid, ResourceVersion), PodFacts>,
    pub claims: BTreeMap<Key, Option<Claim>>,
    pub volumes: BTreeMap<String, Option<VolumeFacts>>,
    /// The last complete list of the UIDs on each node, and when it was requested.
    pub uids: BTreeMap<String, (Instant, BTreeSet<Uid>)>,
}

/// A read of a node that reached the program.
#[derive(Debug, Clone)]
pub struct Look {
    /// The time of the request: the node may change before the response arrives.
    pub asked: Instant,
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
            has_read_a_set: false,
            violations: Vec::new(),
            ends_by: None,
            unread: BTreeSet::new(),
            malformed: BTreeSet::new(),
            dice,
        }
    }

    /// Whether a read failed that shows whether the pod may be deleted. These are the reads of the pod, its node, the Leases, its
    /// namespace and its volumes, of everything else that uses or wants the pod or its PVCs, and the reads on which the limits
    /// depend.
    pub fn is_unread(&self, pod: &PodFacts) -> bool {
        let own = pod.node.as_deref().unwrap_or_default();
        let living = |name: &str| {
            let node = self.world.nodes.get(name);
            node.is_some_and(|node| node.facts.ready == Ready::True)
        };
        let volumes = pod.claims.iter().filter_map(|claim| {
            let key = (pod.namespace.clone(), claim.name.clone());
            self.world.claims.get(&key)?.volume.as_deref()
        });
        let volumes = volumes.collect::<BTreeSet<_>>();
        let is_relevant = |(kind, namespace, name, _): &Read| match kind {
            Kind::Node | Kind::Lease => name == own || living(name),
            Kind::Pods => name == own,
            Kind::Pod => (namespace, name) == (&pod.namespace, &pod.name),
            Kind::Namespaces
            | Kind::Nodes
            | Kind::NodesWith
            | Kind::ServerLeases
            | Kind::LeaseRows
            | Kind::LeasesNamed
            | Kind::OtherLease
            | Kind::AttachmentRows
            | Kind::Drivers => true,
            Kind::StatefulSet => *namespace == pod.namespace,
            Kind::Claim => {
                let mut claims = pod.claims.iter();
                *namespace == pod.namespace && claims.any(|claim| claim.name == *name)
            }
            Kind::Volume => volumes.contains(name.as_str()),
            _ => false,
        };
        self.unread.iter().any(is_relevant)
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
            return pods.map(pod::pod_and_facts).collect();
        }
        let mut objects = self.world.objects(resource, None);
        if resource == Resource::Namespaces
            && let Some(name) = selector.strip_prefix(OF_NAME)
        {
            objects.retain(|(object, _)| object["metadata"]["name"] == name);
        }
        objects
    }

    fn cached(&self, _: Resource, selector: &str) -> Vec<(Value, Facts)> {
        let Cache {
            pods, stale_lists, ..
        } = &self.cache;
        let versions = |pods| selected(pods, selector).map(|pod| &pod.facts.resource_version);
        if !versions(pods).eq(versions(&self.world.pods)) {
            stale_lists.set(stale_lists.get() + 1);
        }
        selected(pods, selector).map(pod::pod_and_facts).collect()
    }

    fn object(&self, resource: Resource, namespace: &str, name: &str) -> Option<(Value, Facts)> {
        let objects = self.world.objects(resource, Some((namespace, name)));
        let is_it = |(object, _): &(Value, Facts)| object["metadata"]["name"] == name;
        objects.into_iter().find(is_it)
    }

    fn sent(&mut self, request: &Request) {
        self.unread.insert(read(request));
        match request.kind {
            Kind::Delete | Kind::Patch => {
                self.judge(request);
                if let Some(ends_by) = self.ends_by.take() {
                    let at = Instant::now() + Duration::from_millis(1);
                    let rules = &mut self.rules;
                    rules.last_start = rules.last_start.min(at);
                    rules.end = rules.end.min(at + TO_FINISH);
                    // Nothing receives the time if the run has ended.
                    ends_by.send(at).ok();
                }
            }
            Kind::Event => self.judge_event(request),
            Kind::StatefulSet => self.has_read_a_set = true,
            Kind::Claim => self.judge_order(request),
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
        let object = pod::pod(&pod);
        // The program must rely on the response.
        if request.kind == Kind::Patch {
            pod.facts.fail();
        }
        pod.terminating = true;
        Ok((object, Facts::Pod(Arc::new(pod))))
    }

    fn answered(&mut self, request: &Request, status: u16, fault: Option<Fault>) {
        // The error page of a proxy does not show that the permission is missing.
        if request.kind == Kind::LeaseRows && fault == Some(Fault::Status(403, false, false)) {
            self.received.rows_of_leases.get_or_insert_default();
            self.received.leases_forbidden = true;
        }
        if fault == Some(Fault::Malformed) {
            self.malformed.insert(request.number);
        }
        if let Some(write) = self.write_of(request) {
            write.answered = Some(status);
            write.denied = matches!(status, 403 | 422) || fault == Some(Fault::Webhook);
        }
    }

    fn delivered(&mut self, request: &Request, delivery: Delivery<Facts>) {
        let is_whole = match &delivery.content {
            Content::Page { whole, .. } => !whole.as_ref().is_some_and(|whole| whole.malformed),
            Content::Object(_) | Content::Absent => true,
        };
        // A node whose response has no time cannot be judged.
        let is_dated = delivery.dated || request.kind != Kind::Node;
        let is_read = is_whole && is_dated && !self.malformed.contains(&request.number);
        if is_read {
            self.unread.remove(&read(request));
        }
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
    node.ready == Ready::True && node.leaf.is_none() && node.open
}

impl Received {
    /// The heartbeats of a node from other Leases and from programs, as known at `now`. Each Lease that names the node must have
    /// been read, and all Leases must have been listed recently.
    pub fn elsewhere(&self, node: &Node, now: Timestamp) -> facts::Read<Vec<Heard>> {
        let name = &node.facts.name;
        let host = |name: &String| self.looks.get(name)?.node.facts.hostname.as_deref();
        let nodes = self
            .rows
            .iter()
            .map(|(name, _)| (name.as_str(), host(name)));
        let is_held = |lease: &Other| {
            let pods = self.seen.values().filter_map(pod::runs);
            lease.held_on(nodes.clone(), pods).contains(name.as_str())
        };
        let mut heard = self.words.get(name).cloned().unwrap_or_default();
        let rows = self.rows_of_leases.as_ref().ok_or_else(unread)?;
        for row in rows.iter().filter(|row| is_held(row)) {
            let key = (row.namespace.clone(), row.name.clone());
            self.others.get(&key).ok_or_else(unread)?;
        }
        let listed = self.leases_listed;
        let is_fresh = listed.is_some_and(|asked| asked.elapsed() <= LEASES_FRESH + FRESH);
        (is_fresh || self.leases_forbidden)
            .then_some(())
            .ok_or_else(unread)?;
        let named = self.others.values().flatten().filter(|it| is_held(it));
        heard.extend(named.filter_map(|lease| lease.heard(now)));
        Ok(heard)
    }

    fn note(&mut self, request: &Request, delivery: Delivery<Facts>) {
        let Delivery {
            asked,
            now,
            dated,
            content,
        } = delivery;
        let key = || (request.namespace.clone(), request.name.clone());
        let name = request.name.clone();
        let continues = request
            .query
            .as_deref()
            .is_some_and(|it| it.contains("continue="));
        let lists_leases = request.kind == Kind::LeaseRows
            || request.kind == Kind::LeasesNamed && request.selector == OTHER_LEASES;
        if lists_leases && !continues {
            self.leases_asked = Some(asked);
        }
        match (request.kind, content) {
            (Kind::Node, Content::Absent) => drop(self.looks.remove(&name)),
            // A read without the server's time is ignored, because the node cannot be judged without it.
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
                        asked,
                        date: now,
                        node,
                    },
                );
            }
            (Kind::Lease, Content::Absent) => {
                // An earlier heartbeat stays known after the Lease is gone.
                let before = self.leases.get(&name).and_then(|(_, lease)| lease.clone());
                self.leases.insert(name, (asked, before));
            }
            (Kind::Lease, Content::Object(Facts::Lease(lease))) => {
                self.leases.insert(name, (asked, Some(lease)));
            }
            (Kind::OtherLease, Content::Absent) => drop(self.others.entry(key()).or_default()),
            (Kind::OtherLease, Content::Object(Facts::Other(lease))) => self.other(*lease),
            (Kind::StatefulSet, Content::Absent) if name == SET => {
                self.sets.insert(request.namespace.clone(), (asked, None));
            }
            (Kind::StatefulSet, Content::Object(Facts::Set(set))) => {
                self.sets
                    .insert(request.namespace.clone(), (asked, Some(set)));
            }
            (Kind::Claim, Content::Absent) => drop(self.claims.insert(key(), None)),
            (Kind::Claim, Content::Object(Facts::Claim(claim))) => {
                self.claims.insert(key(), Some(claim));
            }
            (Kind::Volume, Content::Absent) => drop(self.volumes.insert(name, None)),
            (Kind::Volume, Content::Object(Facts::Volume(volume))) => {
                self.volumes.insert(name, Some(volume));
            }
            (_, Content::Object(Facts::Pod(pod))) => self.pod(&pod),
            (kind, Content::Page { readable, whole }) => {
                for facts in readable {
                    match (kind, facts) {
                        (Kind::Pods, Facts::Pod(pod)) => {
                            let facts = &pod.facts;
                            let node = facts.node.clone().unwrap_or_default();
                            self.seen.insert(facts.uid.clone(), facts.clone());
                            self.words.entry(node).or_default().extend(pod.heard());
                            self.pod(&pod);
                        }
                        (Kind::ServerLeases | Kind::LeasesNamed, Facts::Other(lease)) => {
                            self.other(*lease);
                        }
                        (Kind::NodesWith, Facts::Node(node)) => {
                            self.selected
                                .insert(node.facts.name.clone(), Arc::unwrap_or_clone(node));
                        }
                        _ => {}
                    }
                }
                if let Some(whole) = whole {
                    self.list(request, asked, whole);
                }
            }
            _ => {}
        }
    }

    fn pod(&mut self, pod: &Pod) {
        let id = (pod.facts.uid.clone(), pod.facts.resource_version.clone());
        if pod.terminating {
            self.pods.insert(id, pod.facts.clone());
        }
    }

    fn other(&mut self, lease: Other) {
        let key = (lease.namespace.clone(), lease.name.clone());
        self.others.entry(key).or_default().push(lease);
    }

    fn list(
        &mut self,
        request: &Request,
        asked: Instant,
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
            Kind::NodeRows => {
                self.rows = nodes
                    .map(|node| (node.name, node.ready == Ready::True))
                    .collect();
            }
            Kind::Nodes if !malformed => self.node_counts = Some(nodes.collect()),
            Kind::LeasesNamed if !malformed && request.selector == OTHER_LEASES => {
                self.leases_listed = self.leases_asked;
            }
            Kind::LeaseRows if !malformed => {
                self.leases_listed = self.leases_asked;
                let leases = readable.into_iter().filter_map(|facts| match facts {
                    Facts::Other(lease) => Some(*lease),
                    _ => None,
                });
                self.rows_of_leases.get_or_insert(leases.collect());
            }
            Kind::AttachmentRows if !malformed => {
                let attachments = readable.into_iter().filter_map(|facts| match facts {
                    Facts::Attachment(node, it) => Some((node, it)),
                    _ => None,
                });
                self.attachments = attachments.collect();
            }
            Kind::Drivers if !malformed => {
                let drivers = readable.into_iter().filter_map(|facts| match facts {
                    Facts::Driver(name, attaches) => Some((name, attaches)),
                    _ => None,
                });
                self.drivers = Some(drivers.collect());
            }
            // A malformed response about one namespace is no reading: what was read before stays.
            Kind::Namespaces if malformed && request.selector.starts_with(OF_NAME) => {}
            Kind::Namespaces => {
                let pairs = readable.into_iter().filter_map(|facts| match facts {
                    Facts::Namespace(name, facts) => Some((name, facts)),
                    _ => None,
                });
                let pairs = pairs.collect::<BTreeMap<_, _>>();
                let names = pairs.keys().map(|name| (name.clone(), asked));
                self.read_namespaces.extend(names);
                if let Some(name) = request.selector.strip_prefix(OF_NAME) {
                    let before = self.namespaces.remove(name);
                    let now = Instant::now();
                    let earlier = self.namespaces_before.entry(name.to_owned());
                    let earlier = earlier.or_insert((now, before.clone()));
                    if earlier.0 != now {
                        *earlier = (now, before);
                    }
                    self.namespaces.extend(pairs);
                } else {
                    self.listed = pairs.keys().cloned().collect();
                    self.namespaces = pairs;
                    self.namespace_lists += 1;
                }
            }
            Kind::PodUids if !malformed => {
                let uids = readable.iter().filter_map(|facts| match facts {
                    Facts::Pod(pod) => Some(pod.facts.uid.clone()),
                    _ => None,
                });
                let node = request.of_node().unwrap_or_default().to_owned();
                self.uids.insert(node, (asked, uids.collect()));
            }
            _ => {}
        }
    }
}
