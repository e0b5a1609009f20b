//! What to do, as data. Three functions make it: of the run, of a node, and of a pod. The same advice about several pods or
//! nodes is one. Each kind has its urgency, its harm, its command and its sentence in one place.

use std::fmt::{self, Display, Formatter};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    NAMED, NAMES,
    document::Case,
    hang::{Hang, HangCode, kubelet_service},
    head::day,
    survey::{NoTaint, NodeView, PodView, Survey, Volumes},
};
use crate::{
    codes::codes,
    exit::Exit,
    facts::{
        KubeletSays, NodeFacts, Owner, Quorum, Ready, Stray, Waiting, WaitsFor,
        is_held_until_the_end,
    },
    history::{NodeState, Reaped, RememberedSet},
    judge::{Limit, ReasonCode, Tie, TieKind, Verdict, Wanted},
    outcome::OutcomeCode,
    selector::Target,
    words::{Foreign, human_duration, joined, listed, natural, prefixed},
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
    /// Whether it cannot wait: a workload of its pods has no other Ready pod, or at most half, or that is not known; or
    /// nobody was told yet.
    is_pressing: bool,
    /// The place of its first node, if the same advice about other nodes is apart.
    apart: Option<usize>,
}

/// What is to be done. The order of the variants is that of a page, the most urgent first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum What<'a> {
    // Volumes are detached while they are mounted.
    TakeTaintOff(&'a str),
    // The report lacks something: repeat the run.
    CorrectFilter,
    SaveAgain,
    // A machine destroys data as it comes back.
    KeepData {
        volume: &'a str,
        claim: &'a str,
    },
    // Nobody knows which machines live.
    ReachMembers(&'a Quorum),
    AskMembers(&'a Quorum),
    Reach,
    MakeRoom,
    SeeWhatIsNotKnown(&'a str),
    // A machine lives: repair what fails there.
    Repair(Option<KubeletSays>),
    // It cannot be repaired.
    PowerOffAlive {
        silence: SignedDuration,
    },
    DeleteMember(&'a str),
    ConfirmOneOff(&'a str),
    // A machine that nobody has seen off can write to its volumes beside another one, or its disk is needed.
    SeeMachine {
        volumes: Volumes,
        needs: Needs,
    },
    FindOldMachine(&'a str),
    SwitchOn,
    // A machine may still run.
    PowerOff,
    // Pods may run elsewhere, or twice.
    RepairLeaf,
    LookInLeafCluster(&'a str),
    CheckForTwoWriters {
        node: &'a str,
        since: String,
        pods: String,
    },
    // Nothing else but a machine or its disk helps.
    BringBack,
    // Something was not deleted, is not back, or was not read.
    NotDeleted {
        code: OutcomeCode,
        why: String,
    },
    SeeHanging {
        set: String,
        attachment: &'a str,
        does_not: &'static str,
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
    GiveUpAndMakeAgain {
        claim: &'a str,
        finalizers: &'a [Foreign],
        later: SignedDuration,
        operator: Option<&'a Owner>,
        unread_set: Option<&'a str>,
    },
    GiveUp {
        is_retained: bool,
        finalizers: &'a [Foreign],
        later: SignedDuration,
        claim: &'a str,
        operator: Option<&'a Owner>,
    },
    LeaveToOperator {
        claim: &'a str,
        owner: &'a Owner,
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
    SeeKosmos,
    SeeAttachment {
        node: &'a str,
        attachment: &'a str,
        is_gone: bool,
    },
    SeePending(&'a Waiting),
    // Only if somebody asks about one pod.
    NoTaint(&'a NoTaint),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    /// Something is harmed at a known time.
    Harm,
    /// A workload has no other Ready pod, or at most half, or that is not known, and only you can bring it back.
    Missed,
    /// Nobody knows which machines live, or live twice.
    Unsure,
    /// Something was not read that can be one of these.
    NotRead,
}

/// The most nodes of a step, each with the command that confirms it off.
const CONFIRMED: usize = 5;
/// For how long a node is opted out that nobody can look at.
const LOOKED_AWAY: SignedDuration = SignedDuration::from_hours(1);
/// For how long after a failure a workload that only you can bring back wakes somebody.
const RINGS: SignedDuration = SignedDuration::from_hours(2);

/// For what a machine that nobody has seen off is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    /// Pods need its disk.
    pub disk: bool,
    /// The mark that it is off lets a run delete pods.
    pub mark: bool,
    /// Nothing but the history speaks of it, which alone powers no machine off.
    pub history_alone: bool,
    /// A workload of these pods has no other Ready pod, or at most half, or that is not known.
    pub is_missed: bool,
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
#[derive(Debug, Clone, Default)]
pub struct Pods<'a>(pub Vec<&'a PodView<'a>>);

/// The names of nodes that an advice is about, in natural order.
#[derive(Debug, Clone, Default)]
pub struct Nodes<'a>(pub Vec<&'a str>);

impl<'a> Advice<'a> {
    /// Makes advice about the run as a whole.
    fn new(what: What<'a>) -> Self {
        Self::of_nodes(what, Vec::new(), false)
    }

    fn of_nodes(what: What<'a>, nodes: Vec<&'a str>, is_pressing: bool) -> Self {
        Self {
            what,
            pods: Pods::default(),
            nodes: Nodes(nodes),
            is_pressing,
            apart: None,
        }
    }

    fn of_pods(what: What<'a>, pods: Vec<&'a PodView<'a>>) -> Self {
        let is_missed = pods.iter().any(|pod| pod.is_missed());
        let pods = Pods(pods);
        Self {
            pods: pods.clone(),
            ..Self::of_nodes(what, pods.nodes().0, is_missed)
        }
    }

    /// Returns why it cannot wait until working hours; `None` if it can.
    pub fn press(&self) -> Option<Press> {
        Some(match &self.what {
            What::KeepData { .. } => Press::Harm,
            What::SeeMachine { volumes, needs } => match volumes {
                Volumes::Stay if needs.is_missed => Press::Missed,
                Volumes::Stay => return None,
                Volumes::MayHaveMoved => Press::NotRead,
                _ => Press::Harm,
            },
            What::TakeTaintOff(_)
            | What::ReachMembers(_)
            | What::Reach
            | What::MakeRoom
            | What::DeleteMember(_)
            | What::ConfirmOneOff(_) => Press::Unsure,
            What::FindOldMachine(_) | What::CheckForTwoWriters { .. } if self.is_pressing => {
                Press::Unsure
            }
            What::CorrectFilter
            | What::SaveAgain
            | What::SeeWhatIsNotKnown(_)
            | What::NotRead { .. } => Press::NotRead,
            What::AskMembers(_)
            | What::Repair(_)
            | What::PowerOffAlive { .. }
            | What::SwitchOn
            | What::RepairLeaf
            | What::LookInLeafCluster(_)
            | What::BringBack
            | What::NotDeleted { .. }
            | What::SeeHanging { .. }
            | What::NotReadyAgain { .. }
            | What::SeeWhy(_)
            | What::SeeHang(Hang::Finalizer { .. } | Hang::Other(_))
            | What::RepairController { .. }
            | What::EndPods { .. }
                if self.is_pressing =>
            {
                Press::Missed
            }
            _ => return None,
        })
    }

    /// Reports how soon it is to be done.
    pub fn when(&self) -> When {
        self.press().map_or(When::Later, |_| When::Now)
    }

    /// Reports whether somebody has to be woken. What only brings a workload back rings for two hours.
    pub fn rings(&self, survey: &Survey<'_>) -> bool {
        match self.press() {
            None => false,
            // No run looks at pods on Ready nodes.
            _ if matches!(self.what, What::SeeHang(_)) => false,
            Some(Press::Missed) => {
                let is_old = |name: &&str| {
                    let since = survey.node(name).and_then(|node| node.since);
                    since.is_some_and(|since| survey.now.duration_since(since) >= RINGS)
                };
                !self.nodes.0.iter().all(is_old)
            }
            // An empty filter, and what was not read beside Ready nodes, wakes nobody.
            Some(Press::NotRead) => !survey.down().is_empty() && self.what != What::CorrectFilter,
            Some(Press::Harm | Press::Unsure) => true,
        }
    }

    /// Returns the harm that its command does.
    pub fn harm(&self) -> Option<Harm> {
        match self.what {
            What::GiveUp { .. } => Some(Harm::Data),
            What::DeleteMember(_) | What::ConfirmOneOff(_) => Some(Harm::Pods),
            _ => None,
        }
    }

    /// Returns what to paste. A command is about one node, or one pod; of nodes that are only supposed to be dead, none is
    /// printed.
    pub fn command(&self, survey: &Survey<'_>) -> Option<String> {
        if !survey.settings.task.suppose_dead().is_empty() {
            return None;
        }
        let kubectl = survey.kubectl;
        match self.what {
            What::KeepData { volume, .. } => {
                let retain = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
                Some(kubectl.command(&["patch", "pv", volume, "-p", retain]))
            }
            What::TakeTaintOff(name) => {
                let mut nodes = survey.left_tainted.iter();
                let node = nodes.find(|node| node.name == name)?;
                Some(kubectl.take_taint_off(node))
            }
            What::LookInLeafCluster(cluster) => {
                let there = Target {
                    kubeconfig: Some(format!("{cluster}.kubeconfig").into()),
                    context: None,
                };
                let pods = self.pods.0.iter();
                let mut namespaces = pods.map(|pod| pod.judged.pod.namespace.as_str());
                let namespace = namespaces.all_equal_value().ok()?;
                Some(there.command(&["get", "pods", "-n", namespace, "-o", "wide"]))
            }
            What::DeleteMember(node) => kubectl.delete_node(survey.node(node)?.known?),
            What::ConfirmOneOff(node) => kubectl.confirm_off(survey.node(node)?.known?, false),
            What::NotReadyAgain { namespace, .. } => {
                let words = ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"];
                Some(kubectl.command(&words))
            }
            What::GiveUp { claim, .. } => {
                let [pod] = self.pods.0[..] else { return None };
                let read = &pod.judged.claim(claim)?.read;
                let namespace = &pod.judged.pod.namespace;
                read.volume()?;
                kubectl.delete_claim(pod.node?, namespace, claim, &read.uid)
            }
            What::SeeKosmos => Some(kubectl.command(&[
                "logs",
                "-n",
                "kosmos-system",
                "deployment/clustertree-cluster-manager",
                "--tail=50",
            ])),
            What::SeeHanging { attachment, .. } | What::SeeAttachment { attachment, .. } => {
                Some(kubectl.command(&["describe", "volumeattachment", attachment]))
            }
            What::SeeHang(hang) => match self.pods.0[..] {
                [pod] if !hang.is_of_kubelet() => hang.command(kubectl, pod),
                _ => None,
            },
            What::SeeWaiting(waiting) => Some(match &waiting.waits_for {
                WaitsFor::Pod { name, .. } => {
                    kubectl.command(&["describe", "pod", "-n", &waiting.namespace, name])
                }
                WaitsFor::Attachment { attachment, .. } => {
                    kubectl.command(&["describe", "volumeattachment", attachment])
                }
                WaitsFor::Nodes { nodes } => kubectl.command(&["describe", "node", nodes.first()?]),
            }),
            _ => None,
        }
    }

    /// Says what to do.
    pub fn sentence(&self, survey: &Survey<'_>) -> String {
        let Self { pods, nodes, .. } = self;
        let verb = |one, many| pods.verb(one, many);
        let alone = || {
            let node = self.apart.map(|place| &survey.nodes[place]);
            node.map_or_else(|| nodes.to_string(), spot)
        };
        match &self.what {
            What::TakeTaintOff(node) => format!(
                "Take the out-of-service taint off {node} now: on a Ready node, it detaches volumes that are mounted."
            ),
            What::CorrectFilter => "Correct the namespace filter, and run again.".to_owned(),
            What::SaveAgain => {
                "Save the file again, with leases, before you act (command under NOT SEEN)."
                    .to_owned()
            }
            What::KeepData { volume, claim } => format!(
                "{pods}: set volume {volume} to Retain before {nodes} comes back. PVC {claim} is being deleted, and the kubelet destroys the data as it ends the pod."
            ),
            What::ReachMembers(quorum) => to_reach(quorum),
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
            What::Reach => format!("Look at the console of {}.", alone()),
            What::MakeRoom => {
                let back = Some(nodes).filter(|nodes| !nodes.0.is_empty());
                let back = prefixed(", or bring back ", back);
                format!("Add or uncordon a node on which {pods} can start{back}.")
            }
            What::SeeWhatIsNotKnown(what) => {
                format!("See why this is not known, and run again: {what}.")
            }
            What::Repair(fault) => format!("Log in to {}, and {}", alone(), to_repair(*fault)),
            What::PowerOffAlive { silence } => format!(
                "Only if that fails, power {nodes} off, which stops what runs there: after {} of silence, a run force-deletes the pods.",
                human_duration(*silence)
            ),
            What::DeleteMember(node) => format!(
                "Only if the datastore is elsewhere, or was reset or restored to fewer members, and {node} is gone for good: delete its Node object, which deletes its pods."
            ),
            What::ConfirmOneOff(node) => format!(
                "Only once you have SEEN {node} off, confirm that: the next run deletes its pods. (Each node by its own name.)"
            ),
            What::SeeMachine { volumes, needs } => to_see(nodes, &alone(), *volumes, *needs),
            What::FindOldMachine(node) => format!(
                "Another machine has the name {node}, and nobody saw the old one off: find it, and see that it is off."
            ),
            What::SwitchOn => format!(
                "Once {} off, {}",
                nodes.are("was", "were"),
                to_switch_on(pods, nodes)
            ),
            What::PowerOff => format!(
                "Power {nodes} off, unless {} boots: old containers can still run there.",
                if nodes.0.len() == 1 {
                    "it"
                } else {
                    "one of them"
                }
            ),
            What::RepairLeaf => format!(
                "{nodes} is a leaf node: repair it, or the link to it. Its own agent then ends {pods}."
            ),
            What::LookInLeafCluster(cluster) => format!(
                "Look in {cluster} for {pods} BEFORE you repair the link: the repair stops what runs there."
            ),
            What::CheckForTwoWriters {
                node, since, pods, ..
            } => format!(
                "On {node}, these can have run beside their replacements: {pods}. Let each owner check the data (logs, the application's own check), and keep the backups from before {since}. If you find two writers, stop the application before it writes again."
            ),
            What::BringBack => format!("Bring {nodes} back: {}", to_switch_on(pods, nodes)),
            What::NotDeleted { code, why } => format!(
                "See why {pods} {} not deleted [{code}]: {why}",
                verb("was", "were")
            ),
            What::SeeHanging {
                set,
                attachment,
                does_not,
            } => format!("{set} Ready: VolumeAttachment {attachment} does not {does_not} {nodes}."),
            What::NotReadyAgain { sets, namespace } => format!(
                "Not Ready again since pods were deleted: {sets}. Unless another step explains it, see the events of namespace {namespace}: {SHOWS_LIFE}."
            ),
            What::NotRead {
                first,
                more: 0,
                cause,
            } => format!("Not read: {first}: {cause}"),
            What::NotRead { first, more, cause } => {
                format!("Not read: {first}, and {more} more like it: {cause}")
            }
            What::GiveUpPath { paths } => format!(
                "{pods} {} data in {paths} on the disk of {nodes}. Only if that may be lost, delete the pod by hand (book: Data on a dead node).",
                verb("keeps", "keep")
            ),
            What::GiveUpAndMakeAgain {
                claim,
                finalizers,
                later,
                operator,
                unread_set,
            } => format!(
                "Only if {nodes} is lost for good, give up the data of {pods}: delete PVC {claim}.{} A run {} later deletes the pod. {}",
                waits_for(finalizers),
                human_duration(*later),
                made_again(*operator, *unread_set)
            ),
            What::GiveUp {
                is_retained,
                finalizers,
                later,
                operator,
                ..
            } => {
                let data = if *is_retained {
                    "its volume stays, by its reclaim policy Retain"
                } else {
                    "its volume is destroyed"
                };
                format!(
                    "Only if {nodes} is lost for good, give up the data of {pods}: delete its PVC ({data}; nothing checks for other copies).{} A run {} later deletes the pod{}",
                    waits_for(finalizers),
                    human_duration(*later),
                    made_by_set(*operator)
                )
            }
            What::LeaveToOperator { claim, owner } => format!(
                "Only if {nodes} is lost for good: PVC {claim} of {pods} belongs to {owner}, whose operator replaces it."
            ),
            What::GiveUpOneByOne => format!(
                "Only if {nodes} is lost for good: give up data one pod at a time, and wait for Ready in between. Leave pods without another Ready pod for last (pod-reaper explain POD has the command)."
            ),
            What::SeeWhy(code) => format!(
                "{pods} [{code}]: see why (pod-reaper explain POD), and what to do (book: Three in the morning)."
            ),
            What::SeeHang(hang) => hang.look(pods),
            What::SeeWaiting(waiting) if survey.waiting.is_some() => {
                format!("See what holds {}:", waiting.waits_for)
            }
            What::SeeWaiting(waiting) => format!("{waiting}."),
            What::RepairController { finalizer, by } => format!(
                "{pods} {} held by finalizer {finalizer}{}: repair its controller.",
                verb("is", "are"),
                prefixed(", set by ", *by)
            ),
            What::EndPods {
                finalizer,
                may_taint,
            } => {
                let are = nodes.are("is", "are");
                let end = if *may_taint {
                    format!("If {are} off, confirm that: the line ends {pods}.")
                } else {
                    format!("It sees that once {are} back, or once the Node object is deleted.")
                };
                format!(
                    "{pods} {} held by finalizer {finalizer}, whose controller waits for the end of the pod. {end}",
                    verb("is", "are")
                )
            }
            What::SeeKosmos => "See why Kosmos does not reach the leaf cluster.".to_owned(),
            What::SeeAttachment {
                node,
                attachment,
                is_gone,
            } => {
                let what = if *is_gone {
                    format!("names {node}, which no longer exists")
                } else {
                    format!("does not go from {node}, which is not Ready")
                };
                format!(
                    "VolumeAttachment {attachment} {what}: until it is gone, no other node gets the volume."
                )
            }
            What::SeePending(waiting) => {
                format!("{waiting}. Only if its data is lost for good, delete the PVC.")
            }
            What::NoTaint(why) => {
                format!("Do not set the out-of-service taint on {nodes}: {why}.")
            }
        }
    }

    /// Lists what one may find, and what to do then.
    pub fn cases(&self, survey: &Survey<'_>) -> Vec<Case> {
        let case = |found, what: String| Case {
            found,
            what,
            commands: Vec::new(),
            harms: None,
        };
        let is_supposed = !survey.settings.task.suppose_dead().is_empty();
        let confirm = |names: &[&str], what: &str| {
            let nodes = names.iter().filter_map(|name| survey.node(name));
            let nodes = nodes.filter(|_| !is_supposed).take(CONFIRMED);
            let commands = nodes.clone().filter_map(|node| {
                let may_taint = node.may_taint.is_ok();
                survey.kubectl.confirm_off(node.known?, may_taint)
            });
            let commands = commands.collect_vec();
            let frees = if nodes.clone().any(|node| node.may_taint.is_ok()) {
                " It takes a minute, and frees volumes within seconds."
            } else {
                ""
            };
            let and_so_on = if names.len() > commands.len() && !is_supposed {
                " And so on: pod-reaper explain POD has the command of each node."
            } else {
                ""
            };
            Case {
                harms: (!commands.is_empty()).then_some(Harm::Pods),
                commands,
                ..case("Off", format!("{what}{frees}{and_so_on}"))
            }
        };
        let names = &self.nodes.0;
        match &self.what {
            What::SeeHang(hang) if hang.is_of_kubelet() => {
                let log = match self.pods.0[..] {
                    [pod] => hang.command(survey.kubectl, pod),
                    _ => None,
                };
                let says = log
                    .as_ref()
                    .map_or("pod-reaper explain POD has the command.", |_| "it names what does not end.");
                let services = self.pods.0.iter().filter_map(|pod| pod.node);
                let services = services.map(kubelet_service).unique();
                let restart = services.map(|service| format!("systemctl restart {service}"));
                let do_there = |found, what: String, commands: Vec<String>| Case {
                    commands: commands.into_iter().filter(|_| !is_supposed).collect(),
                    ..case(found, what)
                };
                vec![
                    do_there("Log", says.to_owned(), Vec::from_iter(log)),
                    do_there("Then", format!("restart the kubelet of {}. Running containers go on.", self.nodes), restart.collect()),
                    case("Still there", format!("drain {}, and reboot.", self.nodes)),
                ]
            }
            What::Reach => vec![
                case("Answers", "repair the network. Power nothing off, and delete nothing: the kubelets end their pods themselves.".to_owned()),
                confirm(names, "look at the others. Confirm only those that you found off; a run then deletes on them."),
            ],
            What::SeeMachine { needs, .. } if needs.history_alone => {
                vec![confirm(names, "confirm that.")]
            }
            What::SeeMachine { volumes, needs } => {
                let on_disk = survey.select(|pod| {
                    pod.returns && pod.judged.pod.node.as_deref().is_some_and(|node| names.contains(&node))
                });
                let needed = on_disk.map(|pods| {
                    format!("{pods} {} its disk.", pods.verb("needs", "need"))
                });
                let then_on = if needs.disk { ", then on again: its disk keeps its data" } else { "" };
                let confirmed = if needs.mark { ", and confirm" } else { then_on };
                let moves = *volumes != Volumes::Stay;
                let comes = matches!(volumes, Volumes::MoveAfterRun(_));
                let mut cases = Vec::new();
                // Later, the step itself says what to do with a machine that runs.
                if comes || !moves {
                    cases.extend([
                        case("Boots", format!("leave it on. {}", needed.unwrap_or_else(|| "Its old containers have ended.".to_owned()))),
                        case("Answers", format!("log in, and restart the kubelet. If its node is not Ready 2 minutes later, power the machine off{confirmed}.")),
                        if moves {
                            case("Frozen", "POWER THE MACHINE OFF, and confirm. Otherwise two machines can write to these volumes, unless the storage prevents it.".to_owned())
                        } else {
                            case("Frozen", format!("power it off{confirmed}."))
                        },
                    ]);
                }
                cases.push(if needs.mark {
                    confirm(names, "confirm that.")
                } else {
                    case("Off", "switch it on again: its disk keeps its data.".to_owned())
                });
                if comes {
                    let until = survey.now.saturating_add(LOOKED_AWAY).unwrap_or(survey.now);
                    let commands = names.iter().filter_map(|name| {
                        let node = survey.node(name)?.known.filter(|_| !is_supposed && names.len() == 1)?;
                        Some(survey.kubectl.opt_out(node, until))
                    });
                    let commands = commands.collect();
                    let what = format!("opt {} out of runs until {}.", self.nodes, clock(until));
                    cases.push(Case { commands, ..case("Cannot look", what) });
                } else if moves {
                    let using = survey.select(|pod| pod.moves_a_volume() && pod.judged.pod.node.as_deref().is_some_and(|node| names.contains(&node)));
                    let owners = using.iter().flat_map(|pods| &pods.0);
                    let owners = owners.filter_map(|pod| {
                        let owner = pod.judged.pod.workload.as_ref()?;
                        Some(format!("{} {}/{}", owner.kind, pod.judged.pod.namespace, owner.name))
                    });
                    let owners = owners.unique().collect_vec();
                    let which = prefixed(": ", Some(listed(&owners, NAMES)).filter(|it| !it.is_empty()));
                    cases.push(case("Cannot look", format!("stop what uses these volumes, each by its owner{which}.")));
                }
                cases
            }
            _ => Vec::new(),
        }
    }

    /// Reports whether it gives data up.
    fn gives_up(&self) -> bool {
        matches!(
            self.what,
            What::GiveUpPath { .. }
                | What::GiveUpAndMakeAgain { .. }
                | What::GiveUp { .. }
                | What::LeaveToOperator { .. }
        )
    }
}

impl<'a> Pods<'a> {
    /// Lists their nodes.
    pub fn nodes(&self) -> Nodes<'a> {
        let pods = self.0.iter();
        Nodes::of(pods.filter_map(|pod| pod.judged.pod.node.as_deref()))
    }

    /// Lists their nodes, one alone with what finds it.
    pub fn spots(&self) -> String {
        let nodes = self.nodes();
        let node = self.0.first().and_then(|pod| pod.node);
        match (&nodes.0[..], node) {
            ([name], Some(node)) => spot_of(name, Some(node)),
            _ => nodes.to_string(),
        }
    }

    pub fn verb(&self, singular: &'static str, plural: &'static str) -> &'static str {
        if self.0.len() == 1 { singular } else { plural }
    }
}

/// Names a few pods, and counts many. The lists name them, those that need you with their codes.
impl Display for Pods<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(pods) = self;
        if pods.len() <= NAMED {
            return write!(f, "{}", pods.iter().map(|pod| pod.name()).format(", "));
        }
        write!(f, "{} pods", pods.len())?;
        let mut alike = pods.iter().map(|pod| (pod.fate, pod.fate_code));
        match alike.all_equal_value() {
            Ok((Verdict::Manual, code)) => write!(f, " [{code}]"),
            _ => Ok(()),
        }
    }
}

impl<'a> Nodes<'a> {
    fn of(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().unique();
        Self(names.sorted_by_cached_key(|name| natural(name)).collect())
    }

    /// Names them with a verb.
    fn are(&self, one: &str, many: &str) -> String {
        format!("{self} {}", if self.0.len() == 1 { one } else { many })
    }
}

impl Display for Nodes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(&self.0, NAMED))
    }
}

/// Lists what to do about a run, its nodes and its pods, or about the one pod that somebody asked about, the most urgent first.
pub fn all<'a>(survey: &'a Survey<'a>) -> Vec<Advice<'a>> {
    let is_run = survey.asked.is_none();
    let nodes = survey.nodes.iter().enumerate();
    let nodes = nodes.flat_map(|(place, node)| match survey.shown_on(node) {
        none if none.is_empty() && !is_run => Vec::new(),
        pods => for_node(survey, place, &pods),
    });
    let pods = survey.shown().iter().flat_map(|pod| for_pod(survey, pod));
    let is_at_rest = |advice: &Advice<'_>| matches!(advice.what, What::SeeHang(Hang::Ending(_)));
    let pods = pods.filter(|advice| !is_run || !is_at_rest(advice));
    let run = is_run.then(|| for_run(survey)).into_iter().flatten();
    // If the pod waits for another one, that one is shown.
    let waiting = survey.waiting.filter(|_| survey.shown().is_empty());
    let waiting = waiting.map(|waiting| Advice::new(for_waiting(waiting)));
    let mut all = joined_up(nodes.chain(pods).chain(run).chain(waiting));
    // Data is given up one pod at a time: a page has the command only if one pod needs it.
    let given_up = all.iter().filter(|advice| advice.gives_up());
    let given_up = given_up.flat_map(|advice| &advice.pods.0).copied();
    let given_up = given_up.unique_by(|pod| pod.judged.pod.uid.as_str());
    let given_up = given_up.collect_vec();
    if given_up.len() > 1 {
        all.retain(|advice| !advice.gives_up());
        all.push(Advice::of_pods(What::GiveUpOneByOne, given_up));
    }
    all.sort_by_key(|advice| advice.when() == When::Later);
    all
}

/// Sorts advice, and joins the same about several pods or nodes.
fn joined_up<'a>(all: impl Iterator<Item = Advice<'a>>) -> Vec<Advice<'a>> {
    let sorted = all.sorted_by(|a, b| (&a.what, a.apart).cmp(&(&b.what, b.apart)));
    let mut joined: Vec<Advice<'_>> = Vec::new();
    for advice in sorted {
        match joined.last_mut() {
            Some(first) if (&first.what, first.apart) == (&advice.what, advice.apart) => {
                first.pods.0.extend(advice.pods.0);
                first.nodes.0.extend(advice.nodes.0);
                first.is_pressing |= advice.is_pressing;
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
    let tainted = survey.left_tainted.iter();
    let mut all = tainted
        .map(|node| What::TakeTaintOff(&node.name))
        .collect_vec();
    all.extend(survey.unmatched.is_some().then_some(What::CorrectFilter));
    all.extend(survey.incomplete.is_some().then_some(What::SaveAgain));
    // Without leases, the file is to be saved again.
    let gaps = survey.gaps.iter().filter(|_| survey.incomplete.is_none());
    all.extend(gaps.map(|gap| What::NotRead {
        first: &gap.first.what,
        more: gap.count - 1,
        cause: &gap.first.cause,
    }));
    all.extend(survey.strays.iter().map(|stray| match stray {
        Stray::Attachment {
            node,
            attachment,
            is_gone,
        } => What::SeeAttachment {
            node,
            attachment,
            is_gone: *is_gone,
        },
        Stray::Pending(waiting) => for_waiting(waiting),
    }));
    let mut sets = survey.not_ready_again();
    let is_missed = |set: &&RememberedSet| set.copies.is_some_and(|it| it.ready <= it.wanted / 2);
    let hanging = sets.iter().flat_map(|set| {
        let attachments = survey.hanging(set).into_iter();
        attachments.map(move |(node, attachment)| {
            let what = What::SeeHanging {
                set: set.to_string(),
                attachment: &attachment.name,
                does_not: if attachment.attached {
                    "detach from"
                } else {
                    "attach to"
                },
            };
            Advice::of_nodes(what, vec![node], is_missed(set))
        })
    });
    let hanging = hanging.collect_vec();
    sets.retain(|set| survey.hanging(set).is_empty());
    let again = sets.first().map(|worst| {
        let what = What::NotReadyAgain {
            sets: listed(&sets, NAMED),
            namespace: &worst.namespace,
        };
        Advice::of_nodes(what, Vec::new(), sets.iter().any(is_missed))
    });
    let returned = survey.remembered.iter();
    let returned = returned.filter(|node| node.may_have_run_twice());
    let returned = returned.flat_map(|node| {
        let noted = &node.noted;
        let is_suspect = |it: &&Reaped| it.attached || !it.is_replaced_early();
        let mut pods = noted.pods.iter().filter(is_suspect).collect_vec();
        if pods.is_empty() {
            pods = noted.pods.iter().collect();
        }
        let pods = match &pods[..] {
            [] => "pods that the run which deleted them could not name".to_owned(),
            pods => listed(pods, NAMES),
        };
        let is_other = node.now.state == NodeState::AnotherMachine;
        let check = What::CheckForTwoWriters {
            node: &noted.node,
            since: day(survey, noted.first_reap),
            pods,
        };
        let find = is_other.then_some(What::FindOldMachine(&noted.node));
        let all = find.into_iter().chain([check]);
        all.map(|what| Advice::of_nodes(what, Vec::new(), node.needs_you()))
    });
    let by_limit = match survey.limit() {
        Some(Limit::MassOutage(_)) => vec![reach(survey, survey.machines_down())],
        Some(Limit::Unread(what)) => vec![Advice::new(What::SeeWhatIsNotKnown(what))],
        Some(Limit::FailedTogether { .. }) => {
            let groups = survey.together.iter();
            let reached = groups.map(|(_, nodes)| reach(survey, nodes.clone()));
            reached.collect()
        }
        Some(Limit::NoRoom(_) | Limit::OverCap(_)) | None => Vec::new(),
    };
    let make_room = survey.with_code(ReasonCode::NoRoom).map(|pods| {
        let mut all = Advice::of_pods(What::MakeRoom, pods.0);
        // The others have to be off.
        let stays = |node: &NodeView<'_>| node.volumes == Volumes::Stay;
        let nodes = &mut all.nodes.0;
        nodes.retain(|name| survey.node(name).is_some_and(stays));
        all
    });
    let all = all.into_iter().map(Advice::new);
    let first = all.chain(hanging).chain(again).chain(returned);
    first.chain(by_limit).chain(make_room).collect()
}

/// Returns the look at the first of nodes of which nobody knows whether they live.
fn reach<'a>(survey: &Survey<'a>, nodes: Vec<&'a str>) -> Advice<'a> {
    let first = nodes.first();
    let place = first.and_then(|name| survey.nodes.iter().position(|node| node.name == *name));
    Advice {
        apart: place,
        ..Advice::of_nodes(What::Reach, nodes, false)
    }
}

/// Returns the exit code of a run with `all` this advice. That of a question differs from 0 only if something could not be
/// read.
pub fn exit(survey: &Survey<'_>, all: &[Advice<'_>]) -> Exit {
    let is_run = survey.asked.is_none();
    let any = |is: fn(&PodView<'_>) -> bool| survey.terminating().any(is);
    let is_unread = |pod: &PodView<'_>| pod.code() == ReasonCode::FactsUnread;
    let failed = |pod: &PodView<'_>| pod.outcome_code().is_some_and(OutcomeCode::is_failure);
    if is_run && survey.settings.exit_on_manual && all.iter().any(|it| it.rings(survey)) {
        Exit::Manual
    } else if is_run && any(|pod| pod.is_held() && pod.code() != ReasonCode::FactsUnread) {
        Exit::Held
    } else if !survey.errors.is_empty() || any(is_unread) || any(failed) {
        Exit::Incomplete
    } else {
        Exit::Done
    }
}

/// Returns what to do about a pod that has not started.
fn for_waiting(waiting: &Waiting) -> What<'_> {
    match &waiting.waits_for {
        WaitsFor::Nodes { nodes } if nodes.is_empty() => What::SeePending(waiting),
        _ => What::SeeWaiting(waiting),
    }
}

/// Lists the nodes whose machines have to be looked at before something is harmed, each with what to do.
pub fn to_look_at(survey: &Survey<'_>) -> Vec<(String, String)> {
    let looks = all(survey).into_iter().filter(|advice| {
        matches!(advice.what, What::SeeMachine { .. }) && advice.press() == Some(Press::Harm)
    });
    let of_nodes = looks.flat_map(|advice| {
        let what = advice.sentence(survey);
        let names = advice.nodes.0.into_iter().map(str::to_owned);
        names.map(|name| (name, what.clone())).collect_vec()
    });
    of_nodes.collect()
}

/// Lists what to do about the node at that place because of these pods on it. Nothing in the list contradicts its state: a
/// node that is alive, fenced, being deleted, no machine or a needed member of etcd is never powered off.
fn for_node<'a>(survey: &'a Survey<'a>, place: usize, pods: &[&'a PodView<'a>]) -> Vec<Advice<'a>> {
    let node = &survey.nodes[place];
    let mut all = Vec::new();
    let advice = |what, is_missed| Advice::of_nodes(what, vec![node.name], is_missed);
    let asks = |code| pods.iter().any(|pod| pod.asks().contains(&code));
    if asks(ReasonCode::EtcdMember)
        && let Some(quorum) = node.quorum()
    {
        let members = || quorum.not_ready.iter().map(String::as_str);
        let reach = What::ReachMembers(quorum);
        all.push(Advice::of_nodes(reach, members().collect(), false));
        for member in members().take(NAMED) {
            for what in [What::DeleteMember(member), What::ConfirmOneOff(member)] {
                all.push(Advice::of_nodes(what, vec![member], false));
            }
        }
    }
    if asks(ReasonCode::KubeletAlive) {
        let is_missed = pods.iter().any(|pod| pod.is_missed());
        let says = |known: &&NodeFacts| known.ready == Ready::False;
        let fault = node.known.filter(says).and_then(|node| node.kubelet_says);
        all.push(Advice {
            apart: Some(place),
            ..advice(What::Repair(fault), is_missed)
        });
        let silence = survey.settings.policy.silent_after();
        all.push(advice(What::PowerOffAlive { silence }, is_missed));
    }
    let on_disk = pods.iter().copied().filter(|pod| pod.returns).collect_vec();
    let missed = on_disk.iter().copied().filter(|pod| pod.is_missed());
    let missed = missed.collect_vec();
    let is_missed = !missed.is_empty();
    let has_data = !on_disk.is_empty();
    // A page names those that are missed, if there are some.
    let back = if is_missed { missed } else { on_disk };
    if !node.is_suspect() || node.held.is_some() {
        if has_data && node.held.is_none() {
            all.push(Advice::of_pods(What::BringBack, back));
        }
        return all;
    }
    if has_data && node.volumes != Volumes::Stay {
        all.push(Advice::of_pods(What::SwitchOn, back));
    }
    let has_moved = matches!(
        node.volumes,
        Volumes::MovedAt(_) | Volumes::MoveAt(_) | Volumes::MayHaveMoved
    );
    let wants_off = pods.iter().any(|pod| pod.wants_node_off());
    let quorum = node.quorum().filter(|quorum| quorum.has_no_spare());
    let ask = |is_urgent| quorum.map(|quorum| advice(What::AskMembers(quorum), is_urgent));
    if !wants_off && !has_moved {
        all.extend(ask(false));
        return all;
    }
    let asks_for_mark = |pod: &&&PodView<'_>| {
        let may_end = node.may_taint.is_ok() && pod.asks().contains(&ReasonCode::Finalizers);
        may_end || pod.asks().contains(&ReasonCode::SharedDisk)
    };
    let needs = Needs {
        disk: has_data,
        history_alone: !wants_off,
        mark: node.volumes != Volumes::Stay || pods.iter().any(|pod| asks_for_mark(&pod)),
        is_missed: is_missed || pods.iter().filter(asks_for_mark).any(|pod| pod.is_missed()),
    };
    let look = match node.volumes {
        Volumes::Stay if !needs.disk && !needs.mark => advice(What::PowerOff, false),
        volumes => Advice {
            apart: (survey.suspects <= NAMED).then_some(place),
            ..advice(What::SeeMachine { volumes, needs }, false)
        },
    };
    all.extend(ask(look.press().is_some()));
    all.push(look);
    all
}

/// Lists what to do about a pod.
fn for_pod<'a>(survey: &'a Survey<'a>, pod: &'a PodView<'a>) -> Vec<Advice<'a>> {
    let mut all = Vec::new();
    // The volume of a PVC that somebody deleted before the node failed goes with the pod.
    all.extend(pod.reason.ties.iter().filter_map(|tie| {
        let TieKind::Goes(Wanted::Deleted(_) | Wanted::DeletedAndHeld { .. }) = tie.kind else {
            return None;
        };
        Some(What::KeepData {
            volume: &pod.judged.claim(&tie.pvc)?.read.volume()?.name,
            claim: &tie.pvc,
        })
    }));
    let failure = pod.outcome.filter(|outcome| outcome.code().is_failure());
    all.extend(failure.map(|outcome| What::NotDeleted {
        code: outcome.code(),
        why: outcome.sentence(),
    }));
    // The step about the finalizers of a pod that needs you says more.
    let hang = pod.hang.filter(|_| pod.fate != Verdict::Manual);
    all.extend(hang.map(What::SeeHang));
    for code in pod.asks() {
        all.extend(for_reason(survey, pod, *code));
    }
    let is_said_of_node = pod.wants_node_off()
        && survey.node_of(pod).is_some_and(NodeView::is_suspect)
        || [ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&pod.fate_code);
    if all.is_empty() && !pod.asks().is_empty() && !is_said_of_node {
        all.push(What::SeeWhy(pod.fate_code));
    }
    let is_at_rest = [ReasonCode::LocalVolume, ReasonCode::HostPath].contains(&pod.fate_code);
    let node = survey.node_of(pod).filter(|_| is_at_rest);
    let node = node.filter(|node| survey.asked.is_some() && node.is_suspect());
    let why = node.and_then(|node| node.may_taint.as_ref().err());
    all.extend(why.filter(|why| **why != NoTaint::State).map(What::NoTaint));
    let all = all.into_iter();
    all.map(|what| Advice::of_pods(what, vec![pod])).collect()
}

/// Lists what to do about a reason that needs you, besides what is to be done about its node. A reason without a row is
/// explained elsewhere.
fn for_reason<'a>(survey: &Survey<'a>, pod: &'a PodView<'a>, code: ReasonCode) -> Vec<What<'a>> {
    let facts = &pod.judged.pod;
    match code {
        // Their node's steps say what to do.
        ReasonCode::EtcdMember | ReasonCode::KubeletAlive | ReasonCode::SharedDisk => Vec::new(),
        ReasonCode::Finalizers => {
            let finalizers = facts.holding_finalizers(pod.node.is_some());
            let finalizers = finalizers.map(|finalizer| {
                let by = facts.finalizers_set_by.get(finalizer);
                match survey.node_of(pod) {
                    Some(node) if is_held_until_the_end(finalizer) => What::EndPods {
                        finalizer,
                        may_taint: node.may_taint.is_ok(),
                    },
                    _ => What::RepairController { finalizer, by },
                }
            });
            finalizers.collect()
        }
        ReasonCode::KosmosLeaf => {
            let leaf = pod.node.and_then(|node| node.leaf.as_ref());
            let cluster = leaf.and_then(|leaf| leaf.cluster.as_deref());
            let cluster = cluster.unwrap_or("the leaf cluster");
            vec![What::LookInLeafCluster(cluster), What::SeeKosmos]
        }
        ReasonCode::VirtualNode | ReasonCode::EdgeNode | ReasonCode::LeafNode => {
            vec![What::RepairLeaf]
        }
        ReasonCode::LocalVolume => {
            let ties = pod.reason.ties.iter();
            ties.filter_map(|tie| for_tie(survey, pod, tie)).collect()
        }
        ReasonCode::HostPath => {
            let paths = facts.host_paths.iter().join(", ");
            vec![What::GiveUpPath { paths }]
        }
        _ => vec![What::SeeWhy(code)],
    }
}

