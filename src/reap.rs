//! One run, from facts to report. The steps are those of the design, in order.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use futures_util::{StreamExt, stream};
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{
    cluster::{Cluster, ConnectError, Failure, MAX_IN_FLIGHT, PodsOf, Scan, WriteMode},
    decide::{decide, needs_claims},
    events::{self, Story},
    execute::execute,
    facts::{
        Census, ClaimState, ClusterFacts, NodeRead, PodFacts, Read, ReadError, Ready, Unread, on_ready_node,
    },
    limits::{Judged, Plan},
    objects::RawPod,
    outcome::Outcome,
    prompt,
    report::Report,
    settings::{Mode, Settings, Task},
    snapshot::{self, Pods, Saved, SnapshotError},
    stop::Stop,
};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CouldNotRun {
    /// The user asked for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The source cannot be read.
    #[error("{0}")]
    Source(String),
    /// The run had to end before there was a plan.
    #[error(
        "ended by {0} before anything was decided; nothing was deleted; run it again, with a longer --deadline if that was it"
    )]
    Stopped(&'static str),
    /// Nothing proved that the guard is in force.
    #[error("--require-guard: {0}; nothing was deleted")]
    Unguarded(String),
}

impl From<ConnectError> for CouldNotRun {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Usage(message) => Self::Usage(message),
            ConnectError::Unusable(message) => Self::Source(message),
        }
    }
}

/// Runs as `settings` say, until `stop` says otherwise.
pub async fn run(settings: &Settings, stop: &Stop) -> Result<Report, CouldNotRun> {
    tracing::info!(
        reap_older_than = %crate::decide::spoken(settings.policy.reap_older_than),
        "Looking for stuck Terminating pods; namespaces: {}",
        settings.namespaces
    );
    match &settings.task {
        Task::Audit { snapshot, now } => {
            let wanted = snapshot::Wanted {
                now: *now,
                namespaces: &settings.namespaces,
                leaf_selector: settings.leaf_selector.as_ref(),
                all: settings.all,
            };
            let saved = tokio::select! {
                saved = read_snapshot(snapshot, Pods::Terminating) => saved?,
                why = stop.stopped() => return Err(CouldNotRun::Stopped(why)),
            };
            let mut facts = saved.into_facts(&wanted).map_err(|error| in_snapshot(snapshot, &error))?;
            let plan = plan(settings, &mut facts);
            Ok(Report::new(settings, &facts, &plan, &BTreeMap::new()))
        }
        Task::Reap { target, mode } => {
            let connect = Cluster::connect(target, stop.clone(), settings.leaf_selector.clone());
            let cluster = tokio::select! {
                cluster = connect => cluster?,
                why = stop.stopped() => return Err(CouldNotRun::Stopped(why)),
            };
            run_on(&cluster, settings, *mode, stop).await
        }
    }
}

/// Runs on a cluster that is connected already.
pub async fn run_on(
    cluster: &Cluster,
    settings: &Settings,
    mode: Mode,
    stop: &Stop,
) -> Result<Report, CouldNotRun> {
    // Beside the reading: nothing is written before both are done.
    let read_guarded =
        async { tokio::try_join!(read_cluster(settings, cluster), guard(settings, cluster, mode)) };
    let ((facts, plan), ()) = tokio::select! {
        read = read_guarded => read?,
        why = stop.stopped() => return Err(CouldNotRun::Stopped(why)),
    };
    let outcomes = act(settings, cluster, stop, mode, &facts, &plan).await;
    Ok(Report::new(settings, &facts, &plan, &outcomes))
}

/// Has the guard prove itself, where it is required and something may be written.
async fn guard(settings: &Settings, cluster: &Cluster, mode: Mode) -> Result<(), CouldNotRun> {
    if !settings.require_guard || mode == Mode::ClientDryRun {
        return Ok(());
    }
    cluster.prove_guard().await.map_err(CouldNotRun::Unguarded)?;
    tracing::info!("The guard is proved: it refuses this account the delete of a running pod");
    Ok(())
}

