//! The loop of a task: decides what to do next.

mod answers;
mod calls;
mod messages;
mod open;
mod rewinding;
mod takeover;

pub use messages::{
    Approval, Checkpoints, Config, Effect, Input, Purpose, Question, Refusal, RewindTo, Stage,
    Submission, Worker,
};

use crate::continuity::Continuity;
use crate::conversation::{self, Turn};
use crate::ids::{TaskNo, ThreadId};
use crate::model::Usage;
use crate::thread::{Ending, Entry, EntryKind, Moved, Rewind, line};
use calls::{Next, next_of};
use open::{OpenTask, Pending};

#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    thread: ThreadId,
    entries: Vec<Entry>,
    stage: Stage,
    open: Option<OpenTask>,
    tasks: u64,
    steps: u64,
    /// Tokens of the last request, unless it was summarized since.
    context_tokens: u64,
    /// A rewind that has begun, and may already have reached the session.
    rewinding: Option<Rewind>,
    moved: Option<Moved>,
}

impl Agent {
    /// Makes a new thread. Its first entry has to be recorded.
    #[must_use]
    pub fn new(config: Config, thread: ThreadId, now_ms: u64) -> (Self, Vec<Effect>) {
        let mut agent = Self {
            config,
            thread: thread.clone(),
            entries: Vec::new(),
            stage: Stage::Idle,
            open: None,
            tasks: 0,
            steps: 0,
            context_tokens: 0,
            rewinding: None,
            moved: None,
        };
        let mut effects = Vec::new();
        let format = crate::thread::FORMAT;
        let created = EntryKind::Created { format, thread, forked_from: None, earlier_tasks: 0 };
        agent.record(created, now_ms, &mut effects);
        (agent, effects)
    }

    /// Continues from the recorded entries, which are those of a thread as returned by
    /// [`thread::read`](crate::thread::read).
    #[must_use]
    pub fn resumed(
        config: Config,
        entries: Vec<Entry>,
        now_ms: u64,
    ) -> Option<(Self, Vec<Effect>)> {
        let EntryKind::Created { thread, .. } = &entries.first()?.what else {
            return None;
        };
        let mut agent = Self {
            config,
            thread: thread.clone(),
            entries: Vec::with_capacity(entries.len()),
            stage: Stage::Idle,
            open: None,
            tasks: 0,
            steps: 0,
            context_tokens: 0,
            rewinding: None,
            moved: None,
        };
        let last_ms = entries.last()?.at_ms;
        for entry in entries {
            agent.note(entry);
        }
        let mut effects = Vec::new();
        if let Some(open) = &mut agent.open {
            // The time during which no agent was running does not count.
            open.resume(last_ms, now_ms);
            agent.go_on(now_ms, &mut effects);
        }
        agent.rewind_on(now_ms, &mut effects);
        Some((agent, effects))
    }

