//! What only a person at a terminal sees: colours, the width of the window, and a bar while many pods are deleted.
//!
//! Without a terminal nothing of it is there. The report goes to standard output; the bar, like the log and the question,
//! to standard error, so that what is piped on is never touched.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::report::{phrases::clean, text::Screen};

/// More deletes than this take long enough for a bar.
const FEW_DELETES: usize = 20;

/// Draws on standard error, and nothing where that is no terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Whether to colour what goes to a place that is, or is not, a terminal (see no-color.org).
pub fn colour(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// What standard output is.
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

/// Says on standard error why something could not be done: not by the log, where `--log-level=off` would lose it. What a
/// server or a file said must not steer the terminal.
pub fn error(text: &str) {
    let _ = writeln!(io::stderr(), "error: {}", clean(text));
}

/// A bar for a number of pods. It disappears when it is dropped: the report follows.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Begins; few deletes get none.
    pub fn of(pods: usize) -> Self {
        if pods > FEW_DELETES {
            Self::with(pods, "pods, {eta} left")
        } else {
            Self(ProgressBar::hidden())
        }
    }

    /// The same for replacements that are waited for: a single one takes long enough.
    pub fn of_replacements(pods: usize) -> Self {
        Self::with(pods, "replacements, after {elapsed}")
    }

    fn with(pods: usize, says: &str) -> Self {
        let style =
            ProgressStyle::with_template(&format!("{{wide_bar}} {{pos}} of {{len}} {says}"));
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(BARS.add(ProgressBar::new(pods as u64).with_style(style)))
    }

    /// So many are dealt with.
    pub fn set(&self, done: usize) {
        self.0.set_position(done as u64);
    }

    /// One more is dealt with.
    pub fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Standard error, for lines that must not be drawn over.
pub struct AboveTheBar;

impl Write for AboveTheBar {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
