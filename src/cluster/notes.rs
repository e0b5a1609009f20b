//! Writes what others read later: Kubernetes Events, and the `ConfigMap` of the history.
//!
//! A run waits for these writes for a shorter time than for a request that decides about a delete. It
//! makes them although it has to end.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Cluster,
    failure::Result,
    request::{Response, Unless, Write, encode, object},
};
use crate::{facts::ResourceVersion, history::CONFIG_MAP, kubernetes::RawConfigMap};

/// The longest wait: the first delete of a run waits for its note, and the report for the Events.
const NOTE_TIME_LIMIT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Writes an Event, with one request.
    pub async fn create_event(&self, event: Event) -> Result<()> {
        let namespace = encode(event.metadata.namespace.as_deref().unwrap_or_default());
        self.write_note(Write {
            method: Method::POST,
            path: format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
            content_type: "application/json",
            body: json!(event),
        })
        .await
        .map(drop)
    }

    /// Writes keys of the `ConfigMap`, and leaves its other keys as they are. A null removes a key. The API server
    /// refuses it with 409 if the `ConfigMap` has another version than this one. Returns its new version.
    pub async fn note(
        &self,
        namespace: &str,
        version: &ResourceVersion,
        data: &BTreeMap<String, Value>,
    ) -> Result<ResourceVersion> {
        let path = object::<RawConfigMap>(namespace, CONFIG_MAP);
        let written = self
            .write_note(Write {
                method: Method::PATCH,
                path: format!("{path}?fieldManager=pod-reaper"),
                content_type: "application/merge-patch+json",
                body: json!({"metadata": {"resourceVersion": version}, "data": data}),
            })
            .await?
            .parse::<RawConfigMap>()?;
        Ok(written.metadata.resource_version)
    }

    async fn write_note(&self, write: Write) -> Result<Response> {
        let unless = Unless {
            after: Instant::now() + NOTE_TIME_LIMIT,
            stopped: false,
        };
        self.send(write, Some(unless)).await
    }
}
