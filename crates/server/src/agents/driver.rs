//! The driver of one agent: performs the decided effects in order.

mod effects;
mod handle;

pub(crate) use handle::AgentRewound;
pub(super) use handle::{DriverStatus, Handle, Order};

use super::following::Progress;
use super::jobs::Jobs;
use super::model::Backend;
use super::perform::{self, CurrentOperation};
use super::profile::{Profile, now_ms};
use super::rewinding::{self, PendingRewind};
use super::storing::{NotStored, ThreadUploader};
use super::thread_file::{Opened, ThreadFile};
use crate::keepers::Place;
use crate::service::{Caller, ErrorCode, Service, ServiceError};
use futures_util::future::BoxFuture;
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::model::Usage;
use sessile_agent::thread::{Activity, Ending, Entry, EntryKind, Moved};
use sessile_agent::tools::Tool;
use sessile_agent::{Agent, Config, Effect, Input, Refusal, Stage, Submission};
use sessile_protocol::SessionId;
use sessile_store::Directory;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};

/// How long a driver without work stays.
const IDLE: Duration = Duration::from_secs(30);

/// How many pieces of a reply a slow watcher may lag behind. It misses older ones, and
/// gets the whole reply at its end.
const DELTAS: usize = 1024;

pub(super) struct Driver {
    service: Arc<Service>,
    caller: Caller,
    session: SessionId,
    directory: Directory,
    agent: Agent,
    profile: Profile,
    file: Option<ThreadFile>,
    backend: Backend,
    tools: Vec<Tool>,
    orders: mpsc::Receiver<Order>,
    status: watch::Sender<DriverStatus>,
    progress: broadcast::Sender<Progress>,
    /// The effects that were decided when the thread was opened.
    first: Vec<Effect>,
    /// The input of that decision, if a task is open: the session may have been lost since.
    resuming: Option<(Config, Vec<Entry>)>,
    /// The operation in progress.
    current: Option<BoxFuture<'static, Input>>,
    /// What the model's answer has used so far.
    used: watch::Receiver<Usage>,
    running: CurrentOperation,
    /// The client that waits for a rewind.
    rewinder: PendingRewind,
    /// Brings the thread to the store.
    uploader: ThreadUploader,
    /// Records background jobs.
    jobs: Jobs,
    /// What a command-line agent reports while it runs.
    activities: Option<mpsc::Receiver<Activity>>,
    /// The result of the finished operation, held until its earlier activities are handled.
    finished: Option<Input>,
}

impl Driver {
    pub(super) fn new(
        service: Arc<Service>,
        caller: Caller,
        place: &Place,
        opened: Opened,
        backend: Backend,
    ) -> (Self, Handle) {
        let Opened { profile, entries, file, home } = opened;
        let tools = perform::tools();
        let config =
            profile.config(tools.iter().map(|tool| tool.name.clone()).collect(), backend.worker());
        let count = entries.len() as u64;
        let is_open = file.digest().is_open();
        let resuming = is_open.then(|| (config.clone(), entries.clone()));
        let (agent, first) = Agent::resumed(config, entries, now_ms())
            .expect("a thread that was read begins with its beginning");
        let status = DriverStatus { entries: count, is_busy: is_open, ..DriverStatus::default() };
        let (orders, inbox) = mpsc::channel(16);
        let (told, status) = watch::channel(status);
        let (progress, _) = broadcast::channel(DELTAS);
        let (price, identity) = (backend.price(), file.identity());
        let handle = Handle { orders, status, progress: progress.clone(), price, file: identity };
        // If another machine has taken up the session meanwhile, it stays there.
        let caller = caller.staying();
        let uploader = ThreadUploader::of(&service, &place.id, home);
        let jobs = Jobs::of(&service, &caller, place);
        let driver = Self {
            service,
            caller,
            session: place.id.clone(),
            directory: place.directory.clone(),
            agent,
            profile,
            file: Some(file),
            backend,
            tools,
            orders: inbox,
            status: told,
            progress,
            first,
            resuming,
            current: None,
            used: watch::channel(Usage::default()).1,
            running: CurrentOperation::default(),
            rewinder: PendingRewind::default(),
            uploader,
            jobs,
            activities: None,
            finished: None,
        };
        (driver, handle)
    }

