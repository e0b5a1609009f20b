//! Leases: the heartbeats of kubelets, API servers and whatever else elects a leader.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error as _};

use super::meta::{HOSTNAME, Malformed, Meta, Written, cut};
use crate::{
    facts::{Heard, Life, NamedBy, NodeFacts, Read, Renewal, SignBy},
    selector::MAX_NAME_CHARS,
};

/// The label, with its value, of an API server's lease, since Kubernetes 1.26. The holder of such a
/// lease does not name its host; the lease's label `kubernetes.io/hostname` does.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
/// The field of a renewal in `managedFields`.
const RENEWED: &str = "/f:spec/f:renewTime";
/// The length, in characters, that a holder is cut to in a sentence.
const MAX_HOLDER_CHARS: usize = 80;

raw! {
    /// A lease.
    pub struct RawLease {
        /// The lease's metadata.
        pub metadata: Meta,
        spec: LeaseSpec,
    }

    pub struct LeaseSpec {
        renew_time: Option<RenewTime>,
        holder_identity: String,
    }
}

/// The time of a renewal. Any program may write the last hours of the year 9999, which are beyond
/// the range of [`Timestamp`]. They are the latest time that there is, so that such a Lease does
/// not make a list unreadable.
#[derive(Debug, Clone, Copy)]
struct RenewTime(Timestamp);

impl<'de> Deserialize<'de> for RenewTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        match text.parse() {
            Err(_) if text.starts_with("9999-12-3") => Ok(Self(Timestamp::MAX)),
            parsed => parsed.map(Self).map_err(D::Error::custom),
        }
    }
}

/// The Leases that name a node or a pod on it, by node; `None` if there are too many to read.
pub type LeasesByNode = BTreeMap<String, Read<Option<Vec<RawLease>>>>;

impl RawLease {
    /// The namespace of the nodes' leases. Each lease has the name of its node.
    pub const OF_NODES: &str = "kube-node-lease";
    /// The namespace of the API servers' leases.
    pub const OF_API_SERVERS: &str = "kube-system";
    /// The prefix of the names of API servers' leases.
    pub const API_SERVER: &str = "apiserver-";

    pub fn is_of_node(&self) -> bool {
        self.metadata.namespace == Self::OF_NODES
    }

    fn is_of_api_server(&self) -> bool {
        let label = self.metadata.labels.get(IDENTITY.0);
        self.metadata.namespace == Self::OF_API_SERVERS && label.is_some_and(|it| it == IDENTITY.1)
    }

    /// Drops the fields that no rule needs of a lease with any holder, because a run keeps many
    /// such leases in memory.
    pub fn drop_unused(&mut self) {
        cut(&mut self.spec.holder_identity);
        self.metadata.annotations.clear();
        let kept = [IDENTITY.0, HOSTNAME];
        self.metadata
            .labels
            .retain(|key, _| kept.contains(&key.as_str()));
        self.metadata.managed_fields.retain(Written::is_short);
    }

    fn renewed(&self) -> Option<Timestamp> {
        self.spec.renew_time.map(|RenewTime(at)| at)
    }

    /// Returns the last renewal, if there was any.
    pub fn renewal(&self) -> Option<Renewal> {
        let renewal = Renewal {
            said: self.renewed(),
            stamped: self.metadata.written(RENEWED),
        };
        (renewal != Renewal::default()).then_some(renewal)
    }

    /// Returns the heartbeat of the lease's holder; `None` if the lease was never renewed.
    pub fn heard(&self, now: Timestamp) -> Option<Heard> {
        let at = self.metadata.heard(RENEWED, self.renewed(), now)?;
        let Meta {
            namespace, name, ..
        } = &self.metadata;
        let (by, what) = if self.is_of_node() {
            (SignBy::Lease, None)
        } else if self.is_of_api_server() {
            (SignBy::ApiServer, None)
        } else {
            let holder = self.spec.holder_identity.chars().take(MAX_HOLDER_CHARS);
            let holder = holder.collect::<String>();
            let what = format!("Lease {namespace}/{name}, held by {holder}");
            (SignBy::OtherLease, Some(what))
        };
        Some(Heard { by, at, what })
    }

