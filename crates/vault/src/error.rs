//! Errors of a store, with advice.

use crate::{Holder, Save};
use object_store::client::{HttpError, HttpErrorKind};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("{url:?} is not a place for saves: {why}")]
    BadUrl { url: String, why: String },

    #[error("no credentials for {place}: {hint}")]
    NoCredentials { place: String, hint: &'static str },

    #[error("{place} refuses these credentials ({why})")]
    Denied { place: String, why: String },

    #[error("{place}: there is no such {container}")]
    NoContainer { place: String, container: &'static str },

    #[error("{place} cannot be reached: {why}")]
    Unreachable { place: String, why: String },

    #[error("{place} has no room left")]
    NoSpace { place: String },

    #[error("{place} has no save of this session")]
    NotFound { place: String },

    #[error("the save is damaged: {0}")]
    Damaged(&'static str),

    #[error(
        "the saves have version {0} of the format, which this sessile does not know: update it"
    )]
    Newer(u32),

    #[error(
        "a save as of run {} of {} is there already, which is later than this one: the session goes on elsewhere",
        .0.as_of_run.0, .0.saved_at
    )]
    Superseded(Box<Save>),

    #[error("the session now lives on {}, which took it up at {}", .0.host, .0.since)]
    Moved(Box<Holder>),

    #[error("{place} changed again and again while it was written to; try again")]
    Contended { place: String },

    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    #[error("{place}: {why}")]
    Store { place: String, why: String },
}

impl VaultError {
    /// Returns a code for programs, which does not change between versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadUrl { .. } => "bad_url",
            Self::NoCredentials { .. } => "no_credentials",
            Self::Denied { .. } => "denied",
            Self::NoContainer { .. } => "no_bucket",
            Self::Unreachable { .. } => "unreachable",
            Self::NoSpace { .. } => "no_space",
            Self::NotFound { .. } => "not_found",
            Self::Damaged(_) => "damaged",
            Self::Newer(_) => "newer_format",
            Self::Superseded(_) => "superseded",
            Self::Moved(_) => "session_moved",
            Self::Contended { .. } => "contended",
            Self::Io { .. } => "io",
            Self::Store { .. } => "store",
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            if has_no_room(&source) {
                Self::NoSpace { place: path.display().to_string() }
            } else {
                Self::Io { action, path, source }
            }
        }
    }
}

fn has_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The context of errors: the store and its terms.
#[derive(Clone, Debug)]
pub(crate) struct ErrorContext {
    /// The URL, without anything that may be secret.
    pub(crate) place: String,
    /// "bucket" or "container".
    pub(crate) container: &'static str,
    /// How to provide credentials.
    pub(crate) hint: &'static str,
    /// Whether the caller's variables have any credentials.
    pub(crate) has_credentials: bool,
}

impl ErrorContext {
    pub(crate) fn timed_out(&self) -> VaultError {
        VaultError::Unreachable { place: self.place.clone(), why: "it does not answer".to_owned() }
    }

    /// Explains an error of a store in our terms.
    pub(crate) fn explain(&self, error: &object_store::Error) -> VaultError {
        use object_store::Error;
        let place = self.place.clone();
        let text = chain(error);
        if ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"]
            .iter()
            .any(|word| text.contains(word))
        {
            return VaultError::NoContainer { place, container: self.container };
        }
        if find::<io::Error>(error).is_some_and(has_no_room) || text.contains("507 ") {
            return VaultError::NoSpace { place };
        }
        if matches!(error, Error::NotFound { .. }) {
            return VaultError::NotFound { place };
        }
        if matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) {
            return VaultError::Denied { place, why: reason(&text) };
        }
        let unreachable = find::<HttpError>(error).and_then(trouble);
        // Without credentials, the client library looks for those of the machine, and its
        // error says that there is no such service here.
        if !self.has_credentials && (unreachable.is_some() || is_about_credentials(&text)) {
            return VaultError::NoCredentials { place, hint: self.hint };
        }
        match unreachable {
            Some(why) => VaultError::Unreachable { place, why: why.to_owned() },
            None => VaultError::Store { place, why: reason(&text) },
        }
    }
}

fn is_about_credentials(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["credential", "metadata", "token", "accesskey", "account"].iter().any(|w| text.contains(w))
}

fn trouble(error: &HttpError) -> Option<&'static str> {
    let is = |kind| error.kind() == kind;
    if is(HttpErrorKind::Connect) {
        Some(connecting(error))
    } else if is(HttpErrorKind::Timeout) {
        Some("it does not answer")
    } else if is(HttpErrorKind::Request) || is(HttpErrorKind::Interrupted) {
        Some("the connection broke")
    } else {
        None
    }
}

fn connecting(error: &HttpError) -> &'static str {
    let text = chain(error);
    if text.contains("dns error") || text.contains("lookup") {
        "there is no such host"
    } else if text.contains("refused") {
        "the connection was refused"
    } else if text.contains("certificate") {
        "its certificate is not trusted"
    } else {
        "no connection can be made"
    }
}

/// Returns the first cause of a type.
fn find<'e, E: std::error::Error + 'static>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e E> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        at = error.source();
    }
    None
}

/// Returns the text of an error with all of its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(error) = at {
        text.push_str(": ");
        text.push_str(&error.to_string());
        at = error.source();
    }
    text
}

/// Returns one line of a server's answer: the code and message, if it is the usual XML,
/// otherwise the beginning of the text.
fn reason(text: &str) -> String {
    let tag = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim())
    };
    let told = match (tag("Code"), tag("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => text.to_owned(),
    };
    let line = told.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> ErrorContext {
        ErrorContext {
            place: "s3://bucket/x".to_owned(),
            container: "bucket",
            hint: "set something",
            has_credentials: true,
        }
    }

    #[test]
    fn no_room_is_told_wherever_it_is_missing() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(VaultError::io("write", Path::new("/x"))(full()).code(), "no_space");
        let error = object_store::Error::Generic { store: "x", source: Box::new(full()) };
        assert_eq!(told().explain(&error).code(), "no_space");
    }

    #[test]
    fn what_a_server_says_becomes_one_short_line() {
        let xml = "<Error><Code>SlowDown</Code><Message>Please\n  wait</Message></Error>";
        assert_eq!(reason(xml), "SlowDown: Please wait");
        assert_eq!(reason(&"x\n".repeat(1000)).chars().count(), 300);
    }
}
