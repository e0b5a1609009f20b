//! Gathering from a cluster. The work grows with the failure, not with the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use futures_util::{FutureExt, StreamExt, stream};
use jiff::Timestamp;

use super::{Gathered, Wanted, Whole, facts_of, set_of};
use crate::cluster::{Cluster, Failure, Listed, MAX_IN_FLIGHT, PodsOf, Scan};
use crate::decide::{GiveUp, needs_claims};
use crate::exit::{CouldNotRun, Result};
use crate::facts::{
    Census, ClaimLook, ClaimState, ClusterFacts, Namespaces, NodeFacts, NodeRead, PodFacts,
    PodSummary, ReadError, Traits, Unread, opted_out,
};
use crate::kubernetes::RawPod;
use crate::limits::FEW_NODES;

/// Steps 1 to 3 of a run. `asked` is a Terminating pod that is judged in any case, wherever it is.
pub async fn gather(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    asked: Option<RawPod>,
) -> Result<Gathered> {
    // 1. Find the nodes that are not plainly Ready.
    let (scan, mut gathered) = scan(cluster).await?;
    let suspects = &scan.not_ready;
    if suspects.is_empty() && !wanted.all && asked.is_none() {
        return Ok(gathered);
    }

    // 2. Read those nodes whole, and list their pods; what else the rules ask about comes along.
    let (nodes, pods, namespaces, attachments) = tokio::join!(
        read_nodes(cluster, suspects.iter().cloned()),
        list_pods(cluster, wanted, &mut gathered.facts, suspects),
        cluster.namespaces(),
        cluster.attachments(),
    );
    let (mut pods, busy) = pods?;
    gathered.facts.nodes.extend(nodes);
    gathered.facts.unmatched_namespaces = namespaces
        .as_ref()
        .ok()
        .and_then(|known| wanted.unmatched(known));
    match attachments {
        Ok(attachments) => gathered.facts.attachments = attachments,
        Err(failure) => gathered.unread("VolumeAttachments", &failure),
    }
    let asked_uid = asked.as_ref().and_then(|pod| pod.metadata.uid.clone());
    let is_asked = |pod: &PodFacts| asked_uid.as_ref() == Some(&pod.uid);
    pods.retain(|pod| {
        pod.metadata
            .namespace
            .as_ref()
            .is_none_or(|name| wanted.namespaces.matches(name))
    });
    // As it was asked about: the list may show it as it was before.
    pods.retain(|pod| asked_uid.is_none() || pod.metadata.uid != asked_uid);
    pods.extend(asked);
    gathered.add_pods(pods, &namespaces);
    // A node may be opted out, or gone, though it was not looked at so far.
    let others = gathered
        .pods
        .iter()
        .filter(|pod| wanted.all || is_asked(pod));
    let others = others.filter_map(|pod| pod.node.clone());
    let others = others
        .filter(|name| !gathered.facts.nodes.contains_key(name))
        .collect::<BTreeSet<_>>();
    gathered
        .facts
        .nodes
        .extend(read_nodes(cluster, others).await);
    let Gathered { facts, pods } = &mut gathered;
    if !wanted.all {
        // Not of nodes that came back between the two looks.
        pods.retain(|pod| is_asked(pod) || !facts.on_ready_node(pod));
    }
    log_namespaces(pods);

    // 3. Look up the claims of those that the rules let through so far; count the nodes if the breaker has to judge.
    let judged = !pods.is_empty();
    let (claims, census) = tokio::join!(
        read_claims(cluster, wanted, &gathered, is_asked),
        take_census(cluster, &scan, gathered.facts.now, judged, &busy)
    );
    gathered.add_claims(&claims);
    ask_about_affinity(cluster, &mut gathered).await;
    ask_about_sets(cluster, wanted, &mut gathered).await;
    match census {
        Ok(counted) => (gathered.facts.census, gathered.facts.traits) = counted,
        Err(failure) => gathered.census_unread(&failure),
    }
    gathered.note_unread_nodes();
    Ok(gathered)
}

