//! What every format for people says in the same words: said here once, laid out by each writer.

use jiff::{SignedDuration, Timestamp};

use super::{BreakerEntry, Group, NodeEntry, PodEntry, Report, Summary};
use crate::{
    advice::{Command, Step, power_off},
    decide::{ReasonCode, Verdict, heard, seen},
    facts::{Owner, Ready},
    outcome::{OutcomeCode, Replacement},
    settings::{GuardCode, ModeCode},
    words::{and_more, clean, counted, spoken},
};

/// What kind of run it was, where and when, and whether it could change anything.
pub fn about(report: &Report) -> String {
    let run = match report.mode {
        ModeCode::Snapshot => format!(
            "audit of {}",
            report.snapshot.as_deref().unwrap_or_default()
        ),
        ModeCode::ServerDryRun => "dry run, checked by the API server".to_owned(),
        ModeCode::ClientDryRun => "dry run, reading only".to_owned(),
        ModeCode::Delete => "run".to_owned(),
    };
    let place = report.cluster_name.as_ref().or(report.cluster.as_ref());
    let place = place.map(|place| format!(", cluster {place}"));
    let changed = if any_acted(report) {
        ""
    } else {
        " Nothing was changed."
    };
    format!(
        "pod-reaper {}: {run}{}, judged at {}.{changed}",
        report.program_version,
        place.unwrap_or_default(),
        report.judged_at.strftime("%F %TZ"),
    )
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

/// Why nothing is deleted, what to do about that, and what helps with it: a paragraph each.
pub fn breaker(breaker: &BreakerEntry) -> Vec<String> {
    let BreakerEntry {
        reason,
        detail,
        held,
        in_common,
        compare: _,
    } = breaker;
    let pods = counted(*held, "pod is held", "pods are held");
    let rest = if *reason == ReasonCode::MassOutage {
        "When that many fail at once, the cause is more often the API server or the network than the nodes, and their \
         pods may all be running. What the nodes have in common can show what has failed. Once you are sure that they \
         are dead, run with --max-not-ready-percent=100."
    } else {
        "Without that number, a dead node cannot be told from an outage. The next run tries again."
    };
    std::iter::once(format!("{detail}. {pods}. {rest}"))
        .chain(in_common.iter().cloned())
        .collect()
}

/// The heading over the nodes that are not Ready.
pub fn nodes(report: &Report) -> String {
    let Summary {
        nodes,
        nodes_not_ready,
        ..
    } = report.summary;
    format!("Nodes not ready: {nodes_not_ready} of {nodes}")
}

/// What is said where none is.
pub fn all_ready(report: &Report) -> String {
    match report.summary.nodes {
        1 => "The only node is Ready.".to_owned(),
        nodes => format!("All {nodes} nodes are Ready."),
    }
}

/// Ready, its reason, and for how long.
pub fn state(ready: Option<Ready>, reason: Option<&str>, not_ready_seconds: Option<i64>) -> String {
    let Some(ready) = ready else {
        return "could not be read".to_owned();
    };
    let reason = reason
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    let time = not_ready_seconds.map(|time| format!(" for {}", seconds(time.max(0))));
    let time = time.unwrap_or_else(|| " for an unknown time".to_owned());
    format!("Ready is {}{reason}{time}", ready.as_str())
}

/// The state of a node, without its name.
pub fn node(node: &NodeEntry, now: Timestamp) -> String {
    let mut says = state(node.ready, node.reason.as_deref(), node.not_ready_seconds);
    if node.signs_of_life.is_empty() {
        says += "; ";
        says += &node.last_heard.as_ref().map_or_else(
            || "its machine was never heard".to_owned(),
            |last| format!("last heard {}", heard(last, now)),
        );
    } else {
        let signs = node.signs_of_life.iter().map(|sign| seen(sign, now));
        says += &format!("; signs of life: {}", signs.collect::<Vec<_>>().join(", "));
    }
    if let Some(mark) = &node.fenced {
        says += &format!("; fenced: {mark}");
    }
    if node.out_of_service {
        says += "; has the out-of-service taint";
    }
    says
}

/// How many Terminating pods of a node have which verdict; `None` where there is none.
pub fn terminating(node: &NodeEntry) -> Option<String> {
    let words = [
        (Verdict::Reap, "to reap"),
        (Verdict::Wait, "waiting"),
        (Verdict::Leave, "left alone"),
        (Verdict::Manual, "for you"),
    ];
    let counts =
        words.map(|(verdict, words)| (node.pods.get(&verdict).copied().unwrap_or_default(), words));
    let counts = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"));
    let counts = counts.collect::<Vec<_>>();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// The volumes still attached to a node.
pub fn attached(node: &NodeEntry) -> String {
    let volumes = node.volume_attachments.iter();
    let volumes =
        volumes.map(|attachment| attachment.volume.as_deref().unwrap_or(&attachment.name));
    volumes.collect::<Vec<_>>().join(", ")
}

fn any_acted(report: &Report) -> bool {
    report.pods.iter().any(acted)
}

/// The pods with a verdict.
pub fn of(report: &Report, verdict: Verdict) -> Vec<&PodEntry> {
    report
        .pods
        .iter()
        .filter(|pod| pod.verdict == verdict)
        .collect()
}

/// Whether anything was done, or tried, about a pod.
pub fn acted(pod: &PodEntry) -> bool {
    pod.outcome.is_some_and(OutcomeCode::acted)
}

/// The heading over the pods with a verdict, which it counts.
pub fn heading(report: &Report, verdict: Verdict) -> String {
    let words = match verdict {
        Verdict::Reap if any_acted(report) => "Reaped",
        Verdict::Reap => "To be reaped (nothing was changed)",
        Verdict::Manual if report.breaker.is_some() => "Would need you",
        Verdict::Wait => "Waiting",
        Verdict::Leave => "Left alone",
        Verdict::Manual => "Needs you",
    };
    format!("{words}: {}", count(&of(report, verdict)))
}

/// How many pods there are, and how many of them went well where some did not.
pub fn count(pods: &[&PodEntry]) -> String {
    match pods.iter().filter(|pod| went_wrong(pod)).count() {
        0 => pods.len().to_string(),
        failed => format!("{} of {}", pods.len() - failed, pods.len()),
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
    let Replacement {
        state,
        name,
        node,
        since,
        cause,
        ..
    } = pod.replacement.as_ref()?;
    let mut says = state.to_string();
    says += &name
        .as_ref()
        .filter(|name| **name != pod.name)
        .map(|it| format!(": {it}"))
        .unwrap_or_default();
    says += &node
        .as_ref()
        .map(|node| format!(" on {node}"))
        .unwrap_or_default();
    says += &since
        .map(|since| format!(", Ready since {}", since.strftime("%F %TZ")))
        .unwrap_or_default();
    says += &cause
        .as_ref()
        .map(|cause| format!(", {cause}"))
        .unwrap_or_default();
    Some(says)
}

/// What needs a person, and what went, in a few words.
pub fn headline(report: &Report) -> String {
    let with = |verdict| {
        report
            .summary
            .verdicts
            .get(&verdict)
            .copied()
            .unwrap_or_default()
    };
    let held = report
        .breaker
        .as_ref()
        .map(|breaker| format!("NOTHING IS DELETED, {} held", breaker.held));
    let manual = Some(with(Verdict::Manual)).filter(|count| *count > 0);
    let mut parts = held.into_iter().collect::<Vec<_>>();
    parts.extend(manual.map(|count| match report.breaker {
        None => counted(count, "pod needs you", "pods need you"),
        Some(_) => format!("{count} would need you"),
    }));
    let outcomes = report
        .summary
        .outcomes
        .iter()
        .filter(|(_, count)| **count > 0);
    let outcomes = outcomes.map(|(code, count)| match *code {
        OutcomeCode::WouldDelete => format!("{count} would be deleted"),
        code => format!("{count} {}", code.as_str().replace('-', " ")),
    });
    let outcomes = outcomes.collect::<Vec<_>>();
    parts.extend(match (outcomes.is_empty(), with(Verdict::Reap)) {
        (true, count @ 1..) => vec![format!("{count} to be reaped")],
        _ => outcomes,
    });
    let held = report.breaker.as_ref().map_or(0, |breaker| breaker.held);
    let waiting = with(Verdict::Wait).saturating_sub(held);
    for (count, words) in [(waiting, "waiting"), (with(Verdict::Leave), "left alone")] {
        parts.extend((count > 0).then(|| format!("{count} {words}")));
    }
    if parts.is_empty() {
        parts.push("no Terminating pod to judge".to_owned());
    }
    let unread = report.errors.len();
    parts.extend((unread > 0).then(|| format!("{unread} could not be read")));
    let states = report
        .summary
        .replacements
        .iter()
        .filter(|(_, count)| **count > 0);
    let states = states
        .map(|(state, count)| format!("{count} {state}"))
        .collect::<Vec<_>>()
        .join(", ");
    parts.extend(
        Some(states)
            .filter(|states| !states.is_empty())
            .map(|states| format!("replacements: {states}")),
    );
    parts.join(", ")
}

/// What matters most, in at most three lines: where, the headline, and which nodes are down.
pub fn summary(report: &Report) -> String {
    let place = report
        .cluster_name
        .as_ref()
        .or(report.cluster.as_ref())
        .or(report.snapshot.as_ref());
    let down = report.nodes.iter().take(NAMED_NODES).map(|node| {
        let since = node
            .not_ready_seconds
            .map(|time| format!(" for {}", seconds(time.max(0))));
        format!("{}{}", node.name, since.unwrap_or_default())
    });
    let down = down.collect::<Vec<_>>().join(", ");
    let more = and_more(report.nodes.len(), NAMED_NODES)
        .map(|more| format!(" {more}"))
        .unwrap_or_default();
    let nodes = match report.summary.nodes_not_ready {
        0 => all_ready(report),
        count => format!(
            "{count} of {} nodes not Ready: {down}{more}.",
            report.summary.nodes
        ),
    };
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    format!(
        "{place}{}. {nodes} Exit code {}.",
        headline(report),
        report.exit.code()
    )
}

/// The one thing to do next, and what comes after it.
pub fn next(report: &Report) -> Option<String> {
    match report.breaker.as_ref().map(|breaker| breaker.reason) {
        Some(ReasonCode::MassOutage) => {
            return Some("find out what the NotReady nodes have in common; until then nothing is deleted, and nothing asked of you.".to_owned());
        }
        Some(_) => {
            return Some("run it again: how many nodes are NotReady could not be read.".to_owned());
        }
        None => {}
    }
    let cut_off = to_power_off(report);
    let more = and_more(cut_off.len(), NAMED_NODES).map(|more| format!(" {more}"));
    let named = cut_off[..cut_off.len().min(NAMED_NODES)].join(", ");
    let cut_off = (!cut_off.is_empty()).then(|| {
        let more = more.unwrap_or_default();
        format!("power off {named}{more} (what ran there may still run)")
    });
    let some = |count, one, many| (count > 0).then(|| counted(count, one, many));
    let asks = |group: &&Group| group.steps.iter().any(Step::asks);
    let (decide, look): (Vec<_>, Vec<_>) = report.groups.iter().partition(asks);
    let wrong = report.pods.iter().filter(|pod| went_wrong(pod)).count();
    let (errors, asked) = (report.errors.len(), decide.len());
    let then = [
        some(
            wrong,
            "pod that was not reaped",
            "pods that were not reaped",
        ),
        some(asked, "decision", "decisions"),
        some(look.len(), "thing to look at", "things to look at"),
        some(
            errors,
            "thing that could not be read",
            "things that could not be read",
        ),
    ];
    let then = then.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let then = Some(then).filter(|then| !then.is_empty());
    let parts = cut_off.into_iter().chain(then).collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join(", then ") + ".")
}

/// The nodes that are certainly dead for the program, and may be alive all the same.
pub fn to_power_off(report: &Report) -> Vec<&str> {
    let nodes = report.nodes.iter();
    let nodes = nodes.filter(|node| node.steps.contains(&power_off(&node.name)));
    nodes.map(|node| node.name.as_str()).collect()
}

/// A pod that needs a person, in a line: why, and what to do, each command after what it is for.
pub fn for_a_person(pod: &PodEntry) -> String {
    let (asks, looks): (Vec<_>, Vec<_>) = pod.steps.iter().partition(|step| step.asks());
    let steps = asks.iter().chain(looks.iter().take(1));
    let steps = steps.map(|step| match &step.command {
        Some(command) => format!("{} {command}", step.what),
        None => step.what.clone(),
    });
    let does = steps.collect::<Vec<_>>().join(" ");
    let node = pod.node.as_deref().unwrap_or("no node");
    format!(
        "{} on {node} needs a person [{}]: {does}",
        name(pod),
        pod.reason
    )
}

pub fn name(pod: &PodEntry) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// What made the pod `name`; by its kind alone where the pod bears its name. Nothing where it has none.
pub fn owner(name: &str, owner: Option<&Owner>) -> String {
    let of = |Owner { kind, name: own }: &Owner| match name.strip_prefix(own) {
        Some(rest) if rest.starts_with('-') => kind.clone(),
        _ => format!("{kind}/{own}"),
    };
    owner.map(of).unwrap_or_default()
}

/// How many nodes are named first.
const NAMED_NODES: usize = 3;

/// A command as it is pasted, on as many lines as it has.
pub fn command(command: &Command) -> String {
    let lines = command.lines().map(|words| clean(&words.join(" ")));
    lines.collect::<Vec<_>>().join(Command::NEXT)
}

/// Seconds as people say them.
pub fn seconds(seconds: i64) -> String {
    spoken(SignedDuration::from_secs(seconds))
}
