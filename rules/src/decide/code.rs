//! The reasons of verdicts. Each has a code, a verdict, a meaning and advice.
//!
//! `docs/reasons.md` is made from this table. The sentence about the pod at hand is in `reason.rs`.

use crate::codes::codes;

codes! {
    /// The action that the program takes on a Terminating pod.
    pub enum Verdict {
        /// A person has to decide.
        Manual = "manual" => "A person decides: the report says what is at risk, and what to do.",
        /// The program force-deletes the pod.
        Reap = "reap" => "It is force-deleted, so that its owner can start a replacement.",
        /// The next run judges the pod again.
        Wait = "wait" => "Not now: the next run judges it again.",
        /// Another controller takes care of the pod, or the operator excluded it.
        Leave = "leave" => "It is the work of something else.",
    }
}

macro_rules! reasons {
    ($($variant:ident = $code:literal => $verdict:ident, $means:literal, $advice:literal;)*) => {
        codes! {
            /// The kind of a reason: those of the rules in their order, then those of a run's
            /// limits.
            pub enum ReasonCode {
                $($variant = $code => $means,)*
            }
        }

        impl ReasonCode {
            /// Returns the verdict that goes with the reason.
            pub fn verdict(self) -> Verdict {
                match self {
                    $(Self::$variant => Verdict::$verdict,)*
                }
            }

            /// Returns what a person should do, in sentences.
            pub fn advice(self) -> &'static str {
                match self {
                    $(Self::$variant => $advice,)*
                }
            }
        }
    };
}

