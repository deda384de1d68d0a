//! Recognizes which of a shell's limits its session was started with: the keeper has the
//! same ones.

use crate::processes;
use rustix::process::{Resource, Rlimit, getrlimit};

/// Shells count in blocks of different sizes.
const UNITS: [u64; 3] = [1, 512, 1024];

/// Whether a limit, `soft hard` as `ulimit` prints them, was inherited. An unlimited one
/// was: nobody can have lifted it.
pub(crate) fn is_inherited(flag: &str, value: &str) -> bool {
    let resource = match flag {
        "-c" => Resource::Core,
        "-d" => Resource::Data,
        "-e" => Resource::Nice,
        "-f" => Resource::Fsize,
        "-i" => Resource::Sigpending,
        "-l" => Resource::Memlock,
        "-m" => Resource::Rss,
        "-n" => return is_printed(processes::usual_descriptor_limit(), value),
        "-q" => Resource::Msgqueue,
        "-r" => Resource::Rtprio,
        "-s" => Resource::Stack,
        "-t" => Resource::Cpu,
        // Shells differ in their letters for the number of processes and of locks.
        "-u" | "-p" => Resource::Nproc,
        "-v" => Resource::As,
        "-x" | "-w" => Resource::Locks,
        _ => return value == "unlimited unlimited",
    };
    value == "unlimited unlimited" || is_printed(getrlimit(resource), value)
}

/// Whether a shell prints the limit as `value`.
fn is_printed(limit: Rlimit, value: &str) -> bool {
    let print = |number: Option<u64>, unit: u64| match number {
        Some(number) => (number / unit).to_string(),
        None => "unlimited".to_owned(),
    };
    UNITS.iter().any(|unit| {
        format!("{} {}", print(limit.current, *unit), print(limit.maximum, *unit)) == value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_known_in_any_unit() {
        let limit = Rlimit { current: Some(8 << 20), maximum: None };
        for printed in ["8388608 unlimited", "8192 unlimited", "16384 unlimited"] {
            assert!(is_printed(limit, printed), "{printed}");
        }
        assert!(!is_printed(limit, "8192 8192"));
        assert!(!is_inherited("-t", "7777777 7777777"));
        assert!(is_inherited("-R", "unlimited unlimited"));
    }
}
