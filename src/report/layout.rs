//! Lays a report out as a page: the order of its sections, and the texts that many pods share.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use itertools::Itertools as _;

use super::{
    Group, NodeEntry, PodEntry, Report,
    page::{
        Block, ENTRIES, Entry, Line, NAMES, PODS, Page, Section, Tag, Tone, Word, filled, first,
        incomplete, paragraphs, unread_sections, warned,
    },
    phrases,
};
use crate::{
    advice::{self, Step, StepKind},
    judge::{ReasonCode, Verdict},
    outcome::OutcomeCode,
    words::{joined, listed, natural, prefixed},
};

/// The most cards that HTML shows unfolded, because they are tall.
const FEW_CARDS: usize = 3;

/// Returns the page of a run's report.
pub fn page(report: &Report) -> Page {
    Page {
        headline: phrases::headline(report),
        about: phrases::about(report),
        cluster: prefixed("", phrases::cluster(report)),
        settings: phrases::settings(report),
        head: head(report),
        sections: sections(report),
        words: words(report),
    }
}

/// Returns the page that the user sees before the deletes: the pods to reap, the notes to remember,
/// and the nodes to power off. The page has no commands, because the user can only reply yes or no.
pub fn question(report: &Report) -> Page {
    let sections = [
        reaped(report),
        afterwards(report),
        node_steps(power_off(report)),
    ];
    Page {
        sections: filled(sections),
        ..Page::default()
    }
}

/// Lists the sections, the most important first.
fn sections(report: &Report) -> Vec<Section> {
    let [unread, unseen] = unread_sections(&report.errors, &report.unseen);
    let steps = power_off(report).into_iter().chain(other_steps(report));
    filled([
        breaker(report),
        for_you(report, false),
        for_you(report, true),
        node_steps(steps),
        reaped(report),
        afterwards(report),
        nodes(report),
        others(report, Verdict::Wait),
        others(report, Verdict::Leave),
        notices(report),
        unread,
        unseen,
    ])
}

/// Returns the first lines of the page: what is wrong, whether data is at risk, and what to do first.
fn head(report: &Report) -> Vec<Line> {
    let held = report.breaker.as_ref().map(|breaker| {
        let unknown = if breaker.reason == ReasonCode::MassOutage {
            ""
        } else {
            "Not known: "
        };
        let held = format!(
            "{unknown}{}. Nothing is deleted{}.",
            breaker.detail,
            of_zones(breaker)
        );
        Line::new("HELD", Tone::Bad, held)
    });
    let notices = report.notices.iter();
    let notices = notices.filter(|notice| notice.code.is_first());
    let needs_you = report.groups.iter().any(|group| !group.is_held);
    let tone = if needs_you { Tone::Bad } else { Tone::Strong };
    let mut head = held.into_iter().collect_vec();
    head.extend(incomplete(report.incomplete.as_ref()));
    head.extend(notices.map(|notice| {
        let text = format!("{}  [{}]", notice.detail, notice.code);
        Line::new("NOTE", Tone::Caution, text)
    }));
    head.push(Line::new("NODES", Tone::Plain, phrases::nodes(report)));
    head.push(Line::new(PODS, tone, phrases::headline(report)));
    let texts = phrases::next(report);
    if !texts.is_empty() {
        let tone = Tone::Strong;
        head.push(Line {
            label: "FIRST",
            tone,
            texts,
        });
    }
    head
}

fn of_zones(breaker: &super::BreakerEntry) -> String {
    prefixed(" in zone ", joined(&breaker.zones, ", "))
}

/// Says why nothing is deleted, in the cluster or in some zones.
fn breaker(report: &Report) -> Section {
    let Some(breaker) = &report.breaker else {
        return Section::default();
    };
    let mut blocks = paragraphs(Some(phrases::breaker(report, breaker)));
    blocks.push(Block::Steps(breaker.steps.clone()));
    let heading = format!(
        "Nothing is deleted{} ({})",
        of_zones(breaker),
        breaker.reason
    );
    Section::new("breaker", heading, Tone::Bad, blocks)
}

