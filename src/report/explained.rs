//! Lays the report of one explained pod out as a page: the verdict with the rule that decides, the
//! facts that led to the verdict, and the steps.

use std::iter;

use itertools::Itertools as _;

use super::{
    Explained, PodEntry, Report,
    layout::words,
    page::{Block, Entry, Page, Section, Tone, advised, filled, paragraphs, unread_sections},
    phrases,
};
use crate::{
    judge::{Evaluation, ReasonCode},
    words::prefixed,
};

/// Returns the page of the report, whose only pod is `pod`.
pub fn page(report: &Report, pod: &PodEntry, explained: &Explained) -> Page {
    let verdict = match (pod.verdict, pod.reason) {
        (Some(verdict), Some(reason)) => format!("{verdict} [{reason}]"),
        _ => "none, no run judges it".to_owned(),
    };
    Page {
        headline: format!("{}: {verdict}", phrases::name(pod)),
        about: phrases::about(report),
        cluster: prefixed("", phrases::cluster(report)),
        settings: phrases::settings(report),
        head: Vec::new(),
        sections: sections(report, pod, explained, &verdict),
        words: words(report),
    }
}

fn sections(report: &Report, pod: &PodEntry, explained: &Explained, verdict: &str) -> Vec<Section> {
    let Explained { rules, limits, .. } = explained;
    let mut decides = rules.iter().chain(limits);
    let by = decides.find(|rule| rule.decides).map(|rule| {
        let by = rule.number.map(|number| format!("rule {number}"));
        let by = by.as_deref().unwrap_or("a limit of the run");
        format!(", by {by} ({})", rule.asks)
    });
    let owner = pod.owner.as_ref();
    let entry = Entry::of_pod(&pod.namespace, &pod.name, owner, pod.node.as_ref());
    let state = match pod.overdue_seconds {
        None => "not Terminating".to_owned(),
        Some(overdue) => format!("Terminating, {}", phrases::overdue(overdue)),
    };
    let columns = iter::once(&entry.name).chain(entry.filled_columns());
    let from = pod.reaped_from.map(|from| {
        let time = from.duration_since(report.judged_at).as_secs().max(0);
        let (from, time) = (from.strftime("%F %TZ"), phrases::seconds(time));
        Block::paragraph(
            Tone::Plain,
            format!("A run may reap it from {from} on, in {time}."),
        )
    });
    let about = [
        Block::paragraph(Tone::Strong, columns.chain([&state]).join("  ")),
        Block::paragraph(Tone::Plain, &pod.detail),
    ];
    let incomplete = report.incomplete.as_ref();
    let incomplete = incomplete.map(|why| Block::labelled("INCOMPLETE", Tone::Bad, why));
    let about = incomplete.into_iter().chain(about);
    let note = pod.note.as_ref();
    let note = note.map(|note| Block::labelled("Note", Tone::Caution, note));
    let mut advice = advised(&pod.advice).chain(note).collect_vec();
    if advice.is_empty() {
        advice = paragraphs(pod.reason.map(ReasonCode::advice));
    }
    let strong = |id, heading: &str, blocks| Section::new(id, heading, Tone::Strong, blocks);
    let heading = format!("Verdict: {verdict}{}", prefixed("", by));
    let why = "Why (--all-rules shows what every rule saw)";
    let mut sections = vec![
        strong("verdict", &heading, about.chain(from).collect()),
        strong("facts", why, facts(explained)),
        strong("steps", "What to do", advice),
    ];
    if explained.all_rules {
        let all = |rules: &[Evaluation]| rules.iter().map(rule).collect();
        let of_rules = "Rules (in order; the first that applies decides)";
        let of_limits = "Limits of the run (they only ever turn reap into wait)";
        sections.push(strong("rules", of_rules, all(rules)));
        sections.push(strong("limits", of_limits, all(limits)));
    }
    sections.extend(unread_sections(&report.errors, &report.unseen));
    filled(sections)
}

/// Lists the facts that led to the decision, as the rules saw them: about time, the node and the
/// storage, in this order, and then all others. The rule that decides is left out, because the
/// verdict says what that rule saw. `--all-rules` shows each rule in a section of its own.
fn facts(explained: &Explained) -> Vec<Block> {
    let Explained { rules, limits, .. } = explained;
    let decides = rules.iter().find(|rule| rule.decides);
    let decides = decides.and_then(|rule| rule.number).unwrap_or(usize::MAX);
    let subject = |rule: &Evaluation| match rule.gives? {
        ReasonCode::NotOverdue | ReasonCode::NodeJustFailed => Some(0),
        ReasonCode::NodeReady | ReasonCode::KubeletAlive => Some(1),
        ReasonCode::LocalVolume => Some(2),
        _ => None,
    };
    let was_asked = |rule: &Evaluation| rule.number.is_some_and(|number| number < decides);
    let rules = rules
        .iter()
        .chain(limits)
        .filter(|rule| !rule.decides && !explained.all_rules)
        .filter(|rule| rule.holds != Some(false) || subject(rule).is_some() && was_asked(rule))
        .sorted_by_key(|rule| (subject(rule).is_none(), subject(rule)));
    // Several rules may see the same fact, such as that there is no PVC.
    paragraphs(rules.map(|rule| rule.seen.clone()).unique())
}

fn rule(rule: &Evaluation) -> Block {
    let holds = match rule.holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let number = rule.number.map(|number| format!("{number}. "));
    let decides = if rule.decides { ", decides" } else { "" };
    let tone = match (rule.decides, rule.holds) {
        (true, _) => Tone::Strong,
        (false, Some(false)) => Tone::Quiet,
        (false, _) => Tone::Plain,
    };
    Block::Entry(Entry {
        name: prefixed("", number) + rule.asks,
        columns: vec![format!("{holds}{decides}")],
        tone,
        blocks: vec![Block::paragraph(Tone::Quiet, &rule.seen)],
        ..Entry::default()
    })
}
