//! The rows that `kubectl get` prints: 0.3 MB for nodes whose objects are 18 MB, 12.6 MB for pods whose objects are
//! 1,181 MB.
//!
//! A node whose row is not plainly `Ready` is read whole later, and the pods of a node are listed if a row has a status
//! that is not known. So a misunderstood row costs time, never safety.

use super::{KOSMOS_PREFIX, Kind, RawNode, RawPod, roles_named};
use crate::facts::{PodsOf, Ready, Roles};

/// The values of the Status column of pods that are not Terminating, and have started. A Terminating pod shows
/// `Terminating`, or `Unknown` if Kubernetes considers its node lost. Only a Terminating pod in a
/// final phase shows the same value as without its deletion, one of these or any other.
const LIVING_STATUSES: &str = "Running Completed Succeeded Failed Error OOMKilled Evicted ContainerStatusUnknown \
    CrashLoopBackOff ImagePullBackOff ErrImagePull CreateContainerConfigError CreateContainerError SchedulingGated NotReady";

/// The facts that the row of an object shows.
pub trait Row: Sized {
    type Object: Kind;
    /// The titles of the columns that are read.
    const COLUMNS: &'static [&'static str];

    fn of_cells(cells: &[&str]) -> Self;

    fn of_object(object: &Self::Object) -> Self;
}

#[derive(Debug, Clone)]
pub struct NodeRow {
    pub name: String,
    /// Whether the node is plainly Ready.
    pub is_ready: bool,
    /// Whether pods can start on it, to judge by its row.
    pub is_open: bool,
    /// Whether it has the out-of-service taint. kubectl's columns do not show it.
    pub is_out_of_service: bool,
    /// The node's roles, as far as kubectl's column shows them.
    pub roles: Roles,
}

impl Row for NodeRow {
    type Object = RawNode;
    const COLUMNS: &'static [&'static str] = &["Name", "Status", "Roles"];

    fn of_cells(cells: &[&str]) -> Self {
        let [name, status, roles] = [0, 1, 2].map(|at| cells[at]);
        let mut words = status.split(',');
        let is_ready =
            words.next() == Some("Ready") && words.all(|word| word == "SchedulingDisabled");
        let roles = roles_named(roles.split(','));
        Self {
            name: name.to_owned(),
            is_ready,
            is_open: status == "Ready"
                && !name.starts_with(KOSMOS_PREFIX)
                && roles == Roles::default(),
            is_out_of_service: false,
            roles,
        }
    }

    fn of_object(node: &RawNode) -> Self {
        Self {
            name: node.metadata.name.clone(),
            is_ready: node.ready() == Ready::True,
            is_open: false,
            is_out_of_service: node.is_out_of_service(),
            roles: node.roles(),
        }
    }
}

/// The list that has a pod, if the pod may be Terminating, or may wait for a volume.
#[derive(Debug)]
pub struct PodRow(pub Option<PodsOf>);

impl Row for PodRow {
    type Object = RawPod;
    const COLUMNS: &'static [&'static str] = &["Status", "Node"];

    fn of_cells(cells: &[&str]) -> Self {
        let [status, node] = [0, 1].map(|at| cells[at]);
        let lives = LIVING_STATUSES.split(' ').any(|living| living == status);
        Self(match node {
            _ if lives => None,
            "<none>" => Some(PodsOf::NoNode),
            _ => Some(PodsOf::Node(node.to_owned())),
        })
    }

    fn of_object(pod: &RawPod) -> Self {
        let list = pod.facts.node.clone().map_or(PodsOf::NoNode, PodsOf::Node);
        Self(Some(list).filter(|_| pod.facts.deletion.is_some() || pod.may_wait()))
    }
}
