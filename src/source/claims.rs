//! The claims of pods: looks up each claim that a rule depends on, and completes the pod's facts.
//!
//! The order of the look-ups is a matter of safety. Whether a claim may be given up depends on a
//! person's declaration on the claim, and on the claim's `StatefulSet` and its other users. Those
//! two are read after every claim, so they are never older than the declaration.

use std::collections::{BTreeSet, HashMap};

use futures_util::{StreamExt, stream};
use itertools::Itertools as _;

use super::Source;
use crate::{
    cluster::{Cluster, Failure, MAX_IN_FLIGHT, PodsOf},
    decide::{Case, GiveUp, Policy, is_to_ask},
    facts::{
        ClaimFacts, ClaimState, ClusterFacts, Doubt, FoundClaim, NodeRead, Owned, PodFacts,
        PodSummary, Read, Unread,
    },
    kubernetes::RawStatefulSet,
};

/// The names of the pods that use a claim, by node, namespace and claim. The key includes the node
/// because a claim whose volume is on one node cannot be in use on another.
type UsersOnNode = HashMap<(Option<String>, String, String), Vec<String>>;

/// Looks up the claims of each pod that the rules before the volume rules let through, or that
/// `also` picks. Returns all pods.
pub(super) async fn look_up(
    source: &impl Source,
    policy: &Policy,
    facts: &ClusterFacts,
    mut pods: Vec<PodFacts>,
    also: impl Fn(&PodFacts) -> bool,
) -> Vec<PodFacts> {
    let users = &users_on_node(facts, &pods);
    let needed = |pod: &&mut PodFacts| also(pod) || Case::of(facts, policy, pod).needs_claims();
    let mut due = pods.iter_mut().filter(needed).collect::<Vec<_>>();
    // First all claims, then what decides whether one may be given up: see the top of this file.
    stream::iter(&mut due)
        .for_each_concurrent(MAX_IN_FLIGHT, |pod| {
            ask_about_claims(source, facts, users, pod)
        })
        .await;
    stream::iter(&mut due)
        .for_each_concurrent(MAX_IN_FLIGHT, |pod| ask_about_owned(source, pod))
        .await;
    let asks = |pod: &PodFacts| Case::of(facts, policy, pod).asks_about_giving_up();
    let due = due.into_iter().filter_map(|pod| Some((asks(pod)?, pod)));
    let due = due.collect::<Vec<_>>();
    let declared = due.iter().filter(|(asks, _)| *asks == GiveUp::Declared);
    let namespaces = declared.map(|(_, pod)| pod.namespace.clone());
    stream::iter(namespaces.collect::<BTreeSet<_>>())
        .for_each_concurrent(MAX_IN_FLIGHT, |namespace| remember_users(source, namespace))
        .await;
    stream::iter(due)
        .for_each_concurrent(MAX_IN_FLIGHT, |(asks, pod)| {
            ask_about_giving_up(source, asks, pod)
        })
        .await;
    pods
}

/// Reads each claim of `pod` and, if a rule needs them, the nodes that the claim's volume allows.
async fn ask_about_claims(
    source: &impl Source,
    facts: &ClusterFacts,
    users: &UsersOnNode,
    pod: &mut PodFacts,
) {
    let memory = source.memory();
    let node = facts.node_of(pod).and_then(NodeRead::known);
    for claim in &mut pod.claims {
        let (namespace, name) = (&pod.namespace, &claim.name);
        let found = memory.claims.of((namespace.clone(), name.clone()));
        let found = found.get_or_init(|| source.claim(namespace, name)).await;
        let FoundClaim { owners, mut state } = found.clone();
        if owners.contains(&pod.uid) {
            claim.owned = Owned::Alone;
        }
        let users = users.get(&(pod.node.clone(), namespace.clone(), name.clone()));
        let others = users.into_iter().flatten();
        claim.users = others.filter(|user| **user != pod.name).cloned().collect();
        if let (ClaimState::Bound(bound), Some(node)) = (&mut state, node)
            && is_to_ask(&bound.volume, node)
        {
            for term in &mut bound.volume.affinity {
                if let Ok(Some(selector)) = term.selector() {
                    let nodes = memory.selected.of(selector.clone());
                    let nodes = nodes.get_or_init(|| source.real_nodes(&selector)).await;
                    term.satisfied_by = Some(nodes.clone());
                }
            }
        }
        claim.state = state;
    }
}

/// Finds out whether something still wants the claims that `pod` owns, because they are deleted
/// with the pod.
async fn ask_about_owned(source: &impl Source, pod: &mut PodFacts) {
    if !pod.owns_a_claim() {
        return;
    }
    let wanted = wanted(pod, set_of(source, pod, true).await);
    let owned = |claim: &&mut ClaimFacts| claim.owned != Owned::No && !claim.ephemeral;
    for claim in pod.claims.iter_mut().filter(owned) {
        claim.owned.clone_from(&wanted);
    }
}

/// Finds out whether the pinned claims of `pod` may be given up with it.
async fn ask_about_giving_up(source: &impl Source, asks: GiveUp, pod: &mut PodFacts) {
    // As long as nothing is declared, a set that could not be read is no error of the run: the
    // report asks a person all the same, and says that it could not be read.
    let is_declared = asks == GiveUp::Declared;
    let set = set_of(source, pod, is_declared).await;
    let users = source.memory().users.of(pod.namespace.clone());
    let users = users.get();
    for claim in &mut pod.claims {
        let uses = |user: &&PodSummary| user.uid != pod.uid && user.claims.contains(&claim.name);
        let listed = users.into_iter().flatten().flatten().filter(uses);
        claim.users.extend(listed.map(|user| user.name.clone()));
    }
    let users = users.filter(|_| is_declared);
    let renewed = |claim: &ClaimFacts| renewed(pod, &claim.name, set.as_ref(), users);
    let renewed = pod.claims.iter().map(renewed).collect::<Vec<_>>();
    for (claim, renewed) in pod.claims.iter_mut().zip(renewed) {
        claim.renewed = Some(renewed);
    }
    let set = set.and_then(|set| set.ok()?);
    pod.templates = set.as_ref().map(RawStatefulSet::templates);
}

