//! What to do, as data: each variant stands below its sentence. Three functions make it: of the run, of a node, and of a
//! pod. The same advice about several pods or nodes is one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display, Formatter},
};

use derive_more::Display;
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    NAMED, NAMES,
    document::Case,
    head::day,
    survey::{NodeView, PodView, Survey, Volumes},
};
use crate::{
    codes::codes,
    facts::{KubeletSays, NodeFacts, Owner, Quorum, Ready, Stray, Uid},
    history::{NodeState, Reaped, RememberedSet},
    judge::{Cause, Limit, ReasonCode, Tie, TieKind, Verdict, Wanted},
    outcome::OutcomeCode,
    selector::Target,
    words::{Foreign, human_duration, joined, listed, natural, prefixed},
};

/// Something to do. The order of the variants is that of a page, the most urgent first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum Advice<'a> {
    // The report lacks something: repeat the run.
    #[display("Correct the namespace filter, and run again.")]
    CorrectFilter,
    #[display("Save the file again, with leases, before you act (command under NOT SEEN).")]
    SaveAgain,

    // A machine destroys data as it comes back.
    #[display("{pods}: set volume {volume} to Retain before {nodes} comes back. PVC {claim} is being deleted, and the kubelet destroys the data as it ends the pod.", nodes = pods.nodes())]
    KeepData {
        volume: &'a str,
        claim: &'a str,
        pods: Pods<'a>,
    },

    // Nobody knows which machines live.
    #[display(
        "Look at {nodes} before you power one off: several control-plane nodes are NotReady, and no etcd was seen there."
    )]
    LookBeforePowerOff { nodes: Nodes<'a> },
    #[display("{}", to_reach(quorum))]
    ReachMembers { quorum: &'a Quorum },
    #[display("Before you power {nodes} off, ask the other members{ask}: {quorum}, and no spare is left.", ask = if quorum.has_etcd { " (etcdctl endpoint health --cluster, on one of them)" } else { "" })]
    AskMembers {
        missed: bool,
        quorum: &'a Quorum,
        nodes: Nodes<'a>,
    },
    #[display("Look at the console of {}.", spot(first))]
    Reach {
        first: &'a NodeView<'a>,
        nodes: Nodes<'a>,
    },
    #[display("Bring {nodes} back; or power it off, and add a node on which pods can start.")]
    MakeRoom { nodes: Nodes<'a> },
    #[display("See why this is not known, and run again: {what}.")]
    SeeWhatIsNotKnown { what: &'a str },

    // A machine lives: repair what fails there.
    #[display("Log in to {}, and {}", alone.map_or_else(|| nodes.to_string(), spot), to_repair(*fault))]
    Repair {
        missed: bool,
        alone: Option<&'a NodeView<'a>>,
        fault: Option<KubeletSays>,
        nodes: Nodes<'a>,
    },

    // It cannot be repaired.
    #[display("Only if that fails, power {nodes} off, which stops what runs there: after {time} of silence, a run force-deletes the pods.", time = human_duration(*silence))]
    PowerOffAlive {
        missed: bool,
        silence: SignedDuration,
        nodes: Nodes<'a>,
    },
    #[display(
        "Only if the datastore is elsewhere, or was reset or restored to fewer members, and {node} is gone for good: delete its Node object, which deletes its pods."
    )]
    DeleteMember { node: &'a str },
    #[display(
        "Only once you have SEEN {node} off, confirm that: the next run deletes its pods. (Each node by its own name.)"
    )]
    ConfirmOneOff { node: &'a str },

    // A machine that nobody has seen off can write to its volumes beside another one, or its disk is needed.
    #[display("{}", to_see(nodes, *alone, *volumes, *needs))]
    SeeMachine {
        volumes: Volumes,
        needs: Needs,
        /// Its only node, unless there are many.
        alone: Option<&'a NodeView<'a>>,
        nodes: Nodes<'a>,
    },
    #[display(
        "Another machine has the name {node}, and nobody saw the old one off: find it, and see that it is off."
    )]
    FindOldMachine { told: bool, node: &'a str },

    #[display("Once {} off, {}", pods.nodes().are("was", "were"), to_switch_on(pods))]
    SwitchOn { missed: bool, pods: Pods<'a> },

    // A machine may still run.
    #[display("Power {nodes} off, unless {} boots: old containers can still run there.", if nodes.0.len() == 1 { "it" } else { "one of them" })]
    PowerOff { nodes: Nodes<'a> },

    // Pods may run elsewhere, or twice.
    #[display("{nodes} is a leaf node: repair it, or the link to it. Its own agent then ends {pods}.", nodes = pods.nodes())]
    RepairLeaf { missed: bool, pods: Pods<'a> },
    #[display(
        "Look in {cluster} for {pods} BEFORE you repair the link: the repair stops what runs there."
    )]
    LookInLeafCluster {
        missed: bool,
        cluster: &'a str,
        pods: Pods<'a>,
    },
    #[display(
        "On {node}, these can have run beside their replacements: {pods}. Let each owner check the data (logs, the application's own check), and keep the backups from before {since}. If you find two writers, stop the application before it writes again."
    )]
    CheckForTwoWriters {
        told: bool,
        node: &'a str,
        since: String,
        pods: String,
    },

    // Nothing else but a machine or its disk helps.
    #[display("Bring {} back: {}", pods.nodes(), to_switch_on(pods))]
    BringBack { missed: bool, pods: Pods<'a> },

    // Something was not deleted, is not back, or was not read.
    #[display("See why {pods} {verb} not deleted [{code}]: {why}", verb = pods.verb("was", "were"))]
    NotDeleted {
        missed: bool,
        code: OutcomeCode,
        why: String,
        pods: Pods<'a>,
    },
    #[display(
        "Not Ready again since pods were deleted: {sets}. Unless another step explains it, see the events of namespace {namespace}."
    )]
    NotReadyAgain {
        missed: bool,
        sets: String,
        namespace: &'a str,
    },
    #[display("Not read: {first}{others}: {cause}", others = and_more(*more))]
    NotRead {
        first: &'a str,
        more: usize,
        cause: &'a str,
    },

    // A machine is lost with its data.
    #[display("{pods} {verb} data in {paths} on the disk of {nodes}. Only if that may be lost, delete the pod by hand (book: Data on a dead node).", nodes = pods.nodes(), verb = pods.verb("keeps", "keep"))]
    GiveUpPath { paths: String, pods: Pods<'a> },
    #[display("Only if {nodes} is lost for good, give up the data of {pods}: delete PVC {claim}.{held} A run {time} later deletes the pod. {again}", held = waits_for(finalizers), time = human_duration(*later), again = made_again(*operator, *unread_set), nodes = pods.nodes())]
    GiveUpAndMakeAgain {
        claim: &'a str,
        finalizers: &'a [Foreign],
        later: SignedDuration,
        operator: Option<&'a Owner>,
        unread_set: Option<&'a str>,
        pods: Pods<'a>,
    },
    #[display("Only if {nodes} is lost for good, give up the data of {pods}: delete its PVC ({data}; nothing checks for other copies).{held} A run {time} later deletes the pod{again}", again = made_by_set(*operator), data = if *is_retained { "its volume stays, by its reclaim policy Retain" } else { "its volume is destroyed" }, held = waits_for(finalizers), time = human_duration(*later), nodes = pods.nodes())]
    GiveUp {
        is_retained: bool,
        finalizers: &'a [Foreign],
        later: SignedDuration,
        claim: &'a str,
        operator: Option<&'a Owner>,
        pods: Pods<'a>,
    },
    #[display("Only if {nodes} is lost for good: PVC {claim} of {pods} belongs to {owner}, whose operator replaces it.", nodes = pods.nodes())]
    LeaveToOperator {
        claim: &'a str,
        owner: &'a Owner,
        pods: Pods<'a>,
    },
    #[display("Only if {nodes} is lost for good: give up data one pod at a time, and wait for Ready in between. Leave pods without another Ready pod for last (pod-reaper explain POD has the command).", nodes = pods.nodes())]
    GiveUpOneByOne { pods: Pods<'a> },

    // It blocks pods or volumes.
    #[display(
        "{pods} [{code}]: see why (pod-reaper explain POD), and what to do (book: Three in the morning)."
    )]
    SeeWhy {
        missed: bool,
        code: ReasonCode,
        pods: Pods<'a>,
    },
    #[display("{pods} {verb} on a Ready node: see the log of the kubelet of {nodes}.", nodes = pods.nodes(), verb = pods.verb("hangs", "hang"))]
    SeeKubelet { pods: Pods<'a> },
    #[display("{pods}: {why}")]
    SeeCollector { why: String, pods: Pods<'a> },
    #[display("{pods} {verb} held by finalizer {finalizer}{setter}: repair its controller.", setter = prefixed(", set by ", *by), verb = pods.verb("is", "are"))]
    RepairController {
        missed: bool,
        finalizer: &'a Foreign,
        by: Option<&'a Foreign>,
        pods: Pods<'a>,
    },
    #[display("{pods} {verb} held by finalizer {finalizer}{setter}: repair its controller. Only if that ran on {nodes} or waits for the end of the pod, and you have SEEN {nodes} off, {TAINT}.", setter = prefixed(", set by ", *by), nodes = pods.nodes(), verb = pods.verb("is", "are"))]
    RepairControllerOrTaint {
        missed: bool,
        finalizer: &'a Foreign,
        by: Option<&'a Foreign>,
        pods: Pods<'a>,
    },
    #[display("See why Kosmos does not reach the leaf cluster.")]
    SeeKosmos { pods: Pods<'a> },
    #[display(
        "VolumeAttachment {attachment} names {node}, which no longer exists: until it is gone, no other node gets the volume."
    )]
    SeeAttachment { node: &'a str, attachment: &'a str },
    #[display(
        "{namespace}/{pod} is Pending: volume {volume} of its PVC {claim} can only be used on a node that no longer exists. Only if its data is lost for good, delete the PVC:"
    )]
    GiveUpForPending {
        namespace: &'a str,
        pod: &'a str,
        volume: &'a str,
        claim: &'a str,
        pod_uid: &'a Uid,
        claim_uid: &'a Uid,
    },

    // Only if somebody asks about one pod.
    #[display("To delete all pods of {nodes} together and free their volumes, if you have SEEN it off: {TAINT}.", nodes = pods.nodes())]
    TaintNode { pods: Pods<'a> },
}

