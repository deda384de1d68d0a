//! The lines that make a shell run a text.

use super::builtin_calls::{self, BuiltinCalls};
use super::dialect::FirstWords;
use super::{Form, Order, Secret, Shell, Stdin, mentions, quote};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The lines that make a shell run a text.
#[derive(Debug)]
pub(super) struct Trigger {
    pub(super) lines: String,
    /// How many bytes of them come after the line that reports.
    pub(super) behind: usize,
    /// The shell's last report.
    pub(super) ends_with: EndsWith,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndsWith {
    /// The report of the status.
    Report,
    /// A line after it, because questions are asked in between.
    Done,
}

impl Trigger {
    /// Combines the lines before the one that reports with those from it on.
    fn new(before: String, from_report: &str, ends_with: EndsWith) -> Self {
        let end = from_report.find('\n').map_or(from_report.len(), |end| end + 1);
        Self { lines: before + from_report, behind: from_report.len() - end, ends_with }
    }
}

pub(super) fn done_line(secret: &Secret, calls: BuiltinCalls, dir: &str) -> String {
    format!("{} \"d {secret}\" >{dir}/s", calls.echo)
}

impl Shell {
    pub(super) fn ready_line(&self, calls: BuiltinCalls) -> String {
        format!("{} \"ready {} $-\" >{}/s", calls.echo, self.start, self.dir)
    }

    pub(super) fn report_line(&self, secret: &Secret, calls: BuiltinCalls) -> String {
        format!("{} \"r {secret} $? $- ${{!-}}\" >{}/s", calls.echo, self.dir)
    }

    pub(super) fn done_line(&self, secret: &Secret, calls: BuiltinCalls) -> String {
        done_line(secret, calls, &self.dir)
    }

    /// Returns a line that still reports when the text has removed the shell's directory. The
    /// report of most runs does without, to be short: the shell can be asked for it again if
    /// nothing came after it (`prompt`).
    fn for_sure(&self, line: &str, calls: BuiltinCalls) -> String {
        match &self.spare {
            // `$_` is the last word of the command before, which was not carried out.
            Some(way) => format!("{line} || {} \"$_\" >{way}", calls.echo),
            None => line.to_owned(),
        }
    }

    /// Returns the lines that make the shell run the contents of `c`, and answer the
    /// questions about jobs after it.
    pub(super) fn trigger(
        &self,
        order: &Order<'_>,
        form: Form,
        prelude: &str,
        job: &str,
        secret: &Secret,
    ) -> io::Result<Trigger> {
        let dir = &self.dir;
        let stdin = match order.stdin {
            Stdin::Bytes(_) | Stdin::Open | Stdin::Empty if order.terminal.is_some() => {
                format!("<>{}", order.terminal.map_or("", |terminal| terminal.path))
            }
            Stdin::Bytes(_) | Stdin::Open => format!("<{dir}/i"),
            // Read and write, which distinguishes a run's own empty stdin from that of a
            // background job (see processes::is_asynchronous).
            Stdin::Empty => "<>/dev/null".to_owned(),
        };
        let env = self.dialect.environment(order.env, self.calls);
        // On the left of `||` it sets off neither `set -e` nor an ERR trap.
        let status = self.last_status().map(|status| status + " || ").unwrap_or_default();
        let sourcing = format!("{}{status}{} {dir}/c {stdin}", env.before, env.source);
        let (calls, questions) = match self.probe {
            Some(_) => {
                (self.calls.with_sure_echo(), builtin_calls::probe_lines(self.dialect, dir)?)
            }
            None => (self.calls, String::new()),
        };
        let report = self.report_line(secret, calls);
        let report_for_sure = self.for_sure(&report, calls) + &env.after;
        let report = report + &env.after;
        let done = self.for_sure(&self.done_line(secret, calls), calls);
        let streams = match order.terminal {
            Some(terminal) => format!(">{0} 2>{0}", terminal.path),
            None => {
                let [stdout, stderr] = order.output.map(Path::display);
                format!(">{stdout} 2>{stderr}")
            }
        };
        let (exec, reopen, sure) = (self.exec(), self.reopen(), self.sure());
        let shows_next = form == Form::Replaced && self.is_verbose(order.text);
        let source = |source: String| {
            self.dialect.protect_source(source, order.terminal.is_some(), shows_next, self.calls)
        };
        Ok(match form {
            // A text that moves descriptors may have closed the copies that the shell
            // keeps of its own streams during a redirection.
            Form::Redirected => {
                let mut after = String::new();
                let mut ends_with = EndsWith::Done;
                if mentions(order.text, "exec") {
                    let _ = write!(after, ";{reopen}");
                }
                if self.probe.is_some() || !job.is_empty() {
                    let _ = write!(after, "\n{questions}{job}{}{done}", self.list_traps(order));
                } else if self.looks_at_traps(order.text) {
                    let _ = write!(after, ";{}{done}", self.list_traps(order));
                } else {
                    ends_with = EndsWith::Report;
                }
                let source = source(format!("{sourcing} {streams}"));
                let before = format!("{prelude}{source}\n");
                let report = match ends_with {
                    EndsWith::Report if order.terminal.is_none() => report,
                    EndsWith::Report | EndsWith::Done => report_for_sure,
                };
                Trigger::new(before, &format!("{report}{after}\n"), ends_with)
            }
            // In one line, so that no prompt comes between. The second line is for the
            // case that the first was aborted.
            Form::Replaced => {
                let (report, source) = (self.untraced(&report_for_sure), source(sourcing));
                Trigger::new(
                    format!("{prelude}{exec} {streams}{sure};{source};"),
                    &format!(
                        "{report};{exec} >/dev/null 2>&1{sure}\n\
                         {report};{reopen}\n{questions}{job}{}{done}\n",
                        self.list_traps(order)
                    ),
                    EndsWith::Done,
                )
            }
        })
    }

