//! Reads what earlier runs noted, and what became of the nodes. A failure here is never an error of the run.

use std::{cmp::Reverse, time::Duration};

use itertools::Itertools as _;
use tokio::time::timeout;

use super::{Reader, Source, gather::read_each};
use crate::{
    cluster::Failure,
    facts::{ClusterFacts, Ready, Uid},
    history::{
        CONFIG_MAP, History, NodeState, Noted, Notes, RememberedNode, RememberedSet, Return, parse,
    },
    kubernetes::{RawConfigMap, RawStatefulSet},
    words::counted,
};

/// The most `StatefulSets` that are read, at one request each.
const MAX_SETS: usize = 64;
/// The longest wait for the nodes, and for the `StatefulSets`: the first delete of a run waits for both.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Returns the notes, and what became of the nodes in them. `read` is the reading of the `ConfigMap`.
/// There are no notes if nothing can be noted: the `ConfigMap` is missing, or could not be read.
pub async fn recall<S: Source>(
    reader: &Reader<'_, S>,
    read: Result<Option<RawConfigMap>, Failure>,
    facts: &ClusterFacts,
) -> (Option<Notes>, History) {
    let object = format!(
        "ConfigMap {}/{CONFIG_MAP}",
        reader.settings.history_namespace
    );
    let data = match read {
        Ok(Some(found)) => found.data,
        Ok(None) => return Default::default(),
        Err(failure) if failure.forbids() => return Default::default(),
        Err(failure) => {
            let why = format!(
                "{object} could not be read, so this report does not know what earlier runs did: {failure}"
            );
            let unread = History {
                unread: Some(why),
                ..History::default()
            };
            return (None, unread);
        }
    };
    let (notes, causes) = parse(&data);
    let unread = causes.first().map(|cause| {
        let entries = counted(causes.len(), "entry", "entries");
        format!("{entries} of {object} could not be read, one of them because {cause}")
    });
    let mut nodes = remembered(reader, facts, &notes).await;
    add_sets(reader, &mut nodes).await;
    (Some(notes), History { nodes, unread })
}

/// Returns what became of the nodes in the notes, the last reap first.
async fn remembered<S: Source>(
    reader: &Reader<'_, S>,
    facts: &ClusterFacts,
    notes: &Notes,
) -> Vec<RememberedNode> {
    let kept = notes.iter().filter(|(_, noted)| noted.is_kept(facts.now));
    let nodes = read_each(kept.map(|(uid, _)| uid), async |uid| {
        let noted = &notes[*uid];
        let now = match &noted.told {
            Some(told) => told.clone(),
            None => state(reader, facts, uid, noted).await?,
        };
        Some(RememberedNode {
            uid: (*uid).clone(),
            noted: noted.clone(),
            now,
            sets: Vec::new(),
        })
    });
    let nodes = timeout(TIME_LIMIT, nodes).await.unwrap_or_default();
    let nodes = nodes.into_values().flatten();
    let last_first = |node: &RememberedNode| Reverse(node.noted.last_reap);
    nodes.sorted_by_key(last_first).collect()
}

/// Adds the Ready counts of the `StatefulSets` whose pods were reaped.
async fn add_sets<S: Source>(reader: &Reader<'_, S>, nodes: &mut [RememberedNode]) {
    let keys = nodes.iter().flat_map(sets_of).unique().take(MAX_SETS);
    let sets = read_each(keys.collect_vec(), async |(namespace, name)| {
        let read = reader.source.object::<RawStatefulSet>(namespace, name);
        read.await.ok().flatten().and_then(|set| set.copies())
    });
    let sets = timeout(TIME_LIMIT, sets).await.unwrap_or_default();
    for node in nodes {
        let sets = sets_of(node).unique().sorted().filter_map(|key| {
            let copies = *sets.get(&key)?;
            let (namespace, name) = key;
            Some(RememberedSet {
                namespace,
                name,
                copies,
            })
        });
        node.sets = sets.collect();
    }
}

/// Returns what became of a node; `None` if it was deleted, has registered anew or could not be read.
async fn state<S: Source>(
    reader: &Reader<'_, S>,
    facts: &ClusterFacts,
    uid: &Uid,
    noted: &Noted,
) -> Option<Return> {
    let node = if let Some(read) = facts.nodes.get(&noted.node) {
        read.clone().ok()??
    } else {
        let objects = reader.source.node(&noted.node).await.ok()??;
        objects.into_facts(&reader.settings.policy).ok()?
    };
    let is_ready = node.ready == Ready::True;
    let state = match node.boot_id {
        _ if !is_ready => NodeState::Down,
        Some(id) if id == noted.boot_id => NodeState::BackSameBoot,
        Some(_) if !noted.boot_id.is_empty() => NodeState::BackRebooted,
        _ => NodeState::Unknown,
    };
    (node.uid == *uid).then_some(Return {
        state,
        ready_since: node.ready_since.filter(|_| is_ready),
    })
}

/// Lists namespace and name of the `StatefulSets` whose pods were reaped, if the node is down.
fn sets_of(node: &RememberedNode) -> impl Iterator<Item = (String, String)> {
    let is_down = node.now.state == NodeState::Down;
    node.noted.pods.iter().filter_map(move |pod| {
        let of_set = is_down && pod.owner_kind.as_deref() == Some("StatefulSet");
        let (name, _) = pod.name.rsplit_once('-').filter(|_| of_set)?;
        Some((pod.namespace.clone(), name.to_owned()))
    })
}
