//! The sessions of one keeper process: a session and its forks.
//!
//! A copy of a running interpreter is a child of this process, and only its parent learns
//! of its end; so a session and its forks have one keeper. They share nothing else: each
//! has its own socket, files, clients and limits, and waits for its own events.
//!
//! ```text
//!  one session:   its own epoll              (no cost for what most never need)
//!  several:       an epoll of their epolls   (whoever has news gets its turn)
//! ```
//!
//! Invariants: the process lives as long as one of the sessions does; the end of one does
//! not affect the others; the end of each child is reported to the session that it
//! belonged to.

use crate::guardian;
use crate::keeper::{ForkOutcome, Keeper, Position, RefusalScope};
use crate::processes::{self, Reaped};
use crate::reactor::{Interest, Key, Reactor};
use rustix::process::Signal;
use sessile_protocol::{Boot, Code, Failure};
use std::io;
use std::os::fd::OwnedFd;

pub(crate) struct Family {
    /// SIGCHLD, SIGTERM and SIGIO of the process; the first member watches it.
    signals: OwnedFd,
    /// The eldest first.
    members: Vec<Member>,
    last: MemberNo,
    /// Waits for all members, once there are several.
    all: Option<Reactor<MemberNo>>,
}

struct Member {
    session: Keeper,
    number: MemberNo,
    /// Whether the reactor of all watches it.
    is_watched: bool,
}

/// Identifies a member in the reactor of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemberNo(u64);

impl Key for MemberNo {
    fn to_bits(self) -> u64 {
        self.0
    }

    fn from_bits(bits: u64) -> Option<Self> {
        Some(Self(bits))
    }
}

impl Family {
    /// Becomes the keeper, in a separate process that is detached from the caller's.
    pub(crate) fn start(boot: Boot, origin: guardian::Origin) -> Result<Self, Failure> {
        let mut first = Keeper::start(boot, origin)?;
        let storage =
            |error: io::Error| Failure::because(Code::Storage, "the keeper cannot start", &error);
        let signals = guardian::signal_descriptor().map_err(storage)?;
        first.watch_signals(&signals).map_err(storage)?;
        let last = MemberNo(0);
        let first = Member { session: first, number: last, is_watched: false };
        Ok(Self { signals, members: vec![first], last, all: None })
    }

    /// Serves until the last session has ended.
    pub(crate) fn serve(&mut self) {
        if let Some(first) = self.members.first_mut() {
            first.session.open();
        }
        // A session that could not start has finished already.
        self.remove_ended();
        while !self.members.is_empty() {
            if self.take_turns().is_err() {
                break;
            }
            self.take_signals();
            self.members.iter_mut().for_each(|member| member.session.watch_sandbox());
            self.share_refusals();
            self.take_in();
            self.pass_on();
            self.announce();
            self.pass_on();
            self.remove_ended();
        }
    }

    /// Waits for events, and lets the members that have some handle them.
    fn take_turns(&mut self) -> io::Result<()> {
        let Some(all) = self.all.as_mut().filter(|_| self.members.len() > 1) else {
            let Some(only) = self.members.first_mut() else {
                return Ok(());
            };
            let patience = only.session.patience();
            return only.session.turn(patience);
        };
        let members = self.members.iter_mut();
        let patience = members.filter_map(|member| member.session.patience()).min();
        let awake = self.members.iter().filter_map(|member| member.session.poll_until()).max();
        let mut news = Vec::new();
        let lookout = all.wait(patience, awake, &mut news)?;
        for member in &mut self.members {
            member.session.note_core_use(lookout);
            if news.contains(&member.number) || member.session.patience() == Some(0) {
                member.session.turn(Some(0))?;
            }
        }
        Ok(())
    }

