//! Sums up rows and cards that a text has no room to show one by one.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use super::{
    page::{Block, Entry, NAMES, first},
    phrases,
};
use crate::words::{after, counted, listed};

/// The most rows alike that are shown one by one.
const FEW_ROWS: usize = 3;

/// Lists at most `most` rows and sums of rows. What is alike by `key` is one row if there are more
/// than a few of it, unless it went wrong. If that is too much, what is of one kind is.
pub fn rows<K: Ord>(entries: Vec<Entry>, most: usize, key: impl Fn(&Entry) -> K) -> Vec<Block> {
    let few = merged(entries.clone(), FEW_ROWS, |place, entry| {
        (entry.is_wrong().then_some(place), key(entry))
    });
    if few.len() <= most {
        return few;
    }
    first(by_kind(entries), most)
}

/// A group that needs a person. Of each reason one card says why.
pub struct Card {
    pub entry: Entry,
    pub says_why: bool,
}

/// What a card weighs that says why. The room is a multiple of it, so that no other card of its
/// reason is shown without it.
const WHY: usize = 4;

/// Lists the cards for which there is room, `most` in all, and sums of the others. Those that say
/// why have their room first. While the breaker holds, cards without a command are only counted;
/// else all but the first of a kind are, which say the same.
pub fn cards_and_sums(cards: Vec<Card>, most: usize, is_held: bool) -> (Vec<Block>, Vec<Block>) {
    let (mut left, mut without_command) = (most, BTreeSet::new());
    let (mut shown, mut others) = (Vec::new(), Vec::new());
    let placed = cards.into_iter().enumerate();
    for (place, card) in placed.sorted_by_key(|(_, card)| !card.says_why) {
        let Card { entry, says_why } = card;
        let has_command = entry.blocks.iter().any(Block::has_command);
        let is_first = !has_command && without_command.insert(entry.kind.clone());
        let weight = if says_why { WHY } else { 1 };
        if (has_command || is_first && !is_held) && weight <= left {
            left -= weight;
            shown.push((place, entry));
        } else {
            others.push((place, entry));
        }
    }
    let in_order = |cards: Vec<(usize, Entry)>| {
        let cards = cards.into_iter().sorted_by_key(|(place, _)| *place);
        cards.map(|(_, entry)| entry)
    };
    (
        in_order(shown).map(Block::Entry).collect(),
        by_kind(in_order(others).collect()),
    )
}

/// Sums up the entries of each kind. A row that is the only one of its kind stays.
fn by_kind(entries: Vec<Entry>) -> Vec<Block> {
    merged(entries, 1, |_, entry| entry.kind.clone())
}

/// Sums up cards of one key, and rows of one key if they are more than `few`.
fn merged<K: Ord>(entries: Vec<Entry>, few: usize, key: impl Fn(usize, &Entry) -> K) -> Vec<Block> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (place, entry) in entries.into_iter().enumerate() {
        let group = groups.entry(key(place, &entry)).or_default();
        group.push((place, entry));
    }
    let blocks = groups.into_values().flat_map(|group| {
        let place = group[0].0;
        let is_few = group.len() <= few && !group[0].1.is_card;
        let sum = (!is_few).then(|| summed(&group.iter().map(|(_, entry)| entry).collect_vec()));
        let entries = group
            .into_iter()
            .map(|(place, entry)| (place, Block::Entry(entry)));
        match sum {
            None => entries.collect_vec(),
            Some(sum) => vec![(
                place,
                Block::fold(sum, entries.map(|(_, entry)| entry).collect()),
            )],
        }
    });
    let blocks = blocks.sorted_by_key(|(place, _)| *place);
    blocks.map(|(_, block)| block).collect()
}

/// Sums up entries of one kind: the number of their pods with workloads and nodes, or their names
/// if they are nodes.
fn summed(alike: &[&Entry]) -> String {
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
    let (pods, overdue) = if pods == 1 {
        let overdue = longest.map(phrases::overdue);
        (alike[0].name.clone(), overdue)
    } else {
        let pods = [
            counted(pods, "pod", "pods"),
            named(" of ", "workloads", workloads),
            named(" in ", "namespaces", namespaces.collect()),
        ];
        (pods.concat(), longest.map(phrases::overdue_up_to))
    };
    [
        pods,
        named(" on ", "nodes", nodes.collect()),
        after(", ", overdue),
        after("", kind),
        after(" such as: ", wrong),
    ]
    .concat()
}
