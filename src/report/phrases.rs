//! The phrases and sentences of a report, which every format for people shares.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{BreakerEntry, Group, NodeEntry, PodEntry, Report, page::pasted};
use crate::{
    advice::StepKind,
    cluster::Mode,
    decide::{ReasonCode, Verdict, heard, reported},
    facts::Ready,
    limits::MAX_NODES_IGNORED,
    outcome::OutcomeCode,
    settings::GuardCode,
    words::{after, clean, counted, counts, joined, listed, spoken},
};

/// The most things to do that the first lines of a report name.
const NEXT: usize = 3;
/// The most nodes that the first lines of a report name.
const NAMED_NODES: usize = 3;
/// Nodes that fail within this time of each other fail at once. The node controller notices each by
/// its lease, so one may be noticed up to 15 s before another.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(1);

/// Says what kind of run it was, on which cluster, at which moment, and whether nothing
/// was changed.
pub fn about(report: &Report) -> String {
    let by = after(" by ", report.snapshot.as_ref());
    let run = match report.mode {
        _ if report.explained.is_some() => {
            after("", report.pods.first().map(name)) + " explained" + &by
        }
        _ if report.each_node.is_some() => format!("what if one node died, foretold{by}"),
        _ if let Some(supposed) = &report.supposed => {
            format!("what if {} died, foretold{by}", supposed.nodes.join(", "))
        }
        Mode::Snapshot => after("audit of ", report.snapshot.as_ref()),
        Mode::ServerDryRun => "dry run, checked by the API server".to_owned(),
        Mode::ClientDryRun => "dry run, reading only".to_owned(),
        Mode::Delete => "run".to_owned(),
    };
    format!(
        "pod-reaper {}: {run}{}, judged at {}.{}",
        report.program_version,
        after(", on ", cluster(report)),
        report.judged_at.strftime("%F %TZ"),
        if any_acted(report) {
            ""
        } else {
            " Nothing was changed."
        }
    )
}

/// Returns the cluster's name: as `--cluster-name` calls it, else its context and host. `None` for
/// a snapshot without such a name.
pub fn cluster(report: &Report) -> Option<&String> {
    report.cluster_name.as_ref().or(report.cluster.as_ref())
}

/// Says which thresholds, namespaces and guard the run had.
pub fn settings(report: &Report) -> String {
    let settings = &report.settings;
    let guard = match report.guard {
        GuardCode::Proved => " The guard is proved: this account can delete Terminating pods only.",
        GuardCode::NotRequired => {
            " No guard is required: RBAC alone limits what this account can delete."
        }
        GuardCode::NotAsked => "",
    };
    format!(
        "Stuck means {} overdue, on a node NotReady for {}. Namespaces: {}.{guard}",
        seconds(settings.policy.reap_older_than.as_secs()),
        seconds(settings.policy.node_not_ready_for.as_secs()),
        settings.namespaces
    )
}

/// Says why nothing is deleted, and what to do about that.
pub fn breaker(report: &Report, breaker: &BreakerEntry) -> String {
    let pods = counted(breaker.held, "pod is held", "pods are held");
    if breaker.reason != ReasonCode::MassOutage {
        return format!(
            "{}. {pods}. Without that, a dead node cannot be told from one that lives. The next run tries again.",
            breaker.detail
        );
    }
    if report.summary.nodes == 1 {
        return format!("{}. {pods}.", breaker.detail);
    }
    let lifts = if is_lifted_by_an_answer(breaker) {
        " For nodes you switched off yourself, use the command below. Or run with --max-not-ready-percent=100, which turns \
         the breaker off for the whole cluster."
    } else {
        ""
    };
    format!(
        "{}. {pods}. When that many fail at once, the cause is more often the API server or the network than the nodes, \
         and their pods may all be running. What the nodes have in common can show what has failed: look at the network \
         first.{lifts}",
        breaker.detail
    )
}

/// Reports whether a person who knows that machines are off can end the hold.
fn is_lifted_by_an_answer(breaker: &BreakerEntry) -> bool {
    breaker
        .steps
        .iter()
        .any(|step| step.kind == StepKind::Answer)
}

