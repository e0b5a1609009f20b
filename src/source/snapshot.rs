//! The other source of facts: a saved cluster state.
//!
//! Reads what `kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields` prints, any subset of
//! it, as one list, as lists in lists, or as several documents in a row. A kind without any object in the file counts
//! as not saved: what it would have shown is then unknown, never assumed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use futures_util::FutureExt;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{Gathered, Pods as PodsFound, Scan, Source, Standings, Wanted, gather, stream};
use crate::cluster::PodsOf;
use crate::exit::{CouldNotRun, Result};
use crate::facts::{
    Attachment, ClaimLook, ClaimState, ClusterFacts, Namespaces, NodeRead, PodSummary, Read,
    ReadError, Ready, Traits, Unasked, Unread,
};
use crate::kubernetes::{
    NodeLeases, Observed, RawAttachment, RawClaim, RawLease, RawNode, RawObject, RawPod,
    RawStatefulSet, RawVolume, identity_of_malformed, malformed,
};
use crate::selector::{NodeSelectors, Selector};

const LEASE_NAMESPACE: &str = "kube-node-lease";
/// That of the leases of API servers.
const SERVER_NAMESPACE: &str = "kube-system";
/// The command that makes a snapshot.
const SAVES_ONE: &str = "kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields";

/// Why a snapshot cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It is not JSON, or no object of Kubernetes. The parser names line and column.
    #[error("it is not what `{SAVES_ONE}` prints: {0}")]
    Syntax(serde_json::Error),
    /// It is a form of it that is not read.
    #[error("it is {0}")]
    OtherFormat(&'static str),
    /// It cannot be read, or is no text.
    #[error("{0}; name a file that holds what `{SAVES_ONE}` prints, or - for standard input")]
    Unreadable(io::Error),
    /// A kind without which nothing can be judged.
    #[error("it holds no {0}; save it with `{SAVES_ONE}`")]
    Missing(&'static str),
    /// Nothing in it says when it was taken.
    #[error(
        "nothing in it says when it was taken; set it with --now, such as --now 2026-01-31T03:00:00Z"
    )]
    Undated,
}

/// How a snapshot is to be read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The moment to judge at, where it is given.
    pub now: Option<Timestamp>,
    /// What the operator says of nodes.
    pub selectors: NodeSelectors,
}

/// Which pods of a snapshot are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// Those that a run judges.
    Terminating,
    /// All.
    Every,
}

/// What is kept of a snapshot: of the pods the Terminating ones, of everything what the rules ask about.
#[derive(Default)]
pub struct Saved {
    options: Options,
    /// The moment to judge at.
    now: Timestamp,
    nodes: BTreeMap<String, RawNode>,
    /// By node; of a run each is taken only once, as there may be tens of thousands.
    pods: RefCell<BTreeMap<Option<String>, Vec<RawPod>>>,
    /// Those that have a pod.
    pod_namespaces: BTreeSet<String>,
    every_pod: bool,
    /// By node, the pods whose deletion was not requested.
    unasked: BTreeMap<String, Vec<Unasked>>,
    namespaces: Namespaces,
    /// By namespace and name.
    sets: BTreeMap<(String, String), RawStatefulSet>,
    /// By namespace, the pods that use claims; all, where every pod is kept.
    summaries: BTreeMap<String, Vec<PodSummary>>,
    claims: BTreeMap<(String, String), RawClaim>,
    volumes: BTreeMap<String, RawVolume>,
    leases: BTreeMap<String, RawLease>,
    /// Of API servers.
    servers: Vec<RawLease>,
    attachments: BTreeMap<String, Vec<Attachment>>,
    newest: Option<Timestamp>,
    malformed: Malformed,
    /// Objects that lack what the rules need, and that were asked for.
    lacking: RefCell<Malformed>,
}

/// Objects that could not be read, by kind, namespace and name (each empty where even that could not), with the cause.
type Malformed = BTreeMap<(String, String, String), String>;

/// Namespace and name, as far as they could be read.
type Identity = (Option<String>, Option<String>);

/// What an object says it is.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
    /// Items that are none spoil a list.
    #[serde(rename = "items")]
    _items: Option<Vec<IgnoredAny>>,
}

/// Reads `file`, in a thread of its own: standard input (`-`) may never end.
pub async fn open(file: &Path, options: Options, pods: Pods) -> Result<Saved> {
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        if path == Path::new("-") {
            Saved::read(io::stdin(), options, pods)
        } else {
            Saved::read(
                File::open(path).map_err(SnapshotError::Unreadable)?,
                options,
                pods,
            )
        }
    });
    read.await
        .map_err(in_snapshot(file))?
        .map_err(in_snapshot(file))
}

