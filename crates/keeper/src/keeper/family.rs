//! A session among the others of its process: which children are its own, and what it
//! hands to the family.

use super::{Keeper, MARKER};
use crate::labels::Label;
use crate::processes;
use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use rustix::process::Pid;
use sessile_protocol::{Failure, LeftBehind, SessionId};
use sessile_session::{Close, Ending, Input};
use std::io;
use std::os::fd::AsFd;

/// Position of a session among those of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Position {
    #[default]
    Alone,
    /// There are others, all of them younger.
    Eldest,
    Younger,
}

/// Links between a session and the others of its process.
#[derive(Default)]
pub(super) struct FamilyLinks {
    pub(super) position: Position,
    /// It watches the process's signals.
    pub(super) minds_signals: bool,
    pub(super) was_signalled: bool,
    /// The init process of the sandbox whose process ends it watches.
    minds_sandbox: Option<Pid>,
    /// Forks that the family is to take in, and forks that are to end again.
    pub(super) new_forks: Vec<Keeper>,
    pub(super) unwanted: Vec<SessionId>,
    /// Directories of copies that could not be made, of any member, with the reasons.
    pub(super) failed_copies: Vec<(String, String)>,
    /// Processes that have copied themselves from ours, with their directories.
    pub(super) copies: Vec<(Pid, String)>,
    /// For a fork: its parent, and whether the parent waits for it.
    pub(super) parent: Option<SessionId>,
    pub(super) is_expected: bool,
    pub(super) fork_outcome: Option<ForkOutcome>,
}

/// Whether a fork has started, or why not.
#[derive(Debug)]
pub(crate) struct ForkOutcome {
    pub(crate) parent: SessionId,
    pub(crate) child: SessionId,
    pub(crate) outcome: Result<Vec<LeftBehind>, Failure>,
}

impl FamilyLinks {
    /// Whether a process has copied itself from ours. It may not have reported yet, or
    /// may be about to end.
    pub(super) fn was_copied(&self, pid: Pid) -> bool {
        self.copies.iter().any(|(copy, _)| *copy == pid)
    }

    /// Whether a child of the process belongs to this session. A child without any mark
    /// belongs to the eldest.
    fn owns(&self, pid: Pid, session: &SessionId, is_worker: impl Fn(Pid) -> bool) -> bool {
        let Some(stat) = processes::stat(pid).filter(|stat| !stat.has_ended()) else {
            return false;
        };
        // A worker is a fork of this process and has no mark of its own.
        let of_keeper = processes::stat(rustix::process::getpid()).and_then(|keeper| keeper.leader);
        if stat.leader == of_keeper {
            return is_worker(pid);
        }
        if let Some(marked) = processes::variable(pid, MARKER) {
            return marked == session.as_str();
        }
        // The process has discarded its environment.
        let label = Label::of_process(pid);
        if label == Label::of_process(rustix::process::getpid()) {
            return self.position == Position::Eldest;
        }
        label == self.label(session)
    }

    /// Returns the label that distinguishes the processes of a fork from others of the
    /// family.
    fn label(&self, session: &SessionId) -> Option<Label> {
        self.parent.as_ref().map(|_| Label::of_session(session.as_str()))
    }
}

impl Keeper {
    pub(crate) fn id(&self) -> &SessionId {
        &self.home.boot.session
    }

    pub(crate) fn reactor(&self) -> &Reactor<Source> {
        &self.reactor
    }

    pub(crate) fn set_position(&mut self, position: Position) {
        self.family.position = position;
    }

    /// Makes this member watch the process's signals.
    pub(crate) fn watch_signals(&mut self, signals: impl AsFd) -> io::Result<()> {
        if !self.family.minds_signals {
            self.reactor.add(signals, Source::Signals, Interest::Read)?;
            self.family.minds_signals = true;
        }
        Ok(())
    }

    /// Makes this member watch for processes that end in its sandbox. A new sandbox has
    /// to be watched again.
    pub(crate) fn watch_sandbox(&mut self) {
        let Some(sandbox) = self.home.confined.as_ref().map(|confined| confined.sandbox()) else {
            return;
        };
        if self.family.minds_sandbox != Some(sandbox.init())
            && self.reactor.add(sandbox.ends(), Source::Sandbox, Interest::Read).is_ok()
        {
            self.family.minds_sandbox = Some(sandbox.init());
            if let Some(proxy) = sandbox.proxy() {
                let _ = self.reactor.add(proxy.notices(), Source::Refusals, Interest::Read);
            }
        }
    }

    /// Takes the orphaned processes that have ended in the sandbox.
    pub(crate) fn take_ends(&self) -> Vec<(Pid, i32)> {
        self.home.confined.as_ref().map(|confined| confined.take_ends()).unwrap_or_default()
    }

    /// Whether there were signals since the last call.
    pub(crate) fn was_signalled(&mut self) -> bool {
        std::mem::take(&mut self.family.was_signalled)
    }

    pub(crate) fn take_new_forks(&mut self) -> Vec<Self> {
        std::mem::take(&mut self.family.new_forks)
    }

    /// Takes the copies that could not be made: directory and reason.
    pub(crate) fn take_failed_copies(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.family.failed_copies)
    }

    /// Ends a fork that no client will ever know of.
    pub(crate) fn end_unwanted(&mut self) {
        self.step(Input::Close(Close::End(Ending::Asked)));
    }

    /// Takes the report whether this fork has started. It is there only once.
    pub(crate) fn take_fork_outcome(&mut self) -> Option<ForkOutcome> {
        self.family.fork_outcome.take()
    }

    /// Returns the children of this process that belong to the session: kernels, and
    /// processes that have lost their parents.
    pub(super) fn own_children(&self) -> Vec<Pid> {
        let mut children = processes::children(rustix::process::getpid());
        if let Some(confined) = &self.home.confined {
            // A process that loses its parent inside the sandbox goes to the first
            // process there.
            let sandbox = confined.sandbox();
            let init = sandbox.init();
            children.retain(|pid| *pid != init && !sandbox.is_served_by(*pid));
            children.extend(processes::children(init));
        }
        if self.family.position != Position::Alone {
            let is_worker =
                |pid: Pid| self.works_on_files(pid) || self.operations.saves.has_process(pid);
            let session = &self.home.boot.session;
            children.retain(|pid| {
                self.kernels.has_pid(*pid) || self.family.owns(*pid, session, is_worker)
            });
        }
        children
    }

    pub(super) fn own_descendants(&self) -> Vec<Pid> {
        let children = self.own_children();
        let below: Vec<Pid> = children.iter().copied().flat_map(processes::descendants).collect();
        [children, below].concat()
    }

    /// Returns the label that distinguishes the processes of a fork from others of the
    /// family.
    pub(super) fn label(&self) -> Option<Label> {
        self.family.label(&self.home.boot.session)
    }
}
