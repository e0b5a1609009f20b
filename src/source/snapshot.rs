//! The other source of facts: a saved cluster state.
//!
//! Reads what `kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields` prints, any subset of
//! it, as one list, as lists in lists, or as several documents in a row. A kind without any object in the file counts
//! as not saved: what it would have shown is then unknown, never assumed.

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
        Kind, Meta, Observed, RawAttachment, RawClaim, RawLease, RawNamespace, RawNode, RawPod,
        RawStatefulSet, RawVolume, identity_of_malformed, malformed,
    },
    selector::{NodeSelectors, Selector},
};

/// How many bytes are read from the file at once.
const CHUNK: usize = 64 * 1024;
/// The command that makes a snapshot.
pub(super) const SAVES_ONE: &str = "kubectl get nodes,ns,pods,pvc,pv,leases,volumeattachments,sts -A -o json --show-managed-fields";

/// What the error says of a snapshot that does not say when it was taken.
pub(super) const UNDATED: &str =
    "nothing in it says when it was taken; set it with --now, such as --now 2026-01-31T03:00:00Z";

/// How a snapshot is to be read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The moment to judge at, where it is given.
    pub now: Option<Timestamp>,
    /// What the operator says of nodes.
    pub selectors: NodeSelectors,
    /// Keep all pods, not only those that a run judges.
    pub every_pod: bool,
}

/// What is kept of a snapshot: of the pods the Terminating ones, of everything what the rules ask about.
#[derive(Default)]
pub struct Saved {
    options: Options,
    /// The moment to judge at.
    now: Timestamp,
    /// All objects but pods, each as the type of its kind.
    objects: BTreeMap<Key, Box<dyn Any + Send>>,
    /// The pods by node. A run takes each out of here, as there may be tens of thousands.
    pods: RefCell<BTreeMap<Option<String>, Vec<RawPod>>>,
    /// Namespaces that have a pod.
    pod_namespaces: BTreeSet<String>,
    /// The pods that use claims, or whose node may not be Ready; all, where every pod is kept.
    summaries: Vec<PodSummary>,
    newest: Option<Timestamp>,
    /// Objects that could not be read, with the cause.
    malformed: BTreeMap<Key, String>,
    memory: Memory,
}

/// Kind, namespace and name; of a malformed object each is empty that could not be read.
type Key = (String, String, String);

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

/// Reads `file`, in a thread of its own: standard input (`-`) may never end.
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

/// Names the file in the error that says why it cannot be judged.
pub fn in_snapshot<E: Display>(file: &Path) -> impl Fn(E) -> CouldNotRun {
    move |cause| CouldNotRun::Source(format!("--snapshot {}: {cause}", file.display()))
}

fn lean<T: Kind>(object: &mut T) {
    object.metadata().drop_idle();
}

/// The error for a snapshot that cannot be read, or is no text.
pub(super) fn unreadable(error: &io::Error) -> String {
    format!("{error}; name a file that holds what `{SAVES_ONE}` prints, or - for standard input")
}

