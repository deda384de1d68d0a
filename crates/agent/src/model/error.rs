//! Failures of a model, and whether to retry.

use super::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of failure: a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ModelFault))]
pub enum FailureKind {
    /// The key is missing, wrong, or may not do this.
    BadKey,
    UnknownModel,
    /// The request is refused for what it says.
    BadRequest,
    /// The conversation has grown beyond what the model takes.
    TooLong,
    RateLimited,
    /// The server has an error of its own, or too much to do.
    Unavailable,
    /// Nobody answers at that address.
    Unreachable,
    /// Whoever answers there cannot show that it is the model's server.
    BadCertificate,
    /// The answer ended before it was complete.
    Broken,
    /// The answer is not of the format.
    Nonsense,
    /// A command-line agent ended without a result.
    Crashed,
    /// The agent goes on on another machine, which has taken it up from the store.
    Moved,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ModelFailure))]
pub struct Failure {
    pub fault: FailureKind,
    pub message: String,
    /// How long to wait before the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the answer that does not count has used, as far as the server has said so. The
    /// thread has it in an entry of its own.
    #[serde(skip)]
    pub used: Usage,
}

/// Whether to retry after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    After { ms: u64 },
    Never,
}

/// Attempts for one answer, including the first.
const ATTEMPTS: u32 = 6;
/// The first wait; each further one is twice as long.
const FIRST_WAIT_MS: u64 = 500;
const LONGEST_WAIT_MS: u64 = 60_000;
/// The agent does not wait for a server that asks for a longer pause than this.
const MOST_PATIENCE_MS: u64 = 10 * 60 * 1000;

/// Replaces a secret.
const BLANK: &str = "[secret]";
/// A shorter secret may be an ordinary word of a message.
const LEAST_SECRET: usize = 4;

impl Failure {
    #[must_use]
    pub fn new(fault: FailureKind, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), retry_after_ms: None, used: Usage::default() }
    }

    #[must_use]
    pub fn nonsense(body: &[u8]) -> Self {
        let shown = excerpt(&String::from_utf8_lossy(body));
        Self::new(
            FailureKind::Nonsense,
            format!("the model's answer is not of the format: {shown}"),
        )
    }

    #[must_use]
    pub fn broken() -> Self {
        Self::new(FailureKind::Broken, "the model's answer ended before it was complete")
    }

    /// Returns the failure for an HTTP status that is not a success.
    #[must_use]
    pub fn of_status(status: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let said = serde_json::from_slice::<Value>(body).ok();
        let (kind, said) = said.as_ref().map(said_in).unwrap_or_default();
        let said = if said.is_empty() { excerpt(&text) } else { said };
        let fault = fault_of(status, &kind, &said);
        let message = format!("{} ({status}): {said}{}", fault.what(), fault.advice());
        let retry_after_ms = retry_after.and_then(parse_retry_after);
        Self { retry_after_ms, ..Self::new(fault, message) }
    }

    /// Removes secrets, which some servers repeat. This includes the beginning of a secret
    /// that is cut off at the end of an excerpt.
    #[must_use]
    pub fn without(self, secrets: &[String]) -> Self {
        let mut message = self.message;
        for secret in secrets.iter().filter(|secret| secret.len() >= LEAST_SECRET) {
            message = message.replace(secret.as_str(), BLANK);
            let beginnings = secret.char_indices().map(|(at, _)| &secret[..at]);
            let longest = beginnings
                .filter(|beginning| beginning.len() >= LEAST_SECRET)
                .map(|beginning| format!("{beginning}…"))
                .rfind(|cut_off| message.contains(cut_off));
            if let Some(cut_off) = longest {
                message = message.replace(&cut_off, &format!("{BLANK}…"));
            }
        }
        Self { message, ..self }
    }

    /// Adds the usage of the failed answer.
    #[must_use]
    pub fn having_used(self, used: Usage) -> Self {
        if self.used == Usage::default() { Self { used, ..self } } else { self }
    }

    /// Returns the failure for an error in the stream.
    #[must_use]
    pub fn of_event(error: &Value) -> Self {
        let (kind, said) = said_in(error);
        let status = match kind.as_str() {
            "rate_limit_error" | "rate_limit_exceeded" => 429,
            "invalid_request_error" | "context_length_exceeded" => 400,
            "authentication_error" | "permission_error" => 401,
            "not_found_error" => 404,
            _ => 500,
        };
        let fault = fault_of(status, &kind, &said);
        Self::new(fault, format!("{}: {said}{}", fault.what(), fault.advice()))
    }

    /// Returns whether to retry after attempt number `attempt` (1, 2, …).
    #[must_use]
    pub fn retry(&self, attempt: u32) -> Retry {
        let helps = match self.fault {
            FailureKind::BadKey
            | FailureKind::UnknownModel
            | FailureKind::BadRequest
            | FailureKind::TooLong
            | FailureKind::BadCertificate
            | FailureKind::Crashed
            | FailureKind::Moved => false,
            FailureKind::RateLimited
            | FailureKind::Unavailable
            | FailureKind::Unreachable
            | FailureKind::Broken => attempt < ATTEMPTS,
            // A model that sends four invalid answers will send a fifth.
            FailureKind::Nonsense => attempt < 4,
        };
        let backoff = FIRST_WAIT_MS.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let wait = match self.retry_after_ms {
            Some(ms) => ms.max(1),
            None => backoff.min(LONGEST_WAIT_MS),
        };
        if helps && wait <= MOST_PATIENCE_MS { Retry::After { ms: wait } } else { Retry::Never }
    }
}

