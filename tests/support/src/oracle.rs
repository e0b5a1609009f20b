//! The conditions under which the design forbids a delete, written from its text and not from the code of the rules. Only
//! the plain fields of the facts are used, none of their functions.

use jiff::{SignedDuration, Timestamp};
use pod_reaper::{
    decide::{KubeletAlive, Policy, ReasonCode},
    facts::{
        AffinityTerm, ClaimFacts, ClaimState, ClusterFacts, JOB_TRACKING, LeafKind, NodeFacts,
        NodeRead, Owned, PodFacts, Ready, Requirement, SignBy, Standing, Storage, VolumeFacts,
    },
};

/// The objections to the delete of `pod`, without the limits. A pod without an objection must be deleted.
pub fn objections(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> Vec<&'static str> {
    rules(facts, policy, pod)
        .into_iter()
        .map(|(objection, _)| objection)
        .collect()
}

/// The reason of the first rule that holds, without the limits.
pub fn first_reason(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> ReasonCode {
    let pinned = || {
        let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name));
        let Some(NodeRead::Known(node)) = node else {
            return false;
        };
        pod.claims
            .iter()
            .any(|claim| place_of(claim, node) == Place::Pinned)
    };
    match rules(facts, policy, pod).first() {
        Some((_, reason)) => *reason,
        None if needs_an_answer(facts, policy, pod) => ReasonCode::Answered,
        None if pinned() => ReasonCode::Scratch,
        None => ReasonCode::Stuck,
    }
}

/// Whether a pod that may go would stay without what people have answered.
fn needs_an_answer(facts: &ClusterFacts, policy: &Policy, pod: &PodFacts) -> bool {
    let (mut facts, mut pod) = (facts.clone(), pod.clone());
    pod.reap = None;
    let node = pod.node.as_ref().and_then(|name| facts.nodes.get_mut(name));
    let Some(NodeRead::Known(node)) = node else {
        return false;
    };
    let failure = Failure::of(node, &pod, policy, facts.now);
    let mut gives_up = pod
        .claims
        .iter()
        .filter(|claim| place_of(claim, node) == Place::Pinned);
    let given_up = gives_up.any(|claim| failure.gives_up(claim));
    node.powered_off = None;
    given_up || !rules(&facts, policy, &pod).is_empty()
}

/// What an answer has to belong to: the moments that it has to be later than, and the last that was heard.
#[derive(Clone)]
pub struct Failure {
    before: Vec<Option<Timestamp>>,
    heard: Option<Timestamp>,
    silent: bool,
    now: Timestamp,
}

impl Failure {
    /// The failure of `node`.
    pub fn of_node(node: &NodeFacts, policy: &Policy, now: Timestamp) -> Self {
        Self {
            before: vec![node.created, not_ready_since(node, now)],
            heard: node.heard.iter().map(|heard| heard.at).max(),
            silent: !alive(node, policy, now) && node.unread_leases.is_none(),
            now,
        }
    }

    /// The failure of `node` that `pod` is stuck by.
    pub fn of(node: &NodeFacts, pod: &PodFacts, policy: &Policy, now: Timestamp) -> Self {
        let asked = pod
            .grace_seconds
            .filter(|grace| *grace >= 0)
            .and_then(|grace| {
                let grace = SignedDuration::from_secs(grace);
                pod.deletion_deadline.checked_sub(grace).ok()
            });
        let mut failure = Self::of_node(node, policy, now);
        failure.before.extend([pod.created, asked]);
        failure
    }

    /// Whether an answer of that value counts.
    pub fn counts(&self, value: Option<&String>) -> bool {
        let Some(Ok(at)) = value.map(|value| value.parse::<Timestamp>()) else {
            return false;
        };
        at <= self.now
            && self.silent
            && self.heard.is_none_or(|heard| heard <= at)
            && self
                .before
                .iter()
                .all(|when| when.is_some_and(|when| when < at))
    }

    /// Whether the data of `claim` may be lost, by an answer.
    pub fn gives_up(&self, claim: &ClaimFacts) -> bool {
        let ClaimState::Bound(bound) = &claim.state else {
            return false;
        };
        let mut failure = self.clone();
        failure.before.push(bound.created);
        failure.counts(bound.give_up.as_ref())
    }
}

