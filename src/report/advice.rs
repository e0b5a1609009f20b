//! What to do, as data. Most of it is made by three functions: of the run, of a node, and of a pod. They give it its urgency.
//! The same advice about several pods or nodes is one. The command and the sentence of each kind are in one place.

use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
};

use derive_more::Deref;
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use strum::{IntoStaticStr, VariantNames};

use super::{
    NAMED, NAMES,
    document::{Case, Found, Step},
    hang::{Hang, HangCode, kubelet_service},
    head::{day, deadline},
    survey::{NodeView, PodView, State, Survey, Volumes},
};
use crate::{
    codes::codes,
    exit::Exit,
    facts::{
        Attachment, Distribution, KubeletSays, NodeFacts, Owner, Quorum, Ready, Stray, Waiting,
        WaitsFor, is_held_until_the_end,
    },
    history::{NodeState, RememberedSet},
    judge::{Limit, ReasonCode, Tie, TieKind, Verdict, Wanted},
    outcome::OutcomeCode,
    selector::Target,
    words::{Foreign, human_duration, in_turn, joined, listed, natural, prefixed},
};

/// What shows that the machine from which a volume comes still has it. ceph-csi refuses an image that another client watches, a
/// target of Synology refuses a second login, and EC2 does not detach what is mounted (book: Products). The program reads none of
/// it.
pub const SHOWS_LIFE: &str = "\"is still being used\" (RBD) and login error 19 (iSCSI) show that the old machine is alive, as does \
                              an EBS volume that stays busy";

/// Something to do, and what it is about.
#[derive(Debug, Clone)]
pub struct Advice<'a> {
    pub what: What<'a>,
    pub pods: Pods<'a>,
    pub nodes: Nodes<'a>,
    /// Why it cannot wait until working hours; `None` if it can.
    pub press: Option<Press>,
    /// The place of its first node, if the same advice about other nodes is apart.
    apart: Option<usize>,
}

