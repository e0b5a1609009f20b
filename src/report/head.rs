//! The head: what is wrong, what was done, which data is at risk, and what happens by itself.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    NAMED, NAMES,
    advice::{Pods, clock},
    survey::{
        Damage, NodeView, PodView, Risk, SecondWriter, State, Survey, TOGETHER, Volumes, full_name,
    },
};
use crate::{
    history::{CONFIG_MAP, NodeState, RememberedNode, RememberedSet},
    judge::{Effect, Limit, ReasonCode, Verdict, kubelet_reports, reported},
    outcome::{OutcomeCode, Trace},
    settings::Mode,
    words::{Foreign, about, counted, joined, listed, prefixed},
};

impl<'a> Survey<'a> {
    /// Lists the pods of which `is` holds; `None` if there are none.
    pub fn select(&'a self, is: impl Fn(&PodView<'a>) -> bool) -> Option<Pods<'a>> {
        let pods = self.shown().iter().filter(|pod| is(pod)).collect_vec();
        (!pods.is_empty()).then_some(Pods(pods))
    }

    pub fn with_code(&'a self, code: ReasonCode) -> Option<Pods<'a>> {
        self.select(|pod| pod.code() == code)
    }
}

pub fn title(survey: &Survey<'_>) -> String {
    let named = |is_leaf: bool, what: &str| {
        let nodes = survey.down().into_iter().filter(|(state, _)| {
            **state != State::Gone && matches!(state, State::Kosmos(_) | State::Leaf) == is_leaf
        });
        let names = nodes
            .flat_map(|(_, nodes)| nodes)
            .map(|node| node.name)
            .collect_vec();
        (!names.is_empty()).then(|| format!("{} {what}", listed(&names, NAMED)))
    };
    let needs = survey.select(|pod| pod.fate == Verdict::Manual);
    let act = deadline(survey, &survey.nodes.iter().collect_vec());
    let alone = survey.select(|pod| pod.is_local() && pod.damage == Damage::NoOtherReady);
    let parts = [
        named(false, "down"),
        act.map(|at| format!("act before {}", clock(at))),
        named(true, "cut off"),
        alone.map(|pods| format!("{} without another Ready", pods.0.len())),
        needs.map(|pods| format!("{} need you", pods.0.len())),
    ];
    let parts = joined(parts.into_iter().flatten(), " · ");
    parts.unwrap_or_else(|| "no pod needs you".to_owned()) + &prefixed(" · ", survey.place)
}

/// Returns by when somebody has to act, so that no second machine can write to the volumes of these nodes.
fn deadline(survey: &Survey<'_>, nodes: &[&NodeView<'_>]) -> Option<Timestamp> {
    let nodes = nodes
        .iter()
        .filter(|node| node.is_suspect() && node.held.is_none());
    let times = nodes.filter_map(|node| match node.volumes {
        Volumes::MoveAt(at) => Some(at),
        Volumes::MoveAfterRun(from) => from,
        _ => None,
    });
    times.filter(|at| *at > survey.now).min()
}

