//! Reads the terminal of a run, now or when it shows what is awaited.

use crate::args;
use crate::progress::Progress;
use crate::reader::Reader;
use anyhow::bail;
use clap::Args;
use sessile_client::ClientError;
use sessile_gateway::answer::WaitOutcome;
use sessile_protocol::{Answer, Code, Failure, ReadScreen, Request, RunNo, RunPhase, ScreenView};
use sessile_terminal::watch::{Pattern, Verdict, Watch, Why};
use std::time::{Duration, Instant};

/// Pause between two reads of a program that draws without end.
const PAUSE: Duration = Duration::from_millis(20);

/// Default for how long a screen must be unchanged: longer than a program pauses between
/// two writes of one answer.
pub(crate) const SETTLE: Duration = Duration::from_millis(50);

/// What to wait for.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScreenWaitArgs {
    /// Wait until this regular expression is found on the screen
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    wait_for: Option<Pattern>,
    /// Wait until the screen has not changed for this long
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    settle: Option<Duration>,
    /// Maximum time to wait
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "10s")]
    timeout: Duration,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.to_string())
}

impl ScreenWaitArgs {
    /// Waits by default until the screen is unchanged, to see the effect of keys.
    pub(crate) fn or_settle(self, settle: Duration) -> Self {
        let is_any = self.wait_for.is_some() || self.settle.is_some();
        Self { settle: if is_any { self.settle } else { Some(settle) }, ..self }
    }

    /// Whether the awaited content did not come.
    pub(crate) fn has_failed(&self, awaited: WaitOutcome) -> bool {
        match awaited {
            WaitOutcome::Nothing | WaitOutcome::Came(Why::Matched | Why::Settled) => false,
            // A screen that can no longer change has settled.
            WaitOutcome::Came(Why::Ended) => self.wait_for.is_some(),
            WaitOutcome::TimedOut => true,
        }
    }

    /// Returns the revision of the screen before keys are pressed. That screen does not
    /// count: an awaited prompt is still there in the moment after the keys.
    pub(crate) fn before(&self, reader: &mut Reader, run: RunNo) -> anyhow::Result<Option<u64>> {
        if self.wait_for.is_none() {
            return Ok(None);
        }
        let read = ReadScreen { run, known: None, patience_ms: None };
        screen(reader, read).map(|view| Some(view.revision))
    }

    /// Returns the screen of a run, and the outcome of the wait; newer than `before`, if
    /// keys were pressed.
    pub(crate) fn look(
        &self,
        reader: &mut Reader,
        run: RunNo,
        before: Option<u64>,
    ) -> anyhow::Result<(ScreenView, WaitOutcome)> {
        let _progress = Progress::of(format!("waiting for the screen of run {run}"));
        let begun = Instant::now();
        let now = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let settle = self.settle.map(milliseconds);
        let mut watch = Watch::new(self.wait_for.clone(), settle, milliseconds(self.timeout));
        if let Some(before) = before {
            let patience_ms = Some(milliseconds(self.timeout));
            screen(reader, ReadScreen { run, known: Some(before), patience_ms })?;
        }
        let mut patience_ms = None;
        loop {
            let view = screen(reader, ReadScreen { run, known: watch.known(), patience_ms })?;
            match watch.look(now(), view.revision, &view.screen, view.phase) {
                Verdict::Done(why) => {
                    let is_asked = self.wait_for.is_some() || self.settle.is_some();
                    let awaited =
                        if is_asked { WaitOutcome::Came(why) } else { WaitOutcome::Nothing };
                    return Ok((view, awaited));
                }
                Verdict::GaveUp => return Ok((view, WaitOutcome::TimedOut)),
                Verdict::Wait { at_most_ms } => {
                    std::thread::sleep(PAUSE.min(Duration::from_millis(at_most_ms)));
                    patience_ms = Some(at_most_ms);
                }
            }
        }
    }
}

/// Returns the terminal of a run; from its files when there is no keeper.
fn screen(reader: &mut Reader, read: ReadScreen) -> anyhow::Result<ScreenView> {
    if let Some(client) = reader.live() {
        let Answer::Screen(view) = client.call(Request::Screen(read))? else {
            bail!(ClientError::Unexpected);
        };
        return Ok(*view);
    }
    let run = read.run;
    let directory = &reader.directory;
    let Some(screen) = directory.screen(run) else {
        bail!(match directory.recorded_run(run, 0) {
            Some(_) => Failure::new(
                Code::NoTerminal,
                format!("run {run} had no terminal; start it with one to see its screen")
            ),
            None => directory.absence(run).explain(run),
        });
    };
    let phase = RunPhase::Closed;
    Ok(ScreenView { run, phase, screen, revision: u64::MAX, waiting_for_input: false })
}
