//! One agent at work: performs what was decided, in order.

use super::commanded::Commanded;
use super::following::{Progress, Retrying};
use super::model::{Mind, Question};
use super::perform::{self, Performance, Running};
use super::profile::now_ms;
use super::rewinding::{self, Rewinder};
use super::thread_file::{Identity, Opened, ThreadFile};
use super::{audit, gone, profile::Profile};
use crate::keepers::{Place, blocking};
use crate::service::{Caller, ErrorCode, Service, ServiceError};
use futures_util::future::BoxFuture;
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::limits::Price;
use sessile_agent::thread::{Activity, Entry, Moved, Rewind, Verdict, What};
use sessile_agent::tools::Tool;
use sessile_agent::{
    Agent, Config, Effect, Input, Purpose, Question as Asked, Refusal, RewindTo, Stage, Submission,
};
use sessile_protocol::{RewoundView, SessionId};
use sessile_store::Directory;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// What callers want of an agent.
#[derive(Debug)]
pub(super) enum Order {
    Submit(Submission, oneshot::Sender<Result<(TaskNo, Continuity), ServiceError>>),
    Cancel,
    Decide {
        call: String,
        verdict: Verdict,
        answer: oneshot::Sender<Result<(), ServiceError>>,
    },
    Rewind(RewindTo, oneshot::Sender<Result<AgentRewound, ServiceError>>),
    /// It goes on elsewhere, as it was after so many entries.
    Move {
        to: Moved,
        entries: u64,
        answer: oneshot::Sender<Result<(), ServiceError>>,
    },
}

/// How far an agent has gone back.
#[derive(Debug)]
pub(crate) struct AgentRewound {
    pub(crate) rewind: Rewind,
    /// What the session has to say of it; none when nothing was done there since.
    pub(crate) session: Option<Box<RewoundView>>,
}

/// A driver with nothing to do goes after this long.
const IDLE: Duration = Duration::from_secs(30);

/// Words of the model that a slow watcher may be behind; it misses the others, and
/// has the whole answer at its end.
const DELTAS: usize = 1024;

/// What a command-line agent may be ahead of the thread.
const ACTIVITIES: usize = 64;

const SUMMARY: &str = "Sum up this conversation for yourself, so that you can go on without it. \
    Say what the task is, in the user's own words, what has been done and found out, which files \
    and variables matter, and what is left to do. Answer with the summary alone.";

/// How others speak to a driver.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    orders: mpsc::Sender<Order>,
    /// How far the thread has got.
    pub(super) seen: watch::Receiver<Seen>,
    progress: broadcast::Sender<Progress>,
    /// What its model costs.
    pub(super) price: Price,
    /// The file that it writes.
    file: Option<Identity>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// How many entries are on disk.
    pub(super) entries: u64,
    /// A task is not over.
    pub(super) is_busy: bool,
    /// The call that waits for approval.
    pub(super) waiting: Option<String>,
    /// The model has failed, and is waited for.
    pub(super) retrying: Option<Retrying>,
}

impl Handle {
    pub(super) fn is_live(&self) -> bool {
        !self.orders.is_closed()
    }

    pub(super) fn waiting(&self) -> Option<String> {
        self.seen.borrow().waiting.clone()
    }

    /// Whether a task is under way that nobody has to say a word for.
    pub(super) fn is_working(&self) -> bool {
        let seen = self.seen.borrow();
        self.is_live() && seen.is_busy && seen.waiting.is_none()
    }

    /// Whether it works on the thread that is in this place now.
    pub(super) fn works_on(&self, found: Option<Identity>) -> bool {
        self.file.is_some() && self.file == found
    }

    pub(super) fn progress(&self) -> broadcast::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(super) async fn send(&self, order: Order) -> Result<(), ServiceError> {
        self.orders.send(order).await.map_err(|_| gone())
    }
}

pub(super) struct Driver {
    service: Arc<Service>,
    caller: Caller,
    session: SessionId,
    directory: Directory,
    agent: Agent,
    profile: Profile,
    file: Option<ThreadFile>,
    mind: Mind,
    tools: Vec<Tool>,
    orders: mpsc::Receiver<Order>,
    seen: watch::Sender<Seen>,
    progress: broadcast::Sender<Progress>,
    /// What was decided when the thread was opened.
    first: Vec<Effect>,
    /// What that was decided from, if a task is open: the session may have been lost since.
    resuming: Option<(Config, Vec<Entry>)>,
    /// What is under way.
    current: Option<BoxFuture<'static, Input>>,
    running: Running,
    /// Who waits for a rewind.
    rewinder: Rewinder,
    storing: Option<tokio::task::JoinHandle<()>>,
    /// What a command-line agent tells of, while it is asked.
    activities: Option<mpsc::Receiver<Activity>>,
    /// What was under way has ended; what it had told before comes first.
    finished: Option<Input>,
}

