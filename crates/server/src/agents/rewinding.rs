//! Taking back steps: a checkpoint of the session is taken before a step does anything,
//! and the session is rewound to it with the thread.

use super::driver::AgentRewound;
use super::perform::CurrentOperation;
use crate::keepers::lock;
use crate::service::{Caller, ErrorCode, Service, ServiceError};
use sessile_agent::thread::{Checkpoint, Entry as ThreadEntry, EntryKind};
use sessile_agent::{Agent, Input};
use sessile_protocol::{DropCheckpoints, NewCheckpoint, Rewind, RewindTo, RewoundView, SessionId};
use sessile_store::Entry;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

const PREFIX: &str = "agent-step-";

fn name_of(step: u64) -> String {
    format!("{PREFIX}{step}")
}

/// Takes a checkpoint before a step.
pub(super) struct StepCheckpoint {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    pub(super) session: SessionId,
    pub(super) step: u64,
    pub(super) files: bool,
    /// Older checkpoints to drop.
    pub(super) surplus: Vec<String>,
    pub(super) running: CurrentOperation,
}

impl StepCheckpoint {
    pub(super) async fn take(self) -> Input {
        let Self { service, caller, session, step, files, surplus, running } = self;
        let name = name_of(step);
        // Changes of the session are recorded before what the step does.
        if let Ok(continuity) = service.wake_agent(&caller, &session).await {
            running.became(continuity);
        }
        // Does not wait for runs of others: they may take all day.
        let new = NewCheckpoint { name: Some(name.clone()), files, wait: false };
        let checkpoint = match service.checkpoint(&caller, &session, new).await {
            Ok(_) => Checkpoint { step, name: Some(name), files, error: None },
            // It was taken, and a crash came before that was recorded.
            Err(error) if error.code == ErrorCode::CheckpointExists => {
                Checkpoint { step, name: Some(name), files, error: None }
            }
            Err(error) => {
                tracing::warn!(session = %session, %error, "a step cannot be taken back later");
                Checkpoint { step, name: None, files: false, error: Some(error.to_string()) }
            }
        };
        for name in surplus {
            // Fails if it went with a keeper.
            let which = DropCheckpoints::Named(vec![name]);
            let _ = service.drop_checkpoints(&caller, &session, which).await;
        }
        Input::Checkpointed(checkpoint)
    }
}

/// Returns the checkpoints to drop when another one is taken: a few at a time, since
/// those before them are gone already. The first one of the last task stays, so that the
/// task can be taken back.
pub(super) fn surplus(entries: &[ThreadEntry], keep: u32) -> Vec<String> {
    let mut marks: Vec<CheckpointName> = Vec::new();
    let mut task = 0;
    for entry in entries {
        if let EntryKind::Task { .. } = &entry.what {
            task += 1;
        } else if let EntryKind::Checkpoint(checkpoint) = &entry.what
            && let Some(name) = &checkpoint.name
        {
            let is_first = marks.last().is_none_or(|mark| mark.task != task);
            marks.push(CheckpointName { name: name.clone(), task, is_first });
        }
    }
    marks.reverse();
    let kept = usize::try_from(keep.saturating_sub(1)).unwrap_or(0);
    let begins = marks.first().is_none_or(|mark| mark.task != task);
    let of_last = marks.first().map_or(0, |mark| mark.task);
    let goes = |(at, mark): &(usize, CheckpointName)| {
        let is_needed = !begins && mark.is_first && mark.task == task;
        // The one that was kept for the previous task.
        let was_needed = begins && mark.is_first && mark.task == of_last;
        !is_needed && (*at < kept + 2 || was_needed)
    };
    let old = marks.into_iter().enumerate().skip(kept).filter(goes);
    old.map(|(_, mark)| mark.name).collect()
}

struct CheckpointName {
    name: String,
    task: u64,
    /// The first of its task.
    is_first: bool,
}

/// Returns the rewinds of the session that are not in the thread: number and note.
pub(super) fn unknown_to(agent: &Agent, history: &[Entry]) -> Vec<(u64, String)> {
    let mut first = u64::MAX;
    let mut known = Vec::new();
    for entry in agent.entries() {
        if let EntryKind::Outcome(outcome) = &entry.what {
            first = first.min(outcome.run.unwrap_or(u64::MAX));
        } else if let EntryKind::Rewound { run, .. } = &entry.what {
            known.extend(*run);
        } else if let EntryKind::SessionRewound { run, .. } = &entry.what {
            known.push(*run);
        }
    }
    let rewinds = history.iter().filter(|entry| entry.event.as_deref() == Some("rewind"));
    let mut unknown: Vec<_> = rewinds
        .filter(|entry| entry.run.0 > first && !known.contains(&entry.run.0))
        .map(|entry| {
            let notes = entry.remarks.notes.join(", ");
            (entry.run.0, format!("{}; {notes}", entry.command))
        })
        .collect();
    unknown.sort_by_key(|(run, _)| *run);
    unknown
}

