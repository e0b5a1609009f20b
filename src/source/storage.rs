//! The fourth step of gathering: the storage of the pods that nothing keeps so far.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use itertools::Itertools as _;

use super::gather::{Gathering, read_each};
use crate::{
    cluster::Api,
    facts::{
        Attached, ClaimFacts, ClaimName, ClaimRead, ClaimState, Owner, PodFacts, Read, SetFacts,
        Storage, Unread, VolumeFacts,
    },
    judge::terms,
    kubernetes::{RawDriver, RawStatefulSet},
    selector::is_name,
};

/// The most `StatefulSets` of a namespace whose Ready pods are counted although no verdict depends on it.
const MAX_SETS_COUNTED: usize = 64;
/// The most PVCs of one namespace that a run reads, at two or three requests each. A pod's author
/// chooses how many PVCs the pod names. So each namespace has a share, and one namespace cannot use
/// up the reads of the others.
const MAX_PVCS_OF_NAMESPACE: usize = 640;
/// The most uses of PVCs by the pods of one namespace that a run keeps: many pods may use the same PVC.
const MAX_USES_OF_NAMESPACE: usize = 6_400;

/// A namespace, and the name of an object in it.
type Key = (String, String);

impl<A: Api> Gathering<'_, A> {
    pub async fn read_storage(&mut self) -> Vec<(Box<PodFacts>, Storage)> {
        let reader = self.reader;
        // Only the pod that `explain` asks about can lack a known node here.
        let (mut due, kept) = std::mem::take(&mut self.pods)
            .into_iter()
            .partition::<Vec<_>, _>(|pod| {
                let goes_on = self.is_asked(pod) || self.judged(pod).needs_storage();
                goes_on && self.facts.known_node(pod).is_some()
            });
        self.pods = kept;
        let claims = self.share_out_claims(&mut due);
        let claims = read_each(claims, async |(namespace, name)| {
            Arc::new(reader.claim(namespace, name).await)
        })
        .await;
        let attached = self.facts.attachments.attached();
        let mut due = due
            .into_iter()
            .map(|pod| {
                let storage = storage_of(&pod, &attached, &claims, reader.about.is_part);
                (pod, storage)
            })
            .collect_vec();
        self.read_nodes_and_drivers(&mut due).await;
        self.read_sets(&mut due).await;
        due
    }

    /// Reads the real nodes that each term of a volume allows, and, if there is a disk that is not attached, the CSI drivers
    /// that do not attach volumes.
    async fn read_nodes_and_drivers(&self, due: &mut [(Box<PodFacts>, Storage)]) {
        let reader = self.reader;
        let mut claims = due.iter().flat_map(|(_, storage)| storage.claims());
        let needs_drivers = claims.any(|claim| matches!(claim.attaches, Some(Err(_))));
        let asked = due
            .iter()
            .flat_map(|(_, storage)| storage.volumes())
            .flat_map(terms)
            .cloned()
            .collect::<BTreeSet<_>>();
        let (nodes, detached) = tokio::join!(
            read_each(asked, async |term| reader.nodes_for(term).await),
            async {
                if !needs_drivers {
                    return None;
                }
                Some(reader.all("CSIDrivers", RawDriver::add_detached).await)
            },
        );
        let claims = due.iter_mut().flat_map(|(_, storage)| &mut storage.claims);
        for claim in claims.flatten() {
            let Some(volume) = claim.read.volume() else {
                continue;
            };
            claim.allowed = terms(volume)
                .filter_map(|term| Some((term.clone(), nodes.get(term)?.clone())))
                .collect();
            if let (Some(Err(_)), Some(driver), Some(detached)) =
                (&claim.attaches, &volume.driver, &detached)
            {
                let attaches = detached.as_ref().map(|names| !names.contains(driver));
                claim.attaches = Some(attaches.map_err(Unread::clone));
            }
        }
    }

    /// Reads the `StatefulSets` of pods. A verdict needs some of them, the page the Ready pods of all.
    pub async fn read_sets(&mut self, due: &mut [(Box<PodFacts>, Storage)]) {
        let reader = self.reader;
        let needs_set = |(pod, storage): &&(Box<PodFacts>, Storage)| {
            self.judged(pod)
                .stored(storage)
                .is_some_and(|it| it.needs_set())
        };
        let needed = due
            .iter()
            .filter(needs_set)
            .filter_map(|(pod, _)| set_of(pod))
            .collect::<BTreeSet<_>>();
        let others = due
            .iter()
            .map(|(pod, _)| pod)
            .chain(&self.pods)
            .filter_map(|pod| set_of(pod))
            .unique();
        let mut counted = BTreeMap::<_, usize>::new();
        let others = others.filter(|(namespace, _)| {
            let count = counted.entry(namespace.clone()).or_default();
            *count += 1;
            *count <= MAX_SETS_COUNTED
        });
        let sets = needed
            .iter()
            .cloned()
            .chain(others)
            .collect::<BTreeSet<_>>();
        let sets = read_each(sets, async |(namespace, name)| {
            let mut set = reader
                .api
                .find::<RawStatefulSet>(namespace, name)
                .await
                .map_err(Unread::from)?;
            set.iter_mut().for_each(RawStatefulSet::drop_unused);
            Ok(set)
        })
        .await;
        let pods = due.iter_mut().map(|(pod, _)| pod);
        for pod in pods.chain(&mut self.pods) {
            pod.copies = set_of(pod)
                .and_then(|key| sets.get(&key)?.as_ref().ok()?.as_ref())
                .and_then(RawStatefulSet::copies);
        }
        for (pod, storage) in due {
            let key = set_of(pod).filter(|key| needed.contains(key));
            let Some((key, set)) = key.and_then(|key| sets.get_key_value(&key)) else {
                continue;
            };
            add_set(pod, storage, set);
            // If the StatefulSet could not be read, a pod with local data needs you, and its reason says so. It is an
            // error of the run only if a PVC that can be wanted would go with the pod.
            if let Err(unread) = set
                && self
                    .judged(pod)
                    .stored(storage)
                    .is_some_and(|it| it.fears_for_a_claim())
            {
                let (namespace, name) = key;
                reader.failed(format_args!("StatefulSet {namespace}/{name}"), unread);
            }
        }
    }

    /// Gives each namespace its share of the PVCs to be read, and returns these PVCs: first those of the
    /// pod that the user asked about, then those of due pods, the longest overdue
    /// first, then those of other pods. PVCs beyond the share are treated as unread, which is no error of the run.
    fn share_out_claims(&self, due: &mut [Box<PodFacts>]) -> Vec<Key> {
        // Pods that are only foreseen take no due pod's place.
        let (facts, policy) = (&self.facts, &self.reader.settings.policy);
        due.sort_by_cached_key(|pod| {
            let is_due = self.judged(pod).is_due_so_far();
            let since = facts.overdue_since(pod, policy);
            (!self.is_asked(pod), !is_due, since)
        });
        let (mut keys, mut shares) = (Vec::new(), BTreeMap::<_, (BTreeSet<_>, usize)>::new());
        for pod in due {
            let Ok(names) = &pod.claim_names else {
                continue;
            };
            let claims = names.iter().map(|it| it.name.clone());
            let (share, uses) = shares.entry(pod.namespace.clone()).or_default();
            share.extend(claims.clone().filter(|name| is_name(name)));
            *uses += names.len();
            let is_within = share.len() <= MAX_PVCS_OF_NAMESPACE && *uses <= MAX_USES_OF_NAMESPACE;
            if is_within || names.is_empty() {
                keys.extend(claims.map(|name| (pod.namespace.clone(), name)));
            } else {
                pod.claim_names = Err(Unread(format!(
                    "the pods of its namespace have more than {MAX_PVCS_OF_NAMESPACE} PVCs to look up, or name PVCs more than {MAX_USES_OF_NAMESPACE} times: the limits per namespace and run"
                )));
            }
        }
        keys.into_iter().unique().collect()
    }
}

