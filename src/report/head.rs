//! The head: what is wrong, what was done, which data is at risk, and what happens by itself.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    NAMED, NAMES,
    advice::{Advice, Pods, clock},
    survey::{Damage, NodeView, PodView, Risk, SecondWriter, State, Survey, Volumes, full_name},
};
use crate::{
    history::{CONFIG_MAP, NodeState, RememberedNode},
    judge::{Effect, Limit, ReasonCode, TOGETHER, Verdict, kubelet_reports, reported},
    outcome::{OutcomeCode, Trace},
    settings::Mode,
    words::{Foreign, about, counted, in_turn, joined, listed, prefixed},
};

/// The most bytes of names that a paragraph surely shows. A longer one can be cut, so that its namespaces come in turn.
const SHORT: usize = 200;

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

/// Returns by when somebody has to act, so that no second machine can write to the volumes of these nodes. It is now if the next
/// run moves one.
pub fn deadline(survey: &Survey<'_>, nodes: &[&NodeView<'_>]) -> Option<Timestamp> {
    nodes
        .iter()
        .filter(|node| node.is_suspect() && node.held.is_none())
        .filter_map(|node| match node.volumes {
            Volumes::MoveAfterRun(None) => Some(survey.now).filter(|_| !survey.acted),
            Volumes::MoveAt(at) | Volumes::MoveAfterRun(Some(at)) => Some(at),
            _ => None,
        })
        .filter(|at| *at >= survey.now)
        .min()
}

/// Says what is down, and by when to act, or that nothing is urgent.
pub fn headline(survey: &Survey<'_>, advised: &[Advice<'_>]) -> String {
    let mut said = Vec::new();
    let supposed = joined(survey.settings.task.suppose_dead(), ", ");
    said.extend(
        supposed
            .as_ref()
            .map(|names| format!("IF {names} HAD DIED:")),
    );
    for node in survey.history.needing_you() {
        let name = &node.noted.node;
        said.push(match node.now.state {
            NodeState::AnotherMachine => format!("ANOTHER MACHINE HAS THE NAME {name}."),
            _ => format!(
                "{name} CAME BACK{}, NOT REBOOTED.",
                ready_since(survey, node, " AT ")
            ),
        });
    }
    said.extend(survey.select(PodView::hangs).map(|pods| {
        let hang = pods.verb("HANGS ON", "HANG ON");
        let nodes = pods.nodes();
        match nodes.len() {
            1..=NAMED => format!("{pods} {hang} {nodes}."),
            many => format!("{pods} {hang} {many} READY NODES."),
        }
    }));
    let down = survey.down();
    said.extend(down.iter().map(|(state, nodes)| says(survey, state, nodes)));
    let not_ready = down
        .iter()
        .filter(|(state, _)| ***state != State::Gone)
        .map(|(_, nodes)| nodes.len())
        .sum::<usize>();
    said.push(
        match (not_ready, survey.node_count.saturating_sub(not_ready)) {
            _ if supposed.is_some() => "Pods of other nodes were not judged.".to_owned(),
            (0, 1) => "THE ONLY NODE IS READY.".to_owned(),
            (0, all) => format!("ALL {all} NODES ARE READY."),
            (_, 0) => "No other node is Ready.".to_owned(),
            (_, ready) => counted(ready, "other node is Ready.", "other nodes are Ready."),
        },
    );

    let is_seen = survey.terminating().next().is_some();
    if !is_seen && not_ready == 0 && !survey.settings.all {
        said.push("Pods on Ready nodes were not looked at (--all looks).".to_owned());
    } else if !is_seen && survey.unmatched.is_none() {
        let read = if survey.errors.is_empty() && survey.unseen.is_empty() {
            ""
        } else {
            " that was read"
        };
        said.push(format!(
            "No pod{read} is Terminating{}.",
            in_selected(survey)
        ));
    }
    let nodes = survey.nodes.iter().collect_vec();
    let has_moved = nodes.iter().any(|node| node.may_have_moved());
    let says_when =
        survey.incomplete.is_none() && (has_moved || deadline(survey, &nodes).is_some());
    if advised.iter().any(|advice| advice.press.is_some()) {
        said.extend((!says_when).then(|| "ACT NOW.".to_owned()));
    } else if !advised.is_empty() || is_seen && not_ready > 0 && survey.errors.is_empty() {
        said.push("NOTHING IS URGENT.".to_owned());
    }
    said.join(" ")
}

