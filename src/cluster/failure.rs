//! Why a request failed. The cause decides whether to repeat the request, and whether it may have
//! taken effect.

use std::{error, time::Duration};

use http::StatusCode;
use kube::client::AuthError;
use serde_json::Value;

use super::MAX_BODY_BYTES;
use crate::{
    facts::Unread,
    kubernetes::Malformed,
    words::{Note, prefixed},
};

/// How often a request is tried in all. During a rolling restart of the API servers, one or two
/// tries fail.
pub const MAX_TRIES: u32 = 4;
/// The pause before the second try. It doubles with each further try.
pub const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause that a server may ask for. If it asks for a longer one, the request fails
/// immediately, because the CronJob runs again in minutes.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The length, in characters, that messages of the API server are cut to.
pub const MAX_MESSAGE_CHARS: usize = 1_000;

/// The kinds of failure that this program treats differently. The kind is taken from reason and
/// causes of the API's Status object, not from its message, which is for people. Only a refusal by
/// RBAC is recognized by its words, because its Status is like that of an admission plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKind {
    /// The API server says that the object does not exist.
    NotFound,
    /// An admission webhook could not be called.
    Webhook,
    /// The namespace is being deleted, so nothing can be created there any more.
    NamespaceTerminating,
    /// RBAC refuses a list. A 403 from something in between is not of this kind.
    MayNotList,
    /// Any other failure. If there is no Status object, a proxy or load balancer may have
    /// responded.
    Other,
}

/// A response, or why there is none.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The API server responded, but not with success.
    #[error("the API server responded with {code}{}", prefixed(": ", Some(message).filter(|it| !it.is_empty())))]
    Status {
        code: u16,
        /// The message of the API's Status object, or HTTP's name of the code.
        message: Note,
        kind: StatusKind,
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The API server did not respond within this time: the limit of a request, or less near a
    /// deadline. The message gives milliseconds too, because near a deadline the time may be far
    /// less than 1 s.
    #[error("no response within {} s", (.0.as_secs_f64() * 1e3).round() / 1e3)]
    Timeout(Duration),
    /// No request came through. The phrase says why.
    #[error("{0}")]
    Transport(String),
    /// The response is incomplete, or not what was requested.
    #[error("the response could not be read: {0}")]
    Unreadable(String),
    /// One of the objects of a list cannot be read.
    #[error("one of them could not be read: {0}")]
    Malformed(Malformed),
    /// The response is too large, so its reading was aborted. A list may be requested in smaller
    /// pages.
    #[error("the response is larger than {} MiB", MAX_BODY_BYTES >> 20)]
    TooLarge,
    /// A write was not sent, for this reason.
    #[error("not sent: {0}")]
    NotSent(&'static str),
    /// The source is a file, and does not have it in a form that can be read. The phrase says why.
    #[error("{0}")]
    File(String),
}

/// Makes the failure for a response that is not what was requested.
pub fn unreadable(why: impl Into<String>) -> Failure {
    Failure::Unreadable(why.into())
}

impl From<Failure> for Unread {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

impl Failure {
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Reports whether the API server itself says that the failure is of
    /// this kind. A 404 from something in between, such as a proxy's default
    /// page, does not prove that an object is absent.
    pub fn is(&self, wanted: StatusKind) -> bool {
        matches!(self, Self::Status { kind, .. } if *kind == wanted)
    }

    /// Reports whether credentials or permissions are at fault. Another request, for this object or
    /// another one, would then fail too.
    pub fn forbids(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Returns the message of RBAC or admission, with the code, if one of them forbids the request.
    pub fn denial(&self) -> Option<String> {
        match self {
            Self::Status {
                code,
                message,
                kind,
                ..
            } if matches!((code, kind), (403 | 422, _) | (_, StatusKind::Webhook)) => {
                Some(format!("{message} ({code})"))
            }
            _ => None,
        }
    }

    /// Reports whether a write may have been carried out although it failed in this way.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            // A server sends 429 before it reads the request. A 5xx may come from something in
            // between, or after the write.
            Self::Status { code, .. } => matches!(code, 500..=599) && !self.is(StatusKind::Webhook),
            Self::Timeout(_) | Self::Transport(_) | Self::Unreadable(_) | Self::TooLarge => true,
            Self::NotSent(_) | Self::File(_) | Self::Malformed(_) => false,
        }
    }

    /// Reports whether the next request is likely to fail too, because the server does not respond
    /// or is overloaded.
    pub fn is_hopeless(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::TooLarge => false,
            other => other.code().is_none_or(|code| code == 429 || code >= 500),
        }
    }

    /// Returns the pause before the next try, if `tried` tries have failed; `None` if another try
    /// is of no use.
    pub fn pause(&self, tried: u32) -> Option<Duration> {
        let asked = match self {
            // Any other 500 may pass.
            Self::Status {
                kind: StatusKind::Webhook,
                ..
            } => return None,
            Self::Status {
                code: 429 | 500 | 502 | 503 | 504,
                retry_after,
                ..
            } => retry_after.unwrap_or_default(),
            // The node is read again before each try, so a write
            // that was not sent may be sent the next time.
            Self::Timeout(_) | Self::Transport(_) | Self::NotSent(_) => Duration::ZERO,
            _ => return None,
        };
        let again = (1..MAX_TRIES).contains(&tried) && asked <= LONGEST_PAUSE;
        again.then(|| asked.max(FIRST_PAUSE * 2_u32.pow(tried - 1)))
    }
}

/// Returns kind and message of a Status object. The text of any other body is left out, because it
/// may hold anything. `kube`'s own type is not used, because any JSON object parses as that type,
/// and one malformed field spoils the others.
pub fn status_of(status: StatusCode, body: &[u8]) -> (StatusKind, Note) {
    let response = serde_json::from_slice::<Value>(body)
        .ok()
        .filter(|response| response["kind"] == "Status")
        .unwrap_or_default();
    let causes = response["details"]["causes"].as_array();
    let has = |field, start| {
        causes.into_iter().flatten().any(|cause| {
            cause[field]
                .as_str()
                .is_some_and(|it| it.starts_with(start))
        })
    };
    let said = response["message"].as_str();
    let says = |words| said.is_some_and(|it| it.contains(words));
    let kind = match (status.as_u16(), response["reason"].as_str()) {
        (404, Some("NotFound")) => StatusKind::NotFound,
        // The cause of an internal error has no reason, only a message.
        (500, Some("InternalError")) if has("message", "failed calling webhook") => {
            StatusKind::Webhook
        }
        (403, _) if has("reason", "NamespaceTerminating") => StatusKind::NamespaceTerminating,
        (403, _) if says("cannot list resource") => StatusKind::MayNotList,
        _ => StatusKind::Other,
    };
    let message = said
        .or(status.canonical_reason())
        .unwrap_or_default()
        .chars()
        .take(MAX_MESSAGE_CHARS);
    (kind, message.collect::<String>().into())
}

/// Describes the innermost cause of an error, because the outer layers say only that a request
/// failed. The error of a credential plugin is not repeated, because it contains the plugin's
/// output.
pub fn root(error: &(dyn error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    if causes.clone().any(<dyn error::Error>::is::<AuthError>) {
        return "the credentials could not be renewed; log in again".to_owned();
    }
    causes.last().unwrap_or(error).to_string()
}
