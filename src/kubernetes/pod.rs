//! Pods: their fields, and their conversion to facts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    mem,
};

use itertools::Itertools as _;
use jiff::Timestamp;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::IgnoredAny, ser::SerializeMap as _,
};

use super::{
    Shared, folded,
    host_path::{HostPath, Mounted},
    lease::HolderPod,
    meta::{
        AFTER_REAP, HOSTNAME, MAX_ITEMS_KEPT, MIRROR, Malformed, Meta, OwnerReference, SKIP,
        Written, cut, full_name, given, required,
    },
    node::TAINTS_OF_KUBERNETES,
};
use crate::{
    facts::{
        ClaimName, Containers, Heartbeat, Identity, MAX_CLAIMS_PER_POD, Owner, PodFacts, Ready,
        SignBy, Taint, Toleration, Unread,
    },
    selector::NodeSelectors,
    words::{Foreign, name},
};

/// The key of the taint that Kubernetes gives a node whose kubelet is silent. Kubernetes evicts
/// pods that do not tolerate the taint.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The key of the taint of a node whose kubelet says that it is not Ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
const TAINTS: [&str; 2] = [UNREACHABLE, NOT_READY];
/// The most characters of the key and the value of a taint.
const MAX_TAINT_CHARS: usize = 253 + 1 + 63 + 63;
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

/// A pod, with the texts of it that a run keeps: at most 2 KiB.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "WholePod")]
pub struct RawPod {
    /// Of labels, annotations and `managedFields`, only those that matter.
    pub metadata: Meta,
    node_name: String,
    termination_grace_period_seconds: Option<i64>,
    tolerations: Tolerations,
    phase: String,
    /// Whether its kubelet says that it has started it. Its phase does not tell: controllers end pods that never ran.
    pub has_started: bool,
    containers: Containers,
    /// The programs of its containers.
    programs: StaticPods,
    host_paths: Vec<Foreign>,
    names_its_node: bool,
    own_disk: Option<String>,
    /// The PVCs that the pod uses; none if there are too many to keep.
    claims: Vec<ClaimName>,
    too_many_claims: Option<Unread>,
    finalizers_set_by: BTreeMap<Foreign, Foreign>,
    /// Why the pod cannot be judged: the name of a missing field of a volume, or too much text.
    lacks: Option<String>,
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
        volumes: Volumes,
        containers: Mounted,
        init_containers: Mounted,
        tolerations: Tolerations,
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

    struct RequiredTerms {
        node_selector_terms: Terms,
    }

    struct RawTerm {
        match_expressions: Names,
        match_fields: Names,
    }

    struct RawRequirement {
        key: String,
        operator: String,
        values: Values,
    }

    struct RawToleration {
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
        start_time: Option<Given>,
        init_container_statuses: Vec<Container>,
        container_statuses: Vec<Container>,
    }

    struct Container {
        state: ContainerState,
    }

    /// One of the three is given.
    struct ContainerState {
        waiting: Option<Given>,
        running: Option<Given>,
        terminated: Option<Terminated>,
    }

    struct Terminated {
        finished_at: Option<Timestamp>,
    }
}

/// A field of which only matters that it is there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Given;

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self)
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_map(Some(0))?.end()
    }
}

/// The volumes that matter: those that use PVCs, up to the limit, and the first of each kind of
/// disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Volumes(Vec<PodVolume>);

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let add = |kept: &mut Vec<PodVolume>, mut volume: PodVolume| {
            if let Some(claim) = &mut volume.persistent_volume_claim {
                cut(&mut claim.claim_name);
                claim.claim_name = name(mem::take(&mut claim.claim_name));
            }
            volume.host_path = volume.host_path.filter(HostPath::may_have_data);
            let kind = |it: &PodVolume| (it.uses_claim(), it.host_path.is_some(), it.disk());
            let most = match kind(&volume) {
                (true, ..) => MAX_CLAIMS_PER_POD + 1,
                (_, true, _) => MAX_ITEMS_KEPT + 1,
                (.., disk) => usize::from(disk.is_some()),
            };
            if kept.iter().filter(|it| kind(it) == kind(&volume)).count() < most {
                kept.push(volume);
            }
        };
        folded(from, add).map(Self)
    }
}

