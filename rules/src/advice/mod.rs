//! Advice to the user about a pod that needs a decision: the risk, and the commands in order.
//!
//! The user decides with a `kubectl annotate` command whose value is the time of the report. The
//! next run judges everything again, and acts on the answer if it still belongs to the same
//! failure. The only printed command that destroys anything by itself is the out-of-service taint.
//! Its command does nothing if the node is no longer as it was judged.

mod group;
mod kubectl;

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::Timestamp;

use self::group::PodGroup;
pub use self::kubectl::quoted_path;
use crate::{
    codes::entry,
    decide::{POWERED_OFF, Pin, PodContext, Policy, ReasonCode, Tie, Verdict},
    facts::{
        Attachment, ClusterFacts, NodeCounts, NodeFacts, OUT_OF_SERVICE, Owner, PodFacts, Ready,
        Zone,
    },
    limits::{Judged, Limit, Plan},
    selector::{Target, is_name},
    words::{counted, natural, prefixed},
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
        /// The PVCs that the report asks you to give up.
        pub losses: Vec<Loss>,
        /// How many other pods of the workload are Ready; null if nothing is to be given up, or if
        /// it could not be read.
        pub ready_elsewhere: Option<usize>,
        /// What you should do, in order.
        pub steps: Vec<Step>,
        /// The part of `first` that is about the node and that the node's pods share: sentences, in
        /// order.
        #[serde(skip)]
        pub about_node: Vec<String>,
        /// The rest of `first`.
        #[serde(skip)]
        pub about_pods: Option<String>,
        /// True if `risk` says what to do, instead of what an answer puts at risk.
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
        /// The short form of a step that differs from other steps only in names, so that a report
        /// can show them as rows.
        #[serde(skip)]
        pub row: Option<Row>,
    }
}

/// The short form of a step that gives up one PVC, if there is nothing more to say about that PVC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The action, as a sentence without names.
    pub does: String,
    /// The PVC and its volume, as a phrase.
    pub about: String,
}

/// The kinds of steps. A report treats the steps of one kind alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StepKind {
    /// A step to look, to repair, or just to know.
    #[default]
    Other,
    /// The command keeps data that the node's kubelet would destroy when the node comes back.
    Keep,
    /// The command gives the user's answer.
    Answer,
    /// The step stands in place of a command that answers, and says why there is none.
    NoAnswer,
    /// A step to power off a node whose pods were reaped.
    PowerOff,
}

entry! {
    /// A PVC whose data the report asks you to give up.
    #[serde(rename_all = "camelCase")]
    pub struct Loss as "LossEntry" {
        /// The PVC.
        pub claim: String,
        /// Its volume.
        pub volume: String,
        /// What becomes of the volume once the PVC is deleted: `Delete` or `Retain`.
        pub reclaim_policy: Option<String>,
        /// How much it holds at most, such as `10Gi`.
        pub capacity: Option<String>,
        /// When the PVC was created.
        pub created: Option<Timestamp>,
    }
}

impl Advice {
    /// Reports whether the report asks for an answer.
    pub fn wants_answer(&self) -> bool {
        self.steps.iter().any(|step| step.kind == StepKind::Answer)
    }

    /// Reports whether the report asks for an answer that loses data or leaves data behind.
    pub fn gives_up_data(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.kind == StepKind::Answer && step.harm.is_some())
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

    /// Returns a step without a command.
    pub fn remark(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            command: None,
            harm: None,
            kind: StepKind::Other,
            row: None,
        }
    }

    fn no_answer(why: impl Into<String>) -> Self {
        Self {
            kind: StepKind::NoAnswer,
            ..Self::remark(why)
        }
    }
}

