//! How a pod's storage ties the pod to its node.
//!
//! A volume on the node itself is lost with the node, and only the user may delete its PVC. If some
//! other node can reach the volume, the replacement can start there. The user also decides about
//! everything in between and everything unknown. For those the report prints no command that
//! destroys data, because the data may be elsewhere.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    Policy,
    context::{PodContext, Stored},
    reason::SharedDisk,
    tie::{Location, Owned, Tie, TieKind, Wanted},
};
use crate::{
    facts::{
        AffinityTerm, ClaimFacts, ClaimState, NodeFacts, Owner, Place, PodFacts, Read, Unneeded,
        Unread, VolumeFacts,
    },
    words::Foreign,
};

/// The time that is left, after a PVC was deleted, to set its volume to `Retain`.
const TIME_TO_RETAIN: SignedDuration = SignedDuration::from_mins(10);

impl Policy {
    /// Returns how long after the deletion of its PVC a pod may be deleted with the PVC.
    pub fn given_up_after(&self) -> SignedDuration {
        self.reap_older_than.max(TIME_TO_RETAIN)
    }
}

/// The nodes from which a volume can be reached.
pub enum Reach {
    /// From this node alone, because the volume is on it.
    Pinned,
    /// From no other node, although the volume may not be on this node.
    Confined,
    /// From other nodes too.
    Free,
    /// Not known.
    Unverified(Unread),
}

impl Reach {
    /// Reports whether no other node is known to reach the volume.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Pinned | Self::Confined)
    }
}

