//! A session's boot parameters and the location of its files.

use crate::confined::Confined;
use crate::directory_watch::DirectoryWatch;
use crate::dumps::Dumps;
use crate::runs::ticks;
use crate::scratch::{PipeAccess, Scratch};
use rustix::process::Pid;
use sessile_protocol::Boot;
use sessile_session::Tick;
use sessile_store::{Directory, Lock, UserState};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

pub(super) struct Home {
    pub(super) boot: Boot,
    /// The environment that kernels start with.
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) directory: Directory,
    pub(super) scratch: Scratch,
    /// The sandbox of the session, if it has one.
    pub(super) confined: Option<Rc<Confined>>,
    /// Tells when the session's directory is gone; none if the system cannot.
    pub(super) watch: Option<DirectoryWatch>,
    /// When the place of the directory was last looked up.
    pub(super) followed: Tick,
    /// The start of the session's time.
    pub(super) clock: Instant,
    /// The last field, so that it is released last.
    pub(super) _lock: Lock,
}

/// How often a loop of runs looks whether the session's directory was moved.
const FOLLOW_EVERY: Tick = 100;

/// Whether a session's directory was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Yes,
    No,
}

impl Home {
    /// Returns where the user keeps what belongs to no workspace.
    pub(super) fn user(&self) -> UserState {
        UserState::at(self.boot.user_state.clone())
    }

    /// Registers the session for all of the user's programs. If this fails, it is still
    /// found in its sessions directory.
    pub(super) fn register(&self) {
        let way = self.watch.as_ref().map(DirectoryWatch::way);
        let _ = self.user().register(&self.boot.session, self.directory.path(), way.as_deref());
    }

    /// Whether a run is to look where the directory is. Runs write to files that are open;
    /// what is written by its path is written in idle time, which looks anyway, or is large
    /// output.
    pub(super) fn is_time_to_follow(&self) -> bool {
        self.now() >= self.followed + FOLLOW_EVERY
    }

    /// Checks whether the directory was moved, and uses the new path.
    pub(super) fn follow_directory(&mut self) -> Moved {
        self.followed = self.now();
        let watch = self.watch.as_ref();
        let Some(now) = watch.and_then(|watch| watch.moved_from(self.directory.path())) else {
            return Moved::No;
        };
        self.directory = Directory::at(now);
        self.register();
        Moved::Yes
    }

    /// Translates a path that a kernel knows to the path for this process. Only for paths
    /// that nobody inside the sandbox can change.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        match &self.confined {
            Some(confined) => confined.sandbox().outside(path),
            None => path.to_owned(),
        }
    }

    /// Whether the pipes of kernels are closed to other programs.
    pub(super) fn pipe_access(&self) -> PipeAccess {
        match self.confined {
            Some(_) => PipeAccess::Closed,
            None => PipeAccess::Open,
        }
    }

    /// Returns the files with the states of kernels.
    pub(super) fn dumps(&self) -> Dumps {
        Dumps::of(self.directory.clone(), self.confined.clone())
    }

    /// Returns the directory in which kernels start.
    pub(super) fn work_dir(&self) -> &Path {
        match &self.confined {
            Some(confined) => confined.work_dir(),
            None if self.boot.work_dir.is_dir() => &self.boot.work_dir,
            None => Path::new("/"),
        }
    }

    /// Returns the files of the workspace as kernels see them: with the session's layer,
    /// and without hidden files. In a sandbox, each directory below must be opened from
    /// the one above without following links.
    pub(super) fn files(&self) -> PathBuf {
        match &self.confined {
            Some(confined) => confined.sandbox().outside(confined.work_dir()),
            None => self.boot.work_dir.clone(),
        }
    }

    /// Returns what an error says where an interpreter cannot be started.
    pub(super) fn limits_hint(&self) -> &'static str {
        match self.confined {
            Some(_) => "; it may need higher limits (memory, processes, open files)",
            None => "",
        }
    }

    /// Whether root inside a sandbox has changed one of the system's directories.
    pub(super) fn has_changed_system(&self) -> bool {
        self.confined.as_ref().is_some_and(|confined| confined.has_changed_system())
    }

    /// Whether a directory exists for kernels.
    pub(super) fn has_directory(&self, path: &Path) -> bool {
        match &self.confined {
            Some(confined) => confined.sandbox().has_directory(path),
            None => path.is_dir(),
        }
    }

    /// Returns a process by the pid that it knows itself by.
    pub(super) fn process(&self, number: Pid) -> Option<Pid> {
        match &self.confined {
            Some(confined) => confined.process(number),
            None => Some(number),
        }
    }

    /// Returns the session's time.
    pub(super) fn now(&self) -> Tick {
        ticks(self.clock)
    }
}
