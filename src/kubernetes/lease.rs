//! Leases: the heartbeats of kubelets and API servers.

use jiff::{SignedDuration, Timestamp};

use super::meta::Meta;
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
        pub metadata: Meta,
        spec: LeaseSpec,
    }

    pub struct LeaseSpec {
        pub renew_time: Option<Timestamp>,
        pub lease_duration_seconds: Option<i64>,
    }
}

impl RawLease {
    /// Where the lease of each node is, under the node's name.
    pub const OF_NODES: &str = "kube-node-lease";
    /// Where those of the API servers are.
    pub const OF_API_SERVERS: &str = "kube-system";

    /// What it shows of the kubelet that renews it; `None` where it was never renewed.
    pub fn of_kubelet(&self, now: Timestamp) -> Option<Heard> {
        let seconds = self.spec.lease_duration_seconds;
        let period = SignedDuration::from_secs(seconds.unwrap_or(DEFAULT_LEASE_SECONDS));
        self.renewed(SignBy::Lease, period, now)
    }

    /// What it shows of the API server that renews it, where that runs on a host of one of these names.
    pub fn of_api_server(&self, hosts: [&str; 2], now: Timestamp) -> Option<Heard> {
        // The label has what the host calls itself, the node what --hostname-override says.
        let host = self.metadata.labels.get(HOSTNAME)?;
        hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(host))
            .then(|| self.renewed(SignBy::ApiServer, API_SERVER_PERIOD, now))?
    }

    pub fn is_of_node(&self) -> bool {
        self.metadata.namespace == Self::OF_NODES
    }

    pub fn is_of_api_server(&self) -> bool {
        self.metadata.namespace == Self::OF_API_SERVERS
            && self
                .metadata
                .labels
                .get(IDENTITY.0)
                .is_some_and(|it| it == IDENTITY.1)
    }

    fn renewed(&self, by: SignBy, period: SignedDuration, now: Timestamp) -> Option<Heard> {
        let said = self.spec.renew_time;
        let at = self.metadata.heard("/f:spec/f:renewTime", said, now)?;
        Some(Heard { by, at, period })
    }
}
