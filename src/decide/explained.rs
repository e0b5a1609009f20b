//! What every verdict and every reason means, and what to do about it, whatever the pod: the glossary of the reports
//! and of `docs/reasons.md`.
//!
//! What was seen on one pod is [`Reason::sentence`](super::Reason::sentence).

use super::Verdict;

/// A reason, explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explained {
    /// The code in every report.
    pub code: &'static str,
    /// The verdict that follows from it.
    pub verdict: Verdict,
    /// What was seen.
    pub means: &'static str,
    /// What a person should do, if anything.
    pub advice: &'static str,
}

/// Explains the reason with this code.
pub fn explained(code: &str) -> Option<&'static Explained> {
    REASONS.iter().find(|reason| reason.code == code)
}

impl Verdict {
    /// Every verdict, the one that needs a person first.
    pub const ALL: [Self; 4] = [Self::Manual, Self::Reap, Self::Wait, Self::Leave];

    /// What it means for a pod.
    pub fn means(self) -> &'static str {
        match self {
            Self::Reap => "It is force-deleted, so that its owner can start a replacement.",
            Self::Wait => "It is not touched now; the next run judges it again.",
            Self::Leave => "It is not touched: it is somebody else's work.",
            Self::Manual => {
                "It is not touched: a person has to decide. The report says what is at risk and gives the commands."
            }
        }
    }
}

