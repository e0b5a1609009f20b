//! Reads what earlier runs noted, and what became of the nodes. A failure here is never an error of the run: what
//! could not be read is said, and nothing is assumed in its place.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use itertools::Itertools as _;
use tokio::time::{Instant, timeout_at};

use super::{Reader, gather::read_each};
use crate::{
    cluster::{Api, Failure},
    facts::{ClusterFacts, NodeFacts, Read, Ready, Uid, Unread},
    history::{
        CONFIG_MAP, History, MAX_NODES, NodeState, NotKnown, Notebook, Noted, Notes,
        RememberedNode, RememberedSet, Return, parse,
    },
    kubernetes::{RawClaim, RawConfigMap, RawStatefulSet},
    words::{counted, in_turn},
};

/// The most `StatefulSets` that are read, at one request each.
const MAX_SETS: usize = 64;
/// The most PVCs of such a set that are read, to find what its volumes wait for.
const MAX_CLAIMS: usize = 8;
/// The longest wait for one node or `StatefulSet`. Each fails alone.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The longest wait for all nodes, and for all `StatefulSets`: the first delete of a run waits for both.
const TIME_LIMIT_OF_ALL: Duration = Duration::from_secs(20);

/// Returns the notes, and what became of the nodes in them. `read` is the reading of the `ConfigMap`.
/// There are no notes if nothing can be noted: the `ConfigMap` is missing, or could not be read.
pub async fn recall(
    reader: &Reader<'_, impl Api>,
    read: Result<Option<RawConfigMap>, Failure>,
    facts: &ClusterFacts,
) -> (Option<Notebook>, History) {
    let object = format!(
        "ConfigMap {}/{CONFIG_MAP}",
        reader.settings.history_namespace
    );
    let found = match read {
        Ok(Some(found)) => found,
        Ok(None) => return Default::default(),
        Err(failure) => {
            let why = format!(
                "What earlier runs deleted is not known: {object} could not be read: {failure}"
            );
            let unread = History {
                unread: Some(why),
                not_known: NotKnown::All,
                ..History::default()
            };
            return (None, unread);
        }
    };
    let (notes, causes) = parse(&found.data);
    let unread = causes.values().next().map(|cause| {
        let entries = counted(causes.len(), "entry", "entries");
        format!("{entries} of {object} could not be read, one of them because {cause}")
    });
    let (mut nodes, tainted) = remembered(reader, facts, &notes).await;
    add_sets(reader, &mut nodes).await;
    let history = History {
        nodes,
        unread,
        not_known: NotKnown::Of(causes.into_keys().collect()),
        tainted,
    };
    let version = found.metadata.resource_version;
    (Some(Notebook { notes, version }), history)
}

/// Returns what became of the nodes in the notes whose pods were reaped, the last reap first, and the nodes on which a run has
/// seen the out-of-service taint.
async fn remembered(
    reader: &Reader<'_, impl Api>,
    facts: &ClusterFacts,
    notes: &Notes,
) -> (Vec<RememberedNode>, BTreeMap<Uid, Option<NodeFacts>>) {
    let kept = notes
        .iter()
        .filter(|(_, noted)| noted.is_kept(facts.now))
        .sorted_by_key(|(_, noted)| Reverse(noted.last_reap))
        .take(MAX_NODES)
        .collect_vec();
    // A node that was not read yet was Ready. It is read for its boot ID, unless its return was told, and for its taint.
    let is_read = |noted: &Noted| noted.told.is_none() || noted.tainted.is_some();
    let to_read = kept
        .iter()
        .filter(|(_, noted)| is_read(noted))
        .map(|(_, noted)| &noted.node)
        .filter(|name| !facts.nodes.contains_key(*name));
    let end = Instant::now() + TIME_LIMIT_OF_ALL;
    let read = read_each(to_read.unique(), async |name| {
        in_time(end, reader.api.node(name))
            .await?
            .map(|it| it.into_facts(&reader.settings.policy))
            .transpose()
            .map_err(Unread)
    })
    .await;
    let node_of = |noted: &Noted| facts.nodes.get(&noted.node).or(read.get(&noted.node));
    let state = |uid: &Uid, noted: &Noted| -> Read<Return> {
        if let Some(told) = &noted.told {
            return Ok(told.clone());
        }
        let not_read = Err(Unread("it was not read".to_owned()));
        let node = node_of(noted)
            .unwrap_or(&not_read)
            .as_ref()
            .map_err(Unread::clone)?;
        let ready = node.as_ref().filter(|node| node.ready == Ready::True);
        Ok(Return {
            state: node
                .as_ref()
                .map_or(NodeState::Gone, |node| noted.state_of(uid, node)),
            ready_since: ready.and_then(|node| node.ready_since),
        })
    };
    let tainted = kept
        .iter()
        .filter(|(_, noted)| noted.tainted.is_some())
        .filter_map(|(uid, noted)| {
            let node = node_of(noted)?.clone().ok()?;
            Some(((*uid).clone(), node))
        })
        .collect();
    let nodes = kept
        .into_iter()
        .filter(|(_, noted)| !noted.only_tainted)
        .map(|(uid, noted)| {
            let state = state(uid, noted);
            let mut noted = noted.clone();
            noted.no_later_than(facts.now);
            RememberedNode {
                uid: uid.clone(),
                noted,
                unread: state.as_ref().err().map(ToString::to_string),
                now: state.unwrap_or(Return {
                    state: NodeState::Unread,
                    ready_since: None,
                }),
                sets: Vec::new(),
            }
        });
    (nodes.collect(), tainted)
}

