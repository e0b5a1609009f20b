//! The parts of sentences about reasons that need more than a line, and the phrases about heartbeats.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{reason::NoTie, tie::Tie};
use crate::{
    facts::{
        AffinityTerm, ClaimFacts, Containers, Heartbeat, KubeletSays, Leaf, LeafKind, Read,
        Requirement, SignBy, Skip,
    },
    words::{Foreign, human_duration, joined},
};

/// Why two machines could write to a disk.
pub(super) const KEEPS_NOBODY_OUT: &str = "nothing keeps a second machine from writing to it";

/// Says what a leaf node is.
pub(super) fn of_leaf(leaf: &Leaf) -> String {
    let (maker, marks) = (leaf.maker, leaf.marks.join(", "));
    let link_is_cut = "There, NotReady usually means that the link is cut";
    let (what, means) = match leaf.kind {
        LeafKind::Kosmos => (
            leaf.cluster.as_ref().map_or_else(
                || "is a Kosmos leaf node and stands for another cluster".to_owned(),
                |cluster| format!("stands for the Kosmos leaf cluster {cluster}"),
            ),
            link_is_cut,
        ),
        LeafKind::Virtual => (
            format!("is a virtual node of {maker}, not a machine"),
            "There, NotReady means that the program that runs its pods does not report",
        ),
        LeafKind::Edge => (
            format!("is an edge node of {maker}"),
            "It keeps working without its cluster, so NotReady means that the link is cut",
        ),
        LeafKind::Selected => ("matches --leaf-node-selector".to_owned(), link_is_cut),
        LeafKind::NeverReported => {
            return format!(
                "No kubelet ever reported on its node (seen: {marks}), so that nothing shows a machine there: what it stands for \
                 may run the pod."
            );
        }
    };
    format!("Its node {what} (seen: {marks}). {means}: the pod is probably still running.")
}

/// Names the PVCs that were given up.
pub(super) fn deleted(given_up: &[Tie]) -> String {
    let names = given_up.iter().map(|tie| match &tie.volume {
        Some(volume) => format!("{} (volume {volume})", tie.pvc),
        None => tie.pvc.clone(),
    });
    format!("Deleted after the node failed: PVC {}.", names.format(", "))
}

/// Spells terms: "zone In a, b or zone In c".
pub(super) fn spelled_terms(terms: &[AffinityTerm]) -> Foreign {
    let requirement =
        |it: &Requirement| format!("{} {} {}", it.key, it.operator, it.values.join(", "));
    let term = |term: &AffinityTerm| term.requirements.iter().map(requirement).join(" and ");
    Foreign::from(terms.iter().map(term).join(" or "))
}

/// Says whether the pod's containers run, as a sentence to follow others. `counts` is what the kubelet
/// reports, if it does.
pub(super) fn containers_run(counts: Option<Containers>) -> String {
    let Some(counts) = counts else {
        return " The pod's containers most likely still run.".to_owned();
    };
    let states = [
        (counts.running, "running"),
        (counts.terminated, "terminated"),
        (counts.waiting, "waiting"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, state)| format!("{count} {state}"))
    .join(", ");
    format!(" The kubelet's last report on the pod's containers: {states}.")
}

/// Says what the kubelet reports, as a sentence to follow others.
pub fn kubelet_reports(fault: Option<KubeletSays>) -> &'static str {
    match fault {
        Some(KubeletSays::ShuttingDown) => " Its kubelet says that the node is shutting down.",
        Some(KubeletSays::Runtime) => " Its kubelet says that the container runtime does not work.",
        Some(KubeletSays::Network) => {
            " Its kubelet says that the network plugin (CNI) is not ready."
        }
        None => "",
    }
}

/// Lists signs of life as a phrase.
pub(super) fn signs_of_life(signs: &[Heartbeat], now: Timestamp) -> String {
    signs.iter().map(|sign| reported(sign, now)).join(", ")
}

