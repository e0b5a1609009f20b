//! Pods: their fields, and their conversion to facts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    mem,
};

use itertools::Itertools as _;
use jiff::Timestamp;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Shared,
    host_path::{Container, HostPath},
    lease::HolderPod,
    meta::{
        AFTER_REAP, HOSTNAME, MAX_ITEMS_KEPT, MIRROR, Malformed, Meta, OwnerReference, SKIP,
        Written, cut, full_name, given, required,
    },
    node::TAINTS_OF_KUBERNETES,
    volume::RequiredTerms,
};
use crate::{
    facts::{
        ClaimName, Containers, Heartbeat, Identity, MAX_CLAIMS_PER_POD, Owner, PodFacts, Read,
        Ready, Requirement, SignBy, Taint, Toleration, Unread,
    },
    selector::NodeSelectors,
    words::{Foreign, name},
};

/// The key of the taint that Kubernetes gives a node whose kubelet is silent. Kubernetes evicts
/// pods that do not tolerate the taint.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The key of the taint of a node whose kubelet says that it is not Ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// How many seconds a pod tolerates either taint if it does not say so itself. Kubernetes writes
/// this toleration into each new pod.
const DEFAULT_TOLERATION_SECONDS: i64 = 300;
/// The length that a phase is cut to: the longest that Kubernetes writes is `Succeeded`.
const MAX_PHASE_CHARS: usize = 16;
/// The API group of Longhorn's own controllers.
const LONGHORN: &str = "longhorn.io";
/// The grace period, in seconds, of a pod that does not give one.
const DEFAULT_GRACE_SECONDS: i64 = 30;
/// The label that the Deployment controller sets. The name of the pod's `ReplicaSet` ends with its
/// value.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";
/// The label that the `StatefulSet` controller sets, with the pod's name.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Programs that run in a pod and write to that pod, by the manager that `managedFields` names:
/// Patroni writes every 10 s (patroni/dcs/kubernetes.py).
const PROGRAMS: [&str; 1] = ["Patroni"];
/// The labels and annotations of pods that are rules.
const LABELS: [&str; 3] = [POD_TEMPLATE_HASH, POD_NAME, SKIP];
const ANNOTATIONS: [&str; 3] = [MIRROR, SKIP, AFTER_REAP];
/// The namespaces of static pods of etcd and of API servers.
const STATIC_NAMESPACES: [&str; 2] = ["kube-system", "openshift-etcd"];
/// The most characters of a name before the random characters that Kubernetes appends, and the
/// number of random characters (`apiserver/pkg/storage/names/generate.go`).
const MAX_BASE_CHARS: usize = 58;
const RANDOM_LETTERS: usize = 5;
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The field by which a term names a node.
const NODE_NAME: &str = "metadata.name";
/// The least number of digits in the time that a `CronJob` adds to its own name to name a Job: the
/// minutes since 1970, eight digits until 2160. A shorter number may mean anything.
const MIN_CRON_DIGITS: usize = 8;

/// The most bytes of texts that are kept of a pod. A run keeps tens of thousands of pods, and their
/// authors decide how long most of their texts are.
const MAX_BYTES_KEPT: usize = 2 << 10;

/// The programs of the API server that were seen as static pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StaticPods {
    pub etcd: bool,
    pub api_server: bool,
}

impl StaticPods {
    /// Adds what another pod of the node shows.
    pub fn add(&mut self, other: Self) {
        self.etcd |= other.etcd;
        self.api_server |= other.api_server;
    }
}

/// A pod as a run keeps it: its facts, with texts of at most 2 KiB.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "WholePod")]
pub struct RawPod {
    /// Its names and times alone.
    pub metadata: Meta,
    /// The facts about the pod, Terminating or not; neither its namespace nor its PVCs are looked up yet.
    pub facts: PodFacts,
    /// Whether its kubelet says that it has started it. Its phase does not tell: controllers end pods that never ran.
    pub has_started: bool,
    /// The parts of the API server's datastore that it shows.
    pub shows: StaticPods,
}

