//! Requests forks and checkpoints from a session's keeper.

use crate::progress::Progress;
use crate::settings::Settings;
use sessile_protocol::{Answer, Request};

/// Sends a request, and shows progress while it takes long.
pub(crate) fn ask(
    settings: &Settings,
    id: &str,
    doing: &str,
    request: Request,
) -> anyhow::Result<Answer> {
    let _progress = Progress::of(format!("{doing} {id}"));
    let id = settings.session(id)?;
    let directory = settings.sessions.find(&id)?;
    let mut client = settings.launcher.open(&directory)?;
    Ok(client.call(request)?)
}
