//! Explains one pod: its facts, what happens by itself, what to do, and what each rule saw.

use itertools::Itertools as _;

use super::{
    advice,
    build::{entry, not_evicted, tally},
    document::{Document, Kind, Section, Step, Tone},
    head::{self, day},
    page,
    record::RunRecord,
    survey::{PodView, Survey},
    types::{Explained, PodEntry, Report},
};
use crate::{
    exit::Exit,
    facts::PodFacts,
    judge::{Evaluation, Judged, Limit, ReasonCode, Verdict},
    words::{about, human_duration, joined, prefixed},
};

/// Reports the pod alone, with what each rule saw of it.
pub fn explain(run: &RunRecord<'_>, pod: &PodFacts) -> Report {
    let survey = &Survey::around(run, pod);
    let in_plan = survey.pods.iter().find(|it| it.judged.pod.uid == pod.uid);
    let judged = in_plan.filter(|_| survey.settings.namespaces.matches(&pod.namespace));
    let mut rules = in_plan.map_or_else(Vec::new, |it| survey.rules(it.judged));
    if judged.is_none_or(|it| it.judged.limit.is_some()) {
        for rule in &mut rules {
            rule.decides = false;
        }
    }
    let left_out = |detail: String| PodEntry {
        overdue_seconds: in_plan.map(|it| it.overdue.as_secs()),
        detail,
        ..PodEntry::from(pod)
    };
    let entry = match (judged, in_plan) {
        (Some(judged), _) => entry(survey, judged),
        (None, Some(_)) => left_out(format!(
            "Its namespace {} is left out. The run looks at these namespaces: {}.",
            pod.namespace, survey.settings.namespaces
        )),
        (None, None) if let Some(judged) = survey.not_evicted(pod) => not_evicted(judged),
        (None, None) => left_out("It is not Terminating: its deletion was not requested. pod-reaper looks at Terminating pods only.".to_owned()),
    };
    let mut report = run.report_of(survey);
    report
        .nodes
        .retain(|node| Some(&node.name) == entry.node.as_ref());
    report.summary.pods = usize::from(entry.verdict.is_some());
    report.summary.verdicts = tally(Verdict::ALL, entry.verdict.into_iter());
    report.document = document(survey, &entry, judged, &rules);
    // A question differs from 0 only if something could not be read.
    let is_unread = entry.reason == Some(ReasonCode::FactsUnread) || !report.errors.is_empty();
    report.exit = if is_unread {
        Exit::Incomplete
    } else {
        Exit::Done
    };
    report.pods = vec![entry];
    report.not_evicted = Vec::new();
    report.explained = Some(Explained {
        phase: pod.phase.clone(),
        created: pod.created,
        rules,
    });
    report
}

fn document(
    survey: &Survey<'_>,
    entry: &PodEntry,
    pod: Option<&PodView<'_>>,
    rules: &[Evaluation],
) -> Document {
    let name = format!("{}/{}", entry.namespace, entry.name);
    let by = match rules.iter().find(|rule| rule.decides) {
        Some(rule) => format!(", rule {} of {}", rule.number, rules.len()),
        None if pod.is_some_and(|pod| pod.judged.limit.is_some()) => {
            ", by a limit of the run".to_owned()
        }
        None => String::new(),
    };
    let verdict = match (entry.verdict, entry.reason) {
        (Some(Verdict::Manual), Some(code)) => format!("NEEDS YOU  [{code}]{by}"),
        (Some(verdict), Some(code)) => format!("{}  [{code}]{by}", verdict.as_str().to_uppercase()),
        _ if rules.is_empty() => "NOT TERMINATING".to_owned(),
        _ => "LEFT OUT BY THE FILTER".to_owned(),
    };
    let head = |heading: &str, text: Option<String>| {
        Section::of_texts(Kind::Head, heading, Tone::Plain, text)
    };
    let steps: Vec<Step> = entry.steps.clone();
    let [now, later] = Section::of_steps("DO", steps);
    let never = pod.map(|pod| page::never(survey, &[pod]));
    let node = entry.node.as_ref().and_then(|name| survey.node(name));
    let state = node.and_then(|node| Some(head::says(survey, node.state.as_ref()?, &[node])));
    // If a limit decides, `why` has its sentence.
    let limit = node.and_then(|node| node.held);
    let limit = limit.filter(|_| pod.is_some_and(|pod| pod.judged.limit.is_none()));
    let unread = survey.errors.iter();
    let unread = unread.map(|error| format!("{}: {}", error.what, error.cause));
    let source = prefixed(" from ", survey.settings.task.snapshot());
    let incomplete = survey.incomplete.map(str::to_owned);
    let sections = [
        Section::of_texts(Kind::Head, "NOTE", Tone::Bad, incomplete),
        head("why", Some(entry.detail.clone())),
        head("its data", pod.and_then(|pod| data(pod.judged))),
        head("its owner", pod.and_then(|pod| owner(pod.judged))),
        head("its node", state),
        head("the pod", pod.and_then(|pod| overdue(survey, pod))),
        head("by itself", pod.map(by_itself)),
        head("afterwards", entry.note.clone()),
        now,
        later,
        never.unwrap_or_default(),
        Section::of_texts(Kind::List, "RULES", Tone::Quiet, of_rules(rules)),
        Section::of_texts(
            Kind::List,
            "LIMITS",
            Tone::Quiet,
            limit.map(Limit::sentence),
        ),
        Section::of_texts(Kind::List, "NOT READ", Tone::Bad, unread),
        Section::not_seen(survey.unseen),
    ];
    Document {
        title: format!("{name} · {verdict}"),
        headline: format!("{name}  {verdict}"),
        about: format!("EXPLAIN{source} at {}", day(survey.now)),
        sections: sections.into(),
    }
    .without_empty()
}

