//! Gathering, steps 1 to 3 of a run: what is known about the cluster, and the Terminating pods to be judged, from either
//! source. A run, `what-if` and `explain` all gather here.

pub mod live;
pub mod snapshot;
mod stream;

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::{GiveUp, Policy, asks_about_giving_up, to_ask};
use crate::facts::{
    ClaimFacts, ClusterFacts, Doubt, Namespaces, NodeRead, PodFacts, PodSummary, Read, Standing,
    Unread,
};
use crate::kubernetes::{RawPod, RawStatefulSet};
use crate::selector::NamespaceFilter;

/// What is to be gathered.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The rules' choices: claims are looked up only of pods that the rules before the volume rules let through.
    pub policy: &'a Policy,
    /// Which namespaces.
    pub namespaces: &'a NamespaceFilter,
    /// Terminating pods of Ready nodes too.
    pub all: bool,
}

impl Wanted<'_> {
    /// How many namespaces there are, where the filter matches none of them.
    fn unmatched(&self, namespaces: &Namespaces) -> Option<usize> {
        let none = !namespaces.keys().any(|name| self.namespaces.matches(name));
        (none && !namespaces.is_empty()).then_some(namespaces.len())
    }
}

/// What was gathered.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// What is known about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, their claims looked up where a rule asks for them. Apart from the
    /// facts, because they go over into the plan: of tens of thousands there must be no second copy.
    pub pods: Vec<PodFacts>,
}

impl Gathered {
    /// The selectors of the volumes' affinity to which the rules need the answer: which real nodes satisfy it?
    fn affinity_to_ask(&self) -> BTreeSet<String> {
        let volumes = self.pods.iter().flat_map(|pod| {
            let node = self.facts.node_of(pod).and_then(NodeRead::known);
            pod.volumes()
                .filter_map(move |volume| Some((volume, node?)))
        });
        let terms = volumes.flat_map(|(volume, node)| to_ask(volume, node));
        terms
            .filter_map(|term| term.selector().ok().flatten())
            .collect()
    }

    /// Notes which other pods of its node use a pod's claims. On another node none can whose volume is on this one.
    fn note_users(&mut self) {
        let mut users = BTreeMap::<_, BTreeSet<_>>::new();
        let mut uses = |node: &String, namespace: &String, claim: &String, user: &String| {
            let claim = (node.clone(), namespace.clone(), claim.clone());
            users.entry(claim).or_default().insert(user.clone());
        };
        for (node, pods) in &self.facts.unasked {
            for pod in pods {
                pod.claims
                    .iter()
                    .for_each(|claim| uses(node, &pod.namespace, claim, &pod.name));
            }
        }
        for pod in self.pods.iter().filter(|pod| !pod.finished) {
            let Some(node) = &pod.node else { continue };
            pod.claims
                .iter()
                .for_each(|claim| uses(node, &pod.namespace, &claim.name, &pod.name));
        }
        for pod in &mut self.pods {
            let Some(node) = &pod.node else { continue };
            for claim in &mut pod.claims {
                let all = users.get(&(node.clone(), pod.namespace.clone(), claim.name.clone()));
                let others = all.into_iter().flatten().filter(|user| **user != pod.name);
                claim.users = others.cloned().collect();
            }
        }
    }

    /// The pods whose claims may be given up with them, so that more has to be known.
    fn with_claims_to_give_up(
        &mut self,
        policy: &Policy,
    ) -> impl Iterator<Item = (GiveUp, &mut PodFacts)> {
        let Self { facts, pods } = self;
        pods.iter_mut().filter_map(|pod| {
            let asks = asks_about_giving_up(facts.now, policy, facts.node_of(pod), pod)?;
            Some((asks, pod))
        })
    }

    /// Notes which of their claims are created again, by what was read of `StatefulSet`s and of all pods of a
    /// namespace.
    fn note_renewed(&mut self, policy: &Policy, sets: &Sets, users: &Users) {
        for (asks, pod) in self.with_claims_to_give_up(policy) {
            let claims = pod
                .claims
                .iter()
                .map(|claim| renewed(pod, claim, sets, users, asks));
            let claims = claims.collect::<Vec<_>>();
            pod.claims
                .iter_mut()
                .zip(claims)
                .for_each(|(claim, renewed)| claim.renewed = renewed);
            let set = set_of(pod).and_then(|set| sets.get(&set)?.as_ref().ok());
            pod.templates = set.map(RawStatefulSet::templates);
        }
    }

    /// Notes whether the claims that pods own are wanted again, by what was read of `StatefulSet`s.
    fn note_unwanted(&mut self, sets: &Sets) {
        for pod in self.pods.iter_mut().filter(|pod| pod.owns_a_claim()) {
            let unwanted = unwanted(pod, sets);
            pod.claims
                .iter_mut()
                .for_each(|claim| claim.unwanted.clone_from(&unwanted));
        }
    }

