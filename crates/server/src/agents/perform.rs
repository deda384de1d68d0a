//! Performs a tool call once.

use super::files::{self, CallOutcome};
use super::storing::{NotStored, ThreadUploader};
use crate::keepers::{blocking, lock};
use crate::service::{Caller, ErrorCode, Service, ServiceError, WaitFor};
use serde_json::{Map, Value};
use sessile_agent::Input;
use sessile_agent::continuity::Continuity;
use sessile_agent::model::{Arguments, Call};
use sessile_agent::thread::{Intent, Outcome};
use sessile_agent::tools::{FileCall, Tool, file_tools, is_for_files};
use sessile_client::{NoView, Workspace};
use sessile_gateway::answer;
use sessile_gateway::text::{self, Rest, Sizing};
use sessile_gateway::tool::answers::Finished;
use sessile_gateway::tool::{self, Action, NextCall, Request, RunAction};
use sessile_protocol::{Completed, Exec, RunNo, SessionId};
use sessile_store::Directory;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const RUNTIME: &str = "runtime";

/// A run is awaited in pieces, so that a keeper killed meanwhile is noticed.
const PIECE_MS: u64 = 60_000;

/// Returns the tools of an agent, as declared to its model.
pub(super) fn tools() -> Vec<Tool> {
    let schema = tool::schema();
    let runtime = Tool {
        name: RUNTIME.to_owned(),
        description: schema["description"].as_str().unwrap_or_default().to_owned(),
        schema: parameters(&schema),
    };
    std::iter::once(runtime).chain(file_tools()).collect()
}

/// Hides the parameters that choose the session: the model has no choice.
fn parameters(schema: &Value) -> Value {
    let found = ["input_schema", "parameters"].into_iter().find_map(|name| schema.get(name));
    let mut parameters = found.unwrap_or(schema).clone();
    if let Some(properties) = parameters["properties"].as_object_mut() {
        for hidden in ["workspace", "session_key", "auto", "auto_files"] {
            properties.remove(hidden);
        }
    }
    parameters
}

/// The operation in progress in the session.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentOperation(Arc<Mutex<OperationState>>);

#[derive(Debug, Default)]
struct OperationState {
    /// The run of the call, while it is going.
    run: Option<RunNo>,
    /// What became of the session meanwhile, and is not yet in the thread.
    became: Vec<Continuity>,
    /// It is to stop, even if it has not begun yet.
    is_stopped: bool,
}

impl CurrentOperation {
    /// Marks the start of an operation.
    pub(super) fn begin(&self) {
        lock(&self.0).is_stopped = false;
    }

    /// Stops the operation, and returns the run to interrupt, if there is one yet.
    pub(super) fn stop(&self) -> Option<RunNo> {
        let mut under_way = lock(&self.0);
        under_way.is_stopped = true;
        under_way.run
    }

    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.0).is_stopped
    }

    pub(super) fn get(&self) -> Option<RunNo> {
        lock(&self.0).run
    }

    pub(super) fn set(&self, run: Option<RunNo>) {
        lock(&self.0).run = run;
    }

    /// Notes what became of the session.
    pub(super) fn became(&self, continuity: Continuity) {
        if !continuity.is_live() {
            lock(&self.0).became.push(continuity);
        }
    }

    pub(super) fn take_continuity(&self) -> Vec<Continuity> {
        std::mem::take(&mut lock(&self.0).became)
    }
}

/// How often a call is tried if its keeper is killed meanwhile. The key stays the same,
/// so that it is carried out once.
const ATTEMPTS: u32 = 3;

pub(super) struct CallExecution {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    pub(super) session: SessionId,
    pub(super) call: Call,
    pub(super) key: String,
    pub(super) is_repeated: bool,
    pub(super) intent: Option<Intent>,
    pub(super) running: CurrentOperation,
    pub(super) uploader: ThreadUploader,
}

impl CallExecution {
    /// Performs the call. A failure is an outcome as well: the model reads it.
    pub(super) async fn carry_out(self) -> Input {
        match self.secure().await {
            Ok(()) => {}
            Err(NotStored::Moved(failure)) => return Input::Stopped(failure),
            Err(NotStored::Failed(error)) => {
                let text = format!("not carried out: {error}; try again later");
                return Input::Performed(Outcome::error(self.call.id, text));
            }
        }
        if self.running.is_stopped() {
            let text = "not carried out: the task is to stop";
            return Input::Performed(Outcome::error(self.call.id, text));
        }
        let input = match self.wake().await {
            Ok(()) if self.call.tool == RUNTIME => self.runtime().await.map(Input::Performed),
            Ok(()) => self.file().await,
            Err(error) => Err(error),
        };
        let run = self.running.get();
        self.running.set(None);
        input.unwrap_or_else(|error| Input::Performed(self.failed(&error, run)))
    }

    /// Waits until the store knows of the call. A file call has no effect before its
    /// intent is known, so it need not wait before that.
    async fn secure(&self) -> Result<(), NotStored> {
        match is_for_files(&self.call.tool) && self.intent.is_none() {
            true => Ok(()),
            false => self.uploader.secure().await,
        }
    }

    /// Brings the session back if it has ended for lack of use, or lost its keeper, since
    /// the last call.
    async fn wake(&self) -> Result<(), ServiceError> {
        let continuity = self.service.wake_agent(&self.caller, &self.session).await?;
        self.running.became(continuity);
        Ok(())
    }