    pub(super) async fn work(mut self) {
        let mut outcome = self.resume().await;
        while outcome.is_ok() {
            outcome = match self.next().await {
                Some(event) => self.take(event).await,
                None => return,
            };
        }
        if let Err(error) = outcome {
            // The thread is as it was before the failed write; the next driver goes on
            // from there.
            tracing::error!(session = %self.session, %error, "an agent has stopped");
        }
    }

    /// Continues where the last driver left the thread. First checks what became of the
    /// session since, so that the model learns of it before it replies.
    async fn resume(&mut self) -> Result<(), ServiceError> {
        if let Some((config, mut entries)) = self.resuming.take()
            && let Some(what) = self.since().await
        {
            let entry = Entry { entry: entries.len() as u64 + 1, at_ms: now_ms(), what };
            self.record(entry.clone()).await?;
            entries.push(entry);
            let resumed = Agent::resumed(config, entries, now_ms());
            (self.agent, self.first) = resumed.ok_or_else(ServiceError::unexpected)?;
        }
        let first = std::mem::take(&mut self.first);
        self.perform(first).await
    }

    /// Returns what became of the agent since its last driver, if anything changed.
    async fn since(&mut self) -> Option<EntryKind> {
        if let Err(NotStored::Moved(failure)) = self.uploader.secure().await {
            return Some(EntryKind::Stopping { ending: Ending::Failed { failure } });
        }
        let woken = self.service.wake_agent(&self.caller, &self.session).await;
        // If the session was ended by a client, the calls report that.
        woken.ok().filter(|continuity| !continuity.is_live()).map(EntryKind::Continued)
    }

