//! Carries out the session's decisions.

use super::launching::{launch, letter};
use super::live::Force;
use super::refusals::RefusalScope;
use super::requests::Closing;
use super::terminals::{TerminalOrder, with_terminal_type};
use super::waiters::WaitsFor;
use super::{Deadline, Keeper, Lifecycle};
use crate::directory_watch::DirectoryWatch;
use crate::kernels::{Floor, LastState, Order, Stdin};
use crate::privacy::{MOMENT, Neighbours, OtherKernels, Privacy, REPAIR, Renewal, has_lost_pipe};
use crate::processes;
use crate::reactor::Interest;
use crate::shortage::describe;
use crate::source::Source as ReadyFrom;
use rustix::process::{Pid, Signal};
use sessile_protocol::{
    Answer, BootPurpose, Code, Failure, Language, Reset, RunNo, Shortage, format_duration,
};
use sessile_session::{
    CancelReason, Effect, Ending, Epoch, Input, Outcome, Pressure, Source, Teardown, Tick,
};
use sessile_store::{SessionStatus, timestamp};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A shorter wait in the queue is not worth a note: it is how long an interpreter takes
/// to start.
const WORTH_TELLING: Tick = 1000;

/// Exit code of a run that was not begun: the one that shells use for a command that
/// cannot be executed.
pub(super) const NOT_BEGUN: i32 = 126;

/// How many pieces of reports are read before a kernel is killed: it makes few, and others
/// could write without end.
const REPORTS_AT_ONCE: u32 = 16;

