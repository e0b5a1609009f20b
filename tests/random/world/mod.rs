//! A random cluster: its objects, the effects of writes, and random changes.
//!
//! It is kept as the facts that a complete read would return, so that the oracle can judge it directly.

pub mod json;
pub mod node;

use self::node::{Lease, Node, Other, Skip, Stamps, asks, made, satisfies};
use crate::prelude::*;
use pod_reaper::facts::{
    BoundClaim, Driver, Goes, Heard, Identity, LeafKind, NamespaceFacts, Owner, Read, Renewer,
    SignBy,
};
use pod_reaper_test_support::samples;
use rules::samples::term;
use serde_json::json;

/// Namespace and name.
pub type Key = (String, String);

/// What a client can read of an object.
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
    Nothing,
}

#[derive(Clone)]
pub struct World {
    start: Instant,
    versions: usize,
    pub nodes: BTreeMap<String, Node>,
    pub pods: BTreeMap<Key, Pod>,
    pub namespaces: BTreeMap<String, Namespace>,
    /// The leases that are not kubelets', each of another namespace or name.
    pub leases: Vec<Other>,
    pub claims: BTreeMap<Key, Claim>,
    pub volumes: BTreeMap<String, Volume>,
    /// Whether the `CSIDriver` of that name attaches volumes.
    pub drivers: BTreeMap<String, Option<bool>>,
    /// Node and attachment.
    pub attachments: Vec<(String, Attachment)>,
    /// How long the Job controller takes to remove its finalizer from a failed pod.
    pub job_controller: Option<Duration>,
    /// The `StatefulSet` of each namespace.
    pub sets: BTreeMap<String, Set>,
    /// UIDs of pods that are gone, and whether the program's delete removed them.
    pub gone: BTreeMap<Uid, By>,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Pod {
    /// Its facts, nothing asked about its claims. The deletion deadline is valid only if it is Terminating.
    pub facts: PodFacts,
    pub terminating: bool,
    pub skip: Skip,
    /// The hash that its Deployment has given its `ReplicaSet`.
    pub template: Option<&'static str>,
    /// Whether a volume names a claim that another volume of it makes.
    pub names_its_own: bool,
    /// Who has written to it, and when.
    pub word: Option<(&'static str, Timestamp)>,
    pub looks: Looks,
    pub changed: bool,
    /// Whether this program force-deleted it.
    forced_by_us: bool,
    released_at: Option<Instant>,
}

/// What a pod says of itself that no rule asks for.
#[derive(Debug, Clone, Copy)]
pub struct Looks {
    /// Until it has finished, and from then on.
    pub phase: &'static str,
    pub finished: &'static str,
    /// The status in its row, unless another comes first.
    pub shows: &'static str,
    pub reason: Option<&'static str>,
}

impl Pod {
    /// The word of a program that runs in it, where it is Terminating.
    pub fn heard(&self) -> Option<Heard> {
        let said = self
            .word
            .filter(|(manager, _)| self.terminating && *manager == "Patroni");
        said.map(|(_, at)| Heard {
            by: SignBy::Program,
            at,
            what: None,
        })
    }

    /// Whether it is neither a `DaemonSet`'s nor a mirror.
    pub fn occupies(&self) -> bool {
        let of_daemon = |its: &Identity| {
            its.api_version == "apps/v1" && self.facts.made_by("DaemonSet", "apps")
        };
        !self.facts.mirror && !self.facts.controller.as_ref().is_some_and(of_daemon)
    }

    pub fn user(&self) -> User {
        User {
            uid: self.facts.uid.clone(),
            name: self.facts.name.clone(),
            claims: claims_of(&self.facts),
            keeps: !self.terminating && !self.facts.finished && self.facts.node.is_some(),
        }
    }
}

/// Which claims a pod uses.
#[derive(Debug, Clone)]
pub struct User {
    uid: Uid,
    name: String,
    claims: Vec<String>,
    /// Whether a claim of it that is being deleted stays as long as it does.
    keeps: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Namespace {
    pub skip: Skip,
    /// Whether its deletion was asked for.
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

/// A volume as facts, of its driver only the name.
#[derive(Debug, Clone)]
pub struct Volume {
    pub facts: VolumeFacts,
    /// Its CSI driver; nothing where it has none.
    pub csi: &'static str,
    /// Its access modes, its mode and the type of its file system.
    pub modes: [&'static str; 3],
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub uid: String,
    /// UIDs of its owners.
    pub owners: Vec<Uid>,
    pub many_writers: bool,
    pub block: bool,
    pub volume: Option<String>,
    pub phase: &'static str,
    pub version: String,
    /// The value of the annotation that declares it scratch.
    pub scratch: Option<&'static str>,
    pub give_up: Option<String>,
    pub created: Option<Timestamp>,
    pub skip: Skip,
    pub terminating: bool,
}

impl Claim {
    /// The version in which it may be deleted.
    fn free(&self) -> Option<String> {
        let opted_out = self.skip.opted_out().is_some();
        (!opted_out).then(|| self.version.clone())
    }
}

#[derive(Debug, Clone)]
pub struct Set {
    /// Its claim templates.
    pub templates: Vec<String>,
    /// How many pods it wants; nothing is all.
    pub replicas: Option<u64>,
    /// The ordinal of the first.
    pub start: u64,
}

impl Set {
    fn wants(&self, pod: &str) -> bool {
        let ordinal = pod
            .rsplit_once('-')
            .and_then(|(_, ordinal)| ordinal.parse::<u64>().ok());
        ordinal.is_some_and(|ordinal| {
            let end = self
                .replicas
                .map_or(u64::MAX, |replicas| self.start + replicas);
            (self.start..end).contains(&ordinal)
        })
    }
}

/// What nodes that are down have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Many {
    Any,
    Zone,
    Parked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Us,
    Others,
}

const NAMESPACES: [&str; 2] = ["bank", "shop"];
/// Statuses in the rows of pods. The last two are none of today's, and one that such a row has for another reason.
const SHOWN: [&str; 7] = [
    "Running",
    "Completed",
    "Error",
    "Init:0/1",
    "CrashLoopBackOff",
    "Unheard",
    "Terminating",
];
/// An hour and more is long past every threshold.
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
            let templates = ["data0", "data1"]
                .into_iter()
                .filter(|_| dice.permille(900));
            let templates = templates.map(str::to_owned).collect();
            let replicas = dice.weigh(&[(24, None), (1, Some(0)), (2, Some(130)), (1, Some(999))]);
            if dice.permille(950) {
                world.sets.insert(
                    namespace.to_owned(),
                    Set {
                        templates,
                        replicas,
                        start: dice.weigh(&[(24, 0), (1, 1), (1, 999)]),
                    },
                );
            }
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
        // Sometimes a zone fails beside others, or most of what is down was put away.
        let mut parked = BTreeSet::new();
        let many = dice.weigh(&[(20, Many::Any), (1, Many::Zone), (1, Many::Parked)]);
        let (dead, ready) = match many {
            Many::Any => (dead, ready),
            Many::Zone => (dice.pick(&[3, 3, 4]), dice.pick(&[4, 6])),
            Many::Parked => (dice.pick(&[4, 5]), dice.pick(&[2, 3])),
        };
        for number in 0..(dead + ready).max(1) {
            let is_dead = number < dead;
            let mut node = world.random_node(dice, number, is_dead);
            if many == Many::Zone && dice.permille(950) {
                node.label(
                    "topology.kubernetes.io/zone",
                    if is_dead { "a" } else { "b" },
                );
                node.labels.remove("topology.kubernetes.io/region");
                node.facts.zone = node.zone();
            }
            if many == Many::Parked && is_dead && number > 0 {
                let age = 86_400 + dice.weigh(&[(20, 900), (1, 0), (1, 1)]);
                let since = Some(start() - SignedDuration::from_secs(age));
                (node.facts.ready_since, node.facts.tainted_since) = (since, None);
                if node.facts.ready == Ready::Absent {
                    // Without the condition there is no such time.
                    node.facts.ready_since = None;
                }
                parked.insert(node.facts.name.clone());
            }
            world.nodes.insert(node.facts.name.clone(), node);
        }
        for name in world.nodes.keys().cloned().collect::<Vec<_>>() {
            // Sometimes more pods than requests at the same time, so that pods have to wait.
            let many = dice.weigh(&[(30, 6), (1, 24)]);
            let most = if world.nodes[&name].facts.ready == Ready::True {
                2
            } else {
                many
            };
            let is_parked = parked.contains(&name);
            for _ in 0..dice.below(if is_parked { 2 } else { most }) {
                let key = world.add_pod(dice, Some(name.clone()));
                if let Some(pod) = world.pods.get_mut(&key)
                    && is_parked
                    && dice.permille(900)
                {
                    pod.facts.owner = Some(Owner {
                        kind: "DaemonSet".to_owned(),
                        name: "owner".to_owned(),
                    });
                    pod.facts.workload.clone_from(&pod.facts.owner);
                    pod.facts.controller = Some(Identity {
                        api_version: "apps/v1".to_owned(),
                        uid: "uid-of-owner".into(),
                    });
                    (pod.template, pod.facts.indexed) = (None, false);
                }
            }
        }
        world.add_users(dice);
        world.add_leases(dice);
        if dice.permille(30) {
            // By the word of every living node, the server's clock is wrong, or just not.
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

    /// Adds pods that use the claims that are being deleted, some of which wait for a node.
    fn add_users(&mut self, dice: &mut Dice) {
        let claims = self.claims.iter().filter(|(_, claim)| claim.terminating);
        let keys = claims.map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let nodes = self.nodes.keys().cloned().collect::<Vec<_>>();
        for (namespace, claim) in keys {
            if !dice.permille(900) {
                continue;
            }
            let node = dice
                .permille(600)
                .then(|| nodes[dice.below(nodes.len())].clone());
            let user = self.add_pod(dice, node);
            if let Some(pod) = self.pods.get_mut(&user)
                && user.0 == namespace
            {
                (pod.facts.claims, pod.names_its_own) =
                    (vec![ClaimFacts::not_looked_up(claim, false)], false);
                pod.terminating = dice.permille(150);
            }
        }
    }

    /// The server's clock.
    pub fn now(&self) -> Timestamp {
        start() + SignedDuration::try_from(self.start.elapsed()).unwrap()
    }

    /// The server's clock as its answers show it: in whole seconds.
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

    fn random_node(&mut self, dice: &mut Dice, number: usize, dead: bool) -> Node {
        let leaf = dice.permille(90);
        let prefix = dice.weigh(&[(20, "n"), (1, "kosmos-"), (1, "fargate-")]);
        let by_name = leaf && prefix == "kosmos-";
        let ready = if dead {
            dice.weigh(&[(12, Ready::Unknown), (4, Ready::False), (1, Ready::Absent)])
        } else {
            Ready::True
        };
        // What still reports although it is not Ready: nobody, its kubelet, or something else.
        let life = if dead {
            dice.weigh(&[(16, 0), (2, 1), (2, 2), (3, 3)])
        } else {
            1
        };
        let ready = if dead && life == 1 {
            Ready::False
        } else {
            ready
        };
        let cordoned = dice.permille(if dead { 200 } else { 60 });
        let since = |dice: &mut Dice| {
            // Before what reports now.
            let age = if matches!(life, 1 | 2) {
                LONG + dice.pick(&[0, 1, -3_000])
            } else {
                age(dice)
            };
            // One of the near future would count only after a moment, with which the verdict changes by itself.
            let age = if age == -1 { 0 } else { age };
            // Put away for just a day.
            let age = if cordoned && dice.permille(400) {
                86_400 + dice.pick(&[-30, 0, 1, 900])
            } else {
                age
            };
            start() - SignedDuration::from_secs(age)
        };
        let own_lease = dice.permille(850).then(|| match life {
            1 => (4, true),
            // Sometimes about a minute before deletions were asked for.
            _ => (age(dice) + dice.pick(&[0, 0, 0, 90, 91, 92, 400]), false),
        });
        let own_lease = own_lease.map(|(renewed, goes_on)| lease(dice, renewed, goes_on));
        let control_plane = dice.permille(250);
        let reserved = dice.permille(if control_plane { 700 } else { 30 });
        let skip = Skip::random(dice);
        let mut node = Node {
            facts: NodeFacts {
                name: format!("{prefix}{number}"),
                uid: self.uid().into(),
                created: created(dice),
                powered_off: None,
                ready,
                ready_reason: Some("NodeStatusUnknown".to_owned()),
                ready_since: dice.permille(970).then(|| since(dice)),
                tainted_since: dice.permille(700).then(|| since(dice)),
                // Sometimes that of another.
                hostname: dice
                    .permille(800)
                    .then(|| format!("h{}", number - number.min(dice.weigh(&[(30, 0), (1, 1)])))),
                zone: None,
                heard: Vec::new(),
                renewed: None,
                unread_lease: None,
                named_by: Ok(BTreeSet::new()),
                fenced: Vec::new(),
                out_of_service: false,
                leaf: None,
                control_plane,
                open: !cordoned && !reserved,
                opted_out: skip.opted_out(),
            },
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            version: "v1.35.4",
            machine: !by_name,
            provider: dice.pick(&[None, Some("aws:///eu-1a/i-0"), Some("gce://p/z/n")]),
            cordoned,
            reserved,
            doubtful: dice.permille(60),
            skip,
            beats: Vec::new(),
            lease: own_lease,
            fences: Vec::new(),
            changed: false,
        };
        node.label("disk", dice.pick(&["", "ssd", "hdd"]));
        node.label("example.org/gen", dice.pick(&["", "3", "4", "five"]));
        node.label(
            "topology.kubernetes.io/zone",
            dice.pick(&["a", "a", "b", ""]),
        );
        node.label("topology.kubernetes.io/region", dice.pick(&["r", "", ""]));
        node.facts.zone = node.zone();
        let hostname = node.facts.hostname.clone();
        node.label("kubernetes.io/hostname", &hostname.unwrap_or_default());
        let topology = if dice.permille(700) {
            node.facts.name.clone()
        } else {
            String::new()
        };
        node.label("topology.topolvm.io/node", &topology);
        if node.facts.ready == Ready::Absent {
            (node.facts.ready_reason, node.facts.ready_since) = (None, None);
        }
        if leaf {
            node.mark_as_leaf(dice, by_name);
        }
        if dice.permille(150) {
            let set = dice.pick(&[None, Some(LONG), Some(LONG + 2), Some(20), Some(2 * LONG)]);
            node.fence(
                dice,
                set.map(|age| start() - SignedDuration::from_secs(age)),
            );
        } else if dice.permille(50) {
            node.fence_unsurely(dice);
        }
        for _ in 0..dice.weigh(&[(4, 0), (3, 1), (1, 3)]) {
            node.mark_as_nothing(dice);
        }
        if dice.permille(100) || life == 3 {
            let age = dice.pick(&[0, 60, 300, 660, 660, LONG, -LONG]) + dice.pick(&[-1, 0, 1]);
            node.show_past_life(dice, start() - SignedDuration::from_secs(age));
        }
        if life == 2 {
            let age = i64::try_from(dice.below(50)).unwrap();
            node.show_life(dice, start() - SignedDuration::from_secs(age));
        }
        let at = node.at(start(), Ok(Vec::new())).facts;
        node.facts.powered_off = answer(dice, &moments(&at));
        if dice.permille(300) {
            let attachment = Attachment {
                name: format!("csi-{number}"),
                volume: dice.permille(800).then(|| "volume".to_owned()),
            };
            self.attachments.push((node.facts.name.clone(), attachment));
        }
        node
    }

    fn add_pod(&mut self, dice: &mut Dice, node: Option<String>) -> Key {
        let namespace = dice.pick(&NAMESPACES).to_owned();
        let mut name = format!("pod-{}", self.version());
        // Sometimes another namespace has a pod of the same name, so that a name alone identifies nothing.
        let free = |name: &str| {
            !self
                .pods
                .contains_key(&(namespace.clone(), name.to_owned()))
        };
        if dice.permille(200)
            && let Some((_, namesake)) = self.pods.keys().find(|(_, name)| free(name))
        {
            name.clone_from(namesake);
        }
        let (uid, resource_version) = (self.uid(), self.version());
        let finalizers: &[&str] = dice.weigh(&[
            (12, &[][..]),
            (3, &[JOB_TRACKING]),
            (1, &["x/hold"]),
            (1, &[JOB_TRACKING, "x/hold"]),
        ]);
        let (owner, workload, template, controller) = random_owner(dice);
        let of_set = owner.as_ref().is_some_and(|owner| owner.name == SET);
        let of_operator = owner.as_ref().is_some_and(|owner| owner.kind == "Cluster");
        let grace_seconds =
            dice.weigh(&[(3, None), (3, Some(0)), (6, Some(30)), (3, Some(604_800))]);
        let grace = SignedDuration::from_secs(grace_seconds.unwrap_or(0));
        // Of a long one, the deletion was asked for so long ago.
        let asked = start()
            - SignedDuration::from_secs(age(dice))
            - grace.min(SignedDuration::from_secs(30));
        let deletion_deadline = asked + grace;
        let created = created(dice);
        let on = node.as_ref().and_then(|node| self.nodes.get(node));
        let on = on.map(|node| moments(&node.at(start(), Ok(Vec::new())).facts));
        let mut answerable = on.unwrap_or_default();
        answerable.extend([created, Some(asked)]);
        let reap = answer(dice, &answerable);
        let mut claims = Vec::new();
        for number in 0..dice.weigh(&[(5, 0), (3, 1), (1, 2)]) {
            let (mut claim, mut ephemeral) = (format!("{name}-data{number}"), dice.permille(300));
            if of_set {
                (claim, ephemeral) = (format!("data{number}-{name}"), false);
            }
            let owner = if ephemeral {
                dice.weigh(&[
                    (6, Some(uid.as_str())),
                    (1, Some("uid-of-another")),
                    (1, None),
                ])
            } else {
                dice.weigh(&[(8, None), (1, Some(uid.as_str()))])
            };
            let on_disk = of_set || of_operator && dice.permille(700);
            self.add_claim(dice, &namespace, &claim, node.as_deref(), owner, on_disk);
            if let Some(claim) = self.claims.get_mut(&(namespace.clone(), claim.clone())) {
                let moments = [&answerable[..], &[claim.created]].concat();
                claim.give_up = answer(dice, &moments);
            }
            // Sometimes the claim of another pod.
            let others = self
                .pods
                .values()
                .filter(|pod| of_set && pod.facts.namespace == namespace);
            let others =
                others.flat_map(|pod| pod.facts.claims.iter().filter(|claim| !claim.ephemeral));
            if dice.permille(40)
                && let Some(shared) = others.map(|claim| claim.name.clone()).next()
                && number == 0
            {
                claim = shared;
            }
            claims.push(ClaimFacts::not_looked_up(claim, ephemeral));
        }
        let names_its_own = dice.permille(30) && !of_set;
        for claim in claims.iter_mut().filter(|_| names_its_own) {
            claim.ephemeral = false;
        }
        let skip = Skip::random(dice);
        let own_disk = dice.weigh(&[(60, None), (1, Some("fc")), (1, Some("flexVolume"))]);
        let facts = PodFacts {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.into(),
            resource_version: resource_version.into(),
            created,
            node,
            owner,
            workload,
            controller,
            siblings: None,
            supposed: false,
            deletion_deadline,
            grace_seconds,
            finalizers: finalizers
                .iter()
                .map(|finalizer| (*finalizer).to_owned())
                .collect(),
            finished: dice.permille(120),
            mirror: dice.permille(20),
            opted_out: skip.opted_out(),
            in_namespace: Ok(NamespaceFacts::default()),
            after_reap: dice.permille(50).then(|| "unseal it".to_owned()),
            reap,
            templates: None,
            claims,
            own_disk: own_disk.map(str::to_owned),
            // By a controller before 1.28, no pod is.
            indexed: of_set && dice.permille(930),
        };
        let terminating = dice.permille(850);
        let pod = Pod {
            facts,
            terminating,
            skip,
            template,
            names_its_own,
            word: dice.permille(120).then(|| {
                let managers = [
                    (8, "Patroni"),
                    (1, "patroni"),
                    (1, "Patroni-2"),
                    (1, "kubelet"),
                ];
                let age = age(dice);
                (
                    dice.weigh(&managers),
                    start() - SignedDuration::from_secs(age),
                )
            }),
            looks: Looks {
                phase: dice.weigh(&[(6, "Running"), (1, "Pending"), (1, "Unknown")]),
                finished: dice.pick(&["Failed", "Succeeded"]),
                shows: dice.pick(&SHOWN),
                reason: dice.pick(&[None, None, None, Some("NodeLost"), Some("Evicted")]),
            },
            changed: false,
            forced_by_us: false,
            released_at: None,
        };
        let key = (namespace, name);
        self.pods.insert(key.clone(), pod);
        key
    }

    fn add_claim(
        &mut self,
        dice: &mut Dice,
        namespace: &str,
        name: &str,
        node: Option<&str>,
        owner: Option<&str>,
        on_disk: bool,
    ) {
        let volume = format!("pv-{}", self.version());
        let own = node
            .and_then(|node| self.nodes.get(node))
            .map(|node| node.facts.clone());
        let own_name = own.as_ref().map_or("n0", |node| node.name.as_str());
        let own_host = own
            .as_ref()
            .and_then(|node| node.hostname.as_deref())
            .unwrap_or("h0");
        let (mut storage, mut affinity) = random_storage(dice, own_name, own_host);
        if on_disk && dice.permille(800) {
            let path = "/var/scratch".to_owned();
            (storage, affinity) = (
                Storage::HostPath(path),
                on("kubernetes.io/hostname In HOST", own_name, own_host),
            );
        }
        let shared = !on_disk || dice.permille(100);
        let exists = dice.permille(950);
        let (bound, phase) = match dice.weigh(&[(20, 0), (1, 1), (1, 2)]) {
            1 => (None, "Pending"),
            2 => (Some(volume.clone()), "Lost"),
            _ => (Some(volume.clone()), "Bound"),
        };
        if dice.permille(950) {
            let is_path = matches!(storage, Storage::Local(_) | Storage::HostPath(_));
            let is_strict = storage == Storage::StrictLocal;
            let mut disk = dice.weigh(&[
                (60, None),
                (1, Some("iscsi")),
                (1, Some("fc")),
                (1, Some("flexVolume")),
            ]);
            disk = disk.filter(|_| !is_path && !is_strict);
            let csi = dice.pick(&DRIVERS[usize::from(!is_strict && !affinity.is_empty())..]);
            let csi = if is_strict { DRIVERS[0] } else { csi };
            let csi = if is_path || disk.is_some() { "" } else { csi };
            let modes = MODES
                .trim()
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>());
            let modes = dice.pick(
                &modes
                    .map(|words| [words[0], words[1], words[2], words[3]])
                    .collect::<Vec<_>>(),
            );
            let may_be_written = modes[0] == "disk" && !csi.is_empty();
            let driver = may_be_written.then(|| Driver {
                name: csi.to_owned(),
                attaches: Err(unread()),
            });
            let facts = VolumeFacts {
                name: volume.clone(),
                reclaim_policy: Some("Delete".to_owned()),
                storage,
                disk,
                driver,
                affinity,
            };
            if dice.permille(500) {
                let on = if dice.permille(900) {
                    own_name
                } else {
                    "another"
                };
                let attachment = Attachment {
                    name: format!("of-{volume}"),
                    volume: Some(volume.clone()),
                };
                self.attachments.push((on.to_owned(), attachment));
            }
            let fs = if modes[3] == "-" { "" } else { modes[3] };
            let modes = [modes[1], modes[2], fs];
            self.volumes.insert(volume, Volume { facts, csi, modes });
        }
        if exists {
            let claim = Claim {
                uid: self.uid(),
                owners: owner.map(Uid::from).into_iter().collect(),
                version: self.version(),
                scratch: dice.weigh(&[
                    (if on_disk { 16 } else { 1 }, Some("true")),
                    (1, Some("false")),
                    (2, None),
                ]),
                give_up: None,
                created: created(dice),
                skip: Skip::random(dice),
                terminating: dice.permille(140),
                many_writers: shared && dice.permille(250),
                block: dice.permille(300),
                volume: bound,
                phase,
            };
            self.claims
                .insert((namespace.to_owned(), name.to_owned()), claim);
        }
    }

    /// The facts that a complete read at `now` would return.
    pub fn facts(&self, now: Timestamp) -> Gathered {
        let pods = self.pods.values().filter(|pod| pod.terminating).map(|pod| {
            let mut facts = pod.facts.clone();
            let namespace = self.namespaces.get(&facts.namespace);
            facts.in_namespace = namespace.map(|it| it.facts()).ok_or_else(unread);
            let users = self
                .pods
                .values()
                .filter(|user| user.facts.namespace == facts.namespace);
            let users = users.map(Pod::user).collect::<Vec<_>>();
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
            facts.claims = self.known_claims(&facts, Some(&users), &set, claim, volume);
            let others = self
                .pods
                .values()
                .map(|other| &other.facts)
                .filter(|other| {
                    other.uid != facts.uid
                        && (&other.namespace, &other.node) == (&facts.namespace, &facts.node)
                });
            let others = others.filter(|other| !other.finished).collect::<Vec<_>>();
            for claim in &mut facts.claims {
                let users = others
                    .iter()
                    .filter(|other| claims_of(other).contains(&claim.name));
                claim.users = users.map(|other| other.name.clone()).collect();
            }
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
            Resource::Nodes => nodes.map(|node| json::node_and_facts(node, now)).collect(),
            Resource::Leases => {
                let of_nodes =
                    of.is_none_or(|(namespace, _)| ["", "kube-node-lease"].contains(&namespace));
                let own = nodes
                    .filter(|_| of_nodes)
                    .filter_map(|node| json::lease_and_facts(node, now));
                let is = |other: &&Other| {
                    of.is_none_or(|of| of == (other.namespace.as_str(), other.name.as_str()))
                };
                let others = self
                    .leases
                    .iter()
                    .filter(is)
                    .map(|other| json::other_and_facts(other, now));
                own.chain(others).collect()
            }
            Resource::Pods => {
                let pods = self.pods.iter().filter(|(key, _)| is(key));
                pods.map(|(_, pod)| json::pod_and_facts(pod)).collect()
            }
            Resource::Claims => {
                let claims = self.claims.iter().filter(|(key, _)| is(key));
                let facts = |(key, claim): (_, &Claim)| {
                    (json::claim(key, claim), Facts::Claim(claim.clone()))
                };
                claims.map(facts).collect()
            }
            Resource::Volumes => {
                let volumes = self
                    .volumes
                    .values()
                    .filter(|volume| named(&volume.facts.name));
                let facts =
                    |volume: &Volume| (json::volume(volume), Facts::Volume(volume.facts.clone()));
                volumes.map(facts).collect()
            }
            Resource::StatefulSets => {
                let sets = self
                    .sets
                    .iter()
                    .filter(|(namespace, _)| of.is_none_or(|of| of == (namespace.as_str(), SET)));
                let facts = |(namespace, set): (&String, &Set)| {
                    (json::set(namespace, set), Facts::Set(set.clone()))
                };
                sets.map(facts).collect()
            }
            Resource::Namespaces => {
                let facts = |(name, it): (&String, &Namespace)| {
                    let facts = Facts::Namespace(name.clone(), it.facts());
                    (json::namespace(name, *it), facts)
                };
                self.namespaces.iter().map(facts).collect()
            }
            Resource::Attachments => {
                let facts = |(node, it): &(String, Attachment)| {
                    (
                        json::attachment(node, it),
                        Facts::Attachment(node.clone(), it.clone()),
                    )
                };
                self.attachments.iter().map(facts).collect()
            }
            Resource::Drivers => {
                let facts = |(name, it): (&String, &Option<bool>)| {
                    (json::driver(name, *it), Facts::Driver(name.clone(), *it))
                };
                self.drivers.iter().map(facts).collect()
            }
            Resource::Events | Resource::ReplicaSets | Resource::Jobs => Vec::new(),
        }
    }

    /// All of them, and one more of each kind of which a file without any would prove nothing.
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
        let more = [
            json!({"kind": "Pod", "metadata": {"namespace": "another", "name": "another"}}),
            samples::lease("another"),
            samples::claim("another", "another", "another"),
            samples::volume("another", &json!({})),
            samples::set("another", "another", &[]),
            json::driver("another", None),
        ];
        objects.map(|(object, _)| object).chain(more).collect()
    }

    /// Namespace and name of the pods on a node.
    fn on(&self, node: &Node) -> impl Iterator<Item = (&str, &str)> {
        let pods = self
            .pods
            .values()
            .filter(|pod| pod.facts.node.as_ref() == Some(&node.facts.name));
        pods.map(|pod| (pod.facts.namespace.as_str(), pod.facts.name.as_str()))
    }

    /// The nodes that the holder of a lease names, or on which a pod is that it names.
    pub fn named_by(&self, lease: &Other) -> impl Iterator<Item = &Node> {
        self.nodes
            .values()
            .filter(|node| lease.is_held_by(node, self.on(node)))
    }

    /// What is heard at `now` of a node, in other leases and in its pods.
    pub fn elsewhere(&self, node: &Node, now: Timestamp) -> Vec<Heard> {
        let leases = self
            .leases
            .iter()
            .filter(|lease| lease.is_held_by(node, self.on(node)));
        let pods = self
            .pods
            .values()
            .filter(|pod| pod.facts.node.as_ref() == Some(&node.facts.name));
        leases
            .filter_map(|lease| lease.heard(now))
            .chain(pods.filter_map(Pod::heard))
            .collect()
    }

    /// Whether something on the node goes on to report.
    pub fn lives(&self, node: &Node) -> bool {
        let mut others = self.leases.iter().filter(|other| other.lease.goes_on);
        node.lives() || others.any(|other| other.is_held_by(node, self.on(node)))
    }

    /// Whether the living nodes contradict the server's clock; nothing where that depends on which of them are asked.
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
            // An operator says so by an option, which this run may not have.
            return None;
        }
        let real = ready.filter(|node| kind(node).is_none());
        let said = real.filter_map(|node| node.lease.as_ref()?.at(now).said());
        let fresh = |said: Timestamp| now.duration_since(said) < SignedDuration::from_mins(5);
        let all = said.map(fresh).collect::<Vec<_>>();
        let (any, every) = (all.contains(&true), !all.contains(&false));
        (every || !any || all.len() <= 3).then_some(!any && !every)
    }

    /// Whether the node has a pod that makes it count for the breaker, as long as it is not Ready.
    pub fn occupied(&self, node: &str) -> bool {
        let mut pods = self
            .pods
            .values()
            .filter(|pod| pod.facts.node.as_deref() == Some(node));
        pods.any(Pod::occupies)
    }

    /// Adds the leases of API servers, and those that leaders hold, some of them on nodes that are down.
    fn add_leases(&mut self, dice: &mut Dice) {
        for (number, node) in self.nodes.values().enumerate() {
            let NodeFacts {
                name,
                hostname,
                control_plane,
                ready,
                ..
            } = &node.facts;
            let host = hostname.clone().unwrap_or_else(|| name.clone());
            let holders = if *control_plane && dice.permille(700) {
                "SERVER"
            } else {
                "-"
            };
            let elects = *ready != Ready::True && dice.permille(400);
            let elected = elects.then(|| dice.pick(&HOLDERS.trim().lines().collect::<Vec<_>>()));
            for holder in [holders]
                .into_iter()
                .chain(elected)
                .filter(|holder| *holder != "-")
            {
                let pods = self
                    .pods
                    .values()
                    .filter(|pod| pod.facts.node.as_ref() == Some(name));
                let pods = pods.map(|pod| (pod.facts.namespace.as_str(), pod.facts.name.as_str()));
                let (within, pod) =
                    dice.pick(&pods.chain([("shop", "no-pod")]).collect::<Vec<_>>());
                let namespace = match dice.below(4) {
                    0 => dice.pick(&NAMESPACES),
                    1 => "kube-system",
                    _ => within,
                };
                let of_server = holder.trim() == "SERVER";
                let server = of_server.then(|| {
                    let host = dice
                        .weigh(&[
                            (4, host.clone().as_str()),
                            (1, &host.to_uppercase()),
                            (1, "x"),
                        ])
                        .to_owned();
                    (host, dice.weigh(&[(6, "kube-apiserver"), (1, "another")]))
                });
                let goes_on = *ready != Ready::True && dice.permille(250);
                let renewed = if goes_on { 4 } else { age(dice) };
                let holder = holder
                    .trim()
                    .replace("POD", pod)
                    .replace("NAME", name)
                    .replace("HOST", &host);
                let other = Other {
                    namespace: if of_server { "kube-system" } else { namespace }.to_owned(),
                    name: if of_server {
                        format!("apiserver-{number}")
                    } else {
                        dice.pick(&["leader", "lock"]).to_owned()
                    },
                    holder: if dice.permille(150) {
                        holder.to_uppercase()
                    } else {
                        holder
                    },
                    server,
                    lease: lease(dice, renewed, goes_on),
                };
                let is_it =
                    |it: &Other| (&it.namespace, &it.name) == (&other.namespace, &other.name);
                if !self.leases.iter().any(is_it) {
                    self.leases.push(other);
                }
            }
        }
    }

    /// What is known about the claims of `pod`, by what was read of its set, of each claim and of each volume; `users` are
    /// the pods of its namespace, where they were listed.
    pub fn known_claims<'a>(
        &self,
        pod: &PodFacts,
        users: Option<&Vec<User>>,
        set: &Read<Option<&Set>>,
        claim: impl Fn(&str) -> Read<Option<&'a Claim>>,
        volume: impl Fn(&str) -> Read<Option<VolumeFacts>>,
    ) -> Vec<ClaimFacts> {
        let of_set = pod.indexed
            && pod.controller.is_some()
            && pod.owner.as_ref().is_some_and(|owner| owner.name == SET);
        let its_set = self.sets.get(&pod.namespace).filter(|_| of_set);
        let known = pod.claims.iter().map(|named| {
            let (name, ephemeral) = named.named();
            let of_template = name.strip_suffix(&format!("-{}", pod.name));
            let made = its_set.is_some_and(|set| {
                let mut templates = set.templates.iter();
                set.wants(&pod.name) && templates.any(|name| Some(name.as_str()) == of_template)
            });
            let uses =
                |user: &&User| user.uid != pod.uid && user.claims.iter().any(|claim| claim == name);
            let others = users.map(|users| users.iter().filter(uses).collect::<Vec<_>>());
            let alone = others.as_ref().is_some_and(Vec::is_empty);
            let found = claim(name);
            let owns = |found: Option<&Claim>| found.is_some_and(|it| it.owners.contains(&pod.uid));
            let deleted = found
                .clone()
                .is_ok_and(|found| found.is_some_and(|it| it.terminating));
            let mut keep = others.iter().flatten().filter(|user| deleted && user.keeps);
            let kept = keep.next().map(|user| user.name.clone());
            let unwanted =
                unwanted(pod, set) || pod.in_namespace.as_ref().is_ok_and(|it| it.deleted);
            let goes = match found.clone().is_ok_and(owns) {
                true if ephemeral => Goes::Ephemeral,
                owned if !owned && !deleted => Goes::No,
                _ if unwanted || kept.is_some() => Goes::Unwanted(kept),
                _ => Goes::MayBeWanted("not known".to_owned()),
            };
            let doubt = || Doubt::proved("not known");
            let renewed = if made {
                Ok(Renewer::Template)
            } else {
                of_operator(pod)
                    .then_some(Renewer::Operator)
                    .ok_or_else(doubt)
            };
            ClaimFacts {
                name: name.to_owned(),
                ephemeral,
                users: BTreeSet::new(),
                renewed: Some(if alone { renewed } else { Err(doubt()) }),
                deleted,
                goes,
                state: claim_state(found, &volume),
            }
        });
        known.collect()
    }