    fn take_signals(&mut self) {
        if !self.members.iter_mut().any(|member| member.session.was_signalled()) {
            return;
        }
        for signal in guardian::take_signals(&self.signals) {
            let members = self.members.iter_mut();
            if signal == Signal::TERM {
                members.for_each(|member| member.session.shut_down());
            } else if signal == Signal::IO {
                members.for_each(|member| member.session.look_for_directory());
            }
        }
        loop {
            let members = self.members.iter_mut();
            match processes::reap() {
                Reaped::Ended(pid, code) => {
                    members.for_each(|member| member.session.child_ended(pid, code));
                }
                Reaped::Stopped(pid) => members.for_each(|member| member.session.wake(pid)),
                Reaped::Other => {}
                Reaped::NoneEnded | Reaped::NoneLeft => break,
            }
        }
        let ends: Vec<_> = self.members.iter().flat_map(|m| m.session.take_ends()).collect();
        for (pid, code) in ends {
            self.members.iter_mut().for_each(|member| member.session.child_ended(pid, code));
        }
        self.members.iter_mut().for_each(|member| member.session.look_for_end());
    }

    /// Distributes refusals: a session and its forks share a sandbox, and one member may
    /// have received a refusal that concerns another.
    fn share_refusals(&mut self) {
        if self.members.iter().any(|member| member.session.has_refusals()) {
            for whose in [RefusalScope::Own, RefusalScope::Anybodys] {
                self.members.iter_mut().for_each(|member| member.session.take_refusals(whose));
            }
        }
    }

    /// Makes forks members.
    fn take_in(&mut self) {
        let new_forks: Vec<Keeper> =
            self.members.iter_mut().flat_map(|member| member.session.take_new_forks()).collect();
        if new_forks.is_empty() {
            return;
        }
        for mut session in new_forks {
            session.open();
            self.last.0 += 1;
            self.members.push(Member { session, number: self.last, is_watched: false });
        }
        self.tell_positions();
    }

    /// Reports copies that could not be made, and ends unwanted forks.
    fn pass_on(&mut self) {
        for at in 0..self.members.len() {
            let failed = self.members[at].session.take_failed_copies();
            let unwanted = self.members[at].session.take_unwanted();
            for member in &mut self.members {
                for (directory, error) in &failed {
                    member.session.not_copied(directory, error);
                }
                if unwanted.contains(member.session.id()) {
                    member.session.end_unwanted();
                }
            }
        }
    }

    /// Tells parents whether their forks have started.
    fn announce(&mut self) {
        let outcomes: Vec<ForkOutcome> = self
            .members
            .iter_mut()
            .filter_map(|member| member.session.take_fork_outcome())
            .collect();
        for outcome in outcomes {
            let is_parent = |member: &&mut Member| *member.session.id() == outcome.parent;
            if let Some(parent) = self.members.iter_mut().find(is_parent) {
                parent.session.fork_came_up(outcome);
            }
        }
    }

    /// Removes the members that have ended.
    fn remove_ended(&mut self) {
        let before = self.members.len();
        let all = self.all.as_ref();
        self.members.retain(|member| {
            let stays = !member.session.has_finished();
            if !stays && let Some(all) = all {
                all.remove(member.session.reactor());
            }
            stays
        });
        if self.members.len() != before {
            self.tell_positions();
        }
    }

    /// Tells each member whether there are others, and makes one watch the signals.
    fn tell_positions(&mut self) {
        let is_alone = self.members.len() == 1;
        if !is_alone && self.all.is_none() {
            self.all = Reactor::new().ok();
        }
        for (at, member) in self.members.iter_mut().enumerate() {
            let position = match (is_alone, at) {
                (true, _) => Position::Alone,
                (false, 0) => Position::Eldest,
                (false, _) => Position::Younger,
            };
            member.session.set_position(position);
            if at == 0 {
                let _ = member.session.watch_signals(&self.signals);
            }
            if let Some(all) = &mut self.all
                && !member.is_watched
            {
                let added = all.add(member.session.reactor(), member.number, Interest::Read);
                member.is_watched = added.is_ok();
            }
        }
    }
}