/// Says that a filter left out namespaces.
fn in_selected(survey: &Survey<'_>) -> &'static str {
    if survey.settings.namespaces.selects_all() {
        ""
    } else {
        " in the namespaces that were selected"
    }
}

/// Says since when a node that came back is Ready.
fn ready_since(survey: &Survey<'_>, node: &RememberedNode, before: &str) -> String {
    prefixed(before, node.now.ready_since.map(|at| day(survey, at)))
}

/// Says in which state these nodes are.
pub fn says(survey: &Survey<'_>, state: &State<'_>, nodes: &[&NodeView<'_>]) -> String {
    let now = survey.now;
    let since = prefixed(" ", time(survey, nodes, |node| node.since));
    let silent = time(survey, nodes, |node| Some(node.last_heard.as_ref()?.at))
        .map_or_else(|| since.clone(), |time| format!(", silent {time}"));
    let before = deadline(survey, nodes).map(|at| {
        if at != now {
            return format!("ACT BEFORE {}", clock(at));
        }
        let count = nodes
            .iter()
            .flat_map(|node| survey.pods_on(node))
            .filter(|pod| pod.fate == Verdict::Reap && pod.from.is_none_or(|from| from <= now))
            .map(|pod| 1 + survey.owned_by(pod.facts).map_or(0, <[_]>::len))
            .sum();
        let due = counted(count, "POD", "PODS");
        format!("ACT NOW, THE NEXT RUN DELETES {due}")
    });
    let has_moved = nodes.iter().any(|node| node.may_have_moved());
    let can_write = has_moved.then(|| "ACT NOW, TWO MACHINES CAN WRITE".to_owned());
    let act = prefixed(": ", before.or(can_write));
    let (who, are) = match nodes {
        [node] => (node.name.to_owned(), "IS"),
        few if few.len() <= NAMED => (few.iter().map(|node| node.name).join(", "), "ARE"),
        many => {
            let who = range(&many.iter().map(|node| node.name).collect_vec())
                .unwrap_or_else(|| format!("{} OF {} NODES", many.len(), survey.node_count));
            (who, "ARE")
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
            let first = nodes[0].signs_of_life.first();
            let sign = prefixed(": ", first.map(|sign| reported(sign, now)));
            let reports = kubelet_reports(*fault);
            format!("{who} {are} NOT READY BUT ALIVE{sign}.{reports}")
        }
        State::Kosmos(cluster) => {
            let whose = cluster.map_or(who, |cluster| format!("CLUSTER {cluster}"));
            format!("LINK TO {whose} IS CUT{since}.")
        }
        State::Leaf => format!("LEAF NODE {who} {are} NOT READY{since}."),
        State::Gone if nodes.len() == 1 => format!("{who} NO LONGER EXISTS."),
        State::Gone => format!("{who} NO LONGER EXIST."),
    }
}

/// Names many nodes as a range; `None` if they are few, or if more than a number tells their names apart, or a number
/// between the first and the last is missing.
fn range(names: &[&str]) -> Option<String> {
    let (first, last) = (names.first()?, names.last()?);
    let prefix = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let start = first[prefix.len()..].parse::<u32>().ok()?;
    let is_range = names.len() > NAMED
        && names
            .iter()
            .zip(u64::from(start)..)
            .all(|(name, number)| name.strip_prefix(prefix).map(str::parse) == Some(Ok(number)));
    is_range.then(|| format!("{first} to {last} ({} nodes)", names.len()))
}

/// Says which labels tell nodes that failed from those that are Ready: at most two of those that each of them has and no
/// Ready node has. `None` if not all nodes were read.
fn in_common(survey: &Survey<'_>, names: &[&str]) -> Option<String> {
    let of_ready = survey.labels_of_ready?;
    let names = names.iter().collect::<BTreeSet<_>>();
    let mut nodes = survey
        .nodes
        .iter()
        .filter(|node| names.contains(&node.name));
    let mut of_all = nodes.next()?.known?.labels.clone();
    for node in nodes {
        let has = &node.known?.labels;
        of_all.retain(|key, value| has.get(key) == Some(value));
    }
    let labels = of_all
        .into_iter()
        .filter(|label| !of_ready.contains(label))
        .sorted_by_key(|(key, _)| !key.starts_with("topology."))
        // The zone has an old label, too.
        .unique_by(|(_, value)| value.clone())
        .take(2)
        .map(|(key, value)| {
            let [key, value] = [key, value].map(Foreign::<60>::from);
            format!("{key}={value}")
        });
    Some(match joined(labels, " and ") {
        None => "No label tells them from the Ready nodes.".to_owned(),
        Some(labels) => format!("All of them, and no Ready node, have {labels}."),
    })
}

/// Says what the nodes that failed together with this one have in common.
pub fn together(survey: &Survey<'_>, node: &str) -> Option<String> {
    let (_, names) = survey
        .together
        .iter()
        .find(|(_, names)| names.contains(&node))?;
    in_common(survey, names)
}

/// Says for how long nodes are silent or NotReady; of several that failed together, since when.
fn time(
    survey: &Survey<'_>,
    nodes: &[&NodeView<'_>],
    since: impl Fn(&NodeView<'_>) -> Option<Timestamp>,
) -> Option<String> {
    let (first, last) = nodes
        .iter()
        .filter_map(|node| since(node))
        .minmax()
        .into_option()?;
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
        .as_ref()
        .map(|why| format!("No pod was judged: {why}."));
    survey
        .incomplete
        .map(str::to_owned)
        .into_iter()
        .chain(none)
        .collect()
}

/// Says what no run deletes, and why.
pub fn held(survey: &Survey<'_>) -> Vec<String> {
    let why = |limit: &Limit| match limit {
        Limit::Unread(what) => format!("this is not known: {what}"),
        limit => limit.state(),
    };
    let mut texts = Vec::new();
    if let Some(limit) = survey.hold {
        let possible = match limit {
            Limit::MassOutage(_) => " The cause can be the network, power or the control plane.",
            _ => "",
        };
        texts.push(format!("Nothing is deleted: {}.{possible}", why(limit)));
    }
    for (zone, limit) in survey.zones {
        texts.push(format!(
            "Nothing is deleted in zone {zone}: {}.",
            why(limit)
        ));
    }
    for (limit, nodes) in &survey.together {
        let names = range(nodes).unwrap_or_else(|| listed(nodes, NAMED));
        let mut text = format!("No run deletes pods of {names}: {}.", why(limit));
        if let Limit::FailedTogether { .. } = limit {
            text += &prefixed(" ", in_common(survey, nodes));
            text += " The cause can be a switch, a rack or a host.";
        }
        texts.push(text);
    }
    if let Some(pods) = survey.with_code(ReasonCode::NoRoom)
        && let Some(limit) = &pods[0].judged.limit
    {
        texts.push(format!("No run deletes {pods}: {}.", why(limit)));
    }
    let members = survey.with_code(ReasonCode::EtcdMember).unwrap_or_default();
    for quorum in members
        .iter()
        .filter_map(|pod| pod.node?.quorum.as_deref())
        .unique()
    {
        let names = listed(&quorum.not_ready, NAMES);
        let says = quorum.says();
        texts.push(format!(
            "{quorum}, and the API server writes: {says}. NotReady: {names}."
        ));
    }
    texts
}

/// Counts pods by what becomes of them.
fn by_effect(pods: &[&PodView<'_>]) -> String {
    let effects = Effect::ALL
        .map(|effect| {
            let count = pods.iter().filter(|pod| pod.effect == effect).count();
            let [one, many] = match effect {
                Effect::Restart => ["restarts elsewhere", "restart elsewhere"],
                Effect::Leftover => ["is a leftover", "are leftovers"],
                Effect::GoneForGood => ["is gone for good", "are gone for good"],
                Effect::UpToOwner => ["is up to its owner", "are up to their owners"],
            };
            match count {
                0 => None,
                1 if pods.len() == 1 => Some(one.trim_start_matches("is ").to_owned()),
                count if count == pods.len() => Some(effect.to_string()),
                count => Some(counted(count, one, many)),
            }
        })
        .into_iter()
        .flatten()
        .join(", ");
    format!("{} ({effects})", counted(pods.len(), "pod", "pods"))
}

/// Says what was deleted, by earlier runs and now.
pub fn done<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let earlier = survey
        .history
        .nodes
        .iter()
        .filter(|node| node.now.state.may_be_down() || node.needs_you())
        .collect_vec();
    let mut texts = earlier
        .iter()
        .map(|node| done_earlier(survey, node))
        .collect_vec();
    texts.extend(
        survey
            .select(|pod| pod.outcome_code() == Some(OutcomeCode::Deleted))
            .map(|pods| format!("Force-deleted now, verified gone: {}.", by_effect(&pods))),
    );
    let sets = earlier.iter().flat_map(|node| &node.sets).collect_vec();
    if !sets.is_empty() {
        let others = sets.iter().filter(|set| !set.is_back()).collect_vec();
        let named = in_turn(others.clone(), NAMED, |set| Some(&set.namespace));
        let not = Some(listed(&named, NAMED)).filter(|_| !others.is_empty());
        texts.push(format!(
            "Ready again: {} of {}{}.",
            sets.len() - others.len(),
            counted(sets.len(), "StatefulSet", "StatefulSets"),
            prefixed(", not ", not)
        ));
    }
    // Nobody reads the pods of other controllers that wait for the delete.
    let unread = earlier
        .iter()
        .filter(|node| node.now.state.may_be_down())
        .flat_map(|node| &node.noted.pods)
        .filter(|pod| {
            let of_set = [None, Some("StatefulSet")].contains(&pod.owner_kind.as_deref());
            !of_set && !pod.is_replaced_early()
        })
        .collect_vec();
    if !unread.is_empty() {
        let names = listed(&in_turn(unread, NAMED, |pod| Some(&pod.namespace)), NAMED);
        texts.push(format!(
            "Whether these are Ready again is not known: {names}."
        ));
    }
    // What one node is about is one paragraph.
    match earlier.len() {
        1 => vec![texts.join(" ")],
        _ => texts,
    }
}

/// Says what earlier runs did to a node that is down, or whose return needs you, from the history.
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
    let unsure = noted
        .pods
        .iter()
        .filter(|pod| pod.trace != Trace::Gone)
        .count();
    let still_there = (unsure > 0).then(|| format!("{unsure} can still be there"));
    // Nothing else tells of a node that is Ready.
    let source = (!node.now.state.may_be_down()).then(|| format!("from ConfigMap {CONFIG_MAP}"));
    let remark = joined(still_there.into_iter().chain(source), "; ").map(|it| format!("({it})"));
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

/// Names pods with the Ready pods of their `StatefulSets` (`status.readyReplicas` and `spec.replicas`). Many of one workload
/// are counted if `may_count`.
fn with_copies(pods: &[&PodView<'_>], may_count: bool) -> String {
    pods.iter()
        .copied()
        .chunk_by(|pod| pod.facts.copies)
        .into_iter()
        .map(|(copies, pods)| {
            let pods = Pods(pods.collect());
            let names = match &pods.workloads()[..] {
                [one] if may_count && pods.len() > NAMED => {
                    format!("{} pods of {one}", pods.len())
                }
                _ => pods.iter().map(|pod| pod.name()).join(", "),
            };
            match copies {
                Some(copies) if pods.len() > 1 => format!("{names} ({copies} pods Ready each)"),
                Some(copies) => format!("{names} ({copies} pods Ready)"),
                None => format!("{names} (Ready pods not known)"),
            }
        })
        .join(", ")
}

/// Names the pods of a node that earlier runs deleted, whose volumes that machine and another one can write to, with the kinds of
/// their owners, from the history; `None` if nobody has to see that machine off.
fn deleted_with_volumes(survey: &Survey<'_>, node: &RememberedNode) -> Option<String> {
    let name = &node.noted.node;
    let is_down = node.now.state.may_be_down();
    survey
        .node(name)
        .filter(|node| is_down && node.is_suspect())?;
    let pods = node
        .noted
        .pods
        .iter()
        .filter(|pod| pod.moves_a_volume())
        .collect();
    // A paragraph is cut.
    let named = in_turn(pods, 0, |pod| Some(&pod.namespace))
        .into_iter()
        .map(|pod| {
            let kind = pod.owner_kind.as_ref().map(|kind| format!("({kind})"));
            format!("{pod}{}", prefixed(" ", kind))
        });
    let names = joined(named, ", ")?;
    Some(format!(
        "Volumes that {name} and another node can write to, of pods deleted earlier: {names}."
    ))
}

/// Says which data is at risk, by name, the worst first.
pub fn data<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let mut texts = Vec::new();
    // The boot ID of the node, and the time of its Ready condition.
    for node in survey.history.needing_you() {
        let (name, until) = (&node.noted.node, ready_since(survey, node, " until about "));
        let ran = match node.now.state {
            NodeState::AnotherMachine => format!("still run on the machine that was {name} before"),
            _ => format!("have run on {name}{until}"),
        };
        texts.push(format!(
            "Containers of pods that were deleted can {ran}, beside their replacements."
        ));
    }
    texts.extend(
        survey
            .history
            .nodes
            .iter()
            .filter_map(|node| deleted_with_volumes(survey, node)),
    );
    let mut by_risk = BTreeMap::<Risk, Vec<&PodView<'_>>>::new();
    for pod in survey.shown() {
        if let Some(risk) = pod.risk(survey) {
            by_risk.entry(risk).or_default().push(pod);
        }
    }
    texts.extend(
        by_risk
            .into_iter()
            .map(|(risk, pods)| at_risk(survey, risk, pods)),
    );
    // A question reads no history.
    if texts.is_empty() && survey.asked.is_none() {
        let others = match in_selected(survey) {
            "" => String::new(),
            selected => format!("{selected}. Others were not looked at"),
        };
        // No run deletes or has deleted what can have two writers.
        let is_calm = |node: &NodeView<'_>| {
            node.volumes == Volumes::Stay
                && !node.was_acted_on
                && !node.was_acted_on_earlier
                && survey
                    .pods_on(node)
                    .all(|pod| pod.code() != ReasonCode::FactsUnread)
        };
        let calm = survey
            .select(|pod| pod.is_on_dead_machine() && survey.node_of(pod).is_some_and(is_calm));
        texts.extend(calm.map(|pods| {
            let nodes = pods.nodes();
            format!("None on {nodes}, and no volume that another node can mount{others}.")
        }));
    }
    texts
}

/// Names nodes, each with its pods, or many nodes with all of them.
fn by_node(pods: &Pods<'_>, and: &str, may_count: bool) -> String {
    let nodes = pods.nodes();
    let names = |pods: &[&PodView<'_>]| with_copies(pods, may_count);
    if nodes.len() > NAMED {
        return format!("{nodes}: {}", names(pods));
    }
    let of_node = nodes.iter().map(|node| {
        let here = pods
            .iter()
            .copied()
            .filter(|pod| pod.facts.node.as_deref() == Some(*node));
        format!("{node}: {}", names(&here.collect_vec()))
    });
    of_node.collect_vec().join(and)
}

/// Says what can happen to the data of these pods. Each variant of a risk names the field that proves it.
fn at_risk<'a>(survey: &Survey<'_>, risk: Risk, pods: Vec<&'a PodView<'a>>) -> String {
    let moves = [Risk::Attached, Risk::AttachmentsUnread, Risk::Shared].contains(&risk);
    let mut pods = Pods(pods);
    if with_copies(&pods, !moves).len() > SHORT {
        pods.0 = pods.in_turn(0);
    }
    let names = with_copies(&pods, !moves);
    let nodes = pods.nodes();
    match risk {
        Risk::OnDisk => {
            let names = by_node(&pods, " · of ", true);
            let copy = if pods.iter().any(|pod| pod.damage == Damage::ManyReady) {
                " Only you know whether the others have a copy."
            } else {
                ""
            };
            format!("On the disk of {names}.{copy}")
        }
        Risk::Attached => format!("Attached to {}.", by_node(&pods, " · to ", false)),
        Risk::AttachmentsUnread => format!(
            "Not known: the VolumeAttachments of {nodes} were not read{}. Assume that the volumes of these pods move: {names}.",
            prefixed(
                " (",
                survey.unread_attachments.map(|cause| format!("{cause})"))
            )
        ),
        Risk::Shared => format!("On storage that nothing attaches to {nodes}: {names}."),
        Risk::TwoWriters => {
            format!(
                "{names}: if deleted while {nodes} still runs, two machines can write to one disk."
            )
        }
        Risk::Unverified => {
            format!("Whether data is lost with {nodes} or with the pod is not known: {names}.")
        }
        Risk::GivenUp => {
            let until = pods
                .0
                .iter()
                .filter_map(|pod| pod.given_up_until(survey.now))
                .min();
            format!(
                "The PVC of {names} was deleted: set its volume to Retain{} if you want the data.",
                prefixed(" before ", until.map(clock))
            )
        }
        Risk::Finalizers => {
            let names = pods.iter().map(|pod| pod.name()).collect_vec();
            let names = listed(&names, NAMES);
            format!("The controller of a finalizer can still need {nodes}: {names}.")
        }
        Risk::StillRuns => format!("{names} can still run on {nodes}."),
        Risk::FewReady => format!("None Ready, or at most half: {names}."),
        Risk::SetUnread => {
            let sets = listed(&pods.workloads(), NAMES);
            format!("Whether other pods are Ready is not known: {sets}.")
        }
        Risk::ClaimsUnread => format!("Not known: the PVCs of these pods were not read: {names}."),
    }
}

/// Says what happens by itself, and when.
pub fn next<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let mut texts = Vec::new();
    let held = survey
        .shown()
        .iter()
        .filter(|pod| pod.judged.limit.is_some())
        .count();
    let due = counted(held, "pod is due", "pods are due");
    let all_need_you = survey.shown().iter().all(|pod| pod.fate == Verdict::Manual);
    let says_limit =
        held > 0 || survey.asked.is_none() && (survey.shown().is_empty() || !all_need_you);
    let limit = survey.limit().filter(|_| says_limit);
    texts.extend(limit.map(|limit| match limit {
        Limit::MassOutage(_) => format!(
            "Nothing by itself while {}% of the nodes{} are down; {due}. Below that, {}.",
            survey.settings.limits.max_not_ready_percent,
            if survey.hold.is_some() { "" } else { " of a zone" },
            if survey.limits.iter().any(|limit| limit.code() == ReasonCode::FailedTogether) {
                let most = survey.settings.limits.max_failed_together;
                format!("once at most {most} nodes that failed together are NotReady, a run deletes on these, even if they run")
            } else {
                "a run deletes, even on machines that run".to_owned()
            }
        ),
        Limit::FailedTogether { .. } => format!(
            "Nothing while more than {} of these nodes are NotReady; {due}. After that, a run deletes on the rest of them, even if they run. It also deletes on each node that you confirm off.",
            survey.settings.limits.max_failed_together
        ),
        Limit::NoRoom(_) => format!("Once a node has room, or a taint is gone, a run deletes, even if the machine runs; {due}."),
        Limit::Unread(_) | Limit::OverCap(_) => "The next run looks again.".to_owned(),
    }));
    let who = match survey.settings.task.mode() {
        Mode::Delete => "A run",
        Mode::DryRun | Mode::Snapshot => "With these options, a run",
    };
    let planned = survey.select(|pod| {
        let is_due = pod.verdict() == Verdict::Reap && !survey.acted;
        pod.fate == Verdict::Reap && (pod.from.is_some() || is_due)
    });
    if let Some(pods) = &planned {
        let mut by_time = BTreeMap::<_, Vec<_>>::new();
        for pod in pods.iter() {
            by_time.entry(pod.from).or_default().push(*pod);
        }
        let planned_text = by_time
            .iter()
            .map(|(from, pods)| match from {
                None => by_effect(pods),
                Some(from) => format!("{} from {} on", by_effect(pods), clock(*from)),
            })
            .join(", and ");
        let unevicted = pods.iter().filter(|pod| !pod.is_evicted).count();
        let remark = prefixed(
            "; of these, ",
            (unevicted > 0)
                .then(|| counted(unevicted, "is not evicted yet", "are not evicted yet")),
        );
        let owned = pods
            .iter()
            .filter_map(|pod| survey.owned_by(pod.facts))
            .flatten()
            .collect_vec();
        let with = pods.verb("it goes what it owns", "them goes what they own");
        let owned = prefixed(
            &format!("; with {with}: "),
            Some(listed(&owned, NAMED)).filter(|_| !owned.is_empty()),
        );
        let unless = if pods.iter().any(|pod| pod.from.is_some()) {
            format!(", unless {} heard again", pods.nodes().are())
        } else {
            String::new()
        };
        texts.push(format!(
            "{who} force-deletes {planned_text}{remark}{owned}{unless}."
        ));
        // DATA names them.
        let few = |pods: &Pods<'_>| {
            if pods.len() > NAMED {
                format!("{} pods", pods.len())
            } else {
                pods.to_string()
            }
        };
        let ahead = |how: SecondWriter| {
            survey.select(|pod| {
                let is_done = pod.trace.is_some_and(Trace::may_be_gone);
                pod.moves_a_volume() && !is_done && pod.second_writer == how
            })
        };
        texts.extend(ahead(SecondWriter::AfterSixMinutes).map(|pods| {
            let is_due = pods.iter().any(|pod| pod.from.is_none());
            let after = if is_due { "the next run" } else { "that" };
            format!(
                "Six minutes after {after}, other nodes can attach the volumes of {}.",
                few(&pods)
            )
        }));
        texts.extend(ahead(SecondWriter::AtTheDelete).map(|pods| {
            format!(
                "At the delete, other nodes can write to the volumes of {}.",
                few(&pods)
            )
        }));
    }
    if let Some(pods) = survey.with_code(ReasonCode::OverCap) {
        let count = counted(pods.len(), "pod", "pods");
        texts.push(format!("Later runs delete {count} above --max-deletes."));
    }
    // A sign of life that is older than two minutes ends, if nothing follows.
    let alive = |ends: bool| {
        survey.select(|pod| {
            pod.code() == ReasonCode::KubeletAlive && pod.judged.reaped_from().is_some() == ends
        })
    };
    texts.extend(
        alive(false)
            .map(|pods| format!("No run deletes {pods} while the machine gives a sign of life.")),
    );
    texts.extend(alive(true).map(|pods| {
        let end = pods.iter().filter_map(|pod| pod.judged.reaped_from()).min();
        format!(
            "{who} deletes {pods} from {} on, unless more is heard of {}.",
            prefixed("", end.map(clock)),
            pods.nodes()
        )
    }));
    if texts.is_empty() {
        texts.extend(
            survey
                .select(|pod| pod.fate == Verdict::Manual)
                .map(|_| "No run deletes the pods that need you.".to_owned()),
        );
        // Nobody waits for a machine whose volumes have moved.
        let waiting = survey.select(|pod| {
            let volumes = survey.node_of(pod).map(|node| node.volumes);
            pod.returns && !matches!(volumes, Some(Volumes::MovedAt(_) | Volumes::MoveAt(_)))
        });
        texts.extend(waiting.map(|pods| {
            let restart = pods.verb("restarts with its", "restart with their");
            format!("If {} comes back, {pods} {restart} data.", pods.nodes())
        }));
    }
    texts
}

/// Lists facts to know besides the verdicts, because silence reads as an all-clear. None changes the exit code.
pub fn notices(survey: &Survey<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for node in survey
        .nodes
        .iter()
        .filter(|node| !node.never_evicted.is_empty())
    {
        let names = in_turn(node.never_evicted.clone(), NAMES, |pod| {
            Some(&pod.namespace)
        })
        .into_iter()
        .map(|pod| full_name(pod) + &prefixed(" of ", pod.workload.as_ref()))
        .collect_vec();
        texts.push(format!(
            "Never evicted from {}, since they tolerate a dead node: {}. To move one, delete it without --force.",
            node.name,
            listed(&names, NAMES)
        ));
    }
    for node in &survey.history.nodes {
        if node.now.state == NodeState::BackRebooted {
            let (name, at) = (&node.noted.node, ready_since(survey, node, " at "));
            texts.push(format!("{name} was rebooted before it came back{at}."));
        }
    }
    texts.extend(survey.history.unread.clone());
    if survey.more_waiting > 0 {
        texts.push(format!(
            "Pods that have not started and were not asked what they wait for: {}.",
            survey.more_waiting
        ));
    }
    texts
}

/// Spells a moment, with its date on another day than the run's.
pub fn day(survey: &Survey<'_>, at: Timestamp) -> String {
    let date = |at: Timestamp| at.strftime("%F ").to_string();
    if date(at) == date(survey.now) {
        clock(at)
    } else {
        date(at) + &clock(at)
    }
}