type RewindAnswer = Result<Box<RewoundView>, ServiceError>;

/// The client that waits for a rewind, and the session's answer.
#[derive(Debug, Default)]
pub(super) struct PendingRewind {
    waiting: Option<oneshot::Sender<Result<AgentRewound, ServiceError>>>,
    said: Arc<Mutex<Option<RewindAnswer>>>,
}

impl PendingRewind {
    pub(super) fn expect(&mut self, waiting: oneshot::Sender<Result<AgentRewound, ServiceError>>) {
        self.waiting = Some(waiting);
        *lock(&self.said) = None;
    }

    /// Rewinds the session.
    pub(super) fn rewind_session(
        &self,
        service: Arc<Service>,
        caller: Caller,
        session: SessionId,
        checkpoint: String,
    ) -> impl Future<Output = Input> + Send + 'static {
        let said = self.said.clone();
        async move {
            let rewind = Rewind { to: RewindTo::Name(checkpoint), keep_files: false, wait: false };
            let outcome = match service.rewind(&caller, &session, rewind).await {
                Ok(rewound) => Ok(rewound.answer),
                Err(error) if error.code == ErrorCode::CheckpointNotFound => {
                    let there = service.checkpoints(&caller, &session).await.unwrap_or_default();
                    Err(gone(there.iter().map(|checkpoint| checkpoint.name.as_str())))
                }
                Err(error) => Err(error),
            };
            let input = match &outcome {
                Ok(view) => Input::Rewound(Ok(Some(view.run.0))),
                Err(error) => Input::Rewound(Err(error.to_string())),
            };
            *lock(&said) = Some(outcome);
            input
        }
    }

    /// Sends the result to the client.
    pub(super) fn answer(&mut self, agent: &Agent) {
        let Some(waiting) = self.waiting.take() else { return };
        let session = match lock(&self.said).take() {
            Some(Err(error)) => {
                let _ = waiting.send(Err(error));
                return;
            }
            Some(Ok(view)) => Some(view),
            None => None,
        };
        let rewind = agent.entries().iter().rev().find_map(|entry| {
            if let EntryKind::Rewound { rewind, .. } = &entry.what {
                Some(rewind.clone())
            } else {
                None
            }
        });
        let told = rewind.map(|rewind| AgentRewound { rewind, session });
        let _ = waiting.send(told.ok_or_else(ServiceError::unexpected));
    }
}

/// Returns the error for a missing checkpoint, with the steps that still have one.
fn gone<'n>(names: impl Iterator<Item = &'n str>) -> ServiceError {
    let steps = names.filter_map(|name| name.strip_prefix(PREFIX)?.parse::<u64>().ok());
    let back: Vec<String> = steps.map(|step| step.saturating_sub(1).to_string()).collect();
    let known = match &back[..] {
        [] => "it can go back to none any more".to_owned(),
        steps => format!("it can go back to: {}", steps.join(", ")),
    };
    let message = format!("the agent does not keep this step any more; {known}");
    ServiceError::new(ErrorCode::CheckpointNotFound, message).with_hint(LATER)
}

/// What to do when a step cannot be taken back.
pub(super) const LATER: &str =
    "go back to a later step; an agent's checkpoints (10) say how many of its last steps it keeps";

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_agent::continuity::Continuity;
    use sessile_agent::ids::TaskNo;
    use sessile_agent::limits::Limits;

    /// Returns a thread of tasks with these numbers of steps, each with a checkpoint.
    fn thread(steps: &[u64]) -> Vec<ThreadEntry> {
        let mut whats = Vec::new();
        let mut step = 0;
        for (task, count) in (1..).zip(steps) {
            let (limits, continuity) = (Limits::default(), Continuity::default());
            let text = String::new();
            whats.push(EntryKind::Task { task: TaskNo(task), text, limits, continuity, key: None });
            for _ in 0..*count {
                step += 1;
                let name = Some(name_of(step));
                whats.push(EntryKind::Checkpoint(Checkpoint {
                    step,
                    name,
                    files: true,
                    error: None,
                }));
            }
        }
        let entry = |(entry, what)| ThreadEntry { entry, at_ms: 0, what };
        (1..).zip(whats).map(entry).collect()
    }

    #[test]
    fn the_mark_before_the_last_task_stays() {
        assert_eq!(surplus(&thread(&[10]), 10), Vec::<String>::new());
        assert_eq!(surplus(&thread(&[11]), 10), ["agent-step-2"]);
        assert_eq!(surplus(&thread(&[30]), 10), ["agent-step-21", "agent-step-20"]);
        // With the next task, it is one among others.
        let next = ["agent-step-21", "agent-step-20", "agent-step-1"];
        assert_eq!(surplus(&thread(&[30, 0]), 10), next);
        assert_eq!(surplus(&thread(&[30, 1]), 10), ["agent-step-22", "agent-step-21"]);
    }
}
