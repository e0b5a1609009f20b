//! Advice to the user about a pod that needs a decision: the risk, and the commands in order.
//!
//! Two kinds of printed commands destroy something: those that delete a PVC, and those that set the
//! out-of-service taint. Such a command does nothing if the node is no longer as it was judged.

mod group;
mod kubectl;

use std::collections::BTreeMap;

use itertools::Itertools as _;

use self::group::PodGroup;
pub use self::kubectl::quoted_path;
use crate::{
    codes::entry,
    facts::{Attachment, ClusterFacts, NodeFacts, OUT_OF_SERVICE, Owner, Storage},
    judge::{Judged, Limit, Plan, ReasonCode, Verdict},
    selector::Target,
    words::counted,
};

entry! {
    /// The advice about one pod, or about several that share it.
    #[derive(Default)]
    #[serde(rename_all = "camelCase")]
    pub struct Advice as "AdviceEntry" {
        /// What to find out or do before the steps, as sentences.
        pub first: Option<String>,
        /// What is at risk.
        pub risk: Option<String>,
        /// What you should do, in order.
        pub steps: Vec<Step>,
        /// The part of `first` that is about the node and that the node's pods share: sentences, in
        /// order.
        #[serde(skip)]
        pub about_node: Vec<String>,
        /// The rest of `first`.
        #[serde(skip)]
        pub about_pods: Option<String>,
        /// True if `risk` says what to do, instead of what a delete puts at risk.
        #[serde(skip)]
        pub repairs: bool,
    }
}

entry! {
    /// One thing to do.
    pub struct Step {
        /// What it is for.
        pub what: String,
        /// What to paste, where there is something.
        pub command: Option<String>,
        /// What the command destroys, in a word or two; `None` if it destroys nothing.
        #[serde(skip)]
        pub harm: Option<&'static str>,
        /// The kind of the step.
        #[serde(skip)]
        pub kind: StepKind,
    }
}

/// The kinds of steps. A report treats the steps of one kind alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StepKind {
    /// A step to look, to repair, or just to know.
    #[default]
    Other,
    /// The command keeps data that the node's kubelet would destroy when the node comes back.
    Keep,
    /// The step carries out what the user has decided about the pods.
    Decide,
    /// A step to power off a node whose pods were reaped.
    PowerOff,
}

impl Advice {
    /// Reports whether the user has to decide about the pods.
    pub fn asks_to_decide(&self) -> bool {
        self.steps.iter().any(|step| step.kind == StepKind::Decide)
    }

    /// Reports whether a command of the advice deletes data.
    pub fn deletes_data(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.kind == StepKind::Decide && step.harm.is_some())
    }

    /// Reports whether the user has to save data from the node's kubelet before the node comes
    /// back.
    pub fn keeps_data(&self) -> bool {
        self.steps.iter().any(|step| step.kind == StepKind::Keep)
    }
}

impl Step {
    fn new(what: impl Into<String>, command: String) -> Self {
        Self {
            command: Some(command),
            ..Self::remark(what)
        }
    }

    /// Drops the command if it changes something.
    pub fn only_look(&mut self) {
        if self.harm.is_some() || self.kind == StepKind::Keep {
            self.command = None;
        }
    }

    /// Returns a step without a command.
    pub fn remark(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            command: None,
            harm: None,
            kind: StepKind::Other,
        }
    }

    fn decide(what: impl Into<String>) -> Self {
        Self {
            kind: StepKind::Decide,
            ..Self::remark(what)
        }
    }
}

/// Everything that the advice depends on, apart from the pods.
#[derive(Debug, Clone, Copy)]
pub struct Adviser<'a> {
    /// The facts from which the pods were judged.
    pub facts: &'a ClusterFacts,
    /// The plan, which has the limits by node.
    pub plan: &'a Plan,
    /// The cluster that kubectl has to reach.
    pub kubectl: &'a Target,
}

