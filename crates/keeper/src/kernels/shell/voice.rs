//! The words that our own lines to a shell begin with.
//!
//! Users may redefine or disable any builtin, even `builtin` itself. So there are several
//! ways to express the same, and a shell in which the first does not work any more is
//! asked which of them do.

use super::dialect::Dialect;
use crate::kernels::mentions;
use crate::scratch::write_file;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Writes its argument to stdout whatever has happened to the shell's builtins. A program
/// takes a millisecond, so this is only used in doubt.
pub(super) const SURE_ECHO: &str = "/bin/sh -c 'echo \"$0\"'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Voice {
    /// Bypasses aliases and functions: goes in front of a builtin's name.
    pub(super) prefix: &'static str,
    /// Sources a file.
    pub(super) source: &'static str,
    /// Writes a line.
    pub(super) echo: &'static str,
}

/// Answers of a shell so far about what works in it.
#[derive(Debug, Default)]
pub(super) struct Probe {
    source: Option<usize>,
    echo: Option<usize>,
}

impl Voice {
    /// Returns the words for a shell in which the user has these functions.
    pub(super) fn among(dialect: &dyn Dialect, functions: &[&str]) -> Self {
        let is_free = |words: &str| {
            let first = words.trim_start_matches('\\').split(' ').next();
            first.is_none_or(|word| !functions.contains(&word))
        };
        let source = dialect.sources().iter().find(|(_, source)| is_free(source));
        let (prefix, source) = source.copied().unwrap_or(dialect.sources()[0]);
        let echo = dialect.echoes().iter().copied().find(|echo| is_free(echo));
        Self { prefix, source, echo: echo.unwrap_or(SURE_ECHO) }
    }

    /// Translates one of our scripts to the words that work.
    pub(super) fn speak(self, script: String) -> String {
        match self.prefix {
            "\\builtin " => script,
            prefix => script.replace("\\builtin ", prefix),
        }
    }

    /// Returns the same with an echo that always works.
    pub(super) fn certain(self) -> Self {
        Self { echo: SURE_ECHO, ..self }
    }
}

/// Whether a text is likely to make our words unusable.
pub(super) fn is_doubtful(dialect: &dyn Dialect, text: &[u8]) -> bool {
    dialect.doubtful().iter().any(|word| mentions(text, word))
}

/// Returns lines that try everything. `!`, because a failure means nothing here, not even
/// under `set -e`.
pub(super) fn questions(dialect: &dyn Dialect, dir: &str) -> io::Result<String> {
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
    pub(super) fn hear(&mut self, kind: &str, number: usize) {
        match kind {
            "y" => self.source.get_or_insert(number),
            "e" => self.echo.get_or_insert(number),
            _ => return,
        };
    }

    pub(super) fn outcome(&self, dialect: &dyn Dialect) -> Option<Voice> {
        let (prefix, source) = *dialect.sources().get(self.source?)?;
        let echo = *dialect.echoes().get(self.echo?)?;
        Some(Voice { prefix, source, echo })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{bash::Bash, dash::Dash};
    use super::*;

    #[test]
    fn words_of_the_users_are_avoided() {
        let voice = Voice::among(&Bash, &[]);
        assert_eq!((voice.source, voice.echo), ("\\builtin .", "\\builtin echo"));
        let voice = Voice::among(&Bash, &["builtin", "."]);
        assert_eq!((voice.source, voice.echo), ("\\command .", "\\command echo"));
        let voice = Voice::among(&Dash, &["command", "echo"]);
        assert_eq!((voice.source, voice.echo), ("\\.", SURE_ECHO));
    }

    #[test]
    fn the_first_answers_of_a_probe_count() {
        let mut probe = Probe::default();
        assert_eq!(probe.outcome(&Bash), None);
        for (kind, number) in [("y", 2), ("y", 4), ("hijacked", 0), ("e", 1), ("e", 3)] {
            probe.hear(kind, number);
        }
        let voice = probe.outcome(&Bash).unwrap();
        assert_eq!((voice.prefix, voice.echo), ("\\command ", "\\command echo"));
    }
}
