use crate::output;
use crate::reader::Reader;
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use sessile_client::ClientError;
use sessile_gateway::answer::{Signalled, SignalledJob};
use sessile_gateway::signal_number;
use sessile_protocol::{Answer, Request, RunNo};
use std::process::ExitCode;

/// Send a signal to a run or a job
///
/// A shell itself only gets INT, which interrupts the run. If the run has ended,
/// its background jobs get the signal. With --job, one job gets it, or a process
/// of a job, with all its descendants.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    override_usage = "sessile signal <ID> <RUN> <SIGNAL>\n       sessile signal <ID> --job <PID> <SIGNAL>",
    after_help = "Examples:\n  \
        sessile signal sess_… 3 TERM\n  \
        sessile signal sess_… 3 USR1\n  \
        sessile signal sess_… --job 4242 KILL"
)]
pub(crate) struct Signal {
    /// The session
    id: String,
    /// The run's number
    #[arg(required_unless_present = "job", conflicts_with = "job")]
    run: Option<u64>,
    /// A name, such as TERM or SIGTERM, or a number
    #[arg(value_parser = signal_number)]
    signal: i32,
    /// A job, or a process of one, instead of a run
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
}

impl Signal {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        if let Some(pid) = self.job {
            let processes = reader.signal_job(pid, self.signal)?;
            output::json(&SignalledJob { pid, processes })?;
            return Ok(ExitCode::SUCCESS);
        }
        let run = RunNo(self.run.unwrap_or_default());
        let request = Request::Signal { run, signal: self.signal };
        let Answer::Signalled { processes } = reader.keeper(run)?.call(request)? else {
            bail!(ClientError::Unexpected);
        };
        output::json(&Signalled { run, processes })?;
        Ok(ExitCode::SUCCESS)
    }
}
