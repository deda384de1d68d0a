//! The traps of a shell, including ours.
//!
//! Our EXIT trap writes down the state when the shell exits. It must not be seen or lost:
//! see [`ExitTrap`].

use super::super::mentions;
use super::builtin_calls::BuiltinCalls;
use super::dialect::Guard;
use super::{Form, MARK, Order, Shell, guard, quote, view};
use crate::scratch::{read_left, write_file};
use sessile_protocol::RunNo;
use std::fmt::Write;
use std::io;

/// Who has the shell's EXIT trap.
///
/// While the user has none, it is ours and writes down the state. While the user has one,
/// it is the user's text followed by ours. Before a text that lists traps, the user's own
/// is restored, so that it shows what a plain shell shows. A text that may set one and
/// then exit runs under a [`guard`]. After a text that mentions traps, the traps are
/// checked at once, and ours is appended again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExitTrap {
    /// Ours is in place, behind the user's text if there is one.
    Armed { users: Option<String> },
    /// Ours stays behind whatever the current run sets. `users`: the trap when the run
    /// began.
    Guarded { users: Option<String> },
    /// Not known, and not ours.
    Open,
}

impl Shell {
    /// Whether the traps are checked after a text.
    pub(super) fn looks_at_traps(&self, text: &[u8]) -> bool {
        self.exit_trap == ExitTrap::Open || self.debug_trap.is_some() || changes_traps(text)
    }

    /// Whether the text of a trap may be shown when it runs: bash does that under
    /// `set -v`. The state is then the one that was captured last.
    fn shows_traps(&self, text: &[u8]) -> bool {
        self.dialect.shows_traps() && self.is_verbose(text)
    }

    pub(super) fn is_verbose(&self, text: &[u8]) -> bool {
        self.flags.contains('v') || guard::sets_option(text, b'v', "verbose")
    }

