//! What only a person at a terminal sees: colours, the width of the window, and how far the deletes are.
//!
//! The report goes to standard output. How far they are goes to standard error, like the log and the question, and only to
//! a terminal: what is piped on is never touched.

use std::io::{self, IsTerminal, Write};

use crate::{report::text::Screen, words::clean};

/// No status is longer.
const STATUS_WIDTH: usize = 40;

/// Whether to use colours on a `terminal`, or on anything else (see no-color.org).
pub fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Width and colours of standard output.
pub fn screen() -> Screen {
    let terminal = io::stdout().is_terminal();
    let size = terminal_size::terminal_size_of(io::stdout());
    let columns = size.map_or(0, |(width, _)| width.0.into());
    Screen::of_terminal(colour(terminal), columns)
}

/// Prints an error on standard error. The log could lose it, by `--log-level=off`. What a server or a file said must not
/// control the terminal.
pub fn error(text: &str) {
    let _ = writeln!(io::stderr(), "error: {}", clean(text));
}

/// Shows how far something is, in place of what was shown before; nothing, if `line` is empty. Without escapes: some
/// terminals know none.
pub fn status(line: &str) {
    let mut error = io::stderr();
    if error.is_terminal() {
        let _ = write!(error, "\r{line:STATUS_WIDTH$}\r");
    }
}

/// Standard error, for lines of the log.
pub struct AboveTheStatus;

impl Write for AboveTheStatus {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        status("");
        io::stderr().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
