//! Other questions to the same rules and limits. They only read.

pub mod explain;
pub mod what_if;
