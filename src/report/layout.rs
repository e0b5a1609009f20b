//! A report as a page: what comes first, what is folded, and what is said once for all.
//!
//! A text is for one look. So each section gets the lines that those before it, which matter more, leave; and every section
//! is sure of a few.

use std::collections::{BTreeMap, BTreeSet};

use super::page::{
    self, Block, Entry, FOLD_LINES, Key, NAMES, Page, Room, Section, Tag, Tone, Word, by_kind,
    fill, first_of, fit,
};
use super::phrases;
use super::{Group, NodeEntry, PodEntry, Report, text, timeline};
use crate::{
    advice::{self, Step},
    decide::{ReasonCode, Verdict},
    exit::Exit,
    outcome::OutcomeCode,
    words::{clean, counted},
};

/// The lines of a text: `kubectl logs --tail=100` shows them all, and a warning that follows.
const LINES: usize = 98;
/// The lines where few nodes failed, or the breaker holds the run.
const FEW_LINES: usize = 60;
/// Nodes that are few.
const FEW_NODES: usize = 5;
/// How many names are one line.
const FEW_NAMES: usize = 3;
/// How many cards are unfolded: they are tall.
const FEW_CARDS: usize = 3;

pub fn page(report: &Report) -> Page {
    let mut page = Page {
        headline: phrases::headline(report),
        about: phrases::about(report),
        place: report
            .cluster_name
            .clone()
            .or(report.cluster.clone())
            .unwrap_or_default(),
        settings: phrases::settings(report),
        lead: lead(report),
        words: words(report),
        judged_at: report.judged_at,
        ..Page::default()
    };
    let about = Block::says(Tone::Quiet, format!("{} {}", page.about, page.settings));
    let few = report.nodes.len() <= FEW_NODES || report.breaker.is_some();
    let lines = if few { FEW_LINES } else { LINES };
    let fixed = 2 * text::lines(&page.lead) + text::lines(&[about]) + 1;
    let mut unnamed = Vec::new();
    page.sections = fill(sections(report, &mut unnamed), lines.saturating_sub(fixed));
    // Notes are for this run alone, and what was not read or not evicted may be down: nothing else may name them.
    let logged = page.sections.iter();
    let logged = logged.filter(|section| LOGGED.contains(&section.id));
    for block in logged.flat_map(|section| &section.blocks) {
        if let Block::Fold(fold) = block {
            said(&fold.blocks, &mut unnamed);
        }
    }
    let quiet = report.notices.iter();
    let quiet = quiet.filter(|notice| !notice.code.asks_for_a_look());
    let quiet = quiet
        .map(|notice| clean(&notice.detail))
        .collect::<Vec<_>>();
    unnamed.retain(|line| !quiet.iter().any(|quiet| line.starts_with(quiet)));
    Page { unnamed, ..page }
}

fn said(blocks: &[Block], lines: &mut Vec<String>) {
    for block in blocks {
        match block {
            Block::Says { text, .. } => lines.push(clean(text)),
            Block::Fold(fold) => said(&fold.blocks, lines),
            Block::Steps { .. } | Block::Entry(_) => {}
        }
    }
}

/// The sections whose folded lines go to the log.
const LOGGED: [&str; 3] = ["remember", "notices", "unread"];

