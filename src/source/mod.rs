//! Gathering, steps 1 to 3 of a run: what is known about the cluster, and the Terminating pods to be judged, from either
//! source. A run, `what-if` and `explain` all gather here.

pub mod live;
pub mod snapshot;
mod stream;

use std::collections::BTreeMap;

use crate::{
    decide::Policy,
    facts::{ClusterFacts, PodFacts, PodSummary, Standing},
    selector::NamespaceFilter,
};

/// What is to be gathered.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The rules' choices: claims are looked up only of pods that the rules before the volume rules let through.
    pub policy: &'a Policy,
    /// Which namespaces.
    pub namespaces: &'a NamespaceFilter,
    /// Terminating pods of Ready nodes too.
    pub all: bool,
}

/// What was gathered.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// What is known about the cluster.
    pub facts: ClusterFacts,
    /// The Terminating pods in matching namespaces, their claims looked up where a rule asks for them. Apart from the
    /// facts, because they go over into the plan: of tens of thousands there must be no second copy.
    pub pods: Vec<PodFacts>,
}

/// What was gathered of some nodes, with all of their pods.
#[derive(Debug)]
pub struct Whole {
    /// Their Terminating pods, and those that Kubernetes would evict from a dead node.
    pub gathered: Gathered,
    /// What every node of the cluster counts as; empty where that could not be read.
    pub standings: BTreeMap<String, Standing>,
    /// The pods of the namespaces that matter, on whichever node.
    pub summaries: Vec<PodSummary>,
}

#[cfg(test)]
mod tests;