    /// A delete of a claim, with preconditions. It stays until no pod uses it.
    pub fn delete_claim(
        &mut self,
        key: &Key,
        uid: &str,
        version: &str,
        dry: bool,
    ) -> Result<(), Refusal> {
        let new_version = self.version();
        let claim = self.claims.get_mut(key).ok_or(Refusal::NotFound)?;
        if claim.uid != uid {
            return Err(Refusal::WrongUid);
        }
        if claim.version != version {
            return Err(Refusal::WrongVersion);
        }
        if !dry {
            (claim.terminating, claim.version) = (true, new_version);
            self.remove_unused_claims();
        }
        Ok(())
    }

    fn remove_unused_claims(&mut self) {
        // By the protection controller, a pod without a node uses none.
        let used = |namespace: &str, name: &str| {
            let mut pods = self
                .pods
                .values()
                .filter(|pod| pod.facts.namespace == namespace && pod.facts.node.is_some());
            pods.any(|pod| pod.facts.claims.iter().any(|claim| claim.name == name))
        };
        self.claims
            .retain(|(namespace, name), claim| !claim.terminating || used(namespace, name));
    }

    /// Applies the changes of the Job controller up to now.
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
        let free =
            |pod: &Pod| pod.facts.finalizers.is_empty() && pod.facts.grace_seconds == Some(0);
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

