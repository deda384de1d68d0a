//! What clients ask for.

use super::Keeper;
use super::following::ANSWER_PATIENCE;
use super::operations::Wish;
use super::saving::SaveOrder;
use crate::runs::{Waiter, Want};
use crate::source::ClientId;
use sessile_protocol::{
    Answer, Code, Failure, HistoryEntry, HistoryView, KernelState, KernelStatus, Language,
    OutputView, ReadOutput, Reply, Request, RunNo, StateView, Status,
};
use sessile_session::{Close, Input, Refusal, Tick};
use sessile_store::SavedKernel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Reset,
    End,
}

/// A call that waits for the state of kernels.
#[derive(Debug)]
pub(super) struct Inspector {
    pub(super) connection: ClientId,
    call: u64,
    /// Kernels that have not answered yet.
    missing: Vec<Language>,
    /// Then the last captured state has to do.
    due: Tick,
}

/// A kernel that does not answer within this is busy with itself (a prompt
/// command that hangs, say).
const INSPECTION_PATIENCE: Tick = 2000;

impl Keeper {
    pub(super) fn call(&mut self, connection: ClientId, call: u64, request: Request) {
        let answer = match request {
            Request::Exec(order) => self.exec(connection, call, order),
            Request::Result { run, max_output, patience_ms, until_input } => {
                let want =
                    Want::Result { max_output, recorded: false, repeated: false, until_input };
                let due = self.due_after(patience_ms);
                self.result(run, Waiter { connection, call, want, due })
            }
            Request::Output(read) => self.output(connection, call, read),
            Request::State => self.inspect(connection, call),
            Request::History { limit } => Ok(Some(Answer::History(self.history_view(limit)))),
            Request::Interrupt { run, call: None } => Ok(Some(self.interrupt(run))),
            Request::Interrupt { run: _, call: Some(waiting) } => {
                let run = self.run_of(connection, waiting);
                let nothing = Answer::Interrupted { run: None };
                Ok(Some(run.map_or(nothing, |run| self.interrupt(Some(run)))))
            }
            Request::Input { run, bytes, eof } => self.input(run, bytes, eof).map(Some),
            Request::Signal { run, signal } => self.signal(run, signal).map(Some),
            Request::Reset => self.close(connection, call, Closing::Reset),
            Request::End => self.close(connection, call, Closing::End),
            Request::Status => Ok(Some(Answer::Status(self.status()))),
            Request::Runs => Ok(self.list(connection, call)),
            Request::Following { after, patience_ms } => {
                let due = self.due_after(patience_ms);
                Ok(self.follow(connection, call, after, due))
            }
            Request::Screen(read) => self.read_screen(connection, call, read),
            Request::Keys { run, keys } => self.keys(run, &keys).map(Some),
            Request::Resize { run, size } => self.resize(run, size).map(Some),
            Request::Jobs => Ok(Some(Answer::Jobs(self.jobs()))),
            Request::Fork(order) => {
                order.check().and_then(|()| self.wish(connection, call, Wish::Fork(order)))
            }
            Request::Checkpoint(new) => {
                new.check().and_then(|()| self.wish(connection, call, Wish::Checkpoint(new)))
            }
            Request::Checkpoints => {
                Ok(Some(Answer::Checkpoints { checkpoints: self.checkpoint_views() }))
            }
            Request::Rewind(rewind) => self.wish(connection, call, Wish::Rewind(rewind)),
            Request::DropCheckpoints(which) => self.drop_checkpoints(&which).map(Some),
            Request::SignalJob { pid, signal } => self.signal_job(pid, signal).map(Some),
            Request::Save { path, files, wait } => {
                self.begin_save(connection, call, SaveOrder { path: Some(path), files, wait })
            }
        };
        let outcome = match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => return,
            Err(failure) => Err(failure),
        };
        self.connections.send(connection, &Reply::new(call, outcome), &self.reactor);
    }

    fn interrupt(&mut self, run: Option<RunNo>) -> Answer {
        let running = self.session.running().find(|r| run.is_none_or(|wanted| wanted == *r));
        self.step(Input::Interrupt { run });
        Answer::Interrupted { run: running }
    }

    /// The run that a call waits for.
    fn run_of(&self, connection: ClientId, call: u64) -> Option<RunNo> {
        let waits = |w: &Waiter| w.connection == connection && w.call == call;
        self.runs.iter().find(|(_, run)| run.waiters.iter().any(waits)).map(|(number, _)| *number)
    }

    /// A result, now or when it is there.
    pub(super) fn result(
        &mut self,
        number: RunNo,
        waiter: Waiter,
    ) -> Result<Option<Answer>, Failure> {
        let Want::Result { max_output, repeated, .. } = waiter.want else {
            return Ok(None);
        };
        let Some(run) = self.runs.get_mut(&number) else {
            let recorded = self.directory.recorded_run(number, max_output);
            let done = recorded.ok_or_else(|| self.missing(number))?;
            return Ok(Some(Answer::Completed(Box::new(done))));
        };
        if let Some(mut done) = run.completed(number, max_output) {
            done.repeated = repeated;
            // Who asks for a result may look at the files next.
            self.settle();
            return Ok(Some(Answer::Completed(Box::new(done))));
        }
        let due = waiter.due;
        let is_prompt_awaited = run.takes_input() && waiter.ends_at_input();
        run.waiters.push(waiter);
        self.note_due(due);
        if is_prompt_awaited {
            self.expect_prompt();
        }
        Ok(None)
    }

    fn output(
        &mut self,
        connection: ClientId,
        call: u64,
        read: ReadOutput,
    ) -> Result<Option<Answer>, Failure> {
        let due = self.due_after(read.patience_ms);
        let asked_by = self.now() + ANSWER_PATIENCE;
        let waiting_for_input = self.awaits_input(read.run);
        let Some(run) = self.runs.get_mut(&read.run) else {
            let recorded = self.directory.recorded_output(&read);
            return Ok(Some(Answer::Output(recorded.ok_or_else(|| self.missing(read.run))?)));
        };
        let wait = read.wait && !(read.until_input && waiting_for_input);
        let is_asked = run.stdin.as_ref().is_some_and(|stdin| stdin.is_asked());
        let mut due = due;
        let mut read = read;
        if let Some(view) = run.output(&ReadOutput { wait, ..read }) {
            if !is_asked {
                return Ok(Some(Answer::Output(OutputView { waiting_for_input, ..view })));
            }
            // The kernel is about to say whether the run waits.
            read.until_input = true;
            due = Some(asked_by);
        }
        let is_prompt_awaited = run.takes_input() && read.until_input;
        run.waiters.push(Waiter { connection, call, want: Want::Output(read), due });
        self.note_due(due);
        if is_prompt_awaited {
            self.expect_prompt();
        }
        Ok(None)
    }

    fn history_view(&self, limit: u64) -> HistoryView {
        let entries = self.history.newest(limit.min(self.boot.max_history));
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
        let kernels = self.kernels.iter().map(|(language, live)| KernelStatus {
            language: *language,
            pid: live.pid.as_raw_nonzero().get().cast_unsigned(),
        });
        Status {
            keeper_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            running: self.session.running().collect(),
            queued: self.session.queued() as u64,
            kernels: kernels.collect(),
        }
    }

    pub(super) fn close(
        &mut self,
        connection: ClientId,
        call: u64,
        closing: Closing,
    ) -> Result<Option<Answer>, Failure> {
        if self.changes_files() {
            self.closing_later.push((connection, call, closing));
            return Ok(None);
        }
        self.cancel_operations();
        self.closing.push((connection, call, closing));
        let why = match closing {
            Closing::Reset => Close::Reset,
            Closing::End => Close::End,
        };
        self.step(Input::Close(why));
        Ok(None)
    }

    /// Asks every kernel that is idle for its state; of the others the last
    /// captured one has to do.
    fn inspect(&mut self, connection: ClientId, call: u64) -> Result<Option<Answer>, Failure> {
        if !self.session.is_open() {
            return Err(refuse(&Refusal::Ending));
        }
        let missing: Vec<Language> = self
            .kernels
            .keys()
            .copied()
            .filter(|l| self.session.idle_as_of(*l).is_some())
            .collect();
        self.step(Input::Inspect);
        if missing.is_empty() {
            return Ok(Some(Answer::State(self.state_view())));
        }
        let due = self.now() + INSPECTION_PATIENCE;
        self.inspectors.push(Inspector { connection, call, missing, due });
        Ok(None)
    }

    pub(super) fn inspection_due(&self) -> Option<Tick> {
        self.inspectors.iter().map(|inspector| inspector.due).min()
    }

    /// A kernel has answered, or will not; or the time for it is over.
    pub(super) fn answer_inspectors(&mut self, answered: Option<Language>) {
        if self.inspectors.is_empty() {
            return;
        }
        let now = self.now();
        for inspector in &mut self.inspectors {
            let is_over = inspector.due <= now;
            inspector.missing.retain(|missing| Some(*missing) != answered && !is_over);
        }
        let view = self.state_view();
        let (done, waiting) =
            std::mem::take(&mut self.inspectors).into_iter().partition(|i| i.missing.is_empty());
        self.inspectors = waiting;
        let done: Vec<Inspector> = done;
        for inspector in done {
            let reply = Reply::new(inspector.call, Ok(Answer::State(view.clone())));
            self.connections.send(inspector.connection, &reply, &self.reactor);
        }
    }

    fn state_view(&self) -> StateView {
        let state = self.directory.state().unwrap_or_default();
        let kernels =
            state.kernels.into_iter().filter(|(language, _)| self.kernels.contains_key(language));
        StateView {
            default_language: self.boot.kernel.language,
            kernels: kernels
                .map(|(language, saved)| KernelState {
                    language,
                    as_of_run: saved.as_of_run,
                    busy: self.session.idle_as_of(language).is_none(),
                    json: self.view_text(saved),
                })
                .collect(),
        }
    }

    /// A kernel's state with its whole environment.
    fn view_text(&self, saved: SavedKernel) -> String {
        let mut view = saved.view;
        let removed = view.remove("env_removed").unwrap_or_default();
        let changed = match view.get_mut("env_vars") {
            Some(serde_json::Value::Object(env)) => std::mem::take(env),
            Some(_) | None => serde_json::Map::new(),
        };
        let is_removed = |name: &str| {
            removed
                .as_array()
                .is_some_and(|list| list.iter().any(|gone| gone.as_str() == Some(name)))
        };
        let mut env = serde_json::Map::new();
        for (name, value) in &self.env {
            let name = name.to_string_lossy();
            if !is_removed(&name) {
                env.insert(name.into_owned(), value.to_string_lossy().into());
            }
        }
        env.extend(changed);
        view.insert("env_vars".into(), env.into());
        serde_json::Value::Object(view).to_string()
    }
}

pub(super) fn refuse(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::QueueFull { limit } => Failure::new(
            Code::QueueFull,
            format!("{limit} runs are waiting in this session already; wait for some of them"),
        ),
        Refusal::Busy { run } => Failure::new(Code::Busy, format!("run {run} is going")),
        Refusal::Ending => {
            Failure::new(Code::Ending, "the session is ending or being reset; try again")
        }
    }
}