/// What matters most comes first.
fn sections<'a>(report: &'a Report, unnamed: &'a mut Vec<String>) -> Vec<(Section, Room<'a>)> {
    let paragraphs = |tone, says: Vec<String>| {
        let says = says.into_iter().map(|says| Block::says(tone, says));
        says.collect::<Vec<_>>()
    };
    let mut hold = Vec::new();
    let mut held = String::new();
    if let Some(breaker) = &report.breaker {
        held = format!("Nothing is deleted ({})", breaker.reason);
        hold = paragraphs(Tone::Plain, phrases::breaker(breaker));
        hold.extend(breaker.compare.clone().map(loose));
    }
    let notices = report
        .notices
        .iter()
        .filter(|notice| !notice.code.is_first());
    let mut notices = notices.collect::<Vec<_>>();
    notices.sort_by_key(|notice| !notice.code.asks_for_a_look());
    let notices = notices
        .iter()
        .map(|it| format!("{}  [{}]", it.detail, it.code));
    let notices = paragraphs(Tone::Plain, notices.collect());
    let of_pods = |verdict| {
        let mut pods = phrases::of(report, verdict);
        pods.sort_by_key(|pod| !phrases::went_wrong(pod));
        let rows = pods.into_iter().map(|pod| Block::Entry(row(pod))).collect();
        let heading = phrases::heading(report, verdict);
        let section = Section::new(Verdict::as_str(verdict), heading, Tone::Strong, rows);
        (section, Room::Kinds)
    };
    let groups = report
        .groups
        .iter()
        .map(|group| Block::Entry(card(report, group, Detail::Folded)));
    let heading = phrases::heading(report, Verdict::Manual);
    let alarm = if report.breaker.is_some() {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let for_you = Section::new(Verdict::Manual.as_str(), heading, alarm, groups.collect());
    let nodes = report
        .nodes
        .iter()
        .map(|it| Block::Entry(node(report, it)))
        .collect::<Vec<_>>();
    let nodes = Section::new("nodes", phrases::nodes(report), Tone::Strong, nodes);
    let plain =
        |id, heading: &str, tone, blocks| (Section::new(id, heading, tone, blocks), Room::First);
    let parts = [
        (Section::new("breaker", held, Tone::Bad, hold), Room::All),
        (
            for_you,
            Room::Own(Box::new(|_, lines| cards(report, lines, unnamed))),
        ),
        (
            Section::new(
                "run-now",
                "Once you have answered",
                Tone::Strong,
                report.run_now.clone().map(loose).into_iter().collect(),
            ),
            Room::All,
        ),
        of_pods(Verdict::Reap),
        plain(
            "remember",
            "To remember once they are reaped",
            Tone::Caution,
            remember(report),
        ),
        plain(
            "node-steps",
            "What to do about the nodes",
            Tone::Strong,
            node_steps(report),
        ),
        of_pods(Verdict::Wait),
        of_pods(Verdict::Leave),
        plain("notices", "Worth knowing", Tone::Caution, notices),
    ];
    let unread = page::unread(&report.errors, &report.unseen);
    let parts = parts.into_iter().chain(unread);
    let by_state = Room::Own(Box::new(|nodes, lines| by_state(report, nodes, lines)));
    parts.chain([(nodes, by_state)]).collect()
}

fn loose(step: Step) -> Block {
    Block::Steps {
        ordered: false,
        steps: vec![step],
        skipped: 0,
    }
}

/// What is said first: what there is, and the one thing to do next.
fn lead(report: &Report) -> Vec<Block> {
    let for_you = report.breaker.is_none() && !report.groups.is_empty();
    let tone = if report.exit == Exit::Done && !for_you {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let first = report
        .notices
        .iter()
        .filter(|notice| notice.code.is_first());
    let mut lead = vec![Block::says(tone, phrases::summary(report))];
    lead.extend(first.map(|notice| Block::says(Tone::Caution, &notice.detail)));
    lead.extend(phrases::next(report).map(|next| Block::labelled("Next", Tone::Strong, next)));
    lead
}

/// A pod in a line.
fn row(pod: &PodEntry) -> Entry {
    let says = phrases::sentence(pod).map(|says| Block::says(Tone::Plain, says));
    let replacement = phrases::replacement(pod);
    let replacement = replacement.map(|says| Block::labelled("Replacement", Tone::Plain, says));
    Entry {
        name: format!("{}/{}", pod.namespace, pod.name),
        facts: vec![
            phrases::owner(&pod.name, pod.owner.as_ref()),
            pod.node
                .as_ref()
                .map(|node| format!("on {node}"))
                .unwrap_or_default(),
            phrases::overdue(pod.overdue_seconds),
        ],
        tag: tag(pod),
        harm: match pod.reason {
            ReasonCode::Scratch => Some("Destroys scratch"),
            ReasonCode::Answered => Some("Answered"),
            _ => None,
        },
        tone: tone(pod),
        key: Key {
            namespace: Some(pod.namespace.clone()),
            verdict: Some(pod.verdict),
            node: pod.node.clone(),
            overdue: Some(pod.overdue_seconds),
            workloads: pod
                .owner
                .iter()
                .map(|owner| format!("{}/{}", owner.kind, owner.name))
                .collect(),
            replacement: pod.replacement.as_ref().map(|it| it.state.as_str()),
            pods: 1,
        },
        blocks: says.into_iter().chain(replacement).collect(),
        ..Entry::default()
    }
}

fn tone(pod: &PodEntry) -> Tone {
    match (pod.outcome, pod.verdict) {
        (Some(OutcomeCode::Deleted | OutcomeCode::Gone), _) => Tone::Good,
        (Some(outcome), _) if outcome.is_failure() => Tone::Bad,
        (Some(outcome), _) if outcome.acted() => Tone::Caution,
        (_, Verdict::Wait | Verdict::Leave) => Tone::Quiet,
        (_, Verdict::Manual) => Tone::Bad,
        (_, Verdict::Reap) => Tone::Strong,
    }
}

/// The outcome, else the reason; that a pod is stuck is what its section says.
fn tag(pod: &PodEntry) -> Option<Tag> {
    let (of, code) = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) => ("outcome", outcome.as_str()),
        (None, Verdict::Reap) => return None,
        (None, _) => ("reason", pod.reason.as_str()),
    };
    Some(Tag { of, code })
}