/// The rules that hold, in the order of the design's table.
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
    let opted_out = out(&pod.opted_out)
        || pod.namespace_opted_out.as_ref().is_ok_and(out)
        || node.is_some_and(|node| out(&node.opted_out));
    let is = |test: &dyn Fn(&NodeFacts) -> bool| node.is_some_and(test);
    // Of one that says itself that it is not Ready, no rule needs more.
    let may_be_heard =
        |node: &NodeFacts| node.unread_leases.is_some() && node.ready != Ready::False;
    let unread = !gone && (node.is_none() || pod.namespace_opted_out.is_err() || is(&may_be_heard));
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
            .is_none_or(|since| now.duration_since(since) < policy.node_not_ready_for)
    };
    let protected = match policy.kubelet_alive {
        KubeletAlive::Hold => true,
        KubeletAlive::HoldUnique => two_must_not_run(pod),
        KubeletAlive::Reap => false,
    };
    let any = |test: &dyn Fn(&ClaimFacts) -> bool| pod.claims.iter().any(test);
    let place = |place: Place| is(&|node| any(&|claim| place_of(claim, node) == place));
    let unverified = is(&|node| any(&|claim| is_unverified(claim, node)));
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
    let failure = |node: &NodeFacts| Failure::of(node, pod, policy, now);
    let off = is(&|node| {
        certainly_off(node, policy, now) || failure(node).counts(node.powered_off.as_ref())
    });
    let may_go = is(&|node| failure(node).counts(pod.reap.as_ref()));
    // An owned claim would go with the pod, and one that was not read may be owned.
    let owned = |claim: &ClaimFacts| claim.owned != Owned::No && !claim.ephemeral;
    let keeps_all = !any(&|claim| owned(claim) || is_unread(claim));
    let shared = shares_a_disk(pod) && !off;
    let flagged = flagged && !may_go;
    let confined = place(Place::Confined) && !(may_go && keeps_all);
    let unverified = unverified && !(may_go && keeps_all && off);
    // Rule 13 lets pass what it alone keeps.
    let others = confined || unverified || shared || flagged;
    let given_up = !others && is(&|node| all_is_given_up(pod, node, policy, now));
    let ready = |node: &NodeFacts| node.ready == Ready::True;
    let was_forced = pod.grace_seconds == Some(0) && !pod.finished;
    [
        (pod.mirror, "it is a mirror pod", ReasonCode::MirrorPod),
        (opted_out, "it is opted out", ReasonCode::OptedOut),
        (gone && !foreign, "its node is gone", ReasonCode::NodeGone),
        (is(&ready), "its node is ready", ReasonCode::NodeReady),
        (
            now.duration_since(pod.deletion_deadline) < policy.reap_older_than,
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
            is(&|node| !ready(node) && recovers(node, policy, now)),
            "its node recovers",
            ReasonCode::NodeRecovering,
        ),
        (
            is(&|node| !ready(node) && just_failed(node)),
            "its node just failed",
            ReasonCode::NodeJustFailed,
        ),
        (
            protected && is(&|node| alive(node, policy, now)),
            "its node shows a sign of life",
            ReasonCode::KubeletAlive,
        ),
        (
            foreign && was_forced,
            "a finalizer holds it after a force delete",
            ReasonCode::AlreadyForced,
        ),
        (foreign, "a finalizer holds it", ReasonCode::Finalizers),
        (
            node.is_some() && any(&|claim| claim.state == ClaimState::NotLookedUp),
            "nothing was asked about its claims",
            ReasonCode::FactsUnread,
        ),
        (
            place(Place::Pinned) && !given_up,
            "a volume is pinned",
            ReasonCode::LocalVolume,
        ),
        (confined, "a volume is confined", ReasonCode::VolumeConfined),
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

/// Whether nothing is known of a claim.
fn is_unread(claim: &ClaimFacts) -> bool {
    matches!(claim.state, ClaimState::Unread(_))
}

/// Kinds are compared without case, and without the `s` of a plural.
fn singular(kind: &str) -> String {
    kind.to_ascii_lowercase().trim_end_matches('s').to_owned()
}

/// The later of the condition's time, unless it is of the future, and the taint's.
fn not_ready_since(node: &NodeFacts, now: Timestamp) -> Option<Timestamp> {
    match (
        node.ready_since.filter(|since| *since <= now),
        node.tainted_since,
    ) {
        (Some(said), Some(tainted)) => Some(if said > tainted { said } else { tainted }),
        (said, tainted) => said.or(tainted),
    }
}

/// What was written on the node's machine later than NotReady-since: who wrote, when, and for how long that shows life.
fn heard_since<'a>(
    node: &'a NodeFacts,
    policy: &'a Policy,
    now: Timestamp,
) -> impl Iterator<Item = (SignBy, SignedDuration, SignedDuration)> + 'a {
    let since = not_ready_since(node, now);
    // One that is ahead of now is later than anything that this clock has seen.
    let later = node
        .heard
        .iter()
        .filter(move |heard| since.is_none_or(|since| heard.at > since));
    later.map(move |heard| {
        let lasts = [heard.period, policy.node_not_ready_for]
            .into_iter()
            .max()
            .unwrap_or_default();
        (heard.by, now.duration_since(heard.at), lasts)
    })
}

