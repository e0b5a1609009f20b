//! The report in GitHub's Markdown, for a ticket or a chat: what needs a person first, commands in fenced blocks.
//!
//! Text from the cluster must not become markup, and must not mention anybody: GitHub makes a mention of `@name`, a link of
//! `#1`, and a formula of `$…$`, also where Markdown itself sees plain text. It does so nowhere in code, so a word with
//! such a letter is shown as code.

use itertools::Itertools as _;

use super::{
    page::{Block, Entry, Page, Word, unfolded},
    phrases::command,
};
use crate::{
    advice::Step,
    words::{after, clean},
};

/// Writes `page` as Markdown.
pub fn write(page: &Page) -> String {
    let mut text = format!("# {}\n", prose(&page.about));
    paragraph(&mut text, &prose(&page.settings));
    blocks(&mut text, &page.lead);
    for section in &page.sections {
        text += &format!("\n## {}\n", prose(&section.heading));
        blocks(&mut text, &section.blocks);
    }
    if !page.words.is_empty() {
        text += "\n## What the words mean\n\n";
    }
    for Word {
        code: of,
        means,
        advice,
        ..
    } in &page.words
    {
        let advice = Some(prose(advice)).filter(|advice| !advice.is_empty());
        let advice = advice.map(|advice| format!(" *{advice}*"));
        text += &format!("- {}: {}{}\n", code(of), prose(means), after("", advice));
    }
    text
}

fn paragraph(text: &mut String, says: &str) {
    if !says.is_empty() {
        *text += &format!("\n{says}\n");
    }
}

/// What is folded elsewhere is whole here. Entries that are no cards are rows of one table.
fn blocks(text: &mut String, all: &[Block]) {
    let mut rows = 0;
    for block in unfolded(all) {
        match block {
            Block::Says {
                label, text: says, ..
            } => paragraph(text, &labelled(label, says)),
            Block::Steps(steps) => {
                for (step, number) in steps.iter().zip(1..) {
                    let mark = match steps.len() {
                        1 => "- ".to_owned(),
                        _ => format!("{number}. "),
                    };
                    item(text, &mark, step);
                }
            }
            Block::Entry(entry) if entry.is_card => card(text, entry),
            Block::Entry(entry) => {
                if rows == 0 {
                    let between = "  |".repeat(entry.facts.len() + 1);
                    let rule = " --- |".repeat(entry.facts.len() + 3);
                    *text += &format!("\n| Name |{between} Remarks |\n|{rule}\n");
                }
                rows += 1;
                row(text, entry);
            }
            Block::Fold { .. } => {}
        }
    }
}

fn row(text: &mut String, entry: &Entry) {
    let remarks = entry.blocks.iter().filter_map(|block| match block {
        Block::Says { label, text, .. } => Some(labelled(label, text)),
        _ => None,
    });
    let harm = entry.harm.map(|harm| format!("**{harm}.**"));
    let facts = entry.facts.iter().map(|fact| prose(fact));
    let mut cells = [code(&entry.name)].into_iter().chain(facts).chain([
        after("", entry.tag.map(|tag| code(tag.code))),
        harm.into_iter().chain(remarks).join(" "),
    ]);
    *text += &format!("| {} |\n", cells.join(" | "));
}

fn card(text: &mut String, entry: &Entry) {
    let tag = entry.tag.map(|tag| code(tag.code));
    let facts = entry.known_facts().map(prose);
    let facts = tag.into_iter().chain(facts).join(", ");
    *text += &format!("\n### {}\n\n{facts}\n", code(&entry.name));
    blocks(text, &entry.blocks);
}

fn labelled(label: &str, says: &str) -> String {
    match label {
        "" => prose(says),
        label => format!("**{label}:** {}", prose(says)),
    }
}

/// A step in a list, its command in a fence that belongs to the item.
fn item(page: &mut String, mark: &str, step: &Step) {
    *page += &format!("\n{mark}{}\n", prose(&step.what));
    let Some(pasted) = &step.command else { return };
    let indent = " ".repeat(mark.len());
    let command = command(pasted).replace('\n', &format!("\n{indent}"));
    // A fence that is longer than any run of backticks in it.
    let run = command
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(3.max(run + 1));
    *page += &format!("\n{indent}{fence}sh\n{indent}{command}\n{indent}{fence}\n");
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
