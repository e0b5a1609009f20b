//! The parts that all kinds of objects share: lists, metadata and conditions. Also describes an
//! object that cannot be parsed.

use std::{collections::BTreeMap, fmt, mem, ops};

use derive_more::Deref;
use itertools::Itertools as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value,
    error::Category,
    value::{RawValue, to_raw_value},
};

use super::pod::is_program;
use crate::{
    facts::{CLOCK_SKEW, Deletion, ResourceVersion, Skip, Uid},
    words::{self, Foreign},
};

/// The most owners, finalizers and other parts of an object that are kept, and the most bytes of a text in
/// them or in an annotation of ours, and of all finalizers. Kubernetes writes a few, of at most 317 bytes;
/// others may write as much as etcd accepts.
pub const MAX_ITEMS_KEPT: usize = 16;
const MAX_TEXT_BYTES: usize = 1_000;
/// Kubernetes makes UIDs of 36 bytes.
const MAX_UID_BYTES: usize = 64;
/// The annotation or label that opts an object out.
pub const SKIP: &str = "pod-reaper.io/skip";
/// The annotation with a note of the pod's author.
pub const AFTER_REAP: &str = "pod-reaper.io/after-reap";
/// The longest value of [`SKIP`] that is a flag, and no text of a person: `false`.
const MAX_FLAG_BYTES: usize = 5;
/// What stands in a saved file for the texts of people.
const REPLACED: &str = "(not saved)";
/// The label with the machine's own hostname.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The annotation that the kubelet sets on the API's copy of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// A list of objects, each still unparsed, so a malformed object spoils only itself.
#[derive(Debug, Deserialize)]
pub struct RawList<'a> {
    /// The list's kind: `List`, `PodList`, …
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects. A null means no objects, but an object without this field is not a list.
    #[serde(borrow, deserialize_with = "Option::deserialize")]
    pub items: Option<Vec<&'a RawValue>>,
}

raw! {
    /// The kind of an object that is not parsed yet. Both are empty if the object does not state
    /// them.
    pub struct RawKind {
        pub api_version: String,
        /// The kind, which other groups may have too.
        pub kind: String,
    }

    /// The name of an object that could not be read otherwise.
    struct Named {
        metadata: NameAlone,
    }

    struct NameAlone {
        namespace: Value,
        name: Value,
    }

    pub struct ListMeta {
        /// The token of the next page; empty on the last page.
        #[serde(rename = "continue")]
        pub next: String,
    }

    /// The rows that `kubectl get` prints.
    pub struct RawTable {
        pub metadata: ListMeta,
        pub column_definitions: Vec<Column>,
        pub rows: Vec<Row>,
    }

    pub struct Column {
        pub name: String,
    }

    pub struct Row {
        pub cells: Vec<Value>,
    }

    pub struct Meta {
        pub name: String,
        /// The object's namespace; empty if the kind has none.
        pub namespace: String,
        pub uid: Uid,
        /// The version of this state of the object.
        pub resource_version: ResourceVersion,
        pub(super) deletion_timestamp: Option<Timestamp>,
        pub(super) deletion_grace_period_seconds: Option<i64>,
        pub labels: BTreeMap<String, String>,
        pub(super) annotations: BTreeMap<String, String>,
        pub(super) finalizers: Finalizers,
        pub(super) owner_references: Owners,
        pub creation_timestamp: Option<Timestamp>,
        pub(super) managed_fields: Vec<Written>,
    }

    /// An entry of `managedFields`: the fields that a manager has written, and the time, by the API
    /// server's clock.
    pub struct Written {
        pub(super) manager: String,
        time: String,
        pub(super) fields_v1: Option<Fields>,
    }

    pub struct OwnerReference {
        pub api_version: String,
        pub kind: String,
        pub uid: Uid,
        pub name: String,
        pub controller: bool,
    }

    pub struct Condition {
        #[serde(rename = "type")]
        pub kind: String,
        pub status: String,
        pub reason: String,
        pub message: String,
        pub(super) last_transition_time: String,
        pub last_heartbeat_time: Option<Timestamp>,
    }
}

/// The fields of an entry of `managedFields`. They are long, so they are parsed only when a rule needs them.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Fields(Box<RawValue>);

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// The finalizers of an object. If there are more than a run keeps, the last one says how many more.
#[derive(Debug, Clone, Default, PartialEq, Deref, Deserialize, Serialize)]
#[serde(from = "Vec<String>")]
pub struct Finalizers(Vec<String>);