/// The terms of a pod's required affinity, one of which a node has to satisfy. Only what names a node is kept, each once,
/// up to one more than the limit: the node's name, and its hostname. A term without requirements matches no node.
#[derive(Debug, Clone, Default, PartialEq)]
struct Terms(BTreeSet<[Option<String>; 2]>);

/// Writes terms that name the same.
impl Serialize for Terms {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|[name, hostname]| RawTerm {
            match_fields: Names::of(name.clone(), None),
            match_expressions: Names::of(None, hostname.clone()),
        }))
    }
}

impl<'de> Deserialize<'de> for Terms {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let add = |kept: &mut BTreeSet<_>, term: RawTerm| {
            let (labels, fields) = (term.match_expressions, term.match_fields);
            if kept.len() <= MAX_ITEMS_KEPT && (labels.are_any || fields.are_any) {
                kept.insert([fields.name, labels.hostname]);
            }
        };
        folded(from, add).map(Self)
    }
}

/// What the requirements of a term name, if they allow one value of it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Names {
    are_any: bool,
    name: Option<String>,
    hostname: Option<String>,
}

impl Names {
    fn of(name: Option<String>, hostname: Option<String>) -> Self {
        Self {
            are_any: true,
            name,
            hostname,
        }
    }
}

/// Writes requirements that name the same. One without a key stands for those that name no node.
impl Serialize for Names {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let requirement = |key: &str, value: &String| RawRequirement {
            key: key.to_owned(),
            operator: "In".to_owned(),
            values: Values(vec![value.clone()]),
        };
        let name = self.name.iter().map(|it| requirement(NODE_NAME, it));
        let hostname = self.hostname.iter().map(|it| requirement(HOSTNAME, it));
        let other = self.are_any.then(RawRequirement::default);
        to.collect_seq(name.chain(hostname).chain(other))
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let add = |kept: &mut Self, it: RawRequirement| {
            kept.are_any = true;
            if let ("In", [value]) = (it.operator.as_str(), &it.values.0[..]) {
                match it.key.as_str() {
                    NODE_NAME => kept.name = Some(value.clone()),
                    HOSTNAME => kept.hostname = Some(value.clone()),
                    _ => {}
                }
            }
        };
        folded(from, add)
    }
}

/// The first two values of a requirement: no rule asks for more than the only one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Values(Vec<String>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let add = |kept: &mut Vec<String>, value: String| {
            if kept.len() < 2 {
                kept.push(value);
            }
        };
        folded(from, add).map(Self)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Tolerations {
    /// For how many seconds the pod tolerates each of the taints of [`TAINTS`]; `None` is forever. The
    /// first toleration that matches is used, as in Kubernetes.
    seconds: [Option<i64>; 2],
    /// Those of other taints, up to the limit: one more lets pods start on more nodes, so one less keeps them.
    of_others: Vec<Toleration>,
}