    /// A delete at once, with preconditions.
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
        pod.facts.grace_seconds = Some(0);
        pod.facts.resource_version = version.into();
        if pod.facts.finished {
            pod.released_at = self.job_controller.map(|after| Instant::now() + after);
        }
        if !pod.terminating || pod.facts.deletion_deadline > now {
            (pod.terminating, pod.facts.deletion_deadline) = (true, now);
        }
        self.remove_if_free(key);
    }

    /// A patch of the status to `Failed`, with preconditions.
    pub fn fail(&mut self, key: &Key, uid: &str, version: &str, dry: bool) -> Result<(), Refusal> {
        self.check(key, uid, version)?;
        if !dry {
            let new_version = self.version();
            let released_at = self.job_controller.map(|after| Instant::now() + after);
            if let Some(pod) = self.pods.get_mut(key) {
                (pod.facts.finished, pod.facts.resource_version) = (true, new_version.into());
                pod.released_at = released_at.filter(|_| pod.facts.held_by_job());
            }
        }
        Ok(())
    }

    /// Makes a random change that the program has not caused.
    pub fn change(&mut self, dice: &mut Dice) {
        let what = dice.below(28);
        if !(13..=25).contains(&what) {
            // Mostly one of the pods that the run is about.
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
            let moments = moments(&node.at(now, Ok(Vec::new())).facts);
            match what {
                0 => {
                    node.facts.ready = Ready::True;
                    node.facts.ready_since = Some(now);
                    node.renew(now, true);
                }
                1 => node.renew(now, false),
                2 => {
                    (node.facts.uid, node.facts.created) = (uid.into(), Some(now));
                    (node.facts.ready_since, node.facts.tainted_since) =
                        (Some(now - SignedDuration::from_secs(LONG)), None);
                }
                3 => node.mark_as_leaf(dice, false),
                4 => {
                    node.skip = Skip::out(dice);
                    node.facts.opted_out = node.skip.opted_out();
                }
                5 => (node.facts.ready, node.facts.ready_since) = (Ready::Unknown, Some(now)),
                // The kubelet is back, its container runtime is not.
                6 | 7 => {
                    node.facts.ready = Ready::False;
                    node.renew(now, true);
                }
                8 | 9 => node.show_life(dice, now),
                10 => node.fence(dice, Some(now)),
                11 => node.unfence(),
                26 | 27 => node.facts.powered_off = answer(dice, &moments),
                _ => {
                    self.nodes.remove(&name);
                }
            }
            return;
        }
        let keys = self.pods.keys().cloned().collect::<Vec<_>>();
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
                // A namesake: the replacement of a StatefulSet's pod, mostly on another node.
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
            17 => pod.facts.finished = true,
            18 => {
                let namespace = key.0;
                let facts = Namespace {
                    skip: Skip::out(dice),
                    deleted: false,
                };
                self.namespaces.insert(namespace, facts);
            }
            19 => {
                if let Some(claim) = pod.facts.claims.first() {
                    self.claims.remove(&(key.0, claim.name.clone()));
                }
            }
            // Somebody wants to keep it.
            22 | 23 => {
                let first = pod.facts.claims.first();
                let first = first.map(|claim| (key.0, claim.name.clone()));
                let version = self.version();
                if let Some(claim) = first.and_then(|key| self.claims.get_mut(&key)) {
                    (claim.scratch, claim.version) = (Some("false"), version);
                    claim.give_up = None;
                }
            }
            // A person answers, or takes it back.
            24 => pod.facts.reap = answer(dice, &[Some(now)]),
            25 => {
                let claim = pod.facts.claims.first().map(|claim| claim.name.clone());
                let version = self.version();
                let claim = claim.and_then(|name| self.claims.get_mut(&(key.0, name)));
                if let Some(claim) = claim {
                    (claim.give_up, claim.version) = (answer(dice, &[Some(now)]), version);
                }
            }
            20 => {
                let node = pod.facts.node.clone();
                let added = self.add_pod(dice, node);
                if let Some(pod) = self.pods.get_mut(&added) {
                    pod.changed = true;
                }
            }
            // Changes only the version, as the status update of another client does.
            _ => {}
        }
    }
}