/// Every reason, in the order of the rules; the two limits of a whole run come last.
pub const REASONS: [Explained; 19] = [
    Explained {
        code: "mirror-pod",
        verdict: Verdict::Leave,
        means: "The pod is the mirror of a static pod, which the kubelet of its node reads from a file. Deleting the \
                mirror stops nothing, and the kubelet makes it anew.",
        advice: "Nothing. To be rid of it, remove the file from the node.",
    },
    Explained {
        code: "opted-out",
        verdict: Verdict::Leave,
        means: "The pod, its namespace or its node is annotated pod-reaper.io/skip: \"true\".",
        advice: "Nothing, while that is what you want. Remove the annotation to have the pod judged.",
    },
    Explained {
        code: "node-gone",
        verdict: Verdict::Leave,
        means: "The pod's node object does not exist, or the pod was never given a node. The pod garbage collector of \
                Kubernetes deletes such pods by itself, mostly within a minute.",
        advice: "Nothing. If it stays for longer, see whether kube-controller-manager runs, and whether the pod has \
                 finalizers.",
    },
    Explained {
        code: "node-ready",
        verdict: Verdict::Leave,
        means: "The pod's node is Ready. A kubelet lives there, and only it knows whether the containers have stopped.",
        advice: "If the pod hangs for longer than its grace period, look at its finalizers, at its containers and at \
                 the kubelet's log. Such pods are listed only with --all and in snapshots that hold them.",
    },
    Explained {
        code: "not-overdue",
        verdict: Verdict::Wait,
        means: "The pod is past its deletion deadline by less than --reap-older-than, or still within its grace \
                period. A kubelet that comes back in that time ends it cleanly.",
        advice: "Nothing. A later run takes it. If that is too slow for you, lower --reap-older-than.",
    },
    Explained {
        code: "kosmos-leaf",
        verdict: Verdict::Manual,
        means: "The pod's node is a Kosmos leaf node and stands for another cluster. NotReady there means that the \
                link is cut; the pod may well be running.",
        advice: "Mend the link. Do not force-delete the pod: the owner would start a second copy while the first \
                 still serves, and Kosmos deletes the first one by name when the link is back.",
    },
    Explained {
        code: "leaf-node",
        verdict: Verdict::Manual,
        means: "The pod's node matches --leaf-node-selector: it stands for something other than one machine, where \
                the pod may be running unseen.",
        advice: "Find out what has become of the pod where it runs, and mend the link to there. Do not force-delete \
                 it before you know that it is stopped.",
    },
    Explained {
        code: "facts-unread",
        verdict: Verdict::Wait,
        means: "Something that a rule needs could not be read: the node, the namespace, the node's lease, or how many \
                nodes are NotReady. What cannot be verified is not deleted.",
        advice: "See the cause in the report. Mostly a right is missing, or the API server had trouble; the next run \
                 tries again.",
    },
    Explained {
        code: "node-recovering",
        verdict: Verdict::Wait,
        means: "The node's Ready is Unknown, but its lease was renewed a moment ago: the kubelet is alive and about \
                to report.",
        advice: "Nothing. If a node stays so for several runs, look at its kubelet's log.",
    },
    Explained {
        code: "kubelet-alive",
        verdict: Verdict::Leave,
        means: "--unreachable-only is set, and the node's Ready is not Unknown: its kubelet may still report that the \
                pod has ended.",
        advice: "Look at the kubelet of that node: it says itself that it is not ready. Without --unreachable-only \
                 the pod would be judged by the further rules.",
    },
    Explained {
        code: "node-just-failed",
        verdict: Verdict::Wait,
        means: "The node has been NotReady for less than --node-not-ready-for, or does not say since when. It may be \
                no more than a kubelet that restarts.",
        advice: "Nothing. A later run takes the pod if the node stays as it is.",
    },
    Explained {
        code: "already-forced",
        verdict: Verdict::Manual,
        means: "The pod was force-deleted before, and finalizers still hold it. Another delete changes nothing.",
        advice: "Find the controller that set the finalizer, and have it finish. Do not strip the finalizer by hand.",
    },
    Explained {
        code: "finalizers",
        verdict: Verdict::Manual,
        means: "A finalizer holds the pod: its controller has something to do before the pod may go.",
        advice: "Find that controller and have it finish. Do not strip the finalizer by hand: what it still has to \
                 clean up would stay behind, unnoticed.",
    },
    Explained {
        code: "local-volume",
        verdict: Verdict::Manual,
        means: "A claim of the pod is bound to a volume that only the dead node can reach: local, hostPath, or \
                pinned by its node affinity. A replacement would wait for that node for ever.",
        advice: "If the node can come back, wait for it: the data comes with it. If not, give the data up with the \
                 commands in the report: first the claim, then the pod.",
    },
    Explained {
        code: "volume-unverified",
        verdict: Verdict::Manual,
        means: "A claim of the pod, or its volume, could not be read, or the volume is missing. Whether the storage \
                is on the dead node is not known.",
        advice: "Find out where the volume is, with the commands in the report. Force-delete the pod only once you \
                 know that nothing binds it to the node.",
    },
    Explained {
        code: "owner-kind",
        verdict: Verdict::Manual,
        means: "The pod's owner is of a kind that --manual-owner-kind names: its operators want at most one copy at \
                any price.",
        advice: "Make sure that the machine is powered off. Then force-delete the pod with the command in the report.",
    },
    Explained {
        code: "stuck-on-not-ready-node",
        verdict: Verdict::Reap,
        means: "The pod is stuck Terminating on a NotReady node, and none of the other rules speaks against a delete.",
        advice: "Nothing for the pod. If the node may only be cut off, power it off before it rejoins: its \
                 containers may still be running.",
    },
    Explained {
        code: "mass-outage",
        verdict: Verdict::Wait,
        means: "More nodes are NotReady than --max-not-ready-percent allows, or no real node is Ready. So many at \
                once are more often a fault of the API server or of the network, and their pods may all be running.",
        advice: "Find what the nodes have in common. Only once you are sure that they are dead, run with \
                 --max-not-ready-percent=100.",
    },
    Explained {
        code: "over-cap",
        verdict: Verdict::Wait,
        means: "The run had deleted as many pods as --max-deletes allows; those that were overdue for longer went \
                first.",
        advice: "Nothing. The next run takes it.",
    },
];

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use jiff::SignedDuration;

    use super::*;
    use crate::{
        decide::{Optout, Reason},
        facts::{Leaf, Owner, Ready},
        outcome::Outcome,
    };

    /// A reason of each kind, in the order of the rules. The compiler asks for a new one: it has to come after one.
    fn after(reason: &Reason) -> Option<Reason> {
        let time = SignedDuration::ZERO;
        let leaf = |kosmos| Reason::LeafNode(Leaf { kosmos, marks: Vec::new(), cluster: None });
        Some(match reason {
            Reason::MirrorPod => Reason::OptedOut(Optout::Pod),
            Reason::OptedOut(_) => Reason::NodeGone { node: None },
            Reason::NodeGone { .. } => Reason::NodeReady,
            Reason::NodeReady => Reason::NotOverdue { overdue: time, threshold: time },
            Reason::NotOverdue { .. } => leaf(true),
            Reason::LeafNode(Leaf { kosmos: true, .. }) => leaf(false),
            Reason::LeafNode(_) => Reason::FactsUnread(String::new()),
            Reason::FactsUnread(_) => Reason::NodeRecovering { lease_age: time },
            Reason::NodeRecovering { .. } => Reason::KubeletAlive { ready: Ready::False },
            Reason::KubeletAlive { .. } => Reason::NodeJustFailed { not_ready_for: None, threshold: time },
            Reason::NodeJustFailed { .. } => Reason::AlreadyForced { finalizers: Vec::new() },
            Reason::AlreadyForced { .. } => Reason::Finalizers { finalizers: Vec::new() },
            Reason::Finalizers { .. } => Reason::LocalVolume { claims: Vec::new() },
            Reason::LocalVolume { .. } => Reason::VolumeUnverified { claims: Vec::new() },
            Reason::VolumeUnverified { .. } => {
                Reason::OwnerKind { owner: Owner { kind: String::new(), name: String::new() } }
            }
            Reason::OwnerKind { .. } => Reason::Stuck { confined: Vec::new() },
            Reason::Stuck { .. } => Reason::MassOutage(String::new()),
            Reason::MassOutage(_) => Reason::OverCap { cap: 1 },
            Reason::OverCap { .. } => return None,
        })
    }

    #[test]
    fn every_reason_is_explained_with_the_verdict_that_it_has() {
        let all = std::iter::successors(Some(Reason::MirrorPod), after);
        let all = all.map(|reason| (reason.code(), reason.verdict())).collect::<Vec<_>>();
        assert_eq!(REASONS.map(|reason| (reason.code, reason.verdict)).to_vec(), all);
        assert!(REASONS.iter().all(|reason| explained(reason.code) == Some(reason)));
        assert_eq!(explained("bad-luck"), None);
    }

    #[test]
    fn the_page_of_reasons_is_current() {
        let mut page = "\
            # Verdicts, reasons and outcomes\n\n\
            Every word that a report can hold about a pod: what it means, and what to do. The order is that of the \
            rules; the first that holds decides.\n\n\
            This page is made from the source by `UPDATE_EXPECT=1 cargo test --lib page_of_reasons`.\n\n\
            ## Verdicts\n\n| verdict | meaning |\n| --- | --- |\n"
            .to_owned();
        for verdict in Verdict::ALL {
            page += &format!("| `{}` | {} |\n", verdict.code(), verdict.means());
        }
        page += "\n## Reasons\n";
        for Explained { code, verdict, means, advice } in REASONS {
            page += &format!(
                "\n### `{code}`\n\nVerdict: `{}`. {means}\n\n**What to do:** {advice}\n",
                verdict.code()
            );
        }
        page += "\n## Outcomes\n\nWhat happened to a pod whose verdict was `reap`.\n\n| outcome | meaning |\n| --- | --- |\n";
        for code in Outcome::CODES {
            let means = Outcome::means(code).unwrap_or_else(|| panic!("{code} is not explained"));
            page += &format!("| `{code}` | {means} |\n");
        }
        expect_file!["../../docs/reasons.md"].assert_eq(&page);
    }
}