/// Returns a node's Ready status, its reason, and for how long the node has been NotReady.
pub fn state(node: &NodeEntry, not_ready_seconds: Option<i64>) -> String {
    let Some(ready) = node.ready else {
        return "could not be read".to_owned();
    };
    let reason = node.reason.as_ref().map(|reason| format!(" ({reason})"));
    let time = not_ready_seconds.map_or("an unknown time".to_owned(), seconds);
    // The node lifecycle controller calls a node so whose kubelet says nothing.
    if node.reason.as_deref() == Some("NodeStatusUnknown") && ready == Ready::Unknown {
        return format!("silent for {time}");
    }
    format!(
        "Ready is {}{} for {time}",
        ready.as_str(),
        after("", reason)
    )
}

/// Describes a node: its Ready status, the signs of life, the fencing mark and the
/// out-of-service taint.
pub fn node(node: &NodeEntry, now: Timestamp) -> String {
    let signs = node.signs_of_life.iter().map(|sign| reported(sign, now));
    let state = state(node, node.not_ready_seconds);
    let heard = match (joined(signs, ", "), &node.last_heard) {
        (Some(signs), _) => {
            let state = state.replacen("silent", "kubelet silent", 1);
            format!("{state}; its machine is alive: {signs}")
        }
        (None, Some(last)) => format!("{state}; last heard {}", heard(last, now)),
        (None, None) => format!("{state}; its machine was never heard"),
    };
    let taint = node
        .out_of_service
        .then_some("; has the out-of-service taint");
    format!(
        "{heard}{}{}",
        after("; fenced: ", node.fenced.as_ref()),
        after("", taint)
    )
}

/// Counts a node's Terminating pods by verdict.
pub fn terminating(node: &NodeEntry) -> String {
    let words = [
        (Verdict::Reap, "for a run"),
        (Verdict::Wait, "waiting"),
        (Verdict::Leave, "left alone"),
        (Verdict::Manual, "for you"),
    ];
    let pods = counts(words.map(|(verdict, words)| (node.pods[&verdict], words)));
    joined(pods, ", ").unwrap_or("none Terminating".to_owned())
}

/// Reports whether the run deleted a pod, or tried to.
fn any_acted(report: &Report) -> bool {
    let mut outcomes = report.pods.iter().filter_map(|pod| pod.outcome);
    outcomes.any(OutcomeCode::acted)
}

/// Returns the heading over the pods with a verdict, with their count. If some went wrong, it
/// counts how many of them all went well.
pub fn heading(report: &Report, verdict: Verdict) -> String {
    let words = match verdict {
        Verdict::Reap if any_acted(report) => "Reaped",
        Verdict::Reap => "To be reaped (nothing was changed)",
        Verdict::Wait => "Waiting",
        Verdict::Leave => "Left alone",
        Verdict::Manual => "Needs you",
    };
    let all = report.summary.verdicts[&verdict];
    let of_verdict = report
        .pods
        .iter()
        .filter(|pod| pod.verdict == Some(verdict));
    match of_verdict.filter(|pod| went_wrong(pod)).count() {
        0 => format!("{words}: {all}"),
        wrong => format!("{words}: {} of {all}", all - wrong),
    }
}

/// Reports whether a pod should be gone, but is not, or is not known to be.
pub fn went_wrong(pod: &PodEntry) -> bool {
    pod.outcome.is_some_and(|outcome| !outcome.went_well())
}

/// Says for how long a pod is overdue, or how soon its deletion deadline comes.
pub fn overdue(overdue_seconds: i64) -> String {
    match overdue_seconds {
        within @ ..0 => format!("deadline in {}", seconds(-within)),
        overdue => format!("overdue {}", seconds(overdue)),
    }
}

/// Says for how long the longest overdue of several pods has been overdue.
pub fn overdue_up_to(overdue_seconds: i64) -> String {
    overdue(overdue_seconds).replace("overdue ", "overdue up to ")
}

/// Returns the sentence about a pod: its outcome, else its reason. `None` if the heading says it
/// all, because the pod was deleted, or is just to be reaped.
pub fn sentence(pod: &PodEntry) -> Option<&str> {
    match (&pod.outcome_detail, pod.outcome) {
        (_, Some(OutcomeCode::Deleted | OutcomeCode::WouldDelete)) => None,
        (Some(detail), _) => Some(detail),
        (None, _) if pod.verdict == Some(Verdict::Reap) => None,
        (None, _) => Some(&pod.detail),
    }
}

