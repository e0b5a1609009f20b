//! What only a person at a terminal sees: colours, the width of the window, and a bar while many pods are deleted.
//!
//! The report goes to standard output. The bar goes to standard error, like the log and the question, and only to a terminal:
//! what is piped on is never touched.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::report::{phrases::clean, text::Screen};

/// More deletes than this take long enough for a bar.
const FEW_DELETES: usize = 20;

/// Draws on standard error, if that is a terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Whether to use colours on a `terminal`, or on anything else (see no-color.org).
pub fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Width and colours of standard output.
pub fn screen() -> Screen {
    let terminal = io::stdout().is_terminal();
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(columns), _)) if columns > 0 => {
            Screen::of_terminal(colour(terminal), columns.into())
        }
        _ => Screen {
            colour: colour(terminal),
            ..Screen::default()
        },
    }
}

/// Prints an error on standard error. The log could lose it, by `--log-level=off`. What a server or a file said must not
/// control the terminal.
pub fn error(text: &str) {
    let _ = writeln!(io::stderr(), "error: {}", clean(text));
}

/// A bar for a number of pods. It disappears when it is dropped, before the report follows.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for deletes, unless there are few.
    pub fn of(pods: usize) -> Self {
        if pods > FEW_DELETES {
            Self::with(pods, "pods, {eta} left")
        } else {
            Self(ProgressBar::hidden())
        }
    }

    /// A bar for replacements: even a single one takes long enough.
    pub fn of_replacements(pods: usize) -> Self {
        Self::with(pods, "replacements, after {elapsed}")
    }

    fn with(pods: usize, says: &str) -> Self {
        let style =
            ProgressStyle::with_template(&format!("{{wide_bar}} {{pos}} of {{len}} {says}"));
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(BARS.add(ProgressBar::new(pods as u64).with_style(style)))
    }

    pub fn set(&self, done: usize) {
        self.0.set_position(done as u64);
    }

    pub fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Standard error, for lines that the bar must not be drawn over.
pub struct AboveTheBar;

impl Write for AboveTheBar {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
