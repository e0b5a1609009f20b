//! Pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::IgnoredAny;

use super::meta::{Condition, Meta, OwnerReference, SKIP, required};
use crate::facts::{ClaimUse, Claims, Identity, Owner, PodFacts, PodSummary, Read, Stay, Unasked};

/// Key of the taint that Kubernetes gives a node whose kubelet is silent; evicts what does not tolerate it.
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The same of a node whose kubelet says that it is not Ready.
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
        node_name: Option<String>,
        termination_grace_period_seconds: Option<i64>,
        volumes: Option<Vec<PodVolume>>,
        tolerations: Option<Vec<Toleration>>,
    }

    struct Toleration {
        key: Option<String>,
        operator: Option<String>,
        value: Option<String>,
        effect: Option<String>,
        #[serde(rename = "tolerationSeconds")]
        seconds: Option<i64>,
    }

    struct PodVolume {
        name: Option<String>,
        persistent_volume_claim: Option<ClaimSource>,
        ephemeral: Option<IgnoredAny>,
        // Those that two pods may use at once.
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
        claim_name: Option<String>,
    }

    /// Of a pod, or of what controls pods.
    pub(super) struct Status {
        pub(super) phase: Option<String>,
        conditions: Option<Vec<Condition>>,
        pub(super) init_container_statuses: Option<Vec<Container>>,
        pub(super) container_statuses: Option<Vec<Container>>,
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
}

/// The kind of a disk that several machines may write, in a pod or in a `PersistentVolume`: its driver attaches and detaches
/// nothing (volume/fc/attacher.go, volume/iscsi/attacher.go).
pub(super) fn written_by_several(
    fc: Option<&NetworkDisk>,
    iscsi: Option<&NetworkDisk>,
) -> Option<&'static str> {
    let may_write = |disk: Option<&NetworkDisk>| disk.is_some_and(|disk| !disk.read_only);
    let kinds = [("Fibre Channel", fc), ("iSCSI", iscsi)];
    kinds
        .into_iter()
        .find_map(|(kind, disk)| may_write(disk).then_some(kind))
}

impl Toleration {
    /// Whether it tolerates the taint `NoExecute` of that key, by Kubernetes' own rule. The taint has no value.
    fn of(&self, taint: &str) -> bool {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        given(&self.effect).is_none_or(|effect| effect == "NoExecute")
            && given(&self.key).is_none_or(|key| key == taint)
            && match given(&self.operator).as_deref() {
                Some("Exists") => true,
                None | Some("Equal") => given(&self.value).is_none(),
                Some(_) => false,
            }
    }
}

impl Status {
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .flatten()
            .find(|condition| condition.kind.as_deref() == Some(kind))
    }
}

impl From<&OwnerReference> for Owner {
    fn from(owner: &OwnerReference) -> Self {
        Self {
            kind: owner.kind.clone().unwrap_or_default(),
            name: owner.name.clone().unwrap_or_default(),
        }
    }
}

impl RawPod {
    /// Without what nothing asks of a pod that is to go: tens of thousands are held at once.
    #[must_use]
    pub fn lean(mut self) -> Self {
        let siblings = self.labels_of_siblings();
        let kept = |key: &String| {
            [SKIP, POD_TEMPLATE_HASH, POD_INDEX].contains(&key.as_str()) || siblings.contains(key)
        };
        self.metadata
            .labels
            .iter_mut()
            .for_each(|labels| labels.retain(|key, _| kept(key)));
        self.metadata.labels = self.metadata.labels.filter(|labels| !labels.is_empty());
        self.status = Status {
            phase: self.status.phase,
            ..Status::default()
        };
        self
    }

