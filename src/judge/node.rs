//! The rules that need the nodes, the pods and the namespaces.

use jiff::SignedDuration;

use super::{
    context::PodContext,
    life::held_by,
    reason::{Cause, Finding, Missing, Seen, does_not_apply},
};
use crate::facts::{OptOut, Ready};

pub(super) fn mirror_pod(case: &PodContext<'_>) -> Finding {
    if case.pod.mirror {
        Ok(Cause::Mirror)
    } else {
        does_not_apply(Seen::NoMirror)
    }
}

pub(super) fn opted_out(case: &PodContext<'_>) -> Finding {
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

pub(super) fn node_gone(case: &PodContext<'_>) -> Finding {
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

pub(super) fn node_ready(case: &PodContext<'_>) -> Finding {
    if case.known().is_none_or(|node| node.ready != Ready::True) {
        return does_not_apply(case.ready());
    }
    Ok(Cause::NodeReady)
}

/// The deletion of a pod is overdue at the earliest from the moment at which it was requested.
pub(super) fn requested_lately(case: &PodContext<'_>) -> Finding {
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

pub(super) fn leaf_node(case: &PodContext<'_>) -> Finding {
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

pub(super) fn facts_unread(case: &PodContext<'_>) -> Finding {
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

pub(super) fn node_just_failed(case: &PodContext<'_>) -> Finding {
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
