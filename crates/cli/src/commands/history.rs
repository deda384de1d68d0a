use crate::output;
use crate::settings::Settings;
use clap::Args;
use std::process::ExitCode;

/// Show what was run in a session, newest last
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile history sess_…\n  sessile history sess_… --limit 5 | jq -r '.[].command'"
)]
pub(crate) struct History {
    /// The session
    id: String,
    /// Show the newest N
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u64,
}

impl History {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let directory = settings.sessions.find(&settings.session(&self.id)?)?;
        // From the file: it is written before a run is answered, and it is
        // there for sessions that have ended, too.
        let max = directory.metadata()?.max_history;
        let entries = directory.history().newest(self.limit.min(max));
        output::json(&entries)?;
        Ok(ExitCode::SUCCESS)
    }
}
