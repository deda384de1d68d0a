use crate::output;
use crate::reader::Reader;
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use serde_json::json;
use sessile_client::ClientError;
use sessile_gateway::signal_number;
use sessile_protocol::{Answer, Request, RunNo};
use std::process::ExitCode;

/// Signal what a run has in the foreground
///
/// A shell itself gets no signals but INT, which interrupts the run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile signal sess_… 3 TERM\n  sessile signal sess_… 3 USR1")]
pub(crate) struct Signal {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// A name, such as TERM or SIGTERM, or a number
    #[arg(value_parser = signal_number)]
    signal: i32,
}

impl Signal {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = RunNo(self.run);
        let request = Request::Signal { run, signal: self.signal };
        let Answer::Signalled { processes } = reader.keeper(run)?.call(request)? else {
            bail!(ClientError::Unexpected);
        };
        output::json(&json!({"run": run, "processes": processes}))?;
        Ok(ExitCode::SUCCESS)
    }
}