/// Decides every pod, then puts the limits of the run on the verdicts. The pods go over into the plan: of tens of
/// thousands there must be no second copy.
pub(crate) fn plan(settings: &Settings, facts: &mut ClusterFacts) -> Plan {
    let pods = std::mem::take(&mut facts.pods).into_iter().map(|pod| {
        let reason = decide(facts.now, &settings.policy, facts.node_of(&pod), &pod);
        Judged { pod, reason }
    });
    let judged = pods.collect();
    Plan::new(judged, &facts.census, &settings.limits)
}

/// Reads a snapshot, in a thread of its own: standard input may never end.
pub(crate) async fn read_snapshot(path: &Path, pods: Pods) -> Result<Saved, CouldNotRun> {
    let file = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        if file == Path::new("-") {
            Saved::read(std::io::stdin(), pods)
        } else {
            Saved::read(std::fs::File::open(file).map_err(SnapshotError::Unreadable)?, pods)
        }
    });
    let saved = read.await.map_err(|error| in_snapshot(path, &error))?;
    saved.map_err(|error| in_snapshot(path, &error))
}

pub(crate) fn in_snapshot(path: &Path, cause: &dyn std::fmt::Display) -> CouldNotRun {
    CouldNotRun::Source(format!("--snapshot {}: {cause}", path.display()))
}

/// Steps 1 to 5 on a cluster: what was read, and what would be done.
pub async fn read_cluster(
    settings: &Settings,
    cluster: &Cluster,
) -> Result<(ClusterFacts, Plan), CouldNotRun> {
    // 1. Find the nodes that are not plainly Ready.
    let scan = scan(cluster).await?;
    let mut facts = ClusterFacts::before_any_look(&scan)?;
    let suspects = &scan.not_ready;
    if suspects.is_empty() && !settings.all {
        return Ok((facts, Plan::new(Vec::new(), &Census::NotNeeded, &settings.limits)));
    }

    // 2. Read those nodes whole, and list their pods; what else the rules ask about comes along.
    let ((nodes, unread), pods, namespaces, attachments) = tokio::join!(
        read_nodes(cluster, suspects.iter().cloned()),
        list_pods(cluster, suspects, settings.all),
        cluster.namespaces(),
        cluster.attachments(),
    );
    facts.nodes = nodes;
    facts.errors.extend(unread);
    let (raw_pods, unread) = pods?;
    facts.errors.extend(unread);
    match attachments {
        Ok(attachments) => facts.attachments = attachments,
        Err(failure) => facts.error("VolumeAttachments", &failure),
    }
    if let Err(failure) = &namespaces {
        facts.error("namespaces", failure);
    }
    let mut pods = BTreeMap::new();
    for raw in raw_pods {
        let namespace = raw.metadata.namespace.clone().unwrap_or_default();
        if !settings.namespaces.matches(&namespace) {
            continue;
        }
        let what = format!("pod {namespace}/{}", raw.metadata.name.clone().unwrap_or_default());
        match raw.into_facts(opted_out(&namespaces, &namespace)) {
            Ok(pod) => {
                pods.insert(pod.uid.clone(), pod);
            }
            Err(cause) => facts.errors.push(ReadError { what, cause }),
        }
    }
    facts.pods = pods.into_values().collect();
    if settings.all {
        // Those of pods on other nodes, since a node may be opted out, or be gone.
        let others = facts.pods.iter().filter_map(|pod| pod.node.clone());
        let others = others.filter(|name| !facts.nodes.contains_key(name)).collect::<BTreeSet<_>>();
        let (nodes, unread) = read_nodes(cluster, others).await;
        facts.nodes.extend(nodes);
        facts.errors.extend(unread);
    } else {
        // Not of nodes that came back between the two looks.
        facts.pods.retain(|pod| !on_ready_node(&facts.nodes, pod));
    }
    log_namespaces(&facts.pods);

    // 3. Look up the claims of those that the rules let through so far; count the nodes if the breaker has to judge.
    let judged = !facts.pods.is_empty();
    let (claims, census) =
        tokio::join!(look_up_claims(settings, cluster, &facts), take_census(cluster, &scan, judged));
    facts.take_claims(&claims);
    match census {
        Ok(census) => facts.census = census,
        Err(failure) => {
            facts.error("all nodes, for the breaker", &failure);
            facts.census = Census::Unread(Unread(failure.to_string()));
        }
    }
    facts.errors.sort();

    // 4. and 5. Decide each pod, then limit the run.
    let plan = plan(settings, &mut facts);
    Ok((facts, plan))
}

