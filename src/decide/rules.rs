//! The rules, in their order: each by itself, so that one that comes late can be asked although an early one holds.

use jiff::Timestamp;

use super::{
    Policy,
    reason::{Optout, Reason, spoken},
    volume,
};
use crate::facts::{NodeFacts, NodeRead, PodFacts, Ready};

/// What a rule may look at.
pub(super) struct Case<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    pub node: Option<&'a NodeRead>,
    pub pod: &'a PodFacts,
}

/// What a rule found.
pub(super) enum Finding {
    Holds(Reason),
    Not,
    /// It asks about the node, which could not be read. That never permits a delete.
    NodeUnknown,
}

/// One rule.
pub(super) struct Rule {
    /// The question, for people.
    pub asks: &'static str,
    holds: Holds,
    /// What was seen where it does not hold, as a sentence.
    pub otherwise: fn(&Case<'_>) -> String,
}

/// The reason, where the rule holds.
enum Holds {
    /// It can be asked whatever is known about the node.
    Always(fn(&Case<'_>) -> Option<Reason>),
    /// It needs the node, so that no such rule is ever passed without one.
    OnNode(fn(&Case<'_>, &NodeFacts) -> Option<Reason>),
}

impl Rule {
    pub fn finding(&self, case: &Case<'_>) -> Finding {
        let reason = match (&self.holds, case.known()) {
            (Holds::Always(holds), _) => holds(case),
            (Holds::OnNode(holds), Some(node)) => holds(case, node),
            (Holds::OnNode(_), None) => return Finding::NodeUnknown,
        };
        reason.map_or(Finding::Not, Finding::Holds)
    }
}

impl Finding {
    /// The reason to decide by, `None` where the next rule is to be asked. Of a rule that needs an unknown node nothing
    /// follows but that a fact is missing.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Holds(reason) => Some(reason),
            Self::Not => None,
            Self::NodeUnknown => Some(Reason::FactsUnread("the node: nobody looked".to_owned())),
        }
    }
}

impl<'a> Case<'a> {
    fn known(&self) -> Option<&'a NodeFacts> {
        self.node.and_then(NodeRead::known)
    }

    /// The reason where there is no look at the node.
    pub fn node_unread(&self) -> Reason {
        let why = match self.node {
            Some(NodeRead::Unread(unread)) => &unread.0,
            _ => "nobody looked",
        };
        Reason::FactsUnread(format!("the node: {why}"))
    }

    fn node_name(&self) -> &'a str {
        self.pod.node.as_deref().unwrap_or("its node")
    }

