//! One session's directory, and the directory of all of them.

use crate::atomic::{self, PRIVATE_DIR, PRIVATE_FILE};
use crate::history::History;
use crate::metadata::{Metadata, SavedState, SessionStatus, timestamp};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use sessile_protocol::{Call, Language, Request, RunNo, SessionId, encode};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("Session {0} not found")]
    NotFound(String),
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

/// The directory that holds session directories: `.sessions`.
#[derive(Clone, Debug)]
pub struct Sessions {
    root: PathBuf,
}

/// An id that no session has, here or elsewhere.
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
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the directory itself, if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(&self) -> Result<()> {
        make_private_dir(&self.root)
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

    /// A private directory beside the sessions'.
    pub(crate) fn subdirectory(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        make_private_dir(&path)?;
        Ok(path)
    }

    /// An existing session's directory.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, id: &SessionId) -> Result<Directory> {
        let missing = |_| StoreError::NotFound(id.to_string());
        let root = std::fs::canonicalize(&self.root).map_err(missing)?;
        let directory = Directory { path: root.join(id.as_str()) };
        // Not following links: a link in its place is none of ours.
        let kind = std::fs::symlink_metadata(&directory.path).map_err(missing)?;
        if kind.is_dir() { Ok(directory) } else { Err(StoreError::NotFound(id.to_string())) }
    }

    /// All sessions whose metadata can be read, newest first.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn list(&self) -> Result<Vec<(Directory, Metadata)>> {
        let mut sessions = self.recorded()?;
        for some in sessions.chunks_mut(ASKED_AT_ONCE) {
            observe(some);
        }
        Ok(sessions)
    }

    /// The same as their files have it: no keeper is asked, and one that died is
    /// not noticed.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn recorded(&self) -> Result<Vec<(Directory, Metadata)>> {
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &self.root)(error)),
        };
        let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut sessions: Vec<(Directory, Metadata)> = ids
            .filter_map(|id: SessionId| {
                let directory = self.find(&id).ok()?;
                let metadata = directory.metadata().ok()?;
                Some((directory, metadata))
            })
            .collect();
        sessions.sort_by(|(_, a), (_, b)| {
            (&b.created_at, &b.session_id).cmp(&(&a.created_at, &a.session_id))
        });
        Ok(sessions)
    }
}

/// Keepers that are asked before the first one's answer is waited for. Each has
/// a descriptor, of which a process may have 1024.
const ASKED_AT_ONCE: usize = 128;

/// Asks the keepers of these sessions, all at the same time, and tells the
/// truth about those that are gone.
fn observe(sessions: &mut [(Directory, Metadata)]) {
    let active = |metadata: &Metadata| metadata.status == SessionStatus::Active;
    let asked: Vec<Option<Asked>> =
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

/// How long a keeper may take to answer. One that is there but does not get to
/// it counts as there; one that is not closes its connections as it goes.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// A keeper that was asked whether it is there.
#[derive(Debug)]
enum Asked {
    Waiting(OwnedFd),
    Gone,
}

impl Asked {
    /// A connection alone tells little: a process that was killed a moment ago
    /// still accepts them. Only an answer shows that it lives.
    fn is_alive(&self, deadline: Instant) -> bool {
        let Self::Waiting(socket) = self else {
            return false;
        };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::time::Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(socket, PollFlags::IN)];
            match rustix::event::poll(&mut fds, left.as_ref()) {
                Ok(0) => return true,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        let mut first = [0; 1];
        let received = rustix::net::recv(socket, &mut first[..], RecvFlags::empty());
        received.is_ok_and(|(_, n)| n > 0)
    }
}

/// Whether a session's keeper is there.
#[derive(Debug)]
pub enum Liveness {
    /// Connected to it.
    Live(OwnedFd),
    Gone,
}

/// Held as long as a keeper lives.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Waits for a lock.
    pub(crate) fn wait(path: &Path) -> Result<Self> {
        let held = Self::take(path, FlockOperation::LockExclusive)?;
        held.ok_or_else(|| StoreError::io("lock", path)(io::ErrorKind::WouldBlock.into()))
    }

    fn take(path: &Path, how: FlockOperation) -> Result<Option<Self>> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, PRIVATE_FILE)
            .map_err(|e| StoreError::io("open", path)(e.into()))?;
        loop {
            return match rustix::fs::flock(&file, how) {
                Ok(()) => Ok(Some(Self { _file: file })),
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
                Err(error) => Err(StoreError::io("lock", path)(error.into())),
            };
        }
    }
}

