//! Joining a run whose terminal already has content.

use super::{Caller, Cursor, ScreenWait, Service, ServiceError};
use sessile_gateway::answer::whole_end;
use sessile_protocol::{ReadOutput, RunNo, RunPhase, SessionId, TerminalSize};
use sessile_terminal::render;

/// The most bytes that an incomplete character can have.
const HALF: u64 = 3;

/// Where a client starts that joins a run.
#[derive(Debug)]
pub(crate) struct JoinPoint {
    pub(crate) cursor: Cursor,
    /// The screen to send first.
    pub(crate) screen: Option<ScreenDrawing>,
}

/// Escape sequences that draw a terminal as it is.
#[derive(Debug)]
pub(crate) struct ScreenDrawing {
    pub(crate) data: String,
    pub(crate) size: TerminalSize,
}

impl Service {
    /// Returns the terminal of a run as it is, and where its output continues. Output in
    /// between is in both.
    pub(crate) async fn join(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
    ) -> Result<JoinPoint, ServiceError> {
        // Beyond all bytes: the answer says where the streams end.
        let end = ReadOutput {
            stdout_from: u64::MAX,
            stderr_from: u64::MAX,
            wait: false,
            ..ReadOutput::waiting(run)
        };
        let view = self.output(caller, id, end).await?;
        if view.phase == RunPhase::Queued {
            return Ok(JoinPoint { cursor: Cursor::default(), screen: None });
        }
        // Begins at a whole character.
        let from = view.stdout_next.saturating_sub(HALF);
        let last = self.output(caller, id, ReadOutput { stdout_from: from, max: HALF, ..end });
        let last = last.await?.stdout;
        let half = last.len() - whole_end(&last);
        let cursor = Cursor::within(view.stdout_next - half as u64);
        let seen = self.screen(caller, id, run, &ScreenWait::default()).await?;
        super::check_drawable(&seen.view)?;
        let screen = &seen.view.screen;
        let kind = if screen.is_alternate { "\x1b[?1049h" } else { "\x1b[2J" };
        let keys = if screen.application_keys { "\x1b[?1h" } else { "" };
        let data = format!("{kind}{keys}{}", render::ansi(screen));
        Ok(JoinPoint { cursor, screen: Some(ScreenDrawing { data, size: screen.size }) })
    }
}
