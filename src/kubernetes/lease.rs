//! Node leases: the kubelets' heartbeats.

use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;

use super::meta::{Meta, Written};
use crate::facts::Lease;

/// What the kubelet asks for by default (`nodeLeaseDurationSeconds`).
const DEFAULT_LEASE_SECONDS: i64 = 40;

raw! {
    /// A lease.
    pub struct RawLease {
        /// Its metadata.
        pub metadata: Meta<IgnoredAny, Written>,
        spec: LeaseSpec,
    }

    pub(super) struct LeaseSpec {
        pub(super) renew_time: Option<Timestamp>,
        pub(super) lease_duration_seconds: Option<i64>,
    }
}

impl From<RawLease> for Lease {
    fn from(raw: RawLease) -> Self {
        let seconds = raw.spec.lease_duration_seconds.unwrap_or(DEFAULT_LEASE_SECONDS);
        Self {
            renewed: raw.metadata.written("/f:spec/f:renewTime").or(raw.spec.renew_time),
            duration: SignedDuration::from_secs(seconds),
        }
    }
}
