//! The report as one HTML file, for a browser, a mail or a printer: what needs a person first.
//!
//! It loads nothing. Its policy forbids every source but the style and the script that are in it, by their
//! digests, so that a text that got through the escaping still could not run. All content is there without the script,
//! which mail readers strip: it only adds buttons that copy, and filters. No element has a `style` attribute, which
//! the policy would refuse.

mod svg;

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Group, NodeEntry, PodEntry, Report,
    phrases::{self, clean},
    timeline,
};
use crate::{
    advice::Step,
    decide::{ReasonCode, Verdict},
    glossary,
    outcome::OutcomeCode,
};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The class of the parts that are about pods, which the filters work on.
const OF_PODS: Option<&str> = Some("of-pods");
/// With the digests of both; a test writes it.
const POLICY: &str = include_str!("policy.txt");

/// Writes `report` as a page.
pub fn write(report: &Report) -> String {
    let title = title(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title {
                    "pod-reaper: "
                    @if let Some(cluster) = &report.cluster_name { (clean(cluster)) ": " }
                    (title)
                }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to what needs you" }
                (header(report, &title))
                main #main {
                    (filters(report))
                    (for_a_person(report))
                    (remember(report))
                    (nodes(report))
                    @for verdict in [Verdict::Reap, Verdict::Wait, Verdict::Leave] { (rows(report, verdict)) }
                    (besides(report))
                    (glossary(report))
                }
                footer.quiet.small {
                    p { "Written by pod-reaper " (report.program_version) ". Times are UTC, of the cluster's clock." }
                }
                p #said.visually-hidden role="status" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string() + "\n"
}

/// What matters most, in a few words.
fn title(report: &Report) -> String {
    let plural = |count, one, many| (count > 0).then(|| phrases::counted(count, one, many));
    let wrong = report.pods.iter().filter(|pod| phrases::went_wrong(pod)).count();
    let told = report.notices.iter().filter(|notice| notice.code.asks_for_a_look()).count();
    let parts = [
        report.breaker.as_ref().map(|_| "nothing is deleted".to_owned()),
        plural(phrases::of(report, Verdict::Manual).len(), "pod needs you", "pods need you"),
        plural(wrong, "pod was not reaped", "pods were not reaped"),
        plural(report.errors.len(), "thing could not be read", "things could not be read"),
        plural(told, "thing is worth knowing", "things are worth knowing"),
    ];
    let title = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut letters = title.chars();
    match letters.next() {
        None => "Nothing needs you".to_owned(),
        Some(first) => first.to_uppercase().chain(letters).collect(),
    }
}

fn header(report: &Report, title: &str) -> Markup {
    let wrong = report.pods.iter().any(phrases::went_wrong);
    html! {
        header {
            p.quiet.small { "pod-reaper " (report.program_version) ": " (clean(&phrases::run(report))) }
            h1 { (title) }
            p {
                "Judged at " (time(report.judged_at)) ". "
                (clean(&phrases::settings(report)))
            }
            ul.counts {
                @for (verdict, words) in [
                    (Verdict::Manual, "need you"),
                    (Verdict::Reap, phrases::reaped(report)),
                    (Verdict::Wait, "waiting"),
                    (Verdict::Leave, "left alone"),
                ] {
                    @let pods = phrases::of(report, verdict);
                    @let alarming = verdict == Verdict::Manual || verdict == Verdict::Reap && wrong;
                    li {
                        @if !pods.is_empty() {
                            a.bad[alarming] href=(format!("#{verdict}")) { b { (phrases::count(&pods)) } (words) }
                        } @else {
                            span.count { b { "0" } (words) }
                        }
                    }
                }
                li {
                    a href="#nodes" {
                        b { (report.summary.nodes_not_ready) " of " (report.summary.nodes) } "nodes NotReady"
                    }
                }
            }
            p.quiet { (clean(&phrases::summary(report))) }
            @if let Some(breaker) = &report.breaker {
                div.card.alarm role="note" {
                    p { b { "Nothing is deleted " } (reason_chip(breaker.reason)) }
                    @for says in phrases::breaker(breaker) { p { (clean(&says)) } }
                }
            }
        }
    }
}

/// Hidden until the script shows it: without one it would do nothing.
fn filters(report: &Report) -> Markup {
    let namespaces = report.pods.iter().map(|pod| pod.namespace.as_str()).collect::<BTreeSet<_>>();
    let verdicts = Verdict::ALL.map(Verdict::as_str).to_vec();
    let choices = [("Namespace", "namespace", Vec::from_iter(namespaces)), ("Verdict", "verdict", verdicts)];
    html! {
        @if !report.pods.is_empty() {
            form #filters.filters hidden autocomplete="off" aria-label="Filter the pods" {
                @for (label, name, options) in choices {
                    label {
                        (label)
                        select name=(name) {
                            option value="" { "all" }
                            @for option in options { option value=(option) { (clean(option)) } }
                        }
                    }
                }
                button type="reset" { "Show all" }
                p #shown.quiet.small role="status" {}
            }
        }
    }
}

