//! Folds a page into the number of lines that a text may have, since a text is for one look.
//!
//! The sections stand in order of importance. Each gets the lines that the ones before it
//! leave, but never fewer than a guaranteed few. Within a section, every card is shown in
//! brief before any is shown whole. Rows, and cards without room, are counted by kind.
//! Anything still too long is cut.

use std::collections::{BTreeMap, BTreeSet};

use itertools::{Either, Itertools as _};

use super::{
    layout::FEW_LINES,
    page::{Block, Entry, NAMES, Page, Section, entries},
    phrases, text,
};
use crate::words::{after, counted, listed};

/// Lines of a section's heading: a blank line and the heading itself.
const HEADING: usize = 2;
/// The lines that a section is guaranteed below its heading, of a short text and of a long one.
const GUARANTEED: [usize; 2] = [1, 3];

impl Page {
    /// Folds the page so that its text has at most `lines` lines, and drops empty sections.
    pub(crate) fn within(self, lines: usize) -> Self {
        let fixed = 2 * text::lines(&self.lead) + text::lines(&[self.footer()]) + 1;
        let mut left = lines.saturating_sub(fixed);
        let mut sections = self.sections;
        sections.retain(|section| !section.blocks.is_empty());
        let least = GUARANTEED[usize::from(lines > FEW_LINES)];
        let guaranteed = |section: &Section| guaranteed(section, least);
        let mut later = sections.iter().map(guaranteed).sum::<usize>();
        for section in &mut sections {
            later -= guaranteed(section);
            if !section.is_whole {
                let blocks = std::mem::take(&mut section.blocks);
                section.blocks = fit(blocks, left.saturating_sub(later + HEADING));
            }
            left = left.saturating_sub(HEADING + text::lines(&section.blocks));
        }
        Self { sections, ..self }
    }
}

/// Counts the lines that a section gets in any case, its heading included.
fn guaranteed(section: &Section, least: usize) -> usize {
    let all = &section.blocks;
    HEADING
        + if section.is_whole {
            text::lines(all)
        } else {
            text::lines(&all[..all.len().min(least)]).min(least)
        }
}

/// Folds `blocks` into at most `lines` lines.
fn fit(blocks: Vec<Block>, lines: usize) -> Vec<Block> {
    if text::lines(&blocks) <= lines {
        return blocks;
    }
    // Rows that are one by workload may be one by their kind.
    let blocks = blocks.into_iter().flat_map(|block| match block {
        Block::Fold { line, blocks } if !line.is_empty() => blocks,
        other => vec![other],
    });
    let mut blocks = blocks.collect_vec();
    // What stands below the entries stays there.
    let last = blocks
        .iter()
        .rposition(|block| matches!(block, Block::Entry(_)));
    let below = blocks.split_off(last.map_or(blocks.len(), |last| last + 1));
    let (mut entries, mut shown): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition_map(|block| match block {
            Block::Entry(entry) => Either::Left(entry),
            other => Either::Right(other),
        });
    // This many lines are kept free to count the entries that are not shown.
    let counted = text::lines(&by_kind(entries.iter().cloned()));
    let left = lines.saturating_sub(text::lines(&shown) + text::lines(&below) + counted);
    let cards = show_cards(&mut entries, left);
    let mut others = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        if cards.contains(&index) {
            shown.push(Block::Entry(entry));
        } else {
            others.push(entry);
        }
    }
    shown.extend(by_kind(others));
    shown.extend(below);
    cut(shown, lines)
}

/// Chooses the entries to show as cards within `left` lines, and returns their indexes. In this
/// order, as long as there is room: the first card of each kind that asks for an answer, whole; the
/// first card of each kind, then the other cards, in brief; and all cards whole.
fn show_cards(entries: &mut [Entry], mut left: usize) -> BTreeSet<usize> {
    let kinds = entries.iter().counts_by(|entry| entry.kind.clone());
    let cards = entries.iter().positions(|entry| !entry.log.is_empty());
    let mut seen = BTreeSet::new();
    let (first, others): (Vec<_>, Vec<_>) =
        cards.partition(|index| seen.insert(entries[*index].kind.clone()));
    let all = first.iter().chain(&others).copied().collect_vec();
    let asks = |index: &usize| matches!(entries[*index].brief.last(), Some(Block::Steps(_)));
    let asking = first.iter().copied().filter(asks).collect_vec();
    // A card that is the only one of its kind frees its line of the count once it is shown.
    let counted = |index: &usize| (*index, usize::from(kinds[&entries[*index].kind] == 1));
    let mut heights = all.iter().map(counted).collect::<BTreeMap<_, _>>();
    let mut shown = BTreeSet::new();
    for (cards, is_brief) in [
        (&asking, false),
        (&first, true),
        (&others, true),
        (&all, false),
    ] {
        for index in cards {
            if shown.contains(index) && is_brief {
                continue;
            }
            let was_brief = std::mem::replace(&mut entries[*index].is_brief, is_brief);
            let height = text::lines(&[Block::Entry(entries[*index].clone())]);
            if let Some(rest) = (left + heights[index]).checked_sub(height) {
                left = rest;
                heights.insert(*index, height);
                shown.insert(*index);
            } else {
                entries[*index].is_brief = was_brief;
            }
        }
    }
    shown
}

