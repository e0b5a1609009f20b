//! Writes a report to standard output.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use itertools::Either;

use super::terminal;
use crate::{
    cli::{LogFormat, Output, OutputFormats},
    exit::Exit,
    report::{RunRecord, html, text},
    stop::Stop,
    words::is_shown,
};

/// Writes the report of `run` in the format that was asked for, and waits for a slow reader: only a signal ends that wait.
/// Returns the exit code: the run's own, or `Exit::Incomplete` if that is more severe and the report could not be
/// written.
pub async fn write(run: &RunRecord<'_>, form: &OutputFormats, stop: &Stop) -> Exit {
    let OutputFormats {
        output, log_format, ..
    } = *form;
    let (exit, report) = if output == Output::Json {
        let report = run.report();
        (report.exit, Either::Left(report))
    } else {
        let page = run.document();
        let text = match output {
            // A user who has just declined at the terminal has seen enough.
            Output::Text if run.declined && io::stdout().is_terminal() => String::new(),
            Output::Text => text::write(&page, terminal::screen()),
            _ => html::write(&page),
        };
        (page.exit, Either::Right(text))
    };
    stop.reported();
    let written = tokio::task::spawn_blocking(move || {
        // Standard output by itself would be flushed after each line.
        let mut out = BufWriter::new(io::stdout().lock());
        let text = match (report, log_format) {
            // JSON is not collected in a string first: for tens of thousands of pods, the string
            // would take as much memory as all the rest. The JSON is one line if the log is JSON
            // too, because log collectors read line by line.
            (Either::Left(report), LogFormat::Json) => {
                serde_json::to_writer(Escaping(&mut out), &report)?;
                "\n".to_owned()
            }
            (Either::Left(report), LogFormat::Text) => {
                serde_json::to_writer_pretty(Escaping(&mut out), &report)?;
                "\n".to_owned()
            }
            (Either::Right(text), _) => text,
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    })
    .await
    .unwrap_or_else(|error| Err(error.into()));
    // A failure to write does not undo any delete, so a more severe code is kept.
    let remedy = "; the next run reports what is left";
    exit.max(exit_after(written, "the report", remedy))
}

/// Writes JSON, whose strings may contain letters that steer a terminal, so that none does: JSON itself escapes only those
/// below the space.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    /// Writes all of `json`, of which serde hands over whole letters.
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        for part in text.split_inclusive(|letter| !is_shown(letter)) {
            let last = part.chars().next_back().filter(|letter| !is_shown(*letter));
            let shown = &part[..part.len() - last.map_or(0, char::len_utf8)];
            self.0.write_all(shown.as_bytes())?;
            for unit in last
                .into_iter()
                .flat_map(|it| it.encode_utf16(&mut [0; 2]).to_vec())
            {
                write!(self.0, "\\u{unit:04x}")?;
            }
        }
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes a text that is no report.
pub fn write_text(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    exit_after(written, "it", "")
}

/// Turns the result of writing into an exit code. A closed pipe is no failure: its reader has seen
/// enough.
fn exit_after(written: io::Result<()>, document: &str, remedy: &str) -> Exit {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            terminal::error(&format!("{document} could not be written: {error}{remedy}"));
            Exit::Incomplete
        }
        _ => Exit::Done,
    }
}
