//! The other source of facts: a saved cluster state.
//!
//! Reads what `kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields` prints, any subset of
//! it, as one list, as lists in lists, or as several documents in a row. A kind without any object in the file counts
//! as not saved: what it would have shown is then unknown, never assumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as Source};
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{Gathered, Sets, Wanted, Whole, facts_of, set_of, stream};
use crate::exit::{CouldNotRun, Result};
use crate::facts::{
    Census, ClaimLook, ClaimState, ClusterFacts, Namespaces, NodeRead, PodFacts, PodSummary, Read,
    ReadError, Ready, Standing, Unasked, Unread,
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
    Form(&'static str),
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
    nodes: BTreeMap<String, RawNode>,
    pods: Vec<RawPod>,
    /// Those that have a pod.
    pod_namespaces: BTreeSet<String>,
    every_pod: bool,
    /// The nodes that have a Terminating pod.
    busy: BTreeSet<String>,
    /// By node, the pods whose deletion was not requested.
    unasked: BTreeMap<String, Vec<Unasked>>,
    namespaces: Namespaces,
    /// By namespace and name.
    sets: BTreeMap<(String, String), RawStatefulSet>,
    /// By namespace, the pods that use claims.
    users: BTreeMap<String, Vec<PodSummary>>,
    claims: BTreeMap<(String, String), RawClaim>,
    volumes: BTreeMap<String, RawVolume>,
    leases: BTreeMap<String, RawLease>,
    /// Of API servers.
    servers: Vec<RawLease>,
    attachments: Vec<RawAttachment>,
    newest: Option<Timestamp>,
    /// Objects that could not be read, by kind, namespace and name (each empty where even that could not), with the
    /// cause.
    malformed: BTreeMap<(String, String, String), String>,
}

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
fn other_form(start: &[u8]) -> Option<&'static str> {
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
    pub fn read(source: impl Source, options: Options, pods: Pods) -> Result<Self, SnapshotError> {
        let mut saved = Self {
            options,
            every_pod: pods == Pods::Every,
            ..Self::default()
        };
        let mut source = BufReader::new(source);
        let start = source.fill_buf().map_err(SnapshotError::Unreadable)?;
        other_form(start).map_or(Ok(()), |form| Err(SnapshotError::Form(form)))?;
        stream::read(source, &mut saved)?;
        Ok(saved)
    }

    /// The pod of that name, where the file holds it.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<PodSummary> {
        let is = |known: &Option<String>, wanted: &str| known.as_deref() == Some(wanted);
        let mut pods = self.pods.iter();
        let pod = pods
            .rfind(|pod| is(&pod.metadata.namespace, namespace) && is(&pod.metadata.name, name));
        pod.map(RawPod::summary)
    }

    /// Every pod of the nodes `names`, those that Kubernetes would evict from a dead node as if their deletion had been
    /// asked for; and what shows whether they would be missed.
    pub fn gather_whole(
        mut self,
        wanted: &Wanted<'_>,
        names: &BTreeSet<String>,
    ) -> Result<Whole, SnapshotError> {
        let mut summaries = Vec::new();
        let pods = std::mem::take(&mut self.pods)
            .into_iter()
            .filter_map(|pod| {
                let summary = pod.summary();
                let kept = summary.evicted()
                    && summary
                        .node
                        .as_ref()
                        .is_some_and(|node| names.contains(node));
                summaries.push(summary);
                kept.then(|| pod.deleted_by(Timestamp::MIN))
            });
        self.pods = pods.collect();
        let (gathered, standings) = self.gather_all(
            &Wanted {
                all: true,
                ..*wanted
            },
            None,
        )?;
        Ok(Whole {
            gathered,
            standings,
            summaries,
        })
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
                if let Some(node) = pod.node().filter(|_| pod.metadata.terminating()) {
                    saved.busy.insert(node.to_owned());
                }
                saved.keep_unasked(&pod);
                let user = pod.summary();
                if !user.claims.is_empty() {
                    saved
                        .users
                        .entry(user.namespace.clone())
                        .or_default()
                        .push(user);
                }
                let kept = saved.every_pod || pod.metadata.terminating();
                saved.pods.extend(kept.then_some(pod));
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
            "VolumeAttachment" => self.keep(kind, text, |saved, attachment| {
                saved.attachments.push(attachment);
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
    pub fn not_absent(&self, kind: &str, namespace: &str, name: &str) -> Option<Unread> {
        let may_be = |bad: &str, wanted: &str| bad.is_empty() || bad == wanted;
        let bad = self
            .malformed
            .iter()
            .find(|((bad_kind, bad_namespace, bad_name), _)| {
                may_be(bad_kind, kind) && may_be(bad_namespace, namespace) && may_be(bad_name, name)
            });
        bad.map(|(_, cause)| Unread(format!("the snapshot's {kind} could not be read: {cause}")))
    }

    fn any_malformed(&self, kind: &str) -> bool {
        self.malformed
            .keys()
            .any(|(bad, _, _)| bad.is_empty() || bad == kind)
    }

    /// Steps 1 to 3 of a run. The Terminating pod with the UID `asked` is judged in any case, wherever it is.
    pub fn gather(
        self,
        wanted: &Wanted<'_>,
        asked: Option<&str>,
    ) -> Result<Gathered, SnapshotError> {
        self.gather_all(wanted, asked).map(|(gathered, _)| gathered)
    }

    /// The same, with what every node counts as.
    fn gather_all(
        mut self,
        wanted: &Wanted<'_>,
        asked: Option<&str>,
    ) -> Result<(Gathered, BTreeMap<String, Standing>), SnapshotError> {
        if self.nodes.is_empty() {
            return Err(SnapshotError::Missing("nodes"));
        }
        if self.pod_namespaces.is_empty() && !self.any_malformed("Pod") {
            return Err(SnapshotError::Missing("pods"));
        }
        let Options { now, selectors } = std::mem::take(&mut self.options);
        // Whole seconds, as a server's clock says them.
        let now = now.or(self.newest).ok_or(SnapshotError::Undated)?;
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let mut facts = ClusterFacts {
            now,
            node_count: self.nodes.len(),
            ..ClusterFacts::default()
        };
        let node_unread = self
            .any_malformed("Node")
            .then(|| Unread("a node of the snapshot could not be read".to_owned()));
        let pod_unread = self.any_malformed("Pod");
        let standings = self.nodes.iter().map(|(name, node)| {
            let terminating = pod_unread || self.busy.contains(name);
            let standing = Standing {
                terminating,
                ..node.standing(&selectors, now)
            };
            node.count_traits(standing, &mut facts.traits);
            (name.clone(), standing)
        });
        let standings = standings.collect::<BTreeMap<_, _>>();
        facts.census = match &node_unread {
            Some(unread) => Census::Unread(unread.clone()),
            None => Census::count(now, standings.values().copied()),
        };
        facts.unseen.extend(self.missing(wanted));
        let real = self
            .nodes
            .iter()
            .filter(|(_, node)| !node.is_leaf(&selectors));
        let real = real
            .map(|(name, node)| (name.clone(), node.labels().clone()))
            .collect::<Vec<_>>();
        let servers = std::mem::take(&mut self.servers);
        let server_unread = self
            .malformed
            .iter()
            .find_map(|((kind, namespace, _), cause)| {
                let may_be = kind == "Lease" && namespace == SERVER_NAMESPACE;
                may_be.then(|| Unread(format!("those of API servers: {cause}")))
            });
        for (name, raw) in std::mem::take(&mut self.nodes) {
            let own = match self.leases.remove(&name) {
                Some(lease) => Ok(Some(lease)),
                None => self
                    .not_absent("Lease", LEASE_NAMESPACE, &name)
                    .map_or(Ok(None), Err),
            };
            let api_servers = server_unread.as_ref().map_or(Ok(servers.as_slice()), Err);
            let read = match raw.into_facts(now, NodeLeases { own, api_servers }, &selectors) {
                Ok(facts) => NodeRead::Known(facts),
                Err(cause) => {
                    self.note_malformed("Node", (None, Some(name.clone())), &cause);
                    NodeRead::Unread(Unread(cause))
                }
            };
            facts.nodes.insert(name, read);
        }
        let terminating = std::mem::take(&mut self.pods)
            .into_iter()
            .filter(|pod| pod.metadata.terminating());
        let (mut pods, malformed) = facts_of(terminating, |namespace| self.opted_out(namespace));
        for (namespace, name, cause) in malformed {
            self.note_malformed("Pod", (Some(namespace), name), &cause);
        }
        let is_asked = |pod: &PodFacts| asked == Some(pod.uid.as_str());
        pods.retain(|pod| is_asked(pod) || wanted.namespaces.matches(&pod.namespace));
        let found = pods.len();
        pods.retain(|pod| is_asked(pod) || wanted.all || !facts.on_ready_node(pod));
        facts.on_ready_nodes = found - pods.len();
        for pod in &mut pods {
            pod.note_claims(|namespace, name| Some(self.claim(namespace, name)));
            // A pod's node that is not in the file does not exist: the file holds nodes.
            if let Some(node) = &pod.node {
                let read = || {
                    self.not_absent("Node", "", node)
                        .map_or(NodeRead::Gone, NodeRead::Unread)
                };
                facts.nodes.entry(node.clone()).or_insert_with(read);
            }
        }
        facts.unasked = std::mem::take(&mut self.unasked);
        facts.unasked.retain(|node, pods| {
            pods.retain(|pod| wanted.namespaces.matches(&pod.namespace));
            // A file may hold a pod twice.
            pods.sort_unstable();
            pods.dedup();
            facts
                .nodes
                .get(node)
                .and_then(NodeRead::known)
                .is_some_and(|node| node.ready != Ready::True)
        });
        facts.unmatched_namespaces = wanted
            .unmatched(&self.namespaces)
            .filter(|_| !self.any_malformed("Namespace"));
        let pod_unread = self
            .any_malformed("Pod")
            .then(|| Unread("a pod of the snapshot could not be read".to_owned()));
        let set_unread = (self.sets.is_empty() || self.any_malformed("StatefulSet"))
            .then(|| Unread("it is not in the snapshot".to_owned()));
        for (node, attachment) in self
            .attachments
            .into_iter()
            .filter_map(RawAttachment::into_facts)
        {
            facts.attachments.entry(node).or_default().push(attachment);
        }
        for attachments in facts.attachments.values_mut() {
            attachments.sort();
        }
        let mut sets = self
            .sets
            .into_iter()
            .map(|(name, set)| (name, Ok(set)))
            .collect::<Sets>();
        for set in pods.iter().filter_map(set_of) {
            if let Some(unread) = &set_unread {
                sets.entry(set).or_insert(Err(unread.clone()));
            }
        }
        let users = self.users.into_iter();
        let users = users
            .map(|(name, pods)| (name, pod_unread.clone().map_or(Ok(pods), Err)))
            .collect();
        let errors = self
            .malformed
            .into_iter()
            .map(|((kind, namespace, name), cause)| {
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
            });
        facts.errors.extend(errors);
        let mut gathered = Gathered { facts, pods };
        let answers = gathered.affinity_to_ask().into_iter().map(|selector| {
            let nodes = selector
                .parse::<Selector>()
                .map_err(Unread)
                .and_then(|parsed| {
                    let nodes = real.iter().filter(|(_, labels)| parsed.matches(labels));
                    let nodes = nodes.map(|(name, _)| name.clone()).collect::<Vec<_>>();
                    match &node_unread {
                        Some(unread) if nodes.len() < 2 => Err(unread.clone()),
                        _ => Ok(nodes),
                    }
                });
            (selector, nodes)
        });
        let answers = answers.collect();
        gathered.note_affinity(&answers);
        gathered.note_renewed(wanted.policy, &sets, &users);
        gathered.note_unwanted(&sets);
        Ok((gathered, standings))
    }

    /// What a whole snapshot would hold besides, and the command that saves it.
    fn missing(&self, wanted: &Wanted<'_>) -> Vec<String> {
        let bound = self
            .claims
            .values()
            .any(|claim| claim.volume_name().is_some());
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
            (self.claims.is_empty() && !self.users.is_empty(), "pvc"),
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

    fn has_namespaces(&self) -> bool {
        !self.namespaces.is_empty() || self.any_malformed("Namespace")
    }

    /// Without any namespace in the file, opt-outs are named as unseen in the report instead of holding every pod.
    fn opted_out(&self, namespace: &str) -> Read<Option<String>> {
        match self.namespaces.get(namespace) {
            Some(opted_out) => Ok(opted_out.clone()),
            None if !self.has_namespaces() => Ok(None),
            None => {
                let missing = || Unread(format!("{namespace} is not in the snapshot"));
                Err(self
                    .not_absent("Namespace", "", namespace)
                    .unwrap_or_else(missing))
            }
        }
    }

    fn claim(&self, namespace: &str, name: &str) -> ClaimLook {
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
}