/// What is to be done. The order of the variants is that of a page, the most urgent first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum What<'a> {
    // Volumes are detached while they are mounted.
    TakeTaintOff(&'a str),
    // A machine destroys data as it comes back.
    KeepData {
        volume: &'a str,
        claim: &'a str,
    },
    // Nobody knows which machines live.
    ReachMembers(&'a Quorum),
    DropMembers(&'a Quorum),
    AskMembers(&'a Quorum),
    Reach,
    SeeWhatIsNotKnown(&'a str),
    // A machine lives: repair what fails there.
    Repair {
        fault: Option<KubeletSays>,
    },
    // A machine that nobody has seen off can write to its volumes beside another one, or its disk is needed.
    SeeMachine {
        volumes: Volumes,
        needs: Needs,
    },
    SwitchOn,
    MakeRoom,
    // A machine may still run.
    BringBack,
    // Pods may run elsewhere, or twice.
    RepairLeaf,
    LookInLeafCluster(&'a str),
    CheckForTwoWriters {
        node: &'a str,
        since: String,
        pods: String,
        is_other_machine: bool,
    },
    // Something was not deleted, is not back, or was not read.
    NotDeleted {
        code: OutcomeCode,
        why: String,
    },
    SeeAttachment {
        attachment: &'a str,
        /// The sentence that says where the attachment stays, and whom that stops.
        why: String,
    },
    NotReadyAgain {
        sets: String,
        namespace: &'a str,
    },
    NotRead {
        first: &'a str,
        more: usize,
        cause: &'a str,
    },
    // A machine is lost with its data.
    GiveUpPath {
        paths: String,
    },
    GiveUp {
        claim: &'a str,
        finalizers: &'a [Foreign],
        /// By the reclaim policy of its volume.
        is_retained: bool,
        again: Again<'a>,
    },
    GiveUpOneByOne,
    // It blocks pods or volumes.
    SeeWhy(ReasonCode),
    SeeHang(Hang<'a>),
    SeeWaiting(&'a Waiting),
    RepairController {
        finalizer: &'a Foreign,
        by: Option<&'a Foreign>,
    },
    EndPods {
        finalizer: &'a Foreign,
        may_taint: bool,
    },
    DoTheRest {
        urgent: usize,
        others: usize,
    },
}

codes! {
    /// How soon something is to be done.
    pub enum When {
        /// At night.
        Now = "now",
        /// In the morning.
        Later = "later",
    }
}

/// Why something cannot wait until working hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Press {
    /// A workload has no other Ready pod, or at most half, or that is not known, and only you can bring it back.
    Missed,
    /// Something was not read that can be one of the others.
    NotRead,
    /// Nobody knows which machines live, or live twice.
    Unsure,
    /// Something is harmed at a known time.
    Harm,
}

/// What becomes of a PVC that is given up, and of its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again<'a> {
    /// The template of its `StatefulSet` makes the PVC again.
    ByTemplate(Option<&'a Owner>),
    ByOperator(&'a Owner),
    /// This `StatefulSet` was not read.
    NotKnown(&'a str),
    ByNobody,
}

/// What finds the command for a node that a step does not name.
const OTHERS: &str = "pod-reaper explain POD, with a pod of the node.";
/// Old members that are switched on after a reset can be a majority of their own.
const UNLESS_RESET: &str = "unless the datastore was reset or restored without it";
/// Why a machine whose disk is needed is reset, and not powered off.
const ERASES: &str = "never stop and start a cloud instance: that erases its instance store";
/// The most nodes of a step, each with the command that confirms it off.
const CONFIRMED: usize = 5;
/// For how long a node is opted out that nobody can look at.
const LOOKED_AWAY: SignedDuration = SignedDuration::from_hours(1);
/// The time within which a machine can be looked at, and its kubelet restarted.
const SHORT: SignedDuration = SignedDuration::from_mins(5);
/// For how long after a failure a workload that only you can bring back wakes somebody.
const RINGS: SignedDuration = SignedDuration::from_hours(2);

/// For what a machine that nobody has seen off is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    /// Pods need its disk.
    pub disk: bool,
    /// Pods left files on its disk, were not seen, or the controller of a finalizer can need it.
    pub files: bool,
    /// The mark that it is off lets a run delete pods.
    pub mark: bool,
    /// Nothing but the history speaks of it, which alone powers no machine off.
    pub history_alone: bool,
}

codes! {
    /// The harm that a command does.
    pub enum Harm {
        /// It discards data.
        Data = "data" => "This discards data:",
        /// It ends pods, or lets a run delete them.
        Pods = "pods" => "This deletes pods:",
    }
}

/// Pods that an advice is about, the worst damage first.
#[derive(Debug, Clone, Default, Deref)]
pub struct Pods<'a>(pub Vec<&'a PodView<'a>>);

/// The names of nodes that an advice is about, in natural order.
#[derive(Debug, Clone, Default, Deref)]
pub struct Nodes<'a>(pub Vec<&'a str>);

impl<'a> Advice<'a> {
    fn new(what: What<'a>, nodes: Vec<&'a str>, press: Option<Press>) -> Self {
        Self {
            what,
            pods: Pods::default(),
            nodes: Nodes(nodes),
            press,
            apart: None,
        }
    }

    fn of_pods(what: What<'a>, pods: Vec<&'a PodView<'a>>, press: Option<Press>) -> Self {
        let pods = Pods(pods);
        Self {
            nodes: pods.nodes(),
            pods,
            ..Self::new(what, Vec::new(), press)
        }
    }

    /// Makes the last step of a page that has no room for `all` of the rest, of which some are `urgent`.
    pub fn rest(urgent: usize, all: usize) -> Self {
        let press = (urgent > 0).then_some(Press::Missed);
        let others = all - urgent;
        Self::new(What::DoTheRest { urgent, others }, Vec::new(), press)
    }

    /// Returns the namespace that it is about; `None` if it is about several, or about nodes.
    pub fn namespace(&self) -> Option<&'a str> {
        match self.what {
            What::SeeWaiting(waiting) => Some(&waiting.namespace),
            _ => self.pods.namespace(),
        }
    }

    /// Reports whether somebody has to be woken. What only brings a workload back rings for two hours.
    pub fn rings(&self, survey: &Survey<'_>) -> bool {
        match self.press {
            None => false,
            // Only a run with --all looks at pods on Ready nodes.
            _ if matches!(self.what, What::SeeHang(_)) => false,
            Some(Press::Missed) => !self.nodes.iter().all(|name| {
                survey
                    .node(name)
                    .and_then(|node| node.since)
                    .is_some_and(|since| survey.now.duration_since(since) >= RINGS)
            }),
            // What was not read beside Ready nodes wakes nobody.
            Some(Press::NotRead) => !survey.down().is_empty(),
            Some(Press::Harm | Press::Unsure) => true,
        }
    }

    /// Spells the step. A command is about one node, or one pod; of nodes that are only supposed to be dead, none is
    /// printed.
    pub fn step(&self, survey: &Survey<'_>) -> Step {
        let (what, command, mut cases) = self.said(survey);
        let is_supposed = !survey.settings.task.suppose_dead().is_empty();
        let command = command.filter(|_| !is_supposed);
        for case in &mut cases {
            case.commands.retain(|_| !is_supposed);
            case.harms = case.harms.filter(|_| !case.commands.is_empty());
        }
        Step {
            code: (&self.what).into(),
            before: match self.what {
                What::SeeMachine { .. } => {
                    let nodes = self.nodes.iter().filter_map(|name| survey.node(name));
                    deadline(survey, &nodes.collect_vec())
                }
                _ => None,
            },
            when: self.press.map_or(When::Later, |_| When::Now),
            what,
            harms: (self.gives_up() || self.what == What::GiveUpOneByOne).then_some(Harm::Data),
            command,
            pods: match self.what {
                What::SeeWaiting(waiting) => vec![format!("{}/{}", waiting.namespace, waiting.pod)],
                _ => self.pods.iter().map(|pod| pod.name()).collect(),
            },
            nodes: self.nodes.iter().map(ToString::to_string).collect(),
            rings: self.rings(survey),
            cases,
        }
    }

    /// Says what to do, with what to paste, and with what one may find and do then.
    fn said(&self, survey: &Survey<'_>) -> (String, Option<String>, Vec<Case>) {
        let Self { pods, nodes, .. } = self;
        let target = survey.target;
        let (mut command, mut cases) = (None, Vec::new());
        let apart = self.apart.map(|place| &survey.nodes[place]);
        let spot = match (apart, &nodes[..]) {
            (None, [name]) => with_address(name, survey.node(name).and_then(|node| node.known)),
            (None, _) => nodes.to_string(),
            (Some(node), _) => with_address(node.name, node.known),
        };
        let what = match &self.what {
            What::TakeTaintOff(name) => {
                command = survey
                    .left_tainted
                    .iter()
                    .find(|node| node.name == **name)
                    .map(|node| target.take_taint_off(node));
                format!(
                    "Take the out-of-service taint off {name} now: on a Ready node, it detaches volumes that are mounted."
                )
            }
            What::KeepData { volume, claim } => {
                let retain = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
                command = Some(target.command(&["patch", "pv", volume, "-p", retain]));
                format!(
                    "{pods}: set volume {volume} to Retain before {nodes} comes back. PVC {claim} is being deleted, and the kubelet destroys the data as it ends the pod."
                )
            }
            What::ReachMembers(quorum) => {
                let known = |name: &str| survey.node(name).and_then(|node| node.known);
                let members = nodes
                    .iter()
                    .map(|name| with_address(name, known(name)))
                    .collect_vec();
                let spots = listed(&members, NAMES);
                let save = match nodes
                    .iter()
                    .find_map(|name| known(name)?.distribution)
                {
                    Some(Distribution::K3s) => "k3s etcd-snapshot save",
                    Some(Distribution::Rke2) => "rke2 etcd-snapshot save",
                    None => "etcdctl snapshot save",
                };
                cases = vec![
                    Case::new(Found::Answers, "leave it on, and repair its network. A restart there, also of k3s or RKE2, can stop the API server for all."),
                    Case::new(Found::Frozen, format!("reset it only once another one of {} is Ready.", listed(nodes, NAMES))),
                    Case::new(Found::Off, format!("switch it on, {UNLESS_RESET}. If nobody can tell, leave it off until morning.")),
                ];
                match quorum.a_ready.as_ref().filter(|_| quorum.has_etcd) {
                    Some(ready) => format!("Save a snapshot of etcd on {ready} ({save}). Then reach each of {spots} at its console."),
                    None => format!("Reach each of {spots} at its console: one of them can run, and be cut off."),
                }
            }
            What::DropMembers(quorum) => {
                let names = listed(&quorum.not_ready, NAMES);
                // Lines that stand together are pasted together, so each has its own case.
                let asked = survey.asked.and_then(|pod| pod.node.as_deref());
                let members = quorum
                    .not_ready
                    .iter()
                    .filter(|name| asked.is_none_or(|asked| asked == *name))
                    .filter_map(|name| survey.node(name))
                    .filter_map(|node| Some((node.known?, node.may_taint)));
                for (node, may_taint) in members.take(NAMED) {
                    let (name, harms) = (&node.name, Some(Harm::Pods));
                    let off = format!("{name}: only once you have SEEN it off, and it stays off, confirm that. A run then deletes what no rule keeps there.");
                    let confirm = target.confirm_off(node, may_taint);
                    cases.push(Case::new(Found::Off, off).with(confirm, harms).on([name.as_str()]));
                    let gone = format!("{name}: only if the machine is gone for good, and the datastore is elsewhere, or was reset or restored without it, delete its Node object.");
                    cases.push(Case::new(Found::Gone, gone).with(target.delete_node(node), harms).on([name.as_str()]));
                }
                if quorum.not_ready.len() > NAMED && asked.is_none() {
                    cases.push(Case::new(Found::Others, OTHERS));
                }
                format!(
                    "Once you have reached each of {names}, and know which of them is off or gone:"
                )
            }
            What::AskMembers(quorum) => {
                let ask = if quorum.has_etcd {
                    " (etcdctl endpoint health --cluster, on one of them)"
                } else {
                    ""
                };
                format!(
                    "Before you power {nodes} off, ask the other members{ask}: {quorum}, and no spare is left."
                )
            }
            What::Reach => {
                let is_member = apart.is_some_and(|node| node.quorum().is_some());
                let unless = prefixed(", ", is_member.then_some(UNLESS_RESET));
                let on = format!("switch it on again{unless}.");
                let off = match nodes[..] {
                    [name] => format!("{on} If {name} does not start, and you have SEEN it off, confirm that; once resumed, a run deletes what no rule keeps there."),
                    _ => format!("{on} If it does not start, and you have SEEN it off, confirm that; once resumed, a run deletes what no rule keeps there. Look at each of the others before you confirm it."),
                };
                cases = vec![
                    Case::new(
                        Found::Answers,
                        "repair the network. Power nothing off, and delete nothing: the kubelets end their pods themselves.",
                    ),
                    Case::new(Found::Frozen, format!("repair its host or storage, or reset it, but {ERASES}.")),
                    self.confirm(survey, &off),
                ];
                let few = match survey.together.iter().find(|(_, names)| names.contains(&nodes[0])) {
                    Some((_, names)) => format!("at most {} of the {} nodes that failed together", survey.settings.limits.max_failed_together, names.len()),
                    None => "few of these nodes".to_owned(),
                };
                format!("Suspend pod-reaper's CronJob (kubectl get cronjob -A finds it; book: Three in the morning): once {few} are NotReady, it deletes pods there, even on machines that run. Then look at the console of {spot}. Resume the CronJob once all are Ready, or off and confirmed.")
            }
            What::MakeRoom => {
                let room = format!("add or uncordon a node on which {pods} can start, or repair what tainted the others.");
                if nodes.is_empty() {
                    let nodes = pods.nodes();
                    let stay = if nodes.len() == 1 { "stays" } else { "stay" };
                    format!("If {nodes} {stay} off: {room}")
                } else {
                    let then = format!("once {} Ready, or confirmed off, {room}", nodes.are());
                    cases = vec![
                        Case::new(Found::Answers, "repair its network, or restart the kubelet."),
                        Case::new(Found::Frozen, format!("reset it, but {ERASES}.")),
                        self.confirm(survey, "switch it on again. If it does not start, and you have SEEN it off, confirm that; a run then deletes there, although nothing has room."),
                        Case::new(Found::Then, then),
                    ];
                    format!("Look at the console of {spot}, and bring it back.")
                }
            }
            What::SeeWhatIsNotKnown(_) if survey.incomplete.is_some() => {
                "Save the state again, and audit that file: this one lacks the leases, which show whether machines are alive.".to_owned()
            }
            What::SeeWhatIsNotKnown(what) => {
                format!("See why this is not known: {what}. No run deletes before it is.")
            }
            What::Repair { fault } => {
                let repair = match fault {
                    Some(KubeletSays::Runtime) => "restart the container runtime. Then its kubelet ends the pods.",
                    Some(KubeletSays::Network) => "repair the network plugin (CNI). Then its kubelet ends the pods.",
                    Some(KubeletSays::ShuttingDown) => "wait until the machine has shut down.",
                    None => "see why the kubelet does not report Ready: restart the kubelet or the container runtime. The kubelet then ends the pods.",
                };
                format!(
                    "Log in to {spot}, and {repair} If that fails, reboot {nodes}. If that fails too, power {nodes} off, and see that: after {} of silence, a run force-deletes the pods.",
                    human_duration(survey.settings.policy.silent_after())
                )
            }
            What::SeeMachine { volumes, needs } => {
                cases = self.cases_at_machine(survey, *volumes, *needs);
                to_see(nodes, &spot, *volumes, *needs)
            }
            What::SwitchOn => format!(
                "Switch {nodes} on again: {pods} {} {}. Discard nothing tonight.",
                pods.verb("needs", "need"),
                if nodes.len() == 1 { "its disk" } else { "their disks" }
            ),
            What::BringBack => {
                let waits = |pod: &PodView<'_>| pod.asks().contains(&ReasonCode::Finalizers);
                let end = match self.select(survey, waits) {
                    None => "power off what does not boot: old containers can still run there.".to_owned(),
                    Some(_) => format!("reset what does not boot, but {ERASES}, which the controller of a finalizer can need."),
                };
                format!("Bring {spot} back, or {end}")
            }
            What::RepairLeaf => {
                let [leaf, it, its] = match nodes.len() {
                    1 => ["leaf node", "it", "its"],
                    _ => ["leaf nodes", "them", "their"],
                };
                format!(
                    "Look for {pods} on {leaf} {nodes} BEFORE you repair {it}, or the link: {its} own agent then ends what runs."
                )
            }
            What::LookInLeafCluster(cluster) => {
                let there = Target {
                    kubeconfig: Some(format!("{cluster}.kubeconfig").into()),
                    context: None,
                };
                command = pods.namespace().map(|namespace| {
                    there.command(&["get", "pods", "-n", namespace, "-o", "wide"])
                });
                format!(
                    "Look in {cluster} for {pods} BEFORE you repair the link: the repair stops what runs there."
                )
            }
            What::CheckForTwoWriters {
                node,
                since,
                pods,
                is_other_machine,
            } => {
                let find = if *is_other_machine {
                    format!(
                        "Another machine has the name {node}, and nobody saw the old one off: find it, and see that it is off. "
                    )
                } else {
                    String::new()
                };
                format!(
                    "{find}Save this report, keep the backups from before {since}, and let each owner check the data (logs, the application's own check). If you find two writers, stop the application before it writes again. On {node}, these can have run beside their replacements: {pods}."
                )
            }
            What::NotDeleted { code, why } => {
                let were = pods.verb("was", "were");
                format!("See why {pods} {were} not deleted [{code}]: {why}")
            }
            What::SeeAttachment { attachment, why } => {
                command = Some(target.command(&["describe", "volumeattachment", attachment]));
                why.clone()
            }
            What::NotReadyAgain { sets, namespace } => {
                let words = ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"];
                command = Some(target.command(&words));
                format!(
                    "Not Ready again since pods were deleted: {sets}. Unless another step explains it, see the events of namespace {namespace}: {SHOWS_LIFE}."
                )
            }
            What::NotRead { first, more, cause } => {
                let more = match more {
                    0 => String::new(),
                    more => format!(", and {more} more like it"),
                };
                format!("Not read: {first}{more}: {cause}")
            }
            What::GiveUpPath { paths } => format!(
                "{pods} {} data in {paths} on the disk of {nodes}. Only if that may be lost, and you have SEEN the machine off, force-delete the pod by hand (book: Data on a dead node).",
                pods.verb("keeps", "keep")
            ),
            What::GiveUp {
                claim,
                finalizers,
                is_retained,
                again,
            } => {
                if let (Again::ByTemplate(_), [pod]) = (again, &pods[..]) {
                    command = discards(survey, pod, claim);
                }
                let waits = joined(*finalizers, ", ")
                    .map(|names| format!(" The PVC then also waits for its finalizer {names}."))
                    .unwrap_or_default();
                // A page with several such pods has the step about all of them.
                let pinned = pods[0]
                    .reason
                    .ties
                    .iter()
                    .filter(|tie| tie.is_pinned())
                    .count();
                let all = if pinned > 1 {
                    " Give up all such PVCs of the pod, or none."
                } else {
                    ""
                };
                let data = if *is_retained {
                    "Its volume stays, by its reclaim policy Retain."
                } else {
                    "Its volume is destroyed; nothing checks for other copies."
                };
                let is_alone = pods[0].facts.copies.is_some_and(|copies| copies.wanted <= 1);
                let others = if is_alone {
                    ""
                } else {
                    " Give up one pod of its workload at a time, and wait for Ready in between."
                };
                format!(
                    "Only if {nodes} is lost for good, give up the data of {pods}: delete PVC {claim}.{waits} A run {} later deletes the pod. {data} {}{all}{others}",
                    human_duration(survey.settings.policy.given_up_after()),
                    again.says()
                )
            }
            What::GiveUpOneByOne => format!(
                "Only if {} lost for good: give up data one pod at a time, and wait for Ready in between. Leave pods without another Ready pod for last (the step for each: pod-reaper explain POD).",
                nodes.are()
            ),
            What::SeeWhy(code) => {
                let why = match pods[..] {
                    [pod] if pod.reason.code() == *code => pod.reason.to_string(),
                    _ => "see why (pod-reaper explain POD).".to_owned(),
                };
                format!("{pods} [{code}]: {why} What to do: book, Three in the morning.")
            }
            What::SeeHang(hang) => {
                let shows = match pods[..] {
                    [pod] => hang.command(target, pod),
                    _ => None,
                };
                if hang.is_of_kubelet() {
                    let known = pods.iter().filter_map(|pod| pod.node);
                    let restarts = known
                        .clone()
                        .map(kubelet_service)
                        .unique()
                        .map(|service| format!("systemctl restart {service}"));
                    let drained = known
                        .unique_by(|node| &node.name)
                        .take(CONFIRMED)
                        .collect_vec();
                    let drains = drained.iter().map(|node| target.drain(node));
                    let one = match nodes.len() {
                        1 => "",
                        _ => ", one at a time, each once the others are Ready",
                    };
                    let log = match &shows {
                        Some(_) => "it names what does not end.",
                        None => "pod-reaper explain POD has the command.",
                    };
                    let then = format!("restart the kubelet of {nodes}. Running containers go on.");
                    let drain = format!("after 5 minutes: drain {nodes}{one}, reboot, and uncordon. Each pod moves or ends, and each emptyDir is lost.");
                    cases = vec![
                        Case::new(Found::Log, log).with(shows, None),
                        Case::new(Found::Then, then).with(restarts, None),
                        Case::new(Found::StillThere, drain).with(drains, Some(Harm::Pods)).on(drained.iter().map(|node| node.name.as_str())),
                    ];
                } else {
                    command = shows;
                }
                hang.look(pods)
            }
            What::SeeWaiting(waiting) => {
                let (kind, name) = match &waiting.waits_for {
                    WaitsFor::Pod { name, .. } => ("pod", Some(name)),
                    WaitsFor::Attachment { attachment, .. } => {
                        ("volumeattachment", Some(attachment))
                    }
                    WaitsFor::Nodes { nodes } => ("node", nodes.first()),
                };
                command = name.map(|name| match kind {
                    "pod" => target.command(&["describe", kind, "-n", &waiting.namespace, name]),
                    _ => target.command(&["describe", kind, name]),
                });
                // The first line of `explain` names what the pod waits for.
                let why = match survey.waiting {
                    Some(_) => format!("See what holds {}.", waiting.waits_for),
                    None => format!("{waiting}."),
                };
                match name {
                    None => format!(
                        "{why} Bring that node back under its name, with its disk. Only if its data is lost for good, delete the PVC."
                    ),
                    Some(_) if nodes.is_empty() => why,
                    Some(_) => {
                        format!("{why} Look at the console of {spot}, and bring it back, but {ERASES}.")
                    }
                }
            }
            What::RepairController { finalizer, by } => {
                let known = pods.iter().filter(|pod| pod.node.is_some()).copied().collect();
                let spots = Some(Pods(known).spots()).filter(|spots| !spots.is_empty());
                format!(
                    "{pods} {} held by finalizer {finalizer}{}: repair its controller{}.",
                    pods.verb("is", "are"),
                    prefixed(", set by ", *by),
                    prefixed(", possibly on ", spots)
                )
            }
            What::EndPods {
                finalizer,
                may_taint,
            } => {
                let are = nodes.are();
                let end = if *may_taint {
                    format!("If {are} off, confirm that: the line ends {pods}.")
                } else {
                    format!("It sees that once {are} back, or once the Node object is deleted.")
                };
                format!(
                    "{pods} {} held by finalizer {finalizer}, whose controller waits for the end of the pod. {end}",
                    pods.verb("is", "are")
                )
            }
            What::DoTheRest { urgent, others } => format!(
                "Then run pod-reaper again, and do what is left over: steps for now {urgent}, others {others}. For one pod: pod-reaper explain POD."
            ),
        };
        (what, command, cases)
    }

    /// Returns what to do with those of its machines that are off.
    fn confirm(&self, survey: &Survey<'_>, what: &str) -> Case {
        let nodes = match self.apart {
            // Lines that stand together are pasted together, and only this one of the nodes was looked at.
            Some(place) => vec![&survey.nodes[place]],
            None => self
                .nodes
                .iter()
                .filter_map(|name| survey.node(name))
                .take(CONFIRMED)
                .collect_vec(),
        };
        let (names, commands): (Vec<_>, Vec<_>) = nodes
            .iter()
            .filter_map(|node| {
                let command = survey.target.confirm_off(node.known?, node.may_taint)?;
                Some((node.name, command))
            })
            .unzip();
        let mut what = what.to_owned();
        if nodes.iter().any(|node| node.may_taint) {
            what += if commands.len() == 1 {
                " The line also sets the out-of-service taint for a minute, which frees volumes within seconds: leave the machine off until the line ends."
            } else {
                " A line that also sets the out-of-service taint does so for a minute, and frees volumes within seconds: leave the machine off until the line ends."
            };
        }
        if self.nodes.len() > commands.len() {
            what += " For the others: ";
            what += OTHERS;
        }
        Case::new(Found::Off, what)
            .with(commands, Some(Harm::Pods))
            .on(names)
    }

    /// Lists what one may find at its machines.
    fn cases_at_machine(&self, survey: &Survey<'_>, volumes: Volumes, needs: Needs) -> Vec<Case> {
        let off = if needs.mark {
            let on = if needs.disk {
                "confirm that, then switch it on again. Pods that need its disk stay."
            } else if needs.files {
                "confirm that, then switch it on again: its disk can be needed."
            } else {
                "confirm that."
            };
            self.confirm(survey, on)
        } else {
            Case::new(Found::Off, "switch it on again: its disk is needed.")
        };
        if needs.history_alone {
            return vec![off];
        }
        let moves = volumes != Volumes::Stay;
        let comes = matches!(volumes, Volumes::MoveAfterRun(_));
        let mut cases = Vec::new();
        // Later, the step itself says what to do with a machine that runs.
        if comes || !moves {
            let boots = match self.select(survey, |pod| pod.returns) {
                Some(pods) => match &pods[..] {
                    [pod] => format!("leave it on: {} needs its disk.", pod.name()),
                    pods => format!("leave it on: {} pods need its disk.", pods.len()),
                },
                None => "leave it on. Its old containers have ended.".to_owned(),
            };
            let (fails, frozen) = if needs.disk || needs.files {
                (
                    "reboot it (systemctl reboot)",
                    format!("reset it, but {ERASES}."),
                )
            } else {
                (
                    "shut it down (systemctl poweroff), see it off, and confirm",
                    "POWER IT OFF, see it off, and confirm.".to_owned(),
                )
            };
            let (repair, otherwise) = if moves {
                (
                    "restart the kubelet. If its node is not Ready 2 minutes later",
                    " Left frozen, two machines can write, unless the storage prevents it.",
                )
            } else {
                (
                    "repair its network, or restart the kubelet. Only if its containers have stopped (crictl ps)",
                    "",
                )
            };
            cases = vec![
                Case::new(Found::Boots, boots),
                Case::new(Found::Answers, format!("{repair}: {fails}.")),
                Case::new(Found::Frozen, frozen + otherwise),
            ];
        }
        cases.push(off);
        if comes {
            let until = survey.now.saturating_add(LOOKED_AWAY).unwrap_or(survey.now);
            let opt_out = match self.nodes[..] {
                [name] => survey
                    .node(name)
                    .and_then(|node| node.known)
                    .map(|node| survey.target.opt_out(node, until)),
                _ => None,
            };
            // The next run does not wait until a kubelet has restarted.
            let is_short = match volumes {
                Volumes::MoveAfterRun(Some(at)) => at.duration_since(survey.now) < SHORT,
                _ => true,
            };
            let (found, place) = if is_short {
                (Found::NoTime, 0)
            } else {
                (Found::CannotLook, cases.len())
            };
            let what = format!(
                "opt {} out of runs until {}, and look before then (pod-reaper.io/skip- ends that).",
                self.nodes,
                clock(until)
            );
            let opt_out = Case::new(found, what)
                .with(opt_out, None)
                .on(self.nodes.iter().copied());
            cases.insert(place, opt_out);
        } else if moves {
            let using = self.select(survey, PodView::moves_a_volume);
            let owners = prefixed(
                ": ",
                using.map(|pods| listed(&Pods(pods.in_turn(NAMES)).workloads(), NAMES)),
            );
            cases.push(Case::new(
                Found::CannotLook,
                format!("cut {} off the storage. Do so, too, if you cannot stop it. Only if that is impossible, stop the replacements, each by its owner{owners}. Scaling a StatefulSet down stops its highest pod first, and can delete PVCs. Delete no object.", self.nodes),
            ));
        }
        cases
    }

    /// Lists the pods on its nodes of which `is` holds; `None` if there are none.
    fn select<'s>(
        &self,
        survey: &'s Survey<'s>,
        is: impl Fn(&PodView<'s>) -> bool,
    ) -> Option<Pods<'s>> {
        let names = self.nodes.iter().copied().collect::<BTreeSet<_>>();
        survey.select(|pod| {
            is(pod)
                && pod
                    .facts
                    .node
                    .as_deref()
                    .is_some_and(|node| names.contains(node))
        })
    }

    /// Reports whether it gives data up.
    fn gives_up(&self) -> bool {
        matches!(self.what, What::GiveUpPath { .. } | What::GiveUp { .. })
    }
}

impl Again<'_> {
    /// Says what comes of the PVC and its data.
    fn says(self) -> String {
        let decides =
            |owner: &Owner| format!("It belongs to {owner}: its operator decides what comes then.");
        match self {
            Self::ByTemplate(None) => "The StatefulSet makes PVC and pod again, empty.".to_owned(),
            Self::ByTemplate(Some(owner)) | Self::ByOperator(owner) => decides(owner),
            Self::NotKnown(set) => format!(
                "Whether StatefulSet {set} makes this PVC again is not known: it was not read."
            ),
            Self::ByNobody => {
                "Nobody makes this PVC again: create it, empty, once the pod is gone.".to_owned()
            }
        }
    }
}

impl<'a> Pods<'a> {
    /// Lists their nodes.
    pub fn nodes(&self) -> Nodes<'a> {
        Nodes::of(self.iter().filter_map(|pod| pod.facts.node.as_deref()))
    }

    /// Lists them for a list that shows `most`.
    pub fn in_turn(&self, most: usize) -> Vec<&'a PodView<'a>> {
        in_turn(self.0.clone(), most, |pod| {
            Some(pod.facts.namespace.as_str())
        })
    }

    /// Names what they belong to, each once.
    pub fn workloads(&self) -> Vec<String> {
        self.iter()
            .map(|pod| match &pod.facts.workload {
                Some(owner) => format!("{} {}/{}", owner.kind, pod.facts.namespace, owner.name),
                None => pod.name(),
            })
            .unique()
            .collect()
    }

    /// Lists their nodes, one alone with what finds it.
    pub fn spots(&self) -> String {
        let nodes = self.nodes();
        match nodes[..] {
            [name] => with_address(name, self[0].node),
            _ => nodes.to_string(),
        }
    }

    /// Returns the namespace of all of them; `None` if they have several.
    pub fn namespace(&self) -> Option<&'a str> {
        self.iter()
            .map(|pod| pod.facts.namespace.as_str())
            .all_equal_value()
            .ok()
    }

    pub fn verb(&self, singular: &'static str, plural: &'static str) -> &'static str {
        if self.len() == 1 { singular } else { plural }
    }
}

