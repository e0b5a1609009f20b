//! All rules: first their order, in three tables, then each rule as a function, and what follows if
//! none of them keeps the pod. Each rule is independent of the others, so that `explain` can evaluate
//! a late rule although an early one keeps the pod.

use std::sync::Arc;

use itertools::Itertools as _;
use jiff::SignedDuration;

use super::{
    Policy,
    context::{PodContext, Stored},
    reason::{Cause, NoTie, Note, ReasonCode as Code, Seen},
    same_kind,
    storage::{given_up_until, waits_with_a_path},
    tie::Tie,
};
use crate::facts::{Containers, Owner, PodFacts, Ready};

/// The result of a rule: what it saw if it lets the pod pass, or the cause for which it keeps the pod.
/// A rule that lacks a fact keeps the pod too.
pub type Finding<'a> = Result<Seen<'a>, Cause>;

/// The function of a rule.
#[derive(Clone, Copy)]
pub(super) enum Finder {
    OfPod(for<'a> fn(&'a PodContext<'a>) -> Finding<'a>),
    OfStorage(for<'a> fn(&'a Stored<'a>) -> Finding<'a>),
}

/// A row of the table.
pub struct Rule {
    /// The reasons that the rule can give, besides `FactsUnread`.
    pub gives: &'static [Code],
    /// The question of the rule, as the report shows it.
    pub asks: &'static str,
    pub(super) finding: Finder,
}

macro_rules! rules {
    ($($(#[$about:meta])* $table:ident { $($($gives:ident)|+, $asks:literal => $of:ident $finding:path;)* })*) => {$(
        $(#[$about])*
        pub(super) const $table: &[Rule] = &[$(Rule {
            gives: &[$(Code::$gives),+],
            asks: $asks,
            finding: Finder::$of($finding),
        }),*];
    )*};
}

// Each row has the reasons, the question and the function that evaluates it.
rules! {
    /// They need the nodes, the pods and the namespaces.
    NODE_RULES {
        MirrorPod, "Is it the mirror of a static pod?" => OfPod mirror_pod;
        OptedOut, "Is the pod, its namespace or its node opted out?" => OfPod opted_out;
        NodeGone, "Is its node gone, with no finalizer left except the Job controller's?" => OfPod node_gone;
        NodeReady, "Is its node Ready?" => OfPod node_ready;
        NotOverdue, "Was its deletion requested less than --reap-older-than ago?" => OfPod requested_lately;
        KosmosLeaf | VirtualNode | EdgeNode | LeafNode, "Is its node a leaf node?" => OfPod leaf_node;
        FactsUnread, "Could a needed fact not be read?" => OfPod facts_unread;
        NodeJustFailed,
            "Has its node been NotReady for less than --reap-older-than?" => OfPod node_just_failed;
    }

    /// They also need the signs of life.
    LIFE_RULES {
        NotOverdue, "Is it overdue by less than --reap-older-than?" => OfPod not_overdue;
        KubeletAlive, "Does its node show a sign of life?" => OfPod kubelet_alive;
        EtcdMember, "May its node carry the API server's datastore, while no majority of such nodes is Ready?" => OfPod etcd_member;
    }

    /// Most of them also need the storage. The reason names each of them that keeps the pod.
    STORAGE_RULES {
        VolumeUnverified, "Would a PVC that can be wanted go with it?" => OfStorage claim_goes;
        LocalVolume, "Is its storage out of reach of every other node?" => OfStorage local_volume;
        HostPath, "Would its replacement miss a hostPath?" => OfStorage host_path;
        NotOverdue, "Was a PVC given up too recently?" => OfStorage given_up_lately;
        VolumeUnverified, "Is a PVC or its volume unverified?" => OfStorage volume_unverified;
        SharedDisk,
            "Could two machines write to its disk, and is its node not fenced?" => OfStorage shared_disk;
        Finalizers, "Is it held by finalizers that a delete does not take off?" => OfPod finalizers;
        OwnerKind,
            "Is the kind of an owner, or of the workload above it, one of --manual-owner-kind?" => OfPod owner_kind;
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

fn mirror_pod<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    if case.pod.mirror {
        return Err(Cause::Mirror);
    }
    Ok(Seen::NoMirror)
}

fn opted_out<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    match case.opt_outs().find(|(_, skip)| skip.holds(case.clock)) {
        Some((by, skip)) => Err(Cause::OptedOut {
            by,
            skip: skip.clone(),
        }),
        None => Ok(Seen::NoOptOut),
    }
}

fn node_gone<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    match &case.node {
        Ok(Some(node)) => Ok(Seen::NodeExists(&node.name)),
        Err(_) => Ok(Seen::NodeUnread),
        // Finalizers block the deletion of the pod, whoever requests it.
        Ok(None) if case.pod.holding_finalizers(false).next().is_some() => Ok(Seen::GoneAndHeld),
        Ok(None) => Err(Cause::NodeGone(case.pod.node.clone())),
    }
}

fn node_ready<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    if case.known().is_some_and(|node| node.ready == Ready::True) {
        return Err(Cause::NodeReady);
    }
    Ok(case.ready())
}