const TAINT: &str = "set the out-of-service taint: it deletes every pod there, and one with data there stays Pending. Remove it only after a power cycle";

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
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pods<'a>(pub Vec<&'a PodView<'a>>);

/// The names of nodes that an advice is about, in natural order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nodes<'a>(pub Vec<&'a str>);

impl<'a> Advice<'a> {
    /// Returns why it cannot wait until working hours; `None` if it can.
    pub fn press(&self) -> Option<Press> {
        Some(match self {
            Self::KeepData { .. } => Press::Harm,
            Self::SeeMachine { volumes, needs, .. } => match volumes {
                Volumes::Stay if needs.is_missed => Press::Missed,
                Volumes::Stay => return None,
                Volumes::MayHaveMoved => Press::NotRead,
                _ => Press::Harm,
            },
            Self::LookBeforePowerOff { .. }
            | Self::ReachMembers { .. }
            | Self::Reach { .. }
            | Self::MakeRoom { .. }
            | Self::DeleteMember { .. }
            | Self::ConfirmOneOff { .. }
            | Self::FindOldMachine { told: false, .. }
            | Self::CheckForTwoWriters { told: false, .. } => Press::Unsure,
            Self::CorrectFilter
            | Self::SaveAgain
            | Self::SeeWhatIsNotKnown { .. }
            | Self::NotRead { .. } => Press::NotRead,
            _ if self.clone().missed().is_some_and(|missed| *missed) => Press::Missed,
            _ => return None,
        })
    }

