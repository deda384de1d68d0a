//! What a session was started with, and where it has its files.

use crate::absence::Watch;
use crate::runs::ticks;
use crate::scratch::Scratch;
use sessile_protocol::Boot;
use sessile_session::Tick;
use sessile_store::{Directory, Lock, UserState};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Instant;

pub(super) struct Home {
    pub(super) boot: Boot,
    /// The environment that kernels start with.
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) directory: Directory,
    pub(super) scratch: Scratch,
    /// Tells when that directory is gone; none where the system cannot.
    pub(super) watch: Option<Watch>,
    /// When its time began.
    pub(super) clock: Instant,
    /// Last, so that it is released last.
    pub(super) _lock: Lock,
}

impl Home {
    /// Where the user keeps what belongs to no workspace.
    pub(super) fn user(&self) -> UserState {
        UserState::at(self.boot.user_state.clone())
    }

    /// Makes the session known to all of the user's programs. Whoever cannot be
    /// found elsewhere is still found in its sessions directory.
    pub(super) fn register(&self) {
        let _ = self.user().register(&self.boot.session, self.directory.path());
    }

    /// The session's time.
    pub(super) fn now(&self) -> Tick {
        ticks(self.clock)
    }
}