impl Driver {
    pub(super) fn new(
        service: Arc<Service>,
        caller: Caller,
        place: &Place,
        opened: Opened,
        mind: Mind,
    ) -> (Self, Handle) {
        let Opened { profile, entries, file } = opened;
        let tools = perform::tools();
        let config =
            profile.config(tools.iter().map(|tool| tool.name.clone()).collect(), mind.is_command());
        let count = entries.len() as u64;
        let is_open = file.digest().is_open();
        let resuming = is_open.then(|| (config.clone(), entries.clone()));
        let (agent, first) = Agent::resumed(config, entries, now_ms())
            .expect("a thread that was read begins with its beginning");
        let seen = Seen { entries: count, is_busy: is_open, ..Seen::default() };
        let (orders, inbox) = mpsc::channel(16);
        let (told, seen) = watch::channel(seen);
        let (progress, _) = broadcast::channel(DELTAS);
        let (price, identity) = (mind.price(), file.identity());
        let handle = Handle { orders, seen, progress: progress.clone(), price, file: identity };
        let driver = Self {
            service,
            caller,
            session: place.id.clone(),
            directory: place.directory.clone(),
            agent,
            profile,
            file: Some(file),
            mind,
            tools,
            orders: inbox,
            seen: told,
            progress,
            first,
            resuming,
            current: None,
            running: Running::default(),
            rewinder: Rewinder::default(),
            storing: None,
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
            // The thread is as it was before what could not be written; the next
            // driver goes on from there.
            tracing::error!(session = %self.session, %error, "an agent has stopped");
        }
    }

    /// Goes on where the last driver has left the thread. What has become of the session
    /// since is looked at first, so that the model is told before it says more.
    async fn resume(&mut self) -> Result<(), ServiceError> {
        if let Some((config, mut entries)) = self.resuming.take() {
            let woken = self.service.wake_agent(&self.caller, &self.session).await;
            // A session that somebody has ended is told by the calls.
            if let Ok(continuity) = woken
                && !continuity.is_live()
            {
                let entry = entries.len() as u64 + 1;
                let what = What::Continued(continuity);
                let continued = Entry { entry, at_ms: now_ms(), what };
                self.record(continued.clone()).await?;
                entries.push(continued);
                let resumed = Agent::resumed(config, entries, now_ms());
                (self.agent, self.first) = resumed.ok_or_else(ServiceError::unexpected)?;
            }
        }
        let first = std::mem::take(&mut self.first);
        self.perform(first).await
    }

