//! What an audit of everything shows besides stuck pods: pods that go with a pod, and what waits for a node
//! that no longer exists.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use super::{Reader, Source};
use crate::{
    facts::{Attachment, ClaimState, PodFacts, Read, Stray, Uid},
    judge::selectors,
};

/// Lists the active pods that a pod controls, by its UID, and what waits for a node that is not among `nodes`.
pub(super) async fn strays<S: Source>(
    reader: &Reader<'_, S>,
    nodes: &BTreeSet<String>,
    attachments: &BTreeMap<String, Vec<Attachment>>,
) -> (BTreeMap<Uid, Vec<String>>, Vec<Stray>) {
    let (mut owned, mut pending) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for pod in reader
        .source
        .pods_at_hand()
        .into_iter()
        .filter(PodFacts::is_active)
    {
        if let Some(its) = pod.controller.as_ref().filter(|_| pod.made_by("Pod", "")) {
            owned.entry(its.uid.clone()).or_default().push(pod.name);
        } else if pod.node.is_none() {
            pending.push(pod);
        }
    }
    let gone = attachments
        .iter()
        .filter(|(node, _)| !nodes.contains(*node));
    let gone = gone.flat_map(|(node, all)| all.iter().map(move |it| (node, it)));
    let mut strays = gone
        .map(|(node, attachment)| Stray::Attachment {
            node: node.clone(),
            attachment: attachment.name.clone(),
        })
        .collect_vec();
    for pod in pending {
        let names = pod.claim_names.as_ref().map_or(&[][..], Vec::as_slice);
        for named in names {
            let claim = reader.claim(&pod.namespace, &named.name).await;
            let ClaimState::Bound(bound) = claim.state else {
                continue;
            };
            let mut fits = Vec::<Read<Vec<String>>>::new();
            for selector in selectors(&bound.volume) {
                fits.push(reader.nodes_for(&selector).await);
            }
            if !fits.is_empty()
                && fits
                    .iter()
                    .all(|nodes| nodes.as_ref().is_ok_and(Vec::is_empty))
            {
                strays.push(Stray::Pending {
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
    (owned, strays)
}
