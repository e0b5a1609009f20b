//! The source that is a cluster: each read takes one or more requests. The work grows with the
//! failure, not with the cluster.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use tokio::time::timeout;

use super::{NodeRow, NodeRows, Source, snapshot::Kept};
use crate::{
    cluster::{Ask, Cluster, Failure, Listed, REQUEST_TIME_LIMIT, StatusKind},
    exit::{CouldNotRun, Result},
    facts::{Namespaces, PodsOf, Roles},
    history::CONFIG_MAP,
    kubernetes::{
        Holders, KOSMOS_PREFIX, LeasesByNode, NodeObjects, RawConfigMap, RawNode, RawPod,
        roles_named,
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
    async fn node_rows(&self, all: bool) -> Result<NodeRows> {
        let add_node = |rows: &mut Vec<(NodeRow, bool)>, [name, status, roles]: [&str; 3]| {
            let mut words = status.split(',');
            let row = NodeRow {
                name: name.to_owned(),
                is_ready: words.next() == Some("Ready")
                    && words.all(|word| word == "SchedulingDisabled"),
                roles: roles_named(roles.split(',')),
            };
            let is_open = status == "Ready"
                && !name.starts_with(KOSMOS_PREFIX)
                && row.roles == Roles::default();
            rows.push((row, is_open));
        };
        let read = self.rows::<RawNode, _, 3>(["Name", "Status", "Roles"], add_node);
        let (now, rows) = read
            .await
            .map_err(|failure| self.could_not("list nodes", &failure))?;
        let now = now.ok_or_else(|| {
            let why = "the API server's response has no Date header, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        let ready = rows.iter().filter(|(row, _)| row.is_ready);
        let open = ready.clone().find(|(_, is_open)| *is_open);
        let ready = open.into_iter().chain(ready).map(|(row, _)| &row.name);
        let ready = ready.unique().take(MAX_READY_NODES_KEPT).cloned().collect();
        let pod_lists = if all {
            Some(lists_of_terminating_pods(self).await?)
        } else {
            None
        };
        Ok(NodeRows {
            now,
            cluster_name: Some(self.name.clone()),
            nodes: rows.into_iter().map(|(row, _)| row).collect(),
            ready,
            pod_lists,
        })
    }

    async fn namespaces(&self) -> Result<Namespaces, Failure> {
        self.all_namespaces().await
    }

    async fn node(&self, name: &str) -> Result<Option<NodeObjects>, Failure> {
        self.node_objects(name).await
    }

    async fn pods<A: Default>(
        &self,
        list: &PodsOf,
        add: impl Fn(&mut A, &RawPod),
    ) -> Result<Listed<A>, Failure> {
        self.pods_of(list, |all, pod| add(all, &pod)).await
    }

    async fn other_leases(&self, holders: &Holders) -> Result<Option<LeasesByNode>, Failure> {
        match self.leases_of(holders).await {
            Ok(leases) => Ok(Some(leases)),
            Err(failure) if failure.is(StatusKind::MayNotList) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn real_nodes(
        &self,
        selector: &str,
        leaf: &NodeSelectors,
    ) -> Result<Vec<String>, Failure> {
        self.real_nodes_with(selector, leaf).await
    }

    async fn object<T: Kept>(&self, namespace: &str, name: &str) -> Result<Option<T>, Failure> {
        self.find(namespace, name).await
    }

    async fn objects<T: Kept, A: Default>(&self, add: impl Fn(&mut A, T)) -> Result<A, Failure> {
        self.list("", "", Ask::OBJECT, add).await?.whole()
    }

    async fn history(&self, namespace: &str) -> Result<Option<RawConfigMap>, Failure> {
        let limit = REQUEST_TIME_LIMIT;
        let found = timeout(limit, self.find(namespace, CONFIG_MAP)).await;
        found.unwrap_or(Err(Failure::Timeout(limit)))
    }

    fn could_not(&self, what: &str, cause: &Failure) -> CouldNotRun {
        let address = "check that this is the address of an API server";
        let hint = match cause.code() {
            Some(401) => {
                "the credentials are not accepted, or have expired: log in again, or choose others with --context or --kubeconfig"
            }
            Some(403) => {
                "grant that permission to the account that runs this, or choose another with --context or --kubeconfig"
            }
            Some(404) => address,
            None if matches!(cause, Failure::Unreadable(_)) => address,
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
        .map_err(|failure| cluster.could_not("list pods", &failure))?;
    // The row of a finished pod does not show whether the pod is Terminating.
    lists.insert(PodsOf::Finished);
    Ok(lists)
}
