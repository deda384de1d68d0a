//! Jobs that a text leaves in the background, and what became of them.
//!
//! Only the shell knows how a job ended: it is its parent, and has reaped it. So
//! after a text that may have started one, the shell is asked about `$!`; if that
//! is new and lives, after a moment in which what fails at once has failed. One
//! that lives on is remembered, and asked about once it is gone. Runs without
//! `&` in their text, in a shell without such a job, pay nothing.
//!
//! The question must leave everything as it was: a later `wait` of the user's
//! gets the same status.

use super::super::{JobEnded, Order, Report};
use super::dialect::Status;
use super::{Secret, Shell};
use crate::scratch::make_fifo;
use rustix::process::Pid;
use sessile_protocol::RunNo;

/// Jobs that are remembered at the most.
const WATCHED: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Background {
    /// `$!`, as far as it is known.
    last: Option<u32>,
    /// Those that lived when they were last asked about.
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    pid: u32,
    run: RunNo,
    command: Option<String>,
}

/// What a shell is asked about jobs around a text.
#[derive(Debug)]
pub(super) struct JobQuestions {
    /// Before it, about those that are gone.
    pub(super) before: String,
    /// After it, about the last one that it has started, and about those of earlier
    /// runs that lived when it began. Empty where nothing is asked.
    pub(super) after: String,
}

impl Shell {
    /// Each job is looked at once, so that one which ends meanwhile is asked about
    /// either before or after. With a terminal the shell tells of its jobs itself.
    pub(super) fn job_questions(&self, order: &Order<'_>, secret: &Secret) -> JobQuestions {
        let watched = self.background.watched.iter().map(|job| job.pid);
        let (living, gone): (Vec<u32>, Vec<u32>) = watched.partition(|pid| is_alive(*pid));
        let ask = |pids: Vec<u32>| -> String {
            let ask = |pid: u32| self.about_job(&pid.to_string(), "\\:", secret) + "\n";
            pids.into_iter().map(ask).collect()
        };
        let before = ask(gone);
        if order.terminal.is_some() {
            return JobQuestions { before, after: String::new() };
        }
        let mut after = ask(living);
        if starts_jobs(order.text) {
            after += &self.last_job_question(secret);
        }
        JobQuestions { before, after }
    }

    fn last_job_question(&self, secret: &Secret) -> String {
        let (dir, prefix) = (&self.dir, self.voice.prefix);
        // Without it the question is only asked a little earlier.
        let pause = match make_fifo(&self.path("p")) {
            Ok(()) => self.voice.speak(self.dialect.pause(dir)),
            Err(_) => "\\:".to_owned(),
        };
        let last = self.background.last.map(|pid| format!("{pid}|")).unwrap_or_default();
        // A fork has a file of ours at descriptor 9, by which it is told from a
        // job of the user's.
        let moment = format!(
            "(for _ in 1 2 3 4; do {prefix}kill -0 $! || {prefix}break; {pause} || \\:; done) \
             9<{dir}/capture 2>/dev/null || \\:"
        );
        let lives = self.say_of_job("$!", "-", secret);
        let ask = self.about_job("$!", &lives, secret);
        format!("case $! in {last}'') ;; *) {moment}; {ask};; esac\n")
    }

    fn say_of_job(&self, pid: &str, status: &str, secret: &Secret) -> String {
        format!("{} \"j {secret} {pid} {status}\" >{}/s", self.voice.echo, self.dir)
    }

    /// A command that says how a job ended, or does something else while it lives.
    fn about_job(&self, pid: &str, lives: &str, secret: &Secret) -> String {
        let (dir, prefix) = (&self.dir, self.voice.prefix);
        let say = |status: &str| self.say_of_job(pid, status, secret);
        let status = say("$?");
        let ended = match self.dialect.status_of(pid) {
            // On the left of `&&` it sets off neither `set -e` nor an ERR trap. A job
            // that the user has waited for is forgotten, and answered like a program
            // that is not there; then there is a complaint, too.
            Status::Asked { wait } => format!(
                "{wait} 2>|{dir}/w/k && \\:; case $? in 127) if {prefix}test -s {dir}/w/k; \
                 then {}; else {}; fi;; *) {status};; esac",
                say("?"),
                say("127")
            ),
            Status::AskedIfKnown { is_known, wait } => {
                format!("if {is_known}; then {wait} && \\:; {status}; else {}; fi", say("?"))
            }
            Status::Untold => say("?"),
        };
        let ended = self.voice.speak(ended);
        format!("if {prefix}kill -0 {pid} 2>/dev/null; then {lives}; else {ended}; fi")
    }

    /// The shell has said how a job is.
    pub(super) fn job_told(&mut self, pid: &str, status: &str) -> Option<Report> {
        let pid: u32 = pid.parse().ok()?;
        let current = self.current.as_ref()?;
        let known = self.background.watched.iter().position(|job| job.pid == pid);
        if status == "-" {
            if known.is_none() {
                self.background.watched.truncate(WATCHED - 1);
                let (run, command) = (current.run, current.job.clone());
                self.background.watched.insert(0, Watched { pid, run, command });
                self.background.last = Some(pid);
            }
            return None;
        }
        let job = match known {
            Some(at) => self.background.watched.remove(at),
            None => Watched { pid, run: current.run, command: current.job.clone() },
        };
        if known.is_none() {
            self.background.last = Some(pid);
        }
        let Watched { pid, run, command } = job;
        Some(Report::JobEnded(JobEnded { pid, run, command, exit_code: status.parse().ok() }))
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Where a text may have the operator that starts a job: an `&` that is no part
/// of another one.
fn operators(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let at = |at: usize| text.get(at).copied();
    text.iter().enumerate().filter(|(_, byte)| **byte == b'&').map(|(i, _)| i).filter(move |i| {
        let before = i.checked_sub(1).and_then(at);
        !matches!(before, Some(b'&' | b'<' | b'>' | b'|'))
            && !matches!(at(i + 1), Some(b'&' | b'>'))
    })
}

pub(super) fn starts_jobs(text: &[u8]) -> bool {
    operators(text).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_told_from_others_with_the_same_sign() {
        let starts = |text: &str| starts_jobs(text.as_bytes());
        for text in ["a &", "a&", "a & b", "a && b & c", "a >x 2>&1 &", "(a)&\nb", "a&;b"] {
            assert!(starts(text), "{text}");
        }
        for text in ["", "a && b", "a 2>&1", "a &>x", "a >&2", "a <&3", "a |& b", "a&&b"] {
            assert!(!starts(text), "{text}");
        }
    }
}
