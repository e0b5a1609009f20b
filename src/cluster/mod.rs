//! The API server: the only place that asks it anything.
//!
//! Requests are built by hand over [`kube::Client::send`] rather than with `kube::Api`, because three things decide
//! whether this program can be trusted and `Api` hides them: the `Date` of an answer, whether a request had to be
//! repeated, and what exactly went over the wire.

mod connect;
mod events;
mod guard;
mod read;
mod write;

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use jiff::Timestamp;
use kube::{
    Client,
    client::{AuthError, Body},
};
use serde::Deserialize;
use tokio::{sync::Semaphore, time::Instant};

pub use self::{
    connect::{ConnectError, Target},
    guard::REFUSAL,
    read::{Listed, NodeLook, PodsOf, Scan},
    write::{NotDown, StillDown, WriteMode},
};
use crate::{objects::odd, selector::Selector, stop::Stop};

/// Most requests under way at once. The API server's own fairness gives a client of this kind some tens of seats;
/// HTTP/1.1 means a connection each, so more would mostly cost handshakes.
pub const MAX_IN_FLIGHT: usize = 8;
/// Longest wait for one answer, connection and body included. API servers answer these reads within a second; a
/// server that needs longer is not one whose words should delete pods.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// A read is tried this often in all: a rolling restart of API servers turns away one or two tries.
const READ_TRIES: u32 = 4;
/// Pause before the second try; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// A server that asks for a longer pause than this is not waited for: the CronJob comes back in minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Tells audit logs who asked.
pub(crate) const USER_AGENT: &str = concat!("pod-reaper/", env!("CARGO_PKG_VERSION"));
/// Messages of the API server are cut to this many characters.
const MESSAGE_LIMIT: usize = 400;

/// A connection to one cluster.
pub struct Cluster {
    client: Client,
    permits: Semaphore,
    stop: Stop,
    leaf_selector: Option<Selector>,
}

/// An answer with a 2xx status.
struct Answer {
    /// The server's clock, where it said it.
    date: Option<Timestamp>,
    body: Vec<u8>,
}

/// Why a request brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server said no.
    #[error("the API server answered {code}{}", colon(.message))]
    Status {
        /// The HTTP status.
        code: u16,
        /// The message of the API's Status object, or what the status means in HTTP.
        message: String,
        /// The reason of the API's Status object, such as `NotFound`; empty where the body is none, so that
        /// something in between has answered.
        reason: String,
        /// How long the server asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection failed; the root cause.
    #[error("no connection: {0}")]
    Transport(String),
    /// The answer is not what was asked for.
    #[error("the answer could not be read: {0}")]
    Unreadable(String),
    /// A write was not sent, because the look at its node was too old by its turn.
    #[error("not sent: the node was looked at too long ago")]
    NotSent,
}

fn colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl Failure {
    /// The HTTP status, where there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Timeout(_) | Self::Transport(_) | Self::Unreadable(_) | Self::NotSent => None,
        }
    }

    /// Whether the API server itself says that there is no such object. A 404 of something in between, such as a
    /// proxy's default page, proves no absence.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { code: 404, reason, .. } if reason == "NotFound")
    }

    /// Whether credentials or rights are at fault: asking again, or about another object, will not help.
    pub fn forbids(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Whether the same request may succeed a moment later. A 500 counts, unless it is a webhook's.
    fn is_passing(&self) -> bool {
        match self {
            Self::Status { code, .. } => matches!(code, 429 | 500 | 502 | 503 | 504) && !self.is_webhook(),
            Self::Timeout(_) | Self::Transport(_) => true,
            Self::Unreadable(_) | Self::NotSent => false,
        }
    }

    /// Whether a write that failed so may have been carried out all the same.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            // 429 is said before a request is looked at; the others may come from something in between, or too late.
            Self::Status { code, .. } => matches!(code, 500..=599) && !self.is_webhook(),
            Self::Timeout(_) | Self::Transport(_) | Self::Unreadable(_) => true,
            Self::NotSent => false,
        }
    }

    /// Whether the next request would hardly fare better: nobody answers, or has too much to do.
    pub(crate) fn is_hopeless(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            other => other.code().is_none_or(|code| code == 429 || code >= 500),
        }
    }

    /// Whether a namespace is on its way out: nothing can be created there any more.
    pub(crate) fn is_namespace_going(&self) -> bool {
        matches!(self, Self::Status { code: 403, message, .. } if message.contains("because it is being terminated"))
    }

    /// A webhook that cannot be called makes the API server answer 500.
    pub(crate) fn is_webhook(&self) -> bool {
        matches!(self, Self::Status { code: 500, message, .. } if message.contains("failed calling webhook"))
    }

    /// How long to wait before try number `tried + 1`; `None` where it is no use.
    pub(crate) fn pause(&self, tried: u32) -> Option<Duration> {
        if !self.is_passing() {
            return None;
        }
        let own = FIRST_PAUSE * 2_u32.pow(tried.saturating_sub(1).min(8));
        let asked = match self {
            Self::Status { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        (asked <= LONGEST_PAUSE).then(|| own.max(asked).min(LONGEST_PAUSE))
    }
}

/// How a request wants its answer.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Whole objects.
    Object,
    /// Metadata alone.
    Metadata,
    /// Metadata alone, of a list.
    MetadataList,
    /// The rows that `kubectl get` prints.
    Table,
}

