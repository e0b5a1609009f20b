//! Events.

use jiff::Timestamp;

use super::meta::Meta;

raw! {
    /// An Event of `events.k8s.io/v1`.
    pub struct RawEvent {
        pub(super) metadata: Meta,
        event_time: Option<Timestamp>,
        /// Of the older kind of recorder, which most controllers and the kubelet have.
        deprecated_last_timestamp: Option<Timestamp>,
        reason: String,
        note: String,
    }
}

impl RawEvent {
    /// When it was written, and what it says.
    pub fn says(self) -> Option<(Timestamp, String)> {
        let at = self.event_time.max(self.deprecated_last_timestamp)?;
        Some((at, format!("{}: {}", self.reason, self.note)))
    }
}
