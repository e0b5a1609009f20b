//! Writes Kubernetes Events.
//!
//! A run waits for the write of an Event for a shorter time than for a request that decides about a
//! delete.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Cluster,
    failure::Result,
    request::{Unless, Write, encode},
};
use crate::facts::{PodFacts, Uid};

/// The name of this program as the writer of Events.
pub const CONTROLLER: &str = "pod-reaper";
/// The namespace of Events about objects without a namespace.
const OF_THE_CLUSTER: &str = "default";
/// The longest wait for the API server to accept an Event.
const EVENT_TIME_LIMIT: Duration = Duration::from_secs(5);

/// An Event to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a Warning. As long as the API server keeps a Warning about an object, no
    /// second one is written.
    pub is_warning: bool,
    /// The report's code of the reason, spelled as in Events.
    pub reason: String,
    /// The report's code of the action, spelled as in Events.
    pub action: String,
    pub regarding: Reference,
    /// The node, unless the Event is about the node itself.
    pub related: Option<Reference>,
    pub note: String,
}

/// A reference to an object, as Events have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The API's group and version, such as `apps/v1`.
    pub api_version: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
    /// The object's UID. `kubectl describe` finds the object's Events by it.
    pub uid: Uid,
}

impl Cluster {
    /// Writes an Event of the moment `at`; `instance` is the pod or machine that this program runs
    /// on. The request is sent once. The API server responds to a second Warning about an object
    /// with 409, because both have the same name.
    pub async fn create_event(&self, event: &Event, at: Timestamp, instance: &str) -> Result<()> {
        let namespace = event
            .regarding
            .namespace
            .as_deref()
            .unwrap_or(OF_THE_CLUSTER);
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: event
                .is_warning
                .then(|| format!("{CONTROLLER}.{}", event.regarding.uid)),
            generate_name: (!event.is_warning).then(|| format!("{CONTROLLER}-")),
            ..ObjectMeta::default()
        };
        let kind = if event.is_warning {
            "Warning"
        } else {
            "Normal"
        };
        let body = events::v1::Event {
            metadata,
            event_time: Some(MicroTime(at)),
            type_: Some(kind.to_owned()),
            reason: Some(event.reason.clone()),
            action: Some(event.action.clone()),
            regarding: Some((&event.regarding).into()),
            related: event.related.as_ref().map(ObjectReference::from),
            note: Some(event.note.clone()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(instance.to_owned()),
            ..events::v1::Event::default()
        };
        let write = Write {
            method: Method::POST,
            path: format!(
                "/apis/events.k8s.io/v1/namespaces/{}/events",
                encode(namespace)
            ),
            content_type: "application/json",
            body: json!(body),
        };
        // A run that has to end still writes its Events.
        let unless = Unless {
            after: Instant::now() + EVENT_TIME_LIMIT,
            stopped: false,
        };
        self.send(write, Some(unless)).await.map(drop)
    }
}

impl From<&Reference> for ObjectReference {
    fn from(it: &Reference) -> Self {
        Self {
            api_version: Some(it.api_version.clone()),
            kind: Some(it.kind.clone()),
            namespace: it.namespace.clone(),
            name: Some(it.name.clone()),
            uid: Some(it.uid.to_string()),
            ..Self::default()
        }
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

    pub fn node(name: &str, uid: &Uid) -> Self {
        Self::core("Node", None, name, uid)
    }

    pub fn pod(pod: &PodFacts) -> Self {
        Self::core("Pod", Some(&pod.namespace), &pod.name, &pod.uid)
    }

    /// Refers to the pod's controller, or to the pod itself if it has none.
    pub fn controller(pod: &PodFacts) -> Self {
        let mut reference = Self::pod(pod);
        if let Some((owner, identity)) = pod.owner.clone().zip(pod.controller.clone()) {
            (reference.api_version, reference.uid) = (identity.api_version, identity.uid);
            (reference.kind, reference.name) = (owner.kind, owner.name);
        }
        reference
    }
}
