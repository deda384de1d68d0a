//! Users inside and outside. The kernel speaks of users as the namespace of
//! the mount knows them, the source as this process does.

/// Users inside and outside. Without ranges they are the same.
#[derive(Debug, Clone, Default)]
pub struct IdMap {
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

pub(super) fn inside(ranges: &[IdRange], id: u32) -> u32 {
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
