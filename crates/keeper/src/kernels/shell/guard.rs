//! Our EXIT trap in a run that sets one itself, and may then exit.
//!
//! The user's trap takes the place of ours the moment that it is set, and a
//! shell that exits with it alone leaves no state. So such a text runs under a
//! guard, a script that the shell reads before it: in bash and dash `trap` puts
//! ours behind whatever it sets, and zsh has a hook of its own for what comes
//! after its trap.
//!
//! The guard could be seen by a text that looks for it, so that one which lists
//! functions or aliases, say, goes without: then its state is that of the last
//! capture, which the answer says.

use super::dialect::Dialect;
use super::{MARK, changes_traps, lists_traps, quote, stands_alone};
use crate::kernels::mentions;

/// What zsh's hook writes: whether the user has an EXIT trap is not known then.
pub(super) const AFTER: &str = "after";

/// Whether a text may set an EXIT trap, and cannot tell that there is a guard.
pub(super) fn is_wanted(dialect: Dialect, flags: &str, text: &[u8]) -> bool {
    let sets = changes_traps(text) && !lists_traps(text) && !mentions(text, "DEBUG");
    let looks = revealing(dialect).iter().any(|words| mentions(text, words));
    // Functions have ERR and RETURN traps of their own, and under `set -a` and
    // `set -T` they are exported and traced.
    let is_special = match dialect {
        Dialect::Bash => {
            flags.contains(['a', 'T'])
                || ["ERR", "RETURN"].iter().any(|name| has_word(text, name))
                || stands_alone(text, "set")
        }
        // The name of the function would be in the trace.
        Dialect::Posix => flags.contains('x') || traces(text) || stands_alone(text, "alias"),
        Dialect::Zsh => stands_alone(text, "set"),
    };
    sets && !looks && !is_special
}

/// What a text does that shows a guard.
fn revealing(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Bash => &[
            "type trap",
            "type -",
            "declare -f",
            "declare -F",
            "typeset -f",
            "typeset -F",
            "compgen",
            "command -V",
            "trap()",
            "trap ()",
            "function trap",
            "FUNCNAME",
            "caller",
            "functrace",
            "set -T",
            "export -f",
        ],
        Dialect::Posix => &["type trap", "command -v trap", "command -V", "alias trap", "alias -p"],
        Dialect::Zsh => &["zshexit", "functions", "typeset", "whence", "which", "declare"],
    }
}

/// Whether a text may turn tracing on: `set -ex`, `set -o xtrace`.
fn traces(text: &[u8]) -> bool {
    let options = text.windows(5).enumerate().filter(|(_, window)| window == b"set -");
    let mut options = options.map(|(at, _)| &text[at + 5..]);
    mentions(text, "xtrace")
        || options
            .any(|rest| rest.iter().take_while(|b| b.is_ascii_alphabetic()).any(|b| *b == b'x'))
}

/// Whether the word occurs, and not only as a part of another.
pub(super) fn has_word(text: &[u8], word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let word = word.as_bytes();
    text.windows(word.len()).enumerate().any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        window == word && !is_part(before) && !is_part(text.get(at + word.len()))
    })
}

/// The guard's script, for a shell whose user has this EXIT trap at first.
pub(super) fn script(dialect: Dialect, dir: &str, users: Option<&str>) -> String {
    let ours = |listing: Option<&str>| dialect.guarded_exit_trap(dir, listing);
    let around = ours(Some(LISTING));
    let (before, after) = around.split_once(LISTING).unwrap_or((&around, ""));
    let armed = match users {
        Some(users) => {
            let listing = format!("trap -- {} EXIT", quote(users));
            format!("{users}\n{}", ours(Some(&quote(&listing))))
        }
        None => ours(None),
    };
    let template = match dialect {
        Dialect::Bash => include_str!("guard.bash"),
        Dialect::Posix => include_str!("guard.sh"),
        Dialect::Zsh => {
            let after = dialect.guarded_exit_trap(dir, None);
            return include_str!("guard.zsh").replace("@DIR@", dir).replace("@AFTER@", &after);
        }
    };
    template
        .replace("@OURS@", &quote(&ours(None)))
        .replace("@BEFORE@", &quote(before))
        .replace("@AFTER@", &quote(after))
        .replace("@ARMED@", &quote(&armed))
}

/// Stands for the listing of the user's trap.
const LISTING: &str = "@LISTING@";

/// The user's part of an EXIT trap that was set under a guard; `None` when the
/// trap was not.
pub(super) fn users_part(trap: &str) -> Option<Option<String>> {
    let ours = format!(": {MARK};");
    if trap.starts_with(&ours) {
        return Some(None);
    }
    trap.split_once(&format!("\n{ours}")).map(|(users, _)| Some(users.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_for_texts_that_set_a_trap_and_do_not_look() {
        for text in ["trap 'x' EXIT; exit 3", "echo ERROR; trap x EXIT", "trap x 0; find -type f"] {
            assert!(is_wanted(Dialect::Bash, "himBHs", text.as_bytes()), "{text}");
        }
        for text in ["trap x INT", "trap x EXIT; trap", "trap x EXIT; type trap", "trap x EXIT ERR"]
        {
            assert!(!is_wanted(Dialect::Bash, "himBHs", text.as_bytes()), "{text}");
        }
        assert!(is_wanted(Dialect::Posix, "is", b"trap x EXIT; set -e"));
        assert!(!is_wanted(Dialect::Posix, "is", b"trap x EXIT; set -ex"));
    }

    #[test]
    fn what_is_the_users_in_a_trap_is_found_again() {
        let trap = |listing| Dialect::Bash.guarded_exit_trap("/d", listing);
        assert_eq!(users_part(&trap(None)), Some(None));
        let both = format!("echo 'a\nb'\n{}", trap(Some("'l'")));
        assert_eq!(users_part(&both), Some(Some("echo 'a\nb'".to_owned())));
        assert_eq!(users_part("echo bye"), None);
        assert_eq!(users_part(&Dialect::Bash.exit_trap("/d")), None);
    }
}
