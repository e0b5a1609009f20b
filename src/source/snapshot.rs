//! The source that is a snapshot: a file with a saved cluster state.
//!
//! `pod-reaper save` writes such a file, and says in it what was read. A file may also hold what `kubectl get
//! no,ns,po,pvc,pv,leases,volumeattachments,csidrivers,sts -Ao json --show-managed-fields` prints, or any part of it: as one
//! list, or as several documents in a row. If such a file has no object of a kind, the kind was not saved, or the cluster
//! has none: its facts are then unknown, never assumed.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    cluster::{About, Api, Failure, Listed, Of},
    exit::{CouldNotRun, Result},
    facts::{PodsOf, ReadError, Ready},
    history::CONFIG_MAP,
    judge::Policy,
    kubernetes::{
        Kind, Malformed, RawAttachment, RawClaim, RawConfigMap, RawDriver, RawKind, RawLease,
        RawList, RawNamespace, RawNode, RawPod, RawSaved, RawStatefulSet, RawVolume, Row, SAVED,
        SAVED_VERSION, full_name,
    },
    selector::{NamespaceFilter, NodeSelectors},
    words::{joined, name},
};

/// The command that makes a snapshot.
const SAVES_ONE: &str = "pod-reaper save";

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
    /// The objects of each kind.
    objects: BTreeMap<&'static str, BTreeMap<ObjectKey, Box<dyn Any + Send>>>,
    /// The pods of each node, which are listed node by node, ordered by namespace and name.
    pods_of_nodes: BTreeMap<String, Vec<ObjectKey>>,
    /// The newest moment at which the API server wrote an object of the file.
    newest: Option<Timestamp>,
    /// Whether a node, a pod or a lease has stamps of the API server.
    has_stamps: bool,
    /// An object of which the file has two versions, if there is one.
    twice: Option<String>,
    /// The objects that could not be read.
    malformed: BTreeSet<Malformed>,
    /// What the file says that it has; `None` if it does not say so.
    manifest: Option<RawSaved>,
}

/// Namespace, name and, for pods only, UID of an object.
type ObjectKey = [String; 3];

/// The kinds that a file may lack without each read failing: that it lacks namespaces or leases is said once, and no
/// verdict depends on a history.
const MAY_LACK: [&str; 3] = [RawNamespace::KIND, RawLease::KIND, RawConfigMap::KIND];

/// The kinds that are kept.
const KEPT: [fn(&mut Saved, &RawKind, &str); 10] = [
    Saved::keep::<RawNode>,
    Saved::keep::<RawLease>,
    Saved::keep::<RawNamespace>,
    Saved::keep::<RawPod>,
    Saved::keep::<RawStatefulSet>,
    Saved::keep::<RawClaim>,
    Saved::keep::<RawVolume>,
    Saved::keep::<RawAttachment>,
    Saved::keep::<RawDriver>,
    Saved::keep::<RawConfigMap>,
];