/// Adds the Ready counts of the `StatefulSets` whose pods were reaped, and the volumes of those that are not Ready again.
async fn add_sets(reader: &Reader<'_, impl Api>, nodes: &mut [RememberedNode]) {
    let pods = nodes.iter().flat_map(pods_of_sets).into_group_map();
    let keys = nodes.iter().flat_map(pods_of_sets).map(|(key, _)| key);
    // The namespaces in turn, so that none takes the place of another.
    let keys = keys.unique().collect_vec();
    let keys = in_turn(keys.iter().collect(), 0, |(namespace, _)| Some(namespace))
        .into_iter()
        .take(MAX_SETS)
        .cloned();
    let end = Instant::now() + TIME_LIMIT_OF_ALL;
    let sets = read_each(keys, async |key @ (namespace, name)| {
        let read = reader.api.find::<RawStatefulSet>(namespace, name);
        let set = in_time(end, read).await.ok().flatten()?;
        let copies = set.copies()?;
        let claims = pods[key]
            .iter()
            .filter(|_| copies.ready < copies.wanted)
            .flat_map(|pod| set.claims_of(pod));
        let mut volumes = Vec::new();
        for claim in claims.take(MAX_CLAIMS) {
            let read = reader.api.find::<RawClaim>(namespace, &claim);
            let claim = in_time(end, read).await.ok().flatten();
            volumes.extend(claim.and_then(|claim| claim.volume_name().map(str::to_owned)));
        }
        Some((copies, volumes))
    })
    .await;
    for node in nodes {
        node.sets = pods_of_sets(node)
            .map(|(key, _)| key)
            .unique()
            .sorted()
            .map(|key| {
                let (copies, volumes) = sets.get(&key).cloned().flatten().unzip();
                RememberedSet {
                    copies,
                    volumes: volumes.unwrap_or_default(),
                    namespace: key.0,
                    name: key.1,
                }
            })
            .collect();
    }
}

/// Waits for a read for [`TIME_LIMIT`], and not beyond `end`.
async fn in_time<T>(end: Instant, read: impl Future<Output = Result<T, Failure>>) -> Read<T> {
    let until = end.min(Instant::now() + TIME_LIMIT);
    let late = || Unread("there was no response in time".to_owned());
    Ok(timeout_at(until, read).await.map_err(|_| late())??)
}

/// Lists the reaped pods of `StatefulSets`, each after namespace and name of its set, if the node may be down.
fn pods_of_sets(node: &RememberedNode) -> impl Iterator<Item = ((String, String), String)> {
    let may_be_down = node.now.state.may_be_down();
    node.noted.pods.iter().filter_map(move |pod| {
        let of_set = may_be_down && pod.owner_kind.as_deref() == Some("StatefulSet");
        let (name, _) = pod.name.rsplit_once('-').filter(|_| of_set)?;
        let set = (pod.namespace.clone(), name.to_owned());
        Some((set, pod.name.clone()))
    })
}

#[cfg(test)]
mod tests;