reasons! {
    MirrorPod = "mirror-pod" => Leave,
        "A kubelet makes it from a file on its node (a static pod), and would make it again.",
        "Nothing.";
    OptedOut = "opted-out" => Leave,
        "The pod, its namespace or its node has pod-reaper.io/skip, as annotation or label, with \
         any value but false.",
        "Nothing.";
    NodeGone = "node-gone" => Leave,
        "It has no node any more, and no finalizer but the Job controller's. Kubernetes' pod \
         garbage collector deletes it, mostly within a minute.",
        "Nothing. If it stays, see whether kube-controller-manager runs.";
    NodeReady = "node-ready" => Leave,
        "Its node is Ready: a kubelet lives there, and only it knows whether the containers have \
         stopped.",
        "If the pod hangs, look at its finalizers and at the kubelet's log.";
    NotOverdue = "not-overdue" => Wait,
        "It is overdue for less than --reap-older-than, or not yet: since its deletion deadline, which includes the grace period. On a silent node the kubelet no longer times the grace period: there the pod is overdue since its deletion was requested, or since the last heartbeat, if that is later. A kubelet that comes back in that time terminates the pod cleanly.",
        "Nothing. A later run takes it.";
    KosmosLeaf = "kosmos-leaf" => Manual,
        "Its node stands for another cluster, joined by Kosmos. NotReady usually means that the link is cut: the pod is probably still running there.",
        "Do not force-delete it: Kosmos might never stop the running pod. Once you repair the link, Kosmos deletes the pod: within seconds after a short outage, later after a long one. So look first, then choose when to repair the link. Only if the leaf cluster is gone for good, delete the Node, not its pods. What runs there may keep running, and Kosmos recreates the Node only when its cluster manager restarts.";
    VirtualNode = "virtual-node" => Manual,
        "Its node is a program that runs or simulates pods elsewhere (Virtual Kubelet, Liqo, \
         interLink, KWOK or the like), and does not report: the pod may well be running.",
        "Bring that program back: it then ends the pod by itself. Do not force-delete the pod: it \
         may well be running, and the program may later delete its replacement by name.";
    EdgeNode = "edge-node" => Manual,
        "Its node is a machine that works on while it is cut off (KubeEdge, OpenYurt, SuperEdge, \
         EKS Hybrid Nodes). NotReady usually means that the link is cut: the pod may well be \
         running.",
        "Repair the link. Do not force-delete the pod before you know that the machine is off. Once it is off for good, say so by the annotation in the report: the next run then reaps the pods whose deletion was requested before.";
    LeafNode = "leaf-node" => Manual,
        "--leaf-node-selector selects its node: it stands for something that this cluster does \
         not see, and the pod may be running there.",
        "Repair the link. Do not force-delete the pod before you know that it has stopped.";
    FactsUnread = "facts-unread" => Wait,
        "Something that a rule needs could not be read: the node, the namespace, the node's lease or another Lease that may show life, whether anything attaches a disk, how many nodes are NotReady, or the time: no Ready node has renewed its lease within 5 minutes by the API server's clock.",
        "See the cause in the report: mostly a missing right, a wrong clock, or trouble of the API server. The next run tries again.";
    NodeJustFailed = "node-just-failed" => Wait,
        "Its node has been NotReady for less than --node-not-ready-for, or nobody knows since when: the kubelet may only be restarting. The later counts of the times of its Ready condition, unless that lies in the future, and its NoSchedule taint.",
        "Nothing. A later run takes the pod if the node stays NotReady.";
    KubeletAlive = "kubelet-alive" => Manual,
        "Its node is NotReady, but shows a sign of life: Ready is False, which only a kubelet that reports keeps so, or something on the machine wrote to the API server after the node became NotReady and less than 11 minutes ago. The containers most likely run, unless the kubelet itself reports that they have terminated. Workloads that tolerate two copies were already replaced at the eviction, so a delete would gain nothing.",
        "Do not force-delete it: it most likely runs, and a replacement would be a duplicate. See the message of the Ready condition: if it names the network plugin (CNI) or the container runtime, repair that. If Ready is Unknown, the kubelet does not report: restart the kubelet or the container runtime. Once the node is Ready, the kubelet terminates the pod. Or power the machine off: after 11 minutes without a heartbeat, the next run judges the pod again.";
    AlreadyForced = "already-forced" => Manual,
        "It was force-deleted before it had finished, and finalizers still hold it. Another \
         delete changes nothing.",
        "Find the controller that set them, and have it finish. Do not strip them by hand.";
    Finalizers = "finalizers" => Manual,
        "A finalizer holds it: a controller has work to do before the pod can go.",
        "Find that controller, and have it finish. A finalizer that is stripped by hand leaves \
         behind, unnoticed, what had to be cleaned up.";
    LocalVolume = "local-volume" => Manual,
        "A claim is bound to a volume on the dead node: no other node meets its affinity, zones and regions aside, and that names this node alone; or it is Longhorn's strict-local. A replacement would wait for that node forever. A pod that nothing wants again is not asked about, unless somebody deleted the claim.",
        "If somebody deleted the claim, set its volume to Retain first, before the node comes back. Otherwise, if the node can come back, wait for it: the data comes with it. If not, give the claim up by the annotation in the report: the next run then deletes claim and pod.";
    HostPath = "host-path" => Manual,
        "A container of it may write to a directory or disk of the dead node, by a hostPath in the pod itself, and a StatefulSet would start the replacement elsewhere, on an empty directory. Read-only mounts, sockets, character devices and the directories of the system do not matter.",
        "If the node can come back, wait for it: the data comes with it. If not, copy the data from its disk if you need it, power the machine off, and let the pod go by the annotation in the report.";
    VolumeConfined = "volume-confined" => Manual,
        "A claim is bound to a volume that no other node is known to reach, zones and regions aside: its affinity names something else than this node, or it is a directory without an affinity, which other nodes may share. Its data may be elsewhere, so the claim is kept whatever a person answers.",
        "Find out where the data is. Bring up a node that the volume allows, and the next run takes the pod. Or let the pod go by the annotation in the report: its replacement waits for such a node.";
    VolumeUnverified = "volume-unverified" => Manual,
        "A claim or its volume could not be read or is missing, or it is not known which nodes reach it: the data may be on the dead node. Or a claim would go with the pod, which owns it or is the last to use it after somebody deleted it, and may still be wanted.",
        "Find out where the volume is, by the commands in the report. Once you know that it is elsewhere, and that the machine is off, say so by the annotations there. If somebody deleted a claim, set its volume to Retain first, before the node comes back: its kubelet's last act would destroy the data.";
    SharedDisk = "shared-disk" => Manual,
        "Two machines could write its disk at once: a ReadWriteMany raw block device, Fibre Channel, iSCSI or a flexVolume of Kubernetes' own kinds that is not read-only, a disk for one machine of a CSI volume that nothing attaches, by its file system or by attributes that name a disk, or a virtual machine of KubeVirt. And nothing says that the node is fenced: off for certain.",
        "Power the machine off, or cut off its disks; check that at the machine itself, and say so by the annotation in the report. Automatic fencing marks the node: by the annotation fencing/state=fenced, or by what --fenced-node-selector selects.";
    OwnerKind = "owner-kind" => Manual,
        "Its owner, or the workload above, is of a kind that --manual-owner-kind names: you chose \
         to decide yourself.",
        "Make sure that the machine is off. Then let the pod go by the annotation in the report.";
    Scratch = "scratch" => Reap,
        "It is stuck, and only claims on the dead node keep it: all annotated \
         pod-reaper.io/scratch: \"true\", from its StatefulSet's templates, and used by no other \
         pod. With --reap-scratch these claims go first, then the pod, and the StatefulSet makes \
         both again, empty.",
        "Nothing for the pod. The volumes stay behind, Released, until they are cleaned up.";
    Answered = "answered" => Reap,
        "It is stuck, and a person's answer lets it pass a rule that would have left it to them: \
         pod-reaper.io/give-up on its claims, which go first, pod-reaper.io/reap on the pod, or \
         pod-reaper.io/powered-off on its node.",
        "Nothing for the pod. The volumes of claims that went stay behind, Released, until they \
         are cleaned up.";
    Stuck = "stuck-on-not-ready-node" => Reap,
        "It is stuck Terminating on a NotReady node, and no other rule speaks against a delete.",
        "Nothing for the pod. Unless the node is about to come back, make sure that it is powered off: its \
         containers may still be running.";
    MassOutage = "mass-outage" => Wait,
        "The breaker: too many nodes are NotReady, of all or of the pod's zone (--max-not-ready-percent), or no other node could start anything. When so many fail at once, the cause is more often the API server or the network, and their pods may all be running.",
        "Find what the nodes have in common, and look at the network first. Once machines are switched off, say so by the annotation in the report, or run with --max-not-ready-percent=100, which turns the breaker off for the whole cluster.";
    OverCap = "over-cap" => Wait,
        "A run deletes at most --max-deletes pods, and others were overdue for longer.",
        "Nothing. The next run goes on with the rest.";
}
