//! Nodes, and the marks by which one stands for something other than a machine of this cluster.

use std::{cmp::Reverse, collections::BTreeSet};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    lease::RawLease,
    marks::{KOSMOS_OWNER, KOSMOS_PREFIX, MARKS, looks_like},
    meta::{Condition, Meta, given, required},
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
const PROBLEMS: &str = "KernelDeadlock ReadonlyFilesystem KubeletUnhealthy ContainerRuntimeUnhealthy \
    FrequentKubeletRestart FrequentContainerdRestart FrequentDockerRestart FrequentUnregisterNetDevice CorruptDockerOverlay2";
/// Conditions that the node monitoring agent of EKS writes, likewise (aws/eks-node-monitoring-agent).
const MONITORED: &str =
    "KernelReady NetworkingReady StorageReady ContainerRuntimeReady AcceleratedHardwareReady";
/// Both write every 5 min.
const CONDITION_PERIOD: SignedDuration = SignedDuration::from_mins(11);
/// virt-handler writes every 1 to 2 min.
const VIRT_PERIOD: SignedDuration = SignedDuration::from_mins(5);
/// virt-handler's heartbeat.
const VIRT_HEARTBEAT: &str = "kubevirt.io/heartbeat";
/// The taints of a node, as an entry of `managedFields` says that it owns them: all or none.
const TAINTS_FIELD: &str = "/f:spec/f:taints";
/// kube-fencing's word that its fencing Job succeeded; its other states prove nothing.
const FENCED: &str = "annotation:fencing/state=fenced";
/// The cloud says that the machine is stopped. That is sure on AWS EC2 and `OpenStack` alone.
const SHUTDOWN: &str = "taint:node.cloudprovider.kubernetes.io/shutdown";
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

    /// Drops the messages of conditions, which no rule reads. With `stamps`, it drops `managedFields` of a Ready node too: only those of
    /// a NotReady node are read.
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
        traits.nodes.add(standing.ready);
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
            traits.by_trait.entry(each).or_default().add(standing.ready);
        }
    }

    /// Whether it carries the control-plane role.
    fn control_plane(&self) -> bool {
        CONTROL_PLANE
            .iter()
            .any(|key| self.metadata.labels.contains_key(*key))
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
        let found = MARKS
            .iter()
            .filter_map(|&(kind, maker, mark)| Some((kind, maker, self.mark(mark)?)));
        let info = &self.status.node_info;
        let no_machine = info.machine_id.is_empty() && info.system_uuid.is_empty();
        let named = no_machine && self.metadata.name.starts_with(KOSMOS_PREFIX);
        let named = named.then(|| {
            let mark = format!("name prefix {KOSMOS_PREFIX}");
            (LeafKind::Kosmos, "Kosmos", mark)
        });
        let selected = selectors.leaf.iter().filter(|it| self.is_selected(it));
        let selected = selected.map(|it| (LeafKind::Selected, "", it.to_string()));
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

    fn taints<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Taint> {
        self.spec
            .taints
            .iter()
            .filter(move |taint| taint.key == key)
    }

    /// What its machine has written on the node itself.
    fn heartbeats(&self, now: Timestamp) -> impl Iterator<Item = Heard> {
        let conditions = self.status.conditions.iter().filter_map(|condition| {
            let kind = condition.kind.as_str();
            let is_one = |kinds: &str| kinds.split(' ').any(|known| known == kind);
            let by = if is_one(PROBLEMS) {
                SignBy::ProblemDetector
            } else if is_one(MONITORED) {
                SignBy::NodeMonitoring
            } else {
                return None;
            };
            let field =
                format!(r#"/f:status/f:conditions/k:{{"type":"{kind}"}}/f:lastHeartbeatTime"#);
            Some((by, CONDITION_PERIOD, field, condition.last_heartbeat_time?))
        });
        let virt_handler = self.metadata.annotations.get(VIRT_HEARTBEAT);
        let virt_handler = virt_handler.and_then(|said| {
            let field = owned_field("annotations", VIRT_HEARTBEAT);
            Some((SignBy::VirtHandler, VIRT_PERIOD, field, said.parse().ok()?))
        });
        let all = conditions.chain(virt_handler);
        all.filter_map(move |(by, period, field, said)| {
            let at = self.metadata.heard(&field, Some(said), now)?;
            Some(Heard { by, at, period })
        })
    }

    /// The marks that say that its power or disks are cut.
    fn fenced(&self, selectors: &NodeSelectors) -> Vec<FencingMark> {
        let provider = &self.spec.provider_id;
        let sure = SURE_CLOUDS.iter().any(|cloud| provider.starts_with(cloud))
            && !self.metadata.name.starts_with(FARGATE_PREFIX);
        let known = [Some(FENCED), sure.then_some(SHUTDOWN)];
        let known = known.into_iter().flatten().filter_map(|it| it.parse().ok());
        known
            .chain(selectors.fenced.iter().cloned())
            .filter(|it| self.is_selected(it))
            .map(|selector| FencingMark {
                mark: selector.to_string(),
                set_by: self.set_by(&selector),
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

    /// The mark as a phrase, with what the node has there, where it has it.
    fn mark(&self, mark: &str) -> Option<String> {
        let (place, looks) = mark.rsplit_once(' ')?;
        let (key, wanted) = looks.split_once('=').unwrap_or((looks, ""));
        let is =
            |value: &&String| wanted.is_empty() || !value.is_empty() && looks_like(value, wanted);
        let annotations = &self.metadata.annotations;
        let said = match place {
            "label" => {
                return self
                    .metadata
                    .labels
                    .get(key)
                    .filter(is)
                    .map(|_| mark.to_owned());
            }
            "taint" => return self.taints(key).next().map(|_| mark.to_owned()),
            "annotation" if key.ends_with('…') => {
                let key = annotations.keys().find(|it| looks_like(it, key))?;
                return Some(format!("annotation {key}"));
            }
            "annotation" => {
                let value = annotations.get(key).filter(is)?;
                return Some(format!("annotation {key}={value}"));
            }
            "providerID" => &self.spec.provider_id,
            _ => &self.status.node_info.kubelet_version,
        };
        looks_like(said, looks).then(|| format!("{place} {said}"))
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

    /// As facts, known at `now`, with its own lease, where it has one, and those of the API servers, none where they may not be
    /// listed. An error names what is missing.
    pub fn into_facts(
        self,
        now: Timestamp,
        own: &Read<Option<RawLease>>,
        api_servers: &Read<Vec<RawLease>>,
        selectors: &NodeSelectors,
    ) -> Result<NodeFacts, String> {
        let name = required(&self.metadata.name, "metadata.name")?;
        let hostname = self.metadata.labels.get(HOSTNAME).cloned();
        let hosts = [name.as_str(), hostname.as_deref().unwrap_or(&name)];
        let unread_leases = own.as_ref().err().or(api_servers.as_ref().err()).cloned();
        let may_have_server = self.may_have_api_server();
        let servers = api_servers.iter().flatten().filter(|_| may_have_server);
        let servers = servers.filter_map(|lease| lease.of_api_server(hosts, now));
        let kubelet = own
            .iter()
            .flatten()
            .filter_map(|lease| lease.of_kubelet(now));
        let mut heard = kubelet
            .chain(self.heartbeats(now))
            .chain(servers)
            .collect_vec();
        // The last of each.
        heard.sort_by_key(|it| (it.by, Reverse(it.at)));
        heard.dedup_by_key(|it| it.by);
        let no_server = heard.iter().all(|it| it.by != SignBy::ApiServer);
        let (ready_since, tainted_since) = self.transitions();
        let ready_condition = self.ready_condition();
        Ok(NodeFacts {
            uid: required(&self.metadata.uid, "metadata.uid")?,
            created: self.metadata.creation_timestamp,
            powered_off: self.metadata.annotation(POWERED_OFF),
            ready: self.ready(),
            ready_reason: ready_condition.and_then(|it| given(it.reason.clone())),
            ready_since,
            tainted_since,
            hostname,
            heard,
            unread_leases,
            no_api_server: may_have_server && no_server && api_servers.is_ok(),
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

/// An annotation or a label, as an entry of `managedFields` says that it owns it.
fn owned_field(of: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("/f:metadata/f:{of}/f:{key}")
}
