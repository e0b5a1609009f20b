//! The rules, in their order: each by itself, so that one that comes late can be asked although an early one holds.

use std::cell::OnceCell;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    Policy, Verdict,
    answer::Failure,
    code::ReasonCode,
    life::counts_for,
    reason::{ConfinedClaim, PinnedClaim, Reason, Ties},
    volume,
};
use crate::{
    facts::{
        ClaimState, ClusterFacts, KubeletAlive, Leaf, LeafKind, NodeFacts, NodeRead, Owner,
        PodFacts, Ready, SignBy,
    },
    words::spoken,
};

/// A pod on its node at a moment: what the rules are asked about.
pub struct Case<'a> {
    now: Timestamp,
    pub(super) policy: &'a Policy,
    node: Option<&'a NodeRead>,
    pub(super) pod: &'a PodFacts,
    /// What its claims bind it to, once that was asked.
    claims: OnceCell<Ties>,
}

/// What a rule found.
pub(super) enum Finding {
    Holds(Reason),
    Not,
    /// It asks about the node, which could not be read. That never permits a delete.
    NodeUnknown,
    /// It asks about the pod's claims, about which nothing was asked. Nor does that.
    ClaimsUnknown,
}

/// How far judging has come. Claims are looked up only of pods that the rules before [`Stage::Storage`] let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Whether the pod is to be judged, and its node certainly dead.
    Node,
    /// What holds the pod beside its kubelet.
    Finalizers,
    /// What a person has to decide before it may go: mostly about its storage.
    Storage,
    /// Nothing speaks against it.
    Reap,
}

/// One rule.
pub(super) struct Rule {
    pub stage: Stage,
    /// The reasons that it can give.
    pub gives: &'static [ReasonCode],
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
    OnNode(fn(&Failure<'_>) -> Option<Reason>),
    /// It needs what was found about the claims besides.
    OnClaims(fn(&Case<'_>, &Failure<'_>, &Ties) -> Option<Reason>),
}

impl Rule {
    pub fn finding(&self, case: &Case<'_>) -> Finding {
        let reason = match (&self.holds, case.failure(), case.claims()) {
            (Holds::Always(holds), ..) => holds(case),
            // It asks about a node that there is not.
            (_, None, _) if case.nowhere() => None,
            (_, None, _) => return Finding::NodeUnknown,
            (Holds::OnNode(holds), Some(failure), _) => holds(&failure),
            (Holds::OnClaims(holds), Some(failure), Some(claims)) => holds(case, &failure, claims),
            (Holds::OnClaims(_), _, None) => return Finding::ClaimsUnknown,
        };
        reason.map_or(Finding::Not, Finding::Holds)
    }
}

impl<'a> Case<'a> {
    /// `pod` as it is judged by `facts`.
    pub fn of(facts: &'a ClusterFacts, policy: &'a Policy, pod: &'a PodFacts) -> Self {
        Self::new(facts.now, policy, facts.node_of(pod), pod)
    }

    /// `pod` as it is judged at `now`. `node` is what was read of the pod's node, `None` where nothing was.
    pub fn new(
        now: Timestamp,
        policy: &'a Policy,
        node: Option<&'a NodeRead>,
        pod: &'a PodFacts,
    ) -> Self {
        Self {
            now,
            policy,
            node,
            pod,
            claims: OnceCell::new(),
        }
    }

    /// What its claims bind it to; `None` where nothing was asked about them, or there is no look at the node.
    fn claims(&self) -> Option<&Ties> {
        let (failure, claims) = (self.failure()?, self.pod.claims.known()?);
        let check = || volume::check(&failure, claims);
        Some(self.claims.get_or_init(check))
    }

    fn known(&self) -> Option<&'a NodeFacts> {
        self.node.and_then(NodeRead::known)
    }

    /// Whether there is no node that it could be on.
    fn nowhere(&self) -> bool {
        self.pod.node.is_none() || matches!(self.node, Some(NodeRead::Gone))
    }

    /// Its node's failure, where there is a look at the node.
    pub fn failure(&self) -> Option<Failure<'a>> {
        Some(Failure {
            now: self.now,
            policy: self.policy,
            node: self.known()?,
            pod: Some(self.pod),
        })
    }

