//! The terminal, the log and standard output.

pub mod log;
pub mod output;
pub(crate) mod prompt;
pub mod terminal;
