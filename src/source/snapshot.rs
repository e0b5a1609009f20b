//! The source that is a snapshot: a file with a saved cluster state.
//!
//! The file holds what `kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json
//! --show-managed-fields` prints, or any part of it: as one list, or as several documents in a row.
//! If the file has no object of a kind, the kind was not saved, or the cluster has none: its facts
//! are then unknown, never assumed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{error::Category, value::RawValue};

use super::{Gaps, NodeRow, NodeRows, Source};
use crate::{
    cluster::{Failure, Listed},
    exit::{CouldNotRun, Result},
    facts::{Namespaces, NodeFacts, PodFacts, PodsOf, ReadError, Ready, Unread},
    history::CONFIG_MAP,
    judge::Policy,
    kubernetes::{
        Holders, Kind, LeasesByNode, Malformed, Meta, NodeObjects, RawAttachment, RawClaim,
        RawConfigMap, RawDriver, RawKind, RawLease, RawList, RawNamespace, RawNode, RawPod,
        RawStatefulSet, RawVolume, full_name,
    },
    selector::{NodeSelectors, Selector},
    settings::Settings,
    words::{joined, name, near, prefixed},
};

/// The command that makes a snapshot.
const SAVES_ONE: &str = "kubectl get no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields";

/// The time between the last sign of a machine and the moment at which its node becomes NotReady, as
/// Kubernetes counts it by default (`--node-monitor-grace-period`).
const UNTIL_NOT_READY: SignedDuration = SignedDuration::from_secs(50);
/// The time since which nodes that are supposed to be dead are dead.
const SUPPOSED_DEAD_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The error for a snapshot that does not tell when it was taken.
const UNDATED: &str =
    "nothing in it says when it was taken; set it with --now, such as --now 2026-01-31T03:00:00Z";

/// A saved cluster state, held in memory as typed objects.
#[derive(Default)]
pub struct Saved {
    /// Whether the user gave the moment to judge at.
    at_given_time: bool,
    /// The moment to judge at.
    now: Timestamp,
    objects: Objects,
    /// The newest moment at which the API server wrote an object of the file.
    newest: Option<Timestamp>,
    /// Whether a node, a pod or a lease has stamps of the API server.
    has_stamps: bool,
    /// The resource version of each object, by kind, or its text if it has none.
    versions: BTreeMap<(&'static str, ObjectKey), String>,
    /// An object of which the file has two versions, if there is one.
    twice: Option<String>,
    /// The objects that could not be read, each with its kind, which is empty if it could not be read
    /// either.
    malformed: BTreeSet<(String, Malformed)>,
    /// The history of each namespace. It decides nothing, so it is no object of a kind that may lack,
    /// or tell the time.
    histories: BTreeMap<String, Result<RawConfigMap, Failure>>,
}

/// Namespace, name and, for pods only, UID of an object.
type ObjectKey = [String; 3];

/// A kind of object that a snapshot keeps.
pub trait Kept: Kind {
    fn of(objects: &Objects) -> &BTreeMap<ObjectKey, Self>;
}

/// Declares the kinds that a snapshot keeps.
macro_rules! objects {
    ($($field:ident: $type:ident),* $(,)?) => {
        /// The objects of a snapshot, kind by kind.
        #[derive(Default)]
        pub struct Objects {
            $($field: BTreeMap<ObjectKey, $type>,)*
        }

        $(impl Kept for $type {
            fn of(objects: &Objects) -> &BTreeMap<ObjectKey, Self> {
                &objects.$field
            }
        })*

        impl Saved {
            /// Keeps an object, if it is of one of these kinds.
            fn keep(&mut self, kind: &str, api_version: &str, text: &str) {
                match kind {
                    $($type::KIND if $type::is_of_group(api_version) => {
                        let parsed = self.parsed::<$type>(text);
                        self.objects.$field.extend(parsed);
                    })*
                    _ => {}
                }
            }
        }
    };
}

objects! {
    nodes: RawNode,
    leases: RawLease,
    namespaces: RawNamespace,
    pods: RawPod,
    stateful_sets: RawStatefulSet,
    claims: RawClaim,
    volumes: RawVolume,
    attachments: RawAttachment,
    drivers: RawDriver,
}

/// How much of a file is looked at first: no more is read if it does not begin as JSON.
const BEGINNING_BYTES: u64 = 1 << 16;

/// Reads `file`, of at most `most` bytes, in a thread of its own, because standard input (`-`) may never
/// end. `now` is the moment to judge at, if the user gives one; `dead` are the nodes to suppose dead.
pub async fn open(
    file: &Path,
    most: u64,
    now: Option<Timestamp>,
    dead: &[String],
    policy: &Policy,
) -> Result<Saved> {
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let read = if path == Path::new("-") {
            beginning(io::stdin(), most)
        } else {
            File::open(&path).and_then(|file| beginning(file, most))
        };
        let text = read.map_err(|error| {
            let remedy = format!(
                "name a file that holds what `{SAVES_ONE}` prints, or - for standard input"
            );
            match error.kind() {
                io::ErrorKind::NotFound => CouldNotRun::Usage(format!(
                    "--snapshot {}: there is no such file; {remedy}",
                    path.display()
                )),
                _ => in_snapshot(&path)(format!("{error}; {remedy}")),
            }
        })?;
        if text.len() as u64 > most {
            let why = format!(
                "it has more than {most} bytes; if it is a saved cluster state, raise --max-snapshot-size, as far as memory allows"
            );
            return Err(in_snapshot(&path)(why));
        }
        Saved::read(&text, now).map_err(in_snapshot(&path))
    });
    let mut saved = read.await.map_err(in_snapshot(file))??;
    if !dead.is_empty() {
        saved.suppose_dead(dead, policy)?;
    }
    Ok(saved)
}

