//! Screens of terminals.

use serde::Serialize;
use sessile_protocol::{OpenRun, RunNo, RunPhase, ScreenView, SessionId, TerminalSize};
use sessile_store::Metadata;
use sessile_terminal::render::{self, CellLine};
use sessile_terminal::watch::Why;
use std::path::PathBuf;
use utoipa::ToSchema;

/// The outcome of waiting for a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// There was no wait.
    Nothing,
    Came(Why),
    TimedOut,
}

impl WaitOutcome {
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Came(Why::Matched) => Some("matched"),
            Self::Came(Why::Settled) => Some("settled"),
            Self::Came(Why::Ended) => Some("ended"),
            Self::TimedOut => Some("timed_out"),
        }
    }
}

/// What a terminal shows
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ScreenAnswer)]
pub struct Screen {
    pub run: RunNo,
    pub running: bool,
    /// It waits in a read of its terminal, and has read all input
    pub waiting_for_input: bool,
    /// The outcome of the wait, if any: matched, settled, ended (the run ended before a
    /// match) or timed_out
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub wait: Option<&'static str>,
    /// The lines of the screen, without trailing blanks
    pub text: String,
    /// Counted from zero; null if hidden
    #[schema(nullable)]
    pub cursor: Option<CursorPosition>,
    pub title: String,
    pub size: Size,
    /// A full-screen program uses the alternate screen
    pub is_alternate: bool,
    /// Grows with every change; absent after the run's end
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub revision: Option<u64>,
    /// With `cells`: the `spans` of each line, by style
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Vec<Object>>)]
    pub lines: Option<Vec<CellLine>>,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Position)]
pub struct CursorPosition {
    pub col: u16,
    pub row: u16,
}

/// A terminal's size in characters
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = ScreenSize)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

impl From<TerminalSize> for Size {
    fn from(TerminalSize { cols, rows }: TerminalSize) -> Self {
        Self { cols, rows }
    }
}

impl Screen {
    #[must_use]
    pub fn of(view: &ScreenView, awaited: WaitOutcome) -> Self {
        let screen = &view.screen;
        let cursor = screen.cursor.map(|at| CursorPosition { col: at.col, row: at.row });
        Self {
            run: view.run,
            running: view.phase < RunPhase::Exited,
            waiting_for_input: view.waiting_for_input,
            wait: awaited.word(),
            text: render::text(screen),
            cursor,
            title: screen.title.clone(),
            size: screen.size.into(),
            is_alternate: screen.is_alternate,
            revision: (view.phase < RunPhase::Closed).then_some(view.revision),
            lines: None,
        }
    }

    /// Returns the same with colours.
    #[must_use]
    pub fn with_cells(view: &ScreenView, awaited: WaitOutcome) -> Self {
        Self { lines: Some(render::cells(&view.screen).lines), ..Self::of(view, awaited) }
    }
}

/// A program that was started on a terminal
#[derive(Clone, Debug, Serialize)]
pub struct TerminalStarted {
    pub session_id: SessionId,
    pub run: RunNo,
    pub command: String,
    pub work_dir: PathBuf,
    pub size: Size,
}

/// A program on a terminal, in a list
#[derive(Clone, Debug, Serialize)]
pub struct TerminalRow {
    session_id: SessionId,
    run: RunNo,
    command: String,
    running: bool,
    waiting_for_input: bool,
    timestamp: Option<String>,
    name: Option<String>,
    work_dir: PathBuf,
}

impl TerminalRow {
    #[must_use]
    pub fn of(metadata: &Metadata, run: OpenRun) -> Self {
        Self {
            session_id: metadata.session_id.clone(),
            run: run.run,
            command: run.command,
            running: run.phase < RunPhase::Exited,
            waiting_for_input: run.waiting_for_input,
            timestamp: run.timestamp,
            name: metadata.name.clone(),
            work_dir: metadata.work_dir.clone(),
        }
    }
}