    /// The reason where there is no look at the node.
    pub(super) fn node_unread(&self) -> Reason {
        let why = match self.node {
            Some(NodeRead::Unread(unread)) => &unread.0,
            _ => "it was not looked up",
        };
        Reason::unread(&format!("the node: {why}"))
    }

    fn node_name(&self) -> &'a str {
        self.pod.node.as_deref().unwrap_or("its node")
    }

    fn ready(&self) -> String {
        match self.known() {
            Some(NodeFacts {
                ready,
                ready_reason: Some(reason),
                ..
            }) => {
                format!("Node {}'s Ready is {ready} ({reason}).", self.node_name())
            }
            Some(node) => format!("Node {}'s Ready is {}.", self.node_name(), node.ready),
            None if self.nowhere() => NOWHERE.to_owned(),
            None => format!("It is not known whether {} is Ready.", self.node_name()),
        }
    }
}

const NOWHERE: &str = "There is no node to ask about.";

/// In the order in which they are asked. People know them by their place in it.
pub(super) static RULES: &[Rule] = &[
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::MirrorPod],
        asks: "Is it the mirror of a static pod?",
        holds: Holds::Always(|case| {
            let owned = "It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that.";
            case.pod
                .mirror
                .then(|| Reason::new(ReasonCode::MirrorPod, owned))
        }),
        otherwise: |_| "It does not carry the annotation kubernetes.io/config.mirror.".to_owned(),
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::OptedOut],
        asks: "Is the pod, its namespace or its node opted out?",
        holds: Holds::Always(opted_out),
        otherwise: |_| {
            "Nothing opts it out by pod-reaper.io/skip, as far as could be read.".to_owned()
        },
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::NodeGone],
        asks: "Is its node gone, and no finalizer but the Job controller's left?",
        holds: Holds::Always(|case| {
            // Finalizers hold it, whoever deletes it.
            let held = !case.pod.foreign_finalizers().is_empty();
            let gone = match &case.pod.node {
                Some(node) => format!("Node {node} no longer exists"),
                None => "It was never assigned to a node".to_owned(),
            };
            let says = format!("{gone}; the pod garbage collector takes care of it.");
            (case.nowhere() && !held).then(|| Reason::new(ReasonCode::NodeGone, says))
        }),
        otherwise: |case| match case.known() {
            Some(node) => format!("Node {} exists.", node.name),
            None if case.nowhere() => {
                "Its node is gone, but the garbage collector cannot remove what finalizers hold."
                    .to_owned()
            }
            None => format!("It is not known whether {} exists.", case.node_name()),
        },
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::NodeReady],
        asks: "Is its node Ready?",
        holds: Holds::Always(|case| {
            let is_ready = case.known()?.ready == Ready::True;
            let says = "Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet.";
            is_ready.then(|| Reason::new(ReasonCode::NodeReady, says))
        }),
        otherwise: |case| case.ready(),
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::NotOverdue],
        asks: "Is it overdue by less than --reap-older-than?",
        holds: Holds::Always(|case| {
            let (overdue, threshold) = (case.pod.overdue(case.now), case.policy.reap_older_than);
            if overdue >= threshold {
                return None;
            }
            let stuck = spoken(threshold);
            let says = if overdue.is_negative() {
                format!(
                    "It is within its grace period for another {}; it counts as stuck {stuck} after that.",
                    spoken(-overdue)
                )
            } else {
                let overdue = spoken(overdue);
                format!("It is overdue by {overdue} and counts as stuck from {stuck} on.")
            };
            Some(Reason::new(ReasonCode::NotOverdue, says))
        }),
        otherwise: |case| {
            let overdue = spoken(case.pod.overdue(case.now));
            format!(
                "It is {overdue} overdue; --reap-older-than is {}.",
                spoken(case.policy.reap_older_than)
            )
        },
    },
    Rule {
        stage: Stage::Node,
        gives: &[
            ReasonCode::KosmosLeaf,
            ReasonCode::VirtualNode,
            ReasonCode::EdgeNode,
            ReasonCode::LeafNode,
        ],
        asks: "Is its node a leaf node?",
        holds: Holds::Always(|case| case.known()?.leaf.as_ref().map(leaf_node)),
        otherwise: |case| match case.known() {
            Some(NodeFacts { name, .. }) => format!(
                "Node {name} carries no mark of a virtual or edge node, nor does --leaf-node-selector select it."
            ),
            None if case.nowhere() => NOWHERE.to_owned(),
            None => format!(
                "It is not known whether {} carries a mark.",
                case.node_name()
            ),
        },
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::FactsUnread],
        asks: "Could a needed fact not be read?",
        holds: Holds::Always(facts_unread),
        otherwise: |_| "The node, the namespace and, where needed, the lease were read.".to_owned(),
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::NodeRecovering],
        asks: "Is its node recovering: silent, but with a lease that was renewed since it is NotReady?",
        holds: Holds::OnNode(node_recovering),
        otherwise: |case| match case.known() {
            Some(node) if SILENT.contains(&node.ready) => match node.heard_by(SignBy::Lease) {
                Some(lease) => {
                    let ago = spoken(case.now.duration_since(lease.at).max(SignedDuration::ZERO));
                    let since = node.not_ready_since(case.now);
                    let when = match since {
                        Some(since) if lease.at > since => "after it became NotReady",
                        _ => "before it became NotReady",
                    };
                    format!("The node's lease was renewed {ago} ago, {when}.")
                }
                None => "The node's lease was never renewed.".to_owned(),
            },
            _ => format!("The lease does not matter here. {}", case.ready()),
        },
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::NodeJustFailed],
        asks: "Has its node been NotReady for less than --node-not-ready-for?",
        holds: Holds::OnNode(node_just_failed),
        otherwise: |case| {
            let node = case.known().filter(|node| node.ready != Ready::True);
            let since = node.and_then(|node| node.not_ready_since(case.now));
            let Some(since) = since else {
                return case.ready();
            };
            let (time, asked) = (
                case.now.duration_since(since),
                case.policy.node_not_ready_for,
            );
            format!(
                "It has been NotReady for {}; --node-not-ready-for is {}.",
                spoken(time),
                spoken(asked)
            )
        },
    },
    Rule {
        stage: Stage::Node,
        gives: &[ReasonCode::KubeletAlive],
        asks: "Does its node show a sign of life that protects it?",
        holds: Holds::OnNode(kubelet_alive),
        otherwise: |case| {
            let Some(failure) = case.failure() else {
                return NOWHERE.to_owned();
            };
            let signs = failure.signs().join(", ");
            match case.policy.kubelet_alive {
                _ if signs.is_empty() => failure.last_heard(),
                KubeletAlive::Reap => {
                    format!("--kubelet-alive=reap protects no pod, although {signs}.")
                }
                _ => format!("A second copy may run beside it, although {signs}."),
            }
        },
    },
    Rule {
        stage: Stage::Finalizers,
        gives: &[ReasonCode::AlreadyForced],
        asks: "Was it already force-deleted, and do finalizers still hold it?",
        holds: Holds::Always(|case| {
            let finalizers = case.pod.foreign_finalizers();
            let forced =
                case.pod.grace_seconds == Some(0) && !case.pod.finished && !finalizers.is_empty();
            let says = format!(
                "It was already force-deleted and is held by {}; another delete would change nothing.",
                listed(&finalizers)
            );
            forced.then(|| Reason::new(ReasonCode::AlreadyForced, says))
        }),
        otherwise: |case| match case.pod.grace_seconds {
            Some(0) if !case.pod.foreign_finalizers().is_empty() => {
                "It has finished, so it was given no grace period even without force.".to_owned()
            }
            Some(0) => unheld(case),
            _ => "It was not force-deleted yet.".to_owned(),
        },
    },
    Rule {
        stage: Stage::Finalizers,
        gives: &[ReasonCode::Finalizers],
        asks: "Is it held by finalizers other than the Job controller's?",
        holds: Holds::Always(|case| {
            let finalizers = case.pod.foreign_finalizers();
            let says = format!(
                "It is held by {}, whose controller has work to do before the pod can go.",
                listed(&finalizers)
            );
            (!finalizers.is_empty()).then(|| Reason::new(ReasonCode::Finalizers, says))
        }),
        otherwise: unheld,
    },
    Rule {
        stage: Stage::Storage,
        gives: &[ReasonCode::LocalVolume],
        asks: "Is its storage on the node?",
        holds: Holds::OnClaims(|case, _, claims| {
            if claims.pinned.is_empty() {
                return None;
            }
            // Claims are given up only where nothing else would keep the pod.
            let others = RULES.iter().filter(|rule| {
                rule.stage == Stage::Storage && !rule.gives.contains(&ReasonCode::LocalVolume)
            });
            let other = others
                .map(|rule| rule.finding(case))
                .find_map(|finding| match finding {
                    Finding::Holds(reason) => Some(format!("{} would hold it anyway", reason.code)),
                    Finding::Not | Finding::NodeUnknown | Finding::ClaimsUnknown => None,
                });
            let mut pinned = claims.pinned.iter();
            let not_given = pinned.find_map(|claim| claim.given_up.clone().err());
            let kept = not_given.or(other)?;
            let declared = case.policy.reap_scratch || volume::any_answer(case.pod);
            let each = claims.pinned.iter().map(|it| {
                let PinnedClaim {
                    claim,
                    volume,
                    bond,
                    ..
                } = it;
                format!("claim {claim} is bound to volume {volume} ({bond})")
            });
            let mut says = format!("Its storage is on the dead node: {}.", joined(each));
            if declared {
                says += &format!(" It is not given up: {kept}.");
            }
            Some(Reason {
                ties: Ties {
                    pinned: claims.pinned.clone(),
                    ..Ties::default()
                },
                ..Reason::new(ReasonCode::LocalVolume, says)
            })
        }),
        otherwise: |case| of_claims(case, "No claim that could be read keeps it on the node"),
    },
    Rule {
        stage: Stage::Storage,
        gives: &[ReasonCode::VolumeConfined],
        asks: "Is its storage out of reach of every other node?",
        holds: Holds::OnClaims(|case, failure, claims| {
            let answered = || failure.may_go() && !case.pod.may_own_a_claim();
            let each = claims.confined.iter().map(|it| {
                let ConfinedClaim {
                    claim,
                    volume,
                    place,
                } = it;
                format!("claim {claim} is bound to volume {volume}, which needs {place}")
            });
            let says = format!("No other node can reach its storage: {}.", joined(each));
            (!claims.confined.is_empty() && !answered()).then(|| Reason {
                ties: Ties {
                    confined: claims.confined.clone(),
                    ..Ties::default()
                },
                ..Reason::new(ReasonCode::VolumeConfined, says)
            })
        }),
        otherwise: |case| {
            let seen = "No claim that could be read is confined to the node";
            passed_or(case, |claims| claims.confined.is_empty(), seen)
        },
    },
    Rule {
        stage: Stage::Storage,
        gives: &[ReasonCode::VolumeUnverified],
        asks: "Is a claim or its volume unverified?",
        holds: Holds::OnClaims(|case, failure, claims| {
            let answered =
                || failure.may_go() && !case.pod.may_own_a_claim() && failure.fenced().is_some();
            let each = claims
                .unverified
                .iter()
                .map(|it| format!("claim {}: {}", it.claim, it.cause));
            let each = joined(each);
            let says = format!("It is unverified whether its storage is on the dead node: {each}.");
            (!claims.unverified.is_empty() && !answered()).then(|| Reason {
                ties: Ties {
                    unverified: claims.unverified.clone(),
                    ..Ties::default()
                },
                ..Reason::new(ReasonCode::VolumeUnverified, says)
            })
        }),
        otherwise: |case| {
            passed_or(
                case,
                |claims| claims.unverified.is_empty(),
                "Each claim was read",
            )
        },
    },
    Rule {
        stage: Stage::Storage,
        gives: &[ReasonCode::SharedDisk],
        asks: "Could two machines write to its disk, and is its node not fenced?",
        holds: Holds::OnClaims(|case, failure, _| {
            let what = shared_disk(case.pod)?;
            let says = format!(
                "Two machines could write to its disk at once ({what}), and its node is not certainly off."
            );
            let open = failure.fenced().is_none();
            open.then(|| Reason::new(ReasonCode::SharedDisk, says))
        }),
        otherwise: |case| match case.failure().map(|failure| failure.fenced()) {
            _ if shared_disk(case.pod).is_none() => {
                "It has no disk that several machines could write to at once.".to_owned()
            }
            Some(Some(mark)) => format!("Its node is certainly off: {mark}."),
            Some(None) => "Its node is not fenced.".to_owned(),
            None => NOWHERE.to_owned(),
        },
    },
    Rule {
        stage: Stage::Storage,
        gives: &[ReasonCode::OwnerKind],
        asks: "Is the kind of its owner, or of the workload above it, one of --manual-owner-kind?",
        holds: Holds::Always(|case| {
            let mut owners = owners(case.pod);
            let owner = owners.find(|owner| case.policy.flags(&owner.kind))?;
            let answered = case.failure().is_some_and(|failure| failure.may_go());
            let Owner { kind, name } = owner;
            let says =
                format!("It belongs to {kind}/{name}, and --manual-owner-kind names that kind.");
            (!answered).then(|| Reason::new(ReasonCode::OwnerKind, says))
        }),
        otherwise: |case| {
            let flags = |owner: &Owner| case.policy.flags(&owner.kind);
            if owners(case.pod).any(flags) {
                return PASSED.to_owned();
            }
            let of = owners(case.pod)
                .map(|owner| format!("a {}", owner.kind))
                .collect_vec();
            let of = if of.is_empty() {
                "no owner"
            } else {
                &of.join(", which belongs to ")
            };
            let flagged = case.policy.manual_owner_kinds.join(", ");
            let flagged = if flagged.is_empty() {
                "no kind"
            } else {
                &flagged
            };
            format!("It belongs to {of}; --manual-owner-kind names {flagged}.")
        },
    },
    Rule {
        stage: Stage::Reap,
        gives: &[ReasonCode::Stuck, ReasonCode::Scratch, ReasonCode::Answered],
        asks: "Does nothing bind it to its node?",
        holds: Holds::OnClaims(|case, failure, claims| {
            let node = &failure.node.name;
            let (given_up, mut notes) = (claims.pinned.clone(), claims.notes.clone());
            notes.extend(given_up.iter().map(|PinnedClaim { claim, volume, reclaim_policy, .. }| {
                let policy = reclaim_policy.as_deref().unwrap_or("none");
                format!(
                    "claim {claim} is deleted and recreated, empty; its volume {volume} stays behind, Released, until it is \
                     cleaned up (reclaim policy {policy}), and a storage class that binds at once may choose {node} again"
                )
            }));
            if case.pod.controller.is_none() {
                notes.push("nothing brings it back: it has no controller".to_owned());
            }
            let signs = failure.signs().join(", ");
            if !signs.is_empty() {
                notes.push(format!(
                    "its containers there may still run until node {node} is repaired or powered off: {signs}"
                ));
            }
            let code = if answered(case, failure, &given_up) {
                ReasonCode::Answered
            } else if given_up.is_empty() {
                ReasonCode::Stuck
            } else {
                ReasonCode::Scratch
            };
            let mut names = given_up.iter().map(|claim| claim.claim.as_str());
            let except = match names.join(", ").as_str() {
                "" => String::new(),
                names => {
                    format!(" except claims that are given up, which are deleted first: {names}")
                }
            };
            let says = format!(
                "It is stuck Terminating on a NotReady node and nothing binds it there{except}."
            );
            Some(Reason {
                ties: Ties {
                    pinned: given_up,
                    notes,
                    ..Ties::default()
                },
                ..Reason::new(code, says)
            })
        }),
        otherwise: |_| String::new(),
    },
];

