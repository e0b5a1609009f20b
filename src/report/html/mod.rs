//! Writes a document as one HTML file, for a browser, a mail or a printer.
//!
//! The file loads nothing. Its content security policy allows only its own style and script, by
//! their digests, so a script that got through the escaping could still not run. The script only
//! adds copy buttons and a search: mail readers strip it, and no content depends on it.

use std::fmt;

use askama::{
    Template,
    filters::{Escaper, Html},
};

use super::document::{Document, Kind, Line, Section, Tone};
use crate::words::sanitize;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The content security policy with the digests of the style and the script. A test writes this
/// file.
const POLICY: &str = include_str!("policy.txt");
/// A list of more names is folded.
const UNFOLDED: usize = 30;

/// Writes `page` as HTML.
pub fn write(page: &Document) -> String {
    Page { page }.to_string() + "\n"
}

#[derive(Template)]
#[template(path = "html/page.html")]
struct Page<'a> {
    page: &'a Document,
}

impl Section {
    /// Reports whether the page folds the section: a long list, but never what needs you.
    fn is_folded(&self) -> bool {
        let names = self
            .lines
            .iter()
            .map(|line| match line {
                Line::Names(groups) => groups.iter().map(|(_, names)| names.len()).sum(),
                _ => 0,
            })
            .sum::<usize>();
        self.kind == Kind::List && self.tone != Tone::Bad && names > UNFOLDED
    }
}

/// The escaper that the templates apply to every value that is not marked `safe`.
#[derive(Clone, Copy, Default)]
pub struct Cleaned;

impl Escaper for Cleaned {
    fn write_escaped_str<W: fmt::Write>(&self, out: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(out, &sanitize(text))
    }
}

#[cfg(test)]
mod tests;