/// Describes a pod's replacement: its state, name and node, since when it is Ready, or
/// why it is not.
pub fn replacement(pod: &PodEntry) -> Option<(String, Option<&String>)> {
    let found = pod.replacement.as_ref()?;
    let since = found.since.map(|since| since.strftime("%F %TZ"));
    let other_name = found.name.as_ref().filter(|name| **name != pod.name);
    let parts = [
        found.state.to_string(),
        after(": ", other_name),
        after(" on ", found.node.as_ref()),
        after(", Ready since ", since),
    ];
    Some((parts.concat(), found.cause.as_ref()))
}

/// Counts the pods by what becomes of them, those that need a person first.
pub fn headline(report: &Report) -> String {
    let summary = &report.summary;
    let with = |verdict| summary.verdicts[&verdict];
    let held = report.breaker.as_ref().map(|breaker| breaker.held);
    let would = pods_for_you(report, true);
    let need = with(Verdict::Manual).saturating_sub(would);
    let for_you = [
        (need, "pod needs you|pods need you"),
        (would, "would need you"),
    ];
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
    let pods = counts(for_you.into_iter().chain(outcomes).chain(others));
    let zones = report.breaker.iter().flat_map(|breaker| &breaker.zones);
    let of = after(" IN ZONE ", joined(zones, ", "));
    let held = held.map(|held| format!("NOTHING IS DELETED{of}, {held} held"));
    let mut parts = held.into_iter().chain(pods).collect_vec();
    if parts.is_empty() {
        parts.push("no stuck pods".to_owned());
    }
    parts.extend(counts([(report.errors.len(), "could not be read")]));
    let states = summary.replacements.iter();
    let states = counts(states.map(|(state, count)| (*count, state.as_str())));
    parts.extend(joined(states, ", ").map(|states| format!("replacements: {states}")));
    parts.join(", ")
}

/// Returns the summary, in at most three lines: the cluster, the headline, and the nodes
/// that are down.
pub fn summary(report: &Report) -> String {
    let source = cluster(report)
        .or(report.snapshot.as_ref())
        .map(|source| format!("{source}: "));
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
            "{count} of {} not Ready: {}",
            counted(all, "node", "nodes"),
            listed(&down, NAMED_NODES)
        ),
    };
    format!(
        "{}{}. {nodes}. Exit code {}.",
        after("", source),
        headline(report),
        report.exit.code()
    )
}

/// Counts the pods that need a person, or that would if the breaker did not hold them.
pub fn pods_for_you(report: &Report, held: bool) -> usize {
    let groups = report.groups.iter().filter(|group| group.is_held == held);
    groups.map(|group| group.pods.len()).sum()
}

const RAN_THERE: &str = " (what ran there may still run)";

