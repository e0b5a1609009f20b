//! Lays a report out as a page: the order of its sections, and what is said once for many pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use itertools::Itertools as _;

use super::{
    Group, NodeEntry, PodEntry, Report,
    fold::{Card, cards_and_sums, rows},
    page::{
        Block, Entry, NAMES, Page, Section, Tag, Tone, Word, filled, first, first_of, incomplete,
        paragraphs, unread_sections, warned,
    },
    phrases,
};
use crate::{
    advice::{self, Step, StepKind},
    decide::{ReasonCode, Verdict},
    exit::Exit,
    outcome::{OutcomeCode, ReplacementState},
    words::{after, joined, listed},
};

/// How much a text shows. The largest page of a test stays below the lines that a text may have.
struct Budget {
    /// Groups that need a person, as [`cards_and_sums`] weighs them.
    cards: usize,
    /// Names of pods that share advice or a note.
    names: usize,
    /// Rows and sums of pods that a run reaps.
    rows: usize,
    /// Rows and sums of other pods, and of nodes.
    others: usize,
    /// Notes of pods to reap.
    notes: usize,
    notices: usize,
    /// Steps of the breaker.
    steps: usize,
}

/// For up to a handful of failed nodes, or while the breaker holds the run: 60 lines.
const SHORT: Budget = Budget {
    cards: 8,
    names: 3,
    rows: 10,
    others: 2,
    notes: 2,
    notices: 1,
    steps: 3,
};
/// The same for a page of many sections.
const SHORTEST: Budget = Budget {
    cards: 4,
    rows: 1,
    others: 1,
    notes: 1,
    ..SHORT
};
/// For more failed nodes: 100 lines, which `kubectl logs --tail=100` shows.
const LONG: Budget = Budget {
    cards: 12,
    names: 5,
    rows: 10,
    others: 4,
    notes: 4,
    notices: 3,
    steps: 4,
};
const MANY_SECTIONS: usize = 8;
/// For a question at a terminal, which is about the rows alone.
const QUESTION: Budget = Budget { rows: 40, ..LONG };
/// The most failed nodes that are a handful.
const FEW_NODES: usize = 6;
/// The length of a cause that takes more than a line or two.
const LONG_CAUSE: usize = 100;
/// The most of a cause that a page shows, of which JSON has all.
const MOST_OF_A_CAUSE: usize = 200;
/// The most steps without an answer that a card shows.
const FEW_STEPS: usize = 4;
/// The most nodes that a line names.
const FEW_NAMES: usize = 3;
/// The most cards that HTML shows unfolded, because they are tall.
const FEW_CARDS: usize = 3;

/// Returns the page of a run's report.
pub fn page(report: &Report) -> Page {
    let is_short = report.nodes.len() <= FEW_NODES || report.is_held();
    let mut laid_out = sections(report, if is_short { &SHORT } else { &LONG });
    if is_short && laid_out.len() >= MANY_SECTIONS {
        laid_out = sections(report, &SHORTEST);
    }
    Page {
        headline: phrases::headline(report),
        about: phrases::about(report),
        cluster: after("", phrases::cluster(report)),
        settings: phrases::settings(report),
        lead: lead(report),
        sections: laid_out,
        words: words(report),
    }
}

/// Returns the page that a person is shown before the deletes: the pods to reap, what to remember,
/// and what to know about the nodes. The person can only answer yes or no, so it has no command.
pub fn question(report: &Report) -> Page {
    let asked = [Verdict::Reap.as_str(), "remember", "node-steps"];
    let mut sections = sections(report, &QUESTION);
    sections.retain(|section| asked.contains(&section.id));
    for section in &mut sections {
        section.blocks.retain(|block| !block.has_command());
    }
    Page {
        sections: filled(sections),
        ..Page::default()
    }
}

/// Lists the sections, the most important first.
fn sections(report: &Report, budget: &Budget) -> Vec<Section> {
    let [unread, unseen] = unread_sections(&report.errors, &report.unseen);
    filled([
        breaker(report, budget),
        for_you(report, budget, false),
        for_you(report, budget, true),
        pods(report, Verdict::Reap, budget),
        afterwards(report, budget),
        node_steps(report),
        pods(report, Verdict::Wait, budget),
        pods(report, Verdict::Leave, budget),
        notices(report, budget),
        unread,
        unseen,
        nodes(report, budget),
    ])
}

/// Says why nothing is deleted, in the cluster or in some zones.
fn breaker(report: &Report, budget: &Budget) -> Section {
    let Some(breaker) = &report.breaker else {
        return Section::default();
    };
    let mut blocks = paragraphs(&[phrases::breaker(report, breaker)]);
    let steps = breaker.steps.iter().cloned().map(step);
    blocks.extend(first(steps.collect(), budget.steps));
    let of = after(" in zone ", joined(&breaker.zones, ", "));
    let heading = format!("Nothing is deleted ({}{of})", breaker.reason);
    Section::new("breaker", heading, Tone::Bad, blocks)
}

