//! Patterns of paths: `*` and `?` within a name, `[a-z]` one character, `{a,b}` one of
//! these, `**` any number of directories, `\` before a literal character.
//!
//! A pattern with a slash at its beginning or in its middle starts at the workspace; one
//! without matches at any depth, as in a .gitignore. `x/**` is `x` and all beneath it,
//! `**/*` is everything.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod glob;

pub(crate) use glob::{Glob, Specificity};

/// More alternatives than these are a mistake or an attack.
const MAX_ALTERNATIVES: usize = 64;
/// The longest path on Linux.
const MAX_LENGTH: usize = 4096;

/// A checked pattern of paths.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    /// One for each choice of the braces.
    globs: Vec<Glob>,
    /// Written with a slash at the end.
    is_directory: bool,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a pattern must not be empty; everything is \"**/*\"")]
    Empty,
    #[error("the pattern {0:?} has a part `{1}`, which no path has")]
    Dots(String, &'static str),
    #[error("the pattern {0:?} has `**` beside other characters; write it between slashes")]
    DoubleStar(String),
    #[error("the pattern {0:?} has a `{1}` that is not closed; write `\\{1}` for the character")]
    Unclosed(String, char),
    #[error("the pattern {0:?} has the range `{1}-{2}`, which has nothing in it; write `{2}-{1}`")]
    Backwards(String, char, char),
    #[error("the pattern {0:?} has braces within braces or around a slash; write several patterns")]
    Braces(String),
    #[error("the pattern {0:?} has too many alternatives; write several patterns")]
    TooMany(String),
    #[error("a pattern of {0} bytes is longer than any path")]
    TooLong(usize),
    #[error("a pattern must not have a NUL character")]
    Nul,
}

impl Pattern {
    /// Returns it as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it stands for one path, or one name at any depth.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.is_directory || self.globs.iter().all(Glob::is_literal)
    }

    pub(crate) fn globs(&self) -> &[Glob] {
        &self.globs
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.trim_matches('/').is_empty() && text != "/" {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(PatternError::TooLong(text.len()));
        }
        if text.contains('\0') {
            return Err(PatternError::Nul);
        }
        let globs = alternatives(text)?
            .iter()
            .map(|choice| Glob::parse(text, choice))
            .collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), globs, is_directory: text.ends_with('/') })
    }
}

/// Returns the text for each choice of its braces.
fn alternatives(text: &str) -> Result<Vec<String>, PatternError> {
    let mut choices = vec![String::new()];
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let piece = match c {
            '\\' => c.to_string() + &rest.next().map(String::from).unwrap_or_default(),
            '{' => {
                let options = braces(text, &mut rest)?;
                choices = choices
                    .iter()
                    .flat_map(|start| options.iter().map(move |end| format!("{start}{end}")))
                    .collect();
                if choices.len() > MAX_ALTERNATIVES {
                    return Err(PatternError::TooMany(text.to_owned()));
                }
                continue;
            }
            _ => c.to_string(),
        };
        for choice in &mut choices {
            choice.push_str(&piece);
        }
    }
    Ok(choices)
}

/// Parses the options between braces, after the opening one.
fn braces(text: &str, rest: &mut std::str::Chars<'_>) -> Result<Vec<String>, PatternError> {
    let mut options = vec![String::new()];
    while let Some(c) = rest.next() {
        match c {
            '}' => return Ok(options),
            ',' => options.push(String::new()),
            '{' | '/' => return Err(PatternError::Braces(text.to_owned())),
            _ => {
                let option = options.last_mut().expect("there is always one");
                option.push(c);
                if c == '\\' {
                    option.extend(rest.next());
                }
            }
        }
    }
    Err(PatternError::Unclosed(text.to_owned(), '{'))
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, to)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