/// The `StatefulSet` that exists in its namespace.
pub const SET: &str = "set";

/// Whether nothing wants the claims that go with the pod, by the `StatefulSet` of the name [`SET`], as far as that was read.
fn unwanted(pod: &PodFacts, set: &Read<Option<&Set>>) -> bool {
    let is_there = pod.owner.as_ref().is_some_and(|owner| owner.name == SET);
    let read = if is_there { set.clone() } else { Ok(None) };
    is_of_a_set(pod) && read.is_ok_and(|set| !set.is_some_and(|set| set.wants(&pod.name)))
}

/// Whether its controller is of none of Kubernetes' own groups.
fn of_operator(pod: &PodFacts) -> bool {
    let version = pod.controller.as_ref().map(|it| it.api_version.as_str());
    version.is_some_and(|version| !["v1", "apps/v1", "batch/v1"].contains(&version))
}

fn is_of_a_set(pod: &PodFacts) -> bool {
    let is_set = pod
        .owner
        .as_ref()
        .is_some_and(|owner| owner.kind == "StatefulSet");
    is_set
        && pod
            .controller
            .as_ref()
            .is_some_and(|it| it.api_version.starts_with("apps/"))
}

pub fn claims_of(pod: &PodFacts) -> Vec<String> {
    pod.claims.iter().map(|claim| claim.name.clone()).collect()
}

