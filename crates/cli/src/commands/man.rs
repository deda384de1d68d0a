use crate::{args, output};
use anyhow::Context;
use clap::Args;
use clap_mangen::Man as Page;
use std::io;
use std::process::ExitCode;

/// Print the manual page of sessile, or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile man | man -l -\n  \
    sessile man exec >~/.local/share/man/man1/sessile-exec.1")]
pub(crate) struct Man {
    /// One of the commands
    command: Option<String>,
}

impl Man {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        // Built, so that commands have their options and full names.
        let mut all = args::command();
        all.build();
        let command = match &self.command {
            None => all,
            Some(name) => {
                let found = all.find_subcommand(name).cloned();
                found.with_context(|| format!("there is no command {name:?}; see --help"))?
            }
        };
        let mut page = Vec::new();
        Page::new(command).render(&mut page)?;
        output::all(&mut io::stdout().lock(), &page)?;
        Ok(ExitCode::SUCCESS)
    }
}