raw! {
    /// A pod as it arrives.
    pub struct WholePod {
        pub metadata: Meta,
        spec: PodSpec,
        status: Status,
    }

    struct PodSpec {
        node_name: String,
        termination_grace_period_seconds: Option<i64>,
        volumes: Vec<PodVolume>,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        tolerations: Vec<Toleration>,
        node_selector: BTreeMap<String, String>,
        affinity: Affinity,
    }

    struct Affinity {
        node_affinity: NodeAffinity,
    }

    struct NodeAffinity {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: RequiredTerms,
    }

    struct PodVolume {
        name: String,
        persistent_volume_claim: Option<ClaimSource>,
        ephemeral: Option<Given>,
        // Disks on a storage network.
        fc: Option<NetworkDisk>,
        iscsi: Option<NetworkDisk>,
        flex_volume: Option<NetworkDisk>,
        host_path: Option<HostPath>,
    }

    /// A disk that every machine of its network reaches.
    struct NetworkDisk {
        read_only: bool,
    }

    struct ClaimSource {
        claim_name: String,
        read_only: bool,
    }

    struct Status {
        phase: String,
        // Only a kubelet sets it, when it takes up the pod (`pkg/kubelet/status/status_manager.go`).
        start_time: Option<Value>,
        init_container_statuses: Vec<ContainerStatus>,
        container_statuses: Vec<ContainerStatus>,
    }

    struct ContainerStatus {
        state: ContainerState,
    }

    /// One of the three is given.
    struct ContainerState {
        waiting: Option<Given>,
        running: Option<Given>,
        terminated: Option<Terminated>,
    }

    /// A field of which only matters that it is there.
    struct Given {}

    struct Terminated {
        finished_at: Option<Timestamp>,
    }
}

impl PodVolume {
    /// Reports whether a rule asks for the volume.
    fn matters(&self) -> bool {
        self.uses_claim() || self.directory().is_some() || self.disk().is_some()
    }

    /// Returns its directory of the node, if a workload may have its data there.
    fn directory(&self) -> Option<&HostPath> {
        self.host_path.as_ref().filter(|it| it.may_have_data())
    }

    fn uses_claim(&self) -> bool {
        self.persistent_volume_claim.is_some() || self.ephemeral.is_some()
    }

    /// Returns the kind of the disk, if several machines may write it. A CSI volume that the pod itself
    /// declares is made for this pod, and ends with it.
    fn disk(&self) -> Option<&'static str> {
        let is_written = |disk: &Option<NetworkDisk>| disk.as_ref().is_some_and(|it| !it.read_only);
        kind_of_disk([&self.fc, &self.iscsi, &self.flex_volume].map(is_written))
    }
}

/// Reports whether a program wrote the entry that runs in the pod.
pub fn is_program(entry: &Written) -> bool {
    PROGRAMS.contains(&entry.manager.as_str())
}

/// Returns the kind of a disk that several machines may write, in a pod or in a `PersistentVolume`, by
/// which of the three kinds it is of; `None` for any other disk. Nothing attaches or detaches them
/// (volume/fc/attacher.go, volume/iscsi/attacher.go; most flexVolume drivers), so nothing keeps a
/// second machine out.
pub fn kind_of_disk(is_of: [bool; 3]) -> Option<&'static str> {
    ["Fibre Channel", "iSCSI", "a flexVolume"]
        .into_iter()
        .zip(is_of)
        .find_map(|(kind, is_it)| is_it.then_some(kind))
}

impl Status {
    /// Reports whether a kubelet has started the pod, or one of its containers. A pod that it rejected has a start time, and
    /// no container.
    fn has_started(&self) -> bool {
        let mut containers = self
            .init_container_statuses
            .iter()
            .chain(&self.container_statuses);
        let is_rejected = self.phase == "Failed" && containers.clone().next().is_none();
        self.start_time.is_some() && !is_rejected
            || containers.any(|it| it.state.running.is_some() || it.state.terminated.is_some())
    }