/// Says what is down.
pub fn headline(survey: &Survey<'_>) -> String {
    let supposed = joined(survey.settings.task.suppose_dead(), ", ");
    let only_these = supposed.is_some();
    let supposed = supposed.map(|names| format!("IF {names} HAD DIED:"));
    let mut said = Vec::from_iter(supposed);
    said.extend(survey.came_back().map(|node| {
        let (name, at) = (
            &node.noted.node,
            node.now.ready_since.map(|at| day(survey, at)),
        );
        match node.now.state {
            NodeState::AnotherMachine => format!("ANOTHER MACHINE HAS THE NAME {name}."),
            _ => format!("{name} CAME BACK{}, NOT REBOOTED.", prefixed(" AT ", at)),
        }
    }));
    let down = survey.down();
    said.extend(down.iter().map(|(state, nodes)| says(survey, state, nodes)));
    let not_ready = down.iter().filter(|(state, _)| ***state != State::Gone);
    let not_ready = not_ready.map(|(_, nodes)| nodes.len()).sum::<usize>();
    said.push(
        match (not_ready, survey.node_count.saturating_sub(not_ready)) {
            _ if only_these => "Pods of other nodes were not judged.".to_owned(),
            (0, 1) => "THE ONLY NODE IS READY.".to_owned(),
            (0, all) => format!("ALL {all} NODES ARE READY."),
            (_, 0) => "No other node is Ready.".to_owned(),
            (_, ready) => counted(ready, "other node is Ready.", "other nodes are Ready."),
        },
    );
    let hang = survey.select(PodView::hangs);
    said.extend(hang.map(|pods| format!("PODS THAT HANG ON READY NODES: {}.", pods.0.len())));
    let seen = survey.pods_seen.filter(|_| survey.settings.all);
    said.extend(seen.map(|seen| {
        let terminating = survey.terminating().count();
        format!(
            "{} looked at, {terminating} Terminating.",
            counted(seen, "pod", "pods")
        )
    }));
    if not_ready == 0 && !survey.settings.all && survey.terminating().next().is_none() {
        said.push("Pods on Ready nodes were not looked at (--all looks).".to_owned());
    } else if survey.terminating().next().is_none() && survey.unmatched.is_none() {
        said.push(if !survey.errors.is_empty() {
            "No pod that could be read is Terminating.".to_owned()
        } else if survey.settings.namespaces.selects_all() {
            "No pod is Terminating.".to_owned()
        } else {
            "No pod is Terminating in the namespaces that were selected.".to_owned()
        });
    }
    said.join(" ")
}

