//! The census: how many nodes of the cluster are NotReady, as the breaker counts them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::facts::{Census, Standing, Tally};

impl Census {
    /// Counts the real nodes among `nodes`, without those that were put away by `now`.
    pub fn count(now: Timestamp, nodes: impl IntoIterator<Item = Standing>) -> Self {
        let (mut all, mut workers, mut room) = (Tally::default(), Tally::default(), false);
        let mut zones = BTreeMap::<_, Tally>::new();
        for node in nodes
            .into_iter()
            .filter(|node| !node.leaf && (node.occupied || !node.may_be_put_away(now)))
        {
            all.add(node.ready);
            if !node.control_plane {
                workers.add(node.ready);
            }
            room |= node.ready && node.open;
            if let Some(zone) = node.zone {
                zones.entry(zone).or_default().add(node.ready);
            }
        }
        Self::Counted {
            all,
            workers,
            zones,
            room,
        }
    }
}

impl Tally {
    /// Counts one more node.
    pub fn add(&mut self, ready: bool) {
        self.total += 1;
        self.not_ready += usize::from(!ready);
    }
}

impl Standing {
    /// Reports whether somebody has put the node away by `now`, unless it is occupied. A node that
    /// was put away is no part of an outage.
    pub fn may_be_put_away(&self, now: Timestamp) -> bool {
        let long_ago = |since: Timestamp| now.duration_since(since) > PUT_AWAY;
        !self.ready && self.since.is_some_and(long_ago)
    }
}

/// A node that has been NotReady for longer than this was put away, if nothing is left on it but
/// what stays on every node.
const PUT_AWAY: SignedDuration = SignedDuration::from_hours(24);
