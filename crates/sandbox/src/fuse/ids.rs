//! Users inside and outside. The kernel speaks of users as the namespace of
//! the mount knows them, the source as this process does.

use crate::plan::Claim;

/// Users inside and outside. Without ranges they are the same.
#[derive(Debug, Clone, Default)]
pub struct IdMap {
    /// The user inside, and whose files are shown as that user's.
    pub user: u32,
    pub claims: Claim,
    /// Groups that this process is in, if their files are.
    pub own_groups: Vec<u32>,
    pub users: Vec<IdRange>,
    pub groups: Vec<IdRange>,
}

/// So many ids, counted from these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    pub inside: u32,
    pub outside: u32,
    pub count: u32,
}

/// Who has no id on the other side: `nobody`, as the kernel has it.
const NOBODY: u32 = 65534;

impl IdMap {
    /// The user inside that a file's owner is shown as.
    pub(super) fn user_inside(&self, id: u32) -> u32 {
        match self.claims {
            Claim::All => self.user,
            Claim::Own | Claim::Groups => inside(&self.users, id),
        }
    }

    pub(super) fn group_inside(&self, id: u32) -> u32 {
        match self.claims {
            Claim::All => self.user,
            Claim::Groups if self.own_groups.contains(&id) => self.user,
            Claim::Own | Claim::Groups => inside(&self.groups, id),
        }
    }
}

fn inside(ranges: &[IdRange], id: u32) -> u32 {
    translate(ranges, id, |range| (range.outside, range.inside)).unwrap_or(NOBODY)
}

pub(super) fn outside(ranges: &[IdRange], id: u32) -> Option<u32> {
    translate(ranges, id, |range| (range.inside, range.outside))
}

fn translate(ranges: &[IdRange], id: u32, sides: impl Fn(&IdRange) -> (u32, u32)) -> Option<u32> {
    if ranges.is_empty() {
        return Some(id);
    }
    ranges.iter().find_map(|range| {
        let (from, to) = sides(range);
        let offset = id.checked_sub(from).filter(|offset| *offset < range.count)?;
        to.checked_add(offset)
    })
}
