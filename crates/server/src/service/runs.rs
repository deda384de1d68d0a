//! Runs: begin them, wait for them, read their output, write their input.

use super::{Caller, ErrorCode, Service, ServiceError, WithContinuity};
use crate::keepers::{ConnectedSession, blocking};
use sessile_gateway::answer::RunRow;
use sessile_protocol::{
    Answer, Completed, Exec, OutputView, ReadOutput, Request, RunNo, SessionId, Until,
};
use sessile_store::Directory;
use std::time::Instant;

/// A requested run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunOrder {
    pub(crate) exec: Exec,
    /// How long the caller waits for the result; without it, until the end.
    pub(crate) wait_ms: Option<u64>,
}

/// What ends a wait for a run, besides its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    Result,
    /// Its result, or that it waits for input.
    ResultOrInput,
}

#[derive(Debug)]
pub(crate) enum RunAnswer {
    Finished(Box<Completed>),
    /// Still going, with its output so far.
    Running {
        run: RunNo,
        so_far: OutputView,
    },
}

impl Service {
    pub(crate) async fn exec(
        &self,
        caller: &Caller,
        id: &SessionId,
        order: RunOrder,
    ) -> Result<WithContinuity<RunAnswer>, ServiceError> {
        order.exec.check()?;
        let mut reached = self.reach(caller, id).await?;
        let answer = self.run(&mut reached, order).await?;
        Ok(WithContinuity { answer, continuity: reached.continuity.clone() })
    }

    /// Begins a run for a caller that will follow it.
    pub(crate) async fn begin(
        &self,
        caller: &Caller,
        id: &SessionId,
        mut exec: Exec,
    ) -> Result<WithContinuity<RunNo>, ServiceError> {
        exec.check()?;
        exec.until = Until::Accepted;
        let mut reached = self.reach(caller, id).await?;
        let Answer::Accepted { run, .. } = reached.call(Request::Exec(exec)).await? else {
            return Err(ServiceError::unexpected());
        };
        self.metrics.began(&reached.place.id, run);
        Ok(WithContinuity { answer: run, continuity: reached.continuity.clone() })
    }

    pub(super) async fn run(
        &self,
        reached: &mut ConnectedSession,
        order: RunOrder,
    ) -> Result<RunAnswer, ServiceError> {
        let begun = Instant::now();
        let max_output = order.exec.max_output;
        let mut exec = order.exec;
        exec.until = Until::Finished;
        exec.patience_ms = order.wait_ms;
        let answer = reached.call(Request::Exec(exec)).await?;
        if let Answer::Completed(done) = answer {
            match done.repeated {
                // The first request with this key may have been counted.
                true => self.metrics.ended(&reached.place.id, &done),
                false => self.metrics.observe(&done, begun.elapsed()),
            }
            return Ok(RunAnswer::Finished(done));
        }
        let Answer::Accepted { run, waiting_for_input } = answer else {
            return Err(ServiceError::unexpected());
        };
        self.metrics.began(&reached.place.id, run);
        let mut answer = self.so_far(reached, run, max_output).await?;
        if let RunAnswer::Running { so_far, .. } = &mut answer {
            so_far.waiting_for_input |= waiting_for_input;
        }
        Ok(answer)
    }

    /// Returns the result; none if it does not come in time.
    async fn await_result(
        &self,
        reached: &mut ConnectedSession,
        run: RunNo,
        max_output: u64,
        wait_ms: Option<u64>,
        awaited: WaitFor,
    ) -> Result<Option<Box<Completed>>, ServiceError> {
        let request = Request::Result {
            run,
            max_output,
            patience_ms: wait_ms,
            until_input: awaited == WaitFor::ResultOrInput,
        };
        let outcome = reached.call(request).await?;
        if let Answer::Completed(done) = outcome {
            self.metrics.ended(&reached.place.id, &done);
            return Ok(Some(done));
        }
        let Answer::Accepted { .. } = outcome else { return Err(ServiceError::unexpected()) };
        Ok(None)
    }

    async fn so_far(
        &self,
        reached: &mut ConnectedSession,
        run: RunNo,
        max: u64,
    ) -> Result<RunAnswer, ServiceError> {
        let read = ReadOutput { max, wait: false, ..ReadOutput::waiting(run) };
        let Answer::Output(so_far) = reached.call(Request::Output(read)).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(RunAnswer::Running { run, so_far })
    }

