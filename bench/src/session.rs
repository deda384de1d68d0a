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

/// Where a session's directory lies.
///
/// What makes new files, as a fork does, is measured in memory: on ext4 a new
/// file takes 20 µs, or ten times that for minutes after some thousand files
/// were deleted, as other measurements and other people's work do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Disk,
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
        Self::launch(sessile, language, None, Place::Disk)
    }

    pub(crate) fn start_at(
        sessile: &Path,
        language: Language,
        place: Place,
    ) -> anyhow::Result<Self> {
        Self::launch(sessile, language, None, place)
    }

    /// One that takes a checkpoint before each run.
    pub(crate) fn start_auto(
        sessile: &Path,
        language: Language,
        place: Place,
    ) -> anyhow::Result<Self> {
        Self::launch(sessile, language, Some(Auto { keep: 5, files: false }), place)
    }

    /// The directory of its sessions.
    pub(crate) fn directory(&self) -> &Path {
        self.temporary.path()
    }

    fn launch(
        sessile: &Path,
        language: Language,
        auto: Option<Auto>,
        place: Place,
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
            work_dir: std::env::current_dir()?,
            execution_count: 0,
            language,
            ended_at: None,
            ended_by: None,
            keeper_pid: None,
            env: BTreeMap::new(),
            idle_timeout_ms: 0,
            command_timeout_ms: 0,
            max_history: 100,
            output_cap: 1 << 30,
            workspace: None,
            session_key: None,
            max_queue: None,
            name: None,
            owner: None,
            durable: None,
            restored_from: None,
            auto,
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
    /// Waits until the kernel's state has been captured: nothing is under way.
    pub(crate) fn settle(&mut self) -> anyhow::Result<()> {
        self.client.call(Request::State)?;
        Ok(())
    }
}

/// What a session of the bench keeps besides lies below its own directory.
pub(crate) fn user_state(root: &Path) -> UserState {
    UserState::at(root.join("state"))
}
