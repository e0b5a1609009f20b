//! Writing an answer to standard output.

use std::io::{self, BufWriter, ErrorKind, Write};

use super::terminal;
use crate::cli::{Form, LogFormat, Output};
use crate::{exit::Exit, report::Render, stop::Stop};

/// Writes `answer`, for as long as its reader takes, unless a signal says that it is not waited for any more. Gives its
/// exit code, or one that says that it could not be written.
pub async fn write(answer: impl Render + Send + 'static, form: &Form, stop: &Stop) -> Exit {
    let exit = answer.exit();
    let Form {
        output, log_format, ..
    } = *form;
    let written = tokio::task::spawn_blocking(move || {
        // Standard output's own buffer ends at each line.
        let mut out = BufWriter::new(io::stdout().lock());
        if (output, log_format) == (Output::Json, LogFormat::Json) {
            // What collects the log collects this too, line by line.
            serde_json::to_writer(&mut out, &answer)?;
            out.write_all(b"\n")?;
        } else {
            answer.write(output, terminal::screen(), &mut out)?;
        }
        out.flush()
    });
    let written = tokio::select! {
        written = written => written.unwrap_or_else(|error| Err(error.into())),
        () = stop.given_up() => Err(io::Error::new(ErrorKind::Interrupted, "a signal came first")),
    };
    // What was deleted is deleted; a more severe code stays.
    let then = "; what was done is in the log, and the next run reports what is left";
    exit.max(settled(written, "the report", then))
}

/// Writes a text that needs no run.
pub fn write_text(text: io::Result<Vec<u8>>) -> Exit {
    let mut out = io::stdout().lock();
    let written = text
        .and_then(|text| out.write_all(&text))
        .and_then(|()| out.flush());
    settled(written, "it", "")
}

/// A reader that has enough closes the pipe: that is no error.
fn settled(written: io::Result<()>, what: &str, then: &str) -> Exit {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            terminal::error(&format!("{what} could not be written: {error}{then}"));
            Exit::Incomplete
        }
        _ => Exit::Done,
    }
}
