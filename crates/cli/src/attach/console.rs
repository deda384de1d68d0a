//! The terminal that a person sits at.

use rustix::termios::{self, OptionalActions, Termios};
use sessile_protocol::TerminalSize;
use std::io;

/// Every key goes through as it is, until this is dropped.
#[derive(Debug)]
pub(super) struct Raw {
    before: Termios,
}

impl Raw {
    pub(super) fn enter() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// How large it is now.
pub(super) fn size() -> TerminalSize {
    let found = termios::tcgetwinsize(io::stdout()).ok();
    let size = found.map(|size| TerminalSize { cols: size.ws_col, rows: size.ws_row });
    size.filter(|size| size.check().is_ok()).unwrap_or_default()
}