/// That a snapshot cannot be judged, naming it.
pub fn in_snapshot<E: Display>(file: &Path) -> impl Fn(E) -> CouldNotRun {
    move |cause| CouldNotRun::Source(format!("--snapshot {}: {cause}", file.display()))
}

/// The form that a file has instead, by its first bytes, and what to do.
fn other_format(start: &[u8]) -> Option<&'static str> {
    let is_yaml = ["---", "apiVersion:", "items:", "kind:"]
        .iter()
        .any(|key| start.starts_with(key.as_bytes()));
    let utf_16 = "UTF-16, as of PowerShell; make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE | pod-reaper --snapshot -";
    match start {
        [0x1f, 0x8b, ..] => {
            Some("compressed by gzip; unpack it: gunzip -c FILE | pod-reaper --snapshot -")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'{', 0, ..] | [0, b'{', ..] => Some(utf_16),
        _ => is_yaml.then_some("YAML; save it as JSON, with -o json"),
    }
}

impl Saved {
    /// Reads a snapshot, of whatever size, to its end.
    pub fn read(
        source: impl io::Read,
        options: Options,
        pods: Pods,
    ) -> Result<Self, SnapshotError> {
        let mut saved = Self {
            options,
            every_pod: pods == Pods::Every,
            ..Self::default()
        };
        let mut source = BufReader::new(source);
        let start = source.fill_buf().map_err(SnapshotError::Unreadable)?;
        other_format(start).map_or(Ok(()), |form| Err(SnapshotError::OtherFormat(form)))?;
        stream::read(source, &mut saved)?;
        if saved.nodes.is_empty() {
            return Err(SnapshotError::Missing("nodes"));
        }
        if saved.pod_namespaces.is_empty() && !saved.any_malformed("Pod") {
            return Err(SnapshotError::Missing("pods"));
        }
        let now = saved.options.now.or(saved.newest);
        let now = now.ok_or(SnapshotError::Undated)?;
        // Whole seconds, as a server's clock says them.
        saved.now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Ok(saved)
    }

    /// What [`gather`] gathers of it, without waiting.
    ///
    /// # Panics
    /// Never: the answers are there.
    #[expect(clippy::expect_used, reason = "no answer is waited for")]
    pub fn gather(&self, wanted: &Wanted<'_>) -> Result<Gathered> {
        let gathered = gather(self, wanted, None).now_or_never();
        gathered.expect("the answers are there")
    }

    /// Takes one object, of `list_kind` where it does not say its own. A list is empty: its items come one by one.
    pub(super) fn take(&mut self, list_kind: &str, text: &str) {
        let kind = match serde_json::from_str(text) {
            Ok(Kind { kind, .. }) => kind,
            Err(error) => {
                return self.note_malformed(
                    list_kind,
                    identity_of_malformed(text),
                    malformed(&error),
                );
            }
        };
        // Items of a typed list ("PodList") do not repeat their kind.
        let kind = if kind.is_empty() { list_kind } else { &kind };
        if let Ok(observed) = serde_json::from_str::<Observed>(text) {
            self.newest = self.newest.max(observed.newest());
        }
        match kind {
            "" => self.note_malformed("", identity_of_malformed(text), "it does not say its kind"),
            "Node" => self.keep(kind, text, |saved, node: RawNode| {
                // What is supposed of a node that is Ready may need its stamps.
                let kept = if saved.every_pod {
                    node
                } else {
                    node.without_idle_stamps()
                };
                Some(saved.nodes.insert(kept.metadata.name.clone()?, kept))
            }),
            "Pod" => self.keep(kind, text, |saved, pod: RawPod| {
                saved
                    .pod_namespaces
                    .insert(pod.metadata.namespace.clone().unwrap_or_default());
                saved.keep_unasked(&pod);
                let user = pod.summary();
                if saved.every_pod || !user.claims.is_empty() {
                    let users = saved.summaries.entry(user.namespace.clone());
                    users.or_default().push(user);
                }
                if saved.every_pod || pod.metadata.terminating() {
                    let node = pod.node().map(str::to_owned);
                    saved.pods.get_mut().entry(node).or_default().push(pod);
                }
                Some(())
            }),
            "Namespace" => self.keep(kind, text, |saved, object: RawObject| {
                let opted_out = object.metadata.opted_out();
                Some(saved.namespaces.insert(object.metadata.name?, opted_out))
            }),
            "StatefulSet" => self.keep(kind, text, |saved, set: RawStatefulSet| {
                Some(saved.sets.insert(set.metadata.identity()?, set))
            }),
            "PersistentVolumeClaim" => self.keep(kind, text, |saved, claim: RawClaim| {
                Some(saved.claims.insert(claim.metadata.identity()?, claim))
            }),
            "PersistentVolume" => self.keep(kind, text, |saved, volume: RawVolume| {
                Some(saved.volumes.insert(volume.metadata.name.clone()?, volume))
            }),
            "Lease" => self.keep(kind, text, |saved, lease: RawLease| {
                let (namespace, name) = lease.metadata.identity()?;
                if namespace == LEASE_NAMESPACE {
                    saved.leases.insert(name, lease);
                } else if namespace == SERVER_NAMESPACE && lease.is_of_api_server() {
                    saved.servers.push(lease);
                }
                Some(())
            }),
            "VolumeAttachment" => self.keep(kind, text, |saved, attachment: RawAttachment| {
                if let Some((node, attachment)) = attachment.into_facts() {
                    saved.attachments.entry(node).or_default().push(attachment);
                }
                Some(())
            }),
            // Whatever else was saved along is nothing that the rules ask about.
            _ => {}
        }
    }