    /// Counts the containers by their states.
    fn containers(&self) -> Containers {
        let states = self.container_statuses.iter().map(|it| &it.state);
        let of_init = self.init_container_statuses.iter().map(|it| &it.state);
        // A sidecar is an init container that runs on.
        let with_sidecars = of_init.chain(states.clone());
        let ended = with_sidecars
            .clone()
            .filter_map(|it| it.terminated.as_ref());
        Containers {
            ended_at: ended.filter_map(|it| it.finished_at).max(),
            running: with_sidecars.filter(|it| it.running.is_some()).count(),
            terminated: states.clone().filter(|it| it.terminated.is_some()).count(),
            waiting: states.filter(|it| it.waiting.is_some()).count(),
        }
    }
}

impl From<&OwnerReference> for Owner {
    fn from(owner: &OwnerReference) -> Self {
        Self {
            kind: owner.kind.as_str().into(),
            name: name(owner.name.clone()),
        }
    }
}

impl WholePod {
    /// Returns the PVCs that the pod uses, if there are not too many to keep.
    fn claim_names(&self) -> Read<Vec<ClaimName>> {
        let volumes = &self.spec.volumes;
        let uses = volumes.iter().filter(|it| it.uses_claim());
        if uses.clone().count() > MAX_CLAIMS_PER_POD {
            let why = format!(
                "it uses more than {MAX_CLAIMS_PER_POD} PVCs, and no more of a pod are looked up"
            );
            return Err(Unread(why));
        }
        let named = uses.map(|volume| {
            let claim = volume.persistent_volume_claim.as_ref();
            // The PVC of a generic ephemeral volume is named after the pod and the volume.
            let mut named = claim.map_or_else(
                || format!("{}-{}", self.metadata.name, volume.name),
                |claim| claim.claim_name.clone(),
            );
            cut(&mut named);
            ClaimName {
                name: name(named),
                ephemeral: claim.is_none(),
                read_only: claim.is_some_and(|claim| claim.read_only),
            }
        });
        let mut claims = named.collect_vec();
        // If the pod names one PVC in several ways, the PVC is not treated as ephemeral, nor as read-only.
        claims.sort_unstable();
        claims.dedup_by(|more, kept| {
            let is_same = more.name == kept.name;
            kept.read_only &= !is_same || more.read_only;
            is_same
        });
        Ok(claims)
    }

    /// Lists the paths of the node, apart from those of its system, that a container of the pod may
    /// write to. If there are more than are kept, one more shows this.
    fn host_paths(&self) -> Vec<Foreign> {
        let PodSpec {
            volumes,
            containers,
            init_containers,
            ..
        } = &self.spec;
        let of_hosts = volumes
            .iter()
            .filter_map(|it| Some((it.name.as_str(), it.directory()?.short())))
            .collect::<BTreeMap<_, _>>();
        let mut paths = BTreeSet::new();
        for container in containers.iter().chain(init_containers) {
            for (name, below) in container.writes() {
                paths.extend(of_hosts.get(name).and_then(|it| it.of_data(&below)));
                if paths.len() > MAX_ITEMS_KEPT + 1 {
                    paths.pop_last();
                }
            }
        }
        paths.into_iter().map(Foreign::from).collect()
    }

    /// Reports whether its `nodeSelector` or the only term of its required affinity names one node. Another label binds to
    /// no node: a node that has it, too, may come up at any time.
    fn names_its_node(&self) -> bool {
        let PodSpec {
            node_name,
            node_selector,
            affinity,
            ..
        } = &self.spec;
        let only_value = |all: &[Requirement], key: &str| {
            all.iter().find_map(|it| match &it.values[..] {
                [value] if it.key == key && it.operator == "In" => Some(value.clone()),
                _ => None,
            })
        };
        let is_required = match &affinity.node_affinity.required.node_selector_terms[..] {
            [term] => {
                only_value(&term.match_fields, NODE_NAME).as_ref() == Some(node_name)
                    || only_value(&term.match_expressions, HOSTNAME).is_some()
            }
            _ => false,
        };
        is_required || node_selector.contains_key(HOSTNAME)
    }

