//! Pending decisions and effects.
//!
//! Facts go to the session, which decides; effects are its decisions. All effects are
//! performed before the next fact is handled. Performing an effect only adds to the
//! agenda: nothing is decided meanwhile.

use sessile_protocol::RunNo;
use sessile_session::operations::Event;
use sessile_session::{Effect, Input};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Agenda {
    facts: VecDeque<Fact>,
    effects: VecDeque<Effect>,
    is_under_way: bool,
}

/// What the session is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Input(Input),
    /// About an operation on the session as a whole.
    Event(Event),
}

impl From<Input> for Fact {
    fn from(input: Input) -> Self {
        Self::Input(input)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Decide(Fact),
    Perform(Effect),
}

impl Agenda {
    pub(super) fn note(&mut self, fact: impl Into<Fact>) {
        self.facts.push_back(fact.into());
    }

    /// Whether the session is about to hear of the end of a run.
    pub(super) fn tells_of_end(&self, ended: RunNo) -> bool {
        self.facts.iter().any(|fact| match fact {
            Fact::Input(Input::Reported { run, .. } | Input::Over { run, .. }) => *run == ended,
            Fact::Input(_) | Fact::Event(_) => false,
        })
    }

    pub(super) fn add(&mut self, effects: Vec<Effect>) {
        self.effects.extend(effects);
    }

    /// Returns false if the agenda is being worked off already; that call handles
    /// everything.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.is_under_way, true)
    }

    /// Returns the next item; none when everything is done.
    pub(super) fn next(&mut self) -> Option<Item> {
        let effect = self.effects.pop_front().map(Item::Perform);
        let item = effect.or_else(|| self.facts.pop_front().map(Item::Decide));
        self.is_under_way = item.is_some();
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_session::Ending;

    #[test]
    fn what_was_decided_is_done_before_the_next_decision() {
        let mut agenda = Agenda::default();
        agenda.note(Input::Tick);
        assert!(agenda.begin());
        assert_eq!(agenda.next(), Some(Item::Decide(Fact::Input(Input::Tick))));
        agenda.add(vec![Effect::Forget, Effect::Finished(Ending::Asked)]);
        assert_eq!(agenda.next(), Some(Item::Perform(Effect::Forget)));
        agenda.note(Input::Inspect);
        assert!(!agenda.begin(), "whoever performs does not decide");
        assert_eq!(agenda.next(), Some(Item::Perform(Effect::Finished(Ending::Asked))));
        assert_eq!(agenda.next(), Some(Item::Decide(Fact::Input(Input::Inspect))));
        assert_eq!(agenda.next(), None);
        assert!(agenda.begin());
    }
}
