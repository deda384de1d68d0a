//! Jobs that a run leaves in the background, and how they end.
//!
//! Only the shell knows how a job ended: it is the parent, and has reaped it. Each report
//! of a run contains `$!`. If that is new, the shell is asked about all jobs that the run
//! may have started, after a moment in which a job that fails at once has failed. Shells
//! do not list jobs that are over, but they answer for a pid that was a job's, and these
//! pids lie between the last `$!` and this one. Jobs that live on are remembered, and
//! asked about in later runs. Runs that start no job, in a shell without one, have no
//! extra cost.
//!
//! The questions must leave everything as it was: a later `wait` of the user gets the
//! same status. dash forgets the jobs that it has listed as over, so it is not asked once
//! the user keeps their pids.

use super::super::{JobEnded, Order, Report, mentions};
use super::dialect::Status;
use super::job_list::{self, ListedJob, State};
use super::job_name::{self, Names};
use super::{Secret, Shell};
use crate::scratch::{make_fifo, read_left, write_file};
use rustix::process::Pid;
use sessile_protocol::RunNo;
use std::fmt::Write;
use std::io;

/// Maximum number of jobs that are remembered.
const WATCHED: usize = 32;

/// Maximum number of pids that a shell is asked about after a run, 20 us each. The pids
/// of jobs that are started one after the other are adjacent.
const ASKED: u32 = 200;

#[derive(Debug, Default)]
pub(super) struct Background {
    /// `$!`, as it was last reported.
    last: Option<u32>,
    /// Jobs that lived when they were last asked about.
    watched: Vec<WatchedJob>,
    /// Reports to put before the next ones.
    pub(super) reports: Vec<Report>,
    pub(super) functions: Functions,
    /// The user has stored a job's pid, or uses `%1`.
    keeps_numbers: bool,
    /// The user has disowned jobs: bash answers 0 for these, however they ended.
    disowns: bool,
}

#[derive(Debug)]
struct WatchedJob {
    pid: u32,
    run: RunNo,
    command: Option<String>,
}

/// Questions to a shell about jobs of earlier runs, around a text.
#[derive(Debug, Default)]
pub(super) struct JobQuestions {
    /// Asked before the text, about those that are gone.
    pub(super) before: String,
    /// Asked after the text, about those that lived when it began. Empty if nothing is
    /// asked.
    pub(super) after: String,
}

/// Whether functions of the user start jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Functions {
    #[default]
    StartNothing,
    StartJobs,
    /// Some may start processes that are no jobs, but also appear in `$!`.
    Substitute,
}

impl Functions {
    /// Returns the value for a state that a new shell takes over.
    pub(super) fn of_restored(text: &[u8]) -> Self {
        Self::of_text(substitutes(text), starts_jobs(text))
    }

    fn of_text(substitutes: bool, starts_jobs: bool) -> Self {
        match (substitutes, starts_jobs) {
            (true, _) => Self::Substitute,
            (false, true) => Self::StartJobs,
            (false, false) => Self::StartNothing,
        }
    }
}

/// The jobs that a text starts, as far as it shows.
#[derive(Clone, Debug, Default)]
pub(super) enum StartedJobs {
    #[default]
    Nothing,
    /// The shell reports them itself, at its terminal.
    Shown,
    /// At most one.
    One(Names),
    /// Any number, all newer than this process.
    Many { names: Names, floor: Option<u32> },
}

/// Pending questions about jobs after the current run.
#[derive(Debug, Default)]
pub(super) enum PendingQuestions {
    #[default]
    Nothing,
    /// About the state of these jobs.
    About(Span),
    /// The same, and everything else about the run has been reported.
    AboutAtLast(Span),
}

/// The range of pids of a run's jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// All pids are larger than this one, if it is known.
    after: Option<u32>,
    /// `$!`
    last: u32,
}

impl Span {
    fn is_empty(self) -> bool {
        self.after == Some(self.last)
    }

    fn has(self, pid: u32) -> bool {
        self.after.is_none_or(|after| pid > after) && pid <= self.last
    }