/// Everything that the advice depends on, apart from the pods.
#[derive(Debug, Clone, Copy)]
pub struct Adviser<'a> {
    /// The facts from which the pods were judged.
    pub facts: &'a ClusterFacts,
    /// The options that affect a single pod.
    pub policy: &'a Policy,
    /// The plan, which has the limits by node.
    pub plan: &'a Plan,
    /// The cluster that kubectl has to reach.
    pub kubectl: &'a Target,
    /// The installation whose next run acts on answers, if this run belongs to an installation.
    pub installed: Option<&'a Installed>,
}

/// The namespace and the name of the installed `CronJob`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub cronjob: String,
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
            let asks = (&judged.reason.asks, is_unverified(judged));
            let may = (pod.may_take_a_claim(), self.objection(judged));
            let of = decides.then(|| (workload(pod), asks, may));
            let says = (says, self.asks_if_edge_is_off(judged));
            let key = (judged.code(), &pod.namespace, &pod.node, says, of);
            groups.entry(key).or_default().push(place);
        }
        // Groups are sorted by the index of their first pod.
        groups.into_values().sorted().collect()
    }

    /// Reports whether the report asks the user if the machine of the pod's edge node is off. It
    /// does only if that answer would let the pod pass.
    fn asks_if_edge_is_off(&self, judged: &Judged) -> bool {
        let (now, pod) = (self.facts.now, &judged.pod);
        let valid = |node: &NodeFacts| {
            node.leaf.as_ref().is_some_and(|leaf| leaf.only_edge)
                && !self.plan.by_node.contains_key(&node.name)
                && is_name(&node.name)
                && node.check_answer(now, &now.to_string(), []).is_ok()
        };
        judged.reason.code == ReasonCode::EdgeNode
            && pod.deletion_requested().is_some_and(|when| when < now)
            && self.facts.known_node(pod).is_some_and(valid)
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
        let mut replaced = None;
        let no_answer = match self.plan.by_node.get(&node.name) {
            Some(Limit::MassOutage(_)) => Step::no_answer(
                "The report asks for no answer while so many nodes are NotReady: find out first what they have in common.",
            ),
            Some(Limit::NoRoom(_)) => {
                Step::no_answer("The report asks for no answer while no pod could start elsewhere.")
            }
            Some(limit) => Step::no_answer(format!(
                "The report asks for no answer while a fact about the whole run is not known: {}.",
                limit.state()
            )),
            None if node.may_live(self.facts.now) => Step::no_answer(
                "The report asks for no answer while the node is alive, or may be: repair the node, or power it off.",
            ),
            None => {
                let Some(objection) = self.objection(first) else {
                    return alike.ask(node);
                };
                replaced = alike
                    .replaced_already(&node.name)
                    .filter(|_| objection.is_own);
                objection.remark()
            }
        };
        let keep = alike.keep_data(&node.name);
        Advice {
            first: replaced.clone(),
            about_pods: replaced,
            steps: keep.into_iter().chain([no_answer]).collect(),
            ..Advice::default()
        }
    }

    /// Reports whether the advice may print the command that sets the out-of-service taint: no
    /// limit holds the node, its machine shows no sign of life, and the node does not carry the
    /// taint yet.
    fn may_taint(&self, node: &NodeFacts) -> bool {
        let is_held = self.plan.by_node.contains_key(&node.name);
        !is_held && !node.may_live(self.facts.now) && !node.out_of_service
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
            ..Step::new(
                format!(
                    "{what} The command does nothing if the node has changed since this report."
                ),
                command,
            )
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

    /// Returns the step that starts a run immediately, which acts on answers. A report has this
    /// step once. The Job's name is unique to this report, so the command fails if it is pasted a
    /// second time.
    pub fn run_now(&self) -> Step {
        let name = self.facts.now.strftime("answers-%Y%m%d-%H%M%S").to_string();
        // These are the names in `cronjob/`. They are used if the installation is not known.
        let default = ("pod-reaper", "pod-reaper");
        let (namespace, cronjob) = self
            .installed
            .map_or(default, |it| (&it.namespace, &it.cronjob));
        let from = format!("--from=cronjob/{cronjob}");
        let create = ["create", "job", "-n", namespace, &from, &name];
        Step::new(
            format!(
                "The next run acts on your answers, which are the annotations that the commands above set. A scheduled run may delete a PVC only if the `answers` component is installed \
                 (Helm: answers.enabled). If it is not, run pod-reaper{} yourself, with the options of the CronJob. To start a run of the CronJob now, which also \
                 reaps every other pod that is due:",
                self.kubectl.options()
            ),
            self.kubectl.verb_first(&create),
        )
    }

    fn answer(
        &self,
        what: String,
        kind: &str,
        names: &[&str],
        namespace: &str,
        annotation: &str,
    ) -> Step {
        let answer = format!("{annotation}={}", self.facts.now.strftime("%FT%TZ"));
        // A newer report asks again, with its own time, so its command has to replace an older
        // answer.
        let change = [answer.as_str(), "--overwrite"];
        Step {
            kind: StepKind::Answer,
            ..Step::new(what, self.kubectl.annotate(kind, names, namespace, &change))
        }
    }

    /// Returns the steps to show while limits hold nodes. The first is to look at what has failed.
    /// The others confirm which nodes are off, with one step per zone. A step selects a zone's
    /// nodes by labels if it is about all of them.
    pub fn while_held(&self) -> Vec<Step> {
        let labels = "topology.kubernetes.io/zone,node.kubernetes.io/instance-type";
        let compare = Step::new(
            "See what the NotReady nodes have in common:",
            self.kubectl
                .command(&["get", "nodes", "-o", "wide", "-L", labels]),
        );
        let by_node = self.plan.by_node.iter();
        let held = by_node.filter(|(_, limit)| matches!(limit, Limit::MassOutage(_)));
        let now = self.facts.now;
        let would_count = |node: &NodeFacts| node.check_answer(now, &now.to_string(), []).is_ok();
        let of_zone = held
            .filter_map(|(name, _)| self.facts.known(name))
            .filter(|node| node.ready != Ready::True && node.leaf.is_none() && is_name(&node.name))
            .filter(|node| would_count(node))
            .into_group_map_by(|node| node.zone.as_ref());
        let zones = of_zone.into_iter().sorted_by_key(|(zone, _)| *zone);
        let steps = zones.map(|(zone, nodes)| {
            let tally = zone.and_then(|zone| match &self.facts.node_counts {
                NodeCounts::Counted { zones, .. } => zones.get(zone),
                _ => None,
            });
            let whole = tally.is_some_and(|it| it.total == it.not_ready && it.total == nodes.len());
            let selector = zone.filter(|_| whole).map(Zone::selector);
            let names = nodes.iter().map(|node| node.name.as_str());
            let which = match &selector {
                Some(selector) => vec!["-l", selector],
                None => names.sorted_by_cached_key(|name| natural(name)).collect(),
            };
            let of = prefixed(" of zone ", zone);
            let (all, each) = match nodes.len() {
                1 => ("the NotReady node".to_owned(), "the machine"),
                count => (format!("all {count} NotReady nodes"), "each machine"),
            };
            let except = match &selector {
                Some(_) => " If only some are off, name these nodes instead of -l and its value.",
                None if nodes.len() > 1 => " If only some are off, leave out the names of the others.",
                None => "",
            };
            let what = format!(
                "Only if you have powered off {all}{of}, and have checked that at {each} itself (console or BMC), confirm \
                 that. The next run then reaps the pods there.{except}",
            );
            self.answer(what, "node", &which, "", POWERED_OFF)
        });
        let compare = Some(compare).filter(|_| self.facts.node_count > 1);
        compare.into_iter().chain(steps).collect()
    }

    /// Returns the reason not to ask for an answer; `None` if there is no such reason.
    fn objection(&self, judged: &Judged) -> Option<Objection> {
        let pod = &judged.pod;
        let claims = to_give_up(judged).collect_vec();
        let objects = [&pod.namespace, &pod.name].into_iter().chain(&pod.node);
        let mut names = objects.map(String::as_str).chain(claims.iter().copied());
        if !names.all(is_name) {
            let why = "one of the names is not one that an API server gives".to_owned();
            return Some(Objection { why, is_own: true });
        }
        let case = PodContext::of(self.facts, self.policy, pod);
        let inert = case.would_be_inert(&claims);
        let mut doubts = asked(judged).filter_map(|(_, pin)| pin.doubt.as_ref());
        let doubt = || Some(doubts.find(|doubt| doubt.proved)?.why.clone());
        // Once it is known which nodes reach the volume, another rule may keep the pod and ask for
        // another answer.
        let mut unverified = judged.reason.ties.unverified();
        let own = inert.or_else(doubt);
        let own = own.map(|why| Objection { why, is_own: true });
        let unknown = || {
            let why = unverified.find(|tie| tie.names_node())?.why.clone();
            Some(Objection { why, is_own: false })
        };
        // A `reap` answer lets no pod pass if a PVC would be deleted with the pod.
        let reap = [
            ReasonCode::OwnerKind,
            ReasonCode::VolumeConfined,
            ReasonCode::HostPath,
        ];
        let asks = |code: &ReasonCode| reap.contains(code) && pod.may_take_a_claim();
        let taken = judged.reason.asks.iter().any(asks).then(|| Objection {
            why: "a PVC would be deleted with the pod".to_owned(),
            is_own: true,
        });
        own.or(taken).or_else(unknown)
    }
}

