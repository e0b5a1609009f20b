//! `pod-reaper what-if`: what would happen if these nodes died now?
//!
//! The facts are read as they are, then altered: the nodes have been silent for ever, and what Kubernetes would evict
//! from them is Terminating for ever. On those facts the rules and limits of a run decide, so that what is foretold
//! cannot drift from what is done. Only reads are sent.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    advice::{Command, Step, advise},
    cluster::Cluster,
    codes::codes,
    decide::{Reason, ReasonCode, Verdict},
    exit::{CouldNotRun, Exit},
    facts::{Census, ClusterFacts, NodeRead, Owner, PodSummary, ReadError, Ready, Standing, Stay},
    limits::{Judged, Plan, hold},
    report::{BreakerEntry, Render, VERSION, notes, text::Screen},
    settings::{Settings, Task},
    source::{
        Gathered, Whole, live,
        snapshot::{self, Pods},
    },
    stop::Stop,
};

/// Kubernetes' own share of NotReady nodes, of a zone, at which it stops evicting or slows down.
const KUBERNETES_PERCENT: u8 = 55;

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// Version of this form.
    pub version: u8,
    /// Version of the program.
    pub program_version: &'static str,
    /// The snapshot's file name; null where a cluster was read.
    pub snapshot: Option<String>,
    /// The moment of the facts.
    pub judged_at: Timestamp,
    /// The nodes that are supposed to die.
    pub nodes: Vec<String>,
    /// `--namespace-regex`.
    pub namespace_regex: Option<String>,
    /// `--namespace-exclude-regex`.
    pub namespace_exclude_regex: Option<String>,
    /// Set where the breaker would hold the run.
    pub breaker: Option<BreakerEntry>,
    /// Whether Kubernetes itself would stop evicting, or slow down.
    pub kubernetes_stops_evicting: bool,
    /// Nodes that would be NotReady, leaf nodes included.
    pub nodes_not_ready: Option<usize>,
    /// All nodes.
    pub nodes_total: usize,
    /// The pods of these nodes.
    pub pods: Vec<PodFate>,
    /// Workloads of which no replica runs anywhere else.
    pub workloads: Vec<Workload>,
    /// Pods of these nodes in namespaces that the filter leaves out: they would be evicted, and no run would reap them.
    pub left_out: usize,
    /// What could not be read.
    pub errors: Vec<ReadError>,
    /// What the source does not show, as sentences.
    pub unseen: Vec<String>,
    /// Pods by fate; every fate is there.
    pub summary: BTreeMap<Fate, usize>,
    /// 0, or 3 where something could not be read.
    #[serde(rename = "exitCode")]
    pub exit: Exit,
}

/// What becomes of one pod.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFate {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its node.
    pub node: String,
    /// The controller that made it.
    pub owner: Option<Owner>,
    /// What becomes of it.
    pub fate: Fate,
    /// The verdict of a run; null where Kubernetes would not evict it, so that no run judges it.
    pub verdict: Option<Verdict>,
    /// The reason's code.
    pub reason: Option<ReasonCode>,
    /// That as a sentence.
    pub detail: String,
    /// What to remember.
    pub note: Option<String>,
    /// What would be at risk.
    pub risk: Option<String>,
    /// What a person would do then. A command here is a comment to a shell: it is for a dead node, and this one lives.
    pub steps: Vec<Step>,
}

codes! {
    /// The ends that a pod may come to.
    pub enum Fate {
        /// Reaped, and its controller makes another.
        ComesBack = "comes-back",
        /// Reaped, and nothing makes another.
        Lost = "lost",
        /// A person has to act.
        NeedsPerson = "needs-person",
        /// It stays Terminating: a rule has it wait, or leaves it alone.
        LeftTerminating = "left-terminating",
        /// Kubernetes does not evict it.
        Stays = "stays",
        /// It is finished: the eviction takes it at once.
        Finished = "finished",
    }
}

/// A workload that would be away altogether.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its namespace.
    pub namespace: String,
    /// Such as `StatefulSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How many replicas run now, all on these nodes.
    pub replicas: usize,
}

/// Answers for `nodes`.
pub async fn run(settings: &Settings, nodes: &[String], stop: &Stop) -> Result<WhatIf, CouldNotRun> {
    let dead = nodes.iter().cloned().collect::<BTreeSet<_>>();
    let wanted = settings.wanted();
    let read = async {
        match &settings.task {
            Task::Audit { snapshot: file, now } => {
                let saved = snapshot::open(file, settings.snapshot_options(*now), Pods::Every).await?;
                let whole = saved.gather_whole(&wanted, &dead);
                let whole = whole.map_err(|error| snapshot::in_snapshot(file, &error))?;
                supposed(whole, &dead)
            }
            Task::Reap { target, .. } => {
                let cluster = Cluster::connect(target, stop, &settings.node_selectors).await?;
                let mut whole = supposed(live::gather_whole(&cluster, &wanted, &dead).await?, &dead)?;
                live::look_up_claims(&cluster, &wanted, &mut whole.gathered).await;
                Ok(whole)
            }
        }
    };
    Ok(answer(settings, stop.or_stopped(read).await?, &dead))
}

