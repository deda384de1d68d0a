//! Runs a command and passes its output on as it comes.

use crate::display::outcome::StillRunning;
use crate::progress::Progress;
use crate::{interrupts, output};
use anyhow::bail;
use sessile_client::{Client, ClientError};
use sessile_protocol::{
    Answer, Completed, Exec as Order, ReadOutput, Request, RunNo, RunPhase, Until,
};
use sessile_store::Directory;
use std::io;
use std::time::{Duration, Instant};

/// The outcome of a run.
#[derive(Debug)]
pub(crate) enum Streamed {
    Finished {
        done: Box<Completed>,
        line: Line,
    },
    /// It goes on.
    StillRunning {
        run: RunNo,
        why: StillRunning,
        line: Line,
    },
}

/// Where the output has left the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Begun,
    Fresh,
}

impl Line {
    /// Returns what ends an open line.
    pub(crate) fn closed(self) -> &'static str {
        match self {
            Self::Begun => "\n",
            Self::Fresh => "",
        }
    }

    fn after(self, bytes: &[u8]) -> Self {
        match bytes.last() {
            None => self,
            Some(b'\n') => Self::Fresh,
            Some(_) => Self::Begun,
        }
    }
}

/// Runs a command and passes its output on. Ctrl-C interrupts the command, a second one
/// leaves it.
///
/// With a `directory`, a line of progress is shown until there is output.
pub(crate) fn stream(
    client: &mut Client,
    order: Order,
    directory: Option<&Directory>,
) -> anyhow::Result<Streamed> {
    stream_and(client, order, directory, |_| ())
}

/// Does the same, and something else once the run has its number.
pub(crate) fn stream_and(
    client: &mut Client,
    order: Order,
    directory: Option<&Directory>,
    accepted: impl FnOnce(RunNo),
) -> anyhow::Result<Streamed> {
    let patience = order.patience_ms.map(Duration::from_millis);
    let deadline = patience.map(|time| Instant::now() + time);
    let until_input = order.until_input;
    let order = Order { until: Until::Accepted, ..order };
    let Answer::Accepted { run, .. } = client.call(Request::Exec(order))? else {
        bail!(ClientError::Unexpected);
    };
    accepted(run);
    let mut progress = directory.map(|directory| Progress::of_run(directory, run));
    let mut signals = interrupts::SignalCount::default();
    let mut read = ReadOutput { until_input, ..ReadOutput::waiting(run) };
    let mut line = Line::Fresh;
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        read.patience_ms = left.map(crate::commands::start::milliseconds);
        let answer = client
            .call_watching(Request::Output(read), Some(run), interrupts::watch()?, || {
                signals.take()
            })
            .map_err(explain)?;
        let Answer::Output(view) = answer else { bail!(ClientError::Unexpected) };
        let is_dry = view.stdout.is_empty() && view.stderr.is_empty();
        let is_over = matches!(view.phase, RunPhase::Exited | RunPhase::Closed);
        if !is_dry || is_over {
            progress = None;
        }
        output::all(&mut io::stdout().lock(), &view.stdout)?;
        output::all(&mut io::stderr().lock(), &view.stderr)?;
        line = line.after(&view.stdout).after(&view.stderr);
        (read.stdout_from, read.stderr_from) = (view.stdout_next, view.stderr_next);
        if !is_dry {
            continue;
        }
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let why = match view.queued {
            Some(queued) => StillRunning::Queued(*queued),
            None if view.waiting_for_input && until_input => StillRunning::Input,
            None => StillRunning::Time,
        };
        if is_over {
            return Ok(Streamed::Finished { done: result(client, run)?, line });
        } else if is_late || why == StillRunning::Input {
            drop(progress);
            return Ok(Streamed::StillRunning { run, why, line });
        }
    }
}

/// Passes on the output of a finished run.
pub(crate) fn replay(client: &mut Client, run: RunNo) -> anyhow::Result<Line> {
    let mut read = ReadOutput { wait: false, ..ReadOutput::waiting(run) };
    let mut line = Line::Fresh;
    loop {
        let Answer::Output(view) = client.call(Request::Output(read))? else {
            bail!(ClientError::Unexpected)
        };
        if view.stdout.is_empty() && view.stderr.is_empty() {
            return Ok(line);
        }
        output::all(&mut io::stdout().lock(), &view.stdout)?;
        output::all(&mut io::stderr().lock(), &view.stderr)?;
        line = line.after(&view.stdout).after(&view.stderr);
        (read.stdout_from, read.stderr_from) = (view.stdout_next, view.stderr_next);
    }
}

fn result(client: &mut Client, run: RunNo) -> anyhow::Result<Box<Completed>> {
    let request = Request::Result { run, max_output: 0, patience_ms: None, until_input: false };
    let Answer::Completed(done) = client.call(request)? else { bail!(ClientError::Unexpected) };
    Ok(done)
}

/// Explains the error after a second Ctrl-C, which leaves the command running.
pub(crate) fn explain(error: ClientError) -> anyhow::Error {
    if let ClientError::Io(cause) = &error
        && cause.kind() == io::ErrorKind::Interrupted
    {
        return anyhow::anyhow!("left; the command goes on in the session");
    }
    error.into()
}

/// Returns the exit code of a run as that of a process.
pub(crate) fn exit_code(done: &Completed) -> u8 {
    u8::try_from(done.exit_code).unwrap_or(255)
}