fn with_verdict(report: &Report, verdict: Verdict) -> impl Iterator<Item = &PodEntry> {
    let pods = report.pods.iter();
    pods.filter(move |pod| pod.verdict == Some(verdict))
}

/// Lists all pods that a run reaps. Those that went wrong come first.
fn reaped(report: &Report) -> Section {
    let pods = with_verdict(report, Verdict::Reap);
    let pods = pods.sorted_by_key(|pod| !phrases::went_wrong(pod));
    let rows = pods.map(|pod| Block::Entry(row(pod))).collect_vec();
    let blocks = if rows.is_empty() {
        rows
    } else {
        vec![Block::Pods(rows)]
    };
    let heading = phrases::heading(report, Verdict::Reap);
    Section::new(Verdict::Reap.as_str(), heading, Tone::Strong, blocks)
}

/// Lists the pods with the verdict `wait` or `leave`.
fn others(report: &Report, verdict: Verdict) -> Section {
    let rows = with_verdict(report, verdict).map(|pod| Block::Entry(row(pod)));
    let heading = phrases::heading(report, verdict);
    let blocks = first(rows.collect(), ENTRIES);
    Section::new(verdict.as_str(), heading, Tone::Strong, blocks)
}

/// Lists the notices that do not come first on the page.
fn notices(report: &Report) -> Section {
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
    let blocks = first(notices.collect(), ENTRIES);
    Section::new("notices", "Worth knowing", Tone::Caution, blocks)
}

/// Lists the NotReady nodes.
fn nodes(report: &Report) -> Section {
    let reaped = reaped_by_node(report);
    let nodes = report.nodes.iter();
    let nodes = nodes.map(|entry| {
        let reaped = reaped.as_ref();
        let reaped = reaped.map(|all| all.get(entry.name.as_str()).copied().unwrap_or_default());
        Block::Entry(node(report, entry, reaped))
    });
    let heading = format!(
        "Nodes not ready: {} of {}",
        report.summary.nodes_not_ready, report.summary.nodes
    );
    Section::new(
        "nodes",
        heading,
        Tone::Strong,
        first(nodes.collect(), ENTRIES),
    )
}

/// Returns the row of a pod.
fn row(pod: &PodEntry) -> Entry {
    let blocks = paragraphs(phrases::sentence(pod));
    // The outcome, or else the reason. For a pod to reap, the heading already gives the reason.
    let tag = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) => Some(("outcome", outcome.as_str())),
        (None, Some(Verdict::Reap)) => None,
        (None, _) => pod.reason.map(|reason| ("reason", reason.as_str())),
    };
    let tag = tag.map(|(kind, code)| Tag { kind, code });
    let tone = match (pod.outcome, pod.verdict) {
        (Some(outcome), _) if outcome.is_failure() => Tone::Bad,
        (Some(OutcomeCode::Deleted | OutcomeCode::Gone), _) => Tone::Good,
        (Some(outcome), _) if outcome.acted() => Tone::Caution,
        (_, Some(Verdict::Wait | Verdict::Leave) | None) => Tone::Quiet,
        (_, Some(Verdict::Manual)) => Tone::Bad,
        (_, Some(Verdict::Reap)) => Tone::Strong,
    };
    let mut entry = Entry::of_pod(
        &pod.namespace,
        &pod.name,
        pod.owner.as_ref(),
        pod.node.as_ref(),
    );
    let overdue = pod.overdue_seconds.map(phrases::overdue);
    entry.columns.push(prefixed("", overdue));
    Entry {
        verdict: pod.verdict,
        overdue: pod.overdue_seconds,
        tag,
        tone,
        brief: phrases::brief(pod),
        blocks,
        ..entry
    }
}

