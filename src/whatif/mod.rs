//! `pod-reaper what-if`: what would happen if these nodes died now?
//!
//! The facts are read as they are, then altered: the nodes have been silent for ever, and what Kubernetes would evict
//! from them is Terminating for ever. On those facts the rules and limits of a run decide, so that what is foretold
//! cannot drift from what is done. Only reads are sent.

mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    path::Path,
};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    cli::Output,
    cluster::{Cluster, Target},
    decide::{Reason, Verdict, decide},
    exit::Exit,
    facts::{
        Census, ClusterFacts, Life, NodeRead, Owner, PodFacts, ReadError, Ready, Standing, Stay, Unread,
    },
    limits::hold,
    manual::{self, Command, Kubectl, Step},
    reap::{self, CouldNotRun},
    report::{BreakerEntry, ErrorEntry, OwnerEntry, notes, text::Screen},
    settings::{Settings, Task},
    snapshot::{self, Pods},
    stop::Stop,
};

/// Version of the JSON form.
const VERSION: u8 = 1;
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
    /// Pods of these nodes in namespaces that the filter leaves out: they would be evicted, and nobody would reap them.
    pub left_out: usize,
    /// What could not be read.
    pub errors: Vec<ErrorEntry>,
    /// What the source could not tell, as sentences.
    pub unseen: Vec<String>,
    /// Pods by fate; every fate is there.
    pub summary: BTreeMap<&'static str, usize>,
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
    pub owner: Option<OwnerEntry>,
    /// What becomes of it.
    pub fate: Fate,
    /// The verdict of a run; null where Kubernetes would not evict it, so that no run judges it.
    pub verdict: Option<&'static str>,
    /// The reason's code.
    pub reason: Option<&'static str>,
    /// That as a sentence.
    pub detail: String,
    /// What to remember.
    pub note: Option<String>,
    /// What would be at risk.
    pub risk: Option<String>,
    /// What a person would do then. A command here is a comment to a shell: it is for a dead node, and this one lives.
    pub steps: Vec<Step>,
}

/// The ends that a pod may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Reaped, and its controller makes another.
    ComesBack,
    /// Reaped, and nothing makes another.
    Lost,
    /// A person has to act.
    NeedsPerson,
    /// It stays Terminating: a rule has it wait, or leaves it alone.
    LeftTerminating,
    /// Kubernetes does not evict it.
    Stays,
    /// It is finished: the eviction takes it at once.
    Finished,
}

impl Fate {
    const ALL: [Self; 6] =
        [Self::ComesBack, Self::Lost, Self::NeedsPerson, Self::LeftTerminating, Self::Stays, Self::Finished];

