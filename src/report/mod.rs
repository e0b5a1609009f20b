//! The report: the one value that every output format shows.
//!
//! Its fields are the JSON that `--output json` writes (docs/json.md). For people, the report
//! becomes one document, which text and HTML write. A writer returns a string and does not know where the
//! string goes.

/// Declares types of the JSON output. docs/json.md and the schemas document the same fields.
macro_rules! in_json {
    ($($(#[$about:meta])* pub struct $name:ident $fields:tt)*) => {
        $(
            #[derive(Debug, serde::Serialize)]
            #[cfg_attr(test, derive(schemars::JsonSchema))]
            #[serde(rename_all = "camelCase")]
            $(#[$about])*
            pub struct $name $fields
        )*
    };
}

mod advice;
mod build;
mod document;
mod explained;
mod hang;
mod head;
pub mod html;
mod kubectl;
mod page;
mod record;
mod survey;
pub mod text;
mod types;

pub use self::document::Document;
pub use self::record::RunRecord;
pub use self::survey::SecondWriter;
pub use self::types::Report;

/// The most names that a list shows unless each of them was or would be deleted.
pub const NAMES: usize = 30;
/// The most names in a sentence.
const NAMED: usize = 3;
#[cfg(test)]
mod tests;