/// Whether a person's answer let `case` pass a rule: without its answers, one would hold.
fn answered(case: &Case<'_>, failure: &Failure<'_>, given_up: &[PinnedClaim]) -> bool {
    let without = || {
        let node = NodeRead::Known(NodeFacts {
            powered_off: None,
            ..failure.node.clone()
        });
        let pod = PodFacts {
            reap: None,
            ..case.pod.clone()
        };
        Case::new(case.now, case.policy, Some(&node), &pod).decide()
    };
    given_up.iter().any(|claim| claim.answered)
        || (failure.may_go() || failure.is_powered_off()) && without().verdict() != Verdict::Reap
}

fn opted_out(case: &Case<'_>) -> Option<Reason> {
    let namespace = case.pod.namespace_opted_out.as_ref().ok();
    let node = case.known().and_then(|node| node.opted_out.as_ref());
    let mut carriers = [
        ("The pod", case.pod.opted_out.as_ref()),
        ("Its namespace", namespace.and_then(Option::as_ref)),
        ("Its node", node),
    ]
    .into_iter();
    let (who, value) = carriers.find_map(|(who, value)| Some((who, value?)))?;
    let odd = match value.as_str() {
        "true" => String::new(),
        odd => format!(" Its value {odd:?} is neither true nor false, and counts as true."),
    };
    let says = format!("{who} is opted out by pod-reaper.io/skip.{odd}");
    Some(Reason::new(ReasonCode::OptedOut, says))
}

