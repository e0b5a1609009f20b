//! The survey: each node and each pod of a run, looked at once.
//!
//! Nothing else in the report reads the plan or the facts of the cluster. A fact that was not read is a variant or an error,
//! so that no sentence can take it for none.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{hang::Hang, record::RunRecord};
use crate::{
    facts::{
        Attached, Attachment, ClusterFacts, HANGS, Heartbeat, KubeletSays, LeafKind, NodeCounts,
        NodeFacts, Place, PodFacts, Quorum, Read, ReadError, Ready, Storage, Stray, Unneeded,
        Unread, VolumeFacts, Waiting, Zone, is_held_until_the_end,
    },
    history::{History, Noted, RememberedSet},
    judge::{
        Effect, Evaluation, Foreseen, Judged, Limit, PodContext, Policy, Reason, ReasonCode, Tie,
        Verdict, is_attached,
    },
    outcome::{Outcome, OutcomeCode, Trace},
    selector::Target,
    settings::Settings,
    words::{joined, natural},
};

/// The time after which Kubernetes detaches a volume from a dead node (`maxWaitForUnmountDuration`).
const DETACH_TIME_LIMIT: SignedDuration = SignedDuration::from_mins(6);

/// A run, with each node and pod looked at.
pub struct Survey<'a> {
    pub settings: &'a Settings,
    pub now: Timestamp,
    /// The cluster that the printed kubectl commands have to reach.
    pub target: &'a Target,
    /// The name of the cluster; `None` for a file without one.
    pub cluster_label: Option<&'a str>,
    /// The name by which the program reached the cluster; `None` for a file.
    pub cluster: Option<&'a str>,
    /// The limit that holds the whole run.
    pub hold: Option<&'a Limit>,
    /// The limits that hold single zones.
    pub zones: &'a BTreeMap<Zone, Limit>,
    /// The nodes that each limit on nodes that failed together holds, unless the breaker does.
    pub together: Vec<(&'a Limit, Vec<&'a str>)>,
    /// The labels of nodes that failed that a Ready node has too; `None` if not all nodes were read.
    pub labels_of_ready: Option<&'a BTreeSet<(String, String)>>,
    /// The limits of the run, of zones and of nodes, and of pods without room.
    pub limits: Vec<&'a Limit>,
    /// The places of the nodes by their names.
    places: BTreeMap<&'a str, usize>,
    /// The nodes that were looked up, in natural order.
    pub nodes: Vec<NodeView<'a>>,
    /// The Terminating pods, and those that Kubernetes has not evicted yet, the worst damage first.
    pub pods: Vec<PodView<'a>>,
    /// The pod that somebody asked about.
    pub asked: Option<&'a PodFacts>,
    /// The places of the pods that the report is about.
    shown: Range<usize>,
    /// All nodes of the cluster.
    pub node_count: usize,
    /// What could not be read, one for each cause.
    pub gaps: Vec<Gap<'a>>,
    /// Why the `VolumeAttachments` were not read.
    pub unread_attachments: Option<&'a Unread>,
    pub errors: &'a [ReadError],
    pub strays: &'a [Stray],
    /// How many pods that have not started were not asked what they wait for.
    pub more_waiting: usize,
    /// The pod that somebody asked about, which waits for something.
    pub waiting: Option<&'a Waiting>,
    /// Why no verdict can be trusted.
    pub incomplete: Option<&'a str>,
    /// Whether the file can lack pods.
    pub may_lack_pods: bool,
    /// Which options select no namespace.
    pub unmatched: Option<String>,
    pub unseen: &'a [String],
    /// What earlier runs did.
    pub history: &'a History,
    /// The Ready nodes on which the out-of-service taint was left, in natural order.
    pub left_tainted: Vec<&'a NodeFacts>,
    /// Whether the run deleted a pod, or tried to.
    pub acted: bool,
    /// How many nodes can run on, although nobody hears of them.
    pub suspects: usize,
    run: &'a RunRecord<'a>,
}

/// A node that was looked up.
#[derive(Debug)]
pub struct NodeView<'a> {
    pub name: &'a str,
    /// The node; `None` if it does not exist or could not be read.
    pub known: Option<&'a NodeFacts>,
    /// `None` if it is Ready, or gone and nothing there needs you.
    pub state: Option<State<'a>>,
    /// Since when it is not Ready.
    pub since: Option<Timestamp>,
    pub last_heard: Option<Heartbeat>,
    pub signs_of_life: Vec<Heartbeat>,
    /// The limit that holds its pods.
    pub held: Option<&'a Limit>,
    /// Its Terminating pods, as places in [`Survey::pods`].
    pub pods: Vec<usize>,
    /// When a second machine can write to its volumes.
    pub volumes: Volumes,
    /// Whether this run deleted a pod there, or may have.
    pub was_acted_on: bool,
    /// Whether earlier runs deleted pods there, while it may still be down.
    pub was_acted_on_earlier: bool,
    /// Whether the out-of-service taint harms nothing there.
    pub may_taint: bool,
    pub attachments: Read<&'a [Attachment]>,
    /// The pods that Kubernetes never evicts.
    pub never_evicted: Vec<&'a PodFacts>,
}