/// Says what to do next and what comes after that, in the order in which to do it; `None` if there
/// is nothing to do.
pub fn next(report: &Report) -> Option<String> {
    // The kubelet that comes back destroys that data, whatever else is to be done.
    let keep = report.groups.iter().filter(|group| {
        let mut steps = group.advice.steps.iter();
        steps.any(|step| step.kind == StepKind::Keep && step.command.is_some())
    });
    let keep = keep.map(|group| name(first_pod(report, group)));
    let keep = listed(&keep.collect_vec(), 1);
    let keep = (!keep.is_empty())
        .then(|| format!("set the volume of {keep} to Retain before its node comes back"));
    if let Some(breaker) = report.breaker.as_ref().filter(|_| report.is_held()) {
        let keep = after("", keep.map(|keep| keep + "; then "));
        return Some(keep + &next_while_held(report, breaker));
    }
    let groups = report.groups.iter().filter(|group| !group.is_held);
    let (asking, others): (Vec<_>, Vec<_>) = groups.partition(|group| group.advice.wants_answer());
    let is_alive =
        |group: &&Group| first_pod(report, group).reason == Some(ReasonCode::KubeletAlive);
    let (alive, looks): (Vec<_>, Vec<_>) = others.into_iter().partition(is_alive);
    let names = |groups: &[&Group]| {
        let pods = groups.iter().map(|group| first_pod(report, group));
        pods.map(name).collect_vec()
    };
    let nodes = |groups: &[&Group], all: bool| {
        let groups = groups
            .iter()
            .filter(|group| all || !is_fenced(report, first_pod(report, group)));
        let nodes = groups.filter_map(|group| first_pod(report, group).node.clone());
        nodes.unique().collect_vec()
    };
    // What ran on a node may run twice once something was taken from it: that waits for nothing.
    let was_reaped = |node: &String| {
        let mut pods = report
            .pods
            .iter()
            .filter(|pod| pod.node.as_ref() == Some(node));
        pods.any(|pod| pod.outcome.is_some_and(|it| it.acted() && !it.left_it()))
    };
    let kept = asking.iter().filter(|group| group.advice.keeps_data());
    let kept = nodes(&kept.copied().collect_vec(), false);
    let (off_now, off_first): (Vec<_>, Vec<_>) =
        nodes(&asking, false).into_iter().partition(was_reaped);
    let (off_kept, off_first): (Vec<_>, Vec<_>) =
        off_first.into_iter().partition(|node| kept.contains(node));
    let alive = nodes(&alive, true);
    let wrong = report.pods.iter().filter(|pod| went_wrong(pod)).map(name);
    let off = to_power_off(report).into_iter().map(str::to_owned);
    let off = off.filter(|node| {
        let named = [&off_first, &off_kept, &off_now];
        !named.iter().any(|it| it.contains(node))
    });
    let off = off.collect_vec();
    let unread = report.errors.iter().map(|error| error.what.clone());
    let zones = report.breaker.iter().flat_map(|breaker| &breaker.zones);
    let zones = zones.cloned().collect_vec();
    let them = |nodes: &[String]| if nodes.len() == 1 { "it" } else { "them" };
    let said = |before: &str, names: &[String], after: &str| {
        let some = !names.is_empty();
        some.then(|| format!("{before}{}{after}", listed(names, 1)))
    };
    let power = format!(" cannot come back, power {} off", them(&off_first));
    let which = match &alive[..] {
        [only] => only,
        _ => "them",
    };
    let restart = format!(" as its pods' entries say, or power {which} off");
    // Both are one thing to do: neither is left out without the other.
    let power = said("if ", &off_first, &power);
    let now = said("power off ", &off_now, RAN_THERE);
    let decide = said("decide about ", &names(&asking), "");
    let kept = said("power off ", &off_kept, "");
    let decide = joined([now, kept, power, decide].into_iter().flatten(), "; then ");
    let parts = [
        keep,
        said("look at the network of zone ", &zones, ""),
        decide,
        said("repair ", &alive, &restart),
        said("look at ", &names(&looks), ""),
        said("see why it was not reaped: ", &wrong.collect_vec(), ""),
        said("power off ", &off, RAN_THERE),
        said("see what could not be read: ", &unread.collect_vec(), ""),
    ];
    let parts = parts.into_iter().flatten().take(NEXT).collect_vec();
    let gives_up = asking.iter().any(|group| group.advice.gives_up_data());
    let at_once = failed_at_once(report).filter(|_| zones.is_empty() && !parts.is_empty());
    let at_once = at_once.map(|count| {
        let before = if gives_up {
            " before you give up data"
        } else {
            ""
        };
        format!("{count} nodes failed within a minute: check network and power{before}; ")
    });
    let waits = || {
        first_due(report)
            .map(|(pod, time)| format!("nothing yet; {} is due in {}", name(pod), seconds(time)))
    };
    let does = joined(parts, "; then ").or_else(waits)?;
    Some(after("", at_once) + &does + ".")
}

fn next_while_held(report: &Report, breaker: &BreakerEntry) -> String {
    match (breaker.reason, &report.nodes[..]) {
        (ReasonCode::MassOutage, [only]) if report.summary.nodes == 1 => format!(
            "bring {0} back. If {0} is lost, add a node first; then run again.",
            only.name
        ),
        (ReasonCode::MassOutage, _) => {
            let lifts = if is_lifted_by_an_answer(breaker) {
                " For nodes you switched off yourself, use the command in this report."
            } else {
                ""
            };
            format!("find the common cause (network, API server).{lifts}")
        }
        _ => format!(
            "see why this is not known, and run it again: {}.",
            breaker.detail
        ),
    }
}