/// What was read, as if the nodes of `dead` had died; an error where one of them does not exist.
fn supposed(mut whole: Whole, dead: &BTreeSet<String>) -> Result<Whole, CouldNotRun> {
    check_names(dead, &whole)?;
    suppose(&mut whole.gathered, &whole.standings, dead);
    Ok(whole)
}

/// Alters the facts as if the kubelets of `dead` had been silent for ever, and every pod that was kept for them were
/// stuck for as long. What could not be read stays unread.
pub fn suppose(
    Gathered { facts, pods }: &mut Gathered,
    standings: &BTreeMap<String, Standing>,
    dead: &BTreeSet<String>,
) {
    for (name, read) in &mut facts.nodes {
        if let NodeRead::Known(node) = read
            && dead.contains(name)
        {
            node.ready = Ready::Unknown;
            node.ready_reason = Some("NodeStatusUnknown".to_owned());
            (node.ready_since, node.tainted_since) = (Some(Timestamp::MIN), None);
            node.heartbeats.clear();
            if let Ok(Some(lease)) = &mut node.lease {
                lease.renewed = Some(Timestamp::MIN);
            }
        }
    }
    for pod in pods {
        if pod.node.as_ref().is_some_and(|node| dead.contains(node)) {
            pod.deletion_deadline = Timestamp::MIN;
        }
    }
    if !matches!(facts.census, Census::Unread(_)) {
        let then = |(name, standing): (&String, &Standing)| Standing {
            ready: standing.ready && !dead.contains(name),
            ..*standing
        };
        facts.census = Census::count(standings.iter().map(then));
    }
}

