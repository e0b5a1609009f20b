//! Nodes, and the marks by which one stands for something other than a machine of this cluster.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::lease::RawLease;
use super::marks::{KOSMOS_OWNER, KOSMOS_PREFIX, MARKS, NOT_EMPTY, Place};
use super::meta::{Condition, Meta, SKIP, Written, opts_out, required};
use super::pod::{NOT_READY, UNREACHABLE};
use crate::decide::POWERED_OFF;
use crate::facts::{
    FencingMark, Heard, Leaf, LeafKind, NodeFacts, Read, Ready, SignBy, Standing, Traits, Unread,
    not_ready_since,
};
use crate::selector::{NodeSelector, NodeSelectors, is_name};

const HOSTNAME: &str = "kubernetes.io/hostname";
/// The role's label since Kubernetes 1.20, and before.
const CONTROL_PLANE: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// Conditions that node-problem-detector writes, on the node's own machine. Not `NetworkUnavailable`, nor Harvester's
/// `Drained`: the control plane writes those.
const PROBLEMS: [&str; 9] = [
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
const MONITORED: [&str; 5] = [
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
        pub metadata: Meta<BTreeMap<String, String>, Written>,
        spec: NodeSpec,
        status: NodeStatus,
    }

    struct NodeStatus {
        conditions: Option<Vec<Condition>>,
        node_info: Option<NodeInfo>,
    }

    struct NodeInfo {
        container_runtime_version: Option<String>,
        kernel_version: Option<String>,
        kubelet_version: Option<String>,
        os_image: Option<String>,
        #[serde(rename = "machineID")]
        machine_id: Option<String>,
        #[serde(rename = "systemUUID")]
        system_uuid: Option<String>,
    }

    struct NodeSpec {
        taints: Option<Vec<Taint>>,
        unschedulable: bool,
        #[serde(rename = "providerID")]
        provider_id: Option<String>,
    }

    struct Taint {
        key: Option<String>,
        value: Option<String>,
        effect: Option<String>,
        time_added: Option<Timestamp>,
    }
}

impl RawNode {
    fn ready_condition(&self) -> Option<&Condition> {
        // The last one wins, as in kubectl's Status column.
        self.status
            .conditions
            .iter()
            .flatten()
            .rfind(|condition| condition.kind.as_deref() == Some("Ready"))
    }

    /// Status of its `Ready` condition. A status that is not one of the three known says nothing: `Unknown`.
    pub fn ready(&self) -> Ready {
        match self
            .ready_condition()
            .map(|condition| condition.status.as_deref())
        {
            None => Ready::Absent,
            Some(Some("True")) => Ready::True,
            Some(Some("False")) => Ready::False,
            Some(_) => Ready::Unknown,
        }
    }

    /// Without what no node is asked about, or only one that is NotReady: it is long, and nodes are many.
    #[must_use]
    pub fn without_idle_stamps(mut self) -> Self {
        if self.ready() == Ready::True {
            self.metadata.managed_fields = None;
        }
        self.status
            .conditions
            .iter_mut()
            .flatten()
            .for_each(|condition| condition.message = None);
        self
    }

    /// Whether it is a leaf node.
    pub fn is_leaf(&self, selectors: &NodeSelectors) -> bool {
        self.leaf(selectors).is_some()
    }

