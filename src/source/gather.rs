//! The four steps of gathering. Each reads only what the rules still need. Between the steps the
//! same rules judge with what was read: after step 2 the first table of `judge/rules.rs`, after step
//! 3 the second one too. A pod that a rule keeps, now and in what is foreseen, is read no further.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use itertools::Itertools as _;
use tokio::time::Instant;

use super::{
    Gathered, OtherLeases, Reader,
    fill::{
        add_leases, add_nodes_and_drivers, add_set, holders, not_evicted_pods, not_ready_nodes,
        note_missing_leases, note_quorums, set_of, share_out_claims, storage_of, terminating_pods,
    },
    reader::PodLists,
    strays::find_strays,
};
use crate::{
    cluster::{Api, MAX_IN_FLIGHT, StatusKind},
    exit::{CouldNotRun, Result},
    facts::{
        Attachments, ClusterFacts, HANGS, Namespaces, NodeCounts, PodFacts, PodsOf, Read, Storage,
        Uid, Unread,
    },
    judge::{MAX_NODES_IGNORED, PodContext, terms},
    kubernetes::{NodeRow, PodRow, RawAttachment, RawDriver, RawNode, RawStatefulSet},
    settings::Settings,
};

/// The most pods of `StatefulSets` in a namespace whose Ready pods are counted although no verdict depends on it.
const MAX_SETS_COUNTED: usize = 64;

