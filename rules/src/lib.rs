//! The rules of pod-reaper. They turn plain facts into verdicts, plans and advice.
//!
//! Nothing in this crate can contact a server, read a clock or write a file: the time is an
//! argument. A run and `explain` both call the same functions.

pub mod advice;
pub mod codes;
pub mod decide;
pub mod facts;
pub mod limits;
pub mod outcome;
pub mod selector;
pub mod words;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use schemars;