/// What a file is that is no JSON, by its first bytes, and what to do about it.
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
    /// Reads a snapshot, of whatever size, to its end. An error says why it cannot be judged.
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
        // Unconstrained: after 128 answers tokio would have the task wait for its next turn.
        tokio::task::unconstrained(gather(self, wanted, None))
            .now_or_never()
            .expect("the answers are there")
    }

    /// Takes one object. A list is empty: its items come one by one.
    pub(super) fn take(&mut self, kind: &str, text: &str) {
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
            // What is supposed of a node that is Ready may need its stamps.
            "Node" => self.keep(text, |node: &mut RawNode| node.drop_idle(!every_pod)),
            "Lease" => self.keep::<RawLease>(text, |_| {}),
            "Namespace" => self.keep::<RawNamespace>(text, lean),
            "StatefulSet" => self.keep::<RawStatefulSet>(text, lean),
            "PersistentVolumeClaim" => self.keep::<RawClaim>(text, lean),
            "PersistentVolume" => self.keep::<RawVolume>(text, lean),
            "VolumeAttachment" => self.keep::<RawAttachment>(text, lean),
            // Whatever else was saved along is nothing that the rules ask about.
            _ => {}
        }
    }

    fn keep_pod(&mut self, mut pod: RawPod) {
        let node = pod.node();
        self.pod_namespaces.insert(pod.metadata.namespace.clone());
        // Unless its node is known to be Ready, a pod of it may have to be evicted: kubectl prints the nodes first.
        let down = |name: &String| {
            let node = self.get::<RawNode>("", name);
            node.is_none_or(|node| node.ready() != Ready::True)
        };
        let summary = pod.summary();
        let may_stay = summary.is_active() && node.as_ref().is_some_and(down);
        if self.options.every_pod || !summary.claims.is_empty() || may_stay {
            self.summaries.push(summary);
        }
        if self.options.every_pod || pod.metadata.terminating() {
            pod.metadata.drop_idle();
            self.pods.get_mut().entry(node).or_default().push(pod);
        }
    }

    /// Keeps an object, after `lean` has dropped what nothing asks about.
    fn keep<T: Kind>(&mut self, text: &str, lean: impl FnOnce(&mut T)) {
        let cause = match serde_json::from_str::<T>(text) {
            Ok(mut object) => {
                lean(&mut object);
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
        self.lacks(kind, &namespace, &name, cause);
        let key = (kind.to_owned(), namespace, name);
        self.malformed.insert(key, cause.to_owned());
    }

    /// Takes note of an object that lacks what the rules need.
    fn lacks(&self, kind: &str, namespace: &str, name: &str, cause: &str) {
        let kind = if kind.is_empty() { "object" } else { kind };
        let name = if name.is_empty() {
            "without a name"
        } else {
            name
        };
        let slash = if namespace.is_empty() { "" } else { "/" };
        let what = format!("{kind} {namespace}{slash}{name}");
        self.memory.note(what, cause);
    }

    fn get<T: Kind>(&self, namespace: &str, name: &str) -> Option<&T> {
        self.objects
            .get(&key(T::KIND, namespace, name))?
            .downcast_ref()
    }

    /// All objects of a kind, by namespace and name.
    fn all<T: Kind>(&self) -> impl Iterator<Item = &T> {
        self.objects
            .range(key(T::KIND, "", "")..)
            .take_while(|((kind, ..), _)| kind == T::KIND)
            .filter_map(|(_, object)| object.downcast_ref())
    }

    /// An object; `None` only where it is proved that there is none. A malformed object of that name, or of no name, might be it.
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

    /// An error where an object of that kind could not be read.
    fn all_read<T: Kind>(&self) -> Read<()> {
        let unread = || Unread(format!("a {} of the snapshot could not be read", T::KIND));
        self.any_malformed::<T>().then(unread).map_or(Ok(()), Err)
    }

    fn is_saved<T: Kind>(&self) -> bool {
        self.any_malformed::<T>() || self.all::<T>().next().is_some()
    }

    /// What a whole snapshot would hold besides, and the command that saves it.
    fn missing(&self, wanted: &Wanted<'_>) -> Vec<String> {
        let bound = self.all::<RawClaim>().any(|it| it.volume_name().is_some());
        let uses_claims = self.summaries.iter().any(|pod| !pod.claims.is_empty());
        // Without -A, kubectl saves the pods of one namespace, and the names of all.
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
        ]
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what)
        .collect_vec();
        if missing.is_empty() {
            return Vec::new();
        }
        // The command on a line of its own, to be copied.
        let lacks = format!("The file lacks {}. This saves all:", missing.join(", "));
        vec![lacks, SAVES_ONE.to_owned()]
    }

    /// A run asks once, so that the pods are taken out; a forecast asks again for each node.
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
            ready: None,
            thorough: true,
        })
    }

    async fn node(&self, name: &str, now: Timestamp) -> NodeRead {
        let raw = match self.proved::<RawNode>("", name) {
            Ok(Some(raw)) => raw,
            // The file holds nodes, so that one that is not in it does not exist.
            Ok(None) => return NodeRead::Gone,
            Err(unread) => return NodeRead::Unread(unread),
        };
        let bad = self.malformed.iter().find(|((kind, namespace, _), _)| {
            kind == RawLease::KIND && namespace == RawLease::OF_API_SERVERS
        });
        let own = self.proved(RawLease::OF_NODES, name);
        let api_servers = match bad {
            Some((_, cause)) => Err(Unread(format!("those of API servers: {cause}"))),
            None => Ok(self
                .all()
                .filter(|it| RawLease::is_of_api_server(it))
                .cloned()
                .collect()),
        };
        match raw.into_facts(now, &own, &api_servers, &self.options.selectors) {
            Ok(facts) => NodeRead::Known(facts),
            Err(cause) => {
                self.lacks(RawNode::KIND, "", name, &cause);
                NodeRead::Unread(Unread(cause))
            }
        }
    }

    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        self.all_read::<RawNode>()?;
        let (mut standings, mut traits) = (Standings::new(), Traits::default());
        for node in self.all::<RawNode>() {
            let standing = node.standing(&self.options.selectors, now);
            node.count_traits(standing, &mut traits);
            standings.insert(node.metadata.name.clone(), standing);
        }
        Ok((standings, traits))
    }

    async fn places(&self, nodes: &[String], _: bool) -> Result<BTreeSet<PodsOf>> {
        let place = |node: Option<String>| node.map_or(PodsOf::NoNode, PodsOf::Node);
        let nodes = nodes.iter().cloned().map(Some);
        let more = self.pods.borrow();
        Ok(nodes.chain(more.keys().cloned()).map(place).collect())
    }

    async fn pods(&self, place: &PodsOf) -> Result<Pods> {
        let node = match place {
            PodsOf::Node(name) => Some(name.clone()),
            _ => None,
        };
        let active = self
            .summaries
            .iter()
            .filter(|pod| node.is_some() && pod.node == node && pod.is_active())
            .cloned();
        let mut terminating = self.pods_of(node.as_deref());
        terminating.retain(|pod| pod.metadata.terminating());
        Ok(Pods {
            terminating,
            // A file may hold a pod twice.
            active: active
                .sorted_unstable()
                .dedup_by(|a, b| a.uid == b.uid)
                .collect(),
            whole: !self.any_malformed::<RawPod>(),
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
            // What could not be read may be this pod. That it is gone would then be a guess.
            None => self.proved(namespace, name).map_err(|Unread(cause)| {
                let cause = format!("pod {namespace}/{name} could not be read: {cause}");
                CouldNotRun::Source(cause)
            }),
        }
    }

    async fn summaries(&self, pods: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        let is = |pod: &&PodSummary| match pods {
            PodsOf::Namespace(namespace) => pod.namespace == *namespace,
            PodsOf::Name(name) => pod.name == *name,
            _ => false,
        };
        let found = self.summaries.iter().filter(is).cloned();
        Ok((found.collect(), !self.any_malformed::<RawPod>()))
    }

    /// Without any namespace in the file, opt-outs are named as unseen in the report instead of holding every pod.
    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        let all = self.all::<RawNamespace>().map(|it| &it.metadata);
        let all = all.map(|it| (it.name.clone(), it.opted_out()));
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
