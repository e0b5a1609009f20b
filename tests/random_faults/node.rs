//! A node as the API shows it: labels, annotations, taints, conditions and `managedFields`, and the facts that follow from
//! them by the design's text.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::facts::{AffinityTerm, Leaf, LeafKind, Lease, NodeFacts, Ready, Requirement, Sign, SignBy};
use pod_reaper_test_support::simulated::Dice;

/// What the operator says of nodes.
pub const SELECTORS: [&str; 6] = [
    "--leaf-node-selector=type=stands-for-another",
    "--leaf-node-selector=annotation:example.org/leaf",
    "--leaf-node-selector=taint:example.org/leaf=yes",
    "--fenced-node-selector=example.org/off=true",
    "--fenced-node-selector=annotation:example.org/off",
    "--fenced-node-selector=taint:example.org/off=yes",
];

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
enum Place {
    Label(&'static str, &'static str),
    Annotation(&'static str, &'static str),
    Taint(&'static str, &'static str),
    Version(&'static str),
    /// A name of Kosmos's, and no word of a machine.
    Name,
}
use Place::{Annotation, Label, Name, Taint, Version};

/// Each makes it a leaf node.
const LEAF_MARKS: [(LeafKind, Place); 35] = [
    (LeafKind::Kosmos, Name),
    (LeafKind::Kosmos, Label("kosmos.io/node", "true")),
    (LeafKind::Kosmos, Annotation("kosmos-io/owned-by-cluster", "leaf")),
    (LeafKind::Kosmos, Taint("kosmos.io/node", "true")),
    (LeafKind::Virtual, Label("type", "virtual-kubelet")),
    (LeafKind::Virtual, Label("virtual-kubelet.io/provider", "x")),
    (LeafKind::Virtual, Taint("virtual-kubelet.io/provider", "x")),
    (LeafKind::Virtual, Annotation("virtual-kubelet.io/last-applied-node-status", "{}")),
    (LeafKind::Virtual, Version("v1.15.2-vk-v1.11.0")),
    (LeafKind::Virtual, Label("liqo.io/type", "virtual-node")),
    (LeafKind::Virtual, Taint("virtual-node.liqo.io/not-allowed", "true")),
    (LeafKind::Virtual, Label("virtual-node.interlink/type", "virtual-kubelet")),
    (LeafKind::Virtual, Taint("virtual-node.interlink/no-schedule", "")),
    (LeafKind::Virtual, Label("k8s.aliyun.com/vnode", "true")),
    (LeafKind::Virtual, Taint("k8s.aliyun.com/vnode", "true")),
    (LeafKind::Virtual, Taint("eks.tke.cloud.tencent.com/eklet", "")),
    (LeafKind::Virtual, Label("node.kubernetes.io/instance-type", "eklet")),
    (LeafKind::Virtual, Label("virtual-kubelet.koupleless.io/component", "vnode")),
    (LeafKind::Virtual, Taint("schedule.koupleless.io/virtual-node", "True")),
    (LeafKind::Virtual, Label("kwok.x-k8s.io/node", "fake")),
    (LeafKind::Virtual, Annotation("kwok.x-k8s.io/node", "fake")),
    (LeafKind::Virtual, Label("type", "kwok")),
    (LeafKind::Virtual, Version("kwok-v0.7.0")),
    (LeafKind::Virtual, Label("vcluster.loft.sh/fake-node", "true")),
    (LeafKind::Edge, Version("v1.29.5-kubeedge-v1.19.0")),
    (LeafKind::Edge, Label("openyurt.io/is-edge-worker", "true")),
    (LeafKind::Edge, Annotation("apps.openyurt.io/binding", "true")),
    (LeafKind::Edge, Annotation("node.beta.openyurt.io/autonomy", "true")),
    (LeafKind::Edge, Annotation("node.openyurt.io/autonomy-duration", "10m")),
    (LeafKind::Edge, Label("superedge.io/node-edge", "enable")),
    (LeafKind::Selected, Label("type", "stands-for-another")),
    (LeafKind::Selected, Annotation("example.org/leaf", "")),
    (LeafKind::Selected, Annotation("example.org/leaf", "no")),
    (LeafKind::Selected, Taint("example.org/leaf", "yes")),
    (LeafKind::Kosmos, Annotation("kosmos-io/owned-by-cluster", "")),
];

/// What real nodes bear too, and says nothing.
const NO_MARKS: [Place; 14] = [
    Label("node-role.kubernetes.io/edge", ""),
    Label("kubernetes.io/role", "agent"),
    Label("node.kubernetes.io/exclude-from-external-load-balancers", ""),
    Label("eks.amazonaws.com/compute-type", "fargate"),
    Label("openyurt.io/is-edge-worker", "false"),
    Label("liqo.io/type", "another"),
    Label("example.org/off", "false"),
    Annotation("cluster.x-k8s.io/machine", "m"),
    Annotation("node.openyurt.io/autonomy-duration", ""),
    Annotation("fencing/state", "fencing"),
    Taint("example.org/leaf", "no"),
    Taint("example.org/off", "no"),
    Taint("ToBeDeletedByClusterAutoscaler", "1"),
    Taint("node.kubernetes.io/out-of-service", "nodeshutdown"),
];

/// Each says that its power or disks are cut.
const FENCES: [Place; 4] = [
    Annotation("fencing/state", "fenced"),
    Label("example.org/off", "true"),
    Annotation("example.org/off", "since noon"),
    Taint("example.org/off", "yes"),
];
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
/// Conditions that the control plane writes.
const NOT_ITS_OWN: [&str; 2] = ["NetworkUnavailable", "Drained"];

/// How long a report shows that its machine lives, in seconds.
const PROBLEM_LASTS: i64 = 11 * 60;
const HEARTBEAT_LASTS: i64 = 5 * 60;
/// By how many seconds the stamp of an object may be later than the `Date` of an answer that was on its way.
const LATER: i64 = 30;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
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
    pub skip: Skip,
    pub beats: Vec<Beat>,
    /// Whether its kubelet renews the lease, every 10 s.
    pub renews: bool,
    pub cordoned: bool,
    /// What of its lease the server stamps, and by how many seconds the node's own clock is wrong.
    pub stamps: Stamps,
    pub skew: i64,
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
            0 => Self { label: value, annotation: None },
            1 => Self { label: None, annotation: value },
            _ => Self { label: Some("false"), annotation: value },
        }
    }

    /// Whether it opts out, and by which value.
    pub fn opted_out(self) -> Option<String> {
        [self.label, self.annotation].into_iter().flatten().find(|value| *value != "false").map(str::to_owned)
    }
}