impl Stored<'_> {
    /// Returns the ties between the pod and its PVCs.
    pub(super) fn ties(&self) -> &[Tie] {
        self.ties.get_or_init(|| {
            self.storage
                .claims()
                .iter()
                .flat_map(|claim| self.ties_to(claim))
                .collect()
        })
    }

    /// Returns the fencing mark of the pod's node, if it stands.
    pub(super) fn fenced(&self) -> Option<&str> {
        self.node.fenced(self.case.now, self.case.policy)
    }

    /// Returns the ties between the pod and one of its PVCs: why the PVC is deleted with the pod, if it
    /// is, and how its data ties the pod to the node, if it does.
    fn ties_to(&self, claim: &ClaimFacts) -> impl Iterator<Item = Tie> {
        let retained = is_retained(claim);
        let volume = claim.read.volume().map(|volume| volume.name.clone());
        let going = self.why_it_goes(claim);
        let data = self.tie_by_data(claim, going.as_ref());
        let pvc = claim.named.name.clone();
        [going, data].into_iter().flatten().map(move |kind| Tie {
            pvc: pvc.clone(),
            volume: volume.clone(),
            retained,
            kind,
        })
    }

    /// Returns why the PVC `claim` is deleted with the pod; `None` if it stays. It goes if the pod owns
    /// it by UID, or if its deletion was requested and only waits for the pod: Kubernetes deletes a
    /// PVC with its last owner, and with the last pod that uses it.
    ///
    /// When a `StatefulSet` with `whenScaled: Delete` is scaled down, it makes the pod the owner of
    /// the pod's PVCs. It reverts that only once the pod is gone. So a `StatefulSet` that wants the
    /// pod again wants its PVCs too.
    fn why_it_goes(&self, claim: &ClaimFacts) -> Option<TieKind> {
        let unneeded = self.unneeded();
        if claim.owned && claim.named.ephemeral {
            return Some(TieKind::Ephemeral);
        }
        if !claim.owned && claim.read.deletion.is_none() {
            return None;
        }
        if unneeded == Some(Unneeded::Namespace) {
            return Some(TieKind::Unwanted);
        }
        if let Some(from) = self.given_up_from(claim) {
            return Some(TieKind::GivenUp { from });
        }
        Some(match (claim.read.deletion, unneeded) {
            (None, Some(_)) => TieKind::Unwanted,
            _ if is_retained(claim) => TieKind::Retained,
            (Some(at), _) if claim.read.finalizers.is_empty() => TieKind::Goes(Wanted::Deleted(at)),
            (Some(at), _) => TieKind::Goes(Wanted::DeletedAndHeld {
                at,
                finalizers: claim.read.finalizers.clone(),
            }),
            (None, None) => TieKind::Goes(Wanted::Owned(self.wanted_by_set())),
        })
    }

    /// Returns why a PVC that the pod owns may be wanted, by the `StatefulSet` that controls the pod.
    fn wanted_by_set(&self) -> Owned {
        match &self.storage.set {
            _ if self.case.pod.stateful_set().is_none() => Owned::WithoutSet,
            Some(Ok(_)) => Owned::SetWantsPod,
            Some(Err(why)) => Owned::SetUnread(why.clone()),
            None => Owned::SetNotRead,
        }
    }

    /// Returns the time from which the pod may be deleted with a PVC that somebody gave up: the PVC
    /// was deleted after the node failed, and only pods keep it. Until then its volume can
    /// still be set to `Retain`. `None` for any other PVC.
    fn given_up_from(&self, claim: &ClaimFacts) -> Option<Timestamp> {
        let at = claim.read.deletion?;
        let since = self.node.not_ready_since(self.case.now)?;
        let from = at.saturating_add(self.case.policy.given_up_after()).ok()?;
        (at > since && claim.read.finalizers.is_empty()).then_some(from)
    }

    /// Returns how the data of the PVC `claim` ties the pod to its node; `None` if it does not. `going`
    /// is why the PVC goes with the pod: nobody misses the data of the pod's own generic ephemeral
    /// volume, or of a PVC that was given up.
    fn tie_by_data(&self, claim: &ClaimFacts, going: Option<&TieKind>) -> Option<TieKind> {
        let volume = match &claim.read.state {
            ClaimState::Unread(why) => return Some(TieKind::Unverified(why.clone())),
            _ if is_temporary(going) => return None,
            ClaimState::Absent => return None,
            ClaimState::Lost(why) => return Some(TieKind::Unverified(why.clone())),
            ClaimState::Bound(volume) => volume,
        };
        let VolumeFacts {
            storage, affinity, ..
        } = volume;
        let location = || Location {
            storage: storage.clone(),
            affinity: affinity.clone(),
        };
        match (volume_reach(claim, volume, self.node), self.unneeded()) {
            // The other tie of a PVC that goes with the pod says what becomes of it.
            (Reach::Pinned | Reach::Confined, Some(why)) => {
                going.is_none().then_some(TieKind::Unneeded(why))
            }
            (Reach::Pinned, None) => Some(TieKind::Pinned(location())),
            (Reach::Confined, None) => Some(TieKind::Confined(location())),
            (Reach::Free, _) => None,
            (Reach::Unverified(why), _) => Some(TieKind::Unverified(Unread(format!(
                "it is unknown whether another node reaches its volume {}: {why}",
                volume.name
            )))),
        }
    }

    /// Lists the node's paths that the pod may write to and that keep the pod. Kubernetes replaces
    /// the pods of a Deployment at the eviction, but those of a `StatefulSet` only once they are
    /// deleted; so do the controllers of other projects.
    pub(super) fn paths_that_keep(&self) -> &[Foreign] {
        let pod = self.case.pod;
        if waits_with_a_path(pod) && self.unneeded().is_none() && !pod.bound {
            &pod.host_paths
        } else {
            &[]
        }
    }

    /// Reports whether a PVC goes with the pod that may be wanted, and whose deletion nobody requested.
    pub fn fears_for_a_claim(&self) -> bool {
        self.storage
            .claims()
            .iter()
            .any(|claim| self.fears_for(claim))
    }

    fn fears_for(&self, claim: &ClaimFacts) -> bool {
        claim.read.deletion.is_none() && matches!(self.why_it_goes(claim), Some(TieKind::Goes(_)))
    }

    /// Reports whether a verdict depends on the `StatefulSet` that controls the pod, as the one that
    /// may want the pod again.
    pub fn needs_set(&self) -> bool {
        let pod = self.case.pod;
        let depends = |claim: &ClaimFacts| {
            let is_local = |volume| volume_reach(claim, volume, self.node).is_local();
            self.fears_for(claim)
                || !is_temporary(self.why_it_goes(claim).as_ref())
                    && claim.read.volume().is_some_and(is_local)
        };
        let waits = waits_with_a_path(pod) && !pod.bound;
        let may_share = || self.fenced().is_none() && self.disk_of_several() != Ok(None);
        pod.stateful_set().is_some()
            && (waits || may_share() || self.storage.claims().iter().any(depends))
    }

    /// Returns the disk that several machines could write to at once. A volume on the node itself has no
    /// second machine, although nothing attaches it.
    pub(super) fn disk_of_several(&self) -> Read<Option<SharedDisk>> {
        let Self {
            case: PodContext { pod, .. },
            node,
            storage,
            ..
        } = self;
        let mut unread = Ok(None);
        for claim in storage.claims() {
            let Some(its) = claim.read.volume() else {
                continue;
            };
            if volume_reach(claim, its, node).is_local() {
                continue;
            }
            let (pvc, volume) = (claim.named.name.clone(), its.name.clone());
            if its.shared_disk {
                return Ok(Some(SharedDisk::RawBlock { pvc }));
            }
            if let Some(kind) = its.disk
                && !claim.named.read_only
            {
                return Ok(Some(SharedDisk::Network { pvc, volume, kind }));
            }
            if let Some(driver) = its.driver.clone()
                && (claim.not_let_go || claim.attaches == Some(Ok(false)))
            {
                return Ok(Some(SharedDisk::NotDetached {
                    pvc,
                    volume,
                    driver,
                }));
            }
            if let Some(Err(why)) = &claim.attaches {
                unread = Err(why.clone());
            }
        }
        let is_machine = |Owner { kind, name }: &&Owner| {
            kind.ends_with(VIRTUAL_MACHINE) || &**kind == "Pod" && name.starts_with(LAUNCHER_PREFIX)
        };
        let disk = pod.own_disk.clone().map(SharedDisk::OfPod).or_else(|| {
            let machine = pod.owners().find(is_machine)?;
            Some(SharedDisk::VirtualMachine(machine.name.clone()))
        });
        match disk {
            None => unread,
            found => Ok(found),
        }
    }
}

