//! Writes a page as text. Its head comes first, and again at the end of a long text, where a terminal
//! and `kubectl logs --tail` show it.
//!
//! Lines have at most 100 columns. A longer word, usually a name, is not broken, so that the word can
//! be copied. A command stays on one line of its own, so that the command can be pasted.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSeparator, WordSplitter};

use super::{
    page::{Block, Entry, Line, Page, Tone, numbered},
    phrases,
};
use crate::words::{natural, prefixed, sanitize};

/// The width of a text, except on a narrower terminal: longer lines are hard to read.
const COLUMNS: usize = 100;
/// The least width of a text: in a narrower one, nearly every word would have a line of its own.
const FEWEST_COLUMNS: usize = 40;
/// The most lines of a paragraph.
const LINES: usize = 8;
/// The most lines of a paragraph that quotes a text of others, who may write much.
const QUOTED: usize = 3;
/// The most lines of a text that does not repeat its head at its end.
const ONE_LOOK: usize = 40;
/// The column at which the texts of the head begin.
const LABEL: usize = 7;
const ITEM: &str = "  ";
const DETAIL: &str = "      ";

/// The properties of the terminal, file or pipe that a text is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Whether to write ANSI escapes for colors.
    pub colour: bool,
    /// The width in columns.
    pub columns: usize,
}

