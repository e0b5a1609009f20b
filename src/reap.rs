//! One run, from facts to report. The steps are those of the design, in order.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use futures_util::{StreamExt, stream};

use crate::{
    cluster::{Cluster, ConnectError, Failure, MAX_IN_FLIGHT, NodeRow, Scan, WriteMode},
    decide::{decide, needs_claims},
    execute::execute,
    facts::{Census, ClaimState, ClusterFacts, NodeRead, PodFacts, ReadError, Ready, Unread},
    limits::{Judged, Plan},
    objects::RawPod,
    outcome::Outcome,
    prompt,
    report::Report,
    settings::{Mode, Settings, Task},
    snapshot,
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
    #[error("ended by {0} before anything was decided; nothing was deleted")]
    Stopped(&'static str),
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
            let facts = read_snapshot(snapshot, &wanted)?;
            let plan = plan(settings, &facts);
            Ok(Report::new(settings, &facts, &plan, &BTreeMap::new()))
        }
        Task::Reap { target, mode } => {
            let (cluster, facts, plan) = tokio::select! {
                read = async {
                    let cluster = Cluster::connect(target, stop.clone(), settings.leaf_selector.clone()).await?;
                    let (facts, plan) = read_cluster(settings, &cluster).await?;
                    Ok::<_, CouldNotRun>((cluster, facts, plan))
                } => read?,
                why = stop.stopped() => return Err(CouldNotRun::Stopped(why)),
            };
            let outcomes = act(settings, &cluster, stop, *mode, &facts, &plan).await;
            Ok(Report::new(settings, &facts, &plan, &outcomes))
        }
    }
}

/// Decides every pod, then puts the limits of the run on the verdicts.
fn plan(settings: &Settings, facts: &ClusterFacts) -> Plan {
    let judge = |pod: &PodFacts| Judged {
        pod: pod.clone(),
        reason: decide(facts.now, &settings.policy, facts.node_of(pod), pod),
    };
    Plan::new(facts.pods.iter().map(judge).collect(), &facts.census, &settings.limits)
}

fn read_snapshot(path: &Path, wanted: &snapshot::Wanted<'_>) -> Result<ClusterFacts, CouldNotRun> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    let named = |cause: &dyn std::fmt::Display| {
        CouldNotRun::Source(format!("--snapshot {}: {cause}", path.display()))
    };
    read.map_err(|error| named(&error))?;
    snapshot::read(&text, wanted).map_err(|error| named(&error))
}

