//! `pod-reaper what-if`: what would happen if these nodes died now?
//!
//! The [`Store`] supposes the nodes dead. The gathering, the rules and the limits of a run then work
//! on that store, so a forecast cannot differ from a real run. It sends only reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use itertools::Itertools as _;

use crate::{
    decide::{ReasonCode, Verdict},
    exit::{CouldNotRun, Result},
    facts::{NodeRead, Owner, PodFacts, PodsOf, StayReason, Unread},
    limits::{Judged, MAX_NODES_IGNORED},
    questions::{ask, exit, near},
    report::{Counts, Fate, PodEntry, Report, RunRecord, Supposed, Workload},
    settings::Settings,
    source::{CountedNodes, Gathered, LabelsByNode, Source, Store},
    stop::Stop,
    words::joined,
};

/// The percentage of NotReady nodes in a zone from which on Kubernetes evicts slowly, or not at all
/// (`--unhealthy-zone-threshold` of kube-controller-manager).
const UNHEALTHY_ZONE_PERCENT: usize = 55;
/// The toleration in seconds that `docs/downtime.md` compares with the default of 300.
const SHORT_TOLERATION_SECONDS: i64 = 60;

/// Forecasts what happens if `nodes` die.
pub async fn run(settings: &Settings, nodes: &[String], stop: &Stop) -> Result<Report> {
    let dead = nodes.iter().cloned().collect();
    ask(settings, stop, async |source| {
        run_on(source, settings, &dead).await
    })
    .await
}

/// Forecasts what happens if the nodes `dead` die, by the facts of `source`.
pub async fn run_on(
    source: Source<'_>,
    settings: &Settings,
    dead: &BTreeSet<String>,
) -> Result<Report> {
    let store = Store::new(source, settings.wanted()).supposing_dead(dead.clone());
    let mut supposed = suppose(&store, settings).await?;
    let nodes = &supposed.run.facts.nodes;
    // A forecast for a node that does not exist would be false comfort.
    if let Some(name) = dead
        .iter()
        .find(|name| matches!(nodes.get(*name), None | Some(NodeRead::Gone)))
    {
        let hint = near(name, supposed.counted_nodes.keys().map(String::as_str))
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
        .filter(|pod| pod.serves() && pod.workload.is_some())
        .map(|pod| pod.namespace.clone());
    for namespace in concerned.collect::<BTreeSet<_>>() {
        let pods = store.pods_of(&PodsOf::Namespace(namespace)).await;
        let (pods, _) = pods.map_err(|Unread(cause)| {
            CouldNotRun::Source(format!("could not list pods: {cause}"))
        })?;
        replicas.count(&pods, settings);
    }
    supposed.run.facts.errors = store.errors();
    Ok(supposed.report(&replicas, dead))
}

/// The run that would follow if some nodes had died.
pub(super) struct SupposedRun<'a> {
    pub run: RunRecord<'a>,
    /// How the breaker would count each node; empty if the nodes could not be read.
    counted_nodes: CountedNodes,
    /// The pods of the dead nodes as they are now.
    pub pods: Vec<PodFacts>,
    /// The labels of each node; `None` if they could not be read, or if no pod depends on them.
    labels: Option<Rc<LabelsByNode>>,
}

/// Judges the pods of the nodes that are dead in `store`.
pub(super) async fn suppose<'a>(
    store: &Store<'_>,
    settings: &'a Settings,
) -> Result<SupposedRun<'a>> {
    let gathered = Box::pin(store.gather(None)).await?;
    let Gathered {
        facts,
        pods,
        on_dead,
    } = gathered;
    settings.check_filters(&facts)?;
    let plan = settings.limit(&facts, settings.decide(&facts, pods));
    let run = RunRecord::new(settings, facts, plan);
    let counted_nodes = store.counted_nodes().await;
    let counted_nodes = counted_nodes.unwrap_or_default();
    let labels = if on_dead.iter().any(|pod| !pod.needs.is_empty()) {
        store.labels().await.ok()
    } else {
        None
    };
    Ok(SupposedRun {
        run,
        counted_nodes,
        pods: on_dead,
        labels,
    })
}

