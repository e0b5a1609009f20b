//! Lays a run's report out for people: what is down, what was done, which data is at risk, what
//! happens by itself, what to do, and then the lists. The worst comes first.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    NAMES,
    build::{Damage, clock},
    document::{Document, Kind, Line, Section, Tone},
    notices,
    record::RunRecord,
    todo::{Todo, Todos, When, full_name, named},
};
use crate::{
    exit::Exit,
    facts::{KubeletSays, LeafKind, NodeFacts, NodeRead, Ready},
    judge::{Judged, Limit},
    judge::{ReasonCode, Tie, Verdict, reported},
    outcome::OutcomeCode,
    settings::{GuardCode, Mode},
    words::{about, counted, human_duration, joined, listed, natural, prefixed},
};

/// The most names in a sentence.
const NAMED: usize = 3;
/// The most pods of a machine that is alive that are named.
const FEW: usize = 10;
/// The most steps that are asked for at night.
const AT_NIGHT: usize = 3;
/// Nodes that fail within this time of each other fail together. The node controller may notice one
/// node up to 15 s before another.
const TOGETHER: SignedDuration = SignedDuration::from_mins(1);

/// What becomes of a pod that is deleted. Nobody read its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Its controller waits for the delete, or its replacement for a volume.
    Restart,
    /// Its controller did not wait for the delete, or nothing wants it again.
    Leftover,
    /// It has no owner.
    GoneForGood,
    /// Its owner is no controller.
    UpToOwner,
}

/// The state of a node that is not Ready, the most urgent first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Unread,
    NeededMember,
    Down,
    Fenced,
    BeingDeleted,
    NotLookedAt,
    Alive(Option<KubeletSays>),
    LinkCut(Option<String>),
    Virtual(&'static str),
    Edge,
    Selected,
    NeverReported,
    Gone,
}

/// Returns the document of a run.
pub fn document(run: &RunRecord<'_>) -> Document {
    let page = Page::of(run);
    let head = [
        page.incomplete(),
        page.held(),
        page.done(),
        page.data(),
        page.next(),
    ];
    let lists = [
        page.down(),
        page.held_pods(),
        page.reaped(Effect::Restart, "RESTART ELSEWHERE"),
        page.reaped(Effect::Leftover, "LEFTOVERS"),
        page.reaped(Effect::GoneForGood, "GONE FOR GOOD"),
        page.reaped(Effect::UpToOwner, "UP TO THEIR OWNERS"),
        page.not_deleted(),
        page.goes_too(),
        page.afterwards(),
        page.waits(),
        page.needs_you(),
        page.alive(),
        page.left_alone(),
        Section::of_texts(
            Kind::List,
            "WORTH KNOWING",
            Tone::Plain,
            notices::of_run(run),
        ),
        Section::of_texts(
            Kind::List,
            "NOT SEEN",
            Tone::Plain,
            run.facts.unseen.clone(),
        ),
    ];
    let sections = head
        .into_iter()
        .chain(page.steps())
        .chain([page.never()])
        .chain(lists);
    let sections = sections.chain([page.foot()]);
    Document {
        title: page.title(),
        headline: page.headline(),
        about: page.about(),
        sections: sections
            .filter(|section| !section.lines.is_empty())
            .collect(),
    }
}

/// Returns what the user sees before the deletes: the pods, what to remember, and what to power off.
pub fn question(report: &Document) -> Document {
    let is_asked = |section: &&Section| {
        let shown = [
            "RESTART",
            "LEFTOVERS",
            "GONE",
            "UP TO",
            "AFTERWARDS",
            "DATA",
        ];
        shown
            .iter()
            .any(|heading| section.heading.starts_with(heading))
    };
    Document {
        headline: report.headline.clone(),
        sections: report.sections.iter().filter(is_asked).cloned().collect(),
        ..Document::default()
    }
}

/// A run with everything to do.
struct Page<'a> {
    run: &'a RunRecord<'a>,
    todos: Todos<'a>,
}

impl<'a> Page<'a> {
    fn of(run: &'a RunRecord<'a>) -> Self {
        let mut todos = run.todos();
        todos.remove(&Todo::TaintNode);
        Self { run, todos }
    }

