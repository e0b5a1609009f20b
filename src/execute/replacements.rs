//! Waiting for the replacements of what was reaped. It only reads, and changes no outcome.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, stream};
use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, timeout};

use crate::{
    cluster::{Cluster, Failure, MAX_IN_FLIGHT, Reference},
    facts::{CLOCK_SKEW, PodFacts, Uid},
    kubernetes::{NOT_MADE, RawPod},
    outcome::{Replacement, ReplacementState as State},
    stop::Stop,
    words::spoken,
};

/// The first pause between two rounds, and the longest. The longest also limits a look at one workload, for which the round
/// waits.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// The least pause for each workload, so that the API server is asked at most 50 times a second.
const PAUSE_EACH: Duration = Duration::from_millis(20);
/// How long asking for causes may take at the end: the report waits for it.
const CAUSES_LIMIT: Duration = Duration::from_secs(10);

/// Reaped pods that one request asks about, each with what became of its replacement.
#[derive(Default)]
struct Workload<'a> {
    pods: Vec<(&'a PodFacts, Replacement)>,
    /// How many pods its controller has now, where it gives each a new name.
    has: usize,
    /// Whether another look may show more.
    open: bool,
}

/// By the controller's UID and the labels of its pods, which tell the indexes of a Job apart, or by the UID of the pod where
/// it is asked for by name.
type Workloads<'a> = BTreeMap<(&'a str, &'a str), Workload<'a>>;

/// Looks for `wait`, or until the run has to end, how far the replacements of `reaped` have come: by UID of the reaped pod.
/// Tells `progress` how many are settled.
pub async fn replacements(
    cluster: &Cluster,
    stop: &Stop,
    reaped: &[&PodFacts],
    wait: Duration,
    progress: &dyn Fn(usize),
) -> BTreeMap<Uid, Replacement> {
    if wait.is_zero() || reaped.is_empty() {
        return BTreeMap::new();
    }
    tracing::info!(
        "Waiting at most {} s for {} replacements to come up",
        wait.as_secs(),
        reaped.len()
    );
    let began = Instant::now();
    let (mut known, mut workloads) = (Vec::new(), Workloads::new());
    for &pod in reaped {
        let (state, cause) = match (&pod.controller, &pod.owner) {
            (None, _) => (State::None, "it has no controller that would start another"),
            (_, Some(it)) if it.kind == "DaemonSet" => (State::Pending, "it waits for its node"),
            _ => (State::Unknown, "it was not looked for"),
        };
        let siblings = pod.siblings.as_deref().zip(pod.controller.as_ref());
        let of = siblings.map_or((&*pod.uid, ""), |(labels, it)| (&it.uid, labels));
        let pods = match state {
            State::Unknown => &mut workloads.entry(of).or_default().pods,
            _ => &mut known,
        };
        pods.push((pod, Replacement::without_pod(state, cause)));
    }
    tokio::select! {
        biased;
        _ = stop.stopped() => {}
        // What was found before a limit was reached is kept.
        () = async {
            let _ = timeout(wait, rounds(cluster, &mut workloads, progress)).await;
            let _ = timeout(CAUSES_LIMIT, explain(cluster, &mut workloads, began)).await;
        } => {}
    }
    let found = workloads
        .into_values()
        .flat_map(|workload| workload.pods)
        .chain(known);
    found.map(|(pod, found)| (pod.uid.clone(), found)).collect()
}

/// Whether there is nothing more to wait for.
fn settled(found: &Replacement) -> bool {
    matches!(found.state, State::Back | State::None)
}

/// Looks at all workloads, round by round, until nothing is open in two rounds one after the other: a container that
/// crashes is Ready in between, where it has no probe.
async fn rounds(cluster: &Cluster, workloads: &mut Workloads<'_>, progress: &dyn Fn(usize)) {
    let (mut pause, longest) = PAUSES;
    let least = PAUSE_EACH * u32::try_from(workloads.len()).unwrap_or(u32::MAX);
    let mut was_open = true;
    while !workloads.is_empty() {
        let looks = stream::iter(workloads.values_mut());
        looks
            .for_each_concurrent(MAX_IN_FLIGHT, |workload| workload.look(cluster))
            .await;
        let found = workloads.values().flat_map(|workload| &workload.pods);
        progress(found.filter(|(_, found)| settled(found)).count());
        let open = workloads.values().any(|workload| workload.open);
        if !open && !was_open {
            break;
        }
        was_open = open;
        tokio::time::sleep(pause.max(least)).await;
        pause = longest.min(2 * pause);
    }
}

