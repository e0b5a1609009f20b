//! The four steps of gathering. Each reads only what the rules still need, and between the steps
//! the same rules judge with what was read: a pod that a rule keeps goes no further.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use itertools::Itertools as _;
use tokio::time::Instant;

use super::{
    Gathered, NodeRows, OtherLeases, Reader, Source, Wanted,
    fill::{
        StorageReads, admitted, hear, holders, judged_pods, not_ready_nodes, note_etcd,
        note_missing_leases, note_unread_sets, set_of,
    },
    strays::strays,
};
use crate::{
    cluster::MAX_IN_FLIGHT,
    exit::Result,
    facts::{ClusterFacts, HANGS, Namespaces, NodeCounts, PodFacts, PodsOf, Read, Storage},
    judge::{MAX_NODES_IGNORED, PodContext},
};

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
        read_each(rows.not_ready.clone(), async |name| reader.node(name).await),
        read_each(lists.collect::<BTreeSet<_>>(), async |list| {
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
    let others = read_each(others.collect_vec(), async |name| reader.node(name).await);
    facts.nodes.extend(others.await);
    if !all {
        // A file shows these pods too; one that hangs for long is named.
        let hangs = |pod: &PodFacts| facts.overdue(pod) >= HANGS && rows.pod_lists.is_some();
        pods.retain(|pod| is_asked(pod) || !facts.on_ready_node(pod) || hangs(pod));
    }
    facts.unmatched_namespaces = unmatched(reader.wanted, &namespaces, &pods);
    note_missing_leases(reader, &mut facts, &rows, &pods);
    if rows.pod_lists.is_some() {
        let strays = strays(reader, &rows.names, &facts.attachments).await;
        (facts.owned_by_pods, facts.strays) = strays;
    }

    // 3. Signs of life, the clock and the breaker's count, if anything may be reaped.
    let goes_on = |facts: &ClusterFacts, pod: &PodFacts| {
        is_asked(pod) || PodContext::of(facts, policy, pod, None).judge().is_none()
    };
    if !pods.iter().any(|pod| goes_on(&facts, pod)) {
        let pods = pods.into_iter().map(|pod| (pod, None));
        return Ok(gathered(reader, facts, pods.collect(), None));
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
    for node in not_ready_nodes(&mut facts) {
        let is_shared = |id: &mut String| ready_nodes.boot_ids.contains(id);
        drop(node.boot_id.take_if(is_shared));
    }
    let leases_at = leases.as_ref().map(|_| at);
    hear(&mut facts, &holders, leases, &lists);

    // 4. The storage of what nothing keeps: all PVCs with their volumes first, then what tells
    //    whether they are wanted. So a StatefulSet is read after the PVC that it lets go.
    let (mut due, kept) = pods
        .into_iter()
        .partition::<Vec<_>, _>(|pod| goes_on(&facts, pod) && facts.known_node(pod).is_some());
    let claims = read_each(admitted(&facts, &mut due, is_asked), async |key| {
        reader.claim(&key.0, &key.1).await
    });
    let mut read = StorageReads {
        claims: claims.await,
        ..StorageReads::default()
    };
    let needs_drivers = due.iter().any(|pod| {
        let storage = read.storage_of(pod, &facts);
        PodContext::of(&facts, policy, pod, Some(&storage)).needs_drivers()
    });
    let (nodes, drivers) = tokio::join!(
        read_each(read.selectors(), async |selector| reader
            .nodes_for(selector)
            .await),
        async {
            if needs_drivers {
                Some(reader.detached_drivers().await)
            } else {
                None
            }
        },
    );
    (read.nodes, read.detached_drivers) = (nodes, drivers);
    let on_set = due.iter().filter(|pod| {
        let storage = read.storage_of(pod, &facts);
        PodContext::of(&facts, policy, pod, Some(&storage)).needs_set()
    });
    let keys = on_set.filter_map(set_of).unique().collect_vec();
    read.sets = read_each(keys, async |key| reader.stateful_set(&key.0, &key.1).await).await;
    let due = due.into_iter().map(|pod| {
        let storage = read.storage_of(&pod, &facts);
        (pod, Some(storage))
    });
    let due = due.collect_vec();
    note_unread_sets(reader, &due, &read.sets, |pod, storage| {
        PodContext::of(&facts, policy, pod, Some(storage)).fears_for_a_claim()
    });
    let kept = kept.into_iter().map(|pod| (pod, None));
    let pods = kept.chain(due).collect();
    let leases = leases_at.map(|at| OtherLeases { holders, at });
    Ok(gathered(reader, facts, pods, leases))
}

/// Reads each of `what`, in this order.
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
    pods: Vec<(PodFacts, Option<Storage>)>,
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