impl Default for Tolerations {
    fn default() -> Self {
        Self {
            seconds: [Some(DEFAULT_TOLERATION_SECONDS); 2],
            of_others: Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Tolerations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        type Kept = ([Option<Option<i64>>; 2], Vec<Toleration>);
        let add = |(first, of_others): &mut Kept, raw: RawToleration| {
            let toleration = Toleration {
                key: raw.key,
                operator: raw.operator,
                value: raw.value,
                effect: raw.effect,
            };
            for (first, key) in first.iter_mut().zip(TAINTS) {
                let taint = Taint {
                    key: key.to_owned(),
                    value: String::new(),
                    effect: "NoExecute".to_owned(),
                };
                if first.is_none() && toleration.tolerates(&taint) {
                    *first = Some(raw.seconds);
                }
            }
            let is_short = toleration.key.len() + toleration.value.len() <= MAX_TAINT_CHARS;
            let of_kubernetes = toleration.key.starts_with(TAINTS_OF_KUBERNETES);
            if !of_kubernetes && is_short && of_others.len() < MAX_ITEMS_KEPT {
                of_others.push(toleration);
            }
        };
        let (first, of_others) = folded(from, add)?;
        Ok(Self {
            seconds: first.map(|seconds| seconds.unwrap_or(Some(DEFAULT_TOLERATION_SECONDS))),
            of_others,
        })
    }
}

/// Writes tolerations that give the same facts: those of the two taints first, as the first that matches is used.
impl Serialize for Tolerations {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let of_taints = TAINTS.into_iter().zip(self.seconds);
        let of_taints = of_taints.map(|(key, seconds)| RawToleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            effect: "NoExecute".to_owned(),
            seconds,
            ..RawToleration::default()
        });
        let of_others = self.of_others.iter().cloned().map(|it| RawToleration {
            key: it.key,
            operator: it.operator,
            value: it.value,
            effect: it.effect,
            seconds: None,
        });
        to.collect_seq(of_taints.chain(of_others))
    }
}

impl PodVolume {
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
    let kinds = ["Fibre Channel", "iSCSI", "a flexVolume"];
    let mut found = kinds.into_iter().zip(is_of);
    found.find_map(|(kind, is_it)| is_it.then_some(kind))
}

impl Status {
    /// Reports whether a kubelet has started the pod, or one of its containers.
    fn has_started(&self) -> bool {
        let mut containers = self
            .init_container_statuses
            .iter()
            .chain(&self.container_statuses);
        self.start_time.is_some()
            || containers.any(|it| it.state.running.is_some() || it.state.terminated.is_some())
    }

