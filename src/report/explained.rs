//! Explains one pod: its facts, what happens by itself, what to do, and what each rule saw.

use std::cmp::Ordering;

use jiff::SignedDuration;

use super::{
    advice::{SHOWS_LIFE, clock},
    build,
    document::{Kind, Section, Tone},
    hang::Hang,
    head,
    survey::{PodView, Survey, full_name},
    types::PodEntry,
};
use crate::{
    facts::{PodFacts, WaitsFor},
    judge::{Evaluation, Limit, Verdict},
    words::{about, human_duration, joined, prefixed},
};

/// Returns what each rule saw of the pod; none if it is not Terminating.
pub fn rules(survey: &Survey<'_>) -> Vec<Evaluation> {
    survey
        .terminating_asked()
        .map_or_else(Vec::new, |asked| survey.rules(asked.judged))
}

/// Returns the entry of the pod.
pub fn entry(survey: &Survey<'_>, pod: &PodFacts) -> PodEntry {
    let in_plan = survey.terminating_asked();
    let left_out = |detail: String| PodEntry {
        overdue_seconds: in_plan.map(|it| it.overdue.as_secs()),
        detail,
        ..PodEntry::from(pod)
    };
    match (survey.shown().first(), in_plan) {
        (Some(asked), _) => build::entry(survey, asked),
        (None, Some(_)) => left_out(format!(
            "Its namespace {} is left out. The run looks at these namespaces: {}.",
            pod.namespace, survey.settings.namespaces
        )),
        (None, None) if let Some(pod) = survey.not_evicted(pod) => build::not_evicted(survey, pod),
        (None, None) if let Some(waiting) = survey.waiting => left_out(format!("{waiting}.")),
        (None, None) if pod.phase == "Pending" => left_out(not_started(pod)),
        (None, None) => left_out("It is not Terminating: its deletion was not requested. pod-reaper looks at Terminating pods only.".to_owned()),
    }
}

/// Says what was seen of a pod that has not started, and waits for nothing that is known.
fn not_started(pod: &PodFacts) -> String {
    let it = "It has not started, and is not Terminating";
    if pod.claim_names.as_ref().is_ok_and(Vec::is_empty) {
        return format!("{it}: see its events.");
    }
    format!(
        "{it}. As far as was read, no Terminating pod, no NotReady node and no VolumeAttachment keeps its volumes: see its events. \
         There, {SHOWS_LIFE}."
    )
}

/// Names the pod, its verdict and what decided.
pub fn headline(survey: &Survey<'_>, pod: &PodFacts) -> String {
    let mut name = full_name(pod);
    if let Some(it) = survey.waiting {
        if it.pod_uid == pod.uid {
            return format!("{name}  WAITS FOR {}", it.waits_for);
        }
        name = format!("{}/{}  WAITS FOR  {name}", it.namespace, it.pod);
    }
    let rules = rules(survey);
    let Some(asked) = survey.shown().first() else {
        let why = if rules.is_empty() {
            "NOT TERMINATING"
        } else {
            "LEFT OUT BY THE FILTER"
        };
        return format!("{name}  {why}");
    };
    if let Some(hang) = asked.hang.filter(|_| asked.fate != Verdict::Manual) {
        let (code, time) = (hang.code(), about(asked.overdue));
        return match hang {
            Hang::Ending(until) => format!("{name}  ENDS  [{code}], until {}", clock(until)),
            _ if asked.node.is_some() => {
                format!("{name}  HANGS on a Ready node  [{code}], for {time}")
            }
            _ => format!("{name}  HANGS, its node is gone  [{code}], for {time}"),
        };
    }
    let by = match decider(&rules) {
        Some(rule) if asked.judged.limit.is_none() => {
            format!("rule {} of {}", rule.number, rules.len())
        }
        _ => "by a limit of the run".to_owned(),
    };
    let verdict = match asked.verdict() {
        Verdict::Manual => "NEEDS YOU".to_owned(),
        Verdict::Reap => "A RUN DELETES IT".to_owned(),
        verdict => verdict.as_str().to_uppercase(),
    };
    // A limit can last longer than the time for which the pod waits.
    let from = asked
        .from
        .filter(|_| !asked.is_on_held_node)
        .map(|from| head::day(survey, from));
    let then = match (from, asked.fate) {
        (Some(from), Verdict::Reap) => format!(", A RUN DELETES IT FROM {from} ON"),
        (Some(from), Verdict::Manual) => format!(", NEEDS YOU FROM {from} ON"),
        _ => String::new(),
    };
    format!("{name}  {verdict}{then}  [{}], {by}", asked.code())
}

