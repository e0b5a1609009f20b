//! Advice to the user about a pod that needs a decision: the risk, and the commands in order.
//!
//! The user decides with a `kubectl annotate` command whose value is the time of the report. The
//! next run judges everything again, and acts on the answer if it still belongs to the same
//! failure. The only printed command that destroys anything by itself is the out-of-service taint.
//! Its command does nothing if the node is no longer as it was judged.

mod kubectl;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use itertools::Itertools as _;
use jiff::Timestamp;

pub use self::kubectl::quoted_path;
use crate::{
    codes::entry,
    decide::{
        GIVE_UP, POWERED_OFF, Pin, PodContext, Policy, REAP, ReasonCode, Tie, TieKind, Ties,
        Unsure, Verdict,
    },
    facts::{
        Attachment, ClaimFacts, ClusterFacts, DeletedWithPod, KubeletSays, NodeCounts, NodeFacts,
        OUT_OF_SERVICE, Owner, PodFacts, Read, Ready, SignBy, Unneeded, VolumeFacts, Zone,
    },
    limits::{Judged, Limit, Plan},
    selector::{Target, is_name},
    words::{counted, joined, natural, prefixed},
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
                "The next run acts on your answers. A scheduled run may delete a PVC only if the `answers` component is installed \
                 (Helm: answers.enabled). If it is not, run pod-reaper{} yourself. To start a scheduled run now, which also \
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
                Some(_) => " If only some are off, replace -l and its value by their names.",
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
        let inert = case.would_be_inert(&claims).filter(|_| !pod.is_supposed());
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

/// The maximum number of pods in a group that get one command each, if two of them belong to one
/// `StatefulSet`. With more pods on one node, the `StatefulSet` has lost its quorum anyway, and so
/// many commands do not fit on a screen.
const MAX_SEPARATE_ANSWERS: usize = 3;

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
            "Unless {name} is about to come back, make sure that it is powered off: containers that still run there run beside the \
             pods that replace them."
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

/// Returns the first step on a node that is alive, by the fault that its kubelet reports; `None` if
/// it reports none that is known.
fn repair_first(node: &NodeFacts) -> Option<&'static str> {
    let says = node.kubelet_says.filter(|_| node.ready == Ready::False)?;
    Some(match says {
        KubeletSays::ShuttingDown => "Wait until the node has shut down, or power it off.",
        KubeletSays::Runtime => "Restart the container runtime on the node.",
        KubeletSays::Network => "Repair the network plugin (CNI) on the node.",
    })
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

/// At least one pod, all in one namespace and on one node (or none), that get the same advice.
struct PodGroup<'a> {
    all: &'a [&'a Judged],
    first: &'a Judged,
    adviser: &'a Adviser<'a>,
}