/// Returns how many nodes failed within a minute; `None` if they are few, or not most of those that
/// are down.
fn failed_at_once(report: &Report) -> Option<usize> {
    let real = report
        .nodes
        .iter()
        .filter(|node| node.leaf_marks.is_empty());
    let times = real.filter_map(|node| node.since).sorted().collect_vec();
    let count = at_once(&times);
    (count > MAX_NODES_IGNORED && 2 * count > times.len()).then_some(count)
}

/// Returns how many of `times`, which are sorted, lie within a minute.
pub fn at_once(times: &[Timestamp]) -> usize {
    let counts = times.iter().enumerate().map(|(place, from)| {
        times[place..].partition_point(|time| time.duration_since(*from) <= AT_ONCE)
    });
    counts.max().unwrap_or_default()
}

fn first_pod<'a>(report: &'a Report, group: &Group) -> &'a PodEntry {
    &report.pods[group.pods[0]]
}

/// Reports whether the pod's node is known to be off.
fn is_fenced(report: &Report, pod: &PodEntry) -> bool {
    let mut nodes = report.nodes.iter();
    nodes.any(|it| Some(&it.name) == pod.node.as_ref() && it.fenced.is_some())
}

/// Says what to do before a command that gives up data, in a few words; `None` if none does, or the
/// node is known to be off.
pub fn off_first(report: &Report, group: &Group) -> Option<String> {
    let pod = first_pod(report, group);
    let node = pod.node.as_ref()?;
    let asks = group.advice.gives_up_data() && !is_fenced(report, pod);
    asks.then(|| {
        if group.advice.keeps_data() {
            return format!("First: Power {node} off, once its data is kept.");
        }
        format!("First: Power {node} off, if it cannot come back.")
    })
}

/// Returns the pod that only waits for time to pass and is the first that a run may reap, with the
/// seconds until then.
fn first_due(report: &Report) -> Option<(&PodEntry, i64)> {
    let due = report.pods.iter().filter_map(|pod| {
        let left = pod.reaped_from?.duration_since(report.judged_at);
        Some((pod, left.as_secs().max(0)))
    });
    due.min_by_key(|(_, time)| *time)
}

/// Lists the nodes that a person has to power off, because pods were taken from them that may still
/// run.
pub fn to_power_off(report: &Report) -> Vec<&str> {
    report
        .nodes
        .iter()
        .filter(|node| {
            node.steps
                .iter()
                .any(|step| step.kind == StepKind::PowerOff)
        })
        .map(|node| node.name.as_str())
        .collect()
}

/// Says in a line of the log that a pod needs a person: the reason, and the steps with
/// their commands.
pub fn for_a_person(report: &Report, pod: &PodEntry) -> String {
    // What a step is for is left out: it may repeat a message of the API server.
    let steps = pod.advice.steps.iter();
    let steps = steps.sorted_by_key(|step| match step.kind {
        StepKind::Keep => 0,
        StepKind::Answer => 1,
        StepKind::Other | StepKind::PowerOff => 2,
    });
    let (name, node) = (name(pod), pod.node.as_deref().unwrap_or("no node"));
    let mut why = pod.advice.steps.iter().filter_map(|step| step.why.clone());
    let does = joined(steps.filter_map(pasted), "; ").or_else(|| why.next());
    let off = Some(node).filter(|_| pod.advice.gives_up_data() && !is_fenced(report, pod));
    let off = off.map(|node| {
        if pod.advice.keeps_data() {
            return format!("Keep its data first, then power {node} off. ");
        }
        format!("Power {node} off first. ")
    });
    format!(
        "{name} on {node} needs a person{}: {}{}",
        after(" ", pod.reason.map(|reason| format!("[{reason}]"))),
        after("", off),
        does.unwrap_or_else(|| explain(report, pod)),
    )
}

/// Returns the command that explains the pod's verdict, from the same source.
pub fn explain(report: &Report, pod: &PodEntry) -> String {
    format!("pod-reaper explain {}{}", name(pod), report.source_options)
}

pub fn name(pod: &PodEntry) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// Lists the lines of a command, cleaned, as they are pasted.
pub fn lines(command: &str) -> impl Iterator<Item = String> {
    command.split('\n').map(clean)
}

/// Says a number of seconds as a duration, such as "1h 5m".
pub fn seconds(seconds: i64) -> String {
    spoken(SignedDuration::from_secs(seconds))
}
