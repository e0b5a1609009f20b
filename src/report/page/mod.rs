//! Lays a run's report out for people: what is down, what was done, which data is at risk, what
//! happens by itself, what to do, and then the lists. The worst comes first.

mod head;
mod lists;

use itertools::Itertools as _;

use self::lists::Effect;
use super::{
    NAMED,
    document::{Document, Kind, Line, Section, Tone},
    notices,
    record::{Damage, RunRecord, day, is_local},
    state::State,
    todo::{About, Todos, Urgency, fill},
};
use crate::{
    exit::Exit,
    judge::{Judged, Limit, ReasonCode, Verdict},
    settings::{GuardCode, Mode},
    words::{counted, human_duration, joined, listed, prefixed},
};

/// The most steps under NOW, unless more would harm if they were late.
const AT_NIGHT: usize = 3;

/// A run with everything that the document says about it.
struct Page<'a> {
    run: &'a RunRecord<'a>,
    /// Every Terminating pod that was looked at, the worst damage first.
    pods: Vec<&'a Judged>,
    /// The nodes that are not Ready, or gone, the most urgent first.
    down: Vec<(State<'a>, Vec<&'a str>)>,
    todos: Todos<'a>,
}

/// Returns the document of a run.
pub fn document(run: &RunRecord<'_>) -> Document {
    let page = Page {
        run,
        pods: run.by_damage(),
        down: run.down(),
        todos: run.todos(),
    };
    let worth_knowing = |heading, texts| Section::of_texts(Kind::List, heading, Tone::Plain, texts);
    let mut sections = page.head();
    sections.extend(page.steps());
    sections.push(run.never(&page.pods));
    sections.extend(page.lists());
    sections.push(worth_knowing("WORTH KNOWING", notices::of_run(run)));
    sections.push(Section::not_seen(&run.facts.unseen));
    sections.push(page.foot());
    Document {
        title: page.title(),
        headline: page.headline(),
        about: page.about(),
        sections,
    }
    .without_empty()
}

