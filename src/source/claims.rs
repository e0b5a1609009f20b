//! The claims of pods: looks up each claim that a rule depends on, and completes the pod's facts.
//!
//! The order of the look-ups is a matter of safety. Whether a claim may be given up depends on a
//! person's declaration on the claim, and on the claim's `StatefulSet` and its other users. Those
//! two are read after every claim, so they are never older than the declaration.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
};

use futures_util::{StreamExt, stream};
use itertools::Itertools as _;

use super::{Source, Store, each, store::Users};
use crate::{
    cluster::MAX_IN_FLIGHT,
    decide::{Case, ReasonCode, Stage, is_to_ask},
    facts::{
        ANY_CLAIM, ClaimFacts, ClaimState, ClusterFacts, Copies, Doubt, FoundClaim, Goes,
        NodeFacts, Owner, PodFacts, PodSummary, Read, Ready, Renewer, Unread, VolumeFacts,
    },
    kubernetes::RawStatefulSet,
    selector::is_name,
};

/// The most claims of one namespace that a run looks up, at two or three requests each. Their author
/// decides how many a pod names, and how: so each namespace has a share, and all have their turns.
const OF_NAMESPACE: usize = 640;

/// The names of the pods that use a claim, by node, namespace and claim. The key includes the node
/// because a claim whose volume is on one node cannot be in use on another.
type UsersOnNode = HashMap<(Option<String>, String, String), Vec<String>>;

/// Looks up the claims of each pod that the rules before the volume rules let through, or that
/// `also` picks. Returns all pods.
pub async fn look_up(
    store: &Store<'_, impl Source>,
    facts: &ClusterFacts,
    mut pods: Vec<PodFacts>,
    also: impl Fn(&PodFacts) -> bool,
) -> Vec<PodFacts> {
    let (users, policy) = (&users_on_node(facts, &pods), store.wanted.policy);
    let passed = |pod: &PodFacts| Case::of(facts, policy, pod).decide().stage >= Stage::Storage;
    let needed = |pod: &&mut PodFacts| also(pod) || !pod.claims.is_empty() && passed(pod);
    let mut due = pods.iter_mut().filter(needed).collect::<Vec<_>>();
    admit(store, facts, &mut due, also);
    // First all claims, then what decides whether one may be given up: see the top of this file.
    stream::iter(&mut due)
        .for_each_concurrent(MAX_IN_FLIGHT, |pod| {
            ask_about_claims(store, facts, users, pod)
        })
        .await;
    stream::iter(&mut due)
        .for_each_concurrent(MAX_IN_FLIGHT, |pod| {
            let is_pinned = Case::of(facts, policy, pod).is_pinned();
            ask_whether_needed(store, is_pinned, pod)
        })
        .await;
    due.retain(|pod| Case::of(facts, policy, pod).is_pinned());
    let declares = |pod: &PodFacts| Case::of(facts, policy, pod).declares_a_claim();
    let declaring = due.iter().filter(|pod| declares(pod));
    let namespaces = declaring.map(|pod| pod.namespace.clone());
    stream::iter(namespaces.collect::<BTreeSet<_>>())
        .for_each_concurrent(MAX_IN_FLIGHT, async |namespace| {
            drop(store.users(&namespace).await);
        })
        .await;
    stream::iter(due)
        .for_each_concurrent(MAX_IN_FLIGHT, |pod| {
            ask_about_giving_up(store, declares(pod), pod)
        })
        .await;
    pods
}

/// Orders `due` as their claims are to be looked up: the `preferred` first, then a pod of each
/// namespace in turn, the longest overdue first. A claim that is not to be looked up counts as
/// unread, which is no error of the run. Of a pod that no share is left for, one claim stands for all.
fn admit(
    store: &Store<'_, impl Source>,
    facts: &ClusterFacts,
    due: &mut Vec<&mut PodFacts>,
    preferred: impl Fn(&PodFacts) -> bool,
) {
    due.sort_by_cached_key(|pod| {
        let node = facts.known_node(pod);
        (!preferred(pod), pod.overdue_since(node, facts.now))
    });
    let mut turns = BTreeMap::new();
    due.sort_by_cached_key(|pod| {
        let turn = turns.entry(pod.namespace.clone()).or_insert(0_usize);
        *turn += 1;
        (!preferred(pod), *turn)
    });
    let mut looked_up = BTreeMap::<_, BTreeSet<_>>::new();
    due.retain_mut(|pod| {
        let looked_up = looked_up.entry(pod.namespace.clone()).or_default();
        let named = pod.claims.iter().filter(|it| is_name(&it.name));
        let is_new = |claim: &&ClaimFacts| {
            !looked_up.contains(&claim.name) && !store.knows_claim(&pod.namespace, &claim.name)
        };
        let new = named.filter(is_new).map(|claim| claim.name.clone());
        let new = new.collect::<Vec<_>>();
        if looked_up.len() + new.len() > OF_NAMESPACE {
            pod.claims = vec![ClaimFacts::any(format!(
                "more than {OF_NAMESPACE} claims of its namespace are due, and a run looks up no more"
            ))];
            return false;
        }
        looked_up.extend(new);
        // What stands for the claims of a pod that uses too many is not looked up.
        !matches!(&pod.claims[..], [only] if only.name == ANY_CLAIM)
    });
}

