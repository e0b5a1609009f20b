//! The report: one value that every output format renders.
//!
//! It is also, field by field, the JSON that `--output json` writes (docs/json.md). A writer makes bytes
//! and knows no destination.

mod build;
pub mod html;
pub mod markdown;
pub mod notices;
pub(crate) mod phrases;
#[cfg(test)]
pub(crate) mod samples;
pub mod text;
mod timeline;
mod types;

use std::io::{self, Write};

use serde::Serialize;

pub(crate) use self::build::{VERSION, answers_of, notes};
use self::text::Screen;
pub use self::types::{BreakerEntry, Group, NodeEntry, PodEntry, Report, SettingsEntry, Summary};
use crate::{cli::Output, exit::Exit};

/// What can be written in every form that it has.
pub trait Render: Serialize {
    /// How the process ends with it.
    fn exit(&self) -> Exit;

    /// For people, in the form of `output`; as text for `screen` where there is no such form.
    fn people(&self, output: Output, screen: Screen) -> String;

    /// Writes it as `output` wants it; text for `screen`. JSON is written as it is made: that of tens of thousands of pods
    /// would take as much memory as all the rest.
    fn write(&self, output: Output, screen: Screen, out: &mut dyn Write) -> io::Result<()>
    where
        Self: Sized,
    {
        if output != Output::Json {
            return out.write_all(self.people(output, screen).as_bytes());
        }
        serde_json::to_writer_pretty(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

impl Render for Report {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn people(&self, output: Output, screen: Screen) -> String {
        match output {
            Output::Markdown => markdown::write(self),
            Output::Html => html::write(self),
            Output::Text | Output::Json => text::write(self, screen),
        }
    }
}

#[cfg(test)]
mod tests;
