//! The head: what is wrong, what was done, which data is at risk, and what happens by itself.

use itertools::Itertools as _;
use jiff::Timestamp;

use super::{Page, lists::Effect};
use crate::{
    facts::Ready,
    history::{CONFIG_MAP, NodeState, RememberedNode},
    judge::{Judged, Limit, ReasonCode, Tie, Verdict},
    outcome::{OutcomeCode, Trace},
    report::{
        NAMED,
        document::{Kind, Section, Tone},
        record::{Damage, clock, day, is_local},
        todo::{About, fill, full_name},
    },
    settings::Mode,
    words::{joined, listed, prefixed},
};

impl<'a> Page<'a> {
    pub(super) fn head(&self) -> Vec<Section> {
        let section =
            |heading, tone, texts: Vec<String>| Section::of_texts(Kind::Head, heading, tone, texts);
        vec![
            section("NOTE", Tone::Bad, self.incomplete()),
            section("HELD", Tone::Bad, self.held()),
            section("DONE", Tone::Good, self.done()),
            section("DATA", Tone::Bad, self.data()),
            section("NEXT", Tone::Plain, self.next()),
        ]
    }

    fn incomplete(&self) -> Vec<String> {
        let none = self.run.settings.unmatched(&self.run.facts);
        let none = none.map(|why| format!("No pod was judged: {why}."));
        self.run
            .facts
            .incomplete
            .iter()
            .cloned()
            .chain(none)
            .collect()
    }

    fn held(&self) -> Vec<String> {
        let plan = &self.run.plan;
        let mut texts = Vec::from_iter(plan.hold.as_ref().map(|limit| match limit {
            Limit::MassOutage(state) => format!("Nothing is deleted: {state}. That many nodes are rarely dead: look at network, power, API server."),
            Limit::Unread(what) => format!("Nothing is deleted, because this is not known: {what}."),
            Limit::FailedTogether { .. } | Limit::NoRoom(_) | Limit::OverCap(_) => format!("Nothing is deleted: {}.", limit.state()),
        }));
        let zones = plan.zones.iter();
        texts.extend(
            zones.map(|(zone, limit)| {
                format!("Nothing is deleted in zone {zone}: {}.", limit.state())
            }),
        );
        for (limit, nodes) in self.run.held_together() {
            let names = listed(&nodes, NAMED);
            texts.push(match limit {
                Limit::Unread(what) => format!("Nothing is deleted on {names}, because this is not known: {what}."),
                _ => format!("Nothing is deleted on {names}: {}. A switch, a rack or a host may be the cause, and then the machines may run.", limit.state()),
            });
        }
        let members = self.with_code(ReasonCode::EtcdMember);
        let first = members.pods.first();
        let etcd = first.and_then(|it| self.run.facts.known_node(&it.pod)?.etcd);
        texts.extend(etcd.map(|etcd| {
            format!(
                "The API server writes, so {} of {} members of etcd live. On Ready nodes: {}. At least one of {} is alive. Pods that stay: {}.",
                etcd.members / 2 + 1, etcd.members, etcd.ready, members.node_names(), members.pods.len()
            )
        }));
        texts
    }

    /// Counts pods by what becomes of them.
    fn counted(&self, pods: &About<'_>) -> String {
        let effects = Effect::ALL.map(|effect| {
            let count = pods
                .pods
                .iter()
                .filter(|it| self.effect(it) == effect)
                .count();
            (count > 0).then(|| format!("{effect} {count}"))
        });
        format!(
            "{} ({})",
            pods.pods.len(),
            effects.into_iter().flatten().join(", ")
        )
    }

    /// Says what earlier runs did to nodes that are down, or that came back without a reboot, from the
    /// history.
    fn earlier(&self) -> Vec<String> {
        let nodes = self.run.history.nodes.iter();
        let nodes = nodes.filter(|node| node.now.state.may_be_down() || node.needs_you());
        let said = nodes.flat_map(|RememberedNode { noted, sets, now, unread, .. }| {
            let (name, from) = (&noted.node, day(noted.first_reap));
            let state = match now.state {
                NodeState::Unread => Some(format!("Whether {name} came back, and was rebooted, is not known: it could not be read{}.", prefixed(": ", unread.as_ref()))),
                NodeState::Gone => Some(format!("The Node object of {name} is gone, which does not show that its machine is off.")),
                _ => None,
            };
            let earlier = match noted.pods.len().saturating_add(noted.more) {
                0 => format!("Earlier: a run ended while it deleted pods of {name}; which ones is not known (ConfigMap {CONFIG_MAP})."),
                count => {
                    let unsure = noted.pods.iter().filter(|pod| pod.trace != Trace::Gone).count();
                    let unsure = (unsure > 0).then(|| format!("{unsure} may still be there; "));
                    let unsure = prefixed("", unsure);
                    format!("Force-deleted earlier on {name}, from {from} on: {count} ({unsure}ConfigMap {CONFIG_MAP}).")
                }
            };
            let (back, others): (Vec<_>, Vec<_>) = sets.iter().partition(|set| set.is_back());
            let others = listed(&others, NAMED);
            let others = prefixed("; not: ", Some(others).filter(|others| !others.is_empty()));
            let ready = format!("StatefulSets that are Ready again: {} of {}{others}.", back.len(), sets.len());
            // Nobody reads the pods of other controllers that wait for the delete.
            let others = noted.pods.iter().filter(|pod| {
                let of_set = [None, Some("StatefulSet")].contains(&pod.owner_kind.as_deref());
                now.state.may_be_down() && !of_set && !pod.is_replaced_early()
            });
            let others = listed(&others.collect_vec(), NAMED);
            let unread = (!others.is_empty()).then(|| format!("Whether these are Ready again is not known: {others}."));
            [Some(earlier), state, (!sets.is_empty()).then_some(ready), unread]
        });
        said.flatten().collect()
    }