/// Names the first pods, the namespaces in turn, so that none hides the pods of another. The lists name the others.
impl Display for Pods<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let named = self.in_turn(NAMED).into_iter();
        f.write_str(&listed(&named.map(PodView::name).collect_vec(), NAMED))
    }
}

impl<'a> Nodes<'a> {
    fn of(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(
            names
                .into_iter()
                .unique()
                .sorted_by_cached_key(|name| natural(name))
                .collect(),
        )
    }

    /// Names them with a verb.
    pub fn are(&self) -> String {
        format!("{self} {}", if self.len() == 1 { "is" } else { "are" })
    }
}

impl Display for Nodes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(self, NAMED))
    }
}

/// Lists what to do about a run, its nodes and its pods, or about the one pod that somebody asked about, the most urgent first.
pub fn all<'a>(survey: &'a Survey<'a>) -> Vec<Advice<'a>> {
    let is_run = survey.asked.is_none();
    let nodes =
        survey
            .nodes
            .iter()
            .enumerate()
            .flat_map(|(index, node)| match survey.shown_on(node) {
                none if none.is_empty() && !is_run => Vec::new(),
                pods => for_node(survey, index, &pods),
            });
    let pods = survey
        .shown()
        .iter()
        .flat_map(|pod| for_pod(survey, pod))
        // A pod that still ends by itself needs nobody.
        .filter(|advice| !is_run || !matches!(advice.what, What::SeeHang(Hang::Ending(_))));
    let run = is_run.then(|| for_run(survey)).into_iter().flatten();
    // If the pod waits for another one, that one is shown.
    let waiting = survey
        .waiting
        .filter(|_| survey.shown().is_empty())
        .map(|waiting| for_waiting(survey, waiting));
    let held = reach_held(survey).into_iter().chain(make_room(survey));
    let mut all = joined_up(
        survey,
        nodes.chain(pods).chain(run).chain(waiting).chain(held),
    );
    // Data is given up one pod at a time: a page has the command only if one pod needs it.
    let given_up = all
        .iter()
        .filter(|advice| advice.gives_up())
        .flat_map(|advice| &advice.pods.0)
        .copied()
        .unique_by(|pod| pod.facts.uid.as_str())
        .collect_vec();
    if given_up.len() > 1 {
        all.retain(|advice| !advice.gives_up());
        all.push(Advice::of_pods(What::GiveUpOneByOne, given_up, None));
    }
    all.sort_by_key(|advice| advice.press.is_none());
    all
}

