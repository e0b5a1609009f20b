//! The report as one HTML file, for a browser, a mail or a printer: what needs a person first.
//!
//! It loads nothing. Its policy forbids every source but the style and the script that are in it, by their
//! digests, so that a text that got through the escaping still could not run. All content is there without the script,
//! which mail readers strip: it only adds buttons that copy, a search, and filters. No element has a `style` attribute, which
//! the policy would refuse.

mod svg;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::svg::Axis;

use super::{
    Group, NodeEntry, PodEntry, Report,
    phrases::{self, clean},
    timeline::{self, Moment},
};
use crate::{
    advice::Step,
    decide::{ReasonCode, Verdict},
    limits::natural,
    outcome::OutcomeCode,
};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The class of the parts that are about pods, which the filters work on.
const OF_PODS: Option<&str> = Some("of-pods");
/// How many rows a reader can take in at once. Further rows are folded.
const FIRST: usize = 25;
/// More pods than this of a kind on a node are folded.
const MANY: usize = 10;
/// How many cards are unfolded: they are tall.
const FEW: usize = 3;
/// The legend of the time axis, which holds the marks that its rows refer to.
const MARKS: &str = include_str!("marks.html");
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
                    (title) " · "
                    @if let Some(place) = report.cluster_name.as_ref().or(report.cluster.as_ref()) { (clean(place)) " · " }
                    "pod-reaper"
                }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href=(if report.groups.is_empty() { "#main" } else { "#manual" }) { "Skip to what needs you" }
                (header(report, &title))
                main #main {
                    (nodes(report))
                    (manual(report))
                    (remember(report))
                    @for verdict in [Verdict::Reap, Verdict::Wait, Verdict::Leave] { (rows(report, verdict)) }
                    (besides(report))
                    (glossary(report))
                }
                footer.quiet.small {
                    p { "pod-reaper " (report.program_version) ": " (clean(&phrases::run(report))) ", judged at " (time(report.judged_at)) "." }
                    p { (clean(&phrases::settings(report))) " Times are UTC, of the cluster's clock." }
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
    let reap = phrases::of(report, Verdict::Reap);
    let wrong = reap.iter().filter(|pod| phrases::went_wrong(pod)).count();
    let told = report
        .notices
        .iter()
        .filter(|notice| notice.code.asks_for_a_look())
        .count();
    let parts = [
        report
            .breaker
            .as_ref()
            .map(|breaker| format!("nothing is deleted, {} held", breaker.held)),
        plural(
            phrases::of(report, Verdict::Manual).len(),
            "pod needs you",
            "pods need you",
        ),
        plural(wrong, "pod was not reaped", "pods were not reaped"),
        (wrong < reap.len()).then(|| format!("{} {}", reap.len() - wrong, phrases::reaped(report))),
        plural(
            report.errors.len(),
            "thing could not be read",
            "things could not be read",
        ),
        plural(told, "thing is worth knowing", "things are worth knowing"),
    ];
    let title = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if title.is_empty() {
        "nothing needs you".to_owned()
    } else {
        title
    }
}

