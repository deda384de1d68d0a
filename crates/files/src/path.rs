//! A path below the directory, as bytes: names need not be text.

use crate::{FileError, Result};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path that only goes down: plain names, separated by single slashes. The directory
/// itself is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(Vec<u8>);

impl RelativePath {
    /// Parses a path that is relative to the directory, or absolute and below `called`.
    ///
    /// # Errors
    /// When it leads elsewhere.
    pub fn parse(given: &[u8], called: &Path) -> Result<Self> {
        let shown = || String::from_utf8_lossy(given).into_owned();
        if given.contains(&0) {
            return Err(FileError::BadPath(shown(), "a path has no NUL"));
        }
        let below = match given.starts_with(b"/") {
            false => given,
            true => match Path::new(OsStr::from_bytes(given)).strip_prefix(called) {
                Ok(below) => below.as_os_str().as_bytes(),
                Err(_) => return Err(FileError::Outside(shown())),
            },
        };
        let mut path = Self::default();
        for name in below.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => return Err(FileError::BadPath(shown(), "name it without `..`")),
                name => path.push(name),
            }
        }
        Ok(path)
    }

    fn push(&mut self, name: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b'/');
        }
        self.0.extend_from_slice(name);
    }

    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut path = self.clone();
        path.push(name);
        path
    }

    /// Returns this path below another.
    #[must_use]
    pub fn below(&self, other: &Self) -> Self {
        if self.is_root() { other.clone() } else { other.join(&self.0) }
    }

    /// Returns the rest of this path below another one that contains it.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        if other.is_root() {
            return self.clone();
        }
        let rest = self.0.strip_prefix(other.0.as_slice()).unwrap_or_default();
        Self(rest.strip_prefix(b"/").unwrap_or(rest).to_vec())
    }

    /// Returns whether it is the directory itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the last name; empty for the directory itself.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// Splits the path into its parent directory and its name.
    ///
    /// # Errors
    /// When it is the directory itself.
    pub(crate) fn split(&self) -> Result<(Self, &OsStr)> {
        if self.is_root() {
            return Err(FileError::BadPath(".".to_owned(), "this is the workspace itself"));
        }
        let name = self.name();
        let parent = &self.0[..self.0.len() - name.len()];
        let parent = parent.strip_suffix(b"/").unwrap_or(parent);
        Ok((Self(parent.to_vec()), OsStr::from_bytes(name)))
    }

    /// Returns the path for system calls.
    pub(crate) fn os(&self) -> &OsStr {
        if self.is_root() { OsStr::new(".") } else { OsStr::from_bytes(&self.0) }
    }

    /// Returns all directories above it, the highest first, and itself.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(at, _)| at).chain([self.0.len()]);
        ends.filter(|end| *end > 0).map(|end| Self(self.0[..end].to_vec()))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.os().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        RelativePath::parse(text.as_bytes(), Path::new("/work/space"))
            .ok()
            .map(|path| path.to_string())
    }

    #[test]
    fn paths_go_down_only() {
        for (given, meant) in [
            ("", "."),
            (".", "."),
            ("a//b/./c/", "a/b/c"),
            ("/work/space", "."),
            ("/work/space/a", "a"),
            ("...", "..."),
        ] {
            assert_eq!(parse(given).as_deref(), Some(meant), "{given}");
        }
        for given in ["..", "a/..", "/work", "/work/spaces/a", "/etc/passwd", "a\0b", "/"] {
            assert_eq!(parse(given), None, "{given:?}");
        }
    }

    #[test]
    fn a_path_has_the_steps_that_lead_to_it() {
        let path = RelativePath::parse(b"a/b/c", Path::new("/")).unwrap();
        let steps: Vec<String> = path.steps().map(|step| step.to_string()).collect();
        assert_eq!(steps, ["a", "a/b", "a/b/c"]);
        let (parent, name) = path.split().unwrap();
        assert_eq!((parent.to_string().as_str(), name.to_str()), ("a/b", Some("c")));
        assert_eq!(path.within(&parent).to_string(), "c");
        assert_eq!(RelativePath::default().steps().count(), 0);
        assert!(RelativePath::default().split().is_err());
    }
}
