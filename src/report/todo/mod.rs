//! What to do, as data. A reason yields some of these; the report joins equal ones of several pods and nodes.

mod choose;
mod write;

use std::collections::BTreeMap;

use itertools::Itertools as _;

use self::write::give_up;
use super::record::RunRecord;
use crate::{
    codes::{codes, entry},
    facts::{KubeletSays, Owner, PodFacts, Stray},
    judge::{Judged, ReasonCode},
    outcome::OutcomeCode,
    words::{listed, natural, prefixed},
};

/// The most names in a sentence.
const NAMED: usize = 3;
const TAINT: &str = "the out-of-service taint ends every pod there that does not tolerate it; remove it only after the machine was powered off and on again";

/// Declares what there is to do. Each has a sentence about the pods and nodes at hand, which is a text
/// or a function's.
macro_rules! todos {
    (
        |$run:ident, $about:ident, $pods:ident, $nodes:ident|
        $(
            $(#[$doc:meta])*
            $todo:ident $({ $($field:ident: $of:ty),* })? $(=> $sentence:literal)? $(= $text:expr)?;
        )*
    ) => {
        /// A thing to do. The order is that of urgency.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Todo {
            $($(#[$doc])* $todo $({ $($field: $of),* })?,)*
        }

        impl RunRecord<'_> {
            #[expect(unused_variables, reason = "some fields are only in a command")]
            fn sentence(&self, todo: &Todo, $about: &About<'_>) -> String {
                let ($run, $pods, $nodes) = (self, $about.pods(), $about.nodes());
                match todo {
                    $(Todo::$todo $({ $($field),* })? => { $(format!($sentence))? $($text)? })*
                }
            }
        }
    };
}

todos! { |run, about, pods, nodes|
    CorrectFilter => "Correct the namespace filter, and run again.";
    SaveWithLeases => "Save the file again, with leases, before you act (command under NOT SEEN).";
    Retain { claim: String, volume: String } => "{pods}: set volume {volume} to Retain before {nodes} comes back. PVC {claim} is being deleted, and the kubelet destroys the data as it ends the pod.";
    ReachOne => "Reach one of {nodes} by ssh or at its console.";
    RepairNetwork => "If it runs, repair the network and delete nothing: the kubelets end their pods themselves.";
    IfAllAreOff => "If they are off for good: set the out-of-service taint on each that you have SEEN off (pod-reaper explain POD has the command).";
    MakeRoom => "Bring {nodes} back, or add a node on which pods can start.";
    /// A limit holds because of something unknown.
    SeeUnknown { what: String } => "See why this is not known, and run again: {what}.";
    ReachMembers => "Reach {nodes} at the console. At least one of them runs, and is cut off or has lost its API server.";
    ForgetMembers => "Reset etcd to fewer members only by its runbook. Then delete the Node object of each removed member that you have SEEN off.";
    Repair { says: Option<KubeletSays> } = format!("On {nodes}, {}", match says {
        Some(KubeletSays::Runtime) => "restart the container runtime. Then its kubelet ends the pods.",
        Some(KubeletSays::Network) => "repair the network plugin (CNI). Then its kubelet ends the pods.",
        Some(KubeletSays::ShuttingDown) => "wait until the machine has shut down.",
        None => "see why the kubelet does not report Ready: restart it or the container runtime. Then it ends the pods.",
    });
    OrPowerOff { silent: String } => "Only if that fails, power {nodes} off, which stops what runs there: after {silent} of silence the next run takes over.";
    HaveYouSeenItOff { since: String } => "Have you SEEN {nodes} off? If not, POWER IT OFF NOW: its volumes may be in use on other nodes since {since}.";
    LookAtControlPlane => "Look at {nodes} before you power one off: several control-plane nodes are NotReady, and no etcd was seen there.";
    Look => "Look at the console of {nodes}. If it is booting, wait for what needs its disk: {pods}.";
    PowerOff = run.power_off(about);
    BringBack => "Bring {nodes} or its disk back, for what needs it: {pods}.";
    Fence => "{pods}: two machines would write to one disk if {nodes} is still on. Once you have SEEN it off, say so by annotation fencing/state=fenced, and the next run reaps; or by the taint: {TAINT}.";
    NoSpareMember => "etcd has no spare member left: bring {nodes} back.";
    LookInLeaf { cluster: String } => "Look in {cluster} for {pods} BEFORE you repair the link: the repair stops it.";
    /// A machine came back without a reboot after its pods were reaped.
    CheckForTwoWriters { node: String, names: String } => "Check for two writers, since pods of {node} may have run beside their replacements: {names}.";
    RepairLeaf => "{nodes} is a leaf node: repair it, or the link to it. What runs there then ends {pods}.";
    DownUntil => "{pods}: only {nodes} or its disk brings it back. Discard nothing.";
    SeeOutcome { code: OutcomeCode, why: String } => "See why {pods} was not deleted [{code}]: {why}";
    SeeUnread { what: String, why: String } => "Not read: {what}: {why}";
    /// The first that can wait until morning.
    GiveUpEach => "Only if {nodes} is lost for good: give up data one pod at a time, where no other pod is Ready last, and wait for Ready in between (pod-reaper explain POD has the command).";
    GiveUp { namespace: String, claim: String } = give_up(claim, about);
    LeaveToOperator { claim: String, owner: Owner } => "Only if {nodes} is lost for good: PVC {claim} of {pods} belongs to {owner}, whose operator replaces it.";
    CreateAgain { claim: String } => "Only if {nodes} is lost for good: nobody makes PVC {claim} of {pods} again. Delete it, and create it again once a run has deleted the pod.";
    CopyPaths { paths: String } => "{pods} keeps data in {paths} on the disk of {nodes}. Only if that may be lost, delete the pod by hand (book: Data on a dead node).";
    /// No other step tells what to do.
    SeeWhy { code: ReasonCode } => "{pods} [{code}]: see why (pod-reaper explain POD), and what to do (book: Three in the morning).";
    ReleaseFinalizer { finalizer: String, manager: Option<String>, is_on_node: bool } = {
        let by = prefixed(", set by ", manager.as_ref());
        let off = if *is_on_node {
            format!(" If that ran on {nodes}, or waits for the end of the pod: once {nodes} is off, set the out-of-service taint, which ends every pod there.")
        } else {
            String::new()
        };
        format!("{pods} is held by finalizer {finalizer}{by}: repair its controller.{off}")
    };
    AskKubelet => "{pods} hangs on a Ready node: see the log of the kubelet of {nodes}.";
    SeeLinkLog => "See why Kosmos does not reach the leaf cluster.";
    SeeStray { stray: Stray } = match stray {
        Stray::Attachment { node, attachment } => format!("VolumeAttachment {attachment} names {node}, which no longer exists: until it is gone, no other node gets the volume."),
        Stray::Pending { namespace, pod, claim, volume, .. } => format!("{namespace}/{pod} is Pending: volume {volume} of its PVC {claim} can only be used on a node that no longer exists. Only if its data is lost for good, delete the PVC:"),
    };
    /// Only for somebody who asks about one pod.
    TaintNode => "To move all pods of {nodes} at once, if you have SEEN it off: {TAINT}. A pod whose data is on {nodes} stays Pending.";
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

entry! {
    /// A thing to do.
    pub struct Step as "StepEntry" {
        /// How soon.
        pub when: When,
        /// What to do.
        pub what: String,
        /// What to paste, where there is something.
        pub command: Option<String>,
        /// True if the command discards data or ends pods.
        pub harms: bool,
    }
}

/// The pods and nodes that a thing to do is about.
#[derive(Debug, Clone, Default)]
pub struct About<'a> {
    /// The pods, the worst damage first.
    pub pods: Vec<&'a Judged>,
    /// The names of the nodes, in natural order.
    pub nodes: Vec<&'a str>,
}

/// Everything to do, with what it is about.
pub type Todos<'a> = BTreeMap<Todo, About<'a>>;

impl<'a> About<'a> {
    /// Returns pods with their nodes.
    pub fn of(pods: Vec<&'a Judged>) -> Self {
        let nodes = pods.iter().filter_map(|it| it.pod.node.as_deref()).unique();
        Self {
            nodes: nodes.sorted_by_cached_key(|name| natural(name)).collect(),
            pods,
        }
    }

    /// Names a few pods, and counts many: the lists name them.
    pub fn pods(&self) -> String {
        match self.pods.len() {
            many if many > NAMED => format!("{many} pods"),
            _ => self.pods.iter().map(|it| full_name(&it.pod)).join(", "),
        }
    }

    pub fn nodes(&self) -> String {
        listed(&self.nodes, NAMED)
    }

    /// Writes a sentence with the pods and their nodes, if there are any pods.
    pub fn say(&self, sentence: impl Fn(&str, &str) -> String) -> Option<String> {
        (!self.pods.is_empty()).then(|| sentence(&self.pods(), &self.nodes()))
    }
}

/// Returns the pod's namespace and name.
pub fn full_name(pod: &PodFacts) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

impl Todo {
    fn when(&self) -> When {
        if *self < Self::GiveUpEach {
            When::Now
        } else {
            When::Later
        }
    }

    /// Reports whether the data of its pod is given up by it.
    fn is_last_resort(&self) -> bool {
        matches!(
            self,
            Self::GiveUp { .. }
                | Self::LeaveToOperator { .. }
                | Self::CreateAgain { .. }
                | Self::CopyPaths { .. }
        )
    }
}
