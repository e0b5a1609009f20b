//! Writes a page in GitHub's Markdown, for a ticket or a chat, with commands in fenced blocks.
//!
//! Text from the cluster must not become markup, and must not mention anybody. GitHub turns `@name`
//! into a mention, `#1` into a link, and `$…$` into a formula, even in text that is plain to
//! Markdown itself. GitHub leaves code alone, so a word with such a character is written as code.

use std::fmt;

use askama::{Template, filters::Escaper};
use itertools::Itertools as _;

use super::{
    page::{Block, Page, numbered, unfolded},
    phrases,
};
use crate::words::sanitize;

/// Writes `page` as Markdown.
pub fn write(page: &Page) -> String {
    Document { page }.to_string() + "\n"
}

#[derive(Template)]
#[template(path = "markdown/page.md")]
struct Document<'a> {
    page: &'a Page,
}

/// Blocks to draw. Markdown cannot unfold anything, so it shows the blocks in each fold.
#[derive(Template)]
#[template(path = "markdown/blocks.md")]
struct Blocks<'a> {
    all: Vec<&'a Block>,
}

impl<'a> Blocks<'a> {
    fn of(blocks: &'a [Block]) -> Self {
        let all = unfolded(blocks);
        Self { all }
    }

    /// Groups consecutive rows for one table; every other block is a group of its own.
    fn runs(&self) -> impl Iterator<Item = &[&'a Block]> {
        let is_row = |block: &Block| matches!(block, Block::Entry(entry) if !entry.is_card);
        self.all
            .chunk_by(move |one, other| is_row(one) && is_row(other))
    }
}

/// The escaper that the templates apply to every value that is not marked `safe`.
#[derive(Clone, Copy, Default)]
pub struct Prose;

impl Escaper for Prose {
    fn write_escaped_str<W: fmt::Write>(&self, mut out: W, text: &str) -> fmt::Result {
        out.write_str(&prose(text))
    }
}

/// Writes a command in a fence, indented to belong to the list item with this mark.
fn fenced(command: &str, mark: &str) -> String {
    let indent = format!("\n{}", " ".repeat(mark.len()));
    let command = phrases::lines(command).join(&indent);
    // The fence must be longer than any run of backticks in the command.
    let run = command
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(3.max(run + 1));
    format!("{indent}{fence}sh{indent}{command}{indent}{fence}")
}

/// Writes text as code. If Markdown gives a meaning to a character even in a code span or a table,
/// the text becomes an HTML `<code>` element with such characters as entities.
fn code(text: &str) -> String {
    let text = sanitize(text);
    let plain =
        |letter: char| letter.is_alphanumeric() || "-./:_=,+%() {}[]\"'@#$?!;".contains(letter);
    if !text.is_empty() && text.trim() == text && text.chars().all(plain) {
        return format!("`{text}`");
    }
    let entity = |letter: char| {
        if letter.is_alphanumeric() || "-./".contains(letter) {
            letter.to_string()
        } else {
            format!("&#{};", u32::from(letter))
        }
    };
    format!(
        "<code>{}</code>",
        text.chars().map(entity).collect::<String>()
    )
}

/// Writes running text. A word that could be markup is written as code.
fn prose(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || ".,:;()'/%?!+=-·".contains(letter);
    let calls = ["://", "www.", "GH-"];
    let cleaned = sanitize(text);
    let mut words = cleaned.split_whitespace().enumerate().map(|(index, word)| {
        let is_plain = word.chars().all(is_plain) && !calls.iter().any(|call| word.contains(call));
        if is_plain && (index > 0 || !begins_a_block(word)) {
            word.to_owned()
        } else {
            code(word)
        }
    });
    words.join(" ")
}

/// Reports whether the word would begin a list, a rule or a heading if it were the first word of a
/// line.
fn begins_a_block(word: &str) -> bool {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.starts_with(['-', '+', '=']) || rest.len() < word.len() && rest.starts_with(['.', ')'])
}

#[cfg(test)]
mod tests;
