//! Nodes, and the marks by which one stands for something other than a machine of this cluster.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    lease::RawLease,
    marks::{KOSMOS_OWNER, KOSMOS_PREFIX, MARKS, NOT_EMPTY, Place},
    meta::{Condition, Meta, given, is, required},
    pod::{NOT_READY, UNREACHABLE},
};
use crate::{
    decide::POWERED_OFF,
    facts::{
        FencingMark, Heard, Leaf, LeafKind, NodeFacts, Read, Ready, SignBy, Standing, Traits,
        not_ready_since,
    },
    selector::{NodeSelector, NodeSelectors, Selector, is_name},
};

const HOSTNAME: &str = "kubernetes.io/hostname";
/// The role's label since Kubernetes 1.20, and before.
const CONTROL_PLANE: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// Conditions that node-problem-detector writes, on the node's own machine. Not `NetworkUnavailable`, nor Harvester's
/// `Drained`: the control plane writes those.
const PROBLEMS: &[&str] = &[
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "KubeletUnhealthy",
    "ContainerRuntimeUnhealthy",
    "FrequentKubeletRestart",
    "FrequentContainerdRestart",
    "FrequentDockerRestart",
    "FrequentUnregisterNetDevice",
    "CorruptDockerOverlay2",
];
/// Conditions that the node monitoring agent of EKS writes, likewise (aws/eks-node-monitoring-agent).
const MONITORED: &[&str] = &[
    "KernelReady",
    "NetworkingReady",
    "StorageReady",
    "ContainerRuntimeReady",
    "AcceleratedHardwareReady",
];
/// Both write every 5 min.
const CONDITION_PERIOD: SignedDuration = SignedDuration::from_mins(11);
/// virt-handler writes every 1 to 2 min.
const VIRT_PERIOD: SignedDuration = SignedDuration::from_mins(5);
/// virt-handler's heartbeat.
const VIRT_HEARTBEAT: &str = "kubevirt.io/heartbeat";
/// The taints of a node, as an entry of `managedFields` says that it owns them: all or none.
const TAINTS_FIELD: &str = "/f:spec/f:taints";
/// kube-fencing's word that its fencing Job succeeded; its other states prove nothing.
const FENCED: (&str, &str) = ("fencing/state", "fenced");
/// The cloud says that the machine is stopped. That is sure on AWS EC2 and `OpenStack` alone.
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const SURE_CLOUDS: [&str; 2] = ["aws://", "openstack://"];
/// Names of Fargate's nodes begin so: on them the taint says the inverse.
const FARGATE_PREFIX: &str = "fargate-";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

raw! {
    /// A node.
    pub struct RawNode {
        /// Its metadata.
        pub metadata: Meta,
        spec: NodeSpec,
        status: NodeStatus,
    }

    struct NodeStatus {
        conditions: Vec<Condition>,
        node_info: NodeInfo,
    }

    struct NodeInfo {
        container_runtime_version: String,
        kernel_version: String,
        kubelet_version: String,
        os_image: String,
        #[serde(rename = "machineID")]
        machine_id: String,
        #[serde(rename = "systemUUID")]
        system_uuid: String,
    }

    struct NodeSpec {
        taints: Vec<Taint>,
        unschedulable: bool,
        #[serde(rename = "providerID")]
        provider_id: String,
    }

    struct Taint {
        key: String,
        value: String,
        effect: String,
        time_added: Option<Timestamp>,
    }
}

impl RawNode {
    fn ready_condition(&self) -> Option<&Condition> {
        // The last one wins, as in kubectl's Status column.
        self.status.conditions.iter().rfind(|it| it.kind == "Ready")
    }

    /// Status of its `Ready` condition. A status that is not one of the three known says nothing: `Unknown`.
    pub fn ready(&self) -> Ready {
        match self.ready_condition().map(|it| it.status.as_str()) {
            None => Ready::Absent,
            Some("True") => Ready::True,
            Some("False") => Ready::False,
            Some(_) => Ready::Unknown,
        }
    }

    /// Drops what no node is asked about, or, with `stamps`, only one that is NotReady: it is long, and nodes are many.
    pub fn drop_idle(&mut self, stamps: bool) {
        if stamps && self.ready() == Ready::True {
            self.metadata.managed_fields = Vec::new();
        }
        for condition in &mut self.status.conditions {
            condition.message = String::new();
        }
    }

