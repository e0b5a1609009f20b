//! `pod-reaper what-if`: what would happen if these nodes died now?
//!
//! The nodes are killed in the [`Store`] that gathering reads. The gathering, the rules and the limits
//! of a run then work on it, so a forecast cannot drift from a real run. Only reads are sent.

pub mod each_node;
mod page;

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use crate::{
    codes::codes,
    decide::Verdict,
    exit::{CouldNotRun, Result},
    facts::{NodeRead, Owner, PodSummary, PodsOf, Stay, Unread},
    limits::{Judged, MAX_NODES_IGNORED},
    questions::{Head, Judgement, near},
    report::{BreakerEntry, RunRecord, in_json, tally},
    selector::NamespaceFilter,
    settings::Settings,
    source::{Gathered, Source, Standings, Store},
    stop::Stop,
    words::joined,
};

/// The percentage of NotReady nodes in a zone from which on Kubernetes evicts slowly, or not at all
/// (`--unhealthy-zone-threshold` of kube-controller-manager).
const KUBERNETES_PERCENT: usize = 55;

in_json! {
    /// What would happen if these nodes died now.
    #[serde(tag = "kind")]
    pub struct WhatIf {
        /// What every explanation and forecast says.
        #[serde(flatten)]
        pub head: Head,
        /// The nodes that are supposed to die.
        pub nodes: Vec<String>,
        /// The namespaces whose pods are looked at.
        #[serde(flatten)]
        pub namespaces: NamespaceFilter,
        /// Set if the breaker would hold the run.
        pub breaker: Option<BreakerEntry>,
        /// Whether so many nodes of all zones together would be NotReady that Kubernetes may evict
        /// slowly, or not at all.
        pub kubernetes_stops_evicting: bool,
        /// Nodes that would be NotReady, leaf nodes included.
        pub nodes_not_ready: Option<usize>,
        /// All nodes.
        pub nodes_total: usize,
        /// The pods of these nodes.
        pub pods: Vec<PodFate>,
        /// Workloads without a replica anywhere else.
        pub workloads: Vec<Workload>,
        /// Pods of these nodes that would be evicted, but that no run would reap, because the
        /// filter leaves out their namespaces.
        pub left_out: usize,
        /// Pods by fate; every fate is there.
        pub summary: BTreeMap<Fate, usize>,
    }

    /// What becomes of one pod.
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
        /// The verdict of a run, which judges no pod that Kubernetes would not evict. Its steps
        /// have no commands: those are for a dead node, and this one lives.
        #[serde(flatten)]
        pub judgement: Judgement,
    }
}

codes! {
    /// What can become of a pod.
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

in_json! {
    /// A workload that would be away altogether.
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
}

/// Forecasts what happens if `nodes` die.
pub async fn run(settings: &Settings, nodes: &[String], stop: &Stop) -> Result<WhatIf> {
    let dead = nodes.iter().cloned().collect();
    by_source!(settings, stop, |source| run_on(source, settings, &dead))
}

/// Forecasts what happens if the nodes `dead` die, by the facts of `source`.
pub async fn run_on(
    source: &impl Source,
    settings: &Settings,
    dead: &BTreeSet<String>,
) -> Result<WhatIf> {
    let store = Store::new(source, settings.wanted()).without(dead.clone());
    let mut supposed = suppose(&store, settings).await?;
    let nodes = &supposed.run.facts.nodes;
    // A forecast for a node that does not exist would be a false comfort.
    if let Some(name) = dead
        .iter()
        .find(|name| matches!(nodes.get(*name), None | Some(NodeRead::Gone)))
    {
        let hint = near(name, supposed.standings.keys().map(String::as_str))
            .unwrap_or_else(|| "list them with: kubectl get nodes".to_owned());
        let message = format!("there is no node {name}; {hint}");
        return Err(CouldNotRun::Usage(message));
    }
    // All replicas of a workload are in one namespace, so only the namespaces of the dead nodes'
    // pods are read.
    let mut replicas = Replicas::default();
    let concerned = supposed
        .pods
        .iter()
        .filter(|pod| pod.serves && pod.workload.is_some())
        .map(|pod| pod.namespace.clone());
    for namespace in concerned.collect::<BTreeSet<_>>() {
        let pods = store.summaries(&PodsOf::Namespace(namespace)).await;
        let (pods, _) = pods.map_err(|Unread(cause)| {
            CouldNotRun::Source(format!("could not list pods: {cause}"))
        })?;
        replicas.count(&pods, settings);
    }
    supposed.run.facts.errors = store.errors();
    Ok(what_if(&supposed, &replicas, dead))
}

/// The run that would follow if some nodes had died.
struct SupposedRun<'a> {
    run: RunRecord<'a>,
    /// How the breaker would count each node; empty if the nodes could not be read.
    standings: Standings,
    /// The pods of the dead nodes as they are now.
    pods: Vec<PodSummary>,
}

