//! The report for a person: nodes first, then what was done, what waits, and, last because it stays on the screen,
//! what needs somebody.
//!
//! A hundred columns; a word longer than that, a name mostly, is not broken, so that it can be copied.

use anstyle::{AnsiColor, Style};
use jiff::SignedDuration;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::{NodeEntry, PodEntry, Report};
use crate::{
    decide::{Verdict, spoken},
    exit::Exit,
    manual::{Command, Step},
};

/// Width that the report keeps to.
const COLUMNS: usize = 100;
const ITEM: &str = "  ";
const DETAIL: &str = "      ";

/// Outcomes with which a pod that should go is gone, or would be.
const WELL: [&str; 3] = ["deleted", "gone", "would-delete"];

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const QUIET: Style = Style::new().dimmed();

/// Writes `report` as text; with `colour`, with ANSI escapes.
pub fn write(report: &Report, colour: bool) -> String {
    let mut page = Page { text: String::new(), colour };
    page.title(report);
    if let Some(breaker) = &report.breaker {
        page.breaker(breaker.reason, &breaker.detail, breaker.held);
    }
    page.nodes(report);
    let acted = report.pods.iter().any(|pod| pod.outcome.is_some_and(|outcome| outcome != "would-delete"));
    page.pods(report, Verdict::Reap, if acted { "REAPED" } else { "TO BE REAPED (nothing was changed)" });
    page.pods(report, Verdict::Wait, "WAITING");
    page.pods(report, Verdict::Leave, "LEFT ALONE");
    page.pods(report, Verdict::Manual, "NEEDS YOU");
    page.unread(report);
    page.summary(report);
    page.text
}

