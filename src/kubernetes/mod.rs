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

pub use self::{
    event::RawEvent,
    lease::RawLease,
    marks::KOSMOS_PREFIX,
    meta::{ListMeta, RawList, RawObject, identity_of_malformed, malformed},
    node::RawNode,
    observed::Observed,
    pod::RawPod,
    replacement::{NOT_MADE, RawController},
    volume::{RawAttachment, RawClaim, RawStatefulSet, RawVolume},
};
