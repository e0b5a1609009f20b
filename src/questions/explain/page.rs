//! Lays an explanation out as a page: the verdict with the rule that decides, the steps, and the
//! facts that the rules saw.

use std::{cmp::Reverse, iter};

use itertools::Itertools as _;

use super::Explanation;
use crate::{
    decide::{Evaluation, ReasonCode},
    report::{
        Render,
        page::{self, Block, Entry, Page, Section, Tone, filled, paragraphs},
        phrases,
    },
    words::after,
};

/// The most lines of a text without `--all-rules`.
const FACTS: usize = 5;

impl Render for Explanation {
    fn page(&self) -> Page {
        let pod = &self.pod;
        let judgement = &self.judgement;
        let verdict = match (judgement.verdict, judgement.reason) {
            (Some(verdict), Some(reason)) => format!("{verdict} [{reason}]"),
            _ => "none, no run judges it".to_owned(),
        };
        let mut rules = self.rules.iter().chain(&self.limits);
        let decides = rules.find(|rule| rule.decides);
        let by = decides.map(|rule| match rule.number {
            Some(number) => format!(", by rule {number} ({})", rule.asks),
            None => format!(", by a limit of the run ({})", rule.asks),
        });
        let entry = Entry::of_pod(
            &pod.namespace,
            &pod.name,
            pod.owner.as_ref(),
            pod.node.as_ref(),
        );
        let state = match pod.overdue_seconds {
            None => "not Terminating".to_owned(),
            Some(overdue) => format!("Terminating, {}", phrases::overdue(overdue)),
        };
        let columns = iter::once(&entry.name).chain(entry.filled_columns());
        let mut first = page::incomplete(self.head.incomplete.as_ref())
            .into_iter()
            .collect_vec();
        first.extend([
            Block::paragraph(Tone::Strong, columns.chain([&state]).join("  ")),
            Block::paragraph(Tone::Plain, &judgement.detail),
        ]);
        first.extend(pod.reaped_from.map(|from| {
            let time = phrases::seconds(from.duration_since(self.head.judged_at).as_secs().max(0));
            let text = format!(
                "A run may reap it from {} on, in {time}.",
                from.strftime("%F %TZ")
            );
            Block::paragraph(Tone::Plain, text)
        }));
        let mut advice = judgement.blocks();
        if advice.is_empty() {
            advice = paragraphs(judgement.reason.map(ReasonCode::advice));
        }
        let strong = |id, heading: &str, blocks| Section::new(id, heading, Tone::Strong, blocks);
        let heading = format!("Verdict: {verdict}{}", after("", by));
        let seen = "What was seen (--all-rules has what each rule asks)";
        let mut sections = vec![
            strong("verdict", &heading, first),
            strong("steps", "What to do", advice),
            strong("facts", seen, page::first(facts_of(self), FACTS)),
        ];
        if self.all_rules {
            let all = |rules: &[Evaluation]| rules.iter().map(rule).collect();
            let rules = "Rules (in order; the first that holds decides)";
            let limits = "Limits of the run (they only ever turn reap into wait)";
            sections.push(strong("rules", rules, all(&self.rules)));
            sections.push(strong("limits", limits, all(&self.limits)));
        }
        sections.extend(self.head.unread());
        Page {
            about: self.head.about("explained as of"),
            sections: filled(sections),
            ..Page::default()
        }
    }
}

/// Lists the answers of people, then the facts that the rules saw: of rules that hold, then of those
/// that were asked before the one that decides, the last of them first. The rule that decides is left out, because the verdict has its facts; `--all-rules` shows each
/// rule with its facts in a section of its own.
fn facts_of(explanation: &Explanation) -> Vec<Block> {
    let answers = explanation.answers.iter().map(|answer| {
        let counts = after(" for nothing: ", answer.inert.as_ref());
        format!("Answer {answer}: it counts{counts}.")
    });
    let mut all = explanation.rules.iter();
    let decides = all.find(|rule| rule.decides).and_then(|rule| rule.number);
    let decides = decides.unwrap_or(usize::MAX);
    let rules = explanation
        .rules
        .iter()
        .chain(&explanation.limits)
        .filter(|rule| !rule.decides && !explanation.all_rules)
        .sorted_by_key(|rule| {
            let asked = |number: &usize| *number < decides;
            let before = rule.number.filter(asked).map(Reverse);
            (rule.holds == Some(false), before.is_none(), before)
        });
    // Several rules may see the same, such as that there is no claim.
    paragraphs(answers.chain(rules.map(|rule| rule.seen.clone())).unique())
}

fn rule(rule: &Evaluation) -> Block {
    let holds = match rule.holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let number = rule.number.map(|number| format!("{number:>2}. "));
    let decides = if rule.decides { "  <- decides" } else { "" };
    let tone = match (rule.decides, rule.holds) {
        (true, _) => Tone::Strong,
        (false, Some(false)) => Tone::Quiet,
        (false, _) => Tone::Plain,
    };
    Block::Entry(Entry {
        name: format!("{}{} {holds}{decides}", after("", number), rule.asks),
        tone,
        blocks: vec![Block::paragraph(Tone::Quiet, &rule.seen)],
        ..Entry::default()
    })
}
