//! The conditions under which the design forbids a delete, written from its text and not from the code of the rules.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    decide::{Policy, ReasonCode},
    facts::{
        AffinityTerm, ClaimFacts, ClaimState, ClusterFacts, JOB_TRACKING, KubeletAlive, LeafKind, NodeFacts,
        NodeRead, PodFacts, Ready, Requirement, SignBy, Standing, Storage, VolumeFacts,
    },
};

/// The objections to the delete of `pod`, without the limits. A pod without an objection must be deleted.
pub fn objections(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> Vec<&'static str> {
    held(facts, policy, pod).map(|(_, objection)| objection).collect()
}

/// The reason by which `pod` is judged, without the limits: that of the first rule that holds.
pub fn first_reason(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> ReasonCode {
    let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name)).and_then(NodeRead::known);
    let pinned =
        node.is_some_and(|node| pod.claims.iter().any(|claim| place_of(claim, node) == Place::Pinned));
    let free = if pinned { ReasonCode::Scratch } else { ReasonCode::Stuck };
    held(facts, policy, pod).next().map_or(free, |(code, _)| code)
}

/// What holds `pod`, in the order of the rules.
fn held(
    facts: &ClusterFacts,
    policy: &Policy,
    pod: &PodFacts,
) -> impl Iterator<Item = (ReasonCode, &'static str)> {
    let now = facts.now;
    let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name));
    let known = match node {
        Some(NodeRead::Known(node)) => Some(node),
        _ => None,
    };
    let on = |holds: &dyn Fn(&NodeFacts) -> bool| known.is_some_and(holds);
    let unread = pod.node.is_some() && matches!(node, None | Some(NodeRead::Unread(_)));
    let gone = matches!(node, Some(NodeRead::Gone));
    let finalizers = pod.finalizers.iter().any(|finalizer| finalizer != JOB_TRACKING);
    let leaf = match known.and_then(|node| node.leaf.as_ref()).map(|leaf| leaf.kind) {
        Some(LeafKind::Kosmos) => ReasonCode::KosmosLeaf,
        Some(LeafKind::Virtual) => ReasonCode::VirtualNode,
        Some(LeafKind::Edge) => ReasonCode::EdgeNode,
        Some(LeafKind::Selected) | None => ReasonCode::LeafNode,
    };
    let volumes = |place: Place| on(&|node| pod.claims.iter().any(|claim| place_of(claim, node) == place));
    let manual = |kind: &str| policy.manual_owner_kinds.iter().any(|listed| names_kind(listed, kind));
    let by_kind = pod.owner.iter().chain(&pod.workload).any(|owner| manual(&owner.kind));
    let by_disk = shares_a_disk(pod) && on(&|node| !certainly_off(node, now));
    // Scratch goes only with a pod that no later rule keeps.
    let kept_anyway = volumes(Place::Confined) || volumes(Place::Unverified) || by_disk || by_kind;
    [
        (ReasonCode::MirrorPod, "it is a mirror pod", pod.mirror),
        (ReasonCode::OptedOut, "it is opted out", pod.opted_out.is_some()),
        (ReasonCode::OptedOut, "its namespace is opted out", matches!(pod.namespace_opted_out, Ok(Some(_)))),
        (ReasonCode::OptedOut, "its node is opted out", on(&|node| node.opted_out.is_some())),
        // Finalizers keep the pod garbage collector from its work: then they are the objection.
        (ReasonCode::NodeGone, "it has no node", pod.node.is_none() && !finalizers),
        (ReasonCode::NodeGone, "its node is gone", gone && !finalizers),
        (ReasonCode::NodeReady, "its node is Ready", on(&|node| node.ready == Ready::True)),
        (
            ReasonCode::NotOverdue,
            "it is not stuck",
            !passed(now, pod.deletion_deadline, policy.reap_older_than),
        ),
        (leaf, "its node is a leaf node", on(&|node| node.leaf.is_some())),
        (ReasonCode::FactsUnread, "its node is unread", unread),
        (
            ReasonCode::FactsUnread,
            "its namespace is unread",
            known.is_some() && pod.namespace_opted_out.is_err(),
        ),
        (
            ReasonCode::FactsUnread,
            "the lease is unread",
            on(&|node| node.lease.is_err() && (node.ready == Ready::Unknown || protected(pod, policy))),
        ),
        (
            ReasonCode::NodeRecovering,
            "the lease holds",
            on(&|node| node.ready == Ready::Unknown && lease_held(node, now).is_some()),
        ),
        (
            ReasonCode::NodeJustFailed,
            "the node has just failed",
            on(&|node| {
                not_ready_since(node, now).is_none_or(|since| !passed(now, since, policy.node_not_ready_for))
            }),
        ),
        (
            ReasonCode::KubeletAlive,
            "the node shows a sign of life",
            protected(pod, policy) && on(&|node| alive(node, now)),
        ),
        (
            ReasonCode::KubeletAlive,
            "the kubelet may report",
            policy.unreachable_only && on(&|node| node.ready != Ready::Unknown),
        ),
        (
            ReasonCode::AlreadyForced,
            "it was forced, and a finalizer holds it",
            finalizers && pod.grace_seconds == Some(0) && !pod.finished,
        ),
        (ReasonCode::Finalizers, "a finalizer holds it", finalizers),
        (
            ReasonCode::LocalVolume,
            "a volume is pinned",
            volumes(Place::Pinned)
                && (!policy.reap_scratch || kept_anyway || !on(&|node| all_is_scratch(pod, node))),
        ),
        (ReasonCode::VolumeConfined, "a volume is confined", volumes(Place::Confined)),
        (ReasonCode::VolumeUnverified, "a volume is unverified", volumes(Place::Unverified)),
        (ReasonCode::SharedDisk, "two machines could write its disk", by_disk),
        (ReasonCode::OwnerKind, "its owner's kind is manual", by_kind),
    ]
    .into_iter()
    .filter_map(|(code, objection, holds)| holds.then_some((code, objection)))
}