    fn failed(&self, error: &ServiceError, run: Option<RunNo>) -> Outcome {
        let is_lost = matches!(error.code, ErrorCode::RunLost | ErrorCode::KeeperUnavailable);
        let text = match run.filter(|_| is_lost) {
            Some(run) => format!(
                "{error}; run {run} was interrupted, and how far it got is not known: look \
                 before you do it again"
            ),
            None => error.to_string(),
        };
        let call = self.call.id.clone();
        Outcome { call, text, is_error: true, run: run.map(|run| run.0) }
    }

    async fn runtime(&self) -> Result<Outcome, ServiceError> {
        let Arguments::Json(arguments) = &self.call.input else {
            return Err(ServiceError::unexpected());
        };
        let request = Request::checked(arguments)?;
        let (run, shape) = match &request.action {
            Action::Exec(run) => (run, RunAction::Exec),
            Action::Eval(run) => (run, RunAction::Eval),
            Action::State(_) | Action::Reset | Action::History { .. } => {
                let answer = self.service.tool_in(&self.caller, &self.session, &request).await?;
                return Ok(self.outcome(&answer, None));
            }
        };
        let mut exec = run.order();
        // Only the first of all requests with this key starts a run.
        exec.key = Some(self.key.clone());
        let mut attempt = 1;
        let (begun, done) = loop {
            match self.done(exec.clone()).await {
                Err(error) if error.code == ErrorCode::KeeperUnavailable && attempt < ATTEMPTS => {
                    attempt += 1;
                    self.wake().await?;
                }
                outcome => break outcome?,
            }
        };
        let place = self.service.place(&self.caller, &self.session).await?;
        let rest = Rest::Directory(place.directory.path().to_owned());
        let sizing = Sizing { options: request.output, rest };
        let mut answer = answer::fields(&Finished::of(&done, shape, &sizing));
        text::fit(&mut answer, tool::MOST_BESIDES);
        let mut outcome = self.outcome(&answer, Some(begun));
        if let Some(gone) = blocking(move || Ok(gone_workspace(&place.directory))).await? {
            // A shell whose working directory is gone continues without a clear message.
            let _ = write!(outcome.text, "\n(the workspace {} is gone)", gone.display());
        }
        Ok(outcome)
    }

    /// Runs the command and returns it when it is over.
    async fn done(&self, exec: Exec) -> Result<(RunNo, Box<Completed>), ServiceError> {
        let begun = self.service.begin(&self.caller, &self.session, exec).await?;
        let became = self.service.became(&self.caller, &self.session, &begun.continuity).await?;
        self.running.became(became);
        let run = begun.answer;
        self.running.set(Some(run));
        if self.running.is_stopped() {
            // The stop came before there was a run to interrupt.
            self.service.interrupt(&self.caller, &self.session, Some(run)).await?;
        }
        loop {
            let finished = self.service.finished(
                &self.caller,
                &self.session,
                run,
                PIECE_MS,
                tool::MAX_OUTPUT,
                WaitFor::Result,
            );
            if let Some(done) = finished.await? {
                return Ok((run, done));
            }
        }
    }

    fn again(&self) -> NextCall {
        let arguments = match &self.call.input {
            Arguments::Json(Value::Object(map)) => map.clone(),
            Arguments::Json(_) | Arguments::Malformed(_) => Map::new(),
        };
        NextCall::runtime(arguments)
    }

    fn outcome(&self, answer: &Map<String, Value>, run: Option<RunNo>) -> Outcome {
        let is_error = answer.get("success") == Some(&Value::Bool(false));
        let text = text::answer_text(answer, &self.again());
        Outcome { call: self.call.id.clone(), text, is_error, run: run.map(|run| run.0) }
    }

    /// Returns the files as the session sees them. A sandbox's files are reached through
    /// a process in it.
    async fn workspace(&self) -> Result<Workspace, ServiceError> {
        let place = self.service.place(&self.caller, &self.session).await?;
        let directory = place.directory.clone();
        match blocking(move || Ok(Workspace::of(&directory.metadata()?))).await? {
            Ok(workspace) => Ok(workspace),
            Err(NoView) => self.service.start_for_files(&self.caller, &place).await,
        }
    }

    async fn file(&self) -> Result<Input, ServiceError> {
        let call = FileCall::parse(&self.call.tool, &self.call.input)
            .map_err(|bad| ServiceError::new(ErrorCode::BadRequest, bad.to_string()))?;
        let workspace = self.workspace().await?;
        let (is_repeated, intent) = (self.is_repeated, self.intent.clone());
        let done =
            blocking(move || Ok(files::perform(&workspace, &call, intent.as_ref(), is_repeated)));
        let call = self.call.id.clone();
        Ok(match done.await? {
            CallOutcome::Finished(Ok(text)) => {
                Input::Performed(Outcome { call, text, is_error: false, run: None })
            }
            CallOutcome::Finished(Err(text)) => Input::Performed(Outcome::error(call, text)),
            CallOutcome::Intends { before, after } => {
                Input::Intended(Intent { call, before, after })
            }
        })
    }
}

fn gone_workspace(directory: &Directory) -> Option<PathBuf> {
    let workspace = directory.metadata().ok()?.files_root();
    (!workspace.is_dir()).then_some(workspace)
}
