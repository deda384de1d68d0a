//! `network.log`: connections that a sandbox refused, one JSON object per line.

use crate::atomic::PRIVATE_FILE;
use crate::directory::Directory;
use rustix::fs::OFlags;
use serde::Serialize;
use sessile_protocol::RunNo;
use std::fs::File;
use std::io::{self, Write};

/// A refused connection: program, target and reason.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalEntry<'a> {
    pub at: String,
    /// The run that it happened in, if known.
    pub run: Option<RunNo>,
    pub program: Option<&'a str>,
    pub target: &'a str,
    pub reason: &'a str,
    /// Number of refusals before it that were not logged, because there were too many at once.
    #[serde(skip_serializing_if = "is_none")]
    pub untold: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A log of this size is renamed, and a new one begins.
const LONGEST: u64 = 1 << 20;

impl Directory {
    /// Adds a line to the log.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn log_refusal(&self, entry: &RefusalEntry<'_>) -> io::Result<()> {
        let path = self.path().join("network.log");
        if path.metadata().is_ok_and(|log| log.len() >= LONGEST) {
            std::fs::rename(&path, self.path().join("network.log.1"))?;
        }
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(&path, flags, PRIVATE_FILE)?);
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}