/// Returns the storage of a pod, as far as its PVCs and the attachments of its node show it.
fn storage_of(
    pod: &PodFacts,
    attached: &Read<Attached<'_>>,
    claims: &BTreeMap<Key, Arc<ClaimRead>>,
    is_part: bool,
) -> Storage {
    let attached = |volume: &VolumeFacts| {
        let key = (pod.node.as_deref()?, volume.name.as_str());
        attached.as_ref().ok()?.get(&key).copied()
    };
    let claim_of = |named: &ClaimName| {
        let read = claims.get(&(pod.namespace.clone(), named.name.clone()));
        let unread = |why: &str| Arc::new(ClaimState::Unread(Unread(why.to_owned())).into());
        let mut read = read.map_or_else(|| unread("it was not looked up"), Arc::clone);
        // Kubernetes keeps a PVC until the pods that use it have ended, so its absence shows what was saved.
        if is_part && read.state == ClaimState::Absent && !pod.finished() {
            read = unread("the file does not have it");
        }
        let disk = read.volume().filter(|volume| volume.driver.is_some());
        let attaches = disk.map(|volume| {
            if attached(volume).is_some() {
                Ok(true)
            } else {
                Err(Unread("the CSI drivers were not read".to_owned()))
            }
        });
        let not_let_go = disk
            .filter(|volume| volume.is_named_disk)
            .and_then(attached);
        ClaimFacts {
            named: named.clone(),
            templated: false,
            owned: read.owners.contains(&pod.uid),
            allowed: BTreeMap::new(),
            attaches,
            not_let_go: not_let_go.is_some_and(|it| !it.held_by_attacher),
            read,
        }
    };
    let claims = pod.claim_names.as_ref().map_err(Unread::clone);
    Storage {
        claims: claims.map(|names| names.iter().map(claim_of).collect()),
        set: None,
    }
}

/// Adds what the `StatefulSet` that has the name of the pod's controller means for the pod.
fn add_set(pod: &PodFacts, storage: &mut Storage, read: &Read<Option<RawStatefulSet>>) {
    let controller = pod.controller.as_ref().map(|its| &its.uid);
    if let Ok(Some(set)) = read
        && controller == Some(&set.metadata.uid)
    {
        for claim in storage.claims.iter_mut().flatten() {
            claim.templated = set.makes(&claim.named.name, &pod.name);
        }
    }
    storage.set = Some(match read {
        Ok(Some(set)) => Ok(SetFacts {
            wants: set.wants(&pod.name),
            controller: set.metadata.controller().map(Owner::from),
        }),
        Ok(None) => Ok(SetFacts::default()),
        Err(unread) => Err(unread.clone()),
    });
}

/// Returns the `StatefulSet` that controls `pod`; `None` if none does.
fn set_of(pod: &PodFacts) -> Option<Key> {
    Some((pod.namespace.clone(), pod.stateful_set()?.to_owned()))
}