/// How much a text says of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Nothing: it is counted.
    Folded,
    /// Its name, and the commands by which a person answers.
    Answers,
    /// Why, and what is at risk, too.
    Why,
    Whole,
}

impl Detail {
    /// How many pods it names.
    fn names(self) -> usize {
        match self {
            Self::Folded => 0,
            Self::Answers => FEW_NAMES,
            Self::Why | Self::Whole => NAMES,
        }
    }
}

/// Pods that a person has to look at, with what there is to do about all of them.
fn card(report: &Report, group: &Group, detail: Detail) -> Entry {
    let pods = group
        .pods
        .iter()
        .map(|place| &report.pods[*place])
        .collect::<Vec<_>>();
    let mut entry = row(pods[0]);
    let mut blocks = Vec::new();
    if pods.len() > 1 {
        let owners = pods.iter().filter_map(|pod| pod.owner.as_ref());
        let owners = owners.map(|owner| format!("{}/{}", owner.kind, owner.name));
        let owners = owners.collect::<BTreeSet<_>>();
        entry.facts[0] = match owners.len() {
            0 | 1 => owners.iter().cloned().collect(),
            count => format!("{count} workloads"),
        };
        entry.key.workloads = owners.into_iter().collect();
        entry.name = format!("{}: {} pods", pods[0].namespace, pods.len());
        entry.facts[2] = entry.facts[2].replace("overdue ", "overdue up to ");
        let names = pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>();
        let (names, rest) = first_of(&names, detail.names());
        blocks.push(Block::says(Tone::Plain, names));
        blocks.extend(rest);
    }
    let mut why = vec![Block::says(Tone::Plain, &group.detail)];
    why.extend(
        group
            .risk
            .iter()
            .map(|risk| Block::labelled("Risk", Tone::Caution, risk)),
    );
    let steps = group.steps.clone();
    let ordered = steps.len() > 1;
    let looks = steps.iter().position(Step::asks).unwrap_or(steps.len());
    let mut skipped = looks;
    match detail {
        Detail::Whole => {
            blocks.extend(why);
            skipped = 0;
        }
        Detail::Why => {
            blocks.extend(why);
            let first = if looks < steps.len() { " first" } else { "" };
            let says = format!(
                "{}{first}: see pod-reaper explain {}",
                counted(looks, "step", "steps"),
                phrases::name(pods[0])
            );
            blocks.extend((looks > 0).then(|| Block::fold(says, Vec::new())));
        }
        Detail::Answers | Detail::Folded => blocks.push(Block::fold("", why)),
    }
    let steps = Block::Steps {
        ordered,
        steps,
        skipped,
    };
    blocks.extend((!group.steps.is_empty()).then_some(steps));
    entry.key.pods = pods.len();
    Entry {
        is_card: true,
        open: detail == Detail::Whole && report.groups.len() <= FEW_CARDS,
        harm: group.steps.iter().find_map(|step| step.harm),
        blocks,
        ..entry
    }
}

