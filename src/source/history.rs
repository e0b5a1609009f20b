//! Reads what earlier runs noted, and what became of the nodes. A failure here is never an error of the run.

use std::{cmp::Reverse, time::Duration};

use itertools::Itertools as _;
use tokio::time::timeout;

use super::{NotRead, Source, gather::read_each};
use crate::{
    facts::{ClusterFacts, Ready, Uid},
    history::{
        CONFIG_MAP, History, NodeState, Noted, Notes, RememberedNode, RememberedSet, Return, parse,
    },
    judge::Policy,
    kubernetes::{RawConfigMap, RawStatefulSet},
    words::counted,
};

/// The most `StatefulSets` that are read, at one request each.
const MAX_SETS: usize = 64;
/// The longest wait for the nodes, and for the `StatefulSets`: the first delete of a run waits for both.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Returns the notes, and what became of the nodes in them. `read` is the reading of the `ConfigMap` of
/// `namespace`. There are no notes if nothing can be noted: the `ConfigMap` is missing, or could not be
/// read.
pub async fn recall<S: Source>(
    (source, policy): (&S, &Policy),
    (namespace, read): (&str, Result<Option<RawConfigMap>, NotRead>),
    facts: &ClusterFacts,
) -> (Option<Notes>, History) {
    let data = match read {
        Ok(Some(found)) => found.data,
        Ok(None) => return Default::default(),
        Err(NotRead::Cluster(failure)) if failure.forbids() => return Default::default(),
        Err(failure) => {
            let why = format!(
                "ConfigMap {namespace}/{CONFIG_MAP} could not be read, so this report does not know what earlier runs did: {failure}"
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
        format!("{entries} of ConfigMap {namespace}/{CONFIG_MAP} could not be read, one of them because {cause}")
    });
    let kept = notes.iter().filter(|(_, noted)| noted.is_kept(facts.now));
    let states = read_each(kept.clone().map(|(uid, _)| uid), async |uid| {
        let noted = &notes[*uid];
        match &noted.told {
            Some(told) => Some(told.clone()),
            None => state(source, policy, facts, (uid, noted)).await,
        }
    });
    let mut states = timeout(TIME_LIMIT, states).await.unwrap_or_default();
    let nodes = kept.filter_map(|(uid, noted)| {
        Some(RememberedNode {
            uid: uid.clone(),
            noted: noted.clone(),
            now: states.remove(uid)??,
            sets: Vec::new(),
        })
    });
    let nodes = nodes.sorted_by_key(|node| Reverse(node.noted.last_reap));
    let mut nodes = nodes.collect_vec();
    let keys = nodes.iter().flat_map(sets_of).unique().take(MAX_SETS);
    let sets = read_each(keys, async |(namespace, name)| {
        let read = source.object::<RawStatefulSet>(namespace, name).await;
        read.ok().flatten().and_then(|set| set.copies())
    });
    let sets = timeout(TIME_LIMIT, sets).await.unwrap_or_default();
    for node in &mut nodes {
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
    (Some(notes), History { nodes, unread })
}

/// Returns what became of a node; `None` if it was deleted, has registered anew or could not be read.
async fn state<S: Source>(
    source: &S,
    policy: &Policy,
    facts: &ClusterFacts,
    (uid, noted): (&Uid, &Noted),
) -> Option<Return> {
    let node = if let Some(read) = facts.nodes.get(&noted.node) {
        read.known()?.clone()
    } else {
        let objects = source.node(&noted.node).await.ok()??;
        objects.into_facts(policy).ok()?
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