/// A cheap look over all nodes.
pub(crate) async fn scan(cluster: &Cluster) -> Result<Scan, CouldNotRun> {
    cluster.scan().await.map_err(|failure| could_not("list nodes", &failure))
}

/// Whether `namespace` is opted out, by the list of them.
pub(crate) fn opted_out(namespaces: &Result<BTreeMap<String, bool>, Failure>, namespace: &str) -> Read<bool> {
    match namespaces {
        Ok(known) => known.get(namespace).copied().ok_or_else(|| Unread("it was not in the list".to_owned())),
        Err(failure) => Err(Unread(failure.to_string())),
    }
}

type Nodes = BTreeMap<String, NodeRead>;

/// Reads nodes whole.
pub(crate) async fn read_nodes(
    cluster: &Cluster,
    names: impl IntoIterator<Item = String>,
) -> (Nodes, Vec<ReadError>) {
    let looks = stream::iter(names)
        .map(|name| async move { (cluster.node(&name).await, name) })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    let (mut nodes, mut errors) = (Nodes::new(), Vec::new());
    for (look, name) in looks {
        let read = match look {
            Ok(Some(look)) => {
                if let Err(Unread(cause)) = &look.facts.lease {
                    errors.push(ReadError { what: format!("lease of node {name}"), cause: cause.clone() });
                }
                NodeRead::Known(look.facts)
            }
            Ok(None) => NodeRead::Gone,
            Err(failure) => {
                errors.push(ReadError { what: format!("node {name}"), cause: failure.to_string() });
                NodeRead::Unread(Unread(failure.to_string()))
            }
        };
        nodes.insert(name, read);
    }
    (nodes, errors)
}

/// Lists the Terminating pods of `nodes`, or of everybody.
async fn list_pods(
    cluster: &Cluster,
    nodes: &[String],
    all: bool,
) -> Result<(Vec<RawPod>, Vec<ReadError>), CouldNotRun> {
    let mut places = nodes.iter().cloned().map(PodsOf::Node).collect::<BTreeSet<_>>();
    if all {
        let elsewhere = cluster.places_of_terminating_pods().await;
        places.extend(elsewhere.map_err(|failure| could_not("list pods", &failure))?);
    }
    let lists = stream::iter(places)
        .map(|place| async move { (cluster.terminating_pods(&place).await, place) })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    let (mut raw, mut errors) = (Vec::new(), Vec::new());
    for (pods, place) in lists {
        match pods {
            Ok(pods) => {
                raw.extend(pods.items);
                errors.extend(pods.odd.into_iter().map(|cause| ReadError { what: place.what(), cause }));
            }
            Err(failure) if failure.forbids() => return Err(could_not("list pods", &failure)),
            Err(failure) => errors.push(ReadError { what: place.what(), cause: failure.to_string() }),
        }
    }
    Ok((raw, errors))
}

/// Looks up each claim of the pods that the rules before the volume rules let through, by namespace and name.
pub(crate) async fn look_up_claims(
    settings: &Settings,
    cluster: &Cluster,
    facts: &ClusterFacts,
) -> BTreeMap<(String, String), ClaimState> {
    let candidates = facts
        .pods
        .iter()
        .filter(|pod| needs_claims(facts.now, &settings.policy, facts.node_of(pod), pod))
        .flat_map(|pod| pod.claims.iter().map(|claim| (pod.namespace.clone(), claim.name.clone())));
    // A claim may be several pods'.
    stream::iter(candidates.collect::<BTreeSet<_>>())
        .map(|(namespace, name)| async move {
            let state = cluster.claim(&namespace, &name).await;
            ((namespace, name), state)
        })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect()
        .await
}

