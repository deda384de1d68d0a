//! A session of ours, over its keeper's socket.

use crate::interrupt;
use anyhow::bail;
use sessile_client::{Client, Launcher};
use sessile_protocol::{Answer, Auto, Completed, Exec, Language, Request};
use sessile_store::{
    Liveness, Metadata, SessionStatus, Sessions, UserState, new_session_id, timestamp,
};
use std::collections::BTreeMap;
use std::path::Path;

const MEMORY: &str = "/dev/shm";

/// The location of a session's directory.
///
/// Work that makes new files, such as a fork, is measured in memory: on ext4 a new file
/// takes 20 µs, or ten times that for minutes after some thousand files were deleted, as by
/// other measurements or other work on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Disk,
}

/// Settings of a session besides its language.
#[derive(Debug, Default)]
struct Beside<'a> {
    auto: Option<Auto>,
    /// The current directory when absent.
    work_dir: Option<&'a Path>,
    /// A resolved policy.
    sandbox: Option<serde_json::Value>,
}

#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    listed: interrupt::Sessions,
    temporary: tempfile::TempDir,
    pub(crate) keeper: u32,
}

impl Session {
    pub(crate) fn start(sessile: &Path, language: Language) -> anyhow::Result<Self> {
        Self::launch(sessile, language, Place::Disk, Beside::default())
    }

    pub(crate) fn start_at(
        sessile: &Path,
        language: Language,
        place: Place,
    ) -> anyhow::Result<Self> {
        Self::launch(sessile, language, place, Beside::default())
    }

    /// Starts a session that takes a checkpoint before each run.
    pub(crate) fn start_auto(
        sessile: &Path,
        language: Language,
        place: Place,
    ) -> anyhow::Result<Self> {
        let auto = Some(Auto { keep: 5, files: false });
        Self::launch(sessile, language, place, Beside { auto, ..Beside::default() })
    }

    /// Starts a shell in a directory, with or without a sandbox.
    pub(crate) fn start_in(
        sessile: &Path,
        work_dir: &Path,
        sandbox: Option<serde_json::Value>,
    ) -> anyhow::Result<Self> {
        let beside = Beside { work_dir: Some(work_dir), sandbox, ..Beside::default() };
        Self::launch(sessile, Language::Bash, Place::Disk, beside)
    }

    /// Returns the directory of its sessions.
    pub(crate) fn directory(&self) -> &Path {
        self.temporary.path()
    }

    fn launch(
        sessile: &Path,
        language: Language,
        place: Place,
        beside: Beside<'_>,
    ) -> anyhow::Result<Self> {
        let temporary = match place {
            Place::Memory if Path::new(MEMORY).is_dir() => tempfile::tempdir_in(MEMORY)?,
            Place::Memory | Place::Disk => tempfile::tempdir()?,
        };
        let listed = interrupt::Sessions::within(sessile, temporary.path(), "");
        let session_id = new_session_id()?;
        let directory = Sessions::at(temporary.path().to_owned(), user_state(temporary.path()))
            .create(&session_id)?;
        let program = match language {
            Language::Python => "python3",
            Language::Bash | Language::Sh | Language::Zsh | Language::Node => language.as_str(),
        };
        let metadata = Metadata {
            session_id,
            command: program.to_owned(),
            created_at: timestamp(),
            last_executed_at: None,
            status: SessionStatus::Starting,
            work_dir: beside.work_dir.map_or_else(std::env::current_dir, std::fs::canonicalize)?,
            execution_count: 0,
            language,
            ended_at: None,
            ended_by: None,
            lost_at_end: Vec::new(),
            keeper_pid: None,
            env: BTreeMap::new(),
            idle_timeout_ms: 0,
            idle_without_runs: false,
            command_timeout_ms: 0,
            max_history: 100,
            output_cap: 1 << 30,
            workspace: None,
            session_key: None,
            max_queue: None,
            name: None,
            notes: Vec::new(),
            owner: None,
            durable: None,
            restored_from: None,
            auto: beside.auto,
            sandbox: beside.sandbox,
            forked_from: None,
        };
        Launcher::new(sessile.to_owned(), vec!["keeper".to_owned()], user_state(temporary.path()))
            .start(&directory, &metadata)?;
        let Liveness::Live(socket) = directory.connect() else { bail!("the keeper is not there") };
        let keeper = directory.metadata()?.keeper_pid.unwrap_or_default();
        Ok(Self { client: Client::new(socket), listed, temporary, keeper })
    }

    pub(crate) fn call(&mut self, request: Request) -> anyhow::Result<Answer> {
        Ok(self.client.call(request)?)
    }

    pub(crate) fn run(&mut self, code: &str) -> anyhow::Result<()> {
        self.complete(code, 64 << 10).map(drop)
    }

    pub(crate) fn complete(
        &mut self,
        code: &str,
        max_output: u64,
    ) -> anyhow::Result<Box<Completed>> {
        let order = Exec { text: code.as_bytes().to_vec(), max_output, ..Exec::default() };
        let Answer::Completed(done) = self.client.call(Request::Exec(order))? else {
            bail!("{code:?} was not completed");
        };
        anyhow::ensure!(done.exit_code == 0, "{code:?} gave {done:?}");
        Ok(done)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.client.call(Request::End).is_ok() {
            self.listed.are_ended();
        }
    }
}

impl Session {
    /// Waits until the kernel's state is captured: nothing is in progress.
    pub(crate) fn settle(&mut self) -> anyhow::Result<()> {
        self.client.call(Request::State)?;
        Ok(())
    }
}

/// Returns the user state of a bench session, which is below its own directory.
pub(crate) fn user_state(root: &Path) -> UserState {
    UserState::at(root.join("state"))
}