impl SupposedRun<'_> {
    /// Lists the dead nodes' pods that a run looks at, each with its verdict and its fate. The
    /// rules alone decide the fate, because the breaker only delays it.
    fn fates(&self) -> impl Iterator<Item = (&PodFacts, Option<&Judged>, Fate)> {
        let judged = self.run.plan.pods.iter();
        let judged = judged
            .map(|judged| (&judged.pod.uid, judged))
            .collect::<BTreeMap<_, _>>();
        let looked_at = |pod: &&PodFacts| self.run.settings.namespaces.matches(&pod.namespace);
        self.pods.iter().filter(looked_at).map(move |pod| {
            let judged = judged.get(&pod.uid).copied();
            let fate = match judged.map(|judged| judged.reason.verdict()) {
                Some(Verdict::Reap) if pod.maker().is_some() && self.fits_elsewhere(pod) => {
                    Fate::ComesBack
                }
                Some(Verdict::Reap) if pod.maker().is_some() => Fate::StaysPending,
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

    /// Reports whether the pod fits, or may fit, another Ready node.
    fn fits_elsewhere(&self, pod: &PodFacts) -> bool {
        let Some(labels) = &self.labels else {
            return true;
        };
        let is_ready = |name: &String| self.counted_nodes.get(name).is_none_or(|node| node.ready);
        let mut others = labels.iter().filter(|(name, _)| is_ready(name));
        pod.needs.is_empty() || others.any(|(_, labels)| pod.fits(labels))
    }

    /// Counts the pods that Kubernetes would evict, but that no run judges.
    fn left_out(&self) -> usize {
        let namespaces = &self.run.settings.namespaces;
        let left_out = |pod: &&PodFacts| pod.evicted() && !namespaces.matches(&pod.namespace);
        self.pods.iter().filter(left_out).count()
    }

    /// Counts the pods of the dead nodes by their fate.
    pub fn counts(&self) -> Counts {
        let nodes = &self.run.facts.nodes;
        let has_lease = |name: &String| {
            let node = nodes.get(name).and_then(NodeRead::known);
            node.is_some_and(|node| node.renewed.is_some())
        };
        let mut counts = Counts {
            evicted: self.pods.iter().filter(|pod| pod.evicted()).count(),
            left_out: self.left_out(),
            ..Counts::default()
        };
        for (pod, judged, fate) in self.fates() {
            match fate {
                Fate::Stays if !pod.finished() && pod.stays == Some(StayReason::Tolerates) => {
                    counts.stays_down += 1;
                }
                Fate::ComesBack => counts.comes_back += 1,
                Fate::Lost => counts.lost += 1,
                Fate::StaysPending => counts.stays_pending += 1,
                Fate::NeedsPerson => counts.needs_person += 1,
                Fate::LeftTerminating => counts.left_terminating += 1,
                Fate::Stays | Fate::Finished => {}
            }
            let Some(judged) = judged else { continue };
            let is_local = judged.reason.code == ReasonCode::LocalVolume
                && judged.pod.made_by("StatefulSet", "apps");
            counts.local += usize::from(is_local);
            if let Fate::ComesBack | Fate::StaysPending | Fate::Lost = fate {
                let late = self.run.detaches_late(&judged.pod).is_some();
                counts.wait_for_volume += usize::from(late && fate == Fate::ComesBack);
                let tolerates = pod.tolerates_silence.unwrap_or_default();
                let with_lease = pod.node.as_ref().is_some_and(has_lease);
                let reaped_after =
                    |tolerates| until_reaped(pod, tolerates, with_lease, self.run.settings);
                let sooner = reaped_after(tolerates.min(SHORT_TOLERATION_SECONDS));
                counts.seconds = counts.seconds.max(reaped_after(tolerates));
                counts.seconds_tolerating_less = counts.seconds_tolerating_less.max(sooner);
            }
        }
        counts
    }

    /// Reports the run without the parts that need a real failure: since when a node has been dead,
    /// the answers, and the commands to paste. The node is alive, so a command pasted now would act
    /// on a failure that has not happened.
    fn report(&self, replicas: &Replicas, dead: &BTreeSet<String>) -> Report {
        let mut report = self.run.report();
        let mut judged_pods = std::mem::take(&mut report.pods)
            .into_iter()
            .map(|pod| (pod.uid.clone(), pod))
            .collect::<BTreeMap<_, _>>();
        let pods = self.fates().map(|(pod, judged, fate)| {
            let entry = judged.and_then(|judged| judged_pods.remove(&judged.pod.uid.to_string()));
            let mut entry = entry.unwrap_or_else(|| PodEntry {
                detail: not_judged(pod).to_owned(),
                ..PodEntry::from(pod)
            });
            entry.note = judged.and_then(|judged| note(pod, judged, &self.run, fate));
            (entry.deletion_deadline, entry.overdue_seconds) = (None, None);
            (entry.answers, entry.reaped_from) = (Vec::new(), None);
            for step in &mut entry.advice.steps {
                if step.command.take().is_some() && step.harm.is_some() {
                    step.what = format!("The report would offer a command for this: {}", step.what);
                }
            }
            PodEntry {
                fate: Some(fate),
                ..entry
            }
        });
        let order = |pod: &PodEntry| {
            let name = (pod.namespace.clone(), pod.name.clone(), pod.uid.clone());
            (pod.fate.map(|fate| fate as u8), name)
        };
        report.pods = pods.sorted_by_cached_key(order).collect();
        for node in &mut report.nodes {
            (node.since, node.not_ready_seconds) = (None, None);
            node.steps.clear();
        }
        if let Some(breaker) = &mut report.breaker {
            breaker.steps.clear();
        }
        (report.groups, report.notices) = (Vec::new(), Vec::new());
        report.run_now = None;
        // Kubernetes counts leaf nodes too.
        let silent = self
            .counted_nodes
            .values()
            .filter(|counted_node| !counted_node.ready);
        let (all, not_ready) = (self.counted_nodes.len(), silent.count());
        let stops = all > 0
            && (not_ready == all
                || not_ready > MAX_NODES_IGNORED
                    && 100 * not_ready >= UNHEALTHY_ZONE_PERCENT * all);
        let is_known = all > 0;
        if is_known {
            report.summary.nodes_not_ready = not_ready;
        }
        let workloads = replicas.0.iter().filter_map(|(workload, by_node)| {
            only_on(workload, by_node, &self.counted_nodes, |node| {
                dead.contains(node)
            })
        });
        let workloads = workloads.collect_vec();
        report.supposed = Some(Supposed {
            nodes: dead.iter().cloned().collect(),
            counts: Counts {
                without_replica: workloads.len(),
                ..self.counts()
            },
            kubernetes_stops_evicting: stops,
            nodes_not_ready: is_known.then_some(not_ready),
            workloads,
        });
        report.exit = exit(&report);
        report
    }
}

/// Counts the seconds from the moment when the pod's node becomes unreachable until a run may reap
/// the pod, if the pod tolerates the node for `tolerates` seconds. On a node `with_lease` the grace
/// period is cut short, because the node falls silent before the eviction.
fn until_reaped(pod: &PodFacts, tolerates: i64, with_lease: bool, settings: &Settings) -> i64 {
    let policy = &settings.policy;
    let deadline = if pod.deletion.is_some() {
        0
    } else {
        let grace = if with_lease {
            0
        } else {
            pod.own_grace_seconds.max(0)
        };
        tolerates.max(0).saturating_add(grace)
    };
    let stuck = deadline.saturating_add(policy.reap_older_than.as_secs());
    stuck.max(policy.node_not_ready_for.as_secs())
}

/// Says why no run judges a pod.
fn not_judged(pod: &PodFacts) -> &'static str {
    match pod.stays {
        _ if pod.evicted() => "It lacks what a verdict needs, so no run judges it.",
        Some(StayReason::Static) => "A static pod: it belongs to its node.",
        Some(StayReason::DaemonSet) => "Its DaemonSet makes it tolerate every failure of its node.",
        Some(StayReason::Tolerates) => {
            "It tolerates a silent node without a time limit, so it is never evicted."
        }
        None => "It has finished; the eviction deletes it at once.",
    }
}

/// Joins the notes of a pod: those of a run, and those that the pod's fate adds.
fn note(pod: &PodFacts, judged: &Judged, run: &RunRecord<'_>, fate: Fate) -> Option<String> {
    let mut notes = run.notes(judged);
    let controller = pod.maker();
    let is_job = controller.is_some_and(|owner| owner.kind == "Job");
    if fate == Fate::ComesBack && is_job {
        notes.push("its Job makes another one only while its backoffLimit allows".to_owned());
    }
    if fate == Fate::StaysPending {
        let why = "no other Ready node fits its nodeSelector and its required node affinity";
        notes.push(why.to_owned());
    }
    if fate == Fate::NeedsPerson && controller.is_none() {
        notes.push("no controller would create it again".to_owned());
    }
    joined(notes, "; ")
}

/// The number of replicas that serve on each node, by namespace and workload. Jobs and `DaemonSet`s
/// are left out: a Job has no replicas, and a `DaemonSet` has one on every node.
#[derive(Default)]
pub(super) struct Replicas(pub BTreeMap<(String, Owner), BTreeMap<String, usize>>);

impl Replicas {
    pub fn count(&mut self, pods: &[PodFacts], settings: &Settings) {
        for pod in pods
            .iter()
            .filter(|pod| pod.serves() && pod.stays.is_none())
        {
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

/// Returns the workload if it has replicas on `dead` nodes, and none on any other node.
pub(super) fn only_on(
    (namespace, owner): &(String, Owner),
    by_node: &BTreeMap<String, usize>,
    counted_nodes: &CountedNodes,
    dead: impl Fn(&str) -> bool,
) -> Option<Workload> {
    let lives = |node: &str| {
        let counted_node = counted_nodes.get(node);
        !dead(node) && (counted_nodes.is_empty() || counted_node.is_some_and(|node| node.ready))
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
