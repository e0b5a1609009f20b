//! A page: what a report, an explanation or a forecast says, before it is text, Markdown or HTML.
//!
//! What is folded or summed up is decided where a page is made (see [`super::fit`]), by the lines that a text of it has.
//! Text shows the line that stands for a fold, HTML lets the reader unfold it, and Markdown shows all that is in it.

use std::fmt::Display;

use super::phrases;
use crate::{
    advice::Step,
    codes::codes,
    decide::Verdict,
    facts::{Owner, ReadError},
    words::{after, joined, listed},
};

/// What is drawn.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// What matters most, in a few words: the title of HTML, and nothing where there is no HTML.
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
}

/// A part under its heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Unique on the page.
    pub id: &'static str,
    pub heading: String,
    pub tone: Tone,
    pub blocks: Vec<Block>,
    /// A text may fold nothing of it.
    pub is_whole: bool,
}

#[derive(Debug, Clone)]
pub enum Block {
    /// A paragraph, after a label where it has one, such as "Risk".
    Says {
        tone: Tone,
        label: &'static str,
        text: String,
    },
    /// What to do, in that order.
    Steps(Vec<Step>),
    Entry(Entry),
    /// Blocks that a text leaves out, and the line that stands for them; none where that is empty.
    Fold {
        says: String,
        blocks: Vec<Block>,
    },
}

/// A pod, several that share what there is to do, or a node.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub name: String,
    /// What tells the entry from others, one for each column; empty where it has no such thing.
    pub facts: Vec<String>,
    pub tag: Option<Tag>,
    /// What is lost with the pods, in a word.
    pub harm: Option<&'static str>,
    pub tone: Tone,
    pub namespace: Option<String>,
    pub verdict: Option<Verdict>,
    pub node: Option<String>,
    /// What made the pods.
    pub workloads: Vec<Owner>,
    /// For how many seconds they are past their deadline, at most.
    pub overdue: Option<i64>,
    /// How many pods the entry is about; 0 where it is no pod.
    pub pods: usize,
    /// Entries of one kind may be counted together.
    pub kind: String,
    /// The entry is more than a row of a table.
    pub is_card: bool,
    /// The card is unfolded.
    pub open: bool,
    pub blocks: Vec<Block>,
    /// What a text shows in place of the blocks where it has no room for those.
    pub brief: Vec<Block>,
    pub is_brief: bool,
    /// Each pod that needs a person, in a line of the log.
    pub log: Vec<String>,
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
    /// `reason`, `outcome` or `replacement`.
    pub of: &'static str,
    pub code: &'static str,
    pub means: &'static str,
    pub advice: &'static str,
}

codes! {
    /// How something is meant.
    #[derive(Default)]
    pub enum Tone {
        #[default]
        Plain = "plain",
        Strong = "strong",
        Quiet = "quiet",
        Good = "good",
        Caution = "caution",
        Bad = "bad",
    }
}

/// The sections whose folded lines nothing else may say: notices are for this run alone, and what was not read or not
/// evicted may be down.
const LOGGED: [&str; 3] = ["remember", "notices", "unread"];
/// How many names a line lists, and how many where there is little room.
pub const NAMES: usize = 10;
pub const FEW_NAMES: usize = 3;

