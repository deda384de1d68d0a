//! Asks the keeper of each session what it is doing.
//!
//! One connection to each keeper is kept from look to look: a keeper that does not answer
//! (a stopped process, say) has one request to answer when it continues, not a queue of
//! them.
//!
//! CPU is the usage between two looks. So each watcher keeps its last observation, and
//! several may watch through one sampler, each at its own pace.

use super::processes::ProcessSnapshot;
use super::row::{Row, Running, State};
use crate::{Client, ClientError};
use jiff::Timestamp;
use sessile_protocol::{Answer, OpenRun, Request, RunPhase, SessionId, Status};
use sessile_store::{Directory, Liveness, Metadata, Scope, SessionStatus, Sessions, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long all keepers together have to answer. A healthy one takes a fraction of a millisecond.
const PATIENCE: Duration = Duration::from_millis(250);

/// Asks the keepers of a directory.
#[derive(Debug)]
pub struct Sampler {
    sessions: Sessions,
    scope: Scope,
    probes: BTreeMap<SessionId, Probe>,
    latest: Option<(Instant, Arc<Observation>)>,
}

/// All sessions and processes at one moment.
#[derive(Debug)]
pub struct Observation {
    at: Timestamp,
    /// Newest first.
    sessions: Vec<(Metadata, Keeper)>,
    look: ProcessSnapshot,
}

/// What a session's keeper has reported.
#[derive(Debug)]
enum Keeper {
    Gone,
    Silent(Report),
    Answers(Report),
}

#[derive(Clone, Debug, Default)]
struct Report {
    status: Option<Status>,
    runs: Vec<OpenRun>,
}

#[derive(Debug)]
enum Probe {
    Connected {
        client: Box<Client>,
        /// Number of unanswered calls.
        open: u32,
        report: Report,
    },
    /// It accepts no connections: it is stopped.
    Shut,
}

impl Sampler {
    #[must_use]
    pub fn new(sessions: Sessions, scope: Scope) -> Self {
        Self { sessions, scope, probes: BTreeMap::new(), latest: None }
    }

    /// Looks at all sessions.
    ///
    /// # Errors
    /// When the sessions directory cannot be read.
    pub fn look(&mut self) -> Result<Arc<Observation>, StoreError> {
        self.look_unless(Duration::ZERO)
    }

    /// Looks at all sessions, unless the last look is newer than this.
    ///
    /// # Errors
    /// When the sessions directory cannot be read.
    pub fn look_unless(&mut self, fresh: Duration) -> Result<Arc<Observation>, StoreError> {
        if let Some((at, latest)) = &self.latest
            && at.elapsed() < fresh
        {
            return Ok(latest.clone());
        }
        let sessions = self.sessions.recorded_in(self.scope)?;
        self.connect(&sessions);
        self.probes.retain(|_, probe| probe.ask().is_ok());
        let deadline = Instant::now() + PATIENCE;
        self.probes.retain(|_, probe| probe.collect(deadline).is_ok());
        let sessions = sessions.into_iter().map(|(_, metadata)| {
            let keeper = self.probes.get(&metadata.session_id).map_or(Keeper::Gone, Probe::keeper);
            (metadata, keeper)
        });
        let (at, sessions) = (Timestamp::now(), sessions.collect());
        let latest = Arc::new(Observation { at, sessions, look: ProcessSnapshot::take() });
        self.latest = Some((Instant::now(), latest.clone()));
        Ok(latest)
    }

    fn connect(&mut self, sessions: &[(Directory, Metadata)]) {
        let is_there = |id: &SessionId| sessions.iter().any(|(_, m)| m.session_id == *id);
        self.probes.retain(|id, probe| probe.is_connected() && is_there(id));
        for (directory, metadata) in sessions {
            let may_live = match metadata.status {
                SessionStatus::Active | SessionStatus::Starting => true,
                SessionStatus::Terminated | SessionStatus::Lost | SessionStatus::Unknown => false,
            };
            if !may_live || self.probes.contains_key(&metadata.session_id) {
                continue;
            }
            let probe = match directory.connect_at_once() {
                Some(Liveness::Live(socket)) => Probe::new(socket),
                None => Probe::Shut,
                Some(Liveness::Gone) => continue,
            };
            self.probes.insert(metadata.session_id.clone(), probe);
        }
    }
}

impl Probe {
    fn new(socket: std::os::fd::OwnedFd) -> Self {
        Self::Connected {
            client: Box::new(Client::new(socket)),
            open: 0,
            report: Report::default(),
        }
    }

    fn is_connected(&self) -> bool {
        matches!(self, Self::Connected { .. })
    }

    fn ask(&mut self) -> Result<(), ClientError> {
        if let Self::Connected { client, open: open @ 0, .. } = self {
            client.ask(Request::Status)?;
            client.ask(Request::Runs)?;
            *open = 2;
        }
        Ok(())
    }

    fn collect(&mut self, deadline: Instant) -> Result<(), ClientError> {
        let Self::Connected { client, open, report } = self else {
            return Ok(());
        };
        while *open > 0 {
            let Some(reply) = client.reply_by(deadline)? else {
                return Ok(());
            };
            *open -= 1;
            if let Ok(Answer::Status(status)) = reply.outcome {
                report.status = Some(status);
            } else if let Ok(Answer::Runs(view)) = reply.outcome {
                report.runs = view.runs;
            }
        }
        Ok(())
    }

    fn keeper(&self) -> Keeper {
        match self {
            Self::Connected { open: 0, report, .. } => Keeper::Answers(report.clone()),
            Self::Connected { report, .. } => Keeper::Silent(report.clone()),
            Self::Shut => Keeper::Silent(Report::default()),
        }
    }
}

impl Observation {
    /// Returns the visible sessions, newest first; CPU since the observation before.
    #[must_use]
    pub fn rows(&self, before: Option<&Self>, is_visible: impl Fn(&Metadata) -> bool) -> Vec<Row> {
        let seen = self.sessions.iter().filter(|(metadata, _)| is_visible(metadata));
        seen.map(|(metadata, keeper)| self.row(metadata, keeper, before)).collect()
    }

    fn row(&self, metadata: &Metadata, keeper: &Keeper, before: Option<&Self>) -> Row {
        let report = match keeper {
            Keeper::Gone => None,
            Keeper::Silent(report) | Keeper::Answers(report) => Some(report),
        };
        let going = report.into_iter().flat_map(|report| &report.runs);
        let going = going.filter(|run| run.phase == RunPhase::Running);
        let running: Vec<Running> = going.map(|run| self.running(run)).collect();
        let state = match (keeper, metadata.status) {
            (Keeper::Silent(_), _) => State::Silent,
            (Keeper::Answers(_), _) if running.is_empty() => State::Idle,
            (Keeper::Answers(_), _) => State::Busy,
            (Keeper::Gone, SessionStatus::Terminated) => State::Ended,
            (
                Keeper::Gone,
                SessionStatus::Starting
                | SessionStatus::Active
                | SessionStatus::Lost
                | SessionStatus::Unknown,
            ) => State::Lost,
        };
        let status = report.and_then(|report| report.status.as_ref());
        let keeper_pid = report.and(status.map(|status| status.keeper_pid).or(metadata.keeper_pid));
        let usage = keeper_pid.map(|pid| self.look.usage(pid, before.map(|before| &before.look)));
        let last = metadata.last_executed_at.as_ref().unwrap_or(&metadata.created_at);
        Row {
            session_id: metadata.session_id.clone(),
            name: metadata.name.clone(),
            workspace: metadata.workspace.clone(),
            state,
            work_dir: metadata.work_dir.to_string_lossy().into_owned(),
            keeper_pid,
            kernels: status.map(|status| status.kernels.clone()).unwrap_or_default(),
            queued: status.map_or(0, |status| status.queued),
            usage: usage.unwrap_or_default(),
            resources: status.and_then(|status| status.limits.as_deref().cloned()),
            idle_ms: if running.is_empty() { self.since(Some(last)) } else { None },
            running,
        }
    }

    fn running(&self, run: &OpenRun) -> Running {
        Running {
            run: run.run,
            language: run.language,
            command: run.command.clone(),
            running_ms: self.since(run.timestamp.as_ref()),
            waiting_for_input: run.waiting_for_input,
        }
    }

    /// Returns the milliseconds since a time.
    fn since(&self, time: Option<&String>) -> Option<u64> {
        let then: Timestamp = time?.parse().ok()?;
        let passed = Duration::try_from(self.at.duration_since(then)).unwrap_or_default();
        Some(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }
}
