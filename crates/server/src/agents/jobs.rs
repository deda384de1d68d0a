//! What runs in the background of an agent's session, as of the last look.
//!
//! Programs that runs have left go with their keeper, and nobody can ask a keeper that
//! was killed what there was. So they are looked for while the model is asked, when
//! nobody waits for it, and written down: `jobs.json` in the session's directory.

use crate::keepers::{Place, blocking};
use crate::service::{Caller, Service, ServiceError};
use serde::{Deserialize, Serialize};
use sessile_protocol::SessionId;
use sessile_store::Directory;
use std::sync::Arc;
use tokio::task::JoinHandle;

const JOBS: &str = "jobs.json";

/// More of a command than a model needs to know it by.
const COMMAND: usize = 200;
/// More than a model wants to hear of.
const MOST: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Job {
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// The keeper that had them.
    keeper_pid: Option<u32>,
    jobs: Vec<Job>,
}

pub(super) struct Jobs {
    service: Arc<Service>,
    caller: Caller,
    session: SessionId,
    directory: Directory,
    looking: Option<JoinHandle<()>>,
}

impl Jobs {
    pub(super) fn of(service: &Arc<Service>, caller: &Caller, place: &Place) -> Self {
        let (service, caller) = (service.clone(), caller.clone());
        let (session, directory) = (place.id.clone(), place.directory.clone());
        Self { service, caller, session, directory, looking: None }
    }

    /// Looks for them, unless somebody does so already.
    pub(super) fn look(&mut self) {
        if self.looking.as_ref().is_some_and(|looking| !looking.is_finished()) {
            return;
        }
        let (service, caller) = (self.service.clone(), self.caller.clone());
        let (session, directory) = (self.session.clone(), self.directory.clone());
        self.looking = Some(tokio::spawn(async move {
            let Ok(Some(jobs)) = service.live_jobs(&caller, &session).await else { return };
            let job = |job: sessile_protocol::Job| Job {
                command: job.command.chars().take(COMMAND).collect(),
                run: job.run.map(|run| run.0),
            };
            let jobs = jobs.into_iter().map(job).collect();
            // If it cannot be written, they are not named.
            let _ = blocking(move || note(&directory, jobs)).await;
        }));
    }
}

/// Writes down what is new. What an earlier keeper had is left to whoever tells of it.
fn note(directory: &Directory, jobs: Vec<Job>) -> Result<(), ServiceError> {
    let seen = Seen { keeper_pid: directory.metadata()?.keeper_pid, jobs };
    let before: Seen = directory.read_json(JOBS).unwrap_or_default();
    let is_untold = before.keeper_pid != seen.keeper_pid && !before.jobs.is_empty();
    if is_untold || before.jobs == seen.jobs {
        return Ok(());
    }
    Ok(directory.write_json(JOBS, &seen)?)
}

/// Those that went with a keeper, by name. They are told once.
pub(super) fn lost(directory: &Directory) -> Vec<String> {
    let Seen { jobs, .. } = directory.read_json(JOBS).unwrap_or_default();
    let _ = std::fs::remove_file(directory.path().join(JOBS));
    let count = jobs.len();
    let name = |job: Job| {
        let of = job.run.map_or(String::new(), |run| format!(" of run {run}"));
        format!("the background program{of}: {}", job.command)
    };
    let mut names: Vec<String> = jobs.into_iter().take(MOST).map(name).collect();
    if count > MOST {
        names.push(format!("{} more background programs", count - MOST));
    }
    names
}