    pub(super) fn unguard(&self) -> &'static str {
        match self.exit_trap {
            ExitTrap::Guarded { .. } => self.dialect.unguard(),
            ExitTrap::Armed { .. } | ExitTrap::Open => "",
        }
    }

    /// Lists the traps after a run.
    pub(super) fn list_traps(&self, order: &Order<'_>) -> String {
        if !self.looks_at_traps(order.text) {
            return String::new();
        }
        let listing = traps_file(order.run);
        format!("{}{}trap >|{}/{listing};", self.unguard(), self.calls.prefix, self.dir)
    }

    /// Does the same if it may have been done already: a listing that is being read is
    /// not written again.
    pub(super) fn list_traps_once(&self, run: RunNo) -> String {
        let (prefix, listing) = (self.calls.prefix, format!("{}/{}", self.dir, traps_file(run)));
        format!("{}{prefix}test -e {listing} || {prefix}trap >|{listing};", self.unguard())
    }

    pub(super) fn form(&self, text: &[u8]) -> Form {
        let users_trap = match &self.exit_trap {
            ExitTrap::Armed { users } => users.is_some(),
            ExitTrap::Guarded { .. } | ExitTrap::Open => true,
        };
        // A DEBUG trap would see, and show, the lines around the text.
        let debugs = self.debug_trap.is_some() || mentions(text, "DEBUG");
        if !debugs && (users_trap || changes_traps(text)) {
            Form::Replaced
        } else {
            Form::Redirected
        }
    }

    /// Returns what has to be done about the EXIT trap before a text.
    pub(super) fn prelude(&mut self, text: &[u8]) -> io::Result<String> {
        if lists_traps(text) || self.shows_traps(text) {
            return Ok(self.disarm());
        }
        let is_plain =
            self.debug_trap.is_none() && self.calls == BuiltinCalls::avoiding(self.dialect, &[]);
        if !is_plain || !guard::is_wanted(self.dialect, &self.flags, text) {
            return Ok(String::new());
        }
        match std::mem::replace(&mut self.exit_trap, ExitTrap::Open) {
            ExitTrap::Armed { users } => {
                let script = self.dialect.guard_script(&self.dir, users.as_deref());
                write_file(&self.path("h"), script.as_bytes())?;
                self.exit_trap = ExitTrap::Guarded { users };
                Ok(self.dialect.guard(&self.dir))
            }
            other @ (ExitTrap::Guarded { .. } | ExitTrap::Open) => {
                self.exit_trap = other;
                Ok(String::new())
            }
        }
    }

    /// Restores the user's own EXIT trap before a text that may look at it.
    pub(super) fn disarm(&mut self) -> String {
        let prefix = self.calls.prefix;
        let signals = self.dialect.stop_signal().into_iter().chain([self.dialect.halt_signal()]);
        let stop: String = signals.map(|(_, name)| format!("{prefix}trap - {name};")).collect();
        match std::mem::replace(&mut self.exit_trap, ExitTrap::Open) {
            ExitTrap::Armed { users: Some(users) } => {
                format!("{stop}{prefix}trap -- {} EXIT;", quote(&users))
            }
            ExitTrap::Armed { users: None } => format!("{stop}{prefix}trap - EXIT;"),
            ExitTrap::Guarded { .. } | ExitTrap::Open => String::new(),
        }
    }

    /// Returns the line that puts our EXIT trap in place, behind the user's.
    pub(super) fn arm(&mut self, users: Option<String>) -> String {
        let ours = self.calls.rewrite(self.dialect.exit_trap(&self.dir));
        let text = match &users {
            None => ours,
            Some(users) if self.dialect.has_exit_hook() => format!("{users}\n{ours}"),
            Some(users) => {
                let users_place = Some((guard::USERS, ""));
                let both = guard::behind(self.dialect, &self.dir, users_place, Guard::Off);
                self.calls.rewrite(both).replacen(guard::USERS, users, 1)
            }
        };
        self.exit_trap = ExitTrap::Armed { users };
        let prefix = self.calls.prefix;
        let stop = match self.dialect.stop_signal() {
            Some((_, signal)) => {
                let stop = format!("{{ {prefix}kill -s INT $$; }} 2>/dev/null # {MARK}");
                format!("{prefix}trap -- {} {signal};", quote(&stop))
            }
            None => String::new(),
        };
        let halt = self.dialect.halt_trap(&self.dir, prefix);
        let halt = self.calls.rewrite(halt);
        let halt = format!("{prefix}trap -- {} {};", quote(&halt), self.dialect.halt_signal().1);
        format!("{stop}{halt}{prefix}trap -- {} EXIT\n", quote(&text))
    }

    /// Returns a line that restores the user's trap on SIGINT, if ours has removed it in
    /// the last run.
    pub(super) fn restore_interrupt_trap(&mut self) -> io::Result<String> {
        let listing = if self.is_halted { read_left(&self.left("w/int"))? } else { Vec::new() };
        if listing.is_empty() {
            return Ok(String::new());
        }
        write_file(&self.left("w/int"), b"")?;
        let listing = String::from_utf8_lossy(&listing);
        let prefix = self.calls.prefix;
        let mut line = String::new();
        // Only in zsh: its options, and whether it was tracing.
        let options = listing.lines().find_map(|line| line.strip_prefix("options "));
        let (flags, tracing) = options.and_then(|o| o.split_once(' ')).unwrap_or_default();
        for (flag, was_set) in [('e', flags.contains('e')), ('x', tracing == "on")] {
            if was_set {
                let _ = writeln!(line, "{prefix}set -{flag}");
                self.flags.push(flag);
            }
        }
        if let Some(users) = view::trap(listing.as_bytes(), &["INT"]) {
            let _ = writeln!(line, "{prefix}trap -- {} INT", quote(&users));
        } else if let Some(function) = listing.find("TRAPINT () {\n").map(|at| &listing[at..]) {
            let end = function.find("\n}\n").map_or(function.len(), |at| at + 3);
            write_file(&self.path("int-function"), &function.as_bytes()[..end])?;
            let _ = writeln!(line, "{} {}/int-function", self.calls.source, self.dir);
        }
        Ok(line)
    }

    /// Checks the traps that a run has left, and puts our EXIT trap back behind the
    /// user's if it is not there.
    pub(super) fn learn_traps(&mut self, run: RunNo) {
        let path = self.left(&traps_file(run));
        let Ok(listing) = read_left(&path) else { return };
        self.listing = Some(path);
        self.keep_debug_trap(view::trap(&listing, &["DEBUG"]));
        let found = view::trap(&listing, &["EXIT", "0"]);
        let users = match (&mut self.exit_trap, found) {
            (ExitTrap::Guarded { users }, Some(text)) if text.contains(MARK) => {
                guard::users_part(&text).unwrap_or_else(|| users.take())
            }
            (ExitTrap::Armed { .. } | ExitTrap::Open, Some(text)) if text.contains(MARK) => return,
            (ExitTrap::Armed { .. } | ExitTrap::Guarded { .. } | ExitTrap::Open, found) => found,
        };
        let line = self.arm(users);
        let _ = self.send(&line);
    }

    /// Keeps the user's DEBUG trap. bash hides a DEBUG trap from what it sources, and
    /// restores it even if the text has removed it. So the shell has none between runs,
    /// and each text begins by setting it.
    pub(super) fn keep_debug_trap(&mut self, trap: Option<String>) {
        if trap.is_some() {
            let _ = self.send(&format!("{}trap - DEBUG\n", self.calls.prefix));
        }
        self.debug_trap = trap;
    }

    /// Arms our EXIT trap after a capture has found the user's.
    pub(super) fn rearm(&mut self, found: Option<String>) {
        let found = found.filter(|text| !text.contains(MARK));
        let line = match (&self.exit_trap, found) {
            (ExitTrap::Armed { .. }, None) => return,
            (ExitTrap::Armed { .. }, Some(users)) => self.arm(Some(users)),
            (ExitTrap::Guarded { .. } | ExitTrap::Open, users) => self.arm(users),
        };
        let _ = self.send(&line);
    }
}

