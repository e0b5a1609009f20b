//! Kubernetes Events: read, and written.
//!
//! They are not worth a wait: writing one is not given as long as the requests that decide what is deleted.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::read::{PAGE, encode};
use super::request::Form;
use super::{Cluster, Failure};
use crate::facts::{NodeFacts, PodFacts};
use crate::kubernetes::RawEvent;

/// Who writes them.
pub const CONTROLLER: &str = "pod-reaper";
const GROUP: &str = "/apis/events.k8s.io/v1";
/// Where Events about objects without a namespace are.
const OF_THE_CLUSTER: &str = "default";
/// Longest wait for an Event to be accepted.
const LIMIT: Duration = Duration::from_secs(5);

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a Warning. An object has one at most, for as long as the API server keeps it.
    pub is_warning: bool,
    /// The report's code of the reason, as Events spell it.
    pub reason: String,
    /// The report's code of what was done, as Events spell it.
    pub action: String,
    /// What it is about.
    pub regarding: Reference,
    /// The node, unless it is about that.
    pub related: Option<Reference>,
    /// What people read.
    pub note: String,
}

/// What points at an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it is in one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its UID, by which `kubectl describe` finds its Events.
    pub uid: String,
}

impl Cluster {
    /// Writes an Event, which came about `at` that moment; `instance` is the pod or machine that this program runs on. Sent
    /// once. A second Warning about an object is refused with 409, since both have the same name.
    pub async fn create_event(
        &self,
        event: &Event,
        at: Timestamp,
        instance: &str,
    ) -> Result<(), Failure> {
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
            // The API takes nothing without its microseconds.
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
        let path = format!("{GROUP}/namespaces/{}/events", encode(namespace));
        let payload = ("application/json", body.to_string().into_bytes());
        let until = Instant::now() + LIMIT;
        self.send(
            Method::POST,
            &path,
            Form::Metadata,
            Some(payload),
            Some(until),
        )
        .await
        .map(drop)
    }

    /// The newest Warning about the object of this UID, as far as it can be read: when it was written, and what it says.
    pub async fn last_warning(&self, namespace: &str, uid: &str) -> Option<(Timestamp, String)> {
        let (namespace, uid) = (encode(namespace), encode(uid));
        let selector = format!("regarding.uid%3D{uid},type%3DWarning");
        let path =
            format!("{GROUP}/namespaces/{namespace}/events?limit={PAGE}&fieldSelector={selector}");
        self.list(&path, Form::Object, RawEvent::says)
            .await
            .ok()?
            .items
            .into_iter()
            .max()
    }
}

impl Reference {
    /// To an object of the core API.
    fn core(kind: &str, namespace: Option<&String>, name: &str, uid: &str) -> Self {
        let [api_version, kind, name, uid] = ["v1", kind, name, uid].map(str::to_owned);
        Self {
            api_version,
            kind,
            namespace: namespace.cloned(),
            name,
            uid,
        }
    }

    /// To a node.
    pub fn node(node: &NodeFacts) -> Self {
        Self::core("Node", None, &node.name, &node.uid)
    }

    /// To a pod.
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
