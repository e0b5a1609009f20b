//! What binds a pod's storage to its node?
//!
//! A volume on the node itself is lost with it, and giving it up is for a person. One that some other node can reach lets
//! the replacement start there. What is between the two, or is not known, is for a person too: without any command that
//! destroys, because the data may be elsewhere.

use itertools::Itertools as _;

use super::{
    answer::{Failure, made},
    reason::{ConfinedClaim, PinnedClaim, Ties, UnverifiedClaim},
};
use crate::facts::{
    AffinityTerm, ClaimFacts, ClaimState, Doubt, NodeFacts, Owned, PodFacts, Read, Requirement,
    ResourceVersion, Storage, Unread, VolumeFacts,
};

/// How a claim is declared scratch.
const SCRATCH: &str = "pod-reaper.io/scratch: \"true\"";

/// Where a volume can be reached.
enum Reach {
    /// Nowhere but on this node: how that is known, as a phrase.
    Pinned(String),
    /// From no other node.
    Confined,
    /// From others too.
    Free,
    Unverified(String),
}

/// Whether any claim of `pod` carries a person's answer.
pub(super) fn any_answer(pod: &PodFacts) -> bool {
    let answered = |claim: &ClaimFacts| {
        matches!(
            claim.state,
            ClaimState::Bound {
                give_up: Some(_),
                ..
            }
        )
    };
    pod.claims.known().into_iter().flatten().any(answered)
}

/// Sorts the claims of a pod by what they mean for its moving elsewhere.
pub(super) fn check(failure: &Failure<'_>, claims: &[ClaimFacts]) -> Ties {
    let mut checked = Ties::default();
    for facts in claims {
        let claim = &facts.name;
        let owned = facts.owned != Owned::No;
        if owned {
            checked.notes.push(format!(
                "claim {claim} is its own alone and goes with it, data included"
            ));
        }
        // A pod's own ephemeral claim goes with it and binds nothing. Only rule 16 (`shared-disk`) needs to know its volume.
        let temporary = owned && facts.ephemeral;
        let mut missing_volume = None;
        let mut cause = match (&facts.state, &facts.owned) {
            (ClaimState::Unread(unread), _) if temporary => Some(unread.0.clone()),
            _ if temporary => None,
            (_, Owned::MayBeWanted(cause)) => Some(format!(
                "the pod owns it, so that it goes with the pod, but {cause}"
            )),
            (ClaimState::Unread(unread), _) => Some(unread.0.clone()),
            (ClaimState::WithoutVolume { missing, phase }, _) => {
                missing_volume.clone_from(missing);
                Some(match (missing, phase) {
                    (Some(volume), _) => format!("its volume {volume} does not exist"),
                    (None, phase) => {
                        let phase = phase.as_deref().unwrap_or("not set");
                        format!("it names no volume (phase {phase})")
                    }
                })
            }
            (ClaimState::Absent | ClaimState::Bound { .. }, _) => None,
        };
        if let ClaimState::Bound { uid, volume, .. } = &facts.state
            && !temporary
        {
            let name = volume.name.clone();
            match reach(volume, failure.node) {
                Reach::Pinned(bond) => {
                    let (given_up, answered, doubt) = give_up(failure, facts);
                    checked.pinned.push(PinnedClaim {
                        claim: claim.clone(),
                        claim_uid: uid.clone(),
                        volume: name,
                        reclaim_policy: volume.reclaim_policy.clone(),
                        bond,
                        given_up,
                        answered,
                        doubt,
                    });
                }
                Reach::Confined => checked.confined.push(ConfinedClaim {
                    claim: claim.clone(),
                    volume: name,
                    place: spell(&volume.affinity),
                }),
                Reach::Free if volume.affinity.is_empty() => {}
                Reach::Free => checked.notes.push(format!(
                    "its replacement waits for a node that its volume allows: {name} needs {}",
                    spell(&volume.affinity)
                )),
                Reach::Unverified(why) => {
                    cause.get_or_insert_with(|| {
                        format!(
                            "it is unknown whether another node reaches its volume {name}: {why}"
                        )
                    });
                }
            }
        }
        checked
            .unverified
            .extend(cause.map(|cause| UnverifiedClaim {
                claim: claim.clone(),
                missing_volume,
                cause,
            }));
    }
    checked
}

