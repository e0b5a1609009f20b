//! A node and the Leases that name it, with labels, annotations, taints, conditions and `managedFields`: how random ones are
//! made, the facts that follow from them according to the design, and their JSON.

use super::{Facts, LONG, NAMESPACES, World, age, created, entry, skip, start, time};
use crate::oracle::{not_ready_since, of_many};
use crate::prelude::*;
use Place::{Annotation, Label, Name, Provider, Taint, Version};
use pod_reaper::facts::{
    FencingMark, Heard, Leaf, LeafKind, Read, Renewal, SignBy, ZONE_LABELS, Zone,
};
use pod_reaper_test_support::samples::{self, with};
use serde_json::json;

/// A Lease of a kubelet or of another program.
#[derive(Debug, Clone)]
pub struct Lease {
    pub renewed: Option<Timestamp>,
    /// In seconds.
    pub duration: i64,
    /// Which writes of the Lease the server stamps, and by how many seconds the renewing program's clock is wrong.
    pub stamps: Stamps,
    pub skew: i64,
    /// Whether the Lease is renewed, every 10 s.
    pub goes_on: bool,
}

/// The creation time of all Leases and most objects. It is long before the run, because on a young object a stamp may be that of
/// a renewal.
pub fn made() -> Timestamp {
    start() - SignedDuration::from_hours(240)
}

impl Lease {
    /// The renewal time according to the node's own clock.
    pub fn said(&self) -> Option<Timestamp> {
        Some(self.renewed? + SignedDuration::from_secs(self.skew))
    }

    pub fn stamped(&self) -> Option<Timestamp> {
        match self.stamps {
            Stamps::None => None,
            Stamps::First => Some(made()),
            Stamps::Each => self.renewed,
        }
    }

    /// The Lease as it is at `now`.
    pub fn at(&self, now: Timestamp) -> Self {
        let renewed = self.renewed.map(|renewed| {
            if self.goes_on {
                last(renewed, 10, now)
            } else {
                renewed
            }
        });
        Self {
            renewed,
            ..self.clone()
        }
    }

    fn heard(&self, by: SignBy, now: Timestamp) -> Option<Heard> {
        let lease = self.at(now);
        let at = heard(lease.said(), lease.stamped(), Some(made()), now)?;
        Some(Heard { by, at, what: None })
    }
}

/// A Lease that is not a kubelet's.
#[derive(Debug, Clone)]
pub struct Other {
    pub namespace: String,
    pub name: String,
    pub holder: String,
    /// The host of an API server, and the value of the label that makes this Lease one of an API server.
    pub server: Option<(String, &'static str)>,
    pub lease: Lease,
}

impl Other {
    fn serves(&self) -> Option<&String> {
        let (host, of) = self.server.as_ref()?;
        (*of == "kube-apiserver" && self.namespace == "kube-system").then_some(host)
    }

    /// The nodes on which the Lease's holder may run, by all nodes and the pods on them. Only the name of a node makes shorter
    /// names irrelevant, and the same name of a host or pod.
    pub fn held_on<'a>(
        &self,
        nodes: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
        pods: impl Iterator<Item = Runs<'a>>,
    ) -> BTreeSet<&'a str> {
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let names = nodes.clone().map(|(name, _)| name);
        let hosts = nodes.flat_map(|(name, host)| [Some(name), host].map(|it| (name, it)));
        let hosts = hosts.filter_map(|(node, host)| Some((node, host?)));
        let serves = self.serves();
        let serving = hosts
            .clone()
            .filter(|(_, host)| serves.is_some_and(|its| same(its, host)));
        let serving = serving.map(|(node, _)| node);
        let of_node = |host: &str| {
            let (begin, rest) = self.holder.split_at_checked(host.len()).unwrap_or_default();
            same(begin, host)
                && !host.is_empty()
                && (rest.is_empty() || rest.starts_with('_') || is_random_suffix(rest))
        };
        let of_pod = |pod: &Runs| {
            let rest = self.holder.strip_prefix(pod.name);
            let within = pod.namespace == self.namespace;
            rest.is_some_and(|rest| {
                let alone = rest.is_empty() || rest.starts_with('_');
                alone && within || (alone || rest.starts_with('-')) && pod.has_a_unique_name()
            })
        };
        let pods = pods.filter(of_pod).map(|pod| (pod.node, pod.name.len()));
        let by_name = names
            .filter(|name| of_node(name))
            .max_by_key(|name| name.len());
        let shadowed = by_name.map_or(0, str::len);
        let hosts = hosts.filter(|(_, host)| of_node(host));
        let hosts = hosts.map(|(node, host)| (node, host.len()));
        let named = hosts.chain(pods).filter(|(_, length)| *length > shadowed);
        let named = named.map(|(node, _)| node).chain(by_name);
        named.chain(serving).collect()
    }

    /// The holder's heartbeat at `now`, according to the Lease.
    pub fn heard(&self, now: Timestamp) -> Option<Heard> {
        let by = if self.serves().is_some() {
            SignBy::ApiServer
        } else {
            SignBy::OtherLease
        };
        self.lease.heard(by, now)
    }
}

