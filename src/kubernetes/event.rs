//! Events.

use jiff::Timestamp;

raw! {
    /// An Event of `events.k8s.io/v1`.
    pub struct RawEvent {
        event_time: Option<Timestamp>,
        regarding: Regarding,
    }

    struct Regarding {
        uid: Option<String>,
    }
}

impl RawEvent {
    /// The UID of what it is about, and when it was written, where it says both.
    pub fn regards(self) -> Option<(String, Timestamp)> {
        self.regarding.uid.zip(self.event_time)
    }
}
