//! The directory of all sessions.

use super::keeper::{ANSWER_PATIENCE, LivenessProbe};
use super::{Directory, Result, StoreError, make_private_dir, marks};
use crate::metadata::{Metadata, SessionStatus};
use crate::user_state::UserState;
use sessile_protocol::SessionId;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The directory that holds session directories: `.sessions`.
#[derive(Clone, Debug)]
pub struct Sessions {
    root: PathBuf,
    user: UserState,
}

/// The range of sessions to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The sessions of the sessions directory, ended ones included.
    Directory,
    /// These, and all live sessions of the user elsewhere.
    User,
}

/// Returns a random id that no other session has.
///
/// # Errors
/// When the system has no random numbers.
pub fn new_session_id() -> io::Result<SessionId> {
    let mut bytes = [0; 12];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(SessionId::from_random(bytes))
}

impl Sessions {
    #[must_use]
    pub fn at(root: PathBuf, user: UserState) -> Self {
        Self { root, user }
    }

    /// Returns the user's state that belongs to no workspace.
    #[must_use]
    pub fn user(&self) -> &UserState {
        &self.user
    }

    /// Returns the directory with this directory's secrets. It is outside, because the
    /// sessions directory may be committed, copied or archived with the workspace. Both are
    /// made.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn private(&self) -> Result<PathBuf> {
        self.make()?;
        self.user.private_of(&self.root)
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the directory itself, if it does not exist. An existing one gets missing
    /// marks: see `marks`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(&self) -> Result<()> {
        if self.root.is_dir() {
            marks::complete(&self.root);
            return Ok(());
        }
        make_private_dir(&self.root)?;
        marks::mark(&self.root)
    }

    /// Makes a new session's directory.
    ///
    /// # Errors
    /// When the directories cannot be made.
    pub fn create(&self, id: &SessionId) -> Result<Directory> {
        self.make()?;
        let root = std::fs::canonicalize(&self.root).map_err(StoreError::io("open", &self.root))?;
        let directory = Directory { path: root.join(id.as_str()) };
        make_private_dir(&directory.path)?;
        make_private_dir(&directory.runs())?;
        Ok(directory)
    }

    /// Returns a private directory beside the sessions'.
    pub(crate) fn subdirectory(&self, name: &str) -> Result<PathBuf> {
        // A name can be reserved before there is a session.
        self.make()?;
        let path = self.root.join(name);
        make_private_dir(&path)?;
        Ok(path)
    }

    /// Returns an existing session's directory.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, id: &SessionId) -> Result<Directory> {
        let missing = |_| StoreError::NotFound(id.to_string());
        let root = std::fs::canonicalize(&self.root).map_err(missing)?;
        let directory = Directory { path: root.join(id.as_str()) };
        // Without following links: a link in its place is not ours.
        let kind = std::fs::symlink_metadata(&directory.path).map_err(missing)?;
        if kind.is_dir() { Ok(directory) } else { Err(StoreError::NotFound(id.to_string())) }
    }

    /// Returns all sessions with readable metadata, newest first.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn list(&self) -> Result<Vec<(Directory, Metadata)>> {
        self.list_in(Scope::Directory)
    }

    /// Returns all sessions in this scope.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn list_in(&self, scope: Scope) -> Result<Vec<(Directory, Metadata)>> {
        let mut sessions = self.recorded_in(scope)?;
        for some in sessions.chunks_mut(ASKED_AT_ONCE) {
            observe(some);
        }
        Ok(sessions)
    }

    /// Returns all sessions as their files describe them: no keeper is asked, and a dead
    /// keeper is not noticed.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn recorded(&self) -> Result<Vec<(Directory, Metadata)>> {
        self.recorded_in(Scope::Directory)
    }

    /// Returns the recorded sessions in this scope.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn recorded_in(&self, scope: Scope) -> Result<Vec<(Directory, Metadata)>> {
        let read = |id: SessionId| {
            let directory = self.find(&id).ok()?;
            let metadata = directory.metadata().ok()?;
            Some((directory, metadata))
        };
        let mut sessions: Vec<_> = self.ids()?.into_iter().filter_map(read).collect();
        if scope == Scope::User {
            let elsewhere = self.user.registered();
            let is_here = |id: &SessionId| sessions.iter().any(|(_, m)| m.session_id == *id);
            let others = elsewhere.into_iter().filter(|(_, m)| !is_here(&m.session_id));
            let others: Vec<_> = others.collect();
            sessions.extend(others);
        }
        sessions.sort_by(|(_, a), (_, b)| {
            (&b.created_at, &b.session_id).cmp(&(&a.created_at, &a.session_id))
        });
        Ok(sessions)
    }
}

impl Sessions {
    fn ids(&self) -> Result<Vec<SessionId>> {
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &self.root)(error)),
        };
        let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Ok(ids.collect())
    }

    /// Returns the directories that have not become sessions yet, or never will.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn being_made(&self) -> Result<Vec<SessionId>> {
        let is_made = |id: &SessionId| self.find(id).is_ok_and(|found| found.has_metadata());
        Ok(self.ids()?.into_iter().filter(|id| !is_made(id)).collect())
    }

    /// Returns the directories that will never become sessions: their maker died, or they
    /// stand for a session that is gone.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn unfinished(&self) -> Result<Vec<(SessionId, Directory)>> {
        let is_left = |directory: &Directory| {
            let changed = std::fs::metadata(directory.path()).and_then(|found| found.modified());
            let is_old = changed
                .is_ok_and(|at| at.elapsed().is_ok_and(|since| since > LONGER_THAN_ANY_MAKING));
            let stands_for = || directory.stands_for().is_some_and(|id| self.find(&id).is_ok());
            is_old && !directory.has_metadata() && !stands_for()
        };
        let found = self.ids()?.into_iter().filter_map(|id| {
            let directory = self.find(&id).ok()?;
            is_left(&directory).then_some((id, directory))
        });
        Ok(found.collect())
    }
}

/// A fork's directory has no metadata until its files are copied.
const LONGER_THAN_ANY_MAKING: Duration = Duration::from_secs(24 * 3600);

/// Number of keepers that are asked before waiting for the first answer. Each takes a
/// descriptor, of which a process may have 1024.
const ASKED_AT_ONCE: usize = 128;

/// Asks the keepers of these sessions, all at once, and marks the sessions whose keeper is
/// gone as lost.
fn observe(sessions: &mut [(Directory, Metadata)]) {
    let active = |metadata: &Metadata| metadata.status == SessionStatus::Active;
    let asked: Vec<Option<LivenessProbe>> =
        sessions.iter().map(|(d, m)| active(m).then(|| d.ask())).collect();
    let deadline = Instant::now() + ANSWER_PATIENCE;
    for ((directory, metadata), asked) in sessions.iter_mut().zip(asked) {
        if asked.is_some_and(|asked| !asked.is_alive(deadline))
            && let Ok(truth) = directory.mark_lost()
        {
            *metadata = truth;
        }
    }
}
