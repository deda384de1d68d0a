//! Secrets that prove that a kernel has come to the end of a run.
//!
//! The report of a run's end contains a secret of that run. A shell finds it in the line
//! that reports, which it reads when the text is done; Python's driver reads it from a
//! pipe then; Node's has it in a closure. So no text, argument, variable or file of the
//! user shows it, and a report without it is not believed.
//!
//! It does not keep out a program of the same user that reads a kernel's memory or its
//! pipes.

use serde::Serialize;
use std::fmt;
use std::io;

/// zsh reads its orders a byte at a time, so the secret is short: 48 bits, which nobody
/// can guess through a pipe.
const LENGTH: usize = 8;

/// Characters without a special meaning in a shell's double quotes and in JSON.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret([u8; LENGTH]);

impl Secret {
    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns its position in a line, the beginning of which may come from another
    /// process.
    pub(super) fn position_in(&self, line: &[u8]) -> Option<usize> {
        line.windows(LENGTH).position(|window| window == self.0)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Does not show the secret when a kernel is logged.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Generates secrets, some dozens at a time: a system call for each run would be one too
/// many.
#[derive(Default)]
pub(super) struct Secrets {
    unused: Vec<u8>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// How much the system always returns at once.
const BATCH: usize = 256;

impl Secrets {
    pub(super) fn next(&mut self) -> io::Result<Secret> {
        if self.unused.len() < LENGTH {
            self.unused.resize(BATCH, 0);
            let flags = rustix::rand::GetRandomFlags::empty();
            let filled = rustix::rand::getrandom(&mut self.unused[..], flags)?;
            self.unused.truncate(filled);
        }
        let from = self.unused.len().checked_sub(LENGTH).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut secret = [0; LENGTH];
        for (letter, random) in secret.iter_mut().zip(self.unused.drain(from..)) {
            *letter = ALPHABET[usize::from(random) % ALPHABET.len()];
        }
        Ok(Secret(secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_secrets_are_alike_and_a_batch_ends_without_a_seam() {
        let mut secrets = Secrets::default();
        let all: std::collections::BTreeSet<String> =
            (0..1000).map(|_| secrets.next().unwrap().to_string()).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|secret| secret.len() == LENGTH));
    }

    #[test]
    fn a_secret_is_not_shown_and_is_found_behind_what_others_wrote() {
        let secret = Secrets::default().next().unwrap();
        assert!(!format!("{secret:?}").contains(secret.as_str()));
        assert_eq!(secret.position_in(format!("junkr {secret} 0 -").as_bytes()), Some(6));
        assert_eq!(secret.position_in(b"r 1 0 -"), None);
    }
}
