//! The moment at which an object was last observed, for
//! a snapshot that does not tell when it was taken.

use jiff::Timestamp;

use super::{lease::LeaseSpec, meta::Condition};
use crate::facts::deletion_requested;

raw! {
    /// The moments at which something happened to an object. The
    /// `deletionTimestamp` is none of them, because it may lie in the future; the
    /// moment at which the deletion was requested is one.
    pub struct Observed {
        metadata: ObservedMeta,
        spec: LeaseSpec,
        status: Conditions,
    }

    struct ObservedMeta {
        creation_timestamp: Option<Timestamp>,
        deletion_timestamp: Option<Timestamp>,
        deletion_grace_period_seconds: Option<i64>,
        managed_fields: Vec<Stamp>,
    }

    struct Conditions {
        conditions: Vec<Condition>,
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
        self.status
            .conditions
            .iter()
            .flat_map(|it| [it.last_transition_time, it.last_heartbeat_time])
            .chain(meta.managed_fields.iter().map(|stamp| stamp.time))
            .chain([meta.creation_timestamp, self.spec.renew_time, asked_for])
            .max()?
    }
}
