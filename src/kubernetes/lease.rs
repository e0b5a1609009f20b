//! Leases: the heartbeats of kubelets and API servers.

use jiff::{SignedDuration, Timestamp};

use super::{meta::Meta, node::HOSTNAME};
use crate::facts::{Heard, SignBy};

/// The kubelet's default for the duration of its lease (`nodeLeaseDurationSeconds`).
const DEFAULT_LEASE_SECONDS: i64 = 40;
/// The time after which the renewal of an API server's lease is overdue: a server renews it every
/// 10 s. The lease's own duration is no measure, because it is an hour
/// (controlplane/apiserver/server.go).
const API_SERVER_PERIOD: SignedDuration = SignedDuration::from_mins(1);
/// The label, with its value, of an API server's lease, since Kubernetes 1.26.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
raw! {
    /// A lease.
    pub struct RawLease {
        /// The lease's metadata.
        pub metadata: Meta,
        spec: LeaseSpec,
    }

    pub struct LeaseSpec {
        pub renew_time: Option<Timestamp>,
        pub lease_duration_seconds: Option<i64>,
    }
}

impl RawLease {
    /// The namespace of the nodes' leases, each with the name of its node.
    pub const OF_NODES: &str = "kube-node-lease";
    /// The namespace of the API servers' leases.
    pub const OF_API_SERVERS: &str = "kube-system";

    /// Returns the last heartbeat of the kubelet that
    /// renews this lease; `None` if it was never renewed.
    pub fn of_kubelet(&self, now: Timestamp) -> Option<Heard> {
        let seconds = self.spec.lease_duration_seconds;
        let period = SignedDuration::from_secs(seconds.unwrap_or(DEFAULT_LEASE_SECONDS));
        self.renewed(SignBy::Lease, period, now)
    }

    /// Returns the last heartbeat of the API server that renews this lease; `None` if it was never
    /// renewed, or if the server runs on none of these hosts.
    pub fn of_api_server(&self, hosts: [&str; 2], now: Timestamp) -> Option<Heard> {
        // The label has the host's own name; the node's name may come from --hostname-override.
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
