//! Turns what the steps of gathering have read into facts, without reading anything.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use super::{NodeRows, NotRead, Reader, Source, reader::Pods};
use crate::{
    facts::{
        ClaimFacts, ClaimName, ClaimRead, ClaimState, ClusterFacts, LEASES_OF_FILE, Life,
        NamespaceFacts, Namespaces, NodeFacts, NodeRead, PodFacts, PodsOf, Quorum, Read, Ready,
        SetFacts, Storage, Unread, namespace,
    },
    judge::selectors,
    kubernetes::{Holders, LeasesByNode, RawStatefulSet},
    selector::is_name,
};

/// The most PVCs of one namespace that a run reads, at two or three requests each. A pod's author
/// chooses how many PVCs the pod names. So each namespace has a share, and one namespace cannot use
/// up the reads of the others.
const MAX_PVCS_OF_NAMESPACE: usize = 640;

/// A namespace, and the name of an object in it.
pub(super) type Key = (String, String);
/// The `StatefulSets` that were read.
pub(super) type Sets = BTreeMap<Key, Result<Option<RawStatefulSet>, NotRead>>;

/// Takes the Terminating pods in matching namespaces from their lists, and adds the active pods and
/// the heartbeats that pods show to the facts of the NotReady nodes. If several pods have the same
/// UID, the last one is used: the pod `asked` about comes last, because a list may show an older
/// state of it.
pub(super) fn judged_pods<S: Source>(
    reader: &Reader<'_, S>,
    facts: &mut ClusterFacts,
    lists: &mut BTreeMap<PodsOf, Pods>,
    namespaces: &Read<Option<Namespaces>>,
    asked: Option<PodFacts>,
) -> Vec<PodFacts> {
    let mut found = Vec::new();
    // A pod without a namespace is reported as a pod that cannot be judged.
    let filter = reader.wanted.namespaces;
    let matches = |pod: &PodFacts| pod.namespace.is_empty() || filter.matches(&pod.namespace);
    // If no namespace was saved, none is opted out.
    let namespaces = namespaces.clone().transpose();
    let in_namespace = |pod: PodFacts| PodFacts {
        in_namespace: match &namespaces {
            Some(all) => namespace(all, &pod.namespace),
            None => Ok(NamespaceFacts::default()),
        },
        ..pod
    };
    for (list, Pods { kept, .. }) in lists {
        let pods = std::mem::take(kept);
        let name = match list {
            PodsOf::Node(name) => Some(name),
            _ => None,
        };
        let node = name.as_ref().and_then(|name| facts.nodes.get_mut(*name));
        let is_read = node.is_some();
        if let Some(NodeRead::Known(node)) = node {
            node.hear(pods.iter().filter_map(|pod| pod.heard.clone()));
        }
        let pods = pods.into_iter().filter(matches).map(in_namespace);
        let (terminating, others): (Vec<_>, Vec<_>) = pods.partition(|pod| pod.deletion.is_some());
        found.extend(terminating);
        if let Some(name) = name.filter(|_| is_read) {
            let active = others.into_iter().filter(PodFacts::is_active).collect();
            facts.active.insert(name.clone(), active);
        }
    }
    found.extend(asked.map(in_namespace));
    found.retain_mut(|pod| {
        let lacks = pod.lacks.take();
        let is_whole = lacks.is_none();
        if let Some(cause) = lacks {
            reader.note(format_args!("pod {}/{}", pod.namespace, pod.name), cause);
        }
        is_whole
    });
    // In place, because there may be tens of thousands of pods.
    found.sort_by_cached_key(|pod| pod.uid.clone());
    found.dedup_by(|later, earlier| {
        let is_same = later.uid == earlier.uid;
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
    found
}

/// Adds the members of etcd to the facts of the NotReady nodes that ran one: by their role, or by a
/// static pod of etcd on them.
pub(super) fn note_etcd(facts: &mut ClusterFacts, rows: &NodeRows, lists: &BTreeMap<PodsOf, Pods>) {
    let runs_it = |name: &String| {
        let pods = lists.get(&PodsOf::Node(name.clone()));
        rows.etcd.contains_key(name) || pods.is_some_and(|pods| pods.etcd)
    };
    let seen = rows.not_ready.iter().filter(|name| runs_it(name));
    let seen = seen.cloned().collect_vec();
    let mut members = if rows.etcd.is_empty() {
        rows.control_plane.clone()
    } else {
        rows.etcd.clone()
    };
    // Without a role of its own, etcd may run on a node whose pods could not be listed.
    let may_run_it = |name: &&String| {
        let pods = lists.get(&PodsOf::Node((*name).clone()));
        rows.etcd.is_empty() && pods.is_none_or(|pods| pods.unread.is_some())
    };
    let unlisted = rows.not_ready.iter().filter(may_run_it);
    members.extend(
        seen.iter()
            .chain(unlisted)
            .map(|name| (name.clone(), false)),
    );
    let quorum = Quorum {
        ready: members.values().filter(|is_ready| **is_ready).count(),
        members: members.len(),
    };
    for node in not_ready_nodes(facts).filter(|node| seen.contains(&node.name)) {
        node.etcd = Some(quorum);
    }
}

/// Notes that a file has no leases, if a verdict depends on them.
pub(super) fn note_missing_leases<S: Source>(
    reader: &Reader<'_, S>,
    facts: &mut ClusterFacts,
    rows: &NodeRows,
    pods: &[PodFacts],
) {
    let is_on_dead = |pod: &PodFacts| {
        let node = facts.known_node(pod);
        node.is_some_and(|node| node.ready != Ready::True)
    };
    if !rows.has_leases && pods.iter().any(is_on_dead) {
        reader.note(
            LEASES_OF_FILE,
            "the file has none, so it cannot show that a node is alive",
        );
        let why = "The file has no leases, so it cannot show that a NotReady node is alive. Pods that are to be reaped may \
                   be running.";
        facts.incomplete = Some(why.to_owned());
    }
}

/// Lists the known nodes that are NotReady.
fn not_ready_nodes(facts: &mut ClusterFacts) -> impl Iterator<Item = &mut NodeFacts> {
    facts.nodes.values_mut().filter_map(|node| match node {
        NodeRead::Known(node) if node.ready != Ready::True => Some(node),
        _ => None,
    })
}

/// Returns the possible holders of Leases that would show a heartbeat of a NotReady node.
pub(super) fn holders(
    rows: &NodeRows,
    facts: &ClusterFacts,
    lists: &BTreeMap<PodsOf, Pods>,
) -> Holders {
    let mut holders = Holders::among(rows.names.iter().cloned());
    for node in facts.known_nodes().filter(|node| node.ready != Ready::True) {
        let pods = lists.get(&PodsOf::Node(node.name.clone()));
        holders.add(node, pods.into_iter().flat_map(|pods| &pods.holders));
    }
    holders
}

/// Adds the other Leases, and the heartbeats in them, to the facts of the NotReady nodes.
pub(super) fn hear(
    facts: &mut ClusterFacts,
    holders: &Holders,
    leases: Option<LeasesByNode>,
    lists: &BTreeMap<PodsOf, Pods>,
) {
    let forbidden = leases.is_none();
    if forbidden {
        facts.unseen.push(
            "This account may not list Leases: whether something except a kubelet on a NotReady node still renews one is not seen, so no grace period is cut short."
                .to_owned(),
        );
    }
    let (now, mut leases) = (facts.now, leases.unwrap_or_default());
    for node in not_ready_nodes(facts) {
        // The Leases were read by name in all namespaces, and for all API servers.
        let own = leases.remove(&node.name).unwrap_or(Ok(Some(Vec::new())));
        // A pod that was not listed may hold a Lease.
        let unlisted = match lists.get(&PodsOf::Node(node.name.clone())) {
            Some(pods) => pods.unread.clone(),
            None => Some(Unread("its pods were not listed".to_owned())),
        };
        node.life = Some(Life {
            named_by: Ok(BTreeSet::new()),
            forbidden,
        });
        holders.hear(node, unlisted.map_or(own, Err), now);
    }
}

/// Gives each namespace its share of the PVCs to be read, and returns these PVCs: first those of the
/// pod that the user asked about, then those of a pod of each namespace in turn, the longest overdue
/// first. PVCs beyond the share are treated as unread, which is no error of the run.
pub(super) fn admitted(
    facts: &ClusterFacts,
    due: &mut [PodFacts],
    is_asked: impl Fn(&PodFacts) -> bool,
) -> Vec<Key> {
    due.sort_by_cached_key(|pod| {
        (
            !is_asked(pod),
            pod.overdue_since(facts.known_node(pod), facts.now),
        )
    });
    let mut turns = BTreeMap::new();
    due.sort_by_cached_key(|pod| {
        let turn = turns.entry(pod.namespace.clone()).or_insert(0_usize);
        *turn += 1;
        (!is_asked(pod), *turn)
    });
    let (mut keys, mut shares) = (Vec::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for pod in due {
        let Ok(names) = &pod.claim_names else {
            continue;
        };
        let share = shares.entry(pod.namespace.clone()).or_default();
        share.extend(
            names
                .iter()
                .map(|it| it.name.clone())
                .filter(|name| is_name(name)),
        );
        if share.len() <= MAX_PVCS_OF_NAMESPACE || names.is_empty() {
            keys.extend(
                names
                    .iter()
                    .map(|it| (pod.namespace.clone(), it.name.clone())),
            );
        } else {
            pod.claim_names = Err(Unread(format!(
                "its namespace has more than {MAX_PVCS_OF_NAMESPACE} PVCs to look up, the limit per namespace and run"
            )));
        }
    }
    keys.into_iter().unique().collect()
}

/// What the step about storage has read so far.
#[derive(Default)]
pub(super) struct StorageReads {
    pub claims: BTreeMap<Key, ClaimRead>,
    /// The real nodes that a label selector selects.
    pub nodes: BTreeMap<String, Read<Vec<String>>>,
    /// The CSI drivers that attach nothing; `None` if no verdict depends on them.
    pub detached_drivers: Option<Read<BTreeSet<String>>>,
    pub sets: Sets,
}

impl StorageReads {
    /// Lists the label selectors of the nodes that the volumes allow, as far as a verdict depends on
    /// these nodes.
    pub fn selectors(&self) -> BTreeSet<String> {
        let bound = self.claims.values().filter_map(|claim| match &claim.state {
            ClaimState::Bound(bound) => Some(&bound.volume),
            _ => None,
        });
        bound.flat_map(selectors).collect()
    }

    /// Returns the storage of a pod. What was not read is unread in it.
    pub fn storage_of(&self, pod: &PodFacts, facts: &ClusterFacts) -> Storage {
        let set = set_of(pod).and_then(|key| self.sets.get(&key));
        let set_of_pod = set.and_then(|read| read.as_ref().ok()?.as_ref());
        let controller = pod.controller.as_ref();
        let maker =
            set_of_pod.filter(|set| controller.is_some_and(|its| its.uid == set.metadata.uid));
        let node = pod.node.as_ref();
        let attachments = node.and_then(|node| facts.attachments.get(node));
        let attached = attachments.into_iter().flatten();
        let attached = attached.filter_map(|it| it.volume.as_deref()).collect();
        let claims = pod.claim_names.as_ref().map_err(Unread::clone);
        let claims = claims.map(|names| {
            let claims = names.iter().map(|named| {
                let templated = maker.is_some_and(|set| set.makes(&named.name, &pod.name));
                self.claim_of(pod, named, templated, &attached)
            });
            claims.collect()
        });
        Storage {
            claims,
            set: set.map(|read| match read {
                Ok(Some(set)) => Ok(SetFacts {
                    wants: set.wants(&pod.name),
                    copies: set.copies(),
                }),
                Ok(None) => Ok(SetFacts::default()),
                Err(failure) => Err(failure.clone().into()),
            }),
        }
    }

    /// Returns the PVC that a pod calls `named`. `attached` are the volumes that are attached to its
    /// node.
    fn claim_of(
        &self,
        pod: &PodFacts,
        named: &ClaimName,
        templated: bool,
        attached: &BTreeSet<&str>,
    ) -> ClaimFacts {
        let unread = || Unread("it was not looked up".to_owned());
        let key = (pod.namespace.clone(), named.name.clone());
        let read = self.claims.get(&key).cloned();
        let read = read.unwrap_or_else(|| ClaimState::Unread(unread()).into());
        let volume = match &read.state {
            ClaimState::Bound(bound) => Some(&bound.volume),
            _ => None,
        };
        let terms = volume.into_iter().flat_map(|volume| &volume.affinity);
        let allowed = terms.map(|term| {
            let selector = term.selector()?;
            let nodes = selector.and_then(|selector| self.nodes.get(&selector).cloned());
            nodes.unwrap_or_else(|| Err(Unread("they were not looked up".to_owned())))
        });
        let attaches = volume.and_then(|volume| {
            let driver = volume.driver.as_ref()?;
            Some(match &self.detached_drivers {
                _ if attached.contains(volume.name.as_str()) => Ok(true),
                Some(Ok(detached)) => Ok(!detached.contains(driver)),
                Some(Err(why)) => Err(why.clone()),
                None => Err(Unread("the CSI drivers were not read".to_owned())),
            })
        });
        ClaimFacts {
            name: named.name.clone(),
            ephemeral: named.ephemeral,
            templated,
            finalizers: read.finalizers,
            owner: read.owner,
            owned: read.owners.contains(&pod.uid),
            allowed: allowed.collect(),
            attaches,
            deletion: read.deletion,
            state: read.state,
        }
    }
}

/// Returns the `StatefulSet` that controls `pod`; `None` if none does.
pub(super) fn set_of(pod: &PodFacts) -> Option<Key> {
    let owner = pod.owner.as_ref().filter(|_| pod.of_stateful_set())?;
    Some((pod.namespace.clone(), owner.name.clone()))
}

/// Notes the `StatefulSets` that could not be read although a verdict depends on them, as `depends`
/// says of a pod. No verdict depends on them for a PVC that stays: its pod needs you in any case.
pub(super) fn note_unread_sets<S: Source>(
    reader: &Reader<'_, S>,
    pods: &[(PodFacts, Option<Storage>)],
    sets: &Sets,
    depends: impl Fn(&PodFacts, &Storage) -> bool,
) {
    for (pod, storage) in pods {
        let Some(key) = set_of(pod) else {
            continue;
        };
        let (Some(Err(failure)), (namespace, name)) = (sets.get(&key), &key) else {
            continue;
        };
        if storage
            .as_ref()
            .is_some_and(|storage| depends(pod, storage))
        {
            reader.failed(format_args!("StatefulSet {namespace}/{name}"), failure);
        }
    }
}
