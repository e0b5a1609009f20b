//! The source that is a snapshot: a file with a saved cluster state.
//!
//! The file holds what `kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json
//! --show-managed-fields` prints, or any part of it: as one list, as lists in lists, or as several
//! documents in a row. A kind without any object in the file counts as not saved: its facts are
//! then unknown, never assumed.

use std::{
    any::Any,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use futures_util::FutureExt;
use itertools::Itertools as _;
use jiff::Timestamp;

use super::{Gathered, Memory, Pods, Scan, Source, Standings, Wanted, gather, stream};
use crate::{
    cluster::PodsOf,
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, ClaimState, ClusterFacts, FoundClaim, Namespaces, NodeRead, PodSummary, Read,
        Ready, Traits, Unread,
    },
    kubernetes::{
        Holders, Kind, Meta, Observed, RawAttachment, RawClaim, RawDriver, RawLease, RawNamespace,
        RawNode, RawPod, RawStatefulSet, RawVolume, full_name, identity_of_malformed, malformed,
    },
    selector::{NodeSelectors, Selector},
};

/// How many bytes are read from the file at once.
const CHUNK: usize = 64 * 1024;
/// The command that makes a snapshot.
pub(super) const SAVES_ONE: &str = "kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields";

/// The error for a snapshot that does not tell when it was taken.
pub(super) const UNDATED: &str =
    "nothing in it says when it was taken; set it with --now, such as --now 2026-01-31T03:00:00Z";

/// How to read a snapshot.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The moment to judge at, if the operator gives one.
    pub now: Option<Timestamp>,
    /// The operator's selectors for leaf nodes and fenced nodes.
    pub selectors: NodeSelectors,
    /// Whether to keep all pods, not only those that a run judges.
    pub every_pod: bool,
}

/// The part of a snapshot that the rules ask about.
#[derive(Default)]
pub struct Saved {
    options: Options,
    /// The moment to judge at.
    now: Timestamp,
    /// All objects but pods, each as the type of its kind.
    objects: BTreeMap<Key, Box<dyn Any + Send>>,
    /// The Terminating pods by node; with `every_pod` all pods. A run takes them out of here
    /// instead of copying them, because there may be tens of thousands.
    pods: RefCell<BTreeMap<Option<String>, Vec<RawPod>>>,
    /// The namespaces that have a pod.
    pod_namespaces: BTreeSet<String>,
    /// Summaries of the pods that use claims or whose node
    /// may not be Ready; with `every_pod` of all pods.
    summaries: Vec<PodSummary>,
    /// The newest moment at which an object of the file was observed.
    newest: Option<Timestamp>,
    /// The objects that could not be read, each with the cause.
    malformed: BTreeMap<Key, String>,
    memory: Memory,
}

/// Kind, namespace and name of an object. Those of a
/// malformed object are empty if they could not be read.
type Key = (String, String, String);

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

/// Reads `file` in a thread of its own, because standard input (`-`) may never end.
pub async fn open(file: &Path, options: Options) -> Result<Saved> {
    let path = file.to_owned();
    tokio::task::spawn_blocking(move || {
        if path == Path::new("-") {
            return Saved::read(io::stdin(), options);
        }
        Saved::read(
            File::open(path).map_err(|error| unreadable(&error))?,
            options,
        )
    })
    .await
    .map_err(in_snapshot(file))?
    .map_err(in_snapshot(file))
}

/// Adds the name of the file to an error about a snapshot.
pub fn in_snapshot<E: Display>(file: &Path) -> impl Fn(E) -> CouldNotRun {
    move |cause| CouldNotRun::Source(format!("--snapshot {}: {cause}", file.display()))
}

fn drop_unused<T: Kind>(object: &mut T) {
    object.metadata().drop_unused();
}

/// Describes the error of a snapshot that cannot be read, or that is not text.
pub(super) fn unreadable(error: &io::Error) -> String {
    format!("{error}; name a file that holds what `{SAVES_ONE}` prints, or - for standard input")
}

