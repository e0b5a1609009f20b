//! The two writes that a run makes, apart from Events and the history: delete a pod, and set a Job's pod to
//! `Failed`.
//!
//! Each write names the object's UID and resource version. The API server refuses it if the object
//! has been replaced or changed since it was judged. Each write also requires a [`Permit`]: the rules
//! said `reap` of this pod by a reading of its node a moment ago. [`delete`] also makes dry runs: the one
//! before a Job's pod is set to `Failed`, and the guard's probe, which needs no permit.

use std::{sync::Arc, time::Duration};

use http::Method;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Api as _, Cluster,
    failure::{Result, unreadable},
    request::{Response, Unless, Write, object},
};
use crate::{
    facts::{
        Heartbeat, NodeFacts, PodFacts, Read, Ready, ResourceVersion, Storage, Uid, Unneeded,
        Unread,
    },
    judge::{Cause, PodContext, Policy, Reason},
    kubernetes::{Holders, LeasesByNode, RawPod},
    outcome::Outcome,
};

/// How long a reading of a node permits writes to its pods: 5 s, minus 0.5 s to cancel a request
/// that is under way.
const NODE_FRESH_FOR: Duration = Duration::from_millis(4_500);

/// A node as it was read again: it was NotReady, no leaf node, and the same node that was judged. Only
/// [`Cluster::read_node_again`] makes this value.
#[derive(Debug, Clone)]
pub struct NodeAgain {
    node: NodeFacts,
    /// The moment of the response, by the API server's clock.
    now: Timestamp,
    /// The moment before the request was sent, by our own clock.
    at: Instant,
}

/// The permission to write to one pod. Only [`NodeAgain::permit`] makes it, and it expires.
#[derive(Debug)]
pub struct Permit {
    /// The path of the pod.
    path: String,
    uid: Uid,
    resource_version: ResourceVersion,
    /// Why nothing wants the pod again.
    unneeded: Option<Unneeded>,
    /// The moment of the node's reading, by the API server's clock.
    now: Timestamp,
    /// The moment before the node was read, by our own clock.
    at: Instant,
    /// Whether a write is sent although the run has to end, because the run has already changed the
    /// pod.
    goes_on: bool,
}

impl NodeAgain {
    /// Judges `pod` by this reading of its node. `heard` are heartbeats of the machine that were seen
    /// since the pod was judged first. The error is the reason that keeps the pod.
    pub fn permit(
        &self,
        policy: &Policy,
        (pod, storage): (&PodFacts, Option<&Storage>),
        heard: impl IntoIterator<Item = Heartbeat>,
        goes_on: bool,
    ) -> Result<Permit, Box<Reason>> {
        let mut node = self.node.clone();
        node.hear(heard.into_iter().filter(|it| it.is_believed(self.now)));
        let read = if pod.node.as_ref() == Some(&node.name) {
            Ok(Some(&node))
        } else {
            Err(Unread("it was not looked up".to_owned()))
        };
        let reason = PodContext::new(self.now, policy, read, pod).decide(storage);
        match reason.cause {
            Cause::Stuck { unneeded, .. } => Ok(Permit {
                path: object::<RawPod>(&pod.namespace, &pod.name),
                uid: pod.uid.clone(),
                resource_version: pod.resource_version.clone(),
                unneeded,
                now: self.now,
                at: self.at,
                goes_on,
            }),
            _ => Err(Box::new(reason)),
        }
    }

    /// Reports whether Leases of the node could not be read.
    pub fn lacks_leases(&self) -> bool {
        self.node.unread().is_some()
    }
}

impl Permit {
    /// Returns why nothing wants the pod again. It must still be so.
    pub fn unneeded(&self) -> Option<Unneeded> {
        self.unneeded
    }
}

impl Cluster {
    /// Reads a node again, with its own lease, after it was `judged`. `leases` are the other Leases
    /// and their possible holders, if they were read again. The error is the outcome of the node's pods.
    pub async fn read_node_again(
        &self,
        judged: &NodeFacts,
        policy: &Policy,
        leases: Option<(&Holders, Read<Arc<LeasesByNode>>)>,
    ) -> Result<NodeAgain, Outcome> {
        let name = &judged.name;
        let unread = |failure| {
            Outcome::failed(&format_args!(
                "node {name} could not be read again: {failure}"
            ))
        };
        let changed = |how: &str| Outcome::NodeChanged(how.to_owned());
        let at = Instant::now();
        let read = self.node(name).await;
        let objects = read
            .map_err(unread)?
            .ok_or_else(|| changed("The node no longer exists."))?;
        let now = objects.now;
        let leases = leases.map(|(holders, read)| {
            let own = |all: Arc<LeasesByNode>| all.get(name).cloned().unwrap_or(Some(Vec::new()));
            (holders, read.map(own))
        });
        let node = objects
            .into_facts_again(policy, judged, leases)
            .map_err(|cause| unread(unreadable(cause)))?;
        if node.uid != judged.uid {
            return Err(changed("Another node has registered under the name."));
        }
        if node.ready == Ready::True {
            return Err(Outcome::NodeRecovered);
        }
        if node.leaf.is_some() {
            return Err(changed("The node carries the mark of a leaf node."));
        }
        // Limits may have let its pods pass by that mark alone. A sign of life, or a lease that is not read, keeps them by
        // rules of their own.
        if judged.fenced(now, policy).is_some()
            && node.fenced(now, policy).is_none()
            && !node.may_live(now, policy)
        {
            return Err(changed("No mark says any more that the node is off."));
        }
        Ok(NodeAgain { node, now, at })
    }

    /// Force-deletes the pod of the permit, if it still has the resource version that was judged. The
    /// request is sent once. `Ok` means only that the server accepted it, or would accept it: a dry run
    /// lets admission refuse the delete.
    pub async fn delete_pod(&self, permit: &Permit, dry_run: bool) -> Result<()> {
        let (uid, version) = (&permit.uid, &permit.resource_version);
        let delete = delete(permit.path.clone(), uid, version, dry_run);
        self.write(delete, permit).await.map(drop)
    }

    /// Sets the phase of a pod that only the Job controller's finalizer holds to `Failed`, as the
    /// pod garbage collector does before it deletes a pod: a Job with
    /// `podReplacementPolicy: Failed` removes its finalizer only then. Returns the pod's new
    /// resource version.
    pub async fn fail_job_pod(&self, permit: &Permit) -> Result<ResourceVersion> {
        let patch = json!({
            "metadata": {"uid": permit.uid, "resourceVersion": permit.resource_version},
            "status": {
                "phase": "Failed",
                "conditions": [{
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodReaper",
                    "message": "The pod was stuck Terminating on a node that is not ready",
                    "lastTransitionTime": permit.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                }],
            },
        });
        let path = &permit.path;
        let patch = Write {
            method: Method::PATCH,
            path: format!("{path}/status?fieldManager=pod-reaper"),
            // A strategic merge keeps the other conditions; a plain merge would replace the list.
            content_type: "application/strategic-merge-patch+json",
            body: patch,
        };
        let changed = self
            .write(patch, permit)
            .await?
            .object::<RawPod>()?
            .metadata
            .resource_version;
        if changed.is_empty() {
            return Err(unreadable("it has no resource version"));
        }
        Ok(changed)
    }

    /// Sends a write that `permit` allows, unless the permit expires first.
    async fn write(&self, write: Write, permit: &Permit) -> Result<Response> {
        let unless = Unless {
            after: permit.at + NODE_FRESH_FOR,
            stopped: !permit.goes_on,
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