/// A pod that may hold a Lease, and where the pod runs.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    pub node: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The `ReplicaSet` that controls the pod.
    pub set: Option<&'a str>,
}

impl Runs<'_> {
    /// Whether a `ReplicaSet` generated the pod's name: the set's name and a hyphen, truncated to 58 characters, and five more
    /// characters.
    fn has_a_unique_name(&self) -> bool {
        let of_set = |set: &str| {
            let begin = format!("{set}-").chars().take(58).collect::<String>();
            self.name
                .strip_prefix(&begin)
                .is_some_and(|rest| rest.len() == 5)
        };
        self.set.is_some_and(of_set)
    }
}

/// Whether the text is a hyphen and ten letters, both upper-case and lower-case, as cilium-operator appends them.
fn is_random_suffix(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|letters| {
        let any = |is: fn(&u8) -> bool| letters.as_bytes().iter().any(is);
        letters.len() == 10
            && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
            && any(u8::is_ascii_uppercase)
            && any(u8::is_ascii_lowercase)
    })
}

/// The later of the reported time and the server's stamp. A reported time too far in the future is used only if the stamp is not
/// newer than the object.
pub fn heard(
    said: Option<Timestamp>,
    stamped: Option<Timestamp>,
    created: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let ahead = |said: &Timestamp| said.duration_since(now) > SignedDuration::from_secs(LATER);
    let is_new = |stamped: Timestamp, created| stamped.duration_since(created).abs() > BIRTH;
    let newer =
        stamped.is_some_and(|stamped| created.is_none_or(|created| is_new(stamped, created)));
    said.filter(|said| !ahead(said) || !newer).max(stamped)
}

/// The last occurrence at `now` of an event that repeats at this interval in seconds.
fn last(first: Timestamp, every: i64, now: Timestamp) -> Timestamp {
    let passed = now.as_second() - first.as_second();
    first.max(first + SignedDuration::from_secs(passed - passed.rem_euclid(every)))
}

/// Which writes of a Lease an API server stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// No write: there are no managed fields.
    None,
    /// From 1.19 to 1.24: the creation of the Lease, but no renewal.
    First,
    Each,
}

