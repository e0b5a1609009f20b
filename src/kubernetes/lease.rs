//! Node leases: the kubelets' heartbeats.

use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;

use super::meta::{Meta, Written};
use crate::facts::{CLOCK_SKEW, Lease};

/// What the kubelet asks for by default (`nodeLeaseDurationSeconds`).
const DEFAULT_LEASE_SECONDS: i64 = 40;
/// A stamp of so long after the lease was made may be that of its first renewals, and the last that there will be.
const BIRTH: SignedDuration = SignedDuration::from_mins(1);

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
    /// it as it was when the lease was made, because a renewal changes no more than the time (kubernetes#95240, fixed by
    /// #110058). So the node's word counts where it is the later one; one of the future only where the stamp says nothing.
    pub fn known_at(&self, now: Timestamp) -> Lease {
        let stamped = self.metadata.written("/f:spec/f:renewTime");
        let said = self.spec.renew_time;
        let made = stamped.zip(self.metadata.creation_timestamp);
        let is_of_birth = made.is_some_and(|(stamped, made)| stamped.duration_since(made).abs() <= BIRTH);
        let believed = said.filter(|said| is_of_birth || said.duration_since(now) <= CLOCK_SKEW);
        let seconds = self.spec.lease_duration_seconds.unwrap_or(DEFAULT_LEASE_SECONDS);
        Lease { renewed: stamped.max(believed).or(said), duration: SignedDuration::from_secs(seconds) }
    }
}
