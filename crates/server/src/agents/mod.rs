//! Agents: a session with a thread, and tasks that outlive whoever asked for them.
//!
//! What an agent does next is decided in `sessile_agent`, without I/O; here it is
//! done. An agent is known by its session's id. Beside the session's records lie
//! `agent.json`, which says how it was made, and `thread.jsonl`, from which alone
//! it goes on after a crash. A task of an agent has a driver, one asynchronous task
//! of the server's, which holds a lock on the thread: no two servers work on one.
//!
//! Keys of models come from where the configuration says: a file, which is read when a
//! model is asked, or a variable, which is taken out of the environment when the server
//! starts. They are nowhere else: in no file, log, thread or environment of a process.

mod audit;
mod commanded;
mod continuing;
mod digest;
mod driver;
mod files;
mod following;
mod forking;
mod jobs;
mod model;
mod moving;
mod perform;
mod profile;
mod rewinding;
mod storing;
mod thread_file;
mod turns;
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
use following::Reading;
use model::Backend;
use profile::{KeptCheckpoints, Profile};
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::limits::{Limits, Price};
use sessile_agent::model::{Failure, Fault};
use sessile_agent::thread::{Entry, Verdict};
use sessile_agent::{RewindTo, Submission};
use sessile_protocol::SessionId;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thread_file::Identity;
use tokio::sync::oneshot;
use turns::Turns;

/// What a server needs for its agents.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    models: BTreeMap<String, Arc<Model>>,
    /// The file that models are added to, if callers may know it.
    configuration: Option<PathBuf>,
    /// Those that something is done for. A driver that has ended is replaced.
    live: Mutex<HashMap<SessionId, Handle>>,
    /// Drivers of one agent are started one after the other: two at once would each take
    /// the other's lock on the thread for that of another server.
    starting: Turns,
    /// An agent whose session is gone is brought back once.
    recovering: Turns,
    /// Forks of one agent are made one after the other.
    forking: Turns,
    /// By the model's name: each has certificates of its own.
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

    /// What is said where there is no model. Who starts the local server does not know
    /// that there is one to start again.
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

    /// The model of this name, or the only one that there is.
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

    /// What an agent with a model of this name thinks with.
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

/// Whether an agent may have been made by the same order before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    New,
    Known,
}

impl Service {
    /// Makes an agent: a new session with an empty thread, or a thread for a session
    /// that is there.
    pub(crate) async fn create_agent(
        self: &Arc<Self>,
        caller: &Caller,
        key: Option<OrderKey>,
        new: NewAgent,
    ) -> Result<AgentView, ServiceError> {
        let model = self.agents.model(new.model.as_deref())?;
        check_tools(&new.approve)?;
        let (session, age) = match &new.session {
            Some(session) => (self.resolve(caller, session).await?, Age::New),
            None => match self.start_once(caller, key, new.start.clone()).await? {
                StartedOnce::Now(metadata) => (metadata.session_id, Age::New),
                StartedOnce::Before(metadata) => (metadata.session_id, Age::Known),
            },
        };
        let place = self.place(caller, &session).await?;
        let directory = place.directory.clone();
        blocking(move || {
            if age == Age::Known {
                if thread_file::is_whole(&directory) {
                    return Ok(());
                }
                // The server died while it made the thread, which nobody knows yet.
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

    /// All agents that this caller may use, newest first.
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
            // Others have no agent, or have just been removed.
            let view = |id: SessionId| {
                let directory = sessions.find(&id).ok()?;
                AgentView::read(&directory, waiting.get(&id).cloned()).ok()
            };
            Ok(ids.into_iter().filter_map(view).collect())
        })
        .await
    }

    /// Begins a task. It goes on, whatever becomes of the caller.
    pub(crate) async fn submit_task(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        text: String,
        limits: Option<Limits>,
        key: Option<String>,
    ) -> Result<(TaskNo, Continuity), ServiceError> {
        let continuity = self.go_on_with(caller, id).await?;
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

    /// Takes an agent back: its thread, its interpreters and its files.
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

    /// The newest tasks, newest first.
    pub(crate) async fn tasks(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        limit: usize,
    ) -> Result<Vec<TaskView>, ServiceError> {
        let place = self.place(caller, id).await?;
        blocking(move || TaskView::list(&place.directory, limit)).await
    }

    /// Entries of a thread after one of them, and whether there are more.
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

    /// Stops the task that is under way, if any.
    pub(crate) async fn cancel_task(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<(), ServiceError> {
        self.place(caller, id).await?;
        self.driver(caller, id).await?.send(Order::Cancel).await
    }

    /// Says whether a call may be performed.
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

    /// What becomes of a task; waits for its end as long as is wanted.
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
            let read = Reading { bytes: digest.bytes, before: digest.before() };
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

    /// What happens in a thread, from after an entry on.
    pub(crate) async fn follow_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        after: u64,
    ) -> Result<AgentFollower, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let is_open = blocking(move || thread_file::is_open(&directory)).await?;
        // A task that a crash has left is taken up by whoever looks at it.
        let handle = match is_open {
            true => Some(self.driver(caller, id).await?),
            false => lock(&self.agents.live).get(id).cloned(),
        };
        Ok(AgentFollower::new(place.directory.clone(), after, handle))
    }

    /// Whether a task is under way. One that waits for somebody's word does not count: it
    /// may wait for ever, and whoever says it starts a server that goes on with the task.
    pub(crate) fn has_tasks(&self) -> bool {
        lock(&self.agents.live).values().any(Handle::is_working)
    }

    /// Goes on with the tasks that the last server has left.
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

    /// Whoever works for this agent, started if nobody does.
    async fn driver(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Handle, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let _turn = self.agents.starting.turn(id).await;
        let found = blocking(move || Ok(Identity::in_directory(&directory))).await?;
        {
            let mut live = lock(&self.agents.live);
            match live.get(id).filter(|handle| handle.is_live()) {
                Some(handle) if handle.works_on(found) => return Ok(handle.clone()),
                // Its session was deleted, and another one is in its place. Without a
                // handle it goes.
                Some(_) | None => live.remove(id),
            };
        }
        let directory = place.directory.clone();
        let opened = blocking(move || thread_file::open(&directory)).await?;
        let backend = match self.agents.backend(&opened.profile.model).await {
            Ok(backend) => backend,
            Err(error) if opened.file.digest().is_open() => {
                Backend::Missing(Failure::new(Fault::UnknownModel, error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let (driver, handle) = Driver::new(self.clone(), caller.clone(), &place, opened, backend);
        let mut live = lock(&self.agents.live);
        live.retain(|_, handle| handle.is_live());
        // The lock on the thread is ours, so nobody else can have put one here.
        live.insert(id.clone(), handle.clone());
        drop(live);
        tokio::spawn(driver.work());
        Ok(handle)
    }
}

/// A name that is none would have its calls carried out unasked.
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

/// A limit that nothing counts towards would be none.
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