    /// Whether it is a leaf node.
    pub fn is_leaf(&self, selectors: &NodeSelectors) -> bool {
        self.leaf(selectors).is_some()
    }

    /// Counts what it has in `traits`, for what nodes that fail together may have in common. Its own name is none, nor
    /// what Kubernetes writes because it is not Ready.
    pub fn count_traits(&self, standing: Standing, traits: &mut Traits) {
        if standing.leaf {
            return;
        }
        let labels = self
            .metadata
            .labels
            .iter()
            .filter(|(key, _)| !key.starts_with("beta.") && *key != HOSTNAME)
            .map(|(key, value)| format!("label {key}={value}"));
        let taints = self
            .spec
            .taints
            .iter()
            .filter(|it| !["", NOT_READY, UNREACHABLE].contains(&it.key.as_str()))
            .map(|Taint { key, value, .. }| match value.as_str() {
                "" => format!("taint {key}"),
                value => format!("taint {key}={value}"),
            });
        let info = &self.status.node_info;
        let info = [
            ("container runtime", &info.container_runtime_version),
            ("kernel", &info.kernel_version),
            ("kubelet", &info.kubelet_version),
            ("OS", &info.os_image),
        ]
        .into_iter()
        .filter(|(_, is)| !is.is_empty())
        .map(|(what, is)| format!("{what} {is}"));
        // Of two taints of one key, one counts.
        for each in labels.chain(taints).chain(info).collect::<BTreeSet<_>>() {
            traits.entry(each).or_default().add(standing.ready);
        }
    }

    /// Whether it carries the control-plane role.
    fn control_plane(&self) -> bool {
        CONTROL_PLANE
            .iter()
            .any(|key| self.metadata.has_label(key, None))
    }

    /// Whether a taint keeps pods off it as off a control plane. The taint has the key of the role's label.
    fn reserved(&self) -> bool {
        CONTROL_PLANE
            .iter()
            .flat_map(|key| self.taints(key))
            .any(|taint| taint.effect != "PreferNoSchedule")
    }

    /// Whether it stands for something that this cluster does not see, or works on without it: by any one mark, or the
    /// operator's selector.
    fn leaf(&self, selectors: &NodeSelectors) -> Option<Leaf> {
        let found = MARKS.iter().flat_map(|(kind, maker, places)| {
            places
                .iter()
                .filter_map(|place| self.mark(place))
                .map(|mark| (*kind, *maker, mark))
        });
        let named = self.metadata.name.starts_with(KOSMOS_PREFIX) && self.is_of_no_machine();
        let named = named
            .then(|| format!("name prefix {KOSMOS_PREFIX}"))
            .map(|mark| (LeafKind::Kosmos, "Kosmos", mark));
        let selected = selectors
            .leaf
            .iter()
            .filter(|it| self.is_selected(it))
            .map(|selector| (LeafKind::Selected, "", selector.to_string()));
        let found = found.chain(named).chain(selected).collect_vec();
        let &(kind, maker, _) = found.first()?;
        // It becomes part of commands to paste: only what can be the name of an object may.
        let cluster = self.metadata.annotation(KOSMOS_OWNER);
        Some(Leaf {
            kind,
            maker,
            marks: found.into_iter().map(|(.., mark)| mark).collect(),
            cluster: cluster.filter(|cluster| is_name(cluster)),
        })
    }

    /// Whether a label selector selects it.
    pub fn is_labelled(&self, selector: &Selector) -> bool {
        selector.matches(&self.metadata.labels)
    }

    fn is_selected(&self, selector: &NodeSelector) -> bool {
        match selector {
            NodeSelector::Labels(selector) => self.is_labelled(selector),
            NodeSelector::Annotation(key, wanted) => is(self.annotation(key), wanted.as_deref()),
            NodeSelector::Taint(key, wanted) => self
                .taints(key)
                .any(|taint| is(Some(&taint.value), wanted.as_deref())),
        }
    }

    fn taints<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Taint> {
        self.spec
            .taints
            .iter()
            .filter(move |taint| taint.key == key)
    }