/// Says in which state these nodes are.
pub fn says(survey: &Survey<'_>, state: &State<'_>, nodes: &[&NodeView<'_>]) -> String {
    let now = survey.now;
    let since = time(survey, nodes, |node| node.since);
    let since = prefixed(" ", since);
    let heard = time(survey, nodes, |node| Some(node.last_heard.as_ref()?.at));
    let silent = heard.map_or_else(|| since.clone(), |time| format!(", silent {time}"));
    let act = deadline(survey, nodes).map(|at| format!(": ACT BEFORE {}", clock(at)));
    let act = prefixed("", act);
    let (who, are) = match nodes {
        [node] => (node.name.to_owned(), "IS"),
        few if few.len() <= NAMED => (few.iter().map(|node| node.name).join(", "), "ARE"),
        many => {
            let range = range(&many.iter().map(|node| node.name).collect_vec());
            let all = || format!("{} OF {} NODES", many.len(), survey.node_count);
            (range.unwrap_or_else(all), "ARE")
        }
    };
    match state {
        State::Unread => format!("{who} COULD NOT BE READ."),
        State::NeededMember => {
            format!("{who} {are} NOT READY{silent}. The API server still writes.")
        }
        State::Fenced(mark) => format!("{who} {are} DOWN AND KNOWN TO BE OFF: {mark}."),
        State::BeingDeleted => format!("{who} {are} DOWN, AND BEING DELETED{silent}."),
        // A file without leases does not show silence.
        State::Down if survey.incomplete.is_some() => {
            format!("{who} {are} NOT READY{since}; whether alive is not known.")
        }
        State::Down => format!("{who} {are} DOWN{silent}{act}."),
        State::NotLookedAt => format!("{who} {are} NOT READY{since}."),
        State::Alive(fault) => {
            let sign = nodes[0].signs_of_life.first();
            let sign = prefixed(": ", sign.map(|sign| reported(sign, now)));
            let reports = kubelet_reports(*fault);
            format!("{who} {are} NOT READY BUT ALIVE{sign}.{reports}")
        }
        State::Kosmos(cluster) => {
            let whose = cluster.map_or(who, |cluster| format!("CLUSTER {cluster}"));
            format!("LINK TO {whose} IS CUT{since}.")
        }
        State::Leaf => format!("LEAF NODE {who} {are} NOT READY{since}."),
        State::Gone => format!("{who} NO LONGER EXISTS."),
    }
}

/// Names many nodes as a range; `None` if they are few, or if more than a number tells their names apart, or a number
/// between the first and the last is missing.
fn range(names: &[&str]) -> Option<String> {
    let split = |name: &&str| {
        let prefix = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = name[prefix.len()..].parse::<u64>().ok()?;
        Some((prefix.to_owned(), number))
    };
    let numbers = names.iter().map(split).collect::<Option<Vec<_>>>()?;
    let follows =
        |(a, b): (&(String, u64), &(String, u64))| a.0 == b.0 && a.1.checked_add(1) == Some(b.1);
    let is_range = names.len() > NAMED && numbers.iter().tuple_windows().all(follows);
    let (first, last) = (names.first()?, names.last()?);
    is_range.then(|| format!("{first} to {last} ({} nodes)", names.len()))
}

/// Says which labels tell nodes that failed from those that are Ready: at most two of those that each of them has and no
/// Ready node has. `None` if not all nodes were read.
fn in_common(survey: &Survey<'_>, names: &[&str]) -> Option<String> {
    let of_ready = survey.labels_of_ready?;
    let names = names.iter().collect::<BTreeSet<_>>();
    let nodes = survey.nodes.iter();
    let mut nodes = nodes.filter(|node| names.contains(&node.name));
    let mut labels = nodes.next()?.known?.labels.clone();
    for node in nodes {
        let has = &node.known?.labels;
        labels.retain(|key, value| has.get(key) == Some(value));
    }
    let labels = labels.into_iter();
    let labels = labels.filter(|label| !of_ready.contains(label));
    let labels = labels.sorted_by_key(|(key, _)| !key.starts_with("topology."));
    // The zone has an old label, too.
    let labels = labels.unique_by(|(_, value)| value.clone());
    let mut labels = labels.take(2).map(|(key, value)| {
        let [key, value] = [key, value].map(Foreign::<60>::from);
        format!("{key}={value}")
    });
    Some(match (labels.next(), labels.next()) {
        (None, _) => "No label tells them from the Ready nodes.".to_owned(),
        (Some(one), None) => format!("All of them have {one}; no Ready node has it."),
        (Some(one), Some(two)) => {
            format!("All of them have {one} and {two}; no Ready node has either.")
        }
    })
}

/// Says what the nodes that failed together with this one have in common.
pub fn together(survey: &Survey<'_>, node: &str) -> Option<String> {
    let mut groups = survey.together.iter();
    let (_, names) = groups.find(|(_, names)| names.contains(&node))?;
    in_common(survey, names)
}

/// Says for how long nodes are silent or NotReady; of several that failed together, since when.
fn time(
    survey: &Survey<'_>,
    nodes: &[&NodeView<'_>],
    since: impl Fn(&NodeView<'_>) -> Option<Timestamp>,
) -> Option<String> {
    let times = nodes.iter().filter_map(|node| since(node));
    let (first, last) = times.minmax().into_option()?;
    let is_together = last.duration_since(first) <= TOGETHER;
    let time = about(survey.now.duration_since(first));
    Some(match nodes.len() {
        1 => format!("for {time}"),
        2 if is_together => format!("since {}, both", day(survey, first)),
        _ if is_together => format!("since {}, all {}", day(survey, first), nodes.len()),
        _ => format!("for up to {time}"),
    })
}

/// Says why verdicts may be wrong, and that no pod was judged.
pub fn notes(survey: &Survey<'_>) -> Vec<String> {
    let none = survey
        .unmatched
        .iter()
        .map(|why| format!("No pod was judged: {why}."));
    survey
        .incomplete
        .iter()
        .map(ToString::to_string)
        .chain(none)
        .collect()
}

/// Says what no run deletes, and why.
pub fn held(survey: &Survey<'_>) -> Vec<String> {
    let mut texts = Vec::from_iter(survey.hold.map(|limit| match limit {
        Limit::MassOutage(state) => {
            format!(
                "Nothing is deleted: {state}. Network, power and the control plane are possible."
            )
        }
        Limit::Unread(what) => format!("Nothing is deleted, because this is not known: {what}."),
        Limit::FailedTogether { .. } | Limit::NoRoom(_) | Limit::OverCap(_) => {
            format!("Nothing is deleted: {}.", limit.state())
        }
    }));
    texts.extend(
        survey
            .zones
            .iter()
            .map(|(zone, limit)| format!("Nothing is deleted in zone {zone}: {}.", limit.state())),
    );
    texts.extend(survey.together.iter().map(|(limit, nodes)| {
        let names = match range(nodes) {
            Some(range) => range,
            None => listed(nodes, NAMED),
        };
        match limit {
            Limit::Unread(what) => {
                format!("No run deletes pods of {names}, because this is not known: {what}.")
            }
            _ => format!(
                "No run deletes pods of {names}: {}.{} A switch, a rack and a host are possible.",
                limit.state(),
                prefixed(" ", in_common(survey, nodes))
            ),
        }
    }));
    let lacks_room = survey.with_code(ReasonCode::NoRoom);
    texts.extend(lacks_room.into_iter().filter_map(|pods| {
        let state = pods.0[0].judged.limit.as_ref()?.state();
        Some(format!("No run deletes {pods}: {state}."))
    }));
    let members = survey.with_code(ReasonCode::EtcdMember);
    texts.extend(members.into_iter().flat_map(|pods| {
        let quorums = pods.0.iter().filter_map(|pod| pod.node?.quorum.as_deref());
        let said = quorums.unique().map(|it| {
            let (names, stay) = (listed(&it.not_ready, NAMES), pods.0.len());
            format!(
                "{it}, and the API server writes: {}. NotReady: {names}. Pods that stay: {stay}.",
                it.says()
            )
        });
        said.collect_vec()
    }));
    texts
}

/// Counts pods by what becomes of them.
fn by_effect(pods: &[&PodView<'_>]) -> String {
    let effects = Effect::ALL.map(|effect| {
        let count = pods.iter().filter(|pod| pod.effect == effect).count();
        let [one, many] = match effect {
            Effect::Restart => ["restarts elsewhere", "restart elsewhere"],
            Effect::Leftover => ["is a leftover", "are leftovers"],
            Effect::GoneForGood => ["is gone for good", "are gone for good"],
            Effect::UpToOwner => ["is up to its owner", "are up to their owners"],
        };
        match count {
            0 => None,
            1 if pods.len() == 1 => Some(one.to_owned()),
            count if count == pods.len() => Some(effect.to_string()),
            count => Some(counted(count, one, many)),
        }
    });
    let effects = effects.into_iter().flatten().join(", ");
    format!("{} ({effects})", counted(pods.len(), "pod", "pods"))
}

/// Says what was deleted, by earlier runs and now.
pub fn done<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let earlier = survey.remembered.iter();
    let earlier = earlier.filter(|node| node.now.state.may_be_down() || node.needs_you());
    let earlier = earlier.collect_vec();
    let outcome = |code| survey.select(|pod| pod.outcome_code() == Some(code));
    let now = outcome(OutcomeCode::Deleted).map(|pods| {
        let mut all = pods.0.iter();
        let free = if all.any(|pod| pod.second_writer == SecondWriter::AfterSixMinutes) {
            " Their volumes are free up to six minutes later."
        } else {
            ""
        };
        let pods = by_effect(&pods.0);
        if earlier.is_empty() {
            format!("Force-deleted, verified gone: {pods}.{free}")
        } else {
            format!("Now: {pods}, verified gone.{free}")
        }
    });
    let gone = outcome(OutcomeCode::Gone);
    let gone = gone.map(|pods| {
        let them = pods.verb("it", "them");
        format!("Gone before the run came to {them}: {pods}.")
    });
    let sets = earlier.iter().flat_map(|node| &node.sets).collect_vec();
    let all = sets.iter().copied();
    let (back, others) = all.partition::<Vec<&RememberedSet>, _>(|set| set.is_back());
    let others = Some(listed(&others, NAMED)).filter(|others| !others.is_empty());
    let ready = format!(
        "Ready again: {} of {}{}.",
        back.len(),
        counted(sets.len(), "StatefulSet", "StatefulSets"),
        prefixed(", not ", others)
    );
    // Nobody reads the pods of other controllers that wait for the delete.
    let down = earlier.iter().filter(|node| node.now.state.may_be_down());
    let others = down.flat_map(|node| &node.noted.pods).filter(|pod| {
        let of_set = [None, Some("StatefulSet")].contains(&pod.owner_kind.as_deref());
        !of_set && !pod.is_replaced_early()
    });
    let others = listed(&others.collect_vec(), NAMED);
    let unread = (!others.is_empty())
        .then(|| format!("Whether these are Ready again is not known: {others}."));
    let ready = (!sets.is_empty()).then_some(ready);
    let rest = joined([now, gone, ready, unread].into_iter().flatten(), " ");
    let mut texts = earlier.iter().map(|node| done_earlier(survey, node));
    // What one node is about is one paragraph.
    match texts.len() {
        1 => Vec::from_iter(joined(texts.next().into_iter().chain(rest), " ")),
        _ => texts.chain(rest).collect(),
    }
}

/// Says what earlier runs did to a node that is down, or that came back without a reboot, from the history.
fn done_earlier(survey: &Survey<'_>, node: &RememberedNode) -> String {
    let noted = &node.noted;
    let (name, from) = (&noted.node, day(survey, noted.first_reap));
    let state = match node.now.state {
        NodeState::Unread => Some(format!(
            "Whether {name} came back, and was rebooted, is not known: it could not be read{}.",
            prefixed(": ", node.unread.as_ref())
        )),
        NodeState::Gone => Some(format!(
            "The Node object of {name} is gone, which does not show that its machine is off."
        )),
        _ => None,
    };
    let count = noted.pods.len().saturating_add(noted.more);
    if count == 0 {
        let unnamed = format!(
            "Earlier: a run ended while it deleted pods of {name}; which ones is not known (ConfigMap {CONFIG_MAP})."
        );
        return unnamed + &prefixed(" ", state);
    }
    let pods = noted.pods.iter();
    let unsure = pods.filter(|pod| pod.trace != Trace::Gone).count();
    let unsure = (unsure > 0).then(|| format!("{unsure} can still be there"));
    // Nothing else tells of a node that is Ready.
    let source = (!node.now.state.may_be_down()).then(|| format!("from ConfigMap {CONFIG_MAP}"));
    let remark = joined(unsure.into_iter().chain(source), "; ").map(|it| format!("({it})"));
    let when = if noted.first_reap == noted.last_reap {
        format!("at {from}")
    } else {
        format!("from {from} on")
    };
    format!(
        "Earlier: {} of {name} force-deleted {when}{}.{}",
        counted(count, "pod", "pods"),
        prefixed(" ", remark),
        prefixed(" ", state)
    )
}

/// Names pods, each with the Ready pods of its `StatefulSet` (`status.readyReplicas` and `spec.replicas`).
fn with_copies(pods: &Pods<'_>) -> String {
    let is_known = |pod: &&PodView<'_>| pod.judged.pod.copies.is_some();
    let (known, others): (Vec<_>, Vec<_>) = pods.0.iter().copied().partition(is_known);
    let mut ready = [" Ready"].into_iter();
    let known = known.iter().filter_map(|pod| {
        let copies = pod.judged.pod.copies?;
        let ready = ready.next().unwrap_or_default();
        Some(format!("{} ({copies}{ready})", pod.name()))
    });
    let others = joined(others.iter().map(|pod| pod.name()), ", ");
    let others = others.map(|names| format!("{names} (Ready pods not known)"));
    known.chain(others).join(", ")
}

/// Says which data is at risk, by name, the worst first. Each sentence names the field that proves it in a comment.
pub fn data<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let at_risk = |risk| survey.select(|pod| pod.risk(survey) == Some(risk));
    let names = with_copies;
    let plain = |pods: &Pods<'_>| pods.0.iter().map(|pod| pod.name()).join(", ");
    let times = |one: u64, other: u64| u128::from(one) * u128::from(other);
    let least = |pods: &Pods<'_>| {
        let copies = pods.0.iter().filter_map(|pod| pod.judged.pod.copies);
        let least = copies.min_by(|a, b| times(a.ready, b.wanted).cmp(&times(b.ready, a.wanted)));
        prefixed("", least)
    };
    // The boot ID of the node, and the time of its Ready condition.
    let back = survey.came_back().map(|node| {
        let until = node.now.ready_since.map(|at| day(survey, at));
        let until = prefixed(" until about ", until);
        let name = &node.noted.node;
        match node.now.state {
            NodeState::AnotherMachine => format!("Containers of pods that were deleted can still run on the machine that was {name} before, beside their replacements."),
            _ => format!("Containers of pods that were deleted can have run on {name}{until}, beside their replacements."),
        }
    });
    let times = survey.shown().iter();
    let times = times.filter_map(|pod| pod.given_up_until(survey.now));
    let is_given_up = |pod: &PodView<'_>| pod.given_up_until(survey.now).is_some();
    let given_up = times.min().zip(survey.select(is_given_up));
    let others = survey.select(|pod| pod.is_local() && pod.damage == Damage::ManyReady);
    let is_counted = |pod: &PodView<'_>| {
        let is_said = pod.risk(survey).is_some();
        let is_left = pod.fate == Verdict::Leave && !pod.hangs();
        !is_left && !is_said && pod.effect != Effect::Leftover
    };
    let few = |pod: &PodView<'_>| {
        is_counted(pod) && [Damage::NoOtherReady, Damage::FewReady].contains(&pod.damage)
    };
    let is_unread = |pod: &PodView<'_>| {
        let claims = pod.judged.pod.claim_names.as_ref();
        let uses_claims = claims.map_or(true, |all| !all.is_empty());
        let is_live = pod.risk(survey) == Some(Risk::StillRuns);
        let is_left = pod.fate == Verdict::Leave || is_live;
        pod.is_on_dead_machine() && !is_left && pod.judged.storage.is_none() && uses_claims
    };
    let unread_set = |pod: &PodView<'_>| {
        let of_set = pod.judged.pod.stateful_set().is_some();
        is_counted(pod) && of_set && pod.damage == Damage::NotKnown
    };
    let texts = [
        joined(back, " "),
        // Counts of pods are status.readyReplicas and spec.replicas.
        survey.select(|pod| pod.is_local() && pod.damage != Damage::ManyReady).map(|pods| format!("On the disk of {}: {}.", pods.nodes(), names(&pods))),
        others.map(|pods| format!("On the disk of {}, at least {} Ready each: {}. Only you know whether the others have a copy.", pods.nodes(), least(&pods), plain(&pods))),
        at_risk(Risk::Attached).map(|pods| format!("Attached to {}: {}.", pods.nodes(), names(&pods))),
        at_risk(Risk::NotKnown).zip(survey.unread_attachments).map(|(pods, why)| format!("Not known: the VolumeAttachments of {} were not read ({why}). Assume that the volumes of these pods move: {}.", pods.nodes(), names(&pods))),
        at_risk(Risk::Shared).map(|pods| format!("On storage that nothing attaches to {}: {}.", pods.nodes(), names(&pods))),
        // The driver's attachRequired, or the kind of the volume.
        survey.select(|pod| pod.reason.asks.contains(&ReasonCode::SharedDisk)).map(|pods| format!("Two machines can write to one disk if {} still runs: {}.", pods.nodes(), names(&pods))),
        at_risk(Risk::Unverified).map(|pods| format!("Whether data is lost with {} or with the pod is not known: {}.", pods.nodes(), names(&pods))),
        // A PVC's deletionTimestamp, after NotReady-since.
        given_up.map(|(until, pods)| format!("The PVC of {pods} was deleted: set its volume to Retain before {} if you want the data.", clock(until))),
        at_risk(Risk::StillRuns).map(|pods| format!("{} can still run on {}.", names(&pods), pods.nodes())),
        survey.select(few).map(|pods| format!("At most half Ready: {}.", names(&pods))),
        survey.select(unread_set).map(|pods| format!("Whether other pods are Ready is not known: {}.", plain(&pods))),
        survey.select(is_unread).map(|pods| format!("Not known: the PVCs of these pods were not read: {pods}.")),
    ];
    let mut texts = texts.into_iter().flatten().collect_vec();
    // A question reads no history.
    if texts.is_empty() && survey.asked.is_none() {
        let others = if survey.settings.namespaces.selects_all() {
            ""
        } else {
            " in the namespaces that were selected. Others were not looked at"
        };
        // No run deletes or has deleted what can have two writers.
        let is_calm = |node: &NodeView<'_>| {
            !node.was_acted_on && !node.was_acted_on_earlier && node.volumes == Volumes::Stay
        };
        let calm = survey
            .select(|pod| pod.is_on_dead_machine() && survey.node_of(pod).is_some_and(is_calm));
        texts.extend(calm.map(|pods| {
            format!(
                "None on {}, and no volume that another node can then mount{others}.",
                pods.nodes()
            )
        }));
    }
    texts
}

