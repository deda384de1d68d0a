//! Names of signals.

use rustix::process::Signal;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a signal; use INT, TERM, KILL, HUP, QUIT, USR1, USR2, CONT, STOP, TSTP, WINCH or a number"
)]
pub struct UnknownSignal(String);

/// Returns the number of a signal given as `TERM`, `SIGTERM` or `15`.
///
/// # Errors
/// When there is no such signal.
pub fn signal_number(name: &str) -> Result<i32, UnknownSignal> {
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    let named = NAMED.iter().find(|(known, _)| *known == bare);
    let is_number = !bare.starts_with(['0', '+']);
    let number = match named {
        Some((_, signal)) => Some(signal.as_raw()),
        None => bare.parse().ok().filter(|n| is_number && (1..=64).contains(n)),
    };
    number.ok_or_else(|| UnknownSignal(name.to_owned()))
}

const NAMED: [(&str, Signal); 11] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("TERM", Signal::TERM),
    ("CONT", Signal::CONT),
    ("STOP", Signal::STOP),
    ("TSTP", Signal::TSTP),
    ("WINCH", Signal::WINCH),
];

/// The known names, without `SIG`.
pub const SIGNALS: [&str; NAMED.len()] = {
    let mut names = [""; NAMED.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = NAMED[n].0;
        n += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(signal_number("TERM"), Ok(15));
        assert_eq!(signal_number("SIGKILL"), Ok(9));
        assert_eq!(signal_number("34"), Ok(34));
        for wrong in ["", "SIG", "term", "0", "09", "+9", "-1", "65", "NOPE"] {
            assert!(signal_number(wrong).is_err(), "{wrong}");
        }
    }
}
