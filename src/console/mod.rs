//! The terminal and the log.

pub mod log;
pub mod output;
pub(crate) mod prompt;
pub mod terminal;
