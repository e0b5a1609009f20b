//! Turns what the steps of gathering have read into facts, without reading anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use itertools::Itertools as _;

use super::{
    Reader,
    reader::{PodLists, Pods},
};
use crate::{
    cluster::Api,
    facts::{
        AffinityTerm, Attached, BoundClaim, ClaimFacts, ClaimName, ClaimRead, ClaimState,
        ClusterFacts, Counts, LEASES_OF_FILE, Life, NamespaceFacts, Namespaces, NodeCounts,
        NodeFacts, Owner, PodFacts, PodsOf, Quorum, Read, Ready, SetFacts, Storage, Unread,
        VolumeFacts, namespace,
    },
    judge::terms,
    kubernetes::{Holders, LeasesByNode, NodeRow, RawStatefulSet, StaticPods},
    selector::is_name,
    words::natural,
};

/// The most PVCs of one namespace that a run reads, at two or three requests each. A pod's author
/// chooses how many PVCs the pod names. So each namespace has a share, and one namespace cannot use
/// up the reads of the others.
const MAX_PVCS_OF_NAMESPACE: usize = 640;
/// The most uses of PVCs by the pods of one namespace that a run keeps: many pods may use the same PVC.
const MAX_USES_OF_NAMESPACE: usize = 6_400;

/// A namespace, and the name of an object in it.
pub(super) type Key = (String, String);

/// Returns the Terminating pods in matching namespaces, and adds the active pods and the heartbeats that
/// pods show to the facts of the NotReady nodes. If several pods have the same UID, the last one is used: the pod
/// `asked` about comes last, because a list may show an older state of it.
pub(super) fn terminating_pods(
    reader: &Reader<'_, impl Api>,
    facts: &mut ClusterFacts,
    lists: &mut PodLists,
    namespaces: &Read<Namespaces>,
    asked: Option<PodFacts>,
) -> Vec<PodFacts> {
    // If no namespace was saved, none is opted out.
    let in_namespace = |pod: PodFacts| PodFacts {
        in_namespace: if reader.about.lacks_namespaces {
            Ok(NamespaceFacts::default())
        } else {
            namespace(namespaces, &pod.namespace)
        },
        ..pod
    };
    for (list, pods) in lists {
        if let PodsOf::Node(name) = list
            && let Some(Ok(Some(node))) = facts.nodes.get_mut(name)
        {
            let started = |namespace: &String| {
                let mut holders = pods.holders.iter();
                holders.any(|it| it.has_started && it.namespace == *namespace)
            };
            let programs = std::mem::take(&mut pods.programs).into_iter();
            let programs = programs.filter(|(_, heard)| heard.is_believed(facts.now));
            let programs = programs.filter(|(namespace, _)| started(namespace));
            node.hear(programs.map(|(_, heard)| heard));
        }
    }
    let active = reader.within_budget("Active", &reader.active).into_iter();
    let active = active.filter_map(|pod| Some((pod.node.clone()?, in_namespace(pod))));
    facts.active = active.into_group_map().into_iter().collect();
    let found = reader.within_budget("Terminating", &reader.terminating);
    let mut found = found.into_iter().map(in_namespace).collect_vec();
    found.extend(asked.map(in_namespace));
    found.retain(|pod| {
        let lacks = pod.lacks.as_ref();
        if let Some(cause) = lacks {
            reader.note(format_args!("pod {}/{}", pod.namespace, pod.name), cause);
        }
        lacks.is_none()
    });
    // In place, because there may be tens of thousands of pods.
    found.reverse();
    found.sort_by_cached_key(|pod| pod.uid.clone());
    found.dedup_by(|earlier, last| earlier.uid == last.uid);
    found
}

/// Takes the pods that Kubernetes will evict from the active pods of NotReady nodes. Each gets the
/// deletion that Kubernetes will request.
pub(super) fn not_evicted_pods(facts: &mut ClusterFacts) -> Vec<PodFacts> {
    let mut found = Vec::new();
    for (name, active) in &mut facts.active {
        let Some(Ok(Some(node))) = facts.nodes.get(name) else {
            continue;
        };
        let Some(since) = node.not_ready_since(facts.now) else {
            continue;
        };
        let evicted = active.extract_if(.., |pod| {
            // A pod that cannot be judged is reported once it is Terminating.
            let eviction = pod.eviction(node.ready, since, facts.now);
            pod.deletion = eviction.filter(|_| pod.lacks.is_none());
            pod.deletion.is_some()
        });
        found.extend(evicted);
    }
    found
}

/// Returns the pods of a node, if they were listed.
fn on_node<'a>(lists: &'a PodLists, node: &str) -> Option<&'a Pods> {
    lists.get(&PodsOf::Node(node.to_owned()))
}

/// Lists the known nodes that are NotReady.
pub(super) fn not_ready_nodes(facts: &mut ClusterFacts) -> impl Iterator<Item = &mut NodeFacts> {
    let nodes = facts.nodes.values_mut().flatten().flatten();
    nodes.filter(|node| node.ready != Ready::True)
}