    /// Keeps of a pod whose deletion was not requested what tells why, unless its node is known to be Ready: kubectl prints the
    /// nodes first.
    fn keep_unasked(&mut self, pod: &RawPod) {
        let node = pod.node().filter(|name| {
            self.nodes
                .get(*name)
                .is_none_or(|node| node.ready() != Ready::True)
        });
        if let (Some(node), Some(unasked)) = (node, pod.unasked()) {
            self.unasked
                .entry(node.to_owned())
                .or_default()
                .push(unasked);
        }
    }

    /// Stores an object; one that does not parse, or for which `store` finds no name, is malformed.
    fn keep<T: DeserializeOwned, U>(
        &mut self,
        kind: &str,
        text: &str,
        store: impl FnOnce(&mut Self, T) -> Option<U>,
    ) {
        let cause = match serde_json::from_str(text).map(|object| store(self, object)) {
            Ok(Some(_)) => return,
            Ok(None) => "it lacks its name or namespace",
            Err(error) => malformed(&error),
        };
        self.note_malformed(kind, identity_of_malformed(text), cause);
    }

    pub(super) fn note_malformed(&mut self, kind: &str, (namespace, name): Identity, cause: &str) {
        let key = (
            kind.to_owned(),
            namespace.unwrap_or_default(),
            name.unwrap_or_default(),
        );
        self.malformed.insert(key, cause.to_owned());
    }

    /// Why an object that was not kept is no proof of absence: it is malformed, or one is that does not say which it is.
    fn not_absent(&self, kind: &str, namespace: &str, name: &str) -> Option<Unread> {
        let may_be = |bad: &str, wanted: &str| bad.is_empty() || bad == wanted;
        let bad = self
            .malformed
            .iter()
            .find(|((bad_kind, bad_namespace, bad_name), _)| {
                may_be(bad_kind, kind) && may_be(bad_namespace, namespace) && may_be(bad_name, name)
            });
        bad.map(|(_, cause)| Unread(format!("the snapshot's {kind} could not be read: {cause}")))
    }

    /// An error where an object of that kind could not be read.
    fn all_read(&self, kind: &str, one: &str) -> Read<()> {
        let unread = || Unread(format!("{one} of the snapshot could not be read"));
        self.any_malformed(kind).then(unread).map_or(Ok(()), Err)
    }

    fn any_malformed(&self, kind: &str) -> bool {
        self.malformed
            .keys()
            .any(|(bad, _, _)| bad.is_empty() || bad == kind)
    }

    /// Takes note of an object that lacks what the rules need.
    fn lacks(&self, kind: &str, namespace: String, name: String, cause: String) {
        let key = (kind.to_owned(), namespace, name);
        self.lacking.borrow_mut().insert(key, cause);
    }

    /// What a whole snapshot would hold besides, and the command that saves it.
    fn missing(&self, wanted: &Wanted<'_>) -> Vec<String> {
        let bound = self
            .claims
            .values()
            .any(|claim| claim.volume_name().is_some());
        let mut pods = self.summaries.values().flatten();
        let uses_claims = pods.any(|pod| !pod.claims.is_empty());
        // Without -A, kubectl shows the pods of one namespace; and that of all there are.
        let one = self.pod_namespaces.len() == 1 && self.namespaces.len() != 1;
        let missing = [
            (
                one && wanted.namespaces.include.is_none(),
                "pods of other namespaces, if there are any (-A)",
            ),
            (
                !self.has_namespaces(),
                "namespaces (whether they are opted out)",
            ),
            (
                self.leases.is_empty() && !self.any_malformed("Lease"),
                "leases (whether a node lives)",
            ),
            (self.claims.is_empty() && uses_claims, "pvc"),
            (self.volumes.is_empty() && bound, "pv"),
        ];
        let missing = missing
            .into_iter()
            .filter_map(|(is, what)| is.then_some(what))
            .collect::<Vec<_>>();
        let lacks = format!("The file lacks {}. This saves all:", missing.join(", "));
        // On a line of its own, to be copied.
        if missing.is_empty() {
            Vec::new()
        } else {
            vec![lacks, SAVES_ONE.to_owned()]
        }
    }