/// Reports whether nobody misses the data of a PVC. Only `shared-disk` needs to know its volume.
fn is_temporary(going: Option<&TieKind>) -> bool {
    matches!(going, Some(TieKind::Ephemeral | TieKind::GivenUp { .. }))
}

/// Reports whether the volume stays when the PVC is deleted.
fn is_retained(claim: &ClaimFacts) -> bool {
    claim
        .read
        .volume()
        .is_some_and(|volume| volume.reclaim_policy.as_deref() == Some("Retain"))
}

/// Reports whether the pod may write to a path of its node, and its controller waits for its end
/// before it makes another one.
pub(super) fn waits_with_a_path(pod: &PodFacts) -> bool {
    let has_maker = pod.controller.is_some() || pod.is_orphan;
    has_maker && !pod.is_replaced_early() && !pod.host_paths.is_empty()
}

/// Returns the terms of a volume's affinity that decide which nodes reach the volume; or the answer, if
/// these terms are not needed for it.
fn deciding_terms(volume: &VolumeFacts) -> Result<Vec<&AffinityTerm>, Reach> {
    if volume.storage == Place::StrictLocal {
        return Err(Reach::Pinned);
    }
    let is_directory = is_directory(volume);
    if volume.affinity.is_empty() && !is_directory {
        return Err(Reach::Free);
    }
    // In Kubernetes, a term without requirements matches no node, so it allows no further node.
    let terms = volume
        .affinity
        .iter()
        .filter(|term| term.fields || !term.requirements.is_empty())
        .collect_vec();
    // It is not known which nodes share a directory that no affinity ties to nodes.
    if terms.is_empty() || is_directory && terms.iter().any(|it| it.of_zone()) {
        return Err(Reach::Confined);
    }
    // A node may come up in that zone at any time.
    if terms.iter().any(|it| it.of_zone()) {
        return Err(Reach::Free);
    }
    Ok(terms)
}

/// Returns the terms whose nodes decide which nodes reach the volume.
pub fn terms(volume: &VolumeFacts) -> impl Iterator<Item = &AffinityTerm> {
    deciding_terms(volume).unwrap_or_default().into_iter()
}

/// Classifies the volume of a PVC by the nodes that reach it. Zones and regions are ignored: a node may
/// come up in a zone at any time.
pub fn volume_reach(claim: &ClaimFacts, volume: &VolumeFacts, node: &NodeFacts) -> Reach {
    let terms = match deciding_terms(volume) {
        Ok(terms) => terms,
        Err(reach) => return reach,
    };
    let mut unverified = None;
    for term in &terms {
        let not_read = Err(Unread("they were not looked up".to_owned()));
        match claim.allowed.get(term).unwrap_or(&not_read) {
            Err(why) => unverified = Some(why.clone()),
            // Another node of the same hostname has another disk.
            Ok(_) if is_directory(volume) && names_only(term, node) => {}
            Ok(nodes) => {
                if nodes.iter().any(|name| *name != node.name) {
                    return Reach::Free;
                }
            }
        }
    }
    if let Some(why) = unverified {
        return Reach::Unverified(why);
    }
    if terms.iter().all(|term| names_only(term, node)) {
        return Reach::Pinned;
    }
    Reach::Confined
}

fn is_directory(volume: &VolumeFacts) -> bool {
    matches!(volume.storage, Place::Local(_) | Place::HostPath(_))
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

/// Returns the time until which PVCs that were given up keep the pod; `None` if there are none.
pub(super) fn given_up_until(ties: &[Tie]) -> Option<Timestamp> {
    ties.iter().filter_map(Tie::given_up_from).max()
}

/// The end of the kind that owns a virtual machine's pods, of `KubeVirt` and of programs built on it.
/// Their disks are shared, for live migration.
const VIRTUAL_MACHINE: &str = "VirtualMachineInstance";
/// The name prefix of `KubeVirt`'s virt-launcher pods. The pod with which `KubeVirt` attaches a
/// disk to a running machine has a virt-launcher pod as its owner.
const LAUNCHER_PREFIX: &str = "virt-launcher-";