/// Adds to the facts of each NotReady node the group by which it may carry the API server's datastore, if it shows that
/// itself: by its role or label, by a static pod, or by the Lease of a k0s controller. `k0s` are the nodes with such a
/// Lease; the label of `MicroK8s` or of Canonical Kubernetes needs the counts.
pub(super) fn note_quorums(
    facts: &mut ClusterFacts,
    rows: &[NodeRow],
    lists: &PodLists,
    k0s: &BTreeSet<String>,
) {
    let shows = |name: &str| {
        on_node(lists, name)
            .map(|pods| pods.shows)
            .unwrap_or_default()
    };
    let is_silent = |node: &&NodeFacts| node.ready != Ready::True;
    let nodes = facts.known_nodes().filter(is_silent);
    // Static pods and Leases show a member of the control plane.
    let by_pods = nodes.clone().filter(|node| {
        let StaticPods { etcd, api_server } = shows(&node.name);
        (etcd || api_server || k0s.contains(&node.name)) && !node.by_role_alone
    });
    let by_pods = by_pods.map(|node| node.name.clone());
    let by_pods = by_pods.collect::<BTreeSet<_>>();
    let of_canonical = nodes.filter(|node| node.roles.canonical);
    let of_canonical = of_canonical.map(|node| node.name.clone()).collect_vec();
    let quorum = |of, is_member: &dyn Fn(&NodeRow) -> bool, has_etcd| {
        let members = rows.iter().filter(|row| is_member(row));
        let (ready, silent): (Vec<_>, Vec<_>) = members.partition(|row| row.is_ready);
        let names = silent.iter().map(|row| row.name.clone());
        Arc::new(Quorum {
            of,
            ready: ready.len(),
            members: ready.len() + silent.len(),
            not_ready: names.sorted_by_cached_key(|name| natural(name)).collect(),
            has_etcd,
        })
    };
    let of_etcd = quorum("nodes with the role etcd", &|row| row.roles.etcd, true);
    let is_of_control_plane =
        |row: &NodeRow| row.roles.control_plane || by_pods.contains(&row.name);
    let has_etcd = by_pods.iter().any(|name| shows(name).etcd);
    let of_control_plane = quorum("control-plane nodes", &is_of_control_plane, has_etcd);
    let of_canonical = match &facts.node_counts {
        NodeCounts::Counted(Counts {
            canonical: tally, ..
        }) => {
            let names = of_canonical.into_iter();
            Some(Arc::new(Quorum {
                of: "control-plane nodes",
                ready: tally.total - tally.not_ready,
                members: tally.total,
                not_ready: names.sorted_by_cached_key(|name| natural(name)).collect(),
                has_etcd: false,
            }))
        }
        _ => None,
    };
    for node in not_ready_nodes(facts) {
        let groups = [
            Some(&of_etcd).filter(|_| node.roles.etcd),
            Some(&of_control_plane).filter(|_| by_pods.contains(&node.name)),
            of_canonical.as_ref().filter(|_| node.roles.canonical),
        ];
        let groups = groups.into_iter().flatten();
        let spare = |it: &&Arc<Quorum>| (2 * it.ready).cast_signed() - it.members.cast_signed();
        node.quorum = groups.min_by_key(spare).cloned();
    }
}

/// Notes that a file has no leases, if a verdict depends on them.
pub(super) fn note_missing_leases(
    reader: &Reader<'_, impl Api>,
    facts: &mut ClusterFacts,
    pods: &[PodFacts],
) {
    let mut nodes = pods.iter().filter_map(|pod| facts.known_node(pod));
    if reader.about.lacks_leases && nodes.any(|node| node.ready != Ready::True) {
        reader.note(
            LEASES_OF_FILE,
            "the file has none, so it cannot show that a node is alive",
        );
        let why = "The file has no leases, so it cannot show that a NotReady node is alive. Pods that are to be reaped may \
                   be running.";
        facts.incomplete = Some(why.to_owned());
    }
}

/// Returns the possible holders of Leases that would show a heartbeat of a NotReady node.
pub(super) fn holders(rows: &[NodeRow], facts: &ClusterFacts, lists: &PodLists) -> Holders {
    let mut holders = Holders::among(rows.iter().map(|row| row.name.clone()));
    for node in facts.known_nodes().filter(|node| node.ready != Ready::True) {
        let pods = on_node(lists, &node.name).into_iter();
        holders.add(node, pods.flat_map(|pods| &pods.holders));
    }
    holders
}

