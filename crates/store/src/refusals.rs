//! `network.log`: who wanted to get out of a sandbox and was not let, one JSON
//! object a line.

use crate::atomic::PRIVATE_FILE;
use crate::directory::Directory;
use rustix::fs::OFlags;
use serde::Serialize;
use sessile_protocol::RunNo;
use std::fs::File;
use std::io::{self, Write};

/// Who, where, and why not.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalEntry<'a> {
    pub at: String,
    /// The run that it happened in, if that is known.
    pub run: Option<RunNo>,
    pub program: Option<&'a str>,
    pub target: &'a str,
    pub reason: &'a str,
    /// So many before it were not told of: there were too many at once.
    #[serde(skip_serializing_if = "is_none")]
    pub untold: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A log that is longer makes way for a new one, and is kept beside it.
const LONGEST: u64 = 1 << 20;

impl Directory {
    /// Adds a line to the log.
    ///
    /// # Errors
    /// What the disk says.
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
