//! The claims of pods: what has to be asked about them, and the facts that are made of the answers.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, each};
use crate::cluster::{Cluster, Failure};
use crate::decide::{Case, GiveUp, Policy, to_ask};
use crate::facts::{
    ClaimFacts, ClaimLook, ClaimState, Claims, ClusterFacts, Doubt, NodeRead, Owned, PodFacts,
    PodSummary, Read, Unread,
};
use crate::kubernetes::RawStatefulSet;

/// Namespace and name.
type Key = (String, String);

/// What was found so far.
#[derive(Default)]
struct Found {
    claims: BTreeMap<Key, ClaimLook>,
    /// By label selector, the real nodes that it selects.
    selected: BTreeMap<String, Read<Vec<String>>>,
    sets: BTreeMap<Key, Read<Option<RawStatefulSet>>>,
    /// By namespace, the pods that use claims: of pods whose claims may be given up with them.
    users: BTreeMap<String, Read<Vec<PodSummary>>>,
    /// By node, namespace and claim, the pods that use it. On another node none can whose volume is on this one.
    on_node: BTreeMap<(String, String, String), BTreeSet<String>>,
}

/// Makes known the claims of those of `pods` that the rules before the volume rules let through, and of those that `also`
/// picks.
pub(super) async fn look_up(
    source: &impl Source,
    policy: &Policy,
    facts: &ClusterFacts,
    mut pods: Vec<PodFacts>,
    also: impl Fn(&PodFacts) -> bool,
) -> Vec<PodFacts> {
    let needed = |pod: &&mut PodFacts| also(pod) || Case::of(facts, policy, pod).needs_claims();
    let mut found = Found {
        on_node: users_on_node(facts, &pods),
        ..Found::default()
    };
    let mut due = pods.iter_mut().filter(needed).collect::<Vec<_>>();
    // A claim may be several pods'.
    let keys = due.iter().flat_map(|pod| keys(pod));
    let keys = keys.collect::<BTreeSet<_>>();
    let claim = |(namespace, name): Key| async move { source.claim(&namespace, &name).await };
    found.claims = each(keys, claim).await;
    let set = |((namespace, name), needed): (Key, bool)| async move {
        source.stateful_set(&namespace, &name, needed).await
    };
    let of_owners = due.iter().filter(|pod| found.owns_a_claim(pod));
    let of_owners = of_owners.filter_map(|pod| Some((set_of(pod)?, true)));
    let of_owners = of_owners.collect::<BTreeSet<_>>();
    let select = |selector: String| async move { source.real_nodes(&selector).await };
    // One request a distinct term.
    let selectors = due.iter().flat_map(|pod| found.selectors(facts, pod));
    let selectors = selectors.collect::<BTreeSet<_>>();
    let (selected, sets) = tokio::join!(each(selectors, select), each(of_owners, set));
    found.selected = selected;
    found.sets = sets.into_iter().map(|((key, _), set)| (key, set)).collect();
    for pod in &mut due {
        pod.claims = found.claims_of(pod, None);
    }
    // Of claims that may be given up with their pods, more has to be known.
    let asks = |pod: &PodFacts| Case::of(facts, policy, pod).asks_about_giving_up();
    let due = due.into_iter();
    let due = due.filter_map(|pod| Some((asks(pod)?, pod)));
    let due = due.collect::<Vec<_>>();
    // Where a person is only to be asked, they are told that a set could not be read.
    let mut sets = BTreeMap::new();
    for (asks, pod) in &due {
        let needed = *asks == GiveUp::Declared;
        if let Some(set) = set_of(pod).filter(|set| !found.sets.contains_key(set)) {
            *sets.entry(set).or_default() |= needed;
        }
        if needed && !found.users.contains_key(&pod.namespace) {
            let users = source.users(&pod.namespace).await;
            found.users.insert(pod.namespace.clone(), users);
        }
    }
    let sets = each(sets, set).await;
    found
        .sets
        .extend(sets.into_iter().map(|((key, _), set)| (key, set)));
    for (asks, pod) in due {
        pod.claims = found.claims_of(pod, Some(asks));
        let set = set_of(pod).and_then(|set| found.sets.get(&set)?.as_ref().ok()?.as_ref());
        pod.templates = set.map(RawStatefulSet::templates);
    }
    pods
}

impl Found {
    /// The selectors to which the rules need the answer, of the affinity of `pod`'s volumes.
    fn selectors(&self, facts: &ClusterFacts, pod: &PodFacts) -> Vec<String> {
        let Some(node) = facts.node_of(pod).and_then(NodeRead::known) else {
            return Vec::new();
        };
        let volumes = keys(pod).filter_map(|key| match &self.claims.get(&key)?.state {
            ClaimState::Bound { volume, .. } => Some(volume),
            _ => None,
        });
        let terms = volumes.flat_map(|volume| to_ask(volume, node));
        let selectors = terms.filter_map(|term| term.selector().ok().flatten());
        selectors.collect()
    }

    /// Whether `pod` owns a claim that none of its generic ephemeral volumes made.
    fn owns_a_claim(&self, pod: &PodFacts) -> bool {
        let ordinary = pod.claims.named().filter(|(_, ephemeral)| !ephemeral);
        let mut looks = ordinary.filter_map(|(name, _)| self.claims.get(&key(pod, name)));
        looks.any(|look| look.owners.contains(&pod.uid))
    }