/// Lists by node the pods that need you, or that would need you if the breaker did not hold them:
/// the steps for the node, then each group.
fn for_you(report: &Report, is_held: bool) -> Section {
    let node = |group: &Group| report.pods[group.pods[0]].node.as_deref();
    let of_section = report
        .groups
        .iter()
        .filter(|group| group.is_held == is_held);
    let asking_nodes = of_section
        .clone()
        .filter(|group| group.advice.asks_to_decide())
        .map(node)
        .collect::<BTreeSet<_>>();
    let groups = of_section
        .sorted_by_cached_key(|group| {
            let node = node(group);
            let asks = group.advice.asks_to_decide();
            (!asking_nodes.contains(&node), node.map(natural), !asks)
        })
        .collect_vec();
    let text = "You need not decide anything while the breaker holds: these pods may all still be running.";
    let mut blocks = paragraphs(Some(text).filter(|_| is_held && !groups.is_empty()));
    // While the breaker holds, a group without a command is only named.
    let has_command = |group: &&Group| {
        let mut steps = group.advice.steps.iter();
        !is_held || steps.any(|step| step.command.is_some())
    };
    let (shown, named): (Vec<_>, Vec<_>) = groups.into_iter().partition(has_command);
    for of_node in shown.chunk_by(|one, other| node(one) == node(other)) {
        let name = node(of_node[0]);
        blocks.push(at_node(report, name, of_node));
    }
    let named_pods = named.into_iter().flat_map(|group| &group.pods);
    let rows = named_pods.map(|index| {
        let pod = &report.pods[*index];
        let reason = prefixed("", pod.reason);
        Block::Entry(Entry {
            brief: Some(format!("{} [{reason}]", pod.name)),
            blocks: Vec::new(),
            ..row(pod)
        })
    });
    let rows = Some(rows.collect_vec()).filter(|rows| !rows.is_empty());
    blocks.extend(rows.map(Block::Pods));
    let (id, words, tone) = if is_held {
        ("would", "Would need you", Tone::Strong)
    } else {
        (Verdict::Manual.as_str(), "Needs you", Tone::Bad)
    };
    let count = phrases::pods_for_you(report, is_held);
    Section::new(id, format!("{words}: {count}"), tone, blocks)
}

/// Says what the groups of a node have in common, and lists them.
fn at_node(report: &Report, name: Option<&str>, groups: &[&Group]) -> Block {
    let nodes = report.nodes.iter();
    let mut node = nodes.filter(|node| Some(&*node.name) == name).map(|node| {
        let state = phrases::node(node, report.judged_at);
        format!("on {}: {state}", node.name)
    });
    let line = node.next_back().unwrap_or_else(|| match name {
        Some(name) => format!("on {name}"),
        None => "on no node".to_owned(),
    });
    let shared = groups.iter().flat_map(|group| &group.advice.about_node);
    let steps = shared.unique().map(Step::remark);
    let steps = Some(steps.collect_vec()).filter(|steps| !steps.is_empty());
    let mut blocks = steps.map(Block::Steps).into_iter().collect_vec();
    let mut said = Vec::new();
    let is_open = report.groups.len() <= FEW_CARDS;
    for group in groups {
        blocks.push(Block::Entry(card(report, group, is_open, &mut said)));
    }
    Block::Node { line, blocks }
}

/// Returns the entry of several pods of one node, the longest overdue first, as a card shows them.
fn entry_of(pods: &[&PodEntry]) -> Entry {
    let mut entry = row(pods[0]);
    // The line over the cards names the node.
    entry.columns.remove(1);
    if pods.len() > 1 {
        let owners = pods.iter().filter_map(|pod| pod.owner.clone());
        entry.workloads = owners.sorted().dedup().collect();
        entry.pods = pods.len();
        entry.name = format!("{}: {} pods", pods[0].namespace, pods.len());
        entry.columns = vec![
            entry.workloads.iter().join(", "),
            prefixed("", pods[0].overdue_seconds.map(phrases::overdue_up_to)),
        ];
    }
    entry
}

/// Lists the texts about a group that come before its steps, without the texts that another card of
/// the node has already `said`.
fn before_steps(group: &Group, said: &mut Vec<String>) -> Vec<Block> {
    let advice = &group.advice;
    let mut blocks = paragraphs(Some(&group.detail).filter(|_| !advice.deletes_data()));
    blocks.extend(warned(advice, advice.about_pods.as_ref()));
    blocks.retain(|block| match block {
        Block::Paragraph { text, .. } if said.contains(text) => false,
        Block::Paragraph { text, .. } => {
            said.push(text.clone());
            true
        }
        _ => true,
    });
    blocks
}