    /// Returns for how many seconds the pod tolerates a taint of a node that is not Ready; `None` is forever. The first
    /// toleration that matches is used, as in Kubernetes.
    fn tolerates(&self, taint: &str) -> Option<i64> {
        let taint = Taint {
            key: taint.to_owned(),
            value: String::new(),
            effect: "NoExecute".to_owned(),
        };
        self.spec
            .tolerations
            .iter()
            .find(|toleration| toleration.tolerates(&taint))
            .map_or(Some(DEFAULT_TOLERATION_SECONDS), |it| it.seconds)
    }

    /// Lists the tolerations of other taints, up to the limit: one more lets pods start on more nodes, so one less keeps
    /// them.
    fn other_tolerations(&self) -> Vec<Toleration> {
        self.spec
            .tolerations
            .iter()
            .filter(|it| !it.key.starts_with(TAINTS_OF_KUBERNETES))
            .take(MAX_ITEMS_KEPT)
            .cloned()
            .collect()
    }

    /// Describes the pod's first volume that is a writable disk on a storage network.
    fn own_disk(&self) -> Option<String> {
        self.spec.volumes.iter().find_map(|volume| {
            let name = full_name("", &name(volume.name.clone()), "without a name");
            Some(format!("its volume {name} is {}", volume.disk()?))
        })
    }

    /// Returns what the pod shows of the API server's datastore: it is the mirror of a static pod of etcd, as kubeadm, kops
    /// and `OpenShift` make it, or of an API server. Nobody else may write to these namespaces.
    fn shows(&self) -> StaticPods {
        let namespace = self.metadata.namespace.as_str();
        let is_static = self.mirror() && STATIC_NAMESPACES.contains(&namespace);
        let mut containers = self.spec.containers.iter().filter(|_| is_static);
        StaticPods {
            etcd: containers.clone().any(Container::is_etcd),
            api_server: containers.any(Container::is_api_server),
        }
    }

    /// Returns the last heartbeat of a program that runs in the pod.
    fn heard(&self) -> Option<Heartbeat> {
        let its = &self.metadata;
        let (at, program) = its
            .managed_fields
            .iter()
            .filter(|it| is_program(it))
            .filter_map(|it| Some((it.time()?, &it.manager)))
            .max()?;
        Some(Heartbeat {
            by: SignBy::Program,
            at,
            what: Some(format!("{program} in pod {}/{}", its.namespace, its.name)),
        })
    }

    fn mirror(&self) -> bool {
        self.metadata.annotations.contains_key(MIRROR)
    }

