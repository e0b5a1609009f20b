//! How a pod's storage ties the pod to its node.
//!
//! A volume on the node itself is lost with the node, and only the user may delete its PVC. If some
//! other node can reach the volume, the replacement can start there. The user also decides about
//! everything in between and everything unknown. For those the report prints no command that
//! destroys data, because the data may be elsewhere.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    context::PodContext,
    reason::{NoCause, Tie, TieKind, Ties},
};
use crate::{
    facts::{
        AffinityTerm, BoundClaim, ClaimDeletion, ClaimFacts, ClaimState, DeletedWithPod, NodeFacts,
        Place, PodFacts, Requirement, Storage, Unneeded, Unread, VolumeFacts,
    },
    words::joined,
};

/// The time that is left, after a PVC was deleted, to set its volume to `Retain`.
const TIME_TO_RETAIN: SignedDuration = SignedDuration::from_mins(10);

/// The nodes from which a volume can be reached.
pub enum Reach {
    /// From this node alone, because the volume is on it. Holds the evidence, as a phrase.
    Pinned(String),
    /// From no other node, although the volume may not be on this node.
    Confined,
    /// From other nodes too.
    Free,
    /// Not known. Holds the cause, as a phrase.
    Unverified(String),
}

impl Reach {
    /// Reports whether no other node is known to reach the volume.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Pinned(_) | Self::Confined)
    }
}

impl PodContext<'_> {
    /// Returns how the pod's PVCs tie the pod to its node, for a rule that needs the ties. If PVCs
    /// were not looked up, the pod does not pass the rule.
    pub(super) fn ties(&self) -> Result<&Ties, NoCause> {
        let node = self.required_node()?;
        let storage = self.storage()?;
        Ok(self.ties.get_or_init(|| check(self, node, storage)))
    }

    /// Lists the bound PVCs whose volumes may tie the pod to its node. Nobody misses the data of the
    /// pod's own generic ephemeral volume, or of a PVC that was given up.
    pub(super) fn classified(&self) -> impl Iterator<Item = &BoundClaim> {
        let claims = self.pod.claims().iter();
        claims
            .filter(|claim| !is_temporary(&self.goes(claim)))
            .filter_map(ClaimFacts::bound)
    }

    /// Returns whether the PVC `claim`, which the pod uses, is deleted with the pod.
    ///
    /// When a `StatefulSet` with `whenScaled: Delete` is scaled down, it makes the pod the owner of
    /// the pod's PVCs. It reverts that only once the pod is gone. So a `StatefulSet` that wants the
    /// pod again wants its PVCs too.
    pub fn goes(&self, claim: &ClaimFacts) -> DeletedWithPod {
        let pod = self.pod;
        let unneeded = pod.unneeded();
        let policy = claim
            .bound()
            .and_then(|it| it.volume.reclaim_policy.as_deref());
        if claim.owned && claim.ephemeral {
            return DeletedWithPod::Ephemeral;
        }
        if !claim.owned && claim.deletion.is_none() {
            return DeletedWithPod::No;
        }
        if unneeded == Some(Unneeded::Namespace) {
            return DeletedWithPod::Unwanted(Unneeded::Namespace);
        }
        if let Some(from) = self.given_up_from(claim) {
            return DeletedWithPod::GivenUp(from);
        }
        match (&claim.deletion, unneeded) {
            (None, Some(why)) => DeletedWithPod::Unwanted(why),
            _ if policy == Some("Retain") => DeletedWithPod::Retained,
            (Some(ClaimDeletion { at, finalizers }), _) => {
                let held = joined(finalizers, ", ");
                DeletedWithPod::MayBeWanted(match held {
                    Some(finalizers) => format!(
                        "it was deleted at {at:.0}, and goes once its last pod and the finalizers {finalizers} are gone"
                    ),
                    None => format!(
                        "it was deleted at {at:.0}, before its node became NotReady, and goes with its last pod"
                    ),
                })
            }
            (None, None) => {
                let set_wants = pod.storage.as_ref().and_then(|it| it.set_wants.as_ref());
                let why = match set_wants {
                    _ if !pod.of_stateful_set() => {
                        "no StatefulSet controls the pod, which would say whether it is wanted again"
                    }
                    Some(Ok(_)) => "its StatefulSet wants the pod again",
                    Some(Err(Unread(why))) => &format!("its StatefulSet could not be read: {why}"),
                    None => "its StatefulSet was not read",
                };
                DeletedWithPod::MayBeWanted(format!(
                    "the pod owns it, so that it goes with the pod, and {why}"
                ))
            }
        }
    }

    /// Returns the time from which the pod may be deleted with a PVC that somebody gave up: the PVC
    /// was deleted after the node failed, and nothing but pods keeps it. Until then its volume can
    /// still be set to `Retain`. `None` for any other PVC.
    fn given_up_from(&self, claim: &ClaimFacts) -> Option<Timestamp> {
        let ClaimDeletion { at, finalizers } = claim.deletion.as_ref()?;
        let since = self.known()?.not_ready_since(self.now)?;
        let delay = self.policy.reap_older_than.max(TIME_TO_RETAIN);
        let from = at.saturating_add(delay).ok()?;
        (*at > since && finalizers.is_empty()).then_some(from)
    }
}

