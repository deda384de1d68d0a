//! What the arguments and the environment come to, resolved once.

use crate::config::Source;
use sessile_client::Launcher;
use sessile_store::Sessions;
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

impl Settings {
    pub(crate) fn resolve(
        sessions_dir: Option<PathBuf>,
        sessions_dir_from: Source,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let launcher = Launcher::new(program, vec![KEEPER.to_owned()]);
        let place = sessions_dir.clone().unwrap_or_else(|| PathBuf::from(".sessions"));
        Ok(Self { sessions: Sessions::at(place), launcher, sessions_dir, sessions_dir_from })
    }
}