impl From<Vec<String>> for Finalizers {
    fn from(mut names: Vec<String>) -> Self {
        names.iter_mut().for_each(cut);
        let mut length = 0;
        let is_within = |name: &&String| {
            length += name.len();
            length <= MAX_TEXT_BYTES
        };
        let kept = names
            .iter()
            .take(MAX_ITEMS_KEPT)
            .take_while(is_within)
            .count();
        let more = names.len() - kept;
        names.truncate(kept);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.shrink_to_fit();
        Self(names)
    }
}

/// The owners of an object, its controller first. If there are more than [`MAX_ITEMS_KEPT`], one more
/// is kept to show this.
#[derive(Debug, Clone, Default, PartialEq, Deref, Deserialize, Serialize)]
#[serde(from = "Vec<OwnerReference>")]
pub struct Owners(Vec<OwnerReference>);

impl From<Vec<OwnerReference>> for Owners {
    fn from(mut owners: Vec<OwnerReference>) -> Self {
        owners.sort_by_key(|owner| !owner.controller);
        owners.truncate(MAX_ITEMS_KEPT + 1);
        owners.shrink_to_fit();
        for owner in &mut owners {
            for text in [&mut owner.api_version, &mut owner.kind, &mut owner.name] {
                cut(text);
            }
            // It is nobody's UID.
            if owner.uid.len() > MAX_UID_BYTES {
                owner.uid = Uid::default();
            }
        }
        Self(owners)
    }
}

impl Condition {
    /// Returns the time since which the condition has its status. Any controller may write a condition,
    /// and the API server accepts a year beyond the range of [`Timestamp`]: that is no time, so that it
    /// does not make the whole object unreadable.
    pub fn since(&self) -> Option<Timestamp> {
        self.last_transition_time.parse().ok()
    }
}

impl Meta {
    /// Drops the labels and annotations other than these.
    pub(super) fn keep(&mut self, labels: &[&str], annotations: &[&str]) {
        let of = |keys: &[&str], key: &String| keys.contains(&key.as_str());
        self.labels.retain(|key, _| of(labels, key));
        self.annotations.retain(|key, _| of(annotations, key));
    }

    pub(super) fn drop_finalizers_and_owners(&mut self) {
        self.finalizers = Finalizers::default();
        self.owner_references = Owners::default();
    }

    /// Keeps of the stamps only the newest one for the field.
    pub(super) fn keep_newest(&mut self, field: &str) {
        self.managed_fields = mem::take(&mut self.managed_fields)
            .into_iter()
            .filter(|entry| entry.has(field))
            .max_by_key(Written::time)
            .into_iter()
            .collect();
        for entry in &mut self.managed_fields {
            entry.keep(&[field.to_owned()]);
        }
    }

    /// Replaces the texts of people, and drops from `managedFields` all that no rule asks for. `fields` are those that
    /// one asks for, besides labels, annotations and finalizers.
    pub(super) fn strip(&mut self, fields: &[String]) {
        for all in [&mut self.labels, &mut self.annotations] {
            let is_text = |value: &&mut String| {
                value.len() > MAX_FLAG_BYTES && value.parse::<Timestamp>().is_err()
            };
            if let Some(skip) = all.get_mut(SKIP).filter(is_text) {
                REPLACED.clone_into(skip);
            }
        }
        if let Some(note) = self.annotations.get_mut(AFTER_REAP) {
            REPLACED.clone_into(note);
        }
        let labels = self.labels.keys().map(|key| owned_field("labels", key));
        let annotations = self
            .annotations
            .keys()
            .map(|key| owned_field("annotations", key));
        let finalizers = self.finalizers.iter().map(|name| owned_finalizer(name));
        let asked = labels
            .chain(annotations)
            .chain(finalizers)
            .chain(fields.iter().cloned())
            .collect_vec();
        let newest = self.managed_fields.iter().filter_map(Written::time).max();
        self.managed_fields.retain_mut(|entry| {
            entry.keep(&asked);
            entry.fields_v1.is_some() || is_program(entry) || entry.time() == newest
        });
    }

