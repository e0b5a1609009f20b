//! An audit of everything also shows pods that would be deleted with a pod, and what waits for a pod, or for a node that is
//! not Ready or no longer exists. `explain` asks the same of one pod that has not started.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Reader,
    gather::{Gathering, read_each},
};
use crate::{
    cluster::{Api, Of},
    facts::{Attachments, PodFacts, Sharing, Stray, Waiting, WaitsFor},
    judge::terms,
    kubernetes::{NodeRow, RawPod},
};

/// The most pods that have not started of which the PVCs are read.
const MAX_WAITING: usize = 100;

impl<A: Api> Gathering<'_, A> {
    /// Adds the active pods that a pod controls, and what waits. Only a file shows the former: a list of all pods would cost a
    /// cluster more than its use.
    pub async fn find_strays(&mut self) {
        let (reader, rows, terminating) = (self.reader, &self.rows, &self.pods);
        let facts = &mut self.facts;
        let nodes = rows
            .iter()
            .map(|row| (&row.name, row.is_ready))
            .collect::<BTreeMap<_, _>>();
        if reader.about.is_file {
            let add_owned = |owned: &mut BTreeMap<_, Vec<_>>, pod: &RawPod| {
                let pod = &pod.facts;
                if let Some(owner) = &pod.controller
                    && pod.is_active()
                    && pod.made_by("Pod", "")
                {
                    let owner = (pod.namespace.clone(), owner.uid.clone());
                    owned.entry(owner).or_default().push(pod.name.clone());
                }
            };
            let listed = reader.api.each(Of::All, add_owned).await;
            facts.owned_by_pods = listed.ok().map(|listed| listed.items);
        }
        let (mut waiting, over) = reader.waiting.take().into_pods();
        waiting.sort_by_key(|pod| pod.created);
        let more = waiting.len().saturating_sub(MAX_WAITING);
        facts.more_waiting = over.into_iter().map(|(_, count)| count).sum::<usize>() + more;
        waiting.truncate(MAX_WAITING);
        let overdue = terminating
            .iter()
            .filter(|pod| pod.deletion_deadline() < facts.now)
            .map(|pod| &**pod)
            .collect::<Vec<_>>();
        let found = read_each(0..waiting.len(), async |place| {
            waits_for(reader, rows, &facts.attachments, &overdue, &waiting[*place]).await
        });
        // A pod may wait for a node that works.
        let is_stray = |it: &Waiting| match &it.waits_for {
            WaitsFor::Attachment { node, .. } => !is_ready(rows, node),
            WaitsFor::Pod { .. } | WaitsFor::Nodes { .. } => true,
        };
        let found = found
            .await
            .into_values()
            .flatten()
            .filter(is_stray)
            .collect::<Vec<_>>();
        let named = found
            .iter()
            .filter_map(|it| match &it.waits_for {
                WaitsFor::Attachment { attachment, .. } => Some(attachment),
                WaitsFor::Pod { .. } | WaitsFor::Nodes { .. } => None,
            })
            .collect::<BTreeSet<_>>();
        for (node, attachments) in facts.attachments.0.iter().flatten() {
            let is_gone = !nodes.contains_key(node);
            let strays = attachments
                .iter()
                .filter(|it| is_gone || it.is_leaving && !nodes[node] && !named.contains(&it.name));
            facts.strays.extend(strays.map(|it| Stray::Attachment {
                node: node.clone(),
                attachment: it.name.clone(),
                is_gone,
            }));
        }
        let pending = found.into_iter().map(|it| Stray::Pending(Box::new(it)));
        facts.strays.extend(pending);
    }
}

fn is_ready(rows: &[NodeRow], name: &str) -> bool {
    rows.iter().any(|row| row.name == name && row.is_ready)
}

/// Returns what a pod that has not started waits for, as far as its PVCs show it. `terminating` are the Terminating pods
/// that can have its volumes.
pub async fn waits_for(
    reader: &Reader<'_, impl Api>,
    rows: &[NodeRow],
    attachments: &Attachments,
    terminating: &[&PodFacts],
    pod: &PodFacts,
) -> Option<Waiting> {
    for named in pod.claim_names.iter().flatten() {
        let claim = reader.claim(&pod.namespace, &named.name).await;
        let Some(volume) = claim.volume() else {
            continue;
        };
        let is_elsewhere = |node: &String| pod.node.as_ref() != Some(node);
        let uses_it = |other: &&&PodFacts| {
            let mut names = other.claim_names.iter().flatten();
            other.namespace == pod.namespace && names.any(|it| it.name == named.name)
        };
        let user = terminating.iter().find(uses_it).and_then(|user| {
            let (name, node) = (user.name.clone(), user.node.clone()?);
            Some(WaitsFor::Pod { name, node })
        });
        let attached = attachments.0.iter().flatten().find_map(|(node, all)| {
            let it = all
                .iter()
                .filter(|_| is_elsewhere(node))
                .find(|it| it.volume.as_ref() == Some(&volume.name))?;
            let (attachment, node) = (it.name.clone(), node.clone());
            Some(WaitsFor::Attachment { attachment, node })
        });
        let found = match volume.sharing {
            Sharing::OnePod => user.or(attached),
            // Pods of one node share it, and the scheduler asks no attachment.
            Sharing::OneNode if pod.node.is_some() => user
                .filter(|it| matches!(it, WaitsFor::Pod { node, .. } if is_elsewhere(node)))
                .or(attached),
            Sharing::OneNode | Sharing::ManyNodes => None,
        };
        let found = match found {
            None if pod.node.is_none() => {
                let nodes =
                    read_each(terms(volume), async |term| reader.nodes_for(term).await).await;
                // Of more than one node, only two are named.
                let is_known =
                    |found: &Result<Vec<_>, _>| found.as_ref().is_ok_and(|names| names.len() < 2);
                let mut names = nodes.values().flatten().flatten();
                let waits = !nodes.is_empty()
                    && nodes.values().all(is_known)
                    && names.all(|name| !is_ready(rows, name));
                waits.then(|| WaitsFor::Nodes {
                    nodes: nodes.into_values().flatten().flatten().collect(),
                })
            }
            found => found,
        };
        if let Some(waits_for) = found {
            return Some(Waiting {
                namespace: pod.namespace.clone(),
                pod: pod.name.clone(),
                pod_uid: pod.uid.clone(),
                claim: named.name.clone(),
                volume: volume.name.clone(),
                waits_for,
            });
        }
    }
    None
}
