//! How many pods of a workload are Ready elsewhere: what a person asks before they give up the data
//! of one of them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};

use super::{Source, Store};
use crate::{
    cluster::MAX_IN_FLIGHT,
    facts::{ClusterFacts, Copies, NodeRead, Owner, PodFacts, Ready},
};

/// Counts the copies of each workload of which a pod may be given up with its claims. That costs a
/// list of the pods of its namespace.
pub async fn count(
    store: &Store<'_, impl Source>,
    facts: &ClusterFacts,
    pods: &[PodFacts],
) -> Copies {
    let is_asked = |pod: &&PodFacts| pod.claims.iter().any(|claim| claim.renewed.is_some());
    let mut asked = BTreeMap::<_, BTreeSet<Owner>>::new();
    for pod in pods.iter().filter(is_asked) {
        asked
            .entry(&pod.namespace)
            .or_default()
            .extend(pod.series());
    }
    let is_up = |name: &String| {
        let node = facts.nodes.get(name).and_then(NodeRead::known);
        !facts.nodes.contains_key(name) || node.is_some_and(|node| node.ready == Ready::True)
    };
    let counted = stream::iter(asked).map(async |(namespace, workloads)| {
        let users = store.users(namespace).await;
        let count = |workload: &Owner| {
            let serving = users.as_ref().map_err(Clone::clone)?.iter();
            let serving = serving.filter(|pod| pod.serves && pod.node.as_ref().is_some_and(is_up));
            let owners = serving.filter_map(|pod| pod.workload.as_ref());
            Ok(owners.filter(|owner| workload.includes(owner)).count())
        };
        let keyed = workloads.into_iter().map(|workload| {
            let copies = count(&workload);
            ((namespace.clone(), workload), copies)
        });
        keyed.collect::<Vec<_>>()
    });
    counted
        .buffer_unordered(MAX_IN_FLIGHT)
        .flat_map(stream::iter)
        .collect()
        .await
}
