//! A node as the API shows it: labels, annotations, taints, conditions and `managedFields`, and the facts that follow from
//! them by the design's text.

use super::start;
use crate::oracle::{not_ready_since, of_many};
use crate::prelude::*;
use Place::{Annotation, Label, Name, Taint, Version};
use pod_reaper::facts::{
    FencingMark, Heard, Leaf, LeafKind, Read, Renewal, SignBy, ZONE_LABELS, Zone,
};

/// A lease, of a kubelet or of another program.
#[derive(Debug, Clone)]
pub struct Lease {
    pub renewed: Option<Timestamp>,
    /// In seconds.
    pub duration: i64,
    /// What of it the server stamps, and by how many seconds the clock of who renews it is wrong.
    pub stamps: Stamps,
    pub skew: i64,
    /// Whether it is renewed, every 10 s.
    pub goes_on: bool,
}

/// When all leases and most objects were made: long before the run, since a stamp of a young object may be that of a renewal.
pub fn made() -> Timestamp {
    start() - SignedDuration::from_hours(240)
}

impl Lease {
    /// What the node itself says.
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

    /// It as it is at `now`.
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

/// A lease that is not a kubelet's.
#[derive(Debug, Clone)]
pub struct Other {
    pub namespace: String,
    pub name: String,
    pub holder: String,
    /// The host of an API server and the value of the label that makes it one's.
    pub server: Option<(String, &'static str)>,
    pub lease: Lease,
}

impl Other {
    fn serves(&self) -> Option<&String> {
        let (host, of) = self.server.as_ref()?;
        (*of == "kube-apiserver" && self.namespace == "kube-system").then_some(host)
    }

    /// Whether its holder is the node, its host or one of these pods on it, by namespace and name.
    pub fn is_held_by<'a>(
        &self,
        node: &Node,
        mut pods: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> bool {
        let begins = |holder: &str, name: &str| {
            let rest = holder.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let mut hosts = [Some(&node.facts.name), node.facts.hostname.as_ref()]
            .into_iter()
            .flatten();
        let holder = self.holder.to_lowercase();
        hosts.any(|host| {
            let host = host.to_lowercase();
            begins(&holder, &host) || self.serves().is_some_and(|its| its.to_lowercase() == host)
        }) || pods.any(|(within, name)| within == self.namespace && begins(&self.holder, name))
    }

    /// What it says at `now` of whoever holds it.
    pub fn heard(&self, now: Timestamp) -> Option<Heard> {
        let by = if self.serves().is_some() {
            SignBy::ApiServer
        } else {
            SignBy::OtherLease
        };
        self.lease.heard(by, now)
    }
}

/// The later of what was said and what was stamped. What is too far ahead counts only where the stamp is not newer than the
/// object.
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

/// The last at `now` of what comes every so many seconds.
fn last(first: Timestamp, every: i64, now: Timestamp) -> Timestamp {
    let passed = now.as_second() - first.as_second();
    first.max(first + SignedDuration::from_secs(passed - passed.rem_euclid(every)))
}

/// Which writes of a lease an API server stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// None of them: there are no managed fields.
    None,
    /// From 1.19 to 1.24: what makes the lease, and no renewal.
    First,
    Each,
}

/// Where something is said of a node.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    Label(&'static str, &'static str),
    Annotation(&'static str, &'static str),
    Taint(&'static str, &'static str),
    Version(&'static str),
    /// A name of Kosmos's, and no word of a machine.
    Name,
}

/// Each makes it a leaf node: of which kind, where it stands, its key and its value. The first is a name of Kosmos's, where
/// there is no word of a machine.
const LEAF_MARKS: &str = "
    kosmos name
    kosmos label kosmos.io/node true
    kosmos annotation kosmos-io/owned-by-cluster leaf
    kosmos taint kosmos.io/node true
    virtual label type virtual-kubelet
    virtual label virtual-kubelet.io/provider x
    virtual taint virtual-kubelet.io/provider x
    virtual annotation virtual-kubelet.io/last-applied-node-status {}
    virtual version v1.15.2-vk-v1.11.0
    virtual label liqo.io/type virtual-node
    virtual taint virtual-node.liqo.io/not-allowed true
    virtual label virtual-node.interlink/type virtual-kubelet
    virtual taint virtual-node.interlink/no-schedule
    virtual label k8s.aliyun.com/vnode true
    virtual taint k8s.aliyun.com/vnode true
    virtual taint eks.tke.cloud.tencent.com/eklet
    virtual label node.kubernetes.io/instance-type eklet
    virtual label virtual-kubelet.koupleless.io/component vnode
    virtual taint schedule.koupleless.io/virtual-node True
    virtual label kwok.x-k8s.io/node fake
    virtual annotation kwok.x-k8s.io/node fake
    virtual label type kwok
    virtual version kwok-v0.7.0
    virtual label vcluster.loft.sh/fake-node true
    edge version v1.29.5-kubeedge-v1.19.0
    edge label openyurt.io/is-edge-worker true
    edge annotation apps.openyurt.io/binding true
    edge annotation node.beta.openyurt.io/autonomy true
    edge annotation node.openyurt.io/autonomy-duration 10m
    edge label alibabacloud.com/is-edge-worker true
    edge label superedge.io/node-edge enable
    edge label eks.amazonaws.com/compute-type hybrid
    virtual annotation oci.oraclecloud.com/virtual-node-pool-id pool
    selected label type stands-for-another
    selected annotation example.org/leaf
    selected annotation example.org/leaf no
    selected taint example.org/leaf yes
    kosmos annotation kosmos-io/owned-by-cluster
";

/// What real nodes bear too, and says nothing.
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

/// Each says that its power or disks are cut.
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
            _ => Name,
        }
    }
}

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Conditions that only the node's own machine can have written.
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

