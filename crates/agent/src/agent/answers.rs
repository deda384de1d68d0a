//! The model's answers, and its failures.

use super::open::OpenTask;
use super::{Agent, Effect, Purpose, Stage};
use crate::model::{Block, Failure, FailureKind, Reply, Retry, Stop, Usage};
use crate::thread::{Activity, Ending, EntryKind};

impl Agent {
    pub(super) fn replied(
        &mut self,
        reply: Reply,
        purpose: Purpose,
        attempt: u32,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(open) = &self.open else { return };
        let task = open.task;
        match purpose {
            Purpose::Step => {
                let reply = self.with_distinct_ids(reply);
                let step = self.steps + 1;
                self.record(EntryKind::Reply { task, step, reply }, now_ms, effects);
            }
            // An empty summary would replace the whole conversation.
            Purpose::Summary | Purpose::ShortSummary if reply.text().trim().is_empty() => {
                let why = "the model's summary of the conversation is empty";
                let failure = Failure::new(FailureKind::Nonsense, why).having_used(reply.usage);
                return self.failed(failure, purpose, attempt, now_ms, effects);
            }
            Purpose::Summary | Purpose::ShortSummary => {
                let what = EntryKind::Summary { text: reply.text(), usage: reply.usage };
                self.record(what, now_ms, effects);
            }
        }
        self.go_on(now_ms, effects);
    }

    /// Makes the ids of calls unique. Some servers number the calls of each answer from 0,
    /// or give them no id at all, but an outcome has to name its call.
    fn with_distinct_ids(&self, mut reply: Reply) -> Reply {
        let number = self.entries.len() + 1;
        let mut known: Vec<String> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.what {
                EntryKind::Reply { reply, .. } => Some(reply.calls().map(|call| call.id.clone())),
                EntryKind::Created { .. }
                | EntryKind::Task { .. }
                | EntryKind::Approval { .. }
                | EntryKind::Intent(_)
                | EntryKind::Outcome(_)
                | EntryKind::Summary { .. }
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
            })
            .flatten()
            .collect();
        for (index, block) in reply.blocks.iter_mut().enumerate() {
            if let Block::Call(call) = block {
                if call.id.is_empty() || known.contains(&call.id) {
                    call.id = format!("call_{number}_{index}");
                }
                known.push(call.id.clone());
            }
        }
        reply
    }

    pub(super) fn failed(
        &mut self,
        failure: Failure,
        purpose: Purpose,
        attempt: u32,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.count(failure.used, now_ms, effects);
        let is_too_long = failure.fault == FailureKind::TooLong && purpose != Purpose::ShortSummary;
        if is_too_long && self.open.as_mut().is_some_and(OpenTask::shorten) {
            return self.ask(Purpose::ShortSummary, 1, effects);
        }
        match failure.retry(attempt) {
            Retry::After { ms } => {
                if let Some(limit) = self.open.as_ref().and_then(OpenTask::used_up) {
                    self.stage = Stage::Idle;
                    return self.stop(Ending::Limit { limit }, now_ms, effects);
                }
                let until_ms = now_ms.saturating_add(ms);
                self.stage = Stage::Waiting { purpose, attempt, until_ms };
                effects.push(Effect::WaitUntil { at_ms: until_ms, attempt, failure });
            }
            Retry::Never => {
                self.stage = Stage::Idle;
                self.stop(Ending::Failed { failure }, now_ms, effects);
            }
        }
    }

    /// Records what an answer that does not count has used.
    pub(super) fn count(&mut self, used: Usage, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(open) = &self.open else { return };
        if used != Usage::default() {
            let (task, activity) = (open.task, Activity::Usage(used));
            self.record(EntryKind::Activity { task, activity }, now_ms, effects);
        }
    }
}

/// Returns how a task ends with an answer without calls.
pub(super) fn ending_of(reply: &Reply) -> Ending {
    let output = reply.text();
    match reply.stop {
        Stop::Refused => Ending::Refused { output },
        Stop::Length => Ending::Done { output, is_cut_off: true },
        Stop::Done | Stop::Calls => Ending::Done { output, is_cut_off: false },
    }
}
