//! Passes on the results of a run: as Kubernetes Events, and as metrics for Prometheus.

pub(crate) mod events;
pub mod metrics;