/// Every pod of the nodes `names`, those that Kubernetes would evict from a dead node as if their deletion had been asked
/// for; and what shows whether they would be missed. Their claims are looked up by [`look_up_claims`].
pub async fn gather_whole(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    names: &BTreeSet<String>,
) -> Result<Whole> {
    let (_, mut gathered) = scan(cluster).await?;
    let now = gathered.facts.now;
    let (nodes, standings, namespaces) = tokio::join!(
        read_nodes(cluster, names.iter().cloned()),
        cluster.standings(now),
        cluster.namespaces(),
    );
    gathered.facts.nodes.extend(nodes);
    let (mut standings, _) = standings.unwrap_or_else(|failure| {
        gathered.census_unread(&failure);
        Default::default()
    });
    for (node, standing) in standings
        .iter_mut()
        .filter(|(_, standing)| standing.may_be_put_away(now))
    {
        let pods = cluster
            .pods_of(node)
            .await
            .and_then(Listed::whole)
            .map_err(could_not("list pods"))?;
        standing.terminating = pods.iter().any(|pod| pod.metadata.terminating());
    }
    let (mut evicted, mut summaries) = (Vec::new(), Vec::new());
    for node in names {
        let pods = cluster
            .pods_of(node)
            .await
            .map_err(could_not("list pods"))?;
        pods.malformed
            .iter()
            .for_each(|cause| gathered.unread(&format!("pods of node {node}"), cause));
        for pod in pods.items {
            let summary = pod.summary();
            if summary.evicted() && wanted.namespaces.matches(&summary.namespace) {
                evicted.push(pod.deleted_by(Timestamp::MIN));
            }
            summaries.push(summary);
        }
    }
    gathered.add_pods(evicted, &namespaces);
    // Other replicas are where these have theirs: in the same namespaces.
    let concerned = summaries
        .iter()
        .filter(|pod| pod.serves && pod.workload.is_some());
    for namespace in concerned
        .map(|pod| pod.namespace.clone())
        .collect::<BTreeSet<_>>()
    {
        let others = cluster
            .summaries(&namespace)
            .await
            .map_err(could_not("list pods"))?;
        others
            .malformed
            .iter()
            .for_each(|cause| gathered.unread(&format!("pods of {namespace}"), cause));
        let elsewhere =
            |pod: &PodSummary| pod.node.as_ref().is_none_or(|node| !names.contains(node));
        summaries.extend(others.items.into_iter().filter(elsewhere));
    }
    gathered.note_unread_nodes();
    Ok(Whole {
        gathered,
        standings,
        summaries,
    })
}

/// Step 3 alone, for pods whose nodes were altered since they were read.
pub async fn look_up_claims(cluster: &Cluster, wanted: &Wanted<'_>, gathered: &mut Gathered) {
    let claims = read_claims(cluster, wanted, gathered, |_| false).await;
    gathered.add_claims(&claims);
    ask_about_affinity(cluster, gathered).await;
    ask_about_sets(cluster, wanted, gathered).await;
}

/// Asks which real nodes satisfy the volumes' affinity, where the rules need that: one request a distinct term.
async fn ask_about_affinity(cluster: &Cluster, gathered: &mut Gathered) {
    let ask = |selector: String| async move { cluster.real_nodes(&selector).await };
    let answers = each(gathered.affinity_to_ask(), ask).await;
    let answers = answers.into_iter().map(|(selector, nodes)| {
        let nodes = nodes.map_err(|failure| {
            // A refused selector will be refused again: nothing failed to be read.
            if failure.code() != Some(400) {
                gathered.unread(
                    &format!("nodes that a volume allows ({selector})"),
                    &failure,
                );
            }
            Unread(failure.to_string())
        });
        (selector, nodes)
    });
    let answers = answers.collect();
    gathered.note_affinity(&answers);
    gathered.facts.errors.sort();
}

/// Asks what has to be known of pods whose claims may go with them: one request a `StatefulSet`, and one a namespace where
/// that is because they are scratch.
async fn ask_about_sets(cluster: &Cluster, wanted: &Wanted<'_>, gathered: &mut Gathered) {
    let (mut keys, mut needed, mut namespaces) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (asks, pod) in gathered.with_claims_to_give_up(wanted.policy) {
        keys.extend(set_of(pod));
        if asks == GiveUp::Declared {
            needed.extend(set_of(pod));
            namespaces.insert(pod.namespace.clone());
        }
    }
    let owners = gathered.pods.iter().filter(|pod| pod.owns_a_claim());
    needed.extend(owners.filter_map(set_of));
    keys.extend(needed.iter().cloned());
    let mut unread = |what: String, failure: Failure| {
        let lacks = if failure.forbids() {
            "; cronjob/components/answers grants that right"
        } else {
            ""
        };
        let cause = format!("{failure}{lacks}");
        gathered.unread(&what, &cause);
        Unread(cause)
    };
    let mut users = BTreeMap::new();
    for namespace in namespaces {
        let pods = cluster.summaries(&namespace).await.and_then(Listed::whole);
        let pods = pods.map_err(|failure| unread(format!("pods of {namespace}"), failure));
        users.insert(namespace, pods);
    }
    let ask = |(namespace, name): (String, String)| async move {
        cluster.stateful_set(&namespace, &name).await
    };
    let sets = each(keys, ask)
        .await
        .into_iter()
        .filter_map(|((namespace, name), set)| {
            let key = (namespace, name);
            // Where a person is only to be asked, they are told that it could not be read.
            let set = set.transpose()?.map_err(|failure| {
                if needed.contains(&key) {
                    unread(format!("StatefulSet {}/{}", key.0, key.1), failure)
                } else {
                    Unread(failure.to_string())
                }
            });
            Some((key, set))
        });
    let sets = sets.collect();
    gathered.note_renewed(wanted.policy, &sets, &users);
    gathered.note_unwanted(&sets);
    gathered.facts.errors.sort();
}

