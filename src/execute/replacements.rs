//! Waits for the replacements of the reaped pods. The wait only reads, and changes no outcome.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, timeout};

use crate::{
    cluster::{Cluster, Failure, MAX_IN_FLIGHT, Reference},
    facts::{CLOCK_SKEW, PodFacts, Uid},
    kubernetes::{NOT_MADE, RawPod},
    outcome::{Replacement, ReplacementState as State},
    stop::Stop,
    words::human_duration,
};

/// The pause after the first round. It doubles after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two rounds. It is also the time limit for reading one workload, because a
/// round lasts until all workloads have been read.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The least pause for each workload, so that the API server receives at most 50 requests a second.
const MIN_PAUSE_PER_WORKLOAD: Duration = Duration::from_millis(20);
/// How long the search for causes may take at the end. The search is limited, because the report
/// waits for it.
const CAUSES_TIME_LIMIT: Duration = Duration::from_secs(10);

/// Reaped pods whose replacements one request finds.
#[derive(Default)]
struct Workload<'a> {
    /// The reaped pods, each with the state of its replacement.
    pods: Vec<(&'a PodFacts, Replacement)>,
    /// The number of pods that the controller has now, if the controller gives each pod a new name.
    present: usize,
    /// Whether another look may show more.
    open: bool,
}

/// The workloads, by the request that finds their replacements. For a controller that gives each
/// pod a new name, the key is the controller's UID and the label selector of its pods: a Job has
/// one selector for each index. For any other controller, the key is the reaped pod's UID and an
/// empty text.
type Workloads<'a> = BTreeMap<(&'a str, &'a str), Workload<'a>>;

/// Waits until the replacements of `reaped` are back, for at most `wait`, or until the run has to
/// end. Returns the state of each replacement, by UID of the reaped pod. `progress` receives the
/// number of settled replacements.
pub async fn replacements(
    cluster: &Cluster,
    stop: &Stop,
    reaped: &[&PodFacts],
    wait: Duration,
    progress: &dyn Fn(usize),
) -> BTreeMap<Uid, Replacement> {
    let mut found = BTreeMap::new();
    if wait.is_zero() || reaped.is_empty() {
        return found;
    }
    tracing::info!(
        "Waiting at most {} s for {} replacements to come up",
        wait.as_secs(),
        reaped.len()
    );
    let began = Instant::now();
    let mut workloads = Workloads::new();
    for &pod in reaped {
        let (state, cause) = match (&pod.controller, &pod.owner) {
            (None, _) => (State::None, "it has no controller that would start another"),
            (_, Some(owner)) if owner.kind == "DaemonSet" => {
                (State::Pending, "it waits for its node")
            }
            _ => (State::Unknown, "it was not looked for"),
        };
        let replacement = Replacement::without_pod(state, cause);
        if state == State::Unknown {
            let key = match (&pod.siblings, &pod.controller) {
                (Some(labels), Some(controller)) => (&*controller.uid, &**labels),
                _ => (&*pod.uid, ""),
            };
            let workload = workloads.entry(key).or_default();
            workload.pods.push((pod, replacement));
        } else {
            found.insert(pod.uid.clone(), replacement);
        }
    }
    tokio::select! {
        biased;
        _ = stop.stopped() => {}
        // Whatever was found before a limit is reached is kept.
        () = async {
            let _ = timeout(wait, rounds(cluster, &mut workloads, progress)).await;
            let _ = timeout(CAUSES_TIME_LIMIT, explain(cluster, &mut workloads, began)).await;
        } => {}
    }
    let looked_for = workloads
        .into_values()
        .flat_map(|workload| workload.pods)
        .map(|(pod, replacement)| (pod.uid.clone(), replacement));
    found.extend(looked_for);
    found
}

fn settled(replacement: &Replacement) -> bool {
    matches!(replacement.state, State::Back | State::None)
}

