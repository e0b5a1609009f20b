//! The phrases and sentences of a report. All formats for people share them.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{BreakerEntry, Group, NodeEntry, PodEntry, Report, notices::NoticeCode};
use crate::{
    advice::StepKind,
    exit::Exit,
    facts::{LEASES_OF_FILE, Ready},
    judge::{MAX_NODES_IGNORED, ReasonCode, Verdict, heard, reported},
    outcome::OutcomeCode,
    settings::{GuardCode, Mode},
    words::{self, counted, counts, human_duration, joined, listed, prefixed, sanitize},
};

/// The most nodes that the first lines of a report name.
const NAMED_NODES: usize = 3;
/// Nodes that fail within this time of each other are treated as failing simultaneously. The node
/// controller notices each failure by the node's lease, so it may notice one node up to 15 s before
/// another.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(1);

/// Names the kind of run, the cluster and the moment, and says whether nothing was changed.
pub fn about(report: &Report) -> String {
    let file = report.snapshot.as_deref();
    let file = file.map(|file| if file == "-" { "standard input" } else { file });
    let by = prefixed(" from ", file);
    let run = match report.mode {
        _ if report.explained.is_some() => {
            "EXPLAIN ".to_owned() + &prefixed("", report.pods.first().map(name)) + &by
        }
        Mode::Snapshot if !report.suppose_dead.is_empty() => format!(
            "IF {} HAD DIED: AUDIT of {}",
            listed(&report.suppose_dead, NAMED_NODES),
            file.unwrap_or_default()
        ),
        Mode::Snapshot => prefixed("AUDIT of ", file),
        Mode::DryRun => "DRY RUN".to_owned(),
        Mode::Delete => "RUN".to_owned(),
    };
    let changed = if any_acted(report) {
        ""
    } else {
        " Nothing was changed."
    };
    let exit = match report.exit {
        Exit::Done => String::new(),
        exit => format!(" Exit code {}.", exit.code()),
    };
    format!(
        "{}{}, judged at {}.{changed}{exit}",
        run.trim_end_matches(','),
        prefixed(", on ", cluster(report)),
        report.judged_at.strftime("%F %RZ"),
    )
}

/// Returns the cluster's name: that of `--cluster-name`, or else its context and host. `None` for a
/// snapshot without such a name.
pub fn cluster(report: &Report) -> Option<&String> {
    report.cluster_name.as_ref().or(report.cluster.as_ref())
}

/// Describes the thresholds, the namespaces and the guard of the run.
pub fn settings(report: &Report) -> String {
    let settings = &report.settings;
    let guard = match report.guard {
        GuardCode::Proved => " The guard is proved: this account can delete Terminating pods only.",
        GuardCode::NotRequired => {
            " No guard is required: RBAC alone limits what this account can delete."
        }
        GuardCode::NotAsked => "",
    };
    let time = seconds(settings.policy.reap_older_than.as_secs());
    format!(
        "pod-reaper {}. Stuck means overdue for {time}, on a node NotReady for {time}. Namespaces: {}.{guard}",
        report.program_version, settings.namespaces
    )
}

/// Says why the breaker lets nothing be deleted, and what to do about it.
pub fn breaker(report: &Report, breaker: &BreakerEntry) -> String {
    let pods = counted(breaker.held, "pod is held", "pods are held");
    if breaker.reason != ReasonCode::MassOutage {
        return format!(
            "Not known: {}. {pods}. Until that is known, a dead node cannot be distinguished from a live one. The next run tries again.",
            breaker.detail
        );
    }
    if report.summary.nodes == 1 {
        return format!("{}. {pods}.", breaker.detail);
    }
    format!(
        "{}. {pods}. When that many nodes fail at the same time, the cause is more often the API server or the network than the nodes, \
         and their pods may all be running. What the nodes have in common can show what has failed: look at the network \
         first.",
        breaker.detail
    )
}

