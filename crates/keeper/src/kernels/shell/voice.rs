//! The words that our own lines to a shell begin with.
//!
//! Users may redefine or disable any builtin, `builtin` itself included. So
//! there are several ways to say the same, and a shell in which the first does
//! not work any more is asked which of them do.

use super::dialect::Dialect;
use crate::kernels::mentions;
use crate::scratch::write_file;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Writes its argument to stdout whatever has become of the shell's builtins.
/// A program takes a millisecond, so that this is for times of doubt.
const SURE_ECHO: &str = "/bin/sh -c 'echo \"$0\"'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Voice {
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

/// Prefixes with a way to source, from the best on.
fn sources(dialect: Dialect) -> &'static [(&'static str, &'static str)] {
    match dialect {
        Dialect::Bash => &[
            ("\\builtin ", "\\builtin ."),
            ("\\builtin ", "\\builtin source"),
            ("\\command ", "\\command ."),
            ("\\command ", "\\command source"),
            ("\\", "\\."),
            ("\\", "\\source"),
        ],
        // `command` is for programs there.
        Dialect::Zsh => &[
            ("\\builtin ", "\\builtin ."),
            ("\\builtin ", "\\builtin source"),
            ("\\", "\\."),
            ("\\", "\\source"),
        ],
        Dialect::Posix => &[("\\command ", "\\command ."), ("\\", "\\.")],
    }
}

fn echoes(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Bash => &["\\builtin echo", "\\command echo", "\\echo", SURE_ECHO],
        Dialect::Zsh => &["\\builtin echo", "\\echo", SURE_ECHO],
        Dialect::Posix => &["\\command echo", "\\echo", SURE_ECHO],
    }
}

impl Voice {
    /// For a shell in which the user has these functions.
    pub(super) fn among(dialect: Dialect, functions: &[&str]) -> Self {
        let is_free = |words: &str| {
            let first = words.trim_start_matches('\\').split(' ').next();
            first.is_none_or(|word| !functions.contains(&word))
        };
        let source = sources(dialect).iter().find(|(_, source)| is_free(source));
        let (prefix, source) = source.copied().unwrap_or(sources(dialect)[0]);
        let echo = echoes(dialect).iter().copied().find(|echo| is_free(echo));
        Self { prefix, source, echo: echo.unwrap_or(SURE_ECHO) }
    }

    /// The same, but sure to be heard.
    pub(super) fn certain(self) -> Self {
        Self { echo: SURE_ECHO, ..self }
    }
}

/// Whether a text may well take our words away.
pub(super) fn is_doubtful(dialect: Dialect, text: &[u8]) -> bool {
    let words: &[&str] = match dialect {
        Dialect::Bash => &["enable", "builtin()", "builtin ()", "function builtin"],
        Dialect::Zsh => &["disable", "builtin()", "builtin ()", "function builtin"],
        Dialect::Posix => &["command()", "command ()"],
    };
    words.iter().any(|word| mentions(text, word))
}

/// Lines that try everything. `!`, because a failure means nothing here, not
/// even under `set -e`.
pub(super) fn questions(dialect: Dialect, dir: &str) -> io::Result<String> {
    let mut lines = String::new();
    for (at, (_, source)) in sources(dialect).iter().enumerate() {
        let says = format!("{SURE_ECHO} 'y {at}' >{dir}/s\n");
        write_file(&Path::new(dir).join(format!("y{at}")), says.as_bytes())?;
        let _ = writeln!(lines, "! {source} {dir}/y{at}");
    }
    for (at, echo) in echoes(dialect).iter().enumerate() {
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

    pub(super) fn outcome(&self, dialect: Dialect) -> Option<Voice> {
        let (prefix, source) = *sources(dialect).get(self.source?)?;
        let echo = *echoes(dialect).get(self.echo?)?;
        Some(Voice { prefix, source, echo })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_users_are_avoided() {
        let voice = Voice::among(Dialect::Bash, &[]);
        assert_eq!((voice.source, voice.echo), ("\\builtin .", "\\builtin echo"));
        let voice = Voice::among(Dialect::Bash, &["builtin", "."]);
        assert_eq!((voice.source, voice.echo), ("\\command .", "\\command echo"));
        let voice = Voice::among(Dialect::Posix, &["command", "echo"]);
        assert_eq!((voice.source, voice.echo), ("\\.", SURE_ECHO));
    }

    #[test]
    fn the_first_answers_of_a_probe_count() {
        let mut probe = Probe::default();
        assert_eq!(probe.outcome(Dialect::Bash), None);
        for (kind, number) in [("y", 2), ("y", 4), ("hijacked", 0), ("e", 1), ("e", 3)] {
            probe.hear(kind, number);
        }
        let voice = probe.outcome(Dialect::Bash).unwrap();
        assert_eq!((voice.prefix, voice.echo), ("\\command ", "\\command echo"));
    }
}
