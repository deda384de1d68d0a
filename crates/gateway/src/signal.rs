//! Signals, as people name them.

use rustix::process::Signal;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a signal; use INT, TERM, KILL, HUP, QUIT, USR1, USR2, CONT, STOP, TSTP, WINCH or a number"
)]
pub struct UnknownSignal(String);

/// The number of a signal that is given as `TERM`, `SIGTERM` or `15`.
///
/// # Errors
/// When there is none of that name.
pub fn signal_number(name: &str) -> Result<i32, UnknownSignal> {
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    let named = match bare {
        "HUP" => Some(Signal::HUP),
        "INT" => Some(Signal::INT),
        "QUIT" => Some(Signal::QUIT),
        "KILL" => Some(Signal::KILL),
        "USR1" => Some(Signal::USR1),
        "USR2" => Some(Signal::USR2),
        "TERM" => Some(Signal::TERM),
        "CONT" => Some(Signal::CONT),
        "STOP" => Some(Signal::STOP),
        "TSTP" => Some(Signal::TSTP),
        "WINCH" => Some(Signal::WINCH),
        _ => None,
    };
    let number = named.map(Signal::as_raw).or_else(|| bare.parse().ok());
    number.filter(|n| (1..=64).contains(n)).ok_or_else(|| UnknownSignal(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(signal_number("TERM"), Ok(15));
        assert_eq!(signal_number("SIGKILL"), Ok(9));
        assert_eq!(signal_number("34"), Ok(34));
        for wrong in ["", "SIG", "term", "0", "-1", "65", "NOPE"] {
            assert!(signal_number(wrong).is_err(), "{wrong}");
        }
    }
}
