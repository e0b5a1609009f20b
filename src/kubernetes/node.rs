//! Nodes: whether a node is a leaf node or fenced, its machine's last heartbeat, and the node's
//! conversion to facts.

use std::{collections::BTreeSet, mem};

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    Shared,
    lease::{Holders, RawLease},
    marks::{KOSMOS_OWNER, KOSMOS_PREFIX, MARKS, Mark, NodePart, looks_like},
    meta::{Condition, HOSTNAME, Meta, SKIP, given, owned_field, required},
    pod::{NOT_READY, UNREACHABLE},
};
use crate::{
    facts::{
        Counts, Distribution, FencingMark, Heartbeat, KubeletSays, Leaf, LeafKind, NodeFacts,
        OUT_OF_SERVICE, Read, Ready, Roles, Room, SignBy, Taint, Unread, ZONE_LABELS, Zone,
        not_ready_since,
    },
    judge::Policy,
    selector::{NodeSelector, NodeSelectors, Selector, is_name},
    words::Foreign,
};

/// The prefix of the labels that give a node a role. The taint of a role has the same key.
const ROLE: &str = "node-role.kubernetes.io/";
/// The names of the control-plane role: since Kubernetes 1.20, before, in RKE, and of `OpenShift`'s third member of etcd.
const CONTROL_PLANE: [&str; 4] = ["control-plane", "master", "controlplane", "arbiter"];
/// The role of a node that runs a member of etcd.
const ETCD: &str = "etcd";
/// The label of `MicroK8s`' control plane, which kubectl's column of roles does not show.
const MICROK8S: &str = "node.kubernetes.io/microk8s-controlplane";
/// The label of Canonical Kubernetes, whose control plane has no static pods.
const K8SD: (&str, &str) = ("k8sd.io/role", "control-plane");

/// The prefix of the taints that Kubernetes sets by itself.
pub const TAINTS_OF_KUBERNETES: &str = "node.kubernetes.io/";

/// The conditions that node-problem-detector writes, on the node's
/// own machine. `NetworkUnavailable` and Harvester's `Drained` are
/// left out, because the control plane writes them.
const PROBLEMS: &str = "KernelDeadlock ReadonlyFilesystem KubeletUnhealthy ContainerRuntimeUnhealthy \
    FrequentKubeletRestart FrequentContainerdRestart FrequentDockerRestart FrequentUnregisterNetDevice CorruptDockerOverlay2 XfsShutdown CperHardwareErrorFatal";
/// The conditions that the node monitoring agent of EKS writes, also on the node's own machine
/// (aws/eks-node-monitoring-agent).
const MONITORED: &str =
    "KernelReady NetworkingReady StorageReady ContainerRuntimeReady AcceleratedHardwareReady";
/// The kind of the address that reports show.
const INTERNAL: &str = "InternalIP";
/// The annotation with virt-handler's heartbeat.
const VIRT_HEARTBEAT: &str = "kubevirt.io/heartbeat";
/// The annotation by which kube-fencing says that its
/// fencing Job succeeded. Its other states prove nothing.
const FENCED: &str = "annotation:fencing/state=fenced";
const FENCING_STATE: &str = "fencing/state";
/// The taint by which a cloud says that the machine is stopped.
const SHUTDOWN: &str = "taint:node.cloudprovider.kubernetes.io/shutdown";
/// The schemes of providerIDs of clouds that set that taint only for a machine that is off, besides AWS.
const SURE_CLOUDS: [&str; 3] = ["openstack://", "hcloud://", "digitalocean://"];
/// The annotation by which a person says that the machine is off. Its value is the `lastTransitionTime` of `Ready`,
/// so it ends with the outage.
pub const CONFIRMED_OFF: &str = "pod-reaper.io/confirmed-off";

