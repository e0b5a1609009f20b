//! Explains one pod: its facts, what happens by itself, what to do, and what each rule saw.

use itertools::Itertools as _;

use super::{
    build::tally,
    document::{Document, Kind, Section, Tone},
    record::{RunRecord, clock, day},
    types::{Explained, PodEntry, Report},
};
use crate::{
    exit::Exit,
    facts::PodFacts,
    judge::{Evaluation, Judged, Limit, PodContext, ReasonCode, Verdict},
    words::{about, human_duration, joined, prefixed},
};

/// Reports the pod alone, with what each rule saw of it.
pub fn explain(run: &RunRecord<'_>, pod: &PodFacts) -> Report {
    let settings = run.settings;
    let in_plan = run.plan.pods.iter().find(|it| it.pod.uid == pod.uid);
    let mut not_evicted = run.plan.not_evicted.iter();
    let not_evicted = not_evicted.find(|it| it.pod.uid == pod.uid);
    let judged = in_plan.filter(|it| settings.namespaces.matches(&it.pod.namespace));
    let mut rules = in_plan.map_or_else(Vec::new, |it| {
        PodContext::of(&run.facts, &settings.policy, &it.pod, it.storage.as_ref()).evaluate()
    });
    if judged.is_none_or(|judged| judged.limit.is_some()) {
        for rule in &mut rules {
            rule.decides = false;
        }
    }
    let left_out = |detail: String| PodEntry {
        overdue_seconds: in_plan.map(|it| run.facts.overdue(&it.pod).as_secs()),
        detail,
        ..PodEntry::from(pod)
    };
    let entry = match (judged, in_plan) {
        (Some(judged), _) => run.pod(judged),
        (None, Some(_)) => left_out(format!(
            "Its namespace {} is left out. The run looks at these namespaces: {}.",
            pod.namespace, settings.namespaces
        )),
        (None, None) if let Some(judged) = not_evicted => RunRecord::not_evicted(judged),
        (None, None) => left_out("It is not Terminating: its deletion was not requested. pod-reaper looks at Terminating pods only.".to_owned()),
    };
    let mut report = run.report();
    report
        .nodes
        .retain(|node| Some(&node.name) == entry.node.as_ref());
    report.summary.pods = usize::from(entry.verdict.is_some());
    report.summary.verdicts = tally(Verdict::ALL, entry.verdict.into_iter());
    report.document = document(run, &entry, judged, &rules);
    // A question differs from 0 only if something could not be read.
    let is_unread = entry.reason == Some(ReasonCode::FactsUnread) || !report.errors.is_empty();
    report.exit = if is_unread {
        Exit::Incomplete
    } else {
        Exit::Done
    };
    report.pods = vec![entry];
    report.not_evicted = Vec::new();
    (report.notices, report.steps) = (Vec::new(), Vec::new());
    report.explained = Some(Explained {
        phase: pod.phase.clone(),
        created: pod.created,
        rules,
    });
    report
}

fn document(
    run: &RunRecord<'_>,
    entry: &PodEntry,
    judged: Option<&Judged>,
    rules: &[Evaluation],
) -> Document {
    let name = format!("{}/{}", entry.namespace, entry.name);
    let by = match rules.iter().find(|rule| rule.decides) {
        Some(rule) => format!(", rule {} of {}", rule.number, rules.len()),
        None if judged.is_some_and(|judged| judged.limit.is_some()) => {
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
    let [now, later] = Section::of_steps("DO", entry.steps.clone());
    let never = judged.map(|judged| run.never(&[judged]));
    // If a limit decides, `why` has its sentence.
    let unlimited = judged.filter(|judged| judged.limit.is_none());
    let limit = unlimited.and_then(|it| run.plan.limit_of(run.facts.known_node(&it.pod)?));
    let unread = run.facts.errors.iter();
    let unread = unread.map(|error| format!("{}: {}", error.what, error.cause));
    let source = prefixed(" from ", run.settings.task.snapshot());
    let sections = [
        Section::of_texts(Kind::Head, "NOTE", Tone::Bad, run.facts.incomplete.clone()),
        head("why", Some(entry.detail.clone())),
        head("its data", judged.and_then(data)),
        head("its owner", judged.and_then(owner)),
        head(
            "its node",
            entry
                .node
                .as_ref()
                .and_then(|name| Some(run.says(&run.state(name)?, &[name]))),
        ),
        head("the pod", judged.and_then(|judged| overdue(run, judged))),
        head("by itself", judged.map(|judged| by_itself(run, judged))),
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
        Section::not_seen(&run.facts.unseen),
    ];
    Document {
        title: format!("{name} · {verdict}"),
        headline: format!("{name}  {verdict}"),
        about: format!("EXPLAIN{source} at {}", day(run.facts.now)),
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
fn overdue(run: &RunRecord<'_>, judged: &Judged) -> Option<String> {
    let overdue = run.facts.overdue(&judged.pod);
    let limit = human_duration(run.settings.policy.reap_older_than);
    let text = format!(
        "Terminating, overdue for {} (limit {limit})",
        about(overdue)
    );
    (!overdue.is_negative()).then_some(text)
}

fn by_itself(run: &RunRecord<'_>, judged: &Judged) -> String {
    let node = judged.pod.node.as_deref().unwrap_or("its node");
    match (judged.waits_until(), judged.verdict()) {
        (Some(from), _) => format!("A run may delete it from {} on.", clock(from)),
        (None, Verdict::Reap) if run.detaches_late(judged) => {
            "The next run deletes it. Another node gets its volume up to 6 minutes later."
                .to_owned()
        }
        (None, Verdict::Reap) => "The next run deletes it.".to_owned(),
        (None, Verdict::Manual) if run.restarts_with_its_data(judged) => {
            format!(
                "If {node} comes back, the pod restarts with its data. Otherwise it stays Terminating."
            )
        }
        (None, Verdict::Manual) if judged.code() == ReasonCode::KosmosLeaf => {
            "If the link comes back, Kosmos stops it. Runs leave it alone.".to_owned()
        }
        (None, Verdict::Manual) => "Runs leave it alone.".to_owned(),
        (None, Verdict::Leave) if judged.code() == ReasonCode::NodeReady => {
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