/// When other nodes can write to the volumes of a node that is down. What was not read can be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volumes {
    MovedAt(Timestamp),
    /// What earlier runs deleted there is not known.
    MayHaveMoved,
    MoveAt(Timestamp),
    /// A run moves one: the next one, or one from that time on.
    MoveAfterRun(Option<Timestamp>),
    /// No run moves one.
    Stay,
}

/// When another machine can write to a pod's volume, once the pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondWriter {
    Never,
    /// Nothing attaches the volume, such as a share, or nobody knows whether something does.
    AtTheDelete,
    /// Kubernetes detaches the volume from the dead node after six minutes.
    AfterSixMinutes,
}

/// What can happen to the data of a pod, or to its workload, the worst first. Each names the field that proves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// It is, or may be, on its node alone: the affinity of a volume, or a `hostPath`.
    OnDisk,
    /// Another node can attach its volume: the status of a `VolumeAttachment`.
    Attached,
    /// Its volume can be attached, and the `VolumeAttachments` were not read.
    AttachmentsUnread,
    /// Another node can mount its volume, which nothing attaches: the volume's kind.
    Shared,
    /// Two machines can write to its disk: the driver's `attachRequired`, or the kind of the volume.
    TwoWriters,
    /// A PVC or its volume could not be read or is Lost; or the PVC has a `deletionTimestamp` or an owner.
    Unverified,
    /// A PVC was deleted after the node failed: its `deletionTimestamp`.
    GivenUp,
    /// The controller of a finalizer can need files of the node.
    Finalizers,
    /// The pod can still run: `Ready` is `False`, or a Lease was renewed; or the Ready members of a datastore are no majority.
    StillRuns,
    /// At most half of its `StatefulSet` is Ready: `status.readyReplicas` and `spec.replicas`.
    FewReady,
    /// Its `StatefulSet` was not read.
    SetUnread,
    /// Its PVCs were not read.
    ClaimsUnread,
}

/// A Terminating pod, or one that Kubernetes has not evicted yet.
#[derive(Debug)]
pub struct PodView<'a> {
    pub judged: &'a Judged,
    pub facts: &'a PodFacts,
    /// Why it gets its fate: the reason now, or, if only time keeps the pod, the one that is foreseen.
    pub reason: &'a Reason,
    /// The verdict that counts for the page: if only time keeps the pod, the one that is foreseen.
    pub fate: Verdict,
    /// From when on its fate holds; `None` if it holds now.
    pub from: Option<Timestamp>,
    pub is_evicted: bool,
    /// The place of its node in [`Survey::nodes`]; `None` if it has none.
    pub node_index: Option<usize>,
    pub node: Option<&'a NodeFacts>,
    /// Whether a limit holds its node.
    pub is_on_held_node: bool,
    pub outcome: Option<&'a Outcome>,
    /// What is known of this run's own delete; `None` if it only looked.
    pub trace: Option<Trace>,
    pub damage: Damage,
    pub effect: Effect,
    /// Whether a volume is attached to its node.
    pub attached: Read<bool>,
    pub second_writer: SecondWriter,
    /// Whether it starts again with its data if its node comes back.
    pub returns: bool,
    /// For how long it is overdue; negative before.
    pub overdue: SignedDuration,
    /// What to remember once it is reaped.
    pub note: Option<String>,
    /// Why it is still there although its node is Ready, or is gone.
    pub hang: Option<Hang<'a>>,
    /// The code of the reason for its fate.
    pub fate_code: ReasonCode,
}

/// What could not be read because of one cause.
pub struct Gap<'a> {
    pub first: &'a ReadError,
    pub count: usize,
}

/// The state of a node that is not Ready, the most urgent first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State<'a> {
    Unread,
    NeededMember,
    Down,
    Fenced(&'a str),
    BeingDeleted,
    NotLookedAt,
    Alive(Option<KubeletSays>),
    /// A Kosmos node, and its cluster.
    Kosmos(Option<&'a str>),
    Leaf,
    Gone,
}

/// How bad it is that a pod is down, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    NoOtherReady,
    NotKnown,
    FewReady,
    ManyReady,
}