raw! {
    pub struct RawNode {
        pub metadata: Meta,
        spec: NodeSpec,
        status: NodeStatus,
        /// Whether fencing marks are ignored, because the node is only supposed to be dead.
        #[serde(skip)]
        marks_are_old: bool,
    }

    struct NodeStatus {
        conditions: Vec<Condition>,
        addresses: Vec<Address>,
        node_info: NodeInfo,
    }

    struct Address {
        #[serde(rename = "type")]
        kind: String,
        address: String,
    }

    struct NodeInfo {
        kubelet_version: String,
        #[serde(rename = "bootID")]
        boot_id: String,
        #[serde(rename = "machineID")]
        machine_id: String,
        #[serde(rename = "systemUUID")]
        system_uuid: String,
    }

    struct NodeSpec {
        taints: Vec<RawTaint>,
        unschedulable: bool,
        #[serde(rename = "providerID")]
        provider_id: String,
    }

    struct RawTaint {
        key: String,
        value: String,
        effect: String,
        time_added: Option<Timestamp>,
    }
}

/// The annotations of nodes that are rules, besides the marks of leaf nodes.
const ANNOTATIONS: [&str; 4] = [SKIP, CONFIRMED_OFF, FENCING_STATE, VIRT_HEARTBEAT];

impl Shared for RawNode {
    /// Any label may be one that a volume or a pod asks for.
    fn strip(&mut self, selectors: &NodeSelectors) {
        let Self {
            metadata,
            spec,
            status,
            ..
        } = self;
        let patterns = MARKS
            .iter()
            .filter(|it| it.part == NodePart::Annotation)
            .map(|it| it.key)
            .chain(ANNOTATIONS)
            .collect_vec();
        let selectors = selectors.annotations().collect_vec();
        let is_rule =
            |key: &str| selectors.contains(&key) || patterns.iter().any(|it| looks_like(key, it));
        metadata.annotations.retain(|key, _| is_rule(key));
        for (key, value) in &mut metadata.annotations {
            // No rule asks for the value of a key of which a mark knows only a part.
            if !patterns.contains(&key.as_str()) && !selectors.contains(&key.as_str()) {
                value.clear();
            }
        }
        let heartbeats = || PROBLEMS.split(' ').chain(MONITORED.split(' '));
        metadata.strip(&heartbeats().map(owned_heartbeat).collect_vec());
        metadata.drop_finalizers_and_owners();
        status.addresses.retain(|it| it.kind == INTERNAL);
        status.conditions.retain_mut(|it| {
            if it.kind == "Ready" {
                let said = kubelet_says(&it.message);
                said.map_or("", |(text, _)| text)
                    .clone_into(&mut it.message);
                return true;
            }
            *it = Condition {
                kind: mem::take(&mut it.kind),
                last_heartbeat_time: it.last_heartbeat_time,
                ..Condition::default()
            };
            heartbeats().any(|kind| kind == it.kind)
        });
        spec.provider_id = ends(&spec.provider_id);
    }
}

impl RawNode {
    /// Returns the `Ready` condition. If there are several, the last one is used, as in kubectl's
    /// Status column.
    fn ready_condition(&self) -> Option<&Condition> {
        self.status.conditions.iter().rfind(|it| it.kind == "Ready")
    }

    /// Returns the status of the node's `Ready` condition. A status that is none of Kubernetes'
    /// three is treated as `Unknown`.
    pub fn ready(&self) -> Ready {
        match self.ready_condition().map(|it| it.status.as_str()) {
            None => Ready::Absent,
            Some("True") => Ready::True,
            Some("False") => Ready::False,
            Some(_) => Ready::Unknown,
        }
    }

    /// Changes the node as Kubernetes changes one whose machine falls silent. If the machine `lived`
    /// until then, no fencing mark on the node is about that.
    pub fn fail(&mut self, at: Timestamp, lived: bool) {
        self.marks_are_old = lived;
        self.status.conditions.retain(|it| it.kind != "Ready");
        self.status.conditions.push(Condition {
            kind: "Ready".to_owned(),
            status: "Unknown".to_owned(),
            reason: "NodeStatusUnknown".to_owned(),
            last_transition_time: at.to_string(),
            ..Condition::default()
        });
        let taints = &mut self.spec.taints;
        taints.retain(|taint| ![NOT_READY, UNREACHABLE].contains(&taint.key.as_str()));
        taints.extend(["NoSchedule", "NoExecute"].map(|effect| RawTaint {
            key: UNREACHABLE.to_owned(),
            effect: effect.to_owned(),
            time_added: Some(at),
            ..RawTaint::default()
        }));
    }

