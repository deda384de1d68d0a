//! Doing what the session decided.

use super::events::letter;
use super::records;
use super::requests::Closing;
use super::terminals::{TerminalOrder, with_terminal_type};
use super::{Deadline, Inheritance, Keeper, Live};
use crate::kernels::{Heritage, Order, Plan, Pressed, Stdin};
use crate::processes::{self, Caught};
use crate::reactor::Interest;
use crate::runs::Run;
use crate::source;
use crate::streams::Stream;
use rustix::process::Signal;
use sessile_protocol::{
    Answer, Code, Duty, Failure, KernelProgram, Language, Reply, Reset, RunNo, format_duration,
};
use sessile_session::{Effect, Epoch, Input, Outcome, Pressure, Source, Teardown, Tick, Why};
use sessile_store::{SavedKernel, SessionStatus, StreamName, timestamp};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A run that takes longer than this has its output read along.
const WATCH_AFTER: Tick = 2;

impl Keeper {
    pub(super) fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Launch { language, epoch, source } => self.launch(language, epoch, source),
            Effect::Prepare { language, epoch, run } => self.prepare(language, epoch, run),
            Effect::Discard { language, epoch: _ } => self.discard(language),
            Effect::Begin { language, epoch, run } => self.begin(language, epoch, run),
            Effect::Press { language, epoch, pressure } => self.press(language, epoch, pressure),
            Effect::Listen { language, epoch, run } => self.listen(language, epoch, run),
            Effect::Capture { language, epoch, as_of, urgency } => {
                self.capture(language, epoch, as_of, urgency);
            }
            Effect::Abandon { language, epoch: _ } => {
                self.unborn(language, "it did not come up in time");
                if let Some(live) = self.kernels.get(&language) {
                    processes::signal(&[live.pid], Signal::KILL);
                }
            }
            Effect::Complete { run, outcome } => self.complete(run, outcome),
            Effect::Cancel { run, why } => self.cancel(run, why),
            Effect::Teardown(step) => self.tear_down(step),
            Effect::Forget => self.forget(),
            Effect::Finished => self.finish(),
            Effect::Operate(_) => {}
        }
    }

    /// A kernel that was replaced. What it started goes on.
    fn discard(&mut self, language: Language) {
        let Some(live) = self.kernels.get(&language) else {
            return;
        };
        processes::signal(&[live.pid], Signal::KILL);
        let directory = live.directory.clone();
        self.lose_terminal(language);
        if let Some(live) = self.kernels.remove(&language) {
            self.reactor.remove(&live.reports);
        }
        if directory.file_name().is_some_and(|name| name != letter(language)) {
            let _ = std::fs::remove_dir_all(directory);
        }
        self.answer_inspectors(Some(language));
        self.images_lose_kernel(language);
    }

    /// A copy that has come up takes the place of the kernel.
    fn install(&mut self, language: Language, epoch: Epoch) {
        match self.thawed.remove(&language) {
            Some(live) => {
                let reports = source::Source::Reports(language);
                self.reactor.change(&live.reports, reports, Interest::Read);
                self.kernels.insert(language, Live { epoch, ..live });
                self.step(Input::Ready { language, epoch });
            }
            None => {
                self.step(Input::Died { language, epoch, exit_code: 127, left_state: false });
            }
        }
    }

    fn launch(&mut self, language: Language, epoch: Epoch, source: Source) {
        if let Source::Image { .. } = source {
            return self.install(language, epoch);
        }
        match self.try_launch(language, epoch, source) {
            Ok(live) => {
                self.launch_failures.remove(&language);
                self.kernels.insert(language, live);
                self.expect_words();
            }
            Err(message) => {
                if language == self.boot.kernel.language && self.boot.duty == Duty::Begin {
                    self.report_start(Err(Failure::new(Code::KernelUnavailable, message.clone())));
                }
                self.launch_failures.insert(language, message);
                self.step(Input::Died { language, epoch, exit_code: 127, left_state: false });
            }
        }
    }

    fn try_launch(
        &mut self,
        language: Language,
        epoch: Epoch,
        source: Source,
    ) -> Result<Live, String> {
        let text = |error: std::io::Error| format!("cannot start {language}: {error}");
        let directory = self.scratch.subdirectory(letter(language)).map_err(text)?;
        let stdout = Stream::create(&directory, StreamName::Stdout).map_err(text)?;
        let stderr = Stream::create(&directory, StreamName::Stderr).map_err(text)?;
        let saved = match source {
            Source::Nothing => {
                self.forget_dump(language);
                None
            }
            Source::Image { .. } => None,
            Source::Final | Source::Captured { .. } => {
                self.directory.state().and_then(|mut state| state.kernels.remove(&language))
            }
        };
        let inheritance = saved.as_ref().and_then(|saved| self.inheritance(saved));
        let program = self.program(language);
        let status = self.last_status.get(&language).copied().unwrap_or(0);
        let plan = Plan {
            kernel: &program,
            directory: directory.clone(),
            env: &self.env,
            cwd: if self.boot.work_dir.is_dir() {
                &self.boot.work_dir
            } else {
                std::path::Path::new("/")
            },
            heritage: Heritage { state: saved.as_ref(), status },
            label: self.label(),
        };
        let spawned = plan.spawn().map_err(|error| format!("cannot start {language}: {error}"))?;
        let reports = source::Source::Reports(language);
        self.reactor.add(&spawned.reports, reports, Interest::Read).map_err(text)?;
        self.origins.add_kernel(spawned.pid, language);
        let streams = (stdout, stderr);
        let live =
            Live::new(epoch, spawned.pid, spawned.kernel, spawned.reports, streams, directory);
        Ok(Live { inheritance, ..live })
    }

    /// What a kernel takes over from a file, and where it is to be.
    fn inheritance(&self, saved: &SavedKernel) -> Option<Inheritance> {
        let dump = self.directory.dump(saved.dump.as_deref()?)?;
        let cwd = saved.view.get("working_dir").and_then(|cwd| cwd.as_str()).map(PathBuf::from);
        Some(Inheritance { dump, cwd: cwd.filter(|cwd| cwd.is_dir()) })
    }

    /// The program of a language: what the session was started with, or what
    /// is found in its PATH.
    fn program(&self, language: Language) -> KernelProgram {
        if self.boot.kernel.language == language {
            return self.boot.kernel.clone();
        }
        let program = match language {
            Language::Bash => "bash",
            Language::Sh => "sh",
            Language::Zsh => "zsh",
            Language::Python => "python3",
            Language::Node => "node",
        };
        KernelProgram { language, program: program.to_owned() }
    }

    fn begin(&mut self, language: Language, epoch: Epoch, number: RunNo) {
        let now = self.now();
        let opened = self.open_stdin(number).and_then(|()| self.take_terminal(language, number));
        let (Some(live), Some(run)) = (self.kernels.get_mut(&language), self.runs.get_mut(&number))
        else {
            return;
        };
        live.begun = processes::start_clock();
        live.floor = self.origins.floor();
        live.current = Some(number);
        live.is_pressed = false;
        live.was_prompted = false;
        self.timeline.ran(number);
        run.notes.extend(self.news.remove(&language).unwrap_or_default());
        run.begin();
        let (terminal, opened) = match opened {
            Ok(terminal) => (terminal, Ok(())),
            Err(error) => (None, Err(error)),
        };
        run.open_streams += u8::from(terminal.is_some());
        let env = terminal.is_some().then(|| with_terminal_type(&run.order.env));
        run.last_sign = now;
        self.deadlines.set(Deadline::Output, now + WATCH_AFTER);
        let order = Order {
            run: number,
            text: &run.order.text,
            stdin: match &run.order.stdin {
                Some(bytes) => Stdin::Bytes(bytes),
                None if run.stdin.is_some() => Stdin::Open,
                None => Stdin::Empty,
            },
            env: env.as_ref().unwrap_or(&run.order.env),
            terminal: terminal.as_ref().map(TerminalOrder::as_order),
        };
        if let Err(error) = opened.and_then(|()| live.kernel.begin(&order)) {
            // Nothing was sent: the kernel is as it was.
            run.notes.push(format!("the run could not be handed to {language}: {error}"));
            self.close_streams(language);
            self.step(Input::Reported { language, epoch, run: number, exit_code: 126 });
        } else {
            self.alertness.run_begun(Instant::now());
            if run.has_readers() {
                self.answer_waiters(number, false);
            }
        }
    }

    fn press(&mut self, language: Language, epoch: Epoch, pressure: Pressure) {
        let Some(live) = self.kernels.get_mut(&language).filter(|live| live.epoch == epoch) else {
            return;
        };
        // Only the end of a job ends a `wait` of zsh, if nothing else has.
        let work = match pressure {
            Pressure::Interrupt | Pressure::Terminate => live.awaited(),
            Pressure::KillWork | Pressure::KillKernel if language == Language::Zsh => {
                live.started()
            }
            Pressure::KillWork | Pressure::KillKernel => live.foreground(),
        };
        let to_work = match pressure {
            Pressure::Interrupt => Signal::INT,
            Pressure::Terminate => Signal::TERM,
            Pressure::KillWork | Pressure::KillKernel => Signal::KILL,
        };
        // Once: whatever ends its foreground program, the shell must not go on
        // with the next command.
        let caught = Caught::by(live.pid);
        if !live.is_pressed
            && let Some(number) = live.kernel.stop_signal(caught)
        {
            processes::signal_by_number(live.pid, number);
        }
        if pressure >= Pressure::Terminate
            && let Some(number) = live.kernel.halt_signal(caught)
        {
            processes::signal_by_number(live.pid, number);
        }
        live.is_pressed = true;
        if let Some(run) = live.current {
            live.kernel.pressing(run);
        }
        // The kernel first: a shell takes its child's death by SIGINT for an
        // interrupt of its own only if it knows of one.
        let to_kernel = match pressure {
            Pressure::Interrupt | Pressure::Terminate | Pressure::KillWork => {
                live.kernel.interrupt_signal(caught)
            }
            Pressure::KillKernel => Some(libc::SIGKILL),
        };
        if let Some(number) = to_kernel {
            processes::signal_by_number(live.pid, number);
        }
        processes::signal(&work, to_work);
        // One that was stopped could not act on any of it.
        processes::signal(&[live.pid], Signal::CONT);
        processes::signal(&work, Signal::CONT);
        if let Some(run) = live.current {
            let _ = live.kernel.pressed(run, Pressed::Kernel);
            // An interpreter that is deep in a read notices the interrupt when
            // the read comes back; but the interrupt has to be there first.
            if pressure > Pressure::Interrupt {
                self.cut_input(run);
            }
        }
    }

    /// Tells the session when a run last gave a sign of life.
    fn listen(&mut self, language: Language, epoch: Epoch, run: RunNo) {
        // What it has written and nobody has read yet is one.
        self.catch_up(run);
        let at = self.runs.get(&run).map_or(0, |run| run.last_sign);
        self.step(Input::Heard { language, epoch, run, at });
    }

    fn complete(&mut self, number: RunNo, outcome: Outcome) {
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        self.last_status.insert(run.language, outcome.exit_code);
        if let Some(limit) = outcome.silent_for {
            let limit = format_duration(Duration::from_millis(limit));
            run.notes.push(format!("silent for {limit}, and interrupted for that"));
        }
        run.finish(outcome);
        self.record(number);
        // Who only wants the result has it before anything else goes to disk.
        self.answer_waiters(number, false);
        self.alertness.run_ended(Instant::now());
        self.origins.seal(number);
        self.unsettle(number);
        self.durable_changed();
        if self.runs.get(&number).is_some_and(Run::wants_record) {
            self.settle();
            self.answer_waiters(number, true);
            self.release(number);
        }
    }

    fn cancel(&mut self, number: RunNo, why: Why) {
        let Some(run) = self.runs.remove(&number) else {
            return;
        };
        let mut failure = cancellation(why);
        if why == Why::NoKernel
            && let Some(reason) = self.launch_failures.get(&run.language)
        {
            failure.message.clone_from(reason);
        }
        if why != Why::Reset {
            let _ = self.directory.write_cancelled(number, &failure);
        }
        self.refuse_waiters(run, &failure);
        for live in self.kernels.values_mut() {
            live.current = live.current.filter(|current| *current != number);
        }
    }

    fn refuse_waiters(&mut self, run: Run, failure: &Failure) {
        for waiter in run.waiters {
            let reply = Reply::new(waiter.call, Err(failure.clone()));
            self.connections.send(waiter.connection, &reply, &self.reactor);
        }
    }

    fn tear_down(&mut self, step: Teardown) {
        self.cancel_savings();
        self.cancel_upload();
        self.cancel_operations();
        match step {
            Teardown::Exit => {
                for live in self.kernels.values_mut() {
                    let work = live.foreground();
                    if !work.is_empty() {
                        processes::signal(&[live.pid], Signal::INT);
                        processes::signal(&work, Signal::INT);
                    }
                    let _ = live.kernel.exit();
                }
                if self.kernels.is_empty() {
                    self.step(Input::KernelsGone);
                }
            }
            Teardown::Terminate => {
                let all = self.own_descendants();
                // No SIGHUP besides: it would end a program in the middle of
                // what it does upon SIGTERM.
                processes::signal(&all, Signal::TERM);
                processes::signal(&all, Signal::CONT);
            }
            Teardown::Kill => processes::signal(&self.own_descendants(), Signal::KILL),
        }
        self.look_for_end();
    }

    /// After a reset: the numbers go on, nothing else does.
    fn forget(&mut self) {
        self.kernels.clear();
        self.lingering.clear();
        self.origins.forget();
        self.clear_checkpoints();
        for (_, run) in std::mem::take(&mut self.runs) {
            self.refuse_waiters(run, &cancellation(Why::Reset));
        }
        self.unsettled = records::Unsettled::default();
        self.refused.clear();
        self.unrecorded.clear();
        self.last_status.clear();
        self.directory.forget_runs();
        self.durable_changed();
        self.history.clear();
        self.keys = None;
        if let Some(accepted) = &mut self.accepted {
            let _ = accepted.forget_through(accepted.last());
        }
        let _ = self.write_metadata();
        for (connection, call, closing) in std::mem::take(&mut self.closing) {
            let answer = match closing {
                Closing::Reset => Answer::Reset(Reset::default()),
                Closing::End => Answer::Ended,
            };
            self.connections.send(connection, &Reply::new(call, Ok(answer)), &self.reactor);
        }
    }

    fn finish(&mut self) {
        self.clear_checkpoints();
        self.close_lingering();
        self.settle();
        self.metadata.status = SessionStatus::Terminated;
        self.metadata.ended_at = Some(timestamp());
        self.metadata.keeper_pid = None;
        let asked = self.closing.iter().any(|(_, _, closing)| *closing == Closing::End);
        self.metadata.ended_by = Some(if asked { "request" } else { "idle timeout" }.to_owned());
        let _ = self.write_metadata();
        self.directory.remove_socket();
        self.user().unregister(&self.boot.session);
        self.scratch.remove();
        for (connection, call, _) in std::mem::take(&mut self.closing) {
            self.connections.send(connection, &Reply::new(call, Ok(Answer::Ended)), &self.reactor);
        }
        self.has_finished = true;
    }
}

/// Why a run was answered without a result.
fn cancellation(why: Why) -> Failure {
    match why {
        Why::Reset => {
            Failure::new(Code::RunCancelled, "the session was reset before the run had ended")
        }
        Why::Ended => Failure::new(Code::RunCancelled, "the session was ended before the run had"),
        Why::Interrupted => {
            Failure::new(Code::RunCancelled, "the run was interrupted before it began")
        }
        Why::NoKernel => Failure::new(Code::KernelUnavailable, "the interpreter does not come up"),
    }
}