/// The deletion of a pod is overdue at the earliest from the moment at which it was requested.
fn requested_lately<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    let (pod, threshold) = (case.pod, case.policy.reap_older_than);
    let requested = pod.deletion_requested().unwrap_or(pod.deletion_deadline());
    let ago = case.clock.duration_since(requested);
    if ago >= threshold {
        return Ok(Seen::Requested { ago, threshold });
    }
    let ago = ago.max(SignedDuration::ZERO);
    Err(Cause::RequestedLately { ago, threshold })
}

fn leaf_node<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    match &case.node {
        Ok(None) => Ok(Seen::Nowhere),
        Err(_) => Ok(Seen::NodeUnread),
        Ok(Some(node)) => match &node.leaf {
            Some(leaf) => Err(Cause::Leaf(leaf.clone())),
            None => Ok(Seen::NoLeaf(&node.name)),
        },
    }
}

fn facts_unread<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::AllRead);
    };
    if let Err(unread) = &case.pod.in_namespace {
        return Err(Cause::unread("the namespace", unread));
    }
    match &node.unread_lease {
        // The lease shows whether the kubelet is silent. A kubelet that reports Ready=False is
        // not silent, so no lease is needed to know that it lives.
        Some(unread) if matches!(node.ready, Ready::Unknown | Ready::Absent) => {
            Err(Cause::unread("the node's lease", unread))
        }
        _ => Ok(Seen::AllRead),
    }
}

fn node_just_failed<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
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

fn not_overdue<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    let threshold = case.policy.reap_older_than;
    let overdue = case.clock.duration_since(case.overdue_since());
    if overdue < threshold {
        return Err(Cause::NotOverdue { overdue, threshold });
    }
    Ok(Seen::Overdue { overdue, threshold })
}

fn kubelet_alive<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::Nowhere);
    };
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
            let what = "the Leases that may name the node or its pods";
            Err(Cause::unread(what, why))
        }
        _ => Ok(Seen::LastHeard {
            heard: node.last_heard(),
            now: case.clock,
        }),
    }
}

/// The API server has just renewed leases, so a majority of its datastore writes. If fewer of the nodes that may carry it
/// are Ready, one of the NotReady machines can be alive and needed.
fn etcd_member<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    let Some(node) = case.required_node()? else {
        return Ok(Seen::Nowhere);
    };
    let Some(quorum) = &node.quorum else {
        return Ok(Seen::NoEtcd);
    };
    if quorum.is_met() {
        return Ok(Seen::EtcdMajority(quorum));
    }
    match node.fenced(case.now, case.policy) {
        Some(mark) => Ok(Seen::EtcdFenced(mark)),
        None => Err(Cause::EtcdMember(Arc::clone(quorum))),
    }
}

// The rules about storage.

/// Answers the question of a rule by the ties that `is` selects: `find` answers it if there are any. If
/// there are `none`, the pod passes.
fn by_ties<'a>(
    case: &'a Stored<'a>,
    is: fn(&Tie) -> bool,
    none: NoTie,
    find: impl FnOnce(Vec<Tie>) -> Finding<'a>,
) -> Finding<'a> {
    let ties = case
        .ties()
        .iter()
        .filter(|tie| is(tie))
        .cloned()
        .collect_vec();
    if ties.is_empty() {
        let claims = &case.storage.claims;
        Ok(Seen::NoTie { none, claims })
    } else {
        find(ties)
    }
}

