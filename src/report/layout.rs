//! Lays a report out as a page: the order of its sections, and what is said once for many pods.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use super::{
    Group, NodeEntry, PodEntry, Render, Report,
    fit::by_kind,
    page::{
        Block, Entry, FEW_NAMES, Page, Section, Tag, Tone, Word, advised, first_of, paragraphs,
        unread,
    },
    phrases,
};
use crate::{
    advice::{self, Step},
    decide::{ReasonCode, Verdict},
    exit::Exit,
    outcome::{OutcomeCode, ReplacementState},
    words::{after, joined, listed},
};

/// The most lines of a text. `kubectl logs --tail=100` shows them all, and a warning that follows.
pub const LINES: usize = 97;
/// The most lines of a text if few nodes failed, or if the breaker holds the run.
pub(super) const FEW_LINES: usize = 59;
/// The most failed nodes that count as few.
const SHORT_PAGE_NODES: usize = 5;
/// The most rows alike that are shown one by one.
const FEW_ROWS: usize = 3;
/// The most cards that HTML shows unfolded, because they are tall.
const FEW_CARDS: usize = 3;

impl Render for Report {
    fn page(&self) -> Page {
        let is_short = self.nodes.len() <= SHORT_PAGE_NODES || self.is_held();
        Page {
            headline: phrases::headline(self),
            about: phrases::about(self),
            cluster: after("", phrases::cluster(self)),
            settings: phrases::settings(self),
            lead: lead(self),
            sections: sections(self),
            words: words(self),
        }
        .within(if is_short { FEW_LINES } else { LINES })
    }
}