impl FailureKind {
    fn what(self) -> &'static str {
        match self {
            Self::BadKey => "the model's server refuses the key",
            Self::UnknownModel => "the model's server does not know this model or address",
            Self::BadRequest => "the model's server refuses the request",
            Self::TooLong => "the conversation is too long for the model",
            Self::RateLimited => "the model's server has a limit on requests",
            Self::Unavailable => "the model's server has failed",
            Self::Unreachable => "the model's server cannot be reached",
            Self::BadCertificate => "the model's server is not who it says",
            Self::Crashed => "the command-line agent has failed",
            Self::Moved => "the agent goes on on another machine",
            Self::Broken => "the model's answer is not complete",
            Self::Nonsense => "the model's answer is not of the format",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::BadKey => "; check the key in the environment or the file that is configured",
            Self::UnknownModel => "; check the model's name and the base URL",
            Self::TooLong => "; set compact_above_tokens to a lower number, or reset the thread",
            Self::BadRequest
            | Self::RateLimited
            | Self::Unavailable
            | Self::Unreachable
            | Self::BadCertificate
            | Self::Broken
            | Self::Nonsense
            | Self::Crashed
            | Self::Moved => "",
        }
    }
}

fn fault_of(status: u16, kind: &str, said: &str) -> FailureKind {
    let said = said.to_lowercase();
    let is_too_long = kind == "context_length_exceeded"
        || said.contains("prompt is too long")
        || said.contains("maximum context length")
        || said.contains("context window");
    match status {
        400 | 413 | 422 if is_too_long => FailureKind::TooLong,
        401 | 403 => FailureKind::BadKey,
        // Redirects are not followed: the request contains the key.
        300..=399 | 404 => FailureKind::UnknownModel,
        400 if kind == "model_not_found" => FailureKind::UnknownModel,
        408 | 409 | 425 => FailureKind::Unavailable,
        // An exhausted budget is reported as a rate limit, but waiting does not help.
        429 if kind == "insufficient_quota" => FailureKind::BadKey,
        429 => FailureKind::RateLimited,
        500.. => FailureKind::Unavailable,
        _ => FailureKind::BadRequest,
    }
}

/// Returns the kind and the text of an error, in the form that most servers use.
fn said_in(body: &Value) -> (String, String) {
    let error = if body["error"].is_object() { &body["error"] } else { body };
    let kind = ["code", "type"].into_iter().find_map(|name| error[name].as_str());
    let said = error["message"].as_str().or_else(|| body["error"].as_str());
    (kind.unwrap_or_default().to_owned(), excerpt(said.unwrap_or_default()))
}

/// Parses seconds, which all model servers send. A date is not worth a parser: the usual
/// waits are enough.
fn parse_retry_after(text: &str) -> Option<u64> {
    let seconds: f64 = text.trim().parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds.min(1e9) * 1000.0) as u64)
}

fn excerpt(text: &str) -> String {
    const MOST: usize = 500;
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None if text.is_empty() => "an empty answer".to_owned(),
        None => text.to_owned(),
    }
}