impl<'a> Survey<'a> {
    /// Surveys a run. If somebody asked about one pod, only the pods on its node are surveyed.
    pub fn of(run: &'a RunRecord<'a>) -> Self {
        let (facts, plan) = (&run.facts, &run.plan);
        let names = facts
            .nodes
            .keys()
            .map(String::as_str)
            .sorted_by_cached_key(|name| natural(name))
            .collect_vec();
        let places = names
            .iter()
            .copied()
            .zip(0..)
            .collect::<BTreeMap<_, usize>>();
        let attached = facts.attachments.attached();
        let evicted = plan.pods.iter().map(|judged| (judged, true));
        let others = plan.not_evicted.iter().map(|judged| (judged, false));
        let by_damage = evicted
            .chain(others)
            .filter(|(judged, _)| match &run.asked {
                Some(asked) if asked.node.is_some() => judged.pod.node == asked.node,
                Some(asked) => judged.pod.uid == asked.uid,
                None => true,
            })
            .sorted_by_cached_key(|(judged, _)| {
                let Judged { pod, .. } = judged;
                let (namespace, name) = (pod.namespace.as_str(), natural(&pod.name));
                (Damage::of(judged), namespace, name, pod.uid.as_str())
            });
        let mut on_node = vec![Vec::new(); names.len()];
        let mut pods = Vec::new();
        for (judged, is_evicted) in by_damage {
            let node_index = judged
                .pod
                .node
                .as_deref()
                .and_then(|name| places.get(name))
                .copied();
            if let Some(index) = node_index {
                on_node[index].push(pods.len());
            }
            pods.push(PodView::of(
                run,
                (judged, is_evicted),
                node_index,
                &attached,
            ));
        }
        let mut active = active_pods(run);
        let nodes = names
            .into_iter()
            .zip(on_node)
            .map(|(name, places)| {
                NodeView::of(
                    run,
                    name,
                    (places, &pods),
                    &active.remove(name).unwrap_or_default(),
                )
            })
            .collect_vec();
        let lacks_room = plan
            .pods
            .iter()
            .filter_map(|it| it.limit.as_ref())
            .find(|limit| limit.code() == ReasonCode::NoRoom);
        let shown = match &run.asked {
            None => 0..pods.len(),
            Some(asked) => {
                let is_selected = run.settings.namespaces.matches(&asked.namespace);
                pods.iter()
                    .position(|pod| is_selected && pod.is_evicted && pod.facts.uid == asked.uid)
                    .map_or(0..0, |at| at..at + 1)
            }
        };
        Self {
            settings: run.settings,
            now: facts.now,
            target: &run.kubectl,
            cluster_label: run
                .settings
                .cluster_name
                .as_deref()
                .or(facts.cluster_name.as_deref()),
            cluster: facts.cluster_name.as_deref(),
            hold: plan.hold.as_ref(),
            zones: &plan.zones,
            together: held_together(run, &nodes),
            labels_of_ready: match &facts.node_counts {
                NodeCounts::Counted(counts) => Some(&counts.labels),
                _ => None,
            },
            limits: plan
                .hold
                .iter()
                .chain(plan.zones.values())
                .chain(plan.together.values())
                .chain(lacks_room)
                .collect(),
            suspects: nodes.iter().filter(|node| node.is_suspect()).count(),
            places,
            nodes,
            pods,
            asked: run.asked.as_ref(),
            shown,
            node_count: facts.node_count,
            gaps: gaps(facts),
            unread_attachments: facts.attachments.0.as_ref().err(),
            errors: &facts.errors,
            strays: &facts.strays,
            more_waiting: facts.more_waiting,
            waiting: run.waiting.as_ref(),
            incomplete: facts.incomplete.as_deref(),
            may_lack_pods: facts.may_lack_pods,
            unmatched: run.settings.unmatched(facts),
            unseen: &facts.unseen,
            history: &run.history,
            left_tainted: left_tainted(run),
            acted: run.outcomes.values().any(|outcome| outcome.code().acted()),
            run,
        }
    }