impl Adviser<'_> {
    /// Groups the pods of `all` that need the user and share their advice, because they have the
    /// same reason, namespace, node and workload. A group holds the pods' indices in `all`.
    pub fn alike(&self, all: &[Judged]) -> Vec<Vec<usize>> {
        let mut groups = BTreeMap::<_, Vec<usize>>::new();
        for (place, judged) in all.iter().enumerate() {
            if judged.verdict() != Verdict::Manual {
                continue;
            }
            let pod = &judged.pod;
            let decides = judged.reason.asks_a_person();
            // Sentences about volumes and owners differ only in names, so they do not separate
            // groups.
            let says = Some(judged.sentence()).filter(|_| !decides);
            let of = decides.then(|| (workload(judged), &judged.reason.asks));
            let key = (judged.code(), &pod.namespace, &pod.node, says, of);
            groups.entry(key).or_default().push(place);
        }
        // Groups are sorted by the index of their first pod.
        groups.into_values().sorted().collect()
    }

    /// Returns the advice about `all`, pods with the same reason, namespace and node. While a limit
    /// holds the run, or the node shows a sign of life, the advice has no command that destroys
    /// anything.
    pub fn advise(&self, all: &[&Judged]) -> Advice {
        let manual = |first: &&&Judged| first.reason.verdict() == Verdict::Manual;
        let Some(&first) = all.first().filter(manual) else {
            return Advice::default();
        };
        let alike = PodGroup {
            all,
            first,
            adviser: self,
        };
        let node = self.facts.known_node(&first.pod);
        let Some(node) = node.filter(|_| first.reason.asks_a_person()) else {
            return alike.repair();
        };
        let held = match self.plan.by_node.get(&node.name) {
            Some(Limit::MassOutage(_)) => {
                "Decide nothing while so many nodes are NotReady: find out first what they have in common."
                    .to_owned()
            }
            Some(Limit::NoRoom(_)) => "Decide nothing while no pod could start elsewhere.".to_owned(),
            Some(limit) => format!(
                "Decide nothing while a fact about the whole run is not known: {}.",
                limit.state()
            ),
            None if node.may_live(self.facts.now) => {
                "Decide nothing while the node is alive, or may be: repair the node, or power it off."
                    .to_owned()
            }
            None => return alike.ask(node),
        };
        let keep = alike.keep_data(&node.name).into_iter();
        Advice {
            steps: keep.chain([Step::remark(held)]).collect(),
            ..Advice::default()
        }
    }

    /// Reports whether the advice may print the command that sets the out-of-service taint: no
    /// limit holds the node, its machine shows no sign of life, and the node does not carry the
    /// taint yet. The taint ends every pod there, so none may be opted out, be on a member of etcd that
    /// may be needed, wait for your decision about its owner, or take a PVC along whose data may still be wanted.
    fn may_taint(&self, node: &NodeFacts) -> bool {
        let is_held = self.plan.by_node.contains_key(&node.name);
        let judged = self.plan.pods.iter();
        let mut judged = judged.filter(|judged| judged.pod.node.as_ref() == Some(&node.name));
        let protects = |Judged { pod, reason, .. }: &Judged| {
            pod.opts_out().is_some()
                || reason.code() == ReasonCode::EtcdMember
                || reason.asks.contains(&ReasonCode::OwnerKind)
                || reason
                    .ties
                    .iter()
                    .any(|tie| tie.goes() || tie.given_up_from() > Some(self.facts.now))
        };
        let active = self.facts.active.get(&node.name);
        let mut active = active.into_iter().flatten();
        !is_held
            && !node.may_live(self.facts.now)
            && !node.out_of_service
            && node.opted_out.is_none()
            && !judged.any(protects)
            && !active.any(|pod| pod.opts_out().is_some())
    }

    /// Returns the step that sets the out-of-service taint, if the node is still as it was judged.
    fn taint(&self, node: &NodeFacts, what: &str) -> Step {
        let out_of_service = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
        let taint = ["taint", "nodes", &node.name, &out_of_service];
        let command = format!(
            "{} && {}",
            self.kubectl.still_as_judged(node),
            self.kubectl.command(&taint)
        );
        Step {
            harm: Some("Force-deletes"),
            ..Step::new(format!("{what} {UNLESS_CHANGED}"), command)
        }
    }

    /// Returns the advice about a node, apart from its pods. `reaped` is true if pods of the node
    /// were force-deleted, or would be. `dead` is true if the node is not expected to come back.
    pub fn advise_node(&self, node: &NodeFacts, reaped: bool, dead: bool) -> Vec<Step> {
        let (name, now) = (node.name.as_str(), self.facts.now);
        let attachments = self
            .facts
            .attachments
            .get(name)
            .map_or(&[][..], Vec::as_slice);
        let attached = attachments.len();
        let mut steps = Vec::new();
        if reaped && node.signs_of_life(now).is_empty() && node.fenced(now).is_none() {
            steps.push(power_off(name));
        }
        if attached > 0 && node.out_of_service {
            steps.push(Step::remark(format!(
                "{name} has the out-of-service taint: Kubernetes 1.26 or newer deletes its Terminating pods and detaches \
                 its volumes immediately. {AFTER_A_POWER_CYCLE}"
            )));
        } else if attached > 0 && dead && self.may_taint(node) {
            let ceph = if attachments.iter().any(Attachment::is_ceph) {
                " Some of these volumes are Ceph's: its CSI driver cuts the machine off from them only if the taint is there \
                 when they are detached, so set the taint before the pods are reaped, or at most 6 minutes later."
            } else {
                ""
            };
            let volumes = counted(attached, "volume is", "volumes are");
            let what = format!(
                "{volumes} still attached to {name}. Kubernetes detaches a volume 6 minutes after its pod is gone \
                 (never, if kube-controller-manager runs with --disable-force-detach-on-timeout). To detach them now, set \
                 the out-of-service taint, but only if you have checked that the machine is powered off: Kubernetes 1.26 or \
                 newer then also evicts and force-deletes every pod on {name} that does not tolerate the taint, including \
                 the pods that need you.{ceph} {AFTER_A_POWER_CYCLE} Do not delete VolumeAttachments."
            );
            steps.push(self.taint(node, &what));
        }
        steps
    }

    /// Returns the step to show while limits hold nodes: to look at what has failed.
    pub fn while_held(&self) -> Option<Step> {
        let labels = "topology.kubernetes.io/zone,node.kubernetes.io/instance-type";
        let compare = ["get", "nodes", "-o", "wide", "-L", labels];
        (self.facts.node_count > 1).then(|| {
            Step::new(
                "See what the NotReady nodes have in common:",
                self.kubectl.command(&compare),
            )
        })
    }
}

