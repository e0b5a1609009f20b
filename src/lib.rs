//! Force-deletes pods stuck Terminating on NotReady Kubernetes nodes, and says what a person has to do about the rest.
//!
//! Data flows one way: [`source`] gathers facts and pods, [`decide`] gives each pod a verdict, [`limits`] makes a plan of
//! the verdicts, [`execute`] carries it out, [`report`] reports it, and [`notify`] passes it on. [`run`] is that sequence,
//! readable from top to bottom. [`questions`] are put to the same rules. A room imports only rooms below it:
//! `tests/rooms.rs` has their order, and checks it.

pub mod advice;
pub mod cli;
pub mod cluster;
mod codes;
pub mod console;
pub mod decide;
mod execute;
pub mod exit;
pub mod facts;
mod glossary;
mod kubernetes;
pub mod limits;
pub mod notify;
pub mod outcome;
pub mod questions;
pub mod report;
pub mod run;
#[cfg(test)]
mod samples;
pub mod selector;
pub mod settings;
pub mod source;
pub mod stop;
