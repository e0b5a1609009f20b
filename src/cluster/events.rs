//! Kubernetes Events: read, and written.
//!
//! A run does not wait for them as long as for the requests that decide what is deleted.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Cluster,
    failure::Result,
    read::{collection, encode},
    request::{Accept, Write},
};
use crate::{
    facts::{NodeFacts, PodFacts, Uid},
    kubernetes::RawEvent,
};

/// Who writes them.
pub const CONTROLLER: &str = "pod-reaper";
/// Where Events about objects without a namespace are.
const OF_THE_CLUSTER: &str = "default";
/// Longest wait for an Event to be accepted.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a Warning. An object has one at most, for as long as the API server keeps it.
    pub is_warning: bool,
    /// The report's code of the reason, as Events spell it.
    pub reason: String,
    /// The report's code of what was done, as Events spell it.
    pub action: String,
    pub regarding: Reference,
    /// The node, unless the Event is about the node itself.
    pub related: Option<Reference>,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Such as `apps/v1`.
    pub api_version: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
    /// Its UID, by which `kubectl describe` finds its Events.
    pub uid: Uid,
}

impl Cluster {
    /// Writes an Event, which came about `at` that moment; `instance` is the pod or machine that this program runs on. Sent
    /// once. The API server answers a second Warning about an object with 409, since both have the same name.
    pub async fn create_event(&self, event: &Event, at: Timestamp, instance: &str) -> Result<()> {
        let namespace = event
            .regarding
            .namespace
            .as_deref()
            .unwrap_or(OF_THE_CLUSTER);
        let (kind, naming, name) = if event.is_warning {
            (
                "Warning",
                "name",
                format!("{CONTROLLER}.{}", event.regarding.uid),
            )
        } else {
            ("Normal", "generateName", format!("{CONTROLLER}-"))
        };
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, naming: name},
            // The API server refuses a time without microseconds.
            "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            "type": kind,
            "reason": event.reason,
            "action": event.action,
            "regarding": event.regarding,
            "related": event.related,
            "note": event.note,
            "reportingController": CONTROLLER,
            "reportingInstance": instance,
        });
        let write = Write {
            method: Method::POST,
            path: collection::<RawEvent>(namespace),
            content_type: "application/json",
            body,
        };
        let until = Some(Instant::now() + LIMIT);
        self.send(write, until).await.map(drop)
    }

    /// The newest Warning about the object of this UID, as far as it can be read: when it was written, and what it says.
    pub async fn last_warning(&self, namespace: &str, uid: &str) -> Option<(Timestamp, String)> {
        let selector = format!("regarding.uid%3D{},type%3DWarning", encode(uid));
        let query = format!("&fieldSelector={selector}");
        let take = |last: &mut Option<_>, event: RawEvent| {
            *last = last.take().max(event.says());
        };
        self.list(namespace, &query, Accept::Object, take)
            .await
            .ok()?
            .items
    }
}

impl Reference {
    fn core(kind: &str, namespace: Option<&String>, name: &str, uid: &Uid) -> Self {
        let [api_version, kind, name] = ["v1", kind, name].map(str::to_owned);
        Self {
            api_version,
            kind,
            namespace: namespace.cloned(),
            name,
            uid: uid.clone(),
        }
    }

    pub fn node(node: &NodeFacts) -> Self {
        Self::core("Node", None, &node.name, &node.uid)
    }

    pub fn pod(pod: &PodFacts) -> Self {
        Self::core("Pod", Some(&pod.namespace), &pod.name, &pod.uid)
    }

    /// The pod's controller, or the pod itself where it has none.
    pub fn controller(pod: &PodFacts) -> Self {
        let mut reference = Self::pod(pod);
        if let Some((owner, identity)) = pod.owner.clone().zip(pod.controller.clone()) {
            (reference.api_version, reference.uid) = (identity.api_version, identity.uid);
            (reference.kind, reference.name) = (owner.kind, owner.name);
        }
        reference
    }
}
