//! The four steps of gathering. Each reads only what the rules still need, and between the steps
//! the same rules judge with what was read: a pod that a rule keeps goes no further.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use itertools::Itertools as _;
use tokio::time::Instant;

use super::{Gathered, NodeRows, OtherLeases, Reader, Source, Wanted, reader::Pods};
use crate::{
    cluster::{Failure, MAX_IN_FLIGHT},
    decide::PodContext,
    exit::Result,
    facts::{
        ClaimFacts, ClaimRead, ClaimState, ClusterFacts, DeletedWithPod, LEASES_OF_FILE, Life,
        NamespaceFacts, Namespaces, NodeCounts, NodeFacts, NodeRead, PodFacts, PodsOf, Quorum,
        Read, Ready, Storage, Unread, namespace,
    },
    kubernetes::{Holders, LeasesByNode, RawStatefulSet},
    limits::MAX_NODES_IGNORED,
    selector::is_name,
};

/// The most PVCs of one namespace that a run reads, at two or three requests each. A pod's author
/// chooses how many PVCs the pod names. So each namespace has a share, and one namespace cannot use
/// up the reads of the others.
const MAX_PVCS_OF_NAMESPACE: usize = 640;

/// A namespace, and the name of an object in it.
type Key = (String, String);
/// The `StatefulSets` that were read.
type Sets = BTreeMap<Key, Result<Option<RawStatefulSet>, Failure>>;

