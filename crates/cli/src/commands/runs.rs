use crate::display::{self, Form};
use crate::reader::Reader;
use crate::settings::Settings;
use clap::Args;
use jiff::Timestamp;
use sessile_gateway::answer;
use std::process::ExitCode;

/// List the runs of a session, newest last: queued, running and finished ones
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile runs sess_…\n  sessile runs sess_… | jq '.[] | select(.phase == \"running\") | .run'"
)]
pub(crate) struct Runs {
    /// The session
    id: String,
    /// Show the newest N of the finished ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u64,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Runs {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        // Unfinished runs first: one that ends meanwhile is in the history then, and is
        // not missed.
        let open = reader.open_runs()?;
        let max = reader.directory.metadata()?.max_history;
        let finished = reader.directory.history().newest(self.limit.min(max));
        let runs = answer::runs(&open, &finished);
        Form::of_stdout(self.json)
            .print(|| &runs, |page| display::runs::list(&runs, Timestamp::now(), page))?;
        Ok(ExitCode::SUCCESS)
    }
}
