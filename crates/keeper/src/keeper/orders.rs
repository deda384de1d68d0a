//! Orders for runs: new ones and repeated ones.

use super::Keeper;
use super::requests::refuse;
use super::waiters::{Caller, WaitsFor, WantedResult};
use crate::kernels;
use crate::runs::Run;
use sessile_protocol::{Answer, Code, Exec, Failure, Language, RunNo, Until};
use sessile_session::{Refusal, Submission};
use sessile_store::{Absence, Fingerprint, KeyedRun};

/// The client that gave an order, and when it is to be answered.
#[derive(Clone, Copy, Debug)]
struct Orderer {
    caller: Caller,
    until: Until,
    max_output: u64,
    patience_ms: Option<u64>,
    until_input: bool,
}

impl Orderer {
    /// Returns what the client waits for; `None` if it is not the result.
    fn wanted(self, run: RunNo, repeated: bool) -> Option<WantedResult> {
        let recorded = match self.until {
            Until::Accepted => return None,
            Until::Finished => false,
            Until::Recorded => true,
        };
        let Self { max_output, until_input, .. } = self;
        Some(WantedResult { run, max_output, recorded, repeated, until_input })
    }
}

impl Keeper {
    pub(super) fn exec(&mut self, caller: Caller, order: Exec) -> Result<Option<Answer>, Failure> {
        order.check()?;
        // The file with the keys is found by its path.
        if order.key.is_some() || self.home.is_time_to_follow() {
            self.follow_directory();
        }
        let orderer = Orderer {
            caller,
            until: order.until,
            max_output: order.max_output,
            patience_ms: order.patience_ms,
            until_input: order.until_input,
        };
        let language = order.language.unwrap_or(self.home.boot.kernel.language);
        let Some(key) = order.key.clone() else {
            return self.run(orderer, language, order, None);
        };
        if !self.session.is_open() {
            return Err(refuse(&Refusal::Ending));
        }
        let digest = digest(&order, language);
        let keys = self.records.keys.get_or_insert_with(|| self.home.directory.keys());
        match keys.get(&key).cloned() {
            Some(keyed) if keyed.digest == digest => self.repeat(orderer, keyed.run),
            Some(keyed) => {
                let message = format!(
                    "the key {key:?} was used for another command (run {}); a new command needs a new key",
                    keyed.run
                );
                Err(Failure::new(Code::KeyReused, message))
            }
            None => self.run(orderer, language, order, Some(digest)),
        }
    }

    /// Starts a new run for an order; `digest` if it has a key.
    fn run(
        &mut self,
        orderer: Orderer,
        language: Language,
        order: Exec,
        digest: Option<String>,
    ) -> Result<Option<Answer>, Failure> {
        let number = self.session.admits(language).map_err(|r| refuse(&r))?;
        self.remember_key(number, &order, digest)?;
        self.records.accept(number);
        let timeout = order.timeout_ms.unwrap_or(self.home.boot.command_timeout_ms);
        let submission = Submission {
            language,
            queue_timeout: order.queue_timeout_ms.filter(|limit| *limit > 0),
            timeout: (timeout > 0).then_some(timeout),
            silence: order.silence_ms.filter(|limit| *limit > 0),
            // Undo goes back to the state right before the run.
            risky: language.is_shell()
                && (self.home.boot.auto.is_some() || kernels::is_risky(&order.text)),
        };
        let now = self.now();
        let (number, effects) = self.session.submit(submission, now).map_err(|r| refuse(&r))?;
        let cap = self.home.boot.output_cap;
        let mut run = Run::new(number, language, order, &self.home.directory.runs(), cap);
        run.accepted = now;
        let wanted = orderer.wanted(number, false);
        let is_awaited = wanted.is_some();
        if let Some(wanted) = wanted {
            if run.takes_input() && wanted.until_input {
                self.expect_prompt();
            }
            let due = self.due_after(orderer.patience_ms);
            self.clients.waiters.add(orderer.caller, WaitsFor::Result(wanted), due);
        }
        self.runs.insert(number, run);
        self.perform(effects);
        self.answer_followers();
        Ok((!is_awaited).then_some(Answer::accepted(number)))
    }

    /// Stores the key before the run begins, so that the run never begins a second time.
    fn remember_key(
        &mut self,
        run: RunNo,
        order: &Exec,
        digest: Option<String>,
    ) -> Result<(), Failure> {
        let (Some(key), Some(digest)) = (&order.key, digest) else {
            return Ok(());
        };
        let keys = self.records.keys.get_or_insert_with(|| self.home.directory.keys());
        keys.record(key.clone(), KeyedRun { run, digest }).map_err(|error| {
            let message = format!("the key could not be written down, so nothing was run: {error}");
            Failure::new(Code::Storage, message)
        })
    }

    /// Answers a repeated order with the run that it started.
    fn repeat(&mut self, orderer: Orderer, number: RunNo) -> Result<Option<Answer>, Failure> {
        let wanted = orderer.wanted(number, true);
        if !self.runs.contains_key(&number) {
            let recorded = self.home.directory.recorded_run(number, orderer.max_output);
            let mut done = recorded.ok_or_else(|| self.unrepeatable(number))?;
            done.repeated = true;
            return Ok(Some(match wanted {
                Some(_) => Answer::Completed(Box::new(done)),
                None => Answer::accepted(number),
            }));
        }
        let Some(wanted) = wanted else {
            return Ok(Some(Answer::accepted(number)));
        };
        self.result(orderer.caller, wanted, orderer.patience_ms)
    }

    /// Returns why there is no result to repeat.
    fn unrepeatable(&self, number: RunNo) -> Failure {
        match self.home.directory.absence(number) {
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

    /// Returns why a run that is not in progress has no result.
    pub(super) fn missing(&self, number: RunNo) -> Failure {
        let on_disk = || self.home.directory.absence(number).explain(number);
        self.records.absence(number).unwrap_or_else(on_disk)
    }
}

/// Returns a digest of everything that defines an order.
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
