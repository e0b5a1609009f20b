//! The conditions under which the design forbids a delete, written from the text of the design and not from the code of the
//! rules. The oracle uses only the plain fields of the facts, none of their functions.

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    decide::{Policy, ReasonCode},
    facts::{
        AffinityTerm, ClaimFacts, ClaimState, ClusterFacts, CountedNode, JOB_TRACKING, LeafKind,
        NodeCounts, NodeFacts, NodeRead, PodFacts, Ready, Requirement, SignBy, Storage, Tally,
        VolumeFacts, Zone,
    },
};
use std::collections::BTreeSet;

/// How long a heartbeat is a sign of life: twice the longest interval between heartbeats, and a minute.
const BEATS: SignedDuration = SignedDuration::from_mins(11);

/// The objections to deleting `pod`, without the limits. A pod without an objection must be deleted.
pub fn objections(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> Vec<&'static str> {
    rules(facts, policy, pod)
        .into_iter()
        .map(|(objection, _)| objection)
        .collect()
}

/// The reason of the first rule that applies, without the limits.
pub fn first_reason(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> ReasonCode {
    let rules = rules(facts, policy, pod);
    rules
        .first()
        .map_or(ReasonCode::Stuck, |(_, reason)| *reason)
}

/// The rules that apply, in the order of the design's table.
fn rules(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> Vec<(&'static str, ReasonCode)> {
    let now = facts.now;
    let looked_at = pod.node.as_ref().map(|name| facts.nodes.get(name));
    let node = match looked_at {
        Some(Some(NodeRead::Known(node))) => Some(node),
        _ => None,
    };
    let gone = matches!(looked_at, None | Some(Some(NodeRead::Gone)));
    let foreign = pod
        .finalizers
        .iter()
        .any(|finalizer| finalizer != JOB_TRACKING);
    let out = |opted: &Option<String>| opted.is_some();
    let namespace = pod.in_namespace.as_ref().and_then(|it| it.as_ref().ok());
    let opted_out = out(&pod.opted_out)
        || namespace.is_some_and(|it| out(&it.opted_out))
        || node.is_some_and(|node| out(&node.opted_out));
    let is = |test: &dyn Fn(&NodeFacts) -> bool| node.is_some_and(test);
    let unread = !gone
        && (node.is_none()
            || namespace.is_none()
            || is(&|node| node.unread_lease.is_some() && node.ready != Ready::False));
    let leaf = match node
        .and_then(|node| node.leaf.as_ref())
        .map(|leaf| leaf.kind)
    {
        Some(LeafKind::Virtual) => ReasonCode::VirtualNode,
        Some(LeafKind::Edge) => ReasonCode::EdgeNode,
        Some(LeafKind::Selected) => ReasonCode::LeafNode,
        Some(LeafKind::Kosmos) | None => ReasonCode::KosmosLeaf,
    };
    let just_failed = |node: &NodeFacts| {
        not_ready_since(node, now)
            .is_none_or(|since| now.duration_since(since) < policy.reap_older_than)
    };
    let alive = |node: &NodeFacts| alive(node, now);
    let may_live = |node: &NodeFacts| !alive(node) && !matches!(node.named_by, Some(Ok(_)));
    let any = |test: &dyn Fn(&ClaimFacts) -> bool| pod.claims.iter().any(test);
    let of_namespace = unwanted(pod) == Some(Unwanted::Namespace);
    let given_up = |claim: &ClaimFacts| {
        let from = node.and_then(|node| given_up_from(claim, node, now, policy));
        from.filter(|_| !of_namespace)
    };
    let going = node.is_some() && any(&|claim| is_going(pod, claim, given_up(claim).is_some()));
    let lately = any(&|claim| given_up(claim).is_some_and(|from| from > now));
    // A PVC that was given up is asked about only if it could not be read.
    let at = |place: Place| {
        is(&|node| {
            any(&|claim| {
                let is_read = !matches!(claim.state, Some(ClaimState::Unread(_)));
                place_of(claim, node) == place && !(is_read && given_up(claim).is_some())
            })
        })
    };
    let pinned = unwanted(pod).is_none() && at(Place::Pinned);
    let confined = unwanted(pod).is_none() && at(Place::Confined);
    let unverified = at(Place::Unverified);
    let kinds = [&pod.owner, &pod.workload]
        .into_iter()
        .flatten()
        .map(|owner| owner.kind.as_str());
    let flagged = kinds.flat_map(|kind| {
        policy
            .manual_owner_kinds
            .iter()
            .map(move |listed| (listed, kind))
    });
    let flagged = flagged
        .into_iter()
        .any(|(listed, kind)| singular(listed) == singular(kind));
    let off = is(&|node| is_off(node, now));
    let shared = shares_a_disk(pod) && !off;
    let attaches = |claim: &ClaimFacts| match &claim.state {
        Some(ClaimState::Bound(bound)) => bound
            .volume
            .driver
            .as_ref()
            .is_none_or(|driver| matches!(driver.attaches, Some(Ok(_)))),
        _ => true,
    };
    let maybe_shared = !off && !shared && any(&|claim| !attaches(claim));
    let writes_to_host = writes_to_host(pod) && node.is_some() && !of_namespace;
    let ready = |node: &NodeFacts| node.ready == Ready::True;
    [
        (pod.mirror, "it is a mirror pod", ReasonCode::MirrorPod),
        (opted_out, "it is opted out", ReasonCode::OptedOut),
        (gone && !foreign, "its node is gone", ReasonCode::NodeGone),
        (is(&ready), "its node is ready", ReasonCode::NodeReady),
        (
            now.duration_since(due(pod, node, now)) < policy.reap_older_than,
            "it is not overdue",
            ReasonCode::NotOverdue,
        ),
        (
            is(&|node| node.leaf.is_some()),
            "its node is a leaf node",
            leaf,
        ),
        (unread, "a fact was not read", ReasonCode::FactsUnread),
        (
            is(&|node| !ready(node) && just_failed(node)),
            "its node just failed",
            ReasonCode::NodeJustFailed,
        ),
        (
            is(&alive),
            "its node shows a sign of life",
            ReasonCode::KubeletAlive,
        ),
        (is(&may_live), "its node may live", ReasonCode::FactsUnread),
        (foreign, "a finalizer holds it", ReasonCode::Finalizers),
        (
            node.is_some() && any(&|claim| claim.state.is_none()),
            "nothing was asked about its claims",
            ReasonCode::FactsUnread,
        ),
        (
            going,
            "a wanted PVC would go with it",
            ReasonCode::VolumeUnverified,
        ),
        (pinned, "a volume is pinned", ReasonCode::LocalVolume),
        (
            writes_to_host,
            "it writes to its node",
            ReasonCode::HostPath,
        ),
        (confined, "a volume is confined", ReasonCode::LocalVolume),
        (
            lately,
            "a PVC was deleted a moment ago",
            ReasonCode::NotOverdue,
        ),
        (
            unverified,
            "a volume is unverified",
            ReasonCode::VolumeUnverified,
        ),
        (
            shared,
            "two machines could write its disk",
            ReasonCode::SharedDisk,
        ),
        (
            maybe_shared,
            "two machines might write its disk",
            ReasonCode::FactsUnread,
        ),
        (flagged, "its owner's kind is manual", ReasonCode::OwnerKind),
        (
            node.is_none(),
            "its node was not read",
            ReasonCode::FactsUnread,
        ),
    ]
    .into_iter()
    .filter(|(holds, ..)| *holds)
    .map(|(_, objection, reason)| (objection, reason))
    .collect()
}

/// Kinds are compared without case, and without the plural `s`.
fn singular(kind: &str) -> String {
    kind.to_ascii_lowercase().trim_end_matches('s').to_owned()
}

/// The later of two times: that of the condition, unless it lies in the future, and that of the taint.
pub fn not_ready_since(node: &NodeFacts, now: Timestamp) -> Option<Timestamp> {
    match (
        node.ready_since.filter(|since| *since <= now),
        node.tainted_since,
    ) {
        (Some(said), Some(tainted)) => Some(if said > tainted { said } else { tainted }),
        (said, tainted) => said.or(tainted),
    }
}

/// The time of the deletion request.
pub fn asked(pod: &PodFacts) -> Option<Timestamp> {
    let deletion = pod.deletion?;
    let grace = deletion.grace_seconds.filter(|grace| *grace >= 0)?;
    deletion
        .deadline
        .checked_sub(SignedDuration::from_secs(grace))
        .ok()
}

/// The moment from which the pod is overdue. The grace period is a timer of the kubelet, and is skipped if the machine is known
/// to be silent. The pod should then have been gone at the last heartbeat or at the deletion request, whichever is later.
pub fn due(pod: &PodFacts, node: Option<&NodeFacts>, now: Timestamp) -> Timestamp {
    let deadline = pod.deletion_deadline();
    let (Some(node), Some(asked)) = (node, asked(pod)) else {
        return deadline;
    };
    let has_lease = node.heard.iter().any(|heard| heard.by == SignBy::Lease);
    let all_is_read = is_silent(node, now) && !node.others_forbidden;
    if node.ready == Ready::True || !has_lease || !all_is_read {
        return deadline;
    }
    let last = node.heard.iter().map(|heard| heard.at).max();
    last.map_or(asked, |last| last.max(asked)).min(deadline)
}

/// Whether a node that is not Ready shows a sign of life.
pub fn alive(node: &NodeFacts, now: Timestamp) -> bool {
    let since = not_ready_since(node, now);
    // A heartbeat in the future is later than any time that this clock has shown.
    let mut later = node
        .heard
        .iter()
        .map(|heard| heard.at)
        .filter(|at| since.is_none_or(|since| *at > since));
    match node.ready {
        Ready::True => false,
        Ready::False => true,
        Ready::Unknown | Ready::Absent => later.any(|at| now.duration_since(at) < BEATS),
    }
}

/// Whether the node is known to show no sign of life.
pub fn is_silent(node: &NodeFacts, now: Timestamp) -> bool {
    !alive(node, now) && node.unread_lease.is_none() && matches!(node.named_by, Some(Ok(_)))
}

/// Whether a node is fenced, by a mark that no later heartbeat refutes.
pub fn is_off(node: &NodeFacts, now: Timestamp) -> bool {
    let later = |set: Timestamp| node.heard.iter().any(|heard| heard.at > set);
    let marked = node
        .fenced
        .iter()
        .any(|mark| !mark.set_by.is_some_and(later));
    marked && is_silent(node, now)
}

/// Whether two machines could write to a disk of the pod.
pub fn shares_a_disk(pod: &PodFacts) -> bool {
    let of_claim = |claim: &ClaimFacts| match &claim.state {
        Some(ClaimState::Bound(bound)) => {
            let driver = bound.volume.driver.as_ref();
            bound.shared_disk
                || bound.volume.disk.is_some()
                || driver.is_some_and(|driver| driver.attaches == Some(Ok(false)))
        }
        _ => false,
    };
    let machine = pod.owner.as_ref().is_some_and(|owner| {
        owner.kind == "VirtualMachineInstance"
            || owner.kind == "Pod" && owner.name.starts_with("virt-launcher-")
    });
    machine || pod.own_disk.is_some() || pod.claims.iter().any(of_claim)
}

/// The pods that the breaker keeps.
pub struct Outage {
    /// Nothing could start elsewhere.
    full: bool,
    /// Too many of all nodes, or of the nodes without the control-plane role, are NotReady.
    share: bool,
    zones: BTreeSet<Zone>,
}

/// The nodes that the breaker counts.
fn counted(nodes: impl IntoIterator<Item = CountedNode>) -> Vec<CountedNode> {
    nodes.into_iter().filter(|node| !node.leaf).collect()
}

/// The census of the nodes, as a complete read finds it.
pub fn node_counts(nodes: impl IntoIterator<Item = CountedNode>) -> NodeCounts {
    let real = counted(nodes);
    let tally = |is: &dyn Fn(&CountedNode) -> bool| {
        let of = || real.iter().filter(|node| is(node));
        Tally {
            not_ready: of().filter(|node| !node.ready).count(),
            total: of().count(),
        }
    };
    let zones = real.iter().filter_map(|node| node.zone.clone());
    let zones = zones.map(|zone| {
        let is_there = |node: &CountedNode| node.zone.as_ref() == Some(&zone);
        (zone.clone(), tally(&is_there))
    });
    NodeCounts::Counted {
        all: tally(&|_| true),
        workers: tally(&|node| !node.control_plane),
        zones: zones.collect(),
        room: real.iter().any(|node| node.ready && node.open),
    }
}

impl Outage {
    pub fn of(nodes: impl IntoIterator<Item = CountedNode>, max_percent: u8) -> Self {
        let real = counted(nodes);
        let too_many = |is: &dyn Fn(&CountedNode) -> bool| {
            let of = real.iter().filter(|node| is(node));
            let failed = of.clone().filter(|node| !node.ready).count();
            failed > 2 && failed * 100 >= of.count() * usize::from(max_percent)
        };
        let on = max_percent < 100;
        let mut zones = real
            .iter()
            .filter_map(|node| node.zone.clone())
            .collect::<BTreeSet<_>>();
        let several = zones.len() > 1;
        zones.retain(|zone| on && several && too_many(&|node| node.zone.as_ref() == Some(zone)));
        let mut open = real.iter().filter(|node| node.ready && node.open);
        Self {
            full: on && open.next().is_none(),
            share: on && (too_many(&|_| true) || too_many(&|node| !node.control_plane)),
            zones,
        }
    }

    /// Whether the breaker keeps the pods of `node`.
    pub fn holds(&self, node: &NodeFacts) -> bool {
        let in_zone = node
            .zone
            .as_ref()
            .is_some_and(|zone| self.zones.contains(zone));
        self.full || self.share || in_zone
    }
}

/// How the breaker counts a node.
pub fn counted_node(node: &NodeFacts) -> CountedNode {
    CountedNode {
        ready: node.ready == Ready::True,
        leaf: node.leaf.is_some(),
        control_plane: node.control_plane,
        open: node.open,
        zone: node.zone.clone(),
    }
}

/// The reason why nothing wants a pod again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwanted {
    /// Its namespace is being deleted.
    Namespace,
    /// No `StatefulSet` with its controller's name wants its ordinal.
    Set,
}

/// The reason why nothing wants the pod again, as far as the readings show it.
pub fn unwanted(pod: &PodFacts) -> Option<Unwanted> {
    if matches!(&pod.in_namespace, Some(Ok(namespace)) if namespace.deleted) {
        return Some(Unwanted::Namespace);
    }
    (is_of_set(pod) && pod.set_wants == Some(Ok(false))).then_some(Unwanted::Set)
}

/// Whether a `StatefulSet` of Kubernetes' own group controls the pod.
fn is_of_set(pod: &PodFacts) -> bool {
    let is_set = pod
        .owner
        .as_ref()
        .is_some_and(|owner| owner.kind == "StatefulSet");
    let controller = pod.controller.as_ref();
    is_set && controller.is_some_and(|it| it.api_version == "apps/v1")
}

/// Whether the pod writes to a directory or a disk of its node. Its replacement would start elsewhere, without that data.
pub fn writes_to_host(pod: &PodFacts) -> bool {
    is_of_set(pod) && !pod.host_paths.is_empty()
}

/// The moment from which a pod may go with a PVC that somebody deleted after `node` failed.
pub fn given_up_from(
    claim: &ClaimFacts,
    node: &NodeFacts,
    now: Timestamp,
    policy: &Policy,
) -> Option<Timestamp> {
    let deletion = claim.deletion.as_ref()?;
    let is_later = not_ready_since(node, now).is_some_and(|since| deletion.at > since);
    let is_free = deletion.finalizers.is_empty() && !(claim.owned && claim.ephemeral);
    let wait = policy.reap_older_than.max(SignedDuration::from_mins(10));
    (is_later && is_free).then(|| deletion.at + wait)
}

/// Whether the PVC would go with its pod although somebody may want it. `is_given_up` says whether somebody deleted it after the
/// node failed.
pub fn is_going(pod: &PodFacts, claim: &ClaimFacts, is_given_up: bool) -> bool {
    let goes = claim.deletion.is_some() || claim.owned && !claim.ephemeral;
    let retained = matches!(&claim.state, Some(ClaimState::Bound(bound))
        if bound.volume.reclaim_policy.as_deref() == Some("Retain"));
    let wanted = match unwanted(pod) {
        None => true,
        Some(Unwanted::Set) => claim.deletion.is_some(),
        Some(Unwanted::Namespace) => false,
    };
    goes && !(claim.owned && claim.ephemeral) && wanted && !is_given_up && !retained
}

/// From where the data of a PVC can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It can be reached from elsewhere, or there is no data that anybody could miss.
    Free,
    /// It is on this node.
    Pinned,
    /// It cannot be reached from any other existing node.
    Confined,
    Unverified,
}

