//! What the arguments and the environment come to, resolved once.

use crate::config::{Flags, Listing, Source};
use crate::progress::Progress;
use sessile_client::{Bounds, GoingOn, Launcher, SavedTo, TakenUp};
use sessile_protocol::SessionId;
use sessile_store::{Sessions, StoreError, UserState};
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
    /// Where sessions are kept, if that was said.
    pub(crate) sessions_dir: Option<PathBuf>,
    /// Who said that.
    pub(crate) sessions_dir_from: Source,
}

/// The environment that sessions begin with, as far as it is text.
pub(crate) fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Where the user keeps what belongs to no workspace: below XDG_STATE_HOME, or
/// `~/.local/state`. A user without a home has a directory for temporary files.
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

    /// The session that is called so: by its id, the beginning of one, its name,
    /// or `@last`. A durable one of another machine is taken up by its id.
    pub(crate) fn session(&self, text: &str) -> anyhow::Result<SessionId> {
        match self.sessions.resolve(text) {
            Ok(id) => {
                if self.has_moved(&id) {
                    self.take_up(&id)?;
                }
                Ok(id)
            }
            Err(StoreError::NotFound(what)) => match text.parse::<SessionId>() {
                Ok(id) if self.take_up(&id)? => Ok(id),
                Ok(_) | Err(_) => Err(StoreError::NotFound(what).into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Whether another machine has taken a session up.
    fn has_moved(&self, id: &SessionId) -> bool {
        let metadata = self.sessions.find(id).and_then(|directory| directory.metadata());
        metadata.is_ok_and(|metadata| metadata.moved_to().is_some())
    }

    /// Has a session of the configured store go on here, if it is there.
    fn take_up(&self, id: &SessionId) -> anyhow::Result<bool> {
        let Some(store) = self.store()? else {
            return Ok(false);
        };
        let progress = Progress::of("taking the session up from its store");
        let going_on = GoingOn {
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
        if let Some(TakenUp { session, store, from, as_of_run }) = told {
            let from = from.unwrap_or_else(|| "another machine".to_owned());
            eprintln!("{id} goes on here, from {store} as of run {as_of_run}; it was on {from}");
            for left in session.left {
                eprintln!("not as it was: {} ({})", left.name, left.reason);
            }
        }
        Ok(is_here)
    }

    /// Where durable sessions are saved besides the disk, if that was configured.
    pub(crate) fn store(&self) -> anyhow::Result<Option<String>> {
        Ok(Listing::of(self, &Flags::default())?.store())
    }

    /// Where a new session's saves go.
    pub(crate) fn saved_to(&self, asked: Option<SavedTo>) -> anyhow::Result<Option<SavedTo>> {
        Ok(match asked {
            Some(SavedTo::Disk) => Some(self.store()?.map_or(SavedTo::Disk, SavedTo::Store)),
            Some(SavedTo::Store(url)) => Some(SavedTo::Store(url)),
            None => None,
        })
    }
}
