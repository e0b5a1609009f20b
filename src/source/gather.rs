//! The four steps of gathering. Each reads only what the rules still need. Between the steps the
//! same rules judge with what was read: after step 2 the first table of `judge/rules.rs`, after step
//! 3 the second one too. A pod that a rule keeps, now and in what is foreseen, is read no further.
//!
//! Each step has a module of its own: [`super::pods`], [`super::life`] and [`super::storage`]; the first one is here.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};

use super::{Gathered, OtherLeases, Reader, reader::PodLists};
use crate::{
    cluster::{Api, MAX_IN_FLIGHT},
    exit::{CouldNotRun, Result},
    facts::{
        ClusterFacts, Namespaces, NodeCounts, NodeFacts, PodFacts, PodsOf, Read, Ready, Storage,
        Uid,
    },
    judge::PodContext,
    kubernetes::{NodeRow, PodRow},
};

/// What was gathered so far.
pub(super) struct Gathering<'a, A> {
    pub reader: &'a Reader<'a, A>,
    pub facts: ClusterFacts,
    pub rows: Vec<NodeRow>,
    /// Whether the pods of Ready nodes are looked at too. A file shows them at no cost.
    pub of_all: bool,
    /// The lists that were read.
    pub lists: PodLists,
    /// The Terminating pod that `explain` asks about.
    pub asked: Option<Uid>,
    /// The pods that are judged.
    pub pods: Vec<Box<PodFacts>>,
    /// Those of them that Kubernetes will evict.
    pub not_evicted: BTreeSet<Uid>,
}

/// Gathers the facts that the rules and the limits need. `asked` is a Terminating pod that
/// `explain` takes through all steps, whatever its node and namespace.
pub async fn gather(reader: &Reader<'_, impl Api>, asked: Option<PodFacts>) -> Result<Gathered> {
    // 1. The nodes, as rows. If all of them are Ready, a run reads nothing else about pods.
    let mut run = Gathering::of_nodes(reader).await?;
    if run.rows.iter().all(|row| row.is_ready) && !run.of_all && asked.is_none() {
        if !reader.settings.namespaces.selects_all() {
            let namespaces = reader.read("namespaces", reader.api.namespaces()).await;
            run.note_unmatched(&namespaces);
        }
        return Ok(run.gathered(Vec::new(), None));
    }

    // 2. The NotReady nodes in full with their own leases and their pods, the namespaces, and the
    //    VolumeAttachments; then the nodes of other pods that may be judged.
    run.read_pods(asked).await?;

    // 3. Signs of life, the clock and the breaker's count, if anything may be reaped, now or in what is foreseen.
    let mut pods = run.pods.iter();
    if !pods.any(|pod| run.is_asked(pod) || run.judged(pod).needs_life()) {
        run.read_sets(&mut []).await;
        return Ok(run.gathered(Vec::new(), None));
    }
    let leases = run.read_life().await;

    // 4. The storage of the pods that nothing keeps so far: all PVCs with their volumes first; then,
    //    from what they say, the nodes that a volume allows, the CSI drivers and the StatefulSets.
    //    So a StatefulSet is read after the PVC that it lets go.
    let due = run.read_storage().await;
    Ok(run.gathered(due, leases))
}

impl<'a, A: Api> Gathering<'a, A> {
    async fn of_nodes(reader: &'a Reader<'a, A>) -> Result<Self> {
        let Reader {
            api,
            settings,
            about,
            ..
        } = reader;
        let (now, rows) = api
            .rows(Vec::<NodeRow>::push)
            .await
            .map_err(|failure| api.could_not("list nodes", &failure))?;
        let now = now.ok_or_else(|| {
            let why = "the API server's response has no Date header, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        Ok(Self {
            reader,
            facts: ClusterFacts {
                now,
                cluster_name: about.cluster_name.clone(),
                node_count: rows.len(),
                node_counts: NodeCounts::NotNeeded,
                unseen: about.unseen.clone(),
                may_lack_pods: about.may_lack_pods,

                ..ClusterFacts::default()
            },
            rows,
            of_all: settings.all || about.is_file,
            lists: PodLists::new(),
            asked: None,
            pods: Vec::new(),
            not_evicted: BTreeSet::new(),
        })
    }

    /// Finds the lists that may hold a Terminating pod of a Ready node, or one that waits for a volume.
    pub async fn pod_lists(&mut self) -> Result<BTreeSet<PodsOf>> {
        let api = self.reader.api;
        let add_list = |lists: &mut BTreeSet<_>, PodRow(list)| lists.extend(list);
        let (_, mut lists) = api
            .rows(add_list)
            .await
            .map_err(|failure| api.could_not("list pods", &failure))?;
        // The row of a finished pod does not show whether the pod is Terminating.
        lists.insert(PodsOf::Finished);
        Ok(lists)
    }

    /// Counts the namespaces, if the filter matches no namespace and no pod. Pods are checked
    /// too, because a file may lack namespaces.
    pub fn note_unmatched(&mut self, namespaces: &Read<Namespaces>) {
        let filter = &self.reader.settings.namespaces;
        self.facts.unmatched_namespaces = namespaces
            .as_ref()
            .ok()
            .filter(|known| !known.keys().any(|name| filter.matches(name)))
            .filter(|known| !known.is_empty() && self.pods.is_empty())
            .map(Namespaces::len);
    }

    pub fn is_asked(&self, pod: &PodFacts) -> bool {
        self.asked.as_ref() == Some(&pod.uid)
    }

    /// Judges a pod by what was read so far.
    pub fn judged<'b>(&'b self, pod: &'b PodFacts) -> PodContext<'b> {
        PodContext::of(&self.facts, &self.reader.settings.policy, pod)
    }

    /// Lists the known nodes that are NotReady.
    pub fn not_ready_nodes(&mut self) -> impl Iterator<Item = &mut NodeFacts> {
        self.facts
            .nodes
            .values_mut()
            .flatten()
            .flatten()
            .filter(|node| node.ready != Ready::True)
    }

    /// Ends gathering. `due` are the pods whose storage was read.
    fn gathered(
        mut self,
        due: Vec<(Box<PodFacts>, Storage)>,
        leases: Option<OtherLeases>,
    ) -> Gathered {
        let kept = self.pods.into_iter().map(|pod| (pod, None));
        self.facts.errors = self.reader.errors.take().into_iter().collect();
        let due = due.into_iter().map(|(pod, storage)| (pod, Some(storage)));
        let (not_evicted, pods) = kept
            .chain(due)
            .partition(|(pod, _)| self.not_evicted.contains(&pod.uid));
        Gathered {
            facts: self.facts,
            pods,
            not_evicted,
            leases,
        }
    }
}

/// Reads each of `what`, a few at a time; reads begin in this order.
pub(super) async fn read_each<T: Ord, R>(
    what: impl IntoIterator<Item = T>,
    read: impl AsyncFn(&T) -> R,
) -> BTreeMap<T, R> {
    let read = &read;
    stream::iter(what)
        .map(|it| async move {
            let found = read(&it).await;
            (it, found)
        })
        .buffer_unordered(MAX_IN_FLIGHT)
        .collect()
        .await
}