/// Sorts advice, the worst damage first, and joins the same about several pods or nodes.
fn joined_up<'a>(survey: &Survey<'_>, all: impl Iterator<Item = Advice<'a>>) -> Vec<Advice<'a>> {
    // The node whose first pod is hit worst is first.
    let place = |it: &Advice<'_>| it.apart.map(|at| (survey.nodes[at].pods.first(), at));
    let sorted = all.sorted_by(|a, b| (&a.what, place(a)).cmp(&(&b.what, place(b))));
    let mut joined: Vec<Advice<'_>> = Vec::new();
    for advice in sorted {
        match joined.last_mut() {
            Some(first) if (&first.what, first.apart) == (&advice.what, advice.apart) => {
                first.pods.0.extend(advice.pods.0);
                first.nodes.0.extend(advice.nodes.0);
                first.press = first.press.max(advice.press);
            }
            _ => joined.push(advice),
        }
    }
    for advice in &mut joined {
        advice.nodes = Nodes::of(std::mem::take(&mut advice.nodes.0));
    }
    joined
}

/// Lists what to do about the limits, the history, and what was not read.
fn for_run<'a>(survey: &'a Survey<'a>) -> Vec<Advice<'a>> {
    let mut all = Vec::new();
    for node in &survey.left_tainted {
        all.push(Advice::new(
            What::TakeTaintOff(&node.name),
            Vec::new(),
            Some(Press::Unsure),
        ));
    }
    let not_known = match survey.limit() {
        Some(Limit::Unread(what)) => Some(what.as_str()),
        _ if survey.incomplete.is_some() => Some("the leases, which the file lacks"),
        _ => None,
    };
    if let Some(what) = not_known {
        all.push(Advice::new(
            What::SeeWhatIsNotKnown(what),
            Vec::new(),
            Some(Press::NotRead),
        ));
    }
    // Without leases, the file is to be saved again.
    for gap in survey.gaps.iter().filter(|_| survey.incomplete.is_none()) {
        let what = What::NotRead {
            first: &gap.first.what,
            more: gap.count - 1,
            cause: &gap.first.cause,
        };
        all.push(Advice::new(what, Vec::new(), Some(Press::NotRead)));
    }
    for stray in survey.strays {
        all.push(match stray {
            Stray::Attachment {
                node,
                attachment,
                is_gone,
            } => {
                let stays = if *is_gone {
                    format!("names {node}, which no longer exists")
                } else {
                    format!("does not go from {node}, which is not Ready")
                };
                let why = format!(
                    "VolumeAttachment {attachment} {stays}: until it is gone, no other node gets the volume."
                );
                Advice::new(What::SeeAttachment { attachment, why }, Vec::new(), None)
            }
            Stray::Pending(waiting) => for_waiting(survey, waiting),
        });
    }
    all.extend(for_history(survey));
    all
}

