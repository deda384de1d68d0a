mod chat;
mod following;
mod leaving;
mod moving;
mod showing;

use crate::args;
use crate::call::Remote;
use crate::commands::api;
use crate::confinement::Confinement;
use crate::display::agents::{self, AgentRow};
use crate::display::{Form, Page};
use crate::output;
use crate::settings::Settings;
use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use following::follow;
use hyper::StatusCode;
use jiff::Timestamp;
use leaving::Interrupt;
use serde::Serialize;
use serde_json::Value;
use sessile_sandbox::FileMode;
use sessile_server::http::{Decision, Environment, RewindAgent, StartAgent};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// Let a model work in a session
///
/// The server of this sessions directory carries tasks out if it is running,
/// otherwise your own local server, which is started on demand. It needs a
/// [[model]] in its configuration. A task goes on when this command is
/// interrupted; `resume` returns to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile agent run 'Create app.py, and test it'\n  \
    sessile agent run --agent sess_1f8a 'Add error handling'\n  \
    sessile agent run --sandbox agent-safe --network none 'Fix the tests'\n  \
    sessile agent chat --approve runtime\n  sessile agent show sess_1f8a")]
pub(crate) struct Agent {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Give an agent a task, and wait for its end
    Run(Run),
    Chat(Chat),
    List(List),
    /// Show an agent's thread
    Show(Show),
    /// Return to a task, and wait for its end
    Resume(Resume),
    /// Cancel the current task
    Cancel(AgentArg),
    /// Approve a waiting call
    Approve(Approve),
    /// Deny a waiting call
    Deny(Deny),
    /// Take an agent back to a step: conversation, interpreters and files
    Rewind(Rewind),
    /// Undo an agent's last task
    Undo(AgentArg),
    /// Write an agent into a file: session, files and thread
    Export(moving::Export),
    /// Make an agent from such a file
    Import(moving::Import),
}

#[derive(Debug, Args)]
struct Rewind {
    #[command(flatten)]
    which: AgentArg,
    /// The last step to keep; 0: none
    step: u64,
}

#[derive(Debug, Args)]
struct Approve {
    #[command(flatten)]
    which: AgentArg,
    /// The call [default: the one that waits]
    call: Option<String>,
}

#[derive(Debug, Args)]
struct Deny {
    #[command(flatten)]
    which: AgentArg,
    /// The call [default: the one that waits]
    call: Option<String>,
    /// What the model is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What a task may use up.
#[derive(Debug, Args, Serialize)]
struct LimitArgs {
    /// Maximum number of requests to the model for one task
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u32>,
    /// Maximum number of tokens for one task
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    /// Maximum duration of a task: 90s, 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[serde(rename = "max_time_ms", skip_serializing_if = "Option::is_none")]
    max_time: Option<u64>,
    /// Maximum cost of a task, in the currency of the model's prices
    #[arg(long, value_name = "COST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_cost: Option<f64>,
    /// Summarize the conversation when a request had more tokens than this
    #[arg(long, value_name = "N")]
    #[serde(rename = "compact_above_tokens", skip_serializing_if = "Option::is_none")]
    compact_above: Option<u64>,
}

/// Parses a duration, in milliseconds.
fn duration(text: &str) -> Result<u64, String> {
    let time = sessile_protocol::parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(time.as_millis()).map_err(|error| error.to_string())
}

impl LimitArgs {
    fn is_any(&self) -> bool {
        let Self { max_steps, max_tokens, max_time, max_cost, compact_above } = self;
        max_steps.is_some()
            || max_tokens.is_some()
            || max_time.is_some()
            || max_cost.is_some()
            || compact_above.is_some()
    }
}

/// A task for an agent. Limits that are not given are the server's to choose.
#[derive(Serialize)]
struct NewTask<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a LimitArgs>,
}

/// A body without fields.
#[derive(Serialize)]
struct Empty {}

