//! Leases: the heartbeats of kubelets, API servers and whatever else elects a leader.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::meta::{HOSTNAME, Meta, Written, cut};
use crate::{
    facts::{Heard, NamedBy, NodeFacts, Read, Renewal, SignBy},
    selector::LONGEST_NAME,
};

/// The label, with its value, of an API server's lease, since Kubernetes 1.26. The holder of such a
/// lease is no name of its host; its label `kubernetes.io/hostname` is.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
/// The field of a renewal in `managedFields`.
const RENEWED: &str = "/f:spec/f:renewTime";
/// The length, in characters, that a holder is cut to in a sentence.
const HOLDER_LIMIT: usize = 80;

raw! {
    /// A lease.
    pub struct RawLease {
        /// The lease's metadata.
        pub metadata: Meta,
        spec: LeaseSpec,
    }

    pub struct LeaseSpec {
        pub renew_time: Option<Timestamp>,
        holder_identity: String,
    }
}

/// The Leases that name a node or a pod on it, by node; `None` if they are too many to read.
pub type LeasesByNode = BTreeMap<String, Read<Option<Vec<RawLease>>>>;

impl RawLease {
    /// The namespace of the nodes' leases, each with the name of its node.
    pub const OF_NODES: &str = "kube-node-lease";
    /// The namespace of the API servers' leases.
    pub const OF_API_SERVERS: &str = "kube-system";
    /// The prefix of their names.
    pub const API_SERVER: &str = "apiserver-";

    pub fn is_of_node(&self) -> bool {
        self.metadata.namespace == Self::OF_NODES
    }

    fn is_of_api_server(&self) -> bool {
        let label = self.metadata.labels.get(IDENTITY.0);
        self.metadata.namespace == Self::OF_API_SERVERS && label.is_some_and(|it| it == IDENTITY.1)
    }

    /// Drops what no rule asks of a lease that may be anybody's, because many are held at once.
    pub fn drop_unused(&mut self) {
        cut(&mut self.spec.holder_identity);
        self.metadata.annotations.clear();
        let kept = [IDENTITY.0, HOSTNAME];
        self.metadata
            .labels
            .retain(|key, _| kept.contains(&key.as_str()));
        self.metadata.managed_fields.retain(Written::is_short);
    }

    /// Returns the last renewal, if there was any.
    pub fn renewal(&self) -> Option<Renewal> {
        let renewal = Renewal {
            said: self.spec.renew_time,
            stamped: self.metadata.written(RENEWED),
        };
        (renewal != Renewal::default()).then_some(renewal)
    }

    /// Returns the report of whoever renews the lease; `None` if it was never renewed.
    pub fn heard(&self, now: Timestamp) -> Option<Heard> {
        let at = self.metadata.heard(RENEWED, self.spec.renew_time, now)?;
        let Meta {
            namespace, name, ..
        } = &self.metadata;
        let (by, what) = if self.is_of_node() {
            (SignBy::Lease, None)
        } else if self.is_of_api_server() {
            (SignBy::ApiServer, None)
        } else {
            let holder = self.spec.holder_identity.chars().take(HOLDER_LIMIT);
            let holder = holder.collect::<String>();
            let what = format!("Lease {namespace}/{name}, held by {holder}");
            (SignBy::OtherLease, Some(what))
        };
        Some(Heard { by, at, what })
    }

    /// Reports whether the lease is held by something called `who`, a node, a host or a pod: the
    /// holder is that name, alone or followed by `_` and anything. Of an API server's lease, its
    /// host counts.
    pub fn is_held_by(&self, who: &str) -> bool {
        let names = |name: &str| name.eq_ignore_ascii_case(who);
        // The label has the host's own name; the node's name may come from --hostname-override.
        let host = self.metadata.labels.get(HOSTNAME);
        self.is_of_api_server() && host.is_some_and(|host| names(host))
            || beginnings(&self.spec.holder_identity).any(names)
    }
}

/// Lists the names that `holder` may begin with: all of it, and each part before a `_`. No name is
/// longer than that of the longest object, though a holder may be.
fn beginnings(holder: &str) -> impl Iterator<Item = &str> {
    let holder = &holder[..holder.floor_char_boundary(LONGEST_NAME + 1)];
    let parts = holder.match_indices('_').map(|(at, _)| &holder[..at]);
    parts.chain([holder])
}

/// What on the machines of some nodes may hold Leases.
#[derive(Debug, Clone, Default)]
pub struct Holders {
    /// The nodes, by their names and hostnames in lower case. A machine that has registered under a
    /// new name may keep its hostname.
    hosts: BTreeMap<String, BTreeSet<String>>,
    /// Namespace and node of each pod, by its name.
    pods: BTreeMap<String, Vec<(String, String)>>,
}

/// A Lease to read: its namespace, if it is known, and its name.
pub type LeaseName = (Option<String>, String);

impl Holders {
    /// Adds a node with the pods on it, each by namespace and name.
    pub fn add(&mut self, node: &NodeFacts, pods: &BTreeSet<(String, String)>) {
        let names = [Some(&node.name), node.hostname.as_ref()];
        for name in names.into_iter().flatten() {
            let nodes = self.hosts.entry(name.to_ascii_lowercase()).or_default();
            nodes.insert(node.name.clone());
        }
        for (namespace, name) in pods {
            let place = (namespace.clone(), node.name.clone());
            self.pods.entry(name.clone()).or_default().push(place);
        }
    }

    /// Lists the names of the nodes.
    pub fn nodes(&self) -> BTreeSet<String> {
        self.hosts.values().flatten().cloned().collect()
    }

    /// Lists the nodes that a Lease called `name` may name by its holder, each with the Lease to
    /// read. A pod holds Leases of its own namespace alone.
    pub fn named_by<'a>(
        &'a self,
        name: &'a str,
        holder: &'a str,
    ) -> impl Iterator<Item = (&'a str, LeaseName)> {
        beginnings(holder).flat_map(move |who| {
            let hosts = self.hosts.get(&who.to_ascii_lowercase());
            let hosts = hosts.into_iter().flatten();
            let hosts = hosts.map(|node| (node.as_str(), (None, name.to_owned())));
            let pods = self.pods.get(who).into_iter().flatten();
            let pods = pods.map(|(namespace, node)| {
                (node.as_str(), (Some(namespace.clone()), name.to_owned()))
            });
            hosts.chain(pods)
        })
    }

    /// Returns how `lease` names `node`, its host or a pod on it; empty if it does not.
    pub fn of<'a>(
        &'a self,
        node: &'a str,
        lease: &'a RawLease,
    ) -> impl Iterator<Item = NamedBy> + 'a {
        let Meta {
            namespace, name, ..
        } = &lease.metadata;
        let hosts = self.hosts.iter().filter(move |(_, of)| of.contains(node));
        let hosts = hosts.map(|(host, _)| host.as_str());
        let hosts = hosts.filter(|host| lease.is_held_by(host));
        let pods = beginnings(&lease.spec.holder_identity).filter(move |who| {
            let mut places = self.pods.get(*who).into_iter().flatten();
            places.any(|(within, of)| within == namespace && of == node)
        });
        hosts.chain(pods).map(move |holder| NamedBy {
            namespace: namespace.clone(),
            lease: name.clone(),
            holder: holder.to_owned(),
        })
    }
}
