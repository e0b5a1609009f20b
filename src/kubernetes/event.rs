//! Events.

use jiff::Timestamp;
use serde::Deserialize;

/// An Event of `events.k8s.io/v1`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RawEvent {
    event_time: Option<Timestamp>,
    regarding: Regarding,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Regarding {
    uid: Option<String>,
}

impl RawEvent {
    /// The UID of what it is about, and when it was written, where it says both.
    pub fn regards(self) -> Option<(String, Timestamp)> {
        self.regarding.uid.zip(self.event_time)
    }
}