    /// Returns whether a workload of its pods has no other Ready pod, or at most half, or whether that is not known.
    fn missed(&mut self) -> Option<&mut bool> {
        match self {
            Self::AskMembers { missed, .. }
            | Self::Repair { missed, .. }
            | Self::PowerOffAlive { missed, .. }
            | Self::SwitchOn { missed, .. }
            | Self::RepairLeaf { missed, .. }
            | Self::LookInLeafCluster { missed, .. }
            | Self::BringBack { missed, .. }
            | Self::NotDeleted { missed, .. }
            | Self::NotReadyAgain { missed, .. }
            | Self::SeeWhy { missed, .. }
            | Self::RepairController { missed, .. }
            | Self::RepairControllerOrTaint { missed, .. } => Some(missed),
            _ => None,
        }
    }

    /// Reports how soon it is to be done.
    pub fn when(&self) -> When {
        self.press().map_or(When::Later, |_| When::Now)
    }

    /// Reports whether somebody has to be woken. What only brings a workload back rings for two hours.
    pub fn rings(&self, survey: &Survey<'_>) -> bool {
        match self.press() {
            None => false,
            Some(Press::Missed) => {
                let (_, nodes) = self.clone().subject();
                let mut names = nodes.0.into_iter();
                let is_old = |name: &str| {
                    let node = survey.node(name).and_then(|node| node.known);
                    let since = node.and_then(|node| node.not_ready_since(survey.now));
                    since.is_some_and(|since| survey.now.duration_since(since) >= RINGS)
                };
                !names.all(is_old)
            }
            // An empty filter, and what was not read beside Ready nodes, wakes nobody.
            Some(Press::NotRead) => !survey.down().is_empty() && *self != Self::CorrectFilter,
            Some(Press::Harm | Press::Unsure) => true,
        }
    }

