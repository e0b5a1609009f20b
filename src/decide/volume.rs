//! Is a pod's storage bound to the dead node?
//!
//! A volume that only the dead node can reach keeps the replacement waiting for ever, and giving it up loses data:
//! that is for a person. Affinity to a zone is not such a bond.

use super::reason::{PinnedClaim, UnverifiedClaim};
use crate::facts::{AffinityTerm, ClaimFacts, ClaimState, NodeFacts, Requirement, Storage, VolumeFacts};

/// What a pod's claims say about its moving elsewhere.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Bound to this node.
    pub pinned: Vec<PinnedClaim>,
    /// That is not known.
    pub unverified: Vec<UnverifiedClaim>,
    /// Free of this node, yet only reachable from some: phrases for a note.
    pub confined: Vec<String>,
}

/// Sorts `claims` by what they mean for a pod on `node`.
pub(super) fn check(claims: &[ClaimFacts], node: &NodeFacts) -> Claims {
    let mut checked = Claims::default();
    for claim in claims {
        let mut missing_volume = None;
        let cause = match &claim.state {
            ClaimState::Absent => continue,
            ClaimState::Bound { uid, volume } => {
                if let Some(bond) = bond(volume, node) {
                    checked.pinned.push(PinnedClaim {
                        claim: claim.name.clone(),
                        claim_uid: uid.clone(),
                        volume: volume.name.clone(),
                        reclaim_policy: volume.reclaim_policy.clone(),
                        bond,
                    });
                } else if !volume.affinity.is_empty() {
                    checked.confined.push(format!("{} needs {}", volume.name, spell(&volume.affinity)));
                }
                continue;
            }
            ClaimState::NotLookedUp => "nobody looked".to_owned(),
            ClaimState::Unread(unread) => unread.0.clone(),
            ClaimState::WithoutVolume { missing: Some(volume), .. } => {
                missing_volume = Some(volume.clone());
                format!("its volume {volume} does not exist")
            }
            ClaimState::WithoutVolume { missing: None, phase } => {
                format!("it names no volume (phase {})", phase.as_deref().unwrap_or("not set"))
            }
        };
        checked.unverified.push(UnverifiedClaim { claim: claim.name.clone(), missing_volume, cause });
    }
    checked
}

/// How `volume` is bound to `node`, as a phrase; `None` where another node could reach it.
fn bond(volume: &VolumeFacts, node: &NodeFacts) -> Option<String> {
    match &volume.storage {
        Storage::Local(path) => return Some(format!("local, at {path}")),
        Storage::HostPath(path) => return Some(format!("hostPath, at {path}")),
        Storage::Driver => {}
    }
    if volume.affinity.is_empty() {
        return None;
    }
    // A term without a requirement matches no node (Kubernetes' own reading), so it opens no way out.
    volume
        .affinity
        .iter()
        .filter(|term| !term.is_empty())
        .all(|term| term.iter().any(|requirement| names_only(requirement, node)))
        .then(|| format!("reachable only from this node, by {}", spell(&volume.affinity)))
}

/// Whether `requirement` holds on `node` and nowhere else. Drivers use label keys of their own (TopoLVM
/// `topology.topolvm.io/node`, OpenEBS `openebs.io/nodename`), so the values decide, not the key.
fn names_only(requirement: &Requirement, node: &NodeFacts) -> bool {
    requirement.operator == "In"
        && !requirement.values.is_empty()
        && requirement
            .values
            .iter()
            .all(|value| *value == node.name || Some(value.as_str()) == node.hostname.as_deref())
}

/// Terms as a phrase: "zone in (a, b) or zone in (c)".
fn spell(terms: &[AffinityTerm]) -> String {
    let term = |term: &AffinityTerm| {
        let requirements = term.iter().map(|Requirement { key, operator, values }| match operator.as_str() {
            "Exists" | "DoesNotExist" => format!("{key} {operator}"),
            _ => format!("{key} {operator} ({})", values.join(", ")),
        });
        requirements.collect::<Vec<_>>().join(" and ")
    };
    terms.iter().map(term).collect::<Vec<_>>().join(" or ")
}