    /// Returns the pids that a shell is asked about.
    fn asked(self) -> std::ops::RangeInclusive<u32> {
        let first = self.after.map_or(2, |after| after + 1);
        first.max(self.last.saturating_sub(ASKED - 1))..=self.last
    }
}

impl Shell {
    /// Returns the questions around a text. Each job is checked once, so that one which
    /// ends meanwhile is asked about either before or after. With a terminal the shell
    /// reports its jobs itself.
    pub(super) fn job_questions(&self, order: &Order<'_>, secret: &Secret) -> JobQuestions {
        if self.lists_jobs() {
            return JobQuestions::default();
        }
        let watched = self.background.watched.iter().map(|job| job.pid);
        let (living, gone): (Vec<u32>, Vec<u32>) = watched.partition(|pid| is_alive(*pid));
        let ask = |pids: Vec<u32>| -> String {
            let ask = |pid: u32| self.about_job(&pid.to_string(), secret) + "\n";
            pids.into_iter().map(ask).collect()
        };
        let before = ask(gone);
        if order.terminal.is_some() {
            return JobQuestions { before, after: String::new() };
        }
        JobQuestions { before, after: ask(living) }
    }

    /// Whether the shell is asked for a list that contains the status of jobs that are
    /// over, which it then forgets.
    fn lists_jobs(&self) -> bool {
        match self.dialect.status_of("") {
            Status::Asked { .. } | Status::AskedIfKnown { .. } => false,
            Status::Unavailable => !self.background.keeps_numbers,
        }
    }

    /// Returns the jobs that a text may start. With a terminal the shell reports them
    /// itself.
    pub(super) fn starts(&mut self, order: &Order<'_>) -> StartedJobs {
        let text = order.text;
        let starts = starts_jobs(text);
        let substitutes = self.dialect.substitutes_processes() && substitutes(text);
        self.background.keeps_numbers |= keeps_numbers(text);
        self.background.disowns |= mentions(text, "disown");
        if defines_functions(text) {
            let found = Functions::of_text(substitutes, starts);
            self.background.functions = self.background.functions.max(found);
        }
        if order.terminal.is_some() {
            return StartedJobs::Shown;
        }
        let is_doubtful = substitutes || self.background.functions == Functions::Substitute;
        let names = if starts { job_name::names(text) } else { Names::default() };
        let calls = self.background.functions == Functions::StartJobs
            || (!self.dialect.substitutes_processes() && sources_files(text));
        match (starts, is_doubtful) {
            (true, true) => StartedJobs::One(names),
            (true, false) if names.is_only_one() => StartedJobs::One(names),
            (true, false) => StartedJobs::Many { names, floor: order.floor.read() },
            (false, false) if calls => StartedJobs::Many { names, floor: order.floor.read() },
            (false, _) => StartedJobs::Nothing,
        }
    }

    /// Handles the `$!` of a run's report: asks about jobs, if the run has started any,
    /// or if a list is the only way to know of earlier ones.
    pub(super) fn ask_about_jobs(&mut self, last: &str) -> PendingQuestions {
        let known = self.background.last;
        let Some(last) = last.parse().ok().filter(|pid: &u32| *pid != 0) else {
            return PendingQuestions::Nothing;
        };
        self.background.last = Some(last);
        let Some(current) = &self.current else { return PendingQuestions::Nothing };
        let is_new = Some(last) != known;
        let awaits_list = self.lists_jobs() && !self.background.watched.is_empty();
        let after = match &current.starts {
            StartedJobs::Shown => return PendingQuestions::Nothing,
            StartedJobs::One(_) if is_new => Some(last - 1),
            // A pid may be smaller than an earlier one: pids wrap around.
            StartedJobs::Many { floor, .. } if is_new => {
                [known, *floor].into_iter().flatten().filter(|pid| *pid < last).max()
            }
            StartedJobs::Nothing | StartedJobs::One(_) | StartedJobs::Many { .. }
                if awaits_list =>
            {
                Some(last)
            }
            StartedJobs::Nothing | StartedJobs::One(_) | StartedJobs::Many { .. } => {
                return PendingQuestions::Nothing;
            }
        };
        let span = Span { after, last };
        let secret = current.secret.clone();
        match self.send_questions(span, &secret) {
            Ok(()) => PendingQuestions::About(span),
            Err(_) => PendingQuestions::Nothing,
        }
    }

