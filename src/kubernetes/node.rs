//! Nodes, and the marks by which one stands for something other than a machine of this cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::meta::{Meta, required};
use crate::{
    facts::{Leaf, Lease, NodeFacts, Read, Ready, Standing},
    selector::{Selector, is_name},
};

const HOSTNAME: &str = "kubernetes.io/hostname";
/// The role's label since Kubernetes 1.20, and before.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// Kosmos spells its marks in two ways (kosmos-io/kosmos); label and taint share one key.
const KOSMOS_NODE: &str = "kosmos.io/node";
const KOSMOS_OWNER: &str = "kosmos-io/owned-by-cluster";
/// Names of Kosmos's leaf nodes begin so, in its default mode.
pub const KOSMOS_PREFIX: &str = "kosmos-";

/// A node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawNode {
    /// Its metadata.
    pub metadata: Meta,
    spec: NodeSpec,
    status: Conditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    taints: Option<Vec<Taint>>,
}

#[derive(Debug, Deserialize)]
struct Taint {
    key: Option<String>,
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

    /// Whether it stands for something other than one machine: any one of Kosmos's marks, or the operator's selector.
    pub fn leaf(&self, selector: Option<&Selector>) -> Option<Leaf> {
        let cluster = self.metadata.annotation(|known| &known.kosmos_owner);
        let tainted =
            || self.spec.taints.iter().flatten().any(|taint| taint.key.as_deref() == Some(KOSMOS_NODE));
        let mut marks = Vec::new();
        if self.metadata.label(KOSMOS_NODE).is_some() {
            marks.push(format!("label {KOSMOS_NODE}"));
        }
        if let Some(cluster) = cluster {
            marks.push(format!("annotation {KOSMOS_OWNER}={cluster}"));
        }
        if tainted() {
            marks.push(format!("taint {KOSMOS_NODE}"));
        }
        if self.metadata.name.as_deref().is_some_and(|name| name.starts_with(KOSMOS_PREFIX)) {
            marks.push(format!("name prefix {KOSMOS_PREFIX}"));
        }
        let kosmos = !marks.is_empty();
        let none = BTreeMap::new();
        if let Some(selector) = selector
            && selector.matches(self.metadata.labels.as_ref().unwrap_or(&none))
        {
            marks.push(format!("label selector {selector}"));
        }
        (!marks.is_empty()).then(|| Leaf {
            kosmos,
            marks,
            // It becomes part of commands to paste: only what can be the name of an object may.
            cluster: cluster.filter(|cluster| is_name(cluster)).map(str::to_owned),
        })
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
        let opted_out = self.metadata.opted_out();
        let (ready_reason, ready_since) = self
            .ready_condition()
            .map_or((None, None), |condition| (condition.reason.clone(), condition.last_transition_time));
        Ok(NodeFacts {
            name: required(self.metadata.name, "metadata.name")?,
            uid: required(self.metadata.uid, "metadata.uid")?,
            ready,
            ready_reason,
            ready_since,
            hostname,
            leaf,
            control_plane,
            opted_out,
            lease,
        })
    }
}
