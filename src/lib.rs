//! Force-deletes pods stuck Terminating on NotReady Kubernetes nodes, and tells the user what to do
//! about the rest.
//!
//! Data flows one way. [`source`] gathers facts and pods. [`decide`] gives each pod a verdict.
//! [`limits`] turns the verdicts into a plan. [`execute`] carries the plan out. [`report`]
//! describes the result, and [`notify`] passes it on. [`run`] is this sequence, readable from top
//! to bottom. [`questions`] reports what a run would decide, by the same rules. A module uses only
//! modules below it. CONTRIBUTING.md has their order.

pub mod advice;
pub mod cli;
pub mod cluster;
pub mod codes;
pub mod console;
pub mod decide;
mod execute;
pub mod exit;
pub mod facts;
pub mod history;
mod kubernetes;
pub mod limits;
pub mod notify;
pub mod outcome;
pub mod questions;
pub mod report;
pub mod run;
pub mod selector;
pub mod settings;
pub mod source;
pub mod stop;
pub mod words;