/// The volumes of its claims.
pub fn volumes_mut(pod: &mut PodFacts) -> impl Iterator<Item = &mut VolumeFacts> {
    pod.claims
        .iter_mut()
        .filter_map(|claim| match &mut claim.state {
            ClaimState::Bound(bound) => Some(&mut bound.volume),
            _ => None,
        })
}

/// How often each kind of owner comes, its name, and the API version of its controllers. Namesakes of other groups may be
/// anything; one without a version owns the pod, and does not control it.
const OWNERS: &str = "
    16 StatefulSet set apps/v1
    6 StatefulSet owner apps/v1
    3 ReplicaSet owner apps/v1
    3 ReplicaSet web-7d9c apps/v1
    3 Job owner batch/v1
    2 Job nightly-29481234 batch/v1
    1 ReplicationController owner v1
    1 DaemonSet owner apps/v1
    3 Cluster owner example.org/v1
    1 VirtualMachineInstance vm kubevirt.io/v1
    1 Pod virt-launcher-vm v1
    1 Pod driver v1
    1 ReplicaSet owner example.org/v1
    1 replicaset owner apps/v1
    1 ReplicationController owner example.org/v1
    1 Job owner batch.example.org/v1
    1 DaemonSet owner v1
    1 Übersetzung owner example.org/v1
    1 ReplicaSet owner -
    2 - - -
