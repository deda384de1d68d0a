//! What only root inside has: users for installed packages, and directories to install
//! to, which are kept with the layer.

use super::host::{self, Host};
use super::{Place, Plan, SYSTEM, Step, UPPER, User};
use sessile_subids::{Extent, SubIds};
use std::path::{Path, PathBuf};

/// Directories that apt and the like do not make themselves.
const NOTES: &[&str] =
    &["/var/log/apt", "/var/cache/apt/archives/partial", "/var/cache/debconf", "/var/backups"];

/// The users inside, beside the one of the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// No others.
    One,
    /// All others that a system has.
    Range { users: Others, groups: Others, by: Mapper },
}

/// They have unused ids outside, except for one user that owns some of the shown files
/// and keeps its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    pub outside: u32,
    pub count: u32,
    pub same: Option<u32>,
}

/// Who sets up the mapping of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapper {
    /// The keeper, which is root.
    Keeper,
    /// The system's programs for users who have a range.
    Programs(SubIds),
}

impl Ids {
    /// Returns the mapping of users, given the user of the programs: id inside, id
    /// outside, and count.
    pub(crate) fn users(&self, inside: u32, outside: u32) -> Vec<Extent> {
        match self {
            Self::One => vec![(inside, outside, 1)],
            Self::Range { users, .. } => users.extents(inside, outside),
        }
    }

    pub(crate) fn groups(&self, inside: u32, outside: u32) -> Vec<Extent> {
        match self {
            Self::One => vec![(inside, outside, 1)],
            Self::Range { groups, .. } => groups.extents(inside, outside),
        }
    }

    /// Whether a process must be in the user namespace to handle files of the other
    /// users: outside, only root may.
    pub(crate) fn are_inside_only(&self) -> bool {
        match self {
            Self::One | Self::Range { by: Mapper::Keeper, .. } => false,
            Self::Range { by: Mapper::Programs(_), .. } => true,
        }
    }
}

impl Others {
    pub(super) fn extents(self, inside: u32, own: u32) -> Vec<Extent> {
        let Self { outside, count, same } = self;
        let mut all = vec![(inside, own, 1), (0, outside, inside.min(count))];
        let (first, outside) = (inside + 1, outside + inside);
        let count = count.saturating_sub(inside);
        match same.filter(|same| *same >= first) {
            None => all.push((first, outside, count)),
            Some(same) => {
                let below = same - first;
                let above = count.saturating_sub(below + 1);
                let rest = (same + 1, outside + below + 1, above);
                all.extend([(first, outside, below), (same, same, 1), rest]);
            }
        }
        all.retain(|(_, _, count)| *count > 0);
        all
    }
}

impl Plan {
    /// Adds the directories that installing programs writes to, beside the system's programs.
    pub(super) fn kept(&mut self, place: &Place) {
        match self.user {
            User::Agent => {}
            User::Root => {
                for at in ["/etc", "/var"].map(PathBuf::from) {
                    let directory = system_layer(&at, place).join(UPPER);
                    self.writable.push(at.clone());
                    self.steps.push(Step::Persistent { directory, at });
                }
                // Where installers leave notes.
                self.steps.push(Step::Memory { at: "/run".into(), mode: 0o755 });
                self.writable.push("/run".into());
                let made = NOTES.iter().map(|at| Step::Directory { at: at.into(), mode: 0o755 });
                self.steps.extend(made);
            }
        }
    }

    /// Adds the records of installed packages and their sources, without passwords.
    pub(super) fn packages(&mut self, host: &Host, place: &Place) {
        match self.user {
            User::Agent => {}
            User::Root => {
                for (at, shown) in &host.packages {
                    self.steps.push(of_system(shown.clone(), at.clone(), place));
                }
                let hidden = host::PASSWORDS.iter().map(|at| Step::Hidden { at: at.into() });
                self.steps.extend(hidden);
            }
        }
    }
}

/// Returns where the changes to a directory of the system are kept.
fn system_layer(at: &Path, place: &Place) -> PathBuf {
    let name = at.to_string_lossy().trim_start_matches('/').replace('/', "-");
    place.layer.join(SYSTEM).join(name)
}

/// Returns the step for a directory of the system that root inside may change.
pub(super) fn of_system(host: PathBuf, at: PathBuf, place: &Place) -> Step {
    layered(host, &system_layer(&at, place), at)
}

/// Returns the step for a directory of an interpreter outside of the system's directories.
pub(super) fn of_installation(path: &Path, place: &Place) -> Step {
    // No two paths have the same name then, whatever they are.
    let name = path.to_string_lossy().replace('%', "%25").replace('/', "%2F");
    layered(path.to_owned(), &place.layer.join(SYSTEM).join(name), path.to_owned())
}

fn layered(host: PathBuf, layer: &Path, at: PathBuf) -> Step {
    Step::Layered { host, upper: layer.join(UPPER), work: layer.join("work"), at }
}