/// Reports whether nobody misses the data of a PVC. Only `shared-disk` needs to know its volume.
fn is_temporary(goes: &DeletedWithPod) -> bool {
    matches!(goes, DeletedWithPod::Ephemeral | DeletedWithPod::GivenUp(_))
}

/// Reports whether the pod may write to a path of its node, and its controller waits for its end
/// before it makes another one.
pub fn waits_with_a_path(pod: &PodFacts) -> bool {
    pod.controller.is_some() && !pod.is_replaced_early() && !pod.host_paths.is_empty()
}

fn check(case: &PodContext<'_>, node: &NodeFacts, storage: &Storage) -> Ties {
    let mut ties = Ties::default();
    let pod = case.pod;
    if waits_with_a_path(pod) {
        ties.unneeded.extend(pod.unneeded());
    }
    for claim in &storage.claims {
        let name = &claim.name;
        let tie = |why, kind| Tie {
            pvc: name.clone(),
            volume: claim.bound().map(|bound| bound.volume.name.clone()),
            why,
            kind,
        };
        let unverified = |why| tie(why, TieKind::Unverified);
        let goes = case.goes(claim);
        let how = match &goes {
            DeletedWithPod::No => None,
            DeletedWithPod::MayBeWanted(why) => {
                ties.all.push(tie(why.clone(), TieKind::Going));
                None
            }
            DeletedWithPod::Ephemeral => Some("belongs to the pod alone and is deleted with it"),
            DeletedWithPod::GivenUp(from) => {
                ties.given_up_until = ties.given_up_until.max(Some(*from));
                Some("was deleted after the node failed, and disappears with its last pod")
            }
            DeletedWithPod::Unwanted(why) => {
                ties.unneeded.insert(*why);
                Some("is deleted with the pod, and nothing wants it again")
            }
            DeletedWithPod::Retained => Some("is deleted with its last pod"),
        };
        let stays = claim
            .bound()
            .is_some_and(|bound| bound.volume.reclaim_policy.as_deref() == Some("Retain"));
        let data = if stays {
            "its volume stays, by its reclaim policy Retain"
        } else {
            "data included"
        };
        ties.notes
            .extend(how.map(|how| format!("PVC {name} {how}, {data}")));
        let unsure = match &claim.state {
            ClaimState::Unread(unread) => Some(unverified(unread.0.clone())),
            _ if is_temporary(&goes) => None,
            ClaimState::Bound(bound) => {
                classify(case, node, claim, bound, &mut ties).map(unverified)
            }
            ClaimState::WithoutVolume { missing, phase } => {
                let phase = phase.as_deref().unwrap_or("not set");
                let cause = missing.as_ref().map_or_else(
                    || format!("it names no volume (phase {phase})"),
                    |volume| format!("its volume {volume} does not exist"),
                );
                Some(Tie {
                    volume: missing.clone(),
                    ..unverified(cause)
                })
            }
            ClaimState::Absent => None,
        };
        ties.all.extend(unsure);
    }
    ties
}

/// Adds a bound PVC to `ties`. If the PVC is unverified, returns the cause instead and adds no tie.
fn classify(
    case: &PodContext<'_>,
    node: &NodeFacts,
    claim: &ClaimFacts,
    bound: &BoundClaim,
    ties: &mut Ties,
) -> Option<String> {
    let volume = &bound.volume;
    let name = &volume.name;
    let reach = reach(volume, node);
    if let Some(why) = case.pod.unneeded().filter(|_| reach.is_local()) {
        if !claim.owned && claim.deletion.is_none() {
            let claim = &claim.name;
            ties.notes.push(match why {
                Unneeded::Namespace => format!("PVC {claim} is deleted with its namespace"),
                Unneeded::Set => format!(
                    "PVC {claim} stays, with its data on volume {name}: no StatefulSet wants the pod again"
                ),
            });
        }
        ties.unneeded.insert(why);
        return None;
    }
    let tie = |why, kind| Tie {
        pvc: claim.name.clone(),
        volume: Some(name.clone()),
        why,
        kind,
    };
    match reach {
        Reach::Pinned(bond) => {
            ties.all.push(tie(bond, TieKind::Pinned));
        }
        Reach::Confined => {
            let why = confined_by(volume);
            ties.all.push(tie(why, TieKind::Confined));
        }
        // A pod that nothing wants again gets no replacement.
        Reach::Free if volume.affinity.is_empty() || case.pod.unneeded().is_some() => {}
        Reach::Free => ties.notes.push(format!(
            "its replacement waits for a node that its volume allows: {name} needs {}",
            spell(&volume.affinity)
        )),
        Reach::Unverified(why) => {
            return Some(format!(
                "it is unknown whether another node reaches its volume {name}: {why}"
            ));
        }
    }
    None
}

