//! A session that has ended: why, when, and how to continue. All of this advice comes from
//! here; each interface has its own words for it.

use sessile_protocol::{Language, SessionId, format_duration};
use sessile_store::{Directory, Metadata};
use std::fmt;
use std::time::Duration;

/// An ended session. It is displayed with the advice for the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSession {
    id: SessionId,
    /// What happened to it, as the end of a sentence.
    fate: String,
    next: Next,
}

/// How to continue. Every option named here works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It lives on another machine, which got it from this store.
    There { store: Option<String> },
    /// A new session can start with the states of these kernels.
    From { languages: Vec<Language> },
    /// A new session can be made from its last save in a store.
    Restore { store: String },
    /// Nothing of it is left to continue from.
    Anew,
}

impl EndedSession {
    #[must_use]
    pub fn of(directory: &Directory, metadata: &Metadata) -> Self {
        Self {
            id: metadata.session_id.clone(),
            fate: fate(metadata),
            next: Next::after(directory, metadata),
        }
    }

    #[must_use]
    pub fn next(&self) -> &Next {
        &self.next
    }

    /// Returns the advice for clients of a server.
    #[must_use]
    pub fn advice_for_callers(&self) -> String {
        match &self.next {
            Next::There { .. } => "use it there".to_owned(),
            Next::From { languages } => {
                let (id, knew) = (&self.id, knew(languages));
                format!("start a session with \"from\": \"{id}\" to begin with what {knew}")
            }
            Next::Restore { .. } | Next::Anew => "start a new session".to_owned(),
        }
    }

    /// Returns what happened, without advice.
    #[must_use]
    pub fn what_happened(&self) -> String {
        format!("Session {} {}", self.id, self.fate)
    }
}

impl fmt::Display for EndedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; ", self.what_happened())?;
        let id = &self.id;
        match &self.next {
            Next::There { store: Some(url) } => {
                write!(f, "use it there, or set SESSILE_STORE={url} to have it go on here")
            }
            Next::There { store: None } => write!(f, "use it there"),
            Next::From { languages } => write!(
                f,
                "`sessile start --from {id}` starts a new one with what {}",
                knew(languages)
            ),
            Next::Restore { store } => {
                let url = store.trim_end_matches('/');
                write!(f, "`sessile restore {url}/{id} --trust` makes a new one of its last save")
            }
            Next::Anew => write!(f, "start a new one"),
        }
    }
}

impl Next {
    fn after(directory: &Directory, metadata: &Metadata) -> Self {
        let store = metadata.durable.as_ref().and_then(|durable| durable.store.as_ref());
        if metadata.moved_to().is_some() {
            return Self::There { store: store.map(|store| store.url.clone()) };
        }
        let languages: Vec<Language> = directory.left_kernels().into_keys().collect();
        if !languages.is_empty() {
            return Self::From { languages };
        }
        match store {
            Some(store) if store.state.as_of_run.is_some() => {
                Self::Restore { store: store.url.clone() }
            }
            Some(_) | None => Self::Anew,
        }
    }
}

fn fate(metadata: &Metadata) -> String {
    let when = metadata.ended_at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    if let Some(host) = metadata.moved_to() {
        return format!("now lives on {host}; it has ended here{when}");
    }
    match metadata.ended_by.as_deref() {
        Some("idle timeout") => {
            let limit = format_duration(Duration::from_millis(metadata.idle_timeout_ms));
            format!("has ended, because it was idle for {limit},{when}")
        }
        Some("end of its program") => format!("has ended with its program{when}"),
        Some("request") => format!("was ended by request{when}"),
        Some(other) => format!("was ended by {other}{when}"),
        None => format!("has ended{when}"),
    }
}

fn knew(languages: &[Language]) -> String {
    let names: Vec<&str> = languages.iter().map(|language| language.as_str()).collect();
    match names.as_slice() {
        [] => "it knew".to_owned(),
        [one] => format!("its {one} knew"),
        [first @ .., last] => format!("its {} and {last} knew", first.join(", ")),
    }
}