/// Returns what to do about a PVC whose volume other nodes do not reach.
fn for_tie<'a>(survey: &Survey<'a>, pod: &'a PodView<'a>, tie: &'a Tie) -> Option<What<'a>> {
    let judged = pod.judged;
    let claim = judged.claim(&tie.pvc);
    match tie.kind {
        TieKind::Confined(_) => return Some(What::SeeWhy(ReasonCode::LocalVolume)),
        TieKind::Pinned(_) if claim.is_none_or(|it| it.read.deletion.is_none()) => {}
        _ => return None,
    }
    let later = survey.settings.policy.given_up_after();
    let finalizers = claim.map_or(&[][..], |it| &it.read.finalizers[..]);
    let set = judged.pod.stateful_set();
    let operator = judged.pod.operated_by(judged.storage.as_ref());
    if claim.is_some_and(|it| it.templated) && set.is_some() {
        // The template of the StatefulSet makes the PVC again.
        let volume = claim.and_then(|it| it.read.volume());
        let policy = volume.and_then(|it| it.reclaim_policy.as_deref());
        return Some(What::GiveUp {
            is_retained: policy == Some("Retain"),
            finalizers,
            later,
            claim: &tie.pvc,
            operator,
        });
    }
    if let Some(owner) = claim.and_then(|it| it.read.owner.as_ref()) {
        let claim = &tie.pvc;
        return Some(What::LeaveToOperator { claim, owner });
    }
    let read = judged.storage.as_ref().and_then(|it| it.set.as_ref());
    Some(What::GiveUpAndMakeAgain {
        claim: &tie.pvc,
        finalizers,
        later,
        operator,
        unread_set: set.filter(|_| !matches!(read, Some(Ok(_)))),
    })
}

