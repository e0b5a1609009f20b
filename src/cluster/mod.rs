//! The API server: this is the only room that sends it requests.
//!
//! Requests are built by hand over [`kube::Client::send`] rather than with `kube::Api`, because three things decide
//! whether this program can be trusted and `Api` hides them: the `Date` of an answer, whether a request had to be
//! repeated, and what exactly went over the wire.

mod connect;
mod events;
mod failure;
mod guard;
mod read;
mod request;
mod write;

use kube::Client;
use tokio::sync::Semaphore;

pub use self::connect::is_address;
pub use self::events::{CONTROLLER, Event, Reference};
pub use self::failure::{Failure, StatusKind, root};
pub use self::guard::{NODE_REFUSAL, REFUSAL};
pub use self::read::{FreshNode, Listed, PodsOf};
pub use self::request::{Accept, USER_AGENT};
pub use self::write::{StillDown, WriteMode};
use crate::{selector::NodeSelectors, stop::Stop};

/// Most requests under way at once. The API server's own fairness gives a client of this kind some tens of seats;
/// HTTP/1.1 means a connection each, so more would mostly cost handshakes.
pub const MAX_IN_FLIGHT: usize = 8;

pub struct Cluster {
    client: Client,
    permits: Semaphore,
    stop: Stop,
    /// What the operator says of nodes.
    pub selectors: NodeSelectors,
    /// What reports call it: its context, where there is one, and its host.
    pub place: String,
    /// What errors call it: the server's whole address.
    address: String,
}

#[cfg(test)]
mod tests;