/// Rule 8: its kubelet has renewed the lease since, and not for too long already.
fn recovers(node: &NodeFacts, policy: &Policy, now: Timestamp) -> bool {
    let down = not_ready_since(node, now).map(|since| now.duration_since(since));
    node.ready != Ready::False
        && heard_since(node, policy, now).any(|(by, age, lasts)| {
            by == SignBy::Lease && age < lasts && down.is_some_and(|down| down < lasts * 12)
        })
}

/// Whether a node that is not Ready shows a sign of life.
pub fn alive(node: &NodeFacts, policy: &Policy, now: Timestamp) -> bool {
    match node.ready {
        Ready::True => false,
        Ready::False => true,
        Ready::Unknown | Ready::Absent => {
            heard_since(node, policy, now).any(|(_, age, lasts)| age < lasts)
        }
    }
}

/// Whether a node is fenced: by a mark that nothing which was heard later refutes.
pub fn certainly_off(node: &NodeFacts, policy: &Policy, now: Timestamp) -> bool {
    let later = |set: Timestamp| node.heard.iter().any(|heard| heard.at > set);
    !alive(node, policy, now)
        && node.unread_leases.is_none()
        && node
            .fenced
            .iter()
            .any(|mark| !mark.set_by.is_some_and(later))
}

/// Whether the pod is unique: not interchangeable.
pub fn two_must_not_run(pod: &PodFacts) -> bool {
    let kind = pod.owner.as_ref().map_or("", |owner| owner.kind.as_str());
    let group = pod.controller.as_ref().map(|its| {
        its.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    });
    let lets_go = !pod
        .finalizers
        .iter()
        .any(|finalizer| finalizer == JOB_TRACKING);
    let made = match (group, kind) {
        (Some("apps"), "ReplicaSet") | (Some(""), "ReplicationController") => true,
        (Some("batch"), "Job") => lets_go,
        _ => false,
    };
    !made || pod.own_volume.is_some() || pod.claims.iter().any(|claim| !claim.ephemeral)
}

/// Whether two machines could write a disk of the pod.
pub fn shares_a_disk(pod: &PodFacts) -> bool {
    let of_claim = |claim: &ClaimFacts| match &claim.state {
        ClaimState::Bound(bound) => bound.shared_disk || bound.volume.disk.is_some(),
        _ => false,
    };
    let machine = pod.owner.as_ref().is_some_and(|owner| {
        owner.kind == "VirtualMachineInstance"
            || owner.kind == "Pod" && owner.name.starts_with("virt-launcher-")
    });
    machine || pod.own_disk.is_some() || pod.claims.iter().any(of_claim)
}

/// Whether all pinned claims of the pod may be given up, as scratch or by an answer, and there are some.
pub fn all_is_given_up(pod: &PodFacts, node: &NodeFacts, policy: &Policy, now: Timestamp) -> bool {
    let mut pinned = pod
        .claims
        .iter()
        .filter(|claim| place_of(claim, node) == Place::Pinned)
        .peekable();
    let failure = Failure::of(node, pod, policy, now);
    // That it is made anew says too that no other pod uses it.
    let given_up = |claim: &ClaimFacts| {
        let ClaimState::Bound(bound) = &claim.state else {
            return false;
        };
        claim.renewed == Some(Ok(()))
            && claim.users.is_empty()
            && bound.version.is_some()
            && (bound.scratch && policy.reap_scratch || failure.gives_up(claim))
    };
    pinned.peek().is_some() && pinned.all(given_up)
}