/// Returns what to do about what a pod waits for. Only you can bring back the volume that a silent node has. What else is
/// Ready of the pod's workload is not read.
fn for_waiting<'a>(survey: &Survey<'a>, waiting: &'a Waiting) -> Advice<'a> {
    let (nodes, press) = match &waiting.waits_for {
        WaitsFor::Nodes { nodes } => (
            nodes.iter().map(String::as_str).collect(),
            Some(Press::Missed),
        ),
        WaitsFor::Attachment { node, .. }
            if survey.node(node).is_some_and(|node| node.state.is_some()) =>
        {
            (vec![node.as_str()], Some(Press::Missed))
        }
        // A kubelet that works detaches it, and the step about a pod says more.
        WaitsFor::Attachment { .. } | WaitsFor::Pod { .. } => (Vec::new(), None),
    };
    Advice::new(What::SeeWaiting(waiting), nodes, press)
}

/// Returns the look at the first of the nodes that a limit holds because nobody knows which machines live, or at the first with
/// pods. A question is about the node of its pod alone, unless that is alive.
fn reach_held<'a>(survey: &Survey<'a>) -> Option<Advice<'a>> {
    let held = survey
        .nodes
        .iter()
        .filter(|node| {
            matches!(
                node.held,
                Some(Limit::MassOutage(_) | Limit::FailedTogether { .. })
            )
        })
        .filter(|node| node.known.is_some_and(NodeFacts::is_machine_down))
        .filter(|node| {
            let is_alive = matches!(node.state, Some(State::Alive(_)));
            survey
                .asked
                .is_none_or(|asked| asked.node.as_deref() == Some(node.name) && !is_alive)
        })
        .collect_vec();
    let first = held.iter().min_by_key(|node| node.pods.is_empty())?;
    let names = held.iter().map(|node| node.name).collect();
    Some(Advice {
        apart: survey.place(first.name),
        ..Advice::new(What::Reach, names, Some(Press::Unsure))
    })
}

