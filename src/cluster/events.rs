//! Kubernetes Events: read, and written.
//!
//! They are not worth a wait: neither request is given as long as those that decide what is deleted.

use std::{collections::BTreeMap, time::Duration};

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
/// Longest wait for an Event to be accepted, or for a namespace's Warnings, further pages and tries included.
const LIMIT: Duration = Duration::from_secs(5);

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The name of a Warning, of which there may be no second. To a Normal one the API server gives a name.
    pub warning: Option<String>,
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
    /// once.
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
        let (kind, naming, name) = match &event.warning {
            Some(name) => ("Warning", "name", name.clone()),
            None => ("Normal", "generateName", format!("{CONTROLLER}-")),
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

    /// When the last of our own Warnings about each pod of `namespace` was written, by the pod's UID, as far as the API
    /// server remembers. Of pods that are not `wanted`, nothing is kept.
    pub async fn warned(
        &self,
        namespace: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Timestamp>, Failure> {
        let selector =
            format!("regarding.kind%3DPod,reportingController%3D{CONTROLLER},type%3DWarning");
        let namespace = encode(namespace);
        let path =
            format!("{GROUP}/namespaces/{namespace}/events?limit={PAGE}&fieldSelector={selector}");
        let limit = self.stop.at_most(LIMIT);
        let list = self.list(&path, Form::Object, |event: RawEvent| {
            let (uid, at) = event.regards()?;
            wanted(&uid).then_some((uid, at))
        });
        let listed = tokio::time::timeout(limit, list)
            .await
            .map_err(|_| Failure::Timeout(limit))??;
        // One that cannot be read may be about any pod.
        let mut warned = listed.whole()?;
        // The last of each pod is the one that stays.
        warned.sort();
        Ok(warned.into_iter().collect())
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