    /// Counts the containers by their states.
    fn containers(&self) -> Containers {
        let (init, all) = (&self.init_container_statuses, &self.container_statuses);
        // A sidecar is an init container that runs on.
        let with_sidecars = init.iter().chain(all).map(|it| &it.state);
        let states = || all.iter().map(|it| &it.state);
        let ended = with_sidecars
            .clone()
            .filter_map(|it| it.terminated.as_ref());
        Containers {
            ended_at: ended.filter_map(|it| it.finished_at).max(),
            running: with_sidecars.filter(|it| it.running.is_some()).count(),
            terminated: states().filter(|it| it.terminated.is_some()).count(),
            waiting: states().filter(|it| it.waiting.is_some()).count(),
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
    /// Lists the PVCs that the pod uses, each an error if its name is missing.
    fn claims(&self) -> impl Iterator<Item = Result<ClaimName, String>> {
        self.spec.volumes.0.iter().filter_map(|volume| {
            let name = if let Some(claim) = &volume.persistent_volume_claim {
                required(&claim.claim_name, "persistentVolumeClaim.claimName")
            } else {
                // The PVC of a generic ephemeral volume is named after the pod and the volume.
                volume.ephemeral?;
                let volume = required(&volume.name, "the name of a volume");
                volume.map(|volume| format!("{}-{volume}", self.metadata.name))
            };
            let claim = volume.persistent_volume_claim.as_ref();
            Some(name.map(|name| ClaimName {
                name,
                ephemeral: claim.is_none(),
                read_only: claim.is_some_and(|claim| claim.read_only),
            }))
        })
    }

    /// Lists the PVCs that the pod uses, and says which field is missing in a volume.
    fn claim_names(&self) -> (Vec<ClaimName>, Option<String>) {
        let (mut claims, missing): (Vec<_>, Vec<_>) = self.claims().partition_result();
        // If the pod names one PVC in several ways, the PVC is not treated as ephemeral, nor as read-only.
        claims.sort_unstable();
        claims.dedup_by(|more, kept| {
            let is_same = more.name == kept.name;
            kept.read_only &= !is_same || more.read_only;
            is_same
        });
        (claims, missing.into_iter().next())
    }

    /// Lists the paths of the node, apart from those of its system, that a container of the pod may
    /// write to. If the pod has more `hostPath` volumes or mounts than the limit, it is treated as
    /// writing to each path.
    fn host_paths(&self) -> Vec<Foreign> {
        let PodSpec {
            volumes: Volumes(volumes),
            containers,
            init_containers,
            ..
        } = &self.spec;
        let volumes = volumes
            .iter()
            .filter_map(|it| Some((it.host_path.as_ref()?, &it.name)));
        let all = [containers, init_containers];
        let are_many =
            volumes.clone().count() > MAX_ITEMS_KEPT || all.iter().any(|it| it.are_many());
        let written = volumes.flat_map(|(host, name)| {
            let below = all.iter().flat_map(|it| it.written_below(name));
            let below = below.chain(are_many.then_some(""));
            below.filter_map(|below| host.of_data(below))
        });
        let written = written.sorted().dedup().take(MAX_ITEMS_KEPT + 1);
        written.map(Foreign::from).collect()
    }

    /// Reports whether its `nodeSelector` or its required affinity names one node. Another label binds to no node: a node
    /// that has it, too, may come up at any time.
    fn names_its_node(&self) -> bool {
        let PodSpec {
            node_name,
            node_selector,
            affinity,
            ..
        } = &self.spec;
        let Terms(terms) = &affinity.node_affinity.required.node_selector_terms;
        // One that names the pod's node matches no other.
        let others = terms
            .iter()
            .filter(|[name, _]| name.as_ref() != Some(node_name));
        let hostnames = others.map(|[_, hostname]| hostname.as_ref());
        let hostnames = hostnames.collect::<BTreeSet<_>>();
        let has_one = hostnames.len() <= 1 && !hostnames.contains(&None);
        let are_known = (1..=MAX_ITEMS_KEPT).contains(&terms.len());
        has_one && are_known || node_selector.contains_key(HOSTNAME)
    }

    /// Describes the pod's first volume that is a writable disk on a storage network.
    fn own_disk(&self) -> Option<String> {
        self.spec.volumes.0.iter().find_map(|volume| {
            let name = full_name("", &name(volume.name.clone()), "without a name");
            Some(format!("its volume {name} is {}", volume.disk()?))
        })
    }
}

impl Shared for WholePod {
    fn strip(&mut self, _: &NodeSelectors) {
        self.metadata.keep(&LABELS, &ANNOTATIONS);
        let mirror = self.metadata.annotations.get_mut(MIRROR);
        mirror.into_iter().for_each(String::clear);
        self.metadata.strip(&[]);
        let PodSpec {
            volumes: Volumes(volumes),
            containers,
            init_containers,
            node_selector,
            ..
        } = &mut self.spec;
        node_selector.retain(|key, _| key == HOSTNAME);
        let of_hosts = volumes.iter().filter(|it| it.host_path.is_some());
        let of_hosts = of_hosts.map(|it| it.name.as_str()).collect_vec();
        containers.keep(&of_hosts);
        init_containers.keep(&of_hosts);
    }
}

impl From<WholePod> for RawPod {
    fn from(pod: WholePod) -> Self {
        let (host_paths, own_disk) = (pod.host_paths(), pod.own_disk());
        let names_its_node = pod.names_its_node();
        let uses = pod.spec.volumes.0.iter().filter(|it| it.uses_claim());
        let is_over = uses.count() > MAX_CLAIMS_PER_POD;
        let (claims, lacks) = if is_over {
            (Vec::new(), None)
        } else {
            pod.claim_names()
        };
        let too_many_claims = is_over.then(|| {
            Unread(format!(
                "it uses more than {MAX_CLAIMS_PER_POD} PVCs, and no more of a pod are looked up"
            ))
        });
        let finalizers_set_by = pod.metadata.finalizers_set_by();
        let WholePod {
            mut metadata,
            spec,
            status,
        } = pod;
        metadata.keep(&LABELS, &ANNOTATIONS);
        let Meta {
            labels,
            annotations,
            managed_fields,
            ..
        } = &mut metadata;
        labels
            .values_mut()
            .chain(annotations.values_mut())
            .for_each(cut);
        // The newest stamp of all tells when a file was saved.
        managed_fields.sort_by_key(|it| (Reverse(is_program(it)), Reverse(it.time())));
        managed_fields.dedup_by_key(|it| is_program(it));
        for entry in managed_fields {
            entry.drop_fields();
        }
        let mut kept = Self {
            metadata,
            node_name: spec.node_name,
            termination_grace_period_seconds: spec.termination_grace_period_seconds,
            tolerations: spec.tolerations,
            phase: status.phase.chars().take(MAX_PHASE_CHARS).collect(),
            has_started: status.has_started(),
            containers: status.containers(),
            programs: StaticPods {
                etcd: spec.containers.has_etcd,
                api_server: spec.containers.has_api_server,
            },
            host_paths,
            names_its_node,
            own_disk,
            claims,
            too_many_claims,
            finalizers_set_by,
            lacks,
        };
        if kept.length() > MAX_BYTES_KEPT && !kept.claims.is_empty() {
            let why = "the names of its PVCs are longer than what a run keeps of a pod (2 KiB)";
            kept.claims.clear();
            kept.too_many_claims = Some(Unread(why.to_owned()));
        }
        if kept.length() > MAX_BYTES_KEPT {
            kept = Self {
                metadata: kept.metadata.names_alone(),
                node_name: kept.node_name,
                has_started: kept.has_started,
                programs: kept.programs,
                lacks: Some("it has more text than a run keeps of a pod (2 KiB)".to_owned()),
                ..Self::default()
            };
        }
        kept
    }
}

impl RawPod {
    /// Returns the length of the texts that are kept, in bytes.
    fn length(&self) -> usize {
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
            &self.node_name,
            &self.phase,
        ];
        texts.extend(self.claims.iter().map(|it| it.name.as_str()));
        texts.extend(owner_references.iter().flat_map(OwnerReference::texts));
        for (key, value) in labels.iter().chain(annotations) {
            texts.extend([key.as_str(), value]);
        }
        for (finalizer, manager) in &self.finalizers_set_by {
            texts.extend([&**finalizer, manager]);
        }
        texts.extend(finalizers.iter().map(String::as_str));
        texts.extend(self.host_paths.iter().map(|it| &**it));
        for toleration in &self.tolerations.of_others {
            texts.extend([toleration.key.as_str(), &toleration.value]);
        }
        texts.extend(self.own_disk.as_deref());
        texts.extend(managed_fields.iter().map(|it| it.manager.as_str()));
        texts.iter().map(|text| text.len()).sum()
    }

    /// Returns the last heartbeat of a program that runs in the pod.
    fn heard(&self) -> Option<Heartbeat> {
        let Meta {
            namespace,
            name,
            managed_fields,
            ..
        } = &self.metadata;
        let written = managed_fields.iter().filter(|it| is_program(it));
        let words = written.filter_map(|it| Some((it.time()?, &it.manager)));
        let (at, program) = words.max()?;
        Some(Heartbeat {
            by: SignBy::Program,
            at,
            what: Some(format!("{program} in pod {namespace}/{name}")),
        })
    }

    /// Returns the pod as a holder of Leases. Kubernetes names a pod of a `ReplicaSet` by the set's
    /// name and a dash, cut to 58 characters, and five random characters
    /// (`apiserver/pkg/storage/names/generate.go`).
    pub fn as_holder(&self) -> HolderPod {
        let Meta {
            namespace, name, ..
        } = &self.metadata;
        let is_unique = self.controller_of_apps("ReplicaSet").is_some_and(|owner| {
            let mut base = format!("{}-", owner.name);
            base.truncate(base.floor_char_boundary(MAX_BASE_CHARS));
            let random = name.strip_prefix(&base);
            random.is_some_and(|random| random.len() == RANDOM_LETTERS)
        });
        HolderPod {
            namespace: namespace.clone(),
            name: name.clone(),
            is_unique,
            has_started: self.has_started,
        }
    }

    /// Returns the pod's node; `None` if it has none.
    pub fn node(&self) -> Option<String> {
        given(name(self.node_name.clone()))
    }

    /// Requests the deletion of the pod as Kubernetes does on a node that has been silent since `at`.
    pub fn evict(&mut self, at: Timestamp) {
        if let Some(eviction) = self.facts().eviction(Ready::Unknown, at, at) {
            self.metadata.deletion_timestamp = Some(eviction.deadline);
            self.metadata.deletion_grace_period_seconds = eviction.grace_seconds;
        }
    }

    /// Returns what the pod shows of the API server's datastore: it is the mirror of a static pod of etcd, as kubeadm, kops
    /// and `OpenShift` make it, or of an API server. Nobody else may write to these namespaces.
    pub fn shows(&self) -> StaticPods {
        let namespace = self.metadata.namespace.as_str();
        if self.mirror() && STATIC_NAMESPACES.contains(&namespace) {
            self.programs
        } else {
            StaticPods::default()
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

    /// Returns the pod's controller if it is of that kind of the group `apps`. Other projects, such
    /// as `OpenKruise`, also have kinds with these names.
    fn controller_of_apps(&self, kind: &str) -> Option<&OwnerReference> {
        let owner = self.metadata.controller();
        owner.filter(|owner| owner.kind == kind && owner.api_version.starts_with("apps/"))
    }

    /// Reports whether the pod uses a PVC.
    pub fn uses_claims(&self) -> bool {
        !self.claims.is_empty() || self.too_many_claims.is_some()
    }

    /// Reports whether the pod has not started, and may wait for a volume.
    pub fn may_wait(&self) -> bool {
        self.phase == "Pending" && !self.metadata.terminating() && !self.claims.is_empty()
    }

    /// Reports whether the pod mirrors a static pod.
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

    /// Returns the facts about the pod, Terminating or not; neither its namespace nor its PVCs are
    /// looked up yet.
    pub fn facts(&self) -> PodFacts {
        let metadata = &self.metadata;
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
        let [tolerates_silence, tolerates_not_ready] = self.tolerations.seconds;
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
            node: self.node(),
            workload: owner.as_ref().map(|owner| self.workload(owner)),
            owner,
            other_owners,
            controller,
            deletion: metadata.deletion(),
            phase: self.phase.clone(),
            containers: self.containers,
            mirror: self.mirror(),
            opted_out: metadata.opted_out(),
            in_namespace: Err(Unread("it was not looked up".to_owned())),
            after_reap: metadata
                .annotations
                .get(AFTER_REAP)
                .map(|note| note.as_str().into()),
            own_disk: self.own_disk.clone(),
            bound: self.names_its_node || is_of_longhorn,
            host_paths: self.host_paths.clone(),
            is_orphan: metadata.controller().is_none()
                && metadata.labels.get(POD_NAME) == Some(&metadata.name),
            claim_names: self
                .too_many_claims
                .clone()
                .map_or(Ok(self.claims.clone()), Err),
            finalizers: metadata.finalizers(),
            finalizers_set_by: self.finalizers_set_by.clone(),
            tolerates_silence,
            tolerates_not_ready,
            grace_seconds: self
                .termination_grace_period_seconds
                .unwrap_or(DEFAULT_GRACE_SECONDS),
            tolerations: self.tolerations.of_others.clone(),
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
        self.lacks.clone().map_or(Ok(()), Err)?;
        required(name, "metadata.name")?;
        required(namespace, "metadata.namespace")?;
        required(uid, "metadata.uid")?;
        required(resource_version, "metadata.resourceVersion")?;
        Ok(())
    }
}