/// Says what must not be done to these pods and their nodes.
pub fn never<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let is_alive = |pod: &PodView<'_>| {
        [ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&pod.code())
    };
    let members = survey.select(|pod| pod.code() == ReasonCode::EtcdMember);
    let needs_you = |pod: &PodView<'_>| pod.fate == Verdict::Manual && !is_alive(pod);
    // The steps for these reasons delete the pod by hand.
    let by_hand = [ReasonCode::HostPath, ReasonCode::OwnerKind];
    let is_kept = |pod: &PodView<'_>| {
        let mut codes = pod.reason.asks.iter().copied().chain([pod.fate_code]);
        needs_you(pod) && !codes.any(|code| by_hand.contains(&code))
    };
    let moves = survey.select(|pod| {
        let node = survey.node_of(pod);
        pod.moves_a_volume() && node.is_some_and(NodeView::is_suspect)
    });
    let mut strays = survey.strays.iter().filter(|_| survey.asked.is_none());
    let is_attached = survey.waiting.is_some_and(Waiting::is_for_attachment)
        || strays.any(|stray| match stray {
            Stray::Attachment { is_gone, .. } => !is_gone,
            Stray::Pending(waiting) => waiting.is_for_attachment(),
        });
    let is_attached = is_attached && moves.is_none() && survey.select(needs_you).is_none();
    let option = match survey.limit() {
        Some(Limit::MassOutage(_)) => Some("--max-not-ready-percent=100"),
        Some(Limit::FailedTogether { .. }) => Some("--max-failed-together=0"),
        _ => None,
    };
    let texts = [
        members.map(|pods| {
            let quorums = pods.0.iter().filter_map(|pod| pod.node?.quorum.as_deref());
            let names = quorums.flat_map(|it| &it.not_ready).unique().join(" or ");
            format!("power off {names} before you know that it is dead: the API server may need it.")
        }),
        option.map(|option| format!("set {option} or force-delete a pod before you know that these nodes are off.")),
        survey.select(is_alive).map(|_| "force-delete pods on a machine that is alive: they would run twice.".to_owned()),
        survey.select(is_kept).map(|pods| format!("force-delete pods that need you: {pods}.")),
        survey.select(needs_you).map(|_| match &moves {
            Some(_) => "strip a finalizer.".to_owned(),
            None => "strip a finalizer, or delete a VolumeAttachment.".to_owned(),
        }),
        moves.map(|pods| format!("force-delete pods that a run deletes, or delete a VolumeAttachment, before {} off.", pods.nodes().are("is", "are"))),
        is_attached.then(|| "delete a VolumeAttachment before you have seen its node off.".to_owned()),
    ];
    let hang = survey.shown().iter().filter(|pod| !needs_you(pod));
    let hang = hang.filter_map(|pod| Some((pod.hang?.code(), pod)));
    let hang = hang.filter(|(code, _)| *code != HangCode::Ending || survey.asked.is_some());
    let hang = hang.into_group_map().into_values().map(Pods);
    let hang = hang.filter_map(|pods| Some(pods.0.first()?.hang?.never(&pods)));
    texts.into_iter().flatten().chain(hang.sorted()).collect()
}

