//! A report as a page: what comes first, and what is said once for all.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use super::{
    Group, NodeEntry, PodEntry, Render, Report,
    fit::by_kind,
    page::{Block, Entry, FEW_NAMES, Page, Section, Tag, Tone, Word, first_of, paragraphs, unread},
    phrases,
};
use crate::{
    advice::{self, Step},
    decide::{ReasonCode, Verdict},
    exit::Exit,
    outcome::{OutcomeCode, ReplacementState},
    words::{after, joined, listed},
};

/// The lines of a text: `kubectl logs --tail=100` shows them all, and a warning that follows.
pub const LINES: usize = 98;
/// The lines where few nodes failed, or the breaker holds the run.
const FEW_LINES: usize = 60;
/// Nodes that are few.
const FEW_NODES: usize = 5;
/// How many cards are unfolded: they are tall.
const FEW_CARDS: usize = 3;

impl Render for Report {
    fn page(&self) -> Page {
        let is_short = self.nodes.len() <= FEW_NODES || self.breaker.is_some();
        Page {
            headline: phrases::headline(self),
            about: phrases::about(self),
            place: after("", phrases::cluster(self)),
            settings: phrases::settings(self),
            lead: lead(self),
            sections: sections(self),
            words: words(self),
        }
        .within(if is_short { FEW_LINES } else { LINES })
    }
}

/// What a person is asked about before the deletes: which pods, what goes with them, and what may still run.
pub fn question(report: &Report) -> Page {
    let asked = [Verdict::Reap.as_str(), "remember", "node-steps"];
    let mut sections = sections(report);
    sections.retain(|section| asked.contains(&section.id));
    for section in &mut sections {
        // Here only a yes or a no is asked for.
        section.blocks.retain(|block| {
            !matches!(block, Block::Steps(steps) if steps.iter().any(|step| step.command.is_some()))
        });
    }
    Page {
        sections,
        ..Page::default()
    }
    .within(LINES)
}

/// What matters most comes first.
fn sections(report: &Report) -> Vec<Section> {
    let breaker = report.breaker.as_ref();
    let hold = breaker.map(|breaker| {
        let says = [phrases::breaker(breaker)];
        let mut says = paragraphs(says.iter().chain(&breaker.in_common));
        says.extend(breaker.compare.clone().map(step));
        let heading = format!("Nothing is deleted ({})", breaker.reason);
        Section::new("breaker", heading, Tone::Bad, says).whole()
    });
    let of_pods = |verdict| {
        let pods = report
            .pods
            .iter()
            .filter(|pod| pod.verdict == verdict)
            .sorted_by_key(|pod| !phrases::went_wrong(pod));
        let rows = pods.map(|pod| Block::Entry(row(pod))).collect();
        let heading = phrases::heading(report, verdict);
        Section::new(verdict.as_str(), heading, Tone::Strong, rows)
    };
    let for_you = Section {
        blocks: for_you(report),
        tone: if breaker.is_none() {
            Tone::Bad
        } else {
            Tone::Strong
        },
        ..of_pods(Verdict::Manual)
    };
    let run_now = report.run_now.clone().map(step);
    let notices = report
        .notices
        .iter()
        .filter(|it| !it.code.is_first())
        .sorted_by_key(|notice| !notice.code.asks_for_a_look())
        .map(|notice| {
            let tone = if notice.code.asks_for_a_look() {
                Tone::Plain
            } else {
                Tone::Quiet
            };
            Block::says(tone, format!("{}  [{}]", notice.detail, notice.code))
        });
    let nodes = report.nodes.iter().map(|it| Block::Entry(node(report, it)));
    let of_all = format!(
        "Nodes not ready: {} of {}",
        report.summary.nodes_not_ready, report.summary.nodes
    );
    let sections = [
        for_you,
        Section::new(
            "run-now",
            "Once you have answered",
            Tone::Strong,
            Vec::from_iter(run_now),
        )
        .whole(),
        of_pods(Verdict::Reap),
        Section::new(
            "remember",
            "To remember once they are reaped",
            Tone::Caution,
            remember(report),
        ),
        Section::new(
            "node-steps",
            "What to do about the nodes",
            Tone::Strong,
            node_steps(report),
        ),
        of_pods(Verdict::Wait),
        of_pods(Verdict::Leave),
        Section::new("notices", "Worth knowing", Tone::Caution, notices.collect()),
    ];
    let nodes = Section::new("nodes", of_all, Tone::Strong, nodes.collect());
    hold.into_iter()
        .chain(sections)
        .chain(unread(&report.errors, &report.unseen))
        .chain([nodes])
        .collect()
}

fn step(step: Step) -> Block {
    Block::Steps(vec![step])
}

