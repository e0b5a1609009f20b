//! `pod-reaper explain`: why does this pod get its verdict?
//!
//! It reads the same facts as a run, and the pod itself. It evaluates every rule on the pod, while
//! a run stops at the first rule that applies. The plan is the same as a run's. It sends only
//! reads.

use itertools::Itertools as _;
use jiff::Timestamp;

use crate::{
    cli::PodName,
    cluster::Cluster,
    exit::{CouldNotRun, Result},
    facts::{NodeCounts, PodFacts, PodsOf, Tally, Unread},
    judge::{Evaluation, Judged, Limit, MAX_NODES_IGNORED, ReasonCode},
    kubernetes::RawPod,
    report::{Report, RunRecord, explain},
    settings::{Settings, Task},
    source::{Gathered, Reader, Source, gather, snapshot},
    stop::Stop,
    words::{human_duration, joined, near, prefixed},
};

/// How many NotReady nodes are searched for a pod with a similar name.
const MAX_NODES_SEARCHED: usize = 10;

/// Explains the verdict about the pod `asked`.
pub async fn run(settings: &Settings, asked: &PodName, stop: &Stop) -> Result<Report> {
    let explained = async {
        match &settings.task {
            Task::Audit {
                snapshot,
                now,
                suppose_dead,
            } => {
                let saved = snapshot::open(snapshot, *now, suppose_dead).await?;
                run_on(&saved, settings, asked).await
            }
            Task::Reap { target, .. } => {
                let cluster = Cluster::connect(target, stop).await?;
                run_on(&cluster, settings, asked).await
            }
        }
    };
    stop.or_stopped(Box::pin(explained)).await
}

/// Explains the verdict about the pod `asked` by the facts of `source`.
pub async fn run_on(source: &impl Source, settings: &Settings, asked: &PodName) -> Result<Report> {
    let reader = &Reader::new(source, settings.wanted());
    let asked = &found(reader, asked).await?;
    let raw = source.object::<RawPod>(&asked.namespace, &asked.name).await;
    let raw = raw.map_err(|failure| source.could_not(&format!("read pod {asked}"), &failure))?;
    let Some(raw) = raw else {
        return Err(absent(reader, asked).await);
    };
    let pod = raw.facts();
    let terminating = pod.deletion.map(|_| pod.clone());
    let Gathered { facts, pods, .. } = gather(reader, terminating).await?;
    // A run leaves out a pod that lacks a field that a verdict needs.
    if pod.deletion.is_some()
        && let Some(cause) = &pod.lacks
    {
        let message = format!("pod {asked} could not be read: {cause}");
        return Err(CouldNotRun::Source(message));
    }
    let plan = settings.plan(&facts, pods);
    let run = RunRecord::new(settings, facts, plan);
    let mut all = run.plan.pods.iter();
    let judged = match all.find(|judged| judged.pod.uid == pod.uid) {
        None => Err(not_terminating(&pod, run.facts.now)),
        Some(_) if !settings.namespaces.matches(&pod.namespace) => Err(format!(
            "Its namespace {} is left out. The run looks at these namespaces: {}.",
            pod.namespace, settings.namespaces
        )),
        Some(judged) => Ok(judged),
    };
    let limits = judged.as_ref().map(|judged| limits(&run, judged));
    let limits = limits.unwrap_or_default();
    Ok(explain(&run, &pod, judged, limits))
}

/// Completes the name of the pod. Without a namespace, exactly one pod has to have that name.
async fn found(reader: &Reader<'_, impl Source>, asked: &PodName) -> Result<PodName> {
    let PodName { namespace, name } = asked;
    if !namespace.is_empty() {
        return Ok(asked.clone());
    }
    let pods = reader.readable_pods(&PodsOf::Name(name.clone())).await;
    let pods =
        pods.map_err(|Unread(cause)| CouldNotRun::Source(format!("could not list pods: {cause}")))?;
    let namespaces = pods.iter().map(|pod| &pod.namespace).unique();
    match &namespaces.collect_vec()[..] {
        [namespace] => Ok(PodName {
            namespace: (*namespace).clone(),
            name: name.clone(),
        }),
        [] => {
            let rows = reader.source.node_rows(reader.wanted.all).await?;
            if rows.names().contains(name) {
                return Err(CouldNotRun::Usage(format!(
                    "{name} is a node, and explain takes a pod; list the pods of the node with: kubectl get pods -A \
                     --field-selector spec.nodeName={name}"
                )));
            }
            let hint = near_on_dead_nodes(reader, rows.not_ready(), name).await;
            let hint = hint.unwrap_or_else(|| "list all with: kubectl get pods -A".to_owned());
            Err(CouldNotRun::Usage(format!(
                "there is no pod {name} in any namespace; {hint}"
            )))
        }
        several => Err(CouldNotRun::Usage(format!(
            "several namespaces have a pod {name}; add -n with one of: {}",
            several.iter().join(", ")
        ))),
    }
}

