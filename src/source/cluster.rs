//! The source that is a cluster: each question is a request. The work grows with the failure, not with the cluster.

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
    kubernetes::{KOSMOS_PREFIX, RawClaim, RawNode, RawPod, RawStatefulSet, RawVolume},
};

/// What the Status column says of pods that live. A Terminating pod shows `Terminating`, or `Unknown` where its node
/// was given up, unless its phase is final: then it shows what it would show anyway, one of these or anything else.
const LIVING: &str = "Running Pending Completed Succeeded Failed Error OOMKilled Evicted ContainerStatusUnknown \
    CrashLoopBackOff ImagePullBackOff ErrImagePull CreateContainerConfigError CreateContainerError ContainerCreating PodInitializing SchedulingGated NotReady";

/// A cluster, asked for one run.
pub struct Live<'a> {
    cluster: &'a Cluster,
    memory: Memory,
}

impl<'a> Live<'a> {
    /// Asks `cluster`.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            memory: Memory::default(),
        }
    }

    /// Lists `pods`, each given to `take`. A pod that could not be read is noted as an error.
    async fn list<T: Default>(
        &self,
        pods: &PodsOf,
        take: impl Fn(&mut T, RawPod),
    ) -> Result<Whole<T>, Failure> {
        let Listed { items, malformed } = self.cluster.pods(pods, take).await?;
        for cause in &malformed {
            self.memory.note(pods.what(), cause);
        }
        Ok((items, malformed.is_empty()))
    }
}

/// What was made of a list, and whether each of its items could be read.
type Whole<T> = (T, bool);