    pub fn is_leaf(&self, selectors: &NodeSelectors) -> bool {
        self.leaf(selectors).is_some()
    }

    pub fn roles(&self) -> Roles {
        let labels = &self.metadata.labels;
        let named = labels.iter().filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => Some(value.as_str()),
            key => key.strip_prefix(ROLE),
        });
        let roles = roles_named(named);
        let is_k8sd = labels.get(K8SD.0).is_some_and(|role| role == K8SD.1);
        let canonical = is_k8sd || labels.contains_key(MICROK8S);
        Roles {
            control_plane: roles.control_plane || canonical,
            canonical,
            ..roles
        }
    }

    /// Returns the taints that a pod has to tolerate to start on the node; `None` if the node is cordoned. Kubernetes
    /// sets and removes its own taints by itself, so they close no node.
    fn room(&self) -> Option<Room> {
        let closes = |taint: &&RawTaint| {
            taint.effect != "PreferNoSchedule" && !taint.key.starts_with(TAINTS_OF_KUBERNETES)
        };
        let closed_by = self.spec.taints.iter().filter(closes).map(|taint| Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
            effect: taint.effect.clone(),
        });
        (!self.spec.unschedulable).then(|| closed_by.collect())
    }

    /// Returns the marks of a leaf node, from the table, the node's name and the user's selectors;
    /// `None` if the node has none. One mark is enough.
    fn leaf(&self, selectors: &NodeSelectors) -> Option<Leaf> {
        let marked = MARKS
            .iter()
            .filter(|mark| self.has(mark))
            .map(|mark| (mark.kind, mark.maker, mark.to_string()));
        let info = &self.status.node_info;
        let no_machine = info.machine_id.is_empty() && info.system_uuid.is_empty();
        let is_named = no_machine && self.metadata.name.starts_with(KOSMOS_PREFIX);
        let named = is_named.then(|| {
            let mark = format!("name prefix {KOSMOS_PREFIX}");
            (LeafKind::Kosmos, "Kosmos", mark)
        });
        let selected = selectors
            .leaf
            .iter()
            .filter(|it| self.is_selected(it))
            .map(|it| (LeafKind::Selected, "", it.to_string()));
        let silent = self
            .never_reported()
            .map(|mark| (LeafKind::NeverReported, "", mark));
        let found = marked
            .chain(named)
            .chain(selected)
            .chain(silent)
            .collect_vec();
        let &(kind, maker, _) = found.first()?;
        // The cluster's name becomes part of commands to
        // paste, so it must be a valid name of an object.
        let cluster = self.metadata.annotations.get(KOSMOS_OWNER).cloned();
        Some(Leaf {
            kind,
            maker,
            marks: found.into_iter().map(|(.., mark)| mark).collect(),
            cluster: cluster.filter(|cluster| is_name(cluster)),
        })
    }

    /// Returns what shows that no kubelet ever reported on the node, so that nothing is known to be
    /// a machine there: the node controller's reason (`node_lifecycle_controller.go`), or the lack of
    /// the version that each kubelet reports when it registers.
    fn never_reported(&self) -> Option<String> {
        let reason = self.ready_condition().map(|it| it.reason.as_str());
        if reason == Some("NodeStatusNeverUpdated") {
            return Some("Ready's reason NodeStatusNeverUpdated".to_owned());
        }
        let version = &self.status.node_info.kubelet_version;
        version.is_empty().then(|| "no kubelet version".to_owned())
    }

    /// Reports whether a label selector selects the node.
    pub fn is_labelled(&self, selector: &Selector) -> bool {
        selector.matches(&self.metadata.labels)
    }

    fn is_selected(&self, selector: &NodeSelector) -> bool {
        let is = |value: &String, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| value == wanted)
        };
        let annotations = &self.metadata.annotations;
        match selector {
            NodeSelector::Labels(selector) => self.is_labelled(selector),
            NodeSelector::Annotation(key, wanted) => {
                annotations.get(key).is_some_and(|value| is(value, wanted))
            }
            NodeSelector::Taint(key, wanted) => {
                self.taints(key).any(|taint| is(&taint.value, wanted))
            }
        }
    }

    pub fn is_out_of_service(&self) -> bool {
        self.taints(OUT_OF_SERVICE).next().is_some()
    }

    fn taints<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a RawTaint> {
        self.spec
            .taints
            .iter()
            .filter(move |taint| taint.key == key)
    }

    /// Lists the heartbeats that programs on the node's machine have written into the node object.
    fn heartbeats(&self, now: Timestamp) -> impl Iterator<Item = Heartbeat> {
        let problems = PROBLEMS
            .split(' ')
            .map(|kind| (SignBy::ProblemDetector, kind));
        let monitored = MONITORED
            .split(' ')
            .map(|kind| (SignBy::NodeMonitoring, kind));
        // Each kind once: the stamps of a field are looked up in all entries of `managedFields`.
        let conditions = problems.chain(monitored).filter_map(|(by, kind)| {
            let said = self
                .status
                .conditions
                .iter()
                .filter(|it| it.kind == kind)
                .filter_map(|it| it.last_heartbeat_time)
                .max()?;
            Some((by, owned_heartbeat(kind), said))
        });
        let virt_handler = self
            .metadata
            .annotations
            .get(VIRT_HEARTBEAT)
            .and_then(|said| {
                let field = owned_field("annotations", VIRT_HEARTBEAT);
                Some((SignBy::VirtHandler, field, said.parse().ok()?))
            });
        conditions
            .chain(virt_handler)
            .filter_map(move |(by, field, said)| {
                let at = self.metadata.heard(&field, Some(said), now)?;
                Some(Heartbeat { by, at, what: None })
            })
    }

    /// Lists the fencing marks, which say that the machine's power or disks are cut.
    fn fenced(&self, selectors: &NodeSelectors, now: Timestamp) -> Vec<FencingMark> {
        if self.marks_are_old {
            return Vec::new();
        }
        let provider = &self.spec.provider_id;
        // Of AWS, only EC2's machines have such an ID: on Fargate the taint means the opposite.
        let of_ec2 = provider.strip_prefix("aws:///");
        let sure = of_ec2.is_some_and(|rest| rest.contains("/i-"))
            || SURE_CLOUDS.iter().any(|cloud| provider.starts_with(cloud));
        let since = self.ready_condition().and_then(Condition::since);
        let confirmed = self
            .metadata
            .annotations
            .get(CONFIRMED_OFF)
            .filter(|value| since.is_some() && value.parse::<Timestamp>().ok() == since);
        [
            Some(FENCED.to_owned()),
            Some(format!("taint:{OUT_OF_SERVICE}")),
            sure.then(|| SHUTDOWN.to_owned()),
            confirmed.map(|value| format!("annotation:{CONFIRMED_OFF}={value}")),
        ]
        .into_iter()
        .flatten()
        .filter_map(|it| it.parse().ok())
        .chain(selectors.fenced.iter().cloned())
        .filter(|it| self.is_selected(it))
        .map(|selector| FencingMark {
            mark: selector.to_string(),
            set_by: self.set_by(&selector, now),
        })
        .collect()
    }

    /// Returns a moment by which the mark that `selector` matches had certainly been set, from the
    /// API server's stamps; `None` if no stamp tells.
    fn set_by(&self, selector: &NodeSelector, now: Timestamp) -> Option<Timestamp> {
        // Nobody has to give a taint the time at which it was set, and a time in the future is none. Such a mark is about this failure
        // of the node: the cloud's controller sets its taint only on a NotReady node, and removes it
        // once the node is Ready (cloud-provider, node_lifecycle_controller.go).
        let failed = || {
            let (said, tainted) = self.transitions();
            not_ready_since(said, tainted, now)
        };
        let written = |of: &str, key: &str| self.metadata.written(&owned_field(of, key));
        match selector {
            NodeSelector::Labels(labels) => {
                labels.keys().filter_map(|key| written("labels", key)).max()
            }
            NodeSelector::Annotation(key, _) => written("annotations", key),
            NodeSelector::Taint(key, _) => self
                .taints(key)
                .filter_map(|taint| taint.time_added)
                .filter(|added| *added <= now)
                .max()
                .or_else(failed),
        }
    }

    /// Reports whether the node has a mark of the table.
    pub(super) fn has(&self, mark: &Mark) -> bool {
        let is = |value: &String| {
            let like = |wanted| !value.is_empty() && looks_like(value, wanted);
            mark.value.is_none_or(like)
        };
        match mark.part {
            NodePart::Label => self.metadata.labels.get(mark.key).is_some_and(is),
            NodePart::Taint => self.taints(mark.key).next().is_some(),
            NodePart::Annotation => {
                let mut annotations = self.metadata.annotations.iter();
                annotations.any(|(key, value)| looks_like(key, mark.key) && is(value))
            }
            NodePart::KubeletVersion => is(&self.status.node_info.kubelet_version),
            NodePart::ProviderId => is(&self.spec.provider_id),
        }
    }

    /// Returns the time of the last transition of the `Ready` condition, by the kubelet or the node
    /// controller, and the time since which the node has had the `NoSchedule` taint of a NotReady
    /// node. The `NoExecute` taints of the same keys are ignored, because they are renewed when the
    /// controller manager restarts.
    fn transitions(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let taints = [NOT_READY, UNREACHABLE]
            .into_iter()
            .flat_map(|key| self.taints(key))
            .filter(|taint| taint.effect == "NoSchedule");
        let said = self.ready_condition().and_then(Condition::since);
        (said, taints.filter_map(|taint| taint.time_added).max())
    }

    /// Returns the zone that the node's labels name; `None` if they name neither region nor zone.
    fn zone(&self) -> Option<Zone> {
        let labels = &self.metadata.labels;
        let zone = ZONE_LABELS.map(|names| {
            names
                .iter()
                .find_map(|name| labels.get(*name))
                .cloned()
                .and_then(given)
        });
        zone.iter().any(Option::is_some).then_some(Zone(zone))
    }

    /// Adds the node to the counts, unless it is a leaf node.
    /// Of its labels, it notes those in `of_failed` if it is Ready.
    pub fn count(
        &self,
        counts: &mut Counts,
        selectors: &NodeSelectors,
        of_failed: &BTreeSet<(&String, &String)>,
    ) {
        if self.is_leaf(selectors) {
            return;
        }
        let is_ready = self.ready() == Ready::True;
        counts.all.add(is_ready);
        let roles = self.roles();
        if roles.canonical {
            counts.canonical.add(is_ready);
        }
        if !roles.control_plane {
            counts.workers.add(is_ready);
        }
        if let Some(zone) = self.zone() {
            counts.zones.entry(zone).or_default().add(is_ready);
        }
        if is_ready {
            counts.rooms.extend(self.room());
            let labels = self
                .metadata
                .labels
                .iter()
                .filter(|label| of_failed.contains(label))
                .map(|(key, value)| (key.clone(), value.clone()));
            counts.labels.extend(labels);
        }
    }
}