/// As much of what needs a person as fits: first the answers, of each reason at least one, then why. Pods that a text does
/// not name go into `unnamed`.
fn cards(report: &Report, lines: usize, unnamed: &mut Vec<String>) -> Vec<Block> {
    let groups = &report.groups;
    let reason = |place: usize| report.pods[groups[place].pods[0]].reason;
    let entry = |place: usize, detail| card(report, &groups[place], detail);
    let is_first = |place: &usize| !(0..*place).any(|other| reason(other) == reason(*place));
    let (first, others) = (0..groups.len()).partition::<Vec<_>, _>(is_first);
    let asks = |place: &usize| groups[*place].steps.iter().any(Step::asks);
    let decisions = others.into_iter().filter(asks).collect::<Vec<_>>();
    let mut first = first;
    first.sort_by_key(|place| !asks(place));
    // While the breaker holds, what has no command says nothing.
    let mut blocks = Vec::new();
    if report.breaker.is_some() {
        let says =
            "Nothing is asked of you about these while the breaker holds: they may all be running.";
        blocks.push(Block::says(Tone::Plain, says));
        first.retain(|place| {
            groups[*place]
                .steps
                .iter()
                .any(|step| step.command.is_some())
        });
    }
    let height = |place: usize, detail| match detail {
        Detail::Folded => 0,
        _ => text::lines(&[Block::Entry(entry(place, detail))]),
    };
    let within = |mut left: usize| {
        let mut details = vec![Detail::Folded; groups.len()];
        for (detail, places) in [
            (Detail::Answers, &first),
            (Detail::Why, &first),
            (Detail::Answers, &decisions),
            (Detail::Whole, &first),
            (Detail::Why, &decisions),
            (Detail::Whole, &decisions),
        ] {
            for place in places.iter().copied() {
                let more = height(place, detail).saturating_sub(height(place, details[place]));
                if let Some(rest) = left.checked_sub(more) {
                    (details[place], left) = (detail, rest);
                }
            }
        }
        details
    };
    let mut details = within(lines.saturating_sub(blocks.len()));
    if details.contains(&Detail::Folded) {
        // That takes some lines, too, and says where it is to be found.
        details = within(lines.saturating_sub(FOLD_LINES + 1));
    }
    let (folded, shown) =
        (0..groups.len()).partition::<Vec<_>, _>(|place| details[*place] == Detail::Folded);
    blocks.extend(
        shown
            .into_iter()
            .map(|place| Block::Entry(entry(place, details[place]))),
    );
    let folded = folded
        .into_iter()
        .map(|place| Block::Entry(entry(place, Detail::Folded)));
    let left = lines.saturating_sub(text::lines(&blocks) + 1);
    blocks.extend(by_kind(folded.collect(), left));
    for (group, detail) in groups.iter().zip(details) {
        let pods = group.pods.iter().skip(detail.names());
        let pods = pods.map(|place| phrases::for_a_person(&report.pods[*place]));
        unnamed.extend(pods.map(|line| clean(&line)));
    }
    if !unnamed.is_empty() {
        let says = "The log, at warn, names each pod that is folded here, with its command; --output=markdown has all.";
        blocks.push(Block::fold(says, Vec::new()));
    }
    blocks
}

/// What the owners of reaped pods have written down for this moment, and what their replacements wait for.
fn remember(report: &Report) -> Vec<Block> {
    let mut notes = BTreeMap::<&str, Vec<String>>::new();
    for pod in phrases::of(report, Verdict::Reap) {
        if let Some(note) = &pod.note {
            notes.entry(note).or_default().push(phrases::name(pod));
        }
    }
    let says = notes.into_iter().flat_map(|(note, pods)| {
        let (names, rest) = first_of(&pods, NAMES);
        [Block::says(Tone::Plain, format!("{names}: {note}"))]
            .into_iter()
            .chain(rest)
    });
    says.collect()
}