/// Says that machines are switched on for their disks.
fn to_switch_on(pods: &Pods<'_>, nodes: &Nodes<'_>) -> String {
    let [them, their] = match nodes.0.len() {
        1 => ["it", "its disk"],
        _ => ["them", "their disks"],
    };
    let need = pods.verb("needs", "need");
    format!("switch {them} on again: {pods} {need} {their}. Discard nothing tonight.")
}

/// Names a machine with what finds its console: its address, its zone, and the end of its provider ID.
fn spot(node: &NodeView<'_>) -> String {
    spot_of(node.name, node.known)
}

fn spot_of(name: &str, known: Option<&NodeFacts>) -> String {
    let known = known.into_iter();
    let words = known.flat_map(|node| {
        let zone = node.zone.as_ref().and_then(|zone| zone.0[1].as_deref());
        let zone = zone.map(|zone| format!("zone {}", Foreign::<60>::from(zone)));
        let [address, machine] =
            [&node.address, &node.machine].map(|it| it.as_ref().map(Foreign::to_string));
        [address, zone, machine].into_iter().flatten()
    });
    let words = joined(words, ", ").map(|words| format!("({words})"));
    name.to_owned() + &prefixed(" ", words)
}

/// Says which machine to look at, and by when.
fn to_see(nodes: &Nodes<'_>, spot: &str, volumes: Volumes, needs: Needs) -> String {
    let whose = if nodes.0.len() == 1 { "its" } else { "their" };
    let can_write = format!(
        "other nodes can use {whose} volumes, and two machines can write to them, unless the storage prevents it"
    );
    let (head, unless) = match nodes.0.len() {
        _ if needs.history_alone => ("See that the machine is off:", ""),
        1 => ("POWER OFF", ", unless it is off or boots"),
        _ => ("POWER OFF", ", unless they are off or boot"),
    };
    match volumes {
        Volumes::MovedAt(at) => format!("{head} {spot}{unless}. Since {}, {can_write}.", clock(at)),
        Volumes::MayHaveMoved => format!(
            "{head} {spot}{unless}. What earlier runs deleted there is not known: assume that {can_write}."
        ),
        Volumes::MoveAt(at) => format!(
            "{head} {spot} before {}{unless}. From then on, {can_write}. Waiting for {nodes} is no longer safe.",
            clock(at)
        ),
        Volumes::MoveAfterRun(Some(at)) => {
            format!("Look at the console of {spot} before {}.", clock(at))
        }
        Volumes::MoveAfterRun(None) => {
            format!("Look at the console of {spot} before the next run.")
        }
        Volumes::Stay => format!("Look at the console of {spot}."),
    }
}

