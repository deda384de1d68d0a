use super::rewind::Options;
use crate::settings::Settings;
use clap::Args;
use sessile_protocol::RewindTo;
use std::process::ExitCode;

/// Undo the last run
///
/// Only in a session started with --auto. Variables, directory and imports are
/// as before the run, and with --files the workspace, too. The same as `rewind
/// --runs 1`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile start python3 --auto 10 --files\n  \
    sessile undo sess_…")]
pub(crate) struct Undo {
    /// The session
    id: String,
    #[command(flatten)]
    options: Options,
}

impl Undo {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        self.options.rewind(settings, &self.id, RewindTo::Runs(1))
    }
}
