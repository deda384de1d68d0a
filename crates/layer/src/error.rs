//! Errors, in the caller's terms.

use rustix::io::Errno;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error("{0:?} is no path in the workspace: {1}")]
    BadPath(String, &'static str),
    #[error("the session has changed nothing at {0}")]
    Unchanged(String),
    #[error("nothing was applied, because the real directory has changed meanwhile: {}; \
             apply them with force, or name the paths to apply", conflicts.join(", "))]
    Conflict { conflicts: Vec<String> },
    #[error("{why}; of the changes before it, {done} were made")]
    Halted { why: Box<LayerError>, done: usize },
    #[error("{path} changed in the real directory a moment ago; it was left alone")]
    Raced { path: String },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

impl LayerError {
    pub(crate) fn of(errno: Errno, path: &[u8]) -> Self {
        Self::io(errno.into(), path)
    }

    pub(crate) fn io(source: io::Error, path: &[u8]) -> Self {
        Self::Io { path: crate::quoted(path), source }
    }
}