    /// Only of a run they are taken: what is supposed of one node after the other asks for them again.
    fn pods_of(&self, node: Option<&str>) -> Vec<RawPod> {
        let (node, mut pods) = (node.map(str::to_owned), self.pods.borrow_mut());
        let pods = if self.every_pod {
            pods.get(&node).cloned()
        } else {
            pods.remove(&node)
        };
        pods.unwrap_or_default()
    }

    fn has_namespaces(&self) -> bool {
        !self.namespaces.is_empty() || self.any_malformed("Namespace")
    }
}

impl Source for Saved {
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan> {
        let not_ready = self.nodes.iter();
        let not_ready = not_ready.filter(|(_, node)| node.ready() != Ready::True);
        Ok(Scan {
            facts: ClusterFacts {
                now: self.now,
                node_count: self.nodes.len(),
                unseen: self.missing(wanted),
                ..ClusterFacts::default()
            },
            not_ready: not_ready.map(|(name, _)| name.clone()).collect(),
            ready: None,
            thorough: true,
        })
    }

    async fn node(&self, name: &str, now: Timestamp) -> NodeRead {
        let Some(raw) = self.nodes.get(name) else {
            // The file holds nodes, so that one that is not in it does not exist.
            let unread = self.not_absent("Node", "", name);
            return unread.map_or(NodeRead::Gone, NodeRead::Unread);
        };
        let own = match self.leases.get(name) {
            Some(lease) => Ok(Some(lease.clone())),
            None => self
                .not_absent("Lease", LEASE_NAMESPACE, name)
                .map_or(Ok(None), Err),
        };
        let mut malformed = self.malformed.iter();
        let unread = malformed.find_map(|((kind, namespace, _), cause)| {
            let may_be = kind == "Lease" && namespace == SERVER_NAMESPACE;
            may_be.then(|| Unread(format!("those of API servers: {cause}")))
        });
        let api_servers = unread.as_ref().map_or(Ok(self.servers.as_slice()), Err);
        let leases = NodeLeases { own, api_servers };
        match raw.clone().into_facts(now, leases, &self.options.selectors) {
            Ok(facts) => NodeRead::Known(facts),
            Err(cause) => {
                self.lacks("Node", String::new(), name.to_owned(), cause.clone());
                NodeRead::Unread(Unread(cause))
            }
        }
    }

    async fn is_open(&self, _: &str) -> bool {
        false
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        self.all_read("Node", "a node")?;
        let mut traits = Traits::new();
        let standings = self.nodes.iter().map(|(name, node)| {
            let standing = node.standing(&self.options.selectors, now);
            node.count_traits(standing, &mut traits);
            (name.clone(), standing)
        });
        Ok((standings.collect(), traits))
    }

    async fn places(&self, nodes: &[String], _: bool) -> Result<BTreeSet<PodsOf>> {
        let pods = self.pods.borrow();
        let nodes = nodes.iter().cloned().map(PodsOf::Node);
        let more = pods.keys().cloned();
        let more = more.map(|node| node.map_or(PodsOf::NoNode, PodsOf::Node));
        Ok(nodes.chain(more).collect())
    }