/// From where the data of `claim`, used on `node`, can be reached.
pub fn place_of(claim: &ClaimFacts, node: &NodeFacts) -> Place {
    match &claim.state {
        Some(ClaimState::Absent) => Place::Free,
        // The PVC of the pod's own generic ephemeral volume does not keep the pod, but two machines may be able to write to its
        // disk.
        Some(ClaimState::Bound(_) | ClaimState::WithoutVolume { .. })
            if claim.owned && claim.ephemeral =>
        {
            Place::Free
        }
        Some(ClaimState::Bound(bound)) => place_of_volume(&bound.volume, node),
        None | Some(ClaimState::Unread(_) | ClaimState::WithoutVolume { .. }) => Place::Unverified,
    }
}

fn place_of_volume(volume: &VolumeFacts, node: &NodeFacts) -> Place {
    let is_path = matches!(volume.storage, Storage::Local(_) | Storage::HostPath(_));
    if volume.storage == Storage::StrictLocal {
        return Place::Pinned;
    }
    if volume.affinity.is_empty() {
        return if is_path {
            Place::Confined
        } else {
            Place::Free
        };
    }
    let of_zones = |term: &AffinityTerm| !term.fields && term.requirements.iter().all(of_many);
    let mut terms = volume.affinity.iter();
    if is_path && terms.any(|term| !term.requirements.is_empty() && of_zones(term)) {
        return Place::Confined;
    }
    // A term without any requirement matches no node.
    let terms = volume
        .affinity
        .iter()
        .filter(|term| term.fields || !term.requirements.is_empty());
    let reached = terms.map(|term| match &term.satisfied_by {
        _ if term.fields || !term.requirements.iter().all(can_be_asked) => Place::Unverified,
        _ if of_zones(term) => Place::Free,
        Some(Ok(names)) if names.iter().any(|name| *name != node.name) => Place::Free,
        Some(Ok(_)) if names_it(term, node) => Place::Pinned,
        Some(Ok(_)) => Place::Confined,
        Some(Err(_)) | None => Place::Unverified,
    });
    let reached = reached.collect::<Vec<_>>();
    let order = [
        Place::Free,
        Place::Unverified,
        Place::Confined,
        Place::Pinned,
    ];
    let first = order.into_iter().find(|place| reached.contains(place));
    first.unwrap_or(Place::Confined)
}

/// Whether a term requires this node by its name or its host.
fn names_it(term: &AffinityTerm, node: &NodeFacts) -> bool {
    let own = |value: &String| *value == node.name || Some(value) == node.hostname.as_ref();
    let asked = term.requirements.iter().filter(|asked| !of_many(asked));
    asked
        .filter(|asked| asked.operator == "In" && !asked.values.is_empty())
        .any(|asked| asked.values.iter().all(own))
}

/// Whether a label selector can express the requirement. Zones and regions are left out.
fn can_be_asked(requirement: &Requirement) -> bool {
    let Requirement {
        key,
        operator,
        values,
    } = requirement;
    let plain = |word: &String| {
        word.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
    };
    let counts = match operator.as_str() {
        "In" | "NotIn" => !values.is_empty(),
        "Exists" | "DoesNotExist" => values.is_empty(),
        "Gt" | "Lt" => values.len() == 1,
        _ => false,
    };
    of_many(requirement) || counts && !key.is_empty() && plain(key) && values.iter().all(plain)
}

/// Whether the requirement is about a zone or a region, which have many nodes.
pub fn of_many(requirement: &Requirement) -> bool {
    requirement.key.ends_with("zone") || requirement.key.ends_with("region")
}
