//! Agents: a session with a thread, and tasks that outlive the client that gave them.
//!
//! `sessile_agent` decides what an agent does next, without I/O; this module does it. An
//! agent's id is its session's id. Beside the session's records lie `agent.json`, which
//! says how the agent was made, and `thread.jsonl`, which alone is needed to go on after
//! a crash. An agent at work has a driver, one asynchronous task of the server, which
//! holds a lock on the thread: no two servers work on one thread.
//!
//! Keys of models come from the configured place: a file, which is read for each request,
//! or a variable, which is taken out of the environment when the server starts. They are
//! nowhere else: in no other file, log, thread or environment of a process.

mod audit;
mod command_agent;
mod continuing;
mod digest;
mod driver;
mod files;
mod following;
mod forking;
mod jobs;
mod locks;
mod model;
mod moving;
mod perform;
mod profile;
mod rewinding;
mod storing;
mod thread_file;
mod view;

pub(crate) use driver::AgentRewound;
pub(crate) use following::{AgentEvent, AgentFollower, Retrying};
pub use model::{CommandAgent, Key, Model, Variable};
pub(crate) use moving::{ImportOrder, MovedAway, restored};
pub(crate) use profile::NewAgent;
pub(crate) use view::{AgentView, TaskView};

use crate::keepers::{blocking, lock};
use crate::service::{Caller, ErrorCode, OrderKey, Service, ServiceError, StartedOnce};
use driver::{Driver, Handle, Order};
use following::FilePosition;
use locks::AgentLocks;
use model::Backend;
use profile::{KeptCheckpoints, Profile};
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::limits::{Limits, Price};
use sessile_agent::model::{Failure, FailureKind};
use sessile_agent::thread::{Entry, Verdict};
use sessile_agent::{RewindTo, Submission};
use sessile_protocol::SessionId;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thread_file::Identity;
use tokio::sync::oneshot;

/// The models and drivers of a server.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    models: BTreeMap<String, Arc<Model>>,
    /// The configuration file for models, if callers may know its path.
    configuration: Option<PathBuf>,
    /// Agents with a driver. A driver that has ended is replaced.
    live: Mutex<HashMap<SessionId, Handle>>,
    /// Drivers of one agent are started one after the other: two at once would each take
    /// the other's lock on the thread for that of another server.
    starting: AgentLocks,
    /// Agents whose session is gone are brought back once, not concurrently.
    recovering: AgentLocks,
    /// Forks of one agent are made one after the other.
    forking: AgentLocks,
    /// By the model's name: each has its own certificates.
    clients: Mutex<HashMap<String, reqwest::Client>>,
}

impl Agents {
    pub(crate) fn new(models: Vec<Model>) -> Self {
        let models = models.into_iter().map(|model| (model.name.clone(), Arc::new(model)));
        Self { models: models.collect(), ..Self::default() }
    }

    pub(crate) fn with_configuration(self, file: PathBuf) -> Self {
        Self { configuration: Some(file), ..self }
    }

    /// Returns the message for a server without models. Users of the local server do not
    /// know that there is a server to restart.
    fn none(&self) -> String {
        match &self.configuration {
            Some(file) => format!(
                "this server has no model; add a [[model]] to {} (yours alone: chmod 600), and end \
                 it with `kill {}`: whoever needs it next starts it again",
                file.display(),
                std::process::id()
            ),
            None => "this server has no model; add a [[model]] to its configuration, and start it \
                     again"
                .to_owned(),
        }
    }

    /// Returns the model of this name, or the only one if no name is given.
    fn model(&self, name: Option<&str>) -> Result<Arc<Model>, ServiceError> {
        let known = || self.models.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let refuse = |message: String| Err(ServiceError::new(ErrorCode::BadRequest, message));
        match name {
            Some(name) => match self.models.get(name) {
                Some(model) => Ok(model.clone()),
                None if self.models.is_empty() => refuse(self.none()),
                None => refuse(format!("there is no model \"{name}\"; there are: {}", known())),
            },
            None => match self.models.values().next() {
                Some(model) if self.models.len() == 1 => Ok(model.clone()),
                Some(_) => refuse(format!("say which model; there are: {}", known())),
                None => refuse(self.none()),
            },
        }
    }

    /// Returns the backend for an agent with this model.
    async fn backend(&self, name: &str) -> Result<Backend, ServiceError> {
        let model = self.model(Some(name))?;
        let client = self.client(&model).await?;
        Ok(Backend::Model { model, client })
    }

    async fn client(&self, model: &Model) -> Result<reqwest::Client, ServiceError> {
        if let Some(client) = lock(&self.clients).get(&model.name) {
            return Ok(client.clone());
        }
        let client = model.client().await?;
        lock(&self.clients).insert(model.name.clone(), client.clone());
        Ok(client)
    }
}

/// Whether the same request may have made the agent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    First,
    Repeated,
}

