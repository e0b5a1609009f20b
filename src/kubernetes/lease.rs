//! Leases: the heartbeats of kubelets, API servers and whatever else elects a leader.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    net::IpAddr,
};

use jiff::Timestamp;

use super::Shared;
use super::meta::{HOSTNAME, Malformed, Meta, cut};
use crate::{
    facts::{Heartbeat, NodeFacts, Read, SignBy},
    selector::{MAX_NAME_CHARS, NodeSelectors},
    words::Foreign,
};

/// The field of a renewal in `managedFields`.
const RENEWED: &str = "/f:spec/f:renewTime";

raw! {
    pub struct RawLease {
        pub metadata: Meta,
        spec: LeaseSpec,
    }

    pub struct LeaseSpec {
        renew_time: String,
        holder_identity: String,
    }
}

/// The Leases that name a node or a pod on it, by node; `None` if there are too many to read.
pub type LeasesByNode = BTreeMap<String, Option<Vec<RawLease>>>;

impl Shared for RawLease {
    fn strip(&mut self, _: &NodeSelectors) {
        cut(&mut self.spec.holder_identity);
        self.metadata.keep(&[HOSTNAME], &[]);
        self.metadata.strip(&[RENEWED.to_owned()]);
        self.metadata.drop_finalizers_and_owners();
    }
}

impl RawLease {
    /// The namespace of the nodes' leases. Each lease has the name of its node.
    pub const OF_NODES: &str = "kube-node-lease";
    /// The namespace of the API servers' leases, since Kubernetes 1.26. The holder of such a lease does not name its host;
    /// the lease's label `kubernetes.io/hostname` does.
    const OF_API_SERVERS: &str = "kube-system";

    pub fn is_of_node(&self) -> bool {
        self.metadata.namespace == Self::OF_NODES
    }

    /// Drops the fields that no rule needs of a lease with any holder, because a run keeps many
    /// such leases in memory.
    pub fn drop_unused(&mut self) {
        cut(&mut self.spec.holder_identity);
        self.metadata.keep(&[HOSTNAME], &[]);
        self.metadata.drop_finalizers_and_owners();
        self.metadata.keep_newest(RENEWED);
    }

    /// Returns the time of the last renewal. Like that of a condition, it may be beyond the range of [`Timestamp`], and then
    /// is no time.
    pub fn renewed(&self) -> Option<Timestamp> {
        self.spec.renew_time.parse().ok()
    }

    /// Reports whether it is the Lease of the k0s controller on the node.
    pub fn is_of_k0s(&self, node: &str) -> bool {
        self.is_of_node() && self.metadata.name.strip_prefix("k0s-ctrl-") == Some(node)
    }

    /// Returns the kubelet's heartbeat in the lease of its node; `None` if the lease was never renewed. A file without
    /// stamps may be all that is known of a kubelet whose clock is ahead.
    pub fn heard_of_kubelet(&self, now: Timestamp) -> Option<Heartbeat> {
        let unstamped = self.renewed().filter(|_| !self.metadata.has_stamps());
        let at = self.metadata.heard(RENEWED, self.renewed(), now);
        let at = at.or(unstamped.map(|at| at.min(now)))?;
        Some(Heartbeat {
            by: SignBy::Lease,
            at,
            what: None,
        })
    }

    /// Returns the heartbeat of another Lease's holder; `None` if the Lease was never renewed.
    fn heard_of_holder(&self, now: Timestamp) -> Option<Heartbeat> {
        let at = self.metadata.heard(RENEWED, self.renewed(), now)?;
        let Meta {
            namespace, name, ..
        } = &self.metadata;
        let holder = Foreign::<60>::from(&self.spec.holder_identity);
        Some(Heartbeat {
            by: SignBy::OtherLease,
            at,
            what: Some(format!("Lease {namespace}/{name}, held by {holder}")),
        })
    }
}

/// What stands before the name of the holder in the Leases of Elastic's programs (`beats-leader-NODE`).
const LEADER: &str = "leader-";
/// The most characters of a pod's hostname: the pod's name, cut (`kubelet_pods.go`). Programs hold
/// Leases by their hostname.
const MAX_HOSTNAME_CHARS: usize = 63;