/// When to remove the out-of-service taint. A machine that was only cut off may still write to
/// volumes that were detached from it.
const AFTER_A_POWER_CYCLE: &str = "Remove the taint only after the machine was powered off and on again, once the \
    pods run elsewhere.";

const UNLESS_CHANGED: &str = "The command does nothing if the node has changed since this report.";

/// Returns the step for a node whose pods were reaped, or would be: its containers may still be
/// running.
pub fn power_off(name: &str) -> Step {
    Step {
        kind: StepKind::PowerOff,
        ..Step::remark(format!(
            "Unless {name} is about to come back, make sure that it is powered off: any containers still running there keep running \
             alongside the pods that replace them."
        ))
    }
}

/// Names the page with the manual steps: by its address if the build knows the address, as the
/// build of a release does, otherwise by its title.
fn by_hand() -> String {
    match option_env!("POD_REAPER_BOOK") {
        Some(book) => format!("at {book}/by-hand.md#with-kubectl-alone"),
        None => {
            "on the page \"By hand\" of the documentation, under \"With kubectl alone\"".to_owned()
        }
    }
}

/// Returns what users would call one workload: the pod's owner, or its series of numbered owners. A
/// series comes with the length of the owners' names and with their PVC templates, which are equal.
/// `None` if the pod has no owner.
fn workload(judged: &Judged) -> Option<(Owner, Option<(usize, &str)>)> {
    let pod = &judged.pod;
    let templates = judged.storage.as_ref().and_then(Storage::templates);
    let owner = pod.workload.as_ref().or(pod.owner.as_ref())?;
    let series = pod.series(templates)?;
    let templates = templates.filter(|_| series != *owner);
    Some((
        series,
        templates.map(|templates| (owner.name.len(), templates)),
    ))
}