/// Judges the pods of the nodes that are dead in `store`.
async fn suppose<'a>(
    store: &Store<'_, impl Source>,
    settings: &'a Settings,
) -> Result<SupposedRun<'a>> {
    let Gathered { facts, pods } = Box::pin(store.gather(None)).await?;
    let plan = settings.plan(&facts, pods);
    let run = RunRecord::new(settings, facts, plan);
    let standings = store.standings(run.facts.now).await;
    let standings = standings.unwrap_or_default();
    Ok(SupposedRun {
        run,
        standings,
        pods: store.take_dead_pods(),
    })
}

impl SupposedRun<'_> {
    /// Lists the dead nodes' pods that a run looks at, each with its verdict and its fate. The
    /// rules alone decide the fate, because the breaker only delays it.
    fn fates(&self) -> impl Iterator<Item = (&PodSummary, Option<&Judged>, Fate)> {
        let judged = self.run.plan.pods.iter();
        let judged = judged
            .map(|judged| (&judged.pod.uid, judged))
            .collect::<BTreeMap<_, _>>();
        let looked_at = |pod: &&PodSummary| self.run.settings.namespaces.matches(&pod.namespace);
        self.pods.iter().filter(looked_at).map(move |pod| {
            let judged = judged.get(&pod.uid).copied();
            let fate = match judged.map(|judged| judged.reason.verdict()) {
                Some(Verdict::Reap) if pod.controller.is_some() => Fate::ComesBack,
                Some(Verdict::Reap) => Fate::Lost,
                Some(Verdict::Manual) => Fate::NeedsPerson,
                Some(Verdict::Wait | Verdict::Leave) => Fate::LeftTerminating,
                // The pod lacks a fact that its verdict needs.
                None if pod.evicted() => Fate::LeftTerminating,
                None if pod.stays.is_some() => Fate::Stays,
                None => Fate::Finished,
            };
            (pod, judged, fate)
        })
    }

    /// Counts the pods that would be evicted, but that no run looks at.
    fn left_out(&self) -> usize {
        let namespaces = &self.run.settings.namespaces;
        let left_out = |pod: &&PodSummary| pod.evicted() && !namespaces.matches(&pod.namespace);
        self.pods.iter().filter(left_out).count()
    }
}

fn what_if(supposed: &SupposedRun<'_>, replicas: &Replicas, dead: &BTreeSet<String>) -> WhatIf {
    let SupposedRun { run, standings, .. } = supposed;
    let pods = supposed.fates().map(|(pod, judged, fate)| {
        let judgement = match judged {
            Some(judged) => {
                let mut judgement = Judgement::of(judged, run);
                judgement.note = note(pod, judged, run, fate);
                // The node lives, so a command pasted now would act on a failure that has
                // not happened.
                for step in &mut judgement.advice.steps {
                    step.command = None;
                }
                judgement
            }
            None => Judgement {
                detail: not_judged(pod).to_owned(),
                ..Judgement::default()
            },
        };
        let pod = pod.clone();
        PodFate {
            namespace: pod.namespace,
            name: pod.name,
            uid: pod.uid.to_string(),
            node: pod.node.unwrap_or_default(),
            owner: pod.controller,
            fate,
            judgement,
        }
    });
    let workloads = replicas.0.iter().filter_map(|(workload, by_node)| {
        only_on(workload, by_node, standings, |node| dead.contains(node))
    });
    let order = |pod: &PodFate| {
        let name = (pod.namespace.clone(), pod.name.clone(), pod.uid.clone());
        (pod.fate as u8, name)
    };
    let pods = pods.sorted_by_cached_key(order).collect_vec();
    // Kubernetes counts leaf nodes too.
    let silent = standings.values().filter(|standing| !standing.ready);
    let (all, not_ready) = (standings.len(), silent.count());
    let stops = all > 0
        && (not_ready == all
            || not_ready > MAX_NODES_IGNORED && 100 * not_ready >= KUBERNETES_PERCENT * all);
    WhatIf {
        head: Head::new(run.settings, &run.facts, run.lacks_facts()),
        nodes: dead.iter().cloned().collect(),
        namespaces: run.settings.namespaces.clone(),
        breaker: BreakerEntry::of(&run.plan),
        kubernetes_stops_evicting: stops,
        nodes_not_ready: (all > 0).then_some(not_ready),
        nodes_total: run.facts.node_count,
        workloads: workloads.collect(),
        left_out: supposed.left_out(),
        summary: tally(Fate::ALL, pods.iter().map(|pod| pod.fate)),
        pods,
    }
}

