//! The explanation as a page: the verdict and the rule that decides, then what to do, then what was seen.

use super::Explanation;
use crate::decide::{Answer, Evaluation};
use crate::report::page::{Block, Entry, Page, Room, Section, Tone, fill, unread};
use crate::report::{phrases, text};

/// The lines of a text without all rules.
const LINES: usize = 30;

pub(super) fn page(answer: &Explanation) -> Page {
    let pod = &answer.pod;
    let source = answer.snapshot.as_ref().map(|file| format!(" by {file},"));
    let about = format!(
        "pod-reaper {}: explained{} as of {}. Nothing was changed.",
        answer.program_version,
        source.unwrap_or_default(),
        answer.judged_at.strftime("%F %TZ")
    );
    let judgement = &answer.judgement;
    let verdict = match (judgement.verdict, judgement.reason) {
        (Some(verdict), Some(reason)) => format!("{verdict} [{reason}]"),
        _ => "none, no run judges it".to_owned(),
    };
    let rules = || answer.rules.iter().chain(&answer.limits);
    let by = rules()
        .find(|rule| rule.decides)
        .map(|rule| match rule.number {
            Some(number) => format!(", by rule {number} ({})", rule.asks),
            None => format!(", by a limit of the run ({})", rule.asks),
        });
    let mut says = vec![format!("{}/{}", pod.namespace, pod.name)];
    says.push(phrases::owner(&pod.name, pod.owner.as_ref()));
    says.extend(pod.node.as_ref().map(|node| format!("on {node}")));
    says.push(match pod.overdue_seconds {
        None => "not Terminating".to_owned(),
        Some(overdue) => format!("Terminating, {}", phrases::overdue(overdue)),
    });
    says.retain(|fact| !fact.is_empty());
    let first = vec![
        Block::says(Tone::Strong, says.join("  ")),
        Block::says(Tone::Plain, &judgement.detail),
    ];
    let mut advice = judgement.advice();
    if advice.is_empty() {
        advice.extend(
            judgement
                .reason
                .map(|reason| Block::says(Tone::Plain, reason.advice())),
        );
    }
    let heading = format!("Verdict: {verdict}{}", by.unwrap_or_default());
    let mut parts = vec![
        (
            Section::new("verdict", heading, Tone::Strong, first),
            Room::All,
        ),
        (
            Section::new("steps", "What to do", Tone::Strong, advice),
            Room::First,
        ),
        (
            Section::new(
                "facts",
                "What was seen (--all-rules has what each rule asks)",
                Tone::Strong,
                facts(answer),
            ),
            Room::First,
        ),
    ];
    if answer.all_rules {
        for (id, heading, rules) in [
            (
                "rules",
                "Rules (in order; the first that holds decides)",
                &answer.rules,
            ),
            (
                "limits",
                "Limits of the run (they only ever turn reap into wait)",
                &answer.limits,
            ),
        ] {
            let rules = rules.iter().map(rule).collect();
            parts.push((Section::new(id, heading, Tone::Strong, rules), Room::All));
        }
    }
    parts.extend(unread(&answer.errors, &answer.unseen));
    let lines = if answer.all_rules {
        usize::MAX / 2
    } else {
        LINES
    };
    let fixed = 1 + text::lines(&[Block::says(Tone::Quiet, &about)]);
    // Nothing stands above the first section.
    let sections = fill(parts, lines + 1 - fixed);
    let headline = format!("{}/{}: {verdict}", pod.namespace, pod.name);
    let judged_at = answer.judged_at;
    Page {
        headline,
        about,
        sections,
        judged_at,
        ..Page::default()
    }
}

/// What people have answered, and what the rules saw; first those that hold besides the one that decides.
fn facts(answer: &Explanation) -> Vec<Block> {
    let answers = answer.answers.iter().map(|answer| {
        let Answer {
            annotation,
            on,
            name,
            value,
            inert,
        } = answer;
        let counts = match inert {
            None => "it counts".to_owned(),
            Some(why) => format!("it counts for nothing: {why}"),
        };
        format!("Answer {annotation}={value} on {on} {name}: {counts}.")
    });
    let mut rules = answer
        .rules
        .iter()
        .chain(&answer.limits)
        .collect::<Vec<_>>();
    rules.retain(|rule| !rule.decides && !answer.all_rules);
    rules.sort_by_key(|rule| rule.holds == Some(false));
    let seen = rules.into_iter().map(|rule| rule.seen.clone());
    let says = answers.chain(seen);
    says.map(|says| Block::says(Tone::Plain, says)).collect()
}

fn rule(rule: &Evaluation) -> Block {
    let holds = match rule.holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let number = rule
        .number
        .map(|number| format!("{number:>2}. "))
        .unwrap_or_default();
    let decides = if rule.decides { "  <- decides" } else { "" };
    let tone = match (rule.decides, rule.holds) {
        (true, _) => Tone::Strong,
        (false, Some(false)) => Tone::Quiet,
        (false, _) => Tone::Plain,
    };
    Block::Entry(Entry {
        name: format!("{number}{} {holds}{decides}", rule.asks),
        tone,
        blocks: vec![Block::says(Tone::Quiet, &rule.seen)],
        ..Entry::default()
    })
}
