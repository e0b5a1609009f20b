//! The report in GitHub's Markdown, for a ticket or a chat: what needs a person first, commands in fenced blocks.
//!
//! Text from the cluster must not become markup, and must not mention anybody: GitHub makes a mention of `@name`, a link of
//! `#1`, and a formula of `$…$`, also where Markdown itself sees plain text. It does so nowhere in code, so a word with
//! such a letter is shown as code.

use super::page::{Block, Entry, Page};
use super::phrases::command;
use crate::advice::Step;
use crate::words::clean;

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
    for word in &page.words {
        let advice = Some(prose(word.advice)).filter(|advice| !advice.is_empty());
        let advice = advice
            .map(|advice| format!(" *{advice}*"))
            .unwrap_or_default();
        text += &format!("- {}: {}{advice}\n", code(word.code), prose(word.means));
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
            Block::Steps { ordered, steps, .. } => {
                for (number, step) in steps.iter().enumerate() {
                    let number = format!("{}. ", number + 1);
                    item(text, if *ordered { &number } else { "- " }, step);
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
            Block::Fold(_) => {}
        }
    }
}

fn unfolded(all: &[Block]) -> Vec<&Block> {
    let whole = all.iter().flat_map(|block| match block {
        Block::Fold(fold) => unfolded(&fold.blocks),
        other => vec![other],
    });
    whole.collect()
}

fn row(text: &mut String, entry: &Entry) {
    let remarks = entry.blocks.iter().filter_map(|block| match block {
        Block::Says { label, text, .. } => Some(labelled(label, text)),
        _ => None,
    });
    let harm = entry.harm.map(|harm| format!("**{harm}.**"));
    let mut cells = vec![code(&entry.name)];
    cells.extend(entry.facts.iter().map(|fact| prose(fact)));
    cells.push(entry.tag.map(|tag| code(tag.code)).unwrap_or_default());
    cells.push(
        harm.into_iter()
            .chain(remarks)
            .collect::<Vec<_>>()
            .join(" "),
    );
    *text += &format!("| {} |\n", cells.join(" | "));
}

fn card(text: &mut String, entry: &Entry) {
    let facts = entry.facts.iter().filter(|fact| !fact.is_empty());
    let tag = entry.tag.map(|tag| code(tag.code));
    let facts = tag.into_iter().chain(facts.map(|fact| prose(fact)));
    let facts = facts.collect::<Vec<_>>().join(", ");
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
        |letter: char| letter.is_alphanumeric() || "-./:_=,+%() {}\"'@#$?!;".contains(letter);
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

/// As running text, in which nothing is markup.
fn prose(text: &str) -> String {
    let calls = |word: &str| {
        word.contains(['@', '#', '$'])
            || word.contains("://")
            || word.contains("www.")
            || word.contains("GH-")
    };
    let escaped = |word: &str| {
        let mut escaped = String::new();
        for letter in word.chars() {
            match letter {
                '|' => escaped += "&#124;",
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '&' => {
                    escaped.extend(['\\', letter]);
                }
                letter => escaped.push(letter),
            }
        }
        escaped
    };
    let words = clean(text);
    let words = words.split_whitespace().enumerate().map(|(place, word)| {
        if calls(word) || (place == 0 && begins_a_block(word)) {
            code(word)
        } else {
            escaped(word)
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A list, a rule or a heading, where it is the first word of a line.
fn begins_a_block(word: &str) -> bool {
    let unnumbered = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    word.starts_with(['-', '+', '='])
        || (unnumbered.len() < word.len() && unnumbered.starts_with(['.', ')']))
}

#[cfg(test)]
mod tests;
