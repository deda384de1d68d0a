//! A thread of another machine, taken over from a store.
//!
//! The previous machine recorded each call in the store before it performed the call. So a
//! call without an outcome in the thread may have been performed there, and this machine
//! cannot find out: only the previous machine knows the keys of its runs. The call is not
//! performed again, and the model is told. For calls on files, the files show what
//! happened, as after a crash.

use super::{Agent, Config, Effect, Worker};
use crate::continuity::Continuity;
use crate::model::{Failure, FailureKind};
use crate::thread::{Ending, Entry, EntryKind, Outcome};
use crate::tools::is_for_files;

const UNKNOWN: &str = "whether this was carried out is not known: another machine had the \
    session, and was lost in the middle of it; look before you do it again";

const NOT_AGAIN: &str = "the command-line agent was at work on another machine, which was lost; \
    how far it got is not known, and it was not started again";

impl Agent {
    /// Returns the entries to append to a thread of another machine: what happened to its
    /// session, and the outcomes of what was in progress there.
    #[must_use]
    pub fn taken_up(
        config: Config,
        entries: &[Entry],
        continuity: Continuity,
        now_ms: u64,
    ) -> Vec<Entry> {
        let (number, worker) = (entries.len() as u64 + 1, config.worker);
        let continued =
            Entry { entry: number, at_ms: now_ms, what: EntryKind::Continued(continuity) };
        let all = entries.iter().cloned().chain([continued.clone()]).collect();
        let mut appended = vec![continued];
        let Some((_, effects)) = Self::resumed(config, all, now_ms) else { return appended };
        let mut decided = Vec::new();
        for effect in effects {
            let what = match effect {
                Effect::Record(entry) => {
                    decided.push(entry);
                    continue;
                }
                Effect::Perform { call, .. } if !is_for_files(&call.tool) => {
                    EntryKind::Outcome(Outcome::error(call.id, UNKNOWN))
                }
                Effect::Ask(_) if worker == Worker::Program => {
                    let failure = Failure::new(FailureKind::Crashed, NOT_AGAIN);
                    EntryKind::Stopping { ending: Ending::Failed { failure } }
                }
                Effect::Perform { .. }
                | Effect::Ask(_)
                | Effect::WaitUntil { .. }
                | Effect::Approve(_)
                | Effect::Checkpoint { .. }
                | Effect::Rewind { .. }
                | Effect::Interrupt
                | Effect::Ended { .. } => continue,
            };
            // Entries decided before it stay before it; otherwise they would be decided again.
            appended.append(&mut decided);
            let number = (entries.len() + appended.len()) as u64 + 1;
            appended.push(Entry { entry: number, at_ms: now_ms, what });
        }
        appended
    }
}
