//! Writes a document as text.
//!
//! Lines have at most 110 columns. A longer word, usually a name, is not broken, so that it can be
//! copied. A command stays on one line, so that it can be pasted. The words of others stand in quotation
//! marks on each line, and before column 80.

use anstyle::{AnsiColor, Style};
use itertools::Itertools as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{
    advice::Harm,
    document::{Document, Kind, Line, Section, Tone},
};
use crate::words::{prefixed, sanitize};

/// The width of a text, except on a narrower terminal.
const COLUMNS: usize = 110;
/// The width of what others wrote. A narrower terminal breaks the lines of a log: a row that begins with the words of others
/// could look like one of ours.
const QUOTED_COLUMNS: usize = 80;
/// The least width of a text: in a narrower one, nearly every word would have a line of its own.
const FEWEST_COLUMNS: usize = 40;
/// The most lines of a paragraph: a text of others may be long, and JSON has all of it.
const LINES: usize = 8;
/// The least column at which the paragraphs of the head begin.
const LABEL: usize = 7;
/// Stands for a space within a name, its remark or a quotation, at which a line ends only if it has no room for all of it.
const TOGETHER: char = '\u{a0}';

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

/// Writes `document` as text for `screen`.
pub fn write(document: &Document, screen: Screen) -> String {
    let label = document
        .sections
        .iter()
        .filter(|section| section.kind == Kind::Head)
        .map(|section| section.heading.len() + 2)
        .max()
        .unwrap_or_default()
        .max(LABEL);
    let mut text = Text {
        written: String::new(),
        screen,
        label,
    };
    text.title(&sanitize(&document.headline), &sanitize(&document.about));
    let mut before = Kind::Head;
    for section in &document.sections {
        if section.kind != before {
            text.written.push('\n');
        }
        before = section.kind;
        text.section(section);
    }
    text.written
}

/// The lines written so far.
struct Text {
    written: String,
    screen: Screen,
    /// The column at which the paragraphs of the head begin.
    label: usize,
}

impl Text {
    /// Writes what is down at the left, and what the report is about at the right.
    fn title(&mut self, headline: &str, about: &str) {
        let columns = self.screen.columns;
        if headline.contains('"') || headline.width() + about.width() + 2 > columns {
            self.paragraph("", "", Tone::Bad, headline);
            self.line(&format!("{about:>columns$}"), Tone::Quiet);
        } else {
            let left = columns - about.width();
            self.line(&format!("{headline:<left$}{about}"), Tone::Bad);
        }
    }

    fn section(&mut self, section: &Section) {
        let tone = section.tone;
        let heading = sanitize(&section.heading);
        let mut before = format!("{heading:<width$}  ", width = self.label - 2);
        let indent = " ".repeat(match section.kind {
            Kind::Foot => 0,
            Kind::List => 2,
            Kind::Head | Kind::Steps => self.label,
        });
        if section.kind == Kind::Foot {
            before.clear();
        }
        for line in &section.lines {
            match line {
                Line::Text(text) => {
                    self.paragraph(&before, &indent, tone, text);
                    before.clone_from(&indent);
                }
                Line::Step(number, step) => {
                    // A line of its own, once.
                    let heading = std::mem::take(&mut before);
                    if !heading.trim().is_empty() {
                        self.line(&heading, tone);
                    }
                    let harms = step.harms.filter(|_| step.command.is_some());
                    let what = with_harm(&step.what, harms);
                    self.paragraph(&format!("{number:>2}  "), "    ", Tone::Plain, &what);
                    for case in &step.cases {
                        let first = format!("    {:<14}", format!("{}:", case.found));
                        let rest = " ".repeat(first.len());
                        let what = with_harm(&case.what, case.harms);
                        self.paragraph(&first, &rest, Tone::Plain, &what);
                        self.commands(&case.commands);
                    }
                    self.commands(&step.command);
                }
                Line::Command(command) => {
                    self.line(&format!("{indent}{}", sanitize(command)), Tone::Plain);
                }
                Line::Names(groups) => {
                    let names = spelled(groups);
                    let first = std::mem::take(&mut before);
                    self.wrapped(&first, &indent, Tone::Plain, &names, usize::MAX);
                }
            }
        }
    }