/// Says what happens by itself, and when.
pub fn next<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let waiting = survey
        .shown()
        .iter()
        .filter(|pod| pod.judged.limit.is_some());
    let waiting = waiting.count();
    let due = counted(waiting, "pod is due", "pods are due");
    let limit = survey
        .limit()
        .filter(|_| survey.asked.is_none() || waiting > 0);
    let by_limit = limit.map(|limit| match limit {
        Limit::MassOutage(_) => format!(
            "Nothing by itself while {}% of the nodes are down; {due}. Below that, a run deletes, unless nodes failed together.",
            survey.settings.limits.max_not_ready_percent
        ),
        Limit::FailedTogether { .. } => format!("Nothing by itself; {due}. A run deletes once few enough of these nodes are NotReady, or on those that you confirm off."),
        Limit::NoRoom(_) => format!("Once a node has room, a run deletes; {due}."),
        Limit::Unread(_) | Limit::OverCap(_) => "The next run looks again.".to_owned(),
    });
    let who = match survey.settings.task.mode() {
        Mode::Delete => "a run",
        Mode::DryRun | Mode::Snapshot => "a run with these options",
    };
    let planned =
        survey.select(|pod| pod.verdict() == Verdict::Reap && pod.from.is_none() && !survey.acted);
    let planned = planned.map(|pods| match survey.settings.task.mode() {
        Mode::Delete => format!("The next run force-deletes {}.", by_effect(&pods.0)),
        _ => format!(
            "With these options, a run force-deletes {}.",
            by_effect(&pods.0)
        ),
    });
    let later = survey.select(|pod| pod.fate == Verdict::Reap && pod.from.is_some());
    let later = later.map(|pods| {
        let by_time = pods.0.iter().copied().into_group_map_by(|pod| pod.from);
        let times = by_time.into_iter().sorted_by_key(|(from, _)| *from);
        let mut times = times.map(|(from, pods)| (prefixed("", from.map(clock)), by_effect(&pods)));
        let first = times.next();
        let first = first.map(|(from, pods)| format!("From {from} on, {who} force-deletes {pods}"));
        let first = prefixed("", first);
        let rest = times.map(|(from, pods)| format!(", from {from} on {pods}"));
        let rest = rest.collect::<String>();
        let evicts = pods.0.iter().filter(|pod| !pod.is_evicted).count();
        let evicts =
            (evicts > 0).then(|| counted(evicts, "is not evicted yet", "are not evicted yet"));
        let evicts = prefixed("; of these, ", evicts);
        let nodes = pods.nodes().0.join(" or ");
        format!("{first}{rest}{evicts}, unless the kubelet of {nodes} reports again.")
    });
    let ahead = |how: SecondWriter| {
        survey.select(|pod| {
            let is_done = pod.trace.is_some_and(Trace::may_be_gone);
            pod.moves_a_volume() && !is_done && pod.second_writer == how
        })
    };
    let late = ahead(SecondWriter::AfterSixMinutes);
    let late = late.map(|pods| {
        format!("Six minutes after that, other nodes can attach the volumes of {pods}.")
    });
    let at_once = ahead(SecondWriter::AtTheDelete);
    let at_once = at_once
        .map(|pods| format!("At the delete, other nodes can write to the volumes of {pods}."));
    let moves = (planned.is_some() || later.is_some()).then_some([late, at_once]);
    let over_cap = survey.with_code(ReasonCode::OverCap);
    // A sign of life that is older than two minutes ends, if nothing follows.
    let is_alive = |pod: &PodView<'_>| pod.code() == ReasonCode::KubeletAlive;
    let ends = |pod: &PodView<'_>| pod.judged.reaped_from().filter(|_| is_alive(pod));
    let end = survey.shown().iter().filter_map(ends).min();
    let ending = survey.select(|pod| ends(pod).is_some());
    let texts = [by_limit, planned, later];
    let texts = texts
        .into_iter()
        .flatten()
        .chain(moves.into_iter().flatten().flatten());
    let mut texts = texts
        .chain(over_cap.map(|pods| {
            format!(
                "Later runs delete {} above --max-deletes.",
                counted(pods.0.len(), "pod", "pods")
            )
        }))
        .chain(
            survey
                .select(|pod| ends(pod).is_none() && is_alive(pod))
                .map(|pods| {
                    format!("No run deletes {pods} while the machine gives a sign of life.")
                }),
        )
        .chain(end.zip(ending).map(|(end, pods)| {
            let (nodes, end) = (pods.nodes(), clock(end));
            format!("Unless more is heard of {nodes} by {end}, {who} deletes {pods} from then on.")
        }))
        .collect_vec();
    if texts.is_empty() {
        let needs_you = survey.select(|pod| pod.fate == Verdict::Manual);
        let said = [
            needs_you.map(|_| "No run deletes the pods that need you.".to_owned()),
            survey.select(|pod| pod.returns).map(|pods| {
                format!(
                    "If {} comes back, {pods} {} with {} data.",
                    pods.nodes(),
                    pods.verb("restarts", "restart"),
                    pods.verb("its", "their")
                )
            }),
            survey.with_code(ReasonCode::KosmosLeaf).map(|pods| {
                format!("If the link comes back, Kosmos stops what runs there: {pods}.")
            }),
        ];
        texts.extend(joined(said.into_iter().flatten(), " "));
    }
    texts
}