/// Returns what lets pods start elsewhere. Nodes that have a look of their own have to be off before.
fn make_room<'a>(survey: &'a Survey<'a>) -> Option<Advice<'a>> {
    let pods = survey.with_code(ReasonCode::NoRoom)?;
    let mut advice = Advice::of_pods(What::MakeRoom, pods.0, Some(Press::Unsure));
    let nodes = &mut advice.nodes.0;
    nodes.retain(|name| {
        survey.node(name).is_some_and(|node| {
            node.volumes == Volumes::Stay
                && !survey
                    .pods_on(node)
                    .any(|pod| pod.wants_node_off() || pod.returns)
        })
    });
    advice.apart = nodes.first().and_then(|name| survey.place(name));
    Some(advice)
}

/// Lists what to do about what earlier runs did.
fn for_history<'a>(survey: &'a Survey<'a>) -> Vec<Advice<'a>> {
    let mut all = Vec::new();
    let press_of = |sets: &[&RememberedSet]| {
        sets.iter()
            .filter_map(|set| set.copies)
            .any(|it| it.ready <= it.wanted / 2)
            .then_some(Press::Missed)
    };
    let mut again = Vec::new();
    for set in survey.not_ready_again() {
        let awaited = survey.attachments_awaited(set);
        if awaited.is_empty() {
            again.push(set);
        }
        for (node, Attachment { name, attached, .. }) in awaited {
            let moves = if *attached {
                "detach from"
            } else {
                "attach to"
            };
            let what = What::SeeAttachment {
                attachment: name,
                why: format!(
                    "{set} Ready: VolumeAttachment {name} does not {moves} {node}. Do not delete it: see its error."
                ),
            };
            all.push(Advice::new(what, vec![node], press_of(&[set])));
        }
    }
    if let Some(worst) = again.first() {
        let namespace = &worst.namespace;
        let press = press_of(&again);
        let sets = listed(&in_turn(again, NAMED, |set| Some(&set.namespace)), NAMED);
        let what = What::NotReadyAgain { sets, namespace };
        all.push(Advice::new(what, Vec::new(), press));
    }
    for node in survey
        .history
        .nodes
        .iter()
        .filter(|node| node.may_have_run_twice())
    {
        let noted = &node.noted;
        let mut pods = noted
            .pods
            .iter()
            .filter(|it| it.attached || !it.is_replaced_early())
            .collect_vec();
        if pods.is_empty() {
            pods = noted.pods.iter().collect();
        }
        let what = What::CheckForTwoWriters {
            node: &noted.node,
            since: day(survey, noted.first_reap),
            pods: if pods.is_empty() {
                "pods that the run which deleted them could not name".to_owned()
            } else {
                listed(&in_turn(pods, 0, |pod| Some(&pod.namespace)), NAMES)
            },
            is_other_machine: node.now.state == NodeState::AnotherMachine,
        };
        let press = node.needs_you().then_some(Press::Unsure);
        all.push(Advice::new(what, Vec::new(), press));
    }
    all
}

