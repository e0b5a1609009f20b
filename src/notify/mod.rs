//! Passes on the results of a run, as Kubernetes Events, and to the next runs.

pub(crate) mod events;
pub(crate) mod history;