/// Returns a node's Ready status, its reason, and for how long the node has been NotReady.
pub fn state(node: &NodeEntry, not_ready_seconds: Option<i64>) -> String {
    let Some(ready) = node.ready else {
        return "could not be read".to_owned();
    };
    let reason = node.reason.as_ref().map(|reason| format!(" ({reason})"));
    let time = not_ready_seconds.map_or("an unknown time".to_owned(), minutes);
    // The node lifecycle controller gives this reason to a node whose kubelet is silent.
    if node.reason.as_deref() == Some("NodeStatusUnknown") && ready == Ready::Unknown {
        return format!("NotReady for {time}");
    }
    format!(
        "Ready is {}{} for {time}",
        ready.as_str(),
        prefixed("", reason)
    )
}

/// Describes a node: its Ready status, the signs of life, the fencing mark and the
/// out-of-service taint.
pub fn node(node: &NodeEntry, now: Timestamp) -> String {
    let signs = node.signs_of_life.iter().map(|sign| reported(sign, now));
    let state = state(node, node.not_ready_seconds);
    let heard = match (joined(signs, ", "), &node.last_heard) {
        (Some(signs), _) => format!("{state}; its machine is alive: {signs}"),
        (None, Some(last)) => format!("{state}; last heartbeat {}", heard(last, now)),
        (None, None) => format!("{state}; last heartbeat unknown"),
    };
    let taint = node
        .out_of_service
        .then_some("; has the out-of-service taint");
    format!(
        "{heard}{}{}",
        prefixed("; fenced: ", node.fenced.as_ref()),
        prefixed("", taint)
    )
}

/// Counts a node's Terminating pods by verdict, and the pods that this run has `reaped`, which is
/// `None` if the run has tried to delete none.
pub fn terminating(node: &NodeEntry, reaped: Option<usize>) -> String {
    let left = reaped.map_or("to reap", |_| "not reaped");
    let reaped = reaped.unwrap_or_default();
    let with = |verdict| node.pods[&verdict];
    let pods = counts([
        (reaped, "reaped"),
        (with(Verdict::Reap).saturating_sub(reaped), left),
        (with(Verdict::Wait), "waiting"),
        (with(Verdict::Leave), "left alone"),
        (with(Verdict::Manual), "needs you|need you"),
    ]);
    joined(pods, ", ").unwrap_or("none Terminating".to_owned())
}

/// Reports whether the run deleted a pod, or tried to.
pub fn any_acted(report: &Report) -> bool {
    let mut outcomes = report.pods.iter().filter_map(|pod| pod.outcome);
    outcomes.any(OutcomeCode::acted)
}