/// Says how to find the machine that the API server may need. No step powers one off.
fn to_reach(quorum: &Quorum) -> String {
    let names = listed(&quorum.not_ready, NAMES);
    if quorum.has_etcd {
        format!(
            "Save a snapshot of etcd on a member that is Ready (etcdctl snapshot save). Then reach each of {names} at its console."
        )
    } else {
        format!("Reach each of {names} at its console: one of them may run, and be cut off.")
    }
}

fn to_repair(fault: Option<KubeletSays>) -> &'static str {
    match fault {
        Some(KubeletSays::Runtime) => {
            "restart the container runtime. Then its kubelet ends the pods."
        }
        Some(KubeletSays::Network) => {
            "repair the network plugin (CNI). Then its kubelet ends the pods."
        }
        Some(KubeletSays::ShuttingDown) => "wait until the machine has shut down.",
        None => {
            "see why the kubelet does not report Ready: restart the kubelet or the container runtime. The kubelet then ends the pods."
        }
    }
}

fn waits_for(finalizers: &[Foreign]) -> String {
    let names = joined(finalizers, ", ");
    let said = names.map(|names| format!("The PVC then waits for its finalizer {names}, too."));
    prefixed(" ", said)
}

fn made_by_set(operator: Option<&Owner>) -> String {
    match operator {
        Some(owner) => {
            format!(". The StatefulSet belongs to {owner}: its operator decides what comes then.")
        }
        None => ", and the StatefulSet makes both again, empty.".to_owned(),
    }
}

fn made_again(operator: Option<&Owner>, unread_set: Option<&str>) -> String {
    match unread_set {
        _ if let Some(owner) = operator => {
            format!("The pod belongs to {owner}: its operator decides what comes then.")
        }
        Some(name) => format!(
            "Whether StatefulSet {name} makes this PVC again is not known: it was not read."
        ),
        None => "Nobody makes this PVC again: create it, empty, once the pod is gone.".to_owned(),
    }
}

/// Spells a moment of the day.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%RZ").to_string()
}
