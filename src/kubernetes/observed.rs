//! The moment at which the API server last wrote an object, for a snapshot that does not tell when
//! it was taken.

use jiff::Timestamp;

use crate::facts::deletion_requested;

raw! {
    /// The moments at which something happened to an object, by the API server's clock. The
    /// `deletionTimestamp` is left out, because it may be in the future; the moment at which the
    /// deletion was requested is included. The times of conditions and renewals are left out, because
    /// they are by a node's own clock, which may be wrong.
    pub struct Observed {
        metadata: ObservedMeta,
    }

    struct ObservedMeta {
        creation_timestamp: Option<Timestamp>,
        deletion_timestamp: Option<Timestamp>,
        deletion_grace_period_seconds: Option<i64>,
        managed_fields: Vec<Stamp>,
    }

    struct Stamp {
        time: Option<Timestamp>,
    }
}

impl Observed {
    /// Returns the newest of these moments; `None` if the object has none.
    pub fn newest(&self) -> Option<Timestamp> {
        let meta = &self.metadata;
        let asked_for = meta
            .deletion_timestamp
            .zip(meta.deletion_grace_period_seconds)
            .and_then(|(deadline, grace)| deletion_requested(deadline, grace));
        let stamps = meta.managed_fields.iter().map(|stamp| stamp.time);
        stamps.chain([meta.creation_timestamp, asked_for]).max()?
    }
}
