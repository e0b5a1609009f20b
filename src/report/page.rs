//! The page: the content of a report, an explanation or a forecast, before it is text, Markdown or
//! HTML.
//!
//! [`super::fit`] decides what is folded and summed up, by the number of lines that the text would
//! have. Of a fold, text shows only the line that sums it up, HTML shows that line and can unfold
//! it, and Markdown shows all the blocks in it.

use std::fmt::Display;

use super::phrases;
use crate::{
    advice::{Advice, Step},
    codes::codes,
    decide::Verdict,
    facts::{Owner, ReadError},
    words::{after, joined, listed},
};

/// The content of every format for people.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The most important fact in a few words: the title of the HTML. Empty if the page is never
    /// written as HTML.
    pub headline: String,
    /// The program's version, the kind of run, the cluster or file, and the moment it was
    /// judged at.
    pub about: String,
    /// The cluster's name, for the title of the HTML; empty if it has none.
    pub cluster: String,
    /// The settings as sentences, or the assumptions of a forecast; empty if there is
    /// nothing to say.
    pub settings: String,
    /// The first lines of the page; a text repeats them at its end.
    pub lead: Vec<Block>,
    pub sections: Vec<Section>,
    /// The meaning of each code on the page. Text, which has no room, leaves it out.
    pub words: Vec<Word>,
}

/// A part of the page under a heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// The section's anchor in HTML, unique on the page.
    pub id: &'static str,
    pub heading: String,
    /// The colour of the heading in a text.
    pub tone: Tone,
    pub blocks: Vec<Block>,
    /// Nothing in the section may be folded.
    pub is_whole: bool,
}

#[derive(Debug, Clone)]
pub enum Block {
    Paragraph {
        tone: Tone,
        /// A word before the text, such as "Risk"; often empty.
        label: &'static str,
        text: String,
        /// What follows this part of the text is not logged: a message of the API server, or what a
        /// pod's author wrote.
        logged: usize,
    },
    /// Things to do, in this order.
    Steps(Vec<Step>),
    Entry(Entry),
    /// Blocks that a text leaves out.
    Fold {
        /// The line that a text shows in place of the blocks; if empty, it shows none.
        line: String,
        blocks: Vec<Block>,
    },
}

/// A pod, several pods with the same steps, a node, or a rule.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub name: String,
    /// The cells of a table that follow the name; an empty string is an empty cell.
    pub columns: Vec<String>,
    pub tag: Option<Tag>,
    /// The loss that the steps or the reap cause, in a word or two.
    pub harm: Option<&'static str>,
    pub tone: Tone,
    pub namespace: Option<String>,
    pub verdict: Option<Verdict>,
    pub node: Option<String>,
    /// The owners of the pods.
    pub workloads: Vec<Owner>,
    /// The seconds since the deletion deadline of the longest overdue pod.
    pub overdue: Option<i64>,
    /// The number of pods; 0 if the entry is not about pods.
    pub pods: usize,
    /// Entries with the same kind can be folded into one line.
    pub kind: String,
    /// The entry is a card, which has room for blocks; otherwise it is a row of a table.
    pub is_card: bool,
    /// HTML shows the card unfolded.
    pub is_open: bool,
    pub blocks: Vec<Block>,
    /// The blocks that a text shows instead if it has no room for the others.
    pub brief: Vec<Block>,
    pub is_brief: bool,
    /// A line of the log for each pod that needs a person, or for the node.
    pub log: Vec<String>,
}

/// A code of the JSON output that an entry shows, such as its reason.
#[derive(Debug, Clone, Copy)]
pub struct Tag {
    /// The kind of the code: see [`Word::kind`].
    pub kind: &'static str,
    pub code: &'static str,
}

/// The explanation of a code.
#[derive(Debug, Clone)]
pub struct Word {
    /// The kind of the code: `reason`, `outcome` or `replacement`.
    pub kind: &'static str,
    pub code: &'static str,
    pub means: &'static str,
    /// A sentence about what to do; empty if there is nothing to do.
    pub advice: &'static str,
}

