//! Who owns the files of a workspace, and who owns them inside.
//!
//! Linux can show a directory with other owners (idmapped mounts), if root asks for it:
//! the workspace's owner becomes the user inside. Each owner stays one owner, so where
//! several own files, the guard shows all of them as the user's.

use super::host::Host;
use super::{Claim, Ids, Mapper, Others, Plan, Step, User, WORKSPACE};
use crate::sys;
use sessile_subids::Extent;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Limits for looking at owners: a start should not take as long as the workspace is large.
const MOST_FILES: usize = 500;
const MOST_OF_DIRECTORY: usize = 64;

/// The owners of a workspace that has files of others than the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    /// User and group of the workspace itself.
    pub top: (u32, u32),
    /// Some files belong to another user than the workspace.
    pub are_several: bool,
    /// The caller is root, and may show files with other owners.
    pub can_be_shown_as_others: bool,
    /// The caller is not root, and is in the groups of these files.
    pub are_groups: bool,
    /// One of these groups.
    pub group: u32,
}

impl Owners {
    /// Looks at a workspace, except what is hidden. Returns none if the caller owns what is
    /// there.
    pub(super) fn look(
        workspace: &Path,
        hidden: &[PathBuf],
        (user, group): (u32, u32),
    ) -> Option<Self> {
        let of = |metadata: &fs::Metadata| (metadata.uid(), metadata.gid());
        let metadata = fs::metadata(workspace).ok()?;
        let top = of(&metadata);
        let groups: Vec<u32> = rustix::process::getgroups()
            .map_or_else(|_| Vec::new(), |groups| groups.iter().map(|one| one.as_raw()).collect());
        if user != 0 && groups.iter().all(|one| *one == group) {
            return None;
        }
        // An ordinary user cannot change files of others, except by a group.
        let is_foreign = |owner: (u32, u32)| match user {
            0 => owner != (user, group),
            _ => owner.1 != group && groups.contains(&owner.1),
        };
        let (mut foreign, mut are_several) = (Some(top).filter(|top| is_foreign(*top)), false);
        let (mut count, mut directories) = (0, VecDeque::from([workspace.to_owned()]));
        while let Some(directory) = directories.pop_front() {
            let entries = fs::read_dir(directory).into_iter().flatten().take(MOST_OF_DIRECTORY);
            for entry in entries.filter_map(Result::ok) {
                let Ok(found) = entry.metadata() else { continue };
                if found.is_dir() && hidden.contains(&entry.path()) {
                    continue;
                }
                foreign = foreign.or_else(|| Some(of(&found)).filter(|one| is_foreign(*one)));
                are_several |= found.uid() != top.0;
                count += 1;
                if found.is_dir() && found.dev() == metadata.dev() {
                    directories.push_back(entry.path());
                }
            }
            if count > MOST_FILES || (foreign.is_some() && are_several) {
                break;
            }
        }
        foreign.map(|(_, group)| Self {
            top,
            are_several,
            group,
            are_groups: user != 0,
            can_be_shown_as_others: user == 0 && can_be_shown_as_others(workspace),
        })
    }
}

impl Plan {
    /// Decides how files of other owners are shown.
    pub(super) fn owners(&mut self, host: &Host) -> Claim {
        match (self.user, &host.range, host.owners) {
            // Files have the owners inside that they have outside.
            (User::Root, Some(Ids::Range { by: Mapper::Keeper, .. }), _) => {
                self.owner = Some((User::Root.id(), User::Root.id()));
                Claim::Own
            }
            (User::Agent, Some(Ids::Range { users, by: Mapper::Keeper, .. }), Some(owners))
                if owners.can_be_shown_as_others =>
            {
                let others = Others { same: None, ..*users };
                let by = Mapper::Keeper;
                self.ids = Ids::Range { users: others, groups: others, by };
                self.owner = Some(owners.top);
                Claim::All
            }
            (User::Agent, _, Some(owners)) if owners.are_groups => Claim::Groups,
            (User::Agent | User::Root, _, _) => Claim::Own,
        }
    }