    /// Puts the answers where they belong, and with them what the pods tell about each other.
    fn note_affinity(&mut self, answers: &BTreeMap<String, Read<Vec<String>>>) {
        let volumes = self.pods.iter_mut().flat_map(PodFacts::volumes_mut);
        for term in volumes.flat_map(|volume| &mut volume.affinity) {
            if let Ok(Some(selector)) = term.selector() {
                term.satisfied_by = answers.get(&selector).cloned();
            }
        }
        self.note_users();
    }
}

/// A pod that lacks what identifies it: its namespace and name, as far as they are known, and what is missing.
type Malformed = (String, Option<String>, String);

/// Makes facts of `pods`: one a UID.
fn facts_of(
    pods: impl IntoIterator<Item = RawPod>,
    opted_out: impl Fn(&str) -> Read<Option<String>>,
) -> (Vec<PodFacts>, Vec<Malformed>) {
    let (mut by_uid, mut malformed) = (BTreeMap::new(), Vec::new());
    for raw in pods {
        let namespace = raw.metadata.namespace.clone().unwrap_or_default();
        let name = raw.metadata.name.clone();
        match raw.into_facts(opted_out(&namespace)) {
            Ok(pod) => drop(by_uid.insert(pod.uid.clone(), pod)),
            Err(cause) => malformed.push((namespace, name, cause)),
        }
    }
    (by_uid.into_values().collect(), malformed)
}

/// By namespace and name, `StatefulSet`s.
type Sets = BTreeMap<(String, String), Read<RawStatefulSet>>;
/// By namespace, all pods that use claims.
type Users = BTreeMap<String, Read<Vec<PodSummary>>>;

/// Whether the `StatefulSet` of `pod` creates that claim again, for that pod alone; else what stands against that.
fn renewed(
    pod: &PodFacts,
    ClaimFacts {
        name: claim, users, ..
    }: &ClaimFacts,
    sets: &Sets,
    all_users: &Users,
    asks: GiveUp,
) -> Result<(), Doubt> {
    let set = set_of(pod).ok_or_else(|| Doubt::proved("no StatefulSet made it"))?;
    let set = sets
        .get(&set)
        .ok_or_else(|| Doubt::proved("its StatefulSet does not exist"))?
        .as_ref();
    let set = set.map_err(|Unread(why)| {
        Doubt::unread(format!("its StatefulSet could not be read: {why}"))
    })?;
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
    let others = match asks {
        // A volume on the node is used there alone.
        GiveUp::MayBeAsked => users.join(", "),
        GiveUp::Declared => {
            let unread = |why: &str| {
                Doubt::unread(format!(
                    "the pods of its namespace could not be read: {why}"
                ))
            };
            let users = all_users.get(&pod.namespace);
            let users = users.ok_or_else(|| unread("they were not listed"))?;
            let users = users.as_ref().map_err(|Unread(why)| unread(why))?;
            let uses = |user: &&PodSummary| {
                user.uid != pod.uid && user.claims.iter().any(|used| used == claim)
            };
            let others = users.iter().filter(uses).map(|user| user.name.as_str());
            others.collect::<Vec<_>>().join(", ")
        }
    };
    if others.is_empty() {
        Ok(())
    } else {
        Err(Doubt::proved(format!(
            "claim {claim} is also used by {others}"
        )))
    }
}

/// Whether nothing wants the claims again that `pod` owns; else why that is not known, as a phrase. A `StatefulSet` makes its
/// pod the owner when it is scaled down (`whenScaled: Delete`), and takes that back only once the pod is gone. One that was
/// replaced by another of its name, its pods left, does not control the pod any more.
fn unwanted(pod: &PodFacts, sets: &Sets) -> Result<(), String> {
    let set = set_of(pod)
        .ok_or("no StatefulSet controls it, which would say whether it is wanted again")?;
    match sets.get(&set) {
        Some(Ok(set)) if set.wants(&pod.name) => {
            Err("its StatefulSet wants the pod again".to_owned())
        }
        Some(Err(Unread(why))) => Err(format!("its StatefulSet could not be read: {why}")),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Namespace and name of the `StatefulSet` that controls the pod.
fn set_of(pod: &PodFacts) -> Option<(String, String)> {
    let owner = pod
        .owner
        .as_ref()
        .filter(|_| pod.made_by("StatefulSet", "apps"))?;
    Some((pod.namespace.clone(), owner.name.clone()))
}

/// What was gathered of some nodes, with all of their pods.
#[derive(Debug)]
pub struct Whole {
    /// Their Terminating pods, and those that Kubernetes would evict from a dead node.
    pub gathered: Gathered,
    /// What every node of the cluster counts as; empty where that could not be read.
    pub standings: BTreeMap<String, Standing>,
    /// The pods of the namespaces that matter, on whichever node.
    pub summaries: Vec<PodSummary>,
}

#[cfg(test)]
mod tests;
