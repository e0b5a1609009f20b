//! What the Kubernetes API says, by kind, turned into facts once.
//!
//! The types here are as slim as the rules need, and every field is optional: one malformed object must not make its
//! whole list unreadable, and what is not named here (environment values, above all) is never kept.

/// Declares raw types: every field is spelled in camel case, and may be absent.
macro_rules! raw {
    ($($(#[$about:meta])* $scope:vis struct $name:ident { $($fields:tt)* })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Default, serde::Deserialize)]
            #[serde(rename_all = "camelCase", default)]
            $scope struct $name { $($fields)* }
        )*
    };
}

mod event;
mod lease;
mod marks;
mod meta;
mod node;
mod observed;
mod pod;
mod replacement;
mod volume;

pub use self::event::RawEvent;
pub use self::lease::RawLease;
pub use self::marks::KOSMOS_PREFIX;
pub use self::meta::{ListMeta, RawList, RawObject, identity_of_malformed, malformed};
pub use self::node::{NodeLeases, RawNode};
pub use self::observed::Observed;
pub use self::pod::RawPod;
pub use self::replacement::{NOT_MADE, RawController};
pub use self::volume::{RawAttachment, RawClaim, RawStatefulSet, RawVolume};