";

/// Owner, the workload above it, the hash of its template, and whose controller it is.
type RandomOwner = (
    Option<Owner>,
    Option<Owner>,
    Option<&'static str>,
    Option<Identity>,
);

fn random_owner(dice: &mut Dice) -> RandomOwner {
    let owners = OWNERS.trim().lines().map(|line| {
        let mut words = line.split_whitespace();
        let often = words.next().unwrap().parse().unwrap();
        let mut word = || words.next().filter(|word| *word != "-").unwrap_or_default();
        (often, (word(), word(), word()))
    });
    let (kind, name, version) = dice.weigh(&owners.collect::<Vec<_>>());
    let owner = |kind: &str, name: &str| {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        (!kind.is_empty()).then_some(Owner { kind, name })
    };
    let (workload, template) = match name {
        "web-7d9c" => (owner("Deployment", "web"), Some("7d9c")),
        "nightly-29481234" => (owner("CronJob", "nightly"), None),
        _ => (owner(kind, name), None),
    };
    let controller = (!version.is_empty()).then(|| Identity {
        api_version: version.to_owned(),
        uid: "uid-of-owner".into(),
    });
    (owner(kind, name), workload, template, controller)
}

/// Holders of leases, in terms of the name and the host of a node and the name of a pod on it.
const HOLDERS: &str = "
    NAME
    NAME_0a1b_2
    HOST
    HOST_0a1b
    NAMEx
    x_NAME
    NAME-0_HOST
    POD
    POD_0a1b
    POD_0a1b_2
    PODx
    x_POD
    SERVER
