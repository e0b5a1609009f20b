//! A list of pods, and what it tells.

use std::collections::BTreeSet;

use super::Wanted;
use crate::{
    facts::{Heard, PodFacts, PodSummary, Stay, Unread},
    kubernetes::{HolderPod, Meta, RawPod},
};

/// The facts about a pod, or its name and what it lacks.
pub type Facts = Result<PodFacts, (String, String)>;

/// The pods of one list.
#[derive(Default)]
pub struct Pods {
    /// The pods in matching namespaces that are Terminating, or are supposed to be.
    pub judged: Vec<Facts>,
    /// A summary of each active pod. It tells why Kubernetes has not evicted the pod.
    pub active: Vec<PodSummary>,
    /// Every pod, as a holder of Leases.
    pub holders: BTreeSet<HolderPod>,
    /// The last words of programs in Terminating pods.
    pub heard: Vec<Heard>,
    /// Every pod as it is now, if its node is supposed dead.
    pub all: Vec<PodSummary>,
    /// Whether there is, or may be, a pod that no `DaemonSet` made and that mirrors no static pod. A
    /// pod that could not be read may be any pod.
    pub occupied: bool,
    /// Why the list could not be read, if so.
    pub unread: Option<Unread>,
}

impl Pods {
    pub fn add(&mut self, pod: &RawPod, wanted: &Wanted<'_>, dead: bool) {
        let summary = pod.summary();
        self.holders.insert(pod.as_holder());
        self.occupied |= !matches!(summary.stays, Some(Stay::DaemonSet | Stay::Static));
        let namespace = &summary.namespace;
        let matches = namespace.is_empty() || wanted.namespaces.matches(namespace);
        if dead {
            self.all.push(PodSummary {
                needs: pod.needs(),
                ..summary.clone()
            });
        }
        let mut judge = |facts| self.judged.extend(matches.then(|| named(pod, facts)));
        if dead && summary.evicted() {
            judge(pod.supposed_facts());
        } else if summary.terminating {
            judge(pod.facts());
            self.heard.extend(pod.heard());
        } else if summary.is_active() {
            self.active.push(summary);
        }
    }
}

/// Adds the name of `pod` to what it lacks.
pub fn named(pod: &RawPod, facts: Result<PodFacts, String>) -> Facts {
    let Meta {
        namespace, name, ..
    } = &pod.metadata;
    facts.map_err(|cause| (format!("pod {namespace}/{name}"), cause))
}
