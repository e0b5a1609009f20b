//! The source that is a cluster: each query takes one or more requests. The work grows with the
//! failure, not with the cluster.

use std::collections::BTreeSet;

use super::{Scan, Wanted};
use crate::{
    cluster::{Cluster, Failure},
    exit::{CouldNotRun, Result},
    facts::PodsOf,
    kubernetes::{KOSMOS_PREFIX, RawNode, RawPod},
};

/// The values of the Status column of pods that are not Terminating. A Terminating pod shows
/// `Terminating`, or `Unknown` if Kubernetes considers its node lost. Only a Terminating pod in a
/// final phase shows the same value as without its deletion, one of these or any other.
const LIVING_STATUSES: &str = "Running Pending Completed Succeeded Failed Error OOMKilled Evicted ContainerStatusUnknown \
    CrashLoopBackOff ImagePullBackOff ErrImagePull CreateContainerConfigError CreateContainerError ContainerCreating PodInitializing SchedulingGated NotReady";

/// How many Ready nodes a reading of all nodes keeps. The clock is compared with only three of them,
/// but a row does not show which are leaf nodes.
const MAX_READY_NODES_KEPT: usize = 32;

impl Cluster {
    /// Reads the rows that `kubectl get nodes` prints: 0.3 MB for a cluster whose node objects are
    /// 18 MB. A node whose row is not plainly `Ready` is read whole later, so a misunderstood row
    /// costs time, never safety. Fails if the response does not tell the API server's time.
    pub async fn scan(&self, wanted: &Wanted<'_>) -> Result<Scan> {
        let add_node = |(scan, has_open): &mut (Scan, bool), [name, status, roles]: [&str; 3]| {
            scan.facts.node_count += 1;
            scan.nodes.insert(name.to_owned());
            let mut words = status.split(',');
            let mut roles = roles.split(',');
            if words.next() != Some("Ready") || words.any(|word| word != "SchedulingDisabled") {
                scan.not_ready.push(name.to_owned());
            } else {
                let open = status == "Ready"
                    && !name.starts_with(KOSMOS_PREFIX)
                    && !roles.any(|role| ["control-plane", "master"].contains(&role));
                if open && !*has_open {
                    *has_open = true;
                    scan.ready.insert(0, name.to_owned());
                } else if scan.ready.len() < MAX_READY_NODES_KEPT {
                    scan.ready.push(name.to_owned());
                }
            }
        };
        let rows = self.rows::<RawNode, _, 3>("", ["Name", "Status", "Roles"], add_node);
        let (now, (mut scan, _)) = rows
            .await
            .map_err(|failure| self.could_not("list nodes", &failure))?;
        scan.has_leases = true;
        scan.facts.cluster_name = Some(self.name.clone());
        scan.facts.now = now.ok_or_else(|| {
            let why = "the API server's response has no Date header, so there is no clock to judge by; nothing was deleted; \
                       let no proxy on the way remove it";
            CouldNotRun::Source(why.to_owned())
        })?;
        if wanted.all {
            scan.pods = all_pods(self).await?;
        }
        Ok(scan)
    }

    /// Makes the error that ends a run because it could not do `what`, with advice.
    pub(super) fn could_not(&self, what: &str, failure: &Failure) -> CouldNotRun {
        let address = "check that this is the address of an API server";
        let hint = match failure.code() {
            Some(401) => {
                "the credentials are not accepted, or have expired: log in again, or choose others with --context or --kubeconfig"
            }
            Some(403) => {
                "grant that permission to the account that runs this, or choose another with --context or --kubeconfig"
            }
            Some(404) => address,
            None if matches!(failure, Failure::Unreadable(_)) => address,
            _ => {
                "if `kubectl get nodes` fails too, the cause is the API server or the network path to it"
            }
        };
        CouldNotRun::Source(format!(
            "could not {what} of {}: {failure}; {hint}",
            self.address
        ))
    }
}

/// Finds the nodes with a pod that may be Terminating, by the rows of all pods: 12.6 MB for a
/// cluster whose pod objects are 1,181 MB. If a row has an unknown status, the pods of its node are
/// listed, so the row cannot hide a Terminating pod.
async fn all_pods(cluster: &Cluster) -> Result<BTreeSet<PodsOf>> {
    let add_list = |lists: &mut BTreeSet<_>, [status, node]: [&str; 2]| {
        let lives = LIVING_STATUSES.split(' ').any(|living| living == status);
        if !lives && !status.starts_with("Init:") {
            lists.insert(match node {
                "<none>" => PodsOf::NoNode,
                _ => PodsOf::Node(node.to_owned()),
            });
        }
    };
    let rows = cluster.rows::<RawPod, _, 2>("", ["Status", "Node"], add_list);
    let (_, mut lists) = rows
        .await
        .map_err(|failure| cluster.could_not("list pods", &failure))?;
    // The row of a finished pod does not show whether the pod is Terminating.
    lists.insert(PodsOf::Finished);
    Ok(lists)
}

#[cfg(test)]
mod tests;
