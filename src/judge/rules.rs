//! All rules: first their order, in three tables, then each rule as a function, and what follows if
//! none of them keeps the pod. Each rule is independent of the others, so that `explain` can evaluate
//! a late rule although an early one keeps the pod.

use std::sync::Arc;

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{
    Policy,
    context::PodContext,
    reason::{Cause, Missing, NoTie, Note, ReasonCode as Code, Seen},
    same_kind,
    storage::{disk_of_several, given_up_until, waits_with_a_path},
    tie::Tie,
};
use crate::facts::{Containers, OptOut, Owner, PodFacts, Ready, Unread};

/// The result of a rule: what it saw if it lets the pod pass, or the cause for which it keeps the pod.
/// A rule that lacks a fact keeps the pod too.
pub type Finding = Result<Seen, Cause>;

/// A row of the table.
pub struct Rule {
    /// The reasons that the rule can give, besides `FactsUnread`.
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

// Each row has the reasons, the question and the function that evaluates it.
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
        EtcdMember, "May its node carry the API server's datastore, of which fewer nodes are Ready than a majority?" => etcd_member;
    }

    /// They also need the storage, of a pod that has a node. The reason names each of them that keeps the pod.
    STORAGE_RULES {
        VolumeUnverified, "Would a PVC that may be wanted go with it?" => claim_goes;
        LocalVolume | HostPath, "Is its data on the node?" => data_on_node;
        LocalVolume, "Is its storage out of reach of every other node?" => volume_confined;
        NotOverdue, "Was a PVC given up too recently?" => given_up_lately;
        VolumeUnverified, "Is a PVC or its volume unverified?" => volume_unverified;
        SharedDisk,
            "Could two machines write to its disk, and is its node not fenced?" => shared_disk;
        Finalizers, "Is it held by finalizers that a delete does not take off?" => finalizers;
        OwnerKind,
            "Is the kind of an owner, or of the workload above it, one of --manual-owner-kind?" => owner_kind;
    }
}

/// The question after the last rule. If the answer is yes, the pod is reaped.
pub const PASSED_ALL: &str = "Has it passed every rule above?";

/// Lists all rules in their order. The number of a rule is its position, counted from 1.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [NODE_RULES, LIFE_RULES, STORAGE_RULES]
        .into_iter()
        .flatten()
}

// The rules about nodes and pods.

fn mirror_pod(case: &PodContext<'_>) -> Finding {
    if case.pod.mirror {
        return Err(Cause::Mirror);
    }
    Ok(Seen::NoMirror)
}

fn opted_out(case: &PodContext<'_>) -> Finding {
    let node = case.known().and_then(|node| node.opted_out.as_ref());
    let of_node = node.filter(|skip| skip.holds(case.clock));
    let of_node = of_node.map(|skip| (OptOut::Node, skip));
    match case.pod.opts_out(case.clock).or(of_node) {
        Some((by, skip)) => Err(Cause::OptedOut {
            by,
            skip: skip.clone(),
        }),
        None => Ok(Seen::NoOptOut),
    }
}

fn node_gone(case: &PodContext<'_>) -> Finding {
    match &case.node {
        Ok(Some(node)) => Ok(Seen::NodeExists(node.name.clone())),
        Err(_) => Ok(Seen::NodeUnread),
        // Finalizers block the deletion of the pod, whoever requests it.
        Ok(None) if case.pod.holding_finalizers(false).next().is_some() => Ok(Seen::GoneAndHeld),
        Ok(None) => Err(Cause::NodeGone(case.pod.node.clone())),
    }
}

fn node_ready(case: &PodContext<'_>) -> Finding {
    if case.known().is_some_and(|node| node.ready == Ready::True) {
        return Err(Cause::NodeReady);
    }
    Ok(case.ready())
}

/// The deletion of a pod is overdue at the earliest from the moment at which it was requested.
fn requested_lately(case: &PodContext<'_>) -> Finding {
    let (pod, threshold) = (case.pod, case.policy.reap_older_than);
    let requested = pod.deletion_requested().unwrap_or(pod.deletion_deadline());
    let ago = case.clock.duration_since(requested);
    if ago >= threshold {
        return Ok(Seen::Requested { ago, threshold });
    }
    let cut = case
        .known()
        .and_then(|node| pod.grace_cut_at(node, case.now));
    Err(if cut.is_some() && !ago.is_negative() {
        Cause::RequestedLately { ago, threshold }
    } else {
        Cause::NotOverdue {
            overdue: case.clock.duration_since(pod.deletion_deadline()),
            threshold,
            grace_cut: None,
        }
    })
}

fn leaf_node(case: &PodContext<'_>) -> Finding {
    match &case.node {
        Ok(None) => Ok(Seen::Nowhere),
        Err(_) => Ok(Seen::NodeUnread),
        Ok(Some(node)) => match &node.leaf {
            Some(leaf) => Err(Cause::Leaf(leaf.clone())),
            None => Ok(Seen::NoLeaf(node.name.clone())),
        },
    }
}

