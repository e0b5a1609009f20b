//! Gathering, the first step of a run: collects the facts about the cluster, and the Terminating pods
//! to be judged. A run and `explain` both gather here, from a cluster or from a snapshot.

mod budget;
mod clock;
mod gather;
mod history;
mod life;
mod pods;
mod reader;
pub mod snapshot;
mod storage;
mod strays;

use tokio::time::Instant;

pub use self::{gather::gather, history::recall, reader::Reader, strays::waits_for};
use crate::{
    facts::{ClusterFacts, PodFacts, Storage},
    kubernetes::Holders,
};

/// The reading of the Leases that are not kubelets' own.
#[derive(Debug, Clone)]
pub struct OtherLeases {
    /// The possible holders.
    pub holders: Holders,
    /// The moment before the reading began.
    pub at: Instant,
}

/// The result of gathering. No fact that a verdict needs is filled in later.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// The facts about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, each with its storage if gathering came to it.
    /// They are kept apart from the facts because the plan takes them over: there may
    /// be tens of thousands of pods, so they must not be copied.
    pub pods: Vec<(Box<PodFacts>, Option<Storage>)>,
    /// The pods on NotReady nodes that Kubernetes will evict, as if it had requested their deletion.
    pub not_evicted: Vec<(Box<PodFacts>, Option<Storage>)>,
    /// The reading of the other Leases; `None` if there was none, or if this account may not list Leases.
    pub leases: Option<OtherLeases>,
}
