//! The paths of a workspace that a session may change.

use crate::{LayerError, Result};
use sessile_sandbox::plan::WORKSPACE;
use sessile_sandbox::{Level, Policy, Rules};
use std::path::Path;

/// The visible part of a workspace.
#[derive(Debug)]
pub struct Scope {
    rules: Rules,
    /// Directories that no session sees, relative to the workspace.
    hidden: Vec<Vec<u8>>,
    /// Mount points of other host directories, relative to the workspace.
    mounts: Vec<Vec<u8>>,
}

impl Scope {
    /// Returns the scope of a session's policy. `hidden` are directories that it never
    /// sees, such as that of all sessions; those outside the workspace do not matter.
    #[must_use]
    pub fn new(policy: &Policy, workspace: &Path, hidden: &[&Path]) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let below = |path: &&Path| {
            let below = path.strip_prefix(workspace).ok()?.as_os_str().as_bytes().to_vec();
            (!below.is_empty()).then_some(below)
        };
        let mounts = policy.binds.iter().filter_map(|bind| {
            let below = bind.inside().strip_prefix(WORKSPACE).ok()?;
            let names: Vec<&[u8]> = below.iter().map(OsStrExt::as_bytes).collect();
            (!names.is_empty()).then(|| names.join(&b'/'))
        });
        Self {
            rules: Rules::new(policy),
            hidden: hidden.iter().filter_map(below).collect(),
            mounts: mounts.collect(),
        }
    }

    /// Returns whether the session may change a path.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        !self.is_hidden(path) && self.rules.level_of(path) == Level::Write
    }

    pub(crate) fn is_hidden(&self, path: &[u8]) -> bool {
        self.hidden.iter().chain(&self.mounts).any(|hidden| is_below(path, hidden))
    }

    /// Returns whether a directory was made for a mount below it.
    pub(crate) fn leads_to_mount(&self, path: &[u8]) -> bool {
        self.mounts.iter().any(|mount| mount != path && is_below(mount, path))
    }
}

/// Returns whether a path is another, or below it.
pub(crate) fn is_below(path: &[u8], other: &[u8]) -> bool {
    path.strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || other.is_empty() || rest.starts_with(b"/"))
}

/// The requested paths; none means all.
#[derive(Debug)]
pub(crate) struct Selection(Vec<Vec<u8>>);

impl Selection {
    /// Parses paths that are relative to the workspace, or begin with `/workspace`.
    pub(crate) fn parse(paths: &[Vec<u8>]) -> Result<Self> {
        Ok(Self(paths.iter().map(|path| parse(path)).collect::<Result<_>>()?))
    }

    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| is_below(path, wanted))
    }

    /// Returns a requested path that none of these is, or is below.
    pub(crate) fn missing(&self, found: &[&[u8]]) -> Option<&[u8]> {
        let is_there = |wanted: &Vec<u8>| found.iter().any(|path| is_below(path, wanted));
        // The workspace itself always exists, changed or not.
        let mut paths = self.0.iter().filter(|wanted| !wanted.is_empty());
        paths.find(|wanted| !is_there(wanted)).map(Vec::as_slice)
    }
}

fn parse(given: &[u8]) -> Result<Vec<u8>> {
    let wrong = |why| Err(LayerError::BadPath(String::from_utf8_lossy(given).into_owned(), why));
    let path = match given.strip_prefix(b"/workspace") {
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => rest,
        Some(_) | None => given,
    };
    if path.starts_with(b"/") && path == given {
        return wrong("name it from the workspace");
    }
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => return wrong("name it without `..`"),
            name if name.contains(&0) => return wrong("a path has no NUL"),
            name => names.push(name),
        }
    }
    Ok(names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_takes_paths_with_all_that_is_below() {
        let selection =
            Selection::parse(&[b"/workspace/src/".to_vec(), b"./a//b".to_vec()]).unwrap();
        for path in [&b"src"[..], b"src/main.rs", b"a/b", b"a/b/c"] {
            assert!(selection.has(path));
        }
        for path in [&b"srcs"[..], b"a", b"a/bc"] {
            assert!(!selection.has(path));
        }
        let found: [&[u8]; 1] = [b"src/main.rs"];
        assert_eq!(selection.missing(&found), Some(&b"a/b"[..]));
        for path in [&b".."[..], b"a/../..", b"/etc/passwd", b"/workspaces/a", b"a\0b"] {
            assert!(Selection::parse(&[path.to_vec()]).is_err());
        }
        assert!(Selection::parse(&[]).unwrap().has(b"anything"));
    }
}