/// Reads a text to its end, but one byte more than `most` at most, and only its beginning if that is not
/// the beginning of JSON.
fn beginning(from: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let (mut text, mut from) = (Vec::new(), from.take(most.saturating_add(1)));
    from.by_ref().take(BEGINNING_BYTES).read_to_end(&mut text)?;
    if matches!(text.trim_ascii_start(), [] | [b'{' | b'[', ..]) {
        from.read_to_end(&mut text)?;
    }
    Ok(text)
}

/// Adds the name of the file to an error about a snapshot.
fn in_snapshot<E: Display>(file: &Path) -> impl Fn(E) -> CouldNotRun {
    move |cause| CouldNotRun::Source(format!("--snapshot {}: {cause}", file.display()))
}

/// Recognizes a file that is not JSON by its first bytes. Returns its format, and what to do about
/// it.
fn other_format(start: &[u8]) -> Option<&'static str> {
    let is_yaml = ["---", "apiVersion:", "items:", "kind:"]
        .iter()
        .any(|key| start.starts_with(key.as_bytes()));
    match start {
        [0x1f, 0x8b, ..] => {
            Some("compressed by gzip; unpack it: gunzip -c FILE | pod-reaper --snapshot -")
        }
        _ => is_yaml.then_some("YAML; save it as JSON, with -o json"),
    }
}