    /// Returns the stamp of the last write to a field, which is given as a JSON pointer into the
    /// fields of an entry; `None` if no entry has the field.
    pub fn written(&self, field: &str) -> Option<Timestamp> {
        self.managed_fields
            .iter()
            .filter(|entry| entry.has(field))
            .filter_map(Written::time)
            .max()
    }

    pub fn finalizers(&self) -> Vec<Foreign> {
        self.finalizers.iter().map(Foreign::from).collect()
    }

    /// Returns the managers that set the finalizers, by finalizer.
    pub fn finalizers_set_by(&self) -> BTreeMap<Foreign, Foreign> {
        let mut managers = BTreeMap::new();
        for entry in &self.managed_fields {
            let fields = entry.fields().unwrap_or_default();
            let mut manager = entry.manager.clone();
            cut(&mut manager);
            let names = self
                .finalizers
                .iter()
                .filter(|name| fields.pointer(&owned_finalizer(name)).is_some());
            managers.extend(names.map(|name| (name.as_str().into(), manager.as_str().into())));
        }
        managers
    }

    /// Returns the last heartbeat of a field's writer, as known at `now`: the later of the API server's stamp and `said`,
    /// the writer's own time. The stamp is right whatever the writer's clock says. A time further in the future than
    /// clocks may differ is no time: whoever writes it would be alive for good.
    pub fn heard(&self, field: &str, said: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let believed = |at: &Timestamp| at.duration_since(now) <= CLOCK_SKEW;
        self.managed_fields
            .iter()
            .filter(|entry| entry.has(field))
            .filter_map(Written::time)
            .filter(believed)
            .max()
            .max(said.filter(believed))
    }

    /// Reports whether the object has stamps of the API server.
    pub fn has_stamps(&self) -> bool {
        !self.managed_fields.is_empty()
    }

    /// Returns the newest moment at which the API server is known to have written the object. The
    /// `deletionTimestamp` may be in the future, so the moment of its request counts. The times of
    /// conditions and renewals do not, because they are by a node's own clock.
    pub fn newest(&self) -> Option<Timestamp> {
        let requested = self.deletion().and_then(|it| it.requested());
        self.managed_fields
            .iter()
            .map(Written::time)
            .chain([self.creation_timestamp, requested])
            .max()?
    }

    /// Returns what opts the object out; `None` if it is not opted out. Any value except `false` opts it
    /// out, because a typing error must not lead to a delete. A time ends an annotation; no label can have one.
    pub fn opted_out(&self) -> Option<Skip> {
        let skip = |(all, may_end): (&BTreeMap<_, _>, bool)| {
            let value: &String = all.get(SKIP)?;
            // The guard leaves exactly the values to us that begin as RFC 3339 writes a time.
            let is_time = may_end && value.as_bytes().get(10) == Some(&b'T');
            (value != "false").then(|| Skip {
                until: value.parse().ok().filter(|_| is_time),
                value: value.as_str().into(),
            })
        };
        [(&self.labels, false), (&self.annotations, true)]
            .into_iter()
            .find_map(skip)
    }

    /// Returns the object's controller; `None` if it has none.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Returns the request to delete the object; `None` if there is none.
    pub fn deletion(&self) -> Option<Deletion> {
        // The API server's sum of a time and centuries of grace overflows into the past.
        let earliest = self.creation_timestamp.unwrap_or(Timestamp::MIN);
        Some(Deletion {
            deadline: self.deletion_timestamp?.max(earliest),
            grace_seconds: self.deletion_grace_period_seconds,
        })
    }

    pub fn terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

impl Written {
    /// Reports whether the entry has the field, which is given as a JSON pointer into its fields.
    fn has(&self, field: &str) -> bool {
        self.fields()
            .is_some_and(|fields| fields.pointer(field).is_some())
    }

    fn fields(&self) -> Option<Value> {
        serde_json::from_str(self.fields_v1.as_ref()?.0.get()).ok()
    }

    /// Returns the time of the write. Like the time of a [`Condition`], it may be beyond the range of
    /// [`Timestamp`].
    pub fn time(&self) -> Option<Timestamp> {
        self.time.parse().ok()
    }