/// A node, and its own lease as read with it.
#[derive(Debug, Clone)]
pub struct NodeObjects {
    pub node: RawNode,
    pub lease: Read<Option<RawLease>>,
    /// The moment of the reading.
    pub now: Timestamp,
}

impl NodeObjects {
    /// Turns the node into facts, without any other Lease. Fails with the name of a missing field.
    pub fn into_facts(self, policy: &Policy) -> Result<NodeFacts, String> {
        let Self {
            node,
            lease: own,
            now,
        } = self;
        let lease = own.as_ref().ok().and_then(Option::as_ref);
        let heard = lease
            .and_then(|lease| lease.heard_of_kubelet(now))
            .into_iter()
            .chain(node.heartbeats(now))
            .collect_vec();
        let provider = &node.spec.provider_id;
        let machine = provider.rsplit('/').next().unwrap_or_default();
        let (ready_since, tainted_since) = node.transitions();
        let ready_condition = node.ready_condition();
        let mut addresses = node.status.addresses.iter();
        let internal = addresses.find(|it| it.kind == INTERNAL);
        let mut facts = NodeFacts {
            name: required(&node.metadata.name, "metadata.name")?,
            uid: required(&node.metadata.uid, "metadata.uid")?,
            labels: node.metadata.labels.clone(),
            boot_id: given(node.status.node_info.boot_id.clone()),
            machine_id: given(node.status.node_info.machine_id.clone()),
            system_uuid: given(node.status.node_info.system_uuid.clone()),
            address: internal
                .and_then(|it| given(it.address.clone()))
                .map(Foreign::from),
            machine: given(machine.to_owned()).map(Foreign::from),
            ready: node.ready(),
            ready_reason: ready_condition.and_then(|it| given(it.reason.clone())),
            kubelet_says: ready_condition.and_then(|it| Some(kubelet_says(&it.message)?.1)),
            ready_since,
            tainted_since,
            hostname: node.metadata.labels.get(HOSTNAME).cloned(),
            zone: node.zone(),
            heard: Vec::new(),
            renewed: lease.and_then(RawLease::renewed),
            unread_lease: own.as_ref().err().cloned(),
            lists_leases: Err(Unread("they were not looked up".to_owned())),
            quorum: None,
            fenced: node.fenced(&policy.node_selectors, now),
            out_of_service: node.is_out_of_service(),
            is_deleted: node.metadata.terminating(),
            leaf: node.leaf(&policy.node_selectors),
            roles: node.roles(),
            distribution: distribution(&node.status.node_info.kubelet_version),
            open: node.room().is_some_and(|closed_by| closed_by.is_empty()),
            opted_out: node.metadata.opted_out(),
        };
        facts.hear(heard);
        Ok(facts)
    }

