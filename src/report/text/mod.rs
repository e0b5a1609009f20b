//! Writes a page as text. Its most important lines come first, and again at the end, where a
//! terminal and `kubectl logs --tail` show them.
//!
//! Lines have at most 100 columns. A longer word, usually a name, is not broken, so that it can be
//! copied; a command stays on its own line, so that it can be pasted.

use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSeparator, WordSplitter};

use super::{
    page::{Block, Entry, Log, Page, Tone, logged, numbered},
    phrases,
};
use crate::words::{after, clean};

/// The width of a text on anything but a narrower terminal: longer lines are hard to read.
const COLUMNS: usize = 100;
/// The least width of a text: below it, nearly every word would have a line of its own.
const FEWEST_COLUMNS: usize = 40;
/// The most lines of a paragraph.
const LINES: usize = 8;
/// The most lines of a paragraph that quotes others, who may write much.
const QUOTED: usize = 3;
const ITEM: &str = "  ";
const DETAIL: &str = "      ";

/// The properties of the terminal, file or pipe that a text is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Write ANSI escapes for colours.
    pub colour: bool,
    /// The width in columns.
    pub columns: usize,
    /// What the log says of what the text leaves out.
    pub log: Log,
}

impl Default for Screen {
    /// Returns the screen of a file, a pipe or a log.
    fn default() -> Self {
        Self {
            colour: false,
            columns: COLUMNS,
            log: Log::default(),
        }
    }
}

impl Screen {
    /// Returns the screen of a terminal that is `columns` wide; 0 means that the width is
    /// not known.
    pub fn of_terminal(colour: bool, columns: usize) -> Self {
        let columns = match columns {
            0 => COLUMNS,
            columns => columns.clamp(FEWEST_COLUMNS, COLUMNS),
        };
        Self {
            colour,
            columns,
            ..Self::default()
        }
    }
}

/// Writes `page` as text for `screen`.
pub fn write(page: &Page, screen: Screen) -> String {
    let mut text = Text::new(screen);
    text.blocks("", &page.lead);
    let mut was_minor = false;
    for section in &page.sections {
        if !(text.text.is_empty() || was_minor && section.is_minor()) {
            text.line("");
        }
        was_minor = section.is_minor();
        let heading = clean(&in_capitals(&section.heading));
        text.line(&text.painted(section.tone, &heading));
        text.blocks(ITEM, &section.blocks);
    }
    if !page.about.is_empty() {
        text.line("");
        text.blocks("", &[page.footer()]);
    }
    if !page.sections.is_empty() {
        text.blocks("", &page.lead);
    }
    text.text
}

/// The lines written so far.
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

    /// Writes a wrapped paragraph. Colour is added line by line after wrapping, because the escapes
    /// would count as columns.
    fn paragraph(&mut self, first: &str, rest: &str, tone: Tone, text: &str, most: usize) {
        let options = Options::new(self.screen.columns)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        let text = clean(text);
        let lines = textwrap::wrap(&text, options);
        let most = (most * COLUMNS).div_ceil(self.screen.columns);
        let is_cut = lines.len() > most;
        let shown = if is_cut { most - 1 } else { lines.len() };
        for line in &lines[..shown] {
            let line = line.trim_end().replace(TOGETHER, " ");
            self.line(&self.painted(tone, &line));
        }
        if is_cut {
            self.line(&format!("{rest}[...] --output=json has the rest"));
        }
    }

    fn painted(&self, tone: Tone, text: &str) -> String {
        let style = if self.screen.colour {
            style(tone)
        } else {
            Style::new()
        };
        format!("{style}{text}{style:#}")
    }

    fn blocks(&mut self, indent: &str, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Paragraph {
                    tone,
                    label,
                    text,
                    logged,
                } => {
                    let quotes = (1..text.len()).contains(logged);
                    let most = if quotes { QUOTED } else { LINES };
                    let label = after("", (!label.is_empty()).then(|| format!("{label}: ")));
                    self.paragraph(indent, indent, *tone, &(label + text), most);
                }
                Block::Steps { steps, left_out } => {
                    for (mark, step) in numbered(&steps[*left_out..]) {
                        let rest = format!("{indent}{:1$}", "", mark.len());
                        let first = format!("{indent}{mark}");
                        self.paragraph(&first, &rest, Tone::Plain, &step.what, LINES);
                        let command = step.command.iter();
                        for line in command.flat_map(|command| phrases::lines(command)) {
                            self.line(&format!("{rest}{line}"));
                        }
                    }
                }
                Block::Entry(entry) => self.entry(indent, entry),
                Block::Fold { line, .. } if line.is_empty() => {}
                Block::Fold { line, blocks, .. } => {
                    let logged = logged(blocks, None, true, self.screen.log);
                    let logged = (!logged.is_empty()).then_some("named in the log");
                    let line = format!("{line}{}", after("; ", logged));
                    self.paragraph(indent, DETAIL, Tone::Quiet, &line, LINES);
                }
            }
        }
    }

    fn entry(&mut self, indent: &str, entry: &Entry) {
        let mut parts = vec![entry.name.clone()];
        parts.extend(entry.filled_columns().map(|column| {
            // A long column, such as a node's state, is wrapped like other text.
            if column.len() < self.screen.columns / 2 {
                together(column)
            } else {
                column.clone()
            }
        }));
        parts.extend(entry.tag.map(|tag| format!("[{}]", tag.code)));
        parts.extend(entry.harm.filter(|_| !entry.is_card).map(together));
        self.paragraph(indent, DETAIL, entry.tone, &parts.join("  "), LINES);
        self.blocks(DETAIL, &entry.blocks);
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

/// Puts a heading into capitals up to its count or its remark in brackets.
fn in_capitals(heading: &str) -> String {
    let (words, rest) = heading.split_at(heading.find([':', '(']).unwrap_or(heading.len()));
    words.to_uppercase() + rest
}

/// Stands for a space that must not become a line break, until the line is written.
const TOGETHER: char = '\u{a0}';

fn together(fact: &str) -> String {
    fact.replace(' ', &TOGETHER.to_string())
}

#[cfg(test)]
mod tests;
