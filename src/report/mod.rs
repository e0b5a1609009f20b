//! The report: the one value that every output format shows.
//!
//! Its fields are the JSON that `--output json` writes (docs/json.md). For people, the report
//! becomes a page, which text and HTML draw. A writer returns a string and does not know where the
//! string goes.

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

mod build;
mod explained;
pub mod html;
mod layout;
pub mod notices;
pub mod page;
pub(crate) mod phrases;
mod record;
pub mod text;
mod types;

pub(crate) use self::build::tally;
pub(crate) use self::layout::question;
use self::page::Page;
pub use self::record::RunRecord;
pub use self::types::{
    BreakerEntry, Explained, Group, NodeEntry, PodEntry, Report, SettingsEntry, Summary,
};

impl Report {
    /// Returns the page for the formats that people read.
    pub fn page(&self) -> Page {
        if let (Some(explained), [pod]) = (&self.explained, &self.pods[..]) {
            explained::page(self, pod, explained)
        } else {
            layout::page(self)
        }
    }
}

#[cfg(test)]
mod tests;
