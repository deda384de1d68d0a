//! The session: its runs and kernels, and the operations on it as a whole.

use crate::core::Core;
use crate::effect::{Effect, Tick};
use crate::input::{Input, Refusal, Submission};
use crate::operations::{
    Context, Durable, EarlierCheckpoint, Event, InStore, Operations, Recalled,
};
use sessile_protocol::RunNo;
use std::ops::Deref;

/// A session. Queries about runs and kernels are in [`Core`].
#[derive(Debug)]
pub struct Session {
    core: Core,
    operations: Operations,
}

impl Deref for Session {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl From<Core> for Session {
    fn from(core: Core) -> Self {
        let operations = Operations::new(core.limits().auto);
        Self { core, operations }
    }
}

impl Session {
    /// Returns the operations on the session as a whole.
    #[must_use]
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Adds a checkpoint that an earlier keeper took.
    pub fn recall(&mut self, recalling: EarlierCheckpoint) -> Recalled {
        self.operations.checkpoints.recall(recalling)
    }

    /// Sets the runs that led to the session's state under an earlier keeper.
    pub fn set_line(&mut self, line: Vec<RunNo>) {
        self.operations.checkpoints.set_line(line);
    }

    /// Makes the session save itself from now on.
    pub fn make_durable(&mut self, store: InStore, now: Tick) {
        self.operations.make_durable(Durable::new(store, now));
    }

    /// Notes a change, other than a run, that a save includes.
    pub fn changed(&mut self, now: Tick) {
        self.operations.changed(now);
    }

    /// Starts the default kernel ahead of its first run.
    pub fn open(&mut self, now: Tick) -> Vec<Effect> {
        let effects = self.core.open(now);
        self.conclude(effects, now)
    }

    /// Admits a run and gives it its number.
    ///
    /// # Errors
    /// When the session is ending or too many runs wait already.
    pub fn submit(
        &mut self,
        submission: Submission,
        now: Tick,
    ) -> Result<(RunNo, Vec<Effect>), Refusal> {
        self.core.admits(submission.language)?;
        let mut context = Context { core: &mut self.core, now, out: Vec::new() };
        self.operations.before_run(&mut context);
        let mut effects = context.out;
        let (run, begun) = self.core.submit(submission, now)?;
        effects.extend(begun);
        Ok((run, self.conclude(effects, now)))
    }

    pub fn step(&mut self, input: Input, now: Tick) -> Vec<Effect> {
        let effects = if let Input::Close(why) = input {
            let mut context = Context { core: &mut self.core, now, out: Vec::new() };
            self.operations.close(why, &mut context);
            context.out
        } else {
            self.core.step(input, now)
        };
        self.conclude(effects, now)
    }

    /// Passes an event to the operations.
    pub fn operate(&mut self, event: Event, now: Tick) -> Vec<Effect> {
        let mut context = Context { core: &mut self.core, now, out: Vec::new() };
        self.operations.handle(event, &mut context);
        let effects = context.out;
        self.conclude(effects, now)
    }

    /// Returns when the next [`Input::Tick`] is due.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        let operations =
            self.operations.due().into_iter().chain(self.operations.save_due(&self.core));
        self.core.due().into_iter().chain(operations).min()
    }

    /// Lets operations continue with whatever has become possible.
    fn conclude(&mut self, effects: Vec<Effect>, now: Tick) -> Vec<Effect> {
        let mut done = Vec::with_capacity(effects.len());
        let mut context = Context { core: &mut self.core, now, out: effects };
        loop {
            for effect in std::mem::take(&mut context.out) {
                self.operations.observe(&effect, &mut context);
                // Effects that operations add because of this one come before it.
                done.append(&mut context.out);
                done.push(effect);
            }
            if !self.operations.is_idle() {
                self.operations.advance(&mut context);
            }
            if context.out.is_empty() {
                return done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Activity, Limits};
    use crate::operations::{NotStored, Task};
    use sessile_protocol::Language;

    /// Longer than an answer of the store counts as fresh.
    const LATER: Tick = 100_000;

    fn durable() -> Session {
        let limits = Limits { idle_timeout: 0, activity: Activity::All, queue: 8, auto: None };
        let mut session = Session::from(Core::new(Language::Bash, limits, 0));
        session.make_durable(InStore::Current, 0);
        session.open(0);
        let epoch = session.epoch(Language::Bash).unwrap();
        session.step(Input::Ready { language: Language::Bash, epoch }, 0);
        session
    }

    fn submit(session: &mut Session, now: Tick) -> Vec<Effect> {
        let language = Language::Bash;
        let (queue_timeout, timeout, silence) = (None, None, None);
        let run = Submission { language, queue_timeout, timeout, silence, risky: false };
        session.submit(run, now).unwrap().1
    }

    fn begins(effects: &[Effect]) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::Begin { .. }))
    }

    fn asks(effects: &[Effect]) -> bool {
        effects.contains(&Effect::Operate(Task::LookAtStore))
    }

    #[test]
    fn a_run_after_a_pause_begins_when_the_store_has_answered() {
        let mut session = durable();
        let effects = submit(&mut session, LATER);
        assert!(asks(&effects) && !begins(&effects), "{effects:?}");
        assert!(!asks(&submit(&mut session, LATER)), "it is asked once");
        let effects = session.operate(Event::Looked { outcome: Ok(()) }, LATER + 40);
        assert!(begins(&effects), "{effects:?}");
        let effects = submit(&mut session, LATER + 50);
        assert!(!asks(&effects), "it has just answered: {effects:?}");
    }

    #[test]
    fn a_run_does_not_wait_for_a_store_that_does_not_answer() {
        let mut session = durable();
        submit(&mut session, LATER);
        let due = session.due().unwrap();
        assert!((LATER..LATER + 10_000).contains(&due));
        assert!(begins(&session.step(Input::Tick, due)));
    }

    #[test]
    fn a_run_does_not_begin_if_another_machine_has_the_session() {
        let mut session = durable();
        submit(&mut session, LATER);
        let outcome = Err(NotStored::Moved { host: "another".to_owned() });
        let effects = session.operate(Event::Looked { outcome }, LATER + 40);
        assert!(!begins(&effects), "{effects:?}");
        let told = Task::RecordMove { host: "another".to_owned() };
        assert!(effects.contains(&Effect::Operate(told)), "{effects:?}");
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Cancel { .. })));
    }

    #[test]
    fn a_session_that_does_nothing_asks_its_store() {
        let mut session = durable();
        let due = session.due().unwrap();
        assert!(asks(&session.step(Input::Tick, due)));
    }
}
