//! Rewinds the thread and its session together.
//!
//! A checkpoint of the session is taken before a step first does something there
//! (`Checkpoint`). A rewind to a step takes the session back to the first checkpoint after
//! it, and drops the later entries of the thread. The start of a rewind is recorded before
//! it is done, so that a crash in between cannot leave the two apart: the resumed agent
//! rewinds the session once more, which changes nothing.

use super::{Agent, Checkpoints, Effect, Refusal, RewindTo, Stage, Worker};
use crate::ids::TaskNo;
use crate::model::Call;
use crate::thread::{Activity, Entry, EntryKind, Moved, Rewind, line};

/// Tools whose calls change nothing.
const READING: [&str; 2] = ["read_file", "search_files"];

impl Agent {
    /// Rewinds the thread and its session.
    pub fn rewind(&mut self, to: RewindTo, now_ms: u64) -> Result<Vec<Effect>, Refusal> {
        self.check_idle()?;
        let rewind = plan(&self.entries, to, self.config.worker)?;
        let mut effects = Vec::new();
        self.record(EntryKind::Rewinding(rewind), now_ms, &mut effects);
        self.rewind_on(now_ms, &mut effects);
        Ok(effects)
    }

    /// Continues a rewind that has begun.
    pub(super) fn rewind_on(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(rewind) = self.rewinding.clone() else { return };
        match rewind.checkpoint.clone() {
            Some(checkpoint) => {
                self.stage = Stage::Rewinding;
                effects.push(Effect::Rewind { checkpoint });
            }
            None => self.record(EntryKind::Rewound { rewind, run: None }, now_ms, effects),
        }
    }

    pub(super) fn rewound(
        &mut self,
        outcome: Result<Option<u64>, String>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.stage = Stage::Idle;
        let Some(rewind) = self.rewinding.clone() else { return };
        let what = match outcome {
            Ok(run) => EntryKind::Rewound { rewind, run },
            Err(why) => EntryKind::NotRewound { why },
        };
        self.record(what, now_ms, effects);
    }

    /// Records that the session was rewound without the thread.
    pub fn session_rewound(
        &mut self,
        run: u64,
        note: String,
        now_ms: u64,
    ) -> Result<Vec<Effect>, Refusal> {
        self.check_idle()?;
        let mut effects = Vec::new();
        self.record(EntryKind::SessionRewound { run, note }, now_ms, &mut effects);
        Ok(effects)
    }

    /// Records that the thread continues in another place.
    pub fn move_to(&mut self, moved: Moved, now_ms: u64) -> Result<Vec<Effect>, Refusal> {
        self.check_idle()?;
        let mut effects = Vec::new();
        self.record(EntryKind::Moved(moved), now_ms, &mut effects);
        Ok(effects)
    }

    /// Returns the newest number of the session's history in the thread.
    #[must_use]
    pub fn last_run(&self) -> u64 {
        self.entries.iter().filter_map(run_of).max().unwrap_or(0)
    }

    pub(super) fn wants_checkpoint(&self, tool: &str) -> bool {
        let is_marked = self.open.as_ref().is_some_and(|open| open.checkpointed >= self.steps);
        match &self.config.checkpoints {
            Checkpoints::BeforeCalls => !is_marked && !READING.contains(&tool),
            Checkpoints::Never | Checkpoints::BeforeAsking => false,
        }
    }

    pub(super) fn wants_checkpoint_to_ask(&self) -> bool {
        let is_marked = self.open.as_ref().is_some_and(|open| open.checkpointed > self.steps);
        self.config.checkpoints == Checkpoints::BeforeAsking && !is_marked
    }

    pub(super) fn checkpoint(&mut self, step: u64, effects: &mut Vec<Effect>) {
        self.stage = Stage::Checkpointing { step };
        effects.push(Effect::Checkpoint { step });
    }
}

fn run_of(entry: &Entry) -> Option<u64> {
    match &entry.what {
        EntryKind::Outcome(outcome) => outcome.run,
        EntryKind::Rewound { run, .. } => *run,
        EntryKind::SessionRewound { run, .. } => Some(*run),
        EntryKind::Created { .. }
        | EntryKind::Task { .. }
        | EntryKind::Reply { .. }
        | EntryKind::Approval { .. }
        | EntryKind::Intent(_)
        | EntryKind::Summary { .. }
        | EntryKind::Stopping { .. }
        | EntryKind::Ended { .. }
        | EntryKind::Checkpoint(_)
        | EntryKind::Rewinding(_)
        | EntryKind::NotRewound { .. }
        | EntryKind::Activity { .. }
        | EntryKind::Imported { .. }
        | EntryKind::Moved(_)
        | EntryKind::Continued(_) => None,
    }
}

