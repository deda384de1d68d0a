//! Ids of threads, tasks and calls.

use serde::{Deserialize, Serialize};
use std::fmt;

/// `thread_` and hex digits. The driver makes it: randomness is I/O.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = String, example = "thread_1f8a0c2b3d4e5f6071829304"))]
pub struct ThreadId(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a thread's id: thread_ and 24 hex digits")]
pub struct NotAThreadId(String);

const PREFIX: &str = "thread_";

impl ThreadId {
    #[must_use]
    pub fn of(bytes: [u8; 12]) -> Self {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{PREFIX}{hex}"))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key of a call, which is the same however often the call is performed.
    /// `reply` is the number of the entry with the call.
    #[must_use]
    pub fn key_of(&self, reply: u64, index: usize) -> String {
        format!("{self}-{reply}-{index}")
    }
}

impl TryFrom<String> for ThreadId {
    type Error = NotAThreadId;

    fn try_from(text: String) -> Result<Self, NotAThreadId> {
        let hex = text.strip_prefix(PREFIX).unwrap_or_default();
        let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if hex.len() == 24 && hex.bytes().all(is_hex) {
            Ok(Self(text))
        } else {
            Err(NotAThreadId(text))
        }
    }
}

impl From<ThreadId> for String {
    fn from(id: ThreadId) -> Self {
        id.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of a task in its thread: 1, 2, 3, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskNo(pub u64);

impl fmt::Display for TaskNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
