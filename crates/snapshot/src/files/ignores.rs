//! Ignore files with git's rules: they are nested, the nearest one first; the last matching
//! line decides; and nothing below an ignored directory is looked at.

use super::rules::{IgnoreFiles, Reason};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) const GIT: &str = ".gitignore";
pub(crate) const OWN: &str = ".sessileignore";

/// A longer ignore file was not written by a person.
pub(crate) const LONGEST: u64 = 1 << 20;

/// The ignore files of a directory and all above it.
#[derive(Debug)]
pub(crate) struct Ignores {
    apply: IgnoreFiles,
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    own: Option<Gitignore>,
    git: Option<Gitignore>,
    /// The directory is inside a repository's `.git`.
    in_git: bool,
}

/// The text of a directory's ignore files.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) own: Option<Vec<u8>>,
    pub(crate) git: Option<Vec<u8>>,
}

impl Ignores {
    pub(crate) fn new(apply: IgnoreFiles) -> Ignores {
        Ignores { apply, levels: Vec::new() }
    }

    /// Returns whether the text of ignore files is needed.
    pub(crate) fn are_wanted(&self) -> bool {
        match self.apply {
            IgnoreFiles::Apply => true,
            IgnoreFiles::Disregard => false,
        }
    }

    /// Enters the directory at `path`, relative to the root.
    pub(crate) fn enter(&mut self, path: &Path, texts: &Texts) {
        let above = self.levels.last().is_some_and(|level| level.in_git);
        self.levels.push(Level {
            own: texts.own.as_deref().and_then(|text| compile(path, OWN, text)),
            git: texts.git.as_deref().and_then(|text| compile(path, GIT, text)),
            in_git: above || path.file_name() == Some(OsStr::new(".git")),
        });
    }

    pub(crate) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns why the entry at `path`, directly in the last directory, is ignored.
    pub(crate) fn verdict(&self, path: &Path, is_directory: bool) -> Option<Reason> {
        if !self.are_wanted() {
            return None;
        }
        let full = virtual_path(path);
        let own = self.levels.iter().rev().filter_map(|level| level.own.as_ref());
        if let Some(decided) = decide(own, &full, is_directory) {
            return decided;
        }
        let of_git = self.levels.last().is_some_and(|level| level.in_git)
            || path.file_name() == Some(OsStr::new(".git"));
        if of_git {
            return None;
        }
        let git = self.levels.iter().rev().filter_map(|level| level.git.as_ref());
        decide(git, &full, is_directory).flatten()
    }
}

fn decide<'a>(
    rules: impl Iterator<Item = &'a Gitignore>,
    path: &Path,
    is_directory: bool,
) -> Option<Option<Reason>> {
    for rules in rules {
        match rules.matched(path, is_directory) {
            Match::None => {}
            Match::Ignore(glob) => return Some(Some(reason(glob))),
            Match::Whitelist(_) => return Some(None),
        }
    }
    None
}

fn reason(glob: &Glob) -> Reason {
    let file = glob.from().map(Path::to_owned).unwrap_or_default();
    Reason::Ignored { file, pattern: glob.original().to_owned() }
}

/// The matcher needs paths below a root; ours is "/", which is never accessed.
fn virtual_path(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}

fn compile(path: &Path, name: &str, text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(virtual_path(path));
    let text = String::from_utf8_lossy(text);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is not a pattern matches nothing, as with git.
        let _ = builder.add_line(Some(path.join(name)), line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(ignores: &mut Ignores, path: &str, own: &str, git: &str) {
        let texts = Texts { own: Some(own.into()), git: Some(git.into()) };
        ignores.enter(Path::new(path), &texts);
    }

    fn is_ignored(ignores: &Ignores, path: &str) -> bool {
        ignores.verdict(Path::new(path.trim_end_matches('/')), path.ends_with('/')).is_some()
    }

    #[test]
    fn the_nearest_file_and_its_last_line_decide() {
        let mut ignores = Ignores::new(IgnoreFiles::Apply);
        level(&mut ignores, "", "", "*.log\n!keep.log\n/build/\nsub/*.tmp\n");
        assert!(is_ignored(&ignores, "a.log"));
        assert!(!is_ignored(&ignores, "keep.log"));
        assert!(is_ignored(&ignores, "build/"));
        assert!(!is_ignored(&ignores, "build"), "only directories");
        level(&mut ignores, "sub", "", "!a.log\n");
        assert!(!is_ignored(&ignores, "sub/a.log"));
        assert!(is_ignored(&ignores, "sub/b.log"));
        assert!(is_ignored(&ignores, "sub/x.tmp"));
        assert!(!is_ignored(&ignores, "sub/build/"), "anchored to its directory");
        ignores.leave();
        assert!(is_ignored(&ignores, "a.log"));
    }

    #[test]
    fn our_own_file_has_the_last_word() {
        let mut ignores = Ignores::new(IgnoreFiles::Apply);
        level(&mut ignores, "", "!dist/\ndata/\n", "dist/\n");
        assert!(!is_ignored(&ignores, "dist/"));
        let reason = ignores.verdict(Path::new("data"), true);
        let file = PathBuf::from(".sessileignore");
        assert_eq!(reason, Some(Reason::Ignored { file, pattern: "data/".into() }));
    }

    #[test]
    fn a_repository_is_whole_or_left_out_by_us() {
        let mut ignores = Ignores::new(IgnoreFiles::Apply);
        level(&mut ignores, "", "", ".*\nlogs\n*.pack\n");
        assert!(!is_ignored(&ignores, ".git/"));
        level(&mut ignores, ".git", "", "");
        assert!(!is_ignored(&ignores, ".git/logs/"));
        level(&mut ignores, ".git/objects", "", "");
        assert!(!is_ignored(&ignores, ".git/objects/x.pack"));
        let mut ignores = Ignores::new(IgnoreFiles::Apply);
        level(&mut ignores, "", ".git\n", "");
        assert!(is_ignored(&ignores, ".git/"));
    }

    #[test]
    fn disregarded_files_ignore_nothing() {
        let mut ignores = Ignores::new(IgnoreFiles::Disregard);
        level(&mut ignores, "", "*\n", "*\n");
        assert!(!is_ignored(&ignores, "a"));
    }
}