/// Recognizes a file that is not JSON by its first
/// bytes. Returns its format, and what to do about it.
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
    /// Reads a snapshot of any size to its end. An error says why it cannot be judged.
    pub fn read(source: impl io::Read, options: Options) -> Result<Self, String> {
        let mut saved = Self {
            options,
            ..Self::default()
        };
        let mut source = BufReader::with_capacity(CHUNK, source);
        let start = source.fill_buf().map_err(|error| unreadable(&error))?;
        if let Some(form) = other_format(start) {
            return Err(format!("it is {form}"));
        }
        stream::read(source, &mut saved)?;
        let lacking = |kind| format!("it holds no {kind}; save it with `{SAVES_ONE}`");
        if saved.all::<RawNode>().next().is_none() {
            return Err(lacking("nodes"));
        }
        if saved.pod_namespaces.is_empty() && !saved.any_malformed::<RawPod>() {
            return Err(lacking("pods"));
        }
        let now = saved.options.now.or(saved.newest).ok_or(UNDATED)?;
        // Whole seconds, like the time that a server tells.
        saved.now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Ok(saved)
    }

    /// Runs [`gather`] on this snapshot, without waiting.
    ///
    /// # Panics
    /// Never, because every answer is in memory.
    #[expect(clippy::expect_used, reason = "no answer is waited for")]
    pub fn gather(&self, wanted: &Wanted<'_>) -> Result<Gathered> {
        // Unconstrained, because after 128 answers tokio
        // would make the task wait for its next turn.
        tokio::task::unconstrained(gather(self, wanted, None))
            .now_or_never()
            .expect("the answers are there")
    }

    /// Adds one object. A list arrives empty, because its items are added one by one.
    pub(super) fn add(&mut self, kind: &str, text: &str) {
        if let Ok(observed) = serde_json::from_str::<Observed>(text) {
            self.newest = self.newest.max(observed.newest());
        }
        let every_pod = self.options.every_pod;
        match kind {
            "" => self.note_malformed("", identity_of_malformed(text), "it does not say its kind"),
            "Pod" => match serde_json::from_str(text) {
                Ok(pod) => self.keep_pod(pod),
                Err(error) => {
                    self.note_malformed(kind, identity_of_malformed(text), malformed(&error));
                }
            },
            // A forecast supposes that a Ready node has died, and may need its stamps.
            "Node" => self.keep(text, |node: &mut RawNode| node.drop_unused(!every_pod)),
            "Lease" => self.keep::<RawLease>(text, |_| {}),
            "Namespace" => self.keep::<RawNamespace>(text, drop_unused),
            "StatefulSet" => self.keep::<RawStatefulSet>(text, drop_unused),
            "PersistentVolumeClaim" => self.keep::<RawClaim>(text, drop_unused),
            "PersistentVolume" => self.keep::<RawVolume>(text, drop_unused),
            "VolumeAttachment" => self.keep::<RawAttachment>(text, drop_unused),
            "CSIDriver" => self.keep::<RawDriver>(text, drop_unused),
            // The rules ask about no other kind.
            _ => {}
        }
    }

    fn keep_pod(&mut self, mut pod: RawPod) {
        let node = pod.node();
        self.pod_namespaces.insert(pod.metadata.namespace.clone());
        // The nodes are known by now, because kubectl prints them first. If a node is not known to
        // be Ready, the report has to tell which of its pods were not evicted.
        let down = |name: &String| {
            let node = self.get::<RawNode>("", name);
            node.is_none_or(|node| node.ready() != Ready::True)
        };
        let summary = pod.summary();
        let is_down = node.as_ref().is_some_and(down);
        if self.options.every_pod || !summary.claims.is_empty() || is_down {
            self.summaries.push(summary);
        }
        if self.options.every_pod || pod.metadata.terminating() {
            pod.drop_stamps();
            self.pods.get_mut().entry(node).or_default().push(pod);
        }
    }

    /// Parses an object and keeps it, after `drop_unused`
    /// has dropped what the rules never ask about.
    fn keep<T: Kind>(&mut self, text: &str, drop_unused: impl FnOnce(&mut T)) {
        let cause = match serde_json::from_str::<T>(text) {
            Ok(mut object) => {
                drop_unused(&mut object);
                let Meta {
                    namespace, name, ..
                } = object.metadata();
                if !name.is_empty() && T::NAMESPACED != namespace.is_empty() {
                    let key = key(T::KIND, namespace, name);
                    self.objects.insert(key, Box::new(object));
                    return;
                }
                "it lacks its name or namespace"
            }
            Err(error) => malformed(&error),
        };
        self.note_malformed(T::KIND, identity_of_malformed(text), cause);
    }

    pub(super) fn note_malformed(
        &mut self,
        kind: &str,
        (namespace, name): (String, String),
        cause: &str,
    ) {
        self.note_error(kind, &namespace, &name, cause);
        let key = (kind.to_owned(), namespace, name);
        self.malformed.insert(key, cause.to_owned());
    }

    /// Notes an error for an object that lacks what the rules need.
    fn note_error(&self, kind: &str, namespace: &str, name: &str, cause: &str) {
        let kind = if kind.is_empty() { "object" } else { kind };
        let name = full_name(namespace, name, "without a name");
        self.memory.note(format_args!("{kind} {name}"), cause);
    }

    fn get<T: Kind>(&self, namespace: &str, name: &str) -> Option<&T> {
        self.objects
            .get(&key(T::KIND, namespace, name))?
            .downcast_ref()
    }

    /// Lists all objects of a kind, ordered by namespace and name.
    fn all<T: Kind>(&self) -> impl Iterator<Item = &T> {
        self.objects
            .range(key(T::KIND, "", "")..)
            .take_while(|((kind, ..), _)| kind == T::KIND)
            .filter_map(|(_, object)| object.downcast_ref())
    }

    /// Finds an object; `None` only if the file proves that it does not exist. A malformed object
    /// of that name, or without a name, may be the one.
    fn proved<T: Kind>(&self, namespace: &str, name: &str) -> Read<Option<T>> {
        let may_be = |bad: &str, wanted: &str| bad.is_empty() || bad == wanted;
        let bad = self
            .malformed
            .iter()
            .find(|((bad_kind, bad_namespace, bad_name), _)| {
                may_be(bad_kind, T::KIND)
                    && may_be(bad_namespace, namespace)
                    && may_be(bad_name, name)
            });
        match (self.get::<T>(namespace, name), bad) {
            (None, Some((_, cause))) => {
                let kind = T::KIND;
                Err(Unread(format!(
                    "the snapshot's {kind} could not be read: {cause}"
                )))
            }
            (found, _) => Ok(found.cloned()),
        }
    }

    /// Finds an object of a kind that may not have been saved.
    fn find<T: Kind>(&self, namespace: &str, name: &str) -> Read<Option<T>> {
        if !self.is_saved::<T>() {
            let [_, plural] = T::API;
            return Err(Unread(format!("{plural} were not saved in the snapshot")));
        }
        self.proved(namespace, name)
    }

    fn any_malformed<T: Kind>(&self) -> bool {
        self.malformed
            .keys()
            .map(|(kind, ..)| kind.as_str())
            .any(|bad| ["", T::KIND].contains(&bad))
    }

    /// Returns an error if an object of the kind could not be read.
    fn all_read<T: Kind>(&self) -> Read<()> {
        let unread = || Unread(format!("a {} of the snapshot could not be read", T::KIND));
        self.any_malformed::<T>().then(unread).map_or(Ok(()), Err)
    }

    fn is_saved<T: Kind>(&self) -> bool {
        self.any_malformed::<T>() || self.all::<T>().next().is_some()
    }

    /// Returns, as lines of text, what the file lacks and the command that saves it; nothing if the
    /// file is complete.
    fn missing(&self, wanted: &Wanted<'_>) -> Vec<String> {
        let bound = self.all::<RawClaim>().any(|it| it.volume_name().is_some());
        let uses_claims = self.summaries.iter().any(|pod| !pod.claims.is_empty());
        // Without -A, kubectl saves the pods of one namespace, but all namespaces.
        let one = self.pod_namespaces.len() == 1 && self.all::<RawNamespace>().count() != 1;
        let missing = [
            (
                one && wanted.namespaces.include.is_none(),
                "pods of other namespaces, if there are any (-A)",
            ),
            (
                !self.is_saved::<RawNamespace>(),
                "namespaces (whether they are opted out)",
            ),
            (
                !self.any_malformed::<RawLease>() && !self.all().any(RawLease::is_of_node),
                "leases (whether a node lives)",
            ),
            (uses_claims && !self.is_saved::<RawClaim>(), "pvc"),
            (bound && !self.is_saved::<RawVolume>(), "pv"),
            (
                !self.is_saved::<RawDriver>()
                    && self
                        .all::<RawVolume>()
                        .any(|it| it.driver_of_disk().is_some()),
                "csidrivers (whether anything attaches a disk)",
            ),
        ]
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what)
        .collect_vec();
        if missing.is_empty() {
            return Vec::new();
        }
        // The command stands on a line of its own, so it is easy to copy.
        let lacks = format!("The file lacks {}. This saves all:", missing.join(", "));
        vec![lacks, SAVES_ONE.to_owned()]
    }

    /// Returns the kept pods of a node. A run asks once, so the pods are moved; a forecast asks
    /// again for each node, so they are copied.
    fn pods_of(&self, node: Option<&str>) -> Vec<RawPod> {
        let (node, mut pods) = (node.map(str::to_owned), self.pods.borrow_mut());
        let pods = if self.options.every_pod {
            pods.get(&node).cloned()
        } else {
            pods.remove(&node)
        };
        pods.unwrap_or_default()
    }
}

