//! All rules: first their order, in three tables, then each rule as a function. Each rule is
//! independent of the others, so that `explain` can evaluate a late rule although an early one
//! applies.

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{
    Policy,
    context::PodContext,
    reason::{
        Cause, Finding, Missing, NoCause, NoTie, Note, ReasonCode as Code, Seen, does_not_apply,
        lacks_fact,
    },
    same_kind,
    storage::{disk_of_several, given_up_until, waits_with_a_path},
    tie::Tie,
};
use crate::facts::{Containers, JOB_TRACKING, OptOut, Owner, PodFacts, Ready};

/// A row of the table.
pub struct Rule {
    /// The reasons that the rule can give.
    pub gives: &'static [Code],
    /// The question of the rule, as the report shows it.
    pub asks: &'static str,
    pub(super) finding: fn(&PodContext<'_>) -> Finding,
}

macro_rules! rules {
    ($($(#[$about:meta])* $table:ident { $($($gives:ident)|+, $asks:literal => $finding:path;)* })*) => {$(
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

// The rules about nodes and pods.

fn mirror_pod(case: &PodContext<'_>) -> Finding {
    if case.pod.mirror {
        Ok(Cause::Mirror)
    } else {
        does_not_apply(Seen::NoMirror)
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
        None => does_not_apply(Seen::NoOptOut),
    }
}

fn node_gone(case: &PodContext<'_>) -> Finding {
    if !case.nowhere() {
        let name = case.node_name().to_owned();
        return does_not_apply(match case.known() {
            Some(_) => Seen::NodeExists(name),
            None => Seen::NodeUnknown(name),
        });
    }
    // Finalizers block the deletion of the pod, whoever requests it.
    if held_by(case.pod).next().is_some() {
        return does_not_apply(Seen::GoneAndHeld);
    }
    Ok(Cause::NodeGone(case.pod.node.clone()))
}

fn node_ready(case: &PodContext<'_>) -> Finding {
    if case.known().is_none_or(|node| node.ready != Ready::True) {
        return does_not_apply(case.ready());
    }
    Ok(Cause::NodeReady)
}

/// The deletion of a pod is overdue at the earliest from the moment at which it was requested.
fn requested_lately(case: &PodContext<'_>) -> Finding {
    let (pod, threshold) = (case.pod, case.policy.reap_older_than);
    let requested = pod.deletion_requested().unwrap_or(pod.deletion_deadline());
    let ago = case.now.duration_since(requested);
    if ago >= threshold {
        return does_not_apply(Seen::Requested { ago, threshold });
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

fn leaf_node(case: &PodContext<'_>) -> Finding {
    let name = || case.node_name().to_owned();
    match case.known() {
        None if case.nowhere() => does_not_apply(Seen::Nowhere),
        None => does_not_apply(Seen::LeafUnknown(name())),
        Some(node) => match &node.leaf {
            Some(leaf) => Ok(Cause::Leaf(leaf.clone())),
            None => does_not_apply(Seen::NoLeaf(name())),
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
        None => does_not_apply(Seen::AllRead),
    }
}

fn node_just_failed(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    if node.ready == Ready::True {
        // The transition time of a Ready node says since when the node is Ready, not since when it
        // is NotReady.
        return does_not_apply(case.ready());
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
        return does_not_apply(Seen::NotReadyFor { time, threshold });
    }
    Ok(Cause::NodeJustFailed {
        time: Some(time),
        threshold,
    })
}

// The rules about signs of life.

fn not_overdue(case: &PodContext<'_>) -> Finding {
    let threshold = case.policy.reap_older_than;
    let overdue = case.now.duration_since(case.overdue_since());
    let grace_cut = case.grace_cut_short();
    if overdue >= threshold {
        return does_not_apply(Seen::Overdue {
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

fn kubelet_alive(case: &PodContext<'_>) -> Finding {
    let node = case.required_node()?;
    if !case.has_life() {
        return lacks_fact(Missing::Life);
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
            containers: Some(case.pod.containers)
                .filter(|all| reports && *all != Containers::default()),
        });
    }
    match node.unread() {
        Some(why) if node.ready != Ready::True => lacks_fact(Missing::OtherLeases(why.clone())),
        _ => does_not_apply(Seen::LastHeard {
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
        return does_not_apply(Seen::NoEtcd);
    };
    if quorum.is_met() {
        return does_not_apply(Seen::EtcdMajority(quorum));
    }
    match node.fenced(case.now) {
        Some(mark) => does_not_apply(Seen::EtcdFenced(mark.to_owned())),
        None => Ok(Cause::EtcdMember(quorum)),
    }
}

fn finalizers(case: &PodContext<'_>) -> Finding {
    let finalizers = held_by(case.pod).cloned().collect_vec();
    if finalizers.is_empty() {
        return does_not_apply(if case.pod.held_by_job() {
            Seen::HeldByJob
        } else {
            Seen::Unheld
        });
    }
    Ok(Cause::Finalizers(finalizers))
}

/// Lists the finalizers other than the Job controller's. A finalizer with an empty name blocks the
/// deletion too.
fn held_by(pod: &PodFacts) -> impl Iterator<Item = &String> {
    pod.finalizers.iter().filter(|name| *name != JOB_TRACKING)
}

// The rules about storage.

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

fn given_up_lately(case: &PodContext<'_>) -> Finding {
    let is_given_up = |tie: &Tie| tie.given_up_from().is_some();
    let ties = ties_that(case, is_given_up, NoTie::GivenUp)?;
    match given_up_until(&ties).filter(|until| *until > case.now) {
        Some(until) => Ok(Cause::GivenUp { ties, until }),
        None => does_not_apply(Seen::GivenUp(ties)),
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
        return does_not_apply(Seen::NoSharedDisk);
    }
    if let Some(mark) = node.fenced(case.now) {
        return does_not_apply(Seen::Fenced(mark.to_owned()));
    }
    match disk {
        Ok(Some(disk)) => Ok(Cause::SharedDisk(disk)),
        Ok(None) => does_not_apply(Seen::NoSharedDisk),
        Err(why) => lacks_fact(Missing::Attachment(why)),
    }
}

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
        None => does_not_apply(Seen::OtherOwners {
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
