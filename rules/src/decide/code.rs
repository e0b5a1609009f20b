//! The reasons of verdicts: each with its code, its verdict, what it means and what to do about it.
//!
//! `docs/reasons.md` is made from this table. What was seen on a pod is its sentence, in `reason.rs`.

use crate::codes::codes;

codes! {
    /// What should be done with a Terminating pod.
    pub enum Verdict {
        /// A person has to decide.
        Manual = "manual",
        /// Force-delete it.
        Reap = "reap",
        /// Look again at the next run.
        Wait = "wait",
        /// It is the work of another controller, or of the operator.
        Leave = "leave",
    }
}

macro_rules! reasons {
    ($($variant:ident = $code:literal => $verdict:ident, $means:literal, $advice:literal;)*) => {
        codes! {
            /// The kind of a reason: of the rules in their order, then of the limits of a whole run.
            pub enum ReasonCode {
                $($variant = $code,)*
            }
        }

        impl ReasonCode {
            /// What should be done.
            pub fn verdict(self) -> Verdict {
                match self {
                    $(Self::$variant => Verdict::$verdict,)*
                }
            }

            /// What it means, in sentences.
            pub fn means(self) -> &'static str {
                match self {
                    $(Self::$variant => $means,)*
                }
            }

            /// What a person should do about it, in sentences.
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
        "The pod is the mirror of a static pod, which the kubelet of its node reads from a file. \
         Deleting the mirror stops nothing, and the kubelet creates it again.",
        "Nothing. To remove it, remove the file from the node.";
    OptedOut = "opted-out" => Leave,
        "The pod, its namespace or its node has the annotation or label pod-reaper.io/skip, with \
         any value but false.",
        "Nothing, while that is what you want. Remove it to have the pod judged.";
    NodeGone = "node-gone" => Leave,
        "The pod's node object does not exist, or the pod was never assigned to a node, and no \
         finalizer but the Job controller's is left. The pod garbage collector of Kubernetes \
         deletes such pods by itself, mostly within a minute.",
        "Nothing. If it stays for longer, see whether kube-controller-manager is running.";
    NodeReady = "node-ready" => Leave,
        "The pod's node is Ready. A kubelet lives there, and only it knows whether the containers \
         have stopped.",
        "If the pod hangs for longer than its grace period, look at its finalizers, at its \
         containers and at the kubelet's log. Such pods are listed only with --all.";
    NotOverdue = "not-overdue" => Wait,
        "The pod is past its deletion deadline by less than --reap-older-than, or still within \
         its grace period. A kubelet that comes back in that time ends it cleanly.",
        "Nothing. A later run takes it. If that is too slow for you, lower --reap-older-than.";
    KosmosLeaf = "kosmos-leaf" => Manual,
        "The pod's node is a Kosmos leaf node and stands for another cluster. NotReady there \
         mostly means that the link is cut; the pod may well be running.",
        "Do not force-delete the pod: a StatefulSet would start a second copy, and Kosmos may \
         never end the first. Repairing the link ends the pod within seconds, because its \
         deletion was requested: choose the moment. If the leaf cluster is lost for good, delete \
         the node.";
    VirtualNode = "virtual-node" => Manual,
        "The pod's node is a virtual node (Virtual Kubelet, Liqo, interLink, KWOK or the like): \
         not a machine, but a program that runs or simulates pods elsewhere. NotReady there means \
         that this program does not report; the pod may well be running.",
        "See why that program does not report, and bring it back: it then ends by itself the pods \
         whose deletion was requested. Do not force-delete the pod: its owner would start a \
         second copy, and the program may delete the first one by name when it is back.";
    EdgeNode = "edge-node" => Manual,
        "The pod's node is an edge node (KubeEdge, OpenYurt, SuperEdge, EKS Hybrid Nodes): a \
         machine that keeps working while it is cut off. NotReady there means that the link is \
         cut; the pod may well be running.",
        "Repair the link. Do not force-delete the pod before you know that the machine is off: \
         its containers run on, beside the copy that its owner starts.";
    LeafNode = "leaf-node" => Manual,
        "The pod's node is selected by --leaf-node-selector: it stands for something that this \
         cluster does not see, and the pod may be running there.",
        "Find out whether the pod still runs behind that node, and repair the link. Do not \
         force-delete it before you know that it has stopped.";
    FactsUnread = "facts-unread" => Wait,
        "Something that a rule needs could not be read: the node, the namespace, the node's \
         lease, or how many nodes are NotReady. What cannot be verified is not deleted.",
        "See the cause in the report. Usually a right is missing, or the API server had trouble; \
         the next run tries again.";
    NodeRecovering = "node-recovering" => Wait,
        "The node is silent, but its lease was renewed after it became NotReady, and less than \
         --node-not-ready-for ago (or less than the lease's duration, where that is longer): the \
         kubelet may be about to report. After 12 times that it is no longer believed to be \
         recovering, and the next rules decide.",
        "Nothing at first. If a node stays so for several runs, look at its kubelet's log: it may \
         restart again and again.";
    NodeJustFailed = "node-just-failed" => Wait,
        "The node has been NotReady for less than --node-not-ready-for, or it is not known since \
         when. The later time of its Ready condition and its NoSchedule taint counts; a time of \
         the condition that lies in the future does not. Its kubelet may only be restarting.",
        "Nothing. A later run deletes the pod if the node stays NotReady.";
    KubeletAlive = "kubelet-alive" => Manual,
        "The node is not Ready, but its machine is alive: its Ready is False, which only a \
         kubelet that reports keeps so, or something on the machine was heard after the node \
         became NotReady. The containers most likely still run, so --kubelet-alive protects all \
         pods but those that may run twice (hold-unique), or all pods (hold).",
        "Repair the node: see what its conditions say, restart the container runtime or the \
         kubelet. Once it is Ready, its kubelet ends the pod. Or power it off: once it has been \
         silent for --node-not-ready-for, a run judges the pod again. --kubelet-alive=reap has \
         such pods force-deleted.";
    AlreadyForced = "already-forced" => Manual,
        "The pod was force-deleted before it had finished, and finalizers still hold it. Another \
         delete changes nothing.",
        "Find the controller that set the finalizer, and have it finish. Do not strip the \
         finalizer by hand.";
    Finalizers = "finalizers" => Manual,
        "A finalizer holds the pod: its controller has work to do before the pod can go.",
        "Find that controller and have it finish. Do not strip the finalizer by hand: what it \
         still has to clean up would stay behind, unnoticed.";
    LocalVolume = "local-volume" => Manual,
        "A claim of the pod is bound to a volume on the dead node: local, hostPath, Longhorn's \
         strict-local, or with a node affinity that names this node alone. A replacement would \
         wait for that node for ever.",
        "If the node can come back, wait for it: the data comes with it. If not, give the claim up \
         by the annotation in the report: the next run then deletes claim and pod, unless the \
         node or the pod is back.";
    VolumeConfined = "volume-confined" => Manual,
        "A claim of the pod is bound to a volume that no other node of the cluster can reach, \
         zones and regions left out. Its data need not be on the dead node, so the claim is kept \
         whatever a person answers.",
        "Find out where the data is. If it is elsewhere, bring up a node that the volume allows: \
         the next run takes the pod. Or let the pod go by the annotation in the report: its \
         replacement waits for such a node.";
    VolumeUnverified = "volume-unverified" => Manual,
        "A claim of the pod, or its volume, could not be read, or the volume is missing, or it \
         could not be found out which nodes can reach it. It is not known whether the storage is \
         on the dead node. Or the pod owns the claim, which then goes with the pod, and its \
         StatefulSet wants the pod again or could not be read.",
        "Find out where the volume is, with the commands in the report. Once you know that nothing \
         binds the pod to the node, and that the machine is off, say so by the annotations in the \
         report.";
    SharedDisk = "shared-disk" => Manual,
        "Two machines could write to the pod's disk at once: a claim is ReadWriteMany and a raw \
         block device, a volume is Fibre Channel or iSCSI of Kubernetes' own kinds and not \
         read-only, or the pod runs a virtual machine of KubeVirt. Nothing says that the node is \
         fenced: off for certain.",
        "Power the machine off, or cut off its disks, and check that at the machine itself. Then \
         say so by the annotation in the report. Where fencing is automatic, have it mark the \
         node: annotation fencing/state=fenced, or what --fenced-node-selector selects.";
    OwnerKind = "owner-kind" => Manual,
        "The pod's owner, or the workload above it, is of a kind that --manual-owner-kind names: \
         you chose to decide about such pods yourself.",
        "Make sure that the machine is powered off. Then let the pod go by the annotation in the \
         report.";
    Scratch = "scratch" => Reap,
        "The pod is stuck Terminating on a NotReady node, and only storage on that node keeps it \
         there: claims that are annotated pod-reaper.io/scratch: \"true\", that come from its \
         StatefulSet's templates, and that no other pod of the namespace uses. With \
         --reap-scratch the claims are deleted first, then the pod, and the StatefulSet creates \
         both again, the claims empty.",
        "Nothing for the pod. The volumes stay behind, Released, until they are cleaned up. A \
         storage class that binds at once (volumeBindingMode Immediate) may choose the dead node \
         again: then use one that waits for the pod.";
    Answered = "answered" => Reap,
        "The pod is stuck Terminating on a NotReady node, and a person's answer lets it pass a rule \
         that would have left it to them: pod-reaper.io/give-up on its claims, which are deleted \
         first, pod-reaper.io/reap on the pod, or pod-reaper.io/powered-off on its node. The \
         answer counts for this failure alone.",
        "Nothing for the pod. A claim that was given up leaves its volume behind, Released, until \
         it is cleaned up.";
    Stuck = "stuck-on-not-ready-node" => Reap,
        "The pod is stuck Terminating on a NotReady node, and none of the other rules speaks \
         against a delete.",
        "Nothing for the pod. If the node may only be cut off, power it off now: its containers \
         may still be running.";
    MassOutage = "mass-outage" => Wait,
        "More nodes are NotReady than --max-not-ready-percent allows, or nothing could start \
         elsewhere: no other real node is Ready, neither cordoned nor kept for the control plane. \
         When that many fail at once, the cause is more often the API server or the network, and \
         their pods may all be running.",
        "Find what the nodes have in common. Only once you are sure that they are dead, run with \
         --max-not-ready-percent=100.";
    OverCap = "over-cap" => Wait,
        "A run deletes no more pods than --max-deletes allows, and others were overdue for \
         longer.",
        "Nothing. The next run continues with the rest.";
}

impl Verdict {
    /// What it means, as a sentence.
    pub fn means(self) -> &'static str {
        match self {
            Self::Manual => {
                "It is not touched: a person has to decide. The report says what is at risk and what to do."
            }
            Self::Reap => "It is force-deleted, so that its owner can start a replacement.",
            Self::Wait => "It is not touched now; the next run judges it again.",
            Self::Leave => "It is not touched: it is the work of something else.",
        }
    }
}
