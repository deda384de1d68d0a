//! Our EXIT trap in a run that sets one itself, and may then exit.
//!
//! The user's trap replaces ours when it is set, and a shell that exits with only that
//! trap leaves no state. So such a text runs under a guard, a script that the shell reads
//! before it: in bash and dash, `trap` appends ours to whatever it sets, and zsh has a
//! hook that runs after its trap.
//!
//! A text that looks for the guard could see it. So a text that, for example, lists
//! functions or aliases runs without one: if the shell exits, its state is that of the
//! last capture, and the answer says so.

use super::dialect::{Dialect, Guard};
use super::traps::{changes_traps, lists_traps};
use super::{MARK, quote};
use crate::kernels::mentions;

/// Written by zsh's hook: whether the user has an EXIT trap is not known then.
pub(super) const AFTER: &str = "w/after";

/// Whether a text may set an EXIT trap and cannot see the guard.
pub(super) fn is_wanted(dialect: &dyn Dialect, flags: &str, text: &[u8]) -> bool {
    let sets = changes_traps(text) && !lists_traps(text) && !mentions(text, "DEBUG");
    let looks = dialect.guard_revealing_words().iter().any(|words| mentions(text, words));
    sets && !looks && !dialect.shows_guard(flags, text)
}

/// Whether a text may set an option: `set -ex`, `set -o xtrace`.
pub(super) fn sets_option(text: &[u8], flag: u8, name: &str) -> bool {
    let is_set = |at: usize| {
        let option = &text[at + SET.len()..];
        option.iter().take_while(|b| b.is_ascii_alphabetic()).any(|b| *b == flag)
            || option.strip_prefix(b"o ").is_some_and(|rest| rest.starts_with(name.as_bytes()))
    };
    let is_whole = |at: usize| at == 0 || !text[at - 1].is_ascii_alphanumeric();
    memchr::memmem::find_iter(text, SET).any(|at| is_whole(at) && is_set(at))
}

const SET: &[u8] = b"set -";

/// Whether the word occurs, and not only as a part of another.
pub(super) fn has_word(text: &[u8], word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let word = word.as_bytes();
    memchr::memmem::find_iter(text, word).any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        !is_part(before) && !is_part(text.get(at + word.len()))
    })
}

/// Returns the guard's script, for a shell whose user has this EXIT trap at first.
/// `words` stand for the user's trap in the script, and for its listing.
pub(super) fn script(
    dialect: &dyn Dialect,
    template: &str,
    words: [&str; 2],
    dir: &str,
    users: Option<&str>,
) -> String {
    let [users_word, listing_word] = words;
    // A word of the shell into which the user's part is inserted.
    let behind = quote(&behind(dialect, dir, Some((USERS, LISTING)), Guard::On))
        .replace(USERS, &format!("'{users_word}'"))
        .replace(LISTING, &format!("'{listing_word}'"));
    let listing = users.map(|users| quote(&format!("trap -- {} EXIT", quote(users))));
    let armed = self::behind(dialect, dir, users.zip(listing.as_deref()), Guard::On);
    template
        .replace("@OURS@", &quote(&self::behind(dialect, dir, None, Guard::On)))
        .replace("@BEHIND@", &behind)
        .replace("@ARMED@", &quote(&armed))
}

/// Placeholders for the user's trap, and for its listing.
pub(super) const USERS: &str = "@USERS@";
const LISTING: &str = "@LISTING@";

/// Parts the user's trap from what is ours around it.
fn separator() -> String {
    format!("# {MARK}\n")
}

/// Returns our EXIT trap after the user's, which is given with its listing (an empty one
/// if the keeper knows it anyway).
pub(super) fn behind(
    dialect: &dyn Dialect,
    dir: &str,
    users: Option<(&str, &str)>,
    guard: Guard,
) -> String {
    let separator = separator();
    let listing = users.map(|(_, listing)| listing).filter(|listing| !listing.is_empty());
    let ours = dialect.last_capture(dir, listing, guard);
    let Some((users, _)) = users else {
        return separator + &ours;
    };
    let early = dialect.early_capture(dir, listing, guard);
    format!("{separator}{early}\n{separator}{users}\n{separator}{ours}")
}

/// Returns the user's part of an EXIT trap that was built so; `None` if it was not.
pub(super) fn users_part(trap: &str) -> Option<Option<String>> {
    let separator = separator();
    let parts: Vec<&str> = trap.strip_prefix(&separator)?.split(&separator).collect();
    match parts[..] {
        [_early, users, _ours] => Some(users.strip_suffix('\n').map(str::to_owned)),
        [_] => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{bash::Bash, dash::Dash};
    use super::*;

    #[test]
    fn a_guard_is_for_texts_that_set_a_trap_and_do_not_look() {
        for text in ["trap 'x' EXIT; exit 3", "echo ERROR; trap x EXIT", "trap x 0; find -type f"] {
            assert!(is_wanted(&Bash, "himBHs", text.as_bytes()), "{text}");
        }
        for text in ["trap x INT", "trap x EXIT; trap", "trap x EXIT; type trap", "trap x EXIT ERR"]
        {
            assert!(!is_wanted(&Bash, "himBHs", text.as_bytes()), "{text}");
        }
        assert!(is_wanted(&Dash, "is", b"trap x EXIT; set -e"));
        assert!(!is_wanted(&Dash, "is", b"trap x EXIT; set -ex"));
    }

    #[test]
    fn a_text_that_sets_an_option_is_told_from_one_that_names_it() {
        for text in ["set -v", "x; set -euv", "(set -o verbose)", "set -e -v; set -v"] {
            assert!(sets_option(text.as_bytes(), b'v', "verbose"), "{text}");
        }
        for text in ["curl --verbose", "git reset -v", "set -e", "set -o vi", "echo verbose"] {
            assert!(!sets_option(text.as_bytes(), b'v', "verbose"), "{text}");
        }
    }

    #[test]
    fn what_is_the_users_in_a_trap_is_found_again() {
        let trap = |users| behind(&Bash, "/d", users, Guard::On);
        assert_eq!(users_part(&trap(None)), Some(None));
        for users in ["echo 'a\nb'", "", "a\n"] {
            let both = trap(Some((users, "'trap -- a\nb EXIT'")));
            assert_eq!(users_part(&both), Some(Some(users.to_owned())));
        }
        assert_eq!(users_part("echo bye"), None);
        assert_eq!(users_part(&Bash.exit_trap("/d")), None);
    }
}
