//! `pod-reaper explain`: why does this pod get its verdict?
//!
//! It reads the same facts as a run, and the pod itself. It evaluates every rule on the pod, while
//! a run stops at the first rule that applies. The plan is the same as a run's. It sends only
//! reads.

use itertools::Itertools as _;

use crate::{
    cli::PodName,
    cluster::{Api, Cluster},
    exit::{CouldNotRun, Result},
    facts::{Attachments, PodFacts, PodsOf, Unread, Waiting, WaitsFor},
    kubernetes::{NodeRow, RawAttachment, RawPod},
    report::RunRecord,
    settings::{Settings, Task},
    source::{Reader, gather, snapshot, waits_for},
    stop::Stop,
};

/// Explains the verdict about the pod `asked`.
pub async fn run<'a>(
    settings: &'a Settings,
    asked: &PodName,
    stop: &Stop,
) -> Result<RunRecord<'a>> {
    let explained = async {
        match &settings.task {
            Task::Audit {
                snapshot,
                max_size,
                now,
                suppose_dead,
            } => {
                let policy = &settings.policy;
                let saved = snapshot::open(snapshot, *max_size, *now, suppose_dead, policy).await?;
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

/// Explains the verdict about the pod `asked` by the facts of `api`.
pub async fn run_on<'a>(
    api: &impl Api,
    settings: &'a Settings,
    asked: &PodName,
) -> Result<RunRecord<'a>> {
    let reader = &Reader::new(api, settings);
    let asked = &found(reader, asked).await?;
    let read = async |name: &str| {
        api.find::<RawPod>(&asked.namespace, name)
            .await
            .map_err(|failure| api.could_not(&format!("read pod {asked}"), &failure))
    };
    let Some(mut raw) = read(&asked.name).await? else {
        return Err(absent(asked));
    };
    let waiting = if raw.may_wait() {
        waiting(reader, &raw.facts).await?
    } else {
        None
    };
    // A pod that waits for another one is explained by that one.
    if let Some(WaitsFor::Pod { name, .. }) = waiting.as_ref().map(|it| &it.waits_for) {
        raw = read(name).await?.unwrap_or(raw);
    }
    let pod = raw.facts;
    let terminating = pod.deletion.map(|_| pod.clone());
    let gathered = gather(reader, terminating).await?;
    // A run leaves out a pod that lacks a field that a verdict needs.
    if pod.deletion.is_some()
        && let Some(cause) = &pod.lacks
    {
        let message = format!("pod {asked} could not be read: {cause}");
        return Err(CouldNotRun::Source(message));
    }
    let (facts, plan) = settings.plan(gathered);
    let asked = Some(pod);
    Ok(RunRecord {
        asked,
        waiting,
        ..RunRecord::new(settings, facts, plan)
    })
}

/// Returns what the pod waits for. It has not started.
async fn waiting(reader: &Reader<'_, impl Api>, pod: &PodFacts) -> Result<Option<Waiting>> {
    let api = reader.api;
    let (_, rows) = api
        .rows(Vec::<NodeRow>::push)
        .await
        .map_err(|failure| api.could_not("list nodes", &failure))?;
    let attachments = Attachments(reader.all("VolumeAttachments", RawAttachment::add_to).await);
    let here = PodsOf::Namespace(pod.namespace.clone());
    let others = reader.readable_pods(&here).await.unwrap_or_default();
    let terminating = others
        .iter()
        .filter(|it| it.deletion.is_some())
        .collect_vec();
    Ok(waits_for(reader, &rows, &attachments, &terminating, pod).await)
}

/// Completes the name of the pod. Without a namespace, exactly one pod has to have that name.
async fn found(reader: &Reader<'_, impl Api>, asked: &PodName) -> Result<PodName> {
    let PodName { namespace, name } = asked;
    if !namespace.is_empty() {
        return Ok(asked.clone());
    }
    let pods = reader
        .readable_pods(&PodsOf::Name(name.clone()))
        .await
        .map_err(|Unread(cause)| CouldNotRun::Source(format!("could not list pods: {cause}")))?;
    let namespaces = pods.iter().map(|pod| &pod.namespace).unique();
    match &namespaces.collect_vec()[..] {
        [namespace] => Ok(PodName {
            namespace: (*namespace).clone(),
            name: name.clone(),
        }),
        [] => Err(absent(asked)),
        several => Err(CouldNotRun::Usage(format!(
            "several namespaces have a pod {name}; add -n with one of: {}",
            several.iter().join(", ")
        ))),
    }
}

/// Returns the error that there is no such pod.
fn absent(asked: &PodName) -> CouldNotRun {
    let PodName { namespace, name } = asked;
    CouldNotRun::Usage(if namespace.is_empty() {
        format!("there is no pod {name} in any namespace; list the pods with: kubectl get pods -A")
    } else {
        format!("there is no pod {asked}; list the pods with: kubectl get pods -n {namespace}")
    })
}
