//! The settings from arguments and environment, resolved once.

use crate::config::{Flags, Listing, Source};
use crate::progress::Progress;
use sessile_client::{Bounds, ContinueOptions, ContinuedSession, Launcher, SavedTo};
use sessile_protocol::SessionId;
use sessile_store::{Directory, Metadata, Scope, Sessions, StoreError, UserState};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

/// The first argument of a keeper process.
pub(crate) const KEEPER: &str = "keeper";

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) sessions: Sessions,
    pub(crate) launcher: Launcher,
    /// Where sessions are kept, if that was given.
    pub(crate) sessions_dir: Option<PathBuf>,
    /// Where that value comes from.
    pub(crate) sessions_dir_from: Source,
}

/// Returns the initial environment of sessions, as far as it is text.
pub(crate) fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Returns the user's directory for what belongs to no workspace: below XDG_STATE_HOME,
/// or `~/.local/state`. For a user without a home it is below the directory for temporary files.
fn user_state() -> UserState {
    let given = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let usual = || std::env::home_dir().filter(|p| p.is_absolute()).map(|p| p.join(".local/state"));
    UserState::at(match given.or_else(usual) {
        Some(place) => place.join("sessile"),
        None => {
            let uid = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("sessile-state-{uid}"))
        }
    })
}

impl Settings {
    pub(crate) fn resolve(
        sessions_dir: Option<PathBuf>,
        sessions_dir_from: Source,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let user = user_state();
        let launcher = Launcher::new(program, vec![KEEPER.to_owned()], user.clone());
        let place = sessions_dir.clone().unwrap_or_else(|| PathBuf::from(".sessions"));
        Ok(Self { sessions: Sessions::at(place, user), launcher, sessions_dir, sessions_dir_from })
    }

    /// Finds a session by its id, the beginning of an id, its name, or `@last`. A durable
    /// session of another machine is taken up by its id.
    pub(crate) fn session(&self, text: &str) -> anyhow::Result<SessionId> {
        match self.sessions.resolve(text) {
            Ok(id) => {
                // Waits for another process that is just taking it up.
                let is_made = self.sessions.find(&id).is_ok_and(|found| found.has_metadata());
                if !is_made || self.has_moved(&id) {
                    self.take_up(&id)?;
                }
                Ok(id)
            }
            Err(StoreError::NotFound(what)) => match text.parse::<SessionId>() {
                Ok(id) if self.take_up(&id)? => Ok(id),
                Ok(_) | Err(_) => {
                    Err(self.elsewhere(text).unwrap_or(StoreError::NotFound(what)).into())
                }
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Returns an error that names the directory of a session outside of this sessions
    /// directory: the SDKs' sessions are in the local server's.
    fn elsewhere(&self, text: &str) -> Option<StoreError> {
        let (directories, all): (Vec<Directory>, Vec<Metadata>) =
            self.sessions.recorded_in(Scope::User).ok()?.into_iter().unzip();
        let id = sessile_store::choose(text, &all, None).ok()?;
        let at = all.iter().position(|metadata| metadata.session_id == id)?;
        let root = directories.get(at)?.path().parent()?.to_owned();
        Some(StoreError::Elsewhere { id: id.to_string(), root })
    }

    /// Whether another machine has taken a session up. If the store cannot be asked, the
    /// session goes on here.
    fn has_moved(&self, id: &SessionId) -> bool {
        let Ok(directory) = self.sessions.find(id) else {
            return false;
        };
        self.launcher.check_for_move(&directory).unwrap_or_else(|error| {
            if std::io::stderr().is_terminal() {
                eprintln!("{id} goes on here, though its store cannot be asked: {error}");
            }
            false
        })
    }

    /// Continues a session of the configured store here, if it is there.
    fn take_up(&self, id: &SessionId) -> anyhow::Result<bool> {
        let Some(store) = self.store()? else {
            return Ok(false);
        };
        let progress = Progress::of("taking the session up from its store");
        let going_on = ContinueOptions {
            bounds: Bounds { roots: vec!["/".into()], otherwise: ".".into() },
            environment: environment(),
            owner: None,
            max_queue: None,
        };
        let launcher = self.launcher.clone().with_store(Some(store));
        let taken = launcher.take_up(&self.sessions, id, going_on)?;
        drop(progress);
        let is_here = taken.is_some() || self.sessions.find(id).is_ok();
        // Programs read it in the notes of the next answer.
        let told = taken.filter(|_| std::io::stderr().is_terminal());
        if let Some(ContinuedSession { session, store, from, as_of_run }) = told {
            let from = from.unwrap_or_else(|| "another machine".to_owned());
            eprintln!("{id} goes on here, from {store} as of run {as_of_run}; it was on {from}");
            for left in session.left {
                eprintln!("not as it was: {} ({})", left.name, left.reason);
            }
        }
        Ok(is_here)
    }

    /// Returns where durable sessions are saved besides the disk, if configured.
    pub(crate) fn store(&self) -> anyhow::Result<Option<String>> {
        Ok(Listing::of(self, &Flags::default())?.store())
    }

    /// Returns where a new session's saves go.
    pub(crate) fn saved_to(&self, asked: Option<SavedTo>) -> anyhow::Result<Option<SavedTo>> {
        Ok(match asked {
            Some(SavedTo::Disk) => Some(self.store()?.map_or(SavedTo::Disk, SavedTo::Store)),
            Some(SavedTo::Store(url)) => Some(SavedTo::Store(url)),
            None => None,
        })
    }
}