    /// Counts what it has in `traits`, for what nodes that fail together may have in common. Its own name is none, nor
    /// what Kubernetes writes because it is not Ready.
    pub fn count_traits(&self, standing: Standing, traits: &mut Traits) {
        let labels = self
            .labels()
            .iter()
            .filter(|(key, _)| !key.starts_with("beta.") && **key != HOSTNAME);
        let labels = labels.map(|(key, value)| format!("label {key}={value}"));
        let taints = self.spec.taints.iter().flatten().filter_map(|taint| {
            let key = taint
                .key
                .as_deref()
                .filter(|key| ![NOT_READY, UNREACHABLE].contains(key))?;
            let value = taint.value.as_ref().filter(|value| !value.is_empty());
            Some(value.map_or(format!("taint {key}"), |value| {
                format!("taint {key}={value}")
            }))
        });
        let info = self.status.node_info.as_ref();
        let info = info.into_iter().flat_map(|info| {
            [
                ("container runtime", &info.container_runtime_version),
                ("kernel", &info.kernel_version),
                ("kubelet", &info.kubelet_version),
                ("OS", &info.os_image),
            ]
        });
        let info = info.filter_map(|(what, is)| Some(format!("{what} {}", is.as_ref()?)));
        if !standing.leaf {
            // Of two taints of one key, one counts.
            for each in labels.chain(taints).chain(info).collect::<BTreeSet<_>>() {
                traits.entry(each).or_default().add(standing.ready);
            }
        }
    }

