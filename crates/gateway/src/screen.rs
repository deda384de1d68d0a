//! Terminals as JSON.

use serde_json::{Map, Value, json};
use sessile_protocol::{RunPhase, ScreenView};
use sessile_terminal::render;
use sessile_terminal::watch::Why;

/// What became of waiting for a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Nothing was waited for.
    Nothing,
    Came(Why),
    TimedOut,
}

impl Awaited {
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

/// What `sessile screen` prints.
#[must_use]
pub fn screen(view: &ScreenView, awaited: Awaited) -> Map<String, Value> {
    let screen = &view.screen;
    let mut answer = Map::new();
    let mut put = |key: &str, value: Value| answer.insert(key.to_owned(), value);
    put("run", view.run.0.into());
    put("running", (view.phase < RunPhase::Exited).into());
    put("waiting_for_input", view.waiting_for_input.into());
    if let Some(word) = awaited.word() {
        put("wait", word.into());
    }
    put("text", render::text(screen).into());
    put("cursor", screen.cursor.map_or(Value::Null, |c| json!({"col": c.col, "row": c.row})));
    put("title", screen.title.clone().into());
    put("size", json!({"cols": screen.size.cols, "rows": screen.size.rows}));
    put("is_alternate", screen.is_alternate.into());
    if view.phase < RunPhase::Closed {
        put("revision", view.revision.into());
    }
    answer
}
