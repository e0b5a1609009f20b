//! An audit of everything also shows pods that would be deleted with a pod, and objects that wait for a node
//! that no longer exists.

use std::collections::BTreeSet;

use super::{NodeRows, Reader, Source, gather::read_each};
use crate::{
    facts::{ClaimState, ClusterFacts, PodFacts, Stray},
    judge::selectors,
};

/// Adds the active pods that a pod controls, and what waits for a node without a row. Only a file
/// shows such pods: a list of all pods would cost a cluster more than its use.
pub(super) async fn find_strays<S: Source>(
    reader: &Reader<'_, S>,
    rows: &NodeRows,
    facts: &mut ClusterFacts,
) {
    let nodes = rows.names().collect::<BTreeSet<_>>();
    for (node, attachments) in facts.attachments.0.iter().flatten() {
        if !nodes.contains(node) {
            let strays = attachments.iter().map(|attachment| Stray::Attachment {
                node: node.clone(),
                attachment: attachment.name.clone(),
            });
            facts.strays.extend(strays);
        }
    }
    let pods = reader.source.pods_at_hand().into_iter();
    for pod in pods.filter(PodFacts::is_active) {
        if let Some(its) = pod.controller.as_ref().filter(|_| pod.made_by("Pod", "")) {
            let owned = facts.owned_by_pods.entry(its.uid.clone()).or_default();
            owned.push(pod.name);
            continue;
        }
        if pod.node.is_some() {
            continue;
        }
        for named in pod.claim_names.iter().flatten() {
            let claim = reader.claim(&pod.namespace, &named.name).await;
            let ClaimState::Bound(bound) = claim.state else {
                continue;
            };
            let nodes = read_each(selectors(&bound.volume), async |selector| {
                reader.nodes_for(selector).await
            });
            let nodes = nodes.await;
            let has_none = |found: &Result<Vec<_>, _>| found.as_ref().is_ok_and(Vec::is_empty);
            if !nodes.is_empty() && nodes.values().all(has_none) {
                facts.strays.push(Stray::Pending {
                    namespace: pod.namespace.clone(),
                    pod: pod.name.clone(),
                    pod_uid: pod.uid.clone(),
                    claim: named.name.clone(),
                    claim_uid: bound.uid.clone(),
                    volume: bound.volume.name.clone(),
                });
            }
        }
    }
}
