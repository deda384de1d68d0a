//! The terminal that a person sits at.

use rustix::termios::{self, OptionalActions, Termios};
use sessile_protocol::TerminalSize;
use std::io;

/// What a terminal does by itself, until this is dropped.
#[derive(Debug)]
pub(super) struct Mode {
    before: Termios,
}

impl Mode {
    /// Every key goes through as it is, and so does what is shown: for a
    /// program at the other end.
    pub(super) fn raw() -> io::Result<Self> {
        Self::enter(|modes| modes.make_raw())
    }

    /// Every key goes through as it is. Between a program and the prompt, keys
    /// wait for whoever reads next, and none of them is a signal to us.
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

/// How large it is now.
pub(super) fn size() -> TerminalSize {
    let found = termios::tcgetwinsize(io::stdout()).ok();
    let size = found.map(|size| TerminalSize { cols: size.ws_col, rows: size.ws_row });
    size.filter(|size| size.check().is_ok()).unwrap_or_default()
}
