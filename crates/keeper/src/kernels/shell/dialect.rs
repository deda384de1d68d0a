//! The differences between shells. Each shell has its own folder with its scripts,
//! listings and special cases.

use super::builtin_calls::BuiltinCalls;
use super::terminal::TerminalSetup;
use super::view::Interpreted;
use super::{bash, dash, quote, zsh};
use sessile_protocol::{Language, RunNo};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

/// Whether our script replaces `trap` (see guard.rs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    On,
    Off,
}

/// The code around a run that has its own variables.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) before: String,
    /// The sourcing command.
    pub(super) source: String,
    pub(super) after: String,
}

/// Commands at the beginning of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstWords<'a> {
    pub(super) words: &'a str,
    /// Tracing is off so far, and among the words.
    pub(super) traces: bool,
    /// The same for `set -v`.
    pub(super) shows: bool,
    pub(super) prefix: &'a str,
}

/// How a shell reports the status of a job that is gone.
#[derive(Debug)]
pub(super) enum Status {
    /// By the status of a command.
    Asked {
        wait: String,
    },
    /// The same, if it has not forgotten the status.
    AskedIfKnown {
        is_known: String,
        wait: String,
    },
    Unavailable,
}

pub(super) fn of(language: Language) -> &'static dyn Dialect {
    match language {
        Language::Bash => &bash::Bash,
        Language::Zsh => &zsh::Zsh,
        Language::Sh | Language::Python | Language::Node => &dash::Dash,
    }
}

/// The words of one shell. Methods with a default here differ in few shells.
pub(super) trait Dialect: Debug + Sync {
    // How it is started.

    fn name(&self) -> &'static str;

