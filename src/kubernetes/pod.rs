//! Pods.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::IgnoredAny;

use super::meta::{Condition, MIRROR, Meta, OwnerReference, SKIP, given, required};
use crate::facts::{ClaimUse, Claims, Identity, Owner, PodFacts, PodSummary, Read, Stay, Unasked};

/// Key of the taint that Kubernetes gives a node whose kubelet is silent; evicts what does not tolerate it.
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The taint of a node whose kubelet says that it is not Ready.
pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
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
        pub(super) status: Status,
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
        // Two pods may use such a volume at once.
        config_map: Option<IgnoredAny>,
        secret: Option<IgnoredAny>,
        projected: Option<IgnoredAny>,
        #[serde(rename = "downwardAPI")]
        downward_api: Option<IgnoredAny>,
        empty_dir: Option<IgnoredAny>,
        image: Option<IgnoredAny>,
        host_path: Option<IgnoredAny>,
        nfs: Option<IgnoredAny>,
        // Disks on a storage network.
        fc: Option<NetworkDisk>,
        iscsi: Option<NetworkDisk>,
    }

    /// A disk that every machine of its network reaches.
    pub(super) struct NetworkDisk {
        pub(super) read_only: bool,
    }

    struct ClaimSource {
        claim_name: String,
    }

    /// Of a pod, or of what controls pods.
    pub(super) struct Status {
        pub(super) phase: String,
        conditions: Vec<Condition>,
        pub(super) init_container_statuses: Vec<Container>,
        pub(super) container_statuses: Vec<Container>,
    }

    pub(super) struct Container {
        pub(super) restart_count: u64,
        /// `waiting`, `running` or `terminated`; reason and message as a condition has them.
        pub(super) state: BTreeMap<String, Condition>,
    }
}

impl PodVolume {
    /// Whether two pods may use it at once, or it is a claim.
    fn is_shared(&self) -> bool {
        let plain = [
            &self.config_map,
            &self.secret,
            &self.projected,
            &self.downward_api,
            &self.empty_dir,
            &self.image,
            &self.host_path,
            &self.nfs,
            &self.ephemeral,
        ];
        self.persistent_volume_claim.is_some() || plain.into_iter().any(Option::is_some)
    }

    fn called(&self) -> String {
        let name = required(self.name.as_str(), "");
        format!("volume {}", name.unwrap_or("without a name"))
    }
}

