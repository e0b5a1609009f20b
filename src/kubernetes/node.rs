//! Nodes, and the marks by which one stands for something other than a machine of this cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{
    marks::{KOSMOS_OWNER, KOSMOS_PREFIX, MARKS, NOT_EMPTY, Place},
    meta::{Meta, SKIP, opts_out, required},
};
use crate::{
    facts::{Leaf, LeafKind, Lease, NodeFacts, Read, Ready, Standing},
    selector::{Selector, is_name},
};

/// What the node controller gives a node whose `Ready` is `False`, and `Unknown`.
const NOT_READY: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const HOSTNAME: &str = "kubernetes.io/hostname";
/// The role's label since Kubernetes 1.20, and before.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// A node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawNode {
    /// Its metadata.
    pub metadata: Meta<BTreeMap<String, String>>,
    spec: NodeSpec,
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    conditions: Option<Vec<Condition>>,
    node_info: Option<NodeInfo>,
}

#[derive(Debug, Deserialize)]
struct NodeInfo {
    #[serde(rename = "kubeletVersion")]
    kubelet_version: Option<String>,
    #[serde(rename = "machineID")]
    machine_id: Option<String>,
    #[serde(rename = "systemUUID")]
    system_uuid: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    taints: Option<Vec<Taint>>,
}

#[derive(Debug, Deserialize)]
struct Taint {
    key: Option<String>,
    effect: Option<String>,
    #[serde(rename = "timeAdded")]
    time_added: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conditions {
    pub(super) conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) last_transition_time: Option<Timestamp>,
    pub(super) last_heartbeat_time: Option<Timestamp>,
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

    /// Its standing among the nodes, for a count.
    pub fn standing(&self, selector: Option<&Selector>) -> Standing {
        Standing {
            ready: self.ready() == Ready::True,
            leaf: self.leaf(selector).is_some(),
            control_plane: self.control_plane(),
        }
    }

    /// Whether it carries the control-plane role.
    pub fn control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|key| self.metadata.label(key).is_some())
    }

    /// Whether it stands for something that this cluster does not see, or works on without it: by any one mark, or the
    /// operator's selector.
    pub fn leaf(&self, selector: Option<&Selector>) -> Option<Leaf> {
        let mut found =
            MARKS.iter().filter_map(|(kind, maker, place)| Some((*kind, *maker, self.mark(place)?)));
        let (mut first, mut marks) = (None, Vec::new());
        for (kind, maker, mark) in found.by_ref() {
            first.get_or_insert((kind, maker));
            marks.push(mark);
        }
        let named = self.metadata.name.as_deref().is_some_and(|name| name.starts_with(KOSMOS_PREFIX));
        if named && self.is_of_no_machine() {
            first.get_or_insert((LeafKind::Kosmos, "Kosmos"));
            marks.push(format!("name prefix {KOSMOS_PREFIX}"));
        }
        let none = BTreeMap::new();
        if let Some(selector) = selector
            && selector.matches(self.metadata.labels.as_ref().unwrap_or(&none))
        {
            first.get_or_insert((LeafKind::Selected, ""));
            marks.push(format!("label selector {selector}"));
        }
        let (kind, maker) = first?;
        // It becomes part of commands to paste: only what can be the name of an object may.
        let cluster = self.annotation(KOSMOS_OWNER).filter(|cluster| is_name(cluster));
        Some(Leaf { kind, maker, marks, cluster: cluster.map(str::to_owned) })
    }

    /// The mark at that place, as a phrase, where it is there.
    fn mark(&self, place: &Place) -> Option<String> {
        let is = |value: Option<&str>, wanted: Option<&str>| {
            value.is_some_and(|value| wanted.is_none_or(|wanted| value == wanted))
        };
        match place {
            Place::Label(key, wanted) => is(self.metadata.label(key), *wanted).then(|| match wanted {
                Some(value) => format!("label {key}={value}"),
                None => format!("label {key}"),
            }),
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
            Place::Taint(wanted) => {
                let mut taints = self.spec.taints.iter().flatten();
                taints.any(|taint| taint.key.as_deref() == Some(wanted)).then(|| format!("taint {wanted}"))
            }
            Place::Version(is_one) => {
                let version = self.status.node_info.as_ref()?.kubelet_version.as_deref()?;
                is_one(version).then(|| format!("kubelet version {version}"))
            }
        }
    }

    /// Whether it names no machine, or says nothing about one.
    fn is_of_no_machine(&self) -> bool {
        let named = |id: &Option<String>| id.as_ref().is_some_and(|id| !id.is_empty());
        !self
            .status
            .node_info
            .as_ref()
            .is_some_and(|info| named(&info.machine_id) || named(&info.system_uuid))
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// As facts. An error names what is missing.
    pub fn into_facts(
        self,
        lease: Read<Option<Lease>>,
        selector: Option<&Selector>,
    ) -> Result<NodeFacts, String> {
        let ready = self.ready();
        let leaf = self.leaf(selector);
        let control_plane = self.control_plane();
        let hostname = self.metadata.label(HOSTNAME).map(str::to_owned);
        let opted_out = opts_out(self.metadata.label(SKIP)) || opts_out(self.annotation(SKIP));
        let (ready_reason, ready_since) = self
            .ready_condition()
            .map_or((None, None), |condition| (condition.reason.clone(), condition.last_transition_time));
        // The NoExecute taints of the same keys are renewed when the controller manager restarts.
        let taints = self.spec.taints.iter().flatten().filter(|taint| {
            taint.effect.as_deref() == Some("NoSchedule")
                && taint.key.as_deref().is_some_and(|key| NOT_READY.contains(&key))
        });
        let tainted_since = taints.filter_map(|taint| taint.time_added).max();
        Ok(NodeFacts {
            name: required(self.metadata.name, "metadata.name")?,
            uid: required(self.metadata.uid, "metadata.uid")?,
            ready,
            ready_reason,
            ready_since,
            tainted_since,
            hostname,
            leaf,
            control_plane,
            opted_out,
            lease,
        })
    }
}
