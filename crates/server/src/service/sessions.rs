//! Sessions: start, list, inspect and end them.

use super::reservations::Reservation;
use super::{Caller, ErrorCode, Service, ServiceError, WithContinuity, admission, confinement};
use crate::keepers::{ConnectedSession, HomeIndex, Place, blocking};
use crate::metrics::StatusLabels;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value};
use sessile_client::NewSession;
use sessile_gateway::answer::{EndedAll, State};
use sessile_protocol::{Answer, Auto, Request, RunNo, SessionId};
use sessile_sandbox::Policy;
use sessile_store::{Directory, Entry, Metadata, SessionStatus};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

/// How many entries of the history a state shows.
const HISTORY: u64 = 20;

/// How many sessions end concurrently: each takes two seconds if its programs ignore SIGTERM.
const ENDED_AT_ONCE: usize = 32;

/// A healthy keeper has written its records within this time.
const SOON: Duration = Duration::from_secs(1);

enum OneEnded {
    Now(Box<Metadata>),
    /// By another client.
    Before,
}

/// A request for a new session over the network. Absent fields have the defaults of the
/// command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartSession {
    /// Its former id, for a session that is gone.
    pub(crate) id: Option<SessionId>,
    pub(crate) shell: Option<String>,
    /// A session or a pool whose state it begins with.
    pub(crate) from: Option<String>,
    pub(crate) workspace: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) idle_without_runs: bool,
    pub(crate) command_timeout_ms: Option<u64>,
    pub(crate) max_history: Option<u64>,
    pub(crate) output_cap: Option<u64>,
    pub(crate) name: Option<String>,
    /// Automatic checkpoints before runs.
    pub(crate) auto: Option<Auto>,
    pub(crate) durable: Option<bool>,
    /// The requested sandbox, as JSON.
    pub(crate) sandbox: Option<serde_json::Value>,
}

/// The source of a new session's state.
#[derive(Clone, Debug)]
pub(super) enum Template {
    /// A session, and its sandbox, which the new one gets unless another is named.
    Session(SessionId, Option<Box<Policy>>),
    /// The name of a pool.
    Pool(String),
}

/// Lets a session begin from another: in the sandbox that was asked for, or in that one's. The
/// caller's bound comes later, and only makes it stricter.
pub(super) fn beginning_from(
    new: NewSession,
    id: SessionId,
    its: Option<Box<Policy>>,
) -> NewSession {
    let sandbox = new.sandbox.or_else(|| its.map(|policy| *policy));
    NewSession { from: Some(id), sandbox, ..new }
}

/// Sessions that a token is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedSessions {
    New(u64),
    /// An existing one, which was counted without a token.
    Ready,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) workspace: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) after: Option<SessionId>,
    pub(crate) limit: usize,
}

