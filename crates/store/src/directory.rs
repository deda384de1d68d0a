//! One session's directory.

use crate::atomic::{self, PRIVATE_DIR};
use crate::history::History;
use crate::metadata::{Metadata, SavedKernel, SavedState};
use sessile_protocol::{Language, RunNo};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

mod groups;
mod keeper;
mod marks;
mod naming;
mod sessions;

pub use keeper::{Liveness, Lock};
pub use naming::{LAST, check_name, choose};
pub use sessions::{Scope, Sessions, new_session_id};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("Session {0} not found")]
    NotFound(String),
    #[error(
        "Session {id} is in another sessions directory; give --sessions-dir {}",
        root.display()
    )]
    Elsewhere { id: String, root: PathBuf },
    #[error("Session {0} not found; of an id give at least 4 digits")]
    TooShort(String),
    #[error("Session @last not found: there is no session yet; start one")]
    NoLast,
    #[error("{text:?} may be any of {candidates}; give more of the id")]
    Ambiguous { text: String, candidates: String },
    #[error("a live session is called {name:?} already: {id}; choose another name, or end it")]
    NameTaken { name: String, id: String },
    #[error(
        "{0:?} cannot be a session's name; use 1 to 100 letters, digits, spaces and -_.:/, and do \
         not begin with sess_"
    )]
    BadName(String),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not readable as JSON ({source}); the session's files were changed or damaged", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Returns the directory at a path that a trusted caller names.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// Returns the folder of the files with kernel states.
    #[must_use]
    pub fn kernels(&self) -> PathBuf {
        self.path.join("kernels")
    }

    /// Makes that folder, if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_kernels(&self) -> Result<PathBuf> {
        let path = self.kernels();
        make_private_dir(&path)?;
        Ok(path)
    }

    /// Returns the path of a kernel's state file, if the name is plain and cannot lead out
    /// of the folder.
    #[must_use]
    pub fn dump(&self, name: &str) -> Option<PathBuf> {
        let is_plain = Path::new(name).file_name() == Some(OsStr::new(name));
        is_plain.then(|| self.kernels().join(name))
    }

    /// Removes the files in that folder that the last captured state does not name.
    pub fn sweep_kernels(&self) {
        self.sweep(|_| true);
    }

    /// Removes only the files that saves of a durable session have left. The keeper may
    /// still need other files, which no state on disk names.
    pub fn sweep_kept_dumps(&self) {
        self.sweep(|name| name.to_str().is_some_and(|name| name.starts_with(KEPT_DUMP)));
    }

    /// Returns the path of a kernel's state that a durable session's save keeps.
    #[must_use]
    pub fn kept_dump(&self, language: Language, as_of: RunNo) -> PathBuf {
        self.kernels().join(format!("{KEPT_DUMP}{as_of}-{language}"))
    }

    fn sweep(&self, is_swept: impl Fn(&OsStr) -> bool) {
        let Ok(entries) = std::fs::read_dir(self.kernels()) else {
            return;
        };
        let states = [self.state(), self.kept_state()];
        let is_named = |name: &OsStr| {
            let kernels = states.iter().flatten().flat_map(|state| state.kernels.values());
            kernels.into_iter().any(|k| k.dump.as_deref().map(OsStr::new) == Some(name))
        };
        let unwanted = |name: &OsStr| is_swept(name) && !is_named(name);
        for entry in entries.flatten().filter(|entry| unwanted(&entry.file_name())) {
            let path = entry.path();
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }

    #[must_use]
    pub fn history(&self) -> History {
        History::at(self.path.join("history.log"))
    }

    /// # Errors
    /// When there is none, or it is not in our format.
    pub fn metadata(&self) -> Result<Metadata> {
        self.read_json(METADATA)
    }

    /// Returns whether this is a session. A session that is being made has no metadata yet.
    #[must_use]
    pub fn has_metadata(&self) -> bool {
        self.path.join(METADATA).symlink_metadata().is_ok()
    }

    /// # Errors
    /// When it cannot be written.
    pub fn write_metadata(&self, metadata: &Metadata) -> Result<()> {
        self.write_json(METADATA, metadata)
    }

    /// Returns the last captured state that can be read, or else the state of the last save.
    #[must_use]
    pub fn state(&self) -> Option<SavedState> {
        self.read_json("state.json").ok().or_else(|| self.kept_state())
    }

    /// Returns the state of the last save of a durable session.
    fn kept_state(&self) -> Option<SavedState> {
        self.read_json(KEPT).ok()
    }

    /// Writes the state of a save durably: when this returns, it survives a power cut. It blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_state(&self, state: &SavedState) -> Result<()> {
        let path = self.path.join(KEPT);
        let bytes = serde_json::to_vec_pretty(state)
            .map_err(|source| StoreError::Damaged { path: path.clone(), source })?;
        atomic::replace_synced(&path, &bytes).map_err(StoreError::io("write", &path))
    }

    /// Returns the kernels that can be restored from the files on disk.
    #[must_use]
    pub fn left_kernels(&self) -> BTreeMap<Language, SavedKernel> {
        let mut kernels = self.state().map(|state| state.kernels).unwrap_or_default();
        let is_there = |name: &String| {
            let found = self.dump(name).and_then(|path| path.symlink_metadata().ok());
            found.is_some_and(|found| found.is_file())
        };
        kernels.retain(|language, saved| match language.is_shell() {
            true => saved.restore.is_some(),
            false => saved.dump.as_ref().is_some_and(is_there),
        });
        kernels
    }

    /// Copies files with kernel states from another session.
    ///
    /// # Errors
    /// When one cannot be copied.
    pub fn copy_dumps(&self, from: &Self, names: &[String]) -> Result<()> {
        for name in names {
            let (Some(source), Some(copy)) = (from.dump(name), self.dump(name)) else { continue };
            self.make_kernels()?;
            std::fs::copy(&source, &copy).map_err(StoreError::io("write", &copy))?;
        }
        Ok(())
    }

    /// Returns the path for a save that is to be uploaded; makes the folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn outgoing_save(&self) -> Result<PathBuf> {
        let folder = self.path.join("saves");
        make_private_dir(&folder)?;
        Ok(folder.join("outgoing.sessile"))
    }

    /// # Errors
    /// When it cannot be written.
    pub fn write_state(&self, state: &SavedState) -> Result<()> {
        self.write_json("state.json", state)
    }

    /// Removes the state, the history, the output of runs and their keys. Run numbers continue.
    pub fn forget_runs(&self) {
        let _ = std::fs::remove_file(self.path.join("state.json"));
        let _ = std::fs::remove_file(self.path.join(KEPT));
        self.sweep_kernels();
        self.history().clear();
        self.keys().clear();
        for entry in std::fs::read_dir(self.runs()).into_iter().flatten().flatten() {
            if entry.path() != self.accepted_path() {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Removes the directory and its contents. It is renamed first: a process that starts a
    /// session with the same id meanwhile (`starting`) makes a new directory, and never
    /// puts a file into the one that is being removed.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> Result<()> {
        let failed = || StoreError::io("remove", &self.path);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let aside = self.path.with_file_name(format!(".{name}.removed"));
        // Left by a process that was killed during the removal.
        if aside.exists() {
            sessile_subids::remove_dir_all(&aside).map_err(failed())?;
        }
        std::fs::rename(&self.path, &aside).map_err(failed())?;
        sessile_subids::remove_dir_all(&aside).map_err(failed())
    }

    /// # Errors
    /// When there is none, or it is not in our format.
    pub fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.path.join(name);
        let bytes = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
        serde_json::from_slice(&bytes).map_err(|source| StoreError::Damaged { path, source })
    }

    /// # Errors
    /// When it cannot be written.
    pub fn write_json<T: serde::Serialize>(&self, name: &str, value: &T) -> Result<()> {
        let path = self.path.join(name);
        let mut bytes = serde_json::to_vec_pretty(value)
            .map_err(|source| StoreError::Damaged { path: path.clone(), source })?;
        bytes.push(b'\n');
        atomic::update(&path, &bytes).map_err(StoreError::io("write", &path))
    }
}