fn header(report: &Report, title: &str) -> Markup {
    let wrong = report.pods.iter().any(phrases::went_wrong);
    html! {
        header {
            h1 { (title) }
            ul.counts {
                @for (verdict, words) in [
                    (Verdict::Manual, "need you"),
                    (Verdict::Reap, phrases::reaped(report)),
                    (Verdict::Wait, "waiting"),
                    (Verdict::Leave, "left alone"),
                ] {
                    @let pods = phrases::of(report, verdict);
                    @let alarming = verdict == Verdict::Manual || verdict == Verdict::Reap && wrong;
                    @if !pods.is_empty() {
                        li { a.bad[alarming] href=(format!("#{verdict}")) { b { (phrases::count(&pods)) } (words) } }
                    }
                }
                @let b = html! { b { (report.summary.nodes_not_ready) " of " (report.summary.nodes) } };
                li { a href="#nodes" { (b) "nodes NotReady" } }
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
    section(id, class, heading, &short(items))
}

/// A list. All after the first entries are folded.
fn short(items: &[Markup]) -> Markup {
    let (first, more) = items.split_at(items.len().min(FIRST));
    html! {
        ul.rows { @for item in first { (item) } }
        @if !more.is_empty() {
            details { summary { (more.len()) " more" } ul.rows { @for item in more { (item) } } }
        }
    }
}

/// What needs a person: pods, and what to do about the nodes.
fn manual(report: &Report) -> Markup {
    let cards = report
        .groups
        .iter()
        .map(|group| card(report, group))
        .collect::<Vec<_>>();
    let nodes = report
        .nodes
        .iter()
        .filter(|node| !node.steps.is_empty())
        .map(|node| {
            html! { li data-node=(clean(&node.name)) { (loose(&node.steps)) } }
        });
    let run_now = report.run_now.iter();
    let run_now = run_now.map(|step| html! { li { (loose([step])) } });
    html! {
        (list("manual", OF_PODS, &phrases::heading(report, Verdict::Manual), &cards))
        (list("run-now", None, "Once you have answered", &run_now.collect::<Vec<_>>()))
        (list("node-steps", None, "What to do about the nodes", &nodes.collect::<Vec<_>>()))
    }
}

/// Pods that a person has to look at, with what there is to do about all of them.
fn card(report: &Report, group: &Group) -> Markup {
    let pod = &report.pods[group.pods[0]];
    let several = phrases::several(report, group);
    let harm = group.steps.iter().find_map(|step| step.harm);
    let node = pod.node.as_deref().map(clean);
    html! {
        li.pod.card data-namespace=(pod.namespace) data-verdict=(pod.verdict) data-pods=(group.pods.len()) data-node=[node] {
            details open[report.groups.len() <= FEW] {
                summary {
                    h3 { @if let Some((says, _)) = &several { (clean(says)) } @else { (name(pod)) } }
                    (chip(pod)) " "
                    @if let Some(harm) = harm { span.harm { (harm) } }
                    @if several.is_none() { p.quiet.small { (origin(pod)) (place(pod)) } }
                }
                @if let Some((_, names)) = &several {
                    details open[group.pods.len() <= MANY] { summary { "Their names" } p { (clean(names)) } }
                }
                p { (clean(&group.detail)) }
                @if let Some(risk) = &group.risk { p.risk { b { "Risk: " } (clean(risk)) } }
                @if !group.steps.is_empty() { ol.steps { @for step in &group.steps { (step_of(step)) } } }
            }
        }
    }
}

fn origin(pod: &PodEntry) -> Markup {
    html! { span.owner { @if let Some(owner) = &pod.owner { (clean(&owner.kind)) "/" (clean(&owner.name)) } } " " }
}

fn place(pod: &PodEntry) -> Markup {
    html! { span { @if let Some(node) = &pod.node { "on " (clean(node)) ", " } (phrases::overdue(pod.overdue_seconds)) } }
}

/// Steps of which none waits for another.
fn loose<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Markup {
    html! { ul.steps.loose { @for step in steps { (step_of(step)) } } }
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

/// What the owners of reaped pods have written down for this moment.
fn remember(report: &Report) -> Markup {
    let items = phrases::of(report, Verdict::Reap)
        .into_iter()
        .filter_map(|pod| {
            let note = clean(pod.note.as_ref()?);
            Some(html! { li data-namespace=(pod.namespace) { (name(pod)) ": " (note) } })
        });
    let items = items.collect::<Vec<_>>();
    list(
        "remember",
        OF_PODS,
        &format!("To remember once they are reaped: {}", items.len()),
        &items,
    )
}

/// The nodes on one time axis, a row each, those with pods for a person first.
fn nodes(report: &Report) -> Markup {
    let nodes = report
        .nodes
        .iter()
        .map(|node| (node, timeline::of(report, node)));
    let mut nodes = nodes.collect::<Vec<_>>();
    nodes.sort_by_key(|(node, _)| {
        node.pods
            .get(&Verdict::Manual)
            .is_none_or(|count| *count == 0)
    });
    let axis = Axis::over(
        nodes.iter().flat_map(|(_, moments)| moments),
        report.judged_at,
    );
    let rows = nodes
        .iter()
        .map(|(node, moments)| node_row(report, node, moments, &axis));
    let chart = html! {
        @if !nodes.is_empty() {
            div.chart {
                div.node { span.quiet.small { (report.judged_at.strftime("%F")) } (axis.draw()) }
                (short(&rows.collect::<Vec<_>>()))
                (PreEscaped(MARKS))
            }
        }
    };
    section("nodes", None, &phrases::nodes(report), &chart)
}

fn node_row(report: &Report, node: &NodeEntry, moments: &[Moment], axis: &Axis) -> Markup {
    let leaf = !node.leaf_marks.is_empty();
    html! {
        li data-node=(clean(&node.name)) {
            details {
                summary.node {
                    b { (clean(&node.name)) }
                    (axis.row(node.since, moments))
                    span.small { @if leaf { "leaf node, " } (phrases::terminating(node).as_deref().unwrap_or("none Terminating")) }
                }
                p { (clean(&phrases::node(report, node))) "." }
                @if leaf { p { "A leaf node, by its " (clean(&node.leaf_marks.join(", "))) "." } }
                ul.small {
                    @for moment in moments {
                        li {
                            (time(moment.first)) " " b { (moment.word) } ": " (moment.what)
                            @if moment.last > moment.first { ", the last at " (time(moment.last)) }
                            "."
                        }
                    }
                }
                @if !node.volume_attachments.is_empty() { p { "Volumes still attached: " (clean(&phrases::attached(node))) "." } }
            }
        }
    }
}

/// The pods with a verdict that leaves a person little to do, a line each; what went wrong first. Many of a kind on a node
/// are folded.
fn rows(report: &Report, verdict: Verdict) -> Markup {
    let kind = |pod: &&PodEntry| {
        (
            !phrases::went_wrong(pod),
            pod.node.as_deref().map(natural),
            phrases::tag(pod),
        )
    };
    let mut pods = phrases::of(report, verdict);
    pods.sort_by_cached_key(kind);
    let kinds = pods.chunk_by(|one, other| kind(one) == kind(other)).map(|alike| {
        let (pod, rows) = (alike[0], html! { @for pod in alike { (row(pod)) } });
        if alike.len() <= MANY {
            return rows;
        }
        let summary = html! {
            b { (alike.len()) " pods" } @if let Some(node) = &pod.node { " on " (clean(node)) } " "
            @if phrases::tag(pod).is_some() { (chip(pod)) }
        };
        html! { li { details { summary { (summary) } ul.rows { (rows) } } } }
    });
    list(
        verdict.as_str(),
        OF_PODS,
        &phrases::heading(report, verdict),
        &kinds.collect::<Vec<_>>(),
    )
}

fn row(pod: &PodEntry) -> Markup {
    let node = pod.node.as_deref().map(clean);
    html! {
        li.pod data-namespace=(pod.namespace) data-verdict=(pod.verdict) data-node=[node] {
            div.line {
                span { (name(pod)) }
                (origin(pod))
                (place(pod))
                span.end {
                    @if pod.reason == ReasonCode::Scratch { span.harm { "Destroys scratch" } " " }
                    @if pod.reason == ReasonCode::Answered { span.harm { "Answered" } " " }
                    @if phrases::tag(pod).is_some() { (chip(pod)) }
                }
            }
            @if let Some(sentence) = phrases::sentence(pod) { p.quiet.small { (clean(sentence)) } }
            @if let Some(says) = phrases::replacement(pod) { p.small { b { "Replacement: " } (clean(&says)) } }
        }
    }
}

/// What there is to know besides, what could not be read, and what could not be seen.
fn besides(report: &Report) -> Markup {
    let notices = report.notices.iter();
    let notices = notices.map(
        |notice| html! { li { (clean(&notice.detail)) " " span.quiet { "[" (notice.code) "]" } } },
    );
    let errors = report.errors.iter();
    let errors =
        errors.map(|error| html! { li { b { (clean(&error.what)) } ": " (clean(&error.cause)) } });
    let unseen = report
        .unseen
        .iter()
        .map(|sentence| html! { li { (clean(sentence)) } });
    let unread = format!("Could not be read: {}", report.errors.len());
    html! {
        (list("notices", None, "Worth knowing", &notices.collect::<Vec<_>>()))
        (list("unread", None, &unread, &errors.collect::<Vec<_>>()))
        (list("unseen", None, "Could not be seen", &unseen.collect::<Vec<_>>()))
    }
}

fn glossary(report: &Report) -> Markup {
    let outcomes = report
        .summary
        .outcomes
        .iter()
        .map(|(code, count)| (code.as_str(), "outcome", code.means(), *count));
    let states = report.summary.replacements.iter();
    let states =
        states.map(|(state, count)| (state.as_str(), "replacement", state.means(), *count));
    let words = outcomes.chain(states).filter(|(.., count)| *count > 0);
    let words = html! {
        dl.glossary {
            @for code in phrases::reasons(report) {
                div id=(format!("reason-{code}")) {
                    dt { (code) " " span.quiet { "(" (code.verdict()) ")" } }
                    dd { (code.means()) }
                    dd { b { "What to do: " } (code.advice()) }
                }
            }
            @for (word, of, means, _) in words {
                div id=(format!("{of}-{word}")) {
                    dt { (word) " " span.quiet { "(" (of) ")" } }
                    dd { (means) }
                }
            }
        }
    };
    section("reasons", None, "What the words mean", &words)
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