impl Source for Saved {
    async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan> {
        Ok(Scan {
            facts: ClusterFacts {
                now: self.now,
                node_count: self.all::<RawNode>().count(),
                unseen: self.missing(wanted),
                ..ClusterFacts::default()
            },
            not_ready: self
                .all::<RawNode>()
                .filter(|node| node.ready() != Ready::True)
                .map(|node| node.metadata.name.clone())
                .collect(),
            ready: if self.options.now.is_none() {
                self.all::<RawNode>()
                    .filter(|node| node.ready() == Ready::True)
                    .map(|node| node.metadata.name.clone())
                    .collect()
            } else {
                Vec::new()
            },
            thorough: true,
            ..Scan::default()
        })
    }

    async fn node(&self, name: &str, now: Timestamp) -> NodeRead {
        let raw = match self.proved::<RawNode>("", name) {
            Ok(Some(raw)) => raw,
            // The file holds nodes, so a node that is not in it does not exist.
            Ok(None) => return NodeRead::Gone,
            Err(unread) => return NodeRead::Unread(unread),
        };
        let own = self.proved(RawLease::OF_NODES, name);
        match raw.into_facts(now, &own, &self.options.selectors) {
            Ok(facts) => NodeRead::Known(facts),
            Err(cause) => {
                self.note_error(RawNode::KIND, "", name, &cause);
                NodeRead::Unread(Unread(cause))
            }
        }
    }