struct Page {
    text: String,
    colour: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A paragraph, wrapped; painted line by line, since escapes have no width.
    fn paragraph(&mut self, first: &str, rest: &str, style: Style, text: &str) {
        let options = Options::new(COLUMNS)
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

    fn heading(&mut self, style: Style, text: &str) {
        self.text.push('\n');
        let painted = self.paint(style, text);
        self.line(&painted);
    }

    fn title(&mut self, report: &Report) {
        let what = match report.mode {
            "snapshot" => format!("audit of {}", report.snapshot.as_deref().unwrap_or_default()),
            "server-dry-run" => "dry run, checked by the API server".to_owned(),
            "client-dry-run" => "dry run, reading only".to_owned(),
            _ => "run".to_owned(),
        };
        self.paragraph(
            "",
            "",
            HEADING,
            &format!(
                "pod-reaper {}: {what}, judged at {}",
                report.program_version,
                report.judged_at.strftime("%F %TZ")
            ),
        );
        let settings = &report.settings;
        let namespaces = match (&settings.namespace_regex, &settings.namespace_exclude_regex) {
            (None, None) => "all".to_owned(),
            (Some(only), None) => format!("matching /{only}/"),
            (None, Some(except)) => format!("all but those matching /{except}/"),
            (Some(only), Some(except)) => format!("matching /{only}/ but not /{except}/"),
        };
        self.paragraph(
            "",
            "",
            QUIET,
            &format!(
                "Stuck means {} past the deletion deadline, on a node NotReady for {}. Namespaces: {namespaces}.",
                seconds(settings.reap_older_than_seconds),
                seconds(settings.node_not_ready_for_seconds)
            ),
        );
    }

    fn breaker(&mut self, reason: &str, detail: &str, held: usize) {
        self.heading(BAD, &format!("NOTHING IS DELETED ({reason})"));
        let pods = if held == 1 { "1 pod is held".to_owned() } else { format!("{held} pods are held") };
        let rest = if reason == "mass-outage" {
            "So many at once are more often a fault of the API server or the network than of the nodes, and their \
             pods may all be running. Find what the nodes have in common; once you are sure that they are dead, run \
             with --max-not-ready-percent=100."
        } else {
            "Without that number nothing tells a dead node from an outage. The next run tries again."
        };
        self.paragraph(ITEM, ITEM, Style::new(), &format!("{detail}. {pods}. {rest}"));
    }

    fn nodes(&mut self, report: &Report) {
        let (nodes, not_ready) = (report.summary.nodes, report.summary.nodes_not_ready);
        if not_ready == 0 {
            let all =
                if nodes == 1 { "The only node is".to_owned() } else { format!("All {nodes} nodes are") };
            self.heading(GOOD, &format!("{all} Ready."));
            return;
        }
        self.heading(HEADING, &format!("NODES NOT READY: {not_ready} of {nodes}"));
        for node in &report.nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &NodeEntry) {
        let mut says = format!("{}  Ready is {}", node.name, node.ready);
        if let Some(reason) = &node.reason {
            says += &format!(" ({reason})");
        }
        match (node.not_ready_seconds, node.ready) {
            (_, "unread") => says = format!("{}  could not be read", node.name),
            (Some(time), _) => says += &format!(" for {}", seconds(time)),
            (None, _) => says += ", nobody says since when",
        }
        if let Some(age) = node.lease_age_seconds {
            says += &format!("; lease renewed {} ago", seconds(age));
        }
        self.paragraph(ITEM, DETAIL, Style::new(), &says);
        if !node.leaf_marks.is_empty() {
            let marks = node.leaf_marks.join(", ");
            self.paragraph(DETAIL, DETAIL, CAUTION, &format!("a leaf node, by its {marks}"));
        }
        let words =
            [("reap", "to reap"), ("wait", "waiting"), ("leave", "left alone"), ("manual", "for you")];
        let counts =
            words.map(|(verdict, words)| (node.pods.get(verdict).copied().unwrap_or_default(), words));
        let counts =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
        let counts = counts.collect::<Vec<_>>();
        let pods = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        self.paragraph(DETAIL, DETAIL, QUIET, &format!("Terminating pods: {pods}"));
        if !node.volume_attachments.is_empty() {
            let volumes = node.volume_attachments.iter();
            let volumes = volumes.map(|attachment| attachment.volume.as_deref().unwrap_or(&attachment.name));
            let volumes = volumes.collect::<Vec<_>>().join(", ");
            self.paragraph(DETAIL, DETAIL, QUIET, &format!("volumes still attached: {volumes}"));
        }
        for step in &node.steps {
            self.step("- ", step);
        }
    }

    fn pods(&mut self, report: &Report, verdict: Verdict, heading: &str) {
        let pods = report.pods.iter().filter(|pod| pod.verdict == verdict.code()).collect::<Vec<_>>();
        if pods.is_empty() {
            return;
        }
        let style = if verdict == Verdict::Manual { BAD } else { HEADING };
        let failed =
            pods.iter().filter(|pod| pod.outcome.is_some_and(|outcome| !WELL.contains(&outcome))).count();
        let count = match failed {
            0 => pods.len().to_string(),
            _ => format!("{} of {}", pods.len() - failed, pods.len()),
        };
        self.heading(style, &format!("{heading}: {count}"));
        for pod in pods {
            self.pod(pod);
        }
    }

    fn pod(&mut self, pod: &PodEntry) {
        let mut says = format!("{}/{}", pod.namespace, pod.name);
        if let Some(owner) = &pod.owner {
            says += &format!("  {}/{}", owner.kind, owner.name);
        }
        if let Some(node) = &pod.node {
            says += &format!("  {}", together(&format!("on {node}")));
        }
        says += "  ";
        says += &match pod.overdue_seconds {
            within @ ..0 => together(&format!("due in {}", seconds(-within))),
            overdue => together(&format!("overdue {}", seconds(overdue))),
        };
        // That it is stuck is what its section says.
        let tag = pod.outcome.or((pod.verdict != Verdict::Reap.code()).then_some(pod.reason));
        says += &tag.map(|tag| format!("  [{tag}]")).unwrap_or_default();
        self.paragraph(ITEM, DETAIL, style_of(pod), &says);
        match (&pod.outcome_detail, pod.outcome) {
            // What went as it should needs no sentence a pod.
            (_, Some("deleted" | "would-delete")) => {}
            (Some(detail), _) => self.paragraph(DETAIL, DETAIL, Style::new(), detail),
            (None, _) if pod.verdict == Verdict::Reap.code() => {}
            (None, _) => self.paragraph(DETAIL, DETAIL, Style::new(), &pod.detail),
        }
        if let Some(note) = &pod.note {
            self.paragraph(DETAIL, DETAIL, CAUTION, &format!("Note: {note}"));
        }
        if let Some(risk) = &pod.risk {
            self.paragraph(DETAIL, DETAIL, CAUTION, &format!("Risk: {risk}"));
        }
        for (number, step) in pod.steps.iter().enumerate() {
            self.step(&format!("{}. ", number + 1), step);
        }
    }

    fn step(&mut self, mark: &str, step: &Step) {
        let rest = format!("{DETAIL}{:1$}", "", mark.len());
        self.paragraph(&format!("{DETAIL}{mark}"), &rest, Style::new(), &step.what);
        if let Some(command) = &step.command {
            for line in broken(command, COLUMNS - rest.len()) {
                self.line(&format!("{rest}{}", clean(&line)));
            }
        }
    }

    fn unread(&mut self, report: &Report) {
        if !report.errors.is_empty() {
            self.heading(BAD, &format!("COULD NOT BE READ: {}", report.errors.len()));
            for error in &report.errors {
                self.paragraph(ITEM, DETAIL, Style::new(), &format!("{}: {}", error.what, error.cause));
            }
        }
        if !report.unseen.is_empty() {
            self.heading(CAUTION, "COULD NOT BE SEEN");
            for sentence in &report.unseen {
                self.paragraph(ITEM, ITEM, Style::new(), sentence);
            }
        }
    }

    fn summary(&mut self, report: &Report) {
        let counted = |code: &str| report.summary.verdicts.get(code).copied().unwrap_or_default();
        let mut parts = Vec::new();
        let outcomes = report.summary.outcomes.iter().filter(|(_, count)| **count > 0);
        parts.extend(outcomes.map(|(code, count)| match *code {
            "would-delete" => format!("{count} would be deleted"),
            code => format!("{count} {}", code.replace('-', " ")),
        }));
        if parts.is_empty() {
            parts.push(format!("{} to be reaped", counted("reap")));
        }
        for (code, one, many) in [
            ("wait", "waits", "wait"),
            ("leave", "left alone", "left alone"),
            ("manual", "needs you", "need you"),
        ] {
            match counted(code) {
                0 => {}
                1 => parts.push(format!("1 {one}")),
                count => parts.push(format!("{count} {many}")),
            }
        }
        let counts = match report.pods.len() {
            0 => "no Terminating pod to judge".to_owned(),
            _ => parts.join(", "),
        };
        let unread = match report.errors.len() {
            0 => String::new(),
            count => format!(", {count} could not be read"),
        };
        let style = if report.exit == Exit::Done { HEADING } else { BAD };
        self.text.push('\n');
        self.paragraph(
            "",
            "",
            style,
            &format!("Summary: {counts}{unread}. Exit code {}.", report.exit.code()),
        );
    }
}

fn style_of(pod: &PodEntry) -> Style {
    match (pod.verdict, pod.outcome) {
        (_, Some("deleted" | "gone")) => GOOD,
        (_, Some("failed" | "denied" | "still-there" | "unverified" | "interrupted")) => BAD,
        (_, Some("changed" | "node-recovered" | "node-changed")) => CAUTION,
        ("wait" | "leave", _) => QUIET,
        _ => Style::new().bold(),
    }
}

/// The command on lines of at most `width`, as far as its words allow, joined as a shell joins them.
fn broken(Command(words): &Command, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words {
        // Two columns are for the backslash.
        if !line.is_empty() && line.len() + 1 + word.len() + 2 > width {
            lines.push(std::mem::take(&mut line) + " \\");
            line.push_str("  ");
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Text from the cluster must not steer the terminal, nor pass for another text: control characters, and Unicode's
/// format characters (which reorder text, or show nothing), are shown as a replacement.
fn clean(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(
                letter,
                '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            )
    };
    text.chars()
        .map(|letter| match letter {
            '\n' | '\t' => ' ',
            letter if steers(letter) => char::REPLACEMENT_CHARACTER,
            letter => letter,
        })
        .collect()
}

/// Stands for a space at which a line is not broken, until it is written.
const TOGETHER: char = '\u{a0}';

fn together(words: &str) -> String {
    words.replace(' ', &TOGETHER.to_string())
}

fn seconds(seconds: i64) -> String {
    spoken(SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
