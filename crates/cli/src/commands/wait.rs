use super::start::milliseconds;
use crate::progress::Progress;
use crate::reader::{Outcome, Reader};
use crate::settings::Settings;
use crate::{args, output};
use clap::Args;
use sessile_gateway::answer::{Output, RunResult};
use sessile_protocol::RunNo;
use std::process::ExitCode;
use std::time::Duration;

/// Wait for a run and print its result, as `exec` does
///
/// Ctrl-C leaves; the run goes on. If the session has ended, the result is read
/// from its files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile wait sess_… 3\n  sessile wait sess_… 3 --timeout 10s")]
pub(crate) struct Wait {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// Answer with `running: true` and the output so far after this long
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    timeout: Option<Duration>,
    /// Bytes of each stream to print; the middle of longer ones is left out
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = args::size)]
    max_output: u64,
}

impl Wait {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = RunNo(self.run);
        let progress = Progress::of_run(&reader.directory, run);
        let outcome = reader.result(run, self.max_output, self.timeout.map(milliseconds));
        drop(progress);
        match outcome? {
            Outcome::Finished(done) => output::json(&RunResult::from(&*done))?,
            Outcome::Running(so_far) => output::json(&Output::running(run, &so_far))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