/// Of a pinned claim: the version in which it is given up, or why it is not; whether a person said so; and what stands
/// against it, declared or not.
fn give_up(
    failure: &Failure<'_>,
    claim: &ClaimFacts,
) -> (Result<ResourceVersion, String>, bool, Option<Doubt>) {
    let ClaimFacts {
        name,
        renewed,
        users,
        state:
            ClaimState::Bound {
                scratch,
                give_up,
                created,
                version,
                ..
            },
        ..
    } = claim
    else {
        return (Err("it is not bound".to_owned()), false, None);
    };
    let held = || {
        Doubt::proved(format!(
            "claim {name} is opted out, or a finalizer would hold it"
        ))
    };
    let unasked = || {
        Err(Doubt::unread(
            "it was not asked whether it would be created again",
        ))
    };
    let users = users.join(", ");
    let used = || Doubt::proved(format!("claim {name} is also used by {users}"));
    // What is proved comes first: it decides whether a person is asked, whatever else could not be read.
    let doubt = version
        .as_ref()
        .map(drop)
        .ok_or_else(held)
        .and_then(|()| users.is_empty().then_some(()).ok_or_else(used))
        .and_then(|()| renewed.clone().unwrap_or_else(unasked));
    let inert = give_up
        .as_ref()
        .map(|value| failure.inert(value, Some(made(*created))));
    let answered = inert == Some(None);
    let declared = match inert {
        _ if answered || *scratch && failure.policy.reap_scratch => Ok(()),
        Some(Some(why)) => Err(format!(
            "the answer on claim {name} counts for nothing: {why}"
        )),
        _ => Err(format!("claim {name} is not annotated {SCRATCH}")),
    };
    let given_up = match (declared, &doubt) {
        (Err(why), _) => Err(why),
        (Ok(()), Err(doubt)) => Err(doubt.why.clone()),
        (Ok(()), Ok(())) => Ok(version.clone().unwrap_or_default()),
    };
    (given_up, answered, doubt.err())
}

/// Where `volume`, which a pod on `node` uses, can be reached.
fn reach(volume: &VolumeFacts, node: &NodeFacts) -> Reach {
    match &volume.storage {
        Storage::Local(path) => return Reach::Pinned(format!("local, at {path}")),
        Storage::HostPath(path) => return Reach::Pinned(format!("hostPath, at {path}")),
        Storage::StrictLocal => {
            return Reach::Pinned("Longhorn, dataLocality strict-local".to_owned());
        }
        Storage::Driver if volume.affinity.is_empty() => return Reach::Free,
        Storage::Driver => {}
    }
    if real_terms(volume).next().is_none() {
        return Reach::Confined;
    }
    if names_only(volume, node) {
        return Reach::Pinned(format!(
            "reachable only from this node, by {}",
            spell(&volume.affinity)
        ));
    }
    let mut unverified = None;
    for term in real_terms(volume) {
        match elsewhere(term, node) {
            Ok(true) => return Reach::Free,
            Ok(false) => {}
            Err(Unread(cause)) => unverified = Some(cause),
        }
    }
    unverified.map_or(Reach::Confined, Reach::Unverified)
}

/// Whether a real node other than `node` satisfies `term`, zones and regions left out: where nothing else is asked for,
/// a node may come up there any time.
fn elsewhere(term: &AffinityTerm, node: &NodeFacts) -> Read<bool> {
    if term.selector()?.is_none() {
        return Ok(true);
    }
    match &term.satisfied_by {
        Some(Ok(nodes)) => Ok(nodes.iter().any(|name| *name != node.name)),
        Some(Err(unread)) => Err(unread.clone()),
        None => Err(Unread("it was not asked for".to_owned())),
    }
}

/// Whether `term` of a volume's affinity has to be asked about: whether another node satisfies it.
pub fn to_ask<'a>(
    volume: &'a VolumeFacts,
    node: &NodeFacts,
) -> impl Iterator<Item = &'a AffinityTerm> {
    let open = matches!(reach(volume, node), Reach::Unverified(_));
    volume.affinity.iter().filter(move |_| open)
}

/// Whether every term of the volume's affinity names this node and no other. Drivers use label keys of their own (TopoLVM
/// `topology.topolvm.io/node`, OpenEBS `openebs.io/nodename`), so the values decide, not the key.
fn names_only(volume: &VolumeFacts, node: &NodeFacts) -> bool {
    let is_name = |value: &String| *value == node.name || Some(value) == node.hostname.as_ref();
    let names = |Requirement {
                     operator, values, ..
                 }: &Requirement| {
        operator == "In" && !values.is_empty() && values.iter().all(is_name)
    };
    let mut terms = real_terms(volume).peekable();
    terms.peek().is_some()
        && terms.all(|term| {
            term.requirements
                .iter()
                .any(|it| !it.of_zone() && names(it))
        })
}

/// A term that asks for nothing matches no node (Kubernetes' own reading), so it opens no way out.
fn real_terms(volume: &VolumeFacts) -> impl Iterator<Item = &AffinityTerm> {
    volume
        .affinity
        .iter()
        .filter(|term| term.fields || !term.requirements.is_empty())
}

/// Terms as a phrase: "zone in (a, b) or zone in (c)".
fn spell(terms: &[AffinityTerm]) -> String {
    let term = |term: &AffinityTerm| {
        let requirements = term.requirements.iter().map(
            |Requirement {
                 key,
                 operator,
                 values,
             }| match operator.as_str() {
                "Exists" | "DoesNotExist" => format!("{key} {operator}"),
                _ if values == &[""] => format!("{key} {operator} (\"\")"),
                _ => format!("{key} {operator} ({})", values.join(", ")),
            },
        );
        let fields = term.fields.then(|| "a field of the node".to_owned());
        requirements.chain(fields).join(" and ")
    };
    let terms = terms
        .iter()
        .map(term)
        .filter(|term| !term.is_empty())
        .collect_vec();
    if terms.is_empty() {
        "what no node has".to_owned()
    } else {
        terms.join(" or ")
    }
}
