//! Asking a session's keeper for forks and checkpoints.

use crate::args;
use crate::settings::Settings;
use sessile_protocol::{Answer, Request};

/// The version of keepers that know of them.
const BRANCHING: u16 = 4;

pub(crate) fn ask(settings: &Settings, id: &str, request: Request) -> anyhow::Result<Answer> {
    let id = args::session(id)?;
    let directory = settings.sessions.find(&id)?;
    let mut client = settings.launcher.open(&directory)?;
    if client.version()? < BRANCHING {
        anyhow::bail!(
            "the session's keeper is of an older version, which has no forks and checkpoints; start a new session"
        );
    }
    Ok(client.call(request)?)
}