    /// Returns the harm that its command does.
    pub fn harm(&self) -> Option<Harm> {
        match self {
            Self::GiveUp { .. } | Self::GiveUpForPending { .. } => Some(Harm::Data),
            Self::DeleteMember { .. }
            | Self::ConfirmOneOff { .. }
            | Self::RepairControllerOrTaint { .. }
            | Self::TaintNode { .. } => Some(Harm::Pods),
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
        match self {
            Self::KeepData { volume, .. } => {
                let retain = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
                Some(kubectl.command(&["patch", "pv", volume, "-p", retain]))
            }
            Self::LookInLeafCluster { cluster, pods, .. } => {
                let there = Target {
                    kubeconfig: Some(format!("{cluster}.kubeconfig").into()),
                    context: None,
                };
                let mut namespaces = pods.0.iter().map(|pod| pod.judged.pod.namespace.as_str());
                let namespace = namespaces.all_equal_value().ok()?;
                Some(there.command(&["get", "pods", "-n", namespace, "-o", "wide"]))
            }
            Self::DeleteMember { node } => kubectl.delete_node(survey.node(node)?.known?),
            Self::ConfirmOneOff { node } => kubectl.confirm_off(survey.node(node)?.known?),
            Self::NotReadyAgain { namespace, .. } => {
                let words = ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"];
                Some(kubectl.command(&words))
            }
            Self::GiveUp { claim, pods, .. } => {
                let [pod] = pods.0[..] else { return None };
                let bound = pod.judged.claim(claim)?.read.bound()?;
                let namespace = &pod.judged.pod.namespace;
                kubectl.delete_claim(pod.node?, namespace, claim, &bound.uid)
            }
            Self::RepairControllerOrTaint { pods, .. } | Self::TaintNode { pods } => {
                let node = pods.node(survey).filter(|node| node.may_taint)?;
                Some(kubectl.taint(node.known?))
            }
            Self::SeeKosmos { .. } => Some(kubectl.command(&[
                "logs",
                "-n",
                "kosmos-system",
                "deployment/clustertree-cluster-manager",
                "--tail=50",
            ])),
            Self::SeeAttachment { attachment, .. } => {
                Some(kubectl.command(&["describe", "volumeattachment", attachment]))
            }
            Self::GiveUpForPending {
                namespace,
                pod,
                claim,
                pod_uid,
                claim_uid,
                ..
            } => kubectl.delete_unused_claim((namespace, pod, pod_uid), claim, claim_uid),
            _ => None,
        }
    }

    /// Takes the pods and the nodes that it is about.
    pub fn subject(mut self) -> (Pods<'a>, Nodes<'a>) {
        let nodes = match self {
            Self::ReachMembers { quorum } => {
                Some(Nodes(quorum.not_ready.iter().map(String::as_str).collect()))
            }
            Self::DeleteMember { node } | Self::ConfirmOneOff { node } => Some(Nodes(vec![node])),
            _ => self.nodes().map(std::mem::take),
        };
        let pods = self.pods().map(std::mem::take).unwrap_or_default();
        (pods.clone(), nodes.unwrap_or_else(|| pods.nodes()))
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
            let known = names.iter().filter_map(|name| survey.node(name)?.known);
            let known = known.filter(|_| !is_supposed).take(CONFIRMED);
            let commands = known
                .filter_map(|node| survey.kubectl.confirm_off(node))
                .collect_vec();
            let and_so_on = if names.len() > commands.len() && !is_supposed {
                " And so on: pod-reaper explain POD has the command of each node."
            } else {
                ""
            };
            Case {
                harms: (!commands.is_empty()).then_some(Harm::Pods),
                commands,
                ..case("Off", format!("{what}{and_so_on}"))
            }
        };
        match self {
            Self::Reach { nodes, .. } => vec![
                case("Answers", "repair the network. Power nothing off, and delete nothing: the kubelets end their pods themselves.".to_owned()),
                confirm(&nodes.0, "look at the others. Confirm only those that you found off; a run then deletes on them."),
            ],
            Self::SeeMachine { nodes, needs, .. } if needs.history_alone => {
                vec![confirm(&nodes.0, "confirm that.")]
            }
            Self::SeeMachine { volumes, needs, nodes, .. } => {
                let names = &nodes.0;
                let on_disk = survey.select(|pod| {
                    pod.returns && pod.judged.pod.node.as_deref().is_some_and(|node| names.contains(&node))
                });
                let needed = on_disk.map(|pods| {
                    format!("{pods} {} its disk.", pods.verb("needs", "need"))
                });
                let then_on = if needs.disk { ", then on again: its disk keeps its data" } else { "" };
                let confirmed = if needs.mark { ", and confirm" } else { then_on };
                let moves = *volumes != Volumes::Stay;
                let comes = matches!(volumes, Volumes::MoveAfterRun { .. });
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
                    let what = format!("opt {} out of runs until {}.", Nodes(names.clone()), clock(until));
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

    /// Returns the pods that it is about, if it is about pods.
    fn pods(&mut self) -> Option<&mut Pods<'a>> {
        match self {
            Self::KeepData { pods, .. }
            | Self::SwitchOn { pods, .. }
            | Self::RepairLeaf { pods, .. }
            | Self::LookInLeafCluster { pods, .. }
            | Self::BringBack { pods, .. }
            | Self::NotDeleted { pods, .. }
            | Self::GiveUpPath { pods, .. }
            | Self::GiveUpAndMakeAgain { pods, .. }
            | Self::GiveUp { pods, .. }
            | Self::LeaveToOperator { pods, .. }
            | Self::GiveUpOneByOne { pods }
            | Self::SeeWhy { pods, .. }
            | Self::SeeKubelet { pods }
            | Self::SeeCollector { pods, .. }
            | Self::RepairController { pods, .. }
            | Self::RepairControllerOrTaint { pods, .. }
            | Self::SeeKosmos { pods }
            | Self::TaintNode { pods } => Some(pods),
            _ => None,
        }
    }

    /// Returns the nodes that it is about, if it is about nodes and no pods.
    fn nodes(&mut self) -> Option<&mut Nodes<'a>> {
        match self {
            Self::LookBeforePowerOff { nodes }
            | Self::AskMembers { nodes, .. }
            | Self::MakeRoom { nodes }
            | Self::Repair { nodes, .. }
            | Self::PowerOffAlive { nodes, .. }
            | Self::SeeMachine { nodes, .. }
            | Self::PowerOff { nodes } => Some(nodes),
            _ => None,
        }
    }

    /// Reports whether it gives data up.
    fn gives_up(&self) -> bool {
        matches!(
            self,
            Self::GiveUpPath { .. }
                | Self::GiveUpAndMakeAgain { .. }
                | Self::GiveUp { .. }
                | Self::LeaveToOperator { .. }
        )
    }
}

impl<'a> Pods<'a> {
    /// Lists their nodes.
    pub fn nodes(&self) -> Nodes<'a> {
        let nodes = self
            .0
            .iter()
            .filter_map(|pod| pod.judged.pod.node.as_deref());
        Nodes(
            nodes
                .unique()
                .sorted_by_cached_key(|name| natural(name))
                .collect(),
        )
    }

    pub fn verb(&self, singular: &'static str, plural: &'static str) -> &'static str {
        if self.0.len() == 1 { singular } else { plural }
    }

    /// Returns their node, if they have one in common.
    fn node<'s>(&self, survey: &'s Survey<'a>) -> Option<&'s NodeView<'a>> {
        survey.node_of_all(&self.0)
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
        let mut alike = pods.iter().map(|pod| (pod.fate, pod.fate_code()));
        match alike.all_equal_value() {
            Ok((Verdict::Manual, code)) => write!(f, " [{code}]"),
            _ => Ok(()),
        }
    }
}

