use crate::output;
use crate::progress::Progress;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer;
use sessile_protocol::Request;
use std::process::ExitCode;

/// Restart a session with fresh kernels, in its initial directory and environment
///
/// The id stays the same; everything the session had started is ended, and its
/// history is empty.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sessile reset sess_…")]
pub(crate) struct Reset {
    /// The session
    id: String,
}

impl Reset {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let progress = Progress::of(format!("resetting {}", self.id));
        settings.launcher.open(&directory)?.call(Request::Reset)?;
        drop(progress);
        output::json(&answer::Reset::new(id, None))?;
        Ok(ExitCode::SUCCESS)
    }
}