codes! {
    /// The weight of a line: it decides the colour.
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

/// The sections whose folded lines go to the log, because nothing else repeats them: notices are
/// about this run alone, and a pod that was not read or not evicted may be down.
const LOGGED: [&str; 3] = ["remember", "notices", "unread"];
/// The most names that a line lists.
pub const NAMES: usize = 10;
/// The most names that a line lists if there is little room.
pub const FEW_NAMES: usize = 3;

impl Page {
    /// Returns the paragraph that stands below the sections of a text.
    pub fn footer(&self) -> Block {
        Block::paragraph(Tone::Quiet, format!("{} {}", self.about, self.settings))
    }

    /// Returns the lines for the log about everything important that the text leaves out: a line
    /// for each command, or with `each_pod` for each pod that needs a person, and each notice.
    pub fn unnamed(&self, each_pod: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for section in &self.sections {
            let is_logged = LOGGED.contains(&section.id);
            for block in &section.blocks {
                match block {
                    Block::Entry(entry) => lines.extend(entry.unnamed(each_pod, true)),
                    Block::Fold { blocks, .. } => {
                        for block in unfolded(blocks) {
                            match block {
                                Block::Entry(entry) => {
                                    lines.extend(entry.unnamed(each_pod, false));
                                }
                                Block::Steps(steps) => {
                                    lines.extend(
                                        commands(steps).map(|(what, it)| format!("{what} {it}")),
                                    );
                                }
                                Block::Paragraph {
                                    tone, text, logged, ..
                                } if is_logged && *tone != Tone::Quiet => {
                                    lines.push(text[..*logged].to_owned());
                                }
                                Block::Paragraph { .. } | Block::Fold { .. } => {}
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        lines
    }
}

/// Lists the steps that have a command, with it.
fn commands(steps: &[Step]) -> impl Iterator<Item = (&str, &str)> {
    steps
        .iter()
        .filter_map(|step| Some((step.what.as_str(), step.command.as_deref()?)))
}

/// Lists the commands in the blocks of an entry.
fn commands_in(blocks: &[Block]) -> impl Iterator<Item = &str> {
    let steps = blocks.iter().filter_map(|block| match block {
        Block::Steps(steps) => Some(steps),
        _ => None,
    });
    steps
        .flat_map(|steps| commands(steps))
        .map(|(_, command)| command)
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
    pub fn paragraph(tone: Tone, text: impl Into<String>) -> Self {
        Self::labelled("", tone, text)
    }

    pub fn labelled(label: &'static str, tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Paragraph {
            tone,
            label,
            logged: text.len(),
            text,
        }
    }

    /// Returns a paragraph that names what it is about. Only that is logged.
    pub fn about(what: &str, text: &str) -> Self {
        Self::Paragraph {
            tone: Tone::Plain,
            label: "",
            logged: what.len(),
            text: format!("{what}: {text}"),
        }
    }

    /// Reports whether both blocks are items of a list, or neither is.
    pub fn are_alike(&self, other: &Self) -> bool {
        self.is_item() == other.is_item()
    }

    /// Reports whether the block is an item of a list in HTML.
    pub fn is_item(&self) -> bool {
        match self {
            Self::Entry(_) => true,
            Self::Fold { line, .. } => !line.is_empty(),
            Self::Paragraph { .. } | Self::Steps(_) => false,
        }
    }
}

impl Entry {
    /// Returns the entry of a pod, with its owner and its node as columns.
    pub fn of_pod(
        namespace: &str,
        name: &str,
        owner: Option<&Owner>,
        node: Option<&String>,
    ) -> Self {
        Self {
            name: format!("{namespace}/{name}"),
            columns: vec![phrases::owner(name, owner), after("on ", node)],
            namespace: Some(namespace.to_owned()),
            node: node.cloned(),
            workloads: owner.into_iter().cloned().collect(),
            pods: 1,
            ..Self::default()
        }
    }

    /// Reports whether the entry is the row of a pod that was not reaped or replaced as
    /// it should be.
    pub fn is_wrong(&self) -> bool {
        !self.is_card && matches!(self.tone, Tone::Caution | Tone::Bad)
    }

    /// Returns the blocks that a text shows.
    pub fn shown(&self) -> &[Block] {
        if self.is_brief {
            &self.brief
        } else {
            &self.blocks
        }
    }

    /// Returns the lines for the log about what a text leaves out, whether it shows the entry or
    /// not.
    fn unnamed(&self, each_pod: bool, is_shown: bool) -> Vec<String> {
        let shown = commands_in(if is_shown { self.shown() } else { &[] }).collect::<Vec<_>>();
        let hidden = commands_in(&self.blocks).filter(|command| !shown.contains(command));
        let lines = hidden.map(|command| {
            let tag = self.tag.map(|tag| format!(" [{}]", tag.code));
            let node = after(" on ", self.node.as_ref());
            format!("{}{node}{}: {command}", self.name, after("", tag))
        });
        let mut lines = lines.collect::<Vec<_>>();
        let named = match self.is_brief {
            _ if !is_shown || !lines.is_empty() => 0,
            false => NAMES,
            true => FEW_NAMES,
        };
        if each_pod || lines.is_empty() && self.pods == 0 {
            lines = self.log.iter().skip(named).cloned().collect();
        }
        lines
    }

    /// Names the columns of a table of such entries.
    pub fn headings(&self) -> impl Iterator<Item = &'static str> {
        let names: &[_] = if self.pods > 0 {
            &["Owner", "Node", "Overdue"]
        } else {
            &["State", "Pods"]
        };
        let names = names.iter().copied().chain(std::iter::repeat(""));
        names.take(self.columns.len())
    }

    /// Lists the columns that are not empty.
    pub fn filled_columns(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().filter(|column| !column.is_empty())
    }
}

/// Lists the blocks that say what to do first, what is at risk, and what to do.
pub fn advised(advice: &Advice) -> impl Iterator<Item = Block> {
    let texts = [
        ("First", Tone::Strong, &advice.first),
        ("Risk", Tone::Caution, &advice.risk),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(label, tone, text)| Some(Block::labelled(label, tone, text.as_ref()?)));
    let steps = Some(Block::Steps(advice.steps.clone())).filter(|_| !advice.steps.is_empty());
    texts.chain(steps)
}

/// Pairs each step with the mark before it: a dash if it is the only one, otherwise its number.
pub fn numbered(steps: &[Step]) -> impl Iterator<Item = (String, &Step)> {
    steps.iter().zip(1..).map(|(step, number)| {
        let mark = match steps.len() {
            1 => "- ".to_owned(),
            _ => format!("{number}. "),
        };
        (mark, step)
    })
}

/// Lists all blocks, with each fold replaced by the blocks in it.
pub fn unfolded(blocks: &[Block]) -> Vec<&Block> {
    blocks
        .iter()
        .flat_map(|block| match block {
            Block::Fold { blocks, .. } => unfolded(blocks),
            other => vec![other],
        })
        .collect()
}

/// Lists all entries, including those in folds.
pub fn entries(blocks: &[Block]) -> impl Iterator<Item = &Entry> {
    unfolded(blocks)
        .into_iter()
        .filter_map(|block| match block {
            Block::Entry(entry) => Some(entry),
            _ => None,
        })
}

/// Lists the first [`NAMES`] of `names` in a line, and the others in a fold without a line.
pub fn first_of(names: &[impl AsRef<str> + Display]) -> (String, Option<Block>) {
    let rest = joined(names.iter().skip(NAMES), ", ").map(|rest| Block::Fold {
        line: String::new(),
        blocks: paragraphs([format!("The others: {rest}")]),
    });
    (listed(names, NAMES), rest)
}

/// Makes a plain paragraph of each text.
pub fn paragraphs(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Block> {
    texts
        .into_iter()
        .map(|text| Block::paragraph(Tone::Plain, text))
        .collect()
}

/// Returns the section of read errors, and the section of what the source does not show.
pub fn unread(errors: &[ReadError], unseen: &[String]) -> [Section; 2] {
    let heading = format!("Could not be read: {}", errors.len());
    let errors = errors.iter();
    let causes = errors.map(|error| Block::about(&error.what, &error.cause));
    [
        Section::new("unread", heading, Tone::Bad, causes.collect()),
        Section::new(
            "unseen",
            "Could not be seen",
            Tone::Caution,
            paragraphs(unseen),
        ),
    ]
}
