//! The contents of a terminal, as a person would see them.

use crate::{Code, Failure, RunNo, RunPhase};
use serde::{Deserialize, Serialize};

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub cols: u16,
    pub rows: u16,
}

impl TerminalSize {
    /// The size that programs assume by default.
    pub const DEFAULT: Self = Self { cols: 80, rows: 24 };

    /// Larger than any screen; a grid of this size has a million cells.
    pub const MOST: u16 = 1000;

    /// # Errors
    /// When no terminal may have this size.
    pub fn check(self) -> Result<(), Failure> {
        let allowed = 1..=Self::MOST;
        if allowed.contains(&self.cols) && allowed.contains(&self.rows) {
            return Ok(());
        }
        let message = format!(
            "a terminal has 1 to {} columns and as many rows, not {} and {}",
            Self::MOST,
            self.cols,
            self.rows
        );
        Err(Failure::new(Code::BadRequest, message))
    }
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The terminal of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenView {
    pub run: RunNo,
    pub phase: RunPhase,
    pub screen: Screen,
    /// Grows with all output of the run and with every new size.
    pub revision: u64,
    #[serde(default)]
    pub waiting_for_input: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Screen {
    pub size: TerminalSize,
    /// None when hidden.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    #[serde(default)]
    pub title: String,
    /// A full-screen program uses the alternate screen, which has no scrollback.
    #[serde(default)]
    pub is_alternate: bool,
    /// The program wants the application form of arrow keys.
    #[serde(default)]
    pub application_keys: bool,
    /// From the top; one for each row of the terminal.
    pub lines: Vec<ScreenLine>,
}

/// Counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub col: u16,
    pub row: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenLine {
    /// From the left. The rest of the line is blank.
    pub spans: Vec<Span>,
    /// The line continues in the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wrapped: bool,
}

/// Characters with the same style and width. A mark (an accent, a variation selector, a
/// joiner) belongs to the character before it and takes no column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub text: String,
    /// Each character takes two columns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wide: bool,
    #[serde(default, skip_serializing_if = "Style::is_plain")]
    pub style: Style,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Style {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Color>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Color>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub faint: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strikethrough: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blink: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
}

impl Style {
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Color {
    /// One of the 256 of a terminal's palette.
    Indexed(u8),
    Rgb(u8, u8, u8),
}
