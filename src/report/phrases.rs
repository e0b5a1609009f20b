//! What every format for people says in the same words: said here once, laid out by each writer.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{BreakerEntry, NodeEntry, PodEntry, Report};
use crate::{
    advice::{Step, power_off},
    decide::{ReasonCode, Verdict, heard, reported},
    facts::Owner,
    outcome::OutcomeCode,
    settings::{GuardCode, ModeCode},
    words::{after, clean, counted, counts, joined, listed, spoken},
};

/// How many nodes are named first.
const NAMED_NODES: usize = 3;

/// What kind of run it was, where and when, and whether it could change anything.
pub fn about(report: &Report) -> String {
    let run = match report.mode {
        ModeCode::Snapshot => after("audit of ", report.snapshot.as_ref()),
        ModeCode::ServerDryRun => "dry run, checked by the API server".to_owned(),
        ModeCode::ClientDryRun => "dry run, reading only".to_owned(),
        ModeCode::Delete => "run".to_owned(),
    };
    format!(
        "pod-reaper {}: {run}{}, judged at {}.{}",
        report.program_version,
        after(", cluster ", cluster(report)),
        report.judged_at.strftime("%F %TZ"),
        if any_acted(report) {
            ""
        } else {
            " Nothing was changed."
        }
    )
}

/// The cluster, as it is called.
pub fn cluster(report: &Report) -> Option<&String> {
    report.cluster_name.as_ref().or(report.cluster.as_ref())
}

/// What was asked for.
pub fn settings(report: &Report) -> String {
    let settings = &report.settings;
    let namespaces = match (&settings.namespace_regex, &settings.namespace_exclude_regex) {
        (None, None) => "all".to_owned(),
        (Some(only), None) => format!("matching /{only}/"),
        (None, Some(except)) => format!("all but those matching /{except}/"),
        (Some(only), Some(except)) => format!("matching /{only}/ but not /{except}/"),
    };
    let guard = match report.guard {
        GuardCode::Proved => " The guard is proved: this account can delete Terminating pods only.",
        GuardCode::NotRequired => {
            " No guard is required: RBAC alone limits what this account can delete."
        }
        GuardCode::NotAsked => "",
    };
    format!(
        "Stuck means {} past the deletion deadline, on a node NotReady for {}. Namespaces: {namespaces}.{guard}",
        seconds(settings.reap_older_than_seconds),
        seconds(settings.node_not_ready_for_seconds)
    )
}

/// Why nothing is deleted, and what to do about that.
pub fn breaker(breaker: &BreakerEntry) -> String {
    let pods = counted(breaker.held, "pod is held", "pods are held");
    let rest = if breaker.reason == ReasonCode::MassOutage {
        "When that many fail at once, the cause is more often the API server or the network than the nodes, and their \
         pods may all be running. What the nodes have in common can show what has failed. Once you are sure that they \
         are dead, run with --max-not-ready-percent=100."
    } else {
        "Without that number, a dead node cannot be told from an outage. The next run tries again."
    };
    format!("{}. {pods}. {rest}", breaker.detail)
}

/// Ready, its reason, and for how long.
pub fn state(node: &NodeEntry, not_ready_seconds: Option<i64>) -> String {
    let Some(ready) = node.ready else {
        return "could not be read".to_owned();
    };
    let reason = node.reason.as_ref().map(|reason| format!(" ({reason})"));
    let time = not_ready_seconds.map_or("an unknown time".to_owned(), seconds);
    format!(
        "Ready is {}{} for {time}",
        ready.as_str(),
        after("", reason)
    )
}

/// The state of a node, without its name.
pub fn node(node: &NodeEntry, now: Timestamp) -> String {
    let signs = node.signs_of_life.iter().map(|sign| reported(sign, now));
    let alive = match (joined(signs, ", "), &node.last_heard) {
        (Some(signs), _) => format!("signs of life: {signs}"),
        (None, Some(last)) => format!("last heard {}", heard(last, now)),
        (None, None) => "its machine was never heard".to_owned(),
    };
    let taint = node
        .out_of_service
        .then_some("; has the out-of-service taint");
    [
        state(node, node.not_ready_seconds),
        after("; ", Some(alive)),
        after("; fenced: ", node.fenced.as_ref()),
        after("", taint),
    ]
    .concat()
}

