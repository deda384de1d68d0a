//! A reader's position in both streams of a run.

use crate::answer;
use sessile_protocol::{OutputView, RunPhase};
use std::fmt;
use std::str::FromStr;

/// A position, written `12-0`: bytes of stdout, bytes of stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub stdout: u64,
    pub stderr: u64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a cursor; use the `cursor` of an answer, such as 12-0")]
pub struct InvalidCursor(String);

impl Cursor {
    /// Returns where the next read continues: an incomplete character is left to it.
    #[must_use]
    pub fn after(view: &OutputView) -> Self {
        Self {
            stdout: view.stdout_next - half(&view.stdout, view.phase),
            stderr: view.stderr_next - half(&view.stderr, view.phase),
        }
    }
}

/// Returns how many bytes at the end begin an incomplete character.
fn half(bytes: &[u8], phase: RunPhase) -> u64 {
    (bytes.len() - whole(bytes, phase).len()) as u64
}

/// Returns the bytes up to the last whole character, or all when no more will come. If
/// there is only a part of a character, returns that: a reader may ask for a byte at a time.
pub(crate) fn whole(bytes: &[u8], phase: RunPhase) -> &[u8] {
    match answer::whole_end(bytes) {
        0 => bytes,
        _ if phase >= RunPhase::Exited => bytes,
        end => &bytes[..end],
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stdout, self.stderr)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let number = |digits: &str| {
            let is_number = digits.len() <= 19 && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| digits.parse().ok())?
        };
        let parse = || {
            let (stdout, stderr) = text.split_once('-')?;
            Some(Self { stdout: number(stdout)?, stderr: number(stderr)? })
        };
        parse().ok_or_else(|| InvalidCursor(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = Cursor { stdout: 12, stderr: 0 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "12", "-", "1-", "a-b", "1-2-3", "-1-2"] {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_a_character_is_left_to_the_next_reader() {
        let mut view = OutputView {
            stdout: b"a\xc3".to_vec(),
            stdout_next: 7,
            stderr: Vec::new(),
            stderr_next: 3,
            phase: RunPhase::Running,
            waiting_for_input: false,
            queued: None,
        };
        assert_eq!(Cursor::after(&view), Cursor { stdout: 6, stderr: 3 });
        view.phase = RunPhase::Closed;
        assert_eq!(Cursor::after(&view), Cursor { stdout: 7, stderr: 3 });
    }
}
