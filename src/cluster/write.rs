//! The two writes that a run makes, apart from Events: delete a pod, and set a Job's pod to
//! `Failed`.
//!
//! Each write names the object's UID and resource version. The API server refuses it if the object
//! has been replaced or changed since it was judged. Each write also requires a [`StillDown`]:
//! proof that the pod's node was NotReady a moment ago. [`delete`] also makes the guard's probe, a
//! dry run, which needs no proof.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Cluster, Failure,
    failure::{Result, unreadable},
    request::{Response, Unless, Write, object},
};
use crate::{
    decide::Policy,
    facts::{NodeFacts, PodFacts, Read, Ready, ResourceVersion, Uid},
    kubernetes::{Holders, LeasesByNode, RawPod},
    outcome::Outcome,
};

/// How long a reading of a node permits writes to its pods: 5 s, minus 0.5 s to cancel a request
/// that is under way.
const NODE_FRESH_FOR: Duration = Duration::from_millis(4_500);

/// Proof that a node was NotReady when it was last read, was not a leaf node, and was the same node
/// that was judged. Only [`Cluster::still_down`] makes a proof, and it expires.
#[derive(Debug, Clone)]
pub struct StillDown {
    node: NodeFacts,
    /// The moment of the response, by the API server's clock.
    now: Timestamp,
    /// The moment before the request was sent, by our own clock.
    at: Instant,
    /// Whether a write is sent although the run has to end, because the run has already changed the
    /// pod.
    pub goes_on: bool,
}

impl StillDown {
    /// Returns the node as it was read, and the moment of the response.
    pub fn read(&self) -> (&NodeFacts, Timestamp) {
        (&self.node, self.now)
    }
}

impl Cluster {
    /// Reads a node again, with its own lease, after it was `judged`. `leases` are the other Leases
    /// and their possible holders, if they were read again. An error is the outcome of the node's
    /// pods.
    pub async fn still_down(
        &self,
        judged: &NodeFacts,
        policy: &Policy,
        leases: Option<(&Holders, &Read<LeasesByNode>)>,
    ) -> Result<StillDown, Outcome> {
        let name = &judged.name;
        let changed = |how: &str| Err(Outcome::NodeChanged(how.to_owned()));
        let unread = |failure: Failure| {
            Outcome::Failed(format!("node {name} could not be read again: {failure}"))
        };
        let at = Instant::now();
        let read = self.node_objects(name).await;
        let Some(objects) = read.map_err(unread)? else {
            return changed("The node no longer exists.");
        };
        let now = objects.now;
        let leases = leases.map(|(holders, read)| {
            let own = |all: &LeasesByNode| all.get(name).cloned().unwrap_or(Ok(Some(Vec::new())));
            (holders, read.as_ref().map_err(Clone::clone).and_then(own))
        });
        let node = objects
            .into_facts_again(policy, judged, leases)
            .map_err(|cause| unread(Failure::Unreadable(cause)))?;
        if node.uid != judged.uid {
            return changed("Another node has registered under the name.");
        }
        if node.ready == Ready::True {
            return Err(Outcome::NodeRecovered);
        }
        if node.leaf.is_some() {
            return changed("The node carries the mark of a leaf node.");
        }
        Ok(StillDown {
            node,
            now,
            at,
            goes_on: false,
        })
    }

    /// Force-deletes `pod`, if the pod still has the resource version that was judged. The request
    /// is sent once. `Ok` means only that the server accepted the request.
    pub async fn delete_pod(&self, pod: &PodFacts, node: &StillDown) -> Result<()> {
        let path = object::<RawPod>(&pod.namespace, &pod.name);
        let delete = delete(path, &pod.uid, &pod.resource_version, false);
        self.write(delete, pod, node).await.map(drop)
    }

    /// Sets the phase of a pod that only the Job controller's finalizer holds to `Failed`, as the
    /// pod garbage collector does before it deletes a pod: a Job with
    /// `podReplacementPolicy: Failed` removes its finalizer only then. Returns the pod's new
    /// resource version.
    pub async fn fail_job_pod(&self, pod: &PodFacts, node: &StillDown) -> Result<ResourceVersion> {
        let patch = json!({
            "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
            "status": {
                "phase": "Failed",
                "conditions": [{
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodReaper",
                    "message": "The pod was stuck Terminating on a node that is not ready",
                    "lastTransitionTime": node.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                }],
            },
        });
        let path = object::<RawPod>(&pod.namespace, &pod.name);
        let patch = Write {
            method: Method::PATCH,
            path: format!("{path}/status?fieldManager=pod-reaper"),
            // A strategic merge keeps the other conditions; a plain merge would replace the list.
            content_type: "application/strategic-merge-patch+json",
            body: patch,
        };
        let response = self.write(patch, pod, node).await?;
        let changed = response.parse::<RawPod>()?.metadata.resource_version;
        if changed.is_empty() {
            return Err(unreadable("it has no resource version"));
        }
        Ok(changed)
    }

    /// Sends a write for `pod`, if `node` proves that the pod's own node is down.
    async fn write(&self, write: Write, pod: &PodFacts, node: &StillDown) -> Result<Response> {
        if pod.node.as_ref() != Some(&node.node.name) {
            return Err(Failure::NotSent(
                "the pod is on a node that was not looked at",
            ));
        }
        let unless = Unless {
            after: node.at + NODE_FRESH_FOR,
            stopped: !node.goes_on,
        };
        self.send(write, Some(unless)).await
    }
}

/// Builds a delete for exactly this state of an object, without a grace period. A dry run is marked
/// twice: the API server obeys the body of a delete, if there is one, but its log shows the query.
pub fn delete(
    mut path: String,
    uid: &Uid,
    resource_version: &ResourceVersion,
    dry_run: bool,
) -> Write {
    if dry_run {
        path += "?dryRun=All";
    }
    // This type of Kubernetes writes the kind; `DeleteParams` of `kube` does not.
    let options = DeleteOptions {
        api_version: Some("v1".to_owned()),
        kind: Some("DeleteOptions".to_owned()),
        dry_run: dry_run.then(|| vec!["All".to_owned()]),
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: Some(uid.to_string()),
            resource_version: Some(resource_version.to_string()),
        }),
        propagation_policy: Some("Background".to_owned()),
        ..DeleteOptions::default()
    };
    Write {
        method: Method::DELETE,
        path,
        content_type: "application/json",
        body: json!(options),
    }
}
