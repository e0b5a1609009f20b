//! Reads facts from a source, and remembers what could not be read. A failure is a fact too, except
//! a failure that ends the run.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    mem,
};

use super::budget::{Budget, MAX_PODS_OF_NAMESPACE};
use crate::{
    cluster::{About, Api, Failure, Listed, Of},
    exit::Result,
    facts::{
        AffinityTerm, ClaimRead, ClaimState, Heartbeat, NodeFacts, PodFacts, PodsOf, Read,
        ReadError, Unread,
    },
    kubernetes::{HolderPod, Kind, RawClaim, RawNode, RawPod, RawVolume, StaticPods},
    selector::is_name,
    settings::Settings,
};

/// The most pods of a list that are remembered as possible holders of Leases although they have not started. Anyone may
/// make any number of them, and they hardly renew a Lease.
const MAX_HOLDERS: usize = 10_000;

/// A source of objects, and the reads that failed.
pub struct Reader<'a, A> {
    pub api: &'a A,
    pub settings: &'a Settings,
    pub(super) about: About,
    pub(super) errors: RefCell<BTreeSet<ReadError>>,
    /// The Terminating pods of all lists, in matching namespaces.
    pub(super) terminating: RefCell<Budget>,
    /// The active pods of the NotReady nodes, in matching namespaces.
    pub(super) active: RefCell<Budget>,
    /// The pods that may wait for a volume, in matching namespaces.
    pub(super) waiting: RefCell<Budget>,
}

/// The lists of pods that were read.
pub type PodLists = BTreeMap<PodsOf, Pods>;

/// The pods of one list.
#[derive(Default)]
pub struct Pods {
    /// The Terminating pods, until the reader takes them.
    terminating: Budget,
    /// The active pods, if the list is that of a NotReady node: Kubernetes has not evicted them.
    active: Budget,
    /// The pods that may wait for a volume.
    waiting: Budget,
    /// What programs in the pods have written to them, kept or not, each with the namespace.
    pub programs: Vec<(String, Heartbeat)>,
    /// Every pod of the list, as a holder of Leases.
    pub holders: BTreeSet<HolderPod>,
    /// What its static pods show of the API server's datastore.
    pub shows: StaticPods,
    /// Why the list could not be read, if so.
    pub unread: Option<Unread>,
}

impl<'a, A: Api> Reader<'a, A> {
    pub fn new(api: &'a A, settings: &'a Settings) -> Self {
        let mut about = api.about(&settings.namespaces);
        Self {
            api,
            settings,
            errors: RefCell::new(mem::take(&mut about.errors)),
            terminating: RefCell::default(),
            active: RefCell::default(),
            waiting: RefCell::default(),
            about,
        }
    }

    /// Notes an object or list that could not be read, and why.
    pub(super) fn note(&self, what: impl Display, cause: impl Display) {
        let (what, cause) = (what.to_string(), cause.to_string());
        self.errors.borrow_mut().insert(ReadError { what, cause });
    }

    /// Notes a read that failed, unless the source has named what cannot be read.
    pub(super) fn failed(&self, what: impl Display, cause: impl Display) -> Unread {
        let cause = cause.to_string();
        if !self.about.is_file {
            self.note(what, &cause);
        }
        Unread(cause)
    }

    /// Waits for a read of `what`. A failure is noted.
    pub(super) async fn read<T>(
        &self,
        what: impl Display,
        read: impl Future<Output = Result<T, Failure>>,
    ) -> Read<T> {
        read.await.map_err(|failure| self.failed(what, failure))
    }

    /// Reads all objects of a kind, and collects them by `add`. Fails if any of them cannot be read, because it may be
    /// the one that matters.
    pub async fn all<T: Kind, C: Default>(&self, what: &str, add: impl Fn(&mut C, &T)) -> Read<C> {
        self.api
            .each(Of::All, add)
            .await
            .and_then(Listed::whole)
            .map_err(|failure| self.failed(what, failure))
    }

    /// Reads a node in full, with its own lease; `None` if the node does not exist.
    pub(super) async fn node(&self, name: &str) -> Read<Option<NodeFacts>> {
        let what = format!("node {name}");
        let Some(objects) = self.read(&what, self.api.node(name)).await? else {
            return Ok(None);
        };
        if let Err(unread) = &objects.lease {
            self.failed(format_args!("lease of {what}"), unread);
        }
        objects
            .into_facts(&self.settings.policy)
            .map(Some)
            .map_err(|cause| {
                self.note(what, &cause);
                Unread(cause)
            })
    }