impl Keeper {
    pub(super) fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Launch { language, epoch, source } => self.launch(language, epoch, source),
            Effect::Discard { language, epoch: _ } => self.discard(language),
            Effect::Begin { language, epoch, run } => self.begin(language, epoch, run),
            Effect::Press { language, epoch, pressure } => self.press(language, epoch, pressure),
            Effect::Listen { language, epoch, run } => self.listen(language, epoch, run),
            Effect::LookForLife => {
                let found = self.clients.waiters.are_watching() || self.has_jobs();
                self.agenda.note(Input::Life { found });
            }
            Effect::Capture { language, epoch, as_of, urgency } => {
                self.capture(language, epoch, as_of, urgency);
            }
            Effect::Abandon { language, epoch: _ } => {
                self.copy_failed(language, "it did not come up in time");
                if let Some(live) = self.kernels.live.get(&language) {
                    processes::signal(&[live.pid], Signal::KILL);
                }
            }
            Effect::Complete { run, outcome } => self.complete(run, outcome),
            Effect::Cancel { run, why } => self.cancel(run, why),
            Effect::Remember { language, epoch, as_of } => {
                let live = self.kernels.live.get_mut(&language);
                if let Some(live) = live.filter(|live| live.epoch == epoch) {
                    live.farewell = Some(as_of);
                }
            }
            Effect::Teardown(step) => self.tear_down(step),
            Effect::Forget => self.forget(),
            Effect::Finished(ending) => self.finish(ending),
            Effect::Operate(task) => self.task(task),
        }
    }

    /// Removes a kernel that was replaced. The processes that it started go on.
    fn discard(&mut self, language: Language) {
        let Some(live) = self.kernels.live.get(&language) else {
            return;
        };
        if live.death.is_none() {
            processes::signal(&[live.pid], Signal::KILL);
        }
        let (directory, epoch) = (live.directory.clone(), live.epoch);
        self.drop_terminal(language);
        if let Some(live) = self.kernels.live.remove(&language) {
            self.reactor.remove(&live.reports);
        }
        if directory.file_name().is_some_and(|name| name != letter(language)) {
            let _ = crate::scratch::remove_tree(&directory);
        }
        self.answer_inspectors(language);
        self.images_lose_kernel(language, epoch);
    }

    fn launch(&mut self, language: Language, epoch: Epoch, source: Source) {
        let saved = match source {
            Source::Nothing => {
                self.forget_dump(language);
                None
            }
            Source::Image { .. } => return self.install(language, epoch),
            Source::Final | Source::Captured { .. } => {
                self.home.directory.state().and_then(|mut state| state.kernels.remove(&language))
            }
        };
        let label = self.label();
        let (home, kernels) = (&self.home, &mut self.kernels);
        let which = (language, epoch);
        match launch(which, saved.as_ref(), label, home, kernels, &self.reactor) {
            Ok(()) => {
                self.expect_reports();
                self.guard_against_bombs();
            }
            Err(failure) => {
                if language == self.home.boot.kernel.language
                    && self.home.boot.duty == BootPurpose::Begin
                {
                    self.report_start(Err(failure.clone()));
                }
                self.kernels.launch_failures.insert(language, failure);
                self.agenda.note(Input::Died {
                    language,
                    epoch,
                    exit_code: 127,
                    left_state: false,
                });
            }
        }
    }

    pub(super) fn begin(&mut self, language: Language, epoch: Epoch, number: RunNo) {
        let now = self.now();
        let newest = self.newest_beside();
        self.guard_against_bombs();
        // Beside a bomb the kernel hardly gets the processor. The keeper would wait for it
        // to stop (`keep_private`), and could not end the bomb meanwhile.
        if self.lacks_room(language, newest) {
            return self.defer(language, number);
        }
        let housed = self.renew_directory(language, None);
        match self.keep_private(language, newest) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return self.defer(language, number);
            }
            Err(_) if self.has_ended(language) => return self.take_back(language, number),
            Err(error) => return self.abandon_unsent(language, number, &error),
        }
        self.watch_disk(now);
        let beside = self.beside_kernels(newest);
        let opened = housed
            .and_then(|()| self.open_stdin(number))
            .and_then(|()| self.take_terminal(language, number));
        let others = self.kernels.beside(language);
        let (Some(live), Some(run)) =
            (self.kernels.live.get_mut(&language), self.runs.get_mut(&number))
        else {
            return;
        };
        live.begun = sessile_proc::ticks_since_boot();
        live.floor = self.kernels.origins.floor(live.begun, others, newest);
        live.current = Some(number);
        live.deferred = None;
        live.force = Force::None;
        live.was_prompted = false;
        run.notes.extend(self.kernels.news.remove(&language).unwrap_or_default());
        run.begin();
        let (terminal, opened) = match opened {
            Ok(terminal) => (terminal, Ok(())),
            Err(error) => (None, Err(error)),
        };
        run.open_streams += u8::from(terminal.is_some());
        run.own_name = live.kernel.own_name();
        let env = terminal.is_some().then(|| with_terminal_type(&run.order.env));
        run.last_sign = now;
        run.waited = now.saturating_sub(run.accepted);
        self.deadlines.set_earlier(Deadline::Output, now + live.patience.of_next());
        let order = Order {
            run: number,
            text: &run.order.text,
            stdin: match &run.order.stdin {
                Some(bytes) => Stdin::Bytes(bytes),
                None if run.stdin.is_some() => Stdin::Open,
                None => Stdin::Empty,
            },
            output: [live.stdout.path(), live.stderr.path()],
            env: env.as_ref().unwrap_or(&run.order.env),
            terminal: terminal.as_ref().map(TerminalOrder::as_order),
            // Processes in a sandbox have other pids there.
            floor: Floor::of(self.home.confined.is_none().then_some(&self.kernels.origins)),
        };
        let mut begun = opened.and_then(|()| live.kernel.begin(&order));
        if begun.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
            && let Some(confined) = &self.home.confined
        {
            // The user's code has just closed the kernel's descriptors.
            let (kernel, renewal) = ((&mut *live.kernel, live.pid), Renewal::AfterLoss(REPAIR));
            begun = Privacy::ensure(&mut live.privacy, kernel, confined, beside, renewal)
                .and_then(|_| live.kernel.begin(&order));
            if let Err(error) = begun {
                return self.abandon_unsent(language, number, &error);
            }
        }
        if let Err(error) = begun {
            // Nothing was sent: the kernel is as it was.
            let told = describe(&error, Shortage::in_scratch);
            run.notes.push(format!("the run could not be handed to {language}: {told}"));
            self.finish_output(language);
            self.agenda.note(Input::Reported {
                language,
                epoch,
                run: number,
                exit_code: NOT_BEGUN,
            });
        } else {
            self.busy_polling.run_begun(Instant::now());
            let reads = |waits_for: &WaitsFor| matches!(waits_for, WaitsFor::Output(_));
            if self.clients.waiters.any_of_run(number, reads) {
                self.answer_waiters(number, false);
            }
        }
    }

    /// The newest process of the system, where the privacy of kernels depends on it.
    pub(super) fn newest_beside(&self) -> Option<Pid> {
        self.home.confined.as_ref().and_then(|_| self.kernels.origins.newest())
    }

    pub(super) fn beside_kernels(&self, newest: Option<Pid>) -> Neighbours {
        let is_shared = |confined| Rc::strong_count(confined) > 1;
        let shares = self.home.confined.as_ref().is_some_and(is_shared);
        let kernels = if shares || self.kernels.live.len() > 1 {
            OtherKernels::Some
        } else {
            OtherKernels::None
        };
        Neighbours { newest, kernels }
    }

    /// Makes sure that a kernel in a sandbox gets its orders through a pipe that no other
    /// process reads. `newest` is the newest process of the system.
    pub(super) fn keep_private(
        &mut self,
        language: Language,
        newest: Option<Pid>,
    ) -> io::Result<()> {
        let beside = self.beside_kernels(newest);
        let live = self.kernels.live.get_mut(&language);
        // A busy kernel gets its private pipes before its next run.
        let live = live.filter(|live| live.current.is_none());
        match (live, &self.home.confined) {
            (Some(live), Some(confined)) => {
                let has_lost_one = has_lost_pipe(&mut *live.kernel);
                let renewal =
                    if has_lost_one { Renewal::AfterLoss(MOMENT) } else { Renewal::IfNeeded };
                live.keep_private(confined, beside, renewal)?;
                let reports = live.privacy.as_mut().and_then(Privacy::take_reports);
                if let Some(reports) = reports {
                    self.reactor.add(&reports, ReadyFrom::Reports(language), Interest::Read)?;
                    live.reports.read_also(reports);
                }
                Ok(())
            }
            (_, _) => Ok(()),
        }
    }

    /// Takes the reports that have come; whether one says that this run is over.
    fn has_reported_end(&mut self, language: Language, run: RunNo) -> bool {
        (0..REPORTS_AT_ONCE).take_while(|_| self.read_reports(language)).for_each(drop);
        self.agenda.tells_of_end(run)
    }

    fn press(&mut self, language: Language, epoch: Epoch, pressure: Pressure) {
        // Checked before the press: it may end most of a fork bomb, which then grows
        // again.
        let is_at_process_limit = self.is_at_process_limit();
        let live = self.kernels.live.get(&language).filter(|live| live.epoch == epoch);
        let Some(run) = live.map(|live| live.current) else {
            return;
        };
        // A keeper that is late kills no kernel for a report that has come: all that the
        // kernel knows would be lost for nothing.
        if pressure == Pressure::KillKernel
            && run.is_some_and(|run| self.has_reported_end(language, run))
        {
            return;
        }
        // What is needed to press may be in there.
        let _ = self.renew_directory(language, run);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        live.press(pressure);
        if is_at_process_limit {
            live.force = Force::SignalsAtLimit;
        }
        if let Some(run) = run.filter(|_| is_at_process_limit && pressure >= Pressure::KillWork) {
            self.end_processes_of(run);
        }
        if self.end_deferred(language, epoch) {
            return;
        }
        // An interpreter inside a blocking read notices the interrupt only when the read
        // returns, so the interrupt must be sent before the input is cut.
        let current = self.kernels.live.get(&language).and_then(|live| live.current);
        if pressure > Pressure::Interrupt
            && let Some(run) = current
        {
            self.cut_input(run);
        }
    }

    /// Tells the session when a run last gave a sign of life.
    fn listen(&mut self, language: Language, epoch: Epoch, run: RunNo) {
        // Output that has not been read yet is a sign of life too.
        self.catch_up(run);
        let at = self.runs.get(&run).map_or(0, |run| run.last_sign);
        self.agenda.note(Input::Heard { language, epoch, run, at });
    }

    fn complete(&mut self, number: RunNo, outcome: Outcome) {
        self.take_refusals(RefusalScope::Own);
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        self.kernels.last_status.insert(run.language, outcome.exit_code);
        if let Some(limit) = outcome.silent_for {
            let limit = format_duration(Duration::from_millis(limit));
            run.notes.push(format!("silent for {limit}, and interrupted for that"));
        } else if outcome.timed_out && run.waited >= WORTH_TELLING {
            let waited = format_duration(Duration::from_millis(run.waited));
            run.notes.push(format!(
                "the timeout counts from the run's beginning, after {waited} in the queue"
            ));
        }
        run.finish(outcome);
        self.records.record(number, run, &self.home.directory);
        // A client that has followed the run may look at the files next.
        let follows = |waits_for: &WaitsFor| !matches!(waits_for, WaitsFor::Result(_));
        if !self.records.history.is_complete() && self.clients.waiters.any_of_run(number, follows) {
            let _ = self.records.history.complete();
        }
        // Clients that only want the result get it before anything else goes to disk.
        self.answer_waiters(number, false);
        self.busy_polling.run_ended(Instant::now());
        self.unsettle(number);
        let wants_record =
            |waits_for: &WaitsFor| matches!(waits_for, WaitsFor::Result(wanted) if wanted.recorded);
        if self.clients.waiters.any_of_run(number, wants_record) {
            self.settle();
            self.answer_waiters(number, true);
            let waiters = &self.clients.waiters;
            let is_awaited = |run| waiters.any_of_run(run, |_| true);
            self.records.release(&mut self.runs, number, is_awaited);
        }
    }

    fn cancel(&mut self, number: RunNo, why: CancelReason) {
        let Some(run) = self.runs.remove(&number) else {
            return;
        };
        let mut failure = cancellation(why);
        if let (CancelReason::Ended, Some(host)) = (why, self.records.metadata.moved_to()) {
            failure.message = format!(
                "the session now lives on {host}, and has ended here; ask again to have it go on here"
            );
        }
        if let (CancelReason::QueueTimeout, Some(limit)) = (why, run.order.queue_timeout_ms) {
            failure.message = self.waited_too_long(run.language, limit);
        }
        if why == CancelReason::NoKernel
            && let Some(reason) = self.kernels.launch_failures.get(&run.language)
        {
            failure.clone_from(reason);
        } else if why == CancelReason::NoKernel {
            failure.message += self.home.limits_hint();
        }
        if why != CancelReason::Reset {
            let _ = self.home.directory.write_cancelled(number, &failure);
        }
        self.clients.refuse_run(number, &failure, &self.reactor);
        for live in self.kernels.live.values_mut() {
            live.current = live.current.filter(|current| *current != number);
            live.deferred = live.deferred.filter(|deferred| deferred.run != number);
        }
    }

    fn waited_too_long(&self, language: Language, limit: Tick) -> String {
        let current = self.kernels.live.get(&language).and_then(|live| live.current);
        let ahead = current.and_then(|number| Some((number, self.runs.get(&number)?)));
        let behind = match ahead {
            Some((number, run)) => format!("behind run {number} ({})", run.title()),
            None => format!("for {language} to be ready"),
        };
        let limit = format_duration(Duration::from_millis(limit));
        format!("the run waited {limit} {behind}, as long as it may, and never began")
    }

    fn tear_down(&mut self, step: Teardown) {
        match step {
            Teardown::Exit => {
                let living = self.kernels.live.values_mut().filter(|live| live.death.is_none());
                for live in living {
                    let work = live.foreground();
                    if !work.is_empty() {
                        processes::signal(&[live.pid], Signal::INT);
                        processes::signal(&work, Signal::INT);
                    }
                    let last = live.farewell.map_or(LastState::Unwanted, |_| LastState::Wanted);
                    let _ = live.kernel.exit(last);
                }
                if self.kernels.live.is_empty() {
                    self.agenda.note(Input::KernelsGone);
                }
            }
            Teardown::Terminate => {
                let all = self.own_descendants();
                // No SIGHUP in addition: it would end a program in the middle of its
                // SIGTERM handler.
                processes::signal(&all, Signal::TERM);
                processes::signal(&all, Signal::CONT);
            }
            Teardown::Kill => processes::signal(&self.own_descendants(), Signal::KILL),
        }
        self.look_for_end();
    }

    /// Forgets everything after a reset, except the run numbers, which go on.
    fn forget(&mut self) {
        self.kernels.live.clear();
        self.output.forget();
        self.kernels.origins.forget();
        self.clear_checkpoints();
        for (number, _) in std::mem::take(&mut self.runs) {
            self.clients.refuse_run(number, &cancellation(CancelReason::Reset), &self.reactor);
        }
        self.kernels.last_status.clear();
        self.home.directory.forget_runs();
        self.records.forget();
        let _ = self.write_metadata();
        self.answer_closers();
    }

    /// Answers the clients that asked for a close or a reset.
    fn answer_closers(&mut self) {
        while let Some(waiter) =
            self.clients.waiters.take(|waiter| matches!(waiter.waits_for, WaitsFor::Close(_)))
        {
            let is_reset = matches!(waiter.waits_for, WaitsFor::Close(Closing::Reset));
            let answer = match is_reset && !self.has_finished() {
                true => Answer::Reset(Reset::default()),
                false => Answer::Ended,
            };
            self.clients.answer(waiter.caller, Ok(answer), &self.reactor);
        }
    }

    fn finish(&mut self, ending: Ending) {
        self.clear_checkpoints();
        self.close_background_pipes();
        // If the session's directory was deleted, nothing is written there again.
        let is_deserted = self.home.watch.as_ref().is_some_and(DirectoryWatch::finds_nothing);
        if !is_deserted {
            self.settle();
            self.records.close(&self.runs);
        }
        self.records.metadata.status = SessionStatus::Terminated;
        self.records.metadata.ended_at = Some(timestamp());
        self.records.metadata.keeper_pid = None;
        self.records.metadata.ended_by = Some(match (self.records.metadata.moved_to(), ending) {
            (Some(host), _) => format!("a move to {host}"),
            (None, Ending::Asked) => "request".to_owned(),
            (None, Ending::Idle) => "idle timeout".to_owned(),
            (None, Ending::WithProgram) => "end of its program".to_owned(),
        });
        if !is_deserted {
            let _ = self.write_metadata();
        }
        self.home.directory.remove_socket();
        self.home.user().unregister(&self.home.boot.session);
        self.home.scratch.remove();
        self.lifecycle = Lifecycle::Finished;
        self.answer_closers();
    }
}

/// Why a run was answered without a result.
fn cancellation(why: CancelReason) -> Failure {
    match why {
        CancelReason::Reset => {
            Failure::new(Code::RunCancelled, "the session was reset before the run had ended")
        }
        CancelReason::Ended => {
            Failure::new(Code::RunCancelled, "the session was ended before the run had ended")
        }
        CancelReason::Interrupted => {
            Failure::new(Code::RunCancelled, "the run was interrupted before it began")
        }
        CancelReason::QueueTimeout => {
            Failure::new(Code::QueueTimeout, "the run waited as long as it may, and never began")
        }
        CancelReason::NoKernel => Failure::new(
            Code::KernelUnavailable,
            "the interpreter cannot be started; see whether it works outside of the session",
        ),
    }
}
