//! Every reason a verdict can have: its code, its verdict and its sentence, each in one place.

use jiff::{SignedDuration, Timestamp};

use super::code::{ReasonCode, Verdict};
use crate::facts::{Doubt, Leaf, LeafKind, Owner, Ready, ResourceVersion, Sign, SignBy, Uid};
use crate::words::spoken;

/// Why a pod got its verdict, with what was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Rule 1.
    MirrorPod,
    /// Rule 2.
    OptedOut {
        /// Who is.
        who: Optout,
        /// The value of `pod-reaper.io/skip` there.
        value: String,
    },
    /// Rule 3. `None`: the pod was never given a node.
    NodeGone {
        /// The node that does not exist.
        node: Option<String>,
    },
    /// Rule 4.
    NodeReady,
    /// Rule 5.
    NotOverdue {
        /// How long past its deadline it is; negative while within grace.
        overdue: SignedDuration,
        /// How long it would have to be.
        threshold: SignedDuration,
    },
    /// Rule 6.
    LeafNode(Leaf),
    /// Rule 7: what could not be read, and why.
    FactsUnread(String),
    /// Rule 8.
    NodeRecovering {
        /// How long ago the lease was renewed.
        lease_age: SignedDuration,
    },
    /// Rule 9.
    NodeJustFailed {
        /// How long the node has been NotReady, where that is known.
        not_ready_for: Option<SignedDuration>,
        /// How long it would have to be.
        threshold: SignedDuration,
    },
    /// Rule 10.
    KubeletAlive {
        /// What the node's `Ready` is.
        ready: Ready,
        /// What shows that its machine lives, as phrases, at least one.
        signs: Vec<String>,
    },
    /// Rule 11.
    AlreadyForced {
        /// What still holds the pod.
        finalizers: Vec<String>,
    },
    /// Rule 12.
    Finalizers {
        /// What holds the pod.
        finalizers: Vec<String>,
    },
    /// Rule 13.
    LocalVolume {
        /// The claims bound to the node, at least one.
        claims: Vec<PinnedClaim>,
        /// Why they are not given up, where that was declared or answered, as a phrase.
        kept: Option<String>,
    },
    /// Rule 14.
    VolumeConfined {
        /// The claims whose volumes no other node can reach, at least one.
        claims: Vec<ConfinedClaim>,
    },
    /// Rule 15.
    VolumeUnverified {
        /// The unverified claims, at least one.
        claims: Vec<UnverifiedClaim>,
    },
    /// Rule 16: what two machines could write, as a phrase.
    SharedDisk(String),
    /// Rule 17.
    OwnerKind {
        /// The owner, or the workload above it, of that kind.
        owner: Owner,
    },
    /// Rule 18.
    Stuck {
        /// The claims to give up before it: scratch, or answered.
        given_up: Vec<PinnedClaim>,
        /// A person's answer let it pass a rule.
        answered: bool,
        /// What to remember once it is reaped, as phrases.
        notes: Vec<String>,
    },
}

/// Who carries the opt-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optout {
    /// The pod.
    Pod,
    /// Its namespace.
    Namespace,
    /// Its node.
    Node,
}

/// A claim whose volume only the dead node can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedClaim {
    /// The claim.
    pub claim: String,
    /// Its UID, so that the printed command cannot hit a namesake.
    pub claim_uid: Uid,
    /// Its volume.
    pub volume: String,
    /// The volume's reclaim policy: what becomes of the data.
    pub reclaim_policy: Option<String>,
    /// How the volume is bound to the node, as a phrase.
    pub bond: String,
    /// The claim's resource version, where it is given up in that version; else why it is not, as a phrase.
    pub given_up: Result<ResourceVersion, String>,
    /// A person's answer gives it up.
    pub answered: bool,
    /// What stands against giving it up.
    pub doubt: Option<Doubt>,
}

/// A claim whose volume no node but the dead one can reach, though it may not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedClaim {
    /// The claim.
    pub claim: String,
    /// Its volume.
    pub volume: String,
    /// What the volume asks of a node, as a phrase.
    pub place: String,
}

/// A claim whose volume could not be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedClaim {
    /// The claim.
    pub claim: String,
    /// The volume that it names and that does not exist.
    pub missing_volume: Option<String>,
    /// What is wrong, as a phrase.
    pub cause: String,
}

impl Reason {
    /// What should be done.
    pub fn verdict(&self) -> Verdict {
        self.code().verdict()
    }

