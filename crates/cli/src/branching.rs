//! Asking a session's keeper for forks and checkpoints.

use crate::progress::Progress;
use crate::settings::Settings;
use sessile_protocol::{Answer, Request};

/// Asks, and says what is being done while it takes long.
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