/// Lists the names that `holder` may begin with, the longest first, each with the character that
/// follows: the whole holder, and each part before a `_`, `.` or `-`. A name is at most as long as
/// the longest name of an object, although a holder may be longer.
fn beginnings(holder: &str) -> impl Iterator<Item = (&str, Option<char>)> {
    let names = &holder[..holder.floor_char_boundary(MAX_NAME_CHARS + 1)];
    let parts = names.rmatch_indices(['_', '.', '-']).map(|(at, _)| at);
    let whole = (names.len() == holder.len()).then_some(holder.len());
    whole
        .into_iter()
        .chain(parts)
        .map(|at| (&holder[..at], holder[at..].chars().next()))
}

/// A pod that may hold Leases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderPod {
    pub namespace: String,
    pub name: String,
    /// Whether Kubernetes made the name for a pod of a `ReplicaSet`, or may have, so that a Lease in
    /// any namespace may name the pod.
    pub is_unique: bool,
    /// Whether a kubelet has started it, as it says itself.
    pub has_started: bool,
}

impl HolderPod {
    /// Returns a pod that could not be read; `None` if its name could not be read either. The name
    /// may be unique, so a Lease that names the pod is believed whatever its namespace.
    pub fn of_malformed(pod: &Malformed) -> Option<Self> {
        (!pod.name.is_empty()).then(|| Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            is_unique: true,
            has_started: true,
        })
    }
}

/// The possible holders of Leases: the nodes that are checked for heartbeats, their hosts and pods,
/// and all other nodes.
#[derive(Debug, Clone, Default)]
pub struct Holders {
    /// The nodes that are checked, by their names and hostnames in lower case. A machine that has
    /// registered under a new name may keep its hostname.
    hosts: BTreeMap<String, BTreeSet<String>>,
    /// The checked nodes by the first label of a fully qualified name or hostname. A machine often
    /// calls itself by that, and its programs do.
    shorts: BTreeMap<String, BTreeSet<String>>,
    /// The names of all nodes in lower case.
    others: BTreeSet<String>,
    /// The namespaces of which a pod has started on a checked node, by node.
    started: BTreeMap<String, BTreeSet<String>>,
    /// Namespace and node of each pod, by its hostname, and whether a Lease in any namespace may name the pod.
    pods: BTreeMap<String, BTreeSet<(String, String, bool)>>,
}

impl Holders {
    /// Returns holders that know the names of all nodes, and check none yet.
    pub fn among(all_nodes: impl IntoIterator<Item = String>) -> Self {
        let others = all_nodes.into_iter().map(|name| name.to_ascii_lowercase());
        Self {
            others: others.collect(),
            ..Self::default()
        }
    }