    /// Its labels.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        self.metadata.labels.as_ref().unwrap_or(NONE)
    }

    /// Whether it carries the control-plane role.
    pub fn control_plane(&self) -> bool {
        CONTROL_PLANE
            .iter()
            .any(|key| self.metadata.label(key).is_some())
    }

    /// Whether a taint keeps pods off it as off a control plane. The taint has the key of the role's label.
    fn reserved(&self) -> bool {
        let mut taints = CONTROL_PLANE.iter().flat_map(|key| self.taints(key));
        taints.any(|taint| taint.effect.as_deref() != Some("PreferNoSchedule"))
    }

    /// Whether it stands for something that this cluster does not see, or works on without it: by any one mark, or the
    /// operator's selector.
    fn leaf(&self, selectors: &NodeSelectors) -> Option<Leaf> {
        let found = MARKS.iter().flat_map(|(kind, maker, places)| {
            let marks = places.iter().filter_map(|place| self.mark(place));
            marks.map(|mark| (*kind, *maker, mark))
        });
        let named = self
            .metadata
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with(KOSMOS_PREFIX));
        let named = (named && self.is_of_no_machine()).then(|| {
            (
                LeafKind::Kosmos,
                "Kosmos",
                format!("name prefix {KOSMOS_PREFIX}"),
            )
        });
        let selected = selectors
            .leaf
            .iter()
            .filter(|selector| self.is_selected(selector));
        let selected = selected.map(|selector| (LeafKind::Selected, "", selector.to_string()));
        let found = found.chain(named).chain(selected).collect::<Vec<_>>();
        let &(kind, maker, _) = found.first()?;
        let marks = found.into_iter().map(|(.., mark)| mark).collect();
        // It becomes part of commands to paste: only what can be the name of an object may.
        let cluster = self
            .annotation(KOSMOS_OWNER)
            .filter(|cluster| is_name(cluster));
        Some(Leaf {
            kind,
            maker,
            marks,
            cluster: cluster.map(str::to_owned),
        })
    }

    fn is_selected(&self, selector: &NodeSelector) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == value)
        };
        match selector {
            NodeSelector::Labels(selector) => selector.matches(self.labels()),
            NodeSelector::Annotation(key, wanted) => {
                self.annotation(key).is_some_and(|value| is(wanted, value))
            }
            NodeSelector::Taint(key, wanted) => self
                .taints(key)
                .any(|taint| is(wanted, taint.value.as_deref().unwrap_or_default())),
        }
    }

    fn taints<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Taint> {
        self.spec
            .taints
            .iter()
            .flatten()
            .filter(move |taint| taint.key.as_deref() == Some(key))
    }

    /// What its machine has written on the node itself.
    fn heartbeats(&self, now: Timestamp) -> impl Iterator<Item = Heard> {
        let conditions = self
            .status
            .conditions
            .iter()
            .flatten()
            .filter_map(move |condition| {
                let kind = condition.kind.as_deref()?;
                let by = if PROBLEMS.contains(&kind) {
                    SignBy::ProblemDetector
                } else {
                    MONITORED
                        .contains(&kind)
                        .then_some(SignBy::NodeMonitoring)?
                };
                let field =
                    format!(r#"/f:status/f:conditions/k:{{"type":"{kind}"}}/f:lastHeartbeatTime"#);
                let at = self
                    .metadata
                    .heard(&field, Some(condition.last_heartbeat_time?), now)?;
                Some(Heard {
                    by,
                    at,
                    period: CONDITION_PERIOD,
                })
            });
        let said = self
            .annotation(VIRT_HEARTBEAT)
            .and_then(|value| value.parse().ok());
        let at = said.and_then(|said| {
            self.metadata
                .heard(&owned_field("annotations", VIRT_HEARTBEAT), Some(said), now)
        });
        let virt_handler = at.map(|at| Heard {
            by: SignBy::VirtHandler,
            at,
            period: VIRT_PERIOD,
        });
        conditions.chain(virt_handler)
    }

    /// The marks that say that its power or disks are cut.
    fn fenced(&self, selectors: &NodeSelectors) -> Vec<FencingMark> {
        let taints_set = |key: &str| {
            let added = self.taints(key).filter_map(|taint| taint.time_added).max();
            added.or_else(|| self.metadata.written(TAINTS_FIELD))
        };
        let mut marks = Vec::new();
        let mut add = |mark: String, set_by| marks.push(FencingMark { mark, set_by });
        let (key, value) = FENCED;
        if self.annotation(key) == Some(value) {
            add(
                format!("annotation {key}={value}"),
                self.metadata.written(&owned_field("annotations", key)),
            );
        }
        let provider = self.spec.provider_id.as_deref().unwrap_or_default();
        let fargate = self
            .metadata
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with(FARGATE_PREFIX));
        if self.taints(SHUTDOWN).next().is_some()
            && SURE_CLOUDS.iter().any(|cloud| provider.starts_with(cloud))
            && !fargate
        {
            add(format!("taint {SHUTDOWN}"), taints_set(SHUTDOWN));
        }
        for selector in selectors
            .fenced
            .iter()
            .filter(|selector| self.is_selected(selector))
        {
            let set_by = match selector {
                NodeSelector::Labels(labels) => labels
                    .keys()
                    .filter_map(|key| self.metadata.written(&owned_field("labels", key)))
                    .max(),
                NodeSelector::Annotation(key, _) => {
                    self.metadata.written(&owned_field("annotations", key))
                }
                NodeSelector::Taint(key, _) => taints_set(key),
            };
            add(selector.to_string(), set_by);
        }
        marks
    }

    /// The mark at that place, as a phrase, where it is there.
    fn mark(&self, place: &Place) -> Option<String> {
        let is = |value: Option<&str>, wanted: Option<&str>| {
            value.is_some_and(|value| wanted.is_none_or(|wanted| value == wanted))
        };
        match place {
            Place::Label(key, wanted) => is(self.metadata.label(key), *wanted).then(|| {
                wanted.map_or(format!("label {key}"), |value| {
                    format!("label {key}={value}")
                })
            }),
            Place::Annotation(key, wanted) => {
                let value = self
                    .annotation(key)
                    .filter(|value| !value.is_empty() || !NOT_EMPTY.contains(key));
                is(value, *wanted)
                    .then(|| format!("annotation {key}={}", value.unwrap_or_default()))
            }
            Place::Annotations(prefix) => {
                let annotations = self.metadata.annotations.as_ref()?;
                let key = annotations.keys().find(|key| key.starts_with(prefix))?;
                Some(format!("annotation {key}"))
            }
            Place::Taint(wanted) => self
                .taints(wanted)
                .next()
                .map(|_| format!("taint {wanted}")),
            Place::Provider(start) => {
                let provider = self.spec.provider_id.as_deref()?;
                provider
                    .starts_with(start)
                    .then(|| format!("providerID {provider}"))
            }
            Place::Version(_, is_one) => {
                let version = self.status.node_info.as_ref()?.kubelet_version.as_deref()?;
                is_one(version).then(|| format!("kubelet version {version}"))
            }
        }
    }

    /// Whether it names no machine, or says nothing about one.
    fn is_of_no_machine(&self) -> bool {
        let named = |id: &Option<String>| id.as_ref().is_some_and(|id| !id.is_empty());
        let info = self.status.node_info.as_ref();
        !info.is_some_and(|info| named(&info.machine_id) || named(&info.system_uuid))
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata
            .annotations
            .as_ref()?
            .get(key)
            .map(String::as_str)
    }

    /// When the kubelet or the node controller last said that it is Ready, or is not, and since when it has the taint of a
    /// node that is not. The `NoExecute` taints of the same keys are renewed when the controller manager restarts.
    fn transitions(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let taints = [NOT_READY, UNREACHABLE]
            .into_iter()
            .flat_map(|key| self.taints(key));
        let taints = taints.filter(|taint| taint.effect.as_deref() == Some("NoSchedule"));
        let said = self
            .ready_condition()
            .and_then(|condition| condition.last_transition_time);
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
        leases: NodeLeases<'_>,
        selectors: &NodeSelectors,
    ) -> Result<NodeFacts, String> {
        let name = required(self.metadata.name.clone(), "metadata.name")?;
        let NodeLeases { own, api_servers } = leases;
        let hosts = [Some(name.as_str()), self.metadata.label(HOSTNAME)];
        let hosts = hosts.into_iter().flatten().collect::<Vec<_>>();
        let servers = api_servers.as_deref().unwrap_or_default();
        let servers = servers
            .iter()
            .filter_map(|lease| lease.of_api_server(&hosts, now));
        let servers = servers
            .filter(|_| self.may_have_api_server())
            .collect::<Vec<_>>();
        let no_api_server = self.may_have_api_server() && servers.is_empty() && api_servers.is_ok();
        let unheard = own.as_ref().err().or(api_servers.err()).cloned();
        let own = own.ok().flatten().and_then(|lease| lease.of_kubelet(now));
        let mut heard = own
            .into_iter()
            .chain(self.heartbeats(now))
            .chain(servers)
            .collect::<Vec<_>>();
        // The last of each.
        heard.sort_by(|a, b| a.by.cmp(&b.by).then(b.at.cmp(&a.at)));
        heard.dedup_by_key(|heard| heard.by);
        let (ready_since, tainted_since) = self.transitions();
        Ok(NodeFacts {
            uid: required(self.metadata.uid.clone(), "metadata.uid")?,
            created: self.metadata.creation_timestamp,
            powered_off: self.annotation(POWERED_OFF).map(str::to_owned),
            ready: self.ready(),
            ready_reason: self
                .ready_condition()
                .and_then(|condition| condition.reason.clone()),
            ready_since,
            tainted_since,
            hostname: self.metadata.label(HOSTNAME).map(str::to_owned),
            heard,
            unheard,
            no_api_server,
            fenced: self.fenced(selectors),
            out_of_service: self.taints(OUT_OF_SERVICE).next().is_some(),
            leaf: self.leaf(selectors),
            control_plane: self.control_plane(),
            reserved: self.reserved(),
            cordoned: self.spec.unschedulable,
            opted_out: opts_out([self.metadata.label(SKIP), self.annotation(SKIP)]),
            name,
        })
    }
}

/// The leases that show whether a node lives.
#[derive(Debug)]
pub struct NodeLeases<'a> {
    /// Its own; `None` where it has none.
    pub own: Read<Option<RawLease>>,
    /// Those of the API servers, where it may have one; none where the account may not list them.
    pub api_servers: Result<&'a [RawLease], &'a Unread>,
}

/// An annotation or a label, as an entry of `managedFields` says that it owns it.
fn owned_field(of: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("/f:metadata/f:{of}/f:{key}")
}
