//! The source that is a cluster: each read takes one or more requests. The work grows with the
//! failure, not with the cluster.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::timeout;

use super::{CountedNodes, NodeRows, NotRead, Source, Wanted};
use crate::{
    cluster::{Ask, Cluster, Failure, Listed, REQUEST_TIME_LIMIT, StatusKind},
    exit::{CouldNotRun, Result},
    facts::{Attachment, Namespaces, PodFacts, PodsOf, ReadError},
    history::CONFIG_MAP,
    kubernetes::{
        Holders, KOSMOS_PREFIX, LeasesByNode, NodeObjects, RawClaim, RawConfigMap, RawDriver,
        RawNode, RawPod, RawStatefulSet, RawVolume, is_of_cluster,
    },
    selector::NodeSelectors,
};

/// The values of the Status column of pods that are not Terminating. A Terminating pod shows
/// `Terminating`, or `Unknown` if Kubernetes considers its node lost. Only a Terminating pod in a
/// final phase shows the same value as without its deletion, one of these or any other.
const LIVING_STATUSES: &str = "Running Pending Completed Succeeded Failed Error OOMKilled Evicted ContainerStatusUnknown \
    CrashLoopBackOff ImagePullBackOff ErrImagePull CreateContainerConfigError CreateContainerError ContainerCreating PodInitializing SchedulingGated NotReady";

/// How many Ready nodes a reading of all nodes keeps. The clock is compared with only three of them,
/// but a row does not show which are leaf nodes.
const MAX_READY_NODES_KEPT: usize = 32;