/// What is said first: what there is, and the one thing to do next.
fn lead(report: &Report) -> Vec<Block> {
    let for_you = report.breaker.is_none() && !report.groups.is_empty();
    let tone = if report.exit == Exit::Done && !for_you {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let first = report.notices.iter().filter(|it| it.code.is_first());
    let mut lead = vec![Block::says(tone, phrases::summary(report))];
    lead.extend(first.map(|notice| Block::says(Tone::Caution, &notice.detail)));
    lead.extend(phrases::next(report).map(|next| Block::labelled("Next", Tone::Strong, next)));
    lead
}

/// A pod in a line.
fn row(pod: &PodEntry) -> Entry {
    let says = phrases::sentence(pod).map(|says| Block::says(Tone::Plain, says));
    let replacement =
        phrases::replacement(pod).map(|says| Block::labelled("Replacement", Tone::Plain, says));
    let state = pod.replacement.as_ref().map(|it| it.state);
    // The outcome, else the reason; that a pod is stuck is what its section says.
    let tag = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) => Some(("outcome", outcome.as_str())),
        (None, Verdict::Reap) => None,
        (None, _) => Some(("reason", pod.reason.as_str())),
    };
    let tone = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) if outcome.is_failure() => Tone::Bad,
        _ if state.is_some_and(|state| state != ReplacementState::Back) => Tone::Caution,
        (Some(OutcomeCode::Deleted | OutcomeCode::Gone), _) => Tone::Good,
        (Some(outcome), _) if outcome.acted() => Tone::Caution,
        (_, Verdict::Wait | Verdict::Leave) => Tone::Quiet,
        (_, Verdict::Manual) => Tone::Bad,
        (_, Verdict::Reap) => Tone::Strong,
    };
    let harm = match pod.reason {
        ReasonCode::Scratch => Some("Destroys scratch"),
        ReasonCode::Answered => Some("Answered"),
        _ => None,
    };
    // Pods with which more goes are not folded with the others.
    let code = tag.map(|(_, code)| code);
    let kind = code.or(harm.map(|_| pod.reason.as_str()));
    let mut entry = Entry::of_pod(
        &pod.namespace,
        &pod.name,
        pod.owner.as_ref(),
        pod.node.as_ref(),
    );
    entry.facts.push(phrases::overdue(pod.overdue_seconds));
    Entry {
        verdict: Some(pod.verdict),
        overdue: Some(pod.overdue_seconds),
        tag: tag.map(|(of, code)| Tag { of, code }),
        kind: after("", kind) + &after(", replacement ", state),
        harm,
        tone,
        blocks: says.into_iter().chain(replacement).collect(),
        ..entry
    }
}

/// Decisions, then what else needs a person. While the breaker holds, what has no command says nothing.
fn for_you(report: &Report) -> Vec<Block> {
    let groups = report.groups.iter().sorted_by_key(|group| !group.asks());
    let is_silent = |group: &&Group| {
        let steps = &group.steps;
        report.breaker.is_some() && steps.iter().all(|step| step.command.is_none())
    };
    let (silent, cards): (Vec<_>, Vec<_>) = groups.partition(is_silent);
    let says =
        "Nothing is asked of you while the breaker holds: what is counted here may all be running.";
    let mut blocks = paragraphs((!silent.is_empty()).then_some(says));
    let mut kinds = BTreeSet::new();
    let mut card = |group: &Group| {
        let is_first = kinds.insert(report.pods[group.pods[0]].reason);
        card(report, group, is_first)
    };
    blocks.extend(cards.into_iter().map(&mut card).map(Block::Entry));
    blocks.extend(by_kind(silent.into_iter().map(card)));
    blocks
}

