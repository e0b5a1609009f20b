//! Talks to the API server. No other module sends it requests.
//!
//! Requests are built by hand over [`kube::Client::send`] rather than with `kube::Api`, because
//! `Api` hides three things that decide whether this program can be trusted: the `Date` of a
//! response, whether a request was repeated, and what exactly was sent.

mod api;
mod connect;
mod failure;
mod guard;
mod notes;
mod read;
mod request;
mod write;

use std::sync::Arc;

use kube::Client;
use tokio::sync::Semaphore;

pub use self::api::{About, Api, Listed, Of};
pub use self::failure::{Failure, StatusKind, root};
pub use self::guard::REFUSAL;
pub use self::request::{REQUEST_TIME_LIMIT, USER_AGENT};
pub use self::write::{NodeAgain, Permit};
use crate::stop::Stop;

/// The most requests that are under way simultaneously. The API server's priority and fairness
/// gives such a client some tens of seats. But with HTTP/1.1 each request under way needs a
/// connection, so more requests would cost handshakes.
pub const MAX_IN_FLIGHT: usize = 8;

/// The maximum size of a large body, of which only one may be in memory at a time. The largest object
/// has 9 MB: etcd accepts 1.5 MiB, and JSON spells a byte with up to six characters, such as `\u003c`.
const MAX_BODY_BYTES: usize = 10 << 20;

/// A cluster, and the credentials and limits of every request to it.
pub struct Cluster {
    client: Client,
    permits: Semaphore,
    /// The permit for a large body, which one response at a time has.
    large: Arc<Semaphore>,
    stop: Stop,
    /// The cluster's name in reports: its context, if there is one, and its host.
    pub name: String,
    /// The cluster's name in errors, with the whole address of the server.
    pub address: String,
}

#[cfg(test)]
mod tests;
