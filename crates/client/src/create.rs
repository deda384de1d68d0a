//! New sessions, and ending them.

use crate::{Client, ClientError, Launcher};
use sessile_protocol::{Auto, Language, Request};
use sessile_store::{
    Directory, Durable, DurableStore, Liveness, Metadata, SaveState, SessionStatus, Sessions,
    new_session_id, timestamp,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a session is to be.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// bash, sh, dash, zsh, python3 or node, or the path of one.
    pub program: String,
    /// The current directory when absent.
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    /// Zero: never.
    pub idle_timeout_ms: u64,
    /// Zero: never.
    pub command_timeout_ms: u64,
    pub max_history: u64,
    pub output_cap: u64,
    /// Runs that may wait in it, if fewer than a keeper allows by itself.
    pub max_queue: Option<u64>,
    pub workspace: Option<String>,
    pub name: Option<String>,
    pub owner: Option<String>,
    /// Whether it is saved in idle time.
    pub durable: Option<SavedTo>,
    /// Checkpoints that it takes before runs.
    pub auto: Option<Auto>,
}

/// Where a durable session's saves go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedTo {
    /// The session's own directory.
    Disk,
    /// A store, and the session's own directory as well.
    Store(String),
}

impl SavedTo {
    pub(crate) fn durable(self) -> Durable {
        let store = match self {
            Self::Disk => None,
            Self::Store(url) => Some(DurableStore { url, state: SaveState::default() }),
        };
        Durable { store, ..Durable::default() }
    }
}

impl Default for NewSession {
    fn default() -> Self {
        Self {
            program: "bash".to_owned(),
            cwd: None,
            env: BTreeMap::new(),
            idle_timeout_ms: 30 * 60 * 1000,
            command_timeout_ms: 30 * 1000,
            max_history: 100,
            output_cap: 64 << 20,
            max_queue: None,
            workspace: None,
            name: None,
            owner: None,
            durable: None,
            auto: None,
        }
    }
}

impl NewSession {
    /// A workspace's own session.
    #[must_use]
    pub fn of_workspace(workspace: &Path) -> Self {
        Self {
            cwd: Some(workspace.to_owned()),
            workspace: Some(workspace.display().to_string()),
            ..Self::default()
        }
    }

    fn metadata(self) -> Result<Metadata, ClientError> {
        let Some(language) = Language::of_program(&self.program) else {
            return Err(ClientError::UnknownProgram(self.program));
        };
        let cwd = self.cwd.unwrap_or_else(|| PathBuf::from("."));
        let bad = |why: String| ClientError::BadDirectory { path: cwd.clone(), why };
        let work_dir = std::fs::canonicalize(&cwd).map_err(|error| bad(error.to_string()))?;
        if !work_dir.is_dir() {
            return Err(bad("it is not a directory".to_owned()));
        }
        // A path is meant from here, wherever the session's directory is.
        let command = if self.program.contains('/') {
            std::path::absolute(&self.program)?.to_string_lossy().into_owned()
        } else {
            self.program
        };
        Ok(Metadata {
            session_id: new_session_id()?,
            command,
            created_at: timestamp(),
            last_executed_at: None,
            status: SessionStatus::Starting,
            work_dir,
            execution_count: 0,
            language,
            ended_at: None,
            ended_by: None,
            keeper_pid: None,
            env: self.env,
            idle_timeout_ms: self.idle_timeout_ms,
            command_timeout_ms: self.command_timeout_ms,
            max_history: self.max_history.max(1),
            output_cap: self.output_cap,
            max_queue: self.max_queue,
            workspace: self.workspace,
            name: self.name,
            owner: self.owner,
            durable: self.durable.map(SavedTo::durable),
            auto: self.auto,
            forked_from: None,
            restored_from: None,
        })
    }
}

impl Launcher {
    /// Starts a session; when that fails, nothing of it is left.
    ///
    /// # Errors
    /// When it makes no sense, or cannot be started.
    pub fn create(
        &self,
        sessions: &Sessions,
        new: NewSession,
    ) -> Result<(Directory, Metadata), ClientError> {
        let metadata = new.metadata()?;
        let directory = sessions.create(&metadata.session_id)?;
        self.start(&directory, &metadata)?;
        Ok((directory, metadata))
    }

    /// Ends a session; one that has ended already, or was lost, is ended too.
    ///
    /// # Errors
    /// When its keeper refuses, or its files cannot be read.
    pub fn end(&self, directory: &Directory) -> Result<(), ClientError> {
        if let Liveness::Live(socket) = directory.connect() {
            match Client::new(socket).call(Request::End) {
                // Gone while we asked: somebody else ended it at the same moment.
                Ok(_) | Err(ClientError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        let mut metadata = directory.observed_metadata()?;
        if metadata.status == SessionStatus::Lost {
            // Who killed the keeper may have killed its guardian, too.
            self.sweep(directory, &metadata)?;
            metadata.status = SessionStatus::Terminated;
            metadata.ended_at = Some(timestamp());
            metadata.ended_by = Some("request".to_owned());
            directory.write_metadata(&metadata)?;
        }
        Ok(())
    }
}