/// Adds what holds up each replacement that is not back. The pods are gone since `began`.
async fn explain(cluster: &Cluster, workloads: &mut Workloads<'_>, began: Instant) {
    let mut open = workloads
        .values_mut()
        .filter(|workload| workload.open)
        .collect_vec();
    let looks = stream::iter(&mut open);
    looks
        .for_each_concurrent(MAX_IN_FLIGHT, |workload| workload.explain(cluster))
        .await;
    let mut late = open.into_iter().flat_map(Workload::late).collect_vec();
    late.retain(|(pod, _)| pod.volumes().next().is_some());
    if late.is_empty() {
        return;
    }
    let on = cluster.attachments().await.unwrap_or_default();
    let ago = spoken(SignedDuration::from_secs(
        began.elapsed().as_secs().cast_signed(),
    ));
    for (pod, found) in late {
        let node = pod.node.as_deref().unwrap_or_default();
        for attachment in on.get(node).into_iter().flatten() {
            if let Some(there) = &attachment.volume
                && pod.volumes().any(|volume| volume.name == *there)
            {
                found.add(&format!(
                    "{there} is still attached to {node}, {ago} after the pod went"
                ));
            }
        }
    }
}

impl<'a> Workload<'a> {
    /// The replacements that are not back and may still come.
    fn late(&mut self) -> impl Iterator<Item = &mut (&'a PodFacts, Replacement)> {
        self.pods
            .iter_mut()
            .filter(|(_, found)| !settled(found) && found.state != State::Unknown)
    }

    /// When the first of its pods was asked to go. From then on their controller may have made others.
    fn evicted(&self) -> Option<Timestamp> {
        let asked = |pod: &PodFacts| pod.deletion_requested().unwrap_or(pod.deletion_deadline);
        self.pods
            .iter()
            .map(|(pod, _)| asked(pod))
            .min()?
            .checked_sub(CLOCK_SKEW)
            .ok()
    }

    async fn look(&mut self, cluster: &Cluster) {
        let looked = timeout(PAUSES.1, cluster.successors(self.pods[0].0)).await;
        let looked = looked.unwrap_or(Err(Failure::Timeout(PAUSES.1)));
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
        self.has = pods.len();
        let evicted = self.evicted();
        pods.retain(|pod| pod.metadata.creation_timestamp >= evicted);
        // A pod from before the eviction, which only the allowance for clock skew lets in, counts last.
        let asked = evicted.and_then(|evicted| evicted.checked_add(CLOCK_SKEW).ok());
        pods.sort_by_key(|RawPod { metadata: it, .. }| {
            (
                it.creation_timestamp < asked,
                it.creation_timestamp,
                it.name.clone(),
            )
        });
        let mut pods = pods.into_iter().map(RawPod::into_replacement);
        for (_, found) in &mut self.pods {
            *found = pods.next().unwrap_or_else(|| missing.clone());
        }
        self.open = may_change && !self.pods.iter().all(|(_, found)| settled(found));
    }

    /// Adds why the controller has not made a pod, and the newest Warning since the eviction.
    async fn explain(&mut self, cluster: &Cluster) {
        let evicted = self.evicted();
        let missing = |found: &Replacement| found.state == State::Pending && found.uid.is_none();
        if self.pods.iter().any(|(_, found)| missing(found)) {
            let why = cluster
                .missing(self.pods[0].0, self.has)
                .await
                .unwrap_or_else(|failure| {
                    let cause = format!("{NOT_MADE}: its controller could not be read: {failure}");
                    Replacement::without_pod(State::Pending, cause)
                });
            for (_, found) in self.pods.iter_mut().filter(|(_, found)| missing(found)) {
                *found = why.clone();
            }
        }
        // Pods that are not made come last, so that the Warning about their controller is read once.
        let mut last = (Uid::default(), None);
        for (pod, found) in self.late() {
            let about = found.uid.clone();
            let about = about.unwrap_or_else(|| Reference::controller(pod).uid);
            if last.0 != about {
                let warning = cluster.last_warning(&pod.namespace, &about).await;
                last = (about, warning);
            }
            if let Some((at, says)) = &last.1
                && Some(*at) >= evicted
            {
                found.add(&format!("an Event says: {says}"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
