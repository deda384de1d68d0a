use crate::reader::Reader;
use crate::settings::Settings;
use crate::{args, output};
use clap::Args;
use sessile_gateway::Cursor;
use sessile_gateway::answer;
use sessile_protocol::{ReadOutput, RunNo, RunPhase};
use std::io;
use std::process::ExitCode;

/// Read the output of a run, while it is running or later
///
/// Prints one JSON object; its `cursor` is where the next read continues. With
/// --follow, stdout and stderr are passed through as they come, until nothing
/// can write to them any more, including background processes of the run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile output sess_… 3\n  \
    sessile output sess_… 3 --from 120-0\n  \
    sessile output sess_… 3 --follow")]
pub(crate) struct Output {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// Begin here: the `cursor` of an earlier answer
    #[arg(long, value_name = "CURSOR", default_value_t = Cursor::default())]
    from: Cursor,
    /// Pass the output through as it comes, to its end
    #[arg(long, conflicts_with = "max_output")]
    follow: bool,
    /// Maximum bytes of each stream to print
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = args::size)]
    max_output: u64,
}

impl Output {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = RunNo(self.run);
        let read = ReadOutput {
            stdout_from: self.from.stdout,
            stderr_from: self.from.stderr,
            ..ReadOutput::waiting(run)
        };
        if self.follow {
            follow(&mut reader, read)?;
        } else {
            let view = reader.output(ReadOutput { wait: false, max: self.max_output, ..read })?;
            output::json(&answer::Output::of(run, &view))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn follow(reader: &mut Reader, mut read: ReadOutput) -> anyhow::Result<()> {
    // The run's end is not news as long as something can write.
    read.known = Some(RunPhase::Exited);
    loop {
        let view = reader.output(read)?;
        output::all(&mut io::stdout().lock(), &view.stdout)?;
        output::all(&mut io::stderr().lock(), &view.stderr)?;
        read.stdout_from = view.stdout_next;
        read.stderr_from = view.stderr_next;
        let is_empty = view.stdout.is_empty() && view.stderr.is_empty();
        if view.phase == RunPhase::Closed && is_empty {
            return Ok(());
        }
    }
}
