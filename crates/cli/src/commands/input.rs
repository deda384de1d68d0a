use crate::output;
use crate::progress::{self, Counter, Progress};
use crate::reader::Reader;
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use sessile_client::{Client, ClientError};
use sessile_gateway::answer;
use sessile_protocol::{Answer, Code, Request, RunNo};
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

/// How much is sent at once. A person's lines are sent as they are typed.
const CHUNK: usize = 64 << 10;

/// No event reports that a run has read some of its input. At this pace, 16 MiB at a
/// time, nothing is delayed noticeably.
const PAUSE: Duration = Duration::from_millis(10);

/// Send stdin to an interactive run
///
/// The run's stdin stays open after that, unless --eof is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo y | sessile input sess_… 3\n  \
    sessile input sess_… 3 --eof <answers.txt\n  \
    sessile input sess_… 3 --eof </dev/null")]
pub(crate) struct Input {
    /// The session
    id: String,
    /// The run's number
    run: u64,
    /// Close the run's stdin after that
    #[arg(long)]
    eof: bool,
}

impl Input {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = RunNo(self.run);
        let client = reader.keeper(run)?;
        let mut unread = None;
        let given = Counter::default();
        let counted = given.clone();
        // A user who types sees the input.
        let progress = (!io::stdin().is_terminal()).then(|| {
            Progress::show(move || format!("{} given to run {run}", progress::size(counted.get())))
        });
        let mut buffer = vec![0; CHUNK];
        loop {
            let n = read(&mut buffer)?;
            let is_last = n == 0;
            // Sends an empty input, too, so that a refusal is reported.
            if !is_last || self.eof || unread.is_none() {
                let part = match (is_last && self.eof, unread) {
                    (true, Some(_)) => Part::End,
                    (true, None) => Part::Nothing,
                    (false, _) => Part::Bytes(&buffer[..n]),
                };
                unread = Some(give(client, run, part)?);
                given.add(n as u64);
            }
            if is_last {
                break;
            }
        }
        drop(progress);
        output::json(&answer::Input { run, unread: unread.unwrap_or_default() })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Bytes(&'a [u8]),
    /// The end of the input.
    End,
    /// The end of an empty input.
    Nothing,
}

fn read(buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match io::stdin().lock().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome @ (Ok(_) | Err(_)) => return outcome,
        }
    }
}

/// Gives our stdin to a run, from when the run first waits for it.
///
/// Not earlier: what we have read is lost to those who read the same pipe after us, such as
/// the shell loop in which we were called.
pub(crate) fn feed(mut client: Client, run: RunNo) -> anyhow::Result<()> {
    let waiting = Request::Result { run, max_output: 0, patience_ms: None, until_input: true };
    if let Answer::Completed(_) = client.call(waiting)? {
        return Ok(());
    }
    let mut buffer = vec![0; CHUNK];
    loop {
        // Without a stdin, there is nothing to read.
        let n = read(&mut buffer).unwrap_or(0);
        let part = if n == 0 { Part::End } else { Part::Bytes(&buffer[..n]) };
        give(&mut client, run, part)?;
        if n == 0 {
            return Ok(());
        }
    }
}

/// Sends all of this to a run, as fast as it reads.
pub(crate) fn give_all(client: &mut Client, run: RunNo, bytes: &[u8]) -> anyhow::Result<()> {
    for piece in bytes.chunks(CHUNK) {
        give(client, run, Part::Bytes(piece))?;
    }
    Ok(())
}

/// Sends a part; returns how much of all the input the run has not read yet. Waits for a
/// run that reads slower than we do.
fn give(client: &mut Client, run: RunNo, part: Part<'_>) -> anyhow::Result<u64> {
    let (bytes, eof) = match part {
        Part::Bytes(bytes) => (bytes, false),
        Part::End | Part::Nothing => (&[][..], true),
    };
    loop {
        match client.call(Request::Input { run, bytes: bytes.to_vec(), eof }) {
            Ok(Answer::Input { unread }) => return Ok(unread),
            Ok(_) => bail!(ClientError::Unexpected),
            Err(ClientError::Refused(refusal)) if refusal.code == Code::QueueFull => {
                std::thread::sleep(PAUSE);
            }
            // The run has read what it wanted, and ended: that closed its stdin.
            Err(ClientError::Refused(refusal))
                if refusal.code == Code::InputClosed && part == Part::End =>
            {
                return Ok(0);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