/// Plans a rewind.
fn plan(entries: &[Entry], to: RewindTo, worker: Worker) -> Result<Rewind, Refusal> {
    let line = line(entries);
    let kept = match to {
        RewindTo::Step(step) => last_of(&line, step).ok_or_else(|| unknown(entries, step))?,
        RewindTo::LastTask => {
            let is_task = |entry: &&Entry| matches!(entry.what, EntryKind::Task { .. });
            let task = line.iter().rposition(is_task).ok_or(Refusal::NothingToUndo)?;
            task - 1
        }
    };
    let (kept, cut) = line.split_at(kept + 1);
    let step = kept.iter().rev().find_map(|entry| step_of(entry)).unwrap_or(0);
    Ok(Rewind {
        step,
        kept: kept.last().map_or(1, |entry| entry.entry),
        steps: cut.iter().filter_map(|entry| step_of(entry)).collect(),
        tasks: cut.iter().filter_map(|entry| task_of(entry)).collect(),
        checkpoint: checkpoint_in(cut, worker)?,
    })
}

/// Returns the index of the last entry of a step.
fn last_of(line: &[&Entry], step: u64) -> Option<usize> {
    let of_step = |entry: &&Entry| step_of(entry) == Some(step);
    let first = match step {
        0 => 0,
        _ => line.iter().position(of_step)?,
    };
    let belongs = |entry: &&&Entry| match entry.what {
        EntryKind::Approval { .. }
        | EntryKind::Intent(_)
        | EntryKind::Outcome(_)
        | EntryKind::Stopping { .. }
        | EntryKind::Ended { .. }
        | EntryKind::Imported { .. }
        // During a step it comes before an outcome.
        | EntryKind::Continued(_) => true,
        // The checkpoint of a step comes before its first call.
        EntryKind::Checkpoint(ref checkpoint) => checkpoint.step == step,
        EntryKind::Created { .. }
        | EntryKind::Task { .. }
        | EntryKind::Reply { .. }
        | EntryKind::Summary { .. }
        | EntryKind::Rewinding(_)
        | EntryKind::Rewound { .. }
        | EntryKind::NotRewound { .. }
        | EntryKind::SessionRewound { .. }
        | EntryKind::Activity { .. }
        | EntryKind::Moved(_) => false,
    };
    Some(first + line[first + 1..].iter().take_while(belongs).count())
}

fn unknown(entries: &[Entry], step: u64) -> Refusal {
    let steps: Vec<_> = line(entries).into_iter().filter_map(step_of).collect();
    let has_made_any = entries.iter().any(|entry| step_of(entry).is_some());
    let known = match (steps.first(), steps.last()) {
        (Some(first), Some(last)) => format!("its steps are {first} to {last}, and 0 is before"),
        (Some(_) | None, _) if has_made_any => "none is left".to_owned(),
        (Some(_) | None, _) => "it has made none yet".to_owned(),
    };
    Refusal::UnknownStep { step, known }
}

fn step_of(entry: &Entry) -> Option<u64> {
    if let EntryKind::Reply { step, .. } = entry.what { Some(step) } else { None }
}

fn task_of(entry: &Entry) -> Option<TaskNo> {
    if let EntryKind::Task { task, .. } = entry.what { Some(task) } else { None }
}

/// Returns the checkpoint from before the first action; none if there was no action.
fn checkpoint_in(cut: &[&Entry], worker: Worker) -> Result<Option<String>, Refusal> {
    let mut step = 0;
    let mut reading: Vec<&str> = Vec::new();
    for entry in cut {
        match &entry.what {
            EntryKind::Checkpoint(checkpoint) => {
                return match (&checkpoint.name, &checkpoint.error) {
                    (Some(name), _) => Ok(Some(name.clone())),
                    (None, why) => Err(Refusal::NoCheckpoint {
                        step: checkpoint.step,
                        why: why.clone().unwrap_or_else(|| "no checkpoint was taken".to_owned()),
                    }),
                };
            }
            // It acts by itself, and may not report what it does.
            EntryKind::Reply { step, .. } if worker == Worker::Program => {
                return Err(without(*step));
            }
            EntryKind::Reply { step: number, reply, .. } => {
                step = *number;
                let only_reads = |call: &&Call| READING.contains(&call.tool.as_str());
                reading.extend(reply.calls().filter(only_reads).map(|call| call.id.as_str()));
            }
            EntryKind::Outcome(outcome) if outcome.run.is_some() => return Err(without(step)),
            EntryKind::Outcome(outcome)
                if !outcome.is_error && !reading.contains(&outcome.call.as_str()) =>
            {
                return Err(without(step));
            }
            // The usage of a model's answer that does not count.
            EntryKind::Activity { activity: Activity::Usage(_), .. } if worker == Worker::Model => {
            }
            EntryKind::Activity { .. } => return Err(without(step + 1)),
            EntryKind::Created { .. }
            | EntryKind::Task { .. }
            | EntryKind::Approval { .. }
            | EntryKind::Intent(_)
            | EntryKind::Outcome(_)
            | EntryKind::Summary { .. }
            | EntryKind::Stopping { .. }
            | EntryKind::Ended { .. }
            | EntryKind::Rewinding(_)
            | EntryKind::Rewound { .. }
            | EntryKind::NotRewound { .. }
            | EntryKind::SessionRewound { .. }
            | EntryKind::Imported { .. }
            | EntryKind::Moved(_)
            | EntryKind::Continued(_) => {}
        }
    }
    Ok(None)
}

fn without(step: u64) -> Refusal {
    let why = "this agent was made without checkpoints".to_owned();
    Refusal::NoCheckpoint { step, why }
}
