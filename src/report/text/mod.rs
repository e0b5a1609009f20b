//! The report for a person: nodes first, then what was done, what waits, and, last because it stays on the screen,
//! what needs a person.
//!
//! A hundred columns; a word longer than that, a name mostly, is not broken, so that it can be copied.

use anstyle::{AnsiColor, Style};
use textwrap::{Options, WordSeparator, WordSplitter};

use super::{
    Group, NodeEntry, PodEntry, Report,
    notices::Notice,
    phrases::{self, clean},
};
use crate::advice::{Command, Step};
use crate::{decide::Verdict, exit::Exit, facts::ReadError, outcome::OutcomeCode};

/// Width that the report keeps to where nothing is narrower: longer lines are hard to read.
const COLUMNS: usize = 100;
/// Narrower than this nothing is made: a word would stand on every line.
const FEWEST_COLUMNS: usize = 40;
pub(crate) const ITEM: &str = "  ";
pub(crate) const DETAIL: &str = "      ";

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const CAUTION: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const QUIET: Style = Style::new().dimmed();

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
    /// A terminal that is `columns` wide.
    pub fn of_terminal(colour: bool, columns: usize) -> Self {
        Self {
            colour,
            columns: columns.clamp(FEWEST_COLUMNS, COLUMNS),
        }
    }
}

/// Writes `report` as text for `screen`.
pub fn write(report: &Report, screen: Screen) -> String {
    let mut page = Page {
        text: String::new(),
        screen,
    };
    let style = if report.exit == Exit::Done {
        HEADING
    } else {
        BAD
    };
    let summary = phrases::summary(report);
    page.paragraph("", "", style, &summary);
    if let Some(breaker) = &report.breaker {
        page.heading(BAD, &format!("NOTHING IS DELETED ({})", breaker.reason));
        for says in phrases::breaker(breaker) {
            page.paragraph(ITEM, ITEM, Style::new(), &says);
        }
    }
    page.nodes(report);
    for verdict in [
        Verdict::Reap,
        Verdict::Wait,
        Verdict::Leave,
        Verdict::Manual,
    ] {
        page.pods(report, verdict);
    }
    page.notices(&report.notices);
    page.unread(&report.errors, &report.unseen);
    let (version, judged_at) = (report.program_version, report.judged_at.strftime("%F %TZ"));
    let title = format!(
        "pod-reaper {version}: {}, judged at {judged_at}. ",
        phrases::run(report)
    );
    page.text.push('\n');
    page.paragraph("", "", QUIET, &(title + &phrases::settings(report)));
    page.paragraph("", "", style, &summary);
    page.text
}

/// Text as it grows, in columns; other writers of text use it too.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) screen: Screen,
}

impl Page {
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.screen.colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// A paragraph, wrapped; painted line by line, since escapes have no width.
    pub(crate) fn paragraph(&mut self, first: &str, rest: &str, style: Style, text: &str) {
        let options = Options::new(self.screen.columns)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        for line in textwrap::wrap(&clean(text), options) {
            let painted = self.paint(style, &line.trim_end().replace(TOGETHER, " "));
            self.line(&painted);
        }
    }

    pub(crate) fn heading(&mut self, style: Style, text: &str) {
        self.text.push('\n');
        self.line(&self.paint(style, text));
    }

    fn nodes(&mut self, report: &Report) {
        let all_ready = report.summary.nodes_not_ready == 0;
        self.heading(
            if all_ready { GOOD } else { HEADING },
            &in_capitals(&phrases::nodes(report)),
        );
        let (summed, each) = phrases::summed_nodes(report);
        for says in &summed {
            self.paragraph(ITEM, DETAIL, Style::new(), says);
        }
        for node in each {
            self.node(report, node);
        }
    }

    fn node(&mut self, report: &Report, node: &NodeEntry) {
        let says = format!("{}  {}", node.name, phrases::node(report, node));
        self.paragraph(ITEM, DETAIL, Style::new(), &says);
        if !node.leaf_marks.is_empty() {
            let marks = node.leaf_marks.join(", ");
            self.paragraph(
                DETAIL,
                DETAIL,
                CAUTION,
                &format!("a leaf node, by its {marks}"),
            );
        }
        let pods = phrases::terminating(node).unwrap_or_else(|| "none".to_owned());
        self.paragraph(DETAIL, DETAIL, QUIET, &format!("Terminating pods: {pods}"));
        if !node.volume_attachments.is_empty() {
            let volumes = phrases::attached(node);
            self.paragraph(
                DETAIL,
                DETAIL,
                QUIET,
                &format!("volumes still attached: {volumes}"),
            );
        }
        for step in &node.steps {
            self.step("- ", step);
        }
    }

    fn pods(&mut self, report: &Report, verdict: Verdict) {
        let pods = phrases::of(report, verdict);
        if pods.is_empty() {
            return;
        }
        let style = if verdict == Verdict::Manual {
            BAD
        } else {
            HEADING
        };
        self.heading(style, &in_capitals(&phrases::heading(report, verdict)));
        if verdict == Verdict::Manual {
            report
                .groups
                .iter()
                .for_each(|group| self.group(report, group));
            if let Some(step) = &report.run_now {
                self.text.push('\n');
                self.paragraph("", "", Style::new(), &step.what);
                self.command(ITEM, step);
            }
            return;
        }
        let (summed, each) = match verdict {
            Verdict::Reap => (Vec::new(), pods),
            _ => phrases::summed(&pods),
        };
        for says in &summed {
            self.paragraph(ITEM, DETAIL, QUIET, says);
        }
        for pod in each {
            self.pod(pod);
        }
    }