    fn arguments(&self) -> &'static [&'static str];

    /// Returns the scripts that it reads, by their names in its directory.
    fn files(&self) -> &'static [(&'static str, &'static str)];

    /// Returns the first lines. They set a prompt that shows nothing but is not empty (rc
    /// files take an empty one as the sign of a shell that is not interactive).
    fn boot(&self) -> &'static str;

    /// Returns the line that makes it take over a state.
    fn restore(&self, dir: &str) -> String {
        let source = self.sources()[0].1;
        format!("{source} {dir}/restore </dev/null >/dev/null 2>&1")
    }

    // Which words of ours work in it (see builtin_calls.rs).

    /// Returns prefixes with a way to source, the best first.
    fn sources(&self) -> &'static [(&'static str, &'static str)];

    /// Returns ways to write a line.
    fn echoes(&self) -> &'static [&'static str];

    /// What a text may take our words away with.
    fn redefining_words(&self) -> &'static [&'static str];

    // Runs (see trigger.rs).

    /// How variables are set for one run alone.
    fn environment(
        &self,
        variables: &BTreeMap<String, String>,
        calls: BuiltinCalls,
    ) -> Environment {
        let mut source = assignments(variables);
        source.push_str(calls.source);
        Environment { source, ..Environment::default() }
    }

    /// `exec` for redirections.
    fn exec(&self, _: BuiltinCalls) -> String {
        // `builtin exec` would undo them.
        "\\exec".to_owned()
    }

    /// Returns what follows such an `exec`.
    fn sure(&self) -> &'static str {
        ""
    }

    /// Goes around the command that sources a text, whatever becomes of that.
    fn protect_source(
        &self,
        source: String,
        _has_terminal: bool,
        _shows_next: bool,
        _: BuiltinCalls,
    ) -> String {
        source
    }

    /// Whether traces go to where stderr was before a redirection.
    fn traces_around(&self) -> bool {
        false
    }

    /// Returns the beginning of a text, which the user must not see and whose lines must
    /// not count.
    fn first_words(&self, first: FirstWords<'_>, text: &[u8]) -> Vec<u8>;

    /// Sets the user's DEBUG trap by that command, and leaves `$?` as the last run did,
    /// with commands that the trap does not see.
    fn debug_trap(&self, set: &str, status: i32, prefix: &str) -> Option<String>;

    /// A script that does nothing but have a status. No alias or function of the
    /// user's gets in between.
    fn returning(&self, status: i32, calls: BuiltinCalls) -> String {
        match calls.prefix {
            // Then `return` may be anything.
            "\\" => format!("/bin/sh -c 'exit {status}'\n"),
            prefix => format!("{prefix}return {status}\n"),
        }
    }

    /// Returns a command with that status, for a shell that a script would end.
    fn failing(&self, _status: i32, _flags: &str) -> Option<String> {
        None
    }

    /// Whether it has no way to list its functions.
    fn hides_functions(&self) -> bool {
        false
    }

    // Jobs (see background.rs).

    /// Returns a pause of a few milliseconds.
    fn pause(&self, dir: &str) -> String {
        format!("\\builtin read -t 0.005 <>{dir}/p")
    }

    /// Returns how to ask for the status of a job that is gone, so that the user can
    /// still ask for it. `Unavailable` is for a shell that only has its list of jobs.
    fn status_of(&self, pid: &str) -> Status;

    /// Whether it supports `<(command)`.
    fn substitutes_processes(&self) -> bool {
        true
    }

    /// Has it do what a script of ours says.
    fn perform(&self, path: &str, calls: BuiltinCalls) -> String {
        format!("{} {path}", calls.source)
    }

    // Signals (see shell.rs).

    /// Returns a signal whose trap (ours) ends the run, for a shell that reacts to SIGINT
    /// only if its child died of it.
    fn stop_signal(&self) -> Option<(i32, &'static str)> {
        None
    }

    /// Returns a signal, with its name, whose trap (ours) removes the user's trap on
    /// SIGINT and then interrupts the shell.
    fn halt_signal(&self) -> (i32, &'static str);

    /// Returns the text of that trap. It leaves a listing for the keeper, which restores
    /// the user's trap.
    fn halt_trap(&self, dir: &str, prefix: &str) -> String;

    /// Whether that trap interrupts the shell in every case.
    fn halts_by_itself(&self) -> bool {
        true
    }

    /// Whether `$?` is 0 after a loop of builtins was interrupted.
    fn forgets_interrupts(&self) -> bool {
        false
    }

    /// Whether an interrupt under `set -e` ends it without running a trap.
    fn ends_at_interrupts(&self) -> bool {
        false
    }

    /// Whether only the end of its jobs ends a `wait`.
    fn waits_for_jobs(&self) -> bool {
        false
    }

    /// Whether it gives its children the limits that it knows of.
    fn keeps_limits(&self) -> bool {
        false
    }

    /// Whether sourcing hides a DEBUG trap, and restores it.
    fn hides_debug_trap(&self) -> bool {
        false
    }

    /// Whether the text of a trap is shown when it runs, under `set -v`.
    fn shows_traps(&self) -> bool {
        false
    }

    // Captures (see captures.rs).

    /// Returns a line that makes a fork of the shell write the state to `x<run>` and
    /// report it; the shell itself is free again at once. The fork has one of our files
    /// at descriptor 9, which distinguishes it from a job of the user.
    fn capture(&self, dir: &str, as_of: RunNo) -> String;

    /// Returns the text of the EXIT trap: it captures to `final`, and waits. Under
    /// `set -e` its failure must not become the shell's.
    fn exit_trap(&self, dir: &str) -> String;

    /// Does the same if the user has an EXIT trap, given as it reads in a listing, as one
    /// quoted word: it is no longer listed when it runs. Under a guard, our `trap` is
    /// removed first, because it does not belong to the user's state.
    fn last_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String;

    /// Does the same before the user's trap, which may call `exit` and leave us no other
    /// time. It leaves `$?` unchanged and no trace; `&&` keeps `set -e` from treating
    /// that as a failure.
    fn early_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String;

    /// Returns the section of a capture in which the traps are listed.
    fn traps_section(&self) -> usize {
        0
    }

    /// Interprets a capture.
    fn interpret(&self, bytes: &[u8]) -> Option<Interpreted>;

    // An EXIT trap in the run that sets it (see guard.rs).

    /// Whether there is a hook that runs after the user's EXIT trap.
    fn has_exit_hook(&self) -> bool {
        false
    }

    /// What a text does that shows a guard.
    fn guard_revealing_words(&self) -> &'static [&'static str];

    /// Whether a guard would be seen for another reason.
    fn shows_guard(&self, flags: &str, text: &[u8]) -> bool;

    /// Returns the guard's script, for a shell whose user has this EXIT trap at first.
    fn guard_script(&self, dir: &str, users: Option<&str>) -> String;

    /// Installs a guard, unless the user has something in that place.
    fn guard(&self, dir: &str) -> String;

    /// Removes the guard, if it is still there. On the left of `||`, because of `set -e`.
    fn unguard(&self) -> &'static str;

    // Terminals (see terminal.rs).

    /// How a shell with that name comes by job control.
    fn job_control(&self, program: Option<&str>) -> TerminalSetup;

    /// A script that sets the user's trap on SIGHUP aside around some commands,
    /// and the words behind the script's path.
    fn without_hangups(&self, dir: &str, commands: &str, calls: BuiltinCalls) -> (String, String) {
        let (prefix, source) = (calls.prefix, calls.source);
        let script =
            format!("{prefix}trap >|{dir}/k;{commands};{prefix}trap - HUP;{source} {dir}/k\n");
        (script, String::new())
    }
}

/// Returns assignments as words in front of a command.
pub(super) fn assignments(variables: &BTreeMap<String, String>) -> String {
    let mut words = String::new();
    for (name, value) in variables {
        let _ = write!(words, "{name}={} ", quote(value));
    }
    words
}
