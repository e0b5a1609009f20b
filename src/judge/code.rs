//! The reasons of verdicts. Each has a code, a verdict and a meaning.
//!
//! `docs/reasons.md` is generated from this table. The sentence about the pod at hand is in
//! `reason.rs`.

use crate::codes::codes;

codes! {
    /// The action that the program takes on a Terminating pod.
    pub enum Verdict {
        /// The user has to decide.
        Manual = "manual" => "You decide: the report says what is at risk, and what to do.",
        /// The program force-deletes the pod.
        Reap = "reap" => "It is force-deleted, so that its owner can start a replacement.",
        /// The next run judges the pod again.
        Wait = "wait" => "Not now: the next run judges it again.",
        /// Another controller takes care of the pod, or somebody excluded it.
        Leave = "leave" => "The program does nothing: another controller handles the pod, or somebody excluded it.",
    }
}

macro_rules! reasons {
    ($($variant:ident = $code:literal => $verdict:ident, $means:literal;)*) => {
        codes! {
            /// The kind of a reason: first the reasons of the rules in their order, then those of a
            /// run's limits.
            pub enum ReasonCode {
                $($variant = $code => $means,)*
            }
        }

        impl ReasonCode {
            /// Returns the verdict that follows from the reason.
            pub fn verdict(self) -> Verdict {
                match self {
                    $(Self::$variant => Verdict::$verdict,)*
                }
            }
        }
    };
}

reasons! {
    MirrorPod = "mirror-pod" => Leave,
        "A kubelet makes it from a file on its node (a static pod), and would make it again.";
    OptedOut = "opted-out" => Leave,
        "The pod, its namespace or its node has pod-reaper.io/skip, as annotation or label, with \
         any value but false.";
    NodeGone = "node-gone" => Leave,
        "It has no node any more, and no finalizer except the Job controller's. Kubernetes' pod garbage collector deletes it, usually within a minute.";
    NodeReady = "node-ready" => Leave,
        "Its node is Ready: a kubelet lives there, and only it knows whether the containers have \
         stopped.";
    NotOverdue = "not-overdue" => Wait,
        "It has been overdue for less than --reap-older-than, or is not overdue yet. A pod is overdue from its deletion deadline on, which includes the grace period. On a silent node no kubelet measures the grace period: there, the pod is overdue from the moment at which its deletion was requested, or from the last heartbeat if that is later. A kubelet that comes back in that time terminates the pod cleanly. Or its PVC was deleted after the node failed, less than ten minutes ago: that time is left to set the volume to Retain.";
    KosmosLeaf = "kosmos-leaf" => Manual,
        "Its node stands for another cluster, joined by Kosmos. NotReady usually means that the link is cut: the pod is probably still running there.";
    VirtualNode = "virtual-node" => Manual,
        "Its node is a program that runs or simulates pods elsewhere (Virtual Kubelet, Liqo, \
         interLink, KWOK or the like), and does not report: the pod may well be running. Or no kubelet ever reported on the node, so that it is not known what it stands for.";
    EdgeNode = "edge-node" => Manual,
        "Its node is a machine that keeps working while it is cut off from this cluster (KubeEdge, OpenYurt, SuperEdge, \
         EKS Hybrid Nodes). NotReady usually means that the link is cut: the pod may well be \
         running.";
    LeafNode = "leaf-node" => Manual,
        "--leaf-node-selector selects its node: it stands for something that this cluster does \
         not see, and the pod may be running there.";
    FactsUnread = "facts-unread" => Wait,
        "Something that a rule needs could not be read: the node, the namespace, the node's lease or another Lease that may show life, whether anything attaches a disk, how many nodes are NotReady, or the time: no Ready node has renewed its lease within 5 minutes by the API server's clock.";
    NodeJustFailed = "node-just-failed" => Wait,
        "Its node has been NotReady for less than --reap-older-than, or it is not known since when: the kubelet may just be restarting. NotReady is counted from the last transition of the Ready condition or from the NoSchedule taint, whichever is later; a transition in the future is ignored.";
    KubeletAlive = "kubelet-alive" => Manual,
        "Its node is NotReady, but shows a sign of life: Ready is False, which only a kubelet that reports keeps so, or something on the machine wrote to the API server after the node became NotReady and less than 11 minutes, or --reap-older-than if that is longer, ago. The containers are most likely running, unless the kubelet itself reports that they have terminated. Workloads that tolerate two copies were already replaced at the eviction, so a delete would gain nothing.";
    EtcdMember = "etcd-member" => Manual,
        "Its node ran a member of etcd, and fewer members are on Ready nodes than a majority. The API server writes, so a majority of etcd lives: at least one of the NotReady machines does. A node ran etcd if it has the role etcd, or a static pod of etcd. The members are all nodes with that role; where no node has it, all with the role control-plane.";
    Finalizers = "finalizers" => Manual,
        "A finalizer blocks it: a controller has work to do before the pod can be deleted.";
    LocalVolume = "local-volume" => Manual,
        "One of its PVCs is bound to a volume that no other node is known to reach: its node affinity is satisfied by no other node (zone and region terms are ignored), it is a hostPath or local volume without an affinity, or it is a Longhorn strict-local volume. A replacement would wait for the dead node forever. A pod that nothing wants again passes this rule, and so does a PVC that was given up: somebody deleted it after the node failed.";
    HostPath = "host-path" => Manual,
        "One of its containers may write to a directory or disk of the dead node, by a hostPath volume in the pod itself, and its controller, which waits for the end of the pod, would start the replacement elsewhere, with an empty directory. Pods of ReplicaSets, Jobs and DaemonSets are not asked. Read-only mounts, sockets, character devices and system directories are ignored.";
    VolumeUnverified = "volume-unverified" => Manual,
        "A PVC or its volume could not be read or is missing, or it is not known which nodes reach the volume: the data may be on the dead node. Or deleting the pod would also remove a PVC that may be wanted: the pod owns the PVC, or the PVC was deleted before the node failed, or a finalizer other than kubernetes.io/pvc-protection holds it. A volume with the reclaim policy Retain stays, and so does not keep the pod.";
    SharedDisk = "shared-disk" => Manual,
        "Two machines could write to its disk at the same time. Such a disk is a ReadWriteMany raw block volume; a writable in-tree Fibre Channel, iSCSI or flexVolume disk; a CSI volume without an attach step whose file system or attributes show that it is a single-machine disk; or the disk of a KubeVirt virtual machine. And nothing shows that the node is fenced, that is, known to be off.";
    OwnerKind = "owner-kind" => Manual,
        "Its owner, or the workload above it, is of a kind that --manual-owner-kind names: you chose to decide yourself.";
    Stuck = "stuck-on-not-ready-node" => Reap,
        "It is stuck Terminating on a NotReady node, and no other rule keeps it.";
    MassOutage = "mass-outage" => Wait,
        "The breaker: too many nodes are NotReady, of all or of the pod's zone (--max-not-ready-percent), or no other node could start anything. When so many fail at once, the cause is more often the API server or the network, and their pods may all be running.";
    OverCap = "over-cap" => Wait,
        "A run deletes at most --max-deletes pods, and others were overdue for longer.";
}