impl<'a> Page<'a> {
    /// Lists the pods of which `is` holds, with their nodes.
    fn pods(&self, is: impl Fn(&Judged) -> bool) -> About<'a> {
        About::of(self.pods.iter().copied().filter(|it| is(it)).collect())
    }

    fn with_code(&self, code: ReasonCode) -> About<'a> {
        self.pods(|it| it.code() == code)
    }

    /// Reports whether the run deleted a pod, or tried to.
    fn acted(&self) -> bool {
        let mut outcomes = self.run.outcomes.values();
        outcomes.any(|outcome| outcome.code().acted())
    }

    fn title(&self) -> String {
        let named = |is_leaf: bool, what: &str| {
            let nodes = self.down.iter().filter(|(state, _)| {
                *state != State::Gone && matches!(state, State::Kosmos(_) | State::Leaf) == is_leaf
            });
            let names = nodes.flat_map(|(_, names)| names).collect_vec();
            (!names.is_empty()).then(|| format!("{} {what}", listed(&names, NAMED)))
        };
        let needs = self.pods(|it| it.verdict() == Verdict::Manual);
        let parts = [
            named(false, "down"),
            named(true, "cut off"),
            self.local(Damage::NoOtherReady)
                .say("<count> without another Ready"),
            needs.say("<count> need you"),
        ];
        let parts = joined(parts.into_iter().flatten(), " · ");
        parts.unwrap_or_else(|| "no pod needs you".to_owned()) + &prefixed(" · ", self.place())
    }

    fn headline(&self) -> String {
        let (run, facts) = (self.run, &self.run.facts);
        let supposed = joined(run.settings.task.suppose_dead(), ", ");
        let only_these = supposed.is_some();
        let supposed = supposed.map(|names| format!("IF {names} HAD DIED:"));
        let mut said = Vec::from_iter(supposed);
        said.extend(run.history.needing_you().map(|node| {
            let at = node.now.ready_since.map(day);
            format!(
                "{} CAME BACK{}, NOT REBOOTED.",
                node.noted.node,
                prefixed(" AT ", at)
            )
        }));
        said.extend(
            self.down
                .iter()
                .map(|(state, names)| run.says(state, names)),
        );
        let not_ready = self.down.iter().filter(|(state, _)| *state != State::Gone);
        let not_ready = not_ready.map(|(_, names)| names.len()).sum::<usize>();
        said.push(
            match (not_ready, facts.node_count.saturating_sub(not_ready)) {
                _ if only_these => "Pods of other nodes were not judged.".to_owned(),
                (0, 1) => "THE ONLY NODE IS READY.".to_owned(),
                (0, all) => format!("ALL {all} NODES ARE READY."),
                (_, 0) => "No other node is Ready.".to_owned(),
                (_, ready) => counted(ready, "other node is Ready.", "other nodes are Ready."),
            },
        );
        let hang = self.pods(|it| run.hangs(it));
        said.extend(hang.say("PODS THAT HANG ON READY NODES: <count>."));
        if self.pods.is_empty() && run.settings.unmatched(facts).is_none() {
            said.push(if !facts.errors.is_empty() {
                "No pod that could be read is stuck.".to_owned()
            } else if run.settings.namespaces.selects_all() {
                "No pod is stuck.".to_owned()
            } else {
                "No pod is stuck in the namespaces that were selected.".to_owned()
            });
        }
        said.join(" ")
    }

    fn place(&self) -> Option<&'a String> {
        let named = self.run.settings.cluster_name.as_ref();
        named.or(self.run.facts.cluster_name.as_ref())
    }

    fn about(&self) -> String {
        let at = day(self.run.facts.now);
        let place = prefixed(" ", self.place());
        let exit = match self.run.exit() {
            Exit::Done => String::new(),
            exit => format!(", exit {}", exit.code()),
        };
        let settings = self.run.settings;
        let file = settings.task.snapshot().filter(|file| file != "-");
        let file = prefixed(" of ", file);
        match settings.task.mode() {
            Mode::Snapshot => format!("AUDIT{file}{place} at {at}{exit}"),
            Mode::DryRun => format!("DRY RUN{place} {at}, nothing was changed{exit}"),
            Mode::Delete if self.acted() => format!("RUN{place} {at}{exit}"),
            Mode::Delete => format!("RUN{place} {at}, nothing was changed{exit}"),
        }
    }

    /// Lists what to do: at night as much as fits, the rest in the morning.
    fn steps(&self) -> [Section; 2] {
        let steps = self
            .todos
            .iter()
            .map(|(todo, about)| self.run.step(todo, about));
        // A step that harms if it is late is never left for the morning.
        let cannot_wait = self.todos.iter();
        let cannot_wait = cannot_wait.filter(|(todo, _)| todo.urgency <= Urgency::PowerOff);
        let most = AT_NIGHT.max(cannot_wait.count());
        let [now, mut later] = Section::of_steps("NOW", most, steps);
        later.lines.splice(0..0, self.can_wait().map(Line::Text));
        if later.lines.is_empty() && !now.lines.is_empty() {
            later.lines.push(Line::Text("Nothing can wait.".to_owned()));
        }
        [now, later]
    }

    /// Says whether the night can pass without anybody who acts. Each sentence names the field that proves it
    /// in a comment.
    fn can_wait(&self) -> impl Iterator<Item = String> {
        let only = |expected: &[Urgency]| {
            let urgencies = self.todos.iter().map(|(todo, _)| todo.urgency);
            let mut urgent = urgencies.filter(|urgency| *urgency < Urgency::GiveUp);
            urgent.all(|urgency| expected.contains(&urgency))
        };
        let suspended = self.run.limit().map(|limit| match limit {
            Limit::MassOutage(_) => " once the CronJob is suspended",
            _ => "",
        });
        let suspended =
            suspended.filter(|_| only(&[Urgency::Reach, Urgency::Repair, Urgency::Otherwise]));
        // A pod that waits may have data: its storage was not read.
        let may_have_data = |it: &&Judged| {
            let is_unread = it.storage.is_none() && it.verdict() == Verdict::Wait;
            is_unread || is_local(it) || self.run.detaches_late(it)
        };
        let mut todos = self.todos.iter();
        let only_containers = todos.any(|(todo, _)| todo.urgency == Urgency::PowerOff)
            && only(&[Urgency::PowerOff])
            && !self.pods.iter().any(may_have_data);
        let is_leftover =
            |it: &&Judged| it.verdict() == Verdict::Leave || self.effect(it) == Effect::Leftover;
        let all_leftovers =
            self.run.settings.namespaces.selects_all() && self.pods.iter().all(is_leftover);
        let of_containers = if all_leftovers {
            "Nothing is urgent."
        } else {
            "All of it, if it does no harm that old containers run on until then."
        };
        let texts = [
            // The members of etcd on Ready nodes, by role or static pod, are fewer than a majority.
            self.with_code(ReasonCode::EtcdMember)
                .say("Not etcd: if one more of its members fails, the API server may stop."),
            // The count of NotReady nodes, or of those with room.
            suspended.map(|suspended| format!("All of it{suspended}, if you can do without what ran on these nodes.")),
            // Ready is False, or a lease was renewed.
            self.pods(|it| it.code() == ReasonCode::KubeletAlive && only(&[Urgency::Repair, Urgency::Otherwise]))
                .say("All of it, if <pods> still works: no run deletes pods of a machine while it gives a sign of life."),
            // No VolumeAttachment of a pod, and no local volume.
            only_containers.then(|| of_containers.to_owned()),
        ];
        texts.into_iter().flatten()
    }

    fn foot(&self) -> Section {
        let settings = self.run.settings;
        let guard = match settings.guard() {
            GuardCode::Proved => " · the guard is proved",
            GuardCode::NotRequired => " · no guard",
            GuardCode::NotAsked => "",
        };
        let also = match settings.task.mode() {
            Mode::Delete => "",
            Mode::DryRun | Mode::Snapshot => " · also on Ready nodes: --all",
        };
        let text = format!(
            "pod-reaper {} · stuck after {} · {}{guard} · why: pod-reaper explain POD{also}",
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

impl RunRecord<'_> {
    /// Says what must not be done to these pods and their nodes.
    pub(super) fn never(&self, pods: &[&Judged]) -> Section {
        let of = |is: &dyn Fn(&Judged) -> bool| {
            About::of(pods.iter().copied().filter(|it| is(it)).collect())
        };
        let is_alive =
            |it: &Judged| [ReasonCode::EtcdMember, ReasonCode::KubeletAlive].contains(&it.code());
        let members = of(&|it| it.code() == ReasonCode::EtcdMember);
        let needs_you = |it: &Judged| it.verdict() == Verdict::Manual && !is_alive(it);
        // The steps for these reasons delete the pod by hand.
        let by_hand = [ReasonCode::HostPath, ReasonCode::OwnerKind];
        let is_kept = |it: &Judged| {
            let mut codes = it.reason.asks.iter().copied().chain([it.code()]);
            needs_you(it) && !codes.any(|code| by_hand.contains(&code))
        };
        let moves_late = of(&|it| {
            let node = self.facts.known_node(&it.pod);
            it.verdict() == Verdict::Reap && self.detaches_late(it) && !self.off(node).is_empty()
        });
        let is_outage = matches!(self.limit(), Some(Limit::MassOutage(_)));
        let names = members.nodes.join(" or ");
        let texts = [
            members.say(fill("power off <names> before you know that it is dead: etcd, and with it the API server, would stop.", &[&names])),
            is_outage.then(|| "set --max-not-ready-percent=100 or force-delete a pod before you know that these nodes are off.".to_owned()),
            of(&is_alive).say("force-delete pods on a machine that is alive: they would run twice."),
            of(&is_kept).say("force-delete pods that need you: <pods>."),
            of(&needs_you)
                .say("strip finalizers, or delete VolumeAttachments.")
                .or_else(|| moves_late.say("delete a VolumeAttachment: if <nodes> is still on, two machines would write to its volume.")),
        ];
        let texts = joined(texts.into_iter().flatten(), " Never ");
        Section::of_texts(Kind::Steps, "NEVER", Tone::Bad, texts)
    }
}