fn leaf_node(leaf: &Leaf) -> Reason {
    let Leaf {
        kind,
        maker,
        marks,
        cluster,
    } = leaf;
    let is_cut = "There, NotReady mostly means that the link is cut";
    let (code, what, means) = match kind {
        LeafKind::Kosmos => {
            let what = match cluster {
                Some(cluster) => format!("stands for the Kosmos leaf cluster {cluster}"),
                None => "is a Kosmos leaf node and stands for another cluster".to_owned(),
            };
            (ReasonCode::KosmosLeaf, what, is_cut)
        }
        LeafKind::Virtual => (
            ReasonCode::VirtualNode,
            format!("is a virtual node of {maker}, not a machine"),
            "There, NotReady means that the program that runs its pods does not report",
        ),
        LeafKind::Edge => (
            ReasonCode::EdgeNode,
            format!("is an edge node of {maker}"),
            "It keeps working without its cluster, so NotReady means that the link is cut",
        ),
        LeafKind::Selected => (
            ReasonCode::LeafNode,
            "matches --leaf-node-selector".to_owned(),
            is_cut,
        ),
    };
    let marks = marks.join(", ");
    let says = format!("Its node {what} (seen: {marks}). {means}: the pod may well be running.");
    Reason::new(code, says)
}

fn facts_unread(case: &Case<'_>) -> Option<Reason> {
    if case.nowhere() {
        return None;
    }
    let Some(node) = case.known() else {
        return Some(case.node_unread());
    };
    if let Err(unread) = &case.pod.namespace_opted_out {
        return Some(Reason::unread(&format!("the namespace: {}", unread.0)));
    }
    // A kubelet that says False was heard: nothing that its lease says could change a verdict.
    match &node.unheard {
        Some(unread) if SILENT.contains(&node.ready) => {
            Some(Reason::unread(&format!("the node's lease: {}", unread.0)))
        }
        _ => None,
    }
}

