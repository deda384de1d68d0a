use crate::display::{self, Form};
use crate::reader::Reader;
use crate::settings::Settings;
use clap::Args;
use jiff::Timestamp;
use sessile_gateway::answer;
use std::process::ExitCode;

/// List the background processes of a session
///
/// A job is a process with all its descendants; CPU, memory and ports include
/// all of them. Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile jobs sess_…\n  \
    sessile jobs sess_… | jq '.[] | {pid, ports}'\n  \
    sessile signal sess_… --job 4242 TERM\n  \
    sessile output sess_… 3 --follow")]
pub(crate) struct Jobs {
    /// The session
    id: String,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Jobs {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let jobs = Reader::find(settings, &self.id)?.jobs()?;
        Form::of_stdout(self.json).print(
            || jobs.iter().map(answer::Job::from).collect::<Vec<_>>(),
            |page| display::jobs::list(&jobs, Timestamp::now(), page),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
