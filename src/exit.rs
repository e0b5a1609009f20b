//! The exit codes, and the errors that leave a run without a report.

use std::process::ExitCode;

use serde::{Serialize, Serializer};

/// The exit codes, by severity. If several apply, the most severe is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything was done, or nothing was stuck.
    Done,
    /// Something could not be deleted, verified, read or reported.
    Incomplete,
    /// A limit held at least one pod, and it is neither the cap nor an unread fact.
    Held,
    /// Something cannot wait until working hours, and `--exit-on-manual` is set. Nothing else that a run found hides that.
    Manual,
    /// The program could not run.
    CouldNotRun,
    /// The usage was wrong. clap uses the same number.
    Usage,
}

impl Exit {
    /// Returns the number of the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CouldNotRun => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Held => 4,
            Self::Manual => 5,
        }
    }
}

/// A result whose error leaves the run without a report.
pub type Result<T, E = CouldNotRun> = std::result::Result<T, E>;

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CouldNotRun {
    /// The user asked for something impossible, such as a context that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The source cannot be read.
    #[error("{0}")]
    Source(String),
    /// The run had to end before there was a plan.
    #[error(
        "{0} ended the run before any pod was judged; nothing was deleted. Run pod-reaper again, with a longer --deadline if the deadline was the cause"
    )]
    Stopped(&'static str),
    /// The system did not allow the async runtime or the signal handlers.
    #[error("could not start: {0}")]
    System(#[from] std::io::Error),
    /// The run could not prove that the required guard works.
    #[error("--require-guard: {0}; nothing was deleted")]
    Unguarded(String),
}

impl From<&CouldNotRun> for Exit {
    fn from(error: &CouldNotRun) -> Self {
        match error {
            CouldNotRun::Usage(_) => Self::Usage,
            _ => Self::CouldNotRun,
        }
    }
}

impl Serialize for Exit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.code())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_severe_wins() {
        let by_severity = [
            Exit::Usage,
            Exit::CouldNotRun,
            Exit::Manual,
            Exit::Held,
            Exit::Incomplete,
            Exit::Done,
        ];
        assert_eq!(by_severity.map(Exit::code), [2, 1, 5, 4, 3, 0]);
        for (place, severe) in by_severity.into_iter().enumerate() {
            for milder in &by_severity[place..] {
                assert_eq!(severe.max(*milder), severe);
            }
        }
    }
}