/// Steps 1 to 5 on a cluster.
async fn read_cluster(settings: &Settings, cluster: &Cluster) -> Result<(ClusterFacts, Plan), CouldNotRun> {
    // 1. Find the nodes that are not plainly Ready.
    let scan = cluster.scan().await.map_err(|failure| could_not("list nodes", &failure))?;
    let scan = scan.ok_or_else(|| {
        let why =
            "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted";
        CouldNotRun::Source(why.to_owned())
    })?;
    let mut facts = ClusterFacts {
        now: scan.now,
        nodes: BTreeMap::new(),
        pods: Vec::new(),
        census: Census::NotNeeded,
        attachments: BTreeMap::new(),
        node_count: scan.rows.len(),
        errors: Vec::new(),
        unseen: Vec::new(),
    };
    let suspects = scan.rows.iter().filter(|row| !row.ready).map(|row| row.name.clone()).collect::<Vec<_>>();
    if suspects.is_empty() && !settings.all {
        return Ok((facts, Plan::new(Vec::new(), &Census::NotNeeded, &settings.limits)));
    }

    // 2. Read those nodes whole, and list their pods; what else the rules ask about comes along.
    let (raw_pods, namespaces, attachments) = tokio::join!(
        read_nodes_and_pods(settings, cluster, &suspects, &mut facts.nodes),
        cluster.namespaces(),
        cluster.attachments(),
    );
    let (raw_pods, errors) = raw_pods?;
    facts.errors.extend(errors);
    match attachments {
        Ok(attachments) => facts.attachments = attachments,
        Err(failure) => facts.error("VolumeAttachments", &failure),
    }
    if let Err(failure) = &namespaces {
        facts.error("namespaces", failure);
    }
    let opted_out = |namespace: &str| match &namespaces {
        Ok(known) => known.get(namespace).copied().ok_or_else(|| Unread("it was not in the list".to_owned())),
        Err(failure) => Err(Unread(failure.to_string())),
    };
    let mut pods = BTreeMap::new();
    for raw in raw_pods {
        let namespace = raw.metadata.namespace.clone().unwrap_or_default();
        if !settings.namespaces.matches(&namespace) {
            continue;
        }
        let what = format!("pod {namespace}/{}", raw.metadata.name.clone().unwrap_or_default());
        match raw.into_facts(opted_out(&namespace)) {
            Ok(pod) => {
                pods.insert(pod.uid.clone(), pod);
            }
            Err(cause) => facts.errors.push(ReadError { what, cause }),
        }
    }
    facts.pods = pods.into_values().collect();
    if settings.all {
        read_further_nodes(cluster, &mut facts).await;
    } else {
        // Nodes that came back between the two looks.
        let on_ready_node = |pod: &PodFacts| {
            facts.node_of(pod).and_then(NodeRead::known).is_some_and(|node| node.ready == Ready::True)
        };
        let (_, pods) = facts.pods.iter().cloned().partition::<Vec<_>, _>(on_ready_node);
        facts.pods = pods;
    }
    log_namespaces(&facts.pods);

    // 3. Look up the claims of those that the rules let through so far; count the nodes if the breaker has to judge.
    let judged = !facts.pods.is_empty();
    let (claims, census) = tokio::join!(
        look_up_claims(settings, cluster, &facts),
        take_census(cluster, &scan, suspects.len(), judged)
    );
    for ((pod, claim), state) in claims {
        let pod = &mut facts.pods[pod];
        if let ClaimState::Unread(Unread(cause)) = &state {
            let what = format!("claim {}/{}", pod.namespace, pod.claims[claim].name);
            facts.errors.push(ReadError { what, cause: cause.clone() });
        }
        pod.claims[claim].state = state;
    }
    match census {
        Ok(census) => facts.census = census,
        Err(failure) => {
            facts.error("all nodes, for the breaker", &failure);
            facts.census = Census::Unread(Unread(failure.to_string()));
        }
    }
    facts.errors.sort();

    // 4. and 5. Decide each pod, then limit the run.
    let plan = plan(settings, &facts);
    Ok((facts, plan))
}

