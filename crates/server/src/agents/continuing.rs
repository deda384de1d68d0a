//! Old ids: an agent goes on, whatever has become of its session, and says what was lost.
//!
//! A session whose keeper was killed, or that ended for lack of use, goes on from what
//! was kept of it. If the session's directory is gone, the store is searched. If only the
//! record is left, the agent begins anew under its old id. What happened is written into
//! the thread and reported with the next task; the log gets one line.

use super::profile::{Profile, now_ms};
use super::{audit, jobs, perform, storing, thread_file};
use crate::keepers::{Place, blocking, lock};
use crate::service::{Caller, ErrorCode, Service, ServiceError, StartSession};
use serde::Serialize;
use sessile_agent::continuity::{Continuity, Status};
use sessile_agent::thread::{Entry, EntryKind, line};
use sessile_agent::{Agent, Worker};
use sessile_gateway::answer::Continuity as Became;
use sessile_protocol::{RunNo, SessionId};
use sessile_store::SessionStatus;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a session ended that nobody has ended.
pub(super) const IDLE: &str = "idle timeout";

const CONVERSATION: &str = "the conversation";
const STATE: &str = "variables and other state of the interpreters";
const ELSEWHERE: &str = "what of the interpreters did not come back when somebody else used the \
    session";

/// What is left of an agent whose directory is gone.
#[derive(Debug)]
struct LostAgent {
    record: audit::Record,
    /// Its thread, if the store has it.
    thread: Option<Vec<Entry>>,
}

impl Service {
    /// Returns the agent with this id or name. If its session or its thread is gone, the
    /// agent goes on from what is left.
    pub(crate) async fn resolve_agent(
        self: &Arc<Self>,
        caller: &Caller,
        text: &str,
    ) -> Result<SessionId, ServiceError> {
        let error = match self.resolve(caller, text).await {
            Ok(id) => {
                let place = self.place(caller, &id).await?;
                if has_thread(&place).await? {
                    return Ok(id);
                }
                let _lock = self.agents.recovering.lock(&id).await;
                self.finish_forks_of(caller, &place).await?;
                let directory = place.directory.clone();
                if blocking(move || Ok(directory.path().is_dir())).await? {
                    if !has_thread(&place).await?
                        && let Some(left) = self.left_of(&id).await
                    {
                        self.take_up_thread(caller, &id, left).await?;
                    }
                    return Ok(id);
                }
                // The session was deleted since its last use. A driver that still works
                // for it writes to unlinked files, and retires once it gets no orders.
                self.forget(&id);
                lock(&self.agents.live).remove(&id);
                let message = format!("Session {id} not found");
                ServiceError::new(ErrorCode::SessionNotFound, message)
            }
            Err(error) => error,
        };
        let id = match text.parse::<SessionId>() {
            Ok(id) if error.code == ErrorCode::SessionNotFound => id,
            Ok(_) | Err(_) => return Err(error),
        };
        // Of two concurrent requests, one does it.
        let _lock = self.agents.recovering.lock(&id).await;
        let (sessions, wanted) = (self.sessions().clone(), id.clone());
        if blocking(move || Ok(sessions.find(&wanted).is_ok())).await? {
            return Ok(id);
        }
        // A driver that still works for it writes to unlinked files.
        lock(&self.agents.live).remove(&id);
        match self.left_of(&id).await {
            Some(left) => self.begin_anew(caller, &id, left).await.map(|()| id),
            None => Err(error),
        }
    }