#[derive(Debug, Args)]
struct NewAgentArgs {
    /// An existing agent, by its session [default: a new one]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The directory of a new agent [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The model of a new agent
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Instructions for the model of a new agent
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Ask before calls of this tool; * is all tools (may be repeated)
    #[arg(long, value_name = "TOOL")]
    approve: Vec<String>,
    /// Number of steps of a new agent that can be undone; 0: none [default: 10]
    #[arg(long, value_name = "N")]
    checkpoints: Option<u32>,
    /// An environment variable for the session of a new agent (may be repeated)
    #[arg(long = "env", value_name = "K=V", value_parser = args::assignment)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    most: LimitArgs,
    /// With --sandbox: where writes go, overlay (a layer of the session) or direct
    /// [default: overlay]
    #[arg(long, value_name = "overlay|direct", requires = "sandbox", value_parser = args::file_mode)]
    files: Option<FileMode>,
    #[command(flatten)]
    confinement: Confinement,
}

/// Variables of our environment that an agent on this machine gets, as with the SDKs. The
/// others are those of the local server, which another program may have started.
const CARRIED: [&str; 5] = ["PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ"];

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    made: NewAgentArgs,
    /// The task [default: stdin]
    task: Vec<String>,
    /// Print the result of the task as JSON
    #[arg(long)]
    json: bool,
}

/// Give an agent tasks, one per line
///
/// At a terminal, Ctrl-C cancels the current task, and Ctrl-D ends the chat. The agent stays:
/// `sessile agent chat --agent ID` continues with it.
#[derive(Debug, Args)]
struct Chat {
    #[command(flatten)]
    made: NewAgentArgs,
}

/// List all agents
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
struct List {
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Show {
    #[command(flatten)]
    which: AgentArg,
    /// Print the entries of the thread as JSON, one per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Resume {
    #[command(flatten)]
    which: AgentArg,
    /// Print the result of the task as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct AgentArg {
    /// The agent, by its session
    #[arg(value_name = "ID")]
    agent: String,
}

/// The server that carries out tasks.
pub(super) struct Server<'s> {
    settings: &'s Settings,
    remote: RefCell<Rc<Remote>>,
    runtime: tokio::runtime::Runtime,
}

impl Agent {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let remote = match api::Api::remote(settings) {
            Ok(remote) => remote,
            Err(_) => Remote::local(settings)?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = Server { settings, remote: RefCell::new(Rc::new(remote)), runtime };
        match self.action {
            Action::Run(run) => run.execute(&server),
            Action::Chat(chat) => chat.execute(&server),
            Action::List(list) => list.execute(&server),
            Action::Show(show) => show.execute(&server),
            Action::Resume(resume) => resume.execute(&server),
            Action::Cancel(which) => {
                server.post(&format!("/v1/agents/{}/cancel", which.agent), &Empty {})?;
                Ok(ExitCode::SUCCESS)
            }
            Action::Approve(Approve { which, call }) => server.decide(&which, call, true, None),
            Action::Deny(Deny { which, call, reason }) => {
                server.decide(&which, call, false, reason)
            }
            Action::Rewind(Rewind { which, step }) => {
                let path = format!("/v1/agents/{}/rewind", which.agent);
                showing::rewound(&server.post(&path, &RewindAgent { step })?)
            }
            Action::Undo(which) => {
                let path = format!("/v1/agents/{}/undo", which.agent);
                showing::rewound(&server.post(&path, &Empty {})?)
            }
            Action::Export(export) => export.execute(&server),
            Action::Import(import) => import.execute(&server),
        }
    }
}

