//! What to do, as data. A reason yields some of these; the report joins equal ones of several pods and nodes.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use super::{build::Damage, record::RunRecord};
use crate::{
    codes::{codes, entry},
    facts::{
        ClaimFacts, HANGS, KubeletSays, LeafKind, NodeFacts, NodeRead, Owner, PodFacts, Ready,
        SignBy, Storage, Stray,
    },
    judge::{Judged, Limit},
    judge::{ReasonCode, Tie, TieKind, Verdict, Wanted},
    outcome::OutcomeCode,
    selector::{Target, is_name},
    words::{about, joined, listed, natural, prefixed},
};

/// The most names in a sentence.
const NAMED: usize = 3;

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
    GiveUp(ClaimKey),
    GiveUpEach,
    OneAtATime,
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

/// A PVC that somebody may give up by deleting it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimKey {
    pub namespace: String,
    pub claim: String,
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
    /// Returns what a step about one pod is about.
    pub fn of(judged: &'a Judged) -> Self {
        Self {
            pods: vec![judged],
            nodes: judged.pod.node.as_deref().into_iter().collect(),
        }
    }

    fn pods(&self) -> String {
        named(&self.pods)
    }

    fn nodes(&self) -> String {
        listed(&self.nodes, NAMED)
    }
}

/// Names a few pods, and counts many: the lists name them.
pub fn named(pods: &[&Judged]) -> String {
    if pods.len() > NAMED {
        return format!("{} pods", pods.len());
    }
    pods.iter().map(|it| full_name(&it.pod)).join(", ")
}

/// Returns the pod's namespace and name.
pub fn full_name(pod: &PodFacts) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

impl Todo {
    fn when(&self) -> When {
        if *self
            < Self::GiveUp(ClaimKey {
                namespace: String::new(),
                claim: String::new(),
            })
        {
            When::Now
        } else {
            When::Later
        }
    }
}