impl StartSession {
    pub(super) async fn resolve(
        self,
        service: &Service,
        caller: &Caller,
    ) -> Result<NewSession, ServiceError> {
        let defaults = service.defaults.session(NewSession::default());
        if let Some(name) = &self.name {
            sessile_store::check_name(name)?;
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                let message = format!("{name:?} cannot be an environment variable");
                return Err(ServiceError::new(ErrorCode::BadRequest, message));
            }
        }
        let program = self.shell.unwrap_or(defaults.program);
        if program.contains('\0') {
            return Err(ServiceError::new(
                ErrorCode::UnknownProgram,
                "a program's name cannot contain NUL",
            ));
        }
        let (workspace, cwd) = (self.workspace, self.cwd);
        let places = service.admit(caller, move |roots, caller| {
            let workspace = match &workspace {
                Some(given) => Some(admission::directory(Some(given), roots, caller)?),
                None => None,
            };
            let cwd = match (&cwd, &workspace) {
                (None, Some(workspace)) => workspace.clone(),
                (Some(cwd), Some(workspace)) => {
                    let inside = workspace.join(cwd);
                    admission::directory(inside.to_str().or(Some(cwd)), roots, caller)?
                }
                (given, None) => admission::directory(given.as_deref(), roots, caller)?,
            };
            Ok((workspace, cwd))
        });
        let (workspace, cwd) = places.await?;
        let sandbox = service.confinement(caller, self.sandbox).await?;
        Ok(NewSession {
            id: self.id,
            program,
            from: None,
            wait: false,
            from_keeper: None,
            cwd: Some(cwd),
            env: self.env,
            idle_timeout_ms: self.idle_timeout_ms.unwrap_or(defaults.idle_timeout_ms),
            idle_without_runs: self.idle_without_runs,
            command_timeout_ms: self.command_timeout_ms.unwrap_or(defaults.command_timeout_ms),
            max_history: self.max_history.unwrap_or(defaults.max_history),
            output_cap: self.output_cap.unwrap_or(defaults.output_cap).min(1 << 30),
            max_queue: None,
            workspace: workspace.map(|path| path.display().to_string()),
            session_key: None,
            name: self.name,
            owner: caller.token.clone(),
            durable: service.defaults.durability(self.durable),
            auto: self.auto,
            sandbox,
        })
    }
}

/// Decides which sessions a caller may see.
struct Visible<'a> {
    caller: &'a Caller,
    /// The home directories of sessions, for a caller with limits.
    homes: Option<HomeIndex>,
    bound: Option<Arc<Policy>>,
}

impl Visible<'_> {
    fn has(&self, metadata: &Metadata) -> bool {
        let is_near = |homes: &HomeIndex| self.caller.may_use(&homes.home(metadata));
        let is_confined =
            || confinement::is_within(self.bound.as_deref(), super::policy(metadata).as_ref());
        self.homes.as_ref().is_none_or(is_near) && (self.bound.is_none() || is_confined())
    }
}

impl Service {
    pub(crate) async fn start(
        &self,
        caller: &Caller,
        wanted: StartSession,
    ) -> Result<Metadata, ServiceError> {
        let template = self.template(caller, &wanted).await?;
        let new = wanted.resolve(self, caller).await?;
        match template {
            None => self.create(caller, new).await,
            Some(Template::Session(id, its)) => {
                self.create(caller, beginning_from(new, id, its)).await
            }
            Some(Template::Pool(name)) => self.start_pooled(caller, &name, new).await,
        }
    }

    /// Returns the session or pool that a new session begins from.
    pub(super) async fn template(
        &self,
        caller: &Caller,
        wanted: &StartSession,
    ) -> Result<Option<Template>, ServiceError> {
        let Some(name) = &wanted.from else {
            return Ok(None);
        };
        if wanted.shell.is_some() {
            let message =
                "a session that begins from another has that one's shell; leave shell out";
            return Err(ServiceError::new(ErrorCode::BadRequest, message));
        }
        // A pool is for every caller, wherever its session is.
        if self.has_pool(name) {
            return Ok(Some(Template::Pool(name.clone())));
        }
        let id = self.resolve(caller, name).await?;
        let place = self.place(caller, &id).await?;
        Ok(Some(Template::Session(id, place.sandbox.clone().map(Box::new))))
    }

    pub(super) async fn create(
        &self,
        caller: &Caller,
        new: NewSession,
    ) -> Result<Metadata, ServiceError> {
        let _reservation = self.admit_sessions(caller.token.as_deref(), 1).await?;
        let new = self.confined(caller, self.limited(new));
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let (place, metadata) = blocking(move || {
            let (directory, metadata) = launcher.create(&sessions, new)?;
            Ok((Place::new(&sessions, directory, &metadata), metadata))
        })
        .await?;
        self.live.fetch_add(1, Ordering::Relaxed);
        self.keepers.admit(&Arc::new(place));
        Ok(metadata)
    }

    /// Applies the server's limits to a new session.
    pub(super) fn limited(&self, new: NewSession) -> NewSession {
        NewSession { max_queue: Some(self.limits.queue), ..new }
    }