    /// Returns the next event; none when nothing is left to do.
    async fn next(&mut self) -> Option<Event> {
        if let Some(activity) = self.activities.as_mut().and_then(|told| told.try_recv().ok()) {
            return Some(Event::Happened(Input::Active(activity)));
        }
        if let Some(input) = self.finished.take() {
            return Some(Event::Happened(input));
        }
        let wait = match self.agent.due_ms() {
            Some(due) => Duration::from_millis(due.saturating_sub(now_ms())),
            None if self.current.is_none() && *self.agent.stage() == Stage::Idle => IDLE,
            None => Duration::MAX,
        };
        let current = async {
            match &mut self.current {
                Some(current) => current.await,
                None => std::future::pending().await,
            }
        };
        let activities = &mut self.activities;
        let told = async {
            match activities {
                Some(told) => match told.recv().await {
                    Some(activity) => activity,
                    None => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        // Every branch is cancel-safe: the operation in progress stays in `current`.
        tokio::select! {
            activity = told => Some(Event::Happened(Input::Active(activity))),
            input = current => {
                self.current = None;
                match self.activities.as_mut().and_then(|told| told.try_recv().ok()) {
                    Some(activity) => {
                        self.finished = Some(input);
                        Some(Event::Happened(Input::Active(activity)))
                    }
                    None => Some(Event::Happened(input)),
                }
            }
            order = self.orders.recv() => order.map(Event::Ordered),
            () = tokio::time::sleep(wait.min(Duration::from_secs(3600))) => {
                match self.agent.due_ms() {
                    Some(_) => Some(Event::Happened(Input::Due)),
                    None if *self.agent.stage() == Stage::Idle => self.close_orders(),
                    None => Some(Event::Happened(Input::Due)),
                }
            }
        }
    }

    /// Closes the channel of orders, and returns an order that has just arrived, if any.
    fn close_orders(&mut self) -> Option<Event> {
        self.orders.close();
        self.orders.try_recv().ok().map(Event::Ordered)
    }

    async fn take(&mut self, event: Event) -> Result<(), ServiceError> {
        match event {
            Event::Happened(input) => {
                for continuity in self.running.take_continuity() {
                    let effects = self.agent.step(Input::Continued(continuity), now_ms());
                    self.perform(effects).await?;
                }
                let effects = self.step(input);
                let outcome = self.perform(effects).await;
                if *self.agent.stage() != Stage::Rewinding {
                    self.rewinder.answer(&self.agent);
                }
                outcome
            }
            Event::Ordered(Order::Submit(submission, answer)) => {
                let outcome = self.submit(submission).await;
                let told = match &outcome {
                    Ok(Ok(begun)) => Ok(begun.clone()),
                    Ok(Err(refusal)) => Err(refused(refusal)),
                    Err(error) => Err(error.clone()),
                };
                let _ = answer.send(told);
                outcome.map(|_| ())
            }
            Event::Ordered(Order::Rewind(to, answer)) => match self.agent.rewind(to, now_ms()) {
                Ok(effects) => {
                    self.rewinder.expect(answer);
                    let outcome = self.perform(effects).await;
                    if *self.agent.stage() != Stage::Rewinding {
                        self.rewinder.answer(&self.agent);
                    }
                    outcome
                }
                Err(refusal) => {
                    let _ = answer.send(Err(refused(&refusal)));
                    Ok(())
                }
            },
            Event::Ordered(Order::Move { to, entries, answer }) => {
                let moved = self.move_to(to, entries).await;
                let told = moved.as_ref().map_or_else(|e| Err(e.clone()), |()| Ok(()));
                let _ = answer.send(told);
                Ok(())
            }
            Event::Ordered(Order::Cancel) => {
                let effects = self.step(Input::Cancelled);
                self.perform(effects).await
            }
            Event::Ordered(Order::Decide { call, verdict, answer }) => {
                let is_asked = matches!(self.agent.stage(), Stage::Approving { call: asked } if *asked == call);
                if !is_asked {
                    let message = format!("call {call} does not wait for approval");
                    let _ = answer.send(Err(ServiceError::new(ErrorCode::NotFound, message)));
                    return Ok(());
                }
                let effects = self.agent.step(Input::Decided { call, verdict }, now_ms());
                let outcome = self.perform(effects).await;
                let _ = answer.send(Ok(()));
                outcome
            }
        }
    }

    /// An answer that is given up with this has used what was told of it until now.
    fn step(&mut self, input: Input) -> Vec<Effect> {
        let using = self.agent.step(Input::Using(*self.used.borrow()), now_ms());
        debug_assert!(using.is_empty(), "{using:?}");
        self.agent.step(input, now_ms())
    }

    /// What has become of the session since the thread was last used is told first.
    async fn submit(
        &mut self,
        submission: Submission,
    ) -> Result<Result<(TaskNo, Continuity), Refusal>, ServiceError> {
        if !self.agent.is_busy() && self.agent.moved().is_none() {
            let history = self.service.history(&self.caller, &self.session, HISTORY).await;
            for (run, note) in rewinding::unknown_to(&self.agent, &history.unwrap_or_default()) {
                if let Ok(effects) = self.agent.session_rewound(run, note, now_ms()) {
                    self.perform(effects).await?;
                }
            }
        }
        let continuity = self.agent.continuity(submission.continuity.clone());
        match self.agent.submit(submission, now_ms()) {
            Ok((task, effects)) => self.perform(effects).await.map(|()| Ok((task, continuity))),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    async fn move_to(&mut self, to: Moved, entries: u64) -> Result<(), ServiceError> {
        if self.agent.entries().len() as u64 != entries {
            let message = "the agent has gone on since it was exported; export it again";
            return Err(ServiceError::new(ErrorCode::Busy, message));
        }
        let effects = self.agent.move_to(to, now_ms()).map_err(|refusal| refused(&refusal))?;
        self.perform(effects).await
    }
}

/// How many runs of a session are searched for rewinds.
const HISTORY: u64 = 1000;

fn refused(refusal: &Refusal) -> ServiceError {
    let code = match refusal {
        Refusal::Busy(_) | Refusal::Rewinding => ErrorCode::Busy,
        Refusal::Empty => ErrorCode::BadRequest,
        Refusal::KeyReused(_) => ErrorCode::KeyReused,
        Refusal::UnknownStep { .. } | Refusal::NothingToUndo | Refusal::NoCheckpoint { .. } => {
            ErrorCode::CheckpointNotFound
        }
        Refusal::Moved { .. } => ErrorCode::AgentMoved,
    };
    let error = ServiceError::new(code, refusal.to_string());
    match refusal {
        Refusal::UnknownStep { .. } => {
            error.with_hint("take a step that there is; 0 is before the first one")
        }
        Refusal::NothingToUndo => error.with_hint("give the agent a task first"),
        Refusal::NoCheckpoint { .. } => error.with_hint(rewinding::LATER),
        Refusal::Busy(_) => error.with_hint("wait for the task, or cancel it"),
        Refusal::Rewinding => error.with_hint("try again in a moment"),
        Refusal::Empty | Refusal::KeyReused(_) | Refusal::Moved { .. } => error,
    }
}

enum Event {
    Happened(Input),
    Ordered(Order),
}
