//! What differs between shells. Each has a folder of its own, with its scripts,
//! its listings, and its quirks.

use super::builtin_calls::BuiltinCalls;
use super::terminal::TerminalSetup;
use super::view::Interpreted;
use super::{bash, dash, quote, zsh};
use sessile_protocol::{Language, RunNo};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

/// Whether a script of ours stands in for `trap` (see guard.rs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    On,
    Off,
}

/// What goes around a run that has variables of its own.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) before: String,
    /// The sourcing command.
    pub(super) source: String,
    pub(super) after: String,
}

/// What a text has to be told before it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstWords<'a> {
    pub(super) words: &'a str,
    /// Tracing is off so far, and among the words.
    pub(super) traces: bool,
    /// The same, for `set -v`.
    pub(super) shows: bool,
    pub(super) prefix: &'a str,
}

/// How a shell tells the status of a job that is gone.
#[derive(Debug)]
pub(super) enum Status {
    /// By the status of a command.
    Asked {
        wait: String,
    },
    /// The same, if it has not forgotten it.
    AskedIfKnown {
        is_known: String,
        wait: String,
    },
    Untold,
}

pub(super) fn of(language: Language) -> &'static dyn Dialect {
    match language {
        Language::Bash => &bash::Bash,
        Language::Zsh => &zsh::Zsh,
        Language::Sh | Language::Python | Language::Node => &dash::Dash,
    }
}

/// The words of one shell. What has a default here is different in few of them.
pub(super) trait Dialect: Debug + Sync {
    // How it is started.

    fn name(&self) -> &'static str;