    /// Returns the host's own name if this is the lease of an API server. The node's name may come
    /// from --hostname-override.
    fn host(&self) -> Option<&str> {
        let label = self.metadata.labels.get(HOSTNAME)?;
        self.is_of_api_server().then_some(label)
    }
}

/// The kind of object that a Lease's holder is named after. The kind determines what may follow the
/// name.
#[derive(Clone, Copy)]
enum HolderKind {
    /// A node, or its host.
    Host,
    /// A pod. Such a holder can only hold Leases in the pod's own namespace.
    Pod,
    /// A pod of a `ReplicaSet`. Its name is unique in the cluster.
    UniquePod,
}

/// Reports whether a holder's identity may continue with `rest` after the name of a node, host or
/// pod.
fn allows(kind: HolderKind, rest: &str) -> bool {
    rest.is_empty()
        || rest.starts_with('_')
        || match kind {
            HolderKind::Host => rest.strip_prefix('-').is_some_and(is_cilium_suffix),
            HolderKind::Pod => false,
            HolderKind::UniquePod => rest.starts_with('-'),
        }
}

/// Reports whether cilium-operator may have appended the text to its node's name: ten letters. No
/// name of an object has a capital, so at least one of each case is required
/// (cilium/operator/cmd/root.go).
fn is_cilium_suffix(text: &str) -> bool {
    text.len() == 10
        && text.bytes().all(|letter| letter.is_ascii_alphabetic())
        && text.bytes().any(|letter| letter.is_ascii_uppercase())
        && text.bytes().any(|letter| letter.is_ascii_lowercase())
}

/// Lists the names that `holder` may begin with, the longest first, each with the rest: the whole
/// holder, and each part before a `_` or `-`. A name is at most as long as the longest name of an
/// object, although a holder may be longer.
fn beginnings(holder: &str) -> impl Iterator<Item = (&str, &str)> {
    let names = &holder[..holder.floor_char_boundary(MAX_NAME_CHARS + 1)];
    let parts = names.rmatch_indices(['_', '-']).map(|(at, _)| at);
    let whole = (names.len() == holder.len()).then_some(holder.len());
    let ends = whole.into_iter().chain(parts);
    ends.map(|at| holder.split_at(at))
}

/// A pod that may hold Leases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderPod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Whether Kubernetes made the name for a pod of a `ReplicaSet`, or may have, so that a Lease in
    /// any namespace may name the pod.
    pub is_unique: bool,
}

impl HolderPod {
    /// Returns a pod that could not be read; `None` if its name could not be read either. The name
    /// may be unique, so a Lease that names the pod is believed whatever its namespace.
    pub fn of_malformed(pod: &Malformed) -> Option<Self> {
        (!pod.name.is_empty()).then(|| Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            is_unique: true,
        })
    }
}

/// The possible holders of Leases: the nodes that are checked for heartbeats, their hosts and pods,
/// and all other nodes.
#[derive(Debug, Clone, Default)]
pub struct Holders {
    /// The nodes that are checked, by their names in lower case.
    nodes: BTreeMap<String, String>,
    /// The checked nodes by their hostnames in lower case. A machine that has registered under a
    /// new name may keep its hostname.
    hosts: BTreeMap<String, BTreeSet<String>>,
    /// The names of all other nodes in lower case.
    others: BTreeSet<String>,
    /// Namespace and node of each pod, by its name, and whether the name is unique.
    pods: BTreeMap<String, Vec<(String, String, bool)>>,
}

/// A Lease to read: its namespace, if it is known, and its name.
pub type LeaseName = (Option<String>, String);

