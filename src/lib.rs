//! Force-deletes pods stuck Terminating on NotReady Kubernetes nodes, and tells the user what to do
//! about the rest.
//!
//! Data flows one way. [`source`] gathers facts and pods. [`judge`] gives each pod a verdict,
//! and turns the verdicts into a plan by the limits of the run. [`reap`] carries the plan out. [`report`]
//! describes the result, and [`notify`] passes it on. [`run`] is this sequence, readable from top
//! to bottom. [`explain`] reports what a run would decide, by the same rules.

pub mod cli;
pub mod cluster;
pub mod codes;
pub mod console;
pub mod exit;
pub mod explain;
pub mod facts;
pub mod history;
pub mod judge;
mod kubernetes;
pub mod notify;
pub mod outcome;
mod reap;
pub mod report;
pub mod run;
pub mod save;
pub mod selector;
pub mod settings;
pub mod source;
pub mod stop;
pub mod words;
