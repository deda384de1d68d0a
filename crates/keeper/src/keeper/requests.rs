//! Handles the requests of clients.

use super::lists::{Lists, queued};
use super::waiters::{Caller, WaitsFor, WantedResult};
use super::{Keeper, environment};
use sessile_protocol::{
    Adoption, Answer, Code, Failure, HistoryEntry, HistoryView, KernelState, KernelStatus,
    Language, OutputView, ReadOutput, Request, RunNo, StateView, Status,
};
use sessile_session::operations::{Order, SaveOrder};
use sessile_session::{Close, Input, Refusal, Tick};
use sessile_store::Metadata;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Reset,
    End,
}

/// How long a kernel has to say whether its run waits for input. One that waits answers
/// in a fraction of that; one that computes does not wait for input.
const ANSWER_PATIENCE: Tick = 50;

/// A kernel that does not answer within this time is busy with itself, for example in a
/// prompt command that hangs.
const INSPECTION_PATIENCE: Tick = 2000;

impl Keeper {
    pub(super) fn call(&mut self, caller: Caller, request: Request) {
        if !matches!(request, Request::Exec(_)) {
            self.follow_directory();
            // A client that asks for anything else may look at the files next.
            let _ = self.records.history.complete();
        }
        let answer = match request {
            Request::Exec(order) => self.exec(caller, order),
            Request::Result { run, max_output, patience_ms, until_input } => {
                let (recorded, repeated) = (false, false);
                let wanted = WantedResult { run, max_output, recorded, repeated, until_input };
                self.result(caller, wanted, patience_ms)
            }
            Request::Output(read) => self.output(caller, read),
            Request::State => {
                self.mend_directories();
                self.inspect(caller)
            }
            Request::History { limit } => {
                // The client looks at the files next.
                self.settle();
                Ok(Some(Answer::History(self.history_view(limit))))
            }
            Request::Interrupt { run, call: None } => Ok(Some(self.interrupt(run))),
            Request::Interrupt { run: _, call: Some(waiting) } => {
                let run = self.run_of(Caller { call: waiting, ..caller });
                let nothing = Answer::Interrupted { run: None };
                Ok(Some(run.map_or(nothing, |run| self.interrupt(Some(run)))))
            }
            Request::Input { run, bytes, eof } => self.input(run, bytes, eof).map(Some),
            Request::Signal { run, signal } => self.signal(run, signal).map(Some),
            Request::Reset => self.close(caller, Closing::Reset),
            Request::Rename { name } => self.rename(name).map(Some),
            Request::Adopt(adoption) => self.given_to(adoption).map(Some),
            Request::End => self.close(caller, Closing::End),
            Request::EndWith(program) => Ok(Some(self.end_with(program))),
            Request::Status => Ok(Some(Answer::Status(self.status()))),
            Request::Runs => Ok(self.list(caller)),
            Request::Following { after, patience_ms } => {
                let due = self.due_after(patience_ms);
                Ok(self.follow(caller, after, due))
            }
            Request::Screen(read) => self.read_screen(caller, read),
            Request::Keys { run, keys } => self.keys(run, &keys).map(Some),
            Request::Resize { run, size } => self.resize(run, size).map(Some),
            Request::Jobs => Ok(Some(Answer::Jobs(self.jobs()))),
            Request::Ports => Ok(Some(Answer::Ports(self.ports()))),
            Request::Fork(order) => {
                order.check().and_then(|()| self.request_operation(caller, Order::Fork(order)))
            }
            Request::Checkpoint(new) => {
                new.check().and_then(|()| self.request_operation(caller, Order::Checkpoint(new)))
            }
            Request::Checkpoints => {
                Ok(Some(Answer::Checkpoints { checkpoints: self.checkpoint_views() }))
            }
            Request::Rewind(rewind) => self.request_operation(caller, Order::Rewind(rewind)),
            Request::DropCheckpoints(which) => self.request_operation(caller, Order::Drop(which)),
            Request::SignalJob { pid, signal } => self.signal_job(pid, signal).map(Some),
            Request::Save { path, files, wait } => {
                self.request_save(caller, SaveOrder { path, files, wait })
            }
        };
        let outcome = match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => return,
            Err(failure) => Err(failure),
        };
        self.clients.answer(caller, outcome, &self.reactor);
    }

    /// Sets the session's name. The client has made sure that no other session has it.
    fn rename(&mut self, name: Option<String>) -> Result<Answer, Failure> {
        let before = std::mem::replace(&mut self.records.metadata.name, name);
        match self.write_metadata() {
            Ok(()) => Ok(Answer::Renamed),
            Err(failure) => {
                self.records.metadata.name = before;
                Err(failure)
            }
        }
    }

    /// Gives the session to an owner. The client has made sure that nobody else gets it.
    fn given_to(&mut self, adoption: Adoption) -> Result<Answer, Failure> {
        if !self.session.is_open() {
            return Err(Failure::new(Code::Ending, "the session is ending"));
        }
        let Adoption { owner, name, idle_timeout_ms, created_at } = adoption;
        let before = self.records.metadata.clone();
        let adopted = Metadata { owner, name, idle_timeout_ms, created_at, ..before };
        let before = std::mem::replace(&mut self.records.metadata, adopted);
        if let Err(failure) = self.write_metadata() {
            self.records.metadata = before;
            return Err(failure);
        }
        self.home.boot.idle_timeout_ms = idle_timeout_ms;
        self.step(Input::Adopted { idle_timeout: idle_timeout_ms });
        Ok(Answer::Adopted)
    }

    fn interrupt(&mut self, run: Option<RunNo>) -> Answer {
        let running = self.session.running().find(|r| run.is_none_or(|wanted| wanted == *r));
        self.step(Input::Interrupt { run });
        Answer::Interrupted { run: running }
    }

    /// Returns the run that a call waits for.
    fn run_of(&self, caller: Caller) -> Option<RunNo> {
        let mut waiters = self.clients.waiters.iter();
        waiters.find(|waiter| waiter.caller == caller)?.waits_for.run()
    }

    /// Returns a result at once, or answers later when there is one.
    pub(super) fn result(
        &mut self,
        caller: Caller,
        wanted: WantedResult,
        patience_ms: Option<u64>,
    ) -> Result<Option<Answer>, Failure> {
        let WantedResult { run: number, max_output, repeated, .. } = wanted;
        let Some(run) = self.runs.get_mut(&number) else {
            let recorded = self.home.directory.recorded_run(number, max_output);
            let done = recorded.ok_or_else(|| self.missing(number))?;
            return Ok(Some(Answer::Completed(Box::new(done))));
        };
        if let Some(mut done) = run.completed(number, max_output) {
            done.repeated = repeated;
            // A client that asks for a result may look at the files next.
            self.settle();
            return Ok(Some(Answer::Completed(Box::new(done))));
        }
        let is_prompt_awaited = run.takes_input() && wanted.until_input;
        let due = self.due_after(patience_ms);
        self.clients.waiters.add(caller, WaitsFor::Result(wanted), due);
        if is_prompt_awaited {
            self.expect_prompt();
        }
        Ok(None)
    }

    fn output(&mut self, caller: Caller, read: ReadOutput) -> Result<Option<Answer>, Failure> {
        let due = self.due_after(read.patience_ms);
        let asked_by = self.now() + ANSWER_PATIENCE;
        let waiting_for_input = self.awaits_input(read.run);
        let Some(run) = self.runs.get_mut(&read.run) else {
            let recorded = self.home.directory.recorded_output(&read);
            return Ok(Some(Answer::Output(recorded.ok_or_else(|| self.missing(read.run))?)));
        };
        let wait = read.wait && !(read.until_input && waiting_for_input);
        let is_asked = run.stdin.as_ref().is_some_and(|stdin| stdin.is_asked());
        let mut due = due;
        let mut read = read;
        if let Some(view) = run.output(&ReadOutput { wait, ..read }) {
            if !is_asked {
                let queued = queued(read.run, &self.session, &self.runs);
                return Ok(Some(Answer::Output(OutputView { waiting_for_input, queued, ..view })));
            }
            // The kernel is about to say whether the run waits for input.
            read.until_input = true;
            due = Some(asked_by);
        }
        let is_prompt_awaited = run.takes_input() && read.until_input;
        self.watch_soon(read.run);
        self.clients.waiters.add(caller, WaitsFor::Output(read), due);
        if is_prompt_awaited {
            self.expect_prompt();
        }
        Ok(None)
    }

    /// Lists the runs that have not ended.
    fn list(&mut self, caller: Caller) -> Option<Answer> {
        let mut view = self.lists().open();
        for run in &mut view.runs {
            run.waiting_for_input = self.awaits_input(run.run);
        }
        if !view.runs.iter().any(|run| self.is_asked(run.run)) {
            return Some(Answer::Runs(view));
        }
        let due = Some(self.now() + ANSWER_PATIENCE);
        self.clients.waiters.add(caller, WaitsFor::OpenRuns, due);
        None
    }

    /// Returns the runs above this one at once, or answers later when there are some.
    fn follow(&mut self, caller: Caller, after: RunNo, due: Option<Tick>) -> Option<Answer> {
        let view = self.lists().after(after);
        if !view.runs.is_empty() {
            return Some(Answer::Runs(view));
        }
        self.clients.waiters.add(caller, WaitsFor::RunsAfter(after), due);
        None
    }

    pub(super) fn lists(&self) -> Lists<'_> {
        Lists {
            runs: &self.runs,
            session: &self.session,
            history: &self.records.history,
            max_history: self.home.boot.max_history,
            last: self.session.last_run(),
        }
    }

    fn history_view(&self, limit: u64) -> HistoryView {
        let entries = self.records.history.newest(limit.min(self.home.boot.max_history));
        let entries = entries.into_iter().map(|entry| HistoryEntry {
            run: entry.run,
            timestamp: entry.timestamp,
            command: entry.command,
            language: entry.language,
            exit_code: entry.exit_code,
            duration_ms: entry.duration_ms,
            timed_out: entry.timed_out,
        });
        HistoryView { entries: entries.collect() }
    }

    fn status(&self) -> Status {
        let kernels = self.kernels.live.iter().map(|(language, live)| KernelStatus {
            language: *language,
            pid: live.pid.as_raw_nonzero().get().cast_unsigned(),
        });
        Status {
            keeper_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            running: self.session.running().collect(),
            queued: self.session.queued() as u64,
            kernels: kernels.collect(),
            limits: self.limits_view().map(Box::new),
        }
    }

    pub(super) fn close(
        &mut self,
        caller: Caller,
        closing: Closing,
    ) -> Result<Option<Answer>, Failure> {
        self.clients.waiters.add(caller, WaitsFor::Close(closing), None);
        let why = match closing {
            Closing::Reset => Close::Reset,
            Closing::End => Close::End(self.ending_on_request()),
        };
        self.step(Input::Close(why));
        Ok(None)
    }

    /// Asks every idle kernel for its state. The other kernels are shown with their last
    /// captured state.
    fn inspect(&mut self, caller: Caller) -> Result<Option<Answer>, Failure> {
        if !self.session.is_open() {
            return Err(refuse(&Refusal::Ending));
        }
        let missing: Vec<Language> = self
            .kernels
            .live
            .keys()
            .copied()
            .filter(|l| self.session.idle_as_of(*l).is_some())
            .collect();
        self.step(Input::Inspect);
        if missing.is_empty() {
            return Ok(Some(Answer::State(self.state_view())));
        }
        let due = self.now() + INSPECTION_PATIENCE;
        self.clients.waiters.add(caller, WaitsFor::State { missing }, Some(due));
        Ok(None)
    }

    pub(super) fn state_view(&self) -> StateView {
        let state = self.home.directory.state().unwrap_or_default();
        let kernels = state
            .kernels
            .into_iter()
            .filter(|(language, _)| self.kernels.live.contains_key(language));
        StateView {
            default_language: self.home.boot.kernel.language,
            kernels: kernels
                .map(|(language, saved)| KernelState {
                    language,
                    as_of_run: saved.as_of_run,
                    busy: self.session.idle_as_of(language).is_none(),
                    json: environment::whole_view(&self.home.env, saved),
                })
                .collect(),
            limits: self.limits_view().map(Box::new),
        }
    }
}

pub(super) fn refuse(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::QueueFull { limit } => Failure::new(
            Code::QueueFull,
            format!("{limit} runs are waiting in this session already; wait for some of them"),
        ),
        Refusal::Busy { run } => Failure::new(
            Code::Busy,
            format!("run {run} is going; wait for it, or interrupt it, and try again"),
        ),
        Refusal::Ending => {
            Failure::new(Code::Ending, "the session is ending or being reset; try again")
        }
    }
}
