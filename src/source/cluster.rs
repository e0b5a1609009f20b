//! The source that is a cluster: each question is one or more requests. The work grows with the
//! failure, not with the cluster.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;

use super::{Memory, Pods, Scan, Source, Standings, Wanted};
use crate::{
    cluster::{Accept, Cluster, Failure, Listed, PodsOf},
    exit::{CouldNotRun, Result},
    facts::{
        Attachment, ClaimState, FoundClaim, Namespaces, NodeRead, PodSummary, Read, Traits, Unread,
    },
    kubernetes::{
        Holders, KOSMOS_PREFIX, RawClaim, RawDriver, RawLease, RawNode, RawPod, RawStatefulSet,
        RawVolume,
    },
};

/// The values of the Status column of pods that are not Terminating. A Terminating pod shows
/// `Terminating`, or `Unknown` if its node was given up. Only in a final phase does it show what it
/// would show anyway, one of these or anything else.
const LIVING: &str = "Running Pending Completed Succeeded Failed Error OOMKilled Evicted ContainerStatusUnknown \
    CrashLoopBackOff ImagePullBackOff ErrImagePull CreateContainerConfigError CreateContainerError ContainerCreating PodInitializing SchedulingGated NotReady";

/// How many Ready nodes a reading of all nodes keeps. Only a few of them are asked.
const SOME: usize = 8;

/// A cluster, as the source of one run.
pub struct Live<'a> {
    cluster: &'a Cluster,
    memory: Memory,
}

impl<'a> Live<'a> {
    /// Creates a source that asks `cluster`.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            memory: Memory::default(),
        }
    }

    /// Reads a list of pods, and collects them by `add`. The flag says whether all of them could be
    /// read. Each that could not is noted as an error.
    async fn list<T: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut T, RawPod),
    ) -> Result<(T, bool), Failure> {
        let Listed { items, malformed } = self.cluster.pods(list, add).await?;
        for cause in &malformed {
            self.memory.note(list.described(), cause);
        }
        Ok((items, malformed.is_empty()))
    }
}

