//! Everything that depends on a terminal: colors, the width of the window, and the status line.
//!
//! The report goes to standard output. The status goes to standard error, like the log and the
//! question, and only if standard error is a terminal, so that files and pipes never contain the
//! status.

use std::io::{self, IsTerminal, Write};

use crate::{report::text::Screen, words::sanitize};

/// The length of the longest status, in columns.
const STATUS_WIDTH: usize = 40;

/// Reports whether to use colors, given whether the output is a `terminal` (see no-color.org).
pub fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the width and colors of standard output.
pub fn screen() -> Screen {
    let terminal = io::stdout().is_terminal();
    let columns =
        terminal_size::terminal_size_of(io::stdout()).map_or(0, |(width, _)| width.0.into());
    Screen::of_terminal(colour(terminal), columns)
}

/// Prints an error on standard error. The error is not logged, because `--log-level=off` would
/// suppress it. Control characters are replaced, since the text may come from a server or a file.
pub fn error(text: &str) {
    let _ = writeln!(io::stderr(), "error: {}", sanitize(text));
}

/// Replaces the status line by `line`. An empty `line` removes the status line. The old line is
/// overwritten with spaces, because some terminals know no escape sequences.
pub fn status(line: &str) {
    let mut error = io::stderr();
    if error.is_terminal() {
        let _ = write!(error, "\r{line:STATUS_WIDTH$}\r");
    }
}

/// Standard error for the log, whose lines replace the status line.
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