impl Page {
    /// What a text leaves out although nothing else may say it, each in a line: mostly a pod that needs a person.
    pub fn unnamed(&self) -> Vec<&str> {
        let mut lines = Vec::new();
        for section in &self.sections {
            let is_logged = LOGGED.contains(&section.id);
            for block in &section.blocks {
                match block {
                    Block::Entry(entry) => {
                        let listed = if entry.is_brief { FEW_NAMES } else { NAMES };
                        lines.extend(entry.log.iter().skip(listed));
                    }
                    Block::Fold { blocks, .. } => {
                        for block in unfolded(blocks) {
                            match block {
                                Block::Entry(entry) => lines.extend(&entry.log),
                                Block::Says { tone, text, .. }
                                    if is_logged && *tone != Tone::Quiet =>
                                {
                                    lines.push(text);
                                }
                                _ => {}
                            }
                        }
                    }
                    Block::Says { .. } | Block::Steps(_) => {}
                }
            }
        }
        lines.into_iter().map(String::as_str).collect()
    }
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
            is_whole: false,
        }
    }

    pub(crate) fn whole(self) -> Self {
        Self {
            is_whole: true,
            ..self
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

    /// Whether both are in a list, or neither is.
    pub fn are_alike(&self, other: &Self) -> bool {
        self.is_item() == other.is_item()
    }

    /// Whether it is one of a list.
    pub fn is_item(&self) -> bool {
        match self {
            Self::Entry(_) => true,
            Self::Fold { says, .. } => !says.is_empty(),
            Self::Says { .. } | Self::Steps(_) => false,
        }
    }
}

impl Entry {
    /// A pod, by what every page says of one.
    pub fn of_pod(
        namespace: &str,
        name: &str,
        owner: Option<&Owner>,
        node: Option<&String>,
    ) -> Self {
        Self {
            name: format!("{namespace}/{name}"),
            facts: vec![phrases::owner(name, owner), after("on ", node)],
            namespace: Some(namespace.to_owned()),
            node: node.cloned(),
            workloads: owner.into_iter().cloned().collect(),
            pods: 1,
            ..Self::default()
        }
    }

    /// Whether it is a row that did not go as it should.
    pub fn is_wrong(&self) -> bool {
        !self.is_card && matches!(self.tone, Tone::Caution | Tone::Bad)
    }

    /// Its facts, those that it lacks aside.
    pub fn known_facts(&self) -> impl Iterator<Item = &str> {
        self.facts
            .iter()
            .filter(|fact| !fact.is_empty())
            .map(String::as_str)
    }
}

/// Each step, behind a number where there are several.
pub fn numbered(steps: &[Step]) -> impl Iterator<Item = (String, &Step)> {
    steps.iter().zip(1..).map(|(step, number)| {
        let mark = match steps.len() {
            1 => "- ".to_owned(),
            _ => format!("{number}. "),
        };
        (mark, step)
    })
}

/// What is in folds too, without them.
pub fn unfolded(blocks: &[Block]) -> Vec<&Block> {
    blocks
        .iter()
        .flat_map(|block| match block {
            Block::Fold { blocks, .. } => unfolded(blocks),
            other => vec![other],
        })
        .collect()
}

/// All entries, those in folds too.
pub fn entries(blocks: &[Block]) -> impl Iterator<Item = &Entry> {
    unfolded(blocks)
        .into_iter()
        .filter_map(|block| match block {
            Block::Entry(entry) => Some(entry),
            _ => None,
        })
}

/// The first of `names`, and the others in a fold that has no line of its own.
pub fn first_of(names: &[impl AsRef<str> + Display]) -> (String, Option<Block>) {
    let rest = joined(names.iter().skip(NAMES), ", ").map(|rest| Block::Fold {
        says: String::new(),
        blocks: vec![Block::says(Tone::Plain, format!("The others: {rest}"))],
    });
    (listed(names, NAMES), rest)
}

/// A paragraph each.
pub fn paragraphs(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Block> {
    texts
        .into_iter()
        .map(|text| Block::says(Tone::Plain, text))
        .collect()
}

/// What could not be read, and what could not be seen.
pub fn unread(errors: &[ReadError], unseen: &[String]) -> [Section; 2] {
    let heading = format!("Could not be read: {}", errors.len());
    let causes = errors
        .iter()
        .map(|error| format!("{}: {}", error.what, error.cause));
    [
        Section::new("unread", heading, Tone::Bad, paragraphs(causes)),
        Section::new(
            "unseen",
            "Could not be seen",
            Tone::Caution,
            paragraphs(unseen),
        ),
    ]
}