/// Returns a hint that asks whether a pod with a similar name on a NotReady node is meant. The pods of all
/// nodes would be too many to list for a hint.
async fn near_on_dead_nodes(
    reader: &Reader<'_, impl Source>,
    nodes: impl Iterator<Item = &String>,
    name: &str,
) -> Option<String> {
    let mut names = Vec::new();
    for node in nodes.take(MAX_NODES_SEARCHED) {
        // A failed search for a hint must not hide the error.
        let pods = reader.readable_pods(&PodsOf::Node(node.clone())).await;
        let pods = pods.unwrap_or_default();
        names.extend(
            pods.iter()
                .map(|pod| format!("{}/{}", pod.namespace, pod.name)),
        );
    }
    near(name, names.iter().map(String::as_str))
}

/// Returns the error that there is no such pod, with a hint about the pods that may be meant: pods
/// with similar names in the namespace, and pods of that name in other namespaces.
async fn absent(reader: &Reader<'_, impl Source>, asked: &PodName) -> CouldNotRun {
    let PodName { namespace, name } = asked;
    // A failed search for a hint must not hide the error.
    let found = async |pods| reader.readable_pods(&pods).await.unwrap_or_default();
    let here = found(PodsOf::Namespace(namespace.clone())).await;
    let similar = near(name, here.iter().map(|pod| pod.name.as_str()));
    let elsewhere = found(PodsOf::Name(name.clone())).await;
    let elsewhere = elsewhere
        .iter()
        .map(|pod| format!("{}/{name}", pod.namespace));
    let elsewhere = joined(elsewhere, " and ").map(|names| format!("there is {names}"));
    let hint = match elsewhere.into_iter().chain(similar).join("; or ") {
        hint if !hint.is_empty() => hint,
        _ if here.is_empty() => {
            let all = reader.source.namespaces().await.unwrap_or_default();
            let hint = near(namespace, all.keys().map(String::as_str)).unwrap_or_else(|| {
                format!(
                    "if {name} is a node, list its pods with: kubectl get pods -A --field-selector spec.nodeName={name}"
                )
            });
            format!("no pod of a namespace {namespace} is there; {hint}")
        }
        _ => {
            format!("it may be gone already; list the pods with: kubectl get pods -n {namespace}")
        }
    };
    CouldNotRun::Usage(format!("there is no pod {asked}; {hint}"))
}

fn not_terminating(pod: &PodFacts, now: Timestamp) -> String {
    let age = pod
        .created
        .map(|created| human_duration(now.duration_since(created)));
    let phase = Some(pod.phase.as_str()).filter(|phase| !phase.is_empty());
    format!(
        "It is not Terminating: its deletion was not requested. It has existed{}, in phase {}. pod-reaper looks at \
         Terminating pods only.",
        prefixed(" for ", age),
        phase.unwrap_or("unknown")
    )
}

/// Evaluates the limits of the run on a pod. A limit turns `reap` into `wait`, so the limit that is
/// kept beside the pod's reason decides.
fn limits(run: &RunRecord<'_>, judged: &Judged) -> Vec<Evaluation> {
    let RunRecord {
        settings,
        facts,
        plan,
        ..
    } = run;
    let node = judged.pod.node.as_ref();
    let hold = node.and_then(|node| plan.by_node.get(node)).cloned();
    let over_cap = |limit: &Limit| limit.code() == ReasonCode::OverCap;
    let cap = judged.limit.clone().filter(over_cap);
    let percent = settings.limits.max_not_ready_percent;
    let not_held = match &facts.node_counts {
        _ if percent >= 100 => "--max-not-ready-percent=100 turns it off.".to_owned(),
        NodeCounts::Counted {
            all: Tally { not_ready, total },
            ..
        } => {
            let are = if *not_ready == 1 { "is" } else { "are" };
            format!(
                "{not_ready} of {total} real nodes {are} NotReady; the breaker needs at least {} and {percent}%.",
                MAX_NODES_IGNORED + 1
            )
        }
        _ => format!("At most {MAX_NODES_IGNORED} nodes are NotReady."),
    };
    let not_capped = match settings.limits.max_deletes {
        None => "There is no cap.".to_owned(),
        Some(most) => format!(
            "{} pods are to be reaped; --max-deletes is {most}.",
            plan.reaps().count()
        ),
    };
    [
        (
            "Does a limit hold the run, or the zone of its node?",
            hold,
            not_held,
        ),
        (
            "Are there more pods to reap than --max-deletes?",
            cap,
            not_capped,
        ),
    ]
    .map(|(asks, limit, otherwise)| Evaluation {
        number: None,
        asks,
        holds: Some(limit.is_some()),
        decides: limit.is_some() && limit == judged.limit,
        seen: limit.map_or(otherwise, |limit| limit.sentence()),
        gives: None,
    })
    .into()
}
