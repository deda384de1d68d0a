//! The background jobs of an agent's session, as of the last look.
//!
//! Background programs die with their keeper, and a killed keeper cannot be asked which
//! there were. So they are listed while the model is asked, when the keeper is idle, and
//! now and then while a call takes long. The list is `jobs.json` in the session's
//! directory. Jobs that began after the last look have no name; the runs that may have
//! begun them are named instead.

use crate::keepers::{Place, blocking};
use crate::service::{Caller, Service, ServiceError};
use serde::{Deserialize, Serialize};
use sessile_protocol::SessionId;
use sessile_store::Directory;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const JOBS: &str = "jobs.json";

/// How much of a command is kept: enough for a model to recognize it.
const COMMAND: usize = 200;
/// How many jobs are named to a model.
const MOST: usize = 20;
/// More runs than this are given as a range.
const MANY: usize = 10;

/// Delay before the first look. Most calls are over by then, and the next look comes when
/// the model is asked.
const FIRST: Duration = Duration::from_secs(1);
/// Longest interval between looks. A look costs the keeper about a millisecond.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Job {
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
}

/// The content of `jobs.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct JobsFile {
    /// The keeper that had the jobs.
    keeper_pid: Option<u32>,
    jobs: Vec<Job>,
    /// The newest run that was over before the look: it begins no more jobs.
    #[serde(default)]
    as_of_run: u64,
}

/// A request to look for jobs.
#[derive(Clone, Copy, Debug)]
enum SearchRequest {
    Once,
    /// After a delay, and repeatedly until the next request.
    NowAndThen,
}

pub(super) struct Jobs {
    looks: mpsc::UnboundedSender<SearchRequest>,
}

impl Jobs {
    pub(super) fn of(service: &Arc<Service>, caller: &Caller, place: &Place) -> Self {
        let (looks, wanted) = mpsc::unbounded_channel();
        let looker = JobSearch {
            service: service.clone(),
            caller: caller.clone(),
            session: place.id.clone(),
            directory: place.directory.clone(),
        };
        tokio::spawn(looker.work(wanted));
        Self { looks }
    }

    /// Looks for jobs once, now.
    pub(super) fn look(&self) {
        let _ = self.looks.send(SearchRequest::Once);
    }

    /// Looks for jobs repeatedly while a call is carried out.
    pub(super) fn watch(&self) {
        let _ = self.looks.send(SearchRequest::NowAndThen);
    }
}

/// Looks for jobs until its driver ends.
struct JobSearch {
    service: Arc<Service>,
    caller: Caller,
    session: SessionId,
    directory: Directory,
}

impl JobSearch {
    async fn work(self, mut wanted: mpsc::UnboundedReceiver<SearchRequest>) {
        let mut pause = None;
        loop {
            let next = match pause {
                Some(pause) => tokio::time::timeout(pause, wanted.recv()).await,
                None => Ok(wanted.recv().await),
            };
            pause = match next {
                Ok(None) => return,
                Ok(Some(SearchRequest::Once)) => {
                    self.look().await;
                    None
                }
                Ok(Some(SearchRequest::NowAndThen)) => Some(FIRST),
                Err(_) => {
                    self.look().await;
                    pause.map(|pause| LONGEST.min(pause * 2))
                }
            };
        }
    }

    async fn look(&self) {
        let directory = self.directory.clone();
        let Ok(as_of_run) = blocking(move || Ok(last_run(&directory))).await else { return };
        let Ok(Some(jobs)) = self.service.live_jobs(&self.caller, &self.session).await else {
            return;
        };
        let job = |job: sessile_protocol::Job| Job {
            command: job.command.chars().take(COMMAND).collect(),
            run: job.run.map(|run| run.0),
        };
        let jobs = jobs.into_iter().map(job).collect();
        let directory = self.directory.clone();
        // If the write fails, the jobs are not named later.
        let _ = blocking(move || note(&directory, jobs, as_of_run)).await;
    }
}