    /// Returns the limit that holds the run, or the first that holds a part of it.
    pub fn limit(&self) -> Option<&'a Limit> {
        self.limits.first().copied()
    }

    pub fn node_of(&self, pod: &PodView<'_>) -> Option<&NodeView<'a>> {
        Some(&self.nodes[pod.node_index?])
    }

    /// Returns the place of that node in `nodes`, if it was looked up.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Returns the node of that name, if it was looked up.
    pub fn node(&self, name: &str) -> Option<&NodeView<'a>> {
        Some(&self.nodes[self.place(name)?])
    }

    /// Lists the nodes that are not Ready, or gone, by state. If nodes are supposed to be dead, only these are judged.
    pub fn down(&self) -> BTreeMap<&State<'a>, Vec<&NodeView<'a>>> {
        let supposed = self.settings.task.suppose_dead();
        let mut down = BTreeMap::<_, Vec<_>>::new();
        for node in &self.nodes {
            let is_judged = supposed.is_empty() || supposed.iter().any(|name| name == node.name);
            if is_judged && let Some(state) = &node.state {
                down.entry(state).or_default().push(node);
            }
        }
        down
    }

    /// Lists the `StatefulSets` of pods that earlier runs deleted on nodes that are down, that are known not to be Ready
    /// again, the worst first.
    pub fn not_ready_again(&self) -> Vec<&'a RememberedSet> {
        self.history
            .nodes
            .iter()
            .filter(|node| node.now.state.may_be_down())
            .flat_map(|node| &node.sets)
            .filter(|set| set.copies.is_some() && !set.is_back())
            .unique_by(|set| (&set.namespace, &set.name))
            .sorted_by_key(|set| set.copies.map(|copies| copies.ready))
            .collect()
    }

    /// Lists the attachments for which such a set waits, each with its node: six minutes after the delete, the volume is still
    /// attached to the old one, or its attacher says that it could not attach or detach it.
    pub fn attachments_awaited(&self, set: &RememberedSet) -> Vec<(&'a str, &'a Attachment)> {
        let is_late = |node: &str| {
            earlier(self.run, node)
                .any(|it| self.now.duration_since(it.last_reap) >= DETACH_TIME_LIMIT)
        };
        let mut awaited = Vec::new();
        for (node, attachments) in self.run.facts.attachments.0.iter().flatten() {
            for it in attachments {
                let is_its = it
                    .volume
                    .as_ref()
                    .is_some_and(|volume| set.volumes.contains(volume));
                if is_its && (it.fails || it.attached && is_late(node)) {
                    awaited.push((node.as_str(), it));
                }
            }
        }
        awaited
    }

    /// Lists the active pods that a pod controls, and that are deleted with it; `None` if they were not read.
    pub fn owned_by(&self, pod: &PodFacts) -> Option<&'a [String]> {
        let owned = self
            .run
            .facts
            .owned_by_pods
            .as_ref()?
            .get(&(pod.namespace.clone(), pod.uid.clone()));
        Some(owned.map_or(&[], Vec::as_slice))
    }

    /// Returns the pod if Kubernetes has not evicted it yet.
    pub fn not_evicted(&self, pod: &PodFacts) -> Option<&PodView<'a>> {
        self.pods
            .iter()
            .find(|it| !it.is_evicted && it.facts.uid == pod.uid)
    }

    /// Returns what each rule saw of the pod.
    pub fn rules(&self, judged: &Judged) -> Vec<Evaluation> {
        PodContext::of(&self.run.facts, &self.settings.policy, &judged.pod)
            .evaluate(judged.storage.as_ref())
    }

    /// Lists the pods that the report is about: all, or the one that somebody asked about, unless a filter leaves it out.
    pub fn shown(&self) -> &[PodView<'a>] {
        &self.pods[self.shown.clone()]
    }

    /// Lists the pods on that node.
    pub fn pods_on(&self, node: &NodeView<'_>) -> impl Iterator<Item = &PodView<'a>> {
        node.pods.iter().map(|place| &self.pods[*place])
    }

    /// Lists the pods of that node that the report is about.
    pub fn shown_on(&self, node: &NodeView<'_>) -> Vec<&PodView<'a>> {
        node.pods
            .iter()
            .filter(|place| self.shown.contains(place))
            .map(|place| &self.pods[*place])
            .collect()
    }

    /// Returns the Terminating pod with the UID of the one that somebody asked about, also if a filter leaves it out.
    pub fn terminating_asked(&self) -> Option<&PodView<'a>> {
        let asked = self.asked?;
        self.pods
            .iter()
            .find(|pod| pod.is_evicted && pod.facts.uid == asked.uid)
    }

    /// Lists the Terminating pods that the report is about.
    pub fn terminating(&self) -> impl Iterator<Item = &PodView<'a>> {
        self.shown().iter().filter(|pod| pod.is_evicted)
    }
}

fn left_tainted<'a>(run: &'a RunRecord<'_>) -> Vec<&'a NodeFacts> {
    let noted = run.history.tainted.values().flatten();
    run.facts
        .known_nodes()
        .chain(noted)
        .filter(|node| node.ready == Ready::True && node.out_of_service)
        .unique_by(|node| &node.name)
        .sorted_by_cached_key(|node| natural(&node.name))
        .collect()
}

/// Lists the nodes that each limit on nodes that failed together holds, in natural order, unless the breaker does.
fn held_together<'a>(
    run: &'a RunRecord<'_>,
    nodes: &[NodeView<'a>],
) -> Vec<(&'a Limit, Vec<&'a str>)> {
    let mut held = Vec::<(&Limit, Vec<&str>)>::new();
    for node in nodes {
        let Some(limit) = run
            .plan
            .together
            .get(node.name)
            .filter(|limit| node.held == Some(limit))
        else {
            continue;
        };
        match held.iter_mut().find(|(of, _)| *of == limit) {
            Some((_, names)) => names.push(node.name),
            None => held.push((limit, vec![node.name])),
        }
    }
    held
}

