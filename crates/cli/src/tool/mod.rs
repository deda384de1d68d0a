//! The `runtime` tool: what agents call.

mod request;
mod schema;

pub(crate) use request::Request;
pub(crate) use schema::schema;

use crate::commands::{start, state};
use crate::render;
use crate::settings::Settings;
use anyhow::Context;
use request::Action;
use serde_json::{Map, Value, json};
use sessile_client::{Client, ClientError};
use sessile_protocol::{Completed, Exec, Until};
use sessile_store::{Directory, Sessions};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of each stream that an answer shows.
const MAX_OUTPUT: u64 = 1 << 20;

pub(crate) fn failure(message: &str) -> Value {
    json!({"success": false, "error": message})
}

/// Answers a request that makes sense.
pub(crate) fn answer(settings: &Settings, request: &Request) -> Result<Value, String> {
    let place = Place::of(settings, request)?;
    let outcome = match &request.action {
        Action::Exec(run) => place.run(run, Shape::Exec),
        Action::Eval(run) => place.run(run, Shape::Eval),
        Action::State => place.state(),
        Action::Reset => place.reset(),
        Action::History { limit } => place.history(*limit),
    };
    outcome.map_err(|error| format!("{error:#}"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Exec,
    Eval,
}

/// A workspace, and where its session is kept.
struct Place {
    settings: Settings,
    workspace: PathBuf,
    key: String,
}

/// A workspace's session.
struct Found {
    directory: Directory,
    client: Client,
    is_new: bool,
}

impl Place {
    fn of(settings: &Settings, request: &Request) -> Result<Self, String> {
        let given = request.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
        let workspace =
            std::fs::canonicalize(&given).ok().filter(|path| path.is_dir()).ok_or_else(|| {
                format!("workspace {} is not a directory; create it first", given.display())
            })?;
        // With the workspace, unless somebody wants all of them in one place:
        // found again from wherever the next call is made.
        let root = settings.sessions_dir.clone().unwrap_or_else(|| workspace.join(".sessions"));
        let key =
            format!("{}\0{}", workspace.display(), request.session_key.as_deref().unwrap_or(""));
        let settings = Settings {
            sessions: Sessions::at(root.clone()),
            launcher: settings.launcher.clone(),
            sessions_dir: Some(root),
        };
        Ok(Self { settings, workspace, key })
    }

    /// The workspace's session, made anew if there is none, or none any more.
    fn find(&self) -> anyhow::Result<Found> {
        let claim = self.settings.sessions.claim(&self.key)?;
        if let Some(id) = claim.session()
            && let Ok(directory) = self.settings.sessions.find(&id)
        {
            match self.settings.launcher.open(&directory) {
                Ok(client) => return Ok(Found { directory, client, is_new: false }),
                Err(ClientError::Ended(_) | ClientError::Store(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let options = start::Options {
            env: Vec::new(),
            cwd: Some(self.workspace.clone()),
            idle_timeout: Duration::from_secs(30 * 60),
            command_timeout: Duration::from_secs(30),
            max_history: 100,
            output_cap: 64 << 20,
        };
        let workspace = Some(self.workspace.display().to_string());
        let (directory, metadata) = start::start(&self.settings, "bash", &options, workspace)?;
        claim.record(&metadata.session_id)?;
        let client = self.settings.launcher.open(&directory)?;
        Ok(Found { directory, client, is_new: true })
    }

    fn run(&self, run: &request::Run, shape: Shape) -> anyhow::Result<Value> {
        let order = Exec {
            text: run.command.clone().into_bytes(),
            language: Some(run.language),
            timeout_ms: run.timeout_ms,
            stdin: run.stdin.clone().map(|text| text.into_bytes().into()),
            env: run.env.clone(),
            max_output: MAX_OUTPUT,
            until: Until::Recorded,
        };
        // Before there is a session for it.
        order.check()?;
        let mut found = self.find()?;
        let done = crate::commands::exec::run(&mut found.client, order)?;
        let mut answer = completed(&done, shape);
        found.describe(&mut answer)?;
        Ok(answer.into())
    }

    fn state(&self) -> anyhow::Result<Value> {
        let mut found = self.find()?;
        let mut state = state::live(&mut found.client)?;
        gather(&mut state);
        state.insert("history".into(), found.history(20)?);
        let mut answer =
            Map::from_iter([("success".to_owned(), json!(true)), ("state".into(), state.into())]);
        found.describe(&mut answer)?;
        Ok(answer.into())
    }

    fn reset(&self) -> anyhow::Result<Value> {
        let mut found = self.find()?;
        found.client.call(sessile_protocol::Request::Reset)?;
        let message =
            "Runtime reset: fresh kernels, empty history, everything that was running is ended";
        let mut answer = Map::from_iter([
            ("success".to_owned(), json!(true)),
            ("message".into(), json!(message)),
        ]);
        found.describe(&mut answer)?;
        Ok(answer.into())
    }

    fn history(&self, limit: u64) -> anyhow::Result<Value> {
        let found = self.find()?;
        let history = found.history(limit)?;
        let mut answer =
            Map::from_iter([("success".to_owned(), json!(true)), ("history".into(), history)]);
        found.describe(&mut answer)?;
        Ok(answer.into())
    }
}

impl Found {
    /// Which session it was, and what happened to it before this call.
    fn describe(&self, answer: &mut Map<String, Value>) -> anyhow::Result<()> {
        let metadata = self.directory.metadata().context("the session's directory is gone")?;
        answer.insert("session_id".into(), json!(metadata.session_id));
        if self.is_new {
            answer.insert("new_session".into(), true.into());
        }
        if let Some(previous) = self.client.revived() {
            answer.insert("revived".into(), render::revival(previous).into());
        }
        Ok(())
    }

    fn history(&self, limit: u64) -> anyhow::Result<Value> {
        let max = self.directory.metadata()?.max_history;
        let entries = self.directory.history().newest(limit.min(max));
        let rows = entries.into_iter().map(|entry| {
            json!({
                "timestamp": entry.timestamp,
                "command": entry.command,
                "language": entry.language,
                "duration": entry.duration_ms,
                "exitCode": entry.exit_code,
                "run": entry.run,
            })
        });
        Ok(rows.collect())
    }
}

/// A finished run in the tool's words.
fn completed(done: &Completed, shape: Shape) -> Map<String, Value> {
    let mut rendered = render::completed(done);
    let error = error_of(done);
    let mut answer = Map::new();
    answer.insert("success".into(), error.is_none().into());
    for name in ["stdout", "stderr"] {
        answer.insert(name.into(), rendered.shift_remove(name).unwrap_or_default());
    }
    answer.insert("exitCode".into(), done.exit_code.into());
    answer.insert("error".into(), error.into());
    answer.insert("language".into(), done.language.as_str().into());
    answer.insert("duration".into(), render::milliseconds(done.duration_us));
    let result = rendered.shift_remove("result");
    if shape == Shape::Eval || result.is_some() {
        // A shell's value is what it prints.
        let printed = || done.language.is_shell().then(|| trimmed(&answer["stdout"]));
        let result = result.or_else(printed).unwrap_or_default();
        answer.insert("result".into(), result);
    }
    for name in ["execution_time_ms", "exit_code", "language", "error"] {
        rendered.shift_remove(name);
    }
    answer.extend(rendered);
    answer
}

fn trimmed(text: &Value) -> Value {
    text.as_str().unwrap_or_default().trim_end_matches('\n').into()
}

fn error_of(done: &Completed) -> Option<String> {
    if done.timed_out {
        let seconds = done.duration_us as f64 / 1e6;
        return Some(format!(
            "timed out after {seconds:.1} s and was interrupted; the session's state is {}",
            done.kernel.as_str()
        ));
    }
    if let Some(error) = &done.error {
        return Some(
            format!("{}: {}", error.kind, error.message).trim_end_matches(": ").to_owned(),
        );
    }
    match done.exit_code {
        0 => None,
        code if done.interrupted => Some(format!("interrupted (exit code {code})")),
        code => Some(format!("exit code {code}")),
    }
}

/// The parts of all live kernels that an agent looks for at the top.
fn gather(state: &mut Map<String, Value>) {
    let kernels = state.get("kernels").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in ["functions", "imports"] {
        let mut all = Vec::new();
        for kernel in kernels.values() {
            for item in kernel.get(name).and_then(Value::as_array).into_iter().flatten() {
                let item = item.get("name").unwrap_or(item).clone();
                if !all.contains(&item) {
                    all.push(item);
                }
            }
        }
        state.insert(name.into(), all.into());
    }
    let mut variables = Map::new();
    for (language, kernel) in &kernels {
        if let Some(found) = kernel.get("variables") {
            variables.insert(language.clone(), found.clone());
        }
    }
    state.insert("variables".into(), variables.into());
    state.shift_remove("language");
    state.insert("languages".into(), kernels.keys().cloned().collect::<Vec<_>>().into());
}
