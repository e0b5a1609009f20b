//! A pod, Terminating or not, and its owners.

use std::collections::BTreeMap;

use derive_more::Display;
use jiff::{SignedDuration, Timestamp};

use super::{
    Heartbeat, NamespaceFacts, Read, Ready, ResourceVersion, Skip, Toleration, Uid,
    claim::{ClaimName, Copies, SetFacts, Storage, Unneeded},
};
use crate::{
    codes::entry,
    words::{Foreign, Note},
};

/// A pod, Terminating or not. There may be tens of thousands of pods in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFacts {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`. Other pods may have the same name, in other namespaces or at other times.
    pub name: String,
    /// `metadata.uid`, which identifies the pod.
    pub uid: Uid,
    /// `metadata.resourceVersion` of the state that was judged.
    pub resource_version: ResourceVersion,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// The owner that is the pod's controller; the first owner if no owner is its controller.
    pub owner: Option<Owner>,
    /// The workload as people know it: the Deployment above a `ReplicaSet`, the `CronJob` above a
    /// Job, both deduced from names; otherwise the owner.
    pub workload: Option<Owner>,
    /// The owners besides `owner`. The error says that there are too many to keep.
    pub other_owners: Read<Vec<Owner>>,
    /// The API version and UID of the owner, if it is the pod's controller.
    pub controller: Option<Identity>,
    /// The request to delete the pod; `None` if the pod is not Terminating.
    pub deletion: Option<Deletion>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Foreign>,
    /// The managers that set finalizers, by finalizer, as `managedFields` has them.
    pub finalizers_set_by: BTreeMap<Foreign, Foreign>,
    /// `status.phase`.
    pub phase: String,
    /// The states of the pod's containers, as its kubelet last reported them.
    pub containers: Containers,
    /// True if the pod mirrors a static pod.
    pub mirror: bool,
    /// What opts the pod out, if something does.
    pub opted_out: Option<Skip>,
    pub in_namespace: Read<NamespaceFacts>,
    /// Annotation `pod-reaper.io/after-reap`.
    pub after_reap: Option<Note>,
    /// The PVCs that the pod uses. The error says that there are too many to look up.
    pub claim_names: Read<Vec<ClaimName>>,
    /// The pod's first volume that is a writable disk on a storage network, as a phrase; `None` if
    /// there is none.
    pub own_disk: Option<String>,
    /// True if the pod can start on its own node alone: nothing starts elsewhere, and its directories stay.
    pub bound: bool,
    /// True if the pod has the label of a `StatefulSet`'s pod and no controller: its set was deleted without its pods, and
    /// may come back.
    pub is_orphan: bool,
    /// The directories and disks of the node that a container of the pod may write to through a
    /// `hostPath`, without those of the system.
    pub host_paths: Vec<Foreign>,
    /// The number of seconds for which the pod tolerates a node whose kubelet is silent; `None`
    /// means no limit.
    pub tolerates_silence: Option<i64>,
    /// The number of seconds for which the pod tolerates a node whose kubelet reports that the node
    /// is not Ready; `None` means no limit.
    pub tolerates_not_ready: Option<i64>,
    /// `spec.terminationGracePeriodSeconds`.
    pub grace_seconds: i64,
    /// The tolerations of taints other than Kubernetes' own, `node.kubernetes.io/*`.
    pub tolerations: Vec<Toleration>,
    /// The last heartbeat of a program that runs in the pod and writes to it, if the pod is
    /// Terminating.
    pub heard: Option<Heartbeat>,
    /// The pods of its `StatefulSet`, if they were counted. No verdict depends on them.
    pub copies: Option<Copies>,
    /// The missing field that a verdict needs, as a phrase; `None` if the rules can judge the pod.
    pub lacks: Option<String>,
}

/// A request to delete a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deletion {
    /// `metadata.deletionTimestamp`, which already includes the grace period.
    pub deadline: Timestamp,
    /// `metadata.deletionGracePeriodSeconds`; 0 once a force delete was sent.
    pub grace_seconds: Option<i64>,
}

