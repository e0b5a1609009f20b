//! What to do, as data. A reason yields some of these; the report joins equal ones of several pods and nodes.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use super::{build::Damage, page::State, record::RunRecord};
use crate::{
    codes::{codes, entry},
    facts::{
        HANGS, KubeletSays, LeafKind, NodeFacts, Owner, PodFacts, Ready, SignBy, Storage, Stray,
    },
    judge::{Judged, Limit},
    judge::{ReasonCode, Tie, TieKind, Verdict, Wanted},
    outcome::OutcomeCode,
    selector::{Target, is_name},
    words::{about, joined, listed, natural, prefixed},
};

/// The most names in a sentence.
const NAMED: usize = 3;
/// Stands for a leaf cluster whose name is not known.
const LEAF_CLUSTER: &str = "the leaf cluster";

/// A thing to do. The order is that of urgency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Todo {
    /// The filter matches no namespace.
    CorrectFilter,
    /// The file has no leases.
    SaveWithLeases,
    /// The kubelet would destroy the data of this deleted PVC.
    Retain {
        claim: String,
        volume: String,
    },
    /// The breaker holds: see whether one of the machines runs.
    ReachOne,
    RepairNetwork,
    IfAllAreOff,
    MakeRoom,
    /// A limit holds because of something unknown.
    SeeUnknown(String),
    ReachMembers,
    ForgetMembers,
    Repair(Option<KubeletSays>),
    OrPowerOff,
    HaveYouSeenItOff,
    LookAtControlPlane,
    Look,
    PowerOff,
    BringBack,
    Fence,
    NoSpareMember,
    LookInLeaf(Option<String>),
    DownUntil,
    StartAgain(&'static str),
    RepairLink,
    AskWhatItIs,
    /// A delete failed: how, and why.
    SeeOutcome(OutcomeCode, String),
    /// Something could not be read: what, and why.
    SeeUnread(String, String),
    // From here on, it can wait until morning.
    GiveUpEach,
    GiveUp {
        namespace: String,
        claim: String,
    },
    LeaveToOperator {
        claim: String,
        owner: Owner,
    },
    CreateAgain(String),
    SeeVolume {
        claim: String,
        why: String,
    },
    SeeReach {
        volume: String,
        why: String,
    },
    HeldClaim {
        claim: String,
        finalizers: String,
    },
    CopyPaths(String),
    DecideAboutOwner,
    ReleaseFinalizer {
        finalizer: String,
        manager: Option<String>,
    },
    AskKubelet,
    SeeLease {
        namespace: String,
        lease: String,
    },
    SeeLinkLog,
    SeeStray(Stray),
    /// Only for somebody who asks about one pod: a report has it where nothing else helps.
    TaintNode,
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
                | Self::CreateAgain(_)
                | Self::CopyPaths(_)
        )
    }
}