/// Lists the pods of a verdict. What went wrong comes first.
fn pods(report: &Report, verdict: Verdict, budget: &Budget) -> Section {
    let pods = report
        .pods
        .iter()
        .filter(|pod| pod.verdict == Some(verdict))
        .sorted_by_key(|pod| !phrases::went_wrong(pod));
    // Why a replacement is not back may take some lines.
    let late = |pod: &PodEntry| {
        let cause = pod.replacement.as_ref().and_then(|it| it.cause.as_ref());
        cause.is_some_and(|cause| cause.len() > LONG_CAUSE)
    };
    let most = match verdict {
        Verdict::Reap if report.pods.iter().any(late) => budget.rows / 2,
        Verdict::Reap => budget.rows,
        _ => budget.others,
    };
    let pods = pods.map(row).map(|row| match verdict {
        Verdict::Wait | Verdict::Leave => beside_cards(report, row),
        _ => row,
    });
    let blocks = rows(pods.collect(), most, one_workload);
    let heading = phrases::heading(report, verdict);
    Section::new(verdict.as_str(), heading, Tone::Strong, blocks)
}

/// Lists the notices that do not come first on the page.
fn notices(report: &Report, budget: &Budget) -> Section {
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
            Block::logged(tone, format!("{}  [{}]", notice.detail, notice.code))
        });
    let blocks = first(notices.collect(), budget.notices);
    Section::new("notices", "Worth knowing", Tone::Caution, blocks)
}

/// Lists the nodes that are not Ready.
fn nodes(report: &Report, budget: &Budget) -> Section {
    let nodes = report.nodes.iter();
    let nodes = nodes.map(|entry| beside_cards(report, node(report, entry)));
    let blocks = rows(nodes.collect(), budget.others, |entry| entry.kind.clone());
    let heading = format!(
        "Nodes not ready: {} of {}",
        report.summary.nodes_not_ready, report.summary.nodes
    );
    Section::new("nodes", heading, Tone::Strong, blocks)
}

fn step(step: Step) -> Block {
    Block::steps(vec![step])
}

/// Returns the first lines of the page: the summary, the notices that come first, and the
/// next step.
fn lead(report: &Report) -> Vec<Block> {
    let for_you = report.groups.iter().any(|group| !group.is_held);
    let tone = if report.exit == Exit::Done && !for_you {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let first = report.notices.iter();
    let first = first.filter(|notice| notice.code.is_first());
    let mut lead = vec![Block::paragraph(tone, phrases::summary(report))];
    lead.extend(incomplete(report.incomplete.as_ref()));
    lead.extend(first.map(|notice| Block::paragraph(Tone::Caution, &notice.detail)));
    lead.extend(phrases::next(report).map(|next| Block::labelled("Next", Tone::Strong, next)));
    lead
}

/// Returns the row of a pod.
fn row(pod: &PodEntry) -> Entry {
    let mut blocks = paragraphs(phrases::sentence(pod));
    blocks.extend(phrases::replacement(pod).map(|(state, cause)| {
        let mut cause = cause.cloned().unwrap_or_default();
        if cause.len() > MOST_OF_A_CAUSE {
            cause.truncate(cause.floor_char_boundary(MOST_OF_A_CAUSE));
            cause += " [...]";
        }
        let cause = Some(cause).filter(|cause| !cause.is_empty());
        Block::labelled("Replacement", Tone::Plain, state + &after(", ", cause))
    }));
    let state = pod.replacement.as_ref().map(|found| found.state);
    // The outcome, else the reason. Of a pod to reap, the heading gives the reason already.
    let tag = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) => Some(("outcome", outcome.as_str())),
        (None, Some(Verdict::Reap)) => None,
        (None, _) => pod.reason.map(|reason| ("reason", reason.as_str())),
    };
    let tag = tag.map(|(kind, code)| Tag { kind, code });
    let tone = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) if outcome.is_failure() => Tone::Bad,
        _ if state.is_some_and(|state| state != ReplacementState::Back) => Tone::Caution,
        (Some(OutcomeCode::Deleted | OutcomeCode::Gone), _) => Tone::Good,
        (Some(outcome), _) if outcome.acted() => Tone::Caution,
        (_, Some(Verdict::Wait | Verdict::Leave) | None) => Tone::Quiet,
        (_, Some(Verdict::Manual)) => Tone::Bad,
        (_, Some(Verdict::Reap)) => Tone::Strong,
    };
    let harm = match pod.reason {
        Some(ReasonCode::Scratch) => Some("Destroys scratch"),
        Some(ReasonCode::Answered) => Some("Answered"),
        _ => None,
    };
    // A pod that takes claims with it is not folded together with the others.
    let kind = tag
        .map(|tag| tag.code)
        .or(harm.and(pod.reason).map(ReasonCode::as_str));
    let mut entry = Entry::of_pod(
        &pod.namespace,
        &pod.name,
        pod.owner.as_ref(),
        pod.node.as_ref(),
    );
    let overdue = pod.overdue_seconds.map(phrases::overdue);
    entry.columns.push(after("", overdue));
    Entry {
        verdict: pod.verdict,
        overdue: pod.overdue_seconds,
        tag,
        kind: after("", kind) + &after(", replacement ", state),
        harm,
        tone,
        blocks,
        ..entry
    }
}