impl Default for Screen {
    /// Returns the screen of a file, a pipe or a log.
    fn default() -> Self {
        Self {
            colour: false,
            columns: COLUMNS,
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
        Self { colour, columns }
    }
}

/// Writes `page` as text for `screen`.
pub fn write(page: &Page, screen: Screen) -> String {
    let mut text = Text::new(screen);
    text.head(page);
    for section in &page.sections {
        if !text.text.is_empty() {
            text.line("");
        }
        let heading = sanitize(&in_capitals(&section.heading));
        text.line(&text.painted(section.tone, &heading));
        text.blocks(ITEM, &section.blocks);
    }
    if !page.about.is_empty() {
        text.line("");
        let about = if page.head.is_empty() {
            &page.about
        } else {
            ""
        };
        let footer = format!("{about} {}", page.settings);
        text.paragraph("", "", Tone::Quiet, footer.trim(), LINES);
    }
    if text.text.lines().count() > ONE_LOOK && !page.head.is_empty() {
        text.line("");
        text.head(page);
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

    /// Writes a wrapped paragraph. Color is added line by line after wrapping, because the wrapping
    /// would count the escapes as columns.
    fn paragraph(&mut self, first: &str, rest: &str, tone: Tone, text: &str, most: usize) {
        let options = Options::new(self.screen.columns)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        let text = sanitize(text);
        let lines = textwrap::wrap(&text, options);
        let most = most.saturating_mul(COLUMNS).div_ceil(self.screen.columns);
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

    fn head(&mut self, page: &Page) {
        if page.head.is_empty() {
            return;
        }
        self.paragraph("", "", Tone::Plain, &page.about, LINES);
        for Line { label, tone, texts } in &page.head {
            let mut before = format!("{label:<0$}", LABEL.max(label.len() + 1));
            for (number, text) in (1..).zip(texts) {
                let mark = if texts.len() > 1 {
                    format!("{number}. ")
                } else {
                    String::new()
                };
                let first = format!("{before}{mark}");
                let rest = " ".repeat(LABEL + mark.len());
                self.paragraph(&first, &rest, *tone, text, LINES);
                before = " ".repeat(LABEL);
            }
        }
    }

    fn blocks(&mut self, indent: &str, blocks: &[Block]) {
        let mut before = None;
        let mut was_node = false;
        for (place, block) in blocks.iter().enumerate() {
            let is_node = matches!(block, Block::Node { .. });
            if was_node && !is_node {
                self.line("");
            }
            was_node = is_node;
            match block {
                Block::Paragraph {
                    tone,
                    label,
                    text,
                    is_quote,
                } => {
                    let most = if *is_quote { QUOTED } else { LINES };
                    let label = prefixed("", (!label.is_empty()).then(|| format!("{label}: ")));
                    self.paragraph(indent, indent, *tone, &(label + text), most);
                }
                Block::Steps(steps) => {
                    for (mark, step) in numbered(steps) {
                        let rest = format!("{indent}{:1$}", "", mark.len());
                        let first = format!("{indent}{mark}");
                        // A step is never cut, because what must be known before its command may be
                        // at its end.
                        self.paragraph(&first, &rest, Tone::Plain, &step.what, usize::MAX);
                        let command = step.command.iter();
                        for line in command.flat_map(|command| phrases::lines(command)) {
                            self.line(&format!("{rest}{line}"));
                        }
                    }
                }
                Block::Names(names) => self.names(indent, indent, names),
                // Consecutive rows often say the same.
                Block::Entry(entry) if before.is_some() && before == says(entry) => {
                    self.entry(indent, entry, false);
                }
                Block::Entry(entry) => {
                    self.entry(indent, entry, true);
                    before = says(entry);
                }
                Block::Pods(rows) => self.pods(indent, rows),
                Block::Node { line, blocks } => {
                    if place > 0 {
                        self.line("");
                    }
                    self.paragraph("", DETAIL, Tone::Strong, line, LINES);
                    self.blocks(indent, blocks);
                }
                Block::Fold { line, .. } => {
                    self.paragraph(indent, DETAIL, Tone::Quiet, line, LINES);
                }
            }
        }
    }

    /// Lists the rows with a brief form by node and namespace, after all other rows.
    fn pods(&mut self, indent: &str, rows: &[Block]) {
        let mut brief = BTreeMap::<_, BTreeMap<_, Vec<_>>>::new();
        for block in rows {
            let Block::Entry(entry) = block else { continue };
            let Some(name) = &entry.brief else {
                self.entry(indent, entry, true);
                continue;
            };
            let of_node = brief.entry(entry.node.as_deref().map(natural)).or_default();
            let namespace = entry.namespace.clone().unwrap_or_default();
            of_node.entry(namespace).or_default().push((name, entry));
        }
        for of_node in brief.into_values() {
            let entries = || of_node.values().flatten().map(|(_, entry)| *entry);
            let node = entries().next().and_then(|entry| entry.node.as_ref());
            let longest = entries().filter_map(|entry| entry.overdue).max();
            let overdue = match entries().count() {
                1 => longest.map(phrases::overdue),
                _ => longest.map(phrases::overdue_up_to),
            };
            let line = prefixed("on ", node) + &prefixed(", ", overdue);
            self.paragraph(indent, DETAIL, Tone::Plain, &line, LINES);
            let widths = of_node.keys().map(|namespace| namespace.chars().count());
            let width = widths
                .max()
                .unwrap_or_default()
                .min(self.screen.columns / 3);
            for (namespace, mut names) in of_node {
                names.sort_by_cached_key(|(name, _)| natural(name));
                let names = names.into_iter().map(|(name, _)| name.clone());
                let first = format!("{indent}  {:<width$}  ", sanitize(&namespace));
                let rest = format!("{indent}  {:<width$}  ", "");
                self.names(&first, &rest, &names.collect::<Vec<_>>());
            }
        }
    }

    /// Writes names after `first`, or below `first` if one of the names does not fit on its line.
    fn names(&mut self, first: &str, rest: &str, names: &[String]) {
        let fits = |name: &String| rest.len() + name.len() <= self.screen.columns;
        if !names.iter().all(fits) && !first.trim().is_empty() {
            self.line(first);
            return self.names(DETAIL, DETAIL, names);
        }
        let words = names.iter().map(|name| {
            if fits(name) {
                together(name)
            } else {
                name.clone()
            }
        });
        let line = words.collect::<Vec<_>>().join("  ");
        self.paragraph(first, rest, Tone::Plain, &line, usize::MAX);
    }

    fn entry(&mut self, indent: &str, entry: &Entry, with_blocks: bool) {
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
        self.paragraph(indent, DETAIL, entry.tone, &parts.join("  "), LINES);
        if with_blocks {
            self.blocks(DETAIL, &entry.blocks);
        }
    }
}

/// Returns the only text of a row of a table below its line; `None` if there is no text, or more.
fn says(entry: &Entry) -> Option<&str> {
    match &entry.blocks[..] {
        [Block::Paragraph { text, .. }] if !entry.is_card => Some(text),
        _ => None,
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

/// Capitalizes a heading up to its count or its remark in brackets.
fn in_capitals(heading: &str) -> String {
    let (words, rest) = heading.split_at(heading.find([':', '(']).unwrap_or(heading.len()));
    words.to_uppercase() + rest
}

/// Stands for a space that must not become a line break. Replaced by a space when the line is
/// written.
const TOGETHER: char = '\u{a0}';

fn together(fact: &str) -> String {
    fact.replace(' ', &TOGETHER.to_string())
}