/// By how many seconds a word may be ahead of now.
const LATER: i64 = 30;
/// Within which a stamp is that of the making.
const BIRTH: SignedDuration = SignedDuration::from_mins(1);

#[derive(Debug, Clone)]
pub struct Node {
    /// The facts that a read returns, those of [`Node::at`] as of the beginning.
    pub facts: NodeFacts,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Key and value, apart from those of the node controller.
    pub taints: Vec<(String, String)>,
    pub version: &'static str,
    /// Whether it names its machine.
    pub machine: bool,
    pub provider: Option<&'static str>,
    pub cordoned: bool,
    /// Whether it has the taint of the control plane.
    pub reserved: bool,
    /// Whether its status, which is not Ready, is none of the known ones, and shown by a word of a later version.
    pub doubtful: bool,
    pub skip: Skip,
    pub beats: Vec<Beat>,
    pub lease: Option<Lease>,
    /// Where it is said that it is off, and when that was stamped.
    pub fences: Vec<(Place, Option<Timestamp>)>,
    /// Whether it changed since the run began.
    pub changed: bool,
}

/// A report from a node.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    pub by: Reporter,
    pub at: Timestamp,
    /// How often it comes, in seconds, where it goes on.
    pub every: Option<i64>,
    /// By how many seconds the reporter's clock is wrong, where the server has stamped the report.
    pub stamped: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reporter {
    /// node-problem-detector, with a condition.
    Problem(&'static str),
    /// virt-handler.
    Virt,
    /// The control plane, with a condition of its own.
    Others(&'static str),
}

/// `pod-reaper.io/skip` as label and as annotation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skip {
    pub label: Option<&'static str>,
    pub annotation: Option<&'static str>,
}

impl Skip {
    /// Mostly none; sometimes one that does not opt out.
    pub fn random(dice: &mut Dice) -> Self {
        match dice.weigh(&[(920, 0), (30, 1), (50, 2)]) {
            0 => Self::default(),
            1 => Self::given(dice, &["true", "True", "", "no", "0", "False", "false-"]),
            _ => Self::given(dice, &["false"]),
        }
    }

    /// One that opts out.
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

    /// Whether it opts out, and by which value.
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
            Name => self.machine = false,
        }
        self.facts.out_of_service |= matches!(place, Taint("node.kubernetes.io/out-of-service", _));
    }

    /// A label, unless it is empty.
    pub fn label(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.labels.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Makes it a leaf node. The name of one that exists cannot change.
    pub fn mark_as_leaf(&mut self, dice: &mut Dice, by_name: bool) {
        let marks = lines(LEAF_MARKS);
        let mark = if by_name {
            marks[0]
        } else {
            dice.pick(&marks[1..])
        };
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

    /// Puts something on it that says nothing, where nothing that says something is in that place.
    pub fn mark_as_nothing(&mut self, dice: &mut Dice) {
        let place = Place::of(dice.pick(&lines(NO_MARKS)));
        let taken = match place {
            Label(key, _) => self.labels.contains_key(key),
            Annotation(key, _) => self.annotations.contains_key(key),
            Taint(key, _) => self.taints.iter().any(|(other, _)| other == key),
            Version(_) | Name => true,
        };
        if !taken {
            self.put(place);
        }
    }

    /// Says that it is off; `set` is when that is stamped.
    pub fn fence(&mut self, dice: &mut Dice, set: Option<Timestamp>) {
        let place = if dice.permille(600) {
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

    /// The same in a way that is not sure.
    pub fn fence_unsurely(&mut self, dice: &mut Dice) {
        if self.fences.is_empty() {
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

    /// A report of somebody, in place of that one's last.
    pub fn report(&mut self, beat: Beat) {
        self.beats.retain(|other| other.by != beat.by);
        self.beats.push(beat);
    }

    /// Somebody reports from it from now on.
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

    /// Somebody has reported, and does no more.
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

    /// Its lease is renewed.
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

    /// It as it is at `now`: with the last of the reports that go on, and what is heard of it elsewhere.
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
            let at = heard(Some(beat.said()), stamped, node.facts.created, now)?;
            Some(Heard { by, at, what: None })
        });
        let heard = own.chain(beats).collect::<Vec<_>>();
        (node.facts.heard, node.facts.named_by) =
            (Vec::new(), elsewhere.clone().map(|_| BTreeSet::new()));
        node.facts
            .hear(heard.into_iter().chain(elsewhere.into_iter().flatten()));
        // Whoever writes the node's taints has just done so, but the shutdown taint is set on a node that is not Ready.
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

    /// Its zone, by its labels.
    pub fn zone(&self) -> Option<Zone> {
        let zone = ZONE_LABELS.map(|key| self.labels.get(key).cloned());
        zone.iter().any(Option::is_some).then_some(Zone(zone))
    }

    /// Whether reports of it go on, so that it changes by itself.
    pub fn lives(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.goes_on)
            || self.beats.iter().any(|beat| beat.every.is_some())
    }
}

impl Beat {
    /// What the reporter says itself.
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
            Version(_) | Name => ("", ""),
        }
    }
}

/// Whether a term asks for more than a zone or region.
pub fn asks(term: &AffinityTerm) -> bool {
    !term.requirements.iter().all(of_many)
}

/// Whether a node with these labels satisfies a term, zones and regions aside. Nothing where that cannot be asked.
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