    /// Returns the workload that users associate with the pod: the Deployment above its
    /// `ReplicaSet`, the `CronJob` above its Job, or else the controller itself.
    fn workload(&self, controller: &Owner) -> Owner {
        let Owner { kind, name } = controller;
        let is_timed = |(name, time): &(&str, &str)| {
            !name.is_empty()
                && time.len() >= MIN_CRON_DIGITS
                && time.chars().all(|digit| digit.is_ascii_digit())
        };
        let hash = self.metadata.labels.get(POD_TEMPLATE_HASH);
        let (kind, name) = match &**kind {
            "Job" if let Some((name, _)) = name.rsplit_once('-').filter(is_timed) => {
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
            kind: kind.into(),
            name: name.to_owned(),
        }
    }

    fn facts(&self) -> PodFacts {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        let mut owners = metadata.owner_references.iter();
        let owner = owners.next();
        let is_known = |owner: &&OwnerReference| {
            owner.controller && !owner.api_version.is_empty() && !owner.uid.is_empty()
        };
        let controller = owner.filter(is_known).map(|owner| Identity {
            api_version: owner.api_version.clone(),
            uid: owner.uid.clone(),
        });
        let other_owners = if metadata.owner_references.len() > MAX_ITEMS_KEPT {
            Err(Unread(format!("it has more than {MAX_ITEMS_KEPT} owners")))
        } else {
            Ok(owners.map(Owner::from).collect())
        };
        let owner = owner.map(Owner::from);
        // Longhorn makes its instance managers with the name of their node (`controller/instance_manager_controller.go`). A
        // name alone may be somebody's choice for this pod only.
        let is_of_longhorn = controller
            .as_ref()
            .is_some_and(|its| its.group() == LONGHORN);
        PodFacts {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            created: metadata.creation_timestamp,
            node: given(name(spec.node_name.clone())),
            workload: owner.as_ref().map(|owner| self.workload(owner)),
            owner,
            other_owners,
            controller,
            deletion: metadata.deletion(),
            phase: status.phase.chars().take(MAX_PHASE_CHARS).collect(),
            containers: status.containers(),
            mirror: self.mirror(),
            opted_out: metadata.opted_out(),
            in_namespace: Err(Unread("it was not looked up".to_owned())),
            after_reap: metadata.annotations.get(AFTER_REAP).map(Foreign::from),
            own_disk: self.own_disk(),
            bound: self.names_its_node() || is_of_longhorn,
            host_paths: self.host_paths(),
            is_orphan: metadata.controller().is_none()
                && metadata.labels.get(POD_NAME) == Some(&metadata.name),
            claim_names: self.claim_names(),
            finalizers: metadata.finalizers(),
            finalizers_set_by: metadata.finalizers_set_by(),
            tolerates_silence: self.tolerates(UNREACHABLE),
            tolerates_not_ready: self.tolerates(NOT_READY),
            grace_seconds: spec
                .termination_grace_period_seconds
                .unwrap_or(DEFAULT_GRACE_SECONDS),
            tolerations: self.other_tolerations(),
            heard: self.heard(),
            copies: None,
            lacks: self.check().err(),
        }
    }

    /// Fails with the name of a missing field that a verdict or a safe delete needs.
    fn check(&self) -> Result<(), String> {
        let Meta {
            namespace,
            name,
            uid,
            resource_version,
            ..
        } = &self.metadata;
        required(name, "metadata.name")?;
        required(namespace, "metadata.namespace")?;
        required(uid, "metadata.uid")?;
        required(resource_version, "metadata.resourceVersion")?;
        Ok(())
    }

    /// Returns the length of the texts that are kept, in bytes.
    fn length(&self, facts: &PodFacts) -> usize {
        let Meta {
            namespace,
            name,
            uid,
            resource_version,
            labels,
            annotations,
            finalizers,
            owner_references,
            managed_fields,
            ..
        } = &self.metadata;
        let mut texts: Vec<&str> = vec![
            namespace,
            name,
            uid,
            resource_version,
            &self.spec.node_name,
            &facts.phase,
        ];
        for claim in facts.claim_names.iter().flatten() {
            texts.push(&claim.name);
        }
        for owner in owner_references.iter() {
            texts.extend([&*owner.api_version, &owner.kind, &owner.name, &owner.uid]);
        }
        for (key, value) in labels.iter().chain(annotations) {
            texts.extend([key.as_str(), value]);
        }
        for (finalizer, manager) in &facts.finalizers_set_by {
            texts.extend([&**finalizer, manager]);
        }
        texts.extend(finalizers.iter().map(String::as_str));
        texts.extend(facts.host_paths.iter().map(|it| &**it));
        for toleration in &facts.tolerations {
            texts.extend([toleration.key.as_str(), &toleration.value]);
        }
        texts.extend(facts.own_disk.as_deref());
        texts.extend(managed_fields.iter().map(|it| it.manager.as_str()));
        texts.iter().map(|text| text.len()).sum()
    }
}

impl Shared for WholePod {
    fn strip(&mut self, _: &NodeSelectors) {
        self.metadata.keep(&LABELS, &ANNOTATIONS);
        self.metadata
            .annotations
            .get_mut(MIRROR)
            .into_iter()
            .for_each(String::clear);
        self.metadata.strip(&[]);
        if let Some(start) = &mut self.status.start_time {
            // No rule asks when.
            *start = Value::Object(Map::default());
        }
        let PodSpec {
            volumes,
            containers,
            init_containers,
            node_selector,
            affinity,
            ..
        } = &mut self.spec;
        node_selector.retain(|key, _| key == HOSTNAME);
        volumes.retain(PodVolume::matters);
        let of_hosts = volumes
            .iter()
            .filter(|it| it.directory().is_some())
            .map(|it| it.name.as_str())
            .collect();
        for container in containers.iter_mut().chain(init_containers) {
            container.strip(&of_hosts);
        }
        for term in &mut affinity.node_affinity.required.node_selector_terms {
            for requirements in [&mut term.match_expressions, &mut term.match_fields] {
                let mut all = mem::take(requirements).into_vec();
                all.retain(|it| [NODE_NAME, HOSTNAME].contains(&it.key.as_str()));
                *requirements = all.into();
            }
        }
    }
}

impl From<WholePod> for RawPod {
    fn from(mut pod: WholePod) -> Self {
        let (has_started, shows) = (pod.status.has_started(), pod.shows());
        pod.metadata.keep(&LABELS, &ANNOTATIONS);
        let labels = pod.metadata.labels.values_mut();
        labels
            .chain(pod.metadata.annotations.values_mut())
            .for_each(cut);
        let mut facts = pod.facts();
        // The newest stamp of all tells when a file was saved.
        let stamps = &mut pod.metadata.managed_fields;
        stamps.sort_by_key(|it| (Reverse(is_program(it)), Reverse(it.time())));
        stamps.dedup_by_key(|it| is_program(it));
        for stamp in stamps {
            stamp.fields_v1 = None;
        }
        let names_claims = facts.claim_names.as_ref().is_ok_and(|it| !it.is_empty());
        if names_claims && pod.length(&facts) > MAX_BYTES_KEPT {
            let why = "the names of its PVCs are longer than what a run keeps of a pod (2 KiB)";
            facts.claim_names = Err(Unread(why.to_owned()));
        }
        let is_long = pod.length(&facts) > MAX_BYTES_KEPT;
        pod.metadata.labels = BTreeMap::new();
        pod.metadata.annotations.retain(|key, _| key == MIRROR);
        pod.metadata.drop_finalizers_and_owners();
        if is_long {
            pod.spec = PodSpec {
                node_name: pod.spec.node_name,
                ..PodSpec::default()
            };
            pod.status = Status::default();
            facts = PodFacts {
                lacks: Some("it has more text than a run keeps of a pod (2 KiB)".to_owned()),
                ..pod.facts()
            };
        }
        Self {
            metadata: pod.metadata,
            facts,
            has_started,
            shows,
        }
    }
}

impl RawPod {
    /// Returns the pod as a holder of Leases. Kubernetes names a pod of a `ReplicaSet` by the set's
    /// name and a dash, cut to 58 characters, and five random characters
    /// (`apiserver/pkg/storage/names/generate.go`).
    pub fn as_holder(&self) -> HolderPod {
        let pod = &self.facts;
        let set = pod
            .owner
            .as_ref()
            .filter(|_| pod.made_by("ReplicaSet", "apps"));
        let is_unique = set.is_some_and(|set| {
            let mut base = format!("{}-", set.name);
            base.truncate(base.floor_char_boundary(MAX_BASE_CHARS));
            let random = pod.name.strip_prefix(&base);
            random.is_some_and(|random| {
                random.len() == RANDOM_LETTERS && random.chars().all(|it| LETTERS.contains(it))
            })
        });
        HolderPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            is_unique,
            has_started: self.has_started,
        }
    }

    /// Requests the deletion of the pod as Kubernetes does on a node that has been silent since `at`.
    pub fn evict(&mut self, at: Timestamp) {
        if let Some(eviction) = self.facts.eviction(Ready::Unknown, at, at) {
            self.facts.deletion = Some(eviction);
        }
    }

    /// Returns what a pod that could not be read may show, by its name. Such pods are named after their
    /// program, and a member that is overlooked would let the node's pods go.
    pub fn may_show(pod: &Malformed) -> StaticPods {
        let is_there = STATIC_NAMESPACES.contains(&pod.namespace.as_str());
        StaticPods {
            etcd: is_there && pod.name.starts_with("etcd"),
            api_server: is_there && pod.name.starts_with("kube-apiserver"),
        }
    }

    /// Reports whether the pod has not started, and may wait for a volume.
    pub fn may_wait(&self) -> bool {
        let pod = &self.facts;
        let names_claims = pod.claim_names.as_ref().is_ok_and(|it| !it.is_empty());
        pod.phase == "Pending" && pod.deletion.is_none() && names_claims
    }
}
