//! What to do, as data: each variant stands below its sentence. Three functions make it: of the run, of a node, and of a
//! pod. The same advice about several pods or nodes is one.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use derive_more::Display;
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    NAMED, NAMES,
    survey::{Damage, NodeView, PodView, Survey, Volumes},
};
use crate::{
    codes::codes,
    facts::{KubeletSays, NodeFacts, Owner, Quorum, Ready, Stray, Uid},
    history::{NodeState, Reaped},
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
        quorum: &'a Quorum,
        nodes: Nodes<'a>,
    },
    #[display("Suspend the CronJob, and reach one of {nodes} by ssh or at its console.")]
    ReachOne { nodes: Nodes<'a> },
    #[display(
        "See what {nodes} have in common, and reach one of them by ssh or at its console. If it runs, repair the switch, the rack or the host, and power nothing off."
    )]
    ReachTogether { nodes: Nodes<'a> },
    #[display("Bring {nodes} back; or power it off, and add a node on which pods can start.")]
    MakeRoom { nodes: Nodes<'a> },
    #[display("See why this is not known, and run again: {what}.")]
    SeeWhatIsNotKnown { what: &'a str },

    // A machine lives: repair what fails there.
    #[display("On {nodes}, {repair}", repair = to_repair(*fault))]
    Repair {
        fault: Option<KubeletSays>,
        nodes: Nodes<'a>,
    },
    #[display(
        "If it runs, repair the network, and delete nothing: the kubelets end their pods themselves. Resume the CronJob when all are Ready: a run deletes on nodes that are still cut off."
    )]
    RepairNetwork,

    // It cannot be repaired.
    #[display("Only if that fails, power {nodes} off, which stops what runs there: after {time} of silence the next run force-deletes the pods.", time = human_duration(*silence))]
    PowerOffAlive {
        silence: SignedDuration,
        nodes: Nodes<'a>,
    },
    #[display(
        "Only if the datastore is elsewhere, or was reset or restored to fewer members, and {node} is gone for good: delete its Node object, which deletes its pods."
    )]
    DeleteMember { node: &'a str },
    #[display(
        "If they are off, power them on again. Only those that are off for good: confirm each that you have SEEN off (book: Confirm that a machine is off)."
    )]
    PowerOn,
    #[display(
        "Only once you have SEEN {node} off, confirm that: the next run deletes its pods. (Each node by its own name.)"
    )]
    ConfirmOneOff { node: &'a str },

    // Other machines can use the volumes of a machine that nobody has seen off.
    #[display("Have you SEEN {nodes} off? If not, POWER IT OFF NOW, and check for two writers: since {since}, other nodes may use its volumes.", since = clock(*moved))]
    SeeOff { moved: Timestamp, nodes: Nodes<'a> },

    #[display(
        "Have you SEEN {nodes} off? If not, POWER IT OFF NOW. What earlier runs deleted there is not known: assume that other nodes use its volumes."
    )]
    SeeOffNotKnown { nodes: Nodes<'a> },
    #[display(
        "Have you SEEN {nodes} off? If not, POWER IT OFF before the next run: what earlier runs deleted there may run twice."
    )]
    SeeOffEarlier { nodes: Nodes<'a> },
    #[display(
        "Another machine has the name {node}, and nobody saw the old one off: find it, and see that it is off."
    )]
    FindOldMachine { node: &'a str },

    // A machine with data may be booting.
    #[display("Look at the console of {nodes}. If it is booting, wait: these need its disk: {pods}.", nodes = pods.nodes())]
    WaitIfItBoots { pods: Pods<'a> },

    // A machine may still run.
    #[display(
        "If {nodes} is not booting, power it off before you give anything up; its disk keeps its data."
    )]
    PowerOffToGiveUp { nodes: Nodes<'a> },
    #[display(
        "If the console of {nodes} does not show it booting, POWER IT OFF before the next run, then on again; its disk keeps its data. If you cannot, suspend the CronJob until you can: 6 minutes after the run, two machines may write to the volumes that are attached to {nodes}."
    )]
    PowerOffBeforeRun { nodes: Nodes<'a> },
    #[display("POWER {nodes} OFF BEFORE {time}. From then on, other nodes get the volumes that are attached to it: if {nodes} is still on, two machines may write to them. Waiting for {nodes} is no longer safe. If you cannot, scale what uses them to 0.", time = clock(*moves))]
    PowerOffBefore { moves: Timestamp, nodes: Nodes<'a> },
    #[display(
        "Power off, unless the console shows it booting: {nodes}. Old containers may still run there."
    )]
    PowerOff { nodes: Nodes<'a> },

    // Pods may run elsewhere, or twice.
    #[display("{nodes} is a leaf node: repair it, or the link to it. Its own agent then ends {pods}.", nodes = pods.nodes())]
    RepairLeaf { pods: Pods<'a> },
    #[display(
        "Look in {cluster} for {pods} BEFORE you repair the link: the repair stops what runs there."
    )]
    LookInLeafCluster { cluster: &'a str, pods: Pods<'a> },
    #[display(
        "Check for two writers (logs, the application's own check of its data), since these may have run on {node} beside their replacements: {pods}. If you find two, stop the application, and check its file system and its data before it writes again. (Exit 5 this time only; kept in the history for 7 days.)"
    )]
    CheckForTwoWriters { node: &'a str, pods: String },

    // Nothing else but a machine or its disk helps.
    #[display("{pods}: two machines would write to one disk if {nodes} is still on. Once you have SEEN it off, confirm that{then}.", then = if *is_enough { ", and the next run reaps" } else { "" }, nodes = pods.nodes())]
    ConfirmOff { is_enough: bool, pods: Pods<'a> },
    #[display("Bring {nodes} back with its disk, for what needs it: {pods}.", nodes = pods.nodes())]
    BringBack { pods: Pods<'a> },
    #[display("{pods} {verb} down until {nodes} is back. Discard nothing tonight.", nodes = pods.nodes(), verb = pods.verb("is", "are"))]
    DiscardNothing { pods: Pods<'a> },

    // Something was not deleted, is not back, or was not read.
    #[display("See why {pods} {verb} not deleted [{code}]: {why}", verb = pods.verb("was", "were"))]
    NotDeleted {
        code: OutcomeCode,
        why: String,
        pods: Pods<'a>,
    },
    #[display(
        "Not Ready again since pods were deleted: {sets}. Unless another step explains it, see the events of namespace {namespace}."
    )]
    NotReadyAgain { sets: String, namespace: &'a str },
    #[display("Not read: {first}{others}: {cause}", others = and_more(*more))]
    NotRead {
        first: &'a str,
        more: usize,
        cause: &'a str,
    },

    // From here on, everything can wait. A machine is lost with its data.
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
    SeeWhy { code: ReasonCode, pods: Pods<'a> },
    #[display("{pods} {verb} on a Ready node: see the log of the kubelet of {nodes}.", nodes = pods.nodes(), verb = pods.verb("hangs", "hang"))]
    SeeKubelet { pods: Pods<'a> },
    #[display("{pods}: {why}")]
    SeeCollector { why: String, pods: Pods<'a> },
    #[display("{pods} {verb} held by finalizer {finalizer}{setter}: repair its controller.", setter = prefixed(", set by ", *by), verb = pods.verb("is", "are"))]
    RepairController {
        finalizer: &'a Foreign,
        by: Option<&'a Foreign>,
        pods: Pods<'a>,
    },
    #[display("{pods} {verb} held by finalizer {finalizer}{setter}: repair its controller. Only if that ran on {nodes} or waits for the end of the pod, and you have SEEN {nodes} off, {TAINT}.", setter = prefixed(", set by ", *by), nodes = pods.nodes(), verb = pods.verb("is", "are"))]
    RepairControllerOrTaint {
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
    /// Reports how soon it is to be done.
    pub fn when(&self) -> When {
        match self {
            Self::GiveUpPath { .. }
            | Self::GiveUpAndMakeAgain { .. }
            | Self::GiveUp { .. }
            | Self::LeaveToOperator { .. }
            | Self::GiveUpOneByOne { .. }
            | Self::SeeWhy { .. }
            | Self::SeeKubelet { .. }
            | Self::SeeCollector { .. }
            | Self::RepairController { .. }
            | Self::RepairControllerOrTaint { .. }
            | Self::SeeKosmos { .. }
            | Self::SeeAttachment { .. }
            | Self::GiveUpForPending { .. }
            | Self::TaintNode { .. } => When::Later,
            _ => When::Now,
        }
    }

    /// Returns the harm that its command does.
    pub fn harm(&self) -> Option<Harm> {
        match self {
            Self::GiveUp { .. } | Self::GiveUpForPending { .. } => Some(Harm::Data),
            Self::DeleteMember { .. }
            | Self::ConfirmOneOff { .. }
            | Self::ConfirmOff { .. }
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
            Self::LookInLeafCluster { cluster, pods } => {
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
            Self::ConfirmOff { pods, .. } => kubectl.confirm_off(pods.node(survey)?.known?),
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

    /// Returns the pods that it is about, if it is about pods.
    fn pods(&mut self) -> Option<&mut Pods<'a>> {
        match self {
            Self::KeepData { pods, .. }
            | Self::WaitIfItBoots { pods }
            | Self::RepairLeaf { pods }
            | Self::LookInLeafCluster { pods, .. }
            | Self::ConfirmOff { pods, .. }
            | Self::BringBack { pods }
            | Self::DiscardNothing { pods }
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
            | Self::ReachOne { nodes }
            | Self::MakeRoom { nodes }
            | Self::Repair { nodes, .. }
            | Self::PowerOffAlive { nodes, .. }
            | Self::SeeOff { nodes, .. }
            | Self::SeeOffNotKnown { nodes }
            | Self::SeeOffEarlier { nodes }
            | Self::PowerOffToGiveUp { nodes }
            | Self::PowerOffBeforeRun { nodes }
            | Self::PowerOffBefore { nodes, .. }
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

    fn verb(&self, singular: &'static str, plural: &'static str) -> &'static str {
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
        let mut alike = pods.iter().map(|pod| (pod.verdict(), pod.code()));
        match alike.all_equal_value() {
            Ok((Verdict::Manual, code)) => write!(f, " [{code}]"),
            _ => Ok(()),
        }
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
    // If only one pod is there to wait for, the look at its node says so.
    let is_said =
        |advice: &Advice<'_>| matches!(advice, Advice::WaitIfItBoots { pods } if pods.0.len() == 1);
    let is_alone = |pod: &&PodView<'_>| {
        pod.is_local() && pod.damage == Damage::NoOtherReady && !pod.is_on_held_node
    };
    let alone = survey.pods.iter().filter(is_alone).collect_vec();
    if !alone.is_empty() && !all.iter().any(is_said) {
        all.push(Advice::DiscardNothing { pods: Pods(alone) });
    }
    all.sort();
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
    let mut subjects = BTreeMap::<Advice<'a>, (Pods<'a>, Nodes<'a>)>::new();
    for mut advice in all {
        let pods = advice.pods().map(std::mem::take).unwrap_or_default();
        let nodes = advice.nodes().map(std::mem::take).unwrap_or_default();
        let subject = subjects.entry(advice).or_default();
        subject.0.0.extend(pods.0);
        subject.1.0.extend(nodes.0);
    }
    let advice = subjects.into_iter().map(|(mut advice, (pods, nodes))| {
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
        Some(Limit::MassOutage(_)) => all.extend([
            Advice::ReachOne { nodes: down() },
            Advice::RepairNetwork,
            Advice::PowerOn,
        ]),
        Some(Limit::NoRoom(_)) => all.push(Advice::MakeRoom { nodes: down() }),
        Some(Limit::Unread(what)) => all.push(Advice::SeeWhatIsNotKnown { what }),
        Some(Limit::FailedTogether { .. }) => {
            for (_, nodes) in &survey.together {
                let each = nodes.iter().take(NAMED);
                all.extend(each.map(|node| Advice::ConfirmOneOff { node }));
                let nodes = Nodes(nodes.clone());
                all.push(Advice::ReachTogether { nodes });
            }
        }
        Some(Limit::OverCap(_)) | None => {}
    }
    for node in survey.came_back() {
        let is_suspect = |it: &&Reaped| it.attached || !it.is_replaced_early();
        let mut pods = node.noted.pods.iter().filter(is_suspect).collect_vec();
        if pods.is_empty() {
            pods = node.noted.pods.iter().collect();
        }
        if node.now.state == NodeState::AnotherMachine {
            let node = &node.noted.node;
            all.push(Advice::FindOldMachine { node });
        }
        all.push(Advice::CheckForTwoWriters {
            node: &node.noted.node,
            pods: listed(&pods, NAMES),
        });
    }
    let sets = survey.not_ready_again();
    all.extend(sets.first().map(|worst| Advice::NotReadyAgain {
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
        let says = |known: &&NodeFacts| known.ready == Ready::False;
        let known = node.known.filter(says);
        all.push(Advice::Repair {
            fault: known.and_then(|node| node.kubelet_says),
            nodes: nodes(),
        });
        let silence = survey.settings.policy.silent_after();
        all.push(Advice::PowerOffAlive {
            silence,
            nodes: nodes(),
        });
    }
    if !node.is_suspect() || !pods.iter().any(|pod| pod.wants_node_off()) {
        return all;
    }
    if let Some(quorum) = node.quorum().filter(|it| it.has_no_spare()) {
        let nodes = nodes();
        all.push(Advice::AskMembers { quorum, nodes });
    }
    let before = |moves| Advice::PowerOffBefore {
        moves,
        nodes: nodes(),
    };
    let is_control_plane = node.known.is_some_and(|node| node.roles.control_plane);
    all.push(match node.volumes {
        _ if is_control_plane && survey.control_plane_is_unsure => {
            Advice::LookBeforePowerOff { nodes: nodes() }
        }
        Volumes::MovedAt(moved) => Advice::SeeOff {
            moved,
            nodes: nodes(),
        },
        // What was not read may be attached.
        Volumes::MoveAt(moves) | Volumes::MayMove(Some(moves)) => before(moves),
        Volumes::MayHaveMoved => Advice::SeeOffNotKnown { nodes: nodes() },
        _ if node.was_acted_on_earlier => Advice::SeeOffEarlier { nodes: nodes() },
        _ if !node.is_reaped => Advice::PowerOffToGiveUp { nodes: nodes() },
        Volumes::Stay => Advice::PowerOff { nodes: nodes() },
        Volumes::MayMove(None) | Volumes::MoveAfterRun => {
            Advice::PowerOffBeforeRun { nodes: nodes() }
        }
    });
    all
}

/// Lists what to do about a pod.
fn of_pod<'a>(survey: &'a Survey<'a>, pod: &'a PodView<'a>) -> Vec<Advice<'a>> {
    let judged = pod.judged;
    let pods = || Pods(vec![pod]);
    let mut all = Vec::new();
    // The volume of a PVC that somebody deleted before the node failed goes with the pod.
    all.extend(judged.reason.ties.iter().filter_map(|tie| {
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
        || [ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&pod.code());
    if all.is_empty() && !pod.asks().is_empty() && !is_said_of_node {
        let code = judged.reason.code();
        all.push(Advice::SeeWhy { code, pods: pods() });
    }
    let is_at_rest =
        [ReasonCode::LocalVolume, ReasonCode::HostPath].contains(&judged.reason.code());
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
    let facts = &pod.judged.pod;
    match code {
        ReasonCode::EtcdMember | ReasonCode::KubeletAlive => Vec::new(),
        ReasonCode::Finalizers => {
            let finalizers = facts
                .holding_finalizers(pod.node.is_some())
                .map(|finalizer| {
                    let by = facts.finalizers_set_by.get(finalizer);
                    let pods = pods();
                    match pod.node {
                        Some(_) => Advice::RepairControllerOrTaint {
                            finalizer,
                            by,
                            pods,
                        },
                        None => Advice::RepairController {
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
                    cluster: cluster.unwrap_or("the leaf cluster"),
                    pods: pods(),
                },
                Advice::SeeKosmos { pods: pods() },
            ]
        }
        ReasonCode::VirtualNode | ReasonCode::EdgeNode | ReasonCode::LeafNode => {
            vec![Advice::RepairLeaf { pods: pods() }]
        }
        ReasonCode::LocalVolume => {
            let ties = pod.judged.reason.ties.iter();
            let mut all = ties
                .filter_map(|tie| of_tie(survey, pod, tie))
                .collect_vec();
            all.extend(bring_back(survey, pod));
            all
        }
        ReasonCode::HostPath => {
            let paths = facts.host_paths.iter().join(", ");
            let mut all = vec![Advice::GiveUpPath {
                paths,
                pods: pods(),
            }];
            all.extend(bring_back(survey, pod));
            all
        }
        // A mark is enough only if no other rule keeps the pod.
        ReasonCode::SharedDisk => vec![Advice::ConfirmOff {
            is_enough: pod.judged.reason.asks == [code],
            pods: pods(),
        }],
        _ => vec![Advice::SeeWhy { code, pods: pods() }],
    }
}

/// Returns what brings a pod back with its data.
fn bring_back<'a>(survey: &Survey<'a>, pod: &'a PodView<'a>) -> Option<Advice<'a>> {
    if !pod.returns {
        return None;
    }
    let pods = Pods(vec![pod]);
    // A machine that is known to be off, or that nobody may power off yet, is not looked at.
    let node = survey.node_of(pod)?;
    let is_sure = !node.known?.roles.control_plane || !survey.control_plane_is_unsure;
    let is_on = node.is_suspect() && is_sure;
    Some(if is_on {
        Advice::WaitIfItBoots { pods }
    } else {
        Advice::BringBack { pods }
    })
}

/// Returns what to do about a PVC whose volume other nodes do not reach.
fn of_tie<'a>(survey: &Survey<'a>, pod: &'a PodView<'a>, tie: &'a Tie) -> Option<Advice<'a>> {
    let judged = pod.judged;
    let pods = Pods(vec![pod]);
    let claim = judged.claim(&tie.pvc);
    match tie.kind {
        TieKind::Confined(_) => {
            let code = ReasonCode::LocalVolume;
            return Some(Advice::SeeWhy { code, pods });
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
    let needs_you = |pod: &PodView<'_>| pod.verdict() == Verdict::Manual && !is_alive(pod);
    // The steps for these reasons delete the pod by hand.
    let by_hand = [ReasonCode::HostPath, ReasonCode::OwnerKind];
    let is_kept = |pod: &PodView<'_>| {
        let mut codes = pod.judged.reason.asks.iter().copied().chain([pod.code()]);
        needs_you(pod) && !codes.any(|code| by_hand.contains(&code))
    };
    let moves_late = of(&|pod| {
        let node = survey.node_of(pod);
        pod.verdict() == Verdict::Reap
            && pod.detaches_late
            && node.is_some_and(NodeView::is_suspect)
    });
    let option = match survey.limit() {
        Some(Limit::MassOutage(_)) => Some("--max-not-ready-percent=100"),
        Some(Limit::FailedTogether { .. }) => Some("--max-failed-together=0"),
        _ => None,
    };
    let late = moves_late.filter(|_| of(&needs_you).is_none());
    let texts = [
        members.map(|pods| {
            let quorums = pods.0.iter().filter_map(|pod| pod.node?.quorum.as_deref());
            let names = quorums.flat_map(|it| &it.not_ready).unique().join(" or ");
            format!("power off {names} before you know that it is dead: the API server may need it.")
        }),
        option.map(|option| format!("set {option} or force-delete a pod before you know that these nodes are off.")),
        of(&is_alive).map(|_| "force-delete pods on a machine that is alive: they would run twice.".to_owned()),
        of(&is_kept).map(|pods| format!("force-delete pods that need you: {pods}.")),
        of(&needs_you).map(|_| "strip finalizers, or delete VolumeAttachments.".to_owned()),
        late.map(|pods| format!("delete a VolumeAttachment: if {} is still on, two machines would write to its volume.", pods.nodes())),
    ];
    texts.into_iter().flatten().collect()
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
