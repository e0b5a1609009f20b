//! The sixteen rules: what should be done with one Terminating pod.
//!
//! Pure. Time is an argument, the facts are plain values, and nothing in reach could ask a server. The first rule
//! that holds decides; the order is part of the contract, because it keeps commands that destroy a volume from
//! being printed for a node that may come back.

mod explained;
mod reason;
mod volume;

use jiff::{SignedDuration, Timestamp};

pub use self::{
    explained::{Explained, REASONS, explained},
    reason::{Optout, PinnedClaim, Reason, UnverifiedClaim, Verdict, spoken},
};
use crate::facts::{NodeFacts, NodeRead, PodFacts, Ready};

/// What the operator chose, as far as it bears on a single pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How long past its deletion deadline a pod counts as stuck. Not negative.
    pub reap_older_than: SignedDuration,
    /// How long its node must have been NotReady. Not negative.
    pub node_not_ready_for: SignedDuration,
    /// Reap only where `Ready` is `Unknown`.
    pub unreachable_only: bool,
    /// Owner kinds that are left to a person. Case does not count: a slip of the shift key must not delete.
    pub manual_owner_kinds: Vec<String>,
}

/// Judges `pod` at `now`. `node` is the look that was taken at the pod's node, `None` where nobody looked.
pub fn decide(now: Timestamp, policy: &Policy, node: Option<&NodeRead>, pod: &PodFacts) -> Reason {
    match before_volumes(now, policy, node, pod) {
        Err(reason) => reason,
        Ok(node) => volumes_and_owner(policy, node, pod),
    }
}

/// Whether the rules before the volume rules let the pod through, so that its claims have to be looked up.
pub fn needs_claims(now: Timestamp, policy: &Policy, node: Option<&NodeRead>, pod: &PodFacts) -> bool {
    !pod.claims.is_empty() && before_volumes(now, policy, node, pod).is_ok()
}

/// Rules 1 to 12. `Ok` is the pod's node: NotReady, real, and long enough so.
fn before_volumes<'a>(
    now: Timestamp,
    policy: &Policy,
    node: Option<&'a NodeRead>,
    pod: &PodFacts,
) -> Result<&'a NodeFacts, Reason> {
    if pod.mirror {
        return Err(Reason::MirrorPod);
    }
    let known = node.and_then(NodeRead::known);
    if pod.opted_out {
        return Err(Reason::OptedOut(Optout::Pod));
    }
    if pod.namespace_opted_out == Ok(true) {
        return Err(Reason::OptedOut(Optout::Namespace));
    }
    if known.is_some_and(|node| node.opted_out) {
        return Err(Reason::OptedOut(Optout::Node));
    }
    let Some(node_name) = &pod.node else {
        return Err(Reason::NodeGone { node: None });
    };
    if matches!(node, Some(NodeRead::Gone)) {
        return Err(Reason::NodeGone { node: Some(node_name.clone()) });
    }
    if known.is_some_and(|node| node.ready == Ready::True) {
        return Err(Reason::NodeReady);
    }
    let overdue = pod.overdue(now);
    if overdue < policy.reap_older_than {
        return Err(Reason::NotOverdue { overdue, threshold: policy.reap_older_than });
    }
    if let Some(leaf) = known.and_then(|node| node.leaf.as_ref()) {
        return Err(Reason::LeafNode(leaf.clone()));
    }
    let node = match node {
        Some(NodeRead::Known(node)) => node,
        Some(NodeRead::Unread(unread)) => return Err(Reason::FactsUnread(format!("the node: {}", unread.0))),
        Some(NodeRead::Gone) | None => return Err(Reason::FactsUnread("the node: nobody looked".to_owned())),
    };
    if let Err(unread) = &pod.namespace_opted_out {
        return Err(Reason::FactsUnread(format!("the namespace: {}", unread.0)));
    }
    if node.ready == Ready::Unknown {
        // Only here does a rule need the lease: while Ready is False, the kubelet itself says so.
        match &node.lease {
            Err(unread) => return Err(Reason::FactsUnread(format!("the node's lease: {}", unread.0))),
            Ok(Some(lease)) if lease.holds_at(now) => {
                let age = lease.renewed.map(|renewed| now.duration_since(renewed));
                return Err(Reason::NodeRecovering { lease_age: age.unwrap_or_default() });
            }
            Ok(_) => {}
        }
    } else if policy.unreachable_only {
        return Err(Reason::KubeletAlive { ready: node.ready });
    }
    let not_ready_for = node.ready_since.map(|since| now.duration_since(since));
    if not_ready_for.is_none_or(|not_ready_for| not_ready_for < policy.node_not_ready_for) {
        return Err(Reason::NodeJustFailed { not_ready_for, threshold: policy.node_not_ready_for });
    }
    let finalizers = pod.foreign_finalizers();
    if !finalizers.is_empty() {
        return Err(match pod.grace_seconds {
            Some(0) => Reason::AlreadyForced { finalizers },
            _ => Reason::Finalizers { finalizers },
        });
    }
    Ok(node)
}

/// Rules 13 to 16.
fn volumes_and_owner(policy: &Policy, node: &NodeFacts, pod: &PodFacts) -> Reason {
    let claims = volume::check(&pod.claims, node);
    if !claims.pinned.is_empty() {
        return Reason::LocalVolume { claims: claims.pinned };
    }
    if !claims.unverified.is_empty() {
        return Reason::VolumeUnverified { claims: claims.unverified };
    }
    if let Some(owner) = &pod.owner
        && policy.manual_owner_kinds.iter().any(|kind| kind.eq_ignore_ascii_case(&owner.kind))
    {
        return Reason::OwnerKind { owner: owner.clone() };
    }
    Reason::Stuck { confined: claims.confined }
}

#[cfg(test)]
mod tests;
