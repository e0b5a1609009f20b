//! Sends requests, with their time limits, size limits and tries.

use std::{error::Error, sync::Arc, time::Duration};

use http::{Method, Request, header, request};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::{Client, client::Body};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, error::Elapsed, timeout_at},
};

use super::{
    Cluster, MAX_BODY_BYTES, MAX_IN_FLIGHT,
    failure::{Failure, Result, root, status_of},
};
use crate::{
    kubernetes::{Kind, malformed},
    stop::Stop,
};

/// The longest wait for one response, including connection and body. API servers respond to such
/// reads within 1 s. No delete should depend on a server that needs ten times as long.
pub const REQUEST_TIME_LIMIT: Duration = Duration::from_secs(10);
/// How many bytes of a body each request may hold. A list of a hundred pods has about as many.
const MAX_BODY_BYTES_EACH: usize = 1 << 20;
/// The name of this program in audit logs.
pub const USER_AGENT: &str = concat!("pod-reaper/", env!("CARGO_PKG_VERSION"));

/// The characters of a name that need no escape. This program builds the paths of requests itself,
/// because `kube` escapes no name, and a name's author may have aimed at another path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// A response with a 2xx status.
pub struct Response {
    /// The server's time, from the header `Date`.
    pub date: Option<Timestamp>,
    pub body: Vec<u8>,
    /// The permit for a body of more than [`MAX_BODY_BYTES_EACH`] bytes, for as long as the body is
    /// in memory.
    #[expect(dead_code, reason = "it is held, not read")]
    pub alone: Option<OwnedSemaphorePermit>,
}

/// A request that may change something.
pub struct Write {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Value,
}

