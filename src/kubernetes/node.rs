//! Nodes, and the marks by which one stands for something other than a machine of this cluster.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::marks::{KOSMOS_OWNER, KOSMOS_PREFIX, MARKS, NOT_EMPTY, Place};
use super::meta::{Condition, Meta, SKIP, Written, opts_out, required};
use super::pod::{NOT_READY, UNREACHABLE};
use crate::facts::{Leaf, LeafKind, Lease, NodeFacts, Read, Ready, Sign, SignBy, Standing, Traits};
use crate::selector::{NodeSelector, NodeSelectors, is_name};

const HOSTNAME: &str = "kubernetes.io/hostname";
/// The role's label since Kubernetes 1.20, and before.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

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
/// virt-handler's heartbeat.
const VIRT_HEARTBEAT: &str = "kubevirt.io/heartbeat";
/// That, as an entry of `managedFields` says that it owns it.
const VIRT_FIELD: &str = "/f:metadata/f:annotations/f:kubevirt.io~1heartbeat";
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
        self.status.conditions.iter().flatten().rfind(|condition| condition.kind.as_deref() == Some("Ready"))
    }

    /// Status of its `Ready` condition. A status that is not one of the three known says nothing: `Unknown`.
    pub fn ready(&self) -> Ready {
        match self.ready_condition().map(|condition| condition.status.as_deref()) {
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
        self.status.conditions.iter_mut().flatten().for_each(|condition| condition.message = None);
        self
    }

    /// Its standing among the nodes, for a count.
    pub fn standing(&self, selectors: &NodeSelectors) -> Standing {
        let (ready, leaf) = (self.ready() == Ready::True, self.leaf(selectors).is_some());
        Standing { ready, leaf, control_plane: self.control_plane() }
    }

    /// Counts what it has in `traits`, for what nodes that fail together may have in common. Its own name is none, nor
    /// what Kubernetes writes because it is not Ready.
    pub fn count_traits(&self, standing: Standing, traits: &mut Traits) {
        let labels = self.labels().iter().filter(|(key, _)| !key.starts_with("beta.") && **key != HOSTNAME);
        let labels = labels.map(|(key, value)| format!("label {key}={value}"));
        let taints = self.spec.taints.iter().flatten().filter_map(|taint| {
            let key = taint.key.as_deref().filter(|key| ![NOT_READY, UNREACHABLE].contains(key))?;
            let value = taint.value.as_ref().filter(|value| !value.is_empty());
            Some(value.map_or(format!("taint {key}"), |value| format!("taint {key}={value}")))
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
        CONTROL_PLANE.iter().any(|key| self.metadata.label(key).is_some())
    }

    /// Whether it stands for something that this cluster does not see, or works on without it: by any one mark, or the
    /// operator's selector.
    fn leaf(&self, selectors: &NodeSelectors) -> Option<Leaf> {
        let found = MARKS.iter().filter_map(|(kind, maker, place)| Some((*kind, *maker, self.mark(place)?)));
        let named = self.metadata.name.as_deref().is_some_and(|name| name.starts_with(KOSMOS_PREFIX));
        let named = (named && self.is_of_no_machine())
            .then(|| (LeafKind::Kosmos, "Kosmos", format!("name prefix {KOSMOS_PREFIX}")));
        let selected = selectors.leaf.iter().filter(|selector| self.is_selected(selector));
        let selected = selected.map(|selector| (LeafKind::Selected, "", selector.to_string()));
        let found = found.chain(named).chain(selected).collect::<Vec<_>>();
        let &(kind, maker, _) = found.first()?;
        let marks = found.into_iter().map(|(.., mark)| mark).collect();
        // It becomes part of commands to paste: only what can be the name of an object may.
        let cluster = self.annotation(KOSMOS_OWNER).filter(|cluster| is_name(cluster));
        Some(Leaf { kind, maker, marks, cluster: cluster.map(str::to_owned) })
    }

    fn is_selected(&self, selector: &NodeSelector) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        match selector {
            NodeSelector::Labels(selector) => selector.matches(self.labels()),
            NodeSelector::Annotation(key, wanted) => {
                self.annotation(key).is_some_and(|value| is(wanted, value))
            }
            NodeSelector::Taint(key, wanted) => {
                self.taints(key).any(|taint| is(wanted, taint.value.as_deref().unwrap_or_default()))
            }
        }
    }

    fn taints<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Taint> {
        self.spec.taints.iter().flatten().filter(move |taint| taint.key.as_deref() == Some(key))
    }

    /// What its machine has reported besides the lease.
    fn heartbeats(&self) -> Vec<Sign> {
        let problems = self.status.conditions.iter().flatten().filter_map(|condition| {
            let kind = condition.kind.as_deref().filter(|kind| PROBLEMS.contains(kind))?;
            let field = format!(r#"/f:status/f:conditions/k:{{"type":"{kind}"}}/f:lastHeartbeatTime"#);
            Some((SignBy::ProblemDetector, condition.last_heartbeat_time?, field))
        });
        let virt_handler = self.annotation(VIRT_HEARTBEAT).and_then(|value| value.parse().ok());
        let virt_handler = virt_handler.map(|said| (SignBy::VirtHandler, said, VIRT_FIELD.to_owned()));
        // The stamp and the node's word both count: the one may be too old, as of a lease, and the other of the future.
        let signs = problems.chain(virt_handler).flat_map(|(by, said, field)| {
            [Some(said), self.metadata.written(&field)].into_iter().flatten().map(move |at| Sign { by, at })
        });
        signs.collect()
    }

    /// The mark that says that its power or disks are cut.
    fn fenced(&self, selectors: &NodeSelectors) -> Option<String> {
        let (key, value) = FENCED;
        if self.annotation(key) == Some(value) {
            return Some(format!("annotation {key}={value}"));
        }
        let provider = self.spec.provider_id.as_deref().unwrap_or_default();
        let fargate = self.metadata.name.as_deref().is_some_and(|name| name.starts_with(FARGATE_PREFIX));
        if self.taints(SHUTDOWN).next().is_some()
            && SURE_CLOUDS.iter().any(|cloud| provider.starts_with(cloud))
            && !fargate
        {
            return Some(format!("taint {SHUTDOWN}"));
        }
        selectors.fenced.iter().find(|selector| self.is_selected(selector)).map(ToString::to_string)
    }

    /// The mark at that place, as a phrase, where it is there.
    fn mark(&self, place: &Place) -> Option<String> {
        let is = |value: Option<&str>, wanted: Option<&str>| {
            value.is_some_and(|value| wanted.is_none_or(|wanted| value == wanted))
        };
        match place {
            Place::Label(key, wanted) => is(self.metadata.label(key), *wanted)
                .then(|| wanted.map_or(format!("label {key}"), |value| format!("label {key}={value}"))),
            Place::Annotation(key, wanted) => {
                let value =
                    self.annotation(key).filter(|value| !value.is_empty() || !NOT_EMPTY.contains(key));
                is(value, *wanted).then(|| format!("annotation {key}={}", value.unwrap_or_default()))
            }
            Place::Annotations(prefix) => {
                let annotations = self.metadata.annotations.as_ref()?;
                let key = annotations.keys().find(|key| key.starts_with(prefix))?;
                Some(format!("annotation {key}"))
            }
            Place::Taint(wanted) => self.taints(wanted).next().map(|_| format!("taint {wanted}")),
            Place::Version(is_one) => {
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
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// As facts. An error names what is missing.
    pub fn into_facts(
        self,
        lease: Read<Option<Lease>>,
        selectors: &NodeSelectors,
    ) -> Result<NodeFacts, String> {
        let condition = self.ready_condition();
        // The NoExecute taints of the same keys are renewed when the controller manager restarts.
        let taints = self.spec.taints.iter().flatten().filter(|taint| {
            taint.effect.as_deref() == Some("NoSchedule")
                && taint.key.as_deref().is_some_and(|key| [NOT_READY, UNREACHABLE].contains(&key))
        });
        Ok(NodeFacts {
            name: required(self.metadata.name.clone(), "metadata.name")?,
            uid: required(self.metadata.uid.clone(), "metadata.uid")?,
            ready: self.ready(),
            ready_reason: condition.and_then(|condition| condition.reason.clone()),
            ready_since: condition.and_then(|condition| condition.last_transition_time),
            tainted_since: taints.filter_map(|taint| taint.time_added).max(),
            hostname: self.metadata.label(HOSTNAME).map(str::to_owned),
            heartbeats: self.heartbeats(),
            fenced: self.fenced(selectors),
            out_of_service: self.taints(OUT_OF_SERVICE).next().is_some(),
            leaf: self.leaf(selectors),
            control_plane: self.control_plane(),
            opted_out: opts_out([self.metadata.label(SKIP), self.annotation(SKIP)]),
            lease,
        })
    }
}
