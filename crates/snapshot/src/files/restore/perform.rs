//! Performs the planned steps, one at a time.

use super::super::depot::Depot;
use super::super::error::{Error, ErrorAt};
use super::super::listing::Content;
use super::super::place::{Kind, Place, TEMPORARY, dress, unique};
use super::super::stream::Cloning;
use super::plan::name_of;
use super::steps::{
    AttributeChange, Attributes, Before, CreatedEntry, Creation, Deletion, Link, Plan, Why,
};
use super::{Failure, Restored};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

pub(super) fn perform(depot: &Depot, root: &Place, plan: Plan) -> Restored {
    let mut hand = Performer { depot, root, cloning: Cloning::default(), last: None };
    let mut told = Restored {
        unchanged: plan.unchanged,
        left_alone: plan.left_alone,
        failed: plan.failed,
        ..Restored::default()
    };
    for unlock in plan.unlocks {
        // If it fails, the steps that need it fail as well and are reported.
        let _ = hand.within(&unlock.path, |place, name| Ok(place.set_mode(name, unlock.mode)?));
    }
    for deletion in plan.deletions {
        let outcome = hand.delete(&deletion);
        let list = match deletion.why {
            Why::Unknown => Some(&mut told.deleted),
            Why::Replaced => None,
        };
        note(outcome, deletion.path, list, &mut told.failed);
    }
    for making in plan.makings {
        let list = match making.before {
            Before::Nothing => &mut told.created,
            Before::Something => &mut told.changed,
        };
        note(hand.make(&making), making.path, Some(list), &mut told.failed);
    }
    for link in plan.links {
        let list = match link.before {
            Before::Nothing => &mut told.created,
            Before::Something => &mut told.changed,
        };
        note(hand.link(&link), link.path, Some(list), &mut told.failed);
    }
    for attributes in plan.attributes {
        let list = match attributes.news {
            AttributeChange::Differs => Some(&mut told.attributes),
            AttributeChange::Follows => None,
        };
        note(hand.set(&attributes), attributes.path, list, &mut told.failed);
    }
    told
}

fn note(
    outcome: Result<(), Error>,
    path: PathBuf,
    done: Option<&mut Vec<PathBuf>>,
    failed: &mut Vec<Failure>,
) {
    match outcome {
        Ok(()) => {
            if let Some(done) = done {
                done.push(path);
            }
        }
        Err(error) => failed.push(Failure { path, error }),
    }
}

struct Performer<'a> {
    depot: &'a Depot,
    root: &'a Place,
    cloning: Cloning,
    /// The directory of the last step: most steps are in the same one.
    last: Option<(PathBuf, Place)>,
}

impl Performer<'_> {
    /// Performs a step in the directory of `path`, with its name there.
    fn within<T>(
        &mut self,
        path: &Path,
        step: impl FnOnce(&Place, &OsStr) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let place = match self.last.take() {
            Some((known, place)) if known == parent => place,
            _ => self.root.below(parent)?,
        };
        let outcome = step(&place, name_of(path));
        self.last = Some((parent.to_owned(), place));
        outcome
    }

    fn delete(&mut self, deletion: &Deletion) -> Result<(), Error> {
        let path = &deletion.path;
        let outcome = self.within(path, |place, name| {
            match deletion.kind {
                Kind::Directory => place.remove_directory(name)?,
                Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::Device => {
                    place.remove(name)?;
                }
            }
            Ok(())
        });
        match outcome {
            Err(StepError::Here(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome.map_err(|trouble| trouble.error_at("delete", path)),
        }
    }

    fn make(&mut self, making: &Creation) -> Result<(), Error> {
        let path = &making.path;
        match &making.made {
            CreatedEntry::Directory => self
                .within(path, |place, name| Ok(place.make_directory(name)?))
                .map_err(|trouble| trouble.error_at("make the directory", path)),
            CreatedEntry::File(content) => self.write(path, content),
            CreatedEntry::Symlink { target, modified } => self
                .within(path, |place, name| {
                    replace(place, name, |temporary| {
                        place.make_symlink(temporary, target)?;
                        Ok(place.set_modified(temporary, *modified)?)
                    })
                })
                .map_err(|trouble| trouble.error_at("make the link", path)),
        }
    }

    fn write(&mut self, path: &Path, content: &Content) -> Result<(), Error> {
        let depot = self.depot;
        let cloning = std::mem::take(&mut self.cloning);
        let outcome = self.within(path, |place, name| {
            replace(place, name, |temporary| {
                let mut file = place.create(temporary)?;
                depot.get(&content.blob, content.size, &mut file, &cloning)??;
                Ok(dress(&file, content.mode, content.modified)?)
            })
        });
        self.cloning = cloning;
        outcome.map_err(|trouble| trouble.error_at("write", path))
    }

    fn link(&mut self, link: &Link) -> Result<(), Error> {
        let first = link.first.parent().unwrap_or(Path::new(""));
        let other = self.root.below(first).error_at("open", first)?;
        let from = name_of(&link.first);
        let facts = other.facts(from).error_at("look at", &link.first)?;
        if facts.kind != Kind::File {
            let source = io::Error::other("it is not a file");
            return Err(Error::Io { action: "link to", path: link.first.clone(), source });
        }
        let outcome = self.within(&link.path, |place, name| {
            // A rename between two names of one file would do nothing.
            if place.find(name)?.is_some_and(|found| found.identity() == facts.identity()) {
                return Ok(());
            }
            replace(place, name, |temporary| Ok(place.link(temporary, &other, from)?))
        });
        outcome.map_err(|trouble| trouble.error_at("make the link", &link.path))
    }

    fn set(&mut self, attributes: &Attributes) -> Result<(), Error> {
        let path = &attributes.path;
        let outcome = self.within(path, |place, name| {
            if let Some(mode) = attributes.mode {
                place.set_mode(name, mode)?;
            }
            Ok(place.set_modified(name, attributes.modified)?)
        });
        outcome.map_err(|trouble| trouble.error_at("set the mode and time of", path))
    }
}

/// The cause of a failed step: the workspace, or the depot.
enum StepError {
    Here(io::Error),
    Depot(Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> StepError {
        StepError::Here(error)
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> StepError {
        StepError::Depot(error)
    }
}

impl StepError {
    fn error_at(self, action: &'static str, path: &Path) -> Error {
        match self {
            StepError::Here(source) => Error::Io { action, path: path.to_owned(), source },
            StepError::Depot(error) => error,
        }
    }
}

/// Makes an entry under a temporary name and then renames it, so that the old one exists
/// until the new one is complete.
fn replace(
    place: &Place,
    name: &OsStr,
    make: impl FnOnce(&OsStr) -> Result<(), StepError>,
) -> Result<(), StepError> {
    let temporary = unique(TEMPORARY)?;
    let outcome = make(&temporary).and_then(|()| Ok(place.rename(&temporary, name)?));
    if outcome.is_err() {
        let _ = place.remove(&temporary);
    }
    outcome
}
