//! Pods.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::IgnoredAny;

use super::meta::{Condition, MIRROR, Meta, OwnerReference, SKIP, given, required};
use crate::{
    decide::REAP,
    facts::{ClaimFacts, Identity, Owner, PodFacts, PodSummary, Read, Stay},
};

/// Key of the taint that Kubernetes gives a node whose kubelet is silent; evicts what does not tolerate it.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The taint of a node whose kubelet says that it is not Ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// For how many seconds a pod that says nothing tolerates either: Kubernetes writes that into each new pod.
const DEFAULT_SECONDS: i64 = 300;
/// The grace of a pod that says nothing.
const DEFAULT_GRACE: i64 = 30;
/// Set by the Deployment controller: the end of the `ReplicaSet`'s name.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";
/// Set by the `StatefulSet` controller, from Kubernetes 1.28 on.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// Controllers that give each pod a new name.
const RENAMING: [&str; 3] = ["ReplicaSet", "ReplicationController", "Job"];
/// End the keys of labels that only the pods of one such controller have, or of one index of it. Argo Rollouts has a hash of
/// its own; the Job's is its UID, by today's key and the one before 1.27.
const TELLING: [&str; 3] = [POD_TEMPLATE_HASH, "controller-uid", "job-completion-index"];
/// Begins the labels that the API server copies from the node to the pod, since 1.35.
const OF_NODE: &str = "topology.kubernetes.io/";

/// A `CronJob` names its Jobs after itself and the time in minutes since 1970: eight digits until 2160. Fewer may be anything.
const CRON_DIGITS: usize = 8;

raw! {
    /// A pod.
    pub struct RawPod {
        /// Its metadata.
        pub metadata: Meta,
        spec: PodSpec,
        pub status: Status,
        #[serde(skip)]
        supposed: bool,
    }

    struct PodSpec {
        node_name: String,
        termination_grace_period_seconds: Option<i64>,
        volumes: Vec<PodVolume>,
        tolerations: Vec<Toleration>,
    }

    struct Toleration {
        key: String,
        operator: String,
        value: String,
        effect: String,
        #[serde(rename = "tolerationSeconds")]
        seconds: Option<i64>,
    }

    struct PodVolume {
        name: String,
        persistent_volume_claim: Option<ClaimSource>,
        ephemeral: Option<IgnoredAny>,
        /// Of a kind that two pods may use at once. A volume is of one kind.
        #[serde(
            rename = "configMap",
            alias = "secret",
            alias = "projected",
            alias = "downwardAPI",
            alias = "emptyDir",
            alias = "image",
            alias = "hostPath",
            alias = "nfs"
        )]
        shared: Option<IgnoredAny>,
        // Disks on a storage network.
        fc: Option<NetworkDisk>,
        iscsi: Option<NetworkDisk>,
    }

    /// A disk that every machine of its network reaches.
    pub struct NetworkDisk {
        pub read_only: bool,
    }

    struct ClaimSource {
        claim_name: String,
    }

    /// Of a pod, or of what controls pods.
    pub struct Status {
        pub phase: String,
        conditions: Vec<Condition>,
        pub init_container_statuses: Vec<Container>,
        pub container_statuses: Vec<Container>,
    }

    pub struct Container {
        pub restart_count: u64,
        /// `waiting`, `running` or `terminated`; reason and message as a condition has them.
        pub state: BTreeMap<String, Condition>,
    }
}

impl PodVolume {
    /// Whether it is neither a claim nor of a kind that two pods may use at once.
    fn is_own(&self) -> bool {
        let is_claim = self.persistent_volume_claim.is_some() || self.ephemeral.is_some();
        !is_claim && self.shared.is_none()
    }

    fn called(&self) -> String {
        let name = match self.name.as_str() {
            "" => "without a name",
            name => name,
        };
        format!("volume {name}")
    }
}