    /// What its machine has written on the node itself.
    fn heartbeats(&self, now: Timestamp) -> impl Iterator<Item = Heard> {
        let conditions = self.status.conditions.iter().filter_map(move |condition| {
            let kind = condition.kind.as_str();
            let by = [
                (SignBy::ProblemDetector, PROBLEMS),
                (SignBy::NodeMonitoring, MONITORED),
            ];
            let (by, _) = by.into_iter().find(|(_, kinds)| kinds.contains(&kind))?;
            let said = Some(condition.last_heartbeat_time?);
            let field =
                format!(r#"/f:status/f:conditions/k:{{"type":"{kind}"}}/f:lastHeartbeatTime"#);
            Some((by, CONDITION_PERIOD, field, said))
        });
        let said = self
            .annotation(VIRT_HEARTBEAT)
            .and_then(|it| it.parse().ok());
        let field = owned_field("annotations", VIRT_HEARTBEAT);
        let virt_handler = said.map(|said| (SignBy::VirtHandler, VIRT_PERIOD, field, Some(said)));
        conditions
            .chain(virt_handler)
            .filter_map(move |(by, period, field, said)| {
                let at = self.metadata.heard(&field, said, now)?;
                Some(Heard { by, at, period })
            })
    }

    /// The marks that say that its power or disks are cut.
    fn fenced(&self, selectors: &NodeSelectors) -> Vec<FencingMark> {
        let (key, value) = FENCED;
        let fenced = NodeSelector::Annotation(key.to_owned(), Some(value.to_owned()));
        let provider = &self.spec.provider_id;
        let sure = SURE_CLOUDS.iter().any(|cloud| provider.starts_with(cloud))
            && !self.metadata.name.starts_with(FARGATE_PREFIX);
        let shutdown = sure.then(|| NodeSelector::Taint(SHUTDOWN.to_owned(), None));
        [fenced]
            .iter()
            .chain(&shutdown)
            .chain(&selectors.fenced)
            .filter(|it| self.is_selected(it))
            .map(|selector| FencingMark {
                mark: selector.to_string(),
                set_by: self.set_by(selector),
            })
            .collect()
    }

    /// When that by which it is selected was there at the latest, as far as the API server has stamped that.
    fn set_by(&self, selector: &NodeSelector) -> Option<Timestamp> {
        let written = |of: &str, key: &str| self.metadata.written(&owned_field(of, key));
        match selector {
            NodeSelector::Labels(labels) => {
                labels.keys().filter_map(|key| written("labels", key)).max()
            }
            NodeSelector::Annotation(key, _) => written("annotations", key),
            NodeSelector::Taint(key, _) => self
                .taints(key)
                .filter_map(|taint| taint.time_added)
                .max()
                .or_else(|| self.metadata.written(TAINTS_FIELD)),
        }
    }

    /// The mark at that place, as a phrase, where it is there.
    fn mark(&self, place: &Place) -> Option<String> {
        match place {
            Place::Label(key, wanted) => {
                let equals = wanted.map(|value| format!("={value}")).unwrap_or_default();
                self.metadata
                    .has_label(key, *wanted)
                    .then(|| format!("label {key}{equals}"))
            }
            Place::Annotation(key, wanted) => {
                let value = self.annotation(key)?;
                let found =
                    is(Some(value), *wanted) && !(value.is_empty() && NOT_EMPTY.contains(key));
                found.then(|| format!("annotation {key}={value}"))
            }
            Place::Annotations(prefix) => {
                let key = self
                    .metadata
                    .annotations
                    .keys()
                    .find(|key| key.starts_with(prefix))?;
                Some(format!("annotation {key}"))
            }
            Place::Taint(key) => self.taints(key).next().map(|_| format!("taint {key}")),
            Place::Provider(start) => {
                let provider = &self.spec.provider_id;
                provider
                    .starts_with(start)
                    .then(|| format!("providerID {provider}"))
            }
            Place::Version(_, is_one) => {
                let version = &self.status.node_info.kubelet_version;
                is_one(version).then(|| format!("kubelet version {version}"))
            }
        }
    }

    /// Whether it names no machine, or says nothing about one.
    fn is_of_no_machine(&self) -> bool {
        let info = &self.status.node_info;
        info.machine_id.is_empty() && info.system_uuid.is_empty()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }

    /// When the kubelet or the node controller last said that it is Ready, or is not, and since when it has the taint of a
    /// node that is not. The `NoExecute` taints of the same keys are renewed when the controller manager restarts.
    fn transitions(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let taints = [NOT_READY, UNREACHABLE]
            .into_iter()
            .flat_map(|key| self.taints(key))
            .filter(|taint| taint.effect == "NoSchedule");
        let said = self
            .ready_condition()
            .and_then(|it| it.last_transition_time);
        (said, taints.filter_map(|taint| taint.time_added).max())
    }

    /// What it counts as at `now`. A pod of it may be Terminating: that is not known from it.
    pub fn standing(&self, selectors: &NodeSelectors, now: Timestamp) -> Standing {
        let (ready, (said, tainted)) = (self.ready() == Ready::True, self.transitions());
        Standing {
            ready,
            leaf: self.is_leaf(selectors),
            control_plane: self.control_plane(),
            reserved: self.reserved(),
            cordoned: self.spec.unschedulable,
            since: not_ready_since(said, tainted, now).filter(|_| !ready),
            terminating: true,
        }
    }

    /// Whether the leases of API servers tell whether it lives.
    pub fn may_have_api_server(&self) -> bool {
        self.control_plane() && self.ready() != Ready::True
    }

    /// As facts, known at `now`. `leases` are its own and those of the API servers. An error names what is missing.
    pub fn into_facts(
        self,
        now: Timestamp,
        NodeLeases { own, api_servers }: NodeLeases,
        selectors: &NodeSelectors,
    ) -> Result<NodeFacts, String> {
        let name = required(self.metadata.name.clone(), "metadata.name")?;
        let hostname = self.metadata.labels.get(HOSTNAME).cloned();
        let hosts = [name.as_str(), hostname.as_deref().unwrap_or(&name)];
        let unheard = own.as_ref().err().or(api_servers.as_ref().err()).cloned();
        let heard_of = |lease: &RawLease| lease.of_api_server(hosts, now);
        let servers = api_servers
            .as_ref()
            .map(|leases| leases.iter().filter_map(heard_of).collect_vec())
            .ok()
            .filter(|_| self.may_have_api_server());
        let no_api_server = servers.as_ref().is_some_and(Vec::is_empty);
        let mut heard = own
            .ok()
            .flatten()
            .and_then(|lease| lease.of_kubelet(now))
            .into_iter()
            .chain(self.heartbeats(now))
            .chain(servers.into_iter().flatten())
            .collect_vec();
        // The last of each.
        heard.sort_by(|a, b| a.by.cmp(&b.by).then(b.at.cmp(&a.at)));
        heard.dedup_by_key(|heard| heard.by);
        let (ready_since, tainted_since) = self.transitions();
        let ready_condition = self.ready_condition();
        Ok(NodeFacts {
            uid: required(self.metadata.uid.clone(), "metadata.uid")?,
            created: self.metadata.creation_timestamp,
            powered_off: self.metadata.annotation(POWERED_OFF),
            ready: self.ready(),
            ready_reason: ready_condition.and_then(|it| given(it.reason.clone())),
            ready_since,
            tainted_since,
            hostname,
            heard,
            unheard,
            no_api_server,
            fenced: self.fenced(selectors),
            out_of_service: self.taints(OUT_OF_SERVICE).next().is_some(),
            leaf: self.leaf(selectors),
            control_plane: self.control_plane(),
            reserved: self.reserved(),
            cordoned: self.spec.unschedulable,
            opted_out: self.metadata.opted_out(),
            name,
        })
    }
}

/// The leases that show whether a node lives.
#[derive(Debug)]
pub struct NodeLeases {
    /// Its own; `None` where it has none.
    pub own: Read<Option<RawLease>>,
    /// The leases of API servers, where this node may run one; none where the account may not list them.
    pub api_servers: Read<Vec<RawLease>>,
}

/// An annotation or a label, as an entry of `managedFields` says that it owns it.
fn owned_field(of: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("/f:metadata/f:{of}/f:{key}")
}
