//! Writes to the `ConfigMap` of the history.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Cluster,
    failure::Result,
    request::{Unless, Write, object},
};
use crate::{history::CONFIG_MAP, kubernetes::RawConfigMap};

/// The longest wait: the first delete of a run waits for it.
const NOTE_TIME_LIMIT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Writes keys of the `ConfigMap`, and leaves its other keys as they are. A null removes a key.
    pub async fn note(&self, namespace: &str, data: &BTreeMap<String, Value>) -> Result<()> {
        let path = object::<RawConfigMap>(namespace, CONFIG_MAP);
        let write = Write {
            method: Method::PATCH,
            path: format!("{path}?fieldManager=pod-reaper"),
            content_type: "application/merge-patch+json",
            body: json!({"data": data}),
        };
        // A run that has to end still notes what it did.
        let unless = Unless {
            after: Instant::now() + NOTE_TIME_LIMIT,
            stopped: false,
        };
        self.send(write, Some(unless)).await.map(drop)
    }
}
