//! Terminals of runs: read the screen, wait for it, press keys.
//!
//! A wait is a series of requests. Each borrows a connection to the keeper, which answers
//! when the screen has changed. Between two requests there is a pause, so that a program
//! that draws without end costs little. A caller that goes away meanwhile leaves nothing
//! behind but a closed connection.

use super::{Caller, ErrorCode, Service, ServiceError};
use crate::keepers::{ConnectedSession, Place, blocking};
use sessile_gateway::answer::WaitOutcome;
use sessile_protocol::{
    Answer, Code, Failure, ReadScreen, Request, RunNo, RunPhase, ScreenView, SessionId,
    TerminalSize,
};
use sessile_terminal::watch::{Pattern, Verdict, Watch};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The minimum time between two requests: a person does not see more.
const PAUSE: Duration = Duration::from_millis(30);

/// The largest screens, of a million cells, take up to a second to be transferred and
/// searched: the pause grows with them.
const PAUSE_PER_CELL: Duration = Duration::from_micros(2);

/// Limit for the differently styled pieces of a drawn screen: ten times what a large
/// window full of colours has. Each may take two kilobytes while drawing.
const MOST_PIECES: usize = 50_000;

/// What a request for a screen waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScreenWait {
    pattern: Option<Pattern>,
    settle_ms: Option<u64>,
    at_most_ms: u64,
}

impl ScreenWait {
    /// Waits for a pattern on the screen, or until it is unchanged for a time; with both,
    /// for the pattern and then for the time; with neither, not at all.
    pub(crate) fn new(
        pattern: Option<&str>,
        settle_ms: Option<u64>,
        at_most_ms: u64,
    ) -> Result<Self, ServiceError> {
        let pattern = pattern.map(Pattern::new).transpose();
        let pattern =
            pattern.map_err(|error| ServiceError::new(ErrorCode::BadRequest, error.to_string()))?;
        Ok(Self { pattern, settle_ms, at_most_ms })
    }

    fn is_any(&self) -> bool {
        self.pattern.is_some() || self.settle_ms.is_some()
    }
}

/// A screen, and the outcome of the wait for it.
#[derive(Debug)]
pub(crate) struct AwaitedScreen {
    pub(crate) view: Box<ScreenView>,
    pub(crate) awaited: WaitOutcome,
}

impl Service {
    /// Returns the screen of a run, also of a finished one.
    pub(crate) async fn screen(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        wait: &ScreenWait,
    ) -> Result<AwaitedScreen, ServiceError> {
        self.await_screen(caller, id, run, wait, None).await
    }

    /// Presses keys, and returns the screen after that.
    ///
    /// The screen from before the keys does not count: an awaited prompt is still there
    /// in the moment after the keys.
    pub(crate) async fn press(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        keys: String,
        wait: &ScreenWait,
    ) -> Result<AwaitedScreen, ServiceError> {
        let before = match wait.pattern {
            Some(_) => {
                let read = ReadScreen { run, known: None, patience_ms: None };
                Some(self.look_at_screen(caller, id, read).await?.revision)
            }
            None => None,
        };
        self.keys(caller, id, run, keys).await?;
        self.await_screen(caller, id, run, wait, before).await
    }

    /// Presses keys without waiting for the screen.
    pub(crate) async fn keys(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        keys: String,
    ) -> Result<(), ServiceError> {
        let mut reached = self.reach_terminal(caller, id, run).await?;
        let Answer::Input { .. } = reached.call(Request::Keys { run, keys }).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(())
    }

    pub(crate) async fn resize(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        size: TerminalSize,
    ) -> Result<(), ServiceError> {
        size.check()?;
        let mut reached = self.reach_terminal(caller, id, run).await?;
        let Answer::Resized = reached.call(Request::Resize { run, size }).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(())
    }