/// Says what else the pod's PVCs mean.
fn data(judged: &Judged) -> Option<String> {
    // The reason names the ties that keep the pod.
    joined(judged.reason.ties.iter().filter(|tie| !tie.keeps()), ". ")
}

/// Says how many pods of its `StatefulSet` are Ready (its status).
fn owner(judged: &Judged) -> Option<String> {
    let (copies, owner) = judged.copies().zip(judged.pod.owner.as_ref())?;
    Some(format!("{owner}: {copies} Ready"))
}

/// Says for how long the pod is overdue; `None` within its grace period, of which the reason tells.
fn overdue(survey: &Survey<'_>, pod: &PodView<'_>) -> Option<String> {
    let limit = human_duration(survey.settings.policy.reap_older_than);
    let time = about(pod.overdue);
    let text = format!("Terminating, overdue for {time} (limit {limit})");
    (!pod.overdue.is_negative()).then_some(text)
}

fn by_itself(pod: &PodView<'_>) -> String {
    let node = pod.judged.pod.node.as_deref().unwrap_or("its node");
    match (pod.from, pod.verdict()) {
        (Some(from), _) => format!("A run may delete it from {} on.", advice::clock(from)),
        (None, Verdict::Reap) if pod.detaches_late => {
            "The next run deletes it. Another node gets its volume up to 6 minutes later."
                .to_owned()
        }
        (None, Verdict::Reap) => "The next run deletes it.".to_owned(),
        (None, Verdict::Manual) if pod.returns => {
            format!(
                "If {node} comes back, the pod restarts with its data. Otherwise it stays Terminating."
            )
        }
        (None, Verdict::Manual) if pod.code() == ReasonCode::KosmosLeaf => {
            "If the link comes back, Kosmos stops it. Runs leave it alone.".to_owned()
        }
        (None, Verdict::Manual) => "Runs leave it alone.".to_owned(),
        (None, Verdict::Leave) if pod.code() == ReasonCode::NodeReady => {
            format!("The kubelet of {node} ends it. Runs leave it alone while {node} is Ready.")
        }
        (None, verdict) => verdict.means().to_owned(),
    }
}

/// Lists the rules by number: those that do not apply, and those after the one that decides, together; each other
/// one with its question and what it saw.
fn of_rules(rules: &[Evaluation]) -> Option<String> {
    let decides = rules.iter().find(|rule| rule.decides);
    let asked = decides.map_or(rules.len(), |rule| rule.number);
    let said = rules.iter().map(|rule| {
        let answer = match rule.holds {
            _ if rule.number > asked => format!("not asked, since {asked} decides"),
            Some(false) => "no".to_owned(),
            // The first line says what it saw.
            Some(true) if rule.decides => format!("{} YES", rule.asks),
            Some(true) => format!("{} Yes. {}", rule.asks, rule.seen),
            None => format!("{} Not known. {}", rule.asks, rule.seen),
        };
        (rule.number, rule.number, answer)
    });
    let groups = said.coalesce(|before, after| {
        if before.2 == after.2 {
            Ok((before.0, after.1, after.2))
        } else {
            Err((before, after))
        }
    });
    let groups = groups.map(|(first, last, answer)| match last - first {
        0 => format!("{first}: {answer}"),
        _ => format!("{first} to {last}: {answer}"),
    });
    joined(groups, " · ")
}
