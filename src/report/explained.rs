//! Explains one pod: its facts, what happens by itself, what to do, and what each rule saw.

use itertools::Itertools as _;

use super::{
    advice, build,
    document::{Document, Kind, Section, Tone},
    head::{self, dated},
    page,
    survey::{PodView, SecondWriter, Survey, full_name},
    types::PodEntry,
};
use crate::{
    facts::PodFacts,
    judge::{Evaluation, Limit, ReasonCode, Verdict},
    words::{about, human_duration, joined, prefixed},
};

/// Returns what each rule saw of the pod; none if it is not Terminating.
pub fn rules(survey: &Survey<'_>, pod: &PodFacts) -> Vec<Evaluation> {
    let Some(judged) = survey.terminating().find(|it| it.judged.pod.uid == pod.uid) else {
        return Vec::new();
    };
    let mut rules = survey.rules(judged.judged);
    if survey.asked().is_none_or(|it| it.judged.limit.is_some()) {
        for rule in &mut rules {
            rule.decides = false;
        }
    }
    rules
}

/// Returns the entry of the pod.
pub fn entry(survey: &Survey<'_>, pod: &PodFacts) -> PodEntry {
    let in_plan = survey.terminating().find(|it| it.judged.pod.uid == pod.uid);
    let left_out = |detail: String| PodEntry {
        overdue_seconds: in_plan.map(|it| it.overdue.as_secs()),
        detail,
        ..PodEntry::from(pod)
    };
    match (survey.asked(), in_plan) {
        (Some(asked), _) => build::entry(asked),
        (None, Some(_)) => left_out(format!(
            "Its namespace {} is left out. The run looks at these namespaces: {}.",
            pod.namespace, survey.settings.namespaces
        )),
        (None, None) if let Some(judged) = survey.not_evicted(pod) => build::not_evicted(judged),
        (None, None) => left_out("It is not Terminating: its deletion was not requested. pod-reaper looks at Terminating pods only.".to_owned()),
    }
}

/// Names the pod, its verdict and what decided.
pub fn headline(survey: &Survey<'_>, pod: &PodFacts) -> String {
    format!("{}  {}", full_name(pod), verdict(survey, pod))
}

fn verdict(survey: &Survey<'_>, pod: &PodFacts) -> String {
    let rules = rules(survey, pod);
    let asked = survey.asked();
    let by = match rules.iter().find(|rule| rule.decides) {
        Some(rule) => format!(", rule {} of {}", rule.number, rules.len()),
        None if asked.is_some_and(|pod| pod.judged.limit.is_some()) => {
            ", by a limit of the run".to_owned()
        }
        None => String::new(),
    };
    match asked.map(|pod| (pod.verdict(), pod.code())) {
        Some((Verdict::Manual, code)) => format!("NEEDS YOU  [{code}]{by}"),
        Some((verdict, code)) => format!("{}  [{code}]{by}", verdict.as_str().to_uppercase()),
        None if rules.is_empty() => "NOT TERMINATING".to_owned(),
        None => "LEFT OUT BY THE FILTER".to_owned(),
    }
}

/// Returns the document about the pod that was asked about.
pub fn document<'a>(survey: &'a Survey<'a>, pod: &PodFacts) -> Document {
    let asked = survey.asked();
    let entry = entry(survey, pod);
    let head = |heading: &str, text: Option<String>| {
        Section::of_texts(Kind::Head, heading, Tone::Plain, text)
    };
    let steps = asked.map(|pod| page::steps_of_one(survey, pod));
    let [now, later] = Section::of_steps("NOW", steps.unwrap_or_default());
    let never = asked.map(|pod| page::never(survey, &[pod]));
    let node = pod.node.as_ref().and_then(|name| survey.node(name));
    let state = node.and_then(|node| Some(head::says(survey, node.state.as_ref()?, &[node])));
    // If a limit decides, `why` has its sentence.
    let limit = node.and_then(|node| node.held);
    let limit = limit.filter(|_| asked.is_some_and(|pod| pod.judged.limit.is_none()));
    let unread = survey.errors.iter();
    let unread = unread.map(|error| format!("{}: {}", error.what, error.cause));
    let source = prefixed(" from ", survey.settings.task.snapshot());
    let incomplete = survey.incomplete.map(str::to_owned);
    let rules = of_rules(&rules(survey, pod));
    let sections = [
        Section::of_texts(Kind::Head, "NOTE", Tone::Bad, incomplete),
        head("why", Some(entry.detail)),
        head("its data", asked.and_then(data)),
        head("its owner", asked.and_then(owner)),
        head("its node", state),
        head("the pod", asked.and_then(|pod| overdue(survey, pod))),
        head("by itself", asked.map(by_itself)),
        head("afterwards", entry.note),
        now,
        later,
        never.unwrap_or_default(),
        Section::of_texts(Kind::List, "RULES", Tone::Quiet, rules),
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
        title: format!("{} · {}", full_name(pod), verdict(survey, pod)),
        headline: headline(survey, pod),
        about: format!("EXPLAIN{source} at {}", dated(survey.now)),
        sections: sections.into(),
    }
    .without_empty()
}

/// Says what else the pod's PVCs mean.
pub fn data(pod: &PodView<'_>) -> Option<String> {
    // The reason names the ties that keep the pod.
    joined(
        pod.judged.reason.ties.iter().filter(|tie| !tie.keeps()),
        ". ",
    )
}

/// Says how many pods of its `StatefulSet` are Ready (its status).
fn owner(pod: &PodView<'_>) -> Option<String> {
    let judged = pod.judged;
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

pub fn by_itself(pod: &PodView<'_>) -> String {
    let node = pod.judged.pod.node.as_deref().unwrap_or("its node");
    let from = pod.from.filter(|_| pod.fate == Verdict::Reap);
    match (from, pod.fate) {
        (Some(from), _) => format!("A run can delete it from {} on.", advice::clock(from)),
        (None, Verdict::Reap) if pod.second_writer == SecondWriter::AfterSixMinutes => {
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