    /// Reserves places for this many more sessions of the token, or fails.
    pub(super) async fn admit_sessions(
        &self,
        token: Option<&str>,
        count: u64,
    ) -> Result<Reservation, ServiceError> {
        self.admit_requested(token, RequestedSessions::New(count)).await
    }

    pub(super) async fn admit_requested(
        &self,
        token: Option<&str>,
        places: RequestedSessions,
    ) -> Result<Reservation, ServiceError> {
        let limits = &self.limits;
        let count = match places {
            RequestedSessions::New(count) => count,
            RequestedSessions::Ready => 1,
        };
        let is_ready = places == RequestedSessions::Ready;
        let reservations = self.reservations.reserve(token, count);
        let is_near =
            !is_ready && self.live.load(Ordering::Relaxed) + reservations.all > limits.sessions;
        let is_limited = token.is_some() && limits.sessions_per_token < limits.sessions;
        if !is_near && !is_limited {
            return Ok(reservations);
        }
        // Sessions end without the server's knowledge, so they are counted before one is
        // refused. Those that are just starting are counted by `reservations`.
        let live: Vec<Metadata> = self
            .all()
            .await?
            .into_iter()
            .map(|(_, metadata)| metadata)
            .filter(|m| m.status == SessionStatus::Active)
            .collect();
        self.live.store(live.len() as u64, Ordering::Relaxed);
        let own = live.iter().filter(|m| m.owner.as_deref() == token).count() as u64;
        let refuse = |there: u64, limit: u64, whose: &str| {
            let message = match count {
                1 => format!(
                    "there are {limit} live sessions{whose}, the most that this server allows"
                ),
                _ => format!(
                    "{count} more would be over the {limit} live sessions{whose} that this server allows; there are {there}"
                ),
            };
            Err(ServiceError::new(ErrorCode::TooManySessions, message))
        };
        if !is_ready && live.len() as u64 + reservations.all > limits.sessions {
            return refuse(live.len() as u64, limits.sessions, "");
        }
        if token.is_some() && own + reservations.own > limits.sessions_per_token {
            return refuse(own, limits.sessions_per_token, " of this token");
        }
        Ok(reservations)
    }

    pub(super) async fn all(&self) -> Result<Vec<(Directory, Metadata)>, ServiceError> {
        let sessions = self.keepers.sessions().clone();
        blocking(move || Ok(sessions.list()?)).await
    }

    /// Returns the sessions that a caller may use, newest first.
    pub(crate) async fn session_ids(
        &self,
        caller: &Caller,
    ) -> Result<Vec<SessionId>, ServiceError> {
        let all = self.all().await?;
        let seen = self.visible(caller, &all);
        let visible = all.into_iter().filter(|(_, metadata)| seen.has(metadata));
        Ok(visible.map(|(_, metadata)| metadata.session_id).collect())
    }