/// Whether each claim of `pod` on `node` is declared scratch, and recreated for it alone.
pub fn all_is_scratch(pod: &PodFacts, node: &NodeFacts) -> bool {
    let goes = |claim: &ClaimFacts| {
        let declared = matches!(&claim.state, ClaimState::Bound { scratch: Some(_), .. });
        declared && claim.renewed.is_ok()
    };
    pod.claims.iter().filter(|claim| place_of(claim, node) == Place::Pinned).all(goes)
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

/// When the lease was renewed, where that renewal still holds. However far in the future it may be.
fn lease_held(node: &NodeFacts, now: Timestamp) -> Option<Timestamp> {
    let lease = node.lease.as_ref().ok()?.as_ref()?;
    let renewed = lease.renewed?;
    (now.as_nanosecond() <= renewed.as_nanosecond() + lease.duration.as_nanos()).then_some(renewed)
}

/// The condition's time is the kubelet's own, so one in the future is none; the taint's is the control plane's.
fn not_ready_since(node: &NodeFacts, now: Timestamp) -> Option<Timestamp> {
    let condition = node.ready_since.filter(|since| *since <= now);
    condition.into_iter().chain(node.tainted_since).max()
}

/// Whether something that only the machine of `node`, which is not Ready, can have written shows at `now` that it lives.
pub fn alive(node: &NodeFacts, now: Timestamp) -> bool {
    let heartbeats = node.heartbeats.iter().filter(|heartbeat| {
        let most = match heartbeat.by {
            SignBy::ProblemDetector => SignedDuration::from_mins(11),
            SignBy::VirtHandler => SignedDuration::from_mins(5),
            SignBy::Lease => return false,
        };
        let skew = SignedDuration::from_secs(30);
        heartbeat.at.as_nanosecond() + most.as_nanos() >= now.as_nanosecond()
            && heartbeat.at.as_nanosecond() <= now.as_nanosecond() + skew.as_nanos()
    });
    let mut reports = heartbeats.map(|heartbeat| heartbeat.at).chain(lease_held(node, now));
    let since = not_ready_since(node, now);
    node.ready != Ready::True && reports.any(|at| since.is_none_or(|since| since < at))
}

/// Whether `node` is fenced: marked so, and nothing speaks against it, or could if it were read.
pub fn certainly_off(node: &NodeFacts, now: Timestamp) -> bool {
    node.fenced.is_some() && node.lease.is_ok() && !alive(node, now)
}

/// Whether a sign of life on its node would protect `pod`.
fn protected(pod: &PodFacts, policy: &Policy) -> bool {
    match policy.kubelet_alive {
        _ if policy.unreachable_only => true,
        KubeletAlive::Hold => true,
        KubeletAlive::HoldUnique => two_must_not_run(pod),
        KubeletAlive::Reap => false,
    }
}

/// Whether `pod` is unique.
pub fn two_must_not_run(pod: &PodFacts) -> bool {
    let by_owner = pod.owner.as_ref().is_some_and(|owner| {
        let versioned = match owner.kind.as_str() {
            "ReplicaSet" | "DaemonSet" => "apps/",
            "Job" => "batch/",
            // The core group has no name, and no slash after it.
            "ReplicationController" => "",
            _ => return true,
        };
        let Some(controller) = &pod.controller else { return false };
        match controller.api_version.rfind('/') {
            Some(slash) => controller.api_version[..=slash] != *versioned,
            None => !versioned.is_empty(),
        }
    });
    by_owner || !pod.claims.iter().all(|claim| claim.ephemeral)
}

/// Whether two machines could write one disk of `pod`.
pub fn shares_a_disk(pod: &PodFacts) -> bool {
    let machine = pod.owner.as_ref().is_some_and(|owner| owner.kind == "VirtualMachineInstance");
    machine
        || pod.claims.iter().any(|claim| matches!(claim.state, ClaimState::Bound { shared_disk: true, .. }))
}

/// Whether `listed` is the kind, or its plural, in any case.
fn names_kind(listed: &str, kind: &str) -> bool {
    let (listed, kind) = (listed.to_lowercase(), kind.to_lowercase());
    listed == kind || listed == format!("{kind}s") || format!("{listed}s") == kind
}

/// From where a claim's data can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// From another node, or there is none.
    Free,
    /// It is on this node.
    Pinned,
    /// From no other node that there is.
    Confined,
    /// Unknown.
    Unverified,
}

