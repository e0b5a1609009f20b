//! Passes on the results of a run, as Kubernetes Events.

pub(crate) mod events;
