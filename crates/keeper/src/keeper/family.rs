//! A session among its kin: which processes are its own, and who it was born of.

use super::{Keeper, MARKER};
use crate::labels::Label;
use crate::processes::{self, Stat};
use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use rustix::process::Pid;
use sessile_protocol::{Failure, LeftBehind, SessionId};
use sessile_session::{Close, Input};
use std::io;
use std::os::fd::AsFd;

/// Who else is in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kin {
    None,
    /// Others, of whom this is the eldest.
    Younger,
    Elder,
}

/// A fork has come up, or has not.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) parent: SessionId,
    pub(crate) child: SessionId,
    pub(crate) outcome: Result<Vec<LeftBehind>, Failure>,
}

impl Keeper {
    pub(crate) fn id(&self) -> &SessionId {
        &self.boot.session
    }

    pub(crate) fn reactor(&self) -> &Reactor<Source> {
        &self.reactor
    }

    pub(crate) fn set_kin(&mut self, kin: Kin) {
        self.kin = kin;
    }

    /// From now on this member hears of the process's signals.
    pub(crate) fn watch_signals(&mut self, signals: impl AsFd) -> io::Result<()> {
        if !self.minds_signals {
            self.reactor.add(signals, Source::Signals, Interest::Read)?;
            self.minds_signals = true;
        }
        Ok(())
    }

    /// Whether there were some since the last time.
    pub(crate) fn was_signalled(&mut self) -> bool {
        std::mem::take(&mut self.was_signalled)
    }

    pub(crate) fn take_newborn(&mut self) -> Vec<Self> {
        std::mem::take(&mut self.newborn)
    }

    /// Copies that could not be made: directory and reason.
    pub(crate) fn take_failed_copies(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.failed_copies)
    }

    /// A fork that nobody will ever know of.
    pub(crate) fn end_unwanted(&mut self) {
        self.step(Input::Close(Close::End));
    }

    /// That this fork has come up, or has not: once.
    pub(crate) fn take_birth(&mut self) -> Option<Birth> {
        self.birth.take()
    }

    /// The children of this process that are the session's: kernels, and what
    /// has lost its parent.
    pub(super) fn own_children(&self) -> Vec<Pid> {
        let mut children = processes::children(rustix::process::getpid());
        if self.kin != Kin::None {
            children.retain(|pid| self.is_own(*pid));
        }
        children
    }

    pub(super) fn own_descendants(&self) -> Vec<Pid> {
        let children = self.own_children();
        let below: Vec<Pid> = children.iter().copied().flat_map(processes::descendants).collect();
        [children, below].concat()
    }

    /// What says nothing about itself is the eldest's.
    fn is_own(&self, pid: Pid) -> bool {
        if self.kernels.values().any(|live| live.pid == pid) {
            return true;
        }
        let Some(stat) = Stat::of(pid).filter(|stat| !stat.has_ended()) else {
            return false;
        };
        // A worker is a fork of this process, and says nothing of itself.
        let of_keeper = Stat::of(rustix::process::getpid()).and_then(|keeper| keeper.leader);
        if stat.leader == of_keeper {
            return self.works_on_files(pid) || self.works_on_save(pid);
        }
        if let Some(session) = processes::variable(pid, MARKER) {
            return session == self.boot.session.as_str();
        }
        // It has thrown its environment away.
        let label = Label::of_process(pid);
        if label == Label::of_process(rustix::process::getpid()) {
            return self.kin == Kin::Younger;
        }
        label == self.label()
    }

    /// What tells the processes of a fork from others of the family.
    pub(super) fn label(&self) -> Option<Label> {
        self.parent.as_ref().map(|_| Label::of_session(self.boot.session.as_str()))
    }
}