/// The kind of a disk that several machines may write, in a pod or in a `PersistentVolume`: its driver attaches and detaches
/// nothing (volume/fc/attacher.go, volume/iscsi/attacher.go).
pub(super) fn written_by_several(
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
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
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

    /// The same pod, as if its deletion had been asked for and should have been over at `deadline`.
    #[must_use]
    pub fn deleted_by(mut self, deadline: Timestamp) -> Self {
        self.metadata.deletion_timestamp = Some(deadline);
        self
    }

    /// Its node, where it has one.
    pub fn node(&self) -> Option<String> {
        given(self.spec.node_name.clone())
    }

    /// The toleration of the taint that counts: the first that fits, as in Kubernetes.
    fn toleration(&self, taint: &str) -> Option<&Toleration> {
        self.spec.tolerations.iter().find(|it| it.of(taint))
    }

    /// For how many seconds it tolerates that taint; `None` is for ever.
    fn tolerates(&self, taint: &str) -> Option<i64> {
        self.toleration(taint)
            .map_or(Some(DEFAULT_SECONDS), |toleration| toleration.seconds)
    }

    /// What there is to know about one that runs on a node that may be dead; `None` where it is finished or Terminating.
    pub fn unasked(&self) -> Option<Unasked> {
        if self.metadata.terminating() || self.status.finished() {
            return None;
        }
        let PodSummary {
            namespace,
            name,
            workload,
            claims,
            stays,
            tolerates: tolerates_silence,
            ..
        } = self.summary();
        Some(Unasked {
            namespace,
            name,
            workload,
            claims,
            stays,
            tolerates_silence,
            tolerates_not_ready: self.tolerates(NOT_READY),
        })
    }

    /// What there is to know about a pod that is not Terminating, or not only that.
    pub fn summary(&self) -> PodSummary {
        let Self {
            metadata, status, ..
        } = self;
        let controller = metadata.controller().map(Owner::from);
        let daemon = |owner: &Owner| owner.kind == "DaemonSet";
        let tolerates = self.tolerates(UNREACHABLE);
        let stays = match tolerates {
            _ if self.mirror() => Some(Stay::Static),
            _ if controller.as_ref().is_some_and(daemon) => Some(Stay::DaemonSet),
            None => Some(Stay::Tolerates),
            Some(_) => None,
        };
        let terminating = metadata.terminating();
        let ready = status.condition("Ready").is_none_or(Condition::holds);
        PodSummary {
            claims: self.claims().filter_map(|(claim, _)| claim.ok()).collect(),
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
            tolerates,
            grace: (self.spec.termination_grace_period_seconds).unwrap_or(DEFAULT_GRACE),
        }
    }

    /// The name of each claim that it uses, and whether its own generic ephemeral volume asks for that.
    fn claims(&self) -> impl Iterator<Item = (Result<String, String>, bool)> {
        let claim = |volume: &PodVolume| match (&volume.persistent_volume_claim, &volume.ephemeral)
        {
            (Some(claim), _) => {
                let name = claim.claim_name.clone();
                Some((required(name, "persistentVolumeClaim.claimName"), false))
            }
            // A generic ephemeral volume's claim is named after pod and volume.
            (None, Some(_)) => {
                let volume = required(volume.name.as_str(), "the name of a volume");
                let name = volume.map(|volume| format!("{}-{volume}", self.metadata.name));
                Some((name, true))
            }
            (None, None) => None,
        };
        self.spec.volumes.iter().filter_map(claim)
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
        let hash = self.metadata.label(POD_TEMPLATE_HASH);
        let (kind, name) = match kind.as_str() {
            "Job" if let Some((name, _)) = name.rsplit_once('-').filter(of_time) => {
                ("CronJob", name)
            }
            "ReplicaSet"
                if let Some(name) =
                    hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-')) =>
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
                api_version: required(owner.api_version.clone(), "").ok()?,
                uid: required(owner.uid.clone(), "").ok()?,
            })
        };
        let controller = owner.filter(|owner| owner.controller).and_then(identity);
        let owner = owner.map(Owner::from);
        let mut siblings = self
            .labels_of_siblings()
            .into_iter()
            .map(|key| format!("{key}={}", metadata.labels[&key]));
        let mut claims = self
            .claims()
            .map(|(name, ephemeral)| name.map(|name| ClaimUse { name, ephemeral }))
            .collect::<Result<Vec<_>, String>>()?;
        // One that the pod also names as any other claim is not its own.
        claims.sort();
        claims.dedup_by(|a, b| a.name == b.name);
        let mut own_volumes = spec.volumes.iter().filter(|volume| !volume.is_shared());
        let own_disk = spec.volumes.iter().find_map(|volume| {
            let disk = written_by_several(volume.fc.as_ref(), volume.iscsi.as_ref())?;
            Some(format!("its {} is {disk}", volume.called()))
        });
        Ok(PodFacts {
            name: required(metadata.name.clone(), "metadata.name")?,
            namespace: required(metadata.namespace.clone(), "metadata.namespace")?,
            uid: required(metadata.uid.clone(), "metadata.uid")?,
            resource_version: required(
                metadata.resource_version.clone(),
                "metadata.resourceVersion",
            )?,
            created: metadata.creation_timestamp,
            reap: metadata.annotation("pod-reaper.io/reap"),
            templates: None,
            node: self.node(),
            workload: owner.as_ref().map(|owner| self.workload(owner)),
            owner,
            controller,
            siblings: given(siblings.join(",")),
            deletion_deadline: metadata
                .deletion_timestamp
                .ok_or("metadata.deletionTimestamp is missing")?,
            grace_seconds: metadata.deletion_grace_period_seconds,
            finished: self.status.finished(),
            mirror: self.mirror(),
            indexed: metadata.has_label(POD_INDEX, None),
            opted_out: metadata.opted_out(),
            namespace_opted_out,
            after_reap: metadata.annotation("pod-reaper.io/after-reap"),
            own_volume: own_volumes.next().map(PodVolume::called),
            own_disk,
            claims: Claims::Named(claims),
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