/// A node whose row is not plainly `Ready` is read whole later, so a misunderstood row costs time,
/// never safety.
impl Source for Cluster {
    /// Reads the rows that `kubectl get nodes` prints: 0.3 MB for a cluster whose node objects are
    /// 18 MB. Fails if the response does not tell the API server's time.
    async fn node_rows(&self, wanted: &Wanted<'_>) -> Result<NodeRows> {
        let add_node = |(rows, has_open): &mut (NodeRows, bool),
                        [name, status, roles]: [&str; 3]| {
            rows.names.insert(name.to_owned());
            let mut words = status.split(',');
            let mut roles = roles.split(',');
            let is_ready =
                words.next() == Some("Ready") && words.all(|word| word == "SchedulingDisabled");
            rows.add_roles(name, is_ready, roles.clone());
            if is_ready {
                let open = status == "Ready"
                    && !name.starts_with(KOSMOS_PREFIX)
                    && !roles.any(is_of_cluster);
                if open && !*has_open {
                    *has_open = true;
                    rows.ready.insert(0, name.to_owned());
                } else if rows.ready.len() < MAX_READY_NODES_KEPT {
                    rows.ready.push(name.to_owned());
                }
            } else {
                rows.not_ready.push(name.to_owned());
            }
        };
        let read = self.rows::<RawNode, _, 3>(["Name", "Status", "Roles"], add_node);
        let (now, (rows, _)) = read
            .await
            .map_err(|failure| self.could_not("list nodes", &failure.into()))?;
        let now = now.ok_or_else(|| {
            let why = "the API server's response has no Date header, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        let pod_lists = if wanted.all {
            Some(lists_of_terminating_pods(self).await?)
        } else {
            None
        };
        Ok(NodeRows {
            now,
            cluster_name: Some(self.name.clone()),
            pod_lists,
            has_leases: true,
            ..rows
        })
    }

    async fn namespaces(&self) -> Result<Option<Namespaces>, NotRead> {
        Ok(Some(self.all_namespaces().await?))
    }

    async fn attachments(&self) -> Result<BTreeMap<String, Vec<Attachment>>, NotRead> {
        Ok(self.attachment_rows().await?)
    }

    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, NotRead> {
        Ok(self.node_objects(name).await?)
    }

    async fn pods<A: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut A, &RawPod),
    ) -> Result<Listed<A>, NotRead> {
        Ok(self.pods_of(list, |all, pod| add(all, &pod)).await?)
    }

    fn pods_at_hand(&self) -> Vec<PodFacts> {
        // A list of all pods would cost the cluster more than its use.
        Vec::new()
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<RawPod>, NotRead> {
        Ok(self.find(namespace, name).await?)
    }

    async fn other_leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, NotRead> {
        match self.leases_of(holders).await {
            Ok(leases) => Ok(Some(leases)),
            Err(failure) if failure.is(StatusKind::MayNotList) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn counted_nodes(&self, leaf: &NodeSelectors) -> Result<CountedNodes, NotRead> {
        let add_node = |nodes: &mut CountedNodes, node: RawNode| {
            let counted = node.counted_node(leaf);
            nodes.insert(node.metadata.name, counted);
        };
        Ok(self.list("", "", Ask::OBJECT, add_node).await?.whole()?)
    }

    async fn claim(&self, namespace: &str, name: &str) -> Result<Option<RawClaim>, NotRead> {
        Ok(self.find(namespace, name).await?)
    }

    async fn volume(&self, name: &str) -> Result<Option<RawVolume>, NotRead> {
        Ok(self.find("", name).await?)
    }

    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, NotRead> {
        Ok(self.real_nodes_with(selector, leaf).await?)
    }

    async fn detached_drivers(&self) -> Result<BTreeSet<String>, NotRead> {
        let listed = self.list("", "", Ask::OBJECT, RawDriver::add_detached);
        Ok(listed.await?.whole()?)
    }

    async fn stateful_set(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<RawStatefulSet>, NotRead> {
        Ok(self.find(namespace, name).await?)
    }

    async fn history(&self, namespace: &str) -> Result<Option<RawConfigMap>, NotRead> {
        let limit = REQUEST_TIME_LIMIT;
        let found = timeout(limit, self.find(namespace, CONFIG_MAP)).await;
        Ok(found.unwrap_or(Err(Failure::Timeout(limit)))?)
    }

    fn failed(&self, what: String, cause: String) -> Option<ReadError> {
        Some(ReadError { what, cause })
    }

    fn could_not(&self, what: &str, cause: &NotRead) -> CouldNotRun {
        let address = "check that this is the address of an API server";
        let failure = cause.failure();
        let hint = match failure.and_then(Failure::code) {
            Some(401) => {
                "the credentials are not accepted, or have expired: log in again, or choose others with --context or --kubeconfig"
            }
            Some(403) => {
                "grant that permission to the account that runs this, or choose another with --context or --kubeconfig"
            }
            Some(404) => address,
            None if matches!(failure, Some(Failure::Unreadable(_))) => address,
            _ => {
                "if `kubectl get nodes` fails too, the cause is the API server or the network path to it"
            }
        };
        CouldNotRun::Source(format!(
            "could not {what} of {}: {cause}; {hint}",
            self.address
        ))
    }
}

/// Finds the nodes with a pod that may be Terminating, by the rows of all pods: 12.6 MB for a
/// cluster whose pod objects are 1,181 MB. If a row has an unknown status, the pods of its node are
/// listed, so the row cannot hide a Terminating pod.
async fn lists_of_terminating_pods(cluster: &Cluster) -> Result<BTreeSet<PodsOf>> {
    let add_list = |lists: &mut BTreeSet<_>, [status, node]: [&str; 2]| {
        let lives = LIVING_STATUSES.split(' ').any(|living| living == status);
        if !lives && !status.starts_with("Init:") {
            lists.insert(match node {
                "<none>" => PodsOf::NoNode,
                _ => PodsOf::Node(node.to_owned()),
            });
        }
    };
    let rows = cluster.rows::<RawPod, _, 2>(["Status", "Node"], add_list);
    let (_, mut lists) = rows
        .await
        .map_err(|failure| cluster.could_not("list pods", &failure.into()))?;
    // The row of a finished pod does not show whether the pod is Terminating.
    lists.insert(PodsOf::Finished);
    Ok(lists)
}