    #[must_use]
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    #[must_use]
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns whether a task or a rewind is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.open.is_some() || self.rewinding.is_some()
    }

    #[must_use]
    pub fn moved(&self) -> Option<&Moved> {
        self.moved.as_ref()
    }

    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the turns for a request to the model.
    #[must_use]
    pub fn turns(&self, purpose: Purpose) -> Vec<Turn> {
        let turns = conversation::turns(&self.entries);
        match purpose {
            Purpose::Step | Purpose::Summary => turns,
            Purpose::ShortSummary => {
                let most = self.open.as_ref().and_then(OpenTask::compact_above_tokens);
                conversation::shortened(turns, most.unwrap_or(0))
            }
        }
    }

    /// Returns when to call [`Agent::step`] with [`Input::Due`] if nothing else happens.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        let over = self.open.as_ref().and_then(OpenTask::over_ms);
        let wait = match self.stage {
            Stage::Waiting { until_ms, .. } => Some(until_ms),
            Stage::Idle
            | Stage::Asking { .. }
            | Stage::Approving { .. }
            | Stage::Performing { .. }
            | Stage::Checkpointing { .. }
            | Stage::Rewinding => None,
        };
        over.into_iter().chain(wait).min()
    }

    pub fn submit(
        &mut self,
        submission: Submission,
        now_ms: u64,
    ) -> Result<(TaskNo, Vec<Effect>), Refusal> {
        if let Some(task) = self.begun_before(&submission)? {
            return Ok((task, Vec::new()));
        }
        self.check_idle()?;
        if submission.text.trim().is_empty() {
            return Err(Refusal::Empty);
        }
        let task = TaskNo(self.tasks + 1);
        let Submission { text, limits, continuity, key } = submission;
        let continuity = self.continuity(continuity);
        let mut effects = Vec::new();
        self.record(EntryKind::Task { task, text, limits, continuity, key }, now_ms, &mut effects);
        self.go_on(now_ms, &mut effects);
        Ok((task, effects))
    }

    /// Returns the task that an earlier submission with the same key has begun.
    fn begun_before(&self, submission: &Submission) -> Result<Option<TaskNo>, Refusal> {
        let Some(wanted) = &submission.key else { return Ok(None) };
        let of_key = self.entries.iter().find_map(|entry| {
            let EntryKind::Task { task, text, key, .. } = &entry.what else { return None };
            (key.as_ref() == Some(wanted)).then_some((*task, text))
        });
        match of_key {
            None => Ok(None),
            Some((task, text)) if *text == submission.text => Ok(Some(task)),
            Some((task, _)) => Err(Refusal::KeyReused(task)),
        }
    }

    /// Returns what happened to the session, if no task has reported it yet.
    fn unreported(&self) -> Option<Continuity> {
        let since = self.entries.iter().rev();
        // Events during a task were reported there.
        let is_told =
            |entry: &&Entry| matches!(entry.what, EntryKind::Task { .. } | EntryKind::Ended { .. });
        since.take_while(|entry| !is_told(entry)).find_map(|entry| {
            if let EntryKind::Continued(continuity) = &entry.what {
                Some(continuity.clone())
            } else {
                None
            }
        })
    }

    /// Returns what the next task will report about the session.
    #[must_use]
    pub fn continuity(&self, now: Continuity) -> Continuity {
        self.unreported().filter(|_| now.is_live()).unwrap_or(now)
    }

    fn check_idle(&self) -> Result<(), Refusal> {
        if let Some(Moved { url, session_id }) = self.moved.clone() {
            return Err(Refusal::Moved { url, session_id });
        }
        if self.rewinding.is_some() {
            return Err(Refusal::Rewinding);
        }
        match &self.open {
            Some(open) => Err(Refusal::Busy(open.task)),
            None => Ok(()),
        }
    }

    /// Takes an input. One that does not fit the stage (a late or second answer) changes nothing.
    pub fn step(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        match (input, self.stage.clone()) {
            (Input::Replied(reply), Stage::Asking { purpose, attempt, .. }) => {
                self.replied(reply, purpose, attempt, now_ms, &mut effects);
            }
            (Input::Failed(failure), Stage::Asking { purpose, attempt, .. }) => {
                self.failed(failure, purpose, attempt, now_ms, &mut effects);
            }
            (Input::Using(used), Stage::Asking { purpose, attempt, .. }) => {
                self.stage = Stage::Asking { purpose, attempt, used };
            }
            (Input::Performed(outcome), Stage::Performing { call }) if outcome.call == call => {
                self.record(EntryKind::Outcome(outcome), now_ms, &mut effects);
                self.go_on(now_ms, &mut effects);
            }
            (Input::Decided { call, verdict }, Stage::Approving { call: asked })
                if call == asked =>
            {
                self.record(EntryKind::Approval { call, verdict }, now_ms, &mut effects);
                self.go_on(now_ms, &mut effects);
            }
            (Input::Active(activity), Stage::Asking { .. }) => {
                let Some(open) = &self.open else { return effects };
                let (task, used_up) = (open.task, open.used_up());
                self.record(EntryKind::Activity { task, activity }, now_ms, &mut effects);
                if let Some(limit) = used_up {
                    self.stop(Ending::Limit { limit }, now_ms, &mut effects);
                }
            }
            (Input::Checkpointed(checkpoint), Stage::Checkpointing { step })
                if checkpoint.step == step =>
            {
                self.record(EntryKind::Checkpoint(checkpoint), now_ms, &mut effects);
                self.go_on(now_ms, &mut effects);
            }
            (Input::Rewound(outcome), Stage::Rewinding) => {
                self.rewound(outcome, now_ms, &mut effects);
            }
            (Input::Intended(intent), Stage::Performing { call }) if intent.call == call => {
                self.record(EntryKind::Intent(intent), now_ms, &mut effects);
                self.go_on(now_ms, &mut effects);
            }
            (Input::Stopped(failure), _) => {
                // Nothing is in progress: the last action was not begun.
                self.stage = Stage::Idle;
                self.stop(Ending::Failed { failure }, now_ms, &mut effects);
            }
            (Input::Continued(continuity), _) => {
                self.record(EntryKind::Continued(continuity), now_ms, &mut effects);
            }
            (Input::Cancelled, _) => self.stop(Ending::Cancelled, now_ms, &mut effects),
            (Input::Due, stage) => self.due(&stage, now_ms, &mut effects),
            (
                Input::Replied(_)
                | Input::Failed(_)
                | Input::Using(_)
                | Input::Intended(_)
                | Input::Performed(_)
                | Input::Decided { .. }
                | Input::Active(_)
                | Input::Checkpointed(_)
                | Input::Rewound(_),
                Stage::Idle
                | Stage::Asking { .. }
                | Stage::Waiting { .. }
                | Stage::Approving { .. }
                | Stage::Performing { .. }
                | Stage::Checkpointing { .. }
                | Stage::Rewinding,
            ) => {}
        }
        effects
    }

    fn due(&mut self, stage: &Stage, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(open) = &self.open else { return };
        if let Some(limit) = open.time_is_over(now_ms) {
            return self.stop(Ending::Limit { limit }, now_ms, effects);
        }
        match *stage {
            Stage::Waiting { purpose, attempt, until_ms } if until_ms <= now_ms => {
                self.ask(purpose, attempt + 1, effects);
            }
            Stage::Idle
            | Stage::Asking { .. }
            | Stage::Waiting { .. }
            | Stage::Approving { .. }
            | Stage::Performing { .. }
            | Stage::Checkpointing { .. }
            | Stage::Rewinding => {}
        }
    }

    /// Ends the task as soon as nothing is in progress.
    fn stop(&mut self, ending: Ending, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(open) = &mut self.open else { return };
        if !open.stop(&ending) {
            return;
        }
        match self.stage {
            // Wait for its outcome: its effects are part of the thread. Record that the
            // task is to stop, because after a crash it would continue otherwise.
            Stage::Performing { .. } => {
                self.record(EntryKind::Stopping { ending }, now_ms, effects);
                effects.push(Effect::Interrupt);
            }
            Stage::Asking { used, .. } => {
                effects.push(Effect::Interrupt);
                self.count(used, now_ms, effects);
                self.go_on(now_ms, effects);
            }
            Stage::Checkpointing { .. } => {
                effects.push(Effect::Interrupt);
                self.go_on(now_ms, effects);
            }
            Stage::Idle | Stage::Waiting { .. } | Stage::Approving { .. } | Stage::Rewinding => {
                self.go_on(now_ms, effects);
            }
        }
    }

    /// Decides what comes next, only from the recorded entries.
    fn go_on(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        loop {
            self.stage = Stage::Idle;
            let Some(open) = &mut self.open else { return };
            if let Some(pending) = open.next_call() {
                let is_uncertain = open.stopping().is_some() && open.take_repeated();
                match next_of(&pending, open.stopping(), is_uncertain, &self.config) {
                    Next::Tell(outcome) => {
                        self.record(EntryKind::Outcome(outcome), now_ms, effects);
                        continue;
                    }
                    Next::Approve => {
                        self.stage = Stage::Approving { call: pending.call.id.clone() };
                        effects.push(Effect::Approve(pending.call));
                    }
                    Next::Perform => {
                        if self.wants_checkpoint(&pending.call.tool) {
                            return self.checkpoint(self.steps, effects);
                        }
                        let key = self.thread.key_of(pending.reply, pending.index);
                        let is_repeated = self.open.as_mut().is_some_and(OpenTask::take_repeated);
                        self.stage = Stage::Performing { call: pending.call.id.clone() };
                        let Pending { call, intent, .. } = pending;
                        effects.push(Effect::Perform { call, key, is_repeated, intent });
                    }
                }
                return;
            }
            let purpose = match self.config.worker {
                Worker::Model => open.purpose(self.context_tokens),
                // It would do the task instead of a summary.
                Worker::Program => Purpose::Step,
            };
            return match open.ending(now_ms) {
                Some(ending) => self.end(ending, now_ms, effects),
                None if self.wants_checkpoint_to_ask() => self.checkpoint(self.steps + 1, effects),
                None => self.ask(purpose, 1, effects),
            };
        }
    }

    fn ask(&mut self, purpose: Purpose, attempt: u32, effects: &mut Vec<Effect>) {
        let Some(open) = &self.open else { return };
        let key = format!("{}-ask-{}-{}", self.thread, open.task, self.steps + 1);
        let activities = open.activities;
        self.stage = Stage::Asking { purpose, attempt, used: Usage::default() };
        effects.push(Effect::Ask(Question { purpose, key, activities }));
    }

    fn end(&mut self, ending: Ending, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(open) = &self.open else { return };
        let (task, spent) = (open.task, open.spent());
        self.record(EntryKind::Ended { task, ending: ending.clone(), spent }, now_ms, effects);
        effects.push(Effect::Ended { task, ending, spent });
    }

    fn record(&mut self, what: EntryKind, at_ms: u64, effects: &mut Vec<Effect>) {
        let entry = Entry { entry: self.entries.len() as u64 + 1, at_ms, what };
        effects.push(Effect::Record(entry.clone()));
        self.note(entry);
    }

    /// Applies an entry that was decided or read.
    fn note(&mut self, entry: Entry) {
        match &entry.what {
            EntryKind::Task { task, limits, .. } => {
                self.tasks = self.tasks.max(task.0);
                self.open = Some(OpenTask::new(*task, *limits, entry.at_ms));
            }
            EntryKind::Created { earlier_tasks, .. } => self.tasks = *earlier_tasks,
            EntryKind::Ended { .. } => self.open = None,
            EntryKind::Rewinding(rewind) => self.rewinding = Some(rewind.clone()),
            EntryKind::Rewound { rewind, .. } => {
                self.rewinding = None;
                self.context_tokens = context_of(&self.entries, rewind.kept);
            }
            EntryKind::NotRewound { .. } => self.rewinding = None,
            EntryKind::Moved(moved) => self.moved = Some(moved.clone()),
            EntryKind::Imported { .. } => self.moved = None,
            EntryKind::Reply { reply, .. } => {
                self.steps += 1;
                self.context_tokens = reply.usage.input_tokens;
            }
            EntryKind::Summary { .. } => self.context_tokens = 0,
            EntryKind::Approval { .. }
            | EntryKind::Intent(_)
            | EntryKind::Outcome(_)
            | EntryKind::Stopping { .. }
            | EntryKind::Checkpoint(_)
            | EntryKind::SessionRewound { .. }
            | EntryKind::Activity { .. }
            | EntryKind::Continued(_) => {}
        }
        if let Some(open) = &mut self.open {
            open.note(&entry, self.config.worker);
        }
        self.entries.push(entry);
    }
}

/// Returns the tokens of the last request that still counts with the first `kept` entries.
fn context_of(entries: &[Entry], kept: u64) -> u64 {
    let before = line(entries).into_iter().rev().filter(|entry| entry.entry <= kept);
    let mut tokens = before.filter_map(|entry| match &entry.what {
        EntryKind::Reply { reply, .. } => Some(reply.usage.input_tokens),
        EntryKind::Summary { .. } => Some(0),
        EntryKind::Created { .. }
        | EntryKind::Task { .. }
        | EntryKind::Approval { .. }
        | EntryKind::Intent(_)
        | EntryKind::Outcome(_)
        | EntryKind::Stopping { .. }
        | EntryKind::Ended { .. }
        | EntryKind::Checkpoint(_)
        | EntryKind::Rewinding(_)
        | EntryKind::Rewound { .. }
        | EntryKind::NotRewound { .. }
        | EntryKind::SessionRewound { .. }
        | EntryKind::Activity { .. }
        | EntryKind::Imported { .. }
        | EntryKind::Moved(_)
        | EntryKind::Continued(_) => None,
    });
    tokens.next().unwrap_or(0)
}
