//! Leases: the heartbeats of kubelets and API servers.

use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;

use super::meta::{Meta, Written};
use crate::facts::{Heard, SignBy};

/// What the kubelet asks for by default (`nodeLeaseDurationSeconds`).
const DEFAULT_LEASE_SECONDS: i64 = 40;
/// An API server renews its lease every 10 s, whatever duration that has: it is an hour (controlplane/apiserver/server.go).
const API_SERVER_PERIOD: SignedDuration = SignedDuration::from_mins(1);
/// Label and value of the lease of an API server, since Kubernetes 1.26.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
/// Its label that has the host's name.
const HOSTNAME: &str = "kubernetes.io/hostname";

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
    /// What it shows of the kubelet that renews it; `None` where it was never renewed.
    pub(super) fn of_kubelet(&self, now: Timestamp) -> Option<Heard> {
        let seconds = self
            .spec
            .lease_duration_seconds
            .unwrap_or(DEFAULT_LEASE_SECONDS);
        let period = SignedDuration::from_secs(seconds);
        Some(Heard {
            by: SignBy::Lease,
            at: self.renewed(now)?,
            period,
        })
    }

    /// What it shows of the API server that renews it, where that runs on a host of one of these names.
    pub(super) fn of_api_server(&self, hosts: &[&str], now: Timestamp) -> Option<Heard> {
        // The label has what the host calls itself, the node what --hostname-override says.
        let host = self.metadata.label(HOSTNAME)?;
        hosts
            .iter()
            .find(|known| known.eq_ignore_ascii_case(host))?;
        Some(Heard {
            by: SignBy::ApiServer,
            at: self.renewed(now)?,
            period: API_SERVER_PERIOD,
        })
    }

    /// Whether it is that of an API server.
    pub fn is_of_api_server(&self) -> bool {
        self.metadata.label(IDENTITY.0) == Some(IDENTITY.1)
    }

    fn renewed(&self, now: Timestamp) -> Option<Timestamp> {
        self.metadata
            .heard("/f:spec/f:renewTime", self.spec.renew_time, now)
    }
}
