//! A task in progress, as its entries describe it.

use super::answers::ending_of;
use super::{Purpose, Worker};
use crate::ids::TaskNo;
use crate::limits::{Limit, Limits, Spent};
use crate::model::{Call, Reply, Usage};
use crate::thread::{Activity, Ending, Entry, EntryKind, Intent, Verdict};

#[derive(Clone, Debug)]
pub(super) struct OpenTask {
    pub(super) task: TaskNo,
    spent: Spent,
    /// Usage that a command-line agent has reported since the last answer. Its answer has
    /// the total.
    told: Usage,
    limits: Limits,
    /// When it began, shifted by the time during which no agent was running.
    began_ms: u64,
    answer: Answer,
    /// How it is to end, once the action in progress is done.
    stopping: Option<Ending>,
    /// The conversation was too long for the model since its last answer, and was
    /// summarized for that.
    is_shortened: bool,
    /// The first call that is performed may have been performed before.
    is_resumed: bool,
    /// The last step that has a checkpoint of the session.
    pub(super) checkpointed: u64,
    /// Number of activities that a command-line agent has reported since the last answer.
    pub(super) activities: u64,
}

/// The model's last answer.
#[derive(Clone, Debug)]
enum Answer {
    None,
    Calls(Vec<Pending>),
    Final(Reply),
}

/// A call that has no outcome yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) call: Call,
    /// The number of the reply with this call, and the index of the call in it.
    pub(super) reply: u64,
    pub(super) index: usize,
    pub(super) verdict: Option<Verdict>,
    /// The change of a file that it was about to make.
    pub(super) intent: Option<Intent>,
}

impl OpenTask {
    pub(super) fn new(task: TaskNo, limits: Limits, began_ms: u64) -> Self {
        Self {
            task,
            spent: Spent::default(),
            told: Usage::default(),
            limits,
            began_ms,
            answer: Answer::None,
            stopping: None,
            is_shortened: false,
            is_resumed: false,
            checkpointed: 0,
            activities: 0,
        }
    }

    pub(super) fn note(&mut self, entry: &Entry, worker: Worker) {
        match &entry.what {
            EntryKind::Reply { reply, .. } => {
                self.spent.add(reply.usage, &self.limits.price);
                self.is_shortened = false;
                self.answer = Answer::of(entry.entry, reply);
                (self.activities, self.told) = (0, Usage::default());
            }
            EntryKind::Approval { call, verdict } => {
                if let Answer::Calls(calls) = &mut self.answer {
                    let asked = calls.iter_mut().find(|pending| pending.call.id == *call);
                    if let Some(pending) = asked {
                        pending.verdict = Some(verdict.clone());
                    }
                }
            }
            EntryKind::Intent(intent) => {
                if let Answer::Calls(calls) = &mut self.answer {
                    let meant = calls.iter_mut().find(|pending| pending.call.id == intent.call);
                    if let Some(pending) = meant {
                        pending.intent = Some(intent.clone());
                    }
                }
            }
            EntryKind::Outcome(outcome) => {
                if let Answer::Calls(calls) = &mut self.answer {
                    calls.retain(|pending| pending.call.id != outcome.call);
                }
            }
            EntryKind::Summary { usage, .. } => {
                self.spent = self.spent.with(*usage, &self.limits.price);
            }
            EntryKind::Stopping { ending } => self.stopping = Some(ending.clone()),
            EntryKind::Checkpoint(checkpoint) => self.checkpointed = checkpoint.step,
            EntryKind::Activity { activity, .. } => {
                self.activities += 1;
                if let Activity::Usage(usage) = activity {
                    match worker {
                        Worker::Program => self.told = self.told.plus(*usage),
                        // No answer includes the usage of failed ones.
                        Worker::Model => {
                            self.spent = self.spent.with(*usage, &self.limits.price);
                        }
                    }
                }
            }
            EntryKind::Created { .. }
            | EntryKind::Task { .. }
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

    pub(super) fn resume(&mut self, last_ms: u64, now_ms: u64) {
        self.began_ms = now_ms.saturating_sub(last_ms.saturating_sub(self.began_ms));
        self.is_resumed = true;
    }

    pub(super) fn next_call(&self) -> Option<Pending> {
        match &self.answer {
            Answer::Calls(calls) => calls.first().cloned(),
            Answer::None | Answer::Final(_) => None,
        }
    }

    pub(super) fn take_repeated(&mut self) -> bool {
        std::mem::take(&mut self.is_resumed)
    }

    pub(super) fn stopping(&self) -> Option<&Ending> {
        self.stopping.as_ref()
    }

    /// Sets how the task is to end. The first reason counts.
    pub(super) fn stop(&mut self, ending: &Ending) -> bool {
        if self.stopping.is_some() {
            return false;
        }
        self.stopping = Some(ending.clone());
        true
    }

    /// Returns how the task ends now, if it does.
    pub(super) fn ending(&self, now_ms: u64) -> Option<Ending> {
        if let Answer::Final(reply) = &self.answer {
            // It is done, even if it was cancelled meanwhile.
            return Some(ending_of(reply));
        }
        if let Some(ending) = &self.stopping {
            return Some(ending.clone());
        }
        let limit = self.limits.reached(&self.spent, self.elapsed_ms(now_ms));
        limit.map(|limit| Ending::Limit { limit })
    }

    /// Returns the usage of the task, including that of an answer that has not come or failed.
    pub(super) fn spent(&self) -> Spent {
        self.spent.with(self.told, &self.limits.price)
    }

    /// Returns a limit that is reached before the answer. A command-line agent that is
    /// about to end with its answer may do so: this is checked when it does something more.
    pub(super) fn used_up(&self) -> Option<Limit> {
        self.limits.used_up(&self.spent())
    }

    /// Returns the purpose of the next request. `tokens` is the size of the last one.
    pub(super) fn purpose(&self, tokens: u64) -> Purpose {
        match self.limits.compact_above_tokens {
            Some(most) if tokens > most => Purpose::Summary,
            Some(_) | None => Purpose::Step,
        }
    }

    /// Handles a conversation that is too long for the model. Returns whether it may be
    /// summarized: once, if the caller allows summaries at all.
    pub(super) fn shorten(&mut self) -> bool {
        let may = self.limits.compact_above_tokens.is_some() && !self.is_shortened;
        self.is_shortened = true;
        may
    }

    /// Returns the maximum size of a request, if the caller has set one.
    pub(super) fn compact_above_tokens(&self) -> Option<u64> {
        self.limits.compact_above_tokens
    }

    pub(super) fn over_ms(&self) -> Option<u64> {
        let most = self.limits.max_time_ms?;
        self.stopping.is_none().then(|| self.began_ms.saturating_add(most))
    }

    pub(super) fn time_is_over(&self, now_ms: u64) -> Option<Limit> {
        self.over_ms().is_some_and(|over| over <= now_ms).then_some(Limit::Time)
    }

    fn elapsed_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.began_ms)
    }
}

impl Answer {
    fn of(entry: u64, reply: &Reply) -> Self {
        let calls: Vec<_> = reply
            .calls()
            .enumerate()
            .map(|(index, call)| Pending {
                call: call.clone(),
                reply: entry,
                index,
                verdict: None,
                intent: None,
            })
            .collect();
        if calls.is_empty() { Self::Final(reply.clone()) } else { Self::Calls(calls) }
    }
}
