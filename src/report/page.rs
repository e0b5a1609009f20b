//! The page: the content of a report, an explanation or a forecast, before it is text, Markdown or
//! HTML.
//!
//! Whoever makes a page decides what a text leaves out, by fixed numbers. What is left out is in a
//! [`Block::Fold`], or is a step that its block counts: the same decides what the log names, so that
//! each command is in one of them.

use std::fmt::Display;

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
}

/// The sections that a text sets off from nothing but what is important.
const MINOR: [&str; 6] = ["wait", "leave", "notices", "unread", "unseen", "nodes"];

#[derive(Debug, Clone)]
pub enum Block {
    Paragraph {
        tone: Tone,
        /// A word before the text, such as "Risk"; often empty.
        label: &'static str,
        text: String,
        /// How much of the text is logged if a text leaves it out. What others wrote never is: a
        /// message of the API server, or of a pod's author.
        logged: usize,
    },
    /// Things to do, in this order.
    Steps {
        steps: Vec<Step>,
        /// A text leaves out so many of the first.
        left_out: usize,
    },
    Entry(Entry),
    /// Blocks that a text leaves out.
    Fold {
        /// The line that a text shows in place of the blocks; if empty, it shows none.
        line: String,
        /// HTML shows the blocks as if they were in no fold.
        is_flat: bool,
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
    /// For how many seconds the longest overdue pod is overdue.
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
    /// A line of the log for each pod that needs a person, or for the node.
    pub log: Vec<String>,
    /// So many of them are about what the text names.
    pub named: usize,
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

/// What the log says of what a text leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Log {
    /// Nothing: its level is above warn.
    Off,
    /// A line for each command.
    Commands,
    /// A line for each pod that needs a person, with its commands.
    #[default]
    Pods,
}

/// The most names that a line lists.
pub const NAMES: usize = 10;
/// The most read errors that a text shows; a cause can be long.
const FEW_ERRORS: usize = 1;

impl Page {
    /// Returns the paragraph that stands below the sections of a text.
    pub fn footer(&self) -> Block {
        Block::paragraph(Tone::Quiet, format!("{} {}", self.about, self.settings))
    }

    /// Returns the lines for the log about everything important that the text leaves out.
    pub fn log(&self, log: Log) -> Vec<String> {
        let sections = self.sections.iter();
        let lines = sections.flat_map(|section| logged(&section.blocks, None, false, log));
        lines.collect()
    }
}

/// Returns the lines for the log about what a text leaves out of `blocks`, which are a part of the
/// entry `of`; about all of them if it `is_hidden`.
pub fn logged(blocks: &[Block], of: Option<&Entry>, is_hidden: bool, log: Log) -> Vec<String> {
    let lines = blocks.iter().flat_map(|block| match block {
        _ if log == Log::Off => Vec::new(),
        Block::Paragraph { logged: 0, .. } => Vec::new(),
        Block::Paragraph { text, logged, .. } if is_hidden => vec![text[..*logged].to_owned()],
        Block::Paragraph { .. } => Vec::new(),
        Block::Steps { steps, left_out } => {
            let hidden = if is_hidden { steps.len() } else { *left_out };
            let steps = steps[..hidden].iter();
            let lines = steps.filter_map(|step| {
                let what = of.map_or_else(|| step.what.clone(), Entry::named_in_the_log);
                Some(format!("{what} {}", pasted(step)?))
            });
            lines.collect()
        }
        Block::Fold { blocks, .. } => logged(blocks, of, true, log),
        Block::Entry(entry) => {
            let commands = logged(&entry.blocks, Some(entry), is_hidden, log);
            if entry.log.is_empty() || log == Log::Commands && entry.pods > 0 {
                return commands;
            }
            // The line of a pod has all of its commands.
            let is_named = !is_hidden && commands.is_empty();
            let named = if is_named { entry.named } else { 0 };
            entry.log.iter().skip(named).cloned().collect()
        }
    });
    lines.collect()
}

/// Returns the command of a step, after a word for what it destroys.
pub fn pasted(step: &Step) -> Option<String> {
    let harm = after("", step.harm.map(|harm| format!("{harm}: ")));
    Some(harm + step.command.as_ref()?)
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

    /// Reports whether a person need not see the section first.
    pub fn is_minor(&self) -> bool {
        MINOR.contains(&self.id)
    }
}

/// Drops the sections that are empty.
pub fn filled(sections: impl IntoIterator<Item = Section>) -> Vec<Section> {
    let sections = sections.into_iter();
    sections
        .filter(|section| !section.blocks.is_empty())
        .collect()
}

impl Block {
    pub fn paragraph(tone: Tone, text: impl Into<String>) -> Self {
        Self::labelled("", tone, text)
    }

    pub fn labelled(label: &'static str, tone: Tone, text: impl Into<String>) -> Self {
        Self::Paragraph {
            tone,
            label,
            text: text.into(),
            logged: 0,
        }
    }

