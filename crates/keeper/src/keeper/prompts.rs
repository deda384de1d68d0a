//! Interactive runs that wait for input.
//!
//! A run waits for input when one of its processes is blocked in a read of the run's
//! stdin and has read all that was given. No event reports this, so the processes are
//! checked now and then, for as long as a client wants to know.
//!
//! For a kernel with an event loop the system cannot tell. Then the driver inside is
//! asked whether it listens only to the run's stdin, and to nothing else that could make
//! the run go on.
//!
//! A run that does not wait must never be reported as waiting: its client would answer a
//! question that was not asked.

use super::live::Live;
use crate::runs::Run;
use crate::waits::{self, InputSource, WaitKind};
use sessile_protocol::RunNo;
use sessile_session::Tick;

/// Pause before the next check; doubled each time.
const LOOK_AFTER: Tick = 1;
const LOOK_AT_MOST_AFTER: Tick = 32;

/// The pause before the next check of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause(Tick);

impl Default for Pause {
    fn default() -> Self {
        Self(LOOK_AFTER)
    }
}

impl Pause {
    /// Returns this pause, and doubles the next one.
    pub(super) fn next(&mut self) -> Tick {
        let pause = self.0;
        self.0 = (2 * pause).min(LOOK_AT_MOST_AFTER);
        pause
    }
}

impl Live {
    /// Whether the system shows that a run waits for input. If the system cannot show it,
    /// the kernel is asked.
    pub(super) fn waits_for_input(&mut self, number: RunNo, run: &mut Run) -> bool {
        let terminal = self.terminal.as_ref().filter(|terminal| terminal.run == number);
        // This check comes first: a process that is found in a read afterwards has found
        // nothing to read, because only the keeper could have given it input.
        let source = match terminal {
            Some(terminal) => terminal.awaited().map(InputSource::Terminal),
            None => run.stdin.as_ref().and_then(|stdin| stdin.awaited()).map(InputSource::Pipe),
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
            // A kernel that does not take the question gives no answer.
            let asked = stdin.inquire().map(|question| self.kernel.ask(number, question));
            drop(asked);
        }
        is_found
    }
}