/// Returns the terms of a volume's affinity that decide which nodes reach the volume, or the answer
/// if these terms are not needed for it.
fn deciding_terms(volume: &VolumeFacts) -> Result<Vec<&AffinityTerm>, Reach> {
    if volume.storage == Place::StrictLocal {
        return Err(Reach::Pinned(
            "Longhorn, dataLocality strict-local".to_owned(),
        ));
    }
    let directory = directory(volume);
    if volume.affinity.is_empty() && directory.is_none() {
        return Err(Reach::Free);
    }
    // In Kubernetes, a term without requirements matches no node, so it allows no further node.
    let has_any = |term: &&AffinityTerm| term.fields || !term.requirements.is_empty();
    let terms = volume.affinity.iter().filter(has_any).collect_vec();
    let is_left =
        |term: &&AffinityTerm| term.fields || term.requirements.iter().any(|it| !it.of_zone());
    // It is not known which nodes share a directory that no affinity ties to nodes.
    if terms.is_empty() || directory.is_some() && !terms.iter().all(is_left) {
        return Err(Reach::Confined);
    }
    // A node may come up in that zone at any time.
    if terms.iter().any(|term| term.selector() == Ok(None)) {
        return Err(Reach::Free);
    }
    Ok(terms)
}

/// Returns the label selectors of the nodes that decide which nodes reach the volume.
pub fn selectors(volume: &VolumeFacts) -> Vec<String> {
    let terms = deciding_terms(volume).unwrap_or_default().into_iter();
    let selectors = terms.filter_map(|term| term.selector().ok().flatten());
    selectors.collect()
}

/// Classifies the volume by the nodes that reach it. Zones and regions are ignored: a node may come
/// up in a zone at any time.
pub fn reach(volume: &VolumeFacts, node: &NodeFacts) -> Reach {
    let terms = match deciding_terms(volume) {
        Ok(terms) => terms,
        Err(reach) => return reach,
    };
    let mut unverified = None;
    for term in &terms {
        match (&term.selector(), &term.satisfied_by) {
            (Err(unread), _) | (_, Err(unread)) => unverified = Some(unread.0.clone()),
            // Another node of the same hostname has another disk.
            (_, Ok(_)) if directory(volume).is_some() && names_only(term, node) => {}
            (_, Ok(nodes)) => {
                if nodes.iter().any(|name| *name != node.name) {
                    return Reach::Free;
                }
            }
        }
    }
    if let Some(cause) = unverified {
        return Reach::Unverified(cause);
    }
    if terms.iter().all(|term| names_only(term, node)) {
        let affinity = || {
            format!(
                "reachable only from this node, by {}",
                spell(&volume.affinity)
            )
        };
        return Reach::Pinned(directory(volume).unwrap_or_else(affinity));
    }
    Reach::Confined
}

fn directory(volume: &VolumeFacts) -> Option<String> {
    match &volume.storage {
        Place::Local(path) => Some(format!("local, at {path}")),
        Place::HostPath(path) => Some(format!("hostPath, at {path}")),
        Place::StrictLocal | Place::Driver => None,
    }
}

fn confined_by(volume: &VolumeFacts) -> String {
    let is_bound = volume.affinity.iter().any(|term| {
        term.requirements
            .iter()
            .any(|requirement| !requirement.of_zone())
    });
    match directory(volume).filter(|_| !is_bound) {
        Some(directory) => format!("is a directory that other nodes may share ({directory})"),
        None => format!("needs {}", spell(&volume.affinity)),
    }
}

/// Reports whether `term` of a volume's affinity names this node and no other. Drivers use label
/// keys of their own (TopoLVM `topology.topolvm.io/node`, OpenEBS `openebs.io/nodename`), so the
/// function compares the values and ignores the key.
fn names_only(term: &AffinityTerm, node: &NodeFacts) -> bool {
    let is_name = |value: &String| *value == node.name || Some(value) == node.hostname.as_ref();
    term.requirements.iter().any(|requirement| {
        let values = &requirement.values;
        let names = requirement.operator == "In" && !requirement.of_zone();
        names && !values.is_empty() && values.iter().all(is_name)
    })
}

/// Formats terms as a phrase: "zone in (a, b) or zone in (c)".
fn spell(terms: &[AffinityTerm]) -> String {
    let term = |term: &AffinityTerm| {
        let requirements = term.requirements.iter().map(|requirement| {
            let Requirement {
                key,
                operator,
                values,
            } = requirement;
            match operator.as_str() {
                "Exists" | "DoesNotExist" => format!("{key} {operator}"),
                _ if *values == [""] => format!("{key} {operator} (\"\")"),
                _ => format!("{key} {operator} ({})", values.join(", ")),
            }
        });
        let fields = term.fields.then(|| "a field of the node".to_owned());
        requirements.chain(fields).join(" and ")
    };
    let mut terms = terms.iter().map(term).filter(|term| !term.is_empty());
    match terms.join(" or ").as_str() {
        "" => "what no node has".to_owned(),
        terms => terms.to_owned(),
    }
}
