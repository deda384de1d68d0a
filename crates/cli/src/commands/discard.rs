use crate::display::Form;
use crate::layers;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer::LayerDiscarded;
use std::process::ExitCode;

/// Discard a sandboxed session's changes
///
/// The session sees the real files again, while it goes on. Programs that have
/// an old file open keep it. Prints JSON; at a terminal, the paths.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile discard sess_… build\n  sessile discard sess_…")]
pub(crate) struct Discard {
    /// The session
    id: String,
    /// Paths relative to the workspace, with everything below them [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<std::ffi::OsString>,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Discard {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let layer = layers::open(settings, &self.id)?;
        let discarded = layer.discard(&layers::bytes(self.paths))?;
        let answer = LayerDiscarded::from(&discarded);
        Form::of_stdout(self.json)
            .print(|| &answer, |_| layers::paths(&answer.discarded, "Nothing to discard.\n"))?;
        layers::tell_skipped(&answer.skipped);
        Ok(ExitCode::SUCCESS)
    }
}
