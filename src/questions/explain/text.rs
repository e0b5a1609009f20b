//! The answer for a person: the rules as a list, the one that decides marked, the verdict last.

use anstyle::Style;

use super::Explanation;
use crate::decide::{Answer, Evaluation};
use crate::questions::Judgement;
use crate::report::phrases;
use crate::report::text::{DETAIL, HEADING, ITEM, Page, QUIET, Screen};

pub(super) fn write(answer: &Explanation, screen: Screen) -> String {
    let mut page = Page {
        text: String::new(),
        screen,
    };
    let Explanation {
        program_version,
        pod,
        judged_at,
        ..
    } = answer;
    let source = answer
        .snapshot
        .as_ref()
        .map(|file| format!("by {file}, "))
        .unwrap_or_default();
    let (name, judged_at) = (
        format!("{}/{}", pod.namespace, pod.name),
        judged_at.strftime("%F %TZ"),
    );
    let title = format!("pod-reaper {program_version}: {name}, {source}judged at {judged_at}");
    page.paragraph("", "", HEADING, &title);
    let mut says = Vec::new();
    says.extend(
        pod.owner
            .as_ref()
            .map(|owner| format!("{}/{}", owner.kind, owner.name)),
    );
    says.extend(pod.node.as_ref().map(|node| format!("on {node}")));
    says.push(match pod.overdue_seconds {
        None => "not Terminating".to_owned(),
        Some(overdue) => format!("Terminating, {}", phrases::overdue(overdue)),
    });
    page.paragraph("", "", QUIET, &says.join("  "));
    for (heading, rules) in [
        (
            "RULES, in order; the first that holds decides",
            &answer.rules,
        ),
        (
            "LIMITS OF THE RUN; they only ever turn reap into wait",
            &answer.limits,
        ),
    ] {
        if !rules.is_empty() {
            page.heading(HEADING, heading);
        }
        for each in rules {
            rule(&mut page, each);
        }
    }
    if !answer.answers.is_empty() {
        page.heading(HEADING, "ANSWERS");
    }
    for Answer {
        annotation,
        on,
        name,
        value,
        inert,
    } in &answer.answers
    {
        let counts = match inert {
            None => "it counts".to_owned(),
            Some(why) => format!("it counts for nothing: {why}"),
        };
        let says = format!("{annotation}={value} on {on} {name}: {counts}");
        page.paragraph(ITEM, DETAIL, Style::new(), &says);
    }
    page.unread(&answer.errors, &answer.unseen);
    let Judgement {
        verdict,
        reason,
        detail,
        note,
        risk,
        steps,
    } = &answer.judgement;
    let verdict = match (verdict, reason) {
        (Some(verdict), Some(reason)) => format!("{verdict} [{reason}]"),
        _ => "none, no run judges it".to_owned(),
    };
    page.heading(HEADING, &format!("Verdict: {verdict}"));
    page.paragraph(ITEM, ITEM, Style::new(), detail);
    page.advice(ITEM, [("Note", note), ("Risk", risk)], steps);
    page.text
}

fn rule(page: &mut Page, rule: &Evaluation) {
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
    let style = match (rule.decides, rule.holds) {
        (true, _) => HEADING,
        (false, Some(false)) => QUIET,
        (false, _) => Style::new(),
    };
    page.paragraph(
        ITEM,
        DETAIL,
        style,
        &format!("{number}{} {holds}{decides}", rule.asks),
    );
    page.paragraph(DETAIL, DETAIL, QUIET, &rule.seen);
}
