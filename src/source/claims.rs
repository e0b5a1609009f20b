//! The claims of pods: what has to be asked about them, and the facts that are made of the answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
};

use itertools::Itertools as _;

use super::{Source, each};
use crate::{
    cluster::{Cluster, Failure, PodsOf},
    decide::{Case, GiveUp, Policy, to_ask},
    facts::{
        ClaimFacts, ClaimLook, ClaimState, ClusterFacts, Doubt, NodeRead, Owned, PodFacts,
        PodSummary, Read, Unread,
    },
    kubernetes::RawStatefulSet,
};

/// Namespace and name.
type Key = (String, String);

/// What was found so far.
#[derive(Default)]
struct Found {
    claims: BTreeMap<Key, ClaimLook>,
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
    let mut due = pods.iter_mut().filter(needed).collect_vec();
    found.look_at_claims(source, &mut due).await;
    found.look_at_owned(source, &mut due).await;
    select_nodes(source, facts, &mut due).await;
    // Of claims that may be given up with their pods, more has to be known.
    let asks = |pod: &PodFacts| Case::of(facts, policy, pod).asks_about_giving_up();
    let due = due.into_iter().filter_map(|pod| Some((asks(pod)?, pod)));
    found.look_at_given_up(source, due.collect()).await;
    pods
}

/// Asks which nodes the volumes of `due` allow, once for each distinct term.
async fn select_nodes(source: &impl Source, facts: &ClusterFacts, due: &mut [&mut PodFacts]) {
    let selectors = due
        .iter()
        .flat_map(|pod| selectors(facts, pod))
        .collect::<BTreeSet<_>>();
    let select = |selector: String| async move { source.real_nodes(&selector).await };
    let selected = each(selectors, select).await;
    for pod in due {
        for claim in &mut pod.claims {
            let ClaimState::Bound(bound) = &mut claim.state else {
                continue;
            };
            for term in &mut bound.volume.affinity {
                if let Ok(Some(selector)) = term.selector() {
                    term.satisfied_by = selected.get(&selector).cloned();
                }
            }
        }
    }
}

impl Found {
    /// Asks about the claims of `due`, each once: a claim may be several pods'.
    async fn look_at_claims(&mut self, source: &impl Source, due: &mut [&mut PodFacts]) {
        let claims = due
            .iter()
            .flat_map(|pod| pod.claims.iter().map(|claim| key(pod, &claim.name)))
            .collect::<BTreeSet<_>>();
        let claim = |(namespace, name): Key| async move { source.claim(&namespace, &name).await };
        self.claims = each(claims, claim).await;
        for pod in due {
            let mut claims = take(&mut pod.claims);
            for claim in &mut claims {
                self.note(pod, claim);
            }
            pod.claims = claims;
        }
    }

    /// Asks whether something wants the claims again that would go with their pods.
    async fn look_at_owned(&mut self, source: &impl Source, due: &mut [&mut PodFacts]) {
        let owners = due.iter().filter(|pod| pod.owns_a_claim());
        let sets = owners.filter_map(|pod| Some((set_of(pod)?, true)));
        self.read_sets(source, sets.collect()).await;
        for pod in due {
            let wanted = self.wanted(pod);
            for claim in &mut pod.claims {
                if claim.owned != Owned::No && !claim.ephemeral {
                    claim.owned.clone_from(&wanted);
                }
            }
        }
    }

    /// Asks what tells whether the claims of `due` may be given up.
    async fn look_at_given_up(&mut self, source: &impl Source, due: Vec<(GiveUp, &mut PodFacts)>) {
        let mut sets = BTreeMap::new();
        for (asks, pod) in &due {
            // Where a person is only to be asked, they are told that a set could not be read.
            let needed = *asks == GiveUp::Declared;
            if let Some(set) = set_of(pod) {
                *sets.entry(set).or_default() |= needed;
            }
            if needed && !self.users.contains_key(&pod.namespace) {
                let namespace = pod.namespace.clone();
                let users = source
                    .summaries(&PodsOf::Namespace(namespace.clone()))
                    .await;
                let users = users.and_then(|(users, whole)| {
                    // One that could not be read may use any claim.
                    let unread = || Unread("not all of them are readable".to_owned());
                    whole.then_some(users).ok_or_else(unread)
                });
                self.users.insert(namespace, users);
            }
        }
        self.read_sets(source, sets).await;
        for (asks, pod) in due {
            let mut claims = take(&mut pod.claims);
            for claim in &mut claims {
                claim.users = self.other_users(pod, &claim.name);
                claim.renewed = Some(self.renewed(pod, &claim.name, asks));
            }
            pod.claims = claims;
            pod.templates = self
                .set_of(pod)
                .and_then(|set| set.as_ref().ok()?.as_ref())
                .map(RawStatefulSet::templates);
        }
    }

