//! Asking a session's keeper for forks and checkpoints.

use crate::settings::Settings;
use sessile_protocol::{Answer, Request};

pub(crate) fn ask(settings: &Settings, id: &str, request: Request) -> anyhow::Result<Answer> {
    let id = settings.session(id)?;
    let directory = settings.sessions.find(&id)?;
    let mut client = settings.launcher.open(&directory)?;
    Ok(client.call(request)?)
}