    fn ready(&self) -> String {
        match self.known() {
            Some(NodeFacts { ready, ready_reason: Some(reason), .. }) => {
                format!("Node {}'s Ready is {} ({reason}).", self.node_name(), ready.as_str())
            }
            Some(node) => format!("Node {}'s Ready is {}.", self.node_name(), node.ready.as_str()),
            None => format!("Whether {} is Ready is not known.", self.node_name()),
        }
    }
}

/// How many rules come before the first that asks about volumes: claims are read only of pods that these let through.
pub(super) const BEFORE_VOLUMES: usize = 12;

/// Rule 1 first.
pub(super) const RULES: [Rule; 16] = [
    Rule {
        asks: "Is it the mirror of a static pod?",
        holds: Holds::Always(|case| case.pod.mirror.then_some(Reason::MirrorPod)),
        otherwise: |_| "It does not carry the annotation kubernetes.io/config.mirror.".to_owned(),
    },
    Rule {
        asks: "Is the pod, its namespace or its node opted out?",
        holds: Holds::Always(opted_out),
        otherwise: |_| "None that could be read is opted out by pod-reaper.io/skip.".to_owned(),
    },
    Rule {
        asks: "Is its node gone?",
        holds: Holds::Always(node_gone),
        otherwise: |case| match case.known() {
            Some(node) => format!("Node {} exists.", node.name),
            None => format!("Whether {} exists is not known.", case.node_name()),
        },
    },
    Rule {
        asks: "Is its node Ready?",
        holds: Holds::Always(|case| {
            case.known().is_some_and(|node| node.ready == Ready::True).then_some(Reason::NodeReady)
        }),
        otherwise: |case| case.ready(),
    },
    Rule {
        asks: "Is it overdue by less than --reap-older-than?",
        holds: Holds::Always(|case| {
            let (overdue, threshold) = (case.pod.overdue(case.now), case.policy.reap_older_than);
            (overdue < threshold).then_some(Reason::NotOverdue { overdue, threshold })
        }),
        otherwise: |case| {
            let overdue = spoken(case.pod.overdue(case.now));
            format!("It is overdue by {overdue}, of {} asked for.", spoken(case.policy.reap_older_than))
        },
    },
    Rule {
        asks: "Is its node a leaf node?",
        holds: Holds::Always(|case| case.known()?.leaf.clone().map(Reason::LeafNode)),
        otherwise: |case| match case.known() {
            Some(node) => {
                format!(
                    "Node {} carries no mark of a virtual or edge node, nor does --leaf-node-selector select it.",
                    node.name
                )
            }
            None => format!("Whether {} carries a mark is not known.", case.node_name()),
        },
    },
    Rule {
        asks: "Could something that has to be known not be read?",
        holds: Holds::Always(facts_unread),
        otherwise: |_| "Node, namespace and, where it matters, the lease were read.".to_owned(),
    },
    Rule {
        asks: "Is its node recovering: Unknown, but with a fresh lease?",
        holds: Holds::OnNode(node_recovering),
        otherwise: |case| match case.known().map(|node| (node.ready, &node.lease)) {
            Some((Ready::Unknown, Ok(Some(lease)))) => match lease.renewed {
                Some(renewed) => format!(
                    "The node's lease was renewed {} ago and holds for {}.",
                    spoken(case.now.duration_since(renewed)),
                    spoken(lease.duration)
                ),
                None => "The node's lease was never renewed.".to_owned(),
            },
            Some((Ready::Unknown, Ok(None))) => "The node has no lease.".to_owned(),
            _ => format!("The lease has no say. {}", case.ready()),
        },
    },
    Rule {
        asks: "With --unreachable-only: may its kubelet still report?",
        holds: Holds::OnNode(|case, node| {
            let alive = case.policy.unreachable_only && node.ready != Ready::Unknown;
            alive.then_some(Reason::KubeletAlive { ready: node.ready })
        }),
        otherwise: |case| {
            if case.policy.unreachable_only {
                case.ready()
            } else {
                "--unreachable-only is not set.".to_owned()
            }
        },
    },
    Rule {
        asks: "Has its node been NotReady for less than --node-not-ready-for?",
        holds: Holds::OnNode(node_just_failed),
        otherwise: |case| {
            let node = case.known().filter(|node| node.ready != Ready::True);
            match node.and_then(|node| node.not_ready_since(case.now)) {
                Some(since) => format!(
                    "It has been NotReady for {}, of {} asked for.",
                    spoken(case.now.duration_since(since)),
                    spoken(case.policy.node_not_ready_for)
                ),
                None => case.ready(),
            }
        },
    },
    Rule {
        asks: "Was it force-deleted already, and is still held by finalizers?",
        holds: Holds::Always(|case| {
            let finalizers = case.pod.foreign_finalizers();
            let forced = case.pod.grace_seconds == Some(0) && !finalizers.is_empty();
            forced.then_some(Reason::AlreadyForced { finalizers })
        }),
        otherwise: |case| match case.pod.grace_seconds {
            Some(0) => unheld(case),
            _ => "It was not force-deleted yet.".to_owned(),
        },
    },
    Rule {
        asks: "Is it held by finalizers other than the Job controller's?",
        holds: Holds::Always(|case| {
            let finalizers = case.pod.foreign_finalizers();
            (!finalizers.is_empty()).then_some(Reason::Finalizers { finalizers })
        }),
        otherwise: unheld,
    },
    Rule {
        asks: "Is its storage on the node?",
        holds: Holds::OnNode(|case, node| {
            let claims = volume::check(&case.pod.claims, node).pinned;
            (!claims.is_empty()).then_some(Reason::LocalVolume { claims })
        }),
        otherwise: |case| match claims(case) {
            Some(claims) => format!("None that could be read is bound to the node: {claims}."),
            None => "It uses no claim.".to_owned(),
        },
    },
    Rule {
        asks: "Could a claim or its volume not be verified?",
        holds: Holds::OnNode(|case, node| {
            let claims = volume::check(&case.pod.claims, node).unverified;
            (!claims.is_empty()).then_some(Reason::VolumeUnverified { claims })
        }),
        otherwise: |case| match claims(case) {
            Some(claims) => format!("Each was read: {claims}."),
            None => "It uses no claim.".to_owned(),
        },
    },
    Rule {
        asks: "Is its owner's kind one of --manual-owner-kind?",
        holds: Holds::Always(|case| {
            let owner = case.pod.owner.as_ref()?;
            let mut kinds = case.policy.manual_owner_kinds.iter();
            let listed = kinds.any(|kind| kind.eq_ignore_ascii_case(&owner.kind));
            listed.then(|| Reason::OwnerKind { owner: owner.clone() })
        }),
        otherwise: |case| {
            let kind = case.pod.owner.as_ref().map_or("nobody's", |owner| &owner.kind);
            match case.policy.manual_owner_kinds.join(", ") {
                none if none.is_empty() => format!("It is {kind}; --manual-owner-kind names no kind."),
                kinds => format!("It is {kind}; --manual-owner-kind names {kinds}."),
            }
        },
    },
    Rule {
        asks: "Does nothing bind it to its node?",
        holds: Holds::OnNode(|case, node| {
            Some(Reason::Stuck { confined: volume::check(&case.pod.claims, node).confined })
        }),
        otherwise: |_| String::new(),
    },
];

fn opted_out(case: &Case<'_>) -> Option<Reason> {
    let who = if case.pod.opted_out {
        Optout::Pod
    } else if case.pod.namespace_opted_out == Ok(true) {
        Optout::Namespace
    } else if case.known().is_some_and(|node| node.opted_out) {
        Optout::Node
    } else {
        return None;
    };
    Some(Reason::OptedOut(who))
}

fn node_gone(case: &Case<'_>) -> Option<Reason> {
    match (&case.pod.node, case.node) {
        (None, _) => Some(Reason::NodeGone { node: None }),
        (Some(name), Some(NodeRead::Gone)) => Some(Reason::NodeGone { node: Some(name.clone()) }),
        _ => None,
    }
}

fn facts_unread(case: &Case<'_>) -> Option<Reason> {
    let Some(node) = case.known() else {
        return Some(case.node_unread());
    };
    if let Err(unread) = &case.pod.namespace_opted_out {
        return Some(Reason::FactsUnread(format!("the namespace: {}", unread.0)));
    }
    // Only here does a rule need the lease: while Ready is False, the kubelet itself says so.
    match &node.lease {
        Err(unread) if node.ready == Ready::Unknown => {
            Some(Reason::FactsUnread(format!("the node's lease: {}", unread.0)))
        }
        _ => None,
    }
}

fn node_recovering(case: &Case<'_>, node: &NodeFacts) -> Option<Reason> {
    match &node.lease {
        Ok(Some(lease)) if node.ready == Ready::Unknown && lease.holds_at(case.now) => {
            let age = lease.renewed.map(|renewed| case.now.duration_since(renewed));
            Some(Reason::NodeRecovering { lease_age: age.unwrap_or_default() })
        }
        _ => None,
    }
}

fn node_just_failed(case: &Case<'_>, node: &NodeFacts) -> Option<Reason> {
    if node.ready == Ready::True {
        // Since when it is Ready says nothing here.
        return None;
    }
    let threshold = case.policy.node_not_ready_for;
    let not_ready_for = node.not_ready_since(case.now).map(|since| case.now.duration_since(since));
    let just = not_ready_for.is_none_or(|not_ready_for| not_ready_for < threshold);
    just.then_some(Reason::NodeJustFailed { not_ready_for, threshold })
}

fn unheld(case: &Case<'_>) -> String {
    if case.pod.held_by_job() {
        "Only the Job controller's finalizer is on it, which a reap has released.".to_owned()
    } else {
        "It has no finalizer.".to_owned()
    }
}

/// The names of its claims, where it has any.
fn claims(case: &Case<'_>) -> Option<String> {
    let names = case.pod.claims.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>();
    (!names.is_empty()).then(|| names.join(", "))
}