/// Says why the pod gets its verdict, and what is known of it.
pub fn head<'a>(survey: &'a Survey<'a>, pod: &PodFacts) -> Vec<Section> {
    let entry = entry(survey, pod);
    let asked = survey.shown().first();
    let waits = survey.waiting.filter(|_| asked.is_none());
    let name = match waits.map(|it| &it.waits_for) {
        Some(WaitsFor::Attachment { node, .. }) => Some(node),
        Some(WaitsFor::Nodes { nodes }) => nodes.first(),
        _ => pod.node.as_ref(),
    };
    let node = name.and_then(|name| survey.node(name));
    let state = node.and_then(|node| {
        let has_deadline = head::deadline(survey, &[node]).is_some();
        let needs_you = |pod: &PodView<'_>| pod.fate == Verdict::Manual && pod.is_missed();
        let other = match asked {
            Some(asked) if !asked.moves_a_volume() && has_deadline => {
                " That is about volumes of other pods there."
            }
            Some(asked) if asked.fate != Verdict::Manual && survey.pods_on(node).any(needs_you) => {
                " Other pods there need you now: see the report of a run."
            }
            _ => "",
        };
        Some(head::says(survey, node.state.as_ref()?, &[node]) + other)
    });
    let hang = asked.and_then(|pod| pod.hang);
    let attached = asked
        .filter(|pod| hang.is_some() && pod.attached == Ok(true))
        .map(|_| "A volume is attached to its node.".to_owned());
    let data = attached.into_iter().chain(head::data(survey));
    let by_itself = match (hang, waits) {
        (Some(Hang::Ending(_)), _) => Some("Its kubelet ends it.".to_owned()),
        (Some(_), _) => Some("Nothing. No run deletes it.".to_owned()),
        (None, Some(waiting)) if waiting.is_for_attachment() => Some(format!(
            "Once no pod there uses the volume, the kubelet of a Ready node unmounts it, and Kubernetes detaches it. From a NotReady node \
             it does so six minutes later, unless --disable-force-detach-on-timeout is set. In the events of the pod, {SHOWS_LIFE}."
        )),
        (None, Some(_)) => None,
        (None, None) => joined(head::next(survey), " "),
    };
    let other = survey.waiting.filter(|_| waits.is_none());
    [
        ("NOTE", survey.incomplete.map(str::to_owned)),
        ("waits", other.map(|it| format!("{it}."))),
        (
            "why",
            Some(hang.map_or_else(|| why(survey, &entry.detail), |hang| hang.to_string())),
        ),
        ("its data", joined(data, " ")),
        ("its node", state),
        (
            "in common",
            node.and_then(|node| head::together(survey, node.name)),
        ),
        ("the pod", asked.and_then(|pod| overdue(survey, pod))),
        ("by itself", by_itself),
        ("afterwards", entry.note),
    ]
    .into_iter()
    .map(|(heading, text)| Section::of_texts(Kind::Head, heading, Tone::Plain, text))
    .collect()
}

/// Says why the pod gets its verdict, and why it will need you once it is stuck.
fn why(survey: &Survey<'_>, detail: &str) -> String {
    let later = survey
        .shown()
        .first()
        .filter(|pod| pod.fate == Verdict::Manual)
        .and_then(|pod| {
            Some(format!(
                "From {} on: {}",
                head::day(survey, pod.from?),
                pod.reason
            ))
        });
    format!("{detail}{}", prefixed(" ", later))
}

/// Lists what each rule saw, the limit of the node, and what was not read.
pub fn lists(survey: &Survey<'_>) -> Vec<Section> {
    // If a limit decides, `why` has its sentence.
    let limit = survey
        .shown()
        .first()
        .filter(|pod| pod.judged.limit.is_none())
        .and_then(|pod| survey.node_of(pod)?.held);
    let unread = survey
        .errors
        .iter()
        .map(|error| format!("{}: {}", error.what, error.cause));
    [
        ("RULES", Vec::from_iter(of_rules(&rules(survey)))),
        ("LIMITS", Vec::from_iter(limit.map(Limit::sentence))),
        ("NOT READ", unread.collect()),
    ]
    .into_iter()
    .map(|(heading, texts)| Section::of_texts(Kind::List, heading, Tone::Quiet, texts))
    .collect()
}

/// Says for how long the pod is overdue; `None` within its grace period, of which the reason tells.
fn overdue(survey: &Survey<'_>, pod: &PodView<'_>) -> Option<String> {
    let limit = human_duration(survey.settings.policy.reap_older_than);
    let text = format!("Terminating, overdue for {}", about(pod.overdue));
    if pod.hang.is_none() {
        return (!pod.overdue.is_negative()).then(|| format!("{text} (stuck after {limit})"));
    }
    let counts = pod.facts.containers;
    let states = [
        (counts.running, "running"),
        (counts.waiting, "not started"),
        (counts.terminated, "ended"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, state)| format!("{count} {state}"));
    let last = prefixed(
        ", the last at ",
        counts.ended_at.map(|at| head::day(survey, at)),
    );
    let grace = pod
        .facts
        .deletion
        .and_then(|its| its.grace_seconds)
        .map(|grace| human_duration(SignedDuration::from_secs(grace)));
    Some(format!(
        "{text}{}. Containers: {}{last}.",
        prefixed(", grace period ", grace),
        joined(states, ", ").as_deref().unwrap_or("not known")
    ))
}

/// Returns the rule that decides: the first that applies, or whose answer is not known.
fn decider(rules: &[Evaluation]) -> Option<&Evaluation> {
    rules.iter().find(|rule| rule.decides)
}

/// Lists the rules by number: those that do not apply, the one that decides, and those after it. The first line says what it
/// saw.
fn of_rules(rules: &[Evaluation]) -> Option<String> {
    let Evaluation {
        number,
        asks,
        holds,
        ..
    } = decider(rules)?;
    let answer = holds.map_or("NOT KNOWN", |_| "YES");
    let groups = [
        (1, number - 1, "no".to_owned()),
        (*number, *number, format!("{asks} {answer}")),
        (number + 1, rules.len(), "not asked".to_owned()),
    ]
    .into_iter()
    .filter_map(|(first, last, answer)| match first.cmp(&last) {
        Ordering::Less => Some(format!("{first} to {last}: {answer}")),
        Ordering::Equal => Some(format!("{first}: {answer}")),
        Ordering::Greater => None,
    });
    joined(groups, " · ")
}
