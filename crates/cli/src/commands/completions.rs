use crate::{completion, output};
use clap::Args;
use clap_complete::Shell;
use std::io;
use std::process::ExitCode;

/// Print a shell completion script
///
/// The script calls `sessile`, which has to be in PATH.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile completions bash >~/.local/share/bash-completion/completions/sessile\n  \
    sessile completions zsh >~/.zfunc/_sessile\n  \
    sessile completions fish >~/.config/fish/completions/sessile.fish")]
pub(crate) struct Completions {
    /// The shell that is to complete them
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let script = completion::script(&self.shell.to_string())?;
        output::all(&mut io::stdout().lock(), &script)?;
        Ok(ExitCode::SUCCESS)
    }
}