/// Returns the page that a person is shown before the deletes: the pods to reap, what to remember,
/// and what to know about the nodes.
pub fn question(report: &Report) -> Page {
    let asked = [Verdict::Reap.as_str(), "remember", "node-steps"];
    let mut sections = sections(report);
    sections.retain(|section| asked.contains(&section.id));
    for section in &mut sections {
        // The person can only answer yes or no here, so no command is shown.
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

/// Lists the sections, the most important first.
fn sections(report: &Report) -> Vec<Section> {
    let breaker = report.breaker.as_ref();
    let hold = breaker.map(|breaker| {
        let why = [phrases::breaker(breaker)];
        let mut blocks = paragraphs(why.iter().chain(&report.in_common));
        blocks.extend(breaker.steps.iter().cloned().map(step));
        let of = after(" in zone ", joined(&breaker.zones, ", "));
        let heading = format!("Nothing is deleted{of} ({})", breaker.reason);
        Section::new("breaker", heading, Tone::Bad, blocks).whole()
    });
    let of_verdict = |verdict: Verdict, tone, blocks| {
        let heading = phrases::heading(report, verdict);
        Section::new(verdict.as_str(), heading, tone, blocks)
    };
    let rows = |verdict| {
        let pods = report
            .pods
            .iter()
            .filter(|pod| pod.verdict == verdict)
            .sorted_by_key(|pod| !phrases::went_wrong(pod));
        of_verdict(verdict, Tone::Strong, alike(pods.map(row), one_workload))
    };
    let urgent = if report.is_held() {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let notices = report
        .notices
        .iter()
        .filter(|notice| !notice.code.is_first())
        .sorted_by_key(|notice| !notice.code.asks_for_a_look())
        .map(|notice| {
            let tone = if notice.code.asks_for_a_look() {
                Tone::Plain
            } else {
                Tone::Quiet
            };
            Block::paragraph(tone, format!("{}  [{}]", notice.detail, notice.code))
        });
    let nodes = report.nodes.iter().map(|entry| node(report, entry));
    let nodes = alike(nodes, |entry| entry.kind.clone());
    let of_all = format!(
        "Nodes not ready: {} of {}",
        report.summary.nodes_not_ready, report.summary.nodes
    );
    let sections = [
        of_verdict(Verdict::Manual, urgent, for_you(report)),
        rows(Verdict::Reap),
        Section::new("remember", "Afterwards", Tone::Caution, remember(report)),
        Section::new(
            "node-steps",
            "What to do about the nodes",
            Tone::Strong,
            node_steps(report),
        ),
        rows(Verdict::Wait),
        rows(Verdict::Leave),
        Section::new("notices", "Worth knowing", Tone::Caution, notices.collect()),
    ];
    let in_common = report.in_common.iter().filter(|_| breaker.is_none());
    let nodes = [nodes, paragraphs(in_common)].concat();
    let nodes = Section::new("nodes", of_all, Tone::Strong, nodes);
    hold.into_iter()
        .chain(sections)
        .chain(unread(&report.errors, &report.unseen))
        .chain([nodes])
        .collect()
}

fn step(step: Step) -> Block {
    Block::Steps(vec![step])
}

/// Returns the first lines of the page: the summary, the notices that come first, and the
/// next step.
fn lead(report: &Report) -> Vec<Block> {
    let for_you = !report.is_held() && !report.groups.is_empty();
    let tone = if report.exit == Exit::Done && !for_you {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let first = report.notices.iter();
    let first = first.filter(|notice| notice.code.is_first());
    let mut lead = vec![Block::paragraph(tone, phrases::summary(report))];
    lead.extend(first.map(|notice| Block::paragraph(Tone::Caution, &notice.detail)));
    lead.extend(phrases::next(report).map(|next| Block::labelled("Next", Tone::Strong, next)));
    lead
}

/// Returns the row of a pod.
fn row(pod: &PodEntry) -> Entry {
    let mut blocks = paragraphs(phrases::sentence(pod));
    let replacement = phrases::replacement(pod);
    blocks.extend(replacement.map(|text| Block::labelled("Replacement", Tone::Plain, text)));
    let state = pod.replacement.as_ref().map(|found| found.state);
    // The outcome, else the reason. Of a pod to reap, the heading gives the reason already.
    let tag = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) => Some(("outcome", outcome.as_str())),
        (None, Verdict::Reap) => None,
        (None, _) => Some(("reason", pod.reason.as_str())),
    };
    let tag = tag.map(|(kind, code)| Tag { kind, code });
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
    // A pod that takes claims with it is not folded together with the others.
    let kind = tag
        .map(|tag| tag.code)
        .or(harm.map(|_| pod.reason.as_str()));
    let mut entry = Entry::of_pod(
        &pod.namespace,
        &pod.name,
        pod.owner.as_ref(),
        pod.node.as_ref(),
    );
    entry.columns.push(phrases::overdue(pod.overdue_seconds));
    Entry {
        verdict: Some(pod.verdict),
        overdue: Some(pod.overdue_seconds),
        tag,
        kind: after("", kind) + &after(", replacement ", state),
        harm,
        tone,
        blocks,
        ..entry
    }
}

/// Lists the groups that need a person: those that ask for an answer, then the others. While the
/// breaker holds, groups without a command are only counted.
fn for_you(report: &Report) -> Vec<Block> {
    let groups = report
        .groups
        .iter()
        .sorted_by_key(|group| !group.advice.wants_answer());
    let is_silent = |group: &&Group| {
        let steps = &group.advice.steps;
        report.is_held() && steps.iter().all(|step| step.command.is_none())
    };
    let (silent, cards): (Vec<_>, Vec<_>) = groups.partition(is_silent);
    let text =
        "Nothing is asked of you while the breaker holds: what is counted here may all be running.";
    let mut blocks = paragraphs((!silent.is_empty()).then_some(text));
    let mut kinds = BTreeSet::new();
    let mut card = |group: &Group| {
        let is_first = kinds.insert(report.pods[group.pods[0]].reason);
        card(report, group, is_first)
    };
    blocks.extend(cards.into_iter().map(&mut card).map(Block::Entry));
    blocks.extend(by_kind(silent.into_iter().map(card)));
    blocks.extend(report.run_now.clone().map(step));
    blocks
}

/// Returns the card of a group, with the steps for all of its pods. In brief, only the first card of
/// its reason says why, and a card without a question leaves its commands to the log.
fn card(report: &Report, group: &Group, is_first: bool) -> Entry {
    let pods = group
        .pods
        .iter()
        .map(|index| &report.pods[*index])
        .collect_vec();
    let mut entry = row(pods[0]);
    let (mut blocks, mut brief) = (Vec::new(), Vec::new());
    if pods.len() > 1 {
        let names = pods.iter().map(|pod| pod.name.as_str()).collect_vec();
        let (first, others) = first_of(&names);
        blocks.extend(paragraphs([first]).into_iter().chain(others));
        brief = paragraphs([listed(&names, FEW_NAMES)]);
        let owners = pods.iter().filter_map(|pod| pod.owner.clone());
        entry.workloads = owners.sorted().dedup().collect();
        entry.pods = pods.len();
        entry.name = format!("{}: {} pods", pods[0].namespace, pods.len());
        entry.columns = vec![
            entry.workloads.iter().join(", "),
            after("on ", entry.node.as_ref()),
            phrases::overdue_up_to(pods[0].overdue_seconds),
        ];
    }
    let asks = group.advice.wants_answer();
    let mut why = paragraphs([&group.detail]);
    why.extend(advised(&group.advice));
    blocks.extend(why.clone());
    if asks {
        let steps = group.advice.steps.iter().filter(|step| step.is_answer);
        brief.push(Block::Steps(steps.cloned().collect()));
    } else {
        why.retain(|block| is_first && !matches!(block, Block::Steps(_)));
        brief.extend(why);
        let explain = format!("What to do: pod-reaper explain {}", phrases::name(pods[0]));
        brief.extend(paragraphs([explain]));
    }
    Entry {
        is_card: true,
        is_open: report.groups.len() <= FEW_CARDS,
        harm: group.advice.steps.iter().find_map(|step| step.harm),
        brief,
        blocks,
        log: pods.into_iter().map(phrases::for_a_person).collect(),
        ..entry
    }
}

/// Lists `entries`, with those alike in one line if they are more than [`FEW_ROWS`]: `key` is the
/// same of such entries. What went wrong has a line of its own.
fn alike<K: Ord>(entries: impl Iterator<Item = Entry>, key: fn(&Entry) -> K) -> Vec<Block> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (place, entry) in entries.enumerate() {
        let alone = entry.is_wrong().then_some(place);
        let group = groups.entry((alone, key(&entry))).or_default();
        group.push((place, entry));
    }
    let rows = groups.into_values().flat_map(|group| {
        let (places, entries): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let blocks = if entries.len() > FEW_ROWS {
            by_kind(entries)
        } else {
            entries.into_iter().map(Block::Entry).collect()
        };
        places.into_iter().zip(blocks)
    });
    let rows = rows.sorted_by_key(|(place, _)| *place);
    rows.map(|(_, block)| block).collect()
}

/// What pods share that are one row: their fate, namespace and workload.
fn one_workload(entry: &Entry) -> impl Ord + use<> {
    (
        entry.kind.clone(),
        entry.namespace.clone(),
        entry.workloads.clone(),
    )
}

/// Lists the notes of the pods to reap; a note that several pods share is said once.
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
            [Block::about(&names, note)].into_iter().chain(rest)
        })
        .collect()
}