    /// Drops the fields other than these.
    fn keep(&mut self, asked: &[String]) {
        let fields = self.fields().unwrap_or_default();
        let mut kept = Value::Null;
        for path in asked.iter().filter(|path| fields.pointer(path).is_some()) {
            let mut at = &mut kept;
            for step in path.split('/').skip(1) {
                at = &mut at[step.replace("~1", "/").replace("~0", "~")];
            }
            if at.is_null() {
                *at = Value::Object(Map::default());
            }
        }
        self.fields_v1 = Some(kept)
            .filter(|kept| !kept.is_null())
            .and_then(|kept| to_raw_value(&kept).ok())
            .map(Fields);
    }
}

/// Returns the name of an annotation or label in `managedFields`, as a JSON pointer.
pub fn owned_field(of: &str, key: &str) -> String {
    format!("/f:metadata/f:{of}/f:{}", escaped(key))
}

/// Returns the name of a finalizer in `managedFields`, as a JSON pointer.
fn owned_finalizer(name: &str) -> String {
    format!(
        "/f:metadata/f:finalizers/v:{}",
        escaped(&Value::from(name).to_string())
    )
}

/// Returns a name as a step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Cuts a text to `MAX_TEXT_BYTES` bytes. Nothing in Kubernetes writes a longer one.
pub fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
}

/// Describes an error of the parser, without the parsed text, which may contain anything.
pub fn malformed(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Data => "a field has an unexpected type",
        Category::Eof => "it ends too early",
        Category::Syntax | Category::Io => "it is not JSON",
    }
}

raw! {
    /// An object that could not be read.
    #[derive(Eq, PartialOrd, Ord)]
    pub struct Malformed {
        pub kind: String,
        /// The object's namespace; empty if it has none, or if the namespace cannot be read either.
        pub namespace: String,
        /// The object's name; empty if it cannot be read either.
        pub name: String,
        pub cause: String,
    }
}

impl Malformed {
    /// Reads namespace and name of an object from its `text`. `cause` is why the object could not be
    /// read.
    pub fn new(kind: &str, text: &str, cause: &str) -> Self {
        let named = serde_json::from_str::<Named>(text).unwrap_or_default();
        let [namespace, name] = [named.metadata.namespace, named.metadata.name]
            .map(|value| words::name(value.as_str().unwrap_or_default().to_owned()));
        Self {
            kind: kind.to_owned(),
            namespace,
            name,
            cause: cause.to_owned(),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = full_name(&self.namespace, &self.name, "an object without a name");
        write!(f, "{name}: {}", self.cause)
    }
}

/// Names an object as users do, `namespace/name`. If the name is empty, `nameless` replaces it.
pub fn full_name(namespace: &str, name: &str, nameless: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    let name = if name.is_empty() { nameless } else { name };
    format!("{namespace}{slash}{name}")
}

/// Returns the value of a field that the object must have, called `what` in the error.
pub fn required<T: Clone + ops::Deref<Target = str>>(value: &T, what: &str) -> Result<T, String> {
    if value.is_empty() {
        Err(format!("{what} is missing"))
    } else {
        Ok(value.clone())
    }
}

/// Returns `None` for an empty text, which means that the field was not given.
pub fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of such a time is refused, so that only a server shows it.
    #[test]
    fn a_stamp_in_the_future_is_no_stamp() {
        let now = "2026-01-31T03:00:00Z".parse::<Timestamp>().expect("a time");
        for (stamp, expected) in [
            ("2026-01-31T02:59:00Z", Some("2026-01-31T02:59:00Z")),
            ("2026-01-31T03:00:30Z", Some("2026-01-31T03:00:30Z")),
            ("2026-01-31T03:00:31Z", Some("2026-01-31T01:00:00Z")),
            ("2099-01-31T03:00:00Z", Some("2026-01-31T01:00:00Z")),
        ] {
            let written = |time| {
                let fields = serde_json::json!({"f:spec": {"f:renewTime": {}}});
                serde_json::json!({"manager": "anybody", "time": time, "fieldsV1": fields})
            };
            let stamps = [written(stamp), written("2026-01-31T01:00:00Z")];
            let meta = serde_json::json!({"managedFields": stamps}).to_string();
            let meta = serde_json::from_str::<Meta>(&meta).expect("metadata");
            let heard = meta.heard("/f:spec/f:renewTime", None, now);
            assert_eq!(heard, expected.map(|at| at.parse().expect("a time")));
        }
    }
}
