use crate::reader::Reader;
use crate::settings::Settings;
use crate::{args, output};
use anyhow::bail;
use clap::Args;
use sessile_client::ClientError;
use sessile_gateway::answer::Resized;
use sessile_protocol::{Answer, Request, RunNo, TerminalSize};
use std::process::ExitCode;

/// Resize the terminal of a run
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile resize sess_… 3 120x40")]
pub(crate) struct Resize {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// Columns and rows
    #[arg(value_name = "COLSxROWS", value_parser = args::terminal_size)]
    size: TerminalSize,
}

impl Resize {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = RunNo(self.run);
        let request = Request::Resize { run, size: self.size };
        let Answer::Resized = reader.keeper(run)?.call(request)? else {
            bail!(ClientError::Unexpected);
        };
        output::json(&Resized::new(run, self.size))?;
        Ok(ExitCode::SUCCESS)
    }
}