    fn commands<'a>(&mut self, commands: impl IntoIterator<Item = &'a String>) {
        for command in commands {
            self.line(&format!("    {}", sanitize(command)), Tone::Plain);
        }
    }

    fn paragraph(&mut self, first: &str, rest: &str, tone: Tone, text: &str) {
        let most = LINES.saturating_mul(COLUMNS).div_ceil(self.screen.columns);
        self.wrapped(first, rest, tone, &unbroken(text), most);
    }

    /// Writes a wrapped paragraph. Color is added after wrapping, which would count the escapes as
    /// columns.
    fn wrapped(&mut self, first: &str, rest: &str, tone: Tone, text: &str, most: usize) {
        let lines = wrap(text, first, rest, self.screen.columns);
        let is_cut = lines.len() > most;
        for line in &lines[..if is_cut { most - 1 } else { lines.len() }] {
            self.line(&line.replace(TOGETHER, " "), tone);
        }
        if is_cut {
            self.line(&format!("{rest}[...] --output=json has the rest"), tone);
        }
    }

    fn line(&mut self, line: &str, tone: Tone) {
        let style = match tone {
            _ if !self.screen.colour => Style::new(),
            Tone::Plain => Style::new(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
        };
        self.written
            .push_str(&format!("{style}{}{style:#}\n", line.trim_end()));
    }
}

fn with_harm(what: &str, harm: Option<Harm>) -> String {
    what.to_owned() + &prefixed(" ", harm.map(Harm::means))
}

/// Breaks a text into lines, each with its indent. What stands in quotation marks has some of its own on each line: an author
/// of it could make a line begin as a command of ours.
fn wrap(text: &str, first: &str, rest: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut is_begun = false;
    let mut is_quoted = false;
    for word in text.split(' ').flat_map(|word| parts(word, rest, columns)) {
        let has_quotes = is_quoted || word.contains('"');
        let most = room(has_quotes, columns);
        let ends_quoted = is_quoted != (word.matches('"').count() % 2 == 1);
        let width = line.width() + usize::from(is_begun) + word.width() + usize::from(ends_quoted);
        if is_begun && width > most {
            let mark = if is_quoted { "\"" } else { "" };
            lines.push(line + mark);
            line = format!("{rest}{mark}");
        } else if is_begun {
            line.push(' ');
        }
        is_begun = true;
        for letter in word.chars() {
            let is_of_others = is_quoted && letter != '"';
            let width = line.width() + letter.width().unwrap_or_default();
            if is_of_others && width >= most {
                lines.push(line + "\"");
                line = format!("{rest}\"");
            }
            line.push(letter);
            is_quoted ^= letter == '"';
        }
    }
    lines.push(line);
    lines
}

fn room(has_quotes: bool, columns: usize) -> usize {
    if has_quotes {
        columns.min(QUOTED_COLUMNS)
    } else {
        columns
    }
}

/// Splits what stands together, such as a name and its remark, or a quotation, if no line has room for it.
fn parts<'a>(word: &'a str, rest: &str, columns: usize) -> std::str::Split<'a, char> {
    let has_room = rest.width() + word.width() <= room(word.contains('"'), columns);
    word.split(if has_room { ' ' } else { TOGETHER })
}

/// Keeps together what stands in quotation marks.
fn unbroken(text: &str) -> String {
    let together = TOGETHER.to_string();
    sanitize(text)
        .split('"')
        .enumerate()
        .map(|(number, part)| match number % 2 {
            0 => part.to_owned(),
            _ => part.replace(' ', &together),
        })
        .join("\"")
}

/// Spells the groups one after the other. A name and its remark stay together, and so do a group
/// and its first name.
fn spelled(groups: &[(String, Vec<String>)]) -> String {
    let together = |text: &String| sanitize(text).replace(' ', &TOGETHER.to_string());
    groups
        .iter()
        .map(|(of, names)| {
            let names = names.iter().map(together).join(", ");
            if of.is_empty() {
                names
            } else {
                format!("{}{TOGETHER}{names}", together(of))
            }
        })
        .join(" · ")
}
