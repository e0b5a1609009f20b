//! What all objects have alike: lists, metadata, and what is said of an object that cannot be parsed.

use std::{collections::BTreeMap, ops::Deref};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, error::Category, value::RawValue};

use crate::facts::{CLOCK_SKEW, ResourceVersion, Uid};

/// A stamp of so long after the object was made may be that of its first writes, and the last that there will be.
const BIRTH: SignedDuration = SignedDuration::from_mins(1);
/// A message of the cluster is cut to this many characters.
const MESSAGE_LIMIT: usize = 500;
/// Annotation or label: the reaper keeps away.
pub const SKIP: &str = "pod-reaper.io/skip";
/// The kubelet sets it on the API's copy of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// A list of objects, each still unparsed, so that a malformed one spoils only itself.
#[derive(Debug, Deserialize)]
pub struct RawList<'a> {
    /// `List`, `PodList`, …
    #[serde(default)]
    pub kind: String,
    /// The list's own metadata.
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects; null means none, but a list without the field is not a list.
    #[serde(borrow, deserialize_with = "Option::deserialize")]
    pub items: Option<Vec<&'a RawValue>>,
}

raw! {
    /// Where a list goes on.
    pub struct ListMeta {
        /// Token of the next page; empty on the last.
        #[serde(rename = "continue")]
        pub next: String,
    }

    /// The rows that `kubectl get` prints.
    pub struct RawTable {
        /// As a list has it.
        pub metadata: ListMeta,
        /// What each row has.
        pub column_definitions: Vec<Column>,
        /// Without their objects.
        pub rows: Vec<Row>,
    }

    pub struct Column {
        pub name: String,
    }

    pub struct Row {
        pub cells: Vec<Value>,
    }

    /// `metadata` of any object, and the whole of one that is asked for by metadata alone.
    pub struct Meta {
        /// Name.
        pub name: String,
        /// Namespace.
        pub namespace: String,
        /// UID.
        pub uid: Uid,
        /// Version of this state.
        pub resource_version: ResourceVersion,
        pub(super) deletion_timestamp: Option<Timestamp>,
        pub(super) deletion_grace_period_seconds: Option<i64>,
        pub(super) labels: BTreeMap<String, String>,
        pub(super) annotations: BTreeMap<String, String>,
        pub(super) finalizers: Vec<String>,
        pub(super) owner_references: Vec<OwnerReference>,
        /// When it was made.
        pub creation_timestamp: Option<Timestamp>,
        pub(super) managed_fields: Vec<Written>,
    }

    /// An entry of `managedFields`: what a manager has written, and when, by the API server's clock.
    pub struct Written {
        time: Option<Timestamp>,
        /// Parsed only where it is asked about: it is long.
        fields_v1: Option<Box<RawValue>>,
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
        pub last_transition_time: Option<Timestamp>,
        pub last_heartbeat_time: Option<Timestamp>,
    }
}

impl Meta {
    /// Drops what nothing asks of an object but a node or a lease: the stamps, and the annotations of others, which may be
    /// 256 KiB.
    pub fn drop_idle(&mut self) {
        self.managed_fields = Vec::new();
        let ours = |key: &str| key.starts_with("pod-reaper.io/") || key == MIRROR;
        self.annotations.retain(|key, _| ours(key));
    }

    /// When the field was last written, by a pointer into the fields that each entry owns.
    pub fn written(&self, field: &str) -> Option<Timestamp> {
        self.managed_fields
            .iter()
            .filter_map(|entry| {
                let fields = entry.fields_v1.as_ref()?.get();
                serde_json::from_str::<Value>(fields)
                    .ok()?
                    .pointer(field)
                    .and(entry.time)
            })
            .max()
    }

    /// When the writer of the field was last heard, as known at `now`: the later of the API server's stamp and the writer's
    /// own word, `said`. The stamp is right whatever clock the writer has. But servers from 1.19 to 1.24 leave it as it was when
    /// the object was made, because a renewal changes no more than the time (kubernetes#95240, fixed by #110058). So a word
    /// that is ahead of all clocks counts only where the stamp is as old as the object, or missing.
    pub fn heard(&self, field: &str, said: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let stamped = self.written(field);
        let renews = |stamped: Timestamp| {
            self.creation_timestamp
                .is_none_or(|made| stamped.duration_since(made).abs() > BIRTH)
        };
        let believed = |said: &Timestamp| {
            said.duration_since(now) <= CLOCK_SKEW || !stamped.is_some_and(renews)
        };
        stamped.max(said.filter(believed))
    }

    pub fn annotation(&self, key: &str) -> Option<String> {
        self.annotations.get(key).cloned()
    }

    /// The value by which it is opted out. Only `false` does not: a slip of the key must not delete.
    pub fn opted_out(&self) -> Option<String> {
        [&self.labels, &self.annotations]
            .map(|all| all.get(SKIP))
            .into_iter()
            .find_map(|value| value.filter(|value| *value != "false").cloned())
    }

    /// Its controller, where it has one.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Whether the object of this UID is its controller.
    pub fn controlled_by(&self, uid: &Uid) -> bool {
        self.controller().is_some_and(|owner| owner.uid == *uid)
    }

    /// Whether its deletion was asked for.
    pub fn terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

impl Condition {
    pub fn holds(&self) -> bool {
        self.status == "True"
    }

    /// Reason and message, as far as they are there.
    pub fn says(&self) -> String {
        with_cause(&self.reason, &self.message)
    }
}

/// Joins two texts by a colon; where one is empty, it gives the other. The result is cut to `MESSAGE_LIMIT` characters.
pub fn with_cause(what: &str, why: &str) -> String {
    let colon = if what.is_empty() || why.is_empty() {
        ""
    } else {
        ": "
    };
    [what, colon, why]
        .concat()
        .chars()
        .take(MESSAGE_LIMIT)
        .collect()
}

/// What a parser says, without the text that it met: that may be anything.
pub fn malformed(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Data => "a field has an unexpected type",
        Category::Eof => "it ends too early",
        Category::Syntax | Category::Io => "it is not JSON",
    }
}

/// Namespace and name of an object that does not parse; empty as far as they cannot be read.
pub fn identity_of_malformed(text: &str) -> (String, String) {
    let value = serde_json::from_str::<Value>(text).unwrap_or_default();
    let [namespace, name] = ["namespace", "name"].map(|field| {
        value["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    });
    (namespace, name)
}

/// A field without which the object is of no use.
pub fn required<T: Clone + Deref<Target = str>>(value: &T, what: &str) -> Result<T, String> {
    if value.is_empty() {
        Err(format!("{what} is missing"))
    } else {
        Ok(value.clone())
    }
}

/// A field that need not be there.
pub fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