impl Saved {
    /// Reads a snapshot: one list, or several documents in a row. An error says why it cannot be
    /// judged.
    pub fn read(text: &[u8], now: Option<Timestamp>) -> Result<Self, String> {
        // Windows writes a byte order mark at the start of a file.
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        if text.is_empty() {
            return Err(format!("it is empty; save it with `{SAVES_ONE}`"));
        }
        if let Some(form) = other_format(text) {
            return Err(format!("it is {form}"));
        }
        let no_state = |why: &dyn Display| {
            format!("it has no saved cluster state ({why}); save the state with `{SAVES_ONE}`")
        };
        let mut saved = Self::default();
        for document in serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>() {
            let document = document.map_err(|error| match error.classify() {
                Category::Eof => format!(
                    "it is cut off at line {}; save all of it again with `{SAVES_ONE}`",
                    error.line()
                ),
                // The parser's error gives line and column.
                _ => no_state(&error),
            })?;
            let (of_list, items) = match list(document.get()) {
                Some(RawList { kind, metadata, .. }) if !metadata.next.is_empty() => {
                    let kind = if kind.is_empty() {
                        "List".to_owned()
                    } else {
                        name(kind)
                    };
                    return Err(format!(
                        "its {kind} goes on elsewhere (metadata.continue): nobody could say what is absent; save all of it with `{SAVES_ONE}`"
                    ));
                }
                Some(RawList {
                    kind,
                    api_version,
                    items,
                    ..
                }) => {
                    // A plain `List` says nothing about its items.
                    let kind = kind.trim_end_matches("List").to_owned();
                    (RawKind { api_version, kind }, items.unwrap_or_default())
                }
                None => (RawKind::default(), vec![document]),
            };
            for item in items {
                let added = saved.add(&of_list, item.get());
                added.map_err(|why| no_state(&why))?;
            }
        }
        saved.versions.clear();
        if let Some(object) = &saved.twice {
            return Err(format!(
                "it has two versions of {object}: nobody could say which is right; save all of it at once, with `{SAVES_ONE}`"
            ));
        }
        let lacking = |kind| format!("it holds no {kind}; save it with `{SAVES_ONE}`");
        if saved.all::<RawNode>().next().is_none() {
            return Err(lacking("nodes"));
        }
        if !saved.is_saved::<RawPod>() {
            return Err(lacking("pods"));
        }
        // Whole seconds, like the time that a server tells.
        let whole = |time: Timestamp| Timestamp::from_second(time.as_second()).unwrap_or(time);
        saved.newest = saved.newest.max(saved.renewed()).map(whole);
        saved.at_given_time = now.is_some();
        saved.now = now.map(whole).or(saved.newest).ok_or(UNDATED)?;
        // Every sign of life would seem to come from this very moment.
        if let Some(newest) = saved.newest.filter(|newest| *newest > saved.now) {
            let now = saved.now;
            return Err(format!(
                "it was saved at {newest}, and --now {now} is earlier"
            ));
        }
        Ok(saved)
    }

    /// Changes the state as if these nodes had died when the file was saved, and it were judged an
    /// hour later: Kubernetes has noticed, and has evicted their pods. Only these pods stay
    /// Terminating. The Ready counts of `StatefulSets` would have changed, so they are not known.
    fn suppose_dead(&mut self, nodes: &[String], policy: &Policy) -> Result<()> {
        let failed = self.now.saturating_add(UNTIL_NOT_READY).unwrap_or(self.now);
        for name in nodes {
            let lived = self.shows_alive(name, policy);
            let key = ["", name, ""].map(str::to_owned);
            let Some(node) = self.objects.nodes.get_mut(&key) else {
                let all = self.objects.nodes.keys().map(|[_, name, _]| name.as_str());
                let near = prefixed("; ", near(name, all));
                let why = format!("--suppose-dead {name}: the file has no node of this name{near}");
                return Err(CouldNotRun::Usage(why));
            };
            node.fail(failed, lived);
        }
        self.objects.pods.retain(|_, pod| {
            let is_there = pod.node().is_some_and(|node| nodes.contains(&node));
            if is_there {
                pod.evict(failed);
            }
            is_there || !pod.metadata.terminating()
        });
        for set in self.objects.stateful_sets.values_mut() {
            set.forget_status();
        }
        // No run has reaped anything of a node that is only supposed to be dead.
        self.histories.clear();
        self.now = self
            .now
            .saturating_add(SUPPOSED_DEAD_FOR)
            .unwrap_or(self.now);
        self.at_given_time = true;
        Ok(())
    }