/// Folds the entries of each kind into one line that counts them. A row that is the only one of its
/// kind stays.
pub fn by_kind(entries: impl IntoIterator<Item = Entry>) -> Vec<Block> {
    let mut kinds = BTreeMap::<_, Vec<Entry>>::new();
    for entry in entries {
        kinds.entry(entry.kind.clone()).or_default().push(entry);
    }
    let folds = kinds.into_values().map(|alike| match &alike[..] {
        [row] if row.pods <= 1 && !row.is_card => Block::Entry(Entry {
            is_brief: !row.is_wrong(),
            ..row.clone()
        }),
        _ => Block::Fold {
            line: summed(&alike),
            blocks: alike.into_iter().map(Block::Entry).collect(),
        },
    });
    folds.collect()
}

/// Sums up entries of one kind: the number of their pods with workloads and nodes, or their names
/// if they are nodes.
fn summed(alike: &[Entry]) -> String {
    let kind = &alike[0].kind;
    let pods = alike.iter().map(|entry| entry.pods).sum();
    if pods == 0 {
        let names = alike.iter().map(|entry| entry.name.as_str());
        let names = match &names.collect_vec()[..] {
            [first, .., last] if alike.len() > NAMES => format!("{first} … {last}"),
            names => listed(names, NAMES),
        };
        return format!("{} {kind}: {names}", alike.len());
    }
    let named = |before: &str, many: &str, names: BTreeSet<String>| match names.len() {
        0 | 1 => after(before, names.first()),
        count => format!("{before}{count} {many}"),
    };
    let workloads = alike.iter().flat_map(|entry| &entry.workloads);
    let workloads = workloads.map(ToString::to_string).collect();
    let namespaces = alike.iter().filter_map(|entry| entry.namespace.clone());
    let nodes = alike.iter().filter_map(|entry| entry.node.clone());
    let longest = alike.iter().filter_map(|entry| entry.overdue).max();
    let kind = Some(format!("  [{kind}]")).filter(|_| !kind.is_empty());
    // One entry stands as the example of what went wrong, or why a replacement is not back.
    let mut wrong = alike.iter().filter(|entry| entry.is_wrong());
    let wrong = wrong.find_map(|entry| match entry.blocks.first()? {
        Block::Paragraph { text, .. } => Some(text),
        _ => None,
    });
    let logged = alike.iter().any(|entry| !entry.log.is_empty());
    [
        counted(pods, "pod", "pods"),
        named(" of ", "workloads", workloads),
        named(" in ", "namespaces", namespaces.collect()),
        named(" on ", "nodes", nodes.collect()),
        after(", ", longest.map(phrases::overdue_up_to)),
        after("", kind),
        after(" such as: ", wrong),
        after("; ", logged.then_some("named in the log")),
    ]
    .concat()
}

/// Keeps as many of `blocks` as fit into `lines` lines. The last line counts the others.
fn cut(mut blocks: Vec<Block>, lines: usize) -> Vec<Block> {
    if text::lines(&blocks) <= lines {
        return blocks;
    }
    let (mut shown, mut left) = (0, lines.saturating_sub(1));
    while let Some(rest) = left.checked_sub(text::lines(&blocks[shown..=shown])) {
        (left, shown) = (rest, shown + 1);
    }
    let rest = blocks.split_off(shown);
    let count = match entries(&rest).map(|entry| entry.pods).sum() {
        0 => rest.len().to_string(),
        pods => counted(pods, "pod", "pods"),
    };
    let line = format!("and {count} more, which --output=json has");
    blocks.push(Block::Fold { line, blocks: rest });
    blocks
}
