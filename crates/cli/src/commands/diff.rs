use crate::layers;
use crate::output;
use crate::people::Paint;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer::{DiffForm, LayerDiff};
use std::io;
use std::process::ExitCode;

/// Show what a session in a sandbox has changed in its layer
///
/// A unified diff, which `git apply` and `patch -p1` take. Files that are not
/// text, permissions, links, directories and renames are told. Paths that the
/// session may not see are not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile diff sess_…\n  sessile diff sess_… --stat src\n  \
    sessile diff sess_… --json | jq -r '.changes[].path'")]
pub(crate) struct Diff {
    /// The session
    id: String,
    /// Paths from the workspace, with all that is below them [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<std::ffi::OsString>,
    /// A table of the paths instead of the text of the changes
    #[arg(long)]
    stat: bool,
    /// The changes and the text as JSON
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let layer = layers::open(settings, &self.id)?;
        let diff = layer.diff(&layers::bytes(self.paths), usize::MAX)?;
        let form = if self.stat { DiffForm::Stat } else { DiffForm::Unified };
        let answer = LayerDiff::of(&diff, form);
        if self.json {
            output::json(&answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut out = io::stdout().lock();
        match (form, Paint::at(&io::stdout())) {
            (DiffForm::Unified, Paint::Colours) => {
                output::all(&mut out, layers::painted(&answer.diff).as_bytes())?;
            }
            (DiffForm::Unified | DiffForm::Stat, _) => {
                output::all(&mut out, answer.diff.as_bytes())?;
            }
        }
        layers::tell_skipped(&answer.skipped);
        Ok(ExitCode::SUCCESS)
    }
}
