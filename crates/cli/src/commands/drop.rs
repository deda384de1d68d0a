use crate::settings::Settings;
use crate::{branching, output};
use clap::Args;
use sessile_gateway::answer::Dropped;
use sessile_protocol::{Answer, DropCheckpoints, Request};
use std::process::ExitCode;

/// Remove checkpoints
///
/// Their processes end, and files that no other checkpoint needs are removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile drop sess_… before-refactoring\n  \
    sessile drop sess_… --all")]
pub(crate) struct Drop {
    /// The session
    id: String,
    /// The checkpoints
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

impl Drop {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let which =
            if self.all { DropCheckpoints::All } else { DropCheckpoints::Named(self.names) };
        let answer = branching::ask(
            settings,
            &self.id,
            "dropping checkpoints of",
            Request::DropCheckpoints(which),
        )?;
        let Answer::Dropped { names } = answer else {
            anyhow::bail!(sessile_client::ClientError::Unexpected);
        };
        output::json(&Dropped { dropped: names })?;
        Ok(ExitCode::SUCCESS)
    }
}