    /// The next thing that happens; none when there is nothing to do any more.
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
        // All of these may be dropped and taken up again without loss: the work under
        // way is kept in `current`.
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
                    None if *self.agent.stage() == Stage::Idle => self.retire(),
                    None => Some(Event::Happened(Input::Due)),
                }
            }
        }
    }

    /// Takes no more orders, and goes unless one has just come.
    fn retire(&mut self) -> Option<Event> {
        self.orders.close();
        self.orders.try_recv().ok().map(Event::Ordered)
    }

    async fn take(&mut self, event: Event) -> Result<(), ServiceError> {
        match event {
            Event::Happened(input) => {
                for continuity in self.running.take_became() {
                    let effects = self.agent.step(Input::Continued(continuity), now_ms());
                    self.perform(effects).await?;
                }
                let effects = self.agent.step(input, now_ms());
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
                let effects = self.agent.step(Input::Cancelled, now_ms());
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

    async fn perform(&mut self, effects: Vec<Effect>) -> Result<(), ServiceError> {
        for effect in effects {
            match effect {
                Effect::Record(entry) => self.record(entry).await?,
                Effect::Ask(asked) => {
                    self.seen.send_if_modified(|seen| seen.retrying.take().is_some());
                    let answer = self.ask(asked);
                    self.current = Some(answer);
                }
                // `next` asks when something is due.
                Effect::WaitUntil { at_ms, attempt, failure } => {
                    let after_ms = at_ms.saturating_sub(now_ms());
                    let retrying = Retrying { attempt, after_ms, failure };
                    // For those who come later, then for those who watch, if any.
                    self.seen.send_modify(|seen| seen.retrying = Some(retrying.clone()));
                    let _ = self.progress.send(Progress::Retry(retrying));
                }
                Effect::Approve(call) => {
                    self.seen.send_modify(|seen| seen.waiting = Some(call.id.clone()));
                }
                Effect::Perform { call, key, is_repeated, intent } => {
                    let performance = Performance {
                        service: self.service.clone(),
                        caller: self.caller.clone(),
                        session: self.session.clone(),
                        call,
                        key,
                        is_repeated,
                        intent,
                        running: self.running.clone(),
                    };
                    self.current = Some(Box::pin(performance.carry_out()));
                }
                Effect::Interrupt => self.interrupt().await,
                Effect::Checkpoint { step } => {
                    let names =
                        rewinding::surplus(self.agent.entries(), self.profile.checkpoints.keep);
                    let marking = rewinding::Marking {
                        service: self.service.clone(),
                        caller: self.caller.clone(),
                        session: self.session.clone(),
                        step,
                        files: self.profile.checkpoints.files,
                        surplus: names,
                        running: self.running.clone(),
                    };
                    self.current = Some(Box::pin(marking.take()));
                }
                Effect::Rewind { checkpoint } => {
                    let (service, caller) = (self.service.clone(), self.caller.clone());
                    let rewound =
                        self.rewinder.take_back(service, caller, self.session.clone(), checkpoint);
                    self.current = Some(Box::pin(rewound));
                }
                Effect::Ended { task, .. } => {
                    tracing::info!(session = %self.session, %task, "a task has ended");
                }
            }
        }
        Ok(())
    }

    async fn record(&mut self, entry: Entry) -> Result<(), ServiceError> {
        let number = entry.entry;
        let Some(mut file) = self.file.take() else { return Err(ServiceError::unexpected()) };
        let (directory, profile) = (self.directory.clone(), self.profile.clone());
        let (file, outcome) = blocking(move || {
            let outcome = file.append(&entry);
            let is_told = outcome.is_ok() && audit::tells_of(&entry);
            if is_told {
                // The thread has it all: the record is made anew with the next entry.
                let _ = audit::write(&directory, &profile, file.digest());
            }
            let is_open = file.digest().is_open();
            Ok((file, outcome.map(|()| (is_told, is_open))))
        })
        .await?;
        self.file = Some(file);
        // What is decided is ahead of what is on disk, which others see.
        let (is_told, is_busy) = outcome?;
        if is_told {
            self.keep_in_store();
        }
        self.seen.send_modify(|seen| {
            seen.entries = number;
            seen.is_busy = is_busy;
            (seen.waiting, seen.retrying) = (None, None);
        });
        Ok(())
    }

    /// Brings the record to the store, if there is one, one time after the other.
    fn keep_in_store(&mut self) {
        if !self.service.has_store() {
            return;
        }
        let (service, id, before) =
            (self.service.clone(), self.session.clone(), self.storing.take());
        self.storing = Some(tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            service.keep_agent(&id).await;
        }));
    }

    fn ask(&mut self, asked: Asked) -> BoxFuture<'static, Input> {
        let mut turns = self.agent.turns(asked.purpose);
        let (model, client) = match &self.mind {
            Mind::Model { model, client } => (model.clone(), client.clone()),
            Mind::Missing(failure) => {
                let failure = failure.clone();
                return Box::pin(async move { Input::Failed(failure) });
            }
        };
        if let Some(program) = &model.command {
            let (activities, told) = mpsc::channel(ACTIVITIES);
            (self.activities, self.finished) = (Some(told), None);
            let commanded = Commanded {
                service: self.service.clone(),
                caller: self.caller.clone(),
                session: self.session.clone(),
                program: program.clone(),
                thread: self.profile.thread_id.to_string(),
                instructions: self.profile.instructions.clone(),
                turns,
                asked,
                running: self.running.clone(),
                activities,
            };
            return Box::pin(commanded.answer());
        }
        let words = match asked.purpose {
            Purpose::Step => Some(self.progress.clone()),
            // It is no answer to the task.
            Purpose::Summary | Purpose::ShortSummary => {
                turns.push(sessile_agent::conversation::Turn::User(SUMMARY.to_owned()));
                None
            }
        };
        // Servers that know of calls in a conversation want their tools named, also for a
        // summary.
        let tools = self.tools.clone();
        let question = Question { instructions: self.profile.instructions.clone(), turns, tools };
        Box::pin(async move {
            match model.ask(&client, &question, words.as_ref()).await {
                Ok(reply) => Input::Replied(reply),
                Err(failure) => Input::Failed(failure),
            }
        })
    }

    async fn interrupt(&mut self) {
        if let Some(run) = self.running.get() {
            let interrupted = self.service.interrupt(&self.caller, &self.session, Some(run)).await;
            if let Err(error) = interrupted {
                tracing::warn!(session = %self.session, %error, "a run is not interrupted");
            }
        }
        match self.agent.stage() {
            // Its outcome comes as that of any call.
            Stage::Performing { .. } => {}
            Stage::Idle
            | Stage::Asking { .. }
            | Stage::Waiting { .. }
            | Stage::Approving { .. }
            | Stage::Checkpointing { .. }
            | Stage::Rewinding => {
                self.current = None;
                (self.activities, self.finished) = (None, None);
                self.running.set(None);
            }
        }
    }
}

/// Runs of a session that are looked at for rewinds of it.
const HISTORY: u64 = 1000;

fn refused(refusal: &Refusal) -> ServiceError {
    let code = match refusal {
        Refusal::Busy(_) | Refusal::Rewinding => ErrorCode::Busy,
        Refusal::Empty => ErrorCode::BadRequest,
        Refusal::KeyReused(_) => ErrorCode::KeyReused,
        Refusal::UnknownStep { .. } | Refusal::NothingToUndo => ErrorCode::NotFound,
        Refusal::NoCheckpoint { .. } => ErrorCode::CheckpointNotFound,
        Refusal::Moved { .. } => ErrorCode::AgentMoved,
    };
    ServiceError::new(code, refusal.to_string())
}

enum Event {
    Happened(Input),
    Ordered(Order),
}