/// Shortens a row that needs nothing in the text of a report in which something else does.
fn beside_cards(report: &Report, mut row: Entry) -> Entry {
    if !report.groups.is_empty() && !row.blocks.is_empty() {
        row.blocks = vec![Block::left_out("", row.blocks)];
    }
    row
}

/// Lists the groups that need a person, or would while the breaker holds: those that ask for an
/// answer, then the others.
fn for_you(report: &Report, budget: &Budget, is_held: bool) -> Section {
    let groups = report.groups.iter();
    let groups = groups
        .filter(|group| group.is_held == is_held)
        .sorted_by_key(|group| !group.advice.wants_answer());
    let mut reasons = BTreeSet::new();
    let cards = groups.map(|group| {
        let says_why = reasons.insert(report.pods[group.pods[0]].reason);
        card(report, group, says_why, budget.names)
    });
    let (shown, counted) = cards_and_sums(cards.collect(), budget.cards, is_held);
    let text =
        "Nothing is asked of you while the breaker holds: what is counted here may all be running.";
    let mut blocks = paragraphs((is_held && !counted.is_empty()).then_some(text));
    blocks.extend(shown.into_iter().chain(counted));
    // It stands once, where an answer is asked for.
    let asks = |held| {
        let mut groups = report.groups.iter();
        groups.any(|group| group.is_held == held && group.advice.wants_answer())
    };
    if asks(is_held) && !(is_held && asks(false)) {
        blocks.extend(report.run_now.clone().map(step));
    }
    let (id, words, tone) = if is_held {
        ("would", "Would need you", Tone::Strong)
    } else {
        (Verdict::Manual.as_str(), "Needs you", Tone::Bad)
    };
    let count = phrases::pods_for_you(report, is_held);
    Section::new(id, format!("{words}: {count}"), tone, blocks)
}

/// Returns the card of a group, with the steps for all of its pods. A text says why on the first
/// card of a reason, and what else there is to see only of a group that is alone.
fn card(report: &Report, group: &Group, says_why: bool, most: usize) -> Card {
    let pods = group
        .pods
        .iter()
        .map(|index| &report.pods[*index])
        .collect_vec();
    let mut entry = row(pods[0]);
    let mut blocks = Vec::new();
    entry.named = 1;
    if pods.len() > 1 {
        let names = pods.iter().map(|pod| pod.name.as_str()).collect_vec();
        let (some, others) = first_of(&names, most);
        blocks = paragraphs([some]);
        blocks.extend(others.map(|others| Block::left_out("", paragraphs([others]))));
        entry.named = most;
        if !says_why {
            blocks = vec![Block::left_out("", blocks)];
            entry.named = 0;
        }
        let owners = pods.iter().filter_map(|pod| pod.owner.clone());
        entry.workloads = owners.sorted().dedup().collect();
        entry.pods = pods.len();
        entry.name = format!("{}: {} pods", pods[0].namespace, pods.len());
        entry.columns = vec![
            entry.workloads.iter().join(", "),
            after("on ", entry.node.as_ref()),
            after("", pods[0].overdue_seconds.map(phrases::overdue_up_to)),
        ];
    }
    let steps = &group.advice.steps;
    let asks = group.advice.wants_answer();
    let is_alone = report.groups.len() == 1;
    let looks = steps
        .iter()
        .take_while(|step| !matches!(step.kind, StepKind::Answer | StepKind::Keep));
    let looks = looks.collect_vec();
    let is_whole =
        looks.iter().all(|step| step.command.is_none()) || is_alone && looks.len() <= FEW_STEPS;
    let left_out = if is_whole { 0 } else { looks.len() };
    let explain = format!("What to do: {}", phrases::explain(report, pods[0]));
    let off_first = after("", phrases::off_first(report, group));
    let explain = if is_whole || asks { "" } else { &explain };
    let why = paragraphs([&group.detail]);
    let warned = warned(&group.advice).collect();
    if is_alone || says_why && !group.advice.gives_up_data() {
        blocks.extend(why);
    } else {
        blocks.push(Block::left_out("", why));
    }
    if is_alone || says_why {
        blocks.extend(warned);
        blocks.push(Block::left_out(explain, Vec::new()));
    } else {
        let line = if asks { &off_first } else { explain };
        blocks.push(Block::left_out(line, warned));
    }
    let steps = steps.clone();
    blocks.push(Block::Steps { steps, left_out });
    let entry = Entry {
        is_card: true,
        is_open: report.groups.len() <= FEW_CARDS,
        harm: group.advice.steps.iter().find_map(|step| step.harm),
        blocks,
        log: pods
            .into_iter()
            .map(|pod| phrases::for_a_person(report, pod))
            .collect(),
        ..entry
    };
    Card { entry, says_why }
}