impl PodGroup<'_> {
    fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.all.iter().map(|judged| &judged.pod)
    }

    fn names(&self) -> Vec<&str> {
        self.pods().map(|pod| pod.name.as_str()).collect()
    }

    fn namespace(&self) -> &str {
        &self.first.pod.namespace
    }

    fn them(&self) -> &'static str {
        if self.all.len() == 1 {
            "the pod"
        } else {
            "the pods"
        }
    }

    fn get_pods(&self, kubectl: &Target, options: &[&str]) -> String {
        let within = ["-n", self.namespace()];
        kubectl.command(&[&["get", "pod"], &self.names()[..], &within, options].concat())
    }

    fn answer(&self, what: String, kind: &str, names: &[&str], annotation: &str) -> Step {
        self.adviser
            .answer(what, kind, names, self.namespace(), annotation)
    }

    fn is(&self, code: ReasonCode) -> bool {
        self.first.reason.asks.contains(&code)
    }

    fn ask(&self, node: &NodeFacts) -> Advice {
        let is_open = node.fenced(self.adviser.facts.now).is_none();
        let (node, them) = (node.name.as_str(), self.them());
        let [shared, owner, confined, host_path] = [
            ReasonCode::SharedDisk,
            ReasonCode::OwnerKind,
            ReasonCode::VolumeConfined,
            ReasonCode::HostPath,
        ]
        .map(|code| self.is(code));
        let unverified = is_unverified(self.first);
        let (mut first, mut risks, mut steps) = (Vec::new(), Vec::new(), self.keep_data(node));
        let mut about_node = Vec::new();
        let is_deleted = !steps.is_empty();
        let is_in_danger = steps.iter().any(|step| step.command.is_some());
        steps.extend(self.see_volumes());
        if unverified {
            risks.push(format!(
                "If a volume is on {node}, the replacement waits for that node forever."
            ));
        }
        // An answer on a pod is valid only if no PVC is deleted with the pod.
        if (confined || unverified) && self.first.pod.may_take_a_claim() {
            let objection = Objection {
                why: "a PVC would be deleted with the pod, or may be".to_owned(),
                is_own: true,
            };
            steps.push(objection.remark());
            return Advice {
                risk: joined(risks, " "),
                steps,
                ..Advice::default()
            };
        }
        let losses = self.losses();
        if is_in_danger {
            let then = if is_open {
                format!(
                    "Then power {node} off, and only then answer. Otherwise two copies may run."
                )
            } else {
                "Then answer.".to_owned()
            };
            first.push(format!(
                "Keep the data by the first step: {node}'s kubelet destroys it as soon as it is back. {then}"
            ));
        } else if is_deleted && is_open {
            first.push(format!(
                "Power {node} off before you answer. Otherwise two copies may run."
            ));
        } else if is_deleted {
            first.push("Answer.".to_owned());
        } else if (!losses.is_empty() || host_path) && self.first.pod.unneeded().is_some() {
            first.push(format!(
                "Nothing wants {them} again. If {node} comes back, its kubelet ends {them}."
            ));
        } else if !losses.is_empty() || host_path {
            about_node.push(format!(
                "If {node} can come back, wait: these pods then restart with their data."
            ));
            if is_open {
                about_node.push(format!(
                    "If not, power {node} off before you run a command for them. Otherwise two copies may run."
                ));
            } else {
                about_node.push("If not, run their commands.".to_owned());
            }
        }
        if shared {
            risks.push(format!(
                "If {node} still runs, its machine and the replacement's would write to one disk at once, which destroys \
                 its data."
            ));
        }
        if (shared || unverified) && is_open {
            // This is one step, so that nobody confirms that the machine is off without having read
            // that they must check it.
            let what = format!(
                "Power {node} off or disconnect its disks, and verify that on the machine itself (console or BMC), not in the \
                 cluster: anything still running there would write to the same disks. Then confirm it with this command; the \
                 next run reaps the pods that wait for it. If nodes are fenced automatically, have the fencing agent mark the \
                 node (annotation fencing/state=fenced, or anything that --fenced-node-selector matches) and remove the mark \
                 when the node is back."
            );
            steps.push(self.answer(what, "node", &[node], POWERED_OFF));
        }
        if owner && is_open {
            if first.is_empty() && about_node.is_empty() {
                about_node.push(format!("Make sure that {node} is powered off."));
            }
            risks.push(format!(
                "If {node} is only cut off, what it ran may still be running there, and a replacement would be a second copy."
            ));
        }
        if !losses.is_empty() {
            first.push(self.what_follows());
            if is_deleted {
                first.extend(self.replaced_already(node));
            }
        }
        let copies = self.copies();
        let lets_go = confined || unverified || owner || host_path;
        let asks_for_pods = lets_go || !losses.is_empty();
        if self.are_of_one_set() && self.all.len() > MAX_SEPARATE_ANSWERS && asks_for_pods {
            first.push(
                "Answer for one pod at a time: name only one in the command, wait until the new pod is Ready, then go on with \
                 the next. Answer for all at once only if the pods do not depend on each other."
                    .to_owned(),
            );
        }
        if self.are_of_one_set() && self.all.len() <= MAX_SEPARATE_ANSWERS {
            let each = self.all.chunks(1).map(|all| PodGroup {
                all,
                first: all[0],
                ..*self
            });
            steps.extend(each.flat_map(|pod| pod.answers(node, lets_go, copies.as_ref())));
        } else {
            steps.extend(self.answers(node, lets_go, copies.as_ref()));
        }
        if self.pods().any(|pod| pod.controller.is_none()) {
            risks.push(format!(
                "Nothing brings {them} back: there is no controller."
            ));
        }
        Advice {
            first: joined(about_node.iter().chain(&first), " "),
            about_node,
            about_pods: joined(first, " "),
            repairs: false,
            risk: joined(risks, " "),
            ready_elsewhere: copies.and_then(|(_, copies)| copies.ok()),
            losses,
            steps,
        }
    }

    /// Returns the steps that answer for the pods. `lets_go` is true if the pods need an answer of
    /// their own.
    fn answers(
        &self,
        node: &str,
        lets_go: bool,
        copies: Option<&(Owner, Read<usize>)>,
    ) -> Vec<Step> {
        let (losses, mut steps) = (self.losses(), Vec::new());
        let mut last = prefixed(" ", self.one_at_a_time());
        if lets_go {
            let (next, then) = if losses.is_empty() {
                ("The next run does it.", mem::take(&mut last))
            } else {
                ("The next run also needs the step below.", String::new())
            };
            let host_path = self.is(ReasonCode::HostPath);
            let stays = prefixed("", host_path.then(|| self.leaves_data(node, copies)));
            let given_up = self
                .all
                .iter()
                .flat_map(|judged| judged.reason.ties.to_delete())
                .filter(|(_, pin)| pin.given_up.is_ok())
                .map(|(tie, _)| &tie.pvc);
            let keeps = match joined(given_up.sorted().dedup(), ", ") {
                None => "every PVC is kept".to_owned(),
                Some(claims) => {
                    format!(
                        "PVC {claims} is given up already and deleted with it; every other PVC is kept"
                    )
                }
            };
            let what = format!(
                "Allow {} to be force-deleted; {keeps}. {stays}{next}{then}",
                self.them()
            );
            steps.push(Step {
                harm: host_path.then_some("Starts empty"),
                ..self.answer(what, "pod", &self.names(), REAP)
            });
        }
        if !losses.is_empty() {
            let mut step = self.give_up(node, &losses, copies);
            step.what += &last;
            step.row = step.row.filter(|_| last.is_empty());
            steps.push(step);
        }
        steps
    }

    /// Lists the plan's pods that the report asks about and that belong to the same `StatefulSet`
    /// as the first pod. Such a `StatefulSet` may be a database that loses its quorum with two of
    /// its pods.
    fn asked_of_its_set(&self) -> impl Iterator<Item = &Judged> {
        let Adviser { plan, .. } = self.adviser;
        let its = self.first.pod.controller.as_ref();
        let of_set = its.filter(|_| self.first.pod.of_stateful_set());
        plan.pods.iter().filter(move |judged| {
            let (pod, node) = (&judged.pod, judged.pod.node.as_ref());
            of_set.is_some_and(|its| pod.controller.as_ref() == Some(its))
                && judged.verdict() == Verdict::Manual
                && judged.reason.asks_a_person()
                && node.is_none_or(|node| !plan.by_node.contains_key(node))
        })
    }

    /// Returns the sentence that the user must not answer for this pod and others of its
    /// `StatefulSet` at the same time; `None` if no other one needs an answer.
    fn one_at_a_time(&self) -> Option<String> {
        let are_several = self.all.len() == 1 && self.asked_of_its_set().nth(1).is_some();
        let set = self.first.pod.owner.as_ref().filter(|_| are_several)?;
        Some(format!(
            "Other pods of {set} need an answer too: answer for one pod at a time, and wait until it is Ready."
        ))
    }

    /// Reports whether two of the pods belong to one `StatefulSet`.
    fn are_of_one_set(&self) -> bool {
        let of_sets = self.pods().filter(|pod| pod.of_stateful_set());
        let mut sets = of_sets.filter_map(|pod| Some(pod.controller.as_ref()?.uid.as_str()));
        !sets.all_unique()
    }

    fn losses(&self) -> Vec<Loss> {
        let losses = self.all.iter().flat_map(|judged| {
            to_give_up(judged).filter_map(|name| {
                let mut claims = judged.pod.claims.iter();
                let bound = claims.find(|claim| claim.name == name)?.bound()?;
                Some(Loss {
                    claim: name.to_owned(),
                    volume: bound.volume.name.clone(),
                    reclaim_policy: bound.volume.reclaim_policy.clone(),
                    capacity: bound.capacity.clone(),
                    created: bound.created,
                })
            })
        });
        losses
            .sorted_by_cached_key(|loss| natural(&loss.claim))
            .dedup()
            .collect()
    }

    fn copies(&self) -> Option<(Owner, Read<usize>)> {
        let key = (self.namespace().to_owned(), self.first.pod.series()?);
        let copies = self.adviser.facts.copies.get(&key)?.clone();
        Some((key.1, copies))
    }

    /// Says what happens to the PVCs that are given up, and to their pods, as sentences.
    fn what_follows(&self) -> String {
        let mut claims = self.all.iter().flat_map(|judged| asked(judged));
        if claims.clone().all(|(_, pin)| pin.deleted) {
            return "Kubernetes deletes the PVC once its last pod is gone.".to_owned();
        }
        let is_one = self.all.len() == 1;
        let (nothing, deletes) = if is_one {
            (
                "Nothing happens to this pod until you run its command.",
                "the PVC and the pod",
            )
        } else {
            (
                "Nothing happens to these pods until you run their commands.",
                "each PVC with its pod",
            )
        };
        let run = if claims.clone().any(|(_, pin)| pin.doubt.is_some()) {
            format!(
                "The next run then checks whether a new PVC would be created, and deletes {deletes} only if so."
            )
        } else if claims.any(|(_, pin)| pin.by_operator) {
            format!(
                "The next run then deletes {deletes}. The operator that owns the pod decides whether to create them again."
            )
        } else if is_one {
            format!(
                "The next run then deletes {deletes}, and the StatefulSet creates both again, empty."
            )
        } else {
            format!(
                "The next run then deletes {deletes}, and their StatefulSets create all of them again, empty."
            )
        };
        format!("{nothing} {run}")
    }

    fn give_up(&self, node: &str, losses: &[Loss], copies: Option<&(Owner, Read<usize>)>) -> Step {
        let names = losses.iter().map(|loss| loss.claim.as_str()).collect_vec();
        let mut volumes = BTreeMap::<_, Vec<_>>::new();
        for loss in losses {
            let policy = loss.reclaim_policy.as_deref();
            volumes.entry(policy).or_default().push(&*loss.volume);
        }
        let is_deleted = !self.keep_data(node).is_empty();
        let is_lost = volumes.keys().any(|policy| *policy != Some("Retain"));
        let lost = |policy: Option<&str>, of: &str| {
            let data = format!("the data of {of}");
            match policy {
                Some("Retain") => {
                    format!(
                        "{data} stays (reclaim policy Retain), but the new pod starts without it"
                    )
                }
                Some(policy) if is_deleted => {
                    format!(
                        "{data} is lost for good (reclaim policy {policy}), unless you set it to Retain first"
                    )
                }
                Some(policy) => format!("{data} is lost for good (reclaim policy {policy})"),
                None => format!("{data} must be considered lost (it names no reclaim policy)"),
            }
        };
        let pvcs = named("PVC", &names)
            + &prefixed(
                "",
                joined(size_and_age(losses), ", ").map(|both| format!(" ({both})")),
            );
        let mut all_lost = volumes
            .into_iter()
            .map(|(policy, volumes)| lost(policy, &named("volume", &volumes)));
        let mut what = format!("Discard {pvcs}: {}.", all_lost.join("; "));
        let mut row = match losses {
            [
                Loss {
                    volume,
                    reclaim_policy,
                    ..
                },
            ] if !is_deleted => Some(Row {
                does: format!(
                    "Each command discards the PVC of one pod: {}.",
                    lost(reclaim_policy.as_deref(), "its volume")
                ),
                about: format!("{pvcs}, volume {volume}"),
            }),
            _ => None,
        };
        what += &prefixed(" ", self.says_copies(copies));
        let mut claims = self.all.iter().flat_map(|judged| asked(judged));
        if let Some(doubt) = claims.find_map(|(_, pin)| pin.doubt.as_ref()) {
            what += &format!(
                " Whether the PVC would be created again is not known ({}).",
                doubt.why
            );
            row = None;
        }
        Step {
            row,
            harm: Some(if is_lost {
                "Destroys data"
            } else {
                "Starts empty"
            }),
            ..self.answer(what, "pvc", &names, GIVE_UP)
        }
    }

    /// Says how many other pods of the workload are Ready, as a sentence.
    fn says_copies(&self, copies: Option<&(Owner, Read<usize>)>) -> Option<String> {
        let (workload, copies) = copies?;
        Some(match copies {
            Ok(0) => {
                let last = match self.all {
                    [_] => "this may be the last copy",
                    _ => "these may be the last copies",
                };
                format!("No other pod of {workload} is Ready, so {last}.")
            }
            Ok(copies) => format!(
                "Ready elsewhere: {} of {workload}.",
                counted(*copies, "pod", "pods")
            ),
            // The cause may be a message of the API server, which no log repeats.
            Err(_) => format!("How many other pods of {workload} are Ready is not known."),
        })
    }

    /// Says which data the pods leave behind on their node, as sentences to precede others.
    fn leaves_data(&self, node: &str, copies: Option<&(Owner, Read<usize>)>) -> String {
        let written = self.pods().flat_map(|pod| &pod.host_paths);
        let paths = written.sorted().dedup().join(", ");
        let copies = prefixed("", self.says_copies(copies).map(|says| says + " "));
        format!(
            "The data in {paths} stays on {node}'s disk, and the replacement starts without it: copy it from there if you \
             need it. {copies}"
        )
    }

    /// Returns the sentences that the replacement of a `ReplicaSet`'s pod exists already, and what
    /// it waits for; `None` for other pods. The `ReplicaSet` created the replacement at the
    /// eviction.
    fn replaced_already(&self, node: &str) -> Option<String> {
        let is_renamed = |pod: &PodFacts| pod.made_by("ReplicaSet", "apps");
        let is_pinned = self.is(ReasonCode::LocalVolume) && self.pods().all(is_renamed);
        let pinned = self
            .all
            .iter()
            .flat_map(|judged| judged.reason.ties.pinned())
            .filter(|_| is_pinned);
        let of_pins = pinned.clone().map(|(tie, _)| tie.pvc.as_str());
        let names = of_pins.sorted().dedup().collect_vec();
        if names.is_empty() {
            return None;
        }
        let pvcs = named("PVC", &names);
        let exists = match self.all {
            [_] => "The replacement exists already, and stays Pending",
            _ => "The replacements exist already, and stay Pending",
        };
        let what = if pinned.clone().any(|(_, pin)| pin.deleted) {
            format!("Once the old pod is gone, create {pvcs} again, since no controller does.")
        } else {
            format!(
                "If {node} can come back, wait: the replacement then starts there, with the data. If {node} is lost for good, \
                 delete {pvcs} and the old pod by hand; then create {pvcs} again, empty, since no controller does."
            )
        };
        Some(format!(
            "{exists}: {pvcs} can only be used on {node}. {what}"
        ))
    }

    /// Returns the steps that save the data of PVCs that somebody deleted. When the node comes
    /// back, the last act of its kubelet would destroy that data.
    fn keep_data(&self, node: &str) -> Vec<Step> {
        let claims = self.pods().flat_map(|pod| {
            let claims = pod.claims.iter();
            claims.filter(|claim| {
                let kept = [
                    DeletedWithPod::Unwanted(Unneeded::Namespace),
                    DeletedWithPod::Ephemeral,
                ];
                claim.deleted && claim.keeper().is_none() && !kept.contains(&pod.goes(claim))
            })
        });
        let steps = claims.filter_map(|claim| Some(self.keep(node, claim, &claim.bound()?.volume)));
        let mut seen = BTreeSet::new();
        steps
            .filter(|step| seen.insert(step.what.clone()))
            .collect()
    }

    fn see_volumes(&self) -> Vec<Step> {
        let ties = |code| {
            let all = self.all.iter().filter(move |_| self.is(code));
            all.map(|judged| &judged.reason.ties)
        };
        let kubectl = self.adviser.kubectl;
        let mut steps = Vec::new();
        for tie in ties(ReasonCode::VolumeConfined).flat_map(Ties::confined) {
            let (Tie { pvc, why, .. }, volume) = (tie, tie.volume());
            let what = format!("See where the data of PVC {pvc} is: volume {volume} {why}.");
            let describe = ["describe", "pv", volume];
            steps.push(Step::new(what, kubectl.command(&describe)));
        }
        if !steps.is_empty() {
            steps.push(Step::remark(format!(
                "If the data is elsewhere, bring up a node that the volume allows: the next run then reaps {}. A replacement \
                 would wait for such a node.",
                self.them()
            )));
        }
        let unverified = ties(ReasonCode::VolumeUnverified).flat_map(Ties::unverified);
        for tie in unverified.filter(|tie| !tie.answerable()) {
            let (Tie { pvc, why, .. }, volume) = (tie, tie.volume());
            let what = if tie.kind == TieKind::Unverified(Unsure::NoVolume) {
                format!(
                    "Volume {volume} of PVC {pvc} does not exist: bring it back, or a new pod cannot start."
                )
            } else {
                format!("See PVC {pvc}, and where its volume is: {why}.")
            };
            let get = ["get", "pvc", pvc, "-n", self.namespace(), "-o", "wide"];
            // A name that no PVC can have is only in the pod, so the command shows the pod.
            let command = if is_name(pvc) {
                kubectl.command(&get)
            } else {
                self.get_pods(kubectl, &["-o", "yaml"])
            };
            steps.push(Step::new(what, command));
        }
        // If a pod uses too many PVCs, one placeholder stands for all of them.
        steps.dedup();
        steps
    }

    /// Returns the step that keeps the data of a deleted PVC. Its command only ever keeps data, so
    /// the user may paste it late, and twice.
    fn keep(&self, node: &str, claim: &ClaimFacts, volume: &VolumeFacts) -> Step {
        let (claim, VolumeFacts { name, .. }, retain) = (&claim.name, volume, "Retain");
        if volume.reclaim_policy.as_deref() == Some(retain) {
            return Step {
                kind: StepKind::Keep,
                ..Step::remark(format!(
                    "Somebody deleted PVC {claim}: it goes with its last pod. Its volume {name} has the policy {retain}, so its \
                     data stays, and a replacement starts empty."
                ))
            };
        }
        let change = format!(r#"{{"spec":{{"persistentVolumeReclaimPolicy":"{retain}"}}}}"#);
        let patch = ["patch", "pv", name, "-p", &change];
        Step {
            kind: StepKind::Keep,
            ..Step::new(
                format!(
                    "Set volume {name} to {retain} before {node} comes back: somebody deleted PVC {claim}, so the data is \
                     destroyed as soon as {node}'s kubelet ends the pod."
                ),
                self.adviser.kubectl.command(&patch),
            )
        }
    }

    /// Returns the advice about pods for which a repair is needed instead of an answer about their
    /// storage or owner. `risk` holds the advice of the reason code, unless the kubelet reports
    /// that all containers have terminated.
    fn repair(&self) -> Advice {
        let Judged { pod, reason, .. } = self.first;
        let kubectl = self.adviser.kubectl;
        let get = |options: &[&str]| self.get_pods(kubectl, options);
        let known = self.adviser.facts.known_node(pod);
        let first = known.filter(|_| reason.code == ReasonCode::KubeletAlive);
        let first = first.and_then(repair_first).map(str::to_owned);
        let waiting = self.waiting_for_its_end();
        let mut steps = match reason.code {
            ReasonCode::Finalizers | ReasonCode::AlreadyForced => vec![
                Step::new(
                    "See what set the finalizers (under managedFields, the manager of each f:finalizers), and look at its log.",
                    get(&["--show-managed-fields", "-o", "yaml"]),
                ),
                Step::new(
                    "See what is left of them; a pod goes by itself with the last one, or at the next run.",
                    get(&[
                        "-o",
                        "custom-columns=POD:.metadata.name,HELD_BY:.metadata.finalizers",
                    ]),
                ),
            ],
            _ => {
                let name = pod.node.as_deref().unwrap_or_default();
                let describe = kubectl.command(&["describe", "node", name]);
                let see = "See the node's conditions, and its kubelet's last lease.";
                let mut steps = self.other_leases();
                steps.push(Step::new(see, describe));
                steps
            }
        };
        if reason.code == ReasonCode::KosmosLeaf {
            let log = "logs -n kosmos-system deployment/clustertree-cluster-manager --tail=50";
            let see = "See why Kosmos does not reach the leaf cluster. If kosmos-guard is not installed, install it for the next time.";
            steps.push(Step::new(
                see,
                kubectl.command(&log.split(' ').collect_vec()),
            ));
            let cluster = known.and_then(|node| node.leaf.as_ref()?.cluster.as_deref());
            steps.extend(cluster.map(|cluster| self.in_leaf_cluster(cluster)));
        }
        let asks = self.adviser.asks_if_edge_is_off(self.first);
        steps.extend(known.filter(|_| asks).map(|node| {
            let what = format!(
                "If {} is off for good, check that at the machine itself, and confirm it: the next run then reaps the pods whose \
                 deletion was requested before.",
                node.name
            );
            self.answer(what, "node", &[&node.name], POWERED_OFF)
        }));
        let is_alive = reason.code == ReasonCode::KubeletAlive;
        let ended = known.is_some_and(|node| is_alive && node.ready == Ready::False)
            && pod.containers.terminated > 0
            && pod.containers.running + pod.containers.waiting == 0;
        let risk = if ended {
            "Do not force-delete it: its containers have terminated, and the kubelet confirms that once the node is Ready. Or power \
             the machine off: after 11 minutes without a heartbeat, the next run judges the pod again."
        } else {
            reason.code.advice()
        };
        let mut risk = risk.to_owned();
        if pod_is_far(reason.code) {
            risk += &self.second_copies();
        }
        if let Some(advice) = waiting {
            let others = self.pods().any(PodFacts::is_held_by_others);
            risk = advice.risk.unwrap_or_default() + &prefixed(" ", others.then_some(risk));
            let looks = steps.split_off(usize::from(!others));
            steps = advice.steps.into_iter().chain(looks).collect();
        }
        Advice {
            about_pods: first.clone(),
            first,
            risk: Some(risk),
            repairs: true,
            steps,
            ..Advice::default()
        }
    }

    /// Says what a force delete of the pods would start, by the kinds of their controllers, as
    /// sentences.
    fn second_copies(&self) -> String {
        let kinds = self.pods().map(|pod| {
            let controller = pod.controller.as_ref().and(pod.owner.as_ref());
            controller.map(|owner| owner.kind.as_str())
        });
        let said = kinds.sorted().dedup().map(|kind| match kind {
            None => " Nothing would start a pod without a controller again.".to_owned(),
            Some("StatefulSet") => {
                " After a force delete, the StatefulSet would start a second copy.".to_owned()
            }
            Some("ReplicaSet" | "Job") => {
                format!(
                    " A {} has most likely started a replacement already, at the eviction.",
                    kind.unwrap_or_default()
                )
            }
            Some(kind) => format!(" A {kind} may start a second copy."),
        });
        said.collect()
    }

    /// Returns the advice about pods that finalizers block until the pods have finished: nothing
    /// records the end of a pod while its node is dead. `None` if there are no such pods.
    fn waiting_for_its_end(&self) -> Option<Advice> {
        let node = self.adviser.facts.known_node(&self.first.pod)?;
        let waits = self.pods().flat_map(PodFacts::waits_for_its_end);
        let finalizers = joined(waits.sorted().dedup(), ", ")?;
        let (adviser, name) = (self.adviser, &node.name);
        let off = match node.fenced(adviser.facts.now) {
            Some(_) => String::new(),
            None => format!("power {name} off, and check that at the machine itself; then "),
        };
        let risk = format!(
            "{finalizers} is released only once the pod has finished, and nothing records that while {name} is dead. If \
             {name} cannot come back, {off}set the out-of-service taint: Kubernetes 1.26 or newer then sets the pod to \
             Failed and force-deletes it."
        );
        let what = format!(
            "Set the taint only once the machine is off: Kubernetes force-deletes every pod on {name} that does not tolerate \
             it. {AFTER_A_POWER_CYCLE}"
        );
        let taint = adviser.may_taint(node).then(|| adviser.taint(node, &what));
        Some(Advice {
            risk: Some(risk),
            steps: taint.into_iter().collect(),
            ..Advice::default()
        })
    }

    /// Returns the step that shows another Lease that is a sign of life, if there is one. The
    /// node's own lease is old and would seem to contradict it.
    fn other_leases(&self) -> Vec<Step> {
        let adviser = self.adviser;
        let Some(node) = adviser.facts.known_node(&self.first.pod) else {
            return Vec::new();
        };
        let signs = node.signs_of_life(adviser.facts.now);
        let other = signs.iter().find(|sign| sign.by == SignBy::OtherLease);
        let Some(what) = other.and_then(|sign| sign.what.as_deref()) else {
            return Vec::new();
        };
        let named = node.named_by.iter().flatten().flatten().find(|named| {
            let lease = format!("{}/{}", named.namespace, named.lease);
            what.split([' ', ',']).any(|word| word == lease)
        });
        let step = named.map(|named| {
            let get = [
                "get",
                "lease",
                &named.lease,
                "-n",
                &named.namespace,
                "-o",
                "yaml",
            ];
            Step::new(
                "See the Lease that shows life:",
                adviser.kubectl.command(&get),
            )
        });
        step.into_iter().collect()
    }

    /// Returns the step to look for the pods in the cluster that a leaf node stands for. The
    /// command names a kubeconfig file of its own. It fails if that file does not exist, and never
    /// contacts the cluster of this run.
    fn in_leaf_cluster(&self, cluster: &str) -> Step {
        let file = format!("{cluster}.kubeconfig");
        let what = format!(
            "Look for {} in leaf cluster {cluster}: save a kubeconfig of that cluster as {file}. If the link is cut from here too, \
             look from within the leaf cluster.",
            self.them()
        );
        let there = Target {
            kubeconfig: Some(file.into()),
            context: None,
        };
        Step::new(what, self.get_pods(&there, &["-o", "wide"]))
    }
}

