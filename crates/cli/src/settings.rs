//! What the arguments and the environment come to, resolved once.

use crate::config::Source;
use sessile_client::Launcher;
use sessile_protocol::SessionId;
use sessile_store::{Sessions, UserState};
use std::collections::BTreeMap;
use std::ffi::OsString;
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
    /// or `@last`.
    pub(crate) fn session(&self, text: &str) -> anyhow::Result<SessionId> {
        Ok(self.sessions.resolve(text)?)
    }
}
