//! The `runtime` tool over the keepers' sockets.

use crate::commands::exec;
use crate::settings::Settings;
use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use sessile_client::{Client, ClientError, NewSession};
use sessile_gateway::answer::State;
use sessile_gateway::text::{OutputOptions, Rest, Sizing};
use sessile_gateway::tool::answers::{Finished, History, Reset, SessionNote};
use sessile_gateway::tool::{self, Action, Request, Run, RunAction, StateExtent, Target};
use sessile_gateway::{Error, ErrorCode};
use sessile_protocol::{Answer, Auto, Failure};
use sessile_sandbox::Policy;
use sessile_store::{Directory, Entry, Sessions, StoreError};
use std::path::PathBuf;

/// Answers a valid request.
pub(crate) fn answer(
    settings: &Settings,
    request: &Request,
    sandbox: Option<Policy>,
) -> sessile_gateway::Result<Value> {
    let place = Place::of(settings, request, sandbox)?;
    let outcome = match &request.action {
        Action::Exec(run) => place.run(run, RunAction::Exec, request.output),
        Action::Eval(run) => place.run(run, RunAction::Eval, request.output),
        Action::State(extent) => place.state(*extent),
        Action::Reset => place.reset(),
        Action::History { limit } => place.history(*limit),
    };
    outcome.map_err(|error| coded(&error))
}

/// Returns an error with the code that it has on every surface.
fn coded(error: &anyhow::Error) -> Error {
    let message = format!("{error:#}");
    let coded = error.chain().find_map(|cause| {
        let client = cause.downcast_ref::<ClientError>().map(ErrorCode::from);
        let store = || cause.downcast_ref::<StoreError>().map(ErrorCode::from);
        let failure = || cause.downcast_ref::<Failure>().map(|failure| failure.code.into());
        client.or_else(store).or_else(failure)
    });
    Error::new(coded.unwrap_or(ErrorCode::Internal), message)
}

/// A workspace, and where its session is kept.
struct Place {
    settings: Settings,
    workspace: PathBuf,
    key: String,
    session_key: Option<String>,
    auto: Option<Auto>,
    /// The minimum sandbox of its sessions.
    sandbox: Option<Policy>,
}

/// A workspace's session.
struct WorkspaceSession {
    directory: Directory,
    client: Client,
    is_new: bool,
}

impl Place {
    fn of(
        settings: &Settings,
        request: &Request,
        sandbox: Option<Policy>,
    ) -> sessile_gateway::Result<Self> {
        let given = request.target.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
        let workspace =
            std::fs::canonicalize(&given).ok().filter(|path| path.is_dir()).ok_or_else(|| {
                let given = given.display();
                let message = format!("workspace {given} is not a directory; create it first");
                Error::new(ErrorCode::BadDirectory, message)
            })?;
        // In the workspace, unless all are to be in one place: found again wherever the
        // next call is made.
        let root = settings.sessions_dir.clone().unwrap_or_else(|| workspace.join(".sessions"));
        let settings = Settings {
            sessions: Sessions::at(root.clone(), settings.launcher.user().clone()),
            launcher: settings.launcher.clone(),
            sessions_dir: Some(root),
            sessions_dir_from: settings.sessions_dir_from.clone(),
        };
        let mark = sandbox.as_ref().map(Policy::mark);
        let key = request.target.key(&workspace, mark.as_deref());
        let Target { session_key, auto, .. } = request.target.clone();
        Ok(Self { settings, workspace, key, session_key, auto, sandbox })
    }

    /// Returns the workspace's session; makes a new one if there is none, or it has ended.
    fn find(&self) -> anyhow::Result<WorkspaceSession> {
        let claim = self.settings.sessions.claim(&self.key)?;
        if let Some(id) = claim.session()
            && let Ok(directory) = self.settings.sessions.find(&id)
        {
            self.check_confined(&directory)?;
            match self.settings.launcher.open(&directory) {
                Ok(client) => return Ok(WorkspaceSession { directory, client, is_new: false }),
                Err(ClientError::Ended(_) | ClientError::Store(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let spec = NewSession {
            auto: self.auto,
            sandbox: self.sandbox.clone(),
            ..NewSession::of_workspace(&self.workspace, self.session_key.clone())
        };
        let (directory, metadata) = self.settings.launcher.create(&self.settings.sessions, spec)?;
        claim.record(&metadata.session_id)?;
        let client = self.settings.launcher.open(&directory)?;
        Ok(WorkspaceSession { directory, client, is_new: true })
    }

    /// Checks that a session that was found by the sandbox's key is in that sandbox:
    /// another one may have been put there.
    fn check_confined(&self, directory: &Directory) -> anyhow::Result<()> {
        let Some(bound) = &self.sandbox else { return Ok(()) };
        let own = directory.metadata()?.sandbox;
        let own = own.and_then(|own| serde_json::from_value::<Policy>(own).ok());
        let is_confined = own.is_some_and(|own| own.is_within(bound));
        anyhow::ensure!(is_confined, "the session of this workspace is not in the sandbox");
        Ok(())
    }

    fn run(&self, run: &Run, shape: RunAction, options: OutputOptions) -> anyhow::Result<Value> {
        let order = run.order();
        // Checked before there is a session for it.
        order.check()?;
        let mut session = self.find()?;
        let done = exec::run(&mut session.client, order)?;
        let rest = Rest::Directory(session.directory.path().to_owned());
        session.describe(&Finished::of(&done, shape, &Sizing { options, rest }))
    }

    fn state(&self, extent: StateExtent) -> anyhow::Result<Value> {
        let mut session = self.find()?;
        let Answer::State(view) = session.client.call(sessile_protocol::Request::State)? else {
            anyhow::bail!(ClientError::Unexpected);
        };
        let history = session.history(tool::STATE_HISTORY)?;
        session.describe(&tool::State::of(State::live_with_changes(&view), history, extent))
    }

    fn reset(&self) -> anyhow::Result<Value> {
        let mut session = self.find()?;
        session.client.call(sessile_protocol::Request::Reset)?;
        session.describe(&Reset::done())
    }

    fn history(&self, limit: u64) -> anyhow::Result<Value> {
        let session = self.find()?;
        let history = session.history(limit)?;
        session.describe(&History::of(history))
    }
}

impl WorkspaceSession {
    fn describe(&self, answer: &impl Serialize) -> anyhow::Result<Value> {
        let metadata = self.directory.metadata().context("the session's directory is gone")?;
        let note = SessionNote::new(metadata.session_id, self.is_new, self.client.revived());
        Ok(tool::described(answer, note).into())
    }

    fn history(&self, limit: u64) -> anyhow::Result<Vec<Entry>> {
        let max = self.directory.metadata()?.max_history;
        Ok(self.directory.history().newest(limit.min(max)))
    }
}