/// Returns the card of a group, with the steps for all of its pods.
fn card(report: &Report, group: &Group, is_open: bool, said: &mut Vec<String>) -> Entry {
    let pods = group.pods.iter().map(|index| &report.pods[*index]);
    let pods = pods.collect_vec();
    let names = pods.iter().map(|pod| pod.name.clone()).collect_vec();
    let names = Some(Block::Names(names)).filter(|_| pods.len() > 1);
    let mut blocks = names.into_iter().collect_vec();
    blocks.extend(before_steps(group, said));
    blocks.push(Block::Steps(group.advice.steps.clone()));
    Entry {
        is_card: true,
        is_open,
        blocks,
        ..entry_of(&pods)
    }
}

/// Lists the notes of the pods to reap, except of pods that certainly still exist. A note that
/// several pods share is listed once.
fn afterwards(report: &Report) -> Section {
    let mut notes = BTreeMap::<_, Vec<_>>::new();
    for pod in &report.pods {
        if let Some(note) = &pod.note
            && !pod.outcome.is_some_and(OutcomeCode::left_untouched)
        {
            notes.entry(note).or_default().push(phrases::name(pod));
        }
    }
    let notes = notes.into_iter();
    let blocks = notes.map(|(note, pods)| Block::about(&listed(&pods, NAMES), note));
    let blocks = first(blocks.collect(), ENTRIES);
    Section::new("remember", "Afterwards", Tone::Caution, blocks)
}

fn node_steps(steps: impl IntoIterator<Item = Step>) -> Section {
    let steps = steps.into_iter().map(|step| Block::Steps(vec![step]));
    let heading = "What to do about the nodes";
    Section::new("node-steps", heading, Tone::Strong, steps.collect())
}

/// Returns the step to power nodes off, once for all of them.
fn power_off(report: &Report) -> Option<Step> {
    let cut_off = phrases::to_power_off(report);
    let names = listed(&cut_off, cut_off.len());
    match cut_off.len() {
        0 => None,
        1 => Some(advice::power_off(&names)),
        _ => Some(Step {
            kind: StepKind::PowerOff,
            ..Step::remark(format!(
                "Make sure that each of these nodes is powered off, unless it is about to come back: {names}. Any containers \
                 still running there keep running alongside the pods that replace them."
            ))
        }),
    }
}

/// Lists the other steps for the nodes. Only the first one explains what its command does.
fn other_steps(report: &Report) -> impl Iterator<Item = Step> {
    let steps = report.nodes.iter().flat_map(|node| {
        let steps = node.steps.iter();
        let others = steps.filter(|step| step.kind != StepKind::PowerOff);
        others.map(|step| (&node.name, step))
    });
    let mut was_said = false;
    steps.map(move |(name, step)| {
        let mut step = step.clone();
        if was_said && step.command.is_some() {
            step.what = format!("The same for {name}, under the same conditions:");
        }
        was_said |= step.command.is_some();
        step
    })
}

/// Counts the pods of each node that this run has reaped; `None` if the run has tried to delete
/// none.
fn reaped_by_node(report: &Report) -> Option<HashMap<&str, usize>> {
    let is_reaped =
        |pod: &&PodEntry| matches!(pod.outcome, Some(OutcomeCode::Deleted | OutcomeCode::Gone));
    let nodes = report.pods.iter().filter(is_reaped);
    let nodes = nodes.filter_map(|pod| pod.node.as_deref());
    phrases::any_acted(report).then(|| nodes.counts())
}

/// Returns the entry of a node.
fn node(report: &Report, node: &NodeEntry, reaped: Option<usize>) -> Entry {
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
            phrases::terminating(node, reaped),
        ],
        node: Some(node.name.clone()),
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
    reasons.chain(outcomes).collect()
}
