//! Node leases: the kubelets' heartbeats.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::facts::Lease;

/// What the kubelet asks for by default (`nodeLeaseDurationSeconds`).
const DEFAULT_LEASE_SECONDS: i64 = 40;

/// A lease.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawLease {
    metadata: LeaseMeta,
    spec: LeaseSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseMeta {
    name: Option<String>,
    namespace: Option<String>,
    managed_fields: Option<Vec<LeaseWriter>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseWriter {
    time: Option<Timestamp>,
    fields_v1: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LeaseSpec {
    pub(super) renew_time: Option<Timestamp>,
    pub(super) lease_duration_seconds: Option<i64>,
}

impl RawLease {
    /// Its namespace and name, where it has both.
    pub fn identity(&self) -> Option<(String, String)> {
        self.metadata.namespace.clone().zip(self.metadata.name.clone())
    }
}

impl From<RawLease> for Lease {
    fn from(raw: RawLease) -> Self {
        let renewals = raw.metadata.managed_fields.iter().flatten().filter(|entry| {
            entry.fields_v1.as_ref().is_some_and(|fields| fields.pointer("/f:spec/f:renewTime").is_some())
        });
        let stamped_by_server = renewals.filter_map(|entry| entry.time).max();
        let seconds = raw.spec.lease_duration_seconds.unwrap_or(DEFAULT_LEASE_SECONDS);
        Self {
            renewed: stamped_by_server.or(raw.spec.renew_time),
            duration: SignedDuration::from_secs(seconds),
        }
    }
}