    /// Requests screens until the wait is over; only those newer than `before` count.
    async fn await_screen(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        wait: &ScreenWait,
        before: Option<u64>,
    ) -> Result<AwaitedScreen, ServiceError> {
        let begun = Instant::now();
        let mut watch = Watch::new(wait.pattern.clone(), wait.settle_ms, wait.at_most_ms);
        let mut read =
            ReadScreen { run, known: before, patience_ms: before.map(|_| wait.at_most_ms) };
        loop {
            let view = self.look_at_screen(caller, id, read).await?;
            if before == Some(view.revision) && view.phase < RunPhase::Closed {
                return Ok(AwaitedScreen { view, awaited: WaitOutcome::TimedOut });
            }
            let verdict = watch.look(passed_ms(begun), view.revision, &view.screen, view.phase);
            let at_most = match verdict {
                Verdict::Done(_) if !wait.is_any() => {
                    return Ok(AwaitedScreen { view, awaited: WaitOutcome::Nothing });
                }
                Verdict::Done(why) => {
                    return Ok(AwaitedScreen { view, awaited: WaitOutcome::Came(why) });
                }
                Verdict::GaveUp => {
                    return Ok(AwaitedScreen { view, awaited: WaitOutcome::TimedOut });
                }
                Verdict::Wait { at_most_ms } => Duration::from_millis(at_most_ms),
            };
            let seen_at = Instant::now();
            tokio::time::sleep(pause_after(&view).min(at_most)).await;
            let left = at_most.saturating_sub(seen_at.elapsed());
            let patience_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            read = ReadScreen { run, known: watch.known(), patience_ms: Some(patience_ms) };
        }
    }

    async fn look_at_screen(
        &self,
        caller: &Caller,
        id: &SessionId,
        read: ReadScreen,
    ) -> Result<Box<ScreenView>, ServiceError> {
        let place = self.place(caller, id).await?;
        if let Some(mut reached) = self.reach_if_live(&place).await? {
            return look(&mut reached, read).await;
        }
        let (directory, run) = (place.directory.clone(), read.run);
        let found = blocking(move || {
            let screen = directory.screen(run);
            let is_known = screen.is_some() || directory.recorded_run(run, 0).is_some();
            Ok((screen, is_known))
        });
        match found.await? {
            (Some(screen), _) => {
                let (phase, revision) = (RunPhase::Closed, u64::MAX);
                let view = ScreenView { run, phase, screen, revision, waiting_for_input: false };
                Ok(Box::new(view))
            }
            (None, true) => {
                let message =
                    format!("run {run} had no terminal; start it with one to see its screen");
                Err(Failure::new(Code::NoTerminal, message).into())
            }
            (None, false) => Err(self.missing_run(&place.directory, run).await),
        }
    }

    /// Connects to the keeper of an unfinished run.
    async fn reach_terminal(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
    ) -> Result<ConnectedSession, ServiceError> {
        let place = self.place(caller, id).await?;
        let Some(reached) = self.reach_if_live(&place).await? else {
            return Err(self.is_over(&place, run).await?);
        };
        Ok(reached)
    }

    /// Returns why a run in a session without a keeper takes no input.
    async fn is_over(&self, place: &Arc<Place>, run: RunNo) -> Result<ServiceError, ServiceError> {
        let directory = place.directory.clone();
        let is_known = blocking(move || Ok(directory.recorded_run(run, 0).is_some())).await?;
        if is_known {
            let message = format!("run {run} is over, and its session has ended");
            return Ok(ServiceError::new(ErrorCode::InputClosed, message));
        }
        Ok(self.missing_run(&place.directory, run).await)
    }
}

async fn look(
    reached: &mut ConnectedSession,
    read: ReadScreen,
) -> Result<Box<ScreenView>, ServiceError> {
    let Answer::Screen(view) = reached.call(Request::Screen(read)).await? else {
        return Err(ServiceError::unexpected());
    };
    Ok(view)
}

fn pause_after(view: &ScreenView) -> Duration {
    let TerminalSize { cols, rows } = view.screen.size;
    PAUSE.max(PAUSE_PER_CELL * (u32::from(cols) * u32::from(rows)))
}

/// Checks that a screen can be drawn with its colours: a program that gives every cell of
/// a huge screen its own colour must not use up the server's memory.
pub(crate) fn check_drawable(view: &ScreenView) -> Result<(), ServiceError> {
    let pieces: usize = view.screen.lines.iter().map(|line| line.spans.len()).sum();
    if pieces <= MOST_PIECES {
        return Ok(());
    }
    let message = format!(
        "the screen has {pieces} pieces of different colours, over the limit of {MOST_PIECES}"
    );
    let error = ServiceError::new(ErrorCode::TooLarge, message);
    Err(error.with_hint("look at its text, or make the terminal smaller"))
}

fn passed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