    /// Reports whether the file shows that the node's machine is alive.
    fn shows_alive(&self, name: &str, policy: &Policy) -> bool {
        let Some(node) = self.get::<RawNode>("", name) else {
            return false;
        };
        let objects = NodeObjects {
            node: node.clone(),
            lease: Ok(self.get(RawLease::OF_NODES, name).cloned()),
            now: self.now,
        };
        let facts = objects.into_facts(policy);
        let lives =
            |node: NodeFacts| node.ready == Ready::True || !node.signs_of_life(self.now).is_empty();
        facts.is_ok_and(lives)
    }

    /// Returns the median of the times at which the Ready nodes renewed their leases, by their own
    /// clocks: a few wrong clocks do not change the median. If two times are in the middle, it is
    /// the earlier one.
    fn renewed(&self) -> Option<Timestamp> {
        let leases = self.all::<RawLease>().filter(|lease| lease.is_of_node());
        let of_ready = leases.filter(|lease| {
            let node = self.get::<RawNode>("", &lease.metadata.name);
            node.is_some_and(|node| node.ready() == Ready::True)
        });
        let renewed = of_ready.filter_map(|lease| lease.renewal()?.renew_time);
        let renewed = renewed.sorted().collect_vec();
        renewed.get(renewed.len().saturating_sub(1) / 2).copied()
    }

    /// Reports whether the file has leases of nodes, or may have some.
    fn has_leases(&self) -> bool {
        self.malformed::<RawLease>().next().is_some() || self.all().any(RawLease::is_of_node)
    }