    /// As JSON has it.
    pub fn code(self) -> &'static str {
        match self {
            Self::ComesBack => "comes-back",
            Self::Lost => "lost",
            Self::NeedsPerson => "needs-person",
            Self::LeftTerminating => "left-terminating",
            Self::Stays => "stays",
            Self::Finished => "finished",
        }
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

/// What was read, before anything is supposed.
struct Seen {
    facts: ClusterFacts,
    standings: BTreeMap<String, Standing>,
    /// The pods of the namespaces that matter, on whichever node.
    lives: Vec<Life>,
    kubectl: Kubectl,
}

/// Answers for `nodes`.
pub async fn run(settings: &Settings, nodes: &[String], stop: &Stop) -> Result<WhatIf, CouldNotRun> {
    let dead = nodes.iter().cloned().collect::<BTreeSet<_>>();
    let read = async {
        match &settings.task {
            Task::Audit { snapshot, now } => read_snapshot(settings, snapshot, *now, &dead).await,
            Task::Reap { target, .. } => read_cluster(settings, target, &dead, stop).await,
        }
    };
    let seen = tokio::select! {
        seen = read => seen?,
        why = stop.stopped() => return Err(CouldNotRun::Stopped(why)),
    };
    Ok(answer(settings, seen, &dead))
}

/// Alters the facts as if the kubelets of `dead` had been silent for ever, and every pod that was kept for them were
/// stuck for as long. What could not be read stays unread.
pub fn suppose(facts: &mut ClusterFacts, standings: &BTreeMap<String, Standing>, dead: &BTreeSet<String>) {
    for (name, read) in &mut facts.nodes {
        if let NodeRead::Known(node) = read
            && dead.contains(name)
        {
            node.ready = Ready::Unknown;
            node.ready_reason = Some("NodeStatusUnknown".to_owned());
            node.ready_since = Some(Timestamp::MIN);
            if let Ok(Some(lease)) = &mut node.lease {
                lease.renewed = Some(Timestamp::MIN);
            }
        }
    }
    for pod in &mut facts.pods {
        if pod.node.as_ref().is_some_and(|node| dead.contains(node)) {
            pod.deletion_deadline = Timestamp::MIN;
        }
    }
    if !matches!(facts.census, Census::Unread(_)) {
        facts.census = Census::count(standings.iter().map(|(name, standing)| {
            (standing.ready && !dead.contains(name), standing.leaf, standing.control_plane)
        }));
    }
}

/// Whether Kubernetes would evict it, so that a run meets it Terminating.
fn evicted(life: &Life) -> bool {
    life.terminating || (life.stays.is_none() && !life.finished)
}

async fn read_snapshot(
    settings: &Settings,
    file: &Path,
    now: Option<Timestamp>,
    dead: &BTreeSet<String>,
) -> Result<Seen, CouldNotRun> {
    let mut saved = reap::read_snapshot(file, Pods::Every).await?;
    let wanted = snapshot::Wanted {
        now,
        namespaces: &settings.namespaces,
        leaf_selector: settings.leaf_selector.as_ref(),
        all: true,
    };
    let mut lives = Vec::new();
    saved.retain(|pod| {
        let life = pod.life();
        let kept = evicted(&life) && life.node.as_ref().is_some_and(|node| dead.contains(node));
        lives.push(life);
        kept.then(|| pod.deleted_by(Timestamp::MIN))
    });
    let mut facts = saved.into_facts(&wanted).map_err(|error| reap::in_snapshot(file, &error))?;
    let known = facts.nodes.iter().filter_map(|(name, read)| Some((name.clone(), read.known()?.into())));
    let standings = known.collect::<BTreeMap<_, Standing>>();
    check_names(dead, &facts, &standings)?;
    suppose(&mut facts, &standings, dead);
    Ok(Seen { facts, standings, lives, kubectl: Kubectl::default() })
}

async fn read_cluster(
    settings: &Settings,
    target: &Target,
    dead: &BTreeSet<String>,
    stop: &Stop,
) -> Result<Seen, CouldNotRun> {
    let cluster = Cluster::connect(target, stop.clone(), settings.leaf_selector.clone()).await?;
    let scan = reap::scan(&cluster).await?;
    let mut facts = ClusterFacts::before_any_look(&scan)?;
    let ((nodes, unread), standings, namespaces) = tokio::join!(
        reap::read_nodes(&cluster, dead.iter().cloned()),
        cluster.standings(),
        cluster.namespaces(),
    );
    facts.nodes = nodes;
    facts.errors.extend(unread);
    if let Err(failure) = &namespaces {
        facts.error("namespaces", failure);
    }
    let standings = standings.unwrap_or_else(|failure| {
        facts.error("all nodes, for the breaker", &failure);
        facts.census = Census::Unread(Unread(failure.to_string()));
        BTreeMap::new()
    });
    check_names(dead, &facts, &standings)?;

    let mut lives = Vec::new();
    for node in dead {
        let pods = cluster.pods_of(node).await.map_err(|failure| reap::could_not("list pods", &failure))?;
        let odd = pods.odd.into_iter();
        facts.errors.extend(odd.map(|cause| ReadError { what: format!("pods of node {node}"), cause }));
        for pod in pods.items {
            let life = pod.life();
            if evicted(&life) && settings.namespaces.matches(&life.namespace) {
                let opted_out = reap::opted_out(&namespaces, &life.namespace);
                match pod.deleted_by(Timestamp::MIN).into_facts(opted_out) {
                    Ok(pod) => facts.pods.push(pod),
                    Err(cause) => {
                        let what = format!("pod {}/{}", life.namespace, life.name);
                        facts.errors.push(ReadError { what, cause });
                    }
                }
            }
            lives.push(life);
        }
    }
    // Other replicas are where these have theirs: in the same namespaces.
    let concerned = lives.iter().filter(|life| life.serves && life.workload.is_some());
    for namespace in concerned.map(|life| life.namespace.clone()).collect::<BTreeSet<_>>() {
        let others =
            cluster.lives(&namespace).await.map_err(|failure| reap::could_not("list pods", &failure))?;
        let odd = others.odd.into_iter();
        facts.errors.extend(odd.map(|cause| ReadError { what: format!("pods of {namespace}"), cause }));
        let elsewhere = |life: &Life| life.node.as_ref().is_none_or(|node| !dead.contains(node));
        lives.extend(others.items.into_iter().filter(elsewhere));
    }

    suppose(&mut facts, &standings, dead);
    let claims = reap::look_up_claims(settings, &cluster, &facts).await;
    facts.take_claims(&claims);
    facts.errors.sort();
    Ok(Seen { facts, standings, lives, kubectl: Kubectl::from(target) })
}

/// An answer for a node that does not exist would be a comfort without ground.
fn check_names(
    dead: &BTreeSet<String>,
    facts: &ClusterFacts,
    standings: &BTreeMap<String, Standing>,
) -> Result<(), CouldNotRun> {
    for name in dead {
        if !matches!(facts.nodes.get(name), None | Some(NodeRead::Gone)) {
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

fn answer(settings: &Settings, seen: Seen, dead: &BTreeSet<String>) -> WhatIf {
    let Seen { mut facts, standings, lives, kubectl } = seen;
    let plan = reap::plan(settings, &mut facts);
    let judged = plan.pods.iter().map(|judged| (judged.pod.uid.as_str(), judged)).collect::<BTreeMap<_, _>>();
    let here = |life: &&Life| life.node.as_ref().is_some_and(|node| dead.contains(node));
    let mut pods = Vec::new();
    for life in lives.iter().filter(here).filter(|life| settings.namespaces.matches(&life.namespace)) {
        if let Some(judged) = judged.get(life.uid.as_str()) {
            let by_rules = decide(facts.now, &settings.policy, facts.node_of(&judged.pod), &judged.pod);
            let advice = manual::advise(&judged.pod, &judged.reason, plan.hold.as_ref(), &kubectl);
            let mut entry = PodFate::new(life, fate(life, &by_rules), judged.reason.sentence());
            entry.verdict = Some(judged.reason.verdict().code());
            entry.reason = Some(judged.reason.code());
            entry.note = note(life, &judged.pod, &by_rules, entry.fate);
            entry.risk = advice.risk;
            entry.steps = advice.steps.into_iter().map(for_then).collect();
            pods.push(entry);
        } else if !evicted(life) {
            let (fate, detail) = match life.stays {
                Some(Stay::Static) => (Fate::Stays, "A static pod: its node's own."),
                Some(Stay::DaemonSet) => {
                    (Fate::Stays, "Its DaemonSet has it tolerate every failure of its node.")
                }
                Some(Stay::Tolerates) => {
                    (Fate::Stays, "It tolerates a silent node without a time limit, so it is never evicted.")
                }
                None => (Fate::Finished, "It has finished; the eviction takes it at once."),
            };
            pods.push(PodFate::new(life, fate, detail.to_owned()));
        }
    }
    pods.sort_by(|a, b| {
        (a.fate, &a.namespace, &a.name, &a.uid).cmp(&(b.fate, &b.namespace, &b.name, &b.uid))
    });
    let silent = |(name, standing): (&String, &Standing)| !standing.ready || dead.contains(name);
    // Kubernetes counts leaf nodes too.
    let all = standings.iter().map(|each| (!silent(each), false, false));
    let stops = !standings.is_empty() && hold(&Census::count(all), KUBERNETES_PERCENT).is_some();
    let unread = plan.pods.iter().any(|judged| matches!(judged.reason, Reason::FactsUnread(_)))
        || !facts.errors.is_empty();
    let regex = |regex: &Option<regex::Regex>| regex.as_ref().map(|regex| regex.as_str().to_owned());
    let counted = |fate: Fate| pods.iter().filter(|pod| pod.fate == fate).count();
    let left_out = lives.iter().filter(here).filter(|life| evicted(life));
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
        workloads: without_second_replica(&lives, &standings, dead, settings),
        left_out: left_out.filter(|life| !settings.namespaces.matches(&life.namespace)).count(),
        summary: Fate::ALL.into_iter().map(|fate| (fate.code(), counted(fate))).collect(),
        pods,
        errors: facts.errors.iter().map(ErrorEntry::from).collect(),
        unseen: facts.unseen.clone(),
        exit: if unread { Exit::Incomplete } else { Exit::Done },
    }
}

/// By the rules alone: the breaker delays an end, and does not change it.
fn fate(life: &Life, by_rules: &Reason) -> Fate {
    match by_rules.verdict() {
        Verdict::Reap if life.controller.is_some() => Fate::ComesBack,
        Verdict::Reap => Fate::Lost,
        Verdict::Manual => Fate::NeedsPerson,
        Verdict::Wait | Verdict::Leave => Fate::LeftTerminating,
    }
}

fn note(life: &Life, pod: &PodFacts, by_rules: &Reason, fate: Fate) -> Option<String> {
    let mut notes = notes(pod, by_rules);
    if fate == Fate::ComesBack && life.controller.as_ref().is_some_and(|owner| owner.kind == "Job") {
        notes.push("its Job makes another one only while its backoffLimit allows".to_owned());
    }
    if fate == Fate::NeedsPerson && life.controller.is_none() {
        notes.push("no controller would make it anew".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// A step for a dead node. The node lives: what could be pasted now must do nothing.
fn for_then(step: Step) -> Step {
    let command = step.command.map(|Command(mut words)| {
        words.insert(0, "#".to_owned());
        Command(words)
    });
    Step { what: step.what, command }
}

impl PodFate {
    fn new(life: &Life, fate: Fate, detail: String) -> Self {
        Self {
            namespace: life.namespace.clone(),
            name: life.name.clone(),
            uid: life.uid.clone(),
            node: life.node.clone().unwrap_or_default(),
            owner: life.controller.as_ref().map(OwnerEntry::from),
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
    lives: &[Life],
    standings: &BTreeMap<String, Standing>,
    dead: &BTreeSet<String>,
    settings: &Settings,
) -> Vec<Workload> {
    let mut counts = BTreeMap::<(&str, &Owner), (usize, usize)>::new();
    for life in lives.iter().filter(|life| life.serves && settings.namespaces.matches(&life.namespace)) {
        let (Some(workload), Some(node)) = (&life.workload, &life.node) else { continue };
        if ["Job", "DaemonSet"].contains(&workload.kind.as_str()) || life.stays.is_some() {
            continue;
        }
        let (here, elsewhere) = counts.entry((&life.namespace, workload)).or_default();
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

impl WhatIf {
    /// Writes the answer as `output` wants it; text for `screen`.
    pub fn write(&self, output: Output, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        match output {
            // The command line takes no other than text and JSON.
            Output::Text | Output::Markdown | Output::Html => {
                out.write_all(text::write(self, screen).as_bytes())
            }
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
        }
    }
}

#[cfg(test)]
mod tests;