    fn judged(&self) -> impl Iterator<Item = &'a Judged> {
        self.run.plan.pods.iter()
    }

    fn with_verdict(&self, verdict: Verdict) -> impl Iterator<Item = &'a Judged> {
        self.judged()
            .filter(move |judged| judged.verdict() == verdict)
    }

    fn outcome(&self, judged: &Judged) -> Option<OutcomeCode> {
        Some(self.run.outcomes.get(&judged.pod.uid)?.code())
    }

    /// Reports whether the run deleted a pod, or tried to.
    fn acted(&self) -> bool {
        self.run
            .outcomes
            .values()
            .any(|outcome| outcome.code().acted())
    }

    /// Reports whether the pod's data is, or may be, on its node alone (the affinity of its volume,
    /// or its `hostPath`).
    fn is_local(judged: &&Judged) -> bool {
        let asks = |code| judged.reason.asks.contains(&code);
        judged.verdict() == Verdict::Manual
            && (asks(ReasonCode::LocalVolume) || asks(ReasonCode::HostPath))
    }

    /// Lists the nodes that are not Ready, or gone, by state.
    fn nodes(&self) -> Vec<(State, Vec<&'a str>)> {
        let (facts, now) = (&self.run.facts, self.run.facts.now);
        let state = |name: &str, read: &NodeRead| {
            Some(match read {
                NodeRead::Unread(_) => State::Unread,
                NodeRead::Gone
                    if self
                        .with_verdict(Verdict::Manual)
                        .any(|it| it.pod.node.as_deref() == Some(name)) =>
                {
                    State::Gone
                }
                NodeRead::Gone => return None,
                NodeRead::Known(node) if node.ready == Ready::True => return None,
                NodeRead::Known(node) => match &node.leaf {
                    Some(leaf) => match leaf.kind {
                        LeafKind::Kosmos => State::LinkCut(leaf.cluster.clone()),
                        LeafKind::Virtual => State::Virtual(leaf.maker),
                        LeafKind::Edge => State::Edge,
                        LeafKind::Selected => State::Selected,
                        LeafKind::NeverReported => State::NeverReported,
                    },
                    None if !node.signs_of_life(now).is_empty() => {
                        State::Alive(node.kubelet_says.filter(|_| node.ready == Ready::False))
                    }
                    None if node.may_live(now) => State::NotLookedAt,
                    None if node.etcd.is_some_and(|members| !members.is_met())
                        && node.fenced(now).is_none() =>
                    {
                        State::NeededMember
                    }
                    None if node.fenced(now).is_some() => State::Fenced,
                    None if node.is_deleted => State::BeingDeleted,
                    None => State::Down,
                },
            })
        };
        let mut nodes = BTreeMap::<_, Vec<_>>::new();
        for (name, read) in &facts.nodes {
            if let Some(state) = state(name, read) {
                nodes.entry(state).or_default().push(name.as_str());
            }
        }
        for names in nodes.values_mut() {
            names.sort_by_cached_key(|name| natural(name));
        }
        nodes.into_iter().collect()
    }

    /// Says since when nodes are silent or NotReady, as a duration.
    fn time(
        &self,
        names: &[&str],
        since: impl Fn(&NodeFacts) -> Option<Timestamp>,
    ) -> Option<String> {
        let times = names
            .iter()
            .filter_map(|name| since(self.run.facts.known(name)?));
        let (first, last) = times.minmax().into_option()?;
        let for_up_to = if last.duration_since(first) > TOGETHER {
            "for up to"
        } else {
            "for"
        };
        Some(format!(
            "{for_up_to} {}",
            about(self.run.facts.now.duration_since(first))
        ))
    }

    fn headline(&self) -> String {
        let (facts, now) = (&self.run.facts, self.run.facts.now);
        let nodes = self.nodes();
        let gone = nodes
            .iter()
            .filter(|(state, _)| *state == State::Gone)
            .map(|(_, names)| names.len());
        let not_ready =
            nodes.iter().map(|(_, names)| names.len()).sum::<usize>() - gone.sum::<usize>();
        let said = nodes.iter().map(|(state, names)| {
            let not_ready = || prefixed(" ", self.time(names, |node| node.not_ready_since(now)));
            let silent = || {
                let heard = self.time(names, |node| Some(node.last_heard()?.at.min(now)));
                heard.map_or_else(not_ready, |time| format!(": silent {time}"))
            };
            let (who, are) = match names.len() {
                1 => (names[0].to_owned(), "IS"),
                few if few <= NAMED => (names.join(", "), "ARE"),
                many => (format!("{many} OF {} NODES", facts.node_count), "ARE"),
            };
            match state {
                State::Unread => format!("{who} COULD NOT BE READ."),
                State::NeededMember => format!(
                    "{who} {are} NOT READY{}. The API server still writes.",
                    silent()
                ),
                State::Down if names.len() > NAMED => {
                    format!("{who} ARE DOWN{}{}.", self.together(names), not_ready())
                }
                State::Down => format!("{who} {are} DOWN{}.", silent()),
                State::Fenced => {
                    let mark = facts.known(names[0]).and_then(|node| node.fenced(now));
                    format!(
                        "{who} {are} DOWN AND KNOWN TO BE OFF{}.",
                        prefixed(": ", mark)
                    )
                }
                State::BeingDeleted => format!("{who} {are} DOWN, AND BEING DELETED{}.", silent()),
                State::NotLookedAt => format!("{who} {are} NOT READY{}.", not_ready()),
                State::Alive(says) => {
                    let signs = names
                        .first()
                        .and_then(|name| facts.known(name))
                        .map(|node| node.signs_of_life(now));
                    let signs = signs.unwrap_or_default();
                    let sign = signs.first().map(|sign| reported(sign, now));
                    let says = says.map(|says| match says {
                        KubeletSays::ShuttingDown => "the machine is shutting down",
                        KubeletSays::Runtime => "the container runtime is down",
                        KubeletSays::Network => "the network plugin (CNI) is not ready",
                    });
                    format!(
                        "{who} {are} NOT READY BUT ALIVE{}.{}",
                        prefixed(": ", sign),
                        prefixed(" It says: ", says.map(|it| format!("{it}.")))
                    )
                }
                State::LinkCut(Some(cluster)) => {
                    format!("LINK TO CLUSTER {cluster} IS CUT{}.", not_ready())
                }
                State::LinkCut(None) => format!("LINK TO {who} IS CUT{}.", not_ready()),
                State::Virtual(maker) => {
                    format!("{who} OF {maker} {are} NOT READY{}.", not_ready())
                }
                State::Edge => format!("{who} {are} CUT OFF, OR OFF,{}.", not_ready()),
                State::Selected => format!("LEAF NODE {who} {are} NOT READY{}.", not_ready()),
                State::NeverReported => format!("{who} NEVER HAD A KUBELET."),
                State::Gone => format!("{who} NO LONGER EXISTS."),
            }
        });
        let mut said = said.collect_vec();
        let ready = facts.node_count.saturating_sub(not_ready);
        said.push(match (not_ready, ready) {
            (0, 1) => "THE ONLY NODE IS READY.".to_owned(),
            (0, all) => format!("ALL {all} NODES ARE READY."),
            (_, 0) => "No other node is Ready.".to_owned(),
            (_, ready) => format!(
                "{} Ready.",
                counted(ready, "other node is", "other nodes are")
            ),
        });
        let hang = self
            .todos
            .get(&Todo::AskKubelet)
            .map(|about| about.pods.len());
        said.extend(hang.map(|count| {
            format!(
                "{} ON READY NODES.",
                counted(count, "POD HANGS", "PODS HANG")
            )
        }));
        if self.run.plan.pods.is_empty() && self.run.settings.unmatched(facts).is_none() {
            said.push("No pod is stuck.".to_owned());
        }
        let supposed = self.run.settings.task.suppose_dead();
        let supposed = joined(supposed, ", ").map(|names| format!("IF {names} HAD DIED: "));
        prefixed("", supposed) + &said.join(" ")
    }

    /// Says that nodes failed together, if all of them did.
    fn together(&self, names: &[&str]) -> &'static str {
        let times = names.iter().filter_map(|name| {
            self.run
                .facts
                .known(name)?
                .not_ready_since(self.run.facts.now)
        });
        match times.minmax().into_option() {
            Some((first, last)) if last.duration_since(first) <= TOGETHER => {
                ", all within 1 minute,"
            }
            _ => "",
        }
    }

    fn title(&self) -> String {
        let down = self.nodes();
        let names = down
            .iter()
            .filter(|(state, _)| *state != State::Gone)
            .flat_map(|(_, names)| names)
            .collect_vec();
        let needs = self.with_verdict(Verdict::Manual).count();
        let alone = self
            .judged()
            .filter(|it| Self::is_local(it) && self.run.damage(it) == Damage::NoOtherReady)
            .count();
        let parts = [
            (!names.is_empty()).then(|| format!("{} down", listed(&names, NAMED))),
            (alone > 0).then(|| format!("{alone} without another Ready")),
            (needs > 0).then(|| format!("{needs} need you")),
        ];
        let parts = joined(parts.into_iter().flatten(), " · ");
        parts.unwrap_or_else(|| "no pod needs you".to_owned()) + &prefixed(" · ", self.place())
    }

    fn place(&self) -> Option<&'a String> {
        self.run
            .settings
            .cluster_name
            .as_ref()
            .or(self.run.facts.cluster_name.as_ref())
    }

    fn about(&self) -> String {
        let at = self.run.facts.now.strftime("%F %RZ");
        let place = prefixed(" ", self.place());
        let exit = match self.run.exit() {
            Exit::Done => String::new(),
            exit => format!(", exit {}", exit.code()),
        };
        let settings = self.run.settings;
        let file = settings.task.snapshot().map(|file| {
            if file == "-" {
                "standard input".to_owned()
            } else {
                file
            }
        });
        match settings.task.mode() {
            Mode::Snapshot => format!("AUDIT of {}{place} at {at}{exit}", prefixed("", file)),
            Mode::DryRun => format!("DRY RUN{place} {at}, nothing was changed{exit}"),
            Mode::Delete if self.acted() => format!("RUN{place} {at}{exit}"),
            Mode::Delete => format!("RUN{place} {at}, nothing was changed{exit}"),
        }
    }

    fn incomplete(&self) -> Section {
        let mut texts = self.run.facts.incomplete.iter().cloned().collect_vec();
        let none = self.run.settings.unmatched(&self.run.facts);
        texts.extend(none.map(|why| format!("No pod was judged: {why}.")));
        Section::of_texts(Kind::Head, "NOTE", Tone::Bad, texts)
    }

    fn held(&self) -> Section {
        let plan = &self.run.plan;
        let zones = plan
            .zones
            .iter()
            .map(|(zone, limit)| format!("Nothing is deleted in zone {zone}: {}.", limit.state()));
        let mut texts = plan.hold.iter().map(|limit| match limit {
            Limit::MassOutage(state) => format!("Nothing is deleted: {state}. That many nodes are rarely dead: look at network, power, API server."),
            Limit::Unread(what) => format!("Nothing is deleted, because this is not known: {what}."),
            Limit::NoRoom(_) | Limit::OverCap(_) => format!("Nothing is deleted: {}.", limit.state()),
        }).chain(zones).collect_vec();
        let members = self
            .judged()
            .filter(|it| it.code() == ReasonCode::EtcdMember)
            .collect_vec();
        let etcd = members
            .first()
            .and_then(|it| self.run.facts.known_node(&it.pod)?.etcd);
        texts.extend(etcd.map(|etcd| {
            let nodes = members.iter().filter_map(|it| it.pod.node.as_ref()).unique().collect_vec();
            format!(
                "At least one of {} is alive: etcd needs {} of {} members, and {} on Ready nodes. Pods that stay: {}.",
                listed(&nodes, NAMED), etcd.members / 2 + 1, etcd.members, counted(etcd.ready, "is", "are"), members.len()
            )
        }));
        Section::of_texts(Kind::Head, "HELD", Tone::Bad, texts)
    }

    fn effect(&self, judged: &Judged) -> Effect {
        let pod = &judged.pod;
        // `status.volumesAttached` is not asked: a VolumeAttachment, or a disk for one node.
        let waits_for_a_disk = self.run.detaches_late(judged)
            || judged.volumes().any(|volume| volume.driver.is_some());
        match (&pod.owner, &pod.controller) {
            _ if judged.unneeded().is_some() => Effect::Leftover,
            (None, _) => Effect::GoneForGood,
            (Some(_), None) => Effect::UpToOwner,
            _ if pod.is_replaced_early() && !waits_for_a_disk && !pod.held_by_job() => {
                Effect::Leftover
            }
            _ => Effect::Restart,
        }
    }

    /// Lists the pods that were deleted, or would be.
    fn gone(&self) -> impl Iterator<Item = &'a Judged> {
        self.with_verdict(Verdict::Reap)
            .filter(|it| self.outcome(it).is_none_or(OutcomeCode::went_well))
    }

    /// Counts deleted pods by what becomes of them, as phrases.
    fn effects(&self, pods: &[&Judged]) -> Vec<(Effect, usize)> {
        let all = [
            Effect::Restart,
            Effect::Leftover,
            Effect::GoneForGood,
            Effect::UpToOwner,
        ];
        let count = |effect| pods.iter().filter(|it| self.effect(it) == effect).count();
        all.map(|effect| (effect, count(effect)))
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    fn done(&self) -> Section {
        let with = |code| {
            self.judged()
                .filter(move |it| self.outcome(it) == Some(code))
                .collect_vec()
        };
        let (deleted, gone) = (with(OutcomeCode::Deleted), with(OutcomeCode::Gone));
        let mut texts = Vec::new();
        if !deleted.is_empty() {
            let late = deleted
                .iter()
                .filter(|it| self.run.detaches_late(it))
                .count();
            let late = (late > 0).then(|| {
                format!(
                    " ({late} once the volume is detached at {})",
                    self.run.detached_at()
                )
            });
            let effects = self
                .effects(&deleted)
                .into_iter()
                .map(|(effect, count)| match effect {
                    Effect::Restart => format!(
                        "{count} to restart elsewhere{}",
                        prefixed("", late.as_ref())
                    ),
                    Effect::Leftover => counted(count, "leftover", "leftovers"),
                    Effect::GoneForGood => format!("{count} gone for good"),
                    Effect::UpToOwner => format!("{count} up to the owner"),
                });
            let pods = counted(deleted.len(), "pod", "pods");
            texts.push(format!(
                "{pods} force-deleted, verified gone: {}.",
                effects.collect_vec().join(", ")
            ));
        }
        if !gone.is_empty() {
            texts.push(format!(
                "Gone before the run came to it: {}.",
                counted(gone.len(), "pod", "pods")
            ));
        }
        let failed = self
            .run
            .outcomes
            .values()
            .map(|it| it.code())
            .filter(|code| code.acted() && !code.went_well());
        let failed = failed
            .counts()
            .into_iter()
            .sorted()
            .map(|(code, count)| format!("{count} {code}"));
        texts.extend(joined(failed, ", ").map(|failed| format!("Not deleted: {failed}.")));
        Section::of_texts(Kind::Head, "DONE", Tone::Good, texts)
    }

    /// Says which data is at risk. Each sentence names the field that proves it in a comment.
    fn data(&self) -> Section {
        let (run, facts) = (self.run, &self.run.facts);
        let on = |pods: &[&Judged]| {
            let nodes = pods.iter().filter_map(|it| it.pod.node.as_deref()).unique();
            listed(
                &nodes
                    .sorted_by_cached_key(|name| natural(name))
                    .collect_vec(),
                NAMED,
            )
        };
        let have = |pods: &[&Judged]| if pods.len() == 1 { "has" } else { "have" };
        let local = run.by_damage(self.judged().filter(Self::is_local).collect());
        let with_tie = |is: fn(&Tie) -> bool| {
            self.judged()
                .filter(move |it| it.reason.ties.iter().any(is))
        };
        let mut texts = Vec::new();
        // A PVC's deletionTimestamp, before NotReady-since.
        let going = with_tie(Tie::goes).collect_vec();
        if !going.is_empty() {
            texts.push(format!("{}: a PVC that may be wanted goes with the pod; its deletion is not new, or the pod owns it.", named(&going)));
        }
        if run.plan.hold.is_some() {
            // The affinity of the volumes; a held run deletes nothing.
            let held = (!local.is_empty()).then(|| {
                format!(
                    "{} {} data on these nodes. Nothing is lost while you look.",
                    counted(local.len(), "pod", "pods"),
                    have(&local)
                )
            });
            texts.extend(held);
            return Section::of_texts(Kind::Head, "DATA", Tone::Plain, texts);
        }
        let with = |damage| {
            local
                .iter()
                .copied()
                .filter(|it| run.damage(it) == damage)
                .collect_vec()
        };
        // The volume's affinity or the pod's hostPath; status.readyReplicas is 0.
        let alone = with(Damage::NoOtherReady);
        for judged in alone.iter().take(NAMED) {
            texts.push(format!(
                "{} has data on {}; no other pod of its StatefulSet is Ready.",
                full_name(&judged.pod),
                on(&[judged])
            ));
        }
        if alone.len() > NAMED {
            texts.push(format!(
                "The same is true of {} more: see NEEDS YOU.",
                alone.len() - NAMED
            ));
        }
        // The affinity or hostPath; no StatefulSet counts the others, or it was not read.
        let unknown = with(Damage::NotKnown);
        if !unknown.is_empty() {
            texts.push(format!(
                "{} {} data on {}; whether other pods are Ready is not known.",
                named(&unknown),
                have(&unknown),
                on(&unknown)
            ));
        }
        // The affinity or hostPath; status.readyReplicas and spec.replicas, of which the least share is named.
        let others = [with(Damage::FewReady), with(Damage::ManyReady)].concat();
        let least = others
            .iter()
            .filter_map(|it| it.copies())
            .min_by(|a, b| (a.ready * b.wanted).cmp(&(b.ready * a.wanted)));
        if let Some(least) = least {
            let more = if others.len() > 1 {
                format!("{least} or more of each are Ready")
            } else {
                format!("{least} of its StatefulSet are Ready")
            };
            texts.push(format!(
                "{} {} data on {}; {more}. Whether they hold this data, only you know.",
                named(&others),
                have(&others),
                on(&others)
            ));
        }
        // The PVC or its volume could not be read, or is Lost.
        let unverified = with_tie(Tie::is_unverified)
            .filter(|it| it.verdict() == Verdict::Manual && !Self::is_local(it))
            .collect_vec();
        if !unverified.is_empty() {
            texts.push(format!(
                "{}: whether data is on {} is not known.",
                named(&unverified),
                on(&unverified)
            ));
        }
        // The driver's attachRequired, or the kind of the volume.
        let shared = self
            .judged()
            .filter(|it| it.reason.asks.contains(&ReasonCode::SharedDisk))
            .collect_vec();
        if !shared.is_empty() {
            texts.push(format!(
                "{}: two machines would write to one disk if {} still runs.",
                named(&shared),
                on(&shared)
            ));
        }
        // A PVC's deletionTimestamp, after NotReady-since.
        for judged in self.judged() {
            let until = judged
                .reason
                .ties
                .iter()
                .filter_map(Tie::given_up_from)
                .max();
            let until = until.filter(|until| *until > facts.now);
            texts.extend(until.map(|until| format!(
                "{}: its PVC was deleted; set its volume to Retain before {} if you want the data.", full_name(&judged.pod), clock(until)
            )));
        }
        // Ready is False, or a lease was renewed.
        let alive = self
            .judged()
            .filter(|it| it.code() == ReasonCode::KubeletAlive)
            .collect_vec();
        if !alive.is_empty() {
            let run = counted(
                alive.len(),
                "pod most likely still runs",
                "pods most likely still run",
            );
            texts.push(format!("Not at risk on {}: {run} there.", on(&alive)));
        }
        let of_dead = self.judged().filter(|it| {
            facts
                .known_node(&it.pod)
                .is_some_and(|node| node.ready != Ready::True && node.leaf.is_none())
        });
        let of_dead = of_dead.collect_vec();
        let unread = of_dead
            .iter()
            .copied()
            .filter(|it| it.storage.is_none() && it.code() != ReasonCode::KubeletAlive)
            .collect_vec();
        let waiting = unread.iter().copied();
        let waiting = waiting
            .filter(|it| run.reaped_from(it).is_some())
            .collect_vec();
        if let Some(first) = waiting.iter().filter_map(|it| run.reaped_from(it)).min() {
            texts.push(format!(
                "Not known before {}: {}.",
                clock(first),
                named(&waiting)
            ));
        } else if texts.is_empty() && unread.is_empty() && !of_dead.is_empty() {
            texts.push(format!("None on {}.", on(&of_dead)));
        }
        Section::of_texts(Kind::Head, "DATA", Tone::Bad, texts)
    }

    /// Says what happens by itself, and when.
    fn next(&self) -> Section {
        let (run, plan) = (self.run, &self.run.plan);
        let held = self.judged().filter(|it| it.limit.is_some()).collect_vec();
        let mut texts = Vec::new();
        match plan.hold.as_ref().or(plan.zones.values().next()) {
            Some(Limit::MassOutage(_)) => texts.push(format!(
                "As soon as fewer than {}% are down, runs go on by themselves: {}.",
                run.settings.limits.max_not_ready_percent,
                counted(held.len(), "pod is due", "pods are due")
            )),
            Some(Limit::NoRoom(_)) => texts.push(format!(
                "As soon as a node has room, runs go on by themselves: {}.",
                counted(held.len(), "pod is due", "pods are due")
            )),
            Some(_) => texts.push("The next run looks again.".to_owned()),
            None => {}
        }
        let planned = self.with_verdict(Verdict::Reap).collect_vec();
        if !planned.is_empty() && !self.acted() {
            let does = self.effects(&planned).into_iter().map(|(effect, count)| {
                let pods = counted(count, "pod", "pods");
                match effect {
                    Effect::Restart => format!("restarts {pods} elsewhere"),
                    Effect::Leftover => {
                        format!("clears {}", counted(count, "leftover", "leftovers"))
                    }
                    Effect::GoneForGood => format!("deletes {pods} that nothing starts again"),
                    Effect::UpToOwner => format!("deletes {pods} that the owner may start again"),
                }
            });
            let nodes = planned
                .iter()
                .filter_map(|it| it.pod.node.as_deref())
                .unique()
                .sorted_by_cached_key(|name| natural(name));
            let who = if run.settings.task.mode() == Mode::Delete {
                "The next run"
            } else {
                "A run"
            };
            texts.push(format!(
                "{who} {}. It does not wait for {}.",
                does.collect_vec().join(" and "),
                listed(&nodes.collect_vec(), NAMED)
            ));
        }
        let capped = held
            .iter()
            .filter(|it| matches!(it.limit, Some(Limit::OverCap(_))))
            .count();
        if capped > 0 {
            texts.push(format!(
                "{} left for later runs by --max-deletes.",
                counted(capped, "pod is", "pods are")
            ));
        }
        let due = self
            .judged()
            .filter_map(|it| Some((run.reaped_from(it)?, it)))
            .sorted_by_key(|(from, _)| *from)
            .collect_vec();
        if let Some((from, _)) = due.first() {
            let pods = due.iter().map(|(_, judged)| *judged).collect_vec();
            texts.push(format!(
                "From {} on, a run may take: {}.",
                clock(*from),
                named(&pods)
            ));
        }
        let alive = self
            .judged()
            .filter(|it| it.code() == ReasonCode::KubeletAlive)
            .count();
        if alive > 0 {
            texts.push(format!(
                "Runs leave {} alone for as long as the machine writes.",
                counted(alive, "pod", "pods")
            ));
        }
        if texts.is_empty() && self.with_verdict(Verdict::Manual).next().is_some() {
            texts.push("Nothing happens by itself.".to_owned());
        }
        Section::of_texts(Kind::Head, "NEXT", Tone::Plain, texts)
    }

    /// Lists what to do: at night as much as fits, the rest in the morning.
    fn steps(&self) -> [Section; 2] {
        let todos = self
            .todos
            .iter()
            .map(|(todo, about)| (todo, self.run.step(todo, about)));
        let (now, later): (Vec<_>, Vec<_>) = todos.partition(|(_, step)| step.when == When::Now);
        let is_urgent = |effect: &(Effect, usize)| effect.0 != Effect::Leftover;
        let deleted = self.gone().collect_vec();
        let is_calm = later.is_empty()
            && !deleted.is_empty()
            && !self.effects(&deleted).iter().any(is_urgent)
            && now.iter().all(|(todo, _)| **todo == Todo::PowerOff)
            && self
                .judged()
                .all(|it| it.verdict() != Verdict::Manual && it.limit.is_none());
        if is_calm {
            let text = now
                .into_iter()
                .map(|(_, step)| step.what)
                .collect_vec()
                .join(" ");
            let text = format!("Nothing is urgent. {text}");
            return [
                Section::of_texts(Kind::Steps, "NOW", Tone::Plain, [text]),
                Section::default(),
            ];
        }
        let mut numbered = now
            .into_iter()
            .chain(later)
            .enumerate()
            .map(|(place, (_, step))| {
                let line = Line::Step {
                    number: place + 1,
                    text: step.what,
                    command: step.command,
                    harms: step.harms,
                };
                (place < AT_NIGHT && step.when == When::Now, line)
            })
            .collect_vec();
        let at_night = numbered
            .iter()
            .take_while(|(at_night, _)| *at_night)
            .count();
        let section = |heading: &str, lines: Vec<(bool, Line)>| Section {
            kind: Kind::Steps,
            heading: heading.to_owned(),
            tone: Tone::Bad,
            lines: lines.into_iter().map(|(_, line)| line).collect(),
        };
        let later = numbered.split_off(at_night);
        [
            section("NOW", numbered),
            Section {
                tone: Tone::Plain,
                ..section("CAN WAIT UNTIL MORNING", later)
            },
        ]
    }

    fn never(&self) -> Section {
        let manual = |code: fn(ReasonCode) -> bool| {
            self.with_verdict(Verdict::Manual)
                .filter(|it| code(it.code()))
                .collect_vec()
        };
        let members = manual(|code| code == ReasonCode::EtcdMember);
        let alive = manual(|code| code == ReasonCode::KubeletAlive);
        let others =
            manual(|code| ![ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&code));
        let mut texts = Vec::new();
        if let Some(about) = self.todos.get(&Todo::ReachMembers) {
            texts.push(format!("power off one of {} before you know which one is dead: etcd, and with it the API server, would stop.", about.nodes.join(", ")));
        }
        if self.todos.contains_key(&Todo::ReachOne) {
            texts.push(
                "--max-not-ready-percent=100 or a force delete before you know that they are off."
                    .to_owned(),
            );
        }
        if !alive.is_empty() || !members.is_empty() {
            texts.push(
                "force-delete pods on a machine that is alive: they would run twice.".to_owned(),
            );
        }
        if !others.is_empty() {
            texts.push(format!(
                "force-delete {}, strip a finalizer, or delete a VolumeAttachment.",
                match others.len() {
                    1 => "this pod".to_owned(),
                    many => format!("these {many} pods"),
                }
            ));
        }
        Section::of_texts(Kind::Steps, "NEVER", Tone::Bad, texts)
    }

    fn down(&self) -> Section {
        let nodes = self
            .nodes()
            .into_iter()
            .filter(|(_, names)| names.len() > NAMED);
        let names = nodes
            .flat_map(|(_, names)| names)
            .map(str::to_owned)
            .collect_vec();
        list("DOWN", names.len(), None, vec![(String::new(), cut(names))])
    }

    fn held_pods(&self) -> Section {
        let is_held = |it: &&Judged| {
            matches!(
                it.limit,
                Some(Limit::MassOutage(_) | Limit::NoRoom(_) | Limit::Unread(_))
            )
        };
        by_namespace("HELD", None, self.judged().filter(is_held))
    }

    fn reaped(&self, effect: Effect, heading: &str) -> Section {
        let pods = self
            .gone()
            .filter(|it| self.effect(it) == effect)
            .collect_vec();
        let late = pods
            .iter()
            .filter(|it| self.run.detaches_late(it))
            .collect_vec();
        let note = match effect {
            Effect::Restart => match &late[..] {
                [] => None,
                [one] if pods.len() > 1 => Some(format!(
                    "({} up to 6 minutes later, once its volume is detached)",
                    full_name(&one.pod)
                )),
                _ if late.len() == pods.len() => {
                    Some("(each up to 6 minutes later, once its volume is detached)".to_owned())
                }
                _ => Some(format!(
                    "({} of them up to 6 minutes later, once the volume is detached)",
                    late.len()
                )),
            },
            Effect::Leftover => None,
            Effect::GoneForGood => Some("(no owner starts them again)".to_owned()),
            Effect::UpToOwner => {
                let owners = pods
                    .iter()
                    .filter_map(|it| Some(it.pod.owner.as_ref()?.to_string()))
                    .unique()
                    .collect_vec();
                joined(owners, ", ")
                    .map(|owners| format!("({owners}: an owner that is no controller)"))
            }
        };
        list(heading, pods.len(), note, grouped(&pods))
    }

    fn not_deleted(&self) -> Section {
        let pods = self
            .with_verdict(Verdict::Reap)
            .filter_map(|it| Some((it, self.outcome(it)?)));
        let names = pods
            .filter(|(_, code)| !code.went_well())
            .map(|(it, code)| format!("{} [{code}]", full_name(&it.pod)));
        let names = names.map(|name| (String::new(), vec![name])).collect_vec();
        Section {
            tone: Tone::Bad,
            ..list("NOT DELETED", names.len(), None, names)
        }
    }

    /// Lists the active pods that a deleted pod controls, which are deleted with it.
    fn goes_too(&self) -> Section {
        let owned = self.gone().filter_map(|it| {
            let names = self.run.facts.owned_by_pods.get(&it.pod.uid)?;
            Some((full_name(&it.pod), names.clone()))
        });
        let owned = owned.collect_vec();
        let count = owned.iter().map(|(_, names)| names.len()).sum();
        list("DELETED WITH THEIR OWNER", count, None, owned)
    }

    fn afterwards(&self) -> Section {
        let pods = self
            .with_verdict(Verdict::Reap)
            .filter(|it| !self.outcome(it).is_some_and(OutcomeCode::left_untouched));
        let notes = pods
            .filter_map(|it| Some((joined(self.run.notes(it), "; ")?, it)))
            .into_group_map();
        let notes = notes
            .into_iter()
            .sorted_by(|a, b| full_name(&a.1[0].pod).cmp(&full_name(&b.1[0].pod)));
        let texts = notes.map(|(note, pods)| format!("{}: {note}", named(&pods)));
        Section::of_texts(Kind::List, "AFTERWARDS", Tone::Plain, texts)
    }

    fn waits(&self) -> Section {
        let pods = self.with_verdict(Verdict::Wait);
        let pods = pods
            .filter(|it| {
                it.limit
                    .as_ref()
                    .is_none_or(|limit| matches!(limit, Limit::OverCap(_)))
            })
            .collect_vec();
        let names = pods.iter().map(|it| {
            let why = match self.run.reaped_from(it) {
                Some(from) => format!("until {}", clock(from)),
                None => format!("[{}]", it.code()),
            };
            format!("{} {why}", full_name(&it.pod))
        });
        let names = cut(names.collect())
            .into_iter()
            .map(|name| (String::new(), vec![name]));
        list("WAITS", pods.len(), None, names.collect())
    }

    /// Lists the pods that need you, but for those of a machine that is alive.
    fn needs_you(&self) -> Section {
        let pods = self
            .with_verdict(Verdict::Manual)
            .filter(|it| it.code() != ReasonCode::KubeletAlive);
        let pods = self.run.by_damage(pods.collect());
        let names = pods.iter().map(|it| {
            format!(
                "{}{} [{}]",
                full_name(&it.pod),
                prefixed(" ", it.copies()),
                it.code()
            )
        });
        let names = cut(names.collect())
            .into_iter()
            .map(|name| (String::new(), vec![name]));
        let heading = if self.run.plan.hold.is_some() {
            "WOULD NEED YOU"
        } else {
            "NEEDS YOU"
        };
        Section {
            tone: Tone::Bad,
            ..list(heading, pods.len(), None, names.collect())
        }
    }

    /// Lists the pods of machines that are alive; many of them by number, because none needs you by itself.
    fn alive(&self) -> Section {
        let pods = self.with_verdict(Verdict::Manual);
        let pods = pods
            .filter(|it| it.code() == ReasonCode::KubeletAlive)
            .collect_vec();
        let note = |more: &str| Some(format!("[kubelet-alive]{more}"));
        if pods.len() > FEW {
            let note = note(" (names: --output=json)");
            return by_namespace("NEEDS YOU", note, pods.into_iter());
        }
        list("NEEDS YOU", pods.len(), note(""), grouped(&pods))
    }

    fn left_alone(&self) -> Section {
        let pods = self.with_verdict(Verdict::Leave).collect_vec();
        let names = pods.iter().map(|it| {
            format!(
                "{}{} [{}]",
                full_name(&it.pod),
                prefixed(" on ", it.pod.node.as_ref()),
                it.code()
            )
        });
        let names = cut(names.collect())
            .into_iter()
            .map(|name| (String::new(), vec![name]));
        list("LEFT ALONE", pods.len(), None, names.collect())
    }

    fn foot(&self) -> Section {
        let settings = self.run.settings;
        let guard = match settings.guard() {
            GuardCode::Proved => " · the guard is proved",
            GuardCode::NotRequired => " · no guard",
            GuardCode::NotAsked => "",
        };
        let text = format!(
            "pod-reaper {} · stuck after {} · {}{guard} · why: pod-reaper explain POD · also on Ready nodes: --all",
            env!("CARGO_PKG_VERSION"),
            human_duration(settings.policy.reap_older_than),
            match settings.namespaces.to_string().as_str() {
                "all" => "all namespaces",
                filter => filter,
            }
        );
        Section::of_texts(Kind::Foot, "", Tone::Quiet, [text])
    }
}