    fn send_questions(&self, span: Span, secret: &Secret) -> io::Result<()> {
        let (dir, prefix) = (&self.dir, self.calls.prefix);
        write_file(&self.path("a"), self.questions(span).as_bytes())?;
        let perform = self.dialect.perform(&format!("{dir}/a"), self.calls);
        let answered = format!("{} \"k {secret}\" >{dir}/s", self.calls.echo);
        self.send(&format!("{perform} >|{dir}/w/j 2>/dev/null || {prefix}:\n{answered}\n"))
    }

    /// Returns a script that reports the state of the jobs among some processes (see
    /// job_list.rs).
    fn questions(&self, span: Span) -> String {
        let list = format!("{0}jobs -l || {0}:\n", self.calls.prefix);
        if span.is_empty() {
            return list;
        }
        let last = span.last;
        let (dir, prefix, echo) = (&self.dir, self.calls.prefix, self.calls.echo);
        // Without it the question is only asked a little earlier.
        let pause = match make_fifo(&self.path("p")) {
            Ok(()) => self.calls.rewrite(self.dialect.pause(dir)),
            Err(_) => format!("{prefix}:"),
        };
        // The fork has one of our files at descriptor 9, which distinguishes it from a
        // job of the user.
        let mut script = format!(
            "(for _ in 1 2 3 4; do {prefix}kill -0 {last} || {prefix}break; {pause} || {prefix}:; done) \
             9<{dir}/capture || {prefix}:\n"
        );
        let each = || span.asked().map(|pid| self.about_number(pid, last)).collect::<String>();
        match self.dialect.status_of("") {
            Status::Asked { .. } => script += &(list + &each()),
            Status::AskedIfKnown { .. } => {
                let _ = write!(script, "{list}(\n{}) 9<{dir}/capture || {prefix}:\n", each());
            }
            Status::Unavailable if self.lists_jobs() => script += &list,
            Status::Unavailable => {
                let _ = writeln!(
                    script,
                    "if {prefix}kill -0 {last}; then {echo} '= {last} -'; else {echo} '= {last} ?'; fi"
                );
            }
        }
        script
    }

    /// Returns a command that reports how a process ended that may have been a job.
    fn about_number(&self, pid: u32, last: u32) -> String {
        let (dir, prefix, echo) = (&self.dir, self.calls.prefix, self.calls.echo);
        let unknown =
            if pid == last { format!("{echo} '= {pid} ?'") } else { format!("{prefix}:") };
        format!(
            "if {prefix}kill -0 {pid}; then {prefix}:; else {prefix}wait {pid} 2>|{dir}/w/k && {prefix}:; \
             case $? in 127) if {prefix}test -s {dir}/w/k; then {unknown}; else {echo} '= {pid} 127'; \
             fi;; *) {echo} \"= {pid} $?\";; esac; fi\n"
        )
    }

    /// Handles the shell's answer about the jobs of the current run.
    pub(super) fn jobs_answered(&mut self, span: Span) {
        let Some(current) = &self.current else { return };
        let run = current.run;
        let found = self.listed_jobs();
        let is_new = |job: &ListedJob| span.has(job.pid) && self.watched_at(job.pid).is_none();
        let new: Vec<ListedJob> = found.iter().copied().filter(is_new).collect();
        let pids: Vec<u32> = new.iter().map(|job| job.pid).collect();
        let commands = match &current.starts {
            StartedJobs::Nothing | StartedJobs::Shown => vec![None; pids.len()],
            StartedJobs::One(names) | StartedJobs::Many { names, .. } => names.of(&pids, span.last),
        };
        self.tell_watched(&found);
        for (ListedJob { pid, state }, command) in new.into_iter().zip(commands) {
            let job = WatchedJob { pid, run, command };
            match state {
                State::Ended(exit_code) => self.tell_job(job, exit_code),
                State::Lives => {
                    self.background.watched.truncate(WATCHED - 1);
                    self.background.watched.insert(0, job);
                }
            }
        }
    }

