//! The only three writes to pods and the claims that go with them, and what each must carry.
//!
//! Each names the object's UID and resource version, so that the API server refuses it when the object is not the one
//! that was judged, and each asks for a [`StillDown`]: proof that the node was seen NotReady a moment ago.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Cluster, Failure,
    failure::{Result, unreadable},
    read::{FreshNode, object},
    request::{Response, Write},
};
use crate::{
    decide::PinnedClaim,
    facts::{NodeFacts, PodFacts, Ready, ResourceVersion, Uid},
    kubernetes::{RawClaim, RawPod},
    outcome::Outcome,
};

/// For how long a reading of a node permits writes to its pods: 5 s, less what cancelling may take.
const NODE_FRESH_FOR: Duration = Duration::from_millis(4_500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Real,
    /// The server checks rights, admission and preconditions, and changes nothing.
    DryRun,
}

/// Proof that a node was NotReady, real and the same node when it was last read. Only [`StillDown::prove`] makes one,
/// and it expires.
#[derive(Debug)]
pub struct StillDown {
    node: String,
    now: Timestamp,
    until: Instant,
}

impl StillDown {
    /// Judges a new reading of the node that was `judged` before. An error is the outcome of its pods.
    pub fn prove(
        FreshNode { facts, now, at }: &FreshNode,
        judged: &NodeFacts,
    ) -> Result<Self, Outcome> {
        let changed = |how: &str| Err(Outcome::NodeChanged(how.to_owned()));
        if facts.uid != judged.uid {
            return changed("Another node has registered under the name.");
        }
        if facts.ready == Ready::True {
            return Err(Outcome::NodeRecovered);
        }
        if facts.leaf.is_some() {
            return changed("The node carries the mark of a leaf node now.");
        }
        Ok(Self {
            node: facts.name.clone(),
            now: *now,
            until: *at + NODE_FRESH_FOR,
        })
    }
}

impl Cluster {
    /// Force-deletes `pod`, if it still has the resource version that was judged. The request is sent once, and the answer says no
    /// more than that the server accepted it.
    pub async fn delete_pod(
        &self,
        pod: &PodFacts,
        node: &StillDown,
        mode: WriteMode,
    ) -> Result<()> {
        let path = object::<RawPod>(&pod.namespace, &pod.name);
        let delete = delete(path, &pod.uid, &pod.resource_version, mode, "Background");
        self.write(delete, pod, node).await.map(drop)
    }

    /// Deletes a claim of `pod` that is given up, if it still has the resource version in which that was declared or answered. The API server keeps it until the pod is gone.
    pub async fn delete_claim(
        &self,
        pod: &PodFacts,
        claim: &PinnedClaim,
        node: &StillDown,
        mode: WriteMode,
    ) -> Result<()> {
        let version = claim.given_up.as_ref().map_err(|_| Failure::NotSent)?;
        let path = object::<RawClaim>(&pod.namespace, &claim.claim);
        let delete = delete(path, &claim.claim_uid, version, mode, "Background");
        self.write(delete, pod, node).await.map(drop)
    }

    /// Sets a pod that only the Job controller's finalizer holds to `Failed`, as the pod garbage collector does before
    /// it deletes one: a Job with `podReplacementPolicy: Failed` lets go only then. Gives the new resource version.
    pub async fn fail_job_pod(
        &self,
        pod: &PodFacts,
        node: &StillDown,
        mode: WriteMode,
    ) -> Result<ResourceVersion> {
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
        let query = match mode {
            WriteMode::Real => "",
            WriteMode::DryRun => "&dryRun=All",
        };
        let patch = Write {
            method: Method::PATCH,
            path: format!("{path}/status?fieldManager=pod-reaper{query}"),
            // Strategic, so that the other conditions stay.
            content_type: "application/strategic-merge-patch+json",
            body: patch,
        };
        let response = self.write(patch, pod, node).await?;
        if mode == WriteMode::DryRun {
            return Ok(pod.resource_version.clone());
        }
        let changed = response.parse::<RawPod>()?.metadata.resource_version;
        if changed.is_empty() {
            return Err(unreadable("it has no resource version"));
        }
        Ok(changed)
    }

    async fn write(&self, write: Write, pod: &PodFacts, node: &StillDown) -> Result<Response> {
        if pod.node.as_deref() != Some(&node.node) {
            return Err(Failure::NotSent);
        }
        self.send(write, Some(node.until)).await
    }
}

/// A delete for exactly this state of an object, at once. A dry run says so twice: the API server obeys the body where a
/// delete has one; the query is what its log shows.
pub fn delete(
    mut path: String,
    uid: &Uid,
    resource_version: &ResourceVersion,
    mode: WriteMode,
    propagation: &str,
) -> Write {
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": propagation,
        "preconditions": {"uid": uid, "resourceVersion": resource_version},
    });
    if mode == WriteMode::DryRun {
        path += "?dryRun=All";
        body["dryRun"] = json!(["All"]);
    }
    Write {
        method: Method::DELETE,
        path,
        content_type: "application/json",
        body,
    }
}
