//! A page: what a report, an explanation or a forecast says, before it is text, Markdown or HTML.
//!
//! What is folded or summed up is decided where a page is made, by the lines that a text of it has. Text shows the line that
//! stands for a fold, HTML lets the reader unfold it, and Markdown shows all that is in it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::phrases::overdue;
use super::{text, timeline::Moment};
use crate::{
    advice::Step,
    decide::Verdict,
    facts::ReadError,
    words::{and_more, counted},
};

/// What is drawn.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// What matters most, in a few words.
    pub headline: String,
    /// What made it: program, mode, place, moment.
    pub about: String,
    /// The cluster's name; nothing where it has none.
    pub place: String,
    /// What was asked for; nothing where that is said elsewhere.
    pub settings: String,
    /// What is said first, and once more at the end of a text.
    pub lead: Vec<Block>,
    pub sections: Vec<Section>,
    /// The codes on the page, explained where there is room.
    pub words: Vec<Word>,
    /// The moment of the facts.
    pub judged_at: Timestamp,
    /// What a text of the page leaves out although nothing else may say it, each in a line: mostly a pod that needs a person.
    pub unnamed: Vec<String>,
}

/// A part under its heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Unique on the page.
    pub id: &'static str,
    pub heading: String,
    pub tone: Tone,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "where there are many, most are entries"
)]
pub enum Block {
    /// A paragraph, after a label where it has one, such as "Risk".
    Says {
        tone: Tone,
        label: &'static str,
        text: String,
    },
    /// What to do: in that order, or none waits for another.
    Steps {
        ordered: bool,
        steps: Vec<Step>,
        /// How many of the first a text leaves out.
        skipped: usize,
    },
    Entry(Entry),
    Fold(Fold),
}

/// A pod, several that share what there is to do, or a node.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub name: String,
    /// What tells it from others, one for each column; empty where it has no such thing.
    pub facts: Vec<String>,
    pub tag: Option<Tag>,
    /// What is lost with it, in a word.
    pub harm: Option<&'static str>,
    pub tone: Tone,
    /// What it can be found by.
    pub key: Key,
    /// It is more than a row of a table.
    pub is_card: bool,
    /// A card that is unfolded.
    pub open: bool,
    pub blocks: Vec<Block>,
    /// What a time axis shows of it.
    pub moments: Vec<Moment>,
}

/// What an entry is found by.
#[derive(Debug, Clone, Default)]
pub struct Key {
    pub namespace: Option<String>,
    pub verdict: Option<Verdict>,
    pub node: Option<String>,
    /// Kind and name of what made them.
    pub workloads: Vec<String>,
    /// For how many seconds it is past its deadline.
    pub overdue: Option<i64>,
    /// What became of its replacement, in a word.
    pub replacement: Option<&'static str>,
    /// How many pods it is about; 0 where it is no pod.
    pub pods: usize,
}

/// Blocks that a text leaves out. Without any, it is a line that nothing but a text needs.
#[derive(Debug, Clone)]
pub struct Fold {
    /// The line that stands for them; none where it is empty.
    pub says: String,
    pub blocks: Vec<Block>,
}

/// A code of the contract, such as a reason.
#[derive(Debug, Clone, Copy)]
pub struct Tag {
    /// What kind of code: see [`Word::of`].
    pub of: &'static str,
    pub code: &'static str,
}

/// What a code means.
#[derive(Debug, Clone)]
pub struct Word {
    pub code: &'static str,
    /// `reason`, `outcome` or `replacement`.
    pub of: &'static str,
    pub means: &'static str,
    pub advice: &'static str,
}

/// How something is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    Quiet,
    Good,
    Caution,
    Bad,
}

impl Section {
    pub fn new(
        id: &'static str,
        heading: impl Into<String>,
        tone: Tone,
        blocks: Vec<Block>,
    ) -> Self {
        Self {
            id,
            heading: heading.into(),
            tone,
            blocks,
        }
    }
}

impl Block {
    pub fn says(tone: Tone, text: impl Into<String>) -> Self {
        Self::labelled("", tone, text)
    }

    pub fn labelled(label: &'static str, tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Says { tone, label, text }
    }

    /// Whether it is one of a list.
    pub fn is_item(&self) -> bool {
        match self {
            Self::Entry(_) => true,
            Self::Fold(fold) => !fold.says.is_empty() && !fold.blocks.is_empty(),
            Self::Says { .. } | Self::Steps { .. } => false,
        }
    }

