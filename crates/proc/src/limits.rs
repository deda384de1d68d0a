//! /proc/PID/limits: a table of names, soft limits and hard limits.

/// A resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

impl Limit {
    /// Returns the limit of this name, for example `Max open files`.
    #[must_use]
    pub fn parse(table: &str, name: &str) -> Option<Self> {
        let line = table.lines().find_map(|line| line.strip_prefix(name))?;
        let mut values = line.split_ascii_whitespace().map(|value| match value {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        });
        Some(Self { soft: values.next()??, hard: values.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_found_by_its_name() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max open files            1024                 524288               files     \n\
                     Max realtime timeout      unlimited            unlimited            us        \n";
        let open_files = Limit { soft: Some(1024), hard: Some(524_288) };
        assert_eq!(Limit::parse(table, "Max open files"), Some(open_files));
        let unlimited = Limit { soft: None, hard: None };
        assert_eq!(Limit::parse(table, "Max realtime timeout"), Some(unlimited));
        assert_eq!(Limit::parse(table, "Max moons"), None);
    }
}
