//! Kubernetes Events: read, and written.
//!
//! They are not worth a wait: neither request is given as long as those that decide what is deleted.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::{Cluster, Failure, Form, WriteMode, read::PAGE, read::encode};
use crate::{
    events::{CONTROLLER, Event, Reference},
    objects::RawEvent,
};

const GROUP: &str = "/apis/events.k8s.io/v1";
/// Longest wait for an Event to be accepted, or for a namespace's Warnings, further pages and tries included.
const LIMIT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Writes an Event. Sent once.
    pub async fn create_event(&self, event: &Event, mode: WriteMode) -> Result<(), Failure> {
        let mut metadata = json!({"namespace": event.namespace});
        match &event.name {
            Some(name) => metadata["name"] = json!(name),
            None => metadata["generateName"] = json!(format!("{CONTROLLER}-")),
        }
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": metadata,
            // The API takes nothing without its microseconds.
            "eventTime": event.at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            "type": if event.warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "action": event.action,
            "regarding": event.regarding.to_json(),
            "related": event.related.as_ref().map(Reference::to_json),
            "note": event.note,
            "reportingController": CONTROLLER,
            "reportingInstance": event.instance,
        });
        let dry = if mode == WriteMode::DryRun { "?dryRun=All" } else { "" };
        let path = format!("{GROUP}/namespaces/{}/events{dry}", encode(&event.namespace));
        let payload = ("application/json", body.to_string().into_bytes());
        let until = Instant::now() + LIMIT;
        self.send(Method::POST, &path, Form::Metadata, Some(payload), Some(until)).await.map(drop)
    }

    /// When the last of our own Warnings about each pod of `namespace` was written, by the pod's UID, as far as the API
    /// server remembers. Of pods that are not `wanted`, nothing is kept.
    pub async fn warned(
        &self,
        namespace: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Timestamp>, Failure> {
        let path = format!(
            "{GROUP}/namespaces/{}/events?limit={PAGE}\
             &fieldSelector=regarding.kind%3DPod,reportingController%3D{CONTROLLER},type%3DWarning",
            encode(namespace)
        );
        let limit = self.stop.at_most(LIMIT);
        let list = self.list(&path, Form::Object, |event: RawEvent| {
            let (uid, at) = event.regards()?;
            wanted(&uid).then_some((uid, at))
        });
        let listed = tokio::time::timeout(limit, list).await.map_err(|_| Failure::Timeout(limit))??;
        // One that cannot be read may be about any pod.
        if let Some(odd) = listed.odd.into_iter().next() {
            return Err(Failure::Unreadable(odd));
        }
        let mut last = BTreeMap::new();
        for (uid, at) in listed.items {
            let known = last.entry(uid).or_insert(at);
            *known = at.max(*known);
        }
        Ok(last)
    }
}

impl Reference {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind, "namespace": self.namespace,
            "name": self.name, "uid": self.uid,
        })
    }
}