/// Returns the exit code of a run with `all` this advice. That of a question differs from 0 only if something could not be
/// read.
pub fn exit(survey: &Survey<'_>, all: &[Advice<'_>]) -> Exit {
    let is_run = survey.asked.is_none();
    let any = |is: fn(&PodView<'_>) -> bool| survey.terminating().any(is);
    if is_run && survey.settings.exit_on_manual && all.iter().any(|it| it.rings(survey)) {
        Exit::Manual
    } else if is_run && any(|pod| pod.is_held() && pod.code() != ReasonCode::FactsUnread) {
        Exit::Held
    } else if !survey.errors.is_empty()
        || any(|pod| pod.code() == ReasonCode::FactsUnread)
        || any(|pod| pod.outcome_code().is_some_and(OutcomeCode::is_failure))
    {
        Exit::Incomplete
    } else {
        Exit::Done
    }
}

/// Lists the nodes whose machines have to be looked at before something is harmed, each with what to do.
pub fn to_look_at(survey: &Survey<'_>) -> Vec<(String, String)> {
    all(survey)
        .into_iter()
        .filter(|advice| {
            matches!(advice.what, What::SeeMachine { .. }) && advice.press == Some(Press::Harm)
        })
        .flat_map(|advice| {
            let Step { nodes, what, .. } = advice.step(survey);
            nodes.into_iter().map(move |name| (name, what.clone()))
        })
        .collect()
}

/// Lists what to do about the node at that index because of these pods on it. Nothing in the list contradicts its state: a
/// node that is alive, fenced, being deleted, no machine or a needed member of etcd is never powered off.
fn for_node<'a>(survey: &'a Survey<'a>, index: usize, pods: &[&'a PodView<'a>]) -> Vec<Advice<'a>> {
    let node = &survey.nodes[index];
    let mut all = Vec::new();
    let advice = |what, press| Advice::new(what, vec![node.name], press);
    let asks = |code| pods.iter().any(|pod| pod.asks().contains(&code));
    if asks(ReasonCode::EtcdMember)
        && let Some(quorum) = node.quorum()
    {
        let members = quorum.not_ready.iter().map(String::as_str).collect_vec();
        let (reach, drop) = (What::ReachMembers(quorum), What::DropMembers(quorum));
        all.push(Advice::new(reach, members.clone(), Some(Press::Unsure)));
        all.push(Advice::new(drop, members, None));
    }
    if asks(ReasonCode::KubeletAlive) {
        let fault = node
            .known
            .filter(|known| known.ready == Ready::False)
            .and_then(|known| known.kubelet_says);
        all.push(Advice {
            apart: Some(index),
            ..advice(What::Repair { fault }, press_if_missed(pods))
        });
    }
    let on_disk = pods.iter().copied().filter(|pod| pod.returns).collect_vec();
    let press_of_data = press_if_missed(&on_disk);
    let is_suspect = node.is_suspect();
    if node.held.is_some() {
        return all;
    }
    // The step that looks at a machine says so, as long as nobody has seen it off.
    if !on_disk.is_empty() && !is_suspect {
        // A page names those that are missed, if there are some.
        let back = on_disk
            .iter()
            .copied()
            .filter(|pod| press_of_data.is_none() || pod.is_missed())
            .collect();
        all.push(Advice::of_pods(What::SwitchOn, back, press_of_data));
    }
    if !is_suspect {
        return all;
    }
    let has_moved = matches!(
        node.volumes,
        Volumes::MovedAt(_) | Volumes::MoveAt(_) | Volumes::MayHaveMoved
    );
    let wants_off = pods.iter().any(|pod| pod.wants_node_off());
    let for_mark = pods
        .iter()
        .copied()
        .filter(|pod| {
            let may_end = node.may_taint && pod.asks().contains(&ReasonCode::Finalizers);
            may_end || pod.asks().contains(&ReasonCode::SharedDisk)
        })
        .collect_vec();
    let needs = Needs {
        // A question is about one of the pods on the node.
        disk: survey.pods_on(node).any(|pod| pod.returns),
        files: survey.may_lack_pods
            || survey
                .pods_on(node)
                .any(|pod| pod.facts.bound || pod.asks().contains(&ReasonCode::Finalizers)),
        history_alone: !wants_off,
        mark: node.volumes != Volumes::Stay || !for_mark.is_empty(),
    };
    let press = match node.volumes {
        Volumes::Stay => press_of_data.or(press_if_missed(&for_mark)),
        Volumes::MayHaveMoved => Some(Press::NotRead),
        _ => Some(Press::Harm),
    };
    let look = match node.volumes {
        _ if !wants_off && !has_moved => None,
        Volumes::Stay if !needs.disk && !needs.mark => {
            // The controller of a finalizer can be there.
            let held = pods
                .iter()
                .copied()
                .filter(|pod| pod.asks().contains(&ReasonCode::Finalizers));
            Some(advice(
                What::BringBack,
                press_if_missed(&held.collect_vec()),
            ))
        }
        volumes => Some(Advice {
            apart: (survey.suspects <= NAMED).then_some(index),
            ..advice(What::SeeMachine { volumes, needs }, press)
        }),
    };
    if let Some(look) = look {
        if let Some(quorum) = node.quorum().filter(|quorum| quorum.has_no_spare()) {
            all.push(advice(What::AskMembers(quorum), look.press));
        }
        all.push(look);
    }
    all
}

/// Returns that these pods press, if one of them is missed.
fn press_if_missed(pods: &[&PodView<'_>]) -> Option<Press> {
    pods.iter()
        .any(|pod| pod.is_missed())
        .then_some(Press::Missed)
}

/// Lists what to do about a pod.
fn for_pod<'a>(survey: &'a Survey<'a>, pod: &'a PodView<'a>) -> Vec<Advice<'a>> {
    let missed = press_if_missed(&[pod]);
    let mut all = Vec::new();
    // The volume of a PVC that somebody deleted before the node failed goes with the pod.
    for tie in &pod.reason.ties {
        if let TieKind::Goes(Wanted::Deleted(_) | Wanted::DeletedAndHeld { .. }) = tie.kind
            && let Some(claim) = pod.judged.claim(&tie.pvc)
            && let Some(volume) = claim.read.volume()
        {
            let (volume, claim) = (volume.name.as_str(), tie.pvc.as_str());
            all.push((What::KeepData { volume, claim }, Some(Press::Harm)));
        }
    }
    if let Some(outcome) = pod.outcome.filter(|outcome| outcome.code().is_failure()) {
        let (code, why) = (outcome.code(), outcome.sentence());
        all.push((What::NotDeleted { code, why }, missed));
    }
    // The step about the finalizers of a pod that needs you says more.
    if let Some(hang) = pod.hang.filter(|_| pod.fate != Verdict::Manual) {
        let ends = matches!(hang, Hang::Ending(_));
        all.push((What::SeeHang(hang), missed.filter(|_| !ends)));
    }
    for code in pod.asks() {
        let can_wait = [ReasonCode::LocalVolume, ReasonCode::HostPath].contains(code);
        for what in for_reason(survey, pod, *code) {
            let press = missed.filter(|_| !can_wait || matches!(what, What::SeeWhy(_)));
            all.push((what, press));
        }
    }
    let is_said_of_node = pod.wants_node_off()
        && survey.node_of(pod).is_some_and(NodeView::is_suspect)
        || pod.fate_code.is_of_live_machine();
    if all.is_empty() && !pod.asks().is_empty() && !is_said_of_node {
        all.push((What::SeeWhy(pod.fate_code), missed));
    }
    all.into_iter()
        .map(|(what, press)| Advice::of_pods(what, vec![pod], press))
        .collect()
}

/// Lists what to do about a reason that needs you, besides what is to be done about its node. A reason without a row is
/// explained elsewhere.
fn for_reason<'a>(survey: &Survey<'a>, pod: &'a PodView<'a>, code: ReasonCode) -> Vec<What<'a>> {
    match code {
        // Their node's steps say what to do.
        ReasonCode::EtcdMember | ReasonCode::KubeletAlive | ReasonCode::SharedDisk => Vec::new(),
        ReasonCode::Finalizers => pod
            .facts
            .holding_finalizers(pod.node.is_some())
            .map(|finalizer| match survey.node_of(pod) {
                Some(node) if is_held_until_the_end(finalizer) => What::EndPods {
                    finalizer,
                    may_taint: node.may_taint,
                },
                _ => What::RepairController {
                    finalizer,
                    by: pod.facts.finalizers_set_by.get(finalizer),
                },
            })
            .collect(),
        ReasonCode::KosmosLeaf => {
            let cluster = pod
                .node
                .and_then(|node| node.leaf.as_ref()?.cluster.as_deref())
                .unwrap_or("the leaf cluster");
            vec![What::LookInLeafCluster(cluster)]
        }
        ReasonCode::VirtualNode | ReasonCode::EdgeNode | ReasonCode::LeafNode => {
            vec![What::RepairLeaf]
        }
        ReasonCode::LocalVolume => pod
            .reason
            .ties
            .iter()
            .filter_map(|tie| for_tie(pod, tie))
            .collect(),
        ReasonCode::HostPath => {
            let paths = pod.facts.host_paths.iter().join(", ");
            vec![What::GiveUpPath { paths }]
        }
        _ => vec![What::SeeWhy(code)],
    }
}

/// Returns what to do about a PVC whose volume other nodes do not reach.
fn for_tie<'a>(pod: &'a PodView<'a>, tie: &'a Tie) -> Option<What<'a>> {
    let claim = pod.judged.claim(&tie.pvc);
    match tie.kind {
        TieKind::Confined(_) => return Some(What::SeeWhy(ReasonCode::LocalVolume)),
        TieKind::Pinned(_) if claim.is_none_or(|it| it.read.deletion.is_none()) => {}
        _ => return None,
    }
    let storage = pod.judged.storage.as_ref();
    let operator = pod.facts.operated_by(storage);
    let read = storage.and_then(|it| it.set.as_ref());
    let owner = claim.and_then(|it| it.read.owner.as_ref());
    let again = match (pod.facts.stateful_set(), owner.or(operator)) {
        (Some(_), _) if claim.is_some_and(|it| it.templated) => Again::ByTemplate(operator),
        (_, Some(owner)) => Again::ByOperator(owner),
        (Some(set), None) if !matches!(read, Some(Ok(_))) => Again::NotKnown(set),
        (_, None) => Again::ByNobody,
    };
    Some(What::GiveUp {
        claim: &tie.pvc,
        finalizers: claim.map_or(&[][..], |it| &it.read.finalizers[..]),
        is_retained: tie.retained,
        again,
    })
}