    /// Adds one object. `of_list` is the kind of an object that does not state its own; empty if its
    /// list does not state it either. Fails if the object is a list itself.
    fn add(&mut self, of_list: &RawKind, text: &str) -> Result<(), &'static str> {
        let Some(own) = object::<RawKind>(text) else {
            let why = "a field has an unexpected type";
            self.note_malformed(&of_list.kind, text, why);
            return Ok(());
        };
        if may_be_list(&own.kind) && list(text).is_some() {
            return Err("a list inside another list");
        }
        let RawKind { api_version, kind } = if own.kind.is_empty() { of_list } else { &own };
        match kind.as_str() {
            "" => self.note_malformed("", text, "it does not say its kind"),
            RawConfigMap::KIND if RawConfigMap::is_of_group(api_version) => {
                let named = Malformed::new(text, "");
                if named.name == CONFIG_MAP {
                    let read = RawConfigMap::parsed(text.as_bytes());
                    if let Ok(read) = &read {
                        self.note_version::<RawConfigMap>(&read.metadata, text);
                    }
                    let read = read.map_err(|cause| Failure::File(cause.to_owned()));
                    self.histories.insert(named.namespace, read);
                }
            }
            _ => self.keep(kind, api_version, text),
        }
        Ok(())
    }

    /// Parses an object, and returns it with its key; `None` if it is malformed.
    fn parsed<T: Kind>(&mut self, text: &str) -> Option<(ObjectKey, T)> {
        let cause = match T::parsed(text.as_bytes()) {
            Ok(mut object) => {
                let meta = object.metadata();
                self.newest = self.newest.max(meta.newest());
                let is_heard = [RawNode::KIND, RawPod::KIND, RawLease::KIND].contains(&T::KIND);
                self.has_stamps |= is_heard && meta.has_stamps();
                // A pod without a name is named when it is judged.
                let is_pod = T::KIND == RawPod::KIND;
                if is_pod || !meta.name.is_empty() && T::NAMESPACED != meta.namespace.is_empty() {
                    let key = self.note_version::<T>(meta, text);
                    return Some((key, object));
                }
                "it lacks its name or namespace"
            }
            Err(cause) => cause,
        };
        self.note_malformed(T::KIND, text, cause);
        None
    }

    /// Notes the version of an object, and whether another one was there. Returns its key.
    fn note_version<T: Kind>(&mut self, meta: &Meta, text: &str) -> ObjectKey {
        let is_pod = T::KIND == RawPod::KIND;
        let uid = if is_pod { meta.uid.as_str() } else { "" };
        let key = [&meta.namespace, &meta.name, uid].map(str::to_owned);
        let version = match meta.resource_version.to_string() {
            none if none.is_empty() => text.to_owned(),
            version => version,
        };
        let versions = self.versions.entry((T::KIND, key.clone()));
        if *versions.or_insert(version.clone()) != version {
            let name = full_name(&meta.namespace, &meta.name, "without a name");
            self.twice = Some(format!("{} {name}", T::KIND));
        }
        key
    }

    fn note_malformed(&mut self, kind: &str, text: &str, cause: &str) {
        let object = Malformed::new(text, cause);
        self.malformed.insert((kind.to_owned(), object));
    }

    /// Names the objects that could not be read.
    fn errors(&self) -> BTreeSet<ReadError> {
        let errors = self.malformed.iter().map(|(kind, object)| {
            let kind = if kind.is_empty() { "object" } else { kind };
            let name = full_name(&object.namespace, &object.name, "without a name");
            ReadError {
                what: format!("{kind} {name}"),
                cause: object.cause.clone(),
            }
        });
        errors.collect()
    }

    fn get<T: Kept>(&self, namespace: &str, name: &str) -> Option<&T> {
        let objects = T::of(&self.objects).range([namespace, name, ""].map(str::to_owned)..);
        let of_name = objects.take_while(|(key, _)| key[..2] == [namespace, name]);
        Some(of_name.last()?.1)
    }

    /// Lists all objects of a kind, ordered by namespace and name.
    fn all<T: Kept>(&self) -> impl Iterator<Item = &T> {
        T::of(&self.objects).values()
    }

    /// Lists the objects that could not be read and are, or may be, of the kind.
    fn malformed<T: Kept>(&self) -> impl Iterator<Item = &Malformed> {
        let objects = self.malformed.iter();
        let of_kind = objects.filter(|(kind, _)| ["", T::KIND].contains(&kind.as_str()));
        of_kind.map(|(_, object)| object)
    }

    /// Reports whether objects of the kind were saved, readable or not.
    fn is_saved<T: Kept>(&self) -> bool {
        self.malformed::<T>().next().is_some() || self.all::<T>().next().is_some()
    }

    /// Names the kinds that the file lacks, with the command that saves everything, as lines of text;
    /// none if the file is complete.
    fn unseen(&self, settings: &Settings) -> Vec<String> {
        let bound = self.all::<RawClaim>().any(|it| it.volume_name().is_some());
        let uses_claims = self.all().any(RawPod::uses_claims);
        let has_disks = self.all::<RawVolume>().any(RawVolume::may_be_disk);
        let may_attach = self.all().any(RawVolume::may_be_attached);
        let of_set = |pod: &RawPod| {
            pod.metadata.terminating() && pod.uses_claims() && pod.facts().stateful_set().is_some()
        };
        let of_sets = self.all().any(of_set);
        // Without -A, kubectl saves the pods of one namespace only, but still saves all namespaces.
        let pods = self.all().map(|pod: &RawPod| &pod.metadata.namespace);
        let one = pods.unique().count() == 1 && self.all::<RawNamespace>().count() != 1;
        let missing = [
            (
                !self.has_stamps,
                "managedFields (--show-managed-fields; without them, a wrong clock of a node is not seen)",
            ),
            (
                one && settings.namespaces.include.is_none(),
                "pods of other namespaces (-A)",
            ),
            (
                !self.is_saved::<RawNamespace>(),
                "namespaces (whether they are opted out)",
            ),
            (
                !self.has_leases(),
                "leases (which show whether a node is alive)",
            ),
            (
                self.has_leases() && self.all().all(RawLease::is_of_node),
                "leases outside kube-node-lease (by which programs on a silent node may show that it is alive)",
            ),
            (uses_claims && !self.is_saved::<RawClaim>(), "pvc"),
            (bound && !self.is_saved::<RawVolume>(), "pv"),
            (
                has_disks && !self.is_saved::<RawDriver>(),
                "csidrivers (whether anything attaches a disk)",
            ),
            (
                may_attach && !self.is_saved::<RawAttachment>(),
                "volumeattachments (which volumes other nodes get)",
            ),
            (
                of_sets && !self.is_saved::<RawStatefulSet>(),
                "statefulsets (how many other pods are Ready)",
            ),
        ];
        let missing = missing.iter().filter(|(is_missing, _)| *is_missing);
        let Some(missing) = joined(missing.map(|(_, what)| what), ", ") else {
            return Vec::new();
        };
        // The command is on a line of its own, so that it is easy to copy.
        let lacks = format!("The file lacks: {missing}. If they were not saved, save again:");
        vec![lacks, SAVES_ONE.to_owned()]
    }
}