impl Nodes<'_> {
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

/// Lists what to do about a run, its nodes and its pods, the most urgent first.
pub fn of<'a>(survey: &'a Survey<'a>) -> Vec<Advice<'a>> {
    let of_nodes = survey.nodes.iter().flat_map(|node| {
        let pods = node
            .pods
            .iter()
            .map(|place| &survey.pods[*place])
            .collect_vec();
        of_node(survey, node, &pods)
    });
    let of_pods = survey.pods.iter().flat_map(|pod| of_pod(survey, pod));
    let of_pods = of_pods.filter(|advice| !matches!(advice, Advice::TaintNode { .. }));
    let mut all = joined_up(of_nodes.chain(of_pods).chain(of_run(survey)));
    // Data is given up one pod at a time: a page has the command only if one pod needs it.
    let mut given_up = all.iter_mut().filter(|advice| advice.gives_up());
    let given_up = given_up.by_ref().filter_map(Advice::pods);
    let given_up = given_up.flat_map(|pods| pods.0.clone());
    let given_up = given_up
        .unique_by(|pod| pod.judged.pod.uid.as_str())
        .collect_vec();
    if given_up.len() > 1 {
        all.retain(|advice| !advice.gives_up());
        all.push(Advice::GiveUpOneByOne {
            pods: Pods(given_up),
        });
    }
    all.sort_by_key(|advice| advice.when() == When::Later);
    all
}

/// Lists what to do about one pod, and about its node because of the pod, the most urgent first.
pub fn of_one<'a>(survey: &'a Survey<'a>, pod: &'a PodView<'a>) -> Vec<Advice<'a>> {
    let node = survey.node_of(pod).into_iter();
    let of_node = node.flat_map(|node| of_node(survey, node, &[pod]));
    joined_up(of_node.chain(of_pod(survey, pod)))
}

/// Joins the same advice about several pods or nodes, and sorts it.
fn joined_up<'a>(all: impl Iterator<Item = Advice<'a>>) -> Vec<Advice<'a>> {
    let mut subjects = BTreeMap::<Advice<'a>, (bool, Pods<'a>, Nodes<'a>)>::new();
    for mut advice in all {
        let is_missed = advice.missed().is_some_and(std::mem::take);
        let pods = advice.pods().map(std::mem::take).unwrap_or_default();
        let nodes = advice.nodes().map(std::mem::take).unwrap_or_default();
        let subject = subjects.entry(advice).or_default();
        subject.0 |= is_missed;
        subject.1.0.extend(pods.0);
        subject.2.0.extend(nodes.0);
    }
    let advice = subjects
        .into_iter()
        .map(|(mut advice, (is_missed, pods, nodes))| {
            if let Some(missed) = advice.missed() {
                *missed = is_missed;
            }
            if let Some(none) = advice.pods() {
                *none = pods;
            }
            if let Some(none) = advice.nodes() {
                *none = nodes;
            }
            advice
        });
    advice.collect()
}

/// Lists what to do about the limits, the history, and what was not read.
fn of_run<'a>(survey: &'a Survey<'a>) -> Vec<Advice<'a>> {
    let mut all = Vec::new();
    let down = || Nodes(survey.machines_down());
    all.extend(survey.unmatched.is_some().then_some(Advice::CorrectFilter));
    all.extend(survey.incomplete.is_some().then_some(Advice::SaveAgain));
    match survey.limit() {
        Some(Limit::MassOutage(_)) => all.extend(reach(survey, survey.machines_down())),
        Some(Limit::NoRoom(_)) => all.push(Advice::MakeRoom { nodes: down() }),
        Some(Limit::Unread(what)) => all.push(Advice::SeeWhatIsNotKnown { what }),
        Some(Limit::FailedTogether { .. }) => {
            let groups = survey.together.iter();
            all.extend(groups.filter_map(|(_, nodes)| reach(survey, nodes.clone())));
        }
        Some(Limit::OverCap(_)) | None => {}
    }
    let returned = survey
        .remembered
        .iter()
        .filter(|node| node.may_have_run_twice())
        // Several nodes had one name. What nobody was told comes first, and stands once.
        .sorted_by_key(|node| !node.needs_you());
    let mut said = BTreeSet::new();
    for node in returned {
        let told = !node.needs_you();
        let is_suspect = |it: &&Reaped| it.attached || !it.is_replaced_early();
        let mut pods = node.noted.pods.iter().filter(is_suspect).collect_vec();
        if pods.is_empty() {
            pods = node.noted.pods.iter().collect();
        }
        if node.now.state == NodeState::AnotherMachine {
            let node = &node.noted.node;
            if said.insert(node.clone()) {
                all.push(Advice::FindOldMachine { told, node });
            }
        }
        let since = day(survey, node.noted.first_reap);
        let pods = if pods.is_empty() {
            "pods that the run which deleted them could not name".to_owned()
        } else {
            listed(&pods, NAMES)
        };
        let node = &node.noted.node;
        if said.insert(format!("{node} {since} {pods}")) {
            all.push(Advice::CheckForTwoWriters {
                told,
                node,
                since,
                pods,
            });
        }
    }
    let sets = survey.not_ready_again();
    let is_missed = |set: &&RememberedSet| set.copies.is_some_and(|it| it.ready <= it.wanted / 2);
    all.extend(sets.first().map(|worst| Advice::NotReadyAgain {
        missed: sets.iter().any(is_missed),
        sets: listed(&sets, NAMED),
        namespace: &worst.namespace,
    }));
    // Without leases, the file is to be saved again.
    let gaps = survey.gaps.iter().filter(|_| survey.incomplete.is_none());
    all.extend(gaps.map(|gap| Advice::NotRead {
        first: &gap.first.what,
        more: gap.count - 1,
        cause: &gap.first.cause,
    }));
    all.extend(survey.strays.iter().map(|stray| match stray {
        Stray::Attachment { node, attachment } => Advice::SeeAttachment { node, attachment },
        Stray::Pending {
            namespace,
            pod,
            pod_uid,
            claim,
            claim_uid,
            volume,
        } => Advice::GiveUpForPending {
            namespace,
            pod,
            volume,
            claim,
            pod_uid,
            claim_uid,
        },
    }));
    all
}