impl Form {
    fn accept(self) -> &'static str {
        match self {
            Self::Object => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Self::MetadataList => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Self::Table => "application/json;as=Table;g=meta.k8s.io;v=v1",
        }
    }
}

impl Cluster {
    /// Over a client that is already set up.
    pub fn new(client: Client, stop: Stop, leaf_selector: Option<Selector>) -> Self {
        Self { client, permits: Semaphore::new(MAX_IN_FLIGHT), stop, leaf_selector }
    }

    /// Reads `path`, trying again what may pass.
    async fn get(&self, path: &str, form: Form) -> Result<Answer, Failure> {
        let mut tried = 0;
        loop {
            let failure = match self.send(Method::GET, path, form, None, None).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            tried += 1;
            // After a pause beyond the end of the run there would be no time left to ask.
            let worth_it = |pause: &Duration| tried < READ_TRIES && self.stop.at_most(*pause) == *pause;
            let Some(pause) = failure.pause(tried).filter(worth_it) else {
                return Err(failure);
            };
            tracing::debug!(path, tried, code = failure.code(), "asking again");
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends one request, once. After `fresh_until` it must not be sent any more: it may have had to wait for its turn.
    async fn send(
        &self,
        method: Method,
        path: &str,
        form: Form,
        payload: Option<(&'static str, Vec<u8>)>,
        fresh_until: Option<Instant>,
    ) -> Result<Answer, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, form.accept())
            .header(header::USER_AGENT, USER_AGENT);
        let mut body = Body::empty();
        if let Some((content_type, bytes)) = payload {
            request = request.header(header::CONTENT_TYPE, content_type);
            body = Body::from(bytes);
        }
        let request = request.body(body).map_err(|error| Failure::Transport(error.to_string()))?;
        let permit = self.permits.acquire().await.map_err(|error| Failure::Transport(error.to_string()))?;
        let mut limit = self.stop.at_most(REQUEST_LIMIT);
        // Renewing credentials and connecting come first and take their time too: what has not left by then, never does.
        if let Some(until) = fresh_until {
            let left = until.checked_duration_since(Instant::now()).ok_or(Failure::NotSent)?;
            limit = limit.min(left);
        }
        // One limit around both, so that a body that never ends is cut off too, connection and all.
        let exchange = tokio::time::timeout(limit, async {
            let response =
                self.client.send(request).await.map_err(|error| Failure::Transport(root(&error)))?;
            let (parts, body) = response.into_parts();
            let body = body.collect_bytes().await.map_err(|error| Failure::Transport(root(&error)))?;
            Ok((parts, body))
        });
        let answered = exchange.await;
        drop(permit);
        let (parts, body) = answered.map_err(|_| Failure::Timeout(limit))??;
        if parts.status.is_success() {
            let date =
                parts.headers.get(header::DATE).and_then(|value| value.to_str().ok()).and_then(http_date);
            Ok(Answer { date, body: body.into() })
        } else {
            let retry_after = parts.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after =
                retry_after.and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
            let (reason, message) = status_of(parts.status, &body);
            Err(Failure::Status { code: parts.status.as_u16(), message, reason, retry_after })
        }
    }
}

impl Answer {
    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable(&error))
    }
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::Unreadable(format!("{} (line {}, column {})", odd(error), error.line(), error.column()))
}

fn http_date(value: &str) -> Option<Timestamp> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    parser.parse_timestamp(value).ok()
}

/// Reason and message of a Status object. A body that is none is not repeated: it may hold anything.
fn status_of(status: StatusCode, body: &[u8]) -> (String, String) {
    #[derive(Deserialize)]
    struct Status {
        kind: Option<String>,
        reason: Option<String>,
        message: Option<String>,
    }
    let said =
        serde_json::from_slice::<Status>(body).ok().filter(|said| said.kind.as_deref() == Some("Status"));
    let (reason, message) = said.map_or((None, None), |said| (said.reason, said.message));
    let message = message.map(|message| message.chars().take(MESSAGE_LIMIT).collect());
    let message = message.unwrap_or_else(|| status.canonical_reason().unwrap_or_default().to_owned());
    (reason.unwrap_or_default(), message)
}

/// The innermost cause: the outer layers say only that a request failed. What a credential plugin says is not
/// repeated: its error holds its output.
pub(crate) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if cause.is::<AuthError>() {
            return "the credentials could not be renewed".to_owned();
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None => return cause.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