/// Lists the active pods of each node, those first that Kubernetes will evict.
fn active_pods<'a>(run: &'a RunRecord<'_>) -> BTreeMap<&'a str, Vec<&'a PodFacts>> {
    let mut active = BTreeMap::<_, Vec<_>>::new();
    for pod in run.plan.not_evicted.iter().map(|judged| &*judged.pod) {
        if let Some(node) = &pod.node {
            active.entry(node.as_str()).or_default().push(pod);
        }
    }
    for (node, pods) in &run.facts.active {
        active.entry(node).or_default().extend(pods);
    }
    active
}

/// Joins reads that failed by the kind of what was to be read, and by the cause without the message, which names the object.
fn gaps(facts: &ClusterFacts) -> Vec<Gap<'_>> {
    let mut gaps = BTreeMap::<_, Gap<'_>>::new();
    for error in &facts.errors {
        let key = (error.what.split(' ').next(), error.cause.split(':').next());
        gaps.entry(key)
            .or_insert(Gap {
                first: error,
                count: 0,
            })
            .count += 1;
    }
    gaps.into_values().collect()
}

impl<'a> NodeView<'a> {
    fn of(
        run: &'a RunRecord<'_>,
        name: &'a str,
        (places, all): (Vec<usize>, &[PodView<'a>]),
        active: &[&'a PodFacts],
    ) -> Self {
        let (facts, plan) = (&run.facts, &run.plan);
        let read = facts.nodes[name].as_ref();
        let known = read.ok().and_then(Option::as_ref);
        let (now, policy) = (facts.now, &run.settings.policy);
        let pods = places.iter().map(|place| &all[*place]);
        let state = match read {
            Ok(Some(node)) => State::of(node, now, policy),
            Err(_) => Some(State::Unread),
            Ok(None) => pods
                .clone()
                .any(|pod| pod.verdict() == Verdict::Manual)
                .then_some(State::Gone),
        };
        let held = known.and_then(|node| plan.limit_of(node));
        let is_needed = state == Some(State::NeededMember);
        Self {
            name,
            known,
            state,
            since: known.and_then(|node| node.not_ready_since(now)),
            last_heard: known
                .and_then(NodeFacts::last_heard)
                .map(|heard| heard.no_later_than(now)),
            signs_of_life: known.map_or_else(Vec::new, |node| node.signs_of_life(now, policy)),
            held,
            was_acted_on: pods
                .clone()
                .any(|pod| pod.trace.is_some_and(Trace::may_be_gone)),
            was_acted_on_earlier: earlier(run, name).next().is_some(),
            volumes: Volumes::of(run, (name, known), pods.clone()),
            may_taint: known
                .filter(|_| held.is_none() && !is_needed)
                .is_some_and(|node| may_taint(run, node, pods, active)),
            attachments: facts.attachments.on(name),
            never_evicted: known.map_or_else(Vec::new, |node| never_evicted(node, active)),
            pods: places,
        }
    }

    /// Reports whether nobody knows that its machine is off, and a person may power it off.
    pub fn is_suspect(&self) -> bool {
        self.known.is_some_and(|node| match self.state {
            _ if node.out_of_service => false,
            Some(State::Down) => true,
            // Nothing is left there to judge, so nobody looked for a sign of life.
            Some(State::NotLookedAt) => self.was_acted_on_earlier && node.mark().is_none(),
            _ => false,
        })
    }

    /// Reports whether another machine may have its volumes already, while nobody knows that its machine is off.
    pub fn may_have_moved(&self) -> bool {
        self.is_suspect() && matches!(self.volumes, Volumes::MovedAt(_) | Volumes::MayHaveMoved)
    }

    /// Returns the group by which it may carry the API server's datastore, if it shows that itself.
    pub fn quorum(&self) -> Option<&'a Quorum> {
        self.known?.quorum.as_deref()
    }
}

impl Volumes {
    fn of<'p, 'a: 'p>(
        run: &RunRecord<'_>,
        (name, known): (&str, Option<&NodeFacts>),
        pods: impl Iterator<Item = &'p PodView<'a>>,
    ) -> Self {
        let now = run.facts.now;
        let detached = |at: Timestamp| at.saturating_add(DETACH_TIME_LIMIT).unwrap_or(at);
        // A run that ended early noted no pods: they may have had an attached volume.
        let moved = earlier(run, name)
            .filter_map(|noted| {
                let unnamed = noted.pods.is_empty().then(|| detached(noted.first_reap));
                noted
                    .pods
                    .iter()
                    .filter(|pod| pod.moves_a_volume())
                    .map(|pod| if pod.shared { pod.at } else { detached(pod.at) })
                    .min()
                    .or(unnamed)
            })
            .min();
        match moved {
            Some(at) if at <= now => return Self::MovedAt(at),
            Some(at) => return Self::MoveAt(at),
            None => {}
        }
        if known.is_some_and(|node| !run.history.knows(&node.uid)) {
            return Self::MayHaveMoved;
        }
        let (done, ahead) = pods
            .filter(|pod| pod.moves_a_volume())
            .partition::<Vec<_>, _>(|pod| pod.trace.is_some_and(Trace::may_be_gone));
        if done
            .iter()
            .any(|pod| pod.second_writer == SecondWriter::AtTheDelete)
        {
            return Self::MovedAt(now);
        }
        match ahead.iter().map(|pod| pod.from).min() {
            _ if !done.is_empty() => Self::MoveAt(detached(now)),
            None => Self::Stay,
            Some(from) => Self::MoveAfterRun(from),
        }
    }
}

/// Lists what earlier runs noted of a node that may still be down.
fn earlier<'a>(run: &'a RunRecord<'_>, node: &str) -> impl Iterator<Item = &'a Noted> {
    run.history
        .nodes
        .iter()
        .filter(move |it| it.noted.node == node && it.now.state.may_be_down())
        .map(|it| &it.noted)
}

impl<'a> PodView<'a> {
    fn of(
        run: &'a RunRecord<'_>,
        (judged, is_evicted): (&'a Judged, bool),
        node_index: Option<usize>,
        attached: &Read<Attached<'_>>,
    ) -> Self {
        let (facts, pod, storage) = (&run.facts, &judged.pod, judged.storage.as_ref());
        let node = facts.known_node(pod);
        let outcome = run.outcomes.get(&pod.uid);
        let attached = is_attached(judged, attached);
        // A pod that waits for more than time, such as one of a machine that is alive, has no other fate.
        let waits = [Verdict::Wait, Verdict::Leave].contains(&judged.verdict());
        let foreseen = judged.foreseen.as_deref().filter(|_| waits);
        let fate = foreseen.map_or_else(|| judged.verdict(), Foreseen::verdict);
        let reason = foreseen.map_or(&judged.reason, |it| &it.reason);
        let is_kept = storage
            .into_iter()
            .flat_map(Storage::claims)
            .all(|claim| claim.read.deletion.is_none());
        let mut this = Self {
            judged,
            facts: pod,
            reason,
            fate,
            from: foreseen.map(|it| it.at),
            is_evicted,
            node_index,
            node,
            is_on_held_node: node.is_some_and(|node| run.plan.limit_of(node).is_some()),
            outcome,
            trace: outcome.and_then(Outcome::trace),
            damage: Damage::of(judged),
            effect: Effect::of(judged, &attached),
            second_writer: SecondWriter::of(judged, node, &attached),
            attached,
            returns: is_kept && judged.unneeded().is_none() && pod.controller.is_some(),
            overdue: facts.overdue(pod, &run.settings.policy),
            note: note(judged),
            hang: facts
                .node_of(pod)
                .ok()
                .and_then(|node| Hang::of(node, pod, facts.now))
                .filter(|_| is_evicted),
            fate_code: foreseen.map_or_else(|| judged.code(), |_| reason.code()),
        };
        this.returns &= this.is_local();
        this
    }

    pub fn verdict(&self) -> Verdict {
        self.judged.verdict()
    }

    pub fn code(&self) -> ReasonCode {
        self.judged.code()
    }

    pub fn outcome_code(&self) -> Option<OutcomeCode> {
        self.outcome.map(Outcome::code)
    }

    /// Returns the pod's namespace and name.
    pub fn name(&self) -> String {
        full_name(self.facts)
    }

    /// Lists the reasons for which a person has to decide; none on a node that a limit holds.
    pub fn asks(&self) -> &[ReasonCode] {
        match self.fate {
            _ if self.is_on_held_node => &[],
            Verdict::Manual if self.reason.asks_a_person() => &self.reason.asks,
            Verdict::Manual => std::slice::from_ref(&self.fate_code),
            _ => &[],
        }
    }

    /// Reports whether the pod's machine has to be off: its containers can run beside a replacement, or its data is to be
    /// given up.
    pub fn wants_node_off(&self) -> bool {
        let pod = self.facts;
        let never_started =
            pod.phase == "Pending" && pod.containers.running + pod.containers.terminated == 0;
        let may_run_twice = !never_started && !pod.finished() && !pod.made_by("DaemonSet", "apps");
        match self.fate {
            _ if self.is_on_held_node => false,
            Verdict::Reap => may_run_twice && self.trace != Some(Trace::Untouched),
            Verdict::Manual => self.reason.asks_a_person(),
            _ => false,
        }
    }

    /// Reports whether a limit other than the cap holds the pod.
    pub fn is_held(&self) -> bool {
        !matches!(self.judged.limit, None | Some(Limit::OverCap(_)))
    }

    /// Reports whether a run moves one of its volumes to another machine, or did.
    pub fn moves_a_volume(&self) -> bool {
        let is_untouched = self.trace == Some(Trace::Untouched);
        self.fate == Verdict::Reap && !is_untouched && self.second_writer != SecondWriter::Never
    }

    /// Reports whether its workload has no other Ready pod, or at most half, or that is not known.
    pub fn is_missed(&self) -> bool {
        let is_known = self.judged.storage.is_some() || !self.facts.uses_claims();
        let is_replaced = self.effect == Effect::Leftover && is_known;
        self.damage != Damage::ManyReady && !is_replaced
    }

    /// Returns what can happen to its data; `None` if nothing is known to.
    pub fn risk(&self, survey: &Survey<'_>) -> Option<Risk> {
        let (now, policy) = (survey.now, &survey.settings.policy);
        let is_live = self.fate_code.is_of_live_machine();
        let asks = |code| self.fate == Verdict::Manual && self.reason.asks.contains(&code);
        let may_run = self
            .node
            .is_some_and(|node| node.ready != Ready::True && node.fenced(now, policy).is_none());
        // What a limit holds can move later.
        let moves = self.reason.verdict() == Verdict::Reap
            && self.trace != Some(Trace::Untouched)
            && may_run;
        let has_work = self
            .facts
            .holding_finalizers(self.node.is_some())
            .any(|name| !is_held_until_the_end(name));
        let is_left = self.fate == Verdict::Leave && !self.hangs();
        let is_unread = self.is_on_dead_machine() && self.judged.storage.is_none();
        match self.second_writer {
            _ if is_live => Some(Risk::StillRuns),
            _ if self.is_local() => Some(Risk::OnDisk),
            _ if asks(ReasonCode::SharedDisk) => Some(Risk::TwoWriters),
            _ if asks(ReasonCode::VolumeUnverified) => Some(Risk::Unverified),
            _ if self.given_up_until(now).is_some() => Some(Risk::GivenUp),
            SecondWriter::AtTheDelete | SecondWriter::AfterSixMinutes
                if moves && self.attached.is_err() =>
            {
                Some(Risk::AttachmentsUnread)
            }
            _ if asks(ReasonCode::Finalizers) && has_work => Some(Risk::Finalizers),
            SecondWriter::AtTheDelete if moves => Some(Risk::Shared),
            SecondWriter::AfterSixMinutes if moves => Some(Risk::Attached),
            _ if is_left => None,
            _ if is_unread && self.facts.uses_claims() => Some(Risk::ClaimsUnread),
            _ if self.effect == Effect::Leftover => None,
            _ => match self.damage {
                Damage::NoOtherReady | Damage::FewReady => Some(Risk::FewReady),
                Damage::NotKnown => self.facts.stateful_set().map(|_| Risk::SetUnread),
                Damage::ManyReady => None,
            },
        }
    }

    /// Reports whether the pod needs you because its data is, or may be, on its node.
    pub fn is_local(&self) -> bool {
        let asks = |code| self.reason.asks.contains(&code);
        self.fate == Verdict::Manual
            && (asks(ReasonCode::LocalVolume) || asks(ReasonCode::HostPath))
    }

    /// Reports whether the pod hangs on a Ready node.
    pub fn hangs(&self) -> bool {
        self.code() == ReasonCode::NodeReady && self.overdue >= HANGS
    }

    /// Reports whether its node is a machine that is not Ready.
    pub fn is_on_dead_machine(&self) -> bool {
        self.node.is_some_and(NodeFacts::is_machine_down)
    }

    /// Returns until when the volume of a PVC that was given up can be kept.
    pub fn given_up_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.reason
            .ties
            .iter()
            .filter_map(Tie::given_up_from)
            .max()
            .filter(|until| *until > now)
    }