impl Source for Live<'_> {
    /// Reads the rows that `kubectl get nodes` prints: 0.3 MB for a cluster whose node objects are
    /// 18 MB. A node whose row is not plainly `Ready` is read whole later, so a misunderstood row
    /// costs time, never safety. Fails if the answer does not tell the API server's time.
    async fn scan(&self, _: &Wanted<'_>) -> Result<Scan> {
        let add_node = |scan: &mut Scan, [name, status, roles]: [&str; 3]| {
            scan.facts.node_count += 1;
            let mut words = status.split(',');
            let mut roles = roles.split(',');
            if words.next() != Some("Ready") || words.any(|word| word != "SchedulingDisabled") {
                scan.not_ready.push(name.to_owned());
            } else {
                let open = status == "Ready"
                    && !name.starts_with(KOSMOS_PREFIX)
                    && !roles.any(|role| ["control-plane", "master"].contains(&role));
                if open && !scan.is_open {
                    (scan.is_open, scan.ready) =
                        (true, [&[name.to_owned()], &scan.ready[..]].concat());
                } else if scan.ready.len() < SOME {
                    scan.ready.push(name.to_owned());
                }
            }
        };
        let rows = self
            .cluster
            .rows::<RawNode, _, 3>("", ["Name", "Status", "Roles"], add_node);
        let (now, mut scan) = rows.await.map_err(self.cluster.could_not("list nodes"))?;
        scan.facts.cluster_name = Some(self.cluster.name.clone());
        scan.facts.now = now.ok_or_else(|| {
            let why = "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        Ok(scan)
    }

    async fn node(&self, name: &str, _: Timestamp) -> NodeRead {
        match self.cluster.node(name, None).await {
            Ok(Some(fresh)) => {
                if let Some(Unread(cause)) = &fresh.facts.unread_lease {
                    self.memory
                        .note(format_args!("lease of node {name}"), cause);
                }
                NodeRead::Known(fresh.facts)
            }
            Ok(None) => NodeRead::Gone,
            Err(failure) => {
                NodeRead::Unread(self.memory.note(format_args!("node {name}"), failure))
            }
        }
    }

    /// Reads all nodes whole, because their rows do not show which are leaf nodes. Fails if one of
    /// them cannot be read, because its role in the count is then unknown. No pods are read, so
    /// each node is taken to have a Terminating one.
    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        let add_node = |(standings, traits): &mut (Standings, _), node: RawNode| {
            let standing = node.standing(&self.cluster.selectors, now);
            node.count_traits(&standing, traits);
            standings.insert(node.metadata.name, standing);
        };
        let nodes = self.cluster.list("", "", Accept::Object, add_node).await;
        let nodes = nodes.and_then(Listed::whole);
        nodes.map_err(|failure| self.memory.note("all nodes, for the breaker", failure))
    }

    /// With `all`, reads the rows of all pods, to find the nodes with a pod that may be
    /// Terminating: 12.6 MB for a cluster whose pod objects are 1,181 MB. A row with an unknown
    /// status has its node's pods listed, so it cannot hide a Terminating pod.
    async fn pod_lists(&self, nodes: &[String], all: bool) -> Result<BTreeSet<PodsOf>> {
        let mut lists = BTreeSet::new();
        if all {
            let add_list = |lists: &mut BTreeSet<_>, [status, node]: [&str; 2]| {
                let lives = LIVING.split(' ').any(|living| living == status);
                if !lives && !status.starts_with("Init:") {
                    lists.insert(match node {
                        "<none>" => PodsOf::NoNode,
                        _ => PodsOf::Node(node.to_owned()),
                    });
                }
            };
            let columns = ["Status", "Node"];
            let rows = self.cluster.rows::<RawPod, _, 2>("", columns, add_list);
            (_, lists) = rows.await.map_err(self.cluster.could_not("list pods"))?;
            // The row of a finished pod does not show whether the pod is Terminating.
            lists.insert(PodsOf::Finished);
        }
        lists.extend(nodes.iter().cloned().map(PodsOf::Node));
        Ok(lists)
    }

    async fn pods(&self, list: &PodsOf) -> Result<Pods> {
        let add_pod = |pods: &mut Pods, mut pod: RawPod| {
            let summary = pod.summary();
            pods.add(&summary);
            if summary.terminating {
                pod.drop_unused();
                pods.heard.extend(pod.heard());
                pods.terminating.push(pod);
            } else if summary.is_active() {
                pods.active.push(summary);
            }
        };
        match self.list(list, add_pod).await {
            Ok((pods, whole)) => Ok(Pods { whole, ..pods }),
            Err(failure) if failure.forbids() => Err(self.cluster.could_not("list pods")(failure)),
            Err(failure) => {
                self.memory.note(list.described(), failure);
                Ok(Pods::default())
            }
        }
    }

    async fn every_pod(&self, node: &str) -> Result<Vec<RawPod>> {
        let pods = self.list(&PodsOf::Node(node.to_owned()), Vec::push).await;
        let (pods, _) = pods.map_err(self.cluster.could_not("list pods"))?;
        Ok(pods)
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>> {
        let pod = self.cluster.find(namespace, name).await;
        let what = format!("read pod {namespace}/{name}");
        pod.map_err(self.cluster.could_not(&what))
    }

    async fn summaries(&self, list: &PodsOf) -> Read<(Vec<PodSummary>, bool)> {
        let add_summary = |all: &mut Vec<_>, pod: RawPod| all.push(pod.summary());
        let listed = self.list(list, add_summary).await;
        listed.map_err(|failure| self.memory.note(list.described(), failure))
    }

    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        let namespaces = self.cluster.namespaces().await;
        Some(namespaces.map_err(|failure| self.memory.note("namespaces", failure)))
    }

    async fn leases(&self, holders: &Holders) -> Option<BTreeMap<String, Read<Vec<RawLease>>>> {
        match self.cluster.leases(holders).await {
            Ok(leases) => Some(leases),
            Err(failure) if failure.code() == Some(403) => None,
            Err(failure) => {
                let unread = self.memory.note("Leases", failure);
                let nodes = holders
                    .nodes()
                    .into_iter()
                    .map(|node| (node, Err(unread.clone())));
                Some(nodes.collect())
            }
        }
    }

    async fn detached_drivers(&self) -> Read<BTreeSet<String>> {
        let add_driver = |names: &mut BTreeSet<_>, driver: RawDriver| {
            if !driver.attaches() {
                names.insert(driver.metadata.name);
            }
        };
        let drivers = self.cluster.list("", "", Accept::Object, add_driver).await;
        let drivers = drivers.and_then(Listed::whole);
        drivers.map_err(|failure| self.memory.note("CSIDrivers", failure))
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        self.cluster.attachments().await.unwrap_or_else(|failure| {
            self.memory.note("VolumeAttachments", failure);
            BTreeMap::new()
        })
    }

    async fn claim(&self, namespace: &str, name: &str) -> FoundClaim {
        let what = format!("claim {namespace}/{name}");
        let claim = match self.cluster.find::<RawClaim>(namespace, name).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return ClaimState::Absent.into(),
            Err(failure) => return ClaimState::Unread(self.memory.note(what, failure)).into(),
        };
        let volume = match claim.volume_name() {
            None => Ok(None),
            Some(volume) => {
                let found = self.cluster.find("", volume).await;
                found.map_err(|failure| Unread(format!("its volume {volume}: {failure}")))
            }
        };
        let found = claim.into_found(volume);
        if let ClaimState::Unread(Unread(cause)) = &found.state {
            self.memory.note(what, cause);
        }
        found
    }

    /// A claim that could not be listed or read is left out here, and read when it is needed.
    async fn remember_claims(&self) {
        let add_volume = |volumes: &mut BTreeMap<_, _>, mut volume: RawVolume| {
            volume.metadata.drop_unused();
            volumes.insert(volume.metadata.name.clone(), volume);
        };
        let volumes = self.cluster.list("", "", Accept::Object, add_volume).await;
        let Ok(Listed { items: volumes, .. }) = volumes else {
            return;
        };
        let volumes = RefCell::new(volumes);
        let add_claim = |found: &mut Vec<_>, claim: RawClaim| {
            // A volume belongs to one claim, so it is moved, not copied.
            let name = claim.volume_name();
            let volume = name.and_then(|name| volumes.borrow_mut().remove(name));
            if name.is_none() || volume.is_some() {
                let its = &claim.metadata;
                let key = (its.namespace.clone(), its.name.clone());
                found.push((key, claim.into_found(Ok(volume))));
            }
        };
        let claims = self.cluster.list("", "", Accept::Object, add_claim).await;
        for (key, claim) in claims.into_iter().flat_map(|claims| claims.items) {
            let _ = self.memory.claims.of(key).set(claim);
        }
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let nodes = self.cluster.real_nodes(selector).await;
        nodes.map_err(|failure| {
            // The API server refuses this selector whenever it is asked, so no reading has failed.
            if failure.code() == Some(400) {
                return Unread(failure.to_string());
            }
            let what = format!("nodes that a volume allows ({selector})");
            self.memory.note(what, failure)
        })
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
        needed: bool,
    ) -> Read<Option<RawStatefulSet>> {
        let mut found = self.cluster.find::<RawStatefulSet>(namespace, name).await;
        if let Ok(Some(set)) = &mut found {
            set.metadata.drop_unused();
        }
        found.map_err(|failure| {
            if !needed {
                return Unread(failure.to_string());
            }
            // Only giving up claims needs StatefulSets, so the account may lack just this right.
            let lacks = if failure.forbids() {
                "; cronjob/components/answers grants that right"
            } else {
                ""
            };
            let what = format!("StatefulSet {namespace}/{name}");
            self.memory.note(what, format!("{failure}{lacks}"))
        })
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }
}
