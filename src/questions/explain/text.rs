//! The answer for a person: the rules as a list, the one that decides marked, the verdict last.

use anstyle::Style;
use jiff::SignedDuration;

use super::Explanation;
use crate::{
    decide::{Evaluation, spoken},
    report::text::{DETAIL, HEADING, ITEM, Page, QUIET, Screen},
};

pub(super) fn write(answer: &Explanation, screen: Screen) -> String {
    let mut page = Page { text: String::new(), screen };
    let pod = &answer.pod;
    let source = answer.snapshot.as_ref().map(|file| format!("by {file}, ")).unwrap_or_default();
    let title = format!(
        "pod-reaper {}: {}/{}, {source}judged at {}",
        answer.program_version,
        pod.namespace,
        pod.name,
        answer.judged_at.strftime("%F %TZ")
    );
    page.paragraph("", "", HEADING, &title);
    let mut says = Vec::new();
    says.extend(pod.owner.as_ref().map(|owner| format!("{}/{}", owner.kind, owner.name)));
    says.extend(pod.node.as_ref().map(|node| format!("on {node}")));
    says.push(match pod.overdue_seconds.map(SignedDuration::from_secs) {
        None => "not Terminating".to_owned(),
        Some(within) if within.is_negative() => format!("Terminating, due in {}", spoken(-within)),
        Some(overdue) => format!("Terminating, overdue {}", spoken(overdue)),
    });
    page.paragraph("", "", QUIET, &says.join("  "));
    if !answer.rules.is_empty() {
        page.heading(HEADING, "RULES, in order; the first that holds decides");
        for rule in &answer.rules {
            self::rule(&mut page, rule);
        }
    }
    if !answer.limits.is_empty() {
        page.heading(HEADING, "LIMITS OF THE RUN; they only ever turn reap into wait");
        for limit in &answer.limits {
            rule(&mut page, limit);
        }
    }
    page.unread(&answer.errors, &answer.unseen);
    let verdict = match (answer.verdict, answer.reason) {
        (Some(verdict), Some(reason)) => format!("{verdict} [{reason}]"),
        _ => "none, no run judges it".to_owned(),
    };
    page.heading(HEADING, &format!("Verdict: {verdict}"));
    page.paragraph(ITEM, ITEM, Style::new(), &answer.detail);
    page.advice(ITEM, [("Note", &answer.note), ("Risk", &answer.risk)], &answer.steps);
    page.text
}

fn rule(page: &mut Page, rule: &Evaluation) {
    let holds = match rule.holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let number = rule.number.map(|number| format!("{number:>2}. ")).unwrap_or_default();
    let decides = if rule.decides { "  <- decides" } else { "" };
    let style = match (rule.decides, rule.holds) {
        (true, _) => HEADING,
        (false, Some(false)) => QUIET,
        (false, _) => Style::new(),
    };
    page.paragraph(ITEM, DETAIL, style, &format!("{number}{} {holds}{decides}", rule.asks));
    page.paragraph(DETAIL, DETAIL, QUIET, &rule.seen);
}