const METADATA: &str = "metadata.json";
const KEPT: &str = "saved.json";
const KEPT_DUMP: &str = "kept-";

/// Makes a directory that only its owner can enter. An existing one stays as it is.
pub(crate) fn make_private_dir(path: &Path) -> Result<()> {
    match rustix::fs::mkdir(path, PRIVATE_DIR) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(rustix::io::Errno::NOENT)
            if path.parent().is_some_and(|p| !p.as_os_str().is_empty()) =>
        {
            if let Some(parent) = path.parent() {
                make_private_dir(parent)?;
            }
            match rustix::fs::mkdir(path, PRIVATE_DIR) {
                // Another process was faster.
                Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
                Err(error) => Err(StoreError::io("make", path)(error.into())),
            }
        }
        Err(error) => Err(StoreError::io("make", path)(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserState;
    use sessile_protocol::SessionId;
    use std::os::unix::fs::PermissionsExt;

    fn new_session() -> (tempfile::TempDir, Sessions, Directory) {
        let root = tempfile::tempdir().unwrap();
        let user = UserState::at(root.path().join("state"));
        let sessions = Sessions::at(root.path().join("a/.sessions"), user);
        let directory = sessions.create(&SessionId::from_random([1; 12])).unwrap();
        (root, sessions, directory)
    }

    #[test]
    fn directories_and_files_are_private() {
        let (_root, _, directory) = new_session();
        directory.write_state(&SavedState::default()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(directory.path()), 0o700);
        assert_eq!(mode(directory.path().parent().unwrap()), 0o700);
        assert_eq!(mode(&directory.path().join("state.json")), 0o600);
    }

    #[test]
    fn a_link_in_place_of_a_session_is_not_followed() {
        let (root, sessions, directory) = new_session();
        let id = SessionId::from_random([2; 12]);
        let link = directory.path().with_file_name(id.as_str());
        std::os::unix::fs::symlink(root.path(), link).unwrap();
        assert!(matches!(sessions.find(&id), Err(StoreError::NotFound(_))));
    }

    #[test]
    fn only_one_keeper_holds_the_lock() {
        let (_root, _, directory) = new_session();
        let held = directory.lock().unwrap();
        assert!(held.is_some());
        assert!(directory.lock().unwrap().is_none());
        drop(held);
        assert!(directory.lock().unwrap().is_some());
    }

    #[test]
    fn a_damaged_file_is_named() {
        let (_root, _, directory) = new_session();
        std::fs::write(directory.path().join("metadata.json"), "{\"session").unwrap();
        let error = directory.metadata().unwrap_err().to_string();
        assert!(error.contains("metadata.json"), "{error}");
        assert!(directory.state().is_none());
    }
}