/// Gathers the facts that the rules and the limits need. `asked` is a Terminating pod that
/// `explain` takes through all steps, whatever its node and namespace.
pub async fn gather<S: Source>(
    reader: &Reader<'_, S>,
    asked: Option<PodFacts>,
) -> Result<Gathered> {
    let Wanted {
        policy,
        namespaces: filter,
        all,
    } = reader.wanted;
    // 1. The nodes, as rows. If all of them are Ready, a run reads no more.
    let rows = reader.source.node_rows(&reader.wanted).await?;
    let is_quiet = rows.not_ready.is_empty() && rows.pod_lists.is_none() && asked.is_none();
    let mut facts = facts_of(&rows);
    reader
        .errors
        .borrow_mut()
        .extend(rows.errors.iter().cloned());
    if is_quiet {
        if filter.include.is_some() || filter.exclude.is_some() {
            let namespaces = reader.namespaces().await;
            facts.unmatched_namespaces = unmatched(reader.wanted, &namespaces, &[]);
        }
        return Ok(gathered(reader, facts, Vec::new(), None));
    }

    // 2. The NotReady nodes in full with their own leases and their pods, the namespaces, and the
    //    VolumeAttachments; then the nodes of other pods that may be judged.
    let suspects = rows.not_ready.iter().cloned().map(PodsOf::Node);
    let lists = suspects.chain(rows.pod_lists.iter().flatten().cloned());
    let is_not_ready =
        |list: &PodsOf| matches!(list, PodsOf::Node(it) if rows.not_ready.contains(it));
    let (namespaces, attachments, nodes, lists) = tokio::join!(
        reader.namespaces(),
        reader.attachments(),
        each(rows.not_ready.clone(), async |name| reader.node(name).await),
        each(lists.collect::<BTreeSet<_>>(), async |list| {
            reader.pods(list, is_not_ready(list)).await
        }),
    );
    (facts.attachments, facts.nodes) = (attachments, nodes);
    let lists = lists.into_iter().map(|(list, pods)| Ok((list, pods?)));
    let mut lists = lists.collect::<Result<BTreeMap<_, _>>>()?;
    let asked_uid = asked.as_ref().map(|pod| pod.uid.clone());
    let is_asked = |pod: &PodFacts| asked_uid.as_ref() == Some(&pod.uid);
    let mut pods = judged_pods(reader, &mut facts, &mut lists, &namespaces, asked);
    note_etcd(&mut facts, &rows, &lists);
    let others = pods.iter().filter_map(|pod| pod.node.clone()).unique();
    let others = others.filter(|name| !facts.nodes.contains_key(name));
    let others = each(others.collect_vec(), async |name| reader.node(name).await);
    facts.nodes.extend(others.await);
    if !all {
        let found = pods.len();
        pods.retain(|pod| is_asked(pod) || !facts.on_ready_node(pod));
        // Only a source that shows the pods of Ready nodes tells how many there are.
        facts.on_ready_nodes = rows.pod_lists.as_ref().map_or(0, |_| found - pods.len());
    }
    facts.unmatched_namespaces = unmatched(reader.wanted, &namespaces, &pods);
    note_missing_leases(reader, &mut facts, &rows, &pods);

    // 3. Signs of life, the clock and the breaker's count, if anything may be reaped.
    let goes_on = |facts: &ClusterFacts, pod: &PodFacts| {
        is_asked(pod) || PodContext::of(facts, policy, pod).judge().is_none()
    };
    if !pods.iter().any(|pod| goes_on(&facts, pod)) {
        return Ok(gathered(reader, facts, pods, None));
    }
    let (holders, at) = (holders(&rows, &facts, &lists), Instant::now());
    let (ready_nodes, leases) = tokio::join!(
        reader.ready_nodes(&rows.ready, facts.now),
        reader.other_leases(&holders),
    );
    if rows.not_ready.len() > MAX_NODES_IGNORED || !ready_nodes.room {
        facts.node_counts = reader.node_counts().await;
    }
    facts.clock = ready_nodes.clock;
    // Nodes in containers have the boot ID of their host (kind, LXC).
    for node in down(&mut facts) {
        let is_shared = |id: &mut String| ready_nodes.boot_ids.contains(id);
        drop(node.boot_id.take_if(is_shared));
    }
    let leases_at = leases.as_ref().map(|_| at);
    hear(&mut facts, &holders, leases, &lists);

    // 4. The storage of what nothing keeps: all PVCs with their volumes first, then what tells
    //    whether they are wanted. So a StatefulSet is read after the PVC that it lets go.
    let (mut due, mut pods) = pods
        .into_iter()
        .partition::<Vec<_>, _>(|pod| goes_on(&facts, pod) && facts.known_node(pod).is_some());
    let keys = admitted(&facts, &mut due, is_asked);
    let claims = each(keys, async |key| reader.claim(&key.0, &key.1).await).await;
    for pod in &mut due {
        add_claims(pod, &claims, &facts);
    }
    let cases = due.iter().map(|pod| PodContext::of(&facts, policy, pod));
    let cases = cases.collect_vec();
    let selectors = cases.iter().flat_map(PodContext::selectors).unique();
    let needs_drivers = cases.iter().any(PodContext::needs_drivers);
    let (nodes, drivers) = tokio::join!(
        each(selectors, async |selector| reader.nodes_for(selector).await),
        async {
            if needs_drivers {
                Some(reader.detached_drivers().await)
            } else {
                None
            }
        },
    );
    drop(cases);
    for pod in &mut due {
        add_nodes_and_drivers(pod, &nodes, drivers.as_ref());
    }
    let on_set = due.iter();
    let on_set = on_set.filter(|pod| PodContext::of(&facts, policy, pod).needs_set());
    let keys = on_set.filter_map(set_of).unique();
    let sets = each(keys, async |key| reader.stateful_set(&key.0, &key.1).await).await;
    for pod in &mut due {
        add_set(pod, &sets);
    }
    note_unread_sets(reader, &facts, &due, &sets);
    pods.extend(due);
    let leases = leases_at.map(|at| OtherLeases { holders, at });
    Ok(gathered(reader, facts, pods, leases))
}

/// Reads each of `what`, in this order.
pub(super) async fn each<T: Ord, R>(
    what: impl IntoIterator<Item = T>,
    read: impl AsyncFn(&T) -> R,
) -> BTreeMap<T, R> {
    let read = &read;
    let reads = stream::iter(what).map(|it| async move {
        let found = read(&it).await;
        (it, found)
    });
    reads.buffer_unordered(MAX_IN_FLIGHT).collect().await
}

fn facts_of(rows: &NodeRows) -> ClusterFacts {
    ClusterFacts {
        now: rows.now,
        cluster_name: rows.cluster_name.clone(),
        node_count: rows.names.len(),
        node_counts: NodeCounts::NotNeeded,
        unseen: rows.unseen.clone(),
        ..ClusterFacts::default()
    }
}

fn gathered<S>(
    reader: &Reader<'_, S>,
    mut facts: ClusterFacts,
    pods: Vec<PodFacts>,
    leases: Option<OtherLeases>,
) -> Gathered {
    facts.errors = reader.errors.take().into_iter().collect();
    Gathered {
        facts,
        pods,
        leases,
    }
}