impl RunRecord<'_> {
    /// Lists what to do about the whole run: for each pod, for the limits and for what was not read.
    pub fn todos(&self) -> Todos<'_> {
        let mut all = Todos::new();
        for judged in self.by_damage(self.plan.pods.iter().collect()) {
            for todo in self.todos_of(judged) {
                all.entry(todo).or_default().pods.push(judged);
            }
        }
        for todo in self.todos_of_run() {
            all.entry(todo).or_default();
        }
        // Data is given up one pod at a time: a report has the command only if one pod needs it.
        let last = all.iter().filter(|(todo, _)| todo.is_last_resort());
        let last = last.flat_map(|(_, about)| about.pods.clone());
        let last = last.unique_by(|it| it.pod.uid.as_str()).collect_vec();
        if last.len() > 1 {
            all.retain(|todo, _| !todo.is_last_resort());
            all.entry(Todo::GiveUpEach).or_default().pods = self.by_damage(last);
        }
        // If only one pod is there to wait for, the look at its node says so.
        if all
            .get(&Todo::Look)
            .is_some_and(|about| about.pods.len() == 1)
        {
            all.remove(&Todo::DownUntil);
        }
        for about in all.values_mut() {
            *about = About::of(std::mem::take(&mut about.pods));
        }
        let held = self.facts.known_nodes();
        let held = held.filter(|node| node.ready != Ready::True && node.leaf.is_none());
        let held = held
            .map(|node| node.name.as_str())
            .sorted_by_cached_key(|name| natural(name));
        for todo in [Todo::ReachOne, Todo::MakeRoom] {
            all.entry(todo)
                .and_modify(|about| about.nodes = held.clone().collect());
        }
        all
    }

    pub fn todos_of_run(&self) -> Vec<Todo> {
        let facts = &self.facts;
        let mut todos = Vec::new();
        todos.extend(self.settings.unmatched(facts).map(|_| Todo::CorrectFilter));
        todos.extend(facts.incomplete.as_ref().map(|_| Todo::SaveWithLeases));
        match self.plan.hold.as_ref().or(self.plan.zones.values().next()) {
            Some(Limit::MassOutage(_)) => {
                todos.extend([Todo::ReachOne, Todo::RepairNetwork, Todo::IfAllAreOff]);
            }
            Some(Limit::NoRoom(_)) => todos.push(Todo::MakeRoom),
            Some(Limit::Unread(what)) => todos.push(Todo::SeeUnknown(what.clone())),
            Some(Limit::OverCap(_)) | None => {}
        }
        todos.extend(facts.strays.iter().cloned().map(Todo::SeeStray));
        let errors = facts.errors.iter();
        let errors = errors.filter(|_| facts.incomplete.is_none());
        todos.extend(errors.map(|it| Todo::SeeUnread(it.what.clone(), it.cause.clone())));
        todos
    }

    /// Lists what to do about one pod, and about its node because of it. Nothing in the list
    /// contradicts the state: a node that is alive, fenced, being deleted, no machine or a needed
    /// member of etcd is never powered off.
    pub fn todos_of(&self, judged: &Judged) -> Vec<Todo> {
        let Judged { pod, reason, .. } = judged;
        let deleted = |tie: &&Tie| {
            matches!(
                tie.kind,
                TieKind::Goes(Wanted::Deleted(_) | Wanted::DeletedAndHeld { .. })
            )
        };
        let deleted = reason.ties.iter().filter(deleted);
        let mut todos = deleted
            .filter_map(|tie| {
                Some(Todo::Retain {
                    claim: tie.pvc.clone(),
                    volume: judged.claim(&tie.pvc)?.bound()?.volume.name.clone(),
                })
            })
            .collect_vec();
        if let Some(outcome) = self.outcomes.get(&pod.uid)
            && outcome.code().is_failure()
        {
            todos.push(Todo::SeeOutcome(outcome.code(), outcome.sentence()));
        }
        let node = self.facts.known_node(pod);
        let is_at_rest = matches!(
            reason.code(),
            ReasonCode::LocalVolume | ReasonCode::HostPath | ReasonCode::Stuck
        );
        let may_taint = node.is_some_and(|node| is_at_rest && self.may_taint(node));
        let hangs = || self.facts.on_ready_node(pod) && self.facts.overdue(pod) >= HANGS;
        match (judged.verdict(), reason.code()) {
            _ if self.is_held(judged) => {}
            (Verdict::Reap, _) if self.may_run_twice(pod) => todos.extend(self.off(node)),
            (Verdict::Leave, ReasonCode::NodeReady) if hangs() => todos.push(Todo::AskKubelet),
            (Verdict::Manual, ReasonCode::EtcdMember) => {
                todos.extend([Todo::ReachMembers, Todo::ForgetMembers]);
            }
            (Verdict::Manual, ReasonCode::KubeletAlive) => {
                todos.extend(node.into_iter().flat_map(|node| self.repair(node)))
            }
            (Verdict::Manual, ReasonCode::Finalizers) => {
                todos.extend(
                    pod.finalizers_of_others()
                        .map(|finalizer| Todo::ReleaseFinalizer {
                            finalizer: finalizer.to_owned(),
                            manager: pod.finalizers_set_by.get(finalizer).cloned(),
                        }),
                );
            }
            (Verdict::Manual, _) => match node.and_then(|node| node.leaf.as_ref()) {
                Some(leaf) => todos.extend(match leaf.kind {
                    LeafKind::Kosmos => {
                        vec![Todo::LookInLeaf(leaf.cluster.clone()), Todo::SeeLinkLog]
                    }
                    LeafKind::Virtual => vec![Todo::StartAgain(leaf.maker)],
                    LeafKind::Edge | LeafKind::Selected => vec![Todo::RepairLink],
                    LeafKind::NeverReported => vec![Todo::AskWhatItIs],
                }),
                None => todos.extend(self.about_storage(judged, node)),
            },
            _ => {}
        }
        todos.extend(may_taint.then_some(Todo::TaintNode));
        todos
    }

    /// Lists what to do about a pod whose storage or owner keeps it on a dead node.
    fn about_storage(&self, judged: &Judged, node: Option<&NodeFacts>) -> Vec<Todo> {
        let Judged { pod, reason, .. } = judged;
        let asks = |code| reason.asks.contains(&code);
        let mut todos = self.off(node);
        let claims = judged.storage.iter().flat_map(Storage::claims);
        let stays = claims.into_iter().all(|claim| claim.deletion.is_none());
        let is_wanted = judged.unneeded().is_none() && pod.controller.is_some();
        let is_local = asks(ReasonCode::LocalVolume) || asks(ReasonCode::HostPath);
        if is_local && stays && is_wanted && node.is_some_and(|node| !self.was_acted_on(&node.name))
        {
            // A machine that is known to be off is not looked at.
            todos.push(if todos.contains(&Todo::PowerOff) {
                Todo::Look
            } else {
                Todo::BringBack
            });
        }
        if is_local && self.damage(judged) == Damage::NoOtherReady {
            todos.push(Todo::DownUntil);
        }
        if asks(ReasonCode::SharedDisk) {
            todos.push(Todo::Fence);
        }
        if asks(ReasonCode::OwnerKind) {
            todos.push(Todo::DecideAboutOwner);
        }
        if asks(ReasonCode::HostPath) {
            todos.push(Todo::CopyPaths(pod.host_paths.iter().join(", ")));
        }
        for tie in &reason.ties {
            let (claim, its) = (tie.pvc.clone(), judged.claim(&tie.pvc));
            todos.extend(match (&tie.kind, its) {
                (TieKind::Confined(_), _) => Some(Todo::SeeReach {
                    volume: tie.volume().to_owned(),
                    why: tie.to_string(),
                }),
                (TieKind::Unverified(_), _) => Some(Todo::SeeVolume {
                    claim,
                    why: tie.to_string(),
                }),
                (TieKind::Goes(Wanted::DeletedAndHeld { finalizers, .. }), _) => {
                    let finalizers = finalizers.join(", ");
                    Some(Todo::HeldClaim { claim, finalizers })
                }
                (TieKind::Pinned(_), Some(its)) if its.deletion.is_some() => None,
                // The template of the `StatefulSet` makes the PVC again.
                (TieKind::Pinned(_), Some(its)) if its.templated && pod.of_stateful_set() => {
                    Some(Todo::GiveUp {
                        namespace: pod.namespace.clone(),
                        claim,
                    })
                }
                (TieKind::Pinned(_), its) => Some(match its.and_then(|its| its.owner.clone()) {
                    Some(owner) => Todo::LeaveToOperator { claim, owner },
                    None => Todo::CreateAgain(claim),
                }),
                _ => None,
            });
        }
        todos
    }

    /// Lists what to do about the machine of a pod that starts elsewhere.
    fn off(&self, node: Option<&NodeFacts>) -> Vec<Todo> {
        let is_suspect = |node: &&NodeFacts| {
            State::of(node, self.facts.now) == State::Down && !node.out_of_service
        };
        let Some(node) = node.filter(is_suspect) else {
            return Vec::new();
        };
        let down = self
            .facts
            .known_nodes()
            .filter(|it| it.ready != Ready::True);
        let unsure = |it: &&NodeFacts| it.control_plane && it.etcd.is_none() && it.leaf.is_none();
        let mut todos = vec![if node.control_plane && down.filter(unsure).count() > 1 {
            Todo::LookAtControlPlane
        } else {
            Todo::PowerOff
        }];
        if node.etcd.is_some_and(|members| members.has_no_spare()) {
            todos.push(Todo::NoSpareMember);
        }
        todos
    }

    /// Lists what to do about a node that is alive.
    fn repair(&self, node: &NodeFacts) -> Vec<Todo> {
        let says = node.kubelet_says.filter(|_| node.ready == Ready::False);
        let signs = node.signs_of_life(self.facts.now);
        let lease = signs.iter().find(|sign| sign.by == SignBy::OtherLease);
        let named_by = node.life.iter().flat_map(|life| &life.named_by).flatten();
        let mut leases = named_by.filter(|named| {
            let name = format!("{}/{}", named.namespace, named.lease);
            let what = lease.and_then(|sign| sign.what.as_deref());
            what.is_some_and(|what| what.split([' ', ',']).any(|word| word == name))
        });
        let mut todos = vec![Todo::Repair(says), Todo::OrPowerOff];
        todos.extend(leases.next().map(|named| Todo::SeeLease {
            namespace: named.namespace.clone(),
            lease: named.lease.clone(),
        }));
        todos
    }

    /// Writes a thing to do as a step.
    pub fn step(&self, todo: &Todo, about: &About<'_>) -> Step {
        let harms = matches!(
            todo,
            Todo::Fence
                | Todo::GiveUp { .. }
                | Todo::ReleaseFinalizer { .. }
                | Todo::SeeStray(Stray::Pending { .. })
                | Todo::TaintNode
        );
        let changes = harms || matches!(todo, Todo::Retain { .. });
        // A node that is only supposed to be dead is alive.
        let is_supposed = !self.settings.task.suppose_dead().is_empty();
        let command = self
            .command(todo, about)
            .filter(|_| !changes || !is_supposed);
        Step {
            when: todo.when(),
            what: self.sentence(todo, about),
            harms: harms && command.is_some(),
            command,
        }
    }

    fn sentence(&self, todo: &Todo, about: &About<'_>) -> String {
        const TAINT: &str = "the out-of-service taint ends every pod there that does not tolerate it; remove it only after the machine was powered off and on again";
        let (pods, nodes) = (about.pods(), about.nodes());
        match todo {
            Todo::CorrectFilter => "Correct the namespace filter, and run again.".to_owned(),
            Todo::SaveWithLeases => "Save the file again, with leases, before you act (command under NOT SEEN).".to_owned(),
            Todo::Retain { claim, volume } => format!("{pods}: set volume {volume} to Retain before {nodes} comes back. PVC {claim} is being deleted, and the kubelet destroys the data as it ends the pod."),
            Todo::ReachOne => format!("Reach one of {nodes} by ssh or at its console."),
            Todo::RepairNetwork => "If it runs, repair the network and delete nothing: the kubelets end their pods themselves.".to_owned(),
            Todo::IfAllAreOff => "If they are off for good: the out-of-service taint on each that you have SEEN off (pod-reaper explain POD).".to_owned(),
            Todo::MakeRoom => format!("Bring {nodes} back, or add a node on which pods can start."),
            Todo::SeeUnknown(what) => format!("See why this is not known, and run again: {what}."),
            Todo::ReachMembers => format!("Reach {nodes} at the console. At least one of them runs, and is cut off or has lost its API server."),
            Todo::ForgetMembers => "If you reset etcd to fewer members, delete the Node objects of the others.".to_owned(),
            Todo::Repair(says) => {
                let what = match says {
                    Some(KubeletSays::Runtime) => "restart the container runtime. Then its kubelet ends the pods.",
                    Some(KubeletSays::Network) => "repair the network plugin (CNI). Then its kubelet ends the pods.",
                    Some(KubeletSays::ShuttingDown) => "wait until the machine has shut down.",
                    None => "see why the kubelet does not report Ready: restart it or the container runtime. Then it ends the pods.",
                };
                format!("On {nodes}, {what}")
            }
            Todo::OrPowerOff => {
                let silent = about_time(self.settings.policy.silent_after());
                format!("Or power off {nodes}: after {silent} of silence the next run takes over.")
            }
            Todo::HaveYouSeenItOff => format!("Have you SEEN {nodes} off? If not, POWER IT OFF NOW: earlier runs deleted pods there, and their replacements run."),
            Todo::LookAtControlPlane => format!("Look at {nodes} before you power one off: several control-plane nodes are NotReady, and no etcd was seen there."),
            Todo::Look => format!("Look at the console of {nodes}. If it boots, wait for {pods} to restart with the data there."),
            Todo::PowerOff => self.power_off(about),
            Todo::BringBack => format!("Bring {nodes} or its disk back, for {pods} to restart with the data there."),
            Todo::Fence => format!("{pods}: two machines would write to one disk if {nodes} still runs. Once you have SEEN it off, say so by annotation fencing/state=fenced; the next run reaps. Or by the taint: {TAINT}."),
            Todo::DownUntil => format!("{pods} is down until {nodes} or its disk is back. Discard nothing."),
            Todo::NoSpareMember => format!("etcd has no spare member left: bring {nodes} back."),
            Todo::LookInLeaf(cluster) => {
                let cluster = cluster.as_deref().unwrap_or(LEAF_CLUSTER);
                format!("{pods}: look for it in {cluster} BEFORE you repair the link. The repair stops it.")
            }
            Todo::StartAgain(maker) => format!("Bring {maker} behind {nodes} back: it then ends {pods}."),
            Todo::RepairLink => format!("Repair the link to {nodes}: what runs there then ends {pods}."),
            Todo::AskWhatItIs => format!("Find out what {nodes} stands for: no kubelet ever reported there, so {pods} may run."),
            Todo::SeeOutcome(code, why) => format!("See why {pods} was not deleted [{code}]: {why}"),
            Todo::SeeUnread(what, why) => format!("Not read: {what}: {why}"),
            Todo::GiveUp { claim, .. } => self.give_up(claim, about),
            Todo::GiveUpEach => format!("Only if {nodes} is lost for good: give up the data of {pods}, one at a time, and wait for Ready in between (pod-reaper explain POD)."),
            Todo::LeaveToOperator { claim, owner } => format!("Only if {nodes} is lost for good: PVC {claim} of {pods} belongs to {owner}, whose operator replaces it."),
            Todo::CreateAgain(claim) => format!("Only if {nodes} is lost for good: nobody makes PVC {claim} of {pods} again. Delete it, and create it again once a run has deleted the pod."),
            Todo::SeeVolume { why, .. } => format!("{pods}: see its storage. {why}."),
            Todo::SeeReach { why, .. } => format!("{pods}: see where its data is. {why}. A Ready node that it allows lets the next run reap."),
            Todo::HeldClaim { claim, finalizers } => format!("{pods}: finalizer {finalizers} holds its PVC {claim}, which is being deleted. Repair the controller of the finalizer."),
            Todo::CopyPaths(paths) => format!("{pods} keeps data in {paths} on the disk of {nodes}. Only if that may be lost, delete the pod by hand (book: Data on a dead node)."),
            Todo::DecideAboutOwner => format!("{pods}: --manual-owner-kind leaves it to you. Once {nodes} is off, delete it by hand (book: Data on a dead node)."),
            Todo::ReleaseFinalizer { finalizer, manager } => {
                let by = prefixed(", set by ", manager.as_ref());
                let off = match &about.nodes[..] {
                    [] => String::new(),
                    [name, ..] => match self.facts.known(name) {
                        None => format!(" Node {nodes} no longer exists."),
                        Some(node) => {
                            let off = if self.off(Some(node)).contains(&Todo::PowerOff) { "power it off, then" } else { "once it is off" };
                            format!(" If that ran on {nodes}, or waits for the end of the pod: {off} set the out-of-service taint.")
                        }
                    }
                };
                format!("{pods} is held by finalizer {finalizer}{by}: repair its controller.{off}")
            }
            Todo::AskKubelet => format!("{pods} hangs on a Ready node: see the log of the kubelet of {nodes}."),
            Todo::SeeLease { .. } => format!("The Lease that shows that {nodes} is alive:"),
            Todo::SeeLinkLog => "See why Kosmos does not reach the leaf cluster.".to_owned(),
            Todo::SeeStray(Stray::Attachment { node, attachment }) => format!("VolumeAttachment {attachment} names {node}, which no longer exists: until it is gone, no other node gets the volume."),
            Todo::SeeStray(Stray::Pending { namespace, pod, claim, volume, .. }) => format!("{namespace}/{pod} is Pending: volume {volume} of its PVC {claim} can only be used on a node that no longer exists. Only if its data is lost for good, delete the PVC:"),
            Todo::TaintNode => format!("To move all of {nodes} at once, once you have SEEN it off: {TAINT}."),
        }
    }

    /// Returns what to paste.
    fn command(&self, todo: &Todo, about: &About<'_>) -> Option<String> {
        let first = about.pods.first();
        let namespace = first.map_or("", |it| &it.pod.namespace);
        let run = |words: &[&str]| Some(self.kubectl.command(words));
        match todo {
            Todo::Retain { volume, .. } => run(&[
                "patch",
                "pv",
                volume,
                "-p",
                r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#,
            ]),
            Todo::LookInLeaf(cluster) => {
                let cluster = cluster.as_deref().unwrap_or(LEAF_CLUSTER);
                let there = Target {
                    kubeconfig: Some(format!("{cluster}.kubeconfig").into()),
                    context: None,
                };
                let here = about.pods.iter().filter(|it| it.pod.namespace == namespace);
                let names = here.map(|it| it.pod.name.as_str());
                let get = ["get", "pod", "-n", namespace]
                    .into_iter()
                    .chain(names)
                    .chain(["-o", "wide"]);
                Some(there.command(&get.collect_vec()))
            }
            Todo::SeeVolume { claim, .. } if is_name(claim) => {
                run(&["get", "pvc", "-n", namespace, claim, "-o", "wide"])
            }
            Todo::SeeVolume { .. } => run(&[
                "get",
                "pod",
                "-n",
                namespace,
                &first?.pod.name,
                "-o",
                "yaml",
            ]),
            Todo::SeeReach { volume, .. } => run(&["describe", "pv", volume]),
            Todo::HeldClaim { claim, .. } => run(&[
                "get",
                "pvc",
                "-n",
                namespace,
                claim,
                "-o",
                "yaml",
                "--show-managed-fields",
            ]),
            Todo::SeeLease { namespace, lease } => {
                run(&["get", "lease", "-n", namespace, lease, "-o", "yaml"])
            }
            Todo::SeeLinkLog => run(&[
                "logs",
                "-n",
                "kosmos-system",
                "deployment/clustertree-cluster-manager",
                "--tail=50",
            ]),
            Todo::SeeStray(Stray::Attachment { attachment, .. }) => {
                run(&["describe", "volumeattachment", attachment])
            }
            Todo::SeeStray(Stray::Pending {
                namespace,
                pod,
                pod_uid,
                claim,
                claim_uid,
                ..
            }) => {
                let is_named = is_name(namespace) && is_name(claim);
                is_named.then(|| {
                    self.kubectl
                        .delete_unused_claim((namespace, pod, pod_uid), claim, claim_uid)
                })
            }
            Todo::GiveUp { namespace, claim } => {
                let uid = &first?.claim(claim)?.bound()?.uid;
                let node = self.facts.known_node(&first?.pod)?;
                let is_named = is_name(namespace) && is_name(claim);
                is_named.then(|| self.kubectl.delete_claim(node, namespace, claim, uid))
            }
            // A taint that ends more than the report says is not printed.
            Todo::Fence | Todo::ReleaseFinalizer { .. } | Todo::TaintNode => {
                let name = about.nodes.iter().exactly_one().ok()?;
                let node = self.facts.known(name).filter(|node| self.may_taint(node))?;
                Some(self.kubectl.taint(node))
            }
            _ => None,
        }
    }

    /// Says when to power off nodes. Volumes that are attached to them are detached after the delete
    /// of their pods, and then attached elsewhere (`VolumeAttachment`).
    fn power_off(&self, about: &About<'_>) -> String {
        let nodes = about.nodes();
        let is_here = |it: &&Judged| {
            it.pod
                .node
                .as_deref()
                .is_some_and(|name| about.nodes.contains(&name))
        };
        let reaped = self.plan.reaps().filter(is_here).collect_vec();
        let attached = reaped
            .iter()
            .copied()
            .filter(|it| self.detaches_late(it))
            .collect_vec();
        if reaped.is_empty() {
            format!(
                "If {nodes} does not boot, power it off before you give anything up; its disk keeps its data."
            )
        } else if attached.is_empty() {
            format!("Power {nodes} off unless it boots: its old containers may still run.")
        } else if about.nodes.iter().any(|node| self.was_acted_on(node)) {
            format!(
                "POWER {nodes} OFF BEFORE {}. Then its volumes are attached elsewhere; if {nodes} still runs, two machines write to them. Waiting for {nodes} is no longer safe.",
                self.detached_at()
            )
        } else {
            format!(
                "If {nodes} does not boot, POWER IT OFF before the next run; its disk keeps its data. If it still runs, the volumes of {} have two writers 6 minutes after the run.",
                About::of(attached).pods()
            )
        }
    }

    fn give_up(&self, claim: &str, about: &About<'_>) -> String {
        let (pods, nodes) = (about.pods(), about.nodes());
        let its = about.pods.first().and_then(|judged| judged.claim(claim));
        let policy = its.and_then(|its| its.bound()?.volume.reclaim_policy.as_deref());
        let data = match policy {
            Some("Retain") => "its volume stays, by its reclaim policy Retain",
            _ => "its volume is destroyed",
        };
        let held = its.and_then(|its| joined(&its.finalizers, ", "));
        let held = held.map(|held| format!(" Finalizer {held} keeps the PVC, and the pod with it, until its controller releases it."));
        format!(
            "Only if {nodes} is lost for good, give up the data of {pods}: delete its PVC ({data}). Ten minutes later a run deletes the pod, and the StatefulSet makes both again, empty.{}",
            prefixed("", held)
        )
    }

    /// Reports whether the report may print the command that sets the out-of-service taint: no
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
                    .any(|tie| tie.given_up_from() > Some(self.facts.now))
                || reason.ties.iter().any(Tie::goes)
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

    /// Reports whether a limit holds the pod's node, so that nothing but keeping data is asked for.
    fn is_held(&self, judged: &Judged) -> bool {
        let node = judged.pod.node.as_ref();
        node.is_some_and(|node| self.plan.by_node.contains_key(node))
    }

    /// Reports whether the pod's containers may run beside a replacement: it was started, and its
    /// controller starts it on another node.
    fn may_run_twice(&self, pod: &PodFacts) -> bool {
        let untouched = self
            .outcomes
            .get(&pod.uid)
            .is_some_and(|it| it.code().left_untouched());
        let never_started =
            pod.phase == "Pending" && pod.containers.running + pod.containers.terminated == 0;
        !untouched && !never_started && !pod.finished() && !pod.made_by("DaemonSet", "apps")
    }
}

fn about_time(time: jiff::SignedDuration) -> String {
    let seconds = time.as_secs();
    match seconds % 60 {
        0 => format!("{} minutes", seconds / 60),
        _ => about(time),
    }
}
