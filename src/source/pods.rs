//! The second step of gathering: the NotReady nodes, and the pods to be judged.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use itertools::Itertools as _;

use super::{
    gather::{Gathering, read_each},
    reader::PodLists,
};
use crate::{
    cluster::Api,
    exit::Result,
    facts::{
        Attachments, HANGS, LEASES_OF_FILE, NamespaceFacts, Namespaces, PodFacts, PodsOf, Read,
        Ready, namespace,
    },
    kubernetes::RawAttachment,
};

impl<A: Api> Gathering<'_, A> {
    pub async fn read_pods(&mut self, asked: Option<PodFacts>) -> Result<()> {
        let reader = self.reader;
        let not_ready = self
            .rows
            .iter()
            .filter(|row| !row.is_ready)
            .map(|row| row.name.clone())
            .collect::<BTreeSet<_>>();
        let mut lists = BTreeSet::new();
        if self.of_all {
            lists = self.pod_lists().await?;
        }
        lists.extend(not_ready.iter().cloned().map(PodsOf::Node));
        let is_not_ready =
            |list: &PodsOf| matches!(list, PodsOf::Node(it) if not_ready.contains(it));
        // With the pods of all nodes, those of nodes that no longer exist are looked at too.
        let add_attachment = |by_node: &mut _, attachment: &RawAttachment| {
            let node = attachment.node();
            let is_asked = asked
                .as_ref()
                .is_some_and(|pod| pod.node.as_deref() == Some(node));
            if self.of_all || is_asked || not_ready.contains(node) || attachment.fails() {
                RawAttachment::add_to(by_node, attachment);
            }
        };
        let (namespaces, mut attachments, nodes, lists) = tokio::join!(
            reader.read("namespaces", reader.api.namespaces()),
            reader.all("VolumeAttachments", add_attachment),
            read_each(not_ready.clone(), async |name| reader.node(name).await),
            read_each(lists, async |list| {
                reader.pods(list, is_not_ready(list)).await
            }),
        );
        self.facts.unread_nodes = nodes
            .iter()
            .filter(|(_, node)| node.is_err())
            .map(|(name, _)| name.clone())
            .collect();
        self.facts.nodes = nodes;
        attachments
            .iter_mut()
            .flat_map(BTreeMap::values_mut)
            .for_each(|of_node| of_node.sort());
        self.facts.attachments = Attachments(attachments);
        self.lists = lists
            .into_iter()
            .map(|(list, pods)| Ok((list, pods?)))
            .collect::<Result<PodLists>>()?;
        self.asked = asked.as_ref().map(|pod| pod.uid.clone());
        self.hear_programs();
        self.add_pods(&namespaces, asked);
        self.note_quorums(&BTreeSet::new());
        let others = self.pods.iter().filter_map(|pod| pod.node.clone());
        let tainted = self.rows.iter().filter(|row| row.is_out_of_service);
        let others = others
            .chain(tainted.map(|row| row.name.clone()))
            .unique()
            .filter(|name| !self.facts.nodes.contains_key(name));
        let others = read_each(others.collect_vec(), async |name| reader.node(name).await).await;
        self.facts.nodes.extend(others);
        if self.of_all {
            self.find_strays().await;
        }
        if !reader.settings.all {
            let mut pods = mem::take(&mut self.pods);
            // A source that shows these pods at no cost lists them too; one that hangs for long is named.
            let policy = &reader.settings.policy;
            let hangs = |pod: &PodFacts| self.of_all && self.facts.overdue(pod, policy) >= HANGS;
            pods.retain(|pod| self.is_asked(pod) || !self.facts.on_ready_node(pod) || hangs(pod));
            self.pods = pods;
        }
        self.note_unmatched(&namespaces);
        self.note_missing_leases();
        self.add_not_evicted();
        Ok(())
    }

    /// Adds the heartbeats that pods show to the facts of their NotReady nodes.
    fn hear_programs(&mut self) {
        let now = self.facts.now;
        for (list, pods) in &mut self.lists {
            if let PodsOf::Node(name) = list
                && let Some(Ok(Some(node))) = self.facts.nodes.get_mut(name)
            {
                let started = |namespace: &String| {
                    pods.holders
                        .iter()
                        .any(|it| it.has_started && it.namespace == *namespace)
                };
                let programs = mem::take(&mut pods.programs)
                    .into_iter()
                    .filter(|(namespace, heard)| heard.is_believed(now) && started(namespace));
                node.hear(programs.map(|(_, heard)| heard));
            }
        }
    }

    /// Adds the Terminating pods in matching namespaces, and the active pods of the NotReady nodes. If several pods have
    /// the same UID, the last one is used: the pod `asked` about comes last, because a list may show an older state of it.
    fn add_pods(&mut self, namespaces: &Read<Namespaces>, asked: Option<PodFacts>) {
        let reader = self.reader;
        // If no namespace was saved, none is opted out.
        let in_namespace = |mut pod: Box<PodFacts>| {
            pod.in_namespace = if reader.about.lacks_namespaces {
                Ok(NamespaceFacts::default())
            } else {
                namespace(namespaces, &pod.namespace)
            };
            pod
        };
        self.facts.active = reader
            .within_budget("Active", &reader.active)
            .into_iter()
            .filter_map(|pod| Some((pod.node.clone()?, *in_namespace(pod))))
            .into_group_map()
            .into_iter()
            .collect();
        let mut found = reader
            .within_budget("Terminating", &reader.terminating)
            .into_iter()
            .map(in_namespace)
            .collect_vec();
        found.extend(asked.map(Box::new).map(in_namespace));
        found.retain(|pod| {
            if let Some(cause) = &pod.lacks {
                reader.note(format_args!("pod {}/{}", pod.namespace, pod.name), cause);
            }
            pod.lacks.is_none()
        });
        // In place, because there may be tens of thousands of pods.
        found.reverse();
        found.sort_by_cached_key(|pod| pod.uid.clone());
        found.dedup_by(|earlier, last| earlier.uid == last.uid);
        self.pods = found;
    }

    /// Adds the pods that Kubernetes will evict from the NotReady nodes. Each gets the deletion that Kubernetes will
    /// request, and is no longer among the active ones.
    fn add_not_evicted(&mut self) {
        for (name, active) in &mut self.facts.active {
            let Some(Ok(Some(node))) = self.facts.nodes.get(name) else {
                continue;
            };
            let Some(since) = node.not_ready_since(self.facts.now) else {
                continue;
            };
            let evicted = active.extract_if(.., |pod| {
                // A pod that cannot be judged is reported once it is Terminating.
                let eviction = pod.eviction(node.ready, since, self.facts.now);
                pod.deletion = eviction.filter(|_| pod.lacks.is_none());
                pod.deletion.is_some()
            });
            for pod in evicted {
                self.not_evicted.insert(pod.uid.clone());
                self.pods.push(Box::new(pod));
            }
        }
    }

    /// Notes that a file has no leases, if a verdict depends on them.
    fn note_missing_leases(&mut self) {
        let mut nodes = self
            .pods
            .iter()
            .filter_map(|pod| self.facts.known_node(pod));
        if self.reader.about.lacks_leases && nodes.any(|node| node.ready != Ready::True) {
            self.reader.note(
                LEASES_OF_FILE,
                "the file has none, so it cannot show that a node is alive",
            );
            let why = "The file has no leases, so it cannot show that a NotReady node is alive. Pods that are to be reaped may \
                       be running.";
            self.facts.incomplete = Some(why.to_owned());
        }
    }
}
