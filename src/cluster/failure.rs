//! Why a request failed, and what follows from that: whether to repeat it, and whether it may have taken effect.

use std::time::Duration;

use http::StatusCode;
use kube::client::AuthError;
use serde_json::Value;

/// Pause before the second try; doubled for each further one.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// A server that asks for a longer pause than this is not waited for: the CronJob comes back in minutes.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Messages of the API server are cut to this many characters.
pub(super) const MESSAGE_LIMIT: usize = 1_000;

/// What a Status object of the API says it is, as far as that matters here. It is read from the object's reason and
/// causes: the message is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKind {
    NotFound,
    /// An admission webhook could not be called.
    Webhook,
    /// The namespace is being deleted: nothing can be created there any more.
    NamespaceTerminating,
    /// Anything else, or no Status at all: then something in between has answered.
    Other,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The API server answered, but not with success.
    #[error("the API server answered {code}{}", colon(.message))]
    Status {
        code: u16,
        /// The message of the API's Status object, or what the status means in HTTP.
        message: String,
        kind: StatusKind,
        /// How long the server asks to be left alone.
        retry_after: Option<Duration>,
    },
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection failed; the root cause.
    #[error("no connection: {0}")]
    Transport(String),
    /// The answer is not what was asked for, or not complete.
    #[error("the answer could not be read: {0}")]
    Unreadable(String),
    /// A write was not sent, because the look at its node was too old by its turn.
    #[error("not sent: the node was looked at too long ago")]
    NotSent,
}

fn colon(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

impl Failure {
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Timeout(_) | Self::Transport(_) | Self::Unreadable(_) | Self::NotSent => None,
        }
    }

    /// Whether the API server itself says that it is of that kind. A 404 of something in between, such as a proxy's default
    /// page, proves no absence.
    pub fn is(&self, wanted: StatusKind) -> bool {
        matches!(self, Self::Status { kind, .. } if *kind == wanted)
    }

    /// Whether credentials or rights are at fault: asking again, or about another object, will not help.
    pub fn forbids(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Whether the same request may succeed a moment later. A 500 counts, unless it is a webhook's.
    fn is_passing(&self) -> bool {
        match self {
            Self::Status { code, .. } => {
                matches!(code, 429 | 500 | 502 | 503 | 504) && !self.is(StatusKind::Webhook)
            }
            Self::Timeout(_) | Self::Transport(_) => true,
            Self::Unreadable(_) | Self::NotSent => false,
        }
    }

    /// Whether a write that failed so may have been carried out all the same.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            // 429 is said before a request is looked at; the others may come from something in between, or too late.
            Self::Status { code, .. } => matches!(code, 500..=599) && !self.is(StatusKind::Webhook),
            Self::Timeout(_) | Self::Transport(_) | Self::Unreadable(_) => true,
            Self::NotSent => false,
        }
    }

    /// Whether the next request is likely to fail too: the server does not answer, or has too much to do.
    pub(crate) fn is_hopeless(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            other => other.code().is_none_or(|code| code == 429 || code >= 500),
        }
    }

    /// How long to wait before try number `tried + 1`; `None` where another try is no use.
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

/// Kind and message of a Status object. The text of any other body is left out: it may hold anything.
pub(super) fn status_of(status: StatusCode, body: &[u8]) -> (StatusKind, String) {
    let answered = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let answered = if answered["kind"] == "Status" {
        answered
    } else {
        Value::Null
    };
    let causes = answered["details"]["causes"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    // The cause of an internal error has no reason, only the error's text.
    let webhook = |cause: &Value| {
        cause["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("failed calling webhook"))
    };
    let kind = match (status.as_u16(), answered["reason"].as_str()) {
        (404, Some("NotFound")) => StatusKind::NotFound,
        (500, Some("InternalError")) if causes.iter().any(webhook) => StatusKind::Webhook,
        (403, _)
            if causes
                .iter()
                .any(|cause| cause["reason"] == "NamespaceTerminating") =>
        {
            StatusKind::NamespaceTerminating
        }
        _ => StatusKind::Other,
    };
    let message = answered["message"]
        .as_str()
        .map(|message| message.chars().take(MESSAGE_LIMIT).collect());
    (
        kind,
        message.unwrap_or_else(|| status.canonical_reason().unwrap_or_default().to_owned()),
    )
}

/// The innermost cause: the outer layers say only that a request failed. What a credential plugin says is not
/// repeated: its error holds its output.
pub(crate) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    if causes.clone().all(|cause| !cause.is::<AuthError>()) {
        return causes.last().unwrap_or(error).to_string();
    }
    "the credentials could not be renewed".to_owned()
}