/// Returns the heading over the pods with a verdict, with their count. If some went wrong, the
/// heading says how many of all went well.
pub fn heading(report: &Report, verdict: Verdict) -> String {
    let words = match verdict {
        Verdict::Reap if any_acted(report) => "Reaped",
        Verdict::Reap => "To be reaped",
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

/// Reports whether a pod should be gone, but still exists or may still exist.
pub fn went_wrong(pod: &PodEntry) -> bool {
    pod.outcome.is_some_and(|outcome| !outcome.went_well())
}

/// Says for how long a pod has been overdue, or how soon its deletion deadline comes.
pub fn overdue(overdue_seconds: i64) -> String {
    match overdue_seconds {
        within @ ..0 => format!("deadline in {}", minutes(-within)),
        overdue => format!("overdue for {}", minutes(overdue)),
    }
}

/// Says for how long the longest overdue of several pods has been overdue.
pub fn overdue_up_to(overdue_seconds: i64) -> String {
    overdue(overdue_seconds).replace("overdue for ", "overdue for up to ")
}

/// Returns the sentence about a pod: its outcome, or else its reason. `None` if the heading says
/// everything: the pod was deleted, or is to be reaped and there is nothing to add.
pub fn sentence(pod: &PodEntry) -> Option<&str> {
    match (&pod.outcome_detail, pod.outcome) {
        (_, Some(OutcomeCode::Deleted | OutcomeCode::WouldDelete)) => None,
        (Some(detail), _) => Some(detail),
        (None, _) if pod.verdict == Some(Verdict::Reap) => None,
        (None, _) => Some(&pod.detail),
    }
}

/// Returns the brief form of a pod for a text whose heading says the rest: the pod's name. `None`
/// if there is more to say about the pod.
pub fn brief(pod: &PodEntry) -> Option<String> {
    let is_plain = sentence(pod).is_none() && !went_wrong(pod);
    is_plain.then(|| pod.name.clone())
}

/// Reports whether the namespace filter left the run no pod to judge.
fn judged_none(report: &Report) -> bool {
    report
        .notices
        .iter()
        .any(|notice| notice.code == NoticeCode::NoNamespace)
}

/// Counts the pods by what happens to them.
pub fn headline(report: &Report) -> String {
    let summary = &report.summary;
    let with = |verdict| summary.verdicts[&verdict];
    let held = report.breaker.as_ref().map(|breaker| breaker.held);
    let would = pods_for_you(report, true);
    let need = with(Verdict::Manual).saturating_sub(would);
    let outcomes = summary.outcomes.iter().map(|(code, count)| match code {
        OutcomeCode::WouldDelete => (*count, "would be deleted"),
        code => (*count, code.as_str()),
    });
    let with_outcome = summary.outcomes.values().sum();
    let to_reap = with(Verdict::Reap).saturating_sub(with_outcome);
    let zones = report.breaker.iter().flat_map(|breaker| &breaker.zones);
    let of = prefixed(" in zone ", joined(zones, ", "));
    let held_pods = held.filter(|held| *held > 0);
    let held_pods = held_pods.map(|held| format!("{held} HELD{of}"));
    let mut parts = held_pods.into_iter().collect_vec();
    parts.extend(counts(outcomes.chain([(to_reap, "to be reaped")])));
    parts.extend(counts([
        (need, "needs you|need you"),
        (would, "would need you"),
        (with(Verdict::Wait) - held.unwrap_or(0), "waiting"),
        (with(Verdict::Leave), "left alone"),
    ]));
    if parts.is_empty() {
        let none = if judged_none(report) {
            "NONE WAS JUDGED"
        } else {
            "none is stuck"
        };
        parts.push(none.to_owned());
    }
    let unread = Some(report.errors.len()).filter(|count| *count > 0);
    parts.extend(unread.map(|count| format!("not read: {count}")));
    parts.join(" · ")
}

/// Names the NotReady nodes, and for how long they have been NotReady.
pub fn nodes(report: &Report) -> String {
    let all = report.summary.nodes;
    let down = report.nodes.iter().map(|node| {
        let time = node.not_ready_seconds.map(minutes);
        let is_alive = !node.signs_of_life.is_empty();
        let link = !node.leaf_marks.is_empty();
        let what = match (is_alive, link) {
            (true, _) => ", but its machine is alive",
            (_, true) => ", its link is probably cut",
            _ => "",
        };
        format!("{} NotReady{}{what}", node.name, prefixed(" for ", time))
    });
    let down = down.collect_vec();
    match (all, &down[..]) {
        (1, []) => "the only node is Ready".to_owned(),
        (2, []) => "both are Ready".to_owned(),
        (all, []) => format!("all {all} are Ready"),
        (_, few) if few.len() <= NAMED_NODES => few.join(" · "),
        (all, many) => {
            let names = report.nodes.iter().map(|node| node.name.as_str());
            let longest = report
                .nodes
                .iter()
                .filter_map(|node| node.not_ready_seconds);
            let time = prefixed(", for up to ", longest.max().map(minutes));
            let names = listed(&names.collect_vec(), NAMED_NODES);
            format!("{} of {all} NotReady{time}: {names}", many.len())
        }
    }
}

/// Counts the pods that need you, or that would need you if the breaker did not hold them.
pub fn pods_for_you(report: &Report, held: bool) -> usize {
    let groups = report.groups.iter().filter(|group| group.is_held == held);
    groups.map(|group| group.pods.len()).sum()
}

/// Lists the things to do, in the order in which to do them.
pub fn next(report: &Report) -> Vec<String> {
    // This comes first: once the node is back, its kubelet destroys that data, whatever else is
    // done.
    let with_data_to_keep = report.groups.iter().filter(|group| {
        let mut steps = group.advice.steps.iter();
        steps.any(|step| step.kind == StepKind::Keep && step.command.is_some())
    });
    let keep = |group| {
        let pod = name(first_pod(report, group));
        format!("set the volume of {pod} to Retain before its node comes back (command below)")
    };
    let mut does = with_data_to_keep.map(keep).collect_vec();
    if report.incomplete.is_some() {
        does.push(
            "save the file again, with leases, before you act (command under NOT SEEN)".to_owned(),
        );
    }
    if judged_none(report) {
        does.push("correct the namespace filter, and run again".to_owned());
    }
    if let Some(breaker) = report.breaker.as_ref().filter(|_| report.is_held()) {
        does.extend(next_while_held(report, breaker));
        return does;
    }
    let groups = report.groups.iter().filter(|group| !group.is_held);
    let (asking, others): (Vec<_>, Vec<_>) =
        groups.partition(|group| group.advice.asks_to_decide());
    let is_alive =
        |group: &&Group| first_pod(report, group).reason == Some(ReasonCode::KubeletAlive);
    let (alive, looks): (Vec<_>, Vec<_>) = others.into_iter().partition(is_alive);
    let names = |groups: &[&Group]| {
        let names = groups.iter().map(|group| {
            let others = group.pods.len() - 1;
            let others = Some(format!(" and {others} like it")).filter(|_| others > 0);
            name(first_pod(report, group)) + &prefixed("", others)
        });
        names.collect_vec()
    };
    let nodes = |groups: &[&Group], all: bool| {
        let groups = groups
            .iter()
            .filter(|group| all || !is_fenced(report, first_pod(report, group)));
        let nodes = groups.filter_map(|group| first_pod(report, group).node.clone());
        nodes.unique().collect_vec()
    };
    // Once a pod on a node was reaped, its containers may run beside their replacement, so that
    // node has to be powered off without delay.
    let was_reaped = |node: &String| {
        let mut pods = report
            .pods
            .iter()
            .filter(|pod| pod.node.as_ref() == Some(node));
        pods.any(|pod| {
            pod.outcome
                .is_some_and(|it| it.acted() && !it.left_untouched())
        })
    };
    let kept = asking.iter().filter(|group| group.advice.keeps_data());
    let kept = nodes(&kept.copied().collect_vec(), false);
    let (off_now, off_first): (Vec<_>, Vec<_>) =
        nodes(&asking, false).into_iter().partition(was_reaped);
    let (off_kept, off_first): (Vec<_>, Vec<_>) =
        off_first.into_iter().partition(|node| kept.contains(node));
    // Waiting for a node keeps only the pods that need you: a run reaps the others.
    let is_reaped_from = |node: &String| {
        let mut pods = report.pods.iter();
        pods.any(|pod| {
            pod.node.as_ref() == Some(node)
                && pod.verdict == Some(Verdict::Reap)
                && matches!(pod.outcome, None | Some(OutcomeCode::WouldDelete))
        })
    };
    let (off_soon, off_first): (Vec<_>, Vec<_>) = off_first.into_iter().partition(is_reaped_from);
    let alive = nodes(&alive, true);
    let off = to_power_off(report).into_iter().map(str::to_owned);
    let off = off.filter(|node| {
        let named = [&off_first, &off_soon, &off_kept, &off_now];
        !named.iter().any(|it| it.contains(node))
    });
    let off = off.collect_vec();
    let zones = report.breaker.iter().flat_map(|breaker| &breaker.zones);
    let zones = joined(zones, ", ");
    let deletes = asking.iter().any(|group| group.advice.deletes_data());
    if let Some(count) = failed_at_once(report).filter(|_| zones.is_none()) {
        let before = if deletes {
            " before you delete data"
        } else {
            ""
        };
        does.push(format!(
            "check network and power{before}: {count} nodes failed within a minute"
        ));
    }
    does.extend(zones.map(|zones| format!("look at the network of zone {zones}")));
    let them = |nodes: &[String]| if nodes.len() == 1 { "it" } else { "them" };
    let mut say = |names: &[String], says: &dyn Fn(String) -> String| {
        if !names.is_empty() {
            does.push(says(listed(names, NAMED_NODES)));
        }
    };
    let runs_on = |nodes: String, are: &str| {
        format!(
            "power off {nodes}, unless {are} about to come back: any containers still running there keep running alongside their replacements"
        )
    };
    let they_are = |nodes: &[String]| {
        if nodes.len() == 1 {
            "it is"
        } else {
            "they are"
        }
    };
    say(&off_now, &|nodes| runs_on(nodes, they_are(&off_now)));
    say(&off_kept, &|nodes| format!("then power off {nodes}"));
    say(&off_soon, &|nodes| {
        let are = they_are(&off_soon);
        let its = if off_soon.len() == 1 { "its" } else { "their" };
        format!(
            "power off {nodes}, unless {are} about to come back: the next run reaps {its} other pods, even if {are} still on"
        )
    });
    say(&off_first, &|nodes| {
        let them = them(&off_first);
        format!("{nodes}: if {them} can come back, wait; if not, power {them} off")
            .replace("if them", "if they")
    });
    say(&names(&asking), &|pods| format!("then decide about {pods}"));
    say(&alive, &|nodes| {
        format!(
            "repair {nodes} as the entries below say, or power {} off",
            them(&alive)
        )
    });
    let by_reason = looks
        .into_iter()
        .map(|group| (first_pod(report, group).reason, group))
        .sorted_by_key(|(reason, _)| *reason)
        .chunk_by(|(reason, _)| *reason);
    for (reason, groups) in &by_reason {
        let groups = groups.map(|(_, group)| group).collect_vec();
        let what = match reason {
            Some(ReasonCode::KosmosLeaf) => {
                "do not delete it; look in its leaf cluster before you repair the link"
            }
            Some(ReasonCode::Finalizers) => "see what set its finalizers, and repair that",
            _ => "see below",
        };
        let what = match &groups[..] {
            [group] if group.pods.len() == 1 => what.to_owned(),
            _ => what.replace(" it;", " them;").replace(" its ", " their "),
        };
        say(&names(&groups), &|pods| format!("{pods}: {what}"));
    }
    let wrong = report.pods.iter().filter(|pod| went_wrong(pod)).map(name);
    say(&wrong.collect_vec(), &|pods| {
        format!("see why these were not reaped: {pods}")
    });
    say(&off, &|nodes| runs_on(nodes, they_are(&off)));
    let unread = report.errors.iter().map(|error| error.what.clone());
    // The first line of the report already says that.
    let unread = unread.filter(|what| report.incomplete.is_none() || what != LEASES_OF_FILE);
    say(&unread.collect_vec(), &|unread| {
        format!("see what could not be read: {unread}")
    });
    if does.is_empty() {
        let due = first_due(report);
        does.extend(due.map(|(pod, time)| {
            format!(
                "nothing yet; {} is judged again in {}",
                name(pod),
                minutes(time)
            )
        }));
    }
    does
}

fn next_while_held(report: &Report, breaker: &BreakerEntry) -> Vec<String> {
    match (breaker.reason, &report.nodes[..]) {
        (ReasonCode::MassOutage, [only]) if report.summary.nodes == 1 => vec![format!(
            "bring {0} back; if {0} is lost, add a node, then run again",
            only.name
        )],
        (ReasonCode::MassOutage, _) => {
            vec!["find the common cause (network, API server)".to_owned()]
        }
        _ => vec![format!(
            "see why this is not known, and run again: {}",
            breaker.detail
        )],
    }
}

/// Returns how many nodes failed within a minute; `None` if they are few, or not most of the
/// NotReady nodes.
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

/// Returns the first pod that a run may reap among those that wait for time to pass and for nothing
/// else, with the seconds until then.
fn first_due(report: &Report) -> Option<(&PodEntry, i64)> {
    let due = report.pods.iter().filter_map(|pod| {
        let left = pod.reaped_from?.duration_since(report.judged_at);
        Some((pod, left.as_secs().max(0)))
    });
    due.min_by_key(|(_, time)| *time)
}

/// Lists the nodes that you have to power off, because the containers of their reaped pods may
/// still be running.
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

pub fn name(pod: &PodEntry) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// Lists the lines of a command as they are pasted, with control characters replaced.
pub fn lines(command: &str) -> impl Iterator<Item = String> {
    command.split('\n').map(sanitize)
}

/// Formats a number of seconds as a duration, such as "1h 5m".
pub fn seconds(seconds: i64) -> String {
    human_duration(SignedDuration::from_secs(seconds))
}

/// Formats a number of seconds as a duration; from ten minutes on, without the seconds.
pub fn minutes(seconds: i64) -> String {
    words::about(SignedDuration::from_secs(seconds))
}