/// Returns the command that discards the data of a PVC.
fn discards(survey: &Survey<'_>, pod: &PodView<'_>, claim: &str) -> Option<String> {
    let read = &pod.judged.claim(claim)?.read;
    read.volume()?;
    survey
        .target
        .delete_claim(pod.node?, &pod.facts.namespace, claim, &read.uid)
}

/// Says what must not be done to these pods and their nodes.
pub fn never<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let is_alive = |pod: &PodView<'_>| pod.code().is_of_live_machine();
    let needs_you = |pod: &PodView<'_>| pod.fate == Verdict::Manual && !is_alive(pod);
    // The steps for these reasons delete the pod by hand.
    let is_kept = |pod: &PodView<'_>| {
        let by_hand = [ReasonCode::HostPath, ReasonCode::OwnerKind];
        needs_you(pod)
            && !pod
                .reason
                .asks
                .iter()
                .chain([&pod.fate_code])
                .any(|code| by_hand.contains(code))
    };
    let strays = survey.strays.iter().filter(|_| survey.asked.is_none());
    let waits = |is: fn(&Waiting) -> bool| {
        survey.waiting.is_some_and(is)
            || strays
                .clone()
                .any(|stray| matches!(stray, Stray::Pending(waiting) if is(waiting)))
    };
    let is_attached = waits(Waiting::is_for_attachment)
        || strays
            .clone()
            .any(|stray| matches!(stray, Stray::Attachment { is_gone: false, .. }));
    let tainted = joined(
        survey
            .nodes
            .iter()
            .filter(|node| node.state.is_some() && node.known.is_some_and(|it| it.out_of_service))
            .map(|node| node.name),
        " or ",
    );
    let is_tied = waits(|waiting| matches!(waiting.waits_for, WaitsFor::Nodes { .. }));
    let option = match survey.limit() {
        Some(Limit::MassOutage(_)) => Some("--max-not-ready-percent=100"),
        Some(Limit::FailedTogether { .. }) => Some("--max-failed-together=0"),
        _ => None,
    };
    // The machine of the asked pod can have other pods, too.
    let asked = survey.asked.map(|pod| pod.node.as_deref());
    let moving = survey
        .nodes
        .iter()
        .filter(|node| node.is_suspect() && node.volumes != Volumes::Stay)
        .map(|node| node.name)
        .filter(|name| asked.is_none_or(|asked| asked == Some(*name)));
    let moving = Nodes::of(moving);
    let before = (!moving.is_empty()).then(|| format!("before {} off", moving.are()));
    let by_hand = survey.select(|pod| needs_you(pod) && !is_kept(pod));
    let kept = survey.select(is_kept).map(|_| match by_hand {
        Some(_) => ", or force-delete pods that need you except by a step",
        None => ", or force-delete pods that need you",
    });
    let texts = [
        survey.with_code(ReasonCode::EtcdMember).map(|pods| {
            let names = pods
                .iter()
                .filter_map(|pod| pod.node?.quorum.as_deref())
                .flat_map(|it| &it.not_ready)
                .unique()
                .join(" or ");
            format!(
                "power off {names} before you know that it is dead: the API server may need it. Never restart, drain or upgrade a member that is Ready: with one less, the API server can stop. Never delete a Node except by a step."
            )
        }),
        option.map(|option| {
            format!("set {option} or force-delete a pod before you know that these nodes are off.")
        }),
        survey.with_code(ReasonCode::NoRoom).map(|pods| {
            format!("force-delete {pods} before you have SEEN the machine off.")
        }),
        survey.select(is_alive).map(|_| {
            "force-delete pods on a machine that is alive: they would run twice.".to_owned()
        }),
        match (survey.select(needs_you), before) {
            (Some(_), before) => {
                let any = before.map(|before| format!(" Never force-delete any other pod {before}."));
                Some(format!(
                    "strip a finalizer{}.{} Never delete a Node, a PVC or a VolumeAttachment except by a step.",
                    kept.unwrap_or_default(),
                    any.unwrap_or_default()
                ))
            }
            (None, Some(before)) => Some(format!(
                "force-delete pods by hand, or delete a Node or a VolumeAttachment, {before}."
            )),
            (None, None) if is_attached => {
                Some("delete a VolumeAttachment, or its finalizer, before you have seen its node off.".to_owned())
            }
            (None, None) => None,
        },
        tainted.map(|names| {
            format!("switch {names} on before you take its out-of-service taint off: it detaches volumes that are in use.")
        }),
        is_tied.then(|| {
            "delete the PVC of a pod that waits for a node: the only copy of its data can be there.".to_owned()
        }),
    ];
    let hang = survey
        .select(|pod| {
            pod.hang
                .is_some_and(|hang| survey.asked.is_some() || hang.code() != HangCode::Ending)
                && !needs_you(pod)
        })
        .map(|pods| format!("force-delete {pods}, or strip a finalizer: containers can still run, volumes can still be mounted, and what a finalizer protects is left behind."));
    texts.into_iter().flatten().chain(hang).collect()
}

/// Names a machine with what finds its console: its address, its zone, and the end of its provider ID.
fn with_address(name: &str, known: Option<&NodeFacts>) -> String {
    let words = known.into_iter().flat_map(|node| {
        let zone = node
            .zone
            .as_ref()
            .and_then(|zone| zone.0[1].as_deref())
            .map(|zone| format!("zone {}", Foreign::<60>::from(zone)));
        let [address, machine] =
            [&node.address, &node.machine].map(|it| it.as_ref().map(Foreign::to_string));
        [address, zone, machine].into_iter().flatten()
    });
    joined(words, ", ").map_or_else(|| name.to_owned(), |words| format!("{name} ({words})"))
}

/// Says which machine to look at, and by when.
fn to_see(nodes: &Nodes<'_>, spot: &str, volumes: Volumes, needs: Needs) -> String {
    let (by, since) = match volumes {
        Volumes::MovedAt(at) => (String::new(), format!("Since {},", clock(at))),
        Volumes::MayHaveMoved => (
            String::new(),
            "What earlier runs deleted there is not known: assume that".to_owned(),
        ),
        Volumes::MoveAt(at) => (format!(" before {}", clock(at)), "From then on,".to_owned()),
        Volumes::MoveAfterRun(at) => {
            let by = at.map_or_else(|| "the next run".to_owned(), clock);
            return format!("Look at the console of {spot} before {by}.");
        }
        Volumes::Stay => return format!("Look at the console of {spot}."),
    };
    let [whose, unless, disk] = match nodes.len() {
        1 => ["its", "it is off or boots", "its disk"],
        _ => ["their", "they are off or boot", "their disks"],
    };
    let off = match needs {
        Needs {
            history_alone: true,
            ..
        } => format!("See that the machine is off: {spot}{by}"),
        _ if needs.disk || needs.files => format!("RESET {spot}{by}, unless {unless}"),
        _ => format!("POWER OFF {spot}{by}, unless {unless}"),
    };
    let reset = match needs {
        Needs { disk: true, .. } => format!(" Pods need {disk}, so {ERASES}."),
        Needs { files: true, .. } => format!(" Something can need {disk}, so {ERASES}."),
        _ => String::new(),
    };
    format!(
        "{off}. {since} other nodes can use {whose} volumes: if {nodes} still runs, two machines can write to them, unless the storage prevents it.{reset}"
    )
}

/// Spells a moment of the day.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%RZ").to_string()
}