/// Whether a `StatefulSet` wants the claims again that `pod` owns, right before they go with it.
pub async fn wanted_again(cluster: &Cluster, pod: &PodFacts) -> Result<bool, Failure> {
    let Some((namespace, name)) = set_of(pod).filter(|_| pod.owns_a_claim()) else {
        return Ok(false);
    };
    let set = cluster.stateful_set(&namespace, &name).await?;
    Ok(set.is_some_and(|set| set.wants(&pod.name)))
}

/// A cheap look over all nodes, and what is known after that alone. It has to say what time it is.
async fn scan(cluster: &Cluster) -> Result<(Scan, Gathered)> {
    let scan = cluster.scan().await.map_err(could_not("list nodes"))?;
    let now = scan.now.ok_or_else(|| {
        let why = "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted; \
                   let no proxy on the way remove it";
        CouldNotRun::Source(why.to_owned())
    })?;
    let (place, node_count) = (Some(cluster.place.clone()), scan.nodes);
    let facts = ClusterFacts {
        now,
        place,
        node_count,
        ..ClusterFacts::default()
    };
    Ok((
        scan,
        Gathered {
            facts,
            pods: Vec::new(),
        },
    ))
}

/// What `ask` finds for each of `all`, by that; as many at once as are allowed.
async fn each<K: Clone + Ord, V, F: Future<Output = V>>(
    all: impl IntoIterator<Item = K>,
    ask: impl Fn(K) -> F,
) -> BTreeMap<K, V> {
    let asked = stream::iter(all).map(|key| ask(key.clone()).map(|found| (key, found)));
    asked.buffer_unordered(MAX_IN_FLIGHT).collect().await
}

/// Reads nodes whole.
async fn read_nodes(
    cluster: &Cluster,
    names: impl IntoIterator<Item = String>,
) -> BTreeMap<String, NodeRead> {
    let read = |name: String| async move {
        match cluster.node(&name).await {
            Ok(Some(look)) => NodeRead::Known(look.facts),
            Ok(None) => NodeRead::Gone,
            Err(failure) => NodeRead::Unread(Unread(failure.to_string())),
        }
    };
    each(names, read).await
}

/// Lists the Terminating pods of `nodes`, or of all nodes, and names those of `nodes` that have or may have one; the other
/// pods of `nodes` become facts.
async fn list_pods(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    facts: &mut ClusterFacts,
    nodes: &[String],
) -> Result<(Vec<RawPod>, BTreeSet<String>)> {
    let mut places = nodes
        .iter()
        .cloned()
        .map(PodsOf::Node)
        .collect::<BTreeSet<_>>();
    if wanted.all {
        places.extend(
            cluster
                .places_of_terminating_pods()
                .await
                .map_err(could_not("list pods"))?,
        );
    }
    let list = |place: PodsOf| async move { cluster.terminating_pods(&place).await };
    let (mut terminating, mut busy) = (Vec::new(), BTreeSet::new());
    for (place, pods) in each(places, list).await {
        let unread = |cause| ReadError {
            what: place.what(),
            cause,
        };
        if let PodsOf::Node(name) = &place
            && !pods
                .as_ref()
                .is_ok_and(|(pods, _)| pods.items.is_empty() && pods.malformed.is_empty())
        {
            busy.insert(name.clone());
        }
        match pods {
            Ok((pods, mut unasked)) => {
                terminating.extend(pods.items);
                facts.errors.extend(pods.malformed.into_iter().map(unread));
                if let PodsOf::Node(name) = &place
                    && nodes.contains(name)
                {
                    unasked.retain(|pod| wanted.namespaces.matches(&pod.namespace));
                    facts.unasked.insert(name.clone(), unasked);
                }
            }
            Err(failure) if failure.forbids() => return Err(could_not("list pods")(failure)),
            Err(failure) => facts.errors.push(unread(failure.to_string())),
        }
    }
    Ok((terminating, busy))
}