    /// Brings the agent's session back if necessary, and returns what became of it.
    pub(super) async fn continue_session(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Continuity, ServiceError> {
        let place = self.place(caller, id).await?;
        let moved = blocking(move || Ok(thread_file::digest(&place.directory)?.moved)).await?;
        if let Some(moved) = moved {
            return Err(super::moving::elsewhere(&moved));
        }
        let mut continuity = self.wake_agent(caller, id).await?;
        if continuity.is_live() {
            continuity = self.since_last_look(caller, id).await?;
        }
        let place = self.place(caller, id).await?;
        if has_thread(&place).await? {
            return Ok(continuity);
        }
        // Another machine had the session, and it has just been taken back. The local
        // thread went with the session; the current one is in the store.
        let _lock = self.agents.recovering.lock(id).await;
        lock(&self.agents.live).remove(id);
        if !has_thread(&place).await?
            && let Some(left) = self.left_of(id).await
        {
            self.continue_from(caller, id, left, continuity).await?;
        }
        // The thread says it already.
        Ok(Continuity::default())
    }

    /// Gives a fork its thread if a crash left it without one.
    async fn finish_forks_of(&self, caller: &Caller, fork: &Place) -> Result<(), ServiceError> {
        let directory = fork.directory.clone();
        let of =
            blocking(move || Ok(directory.metadata().ok().and_then(|m| m.forked_from))).await?;
        if let Some(of) = of
            && let Ok(original) = self.place(caller, &of.session_id).await
        {
            self.finish_forks(&of.session_id, &original.directory).await?;
        }
        Ok(())
    }

    /// Does the same in the middle of a task.
    pub(super) async fn wake_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Continuity, ServiceError> {
        match self.wake(caller, id).await {
            Ok(became) => self.became(caller, id, &became).await,
            Err(error) if error.code == ErrorCode::SessionEnded => {
                let place = self.place(caller, id).await?;
                let was_idle = blocking(move || {
                    let mut metadata = place.directory.metadata()?;
                    let was_idle = metadata.ended_by.as_deref() == Some(IDLE);
                    if was_idle {
                        // Its kept state is still there, as for a lost session.
                        metadata.status = SessionStatus::Lost;
                        (metadata.ended_at, metadata.ended_by) = (None, None);
                        place.directory.write_metadata(&metadata)?;
                    }
                    Ok(was_idle)
                })
                .await?;
                if !was_idle {
                    return Err(error);
                }
                let became = self.wake(caller, id).await?;
                self.became(caller, id, &became).await
            }
            Err(error) => Err(error),
        }
    }

    /// Restores the thread of a session that was taken up from a store without it.
    async fn take_up_thread(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        left: LostAgent,
    ) -> Result<(), ServiceError> {
        let became = self.wake(caller, id).await?;
        let mut continuity = self.became(caller, id, &became).await?;
        if continuity.is_live() {
            continuity.status = Status::Restored;
        }
        self.continue_from(caller, id, left, continuity).await
    }

    /// Makes a new session and thread: only the record is left.
    async fn begin_anew(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        left: LostAgent,
    ) -> Result<(), ServiceError> {
        let workspace = left.record.workspace_id.clone();
        let start = StartSession {
            id: Some(id.clone()),
            workspace: Some(workspace.clone()),
            sandbox: left.record.sandbox.clone(),
            ..StartSession::default()
        };
        self.start(caller, start).await.map_err(|error| {
            if error.code != ErrorCode::BadDirectory {
                return error;
            }
            let message =
                format!("the session is gone, and so is its workspace {workspace}: {error}");
            ServiceError::new(ErrorCode::BadDirectory, message)
        })?;
        let lost = vec![STATE.to_owned(), "environment variables".to_owned()];
        let continuity = Continuity { status: Status::Fresh, as_of_run: None, lost };
        self.continue_from(caller, id, left, continuity).await
    }

    async fn continue_from(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        left: LostAgent,
        mut continuity: Continuity,
    ) -> Result<(), ServiceError> {
        let LostAgent { record, thread } = left;
        let place = self.place(caller, id).await?;
        let profile = match record.agent.clone() {
            Some(profile) => profile,
            None => Profile::of_unknown(&*self.agents.model(None)?)?,
        };
        let (profile, mut entries) = match thread {
            Some(entries) => {
                continuity.lost.extend(unknown_runs(&entries, continuity.as_of_run));
                (profile, entries)
            }
            None => {
                continuity.status = Status::Fresh;
                continuity.lost.push(CONVERSATION.to_owned());
                let profile = profile.anew(&record)?;
                let first = profile.first_entry();
                (profile, vec![first])
            }
        };
        let backend = self.agents.backend(&profile.model).await;
        let worker = backend.map_or(Worker::Model, |backend| backend.worker());
        let tools = perform::tools().into_iter().map(|tool| tool.name).collect();
        let config = profile.config(tools, worker);
        let (now, status) = (now_ms(), continuity.status);
        entries.extend(Agent::taken_up(config, &entries, continuity, now));
        let directory = place.directory.clone();
        let is_open = blocking(move || {
            let digest = thread_file::create(&directory, &profile, &entries)?;
            audit::write(&directory, &profile, &digest)?;
            Ok(digest.is_open())
        })
        .await?;
        if status == Status::Fresh {
            warn(&record);
        }
        if is_open && let Err(error) = self.driver(caller, id).await {
            tracing::warn!(session = %id, %error, "a task cannot be gone on with");
        }
        Ok(())
    }

    /// Returns what is left of an agent, from beside its session's directory or from the store.
    async fn left_of(self: &Arc<Self>, id: &SessionId) -> Option<LostAgent> {
        let (sessions, launcher, id) = (self.sessions().clone(), self.launcher(), id.clone());
        let found = blocking(move || {
            if let Some(record) = audit::read(&sessions, &id) {
                let stored = launcher.fetch_agent(&id).ok().flatten();
                let thread = stored.and_then(|stored| storing::entries(&stored));
                return Ok(Some(LostAgent { record, thread }));
            }
            let stored = launcher
                .fetch_agent(&id)
                .map_err(|error| ServiceError::new(ErrorCode::Storage, error.to_string()))?;
            Ok(stored.and_then(|stored| {
                let record = serde_json::from_str(&stored.record).ok()?;
                Some(LostAgent { record, thread: storing::entries(&stored) })
            }))
        })
        .await;
        match found {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(%error, "the store cannot be asked for an agent");
                None
            }
        }
    }
}