    fn arguments(&self) -> &'static [&'static str];

    /// The scripts that it reads, by what they are called in its directory.
    fn files(&self) -> &'static [(&'static str, &'static str)];

    /// The first lines: a prompt that shows nothing, though it is not empty
    /// (rc files take an empty one for a shell that is not interactive).
    fn boot(&self) -> &'static str;

    /// Has it take over a state.
    fn restore(&self, dir: &str) -> String {
        let source = self.sources()[0].1;
        format!("{source} {dir}/restore </dev/null >/dev/null 2>&1")
    }

    // Which words of ours work in it (see builtin_calls.rs).

    /// Prefixes with a way to source, from the best on.
    fn sources(&self) -> &'static [(&'static str, &'static str)];

    /// Ways to write a line.
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

    /// What follows such an `exec`.
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

    /// The first words of a text, which nobody is to see or to count.
    fn first_words(&self, first: FirstWords<'_>, text: &[u8]) -> Vec<u8>;

    /// Sets the user's DEBUG trap by that command, and leaves `$?` as the last
    /// run did, with commands that the trap does not see.
    fn debug_trap(&self, set: &str, status: i32) -> Option<String>;

    /// A script that does nothing but have a status. No alias or function of the
    /// user's gets in between.
    fn returning(&self, status: i32, calls: BuiltinCalls) -> String {
        match calls.prefix {
            // Then `return` may be anything.
            "\\" => format!("/bin/sh -c 'exit {status}'\n"),
            prefix => format!("{prefix}return {status}\n"),
        }
    }

    /// A command with that status, where a script would be the shell's end.
    fn failing(&self, _status: i32, _flags: &str) -> Option<String> {
        None
    }

    /// Whether it has no way to list its functions.
    fn hides_functions(&self) -> bool {
        false
    }

    // Jobs (see background.rs).

    /// A few milliseconds in which nothing is done.
    fn pause(&self, dir: &str) -> String {
        format!("\\builtin read -t 0.005 <>{dir}/p")
    }

    /// How the status of a job that is gone is found out, so that the user can
    /// ask again. Untold is for a shell that only has its list of jobs.
    fn status_of(&self, pid: &str) -> Status;

    /// Whether it knows `<(command)`.
    fn substitutes_processes(&self) -> bool {
        true
    }

    /// Has it do what a script of ours says.
    fn perform(&self, path: &str, calls: BuiltinCalls) -> String {
        format!("{} {path}", calls.source)
    }

    // Signals (see shell.rs).

    /// A signal whose trap of ours ends the run, for a shell that takes a SIGINT
    /// seriously only if its child died of it.
    fn stop_signal(&self) -> Option<(i32, &'static str)> {
        None
    }

    /// A signal whose trap of ours takes a trap of the user's on SIGINT away,
    /// and then interrupts the shell, with its name.
    fn halt_signal(&self) -> (i32, &'static str);

    /// The text of that trap. It leaves a listing for the keeper, which puts the
    /// user's trap back.
    fn halt_trap(&self, dir: &str, prefix: &str) -> String;

    /// Whether that trap interrupts the shell in every case.
    fn halts_by_itself(&self) -> bool {
        true
    }

    /// `$?` is 0 after a loop of builtins was interrupted.
    fn forgets_interrupts(&self) -> bool {
        false
    }

    /// An interrupt under `set -e` is its end, and no trap runs.
    fn ends_at_interrupts(&self) -> bool {
        false
    }

    /// Nothing but the end of its jobs ends a `wait`.
    fn waits_for_jobs(&self) -> bool {
        false
    }

    /// It gives its children the limits that it knows of.
    fn keeps_limits(&self) -> bool {
        false
    }

    /// Whether sourcing hides a DEBUG trap, and brings it back.
    fn hides_debug_trap(&self) -> bool {
        false
    }

    /// Whether the text of a trap is shown when it runs, under `set -v`.
    fn shows_traps(&self) -> bool {
        false
    }

    // Captures (see captures.rs).

    /// A line that has the state written to `x<run>` by a fork of the shell,
    /// which reports it; the shell itself is free again at once. A fork has a
    /// file of ours at descriptor 9, by which it is told from a job of the user's.
    fn capture(&self, dir: &str, as_of: RunNo) -> String;

    /// What the EXIT trap does: the same, to `final`, and waited for. Under
    /// `set -e` its failure must not become the shell's.
    fn exit_trap(&self, dir: &str) -> String;

    /// The same where the user has an EXIT trap, which reads so in a listing, as
    /// one quoted word: it is not listed any more when it runs. Under a guard
    /// there is something of ours that is nothing of the user's.
    fn last_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String;

    /// The same before the user's trap, which may call `exit` and leave us no
    /// other time. It goes through with `$?` unchanged and without a trace; `&&`
    /// keeps `set -e` from taking that for a failure of ours.
    fn early_capture(&self, dir: &str, listing: Option<&str>, guard: Guard) -> String;

    /// The section of a capture in which the traps are listed.
    fn traps_section(&self) -> usize {
        0
    }

    /// Makes sense of a capture.
    fn interpret(&self, bytes: &[u8]) -> Option<Interpreted>;

    // An EXIT trap in the run that sets it (see guard.rs).

    /// Whether there is a hook for what comes after the user's EXIT trap.
    fn has_exit_hook(&self) -> bool {
        false
    }

    /// What a text does that shows a guard.
    fn guard_revealing_words(&self) -> &'static [&'static str];

    /// Whether a guard would be seen for another reason.
    fn shows_guard(&self, flags: &str, text: &[u8]) -> bool;

    /// The guard's script, for a shell whose user has this EXIT trap at first.
    fn guard_script(&self, dir: &str, users: Option<&str>) -> String;

    /// Puts a guard in place, unless the user has something there.
    fn guard(&self, dir: &str) -> String;

    /// Takes it away again, if it is still there. On the left of `||`, because
    /// of `set -e`.
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

/// As words in front of a command.
pub(super) fn assignments(variables: &BTreeMap<String, String>) -> String {
    let mut words = String::new();
    for (name, value) in variables {
        let _ = write!(words, "{name}={} ", quote(value));
    }
    words
}