/// Lists the nodes whose machines have to be looked at before something is harmed, each with what to do.
pub fn to_look_at(survey: &Survey<'_>) -> Vec<(String, String)> {
    let all = of(survey).into_iter().filter(|advice| {
        matches!(advice, Advice::SeeMachine { .. }) && advice.press() == Some(Press::Harm)
    });
    let of_nodes = all.flat_map(|advice| {
        let what = advice.to_string();
        let (_, nodes) = advice.subject();
        let names = nodes.0.into_iter().map(str::to_owned);
        names.map(|name| (name, what.clone())).collect_vec()
    });
    of_nodes.collect()
}

/// Returns the look at the first of nodes of which nobody knows whether they live.
fn reach<'a>(survey: &'a Survey<'a>, nodes: Vec<&'a str>) -> Option<Advice<'a>> {
    let first = survey.node(nodes.first()?)?;
    let nodes = Nodes(nodes);
    Some(Advice::Reach { first, nodes })
}

/// Lists what to do about a node because of these pods on it. Nothing in the list contradicts its state: a node that is
/// alive, fenced, being deleted, no machine or a needed member of etcd is never powered off.
fn of_node<'a>(
    survey: &'a Survey<'a>,
    node: &'a NodeView<'a>,
    pods: &[&'a PodView<'a>],
) -> Vec<Advice<'a>> {
    let mut all = Vec::new();
    let nodes = || Nodes(vec![node.name]);
    let asks = |code| pods.iter().any(|pod| pod.asks().contains(&code));
    if asks(ReasonCode::EtcdMember)
        && let Some(quorum) = node.quorum()
    {
        all.push(Advice::ReachMembers { quorum });
        for node in quorum.not_ready.iter().take(NAMED) {
            all.push(Advice::DeleteMember { node });
            all.push(Advice::ConfirmOneOff { node });
        }
    }
    if asks(ReasonCode::KubeletAlive) {
        let missed = pods.iter().any(|pod| pod.is_missed());
        let says = |known: &&NodeFacts| known.ready == Ready::False;
        let known = node.known.filter(says);
        all.push(Advice::Repair {
            missed,
            alone: Some(node),
            fault: known.and_then(|node| node.kubelet_says),
            nodes: nodes(),
        });
        let silence = survey.settings.policy.silent_after();
        all.push(Advice::PowerOffAlive {
            missed,
            silence,
            nodes: nodes(),
        });
    }
    let on_disk = pods.iter().copied().filter(|pod| pod.returns).collect_vec();
    let missed = on_disk
        .iter()
        .copied()
        .filter(|pod| pod.is_missed())
        .collect_vec();
    // A page names those that are missed, if there are some.
    let back = if missed.is_empty() { &on_disk } else { &missed };
    let back = (!back.is_empty()).then(|| (!missed.is_empty(), Pods(back.clone())));
    if !node.is_suspect() || node.held.is_some() {
        all.extend(
            back.filter(|_| node.held.is_none())
                .map(|(missed, pods)| Advice::BringBack { missed, pods }),
        );
        return all;
    }
    if node.volumes != Volumes::Stay {
        all.extend(back.map(|(missed, pods)| Advice::SwitchOn { missed, pods }));
    }
    let has_moved = matches!(
        node.volumes,
        Volumes::MovedAt(_) | Volumes::MoveAt(_) | Volumes::MayHaveMoved
    );
    let wants_off = pods.iter().any(|pod| pod.wants_node_off());
    if !wants_off && !has_moved {
        let quorum = node.quorum().filter(|it| it.has_no_spare());
        all.extend(quorum.map(|quorum| Advice::AskMembers {
            missed: false,
            quorum,
            nodes: nodes(),
        }));
        return all;
    }
    let is_control_plane = node.known.is_some_and(|node| node.roles.control_plane);
    let asks_for_mark = |pod: &&&PodView<'_>| pod.asks().contains(&ReasonCode::SharedDisk);
    let needs = Needs {
        disk: !on_disk.is_empty(),
        history_alone: !wants_off,
        mark: node.volumes != Volumes::Stay || pods.iter().any(|pod| asks_for_mark(&pod)),
        is_missed: !missed.is_empty()
            || pods.iter().filter(asks_for_mark).any(|pod| pod.is_missed()),
    };
    let look = match node.volumes {
        _ if is_control_plane && survey.control_plane_is_unsure => {
            Advice::LookBeforePowerOff { nodes: nodes() }
        }
        Volumes::Stay if !needs.disk && !needs.mark => Advice::PowerOff { nodes: nodes() },
        volumes => Advice::SeeMachine {
            volumes,
            needs,
            alone: (survey.suspects <= NAMED).then_some(node),
            nodes: nodes(),
        },
    };
    if let Some(quorum) = node.quorum().filter(|it| it.has_no_spare()) {
        let (missed, nodes) = (look.press().is_some(), nodes());
        all.push(Advice::AskMembers {
            missed,
            quorum,
            nodes,
        });
    }
    all.push(look);
    all
}