    /// Adds a node to check, with the pods on it.
    pub fn add<'a>(&mut self, node: &NodeFacts, pods: impl IntoIterator<Item = &'a HolderPod>) {
        for full in iter::once(&node.name).chain(&node.hostname) {
            self.hosts
                .entry(full.to_ascii_lowercase())
                .or_default()
                .insert(node.name.clone());
            let is_address = full.parse::<IpAddr>().is_ok();
            if let Some((first, _)) = full.split_once('.').filter(|_| !is_address) {
                self.shorts
                    .entry(first.to_ascii_lowercase())
                    .or_default()
                    .insert(node.name.clone());
            }
        }
        for pod in pods {
            if pod.has_started {
                self.started
                    .entry(node.name.clone())
                    .or_default()
                    .insert(pod.namespace.clone());
            }
            // Anyone may make a pod that never starts.
            let is_anywhere = pod.is_unique && pod.has_started;
            let place = (pod.namespace.clone(), node.name.clone(), is_anywhere);
            let hostname = &pod.name[..pod.name.floor_char_boundary(MAX_HOSTNAME_CHARS)];
            self.pods
                .entry(hostname.trim_end_matches(['-', '.']).to_owned())
                .or_default()
                .insert(place);
        }
    }

    /// Lists the checked nodes that `lease` speaks for: by its label with a hostname, by its holder, and, in the namespace
    /// of the nodes' leases, by its name (`k0s-ctrl-NODE`). A node's own lease is read with the node.
    pub fn of<'a>(&'a self, lease: &RawLease) -> BTreeSet<&'a str> {
        let Meta {
            namespace,
            name,
            labels,
            ..
        } = &lease.metadata;
        if lease.is_of_node() && self.is_a_node(name) {
            return BTreeSet::new();
        }
        let labelled = labels
            .get(HOSTNAME)
            .into_iter()
            .flat_map(|host| self.of_host(host).chain(self.of_first_label(host)));
        let holder = lease.spec.holder_identity.as_str();
        let leader = holder.split_once(LEADER).map(|(_, leader)| leader);
        let held = [Some(holder), leader]
            .into_iter()
            .flatten()
            .flat_map(|holder| self.held_by(holder, namespace));
        let end = name
            .match_indices('-')
            .map(|(at, _)| &name[at + 1..])
            .filter(|_| lease.is_of_node())
            .find(|end| self.is_a_node(end))
            .into_iter();
        let named = end.flat_map(|end| self.of_host(end));
        labelled
            .chain(held)
            .chain(named)
            .filter(|node| self.is_believed(namespace, node))
            .collect()
    }

    fn is_a_node(&self, name: &str) -> bool {
        self.others.contains(&name.to_ascii_lowercase())
    }

    /// Reports whether what an author in `namespace` writes may come from the node's machine: a pod of that namespace has
    /// started there. Otherwise any tenant could keep the pods of any node. Tenants write no status of a pod, and nothing
    /// in the namespaces of nodes and API servers.
    pub fn is_believed(&self, namespace: &str, node: &str) -> bool {
        let of_cluster = [RawLease::OF_NODES, RawLease::OF_API_SERVERS].contains(&namespace);
        let started = self.started.get(node);
        of_cluster || started.is_some_and(|namespaces| namespaces.contains(namespace))
    }

    /// Reports whether a Lease that could not be read may speak for a checked node.
    pub fn may_speak(&self, lease: &Malformed) -> bool {
        let is_own = lease.namespace == RawLease::OF_NODES && self.is_a_node(&lease.name);
        let mut nodes = self.hosts.values().flatten();
        let is_believed = |node: &String| self.is_believed(&lease.namespace, node);
        !is_own && (lease.namespace.is_empty() || nodes.any(is_believed))
    }

    /// Lists the checked nodes of this name or hostname.
    fn of_host(&self, host: &str) -> impl Iterator<Item = &str> {
        self.hosts
            .get(&host.to_ascii_lowercase())
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// Lists the checked nodes whose fully qualified name begins with this label; none if it is the
    /// name of another node.
    fn of_first_label(&self, label: &str) -> impl Iterator<Item = &str> {
        let label = label.to_ascii_lowercase();
        let is_other = self.is_a_node(&label);
        self.shorts
            .get(&label)
            .filter(|_| !is_other)
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// Lists the checked nodes for which a Lease of `holder` in `namespace` speaks. The longest name that the holder begins
    /// with alone counts, of a node or of a pod of that namespace. A pod of a `ReplicaSet`, whose name is unique, holds
    /// Leases in any namespace; elsewhere it hides no node's name, because its author chooses it.
    fn held_by(&self, holder: &str, namespace: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for (name, next) in beginnings(holder) {
            let pods =
                self.pods
                    .get(name)
                    .into_iter()
                    .flatten()
                    .filter(|(within, _, is_anywhere)| {
                        *is_anywhere || within == namespace && next != Some('-')
                    });
            let is_own = pods.clone().any(|(within, ..)| within == namespace);
            found.extend(pods.map(|(_, node, _)| node.as_str()));
            // A pod's name may begin with the first label and a hyphen.
            let is_whole = matches!(next, None | Some('_'));
            let first = is_whole.then(|| self.of_first_label(name));
            let before = found.len();
            found.extend(self.of_host(name).chain(first.into_iter().flatten()));
            if is_own || found.len() > before || self.is_a_node(name) {
                break;
            }
        }
        found
    }

    /// Adds the heartbeats that the other Leases of a node show, as known at `now`. Some of `leases`
    /// may speak for other nodes.
    pub fn hear(&self, node: &mut NodeFacts, leases: Read<Option<Vec<RawLease>>>, now: Timestamp) {
        let heard = match leases {
            Err(unread) => {
                node.lists_leases = Err(unread);
                Vec::new()
            }
            // Anyone who may write Leases can thereby keep a node's pods, but cannot make a run
            // fail.
            Ok(None) => {
                let what = "perhaps one of the Leases that name it, which are too many to read";
                vec![Heartbeat {
                    by: SignBy::OtherLease,
                    at: now,
                    what: Some(what.to_owned()),
                }]
            }
            Ok(Some(leases)) => leases
                .iter()
                .filter(|lease| self.of(lease).contains(node.name.as_str()))
                .filter_map(|lease| lease.heard_of_holder(now))
                .collect(),
        };
        node.hear(heard);
    }
}