/// Reads `suspects` into `nodes`, and lists their Terminating pods, or with `--all` everybody's.
async fn read_nodes_and_pods(
    settings: &Settings,
    cluster: &Cluster,
    suspects: &[String],
    nodes: &mut BTreeMap<String, NodeRead>,
) -> Result<(Vec<RawPod>, Vec<ReadError>), CouldNotRun> {
    let one = |name: &String| {
        let name = name.clone();
        async move {
            if settings.all {
                (cluster.node(&name).await, None, name)
            } else {
                let (node, pods) = tokio::join!(cluster.node(&name), cluster.terminating_pods(Some(&name)));
                (node, Some(pods), name)
            }
        }
    };
    let looks = stream::iter(suspects.iter().map(one)).buffer_unordered(MAX_IN_FLIGHT).collect::<Vec<_>>();
    let everybody = async { if settings.all { Some(cluster.terminating_pods(None).await) } else { None } };
    let (looks, everybody) = tokio::join!(looks, everybody);
    let mut lists = Vec::new();
    let mut errors = Vec::new();
    lists.extend(everybody.map(|pods| ("pods".to_owned(), pods)));
    for (node, pods, name) in looks {
        let read = match node {
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
        lists.extend(pods.map(|pods| (format!("pods of node {name}"), pods)));
        nodes.insert(name, read);
    }
    let mut raw = Vec::new();
    for (what, pods) in lists {
        match pods {
            Ok(pods) => {
                raw.extend(pods.items);
                errors.extend(pods.odd.into_iter().map(|cause| ReadError { what: what.clone(), cause }));
            }
            Err(failure) if failure.forbids() || settings.all => {
                return Err(could_not("list pods", &failure));
            }
            Err(failure) => errors.push(ReadError { what, cause: failure.to_string() }),
        }
    }
    Ok((raw, errors))
}

/// With `--all`: the nodes of pods that are not on a suspect, since a node may be opted out, or be gone.
async fn read_further_nodes(cluster: &Cluster, facts: &mut ClusterFacts) {
    let mut names = facts.pods.iter().filter_map(|pod| pod.node.clone()).collect::<Vec<_>>();
    names.sort();
    names.dedup();
    names.retain(|name| !facts.nodes.contains_key(name));
    let looks = stream::iter(names)
        .map(|name| async move { (cluster.node(&name).await, name) })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect::<Vec<_>>()
        .await;
    for (look, name) in looks {
        let read = match look {
            Ok(Some(look)) => NodeRead::Known(look.facts),
            Ok(None) => NodeRead::Gone,
            Err(failure) => {
                facts.error(&format!("node {name}"), &failure);
                NodeRead::Unread(Unread(failure.to_string()))
            }
        };
        facts.nodes.insert(name, read);
    }
}

type ClaimIndex = (usize, usize);

async fn look_up_claims(
    settings: &Settings,
    cluster: &Cluster,
    facts: &ClusterFacts,
) -> Vec<(ClaimIndex, ClaimState)> {
    let wanted = facts
        .pods
        .iter()
        .enumerate()
        .filter(|(_, pod)| needs_claims(facts.now, &settings.policy, facts.node_of(pod), pod))
        .flat_map(|(at, pod)| {
            pod.claims.iter().enumerate().map(move |(claim, facts)| ((at, claim), pod, facts))
        });
    stream::iter(wanted)
        .map(|(index, pod, claim)| async move { (index, cluster.claim(&pod.namespace, &claim.name).await) })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect()
        .await
}

/// Counts the real nodes where the rows leave the breaker something to judge: when more than two are not Ready, or no
/// Ready one is known to be real (a row does not say so).
async fn take_census(
    cluster: &Cluster,
    scan: &Scan,
    suspects: usize,
    judged: bool,
) -> Result<Census, Failure> {
    if !judged {
        return Ok(Census::NotNeeded);
    }
    if suspects <= crate::limits::FEW_NODES
        && let Some(NodeRow { name, .. }) = scan.rows.iter().find(|row| row.ready && !row.looks_like_leaf())
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
    let pods = plan.reaps().collect::<Vec<_>>();
    let would_delete = || pods.iter().map(|pod| (pod.uid.clone(), Outcome::WouldDelete)).collect();
    let write = match mode {
        Mode::ClientDryRun => return would_delete(),
        Mode::ServerDryRun => WriteMode::DryRun,
        Mode::Delete { ask: true } if !pods.is_empty() && !prompt::confirm(&pods, facts.now, stop).await => {
            tracing::info!("Nothing was deleted: there was no yes");
            let interrupted = |why: &'static str| {
                pods.iter().map(|pod| (pod.uid.clone(), Outcome::Interrupted(why.to_owned()))).collect()
            };
            return stop.reason().map_or_else(would_delete, interrupted);
        }
        Mode::Delete { .. } => WriteMode::Real,
    };
    execute(cluster, stop, &settings.policy, write, facts, &pods).await
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

fn could_not(what: &str, failure: &Failure) -> CouldNotRun {
    CouldNotRun::Source(match failure.code() {
        Some(401) => {
            format!("could not {what}: {failure}; the credentials are not accepted (--kubeconfig, --context)")
        }
        Some(403) => format!("could not {what}: {failure}; grant that right to the account that runs this"),
        _ => format!("could not {what}: {failure}"),
    })
}

impl ClusterFacts {
    fn error(&mut self, what: &str, failure: &Failure) {
        self.errors.push(ReadError { what: what.to_owned(), cause: failure.to_string() });
    }
}
