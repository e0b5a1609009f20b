//! The report: one value that every output format renders.
//!
//! It is also, field by field, the JSON that `--output json` writes (docs/json.md). A writer makes text
//! and knows no destination.

/// Declares what is in the JSON, field by field; docs/json.md and the schemas have the same.
macro_rules! in_json {
    ($($(#[$about:meta])* pub struct $name:ident $fields:tt)*) => {
        $(
            #[derive(Debug, Clone, PartialEq, serde::Serialize)]
            #[cfg_attr(test, derive(schemars::JsonSchema))]
            #[serde(rename_all = "camelCase")]
            $(#[$about])*
            pub struct $name $fields
        )*
    };
}
pub(crate) use in_json;

mod build;
mod fit;
pub mod html;
mod layout;
pub mod markdown;
pub mod notices;
pub mod page;
pub(crate) mod phrases;
#[cfg(test)]
pub(crate) mod samples;
pub mod text;
mod types;

pub use self::build::RunRecord;
pub(crate) use self::build::{VERSION, tally};
pub(crate) use self::layout::{LINES, question};
use self::page::Page;
pub use self::types::{BreakerEntry, Group, NodeEntry, PodEntry, Report, SettingsEntry, Summary};

/// What can be written in every form: as JSON, and as a page.
pub trait Render: serde::Serialize {
    /// What people read.
    fn page(&self) -> Page;
}

#[cfg(test)]
mod tests;
