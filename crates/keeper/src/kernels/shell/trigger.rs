//! The lines that make a shell run a text.

use super::dialect::{Dialect, ZSH_SURE};
use super::voice::{self, Voice};
use super::{Form, Order, Shell, Stdin, mentions, quote};
use sessile_protocol::RunNo;
use std::fmt::Write;
use std::io;

impl Shell {
    pub(super) fn ready_line(&self, voice: Voice) -> String {
        format!("{} \"ready - $-\" >{}/s", voice.echo, self.dir)
    }

    pub(super) fn report_line(&self, run: RunNo, voice: Voice) -> String {
        format!("{} \"r {run} $? $-\" >{}/s", voice.echo, self.dir)
    }

    pub(super) fn done_line(&self, run: RunNo, voice: Voice) -> String {
        format!("{} \"d {run}\" >{}/s", voice.echo, self.dir)
    }

    /// The lines that make the shell run what lies in `c`.
    pub(super) fn trigger(
        &self,
        order: &Order<'_>,
        form: Form,
        prelude: &str,
    ) -> io::Result<String> {
        let (dir, prefix) = (&self.dir, self.voice.prefix);
        let stdin = match order.stdin {
            Stdin::Bytes(_) | Stdin::Open | Stdin::Empty if order.terminal.is_some() => {
                format!("<>{}", order.terminal.map_or("", |terminal| terminal.path))
            }
            Stdin::Bytes(_) | Stdin::Open => format!("<{dir}/i"),
            // Read and write, which tells a run's own empty stdin from that of
            // a background job (see processes::is_asynchronous).
            Stdin::Empty => "<>/dev/null".to_owned(),
        };
        let env = self.dialect.environment(order.env, self.voice);
        // On the left of `||` it sets off neither `set -e` nor an ERR trap.
        let status = self.last_status().map(|status| status + " || ").unwrap_or_default();
        let source = format!("{}{status}{} {dir}/c {stdin}", env.before, env.source);
        let (voice, questions) = match self.probe {
            Some(_) => (self.voice.certain(), voice::questions(self.dialect, dir)?),
            None => (self.voice, String::new()),
        };
        let report = self.report_line(order.run, voice) + &env.after;
        let done = self.done_line(order.run, voice);
        let streams = match order.terminal {
            Some(terminal) => format!(">{0} 2>{0}", terminal.path),
            None => format!(">{dir}/o 2>{dir}/e"),
        };
        let (exec, reopen, sure) = (self.exec(), self.reopen(), self.sure());
        // Line editing would take its next line from the terminal.
        let shielded = |source: String| match (self.dialect, order.terminal) {
            (Dialect::Zsh, Some(_)) => {
                format!("{{ {source}; }} always {{ {prefix}unsetopt zle; }}")
            }
            (Dialect::Bash | Dialect::Posix | Dialect::Zsh, _) => source,
        };
        Ok(match form {
            // A text that moves descriptors about may have closed the copies
            // that the shell keeps of its own streams during a redirection.
            Form::Redirected => {
                let mut after = String::new();
                if mentions(order.text, "exec") {
                    let _ = write!(after, ";{reopen}");
                }
                if self.probe.is_some() {
                    let _ = write!(after, "\n{questions}{}{done}", self.list_traps(order));
                } else if self.looks_at_traps(order.text) {
                    let _ = write!(after, ";{}{done}", self.list_traps(order));
                }
                let source = shielded(format!("{source} {streams}"));
                format!("{prelude}{source}\n{report}{after}\n")
            }
            // In one line, so that no prompt comes between. The second line
            // is for the case that the first was aborted.
            Form::Replaced => format!(
                "{prelude}{exec} {streams}{sure};{source};{report};{exec} >/dev/null 2>&1{sure}\n\
                 {report};{reopen}\n{questions}{}{done}\n",
                self.list_traps(order),
                report = self.untraced(&report),
                source = shielded(source),
            ),
        })
    }