/// What `Ready` is where the kubelet says nothing.
const SILENT: [Ready; 2] = [Ready::Unknown, Ready::Absent];

/// A kubelet that renews its lease may be about to report. One that still has not after so many times the time for which a
/// renewal counts will not.
const RECOVERS_WITHIN: i32 = 12;

fn node_recovering(failure: &Failure<'_>) -> Option<Reason> {
    let Failure {
        now, policy, node, ..
    } = *failure;
    let (lease, since) = node
        .heard_by(SignBy::Lease)
        .zip(node.not_ready_since(now))?;
    let (age, counts) = (now.duration_since(lease.at), counts_for(lease, policy));
    let recovers = SILENT.contains(&node.ready)
        && lease.at > since
        && age < counts
        && now.duration_since(since) < counts.saturating_mul(RECOVERS_WITHIN);
    if !recovers {
        return None;
    }
    let says = format!(
        "The node's lease was renewed {} ago, after the node became NotReady: its kubelet may be about to report.",
        spoken(age.max(SignedDuration::ZERO))
    );
    Some(Reason::new(ReasonCode::NodeRecovering, says))
}

fn node_just_failed(failure: &Failure<'_>) -> Option<Reason> {
    let Failure {
        now, policy, node, ..
    } = *failure;
    if node.ready == Ready::True {
        // Since when it is Ready says nothing here.
        return None;
    }
    let threshold = policy.node_not_ready_for;
    let since = node.not_ready_since(now);
    let not_ready_for = since.map(|since| now.duration_since(since));
    let says = match not_ready_for {
        Some(time) if time >= threshold => return None,
        Some(time) => format!(
            "The node has been NotReady for only {}; --node-not-ready-for is {}.",
            spoken(time.max(SignedDuration::ZERO)),
            spoken(threshold)
        ),
        None => "The node is NotReady, but does not say since when.".to_owned(),
    };
    Some(Reason::new(ReasonCode::NodeJustFailed, says))
}

