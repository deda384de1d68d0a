//! What the sessions of a directory are doing: runs, CPU and memory.
//!
//! Nothing here changes a session, and no keeper is waited for longer than a
//! moment: one that does not answer is told as that.

mod processes;
mod row;
mod sample;

pub use processes::Usage;
pub use row::{Row, Running, State};
pub use sample::{Observation, Sampler};

use std::time::Duration;

/// The shortest time over which CPU is worth telling: the system counts it in
/// hundredths of a second.
pub const FIRST: Duration = Duration::from_millis(250);
