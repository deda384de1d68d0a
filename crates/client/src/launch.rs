//! Starting keepers, and finding the one of a session.

mod fork_server;

use crate::{Client, ClientError, KeeperStopped};
use fork_server::ForkServer;
use sessile_protocol::{
    Boot, BootPurpose, BootReport, Code, Inherited, SESSION_MARKER, decode, encode,
};
use sessile_store::{Directory, Liveness, Metadata, SessionStatus, UserState};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for a keeper that is exiting, or starting for another client. Ending
/// takes up to two seconds.
const PATIENCE: Duration = Duration::from_secs(4);

/// Launches keepers, as copies of one of our programs.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<String>,
    user: UserState,
    store: Option<String>,
    fork_server: Option<Arc<ForkServer>>,
    inherited: Option<Inherited>,
    /// Variables of this client that its child processes do not get.
    hidden: Vec<String>,
}

impl Launcher {
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<String>, user: UserState) -> Self {
        let (store, fork_server, inherited, hidden) = (None, None, None, Vec::new());
        Self { program, arguments, user, store, fork_server, inherited, hidden }
    }

    /// Adds a fork server, for a client that launches many keepers: a process that they are
    /// forked from, from the first launch on.
    #[must_use]
    pub fn with_fork_server(self) -> Self {
        Self { fork_server: Some(Arc::default()), ..self }
    }

    /// Sets the store from which sessions of other machines are taken over.
    #[must_use]
    pub fn with_store(self, store: Option<String>) -> Self {
        Self { store, ..self }
    }

    #[must_use]
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    #[must_use]
    pub fn store(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// Returns the program that keepers, and other helpers, are copies of.
    #[must_use]
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Limits the environment that sessions get from this client to these variables.
    #[must_use]
    pub fn with_inherited(self, inherited: Inherited) -> Self {
        Self { inherited: Some(inherited), ..self }
    }

    /// Hides variables of this client that are secrets. Programs in a session may read the
    /// environment of its keeper, so the keeper does not get them either.
    #[must_use]
    pub fn with_hidden(self, hidden: Vec<String>) -> Self {
        Self { hidden, ..self }
    }

    pub(crate) fn hidden(&self) -> &[String] {
        &self.hidden
    }

    /// Returns the user's state that belongs to no workspace.
    #[must_use]
    pub fn user(&self) -> &UserState {
        &self.user
    }

    /// Adds an argument for keepers, before the session's id.
    #[must_use]
    pub fn with_argument(mut self, argument: String) -> Self {
        self.arguments.push(argument);
        self
    }

    /// Launches a keeper and waits until its kernel is up.
    ///
    /// # Errors
    /// When it cannot be launched, or reports that it cannot start.
    pub fn launch(&self, boot: &Boot) -> Result<u32, ClientError> {
        let frame = encode(boot);
        let forked = self.fork_server.as_ref();
        let forked = forked.and_then(|f| f.launch(self, &frame));
        let report = match forked {
            Some(pipe) => read_all(File::from(pipe)),
            None => self.spawn(boot, &frame),
        };
        let report = report.map_err(ClientError::Launch)?;
        let Some(body) = report.get(4..) else {
            return Err(ClientError::Unstarted);
        };
        let report: BootReport = decode(body)?;
        Ok(report.outcome?)
    }

    /// Starts a keeper as a separate program, and returns its report.
    fn spawn(&self, boot: &Boot, frame: &[u8]) -> io::Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        for name in &self.hidden {
            command.env_remove(name);
        }
        let mut launcher = command
            .args(&self.arguments)
            .arg(boot.session.as_str())
            // It names the session that this client runs in; the new one is not part of it.
            .env_remove(SESSION_MARKER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = launcher.stdin.take() {
            stdin.write_all(frame)?;
        }
        let report = launcher.stdout.take().map(read_all).transpose()?;
        // It exits at once: the keeper is a grandchild.
        launcher.wait()?;
        Ok(report.unwrap_or_default())
    }

    /// Connects to a session's keeper. A session whose keeper was lost gets a new one,
    /// which continues from the last captured state. So does one whose keeper turns out to
    /// be dying when it is asked.
    ///
    /// # Errors
    /// When the session has ended, or its keeper cannot be started.
    pub fn open(&self, directory: &Directory) -> Result<Client, ClientError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match directory.connect_at_once() {
                Some(Liveness::Live(socket)) => {
                    return Ok(Client::new(socket).at_home(self, directory));
                }
                Some(Liveness::Gone) => {}
                None if Instant::now() > deadline => {
                    let stopped = KeeperStopped::of(directory);
                    return Err(stopped.map_or(ClientError::Silent, ClientError::from));
                }
                None => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
            }
            let metadata = directory.observed_metadata()?;
            match metadata.status {
                SessionStatus::Terminated => {
                    return Err(ClientError::ended(directory, &metadata));
                }
                SessionStatus::Lost | SessionStatus::Unknown => {
                    if let Some(client) = self.revive(directory, metadata)? {
                        return Ok(client);
                    }
                }
                // Another client is just starting it, or its keeper was killed just now.
                SessionStatus::Starting | SessionStatus::Active => {}
            }
            if Instant::now() > deadline {
                return Err(ClientError::Gone);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts a new keeper for a lost session; `None` if another client does.
    fn revive(
        &self,
        directory: &Directory,
        metadata: Metadata,
    ) -> Result<Option<Client>, ClientError> {
        match self.launch(&self.boot(directory, &metadata, BootPurpose::GoOn)) {
            Ok(_) => {}
            Err(ClientError::Refused(failure)) if failure.code == Code::Ending => return Ok(None),
            Err(error) => return Err(error),
        }
        match directory.connect() {
            Liveness::Live(socket) => Ok(Some(Client::new(socket).after(metadata))),
            Liveness::Gone => Ok(None),
        }
    }
}

fn read_all(mut pipe: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Launcher {
    /// Returns the boot for a session's keeper, from the session's metadata.
    fn boot(&self, directory: &Directory, metadata: &Metadata, duty: BootPurpose) -> Boot {
        Boot {
            session: metadata.session_id.clone(),
            directory: directory.path().to_owned(),
            work_dir: metadata.work_dir.clone(),
            user_state: self.user.root().to_owned(),
            kernel: metadata.kernel(),
            env: metadata.env.clone(),
            inherited: self.inherited.clone(),
            idle_timeout_ms: metadata.idle_timeout_ms,
            idle_without_runs: metadata.idle_without_runs,
            command_timeout_ms: metadata.command_timeout_ms,
            max_history: metadata.max_history,
            output_cap: metadata.output_cap,
            max_queue: metadata.max_queue,
            auto: metadata.auto,
            sandbox: metadata.sandbox.as_ref().map(ToString::to_string),
            duty,
            metadata: None,
        }
    }

    /// Returns the boot for a session that has only a directory yet.
    pub(crate) fn new_boot(&self, directory: &Directory, metadata: &Metadata) -> Boot {
        let boot = self.boot(directory, metadata, BootPurpose::Begin);
        Boot { metadata: Some(metadata.to_bytes()), ..boot }
    }

    /// Starts a new session in a directory that was made for it. If that fails, nothing of
    /// it is left, unless another process has started it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, directory: &Directory, metadata: &Metadata) -> Result<(), ClientError> {
        match self.launch(&self.new_boot(directory, metadata)) {
            Ok(_) => Ok(()),
            Err(error) => {
                if !error.has_keeper() {
                    let _ = directory.remove();
                }
                Err(error)
            }
        }
    }

    /// Removes what a lost keeper has left: its processes, and its memory.
    pub(crate) fn sweep(
        &self,
        directory: &Directory,
        metadata: &Metadata,
    ) -> Result<(), ClientError> {
        match self.launch(&self.boot(directory, metadata, BootPurpose::Sweep)) {
            Ok(_) => Ok(()),
            // It has a keeper again.
            Err(ClientError::Refused(failure)) if failure.code == Code::Ending => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Starts a keeper that continues the session in a directory.
    pub(crate) fn revive_as(
        &self,
        directory: &Directory,
        metadata: &Metadata,
    ) -> Result<u32, ClientError> {
        self.launch(&self.boot(directory, metadata, BootPurpose::GoOn))
    }
}