/// Looks at all workloads, round by round, until no workload is open in two rounds in a row. One
/// round is not enough, because a crashing container without a probe is Ready between two crashes.
async fn rounds(cluster: &Cluster, workloads: &mut Workloads<'_>, progress: &dyn Fn(usize)) {
    let mut pause = FIRST_PAUSE;
    let least = MIN_PAUSE_PER_WORKLOAD * u32::try_from(workloads.len()).unwrap_or(u32::MAX);
    let mut was_open = true;
    while !workloads.is_empty() {
        stream::iter(workloads.values_mut())
            .for_each_concurrent(MAX_IN_FLIGHT, |workload| workload.look(cluster))
            .await;
        let pods = workloads.values().flat_map(|workload| &workload.pods);
        progress(pods.filter(|(_, replacement)| settled(replacement)).count());
        let open = workloads.values().any(|workload| workload.open);
        if !open && !was_open {
            break;
        }
        was_open = open;
        tokio::time::sleep(pause.max(least)).await;
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// Adds to each replacement that is not Ready the cause of its delay. The reaped pods were deleted
/// at about `began`.
async fn explain(cluster: &Cluster, workloads: &mut Workloads<'_>, began: Instant) {
    stream::iter(workloads.values_mut())
        .for_each_concurrent(MAX_IN_FLIGHT, |workload| workload.explain(cluster))
        .await;
    let mut late = workloads
        .values_mut()
        .flat_map(Workload::late)
        .filter(|(pod, _)| pod.volumes().next().is_some())
        .peekable();
    if late.peek().is_none() {
        return;
    }
    let attachments = cluster.attachments().await.unwrap_or_default();
    let ago = human_duration(SignedDuration::from_secs(
        began.elapsed().as_secs().cast_signed(),
    ));
    for (pod, replacement) in late {
        let node = pod.node.as_deref().unwrap_or_default();
        for attachment in attachments.get(node).into_iter().flatten() {
            if let Some(attached) = &attachment.volume
                && pod.volumes().any(|volume| volume.name == *attached)
            {
                replacement.add(&format!(
                    "{attached} is still attached to {node}, {ago} after the pod went"
                ));
            }
        }
    }
}

impl<'a> Workload<'a> {
    fn late(&mut self) -> impl Iterator<Item = &mut (&'a PodFacts, Replacement)> {
        self.pods
            .iter_mut()
            .filter(|(_, replacement)| !settled(replacement) && replacement.state != State::Unknown)
    }

    /// Returns the earliest time at which the deletion of one of the workload's pods was requested,
    /// minus the allowance for clock skew. From then on the controller may have created
    /// replacements.
    fn evicted(&self) -> Option<Timestamp> {
        let requested =
            |pod: &PodFacts| pod.deletion_requested().unwrap_or(pod.deletion_deadline());
        self.pods
            .iter()
            .map(|(pod, _)| requested(pod))
            .min()?
            .checked_sub(CLOCK_SKEW)
            .ok()
    }

    async fn look(&mut self, cluster: &Cluster) {
        let in_time = timeout(LONGEST_PAUSE, cluster.successors(self.pods[0].0)).await;
        let looked = in_time.unwrap_or(Err(Failure::Timeout(LONGEST_PAUSE)));
        let may_change = !looked.as_ref().is_err_and(Failure::forbids);
        let (mut pods, missing) = match looked {
            Ok(pods) => (pods, Replacement::without_pod(State::Pending, NOT_MADE)),
            Err(failure) => {
                let cause = format!("it could not be looked for: {failure}");
                let unknown = Replacement::without_pod(State::Unknown, cause);
                (Vec::new(), unknown)
            }
        };
        pods.retain(RawPod::counts);
        self.present = pods.len();
        let evicted = self.evicted();
        pods.retain(|pod| pod.metadata.creation_timestamp >= evicted);
        // Pods that were created before the eviction come last: only the allowance for clock skew
        // admits them.
        let requested = evicted.and_then(|evicted| evicted.checked_add(CLOCK_SKEW).ok());
        pods.sort_by_key(|RawPod { metadata, .. }| {
            let created = metadata.creation_timestamp;
            (created < requested, created, metadata.name.clone())
        });
        let mut pods = pods.into_iter().map(RawPod::into_replacement);
        for (_, replacement) in &mut self.pods {
            *replacement = pods.next().unwrap_or_else(|| missing.clone());
        }
        self.open = may_change && !self.pods.iter().all(|(_, found)| settled(found));
    }

    /// Adds the cause why the controller has not created a pod, and the newest Warning since the
    /// eviction.
    async fn explain(&mut self, cluster: &Cluster) {
        let evicted = self.evicted();
        let is_missing = |replacement: &Replacement| {
            replacement.state == State::Pending && replacement.uid.is_none()
        };
        if self.pods.iter().any(|(_, found)| is_missing(found)) {
            let why = cluster
                .missing(self.pods[0].0, self.present)
                .await
                .unwrap_or_else(|failure| {
                    let cause = format!("{NOT_MADE}: its controller could not be read: {failure}");
                    Replacement::without_pod(State::Pending, cause)
                });
            for (_, found) in &mut self.pods {
                if is_missing(found) {
                    *found = why.clone();
                }
            }
        }
        // Replacements that were not created come last and share their controller's Warning, so
        // remembering one Warning avoids a second reading.
        let mut last = (Uid::default(), None);
        for (pod, replacement) in self.late() {
            let about = replacement.uid.clone();
            let about = about.unwrap_or_else(|| Reference::controller(pod).uid);
            if last.0 != about {
                let warning = cluster.last_warning(&pod.namespace, &about).await;
                last = (about, warning);
            }
            if let Some((at, text)) = &last.1
                && Some(*at) >= evicted
            {
                replacement.add(&format!("an Event says: {text}"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
