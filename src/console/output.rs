//! Writing a report, an explanation or a forecast to standard output.

use std::io::{self, BufWriter, ErrorKind, Write};

use super::terminal;
use crate::{
    cli::{Form, LogFormat, Output},
    exit::Exit,
    report::{Render, html, markdown, text},
    stop::Stop,
    words::clean,
};

/// Writes `document`, for as long as its reader takes, unless a signal ends the wait. Returns `exit`, which is what the document
/// says, or the code that says that it could not be written.
pub async fn write(
    exit: Exit,
    document: impl Render + Send + 'static,
    form: &Form,
    stop: &Stop,
) -> Exit {
    let Form {
        output, log_format, ..
    } = *form;
    let written = tokio::task::spawn_blocking(move || {
        // Standard output's own buffer is flushed at each line.
        let mut out = BufWriter::new(io::stdout().lock());
        let text = match (output, log_format) {
            // JSON is written as it is made: that of tens of thousands of pods would take as much memory as all the rest.
            // Whatever collects a log of JSON collects this too, line by line.
            (Output::Json, LogFormat::Json) => {
                serde_json::to_writer(&mut out, &document)?;
                "\n".to_owned()
            }
            (Output::Json, LogFormat::Text) => {
                serde_json::to_writer_pretty(&mut out, &document)?;
                "\n".to_owned()
            }
            (Output::Text, _) => {
                let page = document.page();
                // The text has no room for each of these, and it comes last.
                for line in page.unnamed() {
                    tracing::warn!("{}", clean(line));
                }
                text::write(&page, terminal::screen())
            }
            (Output::Markdown, _) => markdown::write(&document.page()),
            (Output::Html, _) => html::write(&document.page()),
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    });
    let written = tokio::select! {
        written = written => written.unwrap_or_else(|error| Err(error.into())),
        () = stop.given_up() => Err(io::Error::new(ErrorKind::Interrupted, "a signal came first")),
    };
    // A failure here undoes no delete, so a more severe code stays.
    let then = "; the next run reports what is left";
    exit.max(settled(written, "the report", then))
}

/// Writes a text for which no run is needed.
pub fn write_text(text: io::Result<Vec<u8>>) -> Exit {
    let mut out = io::stdout().lock();
    let written = text
        .and_then(|text| out.write_all(&text))
        .and_then(|()| out.flush());
    settled(written, "it", "")
}

/// A reader that has seen enough closes the pipe, which is no error.
fn settled(written: io::Result<()>, what: &str, then: &str) -> Exit {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            terminal::error(&format!("{what} could not be written: {error}{then}"));
            Exit::Incomplete
        }
        _ => Exit::Done,
    }
}
