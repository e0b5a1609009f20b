//! A node, the heartbeats of its machine, its leaf markers and its fencing marks.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use derive_more::Display;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Read, Skip, Uid, Unread};
use crate::{
    codes::{codes, entry},
    words::{Foreign, joined},
};

#[derive(Debug, Clone, PartialEq)]
pub struct NodeFacts {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`. A node that was deleted and registered again has a different UID.
    pub uid: Uid,
    /// `status.nodeInfo.bootID`, which changes when the machine boots; `None` if it is empty, or if
    /// another machine has the same.
    pub boot_id: Option<String>,
    /// `status.nodeInfo.machineID`, of the installed system; `None` if it is empty.
    pub machine_id: Option<String>,
    /// `status.nodeInfo.systemUUID`, of the hardware or virtual machine; `None` if it is empty.
    pub system_uuid: Option<String>,
    /// Its first address of the kind `InternalIP`.
    pub address: Option<Foreign>,
    /// The end of `spec.providerID`, by which a cloud's console finds the machine.
    pub machine: Option<Foreign>,
    /// Status of the `Ready` condition.
    pub ready: Ready,
    /// Reason of the `Ready` condition, such as `NodeStatusUnknown`.
    pub ready_reason: Option<String>,
    /// The fault that the message of the `Ready` condition names, if it is a known one.
    pub kubelet_says: Option<KubeletSays>,
    /// `lastTransitionTime` of the `Ready` condition. If the kubelet wrote the condition, this time
    /// is by the kubelet's own clock.
    pub ready_since: Option<Timestamp>,
    /// The time at which the node controller set the `NoSchedule` taint not-ready or unreachable,
    /// by the control plane's clock.
    pub tainted_since: Option<Timestamp>,
    /// Label `kubernetes.io/hostname`, which the affinity of local volumes refers to.
    pub hostname: Option<String>,
    /// The zone that the node's labels name.
    pub zone: Option<Zone>,
    /// Its labels, by key.
    pub labels: BTreeMap<String, String>,
    /// The last heartbeat of each source on the node's own machine.
    pub heard: Vec<Heartbeat>,
    /// The last renewal of the node's own lease, by the node's own clock; `None` if it was never renewed.
    pub renewed: Option<Timestamp>,
    /// Why the node's own lease could not be read, as a phrase; `None` if it was read. An unread
    /// lease may be a sign of life.
    pub unread_lease: Option<Unread>,
    /// Whether the other Leases were listed; their heartbeats are among `heard`. False if this account may not
    /// list them: they count as none, but no grace period is cut short. The error says why they were not read.
    pub lists_leases: Read<bool>,
    /// The nodes that may carry the API server's datastore, if the node is NotReady and shows that it is one of them. Of
    /// several such groups it is the one that lacks the most for a majority.
    pub quorum: Option<Arc<Quorum>>,
    /// The marks that say that the machine's power is off or its disks are disconnected.
    pub fenced: Vec<FencingMark>,
    /// True if the node carries the taint `node.kubernetes.io/out-of-service`: the pod garbage
    /// collector deletes its Terminating pods.
    pub out_of_service: bool,
    /// True if the node's deletion was requested.
    pub is_deleted: bool,
    /// The leaf node's markers, if the node stands for something other than one machine.
    pub leaf: Option<Leaf>,
    pub roles: Roles,
    /// The distribution that its kubelet's version names, if the kubelet is no service of its own there.
    pub distribution: Option<Distribution>,
    /// True if nothing keeps new pods off the node: it is not cordoned, and has no taint that a pod has to tolerate.
    pub open: bool,
    /// What opts the node out, if something does.
    pub opted_out: Option<Skip>,
}

impl NodeFacts {
    /// Returns the time since which the node has been NotReady, as known at `now`.
    pub fn not_ready_since(&self, now: Timestamp) -> Option<Timestamp> {
        not_ready_since(self.ready_since, self.tainted_since, now)
    }

    /// Reports whether it is a machine that is not Ready.
    pub fn is_machine_down(&self) -> bool {
        self.ready != Ready::True && self.leaf.is_none()
    }

    pub fn last_heard(&self) -> Option<&Heartbeat> {
        self.heard.iter().max_by_key(|heard| heard.at)
    }

    /// Returns why a Lease that may be a sign of life was not read, as a phrase; `None` if all were.
    pub fn unread(&self) -> Option<&Unread> {
        self.unread_lease
            .as_ref()
            .or(self.lists_leases.as_ref().err())
    }

    /// Adds heartbeats. Only the last one of each source is kept.
    pub fn hear(&mut self, reports: impl IntoIterator<Item = Heartbeat>) {
        self.heard.extend(reports);
        // If a source has several heartbeats at the same time, the same one is always kept,
        // whatever the order in which they were read.
        self.heard
            .sort_by(|a, b| (a.by, Reverse(a.at), &a.what).cmp(&(b.by, Reverse(b.at), &b.what)));
        self.heard.dedup_by_key(|it| it.by);
    }
}

/// The taint that says that a machine is off: Kubernetes 1.26 or newer then deletes the node's
/// Terminating pods and detaches its volumes immediately.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// A taint that keeps pods off its node unless they tolerate it: its effect is `NoSchedule` or `NoExecute`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

/// The taints that a pod has to tolerate to start on a node.
pub type Room = BTreeSet<Taint>;

/// A pod's toleration of taints.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Toleration {
    /// Empty for every key, if the operator is `Exists`.
    pub key: String,
    pub operator: String,
    pub value: String,
    /// Empty for every effect.
    pub effect: String,
    /// For how long; `None` is forever.
    #[serde(rename = "tolerationSeconds")]
    pub seconds: Option<i64>,
}

impl Toleration {
    /// Reports whether it tolerates the taint, as Kubernetes decides it (`ToleratesTaint`).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        ["", &taint.effect].contains(&self.effect.as_str())
            && ["", &taint.key].contains(&self.key.as_str())
            && match self.operator.as_str() {
                "Exists" => true,
                "" | "Equal" => self.value == taint.value,
                _ => false,
            }
    }
}

/// The labels of a node's region and zone, each with its old name, which counts if it is there
/// (`GetZoneKey` of Kubernetes, `component-helpers/node/topology`).
pub const ZONE_LABELS: [[&str; 2]; 2] = [
    [
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ],
    [
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ],
];

/// The values of a node's labels [`ZONE_LABELS`]; at least one of them exists. Kubernetes
/// distinguishes zones by both values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone(pub [Option<String>; 2]);

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().flatten().cloned().map(Foreign::<60>::from);
        f.write_str(&joined(words, "/").unwrap_or_default())
    }
}

/// The roles of a node that the rules know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles {
    /// It has the role of the control plane.
    pub control_plane: bool,
    /// It has the role of etcd, as on nodes of RKE2 and Kamaji.
    pub etcd: bool,
    /// It has the label of the control plane of `MicroK8s` or of Canonical Kubernetes.
    pub canonical: bool,
}

/// A distribution of Kubernetes that runs the kubelet within its own service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    K3s,
    Rke2,
}

/// Nodes that may carry the API server's datastore. The API server writes, so a majority of the datastore lives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
#[display("{ready} of {members} {of} {}", if *ready == 1 { "is Ready" } else { "are Ready" })]
pub struct Quorum {
    /// What the members have in common, as a phrase such as "control-plane nodes".
    pub of: &'static str,
    /// The number of members that are Ready.
    pub ready: usize,
    /// The number of all members.
    pub members: usize,
    /// The name of a Ready member; `None` if they were only counted.
    pub a_ready: Option<String>,
    /// The names of the members that are not Ready.
    pub not_ready: Vec<String>,
    /// Whether etcd was seen: the role, or a container.
    pub has_etcd: bool,
}

impl Quorum {
    /// Reports whether the Ready members are exactly a majority.
    pub fn has_no_spare(&self) -> bool {
        self.ready == self.members / 2 + 1
    }

    /// Reports whether the Ready members are a majority.
    pub fn is_met(&self) -> bool {
        self.ready > self.members / 2
    }

    /// Says what is known of the NotReady machines, as a clause.
    pub fn says(&self) -> &'static str {
        if self.has_etcd {
            "at least one of the NotReady machines is alive, unless etcd was reset to fewer members"
        } else {
            "one of the NotReady machines can be alive and needed"
        }
    }
}

/// Returns the time since which a node has been NotReady, as known at `now`: the later of the times
/// of its condition (`said`) and its taint (`tainted`). A time in the future is no time.
pub fn not_ready_since(
    said: Option<Timestamp>,
    tainted: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    [said, tainted]
        .into_iter()
        .flatten()
        .filter(|since| *since <= now)
        .max()
}

entry! {
    /// A report of a node's own machine.
    pub struct Heartbeat as "SignEntry" {
        /// Who reported: `lease`, `node-problem-detector`, `eks-node-monitoring-agent`,
        /// `virt-handler`, `other-lease`, `program`, or `kubelet`, which says that
        /// the node is not Ready: Kubernetes replaces `False` by `Unknown` as soon as the kubelet stops reporting.
        pub by: SignBy,
        /// When: by the API server's stamp or the node's own clock, whichever is later and not in
        /// the future; of `kubelet` the moment of judging.
        // As a fact, the time may be ahead of the clock by which a run judges. Such a time is later
        // than everything that this clock has seen.
        pub at: Timestamp,
        /// Which one, where the machine may have several: the Lease with its holder, or the program
        /// with its pod.
        pub what: Option<String>,
    }
}

impl Heartbeat {
    /// Reports whether the time may be true: it is not further in the future than clocks may differ.
    pub fn is_believed(&self, now: Timestamp) -> bool {
        self.at.duration_since(now) <= CLOCK_SKEW
    }

    /// Returns the heartbeat with its time limited to `latest`, so that a report never shows a time
    /// in the future.
    #[must_use]
    pub fn no_later_than(&self, latest: Timestamp) -> Self {
        Self {
            at: self.at.min(latest),
            ..self.clone()
        }
    }
}

/// A fencing mark: a mark on a node that says that its machine is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingMark {
    /// The mark, as a phrase.
    pub mark: String,
    /// A moment by which the mark had been set, from a stamp of the API server; `None` if no stamp
    /// shows it. The mark may be much older.
    pub set_by: Option<Timestamp>,
}

impl FencingMark {
    /// Reports whether the mark may still be true if the machine's last heartbeat was at `heard`. A
    /// mark may be left behind: a machine with a heartbeat after the mark was set is on.
    pub fn stands(&self, heard: Option<Timestamp>) -> bool {
        self.set_by
            .zip(heard)
            .is_none_or(|(set_by, heard)| heard <= set_by)
    }
}

/// The maximum difference between the clocks of two API servers. A stamp may be that far ahead of
/// the response's `Date`, or of another server's stamp.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);

codes! {
    /// The source of a heartbeat.
    pub enum SignBy {
        /// The kubelet renewed its lease.
        Lease = "lease",
        /// node-problem-detector wrote the heartbeat of one of its conditions.
        ProblemDetector = "node-problem-detector",
        /// The node monitoring agent of EKS wrote the heartbeat of one of its conditions.
        NodeMonitoring = "eks-node-monitoring-agent",
        /// `KubeVirt`'s virt-handler wrote its annotation.
        VirtHandler = "virt-handler",
        /// A holder named after the node, or after a pod on it, renewed another Lease, or an API server on it did.
        OtherLease = "other-lease",
        /// A program in a Terminating pod wrote to that pod.
        Program = "program",
        /// The kubelet reports that `Ready` is `False`.
        Kubelet = "kubelet",
    }
}

codes! {
    /// The status of a node's `Ready` condition, as `kubectl get node -o yaml` shows it.
    pub enum Ready {
        /// The kubelet reports that the node is Ready.
        True = "True",
        /// The kubelet reports that the node is not Ready.
        False = "False",
        /// The kubelet no longer reports.
        Unknown = "Unknown",
        /// The node has no `Ready` condition.
        Absent = "absent",
    }
}

codes! {
    /// A fault of a node that its kubelet names in the message of the `Ready` condition.
    pub enum KubeletSays {
        /// The node is shutting down.
        ShuttingDown = "shutting-down",
        /// The container runtime does not respond.
        Runtime = "container-runtime",
        /// The network plugin (CNI) is not ready.
        Network = "network-plugin",
    }
}

/// The kind of thing that a leaf node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeafKind {
    /// A leaf cluster of Kosmos.
    Kosmos,
    /// A program without a machine. Its pods run elsewhere.
    Virtual,
    /// A machine at the edge. It keeps working without its cluster.
    Edge,
    /// A node that `--leaf-node-selector` selects.
    Selected,
    /// A node on which no kubelet ever reported.
    NeverReported,
}

/// Why a node is treated as a leaf node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The kind of the first marker that was seen.
    pub kind: LeafKind,
    /// The project or vendor whose nodes carry that marker; empty if the marker is nobody's.
    pub maker: &'static str,
    /// The markers that were seen, as phrases ("label kosmos.io/node").
    pub marks: Vec<String>,
    /// The leaf cluster, if the node names it.
    pub cluster: Option<String>,
}