    /// Returns the result of a run, also in a session that has ended or was lost.
    pub(crate) async fn result(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        wait_ms: u64,
        max_output: u64,
    ) -> Result<RunAnswer, ServiceError> {
        let awaited = WaitFor::ResultOrInput;
        if let Some(done) = self.finished(caller, id, run, wait_ms, max_output, awaited).await? {
            return Ok(RunAnswer::Finished(done));
        }
        let read = ReadOutput { max: max_output, wait: false, ..ReadOutput::waiting(run) };
        let so_far = self.output(caller, id, read).await?;
        Ok(RunAnswer::Running { run, so_far })
    }

    /// Returns the same without the output so far.
    pub(crate) async fn finished(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        wait_ms: u64,
        max_output: u64,
        awaited: WaitFor,
    ) -> Result<Option<Box<Completed>>, ServiceError> {
        let place = self.place(caller, id).await?;
        if let Some(mut reached) = self.reach_if_live(&place).await? {
            return self.await_result(&mut reached, run, max_output, Some(wait_ms), awaited).await;
        }
        let directory = place.directory.clone();
        let done = blocking(move || Ok(directory.recorded_run(run, max_output))).await?;
        match done {
            Some(done) => Ok(Some(Box::new(done))),
            None => Err(self.missing_run(&place.directory, run).await),
        }
    }

    /// Returns the unfinished runs and the newest finished ones, oldest first.
    pub(crate) async fn runs(
        &self,
        caller: &Caller,
        id: &SessionId,
        limit: u64,
    ) -> Result<Vec<RunRow>, ServiceError> {
        let place = self.place(caller, id).await?;
        // Read before the history, so that a run that ends meanwhile is not missed.
        let open = match self.reach_if_live(&place).await? {
            Some(mut reached) => {
                let Answer::Runs(view) = reached.call(Request::Runs).await? else {
                    return Err(ServiceError::unexpected());
                };
                view.runs
            }
            None => Vec::new(),
        };
        blocking(move || {
            let max = place.directory.metadata()?.max_history;
            let finished = place.directory.history().newest(limit.min(max));
            Ok(sessile_gateway::answer::runs(&open, &finished))
        })
        .await
    }

    /// Returns why a run does not exist.
    pub(super) async fn missing_run(&self, directory: &Directory, run: RunNo) -> ServiceError {
        let directory = directory.clone();
        let lost = blocking(move || Ok(directory.lost_runs())).await;
        if lost.is_ok_and(|lost| lost.contains(&run)) {
            let message = format!(
                "run {run} was going when the session's keeper died; how far it got is not known"
            );
            return ServiceError::new(ErrorCode::RunLost, message);
        }
        let message =
            format!("run {run} is not in the session's history (older runs are dropped from it)");
        ServiceError::new(ErrorCode::RunNotFound, message)
    }

    /// Returns output of a run from the given offsets.
    pub(crate) async fn output(
        &self,
        caller: &Caller,
        id: &SessionId,
        read: ReadOutput,
    ) -> Result<OutputView, ServiceError> {
        let place = self.place(caller, id).await?;
        if let Some(mut reached) = self.reach_if_live(&place).await? {
            let Answer::Output(view) = reached.call(Request::Output(read)).await? else {
                return Err(ServiceError::unexpected());
            };
            return Ok(view);
        }
        let directory = place.directory.clone();
        match blocking(move || Ok(directory.recorded_output(&read))).await? {
            Some(view) => Ok(view),
            None => Err(self.missing_run(&place.directory, read.run).await),
        }
    }

    /// Writes to an interactive run's stdin; returns how many bytes are unread.
    pub(crate) async fn input(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        bytes: Vec<u8>,
        eof: bool,
    ) -> Result<u64, ServiceError> {
        let place = self.place(caller, id).await?;
        let Some(mut reached) = self.reach_if_live(&place).await? else {
            return Err(self.missing_run(&place.directory, run).await);
        };
        let Answer::Input { unread } = reached.call(Request::Input { run, bytes, eof }).await?
        else {
            return Err(ServiceError::unexpected());
        };
        Ok(unread)
    }

    /// Signals a run's foreground processes; returns how many got it.
    pub(crate) async fn signal(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        signal: i32,
    ) -> Result<u64, ServiceError> {
        let place = self.place(caller, id).await?;
        let Some(mut reached) = self.reach_if_live(&place).await? else {
            return Err(self.missing_run(&place.directory, run).await);
        };
        let Answer::Signalled { processes } = reached.call(Request::Signal { run, signal }).await?
        else {
            return Err(ServiceError::unexpected());
        };
        Ok(processes)
    }
}
