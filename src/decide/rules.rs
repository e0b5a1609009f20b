//! The rules, in their order: each by itself, so that one that comes late can be asked although an early one holds.

use jiff::Timestamp;

use super::{
    Policy,
    reason::{Optout, Reason, spoken},
    volume,
};
use crate::facts::{NodeFacts, NodeRead, PodFacts, Ready};

/// What a rule may look at.
pub(super) struct Sight<'a> {
    pub now: Timestamp,
    pub policy: &'a Policy,
    pub node: Option<&'a NodeRead>,
    pub pod: &'a PodFacts,
}

/// What a rule found.
pub(super) enum Finding {
    Holds(Reason),
    Not,
    /// It asks about the node, which could not be seen. That never permits a delete.
    Untold,
}

/// One rule.
pub(super) struct Rule {
    /// The question, for people.
    pub asks: &'static str,
    /// Whether it asks about volumes, or comes after one that does: only then does anybody read claims.
    pub asks_volumes: bool,
    holds: Holds,
    /// What was seen where it does not hold, as a sentence.
    pub otherwise: fn(&Sight<'_>) -> String,
}

/// The reason, where the rule holds.
enum Holds {
    /// It can be asked whatever is known about the node.
    Always(fn(&Sight<'_>) -> Option<Reason>),
    /// It needs the node, so that no such rule is ever passed without one.
    OnNode(fn(&Sight<'_>, &NodeFacts) -> Option<Reason>),
}

impl Rule {
    pub fn finding(&self, sight: &Sight<'_>) -> Finding {
        let reason = match (&self.holds, sight.known()) {
            (Holds::Always(holds), _) => holds(sight),
            (Holds::OnNode(holds), Some(node)) => holds(sight, node),
            (Holds::OnNode(_), None) => return Finding::Untold,
        };
        reason.map_or(Finding::Not, Finding::Holds)
    }
}

impl Finding {
    /// The reason to decide by, `None` where the next rule is to be asked. Of a rule that cannot be told nothing
    /// follows but that a fact is missing.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Holds(reason) => Some(reason),
            Self::Not => None,
            Self::Untold => Some(Reason::FactsUnread("the node: nobody looked".to_owned())),
        }
    }
}

impl<'a> Sight<'a> {
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

/// Rule 1 first.
pub(super) const RULES: [Rule; 16] = [
    Rule {
        asks: "Is it the mirror of a static pod?",
        asks_volumes: false,
        holds: Holds::Always(|sight| sight.pod.mirror.then_some(Reason::MirrorPod)),
        otherwise: |_| "It does not carry the annotation kubernetes.io/config.mirror.".to_owned(),
    },
    Rule {
        asks: "Is the pod, its namespace or its node opted out?",
        asks_volumes: false,
        holds: Holds::Always(opted_out),
        otherwise: |_| "None that could be read is annotated pod-reaper.io/skip: \"true\".".to_owned(),
    },
    Rule {
        asks: "Is its node gone?",
        asks_volumes: false,
        holds: Holds::Always(node_gone),
        otherwise: |sight| match sight.known() {
            Some(node) => format!("Node {} exists.", node.name),
            None => format!("Whether {} exists is not known.", sight.node_name()),
        },
    },
    Rule {
        asks: "Is its node Ready?",
        asks_volumes: false,
        holds: Holds::Always(|sight| {
            sight.known().is_some_and(|node| node.ready == Ready::True).then_some(Reason::NodeReady)
        }),
        otherwise: |sight| sight.ready(),
    },
    Rule {
        asks: "Is it overdue by less than --reap-older-than?",
        asks_volumes: false,
        holds: Holds::Always(|sight| {
            let (overdue, threshold) = (sight.pod.overdue(sight.now), sight.policy.reap_older_than);
            (overdue < threshold).then_some(Reason::NotOverdue { overdue, threshold })
        }),
        otherwise: |sight| {
            let overdue = spoken(sight.pod.overdue(sight.now));
            format!("It is overdue by {overdue}, of {} asked for.", spoken(sight.policy.reap_older_than))
        },
    },
    Rule {
        asks: "Is its node a leaf node?",
        asks_volumes: false,
        holds: Holds::Always(|sight| sight.known()?.leaf.clone().map(Reason::LeafNode)),
        otherwise: |sight| match sight.known() {
            Some(node) => {
                format!(
                    "Node {} carries no mark of Kosmos, nor does --leaf-node-selector select it.",
                    node.name
                )
            }
            None => format!("Whether {} carries a mark is not known.", sight.node_name()),
        },
    },
    Rule {
        asks: "Could something that has to be known not be read?",
        asks_volumes: false,
        holds: Holds::Always(facts_unread),
        otherwise: |_| "Node, namespace and, where it matters, the lease were read.".to_owned(),
    },
    Rule {
        asks: "Is its node recovering: Unknown, but with a fresh lease?",
        asks_volumes: false,
        holds: Holds::OnNode(node_recovering),
        otherwise: |sight| match sight.known().map(|node| (node.ready, &node.lease)) {
            Some((Ready::Unknown, Ok(Some(lease)))) => match lease.renewed {
                Some(renewed) => format!(
                    "The node's lease was renewed {} ago and holds for {}.",
                    spoken(sight.now.duration_since(renewed)),
                    spoken(lease.duration)
                ),
                None => "The node's lease was never renewed.".to_owned(),
            },
            Some((Ready::Unknown, Ok(None))) => "The node has no lease.".to_owned(),
            _ => format!("The lease has no say. {}", sight.ready()),
        },
    },
    Rule {
        asks: "With --unreachable-only: may its kubelet still report?",
        asks_volumes: false,
        holds: Holds::OnNode(|sight, node| {
            let alive = sight.policy.unreachable_only && node.ready != Ready::Unknown;
            alive.then_some(Reason::KubeletAlive { ready: node.ready })
        }),
        otherwise: |sight| {
            if sight.policy.unreachable_only {
                sight.ready()
            } else {
                "--unreachable-only is not set.".to_owned()
            }
        },
    },
    Rule {
        asks: "Has its node been NotReady for less than --node-not-ready-for?",
        asks_volumes: false,
        holds: Holds::OnNode(node_just_failed),
        otherwise: |sight| match sight.known() {
            Some(NodeFacts { ready_since: Some(since), ready, .. }) if *ready != Ready::True => format!(
                "It has been NotReady for {}, of {} asked for.",
                spoken(sight.now.duration_since(*since)),
                spoken(sight.policy.node_not_ready_for)
            ),
            _ => sight.ready(),
        },
    },
    Rule {
        asks: "Was it force-deleted already, and is still held by finalizers?",
        asks_volumes: false,
        holds: Holds::Always(|sight| {
            let finalizers = sight.pod.foreign_finalizers();
            let forced = sight.pod.grace_seconds == Some(0) && !finalizers.is_empty();
            forced.then_some(Reason::AlreadyForced { finalizers })
        }),
        otherwise: |sight| match sight.pod.grace_seconds {
            Some(0) => unheld(sight),
            _ => "It was not force-deleted yet.".to_owned(),
        },
    },
    Rule {
        asks: "Is it held by finalizers other than the Job controller's?",
        asks_volumes: false,
        holds: Holds::Always(|sight| {
            let finalizers = sight.pod.foreign_finalizers();
            (!finalizers.is_empty()).then_some(Reason::Finalizers { finalizers })
        }),
        otherwise: unheld,
    },
    Rule {
        asks: "Is its storage on the node?",
        asks_volumes: true,
        holds: Holds::OnNode(|sight, node| {
            let claims = volume::check(&sight.pod.claims, node).pinned;
            (!claims.is_empty()).then_some(Reason::LocalVolume { claims })
        }),
        otherwise: |sight| match claims(sight) {
            Some(claims) => format!("None that could be read is bound to the node: {claims}."),
            None => "It uses no claim.".to_owned(),
        },
    },
    Rule {
        asks: "Could a claim or its volume not be verified?",
        asks_volumes: true,
        holds: Holds::OnNode(|sight, node| {
            let claims = volume::check(&sight.pod.claims, node).unverified;
            (!claims.is_empty()).then_some(Reason::VolumeUnverified { claims })
        }),
        otherwise: |sight| match claims(sight) {
            Some(claims) => format!("Each was read: {claims}."),
            None => "It uses no claim.".to_owned(),
        },
    },
    Rule {
        asks: "Is its owner's kind one of --manual-owner-kind?",
        asks_volumes: true,
        holds: Holds::Always(|sight| {
            let owner = sight.pod.owner.as_ref()?;
            let mut kinds = sight.policy.manual_owner_kinds.iter();
            let listed = kinds.any(|kind| kind.eq_ignore_ascii_case(&owner.kind));
            listed.then(|| Reason::OwnerKind { owner: owner.clone() })
        }),
        otherwise: |sight| {
            let kind = sight.pod.owner.as_ref().map_or("nobody's", |owner| &owner.kind);
            match sight.policy.manual_owner_kinds.join(", ") {
                none if none.is_empty() => format!("It is {kind}; --manual-owner-kind names no kind."),
                kinds => format!("It is {kind}; --manual-owner-kind names {kinds}."),
            }
        },
    },
    Rule {
        asks: "Does nothing bind it to its node?",
        asks_volumes: true,
        holds: Holds::OnNode(|sight, node| {
            Some(Reason::Stuck { confined: volume::check(&sight.pod.claims, node).confined })
        }),
        otherwise: |_| String::new(),
    },
];

fn opted_out(sight: &Sight<'_>) -> Option<Reason> {
    let who = if sight.pod.opted_out {
        Optout::Pod
    } else if sight.pod.namespace_opted_out == Ok(true) {
        Optout::Namespace
    } else if sight.known().is_some_and(|node| node.opted_out) {
        Optout::Node
    } else {
        return None;
    };
    Some(Reason::OptedOut(who))
}

fn node_gone(sight: &Sight<'_>) -> Option<Reason> {
    match (&sight.pod.node, sight.node) {
        (None, _) => Some(Reason::NodeGone { node: None }),
        (Some(name), Some(NodeRead::Gone)) => Some(Reason::NodeGone { node: Some(name.clone()) }),
        _ => None,
    }
}

fn facts_unread(sight: &Sight<'_>) -> Option<Reason> {
    let Some(node) = sight.known() else {
        return Some(sight.node_unread());
    };
    if let Err(unread) = &sight.pod.namespace_opted_out {
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

fn node_recovering(sight: &Sight<'_>, node: &NodeFacts) -> Option<Reason> {
    match &node.lease {
        Ok(Some(lease)) if node.ready == Ready::Unknown && lease.holds_at(sight.now) => {
            let age = lease.renewed.map(|renewed| sight.now.duration_since(renewed));
            Some(Reason::NodeRecovering { lease_age: age.unwrap_or_default() })
        }
        _ => None,
    }
}

fn node_just_failed(sight: &Sight<'_>, node: &NodeFacts) -> Option<Reason> {
    if node.ready == Ready::True {
        // Since when it is Ready says nothing here.
        return None;
    }
    let threshold = sight.policy.node_not_ready_for;
    let not_ready_for = node.ready_since.map(|since| sight.now.duration_since(since));
    let just = not_ready_for.is_none_or(|not_ready_for| not_ready_for < threshold);
    just.then_some(Reason::NodeJustFailed { not_ready_for, threshold })
}

fn unheld(sight: &Sight<'_>) -> String {
    if sight.pod.held_by_job() {
        "Only the Job controller's finalizer is on it, which a reap has released.".to_owned()
    } else {
        "It has no finalizer.".to_owned()
    }
}

/// The names of its claims, where it has any.
fn claims(sight: &Sight<'_>) -> Option<String> {
    let names = sight.pod.claims.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>();
    (!names.is_empty()).then(|| names.join(", "))
}
