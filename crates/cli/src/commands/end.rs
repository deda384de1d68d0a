use crate::progress::{Counter, Progress};
use crate::settings::Settings;
use crate::{args, output};
use clap::Args;
use serde_json::json;
use sessile_store::SessionStatus;
use std::process::ExitCode;

/// End a session and everything that it started
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile end sess_…\n  sessile end --all")]
pub(crate) struct End {
    /// The session
    #[arg(required_unless_present = "all")]
    id: Option<String>,
    /// End all sessions
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

impl End {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        if let Some(id) = self.id {
            let id = args::session(&id)?;
            settings.launcher.end(&settings.sessions.find(&id)?)?;
            output::json(&json!({"status": "terminated", "session_id": id}))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut live = settings.sessions.list()?;
        live.retain(|(_, metadata)| metadata.status != SessionStatus::Terminated);
        let (done, all) = (Counter::default(), live.len());
        let counted = done.clone();
        let progress = Progress::show(move || format!("ended {counted} of {all} sessions"));
        let mut ended = Vec::new();
        for (directory, metadata) in live {
            settings.launcher.end(&directory)?;
            ended.push(metadata.session_id);
            done.add(1);
        }
        drop(progress);
        output::json(&json!({"status": "terminated", "session_ids": ended}))?;
        Ok(ExitCode::SUCCESS)
    }
}
