use crate::output;
use crate::settings::Settings;
use clap::Args;
use serde_json::json;
use sessile_store::SessionStatus;
use std::process::ExitCode;

/// Remove the directories of ended sessions
///
/// Lost sessions are kept, because they can still be continued; --lost removes
/// those, too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sessile cleanup")]
pub(crate) struct Cleanup {
    /// Also remove sessions whose keeper has died
    #[arg(long)]
    lost: bool,
}

impl Cleanup {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut cleaned = Vec::new();
        for (directory, metadata) in settings.sessions.list()? {
            let is_over = match metadata.status {
                SessionStatus::Terminated => true,
                SessionStatus::Lost => self.lost,
                SessionStatus::Starting | SessionStatus::Active | SessionStatus::Unknown => false,
            };
            // Holding the lock, nobody can be reviving it; a keeper that has
            // just answered may still have it for a moment.
            if is_over && directory.await_lock()?.is_some() {
                directory.remove()?;
                cleaned.push(metadata.session_id);
            }
        }
        output::json(&json!({"cleaned": cleaned}))?;
        Ok(ExitCode::SUCCESS)
    }
}
