//! Files of a directory, whatever lies in it and around it.

mod archives;
mod confinement;
mod writing;

use sessile_files::{Entry, FileError, RelativePath, Replace, Root, Writing};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A directory with something secret beside it.
struct Place {
    _outer: tempfile::TempDir,
    secret: PathBuf,
    inside: PathBuf,
    root: Root,
}

fn place() -> Place {
    let outer = tempfile::tempdir().expect("a directory");
    let path = outer.path().canonicalize().expect("a path");
    let (inside, secret) = (path.join("inside"), path.join("secret"));
    std::fs::create_dir(&inside).expect("a directory");
    std::fs::write(&secret, "secret").expect("a file");
    let root = Root::open(&inside).expect("a root");
    Place { _outer: outer, secret, inside, root }
}

impl Place {
    fn at(&self, name: &str) -> PathBuf {
        self.inside.join(name)
    }

    fn path(&self, name: &str) -> RelativePath {
        self.root.path(name.as_bytes()).expect("a path")
    }

    fn write(&self, name: &str, text: &[u8]) -> Result<bool, FileError> {
        let mut draft = self.root.write(&self.path(name), usual())?;
        draft.write(text)?;
        Ok(draft.finish()?.is_new)
    }

    fn read(&self, name: &str) -> Result<String, FileError> {
        let content = self.root.read(&self.path(name))?;
        Ok(std::io::read_to_string(content.file).expect("text"))
    }

    fn list(&self, depth: u32) -> Vec<Entry> {
        let mut all = Vec::new();
        let from = RelativePath::default();
        let listed = self.root.list(&from, depth, |entry| {
            all.push(entry);
            ControlFlow::Continue(())
        });
        listed.expect("a list");
        all
    }

    fn names(&self, depth: u32) -> Vec<String> {
        self.list(depth).iter().map(|entry| entry.path.to_string()).collect()
    }

    fn secret_is_safe(&self) {
        let all = std::fs::read_dir(self.secret.parent().expect("a directory")).expect("a list");
        assert_eq!(all.count(), 2, "something came out");
        assert_eq!(std::fs::read_to_string(&self.secret).expect("a file"), "secret");
    }
}

fn usual() -> Writing {
    Writing { mode: None, parents: false, replace: Replace::Yes, modified: None }
}

fn link(target: impl AsRef<Path>, at: &Path) {
    std::os::unix::fs::symlink(target, at).expect("a link");
}
