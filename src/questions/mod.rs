//! The report that no run makes: `explain`. It only reads.

pub mod explain;