/// Counts the real nodes where the rows leave the breaker something to judge: when more than two are not Ready, or no
/// Ready one is known to be real (a row does not say so).
async fn take_census(cluster: &Cluster, scan: &Scan, judged: bool) -> Result<Census, Failure> {
    if !judged {
        return Ok(Census::NotNeeded);
    }
    if scan.not_ready.len() <= crate::limits::FEW_NODES
        && let Some(name) = &scan.ready
        && let Ok(Some(look)) = cluster.node(name).await
        && look.facts.ready == Ready::True
        && look.facts.leaf.is_none()
    {
        return Ok(Census::NotNeeded);
    }
    cluster.census().await
}

/// Steps 6 and 7, as far as `mode` goes.
async fn act(
    settings: &Settings,
    cluster: &Cluster,
    stop: &Stop,
    mode: Mode,
    facts: &ClusterFacts,
    plan: &Plan,
) -> BTreeMap<String, Outcome> {
    let since = Instant::now();
    let pods = plan.reaps().collect::<Vec<_>>();
    let would_delete = || pods.iter().map(|pod| (pod.uid.clone(), Outcome::WouldDelete)).collect();
    let write = match mode {
        Mode::ClientDryRun => return would_delete(),
        Mode::ServerDryRun => WriteMode::DryRun,
        Mode::Delete { ask: true }
            if !pods.is_empty() && !prompt::confirm(&settings.task.place(), &pods, facts.now, stop).await =>
        {
            tracing::info!("Nothing was deleted: there was no yes");
            let interrupted = |why: &'static str| {
                pods.iter().map(|pod| (pod.uid.clone(), Outcome::Interrupted(why.to_owned()))).collect()
            };
            return stop.reason().map_or_else(would_delete, interrupted);
        }
        Mode::Delete { .. } => WriteMode::Real,
    };
    let outcomes = execute(cluster, stop, &settings.policy, write, facts, &pods).await;
    if write == WriteMode::Real && settings.events {
        let elapsed = SignedDuration::try_from(since.elapsed()).unwrap_or_default();
        let story = Story {
            facts,
            plan,
            outcomes: &outcomes,
            at: facts.now.saturating_add(elapsed).unwrap_or(facts.now),
        };
        events::write(cluster, stop, write, &story).await;
    }
    outcomes
}

fn log_namespaces(pods: &[PodFacts]) {
    let mut counts = BTreeMap::<_, usize>::new();
    for pod in pods {
        *counts.entry(pod.namespace.as_str()).or_default() += 1;
    }
    for (namespace, count) in counts {
        tracing::info!("Namespace {namespace}: {count} Terminating to judge");
    }
}

pub(crate) fn could_not(what: &str, failure: &Failure) -> CouldNotRun {
    CouldNotRun::Source(match failure.code() {
        Some(401) => {
            format!("could not {what}: {failure}; the credentials are not accepted (--kubeconfig, --context)")
        }
        Some(403) => format!("could not {what}: {failure}; grant that right to the account that runs this"),
        _ => format!(
            "could not {what}: {failure}; if `kubectl get nodes` fails too, it is the API server or the way to it"
        ),
    })
}

impl ClusterFacts {
    /// What is known after `scan` alone. It has to say what time it is.
    pub(crate) fn before_any_look(scan: &Scan) -> Result<Self, CouldNotRun> {
        let now = scan.now.ok_or_else(|| {
            let why = "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        Ok(Self {
            now,
            nodes: BTreeMap::new(),
            pods: Vec::new(),
            census: Census::NotNeeded,
            attachments: BTreeMap::new(),
            node_count: scan.nodes,
            errors: Vec::new(),
            unseen: Vec::new(),
        })
    }

    /// Puts what was found about claims where it belongs.
    pub(crate) fn take_claims(&mut self, claims: &BTreeMap<(String, String), ClaimState>) {
        for ((namespace, name), state) in claims {
            if let ClaimState::Unread(Unread(cause)) = state {
                let what = format!("claim {namespace}/{name}");
                self.errors.push(ReadError { what, cause: cause.clone() });
            }
        }
        for pod in &mut self.pods {
            for claim in &mut pod.claims {
                if let Some(state) = claims.get(&(pod.namespace.clone(), claim.name.clone())) {
                    claim.state = state.clone();
                }
            }
        }
    }

    pub(crate) fn error(&mut self, what: &str, failure: &Failure) {
        self.errors.push(ReadError { what: what.to_owned(), cause: failure.to_string() });
    }
}
