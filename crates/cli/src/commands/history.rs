use crate::display::{self, Form};
use crate::settings::Settings;
use clap::Args;
use jiff::Timestamp;
use sessile_gateway::answer::RunRow;
use std::process::ExitCode;

/// Show what was run in a session, newest last
///
/// Prints a JSON array; at a terminal, a table.
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
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl History {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let directory = settings.sessions.find(&settings.session(&self.id)?)?;
        // From the file: it is written before a run is answered, and exists for ended
        // sessions, too.
        let metadata = directory.metadata()?;
        let entries = directory.history().newest(self.limit.min(metadata.max_history));
        for lost in &metadata.lost_at_end {
            eprintln!("sessile: {lost}");
        }
        Form::of_stdout(self.json).print(
            || &entries,
            |page| {
                let rows: Vec<RunRow> = entries.iter().map(RunRow::from).collect();
                display::runs::list(&rows, Timestamp::now(), page)
            },
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