/// Returns the file in which the traps are listed after a run.
fn traps_file(run: RunNo) -> String {
    format!("w/l{run}")
}

/// Whether a text may change traps that matter here.
pub(super) fn changes_traps(text: &[u8]) -> bool {
    let names = || {
        let exit = mentions(text, "EXIT") || guard::has_word(text, "0");
        exit || mentions(text, "DEBUG")
    };
    mentions(text, "trap") && (names() || lists_traps(text))
}

/// Whether a text may list traps: `trap` alone, or `trap -p`.
pub(super) fn lists_traps(text: &[u8]) -> bool {
    ["trap -p", "trap -l"].iter().any(|words| mentions(text, words)) || stands_alone(text, "trap")
}

/// Whether a text may contain a command without any argument.
pub(super) fn stands_alone(text: &[u8], command: &str) -> bool {
    let word = command.as_bytes();
    memchr::memmem::find_iter(text, word).any(|at| {
        let next = text[at + word.len()..].iter().find(|b| !matches!(b, b' ' | b'\t'));
        next.is_none_or(|b| b"\r\n;|&)>`}".contains(b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_lists_traps_is_told_from_one_that_sets_them() {
        for text in
            ["trap", "trap -p", "x=$(trap)", "trap | cat", "a; trap\nb", "trap -p EXIT", "`trap`"]
        {
            assert!(lists_traps(text.as_bytes()), "{text}");
        }
        for text in ["trap 'x' EXIT", "trap - INT", "trap \"\" INT", "sh -c 'trap : TERM'", "echo"]
        {
            assert!(!lists_traps(text.as_bytes()), "{text}");
        }
    }
}