impl Source for Saved {
    async fn node_rows(&self, _: bool) -> Result<NodeRows> {
        let nodes = self.all().map(|node: &RawNode| NodeRow {
            name: node.metadata.name.clone(),
            is_ready: node.ready() == Ready::True,
            roles: node.roles(),
        });
        let nodes = nodes.collect_vec();
        // A moment that the user gave is not compared with the clocks of nodes.
        let compared = nodes
            .iter()
            .filter(|row| row.is_ready && !self.at_given_time);
        let terminating = self.all::<RawPod>();
        let terminating = terminating.filter(|pod| pod.metadata.terminating());
        let lists = terminating.map(|pod| pod.node().map_or(PodsOf::NoNode, PodsOf::Node));
        Ok(NodeRows {
            now: self.now,
            cluster_name: None,
            ready: compared.map(|row| row.name.clone()).collect(),
            pod_lists: Some(lists.collect()),
            nodes,
        })
    }

    async fn namespaces(&self) -> Result<Namespaces, Failure> {
        let mut namespaces = Namespaces::new();
        let all = self.all::<RawNamespace>().cloned();
        all.for_each(|namespace| RawNamespace::add_to(&mut namespaces, namespace));
        Ok(namespaces)
    }

    /// The file contains nodes, so a node that is not in the file does not exist.
    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, Failure> {
        let lease = if self.has_leases() {
            let lease = self.object(RawLease::OF_NODES, name).await;
            lease.map_err(Unread::from)
        } else {
            Ok(None)
        };
        let (node, now) = (self.object("", name).await?, self.now);
        Ok(node.map(|node| NodeObjects { node, lease, now }))
    }

