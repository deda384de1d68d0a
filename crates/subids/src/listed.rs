//! Parses `/etc/subuid` and similar files, without I/O.

/// The first id of ranges that `useradd` gives.
pub(crate) const FIRST: u32 = 100_000;

/// Returns the entries of lines with `name:first:count`.
fn entries(listed: &str) -> impl Iterator<Item = (&str, u32, u32)> {
    listed.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let (name, first, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some((name, first.parse().ok()?, count.parse().ok()?))
    })
}

/// Returns the first of a user's ranges that has enough ids. A user is listed by name or by
/// number.
pub(crate) fn range_of((name, id): (Option<&str>, u32), listed: &str, wanted: u32) -> Option<u32> {
    let number = id.to_string();
    let is_users = |who: &str| Some(who) == name || who == number;
    // A range must not include root.
    let is_good = |first: u32, count: u32| first > 0 && first.checked_add(count).is_some();
    entries(listed)
        .find(|(who, first, count)| is_users(who) && *count >= wanted && is_good(*first, *count))
        .map(|(_, first, _)| first)
}

/// Returns the start of a range that overlaps none of the listed ones.
pub(crate) fn free(lists: &[&str], count: u32) -> Option<u32> {
    let ends = lists.iter().flat_map(|listed| entries(listed));
    let end = ends.filter_map(|(_, first, count)| first.checked_add(count)).max();
    let first = end.unwrap_or(FIRST).max(FIRST);
    first.checked_add(count).map(|_| first)
}

/// Returns a user's name, from `/etc/passwd`.
pub(crate) fn name_of(user: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "# none\nann:100000:65536\nbob:5:10\nbob:200000:70000\n1003:300000:65536\nbad:x:y\nall:4294967295:65536\n";

    #[test]
    fn a_range_is_found_by_name_or_number_if_it_is_large_enough() {
        let of = |name, id| range_of((name, id), LISTED, 65535);
        assert_eq!(of(Some("ann"), 1001), Some(100_000));
        assert_eq!(of(Some("bob"), 1002), Some(200_000));
        assert_eq!(of(None, 1003), Some(300_000));
        assert_eq!(of(Some("eve"), 1004), None);
        assert_eq!(of(Some("all"), 1005), None);
        assert_eq!(range_of((Some("bob"), 1002), LISTED, 70_001), None);
    }

    #[test]
    fn a_free_range_is_behind_all_others() {
        assert_eq!(free(&["", ""], 65536), Some(100_000));
        assert_eq!(free(&["ann:100000:65536", "ann:165536:65536"], 65536), Some(231_072));
        assert_eq!(free(&["ann:4294900000:60000"], 65536), None);
    }

    #[test]
    fn names_are_those_of_the_system() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/:/bin/sh\n";
        assert_eq!(name_of(1001, passwd).as_deref(), Some("ann"));
        assert_eq!(name_of(1002, passwd), None);
    }
}
