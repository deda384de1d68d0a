//! The `runtime` tool: each workspace has its own session.

use super::{Caller, ErrorCode, RunAnswer, RunOrder, Service, ServiceError};
use crate::keepers::{ConnectedSession, Place, blocking, lock};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_client::NewSession;
use sessile_gateway::answer::{self, Output, State};
use sessile_gateway::text::{Rest, Sizing};
use sessile_gateway::tool::answers::{Failed, Finished, History, Reset, SessionNote, Success};
use sessile_gateway::tool::{self, Action, NextCall, RunAction, StateExtent, Target};
use sessile_protocol::{Answer, Completed, Request, RunNo, SessionId};
use sessile_store::{Entry, SessionStatus};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A workspace's session, with a connection to its keeper.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) reached: ConnectedSession,
    pub(crate) is_new: bool,
}

/// The outcome of a call of the tool.
#[derive(Debug)]
pub(crate) enum ToolAnswer {
    Done(Map<String, Value>),
    /// A finished run, with all that is known of it.
    Finished(Map<String, Value>, Box<Completed>),
    /// The run goes on: its session, and its output so far.
    Running {
        session: SessionId,
        run: RunNo,
        note: SessionNote,
        answer: Map<String, Value>,
    },
}

impl Service {
    /// Answers as `sessile tool` does: a refusal is an answer, too.
    pub(crate) async fn tool(&self, caller: &Caller, request: &Value) -> Value {
        let outcome = match tool::Request::checked(request) {
            Ok(parsed) => self.tool_waiting(caller, &parsed, None, None).await,
            Err(error) => Err(error.into()),
        };
        match outcome {
            Ok(
                ToolAnswer::Done(answer)
                | ToolAnswer::Finished(answer, _)
                | ToolAnswer::Running { answer, .. },
            ) => answer.into(),
            Err(error) => answer::fields(&Failed::from(&*error)).into(),
        }
    }

    /// Answers a caller that waits only this long for a run, and reads the omitted rest
    /// with `again`.
    pub(crate) async fn tool_waiting(
        &self,
        caller: &Caller,
        request: &tool::Request,
        wait_ms: Option<u64>,
        again: Option<&NextCall>,
    ) -> Result<ToolAnswer, ServiceError> {
        match &request.action {
            Action::Exec(run) => {
                self.tool_run(caller, request, (run, RunAction::Exec), wait_ms, again).await
            }
            Action::Eval(run) => {
                self.tool_run(caller, request, (run, RunAction::Eval), wait_ms, again).await
            }
            Action::State(extent) => {
                self.tool_state(caller, request, *extent).await.map(ToolAnswer::Done)
            }
            Action::Reset => self.tool_reset(caller, request).await.map(ToolAnswer::Done),
            Action::History { limit } => {
                self.tool_history(caller, request, *limit).await.map(ToolAnswer::Done)
            }
        }
    }

    /// Performs the actions that run nothing, in a session of the caller's choice.
    pub(crate) async fn tool_in(
        &self,
        caller: &Caller,
        id: &SessionId,
        request: &tool::Request,
    ) -> Result<Map<String, Value>, ServiceError> {
        let mut workspace = Workspace { reached: self.reach(caller, id).await?, is_new: false };
        match &request.action {
            Action::State(extent) => workspace.state(*extent).await,
            Action::Reset => workspace.reset().await,
            Action::History { limit } => {
                let history = workspace.history(*limit).await?;
                workspace.describe(&History::of(history)).await
            }
            Action::Exec(_) | Action::Eval(_) => Err(ServiceError::unexpected()),
        }
    }

    async fn tool_run(
        &self,
        caller: &Caller,
        request: &tool::Request,
        (run, shape): (&tool::Run, RunAction),
        wait_ms: Option<u64>,
        again: Option<&NextCall>,
    ) -> Result<ToolAnswer, ServiceError> {
        let exec = run.order();
        // Checked before there is a session for it.
        exec.check()?;
        let mut workspace = self.workspace(caller, &request.target).await?;
        match self.run(&mut workspace.reached, RunOrder { exec, wait_ms }).await? {
            RunAnswer::Finished(done) => {
                let rest = match again {
                    Some(again) => Rest::Call(again.clone()),
                    None => Rest::Directory(workspace.reached.place.directory.path().to_owned()),
                };
                let sizing = Sizing { options: request.output, rest };
                let answer = workspace.describe(&Finished::of(&done, shape, &sizing)).await?;
                Ok(ToolAnswer::Finished(answer, done))
            }
            RunAnswer::Running { run, so_far } => {
                let so_far = Success::of(Output::running(run, &so_far));
                let note = workspace.note().await?;
                let answer = tool::described(&so_far, note.clone());
                let session = workspace.reached.place.id.clone();
                Ok(ToolAnswer::Running { session, run, note, answer })
            }
        }
    }

    async fn tool_state(
        &self,
        caller: &Caller,
        request: &tool::Request,
        extent: StateExtent,
    ) -> Result<Map<String, Value>, ServiceError> {
        let mut workspace = self.workspace(caller, &request.target).await?;
        workspace.state(extent).await
    }

    async fn tool_reset(
        &self,
        caller: &Caller,
        request: &tool::Request,
    ) -> Result<Map<String, Value>, ServiceError> {
        let mut workspace = self.workspace(caller, &request.target).await?;
        workspace.reset().await
    }