impl Deletion {
    /// Returns the time at which the deletion was requested, which is the deadline minus the grace
    /// period; `None` if it is not known, or negative or too long. A later request with a shorter grace period moves the
    /// deadline and the grace period by the same amount.
    pub fn requested(&self) -> Option<Timestamp> {
        let seconds = self.grace_seconds.filter(|seconds| *seconds >= 0)?;
        self.deadline
            .checked_sub(SignedDuration::from_secs(seconds))
            .ok()
    }
}

/// The number of a pod's containers in each state, as its kubelet last reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Containers {
    /// Running containers, including init containers.
    pub running: usize,
    /// Terminated containers, without init containers.
    pub terminated: usize,
    /// Containers that have not started, without init containers.
    pub waiting: usize,
    /// When the last of those that terminated did, by the kubelet's clock.
    pub ended_at: Option<Timestamp>,
}

/// An object that opts a pod out by `pod-reaper.io/skip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
pub enum OptOut {
    #[display("The pod")]
    Pod,
    #[display("Its namespace")]
    Namespace,
    #[display("Its node")]
    Node,
}

/// The Job controller's finalizer, the only one that the program can have released.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The finalizer of a deletion in the foreground. A delete with the propagation policy `Background`, such as a run's,
/// takes it off (`deletionFinalizersForGarbageCollection` of the API server). One without a policy, such as the pod
/// garbage collector's, leaves it.
pub const FOREGROUND: &str = "foregroundDeletion";

/// The finalizers that their controllers take off once the pod has ended. No kubelet says so of a dead machine, but the pod
/// garbage collector sets the phase to `Failed` before it deletes (`markFailedAndDeletePod`).
const HELD_UNTIL_THE_END: [&str; 4] = [
    // Kueue, of pod groups: pkg/controller/jobs/pod/constants/constants.go
    "kueue.x-k8s.io/managed",
    // Argo Workflows, with ARGO_POD_STATUS_CAPTURE_FINALIZER: docs/pod-status-capture.md
    "workflows.argoproj.io/status",
    // Slurm: prepareTerminalPod in internal/controller/pod/pod_sync.go of slurm-bridge
    "scheduler.slinky.slurm.net/finalizer",
    "scheduler.slurm.net/finalizer",
];

/// Reports whether its controller takes this finalizer off once the pod has ended.
pub fn is_held_until_the_end(finalizer: &str) -> bool {
    HELD_UNTIL_THE_END.contains(&finalizer)
}

/// The kinds of controllers, with their groups, that replace a pod at its eviction.
pub const REPLACED_EARLY: [(&str, &str); 4] = [
    ("ReplicaSet", "apps"),
    ("DaemonSet", "apps"),
    ("Job", "batch"),
    ("ReplicationController", ""),
];

impl PodFacts {
    /// Lists the finalizers that hold the pod, whoever deletes it: a run if the pod `has_node`, otherwise the pod garbage
    /// collector. The Job controller's holds no pod. A finalizer with an empty name does.
    pub fn holding_finalizers(&self, has_node: bool) -> impl Iterator<Item = &Foreign> {
        let is_released = move |name: &str| name == JOB_TRACKING || has_node && name == FOREGROUND;
        self.finalizers
            .iter()
            .filter(move |name| !is_released(name))
    }

    pub fn owners(&self) -> impl Iterator<Item = &Owner> + Clone {
        self.owner.iter().chain(self.other_owners.iter().flatten())
    }

    pub fn deletion_requested(&self) -> Option<Timestamp> {
        self.deletion?.requested()
    }

    /// Reports whether it uses a PVC. One of a pod whose PVCs are not known may.
    pub fn uses_claims(&self) -> bool {
        self.claim_names
            .as_ref()
            .map_or(true, |names| !names.is_empty())
    }

    /// Returns the deletion deadline. For a pod that is not Terminating, it is the last possible
    /// moment.
    pub fn deletion_deadline(&self) -> Timestamp {
        self.deletion.map_or(Timestamp::MAX, |its| its.deadline)
    }