impl RunRecord<'_> {
    /// Lists what to do about the whole run: for each pod, for the limits and for what was not read.
    pub fn todos(&self) -> Todos<'_> {
        let mut all = Todos::new();
        for judged in &self.plan.pods {
            for todo in self.todos_of(judged) {
                all.entry(todo).or_default().pods.push(judged);
            }
        }
        for todo in self.todos_of_run() {
            all.entry(todo).or_default();
        }
        // At most one command that discards data stands in a report.
        let is_give_up = |todo: &Todo| matches!(todo, Todo::GiveUp(_));
        if all.keys().filter(|todo| is_give_up(todo)).count() > 1 {
            let several = all.extract_if(.., |todo, _| is_give_up(todo));
            let pods = several.flat_map(|(_, about)| about.pods).collect_vec();
            all.insert(
                Todo::GiveUpEach,
                About {
                    pods,
                    ..About::default()
                },
            );
        }
        let of_node = |todo: &Todo| {
            matches!(
                todo,
                Todo::LeaveToOperator { .. } | Todo::CreateAgain(_) | Todo::CopyPaths(_)
            )
        };
        let others = all.iter().filter(|(todo, _)| of_node(todo));
        let others = others
            .flat_map(|(_, about)| about.pods.clone())
            .unique_by(|it| it.pod.uid.to_string());
        let of_one = others
            .into_group_map_by(|it| {
                (
                    &it.pod.namespace,
                    it.pod.owner.as_ref().map(ToString::to_string),
                )
            })
            .into_values();
        let several = of_one.filter(|pods| pods.len() > 1).flatten().collect_vec();
        if !several.is_empty() {
            all.entry(Todo::OneAtATime)
                .or_default()
                .pods
                .extend(several);
        }
        // If only one pod is there to wait for, the look at its node says so.
        if all
            .get(&Todo::Look)
            .is_some_and(|about| about.pods.len() == 1)
        {
            all.remove(&Todo::DownUntil);
        }
        let of_limits = [Todo::ReachOne, Todo::MakeRoom];
        for (todo, about) in &mut all {
            about.pods = self.by_damage(std::mem::take(&mut about.pods));
            let held = self.facts.known_nodes().filter(|node| {
                of_limits.contains(todo) && node.ready != Ready::True && node.leaf.is_none()
            });
            let nodes = about.pods.iter().filter_map(|it| it.pod.node.as_deref());
            let nodes = nodes.chain(held.map(|node| node.name.as_str()));
            about.nodes = nodes
                .unique()
                .sorted_by_cached_key(|name| natural(name))
                .collect();
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
                (TieKind::Pinned(_), Some(its)) if may_give_up(pod, its) => {
                    Some(Todo::GiveUp(ClaimKey {
                        namespace: pod.namespace.clone(),
                        claim,
                    }))
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
        let now = self.facts.now;
        let is_suspect = |node: &NodeFacts| {
            node.leaf.is_none()
                && !node.may_live(now)
                && node.fenced(now).is_none()
                && !node.out_of_service
                && !node.is_deleted
                && node.etcd.is_none_or(|members| members.is_met())
        };
        let Some(node) = node.filter(|node| is_suspect(node)) else {
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
        let (pods, nodes) = (about.pods(), about.nodes());
        let node = match &about.nodes[..] {
            [name] => self.facts.known(name),
            _ => None,
        };
        let restart = if about.pods.len() == 1 {
            "restarts there with its"
        } else {
            "restart there with their"
        };
        let first = about.pods.first().map(|judged| &judged.pod);
        let namespace = first.map_or("", |pod| &pod.namespace);
        let run = |words: &[&str]| Some(self.kubectl.command(words));
        // A taint that ends more than the report says is not printed.
        let taint = || {
            node.filter(|node| self.may_taint(node))
                .map(|node| self.kubectl.taint(node))
        };
        const TAINT: &str = "the out-of-service taint ends every pod there that does not tolerate it; remove it only after the machine was powered off and on again";
        let mut harms = false;
        let (what, command) = match todo {
            Todo::CorrectFilter => (
                "Correct the namespace filter, and run again.".to_owned(),
                None,
            ),
            Todo::SaveWithLeases => ("Save the file again, with leases, before you act (command under NOT SEEN).".to_owned(), None),
            Todo::Retain { claim, volume } => (
                format!("{pods}: set volume {volume} to Retain before {nodes} comes back. PVC {claim} is being deleted, and the kubelet destroys the data as it ends the pod."),
                run(&["patch", "pv", volume, "-p", r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#]),
            ),
            Todo::ReachOne => (format!("Reach one of {nodes} by ssh or at its console."), None),
            Todo::RepairNetwork => ("If it runs, repair the network and delete nothing: the kubelets end their pods themselves.".to_owned(), None),
            Todo::IfAllAreOff => ("If they are off for good: the out-of-service taint on each that you have SEEN off (pod-reaper explain POD).".to_owned(), None),
            Todo::MakeRoom => (format!("Bring {nodes} back, or add a node on which pods can start."), None),
            Todo::SeeUnknown(what) => (format!("See why this is not known, and run again: {what}."), None),
            Todo::ReachMembers => (format!("Reach {nodes} at the console. At least one of them runs, and is cut off or has lost its API server."), None),
            Todo::ForgetMembers => ("If you reset etcd to fewer members, delete the Node objects of the others.".to_owned(), None),
            Todo::Repair(says) => {
                let what = match says {
                    Some(KubeletSays::Runtime) => "restart the container runtime. Then its kubelet ends the pods.",
                    Some(KubeletSays::Network) => "repair the network plugin (CNI). Then its kubelet ends the pods.",
                    Some(KubeletSays::ShuttingDown) => "wait until the machine has shut down.",
                    None => "see why the kubelet does not report Ready: restart it or the container runtime. Then it ends the pods.",
                };
                (format!("On {nodes}, {what}"), None)
            }
            Todo::OrPowerOff => {
                let silent = about_time(self.settings.policy.silent_after());
                (format!("Or power off {nodes}: after {silent} of silence the next run takes over."), None)
            }
            Todo::HaveYouSeenItOff => (format!("Have you SEEN {nodes} off? If not, POWER IT OFF NOW: earlier runs deleted pods there, and their replacements run."), None),
            Todo::LookAtControlPlane => (format!("Look at {nodes} before you power one off: several control-plane nodes are NotReady, and no etcd was seen there."), None),
            Todo::Look => (format!("Look at the console of {nodes}. If it boots, wait: {pods} {restart} data."), None),
            Todo::PowerOff => (self.power_off(about), None),
            Todo::BringBack => (format!("Bring {nodes} or its disk back: {pods} {restart} data."), None),
            Todo::Fence => {
                harms = true;
                (
                    format!("{pods}: two machines would write to one disk if {nodes} still runs. Once you have SEEN it off, say so by annotation fencing/state=fenced; the next run reaps. Or by the taint: {TAINT}."),
                    taint(),
                )
            }
            Todo::DownUntil => (format!("{pods} is down until {nodes} or its disk is back. Discard nothing."), None),
            Todo::NoSpareMember => (format!("etcd has no spare member left: bring {nodes} back."), None),
            Todo::LookInLeaf(cluster) => {
                let cluster = cluster.as_deref().unwrap_or("the leaf cluster");
                let there = Target { kubeconfig: Some(format!("{cluster}.kubeconfig").into()), context: None };
                let names = about.pods.iter().filter(|it| it.pod.namespace == namespace).map(|it| it.pod.name.as_str());
                let get = ["get", "pod", "-n", namespace].into_iter().chain(names).chain(["-o", "wide"]).collect_vec();
                (format!("{pods}: look for it in {cluster} BEFORE you repair the link. The repair stops it."), Some(there.command(&get)))
            }
            Todo::StartAgain(maker) => (format!("Bring {maker} behind {nodes} back: it then ends {pods}."), None),
            Todo::RepairLink => (format!("Repair the link to {nodes}: what runs there then ends {pods}."), None),
            Todo::AskWhatItIs => (format!("Find out what {nodes} stands for: no kubelet ever reported there, so {pods} may run."), None),
            Todo::SeeOutcome(code, why) => (format!("See why {pods} was not deleted [{code}]: {why}"), None),
            Todo::SeeUnread(what, why) => (format!("Not read: {what}: {why}"), None),
            Todo::GiveUp(key) => self.give_up(key, about, &mut harms),
            Todo::GiveUpEach => (format!("Only if {nodes} is lost for good: give up the data of {pods}, one at a time, and wait for Ready in between (pod-reaper explain POD)."), None),
            Todo::OneAtATime => (format!("{pods} belong together: one pod at a time, and wait for Ready in between."), None),
            Todo::LeaveToOperator { claim, owner } => (format!("Only if {nodes} is lost for good: PVC {claim} of {pods} belongs to {owner}, whose operator replaces it."), None),
            Todo::CreateAgain(claim) => (format!("Only if {nodes} is lost for good: nobody makes PVC {claim} of {pods} again. Delete it, and create it again once a run has deleted the pod."), None),
            Todo::SeeVolume { claim, why } if is_name(claim) => (format!("{pods}: see its storage. {why}."), run(&["get", "pvc", "-n", namespace, claim, "-o", "wide"])),
            Todo::SeeVolume { why, .. } => (format!("{pods}: see its PVCs: {why}."), first.and_then(|pod| run(&["get", "pod", "-n", namespace, &pod.name, "-o", "yaml"]))),
            Todo::SeeReach { volume, why } => (format!("{pods}: see where its data is. {why}. A Ready node that it allows lets the next run reap."), run(&["describe", "pv", volume])),
            Todo::HeldClaim { claim, finalizers } => (format!("{pods}: finalizer {finalizers} holds its PVC {claim}, which is being deleted. Repair the controller of the finalizer."), run(&["get", "pvc", "-n", namespace, claim, "-o", "yaml", "--show-managed-fields"])),
            Todo::CopyPaths(paths) => (format!("{pods} keeps data in {paths} on the disk of {nodes}. Only if that may be lost, delete the pod by hand (book: Data on a dead node)."), None),
            Todo::DecideAboutOwner => (format!("{pods}: --manual-owner-kind leaves it to you. Once {nodes} is off, delete it by hand (book: Data on a dead node)."), None),
            Todo::ReleaseFinalizer { finalizer, manager } => {
                let by = prefixed(", set by ", manager.as_ref());
                let held = format!("{pods} is held by finalizer {finalizer}{by}: repair its controller.");
                match first.and_then(|pod| self.facts.node_of(pod)).and_then(NodeRead::known) {
                    None if first.is_some_and(|pod| pod.node.is_some()) => (format!("{held} Node {nodes} no longer exists."), None),
                    None => (held, None),
                    Some(_) => {
                        harms = true;
                        let off = node.filter(|node| self.off(Some(node)).contains(&Todo::PowerOff));
                        let off = off.map_or("once it is off", |_| "power it off, then");
                        (format!("{held} If that ran on {nodes}, or waits for the end of the pod: {off} set the out-of-service taint."), taint())
                    }
                }
            }
            Todo::AskKubelet => (format!("{pods} hangs on a Ready node: see the log of the kubelet of {nodes}."), None),
            Todo::SeeLease { namespace, lease } => (format!("The Lease that shows that {nodes} is alive:"), run(&["get", "lease", "-n", namespace, lease, "-o", "yaml"])),
            Todo::SeeLinkLog => ("See why Kosmos does not reach the leaf cluster.".to_owned(), run(&["logs", "-n", "kosmos-system", "deployment/clustertree-cluster-manager", "--tail=50"])),
            Todo::SeeStray(Stray::Attachment { node, attachment }) => (
                format!("VolumeAttachment {attachment} names {node}, which no longer exists: until it is gone, no other node gets the volume."),
                run(&["describe", "volumeattachment", attachment]),
            ),
            Todo::SeeStray(Stray::Pending { namespace, pod, pod_uid, claim, claim_uid, volume }) => {
                harms = true;
                let what = format!("{namespace}/{pod} is Pending: volume {volume} of its PVC {claim} can only be used on a node that no longer exists. Only if its data is lost for good, delete the PVC:");
                let named = is_name(namespace) && is_name(claim);
                (what, named.then(|| self.kubectl.delete_unused_claim((namespace, pod, pod_uid), claim, claim_uid)))
            }
            Todo::TaintNode => {
                harms = true;
                (format!("To move all of {nodes} at once, once you have SEEN it off: {TAINT}."), taint())
            }
        };
        // A node that is only supposed to be dead is alive.
        let changes = harms || matches!(todo, Todo::Retain { .. });
        let command = command.filter(|_| !changes || self.settings.task.suppose_dead().is_empty());
        Step {
            when: todo.when(),
            harms: harms && command.is_some(),
            what,
            command,
        }
    }

    /// Says when to power off nodes. Volumes that are attached to them are detached after the delete
    /// of their pods, and then attached elsewhere (`VolumeAttachment`).
    fn power_off(&self, about: &About<'_>) -> String {
        let nodes = about.nodes();
        let of_nodes = |judged: &&Judged| {
            judged
                .pod
                .node
                .as_deref()
                .is_some_and(|node| about.nodes.contains(&node))
        };
        let reaped = || self.plan.reaps().filter(of_nodes);
        let attached = reaped()
            .filter(|judged| self.detaches_late(judged))
            .collect_vec();
        let acted = about.nodes.iter().any(|node| self.was_acted_on(node));
        match (acted, reaped().count(), attached.len()) {
            (_, 0, _) => format!(
                "If {nodes} does not boot, power it off before you give anything up; its disk keeps its data."
            ),
            (true, _, 0) => format!(
                "Power {nodes} off: if it still runs, its containers run beside their replacements."
            ),
            (false, _, 0) => {
                format!("Power {nodes} off unless it boots: its containers may still run.")
            }
            (true, ..) => format!(
                "POWER {nodes} OFF BEFORE {}. Then its volumes are attached elsewhere; if {nodes} still runs, two machines write to them. Waiting for {nodes} is no longer safe.",
                self.detached_at()
            ),
            (false, ..) => format!(
                "If {nodes} does not boot, POWER IT OFF before the next run; its disk keeps its data. If it still runs, the volumes of {} have two writers 6 minutes after the run.",
                named(&attached)
            ),
        }
    }

    fn give_up(
        &self,
        key: &ClaimKey,
        about: &About<'_>,
        harms: &mut bool,
    ) -> (String, Option<String>) {
        let (pods, nodes, claim) = (about.pods(), about.nodes(), &key.claim);
        let its = about
            .pods
            .first()
            .and_then(|judged| judged.claim(claim)?.bound());
        let data = match its.and_then(|bound| bound.volume.reclaim_policy.as_deref()) {
            Some("Retain") => "its volume stays, by its reclaim policy Retain",
            _ => "its volume is destroyed",
        };
        let node = about
            .pods
            .first()
            .and_then(|judged| self.facts.known_node(&judged.pod));
        let named = is_name(&key.namespace) && is_name(claim);
        let command = its.zip(node).filter(|_| named);
        let command = command.map(|(bound, node)| {
            self.kubectl
                .delete_claim(node, &key.namespace, claim, &bound.uid)
        });
        *harms = true;
        let held = about
            .pods
            .first()
            .and_then(|judged| joined(&judged.claim(claim)?.finalizers, ", "));
        let held = held.map(|held| format!(" Finalizer {held} keeps the PVC, and the pod with it, until its controller releases it."));
        let what = format!(
            "Only if {nodes} is lost for good, give up the data of {pods}: delete its PVC ({data}). Ten minutes later a run deletes the pod, and the StatefulSet makes both again, empty.{}",
            prefixed("", held)
        );
        (what, command)
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

/// Reports whether the report may ask to delete the PVC: the template of the pod's `StatefulSet` makes it
/// again.
fn may_give_up(pod: &PodFacts, claim: &ClaimFacts) -> bool {
    claim.templated && pod.of_stateful_set()
}

fn about_time(time: jiff::SignedDuration) -> String {
    let seconds = time.as_secs();
    match seconds % 60 {
        0 => format!("{} minutes", seconds / 60),
        _ => about(time),
    }
}
