use crate::branching;
use crate::display::{self, Form};
use crate::settings::Settings;
use clap::Args;
use jiff::Timestamp;
use sessile_gateway::answer::Checkpoint;
use sessile_protocol::{Answer, Request};
use std::process::ExitCode;

/// List the checkpoints of a session, oldest first
///
/// Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile checkpoints sess_…\n  \
    sessile checkpoints sess_… | jq -r '.[].name'")]
pub(crate) struct Checkpoints {
    /// The session
    id: String,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Checkpoints {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let answer = branching::ask(settings, &self.id, "asking", Request::Checkpoints)?;
        let Answer::Checkpoints { checkpoints } = answer else {
            anyhow::bail!(sessile_client::ClientError::Unexpected);
        };
        Form::of_stdout(self.json).print(
            || checkpoints.iter().map(Checkpoint::from).collect::<Vec<_>>(),
            |page| display::checkpoints::list(&checkpoints, Timestamp::now(), page),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