#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// A directory that a trusted caller names.
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

    /// Where files with states of kernels are.
    #[must_use]
    pub fn kernels(&self) -> PathBuf {
        self.path.join("kernels")
    }

    /// Makes that folder, if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_kernels(&self) -> Result<PathBuf> {
        let path = self.kernels();
        make_private_dir(&path)?;
        Ok(path)
    }

    /// The file of a kernel's state, if that is its name and no way out of the
    /// folder.
    #[must_use]
    pub fn dump(&self, name: &str) -> Option<PathBuf> {
        let is_plain = Path::new(name).file_name() == Some(OsStr::new(name));
        is_plain.then(|| self.kernels().join(name))
    }

    /// Removes from that folder what the last captured state does not name.
    pub fn sweep_kernels(&self) {
        self.sweep(|_| true);
    }

    /// The same, but only of the files that saves of a durable session have left:
    /// others may be needed by somebody who is not on the disk.
    pub fn sweep_kept_dumps(&self) {
        self.sweep(|name| name.to_str().is_some_and(|name| name.starts_with(KEPT_DUMP)));
    }

    /// What a kernel's state is called that a durable session's save keeps.
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
    /// When there is none, or it is not what we wrote.
    pub fn metadata(&self) -> Result<Metadata> {
        self.read_json("metadata.json")
    }

    /// # Errors
    /// When it cannot be written.
    pub fn write_metadata(&self, metadata: &Metadata) -> Result<()> {
        self.write_json("metadata.json", metadata)
    }

    /// The last captured state, if there is one that can be read; else that of
    /// the last save.
    #[must_use]
    pub fn state(&self) -> Option<SavedState> {
        self.read_json("state.json").ok().or_else(|| self.kept_state())
    }

    /// The state of the last save of a durable session.
    fn kept_state(&self) -> Option<SavedState> {
        self.read_json(KEPT).ok()
    }

    /// Writes down the state of a save, for good: when this comes back it
    /// outlasts a power cut. It blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_state(&self, state: &SavedState) -> Result<()> {
        let path = self.path.join(KEPT);
        let bytes = serde_json::to_vec_pretty(state)
            .map_err(|source| StoreError::Damaged { path: path.clone(), source })?;
        atomic::replace_synced(&path, &bytes).map_err(StoreError::io("write", &path))
    }

    /// Where a save is put on its way to a store; the folder is made.
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

    /// Forgets state, history and output of runs, and what their keys stand
    /// for. Their numbers go on.
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

    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.path).map_err(StoreError::io("remove", &self.path))
    }

    /// The metadata, with the truth about a keeper that died: such a session
    /// is marked as lost, also on disk.
    ///
    /// # Errors
    /// When there is none, or it is not what we wrote.
    pub fn observed_metadata(&self) -> Result<Metadata> {
        let metadata = self.metadata()?;
        if metadata.status != SessionStatus::Active {
            return Ok(metadata);
        }
        if self.is_alive() {
            return Ok(metadata);
        }
        self.mark_lost()
    }

    /// The metadata of a session whose keeper does not answer.
    fn mark_lost(&self) -> Result<Metadata> {
        // Under the keeper's lock, so that neither a keeper that is just
        // ending nor one that is just coming up is contradicted. A killed
        // keeper's guardian holds it until everything is cleared away.
        let Some(_lock) = self.await_lock()? else {
            return self.metadata();
        };
        let mut metadata = self.metadata()?;
        if metadata.status == SessionStatus::Active {
            metadata.status = SessionStatus::Lost;
            metadata.ended_at = Some(timestamp());
            metadata.keeper_pid = None;
            self.write_metadata(&metadata)?;
        }
        Ok(metadata)
    }

    /// The lock that a keeper holds; `None` when one holds it now.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn lock(&self) -> Result<Option<Lock>> {
        Lock::take(&self.path.join("keeper.lock"), FlockOperation::NonBlockingLockExclusive)
    }

    /// The lock, unless a keeper answers; waits for one that is between.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn await_lock(&self) -> Result<Option<Lock>> {
        let deadline = Instant::now() + Duration::from_secs(3);
        loop {
            if let Some(lock) = self.lock()? {
                return Ok(Some(lock));
            }
            if self.is_alive() || Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_alive(&self) -> bool {
        self.ask().is_alive(Instant::now() + ANSWER_PATIENCE)
    }

    /// Asks the keeper something, if there is one.
    fn ask(&self) -> Asked {
        let Liveness::Live(socket) = self.connect() else {
            return Asked::Gone;
        };
        let question = encode(&Call::new(1, Request::Status));
        match rustix::net::send(&socket, &question, SendFlags::NOSIGNAL) {
            Ok(_) => Asked::Waiting(socket),
            Err(_) => Asked::Gone,
        }
    }

    /// Connects to the keeper, if there is one. It may be about to go: whoever
    /// asks it something finds out.
    #[must_use]
    pub fn connect(&self) -> Liveness {
        let attempt = || -> rustix::io::Result<OwnedFd> {
            let (_directory, address) = self.socket_address()?;
            let socket = new_socket()?;
            rustix::net::connect(&socket, &address)?;
            Ok(socket)
        };
        attempt().map_or(Liveness::Gone, Liveness::Live)
    }

    /// The same without waiting; `None` when the keeper takes no connections
    /// now: it is stopped, and too many wait for it already.
    #[must_use]
    pub fn connect_at_once(&self) -> Option<Liveness> {
        let attempt = || -> rustix::io::Result<OwnedFd> {
            let (_directory, address) = self.socket_address()?;
            let socket = new_socket()?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            rustix::net::connect(&socket, &address)?;
            rustix::io::ioctl_fionbio(&socket, false)?;
            Ok(socket)
        };
        match attempt() {
            Ok(socket) => Some(Liveness::Live(socket)),
            Err(rustix::io::Errno::AGAIN) => None,
            Err(_) => Some(Liveness::Gone),
        }
    }

    /// Listens where clients will look for the keeper.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn listen(&self) -> io::Result<OwnedFd> {
        let _ = std::fs::remove_file(self.path.join(SOCKET));
        let (_directory, address) = self.socket_address()?;
        let socket = new_socket()?;
        rustix::net::bind(&socket, &address)?;
        rustix::fs::chmod(self.path.join(SOCKET), PRIVATE_FILE)?;
        rustix::net::listen(&socket, 128)?;
        Ok(socket)
    }

    /// Whether there is a socket: one that has ended has none, even if its
    /// keeper is still about to go.
    #[must_use]
    pub fn has_socket(&self) -> bool {
        self.path.join(SOCKET).symlink_metadata().is_ok()
    }

    pub fn remove_socket(&self) {
        let _ = std::fs::remove_file(self.path.join(SOCKET));
    }

    /// A unix socket's path has room for 107 bytes and a session directory may
    /// lie deeper than that, so the socket is named through a descriptor of
    /// the directory.
    fn socket_address(&self) -> rustix::io::Result<(OwnedFd, SocketAddrUnix)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.path, flags, rustix::fs::Mode::empty())?;
        let path = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        let address = SocketAddrUnix::new(path)?;
        Ok((directory, address))
    }

    /// # Errors
    /// When there is none, or it is not what we wrote.
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
        atomic::replace(&path, &bytes).map_err(StoreError::io("write", &path))
    }
}

const SOCKET: &str = "keeper.sock";
const KEPT: &str = "saved.json";
const KEPT_DUMP: &str = "kept-";

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Makes a directory that only its owner can enter; one that is there already
/// stays as it is.
fn make_private_dir(path: &Path) -> Result<()> {
    match rustix::fs::mkdir(path, PRIVATE_DIR) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(rustix::io::Errno::NOENT)
            if path.parent().is_some_and(|p| !p.as_os_str().is_empty()) =>
        {
            if let Some(parent) = path.parent() {
                make_private_dir(parent)?;
            }
            match rustix::fs::mkdir(path, PRIVATE_DIR) {
                // Somebody else was faster.
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
    use std::os::unix::fs::PermissionsExt;

    fn new_session() -> (tempfile::TempDir, Sessions, Directory) {
        let root = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(root.path().join("a/.sessions"));
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
