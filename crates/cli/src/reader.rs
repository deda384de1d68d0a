//! Reads the runs of a session: from its keeper, or without one from its files. Reading
//! does not bring a lost session back.

use crate::settings::Settings;
use anyhow::bail;
use sessile_client::{Client, ClientError};
use sessile_protocol::{Answer, Completed, Job, OpenRun, OutputView, ReadOutput, Request, RunNo};
use sessile_store::{Directory, Liveness};

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) directory: Directory,
    keeper: Option<Client>,
}

/// A run, finished or so far.
#[derive(Debug)]
pub(crate) enum Outcome {
    Finished(Box<Completed>),
    Running(OutputView),
}

impl Reader {
    pub(crate) fn find(settings: &Settings, id: &str) -> anyhow::Result<Self> {
        let directory = settings.sessions.find(&settings.session(id)?)?;
        let keeper = match directory.connect() {
            Liveness::Live(socket) => Some(Client::new(socket)),
            Liveness::Gone => None,
        };
        Ok(Self { directory, keeper })
    }

    /// Returns the keeper, for what files cannot do.
    pub(crate) fn keeper(&mut self, run: RunNo) -> anyhow::Result<&mut Client> {
        match &mut self.keeper {
            Some(client) => Ok(client),
            None if self.directory.recorded_run(run, 0).is_some() => {
                bail!("run {run} has finished")
            }
            None => bail!(self.directory.absence(run).explain(run)),
        }
    }

    /// Returns the keeper, if there is one.
    pub(crate) fn live(&mut self) -> Option<&mut Client> {
        self.keeper.as_mut()
    }

    /// Returns the connection to the keeper, for further requests.
    pub(crate) fn into_keeper(self) -> Option<Client> {
        self.keeper
    }

    /// Returns the result of a run, if it comes in time.
    pub(crate) fn result(
        &mut self,
        run: RunNo,
        max_output: u64,
        patience_ms: Option<u64>,
    ) -> anyhow::Result<Outcome> {
        let Some(client) = &mut self.keeper else {
            let done = self.directory.recorded_run(run, max_output);
            let done = done.ok_or_else(|| self.directory.absence(run).explain(run))?;
            return Ok(Outcome::Finished(Box::new(done)));
        };
        let answer =
            client.call(Request::Result { run, max_output, patience_ms, until_input: true })?;
        if let Answer::Completed(done) = answer {
            return Ok(Outcome::Finished(done));
        }
        let Answer::Accepted { run, waiting_for_input } = answer else {
            bail!(ClientError::Unexpected)
        };
        let mut view = so_far(client, run, max_output)?;
        view.waiting_for_input |= waiting_for_input;
        Ok(Outcome::Running(view))
    }

    pub(crate) fn output(&mut self, read: ReadOutput) -> anyhow::Result<OutputView> {
        let Some(client) = &mut self.keeper else {
            let view = self.directory.recorded_output(&read);
            return Ok(view.ok_or_else(|| self.directory.absence(read.run).explain(read.run))?);
        };
        let Answer::Output(view) = client.call(Request::Output(read))? else {
            bail!(ClientError::Unexpected);
        };
        Ok(view)
    }

    /// Returns the background jobs of runs. None of them outlives a keeper.
    pub(crate) fn jobs(&mut self) -> anyhow::Result<Vec<Job>> {
        let Some(client) = &mut self.keeper else {
            return Ok(Vec::new());
        };
        let Answer::Jobs(view) = client.call(Request::Jobs)? else {
            bail!(ClientError::Unexpected);
        };
        Ok(view.jobs)
    }

    /// Signals a job; returns how many processes got it.
    pub(crate) fn signal_job(&mut self, pid: u32, signal: i32) -> anyhow::Result<u64> {
        let Some(client) = &mut self.keeper else {
            bail!("process {pid} is not a job of this session, of which nothing is running");
        };
        let Answer::Signalled { processes } = client.call(Request::SignalJob { pid, signal })?
        else {
            bail!(ClientError::Unexpected);
        };
        Ok(processes)
    }

    /// Returns the unfinished runs.
    pub(crate) fn open_runs(&mut self) -> anyhow::Result<Vec<OpenRun>> {
        let Some(client) = &mut self.keeper else {
            return Ok(Vec::new());
        };
        let Answer::Runs(view) = client.call(Request::Runs)? else {
            bail!(ClientError::Unexpected);
        };
        Ok(view.runs)
    }
}

/// Returns the output of an unfinished run.
pub(crate) fn so_far(client: &mut Client, run: RunNo, max: u64) -> anyhow::Result<OutputView> {
    let read = ReadOutput { max, wait: false, ..ReadOutput::waiting(run) };
    let Answer::Output(view) = client.call(Request::Output(read))? else {
        bail!(ClientError::Unexpected);
    };
    Ok(view)
}
