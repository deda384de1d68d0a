//! Reads information about processes from /proc.
//!
//! [`Process`] reads, and each file's format has a module with a pure parser. For a process
//! that has ended, or that we may not inspect, the result is `None` or empty: every caller
//! looks at processes that may end at any moment.
//!
//! Nothing here sends signals, waits or keeps state, except for descriptors of processes
//! that are about to become non-dumpable ([`ProcessAccess`]).

mod call;
mod closed;
mod descriptor;
mod limits;
mod memory;
mod process;
mod scheduled;
mod signals;
mod socket;
mod stat;

pub use call::Call;
pub use closed::ProcessAccess;
pub use descriptor::{Access, Descriptor, Watched};
pub use limits::Limit;
pub use memory::Memory;
pub use process::{Environment, Process, descriptor_count};
pub use scheduled::{Scheduled, busy_time};
pub use signals::{SignalSet, Signals};
pub use socket::{Socket, SocketState, Transport};
pub use stat::Stat;

use std::time::Duration;

/// The unit of CPU times and of a process's start: a hundredth of a second on every Linux machine.
pub const TICK: Duration = Duration::from_millis(10);

/// Returns the memory of the machine that is available, in kilobytes.
#[must_use]
pub fn available_memory() -> Option<u64> {
    memory::kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Returns the current time in ticks after boot, the unit of [`Stat::started`].
#[must_use]
pub fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    seconds * 100 + nanos / 10_000_000
}