    async fn tool_history(
        &self,
        caller: &Caller,
        request: &tool::Request,
        limit: u64,
    ) -> Result<Map<String, Value>, ServiceError> {
        let mut workspace = self.workspace(caller, &request.target).await?;
        let history = workspace.history(limit).await?;
        workspace.describe(&History::of(history)).await
    }

    /// Returns the workspace's session; makes a new one if there is none, or it has ended.
    async fn workspace(&self, caller: &Caller, target: &Target) -> Result<Workspace, ServiceError> {
        let workspace = self.workspace_directory(caller, target).await?;
        let key = self.key(caller, target, &workspace);
        let mut new =
            self.defaults.session(NewSession::of_workspace(&workspace, target.session_key.clone()));
        new.owner.clone_from(&caller.token);
        new.auto = target.auto;
        if let Some(reached) = self.known_workspace(&key) {
            return Ok(Workspace { reached, is_new: false });
        }
        // A session that is just ending is found once more, and is over at the next try.
        for _ in 0..3 {
            let (place, is_new) = self.claim(caller, key.clone(), new.clone()).await?;
            self.admit_confined(caller, &place)?;
            match self.keepers.reach(place).await {
                Ok(reached) => {
                    let mut known = lock(&self.workspaces);
                    known.insert(key, reached.place.clone());
                    return Ok(Workspace { reached, is_new });
                }
                Err(error) if error.code == ErrorCode::SessionEnded => {}
                Err(error) => return Err(error),
            }
        }
        Err(ServiceError::unexpected())
    }

    /// Returns the key of a workspace's session. In a sandbox, it is a different one.
    pub(super) fn key(&self, caller: &Caller, target: &Target, workspace: &Path) -> String {
        target.key(workspace, self.bound(caller).map(|bound| bound.mark()).as_deref())
    }

    /// Returns the directory of the workspace.
    pub(crate) async fn workspace_directory(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Result<PathBuf, ServiceError> {
        let given = target.workspace.as_ref().map(|path| path.to_string_lossy().into_owned());
        self.directory(caller, given).await
    }

    /// Finds the workspace's session, live or not, without making one.
    pub(crate) async fn workspace_session(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Result<SessionId, ServiceError> {
        let workspace = self.workspace_directory(caller, target).await?;
        let (sessions, key) =
            (self.keepers.sessions().clone(), self.key(caller, target, &workspace));
        let found = blocking(move || Ok(sessions.claim(&key)?.session())).await?;
        found.ok_or_else(|| {
            let message = "this workspace has no session yet; exec and eval start one";
            ServiceError::new(ErrorCode::SessionNotFound, message)
        })
    }

    /// Reuses a connection without reading the index: a live session stays the
    /// workspace's.
    fn known_workspace(&self, key: &str) -> Option<ConnectedSession> {
        let place = lock(&self.workspaces).get(key)?.clone();
        self.keepers.reach_idle(&place)
    }

    /// Looks up a workspace's session in the index, or makes one.
    async fn claim(
        &self,
        caller: &Caller,
        key: String,
        new: NewSession,
    ) -> Result<(Arc<Place>, bool), ServiceError> {
        let room = self.admit_sessions(caller.token.as_deref(), 1).await;
        let new = self.confined(caller, self.limited(new));
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let (place, is_new) = blocking(move || {
            let claim = sessions.claim(&key)?;
            if let Some(id) = claim.session()
                && let Ok(directory) = sessions.find(&id)
                && let Ok(metadata) = directory.metadata()
                && metadata.status != SessionStatus::Terminated
            {
                return Ok((Place::new(&sessions, directory, &metadata), false));
            }
            let _reservation = room?;
            let (directory, metadata) = launcher.create(&sessions, new)?;
            claim.record(&metadata.session_id)?;
            Ok((Place::new(&sessions, directory, &metadata), true))
        })
        .await?;
        if is_new {
            self.live.fetch_add(1, Ordering::Relaxed);
        }
        Ok((Arc::new(place), is_new))
    }
}

impl Workspace {
    async fn state(&mut self, extent: StateExtent) -> Result<Map<String, Value>, ServiceError> {
        let Answer::State(view) = self.reached.call(Request::State).await? else {
            return Err(ServiceError::unexpected());
        };
        let history = self.history(tool::STATE_HISTORY).await?;
        let state = tool::State::of(State::live_with_changes(&view), history, extent);
        self.describe(&state).await
    }

    async fn reset(&mut self) -> Result<Map<String, Value>, ServiceError> {
        self.reached.call(Request::Reset).await?;
        self.describe(&Reset::done()).await
    }

    async fn describe(&self, answer: &impl Serialize) -> Result<Map<String, Value>, ServiceError> {
        Ok(tool::described(answer, self.note().await?))
    }

    async fn note(&self) -> Result<SessionNote, ServiceError> {
        let directory = self.reached.place.directory.clone();
        let metadata = blocking(move || Ok(directory.metadata()?)).await?;
        let previous = self.reached.continuity.previous();
        Ok(SessionNote::new(metadata.session_id, self.is_new, previous))
    }

    async fn history(&mut self, limit: u64) -> Result<Vec<Entry>, ServiceError> {
        self.reached.call(Request::History { limit: 0 }).await?;
        let directory = self.reached.place.directory.clone();
        blocking(move || {
            let max = directory.metadata()?.max_history;
            Ok(directory.history().newest(limit.min(max)))
        })
        .await
    }
}