/// Lists the pods of a namespace that use claims, and keeps them in the memory.
async fn remember_users(source: &impl Source, namespace: String) {
    let users = source.memory().users.of(namespace.clone());
    let list = async || {
        let (mut users, whole) = source.summaries(&PodsOf::Namespace(namespace)).await?;
        if !whole {
            // A pod that could not be read may use any claim.
            return Err(Unread("not all of them are readable".to_owned()));
        }
        users.retain(|user| !user.claims.is_empty());
        Ok(users)
    };
    users.get_or_init(list).await;
}

/// Reads the `StatefulSet` that controls `pod`, or takes it from the memory; `None` if none
/// controls the pod. `needed` says that a verdict depends on the set.
async fn set_of(
    source: &impl Source,
    pod: &PodFacts,
    needed: bool,
) -> Option<Read<Option<RawStatefulSet>>> {
    let (namespace, name) = (&pod.namespace, name_of_set(pod)?);
    let key = (namespace.clone(), name.clone(), needed);
    let set = source.memory().sets.of(key);
    let set = set.get_or_init(|| source.stateful_set(namespace, name, needed));
    Some(set.await.clone())
}

/// Checks that the pod's `StatefulSet` creates `claim` again, for that pod alone. An error says
/// what speaks against it. `users` are the pods of the namespace that use claims; they are listed
/// only if a claim is declared to be given up.
fn renewed(
    pod: &PodFacts,
    claim: &str,
    set: Option<&Read<Option<RawStatefulSet>>>,
    users: Option<&Read<Vec<PodSummary>>>,
) -> Result<(), Doubt> {
    let unread =
        |what: &str, why: &str| Err(Doubt::unread(format!("{what} could not be read: {why}")));
    let set = match set {
        None => return Err(Doubt::proved("no StatefulSet made it")),
        Some(Ok(None)) => return Err(Doubt::proved("its StatefulSet does not exist")),
        Some(Err(Unread(why))) => return unread("its StatefulSet", why),
        Some(Ok(Some(set))) => set,
    };
    if pod.controller.as_ref().map(|its| &its.uid) != Some(&set.metadata.uid) {
        let why = "its StatefulSet is now another one of that name";
        return Err(Doubt::proved(why));
    }
    if !set.makes(claim, &pod.name) {
        return Err(Doubt::proved(format!(
            "claim {claim} comes from no template of its StatefulSet, or the set no longer wants the pod"
        )));
    }
    if !pod.indexed {
        return Err(Doubt::proved(
            "it has no label apps.kubernetes.io/pod-index: its StatefulSet controller may be older than \
             Kubernetes 1.28, which does not always create such a claim again",
        ));
    }
    match users {
        Some(Err(Unread(why))) => unread("the pods of its namespace", why),
        _ => Ok(()),
    }
}

/// Decides whether something may still want the claims that `pod` owns. When a
/// `StatefulSet` with `whenScaled: Delete` is scaled down, it makes the pod their owner,
/// and it takes that back only once the pod is gone. So a set that wants the pod again
/// wants its claims too. A namesake that has replaced the set is asked as well: it does not
/// control the pod, but it may want a pod of that name.
fn wanted(pod: &PodFacts, set: Option<Read<Option<RawStatefulSet>>>) -> Owned {
    Owned::MayBeWanted(match set {
        None => "no StatefulSet controls it, which would say whether it is wanted again".to_owned(),
        Some(Ok(Some(set))) if set.wants(&pod.name) => {
            "its StatefulSet wants the pod again".to_owned()
        }
        Some(Ok(_)) => return Owned::Alone,
        Some(Err(Unread(why))) => format!("its StatefulSet could not be read: {why}"),
    })
}

/// Reports whether a `StatefulSet` still wants the claims that `pod` owns. It is asked again right
/// before the pod is deleted, because the claims go with the pod.
pub async fn wanted_again(cluster: &Cluster, pod: &PodFacts) -> Result<bool, Failure> {
    let Some(name) = name_of_set(pod).filter(|_| pod.owns_a_claim()) else {
        return Ok(false);
    };
    let set = cluster.find::<RawStatefulSet>(&pod.namespace, name).await?;
    Ok(set.is_some_and(|set| set.wants(&pod.name)))
}

/// Collects the users of each claim on each node. A finished pod does not use its claims any more.
fn users_on_node(facts: &ClusterFacts, pods: &[PodFacts]) -> UsersOnNode {
    let judged = pods.iter().filter(|pod| !pod.finished).flat_map(|pod| {
        let claims = pod.claims.iter();
        claims.map(move |claim| (&pod.node, &pod.namespace, &claim.name, &pod.name))
    });
    let others = facts.active.values().flatten().flat_map(|pod| {
        let claims = pod.claims.iter();
        claims.map(move |claim| (&pod.node, &pod.namespace, claim, &pod.name))
    });
    judged
        .chain(others)
        .map(|(node, namespace, claim, user)| {
            let key = (node.clone(), namespace.clone(), claim.clone());
            (key, user.clone())
        })
        .into_group_map()
}

/// Returns the name of the `StatefulSet` that controls the pod; `None` if none does.
fn name_of_set(pod: &PodFacts) -> Option<&String> {
    let name = &pod.owner.as_ref()?.name;
    pod.made_by("StatefulSet", "apps").then_some(name)
}
