//! The page: the content of a report or an explanation, before it becomes text or HTML.

use crate::{
    advice::{Advice, Step},
    codes::codes,
    facts::{Owner, ReadError},
    judge::Verdict,
    words::prefixed,
};

/// The content that every format for people shows.
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
    /// The settings as sentences; empty if there is
    /// nothing to say.
    pub settings: String,
    /// The head: what is wrong, what happens to the pods, and what to do first. A long text repeats
    /// the head at its end.
    pub head: Vec<Line>,
    pub sections: Vec<Section>,
    /// The meaning of each code on the page. Text, which has no room, leaves it out.
    pub words: Vec<Word>,
}

/// A line of the head.
#[derive(Debug, Clone)]
pub struct Line {
    /// A word in capitals before the texts, such as `NODES`.
    pub label: &'static str,
    pub tone: Tone,
    /// The texts of the line. Several texts are numbered: they are things to do, in this order.
    pub texts: Vec<String>,
}

/// The label of the line that repeats the headline: HTML has it as its title.
pub const PODS: &str = "PODS";

/// A part of the page under a heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// The section's anchor in HTML, unique on the page.
    pub id: &'static str,
    pub heading: String,
    /// The color of the heading in a text.
    pub tone: Tone,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
pub enum Block {
    Paragraph {
        tone: Tone,
        /// A word before the text, such as "Risk"; often empty.
        label: &'static str,
        text: String,
        /// Whether others wrote the text, who may have written much: the API server, or a pod's
        /// author.
        is_quote: bool,
    },
    /// Things to do, in this order.
    Steps(Vec<Step>),
    /// Names that belong together. Every format shows all of them.
    Names(Vec<String>),
    Entry(Entry),
    /// The rows of pods. Every format shows all of them. A text lists the pods with a brief form by
    /// name, grouped by node and namespace.
    Pods(Vec<Block>),
    /// The line that a node's pods have in common, and the pods.
    Node {
        line: String,
        blocks: Vec<Block>,
    },
    /// Blocks that a text replaces by a line.
    Fold {
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
    pub tone: Tone,
    pub namespace: Option<String>,
    pub verdict: Option<Verdict>,
    pub node: Option<String>,
    /// The owners of the pods.
    pub workloads: Vec<Owner>,
    /// For how many seconds the longest overdue pod has been overdue.
    pub overdue: Option<i64>,
    /// The number of pods; 0 if the entry is not about pods.
    pub pods: usize,
    /// Whether the entry is a card, which has room for blocks. Otherwise the entry is a row of a
    /// table.
    pub is_card: bool,
    /// Whether HTML shows the card unfolded.
    pub is_open: bool,
    /// The pod's name: enough for a text, because the heading says the rest.
    pub brief: Option<String>,
    pub blocks: Vec<Block>,
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
    /// The kind of the code: `reason` or `outcome`.
    pub kind: &'static str,
    pub code: &'static str,
    pub means: &'static str,
    /// A sentence about what to do; empty if there is nothing to do.
    pub advice: &'static str,
}

codes! {
    /// The weight of a line, which decides the color.
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

/// The most names that a line lists.
pub const NAMES: usize = 10;
/// The most entries that a text shows of a section that is neither about pods to reap nor about pods
/// that need you.
pub const ENTRIES: usize = 10;

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

impl Line {
    pub fn new(label: &'static str, tone: Tone, text: impl Into<String>) -> Self {
        let texts = vec![text.into()];
        Self { label, tone, texts }
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
            is_quote: false,
        }
    }

    /// Returns a paragraph that quotes the text of others about `what`.
    pub fn about(what: &str, text: &str) -> Self {
        Self::Paragraph {
            tone: Tone::Plain,
            label: "",
            text: format!("{what}: {text}"),
            is_quote: true,
        }
    }

    /// Reports whether both blocks are items of a list, or neither is.
    pub fn are_alike(&self, other: &Self) -> bool {
        self.is_item() == other.is_item()
    }

    /// Reports whether the block is an item of a list in HTML.
    pub fn is_item(&self) -> bool {
        matches!(self, Self::Entry(_) | Self::Fold { .. })
    }
}

/// Folds all but the first `most` of `blocks`.
pub fn first(mut blocks: Vec<Block>, most: usize) -> Vec<Block> {
    if blocks.len() > most {
        let rest = blocks.split_off(most);
        blocks.push(Block::Fold {
            line: format!("and {} more", rest.len()),
            blocks: rest,
        });
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
            columns: vec![made_by(name, owner), prefixed("on ", node)],
            namespace: Some(namespace.to_owned()),
            node: node.cloned(),
            workloads: owner.into_iter().cloned().collect(),
            pods: 1,
            ..Self::default()
        }
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

/// Lists the blocks that say what is at risk or what to do, without the steps.
pub fn warned<'a>(
    advice: &'a Advice,
    first: Option<&'a String>,
) -> impl Iterator<Item = Block> + use<'a> {
    let risk = if advice.repairs { "" } else { "Risk" };
    let texts = [
        ("", Tone::Strong, first),
        (risk, Tone::Caution, advice.risk.as_ref()),
    ];
    let texts = texts.into_iter();
    texts.filter_map(|(label, tone, text)| Some(Block::labelled(label, tone, text?)))
}

/// Lists the blocks that say what to do first, what is at risk, and what to do.
pub fn advised(advice: &Advice) -> impl Iterator<Item = Block> + '_ {
    let steps = Some(Block::Steps(advice.steps.clone())).filter(|_| !advice.steps.is_empty());
    warned(advice, advice.first.as_ref()).chain(steps)
}

/// Pairs each step with the mark before it: a dash for the only step, otherwise the step's number.
pub fn numbered(steps: &[Step]) -> impl Iterator<Item = (String, &Step)> {
    steps.iter().zip(1..).map(|(step, number)| {
        let mark = match steps.len() {
            1 => "- ".to_owned(),
            _ => format!("{number}. "),
        };
        (mark, step)
    })
}

/// Makes a plain paragraph of each text.
pub fn paragraphs(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Block> {
    texts
        .into_iter()
        .map(|text| Block::paragraph(Tone::Plain, text))
        .collect()
}

/// Returns the line of the head that says why the verdicts may be wrong.
pub fn incomplete(why: Option<&String>) -> Option<Line> {
    why.map(|why| Line::new("INCOMPLETE", Tone::Bad, why))
}

/// Returns the section of read errors, and the section of facts that the source does not show.
pub fn unread_sections(errors: &[ReadError], unseen: &[String]) -> [Section; 2] {
    let heading = format!("Not read: {}", errors.len());
    let errors = errors.iter();
    let causes = errors.map(|error| Block::about(&error.what, &error.cause));
    [
        Section::new(
            "unread",
            heading,
            Tone::Bad,
            first(causes.collect(), ENTRIES),
        ),
        Section::new("unseen", "Not seen", Tone::Caution, paragraphs(unseen)),
    ]
}
