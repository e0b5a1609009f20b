//! How many pods of a workload are Ready elsewhere: what a person asks before they give up the data
//! of one of them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};

use super::Source;
use crate::{
    cluster::{MAX_IN_FLIGHT, PodsOf},
    facts::{ClusterFacts, Copies, NodeRead, Owner, PodFacts, Read, Ready, Unread},
};

/// The Ready pods of a namespace that use claims: the workload and the node of each.
pub(super) type Serving = Read<Vec<(Owner, String)>>;

/// Counts the copies of each workload of which a pod may be given up with its claims. That costs a
/// list of the pods of its namespace.
pub(super) async fn count(source: &impl Source, facts: &ClusterFacts, pods: &[PodFacts]) -> Copies {
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
        let serving = source.memory().serving.of(namespace.clone());
        let serving = serving.get_or_init(|| list(source, namespace)).await;
        let count = |workload: &Owner| {
            let serving = serving.as_ref().map_err(Clone::clone)?.iter();
            let copies = serving.filter(|(owner, node)| workload.includes(owner) && is_up(node));
            Ok(copies.count())
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

async fn list(source: &impl Source, namespace: &str) -> Serving {
    let pods = PodsOf::Namespace(namespace.to_owned());
    let (pods, whole) = source.summaries(&pods).await?;
    if !whole {
        return Err(Unread(
            "not all pods of the namespace are readable".to_owned(),
        ));
    }
    let serving = pods
        .into_iter()
        .filter(|pod| pod.serves && !pod.claims.is_empty());
    Ok(serving
        .filter_map(|pod| Some((pod.workload?, pod.node?)))
        .collect())
}