    /// Adds all entries in it to `found`, those that are folded too.
    pub fn entries<'a>(&'a self, found: &mut Vec<&'a Entry>) {
        match self {
            Self::Entry(entry) => found.push(entry),
            Self::Fold(fold) => fold.blocks.iter().for_each(|block| block.entries(found)),
            Self::Says { .. } | Self::Steps { .. } => {}
        }
    }

    pub fn fold(says: impl Into<String>, blocks: Vec<Self>) -> Self {
        let says = says.into();
        Self::Fold(Fold { says, blocks })
    }

    /// What it begins with.
    fn begins(&self) -> &str {
        match self {
            Self::Says { text, .. } => text,
            Self::Entry(entry) => &entry.name,
            Self::Fold(fold) => &fold.says,
            Self::Steps { steps, .. } => steps.first().map_or("", |step| &step.what),
        }
    }
}

/// As many of `blocks` as so many lines of text can show; a line says how many others there are, and what comes next.
pub fn fit(mut blocks: Vec<Block>, lines: usize) -> Vec<Block> {
    if text::lines(&blocks) <= lines {
        return blocks;
    }
    let (mut shown, mut left) = (0, lines.saturating_sub(FOLD_LINES));
    while let Some(rest) = left.checked_sub(text::lines(&blocks[shown..=shown])) {
        (left, shown) = (rest, shown + 1);
    }
    let rest = blocks.split_off(shown);
    let next = rest.first().map_or("", Block::begins);
    let next = next.chars().take(WORDS).collect::<String>();
    let mut entries = Vec::new();
    for block in &rest {
        block.entries(&mut entries);
    }
    let pods = entries.iter().map(|entry| entry.key.pods).sum::<usize>();
    let count = match pods {
        0 => rest.len().to_string(),
        pods => counted(pods, "pod", "pods"),
    };
    let says = format!("and {count} more, which --output=json has: {next}…");
    blocks.push(Block::fold(says, rest));
    blocks
}

/// How many letters of what is folded are shown.
const WORDS: usize = 50;

/// How a section gets along with fewer lines than it has.
pub enum Room<'a> {
    /// It needs them all.
    All,
    /// Its end is folded.
    First,
    /// Its rows are folded by their kind.
    Kinds,
    /// In its own way.
    Own(Box<dyn FnOnce(Vec<Block>, usize) -> Vec<Block> + 'a>),
}

/// A blank line and the heading.
const HEADING: usize = 2;
/// How many lines every section is sure of.
const LEAST: usize = 2;

/// The sections that have something to say, in at most so many lines of text. What comes first matters more: it takes what
/// it needs, but for the lines that every section is sure of.
pub fn fill(mut parts: Vec<(Section, Room<'_>)>, mut lines: usize) -> Vec<Section> {
    parts.retain(|(section, _)| !section.blocks.is_empty());
    let sure = |(section, room): &(Section, Room<'_>)| {
        let first = &section.blocks[..section.blocks.len().min(LEAST)];
        HEADING
            + if matches!(room, Room::All) {
                text::lines(&section.blocks)
            } else {
                LEAST.min(text::lines(first))
            }
    };
    let mut later = parts.iter().map(sure).sum::<usize>();
    let fill = parts.into_iter().map(|part| {
        later -= sure(&part);
        let (mut section, room) = part;
        let blocks = std::mem::take(&mut section.blocks);
        let room_for = lines.saturating_sub(later + HEADING);
        let blocks = match room {
            Room::All => blocks,
            Room::First => fit(blocks, room_for),
            Room::Kinds => by_kind(blocks, room_for),
            Room::Own(own) => own(blocks, room_for),
        };
        lines = lines.saturating_sub(HEADING + text::lines(&blocks));
        Section { blocks, ..section }
    });
    fill.collect()
}

/// What could not be read, and what could not be seen.
pub fn unread<'a>(errors: &[ReadError], unseen: &[String]) -> [(Section, Room<'a>); 2] {
    let says = |says: String| Block::says(Tone::Plain, says);
    let causes = errors
        .iter()
        .map(|error| says(format!("{}: {}", error.what, error.cause)));
    let heading = format!("Could not be read: {}", errors.len());
    let unseen = unseen.iter().cloned().map(says);
    [
        (
            Section::new("unread", heading, Tone::Bad, causes.collect()),
            Room::First,
        ),
        (
            Section::new(
                "unseen",
                "Could not be seen",
                Tone::Caution,
                unseen.collect(),
            ),
            Room::First,
        ),
    ]
}

