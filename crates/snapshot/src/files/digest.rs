//! Names of contents. BLAKE3, because it is three times as fast as SHA-256 with hardware
//! support, and even faster compared to SHA-256 without.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::str::FromStr;

pub(crate) const LENGTH: usize = 32;

/// The hash of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Digest(pub(crate) [u8; LENGTH]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Digest {
        Digest(*hash.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(2 * LENGTH);
        for byte in self.0 {
            write!(text, "{byte:02x}")?;
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Identifies the contents of a workspace: equal ids mean equal files, modes and times.
/// Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TreeId(pub(crate) Digest);

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeId({})", self.0)
    }
}

/// The error for a text that is not the id of a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a tree: it has 64 hexadecimal digits")]
pub struct InvalidId;

impl FromStr for TreeId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<TreeId, InvalidId> {
        digest(text.as_bytes()).map(TreeId).ok_or(InvalidId)
    }
}

impl TryFrom<String> for TreeId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<TreeId, InvalidId> {
        text.parse()
    }
}

impl From<TreeId> for String {
    fn from(id: TreeId) -> String {
        id.to_string()
    }
}

/// Parses a digest. Only lower-case digits are allowed, so that an object has one name.
pub(crate) fn digest(text: &[u8]) -> Option<Digest> {
    let digits: &[u8; 2 * LENGTH] = text.try_into().ok()?;
    let mut bytes = [0; LENGTH];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(Digest(bytes))
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let id = TreeId(Digest::of(b"x"));
        assert_eq!(id.to_string().parse(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<TreeId>(&json).unwrap(), id);
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        let id = TreeId(Digest::of(b"x")).to_string();
        for text in ["", "ab", &id[1..], &id.to_uppercase(), &format!("{id}0"), "é"] {
            assert_eq!(text.parse::<TreeId>(), Err(InvalidId), "{text}");
        }
    }
}
