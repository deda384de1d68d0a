//! Interactive runs that wait for input.
//!
//! A run waits for input when one of its processes is blocked in a read of the
//! run's stdin, and has read all that was given. No event tells of it: so, for
//! as long as somebody wants to know, the processes are looked at now and then.
//!
//! Of a kernel with an event loop the system cannot tell it. Then the driver
//! inside is asked whether it listens to the run's stdin, and to nothing else
//! that could make the run go on.
//!
//! It must never take a run for waiting that is not: its client would answer a
//! question that was not asked.

use super::live::Live;
use crate::runs::Run;
use crate::waits::{self, Awaited, WaitKind};
use sessile_protocol::RunNo;
use sessile_session::Tick;

/// When runs are looked at again; twice as long each time.
const LOOK_AFTER: Tick = 1;
const LOOK_AT_MOST_AFTER: Tick = 32;

/// How soon runs are looked at again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause(Tick);

impl Default for Pause {
    fn default() -> Self {
        Self(LOOK_AFTER)
    }
}

impl Pause {
    /// This one, and a longer one the next time.
    pub(super) fn next(&mut self) -> Tick {
        let pause = self.0;
        self.0 = (2 * pause).min(LOOK_AT_MOST_AFTER);
        pause
    }
}

impl Live {
    /// Whether the system tells that a run waits for input. Where it cannot
    /// tell, the kernel is asked.
    pub(super) fn waits_for_input(&mut self, number: RunNo, run: &mut Run) -> bool {
        let terminal = self.terminal.as_ref().filter(|terminal| terminal.run == number);
        // First of all: who is found in a read after that has found nothing,
        // because nobody but us could have given it something.
        let source = match terminal {
            Some(terminal) => terminal.awaited().map(Awaited::Terminal),
            None => run.stdin.as_ref().and_then(|stdin| stdin.awaited()).map(Awaited::Pipe),
        };
        let Some(source) = source else {
            return false;
        };
        let has_loop = self.kernel.has_event_loop();
        let by_itself = if has_loop { WaitKind::Read } else { WaitKind::Endless };
        let is_found = waits::waits_to_read(self.pid, source, by_itself)
            || self
                .foreground()
                .into_iter()
                .any(|pid| waits::waits_to_read(pid, source, WaitKind::Endless));
        if let Some(stdin) = &mut run.stdin
            && !is_found
            && has_loop
        {
            // A kernel that does not take the question is not heard of again.
            let asked = stdin.inquire().map(|question| self.kernel.ask(number, question));
            drop(asked);
        }
        is_found
    }
}
