//! Handles news on a file descriptor.

use super::output::Context;
use super::patience;
use super::refusals::RefusalScope;
use super::waiters::Caller;
use super::{Deadline, Keeper};
use crate::source::{ClientId, Pipe, Source};
use sessile_protocol::{Language, RunNo};
use std::time::Instant;

impl Keeper {
    pub(super) fn handle(&mut self, source: Source) {
        match source {
            Source::Listener => self.clients.connections.accept(&self.reactor),
            Source::Client(client) => self.serve(client),
            Source::Signals | Source::Sandbox => self.family.was_signalled = true,
            Source::Reports(language) => {
                self.read_reports(language);
                self.note_report_of_dead(language);
            }
            Source::Pipe(pipe) => self.take_output(pipe),
            Source::Terminal(language) => self.take_shown(language),
            Source::Stdin(run) => self.feed_stdin(run),
            Source::Image(id) => self.read_image_reports(id),
            Source::Copy(language) => self.read_copy_reports(language),
            Source::SaveWorker => self.read_save_worker(),
            Source::UploadWorker => self.read_upload_worker(),
            Source::LookWorker => self.read_look_worker(),
            Source::FileWorker(id) => self.read_file_worker(id),
            Source::Refusals => self.take_refusals(RefusalScope::Own),
            Source::Program => self.program_ended(),
        }
    }

    /// Handles a client that has sent something or can take more.
    fn serve(&mut self, client: ClientId) {
        let calls =
            self.clients.connections.receive(client, &mut self.output.buffer, &self.reactor);
        if !calls.is_empty() {
            self.busy_polling.ordered(Instant::now());
        }
        for call in calls {
            self.call(Caller { client, call: call.id }, call.request);
        }
    }

    /// Takes what was written to a pipe.
    fn take_output(&mut self, pipe: Pipe) {
        let mut context = Context {
            reactor: &self.reactor,
            deadlines: &mut self.deadlines,
            clock: self.home.clock,
        };
        match pipe {
            Pipe::Current(language, name) => {
                let (which, kernels) = ((language, name), &mut self.kernels);
                let news = self.output.take_current(which, kernels, &mut self.runs, &mut context);
                if let Some(run) = news {
                    self.answer_waiters(run, false);
                }
            }
            Pipe::Background(id) => {
                if let Some(run) = self.output.take_background(id, &mut self.runs, &mut context) {
                    self.unsettle(run);
                    self.answer_waiters(run, true);
                }
            }
        }
    }

    /// Watches the pipes of a run soon, for a client that follows it.
    pub(super) fn watch_soon(&mut self, run: RunNo) {
        if self.kernels.at_run(run).is_some_and(|(_, live)| !live.stdout.is_watched()) {
            self.deadlines.set_earlier(Deadline::Output, self.home.now() + patience::LEAST);
        }
    }

    /// Watches the pipes of runs that take longer than a moment.
    pub(super) fn watch_output(&mut self) {
        self.output.watch(&mut self.kernels, &self.reactor);
        self.expect_reports();
    }

    /// Takes what a run has written up to now.
    pub(super) fn catch_up(&mut self, number: RunNo) {
        let (live, run) = (self.kernels.at_run_mut(number), self.runs.get_mut(&number));
        let (Some(live), Some(run)) = (live, run) else {
            return;
        };
        let (reactor, clock) = (&self.reactor, self.home.clock);
        let context = Context { reactor, deadlines: &mut self.deadlines, clock };
        self.output.catch_up(live, (number, run), &context);
        // Output that was taken here is not reported as an event again.
        self.answer_waiting(number);
    }

    /// Takes the output of a kernel's run that is over. Pipes that other processes hold
    /// stay with the run.
    pub(super) fn finish_output(&mut self, language: Language) {
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        let Some(number) = live.current.take() else {
            return;
        };
        self.kernels.origins.add(live.span(number, language));
        // Otherwise it would wake the keeper after each run that was over sooner.
        if self.kernels.live.values().all(|live| live.current.is_none()) {
            self.deadlines.set(Deadline::Output, None);
        }
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        if let Some(run) = self.runs.get_mut(&number) {
            self.output.finish(live, (number, run), &self.reactor);
            let begun = run.accepted + run.waited;
            live.patience.ended(self.home.now().saturating_sub(begun), run.written());
            self.leave_terminal(language, number);
        }
    }

    /// Closes the pipes of earlier runs: no process is left that could write to them.
    pub(super) fn close_background_pipes(&mut self) {
        for run in self.output.close_background(&mut self.runs) {
            self.unsettle(run);
            self.answer_waiters(run, true);
        }
    }
}