async fn has_thread(place: &Place) -> Result<bool, ServiceError> {
    let directory = place.directory.clone();
    blocking(move || Ok(thread_file::is_there(&directory))).await
}

/// A line of the log, in the format that operators look for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundInStore<'a> {
    level: &'static str,
    message: &'static str,
    session_id: &'a str,
    thread_id: &'a str,
    last_activity: &'a str,
}

/// Writes that line.
fn warn(record: &audit::Record) {
    let line = FoundInStore {
        level: "warn",
        message: "Session found in store but not in memory (restart?)",
        session_id: &record.session_id,
        thread_id: &record.thread_id,
        last_activity: &record.last_activity,
    };
    // Cannot fail: it is a struct with string keys.
    let line = serde_json::to_string(&line).unwrap_or_default();
    tracing::warn!(target: "sessile_line", line = %line);
}

impl Service {
    /// Returns what became of a session, in the form that the thread records.
    pub(super) async fn became(
        &self,
        caller: &Caller,
        id: &SessionId,
        became: &Became,
    ) -> Result<Continuity, ServiceError> {
        if let Became::Live = became {
            return Ok(Continuity::default());
        }
        let place = self.place(caller, id).await?;
        let jobs = blocking(move || Ok(jobs::lost(&place.directory))).await?;
        Ok(told(became, jobs))
    }

    /// Returns what became of a live session that another client may have brought back.
    async fn since_last_look(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Continuity, ServiceError> {
        let place = self.place(caller, id).await?;
        blocking(move || {
            if !jobs::is_of_another_keeper(&place.directory) {
                return Ok(Continuity::default());
            }
            let mut lost = jobs::lost(&place.directory);
            lost.push(ELSEWHERE.to_owned());
            Ok(Continuity { status: Status::Restored, as_of_run: None, lost })
        })
        .await
    }
}

fn told(continuity: &Became, jobs: Vec<String>) -> Continuity {
    let runs = |runs: &[RunNo]| {
        runs.iter().map(|run| format!("run {run}, which was going")).collect::<Vec<_>>()
    };
    let all = |lost: &[String], lost_runs: &[RunNo]| {
        lost.iter().cloned().chain(runs(lost_runs)).chain(jobs).collect::<Vec<_>>()
    };
    match continuity {
        Became::Live => Continuity::default(),
        Became::Restored { as_of_run, lost_runs, lost, .. } => Continuity {
            status: Status::Restored,
            as_of_run: Some(as_of_run.0),
            lost: all(lost, lost_runs),
        },
        Became::Fresh { lost_runs, lost, .. } => {
            let state = STATE.to_owned();
            let named = all(lost, lost_runs);
            let lost = if lost.is_empty() { [vec![state], named].concat() } else { named };
            Continuity { status: Status::Fresh, as_of_run: None, lost }
        }
    }
}

/// Names runs that the thread mentions but that are newer than the restored session state.
fn unknown_runs(entries: &[Entry], as_of_run: Option<u64>) -> Option<String> {
    let as_of_run = as_of_run?;
    let since = line(entries).into_iter().filter_map(|entry| {
        if let EntryKind::Outcome(outcome) = &entry.what { outcome.run } else { None }
    });
    let since: BTreeSet<u64> = since.filter(|run| *run > as_of_run).collect();
    jobs::named(&since).map(|runs| format!("what {runs} changed in the interpreters"))
}