/// From where the data of `claim`, used on `node`, can be reached.
pub fn place_of(claim: &ClaimFacts, node: &NodeFacts) -> Place {
    match &claim.state {
        ClaimState::Bound { volume, .. } => place_of_volume(volume, node),
        ClaimState::Absent | ClaimState::Own => Place::Free,
        ClaimState::NotLookedUp | ClaimState::Unread(_) | ClaimState::WithoutVolume { .. } => {
            Place::Unverified
        }
    }
}

fn place_of_volume(volume: &VolumeFacts, node: &NodeFacts) -> Place {
    match volume.storage {
        Storage::Local(_) | Storage::HostPath(_) | Storage::StrictLocal => return Place::Pinned,
        Storage::Driver if volume.affinity.is_empty() => return Place::Free,
        Storage::Driver => {}
    }
    // A term that asks for nothing matches no node.
    let asks = |term: &&AffinityTerm| term.fields || !term.requirements.is_empty();
    let terms = volume.affinity.iter().filter(asks).collect::<Vec<_>>();
    if !terms.is_empty() && terms.iter().all(|term| names_only(term, node)) {
        return Place::Pinned;
    }
    let places = terms.iter().map(|term| place_of_term(term, node)).collect::<Vec<_>>();
    // One term is enough to reach it, and one that is not known may be that one.
    [Place::Free, Place::Unverified]
        .into_iter()
        .find(|place| places.contains(place))
        .unwrap_or(Place::Confined)
}

fn place_of_term(term: &AffinityTerm, node: &NodeFacts) -> Place {
    let mut left = term.requirements.iter().filter(|requirement| !speaks_of_zones(requirement)).peekable();
    if term.fields {
        return Place::Unverified;
    }
    if left.peek().is_none() {
        return Place::Free;
    }
    match &term.satisfied_by {
        Some(Ok(names)) if left.all(expressible) => {
            if names.iter().any(|name| *name != node.name) {
                Place::Free
            } else {
                Place::Confined
            }
        }
        _ => Place::Unverified,
    }
}

/// Whether `term` asks for `node` by its name or hostname, and for no other.
fn names_only(term: &AffinityTerm, node: &NodeFacts) -> bool {
    let mut own = BTreeSet::from([&node.name]);
    own.extend(&node.hostname);
    term.requirements.iter().any(|requirement| {
        let named = requirement.values.iter().collect::<BTreeSet<_>>();
        requirement.operator == "In"
            && !speaks_of_zones(requirement)
            && !named.is_empty()
            && named.is_subset(&own)
    })
}

fn speaks_of_zones(requirement: &Requirement) -> bool {
    ["zone", "region"].iter().any(|end| requirement.key.ends_with(end))
}

/// Whether a label selector can ask for it.
fn expressible(requirement: &Requirement) -> bool {
    let Requirement { key: _, operator, values } = requirement;
    let label =
        |value: &String| value.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    let number = |value: &String| value.parse::<i64>().is_ok();
    match operator.as_str() {
        "In" | "NotIn" => !values.is_empty() && values.iter().all(label),
        "Exists" | "DoesNotExist" => values.is_empty(),
        "Gt" | "Lt" => values.len() == 1 && values.iter().all(number),
        _ => false,
    }
}