impl Source for Live<'_> {
    /// All nodes, as the rows that `kubectl get nodes` prints: 0.3 MB where the objects are 18 MB. What is not plainly `Ready`
    /// has to be read whole, so a row that is misunderstood costs time, never safety. The API server has to say what time it
    /// is.
    async fn scan(&self, _: &Wanted<'_>) -> Result<Scan> {
        let take = |scan: &mut Scan, [name, status, roles]: [&str; 3]| {
            scan.facts.node_count += 1;
            let mut words = status.split(',');
            let mut roles = roles.split(',');
            if words.next() != Some("Ready") || words.any(|word| word != "SchedulingDisabled") {
                scan.not_ready.push(name.to_owned());
            } else if scan.ready.is_none()
                && status == "Ready"
                && !roles.any(|role| ["control-plane", "master"].contains(&role))
                && !name.starts_with(KOSMOS_PREFIX)
            {
                scan.ready = Some(name.to_owned());
            }
        };
        let rows = self
            .cluster
            .rows::<RawNode, _, 3>(["Name", "Status", "Roles"], take);
        let (now, mut scan) = rows.await.map_err(self.cluster.could_not("list nodes"))?;
        scan.facts.cluster_name = Some(self.cluster.place.clone());
        scan.facts.now = now.ok_or_else(|| {
            let why = "the API server's answer carries no Date, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        Ok(scan)
    }

    async fn node(&self, name: &str, _: Timestamp) -> NodeRead {
        match self.cluster.node(name).await {
            Ok(Some(fresh)) => {
                if let Some(Unread(cause)) = &fresh.facts.unread_leases {
                    self.memory.note(format!("lease of node {name}"), cause);
                }
                NodeRead::Known(fresh.facts)
            }
            Ok(None) => NodeRead::Gone,
            Err(failure) => NodeRead::Unread(self.memory.note(format!("node {name}"), failure)),
        }
    }

    /// All nodes are read, because rows do not show which are leaf nodes. One that cannot be read is a failure: what it counts
    /// as is not known. No pods are read, so that every node may have one that is Terminating.
    async fn standings(&self, now: Timestamp) -> Read<(Standings, Traits)> {
        let take = |(standings, traits): &mut (Standings, _), node: RawNode| {
            let standing = node.standing(&self.cluster.selectors, now);
            node.count_traits(standing, traits);
            standings.insert(node.metadata.name, standing);
        };
        let nodes = self.cluster.list("", "", Accept::Object, take).await;
        nodes.and_then(Listed::whole).map_err(|failure| {
            let what = "all nodes, for the breaker".to_owned();
            self.memory.note(what, failure)
        })
    }

    /// Rows of all pods show which nodes have one that may be Terminating: 12.6 MB where the objects are 1,181 MB. A row that is
    /// not understood has its node's pods listed, so that it cannot hide one.
    async fn places(&self, nodes: &[String], all: bool) -> Result<BTreeSet<PodsOf>> {
        let mut places = BTreeSet::new();
        if all {
            let take = |places: &mut BTreeSet<_>, [status, node]: [&str; 2]| {
                let lives = LIVING.split(' ').any(|living| living == status);
                if !lives && !status.starts_with("Init:") {
                    places.insert(match node {
                        "<none>" => PodsOf::NoNode,
                        _ => PodsOf::Node(node.to_owned()),
                    });
                }
            };
            let rows = self.cluster.rows::<RawPod, _, 2>(["Status", "Node"], take);
            (_, places) = rows.await.map_err(self.cluster.could_not("list pods"))?;
            // The row of a finished pod does not show that it is Terminating.
            places.insert(PodsOf::Finished);
        }
        places.extend(nodes.iter().cloned().map(PodsOf::Node));
        Ok(places)
    }

    async fn pods(&self, place: &PodsOf) -> Result<Pods> {
        let take = |pods: &mut Pods, pod: RawPod| {
            let summary = pod.summary();
            if summary.terminating {
                pods.terminating.push(pod.lean());
            } else if summary.is_active() {
                pods.active.push(summary);
            }
        };
        match self.list(place, take).await {
            Ok((pods, whole)) => Ok(Pods { whole, ..pods }),
            Err(failure) if failure.forbids() => Err(self.cluster.could_not("list pods")(failure)),
            Err(failure) => {
                self.memory.note(place.what(), failure);
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

    async fn summaries(&self, pods: &PodsOf) -> Read<Whole<Vec<PodSummary>>> {
        let take = |all: &mut Vec<_>, pod: RawPod| all.push(pod.summary());
        let listed = self.list(pods, take).await;
        listed.map_err(|failure| self.memory.note(pods.what(), failure))
    }

    async fn namespaces(&self) -> Option<Read<Namespaces>> {
        let namespaces = self.cluster.namespaces().await;
        Some(namespaces.map_err(|failure| self.memory.note("namespaces".to_owned(), failure)))
    }

    async fn attachments(&self) -> BTreeMap<String, Vec<Attachment>> {
        self.cluster.attachments().await.unwrap_or_else(|failure| {
            self.memory.note("VolumeAttachments".to_owned(), failure);
            BTreeMap::new()
        })
    }

    async fn claim(&self, namespace: &str, name: &str) -> FoundClaim {
        let unread = |cause: String| {
            let what = format!("claim {namespace}/{name}");
            self.memory.note(what, cause)
        };
        let claim = match self.cluster.find::<RawClaim>(namespace, name).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return ClaimState::Absent.into(),
            Err(failure) => return ClaimState::Unread(unread(failure.to_string())).into(),
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
            unread(cause.clone());
        }
        found
    }

    /// A claim that cannot be listed, or read, is asked for when it is needed.
    async fn remember_claims(&self) {
        let take = |volumes: &mut BTreeMap<_, _>, mut volume: RawVolume| {
            volume.metadata.drop_idle();
            volumes.insert(volume.metadata.name.clone(), volume);
        };
        let volumes = self.cluster.list("", "", Accept::Object, take).await;
        let Ok(Listed { items: volumes, .. }) = volumes else {
            return;
        };
        let volumes = RefCell::new(volumes);
        let take = |found: &mut Vec<_>, claim: RawClaim| {
            // A volume is one claim's: there is no second copy.
            let name = claim.volume_name();
            let volume = name.and_then(|name| volumes.borrow_mut().remove(name));
            if name.is_none() || volume.is_some() {
                let its = &claim.metadata;
                let key = (its.namespace.clone(), its.name.clone());
                found.push((key, claim.into_found(Ok(volume))));
            }
        };
        let claims = self.cluster.list("", "", Accept::Object, take).await;
        for (key, claim) in claims.into_iter().flat_map(|claims| claims.items) {
            let _ = self.memory.claims.of(key).set(claim);
        }
    }

    async fn real_nodes(&self, selector: &str) -> Read<Vec<String>> {
        let nodes = self.cluster.real_nodes(selector).await;
        nodes.map_err(|failure| {
            // A refused selector will be refused again: nothing failed to be read.
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
        let found = self.cluster.find::<RawStatefulSet>(namespace, name).await;
        let lean = |mut set: RawStatefulSet| {
            set.metadata.drop_idle();
            set
        };
        found.map(|set| set.map(lean)).map_err(|failure| {
            if !needed {
                return Unread(failure.to_string());
            }
            // Only giving up claims needs it: the account may lack that right alone.
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