/// Reads each claim of `pod` and, if a rule needs them, the nodes that the claim's volume allows.
async fn ask_about_claims(
    store: &Store<'_, impl Source>,
    facts: &ClusterFacts,
    users: &UsersOnNode,
    pod: &mut PodFacts,
) {
    let node = facts.known_node(pod);
    for claim in &mut pod.claims {
        let (namespace, name) = (&pod.namespace, &claim.name);
        let FoundClaim {
            owners,
            deleted,
            mut state,
        } = store.claim(namespace, name).await;
        (claim.deleted, claim.owned) = (deleted, owners.contains(&pod.uid));
        let users = [name, ANY_CLAIM]
            .map(|used| users.get(&(pod.node.clone(), namespace.clone(), used.to_owned())));
        let others = users.into_iter().flatten().flatten();
        claim.users = others.filter(|user| **user != pod.name).cloned().collect();
        if let (ClaimState::Bound(bound), Some(node)) = (&mut state, node) {
            ask_about_volume(store, facts, node, &mut bound.volume).await;
        }
        claim.state = state;
    }
}

/// Finds out which other nodes reach a volume, and whether it is attached to `node`, if a rule
/// depends on that.
async fn ask_about_volume(
    store: &Store<'_, impl Source>,
    facts: &ClusterFacts,
    node: &NodeFacts,
    volume: &mut VolumeFacts,
) {
    if is_to_ask(volume, node) {
        for term in &mut volume.affinity {
            if let Ok(Some(selector)) = term.selector() {
                term.satisfied_by = Some(store.real_nodes(&selector).await);
            }
        }
    }
    let Some(driver) = &mut volume.driver else {
        return;
    };
    let attached = facts.attachments.get(&node.name).into_iter().flatten();
    let mut attached = attached.filter_map(|it| it.volume.as_ref());
    driver.attaches = if attached.any(|it| *it == volume.name) {
        Ok(true)
    } else {
        let detached = store.detached_drivers().await;
        detached.map(|detached| !detached.contains(&driver.name))
    };
}

/// Finds out whether something wants `pod` again, if that lets it pass a rule, and otherwise whether
/// another pod keeps its claims. A namesake that has replaced its `StatefulSet` is asked as well: it
/// does not control the pod, but it may want a pod of that name.
async fn ask_whether_needed(store: &Store<'_, impl Source>, is_pinned: bool, pod: &mut PodFacts) {
    let is_wanted = |claim: &&ClaimFacts| matches!(pod.goes(claim), Goes::MayBeWanted(_));
    let wanted = pod.claims.iter().filter(is_wanted);
    let (deleted, owned): (Vec<_>, Vec<_>) = wanted.partition(|claim| claim.deleted);
    let (any_deleted, any_owned) = (!deleted.is_empty(), !owned.is_empty());
    if !any_deleted && !any_owned && !is_pinned {
        return;
    }
    // Of a claim that stays, a set that could not be read is no error of the run: the report asks a
    // person all the same.
    let set = set_of(store, pod, any_owned).await;
    pod.set_wants = set.map(|set| wants(set, &pod.name));
    if !any_deleted || pod.unneeded().is_some() {
        return;
    }
    let users = store.users(&pod.namespace).await;
    for claim in pod.claims.iter_mut().filter(|claim| claim.deleted) {
        let keeps = |user: &&PodSummary| user.uid != pod.uid && user.keeps(&claim.name);
        let keeper = users.iter().flat_map(|users| users.iter()).find(keeps);
        claim.kept_by = keeper.map(|user| user.name.clone());
    }
}

fn wants(set: Read<Option<RawStatefulSet>>, pod: &str) -> Read<bool> {
    set.map(|set| set.is_some_and(|set| set.wants(pod)))
}

/// Finds out whether the pinned claims of `pod` may be given up with it.
async fn ask_about_giving_up(
    store: &Store<'_, impl Source>,
    is_declared: bool,
    pod: &mut PodFacts,
) {
    // As long as nothing is declared, a set that could not be read is no error of the run: the
    // report asks a person all the same, and says that it could not be read.
    let set = set_of(store, pod, is_declared).await;
    let users = store.listed_users(&pod.namespace);
    let mut claims = mem::take(&mut pod.claims);
    for claim in &mut claims {
        let uses = |user: &&PodSummary| user.uid != pod.uid && user.uses(&claim.name);
        let listed = users.iter().flatten().flat_map(|users| users.iter());
        let listed = listed.filter(uses).map(|user| user.name.clone());
        claim.users.extend(listed);
        let users = users.as_ref().filter(|_| is_declared);
        claim.renewed = Some(renewed(pod, &claim.name, set.as_ref(), users));
    }
    pod.claims = claims;
    let set = set.and_then(|set| set.ok()?);
    pod.templates = set.as_ref().map(RawStatefulSet::templates);
}