/// Says why no run judges a pod.
fn not_judged(pod: &PodSummary) -> &'static str {
    match pod.stays {
        _ if pod.evicted() => "It lacks what a verdict needs, so no run judges it.",
        Some(Stay::Static) => "A static pod: it belongs to its node.",
        Some(Stay::DaemonSet) => "Its DaemonSet makes it tolerate every failure of its node.",
        Some(Stay::Tolerates) => {
            "It tolerates a silent node without a time limit, so it is never evicted."
        }
        None => "It has finished; the eviction deletes it at once.",
    }
}

/// Joins the notes of a pod, with what its fate adds to those of a run.
fn note(pod: &PodSummary, judged: &Judged, run: &RunRecord<'_>, fate: Fate) -> Option<String> {
    let mut notes = run.notes(judged);
    let controller = pod.controller.as_ref();
    let is_job = controller.is_some_and(|owner| owner.kind == "Job");
    if fate == Fate::ComesBack && is_job {
        notes.push("its Job makes another one only while its backoffLimit allows".to_owned());
    }
    if fate == Fate::NeedsPerson && controller.is_none() {
        notes.push("no controller would create it again".to_owned());
    }
    joined(notes, "; ")
}

/// The number of replicas that serve on each node, by namespace and workload. Jobs and `DaemonSet`s
/// are left out: a Job has no replicas, and a `DaemonSet` has one on every node.
#[derive(Default)]
struct Replicas(BTreeMap<(String, Owner), BTreeMap<String, usize>>);

impl Replicas {
    fn count(&mut self, pods: &[PodSummary], settings: &Settings) {
        for pod in pods.iter().filter(|pod| pod.serves && pod.stays.is_none()) {
            let (Some(workload), Some(node)) = (&pod.workload, &pod.node) else {
                continue;
            };
            if ["Job", "CronJob", "DaemonSet"].contains(&workload.kind.as_str())
                || !settings.namespaces.matches(&pod.namespace)
            {
                continue;
            }
            let workload = (pod.namespace.clone(), workload.clone());
            let by_node = self.0.entry(workload).or_default();
            *by_node.entry(node.clone()).or_default() += 1;
        }
    }
}

/// Returns the workload if it has replicas on `dead` nodes, and none on a node that lives.
fn only_on(
    (namespace, owner): &(String, Owner),
    by_node: &BTreeMap<String, usize>,
    standings: &Standings,
    dead: impl Fn(&str) -> bool,
) -> Option<Workload> {
    let lives = |node: &str| {
        let standing = standings.get(node);
        !dead(node) && (standings.is_empty() || standing.is_some_and(|node| node.ready))
    };
    if by_node.keys().any(|node| lives(node)) {
        return None;
    }
    let on_dead = by_node.iter().filter(|(node, _)| dead(node));
    let replicas = on_dead.map(|(_, count)| count).sum();
    let Owner { kind, name } = owner.clone();
    (replicas > 0).then(|| Workload {
        namespace: namespace.clone(),
        kind,
        name,
        replicas,
    })
}

#[cfg(test)]
mod tests;
