//! Files of a repository that the rules of a sandbox hide: to git inside, they are deleted,
//! and `git commit -a` would record that. So the start of a session names them.
//!
//! git itself is not asked, because it runs programs that a repository's configuration
//! names. Its index is read here, and not trusted: what cannot be understood says nothing.

use crate::policy::{Level, Policy};
use crate::rules::{Need, Rules};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

const INDEX: &str = ".git/index";
/// Limit of an index: one of 20,000 files has 2 MB.
const MOST_BYTES: u64 = 32 << 20;
/// How long a start is held up at the most: some 10,000 files are judged in that time. The
/// rest of a large repository is not looked at.
const PATIENCE: Duration = Duration::from_millis(4);
/// Files between two looks at the clock.
const BETWEEN: usize = 256;

/// Names of files that are told.
const TOLD: usize = 3;

/// Returns a note if a repository in the workspace tracks files that a policy hides.
#[must_use]
pub fn note(workspace: &Path, policy: &Policy) -> Option<String> {
    let rules = Rules::new(policy);
    if rules.need() != Need::PerPath || rules.level_of(INDEX.as_bytes()) < Level::Read {
        return None;
    }
    let index = read(&workspace.join(INDEX))?;
    let begun = Instant::now();
    let has_time = |count: usize| !count.is_multiple_of(BETWEEN) || begun.elapsed() < PATIENCE;
    let looked_at = Entries::of(&index)?.enumerate().take_while(|(count, _)| has_time(*count));
    let hidden = looked_at.filter(|(_, path)| rules.level_of(path) == Level::None);
    told(&hidden.map(|(_, path)| path).collect::<Vec<_>>())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn told(hidden: &[Vec<u8>]) -> Option<String> {
    let names = hidden.iter().take(TOLD).map(|path| String::from_utf8_lossy(path));
    let names: Vec<_> = names.collect();
    let first = names.first()?;
    let names = names.join(", ");
    let more = match hidden.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "the sandbox hides files that git tracks, and git takes them for deleted: {names}{more}. \
         Commit other files by name, not with `git add -A` or `git commit -a`; or start the \
         session with --allow '/{first}=read@200' and the like"
    ))
}

/// The paths in an index of version 2, 3 or 4, as git describes it in `gitformat-index`.
struct Entries<'a> {
    rest: &'a [u8],
    left: u32,
    version: u32,
    /// The path before, of which version 4 repeats the beginning.
    path: Vec<u8>,
}

/// Times, numbers and the SHA-1 of a file, before the flags.
const BEFORE_FLAGS: usize = 60;
const FIXED: usize = BEFORE_FLAGS + 2;
/// There are further flags.
const EXTENDED: u16 = 0x4000;
/// One of these: git expects no file.
const SKIP_WORKTREE: u16 = 0x4000;
/// The length of a path, or this if it is longer.
const LENGTH: u16 = 0x0fff;

impl<'a> Entries<'a> {
    fn of(index: &'a [u8]) -> Option<Self> {
        let number = |at: usize| index.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let version = number(4)?;
        if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
            return None;
        }
        Some(Self { rest: index.get(12..)?, left: number(8)?, version, path: Vec::new() })
    }

    /// Reads the next entry. Returns whether its file is expected to be there.
    fn read(&mut self) -> Option<bool> {
        let flags = |at: usize| self.rest.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
        let own = flags(BEFORE_FLAGS)?;
        let further = if own & EXTENDED == 0 { None } else { Some(flags(FIXED)?) };
        let mut at = FIXED + 2 * usize::from(further.is_some());
        if self.version == 4 {
            let (strip, length) = varint(self.rest.get(at..)?)?;
            at += length;
            self.path.truncate(self.path.len().checked_sub(strip)?);
        } else {
            self.path.clear();
        }
        let name = self.rest.get(at..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        self.path.extend_from_slice(name);
        let length = own & LENGTH;
        // Otherwise it is another format, such as that with longer hashes.
        if length < LENGTH && usize::from(length) != self.path.len() {
            return None;
        }
        at += name.len() + 1;
        if self.version < 4 {
            at = at.next_multiple_of(8);
        }
        self.rest = self.rest.get(at..)?;
        Some(further.unwrap_or(0) & SKIP_WORKTREE == 0)
    }
}

impl Iterator for Entries<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while self.left > 0 {
            self.left -= 1;
            if self.read()? {
                return Some(self.path.clone());
            }
        }
        None
    }
}

/// Returns a number as git writes offsets, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    const MOST: usize = 5;
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().take(MOST).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::preset;
    use std::process::Command;

    const FILES: [&str; 6] =
        [".env.example", "a/b/c.pem", "a/b/d.rs", "a/secrets/one", "a/secrets/two", "main.rs"];

    fn git(place: &Path, args: &[&str]) {
        let status = Command::new("git").args(args).current_dir(place).status().unwrap();
        assert!(status.success(), "{args:?}");
    }

    fn repository() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        git(place.path(), &["init", "--quiet"]);
        for file in FILES {
            let path = place.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        git(place.path(), &["add", "."]);
        place
    }

    fn paths(place: &Path) -> Vec<String> {
        let index = read(&place.join(".git/index")).unwrap();
        let paths = Entries::of(&index).unwrap();
        paths.map(|path| String::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn an_index_of_each_version_is_read_as_git_writes_it() {
        let place = repository();
        for version in ["2", "3", "4"] {
            git(place.path(), &["update-index", "--index-version", version]);
            assert_eq!(paths(place.path()), FILES, "version {version}");
            // Only then there is a version 3.
            git(place.path(), &["update-index", "--skip-worktree", "a/b/d.rs"]);
            let others: Vec<_> = FILES.into_iter().filter(|file| *file != "a/b/d.rs").collect();
            assert_eq!(paths(place.path()), others, "version {version}");
            git(place.path(), &["update-index", "--no-skip-worktree", "a/b/d.rs"]);
        }
    }

    #[test]
    fn hidden_files_are_named_where_rules_hide_some() {
        let place = repository();
        let note = |name: &str| super::note(place.path(), &preset(name).unwrap());
        let told = note("development").unwrap();
        let names = ": .env.example, a/b/c.pem, a/secrets/one and 1 more.";
        assert!(told.contains(names), "{told}");
        assert!(told.contains("--allow '/.env.example=read@200'"), "{told}");
        assert_eq!((note("full-access"), note("read-only"), note("view-only")), (None, None, None));
    }

    #[test]
    fn an_index_that_is_cut_or_changed_says_what_it_can_and_no_more() {
        let place = repository();
        let whole = read(&place.path().join(".git/index")).unwrap();
        for end in 0..whole.len() {
            let found = Entries::of(&whole[..end]).map_or(0, Iterator::count);
            assert!(found <= FILES.len());
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            let _ = Entries::of(&other).map(Iterator::count);
        }
        let link = place.path().join("link");
        std::os::unix::fs::symlink(place.path().join(".git/index"), &link).unwrap();
        assert_eq!(read(&link), None);
    }
}
