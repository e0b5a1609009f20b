//! The head: what is wrong, what was done, which data is at risk, and what happens by itself.

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{
    NAMED, NAMES,
    advice::{Pods, clock},
    survey::{Damage, NodeView, PodView, State, Survey, TOGETHER, Volumes, full_name},
};
use crate::{
    facts::NodeFacts,
    history::{CONFIG_MAP, NodeState, RememberedNode},
    judge::{Effect, Limit, ReasonCode, Verdict, kubelet_reports, reported},
    outcome::{OutcomeCode, Trace},
    settings::Mode,
    words::{about, counted, joined, listed, prefixed},
};

impl<'a> Survey<'a> {
    /// Lists the pods of which `is` holds; `None` if there are none.
    pub fn select(&'a self, is: impl Fn(&PodView<'a>) -> bool) -> Option<Pods<'a>> {
        let pods = self.pods.iter().filter(|pod| is(pod)).collect_vec();
        (!pods.is_empty()).then_some(Pods(pods))
    }

    fn with_code(&'a self, code: ReasonCode) -> Option<Pods<'a>> {
        self.select(|pod| pod.code() == code)
    }

    /// Lists the pods that have such a moment, with the first.
    fn select_from(
        &'a self,
        moment: impl Fn(&PodView<'a>) -> Option<Timestamp>,
    ) -> Option<(String, Pods<'a>)> {
        let first = self.pods.iter().filter_map(&moment).min()?;
        Some((clock(first), self.select(|pod| moment(pod).is_some())?))
    }

    /// Lists the pods whose data is, or may be, on their node alone (the affinity of a volume, or a
    /// `hostPath`), by how bad it is that they are down.
    fn local(&'a self, damage: Damage) -> Option<Pods<'a>> {
        self.select(|pod| pod.is_local() && pod.damage == damage)
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
    let needs = survey.select(|pod| pod.verdict() == Verdict::Manual);
    let alone = survey.local(Damage::NoOtherReady);
    let parts = [
        named(false, "down"),
        named(true, "cut off"),
        alone.map(|pods| format!("{} without another Ready", pods.0.len())),
        needs.map(|pods| format!("{} need you", pods.0.len())),
    ];
    let parts = joined(parts.into_iter().flatten(), " · ");
    parts.unwrap_or_else(|| "no pod needs you".to_owned()) + &prefixed(" · ", survey.place)
}

/// Says what is down.
pub fn headline(survey: &Survey<'_>) -> String {
    let supposed = joined(survey.settings.task.suppose_dead(), ", ");
    let only_these = supposed.is_some();
    let supposed = supposed.map(|names| format!("IF {names} HAD DIED:"));
    let mut said = Vec::from_iter(supposed);
    said.extend(survey.came_back().map(|node| {
        let (name, at) = (&node.noted.node, node.now.ready_since.map(day));
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
    if survey.pods.is_empty() && survey.unmatched.is_none() {
        said.push(if !survey.errors.is_empty() {
            "No pod that could be read is stuck.".to_owned()
        } else if survey.settings.namespaces.selects_all() {
            "No pod is stuck.".to_owned()
        } else {
            "No pod is stuck in the namespaces that were selected.".to_owned()
        });
    }
    said.join(" ")
}

/// Says in which state these nodes are.
pub fn says(survey: &Survey<'_>, state: &State<'_>, nodes: &[&NodeView<'_>]) -> String {
    let now = survey.now;
    let since = time(survey, nodes, |node| node.not_ready_since(now));
    let since = prefixed(" ", since);
    let heard = time(survey, nodes, |node| Some(node.last_heard()?.at.min(now)));
    let silent = heard.map_or_else(|| since.clone(), |time| format!(": silent {time}"));
    let (who, are) = match nodes {
        [node] => (node.name.to_owned(), "IS"),
        few if few.len() <= NAMED => (few.iter().map(|node| node.name).join(", "), "ARE"),
        many => (
            format!("{} OF {} NODES", many.len(), survey.node_count),
            "ARE",
        ),
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
        State::Down => format!("{who} {are} DOWN{silent}."),
        State::NotLookedAt => format!("{who} {are} NOT READY{since}."),
        State::Alive(fault) => {
            let signs = nodes[0].known.map(|node| node.signs_of_life(now));
            let signs = signs.unwrap_or_default();
            let sign = prefixed(": ", signs.first().map(|sign| reported(sign, now)));
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

/// Says since when nodes are silent or NotReady, as a duration, and that many failed together.
fn time(
    survey: &Survey<'_>,
    nodes: &[&NodeView<'_>],
    since: impl Fn(&NodeFacts) -> Option<Timestamp>,
) -> Option<String> {
    let times = nodes.iter().filter_map(|node| since(node.known?));
    let (first, last) = times.minmax().into_option()?;
    let (up_to, together) = match last.duration_since(first) {
        spread if spread > TOGETHER => ("up to ", ""),
        _ if nodes.len() > NAMED => ("", ", all within 1 minute"),
        _ => ("", ""),
    };
    let time = about(survey.now.duration_since(first));
    Some(format!("for {up_to}{time}{together}"))
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
        Limit::MassOutage(state) => format!("Nothing is deleted: {state}. That many nodes are rarely dead: look at network, power, API server."),
        Limit::Unread(what) => format!("Nothing is deleted, because this is not known: {what}."),
        Limit::FailedTogether { .. } | Limit::NoRoom(_) | Limit::OverCap(_) => format!("Nothing is deleted: {}.", limit.state()),
    }));
    texts.extend(
        survey
            .zones
            .iter()
            .map(|(zone, limit)| format!("Nothing is deleted in zone {zone}: {}.", limit.state())),
    );
    texts.extend(survey.together.iter().map(|(limit, nodes)| {
        let names = listed(nodes, NAMED);
        match limit {
            Limit::Unread(what) => format!("Nothing is deleted on {names}, because this is not known: {what}."),
            _ => format!("Nothing is deleted on {names}: {}. A switch, a rack or a host may be the cause, and then the machines may run.", limit.state()),
        }
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
fn by_effect(pods: &Pods<'_>) -> String {
    let effects = Effect::ALL.map(|effect| {
        let count = pods.0.iter().filter(|pod| pod.effect == effect).count();
        (count > 0).then(|| format!("{effect} {count}"))
    });
    let effects = effects.into_iter().flatten().join(", ");
    format!("{} ({effects})", pods.0.len())
}

/// Says what was deleted, by earlier runs and now.
pub fn done<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let earlier = survey.remembered.iter();
    let earlier = earlier.filter(|node| node.now.state.may_be_down() || node.needs_you());
    let outcome = |code| survey.select(|pod| pod.outcome_code() == Some(code));
    let deleted = outcome(OutcomeCode::Deleted);
    let gone = outcome(OutcomeCode::Gone);
    earlier
        .flat_map(done_earlier)
        .chain(
            deleted.map(|pods| format!("Force-deleted now, verified gone: {}.", by_effect(&pods))),
        )
        .chain(gone.map(|pods| format!("Gone before the run came to it: {pods}.")))
        .collect()
}

/// Says what earlier runs did to a node that is down, or that came back without a reboot, from the history.
fn done_earlier(
    RememberedNode {
        noted,
        sets,
        now,
        unread,
        ..
    }: &RememberedNode,
) -> Vec<String> {
    let (name, from) = (&noted.node, day(noted.first_reap));
    let state = match now.state {
        NodeState::Unread => Some(format!(
            "Whether {name} came back, and was rebooted, is not known: it could not be read{}.",
            prefixed(": ", unread.as_ref())
        )),
        NodeState::Gone => Some(format!(
            "The Node object of {name} is gone, which does not show that its machine is off."
        )),
        _ => None,
    };
    let earlier = match noted.pods.len().saturating_add(noted.more) {
        0 => format!(
            "Earlier: a run ended while it deleted pods of {name}; which ones is not known (ConfigMap {CONFIG_MAP})."
        ),
        count => {
            let unsure = noted
                .pods
                .iter()
                .filter(|pod| pod.trace != Trace::Gone)
                .count();
            let unsure = (unsure > 0).then(|| format!("{unsure} may still be there; "));
            let unsure = prefixed("", unsure);
            format!(
                "Force-deleted earlier on {name}, from {from} on: {count} ({unsure}ConfigMap {CONFIG_MAP})."
            )
        }
    };
    let (back, others): (Vec<_>, Vec<_>) = sets.iter().partition(|set| set.is_back());
    let others = listed(&others, NAMED);
    let others = prefixed("; not: ", Some(others).filter(|others| !others.is_empty()));
    let ready = format!(
        "StatefulSets that are Ready again: {} of {}{others}.",
        back.len(),
        sets.len()
    );
    // Nobody reads the pods of other controllers that wait for the delete.
    let others = noted.pods.iter().filter(|pod| {
        let of_set = [None, Some("StatefulSet")].contains(&pod.owner_kind.as_deref());
        now.state.may_be_down() && !of_set && !pod.is_replaced_early()
    });
    let others = listed(&others.collect_vec(), NAMED);
    let unread = (!others.is_empty())
        .then(|| format!("Whether these are Ready again is not known: {others}."));
    let texts = [
        Some(earlier),
        state,
        (!sets.is_empty()).then_some(ready),
        unread,
    ];
    texts.into_iter().flatten().collect()
}

/// Says which data is at risk. Each sentence names the field that proves it in a comment.
pub fn data<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let on_dead = || survey.select(PodView::is_on_dead_machine);
    if survey.hold.is_some() {
        // The affinity of the volumes; a held run deletes nothing.
        let known = survey.select(PodView::is_local);
        let held = known.map(|pods| {
            format!(
                "{pods}: data on {}. Nothing is lost while you look.",
                pods.nodes()
            )
        });
        let none = on_dead().map(|pods| format!("No pod with data on {} is known.", pods.nodes()));
        return Vec::from_iter(held.or(none));
    }
    let asks = |pod: &PodView<'_>, code| pod.judged.reason.asks.contains(&code);
    let unverified = |pod: &PodView<'_>| {
        let asks = asks(pod, ReasonCode::VolumeUnverified);
        pod.verdict() == Verdict::Manual && !pod.is_local() && asks
    };
    let others = survey.select(|pod| pod.is_local() && pod.damage >= Damage::FewReady);
    let times = |one: u64, other: u64| u128::from(one) * u128::from(other);
    let least = |pods: &Pods<'_>| {
        let copies = pods.0.iter().filter_map(|pod| pod.judged.copies());
        let least = copies.min_by(|a, b| times(a.ready, b.wanted).cmp(&times(b.ready, a.wanted)));
        prefixed("", least)
    };
    let is_unread = |pod: &PodView<'_>| {
        let is_alive = pod.code() == ReasonCode::KubeletAlive;
        pod.is_on_dead_machine() && !pod.judged.by_storage() && !is_alive
    };
    // The boot ID of the node, and the time of its Ready condition.
    let back = survey.came_back().map(|node| {
        let until = prefixed(" until about ", node.now.ready_since.map(day));
        let name = &node.noted.node;
        match node.now.state {
            NodeState::AnotherMachine => format!("Containers of pods that were deleted MAY still run on the machine that was {name} before, beside their replacements."),
            _ => format!("Containers of pods that were deleted MAY have run on {name}{until}, beside their replacements."),
        }
    });
    let moves = survey.select(|pod| {
        let may_go = matches!(pod.verdict(), Verdict::Reap | Verdict::Wait);
        may_go && pod.is_on_dead_machine() && pod.attached.is_err()
    });
    let names = |pods: &Pods<'_>| {
        let names = pods.0.iter().map(|pod| pod.name());
        listed(&names.collect_vec(), NAMED)
    };
    let given_up = survey.select_from(|pod| pod.given_up_until(survey.now));
    let unread = survey.select_from(|pod| pod.judged.waits_until().filter(|_| is_unread(pod)));
    let texts = [
        joined(back, " "),
        // No VolumeAttachment was read, and the PVCs of these pods have volumes that something may attach.
        moves.zip(survey.unread_attachments).map(|(pods, why)| format!("Not known: whether volumes are attached to {} ({why}). Assume that those of these pods move: {pods}.", pods.nodes())),
        // The volume's affinity or the pod's hostPath; status.readyReplicas is 0.
        survey.local(Damage::NoOtherReady).map(|pods| format!("{}: data on {}; no other pod of its StatefulSet is Ready.", names(&pods), pods.nodes())),
        // The affinity or hostPath; no StatefulSet counts the others, or it was not read.
        survey.local(Damage::NotKnown).map(|pods| format!("{pods}: data on {}; whether other pods are Ready is not known.", pods.nodes())),
        // The affinity or hostPath; status.readyReplicas and spec.replicas, of which the least share is named.
        others.map(|pods| format!("{pods}: data on {}. Ready: {} or more each; whether those hold it, only you know.", pods.nodes(), least(&pods))),
        // The PVC or its volume could not be read or is Lost; or the PVC has a deletionTimestamp or an owner.
        survey.select(unverified).map(|pods| format!("{pods}: whether data is lost with {} or with the pod is not known.", pods.nodes())),
        // The driver's attachRequired, or the kind of the volume.
        survey.select(|pod| asks(pod, ReasonCode::SharedDisk)).map(|pods| format!("{pods}: two machines would write to one disk if {} still runs.", pods.nodes())),
        // A PVC's deletionTimestamp, after NotReady-since.
        given_up.map(|(until, pods)| format!("{pods}: its PVC was deleted; set its volume to Retain before {until} if you want the data.")),
        // Ready is False, or a lease was renewed.
        survey.with_code(ReasonCode::KubeletAlive).map(|pods| format!("Not at risk on {}. Most likely still running there: {pods}.", pods.nodes())),
        // Storage is read only of pods that may be deleted.
        survey.with_code(ReasonCode::EtcdMember).map(|pods| format!("Not looked at, since nothing is deleted: {pods}.")),
        unread.map(|(from, pods)| format!("Not known until it is read at {from}: {pods}.")),
    ];
    let mut texts = texts.into_iter().flatten().collect_vec();
    if texts.is_empty() && survey.select(is_unread).is_none() {
        let others = if survey.settings.namespaces.selects_all() {
            ""
        } else {
            " in the namespaces that were selected. Others were not looked at"
        };
        // No run deletes or has deleted what could have two writers.
        let is_calm =
            |node: &NodeView<'_>| node.may_be_waited_for() && matches!(node.volumes, Volumes::Stay);
        let calm = survey
            .select(|pod| pod.is_on_dead_machine() && survey.node_of(pod).is_some_and(is_calm));
        texts.extend(calm.map(|pods| format!("None on {}{others}.", pods.nodes())));
    }
    texts
}

/// Says what happens by itself, and when.
pub fn next<'a>(survey: &'a Survey<'a>) -> Vec<String> {
    let waiting = survey
        .pods
        .iter()
        .filter(|pod| pod.judged.limit.is_some())
        .count();
    let of_zone = if survey.hold.is_none() {
        " of the zone's nodes"
    } else {
        ""
    };
    let by_limit = survey.limit().map(|limit| match limit {
        Limit::MassOutage(_) => format!(
            "As soon as fewer than {}%{of_zone} are down, runs delete again by themselves. Pods that wait for that: {waiting}.",
            survey.settings.limits.max_not_ready_percent
        ),
        Limit::FailedTogether { .. } => format!("As soon as few enough of these nodes are NotReady, or you confirm one off, runs delete again by themselves. Pods that wait for that: {waiting}."),
        Limit::NoRoom(_) => format!("As soon as a node has room, runs delete again by themselves. Pods that wait for that: {waiting}."),
        Limit::Unread(_) | Limit::OverCap(_) => "The next run looks again.".to_owned(),
    });
    let planned = survey.select(|pod| pod.verdict() == Verdict::Reap && !survey.acted);
    let who = match survey.settings.task.mode() {
        Mode::Delete => "The next run",
        Mode::DryRun | Mode::Snapshot => "A run",
    };
    let later = survey.select_from(|pod| pod.from);
    let texts = [
        by_limit,
        planned.map(|pods| {
            format!(
                "{who} force-deletes pods: {}. It does not wait for {}.",
                by_effect(&pods),
                pods.nodes()
            )
        }),
        later.map(|(from, pods)| format!("From {from} on, a run may delete: {pods}.")),
        survey
            .with_code(ReasonCode::KubeletAlive)
            .map(|pods| format!("Runs leave {pods} alone while the machine gives a sign of life.")),
        survey.with_code(ReasonCode::OverCap).map(|pods| {
            format!(
                "Later runs delete those above --max-deletes: {}.",
                pods.0.len()
            )
        }),
    ];
    let mut texts = texts.into_iter().flatten().collect_vec();
    if texts.is_empty() {
        let needs_you = survey.select(|pod| pod.verdict() == Verdict::Manual);
        let said = [
            needs_you.map(|_| "Runs delete none of the pods that need you.".to_owned()),
            survey.select(|pod| pod.returns).map(|pods| {
                format!(
                    "If {} comes back, what needs its disk restarts with its data: {pods}.",
                    pods.nodes()
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
    let returned = survey.remembered.iter().filter_map(came_back);
    let unread = survey.unread_history.map(str::to_owned);
    not_evicted.chain(returned).chain(unread).collect()
}

/// Says that a node came back whose pods were reaped, unless that needs you.
fn came_back(node: &RememberedNode) -> Option<String> {
    let name = &node.noted.node;
    let at = prefixed(" at ", node.now.ready_since.map(day));
    match node.now.state {
        NodeState::BackSameBoot if !node.needs_you() => Some(format!(
            "{name} came back{at} without a reboot: pods that were deleted from {} on may have run there beside their replacements (from ConfigMap {CONFIG_MAP}, for 7 days).",
            day(node.noted.first_reap)
        )),
        NodeState::AnotherMachine if !node.needs_you() => Some(format!(
            "Another machine has the name {name}, and nobody saw the old one off: pods that were deleted from {} on may run there beside their replacements (from ConfigMap {CONFIG_MAP}, for 7 days).",
            day(node.noted.first_reap)
        )),
        NodeState::BackRebooted => Some(format!("{name} was rebooted before it came back{at}.")),
        _ => None,
    }
}

/// Spells a moment with its day.
pub fn day(at: Timestamp) -> String {
    at.strftime("%F %RZ").to_string()
}
