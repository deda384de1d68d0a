//! Turns of warm round trips, of ours and of what they are compared with.

use crate::stats::Table;
use crate::timed;
use std::time::{Duration, Instant};

/// Duration of each turn of warm round trips, of ours and of bare loops.
///
/// The system places the processes of a loop by how busy they have been: two that were
/// mostly idle share a core, where a switch takes a microsecond, and busy ones are spread
/// over cores, where a wake-up takes twenty. So loops are comparable only when all of them
/// have run long enough to be placed alike.
const STEADY: Duration = Duration::from_secs(1);

/// Calls in a row after a pause, like those of an agent.
const BURST: u32 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Steady,
    Burst,
}

impl Turn {
    /// Repeats a call for the duration of the turn.
    pub(crate) fn take(
        self,
        table: &mut Table,
        name: &str,
        mut call: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut calls = 0;
        while match self {
            Self::Steady => start.elapsed() < STEADY,
            Self::Burst => calls < BURST,
        } {
            table.add(name, timed(&mut call)?);
            calls += 1;
        }
        Ok(())
    }
}
