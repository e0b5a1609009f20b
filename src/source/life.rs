//! The third step of gathering: signs of life, the clock, and the counts of the limits.

use std::{collections::BTreeSet, sync::Arc};

use itertools::Itertools as _;
use tokio::time::Instant;

use super::{OtherLeases, gather::Gathering, reader::Pods};
use crate::{
    cluster::{Api, StatusKind},
    facts::{Counts, NodeCounts, NodeFacts, PodsOf, Quorum, Ready, Unread},
    judge::MAX_NODES_IGNORED,
    kubernetes::{Holders, NodeRow, RawNode, StaticPods},
    words::natural,
};

impl<A: Api> Gathering<'_, A> {
    pub async fn read_life(&mut self) -> Option<OtherLeases> {
        let reader = self.reader;
        let (holders, at) = (self.holders(), Instant::now());
        let (ready_nodes, mut leases) = tokio::join!(
            reader.ready_nodes(&self.rows, self.facts.now),
            reader.read("Leases", async {
                match reader.api.leases_of(&holders).await {
                    Err(failure) if failure.is(StatusKind::MayNotList) => Ok(None),
                    leases => leases.map(Some),
                }
            }),
        );
        self.facts.clock = ready_nodes.clock;
        let not_ready = self.rows.iter().filter(|row| !row.is_ready).count();
        let may_be_outage =
            not_ready > MAX_NODES_IGNORED && reader.settings.limits.max_not_ready_percent < 100;
        let is_canonical = self.facts.known_nodes().any(|node| node.roles.canonical);
        if may_be_outage || !ready_nodes.room || is_canonical {
            let leaf = &reader.settings.policy.node_selectors;
            let of_failed = self
                .facts
                .known_nodes()
                .flat_map(|node| &node.labels)
                .collect::<BTreeSet<_>>();
            let add = |counts: &mut _, node: &RawNode| node.count(counts, leaf, &of_failed);
            self.facts.node_counts = reader
                .all("all nodes, for the limits", add)
                .await
                .map_or_else(NodeCounts::Unread, NodeCounts::Counted);
        }
        // Nodes in containers have the boot ID of their host (kind, LXC).
        for node in self.not_ready_nodes() {
            let is_shared = |id: &mut String| ready_nodes.boot_ids.contains(id);
            drop(node.boot_id.take_if(is_shared));
        }
        let k0s = leases
            .iter()
            .flatten()
            .flatten()
            .filter(|(node, leases)| leases.iter().flatten().any(|it| it.is_of_k0s(node)))
            .map(|(node, _)| node.clone())
            .collect();
        self.note_quorums(&k0s);
        let may_list = !matches!(leases, Ok(None));
        if !may_list {
            self.facts.unseen.push(
                "This account may not list Leases: whether something except a kubelet on a NotReady node still renews one is not seen, so no grace period is cut short."
                    .to_owned(),
            );
        }
        let nodes = self.facts.nodes.values_mut().flatten().flatten();
        for node in nodes.filter(|node| node.ready != Ready::True) {
            // A pod that was not listed may hold a Lease.
            let unlisted = match self.lists.get(&PodsOf::Node(node.name.clone())) {
                Some(pods) => pods.unread.clone(),
                None => Some(Unread("its pods were not listed".to_owned())),
            };
            let own = match (unlisted, &mut leases) {
                (Some(unread), _) => Err(unread),
                (None, Err(unread)) => Err(unread.clone()),
                (None, Ok(all)) => {
                    let own = all.as_mut().and_then(|all| all.remove(&node.name));
                    Ok(own.unwrap_or(Some(Vec::new())))
                }
            };
            node.lists_leases = Ok(may_list);
            holders.hear(node, own, self.facts.now);
        }
        may_list.then_some(OtherLeases { holders, at })
    }

    /// Returns the pods of a node, if they were listed.
    fn on_node(&self, node: &str) -> Option<&Pods> {
        self.lists.get(&PodsOf::Node(node.to_owned()))
    }

    /// Returns what the static pods of a node show.
    fn shows(&self, node: &str) -> StaticPods {
        self.on_node(node)
            .map(|pods| pods.shows)
            .unwrap_or_default()
    }

    /// Returns the possible holders of Leases that would show a heartbeat of a NotReady node.
    fn holders(&self) -> Holders {
        let mut holders = Holders::among(self.rows.iter().map(|row| row.name.clone()));
        let nodes = self.facts.known_nodes();
        for node in nodes.filter(|node| node.ready != Ready::True) {
            let pods = self.on_node(&node.name).into_iter();
            holders.add(node, pods.flat_map(|pods| &pods.holders));
        }
        holders
    }

    /// Adds to the facts of each NotReady node the group by which it may carry the API server's datastore, if it shows that
    /// itself: by its role or label, by a static pod, or by the Lease of a k0s controller. `k0s` are the nodes with such a
    /// Lease; the label of `MicroK8s` or of Canonical Kubernetes needs the counts.
    pub fn note_quorums(&mut self, k0s: &BTreeSet<String>) {
        let is_silent = |node: &&NodeFacts| node.ready != Ready::True;
        let nodes = self.facts.known_nodes().filter(is_silent);
        // Static pods and Leases show a member of the control plane. On k3s and RKE2, which also run two servers with an SQL
        // database, only the role etcd shows that it carries the datastore.
        let by_pods = nodes
            .clone()
            .filter(|node| {
                let StaticPods { etcd, api_server } = self.shows(&node.name);
                (etcd || api_server || k0s.contains(&node.name)) && node.distribution.is_none()
            })
            .map(|node| node.name.clone())
            .collect::<BTreeSet<_>>();
        let of_canonical = nodes
            .filter(|node| node.roles.canonical)
            .map(|node| node.name.clone())
            .collect_vec();
        let quorum = |of, is_member: &dyn Fn(&NodeRow) -> bool, has_etcd| {
            let members = self.rows.iter().filter(|row| is_member(row));
            let (ready, silent): (Vec<_>, Vec<_>) = members.partition(|row| row.is_ready);
            let names = silent.iter().map(|row| row.name.clone());
            let names_of_ready = ready.iter().map(|row| row.name.clone());
            Arc::new(Quorum {
                of,
                a_ready: names_of_ready.min_by_key(|name| natural(name)),
                ready: ready.len(),
                members: ready.len() + silent.len(),
                not_ready: names.sorted_by_cached_key(|name| natural(name)).collect(),
                has_etcd,
            })
        };
        let of_etcd = quorum("nodes with the role etcd", &|row| row.roles.etcd, true);
        let is_of_control_plane =
            |row: &NodeRow| row.roles.control_plane || by_pods.contains(&row.name);
        let has_etcd = by_pods.iter().any(|name| self.shows(name).etcd);
        let of_control_plane = quorum("control-plane nodes", &is_of_control_plane, has_etcd);
        let of_canonical = match &self.facts.node_counts {
            NodeCounts::Counted(Counts {
                canonical: tally, ..
            }) => {
                let names = of_canonical.into_iter();
                Some(Arc::new(Quorum {
                    of: "control-plane nodes",
                    ready: tally.total - tally.not_ready,
                    members: tally.total,
                    a_ready: None,
                    not_ready: names.sorted_by_cached_key(|name| natural(name)).collect(),
                    has_etcd: false,
                }))
            }
            _ => None,
        };
        for node in self.not_ready_nodes() {
            let groups = [
                Some(&of_etcd).filter(|_| node.roles.etcd),
                Some(&of_control_plane).filter(|_| by_pods.contains(&node.name)),
                of_canonical.as_ref().filter(|_| node.roles.canonical),
            ]
            .into_iter()
            .flatten();
            let spare = |it: &&Arc<Quorum>| (2 * it.ready).cast_signed() - it.members.cast_signed();
            node.quorum = groups.min_by_key(spare).cloned();
        }
    }
}