    /// What is known about the claims of `pod`; where they may be given up, also whether they are created again.
    fn claims_of(&self, pod: &PodFacts, asks: Option<GiveUp>) -> Claims {
        let known = pod.claims.named().map(|(name, ephemeral)| {
            let ClaimLook { owners, mut state } = self.claims.get(&key(pod, name))?.clone();
            if let ClaimState::Bound { volume, .. } = &mut state {
                for term in &mut volume.affinity {
                    if let Ok(Some(selector)) = term.selector() {
                        term.satisfied_by = self.selected.get(&selector).cloned();
                    }
                }
            }
            let owned = if !owners.contains(&pod.uid) {
                Owned::No
            } else if ephemeral {
                Owned::Alone
            } else {
                let unwanted = self.unwanted(pod);
                unwanted.map_or_else(Owned::MayBeWanted, |()| Owned::Alone)
            };
            let place = pod.node.clone().unwrap_or_default();
            let (namespace, claim) = key(pod, name);
            let users = self.on_node.get(&(place, namespace, claim));
            let others = users
                .into_iter()
                .flatten()
                .filter(|user| **user != pod.name);
            let users = others.cloned().collect::<Vec<_>>();
            Some(ClaimFacts {
                name: name.to_owned(),
                ephemeral,
                renewed: asks.map(|asks| self.renewed(pod, name, asks)),
                users,
                owned,
                state,
            })
        });
        let known = known.collect::<Option<_>>();
        known.map_or_else(|| pod.claims.clone(), Claims::Known)
    }

    /// Whether the `StatefulSet` of `pod` creates that claim again, for that pod alone; else what stands against that.
    fn renewed(&self, pod: &PodFacts, claim: &str, asks: GiveUp) -> Result<(), Doubt> {
        let set = set_of(pod).ok_or_else(|| Doubt::proved("no StatefulSet made it"))?;
        let set = self.sets.get(&set).unwrap_or(&Ok(None)).as_ref();
        let set = set.map_err(|Unread(why)| {
            Doubt::unread(format!("its StatefulSet could not be read: {why}"))
        })?;
        let set = set.as_ref();
        let set = set.ok_or_else(|| Doubt::proved("its StatefulSet does not exist"))?;
        if pod.controller.as_ref().map(|its| &its.uid) != set.metadata.uid.as_ref() {
            return Err(Doubt::proved(
                "its StatefulSet is now another one of that name",
            ));
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
        if asks == GiveUp::MayBeAsked {
            return Ok(());
        }
        let unread = |why: &str| {
            Doubt::unread(format!(
                "the pods of its namespace could not be read: {why}"
            ))
        };
        let users = self.users.get(&pod.namespace);
        let users = users.ok_or_else(|| unread("they were not listed"))?;
        let users = users.as_ref().map_err(|Unread(why)| unread(why))?;
        let uses = |user: &&PodSummary| {
            user.uid != pod.uid && user.claims.iter().any(|used| used == claim)
        };
        let others = users.iter().filter(uses).map(|user| user.name.as_str());
        let others = others.collect::<Vec<_>>().join(", ");
        if others.is_empty() {
            return Ok(());
        }
        Err(Doubt::proved(format!(
            "claim {claim} is also used by {others}"
        )))
    }

    /// Whether nothing wants the claims again that `pod` owns; else why that is not known, as a phrase. A `StatefulSet` makes
    /// its pod the owner when it is scaled down (`whenScaled: Delete`), and takes that back only once the pod is gone. One
    /// that was replaced by another of its name, its pods left, does not control the pod any more.
    fn unwanted(&self, pod: &PodFacts) -> Result<(), String> {
        let set = set_of(pod)
            .ok_or("no StatefulSet controls it, which would say whether it is wanted again")?;
        match self.sets.get(&set).ok_or("its StatefulSet was not read")? {
            Ok(Some(set)) if set.wants(&pod.name) => {
                Err("its StatefulSet wants the pod again".to_owned())
            }
            Ok(_) => Ok(()),
            Err(Unread(why)) => Err(format!("its StatefulSet could not be read: {why}")),
        }
    }
}

/// Whether a `StatefulSet` wants the claims again that `pod` owns, right before they go with it.
pub async fn wanted_again(cluster: &Cluster, pod: &PodFacts) -> Result<bool, Failure> {
    let Some((namespace, name)) = set_of(pod).filter(|_| pod.owns_a_claim()) else {
        return Ok(false);
    };
    let set = cluster.stateful_set(&namespace, &name).await?;
    Ok(set.is_some_and(|set| set.wants(&pod.name)))
}

/// Which pods of each node use which claims.
fn users_on_node(
    facts: &ClusterFacts,
    pods: &[PodFacts],
) -> BTreeMap<(String, String, String), BTreeSet<String>> {
    let mut users = BTreeMap::<_, BTreeSet<_>>::new();
    let mut uses = |node: &str, namespace: &str, claim: &str, user: &str| {
        let claim = (node.to_owned(), namespace.to_owned(), claim.to_owned());
        users.entry(claim).or_default().insert(user.to_owned());
    };
    for (node, pods) in &facts.unasked {
        for pod in pods {
            let claims = pod.claims.iter();
            claims.for_each(|claim| uses(node, &pod.namespace, claim, &pod.name));
        }
    }
    for pod in pods.iter().filter(|pod| !pod.finished) {
        let Some(node) = &pod.node else { continue };
        let claims = pod.claims.named();
        claims.for_each(|(claim, _)| uses(node, &pod.namespace, claim, &pod.name));
    }
    users
}

fn key(pod: &PodFacts, claim: &str) -> Key {
    (pod.namespace.clone(), claim.to_owned())
}

fn keys(pod: &PodFacts) -> impl Iterator<Item = Key> {
    pod.claims.named().map(|(name, _)| key(pod, name))
}

/// Namespace and name of the `StatefulSet` that controls the pod.
fn set_of(pod: &PodFacts) -> Option<Key> {
    let owner = pod.owner.as_ref();
    let owner = owner.filter(|_| pod.made_by("StatefulSet", "apps"))?;
    Some((pod.namespace.clone(), owner.name.clone()))
}
