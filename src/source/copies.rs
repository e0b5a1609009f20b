//! How many pods of a workload are Ready elsewhere: what a person asks before they give up the data
//! of one of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, Store, each};
use crate::facts::{ClusterFacts, Copies, Owner, PodFacts, Ready};

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
        let node = facts.known(name);
        !facts.nodes.contains_key(name) || node.is_some_and(|node| node.ready == Ready::True)
    };
    let listed = each(asked.keys().copied(), |namespace| store.users(namespace)).await;
    let count = |namespace: &String, workload: &Owner| {
        let users = listed[namespace].as_ref().map_err(Clone::clone)?;
        let serving = users
            .iter()
            .filter(|pod| pod.serves && pod.node.as_ref().is_some_and(is_up));
        let owners = serving.filter_map(|pod| pod.workload.as_ref());
        Ok(owners.filter(|owner| workload.includes(owner)).count())
    };
    let keys = asked.iter().flat_map(|(namespace, workloads)| {
        let workloads = workloads.iter().cloned();
        workloads.map(|workload| ((*namespace).clone(), workload))
    });
    keys.map(|key| {
        let copies = count(&key.0, &key.1);
        (key, copies)
    })
    .collect()
}
