//! The report: one value that every output format renders.
//!
//! It is also, field by field, the JSON that `--output json` writes (docs/json.md). A writer makes bytes
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

use std::io::{self, Write};

use serde::Serialize;

pub use self::build::RunRecord;
pub(crate) use self::build::{VERSION, tally};
pub(crate) use self::layout::{LINES, question};
pub use self::types::{BreakerEntry, Group, NodeEntry, PodEntry, Report, SettingsEntry, Summary};
use self::{page::Page, text::Screen};
use crate::{cli::Output, exit::Exit};

/// What can be written in every form.
pub trait Render: Serialize {
    /// How the process ends with it.
    fn exit(&self) -> Exit;

    /// What people read.
    fn page(&self) -> Page;

    /// Writes it as `output` wants it; text for `screen`. JSON is written as it is made: that of tens of thousands of pods
    /// would take as much memory as all the rest.
    fn write(&self, output: Output, screen: Screen, out: &mut dyn Write) -> io::Result<()>
    where
        Self: Sized,
    {
        let page = match output {
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                "\n".to_owned()
            }
            Output::Text => text::write(&self.page(), screen),
            Output::Markdown => markdown::write(&self.page()),
            Output::Html => html::write(&self.page()),
        };
        out.write_all(page.as_bytes())
    }
}

impl Render for Report {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn page(&self) -> Page {
        layout::page(self)
    }
}

#[cfg(test)]
mod tests;
