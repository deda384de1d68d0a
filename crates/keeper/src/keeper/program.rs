//! The program that a session ends with, if it was started so.
//!
//! A local server watches it, too, but may have been killed before it. A program
//! that cannot be seen from here (in another container, say) is left to the server,
//! and so is one that is gone already when a lost session is brought back: whoever
//! does that wants to use it.

use super::Keeper;
use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use sessile_proc::Process;
use sessile_protocol::{Answer, Program};
use sessile_session::{Close, Ending, Input};
use std::os::fd::OwnedFd;

/// The program, if there is one to be watched.
#[derive(Debug, Default)]
pub(super) struct Watched(Option<OwnedFd>);

impl Watched {
    /// Watches this one, in the place of another.
    fn begin(&mut self, program: Program, reactor: &Reactor<Source>) {
        self.stop(reactor);
        let process = Pid::from_raw(program.pid).map(Process::new);
        let held = process.and_then(|process| process.held(program.started));
        self.0 = held.filter(|fd| reactor.add(fd, Source::Program, Interest::Read).is_ok());
    }

    /// Removed before it is closed: a worker that was just forked has it, too.
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

    /// A session that is brought back ends with the program that it was to end with.
    pub(super) fn watch_program_again(&mut self) {
        if let Some(program) = self.home.directory.caller() {
            self.program.begin(program, &self.reactor);
        }
    }

    pub(super) fn program_ended(&mut self) {
        // What was told may have been told of the one before.
        if self.program.has_ended() {
            self.program.stop(&self.reactor);
            self.step(Input::Close(Close::End(Ending::WithProgram)));
        }
    }

    /// Why a session ends that somebody ends: a server that has noticed the end of
    /// the program first asks for it as anybody would.
    pub(super) fn ending_on_request(&self) -> Ending {
        if self.program.has_ended() { Ending::WithProgram } else { Ending::Asked }
    }
}