";

const DRIVERS: [&str; 2] = ["driver.longhorn.io", "csi.example"];

/// Whether it is a disk for one machine; its access modes, its mode and the type of its file system.
const MODES: &str = "
    disk ReadWriteOnce Block -
    disk ReadWriteOncePod Filesystem -
    disk ReadWriteOnce Filesystem ext4
    disk ReadWriteOnce Filesystem xfs
    disk ReadOnlyMany+ReadWriteOnce Filesystem btrfs
    disk ReadWriteMany Block ext4
    - ReadWriteMany Filesystem ext4
    - ReadWriteOnce+ReadWriteMany Filesystem ext3
    - ReadWriteOnce Filesystem nfs
    - ReadWriteOnce Filesystem -
";

/// Required affinities of volumes, in terms of the name and the host of their own node.
const AFFINITIES: &str = "
    topology.topolvm.io/node In NAME
    kubernetes.io/hostname In HOST NAME
    kubernetes.io/hostname In HOST & topology.kubernetes.io/zone In a
    topology.kubernetes.io/region In r
    kubernetes.io/hostname In HOST another
    kubernetes.io/hostname In HOST h1 h2
    kubernetes.io/hostname NotIn HOST
    disk In ssd
    disk NotIn ssd hdd
    disk Exists
    disk DoesNotExist
    example.org/gen Gt 3
    example.org/gen Lt 4
    example.org/gen Gt x
    disk In -ssd
    kubernetes.io/hostname In HOST | disk In ssd
    topology.kubernetes.io/zone In a & disk In hdd
    field & disk Exists
    &
    kubernetes.io/hostname In
    disk Exists ssd
    disk Near ssd
    failure-domain.beta.kubernetes.io/region In NAME
    topology.kubernetes.io/zone In b | kubernetes.io/hostname In HOST
    & | kubernetes.io/hostname In h1 | disk In ssd