/// How many Terminating pods of a node have which verdict.
pub fn terminating(node: &NodeEntry) -> String {
    let words = [
        (Verdict::Reap, "to reap"),
        (Verdict::Wait, "waiting"),
        (Verdict::Leave, "left alone"),
        (Verdict::Manual, "for you"),
    ];
    let pods = counts(words.map(|(verdict, words)| (node.pods[&verdict], words)));
    joined(pods, ", ").unwrap_or("none Terminating".to_owned())
}

/// Whether anything was done, or tried.
fn any_acted(report: &Report) -> bool {
    let mut outcomes = report.pods.iter().filter_map(|pod| pod.outcome);
    outcomes.any(OutcomeCode::acted)
}

/// The heading over the pods with a verdict, which it counts: how many of them went well, where some did not.
pub fn heading(report: &Report, verdict: Verdict) -> String {
    let words = match verdict {
        Verdict::Reap if any_acted(report) => "Reaped",
        Verdict::Reap => "To be reaped (nothing was changed)",
        Verdict::Manual if report.breaker.is_some() => "Would need you",
        Verdict::Wait => "Waiting",
        Verdict::Leave => "Left alone",
        Verdict::Manual => "Needs you",
    };
    let all = report.summary.verdicts[&verdict];
    let of_verdict = report.pods.iter().filter(|pod| pod.verdict == verdict);
    match of_verdict.filter(|pod| went_wrong(pod)).count() {
        0 => format!("{words}: {all}"),
        wrong => format!("{words}: {} of {all}", all - wrong),
    }
}

/// Whether a pod should be gone, and is not, or that is not known.
pub fn went_wrong(pod: &PodEntry) -> bool {
    pod.outcome.is_some_and(|outcome| !outcome.went_well())
}

/// How long a pod is past its deadline, or has until then.
pub fn overdue(overdue_seconds: i64) -> String {
    match overdue_seconds {
        within @ ..0 => format!("due in {}", seconds(-within)),
        overdue => format!("overdue {}", seconds(overdue)),
    }
}

/// How long the longest overdue of several pods is overdue.
pub fn overdue_up_to(overdue_seconds: i64) -> String {
    overdue(overdue_seconds).replace("overdue ", "overdue up to ")
}

/// What is said about a pod. What went as it should needs no sentence a pod.
pub fn sentence(pod: &PodEntry) -> Option<&str> {
    match (&pod.outcome_detail, pod.outcome) {
        (_, Some(OutcomeCode::Deleted | OutcomeCode::WouldDelete)) => None,
        (Some(detail), _) => Some(detail),
        (None, _) if pod.verdict == Verdict::Reap => None,
        (None, _) => Some(&pod.detail),
    }
}

/// What became of its replacement: its state, where it is, and why it is not back.
pub fn replacement(pod: &PodEntry) -> Option<String> {
    let of = pod.replacement.as_ref()?;
    let since = of.since.map(|since| since.strftime("%F %TZ"));
    let says = [
        of.state.to_string(),
        after(": ", of.name.as_ref().filter(|name| **name != pod.name)),
        after(" on ", of.node.as_ref()),
        after(", Ready since ", since),
        after(", ", of.cause.as_ref()),
    ];
    Some(says.concat())
}

/// What needs a person, and what went, in a few words.
pub fn headline(report: &Report) -> String {
    let summary = &report.summary;
    let with = |verdict| summary.verdicts[&verdict];
    let held = report.breaker.as_ref().map(|breaker| breaker.held);
    let you = match held {
        None => (with(Verdict::Manual), "pod needs you|pods need you"),
        Some(_) => (with(Verdict::Manual), "would need you"),
    };
    let outcomes = summary.outcomes.iter().map(|(code, count)| match code {
        OutcomeCode::WouldDelete => (*count, "would be deleted"),
        code => (*count, code.as_str()),
    });
    let with_outcome = summary.outcomes.values().sum();
    let to_reap = with(Verdict::Reap).saturating_sub(with_outcome);
    let others = [
        (to_reap, "to be reaped"),
        (with(Verdict::Wait) - held.unwrap_or(0), "waiting"),
        (with(Verdict::Leave), "left alone"),
    ];
    let pods = counts([you].into_iter().chain(outcomes).chain(others));
    let held = held.map(|held| format!("NOTHING IS DELETED, {held} held"));
    let mut parts = held.into_iter().chain(pods).collect_vec();
    if parts.is_empty() {
        parts.push("no Terminating pod to judge".to_owned());
    }
    parts.extend(counts([(report.errors.len(), "could not be read")]));
    let states = summary.replacements.iter();
    let states = counts(states.map(|(state, count)| (*count, state.as_str())));
    parts.extend(joined(states, ", ").map(|states| format!("replacements: {states}")));
    parts.join(", ")
}

