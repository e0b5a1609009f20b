//! The report in GitHub's Markdown, for a ticket or a chat: what needs a person first, commands in fenced blocks.
//!
//! Text from the cluster must not become markup, and must not mention anybody: GitHub makes a mention of `@name`, a link of
//! `#1`, and a formula of `$…$`, also where Markdown itself sees plain text. It does so nowhere in code, so a word with
//! such a letter is shown as code.

use std::fmt;

use askama::{Template, filters::Escaper};
use itertools::Itertools as _;

use super::{
    page::{Block, Page, numbered, unfolded},
    phrases,
};
use crate::words::clean;

/// Writes `page` as Markdown.
pub fn write(page: &Page) -> String {
    Document { page }.to_string() + "\n"
}

#[derive(Template)]
#[template(path = "markdown/page.md")]
struct Document<'a> {
    page: &'a Page,
}

/// What is folded elsewhere is whole here.
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

    /// Rows that follow each other are one table.
    fn runs(&self) -> impl Iterator<Item = &[&'a Block]> {
        let is_row = |block: &Block| matches!(block, Block::Entry(entry) if !entry.is_card);
        self.all
            .chunk_by(move |one, other| is_row(one) && is_row(other))
    }
}

/// What a template does to every value, unless it says `safe`.
#[derive(Clone, Copy, Default)]
pub struct Prose;

impl Escaper for Prose {
    fn write_escaped_str<W: fmt::Write>(&self, mut out: W, text: &str) -> fmt::Result {
        out.write_str(&prose(text))
    }
}

/// A command in a fence, below the item with that mark, which it belongs to.
fn fenced(command: &str, mark: &str) -> String {
    let indent = format!("\n{}", " ".repeat(mark.len()));
    let command = phrases::lines(command).join(&indent);
    // A fence that is longer than any run of backticks in it.
    let run = command
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(3.max(run + 1));
    let lines = [String::new(), format!("{fence}sh"), command, fence];
    lines.join(&indent)
}

/// As code. What a code span of Markdown, or a table, would give a meaning to goes as entities into HTML's element.
fn code(text: &str) -> String {
    let text = clean(text);
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

/// As running text. A word that could be markup is shown as code.
fn prose(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || ".,:;()'/%?!+=-".contains(letter);
    let calls = ["://", "www.", "GH-"];
    let words = clean(text);
    let words = words.split_whitespace().enumerate();
    let mut words = words.map(|(place, word)| {
        let is_plain = word.chars().all(is_plain) && !calls.iter().any(|call| word.contains(call));
        if is_plain && (place > 0 || !begins_a_block(word)) {
            word.to_owned()
        } else {
            code(word)
        }
    });
    words.join(" ")
}

/// A list, a rule or a heading, where it is the first word of a line.
fn begins_a_block(word: &str) -> bool {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.starts_with(['-', '+', '=']) || rest.len() < word.len() && rest.starts_with(['.', ')'])
}

#[cfg(test)]
mod tests;