    fn visible<'a>(&self, caller: &'a Caller, all: &[(Directory, Metadata)]) -> Visible<'a> {
        let homes = || HomeIndex::of(all.iter().map(|(_, metadata)| metadata));
        let homes = caller.workspaces.is_some().then(homes);
        Visible { caller, homes, bound: self.bound(caller) }
    }

    /// Returns a page of sessions, newest first, and where the next page begins.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        filter: &Filter,
    ) -> Result<(Vec<Metadata>, Option<SessionId>), ServiceError> {
        let all = self.all().await?;
        let seen = self.visible(caller, &all);
        let matching = all.into_iter().map(|(_, metadata)| metadata).filter(|m| {
            seen.has(m)
                && filter.status.as_deref().is_none_or(|status| m.status.as_str() == status)
                && filter.workspace.as_deref().is_none_or(|w| m.workspace.as_deref() == Some(w))
        });
        let mut page: Vec<Metadata> = match &filter.after {
            None => matching.take(filter.limit + 1).collect(),
            Some(after) => {
                let rest = matching.skip_while(|m| m.session_id != *after).skip(1);
                rest.take(filter.limit + 1).collect()
            }
        };
        let has_more = page.len() > filter.limit;
        page.truncate(filter.limit);
        let next = page.last().filter(|_| has_more).map(|m| m.session_id.clone());
        Ok((page, next))
    }

    pub(crate) async fn session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Metadata, ServiceError> {
        let place = self.place(caller, id).await?;
        // If the keeper does not answer, the written records have to do.
        let _ = timeout(SOON, self.settle(&place)).await;
        blocking(move || Ok(place.directory.observed_metadata()?)).await
    }

    /// Makes a live keeper write its records, which it otherwise does in idle time.
    async fn settle(&self, place: &Arc<Place>) -> Result<(), ServiceError> {
        if let Some(mut reached) = self.reach_if_live(place).await? {
            let _ = reached.call(Request::History { limit: 0 }).await;
        }
        Ok(())
    }

    pub(crate) async fn end(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Metadata, ServiceError> {
        let place = self.place(caller, id).await?;
        self.keepers.forget(id);
        self.forget_caller_of(id);
        let launcher = self.keepers.launcher().clone();
        let ended = blocking(move || Ok(launcher.end(&place.directory)?)).await;
        // Somebody may have connected to it meanwhile.
        self.keepers.forget(id);
        ended
    }

    /// Ends all sessions that the caller may use, several at a time. One that cannot be
    /// ended does not delay the others.
    pub(crate) async fn end_all(&self, caller: &Caller) -> Result<EndedAll, ServiceError> {
        let mut all = self.all().await?;
        let seen = self.visible(caller, &all);
        all.retain(|(_, metadata)| {
            let is_live = metadata.status != SessionStatus::Terminated;
            is_live && seen.has(metadata)
        });
        let end = |(directory, metadata): (Directory, Metadata)| async move {
            (metadata.session_id.clone(), self.end_one(directory, metadata.session_id).await)
        };
        let mut outcomes = stream::iter(all).map(end).buffer_unordered(ENDED_AT_ONCE);
        let (mut ended, mut failed) = (Vec::new(), Vec::new());
        while let Some((id, outcome)) = outcomes.next().await {
            match outcome {
                Ok(OneEnded::Now(metadata)) => ended.push(*metadata),
                Ok(OneEnded::Before) => {}
                Err(error) => {
                    tracing::warn!(session_id = %id, %error, "a session could not be ended");
                    failed.push(id);
                }
            }
        }
        Ok(EndedAll::new(ended).with_failed(failed))
    }

    async fn end_one(&self, directory: Directory, id: SessionId) -> Result<OneEnded, ServiceError> {
        self.keepers.forget(&id);
        self.forget_caller_of(&id);
        let launcher = self.keepers.launcher().clone();
        let ended = blocking(move || match launcher.end(&directory) {
            Ok(metadata) => Ok(OneEnded::Now(Box::new(metadata))),
            // It was removed meanwhile, like the session of a finished one-off command.
            Err(_) if !directory.path().exists() => Ok(OneEnded::Before),
            Err(error) => Err(error.into()),
        })
        .await;
        self.keepers.forget(&id);
        ended
    }

    /// Returns the state of the live kernels, or the last captured state of a session
    /// without a keeper, which stays without one.
    pub(crate) async fn state(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<State, ServiceError> {
        let place = self.place(caller, id).await?;
        let directory = place.directory.clone();
        let (metadata, history, saved) = blocking(move || {
            let metadata = directory.observed_metadata()?;
            let history = directory.history().newest(HISTORY.min(metadata.max_history));
            Ok((metadata, history, directory.state().unwrap_or_default()))
        })
        .await?;
        let kernels = if metadata.status == SessionStatus::Active {
            let mut reached = self.keepers.reach(place).await?;
            let Answer::State(view) = reached.call(Request::State).await? else {
                return Err(ServiceError::unexpected());
            };
            State::live(&view)
        } else {
            State::saved(&saved, metadata.language.as_str())
        };
        Ok(State::new(kernels, history, &metadata))
    }

    /// Returns the state of the kernels, with the changes since the session's start, and
    /// the newest runs.
    pub(crate) async fn state_with_changes(
        &self,
        caller: &Caller,
        id: &SessionId,
        runs: u64,
    ) -> Result<(Map<String, Value>, Vec<Entry>), ServiceError> {
        let mut reached = self.reach(caller, id).await?;
        let Answer::State(view) = reached.call(Request::State).await? else {
            return Err(ServiceError::unexpected());
        };
        let history = self.history(caller, id, runs).await?;
        Ok((State::live_with_changes(&view), history))
    }

    pub(crate) async fn history(
        &self,
        caller: &Caller,
        id: &SessionId,
        limit: u64,
    ) -> Result<Vec<Entry>, ServiceError> {
        let place = self.place(caller, id).await?;
        self.settle(&place).await?;
        blocking(move || {
            let max = place.directory.metadata()?.max_history;
            Ok(place.directory.history().newest(limit.min(max)))
        })
        .await
    }

    pub(crate) async fn reset(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<WithContinuity<()>, ServiceError> {
        let mut reached = self.reach(caller, id).await?;
        let Answer::Reset(_) = reached.call(Request::Reset).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(WithContinuity { answer: (), continuity: reached.continuity.clone() })
    }

    /// Interrupts a run, or the current one; returns which it was.
    pub(crate) async fn interrupt(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: Option<RunNo>,
    ) -> Result<Option<RunNo>, ServiceError> {
        let place = self.place(caller, id).await?;
        let Some(mut reached) = self.reach_if_live(&place).await? else { return Ok(None) };
        let Answer::Interrupted { run } =
            reached.call(Request::Interrupt { run, call: None }).await?
        else {
            return Err(ServiceError::unexpected());
        };
        Ok(run)
    }

    /// Checks that the sessions directory can be read. Cheap, since anybody may ask.
    pub(crate) async fn check_storage(&self) -> Result<(), ServiceError> {
        let root = self.keepers.sessions().root().to_owned();
        blocking(move || match std::fs::read_dir(&root) {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("the sessions directory cannot be read: {error}");
                Err(ServiceError::new(ErrorCode::Storage, message))
            }
        })
        .await
    }

    /// Updates the metrics of sessions.
    pub(crate) async fn measure_sessions(&self) -> Result<(), ServiceError> {
        let all = self.all().await?;
        for status in [
            SessionStatus::Starting,
            SessionStatus::Active,
            SessionStatus::Terminated,
            SessionStatus::Lost,
        ] {
            let count = all.iter().filter(|(_, m)| m.status == status).count();
            let labels = StatusLabels { status: status.as_str() };
            self.metrics.sessions.get_or_create(&labels).set(count as i64);
        }
        Ok(())
    }
}

impl Service {
    /// Connects to the session's keeper if it has one. An ended session stays ended, and
    /// a lost one lost.
    pub(super) async fn reach_if_live(
        &self,
        place: &Arc<Place>,
    ) -> Result<Option<ConnectedSession>, ServiceError> {
        // An idle connection may be left to a keeper that has already ended the session.
        let directory = place.directory.clone();
        if blocking(move || Ok(directory.has_socket())).await?
            && let Some(reached) = self.keepers.reach_idle(place)
        {
            return Ok(Some(reached));
        }
        let directory = place.directory.clone();
        let status = blocking(move || Ok(directory.observed_metadata()?.status)).await?;
        if matches!(status, SessionStatus::Active | SessionStatus::Starting) {
            return match self.keepers.reach_live(place).await {
                // It ended between the check and the call.
                Err(error) if error.code == ErrorCode::SessionEnded => Ok(None),
                outcome => outcome,
            };
        }
        Ok(None)
    }
}
