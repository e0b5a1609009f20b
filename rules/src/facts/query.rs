//! The queries: everything that the rules, the limits and the advice may need from a source.

use derive_more::Display;

use super::{Owner, PodFacts};

/// The name of facts that a source can read. A rule that lacks a fact returns the query for it, so
/// a source reads only what some rule needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum Query {
    /// All namespaces.
    #[display("namespaces")]
    Namespaces,
    /// All `VolumeAttachments`.
    #[display("VolumeAttachments")]
    Attachments,
    /// A node with its own lease.
    #[display("node {_0}")]
    Node(String),
    /// A list of pods.
    Pods(PodsOf),
    /// Some Ready nodes, with their leases. They show whether the API server's clock is right, and
    /// whether pods can start on one of these nodes.
    #[display("the time, to judge by")]
    Clock,
    /// All nodes, to count the NotReady ones.
    #[display("all nodes, for the breaker")]
    NodeCounts,
    /// The Leases, other than the nodes' own, that name a NotReady node or a pod on it.
    #[display("Leases")]
    OtherLeases,
    /// A PVC with its volume.
    #[display("PVC {namespace}/{name}")]
    Pvc {
        /// The PVC's namespace.
        namespace: String,
        /// The PVC's name.
        name: String,
    },
    /// The real nodes that a label selector selects.
    #[display("nodes that a volume allows ({_0})")]
    NodesFor(String),
    /// All CSI drivers.
    #[display("CSIDrivers")]
    Drivers,
    /// A `StatefulSet`.
    #[display("StatefulSet {namespace}/{name}")]
    Set {
        /// The namespace of the `StatefulSet`.
        namespace: String,
        /// The name of the `StatefulSet`.
        name: String,
    },
}

/// A list of pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum PodsOf {
    /// The pods of a node.
    #[display("pods of node {_0}")]
    Node(String),
    /// The pods that have no node yet.
    #[display("pods without a node")]
    NoNode,
    /// The pods that have finished, on any node.
    #[display("finished pods")]
    Finished,
    /// The pods of a namespace.
    #[display("pods of {_0}")]
    Namespace(String),
    /// The pods with one name, in any namespace.
    #[display("pods named {_0}")]
    Name(String),
}

impl Query {
    /// The stage of PVCs.
    pub const PVCS: usize = 2;

    /// Returns the stage of the query in the order of reading. While a query of an earlier stage is
    /// open, no query of a later stage is read. A `StatefulSet` determines whether a PVC may be
    /// deleted with its pod, so it is never read before the PVC.
    pub fn stage(&self) -> usize {
        match self {
            Self::Namespaces
            | Self::Attachments
            | Self::Node(_)
            | Self::Pods(_)
            | Self::Clock
            | Self::NodeCounts => 0,
            Self::OtherLeases => 1,
            Self::Pvc { .. } => Self::PVCS,
            Self::NodesFor(_) | Self::Drivers | Self::Set { .. } => 3,
        }
    }

    /// Returns the query for a PVC of `pod`.
    pub fn pvc(pod: &PodFacts, name: &str) -> Self {
        Self::Pvc {
            namespace: pod.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// Returns the query for the `StatefulSet` that controls `pod`; `None` if none does.
    pub fn set(pod: &PodFacts) -> Option<Self> {
        let Owner { name, .. } = pod.owner.as_ref().filter(|_| pod.of_stateful_set())?;
        Some(Self::Set {
            namespace: pod.namespace.clone(),
            name: name.clone(),
        })
    }
}
