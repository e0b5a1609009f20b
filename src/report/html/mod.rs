//! The report as one HTML file, for a browser, a mail or a printer: what needs a person first.
//!
//! It loads nothing. Its policy forbids every source but the style and the script that are in it, by their
//! digests, so that a text that got through the escaping still could not run. All content is there without the script,
//! which mail readers strip: it only adds buttons that copy, a search, and filters. No element has a `style` attribute, which
//! the policy would refuse.

use std::fmt;

use askama::{
    Template,
    filters::{Escaper, Html},
};

use super::{
    page::{Block, Page},
    phrases,
};
use crate::words::clean;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// With the digests of both; a test writes it.
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

/// What a template does to every value, unless it says `safe`.
#[derive(Clone, Copy, Default)]
pub struct Cleaned;

impl Escaper for Cleaned {
    fn write_escaped_str<W: fmt::Write>(&self, out: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(out, &clean(text))
    }
}

#[cfg(test)]
mod tests;
