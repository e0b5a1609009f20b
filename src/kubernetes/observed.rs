//! When an object was last observed as it is, for a snapshot that does not say when it was taken.

use jiff::Timestamp;

use super::{lease::LeaseSpec, meta::Condition};
use crate::facts::deletion_requested;

raw! {
    /// The moments at which an object was observed. A `deletionTimestamp` is none of them: it may lie in the future. The moment
    /// at which the deletion was asked for is one.
    pub struct Observed {
        metadata: ObservedMeta,
        spec: LeaseSpec,
        status: Conditions,
    }

    struct ObservedMeta {
        creation_timestamp: Option<Timestamp>,
        deletion_timestamp: Option<Timestamp>,
        deletion_grace_period_seconds: Option<i64>,
        managed_fields: Option<Vec<Written>>,
    }

    struct Conditions {
        conditions: Option<Vec<Condition>>,
    }

    struct Written {
        time: Option<Timestamp>,
    }
}

impl Observed {
    /// The newest of them.
    pub fn newest(&self) -> Option<Timestamp> {
        let conditions = self.status.conditions.iter().flatten();
        let managed = self.metadata.managed_fields.iter().flatten();
        let deletion = self
            .metadata
            .deletion_timestamp
            .zip(self.metadata.deletion_grace_period_seconds);
        let asked_for = deletion.and_then(|(deadline, grace)| deletion_requested(deadline, grace));
        conditions
            .flat_map(|condition| {
                [
                    condition.last_transition_time,
                    condition.last_heartbeat_time,
                ]
            })
            .chain(managed.map(|entry| entry.time))
            .chain([
                self.metadata.creation_timestamp,
                self.spec.renew_time,
                asked_for,
            ])
            .flatten()
            .max()
    }
}
