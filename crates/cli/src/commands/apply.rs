use crate::display::Form;
use crate::layers;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer::LayerApplied;
use sessile_layer::Force;
use std::process::ExitCode;

/// Apply a sandboxed session's changes to the real directory
///
/// If files have changed there since the session took them over, they are named
/// and nothing is applied, unless --force is given. Prints JSON; at a terminal,
/// the paths.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile apply sess_…\n  sessile apply sess_… src README.md\n  \
    sessile apply sess_… --force"
)]
pub(crate) struct Apply {
    /// The session
    id: String,
    /// Paths relative to the workspace, with everything below them [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<std::ffi::OsString>,
    /// Replace files that have changed in the real directory meanwhile
    #[arg(long, short)]
    force: bool,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Apply {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let layer = layers::open(settings, &self.id)?;
        let force = if self.force { Force::Yes } else { Force::No };
        let applied = layer.apply(&layers::bytes(self.paths), force)?;
        let answer = LayerApplied::from(&applied);
        Form::of_stdout(self.json)
            .print(|| &answer, |_| layers::paths(&answer.applied, "Nothing to apply.\n"))?;
        layers::tell_skipped(&answer.skipped);
        Ok(ExitCode::SUCCESS)
    }
}
