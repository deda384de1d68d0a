//! Interprets reports, and checks whether they come from the shell.

use super::super::{Ended, Report};
use super::background::PendingQuestions;
use super::{Current, Form, Shell};
use sessile_protocol::RunNo;

impl Shell {
    /// Interprets the bytes that have come.
    pub(super) fn understand_all(&mut self, bytes: &[u8]) -> Vec<Report> {
        let mut reports = Vec::new();
        for line in self.lines.push(bytes) {
            let own = self.own_part(&line);
            if own.len() < line.len() {
                reports.push(Report::Stray);
            }
            match std::str::from_utf8(own) {
                Ok(own) => {
                    let report = self.understand(own);
                    reports.append(&mut self.background.reports);
                    reports.extend(report);
                }
                Err(_) => reports.push(Report::Stray),
            }
        }
        reports
    }

    /// Returns the shell's own part of a line: a report may follow what another process
    /// has written, without a line end.
    fn own_part<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        /// Length of a report's kind.
        const BEFORE: usize = "r ".len();
        let secret = self.current.as_ref().map(|current| &current.secret);
        let at = secret.and_then(|secret| secret.position_in(line)).unwrap_or(BEFORE);
        &line[at.saturating_sub(BEFORE)..]
    }

    fn understand(&mut self, line: &str) -> Option<Report> {
        let mut words = line.split(' ');
        let (kind, word) = (words.next()?, words.next());
        let number = || word?.parse().ok().map(RunNo);
        match kind {
            "ready" if word != Some(self.start.as_str()) => Some(Report::Stray),
            "ready" => {
                words.next_back().unwrap_or_default().clone_into(&mut self.flags);
                self.use_probed_calls();
                let users = self.inherited_exit_trap.take();
                let line = self.arm(users);
                self.send(&line).ok()?;
                Some(Report::Ready)
            }
            "r" | "d" | "j" | "k" => {
                let word = word.unwrap_or_default();
                if self.former.as_ref().is_some_and(|former| former.as_str() == word) {
                    return None;
                }
                let is_own = |current: &Current| current.secret.as_str() == word;
                if !self.current.as_ref().is_some_and(is_own) {
                    return Some(Report::Stray);
                }
                match kind {
                    "d" => self.finish_report(),
                    "j" => self.job_told(words.next()?, words.next()?),
                    "k" => self.answered_about_jobs(),
                    _ => {
                        let status = words.next()?.parse().ok()?;
                        let flags = words.next().unwrap_or_default();
                        self.reported(status, flags, words.next().unwrap_or_default())
                    }
                }
            }
            "c" => self.captured(number()?),
            "g" => Some(Report::LetGo),
            "y" | "e" => {
                let probe = self.probe.as_mut()?;
                probe.record(kind, usize::try_from(number()?.0).ok()?);
                None
            }
            // Questions to a silent shell may produce any output.
            _ if self.probe.is_some() => None,
            _ => Some(Report::Stray),
        }
    }

    /// Handles the report that the text is done. The shell must have read the line that
    /// orders the report: zsh reads it only then, and the others do if it is a long one.
    fn reported(&mut self, status: i32, flags: &str, last_job: &str) -> Option<Report> {
        let unread = rustix::io::ioctl_fionread(&self.orders).unwrap_or(0);
        if unread > self.unread.get() as u64 {
            return Some(Report::Stray);
        }
        let current = self.current.as_mut()?;
        if current.reported.is_none() {
            current.reported = Some(status);
            flags.clone_into(&mut self.flags);
            self.jobs.hide(&mut self.flags);
            let questions = self.ask_about_jobs(last_job);
            self.current.as_mut()?.pending_questions = questions;
        }
        let current = self.current.as_ref()?;
        match current.pending_questions {
            PendingQuestions::Nothing if !current.awaits_done => self.done(),
            PendingQuestions::Nothing
            | PendingQuestions::About(_)
            | PendingQuestions::AboutAtLast(_) => None,
        }
    }

    /// The shell has said all that it was to say, but for what was asked meanwhile.
    fn finish_report(&mut self) -> Option<Report> {
        let current = self.current.as_mut()?;
        match current.pending_questions {
            PendingQuestions::Nothing => self.done(),
            PendingQuestions::About(last) | PendingQuestions::AboutAtLast(last) => {
                current.pending_questions = PendingQuestions::AboutAtLast(last);
                None
            }
        }
    }

    fn answered_about_jobs(&mut self) -> Option<Report> {
        let current = self.current.as_mut()?;
        let questions = std::mem::take(&mut current.pending_questions);
        let awaits_done = current.awaits_done;
        match questions {
            PendingQuestions::Nothing => None,
            PendingQuestions::About(last) => {
                self.jobs_answered(last);
                if awaits_done { None } else { self.done() }
            }
            PendingQuestions::AboutAtLast(last) => {
                self.jobs_answered(last);
                self.done()
            }
        }
    }

    fn done(&mut self) -> Option<Report> {
        let current = self.current.take_if(|current| current.reported.is_some())?;
        let (run, mut status) = (current.run, current.reported?);
        self.former = Some(current.secret);
        self.use_probed_calls();
        let is_forgotten = status == 0 || self.is_halted;
        if current.pressed && is_forgotten && self.dialect.forgets_interrupts() {
            status = 128 + libc::SIGINT;
        }
        if let Ok(line) = self.restore_interrupt_trap() {
            let _ = self.send(&line);
        }
        if current.form == Form::Replaced && self.flags.contains('x') {
            let _ = self.send(&format!("{}set -x\n", self.calls.prefix));
        }
        if let Some(line) = self.jobs.end(&self.dir, self.calls) {
            let _ = self.send(&line);
        }
        self.keep_status(status);
        if current.awaits_done {
            self.learn_traps(run);
        }
        Some(Report::Ended(Ended {
            run,
            exit_code: status,
            value: None,
            error: None,
            notes: Vec::new(),
        }))
    }
}
