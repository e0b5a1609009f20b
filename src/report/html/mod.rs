//! Writes a page as one HTML file, for a browser, a mail or a printer.
//!
//! The file loads nothing. Its content security policy allows only its own style and script, by
//! their digests, so a script that got through the escaping could still not run. The script only
//! adds copy buttons, a search and filters: mail readers strip it, and no content depends on it. No
//! element has a `style` attribute, because the policy would refuse it.

use std::fmt;

use askama::{
    Template,
    filters::{Escaper, Html},
};

use super::{
    page::{Block, PODS, Page, Section},
    phrases,
};
use crate::words::sanitize;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The content security policy with the digests of the style and the script. A test writes this
/// file.
const POLICY: &str = include_str!("policy.txt");

/// Writes `page` as HTML.
pub fn write(page: &Page) -> String {
    Document { page }.to_string() + "\n"
}

#[derive(Template)]
#[template(path = "html/page.html")]
struct Document<'a> {
    page: &'a Page,
}

impl Document<'_> {
    /// Lists the sections. Those that say what is wrong come first.
    fn sections(&self) -> Vec<&Section> {
        let mut sections = self.page.sections.iter().collect::<Vec<_>>();
        sections.sort_by_key(|section| match section.id {
            "breaker" => 0,
            "nodes" => 1,
            _ => 2,
        });
        sections
    }
}

#[derive(Template)]
#[template(path = "html/blocks.html")]
struct Blocks<'a> {
    all: &'a [Block],
}

impl<'a> Blocks<'a> {
    fn of(all: &'a [Block]) -> Self {
        Self { all }
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
