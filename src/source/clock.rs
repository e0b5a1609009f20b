//! Checks the API server's clock against the leases of Ready nodes.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};

use super::Reader;
use crate::{cluster::Api, facts::Ready, kubernetes::NodeRow, words::human_duration};

/// The number of Ready nodes whose clocks are compared with that of the API server.
const MAX_NODES_COMPARED: usize = 3;
/// How many Ready nodes are read at most: a row does not show which are leaf nodes.
const MAX_NODES_READ: usize = 32;
/// The age from which on a Ready node's renewal no longer shows that the API server's clock is
/// right: a node renews its lease every 10 s.
const MAX_RENEWAL_AGE: SignedDuration = SignedDuration::from_mins(5);

/// What some Ready nodes tell.
#[derive(Debug, Clone, Default)]
pub struct ReadyNodes {
    /// Why the API server's clock is not trusted, as a phrase; `None` if it is trusted.
    pub clock: Option<String>,
    /// Whether any pod can start on one of these nodes.
    pub room: bool,
    /// The boot IDs of these nodes.
    pub boot_ids: BTreeSet<String>,
}

impl<A: Api> Reader<'_, A> {
    /// Compares the API server's clock with the leases of some Ready nodes, until one node has just
    /// renewed its lease, also by its own clock, and pods can start on one. If there is no Ready node to compare with, the
    /// clock is trusted. A moment that the user gave is not compared.
    pub(super) async fn ready_nodes(&self, rows: &[NodeRow], now: Timestamp) -> ReadyNodes {
        let ready = rows
            .iter()
            .filter(|row| row.is_ready)
            .filter(|_| !self.about.at_given_time);
        // The first is one on which pods can start, to judge by its row, if there is such a node.
        let ready = ready
            .clone()
            .find(|row| row.is_open)
            .into_iter()
            .chain(ready)
            .map(|row| &row.name)
            .unique();
        let is_recent = |at: Timestamp| now.duration_since(at) < MAX_RENEWAL_AGE;
        let (mut found, mut compared, mut unread) = (ReadyNodes::default(), 0, None);
        let (mut old, mut is_right) = (None, false);
        for name in ready.take(MAX_NODES_READ) {
            if compared == MAX_NODES_COMPARED || is_right && found.room {
                break;
            }
            let node = match self.node(name).await {
                Ok(Some(node)) => node,
                Ok(None) => continue,
                Err(why) => {
                    (unread, compared) = (Some(why), compared + 1);
                    continue;
                }
            };
            if node.leaf.is_some() || node.ready != Ready::True {
                continue;
            }
            found.room |= node.open;
            found.boot_ids.extend(node.boot_id);
            compared += usize::from(node.renewed.is_some() || node.unread_lease.is_some());
            unread = node.unread_lease.or(unread);
            match node.renewed {
                Some(renewed) if is_recent(renewed) => is_right = true,
                Some(renewed) => old = old.or(Some((name, renewed))),
                None => {}
            }
        }
        if is_right {
            return found;
        }
        let Some((name, renewed)) = old else {
            found.clock =
                unread.map(|why| format!("no lease of a Ready node could be read: {why}"));
            return found;
        };
        let cause = format!(
            "by the API server's clock, none of {compared} nodes that are Ready has renewed its lease for {} (such as {name}): one of the clocks is wrong, or the API server's data was restored",
            human_duration(now.duration_since(renewed))
        );
        self.note("the time, to judge by", &cause);
        found.clock = Some(cause);
        found
    }
}