    fn listed_jobs(&self) -> Vec<ListedJob> {
        job_list::read(&read_left(&self.left("w/j")).unwrap_or_default())
    }

    /// Reports the jobs of earlier runs that have ended.
    fn tell_watched(&mut self, found: &[ListedJob]) {
        for ListedJob { pid, state } in found {
            if let (State::Ended(exit_code), Some(at)) = (state, self.watched_at(*pid)) {
                let job = self.background.watched.remove(at);
                self.tell_job(job, *exit_code);
            }
        }
    }

    fn tell_job(&mut self, job: WatchedJob, exit_code: Option<i32>) {
        let WatchedJob { pid, run, command } = job;
        let exit_code = exit_code.filter(|code| *code != 0 || !self.background.disowns);
        let ended = JobEnded { pid, run, command, exit_code };
        self.background.reports.push(Report::JobEnded(ended));
    }

    fn job_status_line(&self, pid: &str, status: &str, secret: &Secret) -> String {
        format!("{} \"j {secret} {pid} {status}\" >{}/s", self.calls.echo, self.dir)
    }

    /// Returns a command that reports how a job ended, if it did.
    fn about_job(&self, pid: &str, secret: &Secret) -> String {
        let (dir, prefix) = (&self.dir, self.calls.prefix);
        let say = |status: &str| self.job_status_line(pid, status, secret);
        let status = say("$?");
        let ended = match self.dialect.status_of(pid) {
            // On the left of `&&` it triggers neither `set -e` nor an ERR trap. A job
            // that the user has waited for is forgotten, and has the same status as a
            // missing program; but then there is an error message as well.
            Status::Asked { wait } => format!(
                "{wait} 2>|{dir}/w/k && {prefix}:; case $? in 127) if {prefix}test -s {dir}/w/k; \
                 then {}; else {}; fi;; *) {status};; esac",
                say("?"),
                say("127")
            ),
            Status::AskedIfKnown { is_known, wait } => {
                format!("if {is_known}; then {wait} && {prefix}:; {status}; else {}; fi", say("?"))
            }
            Status::Unavailable => say("?"),
        };
        let ended = self.calls.rewrite(ended);
        format!("if {prefix}kill -0 {pid} 2>/dev/null; then {prefix}:; else {ended}; fi")
    }

    /// Handles the shell's report of how a job ended.
    pub(super) fn job_told(&mut self, pid: &str, status: &str) -> Option<Report> {
        let job = self.background.watched.remove(self.watched_at(pid.parse().ok()?)?);
        self.tell_job(job, status.parse().ok());
        None
    }

    fn watched_at(&self, pid: u32) -> Option<usize> {
        self.background.watched.iter().position(|job| job.pid == pid)
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Returns where a text may have the operator that starts a job: an `&` that is no part
/// of another operator.
fn operators(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let at = |at: usize| text.get(at).copied();
    text.iter().enumerate().filter(|(_, byte)| **byte == b'&').map(|(i, _)| i).filter(move |i| {
        let before = i.checked_sub(1).and_then(at);
        !matches!(before, Some(b'&' | b'<' | b'>' | b'|'))
            && !matches!(at(i + 1), Some(b'&' | b'>'))
    })
}

fn starts_jobs(text: &[u8]) -> bool {
    operators(text).next().is_some()
}

fn defines_functions(text: &[u8]) -> bool {
    mentions(text, "()") || mentions(text, "function ")
}

/// Whether a text starts processes for their output or input. Nothing distinguishes these
/// from jobs: bash has them in `$!` as well, and answers for them.
fn substitutes(text: &[u8]) -> bool {
    ["<(", ">(", "coproc"].iter().any(|word| mentions(text, word))
}

/// Whether a text sources files, which may start jobs.
fn sources_files(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let commands = text.split(['\n', ';', '&', '|', '{', '(']).map(str::trim_start);
    commands.into_iter().any(|command| command.starts_with(". ") || command.starts_with("source "))
}

/// Whether the user may ask for jobs later.
fn keeps_numbers(text: &[u8]) -> bool {
    ["=$!", "=\"$!", "=${!", "=\"${!", "jobs", "wait"].iter().any(|word| mentions(text, word))
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
