//! Node leases: the kubelets' heartbeats.

use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;

use super::meta::{Meta, Written};
use crate::facts::{CLOCK_SKEW, Lease};

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

impl RawLease {
    /// What it says at `now`. The API server's stamp is right whatever the node's clock says. But servers from 1.19 to 1.24 leave
    /// it as it is when a renewal changes no more than the time (kubernetes#95240, mended by #110058), so the node's word
    /// counts where it is the later one, unless it is of the future.
    pub fn known_at(&self, now: Timestamp) -> Lease {
        let stamped = self.metadata.written("/f:spec/f:renewTime");
        let said = self.spec.renew_time;
        let past = said.filter(|said| said.duration_since(now) <= CLOCK_SKEW);
        let seconds = self.spec.lease_duration_seconds.unwrap_or(DEFAULT_LEASE_SECONDS);
        Lease { renewed: stamped.max(past).or(said), duration: SignedDuration::from_secs(seconds) }
    }
}