/// Lists the steps for the nodes; powering off is said once for all of them.
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

/// Returns the entry of a node. When many nodes fail at once, most fail in the same minute, so
/// nodes of one state and minute are of one kind.
fn node(report: &Report, node: &NodeEntry) -> Entry {
    let minutes = node.not_ready_seconds.map(|time| time / 60 * 60);
    let lives = !node.signs_of_life.is_empty();
    let leaf = joined(&node.leaf_marks, ", ")
        .map(|marks| Block::paragraph(Tone::Caution, format!("A leaf node, by its {marks}.")));
    let volumes = node.volume_attachments.iter();
    let volumes = volumes.map(|attachment| attachment.volume.as_ref().unwrap_or(&attachment.name));
    let attached = joined(volumes, ", ")
        .map(|names| Block::paragraph(Tone::Quiet, format!("Volumes still attached: {names}.")));
    Entry {
        name: node.name.clone(),
        columns: vec![
            phrases::node(node, report.judged_at),
            phrases::terminating(node),
        ],
        node: Some(node.name.clone()),
        kind: format!("nodes{}, ", after(" of ", node.zone.as_ref()))
            + &phrases::state(node, minutes)
            + &after("; ", leaf.as_ref().map(|_| "leaf nodes"))
            + &after("; ", lives.then_some("with signs of life")),
        blocks: leaf.into_iter().chain(attached).collect(),
        ..Entry::default()
    }
}

/// Explains each code in the report once.
fn words(report: &Report) -> Vec<Word> {
    let summary = &report.summary;
    let of_pods = report.pods.iter().map(|pod| pod.reason);
    let of_breaker = report.breaker.iter().map(|breaker| breaker.reason);
    let reasons = of_pods
        .chain(of_breaker)
        .sorted()
        .dedup()
        .map(|code| ("reason", code.as_str(), code.means(), code.advice()));
    let outcomes = summary
        .outcomes
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(code, _)| ("outcome", code.as_str(), code.means(), ""));
    let states = summary
        .replacements
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(state, _)| ("replacement", state.as_str(), state.means(), ""));
    reasons
        .chain(outcomes)
        .chain(states)
        .map(|(kind, code, means, advice)| Word {
            kind,
            code,
            means,
            advice,
        })
        .collect()
}
