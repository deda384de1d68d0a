use crate::display::Paint;
use crate::layers;
use crate::output;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer::{DiffForm, LayerDiff};
use std::io;
use std::process::ExitCode;

/// Show the changes in a sandboxed session's layer
///
/// Prints a unified diff for `git apply` and `patch -p1`, with notes about
/// binary files, permissions, links, directories and renames. Paths that the
/// session may not see are left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile diff sess_…\n  sessile diff sess_… --stat src\n  \
    sessile diff sess_… --json | jq -r '.changes[].path'")]
pub(crate) struct Diff {
    /// The session
    id: String,
    /// Paths relative to the workspace, with everything below them [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<std::ffi::OsString>,
    /// Return a table of the paths instead of a diff
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
