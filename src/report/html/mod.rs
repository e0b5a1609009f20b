//! The report as one HTML file, for a browser, a mail or a printer: what needs a person first.
//!
//! It loads nothing. Its policy forbids every source but the style and the script that are in it, by their
//! digests, so that a text that got through the escaping still could not run. All content is there without the script,
//! which mail readers strip: it only adds buttons that copy, a search, and filters. No element has a `style` attribute, which
//! the policy would refuse.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    page::{Block, Entry, Page, Section},
    phrases,
};
use crate::{advice::Step, words::clean};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// With the digests of both; a test writes it.
const POLICY: &str = include_str!("policy.txt");

/// Writes `page` as HTML.
pub fn write(page: &Page) -> String {
    let first = page.sections.first().map_or("main", |section| section.id);
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (page.headline) " · " @if !page.place.is_empty() { (clean(&page.place)) " · " } "pod-reaper" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href=(format!("#{first}")) { "Skip to what matters most" }
                header {
                    h1 { (page.headline) }
                    p.quiet { (clean(&page.about)) }
                    ul.counts { @for part in &page.sections { li { a href=(format!("#{}", part.id)) { (clean(&part.heading)) } } } }
                    (drawn(&page.lead))
                }
                main #main {
                    @for part in &page.sections { (section(part)) }
                    (words(page))
                }
                footer.quiet.small {
                    p { (clean(&page.settings)) " Times are UTC, of the cluster's clock." }
                }
                p #said.visually-hidden role="status" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    document.into_string() + "\n"
}

fn section(part: &Section) -> Markup {
    let heading_id = format!("{}-heading", part.id);
    let alarming = part.id == "breaker";
    html! {
        section.card[alarming].alarm[alarming] id=(part.id) aria-labelledby=(heading_id) {
            h2 id=(heading_id) { (clean(&part.heading)) }
            (drawn(&part.blocks))
        }
    }
}

/// Entries that follow each other are one list.
fn drawn(all: &[Block]) -> Markup {
    let runs = all.chunk_by(|one, other| one.is_item() == other.is_item());
    html! {
        @for run in runs {
            @if run[0].is_item() { ul.rows { @for block in run { (drawn_one(block)) } } }
            @else { @for block in run { (drawn_one(block)) } }
        }
    }
}

fn drawn_one(block: &Block) -> Markup {
    match block {
        Block::Says { label, text, tone } => html! {
            p.(tone) { @if !label.is_empty() { b { (label) ": " } } (clean(text)) }
        },
        Block::Steps(steps) => html! {
            ol.steps.loose[steps.len() == 1] { @for step in steps { (step_of(step)) } }
        },
        Block::Entry(entry) => item(entry),
        Block::Fold { says, blocks } if says.is_empty() => drawn(blocks),
        Block::Fold { says, blocks } => html! {
            li { details { summary { (clean(says)) } (drawn(blocks)) } }
        },
    }
}

/// A card or a row.
fn item(entry: &Entry) -> Markup {
    let key = &entry.key;
    let namespace = key.namespace.as_deref().map(clean);
    let node = key.node.as_deref().map(clean);
    let pods = (key.pods > 0).then_some(key.pods);
    html! {
        li.pod[pods.is_some()].card[entry.is_card] data-namespace=[namespace] data-verdict=[key.verdict] data-pods=[pods] data-node=[node] {
            @if entry.is_card {
                details open[entry.open] {
                    summary { (line(entry)) }
                    (drawn(&entry.blocks))
                }
            } @else {
                (line(entry))
                div.small { (drawn(&entry.blocks)) }
            }
        }
    }
}

fn line(entry: &Entry) -> Markup {
    html! {
        div.line {
            @if entry.is_card { h3 { (name(entry)) } } @else { span { (name(entry)) } }
            @for (fact, place) in entry.facts.iter().zip(0..) { span.owner[place == 0] { (clean(fact)) } }
            span.end {
                // A code leads to what it means.
                @if let Some(tag) = entry.tag { a.chip.(entry.tone) href=(format!("#{}-{}", tag.of, tag.code)) { (tag.code) } " " }
                @if let Some(harm) = entry.harm { span.harm { (harm) } }
            }
        }
    }
}

/// A long name may be broken after its namespace.
fn name(entry: &Entry) -> Markup {
    match entry.name.split_once('/') {
        Some((namespace, name)) if entry.key.namespace.as_deref() == Some(namespace) => {
            html! { (clean(namespace)) "/" wbr; b { (clean(name)) } }
        }
        _ => html! { b { (clean(&entry.name)) } },
    }
}

fn step_of(step: &Step) -> Markup {
    html! {
        li.harmful[step.harm.is_some()] {
            p { @if let Some(harm) = step.harm { span.harm { (harm) } " " } (clean(&step.what)) }
            @if let Some(command) = &step.command {
                div.command { pre { code { (phrases::command(command)) } } }
            }
        }
    }
}

fn words(page: &Page) -> Markup {
    html! {
        section #words aria-labelledby="words-heading" {
            h2 #words-heading { "What the words mean" }
            dl.glossary {
                @for word in &page.words {
                    div id=(format!("{}-{}", word.of, word.code)) {
                        dt { (word.code) " " span.quiet { "(" (word.of) ")" } }
                        dd { (word.means) }
                        @if !word.advice.is_empty() { dd { b { "What to do: " } (word.advice) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
