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
        let mut always = Vec::new();
        if self.dialect == Dialect::Zsh && order.terminal.is_some() {
            // Line editing would take its next line from the terminal.
            always.push(format!("{prefix}unsetopt zle"));
        }
        if self.dialect == Dialect::Zsh && form == Form::Replaced && self.is_verbose(order.text) {
            // If the text is aborted, the next line of ours would be shown.
            always.push(format!("{exec} 2>/dev/null{sure}"));
        }
        let shielded = |source: String| match always.is_empty() {
            true => source,
            false => format!("{{ {source}; }} always {{ {}; }}", always.join("; ")),
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
        let debug_trap = self.set_debug_trap();
        // Tracing is off around the text where it would show our words, or not
        // show the user's: zsh writes them to where stderr was before a
        // redirection.
        let is_around = form == Form::Replaced || self.dialect == Dialect::Zsh;
        let traces = self.flags.contains('x') && (is_around || debug_trap.is_some());
        let mut words = String::new();
        if traces {
            let _ = write!(words, "{prefix}set -x;");
        }
        match (debug_trap, self.last_status()) {
            (Some(debug_trap), _) => words.push_str(&debug_trap),
            // `&&` keeps `set -e` and ERR traps from taking it for a failure.
            (None, Some(status)) if traces => {
                let _ = write!(words, "{status} && \\:;");
            }
            (None, _) => {}
        }
        if words.is_empty() {
            return (String::new(), Vec::new());
        }
        // A line is shown when it is read, with what is ours in front of it.
        let shows = self.flags.contains('v');
        let off = match (traces, shows) {
            (true, true) => format!("{prefix}set +xv\n"),
            (true, false) => format!("{prefix}set +x\n"),
            (false, true) => format!("{prefix}set +v\n"),
            (false, false) => String::new(),
        };
        let first = match self.dialect {
            Dialect::Bash if shows => uncounted(&format!("{prefix}set -v;{words}")),
            Dialect::Bash => uncounted(&words),
            // A number too high in messages is less of a fault than words of ours.
            Dialect::Posix if shows => {
                format!("{{ {prefix}set -v;{words} }} 2>/dev/null\n")
            }
            Dialect::Zsh | Dialect::Posix if traces => format!("{{ {words} }} 2>/dev/null;"),
            Dialect::Zsh | Dialect::Posix => words,
        };
        if !shows || self.dialect != Dialect::Zsh {
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

    /// Sets the user's DEBUG trap, and leaves `$?` as the last run did, with
    /// commands that it does not see: sourcing hides bash's from the sourced
    /// text, and zsh's was taken away because it would see our lines.
    fn set_debug_trap(&self) -> Option<String> {
        let trap = self.debug_trap.as_deref().map(quote)?;
        let trap = format!("{}trap -- {trap} DEBUG", self.voice.prefix);
        let fail = format!("/bin/sh -c 'exit {}'", self.status);
        match self.dialect {
            Dialect::Posix => None,
            Dialect::Bash | Dialect::Zsh if self.status == 0 => Some(trap + ";"),
            Dialect::Bash => Some(format!("{trap};( {fail} ) && \\:;")),
            Dialect::Zsh => Some(format!("{trap} && {fail} && \\:;")),
        }
    }

    /// A failed last run is still failed: a command that has its status.
    fn last_status(&self) -> Option<String> {
        match (self.status, self.dialect) {
            (0, _) => None,
            // A sourced `return` would be the end of dash.
            (status, Dialect::Posix) if self.flags.contains('e') => {
                Some(format!("( \\exit {status} )"))
            }
            // Under `set -v` its line would be shown.
            _ => Some(format!("{} {}/q 2>/dev/null", self.voice.source, self.dir)),
        }
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

/// A line of ours that bash does not count, in front of the user's first. A
/// number that is set in a command would be forgotten after it, but not in its
/// redirection. A LINENO of the user's is left alone, be it unset or read-only.
fn uncounted(commands: &str) -> String {
    // Its attributes as digits: none, or `i`, is a multiple of 18.
    let is_users = "36#0${LINENO+${LINENO@a}}%18";
    let zero = format!("${{__sessile_[{is_users}?0:(${{LINENO+LINENO=}}0)]-}}");
    format!("{{ {commands} }} 2>/dev/null\"{zero}\"\n")
}

/// Any bytes as one word of any POSIX shell.
fn quote_bytes(text: &[u8]) -> Vec<u8> {
    let inner = text.split(|b| *b == b'\'').collect::<Vec<_>>().join(&br"'\''"[..]);
    [b"'", &inner[..], b"'"].concat()
}
