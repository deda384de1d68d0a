//! How our own lines call a shell's builtins.
//!
//! Users may redefine or disable any builtin, `builtin` itself included. So each
//! call has several forms, and a shell in which the first one fails is asked which
//! of them still work.

use super::Shell;
use super::background::PendingQuestions;
use super::dialect::Dialect;
use super::traps::ExitTrap;
use super::trigger::done_line;
use crate::kernels::mentions;
use crate::scratch::write_file;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Writes its argument to stdout whatever has become of the shell's builtins.
/// It starts a program, which takes a millisecond, so it is used only when in doubt.
pub(super) const SURE_ECHO: &str = "/bin/sh -c 'echo \"$0\"'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BuiltinCalls {
    /// Gets past aliases and functions: goes in front of a builtin's name.
    pub(super) prefix: &'static str,
    /// Sources a file.
    pub(super) source: &'static str,
    /// Writes a line.
    pub(super) echo: &'static str,
}

/// What a shell has answered so far about what works in it.
#[derive(Debug, Default)]
pub(super) struct Probe {
    source: Option<usize>,
    echo: Option<usize>,
}

impl BuiltinCalls {
    /// For a shell in which the user has these functions.
    pub(super) fn avoiding(dialect: &dyn Dialect, functions: &[&str]) -> Self {
        let is_free = |words: &str| {
            let first = words.trim_start_matches('\\').split(' ').next();
            first.is_none_or(|word| !functions.contains(&word))
        };
        let source = dialect.sources().iter().find(|(_, source)| is_free(source));
        let (prefix, source) = source.copied().unwrap_or(dialect.sources()[0]);
        let echo = dialect.echoes().iter().copied().find(|echo| is_free(echo));
        Self { prefix, source, echo: echo.unwrap_or(SURE_ECHO) }
    }

    /// A script of ours with the prefix that works.
    pub(super) fn rewrite(self, script: String) -> String {
        match self.prefix {
            "\\builtin " => script,
            prefix => script.replace("\\builtin ", prefix),
        }
    }

    /// The same with an echo that cannot be redefined.
    pub(super) fn with_sure_echo(self) -> Self {
        Self { echo: SURE_ECHO, ..self }
    }
}

/// Whether a text may redefine or disable a builtin that we call.
pub(super) fn may_redefine(dialect: &dyn Dialect, text: &[u8]) -> bool {
    dialect.redefining_words().iter().any(|word| mentions(text, word))
}

/// Lines that try everything. `!`, because a failure means nothing here, not
/// even under `set -e`.
pub(super) fn probe_lines(dialect: &dyn Dialect, dir: &str) -> io::Result<String> {
    let mut lines = String::new();
    for (at, (_, source)) in dialect.sources().iter().enumerate() {
        let says = format!("{SURE_ECHO} 'y {at}' >{dir}/s\n");
        write_file(&Path::new(dir).join(format!("y{at}")), says.as_bytes())?;
        let _ = writeln!(lines, "! {source} {dir}/y{at}");
    }
    for (at, echo) in dialect.echoes().iter().enumerate() {
        let _ = writeln!(lines, "! {echo} 'e {at}' >{dir}/s");
    }
    Ok(lines)
}

impl Probe {
    /// Takes an answer: the first of each kind is the best.
    pub(super) fn record(&mut self, kind: &str, number: usize) {
        match kind {
            "y" => self.source.get_or_insert(number),
            "e" => self.echo.get_or_insert(number),
            _ => return,
        };
    }

    pub(super) fn outcome(&self, dialect: &dyn Dialect) -> Option<BuiltinCalls> {
        let (prefix, source) = *dialect.sources().get(self.source?)?;
        let echo = *dialect.echoes().get(self.echo?)?;
        Some(BuiltinCalls { prefix, source, echo })
    }
}

impl Shell {
    /// Takes up what works, if that was asked.
    pub(super) fn use_probed_calls(&mut self) {
        let outcome = self.probe.take().and_then(|probe| probe.outcome(self.dialect));
        let Some(calls) = outcome.filter(|calls| *calls != self.calls) else { return };
        self.calls = calls;
        let _ = self.install();
        if let ExitTrap::Armed { users } = &mut self.exit_trap {
            let users = users.take();
            let line = self.arm(users);
            let _ = self.send(&line);
        }
    }

    /// Asks for a report that is missing, in a way that works whatever has become of
    /// the builtins, and which of our calls still do.
    pub(super) fn ask_for_report(&mut self) -> io::Result<()> {
        let calls = self.calls.with_sure_echo();
        let questions = probe_lines(self.dialect, &self.dir)?;
        self.probe = Some(Probe::default());
        let Some(current) = &mut self.current else {
            return self.send(&format!("{questions}{}\n", self.ready_line(calls)));
        };
        current.awaits_done = true;
        current.pending_questions = PendingQuestions::Nothing;
        // The line that was to report expanded its words, whatever it did with
        // them, and `$_` is the last one: the very report.
        let report = format!("{} \"$_\" >{}/s", calls.echo, self.dir);
        let done = done_line(&current.secret, calls, &self.dir);
        self.send(&format!("{report}\n{questions}{done}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{bash::Bash, dash::Dash};
    use super::*;

    #[test]
    fn words_of_the_users_are_avoided() {
        let calls = BuiltinCalls::avoiding(&Bash, &[]);
        assert_eq!((calls.source, calls.echo), ("\\builtin .", "\\builtin echo"));
        let calls = BuiltinCalls::avoiding(&Bash, &["builtin", "."]);
        assert_eq!((calls.source, calls.echo), ("\\command .", "\\command echo"));
        let calls = BuiltinCalls::avoiding(&Dash, &["command", "echo"]);
        assert_eq!((calls.source, calls.echo), ("\\.", SURE_ECHO));
    }

    #[test]
    fn the_first_answers_of_a_probe_count() {
        let mut probe = Probe::default();
        assert_eq!(probe.outcome(&Bash), None);
        for (kind, number) in [("y", 2), ("y", 4), ("hijacked", 0), ("e", 1), ("e", 3)] {
            probe.record(kind, number);
        }
        let calls = probe.outcome(&Bash).unwrap();
        assert_eq!((calls.prefix, calls.echo), ("\\command ", "\\command echo"));
    }
}
