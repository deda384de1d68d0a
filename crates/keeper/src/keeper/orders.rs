//! Orders for runs: new ones, and those that were given before.

use super::Keeper;
use super::requests::refuse;
use crate::kernels;
use crate::runs::{Run, Waiter, Want};
use crate::source::ClientId;
use sessile_protocol::{Answer, Code, Exec, Failure, Language, RunNo, Until};
use sessile_session::{Refusal, Submission};
use sessile_store::{Absence, Fingerprint, Keyed};

/// Who gave an order, and when it is to be answered.
#[derive(Clone, Copy, Debug)]
struct Caller {
    connection: ClientId,
    call: u64,
    until: Until,
    max_output: u64,
    patience_ms: Option<u64>,
    until_input: bool,
}

impl Keeper {
    pub(super) fn exec(
        &mut self,
        connection: ClientId,
        call: u64,
        order: Exec,
    ) -> Result<Option<Answer>, Failure> {
        order.check()?;
        let caller = Caller {
            connection,
            call,
            until: order.until,
            max_output: order.max_output,
            patience_ms: order.patience_ms,
            until_input: order.until_input,
        };
        let language = order.language.unwrap_or(self.boot.kernel.language);
        let Some(key) = order.key.clone() else {
            return self.run(caller, language, order, None);
        };
        if !self.session.is_open() {
            return Err(refuse(&Refusal::Ending));
        }
        let digest = digest(&order, language);
        let keys = self.keys.get_or_insert_with(|| self.directory.keys());
        match keys.get(&key).cloned() {
            Some(keyed) if keyed.digest == digest => self.repeat(caller, keyed.run),
            Some(keyed) => {
                let message = format!(
                    "the key {key:?} was used for another command (run {}); a new command needs a new key",
                    keyed.run
                );
                Err(Failure::new(Code::KeyReused, message))
            }
            None => self.run(caller, language, order, Some(digest)),
        }
    }

    /// A run of its own for an order; `digest` if it has a key.
    fn run(
        &mut self,
        caller: Caller,
        language: Language,
        order: Exec,
        digest: Option<String>,
    ) -> Result<Option<Answer>, Failure> {
        let number = self.session.admits(language).map_err(|r| refuse(&r))?;
        self.remember_key(number, &order, digest)?;
        if let Some(accepted) = &mut self.accepted {
            // A disk that is full must not keep anybody from working.
            let _ = accepted.accept(number);
        }
        let timeout = order.timeout_ms.unwrap_or(self.boot.command_timeout_ms);
        let submission = Submission {
            language,
            timeout: (timeout > 0).then_some(timeout),
            silence: order.silence_ms.filter(|limit| *limit > 0),
            // What undo goes back to is the state right before the run.
            risky: language.is_shell()
                && (self.boot.auto.is_some() || kernels::is_risky(&order.text)),
        };
        let (number, effects) =
            self.session.submit(submission, self.now()).map_err(|r| refuse(&r))?;
        let mut run =
            Run::new(number, language, order, &self.directory.runs(), self.boot.output_cap);
        let waiter = self.waiter(caller, false);
        let is_awaited = waiter.is_some();
        self.note_due(waiter.as_ref().and_then(|waiter| waiter.due));
        if run.takes_input() && waiter.as_ref().is_some_and(Waiter::ends_at_input) {
            self.expect_prompt();
        }
        run.waiters.extend(waiter);
        self.runs.insert(number, run);
        self.perform(effects);
        self.answer_followers();
        Ok((!is_awaited).then_some(Answer::accepted(number)))
    }

    /// Before the run begins, so that it is never begun a second time.
    fn remember_key(
        &mut self,
        run: RunNo,
        order: &Exec,
        digest: Option<String>,
    ) -> Result<(), Failure> {
        let (Some(key), Some(digest)) = (&order.key, digest) else {
            return Ok(());
        };
        let keys = self.keys.get_or_insert_with(|| self.directory.keys());
        keys.record(key.clone(), Keyed { run, digest }).map_err(|error| {
            let message = format!("the key could not be written down, so nothing was run: {error}");
            Failure::new(Code::Storage, message)
        })
    }

    /// What a call waits for; `None` when it does not wait for the result.
    fn waiter(&self, caller: Caller, repeated: bool) -> Option<Waiter> {
        let recorded = match caller.until {
            Until::Accepted => return None,
            Until::Finished => false,
            Until::Recorded => true,
        };
        let Caller { max_output, until_input, .. } = caller;
        let want = Want::Result { max_output, recorded, repeated, until_input };
        let due = self.due_after(caller.patience_ms);
        Some(Waiter { connection: caller.connection, call: caller.call, want, due })
    }

    /// An order that was given before: the run that it was given.
    fn repeat(&mut self, caller: Caller, number: RunNo) -> Result<Option<Answer>, Failure> {
        let waiter = self.waiter(caller, true);
        if !self.runs.contains_key(&number) {
            let recorded = self.directory.recorded_run(number, caller.max_output);
            let mut done = recorded.ok_or_else(|| self.unrepeatable(number))?;
            done.repeated = true;
            return Ok(Some(match waiter {
                Some(_) => Answer::Completed(Box::new(done)),
                None => Answer::accepted(number),
            }));
        }
        let Some(waiter) = waiter else {
            return Ok(Some(Answer::accepted(number)));
        };
        self.result(number, waiter)
    }

    /// Why there is no result to repeat.
    fn unrepeatable(&self, number: RunNo) -> Failure {
        match self.directory.absence(number) {
            absence @ Absence::Cancelled(_) => absence.explain(number),
            absence @ Absence::Lost => {
                let mut failure = absence.explain(number);
                failure.message += "; it is not run again: look at its effects, then use a new key";
                failure
            }
            Absence::Dropped | Absence::Never => {
                let message = format!(
                    "run {number} of this key has been dropped from the session's history since; it is not run again"
                );
                Failure::new(Code::RunNotFound, message)
            }
        }
    }

    /// Why a run that is not going has no result.
    pub(super) fn missing(&self, number: RunNo) -> Failure {
        self.directory.absence(number).explain(number)
    }
}

/// Stands for all that makes an order what it is.
fn digest(order: &Exec, language: Language) -> String {
    let mut print = Fingerprint::default()
        .with_field(&order.text)
        .with_field(language.as_str().as_bytes())
        .with_field(if order.stdin.is_some() { b"stdin" } else { b"" })
        .with_field(order.stdin.as_ref().map_or(&[], |stdin| stdin.as_slice()));
    for (name, value) in &order.env {
        print = print.with_field(name.as_bytes()).with_field(value.as_bytes());
    }
    print.text()
}