/// What to do about the nodes: the same for many of them is said once.
fn node_steps(report: &Report) -> Vec<Block> {
    let cut_off = phrases::to_power_off(report);
    let mut blocks = Vec::new();
    if let [first, more @ ..] = cut_off.as_slice() {
        let (names, rest) = first_of(&cut_off, NAMES);
        let which = if more.is_empty() {
            (*first).to_owned()
        } else {
            format!("one of {names}")
        };
        blocks.push(loose(advice::power_off(&which)));
        blocks.extend(rest);
    }
    let steps = report.nodes.iter().flat_map(|node| {
        node.steps
            .iter()
            .filter(|step| **step != advice::power_off(&node.name))
    });
    blocks.extend(steps.cloned().map(loose));
    blocks
}

/// A node on the time axis.
fn node(report: &Report, node: &NodeEntry) -> Entry {
    let mut blocks = Vec::new();
    if !node.leaf_marks.is_empty() {
        let says = format!("A leaf node, by its {}.", node.leaf_marks.join(", "));
        blocks.push(Block::says(Tone::Caution, says));
    }
    let attached = phrases::attached(node);
    if !attached.is_empty() {
        blocks.push(Block::says(
            Tone::Quiet,
            format!("Volumes still attached: {attached}."),
        ));
    }
    Entry {
        name: node.name.clone(),
        facts: vec![
            phrases::node(node, report.judged_at),
            phrases::terminating(node).unwrap_or_else(|| "none Terminating".to_owned()),
        ],
        key: Key {
            node: Some(node.name.clone()),
            ..Key::default()
        },
        blocks,
        moments: timeline::of(report, node),
        ..Entry::default()
    }
}

/// Where many nodes fail, mostly in one way: a line for each.
fn by_state(report: &Report, blocks: Vec<Block>, lines: usize) -> Vec<Block> {
    if text::lines(&blocks) <= lines {
        return blocks;
    }
    let mut states = BTreeMap::<_, (Vec<&str>, Vec<Block>)>::new();
    for (node, block) in report.nodes.iter().zip(blocks) {
        let time = node.not_ready_seconds.map(|time| time / 60 * 60);
        let mut state = phrases::state(node.ready, node.reason.as_deref(), time);
        for (is, mark) in [
            (!node.leaf_marks.is_empty(), "; leaf nodes"),
            (!node.signs_of_life.is_empty(), "; with signs of life"),
        ] {
            state += if is { mark } else { "" };
        }
        let (names, blocks) = states.entry(state).or_default();
        names.push(&node.name);
        blocks.push(block);
    }
    let folds = states.into_iter().map(|(state, (names, blocks))| {
        let names = first_of(&names, NAMES).0;
        Block::fold(format!("{state}: {names}"), blocks)
    });
    fit(folds.collect(), lines)
}

/// What the codes of the report mean.
fn words(report: &Report) -> Vec<Word> {
    let of_breaker = report.breaker.iter().map(|breaker| breaker.reason);
    let reasons = report.pods.iter().map(|pod| pod.reason).chain(of_breaker);
    let reasons = reasons
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|code| Word {
            code: code.as_str(),
            of: "reason",
            means: code.means(),
            advice: code.advice(),
        });
    let word = |of, code, means| Word {
        code,
        of,
        means,
        advice: "",
    };
    let outcomes = report
        .summary
        .outcomes
        .iter()
        .filter(|(_, count)| **count > 0);
    let outcomes = outcomes.map(|(code, _)| word("outcome", code.as_str(), code.means()));
    let states = report
        .summary
        .replacements
        .iter()
        .filter(|(_, count)| **count > 0);
    let states = states.map(|(state, _)| word("replacement", state.as_str(), state.means()));
    reasons.chain(outcomes).chain(states).collect()
}
