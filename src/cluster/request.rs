//! Sends requests, with their time limits and tries.

use std::{error::Error, time::Duration};

use http::{Method, Request, header, request};
use jiff::Timestamp;
use kube::{Client, client::Body};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    Cluster, MAX_IN_FLIGHT,
    failure::{Failure, Result, TRIES, root, status_of},
};
use crate::{kubernetes::malformed, selector::NodeSelectors, stop::Stop};

/// The longest wait for one response, including connection and body. API servers answer such reads
/// within 1 s. Nothing should be deleted on the word of a server that needs ten times as long.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The name of this program in audit logs.
pub const USER_AGENT: &str = concat!("pod-reaper/", env!("CARGO_PKG_VERSION"));

/// A response with a 2xx status.
pub struct Response {
    /// The server's time, from the header `Date`.
    pub date: Option<Timestamp>,
    pub body: Vec<u8>,
}

/// A request that may change something.
pub struct Write {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Value,
}

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// Whole objects.
    Object,
    /// Whole objects, but without a second try, for a caller that asks again anyway.
    Look,
    /// The metadata of one object.
    Metadata,
    /// The metadata of each object of a list.
    MetadataList,
    /// The rows that `kubectl get` prints.
    Table,
}

impl Accept {
    fn header(self) -> &'static str {
        match self {
            Self::Object | Self::Look => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Self::MetadataList => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            Self::Table => "application/json;as=Table;g=meta.k8s.io;v=v1",
        }
    }
}

impl Cluster {
    pub fn new(client: Client, stop: Stop, selectors: NodeSelectors) -> Self {
        Self {
            client,
            permits: Semaphore::new(MAX_IN_FLIGHT),
            stop,
            selectors,
            name: String::new(),
            address: "the cluster".to_owned(),
        }
    }

    /// Reads `path`, and tries again after a failure that may pass.
    pub(super) async fn get(&self, path: &str, accept: Accept) -> Result<Response> {
        let start = Instant::now();
        let mut tried = if accept == Accept::Look { TRIES - 1 } else { 0 };
        loop {
            let request = request(Method::GET, path, accept).body(Body::empty());
            let failure = match self.exchange(request, None).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            tried += 1;
            // After a pause that outlasts the run, no time is left to ask.
            let in_time = |pause: &Duration| self.stop.at_most(*pause) == *pause;
            let Some(pause) = failure.pause(tried).filter(in_time) else {
                return Err(match failure {
                    Failure::Timeout(_) if tried > 1 && accept != Accept::Look => {
                        Failure::Transport(format!(
                            "{failure}, asked {tried} times in {} s",
                            start.elapsed().as_secs()
                        ))
                    }
                    failure => failure,
                });
            };
            if matches!(failure, Failure::Timeout(_)) {
                tracing::warn!("{path}: {failure}; asking again");
            }
            tracing::debug!(path, tried, code = failure.code(), "asking again");
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends a write once, but never after `fresh_until`:
    /// it may have to wait for its turn that long.
    pub(super) async fn send(
        &self,
        write: Write,
        fresh_until: Option<Instant>,
    ) -> Result<Response> {
        let request = request(write.method, &write.path, Accept::Metadata)
            .header(header::CONTENT_TYPE, write.content_type)
            .body(Body::from(write.body.to_string().into_bytes()));
        self.exchange(request, fresh_until).await
    }

    /// Sends a request when it has its turn, and reads the response.
    async fn exchange(
        &self,
        request: http::Result<Request<Body>>,
        fresh_until: Option<Instant>,
    ) -> Result<Response> {
        let request = request.map_err(transport)?;
        let permit = self.permits.acquire().await.map_err(transport)?;
        let mut limit = self.stop.at_most(REQUEST_LIMIT);
        // The limit includes renewing credentials and connecting. So a write that is still waiting
        // for these when `fresh_until` comes is never sent.
        if let Some(until) = fresh_until {
            let left = until.checked_duration_since(Instant::now());
            let too_late = Failure::NotSent("the node was looked at too long ago");
            limit = limit.min(left.ok_or(too_late)?);
        }
        // One limit holds for response and body, so a body that never ends is cut off too, together
        // with its connection.
        let answered = tokio::time::timeout(limit, async {
            let response = self.client.send(request).await.map_err(transport)?;
            let (parts, body) = response.into_parts();
            Ok((parts, body.collect_bytes().await.map_err(transport)?))
        })
        .await;
        drop(permit);
        let (parts, body) = answered.map_err(|_| Failure::Timeout(limit))??;
        let header = |name| parts.headers.get(name)?.to_str().ok();
        if parts.status.is_success() {
            Ok(Response {
                date: header(header::DATE).and_then(http_date),
                body: body.into(),
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
}

fn request(method: Method, path: &str, accept: Accept) -> request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, accept.header())
        .header(header::USER_AGENT, USER_AGENT)
}

fn transport(error: impl Error + 'static) -> Failure {
    Failure::Transport(root(&error))
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
}

pub fn http_date(value: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(value)
        .ok()
}