impl Service {
    /// Makes an agent: a new session with an empty thread, or a thread for an existing session.
    pub(crate) async fn create_agent(
        self: &Arc<Self>,
        caller: &Caller,
        key: Option<OrderKey>,
        new: NewAgent,
    ) -> Result<AgentView, ServiceError> {
        let model = self.agents.model(new.model.as_deref())?;
        check_tools(&new.approve)?;
        let (session, attempt) = match &new.session {
            Some(session) => (self.resolve(caller, session).await?, Attempt::First),
            None => match self.start_once(caller, key, new.start.clone()).await? {
                StartedOnce::Now(metadata) => (metadata.session_id, Attempt::First),
                StartedOnce::Before(metadata) => (metadata.session_id, Attempt::Repeated),
            },
        };
        let place = self.place(caller, &session).await?;
        let directory = place.directory.clone();
        blocking(move || {
            if attempt == Attempt::Repeated {
                if thread_file::is_whole(&directory) {
                    return Ok(());
                }
                // The server died while it made the thread, so no client knows this thread.
                thread_file::remove(&directory)?;
            }
            let checkpoints = match new.checkpoints {
                Some(keep) => KeptCheckpoints { keep, files: true },
                None => KeptCheckpoints::fitting(&directory.metadata()?.work_dir),
            };
            let profile = Profile::new(&new, &model, checkpoints)?;
            let digest = thread_file::create(&directory, &profile, &[profile.first_entry()])?;
            audit::write(&directory, &profile, &digest)
        })
        .await?;
        self.agent(caller, &session).await
    }

    pub(crate) async fn agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<AgentView, ServiceError> {
        let place = self.place(caller, id).await?;
        let waiting = lock(&self.agents.live).get(id).and_then(Handle::waiting);
        blocking(move || AgentView::read(&place.directory, waiting)).await
    }

    /// Returns all agents that this caller may use, newest first.
    pub(crate) async fn agents(
        self: &Arc<Self>,
        caller: &Caller,
    ) -> Result<Vec<AgentView>, ServiceError> {
        let ids = self.session_ids(caller).await?;
        let waiting: HashMap<SessionId, String> = {
            let live = lock(&self.agents.live);
            live.iter().filter_map(|(id, handle)| Some((id.clone(), handle.waiting()?))).collect()
        };
        let sessions = self.sessions().clone();
        blocking(move || {
            // Skips sessions without an agent, or just removed.
            let view = |id: SessionId| {
                let directory = sessions.find(&id).ok()?;
                AgentView::read(&directory, waiting.get(&id).cloned()).ok()
            };
            Ok(ids.into_iter().filter_map(view).collect())
        })
        .await
    }

    /// Begins a task. It goes on even if the caller goes away.
    pub(crate) async fn submit_task(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        text: String,
        limits: Option<Limits>,
        key: Option<String>,
    ) -> Result<(TaskNo, Continuity), ServiceError> {
        let continuity = self.continue_session(caller, id).await?;
        let handle = self.driver(caller, id).await?;
        let (answer, answered) = oneshot::channel();
        let mut limits = limits.unwrap_or_default();
        if limits.price == Price::default() {
            limits.price = handle.price;
        }
        check_cost(&limits)?;
        let submission = Submission { text, limits, continuity, key };
        handle.send(Order::Submit(submission, answer)).await?;
        answered.await.map_err(|_| gone())?
    }