    async fn leases(&self, holders: &Holders) -> Option<BTreeMap<String, Read<Vec<RawLease>>>> {
        let bad = self.malformed.iter().find(|((kind, namespace, _), _)| {
            ["", RawLease::KIND].contains(&kind.as_str()) && namespace != RawLease::OF_NODES
        });
        let of_node = |node: String| {
            let others = self.all().filter(|lease| !RawLease::is_of_node(lease));
            let named = others.filter(|lease| holders.of(&node, lease).next().is_some());
            let read = match bad {
                Some((_, cause)) => Err(Unread(format!("one of them: {cause}"))),
                None => Ok(named.cloned().collect()),
            };
            (node, read)
        };
        Some(holders.nodes().into_iter().map(of_node).collect())
    }

    /// A file without any driver counts as one whose drivers attach.
    async fn detached_drivers(&self) -> Read<BTreeSet<String>> {
        self.all_read::<RawDriver>()?;
        let drivers = self.all::<RawDriver>().filter(|driver| !driver.attaches());
        Ok(drivers.map(|driver| driver.metadata.name.clone()).collect())
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        self.all_read::<RawNode>()?;
        let (mut standings, mut traits) = (Standings::new(), Traits::default());
        for node in self.all::<RawNode>() {
            let standing = node.standing(&self.options.selectors, now);
            node.count_traits(&standing, &mut traits);
            standings.insert(node.metadata.name.clone(), standing);
        }
        Ok((standings, traits))
    }