    /// Reads a list of pods. Fails if this account may not list pods.
    pub(super) async fn pods(&self, list: &PodsOf, is_not_ready: bool) -> Result<Pods> {
        let filter = &self.settings.namespaces;
        let of_all = self.settings.all || self.about.is_file;
        let add = |pods: &mut Pods, raw: &RawPod| {
            let pod = &raw.facts;
            pods.shows.add(raw.shows);
            if raw.has_started || pods.holders.len() < MAX_HOLDERS {
                pods.holders.insert(raw.as_holder());
                let heard = pod.heard.clone();
                pods.programs
                    .extend(heard.map(|heard| (pod.namespace.clone(), heard)));
            }
            // A pod without a namespace is reported as a pod that cannot be judged.
            let matches = pod.namespace.is_empty() || filter.matches(&pod.namespace);
            // Only a report on everything names them.
            if of_all && matches && raw.may_wait() {
                pods.waiting.add(Box::new(pod.clone()));
            }
            if matches && pod.deletion.is_some() {
                pods.terminating.add(Box::new(pod.clone()));
            } else if matches && is_not_ready && pod.is_active() {
                pods.active.add(Box::new(pod.clone()));
            }
        };
        match self.api.each(Of::Pods(list), add).await {
            Ok(Listed {
                items: mut pods,
                malformed,
                ..
            }) => {
                for malformed in &malformed {
                    self.failed(list, malformed);
                    pods.holders.extend(HolderPod::of_malformed(malformed));
                    pods.shows.add(RawPod::may_show(malformed));
                }
                let kept = [
                    (&self.terminating, &mut pods.terminating),
                    (&self.active, &mut pods.active),
                    (&self.waiting, &mut pods.waiting),
                ];
                for (all, of_list) in kept {
                    all.borrow_mut().extend(mem::take(of_list));
                }
                Ok(pods)
            }
            Err(failure) if failure.forbids() => Err(self.api.could_not("list pods", &failure)),
            Err(failure) => Ok(Pods {
                unread: Some(self.failed(list, failure)),
                ..Pods::default()
            }),
        }
    }

    /// Returns the pods of all lists, and notes those that are over the budget of their namespace; `kind`
    /// is the kind of these pods.
    pub(super) fn within_budget(&self, kind: &str, all: &RefCell<Budget>) -> Vec<Box<PodFacts>> {
        let (pods, over) = all.take().into_pods();
        for (namespace, count) in over {
            self.note(
                format_args!("{kind} pods of namespace {namespace}"),
                format_args!(
                    "{count} more than a run keeps of one namespace ({MAX_PODS_OF_NAMESPACE}): they are over the budget, and were not judged"
                ),
            );
        }
        pods
    }

    /// Reads the pods of a list that can be read.
    pub async fn readable_pods(&self, list: &PodsOf) -> Read<Vec<PodFacts>> {
        let add_pod = |all: &mut Vec<_>, pod: &RawPod| all.push(pod.facts.clone());
        let listed = self
            .read(list, self.api.each(Of::Pods(list), add_pod))
            .await?;
        for malformed in &listed.malformed {
            self.failed(list, malformed);
        }
        Ok(listed.items)
    }

    /// Reads a PVC with its volume.
    pub(super) async fn claim(&self, namespace: &str, name: &str) -> ClaimRead {
        if !is_name(name) {
            let why = "no PVC can have this name".to_owned();
            return ClaimState::Unread(Unread(why)).into();
        }
        let what = format!("PVC {namespace}/{name}");
        let claim = self.api.find::<RawClaim>(namespace, name);
        let claim = match self.read(&what, claim).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return ClaimState::Absent.into(),
            Err(unread) => return ClaimState::Unread(unread).into(),
        };
        let volume = match claim.volume_name() {
            None => Ok(None),
            Some(volume) => self
                .api
                .find::<RawVolume>("", volume)
                .await
                .map_err(|failure| match failure {
                    Failure::File(cause) => Unread(cause),
                    failure => Unread(format!("its volume {volume}: {failure}")),
                }),
        };
        let found = claim.into_found(volume);
        if let ClaimState::Unread(unread) = &found.state {
            self.failed(what, unread);
        }
        found
    }

    /// Names the real nodes that a term of a volume's affinity allows.
    pub(super) async fn nodes_for(&self, term: &AffinityTerm) -> Read<Vec<String>> {
        let selector = term.selector()?;
        let leaf = &self.settings.policy.node_selectors;
        let add_real = |names: &mut Vec<_>, node: &RawNode| {
            if !node.is_leaf(leaf) {
                names.push(node.metadata.name.clone());
            }
        };
        // Two nodes are enough, whatever could not be read.
        self.api
            .each(Of::Nodes(&selector), add_real)
            .await
            .and_then(|it| {
                if it.items.len() < 2 {
                    it.whole()
                } else {
                    Ok(it.items)
                }
            })
            .map_err(|failure| match failure.code() {
                // The API server refuses this selector every time, so no reading has failed.
                Some(400) => failure.into(),
                _ => self.failed(
                    format_args!("nodes that a volume allows ({selector})"),
                    failure,
                ),
            })
    }
}