    /// Reports whether the pod has finished. A delete removes such a pod immediately.
    pub fn finished(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Reports whether the pod has not finished and its deletion was not requested.
    pub fn is_active(&self) -> bool {
        self.deletion.is_none() && !self.finished()
    }

    /// Returns for how many seconds the pod tolerates the taint that Kubernetes gives a node in that
    /// state; `None` means no limit.
    pub fn tolerates(&self, ready: Ready) -> Option<i64> {
        match ready {
            Ready::False => self.tolerates_not_ready,
            _ => self.tolerates_silence,
        }
    }

    /// Returns the request by which Kubernetes evicts the pod once its toleration of a node that has been
    /// NotReady `since` then ends, at `now` at the earliest. `None` if Kubernetes has requested it, or
    /// never does; a finished pod would be gone at once.
    pub fn eviction(&self, ready: Ready, since: Timestamp, now: Timestamp) -> Option<Deletion> {
        let after = |at: Timestamp, seconds: i64| {
            let span = SignedDuration::from_secs(seconds.max(0));
            at.saturating_add(span).ok()
        };
        let tolerates = self.tolerates(ready)?;
        if self.mirror || !self.is_active() {
            return None;
        }
        let requested = after(since, tolerates)?.max(now);
        Some(Deletion {
            deadline: after(requested, self.grace_seconds)?,
            grace_seconds: Some(self.grace_seconds.max(0)),
        })
    }

    /// Returns the controller that created the pod and creates another one when the pod is gone.
    pub fn maker(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|_| self.controller.is_some())
    }

    /// Returns the name of the `apps` `StatefulSet` that controls the pod; `None` if none does.
    pub fn stateful_set(&self) -> Option<&str> {
        let owner = self.owner.as_ref()?;
        self.made_by("StatefulSet", "apps").then_some(&owner.name)
    }

    /// Reports whether the pod's controller has replaced the pod at the eviction, without waiting for
    /// its end. Other projects have kinds with these names, which may wait.
    pub fn is_replaced_early(&self) -> bool {
        REPLACED_EARLY
            .iter()
            .any(|(kind, group)| self.made_by(kind, group))
    }

    /// Returns the object whose operator decides what becomes of the pod's PVCs: what controls its `StatefulSet`, or its
    /// controller if that is of no group of Kubernetes. `None` if there is none, as far as was read.
    pub fn operated_by<'a>(&'a self, storage: Option<&'a Storage>) -> Option<&'a Owner> {
        let group = self.controller.as_ref()?.group();
        if !["apps", "batch", ""].contains(&group) {
            return self.owner.as_ref();
        }
        storage?.set.as_ref()?.as_ref().ok()?.controller.as_ref()
    }

    /// Returns why nothing wants the pod again, by its namespace and its `storage`; `None` if
    /// something wants it, or may.
    pub fn unneeded(&self, storage: Option<&Storage>) -> Option<Unneeded> {
        if self.in_namespace.as_ref().is_ok_and(|it| it.deleted) {
            return Some(Unneeded::Namespace);
        }
        self.stateful_set()?;
        let set = storage?.set.as_ref()?;
        matches!(set, Ok(SetFacts { wants: false, .. })).then_some(Unneeded::Set)
    }

    /// Reports whether the pod's controller is of this kind and this API group.
    pub fn made_by(&self, kind: &str, group: &str) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|owner| &*owner.kind == kind)
            && self
                .controller
                .as_ref()
                .is_some_and(|its| its.group() == group)
    }

    /// Reports whether the pod still has the Job controller's finalizer.
    pub fn held_by_job(&self) -> bool {
        self.finalizers.iter().any(|name| &**name == JOB_TRACKING)
    }
}

/// A list of pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum PodsOf {
    #[display("pods of node {_0}")]
    Node(String),
    /// The pods that have no node yet.
    #[display("pods without a node")]
    NoNode,
    /// The pods that have finished, on any node.
    #[display("finished pods")]
    Finished,
    #[display("pods of {_0}")]
    Namespace(String),
    /// The pods with one name, in any namespace.
    #[display("pods named {_0}")]
    Name(String),
}

entry! {
    /// The object that created a pod.
    #[derive(Display)]
    #[display("{kind}/{name}")]
    pub struct Owner as "OwnerEntry" {
        /// Such as `StatefulSet`.
        pub kind: Foreign,
        /// Its name.
        pub name: String,
    }
}

/// The API version and UID of an object. They distinguish it from others of the same kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The API version, such as `apps/v1`.
    pub api_version: String,
    pub uid: Uid,
}

impl Identity {
    /// Returns the API group, without the version; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}