    fn done(&self) -> Vec<String> {
        let outcome = |it: &Judged| self.run.outcome(it);
        let deleted = self.pods(|it| outcome(it) == Some(OutcomeCode::Deleted));
        let counted = self.counted(&deleted);
        let texts = [
            deleted.say(fill(
                "Force-deleted now, verified gone: <counted>.",
                &[&counted],
            )),
            self.pods(|it| outcome(it) == Some(OutcomeCode::Gone))
                .say("Gone before the run came to it: <pods>."),
        ];
        let mut said = self.earlier();
        said.extend(texts.into_iter().flatten());
        said
    }

    /// Lists the pods whose data is, or may be, on their node alone (the affinity of a volume, or a
    /// `hostPath`), by how bad it is that they are down.
    pub(super) fn local(&self, damage: Damage) -> About<'a> {
        self.pods(|it| is_local(it) && Damage::of(it) == damage)
    }

    /// Says which data is at risk. Each sentence names the field that proves it in a comment.
    fn data(&self) -> Vec<String> {
        let (run, facts) = (self.run, &self.run.facts);
        let of_dead = |it: &Judged| {
            let node = facts.known_node(&it.pod);
            node.is_some_and(|node| node.ready != Ready::True && node.leaf.is_none())
        };
        if run.plan.hold.is_some() {
            // The affinity of the volumes; a held run deletes nothing.
            let held = "<pods>: data on <nodes>. Nothing is lost while you look.";
            let none = "No pod with data on <nodes> is known.";
            let known = self.pods(is_local).say(held);
            return Vec::from_iter(known.or_else(|| self.pods(of_dead).say(none)));
        }
        let asks = |it: &Judged, code| it.reason.asks.contains(&code);
        let unverified = |it: &Judged| {
            it.verdict() == Verdict::Manual
                && !is_local(it)
                && asks(it, ReasonCode::VolumeUnverified)
        };
        let alone = self.local(Damage::NoOtherReady);
        let names = alone.pods.iter().map(|it| full_name(&it.pod));
        let names = listed(&names.collect_vec(), NAMED);
        let others = self.pods(|it| is_local(it) && Damage::of(it) >= Damage::FewReady);
        let copies = others.pods.iter().filter_map(|it| it.copies());
        let times = |one: u64, other: u64| u128::from(one) * u128::from(other);
        let least = copies.min_by(|a, b| times(a.ready, b.wanted).cmp(&times(b.ready, a.wanted)));
        let least = prefixed("", least);
        let given_up = |it: &Judged| {
            let until = it.reason.ties.iter().filter_map(Tie::given_up_from).max();
            until.filter(|until| *until > facts.now)
        };
        let unread =
            |it: &Judged| of_dead(it) && !it.by_storage() && it.code() != ReasonCode::KubeletAlive;
        // The boot ID of the node, and the time of its Ready condition.
        let back = run.history.needing_you().map(|node| {
            let until = node.now.ready_since.map(day);
            let until = prefixed(" until about ", until);
            let name = &node.noted.node;
            match node.now.state {
                NodeState::AnotherMachine => format!("Containers of pods that were deleted MAY still run on the machine that was {name} before, beside their replacements."),
                _ => format!("Containers of pods that were deleted MAY have run on {name}{until}, beside their replacements."),
            }
        });
        let moves = self.pods(|it| {
            let may_go = matches!(it.verdict(), Verdict::Reap | Verdict::Wait);
            may_go && of_dead(it) && run.is_attached(it).is_err()
        });
        let cause = prefixed("", facts.attachments.0.as_ref().err());
        let texts = [
            joined(back, " "),
            // No VolumeAttachment was read, and the PVCs of these pods have volumes that something may attach.
            moves.say(fill("Not known: whether volumes are attached to <nodes> (<cause>). Assume that those of these pods move: <pods>.", &[&cause])),
            // The volume's affinity or the pod's hostPath; status.readyReplicas is 0.
            alone.say(fill("<names>: data on <nodes>; no other pod of its StatefulSet is Ready.", &[&names])),
            // The affinity or hostPath; no StatefulSet counts the others, or it was not read.
            self.local(Damage::NotKnown)
                .say("<pods>: data on <nodes>; whether other pods are Ready is not known."),
            // The affinity or hostPath; status.readyReplicas and spec.replicas, of which the least share is named.
            others.say(fill("<pods>: data on <nodes>. Ready: <least> or more each; whether those hold it, only you know.", &[&least])),
            // The PVC or its volume could not be read or is Lost; or the PVC has a deletionTimestamp or an owner.
            self.pods(unverified).say("<pods>: whether data is lost with <nodes> or with the pod is not known."),
            // The driver's attachRequired, or the kind of the volume.
            self.pods(|it| asks(it, ReasonCode::SharedDisk)).say("<pods>: two machines would write to one disk if <nodes> still runs."),
            // A PVC's deletionTimestamp, after NotReady-since.
            self.say_from(given_up, "<pods>: its PVC was deleted; set its volume to Retain before <time> if you want the data."),
            // Ready is False, or a lease was renewed.
            self.with_code(ReasonCode::KubeletAlive)
                .say("Not at risk on <nodes>. Most likely still running there: <pods>."),
            // Storage is read only of pods that may be deleted.
            self.with_code(ReasonCode::EtcdMember)
                .say("Not looked at, since nothing is deleted: <pods>."),
            self.say_from(
                |it| it.waits_until().filter(|_| unread(it)),
                "Not known until it is read at <time>: <pods>.",
            ),
        ];
        let mut texts = texts.into_iter().flatten().collect_vec();
        if texts.is_empty() && self.pods(unread).pods.is_empty() {
            let none = if run.settings.namespaces.selects_all() {
                "None on <nodes>."
            } else {
                "None on <nodes> in the namespaces that were selected. Others were not looked at."
            };
            texts.extend(self.pods(of_dead).say(none));
        }
        texts
    }

    /// Completes the sentence about the pods that have such a moment, of which the first is its `<time>`.
    fn say_from(
        &self,
        moment: impl Fn(&Judged) -> Option<Timestamp>,
        sentence: &'static str,
    ) -> Option<String> {
        let first = self.pods.iter().filter_map(|it| moment(it)).min()?;
        let sentence = fill(sentence, &[&clock(first)]);
        self.pods(|it| moment(it).is_some()).say(sentence)
    }

    /// Says what happens by itself, and when.
    fn next(&self) -> Vec<String> {
        let run = self.run;
        let held = self.pods(|it| it.limit.is_some()).pods.len();
        let of_zone = if run.plan.hold.is_none() {
            " of the zone's nodes"
        } else {
            ""
        };
        let by_limit = run.limit().map(|limit| match limit {
            Limit::MassOutage(_) => format!(
                "As soon as fewer than {}%{of_zone} are down, runs delete again by themselves. Pods that wait for that: {held}.",
                run.settings.limits.max_not_ready_percent
            ),
            Limit::FailedTogether { .. } => format!("As soon as few enough of these nodes are NotReady, or you confirm one off, runs delete again by themselves. Pods that wait for that: {held}."),
            Limit::NoRoom(_) => format!("As soon as a node has room, runs delete again by themselves. Pods that wait for that: {held}."),
            Limit::Unread(_) | Limit::OverCap(_) => "The next run looks again.".to_owned(),
        });
        let planned = self.pods(|it| it.verdict() == Verdict::Reap && !self.acted());
        let counted = self.counted(&planned);
        let who = match run.settings.task.mode() {
            Mode::Delete => "The next run",
            Mode::DryRun | Mode::Snapshot => "A run",
        };
        let texts = [
            by_limit,
            planned.say(fill(
                "<who> force-deletes pods: <counted>. It does not wait for <nodes>.",
                &[&who, &counted],
            )),
            self.say_from(
                Judged::waits_until,
                "From <time> on, a run may delete: <pods>.",
            ),
            self.with_code(ReasonCode::KubeletAlive)
                .say("Runs leave <pods> alone while the machine gives a sign of life."),
            self.with_code(ReasonCode::OverCap)
                .say("Later runs delete those above --max-deletes: <count>."),
        ];
        let mut texts = texts.into_iter().flatten().collect_vec();
        if texts.is_empty() {
            let of_kosmos = |it: &Judged| it.code() == ReasonCode::KosmosLeaf;
            let back = "If <nodes> comes back, what needs its disk restarts with its data: <pods>.";
            let linked = "If the link comes back, Kosmos stops what runs there: <pods>.";
            let is_manual = |it: &Judged| it.verdict() == Verdict::Manual;
            let said = [
                self.pods(is_manual)
                    .say("Runs delete none of the pods that need you."),
                self.pods(|it| run.restarts_with_its_data(it)).say(back),
                self.pods(of_kosmos).say(linked),
            ];
            texts.extend(joined(said.into_iter().flatten(), " "));
        }
        texts
    }
}
