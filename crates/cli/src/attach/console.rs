//! The user's own terminal.

use rustix::termios::{self, OptionalActions, Termios};
use sessile_protocol::TerminalSize;
use std::io;

/// A mode of the terminal, until this is dropped.
#[derive(Debug)]
pub(super) struct Mode {
    before: Termios,
}

impl Mode {
    /// Passes every key and all output unchanged, for a program at the other end.
    pub(super) fn raw() -> io::Result<Self> {
        Self::enter(|modes| modes.make_raw())
    }

    /// Passes every key unchanged. Between a program and the prompt, keys wait for the
    /// next reader, and none of them is a signal to us.
    pub(super) fn quiet() -> io::Result<Self> {
        Self::enter(|modes| {
            let output = modes.output_modes;
            modes.make_raw();
            modes.output_modes = output;
        })
    }

    fn enter(change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        change(&mut modes);
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        Ok(Self { before })
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns its current size.
pub(super) fn size() -> TerminalSize {
    let found = termios::tcgetwinsize(io::stdout()).ok();
    let size = found.map(|size| TerminalSize { cols: size.ws_col, rows: size.ws_row });
    size.filter(|size| size.check().is_ok()).unwrap_or_default()
}
