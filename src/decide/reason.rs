//! Every reason a verdict can have: its code, its verdict and its sentence, each in one place.

use jiff::SignedDuration;

use crate::facts::{Leaf, Owner, Ready};

/// What should be done with a Terminating pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Force-delete it.
    Reap,
    /// Look again at the next run.
    Wait,
    /// It is somebody else's work.
    Leave,
    /// A person has to decide.
    Manual,
}

impl Verdict {
    /// The word in every report.
    pub fn code(self) -> &'static str {
        match self {
            Self::Reap => "reap",
            Self::Wait => "wait",
            Self::Leave => "leave",
            Self::Manual => "manual",
        }
    }
}

/// Why a pod got its verdict, with what was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Rule 1.
    MirrorPod,
    /// Rule 2.
    OptedOut(Optout),
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
    /// Rule 7, or nodes that could not be counted for the breaker: what could not be read, and why.
    FactsUnread(String),
    /// Rule 8.
    NodeRecovering {
        /// How long ago the lease was renewed.
        lease_age: SignedDuration,
    },
    /// Rule 9.
    KubeletAlive {
        /// What the node's `Ready` is.
        ready: Ready,
    },
    /// Rule 10.
    NodeJustFailed {
        /// How long the node has been NotReady, where that is known.
        not_ready_for: Option<SignedDuration>,
        /// How long it would have to be.
        threshold: SignedDuration,
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
    },
    /// Rule 14.
    VolumeUnverified {
        /// The claims nobody can vouch for, at least one.
        claims: Vec<UnverifiedClaim>,
    },
    /// Rule 15.
    OwnerKind {
        /// The owner of that kind.
        owner: Owner,
    },
    /// Rule 16.
    Stuck {
        /// Volumes that only some nodes can reach, as phrases.
        confined: Vec<String>,
    },
    /// The run-wide breaker: how many of which nodes are NotReady, as a phrase.
    MassOutage(String),
    /// The run-wide cap.
    OverCap {
        /// `--max-deletes`.
        cap: usize,
    },
}