/// What matters most, in at most three lines: where, the headline, and which nodes are down.
pub fn summary(report: &Report) -> String {
    let place = cluster(report)
        .or(report.snapshot.as_ref())
        .map(|place| format!("{place}: "));
    let down = report
        .nodes
        .iter()
        .map(|node| {
            let time = node.not_ready_seconds.map(seconds);
            node.name.clone() + &after(" for ", time)
        })
        .collect_vec();
    let nodes = match (report.summary.nodes, down.len()) {
        (1, 0) => "The only node is Ready".to_owned(),
        (all, 0) => format!("All {all} nodes are Ready"),
        (all, count) => format!(
            "{count} of {all} nodes not Ready: {}",
            listed(&down, NAMED_NODES)
        ),
    };
    format!(
        "{}{}. {nodes}. Exit code {}.",
        after("", place),
        headline(report),
        report.exit.code()
    )
}

/// The one thing to do next, and what comes after it.
pub fn next(report: &Report) -> Option<String> {
    if let Some(breaker) = &report.breaker {
        let says = match breaker.reason {
            ReasonCode::MassOutage => {
                "find out what the NotReady nodes have in common; until then nothing is deleted, and nothing asked of you."
            }
            _ => "run it again: how many nodes are NotReady could not be read.",
        };
        return Some(says.to_owned());
    }
    let off = to_power_off(report);
    let off = (!off.is_empty()).then(|| {
        let nodes = listed(&off, NAMED_NODES);
        format!("power off {nodes} (what ran there may still run)")
    });
    let wrong = report.pods.iter().filter(|pod| went_wrong(pod)).count();
    let asked = report.groups.iter().filter(|group| group.asks()).count();
    let then = counts([
        (wrong, "pod that was not reaped|pods that were not reaped"),
        (asked, "decision|decisions"),
        (
            report.groups.len() - asked,
            "thing to look at|things to look at",
        ),
        (
            report.errors.len(),
            "thing that could not be read|things that could not be read",
        ),
    ]);
    let parts = off.into_iter().chain(joined(then, ", "));
    joined(parts, ", then ").map(|parts| parts + ".")
}

/// The nodes that are certainly dead for the program, and may be alive all the same.
pub fn to_power_off(report: &Report) -> Vec<&str> {
    report
        .nodes
        .iter()
        .filter(|node| node.steps.contains(&power_off(&node.name)))
        .map(|node| node.name.as_str())
        .collect()
}

/// A pod that needs a person, in a line: why, and what to do, each command after what it is for.
pub fn for_a_person(pod: &PodEntry) -> String {
    let (asks, looks): (Vec<&Step>, Vec<_>) = pod.steps.iter().partition(|step| step.asks());
    let steps = asks
        .into_iter()
        .chain(looks.into_iter().take(1))
        .map(|step| step.what.clone() + &after(" ", step.command.as_ref()));
    format!(
        "{} on {} needs a person [{}]: {}",
        name(pod),
        pod.node.as_deref().unwrap_or("no node"),
        pod.reason,
        steps.into_iter().join(" ")
    )
}

pub fn name(pod: &PodEntry) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// What made the pod `name`; by its kind alone where the pod bears its name. Nothing where it has none.
pub fn owner(name: &str, owner: Option<&Owner>) -> String {
    owner.map_or_else(String::new, |owner| match name.strip_prefix(&owner.name) {
        Some(rest) if rest.starts_with('-') => owner.kind.clone(),
        _ => owner.to_string(),
    })
}

/// A command as it is pasted, line by line.
pub fn lines(command: &str) -> impl Iterator<Item = String> {
    command.split('\n').map(clean)
}

/// Seconds as people say them.
pub fn seconds(seconds: i64) -> String {
    spoken(SignedDuration::from_secs(seconds))
}