";

/// An affinity, of a volume that belongs to the node of this name and host.
fn on(text: &str, own_name: &str, own_host: &str) -> Vec<AffinityTerm> {
    let text = text.replace("NAME", own_name).replace("HOST", own_host);
    text.split('|').map(term).collect()
}

fn random_storage(dice: &mut Dice, own_name: &str, own_host: &str) -> (Storage, Vec<AffinityTerm>) {
    let on = |text: &str| on(text, own_name, own_host);
    let path = || "/mnt/disk".to_owned();
    match dice.weigh(&[(24, 0), (3, 1), (2, 2), (1, 3), (1, 4), (20, 5)]) {
        0 => (Storage::Driver, Vec::new()),
        1 => (Storage::Driver, on("topology.kubernetes.io/zone In a b")),
        2 => (Storage::Local(path()), on("kubernetes.io/hostname In HOST")),
        3 => (Storage::HostPath(path()), Vec::new()),
        4 => (Storage::StrictLocal, Vec::new()),
        _ => {
            let affinities = AFFINITIES.trim().lines().collect::<Vec<_>>();
            let storage = match dice.below(6) {
                0 => Storage::Local(path()),
                1 => Storage::HostPath(path()),
                _ => Storage::Driver,
            };
            (storage, on(dice.pick(&affinities)))
        }
    }
}

/// A volume, with what is known of the driver that it may have, as used on `node`.
pub fn attached(
    mut volume: VolumeFacts,
    node: &str,
    attachments: &[(String, Attachment)],
    drivers: Option<&BTreeMap<String, Option<bool>>>,
) -> VolumeFacts {
    let is_it =
        |(on, it): &(String, Attachment)| on == node && it.volume.as_ref() == Some(&volume.name);
    let is_attached = attachments.iter().any(is_it);
    if let Some(driver) = &mut volume.driver {
        let says = drivers.map(|drivers| drivers.get(&driver.name).copied().flatten());
        driver.attaches = if is_attached {
            Ok(true)
        } else {
            says.map(|says| says != Some(false)).ok_or_else(unread)
        };
    }
    volume
}

/// A volume, with the real nodes among `nodes` from which it can be reached.
pub fn reached<'a>(
    mut volume: VolumeFacts,
    nodes: impl Iterator<Item = &'a Node> + Clone,
) -> VolumeFacts {
    let real = nodes.filter(|node| node.facts.leaf.is_none());
    for term in volume.affinity.iter_mut().filter(|term| asks(term)) {
        let refused = satisfies(term, &BTreeMap::new()).is_none();
        let satisfying = real
            .clone()
            .filter(|node| satisfies(term, &node.labels) == Some(true));
        let names = satisfying
            .map(|node| node.facts.name.clone())
            .collect::<Vec<_>>();
        term.satisfied_by = Some(if refused { Err(unread()) } else { Ok(names) });
    }
    volume
}

/// The state of a claim, from the objects that were found.
pub fn claim_state(
    claim: Read<Option<&Claim>>,
    volume: impl Fn(&str) -> Read<Option<VolumeFacts>>,
) -> ClaimState {
    let claim = match claim {
        Err(unread) => return ClaimState::Unread(unread),
        Ok(None) => return ClaimState::Absent,
        Ok(Some(claim)) => claim,
    };
    let without = ClaimState::WithoutVolume {
        missing: claim.volume.clone(),
        phase: None,
    };
    let Some(name) = &claim.volume else {
        return without;
    };
    match volume(name) {
        Err(unread) => ClaimState::Unread(unread),
        Ok(Some(volume)) if claim.phase != "Lost" => {
            let shared_disk = claim.many_writers && claim.block;
            ClaimState::Bound(BoundClaim {
                uid: claim.uid.clone().into(),
                shared_disk,
                scratch: claim.scratch == Some("true"),
                give_up: claim.give_up.clone(),
                created: claim.created,
                capacity: None,
                version: claim.free().map(Into::into),
                volume,
            })
        }
        Ok(_) => without,
    }
}

pub fn unread() -> Unread {
    Unread("it could not be read".to_owned())
}

pub fn no_facts(now: Timestamp) -> ClusterFacts {
    ClusterFacts {
        now,
        ..ClusterFacts::default()
    }
}

/// When each run begins, by the server's clock.
pub fn start() -> Timestamp {
    Timestamp::from_second(1_769_828_400).unwrap()
}

/// An age in seconds: mostly long ago, sometimes at, just before or just after a threshold or a lease's duration.
fn age(dice: &mut Dice) -> i64 {
    let edge = dice.pick(&[0, 10, 60, 600, 660]) + dice.pick(&[-1, 0, 1]);
    let long = LONG + i64::try_from(dice.below(4)).unwrap();
    dice.weigh(&[(50, long), (7, edge), (1, -LONG)])
}

fn lease(dice: &mut Dice, renewed: i64, goes_on: bool) -> Lease {
    Lease {
        renewed: dice
            .permille(950)
            .then(|| start() - SignedDuration::from_secs(renewed)),
        duration: dice.pick(&[10, 40]),
        stamps: dice.weigh(&[(2, Stamps::None), (2, Stamps::First), (6, Stamps::Each)]),
        skew: dice.weigh(&[(20, 0), (1, -1_200), (1, 1_200), (1, 20)]),
        goes_on,
    }
}

/// When an object was made: mostly long before any failure, sometimes about when its node failed, or nobody knows.
fn created(dice: &mut Dice) -> Option<Timestamp> {
    let edge = Some(start() - SignedDuration::from_secs(age(dice)));
    dice.weigh(&[(30, Some(made())), (1, None), (2, edge)])
}

/// The moments on the node that an answer may have to be later than.
fn moments(node: &NodeFacts) -> Vec<Option<Timestamp>> {
    let heard = node.heard.iter().map(|heard| Some(heard.at));
    let of_node = [node.created, node.ready_since, node.tainted_since];
    heard.chain(of_node).collect()
}

/// The value of an answer, where there is one: mostly of now, sometimes about one of `moments`, or no time.
fn answer(dice: &mut Dice, moments: &[Option<Timestamp>]) -> Option<String> {
    if !dice.permille(350) {
        return None;
    }
    let second = SignedDuration::from_secs(dice.pick(&[-1, 0, 1]));
    let recent = start() - SignedDuration::from_secs(i64::try_from(dice.below(4)).unwrap_or(0));
    let about = dice.pick(moments).unwrap_or(start()) + second;
    let at = dice.weigh(&[(8, recent), (6, about), (1, start() + second)]);
    // The last three are no time.
    let format = dice.weigh(&[
        (30, "%FT%TZ"),
        (1, "%FT%T.000Z"),
        (1, "%FT%T+00:00"),
        (1, "%FT%T"),
        (1, ""),
        (1, "yes"),
    ]);
    Some(at.strftime(format).to_string())
}
