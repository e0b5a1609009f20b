//! Telling others what a run did: in the cluster, and to Prometheus.

pub(crate) mod events;
pub mod metrics;