    async fn pods(&self, place: &PodsOf) -> Result<PodsFound> {
        let node = match place {
            PodsOf::Node(name) => Some(name.clone()),
            _ => None,
        };
        let pods = self.pods_of(node.as_deref());
        let terminating = pods.into_iter().filter(|pod| pod.metadata.terminating());
        let unasked = node.and_then(|name| self.unasked.get(&name));
        let mut unasked = unasked.cloned().unwrap_or_default();
        // A file may hold a pod twice.
        unasked.sort_unstable();
        unasked.dedup();
        Ok(PodsFound {
            terminating: terminating.collect(),
            unasked,
            whole: !self.any_malformed("Pod"),
        })
    }

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        Ok(self.pods_of(Some(node)))
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let is = |known: &Option<String>, wanted: &str| known.as_deref() == Some(wanted);
        let pods = self.pods.borrow();
        let mut pods = pods.values().flatten();
        let pod = pods
            .rfind(|pod| is(&pod.metadata.namespace, namespace) && is(&pod.metadata.name, name));
        if pod.is_none()
            // What could not be read may be this pod. That it is gone would then be a guess.
            && let Some(Unread(cause)) = self.not_absent("Pod", namespace, name)
        {
            let cause = format!("pod {namespace}/{name} could not be read: {cause}");
            return Err(CouldNotRun::Source(cause));
        }
        Ok(pod.cloned())
    }

    async fn summaries(&self, namespace: &str) -> Result<Vec<PodSummary>> {
        Ok(self.summaries.get(namespace).cloned().unwrap_or_default())
    }

    async fn users(&self, namespace: &str) -> Read<Vec<PodSummary>> {
        self.all_read("Pod", "a pod")?;
        Ok(self.summaries.get(namespace).cloned().unwrap_or_default())
    }

    async fn namesakes(&self, name: &str) -> Result<Vec<PodSummary>> {
        let pods = self.summaries.values().flatten();
        Ok(pods.filter(|pod| pod.name == name).cloned().collect())
    }

    async fn namespaces(&self) -> Read<Namespaces> {
        self.all_read("Namespace", "a namespace")?;
        Ok(self.namespaces.clone())
    }

    /// Without any namespace in the file, opt-outs are named as unseen in the report instead of holding every pod.
    fn opted_out(&self, _: &Read<Namespaces>, name: &str) -> Read<Option<String>> {
        match self.namespaces.get(name) {
            Some(opted_out) => Ok(opted_out.clone()),
            None if !self.has_namespaces() => Ok(None),
            None => {
                let missing = || Unread(format!("{name} is not in the snapshot"));
                let unread = self.not_absent("Namespace", "", name);
                Err(unread.unwrap_or_else(missing))
            }
        }
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let mut attachments = self.attachments.clone();
        for on_node in attachments.values_mut() {
            on_node.sort();
        }
        attachments
    }

    async fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
        if self.claims.is_empty() && !self.any_malformed("PersistentVolumeClaim") {
            return ClaimState::Unread(Unread("claims were not saved in the snapshot".to_owned()))
                .into();
        }
        let key = (namespace.to_owned(), name.to_owned());
        let Some(claim) = self.claims.get(&key) else {
            let unread = self.not_absent("PersistentVolumeClaim", namespace, name);
            return unread.map_or(ClaimState::Absent, ClaimState::Unread).into();
        };
        let volume = match claim.volume_name() {
            None => Ok(None),
            Some(name) => match (
                self.volumes.get(name),
                self.not_absent("PersistentVolume", "", name),
            ) {
                (Some(volume), _) => Ok(Some(volume.clone())),
                (None, Some(unread)) => Err(unread),
                (None, None) if self.volumes.is_empty() => {
                    Err(Unread("volumes were not saved in the snapshot".to_owned()))
                }
                (None, None) => Ok(None),
            },
        };
        claim.clone().into_look(volume)
    }
    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let selector = selector.parse::<Selector>().map_err(Unread)?;
        let real = self.nodes.iter().filter(|(_, node)| {
            selector.matches(node.labels()) && !node.is_leaf(&self.options.selectors)
        });
        let names = real.map(|(name, _)| name.clone()).collect::<Vec<_>>();
        // One that could not be read may be one.
        if names.len() < 2 {
            self.all_read("Node", "a node")?;
        }
        Ok(names)
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        _: bool,
    ) -> Read<Option<RawStatefulSet>> {
        let set = self.sets.get(&(namespace.to_owned(), name.to_owned()));
        if set.is_none() && (self.sets.is_empty() || self.any_malformed("StatefulSet")) {
            return Err(Unread("it is not in the snapshot".to_owned()));
        }
        Ok(set.cloned())
    }

    fn note_malformed_pod(&self, namespace: String, name: String, cause: String) {
        self.lacks("Pod", namespace, name, cause);
    }

    fn errors(&self) -> Vec<ReadError> {
        let mut all = self.malformed.clone();
        all.extend(self.lacking.borrow().clone());
        let error = |((kind, namespace, name), cause): ((String, String, String), String)| {
            let slash = if namespace.is_empty() { "" } else { "/" };
            let name = if name.is_empty() {
                "without a name"
            } else {
                &name
            };
            let kind = if kind.is_empty() { "object" } else { &kind };
            ReadError {
                what: format!("{kind} {namespace}{slash}{name}"),
                cause,
            }
        };
        all.into_iter().map(error).collect()
    }
}
