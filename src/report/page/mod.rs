//! Lays a run's report out for people: what is down, what was done, which data is at risk, what
//! happens by itself, what to do, and then the lists. The worst comes first.

mod head;
mod lists;

use itertools::Itertools as _;

use super::{
    NAMED,
    document::{Document, Kind, Line, Section, Tone},
    notices,
    record::{Damage, RunRecord, day},
    state::State,
    todo::{About, Step, Todos, When, fill},
};
use crate::{
    exit::Exit,
    history::NodeState,
    judge::{Judged, Limit, ReasonCode, Verdict},
    settings::{GuardCode, Mode},
    words::{counted, human_duration, joined, listed, prefixed},
};

/// The most steps of a page.
const STEPS: usize = 12;

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
            let (name, at) = (&node.noted.node, node.now.ready_since.map(day));
            match node.now.state {
                NodeState::AnotherMachine => format!("ANOTHER MACHINE HAS THE NAME {name}."),
                _ => format!("{name} CAME BACK{}, NOT REBOOTED.", prefixed(" AT ", at)),
            }
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

    /// Lists what to do, as much as fits: what cannot wait is first.
    fn steps(&self) -> [Section; 2] {
        let steps = self.todos.iter();
        let mut steps = steps
            .map(|(todo, about)| self.run.step(todo, about))
            .collect_vec();
        if steps.len() > STEPS {
            let left_over = steps.split_off(STEPS - 1);
            let urgent = left_over
                .iter()
                .filter(|step| step.when == When::Now)
                .count();
            let what = format!(
                "Then run pod-reaper again, and do what is left over: steps for now {urgent}, others {}. For one pod: pod-reaper explain POD.",
                left_over.len() - urgent
            );
            let when = if urgent > 0 { When::Now } else { When::Later };
            steps.push(Step {
                when,
                what,
                command: None,
                harms: None,
            });
        }
        let [mut now, later] = Section::of_steps("NOW", steps);
        if now.lines.is_empty() && self.down.iter().any(|(state, _)| *state != State::Gone) {
            let waits = if later.lines.is_empty() {
                ""
            } else {
                " The steps below can wait until working hours."
            };
            now.lines
                .push(Line::Text(format!("Nothing, as far as was read.{waits}")));
        }
        [now, later]
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
        let option = match self.limit() {
            Some(Limit::MassOutage(_)) => Some("--max-not-ready-percent=100"),
            Some(Limit::FailedTogether { .. }) => Some("--max-failed-together=0"),
            _ => None,
        };
        let names = members.nodes.join(" or ");
        let texts = [
            members.say(fill("power off <names> before you know that it is dead: etcd, and with it the API server, would stop.", &[&names])),
            option.map(|option| format!("set {option} or force-delete a pod before you know that these nodes are off.")),
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