/// Says that a pod is not stuck yet, by how long it is `overdue`.
pub(super) fn stuck_later(overdue: SignedDuration, threshold: SignedDuration) -> String {
    let stuck = human_duration(threshold);
    if overdue.is_negative() {
        let left = human_duration(-overdue);
        format!("It is within its grace period for another {left}, and stuck {stuck} after that.")
    } else {
        let overdue = human_duration(overdue);
        format!("It is overdue by {overdue}, and stuck once it is overdue by {stuck}.")
    }
}

/// Says that the node just failed, by how long it has been NotReady, if that is known.
pub(super) fn not_ready_for(time: Option<SignedDuration>, threshold: SignedDuration) -> String {
    match time {
        None => "The node is NotReady, but does not say since when.".to_owned(),
        Some(time) => format!(
            "The node has been NotReady for only {}; --reap-older-than is {}.",
            human_duration(time),
            human_duration(threshold)
        ),
    }
}

/// Says when an opt-out ends, or that its value is unusual, as a sentence to follow others.
pub(super) fn opted_out_until(Skip { value, until }: &Skip) -> String {
    match until {
        Some(until) => format!(" That ends at {until:.0}."),
        None if &**value == "true" => String::new(),
        None => {
            format!(
                " Its value {value:#} is neither true, false nor a time, and is treated as true."
            )
        }
    }
}

/// Says that the pod has no node, as a clause.
pub(super) fn without_node(node: Option<&str>) -> String {
    match node {
        Some(node) => format!("Node {node} no longer exists"),
        None => "It was never assigned to a node".to_owned(),
    }
}

/// Says what none of the PVCs does.
pub(super) fn none_of(none: NoTie, claims: &Read<Vec<ClaimFacts>>) -> String {
    match claims {
        Err(why) => format!("Its PVCs were not looked up: {why}."),
        Ok(claims) if claims.is_empty() => "It uses no PVC.".to_owned(),
        Ok(claims) => {
            let names = claims.iter().map(|claim| &claim.named.name);
            format!("{none}: {}.", names.format(", "))
        }
    }
}

/// Names the finalizers that are released when the pod is reaped.
pub(super) fn released(finalizers: &[Foreign]) -> String {
    match joined(finalizers, ", ") {
        Some(names) => format!("When the pod is reaped, its finalizers are released: {names}."),
        None => "It has no finalizer.".to_owned(),
    }
}

/// Names the kinds of owners, and of the workload above.
pub(super) fn owned_by(kinds: &[&Foreign]) -> String {
    joined(kinds.iter().map(|kind| format!("a {kind}")), " and ")
        .unwrap_or_else(|| "no owner".to_owned())
}

/// Formats the last heartbeat of a machine, its age and its source, as a sentence.
pub(super) fn last_heartbeat(last: Option<&Heartbeat>, now: Timestamp) -> String {
    let Some(last) = last else {
        return "No heartbeat of its machine is known.".to_owned();
    };
    let last = reported(&last.no_later_than(now), now);
    format!("The last heartbeat of its machine: {last}.")
}

/// Formats a heartbeat with its age: "its kubelet renewed its lease 4s ago".
pub fn reported(Heartbeat { by, at, what }: &Heartbeat, now: Timestamp) -> String {
    let age = human_duration(now.duration_since(*at));
    match (by, what) {
        (SignBy::OtherLease, Some(what)) => format!("{what}, was renewed {age} ago"),
        (SignBy::OtherLease, None) => {
            format!("another Lease that its machine holds was renewed {age} ago")
        }
        (SignBy::Program, what) => {
            let what = what.as_deref().unwrap_or("a program on it");
            format!("{what} wrote to its own pod {age} ago")
        }
        (SignBy::Lease, _) => format!("its kubelet renewed its lease {age} ago"),
        (SignBy::Kubelet, _) => "its kubelet reports that itself".to_owned(),
        (by, _) => format!("{by} reported {age} ago"),
    }
}

/// Formats the sentence about a needed fact that could not be read; `what` names the fact and the
/// cause.
pub fn unread_facts(what: &str) -> String {
    format!(
        "A fact that the decision needs could not be read: {}.",
        what.trim_end_matches('.')
    )
}
