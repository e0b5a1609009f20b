//! What all objects have alike: lists, metadata, and what is said of an object that cannot be parsed.

use std::{collections::BTreeMap, ops::Deref};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use crate::facts::{CLOCK_SKEW, ResourceVersion, Uid};

/// A stamp of so long after the object was made may be that of its first writes, and the last that there will be.
const BIRTH: SignedDuration = SignedDuration::from_mins(1);

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

/// Where a list goes on.
#[derive(Debug, Default, Deserialize)]
pub struct ListMeta {
    /// Token of the next page; empty or absent on the last.
    #[serde(rename = "continue")]
    pub next: Option<String>,
}

/// `metadata` of any object, and the whole of one that is asked for by metadata alone. `M`: what is kept of each entry of
/// `managedFields`, which are most of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta<A = Annotations, M = IgnoredAny> {
    /// Name.
    pub name: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
    /// UID.
    pub uid: Option<Uid>,
    /// Version of this state.
    pub resource_version: Option<ResourceVersion>,
    pub(super) deletion_timestamp: Option<Timestamp>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    pub(super) annotations: Option<A>,
    pub(super) finalizers: Option<Vec<String>>,
    pub(super) owner_references: Option<Vec<OwnerReference>>,
    /// When it was made.
    pub creation_timestamp: Option<Timestamp>,
    pub(super) managed_fields: Option<Vec<M>>,
}

/// The annotations that a rule asks for. The others, up to 256 KiB an object, are passed over as they are read.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Annotations {
    /// The reaper keeps away.
    #[serde(rename = "pod-reaper.io/skip")]
    pub(super) skip: Option<String>,
    /// Copied into the report when the pod is reaped.
    #[serde(rename = "pod-reaper.io/after-reap")]
    pub(super) after_reap: Option<String>,
    /// A person's answer on a claim.
    #[serde(rename = "pod-reaper.io/give-up")]
    pub(super) give_up: Option<String>,
    /// A person's answer on a pod.
    #[serde(rename = "pod-reaper.io/reap")]
    pub(super) reap: Option<String>,
    /// The data of the claim is not needed.
    #[serde(rename = "pod-reaper.io/scratch")]
    pub(super) scratch: Option<String>,
    /// The kubelet sets it on the API's copy of a static pod.
    #[serde(rename = "kubernetes.io/config.mirror")]
    pub(super) mirror: Option<String>,
}

raw! {
    /// An entry of `managedFields`: what a manager has written, and when, by the API server's clock.
    pub struct Written {
        time: Option<Timestamp>,
        /// Parsed only where it is asked about: it is long.
        fields_v1: Option<Box<RawValue>>,
    }

    pub(super) struct OwnerReference {
        pub(super) api_version: Option<String>,
        pub(super) kind: Option<String>,
        pub(super) uid: Option<Uid>,
        pub(super) name: Option<String>,
        pub(super) controller: Option<bool>,
    }

    pub(super) struct Condition {
        #[serde(rename = "type")]
        pub(super) kind: Option<String>,
        pub(super) status: Option<String>,
        pub(super) reason: Option<String>,
        pub(super) message: Option<String>,
        pub(super) last_transition_time: Option<Timestamp>,
        pub(super) last_heartbeat_time: Option<Timestamp>,
    }

    /// Any object that matters only by its metadata: a namespace, or a pod that is looked for by UID.
    pub struct RawObject {
        /// Its metadata.
        pub metadata: Meta,
    }
}

impl<A> Meta<A, Written> {
    /// When the field was last written, by a pointer into the fields that each entry owns.
    pub(super) fn written(&self, field: &str) -> Option<Timestamp> {
        let owns = |entry: &&Written| {
            let fields = entry
                .fields_v1
                .as_ref()
                .and_then(|fields| serde_json::from_str::<Value>(fields.get()).ok());
            fields.is_some_and(|fields| fields.pointer(field).is_some())
        };
        self.managed_fields
            .iter()
            .flatten()
            .filter(owns)
            .filter_map(|entry| entry.time)
            .max()
    }
}

impl<A> Meta<A, Written> {
    /// When the writer of the field was last heard, as known at `now`: the later of the API server's stamp and the writer's
    /// own word, `said`. The stamp is right whatever clock the writer has. But servers from 1.19 to 1.24 leave it as it was when
    /// the object was made, because a renewal changes no more than the time (kubernetes#95240, fixed by #110058). So a word
    /// that is ahead of all clocks counts only where the stamp is as old as the object, or missing.
    pub(super) fn heard(
        &self,
        field: &str,
        said: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Timestamp> {
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
}

impl Meta {
    pub(super) fn annotation(&self, pick: fn(&Annotations) -> &Option<String>) -> Option<&str> {
        pick(self.annotations.as_ref()?).as_deref()
    }

    /// The value by which it is opted out.
    pub fn opted_out(&self) -> Option<String> {
        opts_out([self.label(SKIP), self.annotation(|known| &known.skip)])
    }
}

impl<A, M> Meta<A, M> {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Its namespace and name, where it has both.
    pub fn identity(&self) -> Option<(String, String)> {
        self.namespace.clone().zip(self.name.clone())
    }

    /// Its controller, where it has one.
    pub(super) fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .flatten()
            .find(|owner| owner.controller == Some(true))
    }

    /// Whether the object of this UID is its controller.
    pub fn controlled_by(&self, uid: &str) -> bool {
        self.controller()
            .is_some_and(|owner| owner.uid.as_deref() == Some(uid))
    }

    /// Whether its deletion was asked for.
    pub fn terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

impl Condition {
    pub(super) fn holds(&self) -> bool {
        self.status.as_deref() == Some("True")
    }

    /// Reason and message, as far as they are there.
    pub(super) fn says(&self) -> String {
        joined([self.reason.as_deref(), self.message.as_deref()])
    }
}

/// What there is of a text in two parts.
pub(super) fn joined(parts: [Option<&str>; 2]) -> String {
    let parts = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>();
    parts.join(": ").chars().take(MESSAGE_LIMIT).collect()
}

/// A message of the cluster is cut to this many characters.
const MESSAGE_LIMIT: usize = 500;

/// Annotation or label: the reaper keeps away.
pub(super) const SKIP: &str = "pod-reaper.io/skip";

/// The value of [`SKIP`] that opts out. Only `false` does not: a slip of the key must not delete.
pub(super) fn opts_out(values: [Option<&str>; 2]) -> Option<String> {
    values
        .into_iter()
        .flatten()
        .find(|value| *value != "false")
        .map(str::to_owned)
}

/// What a parser says, without the text that it met: that may be anything.
pub fn malformed(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Data => "a field has an unexpected type",
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is not JSON",
    }
}

/// Namespace and name of an object that does not parse, as far as they can be read.
pub fn identity_of_malformed(text: &str) -> (Option<String>, Option<String>) {
    let value = serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let text = |pointer| {
        value
            .pointer(pointer)
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned)
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

pub(super) fn required<T: Deref<Target = str>>(value: Option<T>, what: &str) -> Result<T, String> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| format!("{what} is missing"))
}