/// An answer for a node that does not exist would be a comfort without ground.
fn check_names(
    dead: &BTreeSet<String>,
    Whole { gathered, standings, .. }: &Whole,
) -> Result<(), CouldNotRun> {
    for name in dead {
        if !matches!(gathered.facts.nodes.get(name), None | Some(NodeRead::Gone)) {
            continue;
        }
        let mut near = standings
            .keys()
            .map(|known| (strsim::jaro_winkler(name, known), known))
            .filter(|(likeness, _)| *likeness > 0.7)
            .collect::<Vec<_>>();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let near = near.iter().take(3).map(|(_, name)| name.as_str()).collect::<Vec<_>>();
        let hint = match near.as_slice() {
            [] => "list them with: kubectl get nodes".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        return Err(CouldNotRun::Usage(format!("--node {name}: there is no such node; {hint}")));
    }
    Ok(())
}

fn answer(settings: &Settings, whole: Whole, dead: &BTreeSet<String>) -> WhatIf {
    let Whole { gathered: Gathered { facts, pods }, standings, summaries } = whole;
    let plan = Plan::new(&facts, pods, &settings.policy, &settings.limits);
    let kubectl = settings.task.kubectl();
    let judged = plan.pods.iter().map(|judged| (judged.pod.uid.as_str(), judged)).collect::<BTreeMap<_, _>>();
    let here = |pod: &&PodSummary| pod.node.as_ref().is_some_and(|node| dead.contains(node));
    let mut pods = Vec::new();
    for pod in summaries.iter().filter(here).filter(|pod| settings.namespaces.matches(&pod.namespace)) {
        if let Some(judged) = judged.get(pod.uid.as_str()) {
            let advice = advise(&[judged], &facts, plan.hold.as_ref(), &kubectl);
            let mut entry = PodFate::new(pod, fate(pod, &judged.reason), judged.sentence());
            entry.verdict = Some(judged.verdict());
            entry.reason = Some(judged.code());
            entry.note = note(pod, judged, &facts, entry.fate);
            entry.risk = advice.risk;
            entry.steps = advice.steps.into_iter().map(for_then).collect();
            pods.push(entry);
        } else if !pod.evicted() {
            let (fate, detail) = match pod.stays {
                Some(Stay::Static) => (Fate::Stays, "A static pod: its node's own."),
                Some(Stay::DaemonSet) => {
                    (Fate::Stays, "Its DaemonSet has it tolerate every failure of its node.")
                }
                Some(Stay::Tolerates) => {
                    (Fate::Stays, "It tolerates a silent node without a time limit, so it is never evicted.")
                }
                None => (Fate::Finished, "It has finished; the eviction takes it at once."),
            };
            pods.push(PodFate::new(pod, fate, detail.to_owned()));
        }
    }
    let order = |pod: &PodFate| (pod.fate as u8, pod.namespace.clone(), pod.name.clone(), pod.uid.clone());
    pods.sort_by_cached_key(order);
    let silent = |(name, standing): (&String, &Standing)| !standing.ready || dead.contains(name);
    // Kubernetes counts leaf nodes too.
    let all =
        standings.iter().map(|each| Standing { ready: !silent(each), leaf: false, control_plane: false });
    let stops = !standings.is_empty() && hold(&Census::count(all), KUBERNETES_PERCENT).is_some();
    let unread =
        plan.pods.iter().any(|judged| judged.code() == ReasonCode::FactsUnread) || !facts.errors.is_empty();
    let regex = |regex: &Option<regex::Regex>| regex.as_ref().map(|regex| regex.as_str().to_owned());
    let counted = |fate: Fate| pods.iter().filter(|pod| pod.fate == fate).count();
    let left_out = summaries.iter().filter(here).filter(|pod| pod.evicted());
    WhatIf {
        version: VERSION,
        program_version: env!("CARGO_PKG_VERSION"),
        snapshot: settings.task.snapshot(),
        judged_at: facts.now,
        nodes: dead.iter().cloned().collect(),
        namespace_regex: regex(&settings.namespaces.include),
        namespace_exclude_regex: regex(&settings.namespaces.exclude),
        breaker: plan.hold.as_ref().map(BreakerEntry::from),
        kubernetes_stops_evicting: stops,
        nodes_not_ready: (!standings.is_empty())
            .then(|| standings.iter().filter(|each| silent(*each)).count()),
        nodes_total: facts.node_count,
        workloads: without_second_replica(&summaries, &standings, dead, settings),
        left_out: left_out.filter(|pod| !settings.namespaces.matches(&pod.namespace)).count(),
        summary: Fate::ALL.into_iter().map(|fate| (fate, counted(fate))).collect(),
        pods,
        errors: facts.errors.clone(),
        unseen: facts.unseen.clone(),
        exit: if unread { Exit::Incomplete } else { Exit::Done },
    }
}

/// By the rules alone: the breaker delays an end, and does not change it.
fn fate(pod: &PodSummary, by_rules: &Reason) -> Fate {
    match by_rules.verdict() {
        Verdict::Reap if pod.controller.is_some() => Fate::ComesBack,
        Verdict::Reap => Fate::Lost,
        Verdict::Manual => Fate::NeedsPerson,
        Verdict::Wait | Verdict::Leave => Fate::LeftTerminating,
    }
}

fn note(pod: &PodSummary, judged: &Judged, facts: &ClusterFacts, fate: Fate) -> Option<String> {
    // The breaker delays an end, and does not change it.
    let mut notes = notes(&Judged { limit: None, ..judged.clone() }, facts);
    if fate == Fate::ComesBack && pod.controller.as_ref().is_some_and(|owner| owner.kind == "Job") {
        notes.push("its Job makes another one only while its backoffLimit allows".to_owned());
    }
    if fate == Fate::NeedsPerson && pod.controller.is_none() {
        notes.push("no controller would make it anew".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// A step for a dead node. The node lives: what could be pasted now must do nothing.
fn for_then(step: Step) -> Step {
    let command = step.command.map(|command| {
        let line = |words: &[String]| [&[Command::NEXT.to_owned(), "#".to_owned()], words].concat();
        Command(command.lines().flat_map(line).skip(1).collect())
    });
    Step { what: step.what, command }
}

impl PodFate {
    fn new(pod: &PodSummary, fate: Fate, detail: String) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone().unwrap_or_default(),
            owner: pod.controller.clone(),
            fate,
            verdict: None,
            reason: None,
            detail,
            note: None,
            risk: None,
            steps: Vec::new(),
        }
    }
}

/// The workloads that serve from `dead` nodes alone. A Job has no replicas, and a `DaemonSet` one a node.
fn without_second_replica(
    summaries: &[PodSummary],
    standings: &BTreeMap<String, Standing>,
    dead: &BTreeSet<String>,
    settings: &Settings,
) -> Vec<Workload> {
    let mut counts = BTreeMap::<(&str, &Owner), (usize, usize)>::new();
    for pod in summaries.iter().filter(|pod| pod.serves && settings.namespaces.matches(&pod.namespace)) {
        let (Some(workload), Some(node)) = (&pod.workload, &pod.node) else { continue };
        if ["Job", "CronJob", "DaemonSet"].contains(&workload.kind.as_str()) || pod.stays.is_some() {
            continue;
        }
        let (here, elsewhere) = counts.entry((&pod.namespace, workload)).or_default();
        if dead.contains(node) {
            *here += 1;
        } else if standings.get(node).is_none_or(|standing| standing.ready) {
            *elsewhere += 1;
        }
    }
    let alone = counts.into_iter().filter(|(_, (here, elsewhere))| *here > 0 && *elsewhere == 0);
    alone
        .map(|((namespace, owner), (replicas, _))| Workload {
            namespace: namespace.to_owned(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            replicas,
        })
        .collect()
}

impl Render for WhatIf {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn text(&self, screen: Screen) -> String {
        text::write(self, screen)
    }
}

#[cfg(test)]
mod tests;