    /// What a text has to begin with to find what the last one left, and what
    /// has to be turned off before, so that it is not seen.
    pub(super) fn first_words(&self, form: Form, text: &[u8]) -> (String, Vec<u8>) {
        let prefix = self.voice.prefix;
        let debug_trap = match (&self.debug_trap, self.dialect) {
            // Sourcing hides a DEBUG trap of bash's from the sourced text, and
            // zsh's was taken away because it would see our lines.
            (Some(trap), Dialect::Bash | Dialect::Zsh) => {
                format!("{prefix}trap -- {} DEBUG;", quote(trap))
            }
            (Some(_), Dialect::Posix) | (None, _) => String::new(),
        };
        // Tracing is off around the text where it would show our words, or not
        // show the user's: zsh writes them to where stderr was before a
        // redirection.
        let is_around = form == Form::Replaced || self.dialect == Dialect::Zsh;
        let traces = self.flags.contains('x') && (is_around || !debug_trap.is_empty());
        let first = if traces { self.tracing(&debug_trap) } else { debug_trap };
        // A line is shown when it is read, with what is ours in front of it.
        // In bash the lines that follow would be missing in turn.
        let shows = self.flags.contains('v') && self.dialect == Dialect::Zsh && !first.is_empty();
        let off = match (traces, shows) {
            (true, true) => "set +xv",
            (true, false) => "set +x",
            (false, true) => "set +v",
            (false, false) => return (String::new(), first.into_bytes()),
        };
        let off = format!("{prefix}{off}\n");
        if !shows {
            return (off, first.into_bytes());
        }
        let mut lines = text.splitn(2, |b| *b == b'\n');
        let mut words = format!("{prefix}print -rnu2 -- ").into_bytes();
        words.extend(quote_bytes(lines.next().unwrap_or_default()));
        // Not as it is: the lines of the text would be counted from the second.
        words.extend(lines.next().map_or(&b""[..], |_| br"$'\n'"));
        words.extend(format!(";{prefix}set -v;{first}").into_bytes());
        (off, words)
    }

    /// A failed last run is still failed: a command that has its status.
    fn last_status(&self) -> Option<String> {
        let is_failed = self.status != 0 && !self.flags.contains('e');
        is_failed.then(|| format!("{} {}/q", self.voice.source, self.dir))
    }

    /// Turns tracing on, does something else without a trace, and leaves `$?`
    /// as it was where that is nothing.
    fn tracing(&self, also: &str) -> String {
        let prefix = self.voice.prefix;
        let status = self.last_status().map(|status| status + ";").unwrap_or_default();
        if status.is_empty() && also.is_empty() {
            return format!("{prefix}set -x;");
        }
        format!("{{ {prefix}set -x;{status}{also} }} 2>/dev/null;")
    }

    /// `exec` for redirections, which `builtin exec` would undo.
    pub(super) fn exec(&self) -> String {
        match self.dialect {
            Dialect::Bash | Dialect::Zsh => "\\exec".to_owned(),
            Dialect::Posix => format!("{}exec", self.voice.prefix),
        }
    }

    /// The report while the run's stderr is the shell's: it turns tracing off,
    /// which is on again when the run is done.
    pub(super) fn untraced(&self, report: &str) -> String {
        format!("{{ {report};{}set +x; }} 2>/dev/null", self.voice.prefix)
    }

    /// Gives the shell its own streams back.
    pub(super) fn reopen(&self) -> String {
        format!("{} <{}/t >/dev/null 2>&1{}", self.exec(), self.dir, self.sure())
    }

    /// What follows our `exec`s.
    fn sure(&self) -> String {
        match self.dialect {
            Dialect::Zsh => self.dialect.spoken(ZSH_SURE.to_owned(), self.voice),
            Dialect::Bash | Dialect::Posix => String::new(),
        }
    }
}

/// Any bytes as one word of any POSIX shell.
fn quote_bytes(text: &[u8]) -> Vec<u8> {
    let inner = text.split(|b| *b == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
    [b"'", &inner[..], b"'"].concat()
}
