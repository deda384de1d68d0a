//! Copies a workspace as it is at one moment.

use super::error::{Error, ErrorAt};
use super::place::{Facts, Kind, Place, Time, dress, unique};
use super::rules::{LeftOut, Reason, Special, TreeSize};
use super::snapshot::Bounds;
use super::stream::Cloning;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The result of a copy.
#[derive(Debug, Clone, Default)]
pub struct Copied {
    pub kept: TreeSize,
    /// Number of files that share their bytes with the original (reflinks).
    pub cloned: u64,
    pub left_out: LeftOut,
}

/// Copies the workspace at `root` to `to`, which must not exist: everything, including
/// ignored files, except for `.sessions`, the directories in `skip` and whatever a snapshot
/// cannot take either. If the file system has reflinks, no content is copied.
///
/// `to` appears when it is complete; if it is below `root`, it is not part of the copy.
///
/// # Errors
///
/// If `to` exists or cannot be written: then nothing has changed. If the process is killed,
/// it leaves a directory beside `to` whose name begins with `.sessile-copying-`.
pub fn copy(root: &Path, to: &Path, skip: &[PathBuf]) -> Result<Copied, Error> {
    let source = Place::root(root).error_at("open", root)?;
    let facts = Facts::of_open(&source).error_at("open", root)?;
    let parent = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(name) = to.file_name() else {
        return Err(Error::Exists { path: to.to_owned() });
    };
    let parent_place = Place::root(parent).error_at("open", parent)?;
    if parent_place.find(name).error_at("look at", to)?.is_some() {
        return Err(Error::Exists { path: to.to_owned() });
    }
    let temporary = unique(".sessile-copying-").error_at("write", to)?;
    parent_place.make_directory(&temporary).error_at("make the directory", to)?;
    let made = parent.join(&temporary);
    let skip = skip.iter().map(PathBuf::as_path).chain([made.as_path()]);
    let top = parent_place.child(&temporary).error_at("open", &made)?;
    let mut copier = Copier {
        bounds: Bounds::around(skip, facts.device),
        cloning: Cloning::default(),
        top: &top,
        names: HashMap::new(),
        told: Copied::default(),
    };
    let pair = Pair { source: &source, target: &top };
    let outcome = copier.directory(pair, Path::new(""));
    let outcome = outcome.and_then(|()| {
        finish(&parent_place, &temporary, name, &facts).error_at("make the directory", to)
    });
    if let Err(error) = outcome {
        let _ = std::fs::remove_dir_all(&made);
        return Err(error);
    }
    copier.told.cloned = copier.cloning.cloned.get();
    Ok(copier.told)
}

fn finish(parent: &Place, temporary: &OsStr, name: &OsStr, facts: &Facts) -> io::Result<()> {
    parent.set_mode(temporary, facts.mode)?;
    parent.set_modified(temporary, facts.modified)?;
    // An empty directory that has appeared meanwhile is replaced, which does no harm.
    parent.rename(temporary, name)
}

/// A directory, and its copy.
#[derive(Clone, Copy)]
struct Pair<'a> {
    source: &'a Place,
    target: &'a Place,
}

struct Copier<'a> {
    bounds: Bounds,
    /// The copy's root.
    top: &'a Place,
    cloning: Cloning,
    /// Files with several names: the path of their copy.
    names: HashMap<u64, PathBuf>,
    told: Copied,
}

impl Copier<'_> {
    fn directory(&mut self, pair: Pair<'_>, path: &Path) -> Result<(), Error> {
        for name in pair.source.names().error_at("list", path)? {
            let path = path.join(&name);
            match self.entry(pair, &path, &name)? {
                None => {}
                Some(reason) => self.told.left_out.add(&path, reason),
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        pair: Pair<'_>,
        path: &Path,
        name: &OsStr,
    ) -> Result<Option<Reason>, Error> {
        let Pair { source, target } = pair;
        let facts = match source.facts(name) {
            Ok(facts) => facts,
            Err(error) => return Ok(unreadable(&error)),
        };
        if let Some(reason) = self.bounds.refusal(name, &facts, path.components().count()) {
            return Ok(Some(reason));
        }
        match facts.kind {
            Kind::File => self.file(pair, path, name, &facts),
            Kind::Symlink => {
                let link = match source.target(name) {
                    Ok(link) => link,
                    Err(error) => return Ok(unreadable(&error)),
                };
                target.make_symlink(name, &link).error_at("make the link", path)?;
                target.set_modified(name, facts.modified).error_at("set the time of", path)?;
                self.told.kept.symlinks += 1;
                Ok(None)
            }
            Kind::Directory => {
                let child = match source.child(name) {
                    Ok(child) => child,
                    Err(error) => return Ok(unreadable(&error)),
                };
                target.make_directory(name).error_at("make the directory", path)?;
                let below = target.child(name).error_at("open", path)?;
                self.directory(Pair { source: &child, target: &below }, path)?;
                self.told.kept.directories += 1;
                attributes(target, name, facts.mode, facts.modified)
                    .error_at("set the mode of", path)?;
                Ok(None)
            }
            Kind::Fifo => Ok(Some(Reason::Special(Special::Fifo))),
            Kind::Socket => Ok(Some(Reason::Special(Special::Socket))),
            Kind::Device => Ok(Some(Reason::Special(Special::Device))),
        }
    }

    fn file(
        &mut self,
        pair: Pair<'_>,
        path: &Path,
        name: &OsStr,
        facts: &Facts,
    ) -> Result<Option<Reason>, Error> {
        let Pair { source, target } = pair;
        if facts.names > 1
            && let Some(first) = self.names.get(&facts.inode)
        {
            let above = first.parent().unwrap_or(Path::new(""));
            let place = self.top.below(above).error_at("open", first)?;
            let from = first.file_name().unwrap_or_default();
            target.link(name, &place, from).error_at("make the link", path)?;
            self.told.kept.hard_links += 1;
            return Ok(None);
        }
        let mut from = match source.open(name) {
            Ok(from) => from,
            Err(error) => return Ok(unreadable(&error)),
        };
        let mut file = target.create(name).error_at("write", path)?;
        if !self.cloning.attempt(&from, &file, facts.size).error_at("write", path)? {
            pour(&mut from, &mut file, facts.size).error_at("copy", path)?;
        }
        dress(&file, facts.mode, facts.modified).error_at("set the mode of", path)?;
        if facts.names > 1 {
            self.names.insert(facts.inode, path.to_owned());
        }
        self.told.kept.files += 1;
        self.told.kept.bytes += facts.size;
        Ok(None)
    }
}

fn attributes(place: &Place, name: &OsStr, mode: u32, modified: Time) -> io::Result<()> {
    place.set_mode(name, mode)?;
    place.set_modified(name, modified)
}

/// Copies at most `size` bytes; the standard library lets the kernel do it.
fn pour(from: &mut File, to: &mut File, size: u64) -> io::Result<()> {
    io::copy(&mut from.take(size), to)?;
    to.flush()
}

fn unreadable(error: &io::Error) -> Option<Reason> {
    let gone = error.kind() == io::ErrorKind::NotFound;
    (!gone).then(|| Reason::Unreadable(error.to_string()))
}
