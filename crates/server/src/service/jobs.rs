//! Background jobs of runs.

use super::{Caller, ErrorCode, Service, ServiceError};
use sessile_protocol::{Answer, Job, Request, SessionId};

impl Service {
    /// Returns the jobs of a session; none without a keeper, which they do not outlive.
    pub(crate) async fn jobs(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Vec<Job>, ServiceError> {
        Ok(self.live_jobs(caller, id).await?.unwrap_or_default())
    }

    /// Returns the same, or `None` without a keeper.
    pub(crate) async fn live_jobs(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Option<Vec<Job>>, ServiceError> {
        let place = self.place(caller, id).await?;
        let Some(mut reached) = self.reach_if_live(&place).await? else { return Ok(None) };
        let Answer::Jobs(view) = reached.call(Request::Jobs).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(Some(view.jobs))
    }

    /// Signals a job, or a process of one; returns how many processes got it.
    pub(crate) async fn signal_job(
        &self,
        caller: &Caller,
        id: &SessionId,
        pid: u32,
        signal: i32,
    ) -> Result<u64, ServiceError> {
        let place = self.place(caller, id).await?;
        let Some(mut reached) = self.reach_if_live(&place).await? else {
            let message = format!("process {pid} is not a job: nothing of this session is running");
            return Err(ServiceError::new(ErrorCode::JobNotFound, message));
        };
        let answer = reached.call(Request::SignalJob { pid, signal }).await?;
        let Answer::Signalled { processes } = answer else {
            return Err(ServiceError::unexpected());
        };
        Ok(processes)
    }
}