fn facts_unread(case: &PodContext<'_>) -> Finding {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::AllRead);
    };
    if let Err(unread) = &case.pod.in_namespace {
        return Err(Cause::Unread(Missing::Namespace(unread.clone())));
    }
    match &node.unread_lease {
        // The lease shows whether the kubelet is silent. A kubelet that reports Ready=False is
        // not silent, so no lease is needed to know that it lives.
        Some(unread) if matches!(node.ready, Ready::Unknown | Ready::Absent) => {
            Err(Cause::Unread(Missing::Lease(unread.clone())))
        }
        _ => Ok(Seen::AllRead),
    }
}

fn node_just_failed(case: &PodContext<'_>) -> Finding {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::Nowhere);
    };
    if node.ready == Ready::True {
        // The transition time of a Ready node says since when the node is Ready, not since when it
        // is NotReady.
        return Ok(case.ready());
    }
    let threshold = case.policy.reap_older_than;
    let Some(since) = node.not_ready_since(case.now) else {
        return Err(Cause::NodeJustFailed {
            time: None,
            threshold,
        });
    };
    let passed = case.clock.duration_since(since);
    let time = passed.max(SignedDuration::ZERO);
    if passed < threshold {
        return Err(Cause::NodeJustFailed {
            time: Some(time),
            threshold,
        });
    }
    Ok(Seen::NotReadyFor { time, threshold })
}

// The rules about signs of life.

fn not_overdue(case: &PodContext<'_>) -> Finding {
    let threshold = case.policy.reap_older_than;
    let overdue = case.clock.duration_since(case.overdue_since());
    let grace_cut = case.grace_cut_short();
    if overdue < threshold {
        // A pod within its grace period has none that is cut short.
        return Err(Cause::NotOverdue {
            overdue,
            threshold,
            grace_cut,
        });
    }
    Ok(Seen::Overdue {
        overdue,
        threshold,
        grace_cut,
    })
}

fn kubelet_alive(case: &PodContext<'_>) -> Finding {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::Nowhere);
    };
    if !case.has_life() {
        return Err(Cause::Unread(Missing::Life));
    }
    let signs = case.signs_of_life(node);
    if !signs.is_empty() {
        // The kubelet's reports are current only while the kubelet reports.
        let reports = node.ready == Ready::False;
        return Err(Cause::Alive {
            ready: node.ready,
            signs,
            now: case.clock,
            kubelet_says: node.kubelet_says.filter(|_| reports),
            containers: Some(case.pod.containers)
                .filter(|all| reports && *all != Containers::default()),
        });
    }
    match node.unread() {
        Some(why) if node.ready != Ready::True => {
            Err(Cause::Unread(Missing::OtherLeases(why.clone())))
        }
        _ => Ok(Seen::LastHeard {
            heard: node.last_heard().cloned(),
            now: case.clock,
        }),
    }
}

/// The API server has just renewed leases, so a majority of its datastore writes. If fewer of the nodes that may carry it
/// are Ready, one of the NotReady machines may be alive and needed.
fn etcd_member(case: &PodContext<'_>) -> Finding {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::Nowhere);
    };
    let Some(quorum) = &node.quorum else {
        return Ok(Seen::NoEtcd);
    };
    if quorum.is_met() {
        return Ok(Seen::EtcdMajority(Arc::clone(quorum)));
    }
    match node.fenced(case.now) {
        Some(mark) => Ok(Seen::EtcdFenced(mark.to_owned())),
        None => Err(Cause::EtcdMember(Arc::clone(quorum))),
    }
}

// The rules about storage.

/// Answers the question of a rule by the ties that `is` selects: `find` answers it if there are any. If
/// there are `none`, the pod passes.
fn by_ties(
    case: &PodContext<'_>,
    is: fn(&Tie) -> bool,
    none: NoTie,
    find: impl FnOnce(Vec<Tie>) -> Finding,
) -> Finding {
    let Some(ties) = case.ties()? else {
        return Ok(Seen::Nowhere);
    };
    let ties = ties.iter().filter(|tie| is(tie)).cloned().collect_vec();
    if !ties.is_empty() {
        return find(ties);
    }
    let claims = case.required_storage()?.claims.as_ref();
    Ok(Seen::NoTie {
        none,
        claims: claims
            .map(|claims| {
                claims
                    .iter()
                    .map(|claim| claim.named.name.clone())
                    .collect()
            })
            .map_err(Unread::clone),
    })
}

fn claim_goes(case: &PodContext<'_>) -> Finding {
    by_ties(case, Tie::goes, NoTie::Goes, |ties| {
        Err(Cause::ClaimsGo(ties))
    })
}