/// A part of a node that can contain a marker.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    Label(&'static str, &'static str),
    Annotation(&'static str, &'static str),
    Taint(&'static str, &'static str),
    Version(&'static str),
    /// The machine's ID at its provider.
    Provider(&'static str),
    /// A node name that Kosmos uses, with no sign of a machine.
    Name,
}

/// Each marker makes the node a leaf node. A line has the kind of leaf node, the part of the node, the key and the value. The
/// first line is a name that Kosmos uses, with no sign of a machine. The markers that the user's options select come last. All
/// other lines are compared with the nodes that other tests use.
const LEAF_MARKS: &str = "
    kosmos name
    kosmos label kosmos.io/node true
    kosmos label kosmos.io/node false
    kosmos annotation kosmos-io/owned-by-cluster cluster7
    kosmos annotation kosmos-io/owned-by-cluster
    kosmos taint kosmos.io/node true
    virtual label liqo.io/type virtual-node
    virtual taint virtual-node.liqo.io/not-allowed
    virtual label virtual-node.interlink/type x
    virtual taint virtual-node.interlink/no-schedule
    virtual label k8s.aliyun.com/vnode
    virtual taint k8s.aliyun.com/vnode
    virtual label node.kubernetes.io/instance-type eklet
    virtual taint eks.tke.cloud.tencent.com/eklet
    virtual label virtual-kubelet.koupleless.io/component vnode
    virtual taint schedule.koupleless.io/virtual-node
    virtual label kwok.x-k8s.io/node fake
    virtual annotation kwok.x-k8s.io/node fake
    virtual label type kwok
    virtual version kwok-0.8.0
    virtual label vcluster.loft.sh/fake-node true
    virtual label type virtual-kubelet
    virtual label virtual-kubelet.io/provider azure
    virtual taint virtual-kubelet.io/provider
    virtual annotation virtual-kubelet.io/last-applied-node-status {}
    virtual version v1.15.2-vk-N/A
    virtual version v1.15.2-vk-v1.11.0
    virtual annotation oci.oraclecloud.com/virtual-node-pool-id pool
    virtual provider ocid1.virtualnode.oc1.x
    edge version v1.29.5-kubeedge-v1.18.0
    edge label openyurt.io/is-edge-worker true
    edge annotation apps.openyurt.io/binding true
    edge annotation node.beta.openyurt.io/autonomy true
    edge annotation node.openyurt.io/autonomy-duration 2h
    edge label superedge.io/node-edge enable
    edge label eks.amazonaws.com/compute-type hybrid
    edge provider eks-hybrid:///eu-west-1/c/mi-1
    edge label alibabacloud.com/is-edge-worker true
    edge annotation node.alibabacloud.com/autonomy-duration 1h
    selected label type stands-for-another
    selected annotation example.org/leaf
    selected annotation example.org/leaf no
    selected taint example.org/leaf yes
";

/// Properties that real nodes can have too, and that are no markers.
const NO_MARKS: &str = "
    label node-role.kubernetes.io/edge
    label kubernetes.io/role agent
    label node.kubernetes.io/exclude-from-external-load-balancers
    label eks.amazonaws.com/compute-type fargate
    label openyurt.io/is-edge-worker false
    label liqo.io/type another
    label example.org/off false
    annotation cluster.x-k8s.io/machine m
    annotation node.openyurt.io/autonomy-duration
    annotation fencing/state fencing
    taint example.org/leaf no
    taint example.org/off no
    taint ToBeDeletedByClusterAutoscaler 1
    taint node.kubernetes.io/out-of-service nodeshutdown
";

/// Each mark says that the node's power or disks are cut.
const FENCES: &str = "
    annotation fencing/state fenced
    label example.org/off true
    annotation example.org/off since noon
    taint example.org/off yes
";

fn lines(text: &'static str) -> Vec<&'static str> {
    text.trim().lines().map(str::trim).collect()
}

impl Place {
    fn of(line: &'static str) -> Self {
        let (place, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
        match place {
            "label" => Label(key, value),
            "annotation" => Annotation(key, value),
            "taint" => Taint(key, value),
            "version" => Version(key),
            "provider" => Provider(key),
            _ => Name,
        }
    }
}

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Conditions that only a program on the node's own machine can have written.
const PROBLEMS: [&str; 9] = [
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "KubeletUnhealthy",
    "ContainerRuntimeUnhealthy",
    "FrequentKubeletRestart",
    "FrequentContainerdRestart",
    "FrequentDockerRestart",
    "FrequentUnregisterNetDevice",
    "CorruptDockerOverlay2",
];
const MONITORED: [&str; 5] = [
    "KernelReady",
    "NetworkingReady",
    "StorageReady",
    "ContainerRuntimeReady",
    "AcceleratedHardwareReady",
];
/// Conditions that the control plane writes.
const NOT_ITS_OWN: [&str; 2] = ["NetworkUnavailable", "Drained"];

/// By how many seconds a reported time may be in the future.
const LATER: i64 = 30;
/// Within this time of the creation, a stamp is that of the creation.
const BIRTH: SignedDuration = SignedDuration::from_mins(1);

#[derive(Debug, Clone)]
pub struct Node {
    /// The facts that a read returns. [`Node::at`] updates some of them.
    pub facts: NodeFacts,
    pub created: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Key and value. The node controller's own taints are not included.
    pub taints: Vec<(String, String)>,
    pub version: &'static str,
    /// Whether the node names its machine.
    pub machine: bool,
    pub provider: Option<&'static str>,
    /// Whether that machine makes it a leaf node.
    pub stands_for: bool,
    pub cordoned: bool,
    /// Whether the node has the control-plane taint.
    pub reserved: bool,
    /// Whether the node is not Ready with an unknown status, which its row shows by a word of a later version.
    pub doubtful: bool,
    pub skip: Skip,
    pub beats: Vec<Beat>,
    pub lease: Option<Lease>,
    /// The places that say that the node is off, and when each was stamped.
    pub fences: Vec<(Place, Option<Timestamp>)>,
    /// Whether the node changed since the run began.
    pub changed: bool,
}

/// A report from a node.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    pub by: Reporter,
    pub at: Timestamp,
    /// The interval of the reports in seconds, if they continue.
    pub every: Option<i64>,
    /// By how many seconds the reporter's clock is wrong, if the server has stamped the report.
    pub stamped: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reporter {
    /// node-problem-detector, with a condition.
    Problem(&'static str),
    Virt,
    /// The control plane, with a condition of its own.
    Others(&'static str),
}

/// `pod-reaper.io/skip` as a label and as an annotation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skip {
    pub label: Option<&'static str>,
    pub annotation: Option<&'static str>,
}

impl Skip {
    /// Usually none; sometimes a value that does not opt out.
    pub fn random(dice: &mut Dice) -> Self {
        match dice.weigh(&[(920, 0), (30, 1), (50, 2)]) {
            0 => Self::default(),
            1 => Self::given(dice, &["true", "True", "", "no", "0", "False", "false-"]),
            _ => Self::given(dice, &["false"]),
        }
    }

    /// A value that opts out.
    pub fn out(dice: &mut Dice) -> Self {
        Self::given(dice, &["true", "yes", "", "0"])
    }

    fn given(dice: &mut Dice, values: &[&'static str]) -> Self {
        let value = Some(dice.pick(values));
        match dice.below(3) {
            0 => Self {
                label: value,
                annotation: None,
            },
            1 => Self {
                label: None,
                annotation: value,
            },
            _ => Self {
                label: Some("false"),
                annotation: value,
            },
        }
    }

    /// The value that opts the object out, if there is one.
    pub fn opted_out(self) -> Option<String> {
        [self.label, self.annotation]
            .into_iter()
            .flatten()
            .find(|value| *value != "false")
            .map(str::to_owned)
    }
}

impl Node {
    fn put(&mut self, place: Place) {
        match place {
            Label(key, value) => drop(self.labels.insert(key.to_owned(), value.to_owned())),
            Annotation(key, value) => {
                drop(self.annotations.insert(key.to_owned(), value.to_owned()));
            }
            Taint(key, value) => {
                self.taints.retain(|(other, _)| other != key);
                self.taints.push((key.to_owned(), value.to_owned()));
            }
            Version(version) => self.version = version,
            Provider(id) => {
                (self.provider, self.stands_for) = (Some(id), true);
                // With such a provider ID, the shutdown taint is not a fencing mark.
                self.fences
                    .retain(|(place, _)| place.key() != ("taint", SHUTDOWN));
            }
            Name => self.machine = false,
        }
        self.facts.out_of_service |= matches!(place, Taint("node.kubernetes.io/out-of-service", _));
    }

    /// The node's name and its host name.
    pub fn names(&self) -> (&str, Option<&str>) {
        (&self.facts.name, self.facts.hostname.as_deref())
    }

    /// Sets a label, unless the value is empty.
    pub fn label(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.labels.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Makes the node a leaf node. The name of an existing node cannot change.
    pub fn mark_as_leaf(&mut self, dice: &mut Dice, by_name: bool) {
        let marks = lines(LEAF_MARKS);
        let mark = if by_name {
            marks[0]
        } else {
            dice.pick(&marks[1..])
        };
        self.mark_by(mark);
    }

    /// Makes the node an edge node.
    pub fn mark_as_edge(&mut self, dice: &mut Dice) {
        let marks = lines(LEAF_MARKS).into_iter();
        self.mark_by(dice.pick(&marks.filter(|mark| mark.starts_with("edge")).collect_vec()));
    }

    fn mark_by(&mut self, mark: &'static str) {
        let (kind, place) = mark.split_once(' ').unwrap();
        let kind = match kind {
            "kosmos" => LeafKind::Kosmos,
            "virtual" => LeafKind::Virtual,
            "edge" => LeafKind::Edge,
            _ => LeafKind::Selected,
        };
        self.put(Place::of(place));
        let first = self.facts.leaf.as_ref().map_or(kind, |leaf| leaf.kind);
        self.facts.leaf = Some(Leaf {
            kind: first,
            maker: "",
            marks: Vec::new(),
            cluster: None,
        });
    }

    /// Adds something meaningless to the node, unless a marker already has that key.
    pub fn mark_as_nothing(&mut self, dice: &mut Dice) {
        let place = Place::of(dice.pick(&lines(NO_MARKS)));
        let taken = match place {
            Label(key, _) => self.labels.contains_key(key),
            Annotation(key, _) => self.annotations.contains_key(key),
            Taint(key, _) => self.taints.iter().any(|(other, _)| other == key),
            Version(_) | Provider(_) | Name => true,
        };
        if !taken {
            self.put(place);
        }
    }

    /// Says that the node is off; `set` is the time of the stamp.
    pub fn fence(&mut self, dice: &mut Dice, set: Option<Timestamp>) {
        let place = if dice.permille(600) || self.stands_for {
            Place::of(dice.pick(&lines(FENCES)))
        } else {
            Taint(SHUTDOWN, "")
        };
        self.put(place);
        if matches!(place, Taint(SHUTDOWN, _)) {
            self.provider = Some(dice.pick(&["aws:///eu-1a/i-1", "openstack:///1"]));
        }
        self.fences.retain(|(other, _)| other.key() != place.key());
        self.fences.push((place, set));
    }

    /// Does the same in a way that is not sure.
    pub fn fence_unsurely(&mut self, dice: &mut Dice) {
        if self.fences.is_empty() && !self.stands_for {
            self.put(Taint(SHUTDOWN, ""));
            self.provider = dice.pick(&[
                None,
                Some("gce://p/z/n"),
                Some("vsphere://1"),
                Some("harvester://1"),
            ]);
        }
    }

    pub fn unfence(&mut self) {
        self.annotations
            .retain(|key, _| !key.starts_with("fencing/") && key != "example.org/off");
        self.labels.retain(|key, _| key != "example.org/off");
        self.taints
            .retain(|(key, _)| key != SHUTDOWN && key != "example.org/off");
        self.fences.clear();
    }

    /// Replaces the last report of this reporter.
    pub fn report(&mut self, beat: Beat) {
        self.beats.retain(|other| other.by != beat.by);
        self.beats.push(beat);
    }

    /// A reporter starts to send reports from the node.
    pub fn show_life(&mut self, dice: &mut Dice, at: Timestamp) {
        let (by, every) = match dice.below(4) {
            0 => (Reporter::Virt, 60),
            1 => (Reporter::Problem(dice.pick(&MONITORED)), 300),
            _ => (Reporter::Problem(dice.pick(&PROBLEMS)), 300),
        };
        let stamped = dice
            .permille(700)
            .then(|| dice.pick(&[0, 0, -7_200, 7_200]));
        self.report(Beat {
            by,
            at,
            every: Some(every),
            stamped,
        });
    }

    /// A reporter has sent reports from the node, and has stopped.
    pub fn show_past_life(&mut self, dice: &mut Dice, at: Timestamp) {
        let by = match dice.below(4) {
            0 => Reporter::Virt,
            1 => Reporter::Others(dice.pick(&NOT_ITS_OWN)),
            _ => Reporter::Problem(dice.pick(&PROBLEMS)),
        };
        let stamped = dice.permille(700).then(|| dice.pick(&[0, -7_200, 7_200]));
        self.report(Beat {
            by,
            at,
            every: None,
            stamped,
        });
    }

    /// Renews the node's Lease.
    pub fn renew(&mut self, now: Timestamp, again: bool) {
        let stamps = self
            .lease
            .as_ref()
            .map_or(Stamps::Each, |lease| lease.stamps);
        self.lease = Some(Lease {
            renewed: Some(now),
            duration: 40,
            stamps,
            skew: 0,
            goes_on: again,
        });
    }

    /// The node as it is at `now`, with the last of the reports that continue, and with heartbeats from elsewhere.
    pub fn at(&self, now: Timestamp, elsewhere: Read<Vec<Heard>>) -> Self {
        let mut node = self.clone();
        for beat in &mut node.beats {
            beat.at = beat
                .every
                .map_or(beat.at, |every| last(beat.at, every, now));
        }
        node.lease = node.lease.map(|lease| lease.at(now));
        let own = node.lease.iter();
        node.facts.renewed = own.clone().find_map(|lease| {
            let (said, stamped) = (Some(lease.said()?), lease.stamped());
            Some(Renewal { said, stamped })
        });
        let own = own.filter_map(|lease| lease.heard(SignBy::Lease, now));
        let beats = node.beats.iter().filter_map(|beat| {
            let by = match beat.by {
                Reporter::Problem(kind) if MONITORED.contains(&kind) => SignBy::NodeMonitoring,
                Reporter::Problem(_) => SignBy::ProblemDetector,
                Reporter::Virt => SignBy::VirtHandler,
                Reporter::Others(_) => return None,
            };
            let stamped = beat.stamped.map(|_| beat.at);
            let at = heard(Some(beat.said()), stamped, node.created, now)?;
            Some(Heard { by, at, what: None })
        });
        let (named_by, elsewhere) = match elsewhere {
            Ok(heard) => (Ok(BTreeSet::new()), heard),
            Err(unread) => (Err(unread), Vec::new()),
        };
        let heard = own.chain(beats).chain(elsewhere).collect::<Vec<_>>();
        // Keeps the last heartbeat of each source.
        let last = SignBy::ALL.map(|by| {
            let its = heard.iter().filter(|heard| heard.by == by);
            its.max_by_key(|heard| heard.at).cloned()
        });
        (node.facts.heard, node.facts.named_by) =
            (last.into_iter().flatten().collect(), Some(named_by));
        // The client that writes the node's taints has just done so. But the shutdown taint is set on a node that is not
        // Ready.
        let fences = node.fences.iter().filter(|(place, _)| {
            !(matches!(place, Taint(SHUTDOWN, _)) && node.facts.name.starts_with("fargate-"))
        });
        let fences = fences.map(|(place, set)| FencingMark {
            mark: String::new(),
            set_by: match place {
                Taint(SHUTDOWN, _) => set.or_else(|| not_ready_since(&node.facts, now)),
                Taint(..) => set.or(Some(now)),
                _ => *set,
            },
        });
        node.facts.fenced = fences.collect();
        node
    }

    /// The node's zone, by its labels.
    pub fn zone(&self) -> Option<Zone> {
        let zone = ZONE_LABELS.map(|key| self.labels.get(key).cloned());
        zone.iter().any(Option::is_some).then_some(Zone(zone))
    }

    /// Whether reports from the node continue, so that it changes by itself.
    pub fn lives(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.goes_on)
            || self.beats.iter().any(|beat| beat.every.is_some())
    }
}

impl Beat {
    /// The time that the reporter states.
    pub fn said(&self) -> Timestamp {
        self.at + SignedDuration::from_secs(self.stamped.unwrap_or_default())
    }
}

impl Place {
    pub fn key(self) -> (&'static str, &'static str) {
        match self {
            Label(key, _) => ("label", key),
            Annotation(key, _) => ("annotation", key),
            Taint(key, _) => ("taint", key),
            Version(_) | Provider(_) | Name => ("", ""),
        }
    }
}

/// Whether a term requires more than a zone or region.
pub fn asks(term: &AffinityTerm) -> bool {
    !term.requirements.iter().all(of_many)
}

/// Whether a node with these labels satisfies a term. Zones and regions are ignored. Returns `None` if a label selector cannot
/// express the term.
pub fn satisfies(term: &AffinityTerm, labels: &BTreeMap<String, String>) -> Option<bool> {
    let mut all = true;
    for requirement in term
        .requirements
        .iter()
        .filter(|requirement| !of_many(requirement))
    {
        let Requirement {
            key,
            operator,
            values,
        } = requirement;
        let outer =
            |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
        let valid = |value: &String| {
            let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            let mut letters = value.chars();
            letters.clone().all(inner) && outer(letters.next()) && outer(value.chars().last())
        };
        if !values.iter().all(valid) {
            return None;
        }
        let value = labels.get(key);
        let number = |text: &String| text.parse::<i64>().ok();
        all &= match operator.as_str() {
            "In" => value.is_some_and(|value| values.contains(value)),
            "NotIn" => value.is_none_or(|value| !values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" | "Lt" => {
                let than = number(values.first()?)?;
                let is = |number: i64| {
                    if operator == "Gt" {
                        number > than
                    } else {
                        number < than
                    }
                };
                value.and_then(number).is_some_and(is)
            }
            _ => return None,
        };
    }
    (!term.fields).then_some(all)
}

/// Holders of Leases, in terms of the name and the host of a node and the name of a pod on it.
const HOLDERS: &str = "
    NAME
    NAME_0a1b_2
    HOST
    HOST_0a1b
    NAMEx
    x_NAME
    NAME-0_HOST
    NAME-aBcDeFgHiJ
    HOST-QWERTYUIOp
    NAME-abcdefghij
    NAME-controller
    NAME-aBcDeFgHi
    NAME-aBcDeFgHi1
    NAME-aBcDeFgHiJ_0
    POD
    POD_0a1b
    POD_0a1b_2
    POD-external-controller
    POD-0
    PODx
    POD0
    x_POD
    SERVER
";

impl World {
    pub(super) fn random_node(&mut self, dice: &mut Dice, number: usize, dead: bool) -> Node {
        let leaf = dice.permille(90);
        let prefix = dice.weigh(&[(20, "n"), (1, "kosmos-"), (1, "fargate-")]);
        // Sometimes the name of node 1 or 2 begins with the name of node 0.
        let name = match number {
            1 if dice.permille(60) => "n0-b".to_owned(),
            2 if dice.permille(60) => "n0-abcdefghij".to_owned(),
            _ => format!("{prefix}{number}"),
        };
        let by_name = leaf && name.starts_with("kosmos-");
        let ready = if dead {
            dice.weigh(&[(12, Ready::Unknown), (4, Ready::False), (1, Ready::Absent)])
        } else {
            Ready::True
        };
        // What still sends heartbeats although the node is not Ready: nothing, its kubelet, or something else.
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
            // A time before the reports that continue.
            let age = if matches!(life, 1 | 2) {
                LONG + dice.pick(&[0, 1, -3_000])
            } else {
                age(dice)
            };
            // A time in the near future would be used only a moment later, and the verdict would change by itself.
            let age = if age == -1 { 0 } else { age };
            start() - SignedDuration::from_secs(age)
        };
        let own_lease = dice.permille(850).then(|| match life {
            1 => (4, true),
            // Sometimes the renewal was about a minute before deletions were requested.
            _ => (age(dice) + dice.pick(&[0, 0, 0, 90, 91, 92, 400]), false),
        });
        let own_lease = own_lease.map(|(renewed, goes_on)| random_lease(dice, renewed, goes_on));
        let control_plane = dice.permille(250);
        let reserved = dice.permille(if control_plane { 700 } else { 30 });
        let skip = Skip::random(dice);
        let mut node = Node {
            facts: NodeFacts {
                name,
                uid: self.uid().into(),
                ready,
                ready_reason: Some("NodeStatusUnknown".to_owned()),
                kubelet_says: None,
                ready_since: dice.permille(970).then(|| since(dice)),
                tainted_since: dice.permille(700).then(|| since(dice)),
                // Sometimes the host name is that of another node.
                hostname: dice
                    .permille(800)
                    .then(|| format!("h{}", number - number.min(dice.weigh(&[(30, 0), (1, 1)])))),
                zone: None,
                heard: Vec::new(),
                renewed: None,
                unread_lease: None,
                named_by: Some(Ok(BTreeSet::new())),
                others_forbidden: false,
                fenced: Vec::new(),
                out_of_service: false,
                leaf: None,
                control_plane,
                open: !cordoned && !reserved,
                opted_out: skip.opted_out(),
            },
            created: created(dice),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            version: "v1.35.4",
            machine: !by_name,
            provider: dice.pick(&[None, Some("aws:///eu-1a/i-0"), Some("gce://p/z/n")]),
            stands_for: false,
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
        if dice.permille(300) {
            let attachment = Attachment {
                name: format!("csi-{number}"),
                volume: dice.permille(800).then(|| "volume".to_owned()),
                driver: Some("csi.example".to_owned()),
            };
            self.attachments.push((node.facts.name.clone(), attachment));
        }
        node
    }

    /// Adds the Leases of API servers, and those that leaders hold. Some leaders run on nodes that are down.
    pub(super) fn add_leases(&mut self, dice: &mut Dice) {
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
            let elects = *ready != Ready::True && dice.permille(500);
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
                    lease: random_lease(dice, renewed, goes_on),
                };
                let is_it =
                    |it: &Other| (&it.namespace, &it.name) == (&other.namespace, &other.name);
                if !self.leases.iter().any(is_it) {
                    self.leases.push(other);
                }
            }
        }
    }
}

fn random_lease(dice: &mut Dice, renewed: i64, goes_on: bool) -> Lease {
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

/// The key of virt-handler's heartbeat.
const HEARTBEAT: &str = "kubevirt.io/heartbeat";

pub(super) fn node_and_facts(node: &Node, now: Timestamp) -> (Value, Facts) {
    let node = node.at(now, Ok(Vec::new()));
    (self::node(&node, now), Facts::Node(Arc::new(node)))
}

/// The Lease of a kubelet.
pub(super) fn lease_and_facts(node: &Node, now: Timestamp) -> Option<(Value, Facts)> {
    let lease = node.lease.as_ref()?.at(now);
    let name = &node.facts.name;
    let named = json!({"name": name, "namespace": "kube-node-lease"});
    Some((self::lease(&lease, name, &named), Facts::Lease(lease)))
}

/// Another Lease.
pub(super) fn other_and_facts(other: &Other, now: Timestamp) -> (Value, Facts) {
    let lease = other.lease.at(now);
    let mut named = json!({"name": other.name, "namespace": other.namespace});
    if let Some((host, of)) = &other.server {
        named["labels"] =
            json!({"kubernetes.io/hostname": host, "apiserver.kubernetes.io/identity": of});
    }
    let object = self::lease(&lease, &other.holder, &named);
    let other = Other {
        lease,
        ..other.clone()
    };
    (object, Facts::Other(Box::new(other)))
}

fn node(node: &Node, now: Timestamp) -> Value {
    let facts = &node.facts;
    let (mut labels, mut annotations) = (json!(node.labels), json!(node.annotations));
    if facts.control_plane {
        labels["node-role.kubernetes.io/control-plane"] = json!("");
    }
    skip(node.skip, &mut labels, &mut annotations);
    let set = |wanted: &str| {
        let of_taint = |(place, set): &(Place, Option<Timestamp>)| {
            set.filter(|_| place.key() == ("taint", wanted)).map(time)
        };
        node.fences.iter().find_map(of_taint)
    };
    let taint = |(key, value): &(String, String)| json!({"key": key, "value": value, "effect": "NoSchedule", "timeAdded": set(key)});
    let mut taints = node.taints.iter().map(taint).collect::<Vec<_>>();
    if node.reserved {
        taints
            .push(json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}));
    }
    let tainted = |key: &str, effect: &str, since: String| json!({"key": format!("node.kubernetes.io/{key}"), "effect": effect, "timeAdded": since});
    if let Some(since) = facts.tainted_since {
        let key = if facts.ready == Ready::False {
            "not-ready"
        } else {
            "unreachable"
        };
        // The other taints show nothing: a restart of the controller manager renews the first, and the second is about memory.
        let renewed = "2026-01-31T03:00:00Z".to_owned();
        taints.extend([
            tainted(key, "NoSchedule", time(since)),
            tainted(key, "NoExecute", renewed.clone()),
            tainted("memory-pressure", "NoSchedule", renewed),
        ]);
    }
    // The client that writes the rest of the node writes all the time, and owns no report.
    let mut written = vec![entry(
        "kube-controller-manager",
        now,
        &json!({"f:spec": {"f:taints": {}}}),
    )];
    let mut conditions = vec![json!({"type": "MemoryPressure", "status": "Unknown"})];
    for beat in &node.beats {
        let by_itself = time(beat.said());
        let owned = match beat.by {
            Reporter::Virt => {
                annotations[HEARTBEAT] = json!(by_itself);
                json!({"f:metadata": {"f:annotations": {format!("f:{HEARTBEAT}"): {}}}})
            }
            Reporter::Problem(kind) | Reporter::Others(kind) => {
                conditions.push(json!({
                    "type": kind,
                    "status": "False",
                    "lastHeartbeatTime": by_itself,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }));
                let key = format!(r#"k:{{"type":"{kind}"}}"#);
                // The manager of another field of the condition has not sent a report.
                written.push(entry(
                    "another",
                    now,
                    &json!({"f:status": {"f:conditions": {&key: {"f:message": {}}}}}),
                ));
                json!({"f:status": {"f:conditions": {key: {"f:lastHeartbeatTime": {}, "f:status": {}}}}})
            }
        };
        if beat.stamped.is_some() {
            written.push(entry("reporter", beat.at, &owned));
            // An earlier manager of the same field.
            written.push(entry(
                "before",
                beat.at - SignedDuration::from_hours(9),
                &owned,
            ));
        }
    }
    for (place, set) in &node.fences {
        let fields = match place.key() {
            ("label", key) => json!({"f:labels": {format!("f:{key}"): {}}}),
            ("annotation", key) => json!({"f:annotations": {format!("f:{key}"): {}}}),
            _ => continue,
        };
        written.extend(set.map(|set| entry("somebody", set, &json!({"f:metadata": fields}))));
    }
    let doubtful = node.doubtful && facts.ready == Ready::Unknown;
    if facts.ready != Ready::Absent {
        let ready = json!({
            "type": "Ready",
            "status": if doubtful { "malformed" } else { facts.ready.as_str() },
            "reason": facts.ready_reason,
            "lastTransitionTime": facts.ready_since.map(time),
            "lastHeartbeatTime": time(now),
        });
        conditions.push(ready);
        let owned = json!({"f:lastHeartbeatTime": {}, "f:lastTransitionTime": {}, "f:status": {}});
        written.push(entry(
            "kubelet",
            now,
            &json!({"f:status": {"f:conditions": {r#"k:{"type":"Ready"}"#: owned}}}),
        ));
    }
    let machine = if node.machine { "4c4c4544" } else { "" };
    json!({
        "kind": "Node",
        "shows": doubtful.then_some("Ready,Doubtful"),
        "metadata": {
            "name": facts.name,
            "uid": facts.uid,
            "creationTimestamp": node.created.map(time),
            "labels": labels,
            "annotations": annotations,
            "managedFields": written,
        },
        "spec": {"taints": taints, "unschedulable": node.cordoned, "providerID": node.provider},
        "status": {
            "conditions": conditions,
            "nodeInfo": {"kubeletVersion": node.version, "machineID": machine, "systemUUID": machine},
        },
    })
}

fn lease(lease: &Lease, holder: &str, named: &Value) -> Value {
    let stamp = lease
        .stamped()
        .map(|at| json!({"time": time(at), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}));
    let stamps = stamp.map(|stamp| vec![stamp]);
    let metadata = json!({"creationTimestamp": time(made()), "managedFields": stamps});
    json!({
        "kind": "Lease",
        "metadata": with(named.clone(), metadata),
        "spec": {"renewTime": lease.said().map(time), "leaseDurationSeconds": lease.duration, "holderIdentity": holder},
    })
}

/// Random clusters must contain every marker, and no others.
#[test]
fn the_leaf_marks_are_those_of_the_nodes_that_other_tests_use() {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let own = lines(LEAF_MARKS).into_iter().skip(1).filter_map(|line| {
        let (kind, mark) = line.split_once(' ').unwrap();
        (kind != "selected").then(|| mark.to_owned())
    });
    let of_node = |node: Value| {
        let pairs = |place: &'static str, of: &Value| {
            let pairs = of.as_object().cloned().unwrap_or_default().into_iter();
            pairs.map(move |(key, value)| (place, key, text(&value)))
        };
        let taints = node["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        // The taint `a` is on a node that has two taints.
        let taints = taints.into_iter().filter(|taint| taint["key"] != "a");
        let taints = taints.map(|taint| ("taint", text(&taint["key"]), text(&taint["value"])));
        let words = [
            (
                "version",
                text(&node["status"]["nodeInfo"]["kubeletVersion"]),
            ),
            ("provider", text(&node["spec"]["providerID"])),
        ];
        let words = words.into_iter().filter(|(_, word)| !word.is_empty());
        let all = pairs("label", &node["metadata"]["labels"])
            .chain(pairs("annotation", &node["metadata"]["annotations"]))
            .chain(taints)
            .chain(words.map(|(place, word)| (place, word, String::new())));
        let all = all.map(|(place, key, value)| format!("{place} {key} {value}").trim().to_owned());
        all.collect_vec()
    };
    let shared = samples::yaml(include_str!("../../data/leaf-marks.yaml"));
    let shared = shared.as_array().unwrap().iter().cloned().flat_map(of_node);
    assert_eq!(
        own.collect::<BTreeSet<_>>(),
        shared.collect::<BTreeSet<_>>()
    );
}
