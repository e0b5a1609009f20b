//! Force-deletes pods stuck Terminating on NotReady Kubernetes nodes, and tells a person what to do about the rest.
//!
//! Data flows one way: a source ([`cluster`] or [`snapshot`]) gives [`facts`], [`decide`] makes a verdict of each pod,
//! [`limits`] makes a plan of the verdicts, [`execute`] carries it out, and [`report`] tells it, as [`events`] do in the
//! cluster and [`metrics`] to Prometheus. [`reap`] is that sequence, readable from top to bottom. [`whatif`] and
//! [`explain`] ask the same rules two other questions.

pub mod cli;
pub mod cluster;
pub mod decide;
pub mod events;
pub mod execute;
pub mod exit;
pub mod explain;
pub mod facts;
pub mod limits;
pub mod log;
pub mod manual;
pub mod metrics;
pub mod objects;
pub mod outcome;
mod prompt;
pub mod reap;
pub mod report;
#[cfg(test)]
mod samples;
pub mod selector;
pub mod settings;
pub mod snapshot;
pub mod stop;
pub mod terminal;
pub mod whatif;