/// The form of a response: the header `Accept`.
#[derive(Debug, Clone, Copy)]
pub struct Ask(&'static str);

impl Ask {
    /// Whole objects.
    pub const OBJECT: Self = Self("application/json");
    /// The metadata of one object.
    pub const METADATA: Self = Self("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    /// The metadata of each object of a list.
    pub const METADATA_LIST: Self =
        Self("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    /// The rows that `kubectl get` prints.
    pub const TABLE: Self = Self("application/json;as=Table;g=meta.k8s.io;v=v1");
}

impl Cluster {
    pub fn new(client: Client, stop: Stop) -> Self {
        Self {
            client,
            permits: Semaphore::new(MAX_IN_FLIGHT),
            large: Arc::new(Semaphore::new(1)),
            stop,
            name: String::new(),
            address: "the cluster".to_owned(),
        }
    }

    /// Reads `path`, and tries again after a failure that may pass.
    pub(super) async fn fetch(&self, path: &str, ask: Ask) -> Result<Response> {
        let mut tried = 0;
        loop {
            let request = request(Method::GET, path, ask).body(Body::empty());
            let failure = match self.exchange(request, None).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            tried += 1;
            // After a pause that outlasts the run, no time is left for a request.
            let in_time = |pause: &Duration| self.stop.at_most(*pause) == *pause;
            let Some(pause) = failure.pause(tried).filter(in_time) else {
                return Err(failure);
            };
            if matches!(failure, Failure::Timeout(_)) {
                tracing::warn!("{path}: {failure}; trying again");
            }
            tracing::debug!(path, tried, code = failure.code(), "trying again");
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends a write once, unless its time is over before its turn comes.
    pub(super) async fn send(&self, write: Write, unless: Option<Unless>) -> Result<Response> {
        let request = request(write.method, &write.path, Ask::METADATA)
            .header(header::CONTENT_TYPE, write.content_type)
            .body(Body::from(write.body.to_string().into_bytes()));
        self.exchange(request, unless).await
    }

    /// Sends a request when its turn comes, and reads the response.
    async fn exchange(
        &self,
        request: http::Result<Request<Body>>,
        unless: Option<Unless>,
    ) -> Result<Response> {
        let request = request.map_err(|_| Failure::NotSent("no request has such a path"))?;
        let permit = self.permits.acquire().await.map_err(transport)?;
        let mut limit = self.stop.at_most(REQUEST_TIME_LIMIT);
        // The limit includes the time for renewing credentials and connecting. So a write that
        // still waits for these when its time is over is never sent.
        if let Some(unless) = unless {
            if unless.stopped && self.stop.reason().is_some() {
                return Err(Failure::NotSent("the run has to end"));
            }
            let left = unless.after.checked_duration_since(Instant::now());
            let too_late = Failure::NotSent("the node was looked at too long ago");
            limit = limit.min(left.ok_or(too_late)?);
        }
        // One limit applies to response and body together, so a body that never ends is cut off
        // too, with its connection.
        let late = |_| Failure::Timeout(limit);
        let until = Instant::now() + limit;
        let (parts, body) = timeout_at(until, self.client.send(request))
            .await
            .map_err(late)?
            .map_err(transport)?
            .into_parts();
        let (body, alone) = self.read(body, until, late).await?;
        drop(permit);
        let header = |name| parts.headers.get(name)?.to_str().ok();
        if parts.status.is_success() {
            Ok(Response {
                date: header(header::DATE).and_then(|date| {
                    jiff::fmt::rfc2822::DateTimeParser::new()
                        .parse_timestamp(date)
                        .ok()
                }),
                body,
                alone,
            })
        } else {
            let retry_after = header(header::RETRY_AFTER)
                .and_then(|value| value.trim().parse().ok())
                .map(Duration::from_secs);
            let (kind, message) = status_of(parts.status, &body);
            Err(Failure::Status {
                code: parts.status.as_u16(),
                message,
                kind,
                retry_after,
            })
        }
    }

    /// Reads a body until `until`, or fails with the failure that `late` makes. The authors of the
    /// objects decide how long a body is, so the total size of all bodies in memory is limited. The
    /// wait for the permit to read a large body is not the server's, so that wait extends `until`.
    async fn read(
        &self,
        mut body: Body,
        mut until: Instant,
        late: impl Fn(Elapsed) -> Failure,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>)> {
        let (mut read, mut alone) = (Vec::new(), None);
        while let Some(frame) = timeout_at(until, body.frame()).await.map_err(&late)? {
            // All other frames are trailers.
            let data = frame.map_err(transport)?.into_data().unwrap_or_default();
            let length = read.len() + data.len();
            if length > MAX_BODY_BYTES {
                return Err(Failure::TooLarge);
            }
            if length > MAX_BODY_BYTES_EACH && alone.is_none() {
                let waits = Instant::now();
                let large = Arc::clone(&self.large).acquire_owned().await;
                alone = Some(large.map_err(transport)?);
                until += waits.elapsed();
                // A vector that grows would be copied, and need twice the memory meanwhile.
                read.reserve_exact(MAX_BODY_BYTES - read.len());
            }
            read.extend_from_slice(&data);
        }
        Ok((read, alone))
    }
}

fn request(method: Method, path: &str, ask: Ask) -> request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, ask.0)
        .header(header::USER_AGENT, USER_AGENT)
}

fn transport(error: impl Error + 'static) -> Failure {
    Failure::Transport(format!("no connection: {}", root(&error)))
}

/// The conditions under which a write that waits for its turn is not sent any more.
#[derive(Debug, Clone, Copy)]
pub struct Unless {
    /// The last moment at which to send the write.
    pub after: Instant,
    /// Whether not to send the write if the run has to end.
    pub stopped: bool,
}

impl Response {
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Failure::Unreadable(format!(
                "{} (line {line}, column {column})",
                malformed(&error)
            ))
        })
    }

    pub fn object<T: Kind>(&self) -> Result<T> {
        T::parsed(&self.body).map_err(|cause| Failure::Unreadable(cause.to_owned()))
    }
}

/// Returns the path of all objects of a kind in `namespace`; an empty one means all namespaces.
pub fn collection<T: Kind>(namespace: &str) -> String {
    let [api, plural] = T::API;
    if namespace.is_empty() {
        format!("{api}/{plural}")
    } else {
        format!("{api}/namespaces/{}/{plural}", encode(namespace))
    }
}

/// Returns the path of one object of a kind.
pub fn object<T: Kind>(namespace: &str, name: &str) -> String {
    format!("{}/{}", collection::<T>(namespace), encode(name))
}

pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}
