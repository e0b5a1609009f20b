//! An audit of everything also shows pods that would be deleted with a pod, and objects that wait for a node
//! that no longer exists.

use std::collections::BTreeSet;

use super::gather::{Gathering, read_each};
use crate::{
    cluster::{Api, Of},
    facts::{PodFacts, Stray},
    judge::terms,
    kubernetes::RawPod,
};

impl<A: Api> Gathering<'_, A> {
    /// Adds the active pods that a pod controls, and what waits for a node without a row. Only a file
    /// shows such pods: a list of all pods would cost a cluster more than its use.
    pub async fn find_strays(&mut self) {
        let (reader, facts) = (self.reader, &mut self.facts);
        let nodes = self
            .rows
            .iter()
            .map(|row| &row.name)
            .collect::<BTreeSet<_>>();
        for (node, attachments) in facts.attachments.0.iter().flatten() {
            if !nodes.contains(node) {
                let strays = attachments.iter().map(|attachment| Stray::Attachment {
                    node: node.clone(),
                    attachment: attachment.name.clone(),
                });
                facts.strays.extend(strays);
            }
        }
        if !reader.about.is_file {
            return;
        }
        let add_active = |active: &mut Vec<_>, pod: &RawPod| {
            active.extend(Some(pod.facts()).filter(PodFacts::is_active));
        };
        let pods = reader.api.each(Of::All, add_active).await;
        for pod in pods.into_iter().flat_map(|listed| listed.items) {
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
                let Some(volume) = claim.volume() else {
                    continue;
                };
                let nodes = read_each(terms(volume), async |term| reader.nodes_for(term).await);
                let nodes = nodes.await;
                let has_none = |found: &Result<Vec<_>, _>| found.as_ref().is_ok_and(Vec::is_empty);
                if !nodes.is_empty() && nodes.values().all(has_none) {
                    facts.strays.push(Stray::Pending {
                        namespace: pod.namespace.clone(),
                        pod: pod.name.clone(),
                        claim: named.name.clone(),
                        volume: volume.name.clone(),
                    });
                }
            }
        }
    }
}
