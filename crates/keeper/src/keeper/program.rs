//! The program with which a session ends, if it was started so.
//!
//! A local server watches the program too, but may have been killed before it. A program
//! that cannot be seen from here (for example in another container) is left to the
//! server. So is one that is already gone when a lost session is restored: whoever
//! restores it wants to use it.

use super::Keeper;
use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use sessile_proc::Process;
use sessile_protocol::{Answer, Program};
use sessile_session::{Close, Ending, Input};
use std::os::fd::OwnedFd;

/// The program, if there is one to watch.
#[derive(Debug, Default)]
pub(super) struct WatchedProgram(Option<OwnedFd>);

impl WatchedProgram {
    /// Watches this program instead of an earlier one.
    fn begin(&mut self, program: Program, reactor: &Reactor<Source>) {
        self.stop(reactor);
        let process = Pid::from_raw(program.pid).map(Process::new);
        let held = process.and_then(|process| process.held(program.started));
        self.0 = held.filter(|fd| reactor.add(fd, Source::Program, Interest::Read).is_ok());
    }

    /// Stops watching. The descriptor is removed before it is closed: a worker that was
    /// just forked has it too.
    fn stop(&mut self, reactor: &Reactor<Source>) {
        if let Some(fd) = self.0.take() {
            reactor.remove(fd);
        }
    }

    fn has_ended(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.0.as_ref().is_some_and(|fd| {
            matches!(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)), Ok(1))
        })
    }
}

impl Keeper {
    pub(super) fn end_with(&mut self, program: Program) -> Answer {
        self.program.begin(program, &self.reactor);
        Answer::EndsWith { is_watched: self.program.0.is_some() }
    }

    /// Watches the program again after the session was restored.
    pub(super) fn watch_program_again(&mut self) {
        if let Some(program) = self.home.directory.caller() {
            self.program.begin(program, &self.reactor);
        }
    }

    pub(super) fn program_ended(&mut self) {
        // The event may concern the program before this one.
        if self.program.has_ended() {
            self.program.stop(&self.reactor);
            self.step(Input::Close(Close::End(Ending::WithProgram)));
        }
    }

    /// Returns why a session ends on request: a server that notices the end of the
    /// program first sends the same request as any client.
    pub(super) fn ending_on_request(&self) -> Ending {
        if self.program.has_ended() { Ending::WithProgram } else { Ending::Asked }
    }
}
