//! The rules in their order, in three tables, and the functions that walk through them. Each rule is
//! independent of the others, so that `explain` can evaluate a late rule although an early one
//! applies.

use std::iter;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    Evaluation, Policy,
    code::{ReasonCode as Code, Verdict},
    context::PodContext,
    reason::{
        Cause, Finding, GraceCut, Missing, NoCause, NoTie, Note, Reason, Seen, SharedDisk, Tie,
    },
    same_kind,
    volume::{reach, waits_with_a_path},
};
use crate::facts::{JOB_TRACKING, NodeFacts, OptOut, Owner, PodFacts, Read, Ready, Storage};

/// A row of the table.
pub struct Rule {
    /// The reasons that the rule can give.
    pub gives: &'static [Code],
    /// The question of the rule, as the report shows it.
    pub asks: &'static str,
    finding: fn(&PodContext<'_>) -> Finding,
}

fn seen(what: Seen) -> Finding {
    Err(NoCause::Seen(what))
}

fn missing(fact: Missing) -> Finding {
    Err(NoCause::Missing(fact))
}

macro_rules! rules {
    ($($(#[$about:meta])* $table:ident { $($($gives:ident)|+, $asks:literal => $finding:ident;)* })*) => {$(
        $(#[$about])*
        pub(super) const $table: &[Rule] = &[$(Rule {
            gives: &[$(Code::$gives),+],
            asks: $asks,
            finding: $finding,
        }),*];
    )*};
}

// Each row has the reasons, the question and the function that evaluates it. No rule depends on
// another one.
rules! {
    /// They need the nodes, the pods and the namespaces.
    NODE_RULES {
        MirrorPod, "Is it the mirror of a static pod?" => mirror_pod;
        OptedOut, "Is the pod, its namespace or its node opted out?" => opted_out;
        NodeGone, "Is its node gone, with no finalizer left except the Job controller's?" => node_gone;
        NodeReady, "Is its node Ready?" => node_ready;
        NotOverdue, "Was its deletion requested less than --reap-older-than ago?" => requested_lately;
        KosmosLeaf | VirtualNode | EdgeNode | LeafNode, "Is its node a leaf node?" => leaf_node;
        FactsUnread, "Could a needed fact not be read?" => facts_unread;
        NodeJustFailed,
            "Has its node been NotReady for less than --reap-older-than?" => node_just_failed;
    }

    /// They also need the signs of life.
    LIFE_RULES {
        NotOverdue, "Is it overdue by less than --reap-older-than?" => not_overdue;
        KubeletAlive, "Does its node show a sign of life?" => kubelet_alive;
        EtcdMember, "Did its node run etcd, of which fewer members are Ready than a majority?" => etcd_member;
        Finalizers, "Is it held by finalizers other than the Job controller's?" => finalizers;
    }

    /// They also need the storage. The reason names each of them that keeps the pod.
    STORAGE_RULES {
        VolumeUnverified, "Would a PVC that may be wanted go with it?" => claim_goes;
        LocalVolume | HostPath, "Is its data on the node?" => data_on_node;
        LocalVolume, "Is its storage out of reach of every other node?" => volume_confined;
        NotOverdue, "Was a PVC given up too recently?" => given_up_lately;
        VolumeUnverified, "Is a PVC or its volume unverified?" => volume_unverified;
        SharedDisk,
            "Could two machines write to its disk, and is its node not fenced?" => shared_disk;
        OwnerKind,
            "Is the kind of its owner, or of the workload above it, one of --manual-owner-kind?" => owner_kind;
        Stuck, "Has it passed every rule above?" => nothing_keeps;
    }
}

/// Lists all rules in their order. The number of a rule is its position, counted from 1.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [NODE_RULES, LIFE_RULES, STORAGE_RULES]
        .into_iter()
        .flatten()
}

impl Rule {
    /// Returns the cause if the rule applies. A rule that needs an unknown fact keeps the pod too.
    fn decides(&self, case: &PodContext<'_>) -> Option<Cause> {
        match (self.finding)(case) {
            Ok(cause) => Some(cause),
            Err(NoCause::Missing(fact)) => Some(Cause::Unread(fact)),
            Err(NoCause::Seen(_)) => None,
        }
    }
}

impl PodContext<'_> {
    /// Judges the pod: the first rule that applies decides. Judging stops at the first table whose
    /// facts were not read. `None` if nothing keeps the pod so far, so that it goes on to the next
    /// step of gathering.
    pub fn judge(&self) -> Option<Reason> {
        if let Some(cause) = self.first(NODE_RULES) {
            return Some(Reason::new(cause));
        }
        if !self.has_life() {
            return None;
        }
        let reason = match self.first(LIFE_RULES) {
            Some(cause) => Reason::new(cause),
            None => self.judge_by_storage()?,
        };
        Some(Reason {
            grace_cut: self.stuck_by_the_cut(reason.code()),
            ..reason
        })
    }

    /// Judges the pod for good: a pod that was not read to the end is kept.
    pub fn decide(&self) -> Reason {
        let unread = || Reason::new(Cause::Unread(Missing::LaterStep));
        self.judge().unwrap_or_else(unread)
    }

    fn first(&self, table: &[Rule]) -> Option<Cause> {
        table.iter().find_map(|rule| rule.decides(self))
    }

    /// Judges the pod by the rules about storage; `None` if the storage was not read. The reason gets
    /// the pod's ties, and the codes of all these rules for which the user has to decide.
    fn judge_by_storage(&self) -> Option<Reason> {
        self.storage?;
        let mut rules = STORAGE_RULES.iter();
        let cause = rules.find_map(|rule| rule.decides(self))?;
        if matches!(cause, Cause::Unread(_)) {
            return Some(Reason::new(cause));
        }
        let mut asks = Vec::new();
        if cause.code().verdict() == Verdict::Manual {
            let others = rules.filter_map(|rule| (rule.finding)(self).ok());
            let codes = iter::once(cause.clone()).chain(others);
            let codes = codes.flat_map(|cause| cause.codes().collect_vec());
            let manual = codes.filter(|code| code.verdict() == Verdict::Manual);
            asks = manual.unique().collect();
        }
        Some(Reason {
            asks,
            ties: self.ties().map(<[Tie]>::to_vec).unwrap_or_default(),
            ..Reason::new(cause)
        })
    }

    /// Reports whether a verdict depends on the CSI drivers.
    pub fn needs_drivers(&self) -> bool {
        let node = self.known().filter(|node| node.fenced(self.now).is_none());
        let (Some(node), Some(storage)) = (node, self.storage) else {
            return false;
        };
        disk_of_several(self.pod, node, storage).is_err()
    }

    /// Lists the node's paths that the pod may write to and that keep the pod. Kubernetes replaces
    /// the pods of a Deployment at the eviction, but those of a `StatefulSet` only once they are
    /// deleted; so do the controllers of other projects.
    fn paths_that_keep(&self) -> &[String] {
        if waits_with_a_path(self.pod) && self.unneeded().is_none() {
            &self.pod.host_paths
        } else {
            &[]
        }
    }

    /// Returns the cut of the grace period, if the pod is stuck only because its grace period is cut
    /// short; otherwise `None`. `code` is the reason that decides about the pod.
    fn stuck_by_the_cut(&self, code: Code) -> Option<GraceCut> {
        let threshold = self.policy.reap_older_than;
        let is_stuck = |since| self.now.duration_since(since) >= threshold;
        let depends = !is_stuck(self.pod.deletion_deadline()) && is_stuck(self.overdue_since());
        // With `facts-unread`, the unread fact matters more.
        if depends && code != Code::FactsUnread {
            self.grace_cut_short()
        } else {
            None
        }
    }

    /// Returns the moment from which neither rule about time keeps the pod; `None` if that moment
    /// is not known.
    pub fn reaped_from(&self) -> Option<Timestamp> {
        let node = self.known()?;
        let since = node.not_ready_since(self.now)?;
        let overdue = self.pod.grace_cut_at(node, self.now);
        let overdue = overdue.unwrap_or(self.pod.deletion_deadline());
        let overdue = overdue.saturating_add(self.policy.reap_older_than).ok()?;
        let silent = since.saturating_add(self.policy.reap_older_than).ok()?;
        let given_up = self.ties().ok().and_then(given_up_until);
        [Some(overdue), Some(silent), given_up]
            .into_iter()
            .flatten()
            .max()
    }

    /// Evaluates every rule, in order. The first one that applies, or needs an unknown fact, is the
    /// one that [`PodContext::judge`] finds. The last rule does not check whether an earlier one
    /// applies, so its result is not shown if another rule decides.
    pub fn evaluate(&self) -> Vec<Evaluation> {
        let (last, decided) = (rules().count(), self.decide());
        let mut decides = None;
        let evaluations = rules().zip(1..).map(|(rule, number)| {
            let (holds, seen) = match ((rule.finding)(self), decides) {
                (_, Some(decides)) if number == last => {
                    (Some(false), Seen::DecidedBy(decides).to_string())
                }
                (Ok(_), None) => (Some(true), decided.to_string()),
                (Ok(cause), Some(_)) => (Some(true), cause.to_string()),
                (Err(NoCause::Seen(seen)), _) => (Some(false), seen.to_string()),
                (Err(NoCause::Missing(fact)), _) => (None, fact.seen().to_owned()),
            };
            if holds != Some(false) {
                decides.get_or_insert(number);
            }
            Evaluation {
                number: Some(number),
                asks: rule.asks,
                holds,
                decides: decides == Some(number),
                seen,
                gives: rule.gives.first().copied(),
            }
        });
        evaluations.collect()
    }
}

fn mirror_pod(case: &PodContext<'_>) -> Finding {
    if case.pod.mirror {
        Ok(Cause::Mirror)
    } else {
        seen(Seen::NoMirror)
    }
}

fn opted_out(case: &PodContext<'_>) -> Finding {
    let node = case.known().and_then(|node| node.opted_out.as_ref());
    let of_node = node.map(|value| (OptOut::Node, value));
    match case.pod.opts_out().or(of_node) {
        Some((by, value)) => Ok(Cause::OptedOut {
            by,
            value: value.clone(),
        }),
        None => seen(Seen::NoOptOut),
    }
}

fn node_gone(case: &PodContext<'_>) -> Finding {
    if !case.nowhere() {
        let name = case.node_name().to_owned();
        return seen(match case.known() {
            Some(_) => Seen::NodeExists(name),
            None => Seen::NodeUnknown(name),
        });
    }
    // Finalizers block the deletion of the pod, whoever requests it.
    if held_by(case.pod).next().is_some() {
        return seen(Seen::GoneAndHeld);
    }
    Ok(Cause::NodeGone(case.pod.node.clone()))
}

fn node_ready(case: &PodContext<'_>) -> Finding {
    if case.known().is_none_or(|node| node.ready != Ready::True) {
        return seen(case.ready());
    }
    Ok(Cause::NodeReady)
}

/// The deletion of a pod is overdue at the earliest from the moment at which it was requested.
fn requested_lately(case: &PodContext<'_>) -> Finding {
    let (pod, threshold) = (case.pod, case.policy.reap_older_than);
    let requested = pod.deletion_requested().unwrap_or(pod.deletion_deadline());
    let ago = case.now.duration_since(requested);
    if ago >= threshold {
        return seen(Seen::Requested { ago, threshold });
    }
    let cut = case
        .known()
        .and_then(|node| pod.grace_cut_at(node, case.now));
    Ok(match cut.filter(|_| !ago.is_negative()) {
        Some(_) => Cause::RequestedLately { ago, threshold },
        None => Cause::NotOverdue {
            overdue: case.now.duration_since(pod.deletion_deadline()),
            threshold,
            grace_cut: None,
        },
    })
}

fn not_overdue(case: &PodContext<'_>) -> Finding {
    let threshold = case.policy.reap_older_than;
    let overdue = case.now.duration_since(case.overdue_since());
    let grace_cut = case.grace_cut_short();
    if overdue >= threshold {
        return seen(Seen::Overdue {
            overdue,
            threshold,
            grace_cut,
        });
    }
    // A pod within its grace period has none that is cut short.
    Ok(Cause::NotOverdue {
        overdue,
        threshold,
        grace_cut,
    })
}

fn leaf_node(case: &PodContext<'_>) -> Finding {
    let name = || case.node_name().to_owned();
    match case.known() {
        None if case.nowhere() => seen(Seen::Nowhere),
        None => seen(Seen::LeafUnknown(name())),
        Some(node) => match &node.leaf {
            Some(leaf) => Ok(Cause::Leaf(leaf.clone())),
            None => seen(Seen::NoLeaf(name())),
        },
    }
}

fn facts_unread(case: &PodContext<'_>) -> Finding {
    let unread = match case.known() {
        None if case.nowhere() => None,
        None => Some(case.node_unread()),
        Some(node) => match (&case.pod.in_namespace, &node.unread_lease) {
            (Err(unread), _) => Some(Missing::Namespace(unread.clone())),
            // The lease shows whether the kubelet is silent. A kubelet that reports Ready=False is
            // not silent, so its lease cannot change a verdict.
            (_, Some(unread)) if matches!(node.ready, Ready::Unknown | Ready::Absent) => {
                Some(Missing::Lease(unread.clone()))
            }
            _ => None,
        },
    };
    match unread {
        Some(fact) => Ok(Cause::Unread(fact)),
        None => seen(Seen::AllRead),
    }
}

fn node_just_failed(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    if node.ready == Ready::True {
        // The transition time of a Ready node says since when the node is Ready, not since when it
        // is NotReady.
        return seen(case.ready());
    }
    let threshold = case.policy.reap_older_than;
    let Some(since) = node.not_ready_since(case.now) else {
        return Ok(Cause::NodeJustFailed {
            time: None,
            threshold,
        });
    };
    let passed = case.now.duration_since(since);
    let time = passed.max(SignedDuration::ZERO);
    if passed >= threshold {
        return seen(Seen::NotReadyFor { time, threshold });
    }
    Ok(Cause::NodeJustFailed {
        time: Some(time),
        threshold,
    })
}

fn kubelet_alive(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    if !case.has_life() {
        return missing(Missing::OtherLeases(None));
    }
    let signs = node.signs_of_life(case.now);
    if !signs.is_empty() {
        // The kubelet's reports are current only while the kubelet reports.
        let reports = node.ready == Ready::False;
        return Ok(Cause::Alive {
            ready: node.ready,
            signs,
            now: case.now,
            kubelet_says: node.kubelet_says.filter(|_| reports),
            containers: Some(case.pod.containers).filter(|all| reports && all.count() > 0),
        });
    }
    match node.unread() {
        Some(why) if node.ready != Ready::True => missing(Missing::OtherLeases(Some(why.clone()))),
        _ => seen(Seen::LastHeard {
            heard: node.last_heard().cloned(),
            now: case.now,
        }),
    }
}

/// The API server has just renewed leases, so a majority of the members of etcd writes. If fewer
/// nodes of members are Ready, at least one of the NotReady machines is alive.
fn etcd_member(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    let Some(quorum) = node.etcd else {
        return seen(Seen::NoEtcd);
    };
    if quorum.is_met() {
        return seen(Seen::EtcdMajority(quorum));
    }
    match node.fenced(case.now) {
        Some(mark) => seen(Seen::EtcdFenced(mark.to_owned())),
        None => Ok(Cause::EtcdMember(quorum)),
    }
}

fn finalizers(case: &PodContext<'_>) -> Finding {
    let finalizers = held_by(case.pod).cloned().collect_vec();
    if finalizers.is_empty() {
        let by_job = case.pod.held_by_job();
        return seen(Seen::Unheld { by_job });
    }
    Ok(Cause::Finalizers(finalizers))
}

/// Lists the finalizers other than the Job controller's. A finalizer with an empty name blocks the
/// deletion too.
fn held_by(pod: &PodFacts) -> impl Iterator<Item = &String> {
    pod.finalizers.iter().filter(|name| *name != JOB_TRACKING)
}

/// Returns the ties that `is` selects, for a rule that they give its cause. The error says that the pod
/// has none.
fn ties_that(
    case: &PodContext<'_>,
    is: fn(&Tie) -> bool,
    none: NoTie,
) -> Result<Vec<Tie>, NoCause> {
    let ties = case.ties()?.iter().filter(|tie| is(tie)).cloned();
    let ties = ties.collect_vec();
    if !ties.is_empty() {
        return Ok(ties);
    }
    Err(NoCause::Seen(match &case.required_storage()?.claims {
        Err(why) => Seen::ClaimsUnread(why.clone()),
        Ok(claims) => Seen::Claims {
            none,
            claims: claims.iter().map(|claim| claim.name.clone()).collect(),
        },
    }))
}

fn claim_goes(case: &PodContext<'_>) -> Finding {
    ties_that(case, Tie::goes, NoTie::Goes).map(Cause::ClaimsGo)
}

fn data_on_node(case: &PodContext<'_>) -> Finding {
    let paths = case.paths_that_keep().to_vec();
    match ties_that(case, Tie::is_pinned, NoTie::Pinned) {
        Ok(ties) => Ok(Cause::Pinned { ties, paths }),
        Err(NoCause::Seen(Seen::Claims { .. } | Seen::ClaimsUnread(_))) if !paths.is_empty() => {
            Ok(Cause::HostPath(paths))
        }
        Err(none) => Err(none),
    }
}

fn volume_confined(case: &PodContext<'_>) -> Finding {
    ties_that(case, Tie::is_confined, NoTie::Confined).map(Cause::Confined)
}

/// Returns the time until which PVCs that were given up keep the pod; `None` if there are none.
fn given_up_until(ties: &[Tie]) -> Option<Timestamp> {
    ties.iter().filter_map(Tie::given_up_from).max()
}

fn given_up_lately(case: &PodContext<'_>) -> Finding {
    let is_given_up = |tie: &Tie| tie.given_up_from().is_some();
    let ties = ties_that(case, is_given_up, NoTie::GivenUp)?;
    match given_up_until(&ties).filter(|until| *until > case.now) {
        Some(until) => Ok(Cause::GivenUp { ties, until }),
        None => seen(Seen::GivenUp(ties)),
    }
}

fn volume_unverified(case: &PodContext<'_>) -> Finding {
    case.required_node()?;
    if let Err(why) = &case.required_storage()?.claims {
        return Ok(Cause::TooManyClaims(why.clone()));
    }
    ties_that(case, Tie::is_unverified, NoTie::Unverified).map(Cause::Unverified)
}

fn shared_disk(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    let disk = disk_of_several(case.pod, node, case.required_storage()?);
    if matches!(disk, Ok(None)) {
        return seen(Seen::NoSharedDisk);
    }
    if let Some(mark) = node.fenced(case.now) {
        return seen(Seen::Fenced(mark.to_owned()));
    }
    match disk {
        Ok(Some(disk)) => Ok(Cause::SharedDisk(disk)),
        Ok(None) => seen(Seen::NoSharedDisk),
        Err(why) => missing(Missing::Attachment(why)),
    }
}

/// Returns the disk that several machines could write to at once. A volume on the node itself has no
/// second machine, although nothing attaches it.
fn disk_of_several(
    pod: &PodFacts,
    node: &NodeFacts,
    storage: &Storage,
) -> Read<Option<SharedDisk>> {
    let mut unread = Ok(None);
    for claim in storage.claims() {
        let Some(bound) = claim.bound() else {
            continue;
        };
        if reach(claim, bound, node).is_local() {
            continue;
        }
        let (pvc, volume) = (claim.name.clone(), bound.volume.name.clone());
        if bound.shared_disk {
            return Ok(Some(SharedDisk::RawBlock { pvc }));
        }
        if let Some(kind) = bound.volume.disk {
            return Ok(Some(SharedDisk::Network { pvc, volume, kind }));
        }
        match (bound.volume.driver.clone(), &claim.attaches) {
            (Some(driver), Some(Ok(false))) => {
                return Ok(Some(SharedDisk::Unattached {
                    pvc,
                    volume,
                    driver,
                }));
            }
            (_, Some(Err(why))) => unread = Err(why.clone()),
            _ => {}
        }
    }
    let of_pod = pod.own_disk.clone().map(SharedDisk::OfPod);
    let of_machine = || {
        let Owner { kind, name } = pod.owner.as_ref()?;
        let machine =
            kind.ends_with(VIRTUAL_MACHINE) || kind == "Pod" && name.starts_with(LAUNCHER_PREFIX);
        machine.then(|| SharedDisk::VirtualMachine(name.clone()))
    };
    match of_pod.or_else(of_machine) {
        None => unread,
        found => Ok(found),
    }
}

/// The end of the kind that owns a virtual machine's pods, of `KubeVirt` and of programs built on it.
/// Their disks are shared, for live migration.
const VIRTUAL_MACHINE: &str = "VirtualMachineInstance";
/// The name prefix of `KubeVirt`'s virt-launcher pods. The pod with which `KubeVirt` attaches a
/// disk to a running machine has a virt-launcher pod as its owner.
const LAUNCHER_PREFIX: &str = "virt-launcher-";

fn owner_kind(case: &PodContext<'_>) -> Finding {
    let Policy {
        manual_owner_kinds, ..
    } = case.policy;
    let PodFacts {
        owner, workload, ..
    } = case.pod;
    // The pod's owner, and the workload above it if the workload is another object.
    let owners = owner
        .iter()
        .chain(workload.iter().filter(|_| workload != owner));
    let flagged = |owner: &&Owner| {
        let mut kinds = manual_owner_kinds.iter();
        kinds.any(|kind| same_kind(kind, &owner.kind))
    };
    match owners.clone().find(flagged) {
        Some(owner) => Ok(Cause::OwnerKind(owner.clone())),
        None => seen(Seen::OtherOwners {
            owners: owners.map(|owner| owner.kind.clone()).collect(),
            named: manual_owner_kinds.clone(),
        }),
    }
}

fn nothing_keeps(case: &PodContext<'_>) -> Finding {
    let (node, ties) = (case.required_node()?, case.ties()?);
    let paths_stay = waits_with_a_path(case.pod).then(|| Note::PathsStay {
        paths: case.pod.host_paths.clone(),
        node: node.name.clone(),
    });
    let no_controller = case.pod.controller.is_none().then_some(Note::NoController);
    let no_spare = node.etcd.filter(|quorum| quorum.has_no_spare());
    let of_claims = ties.iter().filter(|tie| tie.is_noted()).cloned();
    let notes = of_claims
        .map(Note::Claim)
        .chain(paths_stay)
        .chain(no_controller)
        .chain(no_spare.map(Note::NoSpare));
    let of_paths = case.unneeded().filter(|_| waits_with_a_path(case.pod));
    let unneeded = ties.iter().filter_map(Tie::unneeded).chain(of_paths);
    Ok(Cause::Stuck {
        unneeded: unneeded.collect(),
        notes: notes.collect(),
    })
}