fn kubelet_alive(failure: &Failure<'_>) -> Option<Reason> {
    let signs = failure.signs();
    let protected = failure.policy.protects(failure.pod?) && !signs.is_empty();
    let says = format!(
        "The node's Ready is {}, but its machine is alive: {}. The pod's containers most likely still run.",
        failure.node.ready,
        signs.join(", ")
    );
    protected.then(|| Reason::new(ReasonCode::KubeletAlive, says))
}

/// What of `pod` two machines could write at once, as a phrase.
pub fn shared_disk(pod: &PodFacts) -> Option<String> {
    let mut claims = pod.claims.known().into_iter().flatten();
    let of_claim = claims.find_map(|claim| match &claim.state {
        ClaimState::Bound {
            shared_disk: true, ..
        } => Some(format!(
            "claim {} is ReadWriteMany and a raw block device",
            claim.name
        )),
        ClaimState::Bound { volume, .. } => {
            let disk = volume.disk?;
            Some(format!(
                "volume {} of claim {} is {disk}, which locks no other machine out",
                volume.name, claim.name
            ))
        }
        _ => None,
    });
    let of_pod = || {
        pod.own_disk
            .as_ref()
            .map(|disk| format!("{disk}, which locks no other machine out"))
    };
    of_claim.or_else(of_pod).or_else(|| {
        let Owner { kind, name } = pod.owner.as_ref()?;
        let machine = kind == VIRTUAL_MACHINE || kind == "Pod" && name.starts_with(LAUNCHER_PREFIX);
        machine.then(|| format!("it belongs to the virtual machine {name}"))
    })
}