    /// Rewinds an agent: its thread, its interpreters and its files.
    pub(crate) async fn rewind_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        to: RewindTo,
    ) -> Result<AgentRewound, ServiceError> {
        self.place(caller, id).await?;
        let handle = self.driver(caller, id).await?;
        let (answer, answered) = oneshot::channel();
        handle.send(Order::Rewind(to, answer)).await?;
        answered.await.map_err(|_| gone())?
    }

    /// Returns the newest tasks, newest first.
    pub(crate) async fn tasks(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        limit: usize,
    ) -> Result<Vec<TaskView>, ServiceError> {
        let place = self.place(caller, id).await?;
        blocking(move || TaskView::list(&place.directory, limit)).await
    }

    /// Returns entries of a thread after a given one, and whether there are more.
    pub(crate) async fn thread(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Entry>, bool), ServiceError> {
        let place = self.place(caller, id).await?;
        blocking(move || {
            let entries = thread_file::entries(&place.directory)?.into_iter();
            let mut page: Vec<_> =
                entries.filter(|entry| entry.entry > after).take(limit + 1).collect();
            let has_more = page.len() > limit;
            page.truncate(limit);
            Ok((page, has_more))
        })
        .await
    }

    /// Stops the current task, if any.
    pub(crate) async fn cancel_task(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<(), ServiceError> {
        self.place(caller, id).await?;
        self.driver(caller, id).await?.send(Order::Cancel).await
    }

    /// Approves or denies a call.
    pub(crate) async fn decide_call(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        call: String,
        verdict: Verdict,
    ) -> Result<(), ServiceError> {
        self.place(caller, id).await?;
        let (answer, answered) = oneshot::channel();
        let handle = self.driver(caller, id).await?;
        handle.send(Order::Decide { call, verdict, answer }).await?;
        answered.await.map_err(|_| gone())?
    }

    /// Returns the state of a task; waits for its end for at most `wait`.
    pub(crate) async fn task(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        task: TaskNo,
        wait: Duration,
    ) -> Result<TaskView, ServiceError> {
        let place = self.place(caller, id).await?;
        if !wait.is_zero() {
            let directory = place.directory.clone();
            let digest = blocking(move || thread_file::digest(&directory)).await?;
            let read = FilePosition { bytes: digest.bytes, before: digest.before() };
            if digest.task(task).is_some_and(|line| line.ended.is_none()) {
                let mut follower = self.follow_agent(caller, id, 0).await?.reading_on(read);
                let waited = tokio::time::timeout(wait, follower.until_ended(task)).await;
                if let Ok(outcome) = waited {
                    outcome?;
                }
            }
        }
        blocking(move || TaskView::read(&place.directory, task)).await
    }

    /// Follows the events of a thread, after a given entry.
    pub(crate) async fn follow_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        after: u64,
    ) -> Result<AgentFollower, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let is_open = blocking(move || thread_file::is_open(&directory)).await?;
        // A task that a crash left open is resumed when a client follows it.
        let handle = match is_open {
            true => Some(self.driver(caller, id).await?),
            false => lock(&self.agents.live).get(id).cloned(),
        };
        Ok(AgentFollower::new(place.directory.clone(), after, handle))
    }

    /// Whether a task is in progress. One that waits for approval does not count: it may
    /// wait for ever, and the client that approves starts a server, which goes on with the task.
    pub(crate) fn has_tasks(&self) -> bool {
        lock(&self.agents.live).values().any(Handle::is_working)
    }

    /// Resumes the tasks that the last server left open.
    pub async fn resume_agents(self: &Arc<Self>) {
        let caller = Caller::owner();
        let Ok(ids) = self.session_ids(&caller).await else { return };
        for id in ids {
            let Ok(place) = self.place(&caller, &id).await else { continue };
            tokio::spawn(self.clone().await_forks(id.clone(), place.directory.clone()));
            let directory = place.directory.clone();
            let is_open = blocking(move || thread_file::is_open(&directory)).await;
            if !matches!(is_open, Ok(true)) {
                continue;
            }
            if let Err(error) = self.driver(&caller, &id).await {
                tracing::warn!(session = %id, %error, "a task cannot be gone on with");
            }
        }
    }

    /// Returns the driver of this agent, and starts it if there is none.
    async fn driver(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Handle, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let _lock = self.agents.starting.lock(id).await;
        let found = blocking(move || Ok(Identity::in_directory(&directory))).await?;
        {
            let mut live = lock(&self.agents.live);
            match live.get(id).filter(|handle| handle.is_live()) {
                Some(handle) if handle.works_on(found) => return Ok(handle.clone()),
                // Its session was deleted, and another one is in its place. Without a
                // handle, the driver ends.
                Some(_) | None => live.remove(id),
            };
        }
        let directory = place.directory.clone();
        let opened = blocking(move || thread_file::open(&directory)).await?;
        let backend = match self.agents.backend(&opened.profile.model).await {
            Ok(backend) => backend,
            Err(error) if opened.file.digest().is_open() => {
                Backend::Missing(Failure::new(FailureKind::UnknownModel, error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let (driver, handle) = Driver::new(self.clone(), caller.clone(), &place, opened, backend);
        let mut live = lock(&self.agents.live);
        live.retain(|_, handle| handle.is_live());
        // This driver holds the lock on the thread, so no other can have been inserted.
        live.insert(id.clone(), handle.clone());
        drop(live);
        tokio::spawn(driver.work());
        Ok(handle)
    }
}

/// Refuses unknown names: a misspelt tool would run its calls without approval.
fn check_tools(approve: &[String]) -> Result<(), ServiceError> {
    let known: Vec<String> = perform::tools().into_iter().map(|tool| tool.name).collect();
    match approve.iter().find(|name| *name != "*" && !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let known = known.join(", ");
            let message = format!(
                "approve: there is no tool {name:?}; the tools are {known}, and \"*\" is all of them"
            );
            Err(ServiceError::new(ErrorCode::BadRequest, message))
        }
    }
}

/// Refuses a cost limit without prices: it would never be reached.
fn check_cost(limits: &Limits) -> Result<(), ServiceError> {
    if limits.max_cost.is_none() || limits.price != Price::default() {
        return Ok(());
    }
    let message = "max_cost needs prices, and this model has none; set input-price and \
        output-price in the server's configuration, or say \"price\" in the limits";
    Err(ServiceError::new(ErrorCode::BadRequest, message))
}

fn gone() -> ServiceError {
    ServiceError::new(ErrorCode::ShuttingDown, "the agent has just stopped; try again")
}