/// Lists facts to know besides the verdicts, because silence reads as an all-clear. None changes the exit code.
pub fn notices(survey: &Survey<'_>) -> Vec<String> {
    let not_evicted = survey
        .nodes
        .iter()
        .filter(|node| !node.not_evicted.is_empty());
    let not_evicted = not_evicted.map(|node| {
        let pods = node.not_evicted.iter();
        let names = pods.map(|pod| full_name(pod) + &prefixed(" of ", pod.workload.as_ref()));
        format!(
            "Not evicted from {}: {}. They tolerate a dead node, or Kubernetes evicts nothing: many nodes are NotReady, or kube-controller-manager does not work. To move one, delete it without --force.",
            node.name,
            listed(&names.collect_vec(), NAMES)
        )
    });
    let rebooted = |node: &&RememberedNode| node.now.state == NodeState::BackRebooted;
    let returned = survey.remembered.iter().filter(rebooted).map(|node| {
        let at = node.now.ready_since.map(|at| day(survey, at));
        let at = prefixed(" at ", at);
        format!("{} was rebooted before it came back{at}.", node.noted.node)
    });
    let unread = survey.unread_history.map(str::to_owned);
    let more = survey.more_waiting;
    let waiting = (more > 0).then(|| {
        format!(
            "What {} for is not known: at most 100 pods are looked at.",
            counted(
                more,
                "more pod that has not started waits",
                "more pods that have not started wait"
            )
        )
    });
    let all = not_evicted.chain(returned).chain(unread);
    all.chain(waiting).collect()
}

/// Spells a moment, with its date on another day than the run's.
pub fn day(survey: &Survey<'_>, at: Timestamp) -> String {
    let date = |at: Timestamp| at.strftime("%F ").to_string();
    let of_day = date(at);
    let other = if of_day == date(survey.now) {
        ""
    } else {
        &of_day
    };
    other.to_owned() + &clock(at)
}