/// Lists what to do about a pod.
fn of_pod<'a>(survey: &'a Survey<'a>, pod: &'a PodView<'a>) -> Vec<Advice<'a>> {
    let judged = pod.judged;
    let pods = || Pods(vec![pod]);
    let mut all = Vec::new();
    // The volume of a PVC that somebody deleted before the node failed goes with the pod.
    let missed = pod.is_missed();
    all.extend(pod.reason.ties.iter().filter_map(|tie| {
        let TieKind::Goes(Wanted::Deleted(_) | Wanted::DeletedAndHeld { .. }) = tie.kind else {
            return None;
        };
        Some(Advice::KeepData {
            volume: &judged.claim(&tie.pvc)?.read.bound()?.volume.name,
            claim: &tie.pvc,
            pods: pods(),
        })
    }));
    let failure = pod.outcome.filter(|outcome| outcome.code().is_failure());
    all.extend(failure.map(|outcome| Advice::NotDeleted {
        missed,
        code: outcome.code(),
        why: outcome.sentence(),
        pods: pods(),
    }));
    if pod.hangs() && !pod.is_on_held_node {
        all.push(Advice::SeeKubelet { pods: pods() });
    }
    let why = &judged.reason.cause;
    if matches!(why, Cause::NodeGone { stays: Some(_), .. }) {
        let why = why.to_string();
        all.push(Advice::SeeCollector { why, pods: pods() });
    }
    for code in pod.asks() {
        all.extend(of_reason(survey, pod, *code));
    }
    let is_said_of_node = pod.wants_node_off()
        && survey.node_of(pod).is_some_and(NodeView::is_suspect)
        || [ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&pod.fate_code());
    if all.is_empty() && !pod.asks().is_empty() && !is_said_of_node {
        let code = pod.fate_code();
        all.push(Advice::SeeWhy {
            missed,
            code,
            pods: pods(),
        });
    }
    let is_at_rest = [ReasonCode::LocalVolume, ReasonCode::HostPath].contains(&pod.fate_code());
    let node = survey.node_of(pod).filter(|_| is_at_rest);
    if node.is_some_and(|node| node.may_taint) {
        all.push(Advice::TaintNode { pods: pods() });
    }
    all
}

/// Lists what to do about a reason that needs you, besides what is to be done about its node. A reason without a row is
/// explained elsewhere.
fn of_reason<'a>(
    survey: &'a Survey<'a>,
    pod: &'a PodView<'a>,
    code: ReasonCode,
) -> Vec<Advice<'a>> {
    let pods = || Pods(vec![pod]);
    let missed = pod.is_missed();
    let facts = &pod.judged.pod;
    match code {
        // Their node's steps say what to do.
        ReasonCode::EtcdMember | ReasonCode::KubeletAlive | ReasonCode::SharedDisk => Vec::new(),
        ReasonCode::Finalizers => {
            let finalizers = facts
                .holding_finalizers(pod.node.is_some())
                .map(|finalizer| {
                    let by = facts.finalizers_set_by.get(finalizer);
                    let pods = pods();
                    match pod.node {
                        Some(_) => Advice::RepairControllerOrTaint {
                            missed,
                            finalizer,
                            by,
                            pods,
                        },
                        None => Advice::RepairController {
                            missed,
                            finalizer,
                            by,
                            pods,
                        },
                    }
                });
            finalizers.collect()
        }
        ReasonCode::KosmosLeaf => {
            let leaf = pod.node.and_then(|node| node.leaf.as_ref());
            let cluster = leaf.and_then(|leaf| leaf.cluster.as_deref());
            vec![
                Advice::LookInLeafCluster {
                    missed,
                    cluster: cluster.unwrap_or("the leaf cluster"),
                    pods: pods(),
                },
                Advice::SeeKosmos { pods: pods() },
            ]
        }
        ReasonCode::VirtualNode | ReasonCode::EdgeNode | ReasonCode::LeafNode => {
            vec![Advice::RepairLeaf {
                missed,
                pods: pods(),
            }]
        }
        ReasonCode::LocalVolume => {
            let ties = pod.reason.ties.iter();
            ties.filter_map(|tie| of_tie(survey, pod, tie)).collect()
        }
        ReasonCode::HostPath => {
            let paths = facts.host_paths.iter().join(", ");
            vec![Advice::GiveUpPath {
                paths,
                pods: pods(),
            }]
        }
        _ => vec![Advice::SeeWhy {
            missed,
            code,
            pods: pods(),
        }],
    }
}