    /// Turns the node into facts again, after it was `judged`. The heartbeats known at that time
    /// are kept. `leases` are the other Leases of the node and their possible holders, if they were
    /// read again.
    pub fn into_facts_again(
        self,
        policy: &Policy,
        judged: &NodeFacts,
        leases: Option<(&Holders, Read<Option<Vec<RawLease>>>)>,
    ) -> Result<NodeFacts, String> {
        let now = self.now;
        let mut facts = self.into_facts(policy)?;
        facts.hear(judged.heard.iter().cloned());
        facts.lists_leases.clone_from(&judged.lists_leases);
        facts.quorum.clone_from(&judged.quorum);
        // The other Leases stay unread if they could not be read when the node was judged.
        if let Some((holders, leases)) = leases
            && judged.lists_leases.is_ok()
        {
            holders.hear(&mut facts, leases, now);
        }
        Ok(facts)
    }
}

/// Returns the roles of these names, as kubectl's column shows them.
pub fn roles_named<'a>(names: impl Iterator<Item = &'a str>) -> Roles {
    names.fold(Roles::default(), |roles, name| Roles {
        control_plane: roles.control_plane || CONTROL_PLANE.contains(&name),
        etcd: roles.etcd || name == ETCD,
        ..roles
    })
}

/// Returns scheme and end of a provider ID: what stands between them names accounts and groups.
fn ends(provider: &str) -> String {
    let path = provider.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = provider.split_at(path);
    let rest = rest.trim_start_matches('/');
    let slashes = &provider[scheme.len()..provider.len() - rest.len()];
    match rest.rsplit_once('/').filter(|_| !scheme.is_empty()) {
        Some((_, end)) => format!("{scheme}{slashes}…/{end}"),
        None => provider.to_owned(),
    }
}

