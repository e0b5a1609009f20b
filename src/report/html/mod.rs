//! The report as one HTML file, for a browser, a mail or a printer: what needs a person first.
//!
//! It loads nothing. Its policy forbids every source but the style and the script that are in it, by their
//! digests, so that a text that got through the escaping still could not run. All content is there without the script,
//! which mail readers strip: it only adds buttons that copy, a search, and filters. No element has a `style` attribute, which
//! the policy would refuse.

mod svg;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::svg::Axis;
use super::page::{Block, Entry, Fold, Page, Section, Tag, Tone};
use super::phrases;
use crate::advice::Step;
use crate::words::clean;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The legend of the time axis, which holds the marks that its rows refer to.
const MARKS: &str = include_str!("marks.html");
/// With the digests of both; a test writes it.
const POLICY: &str = include_str!("policy.txt");

/// Writes `page` as HTML.
pub fn write(page: &Page) -> String {
    // An overview comes first where there is room for it.
    let (axis, others): (Vec<_>, Vec<_>) = page.sections.iter().partition(|it| it.id == "nodes");
    let first = others.first().map_or("main", |section| section.id);
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
                    (blocks(&page.lead))
                }
                main #main {
                    @for part in axis.into_iter().chain(others) { (section(page, part)) }
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

fn section(page: &Page, part: &Section) -> Markup {
    let heading_id = format!("{}-heading", part.id);
    let mut entries = Vec::new();
    part.blocks
        .iter()
        .for_each(|block| block.entries(&mut entries));
    let moments = entries
        .iter()
        .flat_map(|entry| &entry.moments)
        .collect::<Vec<_>>();
    let alarming = part.id == "breaker";
    let axis = (!moments.is_empty()).then(|| Axis::over(moments.into_iter(), page.judged_at));
    html! {
        section.card[alarming].alarm[alarming] id=(part.id) aria-labelledby=(heading_id) {
            h2 id=(heading_id) { (clean(&part.heading)) }
            @if let Some(axis) = &axis {
                div.chart {
                    div.node { span.quiet.small { (page.judged_at.strftime("%F UTC")) } (axis.draw()) }
                    (drawn(&part.blocks, Some(axis)))
                    (PreEscaped(MARKS))
                }
            } @else { (drawn(&part.blocks, None)) }
        }
    }
}

fn blocks(all: &[Block]) -> Markup {
    drawn(all, None)
}

/// Entries that follow each other are one list.
fn drawn(all: &[Block], axis: Option<&Axis>) -> Markup {
    let runs = all.chunk_by(|one, other| one.is_item() == other.is_item());
    html! {
        @for run in runs {
            @if run[0].is_item() { ul.rows { @for block in run { (drawn_one(block, axis)) } } }
            @else { @for block in run { (drawn_one(block, axis)) } }
        }
    }
}

fn drawn_one(block: &Block, axis: Option<&Axis>) -> Markup {
    match block {
        Block::Says { label, text, tone } => html! {
            p class=[class(*tone)] { @if !label.is_empty() { b { (label) ": " } } (clean(text)) }
        },
        Block::Steps { ordered, steps, .. } => html! {
            @if *ordered { ol.steps { @for step in steps { (step_of(step)) } } }
            @else { ul.steps.loose { @for step in steps { (step_of(step)) } } }
        },
        Block::Entry(entry) => match axis {
            Some(axis) => on_axis(entry, axis),
            None if entry.is_card => card(entry),
            None => row(entry),
        },
        Block::Fold(Fold { says, blocks }) if says.is_empty() || blocks.is_empty() => {
            drawn(blocks, axis)
        }
        Block::Fold(Fold { says, blocks }) => html! {
            li { details open[axis.is_some()] { summary { (clean(says)) } (drawn(blocks, axis)) } }
        },
    }
}

fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Quiet => Some("quiet"),
        Tone::Caution => Some("risk"),
        Tone::Plain | Tone::Strong | Tone::Good | Tone::Bad => None,
    }
}

/// Pods that a person has to look at, with what there is to do about all of them.
fn card(entry: &Entry) -> Markup {
    let content = html! {
        details open[entry.open] {
            summary {
                h3 { (name(entry)) }
                @if let Some(tag) = entry.tag { (chip(tag, entry.tone)) " " }
                @if let Some(harm) = entry.harm { span.harm { (harm) } }
                p.quiet.small { (clean(&facts(entry))) }
            }
            (blocks(&entry.blocks))
        }
    };
    item(entry, "pod card", &content)
}

fn row(entry: &Entry) -> Markup {
    let content = html! {
        div.line {
            span { (name(entry)) }
            @for (fact, place) in entry.facts.iter().zip(0..) { span.owner[place == 0] { (clean(fact)) } }
            span.end {
                @if let Some(harm) = entry.harm { span.harm { (harm) } " " }
                @if let Some(tag) = entry.tag { (chip(tag, entry.tone)) }
            }
        }
        div.small { (blocks(&entry.blocks)) }
    };
    item(entry, "pod", &content)
}

/// A node, in a line.
fn on_axis(entry: &Entry, axis: &Axis) -> Markup {
    let (state, pods) = (entry.facts.first(), entry.facts.get(1));
    let content = html! {
        details {
            summary.node {
                b { (clean(&entry.name)) }
                (axis.row(&entry.moments))
                span.small { @if let Some(pods) = pods { (clean(pods)) } }
            }
            @if let Some(state) = state { p { (clean(state)) "." } }
            (blocks(&entry.blocks))
            ul.small {
                @for moment in &entry.moments {
                    li {
                        (time(moment.first)) " " b { (moment.word) } ": " (clean(&moment.what))
                        @if moment.last > moment.first { ", the last at " (time(moment.last)) }
                        "."
                    }
                }
            }
        }
    };
    item(entry, "", &content)
}

fn item(entry: &Entry, class: &str, content: &Markup) -> Markup {
    let key = &entry.key;
    let (namespace, node) = (
        key.namespace.as_deref().map(clean),
        key.node.as_deref().map(clean),
    );
    let pods = (key.pods > 0).then_some(key.pods);
    let class = Some(class).filter(|class| !class.is_empty());
    html! {
        li class=[class] data-namespace=[namespace] data-verdict=[key.verdict] data-pods=[pods] data-node=[node] { (content) }
    }
}

fn facts(entry: &Entry) -> String {
    let facts = entry.facts.iter().filter(|fact| !fact.is_empty());
    facts.map(String::as_str).collect::<Vec<_>>().join(", ")
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

/// A long name may be broken after its namespace.
fn name(entry: &Entry) -> Markup {
    match entry.name.split_once('/') {
        Some((namespace, name)) if entry.key.namespace.as_deref() == Some(namespace) => {
            html! { (clean(namespace)) "/" wbr; b { (clean(name)) } }
        }
        _ => html! { b { (clean(&entry.name)) } },
    }
}

fn time(moment: jiff::Timestamp) -> Markup {
    html! { time datetime=(moment) { (moment.strftime("%F %TZ")) } }
}

/// A code, which leads to what it means.
fn chip(tag: Tag, tone: Tone) -> Markup {
    let colour = match tone {
        Tone::Bad => "bad",
        Tone::Caution => "warn",
        Tone::Good => "good",
        Tone::Plain | Tone::Strong | Tone::Quiet => "neutral",
    };
    html! { a.chip.(colour) href=(format!("#{}-{}", tag.of, tag.code)) { (tag.code) } }
}

#[cfg(test)]
mod tests;
