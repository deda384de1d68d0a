//! One rule: which paths, which level, and how much the rule weighs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Pattern, PolicyError};

/// What can be done with a path. Each level includes the ones before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Level {
    /// It does not exist.
    #[default]
    None,
    /// It can be listed and stat'ed.
    View,
    /// It can be read and executed.
    Read,
    /// Everything.
    Write,
}

impl Level {
    /// Returns its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::View => "view",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Returns the level of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::None, Self::View, Self::Read, Self::Write].into_iter().find(|l| l.word() == word)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.word())
    }
}

/// What a pattern stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RuleType {
    /// The paths that match, each by itself.
    Glob,
    /// What matches, and everything beneath it.
    Directory,
    /// What matches, and nothing beneath it.
    File,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rule {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub pattern: Pattern,
    pub permission: Level,
    /// By itself: `directory` for a pattern without wildcards, else `glob`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RuleType>,
    /// The highest wins; 0 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

impl Rule {
    /// Returns the given type, or the default for the pattern.
    #[must_use]
    pub fn kind(&self) -> RuleType {
        self.kind.unwrap_or(if self.pattern.is_literal() {
            RuleType::Directory
        } else {
            RuleType::Glob
        })
    }

    /// Returns the given priority, or the default.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.priority.unwrap_or(0)
    }

    /// Parses `PATTERN=LEVEL[@PRIORITY]`, the argument of `--allow`.
    ///
    /// # Errors
    /// When it has another form.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let wrong = |reason: String| PolicyError::Allow { text: text.to_owned(), reason };
        // A pattern may contain a `=`, a level does not.
        let (pattern, level) = text
            .rsplit_once('=')
            .ok_or_else(|| wrong("write PATTERN=LEVEL, for instance '/build/**=write'".into()))?;
        let (level, priority) = match level.split_once('@') {
            Some((level, number)) => {
                let number = number.parse().map_err(|_| {
                    wrong(format!("{number:?} is no priority; write a whole number"))
                })?;
                (level, Some(number))
            }
            None => (level, None),
        };
        let permission = Level::of_word(level).ok_or_else(|| {
            wrong(format!("{level:?} is no level; write none, view, read or write"))
        })?;
        let pattern = pattern.parse().map_err(|e| wrong(format!("{e}")))?;
        Ok(Self { pattern, permission, kind: None, priority })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.pattern, self.permission)?;
        match self.kind {
            Some(RuleType::Directory) => write!(to, ", directory")?,
            Some(RuleType::File) => write!(to, ", file")?,
            Some(RuleType::Glob) | None => {}
        }
        match self.priority {
            Some(priority) => write!(to, ", priority {priority}"),
            None => Ok(()),
        }
    }
}
