use crate::settings::Settings;
use crate::{branching, output};
use clap::Args;
use sessile_gateway::answer;
use sessile_protocol::{Answer, NewCheckpoint, Request};
use std::process::ExitCode;

/// Take a checkpoint that the session can be rewound to
///
/// It has the state of every kernel (variables, functions, imports,
/// directories), and with --files the workspace. Checkpoints of live kernels end
/// with the session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile checkpoint sess_… --name before-refactoring --files\n  \
    sessile rewind sess_… before-refactoring")]
pub(crate) struct Checkpoint {
    /// The session
    id: String,
    /// Name of the checkpoint [default: checkpoint-RUN]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Include the files of the workspace
    #[arg(long)]
    files: bool,
    /// Wait for running commands instead of failing
    #[arg(long)]
    wait: bool,
}

impl Checkpoint {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let new = NewCheckpoint { name: self.name, files: self.files, wait: self.wait };
        let answer =
            branching::ask(settings, &self.id, "taking a checkpoint of", Request::Checkpoint(new))?;
        let Answer::Checkpointed(view) = answer else {
            anyhow::bail!(sessile_client::ClientError::Unexpected);
        };
        output::json(&answer::Checkpoint::from(&*view))?;
        Ok(ExitCode::SUCCESS)
    }
}