/// Pods that a person has to look at, with what there is to do about all of them. Where there is little room, the first of
/// its kind says why, too.
fn card(report: &Report, group: &Group, is_first: bool) -> Entry {
    let pods = group
        .pods
        .iter()
        .map(|place| &report.pods[*place])
        .collect_vec();
    let mut entry = row(pods[0]);
    let (mut blocks, mut brief) = (Vec::new(), Vec::new());
    if pods.len() > 1 {
        let names = pods.iter().map(|pod| pod.name.as_str()).collect_vec();
        let (first, others) = first_of(&names);
        blocks.push(Block::says(Tone::Plain, first));
        blocks.extend(others);
        brief.push(Block::says(Tone::Plain, listed(&names, FEW_NAMES)));
        let owners = pods.iter().filter_map(|pod| pod.owner.clone());
        entry.workloads = owners.sorted().dedup().collect();
        entry.pods = pods.len();
        entry.name = format!("{}: {} pods", pods[0].namespace, pods.len());
        entry.facts[0] = entry.workloads.iter().join(", ");
        entry.facts[2] = phrases::overdue_up_to(pods[0].overdue_seconds);
    }
    let mut why = paragraphs([&group.detail]);
    let risk = group.risk.as_ref();
    why.extend(risk.map(|risk| Block::labelled("Risk", Tone::Caution, risk)));
    blocks.extend(why.clone());
    blocks.extend((!group.steps.is_empty()).then(|| Block::Steps(group.steps.clone())));
    if group.asks() {
        let asks = group.steps.iter().filter(|step| step.asks());
        brief.push(Block::Steps(asks.cloned().collect()));
    } else {
        let see = format!("What to do: pod-reaper explain {}", phrases::name(pods[0]));
        brief.extend(why.into_iter().filter(|_| is_first));
        brief.push(Block::says(Tone::Plain, see));
    }
    Entry {
        is_card: true,
        open: report.groups.len() <= FEW_CARDS,
        harm: group.steps.iter().find_map(|step| step.harm),
        brief,
        blocks,
        log: pods.into_iter().map(phrases::for_a_person).collect(),
        ..entry
    }
}

/// What the owners of reaped pods have written down for this moment, and what their replacements wait for.
fn remember(report: &Report) -> Vec<Block> {
    let mut notes = BTreeMap::<_, Vec<_>>::new();
    for pod in &report.pods {
        if let Some(note) = &pod.note {
            notes.entry(note).or_default().push(phrases::name(pod));
        }
    }
    notes
        .into_iter()
        .flat_map(|(note, pods)| {
            let (names, rest) = first_of(&pods);
            let says = Block::says(Tone::Plain, format!("{names}: {note}"));
            [says].into_iter().chain(rest)
        })
        .collect()
}

/// What to do about the nodes: the same for many of them is said once.
fn node_steps(report: &Report) -> Vec<Block> {
    let cut_off = phrases::to_power_off(report);
    let (names, rest) = first_of(&cut_off);
    let which = match cut_off.len() {
        0 => None,
        1 => Some(names),
        _ => Some(format!("one of {names}")),
    };
    let first = which.map(|which| step(advice::power_off(&which)));
    let steps = report
        .nodes
        .iter()
        .flat_map(|node| {
            node.steps
                .iter()
                .filter(|step| **step != advice::power_off(&node.name))
        })
        .cloned()
        .map(step);
    first.into_iter().chain(rest).chain(steps).collect()
}

/// A node. Where many fail, they mostly do in one way, to the minute.
fn node(report: &Report, node: &NodeEntry) -> Entry {
    let minutes = node.not_ready_seconds.map(|time| time / 60 * 60);
    let lives = !node.signs_of_life.is_empty();
    let leaf = joined(&node.leaf_marks, ", ")
        .map(|marks| Block::says(Tone::Caution, format!("A leaf node, by its {marks}.")));
    let volumes = node.volume_attachments.iter();
    let volumes = volumes.map(|it| it.volume.as_ref().unwrap_or(&it.name));
    let attached = joined(volumes, ", ")
        .map(|names| Block::says(Tone::Quiet, format!("Volumes still attached: {names}.")));
    Entry {
        name: node.name.clone(),
        facts: vec![
            phrases::node(node, report.judged_at),
            phrases::terminating(node),
        ],
        node: Some(node.name.clone()),
        kind: [
            phrases::state(node, minutes),
            after("; ", leaf.as_ref().map(|_| "leaf nodes")),
            after("; ", lives.then_some("with signs of life")),
        ]
        .concat(),
        blocks: leaf.into_iter().chain(attached).collect(),
        ..Entry::default()
    }
}

/// What the codes of the report mean.
fn words(report: &Report) -> Vec<Word> {
    let pods = || report.pods.iter();
    let of_breaker = report.breaker.iter().map(|breaker| breaker.reason);
    let reasons = pods()
        .map(|pod| pod.reason)
        .chain(of_breaker)
        .sorted()
        .dedup()
        .map(|code| ("reason", code.as_str(), code.means(), code.advice()));
    let outcomes = pods()
        .filter_map(|pod| pod.outcome)
        .sorted()
        .dedup()
        .map(|code| ("outcome", code.as_str(), code.means(), ""));
    let states = pods()
        .filter_map(|pod| Some(pod.replacement.as_ref()?.state))
        .sorted()
        .dedup()
        .map(|state| ("replacement", state.as_str(), state.means(), ""));
    reasons
        .chain(outcomes)
        .chain(states)
        .map(|(of, code, means, advice)| Word {
            of,
            code,
            means,
            advice,
        })
        .collect()
}