/// Reads the `StatefulSet` that controls `pod`; `None` if none controls the pod. `needed` says that
/// a verdict depends on the set.
async fn set_of(
    store: &Store<'_, impl Source>,
    pod: &PodFacts,
    needed: bool,
) -> Option<Read<Option<RawStatefulSet>>> {
    let (namespace, name) = (&pod.namespace, name_of_set(pod)?);
    Some(store.stateful_set(namespace, name, needed).await)
}

/// Checks that the pod's `StatefulSet` creates `claim` again, for that pod alone. An error says
/// what speaks against it. `users` are the pods of the namespace that use claims; they are listed
/// only if a claim is declared to be given up.
fn renewed(
    pod: &PodFacts,
    claim: &str,
    set: Option<&Read<Option<RawStatefulSet>>>,
    users: Option<&Read<Users>>,
) -> Result<Renewer, Doubt> {
    let is_controller = |set: &RawStatefulSet| {
        let controller = pod.controller.as_ref();
        controller.is_some_and(|its| its.uid == set.metadata.uid)
    };
    let doubt = match set {
        None if pod.made_by_an_operator() => None,
        None => Some(Doubt::proved("no StatefulSet made it")),
        Some(Ok(None)) => Some(Doubt::proved("its StatefulSet does not exist")),
        Some(Err(Unread(why))) => {
            let why = format!("its StatefulSet could not be read: {why}");
            Some(Doubt::unread(why))
        }
        Some(Ok(Some(set))) if !is_controller(set) => Some(Doubt::proved(
            "its StatefulSet is now another one of that name",
        )),
        Some(Ok(Some(set))) if !set.makes(claim, &pod.name) => Some(Doubt::proved(format!(
            "claim {claim} comes from no template of its StatefulSet"
        ))),
        Some(Ok(Some(_))) if !pod.indexed => Some(Doubt::proved(
            "it has no label apps.kubernetes.io/pod-index: its StatefulSet controller may be older than \
             Kubernetes 1.28, which does not always create such a claim again",
        )),
        Some(Ok(Some(_))) => None,
    };
    match (doubt, users) {
        (Some(doubt), _) => Err(doubt),
        (None, Some(Err(Unread(why)))) => Err(Doubt::unread(format!(
            "the pods of its namespace could not be read: {why}"
        ))),
        _ if set.is_none() => Ok(Renewer::Operator),
        _ => Ok(Renewer::Template),
    }
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
    let all = judged.chain(others).collect_vec();
    let uses = all
        .iter()
        .counts_by(|(node, namespace, claim, _)| (*node, *namespace, *claim));
    // Most claims have one user, who need not be kept.
    let matters = |(node, namespace, claim, _): &(_, _, &String, _)| {
        uses[&(*node, *namespace, *claim)] > 1 || *claim == ANY_CLAIM
    };
    all.iter()
        .filter(|used| matters(used))
        .map(|(node, namespace, claim, user)| {
            let [namespace, claim, user] = [namespace, claim, user].map(|name| (*name).clone());
            (((*node).clone(), namespace, claim), user)
        })
        .into_group_map()
}

/// Returns the name of the `StatefulSet` that controls the pod; `None` if none does.
fn name_of_set(pod: &PodFacts) -> Option<&String> {
    let name = &pod.owner.as_ref()?.name;
    pod.of_stateful_set().then_some(name)
}

/// Counts the copies that are Ready elsewhere, which a person asks before they give up the data of
/// one of them: those of each workload of which a pod may be given up with its claims, or go without what
/// it wrote on its node. That costs a list of the pods of its namespace.
pub async fn copies(
    store: &Store<'_, impl Source>,
    facts: &ClusterFacts,
    pods: &[PodFacts],
) -> Copies {
    let asks = |pod: &PodFacts| Case::of(facts, store.wanted.policy, pod).decide().asks;
    let is_asked = |pod: &&PodFacts| {
        pod.claims.iter().any(|claim| claim.renewed.is_some())
            || !pod.host_paths.is_empty() && asks(pod).contains(&ReasonCode::HostPath)
    };
    let mut asked = BTreeMap::<_, BTreeSet<Owner>>::new();
    for pod in pods.iter().filter(is_asked) {
        asked
            .entry(&pod.namespace)
            .or_default()
            .extend(pod.series());
    }
    let is_up = |name: &String| {
        let node = facts.known(name);
        !facts.nodes.contains_key(name) || node.is_some_and(|node| node.ready == Ready::True)
    };
    let listed = each(asked.keys().copied(), |namespace| store.users(namespace)).await;
    let count = |namespace: &String, workload: &Owner| {
        let users = listed[namespace].as_ref().map_err(Clone::clone)?;
        let serving = users
            .iter()
            .filter(|pod| pod.serves && pod.node.as_ref().is_some_and(is_up));
        let owners = serving.filter_map(|pod| pod.workload.as_ref());
        Ok(owners.filter(|owner| workload.includes(owner)).count())
    };
    let keys = asked.iter().flat_map(|(namespace, workloads)| {
        let workloads = workloads.iter().cloned();
        workloads.map(|workload| ((*namespace).clone(), workload))
    });
    keys.map(|key| {
        let copies = count(&key.0, &key.1);
        (key, copies)
    })
    .collect()
}