    /// Returns a paragraph that is logged if a text leaves it out.
    pub fn logged(tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Paragraph {
            tone,
            label: "",
            logged: text.len(),
            text,
        }
    }

    /// Returns a paragraph that quotes others about `what`.
    pub fn about(what: &str, text: &str) -> Self {
        Self::Paragraph {
            tone: Tone::Plain,
            label: "",
            logged: what.len(),
            text: format!("{what}: {text}"),
        }
    }

    pub fn steps(steps: Vec<Step>) -> Self {
        Self::Steps { steps, left_out: 0 }
    }

    /// Returns blocks that only a text leaves out; it shows `line`, if that is not empty.
    pub fn left_out(line: impl Into<String>, blocks: Vec<Self>) -> Self {
        Self::Fold {
            line: line.into(),
            is_flat: true,
            blocks,
        }
    }

    pub fn fold(line: impl Into<String>, blocks: Vec<Self>) -> Self {
        Self::Fold {
            line: line.into(),
            is_flat: false,
            blocks,
        }
    }

    /// Reports whether the block has a command, in a fold or not.
    pub fn has_command(&self) -> bool {
        match self {
            Self::Paragraph { .. } => false,
            Self::Steps { steps, .. } => steps.iter().any(|step| step.command.is_some()),
            Self::Entry(entry) => entry.blocks.iter().any(Self::has_command),
            Self::Fold { blocks, .. } => blocks.iter().any(Self::has_command),
        }
    }

    /// Reports whether both blocks are items of a list, or neither is.
    pub fn are_alike(&self, other: &Self) -> bool {
        self.is_item() == other.is_item()
    }

    /// Reports whether the block is an item of a list in HTML.
    pub fn is_item(&self) -> bool {
        matches!(self, Self::Entry(_) | Self::Fold { is_flat: false, .. })
    }
}

/// Folds all but the first `most` of `blocks`.
pub fn first(mut blocks: Vec<Block>, most: usize) -> Vec<Block> {
    if blocks.len() > most {
        let rest = blocks.split_off(most);
        blocks.push(Block::fold(format!("and {} more", rest.len()), rest));
    }
    blocks
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
            columns: vec![made_by(name, owner), after("on ", node)],
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

    /// Begins a line of the log about a command of the entry.
    fn named_in_the_log(&self) -> String {
        let tag = self.tag.map(|tag| format!(" [{}]", tag.code));
        let node = after(" on ", self.node.as_ref());
        format!("{}{node}{}:", self.name, after("", tag))
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

/// Returns the owner of the pod `name`. If the pod's name begins with the owner's, its kind is
/// enough; without an owner, the text is empty.
fn made_by(name: &str, owner: Option<&Owner>) -> String {
    owner.map_or_else(String::new, |owner| match name.strip_prefix(&owner.name) {
        Some(rest) if rest.starts_with('-') => owner.kind.clone(),
        _ => owner.to_string(),
    })
}

/// Lists the blocks that say what to do first, and what is at risk.
pub fn warned(advice: &Advice) -> impl Iterator<Item = Block> {
    let texts = [
        ("First", Tone::Strong, &advice.first),
        ("Risk", Tone::Caution, &advice.risk),
    ];
    let texts = texts.into_iter();
    texts.filter_map(|(label, tone, text)| Some(Block::labelled(label, tone, text.as_ref()?)))
}

/// Lists the blocks that say what to do first, what is at risk, and what to do.
pub fn advised(advice: &Advice) -> impl Iterator<Item = Block> {
    let steps = Some(Block::steps(advice.steps.clone())).filter(|_| !advice.steps.is_empty());
    warned(advice).chain(steps)
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

/// Lists the first `most` of `names` in a line, and the others in another.
pub fn first_of(names: &[impl AsRef<str> + Display], most: usize) -> (String, Option<String>) {
    let rest = joined(names.iter().skip(most), ", ");
    (
        listed(names, most),
        rest.map(|rest| format!("The others: {rest}")),
    )
}

/// Makes a plain paragraph of each text.
pub fn paragraphs(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Block> {
    texts
        .into_iter()
        .map(|text| Block::paragraph(Tone::Plain, text))
        .collect()
}

/// Says why the verdicts may be wrong, before anything else is read.
pub fn incomplete(why: Option<&String>) -> Option<Block> {
    why.map(|why| Block::labelled("INCOMPLETE", Tone::Bad, why))
}

/// Returns the section of read errors, and the section of what the source does not show.
pub fn unread_sections(errors: &[ReadError], unseen: &[String]) -> [Section; 2] {
    let heading = format!("Could not be read: {}", errors.len());
    let errors = errors.iter();
    let causes = errors.map(|error| Block::about(&error.what, &error.cause));
    [
        Section::new(
            "unread",
            heading,
            Tone::Bad,
            first(causes.collect(), FEW_ERRORS),
        ),
        Section::new(
            "unseen",
            "Could not be seen",
            Tone::Caution,
            paragraphs(unseen),
        ),
    ]
}