/// A part of the page, under its heading. `class` marks those that are about pods.
fn section(id: &str, class: Option<&str>, heading: &str, content: &Markup) -> Markup {
    let heading_id = format!("{id}-heading");
    html! {
        section class=[class] id=(id) aria-labelledby=(heading_id) {
            h2 id=(heading_id) { (heading) }
            (content)
        }
    }
}

/// Such a part with a list in it; nothing where the list is empty.
fn list(id: &str, class: Option<&str>, heading: &str, items: &[Markup]) -> Markup {
    if items.is_empty() {
        return html! {};
    }
    section(id, class, heading, &html! { ul.rows { @for item in items { (item) } } })
}

fn for_a_person(report: &Report) -> Markup {
    if report.groups.is_empty() {
        return html! {};
    }
    let heading = phrases::heading(report, Verdict::Manual);
    section(
        "manual",
        OF_PODS,
        &heading,
        &html! { ol { @for group in &report.groups { (card(report, group)) } } },
    )
}

/// Pods that a person has to look at, with what there is to do about all of them.
fn card(report: &Report, group: &Group) -> Markup {
    let pod = &report.pods[group.pods[0]];
    let several = phrases::several(report, group);
    html! {
        li.pod.card.manual data-namespace=(pod.namespace) data-verdict=(pod.verdict) data-pods=(group.pods.len()) {
            div.head {
                h3 { @if let Some((says, _)) = &several { (clean(says)) } @else { (name(pod)) } }
                (chip(pod))
            }
            @if let Some((_, names)) = &several {
                p { (clean(names)) }
            } @else {
                p.meta {
                    @if let Some(owner) = &pod.owner { span { (clean(&owner.kind)) "/" (clean(&owner.name)) } }
                    @if let Some(node) = &pod.node { span { "on " (clean(node)) } }
                    span { (phrases::overdue(pod.overdue_seconds)) }
                }
            }
            p { (clean(&group.detail)) }
            @if let Some(risk) = &group.risk { p.risk { b { "Risk: " } (clean(risk)) } }
            @if !group.steps.is_empty() { ol.steps { @for step in &group.steps { (step_of(step)) } } }
        }
    }
}

fn step_of(step: &Step) -> Markup {
    html! {
        li {
            p { (clean(&step.what)) }
            @if let Some(command) = &step.command {
                div.command { pre { code { (phrases::command(command)) } } }
            }
        }
    }
}

/// What the owners of reaped pods have written down for this moment.
fn remember(report: &Report) -> Markup {
    let reaped = report.pods.iter().enumerate().filter(|(_, pod)| pod.verdict == Verdict::Reap);
    let item = |(number, pod): (usize, &PodEntry)| {
        let note = clean(pod.note.as_ref()?);
        let link = html! { a href=(format!("#pod-{number}")) { (name(pod)) } };
        Some(html! { li data-namespace=(pod.namespace) { (link) ": " (note) } })
    };
    let items = reaped.filter_map(item).collect::<Vec<_>>();
    list("remember", OF_PODS, &format!("To remember once they are reaped: {}", items.len()), &items)
}

fn nodes(report: &Report) -> Markup {
    let cards = report.nodes.iter().enumerate().map(|(number, node)| node_card(report, number, node));
    section("nodes", None, &phrases::nodes(report), &html! { @for card in cards { (card) } })
}

fn node_card(report: &Report, number: usize, node: &NodeEntry) -> Markup {
    let moments = timeline::of(report, node);
    html! {
        article.card {
            div.head {
                h3 { (clean(&node.name)) }
                @if !node.leaf_marks.is_empty() { span.chip.warn { "leaf node" } }
            }
            p { (clean(&phrases::node(report, node))) ". Terminating pods: " (phrases::terminating(node).as_deref().unwrap_or("none")) "." }
            @if !node.leaf_marks.is_empty() {
                p.quiet { "A leaf node, by its " (clean(&node.leaf_marks.join(", "))) "." }
            }
            (svg::draw(&format!("timeline-{number}"), &clean(&node.name), &moments))
            ol.moments {
                @for moment in &moments {
                    li {
                        (time(moment.first))
                        span.offset { (svg::offset(node.since, moment.first)) }
                        span.what {
                            b { (moment.word) } ": " (moment.what)
                            @if moment.last > moment.first { ", the last at " (time(moment.last)) }
                            "."
                        }
                    }
                }
            }
            @if !node.volume_attachments.is_empty() {
                p { "Volumes still attached: " (clean(&phrases::attached(node))) "." }
            }
            @if !node.steps.is_empty() { ul.steps.loose { @for step in &node.steps { (step_of(step)) } } }
        }
    }
}

