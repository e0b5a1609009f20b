//! A list of pods, and the facts that it gives.

use std::collections::BTreeSet;

use crate::{
    facts::{PodFacts, StayReason, Unread},
    kubernetes::{HolderPod, RawPod},
};

/// The pods of one list.
#[derive(Default)]
pub struct Pods {
    /// All pods of a suspect node. Of any other list, the Terminating pods.
    pub kept: Vec<PodFacts>,
    /// Every pod of the list, as a holder of Leases.
    pub holders: BTreeSet<HolderPod>,
    /// Whether there is, or may be, a pod that no `DaemonSet` created and that mirrors no static
    /// pod. A pod that could not be read may be any pod.
    pub occupied: bool,
    /// Why the list could not be read, if so.
    pub unread: Option<Unread>,
}

impl Pods {
    /// Adds a pod. The list keeps every pod of a `suspect` node, which is NotReady or supposed
    /// `dead`: Kubernetes has not evicted an active pod there.
    pub fn add(&mut self, raw: &RawPod, suspect: bool, dead: bool) {
        let mut pod = raw.facts();
        if dead {
            pod.needs = raw.needs();
        }
        self.holders.insert(raw.as_holder());
        self.occupied |= !matches!(pod.stays, Some(StayReason::DaemonSet | StayReason::Static));
        if suspect || pod.deletion.is_some() {
            self.kept.push(pod);
        }
    }
}