/// Returns the number of namespaces, if the filter matches no namespace and no pod. Pods are checked
/// too, because a file may lack namespaces.
fn unmatched(
    wanted: Wanted<'_>,
    namespaces: &Read<Option<Namespaces>>,
    pods: &[PodFacts],
) -> Option<usize> {
    let known = namespaces.as_ref().ok()?.as_ref()?;
    let none = !known.keys().any(|name| wanted.namespaces.matches(name));
    (none && !known.is_empty() && pods.is_empty()).then_some(known.len())
}

/// Takes the Terminating pods in matching namespaces from their lists, and adds the active pods and
/// the heartbeats that pods show to the facts of the NotReady nodes. If several pods have the same
/// UID, the last one is used: the pod `asked` about comes last, because a list may show an older
/// state of it.
fn judged_pods<S: Source>(
    reader: &Reader<'_, S>,
    facts: &mut ClusterFacts,
    lists: &mut BTreeMap<PodsOf, Pods>,
    namespaces: &Read<Option<Namespaces>>,
    asked: Option<PodFacts>,
) -> Vec<PodFacts> {
    let mut found = Vec::new();
    // A pod without a namespace is reported as a pod that cannot be judged.
    let filter = reader.wanted.namespaces;
    let matches = |pod: &PodFacts| pod.namespace.is_empty() || filter.matches(&pod.namespace);
    // If no namespace was saved, none is opted out.
    let namespaces = namespaces.clone().transpose();
    let in_namespace = |pod: PodFacts| PodFacts {
        in_namespace: match &namespaces {
            Some(all) => namespace(all, &pod.namespace),
            None => Ok(NamespaceFacts::default()),
        },
        ..pod
    };
    for (list, Pods { kept, .. }) in lists {
        let pods = std::mem::take(kept);
        let name = match list {
            PodsOf::Node(name) => Some(name),
            _ => None,
        };
        let node = name.as_ref().and_then(|name| facts.nodes.get_mut(*name));
        let is_read = node.is_some();
        if let Some(NodeRead::Known(node)) = node {
            node.hear(pods.iter().filter_map(|pod| pod.heard.clone()));
        }
        let pods = pods.into_iter().filter(matches).map(in_namespace);
        let (terminating, others): (Vec<_>, Vec<_>) = pods.partition(|pod| pod.deletion.is_some());
        found.extend(terminating);
        if let Some(name) = name.filter(|_| is_read) {
            let active = others.into_iter().filter(PodFacts::is_active).collect();
            facts.active.insert(name.clone(), active);
        }
    }
    found.extend(asked.map(in_namespace));
    found.retain_mut(|pod| {
        let lacks = pod.lacks.take();
        let is_whole = lacks.is_none();
        if let Some(cause) = lacks {
            reader.note(format_args!("pod {}/{}", pod.namespace, pod.name), cause);
        }
        is_whole
    });
    // In place, because there may be tens of thousands of pods.
    found.sort_by_cached_key(|pod| pod.uid.clone());
    found.dedup_by(|later, earlier| {
        let is_same = later.uid == earlier.uid;
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
    found
}

/// Adds the members of etcd to the facts of the NotReady nodes that ran one: by their role, or by a
/// static pod of etcd on them.
fn note_etcd(facts: &mut ClusterFacts, rows: &NodeRows, lists: &BTreeMap<PodsOf, Pods>) {
    let runs_it = |name: &String| {
        let pods = lists.get(&PodsOf::Node(name.clone()));
        rows.etcd.contains_key(name) || pods.is_some_and(|pods| pods.etcd)
    };
    let seen = rows.not_ready.iter().filter(|name| runs_it(name));
    let seen = seen.cloned().collect_vec();
    let mut members = if rows.etcd.is_empty() {
        rows.control_plane.clone()
    } else {
        rows.etcd.clone()
    };
    members.extend(seen.iter().map(|name| (name.clone(), false)));
    let quorum = Quorum {
        ready: members.values().filter(|is_ready| **is_ready).count(),
        members: members.len(),
    };
    for node in down(facts).filter(|node| seen.contains(&node.name)) {
        node.etcd = Some(quorum);
    }
}

/// Notes that a file has no leases, if a verdict depends on them.
fn note_missing_leases<S: Source>(
    reader: &Reader<'_, S>,
    facts: &mut ClusterFacts,
    rows: &NodeRows,
    pods: &[PodFacts],
) {
    let is_on_dead = |pod: &PodFacts| {
        let node = facts.known_node(pod);
        node.is_some_and(|node| node.ready != Ready::True)
    };
    if !rows.has_leases && pods.iter().any(is_on_dead) {
        reader.note(
            LEASES_OF_FILE,
            "the file has none, so it cannot show that a node is alive",
        );
        let why = "The file has no leases, so it cannot show that a NotReady node is alive. Pods that are to be reaped may \
                   be running.";
        facts.incomplete = Some(why.to_owned());
    }
}

/// Lists the known nodes that are NotReady.
fn down(facts: &mut ClusterFacts) -> impl Iterator<Item = &mut NodeFacts> {
    facts.nodes.values_mut().filter_map(|node| match node {
        NodeRead::Known(node) if node.ready != Ready::True => Some(node),
        _ => None,
    })
}

/// Returns the possible holders of Leases that would show a heartbeat of a NotReady node.
fn holders(rows: &NodeRows, facts: &ClusterFacts, lists: &BTreeMap<PodsOf, Pods>) -> Holders {
    let mut holders = Holders::among(rows.names.iter().cloned());
    for node in facts.known_nodes().filter(|node| node.ready != Ready::True) {
        let pods = lists.get(&PodsOf::Node(node.name.clone()));
        holders.add(node, pods.into_iter().flat_map(|pods| &pods.holders));
    }
    holders
}

/// Adds the other Leases, and the heartbeats in them, to the facts of the NotReady nodes.
fn hear(
    facts: &mut ClusterFacts,
    holders: &Holders,
    leases: Option<LeasesByNode>,
    lists: &BTreeMap<PodsOf, Pods>,
) {
    let forbidden = leases.is_none();
    if forbidden {
        facts.unseen.push(
            "This account may not list Leases: whether something except a kubelet on a NotReady node still renews one is not seen, so no grace period is cut short."
                .to_owned(),
        );
    }
    let (now, mut leases) = (facts.now, leases.unwrap_or_default());
    for node in down(facts) {
        // The Leases were read by name in all namespaces, and for all API servers.
        let own = leases.remove(&node.name).unwrap_or(Ok(Some(Vec::new())));
        // A pod that was not listed may hold a Lease.
        let unlisted = match lists.get(&PodsOf::Node(node.name.clone())) {
            Some(pods) => pods.unread.clone(),
            None => Some(Unread("its pods were not listed".to_owned())),
        };
        node.life = Some(Life {
            named_by: Ok(BTreeSet::new()),
            forbidden,
        });
        holders.hear(node, unlisted.map_or(own, Err), now);
    }
}

/// Gives each namespace its share of the PVCs to be read, and returns these PVCs: first those of the
/// pod that the user asked about, then those of a pod of each namespace in turn, the longest overdue
/// first. PVCs beyond the share are treated as unread, which is no error of the run.
fn admitted(
    facts: &ClusterFacts,
    due: &mut [PodFacts],
    is_asked: impl Fn(&PodFacts) -> bool,
) -> Vec<Key> {
    due.sort_by_cached_key(|pod| {
        (
            !is_asked(pod),
            pod.overdue_since(facts.known_node(pod), facts.now),
        )
    });
    let mut turns = BTreeMap::new();
    due.sort_by_cached_key(|pod| {
        let turn = turns.entry(pod.namespace.clone()).or_insert(0_usize);
        *turn += 1;
        (!is_asked(pod), *turn)
    });
    let (mut keys, mut shares) = (Vec::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for pod in due {
        let Ok(names) = &pod.claim_names else {
            continue;
        };
        let share = shares.entry(pod.namespace.clone()).or_default();
        share.extend(
            names
                .iter()
                .map(|it| it.name.clone())
                .filter(|name| is_name(name)),
        );
        if share.len() <= MAX_PVCS_OF_NAMESPACE || names.is_empty() {
            keys.extend(
                names
                    .iter()
                    .map(|it| (pod.namespace.clone(), it.name.clone())),
            );
        } else {
            pod.claim_names = Err(Unread(format!(
                "its namespace has more than {MAX_PVCS_OF_NAMESPACE} PVCs to look up, the limit per namespace and run"
            )));
        }
    }
    keys.into_iter().unique().collect()
}

/// Adds the PVCs to a pod, as they were read.
fn add_claims(pod: &mut PodFacts, claims: &BTreeMap<Key, ClaimRead>, facts: &ClusterFacts) {
    let names = match &pod.claim_names {
        Ok(names) => names,
        Err(unread) => {
            pod.storage = Some(Storage::unread(unread.clone()));
            return;
        }
    };
    let attachments = pod
        .node
        .as_ref()
        .and_then(|node| facts.attachments.get(node));
    let attached = attachments
        .into_iter()
        .flatten()
        .filter_map(|it| it.volume.as_ref());
    let attached = attached.collect::<BTreeSet<_>>();
    let unread = || ClaimState::Unread(Unread("it was not looked up".to_owned())).into();
    let claims = names.iter().map(|named| {
        let read = claims
            .get(&(pod.namespace.clone(), named.name.clone()))
            .cloned();
        let mut claim = ClaimFacts::new(named.clone(), read.unwrap_or_else(unread), &pod.uid);
        if let ClaimState::Bound(bound) = &mut claim.state
            && attached.contains(&bound.volume.name)
        {
            bound
                .volume
                .driver
                .iter_mut()
                .for_each(|driver| driver.attaches = Ok(true));
        }
        claim
    });
    pod.storage = Some(Storage {
        claims: claims.collect(),
        ..Storage::default()
    });
}

/// Adds to a pod's volumes the nodes that they allow, and whether their drivers attach them.
fn add_nodes_and_drivers(
    pod: &mut PodFacts,
    nodes: &BTreeMap<String, Read<Vec<String>>>,
    detached: Option<&Read<BTreeSet<String>>>,
) {
    let claims = pod
        .storage
        .iter_mut()
        .flat_map(|storage| &mut storage.claims);
    for claim in claims {
        let ClaimState::Bound(bound) = &mut claim.state else {
            continue;
        };
        for term in &mut bound.volume.affinity {
            if let Ok(Some(selector)) = term.selector()
                && let Some(read) = nodes.get(&selector)
            {
                term.satisfied_by.clone_from(read);
            }
        }
        let driver = bound
            .volume
            .driver
            .as_mut()
            .filter(|driver| driver.attaches.is_err());
        if let (Some(driver), Some(detached)) = (driver, detached) {
            driver.attaches = match detached {
                Ok(detached) => Ok(!detached.contains(&driver.name)),
                Err(unread) => Err(unread.clone()),
            };
        }
    }
}

/// Returns the `StatefulSet` that controls `pod`; `None` if none does.
fn set_of(pod: &PodFacts) -> Option<Key> {
    let owner = pod.owner.as_ref().filter(|_| pod.of_stateful_set())?;
    Some((pod.namespace.clone(), owner.name.clone()))
}

/// Adds the reading of its `StatefulSet` to a pod, if it was read for any pod.
fn add_set(pod: &mut PodFacts, sets: &Sets) {
    let set = set_of(pod).and_then(|key| sets.get(&key));
    let (Some(set), Some(storage)) = (set, pod.storage.as_mut()) else {
        return;
    };
    let set = match set {
        Ok(set) => set.as_ref(),
        Err(failure) => {
            storage.set_wants = Some(Err(failure.clone().into()));
            return;
        }
    };
    storage.set_wants = Some(Ok(set.is_some_and(|set| set.wants(&pod.name))));
    let Some(set) = set else {
        return;
    };
    storage.templates = Some(set.templates());
    storage.copies = set.copies();
    let controller = pod.controller.as_ref();
    let is_its = controller.is_some_and(|its| its.uid == set.metadata.uid);
    for claim in &mut storage.claims {
        claim.templated = is_its && set.makes(&claim.name, &pod.name);
    }
}

/// Notes the `StatefulSets` that could not be read although a verdict depends on them. No verdict
/// depends on them for a PVC that stays: its pod needs you in any case.
fn note_unread_sets<S: Source>(
    reader: &Reader<'_, S>,
    facts: &ClusterFacts,
    pods: &[PodFacts],
    sets: &Sets,
) {
    for pod in pods {
        let Some(key) = set_of(pod) else {
            continue;
        };
        let (Some(Err(failure)), (namespace, name)) = (sets.get(&key), &key) else {
            continue;
        };
        let case = PodContext::of(facts, reader.wanted.policy, pod);
        let mut claims = pod.claims().iter().filter(|claim| claim.deletion.is_none());
        if claims.any(|claim| matches!(case.goes(claim), DeletedWithPod::MayBeWanted(_))) {
            reader.failed(format_args!("StatefulSet {namespace}/{name}"), failure);
        }
    }
}
