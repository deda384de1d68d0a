//! Entries that a snapshot does not have: deleted, or left alone.

use super::super::error::Error;
use super::super::ignores::Texts;
use super::super::place::{Facts, Kind, Place, is_temporary};
use super::super::rules::{Reason, Special};
use super::super::snapshot::ignore_texts;
use super::Failure;
use super::plan::{Planner, Touched, look_into, name_of};
use super::steps::Why;
use std::ffi::OsStr;
use std::path::Path;

impl Planner<'_> {
    /// Plans the deletion of an entry that the snapshot does not have.
    pub(super) fn unknown(&mut self, place: &Place, name: &OsStr, path: &Path) -> Touched {
        let facts = match place.find(name) {
            Ok(Some(facts)) => facts,
            Ok(None) => return Touched::No,
            Err(error) => {
                self.fail(path, "look at", error);
                return Touched::No;
            }
        };
        if let Some(reason) = self.protection(name, path, &facts) {
            self.plan.left_alone.add(path, reason);
            return Touched::No;
        }
        match self.delete(place, path, &facts, Why::Unknown) {
            true => Touched::Yes,
            false => Touched::No,
        }
    }

    /// Returns why an entry is left alone.
    fn protection(&self, name: &OsStr, path: &Path, facts: &Facts) -> Option<Reason> {
        if facts.kind == Kind::File && is_temporary(name) {
            return None;
        }
        match self.bounds.refusal(name, facts, path.components().count()) {
            // Deleting these loses nothing, and the snapshot cannot have them.
            Some(Reason::Special(Special::Fifo | Special::Socket)) | None => {}
            Some(reason) => return Some(reason),
        }
        let is_directory = facts.kind == Kind::Directory;
        // Either set of rules protects: a run that changed the rules must not make us
        // delete files that the earlier rules protected, nor files that the new ones
        // protect.
        let now = self.now.verdict(path, is_directory);
        now.or_else(|| self.then.verdict(path, is_directory))
    }

    /// Plans a deletion; of a directory, with all contents that may be deleted. Returns
    /// whether nothing is left of it.
    pub(super) fn delete(&mut self, place: &Place, path: &Path, facts: &Facts, why: Why) -> bool {
        match facts.kind {
            Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket => {
                self.schedule(path, facts.kind, why);
                true
            }
            Kind::Device => {
                let reason = Reason::Special(Special::Device);
                self.plan.left_alone.add(path, reason);
                false
            }
            Kind::Directory => self.delete_directory(place, path, facts, why),
        }
    }

    fn delete_directory(&mut self, place: &Place, path: &Path, facts: &Facts, why: Why) -> bool {
        if let Some(reason) = self.bounds.refusal(name_of(path), facts, path.components().count()) {
            self.plan.left_alone.add(path, reason);
            return false;
        }
        let (child, names, _) = match look_into(place, name_of(path), facts) {
            Ok(opened) => opened,
            Err(source) => {
                let error = Error::Io { action: "open", path: path.to_owned(), source };
                self.plan.failed.push(Failure { path: path.to_owned(), error });
                return false;
            }
        };
        let texts = match self.now.are_wanted() {
            true => ignore_texts(&child, &names),
            false => Texts::default(),
        };
        self.now.enter(path, &texts);
        self.then.enter(path, &Texts::default());
        let before = (self.plan.left_alone.total(), self.plan.failed.len());
        let mut touched = Touched::No;
        for name in &names {
            touched = touched.or(self.unknown(&child, name, &path.join(name)));
        }
        self.then.leave();
        self.now.leave();
        if touched == Touched::Yes {
            self.unlock(path, facts);
        }
        let gone = before == (self.plan.left_alone.total(), self.plan.failed.len());
        if gone {
            self.schedule(path, Kind::Directory, why);
        }
        gone
    }
}
