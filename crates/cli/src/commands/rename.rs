use crate::output;
use crate::settings::Settings;
use clap::Args;
use std::process::ExitCode;

/// Rename a session
///
/// Live sessions have different names. It may be running something, and need not
/// be live.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sessile rename sess_… web")]
pub(crate) struct Rename {
    /// The session
    id: String,
    /// 1 to 100 letters, digits, spaces and -_.:/
    name: String,
}

impl Rename {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let renamed = settings.launcher.rename(&settings.sessions, &directory, Some(&self.name))?;
        output::json(&renamed)?;
        Ok(ExitCode::SUCCESS)
    }
}
