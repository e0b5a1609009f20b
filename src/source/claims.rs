//! The claims of pods: what has to be asked about them, and the facts that are made of the answers.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};

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

/// The pods that use a claim, by node, namespace and claim. A claim whose volume is on one node cannot be in use on another.
type UsersOnNode = BTreeMap<(String, String, String), BTreeSet<String>>;

/// Looks up the claims of those of `pods` that the rules before the volume rules let through, and of those that `also` picks.
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
    // What tells whether a claim may be given up is read after every claim, so that it is never older than a declaration.
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

/// Asks about each claim of `pod`, and about the nodes that its volume allows, where a rule needs that.
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
        let place = pod.node.clone().unwrap_or_default();
        let users = users.get(&(place, namespace.clone(), name.clone()));
        let others = users
            .into_iter()
            .flatten()
            .filter(|user| **user != pod.name);
        claim.users = others.cloned().collect();
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

/// Finds out whether something still wants the claims that `pod` owns, which go with it.
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
    // Where a person is only to be asked, the question says that the set could not be read: that is no error of the run.
    let is_declared = asks == GiveUp::Declared;
    let set = set_of(source, pod, is_declared).await;
    let users = source.memory().users.of(pod.namespace.clone());
    let users = users.get();
    for claim in &mut pod.claims {
        let uses = |user: &&PodSummary| user.uid != pod.uid && user.claims.contains(&claim.name);
        let listed = users.into_iter().flatten().flatten().filter(uses);
        let names = listed.map(|user| user.name.clone()).collect::<Vec<_>>();
        claim.users.extend(names);
    }
    let renewed = |claim: &ClaimFacts| {
        renewed(
            pod,
            &claim.name,
            set.as_ref(),
            users.filter(|_| is_declared),
        )
    };
    let renewed = pod.claims.iter().map(renewed).collect::<Vec<_>>();
    for (claim, renewed) in pod.claims.iter_mut().zip(renewed) {
        claim.renewed = Some(renewed);
    }
    let set = set.and_then(|set| set.ok()?);
    pod.templates = set.as_ref().map(RawStatefulSet::templates);
}

/// Remembers the pods of a namespace that use claims.
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

/// The `StatefulSet` that controls `pod`; `None` where none does. `needed`: a verdict depends on it.
async fn set_of(
    source: &impl Source,
    pod: &PodFacts,
    needed: bool,
) -> Option<Read<Option<RawStatefulSet>>> {
    let (namespace, name) = key_of_set(pod)?;
    let sets = source
        .memory()
        .sets
        .of((namespace.clone(), name.clone(), needed));
    let set = sets.get_or_init(|| source.stateful_set(&namespace, &name, needed));
    Some(set.await.clone())
}

/// Whether the pod's `StatefulSet` creates `claim` again, for that pod alone; else what stands against it. `users` are the pods
/// of the namespace that use claims; they are listed only for a claim that is declared to be given up.
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

/// Whether something may still want the claims that `pod` owns. A `StatefulSet` makes its pod their owner when it is scaled
/// down (`whenScaled: Delete`), and takes that back only once the pod is gone. A set that was replaced by another of its name
/// does not control the pod any more.
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

/// Whether a `StatefulSet` still wants the claims that `pod` owns: asked right before they go with it.
pub async fn wanted_again(cluster: &Cluster, pod: &PodFacts) -> Result<bool, Failure> {
    let Some((namespace, name)) = key_of_set(pod).filter(|_| pod.owns_a_claim()) else {
        return Ok(false);
    };
    let set = cluster.find::<RawStatefulSet>(&namespace, &name).await?;
    Ok(set.is_some_and(|set| set.wants(&pod.name)))
}

/// Which pods of each node use which claims.
fn users_on_node(facts: &ClusterFacts, pods: &[PodFacts]) -> UsersOnNode {
    let mut users = UsersOnNode::new();
    let mut uses = |node: &str, namespace: &str, claim: &str, user: &str| {
        let claim = (node.to_owned(), namespace.to_owned(), claim.to_owned());
        users.entry(claim).or_default().insert(user.to_owned());
    };
    for (node, pods) in &facts.active {
        for pod in pods {
            for claim in &pod.claims {
                uses(node, &pod.namespace, claim, &pod.name);
            }
        }
    }
    for pod in pods.iter().filter(|pod| !pod.finished) {
        for claim in &pod.claims {
            uses(
                pod.node.as_deref().unwrap_or_default(),
                &pod.namespace,
                &claim.name,
                &pod.name,
            );
        }
    }
    users
}

/// Namespace and name of the `StatefulSet` that controls the pod.
fn key_of_set(pod: &PodFacts) -> Option<(String, String)> {
    let owner = pod
        .owner
        .as_ref()
        .filter(|_| pod.made_by("StatefulSet", "apps"))?;
    Some((pod.namespace.clone(), owner.name.clone()))
}