/// Whether the breaker holds.
pub fn outage(nodes: impl IntoIterator<Item = Standing>, now: Timestamp, max_percent: u8) -> bool {
    let day = SignedDuration::from_hours(24);
    let put_away = |node: &Standing| {
        let long = node
            .since
            .is_some_and(|since| now.duration_since(since) > day);
        !node.ready && node.cordoned && long && !node.terminating
    };
    let real = nodes
        .into_iter()
        .filter(|node| !node.leaf && !put_away(node))
        .collect::<Vec<_>>();
    let too_many = |of: &[&Standing]| {
        let failed = of.iter().filter(|node| !node.ready).count();
        failed > 2 && failed * 100 >= of.len() * usize::from(max_percent)
    };
    let all = real.iter().collect::<Vec<_>>();
    let workers = real
        .iter()
        .filter(|node| !node.control_plane)
        .collect::<Vec<_>>();
    let room = real
        .iter()
        .any(|node| node.ready && !node.cordoned && !node.reserved);
    max_percent < 100 && (too_many(&all) || too_many(&workers) || !room)
}

/// What a node counts as for the breaker.
pub fn standing(node: &NodeFacts, now: Timestamp, terminating: bool) -> Standing {
    let ready = node.ready == Ready::True;
    Standing {
        ready,
        leaf: node.leaf.is_some(),
        control_plane: node.control_plane,
        reserved: node.reserved,
        cordoned: node.cordoned,
        since: if ready {
            None
        } else {
            not_ready_since(node, now)
        },
        terminating,
    }
}

/// From where the data of a claim can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// From elsewhere, or there is none that could be missed.
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
        ClaimState::Absent => Place::Free,
        // That of the pod's own generic ephemeral volume binds nothing; but its disk may be one that two machines write.
        ClaimState::Bound(_) | ClaimState::WithoutVolume { .. }
            if claim.ephemeral && claim.owned != Owned::No =>
        {
            Place::Free
        }
        ClaimState::Bound(bound) => place_of_volume(&bound.volume, node),
        ClaimState::NotLookedUp | ClaimState::Unread(_) | ClaimState::WithoutVolume { .. } => {
            Place::Unverified
        }
    }
}

/// Whether rule 15 holds for `claim`: also where it goes with its pod, although it is wanted.
pub fn is_unverified(claim: &ClaimFacts, node: &NodeFacts) -> bool {
    let wanted = !claim.ephemeral && matches!(claim.owned, Owned::MayBeWanted(_));
    wanted && claim.state != ClaimState::Absent || place_of(claim, node) == Place::Unverified
}

fn place_of_volume(volume: &VolumeFacts, node: &NodeFacts) -> Place {
    if volume.storage != Storage::Driver {
        return Place::Pinned;
    }
    if volume.affinity.is_empty() {
        return Place::Free;
    }
    let own = |value: &String| *value == node.name || Some(value) == node.hostname.as_ref();
    let names_it = |term: &&AffinityTerm| {
        term.requirements.iter().any(|asked| {
            asked.operator == "In"
                && !of_many(asked)
                && !asked.values.is_empty()
                && asked.values.iter().all(own)
        })
    };
    // A term without any requirement matches no node.
    let terms = volume
        .affinity
        .iter()
        .filter(|term| term.fields || !term.requirements.is_empty());
    if terms.clone().count() > 0 && terms.clone().all(|term| names_it(&term)) {
        return Place::Pinned;
    }
    let reached = terms.map(|term| match &term.satisfied_by {
        _ if term.fields || !term.requirements.iter().all(can_be_asked) => Place::Unverified,
        _ if term.requirements.iter().all(of_many) => Place::Free,
        Some(Ok(names)) if names.iter().any(|name| *name != node.name) => Place::Free,
        Some(Ok(_)) => Place::Confined,
        Some(Err(_)) | None => Place::Unverified,
    });
    let reached = reached.collect::<Vec<_>>();
    let first = [Place::Free, Place::Unverified]
        .into_iter()
        .find(|place| reached.contains(place));
    first.unwrap_or(Place::Confined)
}

/// Whether a label selector can say it. Zones and regions are left out.
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

/// Whether it asks for a zone or a region, which hold many nodes.
pub fn of_many(requirement: &Requirement) -> bool {
    requirement.key.ends_with("zone") || requirement.key.ends_with("region")
}