impl Server<'_> {
    fn remote(&self) -> Rc<Remote> {
        self.remote.borrow().clone()
    }

    /// Looks for the server once more: another one may have taken its place. The user's
    /// own server is started again.
    fn find_again(&self) -> anyhow::Result<()> {
        let found = match *self.remote() {
            Remote::Network { .. } => api::Api::remote(self.settings)?,
            Remote::Local(_) => Remote::local(self.settings)?,
        };
        self.remote.replace(Rc::new(found));
        Ok(())
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call("GET", path, Vec::new())
    }

    fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.call("POST", path, serde_json::to_vec(body)?)
    }

    fn call(&self, method: &str, path: &str, body: Vec<u8>) -> anyhow::Result<Value> {
        self.runtime.block_on(async { answer(self.remote().call(method, path, body).await?).await })
    }

    /// Sends a request that must be carried out once. If the server dies meanwhile, the
    /// outcome is unknown: the next server is asked with the same key.
    fn order(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        let (key, body) = (new_key()?, serde_json::to_vec(body)?);
        let mut failures = 0;
        loop {
            let answered = self.runtime.block_on(async {
                whole(self.remote().order(path, &key, body.clone()).await?).await
            });
            match answered {
                Ok((status, answer)) => return said(status, &answer),
                Err(error) if failures == following::ATTEMPTS => return Err(error),
                Err(_) => {
                    failures += 1;
                    self.look_again();
                }
            }
        }
    }

    /// Looks for the server again after a failure, and pauses before the next attempt.
    fn look_again(&self) {
        let _ = self.find_again();
        std::thread::sleep(following::PAUSE);
    }

    fn upload(&self, path: &str, file: Vec<u8>) -> anyhow::Result<Value> {
        self.runtime.block_on(async { answer(self.remote().upload(path, file).await?).await })
    }

    /// Approves or denies a call.
    fn decide(
        &self,
        which: &AgentArg,
        call: Option<String>,
        allow: bool,
        reason: Option<String>,
    ) -> anyhow::Result<ExitCode> {
        let view = self.get(&format!("/v1/agents/{}", which.agent))?;
        let agent = session_of(&view)?;
        let waiting = view["waiting_for"].as_str().map(str::to_owned);
        let call = call.or(waiting).context("no call of this agent waits for approval")?;
        let decision = Decision { call, allow, reason };
        self.post(&format!("/v1/agents/{agent}/approvals"), &decision)?;
        Ok(ExitCode::SUCCESS)
    }

    fn submit(&self, agent: &str, text: &str, most: &LimitArgs) -> anyhow::Result<u64> {
        let task = NewTask { text, limits: most.is_any().then_some(most) };
        let begun = self.order(&format!("/v1/agents/{agent}/tasks"), &task)?;
        begun["task"].as_u64().context("a task's number")
    }
}

/// Returns a unique key for a request.
fn new_key() -> anyhow::Result<String> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the JSON of an answer, or its error.
async fn answer(response: hyper::Response<hyper::body::Incoming>) -> anyhow::Result<Value> {
    let (status, answer) = whole(response).await?;
    said(status, &answer)
}

async fn whole(
    mut response: hyper::Response<hyper::body::Incoming>,
) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    let mut answer = Vec::new();
    while let Some(part) = crate::call::next_part(response.body_mut()).await? {
        answer.extend_from_slice(&part);
    }
    Ok((response.status(), answer))
}

fn said(status: StatusCode, answer: &[u8]) -> anyhow::Result<Value> {
    let answer: Value = serde_json::from_slice(answer).context("an answer in JSON")?;
    if status.is_success() {
        return Ok(answer);
    }
    let message = answer["error"]["message"].as_str().unwrap_or("the server refuses");
    match answer["error"]["code"].as_str().and_then(advice) {
        Some(advice) => bail!("{message}; {advice}"),
        None => bail!("{message}"),
    }
}

/// Returns advice for the command line, for messages that have none.
fn advice(code: &str) -> Option<&'static str> {
    match code {
        "agent_not_found" => {
            Some("`sessile agent list` shows those that there are, `sessile agent run` makes one")
        }
        "session_not_found" => Some("`sessile agent list` shows all agents"),
        _ => None,
    }
}