    /// Reports whether it was deleted, or would be.
    pub fn is_reaped(&self) -> bool {
        self.fate == Verdict::Reap && self.outcome_code().is_none_or(OutcomeCode::went_well)
    }
}

impl<'a> State<'a> {
    /// Returns the state of a node; `None` if it is Ready.
    fn of(node: &'a NodeFacts, now: Timestamp, policy: &Policy) -> Option<Self> {
        Some(if node.ready == Ready::True {
            return None;
        } else if let Some(leaf) = &node.leaf {
            match leaf.kind {
                LeafKind::Kosmos => Self::Kosmos(leaf.cluster.as_deref()),
                _ => Self::Leaf,
            }
        } else if !node.signs_of_life(now, policy).is_empty() {
            Self::Alive(node.kubelet_says.filter(|_| node.ready == Ready::False))
        } else if node.may_live(now, policy) {
            Self::NotLookedAt
        } else if let Some(mark) = node.fenced(now, policy) {
            Self::Fenced(mark)
        } else if node.quorum.as_ref().is_some_and(|it| !it.is_met()) {
            Self::NeededMember
        } else if node.is_deleted {
            Self::BeingDeleted
        } else {
            Self::Down
        })
    }
}

impl Damage {
    /// Returns how bad it is that the pod is down. The Ready pods of its `StatefulSet` are its
    /// `status.readyReplicas`, which does not count this pod.
    fn of(judged: &Judged) -> Self {
        match judged.pod.copies {
            Some(copies) if copies.ready == 0 => Self::NoOtherReady,
            None => Self::NotKnown,
            Some(copies) if copies.ready <= copies.wanted / 2 => Self::FewReady,
            Some(_) => Self::ManyReady,
        }
    }
}

impl SecondWriter {
    pub fn of(judged: &Judged, node: Option<&NodeFacts>, attached: &Read<bool>) -> Self {
        // Kubernetes detaches at once if the node has the taint `out-of-service`, and nothing waits for the volume if the
        // namespace is being deleted. If the attachments were not read, a volume without a driver counts as a share.
        let is_safe = node.is_none_or(|node| node.out_of_service)
            || judged.unneeded() == Some(Unneeded::Namespace);
        let is_share =
            |volume: &VolumeFacts| volume.storage == Place::Driver && volume.driver.is_none();
        match attached {
            _ if is_safe => Self::Never,
            Ok(false) if judged.pod.is_replaced_early() || judged.unneeded().is_some() => {
                Self::Never
            }
            Ok(false) | Err(_) if judged.volumes().any(is_share) => Self::AtTheDelete,
            Ok(false) => Self::Never,
            Ok(true) | Err(_) => Self::AfterSixMinutes,
        }
    }
}

/// Returns what to remember once the pod is reaped; `None` if it is not.
fn note(judged: &Judged) -> Option<String> {
    if judged.verdict() != Verdict::Reap {
        return None;
    }
    let own = judged
        .pod
        .after_reap
        .iter()
        .map(|note| format!("{note:#} (its own note)"));
    let notes = judged.reason.notes().iter().map(ToString::to_string);
    joined(own.chain(notes), "; ")
}

/// Tells whether the out-of-service taint may be set for a minute, if no limit holds the node. The pod garbage collector
/// then force-deletes whatever terminates there, so each rule is asked of each pod that has not ended, Terminating or not.
/// Nothing is known of pods in namespaces that are left out or were not saved, and of pods that could not be read.
fn may_taint<'p, 'a: 'p>(
    run: &'a RunRecord<'_>,
    node: &NodeFacts,
    pods: impl Iterator<Item = &'p PodView<'a>>,
    active: &[&'a PodFacts],
) -> bool {
    let (facts, policy) = (&run.facts, &run.settings.policy);
    if node.may_live(facts.now, policy)
        || node.out_of_service
        || node
            .opted_out
            .as_ref()
            .is_some_and(|skip| skip.holds(facts.now))
        || !run.settings.namespaces.selects_all()
        || facts.may_lack_pods
        || !facts.errors.is_empty()
    {
        return false;
    }
    let forbids = |pod: &PodFacts, storage: Option<&Storage>| {
        PodContext::of(facts, policy, pod)
            .forbids_taint(storage)
            .is_some()
    };
    // The storage of a pod that Kubernetes never evicts was not read. Without a PVC there is none.
    let without = &Storage {
        claims: Ok(Vec::new()),
        set: None,
    };
    !pods
        .map(|pod| pod.judged)
        .any(|it| it.lacks_room() || forbids(&it.pod, it.storage.as_ref()))
        && !active.iter().any(|pod| {
            let has_none = pod.claim_names.as_ref().is_ok_and(Vec::is_empty);
            forbids(pod, has_none.then_some(without))
        })
}

/// Lists the pods that Kubernetes never evicts from a dead machine, since they tolerate its state. Static pods and pods of
/// a `DaemonSet` belong to their node.
fn never_evicted<'a>(node: &NodeFacts, active: &[&'a PodFacts]) -> Vec<&'a PodFacts> {
    if !node.is_machine_down() {
        return Vec::new();
    }
    active
        .iter()
        .copied()
        .filter(|pod| pod.deletion.is_none() && !pod.mirror && !pod.made_by("DaemonSet", "apps"))
        .sorted_by_key(|pod| (&pod.namespace, &pod.name))
        .collect()
}

/// Returns the pod's namespace and name.
pub fn full_name(pod: &PodFacts) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}