/// Returns the distribution that the version of a kubelet names, such as `v1.34.1+k3s1`.
fn distribution(version: &str) -> Option<Distribution> {
    [("+k3s", Distribution::K3s), ("+rke2", Distribution::Rke2)]
        .into_iter()
        .find_map(|(name, its)| version.contains(name).then_some(its))
}

/// Returns the name of a condition's heartbeat in `managedFields`, as a JSON pointer.
fn owned_heartbeat(kind: &str) -> String {
    format!(r#"/f:status/f:conditions/k:{{"type":"{kind}"}}/f:lastHeartbeatTime"#)
}

/// Finds the cause that the kubelet reports in the message of a `Ready` condition, with the part of the message that shows
/// it. The kubelet joins all causes: a node that shuts down stops its runtime, and without a runtime no network is ready.
fn kubelet_says(message: &str) -> Option<(&'static str, KubeletSays)> {
    [
        ("node is shutting down", KubeletSays::ShuttingDown),
        ("container runtime is down", KubeletSays::Runtime),
        ("PLEG is not healthy", KubeletSays::Runtime),
        ("NetworkPluginNotReady", KubeletSays::Network),
        ("cni plugin not initialized", KubeletSays::Network),
    ]
    .into_iter()
    .find(|(text, _)| message.contains(text))
}
