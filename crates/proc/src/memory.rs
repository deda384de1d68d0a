//! /proc/PID/smaps_rollup: the memory of a process, summed up.

/// The memory of a process, in kilobytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Pages that only this process has.
    pub private: u64,
    /// Each page divided by the number of processes that share it.
    pub proportional: u64,
}

impl Memory {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let field = |name: &str| kilobytes(text, name).unwrap_or(0);
        Self {
            private: field("Private_Clean:") + field("Private_Dirty:"),
            proportional: field("Pss:"),
        }
    }
}

/// Returns the number in the line with this name, as in `MemAvailable:  100 kB`.
#[must_use]
pub(crate) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_memory_is_clean_and_dirty() {
        let text = "5500-7fff ---p 00000000 00:00 0   [rollup]\nRss:   900 kB\nPss:   500 kB\n\
                    Pss_Dirty:   7 kB\nPrivate_Clean:   20 kB\nPrivate_Dirty:   300 kB\n";
        assert_eq!(Memory::parse(text), Memory { private: 320, proportional: 500 });
        assert_eq!(Memory::parse(""), Memory::default());
    }
}