/// Reads each claim of the pods that the rules before the volume rules let through, and of those that `also` picks, by
/// namespace and name.
async fn read_claims(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    Gathered { facts, pods }: &Gathered,
    also: impl Fn(&PodFacts) -> bool,
) -> BTreeMap<(String, String), ClaimLook> {
    let candidates = pods
        .iter()
        .filter(|pod| also(pod) || needs_claims(facts.now, wanted.policy, facts.node_of(pod), pod))
        .flat_map(|pod| {
            pod.claims
                .iter()
                .map(|claim| (pod.namespace.clone(), claim.name.clone()))
        });
    let look =
        |(namespace, name): (String, String)| async move { cluster.claim(&namespace, &name).await };
    // A claim may be several pods'.
    each(candidates.collect::<BTreeSet<_>>(), look).await
}

/// Counts the real nodes where the rows leave the breaker something to judge: when more than two are not Ready, or none is
/// known to be one that pods could start on (a row does not say so). `busy` are the nodes with Terminating pods.
async fn take_census(
    cluster: &Cluster,
    scan: &Scan,
    now: Timestamp,
    judged: bool,
    busy: &BTreeSet<String>,
) -> Result<(Census, Traits), Failure> {
    if !judged {
        return Ok(Default::default());
    }
    if scan.not_ready.len() <= FEW_NODES
        && let Some(name) = &scan.ready
        && let Ok(Some(look)) = cluster.node(name).await
        && look.facts.leaf.is_none()
        && look.facts.standing(look.now).is_open()
    {
        return Ok(Default::default());
    }
    let (mut standings, traits) = cluster.standings(now).await?;
    for (name, standing) in &mut standings {
        standing.terminating = busy.contains(name);
    }
    Ok((Census::count(now, standings.into_values()), traits))
}

impl Gathered {
    /// Makes facts of `pods`. Those that lack what identifies them become errors.
    fn add_pods(&mut self, pods: Vec<RawPod>, namespaces: &Result<Namespaces, Failure>) {
        if let Err(failure) = namespaces {
            self.unread("namespaces", failure);
        }
        let (pods, malformed) = facts_of(pods, |namespace| opted_out(namespaces, namespace));
        for (namespace, name, cause) in malformed {
            self.unread(
                &format!("pod {namespace}/{}", name.unwrap_or_default()),
                &cause,
            );
        }
        self.pods = pods;
    }

    /// Puts what was found about claims where it belongs.
    fn add_claims(&mut self, claims: &BTreeMap<(String, String), ClaimLook>) {
        for ((namespace, name), look) in claims {
            if let ClaimState::Unread(Unread(cause)) = &look.state {
                self.unread(&format!("claim {namespace}/{name}"), cause);
            }
        }
        for pod in &mut self.pods {
            pod.note_claims(|namespace, name| {
                claims
                    .get(&(namespace.to_owned(), name.to_owned()))
                    .cloned()
            });
        }
    }

    /// Reports nodes and leases that could not be read.
    fn note_unread_nodes(&mut self) {
        for (name, read) in &self.facts.nodes {
            let (what, Unread(cause)) = match read {
                NodeRead::Known(NodeFacts {
                    unheard: Some(unread),
                    ..
                }) => (format!("lease of node {name}"), unread),
                NodeRead::Unread(unread) => (format!("node {name}"), unread),
                NodeRead::Known(_) | NodeRead::Gone => continue,
            };
            self.facts.errors.push(ReadError {
                what,
                cause: cause.clone(),
            });
        }
        self.facts.errors.sort();
    }

    fn census_unread(&mut self, failure: &Failure) {
        self.unread("all nodes, for the breaker", failure);
        self.facts.census = Census::Unread(Unread(failure.to_string()));
    }

    fn unread(&mut self, what: &str, cause: &dyn Display) {
        self.facts.errors.push(ReadError {
            what: what.to_owned(),
            cause: cause.to_string(),
        });
    }
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

/// That a reading failed without which nothing can be judged, and what to do about it.
pub fn could_not(what: &str) -> impl Fn(Failure) -> CouldNotRun {
    move |failure| {
        let hint = match failure.code() {
            Some(401) => "the credentials are not accepted (--kubeconfig, --context)",
            Some(403) => "grant that right to the account that runs this",
            _ => {
                "if `kubectl get nodes` fails too, the cause is the API server or the network path to it"
            }
        };
        CouldNotRun::Source(format!("could not {what}: {failure}; {hint}"))
    }
}