    /// Whether files of a step are shown with other owners.
    pub(crate) fn shows_owners_of(&self, step: &Step) -> bool {
        match step {
            Step::Layered { at, .. } | Step::Tree { at, .. } => {
                let is_layered = matches!(step, Step::Layered { .. });
                at == Path::new(WORKSPACE) || (is_layered && self.user == User::Root)
            }
            Step::Guarded { source, .. } => self.shows_owners_of(source),
            Step::Directory { .. }
            | Step::Link { .. }
            | Step::Text { .. }
            | Step::Device { .. }
            | Step::Memory { .. }
            | Step::Persistent { .. }
            | Step::Processes { .. }
            | Step::Terminals { .. }
            | Step::Hidden { .. } => false,
        }
    }

    /// Returns how mounts show owners, given the caller's ids: users, and groups.
    pub(crate) fn shown_owners(&self, (uid, gid): (u32, u32)) -> Option<[Vec<Extent>; 2]> {
        let (user, group) = self.owner?;
        let inside = self.user.id();
        let users = shown(&self.ids.users(inside, uid), self.user, user);
        Some([users, shown(&self.ids.groups(inside, gid), self.user, group)])
    }
}

/// Says which files cannot be changed, and what to do.
pub(super) fn note(host: &Host, claim: Claim) -> String {
    match claim {
        Claim::Own | Claim::All => "files of other owners than the workspace's cannot be written \
             to: that needs /dev/fuse, or give all files to one owner"
            .to_owned(),
        Claim::Groups => {
            let number = host.owners.map_or(0, |owners| owners.group).to_string();
            let entry = |line: &str| line.split(':').nth(2) == Some(&number);
            let name =
                host.groups.lines().find(|line| entry(line)).and_then(|l| l.split(':').next());
            let name = name.unwrap_or(&number);
            format!(
                "files of the group {name} can be replaced, but not written to: a layer has your \
                 own group only. An administrator can allow it (`chmod 666 /dev/fuse`); or start \
                 with --files direct, or as that group: `sg {name} -c 'sessile start …'`"
            )
        }
    }
}

/// Tries it.
fn can_be_shown_as_others(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let shown = sys::clone_tree(&path).and_then(|tree| {
        let users = sys::user_namespace(&[(0, 1, 1)], &[(0, 1, 1)])?;
        sys::show_owners_of(tree.as_fd(), users.as_fd())
    });
    shown.is_ok()
}

/// Returns how a mount shows owners, given the mapping of the sandbox: to root inside with
/// their own ids; to another user so that `owner` is that user. Each is the id of a file,
/// the id outside of the owner that is shown, and the count.
pub(super) fn shown(inside: &[Extent], user: User, owner: u32) -> Vec<Extent> {
    match user {
        User::Root => inside.to_vec(),
        User::Agent => exchanged(inside, (user.id(), owner)),
    }
}

/// Returns a mapping in which two ids have changed places.
fn exchanged(extents: &[Extent], (one, other): (u32, u32)) -> Vec<Extent> {
    let mut cut = Vec::new();
    for &(first, outside, count) in extents {
        let end = first + count;
        let mut ends = vec![end];
        ends.extend([one, one.saturating_add(1), other, other.saturating_add(1)]);
        ends.retain(|at| (first + 1..=end).contains(at));
        ends.sort_unstable();
        ends.dedup();
        let mut start = first;
        for end in ends {
            cut.push((start, outside + (start - first), end - start));
            start = end;
        }
    }
    for extent in &mut cut {
        extent.0 = match extent.0 {
            id if id == one => other,
            id if id == other => one,
            id => id,
        };
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_the_workspace_is_the_user_inside() {
        let inside = [(1000, 0, 1), (0, 7000, 1000), (1001, 8000, 100)];
        assert_eq!(shown(&inside, User::Root, 501), inside);
        let of = |owner| exchanged(&inside, (1000, owner));
        assert_eq!(of(1000), inside);
        assert_eq!(
            of(501),
            [(501, 0, 1), (0, 7000, 501), (1000, 7501, 1), (502, 7502, 498), (1001, 8000, 100)]
        );
        assert_eq!(of(0), [(0, 0, 1), (1000, 7000, 1), (1, 7001, 999), (1001, 8000, 100)]);
        // An id that the sandbox does not have.
        assert_eq!(of(200_000), [(200_000, 0, 1), (0, 7000, 1000), (1001, 8000, 100)]);
    }
}