fn data_on_node(case: &PodContext<'_>) -> Finding {
    let paths = case.paths_that_keep();
    let pinned = by_ties(case, Tie::is_pinned, NoTie::Pinned, |ties| {
        let paths = paths.to_vec();
        Err(Cause::Pinned { ties, paths })
    });
    match pinned {
        Ok(Seen::NoTie { .. }) if !paths.is_empty() => Err(Cause::HostPath(paths.to_vec())),
        pinned => pinned,
    }
}

fn volume_confined(case: &PodContext<'_>) -> Finding {
    by_ties(case, Tie::is_confined, NoTie::Confined, |ties| {
        Err(Cause::Confined(ties))
    })
}

fn given_up_lately(case: &PodContext<'_>) -> Finding {
    let is_given_up = |tie: &Tie| tie.given_up_from().is_some();
    by_ties(
        case,
        is_given_up,
        NoTie::GivenUp,
        |ties| match given_up_until(&ties).filter(|until| *until > case.clock) {
            Some(until) => Err(Cause::GivenUp { ties, until }),
            None => Ok(Seen::GivenUp(ties)),
        },
    )
}

fn volume_unverified(case: &PodContext<'_>) -> Finding {
    let unverified = by_ties(case, Tie::is_unverified, NoTie::Unverified, |ties| {
        Err(Cause::Unverified(ties))
    });
    match unverified {
        Ok(Seen::NoTie {
            claims: Err(why), ..
        }) => Err(Cause::TooManyClaims(why)),
        unverified => unverified,
    }
}

fn shared_disk(case: &PodContext<'_>) -> Finding {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::Nowhere);
    };
    let cause = match disk_of_several(case.pod, node, case.required_storage()?) {
        Ok(None) => return Ok(Seen::NoSharedDisk),
        _ if case.unneeded().is_some() => return Ok(Seen::NoSecondWriter),
        Ok(Some(disk)) => Cause::SharedDisk(disk),
        Err(why) => Cause::Unread(Missing::Attachment(why)),
    };
    match node.fenced(case.now) {
        Some(mark) => Ok(Seen::Fenced(mark.to_owned())),
        None => Err(cause),
    }
}

fn finalizers(case: &PodContext<'_>) -> Finding {
    let has_node = case.required_node()?.is_some();
    let finalizers = case.pod.holding_finalizers(has_node).cloned();
    let finalizers = finalizers.collect_vec();
    if !finalizers.is_empty() {
        return Err(Cause::Finalizers(finalizers));
    }
    Ok(Seen::Released(case.pod.finalizers.clone()))
}

fn owner_kind(case: &PodContext<'_>) -> Finding {
    let Policy {
        manual_owner_kinds, ..
    } = case.policy;
    let PodFacts {
        owner,
        workload,
        other_owners,
        ..
    } = case.pod;
    // The pod's owner, the workload above it if the workload is another object, and all other owners.
    let owners = owner
        .iter()
        .chain(workload.iter().filter(|_| workload != owner))
        .chain(other_owners.iter().flatten());
    let flagged = |owner: &&Owner| {
        let mut kinds = manual_owner_kinds.iter();
        kinds.any(|kind| same_kind(kind, &owner.kind))
    };
    match owners.clone().find(flagged) {
        Some(owner) => Err(Cause::OwnerKind(owner.clone())),
        None if let Err(why) = other_owners
            && !manual_owner_kinds.is_empty() =>
        {
            Err(Cause::TooManyOwners(why.clone()))
        }
        None => Ok(Seen::OtherOwners {
            owners: owners.map(|owner| owner.kind.clone()).collect(),
            named: manual_owner_kinds.clone(),
        }),
    }
}

/// Returns why a pod that passed all rules is reaped; `None` if its node or its ties are not known.
pub(super) fn stuck(case: &PodContext<'_>) -> Option<Cause> {
    let (node, ties) = (case.known()?, case.ties().ok()??);
    let paths_stay = waits_with_a_path(case.pod).then(|| Note::PathsStay {
        paths: case.pod.host_paths.clone(),
        node: node.name.clone(),
    });
    let bound = case.pod.bound && case.pod.controller.is_some();
    let bound = bound.then(|| Note::Bound(node.name.clone()));
    let no_controller = case.pod.controller.is_none() && !case.pod.is_orphan;
    let no_controller = no_controller.then_some(Note::NoController);
    let no_spare = node.quorum.clone().filter(|it| it.has_no_spare());
    let of_claims = ties.iter().filter(|tie| tie.is_noted()).cloned();
    let notes = of_claims
        .map(Note::Claim)
        .chain(paths_stay)
        .chain(bound)
        .chain(no_controller)
        .chain(no_spare.map(Note::NoSpare));
    let has_disk = disk_of_several(case.pod, node, case.storage?) != Ok(None);
    let depends = has_disk || waits_with_a_path(case.pod);
    let of_pod = case.unneeded().filter(|_| depends);
    let unneeded = ties.iter().filter_map(Tie::unneeded).chain(of_pod);
    Some(Cause::Stuck {
        unneeded: unneeded.collect(),
        notes: notes.collect(),
    })
}