/// The pods with a verdict that leaves a person little to do, a line each; what went wrong first.
fn rows(report: &Report, verdict: Verdict) -> Markup {
    let mut numbered = report.pods.iter().enumerate().collect::<Vec<_>>();
    numbered.retain(|(_, pod)| pod.verdict == verdict);
    numbered.sort_by_key(|(_, pod)| !phrases::went_wrong(pod));
    let rows = numbered.into_iter().map(|(number, pod)| row(number, pod)).collect::<Vec<_>>();
    list(verdict.as_str(), OF_PODS, &phrases::heading(report, verdict), &rows)
}

fn row(number: usize, pod: &PodEntry) -> Markup {
    html! {
        li.pod id=(format!("pod-{number}")) data-namespace=(pod.namespace) data-verdict=(pod.verdict) {
            div.line {
                span { (name(pod)) }
                span.owner { @if let Some(owner) = &pod.owner { (clean(&owner.kind)) "/" (clean(&owner.name)) } }
                span { @if let Some(node) = &pod.node { "on " (clean(node)) ", " } (phrases::overdue(pod.overdue_seconds)) }
                span.end { @if phrases::tag(pod).is_some() { (chip(pod)) } }
            }
            @if let Some(sentence) = phrases::sentence(pod) { p.quiet.small { (clean(sentence)) } }
            @if let Some(says) = phrases::replacement(pod) { p.small { b { "Replacement: " } (clean(&says)) } }
            @if let Some(note) = &pod.note { p.note { b { "Note: " } (clean(note)) } }
        }
    }
}

/// What there is to know besides, what could not be read, and what could not be seen.
fn besides(report: &Report) -> Markup {
    let notices = report.notices.iter();
    let notices = notices
        .map(|notice| html! { li { (clean(&notice.detail)) " " span.quiet { "[" (notice.code) "]" } } });
    let errors = report.errors.iter();
    let errors = errors.map(|error| html! { li { b { (clean(&error.what)) } ": " (clean(&error.cause)) } });
    let unseen = report.unseen.iter().map(|sentence| html! { li { (clean(sentence)) } });
    let unread = format!("Could not be read: {}", report.errors.len());
    html! {
        (list("notices", None, "Worth knowing", &notices.collect::<Vec<_>>()))
        (list("unread", None, &unread, &errors.collect::<Vec<_>>()))
        (list("unseen", None, "Could not be seen", &unseen.collect::<Vec<_>>()))
    }
}

fn glossary(report: &Report) -> Markup {
    let seen = phrases::reasons(report);
    let (here, others): (Vec<_>, Vec<_>) = ReasonCode::ALL.into_iter().partition(|code| seen.contains(code));
    let outcomes = report.summary.outcomes.iter().map(|(code, count)| (code.as_str(), "outcome", *count));
    let states = report.summary.replacements.iter();
    let states = states.map(|(state, count)| (state.as_str(), "replacement", *count));
    let words = outcomes.chain(states).filter(|(.., count)| *count > 0).collect::<Vec<_>>();
    let words = html! {
        @if !here.is_empty() { (reasons(&here)) }
        @if !words.is_empty() {
            dl.glossary {
                @for (word, of, _) in words {
                    div id=(format!("{of}-{word}")) {
                        dt { (word) " " span.quiet { "(" (of) ")" } }
                        dd { (glossary::means(word)) }
                    }
                }
            }
        }
        details {
            summary { @if here.is_empty() { "The reasons that a pod can have" } @else { "The other reasons that a pod can have" } }
            (reasons(&others))
        }
    };
    section("reasons", None, "What the words mean", &words)
}

fn reasons(reasons: &[ReasonCode]) -> Markup {
    html! {
        dl.glossary {
            @for code in reasons {
                @let (means, advice) = glossary::reason(code.as_str());
                div id=(format!("reason-{code}")) {
                    dt { (code) " " span.quiet { "(" (code.verdict()) ")" } }
                    dd { (means) }
                    dd { b { "What to do: " } (advice) }
                }
            }
        }
    }
}

fn name(pod: &PodEntry) -> Markup {
    html! { (clean(&pod.namespace)) "/" wbr; b { (clean(&pod.name)) } }
}

fn time(moment: jiff::Timestamp) -> Markup {
    html! { time datetime=(moment) { (moment.strftime("%F %TZ")) } }
}

/// The outcome or the reason, which leads to what it means.
fn chip(pod: &PodEntry) -> Markup {
    let Some(outcome) = pod.outcome else {
        return reason_chip(pod.reason);
    };
    let colour = match outcome {
        _ if phrases::went_wrong(pod) => "bad",
        OutcomeCode::WouldDelete => "neutral",
        _ => "good",
    };
    html! { a.chip.(colour) href=(format!("#outcome-{outcome}")) { (outcome) } }
}

fn reason_chip(code: ReasonCode) -> Markup {
    let colour = match code.verdict() {
        Verdict::Manual => "bad",
        Verdict::Wait => "warn",
        Verdict::Reap | Verdict::Leave => "neutral",
    };
    html! { a.chip.(colour) href=(format!("#reason-{code}")) { (code) } }
}

#[cfg(test)]
mod tests;
