use crate::display::Paint;
use crate::following::{Began, Ended, Event, ExistingRuns, Following, Next, NotARun, written};
use crate::reader::Reader;
use crate::settings::Settings;
use crate::transcript::{Form, Reading, Transcript};
use anyhow::bail;
use clap::Args;
use sessile_protocol::RunPhase;
use sessile_store::SessionStatus;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

/// Print the runs of a session: what was run, what it wrote, how it ended
///
/// Every line begins with the number of its run and a sign: `>` the command, `|`
/// its stdout, `!` its stderr, `=` how it ended, `*` an event that is not a run
/// (a rewind). With --follow, runs and their background output are printed as
/// they happen, until the session ends. Reading changes nothing in the session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile logs sess_…\n  \
    sessile logs sess_… --follow\n  \
    sessile logs sess_… --follow --tail 0 | grep '!'\n  \
    sessile logs sess_… --json | jq -r 'select(.event == \"exited\") | .exit_code'")]
pub(crate) struct Logs {
    /// The session
    id: String,
    /// Print runs as they happen
    #[arg(long, short)]
    follow: bool,
    /// Begin with the newest N finished runs
    #[arg(long, value_name = "N", default_value_t = 10)]
    tail: u64,
    /// Print one JSON object per event
    #[arg(long)]
    json: bool,
}

impl Logs {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let past = ExistingRuns::read(&mut reader, self.tail)?;
        let mut transcript = Transcript::new(io::stdout().lock(), self.form());
        for entry in &past.finished {
            if let Some(happened) = NotARun::of(entry) {
                if transcript.show(&Event::NotARun(happened))? == Reading::Over {
                    return Ok(ExitCode::SUCCESS);
                }
                continue;
            }
            let run = entry.run;
            let mut reading = transcript.show(&Event::Began(Began::from(entry)))?;
            written(&mut reader, run, |event| {
                if reading == Reading::On {
                    reading = transcript.show(&event)?;
                }
                Ok(())
            })?;
            if reading == Reading::Over
                || transcript.show(&Event::Ended(Ended::from(entry)))? == Reading::Over
            {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if self.follow {
            follow(&past, reader, transcript)
        } else {
            leave(&past, reader, transcript)
        }
    }

    fn form(&self) -> Form {
        match (self.json, Paint::at(&io::stdout())) {
            (true, _) => Form::Json,
            (false, Paint::Colours) => Form::Coloured,
            (false, Paint::Plain) => Form::Plain,
        }
    }
}

/// Shows the unfinished runs, as far as they have got.
fn leave(
    past: &ExistingRuns,
    mut reader: Reader,
    mut transcript: Transcript<impl Write>,
) -> anyhow::Result<ExitCode> {
    for open in &past.open {
        if open.phase >= RunPhase::Running {
            transcript.show(&Event::Began(Began::from(open)))?;
            written(&mut reader, open.run, |event| {
                transcript.show(&event)?;
                Ok(())
            })?;
        }
        let done = reader.directory.history().find(open.run);
        let reading = match done {
            Some(entry) => transcript.show(&Event::Ended(Ended::from(&entry)))?,
            None => transcript.leave(open.run, open.phase.as_str())?,
        };
        if reading == Reading::Over {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn follow(
    past: &ExistingRuns,
    reader: Reader,
    mut transcript: Transcript<impl Write>,
) -> anyhow::Result<ExitCode> {
    let directory = reader.directory.clone();
    let Some(mut following) = Following::after(past, reader)? else {
        return finish(&mut transcript, directory.observed_metadata()?.status);
    };
    let stdout = io::stdout();
    loop {
        match following.next(stdout.as_fd())? {
            Next::Event(event) => {
                if transcript.show(&event)? == Reading::Over {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            Next::Over(status) => return finish(&mut transcript, status),
            Next::Unread => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Shows what became of the session.
fn finish(
    transcript: &mut Transcript<impl Write>,
    status: SessionStatus,
) -> anyhow::Result<ExitCode> {
    match status {
        SessionStatus::Terminated => {
            transcript.note(status.as_str(), "the session has ended")?;
            Ok(ExitCode::SUCCESS)
        }
        SessionStatus::Starting
        | SessionStatus::Active
        | SessionStatus::Lost
        | SessionStatus::Unknown => {
            transcript.note(SessionStatus::Lost.as_str(), "the session is lost")?;
            bail!("the session's keeper has died; the next exec goes on from its last state")
        }
    }
}