/// Writes the list if it changed. A list of an earlier keeper stays until `lost` reports it.
fn note(directory: &Directory, jobs: Vec<Job>, as_of_run: u64) -> Result<(), ServiceError> {
    let seen = JobsFile { keeper_pid: directory.metadata()?.keeper_pid, jobs, as_of_run };
    let before: JobsFile = directory.read_json(JOBS).unwrap_or_default();
    let is_untold = before.keeper_pid != seen.keeper_pid && !before.jobs.is_empty();
    if is_untold || before == seen {
        return Ok(());
    }
    Ok(directory.write_json(JOBS, &seen)?)
}

/// Returns the jobs that died with a keeper, by name. They are reported once.
pub(super) fn lost(directory: &Directory) -> Vec<String> {
    let seen: JobsFile = directory.read_json(JOBS).unwrap_or_default();
    let keeper_pid = directory.metadata().ok().and_then(|metadata| metadata.keeper_pid);
    let (unseen, as_of_run) = (runs_since(directory, seen.as_of_run), last_run(directory));
    // If the write fails, they are reported again.
    let _ = directory.write_json(JOBS, &JobsFile { keeper_pid, jobs: Vec::new(), as_of_run });
    names(seen.jobs, &unseen)
}

/// Whether the session has another keeper than at the last look: the session was lost,
/// and its first user since then was told.
pub(super) fn is_of_another_keeper(directory: &Directory) -> bool {
    let Ok(JobsFile { keeper_pid: Some(seen), .. }) = directory.read_json(JOBS) else {
        return false;
    };
    directory
        .metadata()
        .ok()
        .and_then(|metadata| metadata.keeper_pid)
        .is_some_and(|pid| pid != seen)
}

/// Returns the number of the newest entry in the session's history: a finished run or a rewind.
fn last_run(directory: &Directory) -> u64 {
    directory.history().newest(1).last().map_or(0, |entry| entry.run.0)
}

/// Returns the finished runs after this one, as far as the history goes.
fn runs_since(directory: &Directory, run: u64) -> BTreeSet<u64> {
    let entries = directory.history().newest(u64::MAX).into_iter();
    let runs = entries.filter(|entry| entry.event.is_none()).map(|entry| entry.run.0);
    runs.filter(|number| *number > run).collect()
}

fn names(jobs: Vec<Job>, unseen: &BTreeSet<u64>) -> Vec<String> {
    let count = jobs.len();
    let name = |job: Job| {
        let of = job.run.map_or(String::new(), |run| format!(" of run {run}"));
        format!("the background program{of}: {}", job.command)
    };
    let mut names: Vec<String> = jobs.into_iter().take(MOST).map(name).collect();
    if count > MOST {
        names.push(format!("{} more background programs", count - MOST));
    }
    let unseen = named(unseen);
    let told = |runs| format!("what {runs} may have begun in the background since the last look");
    names.extend(unseen.map(told));
    names
}

/// Returns runs in words.
pub(super) fn named(runs: &BTreeSet<u64>) -> Option<String> {
    let (first, last) = (runs.first()?, runs.last()?);
    let before: Vec<String> = runs.iter().take(runs.len() - 1).map(u64::to_string).collect();
    Some(match before.len() {
        0 => format!("run {last}"),
        1..MANY => format!("runs {} and {last}", before.join(", ")),
        _ => format!("runs {first} to {last}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(jobs: usize, unseen: impl IntoIterator<Item = u64>) -> Vec<String> {
        let job = |n| Job { command: format!("sleep {n}"), run: Some(1) };
        names((0..jobs).map(job).collect(), &unseen.into_iter().collect())
    }

    #[test]
    fn what_was_seen_is_named_and_what_was_not_is_said() {
        assert_eq!(told(0, []), [""; 0]);
        assert_eq!(told(1, []), ["the background program of run 1: sleep 0"]);
        let unseen = "may have begun in the background since the last look";
        assert_eq!(told(0, [3]), [format!("what run 3 {unseen}")]);
        assert_eq!(told(0, [3, 4, 6]), [format!("what runs 3, 4 and 6 {unseen}")]);
        assert_eq!(told(0, 3..=40), [format!("what runs 3 to 40 {unseen}")]);
        assert_eq!(told(22, [])[20], "2 more background programs");
    }
}
