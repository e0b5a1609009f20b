//! Force-deletes pods stuck Terminating on NotReady Kubernetes nodes, and says what a person has to do about the rest.
//!
//! Data flows one way: [`source`] gathers facts and pods, [`decide`] gives each pod a verdict, [`limits`] makes a plan of
//! the verdicts, [`execute`] carries it out, [`report`] reports it, and [`notify`] passes it on. [`run`] is that sequence,
//! readable from top to bottom. [`questions`] are put to the same rules. A room imports only rooms below it:
//! `tests/rooms.rs` has their order, and checks it.

pub use rules::{advice, codes, decide, facts, limits, outcome, selector, words};

pub mod cli;
pub mod cluster;
pub mod console;
mod execute;
pub mod exit;
mod kubernetes;
pub mod notify;
pub mod questions;
pub mod report;
pub mod run;
pub mod settings;
pub mod source;
pub mod stop;