/// Who carries the opt-out annotation.
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
    pub claim_uid: String,
    /// Its volume.
    pub volume: String,
    /// The volume's reclaim policy: what becomes of the data.
    pub reclaim_policy: Option<String>,
    /// How the volume is bound to the node, as a phrase.
    pub bond: String,
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
        match self {
            Self::MirrorPod
            | Self::OptedOut(_)
            | Self::NodeGone { .. }
            | Self::NodeReady
            | Self::KubeletAlive { .. } => Verdict::Leave,
            Self::NotOverdue { .. }
            | Self::FactsUnread(_)
            | Self::NodeRecovering { .. }
            | Self::NodeJustFailed { .. }
            | Self::MassOutage(_)
            | Self::OverCap { .. } => Verdict::Wait,
            Self::LeafNode(_)
            | Self::AlreadyForced { .. }
            | Self::Finalizers { .. }
            | Self::LocalVolume { .. }
            | Self::VolumeUnverified { .. }
            | Self::OwnerKind { .. } => Verdict::Manual,
            Self::Stuck { .. } => Verdict::Reap,
        }
    }

    /// Whether it says that the pod's node is one that nobody expects back: NotReady for long enough, real, and not
    /// opted out (rules 1 to 10 let the pod through).
    pub fn node_is_dead(&self) -> bool {
        matches!(
            self,
            Self::AlreadyForced { .. }
                | Self::Finalizers { .. }
                | Self::LocalVolume { .. }
                | Self::VolumeUnverified { .. }
                | Self::OwnerKind { .. }
                | Self::Stuck { .. }
                | Self::OverCap { .. }
        )
    }

    /// The code in every report; part of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MirrorPod => "mirror-pod",
            Self::OptedOut(_) => "opted-out",
            Self::NodeGone { .. } => "node-gone",
            Self::NodeReady => "node-ready",
            Self::NotOverdue { .. } => "not-overdue",
            Self::LeafNode(leaf) if leaf.kosmos => "kosmos-leaf",
            Self::LeafNode(_) => "leaf-node",
            Self::FactsUnread(_) => "facts-unread",
            Self::NodeRecovering { .. } => "node-recovering",
            Self::KubeletAlive { .. } => "kubelet-alive",
            Self::NodeJustFailed { .. } => "node-just-failed",
            Self::AlreadyForced { .. } => "already-forced",
            Self::Finalizers { .. } => "finalizers",
            Self::LocalVolume { .. } => "local-volume",
            Self::VolumeUnverified { .. } => "volume-unverified",
            Self::OwnerKind { .. } => "owner-kind",
            Self::Stuck { .. } => "stuck-on-not-ready-node",
            Self::MassOutage(_) => "mass-outage",
            Self::OverCap { .. } => "over-cap",
        }
    }

    /// The sentence that explains it to a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::MirrorPod => {
                "It mirrors a static pod, which its node's kubelet owns; deleting the mirror means nothing."
                    .to_owned()
            }
            Self::OptedOut(who) => {
                let who = match who {
                    Optout::Pod => "The pod",
                    Optout::Namespace => "Its namespace",
                    Optout::Node => "Its node",
                };
                format!("{who} is annotated pod-reaper.io/skip: \"true\".")
            }
            Self::NodeGone { node: None } => {
                "It was never given a node; the pod garbage collector takes care of it.".to_owned()
            }
            Self::NodeGone { node: Some(node) } => {
                format!("Node {node} does not exist any more; the pod garbage collector takes care of it.")
            }
            Self::NodeReady => {
                "Its node is Ready: the kubelet there is stopping it, or is what has to be looked at."
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
            Self::LeafNode(leaf) => {
                let what = match (&leaf.cluster, leaf.kosmos) {
                    (Some(cluster), _) => format!("Its node stands for the Kosmos leaf cluster {cluster}"),
                    (None, true) => {
                        "Its node is a Kosmos leaf node and stands for another cluster".to_owned()
                    }
                    (None, false) => "Its node matches --leaf-node-selector".to_owned(),
                };
                format!(
                    "{what} (seen: {}). There, NotReady means that the link is cut: the pod may well be running.",
                    leaf.marks.join(", ")
                )
            }
            Self::FactsUnread(what) => {
                format!("Something that has to be known could not be read: {}.", what.trim_end_matches('.'))
            }
            Self::NodeRecovering { lease_age } => format!(
                "The node's lease was renewed {} ago, so its kubelet is alive and about to report.",
                spoken(*lease_age)
            ),
            Self::KubeletAlive { ready } => format!(
                "The node's Ready is {}, not Unknown: its kubelet may still report, and --unreachable-only is set.",
                ready.as_str()
            ),
            Self::NodeJustFailed { not_ready_for: Some(time), threshold } => format!(
                "The node has been NotReady for {} only; {} are asked for.",
                spoken(*time),
                spoken(*threshold)
            ),
            Self::NodeJustFailed { not_ready_for: None, .. } => {
                "The node is NotReady, but does not say since when.".to_owned()
            }
            Self::AlreadyForced { finalizers } => format!(
                "It was force-deleted already and is held by {}; another delete changes nothing.",
                listed(finalizers)
            ),
            Self::Finalizers { finalizers } => format!(
                "It is held by {}, whose controller has something to do before the pod may go.",
                listed(finalizers)
            ),
            Self::LocalVolume { claims } => {
                let each = claims.iter().map(|claim| {
                    format!("claim {} is bound to volume {} ({})", claim.claim, claim.volume, claim.bond)
                });
                format!("Its storage is on the dead node: {}.", each.collect::<Vec<_>>().join("; "))
            }
            Self::VolumeUnverified { claims } => {
                let each = claims.iter().map(|claim| format!("claim {}: {}", claim.claim, claim.cause));
                format!(
                    "Whether its storage is on the dead node could not be verified: {}.",
                    each.collect::<Vec<_>>().join("; ")
                )
            }
            Self::OwnerKind { owner } => {
                format!(
                    "It belongs to {}/{}, and --manual-owner-kind names that kind.",
                    owner.kind, owner.name
                )
            }
            Self::Stuck { .. } => {
                "It is stuck Terminating on a NotReady node and nothing binds it there.".to_owned()
            }
            Self::MassOutage(what) => format!(
                "{what}: so many at once are more often a fault of the API server or the network. Nothing is deleted."
            ),
            Self::OverCap { cap } => {
                format!("--max-deletes is {cap} and older ones went first; the next run takes it.")
            }
        }
    }
}

fn listed(finalizers: &[String]) -> String {
    let noun = if finalizers.len() == 1 { "finalizer" } else { "finalizers" };
    format!("{noun} {}", finalizers.join(", "))
}

/// A duration as people say it, whole seconds: "1h 5m", and "minus 5m" for one that lies ahead.
pub fn spoken(duration: SignedDuration) -> String {
    let seconds = std::time::Duration::from_secs(duration.as_secs().unsigned_abs());
    let minus = if duration.as_secs() < 0 { "minus " } else { "" };
    format!("{minus}{}", humantime::format_duration(seconds))
}
