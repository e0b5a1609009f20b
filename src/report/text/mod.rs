//! A page as text: what matters most first, and once more at the end, where a terminal or `kubectl logs --tail` shows it.
//!
//! A hundred columns; a word longer than that, a name mostly, is not broken, so that it can be copied, and a command stays on
//! its line, so that it can be pasted.

use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSeparator, WordSplitter};

use super::{
    page::{Block, Entry, Page, Tone, numbered},
    phrases,
};
use crate::words::{after, clean};

/// Width that a text keeps to where nothing is narrower: longer lines are hard to read.
const COLUMNS: usize = 100;
/// Narrower than this nothing is made: a word would stand on every line.
const FEWEST_COLUMNS: usize = 40;
const ITEM: &str = "  ";
const DETAIL: &str = "      ";

/// What text is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// With ANSI escapes.
    pub colour: bool,
    /// Columns.
    pub columns: usize,
}

impl Default for Screen {
    /// A file, a pipe, a log.
    fn default() -> Self {
        Self {
            colour: false,
            columns: COLUMNS,
        }
    }
}

impl Screen {
    /// A terminal that is `columns` wide; 0 where that is not known.
    pub fn of_terminal(colour: bool, columns: usize) -> Self {
        let columns = match columns {
            0 => COLUMNS,
            columns => columns.clamp(FEWEST_COLUMNS, COLUMNS),
        };
        Self { colour, columns }
    }
}

/// Writes `page` as text for `screen`.
pub fn write(page: &Page, screen: Screen) -> String {
    let mut text = Text::new(screen);
    text.blocks("", &page.lead);
    for section in &page.sections {
        if !text.text.is_empty() {
            text.line("");
        }
        let heading = clean(&in_capitals(&section.heading));
        text.line(&text.painted(section.tone, &heading));
        text.blocks(ITEM, &section.blocks);
    }
    if !page.about.is_empty() {
        text.line("");
        let about = [page.about.as_str(), &page.settings].join(" ");
        text.paragraph("", "", Tone::Quiet, &about);
    }
    if !page.sections.is_empty() {
        text.blocks("", &page.lead);
    }
    text.text
}

/// How many lines of text `blocks` are, in a section.
pub fn lines(blocks: &[Block]) -> usize {
    let mut text = Text::new(Screen::default());
    text.blocks(ITEM, blocks);
    text.text.lines().count()
}

/// Text as it grows, in columns.
struct Text {
    text: String,
    screen: Screen,
}

impl Text {
    fn new(screen: Screen) -> Self {
        let text = String::new();
        Self { text, screen }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A paragraph, wrapped; painted line by line, since escapes have no width.
    fn paragraph(&mut self, first: &str, rest: &str, tone: Tone, text: &str) {
        let options = Options::new(self.screen.columns)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        for line in textwrap::wrap(&clean(text), options) {
            let line = line.trim_end().replace(TOGETHER, " ");
            self.line(&self.painted(tone, &line));
        }
    }

    fn painted(&self, tone: Tone, text: &str) -> String {
        let style = style(tone);
        if self.screen.colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    fn blocks(&mut self, indent: &str, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Says { tone, label, text } => {
                    let label = after("", (!label.is_empty()).then(|| format!("{label}: ")));
                    self.paragraph(indent, indent, *tone, &(label + text));
                }
                Block::Steps(steps) => {
                    for (mark, step) in numbered(steps) {
                        let rest = format!("{indent}{:1$}", "", mark.len());
                        let first = format!("{indent}{mark}");
                        self.paragraph(&first, &rest, Tone::Plain, &step.what);
                        for line in step.command.iter().flat_map(|it| phrases::lines(it)) {
                            self.line(&format!("{rest}{line}"));
                        }
                    }
                }
                Block::Entry(entry) => self.entry(indent, entry),
                Block::Fold { says, .. } if says.is_empty() => {}
                Block::Fold { says, .. } => self.paragraph(indent, DETAIL, Tone::Quiet, says),
            }
        }
    }

    fn entry(&mut self, indent: &str, entry: &Entry) {
        let mut says = vec![entry.name.clone()];
        // A long one, such as a node's state, is broken all the same.
        let is_short = |fact: &str| fact.len() < self.screen.columns / 2;
        says.extend(entry.known_facts().map(|fact| {
            if is_short(fact) {
                together(fact)
            } else {
                fact.to_owned()
            }
        }));
        says.extend(entry.tag.map(|tag| format!("[{}]", tag.code)));
        says.extend(entry.harm.filter(|_| !entry.is_card).map(together));
        self.paragraph(indent, DETAIL, entry.tone, &says.join("  "));
        let blocks = if entry.is_brief {
            &entry.brief
        } else {
            &entry.blocks
        };
        self.blocks(DETAIL, blocks);
    }
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().bold(),
        Tone::Quiet => Style::new().dimmed(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Caution => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
    }
}

/// The words before a count, or before what is added in brackets.
fn in_capitals(heading: &str) -> String {
    let (words, rest) = heading.split_at(heading.find([':', '(']).unwrap_or(heading.len()));
    words.to_uppercase() + rest
}

/// Stands for a space at which a line is not broken, until it is written.
const TOGETHER: char = '\u{a0}';

fn together(fact: &str) -> String {
    fact.replace(' ', &TOGETHER.to_string())
}

#[cfg(test)]
mod tests;
