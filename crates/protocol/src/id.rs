//! Identifiers. Each has its own type and is checked when it is made, so that a session id
//! from outside can never be used to walk the file system.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `sess_` and 4 to 64 lower-case hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^sess_[0-9a-f]{4,64}$"))]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a session id (expected sess_ followed by hex digits)")]
pub struct InvalidId(pub String);

impl SessionId {
    /// Makes a new id from 12 random bytes of the caller.
    #[must_use]
    pub fn from_random(bytes: [u8; 12]) -> Self {
        use fmt::Write;
        let mut text = String::from("sess_");
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let ok = text.strip_prefix("sess_").is_some_and(|hex| {
            (4..=64).contains(&hex.len())
                && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        if ok { Ok(Self(text.to_owned())) } else { Err(InvalidId(text.to_owned())) }
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of a run in its session: 1, 2, 3, … Zero stands for "before the
/// first run" where a moment in the session's life is meant.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunNo(pub u64);

impl RunNo {
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for RunNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a kernel speaks. A session has at most one live kernel per language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Bash,
    Sh,
    Zsh,
    Python,
    Node,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown language {0:?}; must be one of: bash, sh, zsh, python, node")]
pub struct UnknownLanguage(pub String);

impl Language {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Sh => "sh",
            Self::Zsh => "zsh",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    #[must_use]
    pub fn is_shell(self) -> bool {
        match self {
            Self::Bash | Self::Sh | Self::Zsh => true,
            Self::Python | Self::Node => false,
        }
    }

    /// Returns the language of a program, by its file name: `/bin/dash` is a `sh`,
    /// `/opt/venv/bin/python3.12` a `python`.
    #[must_use]
    pub fn of_program(program: &str) -> Option<Self> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let versionless =
            name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        match versionless {
            "bash" | "rbash" => Some(Self::Bash),
            "sh" | "dash" | "ash" => Some(Self::Sh),
            "zsh" => Some(Self::Zsh),
            "python" | "pypy" => Some(Self::Python),
            "node" | "nodejs" => Some(Self::Node),
            _ => None,
        }
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, UnknownLanguage> {
        match text {
            "bash" | "shell" => Ok(Self::Bash),
            "sh" | "dash" => Ok(Self::Sh),
            "zsh" => Ok(Self::Zsh),
            "python" | "python3" => Ok(Self::Python),
            "node" | "javascript" | "js" => Ok(Self::Node),
            _ => Err(UnknownLanguage(text.to_owned())),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_could_leave_its_directory_is_refused() {
        for bad in ["", "sess_", "sess_../../etc", "sess_ABCD", "x", "sess_12\0", "sess_12/3", ".."]
        {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
        let id = SessionId::from_random([0xab; 12]);
        assert_eq!(id.as_str().parse::<SessionId>().unwrap(), id);
    }

    #[test]
    fn a_program_is_known_by_its_file_name() {
        assert_eq!(Language::of_program("/opt/v/bin/python3.12"), Some(Language::Python));
        assert_eq!(Language::of_program("dash"), Some(Language::Sh));
        assert_eq!(Language::of_program("zsh-5.9"), Some(Language::Zsh));
        assert_eq!(Language::of_program("/bin/fish"), None);
    }
}
