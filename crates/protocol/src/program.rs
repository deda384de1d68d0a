//! A program whose end also ends a session.

use serde::{Deserialize, Serialize};

/// A process of this machine; its start time distinguishes it from later ones with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    pub pid: i32,
    /// Start time in ticks after boot.
    pub started: u64,
}