    /// Its kind.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::MirrorPod => ReasonCode::MirrorPod,
            Self::OptedOut { .. } => ReasonCode::OptedOut,
            Self::NodeGone { .. } => ReasonCode::NodeGone,
            Self::NodeReady => ReasonCode::NodeReady,
            Self::NotOverdue { .. } => ReasonCode::NotOverdue,
            Self::LeafNode(leaf) => match leaf.kind {
                LeafKind::Kosmos => ReasonCode::KosmosLeaf,
                LeafKind::Virtual => ReasonCode::VirtualNode,
                LeafKind::Edge => ReasonCode::EdgeNode,
                LeafKind::Selected => ReasonCode::LeafNode,
            },
            Self::FactsUnread(_) => ReasonCode::FactsUnread,
            Self::NodeRecovering { .. } => ReasonCode::NodeRecovering,
            Self::KubeletAlive { .. } => ReasonCode::KubeletAlive,
            Self::NodeJustFailed { .. } => ReasonCode::NodeJustFailed,
            Self::AlreadyForced { .. } => ReasonCode::AlreadyForced,
            Self::Finalizers { .. } => ReasonCode::Finalizers,
            Self::LocalVolume { .. } => ReasonCode::LocalVolume,
            Self::VolumeConfined { .. } => ReasonCode::VolumeConfined,
            Self::VolumeUnverified { .. } => ReasonCode::VolumeUnverified,
            Self::SharedDisk(_) => ReasonCode::SharedDisk,
            Self::OwnerKind { .. } => ReasonCode::OwnerKind,
            Self::Stuck { answered: true, .. } => ReasonCode::Answered,
            Self::Stuck { given_up, .. } if given_up.is_empty() => ReasonCode::Stuck,
            Self::Stuck { .. } => ReasonCode::Scratch,
        }
    }

    /// The claims that are given up with the pod.
    pub fn given_up(&self) -> &[PinnedClaim] {
        match self {
            Self::Stuck { given_up, .. } => given_up,
            _ => &[],
        }
    }

    /// The sentence that explains it to a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::MirrorPod => {
                "It mirrors a static pod, which its node's kubelet owns; deleting the mirror does not stop that."
                    .to_owned()
            }
            Self::OptedOut { who, value } => {
                let who = match who {
                    Optout::Pod => "The pod",
                    Optout::Namespace => "Its namespace",
                    Optout::Node => "Its node",
                };
                let odd = match value.as_str() {
                    "true" => String::new(),
                    odd => format!(" Its value {odd:?} is neither true nor false, and counts as true."),
                };
                format!("{who} is opted out by pod-reaper.io/skip.{odd}")
            }
            Self::NodeGone { node: None } => {
                "It was never assigned to a node; the pod garbage collector takes care of it.".to_owned()
            }
            Self::NodeGone { node: Some(node) } => {
                format!("Node {node} no longer exists; the pod garbage collector takes care of it.")
            }
            Self::NodeReady => {
                "Its node is Ready: the kubelet there is stopping it; if it does not, look at that kubelet."
                    .to_owned()
            }
            Self::NotOverdue { overdue, threshold } if overdue.is_negative() => format!(
                "It is within its grace period for another {}; it counts as stuck {} after that.",
                spoken(-*overdue),
                spoken(*threshold)
            ),
            Self::NotOverdue { overdue, threshold } => format!(
                "It is overdue by {} and counts as stuck from {} on.",
                spoken(*overdue),
                spoken(*threshold)
            ),
            Self::LeafNode(Leaf { kind, maker, marks, cluster }) => {
                let what = match (kind, cluster) {
                    (LeafKind::Kosmos, Some(cluster)) => {
                        &format!("stands for the Kosmos leaf cluster {cluster}")
                    }
                    (LeafKind::Kosmos, None) => "is a Kosmos leaf node and stands for another cluster",
                    (LeafKind::Virtual, _) => &format!("is a virtual node of {maker}, not a machine"),
                    (LeafKind::Edge, _) => &format!("is an edge node of {maker}"),
                    (LeafKind::Selected, _) => "matches --leaf-node-selector",
                };
                let means = match kind {
                    LeafKind::Virtual => "There, NotReady means that the program that runs its pods does not report",
                    LeafKind::Edge => {
                        "It keeps working without its cluster, so NotReady means that the link is cut"
                    }
                    LeafKind::Kosmos | LeafKind::Selected => "There, NotReady mostly means that the link is cut",
                };
                format!("Its node {what} (seen: {}). {means}: the pod may well be running.", marks.join(", "))
            }
            Self::FactsUnread(what) => unread(what),
            Self::NodeRecovering { lease_age } => format!(
                "The node's lease was renewed {} ago, after the node became NotReady: its kubelet may be about to report.",
                spoken((*lease_age).max(SignedDuration::ZERO))
            ),
            Self::KubeletAlive { ready, signs } => format!(
                "The node's Ready is {ready}, but its machine is alive: {}. The pod's containers most likely still run.",
                signs.join(", ")
            ),
            Self::NodeJustFailed { not_ready_for: Some(time), threshold } => format!(
                "The node has been NotReady for only {}; --node-not-ready-for is {}.",
                spoken((*time).max(SignedDuration::ZERO)),
                spoken(*threshold)
            ),
            Self::NodeJustFailed { not_ready_for: None, .. } => {
                "The node is NotReady, but does not say since when.".to_owned()
            }
            Self::AlreadyForced { finalizers } => format!(
                "It was already force-deleted and is held by {}; another delete would change nothing.",
                listed(finalizers)
            ),
            Self::Finalizers { finalizers } => format!(
                "It is held by {}, whose controller has work to do before the pod can go.",
                listed(finalizers)
            ),
            Self::LocalVolume { claims, kept } => {
                let each = claims.iter().map(|claim| {
                    format!("claim {} is bound to volume {} ({})", claim.claim, claim.volume, claim.bond)
                });
                let each = each.collect::<Vec<_>>().join("; ");
                let kept = kept.as_ref().map(|why| format!(" It is not given up: {why}."));
                format!("Its storage is on the dead node: {each}.{}", kept.unwrap_or_default())
            }
            Self::VolumeConfined { claims } => {
                let each = claims.iter().map(|ConfinedClaim { claim, volume, place }| {
                    format!("claim {claim} is bound to volume {volume}, which needs {place}")
                });
                format!("No other node can reach its storage: {}.", each.collect::<Vec<_>>().join("; "))
            }
            Self::SharedDisk(what) => format!(
                "Two machines could write to its disk at once ({what}), and its node is not certainly off."
            ),
            Self::VolumeUnverified { claims } => {
                let each = claims.iter().map(|claim| format!("claim {}: {}", claim.claim, claim.cause));
                let each = each.collect::<Vec<_>>().join("; ");
                format!("It is unverified whether its storage is on the dead node: {each}.")
            }
            Self::OwnerKind { owner: Owner { kind, name } } => {
                format!("It belongs to {kind}/{name}, and --manual-owner-kind names that kind.")
            }
            Self::Stuck { given_up, .. } => {
                let claims = given_up.iter().map(|claim| claim.claim.as_str()).collect::<Vec<_>>().join(", ");
                let binds = match claims.as_str() {
                    "" => String::new(),
                    claims => format!(" except claims that are given up, which are deleted first: {claims}"),
                };
                format!("It is stuck Terminating on a NotReady node and nothing binds it there{binds}.")
            }
        }
    }
}

/// What was reported from a node, with its age: "its kubelet renewed its lease 4s ago".
pub fn seen(Sign { by, at }: &Sign, now: Timestamp) -> String {
    let age = spoken(now.duration_since(*at).max(SignedDuration::ZERO));
    match by {
        SignBy::Lease => format!("its kubelet renewed its lease {age} ago"),
        SignBy::ApiServer => format!("its API server renewed its lease {age} ago"),
        SignBy::Kubelet => "its kubelet reports that itself".to_owned(),
        by => format!("{by} reported {age} ago"),
    }
}

/// When something was heard, and from whom: "4s ago (lease)".
pub fn heard(Sign { by, at }: &Sign, now: Timestamp) -> String {
    format!(
        "{} ago ({by})",
        spoken(now.duration_since(*at).max(SignedDuration::ZERO))
    )
}

/// The sentence for a needed fact that could not be read: `what`, and why.
pub fn unread(what: &str) -> String {
    format!(
        "A fact that the decision needs could not be read: {}.",
        what.trim_end_matches('.')
    )
}

fn listed(finalizers: &[String]) -> String {
    let noun = if finalizers.len() == 1 {
        "finalizer"
    } else {
        "finalizers"
    };
    format!("{noun} {}", finalizers.join(", "))
}
