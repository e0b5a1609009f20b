//! The conditions under which the design forbids a delete, written from its text and not from the code of the rules.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    decide::Policy,
    facts::{
        ClaimState, ClusterFacts, JOB_TRACKING, NodeFacts, NodeRead, PodFacts, Ready, Standing, Storage,
        VolumeFacts,
    },
};

/// The objections to the delete of `pod`, without the limits. A pod without an objection must be deleted.
pub fn objections(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> Vec<&'static str> {
    let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name));
    let known = match node {
        Some(NodeRead::Known(node)) => Some(node),
        _ => None,
    };
    let on = |holds: &dyn Fn(&NodeFacts) -> bool| known.is_some_and(holds);
    let manual_kinds =
        policy.manual_owner_kinds.iter().map(|kind| kind.to_ascii_lowercase()).collect::<Vec<_>>();
    let manual_kind = |kind: &str| manual_kinds.contains(&kind.to_ascii_lowercase());
    [
        ("it is a mirror pod", pod.mirror),
        ("it is opted out", pod.opted_out),
        ("its namespace is opted out", pod.namespace_opted_out == Ok(true)),
        ("its namespace is unread", pod.namespace_opted_out.is_err()),
        ("its node is opted out", on(&|node| node.opted_out)),
        ("it has no node", pod.node.is_none()),
        ("its node is gone", matches!(node, Some(NodeRead::Gone))),
        ("its node is unread", matches!(node, None | Some(NodeRead::Unread(_)))),
        ("its node is Ready", on(&|node| node.ready == Ready::True)),
        ("its node is a leaf node", on(&|node| node.leaf.is_some())),
        ("it is not stuck", !passed(facts.now, pod.deletion_deadline, policy.reap_older_than)),
        ("the lease is unread", on(&|node| node.ready == Ready::Unknown && node.lease.is_err())),
        ("the lease holds", on(&|node| node.ready == Ready::Unknown && lease_holds(node, facts.now))),
        ("the kubelet may report", policy.unreachable_only && on(&|node| node.ready != Ready::Unknown)),
        (
            "the node has just failed",
            on(&|node| {
                let condition = node.ready_since.filter(|since| *since <= facts.now);
                let known = condition.into_iter().chain(node.tainted_since).collect::<Vec<_>>();
                known.is_empty()
                    || !known.into_iter().all(|since| passed(facts.now, since, policy.node_not_ready_for))
            }),
        ),
        ("a finalizer holds it", !pod.finalizers.iter().all(|finalizer| finalizer == JOB_TRACKING)),
        ("a volume is pinned", on(&|node| volumes(pod).any(|volume| !reachable_elsewhere(volume, node)))),
        ("a volume is unverified", pod.claims.iter().any(|claim| unverified(&claim.state))),
        ("its owner's kind is manual", pod.owner.as_ref().is_some_and(|owner| manual_kind(&owner.kind))),
    ]
    .into_iter()
    .filter_map(|(objection, holds)| holds.then_some(objection))
    .collect()
}

/// Whether so many of `nodes` are NotReady that nothing may be deleted.
pub fn outage(nodes: impl IntoIterator<Item = Standing>, max_percent: u8) -> bool {
    let mut ready = Vec::new();
    let mut workers_ready = Vec::new();
    for Standing { ready: is_ready, leaf, control_plane } in nodes {
        if !leaf {
            ready.push(is_ready);
        }
        if !leaf && !control_plane {
            workers_ready.push(is_ready);
        }
    }
    let too_many = |ready: &[bool]| {
        let dead = ready.iter().filter(|ready| !**ready).count();
        // dead / all >= percent / 100, in whole numbers.
        dead >= 3 && 100 * dead >= ready.len() * usize::from(max_percent)
    };
    max_percent < 100 && (!ready.contains(&true) || too_many(&ready) || too_many(&workers_ready))
}

/// Whether at `now` at least `span` has passed since `start`.
fn passed(now: Timestamp, start: Timestamp, span: SignedDuration) -> bool {
    start.as_nanosecond() + span.as_nanos() <= now.as_nanosecond()
}

fn lease_holds(node: &NodeFacts, now: Timestamp) -> bool {
    let Ok(Some(lease)) = &node.lease else { return false };
    let Some(renewed) = lease.renewed else { return false };
    now.as_nanosecond() <= renewed.as_nanosecond() + lease.duration.as_nanos()
}

fn volumes(pod: &PodFacts) -> impl Iterator<Item = &VolumeFacts> {
    pod.claims.iter().filter_map(|claim| match &claim.state {
        ClaimState::Bound { volume, .. } => Some(volume),
        _ => None,
    })
}

/// Only a bound claim names its volume, and only an absent one needs none.
fn unverified(state: &ClaimState) -> bool {
    !matches!(state, ClaimState::Bound { .. } | ClaimState::Absent)
}

/// Whether a node with other names than `node`'s could reach `volume`: it is not on the disk of `node`, and some term
/// of its affinity names no node, or another one too. A term without requirements matches no node at all.
fn reachable_elsewhere(volume: &VolumeFacts, node: &NodeFacts) -> bool {
    if matches!(volume.storage, Storage::Local(_) | Storage::HostPath(_)) {
        return false;
    }
    let mut own = BTreeSet::from([&node.name]);
    own.extend(&node.hostname);
    volume.affinity.is_empty()
        || volume.affinity.iter().filter(|term| !term.is_empty()).any(|term| {
            term.iter().all(|requirement| {
                let named = requirement.values.iter().collect::<BTreeSet<_>>();
                requirement.operator != "In" || named.is_empty() || named.difference(&own).next().is_some()
            })
        })
}
