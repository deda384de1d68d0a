//! A terminal emulator: avt, fed with bytes instead of text, that also answers the queries
//! of programs.
//!
//! Invariants: the cuts between the bytes make no difference, neither to the screen nor to
//! the answers. A panic in avt leads to an empty screen, and does not reach the caller.
//! Memory is bounded by the size and `HISTORY_LINES`.

mod clusters;
mod core;
mod decoder;
mod grid;
mod modes;
mod replies;
mod sequences;
#[cfg(test)]
mod tests;
mod titles;

pub use modes::Modes;

use self::core::Core;
use avt::ScreenKind;
use decoder::Decoder;
use replies::Replies;
use sessile_protocol::{Cursor, Screen, ScreenLine, TerminalSize};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum number of lines that have scrolled off the screen and are kept: about 600 kB at
/// 80 columns. The recorded output of a run has everything.
pub const HISTORY_LINES: usize = 500;

/// The result of feeding a part of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedResult {
    /// Number of bytes that were taken; the rest has to be fed again.
    pub taken: usize,
    /// Bytes for the program's input.
    pub replies: Vec<u8>,
}

pub struct Emulator {
    size: TerminalSize,
    decoder: Decoder,
    replies: Replies,
    core: Core,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Emulator {
    /// Makes an empty screen. The size is clamped to the valid range.
    #[must_use]
    pub fn new(size: TerminalSize) -> Self {
        let size = in_range(size);
        Self {
            size,
            decoder: Decoder::default(),
            replies: Replies::default(),
            core: Core::new(size, HISTORY_LINES),
        }
    }

    /// Processes the output of the program. Returns bytes for the program's input.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.take(bytes);
        self.replies.take()
    }

    /// Processes output for callers that must not block long: stops when about `work` cells
    /// have been written, and returns how many bytes were taken; at least one, if there are
    /// any. A million cells take some 10 ms.
    ///
    /// Ordinary output stays far below that. A flood of sequences that clear a large screen
    /// does not: four bytes cost a million cells.
    pub fn feed_within(&mut self, bytes: &[u8], work: u64) -> FeedResult {
        let area = usize::from(self.size.cols) * usize::from(self.size.rows);
        // So that a piece full of the worst sequences costs about a million cells.
        let piece = (1_000_000 / area).clamp(1, 4096);
        let begin = self.core.work;
        let mut taken = 0;
        for bytes in bytes.chunks(piece) {
            self.take(bytes);
            taken += bytes.len();
            // A panic makes a new core, with a smaller number.
            if self.core.work.abs_diff(begin) >= work {
                break;
            }
        }
        FeedResult { taken, replies: self.replies.take() }
    }

    fn take(&mut self, bytes: &[u8]) {
        let Self { size, decoder, replies, core } = self;
        decoder.decode(bytes, |text| {
            let mut rest = text;
            // The text that made avt panic has been removed from the rest: it is not tried again.
            while !rest.is_empty() {
                guard(core, *size, |core| {
                    while !rest.is_empty() {
                        core.step(&mut rest, replies);
                    }
                });
            }
        });
    }

    pub fn resize(&mut self, size: TerminalSize) {
        let size = in_range(size);
        self.size = size;
        guard(&mut self.core, size, |core| core.resize(size));
    }

    #[must_use]
    pub fn size(&self) -> TerminalSize {
        self.size
    }

    #[must_use]
    pub fn title(&self) -> &str {
        self.core.titles.current()
    }

    #[must_use]
    pub fn modes(&self) -> Modes {
        Modes {
            application_cursor: self.core.terminal.cursor_key_app_mode(),
            ..self.core.modes.summary()
        }
    }

    #[must_use]
    pub fn screen(&self) -> Screen {
        let Core { terminal, clusters, .. } = &self.core;
        let last = self.size.cols - 1;
        let cursor = terminal.cursor().position().map(|(col, row)| Cursor {
            col: u16::try_from(col).map_or(last, |col| col.min(last)),
            row: u16::try_from(row).unwrap_or_default(),
        });
        Screen {
            size: self.size,
            cursor,
            title: self.title().to_owned(),
            is_alternate: terminal.active_screen_kind() == ScreenKind::Alternate,
            application_keys: terminal.cursor_key_app_mode(),
            lines: terminal
                .screen()
                .visible_lines()
                .map(|line| grid::line(line, clusters))
                .collect(),
        }
    }

    /// Returns the screen's lines without trailing blanks and without the empty lines at the end.
    #[must_use]
    pub fn text(&self) -> String {
        let mut all = String::new();
        for line in self.core.terminal.screen().visible_lines() {
            grid::text(line, &self.core.clusters, &mut all);
            all.push('\n');
        }
        all.truncate(all.trim_end_matches('\n').len());
        all
    }

    /// Returns the last lines that scrolled off the main screen, oldest first.
    #[must_use]
    pub fn history(&self, limit: usize) -> Vec<ScreenLine> {
        let primary = self.core.terminal.primary_screen();
        let kept = primary.all_lines().count() - primary.visible_lines().len();
        primary
            .all_lines()
            .take(kept)
            .skip(kept.saturating_sub(limit))
            .map(|line| grid::line(line, &self.core.clusters))
            .collect()
    }
}

fn in_range(size: TerminalSize) -> TerminalSize {
    TerminalSize {
        cols: size.cols.clamp(1, TerminalSize::MOST),
        rows: size.rows.clamp(1, TerminalSize::MOST),
    }
}

fn guard(core: &mut Core, size: TerminalSize, work: impl FnOnce(&mut Core)) {
    // The state after a panic is discarded completely.
    if catch_unwind(AssertUnwindSafe(|| work(core))).is_err() {
        *core = Core::new(size, HISTORY_LINES);
    }
}
