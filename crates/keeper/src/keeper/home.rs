//! What a session was started with, and where it has its files.

use crate::absence::Watch;
use crate::confined::Confined;
use crate::dumps::Dumps;
use crate::runs::ticks;
use crate::scratch::{Openness, Scratch};
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
    /// What it is confined in, if it is.
    pub(super) confined: Option<Rc<Confined>>,
    /// Tells when that directory is gone; none where the system cannot.
    pub(super) watch: Option<Watch>,
    /// When its time began.
    pub(super) clock: Instant,
    /// Last, so that it is released last.
    pub(super) _lock: Lock,
}

/// Whether a session's directory is somewhere else than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Yes,
    No,
}

impl Home {
    /// Where the user keeps what belongs to no workspace.
    pub(super) fn user(&self) -> UserState {
        UserState::at(self.boot.user_state.clone())
    }

    /// Makes the session known to all of the user's programs. Whoever cannot be
    /// found elsewhere is still found in its sessions directory.
    pub(super) fn register(&self) {
        let way = self.watch.as_ref().map(Watch::way);
        let _ = self.user().register(&self.boot.session, self.directory.path(), way.as_deref());
    }

    /// Looks whether the directory was moved, and uses it where it is.
    pub(super) fn follow_directory(&mut self) -> Moved {
        let watch = self.watch.as_ref();
        let Some(now) = watch.and_then(|watch| watch.moved_from(self.directory.path())) else {
            return Moved::No;
        };
        self.directory = Directory::at(now);
        self.register();
        Moved::Yes
    }

    /// Where a path that a kernel knows is for this process. Only for paths that
    /// nobody inside can change.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        match &self.confined {
            Some(confined) => confined.sandbox().outside(path),
            None => path.to_owned(),
        }
    }

    /// Whether the pipes of kernels are closed to the programs beside them.
    pub(super) fn openness(&self) -> Openness {
        match self.confined {
            Some(_) => Openness::Closed,
            None => Openness::Open,
        }
    }

    /// Files with the states of kernels.
    pub(super) fn dumps(&self) -> Dumps {
        Dumps::of(self.directory.clone(), self.confined.clone())
    }

    /// Where kernels begin.
    pub(super) fn work_dir(&self) -> &Path {
        match &self.confined {
            Some(confined) => confined.work_dir(),
            None if self.boot.work_dir.is_dir() => &self.boot.work_dir,
            None => Path::new("/"),
        }
    }

    /// The files of the workspace, as kernels have them: with the session's layer,
    /// and without what it does not see. In a sandbox each directory below has to
    /// be opened from the one above, without following links.
    pub(super) fn files(&self) -> PathBuf {
        match &self.confined {
            Some(confined) => confined.sandbox().outside(confined.work_dir()),
            None => self.boot.work_dir.clone(),
        }
    }

    /// Whether a directory is there for kernels.
    pub(super) fn has_directory(&self, path: &Path) -> bool {
        match &self.confined {
            Some(confined) => confined.sandbox().has_directory(path),
            None => path.is_dir(),
        }
    }

    /// A process by the number that it knows itself by.
    pub(super) fn process(&self, number: Pid) -> Option<Pid> {
        match &self.confined {
            Some(confined) => confined.process(number),
            None => Some(number),
        }
    }

    /// The session's time.
    pub(super) fn now(&self) -> Tick {
        ticks(self.clock)
    }
}