/// How many lines the line that stands for a fold can take.
pub const FOLD_LINES: usize = 2;
/// How many names a line lists.
pub const NAMES: usize = 10;

/// The first `count` of `names`, and where there are more, the others in a fold that has no line of its own.
pub fn first_of<T: AsRef<str>>(names: &[T], count: usize) -> (String, Option<Block>) {
    let joined = |names: &[T]| {
        names
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (first, rest) = names.split_at(names.len().min(count));
    match and_more(names.len(), count) {
        None => (joined(first), None),
        Some(more) => {
            let rest = Block::says(Tone::Plain, format!("The others: {}", joined(rest)));
            (
                format!("{} {more}", joined(first)),
                Some(Block::fold("", vec![rest])),
            )
        }
    }
}

/// How many pods `entries` are, of what and where; they have one tag.
pub fn summed<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> String {
    let keys = || entries.clone().map(|entry| &entry.key);
    let pods = counted(keys().map(|key| key.pods).sum(), "pod", "pods");
    let of = |what: &str, many: &str, names: BTreeSet<&str>| match names.len() {
        0 => String::new(),
        1 => format!(" {what} {}", names.into_iter().collect::<String>()),
        count => format!(" {what} {count} {many}"),
    };
    let workloads = of(
        "of",
        "workloads",
        keys()
            .flat_map(|key| &key.workloads)
            .map(String::as_str)
            .collect(),
    );
    let nodes = of(
        "on",
        "nodes",
        keys().filter_map(|key| key.node.as_deref()).collect(),
    );
    let longest = keys().filter_map(|key| key.overdue).max().map(overdue);
    let longest = longest.map(|it| ", ".to_owned() + &it.replace("overdue ", "overdue up to "));
    let tag = entries.clone().find_map(|entry| entry.tag);
    let tag = tag
        .map(|tag| format!("  [{}]", tag.code))
        .unwrap_or_default();
    let replacement = entries.clone().find_map(|entry| entry.key.replacement);
    let replacement = replacement.map(|state| format!("  replacement {state}"));
    let tag = tag + &replacement.unwrap_or_default();
    // What went wrong, and why a replacement is not back, is told by one of them.
    let is_back = |entry: &Entry| entry.key.replacement.is_none_or(|state| state == "back");
    let wrong =
        entries.filter(|entry| !entry.is_card && (entry.tone == Tone::Bad || !is_back(entry)));
    let mut wrong = wrong
        .flat_map(|entry| &entry.blocks)
        .filter_map(|block| match block {
            Block::Says { text, .. } => Some(format!(" such as: {text}")),
            _ => None,
        });
    let wrong = wrong.next().unwrap_or_default();
    format!(
        "{pods}{workloads}{nodes}{}{tag}{wrong}",
        longest.unwrap_or_default()
    )
}

/// Rows as they are, or where they are too many folded by tag and node, or even by tag alone. All have to be entries.
pub fn by_kind(blocks: Vec<Block>, lines: usize) -> Vec<Block> {
    if text::lines(&blocks) <= lines {
        return blocks;
    }
    let entries = blocks.into_iter().filter_map(|block| match block {
        Block::Entry(entry) => Some(entry),
        _ => None,
    });
    let tag = |entry: &Entry| (entry.tag.map(|tag| tag.code), entry.key.replacement);
    // In the order in which they come first.
    let mut kinds = Vec::<Vec<Entry>>::new();
    let mut places = BTreeMap::new();
    for entry in entries {
        let kind = (tag(&entry), entry.key.node.clone());
        let place = *places.entry(kind).or_insert(kinds.len());
        kinds.resize(kinds.len().max(place + 1), Vec::new());
        kinds[place].push(entry);
    }
    kinds.sort_by_key(|alike| tag(&alike[0]));
    let fold = |entries: &[Entry]| match entries {
        [entry] => Block::Entry(entry.clone()),
        entries => {
            let blocks = entries.iter().cloned().map(Block::Entry);
            Block::fold(summed(entries.iter()), blocks.collect())
        }
    };
    let by_node = kinds
        .iter()
        .map(|entries| fold(entries))
        .collect::<Vec<_>>();
    if text::lines(&by_node) <= lines {
        return by_node;
    }
    let by_tag = kinds.chunk_by(|one, other| tag(&one[0]) == tag(&other[0]));
    let by_tag = by_tag.map(|nodes| {
        let folds = nodes.iter().map(|entries| fold(entries));
        Block::fold(summed(nodes.iter().flatten()), folds.collect())
    });
    fit(by_tag.collect(), lines)
}