    async fn pods<A: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut A, &RawPod),
    ) -> Result<Listed<A>, Failure> {
        let is_listed = |pod: &&RawPod| match list {
            PodsOf::Node(node) => pod.node().as_ref() == Some(node),
            PodsOf::NoNode => pod.node().is_none(),
            PodsOf::Finished => false,
            PodsOf::Namespace(namespace) => pod.metadata.namespace == *namespace,
            PodsOf::Name(name) => pod.metadata.name == *name,
        };
        let mut items = A::default();
        let pods = self.all().filter(is_listed);
        pods.for_each(|pod| add(&mut items, pod));
        Ok(Listed {
            items,
            malformed: self.malformed::<RawPod>().cloned().collect(),
        })
    }

    async fn other_leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, Failure> {
        let mut malformed = self.malformed::<RawLease>();
        if let Some(bad) = malformed.find(|bad| holders.may_speak(bad)) {
            return Err(Failure::File(format!("one of them: {}", bad.cause)));
        }
        let by_node = self.all::<RawLease>().flat_map(|lease| {
            let nodes = holders.of(lease).into_iter();
            nodes.map(|node| (node.to_owned(), lease.clone()))
        });
        let by_node = by_node.into_group_map().into_iter();
        let by_node = by_node.map(|(node, leases)| (node, Some(leases)));
        Ok(Some(by_node.collect()))
    }

    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, Failure> {
        let selector = selector.parse::<Selector>().map_err(Failure::File)?;
        let names = self
            .all::<RawNode>()
            .filter(|node| node.is_labelled(&selector) && !node.is_leaf(leaf))
            .map(|node| node.metadata.name.clone())
            .collect_vec();
        // A node that could not be read may be one of them.
        if self.malformed::<RawNode>().next().is_some() && names.len() < 2 {
            return Err(could_not_read::<RawNode>());
        }
        Ok(names)
    }

    /// Finds an object; `None` only if the file proves that it does not exist. If the file has no
    /// object of the kind, the kind may not have been saved. A malformed object of that name, or
    /// without a name, may be the one.
    async fn object<T: Kept>(&self, namespace: &str, name: &str) -> Result<Option<T>, Failure> {
        if let Some(found) = self.get::<T>(namespace, name) {
            return Ok(Some(found.clone()));
        }
        let may_be = |bad: &str, wanted: &str| bad.is_empty() || bad == wanted;
        let is_it = |bad: &&Malformed| may_be(&bad.namespace, namespace) && may_be(&bad.name, name);
        match self.malformed::<T>().find(is_it) {
            Some(Malformed { cause, .. }) => Err(Failure::File(format!(
                "the snapshot's {} could not be read: {cause}",
                T::KIND
            ))),
            None if self.is_saved::<T>() => Ok(None),
            None => Err(not_saved::<T>()),
        }
    }

    async fn objects<T: Kept, A: Default>(&self, add: impl Fn(&mut A, T)) -> Result<A, Failure> {
        if !self.is_saved::<T>() {
            return Err(not_saved::<T>());
        }
        if self.malformed::<T>().next().is_some() {
            return Err(could_not_read::<T>());
        }
        let mut items = A::default();
        self.all::<T>()
            .for_each(|object| add(&mut items, object.clone()));
        Ok(items)
    }

    async fn history(&self, namespace: &str) -> Result<Option<RawConfigMap>, Failure> {
        self.histories.get(namespace).cloned().transpose()
    }

    fn gaps(&self, settings: &Settings) -> Gaps {
        Gaps {
            errors: self.errors(),
            unseen: self.unseen(settings),
            are_named: true,
            lacks_namespaces: !self.is_saved::<RawNamespace>(),
            lacks_leases: !self.has_leases(),
        }
    }

    fn pods_at_hand(&self) -> Vec<PodFacts> {
        self.all::<RawPod>().map(RawPod::facts).collect()
    }

    fn could_not(&self, what: &str, cause: &Failure) -> CouldNotRun {
        let what = what.trim_start_matches("read ");
        CouldNotRun::Source(format!("{what} could not be read: {cause}"))
    }
}

/// Reads a list; `None` if the value is anything else.
fn list(text: &str) -> Option<RawList<'_>> {
    object::<RawList<'_>>(text).filter(|list| may_be_list(&list.kind))
}

/// Reports whether a value of this kind is a list, if it has items.
fn may_be_list(kind: &str) -> bool {
    kind.is_empty() || kind.ends_with("List")
}

/// Parses an object; `None` if it is none. The parser alone would also read an array, as the fields
/// in their order.
fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let object = text.starts_with('{').then(|| serde_json::from_str(text));
    object?.ok()
}

/// Returns the failure for a kind of which the file has an object that does not parse.
fn could_not_read<T: Kind>() -> Failure {
    Failure::File(format!("a {} of the snapshot could not be read", T::KIND))
}

/// Returns the failure for a kind of which the file has no object: that does not show that the
/// cluster has none.
fn not_saved<T: Kind>() -> Failure {
    let [_, plural] = T::API;
    Failure::File(format!(
        "the file has no {plural}: they were not saved, or there are none"
    ))
}