/// The kind that makes `KubeVirt`'s pods; its disks are shared for live migration.
const VIRTUAL_MACHINE: &str = "VirtualMachineInstance";
/// Names of those pods begin so. One that hands them a disk while they run belongs to them.
const LAUNCHER_PREFIX: &str = "virt-launcher-";

/// What made `pod`, and the workload above that where it is another object.
fn owners(pod: &PodFacts) -> impl Iterator<Item = &Owner> {
    let above = pod
        .workload
        .as_ref()
        .filter(|workload| Some(*workload) != pod.owner.as_ref());
    pod.owner.iter().chain(above)
}

fn listed(finalizers: &[String]) -> String {
    let noun = if finalizers.len() == 1 {
        "finalizer"
    } else {
        "finalizers"
    };
    format!("{noun} {}", finalizers.join(", "))
}

fn joined(mut phrases: impl Iterator<Item = String>) -> String {
    phrases.join("; ")
}

fn unheld(case: &Case<'_>) -> String {
    if case.pod.held_by_job() {
        "Its only finalizer is the Job controller's, which is released when the pod is reaped."
            .to_owned()
    } else {
        "It has no finalizer.".to_owned()
    }
}

const PASSED: &str = "A person's answer lets it pass: pod-reaper.io/reap on the pod.";

/// Why a rule about claims does not hold: by a person's answer, unless there was `none` to hold for.
fn passed_or(case: &Case<'_>, none: fn(&Ties) -> bool, seen: &str) -> String {
    if case.claims().is_none_or(none) {
        of_claims(case, seen)
    } else {
        PASSED.to_owned()
    }
}

/// What was seen of its claims, with their names.
fn of_claims(case: &Case<'_>, seen: &str) -> String {
    let names = case.pod.claims.named().map(|(name, _)| name).collect_vec();
    if names.is_empty() {
        "It uses no claim.".to_owned()
    } else {
        format!("{seen}: {}.", names.join(", "))
    }
}