    /// Returns what has to be turned off before a text, so that it is not seen, and the
    /// first words of the text, which restore what the last one left.
    pub(super) fn first_words(&self, form: Form, text: &[u8]) -> (String, Vec<u8>) {
        let prefix = self.calls.prefix;
        let debug_trap = self.set_debug_trap();
        // Tracing is off around the text if it would show our words, or not show the
        // user's: zsh writes them to where stderr was before a redirection.
        let is_around = form == Form::Replaced || self.dialect.traces_around();
        let traces = self.flags.contains('x') && (is_around || debug_trap.is_some());
        let mut words = String::new();
        if traces {
            let _ = write!(words, "{prefix}set -x;");
        }
        match (debug_trap, self.last_status()) {
            (Some(debug_trap), _) => words.push_str(&debug_trap),
            // `&&` keeps `set -e` and ERR traps from treating it as a failure.
            (None, Some(status)) if traces => {
                let _ = write!(words, "{status} && {prefix}:;");
            }
            (None, _) => {}
        }
        if words.is_empty() {
            return (String::new(), Vec::new());
        }
        // A line is shown when it is read, including our words in front of it.
        let shows = self.flags.contains('v');
        let off = match (traces, shows) {
            (true, true) => format!("{prefix}set +xv\n"),
            (true, false) => format!("{prefix}set +x\n"),
            (false, true) => format!("{prefix}set +v\n"),
            (false, false) => String::new(),
        };
        let first = FirstWords { words: &words, traces, shows, prefix };
        (off, self.dialect.first_words(first, text))
    }

    /// Returns the words that set the user's DEBUG trap.
    fn set_debug_trap(&self) -> Option<String> {
        let trap = self.debug_trap.as_deref().map(quote)?;
        let set = format!("{}trap -- {trap} DEBUG", self.calls.prefix);
        self.dialect.debug_trap(&set, self.status, self.calls.prefix)
    }

    /// Returns a command with the status of the last run, if that failed, so that `$?` is
    /// preserved.
    fn last_status(&self) -> Option<String> {
        if self.status == 0 {
            return None;
        }
        // Under `set -v` its line would be shown.
        let script = || format!("{} {}/q 2>/dev/null", self.calls.source, self.dir);
        Some(self.dialect.failing(self.status, &self.flags).unwrap_or_else(script))
    }

    /// Returns `exec` for redirections.
    pub(super) fn exec(&self) -> String {
        self.dialect.exec(self.calls)
    }

    /// Returns the report for when the run's stderr is the shell's: it turns tracing off,
    /// which is on again when the run is done.
    pub(super) fn untraced(&self, report: &str) -> String {
        format!("{{ {report};{}set +x; }} 2>/dev/null", self.calls.prefix)
    }

    /// Returns the words that give the shell its own streams back.
    pub(super) fn reopen(&self) -> String {
        format!("{} <{} >/dev/null 2>&1{}", self.exec(), self.orders_path, self.sure())
    }

    /// Returns what follows our `exec`s.
    fn sure(&self) -> String {
        self.calls.rewrite(self.dialect.sure().to_owned())
    }
}
