//! What each session is doing, asked of its keeper.
//!
//! One connection to each keeper is kept from look to look: one that does not
//! answer (a stopped process, say) has one question to answer when it goes on,
//! and not a queue of them.

use super::processes::{Look, Usage};
use jiff::Timestamp;
use serde_json::{Value, json};
use sessile_client::{Client, ClientError};
use sessile_protocol::{Answer, KernelStatus, OpenRun, Request, RunPhase, SessionId, Status};
use sessile_store::{Liveness, Metadata, SessionStatus, Sessions};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long all keepers together have to answer. One that is well takes a
/// fraction of a millisecond.
const PATIENCE: Duration = Duration::from_millis(250);

/// What a session is doing.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: SessionId,
    /// What it is called, or the workspace that it belongs to.
    pub(crate) name: Option<String>,
    pub(crate) state: State,
    pub(crate) kernels: Vec<KernelStatus>,
    pub(crate) running: Vec<Running>,
    pub(crate) queued: u64,
    pub(crate) usage: Usage,
    /// Since its last run, if none is going.
    pub(crate) idle: Option<Duration>,
    metadata: Metadata,
    keeper: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Busy,
    Idle,
    /// Its keeper is there and does not answer.
    Silent,
    Lost,
    Ended,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Silent => "silent",
            Self::Lost => "lost",
            Self::Ended => "ended",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) run: OpenRun,
    pub(crate) since: Option<Duration>,
}

/// A keeper and what it said last.
#[derive(Debug)]
struct Probe {
    client: Client,
    /// Calls that are not answered.
    open: u32,
    status: Option<Status>,
    runs: Vec<OpenRun>,
}

#[derive(Debug)]
pub(crate) struct Sampler {
    sessions: Sessions,
    probes: BTreeMap<SessionId, Probe>,
    before: Option<Look>,
}

impl Sampler {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions, probes: BTreeMap::new(), before: None }
    }

    /// A look at all sessions, newest first.
    pub(crate) fn look(&mut self) -> anyhow::Result<Vec<Row>> {
        let sessions = self.sessions.recorded()?;
        let is_there = |id: &SessionId| sessions.iter().any(|(_, m)| m.session_id == *id);
        self.probes.retain(|id, _| is_there(id));
        for (directory, metadata) in &sessions {
            let id = &metadata.session_id;
            let may_live =
                matches!(metadata.status, SessionStatus::Active | SessionStatus::Starting);
            if may_live
                && !self.probes.contains_key(id)
                && let Liveness::Live(socket) = directory.connect()
            {
                self.probes.insert(id.clone(), Probe::new(socket));
            }
        }
        self.probes.retain(|_, probe| probe.ask().is_ok());
        let deadline = Instant::now() + PATIENCE;
        self.probes.retain(|_, probe| probe.hear(deadline).is_ok());
        let look = Look::take();
        let now = Timestamp::now();
        let rows = sessions.into_iter().map(|(_, metadata)| self.row(metadata, &look, now));
        let rows = rows.collect();
        self.before = Some(look);
        Ok(rows)
    }

    fn row(&self, metadata: Metadata, look: &Look, now: Timestamp) -> Row {
        let probe = self.probes.get(&metadata.session_id);
        let going = probe.into_iter().flat_map(|probe| &probe.runs);
        let going = going.filter(|run| run.phase == RunPhase::Running);
        let since = |text: Option<&String>| {
            let then: Timestamp = text?.parse().ok()?;
            Some(Duration::try_from(now.duration_since(then)).unwrap_or_default())
        };
        let running: Vec<Running> = going
            .map(|run| Running { run: run.clone(), since: since(run.timestamp.as_ref()) })
            .collect();
        let status = probe.and_then(|probe| probe.status.as_ref());
        let keeper = probe.and(status.map(|status| status.keeper_pid).or(metadata.keeper_pid));
        let state = match (probe, metadata.status) {
            (Some(probe), _) if probe.open > 0 => State::Silent,
            (Some(_), _) if running.is_empty() => State::Idle,
            (Some(_), _) => State::Busy,
            (None, SessionStatus::Terminated) => State::Ended,
            (
                None,
                SessionStatus::Starting
                | SessionStatus::Active
                | SessionStatus::Lost
                | SessionStatus::Unknown,
            ) => State::Lost,
        };
        let last = metadata.last_executed_at.as_ref().unwrap_or(&metadata.created_at);
        Row {
            id: metadata.session_id.clone(),
            name: metadata.name.clone().or_else(|| metadata.workspace.clone()),
            state,
            kernels: status.map(|status| status.kernels.clone()).unwrap_or_default(),
            queued: status.map_or(0, |status| status.queued),
            usage: keeper.map(|pid| look.usage(pid, self.before.as_ref())).unwrap_or_default(),
            idle: if running.is_empty() { since(Some(last)) } else { None },
            running,
            keeper,
            metadata,
        }
    }
}

impl Probe {
    fn new(socket: std::os::fd::OwnedFd) -> Self {
        Self { client: Client::new(socket), open: 0, status: None, runs: Vec::new() }
    }

    fn ask(&mut self) -> Result<(), ClientError> {
        if self.open == 0 {
            self.client.ask(Request::Status)?;
            self.client.ask(Request::Runs)?;
            self.open = 2;
        }
        Ok(())
    }

    fn hear(&mut self, deadline: Instant) -> Result<(), ClientError> {
        while self.open > 0 {
            let Some(reply) = self.client.reply_by(deadline)? else {
                return Ok(());
            };
            self.open -= 1;
            if let Ok(Answer::Status(status)) = reply.outcome {
                self.status = Some(status);
            } else if let Ok(Answer::Runs(view)) = reply.outcome {
                self.runs = view.runs;
            }
        }
        Ok(())
    }
}

impl Row {
    pub(crate) fn is_live(&self) -> bool {
        match self.state {
            State::Busy | State::Idle | State::Silent => true,
            State::Lost | State::Ended => false,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let kernels: Vec<Value> = self
            .kernels
            .iter()
            .map(|kernel| json!({"language": kernel.language.as_str(), "pid": kernel.pid}))
            .collect();
        let runs: Vec<Value> = self
            .running
            .iter()
            .map(|Running { run, since }| {
                json!({
                    "run": run.run, "language": run.language.as_str(), "command": run.command,
                    "running_ms": since.map(milliseconds),
                    "waiting_for_input": run.waiting_for_input,
                })
            })
            .collect();
        json!({
            "session_id": self.id,
            "name": self.metadata.name,
            "workspace": self.metadata.workspace,
            "state": self.state.as_str(),
            "work_dir": self.metadata.work_dir.to_string_lossy(),
            "keeper_pid": self.keeper,
            "kernels": kernels,
            "running": runs,
            "queued": self.queued,
            "cpu_percent": self.usage.cpu_percent,
            "memory_bytes": self.usage.memory_bytes,
            "processes": self.usage.processes,
            "idle_ms": self.idle.map(milliseconds),
        })
    }
}