fn claim_goes<'a>(case: &'a Stored<'a>) -> Finding<'a> {
    by_ties(case, Tie::goes, NoTie::Goes, |ties| {
        Err(Cause::ClaimsGo(ties))
    })
}

fn local_volume<'a>(case: &'a Stored<'a>) -> Finding<'a> {
    by_ties(case, Tie::is_local, NoTie::Local, |ties| {
        Err(Cause::Local(ties))
    })
}

fn host_path<'a>(case: &'a Stored<'a>) -> Finding<'a> {
    match case.paths_that_keep() {
        [] => Ok(Seen::NoPath),
        paths => Err(Cause::HostPath(paths.to_vec())),
    }
}

fn given_up_lately<'a>(case: &'a Stored<'a>) -> Finding<'a> {
    let is_given_up = |tie: &Tie| tie.given_up_from().is_some();
    by_ties(
        case,
        is_given_up,
        NoTie::GivenUp,
        |ties| match given_up_until(&ties).filter(|until| *until > case.case.clock) {
            Some(until) => Err(Cause::GivenUp { ties, until }),
            None => Ok(Seen::GivenUp(ties)),
        },
    )
}

fn volume_unverified<'a>(case: &'a Stored<'a>) -> Finding<'a> {
    let unverified = by_ties(case, Tie::is_unverified, NoTie::Unverified, |ties| {
        Err(Cause::Unverified(ties))
    });
    match unverified {
        Ok(Seen::NoTie {
            claims: Err(why), ..
        }) => Err(Cause::TooManyClaims(why.clone())),
        unverified => unverified,
    }
}

fn shared_disk<'a>(case: &'a Stored<'a>) -> Finding<'a> {
    let cause = match case.disk_of_several() {
        Ok(None) => return Ok(Seen::NoSharedDisk),
        _ if case.unneeded().is_some() => return Ok(Seen::NoSecondWriter),
        Ok(Some(disk)) => Cause::SharedDisk(disk),
        Err(why) => Cause::unread("whether anything attaches its disk", &why),
    };
    match case.fenced() {
        Some(mark) => Ok(Seen::Fenced(mark)),
        None => Err(cause),
    }
}

fn finalizers<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
    let has_node = case.required_node()?.is_some();
    let finalizers = case.pod.holding_finalizers(has_node).cloned().collect_vec();
    if !finalizers.is_empty() {
        return Err(Cause::Finalizers(finalizers));
    }
    Ok(Seen::Released(&case.pod.finalizers))
}

fn owner_kind<'a>(case: &'a PodContext<'a>) -> Finding<'a> {
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
        manual_owner_kinds
            .iter()
            .any(|kind| same_kind(kind, &owner.kind))
    };
    match owners.clone().find(flagged) {
        Some(owner) => Err(Cause::OwnerKind(owner.clone())),
        None if let Err(why) = other_owners
            && !manual_owner_kinds.is_empty() =>
        {
            Err(Cause::TooManyOwners(why.clone()))
        }
        None => Ok(Seen::OtherOwners {
            owners: owners.map(|owner| &owner.kind).collect(),
            named: manual_owner_kinds,
        }),
    }
}

/// Returns why a pod that passed all rules is reaped.
pub(super) fn stuck(case: &Stored<'_>) -> Cause {
    let (node, pod) = (case.node, case.case.pod);
    let paths_stay = waits_with_a_path(pod).then(|| Note::PathsStay {
        paths: pod.host_paths.clone(),
        node: node.name.clone(),
    });
    let bound = (pod.bound && pod.controller.is_some()).then(|| Note::Bound(node.name.clone()));
    let of_claims = case
        .ties()
        .iter()
        .filter(|tie| !tie.keeps())
        .cloned()
        .map(Note::Claim);
    Cause::Stuck {
        unneeded: case.unneeded(),
        notes: of_claims.chain(paths_stay).chain(bound).collect(),
    }
}
