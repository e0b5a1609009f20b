//! The report: one value that every output format renders.
//!
//! It is also, field by field, the JSON that `--output json` writes (documented in the README). A writer makes bytes
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

pub(crate) use self::build::{VERSION, notes};
pub use self::types::{BreakerEntry, Group, NodeEntry, PodEntry, Report, SettingsEntry, Summary};
use crate::{cli::Output, exit::Exit};

/// What can be written in every form that it has.
pub trait Render: Serialize {
    /// How the process ends with it.
    fn exit(&self) -> Exit;

    /// For a person.
    fn text(&self, screen: text::Screen) -> String;

    /// For a ticket or a chat; as text where there is no such form.
    fn markdown(&self) -> String {
        self.text(text::Screen::default())
    }

    /// For a browser; as text where there is no such form.
    fn html(&self) -> String {
        self.text(text::Screen::default())
    }

    /// Writes it as `output` wants it; text for `screen`. JSON is written as it is made: that of tens of thousands of pods
    /// would take as much memory as all the rest.
    fn write(&self, output: Output, screen: text::Screen, out: &mut dyn Write) -> io::Result<()>
    where
        Self: Sized,
    {
        match output {
            Output::Text => out.write_all(self.text(screen).as_bytes()),
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
            Output::Markdown => out.write_all(self.markdown().as_bytes()),
            Output::Html => out.write_all(self.html().as_bytes()),
        }
    }
}

impl Render for Report {
    fn exit(&self) -> Exit {
        self.exit
    }

    fn text(&self, screen: text::Screen) -> String {
        text::write(self, screen)
    }

    fn markdown(&self) -> String {
        markdown::write(self)
    }

    fn html(&self) -> String {
        html::write(self)
    }
}

#[cfg(test)]
mod tests;
