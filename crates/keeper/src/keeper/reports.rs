//! Handles the reports of kernels.

use super::live::Force;
use super::resources::Ending;
use super::silence::Remedy;
use super::{Deadline, Keeper};
use crate::kernels::{CopyEvent, Ended, JobEnded, LoadOutcome, Report};
use crate::privacy::{Privacy, REPAIR, Renewal, has_lost_pipe};
use crate::processes::{self, Room};
use rustix::process::{Pid, Signal};
use sessile_protocol::{EndedJob, Language, RunNo};
use sessile_session::operations::Event;
use sessile_session::{Epoch, Input};

/// A kernel's report of its run's end, and the condition of the kernel itself.
#[derive(Debug)]
pub(super) struct RunEnd {
    pub(super) ended: Ended,
    pub(super) room: Room,
}

impl Keeper {
    /// Reads a kernel's reports. Returns false if there were none.
    pub(super) fn read_reports(&mut self, language: Language) -> bool {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return false;
        };
        let Some(n) = live.reports.read(&mut self.output.buffer) else {
            return false;
        };
        let epoch = live.epoch;
        for report in live.kernel.parse_reports(&self.output.buffer[..n]) {
            match report {
                Report::Ready => {
                    if let Some(live) = self.kernels.live.get_mut(&language) {
                        live.has_come_up = true;
                    }
                    self.report_start(Ok(()));
                    self.kernel_is_up(language, epoch);
                }
                Report::Ended(ended) => self.run_ended(language, ended),
                Report::Captured(raw) => {
                    let as_of = raw.as_of();
                    if raw.interpret().is_some_and(|saved| self.save(language, saved)) {
                        self.step(Input::Captured { language, epoch, as_of });
                    }
                    self.captures_done(language);
                    self.save_learns_state(language, as_of);
                }
                Report::NotCaptured => {
                    self.operate(Event::NotCaptured { language });
                    self.captures_done(language);
                }
                Report::LetGo => {
                    if let Some(live) = self.kernels.live.get_mut(&language) {
                        live.hang_up(&self.reactor);
                    }
                }
                Report::Copy(CopyEvent::Up(_)) => {}
                Report::Copy(CopyEvent::Failed { directory, error }) => {
                    self.family.failed_copies.push((directory, error));
                }
                Report::Copy(CopyEvent::Copied { directory, pid }) => {
                    self.expect_copy(pid, directory);
                }
                Report::Wants { question, input } => {
                    self.input_question_answered(language, question, input);
                }
                Report::Dumping { path, writer } => {
                    // The report may name any process.
                    let is_ours = |pid: &Pid| processes::is_below(*pid, rustix::process::getpid());
                    let writer = self.home.process(writer).filter(is_ours);
                    let dumps = self.home.dumps();
                    let news = self.operations.saves.has_writer(language, &path, writer, &dumps);
                    self.operate_all(news);
                }
                Report::Dumped(dumped) => {
                    if !self.image_dumped(language, &dumped) {
                        let dumps = self.home.dumps();
                        let news = self.operations.saves.has_dump(language, *dumped, &dumps);
                        self.operate_all(news);
                    }
                }
                Report::JobEnded(job) => self.job_ended(language, job),
                Report::Loaded(loaded) => self.kernel_has_loaded(language, epoch, *loaded),
                Report::Stray => self.tell_of_stray(language),
            }
        }
        true
    }

    /// Handles the start of a kernel. A kernel that starts from a file reads it before
    /// its first run.
    fn kernel_is_up(&mut self, language: Language, epoch: Epoch) {
        // Before any of the user's code runs. A failure here is ignored: the same check
        // fails again before the first run, which reports it.
        let _ = self.keep_private(language, self.newest_beside());
        let live = self.kernels.live.get_mut(&language).filter(|live| live.epoch == epoch);
        let inheritance = live.and_then(|live| {
            let inheritance = live.inheritance.as_ref()?;
            live.kernel.load(&inheritance.dump, inheritance.cwd.as_deref()).ok()
        });
        match inheritance {
            Some(()) => self.step(Input::Loading { language, epoch }),
            None => self.step(Input::Ready { language, epoch }),
        }
    }

    fn kernel_has_loaded(&mut self, language: Language, epoch: Epoch, loaded: LoadOutcome) {
        let live = self.kernels.live.get_mut(&language).filter(|live| live.epoch == epoch);
        if let Some(inheritance) = live.and_then(|live| live.inheritance.take()) {
            self.home.dumps().take_back(&inheritance.dump);
        }
        if let Some(error) = loaded.error {
            let note = format!("the saved state of {language} could not be loaded: {error}");
            self.add_note(language, None, note);
            // A new process starts without it, and that is told.
            self.step(Input::Stuck { language, epoch });
            return;
        }
        if !loaded.left.is_empty() {
            let named: Vec<String> =
                loaded.left.iter().map(|l| format!("{} ({})", l.name, l.reason)).collect();
            self.add_note(language, None, format!("not carried over: {}", named.join("; ")));
        }
        self.step(Input::Ready { language, epoch });
    }

    fn run_ended(&mut self, language: Language, ended: Ended) {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let is_told = live.withheld.is_some() || live.death.is_some();
        if live.current != Some(ended.run) || is_told {
            return;
        }
        let epoch = live.epoch;
        if live.force != Force::None && language.is_shell() {
            // A program that the shell was just starting may have missed the SIGINT. The
            // shell has moved on, and would wait for that program together with the next
            // one. A program that ignores SIGINT has not missed it: no shell moves on
            // while it waits for such a program.
            let mut missed = live.awaited();
            missed.retain(|pid| !processes::may_be_asynchronous(*pid));
            processes::signal(&missed, Signal::KILL);
        }
        let room = live.make_room();
        if let Room::Raised { to, .. } = room {
            let _ = live.kernel.got_room(to);
        }
        self.look_for_lost_directory(language, &ended);
        let ending = Ending::Status(ended.exit_code);
        let watch = self.tell_of_limits(language, Some(ended.run), ending, ended.error.as_ref());
        let end = RunEnd { ended, room };
        match watch {
            None => self.end_run(language, end),
            Some(watch) => {
                self.step(Input::Over { language, epoch, run: end.ended.run });
                self.delay_end(language, watch, end);
            }
        }
    }

    pub(super) fn end_run(&mut self, language: Language, end: RunEnd) {
        let RunEnd { ended, room } = end;
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let (epoch, pid) = (live.epoch, live.pid);
        if let Some(run) = self.runs.get_mut(&ended.run) {
            run.value = ended.value;
            run.error = ended.error;
            run.notes.extend(ended.notes);
            run.notes.extend(about(room, language));
        }
        if matches!(room, Room::Lacking(_)) {
            // The run is over when the process is: no other one may get it.
            live.verdict = Some(ended.exit_code);
            return processes::signal(&[pid], Signal::KILL);
        }
        self.finish_output(language);
        self.step(Input::Reported { language, epoch, run: ended.run, exit_code: ended.exit_code });
    }

    /// Records the end of a background job, for the answer of the current run.
    fn job_ended(&mut self, language: Language, job: JobEnded) {
        let JobEnded { pid, run, command, exit_code } = job;
        let current = self.kernels.live.get(&language).and_then(|live| live.current);
        if let Some(current) = current.and_then(|number| self.runs.get_mut(&number)) {
            current.jobs_ended.push(EndedJob { pid, run, command, exit_code });
        }
    }

    /// Schedules a check for kernels that owe a report.
    pub(super) fn expect_reports(&mut self) {
        let due = self.now() + self.kernels.first_look();
        self.deadlines.set(Deadline::Silence, due);
    }

    /// Checks the kernels that owe a report.
    pub(super) fn look_for_silence(&mut self) {
        let owing_reports = self.kernels.owing_reports();
        if owing_reports.is_empty() {
            return;
        }
        for language in &owing_reports {
            // A shell that could not report because of it is asked again below.
            let run = self.kernels.live.get(language).and_then(|live| live.current);
            let _ = self.renew_directory(*language, run);
        }
        let silent: Vec<Language> =
            owing_reports.into_iter().filter(|l| self.is_silent(*l)).collect();
        for language in &silent {
            self.handle_silence(*language);
        }
        let due = self.now() + self.kernels.next_look(!silent.is_empty());
        self.deadlines.set(Deadline::Silence, due);
    }

    /// Whether a kernel waits for orders without having reported the end of its work.
    fn is_silent(&mut self, language: Language) -> bool {
        let Some(live) = self.kernels.live.get(&language) else {
            return false;
        };
        let (epoch, run) = (live.epoch, live.current);
        if !live.kernel.awaits_orders(live.pid) {
            return false;
        }
        // Reports that it sent before it began to wait may not have been read yet.
        while self.read_reports(language) {}
        let live = self.kernels.live.get(&language);
        // A report may have been answered with another order.
        live.is_some_and(|live| {
            live.epoch == epoch
                && live.current == run
                && live.owes_report()
                && live.kernel.awaits_orders(live.pid)
        })
    }

    fn handle_silence(&mut self, language: Language) {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let (epoch, run) = (live.epoch, live.current);
        match live.handle_silence(language) {
            Remedy::Asked(None) => {}
            Remedy::Asked(Some(note)) => self.add_note(language, run, note),
            Remedy::GiveUp(why) => {
                self.add_note(language, run, why);
                self.step(Input::Stuck { language, epoch });
            }
        }
    }

    /// Gives a kernel new pipes if it has lost them. A report without the run's secret
    /// may come from the kernel itself: if the user's code has closed its descriptors, it
    /// has lost the pipe with the secret.
    fn renew_lost_pipes(&mut self, language: Language) {
        let beside = self.beside_kernels(self.newest_beside());
        let live = self.kernels.live.get_mut(&language);
        if let (Some(live), Some(confined)) = (live, &self.home.confined)
            && live.privacy.is_some()
            && has_lost_pipe(&mut *live.kernel)
        {
            let (kernel, renewal) = ((&mut *live.kernel, live.pid), Renewal::AfterLoss(REPAIR));
            if Privacy::ensure(&mut live.privacy, kernel, confined, beside, renewal).is_ok() {
                live.kernel.ask_again();
            }
        }
    }

    /// Notes, once per run, that another process has written to the kernel's report pipe.
    fn tell_of_stray(&mut self, language: Language) {
        self.renew_lost_pipes(language);
        let run = self.kernels.live.get(&language).and_then(|live| live.current);
        let note = format!(
            "a report that {language} did not make was dropped: something in the session has \
             written to Sessile's own channel"
        );
        self.add_note(language, run, note);
    }

    /// Adds a note to the given run, or to the next one, unless it has the same already.
    pub(super) fn add_note(&mut self, language: Language, run: Option<RunNo>, note: String) {
        let told = match run.and_then(|number| self.runs.get_mut(&number)) {
            Some(run) => &mut run.notes,
            None => self.kernels.news.entry(language).or_default(),
        };
        if !told.contains(&note) {
            told.push(note);
        }
    }
}

/// Returns the note about the descriptors that are left for the next run.
pub(super) fn about(room: Room, language: Language) -> Option<String> {
    match room {
        Room::Enough => None,
        Room::Raised { from, to } => Some(format!(
            "`ulimit -n` is {to} instead of {from}, which leaves {language} no room for another run"
        )),
        Room::Lacking(limit) => Some(format!(
            "`ulimit -n {limit}` leaves {language} no room for another run, so that its process \
             was ended; the new one is without that limit"
        )),
    }
}