/// The group of our own objects.
const OWN_GROUP: &str = "pod-reaper.io/";

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
        let (mut text, one_more) = (Vec::new(), most.saturating_add(1));
        let read = if path == Path::new("-") {
            io::stdin().take(one_more).read_to_end(&mut text)
        } else {
            File::open(&path).and_then(|file| file.take(one_more).read_to_end(&mut text))
        };
        read.map_err(|error| {
            CouldNotRun::Usage(format!(
                "--snapshot {}: {error}; name a file that `{SAVES_ONE}` wrote, or - for standard input",
                path.display()
            ))
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
    saved.check_annotations(&policy.node_selectors)?;
    if !dead.is_empty() {
        saved.suppose_dead(dead, policy).await?;
    }
    Ok(saved)
}

/// Adds the name of the file to an error about a snapshot.
fn in_snapshot<E: Display>(file: &Path) -> impl Fn(E) -> CouldNotRun {
    move |cause| CouldNotRun::Source(format!("--snapshot {}: {cause}", file.display()))
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
        let no_state = |why: &dyn Display| {
            format!("it has no saved cluster state ({why}); save the state with `{SAVES_ONE}`")
        };
        let mut saved = Self::default();
        for document in serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>() {
            // The parser's error gives line and column.
            let document = document.map_err(|error| no_state(&error))?;
            let items = match list(document.get()) {
                None => vec![document],
                Some(list) if list.metadata.next.is_empty() => list.items.unwrap_or_default(),
                Some(list) => {
                    return Err(format!(
                        "its {} goes on elsewhere (metadata.continue): nobody could say what is absent; save all of it with `{SAVES_ONE}`",
                        name(list.kind)
                    ));
                }
            };
            for item in items {
                saved.add(item.get()).map_err(|why| no_state(&why))?;
            }
        }
        for (key, pod) in saved.objects.get(RawPod::KIND).into_iter().flatten() {
            let pod = pod.downcast_ref();
            if let Some(node) = pod.and_then(|pod: &RawPod| pod.facts.node.clone()) {
                let of_node = saved.pods_of_nodes.entry(node).or_default();
                of_node.push(key.clone());
            }
        }
        if let Some(object) = &saved.twice {
            return Err(format!(
                "it has two versions of {object}: nobody could say which is right; save all of it at once, with `{SAVES_ONE}`"
            ));
        }
        if let Some(manifest) = &saved.manifest {
            saved.malformed.extend(manifest.malformed.clone());
            saved.newest = manifest.time;
        }
        if saved.manifest.is_none() {
            saved.newest = saved.newest.max(saved.renewed());
        }
        saved.at_given_time = now.is_some();
        saved.now = now.or(saved.newest).ok_or(UNDATED)?;
        // Every sign of life would seem to come from this very moment.
        if let Some(newest) = saved.newest.filter(|newest| *newest > saved.now) {
            let now = saved.now;
            return Err(format!(
                "it was saved at {newest}, and --now {now} is earlier"
            ));
        }
        Ok(saved)
    }

    /// Refuses selectors of annotations that the file may lack.
    fn check_annotations(&self, selectors: &NodeSelectors) -> Result<()> {
        let Some(manifest) = &self.manifest else {
            return Ok(());
        };
        let is_lacking = |key: &&str| !manifest.annotations.iter().any(|it| it == key);
        match selectors.annotations().find(is_lacking) {
            None => Ok(()),
            Some(key) => Err(CouldNotRun::Usage(format!(
                "the file was saved without the annotation {key}; save again with the selectors of this audit"
            ))),
        }
    }

    /// Changes the state as if these nodes had died when the file was saved, and it were judged an
    /// hour later: Kubernetes has noticed, and has evicted their pods. Only these pods stay
    /// Terminating. The Ready counts of `StatefulSets` would have changed, so they are not known.
    async fn suppose_dead(&mut self, nodes: &[String], policy: &Policy) -> Result<()> {
        let failed = self.now.saturating_add(UNTIL_NOT_READY).unwrap_or(self.now);
        for name in nodes {
            let lived = self.shows_alive(name, policy).await;
            let is_it = |node: &&mut RawNode| node.metadata.name == *name;
            let Some(node) = self.all_mut().find(is_it) else {
                let why = format!("--suppose-dead {name}: the file has no node of this name");
                return Err(CouldNotRun::Usage(why));
            };
            node.fail(failed, lived);
        }
        self.objects_of::<RawPod>().retain(|_, pod| {
            let Some(pod) = pod.downcast_mut::<RawPod>() else {
                return false;
            };
            let node = pod.facts.node.as_ref();
            let is_there = node.is_some_and(|node| nodes.contains(node));
            if is_there {
                pod.evict(failed);
            }
            is_there || pod.facts.deletion.is_none()
        });
        self.all_mut().for_each(RawStatefulSet::forget_status);
        // No run has reaped anything of a node that is only supposed to be dead.
        self.objects.remove(RawConfigMap::KIND);
        self.now = self
            .now
            .saturating_add(SUPPOSED_DEAD_FOR)
            .unwrap_or(self.now);
        self.at_given_time = true;
        Ok(())
    }

    /// Reports whether the file shows that the node's machine is alive.
    async fn shows_alive(&self, name: &str, policy: &Policy) -> bool {
        let Ok(Some(objects)) = self.node(name).await else {
            return false;
        };
        objects.into_facts(policy).is_ok_and(|node| {
            node.ready == Ready::True || !node.signs_of_life(self.now, policy).is_empty()
        })
    }

    /// Returns the median of the times at which the Ready nodes renewed their leases, by their own
    /// clocks: a few wrong clocks do not change the median. If two times are in the middle, it is
    /// the earlier one.
    fn renewed(&self) -> Option<Timestamp> {
        let renewed = self
            .all::<RawLease>()
            .filter(|lease| lease.is_of_node())
            .filter(|lease| {
                let node = self.object::<RawNode>("", &lease.metadata.name);
                node.is_some_and(|node| node.ready() == Ready::True)
            })
            .filter_map(RawLease::renewed)
            .sorted()
            .collect_vec();
        renewed.get(renewed.len().saturating_sub(1) / 2).copied()
    }

    /// Reports whether the file has leases of nodes, or may have some.
    fn has_leases(&self) -> bool {
        self.manifest.is_some()
            || self.malformed::<RawLease>().next().is_some()
            || self.all().any(RawLease::is_of_node)
    }

    /// Adds one object. Fails if it does not say its kind, or is a list itself.
    fn add(&mut self, text: &str) -> Result<(), &'static str> {
        let own = object::<RawKind>(text)
            .filter(|own| !own.kind.is_empty())
            .ok_or("an object does not say its kind")?;
        let RawKind { api_version, kind } = &own;
        if kind.ends_with("List") && list(text).is_some() {
            return Err("a list inside another list");
        }
        match kind.as_str() {
            SAVED if api_version.starts_with(OWN_GROUP) => {
                if api_version != SAVED_VERSION {
                    return Err("it is of another version of pod-reaper");
                }
                self.manifest = object(text);
                if self.manifest.is_none() {
                    return Err("a field of its Saved has an unexpected type");
                }
            }
            RawConfigMap::KIND if Malformed::new(kind, text, "").name != CONFIG_MAP => {}
            _ => KEPT.iter().for_each(|keep| keep(self, &own, text)),
        }
        Ok(())
    }

    /// Keeps an object if it is of this kind, and of its group.
    fn keep<T: Kind>(&mut self, own: &RawKind, text: &str) {
        if own.kind != T::KIND || !T::is_of_group(&own.api_version) {
            return;
        }
        let cause = match T::parsed(text.as_bytes()) {
            Ok(object) => {
                let meta = object.metadata();
                if T::KIND != RawConfigMap::KIND {
                    self.newest = self.newest.max(meta.newest());
                }
                let is_heard = [RawNode::KIND, RawPod::KIND, RawLease::KIND].contains(&T::KIND);
                self.has_stamps |= is_heard && meta.has_stamps();
                // A pod without a name is named when it is judged.
                let is_pod = T::KIND == RawPod::KIND;
                if is_pod || !meta.name.is_empty() && T::NAMESPACED != meta.namespace.is_empty() {
                    self.put(object);
                    return;
                }
                "it lacks its name or namespace"
            }
            Err(cause) => cause,
        };
        self.malformed.insert(Malformed::new(T::KIND, text, cause));
    }

    /// Keeps an object, and notes whether another version of it was there.
    fn put<T: Kind>(&mut self, object: T) {
        let meta = object.metadata();
        let is_pod = T::KIND == RawPod::KIND;
        let uid = if is_pod { meta.uid.as_str() } else { "" };
        let key = [&meta.namespace, &meta.name, uid].map(str::to_owned);
        let objects = self.objects_of::<T>();
        let before = objects.get(&key).and_then(|it| it.downcast_ref::<T>());
        let is_other = |before: &&T| {
            let version = &before.metadata().resource_version;
            *version != meta.resource_version || version.is_empty() && **before != object
        };
        let other = before.filter(is_other).map(|_| {
            let name = full_name(&meta.namespace, &meta.name, "without a name");
            format!("{} {name}", T::KIND)
        });
        objects.insert(key, Box::new(object));
        self.twice = other.or(self.twice.take());
    }

    /// Names the objects and kinds that could not be read. A history is none of them: the report says that by itself.
    fn errors(&self) -> BTreeSet<ReadError> {
        let errors = self
            .malformed
            .iter()
            .filter(|it| it.kind != RawConfigMap::KIND)
            .map(|object| {
                let name = full_name(&object.namespace, &object.name, "without a name");
                ReadError {
                    what: format!("{} {name}", object.kind),
                    cause: object.cause.clone(),
                }
            });
        let unread = self
            .manifest
            .iter()
            .flat_map(|it| &it.unread)
            .filter(|it| it.kind != RawConfigMap::KIND)
            .map(|it| ReadError {
                what: format!("all objects of the kind {}", it.kind),
                cause: it.cause.clone(),
            });
        errors.chain(unread).collect()
    }

    fn object<T: Kind>(&self, namespace: &str, name: &str) -> Option<&T> {
        self.objects
            .get(T::KIND)?
            .range([namespace, name, ""].map(str::to_owned)..)
            .take_while(|(key, _)| key[..2] == [namespace, name])
            .last()?
            .1
            .downcast_ref()
    }

    fn objects_of<T: Kind>(&mut self) -> &mut BTreeMap<ObjectKey, Box<dyn Any + Send>> {
        self.objects.entry(T::KIND).or_default()
    }

    fn all_mut<T: Kind>(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects_of::<T>()
            .values_mut()
            .filter_map(|object| object.downcast_mut())
    }

    /// Lists all objects of a kind, ordered by namespace and name.
    fn all<T: Kind>(&self) -> impl Iterator<Item = &T> {
        self.objects
            .get(T::KIND)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|object| object.downcast_ref())
    }

    /// Lists the objects of the kind `K` of which `is` holds; none if that is not the kind asked for.
    fn all_of<T: Kind, K: Kind>(&self, is: impl Fn(&K) -> bool) -> Vec<&T> {
        self.objects
            .get(K::KIND)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter(|object| object.downcast_ref().is_some_and(&is))
            .filter_map(|object| object.downcast_ref())
            .collect()
    }

    /// Lists the objects of a kind that could not be read.
    fn malformed<T: Kind>(&self) -> impl Iterator<Item = &Malformed> {
        self.malformed
            .iter()
            .filter(|object| object.kind == T::KIND)
    }

    /// Reports whether objects of the kind were saved, readable or not.
    fn is_saved<T: Kind>(&self) -> bool {
        let is_read = |manifest: &RawSaved| manifest.has::<T>();
        self.manifest.as_ref().is_some_and(is_read)
            || self.malformed::<T>().next().is_some()
            || self.all::<T>().next().is_some()
    }

    /// Fails if the file has no object of the kind, unless it may lack the kind: that does not show that the cluster has
    /// none.
    fn is_saved_or_may_lack<T: Kind>(&self) -> Result<(), Failure> {
        let [_, plural] = T::API;
        if let Some(cause) = self.manifest.as_ref().and_then(RawSaved::unread::<T>) {
            return Err(Failure::File(format!(
                "the {plural} were not saved: {cause}"
            )));
        }
        if self.is_saved::<T>() || MAY_LACK.contains(&T::KIND) {
            return Ok(());
        }
        Err(Failure::File(format!(
            "the file has no {plural}: they were not saved, or there are none"
        )))
    }

    /// Reports whether pods of other namespaces may not have been saved. Without -A, kubectl saves the pods of one namespace
    /// only, but still saves all namespaces.
    fn may_lack_pods(&self) -> bool {
        let pods = self.all().map(|pod: &RawPod| &pod.metadata.namespace);
        let is_one = pods.unique().count() == 1;
        self.manifest.is_none() && is_one && self.all::<RawNamespace>().count() != 1
    }

    /// Names the kinds that the file lacks, with the command that saves everything, as lines of text;
    /// none if the file is complete.
    fn unseen(&self, namespaces: &NamespaceFilter) -> Vec<String> {
        if self.manifest.is_some() {
            return Vec::new();
        }
        let bound = self.all::<RawClaim>().any(|it| it.volume_name().is_some());
        let uses_claims = self.all().any(|pod: &RawPod| pod.facts.uses_claims());
        let has_disks = self.all::<RawVolume>().any(RawVolume::may_be_disk);
        let may_attach = self.all().any(RawVolume::may_be_attached);
        let of_set = |pod: &RawPod| {
            let is_deleted = pod.facts.deletion.is_some();
            is_deleted && pod.facts.uses_claims() && pod.facts.stateful_set().is_some()
        };
        let of_sets = self.all().any(of_set);

        let missing = [
            (
                !self.has_stamps,
                "managedFields (--show-managed-fields; without them, a wrong clock of a node is not seen)",
            ),
            (
                self.may_lack_pods() && namespaces.include.is_none(),
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

impl Api for Saved {
    async fn rows<R: Row, A: Default>(
        &self,
        add: impl Fn(&mut A, R),
    ) -> Result<(Option<Timestamp>, A), Failure> {
        self.is_saved_or_may_lack::<R::Object>()?;
        let mut rows = A::default();
        self.all()
            .for_each(|object| add(&mut rows, R::of_object(object)));
        Ok((Some(self.now), rows))
    }

    /// `None` only if the file proves that the object does not exist. A malformed object of that name, or without a name,
    /// may be it.
    async fn get<T: Kind>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(T, Option<Timestamp>)>, Failure> {
        if let Some(found) = self.object::<T>(namespace, name) {
            return Ok(Some((found.clone(), Some(self.now))));
        }
        let may_be = |bad: &str, wanted: &str| bad.is_empty() || bad == wanted;
        let is_it = |bad: &&Malformed| may_be(&bad.namespace, namespace) && may_be(&bad.name, name);
        match self.malformed::<T>().find(is_it) {
            Some(Malformed { cause, .. }) => Err(Failure::File(format!(
                "the snapshot's {} could not be read: {cause}",
                T::KIND
            ))),
            None => self.is_saved_or_may_lack::<T>().map(|()| None),
        }
    }

    async fn each<T: Kind, A: Default>(
        &self,
        of: Of<'_>,
        add: impl Fn(&mut A, &T),
    ) -> Result<Listed<A>, Failure> {
        self.is_saved_or_may_lack::<T>()?;
        let objects = match of {
            Of::All => self.all().collect_vec(),
            Of::Nodes(selector) => self.all_of(|node: &RawNode| node.is_labelled(selector)),
            Of::Pods(PodsOf::Node(node)) => {
                let keys = self.pods_of_nodes.get(node).into_iter().flatten();
                keys.filter_map(|key| self.objects.get(T::KIND)?.get(key)?.downcast_ref())
                    .collect()
            }
            Of::Pods(PodsOf::NoNode) => self.all_of(|pod: &RawPod| pod.facts.node.is_none()),
            Of::Pods(PodsOf::Finished) => Vec::new(),
            Of::Pods(PodsOf::Namespace(namespace)) => {
                self.all_of(|pod: &RawPod| pod.metadata.namespace == *namespace)
            }
            Of::Pods(PodsOf::Name(name)) => self.all_of(|pod: &RawPod| pod.metadata.name == *name),
        };
        let mut items = A::default();
        for object in objects {
            add(&mut items, object);
        }
        Ok(Listed {
            items,
            malformed: self.malformed::<T>().cloned().collect(),
            date: Some(self.now),
        })
    }

    fn about(&self, namespaces: &NamespaceFilter) -> About {
        About {
            cluster_name: None,
            is_file: true,
            is_part: self.manifest.is_none(),
            errors: self.errors(),
            unseen: self.unseen(namespaces),
            may_lack_pods: self.may_lack_pods(),

            lacks_namespaces: self.manifest.is_none() && !self.is_saved::<RawNamespace>(),
            lacks_leases: !self.has_leases(),
            at_given_time: self.at_given_time,
        }
    }

    fn could_not(&self, what: &str, cause: &Failure) -> CouldNotRun {
        let what = what.trim_start_matches("read ").trim_start_matches("list ");
        CouldNotRun::Source(format!("{what} could not be read: {cause}"))
    }
}

/// Reads a list; `None` if the value is anything else.
fn list(text: &str) -> Option<RawList<'_>> {
    object::<RawList<'_>>(text).filter(|list| list.kind.ends_with("List"))
}

/// Parses an object; `None` if it is none. The parser alone would also read an array, as the fields
/// in their order.
fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    text.starts_with('{')
        .then(|| serde_json::from_str(text))?
        .ok()
}