/// Returns what to do about a PVC whose volume other nodes do not reach.
fn of_tie<'a>(survey: &Survey<'a>, pod: &'a PodView<'a>, tie: &'a Tie) -> Option<Advice<'a>> {
    let judged = pod.judged;
    let pods = Pods(vec![pod]);
    let claim = judged.claim(&tie.pvc);
    match tie.kind {
        TieKind::Confined(_) => {
            let code = ReasonCode::LocalVolume;
            let missed = pod.is_missed();
            return Some(Advice::SeeWhy { missed, code, pods });
        }
        TieKind::Pinned(_) if claim.is_none_or(|it| it.read.deletion.is_none()) => {}
        _ => return None,
    }
    let later = survey.settings.policy.given_up_after();
    let finalizers = claim.map_or(&[][..], |it| &it.read.finalizers[..]);
    let set = judged.pod.stateful_set();
    let operator = judged.pod.operated_by(judged.storage.as_ref());
    if claim.is_some_and(|it| it.templated) && set.is_some() {
        // The template of the StatefulSet makes the PVC again.
        let volume = claim.and_then(|it| it.read.bound());
        let policy = volume.and_then(|it| it.volume.reclaim_policy.as_deref());
        return Some(Advice::GiveUp {
            is_retained: policy == Some("Retain"),
            finalizers,
            later,
            claim: &tie.pvc,
            operator,
            pods,
        });
    }
    if let Some(owner) = claim.and_then(|it| it.read.owner.as_ref()) {
        let claim = &tie.pvc;
        return Some(Advice::LeaveToOperator { claim, owner, pods });
    }
    let read = judged.storage.as_ref().and_then(|it| it.set.as_ref());
    Some(Advice::GiveUpAndMakeAgain {
        claim: &tie.pvc,
        finalizers,
        later,
        operator,
        unread_set: set.filter(|_| !matches!(read, Some(Ok(_)))),
        pods,
    })
}

/// Says what must not be done to these pods and their nodes.
pub fn never(survey: &Survey<'_>, pods: &[&PodView<'_>]) -> Vec<String> {
    let of = |is: &dyn Fn(&PodView<'_>) -> bool| {
        let pods = pods.iter().copied().filter(|pod| is(pod)).collect_vec();
        Some(Pods(pods)).filter(|pods| !pods.0.is_empty())
    };
    let is_alive = |pod: &PodView<'_>| {
        [ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&pod.code())
    };
    let members = of(&|pod| pod.code() == ReasonCode::EtcdMember);
    let needs_you = |pod: &PodView<'_>| pod.fate == Verdict::Manual && !is_alive(pod);
    // The steps for these reasons delete the pod by hand.
    let by_hand = [ReasonCode::HostPath, ReasonCode::OwnerKind];
    let is_kept = |pod: &PodView<'_>| {
        let mut codes = pod.reason.asks.iter().copied().chain([pod.fate_code()]);
        needs_you(pod) && !codes.any(|code| by_hand.contains(&code))
    };
    let moves = of(&|pod| {
        let node = survey.node_of(pod);
        pod.moves_a_volume() && node.is_some_and(NodeView::is_suspect)
    });
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
        of(&is_alive).map(|_| "force-delete pods on a machine that is alive: they would run twice.".to_owned()),
        of(&is_kept).map(|pods| format!("force-delete pods that need you: {pods}.")),
        of(&needs_you).map(|_| match &moves {
            Some(_) => "strip a finalizer.".to_owned(),
            None => "strip a finalizer, or delete a VolumeAttachment.".to_owned(),
        }),
        moves.map(|pods| format!("force-delete pods that a run deletes, or delete a VolumeAttachment, before {} off.", pods.nodes().are("is", "are"))),
    ];
    texts.into_iter().flatten().collect()
}

/// Says that machines are switched on for their disks.
fn to_switch_on(pods: &Pods<'_>) -> String {
    let [them, their] = match pods.nodes().0.len() {
        1 => ["it", "its disk"],
        _ => ["them", "their disks"],
    };
    let need = pods.verb("needs", "need");
    format!("switch {them} on again: {pods} {need} {their}. Discard nothing tonight.")
}

/// Names a machine with what finds its console: its address, its zone, and the end of its provider ID.
fn spot(node: &NodeView<'_>) -> String {
    let known = node.known.into_iter();
    let words = known.flat_map(|node| {
        let zone = node.zone.as_ref().and_then(|zone| zone.0[1].as_deref());
        let zone = zone.map(|zone| format!("zone {}", Foreign::<60>::from(zone)));
        let [address, machine] =
            [&node.address, &node.machine].map(|it| it.as_ref().map(Foreign::to_string));
        [address, zone, machine].into_iter().flatten()
    });
    let words = joined(words, ", ").map(|words| format!("({words})"));
    node.name.to_owned() + &prefixed(" ", words)
}

/// Says which machine to look at, and by when.
fn to_see(
    nodes: &Nodes<'_>,
    alone: Option<&NodeView<'_>>,
    volumes: Volumes,
    needs: Needs,
) -> String {
    let spot = alone.map_or_else(|| nodes.to_string(), spot);
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
        Volumes::MoveAfterRun { from: Some(at), .. } => {
            format!("Look at the console of {spot} before {}.", clock(at))
        }
        Volumes::MoveAfterRun { from: None, .. } => {
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

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(", and {more} more like it"),
    }
}

/// Spells a moment of the day.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%RZ").to_string()
}
