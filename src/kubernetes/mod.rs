//! The objects of the Kubernetes API, by kind, and their conversion to facts.
//!
//! The types here have only the fields that the rules need, and every field is optional. So one
//! malformed object does not make its whole list unreadable. No other part of an object is ever
//! kept, above all no environment value.

use std::collections::BTreeMap;

use crate::{
    facts::{NamespaceFacts, Namespaces},
    history,
    selector::NodeSelectors,
    words::is_word,
};
use serde::{
    Serialize,
    de::{Deserialize, DeserializeOwned, Deserializer},
};

/// Declares raw types. Each field is spelled in camel case, and may be absent or null, as programs
/// written in Go allow. A field that is absent is not written either.
macro_rules! raw {
    ($($(#[$about:meta])* $scope:vis struct $name:ident {
        $($(#[$attribute:meta])* $seen:vis $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, serde::Serialize)]
            #[serde(rename_all = "camelCase", default)]
            $scope struct $name {
                $(
                    $(#[$attribute])*
                    #[serde(deserialize_with = "crate::kubernetes::or_default")]
                    #[serde(skip_serializing_if = "crate::kubernetes::is_default")]
                    $seen $field: $type,
                )*
            }
        )*
    };
}

mod csi;
mod host_path;
mod lease;
mod marks;
mod meta;
mod node;
mod pod;
mod rows;
mod saved;
mod volume;

pub use self::lease::{HolderPod, Holders, LeasesByNode, RawLease};
pub use self::marks::KOSMOS_PREFIX;
pub use self::meta::{Malformed, Meta, RawKind, RawList, RawTable, SKIP, full_name, malformed};
pub use self::node::{CONFIRMED_OFF, NodeObjects, RawNode, roles_named};
pub use self::pod::{RawPod, StaticPods, WholePod};
pub use self::rows::{NodeRow, PodRow, Row};
pub use self::saved::{RawSaved, SAVED, SAVED_VERSION};
pub use self::volume::{RawAttachment, RawClaim, RawDriver, RawStatefulSet, RawVolume};

/// A kind of object, with its names in the API and in a snapshot.
pub trait Kind: DeserializeOwned + Clone + PartialEq + Send + 'static {
    /// The name of the kind, such as `Pod`.
    const KIND: &'static str;
    /// The path of the kind's API, and the kind's plural there.
    const API: [&'static str; 2];
    /// Whether the kind's objects are in namespaces.
    const NAMESPACED: bool;

    fn metadata(&self) -> &Meta;

    fn metadata_mut(&mut self) -> &mut Meta;

    /// Parses an object: wherever it comes from, it has the same parts, in the same order. Fails with a phrase if it is
    /// malformed. The API server lets nobody choose a name that is no word, but a file may have one.
    fn parsed(text: &[u8]) -> Result<Self, &'static str> {
        let object = serde_json::from_slice::<Self>(text).map_err(|error| malformed(&error))?;
        let meta = object.metadata();
        for name in [&meta.namespace, &meta.name] {
            if !name.is_empty() && !is_word(name) {
                return Err("no object can have its name");
            }
        }
        Ok(object)
    }

    /// Reports whether an object of this kind's name is of this kind: another group, such as
    /// Longhorn's, may have a kind of the same name. `api_version` is empty if it is not stated.
    fn is_of_group(api_version: &str) -> bool {
        let [path, _] = Self::API;
        let group = path.strip_prefix("/apis/").unwrap_or_default();
        let groups = [group, api_version].map(|it| it.split_once('/').map(|(group, _)| group));
        api_version.is_empty() || groups[0] == groups[1]
    }
}

macro_rules! kinds {
    ($($type:ident = $kind:literal $api:literal $plural:literal $namespaced:literal),* $(,)?) => {
        $(
            impl Kind for $type {
                const KIND: &'static str = $kind;
                const API: [&'static str; 2] = [$api, $plural];
                const NAMESPACED: bool = $namespaced;

                fn metadata(&self) -> &Meta {
                    &self.metadata
                }

                fn metadata_mut(&mut self) -> &mut Meta {
                    &mut self.metadata
                }
            }
        )*
    };
}

kinds! {
    RawNode = "Node" "/api/v1" "nodes" false,
    RawPod = "Pod" "/api/v1" "pods" true,
    WholePod = "Pod" "/api/v1" "pods" true,
    RawNamespace = "Namespace" "/api/v1" "namespaces" false,
    RawClaim = "PersistentVolumeClaim" "/api/v1" "persistentvolumeclaims" true,
    RawVolume = "PersistentVolume" "/api/v1" "persistentvolumes" false,
    RawLease = "Lease" "/apis/coordination.k8s.io/v1" "leases" true,
    RawAttachment = "VolumeAttachment" "/apis/storage.k8s.io/v1" "volumeattachments" false,
    RawDriver = "CSIDriver" "/apis/storage.k8s.io/v1" "csidrivers" false,
    RawStatefulSet = "StatefulSet" "/apis/apps/v1" "statefulsets" true,
    RawConfigMap = "ConfigMap" "/api/v1" "configmaps" true,
}

/// A kind of object that can be shown to others.
pub trait Shared: Kind + Serialize {
    /// Drops what no rule reads. Of most kinds, no rule asks for labels, annotations or stamps. The selectors are those of
    /// the user: annotations that they name are rules, too.
    fn strip(&mut self, _: &NodeSelectors) {
        let metadata = self.metadata_mut();
        metadata.keep(&[], &[]);
        metadata.managed_fields.clear();
    }
}

impl Shared for RawNamespace {
    fn strip(&mut self, _: &NodeSelectors) {
        self.metadata.keep(&[SKIP], &[SKIP]);
        self.metadata.drop_finalizers_and_owners();
        self.metadata.managed_fields.clear();
        self.metadata.strip(&[]);
    }
}

impl Shared for RawConfigMap {
    /// Keeps what runs noted of nodes.
    fn strip(&mut self, _: &NodeSelectors) {
        self.metadata.keep(&[], &[]);
        self.metadata.drop_finalizers_and_owners();
        self.metadata.managed_fields.clear();
        self.data = history::shared(&self.data);
    }
}

raw! {
    pub struct RawNamespace {
        pub metadata: Meta,
    }

    pub struct RawConfigMap {
        pub metadata: Meta,
        /// Its values that are text.
        pub data: BTreeMap<String, String>,
    }
}

impl RawNamespace {
    pub fn add_to(all: &mut Namespaces, Self { metadata: it }: &Self) {
        let facts = NamespaceFacts {
            opted_out: it.opted_out(),
            deleted: it.terminating(),
        };
        all.insert(it.name.clone(), facts);
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Option::deserialize(from).map(Option::unwrap_or_default)
}