/// Reports whether the reason is that the pod may be running elsewhere, on whatever its leaf node
/// stands for.
fn pod_is_far(code: ReasonCode) -> bool {
    [
        ReasonCode::KosmosLeaf,
        ReasonCode::VirtualNode,
        ReasonCode::EdgeNode,
        ReasonCode::LeafNode,
    ]
    .contains(&code)
}

fn size_and_age(losses: &[Loss]) -> impl Iterator<Item = String> {
    let each = if losses.len() == 1 { "" } else { " each" };
    let capacities = losses.iter().filter_map(|loss| loss.capacity.as_ref());
    let sizes = capacities.counts().into_iter().sorted().collect_vec();
    let size = match &sizes[..] {
        [] => None,
        [(size, _)] => Some(format!("{size}{each}")),
        sizes => joined(
            sizes
                .iter()
                .map(|(size, count)| format!("{count} of {size}")),
            ", ",
        ),
    };
    let times = losses.iter().filter_map(|loss| loss.created);
    let made = times.minmax().into_option().map(|(first, last)| {
        let [from, to] = [first, last].map(|time| time.strftime("%F").to_string());
        if first == last {
            format!("created {from} {}", first.strftime("%RZ"))
        } else if from == to {
            format!("created {from}")
        } else {
            format!("created {from} to {to}")
        }
    });
    size.into_iter().chain(made)
}

fn named(noun: &str, names: &[&str]) -> String {
    match names.len() {
        1 => format!("{noun} {}", names.join("")),
        2 | 3 => format!("{noun}s {}", names.join(", ")),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests;