impl NewAgentArgs {
    /// Returns the agent's session, made if necessary.
    fn agent(&self, server: &Server<'_>) -> anyhow::Result<String> {
        if let Some(agent) = &self.agent {
            let is_made = self.model.is_some()
                || self.instructions.is_some()
                || self.workspace.is_some()
                || self.checkpoints.is_some()
                || self.confinement.is_wanted()
                || !self.env.is_empty()
                || !self.approve.is_empty();
            ensure!(
                !is_made,
                "an agent that is there keeps its model, workspace, instructions, checkpoints, \
                 environment, sandbox and approvals; leave these options out"
            );
            let view = server.get(&format!("/v1/agents/{agent}"))?;
            return session_of(&view);
        }
        let workspace = match &self.workspace {
            Some(given) => std::fs::canonicalize(given)
                .with_context(|| format!("cannot work in {}", given.display()))?,
            None => std::env::current_dir()?,
        };
        let sandbox = self.confinement.policy(self.files)?;
        let carried = match (&*server.remote(), &sandbox) {
            (Remote::Local(_), None) => &CARRIED[..],
            // A sandbox cannot reveal variables that it does not get.
            (Remote::Local(_), Some(_)) | (Remote::Network { .. }, _) => &[],
        };
        let carried = carried.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
        let mut env: BTreeMap<String, String> =
            carried.map(|(name, value)| (name.to_owned(), value)).collect();
        env.extend(self.env.iter().cloned());
        let agent = StartAgent {
            workspace: Some(workspace.display().to_string()),
            model: self.model.clone(),
            instructions: self.instructions.clone(),
            checkpoints: self.checkpoints,
            approve: self.approve.clone(),
            env: Environment(env),
            sandbox: sandbox.map(serde_json::to_value).transpose()?,
            ..StartAgent::default()
        };
        session_of(&server.order("/v1/agents", &agent)?)
    }
}

fn session_of(view: &Value) -> anyhow::Result<String> {
    view["session_id"].as_str().map(str::to_owned).context("an agent's session")
}

impl Run {
    fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let mut task = self.task.join(" ");
        if task.is_empty() {
            ensure!(!io::stdin().is_terminal(), "say what is to be done: sessile agent run 'TASK'");
            io::stdin().lock().read_to_string(&mut task)?;
        }
        ensure!(!task.trim().is_empty(), "the task is empty; say what is to be done");
        let agent = self.made.agent(server)?;
        let task = server.submit(&agent, &task, &self.made.most)?;
        wait(server, &agent, task, self.json, Interrupt::Leaves)
    }
}

impl Resume {
    fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let view = server.get(&format!("/v1/agents/{}", self.which.agent))?;
        let agent = session_of(&view)?;
        let tasks = server.get(&format!("/v1/agents/{agent}/tasks?limit=1"))?;
        let last = tasks["tasks"][0]["task"].as_u64();
        let task = last.with_context(|| {
            let earlier = match view["task_count"].as_u64() {
                Some(0) | None => "has had no task yet",
                Some(_) => "began anew, and has had no task since",
            };
            format!("this agent {earlier}; give it one: sessile agent run --agent {agent} 'TASK'")
        })?;
        wait(server, &agent, task, self.json, Interrupt::Leaves)
    }
}

/// Shows a task until it ends.
fn wait(
    server: &Server<'_>,
    agent: &str,
    task: u64,
    as_json: bool,
    interrupt: Interrupt,
) -> anyhow::Result<ExitCode> {
    let following = leaving::Following::of(agent, interrupt)?;
    follow(server, agent, task, as_json)?;
    drop(following);
    let view = server.get(&format!("/v1/agents/{agent}/tasks/{task}?wait=10s"))?;
    if as_json {
        output::json(&view)?;
    } else {
        showing::ending(
            &view,
            match interrupt {
                Interrupt::Leaves => Some(agent),
                // Whoever chats goes on with the next line.
                Interrupt::Cancels => None,
            },
        );
    }
    let is_done = view["ended"] == "done";
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl List {
    fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let mut answer = server.get("/v1/agents")?;
        match Form::of_stdout(self.json) {
            Form::Json => output::json(&answer["agents"])?,
            Form::Text(page) => {
                let agents: Vec<AgentRow> = serde_json::from_value(answer["agents"].take())?;
                let home = std::env::home_dir();
                let text = agents::list(&agents, home.as_deref(), Timestamp::now(), page);
                output::all(&mut io::stdout().lock(), text.as_bytes())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    fn execute(self, server: &Server<'_>) -> anyhow::Result<ExitCode> {
        let view = server.get(&format!("/v1/agents/{}", self.which.agent))?;
        let agent = session_of(&view)?;
        let page = Page::at(&io::stdout());
        following::entries(server, &agent, |entry| {
            if self.json {
                return output::json(entry);
            }
            showing::entry(entry, page, &mut io::stdout().lock())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