/// What pods share that are one row: their fate, namespace and workload.
fn one_workload(entry: &Entry) -> impl Ord + use<> {
    (
        entry.kind.clone(),
        entry.namespace.clone(),
        entry.workloads.clone(),
    )
}

/// Lists the notes of the pods to reap, but for those that are surely there; a note that several
/// pods share is said once.
fn afterwards(report: &Report, budget: &Budget) -> Section {
    let mut notes = BTreeMap::<_, Vec<_>>::new();
    for pod in &report.pods {
        if let Some(note) = &pod.note
            && !pod.outcome.is_some_and(OutcomeCode::left_it)
        {
            notes.entry(note).or_default().push(phrases::name(pod));
        }
    }
    let rest = notes.values().skip(budget.notes).flatten().collect_vec();
    let line = format!("Notes of {} more: {}", rest.len(), listed(&rest, NAMES));
    let mut blocks = notes
        .into_iter()
        .map(|(note, pods)| {
            let (names, rest) = first_of(&pods, budget.names);
            let named = iter::once(Block::about(&names, note));
            named.chain(rest.map(unnamed)).collect_vec()
        })
        .collect_vec();
    let folded = blocks.split_off(budget.notes.min(blocks.len())).concat();
    let mut blocks = blocks.concat();
    if !folded.is_empty() {
        blocks.push(Block::fold(line, folded));
    }
    Section::new("remember", "Afterwards", Tone::Caution, blocks)
}

/// Returns the names for which a text has no room.
fn unnamed(rest: String) -> Block {
    Block::left_out("", vec![Block::logged(Tone::Plain, rest)])
}

/// Lists the steps for the nodes; powering off is said once for all of them. What a command
/// force-deletes may need a person, so that a text leaves the command out while a pod does.
fn node_steps(report: &Report) -> Section {
    let cut_off = phrases::to_power_off(report);
    let (names, rest) = first_of(&cut_off, NAMES);
    let which = match cut_off.len() {
        0 => None,
        1 => Some(names),
        _ => Some(format!("one of {names}")),
    };
    let off = which.map(|which| step(advice::power_off(&which)));
    let rest = rest.map(unnamed);
    let steps = report.nodes.iter().flat_map(|node| {
        let steps = node.steps.iter();
        let others = steps.filter(|step| step.kind != StepKind::PowerOff);
        others.map(|of_node| (node.name.as_str(), step(of_node.clone())))
    });
    let most = usize::from(report.groups.is_empty());
    let (names, mut steps): (Vec<_>, Vec<_>) = steps.unzip();
    let rest_of_steps = steps.split_off(most.min(steps.len()));
    let fold = (!rest_of_steps.is_empty()).then(|| {
        let names = listed(&names[most..], FEW_NAMES);
        Block::Fold {
            line: format!("{names}: how volumes are detached at once"),
            is_flat: rest_of_steps.len() <= FEW_CARDS,
            blocks: rest_of_steps,
        }
    });
    let blocks = off.into_iter().chain(rest).chain(steps).chain(fold);
    let heading = "What to do about the nodes";
    Section::new("node-steps", heading, Tone::Strong, blocks.collect())
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
pub fn words(report: &Report) -> Vec<Word> {
    let summary = &report.summary;
    let word = |kind, code, means, advice| Word {
        kind,
        code,
        means,
        advice,
    };
    let of_pods = report.pods.iter().filter_map(|pod| pod.reason);
    let of_breaker = report.breaker.iter().map(|breaker| breaker.reason);
    let reasons = of_pods
        .chain(of_breaker)
        .sorted()
        .dedup()
        .map(|code| word("reason", code.as_str(), code.means(), code.advice()));
    let outcomes = summary
        .outcomes
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(code, _)| word("outcome", code.as_str(), code.means(), ""));
    let states = summary
        .replacements
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(state, _)| word("replacement", state.as_str(), state.means(), ""));
    reasons.chain(outcomes).chain(states).collect()
}
