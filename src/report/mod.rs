//! The report: the one value that every output format shows.
//!
//! Its fields are the JSON that `--output json` writes (docs/json.md). For people it
//! becomes a page, which text, Markdown and HTML draw. A writer returns a string and does
//! not know where that goes.

/// Declares types of the JSON output. docs/json.md and the schemas document the same fields.
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
mod fold;
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
use self::page::Page;
pub use self::types::{BreakerEntry, Group, NodeEntry, PodEntry, Report, SettingsEntry, Summary};
pub(crate) use self::{fold::rows, layout::question};

/// A value that every output format can show: JSON as it is, the others as a page.
pub trait Render: serde::Serialize {
    /// Returns the page that people read.
    fn page(&self) -> Page;
}

#[cfg(test)]
mod tests;