impl Node {
    fn put(&mut self, place: Place) {
        match place {
            Label(key, value) => drop(self.labels.insert(key.to_owned(), value.to_owned())),
            Annotation(key, value) => drop(self.annotations.insert(key.to_owned(), value.to_owned())),
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
        let (kind, place) = if by_name { LEAF_MARKS[0] } else { dice.pick(&LEAF_MARKS[1..]) };
        self.put(place);
        let first = self.facts.leaf.as_ref().map_or(kind, |leaf| leaf.kind);
        self.facts.leaf = Some(Leaf { kind: first, maker: "", marks: Vec::new(), cluster: None });
    }

    /// Puts something on it that says nothing, where nothing that says something is in that place.
    pub fn mark_as_nothing(&mut self, dice: &mut Dice) {
        let place = dice.pick(&NO_MARKS);
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

    /// Says that it is off.
    pub fn fence(&mut self, dice: &mut Dice) {
        if dice.permille(600) {
            self.put(dice.pick(&FENCES));
        } else {
            self.put(Taint(SHUTDOWN, ""));
            self.provider = Some(dice.pick(&["aws:///eu-1a/i-1", "openstack:///1"]));
            if self.facts.name.starts_with("fargate-") {
                return;
            }
        }
        self.facts.fenced = Some("somebody says so".to_owned());
    }

    /// The same in a way that is not sure.
    pub fn fence_unsurely(&mut self, dice: &mut Dice) {
        if self.facts.fenced.is_none() {
            self.put(Taint(SHUTDOWN, ""));
            self.provider =
                dice.pick(&[None, Some("gce://p/z/n"), Some("vsphere://1"), Some("harvester://1")]);
        }
    }

    pub fn unfence(&mut self) {
        self.annotations.retain(|key, _| !key.starts_with("fencing/") && key != "example.org/off");
        self.labels.retain(|key, _| key != "example.org/off");
        self.taints.retain(|(key, _)| key != SHUTDOWN && key != "example.org/off");
        self.facts.fenced = None;
    }

    /// A report of somebody, in place of that one's last.
    pub fn report(&mut self, beat: Beat) {
        self.beats.retain(|other| other.by != beat.by);
        self.beats.push(beat);
    }

    /// Somebody reports from it from now on.
    pub fn show_life(&mut self, dice: &mut Dice, at: Timestamp) {
        let (by, every) = match dice.below(3) {
            0 => (Reporter::Virt, 60),
            _ => (Reporter::Problem(dice.pick(&PROBLEMS)), 300),
        };
        let stamped = dice.permille(700).then(|| dice.pick(&[0, 0, -7_200, 7_200]));
        self.report(Beat { by, at, every: Some(every), stamped });
    }

    /// Somebody has reported, and does no more.
    pub fn show_past_life(&mut self, dice: &mut Dice, at: Timestamp) {
        let by = match dice.below(4) {
            0 => Reporter::Virt,
            1 => Reporter::Others(dice.pick(&NOT_ITS_OWN)),
            _ => Reporter::Problem(dice.pick(&PROBLEMS)),
        };
        let stamped = dice.permille(700).then(|| dice.pick(&[0, -7_200, 7_200]));
        self.report(Beat { by, at, every: None, stamped });
    }

    /// Its lease is renewed.
    pub fn renew(&mut self, now: Timestamp, again: bool) {
        self.renews = again;
        self.facts.lease = Ok(Some(Lease { renewed: Some(now), duration: SignedDuration::from_secs(40) }));
    }

    /// It as it is at `now`: with the last of the reports that go on.
    pub fn at(&self, now: Timestamp) -> Self {
        let mut node = self.clone();
        let last = |first: Timestamp, every: i64| {
            let passed = now.as_second() - first.as_second();
            first + SignedDuration::from_secs(passed - passed.rem_euclid(every))
        };
        for beat in &mut node.beats {
            if let Some(every) = beat.every {
                beat.at = last(beat.at, every).max(beat.at);
            }
        }
        if node.renews
            && let Ok(Some(lease)) = &mut node.facts.lease
        {
            lease.renewed = lease.renewed.map(|renewed| last(renewed, 10).max(renewed));
        }
        let sign = |beat: &Beat| {
            let by = match beat.by {
                Reporter::Problem(_) => SignBy::ProblemDetector,
                Reporter::Virt => SignBy::VirtHandler,
                Reporter::Others(_) => return None,
            };
            Some(Sign { by, at: beat.at })
        };
        node.facts.heartbeats = node.beats.iter().filter_map(sign).collect();
        node
    }

    /// Whether reports of it go on, so that it changes by itself.
    pub fn lives(&self) -> bool {
        self.renews || self.beats.iter().any(|beat| beat.every.is_some())
    }

    /// Whether it shows a sign of life at `now`, beside `lease`.
    pub fn shows_life(&self, now: Timestamp, lease: Option<&Lease>) -> bool {
        if self.facts.ready == Ready::True {
            return false;
        }
        let condition = self.facts.ready_since.filter(|since| *since <= now);
        let since = condition.max(self.facts.tainted_since);
        let counts = |at: Timestamp, lasts: i64| {
            let age = now.as_second() - at.as_second();
            (-LATER..=lasts).contains(&age) && since.is_none_or(|since| at > since)
        };
        let renewed = lease.and_then(|lease| Some((lease.renewed?, lease.duration.as_secs())));
        renewed.is_some_and(|(renewed, duration)| counts(renewed, duration))
            || self.beats.iter().any(|beat| match beat.by {
                Reporter::Problem(_) => counts(beat.at, PROBLEM_LASTS),
                Reporter::Virt => counts(beat.at, HEARTBEAT_LASTS),
                Reporter::Others(_) => false,
            })
    }
}

/// Whether a requirement is about a zone or region, which have many nodes.
fn of_many(requirement: &Requirement) -> bool {
    requirement.key.ends_with("zone") || requirement.key.ends_with("region")
}

/// Whether a term asks for more than a zone or region.
pub fn asks(term: &AffinityTerm) -> bool {
    !term.requirements.iter().all(of_many)
}

/// Whether a node with these labels satisfies a term, zones and regions aside. Nothing where that cannot be asked.
pub fn satisfies(term: &AffinityTerm, labels: &BTreeMap<String, String>) -> Option<bool> {
    let mut all = true;
    for requirement in term.requirements.iter().filter(|requirement| !of_many(requirement)) {
        let Requirement { key, operator, values } = requirement;
        let outer = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
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
                let is = |number: i64| if operator == "Gt" { number > than } else { number < than };
                value.and_then(number).is_some_and(is)
            }
            _ => return None,
        };
    }
    (!term.fields).then_some(all)
}