/// When to remove the out-of-service taint. A machine that was only cut off may still write to
/// volumes that were detached from it.
const AFTER_A_POWER_CYCLE: &str = "Remove the taint only after the machine was powered off and on again, once the \
    pods run elsewhere.";

/// Why the report asks for no answer, as a phrase.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Objection {
    why: String,
    /// True if `why` repeats no message of the API server.
    is_own: bool,
}

impl Objection {
    fn remark(&self) -> Step {
        Step::no_answer(format!(
            "The report asks for no answer: {}. The steps are {}.",
            self.why,
            by_hand()
        ))
    }
}

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

/// Reports whether the pod has an unverified PVC for which the report asks for no answer on the PVC
/// itself.
fn is_unverified(judged: &Judged) -> bool {
    let mut unverified = judged.reason.ties.unverified();
    judged.reason.asks.contains(&ReasonCode::VolumeUnverified)
        && unverified.any(|tie| !tie.answerable())
}

/// Lists the PVCs that the user is asked to give up with the pod: the pinned ones that are not
/// given up yet.
fn asked(judged: &Judged) -> impl Iterator<Item = (&Tie, &Pin)> + Clone {
    let pinned = judged.reason.ties.pinned();
    pinned.filter(|(_, pin)| pin.given_up.is_err())
}

/// Lists all PVCs that the user is asked to give up with the pod, including those that are being
/// deleted although they may be wanted.
fn to_give_up(judged: &Judged) -> impl Iterator<Item = &str> + Clone {
    let going = judged.reason.ties.unverified();
    let going = going.filter(|tie| tie.answerable());
    let pinned = asked(judged).map(|(tie, _)| tie);
    pinned.chain(going).map(|tie| tie.pvc.as_str()).unique()
}

/// Returns what users would call one workload: the pod's owner, or its series of numbered owners. A
/// series comes with the length of the owners' names and with their PVC templates, which are equal.
/// `None` if the pod has no owner.
fn workload(pod: &PodFacts) -> Option<(Owner, Option<(usize, &str)>)> {
    let owner = pod.workload.as_ref().or(pod.owner.as_ref())?;
    let series = pod.series()?;
    let templates = pod.templates.as_deref().filter(|_| series != *owner);
    Some((
        series,
        templates.map(|templates| (owner.name.len(), templates)),
    ))
}

#[cfg(test)]
mod tests;
