//! How a run ends, as a process.

use std::process::ExitCode;

use serde::{Serialize, Serializer};

/// The exit codes of the contract. Their order is their severity: the most severe wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done,
    /// Something needs a person, and `--exit-on-manual` is set.
    Manual,
    /// Something could not be handled, read or reported.
    Incomplete,
    /// The breaker held at least one pod.
    Held,
    /// It could not run.
    CouldNotRun,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CouldNotRun => 1,
            Self::Incomplete => 3,
            Self::Held => 4,
            Self::Manual => 5,
        }
    }
}

/// Wrong usage; clap ends the process with the same number.
pub const USAGE: u8 = 2;

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
        let by_severity = [Exit::CouldNotRun, Exit::Held, Exit::Incomplete, Exit::Manual, Exit::Done];
        assert_eq!(by_severity.map(Exit::code), [1, 4, 3, 5, 0]);
        for (place, severe) in by_severity.into_iter().enumerate() {
            for milder in &by_severity[place..] {
                assert_eq!(severe.max(*milder), severe);
            }
        }
    }
}