/// Adds the other Leases, and the heartbeats in them, to the facts of the NotReady nodes.
pub(super) fn add_leases(
    facts: &mut ClusterFacts,
    holders: &Holders,
    mut leases: Read<Option<LeasesByNode>>,
    lists: &PodLists,
) {
    let forbidden = matches!(leases, Ok(None));
    if forbidden {
        facts.unseen.push(
            "This account may not list Leases: whether something except a kubelet on a NotReady node still renews one is not seen, so no grace period is cut short."
                .to_owned(),
        );
    }
    let now = facts.now;
    for node in not_ready_nodes(facts) {
        // A pod that was not listed may hold a Lease.
        let unlisted = match on_node(lists, &node.name) {
            Some(pods) => pods.unread.clone(),
            None => Some(Unread("its pods were not listed".to_owned())),
        };
        let own = match (unlisted, &mut leases) {
            (Some(unread), _) => Err(unread),
            (None, Err(unread)) => Err(unread.clone()),
            (None, Ok(all)) => {
                let own = all.as_mut().and_then(|all| all.remove(&node.name));
                Ok(own.unwrap_or(Some(Vec::new())))
            }
        };
        node.life = Some(Life {
            other_leases: Ok(()),
            forbidden,
        });
        holders.hear(node, own, now);
    }
}

/// Gives each namespace its share of the PVCs to be read, and returns these PVCs: first those of the
/// pod that the user asked about, then those of a due pod of each namespace in turn, the longest overdue
/// first, then those of other pods. PVCs beyond the share are treated as unread, which is no error of the run.
pub(super) fn share_out_claims(
    facts: &ClusterFacts,
    due: &mut [PodFacts],
    rank: impl Fn(&PodFacts) -> (bool, bool),
) -> Vec<Key> {
    due.sort_by_cached_key(|pod| {
        (
            rank(pod),
            pod.overdue_since(facts.known_node(pod), facts.now),
        )
    });
    let mut turns = BTreeMap::new();
    due.sort_by_cached_key(|pod| {
        let turn = turns.entry(pod.namespace.clone()).or_insert(0_usize);
        *turn += 1;
        (rank(pod), *turn)
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

/// Returns the storage of a pod, as far as its PVCs and the attachments of its node show it.
pub(super) fn storage_of(
    pod: &PodFacts,
    attached: &Read<Attached<'_>>,
    claims: &BTreeMap<Key, ClaimRead>,
    is_saved: bool,
) -> Storage {
    let attached = |volume: &VolumeFacts| {
        let key = (pod.node.as_deref()?, volume.name.as_str());
        attached.as_ref().ok()?.get(&key).copied()
    };
    let claim_of = |named: &ClaimName| {
        let read = claims.get(&(pod.namespace.clone(), named.name.clone()));
        let unread = || ClaimState::Unread(Unread("it was not looked up".to_owned())).into();
        let mut read = read.cloned().unwrap_or_else(unread);
        // Kubernetes keeps a PVC until the pods that use it have ended, so its absence shows what was saved.
        if is_saved && read.state == ClaimState::Absent && !pod.finished() {
            read = ClaimState::Unread(Unread("the file does not have it".to_owned())).into();
        }
        let disk = read.bound().filter(|bound| bound.volume.driver.is_some());
        let attaches = disk.map(|bound| {
            if attached(&bound.volume).is_some() {
                Ok(true)
            } else {
                Err(Unread("the CSI drivers were not read".to_owned()))
            }
        });
        let not_let_go = disk.filter(|bound| bound.volume.is_named_disk);
        let not_let_go = not_let_go.and_then(|bound| attached(&bound.volume));
        ClaimFacts {
            name: named.name.clone(),
            ephemeral: named.ephemeral,
            read_only: named.read_only,
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
        copies: None,
    }
}

/// Adds the real nodes that each term of a volume allows, and whether the drivers attach volumes. `detached` are the CSI drivers that do not; `None` if no verdict
/// depends on them.
pub(super) fn add_nodes_and_drivers(
    storage: &mut Storage,
    nodes: &BTreeMap<AffinityTerm, Read<Vec<String>>>,
    detached: Option<&Read<BTreeSet<String>>>,
) {
    for claim in storage.claims.iter_mut().flatten() {
        let Some(BoundClaim { volume, .. }) = claim.read.bound() else {
            continue;
        };
        let allowed =
            terms(volume).filter_map(|term| Some((term.clone(), nodes.get(term)?.clone())));
        claim.allowed = allowed.collect();
        if let (Some(Err(_)), Some(driver), Some(detached)) =
            (&claim.attaches, &volume.driver, detached)
        {
            let attaches = detached.as_ref().map(|names| !names.contains(driver));
            claim.attaches = Some(attaches.map_err(Unread::clone));
        }
    }
}

/// Adds what the `StatefulSet` that has the name of the pod's controller means for the pod.
pub(super) fn add_set(pod: &PodFacts, storage: &mut Storage, read: &Read<Option<RawStatefulSet>>) {
    let controller = pod.controller.as_ref().map(|its| &its.uid);
    if let Ok(Some(set)) = read
        && controller == Some(&set.metadata.uid)
    {
        for claim in storage.claims.iter_mut().flatten() {
            claim.templated = set.makes(&claim.name, &pod.name);
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
pub(super) fn set_of(pod: &PodFacts) -> Option<Key> {
    Some((pod.namespace.clone(), pod.stateful_set()?.to_owned()))
}