    /// Keys of the labels that select the other pods of its controller, where that gives each a new name: those
    /// that tell its pods from others, else all that its template may have given them.
    fn labels_of_siblings(&self) -> Vec<String> {
        let kind = self
            .metadata
            .controller()
            .and_then(|owner| owner.kind.as_deref());
        if !kind.is_some_and(|kind| RENAMING.contains(&kind)) {
            return Vec::new();
        }
        let labels = self
            .metadata
            .labels
            .iter()
            .flatten()
            .map(|(key, _)| key.clone());
        let (telling, mut others): (Vec<_>, Vec<_>) =
            labels.partition(|key| TELLING.iter().any(|end| key.ends_with(end)));
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
    pub fn node(&self) -> Option<&str> {
        self.spec
            .node_name
            .as_deref()
            .filter(|node| !node.is_empty())
    }

    /// The toleration of the taint that counts: the first that fits, as in Kubernetes.
    fn toleration(&self, taint: &str) -> Option<&Toleration> {
        self.spec
            .tolerations
            .iter()
            .flatten()
            .find(|toleration| toleration.of(taint))
    }

    /// For how many seconds it tolerates that taint; `None` is for ever.
    fn tolerates(&self, taint: &str) -> Option<i64> {
        self.toleration(taint)
            .map_or(Some(DEFAULT_SECONDS), |toleration| toleration.seconds)
    }

    /// What there is to know about one that runs on a node that may be dead; `None` where it is finished or Terminating.
    pub fn unasked(&self) -> Option<Unasked> {
        let PodSummary {
            namespace,
            name,
            workload,
            claims,
            stays,
            terminating,
            finished,
            tolerates: tolerates_silence,
            ..
        } = self.summary();
        let tolerates_not_ready = self.tolerates(NOT_READY);
        let unasked = Unasked {
            namespace,
            name,
            workload,
            claims,
            stays,
            tolerates_silence,
            tolerates_not_ready,
        };
        (!terminating && !finished).then_some(unasked)
    }

    /// What there is to know about a pod that is not Terminating, or not only that.
    pub fn summary(&self) -> PodSummary {
        let controller = self.metadata.controller().map(Owner::from);
        let daemon = controller
            .as_ref()
            .is_some_and(|owner| owner.kind == "DaemonSet");
        let tolerates = self.tolerates(UNREACHABLE);
        let stays = match tolerates {
            _ if self.mirror() => Some(Stay::Static),
            _ if daemon => Some(Stay::DaemonSet),
            None => Some(Stay::Tolerates),
            Some(_) => None,
        };
        let unready = self
            .status
            .condition("Ready")
            .is_some_and(|ready| !ready.holds());
        let phase = self.status.phase.clone().unwrap_or_default();
        let terminating = self.metadata.terminating();
        PodSummary {
            claims: self.claims().filter_map(|(claim, _)| claim.ok()).collect(),
            name: self.metadata.name.clone().unwrap_or_default(),
            namespace: self.metadata.namespace.clone().unwrap_or_default(),
            uid: self.metadata.uid.clone().unwrap_or_default(),
            node: self.node().map(str::to_owned),
            serves: phase == "Running" && !terminating && !unready,
            finished: self.finished(),
            phase,
            created: self.metadata.creation_timestamp,
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
        let pod = self.metadata.name.as_deref().unwrap_or_default();
        self.spec
            .volumes
            .iter()
            .flatten()
            .filter_map(move |volume| {
                let (claim, ephemeral) = (&volume.persistent_volume_claim, &volume.ephemeral);
                let name = match (claim, ephemeral) {
                    (Some(claim), _) => {
                        required(claim.claim_name.clone(), "persistentVolumeClaim.claimName")
                    }
                    // A generic ephemeral volume's claim is named after pod and volume.
                    (None, Some(_)) => required(volume.name.clone(), "the name of a volume")
                        .map(|volume| format!("{pod}-{volume}")),
                    (None, None) => return None,
                };
                Some((name, claim.is_none()))
            })
    }

    /// Whether it has done all that it will do: a delete takes it at once.
    fn finished(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// Whether it mirrors a static pod.
    fn mirror(&self) -> bool {
        self.metadata.annotation(|known| &known.mirror).is_some()
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
        let above = match kind.as_str() {
            "Job" => name
                .rsplit_once('-')
                .filter(of_time)
                .map(|(name, _)| ("CronJob", name)),
            "ReplicaSet" => {
                let version = self
                    .metadata
                    .label(POD_TEMPLATE_HASH)
                    .map(|hash| format!("-{hash}"));
                version
                    .and_then(|version| name.strip_suffix(&version))
                    .map(|name| ("Deployment", name))
            }
            _ => None,
        };
        let (kind, name) = above.unwrap_or((kind, name));
        Owner {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// As facts, nothing asked about its claims yet. The pod must be Terminating. An error names what is missing: without a
    /// UID and a resource version a pod cannot be deleted safely, so it is no candidate.
    pub fn into_facts(self, namespace_opted_out: Read<Option<String>>) -> Result<PodFacts, String> {
        let name = required(self.metadata.name.clone(), "metadata.name")?;
        let owner = self.metadata.owner_references.iter().flatten();
        let owner = owner.max_by_key(|owner| owner.controller == Some(true));
        let controller = owner
            .filter(|owner| owner.controller == Some(true))
            .and_then(|owner| {
                Some(Identity {
                    api_version: owner.api_version.clone()?,
                    uid: owner.uid.clone()?,
                })
            });
        let label = |key: &String| Some(format!("{key}={}", self.metadata.label(key)?));
        let siblings = self
            .labels_of_siblings()
            .iter()
            .filter_map(label)
            .collect::<Vec<_>>()
            .join(",");
        let deletion_deadline = self
            .metadata
            .deletion_timestamp
            .ok_or("metadata.deletionTimestamp is missing")?;
        let owner = owner.map(Owner::from);
        let workload = owner.as_ref().map(|owner| self.workload(owner));
        let claim = |(name, ephemeral): (Result<String, String>, bool)| {
            name.map(|name| ClaimUse { name, ephemeral })
        };
        let claims = self.claims().map(claim);
        let mut claims = claims.collect::<Result<Vec<_>, String>>()?;
        // One that the pod also names as any other claim is not its own.
        claims.sort();
        claims.dedup_by(|a, b| a.name == b.name);
        let volumes = || self.spec.volumes.iter().flatten();
        let named = |volume: &PodVolume| {
            format!(
                "volume {}",
                volume.name.as_deref().unwrap_or("without a name")
            )
        };
        let own_volume = volumes().find(|volume| !volume.is_shared()).map(named);
        let own_disk = volumes().find_map(|volume| {
            let disk = written_by_several(volume.fc.as_ref(), volume.iscsi.as_ref())?;
            Some(format!("its {} is {disk}", named(volume)))
        });
        Ok(PodFacts {
            namespace: required(self.metadata.namespace.clone(), "metadata.namespace")?,
            name,
            uid: required(self.metadata.uid.clone(), "metadata.uid")?,
            resource_version: required(
                self.metadata.resource_version.clone(),
                "metadata.resourceVersion",
            )?,
            created: self.metadata.creation_timestamp,
            reap: self
                .metadata
                .annotation(|known| &known.reap)
                .map(str::to_owned),
            templates: None,
            node: self.node().map(str::to_owned),
            owner,
            workload,
            controller,
            siblings: Some(siblings).filter(|siblings| !siblings.is_empty()),
            deletion_deadline,
            grace_seconds: self.metadata.deletion_grace_period_seconds,
            finished: self.finished(),
            mirror: self.mirror(),
            indexed: self.metadata.label(POD_INDEX).is_some(),
            opted_out: self.metadata.opted_out(),
            namespace_opted_out,
            after_reap: self
                .metadata
                .annotation(|known| &known.after_reap)
                .map(str::to_owned),
            finalizers: self.metadata.finalizers.unwrap_or_default(),
            claims: Claims::Named(claims),
            own_volume,
            own_disk,
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