    /// Reads those of `sets` that were not read yet: a verdict needs it, or it is only said that it could not be read.
    async fn read_sets(&mut self, source: &impl Source, mut sets: BTreeMap<Key, bool>) {
        sets.retain(|set, _| !self.sets.contains_key(set));
        let read = |((namespace, name), needed): (Key, bool)| async move {
            let mut set = source.stateful_set(&namespace, &name, needed).await;
            if let Ok(Some(set)) = &mut set {
                set.metadata.drop_idle();
            }
            set
        };
        let read = each(sets, read).await.into_iter();
        self.sets.extend(read.map(|((set, _), found)| (set, found)));
    }

    /// What was found of the `StatefulSet` that controls `pod`.
    fn set_of(&self, pod: &PodFacts) -> Option<&Read<Option<RawStatefulSet>>> {
        self.sets.get(&set_of(pod)?)
    }

    /// Notes what was found about a claim of `pod`.
    fn note(&self, pod: &PodFacts, claim: &mut ClaimFacts) {
        if let Some(ClaimLook { owners, state }) = self.claims.get(&key(pod, &claim.name)) {
            claim.state = state.clone();
            if owners.contains(&pod.uid) {
                claim.owned = Owned::Alone;
            }
            claim.users = self.other_users(pod, &claim.name);
        }
    }

    /// Other pods that use that claim of `pod`, as far as they were looked for.
    fn other_users(&self, pod: &PodFacts, claim: &str) -> Vec<String> {
        let (namespace, name) = key(pod, claim);
        let place = (pod.node.clone().unwrap_or_default(), namespace, name);
        let on_node = self
            .on_node
            .get(&place)
            .into_iter()
            .flatten()
            .filter(|user| **user != pod.name);
        let listed = self
            .users
            .get(&pod.namespace)
            .and_then(|users| users.as_ref().ok())
            .into_iter()
            .flatten();
        let listed =
            listed.filter(|it| it.uid != pod.uid && it.claims.iter().any(|it| it == claim));
        on_node
            .chain(listed.map(|user| &user.name))
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Whether the `StatefulSet` of `pod` creates that claim again, for that pod alone; else what stands against that.
    fn renewed(&self, pod: &PodFacts, claim: &str, asks: GiveUp) -> Result<(), Doubt> {
        let unread =
            |what: &str, why: &str| Err(Doubt::unread(format!("{what} could not be read: {why}")));
        let set = match self.set_of(pod) {
            Some(Ok(Some(set))) => set,
            Some(Err(Unread(why))) => return unread("its StatefulSet", why),
            _ if set_of(pod).is_none() => return Err(Doubt::proved("no StatefulSet made it")),
            _ => return Err(Doubt::proved("its StatefulSet does not exist")),
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
        match self.users.get(&pod.namespace) {
            _ if asks == GiveUp::MayBeAsked => Ok(()),
            Some(Ok(_)) => Ok(()),
            Some(Err(Unread(why))) => unread("the pods of its namespace", why),
            None => unread("the pods of its namespace", "they were not listed"),
        }
    }

    /// Whether something may want the claims again that `pod` owns. A `StatefulSet` makes its pod the owner when it is scaled
    /// down (`whenScaled: Delete`), and takes that back only once the pod is gone. One that was replaced by another of its
    /// name, its pods left, does not control the pod any more.
    fn wanted(&self, pod: &PodFacts) -> Owned {
        Owned::MayBeWanted(match self.set_of(pod) {
            None => {
                "no StatefulSet controls it, which would say whether it is wanted again".to_owned()
            }
            Some(Ok(Some(set))) if set.wants(&pod.name) => {
                "its StatefulSet wants the pod again".to_owned()
            }
            Some(Ok(_)) => return Owned::Alone,
            Some(Err(Unread(why))) => format!("its StatefulSet could not be read: {why}"),
        })
    }
}

/// Whether a `StatefulSet` wants the claims again that `pod` owns, right before they go with it.
pub async fn wanted_again(cluster: &Cluster, pod: &PodFacts) -> Result<bool, Failure> {
    let Some((namespace, name)) = set_of(pod).filter(|_| pod.owns_a_claim()) else {
        return Ok(false);
    };
    let set = cluster.find::<RawStatefulSet>(&namespace, &name).await?;
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

fn key(pod: &PodFacts, claim: &str) -> Key {
    (pod.namespace.clone(), claim.to_owned())
}

/// The selectors to which the rules need the answer, of the affinity of `pod`'s volumes.
fn selectors(facts: &ClusterFacts, pod: &PodFacts) -> Vec<String> {
    let Some(node) = facts.node_of(pod).and_then(NodeRead::known) else {
        return Vec::new();
    };
    pod.volumes()
        .flat_map(|volume| to_ask(volume, node))
        .filter_map(|term| term.selector().ok().flatten())
        .collect()
}

/// Namespace and name of the `StatefulSet` that controls the pod.
fn set_of(pod: &PodFacts) -> Option<Key> {
    let owner = pod
        .owner
        .as_ref()
        .filter(|_| pod.made_by("StatefulSet", "apps"))?;
    Some((pod.namespace.clone(), owner.name.clone()))
}
