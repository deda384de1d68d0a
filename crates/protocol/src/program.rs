//! A program that a session ends with.

use serde::{Deserialize, Serialize};

/// A process of this machine, told from later ones with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    pub pid: i32,
    /// In ticks after boot.
    pub started: u64,
}
