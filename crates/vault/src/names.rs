//! Names of saves in a store.
//!
//! ```text
//! PREFIX/sess_12ab/latest.json                                       the pointer
//! PREFIX/sess_12ab/00000000000000000007-4f1d0c5e9a7b3d21.sessile     a save as of run 7
//! PREFIX/sess_12ab/00000000000000000007-4f1d0c5e9a7b3d21.json        what is in it
//! ```
//!
//! Other names are not ours: they are neither read nor removed.

use sessile_protocol::RunNo;
use std::fmt;
use std::str::FromStr;

/// Name of the pointer to the last save.
pub(crate) const POINTER: &str = "latest.json";

const SUFFIX: &str = ".sessile";
const RECORD_SUFFIX: &str = ".json";
const RUN_DIGITS: usize = 20;
const NONCE_DIGITS: usize = 16;

/// The name of one save. Each attempt has its own, so that an upload never changes an
/// object that is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) run: RunNo,
    nonce: u64,
}

impl Name {
    pub(crate) fn new(run: RunNo, nonce: u64) -> Self {
        Self { run, nonce }
    }

    /// Returns the name of the JSON record that describes it.
    pub(crate) fn record(&self) -> String {
        format!("{:020}-{:016x}{RECORD_SUFFIX}", self.run.0, self.nonce)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{:016x}{SUFFIX}", self.run.0, self.nonce)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotOurs;

impl FromStr for Name {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let stem = text.strip_suffix(SUFFIX).ok_or(NotOurs)?;
        let (run, nonce) = stem.split_once('-').ok_or(NotOurs)?;
        let decimal = run.bytes().all(|b| b.is_ascii_digit());
        let hex = nonce.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if run.len() != RUN_DIGITS || nonce.len() != NONCE_DIGITS || !decimal || !hex {
            return Err(NotOurs);
        }
        let run = run.parse().map_err(|_| NotOurs)?;
        let nonce = u64::from_str_radix(nonce, 16).map_err(|_| NotOurs)?;
        Ok(Self { run: RunNo(run), nonce })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_as_it_was_written() {
        let name = Name::new(RunNo(7), 0x4f1d_0c5e_9a7b_3d21);
        assert_eq!(name.to_string(), "00000000000000000007-4f1d0c5e9a7b3d21.sessile");
        assert_eq!(name.to_string().parse(), Ok(name));
        let last = Name::new(RunNo(u64::MAX), u64::MAX);
        assert_eq!(last.to_string().parse(), Ok(last));
    }

    #[test]
    fn names_of_others_are_not_ours() {
        let others = [
            "",
            "latest.json",
            ".sessile",
            "7-4f1d0c5e9a7b3d21.sessile",
            "99999999999999999999-4f1d0c5e9a7b3d21.sessile",
            "00000000000000000007-4F1D0C5E9A7B3D21.sessile",
            "00000000000000000007-4f1d0c5e9a7b3d21.sessile#1",
            "+0000000000000000007-4f1d0c5e9a7b3d21.sessile",
            "../../../../etc/passwd",
        ];
        for text in others {
            assert_eq!(text.parse::<Name>(), Err(NotOurs), "{text}");
        }
    }
}