/// Cuts a list of names that cannot hurt.
fn cut(mut names: Vec<String>) -> Vec<String> {
    let more = names.len().saturating_sub(NAMES);
    if more > 0 {
        names.truncate(NAMES);
        names.push(format!("and {more} more"));
    }
    names
}

fn list(
    heading: &str,
    count: usize,
    note: Option<String>,
    groups: Vec<(String, Vec<String>)>,
) -> Section {
    let names = Some(Line::Names(groups)).filter(|_| count > 0);
    let note = note.filter(|_| count > 0).map(Line::Text);
    Section {
        kind: Kind::List,
        heading: format!("{heading}: {count}"),
        tone: Tone::Plain,
        lines: note.into_iter().chain(names).collect(),
    }
}

/// Names pods, grouped by namespace.
fn grouped(pods: &[&Judged]) -> Vec<(String, Vec<String>)> {
    let names = pods.iter().map(|it| (&it.pod.namespace, &it.pod.name));
    let groups = names.into_group_map().into_iter().sorted();
    let groups = groups.map(|(namespace, names)| {
        let names = names.into_iter().sorted_by_cached_key(|name| natural(name));
        (namespace.clone(), names.cloned().collect())
    });
    groups.collect()
}

/// Counts pods by namespace.
fn by_namespace<'a>(
    heading: &str,
    note: Option<String>,
    pods: impl Iterator<Item = &'a Judged>,
) -> Section {
    let counts = pods.map(|it| &it.pod.namespace).counts();
    let names = counts
        .iter()
        .sorted()
        .map(|(namespace, count)| format!("{namespace} {count}"));
    list(
        heading,
        counts.values().sum(),
        note,
        vec![(String::new(), names.collect())],
    )
}
