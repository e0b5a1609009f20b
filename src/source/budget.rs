//! How many pods of one namespace a run keeps, so that one namespace cannot use up the memory of the others.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::facts::{PodFacts, Uid};

/// The most Terminating pods, and the most active ones, that are kept of one namespace.
pub const MAX_PODS_OF_NAMESPACE: usize = 2_000;

/// The pods that are kept, by namespace. Each is boxed, since lists of tens of thousands are moved and divided.
#[derive(Default)]
pub struct Budget(BTreeMap<String, OfNamespace>);

#[derive(Default)]
struct OfNamespace {
    /// The longest overdue first, as far as the pods themselves show it. Several pods may lack a UID.
    kept: BTreeMap<(Timestamp, Uid, String), Box<PodFacts>>,
    /// The number of pods that were not kept.
    over: usize,
}

impl Budget {
    /// Keeps a pod, unless its namespace has enough pods that are longer overdue. If the pod is there
    /// already, the new state replaces the old one.
    pub fn add(&mut self, pod: Box<PodFacts>) {
        let of_namespace = self.0.entry(pod.namespace.clone()).or_default();
        let key = (pod.deletion_deadline(), pod.uid.clone(), pod.name.clone());
        of_namespace.kept.insert(key, pod);
        if of_namespace.kept.len() > MAX_PODS_OF_NAMESPACE {
            of_namespace.kept.pop_last();
            of_namespace.over += 1;
        }
    }

    /// Adds the pods of another list.
    pub fn extend(&mut self, other: Self) {
        for (namespace, OfNamespace { kept, over }) in other.0 {
            self.0.entry(namespace).or_default().over += over;
            for pod in kept.into_values() {
                self.add(pod);
            }
        }
    }

    /// Returns the pods, and of each namespace that has more how many more.
    pub fn into_pods(self) -> (Vec<Box<PodFacts>>, Vec<(String, usize)>) {
        let (mut pods, mut over) = (Vec::new(), Vec::new());
        for (namespace, of_namespace) in self.0 {
            pods.extend(of_namespace.kept.into_values());
            over.extend((of_namespace.over > 0).then_some((namespace, of_namespace.over)));
        }
        (pods, over)
    }
}