/// A node that a holder names, by itself, its host or a pod.
struct Named<'a> {
    node: &'a str,
    /// The pod's namespace; `None` if any namespace will do.
    within: Option<&'a str>,
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
        let name = node.name.to_ascii_lowercase();
        self.nodes.insert(name, node.name.clone());
        if let Some(host) = &node.hostname {
            let nodes = self.hosts.entry(host.to_ascii_lowercase()).or_default();
            nodes.insert(node.name.clone());
        }
        for pod in pods {
            let place = (pod.namespace.clone(), node.name.clone(), pod.is_unique);
            self.pods.entry(pod.name.clone()).or_default().push(place);
        }
    }

    /// Lists the names of the checked nodes.
    pub fn nodes(&self) -> BTreeSet<String> {
        self.nodes.values().cloned().collect()
    }

    /// Lists the nodes that `holder` may name, the longest names first. Only the name
    /// of a node ends the list, because nobody else can choose that name: the author of a pod could
    /// otherwise take a heartbeat away from another node.
    fn named(&self, holder: &str, namespace: Option<&str>) -> Vec<Named<'_>> {
        let mut found = Vec::new();
        for (name, rest) in beginnings(holder) {
            if allows(HolderKind::Host, rest) {
                let host = name.to_ascii_lowercase();
                let of = |node| Named { node, within: None };
                if let Some(node) = self.nodes.get(&host) {
                    found.push(of(node));
                    return found;
                }
                if self.others.contains(&host) {
                    return found;
                }
                let nodes = self.hosts.get(&host).into_iter().flatten();
                found.extend(nodes.map(|node| of(node)));
            }
            for (within, node, is_unique) in self.pods.get(name).into_iter().flatten() {
                let is_here = namespace.is_none_or(|namespace| namespace == within);
                let within = if *is_unique && allows(HolderKind::UniquePod, rest) {
                    None
                } else if is_here && allows(HolderKind::Pod, rest) {
                    Some(within.as_str())
                } else {
                    continue;
                };
                found.push(Named { node, within });
            }
        }
        found
    }

    /// Lists the nodes that a Lease called `lease` may name by its holder, each with the Lease to
    /// read.
    pub fn named_by(&self, lease: &str, holder: &str) -> impl Iterator<Item = (&str, LeaseName)> {
        let named = self.named(holder, None).into_iter();
        named.map(|it| {
            let namespace = it.within.map(str::to_owned);
            (it.node, (namespace, lease.to_owned()))
        })
    }

    /// Lists the checked nodes that `lease` speaks for: it names a node, its host or a pod on it.
    pub fn of<'a>(&'a self, lease: &RawLease) -> BTreeSet<&'a str> {
        let namespace = Some(lease.metadata.namespace.as_str());
        let named = self.named(&lease.spec.holder_identity, namespace);
        let host = lease.host().map(str::to_ascii_lowercase);
        let served = host.iter().flat_map(|host| {
            let by_host = self.hosts.get(host).into_iter().flatten();
            by_host.chain(self.nodes.get(host))
        });
        let named = named.into_iter().map(|it| it.node);
        named.chain(served.map(String::as_str)).collect()
    }

    /// Adds the heartbeats that the other Leases of a node show, as known at `now`. Some of `leases`
    /// may speak for other nodes.
    pub fn hear(&self, node: &mut NodeFacts, leases: Read<Option<Vec<RawLease>>>, now: Timestamp) {
        let forbidden = node.life.as_ref().is_some_and(|life| life.forbidden);
        let life = |named_by| {
            Some(Life {
                named_by,
                forbidden,
            })
        };
        let mut own = match leases {
            Err(unread) => {
                node.life = life(Err(unread));
                return;
            }
            // Anyone who may write Leases can thereby keep a node's pods, but cannot make a run
            // fail.
            Ok(None) => {
                node.life = life(Ok(BTreeSet::new()));
                let what = "perhaps one of the Leases that name it, which are too many to read";
                node.hear([Heard {
                    by: SignBy::OtherLease,
                    at: now,
                    what: Some(what.to_owned()),
                }]);
                return;
            }
            Ok(Some(leases)) => leases,
        };
        own.retain(|lease| self.of(lease).contains(node.name.as_str()));
        let named_by = own.iter().map(|lease| NamedBy {
            namespace: lease.metadata.namespace.clone(),
            lease: lease.metadata.name.clone(),
        });
        node.life = life(Ok(named_by.collect()));
        node.hear(own.iter().filter_map(|lease| lease.heard(now)));
    }
}