/// The kind of a disk that several machines may write, in a pod or in a `PersistentVolume`: its driver attaches and detaches
/// nothing (volume/fc/attacher.go, volume/iscsi/attacher.go).
pub fn written_by_several(
    fc: Option<&NetworkDisk>,
    iscsi: Option<&NetworkDisk>,
) -> Option<&'static str> {
    let kinds = [("Fibre Channel", fc), ("iSCSI", iscsi)].into_iter();
    let mut may_be_written = kinds.filter(|(_, disk)| disk.is_some_and(|disk| !disk.read_only));
    may_be_written.next().map(|(kind, _)| kind)
}

impl Toleration {
    /// Whether it tolerates the taint `NoExecute` of that key, by Kubernetes' own rule. The taint has no value.
    fn of(&self, taint: &str) -> bool {
        ["", "NoExecute"].contains(&self.effect.as_str())
            && ["", taint].contains(&self.key.as_str())
            && match self.operator.as_str() {
                "Exists" => true,
                "" | "Equal" => self.value.is_empty(),
                _ => false,
            }
    }
}

impl Status {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|it| it.kind == kind)
    }

    /// Whether the pod has done all that it will do: a delete takes it at once.
    fn finished(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

impl From<&OwnerReference> for Owner {
    fn from(owner: &OwnerReference) -> Self {
        Self {
            kind: owner.kind.clone(),
            name: owner.name.clone(),
        }
    }
}

impl RawPod {
    /// Without what nothing asks of a pod that is to go: tens of thousands are held at once.
    #[must_use]
    pub fn lean(mut self) -> Self {
        self.metadata.drop_idle();
        let siblings = self.labels_of_siblings();
        let kept = |key: &String| {
            [SKIP, POD_TEMPLATE_HASH, POD_INDEX].contains(&key.as_str()) || siblings.contains(key)
        };
        self.metadata.labels.retain(|key, _| kept(key));
        self.status = Status {
            phase: self.status.phase,
            ..Status::default()
        };
        self
    }

    /// Keys of the labels that select the other pods of its controller, where that gives each a new name: those
    /// that tell its pods from others, else all that its template may have given them.
    fn labels_of_siblings(&self) -> Vec<String> {
        let renaming = |owner: &OwnerReference| RENAMING.contains(&owner.kind.as_str());
        if !self.metadata.controller().is_some_and(renaming) {
            return Vec::new();
        }
        let keys = self.metadata.labels.keys().cloned();
        let (telling, mut others): (Vec<_>, Vec<_>) =
            keys.partition(|key| TELLING.iter().any(|end| key.ends_with(end)));
        others.retain(|key| key != SKIP && !key.starts_with(OF_NODE));
        if telling.is_empty() { others } else { telling }
    }

    /// The same pod, as if its deletion had been asked for and should have been over for ever.
    #[must_use]
    pub fn supposed(mut self) -> Self {
        (self.supposed, self.metadata.deletion_timestamp) = (true, Some(Timestamp::MIN));
        self
    }

    /// Its node, where it has one.
    pub fn node(&self) -> Option<String> {
        given(self.spec.node_name.clone())
    }

    /// For how many seconds it tolerates that taint, by the first toleration that fits, as in Kubernetes; `None` is for ever.
    fn tolerates(&self, taint: &str) -> Option<i64> {
        let mut tolerations = self.spec.tolerations.iter();
        tolerations
            .find(|it| it.of(taint))
            .map_or(Some(DEFAULT_SECONDS), |it| it.seconds)
    }

    /// A summary of any pod, Terminating or not.
    pub fn summary(&self) -> PodSummary {
        let Self {
            metadata, status, ..
        } = self;
        let controller = metadata.controller().map(Owner::from);
        let tolerates_silence = self.tolerates(UNREACHABLE);
        let stays = if self.mirror() {
            Some(Stay::Static)
        } else if controller.as_ref().is_some_and(|it| it.kind == "DaemonSet") {
            Some(Stay::DaemonSet)
        } else {
            tolerates_silence.is_none().then_some(Stay::Tolerates)
        };
        let terminating = metadata.terminating();
        let ready = status.condition("Ready").is_none_or(Condition::holds);
        PodSummary {
            claims: self.claims().flatten().map(|it| it.name).collect(),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            node: self.node(),
            serves: status.phase == "Running" && !terminating && ready,
            finished: status.finished(),
            phase: status.phase.clone(),
            created: metadata.creation_timestamp,
            terminating,
            workload: controller.as_ref().map(|owner| self.workload(owner)),
            controller,
            stays,
            tolerates_silence,
            tolerates_not_ready: self.tolerates(NOT_READY),
            grace: (self.spec.termination_grace_period_seconds).unwrap_or(DEFAULT_GRACE),
        }
    }

    /// The claims that it uses, as far as it names them.
    fn claims(&self) -> impl Iterator<Item = Result<ClaimFacts, String>> {
        self.spec.volumes.iter().filter_map(|volume| {
            let name = if let Some(claim) = &volume.persistent_volume_claim {
                required(&claim.claim_name, "persistentVolumeClaim.claimName")
            } else {
                // A generic ephemeral volume's claim is named after pod and volume.
                volume.ephemeral?;
                let volume = required(&volume.name, "the name of a volume");
                volume.map(|volume| format!("{}-{volume}", self.metadata.name))
            };
            let ephemeral = volume.persistent_volume_claim.is_none();
            Some(name.map(|name| ClaimFacts::not_looked_up(name, ephemeral)))
        })
    }

    /// Whether it mirrors a static pod.
    fn mirror(&self) -> bool {
        self.metadata.annotations.contains_key(MIRROR)
    }

    /// What people call the pod's workload: its Deployment, where a `ReplicaSet` is only one of that one's versions; its
    /// `CronJob`, where a Job is only one of its times.
    fn workload(&self, controller: &Owner) -> Owner {
        let Owner { kind, name } = controller;
        let of_time = |(name, time): &(&str, &str)| {
            !name.is_empty()
                && time.len() >= CRON_DIGITS
                && time.chars().all(|digit| digit.is_ascii_digit())
        };
        let hash = self.metadata.labels.get(POD_TEMPLATE_HASH);
        let (kind, name) = match kind.as_str() {
            "Job" if let Some((name, _)) = name.rsplit_once('-').filter(of_time) => {
                ("CronJob", name)
            }
            "ReplicaSet"
                if let Some(name) =
                    hash.and_then(|hash| name.strip_suffix(hash.as_str())?.strip_suffix('-')) =>
            {
                ("Deployment", name)
            }
            kind => (kind, name.as_str()),
        };
        Owner {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// As facts, nothing asked about its claims yet. The pod must be Terminating. An error names what is missing: without a
    /// UID and a resource version a pod cannot be deleted safely, so it is no candidate.
    pub fn into_facts(self, namespace_opted_out: Read<Option<String>>) -> Result<PodFacts, String> {
        let Self { metadata, spec, .. } = &self;
        let owner = metadata
            .owner_references
            .iter()
            .max_by_key(|owner| owner.controller);
        let identity = |owner: &OwnerReference| {
            Some(Identity {
                api_version: required(&owner.api_version, "").ok()?,
                uid: required(&owner.uid, "").ok()?,
            })
        };
        let controller = owner.filter(|owner| owner.controller).and_then(identity);
        let owner = owner.map(Owner::from);
        let mut siblings = self
            .labels_of_siblings()
            .into_iter()
            .map(|key| format!("{key}={}", metadata.labels[&key]));
        let mut claims = self.claims().collect::<Result<Vec<_>, _>>()?;
        // One that the pod also names as any other claim is not its own.
        claims.sort_by(|a, b| a.named().cmp(&b.named()));
        claims.dedup_by(|a, b| a.name == b.name);
        let own_volume = spec.volumes.iter().find(|volume| volume.is_own());
        let own_disk = spec.volumes.iter().find_map(|volume| {
            let disk = written_by_several(volume.fc.as_ref(), volume.iscsi.as_ref())?;
            Some(format!("its {} is {disk}", volume.called()))
        });
        Ok(PodFacts {
            name: required(&metadata.name, "metadata.name")?,
            namespace: required(&metadata.namespace, "metadata.namespace")?,
            uid: required(&metadata.uid, "metadata.uid")?,
            resource_version: required(&metadata.resource_version, "metadata.resourceVersion")?,
            created: metadata.creation_timestamp,
            reap: metadata.annotation(REAP),
            templates: None,
            node: self.node(),
            workload: owner.as_ref().map(|owner| self.workload(owner)),
            owner,
            controller,
            siblings: given(siblings.join(",")),
            supposed: self.supposed,
            deletion_deadline: metadata
                .deletion_timestamp
                .ok_or("metadata.deletionTimestamp is missing")?,
            grace_seconds: metadata.deletion_grace_period_seconds,
            finished: self.status.finished(),
            mirror: self.mirror(),
            indexed: metadata.labels.contains_key(POD_INDEX),
            opted_out: metadata.opted_out(),
            namespace_opted_out,
            after_reap: metadata.annotation("pod-reaper.io/after-reap"),
            own_volume: own_volume.map(PodVolume::called),
            own_disk,
            claims,
            finalizers: self.metadata.finalizers,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pods_of_a_controller_are_asked_for_by_as_few_labels_as_tell_them() {
        let hash = json!({"app": "web", "pod-template-hash": "5d4f"});
        let job = json!({"app": "web", "batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "job-name": "web"});
        let indexed = json!({"controller-uid": "u", "batch.kubernetes.io/job-completion-index": "3", "job-name": "web"});
        let rollout = json!({"app": "web", "rollouts-pod-template-hash": "5d4f"});
        let old_job = json!({"controller-uid": "u", "job-name": "web"});
        let plain = json!({"app": "web", "tier": "", "topology.kubernetes.io/zone": "b", "pod-reaper.io/skip": "false"});
        for (kind, version, labels, siblings) in [
            (
                "ReplicaSet",
                "apps/v1",
                &hash,
                Some("pod-template-hash=5d4f"),
            ),
            ("ReplicaSet", "apps/v1", &plain, Some("app=web,tier=")),
            ("ReplicationController", "v1", &plain, Some("app=web,tier=")),
            (
                "Job",
                "batch/v1",
                &job,
                Some("batch.kubernetes.io/controller-uid=u,controller-uid=u"),
            ),
            ("Job", "batch/v1", &old_job, Some("controller-uid=u")),
            (
                "Job",
                "batch/v1",
                &indexed,
                Some("batch.kubernetes.io/job-completion-index=3,controller-uid=u"),
            ),
            (
                "ReplicaSet",
                "apps/v1",
                &rollout,
                Some("rollouts-pod-template-hash=5d4f"),
            ),
            ("Job", "batch/v1", &json!(null), None),
            ("StatefulSet", "apps/v1", &plain, None),
            ("DaemonSet", "apps/v1", &plain, None),
        ] {
            let owner = json!([{"apiVersion": version, "kind": kind, "name": "web", "uid": "u", "controller": true}]);
            let pod = json!({"metadata": {"namespace": "shop", "name": "web-1", "uid": "p", "resourceVersion": "7",
                "deletionTimestamp": "2026-01-31T02:00:00Z", "labels": labels, "ownerReferences": owner}});
            let read = || serde_json::from_value::<RawPod>(pod.clone()).unwrap();
            for pod in [read(), read().lean()] {
                let facts = pod.into_facts(Ok(None)).unwrap();
                assert_eq!(facts.siblings.as_deref(), siblings, "{kind} of {version}");
            }
        }
    }
}