    async fn pod_lists(&self, nodes: &[String], _: bool) -> Result<BTreeSet<PodsOf>> {
        let list = |node: Option<String>| node.map_or(PodsOf::NoNode, PodsOf::Node);
        let nodes = nodes.iter().cloned().map(Some);
        let more = self.pods.borrow();
        Ok(nodes.chain(more.keys().cloned()).map(list).collect())
    }

    async fn pods(&self, list: &PodsOf) -> Result<Pods> {
        let node = match list {
            PodsOf::Node(name) => Some(name.clone()),
            _ => None,
        };
        let on_node = self.summaries.iter();
        let on_node = on_node.filter(|pod| node.is_some() && pod.node == node);
        let mut terminating = self.pods_of(node.as_deref());
        terminating.retain(|pod| pod.metadata.terminating());
        let mut pods = Pods::default();
        on_node.clone().for_each(|pod| pods.add(pod));
        let active = on_node.filter(|pod| pod.is_active()).cloned();
        Ok(Pods {
            heard: terminating.iter().filter_map(RawPod::heard).collect(),
            terminating,
            // A file may hold a pod twice.
            active: active
                .sorted_unstable()
                .dedup_by(|a, b| a.uid == b.uid)
                .collect(),
            whole: !self.any_malformed::<RawPod>(),
            ..pods
        })
    }

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        Ok(self.pods_of(Some(node)))
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let is = |it: &Meta| it.namespace == namespace && it.name == name;
        let pods = self.pods.borrow();
        match pods.values().flatten().rfind(|pod| is(&pod.metadata)) {
            Some(pod) => Ok(Some(pod.clone())),
            // A pod that could not be read may be this one, so its absence would be a guess.
            None => self.proved(namespace, name).map_err(|Unread(cause)| {
                let cause = format!("pod {namespace}/{name} could not be read: {cause}");
                CouldNotRun::Source(cause)
            }),
        }
    }

    async fn summaries(&self, list: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        let is_listed = |pod: &&PodSummary| match list {
            PodsOf::Namespace(namespace) => pod.namespace == *namespace,
            PodsOf::Name(name) => pod.name == *name,
            _ => false,
        };
        let found = self.summaries.iter().filter(is_listed).cloned();
        Ok((found.collect(), !self.any_malformed::<RawPod>()))
    }

    /// Returns `None` if the file has no namespace. The report then names opt-outs as unseen; an
    /// error would hold every pod.
    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        let all = self.all::<RawNamespace>().map(|it| &it.metadata);
        let all = all.map(|it| (it.name.clone(), it.namespace_facts()));
        self.is_saved::<RawNamespace>().then(|| Ok(all.collect()))
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        let mut attachments = BTreeMap::<_, Vec<_>>::new();
        for attachment in self.all::<RawAttachment>().cloned() {
            let (node, attachment) = attachment.into_facts();
            attachments.entry(node).or_default().push(attachment);
        }
        attachments
    }

    async fn claim(&self, namespace: &str, name: &str) -> FoundClaim {
        match self.find::<RawClaim>(namespace, name) {
            Ok(Some(claim)) => {
                let volume = claim.volume_name().map(|name| self.find("", name));
                claim.into_found(volume.unwrap_or(Ok(None)))
            }
            Ok(None) => ClaimState::Absent.into(),
            Err(unread) => ClaimState::Unread(unread).into(),
        }
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let selector = selector.parse::<Selector>().map_err(Unread)?;
        let names = self
            .all::<RawNode>()
            .filter(|node| node.is_labelled(&selector) && !node.is_leaf(&self.options.selectors))
            .map(|node| node.metadata.name.clone())
            .collect_vec();
        // A node that could not be read may be one of them.
        if names.len() < 2 {
            self.all_read::<RawNode>()?;
        }
        Ok(names)
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        _: bool,
    ) -> Read<Option<RawStatefulSet>> {
        self.find(namespace, name)
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }
}