    /// Pods that share what there is to do.
    fn group(&mut self, report: &Report, group: &Group) {
        let first = &report.pods[group.pods[0]];
        let Some((says, names)) = phrases::several(report, group) else {
            return self.pod(first);
        };
        self.paragraph(
            ITEM,
            DETAIL,
            style_of(first),
            &format!("{says}  [{}]", first.reason),
        );
        for text in [&names, &group.detail] {
            self.paragraph(DETAIL, DETAIL, Style::new(), text);
        }
        self.advice(
            DETAIL,
            [("Note", &None), ("Risk", &group.risk)],
            &group.steps,
        );
    }

    fn pod(&mut self, pod: &PodEntry) {
        let mut says = vec![format!("{}/{}", pod.namespace, pod.name)];
        says.extend(
            pod.owner
                .as_ref()
                .map(|owner| format!("{}/{}", owner.kind, owner.name)),
        );
        says.extend(
            pod.node
                .as_ref()
                .map(|node| together(&format!("on {node}"))),
        );
        says.push(together(&phrases::overdue(pod.overdue_seconds)));
        says.extend(phrases::tag(pod).map(|tag| format!("[{tag}]")));
        self.paragraph(ITEM, DETAIL, style_of(pod), &says.join("  "));
        if let Some(sentence) = phrases::sentence(pod) {
            self.paragraph(DETAIL, DETAIL, Style::new(), sentence);
        }
        if let Some(says) = phrases::replacement(pod) {
            self.paragraph(
                DETAIL,
                DETAIL,
                Style::new(),
                &format!("Replacement: {says}"),
            );
        }
        self.advice(
            DETAIL,
            [("Note", &pod.note), ("Risk", &pod.risk)],
            &pod.steps,
        );
    }

    /// What to remember, what is at risk, and what to do, in order.
    pub(crate) fn advice(
        &mut self,
        indent: &str,
        said: [(&str, &Option<String>); 2],
        steps: &[Step],
    ) {
        for (word, text) in said {
            if let Some(text) = text {
                self.paragraph(indent, indent, CAUTION, &format!("{word}: {text}"));
            }
        }
        for (number, step) in steps.iter().enumerate() {
            self.step(&format!("{}. ", number + 1), step);
        }
    }

    fn step(&mut self, mark: &str, step: &Step) {
        let rest = format!("{DETAIL}{:1$}", "", mark.len());
        self.paragraph(&format!("{DETAIL}{mark}"), &rest, Style::new(), &step.what);
        self.command(&rest, step);
    }

    /// A command stays on its lines, whatever their length: so it can be pasted.
    fn command(&mut self, indent: &str, step: &Step) {
        for line in step.command.iter().flat_map(Command::lines) {
            self.line(&format!("{indent}{}", clean(&line.join(" "))));
        }
    }

    /// What there is to know besides.
    pub(crate) fn notices(&mut self, notices: &[Notice]) {
        if notices.is_empty() {
            return;
        }
        self.heading(CAUTION, "WORTH KNOWING");
        for Notice { code, detail, .. } in notices {
            let style = if code.asks_for_a_look() {
                Style::new()
            } else {
                QUIET
            };
            self.paragraph(ITEM, DETAIL, style, &format!("{detail}  [{code}]"));
        }
    }

    /// What could not be read, and what could not be seen.
    pub(crate) fn unread(&mut self, errors: &[ReadError], unseen: &[String]) {
        if !errors.is_empty() {
            self.heading(BAD, &format!("COULD NOT BE READ: {}", errors.len()));
            for error in errors {
                self.paragraph(
                    ITEM,
                    DETAIL,
                    Style::new(),
                    &format!("{}: {}", error.what, error.cause),
                );
            }
        }
        if !unseen.is_empty() {
            self.heading(CAUTION, "COULD NOT BE SEEN");
            for sentence in unseen {
                self.paragraph(ITEM, ITEM, Style::new(), sentence);
            }
        }
    }
}

/// The words before a count, or before what a dry run adds in brackets; a sentence stays as it is.
fn in_capitals(heading: &str) -> String {
    let (words, rest) = heading.split_at(heading.find([':', '(']).unwrap_or_default());
    words.to_uppercase() + rest
}

fn style_of(pod: &PodEntry) -> Style {
    match (pod.outcome, pod.verdict) {
        (Some(OutcomeCode::Deleted | OutcomeCode::Gone), _) => GOOD,
        (Some(outcome), _) if outcome.is_failure() => BAD,
        (Some(outcome), _) if outcome.acted() => CAUTION,
        (_, Verdict::Wait | Verdict::Leave) => QUIET,
        _ => Style::new().bold(),
    }
}

/// Stands for a space at which a line is not broken, until it is written.
const TOGETHER: char = '\u{a0}';

fn together(words: &str) -> String {
    words.replace(' ', &TOGETHER.to_string())
}

#[cfg(test)]
mod tests;