/// Gathers the facts that the rules and the limits need. `asked` is a Terminating pod that
/// `explain` takes through all steps, whatever its node and namespace.
pub async fn gather(reader: &Reader<'_, impl Api>, asked: Option<PodFacts>) -> Result<Gathered> {
    let Reader {
        api,
        settings,
        about,
        ..
    } = reader;
    let policy = &settings.policy;

    // 1. The nodes, as rows. If all of them are Ready, a run reads nothing else about pods.
    let rows = api.rows(Vec::<NodeRow>::push).await;
    let (now, rows) = rows.map_err(|failure| api.could_not("list nodes", &failure))?;
    let now = now.ok_or_else(|| {
        let why = "the API server's response has no Date header, so there is no clock to judge by; nothing was deleted; \
                   let no proxy on the way remove it";
        CouldNotRun::Source(why.to_owned())
    })?;
    let mut facts = ClusterFacts {
        now,
        cluster_name: about.cluster_name.clone(),
        node_count: rows.len(),
        node_counts: NodeCounts::NotNeeded,
        unseen: about.unseen.clone(),
        ..ClusterFacts::default()
    };
    let not_ready = rows.iter().filter(|row| !row.is_ready);
    let not_ready = not_ready.map(|row| row.name.clone());
    let not_ready = not_ready.collect::<BTreeSet<_>>();
    // A file shows the pods of all nodes at no cost.
    let of_all = settings.all || about.is_file;
    let mut pod_lists = BTreeSet::new();
    if of_all {
        let add_list = |lists: &mut BTreeSet<_>, PodRow(list)| lists.extend(list);
        let rows = api.rows(add_list).await;
        (_, pod_lists) = rows.map_err(|failure| api.could_not("list pods", &failure))?;
        // The row of a finished pod does not show whether the pod is Terminating.
        pod_lists.insert(PodsOf::Finished);
    }
    if not_ready.is_empty() && !of_all && asked.is_none() {
        if !settings.namespaces.selects_all() {
            let namespaces = reader.read("namespaces", api.namespaces()).await;
            facts.unmatched_namespaces = unmatched(settings, &namespaces, &[]);
        }
        return Ok(gathered(reader, facts, Vec::new(), &BTreeSet::new(), None));
    }

    // 2. The NotReady nodes in full with their own leases and their pods, the namespaces, and the
    //    VolumeAttachments; then the nodes of other pods that may be judged.
    let suspects = not_ready.iter().cloned().map(PodsOf::Node);
    let lists = suspects.chain(pod_lists);
    let is_not_ready = |list: &PodsOf| matches!(list, PodsOf::Node(it) if not_ready.contains(it));
    // With the pods of all nodes, those of nodes that no longer exist are looked at too.
    let add_attachment = |by_node: &mut _, attachment: RawAttachment| {
        if of_all || not_ready.contains(attachment.node()) {
            RawAttachment::add_to(by_node, attachment);
        }
    };
    let (namespaces, attachments, nodes, lists) = tokio::join!(
        reader.read("namespaces", api.namespaces()),
        reader.all("VolumeAttachments", add_attachment),
        read_each(not_ready.clone(), async |name| reader.node(name).await),
        read_each(lists.collect::<BTreeSet<_>>(), async |list| {
            reader.pods(list, is_not_ready(list)).await
        }),
    );
    let unread = nodes.iter().filter(|(_, node)| node.is_err());
    facts.unread_nodes = unread.map(|(name, _)| name.clone()).collect();
    facts.nodes = nodes;
    facts.attachments = Attachments(attachments);
    let all = facts.attachments.0.iter_mut();
    all.flat_map(BTreeMap::values_mut)
        .for_each(|of_node| of_node.sort());
    let lists = lists.into_iter().map(|(list, pods)| Ok((list, pods?)));
    let mut lists = lists.collect::<Result<PodLists>>()?;
    let asked_uid = asked.as_ref().map(|pod| pod.uid.clone());
    let is_asked = |pod: &PodFacts| asked_uid.as_ref() == Some(&pod.uid);
    let mut pods = terminating_pods(reader, &mut facts, &mut lists, &namespaces, asked);
    note_quorums(&mut facts, &rows, &lists, &BTreeSet::new());
    let others = pods.iter().filter_map(|pod| pod.node.clone()).unique();
    let others = others.filter(|name| !facts.nodes.contains_key(name));
    let others = read_each(others.collect_vec(), async |name| reader.node(name).await).await;
    facts.nodes.extend(others);
    if !settings.all {
        // A source that shows these pods at no cost lists them too; one that hangs for long is named.
        let hangs = |pod: &PodFacts| of_all && facts.overdue(pod) >= HANGS;
        pods.retain(|pod| is_asked(pod) || !facts.on_ready_node(pod) || hangs(pod));
    }
    facts.unmatched_namespaces = unmatched(settings, &namespaces, &pods);
    note_missing_leases(reader, &mut facts, &pods);
    if of_all {
        find_strays(reader, &rows, &mut facts).await;
    }

    // 3. Signs of life, the clock and the breaker's count, if anything may be reaped, now or in what is foreseen. A pod
    //    goes on if no table whose facts were read so far keeps it: the first one here, the first two before step 4.
    let evictable = not_evicted_pods(&mut facts);
    let not_evicted = evictable.iter().map(|pod| pod.uid.clone()).collect();
    pods.extend(evictable);
    let goes_on = |facts: &ClusterFacts, pod: &PodFacts| {
        is_asked(pod) || PodContext::of(facts, policy, pod, None).goes_on()
    };
    if !pods.iter().any(|pod| goes_on(&facts, pod)) {
        let pods = pods.into_iter().map(|pod| (pod, None));
        return Ok(gathered(reader, facts, pods.collect(), &not_evicted, None));
    }
    let (holders, at) = (holders(&rows, &facts, &lists), Instant::now());
    let (ready_nodes, leases) = tokio::join!(
        reader.ready_nodes(&rows, facts.now),
        reader.read("Leases", async {
            match api.leases_of(&holders).await {
                Err(failure) if failure.is(StatusKind::MayNotList) => Ok(None),
                leases => leases.map(Some),
            }
        }),
    );
    facts.clock = ready_nodes.clock;
    let may_be_outage =
        not_ready.len() > MAX_NODES_IGNORED && settings.limits.max_not_ready_percent < 100;
    let is_canonical = facts.known_nodes().any(|node| node.roles.canonical);
    if may_be_outage || !ready_nodes.room || is_canonical {
        let leaf = &policy.node_selectors;
        let add = |counts: &mut _, node: RawNode| node.count(counts, leaf);
        let counts = reader.all("all nodes, for the limits", add).await;
        facts.node_counts = counts.map_or_else(NodeCounts::Unread, NodeCounts::Counted);
    }
    // Nodes in containers have the boot ID of their host (kind, LXC).
    for node in not_ready_nodes(&mut facts) {
        let is_shared = |id: &mut String| ready_nodes.boot_ids.contains(id);
        drop(node.boot_id.take_if(is_shared));
    }
    let may_list_leases = !matches!(leases, Ok(None));
    let k0s = leases.iter().flatten().flatten();
    let k0s = k0s.filter(|(node, leases)| leases.iter().flatten().any(|it| it.is_of_k0s(node)));
    let k0s = k0s.map(|(node, _)| node.clone()).collect();
    note_quorums(&mut facts, &rows, &lists, &k0s);
    add_leases(&mut facts, &holders, leases, &lists);

    // 4. The storage of the pods that nothing keeps so far: all PVCs with their volumes first; then,
    //    from what they say, the nodes that a volume allows, the CSI drivers and the StatefulSets.
    //    So a StatefulSet is read after the PVC that it lets go.
    //    Only the pod that `explain` asks about can lack a known node here.
    let (mut due, kept) = pods
        .into_iter()
        .partition::<Vec<_>, _>(|pod| goes_on(&facts, pod) && facts.known_node(pod).is_some());
    // Pods that are only foreseen take no due pod's place.
    let rank = |pod: &PodFacts| {
        let is_due = PodContext::of(&facts, policy, pod, None).judge().is_none();
        (!is_asked(pod), !is_due)
    };
    let claims = share_out_claims(&facts, &mut due, rank);
    let claims = read_each(claims, async |(namespace, name)| {
        reader.claim(namespace, name).await
    });
    let claims = claims.await;
    let attached = facts.attachments.attached();
    let with_storage = due.into_iter().map(|pod| {
        let storage = storage_of(&pod, &attached, &claims, about.is_file);
        (pod, storage)
    });
    let mut due = with_storage.collect_vec();
    let needs_drivers = due
        .iter()
        .any(|(pod, storage)| PodContext::of(&facts, policy, pod, Some(storage)).needs_drivers());
    let volumes = due.iter().flat_map(|(_, storage)| storage.volumes());
    let terms = volumes.flat_map(terms).cloned().collect::<BTreeSet<_>>();
    let (nodes, detached) = tokio::join!(
        read_each(terms, async |term| reader.nodes_for(term).await),
        async {
            if !needs_drivers {
                return None;
            }
            Some(reader.all("CSIDrivers", RawDriver::add_detached).await)
        },
    );
    for (_, storage) in &mut due {
        add_nodes_and_drivers(storage, &nodes, detached.as_ref());
    }
    // A verdict needs some of the StatefulSets, the page the Ready pods of all.
    let needs_set = |(pod, storage): &&(PodFacts, Storage)| {
        PodContext::of(&facts, policy, pod, Some(storage)).needs_set()
    };
    let (on_sets, others) = due.iter().partition::<Vec<_>, _>(needs_set);
    let mut counted = BTreeMap::<_, usize>::new();
    let others = others.into_iter().filter(|(pod, _)| {
        let count = counted.entry(&pod.namespace).or_default();
        *count += usize::from(pod.stateful_set().is_some());
        *count <= MAX_SETS_COUNTED
    });
    let needed = on_sets
        .iter()
        .filter_map(|(pod, _)| set_of(pod))
        .collect::<BTreeSet<_>>();
    let on_sets = on_sets.iter().copied().chain(others);
    let sets = on_sets.filter_map(|(pod, _)| set_of(pod)).unique();
    let sets = read_each(sets.collect_vec(), async |(namespace, name)| {
        let set = api.find::<RawStatefulSet>(namespace, name).await;
        set.map_err(Unread::from)
    });
    let sets = sets.await;
    for (pod, storage) in &mut due {
        let Some((key, set)) = set_of(pod).and_then(|key| sets.get_key_value(&key)) else {
            continue;
        };
        storage.copies = set.as_ref().ok().and_then(|set| set.as_ref()?.copies());
        if !needed.contains(key) {
            continue;
        }
        add_set(pod, storage, set);
        // If the StatefulSet could not be read, a pod with local data needs you, and its reason says so. It is an
        // error of the run only if a PVC that may be wanted would go with the pod.
        if let Err(unread) = set
            && PodContext::of(&facts, policy, pod, Some(storage)).fears_for_a_claim()
        {
            let (namespace, name) = key;
            reader.failed(format_args!("StatefulSet {namespace}/{name}"), unread);
        }
    }
    let kept = kept.into_iter().map(|pod| (pod, None));
    let due = due.into_iter().map(|(pod, storage)| (pod, Some(storage)));
    let pods = kept.chain(due).collect();
    let leases = may_list_leases.then_some(OtherLeases { holders, at });
    Ok(gathered(reader, facts, pods, &not_evicted, leases))
}

/// Reads each of `what`, a few at a time; reads begin in this order.
pub(super) async fn read_each<T: Ord, R>(
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

fn gathered(
    reader: &Reader<'_, impl Api>,
    mut facts: ClusterFacts,
    pods: Vec<(PodFacts, Option<Storage>)>,
    not_evicted: &BTreeSet<Uid>,
    leases: Option<OtherLeases>,
) -> Gathered {
    facts.errors = reader.errors.take().into_iter().collect();
    let (not_evicted, pods) = pods
        .into_iter()
        .partition(|(pod, _)| not_evicted.contains(&pod.uid));
    Gathered {
        facts,
        pods,
        not_evicted,
        leases,
    }
}

/// Lists the namespaces, if the filter matches no namespace and no pod. Pods are checked
/// too, because a file may lack namespaces.
fn unmatched(
    settings: &Settings,
    namespaces: &Read<Namespaces>,
    pods: &[PodFacts],
) -> Option<Vec<String>> {
    let known = namespaces.as_ref().ok()?;
    let none = !known.keys().any(|name| settings.namespaces.matches(name));
    (none && !known.is_empty() && pods.is_empty()).then(|| known.keys().cloned().collect())
}
