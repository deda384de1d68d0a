//! Activity of the sessions of a directory: runs, CPU and memory.
//!
//! Nothing here changes a session or waits for a keeper longer than a moment: one that does
//! not answer is shown as silent.

mod processes;
mod row;
mod sample;

pub use processes::Usage;
pub use row::{Row, Running, State};
pub use sample::{Observation, Sampler};

use std::time::Duration;

/// The shortest interval for CPU usage: the system counts it in hundredths of a second.
pub const FIRST: Duration = Duration::from_millis(250);
